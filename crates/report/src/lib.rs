//! What a worker tells its server of itself, in few bytes: everything once, then what changed, and signs of life.
//!
//! Both sides exchange [`message`]s on one stream for as long as a link stands. A [`Reporter`] on the worker makes them of
//! what it sees; on the server [`Facts`](message::Facts) are read and [`Readings`](message::Readings) are applied to the
//! copy that is there already. What a tunnel agent tells is in [`tunnels`]. The crate does no input or output and knows no clock.

mod frame;
pub mod message;
mod reading;
mod reporter;
pub mod tunnels;

pub use frame::{FrameError, Frames, MAX_MESSAGE_BYTES, frame};
pub use message::{FactsError, WorkerMessage};
pub use reading::{Misfit, apply};
pub use reporter::{Precision, Reporter};
