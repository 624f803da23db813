//! The tunnel agent: keeps the forwards of a plan, and tells how they are.
//!
//! A `keeper` for each forward makes it, probes through it, and makes it again. What becomes of them is on the `board`,
//! from which the server is told over a link (`reporter`), and `gpustack tunnel status` over a socket ([`status_socket`]).

mod board;
pub mod certificates;
mod clock;
mod fault;
mod history;
mod join_words;
mod keeper;
mod other_agent;
mod probe;
mod reporter;
pub mod status_socket;
mod view;

pub use reporter::Joined;
pub use view::Status;

use crate::config::{JoinToken, ServerTrust};
use crate::data_dir::{DataDir, DataDirError, LockName};
use crate::tunnel::plan::{Plan, PlannedForward, Reporting, label};
use crate::worker::{Line, LineSettings, LinkSetupError};
use api::{ForwardDirection, ForwardState, ServerUrl, ServerUrlError, TunnelAgentUuid};
use app::i18n::system_words::SystemCause;
use app::i18n::{Language, tunnel_status};
use board::Board;
use keeper::{Keeper, Shared, Signals};
use probe::Expected;
use reporter::Reporter;
use ssh::{Connector, KnownHosts, NoPassphrases, RouteError, Sessions, TcpTransport, Tuning};
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use view::View;

/// In the state directory.
const UUID_FILE: &str = "agent_uuid";
/// What is remembered reaches the disk this often.
const SAVE_INTERVAL: Duration = Duration::from_mins(1);
/// For the first server of a route. A path that comes back is found by the next attempt, so none is to last long.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// For the first attempt of a forward: connecting, logging in, and asking through it.
const FIRST_WAY_DEADLINE: Duration = Duration::from_secs(20);
/// Longer than a forward takes to let its connections end.
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// How often the link of an agent takes new keys; as a worker's, when nothing else is set.
const KEY_ROTATION: Duration = Duration::from_hours(24);

/// Why an agent cannot run. Trouble with the network, with SSH servers or with the gpustack server is never among it: that
/// passes.
#[derive(Debug, Error)]
pub enum AgentError {
    /// Its state directory.
    #[error("{}", state_words(.0))]
    State(#[from] DataDirError),
    /// Its status socket.
    #[error("cannot listen at the socket for the status in {state_dir}: {}", SystemCause::of(source).words(Language::En))]
    Socket {
        /// The state directory.
        state_dir: String,
        /// The cause.
        source: io::Error,
    },
    /// Another agent runs with it.
    #[error(
        "another tunnel agent (process {pid}) runs with the state directory {state_dir}; stop that one first, or write \
         another `state_dir` in tunnels.yaml"
    )]
    InUse {
        /// The state directory.
        state_dir: String,
        /// Its process.
        pid: u32,
    },
    /// Somebody else could put known hosts and keys into it.
    #[error("other users may write in the state directory {state_dir} (mode {mode:o}); `chmod 700 {state_dir}`")]
    StateNotPrivate {
        /// The state directory.
        state_dir: String,
        /// Its permission bits.
        mode: u32,
    },
    /// A forward leads in a circle.
    #[error("the forward {forward}: {source}")]
    Route {
        /// Which.
        forward: String,
        /// The cause.
        source: RouteError,
    },
}

/// What is wrong with a state directory, in words of the agent's file, which has no flags.
fn state_words(error: &DataDirError) -> String {
    let (doing, path, source) = match error {
        DataDirError::Folder { path, source } => ("use the state directory", path, source),
        DataDirError::Read { path, source } => ("read", path, source),
        DataDirError::Write { path, source } => ("write", path, source),
        DataDirError::Missing { .. } | DataDirError::InUse { .. } | DataDirError::Token { .. } => {
            return error.to_string();
        }
    };
    let cause = SystemCause::of(source).words(Language::En);
    format!(
        "cannot {doing} {}: {cause}; `state_dir` in tunnels.yaml must be a folder that this user may write to",
        path.display()
    )
}

/// Why an agent does not tell its server about its forwards.
#[derive(Debug, Error)]
enum ReportingError {
    /// Its state directory.
    #[error(transparent)]
    State(#[from] DataDirError),
    /// Its identity is damaged.
    #[error("{path} does not hold an agent's identity; remove it, and the agent joins the server as a new one")]
    Identity {
        /// The file.
        path: String,
    },
    /// Its link cannot be set up.
    #[error(transparent)]
    Link(#[from] LinkSetupError),
    /// The server's URL.
    #[error("the server URL {url} cannot be used: {source}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong.
        source: ServerUrlError,
    },
    /// It has never joined and has nothing to join with.
    #[error(
        "there is no token to join the server with: name its file with `token_file` in tunnels.yaml and start the agent \
         again, or write `report: false`"
    )]
    NoToken,
}

