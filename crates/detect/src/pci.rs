//! Accelerators on the PCI bus, from the kernel's own list in sysfs: it knows devices whose driver is missing, which no
//! vendor's tool does.

use crate::files::Root;
use crate::vendor::Maker;
use api::PciDevice;
use std::path::Path;

/// The kernel's list, one directory for each function of each device.
const DEVICES: &str = "/sys/bus/pci/devices";
/// The class of display controllers.
const DISPLAY: u8 = 0x03;
/// The class of processing accelerators.
const PROCESSING: u8 = 0x12;
/// Old graphics chips of AMD that servers carry for their console: Rage XL, ES1000, RV100.
const AMD_CONSOLE_CHIPS: [u16; 3] = [0x4752, 0x515e, 0x5159];

/// An accelerator, whether it has a driver or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accelerator {
    pub maker: Maker,
    /// Lower case, e.g. `0000:c1:00.0`.
    pub address: String,
    pub vendor_id: u16,
    pub device_id: u16,
    pub driver: Driver,
}

/// Who drives a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// Nobody, or a driver that does not make its computing usable.
    None,
    /// It is kept for a virtual machine, on purpose.
    PassedThrough,
    /// Its vendor's.
    Loaded,
}

impl Accelerator {
    pub(crate) fn listed(&self) -> PciDevice {
        PciDevice {
            bus_id: self.address.clone(),
            vendor: self.maker.name().to_owned(),
            pci_id: format!("{:04x}:{:04x}", self.vendor_id, self.device_id),
        }
    }
}

/// Every accelerator once, in the order of the addresses. sysfs lies in memory: no disk can hold this up.
pub(crate) fn accelerators(root: &Root) -> Vec<Accelerator> {
    let directory = root.path(DEVICES);
    let Ok(entries) = std::fs::read_dir(&directory) else { return Vec::new() };
    let mut addresses: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(|name| name.to_lowercase())
        .collect();
    addresses.sort_unstable();
    let mut found: Vec<Accelerator> = Vec::new();
    for address in addresses {
        let Some(accelerator) = look(&directory, address) else { continue };
        // A card shows several functions of one kind in one slot.
        if !found.iter().any(|before| slot(&before.address) == slot(&accelerator.address)) {
            found.push(accelerator);
        }
    }
    found
}

