//! The rules for a driver, as the observer of an engine. No stream, no clock.

mod rules;
mod state;

use super::is_unwinding;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use mcp_proto::client;
use mcp_proto::exchange::{Action, ConnectionId, IoEvent};
use mcp_proto::input::{Input, WiredClientInput, WiredServerInput};
use mcp_proto::observer::{Observable, Observer};
use mcp_proto::server;
use mcp_proto::time::Instant;
use mcp_proto::wired::*;
use rules::ConnectionRules;
use state::DriverState;

/// Checks from now on that the driver of this engine keeps the rules, for the tests of a driver.
///
/// A driver that omits a report can wait forever, and the engine ignores a report that is wrong. An
/// engine with checks panics at the call that breaks the rule, or at the first call after its time
/// limit.
///
/// The engine is a [`WiredClient`], a [`WiredServer`], or a [`SharedServer`] and each
/// [`Connection`] of it. Check an engine before its first input and output, and a server before its
/// first connection. A driver of a [`DriverHandle`](super::DriverHandle) sets `checked` in its
/// [`ClientOptions`](super::ClientOptions) or [`ServerOptions`](super::ServerOptions).
///
/// ```should_panic
/// use mcp_driver::check;
/// use mcp_proto::exchange::{IoEvent, Peer};
/// use mcp_proto::wired::{Kind, WiredServer};
/// use mcp_proto::{Instant, Router};
/// use std::sync::Arc;
///
/// let config = Arc::new(Router::new("calc", "1.0").config());
/// let mut server = WiredServer::new(config, [1; 32], Instant::ZERO);
/// check(&mut server);
/// let connection = server.accept(Instant::ZERO, Kind::Lines, Peer::default());
/// // Panics with "connection 1: 40 bytes written of 0": the engine wrote nothing.
/// server.handle_io(Instant::ZERO, connection, IoEvent::Written(40));
/// ```
///
/// # Rules
///
/// The time is the `now` that the driver gives. A step with a limit of 10 s takes almost no time on
/// a working system. The `poll_timeout` of the engine includes these limits, so a driver that waits
/// for nothing breaks the rule at its next `handle_timeout`.
///
/// | the driver | text of the panic | limit |
/// |---|---|---|
/// | gives a `now` that is not before the last one | `` `now` went back from 5s to 4s `` | at once |
/// | calls `handle_timeout` at `poll_timeout` | ``a timer was due 10.1 s ago and no `handle_timeout` `` | 10 s |
/// | takes the outputs after every input, until there are none | ``an input 10.1 s ago and no `poll_output` `` | 10 s |
/// | of a [`Connection`]: takes a turn after every event and timeout | `connection 3: an event 10.1 s ago and no turn` | 10 s |
/// | of a [`SharedServer`]: takes a turn of each connection that it wakes | `connection 3: woken 10.1 s ago and no turn` | 10 s |
/// | reports events only of connections that it was to open, or accepted | ``connection 3: `Read`, and no such connection`` | at once |
/// | reports `Closed` once, as the last event | ``connection 3: `Read` after `Closed` `` | at once |
/// | reports `Opened` before all other events but `Closed` | ``connection 3: `Read` before `Opened` `` | at once |
/// | reports `Opened` once, and never of an accepted connection | ``connection 3: `Opened`, and it was open`` | at once |
/// | reports `Secured` after `Secure`, before all other events but `Closed` | ``connection 3: `Read` before `Secured` `` | at once |
/// | reports `Secured` only after `Secure` | ``connection 3: `Secured`, and no `Secure` `` | at once |
/// | reports nothing read after `ReadClosed` | ``connection 3: `Read` after `ReadClosed` `` | at once |
/// | reports the end of the input as `ReadClosed` | ``connection 3: `Read` of no bytes`` | at once |
/// | stops reading at `Read(false)` and at `Close(Abort)`; one read may be under way | `connection 3: read while reading was off` | at once |
/// | reports no more bytes as written than it was given | `connection 3: 40 bytes written of 12` | at once |
/// | reports `Closed(Eof)` only once its own direction has ended too | ``connection 3: `Closed(Eof)`, and this side has not ended`` | at once |
/// | reports `Closed` after a `Close(Abort)` | ``connection 3: closed 10.1 s ago by us and no `Closed` `` | 10 s |
/// | reports `Closed` of a socket after the end of both directions | ``connection 3: both directions ended 10.1 s ago and no `Closed` `` | 10 s |
///
/// Both directions have ended after `ReadClosed` and a `Close(WriteHalf)` with all bytes written.
///
/// # Limits of the checks
///
/// Some errors have no trace in the calls of a driver:
///
/// * A missing [`Written`](mcp_proto::exchange::IoEvent::Written) looks like a peer that does not
///   read, and a driver that reads no more like a peer that does not write.
/// * The order of the written bytes, and whether they were written at all.
/// * A failed write, after which a driver reads on. A connection with such a write may end without
///   a `Close(WriteHalf)`, so `Closed(Eof)` counts as early only before the first `Write`.
/// * The exit of a program that was not aborted.
/// * A task that drops its [`Connection`] before `Closed`, or before the last turn.
///
/// The program `hostile --driver` of this repository has peers that reveal most of them.
///
/// A computer that sleeps, or a thread that is stopped in a debugger, breaks the rules with a time.
///
/// [`Connection`]: mcp_proto::wired::Connection
/// [`SharedServer`]: mcp_proto::wired::SharedServer
/// [`WiredClient`]: mcp_proto::wired::WiredClient
/// [`WiredServer`]: mcp_proto::wired::WiredServer
pub fn check<E: Observable>(engine: &mut E) -> Checks
where
    DriverRules: Observer<E>,
{
    let checks = Checks(Arc::new(AtomicBool::new(true)));
    engine.observe(Box::new(DriverRules { state: DriverState::new(), checks: checks.clone() }));
    checks
}