impl ReportingError {
    /// In Chinese, what operators meet.
    fn chinese(&self) -> Option<String> {
        match self {
            Self::NoToken => Some(
                "没有用于加入服务端的令牌：请在 tunnels.yaml 中用 `token_file` 指定令牌文件并重启代理，或写 `report: false`"
                    .to_owned(),
            ),
            Self::Identity { path } => {
                Some(format!("{path} 中不是代理的身份；请删除它，代理会以新身份加入服务端"))
            }
            Self::State(_) | Self::Link(_) | Self::Url { .. } => None,
        }
    }
}

/// A `tunnels.yaml` that was changed: the new plan, or why there is none.
pub type NewPlan = Result<Plan, Refusal>;

/// Why a changed file is not taken over. In all languages, as nobody knows here who reads it where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// English.
    pub english: String,
    /// Simplified Chinese.
    pub chinese: String,
}

/// A server takes twice as much; what stands first is enough to begin with.
const REFUSAL_MAX_BYTES: usize = 4 * 1024;

impl Refusal {
    /// What is said in each language.
    pub fn new(text: impl Fn(Language) -> String) -> Self {
        let said = |language| shortened(text(language), REFUSAL_MAX_BYTES);
        Self { english: said(Language::En), chinese: said(Language::Zh) }
    }
}

/// As many lines as fit.
fn shortened(text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let fits = text.floor_char_boundary(max_bytes);
    let beginning = text.get(..fits).unwrap_or_default();
    let lines = beginning.rsplit_once('\n').map_or(beginning, |(lines, _)| lines);
    format!("{lines}\n…")
}

/// Keeps the forwards of `plan` until `shutdown`, and those of another one from when it arrives by `plans`. `token` is the
/// join token.
pub async fn run(
    plan: Plan,
    token: Option<JoinToken>,
    plans: mpsc::Receiver<NewPlan>,
    shutdown: CancellationToken,
) -> Result<(), AgentError> {
    let state = open_state(&plan)?;
    let _lock = state.lock(LockName::Tunnels).map_err(|error| match error {
        DataDirError::InUse { path, pid } => AgentError::InUse { state_dir: path.display().to_string(), pid },
        error => error.into(),
    })?;
    let board = Board::open(&state)?;
    let socket = status_socket::bind(&state)
        .map_err(|source| AgentError::Socket { state_dir: state.path().display().to_string(), source })?;
    let plan = Arc::new(plan);
    let (expected, expected_seen) = watch::channel(Expected::default());
    let (joined, joined_seen) = watch::channel(Joined::Off);
    let view = View::new(board.clone(), Arc::clone(&plan), joined_seen);
    let reporter = plan.reporting.as_ref().and_then(|reporting| {
        ToReport { state: &state, plan: &plan, reporting, token, view: &view, expected, joined }.reporter()
    });
    let mut fleet = Fleet::new(board.clone(), expected_seen);
    fleet.take_over(&plan)?;
    tracing::info!(tunnel = label(&plan.id), forwards = plan.forwards.len(), "the tunnel agent keeps its forwards");

    let reporting = async {
        match &reporter {
            Some(reporter) => {
                shutdown.run_until_cancelled(first_way(&board, &plan)).await;
                reporter.run(shutdown.clone()).await;
            }
            None => shutdown.cancelled().await,
        }
    };
    let serving = shutdown.run_until_cancelled(status_socket::serve(socket, view.clone()));
    let saving = shutdown.run_until_cancelled(keep_saving(&board, &state));
    let changing = shutdown.run_until_cancelled(take_plans(plans, &mut fleet, &view));
    tokio::join!(reporting, serving, saving, changing);
    fleet.stop().await;
    if let Err(error) = board.save(&state) {
        tracing::error!(%error, "the history of the forwards cannot be kept");
    }
    Ok(())
}

fn open_state(plan: &Plan) -> Result<DataDir, AgentError> {
    let state = DataDir::open(&plan.state_dir)?;
    let unreadable = |source| DataDirError::Folder { path: plan.state_dir.clone(), source };
    let mode = std::fs::metadata(state.path()).map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & 0o022 == 0 {
        return Ok(state);
    }
    Err(AgentError::StateNotPrivate { state_dir: state.path().display().to_string(), mode })
}

