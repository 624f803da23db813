//! The administrator that a new server makes.

use super::AuthOpenError;
use super::password::hash_blocking;
use crate::config::Secret;
use crate::data_dir::{DataDir, INITIAL_ADMIN_PASSWORD};
use crate::random;
use crate::server::store::{NewUser, Store};
use std::path::PathBuf;

/// GPUStack 0.7's name for it.
pub const ADMIN_NAME: &str = "admin";
const ADMIN_FULL_NAME: &str = "Default System Admin";

/// How the admin can log in.
#[derive(Clone, Debug)]
pub enum FirstLogin {
    /// With a password that was made just now and is in this file too.
    Generated {
        /// The password.
        password: Secret,
        /// Where it is until it is changed.
        file: PathBuf,
    },
    /// With the password that `--bootstrap-password` gave just now.
    Bootstrap,
    /// With the password of an earlier start, which nobody has changed and which is in this file.
    InFile(PathBuf),
    /// With the password that the administrator chose.
    Chosen,
}

/// Makes the admin when no administrator is there.
pub(super) async fn ensure(
    store: &Store,
    data_dir: &DataDir,
    bootstrap_password: Option<&Secret>,
) -> Result<FirstLogin, AuthOpenError> {
    if store.first_admin().await?.is_some() {
        if bootstrap_password.is_some() {
            tracing::info!("the given bootstrap password has no effect: there is an administrator already");
        }
        let file = data_dir.file(INITIAL_ADMIN_PASSWORD);
        return Ok(if file.exists() { FirstLogin::InFile(file) } else { FirstLogin::Chosen });
    }
    if let Some(password) = bootstrap_password {
        insert(store, password.expose(), false).await?;
        // one that a GPUStack 0.7 left is not this admin's
        data_dir.remove(INITIAL_ADMIN_PASSWORD)?;
        return Ok(FirstLogin::Bootstrap);
    }
    let password = random::password()?;
    // Written before the admin is: after a crash in between the next start makes another one.
    data_dir.write(INITIAL_ADMIN_PASSWORD, &format!("{password}\n"))?;
    insert(store, &password, true).await?;
    let file = data_dir.file(INITIAL_ADMIN_PASSWORD);
    Ok(FirstLogin::Generated { password: Secret::new(password), file })
}

async fn insert(store: &Store, password: &str, require_password_change: bool) -> Result<(), AuthOpenError> {
    let password = password.to_owned();
    let hash = tokio::task::spawn_blocking(move || hash_blocking(&password)).await.map_err(std::io::Error::other)??;
    let admin = NewUser {
        username: ADMIN_NAME,
        full_name: ADMIN_FULL_NAME,
        is_admin: true,
        password_hash: &hash,
        require_password_change,
    };
    store.insert_user(admin).await?;
    Ok(())
}
