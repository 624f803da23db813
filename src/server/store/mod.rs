//! What outlives the process: users, sessions, API keys, workers and their events, tunnel agents, in one SQLite file.
//!
//! Queries are static text with `$1` parameters that PostgreSQL takes too; what is SQLite's own (pragmas, the form of
//! migrations) stays in this file and in `sqlite/`.

mod api_keys;
mod sessions;
pub mod tunnel_agents;
mod upgrade;
mod users;
pub mod workers;

pub use api_keys::{ApiKeyOwner, ApiKeyRow, NewApiKey};
pub use sessions::{NewSession, SessionRow};
pub use users::{NewPassword, NewUser, UserRow};

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Readers wait for nobody in WAL mode; two are plenty for the few queries that are not answered from memory.
const READERS: u32 = 2;
/// What each connection keeps of the file in memory, in KiB (the minus, see `SQLite`'s `cache_size`). The kernel keeps
/// the file anyway, and what is read often is answered from memory.
const CACHE_SIZE_KIB: &str = "-512";
/// Longer than any batch of ours; a query that waits longer is answered 503 rather than piling up.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

static MIGRATIONS: Migrator = sqlx::migrate!("src/server/store/sqlite");

/// The database. Cloning it clones a handle.
#[derive(Clone, Debug)]
pub struct Store {
    /// One connection: SQLite has one writer, and its own lock is polled and unfair, so writers queue here instead.
    writer: SqlitePool,
    readers: SqlitePool,
}

/// Why the database could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The file cannot be opened or read.
    #[error("cannot open the database {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: sqlx::Error,
    },
    /// Another program's.
    #[error(
        "the database {path} is a GPUStack 0.7's and is left untouched; name another file, or none, with --database-url"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The copy that is made before an upgrade failed; nothing was changed.
    #[error("cannot copy the database {path} before bringing it up to date: {source}; is there room beside it?")]
    Copy {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: sqlx::Error,
    },
    /// Written by a newer release.
    #[error(
        "the database {path} was written by a newer gpustack; start that version, or restore the copy made before its upgrade"
    )]
    Newer {
        /// The file.
        path: PathBuf,
    },
    /// A migration failed; it was rolled back as a whole.
    #[error("cannot bring the database {path} up to date: {source}")]
    Migrate {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: MigrateError,
    },
}

impl Store {
    /// Opens the file, makes it when it is not there, and brings its tables up to date. Each migration runs once, in
    /// one transaction with its version.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // a joined worker must survive a power cut too; writes are batched, so the cost is small
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(ACQUIRE_TIMEOUT)
            .pragma("cache_size", CACHE_SIZE_KIB)
            .foreign_keys(true);
        let open_failed = |source| OpenError::Open { path: path.to_owned(), source };
        upgrade::make_private(path).map_err(|error| open_failed(sqlx::Error::Io(error)))?;
        upgrade::refuse_foreign(path).await?;
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options.clone())
            .await
            .map_err(open_failed)?;
        let newest = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
        if let Some(copy) = upgrade::copy_before(&writer, path, newest).await? {
            tracing::info!(copy = %copy.display(), "the database is brought up to date; it was copied first");
        }
        MIGRATIONS.run(&writer).await.map_err(|source| match source {
            MigrateError::VersionMissing(_) => OpenError::Newer { path: path.to_owned() },
            source => OpenError::Migrate { path: path.to_owned(), source },
        })?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options.read_only(true))
            .await
            .map_err(open_failed)?;
        Ok(Self { writer, readers })
    }

    /// For statements that change something.
    pub(crate) fn writer(&self) -> &SqlitePool {
        &self.writer
    }

    /// For statements that only read.
    pub(crate) fn readers(&self) -> &SqlitePool {
        &self.readers
    }

    /// A value of `settings`.
    pub async fn setting(&self, name: &str) -> sqlx::Result<Option<String>> {
        sqlx::query_scalar("SELECT value FROM settings WHERE name = $1").bind(name).fetch_optional(self.readers()).await
    }

    /// The value of `settings` that is there, else `value`, which is then there.
    pub async fn setting_or_insert(&self, name: &str, value: &str) -> sqlx::Result<String> {
        sqlx::query("INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
            .bind(name)
            .bind(value)
            .execute(self.writer())
            .await?;
        sqlx::query_scalar("SELECT value FROM settings WHERE name = $1").bind(name).fetch_one(self.writer()).await
    }

    /// Writes everything to the main file and closes it.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Milliseconds since 1970, by this host's clock.
pub fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn opening_twice_runs_each_migration_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gpustack.db");
        for _ in 0..2 {
            let store = Store::open(&path).await.unwrap();
            let applied: i64 =
                sqlx::query_scalar("SELECT COUNT(*) FROM _sqlx_migrations").fetch_one(store.readers()).await.unwrap();
            assert_eq!(usize::try_from(applied).unwrap(), MIGRATIONS.iter().count());
            store.close().await;
        }
    }

    #[tokio::test]
    async fn a_newer_database_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gpustack.db");
        let store = Store::open(&path).await.unwrap();
        sqlx::query("INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (99990101, 'later', TRUE, x'00', 0)")
            .execute(store.writer())
            .await
            .unwrap();
        store.close().await;
        assert!(matches!(Store::open(&path).await, Err(OpenError::Newer { .. })));
    }
}
