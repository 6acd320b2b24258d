//! The connections of a client: opening them, a reading and a writing thread for each, and their
//! end.
//!
//! Reading and writing never wait for each other, so two full pipes cannot deadlock. A thread that
//! is stuck in the operating system holds only its own end of the stream; the connection ends
//! without it.

use crate::driver::{Shared, State};
use crate::ends::{Reader, Writer};
use crate::os::Signal;
use crate::process::{Errors, Process, Streams};
use crate::socket::Socket;
use crate::stream;
use crate::sync::{self, Condvar, wait, wait_until};
use crate::target::Given;
use bytes::Bytes;
use mcp_proto::adapter::{DRAIN, Step, WriteQueue, not_opened};
use mcp_proto::exchange::{Closed, ConnectionId, Endpoint, IoEvent, Peer, Shutdown};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// One connection, from the action that opens it until its end is reported.
pub(crate) struct Channel {
    link: Link,
    queue: WriteQueue,
    read_ended: bool,
    /// Standard error is still being read.
    errors_open: bool,
    /// Wakes the threads of this connection.
    wake: Arc<Condvar>,
    /// Whether the engine accepts input.
    reads: bool,
    /// Threads that serve it.
    threads: usize,
}

/// The resource behind a connection.
enum Link {
    /// A program that is being started, and the signal to send to it at once.
    Starting(Option<Signal>),
    Program(Arc<Process>),
    Socket(Socket),
    /// Something that can only be waited for: a connection that is being opened, or a given pair of
    /// streams.
    Other,
}

/// A connection that has just been opened.
struct Opened {
    reader: Reader,
    writer: Writer,
    errors: Option<Errors>,
    link: Link,
}

impl Channel {
    fn new(link: Link) -> Self {
        Self {
            link,
            queue: WriteQueue::default(),
            read_ended: false,
            errors_open: false,
            wake: Arc::default(),
            reads: true,
            threads: 0,
        }
    }

    pub(crate) fn write(&mut self, bytes: Bytes) {
        self.queue.push(bytes);
        self.wake_writer();
    }

    /// Stops reading, or reads again.
    pub(crate) fn set_reading(&mut self, reads: bool) {
        self.reads = reads;
        if reads {
            self.wake.notify_all();
        }
    }

    /// Returns the condition on which the reading thread waits while the engine accepts no input.
    pub(crate) fn paused(&self) -> Option<Arc<Condvar>> {
        (!self.reads).then(|| Arc::clone(&self.wake))
    }

    fn wake_writer(&self) {
        if self.queue.waits() {
            self.wake.notify_all();
        }
    }

    fn is_program(&self) -> bool {
        matches!(self.link, Link::Starting(_) | Link::Program(_))
    }

    fn signal(&mut self, signal: Signal) {
        match &mut self.link {
            Link::Starting(asked) => *asked = Some(signal),
            Link::Program(process) => process.signal(signal),
            Link::Socket(_) | Link::Other => {}
        }
    }
}

impl Shared {
    /// Opens a connection on a new thread, since resolving a name or connecting may be slow.
    pub(crate) fn open(self: &Arc<Self>, state: &mut State, id: ConnectionId, endpoint: Endpoint) {
        let link = if matches!(endpoint, Endpoint::Program(_)) { Link::Starting(None) } else { Link::Other };
        state.channels.insert(id, Channel::new(link));
        let given = if endpoint == Endpoint::Given { state.given.take() } else { None };
        let this = Arc::clone(self);
        if let Err(e) = self.thread(state, id, "mcp-channel", move || this.run(id, endpoint, given)) {
            self.gone(state, id, no_thread(&e));
        }
    }

    /// Closes a connection as the engine requires.
    pub(crate) fn close(self: &Arc<Self>, state: &mut State, id: ConnectionId, how: Shutdown) {
        let Some(channel) = state.channels.get_mut(&id) else { return };
        match how {
            Shutdown::WriteHalf => {
                channel.queue.finish();
                channel.wake_writer();
            }
            Shutdown::Terminate => channel.signal(Signal::Terminate),
            Shutdown::Abort => {
                channel.queue.end();
                channel.signal(Signal::Kill);
                // A program has ended when it is reaped.
                if !channel.is_program() {
                    self.gone(state, id, Closed::Aborted);
                }
            }
        }
    }

