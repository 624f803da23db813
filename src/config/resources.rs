//! `resources` in the configuration file: what a worker is to report in place of what it would find. GPUStack's keys
//! (`config.py`, `get_system_info` and `get_gpu_devices`); what is given replaces that part, what is left out is found.

use super::ConfigError;
use api::{
    AbsentReading, AbsentWhy, CpuInfo, DeviceCore, DeviceMemory, DeviceNetwork, DeviceType, FileSystem, GpuDevice,
    KernelInfo, MemoryInfo, OsInfo, ReadingKind, SwapInfo, UptimeInfo, WorkerStatus,
};
use serde_norway::{Mapping, Value};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

/// The key in the file.
pub const RESOURCES: &str = "resources";

/// More than any host has.
const MOST_DEVICES: usize = 1_024;
/// Names beyond this are none.
const MOST_CHARACTERS: usize = 256;

/// Makers in the words of GPUStack 0.7 and, behind each, of 2.x; and the kind that goes with them.
const VENDORS: [(&str, &str, DeviceType); 9] = [
    ("Huawei", "ascend", DeviceType::Npu),
    ("NVIDIA", "nvidia", DeviceType::Cuda),
    ("AMD", "amd", DeviceType::Rocm),
    ("Moore Threads", "mthreads", DeviceType::Musa),
    ("Apple", "apple", DeviceType::Mps),
    ("Hygon", "hygon", DeviceType::Dcu),
    ("Iluvatar", "iluvatar", DeviceType::Corex),
    ("Cambricon", "cambricon", DeviceType::Mlu),
    ("MetaX", "metax", DeviceType::Maca),
];
/// What a described device cannot be read for.
const READINGS: [ReadingKind; 5] = [
    ReadingKind::MemoryUsed,
    ReadingKind::Utilization,
    ReadingKind::Temperature,
    ReadingKind::Power,
    ReadingKind::Health,
];
/// GPUStack 2.x schedules by these; nothing here does.
const WITHOUT_EFFECT: [&str; 2] = ["arch_family", "compute_capability"];

/// What is described; None for what is to be found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    /// All accelerators; an empty list says that there are none.
    pub gpu_devices: Option<Vec<GpuDevice>>,
    /// Processors.
    pub cpu: Option<CpuInfo>,
    /// Main memory.
    pub memory: Option<MemoryInfo>,
    /// Swap space.
    pub swap: Option<SwapInfo>,
    /// File systems.
    pub filesystem: Option<Vec<FileSystem>>,
    /// Operating system.
    pub os: Option<OsInfo>,
    /// Kernel.
    pub kernel: Option<KernelInfo>,
    /// Time since boot, which does not pass.
    pub uptime: Option<UptimeInfo>,
}

impl Resources {
    /// Reads what stands under `resources` in `file`. What has no effect is told in `warnings`.
    pub fn read(value: &Value, file: &Path, warnings: &mut Vec<String>) -> Result<Self, ConfigError> {
        let root = Part { value, path: RESOURCES.to_owned(), file };
        if root.is_nothing() {
            return Ok(Self::default());
        }
        let entries = root.entries("`gpu_devices:`, `cpu:` or another part")?;
        entries.know(&["gpu_devices", "cpu", "memory", "swap", "filesystem", "os", "kernel", "uptime"])?;
        Ok(Self {
            gpu_devices: entries.part("gpu_devices").map(|part| devices(&part, warnings)).transpose()?,
            cpu: entries.part("cpu").map(|part| cpu(&part)).transpose()?,
            memory: entries.part("memory").map(|part| total(&part).map(memory)).transpose()?,
            swap: entries.part("swap").map(|part| total(&part).map(swap)).transpose()?,
            filesystem: entries.part("filesystem").map(|part| file_systems(&part)).transpose()?,
            os: entries.part("os").map(|part| os(&part)).transpose()?,
            kernel: entries.part("kernel").map(|part| kernel(&part)).transpose()?,
            uptime: entries.part("uptime").map(|part| uptime(&part)).transpose()?,
        })
    }

