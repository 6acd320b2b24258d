//! The configuration of a [`Server`](super::Server): plain data.

use crate::hook::MessageHook;
use crate::limits::Limits;
use crate::model::lifecycle::{CacheHints, Implementation, ServerCapabilities};
use crate::version::Versions;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// The configuration of a [`Server`](super::Server); [`Router::config`](crate::Router::config) makes one.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Who we are.
    pub info: Implementation,
    /// What we offer.
    pub capabilities: ServerCapabilities,
    /// How to use us, for a language model.
    pub instructions: Option<String>,
    /// The revisions we support. Default: all. Over HTTP only those of the modern era are served.
    pub versions: Versions,
    /// How long the answer to `server/discover` may be kept.
    pub discover_cache: CacheHints,
    /// How long a page of `tools/list` may be kept.
    pub list_cache: CacheHints,
    /// The key that seals `requestState`; `None`: one is derived from the seed. Servers that answer for one another need the same.
    pub state_key: Option<[u8; 32]>,
    /// Whether an id that an earlier, answered request of the same older connection used is accepted. Default yes. If not, the last 1024
    /// ids of a connection are remembered.
    pub reuse_ids: bool,
    /// Which names an HTTP server answers to. Default: those of loopback.
    pub hosts: Hosts,
    /// The Unix time of [`Instant::ZERO`](crate::Instant::ZERO); sealed states carry the calendar time of their expiry.
    pub origin_unix: Duration,
    /// Sees and may refuse every message. Default: none.
    pub on_message: Option<MessageHook>,
    /// The bounds.
    pub limits: Limits,
}

impl ServerConfig {
    /// A server of this name that offers nothing yet, in every revision.
    pub fn new(info: Implementation) -> Self {
        Self {
            info,
            capabilities: ServerCapabilities::default(),
            instructions: None,
            versions: Versions::all(),
            discover_cache: CacheHints::default(),
            list_cache: CacheHints::default(),
            state_key: None,
            reuse_ids: true,
            hosts: Hosts::Loopback,
            origin_unix: Duration::ZERO,
            on_message: None,
            limits: Limits::default(),
        }
    }
}

impl core::fmt::Debug for ServerConfig {
    /// Says whether there is a key, and never shows it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ServerConfig")
            .field("info", &self.info)
            .field("capabilities", &self.capabilities)
            .field("instructions", &self.instructions)
            .field("versions", &self.versions)
            .field("state_key", &self.state_key.map(|_| "…"))
            .field("reuse_ids", &self.reuse_ids)
            .field("hosts", &self.hosts)
            .field("origin_unix", &self.origin_unix)
            .field("on_message", &self.on_message)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The hosts that the `Host` of a request, and its `Origin` if it has one, may name; a request that names another is answered 403. A web
/// page that made its own name point at this machine (DNS rebinding) is kept out this way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Hosts {
    /// `localhost`, `127.0.0.0/8` and `::1`.
    #[default]
    Loopback,
    /// These names or addresses, without ports; IPv6 addresses without brackets.
    Only(Vec<String>),
    /// Any: for a server behind something that checks.
    Any,
}

impl Hosts {
    /// Whether a host, without its port, may be named.
    pub fn allows(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(hosts) => hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host)),
            Self::Loopback => {
                host.eq_ignore_ascii_case("localhost")
                    || host.parse::<core::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        }
    }
}
