//! The threads of one connection: one reads, one writes, and of a program one waits for its exit
//! and one reads its standard error.
//!
//! Reading and writing never wait for each other, so two full pipes cannot deadlock. A thread that
//! is stuck in the operating system holds only its own end of the stream; the connection ends
//! without it.

use crate::driver::Driver;
use crate::os::{self, ChildProcess};
use crate::socket::{self, Socket};
use crate::stream;
use crate::sync::{self, Condvar, Mutex, lock, wait};
use crate::transport::{Given, Reader, Stream};
use bytes::Bytes;
use mcp_proto::Instant;
use mcp_proto::adapter::{DrivenConnection, StderrReader, Step, Transfer, Turned, not_opened};
use mcp_proto::exchange::{Closed, Endpoint, Peer, Shutdown};
use mcp_proto::wired::ConnectionOutput;
use std::io;
use std::net;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

pub(crate) struct ConnectionThreads {
    number: u64,
    state: Mutex<ConnectionState>,
    changes: Mutex<Changes>,
    changed: Condvar,
    driver: Weak<Driver>,
}

/// What a thread of a connection may wait for.
#[derive(Default)]
struct Changes {
    count: u64,
    /// Threads that wait for the next one.
    waiting: usize,
}

struct ConnectionState {
    connection: DrivenConnection,
    resource: Resource,
    /// The deadline that the driver knows.
    due: Option<Instant>,
    threads: usize,
    /// The driver has removed it.
    closed: bool,
}

impl ConnectionState {
    /// Returns what readers wait for: whether to read, and whether the connection is being opened.
    fn waited_for(&mut self) -> (bool, bool) {
        (self.connection.wants_read(), self.connection.transfer().is_opening())
    }
}

/// The resource behind a connection.
enum Resource {
    Program(Arc<ChildProcess>),
    Socket(Socket),
    /// Something that can only be waited for: a connection that is being opened, or a pair of
    /// streams.
    Other,
}

/// A connection that has just been opened.
struct Opened {
    stream: Stream,
    program: Option<Arc<ChildProcess>>,
    errors: Option<(Reader, StderrReader)>,
}

/// The engine has something for the connection: a thread that waits takes a turn. If all are in the
/// operating system, or have ended, the driver's thread does.
impl Wake for ConnectionThreads {
    fn wake(self: Arc<Self>) {
        if self.change() == 0
            && let Some(driver) = self.driver.upgrade()
        {
            driver.take_turn_of(self.number);
        }
    }
}

