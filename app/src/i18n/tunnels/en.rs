//! English.

use super::{Told, TunnelsMessages, detail};
use crate::i18n::Language;
use api::{FaultCause, ForwardRole, ForwardState, SshStep};

/// What happened, and where.
#[expect(clippy::too_many_lines, reason = "one sentence for each cause; the compiler sees that none is missing")]
pub fn what(told: &Told<'_>) -> String {
    let hop = told.fault.hop.as_deref().unwrap_or("the SSH server");
    match &told.fault.cause {
        FaultCause::NameUnknown { host } => format!("The name {host} has no address."),
        FaultCause::SshRefused { address } => {
            format!("{address} refuses connections: its host answers, and no SSH server listens there.")
        }
        FaultCause::SshNoAnswer { address } => format!("{address} does not answer: nothing comes back."),
        FaultCause::NoRoute { address } => format!("The network does not lead to {address}."),
        FaultCause::SshConnect { address, detail } => format!("The connection to {address} fails: {}.", said(detail)),
        FaultCause::NotSsh { first_line } => {
            format!("What answers in place of {hop} is no SSH server. It says “{first_line}”.")
        }
        FaultCause::ClosedBeforeGreeting { said: None } => {
            format!("{hop} closes connections before it has greeted.")
        }
        FaultCause::ClosedBeforeGreeting { said: Some(said) } => {
            format!("{hop} closes connections before it has greeted. Its last words are “{said}”.")
        }
        FaultCause::TooSlow { step, deadline_s } => {
            format!("{hop} took longer than {deadline_s} s for {}.", step_word(*step))
        }
        FaultCause::NoCommonProtocol { detail } => format!("{hop} and the agent have no protocol in common: {detail}."),
        FaultCause::HostKeyUnknown { algorithm, fingerprint } => {
            format!("Nobody has said yet whether {hop} can be trusted. It shows the {algorithm} key {fingerprint}.")
        }
        FaultCause::HostKeyChanged { fingerprint, known } => format!(
            "{hop} shows the key {fingerprint}, which is another one than the known one in {}. Either the host was set up \
             anew, or somebody stands in between.",
            known.join(", ")
        ),
        FaultCause::HostKeyRevoked { fingerprint, place } => {
            format!("{hop} shows the key {fingerprint}, which is revoked in {place}.")
        }
        FaultCause::HostCertificate { key_id, detail } => {
            format!("The host certificate “{key_id}” of {hop} does not fit: {detail}.")
        }
        FaultCause::KnownHosts { detail } => format!("A file with known hosts cannot be used: {detail}."),
        FaultCause::KeyMissing { path } => format!("The key file {path} is not there."),
        FaultCause::KeyNotPrivate { path, mode } => {
            format!("Others than its owner can read the key file {path} (mode {mode}), so it is not used.")
        }
        FaultCause::KeyUnusable { detail } => format!("The key for {hop} cannot be used: {detail}."),
        FaultCause::CertificateNotYetValid { key_id, valid_after_ms, clock_ms } => format!(
            "The certificate “{key_id}” is valid from {} on, and the clock of the agent's host says {}.",
            told.time(*valid_after_ms),
            told.time(*clock_ms)
        ),
        FaultCause::CertificateExpired { key_id, valid_before_ms, .. } => {
            format!("The certificate “{key_id}” has expired at {}.", told.time(*valid_before_ms))
        }
        FaultCause::LoginRefused { user, tried } if tried.is_empty() => {
            format!("{hop} does not let {user} in: there is no key to show it.")
        }
        FaultCause::LoginRefused { user, tried } => {
            format!("{hop} does not let {user} in. It was shown {}.", tried.join(", "))
        }
        FaultCause::KeyNotEnough { user, offered } => {
            format!("A key alone does not let {user} in at {hop}. It asks for {}.", offered.join(", "))
        }
        FaultCause::TooManyKeys { tried } => format!("{hop} ended the login after {tried} keys."),
        FaultCause::PortTakenHere { address, agent: Some(agent), pid } => format!(
            "Another tunnel agent, {agent} (process {}), listens at {address} on this agent's host.",
            pid.unwrap_or_default()
        ),
        FaultCause::PortTakenHere { address, agent: None, .. } => {
            format!("Another program listens at {address} on the agent's host.")
        }
        FaultCause::ListenHere { address, detail } => {
            format!("The agent cannot listen at {address} on its host: {}.", said(detail))
        }
        FaultCause::PortTakenThere { address } => format!(
            "Something else listens at {address} on {hop}: another program, or a session that broke and that its sshd has \
             not missed yet."
        ),
        FaultCause::StaleListener { address, waited_s } => format!(
            "At {address} on {hop} the tunnel's own former session still listens, for {waited_s} s already; its sshd has \
             not missed it yet."
        ),
        FaultCause::ListenForbidden { address } => {
            format!("{hop} does not allow this user to listen at {address}.")
        }
        FaultCause::PrivilegedPort { address } => {
            format!("{hop} does not listen at {address}: ports below 1024 are for root.")
        }
        FaultCause::ListenDenied { address } => format!("{hop} does not listen at {address}, and does not say why."),
        FaultCause::LoopbackOnly { address } => {
            format!("{hop} listens at {address} for programs on its own host only.")
        }
        FaultCause::TargetForbidden { target } => format!("{hop} does not allow connections to {target}."),
        FaultCause::TargetRefused { target, detail: None } => {
            format!("{target} refuses connections from {}.", host(told.fault.hop.as_deref()))
        }
        FaultCause::TargetRefused { target, detail: Some(detail) } => {
            format!("{target} cannot be connected to from {}: {}.", host(told.fault.hop.as_deref()), said(detail))
        }
        FaultCause::TargetNoAnswer { target, deadline_s } => {
            format!("{target} does not answer {} within {deadline_s} s.", host(told.fault.hop.as_deref()))
        }
        FaultCause::KeepAliveLost { silent_s } => format!("{hop} has given no sign of life for {silent_s} s."),
        FaultCause::SessionClosed {} => format!("The connection to {hop} was closed from the other side."),
        FaultCause::SessionEnded { message } => format!("{hop} ended the session: “{message}”."),
        FaultCause::SessionBroken { detail } => format!("The connection to {hop} broke: {}.", said(detail)),
        FaultCause::NothingAnswers { url, detail, target: None, .. } => {
            format!("Nobody answers {url}, asked on {}: {}.", host(None), said(detail))
        }
        FaultCause::NothingAnswers { url, detail, asked_on, target: Some(target), target_from } => format!(
            "The tunnel stands, and nobody answers {url} through it, asked on {}: {}. It leads to {target}, as seen from {}.",
            host(asked_on.as_deref()),
            said(detail),
            host(target_from.as_deref())
        ),
        FaultCause::WrongAnswer { url, status: Some(status) } => {
            format!("Something else than gpustack answers {url} through the tunnel, with HTTP status {status}.")
        }
        FaultCause::WrongAnswer { url, status: None } => {
            format!("Something else than gpustack answers {url} through the tunnel.")
        }
        FaultCause::WrongServer { url, expected: Some(expected), answered: Some(answered) } => format!(
            "Another server answers {url} through the tunnel than the one that the agent has joined: its key is {answered}, \
             and the joined one's is {expected}."
        ),
        FaultCause::WrongServer { url, .. } => {
            format!("Another server answers {url} through the tunnel than the one that the agent has joined.")
        }
        FaultCause::WrongWorker { expected, answered } => {
            format!("The worker {answered} answers through the tunnel that is for {expected}.")
        }
        FaultCause::ProbeForbidden { address } => {
            format!("The tunnel stands as far as can be seen. {hop} does not let the agent ask {address} through it.")
        }
        FaultCause::DependsOn { forward } => format!("It leads through the tunnel {forward}, which does not work."),
    }
}

