//! Causes in simplified Chinese.

use super::{ReasonContext, hours, is_loopback, is_made_up_for};
use crate::format;
use crate::i18n::{Language, words};
use api::{DriverInitCause, LinkCarrier, LinkLoss, Reason};

/// The cause in a few words.
pub const fn title(reason: &Reason) -> &'static str {
    match reason {
        Reason::HeartbeatReceived {} => "心跳正常",
        Reason::HeartbeatLost { .. } => "心跳丢失",
        Reason::WorkerStopped { .. } => "已停止",
        Reason::HeartbeatAwaited { .. } => "等待心跳",
        Reason::LinkUp { .. } => "链路连通",
        Reason::LinkAwaited {} => "等待链路",
        Reason::LinkDown { .. } => "链路断开",
        Reason::LinkUnanswered { .. } => "链路上无应答",
        Reason::TunnelDown { forward: Some(_), .. } => "隧道中断",
        Reason::TunnelDown { forward: None, .. } => "隧道代理未连接",
        Reason::DirectAnswered { .. } => "探测有应答",
        Reason::DirectNotProbed { .. } => "尚未探测",
        Reason::DirectRefused { .. } => "探测被拒绝",
        Reason::DirectTimedOut { .. } => "探测超时",
        Reason::DirectNotResolved { .. } => "主机名无法解析",
        Reason::DirectNoRoute { .. } => "没有路由",
        Reason::DirectClosed { .. } => "探测连接被关闭",
        Reason::DirectWrongAnswer { .. } => "应答者不是工作节点",
        Reason::DirectWrongWorker { .. } => "应答的是另一节点",
        Reason::ClockInSync { .. } => "时钟一致",
        Reason::ClockOffset { .. } => "时钟不准",
        Reason::ClockOffsetZone { .. } => "时钟相差整时区",
        Reason::ClockNotMeasured {} => "时钟尚未测量",
        Reason::ClockNotSynchronised { .. } => "时钟未同步",
        Reason::HardwareClockLocal {} => "硬件时钟使用本地时间",
        Reason::DiskFull { .. } => "磁盘将满",
        Reason::DevicesWorking { .. } => "设备正常",
        Reason::DevicesNone {} => "没有设备",
        Reason::DevicesAwaited {} => "正在识别设备",
        Reason::ToolTimedOut { .. } => "设备工具无响应",
        Reason::ToolFailed { .. } => "设备工具出错",
        Reason::ToolNotStarted { .. } => "设备工具无法启动",
        Reason::ToolMissing { .. } => "缺少设备工具",
        Reason::ToolOutputUnknown { .. } => "设备工具输出无法识别",
        Reason::DriverInitFailed { .. } => "驱动初始化失败",
        Reason::DriverLibraryMissing { .. } => "缺少驱动库",
        Reason::DeviceInUseElsewhere { .. } => "设备被其他容器占用",
        Reason::DeviceNodeMissing { .. } => "缺少设备节点",
        Reason::DeviceNodeUnreadable { .. } => "设备节点无权访问",
        Reason::DeviceUnhealthy { .. } => "设备不健康",
        Reason::DevicesMissing { .. } => "设备丢失",
        Reason::DriverNotLoaded { .. } => "驱动未加载",
        Reason::DriverMismatch { .. } => "驱动版本不一致",
        Reason::DeviceLost { .. } => "设备失去响应",
        Reason::VisibleDevicesWrong { .. } => "设备选择有误",
        Reason::ReadingsForbidden { .. } => "无权读取指标",
        Reason::IdentityDuplicated { .. } => "身份重复",
        Reason::ReplacementAsked { .. } => "另一主机请求使用该名称",
    }
}

