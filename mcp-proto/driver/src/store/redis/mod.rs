//! A store on Redis 7 or Valkey. The keys, the scripts and what each request means for them are
//! pure, in `commands.rs` and `scripts.rs`; `worker.rs` has the connections, which are those of the
//! crate `redis`.

mod commands;
mod scripts;
mod worker;

use super::{StoreDriver, StorePort};
use alloc::string::String;
use core::fmt;
use mcp_proto::server::store::Serves;
use redis::{Client, RedisError};
use std::io;
use worker::Worker;

/// A store on Redis 7 or Valkey. It needs the feature `redis`.
///
/// Each server has two connections, and a thread for each: one carries out requests, one waits for
/// what other nodes say. A connection that is lost is opened again; meanwhile requests fail.
///
/// ```no_run
/// use mcp_driver::ServerOptions;
/// use mcp_driver::store::Redis;
///
/// let options = ServerOptions::new().store(Redis::new("redis://127.0.0.1/").prefix("calc:"));
/// # drop(options);
/// ```
#[derive(Clone)]
pub struct Redis {
    url: String,
    prefix: String,
}

impl Redis {
    /// Connects to this URL: `redis://host:port/database`, with TLS `rediss://`, a Unix socket
    /// `unix:///path`; with a user and a password before the host. The server does not start if it
    /// is not such a URL. It starts without a connection.
    ///
    /// TLS needs the feature `tls`, or another provider as the default of the process.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), prefix: "mcp:".into() }
    }

    /// Sets the text that every key begins with, so that several groups of servers can share a
    /// database. `mcp:` by default.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }
}

impl StoreDriver for Redis {
    fn serves(&self) -> Serves {
        Serves::SESSIONS.and(Serves::TASKS)
    }

    fn start(&self, port: StorePort) -> io::Result<()> {
        let invalid = |why: RedisError| io::Error::new(io::ErrorKind::InvalidInput, why.to_string());
        let client = Client::open(self.url.as_str()).map_err(invalid)?;
        Worker::start(client, self.prefix.clone(), port)
    }
}

impl fmt::Debug for Redis {
    /// Does not show the URL, which may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
