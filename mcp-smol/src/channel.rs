//! The I/O of one connection: a reader, a writer, and possibly a program. Client and server use the
//! same type. It decides nothing: [`Transfer`] does.

use crate::clock::{Alarm, Clock};
use crate::ends::{Reader, Writer};
use crate::process::Process;
use bytes::Bytes;
#[cfg(unix)]
use mcp_proto::adapter::not_opened;
use mcp_proto::adapter::{Step, Transfer, TransferOutput};
use mcp_proto::exchange::{Closed, Endpoint, IoEvent, Peer};
use mcp_proto::wired::ConnectionOutput;
use smol::future::Future;
use smol::io::{AsyncRead, AsyncWrite};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A connection that is being opened.
type Opening = Pin<Box<dyn Future<Output = Result<Link, Closed>> + Send>>;

/// Size of the first read, and of all reads if there is never more to read, in bytes.
const READ: usize = 4 << 10;
/// Maximum size of a read, in bytes: the capacity of a Linux pipe.
const MOST: usize = 64 << 10;

/// The parts of an open connection.
pub(crate) struct Link {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) process: Option<Process>,
    pub(crate) peer: Peer,
}

/// One connection, from its opening to its last event.
pub(crate) struct Channel {
    transfer: Transfer,
    opening: Option<Opening>,
    reader: Option<Reader>,
    writer: Option<Writer>,
    process: Option<Process>,
    alarm: Alarm,
    buffer: Vec<u8>,
}

impl Channel {
    /// Creates a connection to `endpoint` that opens, within `limit`, when it is polled. `given` is
    /// the pair of streams that the driver already has.
    pub(crate) fn open(
        endpoint: Endpoint,
        limit: Duration,
        given: &mut Option<(Reader, Writer)>,
        stderr: &crate::Stderr,
    ) -> Self {
        let mut channel = Self::new(Transfer::opening(&endpoint));
        channel.opening = Some(open(endpoint, limit, given, stderr));
        channel
    }

    /// Creates a connection that is already open and does not report it.
    pub(crate) fn opened(transfer: Transfer, (reader, writer): (Reader, Writer)) -> Self {
        let mut channel = Self::new(transfer);
        (channel.reader, channel.writer) = (Some(reader), Some(writer));
        channel
    }

    fn new(transfer: Transfer) -> Self {
        let (opening, reader, writer, process) = (None, None, None, None);
        Self { transfer, opening, reader, writer, process, alarm: Alarm::new(), buffer: Vec::new() }
    }

    /// Carries out an output of the engine.
    pub(crate) fn act(&mut self, clock: Clock, output: ConnectionOutput) {
        self.transfer.act(clock.now(), output);
    }

    /// Polls for the next event of the connection. Reads only if `may_read`, and if the engine
    /// accepts input. Pending forever after [`IoEvent::Closed`].
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>, clock: Clock, may_read: bool) -> Poll<IoEvent> {
        loop {
            match self.transfer.poll_output(clock.now()) {
                Some(TransferOutput::Signal(signal)) => self.process.iter().for_each(|process| process.signal(signal)),
                Some(TransferOutput::Event(event)) => {
                    self.release();
                    return Poll::Ready(event);
                }
                None if self.poll_system(cx, clock, may_read) => {}
                None => return Poll::Pending,
            }
        }
    }

    /// Opens, writes, reads and waits. Returns whether anything happened.
    fn poll_system(&mut self, cx: &mut Context<'_>, clock: Clock, may_read: bool) -> bool {
        if let Some(opening) = &mut self.opening {
            let Poll::Ready(opened) = opening.as_mut().poll(cx) else { return false };
            self.opening = None;
            match opened {
                Ok(link) => self.link(link, clock),
                Err(why) => self.transfer.not_opened(why),
            }
            return true;
        }
        self.release();
        if let Poll::Ready(wrote) = self.poll_write(cx) {
            self.transfer.wrote(wrote);
            return true;
        }
        if let Some(process) = &mut self.process {
            process.poll_stderr(cx, &mut self.transfer);
            if let Poll::Ready(status) = process.poll_exited(cx) {
                self.transfer.exited(clock.now(), status);
                return true;
            }
        }
        if may_read
            && self.transfer.wants_read()
            && let Poll::Ready(read) = self.poll_read(cx)
        {
            self.transfer.read(read);
            return true;
        }
        self.alarm.poll(cx, clock, self.transfer.poll_timeout())
    }

    fn link(&mut self, link: Link, clock: Clock) {
        let stderr = link.process.as_ref().is_some_and(Process::reads_stderr);
        (self.reader, self.writer, self.process) = (Some(link.reader), Some(link.writer), link.process);
        self.transfer.opened(clock.now(), link.peer, stderr);
    }

    /// Drops what is not needed any more.
    fn release(&mut self) {
        self.reader.take_if(|_| !self.transfer.reads());
        self.writer.take_if(|_| !self.transfer.writes());
        if self.transfer.is_closed() {
            (self.opening, self.process) = (None, None);
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let (Some(writer), Some(step)) = (&mut self.writer, self.transfer.step()) else { return Poll::Pending };
        let writer = Pin::new(writer);
        match step {
            Step::Write(pieces) => writer.poll_write_vectored(cx, &pieces.slices()),
            Step::Flush => writer.poll_flush(cx).map_ok(|()| 0),
            Step::End => writer.poll_close(cx).map_ok(|()| 0),
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let Some(reader) = &mut self.reader else { return Poll::Pending };
        if self.buffer.is_empty() {
            self.buffer.resize(READ, 0);
        }
        let n = ready!(Pin::new(reader).poll_read(cx, &mut self.buffer))?;
        let bytes = Bytes::copy_from_slice(&self.buffer[..n]);
        if n == self.buffer.len() && n < MOST {
            self.buffer.resize(4 * n, 0);
        }
        Poll::Ready(Ok(bytes))
    }
}

fn open(endpoint: Endpoint, limit: Duration, given: &mut Option<(Reader, Writer)>, stderr: &crate::Stderr) -> Opening {
    match endpoint {
        // Started here and not in the future, so that a started program always has an owner.
        Endpoint::Program(program) => {
            let peer = Peer::default().named(&program.command);
            let started = Process::spawn(&program, stderr);
            let link = started.map(|(process, reader, writer)| Link { reader, writer, process: Some(process), peer });
            Box::pin(std::future::ready(link))
        }
        Endpoint::Origin(origin) => Box::pin(crate::dial::connect(origin, limit)),
        #[cfg(unix)]
        Endpoint::Unix(path) => Box::pin(connect_unix(path)),
        #[cfg(not(unix))]
        Endpoint::Unix(path) => {
            Box::pin(std::future::ready(Err(Closed::Unreachable(format!("{path}: this system has no Unix sockets")))))
        }
        Endpoint::Given => {
            let link = match given.take() {
                Some((reader, writer)) => Ok(Link { reader, writer, process: None, peer: Peer::default() }),
                None => Err(Closed::Unreachable("the channel was given once and is used up".into())),
            };
            Box::pin(std::future::ready(link))
        }
    }
}

#[cfg(unix)]
async fn connect_unix(path: String) -> Result<Link, Closed> {
    let stream = smol::net::unix::UnixStream::connect(&path).await.map_err(|e| not_opened(&path, &e))?;
    let peer = Peer::unix(None).named(path);
    Ok(Link { reader: Box::new(stream.clone()), writer: Box::new(stream), process: None, peer })
}
