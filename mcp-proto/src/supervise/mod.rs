//! Several servers, kept connected: one [`Supervisor`] over the clients of an application.
//!
//! A supervisor decides. It does no I/O and runs no client: its driver starts a client for each
//! [`Output::Connect`], reports what becomes of it, and makes the calls that the supervisor
//! permits. Inputs and outputs are values, so the same inputs always give the same outputs.
//!
//! * *Reconnection.* A server that is lost is connected again after delays
//!   ([`Supervision::waits`]), once, however many calls notice it. If that fails too often, it is
//!   *down*: calls fail at once, and one attempt at a time probes it ([`WhenDown`]).
//! * *Identity.* Each client has a [`Generation`]. What is reported of an older one changes nothing
//!   of the newer one.
//! * *Calls.* A call to a server that reconnects waits for it, within its own time. A call whose
//!   connection ended runs once more, if that is safe ([`RetryTool`]). Each call ends exactly once.
//! * *Catalogues.* The lists of a server stay usable while it is not connected, and are marked
//!   ([`Freshness`]). They are loaded when it connects and when it announces a change.
//!
//! ```
//! use mcp_proto::client::ClientConfig;
//! use mcp_proto::exchange::Program;
//! use mcp_proto::supervise::{CallKind, CallPlan, Output, ServerSpec, Supervision, Supervisor};
//! use mcp_proto::time::Instant;
//!
//! let mut supervisor = Supervisor::new(Supervision::default(), [7; 32]);
//! let config = ClientConfig::program(Program::new("github-mcp"));
//! supervisor.add(Instant::ZERO, "github", ServerSpec::new(config)).unwrap();
//! let Some(Output::Connect { generation, .. }) = supervisor.poll_output() else { panic!() };
//! // The call waits for the client.
//! let plan = CallPlan::new(CallKind::Tool("search".into()));
//! let ticket = supervisor.call(Instant::ZERO, &"github", plan).unwrap();
//! supervisor.ready(Instant::from_millis(300), generation, &Default::default());
//! let outputs: Vec<_> = std::iter::from_fn(|| supervisor.poll_output()).collect();
//! let runs =
//!     |output: &Output<_>| matches!(output, Output::Run { ticket: of, .. } if *of == ticket);
//! assert!(outputs.iter().any(runs));
//! ```

mod calls;
mod catalogue;
mod clients;
mod connecting;
mod names;
mod report;
mod retry;
mod server;
mod spec;

#[cfg(test)]
mod tests;

pub use calls::{CallKind, CallPlan, CallVerdict, Ticket};
pub use catalogue::{Catalogue, Freshness, ListKind, Listing, Lists};
pub use clients::Generation;
pub use names::{NameRules, NamedTool, Prefix, ToolNames};
pub use report::{CallRefusal, Cause, Counters, Event, Health, Output, ServerState, SupervisedError};
pub use spec::{ConnectWhen, RetryTool, ServerSpec, Supervision, WhenDown};

use crate::client::{ClientConfig, Termination};
use crate::error::CallError;
use crate::input::Change;
use crate::model::capabilities::ServerCapabilities;
use crate::seed::Seed;
use crate::time::{Instant, Timers};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use calls::Calls;
use clients::{Clients, Ended};
use core::time::Duration;
use server::{Attempt, Phase, Server};

/// Keeps the clients of several servers connected, each under a key of the application. See the
/// [module](self).
///
/// After each method that changes it, take its outputs with [`poll_output`](Self::poll_output)
/// until there are none. Reports of a client that is not known, or not any more, change nothing.
#[derive(Debug)]
pub struct Supervisor<K> {
    policy: Supervision,
    servers: BTreeMap<ServerId, Server<K>>,
    keys: BTreeMap<K, ServerId>,
    clients: Clients<K>,
    calls: Calls,
    timers: Timers<Timer>,
    outputs: VecDeque<Output<K>>,
    seed: Seed,
    last_server: u64,
    closing: Closing,
    now: Instant,
}

/// A server. Another one of the same key, after the first was removed, is not the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct ServerId(u64);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    /// The next step of a server: an attempt, or the end of one.
    Server(ServerId),
    /// The next load of a list.
    Load(ServerId),
    /// The deadline of a call that waits.
    Call(Ticket),
    /// The limit for the end of all clients.
    Close,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Closing {
    No,
    Begun,
    Done,
}