/// What an agent needs to tell its server about its forwards.
struct ToReport<'a> {
    state: &'a DataDir,
    plan: &'a Plan,
    reporting: &'a Reporting,
    token: Option<JoinToken>,
    view: &'a View,
    /// Told which server it has joined.
    expected: watch::Sender<Expected>,
    /// Told whether it has.
    joined: watch::Sender<Joined>,
}

impl ToReport<'_> {
    /// The forwards are made whether or not the server can be told of them: what is wrong with that is told in the log and
    /// in the status.
    fn reporter(self) -> Option<Reporter> {
        let joined = self.joined.clone();
        match self.try_reporter() {
            Ok(reporter) => Some(reporter),
            Err(error) => {
                tracing::error!("the forwards are kept, and the server is not told of them: {error}");
                joined.send_replace(Joined::Joining { cause: Some(error.to_string()), cause_zh: error.chinese() });
                None
            }
        }
    }

    fn try_reporter(self) -> Result<Reporter, ReportingError> {
        let Self { state, plan, reporting, token, view, expected, joined } = self;
        let url = &reporting.server_url;
        let server_url = ServerUrl::parse(url).map_err(|source| ReportingError::Url { url: url.clone(), source })?;
        let line = Line::open(&LineSettings {
            server_url,
            token,
            trust: ServerTrust::LinkAlone,
            data_dir: state.path().to_owned(),
            key_rotation: KEY_ROTATION,
        })?;
        if !line.can_join() {
            return Err(ReportingError::NoToken);
        }
        if let Some(key) = line.server_key() {
            expected.send_replace(Expected { server: Some(key.fingerprint()) });
        }
        joined.send_replace(Joined::Joining { cause: None, cause_zh: None });
        let (uuid, name) = (agent_uuid(state)?, plan.id.to_string());
        Ok(Reporter { line, uuid, name, view: view.clone(), expected, joined })
    }
}

/// Waits until the forward through which the server is dialled was tried, so that the log of each start does not begin with
/// a server that cannot be joined.
async fn first_way(board: &Board, plan: &Plan) {
    let url = plan.reporting.as_ref().map(|reporting| reporting.server_url.as_str()).unwrap_or_default();
    let address = url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/');
    let is_way = |forward: &&PlannedForward| {
        forward.direction == ForwardDirection::Local && forward.listen.to_string() == address
    };
    let Some(way) = plan.forwards.iter().find(is_way) else { return };
    let mut changes = board.changes();
    let tried = async {
        while board.state(&way.id).is_none_or(|state| state == ForwardState::Starting) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    };
    // what takes longer is told
    let _ = timeout(FIRST_WAY_DEADLINE, tried).await;
}

/// Who this agent is; made up on its first start.
fn agent_uuid(state: &DataDir) -> Result<TunnelAgentUuid, ReportingError> {
    let damaged = || ReportingError::Identity { path: state.file(UUID_FILE).display().to_string() };
    if let Some(text) = state.read(UUID_FILE)? {
        return text.trim().parse().map(TunnelAgentUuid).map_err(|_| damaged());
    }
    let uuid = Uuid::new_v4();
    state.write(UUID_FILE, &uuid.to_string())?;
    Ok(TunnelAgentUuid(uuid))
}

async fn keep_saving(board: &Board, state: &DataDir) {
    let mut round = interval(SAVE_INTERVAL);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        round.tick().await;
        if let Err(error) = board.save(state) {
            tracing::error!(%error, "the history of the forwards cannot be kept");
        }
    }
}

async fn take_plans(mut plans: mpsc::Receiver<NewPlan>, fleet: &mut Fleet, view: &View) {
    while let Some(new) = plans.recv().await {
        let new = new.and_then(|plan| check_change(&view.plan(), plan));
        match new {
            Ok(plan) => {
                let plan = Arc::new(plan);
                // every route of the plan was checked
                match fleet.take_over(&plan) {
                    Ok(changes) => tracing::info!(
                        kept = changes.kept,
                        started = changes.started,
                        stopped = changes.stopped,
                        "the changed file is in force"
                    ),
                    Err(error) => tracing::error!(%error, "the changed file is not taken over"),
                }
                view.set_plan(plan);
            }
            Err(why) => {
                tracing::error!("the changed file is not taken over; what was before is in force: {}", why.english);
                view.refuse_config(why);
            }
        }
    }
    std::future::pending::<()>().await;
}

/// What an agent cannot change while it runs.
fn check_change(old: &Plan, new: Plan) -> NewPlan {
    let same = (&old.id, &old.state_dir, &old.reporting) == (&new.id, &new.state_dir, &new.reporting);
    if same {
        return Ok(new);
    }
    Err(Refusal::new(|language| tunnel_status::messages(language).needs_restart.to_owned()))
}