impl ConnectionThreads {
    pub(crate) fn new(number: u64, connection: DrivenConnection, driver: Weak<Driver>) -> Self {
        let state = ConnectionState { connection, resource: Resource::Other, due: None, threads: 0, closed: false };
        Self { number, state: Mutex::new(state), changes: Mutex::default(), changed: Condvar::new(), driver }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Opens the connection on a new thread, since resolving a name or connecting may be slow.
    pub(crate) fn open(self: &Arc<Self>, driver: &Arc<Driver>, endpoint: Endpoint, given: Option<Given>) {
        // From here on the engine can wake the driver for it: the thread may be stuck.
        self.turn(driver);
        if lock(&self.state).closed {
            return;
        }
        let (this, home) = (Arc::clone(self), Arc::clone(driver));
        if let Err(e) = self.thread(driver, "mcp-channel", move || this.run(home, endpoint, given)) {
            self.report(driver, |transfer| transfer.not_opened(no_thread(&e)));
        }
    }

    /// Serves an open connection.
    pub(crate) fn serve(self: &Arc<Self>, driver: &Arc<Driver>, stream: Stream) -> io::Result<()> {
        let Stream { reader, writer, socket } = stream;
        lock(&self.state).resource = socket.map_or(Resource::Other, Resource::Socket);
        self.turn(driver);
        // The server has no room for this client, and sends it no response.
        if lock(&self.state).closed {
            return Ok(());
        }
        let at = Place::new(self, driver);
        self.thread(driver, "mcp-writer", move || stream::write(writer, || at.next_step(), |wrote| at.wrote(wrote)))?;
        let at = Place::new(self, driver);
        self.thread(driver, "mcp-reader", move || at.read(reader))
    }

    /// Ends at once.
    pub(crate) fn abort(self: &Arc<Self>, driver: &Arc<Driver>) {
        let now = driver.clock().now();
        self.report(driver, |transfer| transfer.act(now, ConnectionOutput::Close(Shutdown::Abort)));
    }

    /// Waits until no thread reports anything.
    pub(crate) fn wait_report(&self) {
        drop(lock(&self.state));
    }

    /// Passes what happened to the engine, and its outputs to the threads.
    pub(crate) fn turn(self: &Arc<Self>, driver: &Arc<Driver>) {
        self.report(driver, |_| {});
    }

    fn report(self: &Arc<Self>, driver: &Arc<Driver>, change: impl FnOnce(&mut Transfer)) {
        let waker = Waker::from(Arc::clone(self));
        let mut state = lock(&self.state);
        let before = state.waited_for();
        change(state.connection.transfer());
        loop {
            match state.connection.turn(&waker) {
                Turned::Done => break,
                Turned::Signal(signal) => {
                    if let Resource::Program(process) = &state.resource {
                        process.signal(signal);
                    }
                }
                // This thread serves only this connection.
                Turned::Long => {}
            }
        }
        let tasks: Vec<_> = std::iter::from_fn(|| state.connection.next_task()).collect();
        let due = state.connection.poll_timeout();
        driver.set_due(self.number, &mut state.due, due);
        let is_closed = state.connection.transfer().is_closed();
        let closes = is_closed && !std::mem::replace(&mut state.closed, true);
        let wakes = closes || state.connection.transfer().has_waiting_step() || before != state.waited_for();
        if closes {
            if let Resource::Socket(socket) = &state.resource {
                socket.shutdown(net::Shutdown::Both);
            }
            let due = state.due.take();
            driver.closed(self.number, due, state.threads);
        }
        drop(state);
        if wakes {
            self.change();
        }
        tasks.into_iter().for_each(|task| driver.carry_out(task));
    }

    /// Runs `body` on a thread that counts as one of the connection, unless the connection has
    /// closed.
    fn thread(
        self: &Arc<Self>,
        driver: &Arc<Driver>,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let (at, mut state) = (Place::new(self, driver), lock(&self.state));
        if state.closed {
            return Ok(());
        }
        state.threads += 1;
        drop(state);
        let here = at.clone();
        let started = sync::spawn(name, move || {
            // A stream of the application may panic when it is dropped.
            let panicked = catch_unwind(AssertUnwindSafe(body)).is_err();
            here.ended(panicked);
        });
        started.inspect_err(|_| at.ended(false))
    }

    /// Opens the connection and serves it. For a program this thread waits for the exit, otherwise
    /// it is the reading thread.
    fn run(self: Arc<Self>, driver: Arc<Driver>, endpoint: Endpoint, given: Option<Given>) {
        let stderr = lock(&self.state).connection.stderr();
        let Opened { stream, program: process, errors } = match connect(&driver, endpoint, given, &stderr) {
            Ok(opened) => opened,
            Err(why) => return self.report(&driver, |transfer| transfer.not_opened(why)),
        };
        drop(stderr);
        let Stream { reader, writer, socket } = stream;
        let mut state = lock(&self.state);
        if state.closed {
            // Aborted in the meantime: dropping what was opened closes it, which may run code of
            // the application.
            return drop(state);
        }
        state.resource = match (&process, socket) {
            (Some(process), _) => Resource::Program(Arc::clone(process)),
            (None, Some(socket)) => Resource::Socket(socket),
            (None, None) => Resource::Other,
        };
        drop(state);
        let at = Place::new(&self, &driver);
        let (has_stderr, mut reader) = (errors.is_some(), Some(reader));
        let started = self.start(&driver, writer, errors, process.as_ref().and_then(|_| reader.take()));
        let now = driver.clock().now();
        self.report(&driver, |transfer| match started {
            Ok(()) => drop(transfer.opened(now, Peer::default(), has_stderr)),
            Err(e) => transfer.not_opened(no_thread(&e)),
        });
        drop((self, driver));
        match (process, reader) {
            (Some(process), _) => at.wait_exited(&process),
            (None, Some(reader)) => at.read(reader),
            (None, None) => {}
        }
    }

    /// Starts the other threads of a connection that was opened.
    fn start(
        self: &Arc<Self>,
        driver: &Arc<Driver>,
        writer: crate::transport::Writer,
        errors: Option<(Reader, StderrReader)>,
        reader: Option<Reader>,
    ) -> io::Result<()> {
        if let Some((errors, lines)) = errors {
            let at = Place::new(self, driver);
            self.thread(driver, "mcp-stderr", move || at.read_stderr(errors, lines))?;
        }
        if let Some(reader) = reader {
            let at = Place::new(self, driver);
            self.thread(driver, "mcp-reader", move || at.read(reader))?;
        }
        let at = Place::new(self, driver);
        self.thread(driver, "mcp-writer", move || stream::write(writer, || at.next_step(), |wrote| at.wrote(wrote)))
    }

    /// Wakes the threads that wait. Returns their number.
    fn change(&self) -> usize {
        let mut changes = lock(&self.changes);
        changes.count += 1;
        self.changed.notify_all();
        changes.waiting
    }

    fn changes(&self) -> u64 {
        lock(&self.changes).count
    }

    fn wait_past(&self, seen: u64) {
        let mut changes = lock(&self.changes);
        changes.waiting += 1;
        while changes.count == seen {
            changes = wait(&self.changed, changes, None);
        }
        changes.waiting -= 1;
    }
}

/// The way of a thread to its connection. It holds nothing of the client or the server, which may
/// end while the thread is stuck in the operating system.
#[derive(Clone)]
struct Place {
    connection: Weak<ConnectionThreads>,
    driver: Weak<Driver>,
}

impl Place {
    fn new(connection: &Arc<ConnectionThreads>, driver: &Arc<Driver>) -> Self {
        Self { connection: Arc::downgrade(connection), driver: Arc::downgrade(driver) }
    }

