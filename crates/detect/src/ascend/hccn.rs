//! What `hccn_tool` prints of a chip's own network port. Each question gives one or two lines of `key:value`.

use crate::{figures, text};
use api::DeviceNetwork;
use std::net::IpAddr;

/// The tool's name.
pub(super) const TOOL: &str = "hccn_tool";

/// What can be asked of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortQuestion {
    Link,
    Address,
    Mac,
    Gateway,
    Mtu,
}

impl PortQuestion {
    pub(super) const ALL: [Self; 5] = [Self::Link, Self::Address, Self::Mac, Self::Gateway, Self::Mtu];

    pub(super) fn argument(self) -> &'static str {
        match self {
            Self::Link => "-link",
            Self::Address => "-ip",
            Self::Mac => "-mac",
            Self::Gateway => "-gateway",
            Self::Mtu => "-mtu",
        }
    }
}

/// What the answers so far tell of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Port {
    is_up: Option<bool>,
    address: Option<String>,
    netmask: Option<String>,
    mac: Option<String>,
    gateway: Option<String>,
    interface: Option<String>,
    mtu: Option<u32>,
}

impl Port {
    /// What an answer tells.
    pub(super) fn parse(answer: &str) -> Self {
        let mut port = Self::default();
        for (key, value) in answer.lines().flat_map(|line| line.split(", ")).filter_map(|part| part.split_once(':')) {
            port.learn_one(&key.trim().to_lowercase(), value.trim());
        }
        port
    }

    pub(super) fn tells_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// With what a newer answer tells in place of what was known.
    pub(super) fn updated(self, newer: Self) -> Self {
        Self {
            is_up: newer.is_up.or(self.is_up),
            address: newer.address.or(self.address),
            netmask: newer.netmask.or(self.netmask),
            mac: newer.mac.or(self.mac),
            gateway: newer.gateway.or(self.gateway),
            interface: newer.interface.or(self.interface),
            mtu: newer.mtu.or(self.mtu),
        }
    }

    fn learn_one(&mut self, key: &str, value: &str) {
        match key {
            "link status" => self.is_up = link_status(value),
            "ipaddr" => self.address = address(value),
            "netmask" => self.netmask = address(value),
            "mac addr" => self.mac = mac(value),
            "default gateway" => self.gateway = address(value),
            "iface" => self.interface = Some(text::cell(value)).filter(|name| !name.is_empty()),
            "mtu" => self.mtu = figures::integer(value).ok().and_then(|mtu| u32::try_from(mtu).ok()),
            _ => {}
        }
    }

    /// In the shape of a report; None when nothing is known of the port.
    pub(super) fn network(&self) -> Option<DeviceNetwork> {
        if self.tells_nothing() {
            return None;
        }
        let status = match self.is_up {
            Some(true) => "up",
            Some(false) => "down",
            None => "unknown",
        };
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        Some(DeviceNetwork {
            status: status.to_owned(),
            inet: text(&self.address),
            netmask: text(&self.netmask),
            mac: text(&self.mac),
            gateway: text(&self.gateway),
            iface: self.interface.clone(),
            mtu: self.mtu,
        })
    }
}

fn link_status(word: &str) -> Option<bool> {
    match word.to_ascii_uppercase().as_str() {
        "UP" => Some(true),
        "DOWN" => Some(false),
        _ => None,
    }
}

fn address(text: &str) -> Option<String> {
    text.parse::<IpAddr>().ok().map(|address| address.to_string())
}

fn mac(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(':').collect();
    let is_byte = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    (parts.len() == 6 && parts.iter().all(is_byte)).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = include_str!("../../tests/fixtures/hccn-ip-g-up.txt");
    const DOWN: &str = include_str!("../../tests/fixtures/hccn-link-g-down.txt");
    const REST: &str = include_str!("../../tests/fixtures/hccn-mac-gateway-mtu.txt");

    fn learned(answers: &[&str]) -> Option<DeviceNetwork> {
        answers.iter().fold(Port::default(), |port, answer| port.updated(Port::parse(answer))).network()
    }

    #[test]
    fn all_answers_make_a_port() {
        let expected = DeviceNetwork {
            status: "down".into(),
            inet: "192.0.2.10".into(),
            netmask: "255.255.255.0".into(),
            mac: "02:00:00:00:00:01".into(),
            gateway: "192.0.2.1".into(),
            iface: Some("eth1".into()),
            mtu: Some(8_192),
        };
        assert_eq!(learned(&[ADDRESS, DOWN, REST]), Some(expected));
    }

    #[test]
    fn a_port_of_which_only_the_link_is_known_has_no_address() {
        let network = learned(&["link status: UP\n", "no ip was preset\n"]).unwrap();
        assert_eq!((network.status.as_str(), network.inet.as_str(), network.mtu), ("up", "", None));
    }

    #[test]
    fn answers_that_tell_nothing_make_no_port() {
        for answer in
            ["", "Permission denied", "Command execute failed: no such device", "ipaddr:not set", "mtu:１５００"]
        {
            assert_eq!(learned(&[answer]), None, "{answer}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(text in "((link status|ipaddr|mac addr|mtu|Iface)|:|,| |\\PC|\n){0,60}") {
            let _ = learned(&[&text]);
        }

        #[test]
        fn an_answer_cut_off_anywhere_makes_no_other_mac(at in 0usize..200) {
            let cut = &REST[..at.min(REST.len())];
            let mac = learned(&[cut]).map(|network| network.mac).unwrap_or_default();
            proptest::prop_assert!(mac.is_empty() || mac == "02:00:00:00:00:01", "{}", mac);
        }
    }
}
