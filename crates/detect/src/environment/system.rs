//! Which operating system.

use crate::files::Root;
use crate::host::{kernel, os_release};
use api::Seen;

pub(super) fn look(root: &Root) -> Seen {
    let os = root.read("/etc/os-release").as_deref().and_then(os_release::parse);
    let kernel = kernel();
    let name = os.map(|os| format!("{} {}", os.name, os.version).trim().to_owned());
    Seen::System { os: name.unwrap_or_default(), kernel: kernel.release, architecture: kernel.architecture }
}
