//! Words and measures that many parts of the UI use.

use crate::format::Span;
use crate::i18n::Messages;
use api::{ConditionKind, DeviceHealth, MemoryKind, WorkerState};

/// Words and measures that many parts of the UI use.
#[derive(Debug)]
pub struct WordMessages {
    /// State.
    pub ready: &'static str,
    /// State.
    pub not_ready: &'static str,
    /// State.
    pub unreachable: &'static str,
    /// State.
    pub maintenance: &'static str,
    /// State.
    pub pending: &'static str,
    /// Severity.
    pub warning: &'static str,
    /// Severity.
    pub error: &'static str,
    /// Nobody can say.
    pub unknown: &'static str,
    /// Condition.
    pub heartbeat: &'static str,
    /// Condition.
    pub link: &'static str,
    /// Condition.
    pub direct: &'static str,
    /// Condition.
    pub clock: &'static str,
    /// Condition.
    pub devices: &'static str,
    /// Condition.
    pub host: &'static str,
    /// Condition.
    pub identity: &'static str,
    /// Device memory whose kind is not known.
    pub memory: &'static str,
    /// Health of a device.
    pub health_ok: &'static str,
    /// Health of a device.
    pub health_warning: &'static str,
    /// Health of a device.
    pub health_critical: &'static str,
    /// A length of time.
    pub span: fn(Span) -> String,
    /// A number of seconds.
    pub seconds: fn(&str) -> String,
    /// A length of time before now.
    pub ago: fn(Span) -> String,
    /// Since a moment.
    pub since: fn(&str) -> String,
    /// Before the commands to run where the server runs.
    pub on_server: &'static str,
    /// Before the commands to run where the worker runs.
    pub on_worker_host: &'static str,
    /// Before the commands to run on the bastion.
    pub on_bastion: &'static str,
}

/// English.
pub const EN: WordMessages = WordMessages {
    ready: "Ready",
    not_ready: "Not ready",
    unreachable: "Unreachable",
    maintenance: "Maintenance",
    pending: "Pending",
    warning: "Warning",
    error: "Error",
    unknown: "unknown",
    heartbeat: "Heartbeat",
    link: "Link",
    direct: "Direct probe",
    clock: "Clock",
    devices: "Devices",
    host: "Host",
    identity: "Identity",
    memory: "Memory",
    health_ok: "OK",
    health_warning: "Warning",
    health_critical: "Critical",
    span: span_en,
    seconds: |seconds| format!("{seconds} s"),
    ago: |span| format!("{} ago", span_en(span)),
    since: |time| format!("since {time}"),
    on_server: "On the server's host",
    on_worker_host: "On the worker's host",
    on_bastion: "On the bastion",
};

/// Simplified Chinese.
pub const ZH: WordMessages = WordMessages {
    ready: "就绪",
    not_ready: "未就绪",
    unreachable: "不可达",
    maintenance: "维护中",
    pending: "等待中",
    warning: "警告",
    error: "错误",
    unknown: "未知",
    heartbeat: "心跳",
    link: "链路",
    direct: "直连探测",
    clock: "时钟",
    devices: "设备",
    host: "主机",
    identity: "身份",
    memory: "显存",
    health_ok: "正常",
    health_warning: "警告",
    health_critical: "严重",
    span: span_zh,
    seconds: |seconds| format!("{seconds} 秒"),
    ago: |span| format!("{}前", span_zh(span)),
    since: |time| format!("自 {time}"),
    on_server: "在服务端主机上执行",
    on_worker_host: "在工作节点主机上执行",
    on_bastion: "在堡垒机上执行",
};

fn span_en(span: Span) -> String {
    match span {
        Span::Seconds(seconds) => format!("{seconds} s"),
        Span::Minutes(minutes, 0) => format!("{minutes} min"),
        Span::Minutes(minutes, seconds) => format!("{minutes} min {seconds} s"),
        Span::Hours(hours, 0) => format!("{hours} h"),
        Span::Hours(hours, minutes) => format!("{hours} h {minutes} min"),
        Span::Days(1) => "1 day".to_owned(),
        Span::Days(days) => format!("{days} days"),
    }
}

