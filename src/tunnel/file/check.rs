//! The files that a `tunnels.yaml` names: whether they are there, private, and what they should be.

use super::problem::{Fault, Problem};
use super::{End, Host, KeyFile, TunnelsFile};
use crate::config::JoinToken;
use crate::tunnel::plan::Plan;
use ssh::{Endpoint, Identity, KeyFileError, KnownHosts};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// A token is a line.
const TOKEN_FILE_MAX_BYTES: u64 = 64 * 1024;

/// Everything that is wrong with the token and with the keys among `used`: a file that several hosts share names keys
/// that only one of them has.
pub fn files(file: &TunnelsFile, used: &[Identity]) -> Vec<Problem> {
    let is_used = |named: &&KeyFile| {
        used.iter().any(|identity| matches!(identity, Identity::KeyFile { path, .. } if *path == named.path))
    };
    let named = file.key_files.iter().filter(is_used);
    let keys = named.filter_map(|named| Some(Problem::new(named.position, key_file(named)?)));
    let token = file.token_file.iter().filter(|_| file.is_reporting).filter_map(|path| {
        let detail = token_file(&path.value)?;
        Some(Problem::new(path.position, Fault::TokenFile { key: "token_file".to_owned(), detail }))
    });
    keys.chain(token).collect()
}

/// The SSH servers of the plan of which nobody knows whether they are the right ones. Which key they show is seen when they
/// are connected to.
pub fn host_keys(file: &TunnelsFile, plan: &Plan) -> Vec<Problem> {
    let known = KnownHosts::new(&plan.known_hosts.own, plan.known_hosts.others.clone());
    let used: BTreeSet<&Endpoint> =
        plan.forwards.iter().flat_map(|forward| &forward.route).map(|hop| &hop.server).collect();
    let hosts = hosts(file).filter(|host| used.contains(&host.server));
    hosts.filter_map(|host| Some(Problem::new(host.position, host_key(&known, &host.server)?))).collect()
}

fn hosts(file: &TunnelsFile) -> impl Iterator<Item = &Host> {
    let server = file.server.iter().filter_map(|server| server.host.as_ref());
    let bastions = file.bastions.iter().filter_map(|bastion| bastion.host.as_ref());
    let workers = file.workers.iter().filter_map(|worker| worker.host.as_ref());
    let forwards = file.forwards.iter().filter_map(|forward| match &forward.end {
        Some(End::Host(host)) => Some(host),
        Some(End::Named(_)) | None => None,
    });
    server.chain(bastions).chain(workers).chain(forwards)
}

fn host_key(known: &KnownHosts, host: &Endpoint) -> Option<Fault> {
    match known.has_any_for(host) {
        Ok(true) => None,
        Ok(false) => Some(Fault::HostKeyUnknown { host: host.to_string() }),
        Err(error) => Some(Fault::KnownHosts { detail: error.to_string() }),
    }
}

fn key_file(KeyFile { key, path, certificate, .. }: &KeyFile) -> Option<Fault> {
    if path.extension().is_some_and(|extension| extension == "pub") {
        let private = path.with_extension("");
        let detail = format!("{} is the public half; write {}", path.display(), private.display());
        return Some(Fault::Key { key: key.clone(), detail });
    }
    let error = ssh::check_key_file(path, certificate.as_deref()).err()?;
    if let KeyFileError::PassphraseNeeded { path } = &error {
        let path = path.display();
        let detail = format!(
            "the key in {path} is encrypted, and nobody will be there to type its passphrase; load it into ssh-agent with \
             `ssh-add {path}`, and write `agent: true` in place of `identity`"
        );
        return Some(Fault::Key { key: key.clone(), detail });
    }
    let owner = match &error {
        KeyFileError::Read { path, source } if source.kind() == ErrorKind::PermissionDenied => owner(path),
        _ => None,
    };
    Some(Fault::key_file(key, &error, owner))
}

/// Whose a file is that cannot be read.
fn owner(path: &Path) -> Option<String> {
    let owner = std::fs::metadata(path).ok()?.uid();
    let own = rustix::process::geteuid().as_raw();
    (owner != own)
        .then(|| format!("it belongs to user {owner}, and this is user {own}: `chown {own} {}`", path.display()))
}

fn token_file(path: &Path) -> Option<String> {
    let shown = path.display();
    let cannot = |error: std::io::Error| {
        format!("cannot read {shown}: {error}; on the server, `gpustack token` prints what belongs there")
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return Some(cannot(error)),
    };
    let mode = match file.metadata() {
        Ok(metadata) => metadata.permissions().mode() & 0o777,
        Err(error) => return Some(cannot(error)),
    };
    if mode & 0o007 != 0 {
        return Some(format!(
            "{shown} is open to every user (mode {mode:o}); make it private with `chmod 600 {shown}`"
        ));
    }
    let mut text = String::new();
    if let Err(error) = file.take(TOKEN_FILE_MAX_BYTES).read_to_string(&mut text) {
        return Some(cannot(error));
    }
    JoinToken::parse_file(&text).err().map(|error| format!("the join token in {shown} {error}"))
}
