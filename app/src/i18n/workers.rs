//! Texts of the list of workers: banner, filters, cards, table, menu and dialogs.

/// Texts of the list of workers.
#[derive(Debug)]
pub struct WorkersMessages {
    /// Title of the page.
    pub title: &'static str,
    /// Label of the state chips.
    pub filter_by_state: &'static str,
    /// Chip: every worker.
    pub all: &'static str,
    /// Chip: workers of which the banner speaks.
    pub trouble: &'static str,
    /// Label of the order.
    pub sort: &'static str,
    /// Applies the order where there is no JavaScript.
    pub apply: &'static str,
    /// The other way round.
    pub reverse: &'static str,
    /// Order.
    pub by_name: &'static str,
    /// Order.
    pub by_state: &'static str,
    /// Order.
    pub by_use: &'static str,
    /// Order.
    pub by_memory: &'static str,
    /// Order.
    pub by_temperature: &'static str,
    /// Order.
    pub by_heartbeat: &'static str,
    /// Order.
    pub by_clock: &'static str,
    /// Label of the choice of layout.
    pub layout: &'static str,
    /// Layout.
    pub cards: &'static str,
    /// Layout.
    pub table: &'static str,
    /// The list is of a while ago: takes in what changed.
    pub list_changed: &'static str,
    /// Shown, all.
    pub shown_of: fn(usize, usize) -> String,
    /// Pages where there is no JavaScript: page, pages.
    pub page_of: fn(usize, usize) -> String,
    /// To the page before.
    pub previous_page: &'static str,
    /// To the page after.
    pub next_page: &'static str,

    /// Nobody has joined yet.
    pub empty_title: &'static str,
    /// What to do about it.
    pub empty_text: &'static str,
    /// A filter leaves nothing.
    pub no_result_title: &'static str,
    /// What to do about it.
    pub no_result_text: &'static str,
    /// Shows all again.
    pub clear_filters: &'static str,

    /// Banner: workers not ready, workers unreachable, further workers with errors.
    pub banner_errors: fn(usize, usize, usize) -> String,
    /// Banner: workers with warnings only.
    pub banner_warnings: fn(usize) -> String,
    /// Banner: this many workers.
    pub worker_count: fn(usize) -> String,
    /// Banner: this many more conditions of the worker have the same cause.
    pub more_alike: fn(usize) -> String,
    /// Banner: this many lines more.
    pub more_lines: fn(usize) -> String,
    /// Banner: this many workers more than are named.
    pub more_workers: fn(usize) -> String,
    /// Unfolds the commands.
    pub show_commands: &'static str,
    /// Copies them.
    pub copy_commands: &'static str,
    /// To the worker's page.
    pub open_worker: &'static str,

    /// Meter.
    pub utilisation: &'static str,
    /// Meter.
    pub temperature: &'static str,
    /// Value of the temperature meter: degrees.
    pub hottest: fn(&str) -> String,
    /// No figure.
    pub no_reading: &'static str,
    /// The worker has no accelerators.
    pub no_devices: &'static str,
    /// The first detection has not finished.
    pub devices_awaited: &'static str,
    /// The worker was lost before the first detection had finished, or something keeps it from reading them.
    pub devices_unknown: &'static str,
    /// The readings are this old.
    pub stale: fn(&str) -> String,
    /// The same beside the devices' names, where there is little room.
    pub stale_short: fn(&str) -> String,
    /// So many more models.
    pub more_models: fn(usize) -> String,
    /// Alternative text of a row of bars: what it shows, value, values per device.
    pub bars_text: fn(&str, &str, &str) -> String,
    /// Value of one device: index, value.
    pub device_value: fn(u32, &str) -> String,
    /// How to look at each device.
    pub devices_hint: &'static str,
    /// Heartbeat never received.
    pub never: &'static str,
    /// Tooltip of the heartbeat's age: time.
    pub last_heartbeat: fn(&str) -> String,
    /// Tooltip of the round trip.
    pub round_trip: &'static str,
    /// Tooltip of the offset.
    pub clock_offset: &'static str,

    /// Table column.
    pub column_state: &'static str,
    /// Table column.
    pub column_worker: &'static str,
    /// Table column.
    pub column_address: &'static str,
    /// Table column.
    pub column_devices: &'static str,
    /// Table column.
    pub column_menu: &'static str,

    /// Opens the menu of a worker.
    pub menu_of: fn(&str) -> String,
    /// Menu.
    pub copy_name: &'static str,
    /// Menu.
    pub copy_address: &'static str,
    /// Menu.
    pub edit_labels: &'static str,
    /// Menu.
    pub start_maintenance: &'static str,
    /// Menu.
    pub end_maintenance: &'static str,
    /// Menu.
    pub delete: &'static str,
    /// Section of the worker's page where there is no JavaScript.
    pub manage: &'static str,

