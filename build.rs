//! Sees to it that the folder of browser files is there: rust-embed wants it, and a checkout without browser files
//! must still compile.
//!
//! A debug build has a folder of its own and reads it while it runs; only a release is made anew when its files change,
//! and it cannot take in the files of a debug build.

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    std::fs::create_dir_all("target/site/dev")?;
    std::fs::create_dir_all("target/site/release")?;
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/server/store/sqlite");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo:rerun-if-changed=target/site/release");
        if !Path::new("target/site/release/folder").exists() {
            println!(
                "cargo:warning=no browser files: the UI will be plain pages; `cargo xtask build --release` makes them"
            );
        }
    }
    Ok(())
}
