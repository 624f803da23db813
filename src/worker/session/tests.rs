use super::*;
use crate::worker::address::AddressSetting;
use crate::worker::transport::fake::{Call, FakeTransport, Reply, Said};
use api::{ServerUrl, WorkerStatus};
use uuid::Uuid;

const TOKEN: &str = "c8e291d8045736ab3aa5ddb6de619291";

struct Running {
    server: Arc<FakeTransport>,
    identity: Arc<Identity>,
    state: watch::Receiver<SessionState>,
    latest: watch::Sender<Option<Arc<WorkerStatus>>>,
    shutdown: CancellationToken,
    keeper: tokio::task::JoinHandle<()>,
    _data_dir: tempfile::TempDir,
}

impl Running {
    async fn stop(self) {
        self.shutdown.cancel();
        self.keeper.await.unwrap();
    }

    async fn until_up(&mut self) {
        self.state.wait_for(|state| *state == SessionState::Up).await.unwrap();
    }
}

/// A worker in front of `server`, with a join token and, when given, the credential of an earlier run.
fn start(server: FakeTransport, token: Option<&str>, credential: Option<&str>) -> Running {
    let data_dir = tempfile::tempdir().unwrap();
    let identity = Arc::new(Identity::load(data_dir.path()).unwrap());
    if let Some(credential) = credential {
        identity.keep_credential(Secret::new(credential)).unwrap();
    }
    let server = Arc::new(server);
    let server_url = ServerUrl::parse("http://10.0.0.1:8090").unwrap();
    let address = AddressSetting::Given("10.0.0.7".parse().unwrap());
    let (state_sender, state) = watch::channel(SessionState::Joining { cause: None });
    let (latest, latest_status) = watch::channel(Some(Arc::new(WorkerStatus::default())));
    let keeper = SessionKeeper {
        transport: Arc::clone(&server) as Arc<dyn Transport>,
        identity: Arc::clone(&identity),
        addresses: Arc::new(AddressBook::new(address, server_url).unwrap()),
        latest_status,
        state: state_sender,
        link: None,
        profile: Profile {
            session_id: SessionId(Uuid::new_v4()),
            token: token.map(|token| JoinToken::parse(token).unwrap()),
            name: Some("npu-1".to_owned()),
            port: 10150,
            system_reserved: SystemReserved::default(),
        },
    };
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let keeper = tokio::spawn(async move { keeper.run(stop).await });
    Running { server, identity, state, latest, shutdown, keeper, _data_dir: data_dir }
}

fn refused() -> JoinError {
    JoinError::Refused { address: "10.0.0.1:8090".to_owned() }
}

fn credential_refused() -> JoinError {
    JoinError::CredentialRefused { address: "10.0.0.1:8090".to_owned() }
}

fn proofs(calls: &[Call]) -> Vec<Proof> {
    let proof = |call: &Call| match &call.said {
        Said::Begin { proof, .. } => Some(proof.clone()),
        _ => None,
    };
    calls.iter().filter_map(proof).collect()
}

fn beats(calls: &[Call]) -> Vec<Call> {
    calls.iter().filter(|call| matches!(call.said, Said::Beat { .. })).cloned().collect()
}

fn token() -> Proof {
    Proof::JoinToken(JoinToken::parse(TOKEN).unwrap())
}

fn credential(text: &str) -> Proof {
    Proof::Credential(Secret::new(text))
}

