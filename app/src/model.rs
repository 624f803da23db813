//! What passes between the UI's pages and the server besides the types of the `api` crate.

use api::WorkerId;
use serde::{Deserialize, Serialize};

/// Who is logged in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Login name.
    pub username: String,
    /// Nothing else is allowed before the password is changed.
    pub require_password_change: bool,
}

/// What a login attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginOutcome {
    /// Logged in; `set_cookie` is the value of the `Set-Cookie` header.
    LoggedIn {
        /// Value of the `Set-Cookie` header.
        set_cookie: String,
        /// The password must be changed before anything else.
        require_password_change: bool,
    },
    /// Wrong user or password.
    Wrong,
    /// Too many attempts from this address or for this user.
    TooMany {
        /// Try again after so many seconds.
        retry_after_s: u64,
    },
    /// The server could not check.
    Failed,
}

/// A new password must have so many characters.
pub const PASSWORD_MIN_CHARACTERS: u32 = 8;

/// What a change of password came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PasswordOutcome {
    /// It is changed; other sessions of the user have ended.
    Changed,
    /// The current password is wrong.
    WrongCurrent,
    /// The new one is shorter than so many characters.
    TooShort(u32),
    /// The new one is the current one.
    Same,
    /// Nobody is logged in any more.
    LoggedOut,
    /// Too many attempts.
    TooMany {
        /// Try again after so many seconds.
        retry_after_s: u64,
    },
    /// The server could not do it.
    Failed,
}

/// What a join command needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinInfo {
    /// Scheme, host and port that the browser used, e.g. `http://10.0.0.1:8090`.
    pub server_url: String,
    /// The join token.
    pub token: String,
    /// Where the token is on the server's host; None when it was given on the command line and is in no file.
    pub token_file: Option<String>,
    /// The server's version, which names the image's tag.
    pub version: String,
    /// The port that the server listens on.
    pub port: u16,
    /// Of the server's certificate, when no authority vouches for it.
    pub certificate_fingerprint: Option<String>,
    /// Ports of workers behind tunnels that end on the server's host.
    pub taken_ports: Vec<u16>,
    /// The last one that has joined; who joins later has a higher number.
    pub newest_worker: WorkerId,
}
