//! Texts of tunnels: of the page, which the server draws, and what is wrong with a forward, which the command line says
//! in the same words. The browser has none of them.

mod en;
mod zh;

pub use en::EN;
pub use zh::ZH;

use crate::format::{self, Zone};
use crate::i18n::Language;
use crate::i18n::system_words::SystemCause;
use api::{FaultCause, ForwardRole, ForwardState, TunnelFault, TunnelReport};

/// What is wrong with a forward, in words. Plain text, never markup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultText {
    /// What happened and where, in a sentence or two.
    pub what: String,
    /// What to do.
    pub next_step: String,
    /// Lines for it: commands, each with `# ` and its host before it where that is not plain, and of `sshd_config`.
    pub lines: Vec<String>,
}

/// The words for a fault. `now_ms` is the reader's clock, in milliseconds since 1970; times are in UTC.
pub fn fault_text(fault: &TunnelFault, language: Language, now_ms: i64) -> FaultText {
    let told = Told { fault, now_ms };
    let (what, next_step) = match language {
        Language::En => (en::what(&told), en::next_step(&told)),
        Language::Zh => (zh::what(&told), zh::next_step(&told)),
    };
    FaultText { what, next_step, lines: lines(&fault.cause, language) }
}

/// Why an agent did not take over a changed file, in the reader's language where the agent says it in that.
pub fn refused_config(report: &TunnelReport, language: Language) -> Option<&str> {
    let english = report.refused_config.as_deref();
    match language {
        Language::En => english,
        Language::Zh => report.refused_config_zh.as_deref().or(english),
    }
}

/// A fault, and when it is read.
struct Told<'a> {
    fault: &'a TunnelFault,
    now_ms: i64,
}

impl Told<'_> {
    fn time(&self, time_ms: i64) -> String {
        format::short_time(time_ms, self.now_ms, Zone::Utc)
    }
}

/// What a program said, in the reader's language where it is a frequent thing. In Chinese, other words are set off.
fn detail(said: &str, language: Language) -> String {
    let silent_s = said.strip_prefix("no answer within ").and_then(|rest| rest.strip_suffix(" s"));
    let is_closed = said.starts_with("the connection was closed without an answer");
    match (SystemCause::of_words(said), language) {
        (_, Language::Zh) if is_closed => "连接被关闭，没有应答".to_owned(),
        (_, Language::En) if is_closed => "the connection was closed without an answer".to_owned(),
        (_, Language::Zh) if silent_s.is_some() => format!("{} 秒内没有应答", silent_s.unwrap_or_default()),
        (SystemCause::Other(said), Language::En) => said,
        (cause, language) => cause.words(language),
    }
}

/// What helps besides a sentence. What stands in capitals only the operator knows.
fn lines(cause: &FaultCause, language: Language) -> Vec<String> {
    let sshd_config = |settings: &[&str]| {
        let place = match language {
            Language::En => {
                "# /etc/ssh/sshd_config of that SSH server, then: systemctl reload ssh (Debian, Ubuntu) or sshd (RHEL, openEuler, Kylin)"
            }
            Language::Zh => {
                "# 该 SSH 服务器的 /etc/ssh/sshd_config，修改后执行 systemctl reload ssh（Debian、Ubuntu）或 sshd（RHEL、openEuler、麒麟）"
            }
        };
        std::iter::once(place).chain(settings.iter().copied()).map(str::to_owned).collect()
    };
    let run = |command: &str| vec![command.to_owned()];
    match cause {
        FaultCause::ClosedBeforeGreeting { .. } => sshd_config(&["MaxStartups 100:30:200", "PerSourcePenalties no"]),
        FaultCause::TooManyKeys { .. } => sshd_config(&["MaxAuthTries 10"]),
        FaultCause::StaleListener { .. } | FaultCause::PortTakenThere { .. } => {
            sshd_config(&["ClientAliveInterval 15", "ClientAliveCountMax 3"])
        }
        FaultCause::ListenForbidden { .. } | FaultCause::ListenDenied { .. } => {
            sshd_config(&["AllowTcpForwarding yes", "PermitListen any", "DisableForwarding no"])
        }
        FaultCause::LoopbackOnly { .. } => sshd_config(&["GatewayPorts clientspecified"]),
        FaultCause::TargetForbidden { .. } | FaultCause::ProbeForbidden { .. } => {
            sshd_config(&["AllowTcpForwarding yes", "PermitOpen any", "DisableForwarding no"])
        }
        FaultCause::HostKeyUnknown { .. } | FaultCause::HostKeyChanged { .. } => {
            run("gpustack tunnel trust --config FILE")
        }
        FaultCause::KeyNotPrivate { path, .. } => run(&format!("chmod 600 {}", shell_word(path))),
        FaultCause::CertificateNotYetValid { .. } => run("timedatectl"),
        FaultCause::PortTakenHere { pid: Some(pid), .. } => vec![format!("systemctl status {pid}")],
        FaultCause::PortTakenHere { address, .. } => {
            let port = address.rsplit(':').next().unwrap_or_default();
            vec![format!("ss -ltnp | grep ':{port} '")]
        }
        _ => Vec::new(),
    }
}

