//! Sessions and forwards with OpenSSH's own server on loopback, with trouble in between.

#[cfg(test)]
mod sshd;
#[cfg(test)]
mod support;
#[cfg(test)]
mod trouble;

#[cfg(test)]
mod certificates;
#[cfg(test)]
mod chains;
#[cfg(test)]
mod host_keys;
#[cfg(test)]
mod local_forwards;
#[cfg(test)]
mod login;
#[cfg(test)]
mod no_session;
#[cfg(test)]
mod remote_forwards;
#[cfg(test)]
mod sessions;
