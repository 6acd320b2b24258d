//! The I/O of one connection: a reader, a writer, and possibly a program. Client and server use the
//! same type. It decides nothing: [`DrivenConnection`] does.

use crate::clock::Alarm;
use crate::jobs::Jobs;
use crate::pace::Pace;
use crate::process::Process;
use crate::stream::{Reader, Stream, Writer};
use bytes::Bytes;
use mcp_driver::Clock;
#[cfg(unix)]
use mcp_driver::not_opened;
use mcp_driver::{DrivenConnection, Step, TurnResult};
use mcp_proto::exchange::{Closed, Endpoint, Peer, Reach};
use smol::future::Future;
use smol::io::{AsyncRead, AsyncWrite};
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

/// A connection that is being opened.
type OpeningFuture = Pin<Box<dyn Future<Output = Result<OpenStream, Closed>> + Send>>;

/// Maximum size of a read, in bytes: the capacity of a Linux pipe.
const MOST: usize = 64 << 10;

thread_local! {
    /// What this thread reads into, empty before its first read. Bytes are copied out at once: a
    /// buffer of its own would be most of what an idle connection holds.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An open connection.
pub(crate) struct OpenStream {
    pub(crate) stream: Stream,
    pub(crate) process: Option<Process>,
    pub(crate) peer: Peer,
}

/// One connection, from its opening to its end. Dropping it kills its program.
pub(crate) struct Transport {
    opening: Option<OpeningFuture>,
    reader: Option<Reader>,
    writer: Option<Writer>,
    /// Dropped before the connection, so that the program has ended when the client learns of it.
    process: Option<Box<Process>>,
    connection: DrivenConnection,
    jobs: Option<Jobs>,
    alarm: Alarm,
    pace: Pace,
}

/// What has happened to a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionChange {
    Read,
    Wrote,
    Other,
    /// The next turn is slow: see [`Transport::take_turn`].
    Long,
}

impl Transport {
    /// Opens a connection, within `limit`, when it is polled. `given` is what the application has
    /// provided.
    pub(crate) fn open(
        mut connection: DrivenConnection,
        endpoint: Endpoint,
        limit: Duration,
        given: &mut Option<Stream>,
    ) -> Self {
        let opening = open(endpoint, limit, given, &mut connection);
        Self { opening: Some(opening), ..Self::new(connection) }
    }

    /// Serves an open connection. The callbacks that it causes run with `jobs`.
    pub(crate) fn accepted(connection: DrivenConnection, stream: Stream, jobs: Jobs) -> Self {
        let (reader, writer) = (Some(stream.reader), Some(stream.writer));
        Self { reader, writer, jobs: Some(jobs), ..Self::new(connection) }
    }

    fn new(connection: DrivenConnection) -> Self {
        let (opening, reader, writer, process) = (None, None, None, None);
        Self { opening, reader, writer, process, connection, jobs: None, alarm: Alarm::new(), pace: Pace::new() }
    }

