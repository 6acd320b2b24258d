//! One connection as its driver sees it: what to read and to write next, which signals to send to
//! a program, and when the connection has closed. No stream, no clock.

use super::ending::{Ending, Signal};
use super::queue::{Step, WriteQueue};
use super::stderr::StderrTail;
use super::tls::{Tls, TlsConnector, TlsOutput};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use bytes::Bytes;
use mcp_proto::exchange::{Closed, Endpoint, ExitStatus, IoEvent, Peer, Shutdown, TlsFailure};
use mcp_proto::time::Instant;
use mcp_proto::wired::{ConnectionOutput, HandshakeReservation};
use secured::SecuredTransfer;
use std::io::{self, ErrorKind};

mod secured;

/// The transfer of one connection, from its opening to its last event.
///
/// The outputs of the engine go in with [`act`](Self::act), and the results of the operating system
/// with [`read`](Self::read), [`wrote`](Self::wrote), [`stderr`](Self::stderr) and
/// [`exited`](Self::exited). After either, carry out what [`poll_output`](Self::poll_output)
/// returns. In between, read if [`wants_read`](Self::wants_read), and write what
/// [`step`](Self::step) or [`take_step`](Self::take_step) returns.
///
/// ```
/// # use mcp_proto::Instant;
/// # use mcp_driver::{Step, Transfer, TransferOutput};
/// # use mcp_proto::exchange::{Closed, IoEvent, Shutdown};
/// # use mcp_proto::wired::ConnectionOutput;
/// let now = Instant::from_millis(0);
/// let mut transfer = Transfer::accepted();
/// transfer.act(now, ConnectionOutput::Write("hello".into()));
/// transfer.act(now, ConnectionOutput::Close(Shutdown::WriteHalf));
/// let Some(Step::Write(pieces)) = transfer.step() else { panic!("nothing to write") };
/// assert_eq!(&*pieces.slices()[0], b"hello");
/// transfer.wrote(Ok(5)); // the system took all of it
/// assert!(matches!(transfer.step(), Some(Step::Flush)));
/// transfer.wrote(Ok(0));
/// assert!(matches!(transfer.step(), Some(Step::End)));
/// transfer.wrote(Ok(0));
/// transfer.read(Ok("bye".into()));
/// transfer.read(Ok("".into())); // the peer has ended
/// let events: Vec<_> = std::iter::from_fn(|| transfer.poll_output(now)).collect();
/// assert_eq!(events, [
///     IoEvent::Written(5),
///     IoEvent::Read("bye".into()),
///     IoEvent::ReadClosed,
///     IoEvent::Closed(Closed::Eof),
/// ].map(TransferOutput::Event));
/// ```
#[derive(Debug)]
pub struct Transfer {
    phase: TransferPhase,
    queue: WriteQueue,
    /// The step that [`step`](Self::step) returned.
    step: Option<Step>,
    writer: WriteState,
    /// Whether the engine accepts input.
    reads: bool,
    tail: StderrTail,
    outputs: VecDeque<TransferOutput>,
    connector: Option<TlsConnector>,
    tls: Option<Box<SecuredTransfer>>,
}

/// The life of a connection.
#[derive(Debug)]
enum TransferPhase {
    /// The driver opens it. A program that is aborted meanwhile ends once it has started.
    Opening {
        program: bool,
        aborted: bool,
    },
    Open(Ending),
    /// It could not be opened, or was aborted before.
    NotOpened(Closed),
    /// `Closed` was taken.
    Over,
}

/// The step in progress.
#[derive(Clone, Copy, PartialEq, Debug)]
enum WriteState {
    Waits,
    Writes,
    Flushes,
    Ends,
}

/// What a driver does next with a connection, in order.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub enum TransferOutput {
    /// Report this to the engine. [`IoEvent::Closed`] is the last output: release everything then.
    Event(IoEvent),
    /// Send this to the program.
    Signal(Signal),
}

impl Transfer {
    /// Returns the transfer of a connection that the driver opens to this endpoint. Report the
    /// result with [`opened`](Self::opened) or [`not_opened`](Self::not_opened).
    pub fn opening(endpoint: &Endpoint) -> Self {
        Self::new(TransferPhase::Opening { program: matches!(endpoint, Endpoint::Program(_)), aborted: false })
    }

    /// Returns the transfer of a socket that the driver accepted, which is open.
    pub fn accepted() -> Self {
        Self::new(TransferPhase::Open(Ending::accepted()))
    }

    /// Sets how a client begins TLS, if the engine asks for it. Default: as [`TlsConnector`]
    /// has it.
    #[must_use]
    pub fn with_connector(mut self, connector: TlsConnector) -> Self {
        self.connector = Some(connector);
        self
    }

