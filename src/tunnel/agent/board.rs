//! What is known of all forwards, for whoever wants to know: the status, the report to the server, and the forwards that
//! go through one another.

use super::clock::{AgentClock, AgentTime};
use super::history::History;
use crate::data_dir::{DataDir, DataDirError};
use crate::tunnel::plan::{ForwardId, PlannedForward};
use api::{FaultCause, ForwardReport, ForwardState, TunnelFault};
use serde::{Deserialize, Serialize};
use ssh::ForwardStats;
use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// In the state directory.
const HISTORY_FILE: &str = "history.json";

/// What is known of all forwards. Cloning it clones a handle.
#[derive(Clone)]
pub struct Board {
    shared: Arc<Shared>,
}

struct Shared {
    clock: AgentClock,
    /// Of those that were in the file before too: they may come back.
    records: Mutex<BTreeMap<String, Record>>,
    /// Counts the changes of states.
    changes: watch::Sender<u64>,
}

/// What is known of one.
#[derive(Clone, Debug)]
struct Record {
    state: ForwardState,
    since: AgentTime,
    /// Up to here the time is in the history.
    told_until: AgentTime,
    fault: Option<TunnelFault>,
    round_trip: Option<Duration>,
    /// How often it was made.
    made: u64,
    traffic: Traffic,
    history: History,
}

#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    /// Of those of its sessions that have ended, in bytes.
    ended_to_target: u64,
    ended_from_target: u64,
    /// Of the one that stands.
    to_target: u64,
    from_target: u64,
    open_connections: u64,
}

/// What outlives the process.
#[derive(Default, Serialize, Deserialize)]
struct Stored {
    stopped: AgentTime,
    stopped_at: Option<SystemTime>,
    forwards: BTreeMap<String, History>,
}

impl Record {
    fn new(now: AgentTime, history: History) -> Self {
        Self {
            state: ForwardState::Starting,
            since: now,
            told_until: now,
            fault: None,
            round_trip: None,
            made: 0,
            traffic: Traffic::default(),
            history,
        }
    }

    fn account(&mut self, now: AgentTime) {
        self.history.add(self.state, self.told_until, now);
        self.told_until = now;
    }
}

impl Board {
    /// With what is remembered in the state directory. A file that cannot be understood is begun anew, which the log says.
    pub fn open(state: &DataDir) -> Result<Self, DataDirError> {
        let stored = match state.read(HISTORY_FILE)? {
            None => Stored::default(),
            Some(text) => serde_json::from_str(&text).unwrap_or_else(|error| {
                let path = state.file(HISTORY_FILE);
                tracing::error!(%error, path = %path.display(), "the history of the forwards cannot be read; a new one begins");
                Stored::default()
            }),
        };
        let clock = AgentClock::go_on(stored.stopped, stored.stopped_at);
        let record = |(id, mut history): (String, History)| {
            // nobody knows when it worked again; nobody looked
            history.end_cut(stored.stopped);
            (id, Record::new(clock.now(), history))
        };
        let records = stored.forwards.into_iter().map(record).collect();
        Ok(Self { shared: Arc::new(Shared { clock, records: Mutex::new(records), changes: watch::Sender::new(0) }) })
    }

    /// Writes down what is remembered.
    pub fn save(&self, state: &DataDir) -> Result<(), DataDirError> {
        let now = self.now();
        let forwards = {
            let mut records = self.records();
            for record in records.values_mut() {
                record.account(now);
            }
            records.iter().map(|(id, record)| (id.clone(), record.history.clone())).collect()
        };
        let stored = Stored { stopped: now, stopped_at: Some(SystemTime::now()), forwards };
        state.write(HISTORY_FILE, &serde_json::to_string(&stored).unwrap_or_default())
    }

    /// Changes count as they come.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Notes a forward's state. Gives whether that is a change, which another figure in the same fault is not.
    pub fn note(&self, id: &ForwardId, state: ForwardState, fault: Option<TunnelFault>) -> bool {
        let now = self.now();
        let is_change = {
            let mut records = self.records();
            let record = records.entry(id.to_string()).or_insert_with(|| Record::new(now, History::default()));
            record.account(now);
            match &fault {
                Some(fault) if !state.is_available() => record.history.begin_cut(now, fault),
                _ if state.is_available() => record.history.end_cut(now),
                _ => {}
            }
            let is_change = record.state != state || kind(record.fault.as_ref()) != kind(fault.as_ref());
            if record.state != state {
                record.since = now;
            }
            (record.state, record.fault) = (state, fault);
            is_change
        };
        if is_change {
            self.touch();
        }
        is_change
    }

