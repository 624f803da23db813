//! Whatever workers and administrators do, in whatever order: memory and database say the same, names and keys
//! belong to one worker each, and a worker that is alive keeps its place.

use super::*;
use crate::server::registry::time::ServerClock;
use crate::server::supervisor::Supervisor;
use api::{Maintenance, SessionId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const WORKERS: usize = 4;
const NAMES: [&str; 2] = ["npu-01", "npu-02"];

#[derive(Clone, Debug)]
enum Step {
    /// A run of a worker, on one of two hosts, under a name or none, with its own key or a new one, alone or with the
    /// token.
    Register {
        who: usize,
        host: u8,
        name: Option<usize>,
        new_key: bool,
        with_token: bool,
    },
    Leave(usize),
    Delete(usize),
    AllowReplacement(usize),
    Maintain(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..WORKERS;
    prop_oneof![
        4 => (who.clone(), 0u8..2, proptest::option::of(0..NAMES.len()), any::<bool>(), any::<bool>()).prop_map(
            |(who, host, name, new_key, with_token)| Step::Register { who, host, name, new_key, with_token }
        ),
        1 => who.clone().prop_map(Step::Leave),
        1 => who.clone().prop_map(Step::Delete),
        1 => who.clone().prop_map(Step::AllowReplacement),
        1 => who.prop_map(Step::Maintain),
        1 => (1u64..100).prop_map(Step::Wait),
    ]
}

struct Fleet {
    registry: Registry,
    store: Store,
    membership: Membership,
    /// How many keys each worker has made.
    keys: [u8; WORKERS],
    stop: CancellationToken,
    _dir: tempfile::TempDir,
}

fn uuid_of(who: usize) -> WorkerUuid {
    WorkerUuid(Uuid::from_u128(u128::try_from(who).unwrap() + 1))
}

impl Fleet {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("gpustack.db")).await.unwrap();
        let offline_timeout = Duration::from_mins(1);
        let registry = Registry::new(ServerClock::in_step(offline_timeout), Policy { offline_timeout }, Vec::new());
        let (membership, decider) =
            Membership::new(registry.clone(), store.clone(), Journal::default(), Links::default());
        let stop = CancellationToken::new();
        Supervisor::new(stop.clone()).start("decide", move |job| run(Arc::clone(&decider), job));
        Self { registry, store, membership, keys: [0; WORKERS], stop, _dir: dir }
    }

    fn id_of(&self, who: usize) -> Option<WorkerId> {
        self.registry.by_uuid(uuid_of(who)).map(|worker| worker.id())
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Register { who, host, name, new_key, with_token } => {
                self.keys[who] += u8::from(new_key);
                self.register(who, host, name, with_token).await;
            }
            Step::Leave(who) => {
                if let Some(worker) = self.registry.by_uuid(uuid_of(who)) {
                    worker.facts().leave(self.registry.clock().now());
                }
            }
            Step::Delete(who) => {
                if let Some(id) = self.id_of(who) {
                    assert!(self.membership.delete(id).await.unwrap());
                    assert!(self.registry.get(id).is_none());
                }
            }
            Step::AllowReplacement(who) => {
                if let Some(id) = self.id_of(who) {
                    self.membership.allow_replacement(id).await.unwrap();
                }
            }
            Step::Maintain(who) => {
                if let Some(id) = self.id_of(who) {
                    let maintenance = Some(Maintenance { enabled: true, message: None });
                    let change = WorkerChange { maintenance, ..WorkerChange::default() };
                    assert!(self.membership.change(id, change).await.unwrap().is_some());
                }
            }
            Step::Wait(seconds) => {
                // held only here: a database that works in real time would run into every deadline
                tokio::time::pause();
                for _ in 0..seconds {
                    tokio::time::advance(Duration::from_secs(1)).await;
                    self.registry.clock().tick();
                }
                tokio::time::resume();
            }
        }
    }

    async fn register(&mut self, who: usize, host: u8, name: Option<usize>, with_token: bool) {
        let request = RegisterRequest {
            protocol: api::PROTOCOL_VERSION,
            version: "1".into(),
            worker_uuid: uuid_of(who),
            session_id: SessionId(Uuid::new_v4()),
            host_key: format!("host {host} of {who}"),
            name: name.map(|name| NAMES[name].to_owned()),
            previous_name: None,
            hostname: "host".into(),
            ip: "10.0.0.1".into(),
            port: 10150,
            labels: BTreeMap::new(),
            system_reserved: None,
        };
        let key = link::PublicKey::from_bytes([self.keys[who] * 8 + u8::try_from(who).unwrap(); 32]);
        let known_key = self.registry.by_uuid(uuid_of(who)).and_then(|worker| worker.facts().row.link_key);
        let proof = if with_token { Proof::JoinToken } else { Proof::Key };
        let alive_before = self.alive_holder(name);
        match self.membership.register(request, proof, key).await {
            Ok(worker) => {
                let facts = worker.facts();
                assert_eq!(facts.row.uuid, uuid_of(who));
                assert!(name.is_none_or(|name| facts.row.name == NAMES[name]));
                assert!(with_token || known_key == Some(key), "let in by a key that is not its own");
                assert_eq!(facts.row.link_key, Some(key));
                assert!(alive_before.is_none_or(|holder| holder == uuid_of(who)), "a living worker lost its name");
            }
            Err(error) => assert!(matches!(error.status().as_u16(), 401 | 409), "{error:?}"),
        }
    }

    /// Who holds the name and is alive.
    fn alive_holder(&self, name: Option<usize>) -> Option<WorkerUuid> {
        let holder = self.registry.by_name(NAMES[name?])?;
        let facts = holder.facts();
        let liveness =
            crate::server::registry::assess::liveness(&facts, &self.registry.moment(), self.registry.policy());
        let is_lost = matches!(liveness, crate::server::registry::assess::Liveness::Lost { .. });
        (!is_lost).then_some(facts.row.uuid)
    }

    async fn check(&self) {
        let mut stored: Vec<WorkerRow> =
            self.store.load_workers().await.unwrap().into_iter().map(|worker| worker.row).collect();
        stored.reverse();
        let known: Vec<WorkerRow> = self.registry.all().iter().map(|worker| worker.facts().row.clone()).collect();
        assert_eq!(known, stored);
        for row in &known {
            assert_eq!(self.registry.by_name(&row.name).unwrap().id(), row.id);
            assert_eq!(self.registry.by_uuid(row.uuid).unwrap().id(), row.id);
            assert!(self.registry.knows_link_key(&row.link_key.unwrap()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn memory_and_database_say_the_same_whatever_is_done(steps in proptest::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut fleet = Fleet::new().await;
            for step in steps {
                fleet.take(step).await;
                fleet.check().await;
            }
            fleet.stop.cancel();
        });
    }
}
