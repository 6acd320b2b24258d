//! One connection: its turns, which any thread may take, and the threads that it starts.
//!
//! # Turns
//!
//! A turn passes what happened to the engine, and its outputs to the stream: it writes what the
//! system accepts at once. Nothing waits, reads or blocks under the lock of a connection, so two
//! full pipes cannot deadlock.
//!
//! | what happens | who takes the turn |
//! |---|---|
//! | a thread of the connection has something to report | that thread, with its report |
//! | it has run the callbacks of the requests of that turn | that thread, once: their answers leave in one write |
//! | the engine wakes the connection, and the lock is free | the thread that causes it: a caller, a handler |
//! | the same, and a thread holds the lock | that thread, once it has released it |
//! | the same, in a turn of another connection | the thread of the driver |
//! | a timer is due | the thread of the driver |
//!
//! A wake-up never waits for the lock: it notes that a turn is due, and the thread that releases
//! the lock looks.
//!
//! # Threads
//!
//! One reads what no caller reads for itself: see [`reading`]. Of a program one waits for its exit
//! and one reads its standard error. Another one writes what the system does not accept at once:
//! see [`writing`]. A thread that is stuck in the
//! operating system holds only its own end of the stream; the connection ends without it.

mod reading;
mod threads;
mod writing;

use crate::driver::Driver;
use crate::here::{self, Here};
use crate::os::{self, ChildProcess};
use crate::socket::{self, Socket};
use crate::stream;
use crate::sync::{self, Condvar, Mutex, MutexGuard, lock, try_lock, wait};
use crate::transport::{Given, Reader, Stream, Writer};
use mcp_driver::{DrivenConnection, StderrReader, Task, TlsConnector, Transfer, TurnResult, not_opened};
use mcp_proto::Instant;
use mcp_proto::exchange::{Closed, Endpoint, Origin, Peer, Reach, Shutdown};
use mcp_proto::wired::ConnectionOutput;
use reading::ReadHalf;
pub(crate) use reading::Wait;
use std::io;
use std::mem::replace;
use std::net;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;
use threads::Place;
use writing::{Rest, WriteHalf};

/// Maximum number of turns that a wake-up takes while others keep waking the connection: it may be
/// on a thread of the application, which has other work. The thread of the driver goes on.
const MOST_TURNS: usize = 16;

pub(crate) struct ConnectionThreads {
    number: u64,
    state: Mutex<ConnectionState>,
    changes: Mutex<Changes>,
    changed: Condvar,
    driver: Weak<Driver>,
}

/// What is known without the lock of the connection.
struct Changes {
    /// A turn is to be taken.
    due: bool,
    /// What the latest turn has left to read: whether to read, or that nothing more is read. `None`
    /// while the engine accepts no input.
    reads: Option<bool>,
    /// Who reads.
    reading: ReadHalf,
    /// Counts what threads of the connection may wait for.
    count: u64,
    /// Threads that wait for the next one.
    waiting: usize,
}

struct ConnectionState {
    connection: DrivenConnection,
    resource: Resource,
    writing: WriteHalf,
    /// The deadline that the driver knows.
    due: Option<Instant>,
    threads: usize,
    /// The driver has removed it.
    closed: bool,
}

