//! Every cause that a user can be shown, as plain text: what happened, what to do next, and the commands for it.

mod commands;
mod en;
mod zh;

use crate::format::{self, Span, Zone};
use crate::i18n::Language;
use api::Reason;

/// A cause in the user's language. Plain text, never markup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonText {
    /// The cause in a few words without parameters, for lists and for lines that many workers share.
    pub title: &'static str,
    /// What happened, in a sentence or two.
    pub what: String,
    /// What to do; empty when all is well.
    pub next_step: String,
    /// Commands for it, one a line; lines that begin with `#` say where to run them.
    pub commands: Vec<String>,
}

/// What a sentence needs besides the cause.
#[derive(Clone, Copy, Debug)]
pub struct ReasonContext<'a> {
    /// The server's clock, in milliseconds since 1970.
    pub now_ms: i64,
    /// In which zone times are written.
    pub zone: Zone,
    /// Name and version of the worker's operating system; commands depend on it.
    pub os: &'a str,
    /// What else is known: how the worker is reached otherwise.
    pub also: Option<&'a Reason>,
}

impl ReasonContext<'_> {
    fn time(&self, time_ms: i64) -> String {
        format::short_time(time_ms, self.now_ms, self.zone)
    }

    fn span_since(&self, time_ms: i64) -> Span {
        Span::between(time_ms, self.now_ms)
    }
}

/// The text for a cause.
pub fn reason_text(reason: &Reason, language: Language, context: &ReasonContext<'_>) -> ReasonText {
    let (title, what, next_step) = match language {
        Language::En => (en::title(reason), en::what(reason, context), en::next_step(reason, context)),
        Language::Zh => (zh::title(reason), zh::what(reason, context), zh::next_step(reason, context)),
    };
    ReasonText { title, what, next_step, commands: commands::commands(reason, language, context.os) }
}

/// Half hours as hours: `8`, `5.5`.
fn hours(half_hours: i32) -> String {
    let half_hours = half_hours.unsigned_abs();
    if half_hours.is_multiple_of(2) { (half_hours / 2).to_string() } else { format!("{}.5", half_hours / 2) }
}

/// Whether a URL's host is this machine itself, which for a worker's address means the end of a tunnel.
pub fn is_loopback(url: &str) -> bool {
    let host = commands::host_and_port(url).0;
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}

/// Whether a direct probe failed.
pub const fn is_failed_probe(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::DirectRefused { .. }
            | Reason::DirectTimedOut { .. }
            | Reason::DirectNotResolved { .. }
            | Reason::DirectNoRoute { .. }
            | Reason::DirectClosed { .. }
            | Reason::DirectWrongAnswer { .. }
            | Reason::DirectWrongWorker { .. }
    )
}

