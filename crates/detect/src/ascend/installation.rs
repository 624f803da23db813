//! What is installed of Ascend's driver and computing software, from the notes that their installers write.

use super::environment;
use crate::files::Root;
use crate::text;
use std::path::{Path, PathBuf};

/// Where the driver's installer writes which directory it took.
const INSTALL_INFO: &str = "/etc/ascend_install.info";
/// The directory it takes when not told otherwise.
const DEFAULT_DIRECTORY: &str = "/usr/local/Ascend";
/// The management library, on drivers that keep it apart.
const DCMI_DIRECTORY: &str = "/usr/local/dcmi";
/// The computing software, CANN, in the directory of Ascend's packages: the newest layout first.
const RUNTIMES: [&str; 5] = ["cann", "ascend-toolkit/latest", "nnrt/latest", "nnae/latest", "nnal/latest"];
/// Names the directory of the computing software, set by its own scripts.
const RUNTIME_VARIABLES: [&str; 2] = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"];

/// Where the driver is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directories {
    packages: PathBuf,
}

impl Directories {
    pub(super) fn look(root: &Root) -> Self {
        let told = root.read(INSTALL_INFO).and_then(|text| environment::install_directory(&text));
        Self { packages: told.unwrap_or_else(|| PathBuf::from(DEFAULT_DIRECTORY)) }
    }

    pub(super) fn driver(&self) -> PathBuf {
        self.packages.join("driver")
    }

    /// Those that the driver's programs load libraries from.
    pub(super) fn libraries(&self) -> Vec<PathBuf> {
        let libraries = self.driver().join("lib64");
        vec![libraries.clone(), libraries.join("driver"), libraries.join("common"), PathBuf::from(DCMI_DIRECTORY)]
    }
}

/// The versions that are installed; absent where the note is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Installation {
    /// Of the driver's files. The driver that runs can be another until the host is started again.
    pub driver_version: Option<String>,
    /// Which firmware goes with it: ranges from and to, both within.
    pub fitting_firmware: Vec<(String, String)>,
    /// Of the computing software.
    pub runtime_version: Option<String>,
}

impl Installation {
    /// Reads a handful of small files.
    pub(super) fn look(root: &Root, runtime_directory: Option<&Path>) -> Self {
        let directories = Directories::look(root);
        let driver = root.read(directories.driver().join("version.info"));
        Self {
            driver_version: driver.as_deref().and_then(|note| assigned(note, &["Version", "version"])),
            fitting_firmware: driver.as_deref().map(fitting_firmware).unwrap_or_default(),
            runtime_version: runtime_version(root, &directories.packages, runtime_directory),
        }
    }

    /// Whether the installed driver says that it does not go with this firmware.
    pub(super) fn refuses(&self, firmware_version: &str) -> bool {
        let version = numbers(firmware_version);
        let fits = |(from, to): &(String, String)| numbers(from) <= version && version <= numbers_up_to(to);
        !self.fitting_firmware.is_empty() && !version.is_empty() && !self.fitting_firmware.iter().any(fits)
    }
}

/// The directory of the computing software that this process was started with.
pub(super) fn runtime_directory(variables: &std::collections::BTreeMap<String, String>) -> Option<PathBuf> {
    let told = RUNTIME_VARIABLES.iter().find_map(|name| variables.get(*name));
    told.map(PathBuf::from).filter(|path| path.is_absolute())
}

fn runtime_version(root: &Root, packages: &Path, told: Option<&Path>) -> Option<String> {
    let usual = RUNTIMES.map(|directory| packages.join(directory));
    told.map(Path::to_path_buf).into_iter().chain(usual).find_map(|directory| version_of_runtime(root, &directory))
}

fn version_of_runtime(root: &Root, directory: &Path) -> Option<String> {
    let install_note = |architecture: &str| {
        let note = root.read(directory.join(format!("{architecture}-linux/ascend_toolkit_install.info")))?;
        assigned(&note, &["version"])
    };
    let by_note = || ["aarch64", "x86_64"].into_iter().find_map(install_note);
    let by_table = || running_version(&root.read(directory.join("version.cfg"))?);
    let by_info = || {
        let note = root.read(directory.join("version.info"))?;
        assigned(&note, &["version_dir", "Version", "version"])
    };
    by_note().or_else(by_table).or_else(by_info)
}

/// `runtime_running_version=[7.5.0.1.129:8.0.RC3]`: after the colon stands the version of the whole, before it the
/// part's own. The toolkit or, without it, the runtime names it.
fn running_version(table: &str) -> Option<String> {
    let value =
        assigned(table, &["toolkit_running_version"]).or_else(|| assigned(table, &["runtime_running_version"]))?;
    let value = value.trim_start_matches('[').trim_end_matches(']');
    let version = value.rsplit_once(':').map_or(value, |(_, whole)| whole);
    Some(version.to_owned()).filter(|version| !version.is_empty())
}

/// `compatible_version_fw=[7.0.0,7.5.99],[6.4.0,6.4.99]`.
fn fitting_firmware(note: &str) -> Vec<(String, String)> {
    let Some(value) = assigned(note, &["compatible_version_fw"]) else { return Vec::new() };
    let ranges = value.split('[').filter_map(|part| part.split_once(']')).map(|(range, _)| range.to_owned());
    ranges
        .filter_map(|range| range.split_once(',').map(|(from, to)| (from.trim().to_owned(), to.trim().to_owned())))
        .collect()
}

