//! Workers' rows and their events. Rows are written one by one when something about them is decided, heartbeats,
//! readings and events in batches.

use super::Store;
use api::{Maintenance, SystemReserved, WorkerEvent, WorkerId, WorkerStatus, WorkerUuid};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteConnection;
use sqlx::{FromRow, QueryBuilder, Sqlite};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Rows in one statement: far below SQLite's 32,766 parameters, and PostgreSQL's 65,535, and no longer than a moment's
/// work for the one writer.
pub const ROWS_A_STATEMENT: usize = 2_000;
/// Events kept of each worker.
pub const EVENTS_KEPT: u32 = 200;

/// What is decided about a worker, as opposed to what is observed of it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerRow {
    /// The row.
    pub id: WorkerId,
    /// Who it is.
    pub uuid: WorkerUuid,
    /// Unique.
    pub name: String,
    /// The host's name.
    pub hostname: String,
    /// Where the server probes it.
    pub ip: String,
    /// Where the server probes it.
    pub port: u16,
    /// Free text pairs.
    pub labels: BTreeMap<String, String>,
    /// Kept free for the system.
    pub system_reserved: Option<SystemReserved>,
    /// Out of service by an operator's wish.
    pub maintenance: Maintenance,
    /// The worker program's version.
    pub version: Option<String>,
    /// Who may take over this row.
    pub replace_allowed_for: Option<WorkerUuid>,
    /// Its key, by which its links are known; None for a GPUStack 0.7 worker, which has none.
    pub link_key: Option<link::PublicKey>,
    /// When it joined, in milliseconds since 1970.
    pub created_ms: i64,
    /// When something was decided about it last, likewise.
    pub updated_ms: i64,
}

/// A row with what was last observed.
#[derive(Clone, Debug)]
pub struct StoredWorker {
    /// What is decided.
    pub row: WorkerRow,
    /// The last report.
    pub status: WorkerStatus,
    /// The last heartbeat, in milliseconds since 1970 by the server's clock.
    pub heartbeat_ms: Option<i64>,
    /// How many devices it has had.
    pub devices_expected: u32,
}

/// A worker's last sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredHeartbeat {
    /// The worker.
    pub id: WorkerId,
    /// In milliseconds since 1970, by the server's clock.
    pub heartbeat_ms: i64,
}

/// A worker's last report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReport {
    /// The worker.
    pub id: WorkerId,
    /// As JSON.
    pub status: String,
    /// How many devices it has had.
    pub devices_expected: u32,
}

/// One change to the table of workers.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange {
    /// A new row; its id is not known yet.
    Insert(WorkerRow),
    /// All that is decided about a row is written anew.
    Update(WorkerRow),
    /// The row goes, and its events with it.
    Delete(WorkerId),
}

#[derive(FromRow)]
struct WorkerColumns {
    id: i64,
    worker_uuid: String,
    name: String,
    hostname: String,
    ip: String,
    port: i64,
    labels: String,
    system_reserved: Option<String>,
    maintenance: String,
    version: Option<String>,
    status: Option<String>,
    heartbeat_ms: Option<i64>,
    devices_expected: Option<i64>,
    replace_allowed_for: Option<String>,
    created_ms: i64,
    updated_ms: i64,
    link_key: Option<String>,
}

impl WorkerColumns {
    fn read(self) -> Result<StoredWorker, sqlx::Error> {
        let uuid = read_uuid(&self.worker_uuid)?;
        let replace_allowed_for = self.replace_allowed_for.as_deref().map(read_uuid).transpose()?;
        let row = WorkerRow {
            id: WorkerId(self.id),
            uuid,
            hostname: self.hostname,
            ip: self.ip,
            port: u16::try_from(self.port).map_err(|error| sqlx::Error::Decode(error.into()))?,
            labels: read_json(&self.name, "labels", &self.labels),
            system_reserved: self.system_reserved.map(|text| read_json(&self.name, "system_reserved", &text)),
            maintenance: read_json(&self.name, "maintenance", &self.maintenance),
            name: self.name,
            version: self.version,
            replace_allowed_for,
            // one that cannot be read is as good as none: the worker shows the join token again
            link_key: self.link_key.as_deref().and_then(|key| key.parse().ok()),
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
        };
        Ok(StoredWorker {
            status: self.status.map(|text| read_json(&row.name, "status", &text)).unwrap_or_default(),
            row,
            heartbeat_ms: self.heartbeat_ms,
            devices_expected: self.devices_expected.and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
        })
    }
}

fn read_uuid(text: &str) -> Result<WorkerUuid, sqlx::Error> {
    Uuid::parse_str(text).map(WorkerUuid).map_err(|error| sqlx::Error::Decode(error.into()))
}