/// What happened.
#[expect(clippy::too_many_lines, reason = "one arm for each reason; the compiler sees that none is missing")]
pub fn what(reason: &Reason, context: &ReasonContext<'_>) -> String {
    let span = words::ZH.span;
    match reason {
        Reason::HeartbeatReceived {} => "心跳正常。".to_owned(),
        Reason::HeartbeatLost { last_ms: Some(last_ms), .. } => {
            format!("已有 {}未收到心跳（最近一次 {}）。", span(context.span_since(*last_ms)), context.time(*last_ms))
        }
        Reason::HeartbeatLost { last_ms: None, timeout_s } => {
            format!("服务端启动后一直未收到心跳，期限为 {timeout_s} 秒。")
        }
        Reason::WorkerStopped { at_ms } => {
            format!("工作节点已于 {} 停止（{}前）。", context.time(*at_ms), span(context.span_since(*at_ms)))
        }
        Reason::HeartbeatAwaited { until_ms } => {
            format!("服务端刚刚启动，等待该节点的心跳，直到 {}。", context.time(*until_ms))
        }
        Reason::LinkUp { carrier, round_trip_ms } => {
            let inside = match carrier {
                LinkCarrier::Stream => "",
                LinkCarrier::WebSocket => "（经 WebSocket 承载）",
            };
            let round_trip =
                round_trip_ms.map(|round_trip_ms| format!("，往返 {} 毫秒", format::milliseconds(round_trip_ms)));
            format!("工作节点建立的链路连通{inside}{}。", round_trip.unwrap_or_default())
        }
        Reason::LinkAwaited {} => "链路已结束或尚未建立，工作节点会自行重连。".to_owned(),
        Reason::LinkDown { loss } => match loss {
            LinkLoss::Closed => "链路被关闭：工作节点已退出，或中间的隧道、代理已断开。",
            LinkLoss::Silent => "链路没有任何响应：工作节点的主机已下线，或中间网络中断。",
            LinkLoss::Broken => "链路的连接中断。",
            LinkLoss::NotSinceStart => "该节点曾有链路，但服务端启动后一直未重新建立。",
        }
        .to_owned(),
        Reason::LinkUnanswered { status: Some(status), .. } => {
            format!("链路连通，但工作节点在链路上的健康检查返回 HTTP {status}。")
        }
        Reason::LinkUnanswered { timeout_s, status: None } => {
            format!("链路连通，但工作节点在 {timeout_s} 秒内未应答链路上的健康检查。")
        }
        Reason::TunnelDown { forward: Some(forward), agent, since_ms } => {
            format!("隧道自 {} 起中断：{agent} 的 {forward}。", context.time(*since_ms))
        }
        Reason::TunnelDown { forward: None, agent, since_ms } => {
            format!("隧道代理自 {} 起未连接：{agent}。", context.time(*since_ms))
        }
        Reason::DirectAnswered { url, round_trip_ms } => {
            format!("{url} 在 {} 毫秒内应答。", format::milliseconds(*round_trip_ms))
        }
        Reason::DirectNotProbed { url } => format!("尚未探测 {url}。"),
        Reason::DirectRefused { url } => format!("{url} 拒绝连接：该端口没有服务监听。"),
        Reason::DirectTimedOut { url, timeout_s } => {
            format!("{url} 在 {timeout_s} 秒内没有应答：可能被防火墙丢弃，或主机已下线。")
        }
        Reason::DirectNotResolved { host, .. } => format!("服务端无法解析主机名 {host}。"),
        Reason::DirectNoRoute { url } => format!("服务端没有到 {url} 的路由。"),
        Reason::DirectClosed { url } => format!("{url} 接受连接后未应答即关闭，隧道远端断开时会这样。"),
        Reason::DirectWrongAnswer { url, status: Some(status) } => {
            format!("{url} 返回 HTTP {status}，不是工作节点的应答：该端口由其他服务占用。")
        }
        Reason::DirectWrongAnswer { url, status: None } => {
            format!("{url} 的应答不是 HTTP：该端口由其他服务占用。")
        }
        Reason::DirectWrongWorker { url, name } => {
            format!("{url} 的应答来自节点 {name}：两条隧道占用了同一端口。")
        }
        Reason::ClockInSync { offset_ms, error_ms } => {
            let offset = Language::Zh.messages().clock_offset(*offset_ms);
            format!("时钟与服务端一致（{offset}，误差 ±{error_ms} 毫秒）。")
        }
        Reason::ClockOffset { offset_ms, .. } => {
            let offset = Language::Zh.messages().clock_difference(*offset_ms);
            if *offset_ms < 0 {
                format!("该节点时钟比服务端慢 {offset}。")
            } else {
                format!("该节点时钟比服务端快 {offset}。")
            }
        }
        Reason::ClockOffsetZone { offset_ms, half_hours, .. } => {
            let (offset, hours) = (Language::Zh.messages().clock_difference(*offset_ms), hours(*half_hours));
            if *offset_ms < 0 {
                format!("该节点时钟比服务端慢 {offset}，接近 {hours} 小时，很可能是硬件时钟使用了本地时区。")
            } else {
                format!("该节点时钟比服务端快 {offset}，接近 {hours} 小时，很可能是硬件时钟使用了本地时区。")
            }
        }
        Reason::ClockNotMeasured {} => "尚未测量时钟。".to_owned(),
        Reason::ClockNotSynchronised { service } => format!("{service} 在运行，但没有跟随任何时间服务器。"),
        Reason::HardwareClockLocal {} => "硬件时钟使用了本地时间。".to_owned(),
        Reason::DiskFull { path, free_bytes } => format!("{path} 所在磁盘仅剩 {} MiB。", free_bytes >> 20),
        Reason::DevicesWorking { count } => format!("全部 {count} 个设备正常。"),
        Reason::DevicesNone {} => "该主机没有加速设备，作为 CPU 节点是正常的。".to_owned(),
        Reason::DevicesAwaited {} => "首次设备识别尚未完成。".to_owned(),
        Reason::ToolTimedOut { tool, timeout_s } => {
            format!("{tool} 在 {timeout_s} 秒内没有响应，因此没有新读数。")
        }
        Reason::ToolFailed { tool, exit_code: Some(code), output } => {
            format!("{tool} 执行失败，退出码 {code}{}", printed(output))
        }
        Reason::ToolFailed { tool, exit_code: None, output } => format!("{tool} 被信号终止{}", printed(output)),
        Reason::ToolNotStarted { tool, error } => format!("{tool} 无法启动：{error}。"),
        Reason::ToolMissing { tool } => format!("存在加速设备，但找不到 {tool}。"),
        Reason::ToolOutputUnknown { tool, output } => format!("当前版本无法识别 {tool} 的输出{}", printed(output)),
        Reason::DriverInitFailed { tool, code, nodes, .. } if nodes.is_empty() => {
            format!("{tool} 报告驱动初始化失败（错误码 {code}）。")
        }
        Reason::DriverInitFailed { tool, code, nodes, .. } => {
            format!("{tool} 报告驱动初始化失败（错误码 {code}）。缺少或无权访问：{}。", nodes.join("、"))
        }
        Reason::DriverLibraryMissing { tool, library } => format!("{tool} 找不到 {library}。"),
        Reason::DeviceInUseElsewhere { tool, code } => {
            format!("{tool} 报告设备正被其他容器占用（错误码 {code}）。")
        }
        Reason::DeviceNodeMissing { node } => format!("该主机或容器内缺少 {node}。"),
        Reason::DeviceNodeUnreadable { node } => format!("工作节点的运行用户无权打开 {node}。"),
        Reason::DeviceUnhealthy { index, name, health } => format!("设备 {index}（{name}）的健康状态为 {health}。"),
        Reason::DevicesMissing { expected, found } => format!("原有 {expected} 个设备，现在只有 {found} 个。"),
        Reason::DriverNotLoaded { vendor, count: Some(count) } => {
            format!("PCI 总线上有 {count} 个 {vendor} 设备，但没有驱动接管。")
        }
        Reason::DriverNotLoaded { vendor, count: None } => format!("{vendor} 的驱动没有响应。"),
        Reason::DriverMismatch { vendor, running, installed, firmware } => {
            let version = |version: &Option<String>| version.clone().unwrap_or_else(|| "?".to_owned());
            format!(
                "{vendor} 驱动：运行中为 {}，已安装为 {}；固件为 {}。",
                version(running),
                version(installed),
                version(firmware)
            )
        }
        Reason::DeviceLost { tool, device } => format!("{tool} 已无法访问 {device}。"),
        Reason::VisibleDevicesWrong { variable, value, available } => {
            format!("{variable} 的值为“{value}”，与此处的 {available} 个设备不符。")
        }
        Reason::ReadingsForbidden { tool } => format!("{tool} 无权读取设备的部分指标。"),
        Reason::IdentityDuplicated { hostname, address } => {
            format!("{hostname}（{address}）使用了相同的身份：其数据目录是该节点的副本。")
        }
        Reason::ReplacementAsked { hostname, address } => format!("{hostname}（{address}）请求以该名称加入。"),
    }
}

