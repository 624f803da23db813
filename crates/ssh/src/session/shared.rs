//! What a session, its protocol task and its streams share.

use crate::address::HopName;
use crate::end::{EndSlot, SessionEnd};
use crate::session::closings::Closings;
use crate::session::incoming::IncomingRegistry;
use crate::session::open_failures::OpenFailures;
use crate::session::slow_readers::SlowReaders;
use crate::wire::Pulse;
use std::sync::Arc;
use std::time::Duration;
use tokio::time;
use tokio_util::sync::CancellationToken;

/// How long after a sign that a session has ended its cause is known. It mostly is at once.
const CAUSE_DEADLINE: Duration = Duration::from_secs(1);

pub(crate) struct Shared {
    pub hop: HopName,
    /// What is below: the session with the bastion before.
    pub via: Option<Arc<Shared>>,
    pub pulse: Arc<Pulse>,
    pub end: EndSlot,
    /// Ends the byte stream.
    pub cut: CancellationToken,
    /// The protocol task has nothing more to do.
    pub over: CancellationToken,
    pub incoming: IncomingRegistry,
    pub open_failures: OpenFailures,
    pub closings: Closings,
    pub slow_readers: SlowReaders,
}

impl Shared {
    pub fn new(hop: HopName, via: Option<Arc<Shared>>) -> Arc<Self> {
        Arc::new(Self {
            hop,
            via,
            pulse: Pulse::new(),
            end: EndSlot::new(),
            cut: CancellationToken::new(),
            over: CancellationToken::new(),
            incoming: IncomingRegistry::default(),
            open_failures: OpenFailures::new(),
            closings: Closings::default(),
            slow_readers: SlowReaders::default(),
        })
    }

    /// How many sessions carry this one.
    pub fn depth(&self) -> u32 {
        self.via.as_ref().map_or(0, |via| via.depth() + 1)
    }

    /// Ends the session. When what carried it has ended, that is why.
    pub fn end_with(&self, end: SessionEnd) {
        let carrier_end = self.via.as_ref().and_then(|via| Some((via.hop.clone(), via.end.get()?)));
        self.end.set(match carrier_end {
            Some((hop, end)) => SessionEnd::Via { hop, end: Arc::new(end) },
            None => end,
        });
        self.cut.cancel();
    }

    /// Why the session does not answer any more.
    pub async fn why_ended(&self) -> SessionEnd {
        let known = time::timeout(CAUSE_DEADLINE, self.end.wait()).await;
        known.unwrap_or_else(|_| SessionEnd::Broken { what: "it does not answer any more".to_owned() })
    }
}
