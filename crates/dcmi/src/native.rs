//! The library's functions as it has them, and all unsafe code. Names, parameters and layouts are those of the vendor's
//! header (see the crate's documentation). Both families of functions are looked for; each function may be missing.

use crate::report::{Absent, Failure, Reading, code};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY};
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulong, c_ulonglong};
use std::path::Path;

/// Cards or chips in a list (`MAX_CARD_NUM`).
const MOST_LISTED: u8 = 64;
/// Chips on a card: the vendor's programs count up to four.
const MOST_CHIPS_OF_A_CARD: c_int = 16;
/// Codes in the list of what ails a chip.
const MOST_CODES: u8 = 128;
/// Processes in a list; the library gives 32 at most and is not told how many fit.
const MOST_PROCESSES: usize = 128;
/// A version, with its final zero; the library wants 64 at least.
const VERSION_BYTES: u16 = 256;
/// Behind whatever the library writes: a release whose structures have grown does no harm.
const SPARE_BYTES: usize = 1024;

/// `DCMI_OK`.
const OK: c_int = 0;
/// `NPU_TYPE`; a card's management controller and its processor are listed beside the chips.
const CHIP: c_int = 0;

/// How the functions name a chip.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// For `dcmi_…`.
    OnCard {
        /// The card.
        card: c_int,
        /// The chip on it.
        chip: c_int,
    },
    /// For `dcmiv2_…`: the logic id.
    Device(c_int),
}

/// What a function may fill in: numbers and nothing else, so that any bits are a value.
pub(crate) trait Filled: Copy {
    /// Before the library writes.
    const EMPTY: Self;
}

impl Filled for c_int {
    const EMPTY: Self = 0;
}

impl Filled for c_uint {
    const EMPTY: Self = 0;
}

/// `dcmi_chip_info_v2`; the older `dcmi_chip_info` is the same without the last field.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ChipInfo {
    kind: [c_uchar; 32],
    pub(crate) name: [c_uchar; 32],
    version: [c_uchar; 32],
    pub(crate) ai_cores: c_uint,
    npu_name: [c_uchar; 32],
}

impl Filled for ChipInfo {
    const EMPTY: Self = Self { kind: [0; 32], name: [0; 32], version: [0; 32], ai_cores: 0, npu_name: [0; 32] };
}

/// `dcmi_pcie_info_all`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct PcieInfo {
    vendor: c_uint,
    sub_vendor: c_uint,
    device_kind: c_uint,
    sub_device_kind: c_uint,
    pub(crate) domain: c_int,
    pub(crate) bus: c_uint,
    pub(crate) device: c_uint,
    pub(crate) function: c_uint,
    reserve: [c_uchar; 32],
}

impl Filled for PcieInfo {
    const EMPTY: Self = Self {
        vendor: 0,
        sub_vendor: 0,
        device_kind: 0,
        sub_device_kind: 0,
        domain: 0,
        bus: 0,
        device: 0,
        function: 0,
        reserve: [0; 32],
    };
}

/// `dcmi_hbm_info`; sizes in MiB.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct HbmInfo {
    pub(crate) size_mib: c_ulonglong,
    frequency: c_uint,
    pub(crate) used_mib: c_ulonglong,
    temperature: c_int,
    bandwidth: c_uint,
}

impl Filled for HbmInfo {
    const EMPTY: Self = Self { size_mib: 0, frequency: 0, used_mib: 0, temperature: 0, bandwidth: 0 };
}

/// `dcmi_get_memory_info_stru`: DDR; sizes in MiB.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct MemoryInfo {
    pub(crate) size_mib: c_ulonglong,
    pub(crate) available_mib: c_ulonglong,
    frequency: c_uint,
    huge_page_kib: c_ulong,
    huge_pages: c_ulong,
    huge_pages_free: c_ulong,
    utilization: c_uint,
    reserve: [c_uchar; 60],
}

impl Filled for MemoryInfo {
    const EMPTY: Self = Self {
        size_mib: 0,
        available_mib: 0,
        frequency: 0,
        huge_page_kib: 0,
        huge_pages: 0,
        huge_pages_free: 0,
        utilization: 0,
        reserve: [0; 60],
    };
}

/// `dcmi_die_id`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct DieId(pub(crate) [c_uint; 5]);

