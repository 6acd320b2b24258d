//! One channel: its descriptors, its write queue, and its child. This is all that the loop knows of
//! the operating system.

use super::Shutdown;
use bytes::{Buf, Bytes};
use mcp_proto::adapter::{DRAIN, not_opened};
use mcp_proto::exchange::IoEvent;
use mcp_proto::exchange::{Closed, ConnectionId, Endpoint, ExitStatus, Group, Program};
use mcp_proto::process::Stderr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketType};
use rustix::process::{self, Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};
use std::vec;

/// Interval at which a child is checked that has exited or closed its output, but not both.
const EXIT_LOOK: Duration = Duration::from_millis(5);

/// Maximum size of a read, in bytes.
const READ: usize = 64 << 10;

pub(super) struct Channel {
    connecting: Option<Connecting>,
    /// `None` once the peer has ended, or the channel was cut.
    reader: Option<File>,
    /// `None` once this side has ended, or a write has failed.
    writer: Option<File>,
    queue: VecDeque<Bytes>,
    /// It was accepted to serve HTTP: once a write has failed, there is no reason to read.
    serves: bool,
    /// Nothing is written after the queue.
    finishing: bool,
    cut: Option<Closed>,
    process: Option<Process>,
    /// Whether the engine takes what is read.
    reads: bool,
}

/// A connection in progress, and the addresses to try if it fails.
struct Connecting {
    socket: OwnedFd,
    others: vec::IntoIter<SocketAddr>,
}

impl Channel {
    /// Begins to open it. `given` is the channel for [`Endpoint::Given`].
    pub(super) fn open(endpoint: &Endpoint, given: &mut Option<[OwnedFd; 2]>) -> Result<Self, Closed> {
        match endpoint {
            Endpoint::Program(program) => Self::start(program).map_err(|e| not_opened(&program.command, &e)),
            Endpoint::Origin(origin) if origin.tls => Err(Closed::Unreachable("this loop has no tls".into())),
            Endpoint::Origin(origin) => {
                // The only blocking call here. A loop for more than one server has its own
                // resolver.
                let addresses =
                    (origin.host.as_str(), origin.port).to_socket_addrs().map_err(|_| Closed::Unresolved)?;
                let addresses = addresses.collect::<Vec<_>>().into_iter();
                Ok(Self { connecting: Some(Connecting::next(addresses, Closed::Unresolved)?), ..Self::unopened() })
            }
            Endpoint::Unix(path) => {
                let pair = UnixStream::connect(path).and_then(|socket| Ok([socket.try_clone()?.into(), socket.into()]));
                pair.and_then(Self::of).map_err(|e| not_opened(path, &e))
            }
            Endpoint::Given => {
                let pair = given.take().ok_or(ErrorKind::NotFound.into());
                pair.and_then(Self::of).map_err(|e| not_opened(&"the given channel", &e))
            }
        }
    }

