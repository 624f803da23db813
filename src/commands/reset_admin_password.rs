//! `gpustack reset-admin-password`: works on the database itself, so it needs no password and no running server, only
//! the right to write the file.

use super::exit::CommandError;
use super::output;
use super::settings::ServerStateArgs;
use crate::config::{self, Environment};
use crate::data_dir::{DataDir, INITIAL_ADMIN_PASSWORD};
use crate::random;
use crate::server::auth::hash_blocking;
use crate::server::store::{NewPassword, Store, UserRow};
use std::path::Path;

pub fn run(args: &ServerStateArgs) -> Result<(), CommandError> {
    let environment = Environment::of_process();
    let sources = args.sources(&environment)?;
    let data_dir = DataDir::existing(&config::data_dir(&sources)?)?;
    let database = config::database(&sources, data_dir.path())?;
    let password = random::password()?;
    let hash = hash_blocking(&password).map_err(CommandError::failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let admin = runtime.block_on(reset(&database, &hash))?;
    // it tells a password that holds no more
    data_dir.remove(INITIAL_ADMIN_PASSWORD)?;
    let text = format!(
        "The password of user {} is now:\n{password}\nAll sessions have ended; the password must be changed at the next login.\n",
        admin.username
    );
    Ok(output::print(&text)?)
}

async fn reset(database: &Path, hash: &str) -> Result<UserRow, CommandError> {
    if !database.is_file() {
        return Err(CommandError::failed(format!(
            "there is no database {}; no server has been started from this data directory",
            database.display()
        )));
    }
    let store = Store::open(database).await?;
    let failed = |error: sqlx::Error| {
        CommandError::failed(format!("cannot change the password in {}: {error}", database.display()))
    };
    let admin = store.first_admin().await.map_err(failed)?;
    let admin = admin.ok_or_else(|| {
        CommandError::failed(format!("no administrator is in {}; start the server once", database.display()))
    })?;
    let password = NewPassword { password_hash: hash, require_password_change: true, kept_session: None };
    store.set_password(admin.id, password).await.map_err(failed)?;
    store.close().await;
    Ok(admin)
}
