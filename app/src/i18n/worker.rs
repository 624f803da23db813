//! Texts of the page of one worker.

/// Texts of the page of one worker.
#[derive(Debug)]
pub struct WorkerMessages {
    /// Back to the list.
    pub back: &'static str,
    /// Section.
    pub conditions: &'static str,
    /// Leads to the host, point by point; also that page's title.
    pub check_host: &'static str,
    /// Section.
    pub devices: &'static str,
    /// Nobody has reported a condition yet.
    pub no_conditions: &'static str,
    /// A condition of a worker that is not heard any more.
    pub last_known: fn(&str) -> String,

    /// Column.
    pub index: &'static str,
    /// Group of chips: card.
    pub card: fn(u32) -> String,
    /// A chip on its card: card, chip.
    pub chip_on_card: fn(u32, u32) -> String,
    /// A device: index.
    pub device: fn(u32) -> String,
    /// Group of chips whose card is not known.
    pub card_unknown: &'static str,
    /// Column.
    pub model: &'static str,
    /// Column.
    pub bus: &'static str,
    /// Column.
    pub utilisation: &'static str,
    /// Column.
    pub memory: &'static str,
    /// Column.
    pub temperature: &'static str,
    /// Column.
    pub power: &'static str,
    /// Column.
    pub health: &'static str,
    /// Column.
    pub network: &'static str,
    /// Driver version.
    pub driver: &'static str,
}

/// English.
pub const EN: WorkerMessages = WorkerMessages {
    back: "All workers",
    conditions: "Conditions",
    check_host: "Check the host",
    devices: "Devices",
    no_conditions: "Nothing is known yet.",
    last_known: |what| format!("Last known: {what}"),
    index: "Device",
    card: |card| format!("Card {card}"),
    chip_on_card: |card, chip| format!("Card {card}, chip {chip}"),
    device: |index| format!("Device {index}"),
    card_unknown: "Card unknown",
    model: "Model",
    bus: "Bus",
    utilisation: "Utilisation",
    memory: "Memory",
    temperature: "Temp",
    power: "Power",
    health: "Health",
    network: "Network port",
    driver: "Driver",
};

/// Simplified Chinese.
pub const ZH: WorkerMessages = WorkerMessages {
    back: "全部节点",
    conditions: "状况",
    check_host: "检查主机",
    devices: "设备",
    no_conditions: "暂无信息。",
    last_known: |what| format!("最后已知：{what}"),
    index: "设备",
    card: |card| format!("卡 {card}"),
    chip_on_card: |card, chip| format!("卡 {card}，芯片 {chip}"),
    device: |index| format!("设备 {index}"),
    card_unknown: "未知卡",
    model: "型号",
    bus: "总线",
    utilisation: "利用率",
    memory: "显存",
    temperature: "温度",
    power: "功率",
    health: "健康",
    network: "网口",
    driver: "驱动",
};
