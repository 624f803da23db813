//! Causes in English.

use super::{ReasonContext, hours, is_loopback, is_made_up_for};
use crate::format;
use crate::i18n::{Language, words};
use api::{DriverInitCause, LinkCarrier, LinkLoss, Reason};

/// The cause in a few words.
pub const fn title(reason: &Reason) -> &'static str {
    match reason {
        Reason::HeartbeatReceived {} => "Heartbeats arrive",
        Reason::HeartbeatLost { .. } => "Heartbeat lost",
        Reason::WorkerStopped { .. } => "Stopped",
        Reason::HeartbeatAwaited { .. } => "Waiting for a heartbeat",
        Reason::LinkUp { .. } => "Link up",
        Reason::LinkAwaited {} => "Waiting for the link",
        Reason::LinkDown { .. } => "Link down",
        Reason::LinkUnanswered { .. } => "No answer over the link",
        Reason::TunnelDown { forward: Some(_), .. } => "Tunnel down",
        Reason::TunnelDown { forward: None, .. } => "Tunnel agent not connected",
        Reason::DirectAnswered { .. } => "Probe answered",
        Reason::DirectNotProbed { .. } => "Not probed yet",
        Reason::DirectRefused { .. } => "Probe refused",
        Reason::DirectTimedOut { .. } => "Probe timed out",
        Reason::DirectNotResolved { .. } => "Name not found",
        Reason::DirectNoRoute { .. } => "No route",
        Reason::DirectClosed { .. } => "Probe closed without answer",
        Reason::DirectWrongAnswer { .. } => "Something else answered",
        Reason::DirectWrongWorker { .. } => "Another worker answered",
        Reason::ClockInSync { .. } => "Clock in step",
        Reason::ClockOffset { .. } => "Clock is wrong",
        Reason::ClockOffsetZone { .. } => "Clock is wrong by a time zone",
        Reason::ClockNotMeasured {} => "Clock not measured yet",
        Reason::ClockNotSynchronised { .. } => "Clock not synchronised",
        Reason::HardwareClockLocal {} => "Hardware clock in local time",
        Reason::DiskFull { .. } => "Disk nearly full",
        Reason::DevicesWorking { .. } => "Devices work",
        Reason::DevicesNone {} => "No devices",
        Reason::DevicesAwaited {} => "Looking for devices",
        Reason::ToolTimedOut { .. } => "Device tool hangs",
        Reason::ToolFailed { .. } => "Device tool failed",
        Reason::ToolNotStarted { .. } => "Device tool cannot start",
        Reason::ToolMissing { .. } => "Device tool missing",
        Reason::ToolOutputUnknown { .. } => "Device tool not understood",
        Reason::DriverInitFailed { .. } => "Driver did not initialise",
        Reason::DriverLibraryMissing { .. } => "Driver library missing",
        Reason::DeviceInUseElsewhere { .. } => "Devices in use by another container",
        Reason::DeviceNodeMissing { .. } => "Device node missing",
        Reason::DeviceNodeUnreadable { .. } => "Device node not accessible",
        Reason::DeviceUnhealthy { .. } => "Device not healthy",
        Reason::DevicesMissing { .. } => "Devices have gone",
        Reason::DriverNotLoaded { .. } => "Driver not loaded",
        Reason::DriverMismatch { .. } => "Driver versions differ",
        Reason::DeviceLost { .. } => "Device lost",
        Reason::VisibleDevicesWrong { .. } => "Wrong choice of devices",
        Reason::ReadingsForbidden { .. } => "Readings not allowed",
        Reason::IdentityDuplicated { .. } => "Identity used twice",
        Reason::ReplacementAsked { .. } => "Another host asks for this name",
    }
}

