//! The file systems that matter to an operator: disks, each once.

use api::FileSystem;
use std::collections::HashSet;
use std::path::Path;

/// File systems on disks of this host.
const ON_DISK: [&str; 19] = [
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "fuseblk", "hfsplus", "jfs", "msdos",
    "nilfs2", "ntfs", "ntfs3", "reiserfs", "vfat", "xfs", "zfs",
];
/// File systems on other hosts.
const ON_NETWORK: [&str; 20] = [
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fuse.ceph",
    "fuse.glusterfs",
    "fuse.juicefs",
    "fuse.s3fs",
    "fuse.sshfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "smb3",
    "virtiofs",
];
/// No disk, even at the root.
const IN_MEMORY: [&str; 3] = ["ramfs", "rootfs", "tmpfs"];

/// One line of `/proc/self/mountinfo` (its page in section 5 of the manual).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// `major:minor`, the same for every mount of one file system.
    device: String,
    /// Which directory of the file system is mounted.
    root: String,
    point: String,
    kind: String,
    source: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Disk,
    Network,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        // Between the mount's options and the dash stand any number of optional fields.
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let (device, root, point) = (mount.next()?, mount.next()?, mount.next()?);
        let mut file_system = file_system.split(' ');
        let (kind, source) = (file_system.next()?, file_system.next()?);
        let [root, point, source] = [root, point, source].map(unescape);
        Some(Self { device: device.to_owned(), root, point, kind: kind.to_owned(), source })
    }

    fn place(&self) -> Option<Place> {
        let kind = self.kind.as_str();
        // The root can be of any kind, in a container an overlay: without it this program would not run, so asking
        // it is safe. Elsewhere an overlay is the root of some container.
        let is_root = self.point == "/" && !IN_MEMORY.contains(&kind);
        if is_root || ON_DISK.contains(&kind) {
            return Some(Place::Disk);
        }
        ON_NETWORK.contains(&kind).then_some(Place::Network)
    }

    /// Which of several mounts of one file system people know it by: the least is best.
    fn rank(&self, is_directory: impl Fn(&str) -> bool) -> Rank {
        let is_part = self.root != "/";
        let is_file = is_part && !is_directory(&self.point);
        Rank { is_elsewhere: self.point != "/", is_part, is_file, length: self.point.len() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_elsewhere: bool,
    is_part: bool,
    is_file: bool,
    length: usize,
}

/// The kernel writes spaces, tabs, newlines and backslashes of a path as `\` and three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = (first == b'\\').then(|| after.get(..3).and_then(octal)).flatten();
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

/// The mounts that matter, each file system once, with the place it is on. `is_directory` is asked about the mount
/// points of file systems on disks only, and only where a part of one is mounted: containers mount single files.
fn choose(mountinfo: &str, is_directory: impl Fn(&str) -> bool) -> Vec<(Place, Mount)> {
    let mut chosen: Vec<(Rank, Place, Mount)> = Vec::new();
    for mount in visible_mounts(mountinfo) {
        let Some(place) = mount.place() else { continue };
        let rank = mount.rank(|point| place == Place::Network || is_directory(point));
        match chosen.iter_mut().find(|(_, _, other)| other.device == mount.device) {
            Some(other) if rank < other.0 => *other = (rank, place, mount),
            Some(_) => {}
            None => chosen.push((rank, place, mount)),
        }
    }
    chosen.into_iter().map(|(_, place, mount)| (place, mount)).collect()
}

/// All mounts but those that a later one on the same point covers.
fn visible_mounts(mountinfo: &str) -> Vec<Mount> {
    let mut covered = HashSet::new();
    let mounts = mountinfo.lines().rev().filter_map(Mount::parse);
    let mut visible: Vec<Mount> = mounts.filter(|mount| covered.insert(mount.point.clone())).collect();
    visible.reverse();
    visible
}

/// Reads the figures of file systems on this host's disks; those of network file systems stay unknown, because asking
/// a dead file server waits for it for ever. May itself wait for a broken disk: call it where that holds up nothing.
/// None when the kernel does not list the mounts.
pub(super) fn measure() -> Option<Vec<FileSystem>> {
    let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let chosen = choose(&mountinfo, |point| Path::new(point).is_dir());
    Some(chosen.into_iter().filter_map(|(place, mount)| file_system(place, mount)).collect())
}

/// None for a file system without blocks: it stores nothing.
fn file_system(place: Place, mount: Mount) -> Option<FileSystem> {
    let listed = FileSystem { mount_point: mount.point, mount_from: mount.source, ..FileSystem::default() };
    if place == Place::Network {
        return Some(listed);
    }
    let Ok(figures) = rustix::fs::statvfs(listed.mount_point.as_str()) else { return Some(listed) };
    let bytes = |blocks: u64| blocks.checked_mul(figures.f_frsize);
    let total = bytes(figures.f_blocks).filter(|&total| total > 0)?;
    let free = bytes(figures.f_bfree);
    Some(FileSystem {
        total: Some(total),
        used: free.and_then(|free| total.checked_sub(free)),
        free,
        available: bytes(figures.f_bavail),
        ..listed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "\
22 28 0:21 / /proc rw,nosuid - proc proc rw
24 28 0:6 / /dev rw,nosuid - devtmpfs devtmpfs rw
28 1 253:0 / / rw,relatime shared:1 - xfs /dev/mapper/vg-root rw
31 28 0:24 / /run rw,nosuid shared:13 - tmpfs tmpfs rw
40 28 259:1 / /boot rw,relatime shared:30 - ext4 /dev/nvme0n1p1 rw
41 28 259:5 / /data\\040disk rw,relatime shared:31 - xfs /dev/nvme1n1 rw
42 28 259:5 /models /srv/models rw,relatime shared:31 - xfs /dev/nvme1n1 rw
43 28 0:50 / /mnt/share rw,relatime shared:40 - nfs4 10.0.0.5:/export rw
44 28 0:61 / /var/lib/docker/overlay2/ab/merged rw - overlay overlay rw,lowerdir=/l
45 31 0:4 net:[4026532] /run/netns/blue rw shared:60 - nsfs nsfs rw
46 28 7:1 / /snap/core/1 ro - squashfs /dev/loop1 ro
47 28 253:0 /var/lib/kubelet/x /var/lib/kubelet/y rw shared:1 - xfs /dev/mapper/vg-root rw
48 28 0:70 / /mnt/auto rw - autofs systemd-1 rw
";

    const CONTAINER: &str = "\
900 800 0:61 / / rw,relatime - overlay overlay rw,lowerdir=/l
901 900 0:62 / /proc rw - proc proc rw
902 900 253:0 /docker/containers/ab/hosts /etc/hosts rw - xfs /dev/mapper/vg-root rw
903 900 253:0 /docker/volumes/state/_data /var/lib/gpustack rw - xfs /dev/mapper/vg-root rw
904 900 253:0 /usr/local/bin/npu-smi /usr/local/bin/npu-smi ro - xfs /dev/mapper/vg-root rw
";

    fn points(mountinfo: &str) -> Vec<String> {
        let is_directory = |point: &str| !["/etc/hosts", "/usr/local/bin/npu-smi"].contains(&point);
        choose(mountinfo, is_directory).into_iter().map(|(_, mount)| mount.point).collect()
    }

    #[test]
    fn a_server_shows_each_disk_and_share_once() {
        assert_eq!(points(SERVER), ["/", "/boot", "/data disk", "/mnt/share"]);
    }

    #[test]
    fn a_container_shows_its_root_and_the_disk_behind_its_directories() {
        assert_eq!(points(CONTAINER), ["/", "/var/lib/gpustack"]);
    }

    #[test]
    fn the_root_shows_whatever_it_is_made_of_unless_it_is_memory() {
        for (kind, is_shown) in [("overlay", true), ("fuse.fuse-overlayfs", true), ("virtiofs", true), ("tmpfs", false)]
        {
            let chosen = choose(&format!("1 0 0:9 / / rw - {kind} x rw\n"), |_| true);
            assert_eq!(chosen.iter().any(|(place, _)| *place == Place::Disk), is_shown, "{kind}");
        }
    }

    #[test]
    fn a_mount_covered_by_a_later_one_does_not_show() {
        let mountinfo = "1 0 8:1 / /data rw - ext4 /dev/sda1 rw\n2 0 8:2 / /data rw - ext4 /dev/sdb1 rw\n";
        let sources: Vec<_> = choose(mountinfo, |_| true).into_iter().map(|(_, mount)| mount.source).collect();
        assert_eq!(sources, ["/dev/sdb1"]);
    }

    #[test]
    fn a_mount_point_on_a_network_is_never_looked_at() {
        let mountinfo = "1 0 0:50 /a /mnt/a rw - nfs h:/a rw\n2 0 0:50 /b /mnt/b rw - nfs h:/b rw\n";
        let chosen = choose(mountinfo, |point| panic!("looked at {point}"));
        assert_eq!(chosen.len(), 1);
    }

    #[test]
    fn the_root_of_this_machine_has_figures_that_add_up() {
        let root = measure().unwrap().into_iter().find(|file_system| file_system.mount_point == "/");
        if let Some(FileSystem { total: Some(total), used: Some(used), free: Some(free), .. }) = root {
            assert_eq!(used + free, total);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_for_mounts_without_a_panic(text in "([ -~]{0,20}( |\\\\[0-7]{0,4}| - |\n)){0,20}") {
            let _ = choose(&text, |_| true);
        }
    }
}