    /// Puts what is described into a report, in place of what was found.
    pub fn fill(&self, status: &mut WorkerStatus) {
        replace(&mut status.cpu, self.cpu.as_ref());
        replace(&mut status.memory, self.memory.as_ref());
        replace(&mut status.swap, self.swap.as_ref());
        replace(&mut status.filesystem, self.filesystem.as_ref());
        replace(&mut status.os, self.os.as_ref());
        replace(&mut status.kernel, self.kernel.as_ref());
        replace(&mut status.uptime, self.uptime.as_ref());
        replace(&mut status.gpu_devices, self.gpu_devices.as_ref());
    }
}

fn replace<T: Clone>(found: &mut Option<T>, described: Option<&T>) {
    if described.is_some() {
        *found = described.cloned();
    }
}

fn devices(part: &Part<'_>, warnings: &mut Vec<String>) -> Result<Vec<GpuDevice>, ConfigError> {
    let items = part.items()?;
    if items.len() > MOST_DEVICES {
        return Err(part.bad(format!("lists {} devices; no host has more than {MOST_DEVICES}", items.len())));
    }
    let devices = items.iter().map(|item| device(item, warnings)).collect::<Result<Vec<_>, _>>()?;
    let mut indexes = BTreeSet::new();
    for (item, device) in items.iter().zip(&devices) {
        if !indexes.insert(device.index) {
            return Err(item.bad(format!("has index {}, as another has; each needs one of its own", device.index)));
        }
    }
    Ok(devices)
}

fn device(part: &Part<'_>, warnings: &mut Vec<String>) -> Result<GpuDevice, ConfigError> {
    let entries = part.entries("`name: 910B3` and the other keys of a device")?;
    let known =
        ["name", "vendor", "type", "index", "device_index", "device_chip_index", "uuid", "core", "memory", "network"];
    entries.know(&[known.as_slice(), &WITHOUT_EFFECT].concat())?;
    for name in WITHOUT_EFFECT.into_iter().filter(|name| entries.part(name).is_some()) {
        warnings.push(format!("`{}.{name}` in {} has no effect in this version", part.path, part.file.display()));
    }
    let (vendor, kind_of_vendor) = vendor(&entries.required("vendor", VENDOR_SHAPE)?)?;
    let index = entries.required("index", "a number from 0 on")?.number()?;
    let memory = entries.required("memory", "`total:` below it, in bytes")?;
    let core = entries.part("core").map(|part| core(&part)).transpose()?;
    Ok(GpuDevice {
        index,
        device_index: Some(entries.number_or("device_index", index)?),
        device_chip_index: Some(entries.number_or("device_chip_index", 0)?),
        name: entries.required("name", "a model such as 910B3")?.text()?,
        uuid: entries.part("uuid").map(|part| part.text()).transpose()?,
        vendor: vendor.to_owned(),
        kind: entries.part("type").map_or(Ok(kind_of_vendor), |part| kind(&part))?,
        core,
        memory: Some(device_memory(&memory)?),
        network: entries.part("network").map(|part| network(&part).map(Box::new)).transpose()?,
        absent: READINGS.map(|reading| AbsentReading { reading, why: AbsentWhy::NotTold }).to_vec(),
        ..GpuDevice::default()
    })
}

const VENDOR_SHAPE: &str = "a maker such as Huawei or NVIDIA";

fn vendor(part: &Part<'_>) -> Result<(&'static str, DeviceType), ConfigError> {
    let text = part.text()?;
    let is_meant = |name: &str| name.eq_ignore_ascii_case(&text);
    let known = VENDORS.into_iter().find(|(name, alias, _)| is_meant(name) || is_meant(alias));
    known.map(|(name, _, kind)| (name, kind)).ok_or_else(|| {
        part.bad(format!("is `{text}`; it must be one of {}", VENDORS.map(|(name, _, _)| name).join(", ")))
    })
}

fn kind(part: &Part<'_>) -> Result<DeviceType, ConfigError> {
    let text = part.text()?;
    let words = || VENDORS.into_iter().map(|(_, _, kind)| (word(kind), kind));
    let known = words().find(|(word, _)| *word == text.to_ascii_lowercase());
    known.map(|(_, kind)| kind).ok_or_else(|| {
        let all: Vec<String> = words().map(|(word, _)| word).collect();
        part.bad(format!("is `{text}`; it must be one of {}", all.join(", ")))
    })
}

