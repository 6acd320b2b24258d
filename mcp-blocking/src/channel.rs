//! The connections of a client: opening them, a reading and a writing thread for each, and their
//! end.
//!
//! Reading and writing never wait for each other, so two full pipes cannot deadlock. A thread that
//! is stuck in the operating system holds only its own end of the stream; the connection ends
//! without it.

use crate::driver::{Shared, State};
use crate::ends::{Reader, Writer};
use crate::os::{self, ChildProcess};
use crate::socket::Socket;
use crate::stream;
use crate::sync::{self, Condvar, MutexGuard, wait};
use crate::target::Given;
use bytes::Bytes;
use mcp_proto::adapter::{StderrReader, Step, Transfer, TransferOutput, not_opened};
use mcp_proto::exchange::{Closed, ConnectionId, Endpoint, IoEvent, Peer};
use mcp_proto::wired::ConnectionOutput;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// One connection, from the action that opens it until its end is reported.
pub(crate) struct Channel {
    pub(crate) transfer: Transfer,
    link: Link,
    /// Wakes the threads of this connection.
    wake: Arc<Condvar>,
    /// Threads that serve it.
    threads: usize,
}

/// The resource behind a connection.
enum Link {
    Program(Arc<ChildProcess>),
    Socket(Socket),
    /// Something that can only be waited for: a connection that is being opened, or a given pair of
    /// streams.
    Other,
}

/// A connection that has just been opened.
struct Opened {
    reader: Reader,
    writer: Writer,
    errors: Option<(Reader, StderrReader)>,
    link: Link,
}

impl Shared {
    /// Opens a connection on a new thread, since resolving a name or connecting may be slow.
    pub(crate) fn open(self: &Arc<Self>, state: &mut State, id: ConnectionId, endpoint: Endpoint) {
        let transfer = Transfer::opening(&endpoint);
        state.channels.insert(id, Channel { transfer, link: Link::Other, wake: Arc::default(), threads: 0 });
        let given = if endpoint == Endpoint::Given { state.given.take() } else { None };
        let this = Arc::clone(self);
        if let Err(e) = self.thread(state, id, "mcp-channel", move || this.run(id, endpoint, given)) {
            state.channel(id, |channel| channel.transfer.not_opened(no_thread(&e)));
            self.transfer(state, id);
        }
    }

    /// Carries out an output of the engine for a connection.
    pub(crate) fn act(&self, state: &mut State, id: ConnectionId, output: ConnectionOutput) {
        let now = self.clock.now();
        state.channel(id, |channel| {
            // A thread that reads or writes notices everything else by itself.
            let wakes = channel.transfer.is_waiting() || matches!(output, ConnectionOutput::Read(true));
            channel.transfer.act(now, output);
            if wakes {
                channel.wake.notify_all();
            }
        });
        self.transfer(state, id);
    }

    /// Signals the program, and reports the events of a connection to the engine.
    pub(crate) fn transfer(&self, state: &mut State, id: ConnectionId) {
        while let Some(channel) = state.channels.get_mut(&id) {
            match (channel.transfer.poll_output(self.clock.now()), &channel.link) {
                (None, _) => return,
                (Some(TransferOutput::Signal(signal)), Link::Program(process)) => process.signal(signal),
                (Some(TransferOutput::Signal(_)), Link::Socket(_) | Link::Other) => {}
                (Some(TransferOutput::Event(event)), _) => {
                    if matches!(event, IoEvent::Closed(_)) {
                        state.release(id);
                    }
                    state.engine.handle_io(self.clock.now(), id, event);
                }
            }
        }
    }

