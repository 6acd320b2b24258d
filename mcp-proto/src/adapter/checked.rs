//! An engine that watches its driver: the same methods, and a panic for each rule that a driver can
//! break without a trace. No stream, no clock.

mod client;
mod connection;
mod rules;
mod server;
mod shared;
mod watch;

use super::is_unwinding;
use crate::exchange::{ConnectionId, IoEvent};
use crate::time::{Instant, earliest};
use alloc::boxed::Box;
use core::ops::Deref;
use rules::ConnectionRules;
use watch::Watch;

/// An engine that panics when its driver breaks a rule, for the tests of drivers.
///
/// A driver that omits a report can wait forever, and the engine ignores a report that is wrong.
/// `Checked` panics at the call that breaks the rule, or at the first call after its time limit.
///
/// It wraps a [`WiredClient`], a [`WiredServer`], or a [`SharedServer`] and each [`Connection`] of
/// it, and has their methods. A driver that uses it also in production creates it with
/// [`off`](Self::off), which checks nothing. A driver of a [`Driving`](super::Driving) sets
/// `checked` in its [`ClientOptions`](super::ClientOptions) or
/// [`ServerOptions`](super::ServerOptions).
///
/// ```should_panic
/// use mcp_proto::adapter::Checked;
/// use mcp_proto::exchange::{ConnectionId, IoEvent, Peer};
/// use mcp_proto::wired::{Kind, WiredServer};
/// use mcp_proto::{Instant, Router};
/// use std::sync::Arc;
///
/// let config = Arc::new(Router::new("calc", "1.0").config());
/// let mut server = Checked::new(WiredServer::new(config, [1; 32], Instant::ZERO));
/// let connection = server.accept(Instant::ZERO, Kind::Lines, Peer::default());
/// // Panics with "connection 1: 40 bytes written of 0": the engine wrote nothing.
/// server.handle_io(Instant::ZERO, connection, IoEvent::Written(40));
/// ```
///
/// # Rules
///
/// The time is the `now` that the driver gives. A step with a limit of 10 s takes almost no time on
/// a working system. [`poll_timeout`](Self::poll_timeout) includes these limits, so a driver that
/// waits for nothing breaks the rule at its next `handle_timeout`.
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
/// * A missing [`Written`](crate::exchange::IoEvent::Written) looks like a peer that does not read,
///   and a driver that reads no more like a peer that does not write.
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
/// [`Connection`]: crate::wired::Connection
/// [`SharedServer`]: crate::wired::SharedServer
/// [`WiredClient`]: crate::wired::WiredClient
/// [`WiredServer`]: crate::wired::WiredServer
#[derive(Debug)]
pub struct Checked<E> {
    engine: E,
    watch: Option<Box<Watch>>,
}

impl<E: Checkable> Checked<E> {
    /// Returns the engine with checks. Wrap an engine before its first input and output, and a
    /// server before its first connection.
    pub fn new(engine: E) -> Self {
        let mut watch = Watch::new();
        if let Some(rules) = engine.connection() {
            watch.add_single(rules);
        }
        watch.armed(engine.next_timeout());
        Self { engine, watch: Some(Box::new(watch)) }
    }

    /// Returns the engine without checks.
    pub fn off(engine: E) -> Self {
        Self { engine, watch: None }
    }

    /// Returns the engine with checks if they are `on`.
    #[cfg(feature = "std")]
    pub(super) fn when(on: bool, engine: E) -> Self {
        if on { Self::new(engine) } else { Self::off(engine) }
    }

    /// Returns when to call `handle_timeout`: for the engine, or because the driver breaks a rule
    /// if it does nothing until then.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let rule = self.watch.as_ref().and_then(|watch| watch.poll_timeout());
        earliest(self.engine.next_timeout(), rule)
    }

    /// Ends the checks: for a driver that stops at once, and reports nothing more.
    pub fn stop(&mut self) {
        self.watch = None;
    }

    /// Passes an input.
    #[track_caller]
    fn input<R>(&mut self, now: Instant, f: impl FnOnce(&mut E) -> R) -> R {
        self.check_input(now);
        let result = f(&mut self.engine);
        self.arm();
        result
    }

    #[track_caller]
    fn check_input(&mut self, now: Instant) {
        if let Some(mut watch) = self.take_watch() {
            watch.input(now);
            self.watch = Some(watch);
        }
    }

    #[track_caller]
    fn check_event(&mut self, now: Instant, id: ConnectionId, event: &IoEvent) {
        if let Some(mut watch) = self.take_watch() {
            watch.event(now, id, event);
            self.watch = Some(watch);
        }
    }

    #[track_caller]
    fn check_timeout(&mut self, now: Instant) {
        if let Some(mut watch) = self.take_watch() {
            watch.timeout(now);
            self.watch = Some(watch);
        }
    }

    /// Takes the checks, to put them back if no rule is broken: a second panic, in a drop, would
    /// abort the process. For the same reason there are none while the thread unwinds, since a
    /// driver drops its other connections then.
    fn take_watch(&mut self) -> Option<Box<Watch>> {
        self.watch.take().filter(|_| !is_unwinding())
    }

    /// Notes the next timer of the engine, after any change of it.
    fn arm(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.armed(self.engine.next_timeout());
        }
    }
}

/// The engine without checks, as [`off`](Checked::off) returns it.
impl<E: Checkable> From<E> for Checked<E> {
    fn from(engine: E) -> Self {
        Self::off(engine)
    }
}

/// The methods that change nothing.
impl<E> Deref for Checked<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.engine
    }
}

/// An engine that can be checked.
pub trait Checkable {
    /// Returns the rules for the connection that exists already.
    fn connection(&self) -> Option<ConnectionRules>;

    /// Returns the next timer of the engine.
    fn next_timeout(&self) -> Option<Instant>;
}

#[cfg(all(test, feature = "std", not(shuttle)))]
mod tests;
