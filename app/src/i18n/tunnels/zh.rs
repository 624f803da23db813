//! Simplified Chinese.

use super::{Told, TunnelsMessages, detail};
use crate::i18n::Language;
use api::{FaultCause, ForwardRole, ForwardState, SshStep};

/// What happened, and where.
#[expect(clippy::too_many_lines, reason = "one sentence for each cause; the compiler sees that none is missing")]
pub fn what(told: &Told<'_>) -> String {
    let hop = told.fault.hop.as_deref().unwrap_or("SSH 服务器");
    match &told.fault.cause {
        FaultCause::NameUnknown { host } => format!("主机名 {host} 无法解析。"),
        FaultCause::SshRefused { address } => {
            format!("{address} 拒绝连接：主机有响应，但该端口上没有 SSH 服务在监听。")
        }
        FaultCause::SshNoAnswer { address } => format!("{address} 没有任何响应。"),
        FaultCause::NoRoute { address } => format!("网络不通，无法到达 {address}。"),
        FaultCause::SshConnect { address, detail } => format!("连接 {address} 失败（{}）。", said(detail)),
        FaultCause::NotSsh { first_line } => format!("{hop} 处应答的不是 SSH 服务，其首行为“{first_line}”。"),
        FaultCause::ClosedBeforeGreeting { said: None } => format!("{hop} 在发出问候之前就关闭了连接。"),
        FaultCause::ClosedBeforeGreeting { said: Some(said) } => {
            format!("{hop} 在发出问候之前就关闭了连接，最后的内容为“{said}”。")
        }
        FaultCause::TooSlow { step, deadline_s } => {
            format!("{hop} 的{}超过了 {deadline_s} 秒。", step_word(*step))
        }
        FaultCause::NoCommonProtocol { detail } => format!("{hop} 与隧道代理没有共同支持的协议（{}）。", said(detail)),
        FaultCause::HostKeyUnknown { algorithm, fingerprint } => {
            format!("尚未确认 {hop} 是否可信。它出示的 {algorithm} 密钥为 {fingerprint}。")
        }
        FaultCause::HostKeyChanged { fingerprint, known } => format!(
            "{hop} 出示的密钥 {fingerprint} 与 {} 中已知的不同：要么该主机重装过，要么中间有人冒充。",
            known.join("、")
        ),
        FaultCause::HostKeyRevoked { fingerprint, place } => {
            format!("{hop} 出示的密钥 {fingerprint} 已在 {place} 中被吊销。")
        }
        FaultCause::HostCertificate { key_id, detail } => {
            format!("{hop} 的主机证书“{key_id}”不符（{}）。", said(detail))
        }
        FaultCause::KnownHosts { detail } => format!("已知主机文件无法使用（{}）。", said(detail)),
        FaultCause::KeyMissing { path } => format!("密钥文件 {path} 不存在。"),
        FaultCause::KeyNotPrivate { path, mode } => {
            format!("密钥文件 {path} 可被其他用户读取（权限 {mode}），因此不予使用。")
        }
        FaultCause::KeyUnusable { detail } => format!("用于 {hop} 的密钥无法使用（{}）。", said(detail)),
        FaultCause::CertificateNotYetValid { key_id, valid_after_ms, clock_ms } => format!(
            "证书“{key_id}”自 {} 起才有效，而代理主机的时钟显示 {}。",
            told.time(*valid_after_ms),
            told.time(*clock_ms)
        ),
        FaultCause::CertificateExpired { key_id, valid_before_ms, .. } => {
            format!("证书“{key_id}”已于 {} 过期。", told.time(*valid_before_ms))
        }
        FaultCause::LoginRefused { user, tried } if tried.is_empty() => {
            format!("{hop} 拒绝 {user} 登录：没有可出示的密钥。")
        }
        FaultCause::LoginRefused { user, tried } => {
            format!("{hop} 拒绝 {user} 登录。已出示：{}。", tried.join("、"))
        }
        FaultCause::KeyNotEnough { user, offered } => {
            format!("{hop} 不允许 {user} 仅凭密钥登录，它要求：{}。", offered.join("、"))
        }
        FaultCause::TooManyKeys { tried } => format!("{hop} 在尝试 {tried} 个密钥后中止了登录。"),
        FaultCause::PortTakenHere { address, agent: Some(agent), pid } => {
            format!("代理主机上的 {address} 已被另一个隧道代理 {agent}（进程 {}）占用。", pid.unwrap_or_default())
        }
        FaultCause::PortTakenHere { address, agent: None, .. } => format!("代理主机上的 {address} 已被其他程序占用。"),
        FaultCause::ListenHere { address, detail } => {
            format!("隧道代理无法在本机 {address} 上监听（{}）。", said(detail))
        }
        FaultCause::PortTakenThere { address } => {
            format!("{hop} 上的 {address} 已被占用：可能是其他程序，也可能是 sshd 尚未察觉已断开的会话。")
        }
        FaultCause::StaleListener { address, waited_s } => {
            format!(
                "{hop} 上的 {address} 仍被该隧道自己先前的会话占用，已等待 {waited_s} 秒；其 sshd 尚未察觉会话已断开。"
            )
        }
        FaultCause::ListenForbidden { address } => format!("{hop} 不允许该用户在 {address} 上监听。"),
        FaultCause::PrivilegedPort { address } => {
            format!("{hop} 没有在 {address} 上监听：1024 以下的端口只有 root 可用。")
        }
        FaultCause::ListenDenied { address } => format!("{hop} 没有在 {address} 上监听，也没有说明原因。"),
        FaultCause::LoopbackOnly { address } => format!("{hop} 在 {address} 上的监听只对其本机程序开放。"),
        FaultCause::TargetForbidden { target } => format!("{hop} 不允许连接 {target}。"),
        FaultCause::TargetRefused { target, detail: None } => {
            format!("{target} 拒绝了来自{}的连接。", host(told.fault.hop.as_deref()))
        }
        FaultCause::TargetRefused { target, detail: Some(detail) } => {
            format!("从{}无法连接 {target}（{}）。", host(told.fault.hop.as_deref()), said(detail))
        }
        FaultCause::TargetNoAnswer { target, deadline_s } => {
            format!("从{}连接 {target}，{deadline_s} 秒内没有响应。", host(told.fault.hop.as_deref()))
        }
        FaultCause::KeepAliveLost { silent_s } => format!("{hop} 已有 {silent_s} 秒没有任何响应。"),
        FaultCause::SessionClosed {} => format!("与 {hop} 的连接被对方关闭。"),
        FaultCause::SessionEnded { message } => format!("{hop} 结束了会话：“{message}”。"),
        FaultCause::SessionBroken { detail } => format!("与 {hop} 的连接中断（{}）。", said(detail)),
        FaultCause::NothingAnswers { url, detail, target: None, .. } => {
            format!("从{}访问 {url} 无人应答（{}）。", host(None), said(detail))
        }
        FaultCause::NothingAnswers { url, detail, asked_on, target: Some(target), target_from } => format!(
            "隧道已建立，但从{}经隧道访问 {url} 无人应答（{}）。该隧道转发到{}所见的 {target}。",
            host(asked_on.as_deref()),
            said(detail),
            host(target_from.as_deref())
        ),
        FaultCause::WrongAnswer { url, status: Some(status) } => {
            format!("经隧道访问 {url} 时，应答的不是 gpustack（HTTP 状态 {status}）。")
        }
        FaultCause::WrongAnswer { url, status: None } => format!("经隧道访问 {url} 时，应答的不是 gpustack。"),
        FaultCause::WrongServer { url, expected: Some(expected), answered: Some(answered) } => format!(
            "经隧道访问 {url} 时，应答的不是该代理所加入的服务端：应答者的密钥为 {answered}，所加入者的密钥为 {expected}。"
        ),
        FaultCause::WrongServer { url, .. } => format!("经隧道访问 {url} 时，应答的不是该代理所加入的服务端。"),
        FaultCause::WrongWorker { expected, answered } => {
            format!("本应通往 {expected} 的隧道上，应答的是节点 {answered}。")
        }
        FaultCause::ProbeForbidden { address } => {
            format!("就目前所见隧道已建立，但 {hop} 不允许代理经隧道访问 {address} 进行验证。")
        }
        FaultCause::DependsOn { forward } => format!("它要经过隧道 {forward}，而后者不通。"),
    }
}

