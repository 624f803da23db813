//! Everything that decides about workers' rows: joining, resuming, renaming, taking over, changing, deleting.
//!
//! One task decides and writes, so decisions never race, and whatever queued up while the last transaction was
//! written shares the next one: a thousand workers that join at once cost a few commits, not a thousand.

pub mod check;
mod rules;
#[cfg(test)]
mod tests;

pub use rules::{Proof, unsupported_protocol};

use crate::server::error::ApiError;
use crate::server::journal::Journal;
use crate::server::links::Links;
use crate::server::registry::assess::Policy;
use crate::server::registry::facts::{Facts, Session};
use crate::server::registry::time::{Moment, system_ms};
use crate::server::registry::{Registry, Worker};
use crate::server::store::Store;
use crate::server::store::workers::{RowChange, WorkerRow};
use crate::server::supervisor::Job;
use api::{ClockMeasurement, RegisterRequest, WorkerChange, WorkerEventKind, WorkerId, WorkerReport, WorkerUuid};
use chrono::DateTime;
use rules::{Decision, Refusal};
use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::timeout;

/// Requests that may wait; more are told to come again.
const QUEUE: usize = 2_048;
/// Requests in one transaction: it must not keep the writer from others for long.
const BATCH: usize = 256;
/// How long a request waits for its place in the queue.
const PATIENCE: Duration = Duration::from_secs(5);
/// Every transaction is far shorter; a caller that waits longer learns that something is wrong.
const ANSWER_DEADLINE: Duration = Duration::from_secs(20);

/// The queue in front of the one task that decides. Cloning it clones a handle.
#[derive(Clone, Debug)]
pub struct Membership {
    registry: Registry,
    queue: mpsc::Sender<Request>,
}

/// What the deciding task works on. It outlives a panic of the task, so the queue is not lost with it.
#[derive(Debug)]
pub struct Decider {
    registry: Registry,
    store: Store,
    journal: Journal,
    links: Links,
    queue: Mutex<mpsc::Receiver<Request>>,
}

#[derive(Debug)]
struct Request {
    wish: Wish,
    answer: oneshot::Sender<Result<Outcome, ApiError>>,
}

#[derive(Debug)]
enum Wish {
    Register { request: Box<RegisterRequest>, proof: Proof, key: link::PublicKey },
    LegacyJoin(Box<WorkerReport>),
    LegacyUpdate(WorkerId, Box<WorkerReport>),
    Change(WorkerId, WorkerChange),
    AllowReplacement(WorkerId),
    Delete(WorkerId),
}

/// What came of a wish.
#[derive(Debug)]
enum Outcome {
    /// It was done to this worker.
    Done(Arc<Worker>),
    /// There is nothing to do it to.
    Missing,
}

impl Membership {
    /// The queue, and what its task works on.
    pub fn new(registry: Registry, store: Store, journal: Journal, links: Links) -> (Self, Arc<Decider>) {
        let (sender, queue) = mpsc::channel(QUEUE);
        let handle = Self { registry: registry.clone(), queue: sender };
        (handle, Arc::new(Decider { registry, store, journal, links, queue: Mutex::new(queue) }))
    }

    /// A worker of ours begins a session, over a link that proved it to own `key`.
    pub async fn register(
        &self,
        request: RegisterRequest,
        proof: Proof,
        key: link::PublicKey,
    ) -> Result<Arc<Worker>, ApiError> {
        self.ask_for_one(Wish::Register { request: Box::new(request), proof, key }).await
    }

    /// A GPUStack 0.7 worker posts itself.
    pub async fn legacy_join(&self, report: WorkerReport) -> Result<Arc<Worker>, ApiError> {
        self.ask_for_one(Wish::LegacyJoin(Box::new(report))).await
    }

    /// A GPUStack 0.7 worker puts itself, as it does for each heartbeat: when nothing about its row changes, that
    /// goes to memory and waits for no database.
    pub async fn legacy_update(&self, id: WorkerId, report: WorkerReport) -> Result<Arc<Worker>, ApiError> {
        let moment = self.registry.moment();
        let row = rules::legacy_update(&self.registry, id, &report, &moment)?;
        if let Some(worker) = self.registry.get(id)
            && worker.facts().row == row
        {
            legacy_beat(&mut worker.facts(), &report, &moment, self.registry.policy());
            return Ok(worker);
        }
        self.ask_for_one(Wish::LegacyUpdate(id, Box::new(report))).await
    }

