//! Texts of the login page.

/// Texts of the login page.
#[derive(Debug)]
pub struct LoginMessages {
    /// Title of the page.
    pub title: &'static str,
    /// Under the product's name.
    pub tagline: &'static str,
    /// Label.
    pub username: &'static str,
    /// Label.
    pub password: &'static str,
    /// The button.
    pub submit: &'static str,
    /// The button while the server checks.
    pub checking: &'static str,
    /// Wrong user or password.
    pub wrong: &'static str,
    /// Too many attempts: try again after so many seconds.
    pub too_many: fn(u64) -> String,
    /// The server could not check.
    pub failed: &'static str,
    /// The login succeeded, but the browser did not send the session's cookie.
    pub no_cookie_title: &'static str,
    /// What to look at first.
    pub no_cookie_blocked: &'static str,
    /// What to look at next: a proxy.
    pub no_cookie_secure: &'static str,
    /// Opens the help for the first login.
    pub first_time: &'static str,
    /// Where the first password is; the file's path stands below.
    pub first_time_text: &'static str,
    /// What to do when the password is lost; the command stands below.
    pub lost_password: &'static str,
}

/// English.
pub const EN: LoginMessages = LoginMessages {
    title: "Log in",
    tagline: "GPUs and NPUs across networks, in one place",
    username: "User",
    password: "Password",
    submit: "Log in",
    checking: "Checking…",
    wrong: "User or password is wrong.",
    too_many: |seconds| match seconds {
        0 | 1 => "Too many attempts. Try again in a second.".to_owned(),
        _ => format!("Too many attempts. Try again in {seconds} seconds."),
    },
    failed: "The server could not check the password. Its log names the cause.",
    no_cookie_title: "The password is right, but the browser did not keep the session cookie.",
    no_cookie_blocked: "Allow cookies for this address and log in again.",
    no_cookie_secure: "If a proxy stands in between: the cookie is sent only over https when the proxy says that the browser uses https. Open this page by https, or correct the X-Forwarded-Proto header that the proxy sets.",
    first_time: "First login, or password lost?",
    first_time_text: "The user is admin. This file on the server’s host holds the first password, or the same file in the data directory that you chose:",
    lost_password: "This command sets a new one there:",
};

/// Simplified Chinese.
pub const ZH: LoginMessages = LoginMessages {
    title: "登录",
    tagline: "跨网络统一纳管 GPU 与 NPU",
    username: "用户名",
    password: "密码",
    submit: "登录",
    checking: "正在验证…",
    wrong: "用户名或密码错误。",
    too_many: |seconds| format!("尝试次数过多，请在 {} 秒后重试。", seconds.max(1)),
    failed: "服务端未能验证密码，原因见服务端日志。",
    no_cookie_title: "密码正确，但浏览器没有保存会话 Cookie。",
    no_cookie_blocked: "请允许该地址使用 Cookie，然后重新登录。",
    no_cookie_secure: "如果中间有代理：当代理声明浏览器使用 https 时，Cookie 只会通过 https 发送。请用 https 打开本页，或修正代理设置的 X-Forwarded-Proto 请求头。",
    first_time: "首次登录，或忘记密码？",
    first_time_text: "用户名为 admin，初始密码保存在服务端主机的以下文件中（若指定了其他数据目录，则在该目录下）：",
    lost_password: "可在该主机上用以下命令重设：",
};