/// As the API spells it.
fn word(kind: DeviceType) -> String {
    serde_json::to_value(kind).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn core(part: &Part<'_>) -> Result<DeviceCore, ConfigError> {
    let entries = part.entries("`total: 20`")?;
    entries.know(&["total"])?;
    Ok(DeviceCore { total: Some(entries.required("total", "the number of cores")?.number()?), utilization_rate: None })
}

fn device_memory(part: &Part<'_>) -> Result<DeviceMemory, ConfigError> {
    let entries = part.entries("`total: 68719476736`, in bytes")?;
    entries.know(&["total", "is_unified_memory"])?;
    let is_unified_memory = entries.part("is_unified_memory").map_or(Ok(false), |part| part.truth())?;
    Ok(DeviceMemory {
        total: Some(entries.required("total", BYTES)?.bytes()?),
        is_unified_memory: Some(is_unified_memory),
        ..DeviceMemory::default()
    })
}

fn network(part: &Part<'_>) -> Result<DeviceNetwork, ConfigError> {
    let entries = part.entries("`inet: 192.0.2.10` and what else is known of the port")?;
    entries.know(&["status", "inet", "netmask", "mac", "gateway", "iface", "mtu"])?;
    let status = entries.part("status").map_or(Ok("up".to_owned()), |part| {
        let text = part.text()?;
        if matches!(text.as_str(), "up" | "down") { Ok(text) } else { Err(part.must_be("up or down", &text)) }
    })?;
    let address = |name: &str| entries.part(name).map(|part| part.address()).transpose();
    Ok(DeviceNetwork {
        status,
        inet: entries.required("inet", ADDRESS)?.address()?,
        netmask: address("netmask")?.unwrap_or_default(),
        gateway: address("gateway")?.unwrap_or_default(),
        mac: entries.part("mac").map(|part| part.text()).transpose()?.unwrap_or_default(),
        iface: entries.part("iface").map(|part| part.text()).transpose()?,
        mtu: entries.part("mtu").map(|part| part.number()).transpose()?,
    })
}

fn cpu(part: &Part<'_>) -> Result<CpuInfo, ConfigError> {
    let entries = part.entries("`total: 192`")?;
    entries.know(&["total"])?;
    let total = entries.required("total", "the number of processors")?;
    let count = total.number()?;
    if count == 0 {
        return Err(total.must_be("the number of processors", "0"));
    }
    Ok(CpuInfo { total: Some(f64::from(count)), utilization_rate: None })
}

/// A part that has a size and nothing else.
fn total(part: &Part<'_>) -> Result<u64, ConfigError> {
    let entries = part.entries("`total: 1622952845312`, in bytes")?;
    entries.know(&["total"])?;
    entries.required("total", BYTES)?.bytes()
}

fn memory(total: u64) -> MemoryInfo {
    MemoryInfo { total: Some(total), ..MemoryInfo::default() }
}

fn swap(total: u64) -> SwapInfo {
    SwapInfo { total: Some(total), ..SwapInfo::default() }
}

fn file_systems(part: &Part<'_>) -> Result<Vec<FileSystem>, ConfigError> {
    let file_system = |item: &Part<'_>| {
        let entries = item.entries("`mount_point: /` and the other keys of a file system")?;
        entries.know(&["name", "mount_point", "mount_from", "total"])?;
        Ok(FileSystem {
            name: entries.part("name").map(|part| part.text()).transpose()?.unwrap_or_default(),
            mount_point: entries.required("mount_point", "a path such as /")?.text()?,
            mount_from: entries.required("mount_from", "what is mounted, such as /dev/sda1")?.text()?,
            total: Some(entries.required("total", BYTES)?.bytes()?),
            ..FileSystem::default()
        })
    };
    part.items()?.iter().map(file_system).collect()
}

fn os(part: &Part<'_>) -> Result<OsInfo, ConfigError> {
    let entries = part.entries("`name: openEuler` and `version: 22.03 (LTS-SP4)`")?;
    entries.know(&["name", "version"])?;
    Ok(OsInfo {
        name: entries.required("name", "a name such as openEuler")?.text()?,
        version: entries.required("version", "a version in quotes, such as \"22.03\"")?.text()?,
    })
}