    /// Kills the program at once.
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    /// Returns whether the connection has closed.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.connection.transfer().is_closed()
    }

    /// Takes turns until the engine has nothing left, and runs the callbacks that they cause. Stops
    /// before a slow one, which the next call takes.
    pub(crate) fn take_turn(&mut self, waker: &Waker) -> TurnResult {
        loop {
            let turned = self.connection.turn(waker);
            let mut has_run = false;
            while let Some(jobs) = &self.jobs
                && let Some(task) = self.connection.next_task()
            {
                jobs.run(task);
                has_run = true;
            }
            match turned {
                // Most callbacks complete at once.
                TurnResult::Done if has_run => {}
                TurnResult::Signal(signal) => self.process.iter().for_each(|process| process.signal(signal)),
                turned => return turned,
            }
        }
    }

    /// Takes turns, then opens, writes, reads or waits. Reads only if `may_read`, and if the engine
    /// accepts input. Pending forever once it has closed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, may_read: bool) -> Poll<ConnectionChange> {
        let clock = self.connection.clock();
        if self.take_turn(cx.waker()) == TurnResult::Long {
            return Poll::Ready(ConnectionChange::Long);
        }
        if let Some(opening) = &mut self.opening {
            let opened = ready!(opening.as_mut().poll(cx));
            self.opening = None;
            match opened {
                Ok(opened) => self.opened(opened, clock),
                Err(why) => self.connection.transfer().not_opened(why),
            }
            return Poll::Ready(ConnectionChange::Other);
        }
        let transfer = self.connection.transfer();
        self.reader.take_if(|_| !transfer.reads());
        self.writer.take_if(|_| !transfer.writes());
        loop {
            let flushes = matches!(self.connection.transfer().step(), Some(Step::Flush));
            let Poll::Ready(wrote) = self.poll_write(cx) else { break };
            let is_flushed = flushes && wrote.is_ok();
            if matches!(wrote, Ok(1..)) {
                self.pace.wrote();
            }
            self.connection.transfer().wrote(wrote);
            if !is_flushed {
                return Poll::Ready(ConnectionChange::Wrote);
            }
        }
        if let Some(process) = &mut self.process {
            process.poll_stderr(cx, self.connection.transfer());
            if let Poll::Ready(status) = process.poll_exited(cx) {
                self.connection.transfer().exited(clock.now(), status);
                return Poll::Ready(ConnectionChange::Other);
            }
        }
        if self.connection.wants_read()
            && self.reader.as_ref().is_some_and(|reader| self.pace.is_due(reader, cx.waker()))
            && may_read
            && let Poll::Ready(read) = self.poll_read()
        {
            self.connection.transfer().read(read);
            return Poll::Ready(ConnectionChange::Read);
        }
        match self.alarm.poll(cx, clock, self.connection.poll_timeout()) {
            true => Poll::Ready(ConnectionChange::Other),
            false => Poll::Pending,
        }
    }

    fn opened(&mut self, opened: OpenStream, clock: Clock) {
        let OpenStream { stream, process, peer } = opened;
        let stderr = process.as_ref().is_some_and(Process::reads_stderr);
        (self.reader, self.writer) = (Some(stream.reader), Some(stream.writer));
        self.process = process.map(Box::new);
        self.connection.transfer().opened(clock.now(), peer, stderr);
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let (Some(writer), Some(step)) = (&mut self.writer, self.connection.transfer().step()) else {
            return Poll::Pending;
        };
        let writer = Pin::new(writer);
        match step {
            Step::Write(pieces) => writer.poll_write_vectored(cx, &pieces.slices()),
            Step::Flush => writer.poll_flush(cx).map_ok(|()| 0),
            Step::End => writer.poll_close(cx).map_ok(|()| 0),
        }
    }

    fn poll_read(&mut self) -> Poll<io::Result<Bytes>> {
        let Some(reader) = &mut self.reader else { return Poll::Pending };
        // Taken, since the stream of an application may run code that reads something else.
        let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
        buffer.resize(MOST, 0);
        let bell = self.pace.bell();
        let read = Pin::new(&mut reader.stream).poll_read(&mut Context::from_waker(&bell), &mut buffer);
        match &read {
            Poll::Ready(Ok(n)) => self.pace.read(*n < MOST),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.pace.blocked(),
        }
        let read = read.map_ok(|n| Bytes::copy_from_slice(&buffer[..n]));
        // Fails while the thread ends.
        let _ = BUFFER.try_with(|kept| kept.set(buffer));
        read
    }

    /// Returns whether something may be left to read: nothing wakes the task for it.
    pub(crate) fn may_have_more(&self) -> bool {
        self.reader.is_some() && self.pace.may_have_more()
    }
}

fn open(
    endpoint: Endpoint,
    limit: Duration,
    given: &mut Option<Stream>,
    connection: &mut DrivenConnection,
) -> OpeningFuture {
    let ready = |opened| Box::pin(std::future::ready(opened));
    match endpoint {
        // Started here and not in the future, so that a started program always has an owner.
        Endpoint::Program(program) => ready(Process::spawn(&program, &connection.stderr())),
        Endpoint::Origin(origin) => {
            Box::pin(crate::dial::connect(origin, Reach::Any, limit, connection.transfer().connector()))
        }
        Endpoint::Within(origin, reach) => {
            Box::pin(crate::dial::connect(origin, reach, limit, connection.transfer().connector()))
        }
        #[cfg(unix)]
        Endpoint::Unix(path) => Box::pin(connect_unix(path)),
        Endpoint::Given => ready(match given.take() {
            Some(stream) => Ok(OpenStream { stream, process: None, peer: Peer::default() }),
            None => Err(Closed::Unreachable("the channel was given once and is used up".into())),
        }),
        _ => ready(Err(Closed::Unreachable("this build cannot open such a channel".into()))),
    }
}

#[cfg(unix)]
async fn connect_unix(path: String) -> Result<OpenStream, Closed> {
    let stream = smol::net::unix::UnixStream::connect(&path).await.map_err(|e| not_opened(&path, &e))?;
    let peer = Peer::unix(None).named(path);
    Ok(OpenStream { stream: stream.into(), process: None, peer })
}
