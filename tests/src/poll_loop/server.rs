//! The same loop in the other role: a server over its standard streams, or over TCP. Handlers are
//! plain functions that run on the loop.

use super::channel::{self, Channel};
use super::{Clock, seed};
use mcp_proto::exchange::{Action, ConnectionId, IoEvent, Peer, RequestHead};
use mcp_proto::input::{Admission, Note};
use mcp_proto::route::{Cx, Port, Routed};
use mcp_proto::server::{Event, Responder};
use mcp_proto::wired::{Kind, WiredServer};
use mcp_proto::{Outcome, Refusal, Router};
use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A handler. It runs on the loop, so nothing else happens before it returns. `None` means "not
/// yet": it runs again soon, and once more after its request was cancelled, so that it can stop
/// what it has begun.
pub type Handler = fn(&Cx) -> Option<Outcome>;

/// Callbacks of a loop that serves HTTP. Both run on the loop.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Decides on a request by its head, if the configuration requires it.
    pub admit: fn(&RequestHead) -> Admission,
    /// Receives the server after each turn.
    pub watch: fn(&WiredServer),
}

impl Default for Hooks {
    /// Admits everyone.
    fn default() -> Self {
        Self { admit: |_| Admission::Accept(None), watch: |_| {} }
    }
}

/// Delay before a pending handler runs again.
const AGAIN: Duration = Duration::from_millis(5);

/// Serves the program that started this one, until its end.
///
/// # Errors
/// The operating system cannot wait, or provides no randomness or no standard stream.
pub fn serve_stdio(router: &Router<Handler>) -> io::Result<()> {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout()];
    let [input, output] = streams.map(|stream| stream.try_clone_to_owned());
    let mut server = ServeLoop::new(router, None, 0)?;
    server.accept(Kind::Lines, [input?, output?], Peer::default())?;
    server.run()
}

/// Serves this many connections, then ends.
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
}

/// A request with a pending handler.
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
        Ok(Self { engine, router, clock, channels, jobs, listener, left, hooks })
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

    /// Runs the pending handlers, and carries out the actions of the engine until there are none.
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
            self.engine.handle_io(self.clock.now(), id, IoEvent::Closed(why));
        }
    }

    fn act(&mut self, action: Action<Event>) {
        match action {
            Action::Open(..) | Action::Notice(..) => unreachable!("a server opens nothing"),
            Action::Read(id, reads) => {
                if let Some(channel) = self.channels.get_mut(&id) {
                    channel.set_reading(reads);
                }
            }
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
                // This loop accepts only HTTP connections.
                let admission = head.map_or(Admission::Forbidden(None), |head| (self.hooks.admit)(&head));
                self.engine.admit(self.clock.now(), token, admission);
            }
            // Notifications and diagnostics: a server would log them here.
            Action::Event(_) => {}
        }
    }

    /// Runs a handler. Its notifications are sent before its response.
    fn work(&mut self, job: Job) {
        let now = self.clock.now();
        let outcome = (job.handler)(&job.cx);
        for note in job.port.take() {
            // A refusal is harmless: the client did not ask for it, or the request is over.
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
        let listener = self.listener.as_ref().filter(|_| self.left > 0);
        for id in channel::wait(&self.channels, listener, sleep)? {
            let events = self.channels.get_mut(&id).map(Channel::transfer);
            for event in events.into_iter().flatten() {
                self.engine.handle_io(self.clock.now(), id, event);
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

    /// Serves an open channel. A server without room lets its connection refuse the client.
    fn accept(&mut self, kind: Kind, pair: [OwnedFd; 2], peer: Peer) -> io::Result<()> {
        let channel = if kind == Kind::HttpServer { Channel::accepted(pair)? } else { Channel::of(pair)? };
        self.channels.insert(self.engine.accept(self.clock.now(), kind, peer), channel);
        Ok(())
    }
}

/// The pending notifications of a handler, and whether it should stop.
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