    /// An administrator changes labels or maintenance; None when there is no such worker.
    pub async fn change(&self, id: WorkerId, change: WorkerChange) -> Result<Option<Arc<Worker>>, ApiError> {
        Ok(match self.ask(Wish::Change(id, change)).await? {
            Outcome::Done(worker) => Some(worker),
            Outcome::Missing => None,
        })
    }

    /// An administrator lets the host that asked take this worker's place; false when nobody asks.
    pub async fn allow_replacement(&self, id: WorkerId) -> Result<bool, ApiError> {
        Ok(matches!(self.ask(Wish::AllowReplacement(id)).await?, Outcome::Done(_)))
    }

    /// An administrator deletes a worker, which revokes its key; false when there is no such worker.
    pub async fn delete(&self, id: WorkerId) -> Result<bool, ApiError> {
        Ok(matches!(self.ask(Wish::Delete(id)).await?, Outcome::Done(_)))
    }

    async fn ask_for_one(&self, wish: Wish) -> Result<Arc<Worker>, ApiError> {
        match self.ask(wish).await? {
            Outcome::Done(worker) => Ok(worker),
            Outcome::Missing => Err(ApiError::not_found("worker")),
        }
    }

    async fn ask(&self, wish: Wish) -> Result<Outcome, ApiError> {
        let busy = || ApiError::unavailable("the server is busy with other workers; try again", 5);
        let (sender, answer) = oneshot::channel();
        let queued = timeout(PATIENCE, self.queue.send(Request { wish, answer: sender })).await;
        if !matches!(queued, Ok(Ok(()))) {
            return Err(busy());
        }
        match timeout(ANSWER_DEADLINE, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(busy()),
        }
    }
}

/// What a wish comes down to.
#[derive(Debug)]
enum Plan {
    Join(WorkerRow),
    Resume(WorkerRow),
    TakeOver(WorkerRow),
    Change(WorkerRow),
    Delete(WorkerId),
}

impl From<Decision> for Plan {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Join(row) => Self::Join(row),
            Decision::Resume(row) => Self::Resume(row),
            Decision::TakeOver(row) => Self::TakeOver(row),
        }
    }
}

/// A request with its plan, waiting for its transaction.
struct Planned {
    request: Request,
    plan: Plan,
    /// What the database must do; None when it has it already.
    change: Option<RowChange>,
}

/// What the plans of one batch touch: a request that touches the same waits for the next batch, to be decided on what
/// is true then.
#[derive(Default)]
struct Touched {
    names: HashSet<String>,
    uuids: HashSet<WorkerUuid>,
    ids: HashSet<WorkerId>,
}

impl Touched {
    /// False when something of it is touched already; nothing is then.
    fn touch(&mut self, plan: &Plan) -> bool {
        let (row, id) = match plan {
            Plan::Join(row) => (Some(row), None),
            Plan::Resume(row) | Plan::TakeOver(row) | Plan::Change(row) => (Some(row), Some(row.id)),
            Plan::Delete(id) => (None, Some(*id)),
        };
        let is_taken = row.is_some_and(|row| self.names.contains(&row.name) || self.uuids.contains(&row.uuid))
            || id.is_some_and(|id| self.ids.contains(&id));
        if is_taken {
            return false;
        }
        if let Some(row) = row {
            self.names.insert(row.name.clone());
            self.uuids.insert(row.uuid);
        }
        self.ids.extend(id);
        true
    }
}

/// Decides, for ever.
pub async fn run(decider: Arc<Decider>, job: Job) -> Infallible {
    // tokio's lock, held on purpose: by this one task, and after a panic by its successor
    let mut queue = decider.queue.lock().await;
    let mut waiting = VecDeque::new();
    loop {
        if waiting.is_empty() {
            match queue.recv().await {
                Some(request) => waiting.push_back(request),
                // every handle is gone: nobody will ask again
                None => std::future::pending().await,
            }
        }
        while waiting.len() < BATCH {
            let Ok(request) = queue.try_recv() else { break };
            waiting.push_back(request);
        }
        waiting = decider.decide(waiting).await;
        job.succeeded();
    }
}