    fn get(&self) -> Option<(Arc<ConnectionThreads>, Arc<Driver>)> {
        self.connection.upgrade().zip(self.driver.upgrade())
    }

    /// Reports what happened. Returns whether the connection still exists.
    fn report(&self, change: impl FnOnce(&mut Transfer)) -> bool {
        let Some((connection, driver)) = self.get() else { return false };
        connection.report(&driver, change);
        !lock(&connection.state).closed
    }

    /// Reads the connection to its end.
    fn read(&self, reader: Reader) {
        // Nothing is read of a connection that waits for its admission.
        if self.wait_wanted() {
            stream::read(reader, |read| self.report(|transfer| transfer.read(read)) && self.wait_wanted());
        }
    }

    /// Waits until the engine accepts more. Returns false if nothing more is read.
    fn wait_wanted(&self) -> bool {
        loop {
            let Some(connection) = self.connection.upgrade() else { return false };
            let seen = connection.changes();
            let mut state = lock(&connection.state);
            let transfer = state.connection.transfer();
            if !(transfer.reads() || transfer.is_opening()) {
                return false;
            }
            if state.connection.wants_read() {
                return true;
            }
            drop(state);
            connection.wait_past(seen);
            // A change may be a wake-up of the engine.
            if !self.report(|_| {}) {
                return false;
            }
        }
    }

