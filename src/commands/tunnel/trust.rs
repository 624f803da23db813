//! `gpustack tunnel trust`: decides about the keys of SSH servers that nobody knows yet.

use super::FileArgs;
use crate::commands::exit::CommandError;
use crate::commands::output;
use crate::tunnel::file::{self, Surroundings};
use crate::tunnel::plan::{Plan, PlannedForward};
use clap::Args;
use ssh::{
    ConnectError, ConnectFault, Connector, Endpoint, HostKey, HostKeyError, KnownHosts, NoPassphrases, Route, Sessions,
    TcpTransport,
};
use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;

/// Whom to trust.
#[derive(Debug, Args)]
pub struct TrustArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Trust the server that shows the key with this fingerprint, without asking; may be given more than once
    #[arg(long = "fingerprint", value_name = "SHA256:…")]
    fingerprints: Vec<String>,
}

/// Goes along each way of the plan, and asks about each key that is not known.
pub fn run(args: &TrustArgs) -> Result<(), CommandError> {
    let plan = file::load(&args.file.config, &Surroundings::of_process())?.plan;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let known_hosts = KnownHosts::new(&plan.known_hosts.own, plan.known_hosts.others.clone());
    let Looked { undecided, unseen } = runtime.block_on(go_along(&plan, &known_hosts, &args.fingerprints))?;
    if !undecided.is_empty() {
        return Err(CommandError::failed(format!(
            "not trusted: {}; compare the fingerprints on those hosts, and give them with --fingerprint",
            list(&undecided)
        )));
    }
    if !unseen.is_empty() {
        return Err(CommandError::failed(format!(
            "no key was seen of: {}; mend the way there, and try again",
            list(&unseen)
        )));
    }
    Ok(())
}

/// The servers that stay unknown.
#[derive(Default)]
struct Looked {
    /// Nobody says that they are trusted.
    undecided: Vec<Endpoint>,
    /// They did not show a key.
    unseen: Vec<Endpoint>,
}

fn list(servers: &[Endpoint]) -> String {
    servers.iter().map(Endpoint::to_string).collect::<Vec<_>>().join(", ")
}

async fn go_along(plan: &Plan, known_hosts: &KnownHosts, fingerprints: &[String]) -> Result<Looked, CommandError> {
    let tuning = plan.session.tuning.clone();
    let sessions = Sessions::new(Connector {
        transport: Arc::new(TcpTransport::new(tuning.connect_deadline)),
        known_hosts: known_hosts.clone(),
        passphrases: Arc::new(NoPassphrases),
        tuning,
    });
    let (mut seen, mut looked) = (Vec::new(), Looked::default());
    for forward in &plan.forwards {
        let route = route(forward)?;
        let Some(end) = forward.route.last().map(|hop| hop.server.clone()) else { continue };
        if seen.contains(&end) {
            continue;
        }
        seen.push(end.clone());
        loop {
            match sessions.get(&route).await {
                Ok(session) => {
                    report(&format!("{}: known, and lets us in", session.name()))?;
                }
                Err(ConnectError { fault: ConnectFault::HostKey(HostKeyError::Unknown { host, key }), .. }) => {
                    if looked.undecided.contains(&host) {
                        break;
                    }
                    if decide(&host, &key, fingerprints)? {
                        known_hosts.trust(&host, &key).map_err(CommandError::failed)?;
                        continue;
                    }
                    looked.undecided.push(host);
                }
                Err(error) => {
                    report(&format!("{error}"))?;
                    if let ConnectFault::HostKey(_) = error.fault {
                        looked.undecided.push(error.hop.server);
                    } else if !known_hosts.has_any_for(&end).map_err(CommandError::failed)? {
                        looked.unseen.push(end.clone());
                    }
                }
            }
            break;
        }
    }
    Ok(looked)
}

fn route(forward: &PlannedForward) -> Result<Route, CommandError> {
    forward.route().map_err(CommandError::usage)
}

/// Whether to trust this key: because its fingerprint was given, or because somebody at the terminal says so.
fn decide(host: &Endpoint, key: &HostKey, fingerprints: &[String]) -> Result<bool, CommandError> {
    report(&format!("{host} shows a key that is not known: {key}"))?;
    if fingerprints.contains(&key.fingerprint()) {
        report("  its fingerprint was given: trusted from now on")?;
        return Ok(true);
    }
    let mut input = io::stdin();
    if !input.is_terminal() {
        return Ok(false);
    }
    report(
        "  Is this what `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` (or the file of that kind) says there? [y/N]",
    )?;
    let mut answer = String::new();
    io::BufReader::new(&mut input).read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "是"))
}

fn report(line: &str) -> io::Result<()> {
    output::print(&format!("{line}\n"))
}