fn kernel(part: &Part<'_>) -> Result<KernelInfo, ConfigError> {
    let entries = part.entries("`name: Linux` and the other words of `uname`")?;
    entries.know(&["name", "release", "version", "architecture"])?;
    Ok(KernelInfo {
        name: entries.required("name", "a name such as Linux")?.text()?,
        release: entries.required("release", "what `uname -r` prints")?.text()?,
        version: entries.required("version", "what `uname -v` prints")?.text()?,
        architecture: entries.part("architecture").map(|part| part.text()).transpose()?.unwrap_or_default(),
    })
}

fn uptime(part: &Part<'_>) -> Result<UptimeInfo, ConfigError> {
    let entries = part.entries("`uptime: 355250885` and `boot_time:`")?;
    entries.know(&["uptime", "boot_time"])?;
    let uptime = entries.required("uptime", "milliseconds")?;
    let milliseconds = uptime.value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    Ok(UptimeInfo {
        uptime: Some(milliseconds.ok_or_else(|| uptime.must_be("milliseconds", &uptime.shown()))?),
        boot_time: Some(entries.required("boot_time", "a time such as 2025-02-24T09:17:51.337+0800")?.text()?),
    })
}

const BYTES: &str = "a whole number of bytes, such as 68719476736";
const ADDRESS: &str = "an IP address such as 192.0.2.10";

/// A value and where it stands.
#[derive(Clone)]
struct Part<'a> {
    value: &'a Value,
    path: String,
    file: &'a Path,
}

/// The keys below a value.
struct Entries<'a> {
    below: &'a Mapping,
    path: String,
    file: &'a Path,
}

impl<'a> Part<'a> {
    fn bad(&self, problem: String) -> ConfigError {
        ConfigError::BadResource { path: self.path.clone(), file: self.file.to_owned(), problem }
    }

    fn must_be(&self, shape: &str, given: &str) -> ConfigError {
        self.bad(format!("is `{given}`; it must be {shape}"))
    }

    fn is_nothing(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// A value as somebody wrote it, short enough for a line.
    fn shown(&self) -> String {
        let text = match self.value {
            Value::String(text) => text.clone(),
            Value::Mapping(_) => "a part with keys".to_owned(),
            Value::Sequence(_) => "a list".to_owned(),
            other => serde_json::to_string(other).unwrap_or_default(),
        };
        text.chars().take(80).collect()
    }

    fn entries(&self, shape: &str) -> Result<Entries<'a>, ConfigError> {
        match self.value {
            Value::Mapping(entries) => Ok(Entries { below: entries, path: self.path.clone(), file: self.file }),
            _ => Err(self.bad(format!("is `{}`; write below it {shape}", self.shown()))),
        }
    }

    fn items(&self) -> Result<Vec<Part<'a>>, ConfigError> {
        let Value::Sequence(items) = self.value else {
            return Err(self.bad(format!("is `{}`; it must be a list, each of its entries behind a `-`", self.shown())));
        };
        let item = |(number, value)| Part { value, path: format!("{}[{number}]", self.path), file: self.file };
        Ok(items.iter().enumerate().map(item).collect())
    }

    fn text(&self) -> Result<String, ConfigError> {
        let Value::String(text) = self.value else {
            return Err(self.must_be("text; put it in quotes", &self.shown()));
        };
        let text = text.trim();
        let is_text = !text.is_empty() && !text.contains(char::is_control) && text.chars().count() <= MOST_CHARACTERS;
        is_text.then(|| text.to_owned()).ok_or_else(|| {
            self.must_be(&format!("text of 1 to {MOST_CHARACTERS} characters on one line"), &self.shown())
        })
    }

    fn number(&self) -> Result<u32, ConfigError> {
        let number = self.value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.must_be("a whole number from 0 on", &self.shown()))
    }

    fn bytes(&self) -> Result<u64, ConfigError> {
        // what a worker tells and a database keeps has a sign
        let most = i64::MAX.unsigned_abs();
        self.value.as_u64().filter(|bytes| (1..=most).contains(bytes)).ok_or_else(|| self.must_be(BYTES, &self.shown()))
    }

    fn truth(&self) -> Result<bool, ConfigError> {
        self.value.as_bool().ok_or_else(|| self.must_be("true or false", &self.shown()))
    }

    fn address(&self) -> Result<String, ConfigError> {
        let text = self.text()?;
        let is_address = text.parse::<IpAddr>().is_ok();
        is_address.then(|| text.clone()).ok_or_else(|| self.must_be(ADDRESS, &text))
    }
}