impl Filled for DieId {
    const EMPTY: Self = Self([0; 5]);
}

/// `dcmi_proc_mem_info`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ProcessMemory {
    pub(crate) pid: c_int,
    pub(crate) bytes: c_ulong,
}

impl ProcessMemory {
    const EMPTY: Self = Self { pid: 0, bytes: 0 };
}

/// Which die's id is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Die {
    /// `VDIE`, until Ascend 950.
    Vector = 1,
    /// `DDIE`, from Ascend 950 on.
    Device = 2,
}

/// Which part's use is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// `DCMI_UTILIZATION_RATE_AICORE`.
    AiCore = 2,
    /// The whole of it, which is what newer drivers know.
    Whole = 13,
}

/// Which part's firmware is asked for (`dcmi_component_type`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Component {
    /// `DCMI_COMPONENT_TYPE_XLOADER`.
    Xloader = 1,
    /// `DCMI_COMPONENT_TYPE_IMU`.
    Imu = 8,
    /// `DCMI_COMPONENT_TYPE_HILINK`.
    Hilink = 18,
}

/// Room for what a function writes.
#[repr(C)]
struct Room<T> {
    value: T,
    spare: [u8; SPARE_BYTES],
}

impl<T: Copy> Room<T> {
    fn new(empty: T) -> Self {
        Self { value: empty, spare: [0; SPARE_BYTES] }
    }

    /// Good for the whole room.
    fn pointer(&mut self) -> *mut T {
        (&raw mut *self).cast()
    }
}

/// A function that tells one thing of a chip.
pub(crate) enum Ask<T> {
    Missing,
    OnCard(unsafe extern "C" fn(c_int, c_int, *mut T) -> c_int),
    OfDevice(unsafe extern "C" fn(c_int, *mut T) -> c_int),
}

impl<T: Filled> Ask<T> {
    pub(crate) fn get(&self, place: Place) -> Reading<T> {
        let mut room = Room::new(T::EMPTY);
        let code = match (self, place) {
            // SAFETY: the function has these parameters, and writes a `T`, for which there is room.
            (Self::OnCard(function), Place::OnCard { card, chip }) => unsafe { function(card, chip, room.pointer()) },
            // SAFETY: as above.
            (Self::OfDevice(function), Place::Device(id)) => unsafe { function(id, room.pointer()) },
            _ => return Err(Absent::NoFunction),
        };
        worked(code)?;
        Ok(room.value)
    }
}

/// The same with a choice of what.
pub(crate) enum AskFor<T> {
    Missing,
    OnCard(unsafe extern "C" fn(c_int, c_int, c_int, *mut T) -> c_int),
    OfDevice(unsafe extern "C" fn(c_int, c_int, *mut T) -> c_int),
}

impl<T: Filled> AskFor<T> {
    pub(crate) fn get(&self, place: Place, what: c_int) -> Reading<T> {
        let mut room = Room::new(T::EMPTY);
        let code = match (self, place) {
            // SAFETY: the function has these parameters, and writes a `T`, for which there is room.
            (Self::OnCard(function), Place::OnCard { card, chip }) => unsafe {
                function(card, chip, what, room.pointer())
            },
            // SAFETY: as above.
            (Self::OfDevice(function), Place::Device(id)) => unsafe { function(id, what, room.pointer()) },
            _ => return Err(Absent::NoFunction),
        };
        worked(code)?;
        Ok(room.value)
    }
}

type CodesOnCard = unsafe extern "C" fn(c_int, c_int, *mut c_int, *mut c_uint, c_uint) -> c_int;
type CodesOfDevice = unsafe extern "C" fn(c_int, *mut c_int, *mut c_uint, c_uint) -> c_int;

/// What ails a chip.
pub(crate) enum AskCodes {
    Missing,
    OnCard(CodesOnCard),
    OfDevice(CodesOfDevice),
}

