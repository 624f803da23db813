//! The device nodes that Ascend's driver makes. They are looked at, never opened: opening one claims the chip on some
//! products.

use super::environment::TOOL;
use crate::files::Root;
use crate::vendor::Finding;
use api::{NodeAccess, NodeState, Reason, Seen, Severity};
use rustix::fs::{Access, access};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Needed by every generation.
const MANAGER: &str = "/dev/davinci_manager";
/// Not made by the driver of Ascend 950.
const BEFORE_950: [&str; 2] = ["/dev/hisi_hdc", "/dev/devmm_svm"];
/// How the names of nodes begin that the driver makes once for all chips. Newer drivers add some, as `hdc_host`.
const SHARED_NAMES: [&str; 4] = ["davinci_", "devmm_", "hisi_hdc", "hdc_"];
/// The kernel's list of character devices. In a container it is the host's, so it tells of nodes that were not mapped.
const KERNELS_LIST: &str = "/sys/dev/char";
/// Parts of chips have numbers from here on.
const FIRST_PART: u32 = 100;

/// Which nodes a host has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nodes {
    /// `/dev/davinciN`, with the numbers that are there.
    pub chips: Vec<(u32, NodeState)>,
    /// Those that all chips share and that are needed by some generation, or that the kernel says are there.
    shared: BTreeMap<String, NodeState>,
    /// The kernel lists this driver's nodes, so that what it does not list need not be there.
    is_listed: bool,
    /// Chips that the kernel lists and that have no node here.
    unmapped: Vec<u32>,
    /// Chips were cut into parts and this host or container has some of those.
    pub has_parts: bool,
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
    /// Looks at `/dev` and `/sys`, which lie in memory: no disk or network can hold this up.
    pub(super) fn look(root: &Root) -> Self {
        let names = names_in_dev(root);
        let mut chips: Vec<(u32, NodeState)> = names
            .iter()
            .filter_map(|name| chip_number(name))
            .map(|number| (number, state(root, &chip_node(number))))
            .collect();
        chips.sort_unstable_by_key(|(number, _)| *number);
        let listed = listed_names(root);
        let unmapped = listed.iter().filter_map(|name| chip_number(name));
        let unmapped = unmapped.filter(|listed| chips.iter().all(|(number, _)| number != listed)).collect();
        let listed: Vec<String> =
            listed.iter().filter(|name| is_shared(name)).map(|name| format!("/dev/{name}")).collect();
        let is_listed = !listed.is_empty();
        let wanted = std::iter::once(MANAGER).chain(BEFORE_950).map(str::to_owned).filter(|_| !is_listed).chain(listed);
        let shared = wanted.map(|node| (state(root, &node), node)).map(|(state, node)| (node, state)).collect();
        let has_parts = chips.iter().any(|&(number, _)| number >= FIRST_PART)
            || names.iter().any(|name| name.strip_prefix('v').is_some_and(|name| chip_number(name).is_some()));
        Self { chips, shared, is_listed, unmapped, has_parts }
    }

    /// Nodes that ought to be there and usable, and are not. A host without any chip's node is no misconfigured
    /// container as long as the tool works: the nodes may be elsewhere.
    pub(super) fn faults(&self, circumstances: &Circumstances) -> Vec<(String, NodeState)> {
        if self.chips.is_empty() && !circumstances.driver_failed {
            return Vec::new();
        }
        let mut nodes = self.wanted(circumstances);
        nodes.retain(|(_, state)| *state != NodeState::Usable);
        nodes
    }

    fn wanted(&self, circumstances: &Circumstances) -> Vec<(String, NodeState)> {
        let is_needed = |node: &str| self.is_listed || !circumstances.is_950 || !BEFORE_950.contains(&node);
        let shared = self.shared.iter().filter(|(node, _)| is_needed(node)).map(|(node, &state)| (node.clone(), state));
        let chips = self.chips.iter().map(|&(number, state)| (chip_node(number), state));
        // With some chips here, somebody chose them; with none, somebody forgot them.
        let forgotten = self.unmapped.iter().filter(|_| self.chips.is_empty());
        shared.chain(chips).chain(forgotten.map(|&number| (chip_node(number), NodeState::Missing))).collect()
    }

    /// Every node that ought to be there, and every one that is.
    pub(super) fn seen(&self, circumstances: &Circumstances, root: &Root) -> Vec<Seen> {
        let nodes = self.wanted(circumstances);
        nodes.into_iter().map(|(path, state)| Seen::Node { access: access_of(root, &path), path, state }).collect()
    }

    /// One finding for each fault.
    pub(super) fn findings(&self, circumstances: &Circumstances) -> Vec<Finding> {
        let severity = if circumstances.has_devices { Severity::Warning } else { Severity::Error };
        self.faults(circumstances).into_iter().filter_map(|(node, state)| finding(severity, node, state)).collect()
    }

    /// Set when there are chips but no tool to ask about them.
    pub(super) fn tool_missing(&self) -> Option<Finding> {
        (!self.chips.is_empty()).then(|| Finding::error(Reason::ToolMissing { tool: TOOL.to_owned() }))
    }

    pub(super) fn chip(&self, number: u32) -> Option<String> {
        self.chips.iter().any(|(there, _)| *there == number).then(|| chip_node(number))
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

fn names_in_dev(root: &Root) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(root.path("/dev")) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

/// `davinci0` has a number, `davinci_manager` has none.
fn chip_number(name: &str) -> Option<u32> {
    name.strip_prefix("davinci").filter(|rest| is_number(rest))?.parse().ok()
}

/// Names of the nodes that the kernel says there are; those of other drivers too.
fn listed_names(root: &Root) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(root.path(KERNELS_LIST)) else { return Vec::new() };
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let mut names: Vec<String> = targets.filter_map(|target| target.file_name()?.to_str().map(str::to_owned)).collect();
    names.sort_unstable();
    names
}