impl<'a> Entries<'a> {
    fn path_of(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// A key that means nothing is an error.
    fn know(&self, names: &[&str]) -> Result<(), ConfigError> {
        for key in self.below.keys() {
            let name = key.as_str().unwrap_or_default();
            if !names.contains(&name) {
                return Err(ConfigError::UnknownKey {
                    name: self.path_of(name),
                    path: self.file.to_owned(),
                    suggestion: similar(name, names).map(|known| self.path_of(known)),
                });
            }
        }
        Ok(())
    }

    /// A key with nothing behind it is left out.
    fn part(&self, name: &str) -> Option<Part<'a>> {
        let value = self.below.get(name)?;
        let part = Part { value, path: self.path_of(name), file: self.file };
        (!part.is_nothing()).then_some(part)
    }

    fn required(&self, name: &str, shape: &str) -> Result<Part<'a>, ConfigError> {
        self.part(name).ok_or_else(|| ConfigError::BadResource {
            path: self.path_of(name),
            file: self.file.to_owned(),
            problem: format!("is missing; write there {shape}"),
        })
    }

    fn number_or(&self, name: &str, default: u32) -> Result<u32, ConfigError> {
        self.part(name).map_or(Ok(default), |part| part.number())
    }
}

/// The name that somebody may have meant: one with more than half of its letters in place.
fn similar<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let distances = names.iter().map(|&known| (strsim::damerau_levenshtein(known, name), known));
    distances.filter(|(distance, known)| distance * 2 < known.len()).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: &str = r##"
gpu_devices:
  - name: 910B3
    vendor: Huawei
    type: npu
    index: 0
    device_index: 4
    device_chip_index: 1
    uuid: 00000001 00000002
    core:
      total: 20
    memory:
      total: 68719476736
      is_unified_memory: false
    network:
      inet: 192.0.2.10
      netmask: 255.255.255.0
      mtu: 8192
  - {name: A800, vendor: nvidia, index: 1, memory: {total: 85899345920}}
cpu: {total: 192}
memory: {total: 1622952845312}
swap: {total: 4294963200}
filesystem:
  - {name: sda1, mount_point: /, mount_from: /dev/sda1, total: 982141468672}
