//! Who may be which worker. Decisions only: they read the registry and change nothing.

use super::check;
use crate::server::error::ApiError;
use crate::server::registry::assess::{self, Liveness};
use crate::server::registry::facts::{Facts, Session};
use crate::server::registry::time::Moment;
use crate::server::registry::{Registry, Worker};
use crate::server::store::workers::WorkerRow;
use api::{
    Maintenance, PROTOCOL_VERSION, RegisterRequest, WorkerChange, WorkerId, WorkerReport, WorkerUuid, error_reason,
};
use http::StatusCode;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A session that was heard within this is alive: two beats of ten seconds and a slow network.
const SESSION_ALIVE: Duration = Duration::from_secs(25);
/// `-` and five characters behind a name that is taken.
const SUFFIX_CHARS: usize = 6;
/// How often a suffix is drawn; each is one of 33 million.
const SUFFIX_TRIES: u32 = 8;

/// How a worker proved that it may begin a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// By its own key alone.
    Key,
    /// By the join token. Its key becomes its own by that.
    JoinToken,
}

/// What is to be done about a worker that registers.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// It joins.
    Join(WorkerRow),
    /// It is known and goes on, under this row.
    Resume(WorkerRow),
    /// It takes over this row of another host.
    TakeOver(WorkerRow),
}

/// Why not. Some refusals leave a trace on the worker whose place was asked for.
#[derive(Debug)]
pub enum Refusal {
    /// Nothing else than the answer.
    Plain(ApiError),
    /// Another host that is alive uses the same identity.
    Duplicate(Arc<Worker>),
    /// The name belongs to a worker that is gone.
    ReplacementNeeded(Arc<Worker>),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Plain(error)
    }
}

/// Decides about a worker of ours that begins a session and has proved to own `key`.
pub fn register(
    registry: &Registry,
    request: &RegisterRequest,
    proof: Proof,
    key: link::PublicKey,
    moment: &Moment,
) -> Result<Decision, Refusal> {
    check::register_request(request)?;
    let known = registry.by_uuid(request.worker_uuid);
    if proof == Proof::Key {
        let is_its_own = known.as_ref().is_some_and(|worker| worker.facts().row.link_key == Some(key));
        if !is_its_own {
            return Err(worker_unknown().into());
        }
    }
    match known {
        Some(worker) => resume(registry, request, key, &worker, moment),
        None => join(registry, request, key, moment),
    }
}

fn resume(
    registry: &Registry,
    request: &RegisterRequest,
    key: link::PublicKey,
    worker: &Arc<Worker>,
    moment: &Moment,
) -> Result<Decision, Refusal> {
    let (mut row, is_duplicate) = {
        let facts = worker.facts();
        (facts.row.clone(), is_alive_elsewhere(&facts, request, moment))
    };
    if is_duplicate {
        return Err(Refusal::Duplicate(Arc::clone(worker)));
    }
    if let Some(name) = wished_name(request)? {
        row.name = own_or_free(registry, row.id, name)?;
    }
    row.link_key = Some(key);
    Ok(Decision::Resume(brought_up_to_date(&row, request, moment)))
}

fn join(
    registry: &Registry,
    request: &RegisterRequest,
    key: link::PublicKey,
    moment: &Moment,
) -> Result<Decision, Refusal> {
    let name = match wished_name(request)? {
        None => free_name(registry, request)?,
        Some(name) => match registry.by_name(&name) {
            None => name,
            Some(holder) => return take_over(registry, request, key, holder, moment),
        },
    };
    let row = WorkerRow {
        id: WorkerId(0),
        uuid: request.worker_uuid,
        name,
        hostname: String::new(),
        ip: String::new(),
        port: request.port,
        labels: BTreeMap::new(),
        system_reserved: None,
        maintenance: Maintenance::default(),
        version: None,
        replace_allowed_for: None,
        link_key: Some(key),
        created_ms: moment.wall_ms(moment.now),
        updated_ms: 0,
    };
    Ok(Decision::Join(brought_up_to_date(&row, request, moment)))
}

