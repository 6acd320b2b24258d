//! A server: its engine, its clock, and the requests that its application works on.

use super::Settings;
use super::application::Handler;
use mcp_proto::exchange::{ExchangeEvent, ExchangeId};
use mcp_proto::input::{Input, RequestKey};
use mcp_proto::model::capabilities::ListCapability;
use mcp_proto::rpc::Object;
use mcp_proto::server::store::{Durability, Incarnation, Memory};
use mcp_proto::server::{Server, ServerConfig};
use mcp_proto::{Implementation, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The Unix time of the beginning.
const EPOCH: u64 = 1_800_000_000;
/// How long what a session and a task have lives, at most.
pub(super) const LIFETIME: Duration = Duration::from_secs(240);

/// A process. One that takes the place of another has another id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct NodeId(pub(super) u64);

#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) engine: Server,
    pub(super) own: Option<Incarnation>,
    pub(super) is_asleep: bool,
    pub(super) handlers: BTreeMap<RequestKey, Handler>,
    /// When the last request to the store arrives there, and the last reply here.
    pub(super) arrived: Instant,
    pub(super) replied: Instant,
    born: Instant,
    /// How fast its clock runs, in thousandths.
    rate: u128,
    last_exchange: u64,
}

fn configure(settings: &Settings, ahead: u64) -> ServerConfig {
    let mut config = ServerConfig::new(Implementation::new("nodes", "1"));
    let mut list = ListCapability::default();
    list.list_changed = true;
    config.capabilities.tools = Some(list);
    config.capabilities.logging = Some(Object::new());
    config.state_keys = Some([1; 32].into());
    config.store = Some(Memory::SERVES);
    config.durability = if settings.behind { Durability::Behind } else { Durability::Stored };
    config.tasks = true;
    config.admit = true;
    config.origin_unix = Duration::from_secs(EPOCH + ahead);
    let limits = &mut config.limits.server;
    (limits.session_idle, limits.session_start) = (LIFETIME, LIFETIME / 4);
    (limits.history_keep, limits.task_keep) = (LIFETIME / 2, LIFETIME / 4);
    (limits.task_ttl, limits.max_task_ttl) = (LIFETIME, LIFETIME);
    config
}

impl Node {
    /// Starts a server. `nth` decides how its clock goes.
    pub(super) fn start(id: NodeId, settings: &Settings, seed: [u8; 32], now: Instant) -> Self {
        let (seconds, rate) = settings.apart;
        let nth = id.0 % 3;
        // Its own clock begins at zero when it starts, as the Unix time has gone on.
        let config = configure(settings, now.since_origin().as_secs() + nth * seconds);
        let mut engine = Server::new(Arc::new(config), seed, Instant::ZERO);
        engine.handle_timeout(Instant::ZERO);
        let rate = u128::from(1000 + nth * rate);
        Self {
            id,
            engine,
            own: None,
            is_asleep: false,
            handlers: BTreeMap::new(),
            arrived: now,
            replied: now,
            born: now,
            rate,
            last_exchange: 0,
        }
    }

    /// Returns the time of its clock.
    pub(super) fn clock(&self, now: Instant) -> Instant {
        let nanos = (now - self.born).as_nanos() * self.rate / 1000;
        Instant::new(Duration::from_nanos(nanos as u64))
    }

    /// Returns when its next timer is due. A sleeping one has none.
    pub(super) fn due(&self) -> Option<Instant> {
        let at = self.engine.poll_timeout().filter(|_| !self.is_asleep)?;
        let nanos = (at.since_origin().as_nanos() * 1000).div_ceil(self.rate);
        Some(self.born + Duration::from_nanos(nanos as u64))
    }

    pub(super) fn tick(&mut self, now: Instant) {
        let own = self.clock(now);
        self.engine.handle_timeout(own);
    }

    pub(super) fn exchange(&mut self) -> ExchangeId {
        self.last_exchange += 1;
        ExchangeId(self.last_exchange)
    }

    pub(super) fn handle(&mut self, now: Instant, x: ExchangeId, event: ExchangeEvent) {
        let own = self.clock(now);
        self.engine.handle_event(own, x, event);
    }

    pub(super) fn command(&mut self, now: Instant, command: mcp_proto::input::ServerCommand) {
        let own = self.clock(now);
        // Notes for requests that have ended are refused.
        let _ = self.engine.apply(own, Input::Command(command));
    }
}