/// What a tool printed, as the end of a sentence.
fn printed(output: &str) -> String {
    let output = output.trim();
    if output.is_empty() { "。".to_owned() } else { format!("：{output}") }
}

/// What to do next.
pub fn next_step(reason: &Reason, context: &ReasonContext<'_>) -> String {
    if is_made_up_for(reason, context) {
        return "无需处理：服务端可通过链路访问该节点。".to_owned();
    }
    match reason {
        Reason::HeartbeatReceived {}
        | Reason::LinkUp { .. }
        | Reason::DirectAnswered { .. }
        | Reason::ClockInSync { .. }
        | Reason::DevicesWorking { .. }
        | Reason::DevicesNone {} => String::new(),
        Reason::HeartbeatLost { .. } => lost_heartbeat(context.also).to_owned(),
        Reason::WorkerStopped { .. } => "请重新启动该节点；如不再使用，可在此删除。".to_owned(),
        Reason::HeartbeatAwaited { .. } => "无需操作：到时再判断其状态。".to_owned(),
        Reason::LinkAwaited {} => "无需操作：链路会在几秒内恢复，否则将显示为断开。".to_owned(),
        Reason::TunnelDown { .. } => "“隧道”页面说明了原因与处理办法。".to_owned(),
        Reason::LinkDown { .. } => {
            "请查看工作节点日志，其中写明链路无法建立的原因；中间的代理须为 /v1/link 转发 Upgrade 与 Connection 请求头。"
                .to_owned()
        }
        Reason::LinkUnanswered { .. } => "工作节点可能卡死或过载：请查看其日志与主机，并重新启动。".to_owned(),
        Reason::DirectNotProbed { .. } => "无需操作：几秒内会进行首次探测。".to_owned(),
        Reason::DirectRefused { url } if is_loopback(url) => {
            "该地址是服务端上的隧道出口，说明隧道已断开。请在堡垒机上重新建立隧道。".to_owned()
        }
        Reason::DirectRefused { .. } => {
            "请检查工作节点是否在运行并监听该端口；若此地址是隧道出口，说明隧道已断开。".to_owned()
        }
        Reason::DirectTimedOut { url, .. } if is_loopback(url) => {
            "该地址是隧道出口：堡垒机已无法访问工作节点，请检查堡垒机上的转发。".to_owned()
        }
        Reason::DirectTimedOut { .. } => "请在服务端与节点之间的防火墙放行该端口，或让该节点通过隧道加入。".to_owned(),
        Reason::DirectNotResolved { .. } => {
            "请用 --worker-ip 指定地址启动工作节点，或让服务端能解析该名称。".to_owned()
        }
        Reason::DirectNoRoute { .. } => "请用 --worker-ip 127.0.0.1 通过隧道加入，或在服务端添加路由。".to_owned(),
        Reason::DirectClosed { .. } => "请检查堡垒机到工作节点的转发，以及工作节点是否监听该端口。".to_owned(),
        Reason::DirectWrongAnswer { .. } => {
            "请查看该端口由谁监听，并用 --worker-port 为工作节点换一个端口。".to_owned()
        }
        Reason::DirectWrongWorker { .. } => "请为隧道后的每个节点分配各自的 --worker-port 和转发。".to_owned(),
        Reason::ClockOffset { .. } => {
            "请在主机上配置时间同步（NTP_SERVER 为您的时间服务器）。在此之前会影响日志与调度时间，但不影响就绪状态。"
                .to_owned()
        }
        Reason::ClockOffsetZone { .. } => "请在主机上让硬件时钟使用 UTC，并校准一次时间。不影响就绪状态。".to_owned(),
        Reason::ClockNotMeasured {} => "无需操作：下一次心跳时会测量。".to_owned(),
        Reason::ClockNotSynchronised { .. } => "请为它配置本机可达的时间服务器，否则时钟会逐渐漂移。".to_owned(),
        Reason::HardwareClockLocal {} => "请改用 UTC，否则重启后时钟可能相差数小时。".to_owned(),
        Reason::DiskFull { .. } => "请清理磁盘：工作节点的身份保存在此处。".to_owned(),
        Reason::DevicesAwaited {} => "无需操作：最多需要一分钟。".to_owned(),
        Reason::ToolTimedOut { .. } => {
            "请手动运行该工具；若同样卡住，说明驱动或板卡已挂起：请查看内核日志并复位板卡。".to_owned()
        }
        Reason::ToolFailed { .. } => "请手动运行该工具，并处理其报告的问题。".to_owned(),
        Reason::ToolNotStarted { .. } => "请检查该工具是否已挂载、可执行并适用于当前处理器架构。".to_owned(),
        Reason::ToolMissing { tool } => {
            format!("请把 {tool} 所在目录挂载到容器内，例如 -v /usr/local/sbin:/usr/local/sbin:ro。")
        }
        Reason::ToolOutputUnknown { .. } => "请手动运行该工具；若输出正常，请连同驱动版本一起反馈。".to_owned(),
        Reason::DriverInitFailed { cause: None | Some(DriverInitCause::NodesMissing), .. } => {
            "请把 /dev/davinci_manager、/dev/devmm_svm、/dev/hisi_hdc 传入容器，并挂载 /usr/local/Ascend/driver。"
                .to_owned()
        }
        Reason::DriverLibraryMissing { .. } => {
            "请挂载驱动目录，例如 -v /usr/local/Ascend/driver:/usr/local/Ascend/driver:ro。".to_owned()
        }
        Reason::DeviceInUseElsewhere { .. } => {
            "请停止占用设备的容器，或在可以查询设备的环境中运行工作节点。".to_owned()
        }
        Reason::DeviceNodeMissing { node } => {
            format!("在容器中请添加 --device={node}；在主机上请检查驱动是否已加载。")
        }
        Reason::DeviceNodeUnreadable { .. }
        | Reason::ReadingsForbidden { .. }
        | Reason::DriverInitFailed { cause: Some(DriverInitCause::NotAllowed), .. } => "请以 root 运行工作节点，或把其用户加入该设备节点所属的组。".to_owned(),
        Reason::DeviceUnhealthy { .. } => "请查看厂商工具的健康报告与内核日志，复位或更换板卡。".to_owned(),
        Reason::DevicesMissing { .. } | Reason::DeviceLost { .. } => "请查看内核日志确认板卡是否掉线，然后重启主机或重新插拔板卡。".to_owned(),
        Reason::DriverNotLoaded { .. }
        | Reason::DriverInitFailed { cause: Some(DriverInitCause::ModuleNotLoaded), .. } => {
            "请为当前内核安装厂商驱动或加载其内核模块，然后重启工作节点。".to_owned()
        }
        Reason::DriverMismatch { .. }
        | Reason::DriverInitFailed { cause: Some(DriverInitCause::UpgradedWithoutRestart), .. } => {
            "升级驱动后请重启主机；驱动与固件请安装同一版本的配套包。".to_owned()
        }
        Reason::VisibleDevicesWrong { .. } => "请填写实际存在的设备，例如 0,1 或 0-3，然后重启工作节点容器。".to_owned(),
        Reason::IdentityDuplicated { hostname, .. } => {
            format!("请停止 {hostname} 上的工作节点，清空其数据目录后重新启动，它会作为新节点加入。")
        }
        Reason::ReplacementAsked { hostname, .. } => {
            format!("若由 {hostname} 接替该节点，请选择“替换”；否则请为它指定另一个 --worker-name。")
        }
    }
}

fn lost_heartbeat(also: Option<&Reason>) -> &'static str {
    match also {
        Some(Reason::LinkUp { .. }) => "其链路连通：工作节点仍在运行，只是自身的请求未能到达，请查看其日志。",
        Some(Reason::LinkDown { .. }) => "其链路也已断开：工作节点或其主机已停止，或中间的网络、隧道中断。",
        Some(Reason::DirectAnswered { .. }) => {
            "该节点仍能应答服务端的探测，只是它到服务端的通路中断：请检查其主机上通往服务端的隧道。"
        }
        Some(Reason::DirectRefused { .. }) => "其地址也拒绝连接：工作节点未运行，或其隧道已断开。",
        Some(Reason::DirectTimedOut { .. }) => "其地址也没有应答：主机已下线，或网络中断。",
        Some(Reason::DirectClosed { .. }) => "其地址未应答即关闭：隧道仍在，但其后的工作节点未运行。",
        Some(Reason::DirectWrongWorker { .. }) => "其地址的应答来自另一节点：两条隧道占用了同一端口，请检查两者。",
        _ => "请检查工作节点是否在运行，以及能否访问服务端。",
    }
}
