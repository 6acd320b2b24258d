//! For authors of adapters: the bookkeeping that adapters share. An adapter is a crate that runs
//! the engines for applications, such as `mcp-blocking` or `mcp-smol`. Nothing here opens, reads,
//! waits or locks.
//!
//! An application needs nothing of this module. A driver of your own may use parts of it. The
//! adapters of this project use all of it, so that they differ only in how they wait.

mod attempts;
mod calls;
mod connect;
mod ending;
#[cfg(feature = "std")]
mod launcher;
#[cfg(feature = "os")]
mod os;
mod question;
mod queue;
#[cfg(feature = "std")]
mod stderr;
#[cfg(feature = "std")]
mod transfer;

pub use crate::event_queue::{EventQueue, Weigh, Weight};
pub use attempts::Attempts;
pub use calls::{Calls, Collected, Noted};
pub use connect::{ConnectError, without_tls};
#[cfg(feature = "std")]
pub use connect::{not_bound, not_opened};
pub use ending::{DRAIN, Ending, Signal, VANISH};
#[cfg(feature = "std")]
pub use launcher::find_launcher;
#[cfg(feature = "os")]
pub use os::{ChildProcess, Clock, Spawned, TakenStdio, seed};
#[cfg(all(feature = "os", unix))]
pub use os::{SocketFile, peer_credentials};
pub use question::{Question, Reply, ReplyKey, ReplyToken};
pub use queue::{Pieces, Step, WriteQueue};
#[cfg(feature = "std")]
pub use stderr::StderrReader;
#[cfg(feature = "std")]
pub use transfer::{Transfer, TransferOutput};
