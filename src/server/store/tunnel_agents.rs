//! Tunnel agents' rows, each with what its agent told last.

use super::Store;
use api::{TunnelAgentId, TunnelAgentUuid, TunnelReport};
use sqlx::sqlite::SqliteConnection;
use sqlx::{FromRow, QueryBuilder, Sqlite};
use uuid::Uuid;

/// Reports in one statement: few are due at a time, and each may be large.
pub const TUNNEL_REPORTS_A_STATEMENT: usize = 50;

/// What is decided about a tunnel agent, as opposed to what it tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelAgentRow {
    /// The row; 0 before it has one.
    pub id: TunnelAgentId,
    /// Who it is.
    pub uuid: TunnelAgentUuid,
    /// Unique.
    pub name: String,
    /// The host's name.
    pub hostname: String,
    /// The agent program's version.
    pub version: String,
    /// Its key, by which its links are known.
    pub link_key: link::PublicKey,
    /// When it joined, in milliseconds since 1970.
    pub created_ms: i64,
}

/// A row with what was told last.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTunnelAgent {
    /// What is decided.
    pub row: TunnelAgentRow,
    /// The last report, and when it came, in milliseconds since 1970 by the server's clock.
    pub told: Option<(TunnelReport, i64)>,
}

/// What a tunnel agent told last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTunnelReport {
    /// The agent.
    pub id: TunnelAgentId,
    /// As JSON.
    pub report: String,
    /// When it came, in milliseconds since 1970 by the server's clock.
    pub reported_ms: i64,
}

#[derive(FromRow)]
struct Columns {
    id: i64,
    uuid: String,
    name: String,
    hostname: String,
    version: String,
    link_key: String,
    created_ms: i64,
    report: Option<String>,
    reported_ms: Option<i64>,
}

impl Columns {
    fn read(self) -> Result<StoredTunnelAgent, sqlx::Error> {
        let decode = |error: Box<dyn std::error::Error + Send + Sync>| sqlx::Error::Decode(error);
        let told = self.report.zip(self.reported_ms).and_then(|(report, reported_ms)| {
            // one that cannot be read must not keep the server from starting; the agent reports again anyway
            let report = serde_json::from_str(&report).inspect_err(|error| {
                tracing::warn!(agent = self.name, %error, "a tunnel agent's stored report cannot be read and is left out");
            });
            Some((report.ok()?, reported_ms))
        });
        let row = TunnelAgentRow {
            id: TunnelAgentId(self.id),
            uuid: TunnelAgentUuid(Uuid::parse_str(&self.uuid).map_err(|error| decode(error.into()))?),
            name: self.name,
            hostname: self.hostname,
            version: self.version,
            link_key: self.link_key.parse().map_err(|error: link::NoPublicKey| decode(error.into()))?,
            created_ms: self.created_ms,
        };
        Ok(StoredTunnelAgent { row, told })
    }
}

impl Store {
    /// All tunnel agents.
    pub async fn load_tunnel_agents(&self) -> Result<Vec<StoredTunnelAgent>, sqlx::Error> {
        let rows: Vec<Columns> =
            sqlx::query_as("SELECT * FROM tunnel_agents ORDER BY id").fetch_all(self.readers()).await?;
        rows.into_iter().map(Columns::read).collect()
    }

    /// Writes a row, a new one when its id is 0, and deletes the one whose name it takes; all or nothing. Gives the row's
    /// id.
    pub async fn write_tunnel_agent(
        &self,
        row: &TunnelAgentRow,
        displaced: Option<TunnelAgentId>,
    ) -> Result<TunnelAgentId, sqlx::Error> {
        let mut transaction = self.writer().begin().await?;
        if let Some(displaced) = displaced {
            delete(&mut transaction, displaced).await?;
        }
        let id =
            if row.id.0 == 0 { insert(&mut transaction, row).await? } else { update(&mut transaction, row).await? };
        transaction.commit().await?;
        Ok(id)
    }

    /// Deletes a row.
    pub async fn delete_tunnel_agent(&self, id: TunnelAgentId) -> Result<(), sqlx::Error> {
        let mut connection = self.writer().acquire().await?;
        delete(&mut connection, id).await
    }

