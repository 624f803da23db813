//! `gpustack token`.

use super::exit::CommandError;
use super::output;
use super::settings::ServerStateArgs;
use crate::config::{self, Environment};
use crate::data_dir::DataDir;

pub fn run(args: &ServerStateArgs) -> Result<(), CommandError> {
    let environment = Environment::of_process();
    let sources = args.sources(&environment)?;
    // a server started with the same variables or file uses that one
    if let Some(token) = config::token(&sources)? {
        return Ok(output::print(&format!("{}\n", token.expose()))?);
    }
    let data_dir = DataDir::existing(&config::data_dir(&sources)?)?;
    let token = data_dir.stored_token()?.ok_or_else(|| {
        CommandError::failed(format!(
            "there is no {}: no server has been started from this data directory, or it got its token from --token",
            data_dir.token_path().display()
        ))
    })?;
    Ok(output::print(&format!("{}\n", token.expose()))?)
}
