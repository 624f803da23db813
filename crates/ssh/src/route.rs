//! Ways to a server, through any number of bastions.

use crate::address::{Endpoint, HopName};
use crate::identity::Identity;
use thiserror::Error;

/// A server on the way, and how to log in there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Who logs in where.
    pub name: HopName,
    /// With what, in this order.
    pub identities: Vec<Identity>,
}

impl Hop {
    /// A hop with one way to log in.
    pub fn new(user: impl Into<String>, server: Endpoint, identity: Identity) -> Self {
        Self { name: HopName { user: user.into(), server }, identities: vec![identity] }
    }
}

/// The bastions in their order, and at the end the server on which forwards are made. Each is reached from the one before
/// it, which also resolves its name: `ProxyJump` of `ssh_config(5)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    first: Hop,
    further: Vec<Hop>,
}

/// Hops make no route.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RouteError {
    /// There is none.
    #[error("a route needs at least one server")]
    Empty,
    /// It leads in a circle.
    #[error("the route passes {0} twice")]
    Circle(HopName),
}

impl Route {
    /// The route over `hops`.
    pub fn new(hops: Vec<Hop>) -> Result<Self, RouteError> {
        for (index, hop) in hops.iter().enumerate() {
            if hops.iter().take(index).any(|earlier| earlier.name == hop.name) {
                return Err(RouteError::Circle(hop.name.clone()));
            }
        }
        let mut hops = hops.into_iter();
        let first = hops.next().ok_or(RouteError::Empty)?;
        Ok(Self { first, further: hops.collect() })
    }

    /// The nearest server.
    pub fn first(&self) -> &Hop {
        &self.first
    }

    /// The servers behind it, in their order.
    pub fn further(&self) -> &[Hop] {
        &self.further
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(user: &str, host: &str) -> Hop {
        Hop::new(user, Endpoint::new(host, 22), Identity::key_file("key"))
    }

    #[test]
    fn a_route_has_servers_and_no_circle() {
        assert_eq!(Route::new(vec![]), Err(RouteError::Empty));
        let circle = Route::new(vec![hop("u", "a"), hop("u", "b"), hop("u", "a")]);
        assert!(matches!(circle, Err(RouteError::Circle(name)) if name.to_string() == "u@a:22"));
        assert!(Route::new(vec![hop("u", "a"), hop("v", "a"), hop("u", "b")]).is_ok());
    }
}