impl AskCodes {
    pub(crate) fn get(&self, place: Place) -> Reading<Vec<u32>> {
        let (mut count, mut codes) = (Room::new(0), Room::new([0; MOST_CODES as usize]));
        let (counted, list, room) = (count.pointer(), codes.pointer().cast(), c_uint::from(MOST_CODES));
        let code = match (self, place) {
            // SAFETY: the function has these parameters, and writes no more codes than it is told there is room for.
            (Self::OnCard(function), Place::OnCard { card, chip }) => unsafe {
                function(card, chip, counted, list, room)
            },
            // SAFETY: as above.
            (Self::OfDevice(function), Place::Device(id)) => unsafe { function(id, counted, list, room) },
            _ => return Err(Absent::NoFunction),
        };
        worked(code)?;
        let count = usize::try_from(count.value).map_err(|_| Absent::Nonsense)?;
        codes.value.get(..count).map(<[u32]>::to_vec).ok_or(Absent::Nonsense)
    }
}

type ProcessesOnCard = unsafe extern "C" fn(c_int, c_int, *mut ProcessMemory, *mut c_int) -> c_int;
type ProcessesOfDevice = unsafe extern "C" fn(c_int, *mut ProcessMemory, *mut c_int) -> c_int;

/// Who uses a chip.
pub(crate) enum AskProcesses {
    Missing,
    OnCard(ProcessesOnCard),
    OfDevice(ProcessesOfDevice),
}

impl AskProcesses {
    pub(crate) fn get(&self, place: Place) -> Reading<Vec<ProcessMemory>> {
        let (mut count, mut list) = (Room::new(0), Room::new([ProcessMemory::EMPTY; MOST_PROCESSES]));
        let (counted, listed) = (count.pointer(), list.pointer().cast());
        let code = match (self, place) {
            // SAFETY: the function has these parameters, and writes 32 processes at most, for which there is room.
            (Self::OnCard(function), Place::OnCard { card, chip }) => unsafe { function(card, chip, listed, counted) },
            // SAFETY: as above.
            (Self::OfDevice(function), Place::Device(id)) => unsafe { function(id, listed, counted) },
            _ => return Err(Absent::NoFunction),
        };
        worked(code)?;
        let count = usize::try_from(count.value).map_err(|_| Absent::Nonsense)?;
        list.value.get(..count).map(<[ProcessMemory]>::to_vec).ok_or(Absent::Nonsense)
    }
}

type VersionOnCard = unsafe extern "C" fn(c_int, c_int, c_int, *mut c_uchar, c_uint) -> c_int;
type VersionOfDevice = unsafe extern "C" fn(c_int, c_int, *mut c_uchar, c_uint) -> c_int;

/// The version of a chip's firmware.
pub(crate) enum AskVersion {
    Missing,
    OnCard(VersionOnCard),
    OfDevice(VersionOfDevice),
}

impl AskVersion {
    pub(crate) fn get(&self, place: Place, of: Component) -> Reading<String> {
        let mut room = Room::new([0; VERSION_BYTES as usize]);
        let (version, size, of) = (room.pointer().cast(), c_uint::from(VERSION_BYTES), of as c_int);
        let code = match (self, place) {
            // SAFETY: the function has these parameters, and writes no more bytes than it is told there is room for.
            (Self::OnCard(function), Place::OnCard { card, chip }) => unsafe {
                function(card, chip, of, version, size)
            },
            // SAFETY: as above.
            (Self::OfDevice(function), Place::Device(id)) => unsafe { function(id, of, version, size) },
            _ => return Err(Absent::NoFunction),
        };
        worked(code)?;
        text(&room.value)
    }
}

/// The version of the driver.
type DriverVersion = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
/// A list of cards or of devices; which parameter is the number differs.
type List = unsafe extern "C" fn(*mut c_int, *mut c_int, c_int) -> c_int;
type CountOnCard = unsafe extern "C" fn(c_int, *mut c_int) -> c_int;
type LogicId = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
type PhysicalId = unsafe extern "C" fn(c_uint, *mut c_uint) -> c_int;
type Init = unsafe extern "C" fn() -> c_int;

/// How chips are found.
pub(crate) enum Lister {
    Cards { cards: List, count: CountOnCard, logic_id: Option<LogicId>, card_power: Option<CountOnCard> },
    Devices { devices: List },
}