    /// Reports what happened to a connection.
    fn report(self: &Arc<Self>, id: ConnectionId, change: impl FnOnce(&mut Channel)) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.channel(id, change);
        self.transfer(&mut state, id);
        self.pump(&mut state);
        state
    }

    /// Opens the connection and serves it. For a program this thread waits for the exit, otherwise
    /// it is the reading thread.
    fn run(self: Arc<Self>, id: ConnectionId, endpoint: Endpoint, given: Option<Given>) {
        let Opened { reader, writer, errors, link } = match self.connect(endpoint, given) {
            Ok(opened) => opened,
            Err(why) => {
                return drop(self.report(id, |channel| channel.transfer.not_opened(why)));
            }
        };
        let mut state = self.lock();
        // Aborted in the meantime: dropping what was opened closes it, which may run code of the
        // application.
        let Some(channel) = state.channels.get_mut(&id) else { return drop(state) };
        let process = match &link {
            Link::Program(process) => Some(Arc::clone(process)),
            Link::Socket(_) | Link::Other => None,
        };
        channel.link = link;
        let (stderr, mut reader) = (errors.is_some(), Some(reader));
        let started = self.serve_channel(&mut state, id, writer, errors, process.as_ref().and_then(|_| reader.take()));
        let now = self.clock.now();
        state.channel(id, |channel| match started {
            Ok(()) => drop(channel.transfer.opened(now, Peer::default(), stderr)),
            Err(e) => channel.transfer.not_opened(no_thread(&e)),
        });
        self.transfer(&mut state, id);
        self.pump(&mut state);
        drop(state);
        let shared = Arc::downgrade(&self);
        drop(self);
        match (process, reader) {
            (Some(process), _) => attend(&shared, id, process),
            (None, Some(reader)) => read(&shared, id, reader),
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
                let started = os::spawn(&program, &stderr).map_err(|e| not_opened(&program.command, &e))?;
                Ok(Opened {
                    reader: started.reader,
                    writer: started.writer,
                    errors: started.errors.zip(StderrReader::new(&stderr)),
                    link: Link::Program(Arc::new(started.process)),
                })
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
        errors: Option<(Reader, StderrReader)>,
        reader: Option<Reader>,
    ) -> io::Result<()> {
        if let Some((errors, lines)) = errors {
            let shared = Arc::downgrade(self);
            self.thread(state, id, "mcp-stderr", move || read_stderr(&shared, id, errors, lines))?;
        }
        if let Some(reader) = reader {
            let shared = Arc::downgrade(self);
            self.thread(state, id, "mcp-reader", move || read(&shared, id, reader))?;
        }
        let shared = Arc::downgrade(self);
        self.thread(state, id, "mcp-writer", move || write(&shared, id, writer))
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
            // A stream of the application may panic when it is dropped.
            let panicked = catch_unwind(AssertUnwindSafe(body)).is_err();
            let Some(shared) = Weak::upgrade(&shared) else { return };
            let mut state = shared.report(id, |channel| {
                if panicked {
                    channel.transfer.read(Err(io::ErrorKind::BrokenPipe.into()));
                }
            });
            match state.channels.get_mut(&id) {
                Some(channel) => channel.threads -= 1,
                None => state.detached -= 1,
            }
        })?;
        state.channels.entry(id).and_modify(|channel| channel.threads += 1);
        Ok(())
    }

    /// Reports the result of a read. Returns whether to read on, once there is room for more.
    fn received(self: &Arc<Self>, id: ConnectionId, read: io::Result<Bytes>) -> bool {
        let mut state = self.report(id, |channel| channel.transfer.read(read));
        loop {
            let Some(channel) = state.channels.get(&id) else { return false };
            if channel.transfer.wants_read() || !channel.transfer.reads() {
                return channel.transfer.reads();
            }
            let wake = Arc::clone(&channel.wake);
            state = wait(&wake, state, None);
        }
    }

    fn next_step(&self, id: ConnectionId) -> Option<Step> {
        let mut state = self.lock();
        loop {
            let channel = state.channels.get_mut(&id)?;
            if let Some(step) = channel.transfer.take_step() {
                return Some(step);
            }
            if !channel.transfer.writes() {
                return None;
            }
            let wake = Arc::clone(&channel.wake);
            state = wait(&wake, state, None);
        }
    }
}

impl State {
    /// Removes a connection that has closed, and wakes its threads.
    fn release(&mut self, id: ConnectionId) {
        let Some(channel) = self.channels.remove(&id) else { return };
        channel.wake.notify_all();
        self.detached += channel.threads;
        if let Link::Socket(socket) = &channel.link {
            socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Waits for the exit of a program.
fn attend(shared: &Weak<Shared>, id: ConnectionId, process: Arc<ChildProcess>) {
    let status = process.wait_exited();
    if let Some(shared) = Weak::upgrade(shared) {
        let now = shared.clock.now();
        drop(shared.report(id, |channel| channel.transfer.exited(now, status)));
    }
}

/// Reads a connection to its end. Holds nothing of the client during a read, which may block
/// forever.
fn read(shared: &Weak<Shared>, id: ConnectionId, reader: Reader) {
    stream::read(reader, |read| Weak::upgrade(shared).is_some_and(|shared| shared.received(id, read)));
}

/// Reads the standard error of a program to its end. Calls the function of the application without
/// a lock, so that the function may wait for the end of this program.
fn read_stderr(shared: &Weak<Shared>, id: ConnectionId, errors: Reader, mut lines: StderrReader) {
    stream::read(errors, |read| {
        let bytes = read.unwrap_or_default();
        lines.push(&bytes);
        if let Some(shared) = Weak::upgrade(shared) {
            drop(shared.report(id, |channel| channel.transfer.stderr(Ok(&bytes))));
        }
        !bytes.is_empty()
    });
}

/// Writes the queued bytes of a connection until it ends or breaks. Holds nothing of the client
/// during a write, which may block forever.
fn write(shared: &Weak<Shared>, id: ConnectionId, writer: Writer) {
    let next = || Weak::upgrade(shared).and_then(|shared| shared.next_step(id));
    let report = |wrote| {
        let Some(shared) = Weak::upgrade(shared) else { return false };
        let state = shared.report(id, |channel| channel.transfer.wrote(wrote));
        state.channels.get(&id).is_some_and(|channel| channel.transfer.writes())
    };
    stream::write(writer, next, report);
}

fn no_thread(e: &io::Error) -> Closed {
    Closed::Unreachable(format!("no thread can be started: {e}"))
}