    /// Opens the connection and serves it. For a program this thread waits for the exit, otherwise
    /// it is the reading thread.
    fn run(self: Arc<Self>, id: ConnectionId, endpoint: Endpoint, given: Option<Given>) {
        let opened = self.connect(endpoint, given);
        let mut state = self.lock();
        let Opened { reader, writer, errors, link } = match opened {
            Ok(opened) => opened,
            Err(why) => {
                self.gone(&mut state, id, why);
                return self.pump(&mut state);
            }
        };
        // Closed in the meantime: dropping the opened resource closes it, which may run code of the
        // application.
        let Some(channel) = state.channels.get_mut(&id) else { return drop(state) };
        let before = std::mem::replace(&mut channel.link, link);
        let process = match &channel.link {
            Link::Program(process) => Some(Arc::clone(process)),
            _ => None,
        };
        if let Link::Starting(Some(signal)) = before {
            channel.signal(signal);
        }
        let mut reader = Some(reader);
        let started = self.serve_channel(&mut state, id, writer, errors, process.as_ref().and_then(|_| reader.take()));
        if let Err(e) = started {
            match &process {
                Some(process) => process.signal(Signal::Kill),
                None => self.gone(&mut state, id, no_thread(&e)),
            }
        } else if !matches!(before, Link::Starting(Some(Signal::Kill))) {
            state.engine.handle_io(self.clock.now(), id, IoEvent::Opened(Peer::default()));
        }
        self.pump(&mut state);
        drop(state);
        match (process, reader) {
            (Some(process), _) => self.attend(id, &process),
            (None, Some(reader)) => {
                let shared = Arc::downgrade(&self);
                drop(self);
                read(&shared, id, reader);
            }
            (None, None) => {}
        }
    }

    fn connect(&self, endpoint: Endpoint, given: Option<Given>) -> Result<Opened, Closed> {
        let unreachable = |why: &dyn std::fmt::Display| Closed::Unreachable(why.to_string());
        let opened = |socket: Socket| {
            let (reader, writer) = socket.ends();
            Ok(Opened { reader, writer, errors: None, link: Link::Socket(socket) })
        };
        match endpoint {
            Endpoint::Program(program) => {
                let stderr = self.lock().stderr.clone();
                let spawned = Process::spawn(&program, &stderr);
                let (process, streams) = spawned.map_err(|e| not_opened(&program.command, &e))?;
                let Streams { output, input, errors } = streams;
                Ok(Opened { reader: output, writer: input, errors, link: Link::Program(Arc::new(process)) })
            }
            Endpoint::Origin(origin) => {
                opened(crate::socket::connect(&origin, self.config.limits.frame.open_timeout, &self.clock)?)
            }
            #[cfg(unix)]
            Endpoint::Unix(path) => opened(crate::socket::connect_unix(&path)?),
            Endpoint::Given => {
                let given = given.ok_or_else(|| unreachable(&"a channel that was given cannot be opened again"))?;
                let (reader, writer) = given().map_err(|e| unreachable(&e))?;
                Ok(Opened { reader, writer, errors: None, link: Link::Other })
            }
            #[cfg(not(unix))]
            _ => Err(unreachable(&"this build cannot open such a channel")),
        }
    }

    /// Starts the other threads of the connection.
    fn serve_channel(
        self: &Arc<Self>,
        state: &mut State,
        id: ConnectionId,
        writer: Writer,
        errors: Option<Errors>,
        reader: Option<Reader>,
    ) -> io::Result<()> {
        if let Some(errors) = errors {
            let shared = Arc::downgrade(self);
            self.thread(state, id, "mcp-stderr", move || {
                errors.read();
                if let Some(shared) = Weak::upgrade(&shared) {
                    shared.errors_ended(id);
                }
            })?;
            state.channel(id, |channel| channel.errors_open = true);
        }
        if let Some(reader) = reader {
            let shared = Arc::downgrade(self);
            self.thread(state, id, "mcp-reader", move || read(&shared, id, reader))?;
        }
        let shared = Arc::downgrade(self);
        self.thread(state, id, "mcp-writer", move || write(&shared, id, writer))
    }

    /// Waits for the exit of a program, reads the rest of its output, ends the rest of its group,
    /// and reaps it.
    fn attend(self: Arc<Self>, id: ConnectionId, process: &Process) {
        process.wait();
        let state = self.lock();
        let Some(wake) = state.channels.get(&id).map(|channel| Arc::clone(&channel.wake)) else { return };
        let said_all =
            |state: &State| state.channels.get(&id).is_none_or(|channel| channel.read_ended && !channel.errors_open);
        drop(wait_until(&wake, state, &self.clock, self.clock.now() + DRAIN, said_all));
        let status = process.reap();
        let mut state = self.lock();
        self.gone(&mut state, id, Closed::Exited(status));
        self.pump(&mut state);
    }