#[tokio::test(start_paused = true)]
async fn a_new_worker_joins_with_the_token_and_from_then_on_uses_its_own_credential() {
    let mut server = FakeTransport::default();
    server.on_beat = Box::new(|number| match number {
        0 => Reply::Fail(JoinError::SessionReplaced),
        _ => Reply::Answer(false),
    });
    let running = start(server, Some(TOKEN), None);
    let calls = running.server.until(|calls| beats(calls).len() == 2).await;
    assert_eq!(proofs(&calls), [token(), credential("credential")]);
    assert_eq!(running.identity.name().as_deref(), Some("npu-1"));
    let Said::Beat { credential, .. } = &beats(&calls)[1].said else { panic!() };
    assert_eq!(credential, "credential");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_worker_joins_anew_with_the_token_and_keeps_what_it_gets() {
    let mut server = FakeTransport::default();
    server.on_begin = Box::new(|_, proof| match proof {
        Proof::Credential(secret) if secret.expose() == "old" => Reply::Fail(credential_refused()),
        _ => Reply::Answer(Some("new")),
    });
    let mut running = start(server, Some(TOKEN), Some("old"));
    running.until_up().await;
    assert_eq!(proofs(&running.server.calls()), [credential("old"), token()]);
    assert_eq!(running.identity.credential(), Some(Secret::new("new")));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_token_a_deleted_worker_keeps_its_credential_and_asks_slowly() {
    let mut server = FakeTransport::default();
    server.on_begin = Box::new(|_, _| Reply::Fail(credential_refused()));
    let running = start(server, None, Some("old"));
    let calls = running.server.until(|calls| calls.len() == 5).await;
    assert_eq!(proofs(&calls), vec![credential("old"); 5]);
    assert!(calls[4].at >= 4 * SLOW_PAUSES.0, "{:?}", calls[4].at);
    assert_eq!(running.identity.credential(), Some(Secret::new("old")));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_back_after_a_long_time_is_joined() {
    let mut server = FakeTransport::default();
    let start_at = Instant::now();
    server.on_begin = Box::new(move |_, _| match start_at.elapsed() {
        elapsed if elapsed < Duration::from_mins(10) => Reply::Fail(refused()),
        _ => Reply::Answer(Some("credential")),
    });
    let mut running = start(server, Some(TOKEN), None);
    running.until_up().await;
    assert!(start_at.elapsed() <= Duration::from_mins(10) + LONGEST_PAUSE);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_session_state_tells_why_there_is_no_session() {
    let mut server = FakeTransport::default();
    server.on_begin = Box::new(|number, _| match number {
        0 => Reply::Fail(refused()),
        _ => Reply::Answer(Some("credential")),
    });
    let mut running = start(server, Some(TOKEN), None);
    let cause = |state: &SessionState| matches!(state, SessionState::Joining { cause: Some(_) });
    let state = running.state.wait_for(cause).await.unwrap().clone();
    assert_eq!(state, SessionState::Joining { cause: Some(refused().to_string()) });
    running.until_up().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_servers_wish_for_a_pause_is_kept() {
    let mut server = FakeTransport::default();
    server.on_begin = Box::new(|number, _| match number {
        0 => {
            Reply::Fail(JoinError::Unavailable { status: 503, message: "starting".to_owned(), retry_after_s: Some(20) })
        }
        _ => Reply::Answer(Some("credential")),
    });
    let running = start(server, Some(TOKEN), None);
    let calls = running.server.until(|calls| proofs(calls).len() == 2).await;
    let second = calls.iter().filter(|call| matches!(call.said, Said::Begin { .. })).nth(1).unwrap();
    assert!(second.at >= Duration::from_secs(20), "{:?}", second.at);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_dies_is_followed_by_a_new_session() {
    let mut server = FakeTransport::default();
    server.on_beat = Box::new(|number| if number == 1 { Reply::Panic } else { Reply::Answer(false) });
    let running = start(server, Some(TOKEN), None);
    let calls = running.server.until(|calls| beats(calls).len() == 5).await;
    assert_eq!(proofs(&calls).len(), 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_report_that_hangs_does_not_hold_up_the_heartbeat() {
    let mut server = FakeTransport::default();
    server.on_report = Box::new(|_| Reply::Hang);
    let running = start(server, Some(TOKEN), None);
    let calls = running.server.until(|calls| beats(calls).len() == 6).await;
    assert!(calls.iter().any(|call| matches!(call.said, Said::Report(_))));
    assert_eq!(proofs(&calls).len(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_lost_is_joined_again_and_told_everything() {
    let mut server = FakeTransport::default();
    server.on_beat =
        Box::new(|number| if (2..20).contains(&number) { Reply::Fail(refused()) } else { Reply::Answer(false) });
    let running = start(server, Some(TOKEN), None);
    let calls = running.server.until(|calls| {
        let reports = calls.iter().filter(|call| matches!(call.said, Said::Report(_))).count();
        reports == 2 && beats(calls).len() > 21
    });
    calls.await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_says_so() {
    let mut running = start(FakeTransport::default(), Some(TOKEN), None);
    running.until_up().await;
    let server = Arc::clone(&running.server);
    running.stop().await;
    let calls = server.calls();
    let Said::Beat { request, .. } = &calls.last().unwrap().said else { panic!("{calls:?}") };
    assert!(request.leaving);
}

#[tokio::test(start_paused = true)]
async fn a_worker_presents_itself_as_gpustack_workers_do() {
    let running = start(FakeTransport::default(), Some(TOKEN), None);
    let calls = running.server.until(|calls| !calls.is_empty()).await;
    let Said::Begin { request, .. } = &calls[0].said else { panic!() };
    assert_eq!((request.ip.as_str(), request.port), ("10.0.0.7", 10150));
    assert_eq!(request.labels["worker-name"], "npu-1");
    assert_eq!(request.labels["os"], "linux");
    assert!(["amd64", "arm64"].contains(&request.labels["arch"].as_str()));
    assert_eq!(request.worker_uuid, running.identity.uuid());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_detection_is_reported_in_its_session() {
    let running = start(FakeTransport::default(), Some(TOKEN), None);
    running.server.until(|calls| calls.iter().any(|call| matches!(call.said, Said::Report(_)))).await;
    let status = WorkerStatus { gpu_devices: Some(Vec::new()), ..WorkerStatus::default() };
    running.latest.send_replace(Some(Arc::new(status.clone())));
    let is_new = |call: &Call| matches!(&call.said, Said::Report(reported) if **reported == status);
    running.server.until(|calls| calls.iter().any(is_new)).await;
    running.stop().await;
}
