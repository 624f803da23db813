//! What people and scripts read on standard output.

use std::io::{self, Write};

/// Prints all of `text`. A reader that has gone away, as `head` does, is no error.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
