//! The supervisor, with clients that a test reports.

mod calls;
mod lists;
mod names;
mod reconnecting;
mod refusing;

use super::*;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use mcp_proto::client::ClientConfig;
use mcp_proto::error::StreamEnd;
use mcp_proto::exchange::{Closed, Program, Sent};
use mcp_proto::model::capabilities::{ListCapability, ResourcesCapability};

/// A supervisor, and what it has put out.
struct Rig {
    supervisor: Supervisor<&'static str>,
    now: Instant,
    outputs: Vec<Output<&'static str>>,
}

/// What followed the report of the end of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// The call has ended with it.
    Final,
    /// The call runs once more, or was refused.
    Again,
    /// Nothing: the call did not run.
    Ignore,
}

/// Delays to the letter.
fn exact() -> Supervision {
    Supervision { jitter: false, ..Supervision::default() }
}

fn program() -> ServerSpec {
    ServerSpec::new(ClientConfig::program(Program::new("server")))
}

fn web() -> ServerSpec {
    ServerSpec::new(ClientConfig::url("http://localhost/mcp").unwrap())
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn exited() -> Termination {
    Termination::Closed(Closed::Eof)
}

fn lost(sent: Sent) -> CallError {
    CallError::Closed { sent, why: Closed::Eof }
}

fn tool_plan(name: &str) -> CallPlan {
    CallPlan::new(CallKind::Tool(name.into()))
}

/// The capabilities of a server with every list.
fn everything() -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(ListCapability::default());
    capabilities.prompts = Some(ListCapability::default());
    capabilities.resources = Some(ResourcesCapability::default());
    capabilities
}

impl Rig {
    fn new(policy: Supervision) -> Self {
        Self { supervisor: Supervisor::new(policy, [3; 32]), now: Instant::ZERO, outputs: Vec::new() }
    }

    /// A supervisor with one server `a` that is connected, and its client.
    fn ready(spec: ServerSpec) -> (Self, Generation) {
        let mut rig = Self::new(exact());
        rig.supervisor.add(rig.now, "a", spec).unwrap();
        let client = rig.connects();
        rig.up(client);
        rig.take();
        (rig, client)
    }

    fn drain(&mut self) {
        self.outputs.extend(core::iter::from_fn(|| self.supervisor.poll_output()));
    }

    fn take(&mut self) -> Vec<Output<&'static str>> {
        self.drain();
        core::mem::take(&mut self.outputs)
    }

    /// Takes the outputs, which start one client, and returns it.
    fn connects(&mut self) -> Generation {
        let found: Vec<_> = self.started();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]
    }

    /// Takes the outputs, and returns the clients that they start.
    fn started(&mut self) -> Vec<Generation> {
        let connected = |output| match output {
            Output::Connect { generation, .. } => Some(generation),
            _ => None,
        };
        self.take().into_iter().filter_map(connected).collect()
    }

    /// Takes the outputs, and returns the clients that they close.
    fn closed(&mut self) -> Vec<Generation> {
        let closed = |output| match output {
            Output::Close(generation) => Some(generation),
            _ => None,
        };
        self.take().into_iter().filter_map(closed).collect()
    }

    /// Takes the outputs, and returns the calls that they run, with their clients.
    fn runs(&mut self) -> Vec<(Ticket, Generation)> {
        let ran = |output| match output {
            Output::Run { ticket, generation, .. } => Some((ticket, generation)),
            _ => None,
        };
        self.take().into_iter().filter_map(ran).collect()
    }

    /// Takes the outputs, and returns the calls that they refuse.
    fn refused(&mut self) -> Vec<(Ticket, CallRefusal)> {
        let refused = |output| match output {
            Output::Refuse { ticket, why } => Some((ticket, why)),
            _ => None,
        };
        self.take().into_iter().filter_map(refused).collect()
    }

    fn up(&mut self, client: Generation) {
        self.supervisor.ready(self.now, client, &everything());
        self.drain();
    }

    fn end(&mut self, client: Generation) {
        self.supervisor.ended(self.now, client, exited());
        self.drain();
    }

    fn call(&mut self, plan: CallPlan) -> Ticket {
        let ticket = self.supervisor.call(self.now, &"a", plan).unwrap();
        self.drain();
        ticket
    }

    fn finish(&mut self, ticket: Ticket, outcome: Result<(), &CallError>) -> Verdict {
        self.drain();
        let (ran, before) = (self.supervisor.calls.running(ticket).is_some(), self.outputs.len());
        self.supervisor.finished(self.now, ticket, outcome);
        self.drain();
        let end = self.outputs.iter().skip(before).position(|output| *output == Output::End { ticket });
        match end {
            Some(end) => {
                drop(self.outputs.remove(before + end));
                Verdict::Final
            }
            None if ran => Verdict::Again,
            None => {
                assert_eq!(self.outputs.len(), before, "nothing follows");
                Verdict::Ignore
            }
        }
    }

    /// The client of a call closes, and has not begun it.
    fn not_begun(&mut self, ticket: Ticket) {
        self.supervisor.not_begun(self.now, ticket);
        self.drain();
    }

    /// Lets this time pass. Every timer fires at its time.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.supervisor.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.supervisor.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
        self.supervisor.handle_timeout(self.now);
        self.drain();
    }

    /// Lets time pass up to the next attempt to connect. Returns the time and the client.
    fn next_attempt(&mut self) -> (Duration, Generation) {
        let began = self.now;
        self.take();
        loop {
            let at = self.supervisor.poll_timeout().expect("an attempt follows");
            self.now = self.now.max(at);
            self.supervisor.handle_timeout(self.now);
            if let Some(client) = self.started().first() {
                return (self.now - began, *client);
            }
        }
    }

    fn state(&self) -> ServerState {
        self.supervisor.health(&"a").expect("a server").state
    }
}