/// One unreadable column must not keep the whole fleet from being loaded; the worker reports again anyway.
fn read_json<T: DeserializeOwned + Default>(worker: &str, column: &str, text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|error| {
        tracing::warn!(worker, column, %error, "a worker's stored column cannot be read and is taken as empty");
        T::default()
    })
}

fn write_json<T: Serialize>(value: &T) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

impl Store {
    /// All workers.
    pub async fn load_workers(&self) -> Result<Vec<StoredWorker>, sqlx::Error> {
        let rows: Vec<WorkerColumns> = sqlx::query_as(
            "SELECT workers.*, heartbeat_ms, status, devices_expected FROM workers \
             LEFT JOIN worker_heartbeats ON worker_heartbeats.worker_id = workers.id \
             LEFT JOIN worker_reports ON worker_reports.worker_id = workers.id ORDER BY workers.id",
        )
        .fetch_all(self.readers())
        .await?;
        rows.into_iter().map(WorkerColumns::read).collect()
    }

    /// Makes all changes or none, in one transaction. Gives, for each change, the row's id.
    pub async fn change_workers(&self, changes: &[RowChange]) -> Result<Vec<WorkerId>, sqlx::Error> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let mut transaction = self.writer().begin().await?;
        let mut ids = Vec::with_capacity(changes.len());
        for change in changes {
            ids.push(match change {
                RowChange::Insert(row) => insert(&mut transaction, row).await?,
                RowChange::Update(row) => update(&mut transaction, row).await?,
                RowChange::Delete(id) => delete(&mut transaction, *id).await?,
            });
        }
        transaction.commit().await?;
        Ok(ids)
    }

    /// Writes up to [`ROWS_A_STATEMENT`] heartbeats in one statement. Workers that are gone are left out.
    pub async fn write_heartbeats(&self, heartbeats: &[StoredHeartbeat]) -> Result<(), sqlx::Error> {
        if heartbeats.is_empty() {
            return Ok(());
        }
        let mut query = QueryBuilder::<Sqlite>::new("WITH seen (worker_id, heartbeat_ms) AS (");
        query.push_values(heartbeats, |mut row, seen| {
            // the casts tell PostgreSQL the parameters' types
            row.push("CAST(").push_bind_unseparated(seen.id.0).push_unseparated(" AS BIGINT)");
            row.push("CAST(").push_bind_unseparated(seen.heartbeat_ms).push_unseparated(" AS BIGINT)");
        });
        query.push(
            ") INSERT INTO worker_heartbeats (worker_id, heartbeat_ms) SELECT worker_id, heartbeat_ms FROM seen \
             WHERE EXISTS (SELECT 1 FROM workers WHERE workers.id = seen.worker_id) \
             ON CONFLICT (worker_id) DO UPDATE SET heartbeat_ms = excluded.heartbeat_ms",
        );
        // its text depends on the number of rows: not worth a place among the prepared statements
        query.build().persistent(false).execute(self.writer()).await?;
        Ok(())
    }

    /// Writes up to [`ROWS_A_STATEMENT`] reports in one statement. Workers that are gone are left out.
    pub async fn write_reports(&self, reports: &[StoredReport]) -> Result<(), sqlx::Error> {
        if reports.is_empty() {
            return Ok(());
        }
        let mut query = QueryBuilder::<Sqlite>::new("WITH seen (worker_id, status, devices_expected) AS (");
        query.push_values(reports, |mut row, seen| {
            row.push("CAST(").push_bind_unseparated(seen.id.0).push_unseparated(" AS BIGINT)");
            row.push("CAST(").push_bind_unseparated(seen.status.as_str()).push_unseparated(" AS TEXT)");
            row.push("CAST(").push_bind_unseparated(i64::from(seen.devices_expected)).push_unseparated(" AS BIGINT)");
        });
        query.push(
            ") INSERT INTO worker_reports (worker_id, status, devices_expected) \
             SELECT worker_id, status, devices_expected FROM seen \
             WHERE EXISTS (SELECT 1 FROM workers WHERE workers.id = seen.worker_id) \
             ON CONFLICT (worker_id) DO UPDATE SET status = excluded.status, devices_expected = excluded.devices_expected",
        );
        query.build().persistent(false).execute(self.writer()).await?;
        Ok(())
    }

    /// Writes up to [`ROWS_A_STATEMENT`] events in one statement. Events of workers that are gone are left out.
    pub async fn write_worker_events(&self, events: &[(WorkerId, WorkerEvent)]) -> Result<(), sqlx::Error> {
        if events.is_empty() {
            return Ok(());
        }
        let texts = events.iter().map(|(_, event)| write_json(&event.change)).collect::<Result<Vec<_>, _>>()?;
        let mut query = QueryBuilder::<Sqlite>::new("WITH fresh (worker_id, at_ms, event) AS (");
        query.push_values(events.iter().zip(&texts), |mut row, ((id, event), text)| {
            row.push("CAST(").push_bind_unseparated(id.0).push_unseparated(" AS BIGINT)");
            row.push("CAST(").push_bind_unseparated(event.at_ms).push_unseparated(" AS BIGINT)");
            row.push("CAST(").push_bind_unseparated(text.as_str()).push_unseparated(" AS TEXT)");
        });
        query.push(
            ") INSERT INTO worker_events (worker_id, at_ms, event) SELECT worker_id, at_ms, event FROM fresh \
             WHERE EXISTS (SELECT 1 FROM workers WHERE workers.id = fresh.worker_id)",
        );
        query.build().persistent(false).execute(self.writer()).await?;
        Ok(())
    }

    /// Removes all but the newest [`EVENTS_KEPT`] events of a worker.
    pub async fn trim_worker_events(&self, id: WorkerId) -> Result<(), sqlx::Error> {
        sqlx::query(
            "DELETE FROM worker_events WHERE worker_id = $1 AND id <= (SELECT id FROM worker_events \
             WHERE worker_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)",
        )
        .bind(id.0)
        .bind(EVENTS_KEPT)
        .execute(self.writer())
        .await?;
        Ok(())
    }

    /// A worker's events, newest first.
    pub async fn worker_events(&self, id: WorkerId) -> Result<Vec<WorkerEvent>, sqlx::Error> {
        let rows: Vec<(i64, String)> =
            sqlx::query_as("SELECT at_ms, event FROM worker_events WHERE worker_id = $1 ORDER BY id DESC LIMIT $2")
                .bind(id.0)
                .bind(EVENTS_KEPT)
                .fetch_all(self.readers())
                .await?;
        Ok(rows
            .into_iter()
            .filter_map(|(at_ms, event)| match serde_json::from_str(&event) {
                Ok(change) => Some(WorkerEvent { at_ms, change }),
                Err(error) => {
                    tracing::warn!(worker = id.0, %error, "a stored event cannot be read and is left out");
                    None
                }
            })
            .collect())
    }
}

