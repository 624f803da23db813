//! What the process with the library answers: one line of JSON for each question.

use serde::{Deserialize, Serialize};

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// All chips.
    Read(Report),
    /// The library cannot be used now.
    Failed(Failure),
}

/// What the library told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// By which of its two families of functions.
    pub interface: Interface,
    /// Of the driver that runs.
    pub driver_version: Reading<String>,
    /// In the library's order.
    pub chips: Vec<Chip>,
}

/// A family of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// `dcmi_…`: chips are named by their card and their place on it.
    Cards,
    /// `dcmiv2_…`: chips are named by their logic id. The only one on Ascend 950.
    Devices,
}

/// One chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chip {
    /// The card, as the vendor's tool numbers it.
    pub card: u32,
    /// The chip on the card.
    pub chip: u32,
    /// The number that programs use here.
    pub logic_id: Reading<u32>,
    /// The number on the host.
    pub physical_id: Reading<u32>,
    /// e.g. `910B3`.
    pub name: Reading<String>,
    /// How many AI cores.
    pub ai_cores: Reading<u32>,
    /// The id of the silicon.
    pub die: Reading<[u32; 5]>,
    /// Of the chip's firmware.
    pub firmware_version: Reading<String>,
    /// Its place on the PCI bus.
    pub bus: Reading<BusAddress>,
    /// 0 in order, 1 a minor alarm, 2 a major one, 3 a critical one, `u32::MAX` no such chip.
    pub health: Reading<u32>,
    /// What ails it, in the vendor's numbers.
    pub error_codes: Reading<Vec<u32>>,
    /// Degrees Celsius.
    pub temperature_c: Reading<i32>,
    /// Tenths of watts.
    pub power_tenth_w: Reading<i32>,
    /// Tenths of watts of the whole card, by its management controller; asked where no chip of the card tells its own.
    pub card_power_tenth_w: Option<Reading<i32>>,
    /// Percent.
    pub utilization_percent: Reading<u32>,
    /// The memory that models are loaded into.
    pub memory: Reading<Memory>,
    /// Who uses it.
    pub processes: Reading<Vec<Process>>,
}

/// A place on the PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusAddress {
    /// Domain.
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Device.
    pub device: u32,
    /// Function.
    pub function: u32,
}

/// A chip's memory, in MiB; the total is never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Which memory it is.
    pub kind: MemoryKind,
    /// All of it.
    pub total_mib: u64,
    /// In use.
    pub used_mib: Reading<u64>,
}

/// Which memory a chip works in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// High-bandwidth memory, on the chip's package.
    Hbm,
    /// DDR on the card.
    Ddr,
}

/// A process that uses a chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// On the host.
    pub pid: u32,
    /// As the kernel has it; empty where the number is of another namespace, or the process has ended.
    pub name: String,
    /// Bytes.
    pub memory_bytes: u64,
}

/// A reading, or why there is none.
pub type Reading<T> = Result<T, Absent>;

/// Why a reading is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Absent {
    /// This library has no function for it.
    NoFunction,
    /// The function answered with this code; see [`code`].
    Code(i32),
    /// The function said that it worked, and gave what cannot be.
    Nonsense,
}

/// Why the library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The loader refused it; in the loader's words.
    NotLoaded(String),
    /// It lacks this function.
    Lacks(String),
    /// It did not start, with this code.
    NotStarted(i32),
    /// It did not list the chips, with this code.
    NoList(i32),
    /// It listed what cannot be; what that was.
    Nonsense(String),
}

/// The library's codes that mean something here (DCMI API reference, return codes; `DCMI_ERR_CODE_…`).
pub mod code {
    /// The caller may not.
    pub const NOT_PERMITTED: i32 = -8002;
    /// No chip has this number.
    pub const NO_SUCH_ID: i32 = -8007;
    /// The chip is not there.
    pub const NO_SUCH_DEVICE: i32 = -8008;
    /// The chip has not started yet, or has dropped off.
    pub const NOT_READY: i32 = -8012;
    /// Not in a container.
    pub const NOT_IN_CONTAINER: i32 = -8013;
    /// Another container holds the chip.
    pub const IN_USE: i32 = -8020;
    /// This chip, or this driver, knows no such thing.
    pub const NOT_SUPPORTED: i32 = -8255;
}
