//! What is known of one tunnel agent. Facts only.

use crate::server::registry::time::{Moment, Monotonic};
use crate::server::store::tunnel_agents::{StoredTunnelAgent, StoredTunnelReport, TunnelAgentRow};
use crate::ssh_authority::RevokedKeys;
use api::{TunnelAgent, TunnelReport};
use std::sync::Arc;
use std::time::Duration;

/// What an agent tells moves all the time, as its counters do, and reaches the database no more often than this.
const SAVE_INTERVAL: Duration = Duration::from_mins(1);

/// What is known of one tunnel agent.
#[derive(Clone, Debug)]
pub struct AgentFacts {
    /// What was decided about it.
    pub row: TunnelAgentRow,
    /// Its link.
    pub standing: AgentStanding,
    /// What it told last.
    pub told: Option<Told>,
    /// Whether that is not in the database.
    is_unsaved: bool,
    saved: Option<Monotonic>,
}

/// Whether an agent's link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentStanding {
    /// It has not come since then, when this process began to know it.
    Awaited {
        /// When.
        since: Monotonic,
    },
    /// It stands.
    Connected {
        /// Since when.
        since: Monotonic,
    },
    /// It stands no more.
    Gone {
        /// Since when.
        since: Monotonic,
    },
}

/// A report, and when it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The report.
    pub report: Arc<TunnelReport>,
    /// When it was received. Ages in the report are counted back from then.
    pub at: Monotonic,
}

impl AgentFacts {
    /// An agent that has just joined.
    pub fn new(row: TunnelAgentRow, now: Monotonic) -> Self {
        Self { row, standing: AgentStanding::Awaited { since: now }, told: None, is_unsaved: false, saved: None }
    }

    /// An agent that the database knows, at the server's start.
    pub fn stored(stored: StoredTunnelAgent, moment: &Moment) -> Self {
        let told = stored.told.map(|(report, reported_ms)| Told {
            report: Arc::new(report),
            at: Monotonic::from_ms(reported_ms.saturating_sub(moment.wall_offset_ms)),
        });
        Self { told, ..Self::new(stored.row, moment.now) }
    }

    /// Whether its link stands.
    pub fn is_connected(&self) -> bool {
        matches!(self.standing, AgentStanding::Connected { .. })
    }

    /// Since when it is not connected; None when it is.
    pub fn gone_since(&self) -> Option<Monotonic> {
        match self.standing {
            AgentStanding::Connected { .. } => None,
            AgentStanding::Awaited { since } | AgentStanding::Gone { since } => Some(since),
        }
    }

    /// It told what it sees.
    pub fn hear(&mut self, report: TunnelReport, now: Monotonic) {
        self.told = Some(Told { report: Arc::new(report), at: now });
        self.is_unsaved = true;
    }

    /// What is to be written now; all that is not written when the server ends.
    pub fn unsaved(&self, moment: &Moment, is_end: bool) -> Option<Unsaved> {
        let is_due = is_end || self.saved.is_none_or(|saved| moment.now.since(saved) >= SAVE_INTERVAL);
        let told = self.told.as_ref().filter(|_| self.is_unsaved && is_due)?;
        let report = serde_json::to_string(&*told.report).ok()?;
        let row = StoredTunnelReport { id: self.row.id, report, reported_ms: moment.wall_ms(told.at) };
        Some(Unsaved { row, told: Arc::clone(&told.report) })
    }

    /// This report is in the database. One that came meanwhile is not.
    pub fn note_saved(&mut self, written: &Arc<TunnelReport>, now: Monotonic) {
        self.saved = Some(now);
        self.is_unsaved = self.told.as_ref().is_some_and(|told| !Arc::ptr_eq(&told.report, written));
    }
}

/// A report that has to be written.
#[derive(Debug)]
pub struct Unsaved {
    /// As it is written.
    pub row: StoredTunnelReport,
    /// To tell whether a newer one has come.
    pub told: Arc<TunnelReport>,
}

/// The agent as it leaves the server. What was told last stays as it was told: with the moment at which it came, and with
/// whether its agent is still there, it says by itself how old it is.
pub fn view(facts: &AgentFacts, moment: &Moment, revoked: &RevokedKeys) -> TunnelAgent {
    let row = &facts.row;
    let since = match facts.standing {
        AgentStanding::Awaited { .. } => None,
        AgentStanding::Connected { since } | AgentStanding::Gone { since } => Some(since),
    };
    TunnelAgent {
        id: row.id,
        name: row.name.clone(),
        hostname: row.hostname.clone(),
        version: row.version.clone(),
        is_connected: facts.is_connected(),
        since_ms: since.map(|since| moment.wall_ms(since)),
        reported_ms: facts.told.as_ref().map(|told| moment.wall_ms(told.at)),
        report: facts.told.as_ref().map(|told| marked(&told.report, revoked)).unwrap_or_default(),
        created_ms: row.created_ms,
    }
}

