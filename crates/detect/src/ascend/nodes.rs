//! The device nodes that Ascend's driver makes. They are looked at, never opened: opening one claims the chip on some
//! products.

use super::environment::TOOL;
use crate::vendor::Finding;
use api::{Reason, Severity};
use rustix::fs::{Access, access};
use std::io;
use std::path::{Path, PathBuf};

/// Needed by every generation.
const MANAGER: &str = "/dev/davinci_manager";
/// Not made by the driver of Ascend 950.
const BEFORE_950: [&str; 2] = ["/dev/hisi_hdc", "/dev/devmm_svm"];

/// Which nodes a host has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nodes {
    /// `/dev/davinciN`, with the numbers that are there.
    pub chips: Vec<(u32, NodeState)>,
    pub manager: NodeState,
    pub before_950: [NodeState; 2],
}

/// What a node is to this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NodeState {
    #[default]
    Missing,
    /// It is there and may not be read and written: by its mode or owner, or because the container's device list
    /// does not allow it.
    Forbidden,
    Usable,
}

/// What else is known that decides which nodes ought to be there.
pub(super) struct Circumstances {
    /// The tool lists devices.
    pub has_devices: bool,
    /// The tool says that the driver's library does not start.
    pub driver_failed: bool,
    pub is_950: bool,
}

impl Nodes {
    /// Looks at `<root>/dev`, which lies in memory: no disk or network can hold this up.
    pub(super) fn look(root: &Path) -> Self {
        let mut chips: Vec<(u32, NodeState)> = chip_numbers(&root.join("dev"))
            .into_iter()
            .map(|number| (number, state(root, &chip_node(number))))
            .collect();
        chips.sort_unstable_by_key(|(number, _)| *number);
        Self { chips, manager: state(root, MANAGER), before_950: BEFORE_950.map(|node| state(root, node)) }
    }

    /// What is wrong with the nodes. A host without any chip's node is no misconfigured container as long as the tool
    /// works: the nodes may be elsewhere.
    pub(super) fn findings(&self, circumstances: &Circumstances) -> Vec<Finding> {
        if self.chips.is_empty() && !circumstances.driver_failed {
            return Vec::new();
        }
        let mut nodes = vec![(MANAGER.to_owned(), self.manager)];
        if !circumstances.is_950 {
            nodes.extend(BEFORE_950.map(str::to_owned).into_iter().zip(self.before_950));
        }
        nodes.extend(self.chips.iter().map(|&(number, state)| (chip_node(number), state)));
        let severity = if circumstances.has_devices { Severity::Warning } else { Severity::Error };
        nodes.into_iter().filter_map(|(node, state)| finding(severity, node, state)).collect()
    }

    /// Set when there are chips but no tool to ask about them.
    pub(super) fn tool_missing(&self) -> Option<Finding> {
        (!self.chips.is_empty()).then(|| Finding::error(Reason::ToolMissing { tool: TOOL.to_owned() }))
    }
}

fn finding(severity: Severity, node: String, state: NodeState) -> Option<Finding> {
    let reason = match state {
        NodeState::Usable => return None,
        NodeState::Missing => Reason::DeviceNodeMissing { node },
        NodeState::Forbidden => Reason::DeviceNodeUnreadable { node },
    };
    Some(Finding { severity, reason })
}

fn chip_node(number: u32) -> String {
    format!("/dev/davinci{number}")
}