/// The key is in use. It holds the specification that was not added.
#[derive(Clone, PartialEq, Debug)]
pub struct KeyInUse(pub ServerSpec);

impl core::fmt::Display for KeyInUse {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the key is in use, or the supervisor is closed")
    }
}

impl core::error::Error for KeyInUse {}

impl<K: Clone + Ord> Supervisor<K> {
    /// Creates a supervisor without servers. `seed` is 32 bytes from the operating system's random
    /// source, never used for anything else.
    pub fn new(policy: Supervision, seed: [u8; 32]) -> Self {
        Self {
            policy,
            servers: BTreeMap::new(),
            keys: BTreeMap::new(),
            clients: Clients::new(),
            calls: Calls::new(),
            timers: Timers::new(),
            outputs: VecDeque::new(),
            seed: Seed::new(seed),
            last_server: 0,
            closing: Closing::No,
            now: Instant::ZERO,
        }
    }

    /// Adds a server, and connects to it as its specification says.
    ///
    /// # Errors
    /// [`KeyInUse`] if there is a server of this key. After [`close`](Self::close) every key counts
    /// as used.
    pub fn add(&mut self, now: Instant, key: K, spec: ServerSpec) -> Result<(), KeyInUse> {
        self.at(now);
        if self.keys.contains_key(&key) || self.closing != Closing::No {
            return Err(KeyInUse(spec));
        }
        self.last_server += 1;
        let id = ServerId(self.last_server);
        self.keys.insert(key.clone(), id);
        let connect = spec.connect;
        self.servers.insert(id, Server::new(key, spec));
        if connect == ConnectWhen::AtOnce {
            self.attempt(id, Attempt::Usual);
        }
        Ok(())
    }

    /// Gives a server another specification. Its client is closed first, and the catalogue is that
    /// of the specification. Calls that run end with [`CallRefusal::Replaced`]: no answer of the
    /// old server is taken for one of the new server. Calls that wait go on waiting. Returns false
    /// if there is no server of this key.
    pub fn replace(&mut self, now: Instant, key: &K, spec: ServerSpec) -> bool {
        self.at(now);
        let Some(id) = self.keys.get(key).copied() else { return false };
        self.retire_all(id, &CallRefusal::Replaced);
        let Some(old) = self.servers.get_mut(&id) else { return false };
        let waiting = core::mem::take(&mut old.waiting);
        let at_once = spec.connect == ConnectWhen::AtOnce || !waiting.is_empty() || old.phase != Phase::Idle;
        let mut server = Server::new(old.key.clone(), spec);
        server.waiting = waiting;
        *old = server;
        self.timers.set(Timer::Server(id), None);
        self.timers.set(Timer::Load(id), None);
        if at_once {
            self.attempt(id, Attempt::Usual);
        }
        true
    }

    /// Removes a server and closes its client. All of its calls end with [`CallRefusal::Removed`].
    /// Returns false if there is no server of this key.
    pub fn remove(&mut self, now: Instant, key: &K) -> bool {
        self.at(now);
        let Some(id) = self.keys.remove(key) else { return false };
        self.drop_server(id, &CallRefusal::Removed);
        true
    }

    /// Connects to a server now, without a delay: also if it is connected, waits, or is down. Calls
    /// wait for it, and the delays begin again. Does nothing while an attempt runs, since that is
    /// the one. Returns false if there is no server of this key, or if
    /// [`Supervision::max_attempts`] does not permit an attempt now.
    pub fn reconnect(&mut self, now: Instant, key: &K) -> bool {
        self.at(now);
        let Some(id) = self.keys.get(key).copied() else { return false };
        let Some(server) = self.servers.get_mut(&id) else { return false };
        match server.phase {
            Phase::Blocked { .. } | Phase::Resolving { .. } | Phase::Connecting { .. } => return true,
            Phase::Idle | Phase::Ready { .. } | Phase::Waiting { .. } | Phase::Down { .. } => {}
        }
        if !server.may_attempt(self.now, &self.policy) {
            return false;
        }
        server.forgive();
        server.kept.disconnect();
        if server.ready().is_some() {
            server.cause = Some(Cause::Requested);
        }
        self.timers.set(Timer::Load(id), None);
        self.retire(id);
        self.attempt(id, Attempt::Usual);
        true
    }

