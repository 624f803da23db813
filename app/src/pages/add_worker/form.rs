//! What a person fills in on the page, as it stands in the address, and what the commands become from it.

use super::command::{
    AgentConfig, Argument, ArgumentError, Image, JoinRequest, MAX_DEVICE_COUNT, Packaging, SshTarget, SshTargetError,
    TunnelCommands, Tunnels, Vendor, bastion_login, doctor_command, forwarded_url, join_command, parse_port,
    tunnel_commands, tunnels_yaml,
};
use crate::model::JoinInfo;
use api::{ServerUrl, ServerUrlError};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// How server and worker reach one another, as a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// The worker reaches the server, and nothing else is needed.
    #[default]
    LinkOnly,
    /// The server reaches the worker, too.
    Direct,
    /// The worker reaches the server through SSH forwards on a bastion.
    BehindTunnels,
}

impl Network {
    /// In the order of the tiles.
    pub const ALL: [Self; 3] = [Self::LinkOnly, Self::Direct, Self::BehindTunnels];
}

/// A choice among few, with the word that stands for it in the address.
pub trait Choice: Copy + PartialEq + Default + Send + Sync + 'static {
    /// The word.
    fn word(self) -> &'static str;
    /// All of them.
    fn all() -> &'static [Self];

    /// Reads the word; the usual choice for anything else.
    fn from_word(word: &str) -> Self {
        Self::all().iter().copied().find(|choice| choice.word() == word).unwrap_or_default()
    }
}

impl Choice for Vendor {
    fn word(self) -> &'static str {
        match self {
            Self::Ascend910b => "910b",
            Self::Ascend310p => "310p",
            Self::AscendA3 => "a3",
            Self::Cpu => "cpu",
        }
    }

    fn all() -> &'static [Self] {
        &Self::ALL
    }
}

impl Choice for Network {
    fn word(self) -> &'static str {
        match self {
            Self::LinkOnly => "link",
            Self::Direct => "direct",
            Self::BehindTunnels => "tunnels",
        }
    }

    fn all() -> &'static [Self] {
        &Self::ALL
    }
}

impl Choice for Packaging {
    fn word(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Binary => "binary",
            Self::Systemd => "systemd",
        }
    }

    fn all() -> &'static [Self] {
        &Self::ALL
    }
}

/// The name of the box for health checks.
pub const HEALTH_CHECK: &str = "health_check";
/// What stands for the worker's name until it is given.
const UNNAMED_WORKER: &str = "WORKER-NAME";
/// The usual name of a bastion's agent.
const USUAL_AGENT: &str = "bastion-01";

/// A field that a person types into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// The server's address.
    Server,
    /// The worker's name.
    Name,
    /// The worker's port.
    Port,
    /// How many device nodes.
    Devices,
    /// The container's image.
    Image,
    /// Where to log in to the bastion.
    Bastion,
    /// Where the bastion logs in to the server's host.
    ServerLogin,
    /// Where the bastion logs in to the worker's host.
    WorkerLogin,
    /// The server's port on its host.
    ServerPort,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Server,
        Self::Name,
        Self::Port,
        Self::Devices,
        Self::Image,
        Self::Bastion,
        Self::ServerLogin,
        Self::WorkerLogin,
        Self::ServerPort,
    ];

    /// The field's name in the form and in the address.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Name => "name",
            Self::Port => "port",
            Self::Devices => "devices",
            Self::Image => "image",
            Self::Bastion => "bastion",
            Self::ServerLogin => "server_login",
            Self::WorkerLogin => "worker_login",
            Self::ServerPort => "server_port",
        }
    }

    /// The field's id in the document.
    pub fn id(self) -> String {
        format!("join-{}", self.word())
    }
}

/// What is wrong with a field, or with the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is no server URL.
    Url(ServerUrlError),
    /// A line break or another control character.
    ControlCharacter,
    /// No port number.
    Port,
    /// No number of devices.
    DeviceCount,
    /// No image reference.
    Image,
    /// No place to log in.
    Login(SshTargetError),
}

/// What the page knows without being told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defaults {
    /// The address, token, version and port of the server.
    pub join: JoinInfo,
    /// A port that no worker behind a tunnel has.
    pub worker_port: u16,
}

impl Defaults {
    /// From what the server says of itself.
    #[cfg(feature = "ssr")]
    pub fn new(join: JoinInfo) -> Self {
        let worker_port = super::command::free_worker_port(&join.taken_ports);
        Self { join, worker_port }
    }
}