fn span_zh(span: Span) -> String {
    match span {
        Span::Seconds(seconds) => format!("{seconds} 秒"),
        Span::Minutes(minutes, 0) => format!("{minutes} 分钟"),
        Span::Minutes(minutes, seconds) => format!("{minutes} 分 {seconds} 秒"),
        Span::Hours(hours, 0) => format!("{hours} 小时"),
        Span::Hours(hours, minutes) => format!("{hours} 小时 {minutes} 分"),
        Span::Days(days) => format!("{days} 天"),
    }
}

impl Messages {
    /// The word for a state.
    pub const fn state_word(&self, state: WorkerState) -> &'static str {
        match state {
            WorkerState::Ready => self.words.ready,
            WorkerState::NotReady => self.words.not_ready,
            WorkerState::Unreachable => self.words.unreachable,
            WorkerState::Maintenance => self.words.maintenance,
            WorkerState::Pending => self.words.pending,
        }
    }

    /// The word for a kind of condition.
    pub const fn condition_word(&self, kind: ConditionKind) -> &'static str {
        match kind {
            ConditionKind::Heartbeat => self.words.heartbeat,
            ConditionKind::Link => self.words.link,
            ConditionKind::Direct => self.words.direct,
            ConditionKind::Clock => self.words.clock,
            ConditionKind::Devices => self.words.devices,
            ConditionKind::Host => self.words.host,
            ConditionKind::Identity => self.words.identity,
        }
    }

    /// The word for a device's memory.
    pub const fn memory_word(&self, kind: Option<MemoryKind>) -> &'static str {
        match kind {
            Some(MemoryKind::Hbm) => "HBM",
            Some(MemoryKind::Ddr) => "DDR",
            None => self.words.memory,
        }
    }

    /// The word for a device's health.
    pub const fn health_word(&self, health: DeviceHealth) -> &'static str {
        match health {
            DeviceHealth::Ok => self.words.health_ok,
            DeviceHealth::Warning => self.words.health_warning,
            DeviceHealth::Critical => self.words.health_critical,
            DeviceHealth::Unknown => self.words.unknown,
        }
    }

    /// A difference of clocks with its sign: `+0.02 s`, `-8 h`.
    pub fn clock_offset(&self, offset_ms: i64) -> String {
        // What is written as zero has no sign.
        let sign = match offset_ms {
            ..-4 => "-",
            -4..5 => "",
            5.. => "+",
        };
        format!("{sign}{}", self.clock_difference(offset_ms))
    }

    /// A difference of clocks without its sign: `0.02 s`, `8 h`.
    pub fn clock_difference(&self, offset_ms: i64) -> String {
        let size_ms = offset_ms.unsigned_abs();
        if size_ms >= 60_000 {
            return (self.words.span)(Span::of_seconds(size_ms.saturating_add(500) / 1000));
        }
        if size_ms >= 10_000 {
            return (self.words.seconds)(&((size_ms + 500) / 1000).to_string());
        }
        let hundredths = (size_ms + 5) / 10;
        (self.words.seconds)(&format!("{}.{:02}", hundredths / 100, hundredths % 100))
    }
}

#[cfg(test)]
mod tests {
    use crate::i18n::Language;

    #[test]
    fn offsets_have_a_sign_and_fit_their_size() {
        for (offset_ms, en, zh) in [
            (20, "+0.02 s", "+0.02 秒"),
            (-4, "0.00 s", "0.00 秒"),
            (-5, "-0.01 s", "-0.01 秒"),
            (-1_500, "-1.50 s", "-1.50 秒"),
            (31_000, "+31 s", "+31 秒"),
            (187_000, "+3 min 7 s", "+3 分 7 秒"),
            (-28_800_400, "-8 h", "-8 小时"),
            (-1_760_000_000_000, "-20370 days", "-20370 天"),
        ] {
            assert_eq!(Language::En.messages().clock_offset(offset_ms), en);
            assert_eq!(Language::Zh.messages().clock_offset(offset_ms), zh);
        }
    }
}
