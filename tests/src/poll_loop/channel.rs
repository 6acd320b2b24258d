//! One channel: its descriptors and its program, and when it has closed. This is all that the loop
//! knows of the operating system.

use bytes::{Buf, Bytes};
use mcp_proto::Instant;
use mcp_proto::exchange::{Closed, ConnectionId, Endpoint, ExitStatus, IoEvent, Peer, Reach, Shutdown};
use mcp_proto::process::Stderr;
use mcp_proto::wired::ConnectionOutput;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketType};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Duration;
use std::{env, fmt, vec};

/// Interval at which a program is checked if the system provides no descriptor for its exit.
const EXIT_LOOK: Duration = Duration::from_millis(5);

/// Time after the exit of a program in which the rest of its output is read. What it has started
/// may hold the output open.
const DRAIN: Duration = Duration::from_millis(250);

/// Time in which a killed program has to exit.
const VANISH: Duration = Duration::from_secs(1);

/// Maximum size of a read, in bytes.
const READ: usize = 64 << 10;

/// Maximum number of pieces in one write.
const AT_ONCE: usize = 64;

pub(super) struct Channel {
    kind: ChannelKind,
    connecting: Option<Connecting>,
    /// Until the peer has sent everything.
    reader: Option<File>,
    /// Until this side has.
    writer: Option<File>,
    /// What the engine has written, and the system has not accepted.
    queue: VecDeque<Bytes>,
    /// The writing direction ends behind the queue.
    ends: bool,
    /// Whether the engine accepts input.
    reads: bool,
    /// For the engine.
    events: VecDeque<IoEvent>,
    /// Why it has closed, unless both directions have ended.
    cut: Option<Closed>,
    /// The engine knows that it has closed.
    is_closed: bool,
}

enum ChannelKind {
    /// A socket that this loop opened, or a pair of streams.
    Opened,
    /// An accepted socket. If it cannot be written, its client gets no response.
    Accepted,
    Program(RunningProgram),
}

struct RunningProgram {
    child: Child,
    /// Whether it leads a group.
    leads: bool,
    /// A descriptor for `poll` to wait for its exit.
    exit: Option<OwnedFd>,
    exited: Option<(Instant, ExitStatus)>,
    killed: Option<Instant>,
}

/// A connection in progress to an address, and the ones to try if it fails.
struct Connecting {
    socket: OwnedFd,
    address: SocketAddr,
    others: vec::IntoIter<SocketAddr>,
}

impl Channel {
    /// Begins to open it. `given` is the channel for [`Endpoint::Given`].
    pub(super) fn open(endpoint: &Endpoint, given: &mut Option<[OwnedFd; 2]>) -> Self {
        let mut channel = Self::new(ChannelKind::Opened);
        if let Err(why) = channel.begin(endpoint, given) {
            channel.cut(why);
        }
        channel
    }

    /// Creates an open channel of a pair of streams, from its reading and its writing end.
    pub(super) fn given(pair: [OwnedFd; 2]) -> io::Result<Self> {
        let mut channel = Self::new(ChannelKind::Opened);
        channel.set(pair)?;
        Ok(channel)
    }

    /// The same, for an accepted HTTP client.
    pub(super) fn accepted(pair: [OwnedFd; 2]) -> io::Result<Self> {
        let mut channel = Self::new(ChannelKind::Accepted);
        channel.set(pair)?;
        Ok(channel)
    }

    fn new(kind: ChannelKind) -> Self {
        Self {
            kind,
            connecting: None,
            reader: None,
            writer: None,
            queue: VecDeque::new(),
            ends: false,
            reads: true,
            events: VecDeque::new(),
            cut: None,
            is_closed: false,
        }
    }