/// What to do.
#[expect(clippy::too_many_lines, reason = "one sentence for each cause; the compiler sees that none is missing")]
pub fn next_step(told: &Told<'_>) -> String {
    let hop = told.fault.hop.as_deref().unwrap_or("that host");
    match &told.fault.cause {
        FaultCause::NameUnknown { .. } => "Correct the name in tunnels.yaml, or add it to /etc/hosts.".to_owned(),
        FaultCause::SshRefused { .. } => {
            "Start sshd on that host, or correct the port in tunnels.yaml.".to_owned()
        }
        FaultCause::SshNoAnswer { .. } => {
            "Check that the host runs, and that no firewall between the two drops packets to this port.".to_owned()
        }
        FaultCause::NoRoute { .. } => "Check the address and the routes of the host before it on the way.".to_owned(),
        FaultCause::SshConnect { .. } => "Check address and port with ssh by hand, from the same host.".to_owned(),
        FaultCause::NotSsh { .. } => "Correct the port in tunnels.yaml, or see what listens there.".to_owned(),
        FaultCause::ClosedBeforeGreeting { .. } => {
            "Too many logins at once, a penalty after failed ones, or TCP wrappers: see /var/log/auth.log or \
             /var/log/secure there."
                .to_owned()
        }
        FaultCause::TooSlow { .. } => {
            "See whether that host is overloaded, or waits for a name server: UseDNS no helps then.".to_owned()
        }
        FaultCause::NoCommonProtocol { .. } => "Update the SSH server, or allow a newer algorithm there.".to_owned(),
        FaultCause::HostKeyUnknown { .. } => {
            "Compare the fingerprint on that host's console, then accept it with this command on the agent's host.".to_owned()
        }
        FaultCause::HostKeyChanged { .. } => {
            "Find out which of the two. If the host was set up anew, take the old line out of the file and trust the new \
             key."
                .to_owned()
        }
        FaultCause::HostKeyRevoked { .. } => "Give that host a new key, or find out who answers there.".to_owned(),
        FaultCause::HostCertificate { .. } => "Sign a new host certificate with the right names and times, unless a clock is wrong.".to_owned(),
        FaultCause::KnownHosts { .. } => "Correct that file.".to_owned(),
        FaultCause::KeyMissing { .. } => "Put the key there, or name the right file in tunnels.yaml.".to_owned(),
        FaultCause::KeyNotPrivate { .. } => "Make it private.".to_owned(),
        FaultCause::KeyUnusable { .. } => {
            "Name a key and a certificate that can be used without a passphrase in tunnels.yaml, or load the key into the SSH agent.".to_owned()
        }
        FaultCause::CertificateNotYetValid { .. } => "Set the clock of the agent's host right.".to_owned(),
        FaultCause::CertificateExpired { .. } => "Sign a new certificate for this key.".to_owned(),
        FaultCause::LoginRefused { user, .. } => format!(
            "Add the public key to ~{user}/.ssh/authorized_keys on {hop}, or sign a certificate that names {user}. A \
             certificate that looks right may be revoked, be for other source addresses, or meet a wrong clock there. The \
             log of its sshd says why it refuses."
        ),
        FaultCause::KeyNotEnough { .. } => {
            format!("Let keys alone log in on {hop}: PubkeyAuthentication and AuthenticationMethods of its sshd_config.")
        }
        FaultCause::TooManyKeys { .. } => {
            "Name the one right key in tunnels.yaml, or raise MaxAuthTries there.".to_owned()
        }
        FaultCause::PortTakenHere { agent: Some(_), .. } => {
            "End that agent if it is one that was started before; else give one of the two another port.".to_owned()
        }
        FaultCause::PortTakenHere { .. } => "See which program it is, and end it or choose another port.".to_owned(),
        FaultCause::ListenHere { .. } => "Correct the address in tunnels.yaml.".to_owned(),
        FaultCause::PortTakenThere { .. } => {
            "See with ss -ltnp on that host what it is. Sessions that broke end sooner with these lines there.".to_owned()
        }
        FaultCause::StaleListener { .. } => {
            "It goes by itself. It goes within some two minutes with these lines there.".to_owned()
        }
        FaultCause::PrivilegedPort { .. } => "Choose a port from 1024 on, or log in as root.".to_owned(),
        FaultCause::ListenDenied { .. } => {
            "See whether the port is taken there, and whether these lines allow it. The log of its sshd says more.".to_owned()
        }
        FaultCause::LoopbackOnly { .. } => {
            "Where other hosts are to use the port, allow it there. Else let the tunnel listen at 127.0.0.1.".to_owned()
        }
        FaultCause::ListenForbidden { .. }
        | FaultCause::TargetForbidden { .. }
        | FaultCause::ProbeForbidden { .. } => {
            "Allow it there, also in the key's options in authorized_keys.".to_owned()
        }
        FaultCause::TargetRefused { .. } => {
            "Start what is to answer there, or correct the port in tunnels.yaml.".to_owned()
        }
        FaultCause::TargetNoAnswer { .. } => {
            "Check that its host runs and that no firewall drops packets to it.".to_owned()
        }
        FaultCause::KeepAliveLost { .. }
        | FaultCause::SessionClosed {}
        | FaultCause::SessionEnded { .. }
        | FaultCause::SessionBroken { .. } => {
            "The agent connects again by itself. If it does not last, check the host and the network to it.".to_owned()
        }
        FaultCause::NothingAnswers { target: Some(target), target_from, .. } => format!(
            "Check on {} that the server or the worker behind {target} runs and listens at that port.",
            host(target_from.as_deref())
        ),
        FaultCause::NothingAnswers { .. } => {
            "Check that the server or the worker runs at the end of the tunnel and listens at that port.".to_owned()
        }
        FaultCause::WrongAnswer { .. } => "See what listens at the tunnel's target, and correct the port.".to_owned(),
        FaultCause::WrongServer { .. } => {
            "See whether the tunnel's target is the right server, and correct it in tunnels.yaml if not. If it is, that server \
             was set up anew or its data directory was replaced: put the token that `gpustack token` prints there into \
             `token_file` and start the agent again, and it joins that server."
                .to_owned()
        }
        FaultCause::WrongWorker { .. } => "Give each worker a port and a tunnel of its own.".to_owned(),
        FaultCause::DependsOn { forward } => format!("Mend {forward}; this one follows by itself."),
    }
}

