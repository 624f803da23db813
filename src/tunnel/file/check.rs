//! The files that a `tunnels.yaml` names: whether they are there, private, and what they should be.

use super::problem::{Fault, KeyFault, Problem, TokenFault};
use super::{KeyFile, Placed, TunnelsFile};
use crate::config::JoinToken;
use crate::tunnel::agent::status_socket;
use crate::tunnel::plan::Plan;
use app::i18n::system_words::SystemCause;
use ssh::{Endpoint, Identity, KeyFileError, KnownHosts};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A token is a line.
const TOKEN_FILE_MAX_BYTES: u64 = 64 * 1024;

/// Everything that is wrong with the token and with the keys among `used`: a file that several hosts share names keys
/// that only one of them has.
pub fn files(file: &TunnelsFile, used: &[Identity]) -> Vec<Problem> {
    let is_used = |named: &&KeyFile| {
        used.iter().any(|identity| matches!(identity, Identity::KeyFile { path, .. } if *path == named.path))
    };
    let named = file.key_files.iter().filter(is_used);
    let keys = named.filter_map(|named| {
        let fault = Fault::Key { key: named.key.clone(), fault: key_file(named)? };
        Some(Problem::new(named.position, fault))
    });
    let token = file.token_file.iter().filter(|_| file.is_reporting).filter_map(|path| {
        let fault = token_file(&path.value)?;
        let fault = Fault::TokenFile { key: "token_file".to_owned(), path: path.value.clone(), fault };
        Some(Problem::new(path.position, fault))
    });
    keys.chain(token).collect()
}

/// What keeps the agent from keeping its state there. That it is not there yet does not.
pub fn state_dir(path: &Placed<PathBuf>) -> Option<Problem> {
    let folder = &path.value;
    let is_long = status_socket::is_too_long(folder);
    let fault = if is_long {
        Fault::StateDirTooLong { bytes: folder.as_os_str().len(), max: status_socket::STATE_DIR_MAX_BYTES }
    } else if std::fs::metadata(folder).is_ok_and(|found| !found.is_dir()) {
        Fault::StateDirIsFile { path: folder.clone() }
    } else {
        return None;
    };
    Some(Problem::new(path.position, fault))
}

/// The SSH servers of the plan of which nobody knows whether they are the right ones. Which key they show is seen when they
/// are connected to.
pub fn host_keys(file: &TunnelsFile, plan: &Plan) -> Vec<Problem> {
    let known = KnownHosts::new(&plan.known_hosts.own, plan.known_hosts.others.clone());
    let used: BTreeSet<&Endpoint> =
        plan.forwards.iter().flat_map(|forward| &forward.route).map(|hop| &hop.server).collect();
    let hosts = file.hosts().map(|(_, host)| host).filter(|host| used.contains(&host.server));
    hosts
        .filter_map(|host| Some(Problem::new(host.position, host_key(&known, &host.server, &plan.known_hosts.own)?)))
        .collect()
}

fn host_key(known: &KnownHosts, host: &Endpoint, own: &Path) -> Option<Fault> {
    match known.has_any_for(host) {
        Ok(true) => None,
        Ok(false) => Some(Fault::HostKeyUnknown { host: host.to_string() }),
        Err(error) => Some(Fault::known_hosts(&error, own.to_owned())),
    }
}

fn key_file(KeyFile { path, certificate, .. }: &KeyFile) -> Option<KeyFault> {
    if path.extension().is_some_and(|extension| extension == "pub") {
        return Some(KeyFault::PublicHalf { path: path.clone(), private: path.with_extension("") });
    }
    let error = ssh::check_key_file(path, certificate.as_deref()).err()?;
    let owner = match &error {
        KeyFileError::Read { path, source } if source.kind() == ErrorKind::PermissionDenied => owner(path),
        _ => None,
    };
    Some(KeyFault::of(error, owner))
}

/// Whose a file is that cannot be read, and who this is.
fn owner(path: &Path) -> Option<(u32, u32)> {
    let owner = std::fs::metadata(path).ok()?.uid();
    let own = rustix::process::geteuid().as_raw();
    (owner != own).then_some((owner, own))
}

fn token_file(path: &Path) -> Option<TokenFault> {
    let text = match read_token(path) {
        Ok(text) => text,
        Err(fault) => return Some(fault),
    };
    JoinToken::parse_file(&text).err().map(TokenFault::Content)
}

fn read_token(path: &Path) -> Result<String, TokenFault> {
    let cannot = |error: std::io::Error| TokenFault::Unreadable { cause: SystemCause::of(&error) };
    let file = File::open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if metadata.is_dir() {
        return Err(cannot(ErrorKind::IsADirectory.into()));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o007 != 0 {
        return Err(TokenFault::Open { mode });
    }
    let mut text = String::new();
    file.take(TOKEN_FILE_MAX_BYTES).read_to_string(&mut text).map_err(cannot)?;
    Ok(text)
}
