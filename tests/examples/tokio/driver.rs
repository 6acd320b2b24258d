//! The port: clients and servers of `mcp_driver` on tokio.
//!
//! A client, a server and each connection are tasks with one loop, which carry out what the engine
//! decides. Any runtime of tokio runs them, with its I/O and its time enabled.

use bytes::Bytes;
use mcp_driver::*;
use mcp_proto::exchange::{Closed, Endpoint, ExitStatus, Origin, Peer, Program, Reach};
use mcp_proto::process::Stderr;
use mcp_proto::route::BoxFuture;
use mcp_proto::wired::Kind;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, empty, sink, split};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs, UnixStream, lookup_host, unix::pipe};
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinHandle, spawn_blocking, yield_now};
use tokio::time::{sleep, sleep_until, timeout};

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Size of a read, in bytes.
const READ: usize = 16 << 10;

// ---- Clients ----

/// Creates a client of a server, and spawns its driver, whose task ends with the client. Calls may
/// be made at once; `Client::ready` waits for the end of negotiation. Aborting the task ends
/// everything at once. Await it before the runtime ends: otherwise a program has no time to exit.
///
/// # Errors
/// The target is invalid, or the operating system provides no random bytes.
pub(crate) fn connect(
    target: impl IntoTarget<Io>,
    options: ClientOptions,
) -> Result<(Client, JoinHandle<()>), ConnectError> {
    let (config, given) = target.into_target()?.into_parts();
    let (client, driving) = Client::begin(config, options, delay)?;
    let opener = Arc::new(Opener { limit: client.open_timeout(), given: Mutex::new(given) });
    Ok((client, tokio::spawn(driving.run(delay, move |task| carry_out(task, &opener)))))
}

/// Opens the connections of a client.
#[derive(Default)]
pub(crate) struct Opener {
    /// Maximum time for an attempt to reach an origin.
    limit: Duration,
    /// A connection that the application has opened.
    given: Mutex<Option<Io>>,
}

// ---- Servers ----

/// Creates a server without connections, and spawns its driver.
///
/// # Errors
/// The operating system provides no random bytes.
pub(crate) fn server(service: impl Into<Service>) -> io::Result<Server> {
    let Service { router, options } = service.into();
    let (server, driving) = Server::begin(router, options, delay)?;
    tokio::spawn(driving.run(delay, |task| carry_out(task, &Arc::default())));
    Ok(server)
}

/// Listens for HTTP connections. Returns the address, with the port that the system chose.
///
/// # Errors
/// Those of the operating system.
pub(crate) async fn listen_http(server: &Server, address: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let accept = move |cx: &mut Context<'_>| listener.poll_accept(cx).map_ok(|(stream, peer)| Io::tcp(stream, peer));
    tokio::spawn(accept_all(server.listen(|| {}), Kind::HttpServer, accept));
    Ok(address)
}

/// Spawns a task for each connection. `accept` holds the listener, which closes before `listening`.
pub(crate) async fn accept_all(
    listening: ListenerGuard,
    kind: Kind,
    mut accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<Io>>,
) {
    loop {
        let accepted = tokio::select! {
            () = listening.closed() => return,
            accepted = poll_fn(&mut accept) => accepted,
        };
        match accepted.map_err(|e| AcceptRetry::of(&e)) {
            Ok(io) => {
                let connection = listening.accept(kind, io.peer.clone());
                tokio::spawn(drive_connection(connection, io, pending(), Arc::default()));
            }
            Err(AcceptRetry::After(time)) => sleep(time).await,
            Err(AcceptRetry::Again | AcceptRetry::Readable) => {}
        }
    }
}

// ---- Tasks ----

/// Carries out a task, and spawns what takes time.
fn carry_out(task: Task, opener: &Arc<Opener>) {
    match task {
        Task::Open(connection, endpoint) => {
            let given = opener.given.lock().unwrap_or_else(PoisonError::into_inner).take();
            let opening = open(endpoint, opener.limit, connection.stderr(), given);
            tokio::spawn(drive_connection(
                connection,
                Io::new(empty(), sink(), Peer::default()),
                opening,
                Arc::clone(opener),
            ));
        }
        Task::Route(routing) if routing.takes_long() => drop(spawn_blocking(|| route(routing))),
        Task::Route(routing) => route(routing),
        Task::Deliver(events) => events.deliver(),
        Task::Drive(driving, limit) => {
            let opener = Arc::new(Opener { limit, ..Opener::default() });
            tokio::spawn(driving.run(delay, move |task| carry_out(task, &opener)));
        }
        Task::Ended => {}
    }
}

