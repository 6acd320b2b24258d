//! The third driver: a client on a plain `poll(2)` loop. One thread, no executor, nothing of the protocol.
//!
//! It is the proof that the engine ports to any runtime, and the place to start a port from. Read it from here to the end, then
//! `channel`, where the operating system is, then `server`, which is the same loop in the other role.
//!
//! What a driver does is little. It carries out the engine's *actions* in their order: open, write, close, tell the application. It tells
//! the engine the *facts*: opened, bytes, end of input, written, closed. And it sleeps no longer than the engine's next timer. What any
//! of the bytes mean, when to give up, what to retry and how long to wait is decided by the engine alone.

mod channel;
mod server;

pub use server::{Handler, Hooks, serve_http, serve_http_with, serve_stdio};

use channel::Channel;
use mcp_proto::call::RawResult;
use mcp_proto::client::Event;
use mcp_proto::exchange::{Action, Closed, ConnectionId, Peer, Sent, Shutdown};
use mcp_proto::input::{CallId, Input, IoEvent};
use mcp_proto::wired::{Outbox, WiredClient};
use mcp_proto::{Call, CallError, ClientConfig, Instant, Method};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A client and its loop.
pub struct PollLoop {
    /// What decides. Commands are given to it directly, with the time from [`PollLoop::now`]; the next turn carries them out.
    pub engine: WiredClient,
    clock: Clock,
    channels: BTreeMap<ConnectionId, Channel>,
    /// The two directions of the channel that the application brought along.
    given: Option<[OwnedFd; 2]>,
    /// What the application was not told yet; what it does not take is counted, not kept without end.
    events: Outbox<Event>,
    /// The call that [`call`](Self::call) waits for, and how it ended.
    awaited: Option<(CallId, Option<Result<RawResult, CallError>>)>,
    /// Something was told in this turn.
    news: bool,
    ended: bool,
}

impl PollLoop {
    /// A client of the server that the configuration names. Nothing is opened before the first turn.
    ///
    /// # Errors
    /// Without a source of randomness.
    pub fn new(config: ClientConfig) -> io::Result<Self> {
        Self::start(config, None)
    }

    /// A client of whoever is at the other end of this socket.
    ///
    /// # Errors
    /// As [`new`](Self::new); or the socket cannot be duplicated.
    pub fn over(config: ClientConfig, socket: impl Into<OwnedFd>) -> io::Result<Self> {
        let socket = socket.into();
        Self::start(config, Some([socket.try_clone()?, socket]))
    }

    fn start(mut config: ClientConfig, given: Option<[OwnedFd; 2]>) -> io::Result<Self> {
        let clock = Clock::start();
        config.origin_unix = clock.origin_unix;
        let events = Outbox::new(config.limits.client.max_queued_events, config.limits.client.max_queued_event_bytes);
        let engine = WiredClient::new(Arc::new(config), seed()?, clock.now());
        let (channels, awaited, news, ended) = (BTreeMap::new(), None, false, false);
        Ok(Self { engine, clock, channels, given, events, awaited, news, ended })
    }

    /// The time as the engine counts it.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// One turn: carries out what the engine wants, sleeps until something happens, and tells the engine. False once the client has ended
    /// and nothing can happen any more. It does not sleep if the application has news to take.
    ///
    /// # Errors
    /// The operating system cannot wait, for want of memory.
    pub fn turn(&mut self) -> io::Result<bool> {
        self.news = false;
        self.carry_out();
        if !self.news && !self.ended {
            self.wait()?;
            self.carry_out();
        }
        Ok(!self.ended)
    }

    /// The next thing that the application should hear of. Take them all, turn by turn: of notifications and diagnostics only so many
    /// are kept.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Makes a call and turns until it has ended. Events of other kinds stay for [`next_event`](Self::next_event); a call during which the
    /// server may ask something is started on the [`engine`](Self::engine) instead, so that the application can answer.
    ///
    /// # Errors
    /// The call's own error.
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

    /// Ends the client in order, and turns until it has ended: every channel is closed, every child is gone.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn close(&mut self) -> io::Result<()> {
        let now = self.now();
        self.engine.close(now);
        while self.turn()? {}
        Ok(())
    }

    /// Does what the engine wants, until it wants nothing more. Telling it that a channel is closed may make it want something.
    fn carry_out(&mut self) {
        loop {
            while let Some(action) = self.engine.poll_output() {
                self.act(action);
            }
            let ended = |(id, channel): (&ConnectionId, &mut Channel)| channel.closed().map(|why| (*id, why));
            let Some((id, why)) = self.channels.iter_mut().find_map(ended) else { break };
            self.channels.remove(&id);
            self.tell(id, IoEvent::Closed(why));
        }
    }

    fn act(&mut self, action: Action<Event>) {
        match action {
            Action::Open(id, endpoint) => match Channel::open(&endpoint, &mut self.given) {
                Ok(channel) => {
                    let open = channel.is_open();
                    self.channels.insert(id, channel);
                    if open {
                        self.tell(id, IoEvent::Opened(Peer::default()));
                    }
                }
                Err(why) => self.tell(id, IoEvent::Closed(why)),
            },
            // A channel that is gone was reported so; what the engine wanted of it before it knew is void.
            Action::Write(id, bytes) => {
                if let Some(channel) = self.channels.get_mut(&id) {
                    channel.write(bytes);
                }
            }
            Action::Close(id, how) => {
                if let Some(channel) = self.channels.get_mut(&id) {
                    channel.close(how);
                }
            }
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

    /// Sleeps until a channel is ready or a timer is due, and tells the engine what happened.
    fn wait(&mut self) -> io::Result<()> {
        let sleep = self.engine.poll_timeout().map(|at| at - self.now());
        let wants_read = |id: ConnectionId| self.engine.wants_read(id);
        for id in channel::wait(&self.channels, wants_read, None, sleep)? {
            let wants_read = self.engine.wants_read(id);
            let facts = self.channels.get_mut(&id).map(|channel| channel.transfer(wants_read));
            for fact in facts.into_iter().flatten() {
                self.tell(id, fact);
            }
        }
        // Last, so that an answer that came in time wins over the timer. If none is due, nothing happens.
        self.engine.handle_timeout(self.now());
        Ok(())
    }

    fn tell(&mut self, id: ConnectionId, fact: IoEvent) {
        // The same as `engine.bytes(now, id, ..)`, `engine.written(now, id, ..)` and so on, with the fact as a value.
        self.engine.apply(self.now(), Input::Event(id, fact)).expect("facts are never refused");
    }
}

/// The clock of one engine: time since it was started, and when that was.
struct Clock {
    origin: std::time::Instant,
    origin_unix: Duration,
}

impl Clock {
    fn start() -> Self {
        let origin_unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { origin: std::time::Instant::now(), origin_unix }
    }

    fn now(&self) -> Instant {
        Instant::new(self.origin.elapsed())
    }
}

/// 32 bytes that nobody can guess.
fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut seed)?;
    Ok(seed)
}

fn lost(e: &io::Error) -> CallError {
    CallError::Closed { sent: Sent::Maybe, why: Closed::Unreachable(e.to_string()) }
}