/// Whether the failure of this probe does no harm, since the worker has a link.
const fn is_made_up_for(reason: &Reason, context: &ReasonContext<'_>) -> bool {
    is_failed_probe(reason) && matches!(context.also, Some(Reason::LinkUp { .. }))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    use api::{DriverInitCause, LinkCarrier, LinkLoss};

    const NOW_MS: i64 = 1_764_504_093_000;

    /// One of every cause. The match makes a new one fail to compile until it is added here.
    #[expect(clippy::too_many_lines, reason = "one example for each reason; the compiler sees that none is missing")]
    pub fn every_reason() -> Vec<Reason> {
        let url = || "http://127.0.0.1:10150/healthz".to_owned();
        let tool = || "npu-smi".to_owned();
        let driver_init_failed =
            |cause| Reason::DriverInitFailed { tool: tool(), code: -8005, nodes: Vec::new(), cause };
        let reasons = vec![
            Reason::HeartbeatReceived {},
            Reason::HeartbeatLost { last_ms: Some(NOW_MS - 187_000), timeout_s: 60 },
            Reason::HeartbeatLost { last_ms: None, timeout_s: 60 },
            Reason::WorkerStopped { at_ms: NOW_MS - 187_000 },
            Reason::HeartbeatAwaited { until_ms: NOW_MS + 30_000 },
            Reason::LinkUp { carrier: LinkCarrier::Stream, round_trip_ms: Some(0.8) },
            Reason::LinkUp { carrier: LinkCarrier::WebSocket, round_trip_ms: None },
            Reason::LinkAwaited {},
            Reason::LinkDown { loss: LinkLoss::Closed },
            Reason::LinkDown { loss: LinkLoss::Silent },
            Reason::LinkDown { loss: LinkLoss::Broken },
            Reason::LinkDown { loss: LinkLoss::NotSinceStart },
            Reason::LinkUnanswered { timeout_s: 10, status: None },
            Reason::LinkUnanswered { timeout_s: 10, status: Some(500) },
            Reason::TunnelDown {
                forward: Some("npu-1.server".to_owned()),
                agent: "bastion-01".to_owned(),
                since_ms: NOW_MS,
            },
            Reason::TunnelDown { forward: None, agent: "bastion-01".to_owned(), since_ms: NOW_MS },
            Reason::DirectAnswered { url: url(), round_trip_ms: 0.8 },
            Reason::DirectNotProbed { url: url() },
            Reason::DirectRefused { url: url() },
            Reason::DirectTimedOut { url: url(), timeout_s: 3 },
            Reason::DirectNotResolved { url: url(), host: "npu-1".to_owned() },
            Reason::DirectNoRoute { url: url() },
            Reason::DirectClosed { url: url() },
            Reason::DirectWrongAnswer { url: url(), status: Some(404) },
            Reason::DirectWrongAnswer { url: url(), status: None },
            Reason::DirectWrongWorker { url: url(), name: "npu-2".to_owned() },
            Reason::ClockInSync { offset_ms: 20, error_ms: 4 },
            Reason::ClockOffset { offset_ms: -187_000, error_ms: 4 },
            Reason::ClockOffsetZone { offset_ms: 28_800_000, error_ms: 4, half_hours: 16 },
            Reason::ClockNotMeasured {},
            Reason::ClockNotSynchronised { service: "chronyd".to_owned() },
            Reason::HardwareClockLocal {},
            Reason::DiskFull { path: "/var/lib/gpustack".to_owned(), free_bytes: 7 << 20 },
            Reason::DevicesWorking { count: 8 },
            Reason::DevicesNone {},
            Reason::DevicesAwaited {},
            Reason::ToolTimedOut { tool: tool(), timeout_s: 20 },
            Reason::ToolFailed { tool: tool(), exit_code: Some(1), output: "dcmi module initialize failed".to_owned() },
            Reason::ToolFailed { tool: tool(), exit_code: None, output: String::new() },
            Reason::ToolNotStarted { tool: tool(), error: "permission denied".to_owned() },
            Reason::ToolMissing { tool: tool() },
            Reason::ToolOutputUnknown { tool: tool(), output: "???".to_owned() },
            Reason::DriverInitFailed {
                tool: tool(),
                code: -8005,
                nodes: vec!["/dev/hisi_hdc".to_owned()],
                cause: Some(DriverInitCause::NodesMissing),
            },
            Reason::DriverInitFailed {
                tool: tool(),
                code: -8005,
                nodes: vec!["/dev/hisi_hdc".to_owned()],
                cause: Some(DriverInitCause::NotAllowed),
            },
            driver_init_failed(Some(DriverInitCause::ModuleNotLoaded)),
            driver_init_failed(Some(DriverInitCause::UpgradedWithoutRestart)),
            driver_init_failed(None),
            Reason::DriverNotLoaded { vendor: "NVIDIA".to_owned(), count: Some(2) },
            Reason::DriverNotLoaded { vendor: "NVIDIA".to_owned(), count: None },
            Reason::DriverMismatch {
                vendor: "Huawei".to_owned(),
                running: Some("25.0.rc1".to_owned()),
                installed: Some("25.5.1".to_owned()),
                firmware: None,
            },
            Reason::DriverLibraryMissing { tool: tool(), library: "libc_sec.so".to_owned() },
            Reason::DeviceInUseElsewhere { tool: tool(), code: -8020 },
            Reason::DeviceNodeMissing { node: "/dev/hisi_hdc".to_owned() },
            Reason::DeviceNodeUnreadable { node: "/dev/davinci0".to_owned() },
            Reason::DeviceUnhealthy { index: 3, name: "910B3".to_owned(), health: "Alarm".to_owned() },
            Reason::DevicesMissing { expected: 8, found: 7 },
            Reason::DeviceLost { tool: "nvidia-smi".to_owned(), device: "GPU1: 0000:0a:00.0".to_owned() },
            Reason::VisibleDevicesWrong {
                variable: "ASCEND_VISIBLE_DEVICES".to_owned(),
                value: "0-9".to_owned(),
                available: 8,
            },
            Reason::ReadingsForbidden { tool: "nvidia-smi".to_owned() },
            Reason::IdentityDuplicated { hostname: "copy".to_owned(), address: "10.0.0.9".to_owned() },
            Reason::ReplacementAsked { hostname: "new".to_owned(), address: "10.0.0.9".to_owned() },
        ];
        for reason in &reasons {
            match reason {
                Reason::HeartbeatReceived { .. }
                | Reason::HeartbeatLost { .. }
                | Reason::WorkerStopped { .. }
                | Reason::HeartbeatAwaited { .. }
                | Reason::LinkUp { .. }
                | Reason::LinkAwaited { .. }
                | Reason::LinkDown { .. }
                | Reason::LinkUnanswered { .. }
                | Reason::TunnelDown { .. }
                | Reason::DirectAnswered { .. }
                | Reason::DirectNotProbed { .. }
                | Reason::DirectRefused { .. }
                | Reason::DirectTimedOut { .. }
                | Reason::DirectNotResolved { .. }
                | Reason::DirectNoRoute { .. }
                | Reason::DirectClosed { .. }
                | Reason::DirectWrongAnswer { .. }
                | Reason::DirectWrongWorker { .. }
                | Reason::ClockInSync { .. }
                | Reason::ClockOffset { .. }
                | Reason::ClockOffsetZone { .. }
                | Reason::ClockNotMeasured { .. }
                | Reason::ClockNotSynchronised { .. }
                | Reason::HardwareClockLocal { .. }
                | Reason::DiskFull { .. }
                | Reason::DevicesWorking { .. }
                | Reason::DevicesNone { .. }
                | Reason::DevicesAwaited { .. }
                | Reason::ToolTimedOut { .. }
                | Reason::ToolFailed { .. }
                | Reason::ToolNotStarted { .. }
                | Reason::ToolMissing { .. }
                | Reason::ToolOutputUnknown { .. }
                | Reason::DriverInitFailed { .. }
                | Reason::DriverLibraryMissing { .. }
                | Reason::DeviceInUseElsewhere { .. }
                | Reason::DeviceNodeMissing { .. }
                | Reason::DeviceNodeUnreadable { .. }
                | Reason::DeviceUnhealthy { .. }
                | Reason::DevicesMissing { .. }
                | Reason::DriverNotLoaded { .. }
                | Reason::DriverMismatch { .. }
                | Reason::DeviceLost { .. }
                | Reason::VisibleDevicesWrong { .. }
                | Reason::ReadingsForbidden { .. }
                | Reason::IdentityDuplicated { .. }
                | Reason::ReplacementAsked { .. } => {}
            }
        }
        reasons
    }

    fn is_good(reason: &Reason) -> bool {
        matches!(
            reason,
            Reason::HeartbeatReceived { .. }
                | Reason::LinkUp { .. }
                | Reason::DirectAnswered { .. }
                | Reason::ClockInSync { .. }
                | Reason::DevicesWorking { .. }
                | Reason::DevicesNone { .. }
        )
    }

    fn context<'a>(os: &'a str, also: Option<&'a Reason>) -> ReasonContext<'a> {
        ReasonContext { now_ms: NOW_MS, zone: Zone::Utc, os, also }
    }

    #[test]
    fn every_reason_has_plain_text_in_every_language() {
        let reasons = every_reason();
        for language in Language::ALL {
            for reason in &reasons {
                for also in std::iter::once(None).chain(reasons.iter().map(Some)) {
                    let text = reason_text(reason, language, &context("openEuler 22.03", also));
                    for part in [text.title, &text.what] {
                        assert!(!part.trim().is_empty(), "{reason:?} {language:?}");
                    }
                    assert_eq!(
                        text.next_step.is_empty(),
                        is_good(reason),
                        "{reason:?} {language:?}: {}",
                        text.next_step
                    );
                    for part in [text.title, &text.what, &text.next_step] {
                        assert!(!part.contains(['<', '>', '&', '{', '}']), "{reason:?} {language:?}: {part}");
                    }
                }
            }
        }
    }

    #[test]
    fn chinese_sentences_are_chinese() {
        for reason in every_reason() {
            let text = reason_text(&reason, Language::Zh, &context("", None));
            for part in [text.title, &text.what, &text.next_step] {
                assert!(
                    part.is_empty() || part.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)),
                    "{reason:?}: {part}"
                );
            }
        }
    }

    #[test]
    fn a_lost_heartbeat_names_age_and_time() {
        let reason = Reason::HeartbeatLost { last_ms: Some(NOW_MS - 187_000), timeout_s: 60 };
        let text = reason_text(&reason, Language::En, &context("", None));
        assert_eq!(text.what, "No heartbeat for 3 min 7 s (last 11:58:26 UTC).");
        let text = reason_text(&reason, Language::Zh, &context("", None));
        assert_eq!(text.what, "已有 3 分 7 秒未收到心跳（最近一次 11:58:26 UTC）。");
    }

    #[test]
    fn a_probe_that_fails_beside_a_link_asks_for_nothing() {
        let probe = Reason::DirectTimedOut { url: "http://10.2.3.97:10150/healthz".to_owned(), timeout_s: 10 };
        let link = Reason::LinkUp { carrier: LinkCarrier::Stream, round_trip_ms: Some(0.8) };
        let text = reason_text(&probe, Language::En, &context("", Some(&link)));
        assert!(text.next_step.starts_with("Nothing has to be done"), "{}", text.next_step);
        let down = Reason::LinkDown { loss: LinkLoss::Closed };
        let text = reason_text(&probe, Language::En, &context("", Some(&down)));
        assert!(text.next_step.starts_with("Open the port"), "{}", text.next_step);
    }

    #[test]
    fn a_wrong_clock_says_how_far_and_which_way() {
        for (offset_ms, expected) in
            [(187_000, "3 min 7 s ahead of"), (-1_500, "1.50 s behind"), (-28_800_000, "8 h behind")]
        {
            let text = reason_text(&Reason::ClockOffset { offset_ms, error_ms: 4 }, Language::En, &context("", None));
            assert!(text.what.contains(expected), "{}", text.what);
        }
        let zone = Reason::ClockOffsetZone { offset_ms: -19_800_000, error_ms: 4, half_hours: -11 };
        assert!(reason_text(&zone, Language::En, &context("", None)).what.contains("5.5 h"));
    }

    #[test]
    fn clock_commands_fit_the_operating_system() {
        let reason = Reason::ClockOffset { offset_ms: 187_000, error_ms: 4 };
        for (os, file, service) in [
            ("openEuler 22.03", "/etc/chrony.conf", "chronyd"),
            ("Kylin Linux Advanced Server V10", "/etc/chrony.conf", "chronyd"),
            ("Ubuntu 22.04", "/etc/chrony/chrony.conf", "restart chrony"),
            ("Debian GNU/Linux 12", "/etc/chrony/chrony.conf", "restart chrony"),
        ] {
            let commands = reason_text(&reason, Language::En, &context(os, None)).commands.join("\n");
            assert!(commands.contains(file) && commands.contains(service), "{os}: {commands}");
        }
        let unknown = reason_text(&reason, Language::En, &context("", None)).commands.join("\n");
        assert!(unknown.contains("/etc/chrony.conf") && unknown.contains("/etc/chrony/chrony.conf"), "{unknown}");
    }

    #[test]
    fn a_refused_probe_of_a_tunnel_gives_the_commands_that_build_it() {
        let tunnel = Reason::DirectRefused { url: "http://127.0.0.1:10151/healthz".to_owned() };
        let commands = reason_text(&tunnel, Language::En, &context("", None)).commands.join("\n");
        for part in ["ss -ltn", "-L 10151:", "-R 10151:127.0.0.1:10151"] {
            assert!(commands.contains(part), "{commands}");
        }
        let direct = Reason::DirectRefused { url: "http://10.2.3.97:10150/healthz".to_owned() };
        let commands = reason_text(&direct, Language::En, &context("", None)).commands.join("\n");
        assert!(!commands.contains("ssh "), "{commands}");
    }
}
