//! NVIDIA, by its driver's management library and, where that cannot be used, by its tool `nvidia-smi`.

pub(crate) mod exporter;
mod failures;
mod nvml;
mod partitions;
mod processes;
mod query;

use crate::one_tool::{Description, Library, More, Way};
use crate::text;
use crate::vendor::Maker;
use api::DeviceType;

/// The tool's name.
const TOOL: &str = "nvidia-smi";
/// The driver's management library.
const LIBRARY: &str = "libnvidia-ml.so";
/// Where the driver's packages and the container runtime put its management library.
const LIBRARIES: [&str; 7] = [
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib/libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
];
/// Which processes use which card.
const PROCESSES: More = More {
    question: &["--query-compute-apps=gpu_uuid,pid,used_memory,process_name", "--format=csv,noheader,nounits"],
    is_wanted: |cards| !cards.is_empty(),
    is_lasting: false,
    add: processes::add,
};
/// The newest CUDA that the driver goes with stands above the table for people.
const CUDA: More = More {
    question: &[],
    is_wanted: |cards| !cards.is_empty(),
    is_lasting: true,
    add: |cards, printed| {
        for card in cards {
            card.runtime_version = text::after(printed, "CUDA Version:");
        }
    },
};
/// Which parts a card is cut into.
const PARTITIONS: More =
    More { question: &["-L"], is_wanted: partitions::may_be_there, is_lasting: true, add: partitions::add };

pub(crate) const NVIDIA: Description = Description {
    maker: Maker::Nvidia,
    kind: DeviceType::Cuda,
    library: Some(Library { files: &LIBRARIES, read: nvml::read }),
    ways: &[
        Way {
            tool: TOOL,
            question: &[
                "--query-gpu=index,name,uuid,pci.bus_id,driver_version,vbios_version,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,mig.mode.current",
                "--format=csv,nounits",
            ],
            parse: query::parse,
            more: &[PARTITIONS, CUDA, PROCESSES],
        },
        // Drivers from before 2020 know no parts of cards and refuse the whole question.
        Way {
            tool: TOOL,
            question: &[
                "--query-gpu=index,name,uuid,pci.bus_id,driver_version,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw",
                "--format=csv,nounits",
            ],
            parse: query::parse,
            more: &[CUDA, PROCESSES],
        },
    ],
    directories: &["/usr/bin", "/usr/local/nvidia/bin", "/run/nvidia/driver/usr/bin", "/usr/lib/wsl/lib"],
    libraries: &["/usr/local/nvidia/lib64", "/usr/local/nvidia/lib"],
    nodes: &["/dev/nvidiactl"],
    has_exporter: true,
    module: "nvidia",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::Card;

    #[test]
    fn the_version_of_cuda_is_read_from_the_table() {
        let mut cards = [Card::new(0, "NVIDIA A800-SXM4-80GB")];
        (CUDA.add)(&mut cards, include_str!("../../tests/fixtures/nvidia-smi-table-mig-enabled-a800.txt"));
        assert_eq!(cards[0].runtime_version.as_deref(), Some("12.2"));
    }
}
