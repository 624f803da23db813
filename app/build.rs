//! Hashes the sources of the UI, for the browser's half to see whether the server's half was made from the same.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// What decides on HTML and on data between the two halves.
const SOURCES: [&str; 3] = ["src", "../crates/api/src", "../Cargo.lock"];

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
        let mut files = Vec::new();
        collect(Path::new(source), &mut files)?;
        files.sort();
        for file in files {
            file.hash(&mut hasher);
            std::fs::read(&file)?.hash(&mut hasher);
        }
    }
    println!("cargo:rustc-env=APP_SOURCES={:016x}", hasher.finish());
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}