    fn read_ended(self: &Arc<Self>, id: ConnectionId, cut: bool) {
        let mut state = self.lock();
        let Some(channel) = state.channels.get_mut(&id) else { return };
        channel.read_ended = true;
        channel.wake.notify_all();
        if cut && !channel.is_program() {
            self.gone(&mut state, id, Closed::Reset);
        } else {
            state.engine.handle_io(self.clock.now(), id, IoEvent::ReadClosed);
            // The actions of the engine may end the connection.
            self.pump(&mut state);
            self.close_if_ended(&mut state, id);
        }
        self.pump(&mut state);
    }

    fn errors_ended(&self, id: ConnectionId) {
        self.lock().channel(id, |channel| {
            channel.errors_open = false;
            channel.wake.notify_all();
        });
    }

    fn write_ended(self: &Arc<Self>, id: ConnectionId) {
        let mut state = self.lock();
        let Some(channel) = state.channels.get_mut(&id) else { return };
        channel.queue.end();
        if let Link::Socket(socket) = &channel.link {
            socket.shutdown(std::net::Shutdown::Write);
        }
        self.close_if_ended(&mut state, id);
        self.pump(&mut state);
    }

    /// Anything except a program has ended when both directions have.
    fn close_if_ended(self: &Arc<Self>, state: &mut State, id: ConnectionId) {
        let ended = |channel: &Channel| !channel.is_program() && channel.read_ended && channel.queue.is_ended();
        if state.channels.get(&id).is_some_and(ended) {
            self.gone(state, id, Closed::Eof);
        }
    }

    /// The connection has ended. Nothing more is reported of it.
    fn gone(&self, state: &mut State, id: ConnectionId, why: Closed) {
        let Some(channel) = state.channels.remove(&id) else { return };
        channel.wake.notify_all();
        state.detached += channel.threads;
        if let Link::Socket(socket) = &channel.link {
            socket.shutdown(std::net::Shutdown::Both);
        }
        state.engine.handle_io(self.clock.now(), id, IoEvent::Closed(why));
    }

    /// Runs `body` on a thread that counts as one of the connection.
    fn thread(
        self: &Arc<Self>,
        state: &mut State,
        id: ConnectionId,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let shared = Arc::downgrade(self);
        sync::spawn(name, move || {
            // A stream of the application may panic.
            let panicked = catch_unwind(AssertUnwindSafe(body)).is_err();
            let Some(shared) = Weak::upgrade(&shared) else { return };
            if panicked {
                shared.read_ended(id, true);
            }
            let mut state = shared.lock();
            match state.channels.get_mut(&id) {
                Some(channel) => channel.threads -= 1,
                None => state.detached -= 1,
            }
        })?;
        state.channels.entry(id).and_modify(|channel| channel.threads += 1);
        Ok(())
    }

    fn next_step(&self, id: ConnectionId) -> Option<Step> {
        let mut state = self.lock();
        loop {
            let channel = state.channels.get_mut(&id)?;
            if let Some(step) = channel.queue.next_step() {
                return Some(step);
            }
            let wake = Arc::clone(&channel.wake);
            state = wait(&wake, state, None);
        }
    }

    fn written(self: &Arc<Self>, id: ConnectionId, n: usize) -> bool {
        let mut state = self.lock();
        let go_on = state.channels.get(&id).is_some_and(|channel| !channel.queue.is_ended());
        if go_on {
            state.engine.handle_io(self.clock.now(), id, IoEvent::Written(n));
            self.pump(&mut state);
        }
        go_on
    }
}

/// Reads a connection to its end. Holds nothing of the client during a read, which may block
/// forever.
fn read(shared: &Weak<Shared>, id: ConnectionId, mut reader: Reader) {
    let received = |bytes| Weak::upgrade(shared).is_some_and(|shared| shared.received(id, bytes));
    let cut = stream::read(&mut *reader, received).is_err();
    drop(reader);
    if let Some(shared) = Weak::upgrade(shared) {
        shared.read_ended(id, cut);
    }
}

/// Writes the queued bytes of a connection until it ends or breaks. Holds nothing of the client
/// during a write, which may block forever.
fn write(shared: &Weak<Shared>, id: ConnectionId, mut writer: Writer) {
    let next = || Weak::upgrade(shared).and_then(|shared| shared.next_step(id));
    let written = |n| Weak::upgrade(shared).is_some_and(|shared| shared.written(id, n));
    // The other direction, or the exit of the program, reports how it broke.
    drop(stream::write(&mut *writer, next, written));
    drop(writer);
    if let Some(shared) = Weak::upgrade(shared) {
        shared.write_ended(id);
    }
}

fn no_thread(e: &io::Error) -> Closed {
    Closed::Unreachable(format!("no thread can be started: {e}"))
}
