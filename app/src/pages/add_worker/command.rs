//! The commands with which a host joins as a worker. Text only: what the fields may hold is checked here once, and
//! every value is quoted for the place it stands in, so that a name with a space or a `$` stays a name.

use api::ServerUrl;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The port that a worker answers health checks on unless told otherwise.
pub const DEFAULT_WORKER_PORT: u16 = 10150;

/// More device nodes than any host is known to have.
pub const MAX_DEVICE_COUNT: u32 = 128;

/// Which accelerators the host has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vendor {
    /// Atlas 800 A2 and the like: one device node per card.
    #[default]
    Ascend910b,
    /// Atlas 300I Pro, 300V, Duo.
    Ascend310p,
    /// Atlas A3 with 910C: two device nodes per card.
    AscendA3,
    /// None.
    Cpu,
}

impl Vendor {
    /// In the order that a person looks for them.
    pub const ALL: [Self; 4] = [Self::Ascend910b, Self::Ascend310p, Self::AscendA3, Self::Cpu];

    /// How many device nodes a usual host of this kind has; 0 when there are none to pass on.
    pub fn usual_device_count(self) -> u32 {
        match self {
            Self::Ascend910b => 8,
            Self::Ascend310p => 1,
            Self::AscendA3 => 16,
            Self::Cpu => 0,
        }
    }

    /// Whether the devices are Ascend NPUs, with their driver and device nodes.
    pub fn is_ascend(self) -> bool {
        match self {
            Self::Ascend910b | Self::Ascend310p | Self::AscendA3 => true,
            Self::Cpu => false,
        }
    }
}

/// How the worker is installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packaging {
    /// `docker run`.
    #[default]
    Container,
    /// The program itself, in the foreground.
    Binary,
    /// The program as a systemd service.
    Systemd,
}

impl Packaging {
    /// In the order of the tabs.
    pub const ALL: [Self; 3] = [Self::Container, Self::Binary, Self::Systemd];
}

/// A value that stands on a command line: one line of text, not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument(String);

/// Why a text cannot stand on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentError {
    /// Nothing is there.
    Empty,
    /// A line break or another control character, which a terminal would act on.
    ControlCharacter,
}

