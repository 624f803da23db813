//! Texts of `gpustack tunnel import`. The command line makes the sentences; no browser has them.

use super::Language;

/// Texts of an import. Parts of commands come as they were written.
#[derive(Debug)]
pub struct TunnelImportMessages {
    /// At the top of the file.
    pub heading: &'static str,
    /// Beside `token_file`.
    pub token_file: &'static str,
    /// Beside `report: false`.
    pub no_server: &'static str,
    /// A note, and its line.
    pub line: fn(usize, &str) -> String,
    /// There was no forward.
    pub nothing: &'static str,
    /// So many forwards were left out.
    pub lost: fn(usize) -> String,
    /// Another program.
    pub not_ssh: fn(&str) -> String,
    /// Other programs in several lines: their numbers.
    pub not_ssh_lines: fn(&str) -> String,
    /// A command in a comment.
    pub command_in_comment: &'static str,
    /// A quotation mark without its other half.
    pub unclosed_quote: &'static str,
    /// A command without `-L` and `-R`.
    pub no_forward: &'static str,
    /// A command without a host.
    pub no_host: &'static str,
    /// SOCKS.
    pub dynamic: fn(&str) -> String,
    /// A Unix socket.
    pub socket: fn(&str) -> String,
    /// A forward that nobody can read.
    pub bad_forward: fn(&str) -> String,
    /// Something to replace.
    pub placeholder: fn(&str) -> String,
    /// An option without a counterpart.
    pub not_taken_over: fn(&str) -> String,
    /// `-g`.
    pub open_to_network: &'static str,
    /// `-C`.
    pub compresses_all: &'static str,
    /// `ServerAliveInterval` in seconds and `ServerAliveCountMax`.
    pub slow_keep_alive: fn(u64, u32) -> String,
    /// `StrictHostKeyChecking=no`.
    pub host_keys_are_checked: &'static str,
    /// `sshpass`.
    pub password: &'static str,
    /// A forward of a port that looks like one for health checks.
    pub health_check_unclear: fn(u16) -> String,
    /// The name that a worker got.
    pub worker_named: fn(&str) -> String,
}

/// The texts in a language.
pub const fn messages(language: Language) -> &'static TunnelImportMessages {
    match language {
        Language::En => &EN,
        Language::Zh => &ZH,
    }
}

const EN: TunnelImportMessages = TunnelImportMessages {
    heading: "Made by `gpustack tunnel import`. `gpustack tunnel plan` shows what it does.",
    token_file: "the server's join token, so that the server shows these tunnels",
    no_server: "the commands lead no worker to a server",
    line: |line, text| format!("line {line}: {text}"),
    nothing: "there is no ssh command with -L or -R in it that could be taken over",
    lost: |count| {
        if count == 1 { "1 forward was left out".to_owned() } else { format!("{count} forwards were left out") }
    },
    not_ssh: |program| format!("`{program}` is no ssh command; left out"),
    not_ssh_lines: |lines| format!("lines {lines}: these are no ssh commands; left out"),
    command_in_comment: "an ssh command stands in a comment; left out. Put it on a line of its own if it is meant",
    unclosed_quote: "a quotation mark opens here and does not close; what is behind it is read as one word",
    no_forward: "this ssh command has neither -L nor -R; left out",
    no_host: "this ssh command names no host; left out",
    dynamic: |forward| format!("`{forward}` makes a SOCKS proxy, which agents do not make; left out"),
    socket: |forward| format!("`{forward}` forwards a Unix socket, which agents do not do; left out"),
    bad_forward: |forward| format!("`{forward}` is no forward: ssh wants [bind:]port:host:port; left out"),
    placeholder: |text| format!("replace `{text}` in the file by the real one"),
    not_taken_over: |option| format!("`{option}` has no counterpart and is not taken over"),
    open_to_network: "-g let the whole network use this forward; the agent's listens on 127.0.0.1 only. If others need it, write it under `forwards:` with `local: 0.0.0.0:PORT`",
    compresses_all: "-C became `compression: true` and now goes for all; on a fast network it is faster without",
    slow_keep_alive: |interval_s, unanswered| {
        format!(
            "a dead session is noticed after {} s only; without `keep_alive` and `keep_alives_unanswered` after 20 s",
            interval_s.saturating_mul(u64::from(unanswered).saturating_add(1))
        )
    },
    host_keys_are_checked: "agents always check the keys of hosts; accept those that are not known yet with `gpustack tunnel trust`",
    password: "agents log in with keys only; enter one at the host with ssh-copy-id and name it as `identity:`",
    health_check_unclear: |port| {
        format!(
            "port {port} looks like one for health checks, but no other command brings it here from a worker; it is kept as it is. For health checks, take it out and write `health_check: true` at the worker"
        )
    },
    worker_named: |name| format!("this worker is called `{name}` in the file; write the name that it is started with"),
};