/// A library that has started.
pub(crate) struct Driver {
    pub(crate) lister: Lister,
    physical_id: Option<PhysicalId>,
    release: Option<DriverVersion>,
    kind: Ask<c_int>,
    pub(crate) chip_info: Ask<ChipInfo>,
    pub(crate) pcie: Ask<PcieInfo>,
    pub(crate) health: Ask<c_uint>,
    pub(crate) temperature: Ask<c_int>,
    pub(crate) power: Ask<c_int>,
    pub(crate) hbm: Ask<HbmInfo>,
    pub(crate) memory: Ask<MemoryInfo>,
    pub(crate) utilization: AskFor<c_uint>,
    pub(crate) die: AskFor<DieId>,
    pub(crate) codes: AskCodes,
    pub(crate) processes: AskProcesses,
    pub(crate) version: AskVersion,
}

impl Driver {
    /// Loads and starts it. It is never unloaded: threads that it started may still run in it.
    pub(crate) fn start(path: &Path) -> Result<Self, Failure> {
        // SAFETY: whatever the library does when it is loaded, it does to this process, which has nothing to lose.
        let library = unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_GLOBAL) };
        let library: &'static Library = match library {
            Ok(library) => Box::leak(Box::new(library)),
            Err(error) => return Err(Failure::NotLoaded(error.to_string())),
        };
        // SAFETY: both functions have no parameters and return a code.
        let (cards, devices) = unsafe { (find::<Init>(library, &["dcmi_init"]), find(library, &["dcmiv2_init"])) };
        if cards.is_none() && devices.is_none() {
            return Err(Failure::Lacks("dcmi_init".to_owned()));
        }
        // The older family first: where it works, it alone knows cards.
        let first = started(cards);
        if first == Some(OK) {
            return Self::by_cards(library);
        }
        let second = started(devices);
        if second == Some(OK) {
            return Self::by_devices(library);
        }
        // That the older family is not supported is no news where the newer one has something to say.
        let told = first.filter(|&code| code != code::NOT_SUPPORTED).or(second).or(first);
        Err(Failure::NotStarted(told.unwrap_or_default()))
    }

    fn by_cards(library: &Library) -> Result<Self, Failure> {
        let lacks = |name: &str| Failure::Lacks(name.to_owned());
        // SAFETY: each function is taken with the parameters that it has in the vendor's header.
        unsafe {
            let on_card = |name| find(library, &[name]);
            Ok(Self {
                lister: Lister::Cards {
                    cards: find(library, &["dcmi_get_card_list", "dcmi_get_card_num_list"])
                        .ok_or_else(|| lacks("dcmi_get_card_list"))?,
                    count: find(library, &["dcmi_get_device_num_in_card"])
                        .ok_or_else(|| lacks("dcmi_get_device_num_in_card"))?,
                    logic_id: find(library, &["dcmi_get_device_logic_id"]),
                    card_power: find(library, &["dcmi_mcu_get_power_info"]),
                },
                physical_id: find(library, &["dcmi_get_device_phyid_from_logicid"]),
                release: find(library, &["dcmi_get_driver_version"]),
                kind: on_card("dcmi_get_device_type").map_or(Ask::Missing, Ask::OnCard),
                chip_info: find(library, &["dcmi_get_device_chip_info"]).map_or(Ask::Missing, Ask::OnCard),
                pcie: find(library, &["dcmi_get_device_pcie_info_v2"]).map_or(Ask::Missing, Ask::OnCard),
                health: find(library, &["dcmi_get_device_health"]).map_or(Ask::Missing, Ask::OnCard),
                temperature: on_card("dcmi_get_device_temperature").map_or(Ask::Missing, Ask::OnCard),
                power: on_card("dcmi_get_device_power_info").map_or(Ask::Missing, Ask::OnCard),
                hbm: find(library, &["dcmi_get_device_hbm_info"]).map_or(Ask::Missing, Ask::OnCard),
                memory: find(library, &["dcmi_get_device_memory_info_v3"]).map_or(Ask::Missing, Ask::OnCard),
                utilization: find(library, &["dcmi_get_device_utilization_rate"])
                    .map_or(AskFor::Missing, AskFor::OnCard),
                die: find(library, &["dcmi_get_device_die_v2"]).map_or(AskFor::Missing, AskFor::OnCard),
                codes: find(library, &["dcmi_get_device_errorcode_v2"]).map_or(AskCodes::Missing, AskCodes::OnCard),
                processes: find(library, &["dcmi_get_device_resource_info"])
                    .map_or(AskProcesses::Missing, AskProcesses::OnCard),
                version: find(library, &["dcmi_get_device_component_static_version"])
                    .map_or(AskVersion::Missing, AskVersion::OnCard),
            })
        }
    }

    /// Early releases spell some of the names otherwise.
    fn by_devices(library: &Library) -> Result<Self, Failure> {
        let list = "dcmiv2_get_device_list";
        // SAFETY: each function is taken with the parameters that it has in the vendor's header.
        unsafe {
            let of_device = |name| find(library, &[name]);
            Ok(Self {
                lister: Lister::Devices {
                    devices: find(library, &[list]).ok_or_else(|| Failure::Lacks(list.to_owned()))?,
                },
                physical_id: find(library, &["dcmiv2_get_chip_phy_id_by_dev_id", "dcmiv2_get_chip_phyid_from_dev_id"]),
                release: find(library, &["dcmiv2_get_driver_version"]),
                kind: of_device("dcmiv2_get_device_type").map_or(Ask::Missing, Ask::OfDevice),
                chip_info: find(library, &["dcmiv2_get_device_chip_info"]).map_or(Ask::Missing, Ask::OfDevice),
                pcie: find(library, &["dcmiv2_get_device_pcie_info"]).map_or(Ask::Missing, Ask::OfDevice),
                health: find(library, &["dcmiv2_get_device_health"]).map_or(Ask::Missing, Ask::OfDevice),
                temperature: of_device("dcmiv2_get_device_temperature").map_or(Ask::Missing, Ask::OfDevice),
                power: of_device("dcmiv2_get_device_power_info").map_or(Ask::Missing, Ask::OfDevice),
                hbm: find(library, &["dcmiv2_get_device_hbm_info"]).map_or(Ask::Missing, Ask::OfDevice),
                memory: Ask::Missing,
                utilization: find(library, &["dcmiv2_get_device_utilization_rate"])
                    .map_or(AskFor::Missing, AskFor::OfDevice),
                die: find(library, &["dcmiv2_get_device_die_id", "dcmiv2_get_device_die"])
                    .map_or(AskFor::Missing, AskFor::OfDevice),
                codes: find(library, &["dcmiv2_get_device_error_code_list", "dcmiv2_get_device_errorcode"])
                    .map_or(AskCodes::Missing, AskCodes::OfDevice),
                processes: find(library, &["dcmiv2_get_device_proc_mem_info", "dcmiv2_get_device_resource_info"])
                    .map_or(AskProcesses::Missing, AskProcesses::OfDevice),
                version: find(library, &["dcmiv2_get_device_component_static_version"])
                    .map_or(AskVersion::Missing, AskVersion::OfDevice),
            })
        }
    }

    /// The cards, or the devices.
    pub(crate) fn listed(&self) -> Result<Vec<c_int>, Failure> {
        let (mut list, mut count) = (Room::new([0; MOST_LISTED as usize]), Room::new(0));
        let (entries, counted, room) = (list.pointer().cast(), count.pointer(), c_int::from(MOST_LISTED));
        let code = match &self.lister {
            // SAFETY: the function has these parameters, and writes no more numbers than it is told there is room for.
            Lister::Cards { cards, .. } => unsafe { cards(counted, entries, room) },
            // SAFETY: as above.
            Lister::Devices { devices } => unsafe { devices(entries, counted, room) },
        };
        worked(code).map_err(|_| Failure::NoList(code))?;
        let nonsense = || Failure::Nonsense(format!("a list of {} where {MOST_LISTED} fit", count.value));
        let count = usize::try_from(count.value).map_err(|_| nonsense())?;
        list.value.get(..count).map(<[c_int]>::to_vec).ok_or_else(nonsense)
    }

    /// The places on a card, management controllers left out.
    pub(crate) fn chips_of(&self, card: c_int) -> Result<Vec<Place>, Failure> {
        let Lister::Cards { count, .. } = &self.lister else { return Ok(vec![Place::Device(card)]) };
        let mut room = Room::new(0);
        // SAFETY: the function has these parameters, and writes a number, for which there is room.
        let code = unsafe { count(card, room.pointer()) };
        worked(code).map_err(|_| Failure::NoList(code))?;
        let count = room.value;
        if !(0..=MOST_CHIPS_OF_A_CARD).contains(&count) {
            return Err(Failure::Nonsense(format!("{count} chips on card {card}")));
        }
        Ok((0..count).map(|chip| Place::OnCard { card, chip }).collect())
    }

    /// Whether a chip is there, and not a management controller.
    pub(crate) fn is_chip(&self, place: Place) -> bool {
        self.kind.get(place).map_or(true, |kind| kind == CHIP)
    }

    pub(crate) fn logic_id(&self, place: Place) -> Reading<u32> {
        let (card, chip) = match place {
            Place::Device(id) => return u32::try_from(id).map_err(|_| Absent::Nonsense),
            Place::OnCard { card, chip } => (card, chip),
        };
        let Lister::Cards { logic_id: Some(function), .. } = &self.lister else { return Err(Absent::NoFunction) };
        let mut room = Room::new(0);
        // SAFETY: the function has these parameters, and writes a number, for which there is room.
        worked(unsafe { function(room.pointer(), card, chip) })?;
        u32::try_from(room.value).map_err(|_| Absent::Nonsense)
    }

    pub(crate) fn physical_id(&self, logic_id: u32) -> Reading<u32> {
        let function = self.physical_id.ok_or(Absent::NoFunction)?;
        let mut room = Room::new(0);
        // SAFETY: the function has these parameters, and writes a number, for which there is room.
        worked(unsafe { function(logic_id, room.pointer()) })?;
        Ok(room.value)
    }

    /// Tenths of watts, by the card's management controller.
    pub(crate) fn card_power(&self, card: c_int) -> Reading<c_int> {
        let Lister::Cards { card_power: Some(function), .. } = &self.lister else { return Err(Absent::NoFunction) };
        let mut room = Room::new(0);
        // SAFETY: the function has these parameters, and writes a number, for which there is room.
        worked(unsafe { function(card, room.pointer()) })?;
        Ok(room.value)
    }

    pub(crate) fn driver_version(&self) -> Reading<String> {
        let function = self.release.ok_or(Absent::NoFunction)?;
        let mut room = Room::new([0; VERSION_BYTES as usize]);
        // SAFETY: the function has these parameters, and writes no more bytes than it is told there is room for.
        worked(unsafe { function(room.pointer().cast(), c_uint::from(VERSION_BYTES)) })?;
        text(&room.value)
    }
}

