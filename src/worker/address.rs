//! Under which address the server can reach this worker.

use api::ServerUrl;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::net::{UdpSocket, lookup_host};

/// An address given by DHCP can change under a running worker.
const RECHECK_INTERVAL: Duration = Duration::from_secs(15);
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
/// A host with hundreds of container interfaces must not fill the log.
const LOGGED_OTHERS: usize = 16;

/// Name prefixes of interfaces that other hosts cannot reach this one through, and what they are.
const UNFIT_NAMES: [(&str, Unfit); 19] = [
    ("docker", Unfit::Container),
    ("br-", Unfit::Container),
    ("cni", Unfit::Container),
    ("flannel", Unfit::Container),
    ("cali", Unfit::Container),
    ("cilium", Unfit::Container),
    ("lxc", Unfit::Container),
    ("podman", Unfit::Container),
    ("veth", Unfit::Container),
    ("vxlan.calico", Unfit::Container),
    ("kube-ipvs", Unfit::Container),
    ("nodelocaldns", Unfit::Container),
    ("virbr", Unfit::VirtualMachines),
    ("vmnet", Unfit::VirtualMachines),
    ("tun", Unfit::Vpn),
    ("tap", Unfit::Vpn),
    ("wg", Unfit::Vpn),
    ("tailscale", Unfit::Vpn),
    ("ppp", Unfit::Vpn),
];

/// Where the address comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressSetting {
    /// `--worker-ip`, taken as it is. It need not be an address of this host (NAT, tunnels).
    Given(IpAddr),
    /// `--worker-ifname`: that interface's address.
    Interface(String),
    /// The server runs in this same process.
    SameProcess,
    /// Found by itself and checked again now and then.
    Automatic,
}

/// Why an address setting cannot be used.
#[derive(Debug, Error)]
pub enum AddressError {
    /// The address of no host.
    #[error(
        "--worker-ip {0} is the address of no host; give the address under which the server reaches this worker, or leave it out"
    )]
    NoHostAddress(IpAddr),
    /// There is no such interface.
    #[error("--worker-ifname {name}: this host has no such interface; it has {existing}")]
    NoInterface {
        /// The wished one.
        name: String,
        /// Those that are there.
        existing: String,
    },
    /// It is there, but has no address.
    #[error("--worker-ifname {name}: this interface has no address that another host can use")]
    NoInterfaceAddress {
        /// The wished one.
        name: String,
    },
    /// The system does not tell.
    #[error("cannot list this host's network interfaces: {0}")]
    List(#[from] io::Error),
}

/// An address of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAddress {
    /// The interface.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
    /// Whether it is up.
    pub is_up: bool,
}

/// An address and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The address.
    pub address: IpAddr,
    /// The interface that has it, when one has.
    pub interface: Option<String>,
    /// Why.
    pub why: Why,
}

/// Why an address was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// `--worker-ip`.
    Given,
    /// `--worker-ifname`.
    InterfaceGiven,
    /// The server runs in this same process.
    SameProcess,
    /// Packets to the server leave from it.
    RouteToServer,
    /// The server URL leads to a tunnel's end on this host, or to no address yet: the first that other hosts can use.
    FirstUsable,
    /// This host has no other.
    NothingElse,
}

/// Why an address is not chosen by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unfit {
    Loopback,
    LinkLocal,
    Down,
    Container,
    VirtualMachines,
    Vpn,
}

/// Knows the worker's address and notices when it changes.
#[derive(Debug)]
pub struct AddressBook {
    setting: AddressSetting,
    server: ServerUrl,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    server: Option<SocketAddr>,
    choice: Option<Choice>,
}

impl AddressBook {
    /// Checks the setting against this host's interfaces.
    pub fn new(setting: AddressSetting, server: ServerUrl) -> Result<Self, AddressError> {
        match &setting {
            AddressSetting::Given(address) if is_no_host(*address) => {
                return Err(AddressError::NoHostAddress(*address));
            }
            AddressSetting::Interface(name) => {
                of_interface(name, &host_addresses()?)?;
            }
            AddressSetting::Given(_) | AddressSetting::SameProcess | AddressSetting::Automatic => {}
        }
        Ok(Self { setting, server, known: Mutex::default() })
    }

