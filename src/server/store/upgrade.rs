//! What is checked and saved before a database of an earlier release is changed.

use super::OpenError;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{ConnectOptions, Connection};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Makes the file if it is not there, for its owner alone: it holds hashes of passwords. `SQLite` gives the files
/// beside it the same mode.
pub fn make_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Refuses the database of a GPUStack 0.7, whatever its name, without writing a byte to it.
pub async fn refuse_foreign(path: &Path) -> Result<(), OpenError> {
    let is_new = std::fs::metadata(path).is_ok_and(|found| found.len() == 0);
    if is_new {
        return Ok(());
    }
    // `immutable` keeps even locks and files beside it away
    let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(true);
    let open_failed = |source| OpenError::Open { path: path.to_owned(), source };
    let mut connection = options.connect().await.map_err(open_failed)?;
    let alembic: Option<i64> = sqlx::query_scalar("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'")
        .fetch_optional(&mut connection)
        .await
        .map_err(open_failed)?;
    connection.close().await.map_err(open_failed)?;
    match alembic {
        Some(_) => Err(OpenError::Foreign { path: path.to_owned() }),
        None => Ok(()),
    }
}

/// Copies a database that is about to be changed to `newest`, as a whole and beside it, and gives the copy's path.
/// None when nothing will be changed, or nothing is in it yet. A copy that an interrupted upgrade made is kept.
pub async fn copy_before(writer: &SqlitePool, path: &Path, newest: i64) -> Result<Option<PathBuf>, OpenError> {
    let failed = |source| OpenError::Copy { path: path.to_owned(), source };
    let is_ours: Option<i64> = sqlx::query_scalar("SELECT 1 FROM sqlite_master WHERE name = '_sqlx_migrations'")
        .fetch_optional(writer)
        .await
        .map_err(failed)?;
    if is_ours.is_none() {
        return Ok(None);
    }
    let applied: Option<i64> =
        sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations").fetch_one(writer).await.map_err(failed)?;
    let Some(applied) = applied.filter(|applied| *applied < newest) else { return Ok(None) };
    let copy = beside(path, &format!(".before-{newest}-at-{applied}"));
    if copy.exists() {
        return Ok(Some(copy));
    }
    let partial = beside(path, ".copying");
    let io_failed = |error| failed(sqlx::Error::Io(error));
    if let Err(error) = std::fs::remove_file(&partial)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(io_failed(error));
    }
    make_private(&partial).map_err(io_failed)?;
    sqlx::query("VACUUM INTO $1").bind(partial.to_string_lossy()).execute(writer).await.map_err(failed)?;
    std::fs::rename(&partial, &copy).map_err(io_failed)?;
    Ok(Some(copy))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::store::{MIGRATIONS, Store};
    use sqlx::migrate::Migrator;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn the_database_of_a_gpustack_is_refused_and_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("renamed.db");
        let theirs = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut connection = theirs.connect().await.unwrap();
        sqlx::query("CREATE TABLE alembic_version (version_num TEXT)").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(Store::open(&path).await, Err(OpenError::Foreign { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_refused_and_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        std::fs::write(&path, "no database at all, but long enough to look at: ".repeat(20)).unwrap();
        let told = Store::open(&path).await.unwrap_err().to_string();
        assert!(told.contains("cannot open the database") && told.contains("notes.txt"), "{told}");
    }

    #[tokio::test]
    async fn the_first_release_s_database_keeps_its_workers_and_gets_the_new_columns() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gpustack.db");
        let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        let first = MIGRATIONS.iter().next().unwrap().clone();
        Migrator::with_migrations(vec![first]).run(&pool).await.unwrap();
        sqlx::query(
            "INSERT INTO workers (worker_uuid, name, credential_sha256, hostname, ip, port, labels, maintenance, status, \
             devices_expected, created_ms, updated_ms) VALUES ('5f2b6f0e-3d2e-4d5f-9b0e-0c5f4a6b7c8d', 'npu-1', NULL, \
             'host', '10.0.0.1', 10150, '{}', '{}', '{}', 8, 1, 2)",
        )
        .execute(&pool)
        .await
        .unwrap();
        pool.close().await;
        let store = Store::open(&path).await.unwrap();
        let workers = store.load_workers().await.unwrap();
        let told: Vec<_> = workers.iter().map(|worker| (worker.row.name.as_str(), worker.row.link_key)).collect();
        assert_eq!(told, [("npu-1", None)]);
        store.close().await;
        let copies = std::fs::read_dir(dir.path())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".before-"));
        assert_eq!(copies.count(), 1);
    }

    #[tokio::test]
    async fn an_older_database_is_copied_whole_before_it_is_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gpustack.db");
        let store = Store::open(&path).await.unwrap();
        store.setting_or_insert("kept", "value").await.unwrap();
        let newest = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap();
        assert_eq!(copy_before(store.writer(), &path, newest).await.unwrap(), None);
        for _ in 0..2 {
            let copy = copy_before(store.writer(), &path, newest + 1).await.unwrap().unwrap();
            assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
            let copied = Store::open(&copy).await.unwrap();
            assert_eq!(copied.setting("kept").await.unwrap().as_deref(), Some("value"));
            copied.close().await;
        }
    }
}
