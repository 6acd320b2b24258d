#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![forbid(unsafe_code)]
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
//! With these dependencies, where `../mcp` is a clone of the repository:
//!
//! ```toml
//! [dependencies]
//! mcp-proto = { path = "../mcp/mcp-proto" }
//! mcp-supervisor = { path = "../mcp/mcp-proto/supervisor" }
//! ```
//!
//! ```
//! use mcp_proto::client::ClientConfig;
//! use mcp_proto::exchange::Program;
//! use mcp_proto::time::Instant;
//! use mcp_supervisor::{CallKind, CallPlan, Output, ServerSpec, Supervision, Supervisor};
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

extern crate alloc;

mod calls;
mod catalogue;
mod clients;
pub mod config_file;
mod connecting;
#[cfg(feature = "std")]
pub mod front;
mod input;
mod names;
#[cfg(feature = "record")]
pub mod record;
mod report;
mod retry;
mod server;
mod spec;
mod steps;

#[cfg(test)]
mod tests;

pub use calls::{CallKind, CallPlan, Ticket};
pub use catalogue::{Catalogue, Freshness, ListFault, ListHealth, ListKind, Listing, Lists, LoadedList};
pub use clients::Generation;
pub use input::{Input, InputReply};
use mcp_proto::observer::{Observable, Observer, Observers};
pub use names::{NameRules, NamedTool, Prefix, ToolNames};
pub use report::{CallRefusal, Cause, Counters, Event, Health, Output, ServerState, SupervisedError};
pub use spec::{ConnectWhen, RetryTool, ServerSpec, Supervision, WhenDown};

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use calls::Calls;
use clients::Clients;
use core::time::Duration;
use input::Outcome;
use mcp_proto::client::{ClientConfig, Termination};
use mcp_proto::error::{CallError, StreamEnd};
use mcp_proto::input::Change;
use mcp_proto::model::capabilities::ServerCapabilities;
use mcp_proto::seed::Seed;
use mcp_proto::time::{Instant, Timers};
use server::Server;

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
    observers: Observers<Self>,
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

impl<K> Observable for Supervisor<K> {
    type Input = Input<K>;
    type Returned = InputReply;
    type Output = Output<K>;