    /// Dialog: name.
    pub labels_title: fn(&str) -> String,
    /// Dialog.
    pub labels_label: &'static str,
    /// Dialog.
    pub labels_hint: &'static str,
    /// The line that is no label.
    pub label_invalid: fn(&str) -> String,
    /// Dialog: name.
    pub maintenance_title: fn(&str) -> String,
    /// Dialog.
    pub maintenance_text: &'static str,
    /// Dialog.
    pub maintenance_remark: &'static str,
    /// Dialog: name.
    pub maintenance_end_title: fn(&str) -> String,
    /// Dialog.
    pub maintenance_end_text: &'static str,
    /// Dialog: name.
    pub delete_title: fn(&str) -> String,
    /// Dialog.
    pub delete_text: &'static str,
    /// Dialog.
    pub delete_label: &'static str,
    /// The typed name is another.
    pub delete_name_differs: &'static str,
    /// Dialog: name, hostname of the other host.
    pub replace_title: fn(&str, &str) -> String,
    /// Dialog.
    pub replace_text: &'static str,
    /// Lets the other host take over.
    pub replace: &'static str,
    /// Nobody asks any more.
    pub replace_over: &'static str,
}

/// English.
pub const EN: WorkersMessages = WorkersMessages {
    title: "Workers",
    filter_by_state: "Filter by state",
    all: "All",
    trouble: "Problems",
    sort: "Sort by",
    apply: "Apply",
    reverse: "Reverse the order",
    by_name: "Name",
    by_state: "State",
    by_use: "Utilisation",
    by_memory: "Device memory",
    by_temperature: "Temperature",
    by_heartbeat: "Heartbeat",
    by_clock: "Clock offset",
    layout: "Layout",
    cards: "Cards",
    table: "Table",
    list_changed: "The list has changed. Refresh",
    shown_of: |shown, all| format!("{shown} of {all}"),
    page_of: |page, pages| format!("Page {page} of {pages}"),
    previous_page: "Previous",
    next_page: "Next",
    empty_title: "No workers yet",
    empty_text: "Add the first one: pick its accelerator and its network, and run one command on its host.",
    no_result_title: "Nothing matches",
    no_result_text: "No worker fits this search and filter.",
    clear_filters: "Clear search and filters",
    banner_errors: |not_ready, unreachable, other| {
        let parts = [
            (not_ready, "is not ready", "are not ready"),
            (unreachable, "is unreachable", "are unreachable"),
            (other, "needs attention", "need attention"),
        ];
        let mut said = Vec::new();
        for (count, one, more) in parts.into_iter().filter(|(count, ..)| *count > 0) {
            let verb = if count == 1 { one } else { more };
            match (said.is_empty(), count) {
                (true, 1) => said.push(format!("1 worker {verb}")),
                (true, _) => said.push(format!("{count} workers {verb}")),
                (false, _) => said.push(format!("{count} {verb}")),
            }
        }
        said.join(", ")
    },
    banner_warnings: |workers| {
        if workers == 1 { "1 worker has warnings".to_owned() } else { format!("{workers} workers have warnings") }
    },
    worker_count: |workers| if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") },
    more_alike: |conditions| format!("And {conditions} more like it."),
    more_lines: |lines| format!("Show {lines} more"),
    more_workers: |workers| format!("and {workers} more"),
    show_commands: "Show the commands",
    copy_commands: "Copy the commands",
    open_worker: "Open",
    utilisation: "Use",
    temperature: "Temp",
    hottest: |degrees| format!("{degrees} °C max"),
    no_reading: "no reading",
    no_devices: "No accelerators",
    devices_awaited: "Looking for devices…",
    devices_unknown: "Devices unknown",
    stale: |age| format!("No new readings: these are {age} old."),
    stale_short: |age| format!("{age} old"),
    more_models: |models| if models == 1 { "and 1 more model".to_owned() } else { format!("and {models} more models") },
    bars_text: |what, value, devices| format!("{what}: {value}. {devices}"),
    device_value: |index, value| format!("device {index}: {value}"),
    devices_hint: "Devices; arrow keys move between them",
    never: "never",
    last_heartbeat: |time| format!("Last heartbeat {time}"),
    round_trip: "Round trip of the direct probe",
    clock_offset: "Worker's clock minus the server's",
    column_state: "State",
    column_worker: "Worker",
    column_address: "Address",
    column_devices: "Devices",
    column_menu: "Actions",
    menu_of: |name| format!("Actions for {name}"),
    copy_name: "Copy name",
    copy_address: "Copy address",
    edit_labels: "Edit labels",
    start_maintenance: "Start maintenance",
    end_maintenance: "End maintenance",
    delete: "Delete",
    manage: "Manage",
    labels_title: |name| format!("Labels of {name}"),
    labels_label: "Labels",
    labels_hint: "One a line, as key=value.",
    label_invalid: |line| format!("“{line}” is no label: write key=value."),
    maintenance_title: |name| format!("Take {name} out of service?"),
    maintenance_text: "It stays connected and visible, but counts as out of service and raises no alarm.",
    maintenance_remark: "Remark (optional)",
    maintenance_end_title: |name| format!("Put {name} back into service?"),
    maintenance_end_text: "From then on its state is judged again.",
    delete_title: |name| format!("Delete {name}?"),
    delete_text: "Its key is revoked at once. A process that still runs with the join token comes back within seconds as a new worker: stop it first.",
    delete_label: "Type the worker's name to confirm",
    delete_name_differs: "This is not the worker's name.",
    replace_title: |name, hostname| format!("Let {hostname} take the place of {name}?"),
    replace_text: "The new host gets the name, labels and history; the old host can no longer join under them.",
    replace: "Replace",
    replace_over: "No host asks for this name any more.",
};