    /// Creates an open channel from its reading and its writing end.
    pub(super) fn of(pair: [OwnedFd; 2]) -> io::Result<Self> {
        // Each end of a pipe has this mode for itself. All users of a terminal share it, so a
        // program that people start by hand should rather wait for each read and write.
        for end in &pair {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        let [reader, writer] = pair;
        Ok(Self { reader: Some(reader.into()), writer: Some(writer.into()), ..Self::unopened() })
    }

    /// The same, for an accepted HTTP client.
    pub(super) fn accepted(pair: [OwnedFd; 2]) -> io::Result<Self> {
        Self::of(pair).map(|channel| Self { serves: true, ..channel })
    }

    fn start(program: &Program) -> io::Result<Self> {
        let mut child = program.to_piped(&Stderr::Inherit, std::env::vars_os()).spawn()?;
        let (Some(output), Some(input)) = (child.stdout.take(), child.stdin.take()) else {
            unreachable!("both were asked to be pipes")
        };
        let pid = Pid::from_child(&child);
        let exit = process::pidfd_open(pid, PidfdFlags::empty()).ok();
        let process = Process { child, group: program.group == Group::Own, exit, ended: None, reaped: false };
        Ok(Self { process: Some(process), ..Self::of([output.into(), input.into()])? })
    }

    fn unopened() -> Self {
        let (connecting, reader, writer, cut, process) = (None, None, None, None, None);
        Self {
            connecting,
            reader,
            writer,
            queue: VecDeque::new(),
            serves: false,
            finishing: false,
            cut,
            process,
            reads: true,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.connecting.is_none()
    }

    /// Queues bytes, to be written when there is room.
    pub(super) fn write(&mut self, bytes: Bytes) {
        // Once a write has failed, nothing more can be written. Reading continues, since the
        // response may be there.
        if self.writer.is_some() {
            self.queue.push_back(bytes);
        }
    }

    /// Stops reading, or reads again.
    pub(super) fn set_reading(&mut self, reads: bool) {
        self.reads = reads;
    }

    pub(super) fn close(&mut self, how: Shutdown) {
        match how {
            Shutdown::WriteHalf => {
                self.finishing = true;
                self.finish();
            }
            Shutdown::Terminate => {
                if let Some(process) = &self.process {
                    process.signal(Signal::TERM);
                }
            }
            Shutdown::Abort => {
                if let Some(process) = &self.process {
                    process.signal(Signal::KILL);
                }
                self.end(Closed::Aborted);
            }
        }
    }

    /// Reads and writes what can be without waiting, and says what came of it.
    pub(super) fn transfer(&mut self) -> Vec<IoEvent> {
        let mut events = Vec::new();
        self.connect(&mut events);
        self.flush(&mut events);
        if self.reads {
            self.read(&mut events);
        }
        events
    }

    /// Returns how the channel ended, once it has. A program has ended when it has exited and its
    /// output was read to the end, or for some time if another process holds it open. Anything else
    /// has ended when both directions have.
    pub(super) fn closed(&mut self) -> Option<Closed> {
        if self.connecting.is_some() {
            return None;
        }
        match &mut self.process {
            Some(process) => match self.reader.is_none() || process.is_drained() {
                true => process.exited().map(Closed::Exited),
                false => None,
            },
            None if self.reader.is_some() || self.writer.is_some() => None,
            None => Some(self.cut.take().unwrap_or(Closed::Eof)),
        }
    }

    fn connect(&mut self, events: &mut Vec<IoEvent>) {
        match self.connecting.take().map(Connecting::finish) {
            Some(Ok(Ok(pair))) => {
                let [reader, writer] = pair;
                (self.reader, self.writer) = (Some(reader.into()), Some(writer.into()));
                events.push(IoEvent::Opened(Default::default()));
            }
            Some(Ok(Err(next))) => self.connecting = Some(next),
            Some(Err(why)) => self.end(why),
            None => {}
        }
    }

    fn flush(&mut self, events: &mut Vec<IoEvent>) {
        while let (Some(writer), Some(bytes)) = (&mut self.writer, self.queue.front_mut()) {
            match writer.write(bytes) {
                Ok(n) => {
                    events.push(IoEvent::Written(n));
                    bytes.advance(n);
                    if bytes.is_empty() {
                        self.queue.pop_front();
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) if self.serves => self.end(Closed::Reset),
                Err(_) => {
                    self.queue.clear();
                    self.writer = None;
                }
            }
        }
        self.finish();
    }

    fn read(&mut self, events: &mut Vec<IoEvent>) {
        let Some(reader) = &mut self.reader else { return };
        let mut buffer = [0; READ];
        match reader.read(&mut buffer) {
            Ok(0) => {
                self.reader = None;
                events.push(IoEvent::ReadClosed);
            }
            // A copy, since the engine may keep what it is given.
            Ok(n) => events.push(IoEvent::Read(Bytes::copy_from_slice(&buffer[..n]))),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.end(Closed::Reset),
        }
    }

    /// Ends the writing side if everything is written.
    fn finish(&mut self) {
        if self.finishing
            && self.queue.is_empty()
            && let Some(writer) = self.writer.take()
        {
            // Half-closes a socket. On a pipe this fails, and closing it next ends it.
            let _ = net::shutdown(&writer, net::Shutdown::Write);
        }
    }

    fn end(&mut self, why: Closed) {
        self.queue.clear();
        (self.connecting, self.reader, self.writer) = (None, None, None);
        self.cut = Some(why);
    }

    /// What to wait for.
    fn interest(&self) -> impl Iterator<Item = PollFd<'_>> {
        let connecting = self.connecting.as_ref().map(|connecting| PollFd::new(&connecting.socket, PollFlags::OUT));
        let reader = self.reader.as_ref().filter(|_| self.reads).map(|reader| PollFd::new(reader, PollFlags::IN));
        let writer = self.writer.as_ref().filter(|_| !self.queue.is_empty());
        // Once it is known, it is not waited for any more.
        let exit =
            self.process.as_ref().filter(|process| process.ended.is_none()).and_then(|process| process.exit.as_ref());
        let exit = exit.map(|exit| PollFd::new(exit, PollFlags::IN));
        connecting.into_iter().chain(exit).chain(reader).chain(writer.map(|writer| PollFd::new(writer, PollFlags::OUT)))
    }
}

/// Sleeps until a channel is ready, a client connects to the listener, or the time is over. Returns
/// the ready channels.
pub(super) fn wait(
    channels: &BTreeMap<ConnectionId, Channel>,
    listener: Option<&TcpListener>,
    sleep: Option<Duration>,
) -> io::Result<Vec<ConnectionId>> {
    let (mut ids, mut fds) = (Vec::new(), Vec::new());
    for (id, channel) in channels {
        fds.extend(channel.interest());
        ids.resize(fds.len(), *id);
    }
    fds.extend(listener.map(|listener| PollFd::new(listener, PollFlags::IN)));
    let dying = |channel: &Channel| {
        channel.process.as_ref().is_some_and(|process| channel.reader.is_none() || process.ended.is_some())
    };
    let dying = channels.values().any(dying);
    let sleep = if dying { Some(sleep.unwrap_or(EXIT_LOOK).min(EXIT_LOOK)) } else { sleep };
    // A time that is too long to represent is no limit.
    let sleep = sleep.and_then(|sleep| Timespec::try_from(sleep).ok());
    match poll(&mut fds, sleep.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(e) => return Err(e.into()),
    }
    // A channel may occur twice, for reading and for writing. The second time there is nothing to
    // do.
    Ok(ids.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(id, _)| id).collect())
}

impl Connecting {
    /// Begins with the next possible address. `why` is the error if there is none.
    fn next(mut others: vec::IntoIter<SocketAddr>, mut why: Closed) -> Result<Self, Closed> {
        while let Some(address) = others.next() {
            match connect(address) {
                Ok(socket) => return Ok(Self { socket, others }),
                Err(e) => why = refused(e),
            }
        }
        Err(why)
    }