/// What to do.
pub fn next_step(told: &Told<'_>) -> String {
    let hop = told.fault.hop.as_deref().unwrap_or("该主机");
    match &told.fault.cause {
        FaultCause::NameUnknown { .. } => "请更正 tunnels.yaml 中的主机名，或将其加入 /etc/hosts。".to_owned(),
        FaultCause::SshRefused { .. } => "请在该主机上启动 sshd，或更正 tunnels.yaml 中的端口。".to_owned(),
        FaultCause::SshNoAnswer { .. } => "请检查该主机是否在运行，以及中间的防火墙是否丢弃了到该端口的数据包。".to_owned(),
        FaultCause::NoRoute { .. } => "请检查地址，以及路径上前一台主机的路由。".to_owned(),
        FaultCause::SshConnect { .. } => "请在同一主机上手动执行 ssh，检查地址与端口。".to_owned(),
        FaultCause::NotSsh { .. } => "请更正 tunnels.yaml 中的端口，或查看该端口上是什么程序。".to_owned(),
        FaultCause::ClosedBeforeGreeting { .. } => {
            "可能是同时登录过多、登录失败后的惩罚，或 TCP wrappers：请查看该主机的 /var/log/auth.log 或 /var/log/secure。"
                .to_owned()
        }
        FaultCause::TooSlow { .. } => "请查看该主机是否过载，或是否在等待域名解析（后者可设置 UseDNS no）。".to_owned(),
        FaultCause::NoCommonProtocol { .. } => "请升级该 SSH 服务器，或在其上启用较新的算法。".to_owned(),
        FaultCause::HostKeyUnknown { .. } => {
            "请在该主机控制台上核对指纹，然后在代理主机上执行以下命令予以信任。".to_owned()
        }
        FaultCause::HostKeyChanged { .. } => {
            "请先查明是哪一种情况。若主机确已重装，请删除文件中的旧行并信任新密钥。".to_owned()
        }
        FaultCause::HostKeyRevoked { .. } => "请为该主机更换密钥，或查明是谁在应答。".to_owned(),
        FaultCause::HostCertificate { .. } => "请签发名称与有效期正确的新主机证书；若时钟不准，请先校准。".to_owned(),
        FaultCause::KnownHosts { .. } => "请更正该文件。".to_owned(),
        FaultCause::KeyMissing { .. } => "请将密钥放到该处，或在 tunnels.yaml 中写明正确的文件。".to_owned(),
        FaultCause::KeyNotPrivate { .. } => "请将其权限改为仅所有者可读。".to_owned(),
        FaultCause::KeyUnusable { .. } => "请在 tunnels.yaml 中指定无口令的密钥与有效的证书，或将密钥加载到 SSH agent。".to_owned(),
        FaultCause::CertificateNotYetValid { .. } => "请校准代理主机的时钟。".to_owned(),
        FaultCause::CertificateExpired { .. } => "请为该密钥签发新证书。".to_owned(),
        FaultCause::LoginRefused { user, .. } => format!(
            "请将公钥加入 {hop} 上的 ~{user}/.ssh/authorized_keys，或签发包含 {user} 的证书。看似正确的证书也可能已被吊销、限定了其他源地址，或因该主机时钟不准而被拒。拒绝的原因见其 sshd 日志。"
        ),
        FaultCause::KeyNotEnough { .. } => format!(
            "请在 {hop} 上允许仅凭密钥登录：见其 sshd_config 的 PubkeyAuthentication 与 AuthenticationMethods。"
        ),
        FaultCause::TooManyKeys { .. } => "请在 tunnels.yaml 中只指定正确的那个密钥，或在该主机上调大 MaxAuthTries。".to_owned(),
        FaultCause::PortTakenHere { agent: Some(_), .. } => {
            "如果它是之前启动而未结束的代理，请结束它；否则请为其中之一改用其他端口。".to_owned()
        }
        FaultCause::PortTakenHere { .. } => "请查看是哪个程序，结束它或改用其他端口。".to_owned(),
        FaultCause::ListenHere { .. } => "请更正 tunnels.yaml 中的地址。".to_owned(),
        FaultCause::PortTakenThere { .. } => {
            "请在该主机上用 ss -ltnp 查看占用者。加入以下各行后，已断开的会话会更快结束。".to_owned()
        }
        FaultCause::StaleListener { .. } => "它会自行消失。在该主机上加入以下各行后，约两分钟内即会消失。".to_owned(),
        FaultCause::PrivilegedPort { .. } => "请改用 1024 及以上的端口，或以 root 登录。".to_owned(),
        FaultCause::ListenDenied { .. } => {
            "请查看该端口是否已被占用，以及以下各行是否允许监听。其 sshd 日志有更多信息。".to_owned()
        }
        FaultCause::LoopbackOnly { .. } => {
            "若其他主机也要使用该端口，请在该主机上放行；否则让隧道在 127.0.0.1 上监听。".to_owned()
        }
        FaultCause::ListenForbidden { .. }
        | FaultCause::TargetForbidden { .. }
        | FaultCause::ProbeForbidden { .. } => {
            "请在该主机上放行，同时检查 authorized_keys 中该密钥的选项。".to_owned()
        }
        FaultCause::TargetRefused { .. } => "请启动应在该处应答的程序，或更正 tunnels.yaml 中的端口。".to_owned(),
        FaultCause::TargetNoAnswer { .. } => "请检查其主机是否在运行，以及防火墙是否丢弃了数据包。".to_owned(),
        FaultCause::KeepAliveLost { .. }
        | FaultCause::SessionClosed {}
        | FaultCause::SessionEnded { .. }
        | FaultCause::SessionBroken { .. } => "隧道代理会自动重连。若不能持久，请检查该主机及到它的网络。".to_owned(),
        FaultCause::NothingAnswers { target: Some(target), target_from, .. } => format!(
            "请在{}检查 {target} 对应的服务端或节点是否在运行，并监听该端口。",
            host(target_from.as_deref())
        ),
        FaultCause::NothingAnswers { .. } => "请检查隧道另一端的服务端或节点是否在运行，并监听该端口。".to_owned(),
        FaultCause::WrongAnswer { .. } => "请查看隧道目标端口上是什么程序，并更正端口。".to_owned(),
        FaultCause::WrongServer { .. } => {
            "请检查隧道的目标是否为正确的服务端，如不正确请在 tunnels.yaml 中更正。如果正确，说明该服务端重新安装过，或其数据目录已被替换：请将其 `gpustack token` 显示的令牌写入 `token_file` 并重启代理，代理即会加入该服务端。".to_owned()
        }
        FaultCause::WrongWorker { .. } => "请为每个节点分配各自的端口与隧道。".to_owned(),
        FaultCause::DependsOn { forward } => format!("请先修复 {forward}，本隧道会自行恢复。"),
    }
}