/// What a person has chosen and typed. An empty text stands for the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinForm {
    /// Which accelerators.
    pub vendor: Vendor,
    /// How the two reach one another.
    pub network: Network,
    /// How installed.
    pub packaging: Packaging,
    /// Whether the server checks the worker's port through the bastion, too.
    pub health_check: bool,
    texts: [String; Field::ALL.len()],
}

impl JoinForm {
    /// Reads a query; `parameter` gives the value of a name.
    pub fn from_query(parameter: impl Fn(&str) -> Option<String>) -> Self {
        let word = |name| parameter(name).unwrap_or_default();
        Self {
            vendor: Vendor::from_word(&word("vendor")),
            network: Network::from_word(&word("network")),
            packaging: Packaging::from_word(&word("form")),
            health_check: parameter(HEALTH_CHECK).is_some(),
            texts: Field::ALL.map(|field| word(field.word())),
        }
    }

    /// What was typed.
    pub fn text(&self, field: Field) -> &str {
        self.texts.get(field as usize).map_or("", String::as_str)
    }

    /// What an empty field stands for; None where nothing can be assumed.
    pub fn default_text(&self, field: Field, defaults: &Defaults) -> Option<String> {
        match field {
            Field::Server => Some(defaults.join.server_url.clone()),
            Field::Name | Field::Bastion | Field::WorkerLogin => None,
            Field::Port => Some(super::command::DEFAULT_WORKER_PORT.to_string()),
            Field::Devices => Some(self.vendor.usual_device_count().to_string()),
            Field::Image => Some(format!("gpustack:{}", defaults.join.version)),
            Field::ServerPort => Some(default_server_port(defaults).to_string()),
            Field::ServerLogin => {
                let url = ServerUrl::parse(&defaults.join.server_url).ok().filter(|url| !url.is_loopback())?;
                Some(format!("root@{}", url.host()))
            }
        }
    }

    /// Whether the choices make use of a field.
    pub fn uses(&self, field: Field) -> bool {
        let behind_tunnels = self.network == Network::BehindTunnels;
        let container = self.packaging == Packaging::Container;
        match field {
            Field::Server => !behind_tunnels,
            Field::Name => true,
            Field::Port => self.network == Network::Direct,
            Field::Devices => container && self.vendor.is_ascend(),
            Field::Image => container,
            Field::Bastion | Field::ServerLogin | Field::WorkerLogin | Field::ServerPort => behind_tunnels,
        }
    }

    /// The commands, as far as the fields allow, and what is wrong with the fields.
    pub fn plan(&self, defaults: &Defaults) -> Plan {
        let mut faults = Faults::default();
        let tunnels = self.tunnel_plan(defaults, &mut faults);
        let host = self.host_plan(defaults, &mut faults);
        Plan { host, tunnels, faults: faults.0 }
    }

    fn host_plan(&self, defaults: &Defaults, faults: &mut Faults) -> Option<HostPlan> {
        let server_url = self.server_url(defaults, faults);
        let worker_name = faults.keep(Field::Name, self.worker_name());
        // led there, the server looks for the worker on its own host
        let is_led_to_worker = self.network == Network::BehindTunnels && self.health_check;
        let worker_port = if is_led_to_worker { Some(Some(defaults.worker_port)) } else { self.worker_port(faults) };
        let device_count = self.device_count(faults);
        let image = self.image(defaults, faults);
        let token = faults.keep_token(Argument::parse(&defaults.join.token));
        let fingerprint = defaults.join.certificate_fingerprint.as_deref();
        let request = JoinRequest {
            vendor: self.vendor,
            packaging: self.packaging,
            server_url: server_url?,
            token: token?,
            worker_name: worker_name?,
            worker_ip: is_led_to_worker.then_some(Ipv4Addr::LOCALHOST),
            worker_port: worker_port?,
            device_count: device_count?,
            image: image?,
            server_fingerprint: fingerprint.and_then(|text| Argument::parse(text).ok()),
        };
        Some(HostPlan {
            check: doctor_command(&request),
            join: join_command(&request),
            server_is_loopback: self.network != Network::BehindTunnels && request.server_url.is_loopback(),
        })
    }

