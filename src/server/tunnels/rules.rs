//! Who may be which tunnel agent. Pure.

use super::check;
use super::facts::{AgentFacts, AgentStanding};
use crate::server::error::ApiError;
use crate::server::membership::Proof;
use crate::server::registry::assess::Policy;
use crate::server::registry::time::Moment;
use crate::server::store::tunnel_agents::TunnelAgentRow;
use api::{TunnelAgentId, TunnelAgentRequest, error_reason};
use http::StatusCode;

/// Each keeps a link and up to megabytes of what it told in memory.
const AGENTS_MAX: usize = 1_000;

/// What comes of an agent's wish to be let in.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its row, as it has to be; the id is 0 when it is new.
    pub row: TunnelAgentRow,
    /// An agent that is gone, whose name it takes and which is forgotten.
    pub displaced: Option<TunnelAgentId>,
}

/// Decides about an agent that has proved to own `key`.
pub fn admit(
    known: &[AgentFacts],
    request: &TunnelAgentRequest,
    proof: Proof,
    key: link::PublicKey,
    moment: &Moment,
    policy: &Policy,
) -> Result<Decision, ApiError> {
    let name = check::request(request)?;
    let itself = known.iter().find(|facts| facts.row.uuid == request.tunnel_agent);
    if proof == Proof::Key && itself.is_none_or(|facts| facts.row.link_key != key) {
        return Err(unknown());
    }
    let holder = known.iter().find(|facts| facts.row.name == name && facts.row.uuid != request.tunnel_agent);
    if let Some(holder) = holder
        && (proof == Proof::Key || is_alive(holder, moment, policy))
    {
        return Err(name_taken(holder));
    }
    if itself.is_none() && holder.is_none() && known.len() >= AGENTS_MAX {
        return Err(ApiError::forbidden(format!(
            "this server has {AGENTS_MAX} tunnel agents already, which is the most it takes; delete those that are gone, in \
             the UI under Tunnels"
        )));
    }
    let row = TunnelAgentRow {
        id: itself.map_or(TunnelAgentId(0), |facts| facts.row.id),
        uuid: request.tunnel_agent,
        name,
        hostname: request.hostname.trim().to_owned(),
        version: request.version.trim().to_owned(),
        link_key: key,
        created_ms: itself.map_or_else(|| moment.wall_ms(moment.now), |facts| facts.row.created_ms),
    };
    Ok(Decision { row, displaced: holder.map(|holder| holder.row.id) })
}

/// One whose link has just ended, or that the server has not had the time to hear of, dials again by itself.
fn is_alive(facts: &AgentFacts, moment: &Moment, policy: &Policy) -> bool {
    match facts.standing {
        AgentStanding::Connected { .. } => true,
        AgentStanding::Awaited { since } | AgentStanding::Gone { since } => {
            moment.now.since(since) <= policy.offline_timeout
        }
    }
}

/// 401: the key is known, but not as this agent's.
fn unknown() -> ApiError {
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        error_reason::WORKER_UNKNOWN,
        "this tunnel agent is unknown here, as after it was deleted; join again with the join token",
    )
}

fn name_taken(holder: &AgentFacts) -> ApiError {
    let TunnelAgentRow { name, hostname, .. } = &holder.row;
    ApiError::already_exists(format!(
        "the name {name} belongs to the tunnel agent on the host {hostname}; choose another `id:` in tunnels.yaml, or \
         stop that agent and wait a minute, or delete it in the UI under Tunnels"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::{at, moment, row};
    use super::*;
    use api::TunnelAgentUuid;
    use std::time::Duration;
    use uuid::Uuid;

    const POLICY: Policy = Policy { offline_timeout: Duration::from_mins(1) };

    fn key(number: u8) -> link::PublicKey {
        link::PublicKey::from_bytes([number; 32])
    }

    /// The agent `name`, number and key `number`.
    fn known(name: &str, number: u8, standing: AgentStanding) -> AgentFacts {
        let row = TunnelAgentRow {
            id: TunnelAgentId(i64::from(number)),
            uuid: TunnelAgentUuid(Uuid::from_u128(u128::from(number))),
            link_key: key(number),
            ..row(name)
        };
        let mut facts = AgentFacts::new(row, at(0));
        facts.standing = standing;
        facts
    }

    fn request(name: &str, number: u8) -> TunnelAgentRequest {
        TunnelAgentRequest {
            protocol: api::PROTOCOL_VERSION,
            tunnel_agent: TunnelAgentUuid(Uuid::from_u128(u128::from(number))),
            version: "1".to_owned(),
            name: name.to_owned(),
            hostname: "bastion".to_owned(),
        }
    }

    /// At second 1000: the row's id and whom it displaces, or the status.
    fn decided(
        known: &[AgentFacts],
        request: &TunnelAgentRequest,
        proof: Proof,
        key: link::PublicKey,
    ) -> Result<(i64, Option<i64>), u16> {
        let decision = admit(known, request, proof, key, &moment(1000), &POLICY);
        decision
            .map(|decision| (decision.row.id.0, decision.displaced.map(|id| id.0)))
            .map_err(|error| error.status().as_u16())
    }

    const CONNECTED: AgentStanding =
        AgentStanding::Connected { since: crate::server::registry::time::Monotonic::from_ms(0) };

    #[test]
    fn the_token_lets_in_and_so_does_the_own_key_and_nothing_else() {
        let agents = [known("a", 1, CONNECTED)];
        assert_eq!(decided(&agents, &request("b", 2), Proof::JoinToken, key(2)), Ok((0, None)));
        assert_eq!(decided(&agents, &request("a", 1), Proof::Key, key(1)), Ok((1, None)));
        assert_eq!(decided(&agents, &request("a", 1), Proof::JoinToken, key(9)), Ok((1, None)));
        assert_eq!(decided(&agents, &request("a", 1), Proof::Key, key(9)), Err(401));
        assert_eq!(decided(&agents, &request("b", 2), Proof::Key, key(1)), Err(401));
    }

    #[test]
    fn a_name_belongs_to_whoever_lives_and_a_gone_ones_to_who_has_the_token() {
        let (just, long_ago) = (AgentStanding::Gone { since: at(950) }, AgentStanding::Gone { since: at(900) });
        for (standing, taken) in [
            (CONNECTED, Err(409)),
            (just, Err(409)),
            (AgentStanding::Awaited { since: at(950) }, Err(409)),
            (long_ago, Ok((0, Some(1)))),
            (AgentStanding::Awaited { since: at(900) }, Ok((0, Some(1)))),
        ] {
            let agents = [known("a", 1, standing)];
            assert_eq!(decided(&agents, &request("a", 2), Proof::JoinToken, key(2)), taken, "{standing:?}");
        }
        let agents = [known("a", 1, long_ago), known("b", 2, CONNECTED)];
        assert_eq!(decided(&agents, &request("a", 2), Proof::Key, key(2)), Err(409));
        assert_eq!(decided(&agents, &request("a", 2), Proof::JoinToken, key(2)), Ok((2, Some(1))));
    }

    #[test]
    fn a_thousand_agents_are_the_most() {
        let mut agents: Vec<AgentFacts> = (0..AGENTS_MAX).map(|_| known("a", 1, CONNECTED)).collect();
        assert_eq!(decided(&agents, &request("b", 2), Proof::JoinToken, key(2)), Err(403));
        assert_eq!(decided(&agents, &request("a", 1), Proof::Key, key(1)), Ok((1, None)));
        agents.pop();
        assert_eq!(decided(&agents, &request("b", 2), Proof::JoinToken, key(2)), Ok((0, None)));
    }
}
