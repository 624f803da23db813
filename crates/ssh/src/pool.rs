//! Sessions that are shared: one for each chain of servers and users, however many forwards go over it. No more of them
//! are made with one server at a time than it takes.

use crate::address::{Endpoint, HopName};
use crate::error::ConnectError;
use crate::route::{Hop, Route};
use crate::session::{Connector, Session, WeakSession};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

type Slot = Arc<tokio::sync::Mutex<WeakSession>>;

/// sshd drops some of those that are logging in from the tenth on (`MaxStartups 10:30:100`), and others log in there too.
const LOGINS_AT_ONCE: usize = 6;

/// Hands out sessions, and makes those that are not there.
///
/// It keeps none: a session ends when nobody uses it any more. Routes that begin alike share the sessions with the
/// bastions that they have in common.
#[derive(Debug)]
pub struct Sessions {
    connector: Connector,
    slots: Mutex<HashMap<Vec<HopName>, Slot>>,
    /// Places for logins, for each server, whoever logs in.
    logins: Mutex<HashMap<Endpoint, Arc<Semaphore>>>,
}

impl Sessions {
    /// No session stands yet.
    pub fn new(connector: Connector) -> Self {
        Self { connector, slots: Mutex::default(), logins: Mutex::default() }
    }

    /// The session at the end of `route`: the one that stands, or a new one. Whoever asks while it is being made waits
    /// for the same one; where that fails, each tries for itself, one after the other.
    pub async fn get(&self, route: &Route) -> Result<Session, ConnectError> {
        let mut chain = vec![route.first().name.clone()];
        let mut session = self.hop(&chain, route.first(), None).await?;
        for hop in route.further() {
            chain.push(hop.name.clone());
            session = self.hop(&chain, hop, Some(&session)).await?;
        }
        Ok(session)
    }

    async fn hop(&self, chain: &[HopName], hop: &Hop, via: Option<&Session>) -> Result<Session, ConnectError> {
        let slot = self.slot(chain);
        let mut standing = slot.lock().await;
        if let Some(session) = standing.living() {
            return Ok(session);
        }
        let logins = self.logins(&hop.name.server);
        // never closed, so there is always one to be had
        let _place = logins.acquire().await;
        let session = self.connector.connect_hop(hop, via).await?;
        *standing = session.downgrade();
        Ok(session)
    }

    fn logins(&self, server: &Endpoint) -> Arc<Semaphore> {
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        logins.retain(|_, places| Arc::strong_count(places) > 1);
        let places = logins.entry(server.clone()).or_insert_with(|| Arc::new(Semaphore::new(LOGINS_AT_ONCE)));
        Arc::clone(places)
    }

    fn slot(&self, chain: &[HopName]) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        // those that nobody waits at, and whose session has ended
        slots.retain(|_, slot| {
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|standing| standing.living().is_some())
        });
        Arc::clone(slots.entry(chain.to_vec()).or_default())
    }
}
