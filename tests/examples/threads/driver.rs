use bytes::Bytes;
use mcp_driver::*;
use mcp_proto::exchange::{Closed, Endpoint, Peer, Reach};
use mcp_proto::process::Stderr;
use mcp_proto::wired::Kind;
use std::io::{self, Read, Write};
use std::mem::replace;
use std::net::{self, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Wake, Waker};
use std::thread::{park_timeout, spawn};
use std::time::Duration;

/// Starts a thread for each task. The limits of the engine bound their number.
fn carry_out(task: Task) {
    match task {
        Task::Open(connection, endpoint) => drop(spawn(move || {
            let (owner, reports) = Owner::channel();
            let (stderr, to) = (connection.stderr(), owner.clone());
            // Another thread opens it: the engine may give up before that, so this one takes turns.
            spawn(move || {
                let opened = open(endpoint, &stderr, &to);
                to.report(move |owned| owned.opened(opened));
            });
            run(connection, None, owner, &reports);
        })),
        Task::Route(routing) => drop(spawn(move || routing.route().into_iter().for_each(Job::block))),
        Task::Deliver(events) => drop(spawn(move || events.deliver())),
        Task::Drive(driving, _) => drop(spawn(move || driving.block(carry_out))),
        Task::Ended => {}
    }
}

/// A connection, in the thread that owns it.
struct Owned {
    connection: DrivenConnection,
    ends: Option<Ends>,
    is_reading: bool,
    is_writing: bool,
}

/// The way to that thread, which carries out what the others report.
#[derive(Clone)]
struct Owner(Sender<Report>);
type Report = Box<dyn FnOnce(&mut Owned) + Send>;

impl Owner {
    fn channel() -> (Self, Receiver<Report>) {
        let (owner, reports) = channel();
        (Self(owner), reports)
    }

    fn report(&self, report: impl FnOnce(&mut Owned) + Send + 'static) {
        let _ = self.0.send(Box::new(report)); // After an error the connection has closed.
    }
}

impl Wake for Owner {
    fn wake(self: Arc<Self>) {
        self.report(|_| {});
    }
}

/// Runs a connection until it has closed.
fn run(connection: DrivenConnection, ends: Option<Ends>, owner: Owner, reports: &Receiver<Report>) {
    let (clock, waker) = (connection.clock(), Waker::from(Arc::new(owner)));
    let mut owned = Owned { connection, ends, is_reading: false, is_writing: false };
    loop {
        loop {
            match owned.connection.turn(&waker) {
                TurnResult::Done => break,
                TurnResult::Long => {} // This thread serves no other connection.
                TurnResult::Signal(signal) => owned.ends.iter().for_each(|ends| ends.signal(signal)),
            }
        }
        while let Some(task) = owned.connection.next_task() {
            carry_out(task);
        }
        if owned.connection.transfer().is_closed() {
            return;
        }
        owned.start();
        if let Ok(report) = reports.recv_timeout(clock.until(owned.connection.poll_timeout())) {
            report(&mut owned);
        }
    }
}

impl Owned {
    fn opened(&mut self, opened: Result<(Ends, bool), Closed>) {
        let (now, transfer) = (self.connection.clock().now(), self.connection.transfer());
        match opened {
            Ok((ends, has_stderr)) => {
                // A program that is not wanted any more is ended by signals.
                if transfer.opened(now, ends.peer.clone(), has_stderr) || ends.process.is_some() {
                    self.ends = Some(ends);
                }
            }
            Err(why) => transfer.not_opened(why),
        }
    }

    /// Starts a read and a step of the writer, if the engine has one and the last one is complete.
    fn start(&mut self) {
        let Some(ends) = &self.ends else { return };
        if self.connection.wants_read() && !replace(&mut self.is_reading, true) {
            let _ = ends.reads.send(());
        }
        if !self.is_writing
            && let Some(step) = self.connection.transfer().take_step()
        {
            self.is_writing = true;
            let _ = ends.steps.send(step);
        }
    }
}

/// What is open. One thread reads it and one writes it, so that neither waits for the other.
struct Ends {
    reads: Sender<()>,
    steps: Sender<Step>,
    socket: Option<TcpStream>,
    process: Option<Arc<ChildProcess>>,
    peer: Peer,
}

impl Ends {
    fn new<W: Write + Send + 'static>(reader: impl Read + Send + 'static, writer: W, end: fn(W), to: &Owner) -> Self {
        let ((reads, to_read), (steps, to_write)) = (channel(), channel());
        let (reading, writing) = (to.clone(), to.clone());
        spawn(move || read(reader, &to_read, &reading));
        spawn(move || write(writer, end, &to_write, &writing));
        Self { reads, steps, socket: None, process: None, peer: Peer::default() }
    }

    fn of(socket: TcpStream, owner: &Owner) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        let end = |socket: TcpStream| drop(socket.shutdown(net::Shutdown::Write));
        let mut ends = Self::new(socket.try_clone()?, socket.try_clone()?, end, owner);
        ends.socket = Some(socket);
        Ok(ends)
    }

    fn signal(&self, signal: Signal) {
        self.process.iter().for_each(|process| process.signal(signal));
    }
}

