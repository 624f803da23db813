//! What the doctor says of each point of a host. The server and the command line make these sentences; they take no room
//! in a browser.

mod en;
mod zh;

use super::reasons::{ReasonContext, ReasonText, reason_text};
use crate::backend::ExaminationFailed;
use crate::format::Zone;
use crate::i18n::Language;
use api::{Check, Examination, HostReason, Reason, Seen, Trouble, Verdict};

/// One point of a host, in words. Plain text, never markup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckText {
    /// What the point is called.
    pub title: String,
    /// What was seen; what is wrong, where something is.
    pub what: String,
    /// What to do; empty when nothing has to be done.
    pub next_step: String,
    /// Commands for it, one a line; lines that begin with `#` say where to run them.
    pub commands: Vec<String>,
}

/// The words for all points, in their order.
pub fn examination_text(examination: &Examination, language: Language) -> Vec<CheckText> {
    let is_linked = examination
        .checks
        .iter()
        .any(|check| matches!(check.seen, Seen::Credential { .. }) && check.verdict() == Verdict::Ok);
    let text = |check| check_text(check, examination, is_linked, language);
    examination.checks.iter().map(text).collect()
}

fn check_text(check: &Check, examination: &Examination, is_linked: bool, language: Language) -> CheckText {
    let title = match language {
        Language::En => en::title(&check.seen),
        Language::Zh => zh::title(&check.seen),
    };
    let seen = match language {
        Language::En => en::seen(&check.seen),
        Language::Zh => zh::seen(&check.seen),
    };
    let Some(problem) = &check.problem else {
        return CheckText { title, what: seen, next_step: String::new(), commands: Vec::new() };
    };
    match &problem.trouble {
        Trouble::Reason(reason) => {
            // a way back that fails does no harm to a worker that has a link
            let link = Reason::LinkUp { carrier: api::LinkCarrier::Stream, round_trip_ms: None };
            let also = (is_linked && matches!(check.seen, Seen::WayBack { .. })).then_some(&link);
            let context = ReasonContext { now_ms: examination.at_ms, zone: Zone::Utc, os: &examination.os, also };
            let ReasonText { what, next_step, commands, .. } = reason_text(reason, language, &context);
            CheckText { title, what, next_step, commands }
        }
        Trouble::Host(reason) => {
            let (what, next_step) = match language {
                Language::En => (en::what(reason), en::next_step(reason)),
                Language::Zh => (zh::what(reason), zh::next_step(reason)),
            };
            let what = if says_more(&check.seen, reason) { with_seen(&seen, &what, language) } else { what };
            CheckText { title, what, next_step, commands: commands(reason) }
        }
    }
}

/// Whether what was seen helps beside what is wrong with it.
fn says_more(seen: &Seen, reason: &HostReason) -> bool {
    match reason {
        HostReason::ProxyInTheWay { .. } | HostReason::SeccompFilter {} | HostReason::TimeServiceUnknown {} => true,
        _ => matches!(seen, Seen::PersistenceMode { .. }),
    }
}

fn with_seen(seen: &str, what: &str, language: Language) -> String {
    match language {
        Language::En => format!("{seen} {what}"),
        Language::Zh => format!("{seen}{what}"),
    }
}

/// The word for what a point comes to.
pub const fn verdict_word(verdict: Verdict, language: Language) -> &'static str {
    match (language, verdict) {
        (Language::En, Verdict::Ok) => "ok",
        (Language::En, Verdict::NotChecked) => "skipped",
        (Language::En, Verdict::Warning) => "warning",
        (Language::En, Verdict::Failed) => "FAILED",
        (Language::Zh, Verdict::Ok) => "正常",
        (Language::Zh, Verdict::NotChecked) => "跳过",
        (Language::Zh, Verdict::Warning) => "警告",
        (Language::Zh, Verdict::Failed) => "失败",
    }
}

/// How many points came to what.
pub fn summary(examination: &Examination, language: Language) -> String {
    let [ok, warning, failed, skipped] =
        [Verdict::Ok, Verdict::Warning, Verdict::Failed, Verdict::NotChecked].map(|verdict| examination.count(verdict));
    match language {
        Language::En if warning == 1 => format!("{ok} ok, 1 warning, {failed} failed, {skipped} skipped"),
        Language::En => format!("{ok} ok, {warning} warnings, {failed} failed, {skipped} skipped"),
        Language::Zh => format!("正常 {ok} 项，警告 {warning} 项，失败 {failed} 项，跳过 {skipped} 项"),
    }
}

/// Why there is nothing to show.
pub const fn failure(why: ExaminationFailed, language: Language) -> &'static str {
    match (language, why) {
        (Language::En, ExaminationFailed::NoLink) => {
            "The worker has no link at this moment, over which it could be asked. On the host itself, gpustack doctor says the same."
        }
        (Language::En, ExaminationFailed::Unanswered) => {
            "The worker did not answer in time. Look again in a moment, or run gpustack doctor on the host itself."
        }
        (Language::En, ExaminationFailed::TooOld) => {
            "The worker’s version cannot look at its host for the server. Bring it to the server’s version."
        }
        (Language::Zh, ExaminationFailed::NoLink) => {
            "该节点目前没有链路，无法询问。请在主机上运行 gpustack doctor，结果相同。"
        }
        (Language::Zh, ExaminationFailed::Unanswered) => {
            "该节点没有及时应答。请稍后再看，或在主机上运行 gpustack doctor。"
        }
        (Language::Zh, ExaminationFailed::TooOld) => "该节点的版本不支持由服务端检查主机，请升级到服务端的版本。",
    }
}

/// What was looked at.
pub fn looked_at(examination: &Examination, language: Language) -> String {
    let Examination { hostname, os, version, .. } = examination;
    match language {
        Language::En => format!("{hostname}, {os}, gpustack {version}. Looked at anew every ten seconds."),
        Language::Zh => format!("{hostname}，{os}，gpustack {version}。每十秒重新检查。"),
    }
}

/// Commands that help; most of these causes need none beside their sentence.
fn commands(reason: &HostReason) -> Vec<String> {
    match reason {
        HostReason::TimeServiceMissing {} => {
            vec!["timedatectl".to_owned(), "systemctl enable --now chronyd".to_owned()]
        }
        HostReason::SeccompFilter {} => vec!["docker run --security-opt seccomp=unconfined …".to_owned()],
        HostReason::ProxyInTheWay { host } => vec![format!("export no_proxy=\"$no_proxy,{host}\"")],
        HostReason::PortInUse { port } | HostReason::PortOfOtherWorker { port, .. } => {
            vec![format!("ss -ltnp | grep ':{port} '")]
        }
        HostReason::DataDirUnusable { path, .. } => vec![format!("ls -ld {}", path)],
        HostReason::PersistenceModeOff {} => vec!["nvidia-smi -pm 1".to_owned()],
        HostReason::ServerNotResolved { host } => {
            vec![format!("getent hosts {host}"), "cat /etc/resolv.conf /etc/hosts".to_owned()]
        }
        HostReason::TokenMissing {} | HostReason::TokenWrong { .. } => vec!["gpustack token".to_owned()],
        _ => Vec::new(),
    }
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / 1024.0 / 1024.0 / 1024.0)
}

/// Hours and minutes east of UTC: `+08:00`.
fn utc_offset(offset_s: i32) -> String {
    let sign = if offset_s < 0 { '-' } else { '+' };
    let minutes = offset_s.unsigned_abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests;