async fn insert(connection: &mut SqliteConnection, row: &WorkerRow) -> Result<WorkerId, sqlx::Error> {
    let id = sqlx::query_scalar(
        "INSERT INTO workers (worker_uuid, name, hostname, ip, port, labels, system_reserved, maintenance, version, \
         replace_allowed_for, created_ms, updated_ms, link_key) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING id",
    )
    .bind(row.uuid.to_string())
    .bind(&row.name)
    .bind(&row.hostname)
    .bind(&row.ip)
    .bind(i64::from(row.port))
    .bind(write_json(&row.labels)?)
    .bind(row.system_reserved.as_ref().map(write_json).transpose()?)
    .bind(write_json(&row.maintenance)?)
    .bind(&row.version)
    .bind(row.replace_allowed_for.map(|uuid| uuid.to_string()))
    .bind(row.created_ms)
    .bind(row.updated_ms)
    .bind(row.link_key.map(|key| key.to_string()))
    .fetch_one(connection)
    .await?;
    Ok(WorkerId(id))
}

async fn update(connection: &mut SqliteConnection, row: &WorkerRow) -> Result<WorkerId, sqlx::Error> {
    sqlx::query(
        "UPDATE workers SET worker_uuid = $2, name = $3, hostname = $4, ip = $5, port = $6, labels = $7, \
         system_reserved = $8, maintenance = $9, version = $10, replace_allowed_for = $11, updated_ms = $12, \
         link_key = $13 WHERE id = $1",
    )
    .bind(row.id.0)
    .bind(row.uuid.to_string())
    .bind(&row.name)
    .bind(&row.hostname)
    .bind(&row.ip)
    .bind(i64::from(row.port))
    .bind(write_json(&row.labels)?)
    .bind(row.system_reserved.as_ref().map(write_json).transpose()?)
    .bind(write_json(&row.maintenance)?)
    .bind(&row.version)
    .bind(row.replace_allowed_for.map(|uuid| uuid.to_string()))
    .bind(row.updated_ms)
    .bind(row.link_key.map(|key| key.to_string()))
    .execute(connection)
    .await?;
    Ok(row.id)
}

