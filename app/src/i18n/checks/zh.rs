//! The doctor's words in Simplified Chinese.

use super::{gib, utc_offset};
use crate::format;
use crate::i18n::Language;
use api::{CredentialKind, HostReason, NodeAccess, NodeState, PortHolder, Seen};

/// What a point is called.
pub fn title(seen: &Seen) -> String {
    match seen {
        Seen::System { .. } => "系统".to_owned(),
        Seen::Container { .. } => "容器".to_owned(),
        Seen::DataDir { .. } => "数据目录".to_owned(),
        Seen::OpenFiles { .. } => "可打开文件数".to_owned(),
        Seen::Accelerators { .. } => "加速设备".to_owned(),
        Seen::Devices { vendor, .. } => format!("{vendor} 设备"),
        Seen::Tool { tool, .. } => tool.clone(),
        Seen::Node { path, .. } => path.clone(),
        Seen::Driver { vendor, .. } => format!("{vendor} 驱动"),
        Seen::Firmware { vendor, .. } => format!("{vendor} 固件"),
        Seen::Runtime { vendor, .. } if vendor == "Huawei" => "CANN".to_owned(),
        Seen::Runtime { vendor, .. } => format!("{vendor} 计算软件"),
        Seen::Variable { name, .. } => name.clone(),
        Seen::PersistenceMode { .. } => "NVIDIA 持久模式".to_owned(),
        Seen::TimeService { .. } => "时间服务".to_owned(),
        Seen::HardwareClock { .. } => "硬件时钟".to_owned(),
        Seen::TimeZone { .. } => "时区".to_owned(),
        Seen::Proxies { .. } => "代理".to_owned(),
        Seen::Server { .. } => "服务端".to_owned(),
        Seen::Credential { .. } => "凭据".to_owned(),
        Seen::ServerClock { .. } => "时钟".to_owned(),
        Seen::WorkerPort { port, .. } => format!("端口 {port}"),
        Seen::WayBack { .. } => "回程".to_owned(),
    }
}