    fn tunnel_plan(&self, defaults: &Defaults, faults: &mut Faults) -> Option<TunnelPlan> {
        if self.network != Network::BehindTunnels {
            return None;
        }
        let bastion = self.login(Field::Bastion, defaults, faults);
        let server = self.login(Field::ServerLogin, defaults, faults);
        let worker = self.login(Field::WorkerLogin, defaults, faults);
        let server_port = self.port(Field::ServerPort, default_server_port(defaults), faults);
        let worker_port = defaults.worker_port;
        let tunnels = Tunnels { server: server?, worker: worker?, server_port: server_port?, worker_port };
        let worker = self.text(Field::Name).trim();
        let config = AgentConfig {
            agent: bastion.as_ref().and_then(SshTarget::agent_name).unwrap_or(USUAL_AGENT),
            worker: if worker.is_empty() { UNNAMED_WORKER } else { worker },
            health_check: self.health_check,
        };
        Some(TunnelPlan {
            yaml: tunnels_yaml(&tunnels, &config),
            bastion_login: bastion.as_ref().map(bastion_login),
            logins_are_loopback: tunnels.server.is_loopback() || tunnels.worker.is_loopback(),
            commands: tunnel_commands(&tunnels),
        })
    }

    fn server_url(&self, defaults: &Defaults, faults: &mut Faults) -> Option<ServerUrl> {
        match self.network {
            Network::LinkOnly | Network::Direct => {
                let parsed = ServerUrl::parse(&self.effective(Field::Server, defaults));
                faults.keep(Field::Server, parsed.map_err(Fault::Url))
            }
            Network::BehindTunnels => {
                // the fault of the port is found with the tunnels
                let port = self.port(Field::ServerPort, default_server_port(defaults), &mut Faults::default())?;
                let shown = ServerUrl::parse(&defaults.join.server_url).map_err(Fault::Url);
                Some(forwarded_url(&faults.keep(Field::Server, shown)?, port))
            }
        }
    }

    fn worker_name(&self) -> Result<Option<Argument>, Fault> {
        match Argument::parse(self.text(Field::Name)) {
            Ok(name) => Ok(Some(name)),
            Err(ArgumentError::Empty) => Ok(None),
            Err(ArgumentError::ControlCharacter) => Err(Fault::ControlCharacter),
        }
    }

    /// The port when it is asked for; None for a fault.
    #[expect(clippy::option_option, reason = "a port that is not asked for is no fault")]
    fn worker_port(&self, faults: &mut Faults) -> Option<Option<u16>> {
        if !self.uses(Field::Port) {
            return Some(None);
        }
        self.port(Field::Port, super::command::DEFAULT_WORKER_PORT, faults).map(Some)
    }

    fn device_count(&self, faults: &mut Faults) -> Option<u32> {
        let usual = self.vendor.usual_device_count();
        let text = self.text(Field::Devices).trim();
        if text.is_empty() || !self.uses(Field::Devices) {
            return Some(usual);
        }
        let count = text.parse().ok().filter(|count| (1..=MAX_DEVICE_COUNT).contains(count));
        faults.keep(Field::Devices, count.ok_or(Fault::DeviceCount))
    }

    fn image(&self, defaults: &Defaults, faults: &mut Faults) -> Option<Image> {
        let fallback = Image::parse(&format!("gpustack:{}", defaults.join.version));
        if !self.uses(Field::Image) {
            return fallback;
        }
        let image = Image::parse(&self.effective(Field::Image, defaults));
        faults.keep(Field::Image, image.ok_or(Fault::Image))
    }

    fn login(&self, field: Field, defaults: &Defaults, faults: &mut Faults) -> Option<SshTarget> {
        match SshTarget::parse(&self.effective(field, defaults)) {
            // not wrong, only not there yet
            Err(SshTargetError::Empty) => None,
            other => faults.keep(field, other.map_err(Fault::Login)),
        }
    }

    fn port(&self, field: Field, default: u16, faults: &mut Faults) -> Option<u16> {
        let text = self.text(field).trim();
        if text.is_empty() {
            return Some(default);
        }
        faults.keep(field, parse_port(text).ok_or(Fault::Port))
    }

    /// What was typed, else the default, else nothing.
    fn effective(&self, field: Field, defaults: &Defaults) -> String {
        let typed = self.text(field).trim();
        if typed.is_empty() { self.default_text(field, defaults).unwrap_or_default() } else { typed.to_owned() }
    }
}

/// The browser's address leads to the server itself unless TLS ends in front of it; then the server's own port is
/// the only one known.
fn default_server_port(defaults: &Defaults) -> u16 {
    match ServerUrl::parse(&defaults.join.server_url) {
        Ok(url) if !url.is_https() => url.port(),
        _ => defaults.join.port,
    }
}

#[derive(Default)]
struct Faults(Vec<(Source, Fault)>);

impl Faults {
    fn keep<T>(&mut self, field: Field, result: Result<T, Fault>) -> Option<T> {
        self.keep_from(Source::Field(field), result)
    }

    fn keep_token(&mut self, result: Result<Argument, ArgumentError>) -> Option<Argument> {
        self.keep_from(Source::Token, result.map_err(|_| Fault::ControlCharacter))
    }