impl Argument {
    /// Takes a text, without the white space around it.
    pub fn parse(text: &str) -> Result<Self, ArgumentError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ArgumentError::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(ArgumentError::ControlCharacter);
        }
        Ok(Self(text.to_owned()))
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A container image, e.g. `registry.example/gpustack:0.1.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image(String);

impl Image {
    /// Takes the characters that an image reference has; None for anything else.
    /// Grammar: github.com/distribution/reference, `reference.go`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@' | '[' | ']');
        // a leading dash would be read as an option of docker
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[');
        (starts_well && text.chars().all(allowed)).then(|| Self(text.to_owned()))
    }
}

/// Where `ssh` logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshTarget {
    user: String,
    host: String,
    port: u16,
}

/// Why a text is no place to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SshTargetError {
    /// Nothing is there.
    Empty,
    /// No user name can look like this.
    User,
    /// No host name or address.
    Host,
    /// No port number.
    Port,
}

impl SshTarget {
    /// Reads `host`, `user@host`, `user@host:port` and `[v6 address]:port`; the user is `root` unless given.
    pub fn parse(text: &str) -> Result<Self, SshTargetError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(SshTargetError::Empty);
        }
        let (user, address) = text.rsplit_once('@').unwrap_or(("root", text));
        let allowed_in_user = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '@' | '\\');
        // ssh would read a leading dash as an option
        if user.is_empty() || user.starts_with('-') || !user.chars().all(allowed_in_user) {
            return Err(SshTargetError::User);
        }
        let (host, port) = split_ssh_port(address)?;
        Ok(Self { user: user.to_owned(), host, port })
    }

    /// Whether the name can only mean the host that `ssh` runs on.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost"
            || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback() || address.is_unspecified())
    }

    fn bracketed_host(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }

    /// The host's name, where a tunnel agent can be called so.
    pub fn agent_name(&self) -> Option<&str> {
        let fits =
            !self.host.starts_with('-') && self.host.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        fits.then_some(self.host.as_str())
    }

    /// As in `tunnels.yaml`: with the port when it is not the usual one.
    fn in_yaml(&self) -> String {
        let login = format!("{}@{}", self.user, self.bracketed_host());
        yaml_quoted(&if self.port == 22 { login } else { format!("{login}:{}", self.port) })
    }

    /// The words after `ssh` and its other options.
    fn login_words(&self) -> String {
        let login = shell_quoted(&format!("{}@{}", self.user, self.host));
        if self.port == 22 { login } else { format!("-p {} {login}", self.port) }
    }
}

fn split_ssh_port(address: &str) -> Result<(String, u16), SshTargetError> {
    if address.parse::<Ipv6Addr>().is_ok() {
        return Ok((address.to_owned(), 22));
    }
    let (host, port) = match address.rsplit_once(':') {
        None => (address, 22),
        Some((host, digits)) => (host, parse_port(digits).ok_or(SshTargetError::Port)?),
    };
    if let Some(inner) = host.strip_prefix('[') {
        let v6 = inner.strip_suffix(']').filter(|inner| inner.parse::<Ipv6Addr>().is_ok());
        return v6.map(|v6| (v6.to_owned(), port)).ok_or(SshTargetError::Host);
    }
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    if host.is_empty() || host.starts_with('-') || !host.chars().all(allowed) {
        return Err(SshTargetError::Host);
    }
    Ok((host.to_owned(), port))
}

/// Reads a port from 1 to 65535, digits only.
pub fn parse_port(text: &str) -> Option<u16> {
    let text = text.trim();
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|port| *port > 0)
}

/// The first port from [`DEFAULT_WORKER_PORT`] on that is not taken. Tunnels of several workers end on one server,
/// so each needs its own.
#[cfg(feature = "ssr")]
pub fn free_worker_port(taken: &[u16]) -> u16 {
    (DEFAULT_WORKER_PORT..=u16::MAX).find(|port| !taken.contains(port)).unwrap_or(DEFAULT_WORKER_PORT)
}

/// Where the forward to the server ends on the worker's host. The base path of a server behind a proxy stays.
pub fn forwarded_url(server_url: &ServerUrl, server_port: u16) -> ServerUrl {
    let scheme = if server_url.is_https() && server_url.port() == server_port { "https" } else { "http" };
    let shown = server_url.to_string();
    let after_scheme = shown.split_once("://").map_or(shown.as_str(), |(_, rest)| rest);
    let base_path = after_scheme.split_once('/').map_or(String::new(), |(_, path)| format!("/{path}"));
    let forwarded = format!("{scheme}://{}:{server_port}{base_path}", Ipv4Addr::LOCALHOST);
    // every part was taken from a URL that was read before
    ServerUrl::parse(&forwarded).unwrap_or_else(|_| server_url.clone())
}

/// Everything that the command of one worker depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRequest {
    /// Which accelerators.
    pub vendor: Vendor,
    /// How installed.
    pub packaging: Packaging,
    /// Where the worker finds the server.
    pub server_url: ServerUrl,
    /// The join token.
    pub token: Argument,
    /// The wished name; the server finds a free one when absent.
    pub worker_name: Option<Argument>,
    /// Where the server finds the worker, when that is not the worker's own address.
    pub worker_ip: Option<Ipv4Addr>,
    /// Where the worker answers health checks, when it matters.
    pub worker_port: Option<u16>,
    /// How many `/dev/davinciN` the container gets.
    pub device_count: u32,
    /// The container's image.
    pub image: Image,
    /// Of the server's certificate, when no authority vouches for it.
    pub server_fingerprint: Option<Argument>,
}

impl JoinRequest {
    /// The fingerprint that the worker must be told to trust the server.
    fn pin(&self) -> Option<&Argument> {
        self.server_fingerprint.as_ref().filter(|_| self.server_url.is_https())
    }
}

/// The command that makes the host a worker: one line of shell, or a short script for systemd.
pub fn join_command(request: &JoinRequest) -> String {
    match request.packaging {
        Packaging::Container => container_command(request),
        Packaging::Binary => {
            let mut words = vec!["gpustack start".to_owned()];
            words.extend(worker_options(request, Quoting::Shell));
            words.push(option("--token", request.token.as_str(), Quoting::Shell));
            continued(&words)
        }
        Packaging::Systemd => systemd_script(request),
    }
}

/// Has the doctor look at the host, with all that the worker will have, before it joins.
pub fn doctor_command(request: &JoinRequest) -> String {
    let mut lines = match request.packaging {
        Packaging::Container => {
            let mut lines = vec!["docker run --rm --net=host".to_owned()];
            lines.extend(accelerator_options(request));
            lines.push(format!("--entrypoint gpustack {} doctor", shell_quoted(&request.image.0)));
            lines
        }
        Packaging::Binary | Packaging::Systemd => vec!["gpustack doctor".to_owned()],
    };
    lines.extend(worker_options(request, Quoting::Shell));
    lines.push(option("--token", request.token.as_str(), Quoting::Shell));
    continued(&lines)
}

fn container_command(request: &JoinRequest) -> String {
    let mut lines = vec!["docker run -d --name gpustack-worker --restart=unless-stopped --net=host".to_owned()];
    lines.extend(accelerator_options(request));
    lines.push("-v gpustack-data:/var/lib/gpustack".to_owned());
    lines.push(shell_quoted(&request.image.0));
    lines.extend(worker_options(request, Quoting::Shell));
    lines.push(option("--token", request.token.as_str(), Quoting::Shell));
    continued(&lines)
}

fn accelerator_options(request: &JoinRequest) -> Vec<String> {
    if request.vendor.is_ascend() { ascend_container_options(request.device_count) } else { Vec::new() }
}

/// What a container needs to see Ascend NPUs. `npu-smi` lies in `/usr/local/sbin` and takes its libraries from the
/// driver's folder; the nodes without a number are easily forgotten, and nothing works without them.
fn ascend_container_options(device_count: u32) -> Vec<String> {
    let numbers: Vec<String> = (0..device_count).map(|number| number.to_string()).collect();
    let nodes: Vec<String> = numbers.iter().map(|number| format!("--device=/dev/davinci{number}")).collect();
    let mut lines = vec![
        "--ipc=host --privileged=true".to_owned(),
        format!("-e ASCEND_VISIBLE_DEVICES={}", numbers.join(",")),
        "--device=/dev/davinci_manager --device=/dev/hisi_hdc --device=/dev/devmm_svm".to_owned(),
    ];
    lines.extend(nodes.chunks(4).map(|four| four.join(" ")));
    lines.extend(
        [
            "-v /usr/local/Ascend/driver:/usr/local/Ascend/driver:ro",
            "-v /usr/local/sbin:/usr/local/sbin:ro",
            "-v /etc/ascend_install.info:/etc/ascend_install.info:ro",
        ]
        .map(str::to_owned),
    );
    lines
}

/// The options of `gpustack start` for a worker, without the token.
fn worker_options(request: &JoinRequest, quoting: Quoting) -> Vec<String> {
    let mut words = vec![option("--server-url", &request.server_url.to_string(), quoting)];
    if let Some(fingerprint) = request.pin() {
        words.push(option("--server-fingerprint", fingerprint.as_str(), quoting));
    }
    if let Some(ip) = request.worker_ip {
        words.push(option("--worker-ip", &ip.to_string(), quoting));
    }
    if let Some(port) = request.worker_port.filter(|port| *port != DEFAULT_WORKER_PORT) {
        words.push(option("--worker-port", &port.to_string(), quoting));
    }
    if let Some(name) = &request.worker_name {
        words.push(option("--worker-name", name.as_str(), quoting));
    }
    words
}

/// Writes a unit and, apart from it, the token: a unit can be read by everybody, and so can the command line of a
/// process.
fn systemd_script(request: &JoinRequest) -> String {
    let mut start = vec!["/usr/local/bin/gpustack start".to_owned()];
    start.extend(worker_options(request, Quoting::Systemd));
    let start = start.join(" ");
    let token = environment_file_quoted(request.token.as_str());
    format!(
        "install -d -m 0755 /etc/gpustack
install -m 0600 /dev/null /etc/gpustack/worker.env
cat > /etc/gpustack/worker.env <<'END'
GPUSTACK_TOKEN={token}
END
cat > /etc/systemd/system/gpustack-worker.service <<'END'
[Unit]
Description=gpustack worker
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
EnvironmentFile=/etc/gpustack/worker.env
ExecStart={start}
Restart=always
RestartSec=5
StateDirectory=gpustack
StateDirectoryMode=0700

[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable gpustack-worker.service
systemctl restart gpustack-worker.service"
    )
}

/// What the forwards of a worker behind a bastion depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnels {
    /// Where the bastion logs in to the server's host.
    pub server: SshTarget,
    /// Where the bastion logs in to the worker's host.
    pub worker: SshTarget,
    /// The server's port on its host; the forwards end on the same number.
    pub server_port: u16,
    /// Where the worker answers health checks; the forwards end on the same number.
    pub worker_port: u16,
}

/// The forwards, all opened on the bastion. Two lead the worker to the server, and are enough. Two lead the server to the
/// worker: a GPUStack 0.7 worker, which has no link, needs them too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelCommands {
    /// The server's port, brought to the bastion. Workers behind one bastion share it.
    pub server_to_bastion: String,
    /// From the bastion on to the worker's host.
    pub bastion_to_worker: String,
    /// The worker's port, brought to the bastion.
    pub worker_to_bastion: String,
    /// From the bastion on to the server's host.
    pub bastion_to_server: String,
}

/// Which end of a forward listens: `ssh -L` here, `ssh -R` there.
#[derive(Clone, Copy)]
enum Listens {
    Here,
    There,
}

/// The forwards of a worker behind a bastion.
pub fn tunnel_commands(tunnels: &Tunnels) -> TunnelCommands {
    let (server, worker) = (&tunnels.server, &tunnels.worker);
    let bastion = Ipv4Addr::LOCALHOST.to_string();
    TunnelCommands {
        server_to_bastion: forward(Listens::Here, tunnels.server_port, &server.bracketed_host(), server),
        bastion_to_worker: forward(Listens::There, tunnels.server_port, &bastion, worker),
        worker_to_bastion: forward(Listens::Here, tunnels.worker_port, &worker.bracketed_host(), worker),
        bastion_to_server: forward(Listens::There, tunnels.worker_port, &bastion, server),
    }
}

/// What a tunnel agent on the bastion is to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig<'a> {
    /// What the agent is called.
    pub agent: &'a str,
    /// The worker's name.
    pub worker: &'a str,
    /// Whether the server is led to the worker's port, too.
    pub health_check: bool,
}

/// The `tunnels.yaml` for a worker behind a bastion.
pub fn tunnels_yaml(tunnels: &Tunnels, config: &AgentConfig<'_>) -> String {
    let AgentConfig { agent, worker, health_check } = config;
    // a bastion that logs in at the server's host need not reach the port by itself
    let login = format!(", ssh: {}", tunnels.server.in_yaml());
    let check = health_check.then(|| format!(", health_check: true, health_port: {}", tunnels.worker_port));
    let address = yaml_quoted(&format!("{}:{}", tunnels.server.bracketed_host(), tunnels.server_port));
    format!(
        "id: {}
token_file: /etc/gpustack/token
ssh: {{user: root, identity: /root/.ssh/id_ed25519}}
server: {{address: {address}{login}}}
workers:
  {}: {{ssh: {}{check}}}",
        yaml_quoted(agent),
        yaml_quoted(worker),
        tunnels.worker.in_yaml(),
        check = check.unwrap_or_default(),
    )
}

/// A text that stays a text in YAML, also within braces (YAML 1.2.2, section 7.3): what could be read as a number or as
/// something else is quoted.
fn yaml_quoted(text: &str) -> String {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.contains(['-', '@', ':']);
    let is_plain =
        is_name && !text.ends_with(':') && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-@:".contains(c));
    // a date or a number in base 60 of older parsers
    let is_text = text.contains(|c: char| c.is_ascii_alphabetic()) || text.contains('.');
    if is_plain && is_text { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

/// The command that opens a shell on the bastion.
pub fn bastion_login(bastion: &SshTarget) -> String {
    format!("ssh {}", bastion.login_words())
}

/// One `ssh` that forwards a port and nothing else. It fails when the port is taken, instead of staying there
/// without a forward, and ends when the other side has been silent for 90 s, so that whatever watches it can start
/// it again. It listens on the loopback address: the next hop is on the same host, and nobody else needs the port.
fn forward(listens: Listens, port: u16, target_host: &str, login: &SshTarget) -> String {
    let flag = match listens {
        Listens::Here => "-L",
        Listens::There => "-R",
    };
    let spec = shell_quoted(&format!("{}:{port}:{target_host}:{port}", Ipv4Addr::LOCALHOST));
    continued(&[
        "ssh -o ServerAliveInterval=30 -o ServerAliveCountMax=3 -o ExitOnForwardFailure=yes".to_owned(),
        format!("-o SetEnv=Notes=GPUStack -CfN {flag} {spec} {}", login.login_words()),
    ])
}

/// One command over several lines.
fn continued(lines: &[String]) -> String {
    lines.join(" \\\n  ")
}

/// Who reads a word first.
#[derive(Clone, Copy)]
enum Quoting {
    Shell,
    Systemd,
}

fn option(name: &str, value: &str, quoting: Quoting) -> String {
    let quoted = match quoting {
        Quoting::Shell => shell_quoted(value),
        Quoting::Systemd => systemd_quoted(value),
    };
    // a value that begins with a dash would be taken for the next option
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!("{name}{between}{quoted}")
}

fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ',' | '/' | ':' | '@' | '+' | '=');
    !text.is_empty() && text.chars().all(plain)
}

/// One word for any POSIX shell (POSIX.1-2017, XCU 2.2.2). Single quotes also keep an interactive bash from expanding
/// `!`.
fn shell_quoted(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// One word of `ExecStart=` (systemd.service(5), "Command lines"; `%` from systemd.unit(5), "Specifiers").
fn systemd_quoted(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '\\' | '"' => quoted.extend(['\\', c]),
            '%' | '$' => quoted.extend([c, c]),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A value in an `EnvironmentFile=` (systemd.exec(5): within double quotes a backslash escapes as in a shell).
fn environment_file_quoted(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        if matches!(c, '\\' | '"' | '`' | '$') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use proptest::prelude::*;

    const TOKEN: &str = "c8e291d8045736ab3aa5ddb6de619291";

    fn request(vendor: Vendor, packaging: Packaging) -> JoinRequest {
        JoinRequest {
            vendor,
            packaging,
            server_url: ServerUrl::parse("http://10.0.0.1:8090").unwrap(),
            token: Argument::parse(TOKEN).unwrap(),
            worker_name: None,
            worker_ip: None,
            worker_port: None,
            device_count: vendor.usual_device_count(),
            image: Image::parse("gpustack:0.1.0").unwrap(),
            server_fingerprint: None,
        }
    }

    fn behind_tunnels(mut request: JoinRequest, name: &str) -> JoinRequest {
        let url = ServerUrl::parse("http://10.0.0.1:8090").unwrap();
        request.server_url = forwarded_url(&url, 8090);
        request.worker_name = Some(Argument::parse(name).unwrap());
        request
    }

    fn tunnels(server: &str, worker: &str, worker_port: u16) -> Tunnels {
        Tunnels {
            server: SshTarget::parse(server).unwrap(),
            worker: SshTarget::parse(worker).unwrap(),
            server_port: 8090,
            worker_port,
        }
    }

    /// What a program gets when a shell runs this command: `program` is replaced by one that prints its arguments.
    fn arguments_seen_by(program: &str, command: &str) -> Vec<String> {
        let script = format!("{program}() {{ for word in \"$@\"; do printf '%s\\0' \"$word\"; done; }}\n{command}\n");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        printed.split_terminator('\0').map(str::to_owned).collect()
    }

    fn value_of<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
        let position = arguments.iter().position(|argument| argument == name)?;
        arguments.get(position + 1).map(String::as_str)
    }

    #[test]
    fn an_ascend_container_carries_every_node_and_mount_of_the_field_report() {
        assert_snapshot!(join_command(&behind_tunnels(
            request(Vendor::Ascend910b, Packaging::Container),
            "npu-198-97"
        )));
    }

    #[test]
    fn a_container_on_a_310p_host_gets_as_many_nodes_as_were_asked_for() {
        let mut two = request(Vendor::Ascend310p, Packaging::Container);
        two.device_count = 2;
        assert_snapshot!(join_command(&two));
    }

    #[test]
    fn a_container_on_an_a3_host_gets_two_nodes_per_card() {
        let arguments = arguments_seen_by("docker", &join_command(&request(Vendor::AscendA3, Packaging::Container)));
        assert!(arguments.contains(&"--device=/dev/davinci15".to_owned()));
        assert!(!arguments.contains(&"--device=/dev/davinci16".to_owned()));
        assert!(arguments.contains(&"ASCEND_VISIBLE_DEVICES=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15".to_owned()));
    }

    #[test]
    fn a_container_without_accelerators_is_simple() {
        assert_snapshot!(join_command(&request(Vendor::Cpu, Packaging::Container)));
    }

    #[test]
    fn the_binary_needs_address_and_token_only() {
        assert_snapshot!(join_command(&request(Vendor::Ascend910b, Packaging::Binary)));
    }

    #[test]
    fn a_port_is_named_when_it_is_not_the_usual_one() {
        for (port, named) in [(None, None), (Some(DEFAULT_WORKER_PORT), None), (Some(10_160), Some("10160"))] {
            let asked = JoinRequest { worker_port: port, ..request(Vendor::Cpu, Packaging::Binary) };
            let arguments = arguments_seen_by("gpustack", &join_command(&asked));
            assert_eq!(value_of(&arguments, "--worker-port"), named);
        }
    }

    #[test]
    fn the_doctor_sees_in_a_container_what_the_worker_will_see() {
        let request = request(Vendor::Ascend910b, Packaging::Container);
        let doctor = arguments_seen_by("docker", &doctor_command(&request));
        let worker = arguments_seen_by("docker", &join_command(&request));
        let is_seen = |argument: &&String| argument.starts_with("--device=") || argument.ends_with(":ro");
        let seen: Vec<&String> = worker.iter().filter(is_seen).collect();
        assert!(seen.len() > 10 && seen.iter().all(|argument| doctor.contains(argument)), "{doctor:?}");
        assert_eq!(value_of(&doctor, "--entrypoint"), Some("gpustack"));
        assert_eq!(value_of(&doctor, "--token"), value_of(&worker, "--token"));
    }

    #[test]
    fn a_certificate_that_no_authority_vouches_for_is_named_to_the_worker() {
        let mut pinned = request(Vendor::Cpu, Packaging::Binary);
        pinned.server_fingerprint = Some(Argument::parse("sha256:5e1f").unwrap());
        assert_eq!(value_of(&arguments_seen_by("gpustack", &join_command(&pinned)), "--server-fingerprint"), None);
        assert!(!doctor_command(&pinned).contains("--server-fingerprint"));
        pinned.server_url = ServerUrl::parse("https://10.0.0.1:8090").unwrap();
        assert_snapshot!([doctor_command(&pinned), join_command(&pinned)].join("\n"));
    }

    #[test]
    fn the_service_keeps_the_token_out_of_the_unit() {
        assert_snapshot!(join_command(&behind_tunnels(request(Vendor::Cpu, Packaging::Systemd), "npu-198-97")));
    }

    #[test]
    fn four_forwards_lead_through_the_bastion() {
        let commands = tunnel_commands(&tunnels("root@10.10.0.5", "user@10.20.0.97", 10150));
        assert_snapshot!(
            [
                commands.server_to_bastion.as_str(),
                commands.bastion_to_worker.as_str(),
                commands.worker_to_bastion.as_str(),
                commands.bastion_to_server.as_str(),
            ]
            .join("\n")
        );
    }

    #[test]
    fn forwards_use_other_ports_and_ipv6_addresses() {
        let commands = tunnel_commands(&tunnels("admin@[fd00::5]:2222", "10.20.0.98:22022", 10151));
        assert_snapshot!(
            [
                commands.server_to_bastion.as_str(),
                commands.bastion_to_worker.as_str(),
                commands.worker_to_bastion.as_str(),
                commands.bastion_to_server.as_str(),
            ]
            .join("\n")
        );
    }

    #[test]
    fn an_agents_file_has_one_forward_and_a_second_one_for_health_checks() {
        let tunnels = tunnels("root@10.10.0.5", "user@10.20.0.97:2222", 10150);
        let yaml = |health_check| {
            tunnels_yaml(&tunnels, &AgentConfig { agent: "bastion-01", worker: "npu-198-97", health_check })
        };
        assert_snapshot!([yaml(false), yaml(true)].join("\n---\n"));
    }

    #[test]
    fn what_yaml_would_read_as_something_else_is_quoted() {
        for (text, quoted) in [
            ("npu-198-97", "npu-198-97"),
            ("root@10.20.0.20", "root@10.20.0.20"),
            ("10.0.0.1:8090", "10.0.0.1:8090"),
            ("root@[fd00::5]:22", "'root@[fd00::5]:22'"),
            ("true", "'true'"),
            ("2026-12-01", "'2026-12-01'"),
            ("12:30", "'12:30'"),
            ("-1", "'-1'"),
            ("it's", "'it''s'"),
            ("a: b", "'a: b'"),
            ("a-b #c", "'a-b #c'"),
            ("节点 1", "'节点 1'"),
        ] {
            assert_eq!(yaml_quoted(text), quoted);
        }
    }

    #[test]
    fn the_bastion_is_logged_in_to_on_its_own_port() {
        assert_eq!(bastion_login(&SshTarget::parse("ops@bastion-01:2222").unwrap()), "ssh -p 2222 ops@bastion-01");
    }

    #[test]
    fn names_that_a_shell_would_take_apart_stay_whole() {
        for name in
            ["rack 7", "it's", "$HOME", "`id`", "$(id)", "a\"b", "a;b", "a\\b", "!!", "*", "节点 1", "~root", "#1"]
        {
            let mut named = request(Vendor::Ascend910b, Packaging::Container);
            named.worker_name = Some(Argument::parse(name).unwrap());
            let arguments = arguments_seen_by("docker", &join_command(&named));
            assert_eq!(value_of(&arguments, "--worker-name"), Some(name));
        }
    }

    #[test]
    fn a_value_that_begins_with_a_dash_is_not_taken_for_an_option() {
        let mut named = request(Vendor::Cpu, Packaging::Binary);
        named.worker_name = Some(Argument::parse("-rf").unwrap());
        assert!(arguments_seen_by("gpustack", &join_command(&named)).contains(&"--worker-name=-rf".to_owned()));
    }

    #[test]
    fn a_value_of_several_lines_is_refused() {
        for text in ["a\nb", "a\rb", "a\0b", "a\u{1b}[31mb", "a\tb"] {
            assert_eq!(Argument::parse(text), Err(ArgumentError::ControlCharacter), "{text:?}");
        }
        assert_eq!(Argument::parse(" \r\n"), Err(ArgumentError::Empty));
        assert_eq!(Argument::parse(" a \r\n").unwrap().as_str(), "a");
    }

    #[test]
    fn what_systemd_would_expand_is_doubled_or_escaped() {
        for (text, quoted) in [
            ("npu-1", "npu-1"),
            ("rack 7", r#""rack 7""#),
            ("50%", r#""50%%""#),
            ("$HOME", r#""$$HOME""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("it's", r#""it's""#),
        ] {
            assert_eq!(systemd_quoted(text), quoted);
        }
    }

    #[test]
    fn a_token_with_special_characters_is_escaped_in_the_environment_file() {
        for (text, quoted) in
            [(TOKEN, TOKEN), ("a b", r#""a b""#), (r#"a"$b`\"#, r#""a\"\$b\`\\""#), ("it's#1", r#""it's#1""#)]
        {
            assert_eq!(environment_file_quoted(text), quoted);
        }
    }

    #[test]
    fn an_image_is_a_reference_and_no_option() {
        for good in
            ["gpustack", "gpustack:0.1.0", "docker.1ms.run/gpustack/gpustack:main-npu", "[::1]:5000/g@sha256:ab"]
        {
            assert!(Image::parse(good).is_some(), "{good}");
        }
        for bad in ["", "-v", "--privileged", "a b", "a;b", "a$b", "a\nb"] {
            assert!(Image::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_login_is_read_with_and_without_user_and_port() {
        for (text, login) in [
            ("10.0.0.1", "root@10.0.0.1"),
            ("user@host", "user@host"),
            ("user@host:22", "user@host"),
            ("user@host:2222", "-p 2222 user@host"),
            ("fd00::5", "root@fd00::5"),
            ("a@[fd00::5]:2222", "-p 2222 a@fd00::5"),
            ("DOMAIN\\me@host", r"'DOMAIN\me@host'"),
            ("me@corp@host", "me@corp@host"),
        ] {
            assert_eq!(SshTarget::parse(text).map(|target| target.login_words()).as_deref(), Ok(login), "{text}");
        }
    }

    #[test]
    fn what_is_no_login_is_refused() {
        for (text, error) in [
            ("", SshTargetError::Empty),
            ("@host", SshTargetError::User),
            ("-oProxyCommand=x@host", SshTargetError::User),
            ("a b@host", SshTargetError::User),
            ("-oProxyCommand=x", SshTargetError::Host),
            ("user@", SshTargetError::Host),
            ("user@ho st", SshTargetError::Host),
            ("user@host:0", SshTargetError::Port),
            ("user@host:ssh", SshTargetError::Port),
            ("user@[fd00::5", SshTargetError::Host),
            ("user@[host]:22", SshTargetError::Host),
        ] {
            assert_eq!(SshTarget::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn the_forward_ends_on_the_workers_loopback_address() {
        for (url, port, forwarded) in [
            ("http://10.0.0.1:8090", 8090, "http://127.0.0.1:8090"),
            ("http://10.0.0.1", 80, "http://127.0.0.1"),
            ("https://gpu.example/npu", 8090, "http://127.0.0.1:8090/npu"),
            ("https://gpu.example:8443", 8443, "https://127.0.0.1:8443"),
            ("http://[fd00::5]:8090", 8090, "http://127.0.0.1:8090"),
        ] {
            assert_eq!(forwarded_url(&ServerUrl::parse(url).unwrap(), port).to_string(), forwarded);
        }
    }

    #[test]
    #[cfg(feature = "ssr")]
    fn the_next_worker_behind_tunnels_gets_a_free_port() {
        assert_eq!(free_worker_port(&[]), 10150);
        assert_eq!(free_worker_port(&[10151, 10150]), 10152);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_name_and_token_reach_the_program_unchanged(name in "\\PC{1,24}", token in "\\PC{1,24}") {
            let (Ok(name), Ok(token)) = (Argument::parse(&name), Argument::parse(&token)) else { return Ok(()) };
            prop_assume!(!name.as_str().starts_with('-') && !token.as_str().starts_with('-'));
            let mut asked = request(Vendor::Cpu, Packaging::Binary);
            asked.worker_name = Some(name.clone());
            asked.token = token.clone();
            let arguments = arguments_seen_by("gpustack", &join_command(&asked));
            prop_assert_eq!(value_of(&arguments, "--worker-name"), Some(name.as_str()));
            prop_assert_eq!(value_of(&arguments, "--token"), Some(token.as_str()));
        }

        #[test]
        fn no_login_text_makes_it_panic(text in "\\PC{0,24}") {
            let _ = SshTarget::parse(&text);
        }
    }
}
