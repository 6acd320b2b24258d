//! The same loop in the other role: a server over its standard streams, or over TCP. Handlers are
//! plain functions and futures, which run on the loop.

use super::channel::{self, Channel};
use super::clock::{Clock, seed};
use mcp_proto::Router;
use mcp_proto::error::Refusal;
use mcp_proto::exchange::{Action, ConnectionId, Peer, RequestHead};
use mcp_proto::input::{Admission, Note, Outcome, RequestKey, ServerCommand};
use mcp_proto::route::{BoxFuture, Cx, Handler, Port, RouteResult};
use mcp_proto::server::{Event, IncomingRequest, Responder, ServerCommands};
use mcp_proto::wired::{ConnectionOutput, Kind, WiredServer};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Callbacks of a loop that serves HTTP. All run on the loop.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Receives the server before its first turn.
    pub begin: fn(&mut WiredServer),
    /// Decides on a request by its head, if the configuration requires it.
    pub admit: fn(&RequestHead) -> Admission,
    /// Receives the server after each turn.
    pub watch: fn(&WiredServer),
}

impl Default for Hooks {
    /// Admits everyone.
    fn default() -> Self {
        Self { begin: |_| {}, admit: |_| Admission::Accept(None), watch: |_| {} }
    }
}

/// Serves the program that started this one, until its end.
///
/// # Errors
/// The operating system cannot wait, or provides no randomness or no standard stream.
pub fn serve_stdio(router: &Router, hooks: Hooks) -> io::Result<()> {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout()];
    let [input, output] = streams.map(|stream| stream.try_clone_to_owned());
    let mut server = ServeLoop::new(router, None, 0, hooks)?;
    server.accept(Kind::Lines, [input?, output?], Peer::default())?;
    server.run()
}

/// Serves this many connections, then ends.
///
/// # Errors
/// As [`serve_stdio`].
pub fn serve_http(router: &Router, listener: TcpListener, connections: usize, hooks: Hooks) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    ServeLoop::new(router, Some(listener), connections, hooks)?.run()
}

struct ServeLoop {
    engine: WiredServer,
    router: Router,
    clock: Clock,
    channels: BTreeMap<ConnectionId, Channel>,
    /// What handlers tell the engine.
    inbox: Arc<Inbox>,
    /// Handlers that have not returned.
    jobs: BTreeMap<RequestKey, Job>,
    /// The descriptor that is readable once a handler can go on.
    woken: UnixStream,
    listener: Option<TcpListener>,
    /// Connections still to be accepted.
    left: usize,
    hooks: Hooks,
}

/// A future of the application, and the request that it answers.
struct Job {
    future: BoxFuture<Outcome>,
    responder: Responder,
    cancelled: Arc<AtomicBool>,
}

/// The commands of handlers, and the way to wake the loop.
struct Inbox {
    commands: Mutex<VecDeque<ServerCommand>>,
    wakes: UnixStream,
}

/// One request as its handler sees it.
struct RequestPort {
    key: RequestKey,
    inbox: Arc<Inbox>,
    cancelled: Arc<AtomicBool>,
}

impl Port for RequestPort {
    fn note(&self, note: Note) -> Result<(), Refusal> {
        // A refusal of the engine is harmless: the client did not ask for it, or the request is
        // over.
        self.command(ServerCommand::Notify(self.key, note));
        Ok(())
    }

