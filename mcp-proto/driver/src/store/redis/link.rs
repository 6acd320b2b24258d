//! The servers of a store, and a connection to them: one server, the one that Sentinels name, or
//! those of a cluster.

use crate::sync::{Mutex, lock};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use redis::cluster::{ClusterClient, ClusterConfig, ClusterConnection};
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{
    Client, Cmd, Connection, ConnectionAddr, ConnectionLike, IntoConnectionInfo, RedisError, RedisResult, TlsMode,
    Value, pipe,
};

/// The time to connect, and to write.
const TIME: Duration = Duration::from_secs(2);

/// Where a store is.
pub(super) enum Servers {
    One(Client),
    /// The name of what the Sentinels watch is a part of it.
    Sentinel(Mutex<SentinelClient>),
    Cluster(ClusterClient),
}

/// A connection.
pub(super) enum Link {
    One(Connection),
    Cluster(ClusterConnection),
}

impl Servers {
    pub(super) fn one(url: &str) -> RedisResult<Self> {
        Ok(Self::One(Client::open(url)?))
    }

    /// `url`: the user, the database and TLS of the servers. Its host does not matter.
    pub(super) fn sentinel(url: &str, name: &str, sentinels: &[String]) -> RedisResult<Self> {
        let info = url.into_connection_info()?;
        let mut servers =
            SentinelNodeConnectionInfo::default().set_redis_connection_info(info.redis_settings().clone());
        if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            servers = servers.set_tls_mode(TlsMode::Secure);
        }
        let sentinels = sentinels.iter().map(String::as_str).collect();
        let client = SentinelClient::build(sentinels, name, Some(servers), SentinelServerType::Master)?;
        Ok(Self::Sentinel(Mutex::new(client)))
    }

    /// `urls`: some of the servers. They name the others.
    pub(super) fn cluster<'a>(urls: impl IntoIterator<Item = &'a str>) -> RedisResult<Self> {
        // The engine repeats what fails.
        Ok(Self::Cluster(ClusterClient::builder(urls).retries(1).build()?))
    }

    /// Returns whether one read cannot wait for two keys.
    pub(super) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Connects. `reply`: the time for each reply.
    pub(super) fn connect(&self, reply: Duration) -> RedisResult<Link> {
        let one = |client: &Client| {
            let open = client.get_connection_with_timeout(TIME)?;
            open.set_read_timeout(Some(reply))?;
            open.set_write_timeout(Some(TIME))?;
            Ok(Link::One(open))
        };
        match self {
            Self::One(client) => one(client),
            Self::Sentinel(client) => one(&lock(client).get_client()?),
            Self::Cluster(client) => {
                let times = ClusterConfig::new().set_connection_timeout(TIME).set_response_timeout(reply);
                Ok(Link::Cluster(client.get_connection_with_config(times)?))
            }
        }
    }
}

impl Link {
    /// Returns the connection, for one command.
    pub(super) fn open(&mut self) -> &mut dyn ConnectionLike {
        match self {
            Self::One(open) => open,
            Self::Cluster(open) => open,
        }
    }

    /// Carries out commands in their order: one server gets them at once, a cluster one after
    /// another, since they are for several servers. An error of the connection is that of all, or
    /// of the rest.
    pub(super) fn query_all(&mut self, commands: Vec<Cmd>) -> RedisResult<Vec<RedisResult<Value>>> {
        match self {
            Self::One(_) if commands.is_empty() => Ok(Vec::new()),
            Self::One(open) => {
                let mut pipeline = pipe();
                pipeline.ignore_errors();
                for command in commands {
                    pipeline.add_command(command);
                }
                pipeline.query(open)
            }
            Self::Cluster(open) => {
                let mut results: Vec<RedisResult<Value>> = Vec::with_capacity(commands.len());
                for command in commands {
                    // One server that says nothing must not delay the others once more.
                    let result = match results.last() {
                        Some(Err(why)) if why.is_timeout() => Err(why.clone()),
                        _ => open.req_command(&command),
                    };
                    results.push(result);
                }
                Ok(results)
            }
        }
    }
}

/// Returns whether an error says that a server is a replica now.
pub(super) fn is_demoted(why: &RedisError) -> bool {
    why.code() == Some("READONLY")
}