impl ConnectionState {
    /// Returns what there is to read: see [`Changes::reads`].
    fn reads(&mut self) -> Option<bool> {
        let transfer = self.connection.transfer();
        match transfer.reads() || transfer.is_opening() {
            true => self.connection.wants_read().then_some(true),
            false => Some(false),
        }
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
struct OpenConnection {
    stream: Stream,
    program: Option<Arc<ChildProcess>>,
    errors: Option<(Reader, StderrReader)>,
    peer: Peer,
}

/// The engine has something for the connection: this thread takes a turn. The application may wake
/// it under a lock of its own, so the requests of that turn are left to the driver's thread.
impl Wake for ConnectionThreads {
    fn wake(self: Arc<Self>) {
        lock(&self.changes).due = true;
        match here::for_wake_of(&*self) {
            Here::Free => self.catch_up(),
            Here::Later => {}
            Here::Locked => self.driver.upgrade().into_iter().for_each(|driver| driver.take_turn_of(self.number)),
        }
    }
}

impl ConnectionThreads {
    pub(crate) fn new(number: u64, connection: DrivenConnection, driver: Weak<Driver>) -> Self {
        let state = ConnectionState {
            connection,
            resource: Resource::Other,
            writing: WriteHalf::default(),
            due: None,
            threads: 0,
            closed: false,
        };
        let changes =
            Mutex::new(Changes { due: false, reads: None, reading: ReadHalf::default(), count: 0, waiting: 0 });
        Self { number, state: Mutex::new(state), changes, changed: Condvar::new(), driver }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Opens the connection on a new thread, since resolving a name or connecting may be slow.
    pub(crate) fn open(self: &Arc<Self>, driver: &Arc<Driver>, endpoint: Endpoint, given: Option<Given>) {
        // From here on the engine can wake it: the thread may be stuck.
        self.report(driver, |_| {});
        if self.with(|state| state.closed) {
            return;
        }
        let (this, home) = (Arc::clone(self), Arc::clone(driver));
        if let Err(e) = self.thread(driver, "mcp-channel", move || this.run(home, endpoint, given)) {
            self.report(driver, |transfer| transfer.not_opened(no_thread(&e)));
        }
    }

    /// Serves an open connection.
    pub(crate) fn serve(self: &Arc<Self>, driver: &Arc<Driver>, stream: Stream) -> io::Result<()> {
        // No caller waits for an answer, so only the thread reads.
        let Stream { reader, polled: _, writer, direct, socket } = stream;
        let mut state = lock(&self.state);
        state.resource = socket.map_or(Resource::Other, Resource::Socket);
        let writer = state.writing.begin(writer, direct);
        drop(state);
        self.report(driver, |_| {});
        // The server has no room for this client, and sends it no response.
        if self.with(|state| state.closed) {
            return Ok(());
        }
        if let Some(writer) = writer {
            self.start_writing(driver, writer)?;
        }
        let at = Place::new(self, driver);
        self.thread(driver, "mcp-reader", move || at.read(reader))
    }

    /// Ends at once.
    pub(crate) fn abort(self: &Arc<Self>, driver: &Arc<Driver>) {
        let now = driver.clock().now();
        self.report(driver, |transfer| transfer.act(now, ConnectionOutput::Close(Shutdown::Abort)));
    }

    /// Waits until no thread reports anything.
    pub(crate) fn wait_report(self: &Arc<Self>) {
        self.with(|_| {});
    }

    /// Takes a turn on the thread of the driver.
    pub(crate) fn turn(self: &Arc<Self>, driver: &Arc<Driver>) {
        lock(&self.changes).due = true;
        while let Some(state) = self.begin_turn() {
            let tasks = self.take_turn(driver, state, |_| {}, false);
            tasks.into_iter().for_each(|task| driver.carry_out(task));
        }
    }

    /// Reports something on a thread of the connection, and carries out what follows from it.
    fn report(self: &Arc<Self>, driver: &Arc<Driver>, change: impl FnOnce(&mut Transfer)) {
        let mut next = Some(self.take_turn(driver, lock(&self.state), change, true));
        while let Some(tasks) = next {
            if !tasks.is_empty() {
                let _mark = here::serving(&**self);
                tasks.into_iter().for_each(|task| driver.serve_task(task));
                lock(&self.changes).due = true;
            }
            next = self.begin_turn().map(|state| self.take_turn(driver, state, |_| {}, true));
        }
    }

    /// Looks at the state, or changes what needs no turn.
    fn with<T>(self: &Arc<Self>, look: impl FnOnce(&mut ConnectionState) -> T) -> T {
        let seen = look(&mut lock(&self.state));
        // Meanwhile a wake-up could not take the lock.
        self.catch_up();
        seen
    }

    /// Takes the turns that are due, unless another thread does.
    fn catch_up(self: &Arc<Self>) {
        for _ in 0..MOST_TURNS {
            let Some(state) = self.begin_turn() else { return };
            let Some(driver) = self.driver.upgrade() else { return };
            let tasks = self.take_turn(&driver, state, |_| {}, false);
            tasks.into_iter().for_each(|task| driver.carry_out_elsewhere(task));
        }
        self.driver.upgrade().into_iter().for_each(|driver| driver.take_turn_of(self.number));
    }

    /// Begins a turn if one is due. `None` also if another thread holds the lock: it looks after
    /// that.
    fn begin_turn(&self) -> Option<MutexGuard<'_, ConnectionState>> {
        let is_due = lock(&self.changes).due;
        is_due.then(|| try_lock(&self.state)).flatten()
    }

    /// Takes a turn: passes what happened to the engine, and its outputs to the stream and to the
    /// threads. Returns its tasks. With `returns`, the caller carries them out and takes another
    /// turn, which writes their results together with what this one has to write.
    fn take_turn(
        self: &Arc<Self>,
        driver: &Arc<Driver>,
        mut guard: MutexGuard<'_, ConnectionState>,
        change: impl FnOnce(&mut Transfer),
        returns: bool,
    ) -> Vec<Task> {
        lock(&self.changes).due = false;
        let (waker, mark, state) = (Waker::from(Arc::clone(self)), here::in_turn(&**self), &mut *guard);
        let was_opening = state.connection.transfer().is_opening();
        change(state.connection.transfer());
        let (mut tasks, mut rest, mut wrote) = (Vec::new(), Rest::Nothing, false);
        loop {
            match state.connection.turn(&waker) {
                TurnResult::Done => {
                    tasks.extend(std::iter::from_fn(|| state.connection.next_task()));
                    if returns && !tasks.is_empty() {
                        break;
                    }
                    if !state.writing.write_now(state.connection.transfer()) {
                        rest = state.writing.rest(state.connection.transfer());
                        break;
                    }
                    wrote = true;
                    here::wrote(self.number);
                }
                TurnResult::Signal(signal) => {
                    if let Resource::Program(process) = &state.resource {
                        process.signal(signal);
                    }
                }
                // A message is read on the thread of its connection.
                TurnResult::Long => {}
            }
        }
        let due = state.connection.poll_timeout();
        driver.set_due(self.number, &mut state.due, due);
        let closes = state.connection.transfer().is_closed() && !replace(&mut state.closed, true);
        if closes {
            if let Resource::Socket(socket) = &state.resource {
                socket.shutdown(net::Shutdown::Both);
            }
            let due = state.due.take();
            driver.closed(self.number, due, state.threads);
        }
        let has_opened = was_opening && !state.connection.transfer().is_opening();
        self.change(has_opened || matches!(rest, Rest::Wake), state.reads(), wrote);
        drop((guard, mark));
        if let Rest::Start(writer) = rest {
            self.start_writing_later(driver, writer);
        }
        tasks
    }

    /// Runs `body` on a thread that counts as one of the connection, unless the connection has
    /// closed.
    fn thread(
        self: &Arc<Self>,
        driver: &Arc<Driver>,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let at = Place::new(self, driver);
        if !self.with(|state| {
            state.threads += usize::from(!state.closed);
            !state.closed
        }) {
            return Ok(());
        }
        let here = at.clone();
        let started = sync::spawn(name, move || {
            // A stream of the application may panic when it is dropped.
            let panicked = catch_unwind(AssertUnwindSafe(body)).is_err();
            here.ended(panicked);
        });
        started.inspect_err(|_| at.ended(false))
    }

    fn start_writing(self: &Arc<Self>, driver: &Arc<Driver>, writer: Writer) -> io::Result<()> {
        let at = Place::new(self, driver);
        self.thread(driver, "mcp-writer", move || stream::write(writer, || at.next_step(), |wrote| at.wrote(wrote)))
    }

    /// Starts the writing thread when the stream does not accept everything at once.
    fn start_writing_later(self: &Arc<Self>, driver: &Arc<Driver>, writer: Writer) {
        if self.start_writing(driver, writer).is_err() {
            let now = driver.clock().now();
            lock(&self.state).connection.transfer().act(now, ConnectionOutput::Close(Shutdown::Abort));
            driver.take_turn_of(self.number);
        }
    }

    /// Opens the connection and serves it. For a program this thread waits for the exit, otherwise
    /// it is the reading thread.
    fn run(self: Arc<Self>, driver: Arc<Driver>, endpoint: Endpoint, given: Option<Given>) {
        let (stderr, connector) =
            self.with(|state| (state.connection.stderr(), state.connection.transfer().connector()));
        let OpenConnection { stream, program: process, errors, peer } =
            match connect(&driver, endpoint, given, &stderr, &connector) {
                Ok(opened) => opened,
                Err(why) => {
                    self.report(&driver, |transfer| transfer.not_opened(why));
                    return;
                }
            };
        drop((stderr, connector));
        let Stream { reader, polled, writer, direct, socket } = stream;
        let writer = self.with(|state| {
            if state.closed {
                return Err((writer, direct));
            }
            lock(&self.changes).reading.begin(polled);
            state.resource = match (&process, socket) {
                (Some(process), _) => Resource::Program(Arc::clone(process)),
                (None, Some(socket)) => Resource::Socket(socket),
                (None, None) => Resource::Other,
            };
            Ok(state.writing.begin(writer, direct))
        });
        // Aborted in the meantime: dropping what was opened closes it, which may run code of the
        // application.
        let Ok(writer) = writer else { return };
        let at = Place::new(&self, &driver);
        let (has_stderr, mut reader) = (errors.is_some(), Some(reader));
        let started = self.start(&driver, writer, errors, process.as_ref().and_then(|_| reader.take()));
        let now = driver.clock().now();
        self.report(&driver, |transfer| match started {
            Ok(()) => drop(transfer.opened(now, peer, has_stderr)),
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
        writer: Option<Writer>,
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
        writer.map_or(Ok(()), |writer| self.start_writing(driver, writer))
    }

    /// Tells the threads that wait what has changed. Call it under the lock of the connection, so
    /// that the latest turn has the last word.
    fn change(&self, looks: bool, reads: Option<bool>, wrote: bool) {
        let mut changes = lock(&self.changes);
        let looks = looks || changes.reads != reads && reads.is_some();
        changes.reads = reads;
        changes.count += u64::from(looks);
        let wakes = looks && changes.waiting > 0;
        let caller = changes.reading.changed(reads, wrote);
        drop(changes);
        // A signal is a system call, also if no thread waits for it.
        if wakes {
            self.changed.notify_all();
        }
        caller.into_iter().for_each(|caller| caller.wake());
    }

    fn changes(&self) -> u64 {
        lock(&self.changes).count
    }

    fn wait_past(&self, seen: u64) {
        self.wait_until(|changes| if changes.count == seen { Err(None) } else { Ok(()) });
    }

    /// Waits until `look` returns a value. Its error is the time after which to look again.
    fn wait_until<T>(&self, mut look: impl FnMut(&mut Changes) -> Result<T, Option<Duration>>) -> T {
        let mut changes = lock(&self.changes);
        loop {
            let limit = match look(&mut changes) {
                Ok(seen) => return seen,
                Err(limit) => limit,
            };
            changes.waiting += 1;
            changes = wait(&self.changed, changes, limit);
            changes.waiting -= 1;
        }
    }
}

fn connect(
    driver: &Driver,
    endpoint: Endpoint,
    given: Option<Given>,
    stderr: &crate::Stderr,
    connector: &TlsConnector,
) -> Result<OpenConnection, Closed> {
    let unreachable = |why: &dyn std::fmt::Display| Closed::Unreachable(why.to_string());
    let stream = |stream: Stream, peer| Ok(OpenConnection { stream, program: None, errors: None, peer });
    let dialled = |origin: &Origin, reach| {
        let (socket, peer) = socket::connect(origin, reach, driver.open_timeout(), &driver.clock(), connector)?;
        stream(socket.into(), peer)
    };
    match endpoint {
        Endpoint::Program(program) => {
            let started = os::spawn(&program, stderr).map_err(|e| not_opened(&program.command, &e))?;
            let errors = started.errors.zip(StderrReader::new(stderr));
            let (stream, peer) = (Stream::of(started.ends), Peer::default().named(&program.command));
            Ok(OpenConnection { stream, program: Some(Arc::new(started.process)), errors, peer })
        }
        Endpoint::Origin(origin) => dialled(&origin, Reach::Any),
        Endpoint::Within(origin, reach) => dialled(&origin, reach),
        #[cfg(unix)]
        Endpoint::Unix(path) => stream(socket::connect_unix(&path)?.into(), Peer::unix(None).named(path)),
        Endpoint::Given => {
            let given = given.ok_or_else(|| unreachable(&"a channel that was given cannot be opened again"))?;
            stream(Stream::of((given.0)().map_err(|e| unreachable(&e))?), Peer::default())
        }
        _ => Err(unreachable(&"this build cannot open such a channel")),
    }
}

fn no_thread(e: &io::Error) -> Closed {
    Closed::Unreachable(format!("no thread can be started: {e}"))
}