impl Decider {
    /// Decides and writes one batch; gives what must wait for the next.
    async fn decide(&self, waiting: VecDeque<Request>) -> VecDeque<Request> {
        let moment = self.registry.moment();
        let mut touched = Touched::default();
        let mut later = VecDeque::new();
        let mut batch = Vec::new();
        for request in waiting {
            match self.plan(&request.wish, &moment) {
                Ok(Some(plan)) if touched.touch(&plan) => {
                    let change = self.row_change(&plan);
                    batch.push(Planned { request, plan, change });
                }
                Ok(Some(_)) => later.push_back(request),
                Ok(None) => answer(request, Ok(Outcome::Missing)),
                Err(error) => answer(request, Err(error)),
            }
        }
        if let Err(batch) = self.write_together(batch, &moment).await {
            for planned in batch {
                self.write_alone(planned, &moment).await;
            }
        }
        later
    }

    /// One transaction for all. Gives the batch back when it failed, for one bad row must not take the others along.
    async fn write_together(&self, batch: Vec<Planned>, moment: &Moment) -> Result<(), Vec<Planned>> {
        let changes: Vec<RowChange> = batch.iter().filter_map(|planned| planned.change.clone()).collect();
        match self.store.change_workers(&changes).await {
            Ok(ids) => {
                let mut ids = ids.into_iter();
                for planned in batch {
                    let id = planned.change.as_ref().and_then(|_| ids.next());
                    self.carry_out(planned, id, moment);
                }
                Ok(())
            }
            Err(error) => {
                tracing::warn!(%error, requests = batch.len(), "a transaction failed; each request gets one of its own");
                Err(batch)
            }
        }
    }

    async fn write_alone(&self, planned: Planned, moment: &Moment) {
        let changes: Vec<RowChange> = planned.change.clone().into_iter().collect();
        match self.store.change_workers(&changes).await {
            Ok(ids) => self.carry_out(planned, ids.first().copied(), moment),
            Err(error) => {
                tracing::error!(%error, "a worker's row cannot be written");
                let busy = ApiError::unavailable("the database cannot be written now; try again", 5);
                answer(planned.request, Err(busy));
            }
        }
    }

    fn row_change(&self, plan: &Plan) -> Option<RowChange> {
        match plan {
            Plan::Join(row) => Some(RowChange::Insert(row.clone())),
            Plan::Resume(row) | Plan::TakeOver(row) | Plan::Change(row) => {
                let is_unchanged = self.registry.get(row.id).is_some_and(|worker| worker.facts().row == *row);
                (!is_unchanged).then(|| RowChange::Update(row.clone()))
            }
            Plan::Delete(id) => Some(RowChange::Delete(*id)),
        }
    }

    /// None when there is nothing to do it to.
    fn plan(&self, wish: &Wish, moment: &Moment) -> Result<Option<Plan>, ApiError> {
        match wish {
            Wish::Register { request, proof, key } => rules::register(&self.registry, request, *proof, *key, moment)
                .map(|decision| Some(decision.into()))
                .map_err(|refusal| refuse(refusal, request, moment)),
            Wish::LegacyJoin(report) => {
                rules::legacy_join(&self.registry, report, moment).map(|decision| Some(decision.into()))
            }
            Wish::LegacyUpdate(id, report) => {
                rules::legacy_update(&self.registry, *id, report, moment).map(|row| Some(Plan::Resume(row)))
            }
            Wish::Change(id, change) => {
                let Some(worker) = self.registry.get(*id) else { return Ok(None) };
                let row = worker.facts().row.clone();
                rules::change(&row, change, moment).map(|row| Some(Plan::Change(row)))
            }
            Wish::AllowReplacement(id) => {
                let Some(worker) = self.registry.get(*id) else { return Ok(None) };
                let allowed = rules::allow_replacement(&worker.facts(), moment);
                Ok(allowed.map(Plan::Change))
            }
            Wish::Delete(id) => Ok(self.registry.get(*id).map(|_| Plan::Delete(*id))),
        }
    }

