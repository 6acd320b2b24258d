//! A process: a client, and what its driver holds.

use super::store::ProcessId;
use mcp_proto::Instant;
use mcp_proto::auth::{AuthConfig, StepId};
use mcp_proto::client::{Client, ClientConfig, Policy};
use mcp_proto::exchange::ExchangeId;
use mcp_proto::input::CallId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Process {
    pub(super) id: ProcessId,
    pub(super) client: Client,
    /// The open exchanges. True: a refresh of tokens.
    pub(super) open: BTreeMap<ExchangeId, bool>,
    /// How often each call has ended.
    pub(super) calls: BTreeMap<CallId, u32>,
    pub(super) listener: Option<StepId>,
    pub(super) pages: Vec<StepId>,
    pub(super) pages_shown: u64,
    pub(super) logins: u64,
    pub(super) is_closing: bool,
}

impl Process {
    /// Starts a process at this time. Its clock is this many seconds after 1970.
    pub(super) fn start(id: ProcessId, seed: [u8; 32], now: Instant, unix: Duration) -> Self {
        let mut config = ClientConfig::url("http://127.0.0.1:8000/mcp").expect("a URL");
        config.policy = Policy::Modern;
        config.timeout = Some(Duration::from_secs(40));
        config.auth = Some(Arc::new(AuthConfig::new("sim")));
        config.origin_unix = unix;
        config.limits.client.max_queued_events = usize::MAX;
        Self {
            id,
            client: Client::new(Arc::new(config), seed, now),
            open: BTreeMap::new(),
            calls: BTreeMap::new(),
            listener: None,
            pages: Vec::new(),
            pages_shown: 0,
            logins: 0,
            is_closing: false,
        }
    }
}