    fn begin(&mut self, endpoint: &Endpoint, given: &mut Option<[OwnedFd; 2]>) -> Result<(), Closed> {
        match endpoint {
            Endpoint::Program(program) => {
                let mut command = program.to_piped(&Stderr::Inherit, env::vars_os());
                let started = command.spawn().and_then(|mut child| {
                    let pair = child.stdout.take().map(OwnedFd::from).zip(child.stdin.take().map(OwnedFd::from));
                    let pid = Pid::from_child(&child);
                    let exit = rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK).ok();
                    let leads = rustix::process::getpgid(Some(pid)).is_ok_and(|group| group == pid);
                    let program = RunningProgram { child, leads, exit, exited: None, killed: None };
                    self.kind = ChannelKind::Program(program);
                    pair.map_or(Ok(()), |(output, input)| self.set([output, input]))
                });
                started.map_err(|e| not_opened(&program.command, &e))?;
            }
            Endpoint::Origin(origin) | Endpoint::Within(origin, _) => {
                let reach = if let Endpoint::Within(_, reach) = endpoint { *reach } else { Reach::Any };
                if origin.tls {
                    return Err(Closed::Unreachable("this loop has no TLS".into()));
                }
                // The only blocking call here. A loop for more than one server has its own
                // resolver.
                let addresses = (&*origin.host, origin.port).to_socket_addrs().map_err(|_| Closed::Unresolved)?;
                let all: Vec<_> = addresses.collect();
                let allowed: Vec<_> = all.iter().copied().filter(|address| reach.allows(address.ip())).collect();
                let why = if allowed.len() < all.len() { Closed::NotPublic } else { Closed::Unresolved };
                self.connecting = Some(Connecting::next(allowed.into_iter(), why)?);
                return Ok(());
            }
            Endpoint::Unix(path) => {
                let pair = UnixStream::connect(path).and_then(|socket| Ok([socket.try_clone()?.into(), socket.into()]));
                pair.and_then(|pair| self.set(pair)).map_err(|e| not_opened(path, &e))?;
            }
            Endpoint::Given => {
                let pair = given.take().ok_or(ErrorKind::NotFound.into());
                pair.and_then(|pair| self.set(pair)).map_err(|e| not_opened(&"the given channel", &e))?;
            }
            _ => return Err(Closed::Unreachable("this loop cannot open such a channel".into())),
        }
        self.events.push_back(IoEvent::Opened(Peer::default()));
        Ok(())
    }

    fn set(&mut self, pair: [OwnedFd; 2]) -> io::Result<()> {
        // Each end of a pipe has this mode for itself. All users of a terminal share it, so a
        // program that people start by hand should rather wait for each read and write.
        for end in &pair {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        let [reader, writer] = pair;
        (self.reader, self.writer) = (Some(reader.into()), Some(writer.into()));
        Ok(())
    }

    /// Carries out an output of the engine.
    pub(super) fn act(&mut self, now: Instant, output: ConnectionOutput) {
        match output {
            ConnectionOutput::Write(bytes) => self.queue.push_back(bytes),
            ConnectionOutput::Read(reads) => self.reads = reads,
            ConnectionOutput::Close(Shutdown::WriteHalf) => self.ends = true,
            ConnectionOutput::Close(Shutdown::Terminate) => self.signal(Signal::TERM),
            ConnectionOutput::Close(Shutdown::Abort) => self.abort(now),
            // Asked for only by an origin with TLS, which this loop does not open.
            ConnectionOutput::Secure(_) => self.cut(Closed::Aborted),
        }
    }

    fn abort(&mut self, now: Instant) {
        self.signal(Signal::KILL);
        match &mut self.kind {
            ChannelKind::Program(program) => {
                program.killed.get_or_insert(now);
                (self.reader, self.writer) = (None, None);
            }
            ChannelKind::Opened | ChannelKind::Accepted => self.cut(Closed::Aborted),
        }
    }

    /// Signals a program that runs, with its group if it leads one.
    fn signal(&mut self, signal: Signal) {
        if let ChannelKind::Program(program) = &self.kind
            && program.exited.is_none()
        {
            program.signal(signal);
        }
    }

    /// Ends both directions, for this reason if there was none before.
    fn cut(&mut self, why: Closed) {
        (self.connecting, self.reader, self.writer) = (None, None, None);
        self.cut.get_or_insert(why);
    }

    /// Returns the next event for the engine. `Closed` is the last.
    pub(super) fn poll_event(&mut self, now: Instant) -> Option<IoEvent> {
        self.events.pop_front().or_else(|| {
            let why = self.closed(now).filter(|_| !self.is_closed)?;
            self.is_closed = true;
            Some(IoEvent::Closed(why))
        })
    }

    /// Returns how it has closed, if it has.
    fn closed(&self, now: Instant) -> Option<Closed> {
        match &self.kind {
            ChannelKind::Program(RunningProgram { exited: Some((at, status)), .. }) => {
                let is_drained = self.reader.is_none() || now >= *at + DRAIN;
                is_drained.then(|| Closed::Exited(status.clone()))
            }
            ChannelKind::Program(program) => program.killed.filter(|at| now >= *at + VANISH).map(|_| Closed::Aborted),
            ChannelKind::Opened | ChannelKind::Accepted => {
                let is_open = self.connecting.is_some() || self.reader.is_some() || self.writer.is_some();
                (!is_open).then(|| self.cut.clone().unwrap_or(Closed::Eof))
            }
        }
    }

    /// Returns when it may have an event even if nothing happens.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match &self.kind {
            ChannelKind::Program(RunningProgram { exited: Some((at, _)), .. }) => Some(*at + DRAIN),
            ChannelKind::Program(program) => program.killed.map(|at| at + VANISH),
            ChannelKind::Opened | ChannelKind::Accepted => None,
        }
    }

    /// Reads and writes what can be without waiting.
    pub(super) fn transfer(&mut self, now: Instant) {
        self.connect();
        self.write();
        self.read();
        if let ChannelKind::Program(program) = &mut self.kind {
            program.look(now);
        }
    }

    fn connect(&mut self) {
        match self.connecting.take().map(Connecting::finish) {
            Some(Ok(Ok((pair, peer)))) => match self.set(pair) {
                Ok(()) => self.events.push_back(IoEvent::Opened(peer)),
                Err(e) => self.cut(Closed::Unreachable(e.to_string())),
            },
            Some(Ok(Err(connecting))) => self.connecting = Some(connecting),
            Some(Err(why)) => self.cut(why),
            None => {}
        }
    }

    fn write(&mut self) {
        while let Some(writer) = self.writer.as_mut().filter(|_| !self.queue.is_empty()) {
            // In one write: a response that arrives in parts costs its client further reads.
            let mut pieces = [IoSlice::new(&[]); AT_ONCE];
            pieces.iter_mut().zip(&self.queue).for_each(|(piece, bytes)| *piece = IoSlice::new(bytes));
            match writer.write_vectored(&pieces) {
                Ok(0) => return self.not_written(),
                Ok(written) => {
                    advance(&mut self.queue, written);
                    self.events.push_back(IoEvent::Written(written));
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.not_written(),
            }
        }
        if self.ends
            && let Some(writer) = self.writer.take()
        {
            // Of a pipe, the drop ends it.
            let _ = net::shutdown(&writer, net::Shutdown::Write);
        }
    }

    /// What the peer has sent is still read, unless it is a client.
    fn not_written(&mut self) {
        self.writer = None;
        if let ChannelKind::Accepted = self.kind {
            self.cut(Closed::Reset);
        }
    }

    fn read(&mut self) {
        let Some(reader) = self.reader.as_mut().filter(|_| self.reads) else { return };
        let mut buffer = [0; READ];
        match reader.read(&mut buffer) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // A copy, since the engine may keep what it is given.
            Ok(count @ 1..) => self.events.push_back(IoEvent::Read(Bytes::copy_from_slice(&buffer[..count]))),
            Err(_) if !matches!(self.kind, ChannelKind::Program(_)) => self.cut(Closed::Reset),
            Ok(0) | Err(_) => {
                self.reader = None;
                self.events.push_back(IoEvent::ReadClosed);
            }
        }
    }

    /// What to wait for.
    fn interest(&self) -> impl Iterator<Item = PollFd<'_>> {
        let connecting = self.connecting.as_ref().map(|connecting| PollFd::new(&connecting.socket, PollFlags::OUT));
        let reader = self.reader.as_ref().filter(|_| self.reads);
        let writer = self.writer.as_ref().filter(|_| !self.queue.is_empty() || self.ends);
        let exit = self.running().and_then(|program| program.exit.as_ref());
        let exit = exit.map(|exit| PollFd::new(exit, PollFlags::IN));
        let (reader, writer) = (
            reader.map(|reader| PollFd::new(reader, PollFlags::IN)),
            writer.map(|writer| PollFd::new(writer, PollFlags::OUT)),
        );
        connecting.into_iter().chain(exit).chain(reader).chain(writer)
    }

    /// Returns the program, if it has not exited.
    fn running(&self) -> Option<&RunningProgram> {
        match &self.kind {
            ChannelKind::Program(program) if program.exited.is_none() => Some(program),
            _ => None,
        }
    }
}