fn is_shared(name: &str) -> bool {
    SHARED_NAMES.iter().any(|start| name.starts_with(start))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn state(root: &Root, node: &str) -> NodeState {
    let path = root.path(node);
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

fn access_of(root: &Root, node: &str) -> Option<NodeAccess> {
    let metadata = root.path(node).metadata().ok()?;
    Some(NodeAccess { mode: metadata.mode() & 0o7777, uid: metadata.uid(), gid: metadata.gid() })
}

#[cfg(test)]
mod tests {
    use super::NodeState::{Forbidden, Missing, Usable};
    use super::*;

    const WORKING: Circumstances = Circumstances { has_devices: true, driver_failed: false, is_950: false };

    fn nodes(chips: &[(u32, NodeState)], manager: NodeState, before_950: [NodeState; 2]) -> Nodes {
        let shared = [MANAGER].into_iter().chain(BEFORE_950).map(str::to_owned);
        let states = [manager].into_iter().chain(before_950);
        Nodes {
            chips: chips.to_vec(),
            shared: shared.zip(states).collect(),
            is_listed: false,
            unmapped: Vec::new(),
            has_parts: false,
        }
    }

    fn look(directory: &tempfile::TempDir) -> Nodes {
        Nodes::look(&Root::new(directory.path()))
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
        assert_eq!(look(&root), expected);
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
        assert_eq!(look(&root).shared[MANAGER], Forbidden);
    }

    #[test]
    fn a_host_without_a_dev_directory_has_no_nodes() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(look(&root), nodes(&[], Missing, [Missing; 2]));
    }

    #[test]
    fn the_kernels_list_tells_of_nodes_that_were_not_mapped() {
        let root = tempfile::tempdir().unwrap();
        let list = root.path().join("sys/dev/char");
        std::fs::create_dir_all(&list).unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        let made = ["davinci0", "davinci_manager", "hdc_host", "null"];
        for (minor, name) in made.into_iter().enumerate() {
            let target = format!("../../devices/virtual/davinci/{name}");
            std::os::unix::fs::symlink(target, list.join(format!("236:{minor}"))).unwrap();
        }
        for name in ["davinci0", "davinci_manager"] {
            std::fs::write(root.path().join("dev").join(name), "").unwrap();
        }
        // what the kernel does not list, this driver does not make
        assert_eq!(told(&look(&root), &WORKING), [(Severity::Warning, "no /dev/hdc_host".to_owned())]);
    }

    #[test]
    fn chips_that_were_not_mapped_are_told_when_none_was() {
        let root = tempfile::tempdir().unwrap();
        let list = root.path().join("sys/dev/char");
        std::fs::create_dir_all(&list).unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        for name in ["davinci0", "davinci_manager"] {
            std::os::unix::fs::symlink(format!("../../devices/virtual/{name}"), list.join(name)).unwrap();
        }
        std::fs::write(root.path().join("dev/davinci_manager"), "").unwrap();
        let failing = Circumstances { has_devices: false, driver_failed: true, ..WORKING };
        assert_eq!(look(&root).faults(&failing), [("/dev/davinci0".to_owned(), Missing)]);
        assert_eq!(look(&root).faults(&WORKING), []);
    }

    #[test]
    fn numbers_of_a_hundred_and_more_are_parts_of_chips() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        std::fs::write(root.path().join("dev/davinci1"), "").unwrap();
        assert!(!look(&root).has_parts);
        std::fs::write(root.path().join("dev/vdavinci100"), "").unwrap();
        assert!(look(&root).has_parts);
    }
}