async fn delete(connection: &mut SqliteConnection, id: WorkerId) -> Result<WorkerId, sqlx::Error> {
    sqlx::query("DELETE FROM workers WHERE id = $1").bind(id.0).execute(connection).await?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::WorkerEventKind;

    async fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("gpustack.db")).await.unwrap();
        (dir, store)
    }

    fn row(name: &str) -> WorkerRow {
        WorkerRow {
            id: WorkerId(0),
            uuid: WorkerUuid(Uuid::new_v4()),
            name: name.into(),
            hostname: "host".into(),
            ip: "10.0.0.1".into(),
            port: 10150,
            labels: BTreeMap::from([("os".into(), "linux".into())]),
            system_reserved: Some(SystemReserved { ram: 1, vram: 2 }),
            maintenance: Maintenance::default(),
            version: Some("1.0".into()),
            replace_allowed_for: None,
            link_key: None,
            created_ms: 1,
            updated_ms: 2,
        }
    }

    async fn inserted(store: &Store, name: &str) -> WorkerRow {
        let mut row = WorkerRow { ..row(name) };
        row.id = store.change_workers(&[RowChange::Insert(row.clone())]).await.unwrap()[0];
        row
    }

    #[tokio::test]
    async fn a_row_comes_back_as_it_was_written() {
        let (_dir, store) = store().await;
        let mut written = row("a");
        written.id = store.change_workers(&[RowChange::Insert(written.clone())]).await.unwrap()[0];
        written.replace_allowed_for = Some(WorkerUuid(Uuid::new_v4()));
        written.link_key = Some(link::PublicKey::from_bytes([9; 32]));
        written.name = "b".into();
        store.change_workers(&[RowChange::Update(written.clone())]).await.unwrap();
        let read = store.load_workers().await.unwrap();
        assert_eq!(read.into_iter().map(|worker| worker.row).collect::<Vec<_>>(), vec![written]);
    }

    #[tokio::test]
    async fn changes_are_made_all_or_none() {
        let (_dir, store) = store().await;
        let twice = [RowChange::Insert(row("a")), RowChange::Insert(row("a"))];
        assert!(store.change_workers(&twice).await.is_err());
        assert!(store.load_workers().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn an_id_is_never_given_again() {
        let (_dir, store) = store().await;
        let first = inserted(&store, "a").await.id;
        store.change_workers(&[RowChange::Delete(first)]).await.unwrap();
        assert!(inserted(&store, "a").await.id > first);
    }

    #[tokio::test]
    async fn one_statement_writes_what_was_observed_of_many_workers() {
        let (_dir, store) = store().await;
        let ids = [inserted(&store, "a").await.id, inserted(&store, "b").await.id];
        let beat = |id, heartbeat_ms| StoredHeartbeat { id, heartbeat_ms };
        let report = |id, stale_s: u64| StoredReport {
            id,
            status: format!(r#"{{"devices_stale_s":{stale_s}}}"#),
            devices_expected: 8,
        };
        let gone = WorkerId(99);
        store.write_heartbeats(&[beat(ids[0], 4), beat(ids[1], 6), beat(gone, 7)]).await.unwrap();
        store.write_heartbeats(&[beat(ids[0], 5)]).await.unwrap();
        store.write_reports(&[report(ids[0], 8), report(gone, 1)]).await.unwrap();
        store.write_reports(&[report(ids[0], 9)]).await.unwrap();
        let read = store.load_workers().await.unwrap();
        let facts: Vec<_> = read
            .iter()
            .map(|worker| (worker.heartbeat_ms, worker.status.devices_stale_s, worker.devices_expected))
            .collect();
        assert_eq!(facts, [(Some(5), Some(9), 8), (Some(6), None, 0)]);
        store.change_workers(&[RowChange::Delete(ids[0])]).await.unwrap();
        let left: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM worker_reports").fetch_one(store.readers()).await.unwrap();
        assert_eq!(left, 0);
    }

    #[tokio::test]
    async fn full_batches_fit_into_one_statement() {
        let (_dir, store) = store().await;
        let id = inserted(&store, "a").await.id;
        store.write_heartbeats(&vec![StoredHeartbeat { id, heartbeat_ms: 1 }; ROWS_A_STATEMENT]).await.unwrap();
        let report = StoredReport { id, status: "{}".to_owned(), devices_expected: 0 };
        store.write_reports(&vec![report; ROWS_A_STATEMENT]).await.unwrap();
    }

    #[tokio::test]
    async fn only_the_newest_events_are_kept_and_gone_workers_have_none() {
        let (_dir, store) = store().await;
        let id = inserted(&store, "a").await.id;
        let event = |worker, at_ms| (worker, WorkerEvent { at_ms, change: WorkerEventKind::Joined {} });
        let mut events: Vec<_> = (0..i64::from(EVENTS_KEPT) + 5).map(|at_ms| event(id, at_ms)).collect();
        events.push(event(WorkerId(99), 0));
        store.write_worker_events(&events).await.unwrap();
        store.trim_worker_events(id).await.unwrap();
        let total: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM worker_events").fetch_one(store.readers()).await.unwrap();
        let read = store.worker_events(id).await.unwrap();
        assert_eq!((total, read.len(), read[0].at_ms), (200, 200, 204));
    }
}