    /// Waits until the connection is open, or was given up.
    fn wait_opened(&self) {
        while let Some(connection) = self.connection.upgrade() {
            let seen = connection.changes();
            if !lock(&connection.state).connection.transfer().is_opening() {
                return;
            }
            connection.wait_past(seen);
        }
    }

    /// Waits for the next step of the writer. `None` if nothing more is written.
    fn next_step(&self) -> Option<Step> {
        loop {
            let (connection, driver) = self.get()?;
            let seen = connection.changes();
            connection.turn(&driver);
            drop(driver);
            let mut state = lock(&connection.state);
            if let Some(step) = state.connection.transfer().take_step() {
                return Some(step);
            }
            // Until it is open, the writer waits as well.
            if state.closed || !(state.connection.transfer().writes() || state.connection.transfer().is_opening()) {
                return None;
            }
            drop(state);
            connection.wait_past(seen);
        }
    }

    fn wrote(&self, wrote: io::Result<usize>) -> bool {
        let Some((connection, driver)) = self.get() else { return false };
        connection.report(&driver, |transfer| transfer.wrote(wrote));
        lock(&connection.state).connection.transfer().writes()
    }

    /// Waits for the exit of a program.
    fn wait_exited(&self, process: &ChildProcess) {
        let status = process.wait_exited();
        if let Some((connection, driver)) = self.get() {
            let now = driver.clock().now();
            connection.report(&driver, |transfer| transfer.exited(now, status));
        }
    }

    /// Reads the standard error of a program to its end. Calls the function of the application
    /// without a lock, so that the function may wait for the end of this program.
    fn read_stderr(&self, errors: Reader, mut lines: StderrReader) {
        self.wait_opened();
        stream::read(errors, |read| {
            let bytes: Bytes = read.unwrap_or_default();
            lines.push(&bytes);
            self.report(|transfer| transfer.stderr(Ok(&bytes)));
            !bytes.is_empty()
        });
    }

    fn ended(&self, panicked: bool) {
        let Some((connection, driver)) = self.get() else {
            // The connection has closed, so the driver counts this thread.
            return self.driver.upgrade().into_iter().for_each(|driver| driver.detached_ended());
        };
        if panicked {
            connection.report(&driver, |transfer| transfer.read(Err(io::ErrorKind::BrokenPipe.into())));
        }
        let mut state = lock(&connection.state);
        state.threads -= 1;
        if state.closed {
            drop(state);
            driver.detached_ended();
        }
    }
}

fn connect(
    driver: &Driver,
    endpoint: Endpoint,
    given: Option<Given>,
    stderr: &crate::Stderr,
) -> Result<Opened, Closed> {
    let unreachable = |why: &dyn std::fmt::Display| Closed::Unreachable(why.to_string());
    let stream = |stream: Stream| Ok(Opened { stream, program: None, errors: None });
    match endpoint {
        Endpoint::Program(program) => {
            let started = os::spawn(&program, stderr).map_err(|e| not_opened(&program.command, &e))?;
            let errors = started.errors.zip(StderrReader::new(stderr));
            let stream = Stream { reader: started.reader, writer: started.writer, socket: None };
            Ok(Opened { stream, program: Some(Arc::new(started.process)), errors })
        }
        Endpoint::Origin(origin) => stream(socket::connect(&origin, driver.open_timeout(), &driver.clock())?.into()),
        #[cfg(unix)]
        Endpoint::Unix(path) => stream(socket::connect_unix(&path)?.into()),
        Endpoint::Given => {
            let given = given.ok_or_else(|| unreachable(&"a channel that was given cannot be opened again"))?;
            let (reader, writer) = (given.0)().map_err(|e| unreachable(&e))?;
            stream(Stream { reader, writer, socket: None })
        }
        #[cfg(not(unix))]
        _ => Err(unreachable(&"this build cannot open such a channel")),
    }
}

fn no_thread(e: &io::Error) -> Closed {
    Closed::Unreachable(format!("no thread can be started: {e}"))
}