fn take_over(
    registry: &Registry,
    request: &RegisterRequest,
    key: link::PublicKey,
    holder: Arc<Worker>,
    moment: &Moment,
) -> Result<Decision, Refusal> {
    let (row, liveness) = {
        let facts = holder.facts();
        (facts.row.clone(), assess::liveness(&facts, moment, registry.policy()))
    };
    if !matches!(liveness, Liveness::Lost { .. }) {
        return Err(name_taken(&holder).into());
    }
    if row.replace_allowed_for != Some(request.worker_uuid) {
        return Err(Refusal::ReplacementNeeded(holder));
    }
    let row = WorkerRow { uuid: request.worker_uuid, link_key: Some(key), replace_allowed_for: None, ..row };
    Ok(Decision::TakeOver(brought_up_to_date(&row, request, moment)))
}

/// The row with what a worker says of itself at each start.
fn brought_up_to_date(row: &WorkerRow, request: &RegisterRequest, moment: &Moment) -> WorkerRow {
    let mut labels = row.labels.clone();
    // an operator's labels stay; the worker's own follow it
    labels.extend(request.labels.clone());
    let told = WorkerRow {
        hostname: request.hostname.trim().to_owned(),
        ip: request.ip.trim().to_owned(),
        port: request.port,
        version: Some(request.version.clone()),
        system_reserved: request.system_reserved,
        labels,
        ..row.clone()
    };
    touched(row, told, moment)
}

/// `after`, with the time of this change when it is one.
fn touched(before: &WorkerRow, after: WorkerRow, moment: &Moment) -> WorkerRow {
    if after == *before { after } else { WorkerRow { updated_ms: moment.wall_ms(moment.now), ..after } }
}

/// Whether another run of this identity, on another host or boot, is alive.
fn is_alive_elsewhere(facts: &Facts, request: &RegisterRequest, moment: &Moment) -> bool {
    let Some(Session { id, host_key }) = &facts.session else { return false };
    let is_heard = facts.heartbeat.is_some_and(|heartbeat| moment.now.since(heartbeat.last) <= SESSION_ALIVE);
    is_heard && *id != request.session_id && *host_key != request.host_key
}

/// Decides about a GPUStack 0.7 worker that posts itself. It posts only when it found neither its name nor its id,
/// so one that is known lost an answer.
pub fn legacy_join(registry: &Registry, report: &WorkerReport, moment: &Moment) -> Result<Decision, ApiError> {
    if let Some(known) = registry.by_uuid(report.worker_uuid) {
        return legacy_update(registry, known.id(), report, moment).map(Decision::Resume);
    }
    check::worker_report(report)?;
    let name = check::name(&report.name)?;
    if let Some(holder) = registry.by_name(&name) {
        return Err(name_taken(&holder));
    }
    let now_ms = moment.wall_ms(moment.now);
    Ok(Decision::Join(WorkerRow {
        id: WorkerId(0),
        uuid: report.worker_uuid,
        name,
        hostname: report.hostname.trim().to_owned(),
        ip: report.ip.trim().to_owned(),
        port: report.port,
        labels: report.labels.clone().unwrap_or_default(),
        system_reserved: Some(report.system_reserved.unwrap_or_default()),
        maintenance: Maintenance::default(),
        version: None,
        replace_allowed_for: None,
        link_key: None,
        created_ms: now_ms,
        updated_ms: now_ms,
    }))
}

/// The row after a GPUStack 0.7 worker put itself.
pub fn legacy_update(
    registry: &Registry,
    id: WorkerId,
    report: &WorkerReport,
    moment: &Moment,
) -> Result<WorkerRow, ApiError> {
    let worker = registry.get(id).ok_or_else(|| ApiError::not_found("worker"))?;
    let row = worker.facts().row.clone();
    if row.uuid != report.worker_uuid {
        return Err(ApiError::forbidden("this row belongs to another worker"));
    }
    if row.link_key.is_some() {
        return Err(ApiError::forbidden(
            "this worker has a key of its own, which a GPUStack 0.7 worker does not have; delete it in the UI, and it can \
             join again as a GPUStack 0.7 worker",
        ));
    }
    check::worker_report(report)?;
    let told = WorkerRow {
        name: own_or_free(registry, id, check::name(&report.name)?)?,
        hostname: report.hostname.trim().to_owned(),
        ip: report.ip.trim().to_owned(),
        port: report.port,
        system_reserved: report.system_reserved.or(row.system_reserved),
        // its labels are an older copy of ours: taking them would undo what an operator did meanwhile
        ..row.clone()
    };
    Ok(touched(&row, told, moment))
}