    /// The worker's address now. Looks up the server's name anew, so that a server that moved is followed.
    pub async fn current(&self) -> Choice {
        let server = match self.setting {
            AddressSetting::Automatic => resolve(&self.server).await,
            _ => None,
        };
        self.update(|known| known.server = server.or(known.server));
        self.choose_again().await
    }

    /// Waits until the worker's address is another than [`Self::current`] gave, and gives the new one.
    pub async fn changed(&self) -> Choice {
        if matches!(self.setting, AddressSetting::Given(_) | AddressSetting::SameProcess) {
            return std::future::pending().await;
        }
        let before = self.update(|known| known.choice.clone());
        loop {
            tokio::time::sleep(RECHECK_INTERVAL).await;
            let now = self.choose_again().await;
            if before.as_ref().is_none_or(|before| before.address != now.address) {
                return now;
            }
        }
    }

    async fn choose_again(&self) -> Choice {
        let interfaces = host_addresses().unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot list this host's network interfaces");
            Vec::new()
        });
        let server = self.update(|known| known.server);
        let route = match server {
            Some(server) => route_to(server).await,
            None => None,
        };
        let before = self.update(|known| known.choice.clone());
        let choice = match &self.setting {
            AddressSetting::Given(address) => Choice { address: *address, interface: None, why: Why::Given },
            AddressSetting::SameProcess => loopback(Why::SameProcess),
            // an interface that is gone for the moment keeps its address
            AddressSetting::Interface(name) => match of_interface(name, &interfaces) {
                Ok(choice) => choice,
                Err(_) => before.clone().unwrap_or_else(|| loopback(Why::NothingElse)),
            },
            // without a network there is no way to the server: what was right before is the best guess
            AddressSetting::Automatic => match (&before, route) {
                (Some(before), None) if before.why == Why::RouteToServer => before.clone(),
                _ => choose(route, &interfaces),
            },
        };
        if before.as_ref() != Some(&choice) {
            log_choice(&choice, &interfaces, &self.setting);
            self.update(|known| known.choice = Some(choice.clone()));
        }
        choice
    }

    fn update<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        change(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The address that the server reaches this host under most probably: the one from which packets to the server leave
/// (`route`), unless that way only leads to a tunnel's end on this host.
fn choose(route: Option<IpAddr>, interfaces: &[HostAddress]) -> Choice {
    let owner = |address: IpAddr| {
        interfaces.iter().find(|candidate| candidate.address == address).map(|candidate| candidate.interface.clone())
    };
    if let Some(address) = route.filter(|address| !address.is_loopback() && !address.is_unspecified()) {
        return Choice { address, interface: owner(address), why: Why::RouteToServer };
    }
    let usable = |candidate: &&HostAddress| unfit(candidate).is_none();
    let first_v4 = interfaces.iter().filter(usable).find(|candidate| candidate.address.is_ipv4());
    match first_v4.or_else(|| interfaces.iter().find(usable)) {
        Some(candidate) => {
            Choice { address: candidate.address, interface: Some(candidate.interface.clone()), why: Why::FirstUsable }
        }
        None => loopback(Why::NothingElse),
    }
}

fn of_interface(name: &str, interfaces: &[HostAddress]) -> Result<Choice, AddressError> {
    let mut own = interfaces.iter().filter(|candidate| candidate.interface == name).peekable();
    if own.peek().is_none() {
        // once each: an interface is listed with each of its addresses
        let names: BTreeSet<&str> = interfaces.iter().map(|candidate| candidate.interface.as_str()).collect();
        let existing = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(AddressError::NoInterface { name: name.to_owned(), existing });
    }
    // a link-local IPv6 address means nothing without an interface of the host that uses it
    let (v4, v6): (Vec<_>, Vec<_>) =
        own.filter(|candidate| !is_v6_link_local(candidate.address)).partition(|candidate| candidate.address.is_ipv4());
    let Some(chosen) = v4.first().or(v6.first()) else {
        return Err(AddressError::NoInterfaceAddress { name: name.to_owned() });
    };
    Ok(Choice { address: chosen.address, interface: Some(name.to_owned()), why: Why::InterfaceGiven })
}

fn loopback(why: Why) -> Choice {
    Choice { address: Ipv4Addr::LOCALHOST.into(), interface: None, why }
}

fn unfit(candidate: &HostAddress) -> Option<Unfit> {
    if candidate.address.is_loopback() {
        return Some(Unfit::Loopback);
    }
    if is_link_local(candidate.address) {
        return Some(Unfit::LinkLocal);
    }
    if !candidate.is_up {
        return Some(Unfit::Down);
    }
    UNFIT_NAMES.iter().find(|(prefix, _)| candidate.interface.starts_with(prefix)).map(|(_, unfit)| *unfit)
}

/// Whether no host can have this address. A loopback address is good: the far end of a tunnel has one.
fn is_no_host(address: IpAddr) -> bool {
    address.is_unspecified() || address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(_) => is_v6_link_local(address),
    }
}