    /// The database has it; now memory gets it, and the caller an answer.
    fn carry_out(&self, planned: Planned, id: Option<WorkerId>, moment: &Moment) {
        let Planned { request, plan, .. } = planned;
        let at_ms = moment.wall_ms(moment.now);
        let begin = |facts: &mut Facts| self.begin_session(facts, &request.wish, moment);
        let worker = match plan {
            Plan::Join(row) => id.map(|id| {
                let mut facts = Facts::new(WorkerRow { id, ..row }, moment.now);
                begin(&mut facts);
                tracing::info!(worker = id.0, name = facts.row.name, ip = facts.row.ip, "a worker joined");
                self.journal.note(id, at_ms, WorkerEventKind::Joined {});
                self.registry.insert(facts)
            }),
            Plan::Resume(row) => {
                self.note_address(&row, at_ms);
                // what was true of the process before it need not be true of this one
                self.registry.decide(row, begin).inspect(|worker| worker.probe.probe_now())
            }
            Plan::TakeOver(row) => {
                tracing::info!(worker = row.id.0, name = row.name, ip = row.ip, "another host took a worker's place");
                self.journal.note(row.id, at_ms, WorkerEventKind::Replaced { hostname: row.hostname.clone() });
                let worker_id = row.id;
                let worker = self.registry.decide(row, |facts| {
                    facts.begin_anew(moment.now);
                    begin(facts);
                });
                self.links.revoke(worker_id);
                // also when the address is the old one: another worker must answer there now
                worker.inspect(|worker| worker.probe.probe_now())
            }
            Plan::Change(row) => self.registry.decide(row, |_| ()),
            Plan::Delete(id) => {
                tracing::info!(worker = id.0, "a worker was deleted");
                let worker = self.registry.remove(id);
                // after the row is gone: a link that begins now finds none, and ends
                self.links.revoke(id);
                worker
            }
        };
        answer(request, Ok(worker.map_or(Outcome::Missing, Outcome::Done)));
    }

    fn begin_session(&self, facts: &mut Facts, wish: &Wish, moment: &Moment) {
        let now = moment.now;
        match wish {
            Wish::Register { request, .. } => {
                facts.session = Some(Session { id: request.session_id, host_key: request.host_key.clone() });
                facts.registered = now;
                facts.hear(now, self.registry.policy().offline_timeout);
            }
            Wish::LegacyJoin(report) | Wish::LegacyUpdate(_, report) => {
                legacy_beat(facts, report, moment, self.registry.policy());
            }
            Wish::Change(..) | Wish::AllowReplacement(_) | Wish::Delete(_) => {}
        }
    }

    fn note_address(&self, row: &WorkerRow, at_ms: i64) {
        let Some(worker) = self.registry.get(row.id) else { return };
        let (ip, port) = {
            let facts = worker.facts();
            (facts.row.ip.clone(), facts.row.port)
        };
        if (&ip, port) == (&row.ip, row.port) {
            return;
        }
        let (from, to) = (format!("{ip}:{port}"), format!("{}:{}", row.ip, row.port));
        tracing::info!(worker = row.id.0, from, to, "a worker's address changed");
        self.journal.note(row.id, at_ms, WorkerEventKind::AddressChanged { from, to });
    }
}

/// What a GPUStack 0.7 worker sends is status, sign of life and, at its start, registration in one.
fn legacy_beat(facts: &mut Facts, report: &WorkerReport, moment: &Moment, policy: &Policy) {
    match report.heartbeat_time.as_deref().and_then(|time| DateTime::parse_from_rfc3339(time).ok()) {
        Some(told) => facts.measure_clock(legacy_clock(told.timestamp_millis(), system_ms()), moment.now),
        // a heartbeat has a time, a registration has none
        None => facts.registered = moment.now,
    }
    facts.report(report.status.clone(), moment.now);
    facts.hear(moment.now, policy.offline_timeout);
}

/// GPUStack 0.7 tells its time cut to whole seconds, so it lies half a second later on average; the rest of the error
/// is left for the way here.
fn legacy_clock(told_ms: i64, received_ms: i64) -> ClockMeasurement {
    ClockMeasurement { offset_ms: told_ms.saturating_add(500).saturating_sub(received_ms), error_ms: 1_000 }
}

/// Leaves the trace that a refusal leaves, and words it.
fn refuse(refusal: Refusal, request: &RegisterRequest, moment: &Moment) -> ApiError {
    match refusal {
        Refusal::Plain(error) => error,
        Refusal::Duplicate(worker) => {
            let (hostname, ip) = (&request.hostname, &request.ip);
            tracing::warn!(worker = worker.id().0, hostname, ip, "refused a second host with the same identity");
            worker.facts().sight_duplicate(hostname, ip, moment.now);
            rules::identity_duplicated(&worker)
        }
        Refusal::ReplacementNeeded(worker) => {
            worker.facts().ask_replacement(request.worker_uuid, &request.hostname, &request.ip, moment.now);
            rules::replacement_needed(&worker)
        }
    }
}

fn answer(request: Request, outcome: Result<Outcome, ApiError>) {
    // who does not wait any more needs no answer
    let _ = request.answer.send(outcome);
}