/// A host, by who logs in there; None is the agent's.
fn host(account: Option<&str>) -> String {
    account.map_or_else(|| "the agent's host".to_owned(), |account| format!("the host of {account}"))
}

fn said(words: &str) -> String {
    detail(words, Language::En)
}

const fn step_word(step: SshStep) -> &'static str {
    match step {
        SshStep::Connect => "the connection",
        SshStep::Greet => "its greeting",
        SshStep::AgreeOnKeys => "the exchange of keys",
        SshStep::LetIn => "the login",
    }
}

/// Texts of the page.
pub const EN: TunnelsMessages = TunnelsMessages {
    lead: "SSH forwards between the server and workers that do not reach one another. Agents keep them and tell what they see.",
    topology: "Topology",
    more_ends: |count, troubled| match troubled {
        0 => format!("{count} more, all well"),
        troubled if troubled == count => format!("{count} more, all in trouble"),
        troubled => format!("{count} more, {troubled} of them in trouble"),
    },
    forwards: "Forwards",
    agents: "Agents",
    certificates: "Certificates",
    server: "Server",
    bastion: "Bastion",
    on_server: "On the server's host",
    on_worker: |worker| format!("On the host of {worker}"),
    state: |state| match state {
        ForwardState::Starting => "Starting",
        ForwardState::Up => "Up",
        ForwardState::Unproved => "Up, not proved",
        ForwardState::Degraded => "Degraded",
        ForwardState::Down => "Down",
    },
    last_known_state: |state| format!("Last known: {state}"),
    role: |role| match role {
        ForwardRole::ServerHere => "Server's port to the agent's host",
        ForwardRole::ServerAtWorker => "Server's port to the worker",
        ForwardRole::WorkerHere => "Worker's port to the agent's host",
        ForwardRole::WorkerAtServer => "Worker's port to the server, for health checks",
        ForwardRole::Other => "Something else",
    },
    column_forward: "Forward",
    column_way: "From → to",
    column_state: "State",
    column_round_trip: "Round trip",
    column_traffic: "Traffic",
    column_reconnects: "Reconnects",
    column_availability: "Availability",
    way: |listen, target| format!("{listen} → {target}"),
    over: |route| format!("over {route}"),
    traffic: |to, from| format!("↑\u{a0}{to} ↓\u{a0}{from}"),
    open_connections: |count| if count == 1 { "1 connection".to_owned() } else { format!("{count} connections") },
    spans: ["24 h", "7 d", "30 d"],
    cuts: |count| match count {
        1 => "1 cut".to_owned(),
        api::CUTS_REPORTED.. => format!("the last {count} cuts"),
        _ => format!("{count} cuts"),
    },
    no_cuts: "no cuts",
    cut_began: "When",
    cut_lasted: "How long",
    cut_why: "Why",
    cut_goes_on: "goes on",
    all: "All",
    troubled: "In trouble",
    filters: "Filter forwards",
    worker: "Worker",
    agent: "Agent",
    any: "any",
    filter: "Filter",
    nothing_matches: "No forward fits this filter.",
    range: |first, last, all| format!("{first}–{last} of {all}"),
    connected_since: |time| format!("Connected since {time}"),
    gone_since: |time| format!("Not connected since {time}"),
    not_connected: "Not connected",
    not_come: "Has not come since the server started",
    told_at: |time| format!("Told last at {time}"),
    told_nothing: "It has told nothing yet.",
    gone_hint: "What is shown of its forwards is what it told last. On its host, see whether gpustack tunnel run is running and reaches the server.",
    refused_config: "A changed tunnels.yaml was refused; the one before it is in force.",
    delete: "Delete",
    delete_hint: "Its key is revoked. With the join token it can come again.",
    certificate_of: "Key",
    certificate_for: "For",
    certificate_valid: "Valid",
    no_certificate: "key without a certificate",
    valid_until: |time, left| format!("until {time}, for {left}"),
    valid_for_ever: "for ever",
    expires_soon: |time, left| format!("Expires soon: {time}, in {left}"),
    expired: |time| format!("Expired at {time}"),
    revoked: |time| format!("Revoked at {time}: nobody is let in with it any more"),
    agent_revoked: |time| {
        format!(
            "The agent logs in with a certificate that was revoked at {time}: what stands goes on, new logins are refused"
        )
    },
    not_yet_valid: |time| format!("Not valid before {time}"),
    empty_title: "No tunnel agent yet",
    empty_text: "Where a worker does not reach the server, SSH forwards through a bastion lead it there. A tunnel agent, the same program run on the bastion, keeps them alive, proves that the right one answers, and shows here what is wrong and what to do.",
    empty_commands: "On the bastion: the first command shows what the file asks for, the second asks you about the keys of SSH servers, the third makes the forwards.",
    empty_add: "Write a tunnels.yaml for a worker",
    of_worker: "Tunnels",
    all_of_worker: "All about them",
};