/// What was seen, as a sentence.
pub fn seen(seen: &Seen) -> String {
    match seen {
        Seen::System { os, kernel, architecture } if os.is_empty() => format!("Linux {kernel}，{architecture}。"),
        Seen::System { os, kernel, architecture } => format!("{os}，Linux {kernel}，{architecture}。"),
        Seen::Container { engine: None, .. } => "无：这是主机本身。".to_owned(),
        Seen::Container { engine: Some(engine), is_privileged, is_filtered } => {
            let rights = if *is_privileged { "特权模式" } else { "非特权模式" };
            let filter = if *is_filtered { "启用了 seccomp 过滤" } else { "无 seccomp 过滤" };
            format!("{engine}，{rights}，{filter}。")
        }
        Seen::DataDir { path, available_bytes: Some(available), total_bytes: Some(total) } => {
            format!("{}：共 {}，剩余 {}。", path, gib(*total), gib(*available))
        }
        Seen::DataDir { path, .. } => format!("{path}。"),
        Seen::OpenFiles { limit: Some(limit) } => format!("最多 {limit} 个。"),
        Seen::OpenFiles { limit: None } => "不限。".to_owned(),
        Seen::Accelerators { found: 0 } => "没有。作为 CPU 节点是正常的。".to_owned(),
        Seen::Accelerators { found } => format!("{found} 个设备。"),
        Seen::Devices { on_bus: 0, listed, .. } => format!("列出 {listed} 个设备；PCI 总线上看不到。"),
        Seen::Devices { on_bus, without_driver: 0, listed, .. } => {
            format!("PCI 总线上有 {on_bus} 张卡，列出 {listed} 个设备。")
        }
        Seen::Devices { on_bus, without_driver, listed, .. } => {
            format!("PCI 总线上有 {on_bus} 张卡，其中 {without_driver} 张没有驱动，列出 {listed} 个设备。")
        }
        Seen::Tool { path: Some(path), .. } => format!("{path} 可用。"),
        Seen::Tool { path: None, .. } => "未安装，也不需要。".to_owned(),
        Seen::Node { state: NodeState::Usable, access, .. } => format!("可以打开{}。", owner(*access)),
        Seen::Node { state: NodeState::Forbidden, access, .. } => format!("无权打开{}。", owner(*access)),
        Seen::Node { state: NodeState::Missing, .. } => "不存在，目前也不需要。".to_owned(),
        Seen::Driver { running: Some(running), installed: Some(installed), .. } if running != installed => {
            format!("运行的是 {running}，安装的是 {installed}。")
        }
        Seen::Driver { running: Some(version), .. } => format!("运行的是 {version}。"),
        Seen::Driver { running: None, installed: Some(version), .. } => format!("安装的是 {version}。"),
        Seen::Driver { running: None, installed: None, .. } => "无法得知版本。".to_owned(),
        Seen::Firmware { versions, .. } if versions.is_empty() => "无法得知版本。".to_owned(),
        Seen::Firmware { versions, .. } => format!("{}。", versions.join("、")),
        Seen::Runtime { version: Some(version), .. } => format!("{version}。"),
        Seen::Runtime { version: None, .. } => "本机未安装；程序可以自带。".to_owned(),
        Seen::Variable { value, .. } if value.is_empty() => "值为空。".to_owned(),
        Seen::Variable { value, .. } => format!("值为 {value}"),
        Seen::PersistenceMode { off } if off.is_empty() => "已开启。".to_owned(),
        Seen::PersistenceMode { off } => {
            let off: Vec<String> = off.iter().map(u32::to_string).collect();
            format!("设备 {} 未开启。", off.join("、"))
        }
        Seen::TimeService { service: Some(service), source: Some(source), .. } => {
            format!("{} 正在跟随 {source}。", service.name())
        }
        Seen::TimeService { service: Some(service), .. } => format!("{} 在运行。", service.name()),
        Seen::TimeService { service: None, .. } => "未找到。".to_owned(),
        Seen::HardwareClock { is_local_time: false } => "使用 UTC。".to_owned(),
        Seen::HardwareClock { is_local_time: true } => "使用本地时间。".to_owned(),
        Seen::TimeZone { name: Some(name), offset_s } => format!("{name}，UTC{}。", utc_offset(*offset_s)),
        Seen::TimeZone { name: None, offset_s } => format!("UTC{}。", utc_offset(*offset_s)),
        Seen::Proxies { variables } if variables.is_empty() => "没有设置代理变量。".to_owned(),
        Seen::Proxies { variables } => format!("{}。", variables.join("，")),
        Seen::Server { url, version: Some(version), took_ms: Some(took_ms) } => {
            format!("{url} 是 gpustack 服务端，版本 {version}，在 {took_ms} 毫秒内应答。")
        }
        Seen::Server { url, .. } => format!("{url} 是 gpustack 服务端。"),
        Seen::Credential { kind, known_as } => credential(*kind, known_as.as_deref()),
        Seen::ServerClock { measured: Some(measured) } => {
            let offset = Language::Zh.messages().clock_offset(measured.offset_ms);
            format!("与服务端一致（{offset}，误差 ±{} 毫秒）。", measured.error_ms)
        }
        Seen::ServerClock { measured: None } => "未与服务端比对。".to_owned(),
        Seen::WorkerPort { holder, .. } => match holder {
            PortHolder::Nobody => "空闲，可供工作节点使用。",
            PortHolder::ThisWorker => "由本机的工作节点使用。",
            PortHolder::OtherWorker => "被另一个工作节点占用。",
            PortHolder::OtherProgram => "被其他程序占用。",
            PortHolder::Unknown => "无法使用。",
        }
        .to_owned(),
        Seen::WayBack { url, round_trip_ms: Some(round_trip_ms) } => {
            format!("服务端可在 {} 毫秒内访问 {url}。", format::milliseconds(*round_trip_ms))
        }
        Seen::WayBack { url, round_trip_ms: None } => format!("{url}。"),
    }
}

fn owner(access: Option<NodeAccess>) -> String {
    access.map(|access| format!("（{:o}，用户 {}，组 {}）", access.mode, access.uid, access.gid)).unwrap_or_default()
}

fn credential(kind: CredentialKind, known_as: Option<&str>) -> String {
    match (kind, known_as) {
        (CredentialKind::Token, Some(name)) => format!("令牌正确；服务端上的名称是 {name}。"),
        (CredentialKind::Token, None) => "令牌正确。".to_owned(),
        (CredentialKind::Key, Some(name)) => format!("使用本机密钥；服务端上的名称是 {name}。"),
        (CredentialKind::Key, None) => "使用本机密钥。".to_owned(),
        (CredentialKind::Nothing, _) => "无。".to_owned(),
    }
}

