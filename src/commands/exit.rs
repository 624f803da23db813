//! How a command ends.

use crate::config::ConfigError;
use crate::data_dir::DataDirError;
use crate::server::ServerError;
use crate::server::auth::AuthOpenError;
use crate::server::listen::TlsError;
use crate::server::store::OpenError;
use crate::worker::{AddressError, BindError, IdentityError, WorkerError};
use std::fmt::Display;
use std::io;
use std::process::ExitCode;

/// What a supervisor can tell from the exit status. 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitStatus {
    /// It went wrong; trying again may help.
    Failed = 1,
    /// The command line, a variable, or a file that the user wrote is wrong; trying again does not help.
    Usage = 2,
    /// Another process runs from the same data directory.
    DataDirInUse = 3,
}

/// Why a command did not succeed.
#[derive(Debug)]
pub struct CommandError {
    status: ExitStatus,
    message: String,
}

impl CommandError {
    /// It went wrong.
    pub fn failed(message: impl Display) -> Self {
        Self { status: ExitStatus::Failed, message: message.to_string() }
    }

    /// What the user asked for cannot be meant.
    pub fn usage(message: impl Display) -> Self {
        Self { status: ExitStatus::Usage, message: message.to_string() }
    }

    /// Tells the user.
    pub fn report(&self) -> ExitCode {
        eprintln!("error: {}", self.message);
        ExitCode::from(self.status as u8)
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self::usage(error)
    }
}

impl From<DataDirError> for CommandError {
    fn from(error: DataDirError) -> Self {
        let status = match &error {
            DataDirError::InUse { .. } => ExitStatus::DataDirInUse,
            DataDirError::Token { .. } | DataDirError::Missing { .. } => ExitStatus::Usage,
            DataDirError::Folder { .. } | DataDirError::Read { .. } | DataDirError::Write { .. } => ExitStatus::Failed,
        };
        Self { status, message: error.to_string() }
    }
}

impl From<TlsError> for CommandError {
    fn from(error: TlsError) -> Self {
        Self::usage(error)
    }
}

impl From<OpenError> for CommandError {
    fn from(error: OpenError) -> Self {
        Self::failed(error)
    }
}

impl From<AuthOpenError> for CommandError {
    fn from(error: AuthOpenError) -> Self {
        match error {
            AuthOpenError::DataDir(error) => error.into(),
            error => Self::failed(error),
        }
    }
}

impl From<ServerError> for CommandError {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Tls(error) => error.into(),
            ServerError::Store(error) => error.into(),
            ServerError::Auth(error) => error.into(),
            error @ (ServerError::Workers(_) | ServerError::Links(_)) => Self::failed(error),
        }
    }
}

impl From<BindError> for CommandError {
    fn from(error: BindError) -> Self {
        Self::failed(error)
    }
}

impl From<WorkerError> for CommandError {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Identity(IdentityError::DataDir(error)) => error.into(),
            error @ (WorkerError::NoToken
            | WorkerError::Address(AddressError::NoHostAddress(_) | AddressError::NoInterface { .. })) => {
                Self::usage(error)
            }
            error => Self::failed(error),
        }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}