    /// Reports the configuration for an attempt ([`Output::Resolve`]), or why there is none.
    pub fn resolved(&mut self, now: Instant, generation: Generation, config: Result<Arc<ClientConfig>, String>) {
        self.at(now);
        let Some(id) = self.clients.server(generation) else { return };
        let Some(Phase::Resolving { generation: current, attempt }) = self.phase(id) else { return };
        if current != generation {
            return;
        }
        match config {
            Ok(config) => self.connect(id, generation, attempt, config),
            Err(why) => {
                self.clients.forget(generation);
                self.fail(id, Cause::Unresolved(why));
            }
        }
    }

    /// Reports that a client has negotiated: it is connected, or has a new session.
    pub fn ready(&mut self, now: Instant, generation: Generation, capabilities: &ServerCapabilities) {
        self.at(now);
        let Some(id) = self.clients.server(generation) else { return };
        let Some(server) = self.servers.get_mut(&id).filter(|server| server.current() == Some(generation)) else {
            return;
        };
        if server.ready().is_none() {
            server.connected(generation, self.now);
            self.timers.set(Timer::Server(id), None);
            self.outputs.push_back(Output::Event(Event::Up { key: server.key.clone(), generation }));
        }
        let emptied = server.kept.connect(self.now, server.spec.lists, offered(capabilities));
        for list in emptied {
            self.outputs.push_back(Output::Event(Event::Listed { key: server.key.clone(), list }));
        }
        let waiting = core::mem::take(&mut server.waiting);
        for ticket in waiting {
            self.run(ticket, generation);
        }
        self.load(id);
    }

    /// Reports that a client has ended, with all of its connections. It cannot be used any more.
    pub fn ended(&mut self, now: Instant, generation: Generation, why: Termination) {
        self.at(now);
        let Some(Ended { server: id, key, was_retired }) = self.clients.end(generation) else { return };
        if was_retired {
            self.unblock(&key);
        } else {
            self.fail(id, Cause::Ended(why));
        }
        self.close_if_done();
    }

    /// Reports a notification of a server. Changes of single resources change no list.
    pub fn changed(&mut self, now: Instant, generation: Generation, change: &Change) {
        self.at(now);
        let Some(id) = self.clients.server(generation) else { return };
        let Some(server) = self.servers.get_mut(&id).filter(|server| server.ready() == Some(generation)) else {
            return;
        };
        let lists: &[ListKind] = match change {
            Change::Tools => &[ListKind::Tools],
            Change::Prompts => &[ListKind::Prompts],
            Change::Resources => &[ListKind::Resources, ListKind::ResourceTemplates],
            Change::Resource(_) => &[],
        };
        lists.iter().for_each(|list| server.kept.change(self.now, *list));
        self.load(id);
    }

    /// Reports a ping without a response, and how many in a row this one is
    /// ([`client::Event::PingMissed`](crate::client::Event::PingMissed)). After
    /// [`Supervision::max_missed_pings`] of them the server is lost: another client takes the place
    /// of this one.
    pub fn ping_missed(&mut self, now: Instant, generation: Generation, in_a_row: u32) {
        self.at(now);
        let Some(id) = self.clients.server(generation) else { return };
        let is_ready = self.servers.get(&id).is_some_and(|server| server.ready() == Some(generation));
        if is_ready && in_a_row >= self.policy.max_missed_pings {
            self.retire(id);
            self.fail(id, Cause::Unresponsive { pings: in_a_row });
        }
    }

    /// Reports the end of a load ([`Output::Load`]). After one that failed, the supervisor tries
    /// again, after delays of 1 s to 60 s.
    pub fn loaded(&mut self, now: Instant, generation: Generation, list: ListKind, listing: Option<Listing>) {
        self.at(now);
        let Some(id) = self.clients.server(generation) else { return };
        let Some(server) = self.servers.get_mut(&id).filter(|server| server.ready() == Some(generation)) else {
            return;
        };
        let listing = listing.filter(|listing| listing.kind() == list);
        if let Some(list) = server.kept.finish(self.now, list, listing) {
            self.outputs.push_back(Output::Event(Event::Listed { key: server.key.clone(), list }));
        }
        self.load(id);
    }

