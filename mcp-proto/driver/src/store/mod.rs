//! Stores that several servers share, so that they serve their clients together: see
//! [`mcp_proto::server::store`]. A server gets one with
//! [`ServerOptions::store`](super::ServerOptions::store).

#[cfg(feature = "testing")]
mod check;
mod memory;
mod port;
#[cfg(feature = "redis")]
mod redis;

#[cfg(feature = "testing")]
pub use check::check;
pub use memory::SharedMemory;
pub use port::StorePort;
#[cfg(feature = "redis")]
pub use redis::Redis;

pub(super) use port::StoreQueue;

use mcp_proto::server::store::Serves;
use std::io;

/// Connects servers to a store. What a driver needs to know about requests is in
/// [`mcp_proto::server::store`]; it treats their contents as bytes.
pub trait StoreDriver: Send + Sync + 'static {
    /// Returns what the store serves.
    fn serves(&self) -> Serves;

    /// Begins to carry out the requests of one server, until [`StorePort::take`] returns `None`.
    /// Returns at once: a thread or a task of the driver does the work, and connects to the store.
    ///
    /// # Errors
    /// The server does not start with this error.
    fn start(&self, port: StorePort) -> io::Result<()>;
}
