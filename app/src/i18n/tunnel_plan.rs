//! Texts of `gpustack tunnel plan`. The command line makes the sentences; no browser has them.

use super::Language;
use api::{AgentPlace, ForwardRole};

/// Texts of a plan. Addresses, ids and names come as they are.
#[derive(Debug)]
pub struct TunnelPlanMessages {
    /// The agent's id, and where it runs.
    pub runs: fn(&str, &AgentPlace) -> String,
    /// The state directory.
    pub state_dir: fn(&str) -> String,
    /// The server's URL.
    pub reports_to: fn(&str) -> String,
    /// It reports to nobody.
    pub reports_nowhere: &'static str,
    /// What a forward is for; of which workers.
    pub role: fn(ForwardRole, &str) -> String,
    /// Between workers.
    pub list_separator: &'static str,
    /// Between an address and where that is.
    pub place_separator: &'static str,
    /// Label: where it listens.
    pub listens: &'static str,
    /// Label: where its connections go.
    pub leads_to: &'static str,
    /// Label: over which SSH servers.
    pub through: &'static str,
    /// Label: how to prove that it works.
    pub proof: &'static str,
    /// On the agent's host.
    pub here: &'static str,
    /// On the host of this account.
    pub on: fn(&str) -> String,
    /// An address as the host of this account sees it.
    pub seen_from: fn(&str) -> String,
    /// As the agent's host sees it.
    pub seen_from_here: &'static str,
    /// Through another forward, by its id.
    pub behind: fn(&str) -> String,
    /// A server has to answer.
    pub proof_server: &'static str,
    /// This worker has to answer.
    pub proof_worker: fn(&str) -> String,
    /// Somebody has to take a connection.
    pub proof_connection: &'static str,
    /// Above the notes.
    pub notes: &'static str,
    /// One forward for each worker is enough.
    pub link_is_enough: &'static str,
    /// Which flags a worker needs.
    pub start_worker_with: fn(&str, &str) -> String,
    /// Which port was chosen for a worker.
    pub port_chosen: fn(&str, u16) -> String,
    /// Where to run the commands.
    run_on_bastion: &'static str,
    run_on_server: &'static str,
    run_on_worker: fn(&str) -> String,
    /// The file has so many problems, which follow.
    pub things_are_wrong: fn(usize) -> String,
    /// How to use the configuration of `ssh`.
    pub ssh_config_use: &'static str,
}

impl TunnelPlanMessages {
    /// Where to run commands that make the same forwards, and in which order.
    pub fn run_on(&self, place: &AgentPlace) -> String {
        match place {
            AgentPlace::Bastion => self.run_on_bastion.to_owned(),
            AgentPlace::Server => self.run_on_server.to_owned(),
            AgentPlace::Worker { worker } => (self.run_on_worker)(worker),
        }
    }
}

/// The texts in a language.
pub const fn messages(language: Language) -> &'static TunnelPlanMessages {
    match language {
        Language::En => &EN,
        Language::Zh => &ZH,
    }
}

