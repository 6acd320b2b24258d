//! A store on Redis 7 or Valkey. The keys, the scripts and what each request means for them are
//! pure, in `commands.rs` and `scripts.rs`; `link.rs` has the connections, which are those of the
//! crate `redis`, and `worker.rs` the threads that use them.

mod commands;
mod link;
mod scripts;
#[cfg(all(test, unix, not(shuttle)))]
mod tests;
mod worker;

use super::{StoreDriver, StorePort};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use link::{Servers, secure};
use mcp_proto::server::store::Serves;
use redis::RedisError;
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
    place: ServerPlace,
}

/// How the servers of a store are found.
#[derive(Clone)]
enum ServerPlace {
    /// The URL has it.
    Url,
    /// What Sentinels watch under this name.
    Sentinel(String, Vec<String>),
    /// A cluster, with further servers.
    Cluster(Vec<String>),
}

impl Redis {
    /// Connects to this URL: `redis://host:port/database`, with TLS `rediss://`, a Unix socket
    /// `unix:///path`; with a user and a password before the host. The server does not start if it
    /// is not such a URL. It starts without a connection.
    ///
    /// TLS takes the cryptography that is the default of the process. If there is none when the
    /// server starts, that of the feature `tls` or `tls-graviola` becomes the default; without
    /// these the server does not start: install a `rustls::crypto::CryptoProvider` before.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), prefix: "mcp:".into(), place: ServerPlace::Url }
    }

    /// Connects to the server that these Sentinels name as the primary of `name`, also after a
    /// failover. The user, the password, the database and TLS are those of the URL of
    /// [`new`](Self::new), whose host does not matter. Each Sentinel has a URL of its own.
    ///
    /// A failover loses what the primary has not replicated: the servers notice that, and end what
    /// they cannot continue.
    pub fn sentinel<U: Into<String>>(
        mut self,
        name: impl Into<String>,
        sentinels: impl IntoIterator<Item = U>,
    ) -> Self {
        self.place = ServerPlace::Sentinel(name.into(), sentinels.into_iter().map(U::into).collect());
        self
    }

    /// Connects to a cluster: the URL of [`new`](Self::new) and these are some of its servers,
    /// which name the others. A server of ours has three connections then. The clocks of the
    /// cluster must not be more than two seconds apart.
    pub fn cluster<U: Into<String>>(mut self, others: impl IntoIterator<Item = U>) -> Self {
        self.place = ServerPlace::Cluster(others.into_iter().map(U::into).collect());
        self
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
        let others: &[String] = match &self.place {
            ServerPlace::Url => &[],
            ServerPlace::Sentinel(_, others) | ServerPlace::Cluster(others) => others,
        };
        secure([&self.url].into_iter().chain(others).map(String::as_str)).map_err(invalid)?;
        let servers = match &self.place {
            ServerPlace::Url => Servers::one(&self.url),
            ServerPlace::Sentinel(name, sentinels) => Servers::sentinel(&self.url, name, sentinels),
            ServerPlace::Cluster(others) => {
                Servers::cluster([self.url.as_str()].into_iter().chain(others.iter().map(String::as_str)))
            }
        };
        Worker::start(servers.map_err(invalid)?, self.prefix.clone(), port)
    }
}

impl fmt::Debug for Redis {
    /// Does not show the URL, which may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(shuttle)))]
mod start_tests {
    use super::*;
    use crate::store::StoreQueue;

    fn start(url: &str) -> io::Result<()> {
        let queue = StoreQueue::new();
        queue.end();
        Redis::new(url).start(StorePort::new(queue, |_| {}))
    }

    #[test]
    fn url_that_cannot_be_used_is_an_error() {
        assert!(start("redis://127.0.0.1:1/").is_ok());
        let invalid = |url| start(url).is_err_and(|why| why.kind() == io::ErrorKind::InvalidInput);
        assert!(invalid("http://127.0.0.1/") && invalid(""));
        let has_tls = cfg!(any(feature = "tls", feature = "tls-graviola"));
        assert_eq!(invalid("rediss://127.0.0.1:1/"), !has_tls);
    }
}
