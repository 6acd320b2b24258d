//! The bytes of one connection: a reader, a writer, and possibly a program. Client and server use
//! the same type. It holds no protocol state, and reports what happens as [`IoEvent`]s, one for
//! each [`poll_wire`](Channel::poll_wire).

use crate::process::Process;
use bytes::Bytes;
#[cfg(unix)]
use mcp_proto::adapter::not_opened;
use mcp_proto::adapter::{Step, WriteQueue};
use mcp_proto::exchange::IoEvent;
use mcp_proto::exchange::{Closed, Endpoint, Peer, Shutdown};
use smol::future::Future;
use smol::io::{AsyncRead, AsyncWrite};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The reading half.
pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// The writing half.
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;
/// A connection that is being opened.
pub(crate) type Opening = Pin<Box<dyn Future<Output = Result<Link, Closed>> + Send>>;

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

/// The bytes of one connection, from its opening to its last event.
pub(crate) struct Channel {
    opening: Option<Opening>,
    reader: Option<Reader>,
    writer: Option<Writer>,
    process: Option<Process>,
    queue: WriteQueue,
    /// The write step in progress.
    step: Option<Step>,
    aborted: bool,
    /// A write has failed: the peer accepts nothing more.
    refused: bool,
    /// Whether the engine accepts input.
    reads: bool,
    closed: bool,
    buffer: Vec<u8>,
}

impl Channel {
    /// Creates a connection that opens when it is polled.
    pub(crate) fn open(opening: Opening) -> Self {
        Self {
            opening: Some(opening),
            reader: None,
            writer: None,
            process: None,
            queue: WriteQueue::default(),
            step: None,
            aborted: false,
            refused: false,
            reads: true,
            closed: false,
            buffer: Vec::new(),
        }
    }

    /// Creates a connection that is already open and does not report it.
    pub(crate) fn opened(reader: Reader, writer: Writer) -> Self {
        let mut channel = Self::open(Box::pin(smol::future::pending()));
        channel.opening = None;
        (channel.reader, channel.writer) = (Some(reader), Some(writer));
        channel
    }

    /// Queues bytes. Drops them if the peer reads no more, which the end of the connection reports.
    pub(crate) fn write(&mut self, bytes: Bytes) {
        self.queue.push(bytes);
    }

    /// Returns whether a write has failed. There may still be bytes to read.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Stops reading, or reads again.
    pub(crate) fn set_reading(&mut self, reads: bool) {
        self.reads = reads;
    }

    /// Ends the channel in this way.
    pub(crate) fn close(&mut self, how: Shutdown) {
        match how {
            Shutdown::WriteHalf => self.queue.finish(),
            Shutdown::Terminate => {
                if let Some(process) = &mut self.process {
                    process.terminate();
                }
            }
            Shutdown::Abort => {
                self.aborted = true;
                (self.opening, self.reader) = (None, None);
                self.stop_writing();
                if let Some(process) = &mut self.process {
                    process.kill();
                }
            }
        }
    }

    /// Polls for the next event of the channel. Reads only if `may_read`, and if the engine accepts
    /// input. Pending forever after [`IoEvent::Closed`].
    pub(crate) fn poll_wire(&mut self, cx: &mut Context<'_>, may_read: bool) -> Poll<IoEvent> {
        if self.closed {
            return Poll::Pending;
        }
        if let Some(opening) = &mut self.opening {
            let opened = ready!(opening.as_mut().poll(cx));
            self.opening = None;
            return Poll::Ready(match opened {
                Ok(link) => {
                    (self.reader, self.writer, self.process) = (Some(link.reader), Some(link.writer), link.process);
                    IoEvent::Opened(link.peer)
                }
                Err(why) => self.end(why),
            });
        }
        if let Poll::Ready(n) = self.poll_write(cx) {
            return Poll::Ready(IoEvent::Written(n));
        }
        let exited = self.process.as_mut().is_some_and(|process| process.poll_exited(cx));
        if may_read
            && self.reads
            && let Poll::Ready(wire) = self.poll_read(cx)
        {
            return Poll::Ready(wire);
        }
        let over = match &mut self.process {
            Some(process) if exited && self.reader.is_none() && process.is_silent() => true,
            Some(process) => (exited || self.aborted) && process.poll_patience(cx),
            None => self.aborted || (self.reader.is_none() && self.writer.is_none()),
        };
        if !over {
            return Poll::Pending;
        }
        let why = match self.process.take().and_then(Process::reap) {
            Some(status) => Closed::Exited(status),
            None if self.aborted => Closed::Aborted,
            None => Closed::Eof,
        };
        Poll::Ready(self.end(why))
    }

    fn end(&mut self, why: Closed) -> IoEvent {
        self.closed = true;
        self.reader = None;
        self.stop_writing();
        IoEvent::Closed(why)
    }

    fn stop_writing(&mut self) {
        (self.writer, self.step) = (None, None);
        self.queue.end();
    }

    /// Writes queued bytes. Ready when some were accepted. A failed write ends only the writing
    /// side: bytes that the peer sent before it closed may still arrive.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        while let Some(writer) = &mut self.writer {
            let writer = Pin::new(writer);
            if self.step.is_none() {
                self.step = self.queue.next_step();
            }
            match &mut self.step {
                None => break,
                Some(Step::Write(pieces)) => {
                    if let Ok(n @ 1..) = ready!(writer.poll_write_vectored(cx, &pieces.slices())) {
                        pieces.advance(n);
                        self.step.take_if(|step| matches!(step, Step::Write(pieces) if pieces.is_empty()));
                        return Poll::Ready(n);
                    }
                    self.refused = true;
                    self.stop_writing();
                }
                Some(Step::Flush) => match ready!(writer.poll_flush(cx)) {
                    Ok(()) => self.step = None,
                    Err(_) => {
                        self.refused = true;
                        self.stop_writing();
                    }
                },
                Some(Step::End) => {
                    // An error while closing does not matter.
                    let _ = ready!(writer.poll_close(cx));
                    self.stop_writing();
                }
            }
        }
        Poll::Pending
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<IoEvent> {
        let Some(reader) = &mut self.reader else { return Poll::Pending };
        if self.buffer.is_empty() {
            self.buffer.resize(READ, 0);
        }
        let read = ready!(Pin::new(reader).poll_read(cx, &mut self.buffer));
        Poll::Ready(match read {
            Ok(0) => {
                self.reader = None;
                IoEvent::ReadClosed
            }
            Ok(n) => {
                let bytes = Bytes::copy_from_slice(&self.buffer[..n]);
                if n == self.buffer.len() && n < MOST {
                    self.buffer.resize(4 * n, 0);
                }
                IoEvent::Read(bytes)
            }
            // A program has one more event, its exit status.
            Err(_) if self.process.is_some() => {
                self.reader = None;
                IoEvent::ReadClosed
            }
            Err(_) => self.end(Closed::Reset),
        })
    }
}

/// Begins to open a connection to `endpoint`, within `limit`. `given` is the connection that the
/// driver already has.
pub(crate) fn open(
    endpoint: Endpoint,
    limit: Duration,
    given: &mut Option<(Reader, Writer)>,
    stderr: &crate::Stderr,
) -> Opening {
    match endpoint {
        // Started here and not in the future, so that a started program always has an owner.
        Endpoint::Program(program) => {
            let link = Process::spawn(&program, stderr);
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