/// The forwards that are kept.
struct Fleet {
    board: Board,
    expected: watch::Receiver<Expected>,
    signals: Signals,
    /// With what sessions are made.
    ground: Option<Ground>,
    /// By id.
    kept: HashMap<String, Kept>,
}

/// Which forwards may stand on the same sessions.
struct Ground {
    plan: Arc<Plan>,
    sessions: Arc<Sessions>,
}

struct Kept {
    forward: PlannedForward,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// What became of the forwards when another plan came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Changes {
    kept: usize,
    started: usize,
    stopped: usize,
}

impl Fleet {
    fn new(board: Board, expected: watch::Receiver<Expected>) -> Self {
        Self { board, expected, signals: Signals::default(), ground: None, kept: HashMap::new() }
    }

    /// Keeps the forwards of this plan and no others. Those that are the same as before go on without a break.
    fn take_over(&mut self, plan: &Arc<Plan>) -> Result<Changes, AgentError> {
        let same_ground = self
            .ground
            .as_ref()
            .is_some_and(|ground| ground.plan.session == plan.session && ground.plan.known_hosts == plan.known_hosts);
        let sessions = match &self.ground {
            Some(ground) if same_ground => Arc::clone(&ground.sessions),
            _ => Arc::new(sessions(plan)),
        };
        let shared = Shared {
            sessions: Arc::clone(&sessions),
            board: self.board.clone(),
            expected: self.expected.clone(),
            signals: self.signals.clone(),
        };
        let stays = |forward: &PlannedForward| {
            let kept = self.kept.get(forward.id.as_str());
            same_ground && kept.is_some_and(|kept| kept.forward == *forward)
        };
        let (staying, coming): (Vec<_>, Vec<_>) = plan.forwards.iter().partition(|forward| stays(forward));
        // before anything is changed
        let keepers = coming
            .into_iter()
            .map(|forward| Ok((forward.clone(), keeper(forward, &shared)?)))
            .collect::<Result<Vec<_>, AgentError>>()?;
        let remaining: HashMap<_, _> =
            staying.iter().filter_map(|forward| self.kept.remove_entry(forward.id.as_str())).collect();
        let mut changes = Changes { kept: remaining.len(), started: keepers.len(), stopped: self.kept.len() };
        let leaving: HashMap<_, _> = std::mem::replace(&mut self.kept, remaining);
        let mut ends: HashMap<String, JoinHandle<()>> = HashMap::new();
        for (key, kept) in leaving {
            kept.stop.cancel();
            ends.insert(key, kept.task);
        }
        for (forward, keeper) in keepers {
            let (key, stop) = (forward.id.to_string(), CancellationToken::new());
            let former = ends.remove(&key);
            changes.stopped -= usize::from(former.is_some());
            let run = keeper.run(stop.clone());
            let task = tokio::spawn(async move {
                // it has the port that this one wants
                if let Some(former) = former {
                    let _ = former.await;
                }
                run.await;
            });
            self.kept.insert(key, Kept { forward, stop, task });
        }
        self.ground = Some(Ground { plan: Arc::clone(plan), sessions });
        // the file was touched for a reason
        self.signals.retry.notify_waiters();
        Ok(changes)
    }

    async fn stop(self) {
        for kept in self.kept.values() {
            kept.stop.cancel();
        }
        let all = async {
            for (_, kept) in self.kept {
                if let Err(panic) = kept.task.await {
                    tracing::error!(%panic, "the keeper of a forward failed");
                }
            }
        };
        if timeout(STOP_DEADLINE, all).await.is_err() {
            tracing::warn!("the agent stops although some of its forwards have not ended");
        }
    }
}

fn keeper(forward: &PlannedForward, shared: &Shared) -> Result<Keeper, AgentError> {
    Keeper::new(forward.clone(), shared.clone())
        .map_err(|source| AgentError::Route { forward: forward.id.to_string(), source })
}

fn sessions(plan: &Plan) -> Sessions {
    let tuning = Tuning { connect_deadline: CONNECT_DEADLINE, ..plan.session.tuning.clone() };
    Sessions::new(Connector {
        transport: Arc::new(TcpTransport::new(tuning.connect_deadline)),
        known_hosts: KnownHosts::new(&plan.known_hosts.own, plan.known_hosts.others.clone()),
        passphrases: Arc::new(NoPassphrases),
        tuning,
    })
}

#[cfg(test)]
mod tests;