    fn keep_from<T>(&mut self, source: Source, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.0.push((source, fault))).ok()
    }
}

/// Where a fault lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// In a field.
    Field(Field),
    /// In the server's join token.
    Token,
}

/// The commands, as far as the fields allow, and what is wrong with the fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What to run on the worker's host; None while a field is wrong.
    pub host: Option<HostPlan>,
    /// What to run on the bastion; None while a field is wrong or missing, and without tunnels.
    pub tunnels: Option<TunnelPlan>,
    faults: Vec<(Source, Fault)>,
}

impl Plan {
    /// What is wrong with a field.
    pub fn fault(&self, field: Field) -> Option<&Fault> {
        self.faults.iter().find(|(source, _)| *source == Source::Field(field)).map(|(_, fault)| fault)
    }

    /// Whether the server's join token cannot stand on a command line.
    pub fn token_is_unusable(&self) -> bool {
        self.faults.iter().any(|(source, _)| *source == Source::Token)
    }
}

/// What to run on the worker's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Has the doctor look at the host and its way to the server.
    pub check: String,
    /// Joins.
    pub join: String,
    /// The command names an address that only the server's own host can use.
    pub server_is_loopback: bool,
}

/// What to run on the bastion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelPlan {
    /// Opens a shell there, when it was said where that is.
    pub bastion_login: Option<String>,
    /// A login names the bastion itself.
    pub logins_are_loopback: bool,
    /// `tunnels.yaml` for an agent there.
    pub yaml: String,
    /// The four forwards, by hand.
    pub commands: TunnelCommands,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> Defaults {
        Defaults {
            join: JoinInfo {
                server_url: "http://10.0.0.1:8090".into(),
                token: "c8e291d8045736ab3aa5ddb6de619291".into(),
                token_file: None,
                version: "0.1.0".into(),
                port: 8090,
                certificate_fingerprint: None,
                taken_ports: Vec::new(),
                newest_worker: api::WorkerId(0),
            },
            worker_port: 10152,
        }
    }

    fn form(query: &[(&str, &str)]) -> JoinForm {
        JoinForm::from_query(|name| query.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn an_empty_query_gives_a_complete_command() {
        let plan = form(&[]).plan(&defaults());
        let host = plan.host.unwrap();
        assert!(host.join.contains("--server-url http://10.0.0.1:8090"));
        assert!(host.join.contains("--device=/dev/davinci7"));
        assert!(!host.server_is_loopback);
        assert_eq!(plan.tunnels, None);
        assert_eq!(plan.faults, []);
    }

    #[test]
    fn every_choice_reads_back_from_the_address() {
        for vendor in Vendor::ALL {
            assert_eq!(form(&[("vendor", vendor.word())]).vendor, vendor);
        }
        for network in Network::ALL {
            assert_eq!(form(&[("network", network.word())]).network, network);
        }
        for packaging in Packaging::ALL {
            assert_eq!(form(&[("form", packaging.word())]).packaging, packaging);
        }
        for field in Field::ALL {
            assert_eq!(form(&[(field.word(), "typed")]).text(field), "typed");
        }
    }

    #[test]
    fn a_nonsense_choice_is_the_usual_one() {
        assert_eq!(form(&[("vendor", "x"), ("network", "y"), ("form", "z")]), JoinForm::default());
    }

    #[test]
    fn tunnels_wait_for_the_workers_address_and_the_join_command_does_not() {
        let plan = form(&[("network", "tunnels")]).plan(&defaults());
        assert_eq!(plan.tunnels, None);
        assert_eq!(plan.faults, []);
        let join = plan.host.unwrap().join;
        assert!(join.contains("--server-url http://127.0.0.1:8090"), "{join}");
    }

    #[test]
    fn only_a_worker_that_the_server_reaches_is_asked_for_its_port() {
        for (network, named) in [("link", false), ("direct", true), ("tunnels", false)] {
            let join = form(&[("network", network), ("port", "10160")]).plan(&defaults()).host.unwrap().join;
            assert_eq!(join.contains("--worker-port 10160"), named, "{network}");
            assert!(!join.contains("--worker-ip") && !join.contains("-p 10150"), "{network}");
        }
    }

    #[test]
    fn a_worker_that_health_checks_are_led_to_is_started_for_them() {
        let query = [("network", "tunnels"), ("worker_login", "user@10.20.0.97"), (HEALTH_CHECK, "on")];
        let plan = form(&[query.as_slice(), &[("server_login", "root@10.0.0.1")]].concat()).plan(&defaults());
        let join = plan.host.unwrap().join;
        assert!(join.contains("--worker-ip 127.0.0.1") && join.contains("--worker-port 10152"), "{join}");
        let yaml = plan.tunnels.unwrap().yaml;
        assert!(yaml.contains("health_check: true, health_port: 10152"), "{yaml}");
    }

    #[test]
    fn tunnels_and_command_agree_on_the_ports() {
        let plan = form(&[
            ("network", "tunnels"),
            ("worker_login", "user@10.20.0.97"),
            ("server_port", "80"),
            ("bastion", "ops@bastion-01"),
        ])
        .plan(&defaults());
        let tunnels = plan.tunnels.unwrap();
        assert!(tunnels.commands.server_to_bastion.ends_with("-L 127.0.0.1:80:10.0.0.1:80 root@10.0.0.1"));
        assert!(tunnels.commands.bastion_to_worker.ends_with("-R 127.0.0.1:80:127.0.0.1:80 user@10.20.0.97"));
        assert!(tunnels.commands.worker_to_bastion.ends_with("-L 127.0.0.1:10152:10.20.0.97:10152 user@10.20.0.97"));
        assert!(tunnels.commands.bastion_to_server.ends_with("-R 127.0.0.1:10152:127.0.0.1:10152 root@10.0.0.1"));
        assert_eq!(tunnels.bastion_login.as_deref(), Some("ssh ops@bastion-01"));
        assert!(
            tunnels.yaml.starts_with("id: bastion-01\n") && tunnels.yaml.contains("10.0.0.1:80, ssh: root@10.0.0.1}"),
            "{}",
            tunnels.yaml
        );
        let join = plan.host.unwrap().join;
        assert!(join.contains("--server-url http://127.0.0.1 "), "{join}");
    }

    #[test]
    fn a_loopback_address_is_warned_about_when_the_worker_would_use_it() {
        for (server, network, warned) in [
            ("http://localhost:8090", "direct", true),
            ("http://localhost:8090", "link", true),
            ("http://0.0.0.0:8090", "direct", true),
            ("http://10.0.0.1:8090", "direct", false),
            ("http://localhost:8090", "tunnels", false),
        ] {
            let plan = form(&[("server", server), ("network", network)]).plan(&defaults());
            assert_eq!(plan.host.map(|host| host.server_is_loopback), Some(warned), "{server} {network}");
        }
    }

    #[test]
    fn a_wrong_field_is_named_and_gives_no_command() {
        for (field, text, fault) in [
            (Field::Server, "ftp://h", Fault::Url(ServerUrlError::Scheme("ftp".into()))),
            (Field::Name, "a\nb", Fault::ControlCharacter),
            (Field::Port, "0", Fault::Port),
            (Field::Devices, "0", Fault::DeviceCount),
            (Field::Devices, "129", Fault::DeviceCount),
            (Field::Image, "--privileged", Fault::Image),
        ] {
            let plan = form(&[("network", "direct"), (field.word(), text)]).plan(&defaults());
            assert_eq!(plan.fault(field), Some(&fault));
            assert_eq!(plan.host, None, "{text}");
        }
    }

    #[test]
    fn a_wrong_login_is_named_and_gives_no_tunnels() {
        let query = [("network", "tunnels"), ("worker_login", "a b"), ("server_port", "x")];
        let plan = form(&query).plan(&defaults());
        assert_eq!(plan.fault(Field::WorkerLogin), Some(&Fault::Login(SshTargetError::Host)));
        assert_eq!(plan.fault(Field::ServerPort), Some(&Fault::Port));
        assert_eq!(plan.tunnels, None);
    }

    #[test]
    fn a_field_that_is_not_shown_cannot_be_wrong() {
        let plan =
            form(&[("form", "binary"), ("image", "--x"), ("devices", "x"), ("worker_login", "a b"), ("port", "x")])
                .plan(&defaults());
        assert_eq!(plan.faults, []);
        assert!(plan.host.is_some());
    }

    #[test]
    fn a_server_behind_a_tls_proxy_is_forwarded_on_its_own_port() {
        let mut behind_proxy = defaults();
        behind_proxy.join.server_url = "https://gpu.example".into();
        let join = form(&[("network", "tunnels")]).plan(&behind_proxy).host.unwrap().join;
        assert!(join.contains("--server-url http://127.0.0.1:8090"), "{join}");
    }

    #[test]
    fn a_loopback_server_address_is_no_place_to_log_in() {
        let mut local = defaults();
        local.join.server_url = "http://127.0.0.1:8090".into();
        assert_eq!(JoinForm::default().default_text(Field::ServerLogin, &local), None);
    }
}