/// The row after what an administrator wants.
pub fn change(row: &WorkerRow, change: &WorkerChange, moment: &Moment) -> Result<WorkerRow, ApiError> {
    let mut changed = row.clone();
    if let Some(labels) = &change.labels {
        check::labels(labels)?;
        changed.labels.clone_from(labels);
    }
    if let Some(maintenance) = &change.maintenance {
        changed.maintenance = check::maintenance(maintenance)?;
    }
    Ok(touched(row, changed, moment))
}

/// The row after an administrator allowed a replacement; None when nobody asks for one any more.
pub fn allow_replacement(facts: &Facts, moment: &Moment) -> Option<WorkerRow> {
    let ask = facts.replacement.as_ref()?;
    let candidate: Option<WorkerUuid> = assess::repeats(&ask.sighting, moment.now).then_some(ask.uuid);
    Some(WorkerRow { replace_allowed_for: Some(candidate?), ..facts.row.clone() })
}

/// 401: the key is known, but not as this worker's.
fn worker_unknown() -> ApiError {
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        error_reason::WORKER_UNKNOWN,
        "this worker is unknown here, as after it was deleted; join again with the join token",
    )
}

/// 426: the worker speaks another version.
pub fn unsupported_protocol(protocol: u32) -> ApiError {
    let which = if protocol < PROTOCOL_VERSION { "worker" } else { "server" };
    let message = format!(
        "the worker speaks protocol {protocol} and the server {} speaks {PROTOCOL_VERSION}; update the {which}",
        env!("CARGO_PKG_VERSION")
    );
    ApiError::new(StatusCode::UPGRADE_REQUIRED, error_reason::PROTOCOL_UNSUPPORTED, message)
}

/// 409, for the host that is refused.
pub fn identity_duplicated(worker: &Worker) -> ApiError {
    let facts = worker.facts();
    let message = format!(
        "the host {} at {} is alive and uses the same identity, as worker {}: one data directory is a copy of the \
         other; give this host an empty one",
        facts.row.hostname, facts.row.ip, facts.row.name
    );
    ApiError::new(StatusCode::CONFLICT, error_reason::IDENTITY_DUPLICATED, message)
}

/// 409, for the host that asks.
pub fn replacement_needed(worker: &Worker) -> ApiError {
    let facts = worker.facts();
    let message = format!(
        "the name {} belongs to the host {} at {}, which is gone; an administrator can let this host take its place \
         on that worker's page, or choose another --worker-name",
        facts.row.name, facts.row.hostname, facts.row.ip
    );
    ApiError::new(StatusCode::CONFLICT, error_reason::REPLACEMENT_NEEDED, message)
}

fn name_taken(holder: &Worker) -> ApiError {
    let facts = holder.facts();
    ApiError::already_exists(format!(
        "the name {} is taken by the host {} at {}; choose another --worker-name, or delete that worker first",
        facts.row.name, facts.row.hostname, facts.row.ip
    ))
}

fn wished_name(request: &RegisterRequest) -> Result<Option<String>, ApiError> {
    request.name.as_deref().map(check::name).transpose()
}

fn own_or_free(registry: &Registry, id: WorkerId, name: String) -> Result<String, ApiError> {
    match registry.by_name(&name) {
        Some(holder) if holder.id() != id => Err(name_taken(&holder)),
        _ => Ok(name),
    }
}

fn free_name(registry: &Registry, request: &RegisterRequest) -> Result<String, ApiError> {
    let is_free = |name: &String| registry.by_name(name).is_none();
    let previous = request.previous_name.as_deref().and_then(|name| check::name(name).ok());
    if let Some(previous) = previous.filter(is_free) {
        return Ok(previous);
    }
    let hostname: String = request.hostname.trim().chars().take(check::NAME_MAX_CHARS - SUFFIX_CHARS).collect();
    let base = if hostname.is_empty() { "worker".to_owned() } else { hostname };
    if is_free(&base) {
        return Ok(base);
    }
    for _ in 0..SUFFIX_TRIES {
        let name = format!("{base}-{}", suffix().map_err(ApiError::internal)?);
        if is_free(&name) {
            return Ok(name);
        }
    }
    Err(ApiError::unavailable("no free name was found; try again", 1))
}

/// Five letters and digits that are not taken for one another.
fn suffix() -> io::Result<String> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let drawn = crate::random::bytes::<5>()?;
    Ok(drawn.iter().filter_map(|byte| LETTERS.get(usize::from(byte % 32))).copied().map(char::from).collect())
}