os: {name: openEuler, version: "22.03"}
kernel: {name: Linux, release: 5.10.0, version: "#1 SMP", architecture: aarch64}
uptime: {uptime: 355250885, boot_time: "2025-02-24T09:17:51.337+0800"}
"##;

    fn read(text: &str) -> Result<Resources, ConfigError> {
        let value: Value = serde_norway::from_str(text).unwrap();
        Resources::read(&value, Path::new("/etc/gpustack.yaml"), &mut Vec::new())
    }

    #[test]
    fn everything_that_gpustack_reads_is_read() {
        let mut status = WorkerStatus::default();
        read(EVERYTHING).unwrap().fill(&mut status);
        insta::assert_json_snapshot!("resources", status);
    }

    #[test]
    fn the_guides_examples_are_read_as_they_stand() {
        let guides = [include_str!("../../docs/operating.md"), include_str!("../../docs/operating.zh.md")];
        for guide in guides {
            let (_, example) = guide.split_once("```yaml\nresources:\n").unwrap();
            let (example, _) = example.split_once("```").unwrap();
            let resources = read(example).unwrap();
            assert!(resources.uptime.is_some() && resources.gpu_devices.is_some_and(|devices| devices.len() == 1));
        }
    }

    #[test]
    fn what_is_left_out_stays_as_it_was_found() {
        let found = WorkerStatus {
            cpu: Some(CpuInfo { total: Some(8.0), utilization_rate: Some(12.5) }),
            os: Some(OsInfo { name: "Ubuntu".into(), version: "24.04".into() }),
            gpu_devices: Some(vec![GpuDevice::default()]),
            ..WorkerStatus::default()
        };
        let mut status = found.clone();
        read("").unwrap().fill(&mut status);
        assert_eq!(status, found);
        read("cpu: {total: 4}\nos:\n").unwrap().fill(&mut status);
        let cpu = Some(CpuInfo { total: Some(4.0), utilization_rate: None });
        assert_eq!(status, WorkerStatus { cpu, ..found.clone() });
        read("gpu_devices: []").unwrap().fill(&mut status);
        assert_eq!(status.gpu_devices, Some(Vec::new()));
    }

    #[test]
    fn a_wrong_key_or_value_is_told_with_its_place_and_what_to_write() {
        let device = |changes: &str| {
            format!("gpu_devices: [{{name: a, vendor: amd, index: 0, memory: {{total: 1}}}}, {{{changes}}}]")
        };
        for (text, expected) in [
            ("gpus: []".into(), "unknown key `resources.gpus` in /etc/gpustack.yaml"),
            ("cpus: 1".into(), "unknown key `resources.cpus` in /etc/gpustack.yaml; did you mean `resources.cpu`?"),
            ("cpu: 4".into(), "`resources.cpu` in /etc/gpustack.yaml is `4`; write below it `total: 192`"),
            (
                "cpu: {}".into(),
                "`resources.cpu.total` in /etc/gpustack.yaml is missing; write there the number of processors",
            ),
            (
                "cpu: {total: 0}".into(),
                "`resources.cpu.total` in /etc/gpustack.yaml is `0`; it must be the number of processors",
            ),
            (
                "memory: {total: 64GB}".into(),
                "`resources.memory.total` in /etc/gpustack.yaml is `64GB`; it must be a whole number of bytes, such as 68719476736",
            ),
            (
                "memory: {total: -1}".into(),
                "`resources.memory.total` in /etc/gpustack.yaml is `-1`; it must be a whole number of bytes, such as 68719476736",
            ),
            (
                "os: {name: openEuler, version: 22.03}".into(),
                "`resources.os.version` in /etc/gpustack.yaml is `22.03`; it must be text; put it in quotes",
            ),
            (
                "filesystem: /".into(),
                "`resources.filesystem` in /etc/gpustack.yaml is `/`; it must be a list, each of its entries behind a `-`",
            ),
            (
                device("vendor: AMD"),
                "`resources.gpu_devices[1].index` in /etc/gpustack.yaml is missing; write there a number from 0 on",
            ),
            (
                device("vendor: Acme"),
                "`resources.gpu_devices[1].vendor` in /etc/gpustack.yaml is `Acme`; it must be one of Huawei, NVIDIA, AMD, Moore Threads, Apple, Hygon, Iluvatar, Cambricon, MetaX",
            ),
            (
                device("name: a, vendor: amd, index: 0, memory: {total: 1}"),
                "`resources.gpu_devices[1]` in /etc/gpustack.yaml has index 0, as another has; each needs one of its own",
            ),
            (
                device("name: a, vendor: amd, type: gpu, index: 1, memory: {total: 1}"),
                "`resources.gpu_devices[1].type` in /etc/gpustack.yaml is `gpu`; it must be one of npu, cuda, rocm, musa, mps, dcu, corex, mlu, maca",
            ),
            (
                device("indx: 1"),
                "unknown key `resources.gpu_devices[1].indx` in /etc/gpustack.yaml; did you mean `resources.gpu_devices[1].index`?",
            ),
            (
                device("name: a, vendor: amd, index: 1, memory: {total: 1}, network: {inet: here}"),
                "`resources.gpu_devices[1].network.inet` in /etc/gpustack.yaml is `here`; it must be an IP address such as 192.0.2.10",
            ),
        ] {
            assert_eq!(read(&text).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn keys_of_gpustack_2_without_a_use_here_are_a_warning() {
        let text = "gpu_devices: [{name: a, vendor: ascend, index: 0, arch_family: Ascend910B2, memory: {total: 1}}]";
        let (value, mut warnings): (Value, _) = (serde_norway::from_str(text).unwrap(), Vec::new());
        let resources = Resources::read(&value, Path::new("/c"), &mut warnings).unwrap();
        assert_eq!(resources.gpu_devices.unwrap()[0].kind, DeviceType::Npu);
        assert_eq!(warnings, ["`resources.gpu_devices[0].arch_family` in /c has no effect in this version"]);
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_read_or_refused_without_a_panic(text in "(gpu_devices|cpu|memory|total|index|name|vendor|[0-9.eE+-]{1,12}|[:{}\\[\\], \n-]|\\PC){0,60}") {
            if let Ok(value) = serde_norway::from_str::<Value>(&text) {
                let _ = Resources::read(&value, Path::new("/c"), &mut Vec::new());
            }
        }
    }
}