/// What is wrong, or why it was not looked at.
pub fn what(reason: &HostReason) -> String {
    match reason {
        HostReason::ServerNotGiven {} => "未指定服务端，因此没有尝试连接。".to_owned(),
        HostReason::ServerNotReached {} => "未检查：无法连接服务端。".to_owned(),
        HostReason::TokenNeeded {} => "未检查：服务端只告知持有令牌的主机。".to_owned(),
        HostReason::WayBackNotTried {} => "未检查：工作节点无法使用其端口。".to_owned(),
        HostReason::ServerTooOld {} => "服务端有应答，但其版本不支持诊断。".to_owned(),
        HostReason::TimeServiceMissing {} => "本机没有运行时间服务，时钟会逐渐漂移。".to_owned(),
        HostReason::TimeServiceOfHost {} => "未检查：容器使用主机的时钟，时间服务运行在主机上。".to_owned(),
        HostReason::TimeServiceUnknown {} => "无法得知时钟是否已同步。".to_owned(),
        HostReason::SeccompFilter {} => "设备驱动无法工作可能与该过滤有关。".to_owned(),
        HostReason::ProxyInTheWay { host } => {
            format!("curl、docker 等会通过代理访问 {host}；gpustack 自身直接访问，不使用代理。")
        }
        HostReason::OpenFilesFew { limit } => format!("工作节点在此最多只能打开 {limit} 个文件。"),
        HostReason::DataDirUnusable { path, error } => format!("{path} 无法使用：{error}。"),
        HostReason::PortInUse { port } => format!("端口 {port} 已被其他程序监听。"),
        HostReason::PortOfOtherWorker { port, worker_uuid } => {
            format!("端口 {port} 已被另一个工作节点（{worker_uuid}）监听。")
        }
        HostReason::PortUnusable { port, error } => format!("无法监听端口 {port}：{error}。"),
        HostReason::PersistenceModeOff {} => "没有程序使用显卡时驱动会被卸载，下一个程序需要等待数秒。".to_owned(),
        HostReason::ServerNotResolved { host } => format!("本机无法解析名称 {host}。"),
        HostReason::ServerRefused { address } => format!("{address} 没有服务监听。"),
        HostReason::ServerNoRoute { address } => format!("本机没有到 {address} 的路由。"),
        HostReason::ServerTimedOut { address, timeout_s } => format!("{address} 在 {timeout_s} 秒内没有应答。"),
        HostReason::ServerClosed { address } => format!("{address} 未应答就关闭了连接。"),
        HostReason::ServerNetwork { address, detail } => format!("无法与 {address} 通信：{detail}。"),
        HostReason::CertificateUnknown { address } => format!("本机不信任 {address} 的证书颁发机构。"),
        HostReason::CertificateOther { address, expected, presented } => {
            format!("{address} 出示的证书指纹为 {presented}，而指定的是 {expected}。")
        }
        HostReason::CertificateName { address, names } => format!("{address} 的证书只适用于 {names}。"),
        HostReason::TlsNotSpoken { address } => format!("{address} 不支持 TLS。"),
        HostReason::TlsFailed { address, detail } => format!("与 {address} 的 TLS 失败：{detail}。"),
        HostReason::HttpNotSpoken { address } => format!("{address} 不是明文 HTTP 服务。"),
        HostReason::ServerIsAnother { url, status } => format!("{url} 由其他服务应答，HTTP 状态 {status}。"),
        HostReason::ServerRedirects { url, location } => format!("{url} 重定向到 {location}。"),
        HostReason::GatewayFailed { address, status } => {
            format!("{address} 上的代理返回 {status}：它无法访问服务端。")
        }
        HostReason::UpgradeTakenAway { address } => format!("本机与 {address} 之间的代理去掉了链路升级请求。"),
        HostReason::ServerBusy {} => "服务端繁忙，或正在启动或停止。".to_owned(),
        HostReason::TokenMissing {} => "没有提供令牌，且本机以前没有加入过。".to_owned(),
        HostReason::TokenWrong { address } => format!("{address} 上的服务端拒绝了该令牌。"),
        HostReason::WorkerNotKnown { address } => {
            format!("{address} 上的服务端不认识本机：可能已被删除，或属于另一个服务端。")
        }
        HostReason::ServerKeyChanged { address, .. } => {
            format!("{address} 上的服务端密钥与本机加入时的不同。")
        }
        HostReason::ServerNotProven { address } => format!("{address} 的应答方不知道令牌，不是服务端。"),
        HostReason::ServerRefuses { message } => format!("无法询问服务端：{message}。"),
    }
}

