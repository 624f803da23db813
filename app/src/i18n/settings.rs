//! Texts of the settings pages.

/// Texts of the settings pages.
#[derive(Debug)]
pub struct SettingsMessages {
    /// Title of the page.
    pub title: &'static str,

    /// Heading.
    pub token: &'static str,
    /// What it is for.
    pub token_text: &'static str,
    /// Shows the token.
    pub reveal: &'static str,
    /// Hides it again.
    pub hide: &'static str,
    /// Label of the masked token for screen readers.
    pub token_hidden: &'static str,
    /// Where it is on disk; the path stands below.
    pub token_file: &'static str,
    /// How to print it; the command stands below.
    pub token_command: &'static str,
    /// Link to the page that gives the join command.
    pub to_add_worker: &'static str,

    /// Heading.
    pub password: &'static str,
    /// Before the first use of a password that somebody else set.
    pub password_forced: &'static str,
    /// Label.
    pub current_password: &'static str,
    /// Label.
    pub new_password: &'static str,
    /// Label.
    pub repeat_password: &'static str,
    /// Under the new passwords: so many characters at least.
    pub password_rules: fn(u32) -> String,
    /// The button.
    pub change_password: &'static str,
    /// The button while the server works.
    pub changing_password: &'static str,
    /// It is changed.
    pub password_changed: &'static str,
    /// The current password is wrong.
    pub password_wrong_current: &'static str,
    /// The new one has fewer than so many characters.
    pub password_too_short: fn(u32) -> String,
    /// The new one is the current one.
    pub password_same: &'static str,
    /// The two new ones differ.
    pub password_repeat_differs: &'static str,
    /// Nobody is logged in any more.
    pub password_logged_out: &'static str,
    /// Too many attempts: try again after so many seconds.
    pub password_too_many: fn(u64) -> String,
    /// The server could not do it.
    pub password_failed: &'static str,

    /// Heading.
    pub appearance: &'static str,

    /// Heading.
    pub about: &'static str,
    /// Label.
    pub version: &'static str,
    /// Label of the server's address as the browser sees it.
    pub address: &'static str,
    /// Label of the link to the description of the API.
    pub api: &'static str,
}

/// English.
pub const EN: SettingsMessages = SettingsMessages {
    title: "Settings",
    token: "Join token",
    token_text: "With this secret a host joins as a worker. Whoever has it can add workers.",
    reveal: "Show",
    hide: "Hide",
    token_hidden: "The token is hidden",
    token_file: "This file on the server’s host holds it:",
    token_command: "When the server runs in a container, this command prints it:",
    to_add_worker: "Get a complete join command",
    password: "Password",
    password_forced: "This password was set by the installation. Choose your own before you go on.",
    current_password: "Current password",
    new_password: "New password",
    repeat_password: "New password, again",
    password_rules: |characters| {
        format!("At least {characters} characters. A sentence is easier to keep in mind than signs.")
    },
    change_password: "Change password",
    changing_password: "Changing…",
    password_changed: "The password is changed. Your other sessions have ended.",
    password_wrong_current: "The current password is wrong.",
    password_too_short: |characters| {
        format!("The new password is too short: it needs at least {characters} characters.")
    },
    password_same: "The new password is the current one. Choose another.",
    password_repeat_differs: "The two new passwords differ. Type them again.",
    password_logged_out: "Your session is over, so nothing was changed. Log in again.",
    password_too_many: |seconds| match seconds {
        0 | 1 => "Too many attempts. Try again in a second.".to_owned(),
        _ => format!("Too many attempts. Try again in {seconds} seconds."),
    },
    password_failed: "The server could not change the password. Its log names the cause.",
    appearance: "Language and theme",
    about: "About",
    version: "Version",
    address: "Server address",
    api: "API description",
};

/// Simplified Chinese.
pub const ZH: SettingsMessages = SettingsMessages {
    title: "设置",
    token: "令牌",
    token_text: "主机凭此令牌加入成为工作节点。持有令牌者即可添加节点，请妥善保管。",
    reveal: "显示",
    hide: "隐藏",
    token_hidden: "令牌已隐藏",
    token_file: "它保存在服务端主机的以下文件中：",
    token_command: "若服务端运行在容器中，可用以下命令查看：",
    to_add_worker: "获取完整的加入命令",
    password: "密码",
    password_forced: "当前密码由安装程序生成，请先设置您自己的密码。",
    current_password: "当前密码",
    new_password: "新密码",
    repeat_password: "再次输入新密码",
    password_rules: |characters| format!("至少 {characters} 个字符。一句话比一串符号更容易记住。"),
    change_password: "修改密码",
    changing_password: "正在修改…",
    password_changed: "密码已修改，您的其他会话已结束。",
    password_wrong_current: "当前密码错误。",
    password_too_short: |characters| format!("新密码太短，至少需要 {characters} 个字符。"),
    password_same: "新密码与当前密码相同，请换一个。",
    password_repeat_differs: "两次输入的新密码不一致，请重新输入。",
    password_logged_out: "会话已结束，密码未作修改，请重新登录。",
    password_too_many: |seconds| format!("尝试次数过多，请在 {} 秒后重试。", seconds.max(1)),
    password_failed: "服务端未能修改密码，原因见服务端日志。",
    appearance: "语言与主题",
    about: "关于",
    version: "版本",
    address: "服务端地址",
    api: "API 说明",
};