    fn observe(&mut self, mut observer: Box<dyn Observer<Self>>) {
        observer.begin(self);
        self.observers.push(observer);
    }
}

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
            timers: Timers::default(),
            outputs: VecDeque::new(),
            seed: Seed::new(seed),
            last_server: 0,
            closing: Closing::No,
            now: Instant::ZERO,
            observers: Observers::default(),
        }
    }

    /// Applies one input: calls the method that it is about. A specification that cannot be added
    /// is dropped.
    pub fn apply(&mut self, now: Instant, input: Input<K>) -> InputReply {
        match input {
            Input::Add(key, spec) => return self.add(now, key, spec).returned(),
            Input::Replace(key, spec) => return self.replace(now, &key, spec).returned(),
            Input::Remove(key) => return self.remove(now, &key).returned(),
            Input::Reconnect(key) => return self.reconnect(now, &key).returned(),
            Input::Call(key, plan) => return self.call(now, &key, plan).returned(),
            Input::Finished(ticket, outcome) => self.finished(now, ticket, outcome.as_ref().copied()),
            Input::NotBegun(ticket) => self.not_begun(now, ticket),
            Input::Resolved(generation, config) => self.resolved(now, generation, config),
            Input::Ready(generation, capabilities) => self.ready(now, generation, &capabilities),
            Input::Ended(generation, why) => self.ended(now, generation, why),
            Input::SessionLost(generation, cause) => self.session_lost(now, generation, cause),
            Input::Changed(generation, change) => self.changed(now, generation, &change),
            Input::PingMissed(generation, in_a_row) => self.ping_missed(now, generation, in_a_row),
            Input::Loaded(generation, list, outcome) => self.loaded(now, generation, list, outcome),
            Input::Cancel(ticket) => self.cancel(now, ticket),
            Input::Close => self.close(now),
            Input::Tick => self.handle_timeout(now),
        }
        InputReply::Nothing
    }

    /// Adds a server, and connects to it as its specification says.
    ///
    /// # Errors
    /// [`KeyInUse`] if there is a server of this key. After [`close`](Self::close) every key counts
    /// as used.
    pub fn add(&mut self, now: Instant, key: K, spec: ServerSpec) -> Result<(), KeyInUse> {
        self.begin(now, || Input::Add(key.clone(), spec.clone()));
        let returned = self.on_add(key, spec);
        self.end(returned)
    }

    /// Gives a server another specification. Its client is closed first, and the catalogue is that
    /// of the specification. Calls that run end with [`CallRefusal::Replaced`]: no answer of the
    /// old server is taken for one of the new server. Calls that wait go on waiting. Returns false
    /// if there is no server of this key.
    pub fn replace(&mut self, now: Instant, key: &K, spec: ServerSpec) -> bool {
        self.begin(now, || Input::Replace(key.clone(), spec.clone()));
        let returned = self.on_replace(key, spec);
        self.end(returned)
    }

    /// Removes a server and closes its client. All of its calls end with [`CallRefusal::Removed`].
    /// Returns false if there is no server of this key.
    pub fn remove(&mut self, now: Instant, key: &K) -> bool {
        self.begin(now, || Input::Remove(key.clone()));
        let returned = self.on_remove(key);
        self.end(returned)
    }

    /// Connects to a server now, without a delay: also if it is connected, waits, or is down. Calls
    /// wait for it, and the delays begin again. A time that the server asked for is not waited for.
    /// An attempt that runs is the one, also the probe of a server that is down. Returns false if
    /// there is no server of this key, or if [`Supervision::max_attempts`] does not permit an
    /// attempt now.
    pub fn reconnect(&mut self, now: Instant, key: &K) -> bool {
        self.begin(now, || Input::Reconnect(key.clone()));
        let returned = self.on_reconnect(key);
        self.end(returned)
    }

    /// Reports the configuration for an attempt ([`Output::Resolve`]), or why there is none.
    pub fn resolved(&mut self, now: Instant, generation: Generation, config: Result<Arc<ClientConfig>, String>) {
        self.begin(now, || Input::Resolved(generation, config.clone()));
        self.on_resolved(generation, config);
        self.end(());
    }

    /// Reports that a client has negotiated: it is connected, or has a new session.
    pub fn ready(&mut self, now: Instant, generation: Generation, capabilities: &ServerCapabilities) {
        self.begin(now, || Input::Ready(generation, capabilities.clone()));
        self.on_ready(generation, capabilities);
        self.end(());
    }

    /// Reports that a client has ended, with all of its connections. It cannot be used any more.
    /// Report the ends of its calls before.
    pub fn ended(&mut self, now: Instant, generation: Generation, why: Termination) {
        self.begin(now, || Input::Ended(generation, why.clone()));
        self.on_ended(generation, why);
        self.end(());
    }

    /// Reports that a client has lost its session with its stream, over HTTP+SSE
    /// ([`client::Event::ListenerLost`](mcp_proto::client::Event::ListenerLost)). Another client
    /// takes the place of this one.
    pub fn session_lost(&mut self, now: Instant, generation: Generation, cause: StreamEnd) {
        self.begin(now, || Input::SessionLost(generation, cause.clone()));
        self.on_session_lost(generation, cause);
        self.end(());
    }

    /// Reports a notification of a server. Changes of single resources change no list.
    pub fn changed(&mut self, now: Instant, generation: Generation, change: &Change) {
        self.begin(now, || Input::Changed(generation, change.clone()));
        self.on_changed(generation, change);
        self.end(());
    }

    /// Reports a ping without a response, and how many in a row this one is
    /// ([`client::Event::PingMissed`](mcp_proto::client::Event::PingMissed)). After
    /// [`Supervision::max_missed_pings`] of them the server is lost: another client takes the place
    /// of this one.
    pub fn ping_missed(&mut self, now: Instant, generation: Generation, in_a_row: u32) {
        self.begin(now, || Input::PingMissed(generation, in_a_row));
        self.on_ping_missed(generation, in_a_row);
        self.end(());
    }

    /// Reports the end of a load ([`Output::Load`]). After one that failed, the supervisor tries
    /// again, after delays of 1 s to 60 s, and not before the time that the server asks for
    /// ([`Cause::retry_after`]): [`Event::NotListed`] tells of the first of them. A load fails by
    /// itself after 60 s, or after the timeout of calls if that is longer. A list whose method the
    /// server does not have ([`CallError::is_method_not_found`]) counts as empty, until the server
    /// is connected again or announces a change of it.
    pub fn loaded(
        &mut self,
        now: Instant,
        generation: Generation,
        list: ListKind,
        outcome: Result<LoadedList, CallError>,
    ) {
        self.begin(now, || Input::Loaded(generation, list, outcome.clone()));
        self.on_loaded(generation, list, outcome);
        self.end(());
    }

    /// Begins a call. [`Output::Run`] follows when a client can make it, and [`Output::End`] or
    /// [`Output::Refuse`] at its end.
    ///
    /// # Errors
    /// [`CallRefusal`] if the call ends at once.
    pub fn call(&mut self, now: Instant, key: &K, plan: CallPlan) -> Result<Ticket, CallRefusal> {
        self.begin(now, || Input::Call(key.clone(), plan.clone()));
        let returned = self.on_call(key, plan);
        self.end(returned)
    }

    /// Reports the end of a call on its client ([`Output::Run`]). [`Output::End`] follows, or the
    /// call runs once more: then [`Output::Run`] or [`Output::Refuse`] follows.
    pub fn finished(&mut self, now: Instant, ticket: Ticket, outcome: Result<(), &CallError>) {
        self.begin(now, || Input::Finished(ticket, outcome.map_err(Clone::clone)));
        self.on_finished(ticket, outcome);
        self.end(());
    }

    /// Reports that a client has not begun a call ([`Output::Run`]), since it closes or has ended:
    /// [`Refusal::Closed`](mcp_proto::Refusal::Closed). The call waits for the next client.
    pub fn not_begun(&mut self, now: Instant, ticket: Ticket) {
        self.begin(now, || Input::NotBegun(ticket));
        self.on_not_begun(ticket);
        self.end(());
    }

    /// Ends a call, since the application does not want it any more. No output of it follows. If it
    /// runs, the driver cancels it.
    pub fn cancel(&mut self, now: Instant, ticket: Ticket) {
        self.begin(now, || Input::Cancel(ticket));
        self.on_cancel(ticket);
        self.end(());
    }

    /// Closes all clients, and refuses all calls. [`Event::Closed`] follows, at the latest after
    /// [`Supervision::close_timeout`].
    pub fn close(&mut self, now: Instant) {
        self.begin(now, || Input::Close);
        self.on_close();
        self.end(());
    }

    /// Fires the timers that are due. Does nothing if none is.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.begin(now, || Input::Tick);
        self.on_timeout();
        self.end(());
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.observers.earliest(self.next_timeout())
    }

    /// Returns the next output, in order.
    pub fn poll_output(&mut self) -> Option<Output<K>> {
        let output = self.outputs.pop_front();
        self.observers.output(output.as_ref());
        output
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

    /// Returns the tools of all servers, each with its definition and a name for a language model.
    pub fn tool_names(&self, rules: NameRules, prefix: Prefix) -> ToolNames<K>
    where
        K: AsRef<str>,
    {
        let tools = self.keys.iter().flat_map(|(key, id)| {
            let tools = self.servers.get(id).and_then(|server| server.kept.catalogue.tools.as_deref());
            tools.unwrap_or_default().iter().map(move |tool| (key.clone(), tool.clone()))
        });
        let servers: Vec<&str> = self.keys.keys().map(AsRef::as_ref).collect();
        ToolNames::among(&servers, tools, rules, prefix, |_, _| None)
    }

    /// Returns how far a list of a server can be relied on.
    pub fn freshness(&self, key: &K, list: ListKind) -> Freshness {
        self.server(key).map_or(Freshness::Unknown, |server| server.kept.freshness(list))
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.timers.next().map(|(at, _)| at)
    }

    /// Begins an input. Time does not move back.
    fn begin(&mut self, now: Instant, input: impl FnOnce() -> Input<K>) {
        if !self.observers.is_empty() {
            let timer = self.next_timeout();
            self.observers.input(now, timer, &input());
        }
        self.now = self.now.max(now);
    }

    /// Ends an input, which returns this.
    fn end<T: Outcome>(&mut self, returned: T) -> T {
        let failure = self.observers.returned(|| returned.returned());
        if let Some(why) = failure.filter(|_| self.closing != Closing::Done) {
            self.outputs.push_back(Output::Event(Event::RecordingEnded { why }));
        }
        returned
    }

    fn server(&self, key: &K) -> Option<&Server<K>> {
        self.keys.get(key).and_then(|id| self.servers.get(id))
    }
}