    /// Returns how a client begins TLS.
    pub fn connector(&self) -> TlsConnector {
        self.connector.clone().unwrap_or_default()
    }

    /// Begins TLS on a socket that the driver accepted, before anything is read or written. The
    /// engine hears nothing of it. With an error, the connection closes.
    pub fn accept_tls(&mut self, tls: Result<Tls, TlsFailure>) {
        match tls {
            Ok(tls) => self.begin_tls(tls, false),
            Err(why) => self.fail(Closed::Tls(why)),
        }
    }

    /// Keeps the memory that a server has reserved for the handshake of
    /// [`accept_tls`](Self::accept_tls), until it is complete or the transfer is dropped.
    pub fn reserve_handshake(&mut self, memory: HandshakeReservation) {
        if let Some(tls) = &mut self.tls {
            tls.handshake = Some(memory);
        }
    }

    /// Returns the transfer of a pair of streams of a server, which are open: standard input and
    /// output.
    pub fn given() -> Self {
        Self::new(TransferPhase::Open(Ending::opened()))
    }

    fn new(phase: TransferPhase) -> Self {
        Self {
            phase,
            queue: WriteQueue::default(),
            step: None,
            writer: WriteState::Waits,
            reads: true,
            tail: StderrTail::default(),
            outputs: VecDeque::new(),
            connector: None,
            tls: None,
        }
    }

    /// Reports that the connection is open. `stderr` tells whether the driver reads the standard
    /// error of a program. Returns whether the connection is still wanted: if not, drop what was
    /// opened, unless it is a program, for which [`poll_output`](Self::poll_output) has a signal.
    pub fn opened(&mut self, now: Instant, peer: Peer, stderr: bool) -> bool {
        let TransferPhase::Opening { program, aborted } = self.phase else { return false };
        let ending = if program { Ending::program(stderr) } else { Ending::opened() };
        self.phase = TransferPhase::Open(ending);
        if aborted {
            self.abort(now);
        } else {
            self.report(TransferOutput::Event(IoEvent::Opened(peer)));
        }
        !aborted
    }

    /// Reports that the connection could not be opened.
    pub fn not_opened(&mut self, why: Closed) {
        if let TransferPhase::Opening { .. } = self.phase {
            self.phase = TransferPhase::NotOpened(why);
        }
    }

    /// Carries out an output of the engine for this connection.
    pub fn act(&mut self, now: Instant, output: ConnectionOutput) {
        match output {
            ConnectionOutput::Secure(name) => self.secure(&name),
            ConnectionOutput::Write(bytes) => self.write(bytes),
            ConnectionOutput::Read(reads) => self.reads = reads,
            ConnectionOutput::Close(Shutdown::WriteHalf) => self.finish(),
            ConnectionOutput::Close(Shutdown::Terminate) => {
                if self.is_running() {
                    self.report(TransferOutput::Signal(Signal::Terminate));
                }
            }
            ConnectionOutput::Close(Shutdown::Abort) => self.abort(now),
        }
    }

    /// Reports the result of a read. Empty bytes are the end. Ignores errors after which the read
    /// is repeated: `WouldBlock` and `Interrupted`.
    pub fn read(&mut self, read: io::Result<Bytes>) {
        if !self.reads() {
            return;
        }
        let read = match read {
            Ok(bytes) if self.tls.is_some() => return self.read_tls(&bytes),
            read => read,
        };
        let Some(ending) = self.ending() else { return };
        let event = match read {
            Ok(bytes) if bytes.is_empty() => {
                ending.read_ended();
                IoEvent::ReadClosed
            }
            Ok(bytes) => IoEvent::Read(bytes),
            Err(e) if is_repeated(&e) => return,
            Err(_) if ending.read_failed() => IoEvent::ReadClosed,
            Err(_) => return self.stop_writing(),
        };
        self.report(TransferOutput::Event(event));
    }

    /// Reports the result of the step in progress: of a write, the number of bytes that were
    /// accepted, of any other step `Ok(0)`. The next [`step`](Self::step) begins behind them.
    /// Ignores errors after which the step is repeated: `WouldBlock` and `Interrupted`.
    pub fn wrote(&mut self, wrote: io::Result<usize>) {
        let writer = self.writer;
        let Some(ending) = self.ending() else { return };
        match (wrote, writer) {
            (_, WriteState::Waits) => {}
            (Err(e), _) if is_repeated(&e) => {}
            // An error while closing does not matter.
            (_, WriteState::Ends) => {
                ending.write_ended();
                self.stop_writing();
            }
            (Ok(0), WriteState::Writes) | (Err(_), WriteState::Writes | WriteState::Flushes) => {
                ending.write_failed();
                self.stop_writing();
            }
            (Ok(_), WriteState::Flushes) => self.writer = WriteState::Waits,
            (Ok(n), WriteState::Writes) => {
                self.written(n);
                if let Some(Step::Write(pieces)) = &mut self.step {
                    pieces.advance(n);
                    if pieces.is_empty() {
                        (self.step, self.writer) = (None, WriteState::Waits);
                    }
                }
            }
        }
    }