/// What an agent told, with what the authority knows of its keys.
pub fn marked(report: &TunnelReport, revoked: &RevokedKeys) -> TunnelReport {
    let mut report = report.clone();
    for certificate in &mut report.certificates {
        certificate.revoked_ms = revoked.at(&certificate.public_key).map(|at| at.timestamp_millis());
    }
    report
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::server::registry::time::Grace;
    use api::{CertificateReport, TunnelAgentId, TunnelAgentUuid};
    use chrono::DateTime;
    use uuid::Uuid;

    const WALL_OFFSET_MS: i64 = 1_700_000_000_000;

    pub fn at(seconds: i64) -> Monotonic {
        Monotonic::from_ms(seconds * 1000)
    }

    pub fn moment(seconds: i64) -> Moment {
        Moment { now: at(seconds), wall_offset_ms: WALL_OFFSET_MS, grace: Grace { began: at(0), until: at(60) } }
    }

    pub fn row(name: &str) -> TunnelAgentRow {
        TunnelAgentRow {
            id: TunnelAgentId(1),
            uuid: TunnelAgentUuid(Uuid::from_u128(1)),
            name: name.to_owned(),
            hostname: "bastion".to_owned(),
            version: "1".to_owned(),
            link_key: link::PublicKey::from_bytes([7; 32]),
            created_ms: 5,
        }
    }

    fn report(refused_config: &str) -> TunnelReport {
        TunnelReport { refused_config: Some(refused_config.to_owned()), ..TunnelReport::default() }
    }

    fn shown(facts: &AgentFacts, seconds: i64) -> TunnelAgent {
        view(facts, &moment(seconds), &RevokedKeys::default())
    }

    #[test]
    fn which_keys_are_revoked_says_the_authority_and_no_agent() {
        let key = |name: &str, revoked_ms| CertificateReport {
            key_file: name.to_owned(),
            public_key: format!("ssh-ed25519 {name} comment"),
            certificate: None,
            revoked_ms,
        };
        let report = TunnelReport { certificates: vec![key("A", None), key("B", Some(1))], ..TunnelReport::default() };
        let at = DateTime::from_timestamp_millis(7).unwrap();
        let shown = marked(&report, &[("ssh-ed25519 A other".to_owned(), at)].into_iter().collect());
        let revoked: Vec<_> = shown.certificates.iter().map(|certificate| certificate.revoked_ms).collect();
        assert_eq!((revoked, shown.revoked_ms()), (vec![Some(7), None], Some(7)));
    }

    #[test]
    fn what_a_gone_agent_told_last_is_kept_with_the_time_at_which_it_came() {
        let mut facts = AgentFacts::new(row("a"), at(1));
        assert_eq!((shown(&facts, 2).since_ms, shown(&facts, 2).reported_ms), (None, None));
        facts.standing = AgentStanding::Connected { since: at(3) };
        facts.hear(report("no"), at(5));
        facts.standing = AgentStanding::Gone { since: at(9) };
        let seen = shown(&facts, 100);
        assert_eq!((seen.is_connected, seen.report), (false, report("no")));
        assert_eq!(seen.since_ms, Some(WALL_OFFSET_MS + 9_000));
        assert_eq!(seen.reported_ms, Some(WALL_OFFSET_MS + 5_000));
    }

    #[test]
    fn a_report_of_an_earlier_process_keeps_its_time_and_nobody_has_come_yet() {
        let told = Some((report("no"), WALL_OFFSET_MS - 3_600_000));
        let facts = AgentFacts::stored(StoredTunnelAgent { row: row("a"), told }, &moment(1));
        let seen = shown(&facts, 30);
        assert_eq!((seen.is_connected, seen.since_ms), (false, None));
        assert_eq!(seen.reported_ms, Some(WALL_OFFSET_MS - 3_600_000));
    }

    /// Whether something was due and is written now.
    fn save(facts: &mut AgentFacts, seconds: i64, is_end: bool) -> Option<i64> {
        let Unsaved { row, told } = facts.unsaved(&moment(seconds), is_end)?;
        facts.note_saved(&told, at(seconds));
        Some(row.reported_ms - WALL_OFFSET_MS)
    }

    #[test]
    fn a_report_reaches_the_database_at_once_then_once_a_minute_and_at_the_end() {
        let mut facts = AgentFacts::new(row("a"), at(0));
        assert_eq!(save(&mut facts, 1, true), None, "nothing was told");
        facts.hear(report("1"), at(1));
        assert_eq!(save(&mut facts, 2, false), Some(1_000));
        facts.hear(report("2"), at(3));
        assert_eq!(save(&mut facts, 61, false), None);
        assert_eq!(save(&mut facts, 62, false), Some(3_000));
        assert_eq!(save(&mut facts, 200, true), None, "nothing new");
        facts.hear(report("3"), at(201));
        assert_eq!(save(&mut facts, 202, false), Some(201_000));
        facts.hear(report("4"), at(203));
        assert_eq!(save(&mut facts, 204, true), Some(203_000));
    }

    #[test]
    fn what_could_not_be_written_and_what_came_meanwhile_stay_due() {
        let mut facts = AgentFacts::new(row("a"), at(0));
        facts.hear(report("1"), at(1));
        let first = facts.unsaved(&moment(2), false).unwrap();
        assert!(facts.unsaved(&moment(3), false).is_some(), "it was not written");
        facts.hear(report("1"), at(3));
        facts.note_saved(&first.told, at(4));
        assert_eq!(save(&mut facts, 64, false), Some(3_000));
    }
}