/// What happened.
#[expect(clippy::too_many_lines, reason = "one arm for each reason; the compiler sees that none is missing")]
pub fn what(reason: &Reason, context: &ReasonContext<'_>) -> String {
    let span = words::EN.span;
    match reason {
        Reason::HeartbeatReceived {} => "Heartbeats arrive.".to_owned(),
        Reason::HeartbeatLost { last_ms: Some(last_ms), .. } => {
            format!("No heartbeat for {} (last {}).", span(context.span_since(*last_ms)), context.time(*last_ms))
        }
        Reason::HeartbeatLost { last_ms: None, timeout_s } => {
            format!("No heartbeat since the server started; the limit is {timeout_s} s.")
        }
        Reason::WorkerStopped { at_ms } => {
            format!("The worker was stopped {} ago, at {}.", span(context.span_since(*at_ms)), context.time(*at_ms))
        }
        Reason::HeartbeatAwaited { until_ms } => {
            format!("The server has just started and waits for this worker until {}.", context.time(*until_ms))
        }
        Reason::LinkUp { carrier, round_trip_ms } => {
            let inside = match carrier {
                LinkCarrier::Stream => "",
                LinkCarrier::WebSocket => " inside a WebSocket",
            };
            let round_trip = round_trip_ms
                .map(|round_trip_ms| format!(", with a round trip of {} ms", format::milliseconds(round_trip_ms)));
            format!("The link that the worker dialled stands{inside}{}.", round_trip.unwrap_or_default())
        }
        Reason::LinkAwaited {} => "The link has ended or not begun yet; the worker dials one by itself.".to_owned(),
        Reason::LinkDown { loss } => match loss {
            LinkLoss::Closed => "The link was closed: the worker has gone, or a tunnel or a proxy in between.",
            LinkLoss::Silent => "The link fell silent: the worker's host has gone, or the network in between is cut.",
            LinkLoss::Broken => "The link's connection broke.",
            LinkLoss::NotSinceStart => "The worker had a link, and has dialled none since the server started.",
        }
        .to_owned(),
        Reason::LinkUnanswered { status: Some(status), .. } => {
            format!("The link stands, but the worker answered a health check over it with HTTP {status}.")
        }
        Reason::LinkUnanswered { timeout_s, status: None } => {
            format!("The link stands, but the worker did not answer a health check over it within {timeout_s} s.")
        }
        Reason::TunnelDown { forward: Some(forward), agent, since_ms } => {
            format!("Tunnel down since {}: {forward} of {agent}.", context.time(*since_ms))
        }
        Reason::TunnelDown { forward: None, agent, since_ms } => {
            format!("Tunnel agent not connected since {}: {agent}.", context.time(*since_ms))
        }
        Reason::DirectAnswered { url, round_trip_ms } => {
            format!("{url} answered in {} ms.", format::milliseconds(*round_trip_ms))
        }
        Reason::DirectNotProbed { url } => format!("{url} has not been probed yet."),
        Reason::DirectRefused { url } => format!("{url} refused the connection: nothing listens there."),
        Reason::DirectTimedOut { url, timeout_s } => {
            format!("{url} did not answer within {timeout_s} s: a firewall drops packets, or the host is gone.")
        }
        Reason::DirectNotResolved { host, .. } => format!("The name {host} has no address on the server."),
        Reason::DirectNoRoute { url } => format!("The server has no route to {url}."),
        Reason::DirectClosed { url } => {
            format!(
                "{url} took the connection and closed it without an answer, as a tunnel does whose far end is down."
            )
        }
        Reason::DirectWrongAnswer { url, status: Some(status) } => {
            format!("{url} answered with HTTP {status}, not as a worker does: something else listens there.")
        }
        Reason::DirectWrongAnswer { url, status: None } => {
            format!("{url} answered with something that is not HTTP: something else listens there.")
        }
        Reason::DirectWrongWorker { url, name } => {
            format!("{url} answered as worker {name}: two tunnels end on one port.")
        }
        Reason::ClockInSync { offset_ms, error_ms } => {
            let offset = Language::En.messages().clock_offset(*offset_ms);
            format!("The clock agrees with the server's ({offset}, give or take {error_ms} ms).")
        }
        Reason::ClockOffset { offset_ms, .. } => {
            let offset = Language::En.messages().clock_difference(*offset_ms);
            if *offset_ms < 0 {
                format!("This worker's clock is {offset} behind the server's.")
            } else {
                format!("This worker's clock is {offset} ahead of the server's.")
            }
        }
        Reason::ClockOffsetZone { offset_ms, half_hours, .. } => {
            let (offset, hours) = (Language::En.messages().clock_difference(*offset_ms), hours(*half_hours));
            if *offset_ms < 0 {
                format!(
                    "This worker's clock is {offset} behind the server's, close to {hours} h: probably the hardware clock is kept in local time."
                )
            } else {
                format!(
                    "This worker's clock is {offset} ahead of the server's, close to {hours} h: probably the hardware clock is kept in local time."
                )
            }
        }
        Reason::ClockNotMeasured {} => "No exchange has measured the clock yet.".to_owned(),
        Reason::ClockNotSynchronised { service } => format!("{service} runs, but follows no time server."),
        Reason::HardwareClockLocal {} => "The hardware clock is kept in local time.".to_owned(),
        Reason::DiskFull { path, free_bytes } => {
            format!("Only {} MiB are free on the disk of {path}.", free_bytes >> 20)
        }
        Reason::DevicesWorking { count: 1 } => "The device works.".to_owned(),
        Reason::DevicesWorking { count } => format!("All {count} devices work."),
        Reason::DevicesNone {} => "The host has no accelerators. That is fine for a CPU worker.".to_owned(),
        Reason::DevicesAwaited {} => "The first look for devices has not finished yet.".to_owned(),
        Reason::ToolTimedOut { tool, timeout_s } => {
            format!("{tool} did not answer within {timeout_s} s, so there are no new readings.")
        }
        Reason::ToolFailed { tool, exit_code: Some(code), output } => {
            format!("{tool} failed with exit status {code}{}", printed(output))
        }
        Reason::ToolFailed { tool, exit_code: None, output } => {
            format!("{tool} was ended by a signal{}", printed(output))
        }
        Reason::ToolNotStarted { tool, error } => format!("{tool} cannot be started: {error}."),
        Reason::ToolMissing { tool } => format!("Accelerators are there, but {tool} was not found."),
        Reason::ToolOutputUnknown { tool, output } => {
            format!("{tool} printed something that this version does not understand{}", printed(output))
        }
        Reason::DriverInitFailed { tool, code, nodes, .. } if nodes.is_empty() => {
            format!("{tool} reports that the driver did not initialise (code {code}).")
        }
        Reason::DriverInitFailed { tool, code, nodes, .. } => {
            let nodes = nodes.join(", ");
            format!(
                "{tool} reports that the driver did not initialise (code {code}). Missing or closed to the worker: {nodes}."
            )
        }
        Reason::DriverLibraryMissing { tool, library } => format!("{tool} does not find {library}."),
        Reason::DeviceInUseElsewhere { tool, code } => {
            format!("{tool} reports that another container holds the devices (code {code}).")
        }
        Reason::DeviceNodeMissing { node } => format!("{node} is missing on this host or in this container."),
        Reason::DeviceNodeUnreadable { node } => format!("The worker's user may not open {node}."),
        Reason::DeviceUnhealthy { index, name, health } => {
            format!("Device {index} ({name}) reports its health as {health}.")
        }
        Reason::DevicesMissing { expected, found } => format!("{found} of {expected} devices are left."),
        Reason::DriverNotLoaded { vendor, count: Some(count) } => {
            format!("{count} devices of {vendor} are on the PCI bus, and no driver has taken them.")
        }
        Reason::DriverNotLoaded { vendor, count: None } => format!("The driver of {vendor} does not answer."),
        Reason::DriverMismatch { vendor, running, installed, firmware } => {
            let version = |version: &Option<String>| version.clone().unwrap_or_else(|| "?".to_owned());
            format!(
                "Driver of {vendor}: {} runs, {} is installed; firmware {}.",
                version(running),
                version(installed),
                version(firmware)
            )
        }
        Reason::DeviceLost { tool, device } => format!("{tool} does not reach {device} any more."),
        Reason::VisibleDevicesWrong { variable, value, available } => {
            format!("{variable} is \"{value}\", which does not fit the {available} devices here.")
        }
        Reason::ReadingsForbidden { tool } => format!("{tool} may not read all figures of the devices."),
        Reason::IdentityDuplicated { hostname, address } => {
            format!("{hostname} ({address}) uses the same identity: its data directory is a copy of this worker's.")
        }
        Reason::ReplacementAsked { hostname, address } => {
            format!("{hostname} ({address}) asks to join under this name.")
        }
    }
}