fn started(init: Option<Init>) -> Option<c_int> {
    // SAFETY: the function has no parameters; whatever it does, it does to this process.
    init.map(|init| unsafe { init() })
}

/// The first of these names that the library has.
///
/// # Safety
///
/// `F` has to be a pointer to a function with the parameters that the named ones have.
unsafe fn find<F: Copy>(library: &Library, names: &[&str]) -> Option<F> {
    names.iter().find_map(|name| {
        // SAFETY: by the caller's word; a name without an address is none.
        let symbol = unsafe { library.get::<Option<F>>(name.as_bytes()) };
        symbol.ok().and_then(|symbol| *symbol)
    })
}

fn worked(code: c_int) -> Reading<()> {
    if code == OK { Ok(()) } else { Err(Absent::Code(code)) }
}

/// Text up to its final zero. What has none, or is no text, was not written by anybody who meant it.
pub(crate) fn text(bytes: &[u8]) -> Reading<String> {
    let end = bytes.iter().position(|&byte| byte == 0).ok_or(Absent::Nonsense)?;
    let text = bytes.get(..end).and_then(|text| std::str::from_utf8(text).ok()).map(str::trim);
    let text = text.filter(|text| !text.is_empty() && !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or(Absent::Nonsense)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_vendors_header() {
        let sizes = [
            size_of::<ChipInfo>(),
            size_of::<PcieInfo>(),
            size_of::<HbmInfo>(),
            size_of::<MemoryInfo>(),
            size_of::<DieId>(),
            size_of::<ProcessMemory>(),
        ];
        assert_eq!(sizes, [132, 64, 32, 112, 20, 16]);
    }

    #[test]
    fn text_ends_with_a_zero_and_is_text() {
        assert_eq!(text(b"910B3\0\xff\xff"), Ok("910B3".to_owned()));
        for bytes in [b"910B3".as_slice(), b"\0", b"", b"\xff\xfe\0", b"a\x1b[2J\0", b"  \0"] {
            assert_eq!(text(bytes), Err(Absent::Nonsense), "{bytes:?}");
        }
    }
}
