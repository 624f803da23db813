//! What `npu-smi` says when it cannot do its work, and where Ascend's driver keeps its files.

use api::Reason;
use std::path::PathBuf;

/// The tool's name.
pub(super) const TOOL: &str = "npu-smi";

/// The error code for a chip that another container holds.
const DEVICE_IN_USE: i32 = -8020;

/// The cause that the tool's own words give, whatever its exit status. None when they give none.
pub(super) fn diagnose(output: &str) -> Option<Reason> {
    if let Some(library) = crate::text::missing_library(output) {
        return Some(Reason::DriverLibraryMissing { tool: TOOL.to_owned(), library });
    }
    let code = output.lines().find_map(error_code)?;
    let tool = TOOL.to_owned();
    if code == DEVICE_IN_USE {
        return Some(Reason::DeviceInUseElsewhere { tool, code });
    }
    Some(Reason::DriverInitFailed { tool, code, nodes: Vec::new(), cause: None })
}

/// The code of a line that tells of the management library's start (`dcmi module initialize failed. ret is -8005`) or
/// of a device in use, in whatever words.
fn error_code(line: &str) -> Option<i32> {
    let lower = line.to_lowercase();
    let is_start = lower.contains("dcmi") && lower.contains("init");
    let codes = lower.split(|c: char| c != '-' && !c.is_ascii_digit()).filter(|word| word.starts_with('-'));
    codes.filter_map(|word| word.parse().ok()).find(|&code| is_start || code == DEVICE_IN_USE)
}

/// The directory of Ascend's packages named in `/etc/ascend_install.info`, which the driver's installer writes.
pub(super) fn install_directory(install_info: &str) -> Option<PathBuf> {
    let directory = install_info.lines().find_map(|line| line.trim().strip_prefix("Driver_Install_Path_Param="))?;
    let directory = PathBuf::from(directory.trim().trim_matches('"'));
    directory.is_absolute().then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init_failed(code: i32) -> Reason {
        Reason::DriverInitFailed { tool: TOOL.to_owned(), code, nodes: Vec::new(), cause: None }
    }

    #[test]
    fn a_driver_that_does_not_start_is_told_by_its_code() {
        assert_eq!(diagnose(include_str!("../../tests/fixtures/npu-info-error-8005.txt")), Some(init_failed(-8005)));
        assert_eq!(
            diagnose("dcmi model initialized failed, because the device is used. ret is -8001"),
            Some(init_failed(-8001))
        );
    }

    #[test]
    fn a_missing_library_is_told_by_its_name() {
        let library = "libc_sec.so".to_owned();
        let expected = Some(Reason::DriverLibraryMissing { tool: TOOL.to_owned(), library });
        assert_eq!(diagnose(include_str!("../../tests/fixtures/npu-info-error-libc_sec.txt")), expected);
    }

    #[test]
    fn a_chip_held_by_another_container_is_not_a_broken_driver() {
        let expected = Some(Reason::DeviceInUseElsewhere { tool: TOOL.to_owned(), code: -8020 });
        for text in [
            "dcmi model initialized failed, because the device is used. ret is -8020",
            "Failed to query device, device is used, ret=-8020.",
        ] {
            assert_eq!(diagnose(text), expected, "{text}");
        }
    }

    #[test]
    fn other_text_and_numbers_are_no_diagnosis() {
        for text in ["", "hello", "pid -80201 of 2026-08-20", "ret is -8005", "dcmi module initialize failed"] {
            assert_eq!(diagnose(text), None, "{text}");
        }
    }

    #[test]
    fn the_install_directory_is_an_absolute_path_or_none() {
        let info = "UserName=HwHiAiUser\nDriver_Install_Type=full\nDriver_Install_Path_Param=/opt/Ascend\n";
        assert_eq!(install_directory(info), Some(PathBuf::from("/opt/Ascend")));
        for text in ["", "Driver_Install_Path_Param=", "Driver_Install_Path_Param=../etc"] {
            assert_eq!(install_directory(text), None, "{text}");
        }
    }
}