/// The value of the first of the names that has one, in lines of `name=value`.
fn assigned(text: &str, names: &[&str]) -> Option<String> {
    let pairs = || text.lines().filter_map(|line| line.split_once('='));
    let value = |wanted: &str| pairs().find(|(name, _)| name.trim() == wanted).map(|(_, value)| value);
    let value = names.iter().find_map(|name| value(name))?;
    Some(text::cell(value.trim().trim_matches('"'))).filter(|value| !value.is_empty())
}

/// The leading numbers of a version: `7.8.0.6.201` and `25.0.rc1` are `[7, 8, 0, 6, 201]` and `[25, 0]`.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

/// The end of a range covers everything below its last number: `7.5.99` is not before `7.5.99.1`.
fn numbers_up_to(version: &str) -> Vec<u32> {
    let mut numbers = numbers(version);
    numbers.push(u32::MAX);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Host(tempfile::TempDir);

    impl Host {
        fn new(files: &[(&str, &str)]) -> Self {
            let directory = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = directory.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Self(directory)
        }

        fn installation(&self) -> Installation {
            Installation::look(&Root::new(self.0.path()), None)
        }
    }

    const DRIVER: &str = "Version=25.0.rc1.1\nascendhal_version=7.35.23\naicpu_version=1.0\n\
        Innerversion=V100R001C21SPC002B220\ncompatible_version=[V100R001C17],[V100R001C21]\n\
        compatible_version_fw=[6.4.0,6.4.99],[7.0.0,7.7.99]\npackage_version=25.0.rc1.1\n";
    const RUNTIME: &str = "# version: 1.0\nruntime_running_version=[7.5.0.1.129:8.0.RC3]\n\
        toolkit_running_version=[7.5.0.1.129:8.0.RC3]\n";

    #[test]
    fn the_versions_of_a_usual_installation_are_read() {
        let host = Host::new(&[
            ("usr/local/Ascend/driver/version.info", DRIVER),
            ("usr/local/Ascend/ascend-toolkit/latest/version.cfg", RUNTIME),
        ]);
        let expected = Installation {
            driver_version: Some("25.0.rc1.1".into()),
            fitting_firmware: vec![("6.4.0".into(), "6.4.99".into()), ("7.0.0".into(), "7.7.99".into())],
            runtime_version: Some("8.0.RC3".into()),
        };
        assert_eq!(host.installation(), expected);
    }

    #[test]
    fn another_directory_is_found_by_the_installers_note() {
        let host = Host::new(&[
            ("etc/ascend_install.info", "Driver_Install_Path_Param=/opt/Ascend\n"),
            ("opt/Ascend/driver/version.info", DRIVER),
        ]);
        assert_eq!(host.installation().driver_version.as_deref(), Some("25.0.rc1.1"));
    }

    #[test]
    fn the_computing_software_is_found_in_every_layout() {
        let note = "package_name=Ascend-cann-toolkit\nversion=8.5.0\ninnerversion=V100R001C25SPC001B212\n";
        for (path, text, version) in [
            ("cann/aarch64-linux/ascend_toolkit_install.info", note, "8.5.0"),
            ("ascend-toolkit/latest/x86_64-linux/ascend_toolkit_install.info", note, "8.5.0"),
            ("ascend-toolkit/latest/version.cfg", RUNTIME, "8.0.RC3"),
            ("nnrt/latest/version.cfg", "# version: 1.0\nruntime_running_version=[7.3.0.1.231:8.0.RC2]\n", "8.0.RC2"),
            ("nnae/latest/version.info", "Version=8.2.0.0.201\nversion_dir=8.2.RC1\n", "8.2.RC1"),
        ] {
            let host = Host::new(&[(&format!("usr/local/Ascend/{path}"), text)]);
            assert_eq!(host.installation().runtime_version.as_deref(), Some(version), "{path}");
        }
    }

    #[test]
    fn the_software_that_the_process_was_started_with_comes_first() {
        let host = Host::new(&[
            ("usr/local/Ascend/ascend-toolkit/latest/version.cfg", RUNTIME),
            ("home/me/cann/version.cfg", "toolkit_running_version=[7.9.0.1.1:8.3.RC1]\n"),
        ]);
        let installation = Installation::look(&Root::new(host.0.path()), Some(Path::new("/home/me/cann")));
        assert_eq!(installation.runtime_version.as_deref(), Some("8.3.RC1"));
    }

    #[test]
    fn a_host_without_any_of_it_has_no_versions() {
        assert_eq!(Host::new(&[]).installation(), Installation::default());
    }

    #[test]
    fn firmware_is_refused_outside_of_the_drivers_ranges() {
        let host = Host::new(&[("usr/local/Ascend/driver/version.info", DRIVER)]);
        let installation = host.installation();
        for (firmware, refuses) in [
            ("7.7.0.1.231", false),
            ("7.7.99.1.1", false),
            ("6.4.12", false),
            ("7.8.0.6.201", true),
            ("6.3.0", true),
            ("unreadable", false),
        ] {
            assert_eq!(installation.refuses(firmware), refuses, "{firmware}");
        }
        assert!(!Installation::default().refuses("7.8.0.6.201"));
    }

    proptest::proptest! {
        #[test]
        fn any_note_is_read_without_a_panic(text in "((Version|version|compatible_version_fw|toolkit_running_version)=?|[0-9.]{1,9}|[\\[\\],:=\n]|\\PC){0,60}") {
            let _ = (fitting_firmware(&text), running_version(&text), assigned(&text, &["Version"]));
        }
    }
}