/// Simplified Chinese.
pub const ZH: WorkersMessages = WorkersMessages {
    title: "工作节点",
    filter_by_state: "按状态筛选",
    all: "全部",
    trouble: "有问题",
    sort: "排序",
    apply: "应用",
    reverse: "反向排序",
    by_name: "名称",
    by_state: "状态",
    by_use: "利用率",
    by_memory: "显存",
    by_temperature: "温度",
    by_heartbeat: "心跳",
    by_clock: "时钟偏差",
    layout: "布局",
    cards: "卡片",
    table: "表格",
    list_changed: "列表有变化，点击刷新",
    shown_of: |shown, all| format!("{shown} / {all}"),
    page_of: |page, pages| format!("第 {page} 页，共 {pages} 页"),
    previous_page: "上一页",
    next_page: "下一页",
    empty_title: "还没有工作节点",
    empty_text: "添加第一个节点：选择加速卡与网络方式，然后在其主机上执行一条命令。",
    no_result_title: "没有匹配的节点",
    no_result_text: "没有节点符合当前的搜索与筛选条件。",
    clear_filters: "清除搜索与筛选",
    banner_errors: |not_ready, unreachable, other| {
        let parts = [(not_ready, "未就绪"), (unreachable, "不可达"), (other, "需要处理")];
        let said = parts.into_iter().filter(|(count, _)| *count > 0);
        said.map(|(count, what)| format!("{count} 个节点{what}")).collect::<Vec<_>>().join("，")
    },
    banner_warnings: |workers| format!("{workers} 个节点有警告"),
    worker_count: |workers| format!("{workers} 个节点"),
    more_alike: |conditions| format!("另有 {conditions} 处同类问题。"),
    more_lines: |lines| format!("再显示 {lines} 条"),
    more_workers: |workers| format!("等，另有 {workers} 个"),
    show_commands: "显示命令",
    copy_commands: "复制命令",
    open_worker: "打开",
    utilisation: "利用率",
    temperature: "温度",
    hottest: |degrees| format!("最高 {degrees} °C"),
    no_reading: "无读数",
    no_devices: "无加速设备",
    devices_awaited: "正在识别设备…",
    devices_unknown: "设备未知",
    stale: |age| format!("没有新读数，以下为 {age}前的读数。"),
    stale_short: |age| format!("{age}前"),
    more_models: |models| format!("另有 {models} 种型号"),
    bars_text: |what, value, devices| format!("{what}：{value}。{devices}"),
    device_value: |index, value| format!("设备 {index}：{value}"),
    devices_hint: "设备，用方向键切换",
    never: "从未",
    last_heartbeat: |time| format!("最近一次心跳 {time}"),
    round_trip: "直连探测往返时间",
    clock_offset: "节点时钟减服务端时钟",
    column_state: "状态",
    column_worker: "节点",
    column_address: "地址",
    column_devices: "设备",
    column_menu: "操作",
    menu_of: |name| format!("{name} 的操作"),
    copy_name: "复制名称",
    copy_address: "复制地址",
    edit_labels: "编辑标签",
    start_maintenance: "开始维护",
    end_maintenance: "结束维护",
    delete: "删除",
    manage: "管理",
    labels_title: |name| format!("{name} 的标签"),
    labels_label: "标签",
    labels_hint: "每行一个，格式为 键=值。",
    label_invalid: |line| format!("“{line}”不是标签，请写成 键=值。"),
    maintenance_title: |name| format!("让 {name} 进入维护？"),
    maintenance_text: "节点保持连接并可见，但视为停用，不再产生告警。",
    maintenance_remark: "备注（可选）",
    maintenance_end_title: |name| format!("让 {name} 恢复使用？"),
    maintenance_end_text: "恢复后重新判断其状态。",
    delete_title: |name| format!("删除 {name}？"),
    delete_text: "其密钥立即失效。若其进程仍带令牌运行，会在数秒内作为新节点重新加入：请先停止该进程。",
    delete_label: "输入节点名称以确认",
    delete_name_differs: "与节点名称不一致。",
    replace_title: |name, hostname| format!("由 {hostname} 接替 {name}？"),
    replace_text: "新主机将获得该名称、标签与历史记录，旧主机不能再以此身份加入。",
    replace: "替换",
    replace_over: "已没有主机请求使用该名称。",
};