/// `davinci0` has a number, `davinci_manager` has none.
fn chip_numbers(dev: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(dev) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let digits = |name: String| name.strip_prefix("davinci").filter(|rest| is_number(rest)).map(str::to_owned);
    names.filter_map(digits).filter_map(|digits| digits.parse().ok()).collect()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn state(root: &Path, node: &str) -> NodeState {
    let path = under(root, node);
    // A container engine makes a directory where it was told to mount something that the host does not have.
    if !path.metadata().is_ok_and(|metadata| !metadata.is_dir()) {
        return NodeState::Missing;
    }
    match access(&path, Access::READ_OK | Access::WRITE_OK) {
        Ok(()) => NodeState::Usable,
        Err(error) if io::Error::from(error).kind() == io::ErrorKind::NotFound => NodeState::Missing,
        Err(_) => NodeState::Forbidden,
    }
}

/// An absolute path of the host, under `root`.
pub(super) fn under(root: &Path, absolute: impl AsRef<Path>) -> PathBuf {
    let absolute = absolute.as_ref();
    root.join(absolute.strip_prefix("/").unwrap_or(absolute))
}

#[cfg(test)]
mod tests {
    use super::NodeState::{Forbidden, Missing, Usable};
    use super::*;

    const WORKING: Circumstances = Circumstances { has_devices: true, driver_failed: false, is_950: false };

    fn nodes(chips: &[(u32, NodeState)], manager: NodeState, before_950: [NodeState; 2]) -> Nodes {
        Nodes { chips: chips.to_vec(), manager, before_950 }
    }

    fn told(nodes: &Nodes, circumstances: &Circumstances) -> Vec<(Severity, String)> {
        let word = |finding: Finding| match finding.reason {
            Reason::DeviceNodeMissing { node } => (finding.severity, format!("no {node}")),
            Reason::DeviceNodeUnreadable { node } => (finding.severity, format!("closed {node}")),
            other => panic!("{other:?}"),
        };
        nodes.findings(circumstances).into_iter().map(word).collect()
    }

    #[test]
    fn a_whole_set_of_nodes_is_fine() {
        assert_eq!(told(&nodes(&[(0, Usable), (1, Usable)], Usable, [Usable; 2]), &WORKING), []);
    }

    #[test]
    fn each_missing_or_closed_node_is_told() {
        let nodes = nodes(&[(4, Usable), (5, Forbidden)], Forbidden, [Missing, Usable]);
        let expected = ["closed /dev/davinci_manager", "no /dev/hisi_hdc", "closed /dev/davinci5"];
        assert_eq!(told(&nodes, &WORKING), expected.map(|text| (Severity::Warning, text.to_owned())));
    }

    #[test]
    fn without_devices_it_is_an_error() {
        let nodes = nodes(&[(0, Usable)], Missing, [Usable; 2]);
        let expected = [(Severity::Error, "no /dev/davinci_manager".to_owned())];
        assert_eq!(told(&nodes, &Circumstances { has_devices: false, ..WORKING }), expected);
    }

    #[test]
    fn a_host_without_nodes_of_chips_is_asked_for_nodes_only_when_the_driver_fails() {
        let nodes = nodes(&[], Missing, [Missing; 2]);
        assert_eq!(told(&nodes, &WORKING), []);
        let failing = Circumstances { has_devices: false, driver_failed: true, ..WORKING };
        assert_eq!(told(&nodes, &failing).len(), 3);
    }

    #[test]
    fn ascend_950_is_not_asked_for_nodes_its_driver_does_not_make() {
        let nodes = nodes(&[(0, Usable)], Usable, [Missing; 2]);
        assert_eq!(told(&nodes, &Circumstances { is_950: true, ..WORKING }), []);
    }

    #[test]
    fn chips_are_told_from_other_nodes_by_their_number() {
        let root = tempfile::tempdir().unwrap();
        let dev = root.path().join("dev");
        std::fs::create_dir(&dev).unwrap();
        for name in
            ["davinci10", "davinci2", "davinci", "davinci_manager", "davinci3x", "davinci99999999999", "hisi_hdc"]
        {
            std::fs::write(dev.join(name), "").unwrap();
        }
        let expected = nodes(&[(2, Usable), (10, Usable)], Usable, [Usable, Missing]);
        assert_eq!(Nodes::look(root.path()), expected);
    }

    #[test]
    fn a_node_whose_mode_keeps_this_user_out_is_forbidden() {
        use std::os::unix::fs::PermissionsExt;
        if rustix::process::geteuid().is_root() {
            // No mode keeps root out.
            return;
        }
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        let node = root.path().join("dev/davinci_manager");
        std::fs::write(&node, "").unwrap();
        std::fs::set_permissions(&node, std::fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(Nodes::look(root.path()).manager, Forbidden);
    }

    #[test]
    fn a_host_without_a_dev_directory_has_no_nodes() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Nodes::look(root.path()), Nodes::default());
    }
}