fn route(routing: RouteTask) {
    match routing.route() {
        Some(Job::Async(job)) => drop(tokio::spawn(async {
            let finished = job.await;
            // Dropping it serializes the result, which other tasks would wait for.
            if finished.takes_long() {
                spawn_blocking(|| drop(finished));
            }
        })),
        Some(Job::Sync(job)) => drop(spawn_blocking(|| job.run())),
        None => {}
    }
}

fn delay(time: Duration) -> BoxFuture<()> {
    Box::pin(sleep(time))
}

/// Wakes a connection through a future, which `select!` can wait for.
#[derive(Default)]
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

// ---- Connections ----

/// Drives a connection to its end. `opening` is not polled if it is open. Dropping the future ends
/// the connection, and kills its program first.
pub(crate) async fn drive_connection(
    mut connection: DrivenConnection,
    mut io: Io,
    opening: impl Future<Output = Result<Io, Closed>>,
    opener: Arc<Opener>,
) {
    let woken = Arc::new(Woken::default());
    let (waker, clock) = (Waker::from(Arc::clone(&woken)), connection.clock());
    let (mut opening, mut buffer, mut error) = (pin!(opening), vec![0; READ], vec![0; READ]);
    loop {
        let turned = connection.turn(&waker);
        while let Some(task) = connection.next_task() {
            carry_out(task, &opener);
        }
        match turned {
            TurnResult::Signal(signal) => io.signal(signal),
            TurnResult::Long => match spawn_blocking(|| turn_elsewhere(connection)).await {
                Ok(same) => connection = same,
                Err(_) => return,
            },
            TurnResult::Done if connection.transfer().is_closed() => return,
            TurnResult::Done => {
                let (reads, due) = (connection.wants_read(), clock.at(connection.poll_timeout()));
                let transfer = connection.transfer();
                let (is_opening, is_running) = (transfer.is_opening(), transfer.is_running());
                if !transfer.writes() {
                    io.writer = Box::new(sink());
                }
                tokio::select! {
                    () = woken.0.notified() => {}
                    () = sleep_until(due.into()) => {}
                    opened = &mut opening, if is_opening => match opened {
                        Ok(opened) => {
                            io = opened;
                            transfer.opened(clock.now(), io.peer.clone(), io.lines.is_some());
                        }
                        Err(why) => transfer.not_opened(why),
                    },
                    wrote = write(&mut io.writer, transfer.step()) => transfer.wrote(wrote),
                    status = &mut io.exited, if is_running => transfer.exited(clock.now(), status.unwrap_or_default()),
                    count = io.errors.read(&mut error), if io.lines.is_some() => {
                        let bytes = &error[..count.unwrap_or(0)];
                        transfer.stderr(Ok(bytes));
                        io.stderr(bytes);
                    }
                    count = io.reader.read(&mut buffer), if reads => {
                        transfer.read(count.map(|count| Bytes::copy_from_slice(&buffer[..count])));
                        // Otherwise a peer that always has more to read would delay the others.
                        yield_now().await;
                    }
                }
            }
        }
    }
}

/// Parses a large message away from the tasks that would wait for it.
fn turn_elsewhere(mut connection: DrivenConnection) -> DrivenConnection {
    let _ = connection.turn(Waker::noop());
    connection
}

/// Carries out a part of a step. May be dropped: then nothing was written.
async fn write(writer: &mut Writer, step: Option<&Step>) -> io::Result<usize> {
    match step {
        Some(Step::Write(pieces)) => writer.write_vectored(&pieces.slices()).await,
        Some(Step::Flush) => writer.flush().await.map(|()| 0),
        Some(Step::End) => writer.shutdown().await.map(|()| 0),
        None => pending().await,
    }
}

// ---- The operating system ----