    fn command(&self, command: ServerCommand) {
        self.inbox.commands.lock().unwrap_or_else(PoisonError::into_inner).push_back(command);
        self.inbox.ring();
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Inbox {
    fn take(&self) -> VecDeque<ServerCommand> {
        std::mem::take(&mut self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ring(&self) {
        // If there is no room, the loop is about to wake.
        let _ = (&self.wakes).write(&[1]);
    }
}

impl Wake for Inbox {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}

impl ServeLoop {
    fn new(router: &Router, listener: Option<TcpListener>, left: usize, hooks: Hooks) -> io::Result<Self> {
        let clock = Clock::start();
        let mut config = router.config();
        config.origin_unix = clock.unix();
        let mut engine = WiredServer::new(Arc::new(config), seed()?, clock.now());
        (hooks.begin)(&mut engine);
        let (woken, wakes) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        wakes.set_nonblocking(true)?;
        Ok(Self {
            engine,
            router: router.clone(),
            clock,
            channels: BTreeMap::new(),
            inbox: Arc::new(Inbox { commands: Mutex::default(), wakes }),
            jobs: BTreeMap::new(),
            woken,
            listener,
            left,
            hooks,
        })
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
        self.poll_jobs();
        loop {
            for command in self.inbox.take() {
                let _ = self.engine.act(self.clock.now(), command);
            }
            if let Some(action) = self.engine.poll_output() {
                self.act(action);
                continue;
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
            Action::Open(..) | Action::Secure(..) | Action::Notice(..) => unreachable!("a server opens nothing"),
            Action::Write(id, bytes) => self.pass_on(id, ConnectionOutput::Write(bytes)),
            Action::Read(id, reads) => self.pass_on(id, ConnectionOutput::Read(reads)),
            Action::Close(id, how) => self.pass_on(id, ConnectionOutput::Close(how)),
            Action::Event(Event::Request(responder, incoming)) => self.handle(responder, incoming),
            // The engine ignores its answer. A future is polled no more.
            Action::Event(Event::Cancelled(key)) => {
                if let Some(job) = self.jobs.remove(&key) {
                    job.cancelled.store(true, Ordering::Relaxed);
                    self.respond(job.responder, Outcome::internal("the handler was cancelled"));
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

    fn pass_on(&mut self, id: ConnectionId, output: ConnectionOutput) {
        let now = self.clock.now();
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.act(now, output);
        }
    }

    fn handle(&mut self, responder: Responder, incoming: IncomingRequest) {
        let (handler, invocation, responder) = match self.router.route(responder, incoming) {
            RouteResult::Answer(answer) => return self.engine.respond(self.clock.now(), answer),
            RouteResult::Handle { handler, invocation, responder } => (handler, invocation, responder),
        };
        let (key, cancelled) = (responder.key(), Arc::<AtomicBool>::default());
        let port = RequestPort { key, inbox: Arc::clone(&self.inbox), cancelled: Arc::clone(&cancelled) };
        let cx = Cx::new(invocation, Arc::new(port));
        match handler {
            Handler::Sync(f) | Handler::Inline(f) => {
                let outcome = guarded(|| f(&cx)).unwrap_or_else(panicked);
                self.respond(responder, outcome);
            }
            Handler::Async(f) => match guarded(|| f(cx)) {
                Some(future) => {
                    self.jobs.insert(key, Job { future, responder, cancelled });
                    self.poll_job(key);
                }
                None => self.respond(responder, panicked()),
            },
        }
    }

    /// Sends what the handler has told the engine, and then its answer.
    fn respond(&mut self, responder: Responder, outcome: Outcome) {
        for command in self.inbox.take() {
            let _ = self.engine.act(self.clock.now(), command);
        }
        self.engine.respond(self.clock.now(), responder.write(outcome));
    }

    fn poll_jobs(&mut self) {
        // Before the handlers run: one that wakes the loop now is polled again.
        while matches!((&self.woken).read(&mut [0; 64]), Ok(1..)) {}
        let keys: Vec<RequestKey> = self.jobs.keys().copied().collect();
        keys.into_iter().for_each(|key| self.poll_job(key));
    }

    fn poll_job(&mut self, key: RequestKey) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let waker = Waker::from(Arc::clone(&self.inbox));
        let polled = guarded(|| job.future.as_mut().poll(&mut Context::from_waker(&waker)));
        let outcome = match polled {
            Some(Poll::Pending) => return,
            Some(Poll::Ready(outcome)) => outcome,
            None => panicked(),
        };
        if let Some(job) = self.jobs.remove(&key) {
            self.respond(job.responder, outcome);
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        let due = self.channels.values().filter_map(Channel::poll_timeout).chain(self.engine.poll_timeout()).min();
        let sleep = due.map(|at| at - self.clock.now());
        let listener = self.listener.as_ref().filter(|_| self.left > 0);
        let others = [Some(self.woken.as_fd()), listener.map(AsFd::as_fd)];
        for id in channel::wait(&self.channels, others.into_iter().flatten(), sleep)? {
            if let Some(channel) = self.channels.get_mut(&id) {
                channel.transfer(self.clock.now());
            }
        }
        channel::report(&mut self.channels, self.clock.now(), |now, id, event| self.engine.handle_io(now, id, event));
        while self.left > 0
            && let Some(Ok((socket, address))) = self.listener.as_ref().map(TcpListener::accept)
        {
            self.left -= 1;
            // Otherwise a small write waits for the acknowledgement of the one before it.
            let _ = socket.set_nodelay(true);
            self.accept(Kind::HttpServer, [socket.try_clone()?.into(), socket.into()], Peer::tcp(address))?;
        }
        self.engine.handle_timeout(self.clock.now());
        Ok(())
    }

    /// Serves an open channel. A server without room lets its connection refuse the client.
    fn accept(&mut self, kind: Kind, pair: [OwnedFd; 2], peer: Peer) -> io::Result<()> {
        let channel = if kind == Kind::HttpServer { Channel::accepted(pair)? } else { Channel::given(pair)? };
        self.channels.insert(self.engine.accept(self.clock.now(), kind, peer), channel);
        Ok(())
    }
}

/// Runs a handler, and catches its panic.
fn guarded<T>(handler: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(handler)).ok()
}

fn panicked() -> Outcome {
    Outcome::internal("the handler panicked")
}
