//! The same loop in the other role: a server over its standard streams, or over TCP. Handlers are
//! plain functions that run on the loop.

use super::channel::{self, Channel};
use mcp_driver::{AsyncJob, Clock, Job, Mailbox, RunningCallbacks, ServerOptions, SharedRouter, Work, check, seed};
use mcp_proto::Router;
use mcp_proto::exchange::{Action, ConnectionId, Peer, RequestHead};
use mcp_proto::input::Admission;
use mcp_proto::server::{Event, ServerCommands};
use mcp_proto::wired::{ConnectionOutput, Kind, WiredServer};
use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

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

/// Serves the program that started this one, until its end.
///
/// # Errors
/// The operating system cannot wait, or provides no randomness or no standard stream.
pub fn serve_stdio(router: &Router) -> io::Result<()> {
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
pub fn serve_http(router: &Router, listener: TcpListener, connections: usize) -> io::Result<()> {
    serve_http_with(router, listener, connections, Hooks::default())
}

/// The same, with hooks.
///
/// # Errors
/// As [`serve_stdio`].
pub fn serve_http_with(router: &Router, listener: TcpListener, connections: usize, hooks: Hooks) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut server = ServeLoop::new(router, Some(listener), connections)?;
    server.hooks = hooks;
    server.run()
}

struct ServeLoop {
    /// It panics if this loop breaks a rule for drivers.
    engine: WiredServer,
    router: SharedRouter,
    clock: Clock,
    channels: BTreeMap<ConnectionId, Channel>,
    running: RunningCallbacks,
    /// What handlers and callbacks tell the engine.
    mailbox: Mailbox,
    options: ServerOptions,
    /// Pending handlers.
    jobs: Vec<AsyncJob>,
    /// Wakes the loop, and the descriptor that is readable then.
    waker: Waker,
    woken: UnixStream,
    listener: Option<TcpListener>,
    /// Connections still to be accepted.
    left: usize,
    hooks: Hooks,
}

impl ServeLoop {
    fn new(router: &Router, listener: Option<TcpListener>, left: usize) -> io::Result<Self> {
        let clock = Clock::start();
        let mut config = router.config();
        config.origin_unix = clock.unix();
        let config = Arc::new(config);
        let router = SharedRouter::new(router.clone(), Arc::clone(&config));
        let mut engine = WiredServer::new(config, seed()?, clock.now());
        check(&mut engine);
        let (woken, wakes) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        wakes.set_nonblocking(true)?;
        Ok(Self {
            engine,
            router,
            clock,
            channels: BTreeMap::new(),
            running: RunningCallbacks::default(),
            mailbox: Mailbox::default(),
            options: ServerOptions::new(),
            jobs: Vec::new(),
            waker: Waker::from(Arc::new(LoopWaker(wakes))),
            woken,
            listener,
            left,
            hooks: Hooks::default(),
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
            while let Some(command) = self.mailbox.poll(Waker::noop()) {
                self.running.answered(&command);
                // A refusal of a notification is harmless: the client did not ask for it, or the
                // request is over.
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
            Action::Event(Event::Request(responder, incoming)) => {
                let work = self.running.begin(&self.mailbox.link(), responder, incoming);
                self.work(work);
            }
            Action::Event(Event::Cancelled(key)) => {
                self.running.cancel(key).wake();
                self.poll_jobs();
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

    fn poll_jobs(&mut self) {
        // Before the handlers run: one that wakes the loop now is polled again.
        while matches!((&self.woken).read(&mut [0; 64]), Ok(1..)) {}
        let jobs = std::mem::take(&mut self.jobs);
        self.jobs = jobs.into_iter().filter_map(|job| pending(job, &self.waker)).collect();
    }

    /// Runs a handler: a future until it is pending, anything else to its end.
    fn work(&mut self, work: Work) {
        match work.route(&self.router, &self.options) {
            Some(Job::Sync(job)) => job.run(),
            Some(Job::Async(job)) => self.jobs.extend(pending(job, &self.waker)),
            None => {}
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        let sleep = self.engine.poll_timeout().map(|at| at - self.clock.now());
        let listener = self.listener.as_ref().filter(|_| self.left > 0);
        let others = [Some(self.woken.as_fd()), listener.map(AsFd::as_fd)];
        for id in channel::wait(&mut self.channels, others.into_iter().flatten(), sleep)? {
            if let Some(channel) = self.channels.get_mut(&id) {
                channel.transfer(self.clock.now());
            }
        }
        channel::report(&mut self.channels, self.clock.now(), |now, id, event| self.engine.handle_io(now, id, event));
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
        let channel = if kind == Kind::HttpServer { Channel::accepted(pair)? } else { Channel::given(pair)? };
        self.channels.insert(self.engine.accept(self.clock.now(), kind, peer), channel);
        Ok(())
    }
}

/// Ends the sleep of the loop.
struct LoopWaker(UnixStream);

impl Wake for LoopWaker {
    fn wake(self: Arc<Self>) {
        // If there is no room, the loop is about to wake.
        let _ = (&self.0).write(&[1]);
    }
}

/// Polls a handler. Returns it if it is still pending; a result is passed on when it is dropped.
fn pending(mut job: AsyncJob, waker: &Waker) -> Option<AsyncJob> {
    match Pin::new(&mut job).poll(&mut Context::from_waker(waker)) {
        Poll::Pending => Some(job),
        Poll::Ready(_) => None,
    }
}