impl Drop for Ends {
    /// Wakes the threads of a socket.
    fn drop(&mut self) {
        self.socket.iter().for_each(|socket| drop(socket.shutdown(net::Shutdown::Both)));
    }
}

fn read(mut reader: impl Read, reads: &Receiver<()>, owner: &Owner) {
    let mut buffer = [0; 16 << 10];
    for () in reads {
        let read = reader.read(&mut buffer).map(|n| Bytes::copy_from_slice(&buffer[..n]));
        owner.report(move |owned| {
            owned.is_reading = false;
            owned.connection.transfer().read(read);
        });
    }
}

fn write<W: Write>(mut writer: W, end: fn(W), steps: &Receiver<Step>, owner: &Owner) {
    let wrote = |result| owner.report(move |owned| owned.connection.transfer().wrote(result));
    for step in steps {
        match step {
            Step::Write(mut pieces) => {
                while !pieces.is_empty() {
                    let result = writer.write_vectored(&pieces.slices());
                    pieces.advance(*result.as_ref().unwrap_or(&0));
                    if !matches!(&result, Ok(1..)) {
                        return wrote(result); // What the peer has sent is still read.
                    }
                    wrote(result);
                }
            }
            Step::Flush => wrote(writer.flush().map(|()| 0)),
            Step::End => {
                end(writer);
                return wrote(Ok(0));
            }
        }
        owner.report(|owned| owned.is_writing = false);
    }
}

/// Opens a connection. Returns whether the standard error of a program is read as well.
fn open(endpoint: Endpoint, stderr: &Stderr, owner: &Owner) -> Result<(Ends, bool), Closed> {
    match endpoint {
        Endpoint::Program(program) => {
            let spawned = ChildProcess::spawn(&program, stderr).map_err(|e| not_opened(&program.command, &e))?;
            let (process, to) = (Arc::new(spawned.process), owner.clone());
            let mut ends = Ends::new(spawned.stdout, spawned.stdin, drop, owner);
            ends.process = Some(Arc::clone(&process));
            spawn(move || {
                let status = process.wait_exited();
                to.report(move |owned| {
                    let now = owned.connection.clock().now();
                    owned.connection.transfer().exited(now, status);
                });
            });
            let (errors, to) = (spawned.stderr.zip(StderrReader::new(stderr)), owner.clone());
            let has_stderr = errors.is_some();
            errors.map(|(pipe, lines)| spawn(move || read_stderr(pipe, lines, &to)));
            Ok((ends, has_stderr))
        }
        Endpoint::Origin(ref origin) | Endpoint::Within(ref origin, _) => {
            let reach = if let Endpoint::Within(_, reach) = endpoint { reach } else { Reach::Any };
            let addresses = (&*origin.host, origin.port).to_socket_addrs().map_err(|_| Closed::Unresolved)?;
            let (clock, limit) = (Clock::start(), Duration::from_secs(10));
            let mut attempts = Attempts::within(reach, addresses, limit);
            while let Some((address, patience)) = attempts.next(clock.now().since_origin()) {
                match TcpStream::connect_timeout(&address, patience).and_then(|socket| Ends::of(socket, owner)) {
                    Ok(mut ends) => {
                        ends.peer = Peer::tcp(address);
                        return Ok((ends, false));
                    }
                    Err(e) => attempts.failed(address, not_opened(&address, &e)),
                }
            }
            Err(attempts.why())
        }
        other => Err(Closed::Unreachable(format!("this driver cannot open {other:?}"))),
    }
}

fn read_stderr(mut errors: impl Read, mut lines: StderrReader, owner: &Owner) {
    let (mut buffer, mut n) = ([0; 4 << 10], 1);
    while n > 0 {
        n = errors.read(&mut buffer).unwrap_or(0);
        lines.push(&buffer[..n]);
        let bytes = Bytes::copy_from_slice(&buffer[..n]);
        owner.report(move |owned| owned.connection.transfer().stderr(Ok(&bytes)));
    }
}

/// Accepts connections until the server stops.
fn listen(server: &Server, listener: &TcpListener) -> io::Result<()> {
    let address = listener.local_addr()?;
    // A connection ends the wait for one.
    let listening = server.listen(move || drop(TcpStream::connect(address)));
    while !listening.is_closed() {
        let (owner, reports) = Owner::channel();
        match listener.accept().and_then(|(socket, from)| Ok((Ends::of(socket, &owner)?, from))) {
            Ok((ends, from)) => {
                let connection = listening.accept(Kind::HttpServer, Peer::tcp(from));
                spawn(move || run(connection, Some(ends), owner, &reports));
            }
            Err(e) => {
                if let AcceptRetry::After(rest) = AcceptRetry::of(&e) {
                    park_timeout(rest);
                }
            }
        }
    }
    Ok(())
}
