//! What drivers share: the bookkeeping that each would otherwise write for itself. Nothing here opens, reads, waits or locks.
//!
//! A driver of its own needs none of it. The adapters of this project are made of it, so that they differ only in how they wait.

mod attempts;
mod calls;
mod connect;
mod question;
mod queue;

pub use attempts::Attempts;
pub use calls::{Calls, Collected, Noted};
pub use connect::{ConnectError, without_tls};
#[cfg(feature = "std")]
pub use connect::{not_bound, not_opened};
pub use question::{Question, Reply, ReplyKey, ReplyToken};
pub use queue::{Pieces, Step, WriteQueue};
