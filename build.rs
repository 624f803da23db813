//! rust-embed does not notice new files by itself, and a checkout without browser files must still compile.

use std::io;

fn main() -> io::Result<()> {
    std::fs::create_dir_all("target/site/pkg")?;
    println!("cargo:rerun-if-changed=target/site/pkg");
    println!("cargo:rerun-if-changed=src/server/store/sqlite");
    Ok(())
}
