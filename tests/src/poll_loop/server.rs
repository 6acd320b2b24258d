//! The same loop in the other role: a server over its standard streams, or over TCP. Handlers are plain functions that run on the loop.

use super::channel::{self, Channel};
use super::{Clock, seed};
use mcp_proto::exchange::{Action, ConnectionId, Peer, RequestHead, Shutdown};
use mcp_proto::input::{Admission, Input, IoEvent, Note};
use mcp_proto::route::{Cx, Port, Routed};
use mcp_proto::server::{Event, Responder};
use mcp_proto::wired::{Kind, WiredServer, refusal};
use mcp_proto::{Outcome, Refusal, Router};
use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A handler. It runs on the loop, so nothing else happens before it returns. `None` means "not yet": it is entered again soon, and once
/// more after its request was cancelled, so that it can stop what it has begun.
pub type Handler = fn(&Cx) -> Option<Outcome>;

/// What a loop that serves HTTP asks and tells the application. Both run on the loop.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Decides about a request from its head, if the configuration asks for that.
    pub admit: fn(&RequestHead) -> Admission,
    /// Is told after each turn what the server holds.
    pub watch: fn(&WiredServer),
}

impl Default for Hooks {
    /// Lets everyone in, and tells nobody.
    fn default() -> Self {
        Self { admit: |_| Admission::Accept(None), watch: |_| {} }
    }
}

/// How soon a handler that is not done is entered again.
const AGAIN: Duration = Duration::from_millis(5);

/// Serves whoever started this program, until they are done.
///
/// # Errors
/// The operating system cannot wait; or there is no randomness, or no standard stream.
pub fn serve_stdio(router: &Router<Handler>) -> io::Result<()> {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout()];
    let [input, output] = streams.map(|stream| stream.try_clone_to_owned());
    let mut server = ServeLoop::new(router, None, 0)?;
    server.accept(Kind::Lines, [input?, output?], Peer::default())?;
    server.run()
}

/// Serves that many connections, then ends.
///
/// # Errors
/// As [`serve_stdio`].
pub fn serve_http(router: &Router<Handler>, listener: TcpListener, connections: usize) -> io::Result<()> {
    serve_http_with(router, listener, connections, Hooks::default())
}

/// The same, with hooks.
///
/// # Errors
/// As [`serve_stdio`].
pub fn serve_http_with(
    router: &Router<Handler>,
    listener: TcpListener,
    connections: usize,
    hooks: Hooks,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut server = ServeLoop::new(router, Some(listener), connections)?;
    server.hooks = hooks;
    server.run()
}

/// The channels from here on are those of connections that were one too many: the engine does not know them.
const REFUSED: ConnectionId = ConnectionId(1 << 63);

/// How many of them there are while they read what they are told. Then the oldest goes.
const MAX_REFUSED: usize = 64;

struct ServeLoop<'a> {
    engine: WiredServer,
    router: &'a Router<Handler>,
    clock: Clock,
    channels: BTreeMap<ConnectionId, Channel>,
    jobs: Vec<Job>,
    listener: Option<TcpListener>,
    /// Connections still to be accepted.
    left: usize,
    hooks: Hooks,
    refused: u64,
}

/// A request whose handler is not done.
struct Job {
    handler: Handler,
    cx: Cx,
    port: Arc<Desk>,
    responder: Responder,
}

impl<'a> ServeLoop<'a> {
    fn new(router: &'a Router<Handler>, listener: Option<TcpListener>, left: usize) -> io::Result<Self> {
        let clock = Clock::start();
        let mut config = router.config();
        config.origin_unix = clock.origin_unix;
        let engine = WiredServer::new(Arc::new(config), seed()?, clock.now());
        let (channels, jobs, hooks) = (BTreeMap::new(), Vec::new(), Hooks::default());
        Ok(Self { engine, router, clock, channels, jobs, listener, left, hooks, refused: 0 })
    }

    fn run(mut self) -> io::Result<()> {
        loop {
            self.carry_out();
            (self.hooks.watch)(&self.engine);
            if self.left == 0 && self.channels.is_empty() {
                return Ok(());
            }
            self.wait()?;
        }
    }