const EN: TunnelPlanMessages = TunnelPlanMessages {
    runs: |id, place| match place {
        AgentPlace::Bastion => format!("Agent {id}, on a bastion."),
        AgentPlace::Server => format!("Agent {id}, on the server's host."),
        AgentPlace::Worker { worker } => format!("Agent {id}, on the host of worker {worker}."),
    },
    state_dir: |path| format!("It keeps its state in {path}."),
    reports_to: |url| format!("It reports to {url}."),
    reports_nowhere: "It reports to no server.",
    role: |role, workers| match role {
        ForwardRole::ServerHere => "the server's port, brought to this host".to_owned(),
        ForwardRole::ServerAtWorker => format!("the server's port, brought to worker {workers}"),
        ForwardRole::WorkerHere => format!("the port of worker {workers}, brought to this host"),
        ForwardRole::WorkerAtServer => format!("the port of worker {workers}, brought to the server for health checks"),
        ForwardRole::Other if workers.is_empty() => "a forward of your own".to_owned(),
        ForwardRole::Other => format!("a forward of your own, for {workers}"),
    },
    list_separator: ", ",
    place_separator: ", ",
    listens: "listens at",
    leads_to: "leads to",
    through: "through",
    proof: "works when",
    here: "on this host",
    on: |account| format!("on the host of {account}"),
    seen_from: |account| format!("as {account} sees it"),
    seen_from_here: "as this host sees it",
    behind: |id| format!("which is the forward {id}"),
    proof_server: "a gpustack server answers at /healthz",
    proof_worker: |name| format!("worker {name} answers at /healthz"),
    proof_connection: "the target takes a connection",
    notes: "To know:",
    link_is_enough: "Workers of this version need one forward only, the one that brings the server’s port to them: the server asks them over the connection that they dial. The way back that `health_check: true` makes is for workers of GPUStack 0.7, and for whoever wants the direct probe to succeed.",
    start_worker_with: |worker, flags| format!("Start worker {worker} with: {flags}"),
    port_chosen: |worker, port| {
        format!("Port {port} of the server's host is chosen for worker {worker}. `gpustack tunnel run` remembers it.")
    },
    run_on_bastion: "Run these on the bastion, in this order.",
    run_on_server: "Run these on the server's host, in this order.",
    run_on_worker: |worker| format!("Run these on the host of worker {worker}, in this order."),
    things_are_wrong: |count| format!("{count} things are wrong:"),
    ssh_config_use: "Use it with: ssh -F THIS_FILE -N GPUStack-Tunnel-ID, in the order of the blocks.",
};

const ZH: TunnelPlanMessages = TunnelPlanMessages {
    runs: |id, place| match place {
        AgentPlace::Bastion => format!("隧道代理 {id}，运行在堡垒机上。"),
        AgentPlace::Server => format!("隧道代理 {id}，运行在服务端主机上。"),
        AgentPlace::Worker { worker } => format!("隧道代理 {id}，运行在工作节点 {worker} 的主机上。"),
    },
    state_dir: |path| format!("状态保存在 {path}。"),
    reports_to: |url| format!("向 {url} 上报。"),
    reports_nowhere: "不向任何服务端上报。",
    role: |role, workers| match role {
        ForwardRole::ServerHere => "把服务端端口映射到本机".to_owned(),
        ForwardRole::ServerAtWorker => format!("把服务端端口映射到工作节点 {workers}"),
        ForwardRole::WorkerHere => format!("把工作节点 {workers} 的端口映射到本机"),
        ForwardRole::WorkerAtServer => format!("把工作节点 {workers} 的端口映射到服务端，供健康检查使用"),
        ForwardRole::Other if workers.is_empty() => "自定义转发".to_owned(),
        ForwardRole::Other => format!("自定义转发，用于 {workers}"),
    },
    list_separator: "、",
    place_separator: "，",
    listens: "监听",
    leads_to: "转发到",
    through: "经由",
    proof: "正常标准",
    here: "在本机",
    on: |account| format!("在 {account} 所在主机"),
    seen_from: |account| format!("从 {account} 所在主机访问"),
    seen_from_here: "从本机访问",
    behind: |id| format!("即隧道 {id} 的入口"),
    proof_server: "gpustack 服务端在 /healthz 应答",
    proof_worker: |name| format!("工作节点 {name} 在 /healthz 应答"),
    proof_connection: "目标接受连接",
    notes: "说明：",
    link_is_enough: "本版本的工作节点只需要一条隧道，即把服务端端口映射到工作节点的那条：服务端通过工作节点自己的链路访问它。`health_check: true` 建立的回程隧道供 GPUStack 0.7 的工作节点使用，或在希望直接探测成功时使用。",
    start_worker_with: |worker, flags| format!("启动工作节点 {worker} 时使用：{flags}"),
    port_chosen: |worker, port| {
        format!("已为工作节点 {worker} 选定服务端主机的端口 {port}，`gpustack tunnel run` 会记住它。")
    },
    run_on_bastion: "请在堡垒机上按顺序执行。",
    run_on_server: "请在服务端主机上按顺序执行。",
    run_on_worker: |worker| format!("请在工作节点 {worker} 的主机上按顺序执行。"),
    things_are_wrong: |count| format!("共有 {count} 处问题："),
    ssh_config_use: "用法：ssh -F 本文件 -N GPUStack-Tunnel-ID，按各段的先后顺序。",
};