    /// Reports bytes of the standard error of a program. Empty bytes, and an error, are its end.
    /// The last bytes become a part of the exit status.
    pub fn stderr(&mut self, read: io::Result<&[u8]>) {
        match read {
            Err(e) if is_repeated(&e) => {}
            Ok(bytes) if !bytes.is_empty() => self.tail.push(bytes),
            Ok(_) | Err(_) => {
                if let Some(ending) = self.ending() {
                    ending.stderr_ended();
                }
            }
        }
    }

    /// Reports the exit of the program. Do not reap it before [`Signal::KillGroup`], if the system
    /// allows that.
    pub fn exited(&mut self, now: Instant, status: ExitStatus) {
        if let Some(ending) = self.ending() {
            ending.exited(now, status);
        }
    }

    /// Returns whether to read.
    pub fn wants_read(&self) -> bool {
        self.reads && self.reads()
    }

    /// Returns whether there is something to read, even if the engine accepts no input for now.
    pub fn reads(&self) -> bool {
        matches!(&self.phase, TransferPhase::Open(ending) if ending.reads())
    }

    /// Returns whether the peer may still accept bytes. If not, drop the writing half.
    pub fn writes(&self) -> bool {
        matches!(&self.phase, TransferPhase::Open(ending) if ending.writes())
    }

    /// Returns whether the driver opens it.
    pub fn is_opening(&self) -> bool {
        matches!(self.phase, TransferPhase::Opening { .. })
    }

    /// Returns whether to wait for the exit of a program.
    pub fn is_running(&self) -> bool {
        matches!(&self.phase, TransferPhase::Open(ending) if ending.is_running())
    }

    /// Returns the next step of the writer, for a driver that writes where it keeps this value. The
    /// same one, less what was written, until it is complete.
    pub fn step(&mut self) -> Option<&Step> {
        if self.writer == WriteState::Waits {
            self.step = self.take_step();
        }
        self.step.as_ref().filter(|_| self.writer != WriteState::Waits)
    }

    /// Returns the next step of the writer, for a driver that writes elsewhere. The one before is
    /// complete: report each write of it with [`wrote`](Self::wrote), also a partial one, and call
    /// this again once its [`Pieces`](super::Pieces) are empty. `None` if there is none for now:
    /// call it again after any change.
    ///
    /// A driver may do both, with [`step`](Self::step) what does not wait, and the rest elsewhere:
    /// of a step that [`step`](Self::step) has begun, this returns what is left. Until it is
    /// complete, [`step`](Self::step) returns nothing.
    pub fn take_step(&mut self) -> Option<Step> {
        if self.writer != WriteState::Waits
            && let Some(rest) = self.step.take()
        {
            return Some(rest);
        }
        self.writer = WriteState::Waits;
        if !self.writes() {
            return None;
        }
        let step = self.queue.next_step();
        self.writer = match step {
            Some(Step::Write(_)) => WriteState::Writes,
            Some(Step::Flush) => WriteState::Flushes,
            Some(Step::End) => WriteState::Ends,
            None => WriteState::Waits,
        };
        step
    }

    /// Returns whether a step is in progress: wait until the stream accepts more.
    pub fn is_writing(&self) -> bool {
        self.writer != WriteState::Waits
    }

    /// Returns whether the writer waits although there is a step, or nothing more is to be written:
    /// it has to be woken.
    pub fn has_waiting_step(&self) -> bool {
        self.queue.has_waiting_step()
    }