    /// Writes up to [`TUNNEL_REPORTS_A_STATEMENT`] reports in one statement. Those of agents that are gone are left out.
    pub async fn write_tunnel_reports(&self, reports: &[StoredTunnelReport]) -> Result<(), sqlx::Error> {
        if reports.is_empty() {
            return Ok(());
        }
        let mut query = QueryBuilder::<Sqlite>::new("WITH told (id, report, reported_ms) AS (");
        query.push_values(reports, |mut row, told| {
            // the casts tell PostgreSQL the parameters' types
            row.push("CAST(").push_bind_unseparated(told.id.0).push_unseparated(" AS BIGINT)");
            row.push("CAST(").push_bind_unseparated(told.report.as_str()).push_unseparated(" AS TEXT)");
            row.push("CAST(").push_bind_unseparated(told.reported_ms).push_unseparated(" AS BIGINT)");
        });
        query.push(
            ") UPDATE tunnel_agents SET report = told.report, reported_ms = told.reported_ms FROM told \
             WHERE tunnel_agents.id = told.id",
        );
        query.build().persistent(false).execute(self.writer()).await?;
        Ok(())
    }
}

async fn insert(connection: &mut SqliteConnection, row: &TunnelAgentRow) -> Result<TunnelAgentId, sqlx::Error> {
    let id = sqlx::query_scalar(
        "INSERT INTO tunnel_agents (uuid, name, hostname, version, link_key, created_ms) \
         VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
    )
    .bind(row.uuid.to_string())
    .bind(&row.name)
    .bind(&row.hostname)
    .bind(&row.version)
    .bind(row.link_key.to_string())
    .bind(row.created_ms)
    .fetch_one(connection)
    .await?;
    Ok(TunnelAgentId(id))
}

async fn update(connection: &mut SqliteConnection, row: &TunnelAgentRow) -> Result<TunnelAgentId, sqlx::Error> {
    sqlx::query(
        "UPDATE tunnel_agents SET uuid = $2, name = $3, hostname = $4, version = $5, link_key = $6 WHERE id = $1",
    )
    .bind(row.id.0)
    .bind(row.uuid.to_string())
    .bind(&row.name)
    .bind(&row.hostname)
    .bind(&row.version)
    .bind(row.link_key.to_string())
    .execute(connection)
    .await?;
    Ok(row.id)
}

async fn delete(connection: &mut SqliteConnection, id: TunnelAgentId) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM tunnel_agents WHERE id = $1").bind(id.0).execute(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, uuid: u128) -> TunnelAgentRow {
        TunnelAgentRow {
            id: TunnelAgentId(0),
            uuid: TunnelAgentUuid(Uuid::from_u128(uuid)),
            name: name.to_owned(),
            hostname: "host".to_owned(),
            version: "1".to_owned(),
            link_key: link::PublicKey::from_bytes([7; 32]),
            created_ms: 5,
        }
    }

    #[tokio::test]
    async fn an_agent_is_read_as_it_was_written_and_takes_a_displaced_ones_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("gpustack.db")).await.unwrap();
        let id = store.write_tunnel_agent(&row("a", 1), None).await.unwrap();
        let report = TunnelReport { refused_config: Some("no".to_owned()), ..TunnelReport::default() };
        let stored = StoredTunnelReport { id, report: serde_json::to_string(&report).unwrap(), reported_ms: 9 };
        let of_nobody = StoredTunnelReport { id: TunnelAgentId(99), ..stored.clone() };
        store.write_tunnel_reports(&[stored, of_nobody]).await.unwrap();
        let expected = TunnelAgentRow { id, ..row("a", 1) };
        let loaded = store.load_tunnel_agents().await.unwrap();
        assert_eq!(loaded, [StoredTunnelAgent { row: expected, told: Some((report, 9)) }]);

        let new = store.write_tunnel_agent(&row("a", 2), Some(id)).await.unwrap();
        assert_ne!(new, id);
        let loaded = store.load_tunnel_agents().await.unwrap();
        assert_eq!(loaded, [StoredTunnelAgent { row: TunnelAgentRow { id: new, ..row("a", 2) }, told: None }]);
    }
}