/// A host, by who logs in there; None is the agent's.
fn host(account: Option<&str>) -> String {
    account.map_or_else(|| "代理主机".to_owned(), |account| format!(" {account} 所在主机"))
}

fn said(words: &str) -> String {
    detail(words, Language::Zh)
}

const fn step_word(step: SshStep) -> &'static str {
    match step {
        SshStep::Connect => "连接",
        SshStep::Greet => "问候",
        SshStep::AgreeOnKeys => "密钥交换",
        SshStep::LetIn => "登录",
    }
}

/// Texts of the page.
pub const ZH: TunnelsMessages = TunnelsMessages {
    lead: "在互不相通的服务端与工作节点之间的 SSH 转发，由隧道代理维持并上报状态。",
    topology: "拓扑",
    more_ends: |count, troubled| match troubled {
        0 => format!("另有 {count} 个，均正常"),
        troubled if troubled == count => format!("另有 {count} 个，均异常"),
        troubled => format!("另有 {count} 个，其中 {troubled} 个异常"),
    },
    forwards: "转发",
    agents: "代理",
    certificates: "证书",
    server: "服务端",
    bastion: "堡垒机",
    on_server: "位于服务端主机",
    on_worker: |worker| format!("位于 {worker} 的主机"),
    state: |state| match state {
        ForwardState::Starting => "建立中",
        ForwardState::Up => "正常",
        ForwardState::Unproved => "已建立，未验证",
        ForwardState::Degraded => "异常",
        ForwardState::Down => "中断",
    },
    last_known_state: |state| format!("最后已知：{state}"),
    role: |role| match role {
        ForwardRole::ServerHere => "服务端端口引到代理主机",
        ForwardRole::ServerAtWorker => "服务端端口引到工作节点",
        ForwardRole::WorkerHere => "节点端口引到代理主机",
        ForwardRole::WorkerAtServer => "节点端口引到服务端，供健康检查",
        ForwardRole::Other => "其他用途",
    },
    column_forward: "转发",
    column_way: "从 → 到",
    column_state: "状态",
    column_round_trip: "往返时间",
    column_traffic: "流量",
    column_reconnects: "重连",
    column_availability: "可用率",
    way: |listen, target| format!("{listen} → {target}"),
    over: |route| format!("经 {route}"),
    traffic: |to, from| format!("↑\u{a0}{to} ↓\u{a0}{from}"),
    open_connections: |count| format!("{count} 个连接"),
    spans: ["24 小时", "7 天", "30 天"],
    cuts: |count| match count {
        api::CUTS_REPORTED.. => format!("最近 {count} 次中断"),
        _ => format!("{count} 次中断"),
    },
    no_cuts: "无中断",
    cut_began: "时间",
    cut_lasted: "时长",
    cut_why: "原因",
    cut_goes_on: "仍在持续",
    all: "全部",
    troubled: "有问题",
    filters: "筛选转发",
    worker: "工作节点",
    agent: "代理",
    any: "不限",
    filter: "筛选",
    nothing_matches: "没有符合条件的转发。",
    range: |first, last, all| format!("第 {first}–{last} 条，共 {all} 条"),
    connected_since: |time| format!("已连接，自 {time} 起"),
    gone_since: |time| format!("未连接，自 {time} 起"),
    not_connected: "未连接",
    not_come: "服务端启动后尚未连接",
    told_at: |time| format!("最近上报于 {time}"),
    told_nothing: "尚未上报任何内容。",
    gone_hint: "其转发显示的是最后一次上报的内容。请在其主机上检查 gpustack tunnel run 是否在运行、能否连到服务端。",
    refused_config: "修改后的 tunnels.yaml 未被采纳，仍使用之前的版本。",
    delete: "删除",
    delete_hint: "其密钥将被吊销；持有令牌时可重新加入。",
    certificate_of: "密钥",
    certificate_for: "用途",
    certificate_valid: "有效期",
    no_certificate: "密钥，无证书",
    valid_until: |time, left| format!("至 {time}，剩余 {left}"),
    valid_for_ever: "永久有效",
    expires_soon: |time, left| format!("即将过期：{time}，剩余 {left}"),
    expired: |time| format!("已于 {time} 过期"),
    revoked: |time| format!("已于 {time} 吊销，不能再用于登录"),
    agent_revoked: |time| format!("该代理使用的证书已于 {time} 吊销：现有连接不受影响，重新登录会被拒绝"),
    not_yet_valid: |time| format!("自 {time} 起才有效"),
    empty_title: "还没有隧道代理",
    empty_text: "当工作节点无法直接访问服务端时，可用经堡垒机的 SSH 转发连通。隧道代理就是在堡垒机上运行的本程序：它维持转发、验证应答者是否正确，并在此显示问题所在与处理办法。",
    empty_commands: "在堡垒机上：第一条命令列出配置文件将建立的内容，第二条核对 SSH 服务器的密钥，第三条建立转发。",
    empty_add: "为节点生成 tunnels.yaml",
    of_worker: "隧道",
    all_of_worker: "查看详情",
};
