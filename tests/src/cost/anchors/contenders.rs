//! Who calls whom.

use std::fmt;

/// A program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Program {
    /// Moves the same bytes and does nothing with them.
    Floor,
    Rmcp,
    Smol,
    Blocking,
    /// A copy of [`Smol`](Self::Smol) under another name.
    Twin,
}

pub(super) const TWIN: Program = Program::Twin;

/// A program as it is set up by variables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) program: Program,
    pub(super) variables: &'static [(&'static str, &'static str)],
}

const fn contender(
    name: &'static str,
    program: Program,
    variables: &'static [(&'static str, &'static str)],
) -> Contender {
    Contender { name, program, variables }
}

const FLOOR: Contender = contender("floor", Program::Floor, &[]);

/// As fast as it gets: without its pool of threads.
const RMCP: Contender = contender("rmcp", Program::Rmcp, &[("RT", "current"), ("STDIO", "pipes")]);

/// What drives a server instead of the floor, where that cannot.
pub(super) const PATIENT: Contender = contender("smol", Program::Smol, &[("RT", "current")]);

/// A client and a server, one of them the floor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) client: Contender,
    pub(super) server: Contender,
    pub(super) role: Role,
}

/// What a pair is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// The floor at both ends.
    Floor,
    /// A server of rmcp, or a client.
    RmcpServer,
    RmcpClient,
    /// One of ours, with a handler that needs no other thread.
    Server,
    /// One of ours, whose handler runs on a pool.
    PoolServer,
    /// The same as the first of ours, under another name.
    Control,
    Client,
    /// A client with a thread for each call: without a goal of processor time.
    ManyThreads,
}

const fn server(server: Contender, role: Role) -> Pair {
    Pair { client: FLOOR, server, role }
}

const fn client(client: Contender, role: Role) -> Pair {
    Pair { client, server: FLOOR, role }
}

/// All pairs. The first is the floor, and the second of ours is the control of the first.
pub(super) const PAIRS: [Pair; 12] = [
    server(FLOOR, Role::Floor),
    server(RMCP, Role::RmcpServer),
    client(RMCP, Role::RmcpClient),
    server(contender("smol, async", Program::Smol, &[("HANDLER", "async")]), Role::Server),
    server(contender("smol, async, again", Program::Twin, &[("HANDLER", "async")]), Role::Control),
    server(contender("smol, inline", Program::Smol, &[("HANDLER", "inline")]), Role::Server),
    server(contender("smol, pool", Program::Smol, &[("HANDLER", "pool")]), Role::PoolServer),
    server(contender("blocking, inline", Program::Blocking, &[("HANDLER", "inline")]), Role::Server),
    server(contender("blocking, pool", Program::Blocking, &[("HANDLER", "pool")]), Role::PoolServer),
    client(contender("smol", Program::Smol, &[("RT", "current")]), Role::Client),
    client(contender("blocking", Program::Blocking, &[("CALLS", "window")]), Role::Client),
    client(contender("blocking, a thread a call", Program::Blocking, &[]), Role::ManyThreads),
];

impl Pair {
    /// With one call in flight, one thread is all that there is.
    pub(super) fn is_in(&self, inflight: usize) -> bool {
        inflight > 1 || self.role != Role::ManyThreads
    }

    /// Returns the end that is not the floor, as a word and its name.
    pub(super) fn end(&self) -> (&'static str, &'static str) {
        match self.role {
            Role::RmcpClient | Role::Client | Role::ManyThreads => ("client", self.client.name),
            _ => ("server", self.server.name),
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.client.name, self.server.name)
    }
}
