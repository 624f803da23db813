//! Whether another tunnel agent of this host has a port: one that was started before and did not end, or one with another
//! file. Its label among its arguments tells it from other programs, and what it has open, which port is its.

use crate::tunnel::plan::label;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// Another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherAgent {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
}

/// The agent that listens at a port of this host. None as well when this user may not look at what others have open.
pub fn at(port: u16) -> Option<OtherAgent> {
    at_in(Path::new("/proc"), port)
}

fn at_in(proc: &Path, port: u16) -> Option<OtherAgent> {
    let listeners: HashSet<String> =
        ["net/tcp", "net/tcp6"].into_iter().flat_map(|table| listeners(&proc.join(table), port)).collect();
    if listeners.is_empty() {
        return None;
    }
    let processes = fs::read_dir(proc).ok()?.filter_map(|entry| {
        let entry = entry.ok()?;
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        // few processes are agents, and only of those is looked at what they have open
        Some((OtherAgent { name: agent_name(&fs::read(entry.path().join("cmdline")).ok()?)?, pid }, entry.path()))
    });
    processes.into_iter().find(|(_, folder)| has_one_of(folder, &listeners)).map(|(agent, _)| agent)
}

/// The inodes of sockets that listen at a port, of one of the kernel's tables.
fn listeners(table: &Path, port: u16) -> Vec<String> {
    /// `TCP_LISTEN`.
    const LISTENS: &str = "0A";
    let text = fs::read_to_string(table).unwrap_or_default();
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let number = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        (number == port && *state == LISTENS).then(|| format!("socket:[{inode}]"))
    };
    text.lines().skip(1).filter_map(of_line).collect()
}

/// The agent's name in the arguments of a process, where it is one.
fn agent_name(command_line: &[u8]) -> Option<String> {
    let prefix = label("");
    let mut words = command_line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    words.find(|word| word == "--label")?;
    words.next()?.strip_prefix(&prefix).map(str::to_owned)
}

fn has_one_of(process: &Path, sockets: &HashSet<String>) -> bool {
    let open = fs::read_dir(process.join("fd")).into_iter().flatten().filter_map(Result::ok);
    open.filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|link| link.to_str().is_some_and(|link| sockets.contains(link)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const TABLE: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F9A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0
   1: 0100007F:1F9B 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0 0 10 0
";

    fn process(proc: &Path, pid: u32, command_line: &str, socket: &str) {
        let folder = proc.join(pid.to_string());
        fs::create_dir_all(folder.join("fd")).unwrap();
        fs::write(folder.join("cmdline"), command_line.replace(' ', "\0")).unwrap();
        symlink(socket, folder.join("fd/7")).unwrap();
    }

    #[test]
    fn an_agent_is_known_by_its_label_and_by_what_it_has_open() {
        let proc = tempfile::tempdir().unwrap();
        fs::create_dir(proc.path().join("net")).unwrap();
        fs::write(proc.path().join("net/tcp"), TABLE).unwrap();
        process(proc.path(), 10, "nginx", "socket:[4711]");
        process(proc.path(), 11, "gpustack tunnel run --label GPUStack-Tunnel-other", "socket:[9]");
        assert_eq!(at_in(proc.path(), 8090), None, "another program has it");
        process(proc.path(), 12, "gpustack tunnel run --label GPUStack-Tunnel-bastion-01", "socket:[4711]");
        assert_eq!(at_in(proc.path(), 8090), Some(OtherAgent { name: "bastion-01".to_owned(), pid: 12 }));
        assert_eq!(at_in(proc.path(), 8091), None, "that one does not listen");
    }
}
