//! The port on which the worker answers health checks: free, the worker's own, or somebody else's.

use crate::server::dial::{Way, dial_worker};
use crate::worker::{self, BindError};
use api::{Check, HostReason, PortHolder, Seen, Severity, WorkerUuid};
use axum::Router;
use axum::response::Json;
use axum::routing::get;
use serde::Deserialize;
use serde_json::json;
use std::future::IntoFuture;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Whoever has the port is on this host.
const ASK_DEADLINE: Duration = Duration::from_secs(3);

/// The port, and, while it was free, a listener that answers as the worker would.
pub(super) struct Port {
    /// What there is to say of it.
    pub check: Check,
    /// Who answers there; None when no worker does, so that the server need not try.
    pub answering: Option<WorkerUuid>,
    /// Stops answering when it is dropped.
    _stand_in: Option<StandIn>,
}

struct StandIn(JoinHandle<()>);

impl Drop for StandIn {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Deserialize)]
struct Health {
    worker_uuid: WorkerUuid,
}

/// Looks who has `port`. `own` is the worker of this data directory.
pub(super) async fn look(port: u16, own: WorkerUuid) -> Port {
    let with = |holder, trouble: Option<HostReason>| {
        let seen = Seen::WorkerPort { port, holder };
        match trouble {
            Some(trouble) => Check::bad(seen, Severity::Error, trouble),
            None => Check::good(seen),
        }
    };
    match worker::bind(port).await {
        Ok(listener) => {
            let health = move || async move { Json(json!({"status": "ok", "worker_uuid": own})) };
            let router = Router::new().route("/healthz", get(health));
            let serving = axum::serve(listener, router).into_future();
            let stand_in = StandIn(tokio::spawn(async move { drop(serving.await) }));
            Port { check: with(PortHolder::Nobody, None), answering: Some(own), _stand_in: Some(stand_in) }
        }
        Err(BindError::InUse { .. }) => match holder(port).await {
            Some(uuid) if uuid == own => {
                Port { check: with(PortHolder::ThisWorker, None), answering: Some(own), _stand_in: None }
            }
            Some(worker_uuid) => {
                let trouble = HostReason::PortOfOtherWorker { port, worker_uuid };
                Port { check: with(PortHolder::OtherWorker, Some(trouble)), answering: None, _stand_in: None }
            }
            None => {
                let trouble = HostReason::PortInUse { port };
                Port { check: with(PortHolder::OtherProgram, Some(trouble)), answering: None, _stand_in: None }
            }
        },
        Err(BindError::Other { source, .. }) => {
            let trouble = HostReason::PortUnusable { port, error: source.to_string() };
            Port { check: with(PortHolder::Unknown, Some(trouble)), answering: None, _stand_in: None }
        }
    }
}

/// The worker that answers at the port.
async fn holder(port: u16) -> Option<WorkerUuid> {
    let way = Way::Direct { ip: Ipv4Addr::LOCALHOST.to_string(), port };
    let answer = dial_worker(&[way], "/healthz", ASK_DEADLINE).await.ok()?;
    serde_json::from_slice::<Health>(answer.response.body()).ok().map(|health| health.worker_uuid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;
    use uuid::Uuid;

    fn uuid(number: u128) -> WorkerUuid {
        WorkerUuid(Uuid::from_u128(number))
    }

    fn holder_of(port: &Port) -> PortHolder {
        let Seen::WorkerPort { holder, .. } = port.check.seen else { panic!("{:?}", port.check) };
        holder
    }

    async fn free_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
    }

    #[tokio::test]
    async fn a_free_port_is_answered_for_as_long_as_one_looks() {
        let number = free_port().await;
        let port = look(number, uuid(1)).await;
        assert_eq!((holder_of(&port), port.answering), (PortHolder::Nobody, Some(uuid(1))));
        assert_eq!(holder(number).await, Some(uuid(1)));
        // another look meets the stand-in of this one
        assert_eq!(holder_of(&look(number, uuid(1)).await), PortHolder::ThisWorker);
        let of_other = look(number, uuid(2)).await;
        assert_eq!((holder_of(&of_other), of_other.answering), (PortHolder::OtherWorker, None));
    }

    #[tokio::test]
    async fn a_port_of_another_program_is_told() {
        let number = free_port().await;
        let listener = worker::bind(number).await.unwrap();
        let port = look(number, uuid(1)).await;
        drop(listener);
        assert_eq!((holder_of(&port), port.answering), (PortHolder::OtherProgram, None));
        assert_eq!(port.check.problem.unwrap().trouble, HostReason::PortInUse { port: number }.into());
    }
}