    /// Notes that the forward was made, once more or for the first time.
    pub fn note_made(&self, id: &ForwardId) {
        self.with(id, |record| record.made += 1);
    }

    /// Whether it ever stood, in this process or one before.
    pub fn was_made(&self, id: &ForwardId) -> bool {
        let records = self.records();
        records.get(id.as_str()).is_some_and(|record| record.made > 0 || record.history.ever_worked())
    }

    /// Something has changed that is told together with the forwards.
    pub fn touch(&self) {
        self.shared.changes.send_modify(|count| *count += 1);
    }

    /// Notes how long the last probe took.
    pub fn note_round_trip(&self, id: &ForwardId, round_trip: Duration) {
        self.with(id, |record| record.round_trip = Some(round_trip));
    }

    /// Notes what went over the forward as it stands now.
    pub fn note_traffic(&self, id: &ForwardId, stats: &ForwardStats) {
        self.with(id, |record| {
            let traffic = &mut record.traffic;
            (traffic.to_target, traffic.from_target) = (stats.bytes_to_target, stats.bytes_from_target);
            traffic.open_connections = u64::try_from(stats.open_connections).unwrap_or(u64::MAX);
        });
    }

    /// Notes that the forward stands no more, after `stats`.
    pub fn note_ended(&self, id: &ForwardId, stats: &ForwardStats) {
        self.with(id, |record| {
            let traffic = &mut record.traffic;
            traffic.ended_to_target += stats.bytes_to_target;
            traffic.ended_from_target += stats.bytes_from_target;
            (traffic.to_target, traffic.from_target, traffic.open_connections) = (0, 0, 0);
        });
    }

    /// Notes that nobody keeps the forward any more. Its history stays.
    pub fn note_left(&self, id: &ForwardId) {
        let now = self.now();
        self.with(id, |record| {
            record.account(now);
            record.history.end_cut(now);
            *record = Record::new(now, std::mem::take(&mut record.history));
        });
        self.touch();
    }

    /// A forward's state; None for one that nobody has tried.
    pub fn state(&self, id: &ForwardId) -> Option<ForwardState> {
        self.records().get(id.as_str()).map(|record| record.state)
    }

    /// What is known of these forwards, in their order.
    pub fn report(&self, forwards: &[PlannedForward]) -> Vec<ForwardReport> {
        let now = self.now();
        let mut records = self.records();
        forwards
            .iter()
            .map(|forward| {
                let id = forward.id.to_string();
                let record = records.entry(id).or_insert_with(|| Record::new(now, History::default()));
                record.account(now);
                report(forward, record, now)
            })
            .collect()
    }

    fn with(&self, id: &ForwardId, change: impl FnOnce(&mut Record)) {
        let now = self.now();
        change(self.records().entry(id.to_string()).or_insert_with(|| Record::new(now, History::default())));
    }

    fn now(&self) -> AgentTime {
        self.shared.clock.now()
    }

    fn records(&self) -> MutexGuard<'_, BTreeMap<String, Record>> {
        // each change leaves a whole record, so a panic elsewhere leaves nothing half done here
        self.shared.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where it is and what, without its figures.
fn kind(fault: Option<&TunnelFault>) -> Option<(Option<&str>, Discriminant<FaultCause>)> {
    fault.map(|fault| (fault.hop.as_deref(), discriminant(&fault.cause)))
}

fn report(forward: &PlannedForward, record: &Record, now: AgentTime) -> ForwardReport {
    let Record { traffic, history, .. } = record;
    ForwardReport {
        id: forward.id.to_string(),
        role: forward.role,
        direction: forward.direction,
        workers: forward.workers.clone(),
        listen: forward.listen.to_string(),
        target: forward.target.to_string(),
        route: forward.route.iter().map(|hop| format!("{}@{}", hop.user, hop.server)).collect(),
        state: record.state,
        state_age_ms: now.since_ms(record.since),
        fault: record.fault.clone(),
        round_trip_ms: record.round_trip.map(|round_trip| round_trip.as_secs_f64() * 1000.0),
        to_target_bytes: traffic.ended_to_target + traffic.to_target,
        from_target_bytes: traffic.ended_from_target + traffic.from_target,
        open_connections: traffic.open_connections,
        reconnects: record.made.saturating_sub(1),
        availability: history.availability(now),
        cuts: history.cuts(now),
    }
}