    /// Begins a call. [`Output::Run`] follows when a client can make it, or [`Output::Refuse`].
    ///
    /// # Errors
    /// [`CallRefusal`] if the call ends at once.
    pub fn call(&mut self, now: Instant, key: &K, plan: CallPlan) -> Result<Ticket, CallRefusal> {
        self.at(now);
        if self.closing != Closing::No {
            return Err(CallRefusal::Closed);
        }
        let id = *self.keys.get(key).ok_or(CallRefusal::Unknown)?;
        let server = self.servers.get_mut(&id).ok_or(CallRefusal::Unknown)?;
        if let (Some((since, next)), Some(cause)) = (server.down(self.now), server.cause.clone()) {
            return Err(CallRefusal::Unavailable { since, next, cause });
        }
        if server.ready().is_none() && server.waiting.len() >= self.policy.max_waiting {
            return Err(CallRefusal::Full);
        }
        let ticket = self.calls.add(id, plan, self.now);
        match server.phase {
            Phase::Ready { generation, .. } => self.run(ticket, generation),
            Phase::Idle => {
                self.wait(ticket, id);
                self.attempt(id, Attempt::Usual);
            }
            _ => self.wait(ticket, id),
        }
        Ok(ticket)
    }

    /// Reports the end of a call that ran ([`Output::Run`]), and returns what becomes of it.
    pub fn finished(&mut self, now: Instant, ticket: Ticket, outcome: Result<(), &CallError>) -> CallVerdict {
        self.at(now);
        let Some((id, generation)) = self.calls.running(ticket) else { return CallVerdict::Ignore };
        let Some(server) = self.servers.get_mut(&id) else { return CallVerdict::Ignore };
        let is_idle = self.clients.finish(generation, ticket);
        let told = outcome.err().map_or(retry::Told::Nothing, retry::Told::by);
        let tools = server.kept.catalogue.tools.as_deref().unwrap_or_default();
        let again = self.calls.may_repeat(ticket, self.now, |kind| told.allows(kind, server.spec.retry, tools));
        let is_current = server.ready() == Some(generation);
        let is_over =
            told == retry::Told::Unreachable || told == retry::Told::Lost && self.clients.is_exclusive(generation);
        if is_current && is_over {
            let cause = outcome.err().cloned().map_or(Cause::Requested, Cause::Unreachable);
            self.retire(id);
            self.fail(id, cause);
        } else if is_idle {
            self.close_client(generation);
        }
        if !again {
            self.calls.end(ticket);
            return CallVerdict::Final;
        }
        self.calls.repeat(ticket);
        self.place(ticket, id);
        CallVerdict::Again
    }

    /// Ends a call, since the application does not want it any more. No output of it follows. If it
    /// runs, the driver cancels it.
    pub fn cancel(&mut self, now: Instant, ticket: Ticket) {
        self.at(now);
        if let Some((_, generation)) = self.calls.running(ticket)
            && self.clients.finish(generation, ticket)
        {
            self.close_client(generation);
        }
        self.forget(ticket);
    }

    /// Closes all clients, and refuses all calls. [`Event::Closed`] follows, at the latest after
    /// [`Supervision::close_timeout`].
    pub fn close(&mut self, now: Instant) {
        self.at(now);
        if self.closing != Closing::No {
            return;
        }
        self.closing = Closing::Begun;
        self.keys.clear();
        while let Some((&id, _)) = self.servers.first_key_value() {
            self.drop_server(id, &CallRefusal::Closed);
        }
        self.timers.set(Timer::Close, Some(self.now + self.policy.close_timeout));
        self.close_if_done();
    }

    /// Fires the timers that are due. Does nothing if none is.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.at(now);
        while let Some(timer) = self.timers.pop_due(self.now) {
            match timer {
                Timer::Server(id) => self.on_server_timer(id),
                Timer::Load(id) => self.load(id),
                Timer::Call(ticket) => self.on_call_timer(ticket),
                Timer::Close => self.finish_closing(),
            }
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next().map(|(at, _)| at)
    }

    /// Returns the next output, in order.
    pub fn poll_output(&mut self) -> Option<Output<K>> {
        self.outputs.pop_front()
    }