/// What to do.
pub fn next_step(reason: &HostReason) -> String {
    match reason {
        HostReason::ServerNotGiven {} => "请用 --server-url 指定后再检查。",
        HostReason::ServerNotReached {} | HostReason::WayBackNotTried {} | HostReason::TimeServiceOfHost {} => "",
        HostReason::TokenNeeded {} => "请用 --token 提供令牌后再检查。",
        HostReason::ServerTooOld {} => "请把服务端升级到与本程序相同的版本。",
        HostReason::TimeServiceMissing {} => "请安装 chrony，并配置本机可达的时间服务器。",
        HostReason::TimeServiceUnknown {} => "请以 root 身份直接查询该服务。",
        HostReason::SeccompFilter {} => "请尝试不带过滤运行容器，或使用放行驱动所需调用的配置。",
        HostReason::ProxyInTheWay { .. } => "请把服务端加入 no_proxy。",
        HostReason::OpenFilesFew { .. } => "请提高上限：systemd 单元中设置 LimitNOFILE=，容器使用 --ulimit nofile=。",
        HostReason::DataDirUnusable { .. } => {
            "请以工作节点的用户运行，或把该目录交给该用户，或用 --data-dir 指定其他目录。"
        }
        HostReason::PortInUse { .. } | HostReason::PortOfOtherWorker { .. } => {
            "请停止对方，或用 --worker-port 为本节点指定其他端口。"
        }
        HostReason::PortUnusable { .. } => "请用 --worker-port 指定其他端口。",
        HostReason::PersistenceModeOff {} => "请开启持久模式，或启动 nvidia-persistenced。",
        HostReason::ServerNotResolved { .. } => "请检查 --server-url 的拼写和本机 DNS。",
        HostReason::ServerRefused { .. } => "请启动服务端或通往它的隧道，或更正 --server-url。",
        HostReason::ServerNoRoute { .. } => "请检查本机网络，或通过隧道访问服务端。",
        HostReason::ServerTimedOut { .. } => "请检查服务端是否在运行，以及防火墙是否丢弃了报文。",
        HostReason::ServerClosed { .. } => "隧道远端断开时会这样：请检查隧道和服务端。",
        HostReason::ServerNetwork { .. } => "请检查本机与服务端之间的网络。",
        HostReason::CertificateUnknown { .. } => {
            "请用 --ca-file 提供 CA 证书；若为自签名证书，请用 --server-fingerprint 提供服务端启动时打印的指纹。"
        }
        HostReason::CertificateOther { .. } => "若服务端证书已更新，请提供新的指纹；否则请查明是谁在应答。",
        HostReason::CertificateName { .. } => "请在 --server-url 中使用其中的名称，或为当前名称签发证书。",
        HostReason::TlsNotSpoken { .. } => "请把 --server-url 中的 https:// 改为 http://。",
        HostReason::TlsFailed { .. } => "请检查服务端的证书和 TLS 设置。",
        HostReason::HttpNotSpoken { .. } => "若这就是服务端，请在 --server-url 中使用 https://；否则请更正端口。",
        HostReason::ServerIsAnother { .. } => "请更正 --server-url 或隧道的远端。",
        HostReason::ServerRedirects { .. } => "请在 --server-url 中使用服务端自身的地址。",
        HostReason::GatewayFailed { .. } => "请检查服务端是否在运行，以及代理指向何处。",
        HostReason::UpgradeTakenAway { .. } => "请让代理为 /v1/link 转发 Upgrade 与 Connection 请求头。",
        HostReason::ServerBusy {} => "请一分钟后再试。",
        HostReason::TokenMissing {} | HostReason::TokenWrong { .. } => {
            "请用 --token 提供在服务端主机上由下面命令打印的令牌。"
        }
        HostReason::WorkerNotKnown { .. } => "请用 --token 提供令牌，作为新节点加入。",
        HostReason::ServerKeyChanged { file, .. } => {
            return format!("若服务端已重新部署，请用 --token 提供其令牌，或删除 {file}；否则说明中间有人冒充。");
        }
        HostReason::ServerNotProven { .. } => "请检查 --server-url 与 --token；若都正确，说明中间有人冒充。",
        HostReason::ServerRefuses { .. } => "请先处理该问题，然后重新检查。",
    }
    .to_owned()
}
