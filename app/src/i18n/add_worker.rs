//! Texts of the page that gives the join command.

use api::ServerUrlError;

/// Texts of the page that gives the join command.
#[derive(Debug)]
pub struct AddWorkerMessages {
    /// Title of the page.
    pub title: &'static str,
    /// Under the title.
    pub lead: &'static str,
    /// Sends the form where there is no JavaScript.
    pub update: &'static str,

    /// Step 1.
    pub step_devices: &'static str,
    /// Under the name of Ascend 910B.
    pub ascend_910b_text: &'static str,
    /// Under the name of Ascend 310P.
    pub ascend_310p_text: &'static str,
    /// Under the name of Ascend A3.
    pub ascend_a3_text: &'static str,
    /// A host without accelerators.
    pub cpu: &'static str,
    /// Under it.
    pub cpu_text: &'static str,

    /// Step 2.
    pub step_network: &'static str,
    /// The worker dials out, and that is all.
    pub link_only: &'static str,
    /// Under it.
    pub link_only_text: &'static str,
    /// The two reach one another.
    pub direct: &'static str,
    /// Under it.
    pub direct_text: &'static str,
    /// Through a bastion.
    pub tunnels: &'static str,
    /// Under it.
    pub tunnels_text: &'static str,

    /// Step 3.
    pub step_command: &'static str,
    /// Label of the choice between the three ways to install.
    pub packaging: &'static str,
    /// Tab.
    pub container: &'static str,
    /// Tab.
    pub binary: &'static str,
    /// Tab.
    pub systemd: &'static str,

    /// Label.
    pub server: &'static str,
    /// Hint.
    pub server_hint: &'static str,
    /// The address means another host on another host.
    pub server_loopback: &'static str,
    /// Label.
    pub name: &'static str,
    /// Placeholder: the server finds one.
    pub name_placeholder: &'static str,
    /// Label.
    pub port: &'static str,
    /// Label.
    pub devices: &'static str,
    /// Hint.
    pub devices_hint: &'static str,
    /// Label.
    pub image: &'static str,
    /// Label.
    pub bastion: &'static str,
    /// Label.
    pub server_login: &'static str,
    /// Label.
    pub worker_login: &'static str,
    /// Label.
    pub server_port: &'static str,
    /// Hint of the three logins.
    pub login_hint: &'static str,
    /// Placeholder: an example.
    pub example: fn(&str) -> String,
    /// A login that need not be filled in.
    pub optional: &'static str,

    /// What is wrong with the server's address.
    pub fault_url: fn(&ServerUrlError) -> String,
    /// A line break or the like.
    pub fault_control_character: &'static str,
    /// No port.
    pub fault_port: &'static str,
    /// No number of devices: this many at most.
    pub fault_device_count: fn(u32) -> String,
    /// No image reference.
    pub fault_image: &'static str,
    /// No user name.
    pub fault_login_user: &'static str,
    /// No host.
    pub fault_login_host: &'static str,
    /// The server's token cannot stand on a command line.
    pub fault_token: &'static str,
    /// A field is wrong, so there is no command.
    pub no_command: &'static str,

    /// Heading of the commands for the bastion.
    pub on_bastion: &'static str,
    /// Above the file for a tunnel agent.
    pub agent_file: &'static str,
    /// The box for health checks.
    pub health_check: &'static str,
    /// Above the commands of a tunnel agent.
    pub agent_run: &'static str,
    /// Unfolds the commands without an agent.
    pub by_hand: &'static str,
    /// Above them.
    pub on_bastion_text: &'static str,
    /// The worker's address is missing.
    pub tunnels_incomplete: &'static str,
    /// A login names the bastion itself.
    pub tunnels_loopback: &'static str,
    /// Opens a shell on the bastion.
    pub bastion_login: &'static str,
    /// First forward.
    pub server_to_bastion: &'static str,
    /// Second forward.
    pub bastion_to_worker: &'static str,
    /// Third forward.
    pub worker_to_bastion: &'static str,
    /// Fourth forward.
    pub bastion_to_server: &'static str,
    /// Heading of the third and the fourth.
    pub way_back: &'static str,
    /// Under it: the port that they lead to.
    pub way_back_text: fn(u16) -> String,
    /// Heading of the check.
    pub check: &'static str,
    /// Under it.
    pub check_text: &'static str,
    /// Heading of the join command.
    pub join: &'static str,
    /// Under it, for a container.
    pub join_text_container: &'static str,
    /// Under it, for the program itself: version.
    pub join_text_binary: fn(&str) -> String,
    /// Under it, for systemd: version.
    pub join_text_systemd: fn(&str) -> String,