    /// Returns the next output. `None` if there is none for now, and forever after
    /// [`IoEvent::Closed`].
    pub fn poll_output(&mut self, now: Instant) -> Option<TransferOutput> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        let why = match &self.phase {
            TransferPhase::Opening { program: false, aborted: true } => Closed::Aborted,
            TransferPhase::Opening { .. } | TransferPhase::Over => return None,
            TransferPhase::NotOpened(why) => why.clone(),
            TransferPhase::Open(ending) => ending.closed(now)?,
        };
        self.phase = TransferPhase::Over;
        self.stop_writing();
        let why = match why {
            Closed::Exited(status) => {
                let closed = IoEvent::Closed(Closed::Exited(status.with_stderr(self.tail.text())));
                self.report(TransferOutput::Event(closed));
                return Some(TransferOutput::Signal(Signal::KillGroup));
            }
            why => why,
        };
        Some(TransferOutput::Event(IoEvent::Closed(why)))
    }

    /// Returns when to call [`poll_output`](Self::poll_output), even if nothing happens: the rest
    /// of the output of a program is not waited for any longer.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.phase {
            TransferPhase::Open(ending) => ending.poll_timeout(),
            TransferPhase::Opening { .. } | TransferPhase::NotOpened(_) | TransferPhase::Over => None,
        }
    }

    /// Returns whether [`IoEvent::Closed`] was taken.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, TransferPhase::Over) && self.outputs.is_empty()
    }

    /// Begins TLS as the engine of a client asks for it.
    fn secure(&mut self, name: &str) {
        match self.connector().connect(name) {
            Ok(tls) => self.begin_tls(tls, true),
            Err(why) => self.fail(Closed::Tls(why)),
        }
    }

    fn begin_tls(&mut self, tls: Tls, is_client: bool) {
        self.tls = Some(Box::new(SecuredTransfer::new(tls, is_client)));
        self.take_tls();
    }

    fn read_tls(&mut self, bytes: &[u8]) {
        if let Some(tls) = &mut self.tls {
            tls.read(bytes);
            self.take_tls();
        }
    }

    /// Queues bytes of the engine.
    fn write(&mut self, bytes: Bytes) {
        if self.tls.is_none() {
            return self.queue.push(bytes);
        }
        // The engine hears of each part: a peer that reads a large one slowly does not stall.
        for part in bytes.chunks(SecuredTransfer::PART) {
            if let Some(tls) = &mut self.tls {
                tls.write(part);
            }
            self.take_tls();
            if let Some(tls) = &mut self.tls {
                tls.wrote(part.len());
            }
        }
    }

    /// Ends the writing direction once everything queued is written.
    fn finish(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.close();
            self.take_tls();
        }
        self.queue.finish();
    }

    /// The stream has taken this many bytes.
    fn written(&mut self, n: usize) {
        let n = match &mut self.tls {
            None => n,
            Some(tls) => tls.taken(n),
        };
        if n > 0 {
            self.report(TransferOutput::Event(IoEvent::Written(n)));
        }
    }

    /// Carries out the outputs of TLS.
    fn take_tls(&mut self) {
        while let Some(tls) = &mut self.tls
            && let Some(output) = tls.poll_output()
        {
            match output {
                TlsOutput::Write(bytes) => self.queue.push(bytes),
                TlsOutput::Secured if tls.is_client => self.report(TransferOutput::Event(IoEvent::Secured)),
                TlsOutput::Secured => drop(tls.handshake.take()),
                TlsOutput::Read(bytes) => self.report(TransferOutput::Event(IoEvent::Read(bytes))),
                TlsOutput::ReadClosed => {
                    self.ending().into_iter().for_each(Ending::read_ended);
                    self.report(TransferOutput::Event(IoEvent::ReadClosed));
                }
                TlsOutput::Failed(why) => self.fail(Closed::Tls(why)),
            }
        }
    }

    /// Reads nothing more, and closes for this reason once everything queued is written.
    fn fail(&mut self, why: Closed) {
        self.ending().into_iter().for_each(|ending| ending.fail(why.clone()));
        self.queue.finish();
    }

    /// Adds an output. Most connections never have two at a time, and keep the room of one.
    fn report(&mut self, output: TransferOutput) {
        self.outputs.reserve_exact(1);
        self.outputs.push_back(output);
    }

    fn abort(&mut self, now: Instant) {
        match &mut self.phase {
            TransferPhase::Opening { aborted, .. } => *aborted = true,
            TransferPhase::Open(ending) => {
                ending.abort(now);
                if ending.is_running() {
                    self.report(TransferOutput::Signal(Signal::Kill));
                }
            }
            TransferPhase::NotOpened(_) | TransferPhase::Over => return,
        }
        self.stop_writing();
    }

    fn ending(&mut self) -> Option<&mut Ending> {
        match &mut self.phase {
            TransferPhase::Open(ending) => Some(ending),
            TransferPhase::Opening { .. } | TransferPhase::NotOpened(_) | TransferPhase::Over => None,
        }
    }

    /// Drops what is queued. Nothing more is written.
    fn stop_writing(&mut self) {
        self.queue.end();
        (self.step, self.writer) = (None, WriteState::Waits);
    }
}

/// Returns whether the operation is to be repeated.
fn is_repeated(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
