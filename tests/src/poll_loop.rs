//! The third driver: a client on a plain `poll(2)` loop, with one thread, no executor, and no
//! protocol knowledge. It uses `mcp-proto` alone.
//!
//! It proves that the engine ports to any runtime, and is a starting point for a port. Read it from
//! here to the end, then `channel`, which has the operating system, then `server`, which is the
//! same loop in the other role.
//!
//! A driver does little. It carries out the *actions* of the engine in order: open, write, close,
//! pass an event to the application. It reports *events* to the engine: opened, bytes, end of
//! input, written, closed. And it sleeps no longer than until the engine's next timer. The engine
//! alone decides what the bytes mean, when to give up, what to retry, and how long to wait.

mod channel;
mod clock;
mod server;

pub use server::{Hooks, serve_http, serve_stdio};

use channel::Channel;
use clock::{Clock, seed};
use mcp_proto::call::RawResult;
use mcp_proto::client::{ClientCommands, Event};
use mcp_proto::event_queue::EventQueue;
use mcp_proto::exchange::{Action, Closed, ConnectionId, Sent};
use mcp_proto::input::CallId;
use mcp_proto::wired::{ConnectionOutput, WiredClient};
use mcp_proto::{Call, CallError, ClientConfig, Instant, Method};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A client and its loop.
pub struct PollLoop {
    /// The engine. Give commands to it directly, with the time of [`PollLoop::now`]. The next turn
    /// carries them out.
    pub engine: WiredClient,
    clock: Clock,
    channels: BTreeMap<ConnectionId, Channel>,
    /// The two directions of a connection that the application provided.
    given: Option<[OwnedFd; 2]>,
    /// Events for the application. Those that it does not take are counted and not kept without
    /// limit.
    events: EventQueue<Event>,
    /// The call that [`call`](Self::call) waits for, and its outcome.
    awaited: Option<(CallId, Option<Result<RawResult, CallError>>)>,
    /// There was an event in this turn.
    news: bool,
    ended: bool,
}

impl PollLoop {
    /// Creates a client of the configured server. Opens nothing before the first turn.
    ///
    /// # Errors
    /// There is no source of randomness.
    pub fn new(config: ClientConfig) -> io::Result<Self> {
        Self::start(config, None)
    }

    /// Creates a client of the peer of this socket.
    ///
    /// # Errors
    /// As [`new`](Self::new). Also if the socket cannot be duplicated.
    pub fn over(config: ClientConfig, socket: impl Into<OwnedFd>) -> io::Result<Self> {
        let socket = socket.into();
        Self::start(config, Some([socket.try_clone()?, socket]))
    }

    fn start(mut config: ClientConfig, given: Option<[OwnedFd; 2]>) -> io::Result<Self> {
        let clock = Clock::start();
        config.origin_unix = clock.unix();
        let events =
            EventQueue::new(config.limits.client.max_queued_events, config.limits.client.max_queued_event_bytes);
        let engine = WiredClient::new(Arc::new(config), seed()?, clock.now());
        let (channels, awaited, news, ended) = (BTreeMap::new(), None, false, false);
        Ok(Self { engine, clock, channels, given, events, awaited, news, ended })
    }

    /// Returns the time in terms of the engine.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Runs one turn: carries out the actions of the engine, sleeps until something happens, and
    /// reports it. Returns false once the client has ended and nothing more can happen. Does not
    /// sleep if there are events for the application.
    ///
    /// # Errors
    /// The operating system cannot wait, for lack of memory.
    pub fn turn(&mut self) -> io::Result<bool> {
        self.news = false;
        self.carry_out();
        if !self.news && !self.ended {
            self.wait()?;
            self.carry_out();
        }
        Ok(!self.ended)
    }

    /// Returns the next event for the application. Take all of them after each turn: the number of
    /// waiting notifications and diagnostics is limited.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Makes a call, and runs turns until it has ended. Other events stay for
    /// [`next_event`](Self::next_event). If the server may request input during a call, start it on
    /// the [`engine`](Self::engine) instead, so that the application can answer.
    ///
    /// # Errors
    /// The error of the call.
    pub fn call<M: Method>(&mut self, call: Call<M>) -> Result<M::Output, CallError> {
        let now = self.now();
        let calling = self.engine.call(now, call).map_err(|refused| CallError::Refused(refused.why))?;
        self.awaited = Some((calling.id(), None));
        loop {
            if let Some((_, Some(outcome))) = self.awaited.take_if(|(_, outcome)| outcome.is_some()) {
                return calling.finish(outcome);
            }
            self.turn().map_err(|e| lost(&e))?;
        }
    }

    /// Closes the client in order, and runs turns until it has ended: every connection is closed,
    /// every child has exited.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn close(&mut self) -> io::Result<()> {
        let now = self.now();
        self.engine.close(now);
        while self.turn()? {}
        Ok(())
    }

    /// Carries out the actions of the engine until there are none. Reporting that a connection is
    /// closed may cause further actions.
    fn carry_out(&mut self) {
        loop {
            while let Some(action) = self.engine.poll_output() {
                self.act(action);
            }
            if !channel::report(&mut self.channels, self.clock.now(), |now, id, event| {
                self.engine.handle_io(now, id, event);
            }) {
                break;
            }
        }
    }

    fn act(&mut self, action: Action<Event>) {
        match action {
            Action::Open(id, endpoint) => {
                let channel = Channel::open(&endpoint, &mut self.given);
                self.channels.insert(id, channel);
            }
            Action::Secure(id, name) => self.pass_on(id, ConnectionOutput::Secure(name)),
            Action::Write(id, bytes) => self.pass_on(id, ConnectionOutput::Write(bytes)),
            Action::Read(id, reads) => self.pass_on(id, ConnectionOutput::Read(reads)),
            Action::Close(id, how) => self.pass_on(id, ConnectionOutput::Close(how)),
            // For an application that shows how its connections end.
            Action::Notice(..) => {}
            Action::Event(event) => {
                self.news = true;
                self.ended |= matches!(event, Event::Terminated(_));
                match (event, &mut self.awaited) {
                    (Event::Ended { call, outcome }, Some((awaited, ended))) if call == *awaited => {
                        *ended = Some(outcome)
                    }
                    (event, _) => self.events.push(event),
                }
            }
        }
    }

    /// Passes an output to its channel. If the end of the connection was reported, it is void.
    fn pass_on(&mut self, id: ConnectionId, output: ConnectionOutput) {
        let now = self.now();
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.act(now, output);
        }
    }

    /// Sleeps until a channel is ready or a timer is due, and reports what happened.
    fn wait(&mut self) -> io::Result<()> {
        let now = self.now();
        let due = self.channels.values().filter_map(Channel::poll_timeout).chain(self.engine.poll_timeout()).min();
        for id in channel::wait(&self.channels, None::<BorrowedFd<'_>>, due.map(|at| at - now))? {
            let now = self.now();
            if let Some(channel) = self.channels.get_mut(&id) {
                channel.transfer(now);
            }
        }
        channel::report(&mut self.channels, self.clock.now(), |now, id, event| self.engine.handle_io(now, id, event));
        // Last, so that a response in time wins over the timer. Does nothing if none is due.
        self.engine.handle_timeout(self.now());
        Ok(())
    }
}

fn lost(e: &io::Error) -> CallError {
    CallError::Closed { sent: Sent::Maybe, why: Closed::Unreachable(e.to_string()) }
}
