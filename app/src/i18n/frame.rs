//! Texts around every page.

/// Texts around every page.
#[derive(Debug)]
pub struct FrameMessages {
    /// Navigation.
    pub workers: &'static str,
    /// Navigation.
    pub tunnels: &'static str,
    /// Navigation.
    pub settings: &'static str,
    /// The link to the page that gives the join command.
    pub add_worker: &'static str,
    /// Label of the navigation for screen readers.
    pub navigation: &'static str,
    /// Skips the navigation.
    pub skip_to_content: &'static str,
    /// Placeholder of the search field.
    pub search: &'static str,
    /// Sends the search form where there is no JavaScript.
    pub search_submit: &'static str,
    /// What the search field looks at.
    pub search_hint: &'static str,
    /// What it looks at on the page of devices.
    pub search_hint_devices: &'static str,
    /// The event stream works.
    pub live: &'static str,
    /// The event stream is being opened for the first time.
    pub connecting: &'static str,
    /// The event stream broke a moment ago.
    pub reconnecting: &'static str,
    /// The event stream has been broken for a while; what is shown is of the given time.
    pub stale_since: fn(&str) -> String,
    /// Label of the language choice.
    pub language: &'static str,
    /// Label of the theme choice.
    pub theme: &'static str,
    /// Theme: as the system says.
    pub theme_system: &'static str,
    /// Theme.
    pub theme_light: &'static str,
    /// Theme.
    pub theme_dark: &'static str,
    /// Opens the user's menu.
    pub user_menu: fn(&str) -> String,
    /// Ends the session.
    pub log_out: &'static str,
    /// Changes the password.
    pub change_password: &'static str,
    /// Browser title: page, workers in trouble.
    pub title: fn(&str, usize) -> String,
    /// Title of the page for unknown addresses.
    pub not_found_title: &'static str,
    /// What to do about it.
    pub not_found_text: &'static str,
    /// Link to the list.
    pub to_workers: &'static str,
    /// The server could not do it: request id.
    pub backend_failed: fn(&str) -> String,
    /// The server was not reached.
    pub transport_failed: &'static str,
    /// The session is over.
    pub logged_out: &'static str,
    /// The password must be changed first.
    pub password_change_required: &'static str,
    /// What was asked for does not exist.
    pub no_such_thing: &'static str,
    /// Asks again.
    pub try_again: &'static str,
    /// Saves.
    pub save: &'static str,
    /// Closes without saving.
    pub cancel: &'static str,
    /// Closes.
    pub close: &'static str,
    /// While the first data come.
    pub loading: &'static str,
}

/// English.
pub const EN: FrameMessages = FrameMessages {
    workers: "Workers",
    tunnels: "Tunnels",
    settings: "Settings",
    add_worker: "Add worker",
    navigation: "Main navigation",
    skip_to_content: "Skip to content",
    search: "Search",
    search_submit: "Search",
    search_hint: "Name, address, label, model, state",
    search_hint_devices: "Model, vendor, bus, worker, label",
    live: "Live",
    connecting: "Connecting",
    reconnecting: "Reconnecting",
    stale_since: |time| format!("Stale since {time}"),
    language: "Language",
    theme: "Theme",
    theme_system: "System",
    theme_light: "Light",
    theme_dark: "Dark",
    user_menu: |user| format!("Menu of {user}"),
    log_out: "Log out",
    change_password: "Change password",
    title: |page, troubled| {
        if troubled == 0 { format!("{page} · gpustack") } else { format!("({troubled}) {page} · gpustack") }
    },
    not_found_title: "No such page",
    not_found_text: "Nothing is at this address. It may have been deleted, or the link is incomplete.",
    to_workers: "Go to the workers",
    backend_failed: |request_id| {
        format!("The server could not do this. Its log names the cause under request {request_id}.")
    },
    transport_failed: "The server was not reached. Check the network or the tunnel and try again.",
    logged_out: "Your session is over. Log in again.",
    password_change_required: "Change your password first.",
    no_such_thing: "It does not exist any more.",
    try_again: "Try again",
    save: "Save",
    cancel: "Cancel",
    close: "Close",
    loading: "Loading…",
};

/// Simplified Chinese.
pub const ZH: FrameMessages = FrameMessages {
    workers: "工作节点",
    tunnels: "隧道",
    settings: "设置",
    add_worker: "添加节点",
    navigation: "主导航",
    skip_to_content: "跳到正文",
    search: "搜索",
    search_submit: "搜索",
    search_hint: "名称、地址、标签、型号、状态",
    search_hint_devices: "型号、厂商、总线、节点、标签",
    live: "实时",
    connecting: "连接中",
    reconnecting: "重新连接中",
    stale_since: |time| format!("数据停留在 {time}"),
    language: "语言",
    theme: "主题",
    theme_system: "跟随系统",
    theme_light: "浅色",
    theme_dark: "深色",
    user_menu: |user| format!("{user} 的菜单"),
    log_out: "退出登录",
    change_password: "修改密码",
    title: |page, troubled| {
        if troubled == 0 { format!("{page} · gpustack") } else { format!("({troubled}) {page} · gpustack") }
    },
    not_found_title: "页面不存在",
    not_found_text: "该地址下没有内容：可能已被删除，或链接不完整。",
    to_workers: "前往工作节点",
    backend_failed: |request_id| format!("服务端未能完成操作，原因见服务端日志，请求编号 {request_id}。"),
    transport_failed: "无法连接服务端，请检查网络或隧道后重试。",
    logged_out: "会话已结束，请重新登录。",
    password_change_required: "请先修改密码。",
    no_such_thing: "该对象已不存在。",
    try_again: "重试",
    save: "保存",
    cancel: "取消",
    close: "关闭",
    loading: "加载中…",
};