    /// Heading of the list of arrivals.
    pub arrivals: &'static str,
    /// Nobody has come yet.
    pub waiting: &'static str,
    /// Where there is no JavaScript.
    pub waiting_static: &'static str,
    /// How long it takes, and what to do when a container takes longer.
    pub waiting_hint_container: &'static str,
    /// Likewise for the program in the foreground.
    pub waiting_hint_binary: &'static str,
    /// Likewise for a systemd service.
    pub waiting_hint_systemd: &'static str,
    /// So many have come.
    pub arrived: fn(usize) -> String,
    /// Check: the worker has joined.
    pub check_joined: &'static str,
    /// Link to the worker: its name.
    pub open_worker: fn(&str) -> String,
    /// The link's visible word.
    pub open: &'static str,
}

/// English.
pub const EN: AddWorkerMessages = AddWorkerMessages {
    title: "Add worker",
    lead: "Choose what the host has and how it is reached, then run the command there. The host appears below by itself.",
    update: "Update the command",
    step_devices: "Accelerators",
    ascend_910b_text: "Atlas 800 A2, 300T A2 · usually 8 NPUs",
    ascend_310p_text: "Atlas 300I Pro, 300V, 300I Duo",
    ascend_a3_text: "Atlas 800/900 A3 · two chips per NPU",
    cpu: "No accelerator",
    cpu_text: "CPU only",
    step_network: "Network",
    link_only: "Link only (recommended)",
    link_only_text: "Works everywhere: the worker only dials out, so no port has to be open on its host",
    direct: "Direct",
    direct_text: "The server can reach the worker’s port, too, and checks it",
    tunnels: "Through a bastion",
    tunnels_text: "The worker cannot reach the server; one SSH forward leads it there",
    step_command: "Command",
    packaging: "How to install",
    container: "Container",
    binary: "Binary",
    systemd: "systemd",
    server: "Server address",
    server_hint: "As the worker’s host reaches this server.",
    server_loopback: "Only the server’s own host can use this address. For any other host, enter the address by which it reaches the server.",
    name: "Worker name",
    name_placeholder: "the host’s name",
    port: "Worker port",
    devices: "Device nodes",
    devices_hint: "How many /dev/davinci0, 1, 2… the host has.",
    image: "Image",
    bastion: "Bastion",
    server_login: "Server’s host, from the bastion",
    worker_login: "Worker’s host, from the bastion",
    server_port: "Server port",
    login_hint: "user@address, with :port when it is not 22.",
    example: |value| format!("e.g. {value}"),
    optional: "optional",
    fault_url: |error| match error {
        ServerUrlError::Empty | ServerUrlError::NoHost => {
            "No host is named. Write it like http://10.0.0.1:8090.".to_owned()
        }
        ServerUrlError::Scheme(scheme) => format!("It begins with {scheme}://, but only http:// and https:// work."),
        ServerUrlError::UserInfo => "It holds a user or password before the @. Take them out.".to_owned(),
        ServerUrlError::Query => "It holds a ? or a #. Take it out.".to_owned(),
        ServerUrlError::Host(host) => {
            format!("“{host}” is no host name or address. Write it like http://10.0.0.1:8090 or http://[fe80::1]:8090.")
        }
        ServerUrlError::Port(port) => format!("“{port}” is no port. It is a number from 1 to 65535."),
    },
    fault_control_character: "It holds a line break or another control character. Take it out.",
    fault_port: "A port is a number from 1 to 65535.",
    fault_device_count: |most| format!("A number from 1 to {most}."),
    fault_image: "This is no image name. Write it like registry.example/gpustack:0.1.0.",
    fault_login_user: "This is no user name. Write it like user@10.0.0.1.",
    fault_login_host: "This is no host name or address. Write it like user@10.0.0.1.",
    fault_token: "The server’s join token holds a control character and cannot be used in a command. Start the server with another --token.",
    no_command: "Correct the marked field to get the command.",
    on_bastion: "On the bastion: open the tunnels",
    agent_file: "tunnels.yaml, for a tunnel agent that keeps the tunnel and shows it here. One forward is enough.",
    health_check: "Lead the server’s health checks to the worker’s port, too: a second forward",
    agent_run: "The first shows what it asks for, and how to start the worker; the second asks you about the keys of SSH servers; the third makes the forwards. What belongs into token_file, “gpustack token” prints on the server.",
    by_hand: "Without an agent: ssh by hand",
    on_bastion_text: "One after the other; each asks for a password when no key is set up.",
    tunnels_incomplete: "Fill in the logins of both hosts to get the ssh commands.",
    tunnels_loopback: "A login names the bastion itself. Enter the address by which the bastion reaches that host.",
    bastion_login: "Log in to the bastion",
    server_to_bastion: "Bring the server’s port to the bastion. Once for all workers behind it.",
    bastion_to_worker: "Bring it on to the worker’s host.",
    worker_to_bastion: "Bring the worker’s port to the bastion, for the server’s health check.",
    bastion_to_server: "Bring it on to the server’s host.",
    way_back: "The way back, for GPUStack 0.7 workers only",
    way_back_text: |port| {
        format!(
            "A worker of this version needs no more than the above: the server reaches it over the connection that it dials. A GPUStack 0.7 worker must be reached at its own port. Start it with --worker-ip 127.0.0.1 --worker-port {port}, and open these, too."
        )
    },
    check: "On the host: check first",
    check_text: "It says line by line what is in order, what is not, and what to do. Nothing changes by it.",
    join: "On the host: join",
    join_text_container: "Docker starts the worker again after a reboot. The token in it is a secret.",
    join_text_binary: |version| {
        format!(
            "Needs gpustack {version} in the PATH. Run it as root; it stays in the foreground. The token in it is a secret."
        )
    },
    join_text_systemd: |version| {
        format!(
            "Needs gpustack {version} as /usr/local/bin/gpustack. Run it as root; the token goes into a file that only root can read."
        )
    },
    arrivals: "Arrivals",
    waiting: "Waiting for the first contact…",
    waiting_static: "New workers appear in the list of workers.",
    waiting_hint_container: "Usually a few seconds after the command. Nothing after a minute? On the host, “docker logs gpustack-worker” names the reason. A host that was a worker before keeps its row in the list of workers.",
    waiting_hint_binary: "Usually a few seconds after the command. Nothing after a minute? What the command prints names the reason. A host that was a worker before keeps its row in the list of workers.",
    waiting_hint_systemd: "Usually a few seconds after the command. Nothing after a minute? On the host, “journalctl -u gpustack-worker” names the reason. A host that was a worker before keeps its row in the list of workers.",
    arrived: |count| {
        if count == 1 { "One worker has arrived.".to_owned() } else { format!("{count} workers have arrived.") }
    },
    check_joined: "Joined",
    open_worker: |name| format!("Open worker {name}"),
    open: "Open",
};

