//! A network in a box: hosts with networks of their own, cables between them that can be made as bad as one likes, and
//! this project's programs on those hosts. For tests and measurements.
//!
//! Everything is made of Linux network namespaces. A program first starts itself again in one ([`start_inside`]), which
//! also holds all processes that it starts: they end with it, however it ends. That takes root, or a system that lets
//! its users have namespaces.
//!
//! Kernels without `netem` are common in containers and small virtual machines, so a [`Cable`] is none of the kernel's:
//! its ends are two TUN devices, and threads of this process carry the packets between them, late, not at all, or at a
//! limited rate. A [`wire`] is the kernel's own, and as fast as it can.

mod cable;
mod forwards;
mod gpustack;
mod host;
mod inside;
mod process;
mod sockets;
mod wait;

pub use cable::{Cable, End, PacketSize, Quality, Traffic, wire};
pub use forwards::{Ssh, SshServer};
pub use gpustack::{PASSWORD, Server, TOKEN, TunnelAgent, TunnelFolder, Worker, WorkerFolder, condition, has};
pub use host::Host;
pub use inside::{is_inside, is_inside_as_root, start_inside};
pub use process::Process;
pub use wait::until;
