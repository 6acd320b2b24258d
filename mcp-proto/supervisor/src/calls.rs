//! The calls of all servers, from their beginning to their one end.

use super::{Generation, ServerId};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use mcp_proto::call::{Call, Method};
use mcp_proto::time::Instant;

/// A call of a [`Supervisor`](super::Supervisor).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Ticket(pub u64);

/// How a call is to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CallPlan {
    /// What the call does.
    pub kind: CallKind,
    /// Maximum time for the call, from now on: for the connection, for its request and for a second
    /// one. `None` is no limit. Default 30 s.
    pub timeout: Option<Duration>,
}

impl CallPlan {
    /// Creates a plan with the defaults.
    pub const fn new(kind: CallKind) -> Self {
        Self { kind, timeout: Some(Duration::from_secs(30)) }
    }
}

/// The methods that change nothing.
const READS: [&str; 9] = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "server/discover",
    "ping",
];

/// What a call does, as far as a second run of it matters.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CallKind {
    /// It calls the tool of this name. See [`RetryTool`](super::RetryTool).
    Tool(String),
    /// It changes nothing: a list, a resource, a prompt, a completion. It runs again after each end
    /// of its connection, once.
    Read,
    /// It may change something. It runs again only if the server cannot have received it.
    Other,
}

impl CallKind {
    /// Returns what this call does.
    pub fn of<M: Method>(call: &Call<M>) -> Self {
        let raw = call.raw();
        let name = || raw.params.as_ref().ok().and_then(|params| params.str("name"));
        match &*raw.method {
            _ if raw.options.repeatable => Self::Read,
            "tools/call" => name().map_or(Self::Other, |name| Self::Tool(name.into_owned())),
            method if READS.contains(&method) => Self::Read,
            _ => Self::Other,
        }
    }
}

/// The calls that have not ended.
#[derive(Debug)]
pub(super) struct Calls {
    calls: BTreeMap<Ticket, Entry>,
    last: u64,
}

#[derive(Debug)]
struct Entry {
    server: ServerId,
    plan: CallPlan,
    deadline: Option<Instant>,
    /// The client on which it runs. `None` while it waits.
    on: Option<Generation>,
    /// Whether it has run before.
    again: bool,
}

impl Entry {
    fn is_overdue(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

impl Calls {
    pub(super) const fn new() -> Self {
        Self { calls: BTreeMap::new(), last: 0 }
    }

    pub(super) fn add(&mut self, server: ServerId, plan: CallPlan, now: Instant) -> Ticket {
        self.last += 1;
        let ticket = Ticket(self.last);
        let deadline = plan.timeout.map(|timeout| now + timeout);
        self.calls.insert(ticket, Entry { server, plan, deadline, on: None, again: false });
        ticket
    }

    /// Returns the server and the client of a call, if it runs.
    pub(super) fn running(&self, ticket: Ticket) -> Option<(ServerId, Generation)> {
        self.calls.get(&ticket).and_then(|call| Some((call.server, call.on?)))
    }

    /// Returns the calls of a server that run, on whatever client: also on one that has ended
    /// before it could begin them.
    pub(super) fn running_at(&self, server: ServerId) -> Vec<Ticket> {
        let runs = |(_, call): &(&Ticket, &Entry)| call.server == server && call.on.is_some();
        self.calls.iter().filter(runs).map(|(ticket, _)| *ticket).collect()
    }

    /// Returns all calls.
    pub(super) fn all(&self) -> Vec<Ticket> {
        self.calls.keys().copied().collect()
    }

    pub(super) fn deadline(&self, ticket: Ticket) -> Option<Instant> {
        self.calls.get(&ticket).and_then(|call| call.deadline)
    }

    /// Returns whether the time of a call is over.
    pub(super) fn is_overdue(&self, ticket: Ticket, now: Instant) -> bool {
        self.calls.get(&ticket).is_some_and(|call| call.is_overdue(now))
    }

    /// Returns the time that a call had in all, if it waits.
    pub(super) fn timeout(&self, ticket: Ticket) -> Option<Duration> {
        self.calls.get(&ticket).filter(|call| call.on.is_none()).and_then(|call| call.plan.timeout)
    }

    /// Begins to run a call. Returns its server, the time that is left, and whether it has run
    /// before.
    pub(super) fn run(
        &mut self,
        ticket: Ticket,
        on: Generation,
        now: Instant,
    ) -> Option<(ServerId, Option<Duration>, bool)> {
        let call = self.calls.get_mut(&ticket)?;
        call.on = Some(on);
        Some((call.server, call.deadline.map(|deadline| deadline.since(now)), call.again))
    }

    /// Lets a call that has run wait for another client: once, if the rule permits it and if there
    /// is time left. Returns false if it may not wait.
    pub(super) fn repeat(&mut self, ticket: Ticket, now: Instant, rule: impl Fn(&CallKind) -> bool) -> bool {
        let Some(call) = self.calls.get_mut(&ticket) else { return false };
        let may = !call.again && !call.is_overdue(now) && rule(&call.plan.kind);
        if may {
            (call.on, call.again) = (None, true);
        }
        may
    }

    /// Lets a call wait for another client that its client did not begin.
    pub(super) fn take_back(&mut self, ticket: Ticket) {
        if let Some(call) = self.calls.get_mut(&ticket) {
            call.on = None;
        }
    }

    /// Forgets a call. Returns its server, if there was one.
    pub(super) fn end(&mut self, ticket: Ticket) -> Option<ServerId> {
        self.calls.remove(&ticket).map(|call| call.server)
    }
}