impl RunningProgram {
    /// Looks whether it has exited. Its group ends with it, before it is reaped: until then no
    /// other process gets its id.
    fn look(&mut self, now: Instant) {
        let exited = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pid = Pid::from_child(&self.child);
        if self.exited.is_some() || matches!(rustix::process::waitid(WaitId::Pid(pid), exited), Ok(None)) {
            return;
        }
        if self.leads {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
        let status = self.child.wait().map_or_else(|_| ExitStatus::default(), ExitStatus::from);
        self.exited = Some((now, status));
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        let _ = match self.leads {
            true => rustix::process::kill_process_group(pid, signal),
            false => rustix::process::kill_process(pid, signal),
        };
    }
}

impl Drop for RunningProgram {
    /// The loop was dropped. Nothing of the program remains.
    fn drop(&mut self) {
        if self.exited.is_none() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Passes the events of all channels to the engine, and removes those that have closed. Returns
/// whether there were any.
pub(super) fn report(
    channels: &mut BTreeMap<ConnectionId, Channel>,
    now: Instant,
    mut tell: impl FnMut(Instant, ConnectionId, IoEvent),
) -> bool {
    let mut any = false;
    channels.retain(|id, channel| {
        while let Some(event) = channel.poll_event(now) {
            any = true;
            tell(now, *id, event);
        }
        !channel.is_closed
    });
    any
}

/// Sleeps until a channel or one of the `others` is ready, or the time is over. Returns the ready
/// channels.
pub(super) fn wait<'a>(
    channels: &BTreeMap<ConnectionId, Channel>,
    others: impl IntoIterator<Item = BorrowedFd<'a>>,
    sleep: Option<Duration>,
) -> io::Result<Vec<ConnectionId>> {
    let (mut ids, mut fds) = (Vec::new(), Vec::new());
    for (id, channel) in channels {
        fds.extend(channel.interest());
        ids.resize(fds.len(), *id);
    }
    fds.extend(others.into_iter().map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
    let unseen = |(id, channel): (&ConnectionId, &Channel)| {
        channel.running().filter(|program| program.exit.is_none()).map(|_| *id)
    };
    let unseen: Vec<ConnectionId> = channels.iter().filter_map(unseen).collect();
    let sleep = if unseen.is_empty() { sleep } else { Some(sleep.unwrap_or(EXIT_LOOK).min(EXIT_LOOK)) };
    // A time that is too long to represent is no limit.
    let sleep = sleep.and_then(|sleep| Timespec::try_from(sleep).ok());
    match poll(&mut fds, sleep.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(e) => return Err(e.into()),
    }
    // A channel may occur twice, for reading and for writing. The second time there is nothing to
    // do.
    let ready = ids.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(id, _)| id);
    Ok(ready.chain(unseen).collect())
}

impl Connecting {
    /// Begins with the next possible address. `why` is the error if there is none.
    fn next(mut others: vec::IntoIter<SocketAddr>, mut why: Closed) -> Result<Self, Closed> {
        while let Some(address) = others.next() {
            match connect(address) {
                Ok(socket) => return Ok(Self { socket, address, others }),
                Err(e) => why = refused(e),
            }
        }
        Err(why)
    }

    /// Checks the result: a connection, the next address, or the end.
    fn finish(self) -> Result<Result<([OwnedFd; 2], Peer), Self>, Closed> {
        match net::sockopt::socket_error(&self.socket) {
            Ok(Ok(())) => match self.socket.try_clone() {
                Ok(reader) => Ok(Ok(([reader, self.socket], Peer::tcp(self.address)))),
                Err(e) => Err(Closed::Unreachable(e.to_string())),
            },
            Ok(Err(e)) | Err(e) => Self::next(self.others, refused(e)).map(Err),
        }
    }
}

/// Removes written bytes from the front.
fn advance(queue: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(bytes) = queue.front_mut() {
        let count = written.min(bytes.len());
        bytes.advance(count);
        written -= count;
        if !bytes.is_empty() {
            return;
        }
        queue.pop_front();
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

/// Returns why what was to be opened is not open.
fn not_opened(what: &dyn fmt::Display, e: &io::Error) -> Closed {
    match e.kind() {
        ErrorKind::ConnectionRefused => Closed::Refused,
        _ => Closed::Unreachable(format!("{what}: {e}")),
    }
}