fn is_v6_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

fn host_addresses() -> io::Result<Vec<HostAddress>> {
    let interfaces = if_addrs::get_if_addrs()?;
    Ok(interfaces
        .into_iter()
        .map(|interface| HostAddress {
            address: interface.ip(),
            // virtual interfaces report no state of their own
            is_up: interface.is_oper_up() || interface.oper_status == if_addrs::IfOperStatus::Unknown,
            interface: interface.name,
        })
        .collect())
}

/// The server's address. When it has several, the first, which is also the first that a connection is tried to.
async fn resolve(server: &ServerUrl) -> Option<SocketAddr> {
    if let Ok(address) = server.host().parse::<IpAddr>() {
        return Some(SocketAddr::new(address, server.port()));
    }
    let lookup = tokio::time::timeout(RESOLVE_TIMEOUT, lookup_host((server.host(), server.port())));
    lookup.await.ok()?.ok()?.next()
}

/// The local address from which packets to `server` leave. Asks the kernel's routing table and sends nothing:
/// connecting a UDP socket only binds it.
async fn route_to(server: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await.ok()?;
    socket.connect(server).await.ok()?;
    Some(socket.local_addr().ok()?.ip().to_canonical())
}

fn log_choice(choice: &Choice, interfaces: &[HostAddress], setting: &AddressSetting) {
    if matches!(setting, AddressSetting::Given(_) | AddressSetting::SameProcess) {
        tracing::info!("worker address {} ({})", choice.address, choice.why);
        return;
    }
    let others: Vec<String> = interfaces
        .iter()
        .filter(|candidate| candidate.address != choice.address && !is_v6_link_local(candidate.address))
        .take(LOGGED_OTHERS)
        .map(|candidate| match unfit(candidate) {
            Some(unfit) => format!("{} {} ({unfit})", candidate.interface, candidate.address),
            None => format!("{} {}", candidate.interface, candidate.address),
        })
        .collect();
    let interface = choice.interface.as_deref().map(|name| format!(" on {name}")).unwrap_or_default();
    let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
    tracing::info!("worker address {}{interface} ({}); not chosen: {others}", choice.address, choice.why);
    if is_link_local(choice.address) {
        tracing::warn!("worker address {} is link-local: only hosts on the same wire can use it", choice.address);
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given => "given with --worker-ip",
            Self::InterfaceGiven => "of the interface given with --worker-ifname",
            Self::SameProcess => "the server runs in this process",
            Self::RouteToServer => "the way to the server leaves from it",
            Self::FirstUsable => {
                "the way to the server stays on this host or is unknown; first address that other hosts can use"
            }
            Self::NothingElse => "this host has no other; give one with --worker-ip",
        })
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Down => "down",
            Self::Container => "containers",
            Self::VirtualMachines => "virtual machines",
            Self::Vpn => "VPN",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn host_address(interface: &str, address: &str) -> HostAddress {
        HostAddress { interface: interface.to_owned(), address: ip(address), is_up: true }
    }

    /// A host with everything on it that has been chosen by mistake somewhere.
    fn crowded_host() -> Vec<HostAddress> {
        vec![
            host_address("lo", "127.0.0.1"),
            host_address("docker0", "172.17.0.1"),
            host_address("br-4f2a91c0", "172.18.0.1"),
            host_address("virbr0", "192.168.122.1"),
            host_address("cni0", "10.244.0.1"),
            host_address("tun0", "10.8.0.6"),
            host_address("usb0", "169.254.95.120"),
            HostAddress { is_up: false, ..host_address("eno1", "10.9.9.9") },
            host_address("bond0", "10.20.0.7"),
            host_address("enp61s0f0", "29.17.45.215"),
        ]
    }

    #[test]
    fn the_way_to_the_server_decides_and_else_the_first_address_that_others_can_use() {
        let table = [
            (Some("10.20.0.7"), "10.20.0.7", Some("bond0"), Why::RouteToServer),
            (Some("29.17.45.215"), "29.17.45.215", Some("enp61s0f0"), Why::RouteToServer),
            (Some("10.8.0.6"), "10.8.0.6", Some("tun0"), Why::RouteToServer),
            (Some("169.254.95.120"), "169.254.95.120", Some("usb0"), Why::RouteToServer),
            (Some("203.0.113.5"), "203.0.113.5", None, Why::RouteToServer),
            (Some("127.0.0.1"), "10.20.0.7", Some("bond0"), Why::FirstUsable),
            (Some("::1"), "10.20.0.7", Some("bond0"), Why::FirstUsable),
            (None, "10.20.0.7", Some("bond0"), Why::FirstUsable),
        ];
        for (route, address, interface, why) in table {
            let route = route.map(ip);
            let expected = Choice { address: ip(address), interface: interface.map(str::to_owned), why };
            assert_eq!(choose(route, &crowded_host()), expected, "{route:?}");
        }
    }

    #[test]
    fn a_host_with_ipv6_only_uses_it_and_one_with_nothing_says_so() {
        let v6 = [host_address("lo", "::1"), host_address("eth0", "fe80::1"), host_address("eth0", "2001:db8::7")];
        assert_eq!(choose(None, &v6).address, ip("2001:db8::7"));
        let none = [host_address("lo", "127.0.0.1"), host_address("docker0", "172.17.0.1")];
        assert_eq!(choose(None, &none), loopback(Why::NothingElse));
    }

    #[test]
    fn an_interface_gives_its_ipv4_address_before_its_ipv6_address() {
        let host = [
            host_address("lo", "127.0.0.1"),
            host_address("eth0", "2001:db8::7"),
            host_address("eth0", "10.0.0.7"),
            host_address("eth1", "fe80::1"),
            host_address("eth1", "2001:db8::8"),
            host_address("eth2", "fe80::2"),
        ];
        assert_eq!(of_interface("eth0", &host).unwrap().address, ip("10.0.0.7"));
        assert_eq!(of_interface("eth1", &host).unwrap().address, ip("2001:db8::8"));
        assert_eq!(of_interface("lo", &host).unwrap().address, ip("127.0.0.1"));
        assert!(matches!(of_interface("eth2", &host), Err(AddressError::NoInterfaceAddress { .. })));
        let error = of_interface("eth9", &host).unwrap_err().to_string();
        assert!(error.contains("eth9") && error.contains("eth0, eth1, eth2, lo"), "{error}");
    }

    #[tokio::test]
    async fn a_given_address_is_taken_unless_no_host_can_have_it() {
        let server = ServerUrl::parse("http://10.0.0.1:8090").unwrap();
        for text in ["127.0.0.1", "10.0.0.1", "203.0.113.9", "2001:db8::7"] {
            let book = AddressBook::new(AddressSetting::Given(ip(text)), server.clone()).unwrap();
            assert_eq!(book.current().await.address, ip(text));
        }
        for text in ["0.0.0.0", "::", "224.0.0.1", "255.255.255.255"] {
            let refused = AddressBook::new(AddressSetting::Given(ip(text)), server.clone());
            assert!(matches!(refused, Err(AddressError::NoHostAddress(_))), "{text}");
        }
    }

    #[tokio::test]
    async fn the_way_to_this_host_leaves_from_loopback() {
        let route = route_to("127.0.0.1:8090".parse().unwrap()).await;
        assert_eq!(route, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }
}