/// The checks of one engine, from [`check`]. Dropping this value does not end them.
#[derive(Clone, Debug)]
pub struct Checks(Arc<AtomicBool>);

impl Checks {
    /// Ends the checks: for a driver that stops at once, and reports nothing more.
    pub fn stop(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// There are none while the thread unwinds, since a driver drops its other connections then: a
    /// second panic would abort the process.
    fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed) && !is_unwinding()
    }
}

/// The observer of [`check`].
#[derive(Debug)]
pub struct DriverRules {
    state: DriverState,
    checks: Checks,
}

impl DriverRules {
    /// Checks an input of the driver, unless the checks have ended.
    fn input(
        &mut self,
        timer: Option<Instant>,
        check: impl FnOnce(&mut DriverState) -> Result<(), String>,
    ) -> Result<(), String> {
        if !self.checks.is_on() {
            return Ok(());
        }
        self.state.armed(timer);
        check(&mut self.state)
    }

    fn deadline(&self) -> Option<Instant> {
        self.state.poll_timeout().filter(|_| self.checks.is_on())
    }
}

impl Observer<WiredClient> for DriverRules {
    fn begin(&mut self, engine: &WiredClient) {
        if let Some(id) = engine.given() {
            self.state.add_single(ConnectionRules::open(id, false));
        }
    }

    fn input(&mut self, now: Instant, input: &WiredClientInput, timer: Option<Instant>) -> Result<(), String> {
        self.input(timer, |state| match input {
            Input::Event(connection, event) => state.event(now, *connection, event),
            Input::Command(_) => state.input(now),
            Input::Tick => state.timeout(now),
        })
    }

    fn output(&mut self, action: Option<&Action<client::Event>>) {
        self.state.took_action(action);
        if let Some(Action::Event(client::Event::Terminated(_))) = action {
            self.state.terminated();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline()
    }
}

impl Observer<WiredServer> for DriverRules {
    fn input(&mut self, now: Instant, input: &WiredServerInput, timer: Option<Instant>) -> Result<(), String> {
        self.input(timer, |state| match input {
            Input::Event(connection, event) => state.event(now, *connection, event),
            Input::Command(_) => state.input(now),
            Input::Tick => state.timeout(now),
        })
    }

    fn accepted(&mut self, now: Instant, connection: ConnectionId, timer: Option<Instant>) -> Result<(), String> {
        self.state.add(ConnectionRules::open(connection, false));
        self.input(timer, |state| state.input(now))
    }

    fn output(&mut self, action: Option<&Action<server::Event>>) {
        self.state.took_action(action);
        if let Some(Action::Event(server::Event::Terminated)) = action {
            self.state.terminated();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline()
    }
}

impl Observer<Connection> for DriverRules {
    fn begin(&mut self, connection: &Connection) {
        let id = ConnectionId(connection.number());
        let rules = if connection.is_open() { ConnectionRules::open } else { ConnectionRules::opening };
        self.state.add_single(rules(id, connection.is_program()));
    }

    fn input(&mut self, now: Instant, input: &ConnectionInput, timer: Option<Instant>) -> Result<(), String> {
        self.input(timer, |state| match input {
            ConnectionInput::Event(event) => {
                state.single_event(now, event)?;
                if let IoEvent::Closed(_) = event {
                    state.terminated();
                }
                Ok(())
            }
            ConnectionInput::Command => state.input(now),
            ConnectionInput::Tick => {
                state.timeout(now)?;
                state.needs_turn();
                Ok(())
            }
        })
    }

    fn output(&mut self, output: Option<&ConnectionTaken>) {
        match output {
            Some(ConnectionTaken::Event) => self.state.took_turn(false),
            Some(ConnectionTaken::Turn) => self.state.took_turn(true),
            Some(ConnectionTaken::Output(output)) => self.state.took_connection_output(Some(output)),
            None => self.state.took_connection_output(None),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline()
    }
}

impl Observer<SharedServer> for DriverRules {
    fn input(&mut self, now: Instant, input: &SharedServerInput, timer: Option<Instant>) -> Result<(), String> {
        self.input(timer, |state| match input {
            SharedServerInput::Turn(connection) => {
                state.exchanged(*connection);
                state.input(now)
            }
            SharedServerInput::Command => state.input(now),
            SharedServerInput::Tick => state.timeout(now),
        })
    }

    fn output(&mut self, output: Option<&SharedServerTaken>) {
        self.state.took_output(output.is_some());
        match output {
            Some(SharedServerTaken::Woken(connection)) => self.state.woken(*connection),
            Some(SharedServerTaken::Terminated) => self.state.terminated(),
            Some(SharedServerTaken::Event) | None => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;