    /// Lets the handlers go on that are not done, and does what the engine wants until it wants nothing more.
    fn carry_out(&mut self) {
        for job in std::mem::take(&mut self.jobs) {
            self.work(job);
        }
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
            Action::Open(..) => unreachable!("a server opens nothing"),
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
            Action::Event(Event::Request(responder, incoming)) => match self.router.route(responder, incoming) {
                Routed::Answer(answer) => self.engine.respond(self.clock.now(), answer),
                Routed::Handle { handler, invocation, responder } => {
                    let port = Arc::new(Desk::default());
                    let cx = Cx::new(invocation, port.clone());
                    self.work(Job { handler: *handler, cx, port, responder });
                }
            },
            Action::Event(Event::Cancelled(key)) => {
                if let Some(at) = self.jobs.iter().position(|job| job.responder.key() == key) {
                    let job = self.jobs.swap_remove(at);
                    job.port.cancelled.store(true, Ordering::Relaxed);
                    self.work(job);
                }
            }
            Action::Event(Event::Admit(token, head)) => {
                // This loop accepts connections over HTTP alone.
                let admission = head.map_or(Admission::Forbidden(None), |head| (self.hooks.admit)(&head));
                self.engine.admit(self.clock.now(), token, admission);
            }
            // Notifications and diagnostics: a server that logs does so here.
            Action::Event(_) => {}
        }
    }

    /// Enters a handler. What it told on the way goes out before its answer.
    fn work(&mut self, job: Job) {
        let now = self.clock.now();
        let outcome = (job.handler)(&job.cx);
        for note in job.port.take() {
            // Refused where nobody asked for it, or the request is over: nothing is lost by that.
            let _ = self.engine.notify(now, job.responder.key(), note);
        }
        match outcome {
            Some(outcome) => self.engine.respond(now, job.responder.write(outcome)),
            None if job.port.is_cancelled() => {}
            None => self.jobs.push(job),
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        let timer = self.engine.poll_timeout().map(|at| at - self.clock.now());
        let sleep = if self.jobs.is_empty() { timer } else { Some(timer.unwrap_or(AGAIN).min(AGAIN)) };
        let wants_read = |id: ConnectionId| id >= REFUSED || self.engine.wants_read(id);
        let listener = self.listener.as_ref().filter(|_| self.left > 0);
        for id in channel::wait(&self.channels, wants_read, listener, sleep)? {
            let wants_read = id >= REFUSED || self.engine.wants_read(id);
            let facts = self.channels.get_mut(&id).map(|channel| channel.transfer(wants_read));
            for fact in facts.into_iter().flatten() {
                self.tell(id, fact);
            }
        }
        while self.left > 0
            && let Some(Ok((socket, address))) = self.listener.as_ref().map(TcpListener::accept)
        {
            self.left -= 1;
            self.accept(Kind::HttpServer, [socket.try_clone()?.into(), socket.into()], Peer::tcp(address))?;
        }
        self.engine.handle_timeout(self.clock.now());
        Ok(())
    }

    /// Takes a channel in. If the engine has no room for it, it is told so and closed, once its other side has heard it.
    fn accept(&mut self, kind: Kind, pair: [OwnedFd; 2], peer: Peer) -> io::Result<()> {
        let mut channel = if kind == Kind::HttpServer { Channel::accepted(pair)? } else { Channel::of(pair)? };
        if let Some(id) = self.engine.accept(self.clock.now(), kind, peer) {
            self.channels.insert(id, channel);
        } else if let Some(word) = refusal(kind) {
            channel.write(word);
            channel.close(Shutdown::WriteHalf);
            let refused: Vec<ConnectionId> = self.channels.range(REFUSED..).map(|(id, _)| *id).collect();
            if let (true, Some(oldest)) = (refused.len() >= MAX_REFUSED, refused.first()) {
                self.channels.remove(oldest);
            }
            self.channels.insert(ConnectionId(REFUSED.0 + self.refused), channel);
            self.refused += 1;
        }
        Ok(())
    }

    fn tell(&mut self, id: ConnectionId, fact: IoEvent) {
        self.engine.apply(self.clock.now(), Input::Event(id, fact)).expect("facts are never refused");
    }
}

/// What a handler has told and not yet been heard, and whether it should stop.
#[derive(Default)]
struct Desk {
    notes: Mutex<Vec<Note>>,
    cancelled: AtomicBool,
}

impl Desk {
    fn take(&self) -> Vec<Note> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Port for Desk {
    fn note(&self, note: Note) -> Result<(), Refusal> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
