//! SSH sessions through any number of bastions, and forwards on them, in this process.
//!
//! A [`Connector`] makes [`Session`]s, each over the one with the bastion before it; [`Sessions`] hands them out so that
//! all forwards through the same servers share them. On a session stand [`LocalForward`]s (`ssh -L`) and
//! [`RemoteForward`]s (`ssh -R`):
//!
//! ```no_run
//! use ssh::{Connector, Endpoint, ForwardLimits, Hop, Identity, KnownHosts, LocalForward, LocalForwardSpec};
//! use ssh::{NoPassphrases, Route, Sessions, TcpTransport, Tuning};
//! use std::{sync::Arc, time::Duration};
//!
//! # async fn tunnel() -> Result<(), Box<dyn std::error::Error>> {
//! let tuning = Tuning::default();
//! let sessions = Sessions::new(Connector {
//!     transport: Arc::new(TcpTransport::new(tuning.connect_deadline)),
//!     known_hosts: KnownHosts::new("/var/lib/gpustack/known_hosts", vec!["/etc/ssh/ssh_known_hosts".into()]),
//!     passphrases: Arc::new(NoPassphrases),
//!     tuning,
//! });
//! let key = || Identity::key_file("/etc/ssh/tunnel_keys/bastion");
//! let route = Route::new(vec![
//!     Hop::new("tunnel", Endpoint::new("bastion", 22), key()),
//!     Hop::new("tunnel", Endpoint::new("npu-1", 22), key()),
//! ])?;
//! let session = sessions.get(&route).await?;
//! let forward = LocalForward::start(&session, LocalForwardSpec {
//!     listen: "127.0.0.1:10150".parse()?,
//!     target: Endpoint::new("127.0.0.1", 10150),
//!     limits: ForwardLimits::default(),
//! })
//! .await?;
//! println!("{} until: {}", forward.address(), forward.ended().await);
//! forward.stop(Duration::from_secs(10)).await;
//! # Ok(())
//! # }
//! ```
//!
//! **What a caller has to do.** A session ends, by whatever: [`Session::ended`] tells how, all forwards on it have ended
//! with it, and making new ones, after a wait, is for the caller. Each error says in its type what is wrong, and in its
//! text what to do about it; where a line in the server's `sshd_config` is to be changed, it names the line. A server that
//! nobody knows yet is [`HostKeyError::Unknown`] with the key that it shows: ask somebody who knows, then
//! [`KnownHosts::trust`] it and connect again. There is no way to leave the check out.
//!
//! **That a session stands does not mean that a forward works.** The server may not reach the target;
//! [`ForwardStats::last_fault`] and [`Session::check_target`] tell.
//!
//! **Liveness.** A server that is silent is asked for a sign of life after
//! [`keep_alive_interval`](Tuning::keep_alive_interval), and given up after another one. With the session go its
//! connections, by a reset: a client that has read half of an answer is not to take it for the whole. A server that could
//! not hear it is told when it takes the next connection of the same [`TcpTransport`], and gives free what it listened at.
//!
//! [`ca`] makes and checks the certificates that let users in for some days instead of for ever.

pub mod ca;

mod abandoned;
mod address;
mod end;
mod error;
mod forward;
mod identity;
mod io;
mod key_file;
mod known_hosts;
mod pool;
mod route;
mod session;
mod transport;
mod tuning;
mod validity;
mod wire;

pub use address::{Endpoint, HopName, NoEndpoint};
pub use end::{DisconnectCode, SessionEnd};
pub use error::{AuthenticationError, ChannelError, ConnectError, ConnectFault, Step};
pub use forward::{
    ConnectionFault, Denial, ForwardError, ForwardLimits, ForwardStats, LocalForward, LocalForwardSpec, RemoteForward,
    RemoteForwardSpec, Stopped,
};
pub use identity::{Identity, IdentityError, NoPassphrases, Passphrases, TriedCertificate, TriedKey, check_key_file};
pub use io::{BoxedIo, Io};
pub use key_file::{KeyFileError, Passphrase};
pub use known_hosts::{HostCertificateFault, HostKey, HostKeyError, KnownHosts, KnownHostsError, KnownKey};
pub use pool::Sessions;
pub use route::{Hop, Route, RouteError};
/// A public key and a certificate, as OpenSSH writes them.
pub use russh::keys::{Certificate, PublicKey};
pub use session::{Connector, Session};
pub use transport::{TcpTransport, Transport, TransportError};
pub use tuning::{Compression, Tuning};
pub use validity::{Moment, Validity, ValidityFault};
pub use wire::Traffic;