/// What a tool printed, as the end of a sentence.
fn printed(output: &str) -> String {
    let output = output.trim();
    if output.is_empty() { ".".to_owned() } else { format!(": {output}") }
}

/// What to do next.
#[expect(clippy::too_many_lines, reason = "one arm for each reason; the compiler sees that none is missing")]
pub fn next_step(reason: &Reason, context: &ReasonContext<'_>) -> String {
    if is_made_up_for(reason, context) {
        return "Nothing has to be done: the server reaches this worker over its link.".to_owned();
    }
    match reason {
        Reason::HeartbeatReceived {}
        | Reason::LinkUp { .. }
        | Reason::DirectAnswered { .. }
        | Reason::ClockInSync { .. }
        | Reason::DevicesWorking { .. }
        | Reason::DevicesNone {} => String::new(),
        Reason::HeartbeatLost { .. } => lost_heartbeat(context.also).to_owned(),
        Reason::WorkerStopped { .. } => {
            "Start it again, or delete it here if it is not to come back.".to_owned()
        }
        Reason::HeartbeatAwaited { .. } => "Nothing to do: it is judged after that time.".to_owned(),
        Reason::LinkAwaited {} => "Nothing to do: it comes back within seconds, or is shown as down.".to_owned(),
        Reason::TunnelDown { .. } => "The page Tunnels says why, and what to do.".to_owned(),
        Reason::LinkDown { .. } => {
            "Read the worker's log: it says why no link comes about. A proxy in between must pass on the headers Upgrade and Connection for /v1/link.".to_owned()
        }
        Reason::LinkUnanswered { .. } => {
            "The worker is stuck or overloaded: look at its log and its host, and start it again.".to_owned()
        }
        Reason::DirectNotProbed { .. } => "Nothing to do: the first probe follows within seconds.".to_owned(),
        Reason::DirectRefused { url } if is_loopback(url) => {
            "This address is a tunnel's end on the server: the tunnel is down. Build it again on the bastion.".to_owned()
        }
        Reason::DirectRefused { .. } => {
            "Check that the worker runs and listens on this port. If a tunnel ends here, it is down.".to_owned()
        }
        Reason::DirectTimedOut { url, .. } if is_loopback(url) => {
            "This address is a tunnel's end: the bastion no longer reaches the worker. Check the bastion's forward.".to_owned()
        }
        Reason::DirectTimedOut { .. } => {
            "Open the port in the firewall between server and worker, or join this worker through a tunnel.".to_owned()
        }
        Reason::DirectNotResolved { .. } => {
            "Start the worker with --worker-ip and an address, or make the name known to the server.".to_owned()
        }
        Reason::DirectNoRoute { .. } => {
            "Join this worker through a tunnel with --worker-ip 127.0.0.1, or add a route on the server.".to_owned()
        }
        Reason::DirectClosed { .. } => {
            "Check the forward from the bastion to the worker, and that the worker listens on this port.".to_owned()
        }
        Reason::DirectWrongAnswer { .. } => {
            "See what listens on this port, and give the worker another one with --worker-port.".to_owned()
        }
        Reason::DirectWrongWorker { .. } => {
            "Give each worker behind a tunnel its own --worker-port and its own forward.".to_owned()
        }
        Reason::ClockOffset { .. } => {
            "Set up time synchronisation on the host (NTP_SERVER is your time server). Logs and scheduling are wrong until then; the state is not affected.".to_owned()
        }
        Reason::ClockOffsetZone { .. } => {
            "Keep the hardware clock in UTC and set the clock once, on the host itself. The state is not affected.".to_owned()
        }
        Reason::ClockNotMeasured {} => "Nothing to do: it is measured with the next heartbeat.".to_owned(),
        Reason::ClockNotSynchronised { .. } => {
            "Give it a time server that this host reaches; until then the clock drifts.".to_owned()
        }
        Reason::HardwareClockLocal {} => "Keep it in UTC, or the clock is hours off after a restart.".to_owned(),
        Reason::DiskFull { .. } => "Make room on it: the worker keeps its identity there.".to_owned(),
        Reason::DevicesAwaited {} => "Nothing to do: it takes a minute at most.".to_owned(),
        Reason::ToolTimedOut { .. } => {
            "Run the tool by hand. If it hangs there too, the driver or a card is stuck: read the kernel's log and reset the card.".to_owned()
        }
        Reason::ToolFailed { .. } => "Run the tool by hand and mend what it reports.".to_owned(),
        Reason::ToolNotStarted { .. } => {
            "Check that the tool is mounted, executable and made for this processor.".to_owned()
        }
        Reason::ToolMissing { tool } => {
            format!("Mount the directory of {tool} into the container, for example -v /usr/local/sbin:/usr/local/sbin:ro.")
        }
        Reason::ToolOutputUnknown { .. } => {
            "Run the tool by hand. If its output looks right, report it with the driver's version.".to_owned()
        }
        Reason::DriverInitFailed { cause: None | Some(DriverInitCause::NodesMissing), .. } => {
            "Pass /dev/davinci_manager, /dev/devmm_svm and /dev/hisi_hdc to the container, and mount /usr/local/Ascend/driver.".to_owned()
        }
        Reason::DriverLibraryMissing { .. } => {
            "Mount the driver's directory, for example -v /usr/local/Ascend/driver:/usr/local/Ascend/driver:ro.".to_owned()
        }
        Reason::DeviceInUseElsewhere { .. } => {
            "Stop the other container, or run the worker where the devices can be queried.".to_owned()
        }
        Reason::DeviceNodeMissing { node } => {
            format!("In a container add --device={node}. On the host check that the driver is loaded.")
        }
        Reason::DeviceNodeUnreadable { .. }
        | Reason::ReadingsForbidden { .. }
        | Reason::DriverInitFailed { cause: Some(DriverInitCause::NotAllowed), .. } => {
            "Run the worker as root, or add its user to the group that owns the node.".to_owned()
        }
        Reason::DeviceUnhealthy { .. } => "Read the vendor tool's health report and the kernel's log; reset or replace the card.".to_owned(),
        Reason::DevicesMissing { .. } | Reason::DeviceLost { .. } => {
            "See whether the card has fallen off the bus: read the kernel's log, then restart the host or reseat the card.".to_owned()
        }
        Reason::DriverNotLoaded { .. }
        | Reason::DriverInitFailed { cause: Some(DriverInitCause::ModuleNotLoaded), .. } => {
            "Install the vendor's driver for the kernel that runs, or load its module, and start the worker again.".to_owned()
        }
        Reason::DriverMismatch { .. }
        | Reason::DriverInitFailed { cause: Some(DriverInitCause::UpgradedWithoutRestart), .. } => {
            "Restart the host after an upgrade of the driver; install driver and firmware of the same release.".to_owned()
        }
        Reason::VisibleDevicesWrong { .. } => {
            "Name devices that are there, as 0,1 or 0-3, and start the worker's container again.".to_owned()
        }
        Reason::IdentityDuplicated { hostname, .. } => {
            format!("Stop the worker on {hostname}, empty its data directory and start it again: it then joins as a new worker.")
        }
        Reason::ReplacementAsked { hostname, .. } => {
            format!("Choose Replace if {hostname} is to take this worker's place. Otherwise give it another --worker-name.")
        }
    }
}

fn lost_heartbeat(also: Option<&Reason>) -> &'static str {
    match also {
        Some(Reason::LinkUp { .. }) => {
            "Its link stands: the worker runs, and only its own requests do not get through. Read the worker's log."
        }
        Some(Reason::LinkDown { .. }) => {
            "Its link is down too: the worker or its host has stopped, or the network or tunnel in between is cut."
        }
        Some(Reason::DirectAnswered { .. }) => {
            "The worker still answers the server's probe: only its own way to the server is cut. Check the tunnel to the server on its host."
        }
        Some(Reason::DirectRefused { .. }) => {
            "Its address refuses connections too: the worker is not running, or its tunnel is down."
        }
        Some(Reason::DirectTimedOut { .. }) => {
            "Its address does not answer either: the host is down, or the network to it is cut."
        }
        Some(Reason::DirectClosed { .. }) => {
            "Its address closes without an answer: the tunnel stands, but the worker behind it is not running."
        }
        Some(Reason::DirectWrongWorker { .. }) => {
            "Another worker answers at its address: two tunnels end on one port. Check both."
        }
        _ => "Check that the worker runs and that it reaches the server.",
    }
}