    /// Returns the keys of the servers, in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.keys.keys()
    }

    /// Returns the state of a server. `None` if there is none of this key.
    pub fn health(&self, key: &K) -> Option<Health> {
        self.server(key).map(|server| server.health(self.now))
    }

    /// Returns the timeout of calls in the configuration of a server. `None` is no limit.
    pub fn call_timeout(&self, key: &K) -> Option<Duration> {
        self.server(key).and_then(|server| server.spec.config.timeout)
    }

    /// Returns whether each server is connected with its lists loaded, or has failed to connect, or
    /// was not asked to. A server that is lost counts again once it is connected.
    pub fn is_settled(&self) -> bool {
        self.servers.values().all(Server::is_settled)
    }

    /// Returns the lists of a server, as far as they are known. `None` without a server of this
    /// key.
    pub fn catalogue(&self, key: &K) -> Option<&Catalogue> {
        self.server(key).map(|server| &server.kept.catalogue)
    }

    /// Returns the tools of all servers, under names for a language model.
    pub fn tool_names(&self, rules: NameRules, prefix: Prefix) -> ToolNames<K>
    where
        K: AsRef<str>,
    {
        let tools = self.keys.iter().flat_map(|(key, id)| {
            let tools = self.servers.get(id).and_then(|server| server.kept.catalogue.tools.as_deref());
            tools.unwrap_or_default().iter().map(move |tool| (key.clone(), tool.name.clone()))
        });
        ToolNames::new(tools, rules, prefix, |_, _| None)
    }

    /// Returns how far a list of a server can be relied on.
    pub fn freshness(&self, key: &K, list: ListKind) -> Freshness {
        self.server(key).map_or(Freshness::Unknown, |server| server.kept.freshness(list))
    }

    /// Time does not move back.
    fn at(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    fn server(&self, key: &K) -> Option<&Server<K>> {
        self.keys.get(key).and_then(|id| self.servers.get(id))
    }
}

/// Calls.
impl<K: Clone + Ord> Supervisor<K> {
    /// Runs a call, or makes it wait for a connection, or refuses it.
    fn place(&mut self, ticket: Ticket, id: ServerId) {
        let Some(server) = self.servers.get(&id) else { return self.refuse(ticket, CallRefusal::Removed) };
        match (server.ready(), server.down(self.now), server.cause.clone()) {
            (Some(generation), ..) => self.run(ticket, generation),
            (None, Some((since, next)), Some(cause)) => {
                self.refuse(ticket, CallRefusal::Unavailable { since, next, cause });
            }
            _ => self.wait(ticket, id),
        }
    }

    fn run(&mut self, ticket: Ticket, generation: Generation) {
        self.timers.set(Timer::Call(ticket), None);
        let Some((id, timeout, again)) = self.calls.run(ticket, generation, self.now) else { return };
        self.clients.run(generation, ticket);
        if let Some(server) = self.servers.get_mut(&id) {
            server.counters.calls += 1;
            server.counters.retries += u64::from(again);
        }
        self.outputs.push_back(Output::Run { ticket, generation, timeout });
    }

    fn wait(&mut self, ticket: Ticket, id: ServerId) {
        if let Some(server) = self.servers.get_mut(&id) {
            server.waiting.insert(ticket);
        }
        self.timers.set(Timer::Call(ticket), self.calls.deadline(ticket));
    }

    fn on_call_timer(&mut self, ticket: Ticket) {
        if let Some(after) = self.calls.timeout(ticket) {
            self.refuse(ticket, CallRefusal::Timeout { after });
        }
    }

    fn refuse(&mut self, ticket: Ticket, why: CallRefusal) {
        if self.forget(ticket) {
            self.outputs.push_back(Output::Refuse { ticket, why });
        }
    }

    /// Forgets a call. Returns whether there was one.
    fn forget(&mut self, ticket: Ticket) -> bool {
        self.timers.set(Timer::Call(ticket), None);
        let Some(id) = self.calls.end(ticket) else { return false };
        if let Some(server) = self.servers.get_mut(&id) {
            server.waiting.remove(&ticket);
        }
        true
    }
}

/// Returns the lists that a server has.
fn offered(capabilities: &ServerCapabilities) -> Lists {
    let tools = if capabilities.tools.is_some() { Lists::NONE.with(ListKind::Tools) } else { Lists::NONE };
    let prompts = if capabilities.prompts.is_some() { tools.with(ListKind::Prompts) } else { tools };
    match capabilities.resources {
        Some(_) => prompts.with(ListKind::Resources).with(ListKind::ResourceTemplates),
        None => prompts,
    }
}
