//! Texts of what the server draws on the page of one worker: host, reach, events. The browser has none of them.

use api::LinkCarrier;

/// Texts of host, reach and events of one worker.
#[derive(Debug)]
pub struct WorkerFactsMessages {
    /// Section.
    pub host: &'static str,
    /// Section.
    pub events: &'static str,
    /// Section.
    pub reach: &'static str,
    /// Nothing has changed yet.
    pub no_events: &'static str,
    /// Host fact.
    pub hostname: &'static str,
    /// Host fact.
    pub processors: &'static str,
    /// Value: count, percent in use.
    pub processors_value: fn(&str, &str) -> String,
    /// Host fact.
    pub main_memory: &'static str,
    /// Host fact.
    pub swap: &'static str,
    /// Host fact: where it is mounted.
    pub file_system: fn(&str) -> String,
    /// Host fact.
    pub operating_system: &'static str,
    /// Host fact.
    pub kernel: &'static str,
    /// Host fact.
    pub uptime: &'static str,
    /// Host fact.
    pub version: &'static str,
    /// Version of a worker that does not tell it.
    pub version_unknown: &'static str,
    /// Host fact.
    pub worker_id: &'static str,
    /// Host fact.
    pub joined: &'static str,
    /// Used of total, in GiB.
    pub used_of_total: fn(&str, &str) -> String,
    /// Reach.
    pub probe_address: &'static str,
    /// Reach.
    pub round_trip: &'static str,
    /// Reach: since when a link stands, what carries it and where it comes from.
    pub link_value: fn(&str, LinkCarrier, &str) -> String,
    /// Reach.
    pub no_link: &'static str,
    /// Reach.
    pub link_round_trip: &'static str,
    /// Reach.
    pub link_traffic: &'static str,
    /// Reach: from the worker, to the worker.
    pub link_traffic_value: fn(&str, &str) -> String,
    /// Reach.
    pub last_heartbeat: &'static str,
    /// Reach.
    pub clock: &'static str,
    /// Clock offset with its error bar, in milliseconds.
    pub clock_value: fn(&str, i64) -> String,
    /// Event.
    pub joined_event: &'static str,
    /// Event: new hostname.
    pub replaced_event: fn(&str) -> String,
    /// Event: before, after.
    pub state_event: fn(&str, &str) -> String,
    /// Event: change of state, cause.
    pub state_event_because: fn(&str, &str) -> String,
    /// Event: before, after.
    pub address_event: fn(&str, &str) -> String,
    /// Event: length.
    pub gap_event: fn(&str) -> String,
}

/// English.
pub const EN: WorkerFactsMessages = WorkerFactsMessages {
    host: "Host",
    events: "Events",
    reach: "Reach",
    no_events: "Nothing has changed yet.",
    hostname: "Host name",
    processors: "Processors",
    processors_value: |count, percent| format!("{percent} % of {count}"),
    main_memory: "Memory",
    swap: "Swap",
    file_system: |mount_point| format!("Disk at {mount_point}"),
    operating_system: "Operating system",
    kernel: "Kernel",
    uptime: "Up for",
    version: "Worker version",
    version_unknown: "GPUStack 0.7 or older",
    worker_id: "Worker id",
    joined: "Joined",
    used_of_total: |used, total| format!("{used} of {total} GiB"),
    probe_address: "Probed at",
    round_trip: "Round trip",
    link_value: |since, carrier, peer| match carrier {
        LinkCarrier::Stream => format!("up since {since}, from {peer}"),
        LinkCarrier::WebSocket => format!("up since {since}, from {peer}, inside a WebSocket"),
    },
    no_link: "none",
    link_round_trip: "Round trip of the link",
    link_traffic: "Traffic of the link",
    link_traffic_value: |received, sent| format!("{received} from the worker, {sent} to it"),
    last_heartbeat: "Last heartbeat",
    clock: "Clock",
    clock_value: |offset, error_ms| format!("{offset} ± {error_ms} ms"),
    joined_event: "Joined the fleet",
    replaced_event: |hostname| format!("{hostname} took this worker's place"),
    state_event: |from, to| format!("{from} → {to}"),
    state_event_because: |change, cause| format!("{change}. {cause}"),
    address_event: |from, to| format!("Address changed from {from} to {to}"),
    gap_event: |length| format!("The server was not running for {length}"),
};

/// Simplified Chinese.
pub const ZH: WorkerFactsMessages = WorkerFactsMessages {
    host: "主机",
    events: "事件",
    reach: "连通性",
    no_events: "暂无变化。",
    hostname: "主机名",
    processors: "处理器",
    processors_value: |count, percent| format!("{count} 个，使用率 {percent} %"),
    main_memory: "内存",
    swap: "交换区",
    file_system: |mount_point| format!("磁盘 {mount_point}"),
    operating_system: "操作系统",
    kernel: "内核",
    uptime: "运行时间",
    version: "节点版本",
    version_unknown: "GPUStack 0.7 或更早",
    worker_id: "节点编号",
    joined: "加入时间",
    used_of_total: |used, total| format!("{used} / {total} GiB"),
    probe_address: "探测地址",
    round_trip: "往返时间",
    link_value: |since, carrier, peer| match carrier {
        LinkCarrier::Stream => format!("自 {since} 连通，来自 {peer}"),
        LinkCarrier::WebSocket => format!("自 {since} 连通，来自 {peer}，经 WebSocket 承载"),
    },
    no_link: "无",
    link_round_trip: "链路往返时间",
    link_traffic: "链路流量",
    link_traffic_value: |received, sent| format!("节点发来 {received}，发往节点 {sent}"),
    last_heartbeat: "最近心跳",
    clock: "时钟",
    clock_value: |offset, error_ms| format!("{offset}（误差 ±{error_ms} 毫秒）"),
    joined_event: "加入集群",
    replaced_event: |hostname| format!("由 {hostname} 接替"),
    state_event: |from, to| format!("{from} → {to}"),
    state_event_because: |change, cause| format!("{change}。{cause}"),
    address_event: |from, to| format!("地址由 {from} 变为 {to}"),
    gap_event: |length| format!("服务端停止运行 {length}"),
};