fn look(directory: &Path, address: String) -> Option<Accelerator> {
    let place = directory.join(&address);
    // Most of what is on the bus ends here, after one file.
    let number = |file: &str| hexadecimal(&std::fs::read_to_string(place.join(file)).ok()?);
    let class = number("class").filter(|&class| matches!(base_class(class), DISPLAY | PROCESSING))?;
    // A virtual function is a part of a device that is listed itself.
    if place.join("physfn").exists() {
        return None;
    }
    let vendor_id = u16::try_from(number("vendor")?).ok()?;
    let device_id = u16::try_from(number("device")?).ok()?;
    let maker = maker(vendor_id, device_id, class)?;
    let driver = std::fs::read_link(place.join("driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    Some(Accelerator { maker, address, vendor_id, device_id, driver: driver_kind(driver) })
}

/// The maker of an accelerator; None for everything else that the makers build: network cards, consoles, sound.
fn maker(vendor_id: u16, device_id: u16, class: u32) -> Option<Maker> {
    let base = base_class(class);
    let maker = Maker::of_pci(vendor_id)?;
    let is_accelerator = match maker {
        // Its display controllers are the consoles of its servers.
        Maker::Huawei => base == PROCESSING,
        Maker::Amd => !AMD_CONSOLE_CHIPS.contains(&device_id),
        _ => true,
    };
    is_accelerator.then_some(maker)
}

/// Base class, sub-class, programming interface (PCI Code and ID Assignment Specification).
fn base_class(class: u32) -> u8 {
    let [_, base, _, _] = class.to_be_bytes();
    base
}

fn driver_kind(driver: Option<&str>) -> Driver {
    match driver {
        None | Some("nouveau") => Driver::None,
        Some("vfio-pci" | "pci-stub" | "xen-pciback") => Driver::PassedThrough,
        Some(_) => Driver::Loaded,
    }
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// An address without its function.
fn slot(address: &str) -> &str {
    address.rsplit_once('.').map_or(address, |(slot, _)| slot)
}

/// An address as tools print it, in the kernel's form: `00000000:5E:00.0` is `0000:5e:00.0`. None for other text.
pub(crate) fn address(text: &str) -> Option<String> {
    let text = text.trim();
    let (rest, function) = text.rsplit_once('.')?;
    let mut parts = rest.rsplit(':');
    let (device, bus, domain) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    if parts.next().is_some() {
        return None;
    }
    let number = |digits: &str, most: u32| {
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|&number| is_plain && number <= most)
    };
    let (domain, bus) = (number(domain, u32::MAX)?, number(bus, 0xff)?);
    let (device, function) = (number(device, 0x1f)?, number(function, 7)?);
    Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bus(tempfile::TempDir);

    impl Bus {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn add(&self, address: &str, ids: [&str; 3], driver: Option<&str>) {
            let place = self.0.path().join("sys/bus/pci/devices").join(address);
            std::fs::create_dir_all(&place).unwrap();
            for (file, value) in ["vendor", "device", "class"].into_iter().zip(ids) {
                std::fs::write(place.join(file), format!("{value}\n")).unwrap();
            }
            if let Some(driver) = driver {
                std::os::unix::fs::symlink(format!("../../../bus/pci/drivers/{driver}"), place.join("driver")).unwrap();
            }
        }

        fn accelerators(&self) -> Vec<(Maker, String, Driver)> {
            let found = accelerators(&Root::new(self.0.path()));
            found.into_iter().map(|found| (found.maker, found.address, found.driver)).collect()
        }
    }

    #[test]
    fn a_card_with_two_functions_is_one() {
        let bus = Bus::new();
        bus.add("0000:18:00.0", ["0x19e5", "0xd802", "0x120000"], Some("devdrv_device_driver"));
        bus.add("0000:18:00.1", ["0x19e5", "0xd802", "0x120000"], Some("devdrv_device_driver"));
        assert_eq!(bus.accelerators(), [(Maker::Huawei, "0000:18:00.0".to_owned(), Driver::Loaded)]);
    }

    #[test]
    fn sound_consoles_and_network_cards_are_no_accelerators() {
        let bus = Bus::new();
        bus.add("0000:02:00.0", ["0x1a03", "0x2000", "0x030000"], Some("ast"));
        bus.add("0000:03:00.0", ["0x19e5", "0x1711", "0x030000"], None);
        bus.add("0000:04:00.0", ["0x19e5", "0x0222", "0x020000"], None);
        bus.add("0000:05:00.0", ["0x1002", "0x515e", "0x030000"], None);
        bus.add("0000:5e:00.0", ["0x10de", "0x20b2", "0x030200"], Some("vfio-pci"));
        bus.add("0000:5e:00.1", ["0x10de", "0x1aef", "0x040300"], Some("snd_hda_intel"));
        bus.add("0000:af:00.0", ["0x10de", "0x2684", "0x030000"], None);
        let expected = [
            (Maker::Nvidia, "0000:5e:00.0".to_owned(), Driver::PassedThrough),
            (Maker::Nvidia, "0000:af:00.0".to_owned(), Driver::None),
        ];
        assert_eq!(bus.accelerators(), expected);
    }

    #[test]
    fn every_maker_is_known_by_its_id() {
        let bus = Bus::new();
        let makers = [
            ("0x19e5", "0x120000", Maker::Huawei),
            ("0x10de", "0x030200", Maker::Nvidia),
            ("0x1002", "0x038000", Maker::Amd),
            ("0x1d94", "0x038000", Maker::Hygon),
            ("0x9999", "0x038000", Maker::MetaX),
            ("0xcabc", "0x120000", Maker::Cambricon),
            ("0x1e3e", "0x030200", Maker::Iluvatar),
            ("0x1ed5", "0x030000", Maker::MooreThreads),
        ];
        for (place, (vendor, class, _)) in makers.iter().enumerate() {
            bus.add(&format!("0000:0{place}:00.0"), [vendor, "0x0001", class], None);
        }
        let found: Vec<Maker> = bus.accelerators().into_iter().map(|(maker, ..)| maker).collect();
        assert_eq!(found, makers.map(|(.., maker)| maker));
    }

    #[test]
    fn a_virtual_function_is_not_counted_beside_its_device() {
        let bus = Bus::new();
        bus.add("0000:18:00.0", ["0x19e5", "0xd802", "0x120000"], None);
        bus.add("0000:18:01.0", ["0x19e5", "0xd802", "0x120000"], None);
        let place = bus.0.path().join("sys/bus/pci/devices/0000:18:01.0/physfn");
        std::os::unix::fs::symlink("../0000:18:00.0", place).unwrap();
        assert_eq!(bus.accelerators().len(), 1);
    }

    #[test]
    fn half_an_entry_is_nothing() {
        let bus = Bus::new();
        bus.add("0000:18:00.0", ["0x19e5", "garbage", "0x120000"], None);
        assert_eq!(bus.accelerators(), []);
        assert_eq!(Bus::new().accelerators(), []);
    }

    #[test]
    fn addresses_of_all_tools_have_one_form() {
        for text in ["00000000:5E:00.0", "0000:5e:00.0", "5E:00.0", " 0000:5E:00.0 "] {
            assert_eq!(address(text).as_deref(), Some("0000:5e:00.0"), "{text}");
        }
        for text in ["", "NA", "0000:5e:00", "x:5e:00.0", "1:2:3:4.5", "0000:5e:20.0", "0000:5e:00.8", "+5e:00.0"] {
            assert_eq!(address(text), None, "{text}");
        }
    }
}
