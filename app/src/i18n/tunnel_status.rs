//! Texts of `gpustack tunnel status`. No browser has them.

use super::Language;
use api::ForwardState;

/// Texts of a status. Ids and addresses come as they are.
#[derive(Debug)]
pub struct TunnelStatusMessages {
    /// The agent's id, its process, and its version.
    pub agent: fn(&str, u32, &str) -> String,
    /// It has joined the server at this URL.
    pub joined: fn(&str) -> String,
    /// It has not; why.
    pub joining: fn(&str, Option<&str>) -> String,
    /// Words of another language.
    pub quoted: fn(&str) -> String,
    /// It reports to nobody.
    pub off: &'static str,
    /// The changed file is not in force; why.
    pub refused_config: fn(&str) -> String,
    /// The table's heads: id, state, since, round trip, made again, worked in 24 hours, 7 days, 30 days.
    pub heads: [&'static str; 8],
    /// Whether a forward works.
    pub state: fn(ForwardState) -> &'static str,
    /// A certificate: the key's file, the users, and how long it is good, in milliseconds; absent for ever.
    pub certificate: fn(&str, &str, Option<i64>) -> String,
    /// So many forwards do not work.
    pub failed: fn(usize) -> String,
    /// What a changed file cannot change while the agent runs.
    pub needs_restart: &'static str,
    /// No agent runs with this state directory.
    pub not_running: fn(&str) -> String,
    /// The state directory cannot be looked into; why.
    pub no_state_dir: fn(&str, &str) -> String,
    /// This user may not ask at the socket.
    pub not_allowed: fn(&str) -> String,
    /// Nothing came from the socket within so many seconds.
    pub silent: fn(&str, u64) -> String,
    /// Asking at the socket fails; why.
    pub ask_failed: fn(&str, &str) -> String,
    /// What came from the socket is no status.
    pub not_understood: fn(&str) -> String,
}

/// The texts in a language.
pub const fn messages(language: Language) -> &'static TunnelStatusMessages {
    match language {
        Language::En => &EN,
        Language::Zh => &ZH,
    }
}

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

static EN: TunnelStatusMessages = TunnelStatusMessages {
    agent: |id, pid, version| format!("Tunnel agent {id} (process {pid}, version {version})"),
    joined: |url| format!("reports to {url}"),
    joining: |url, cause| match cause {
        Some(cause) => format!("has not joined {url}: {cause}"),
        None => format!("is about to join {url}"),
    },
    quoted: |words| words.to_owned(),
    off: "reports to no server (`report: false`)",
    refused_config: |why| format!("The changed file is not in force: {why}"),
    heads: ["FORWARD", "STATE", "SINCE", "ROUND TRIP", "MADE AGAIN", "24 H", "7 D", "30 D"],
    state: |state| match state {
        ForwardState::Starting => "starting",
        ForwardState::Up => "up",
        ForwardState::Unproved => "unproved",
        ForwardState::Degraded => "degraded",
        ForwardState::Down => "down",
    },
    certificate: |key, users, left_ms| match left_ms {
        None => format!("Certificate of {key} for {users}: good for ever"),
        Some(left_ms) if left_ms <= 0 => format!("Certificate of {key} for {users}: not good any more"),
        Some(left_ms) if left_ms < 2 * HOUR_MS => {
            format!("Certificate of {key} for {users}: good for {} more minutes", left_ms / MINUTE_MS)
        }
        Some(left_ms) if left_ms < 48 * HOUR_MS => {
            format!("Certificate of {key} for {users}: good for {} more hours", left_ms / HOUR_MS)
        }
        Some(left_ms) => {
            format!(
                "Certificate of {key} for {users}: good for {} more days",
                (left_ms + 12 * HOUR_MS) / (24 * HOUR_MS)
            )
        }
    },
    failed: |count| {
        if count == 1 { "one forward does not work".to_owned() } else { format!("{count} forwards do not work") }
    },
    needs_restart: "`id`, `state_dir`, `token_file`, `report` and the server's URL need a restart of the agent to change",
    not_running: |state_dir| {
        format!(
            "no tunnel agent runs with the state directory {state_dir}: start it with `gpustack tunnel run`, or name its state directory with --state-dir"
        )
    },
    no_state_dir: |state_dir, why| {
        format!("cannot look into the state directory {state_dir}: {why}; name the agent's with --state-dir")
    },
    not_allowed: |path| format!("this user may not ask the agent at {path}; run the command as the agent's user"),
    silent: |path, deadline_s| format!("the agent at {path} does not answer within {deadline_s} s"),
    ask_failed: |path, why| format!("the agent at {path} does not answer: {why}"),
    not_understood: |path| {
        format!(
            "what answers at {path} is no tunnel agent of this version; restart the agent with the program that asks"
        )
    },
};

static ZH: TunnelStatusMessages = TunnelStatusMessages {
    agent: |id, pid, version| format!("隧道代理 {id}（进程 {pid}，版本 {version}）"),
    joined: |url| format!("已接入 {url}"),
    joining: |url, cause| match cause {
        Some(cause) => format!("尚未接入 {url}：{cause}"),
        None => format!("正在接入 {url}"),
    },
    quoted: |words| format!("系统提示：“{words}”"),
    off: "不向任何服务端上报（`report: false`）",
    refused_config: |why| format!("修改后的配置文件未生效：{why}"),
    heads: ["转发", "状态", "持续", "往返时延", "重建次数", "24 小时", "7 天", "30 天"],
    state: |state| match state {
        ForwardState::Starting => "建立中",
        ForwardState::Up => "正常",
        ForwardState::Unproved => "未验证",
        ForwardState::Degraded => "异常",
        ForwardState::Down => "中断",
    },
    certificate: |key, users, left_ms| match left_ms {
        None => format!("{key} 的证书（用户 {users}）：长期有效"),
        Some(left_ms) if left_ms <= 0 => format!("{key} 的证书（用户 {users}）：已失效"),
        Some(left_ms) if left_ms < 2 * HOUR_MS => {
            format!("{key} 的证书（用户 {users}）：剩余 {} 分钟", left_ms / MINUTE_MS)
        }
        Some(left_ms) if left_ms < 48 * HOUR_MS => {
            format!("{key} 的证书（用户 {users}）：剩余 {} 小时", left_ms / HOUR_MS)
        }
        Some(left_ms) => {
            format!("{key} 的证书（用户 {users}）：剩余 {} 天", (left_ms + 12 * HOUR_MS) / (24 * HOUR_MS))
        }
    },
    failed: |count| format!("{count} 条转发不可用"),
    needs_restart: "`id`、`state_dir`、`token_file`、`report` 和服务端地址的更改需要重启代理才能生效",
    not_running: |state_dir| {
        format!(
            "没有隧道代理使用状态目录 {state_dir}：请用 `gpustack tunnel run` 启动，或用 --state-dir 指定其状态目录"
        )
    },
    no_state_dir: |state_dir, why| format!("无法查看状态目录 {state_dir}：{why}；请用 --state-dir 指定代理的状态目录"),
    not_allowed: |path| format!("当前用户无权查询 {path} 处的代理；请以运行代理的用户执行此命令"),
    silent: |path, deadline_s| format!("{path} 处的代理在 {deadline_s} 秒内没有应答"),
    ask_failed: |path, why| format!("{path} 处的代理没有应答：{why}"),
    not_understood: |path| format!("{path} 处的应答不是本版本隧道代理的状态；请用同一版本的程序重启代理"),
};