/// A text as one word of a shell's command line.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Texts of the page of tunnels.
#[derive(Debug)]
pub struct TunnelsMessages {
    /// Under the title, when there is something to see.
    pub lead: &'static str,
    /// Section.
    pub topology: &'static str,
    /// Section.
    pub forwards: &'static str,
    /// Section.
    pub agents: &'static str,
    /// Section.
    pub certificates: &'static str,
    /// Topology: the server.
    pub server: &'static str,
    /// Topology and column: an agent's place.
    pub bastion: &'static str,
    /// Topology: the agent runs beside the server.
    pub on_server: &'static str,
    /// Topology: so many more behind an agent, so many of them in trouble.
    pub more_ends: fn(usize, usize) -> String,
    /// Topology: the agent runs on this worker's host.
    pub on_worker: fn(&str) -> String,
    /// State.
    pub state: fn(ForwardState) -> &'static str,
    /// In front of a state: as last known.
    pub last_known_state: fn(&str) -> String,
    /// What a forward is for.
    pub role: fn(ForwardRole) -> &'static str,
    /// Column.
    pub column_forward: &'static str,
    /// Column.
    pub column_way: &'static str,
    /// Column.
    pub column_state: &'static str,
    /// Column.
    pub column_round_trip: &'static str,
    /// Column.
    pub column_traffic: &'static str,
    /// Column.
    pub column_reconnects: &'static str,
    /// Column: availability.
    pub column_availability: &'static str,
    /// Where a forward listens and leads: listener, target.
    pub way: fn(&str, &str) -> String,
    /// Over which SSH servers.
    pub over: fn(&str) -> String,
    /// Bytes to the target, bytes from it.
    pub traffic: fn(&str, &str) -> String,
    /// So many open connections.
    pub open_connections: fn(u64) -> String,
    /// Availability: a day, a week, a month.
    pub spans: [&'static str; 3],
    /// How often it was cut; unfolds the history.
    pub cuts: fn(usize) -> String,
    /// It never was cut as far as is known.
    pub no_cuts: &'static str,
    /// Column of the history.
    pub cut_began: &'static str,
    /// Column of the history.
    pub cut_lasted: &'static str,
    /// Column of the history.
    pub cut_why: &'static str,
    /// It has not ended.
    pub cut_goes_on: &'static str,
    /// Filter.
    pub all: &'static str,
    /// Filter: not up.
    pub troubled: &'static str,
    /// Label of the filters.
    pub filters: &'static str,
    /// Filter by worker: label of the field.
    pub worker: &'static str,
    /// Filter by agent: label of the field.
    pub agent: &'static str,
    /// Any worker, any agent.
    pub any: &'static str,
    /// Sends the filter.
    pub filter: &'static str,
    /// A filter leaves nothing.
    pub nothing_matches: &'static str,
    /// First, last, of all.
    pub range: fn(usize, usize, usize) -> String,
    /// An agent: connected since.
    pub connected_since: fn(&str) -> String,
    /// An agent: gone since.
    pub gone_since: fn(&str) -> String,
    /// An agent is gone, in a word.
    pub not_connected: &'static str,
    /// An agent has not come since the server's start.
    pub not_come: &'static str,
    /// What an agent that is gone told last, and when.
    pub told_at: fn(&str) -> String,
    /// It told nothing.
    pub told_nothing: &'static str,
    /// What a disconnected agent means.
    pub gone_hint: &'static str,
    /// A changed configuration was refused; the text that follows says why.
    pub refused_config: &'static str,
    /// Deletes an agent that is gone.
    pub delete: &'static str,
    /// What that does.
    pub delete_hint: &'static str,
    /// Certificate column.
    pub certificate_of: &'static str,
    /// Certificate column.
    pub certificate_for: &'static str,
    /// Certificate column.
    pub certificate_valid: &'static str,
    /// A key beside which there is no certificate.
    pub no_certificate: &'static str,
    /// It is valid until then: time, what is left.
    pub valid_until: fn(&str, &str) -> String,
    /// It is valid for ever.
    pub valid_for_ever: &'static str,
    /// Less than a third of its life is left: time, what is left.
    pub expires_soon: fn(&str, &str) -> String,
    /// It is over since.
    pub expired: fn(&str) -> String,
    /// It is not valid before.
    pub not_yet_valid: fn(&str) -> String,
    /// The authority takes it back since.
    pub revoked: fn(&str) -> String,
    /// Overview and worker's card: the agent logs in with one that is revoked since.
    pub agent_revoked: fn(&str) -> String,
    /// Nobody has an agent.
    pub empty_title: &'static str,
    /// What an agent is.
    pub empty_text: &'static str,
    /// What the two commands do.
    pub empty_commands: &'static str,
    /// Leads to the page that writes the configuration.
    pub empty_add: &'static str,
    /// The card on a worker's page.
    pub of_worker: &'static str,
    /// Leads from there to all of them.
    pub all_of_worker: &'static str,
}

#[cfg(test)]
mod tests;
