//! Why the driver does not start. Its code -8005 stands for many causes; what the host shows tells them apart.

use crate::files::Root;
use api::{DriverInitCause, NodeState};

/// How the names of the driver's kernel modules begin, over its releases.
const MODULES: [&str; 4] = ["drv_", "davinci", "asdrv", "ascend"];
/// The kernel's list of modules, the same in every container.
const LOADED_MODULES: &str = "/proc/modules";
const MODULE_DIRECTORY: &str = "/sys/module";
/// The driver's releases are numbered by the year from 2020 on; a module's version below is none of those.
const FIRST_YEAR: u32 = 20;

/// What the host shows of a driver that does not start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// What the kernel lists; None when it does not say.
    pub modules: Option<String>,
    /// The PCI bus shows a card that the driver has taken.
    pub is_driven: bool,
    /// The worst that is wrong with a node.
    pub fault: Option<NodeState>,
    pub is_root: bool,
    /// Versions of the driver that runs, as far as they can be known.
    pub running: Vec<String>,
    /// The version of its files.
    pub installed: Option<String>,
}

/// The likely cause; None when everything looks as it ought to.
pub(super) fn cause(evidence: &Evidence) -> Option<DriverInitCause> {
    if !evidence.is_driven && evidence.modules.as_deref().is_some_and(lacks_driver) {
        return Some(DriverInitCause::ModuleNotLoaded);
    }
    match evidence.fault {
        // What root may not open, the container's list of devices does not allow.
        Some(NodeState::Forbidden) if !evidence.is_root => return Some(DriverInitCause::NotAllowed),
        Some(NodeState::Forbidden | NodeState::Missing) => return Some(DriverInitCause::NodesMissing),
        Some(NodeState::Usable) | None => {}
    }
    let installed = evidence.installed.as_deref()?;
    let is_another = |running: &String| !running.eq_ignore_ascii_case(installed);
    evidence.running.iter().any(is_another).then_some(DriverInitCause::UpgradedWithoutRestart)
}

/// A kernel with modules, and none of the driver's among them.
fn lacks_driver(modules: &str) -> bool {
    let mut names = modules.lines().filter_map(|line| line.split_whitespace().next()).peekable();
    names.peek().is_some() && !names.any(is_of_driver)
}

fn is_of_driver(name: &str) -> bool {
    MODULES.iter().any(|start| name.starts_with(start))
}

/// What the kernel says of its modules.
pub(super) fn modules(root: &Root) -> Option<String> {
    root.read(LOADED_MODULES)
}

/// The versions that the driver's loaded modules tell.
pub(super) fn versions_of_modules(root: &Root) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(root.path(MODULE_DIRECTORY)) else { return Vec::new() };
    let names =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(|name| is_of_driver(name));
    let version = |name: String| root.read(format!("{MODULE_DIRECTORY}/{name}/version"));
    let mut versions: Vec<String> = names.filter_map(version).map(|version| version.trim().to_owned()).collect();
    versions.retain(|version| is_release(version));
    versions.sort_unstable();
    versions.dedup();
    versions
}

fn is_release(version: &str) -> bool {
    let (year, rest) = version.split_once('.').unwrap_or((version, ""));
    !rest.is_empty() && year.parse::<u32>().is_ok_and(|year| (FIRST_YEAR..100).contains(&year))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADED: &str = "drv_pcie_host 200704 3 drv_devmng, Live 0x0\nnf_conntrack 1 0 - Live 0x0\n";
    const NOT_LOADED: &str = "nf_conntrack 1 0 - Live 0x0\nxfs 2 1 - Live 0x0\n";

    fn evidence() -> Evidence {
        Evidence { modules: Some(LOADED.into()), installed: Some("25.5.1".into()), ..Evidence::default() }
    }

    #[test]
    fn each_cause_is_told_by_what_the_host_shows() {
        let fault = |fault, is_root| Evidence { fault: Some(fault), is_root, ..evidence() };
        let modules = |modules: &str| Evidence { modules: Some(modules.into()), ..evidence() };
        let running =
            |running: &[&str]| Evidence { running: running.iter().map(|&v| v.into()).collect(), ..evidence() };
        for (evidence, expected) in [
            (evidence(), None),
            (modules(NOT_LOADED), Some(DriverInitCause::ModuleNotLoaded)),
            (Evidence { is_driven: true, ..modules(NOT_LOADED) }, None),
            (Evidence { modules: None, ..evidence() }, None),
            // a kernel without modules
            (modules(""), None),
            (fault(NodeState::Missing, false), Some(DriverInitCause::NodesMissing)),
            (fault(NodeState::Forbidden, false), Some(DriverInitCause::NotAllowed)),
            (fault(NodeState::Forbidden, true), Some(DriverInitCause::NodesMissing)),
            (running(&["25.5.1"]), None),
            (running(&["24.1.0", "25.5.1"]), Some(DriverInitCause::UpgradedWithoutRestart)),
            (Evidence { installed: None, ..running(&["24.1.0"]) }, None),
        ] {
            assert_eq!(cause(&evidence), expected, "{evidence:?}");
        }
    }

    #[test]
    fn a_driver_that_is_not_loaded_makes_no_nodes_and_is_one_cause() {
        let evidence = Evidence { modules: Some(NOT_LOADED.into()), fault: Some(NodeState::Missing), ..evidence() };
        assert_eq!(cause(&evidence), Some(DriverInitCause::ModuleNotLoaded));
    }

    #[test]
    fn only_what_looks_like_a_release_is_a_modules_version() {
        let host = tempfile::tempdir().unwrap();
        for (module, version) in
            [("drv_devmng", "25.0.rc1.1\n"), ("drv_hdc", "1.0\n"), ("davinci_mdev", "v2"), ("xfs", "26.1.0")]
        {
            let directory = host.path().join("sys/module").join(module);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("version"), version).unwrap();
        }
        assert_eq!(versions_of_modules(&Root::new(host.path())), ["25.0.rc1.1"]);
    }

    proptest::proptest! {
        #[test]
        fn any_list_of_modules_is_read_without_a_panic(text in "((drv_|davinci|xfs)?[a-z0-9_ -]{0,12}\n?|\\PC){0,20}") {
            let _ = lacks_driver(&text);
        }
    }
}