/// The streams of a connection, and its program. Dropping it closes them, and kills the program.
pub(crate) struct Io {
    reader: Reader,
    writer: Writer,
    peer: Peer,
    child: Option<Arc<ChildProcess>>,
    exited: oneshot::Receiver<ExitStatus>,
    /// Standard error of the program, and its lines until the end.
    errors: Reader,
    lines: Option<StderrReader>,
}

impl Io {
    /// Creates the streams of a connection with newline-delimited messages.
    pub(crate) fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        peer: Peer,
    ) -> Self {
        let (reader, writer, errors) = (Box::new(reader), Box::new(writer), Box::new(empty()));
        Self { reader, writer, peer, child: None, exited: oneshot::channel().1, errors, lines: None }
    }

    fn tcp(stream: TcpStream, peer: SocketAddr) -> Self {
        // Otherwise small messages would wait for the acknowledgement of earlier ones. A failure is
        // harmless.
        let _ = stream.set_nodelay(true);
        Self::socket(stream, Peer::tcp(peer))
    }

    /// Creates the streams of a socket.
    pub(crate) fn socket(stream: impl AsyncRead + AsyncWrite + Send + 'static, peer: Peer) -> Self {
        let (reader, writer) = split(stream);
        Self::new(reader, writer, peer)
    }

    /// Starts a program. A thread waits for its exit, on every system, and does not reap it: until
    /// then its group can be ended.
    fn program(program: &Program, stderr: &Stderr) -> io::Result<Self> {
        let SpawnedProgram { process, stdin, stdout, stderr: errors } = ChildProcess::spawn(program, stderr)?;
        let (child, (tell, exited)) = (Arc::new(process), oneshot::channel());
        let waits = Arc::clone(&child);
        let reader = pipe::Receiver::from_owned_fd(stdout.into())?;
        let writer = pipe::Sender::from_owned_fd(stdin.into())?;
        let mut io = Self::new(reader, writer, Peer::default().named(&program.command));
        (io.child, io.exited) = (Some(child), exited);
        thread::Builder::new().spawn(move || tell.send(waits.wait_exited()))?;
        if let Some(errors) = errors {
            io.errors = Box::new(pipe::Receiver::from_owned_fd(errors.into())?);
            io.lines = StderrReader::new(stderr);
        }
        Ok(io)
    }

    fn signal(&self, signal: Signal) {
        self.child.iter().for_each(|child| child.signal(signal));
    }

    /// Passes on the lines of standard error. Empty bytes are its end.
    fn stderr(&mut self, bytes: &[u8]) {
        self.lines.iter_mut().for_each(|lines| lines.push(bytes));
        self.lines.take_if(|_| bytes.is_empty());
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
        // The last line, also if a descendant of the program holds the pipe open.
        self.stderr(&[]);
    }
}

/// Opens a connection. `limit` bounds the attempts to reach an origin.
async fn open(endpoint: Endpoint, limit: Duration, stderr: Stderr, given: Option<Io>) -> Result<Io, Closed> {
    match endpoint {
        Endpoint::Program(program) => Io::program(&program, &stderr).map_err(|e| not_opened(&program.command, &e)),
        Endpoint::Origin(origin) => dial(&origin, Reach::Any, limit).await,
        Endpoint::Within(origin, reach) => dial(&origin, reach, limit).await,
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(&path).await.map_err(|e| not_opened(&path, &e))?;
            Ok(Io::socket(stream, Peer::unix(None).named(path)))
        }
        Endpoint::Given => given.ok_or_else(|| Closed::Unreachable("the channel was given once and is used up".into())),
        _ => Err(Closed::Unreachable("this driver cannot open such a channel".into())),
    }
}

/// Connects to the first address of an origin that accepts, within `limit`.
async fn dial(origin: &Origin, reach: Reach, limit: Duration) -> Result<Io, Closed> {
    let clock = Clock::start();
    let addresses = lookup_host((&*origin.host, origin.port)).await.map_err(|_| Closed::Unresolved)?;
    let mut attempts = Attempts::within(reach, addresses, limit);
    while let Some((address, patience)) = attempts.next(clock.now().since_origin()) {
        let why = match timeout(patience, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(Io::tcp(stream, address)),
            Ok(Err(e)) => not_opened(&address, &e),
            Err(_) => Closed::Timeout,
        };
        attempts.failed(address, why);
    }
    Err(attempts.why())
}
