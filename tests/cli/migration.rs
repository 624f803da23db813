//! A server that is killed while it makes its tables.

use crate::process::{Running, gpustack};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The kernel ends a process with it whose file would grow beyond the limit (setrlimit(2), `RLIMIT_FSIZE`): at once and
/// in the middle of a write, as SIGKILL does, but each time at the same point.
const SIGXFSZ: i32 = 25;
/// What the shell's `ulimit -f` counts in (POSIX).
const BLOCK_BYTES: u64 = 512;
/// Not a divisor of a database page with its head, so that some limits fall into a page.
const STEP_BLOCKS: u64 = 19;
const DATABASE: &str = "gpustack.db";
const LOG: &str = "gpustack.db-wal";
const LOG_HEAD_BYTES: usize = 32;
const PAGE_HEAD_BYTES: usize = 24;
/// Larger than any file of a server that has just started.
const MOST_BLOCKS: u64 = 4096;

/// Whether the server was killed before it could say that it is ready.
fn is_killed_at(blocks: u64, data_dir: &Path) -> bool {
    let server = gpustack(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -c 0; ulimit -f "$1"; shift; exec "$@""#, "sh", &blocks.to_string()]);
    command.arg(server.get_program());
    command.args(["start", "--host", "127.0.0.1", "--port", "0", "--disable-worker", "--data-dir"]).arg(data_dir);
    for (name, value) in server.get_envs() {
        assert_eq!(value, None);
        command.env_remove(name);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let is_ready = said.into_iter().any(|line| line.contains("Join token"));
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(is_ready || status.signal() == Some(SIGXFSZ), "{status} with files of {blocks} blocks at most");
    !is_ready
}

/// Whether a killed server left a migration half written: none is complete, though the table that counts them is, and
/// the log ends with a transaction that was not committed. Looks at a copy, for a look repairs.
async fn is_half_migrated(data_dir: &Path) -> bool {
    let copy = tempfile::tempdir().unwrap();
    for name in [DATABASE, LOG] {
        if data_dir.join(name).exists() {
            std::fs::copy(data_dir.join(name), copy.path().join(name)).unwrap();
        }
    }
    let log = std::fs::read(copy.path().join(LOG)).unwrap_or_default();
    let database = open(&copy.path().join(DATABASE)).await;
    let complete = sqlx::query_scalar::<_, i64>("SELECT COUNT(*) FROM _sqlx_migrations").fetch_one(&database).await;
    database.close().await;
    complete.is_ok_and(|count| count == 0) && ends_uncommitted(&log)
}

/// SQLite's file format, section 4.1: the page's size is in the log's head; each page has a head of its own, in which the
/// last page of a transaction has the database's size, and others have 0.
fn ends_uncommitted(log: &[u8]) -> bool {
    let Some((head, pages)) = log.split_at_checked(LOG_HEAD_BYTES) else { return false };
    let page_bytes = u32::from_be_bytes(head[8..12].try_into().unwrap());
    let full = PAGE_HEAD_BYTES + usize::try_from(page_bytes).unwrap();
    pages.chunks(full).last().is_some_and(|page| page.len() < full || page[4..8] == [0; 4])
}

/// How many there are.
fn migrations() -> usize {
    std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server/store/sqlite")).unwrap().count()
}

async fn open(path: &Path) -> SqlitePool {
    SqlitePool::connect_with(SqliteConnectOptions::new().filename(path)).await.unwrap()
}

#[tokio::test]
async fn a_server_that_was_killed_at_any_point_of_a_migration_starts_again() {
    let mut killed_in_a_migration = 0;
    let mut was_ever_ready = false;
    for blocks in (1..MOST_BLOCKS).step_by(STEP_BLOCKS.try_into().unwrap()) {
        let dir = tempfile::tempdir().unwrap();
        if !is_killed_at(blocks, dir.path()) {
            was_ever_ready = true;
            break;
        }
        killed_in_a_migration += u32::from(dir.path().join(DATABASE).exists() && is_half_migrated(dir.path()).await);

        let mut server = Running::server(dir.path(), &["--disable-worker"]);
        assert_eq!(server.stop().code(), Some(0));
        let database = open(&dir.path().join(DATABASE)).await;
        let sound: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&database).await.unwrap();
        let applied: Vec<bool> =
            sqlx::query_scalar("SELECT success FROM _sqlx_migrations").fetch_all(&database).await.unwrap();
        let users: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM users").fetch_one(&database).await.unwrap();
        assert_eq!(
            (sound.as_str(), applied, users),
            ("ok", vec![true; migrations()], 1),
            "after files of {} bytes",
            blocks * BLOCK_BYTES
        );
        database.close().await;
    }
    assert!(was_ever_ready, "a server is always killed");
    assert!(killed_in_a_migration > 2, "{killed_in_a_migration} limits fell into the migration");
}
