//! Texts of the page of all devices. The server draws it, so the browser has none of them.

use api::AbsentWhy;

/// Texts of the page of all devices. Numbers come as texts, with their thousands separated.
#[derive(Debug)]
pub struct DevicesMessages {
    /// Label of the filters.
    pub filters: &'static str,
    /// Label of the totals of each model.
    pub models: &'static str,
    /// Label of the list.
    pub list: &'static str,
    /// Model: this many devices.
    pub device_count: fn(&str) -> String,
    /// Model: somebody computes on this many.
    pub busy: fn(&str) -> String,
    /// Model: nobody computes on this many.
    pub free: fn(&str) -> String,
    /// Model: this many are not healthy.
    pub unhealthy: fn(&str) -> String,
    /// Model: this many have no current reading.
    pub unknown: fn(&str) -> String,
    /// Model: memory that nobody tells the use of, in GiB.
    pub memory_in_all: fn(&str) -> String,
    /// This many models more than are shown.
    pub more_models: fn(usize) -> String,
    /// First, last, of all.
    pub range: fn(&str, &str, &str) -> String,
    /// The pages.
    pub pages: &'static str,
    /// A chip's number on its host.
    pub physical: fn(u32) -> String,
    /// No driver has taken it.
    pub no_driver: &'static str,
    /// What that means and what to do.
    pub no_driver_why: &'static str,
    /// Old readings whose age nobody knows.
    pub last_known: &'static str,
    /// Why readings are old.
    pub tool_silent: &'static str,
    /// Why readings are old.
    pub worker_silent: &'static str,
    /// Why a reading is absent; None when nobody says.
    pub absent: fn(Option<AbsentWhy>) -> &'static str,
    /// No device was found yet.
    pub none_title: &'static str,
    /// What to do about it.
    pub none_text: &'static str,
    /// A filter leaves nothing.
    pub no_result_text: &'static str,
    /// Above it.
    pub no_result_title: &'static str,
}

/// English.
pub const EN: DevicesMessages = DevicesMessages {
    filters: "Filter devices",
    models: "Models",
    list: "Devices",
    device_count: |count| if count == "1" { "1 device".to_owned() } else { format!("{count} devices") },
    busy: |count| format!("{count} busy"),
    free: |count| format!("{count} free"),
    unhealthy: |count| format!("{count} unhealthy"),
    unknown: |count| format!("{count} unknown"),
    memory_in_all: |total| format!("{total} GiB"),
    more_models: |models| if models == 1 { "and 1 more model".to_owned() } else { format!("and {models} more models") },
    range: |first, last, all| format!("{first}–{last} of {all}"),
    pages: "Pages",
    physical: |index| format!("physical {index}"),
    no_driver: "Present, no driver",
    no_driver_why: "The PCI bus shows this accelerator, but no driver has taken it, so nobody can use it. Install or load the vendor's driver on the host.",
    last_known: "last known",
    tool_silent: "The vendor's tool does not answer. These are the last readings.",
    worker_silent: "The worker is not heard. These are the last readings that it told.",
    absent: |why| match why {
        None => "The worker does not tell this.",
        Some(AbsentWhy::NotAvailable) => "The tool says that there is none now.",
        Some(AbsentWhy::NotSupported) => "The device or its driver cannot tell this.",
        Some(AbsentWhy::Forbidden) => "The worker may not read this.",
        Some(AbsentWhy::Failed) => "The tool failed at this reading.",
        Some(AbsentWhy::NotTold) => "The tool does not tell this.",
        Some(AbsentWhy::Unreadable) => "The tool printed something that is no such reading.",
    },
    none_title: "No devices yet",
    none_text: "A worker tells of its accelerators within seconds after it has joined. If it finds none, its page says why.",
    no_result_title: "Nothing matches",
    no_result_text: "No device fits this search and filter.",
};

/// Simplified Chinese.
pub const ZH: DevicesMessages = DevicesMessages {
    filters: "筛选设备",
    models: "型号",
    list: "设备",
    device_count: |count| format!("{count} 个设备"),
    busy: |count| format!("{count} 忙碌"),
    free: |count| format!("{count} 空闲"),
    unhealthy: |count| format!("{count} 异常"),
    unknown: |count| format!("{count} 未知"),
    memory_in_all: |total| format!("{total} GiB"),
    more_models: |models| format!("另有 {models} 种型号"),
    range: |first, last, all| format!("第 {first}–{last} 个，共 {all} 个"),
    pages: "分页",
    physical: |index| format!("物理编号 {index}"),
    no_driver: "存在，但无驱动",
    no_driver_why: "PCI 总线上可见该加速卡，但没有驱动接管，因此无法使用。请在主机上安装或加载厂商驱动。",
    last_known: "最后已知",
    tool_silent: "厂商工具没有响应，以下为最后的读数。",
    worker_silent: "未收到该节点的心跳，以下为其最后上报的读数。",
    absent: |why| match why {
        None => "节点未上报此项。",
        Some(AbsentWhy::NotAvailable) => "工具显示当前没有此读数。",
        Some(AbsentWhy::NotSupported) => "设备或其驱动不支持此项。",
        Some(AbsentWhy::Forbidden) => "节点无权读取此项。",
        Some(AbsentWhy::Failed) => "工具读取此项失败。",
        Some(AbsentWhy::NotTold) => "工具不提供此项。",
        Some(AbsentWhy::Unreadable) => "工具输出的内容无法识别为该读数。",
    },
    none_title: "还没有设备",
    none_text: "节点加入后会在数秒内上报其加速设备。若未找到任何设备，其页面会说明原因。",
    no_result_title: "没有匹配的设备",
    no_result_text: "没有设备符合当前的搜索与筛选条件。",
};