/// Simplified Chinese.
pub const ZH: AddWorkerMessages = AddWorkerMessages {
    title: "添加节点",
    lead: "选择主机的加速器与网络方式，然后在该主机上执行命令，节点会自动出现在下方。",
    update: "更新命令",
    step_devices: "加速器",
    ascend_910b_text: "Atlas 800 A2、300T A2，通常 8 个 NPU",
    ascend_310p_text: "Atlas 300I Pro、300V、300I Duo",
    ascend_a3_text: "Atlas 800/900 A3，每个 NPU 两个芯片",
    cpu: "无加速器",
    cpu_text: "仅使用 CPU",
    step_network: "网络",
    link_only: "仅链路（推荐）",
    link_only_text: "适用于任何网络：只需节点向外连接，节点主机无需开放端口",
    direct: "直连",
    direct_text: "服务端也能访问节点端口，并对其做健康检查",
    tunnels: "经堡垒机",
    tunnels_text: "节点无法直接访问服务端，经一条 SSH 转发到达",
    step_command: "命令",
    packaging: "安装方式",
    container: "容器",
    binary: "二进制",
    systemd: "systemd",
    server: "服务端地址",
    server_hint: "节点主机访问本服务端所用的地址。",
    server_loopback: "该地址只有服务端本机可用。若节点在其他主机上，请填写该主机能访问到服务端的地址。",
    name: "节点名称",
    name_placeholder: "默认使用主机名",
    port: "节点端口",
    devices: "设备节点数",
    devices_hint: "主机上 /dev/davinci0、1、2… 的数量。",
    image: "镜像",
    bastion: "堡垒机",
    server_login: "从堡垒机登录服务端主机",
    worker_login: "从堡垒机登录节点主机",
    server_port: "服务端端口",
    login_hint: "格式为 用户@地址，端口不是 22 时加 :端口。",
    example: |value| format!("例如 {value}"),
    optional: "可选",
    fault_url: |error| match error {
        ServerUrlError::Empty | ServerUrlError::NoHost => "缺少主机，格式如 http://10.0.0.1:8090。".to_owned(),
        ServerUrlError::Scheme(scheme) => format!("地址以 {scheme}:// 开头，但只支持 http:// 和 https://。"),
        ServerUrlError::UserInfo => "地址中 @ 之前含有用户名或密码，请去掉。".to_owned(),
        ServerUrlError::Query => "地址中含有 ? 或 #，请去掉。".to_owned(),
        ServerUrlError::Host(host) => {
            format!("“{host}”不是主机名或地址，格式如 http://10.0.0.1:8090 或 http://[fe80::1]:8090。")
        }
        ServerUrlError::Port(port) => format!("“{port}”不是端口，端口为 1 到 65535 的数字。"),
    },
    fault_control_character: "含有换行或其他控制字符，请去掉。",
    fault_port: "端口为 1 到 65535 的数字。",
    fault_device_count: |most| format!("请输入 1 到 {most} 的数字。"),
    fault_image: "不是有效的镜像名，格式如 registry.example/gpustack:0.1.0。",
    fault_login_user: "不是有效的用户名，格式如 user@10.0.0.1。",
    fault_login_host: "不是有效的主机名或地址，格式如 user@10.0.0.1。",
    fault_token: "服务端令牌含有控制字符，无法用于命令。请用其他 --token 启动服务端。",
    no_command: "请先更正标出的字段，然后才能生成命令。",
    on_bastion: "在堡垒机上：建立隧道",
    agent_file: "tunnels.yaml，供隧道代理维持隧道并在此显示。一条转发即可。",
    health_check: "同时将服务端的健康检查引到节点端口（第二条转发）",
    agent_run: "第一条列出将建立的内容以及节点的启动方式，第二条核对 SSH 服务器的密钥，第三条建立转发。token_file 的内容可在服务端用 gpustack token 查看。",
    by_hand: "不用代理：手动执行 ssh",
    on_bastion_text: "请逐条执行；未配置密钥时每条都会询问密码。",
    tunnels_incomplete: "填写两台主机的登录信息后，即可得到 ssh 命令。",
    tunnels_loopback: "登录地址指向了堡垒机自身，请填写堡垒机访问该主机所用的地址。",
    bastion_login: "登录堡垒机",
    server_to_bastion: "将服务端端口引到堡垒机。同一堡垒机后的所有节点只需一次。",
    bastion_to_worker: "再将其引到节点主机。",
    worker_to_bastion: "将节点端口引到堡垒机，供服务端做健康检查。",
    bastion_to_server: "再将其引到服务端主机。",
    way_back: "返回方向（仅 GPUStack 0.7 节点需要）",
    way_back_text: |port| {
        format!(
            "本版本的节点只需上面的转发：服务端通过节点主动建立的连接访问它。GPUStack 0.7 节点则必须能被访问到自己的端口，请在启动时加上 --worker-ip 127.0.0.1 --worker-port {port}，并建立以下转发。"
        )
    },
    check: "在节点主机上：先检查",
    check_text: "它会逐项说明哪些正常、哪些有问题以及如何处理，不做任何更改。",
    join: "在节点主机上：加入",
    join_text_container: "主机重启后 Docker 会自动拉起节点。命令中含有令牌，请注意保密。",
    join_text_binary: |version| {
        format!("需要 PATH 中有 gpustack {version}。请以 root 执行，程序在前台运行。命令中含有令牌，请注意保密。")
    },
    join_text_systemd: |version| {
        format!("需要 /usr/local/bin/gpustack（版本 {version}）。请以 root 执行，令牌写入仅 root 可读的文件。")
    },
    arrivals: "加入情况",
    waiting: "正在等待节点首次联系…",
    waiting_static: "新节点会出现在工作节点列表中。",
    waiting_hint_container: "通常在执行命令后数秒内出现。若超过一分钟仍未出现，请在该主机上用“docker logs gpustack-worker”查看原因。曾加入过的主机沿用工作节点列表中的原有条目。",
    waiting_hint_binary: "通常在执行命令后数秒内出现。若超过一分钟仍未出现，请查看该命令的输出。曾加入过的主机沿用工作节点列表中的原有条目。",
    waiting_hint_systemd: "通常在执行命令后数秒内出现。若超过一分钟仍未出现，请在该主机上用“journalctl -u gpustack-worker”查看原因。曾加入过的主机沿用工作节点列表中的原有条目。",
    arrived: |count| format!("已有 {count} 个节点加入。"),
    check_joined: "加入",
    open_worker: |name| format!("打开节点 {name}"),
    open: "打开",
};
