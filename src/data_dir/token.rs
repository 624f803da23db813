//! The join token of a server.

use super::{DataDir, DataDirError};
use crate::config::JoinToken;
use crate::random;
use std::path::PathBuf;

/// The file with the join token.
pub const TOKEN: &str = "token";
/// As many as GPUStack 0.7 takes: 128 bits.
const RANDOM_BYTES: usize = 16;

impl DataDir {
    /// Where the join token is when it was not given otherwise.
    pub fn token_path(&self) -> PathBuf {
        self.file(TOKEN)
    }

    /// The join token in the folder; None when there is no such file.
    pub fn stored_token(&self) -> Result<Option<JoinToken>, DataDirError> {
        let Some(text) = self.read(TOKEN)? else { return Ok(None) };
        JoinToken::parse_file(&text).map(Some).map_err(|source| DataDirError::Token { path: self.token_path(), source })
    }

    /// The server's join token: the given one, which is not written down, else the folder's, else a new one, which
    /// is.
    pub fn join_token(&self, given: Option<&JoinToken>) -> Result<JoinToken, DataDirError> {
        if let Some(given) = given {
            return Ok(given.clone());
        }
        if let Some(stored) = self.stored_token()? {
            return Ok(stored);
        }
        let drawn = random::bytes::<RANDOM_BYTES>();
        let text = random::hex(&drawn.map_err(|source| DataDirError::Write { path: self.token_path(), source })?);
        self.write(TOKEN, &format!("{text}\n"))?;
        JoinToken::parse(&text).map_err(|source| DataDirError::Token { path: self.token_path(), source })
    }
}