const ZH: TunnelImportMessages = TunnelImportMessages {
    heading: "由 `gpustack tunnel import` 生成。用 `gpustack tunnel plan` 查看其作用。",
    token_file: "服务端的令牌，填写后服务端会显示这些隧道",
    no_server: "这些命令没有把任何工作节点连到服务端",
    line: |line, text| format!("第 {line} 行：{text}"),
    nothing: "没有可以转换的 ssh 命令（需要带 -L 或 -R）",
    lost: |count| format!("有 {count} 条转发未转换"),
    not_ssh: |program| format!("`{program}` 不是 ssh 命令，已跳过"),
    not_ssh_lines: |lines| format!("第 {lines} 行：不是 ssh 命令，已跳过"),
    command_in_comment: "注释中有一条 ssh 命令，已跳过。如需转换，请另起一行",
    unclosed_quote: "此处的引号没有闭合，其后的内容被当作一个词",
    no_forward: "这条 ssh 命令没有 -L 或 -R，已跳过",
    no_host: "这条 ssh 命令没有指定主机，已跳过",
    dynamic: |forward| format!("`{forward}` 是 SOCKS 代理，隧道代理不支持，已跳过"),
    socket: |forward| format!("`{forward}` 转发的是 Unix 套接字，隧道代理不支持，已跳过"),
    bad_forward: |forward| format!("`{forward}` 不是有效的转发，格式应为 [绑定地址:]端口:主机:端口，已跳过"),
    placeholder: |text| format!("请把文件中的 `{text}` 替换为实际值"),
    not_taken_over: |option| format!("`{option}` 没有对应的设置，未转换"),
    open_to_network: "-g 允许整个网络使用该转发，而隧道代理只监听 127.0.0.1。如果其他主机需要使用，请写在 `forwards:` 下，并使用 `local: 0.0.0.0:端口`",
    compresses_all: "-C 转换为 `compression: true`，对所有隧道生效；网络较快时，不压缩反而更快",
    slow_keep_alive: |interval_s, unanswered| {
        format!(
            "会话中断后要 {} 秒才能发现；去掉 `keep_alive` 和 `keep_alives_unanswered` 后只需 20 秒",
            interval_s.saturating_mul(u64::from(unanswered).saturating_add(1))
        )
    },
    host_keys_are_checked: "隧道代理始终校验主机密钥；尚未信任的密钥请用 `gpustack tunnel trust` 确认",
    password: "隧道代理只使用密钥登录；请先用 ssh-copy-id 把公钥加入该主机，再用 `identity:` 指定密钥",
    health_check_unclear: |port| {
        format!(
            "端口 {port} 像是用于健康检查，但没有其他命令把它从工作节点引到本机，已原样保留。如需健康检查，请删去它，并在该工作节点下填写 `health_check: true`"
        )
    },
    worker_named: |name| format!("该工作节点在文件中的名称为 `{name}`，请改为它启动时使用的名称"),
};