    /// Checks the result: a connection, the next address, or the end.
    fn finish(self) -> Result<Result<[OwnedFd; 2], Self>, Closed> {
        match net::sockopt::socket_error(&self.socket) {
            Ok(Ok(())) => match self.socket.try_clone() {
                Ok(reader) => Ok(Ok([reader, self.socket])),
                Err(e) => Err(Closed::Unreachable(e.to_string())),
            },
            Ok(Err(e)) | Err(e) => Self::next(self.others, refused(e)).map(Err),
        }
    }
}

/// Creates a socket that is connecting.
fn connect(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket(family, SocketType::STREAM, None)?;
    // No child inherits it, and nothing on it blocks.
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    // Small writes are sent at once: the engine writes a message as a whole.
    net::sockopt::set_tcp_nodelay(&socket, true)?;
    match net::connect(socket.as_fd(), &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(e) => Err(e),
    }
}

fn refused(e: Errno) -> Closed {
    if e == Errno::CONNREFUSED { Closed::Refused } else { Closed::Unreachable(e.to_string()) }
}

/// A child, and the right to signal it.
struct Process {
    child: Child,
    /// It leads a process group, which is signalled as a whole.
    group: bool,
    /// A descriptor for `poll` to wait for its exit.
    exit: Option<OwnedFd>,
    /// When its exit was noticed.
    ended: Option<Instant>,
    /// Its id may belong to another process now.
    reaped: bool,
}

impl Process {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        // Fails if all of them have exited already.
        let _ = if self.group { process::kill_process_group(pid, signal) } else { process::kill_process(pid, signal) };
    }

    /// Returns whether it has exited and its output was read for long enough.
    fn is_drained(&mut self) -> bool {
        if self.ended.is_none() && self.has_exited() {
            self.ended = Some(Instant::now());
        }
        self.ended.is_some_and(|at| at.elapsed() >= DRAIN)
    }

    fn has_exited(&self) -> bool {
        let pid = WaitId::Pid(Pid::from_child(&self.child));
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        matches!(process::waitid(pid, options), Ok(Some(_)))
    }

    /// Reaps it if it has exited. Does not wait.
    fn exited(&mut self) -> Option<ExitStatus> {
        if !self.has_exited() {
            return None;
        }
        // The rest of its group ends with it. This is safe until it is reaped, since its id is not
        // reused before.
        if self.group {
            self.signal(Signal::KILL);
        }
        self.reaped = true;
        self.child.wait().ok().map(ExitStatus::from)
    }
}

impl Drop for Process {
    /// The loop never leaves a child behind, nor the descendants of an exited one.
    fn drop(&mut self) {
        if !self.reaped {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
