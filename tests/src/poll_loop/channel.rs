//! One channel: its descriptors and its program. This is all that the loop knows of the operating
//! system; when to read and to write, and when it has ended, `Transfer` knows.

use bytes::Bytes;
use mcp_driver::{ChildProcess, Step, Transfer, TransferOutput, not_opened};
use mcp_proto::Instant;
use mcp_proto::exchange::{Closed, ConnectionId, Endpoint, IoEvent, Peer, Reach};
use mcp_proto::process::Stderr;
use mcp_proto::wired::ConnectionOutput;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketType};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use std::vec;

/// Interval at which a program is checked if the system provides no descriptor for its exit.
const EXIT_LOOK: Duration = Duration::from_millis(5);

/// Maximum size of a read, in bytes.
const READ: usize = 64 << 10;

pub(super) struct Channel {
    transfer: Transfer,
    connecting: Option<Connecting>,
    reader: Option<File>,
    writer: Option<File>,
    program: Option<ChildProcess>,
    /// A descriptor for `poll` to wait for its exit.
    exit: Option<OwnedFd>,
}

/// A connection in progress, and the addresses to try if it fails.
struct Connecting {
    socket: OwnedFd,
    others: vec::IntoIter<SocketAddr>,
}

impl Channel {
    /// Begins to open it. `given` is the channel for [`Endpoint::Given`].
    pub(super) fn open(now: Instant, endpoint: &Endpoint, given: &mut Option<[OwnedFd; 2]>) -> Self {
        let mut channel = Self::new(Transfer::opening(endpoint));
        if let Err(why) = channel.begin(now, endpoint, given) {
            channel.transfer.not_opened(why);
        }
        channel
    }

    /// Creates an open channel of a pair of streams, from its reading and its writing end.
    pub(super) fn given(pair: [OwnedFd; 2]) -> io::Result<Self> {
        let mut channel = Self::new(Transfer::given());
        channel.set(pair)?;
        Ok(channel)
    }

    /// The same, for an accepted HTTP client.
    pub(super) fn accepted(pair: [OwnedFd; 2]) -> io::Result<Self> {
        let mut channel = Self::new(Transfer::accepted());
        channel.set(pair)?;
        Ok(channel)
    }

    fn new(transfer: Transfer) -> Self {
        Self { transfer, connecting: None, reader: None, writer: None, program: None, exit: None }
    }

    fn begin(&mut self, now: Instant, endpoint: &Endpoint, given: &mut Option<[OwnedFd; 2]>) -> Result<(), Closed> {
        match endpoint {
            Endpoint::Program(program) => {
                let started = ChildProcess::spawn(program, &Stderr::Inherit).and_then(|spawned| {
                    self.exit = spawned.process.exit_descriptor().ok();
                    self.program = Some(spawned.process);
                    self.set([spawned.stdout.into(), spawned.stdin.into()])
                });
                started.map_err(|e| not_opened(&program.command, &e))?;
            }
            Endpoint::Origin(origin) | Endpoint::Public(origin) => {
                let reach = if matches!(endpoint, Endpoint::Public(_)) { Reach::Public } else { Reach::Any };
                if origin.tls {
                    self.transfer.connector().prepare().map_err(Closed::Tls)?;
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
        self.transfer.opened(now, Peer::default(), false);
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
        self.transfer.act(now, output);
    }

    /// Returns the next event for the engine. `Closed` is the last.
    pub(super) fn poll_event(&mut self, now: Instant) -> Option<IoEvent> {
        loop {
            match self.transfer.poll_output(now)? {
                TransferOutput::Event(event) => return Some(event),
                TransferOutput::Signal(signal) => self.program.iter().for_each(|program| program.signal(signal)),
            }
        }
    }

    /// Returns when it may have an event even if nothing happens.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.transfer.poll_timeout()
    }

    /// Reads and writes what can be without waiting.
    pub(super) fn transfer(&mut self, now: Instant) {
        self.connect(now);
        self.write();
        self.read();
        if self.transfer.is_running()
            && let Some(status) = self.program.as_ref().and_then(ChildProcess::try_exited)
        {
            self.transfer.exited(now, status);
        }
    }

    fn connect(&mut self, now: Instant) {
        match self.connecting.take().map(Connecting::finish) {
            Some(Ok(Ok(pair))) => match self.set(pair) {
                Ok(()) => drop(self.transfer.opened(now, Peer::default(), false)),
                Err(e) => self.transfer.not_opened(Closed::Unreachable(e.to_string())),
            },
            Some(Ok(Err(next))) => self.connecting = Some(next),
            Some(Err(why)) => self.transfer.not_opened(why),
            None => {}
        }
    }

    fn write(&mut self) {
        while let (Some(writer), Some(step)) = (&mut self.writer, self.transfer.step()) {
            let wrote = match step {
                Step::Write(pieces) => writer.write_vectored(&pieces.slices()),
                Step::Flush => Ok(0),
                // Half-closes a socket. On a pipe this fails, and closing it next ends it.
                Step::End => net::shutdown(&*writer, net::Shutdown::Write).map(|()| 0).map_err(io::Error::from),
            };
            let waits = wrote.as_ref().is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
            self.transfer.wrote(wrote);
            if waits {
                break;
            }
        }
        self.writer.take_if(|_| !self.transfer.writes());
    }

    fn read(&mut self) {
        if self.transfer.wants_read()
            && let Some(reader) = &mut self.reader
        {
            let mut buffer = [0; READ];
            // A copy, since the engine may keep what it is given.
            let read = reader.read(&mut buffer).map(|count| Bytes::copy_from_slice(&buffer[..count]));
            self.transfer.read(read);
        }
        self.reader.take_if(|_| !self.transfer.reads());
    }

    /// What to wait for.
    fn interest(&self) -> impl Iterator<Item = PollFd<'_>> {
        let connecting = self.connecting.as_ref().map(|connecting| PollFd::new(&connecting.socket, PollFlags::OUT));
        let reader = self.reader.as_ref().filter(|_| self.transfer.wants_read());
        let writer = self.writer.as_ref().filter(|_| self.transfer.is_writing());
        let exit = self.exit.as_ref().filter(|_| self.transfer.is_running());
        let exit = exit.map(|exit| PollFd::new(exit, PollFlags::IN));
        let (reader, writer) = (
            reader.map(|reader| PollFd::new(reader, PollFlags::IN)),
            writer.map(|writer| PollFd::new(writer, PollFlags::OUT)),
        );
        connecting.into_iter().chain(exit).chain(reader).chain(writer)
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
        !channel.transfer.is_closed()
    });
    any
}

/// Sleeps until a channel or one of the `others` is ready, or the time is over. Returns the ready
/// channels.
pub(super) fn wait<'a>(
    channels: &mut BTreeMap<ConnectionId, Channel>,
    others: impl IntoIterator<Item = BorrowedFd<'a>>,
    sleep: Option<Duration>,
) -> io::Result<Vec<ConnectionId>> {
    // From here on a step is in progress if there is one.
    for channel in channels.values_mut() {
        channel.transfer.step();
    }
    let (mut ids, mut fds) = (Vec::new(), Vec::new());
    for (id, channel) in &*channels {
        fds.extend(channel.interest());
        ids.resize(fds.len(), *id);
    }
    fds.extend(others.into_iter().map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
    let unseen = |(id, channel): (&ConnectionId, &Channel)| {
        (channel.transfer.is_running() && channel.exit.is_none()).then_some(*id)
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
