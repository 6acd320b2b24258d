//! One connection of a client or of a server, for its driver.

use super::Task;
use super::client::{self, ClientShared, OutputMark};
use super::server::{ServerShared, ServerTurn};
use crate::ending::Signal;
use crate::os::Clock;
use crate::tls::TlsAcceptor;
use crate::transfer::{Transfer, TransferOutput};
use crate::work::Work;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::fmt;
use core::task::Waker;
use mcp_proto::exchange::{Closed, ConnectionId, Endpoint, IoEvent, Shutdown, TlsFailure, TlsFailureKind};
use mcp_proto::process::Stderr;
use mcp_proto::time::Instant;
use mcp_proto::wired::{Connection, ConnectionOutput, HandshakeReservation};

/// One connection of a client or of a server. Its driver reads and writes, in the task of the
/// engine or in one of its own, in two threads, or in a loop.
///
/// Report what happened to its [`transfer`](Self::transfer), then take [turns](Self::turn) until
/// one is [`TurnResult::Done`]. Then read if [`wants_read`](Self::wants_read), and write what
/// [`Transfer::step`] returns. Take turns again when the waker is woken, and at
/// [`poll_timeout`](Self::poll_timeout). It is over once [`Transfer::is_closed`].
///
/// Dropping it ends the connection for the engine. Close the socket or the streams yourself.
#[derive(Debug)]
#[must_use = "a connection that is dropped is aborted"]
pub struct DrivenConnection {
    transfer: Transfer,
    end: Box<dyn ConnectionEnd>,
    /// There is a task that this connection may have caused.
    has_task: bool,
}

/// The engine at the end of a connection. A program that is only a client does not contain the code
/// of servers.
trait ConnectionEnd: fmt::Debug + Send + Sync {
    fn clock(&self) -> Clock;
    fn stderr(&self) -> Stderr {
        Stderr::default()
    }
    fn turn(&mut self, transfer: &mut Transfer, waker: &Waker, has_task: &mut bool) -> TurnResult;
    /// Returns whether the application is behind with the events of this connection.
    fn is_behind(&self) -> bool {
        false
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn next_task(&mut self) -> Option<Task>;
    /// Reserves the memory of the TLS handshake of an accepted connection.
    fn begin_handshake(&self) -> Option<HandshakeReservation> {
        None
    }
    /// The driver drops the connection.
    fn leave(&mut self, is_closed: bool);
}

struct ClientConnection {
    shared: Arc<ClientShared>,
    id: ConnectionId,
    mark: Arc<OutputMark>,
    /// What the client wakes for outputs, while the mark is not set. Not the waker itself, which
    /// may own this.
    registered: Option<WakerIdentity>,
    /// The client has ended at once.
    aborted: bool,
}

/// The addresses of a waker. Another one has the same only after this one was dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WakerIdentity {
    data: usize,
    vtable: usize,
}

impl WakerIdentity {
    fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), vtable: core::ptr::from_ref(waker.vtable()).addr() }
    }
}

struct ServerConnection {
    shared: Arc<ServerShared>,
    connection: Connection,
    /// An event was passed on and not parsed.
    pending: bool,
    /// The server has aborted it.
    aborted: bool,
    /// It has read something while the application was behind with its events.
    delayed: bool,
    /// The requests of the latest turns, which are to be routed.
    work: VecDeque<Work>,
    /// The server has forgotten it.
    left: bool,
}

/// The result of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum TurnResult {
    /// The engine has nothing left for this connection.
    Done,
    /// Send this to the program, then take another turn.
    Signal(Signal),
    /// The next turn parses a large message, which may take longer than about half a millisecond:
    /// an executor should not do it. Only a server returns this.
    Long,
}

impl DrivenConnection {
    pub(super) fn client(
        shared: Arc<ClientShared>,
        id: ConnectionId,
        endpoint: &Endpoint,
        mark: Arc<OutputMark>,
    ) -> Self {
        let transfer = Transfer::opening(endpoint).with_connector(shared.setup.connector.clone());
        let opened = ClientConnection { shared, id, mark, registered: None, aborted: false };
        Self { transfer, end: Box::new(opened), has_task: false }
    }

    pub(super) fn server(shared: Arc<ServerShared>, connection: Connection, transfer: Transfer) -> Self {
        let work = VecDeque::new();
        let served =
            ServerConnection { shared, connection, pending: false, aborted: false, delayed: false, work, left: false };
        Self { transfer, end: Box::new(served), has_task: false }
    }

    /// Returns the clock of the engine.
    pub fn clock(&self) -> Clock {
        self.end.clock()
    }

    /// Returns the transfer: report to it what happened, and ask it what to do. Take a turn after
    /// each report.
    pub fn transfer(&mut self) -> &mut Transfer {
        &mut self.transfer
    }

    /// Returns the destination of a program's standard error. By default it is inherited.
    pub fn stderr(&self) -> Stderr {
        self.end.stderr()
    }

    /// Begins TLS on a connection that a server accepted. Call it before anything else. Without an
    /// acceptor it does nothing. Until the handshake is complete, its memory counts towards
    /// [`ServerLimits::max_held`](mcp_proto::limits::ServerLimits::max_held); without room for it,
    /// the connection closes at once.
    pub fn accept_tls(mut self, acceptor: Option<&TlsAcceptor>) -> Self {
        let Some(acceptor) = acceptor else { return self };
        match self.end.begin_handshake() {
            Some(memory) => {
                self.transfer.accept_tls(acceptor.accept());
                self.transfer.reserve_handshake(memory);
            }
            None => {
                let why = TlsFailure::new(TlsFailureKind::Unavailable, "there is no room for the handshake");
                self.transfer.accept_tls(Err(why));
            }
        }
        self
    }

    /// Passes what happened to the engine, and the outputs of the engine to the transfer. The
    /// engine wakes `waker` when it has more. Wakes other tasks: hold no lock that a waker takes.
    pub fn turn(&mut self, waker: &Waker) -> TurnResult {
        self.end.turn(&mut self.transfer, waker, &mut self.has_task)
    }

    /// Returns whether to read. Ask it after each turn.
    pub fn wants_read(&self) -> bool {
        // Each client that causes events waits, so that they never exceed their memory limit.
        self.transfer.wants_read() && !self.end.is_behind()
    }

    /// Returns when to take a turn, even if nothing happens.
    pub fn poll_timeout(&self) -> Option<Instant> {
        mcp_proto::time::earliest(self.end.poll_timeout(), self.transfer.poll_timeout())
    }

    /// Returns the next task that a turn has caused. Carry out all of them after each turn: a turn
    /// does not wake the driver of the engine for them.
    pub fn next_task(&mut self) -> Option<Task> {
        if !self.has_task {
            return None;
        }
        let task = self.end.next_task();
        self.has_task = task.is_some();
        task
    }
}

impl ClientConnection {
    /// Returns whether the client has no output, and wakes this waker when it has one: until then,
    /// the client keeps the waker that was registered last.
    fn has_nothing_for(&self, waker: &Waker) -> bool {
        !self.mark.is_set() && self.registered == Some(WakerIdentity::of(waker))
    }
}

impl ConnectionEnd for ClientConnection {
    fn clock(&self) -> Clock {
        self.shared.clock
    }

    fn stderr(&self) -> Stderr {
        self.shared.stderr()
    }

    fn next_task(&mut self) -> Option<Task> {
        self.shared.next_task_of_connection()
    }

    fn leave(&mut self, is_closed: bool) {
        if !is_closed {
            self.shared.dropped(self.id);
        }
    }

    fn turn(&mut self, transfer: &mut Transfer, waker: &Waker, has_task: &mut bool) -> TurnResult {
        let mut exchanged = false;
        loop {
            let now = self.shared.clock.now();
            let event = match transfer.poll_output(now) {
                Some(TransferOutput::Signal(signal)) => return TurnResult::Signal(signal),
                Some(TransferOutput::Event(event)) => Some(event),
                // The engine has given everything, and wakes `waker` when it has more.
                None if exchanged || self.has_nothing_for(waker) => return TurnResult::Done,
                None => None,
            };
            let client::ClientTurn { outputs, stopped, has_task: has_more } =
                self.shared.exchange(self.id, event, waker);
            exchanged = true;
            self.registered = Some(WakerIdentity::of(waker));
            *has_task |= has_more;
            outputs.into_iter().for_each(|output| transfer.act(now, output));
            if stopped && !core::mem::replace(&mut self.aborted, true) {
                transfer.act(now, ConnectionOutput::Close(Shutdown::Abort));
            }
        }
    }
}

impl ConnectionEnd for ServerConnection {
    fn clock(&self) -> Clock {
        self.shared.clock
    }

    fn is_behind(&self) -> bool {
        self.delayed && self.shared.is_behind()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    fn next_task(&mut self) -> Option<Task> {
        match self.work.pop_front() {
            Some(work) => Some(self.shared.route_task(work)),
            None => self.shared.next_delivery(),
        }
    }

    fn begin_handshake(&self) -> Option<HandshakeReservation> {
        self.shared.begin_handshake(self.connection.number())
    }

    fn turn(&mut self, transfer: &mut Transfer, waker: &Waker, has_task: &mut bool) -> TurnResult {
        let now = self.shared.clock.now();
        if self.connection.poll_timeout().is_some_and(|due| due <= now) {
            self.connection.handle_timeout(now);
            if self.connection.takes_long() {
                self.pending = true;
                return TurnResult::Long;
            }
        }
        let mut exchanged = false;
        loop {
            if !core::mem::take(&mut self.pending) {
                match transfer.poll_output(now) {
                    Some(TransferOutput::Signal(signal)) => return TurnResult::Signal(signal),
                    Some(TransferOutput::Event(event)) => {
                        self.connection.handle_io(now, event);
                        if self.connection.takes_long() {
                            self.pending = true;
                            return TurnResult::Long;
                        }
                    }
                    // The engine has given everything, and wakes `waker` when it has more.
                    None if exchanged => {
                        if transfer.is_closed() {
                            self.leave(true);
                        }
                        return TurnResult::Done;
                    }
                    None => {
                        self.exchange(transfer, now, waker, has_task);
                        exchanged = true;
                        continue;
                    }
                }
            }
            // Before the next event: bytes become events of exchanges only when these are taken.
            self.exchange(transfer, now, waker, has_task);
            exchanged = true;
            self.delayed = self.shared.is_behind();
        }
    }

    fn leave(&mut self, is_closed: bool) {
        if core::mem::replace(&mut self.left, true) {
            return;
        }
        if !is_closed {
            self.connection.handle_io(self.shared.clock.now(), IoEvent::Closed(Closed::Aborted));
        }
        loop {
            let turn = self.connection.take_turn();
            let is_empty = turn.is_empty();
            let reply = self.shared.exchange(turn, None, &mut VecDeque::new()).reply;
            if is_empty && reply.is_empty() {
                break;
            }
            self.connection.apply(self.shared.clock.now(), reply);
        }
        self.shared.leave(self.connection.number());
    }
}

impl ServerConnection {
    /// Takes turns of the engine until one is empty.
    fn exchange(&mut self, transfer: &mut Transfer, now: Instant, waker: &Waker, has_task: &mut bool) {
        loop {
            let turn = self.connection.take_turn();
            let is_empty = turn.is_empty();
            let ServerTurn { reply, stopped, has_task: has_more } =
                self.shared.exchange(turn, Some(waker), &mut self.work);
            *has_task |= has_more || !self.work.is_empty();
            let mut quiet = is_empty && reply.is_empty();
            self.connection.apply(now, reply);
            if stopped && !core::mem::replace(&mut self.aborted, true) {
                quiet = false;
                transfer.act(now, ConnectionOutput::Close(Shutdown::Abort));
            }
            while let Some(output) = self.connection.poll_output() {
                quiet = false;
                transfer.act(now, output);
            }
            if quiet {
                return;
            }
        }
    }
}

impl Drop for DrivenConnection {
    fn drop(&mut self) {
        self.end.leave(self.transfer.is_closed());
    }
}

impl fmt::Debug for ClientConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.id).finish()
    }
}

impl fmt::Debug for ServerConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.connection.number()).finish()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::check;
    use crate::{Client, ClientOptions, block_on};
    use alloc::string::String;
    use alloc::vec::Vec;
    use bytes::Bytes;
    use core::future::pending;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use mcp_proto::client::ClientConfig;
    use mcp_proto::exchange::{Peer, Program};
    use mcp_proto::tools;
    use mcp_proto::wired::Kind;
    use std::panic::catch_unwind;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes turns until the engine has nothing left. Returns the signals.
    fn signals(connection: &mut DrivenConnection, waker: &Waker) -> Vec<Signal> {
        let signal = || match connection.turn(waker) {
            TurnResult::Signal(signal) => Some(signal),
            _ => None,
        };
        core::iter::from_fn(signal).collect()
    }

    #[test]
    fn connections_of_a_client_without_a_driver_are_aborted() {
        let program = ClientConfig::program(Program::new("server"));
        for (config, is_program) in [(program, true), (ClientConfig::unix("/server.sock"), false)] {
            let (client, driving) =
                Client::begin(config, ClientOptions::new(), |_| Box::pin(pending())).expect("a seed");
            let call = client.start(tools::call("never"));
            let Some(Task::Open(mut connection, _)) = driving.next_task() else { panic!("nothing to open") };
            let count = Arc::new(Count::default());
            let waker = Waker::from(Arc::clone(&count));
            let now = connection.clock().now();
            assert!(connection.transfer().opened(now, Peer::default(), false));
            assert_eq!(signals(&mut connection, &waker), []);
            let woken = count.0.load(Ordering::Relaxed);
            drop(driving);
            assert_eq!(count.0.load(Ordering::Relaxed), woken + 1, "its driver is woken");
            block_on(call).expect_err("the client has ended");
            if is_program {
                assert_eq!(signals(&mut connection, &waker), [Signal::Kill]);
                let now = connection.clock().now();
                connection.transfer().exited(now, mcp_proto::exchange::ExitStatus::default());
                assert_eq!(signals(&mut connection, &waker), [Signal::KillGroup]);
            }
            assert_eq!(signals(&mut connection, &waker), []);
            assert!(connection.transfer().is_closed());
            drop(waker);
            assert_eq!(Arc::strong_count(&count), 1, "it keeps no waker, which may own it");
        }
    }

    /// A driver of one thread owns all its connections. If one of them breaks a rule, the others
    /// are dropped, and their rules are broken too.
    #[test]
    fn broken_rule_aborts_no_process_that_drops_other_connections() {
        struct Owner(Vec<Connection>);
        impl Drop for Owner {
            fn drop(&mut self) {
                for connection in &mut self.0 {
                    connection.handle_io(Instant::from_millis(20_000), IoEvent::Closed(Closed::Aborted));
                }
            }
        }
        let panic = catch_unwind(|| {
            let connection = |number| {
                let mut connection =
                    Connection::server(number, Kind::Lines, Peer::default(), &Default::default(), Instant::ZERO);
                check(&mut connection);
                connection.handle_io(Instant::ZERO, IoEvent::Read(Bytes::from_static(b"{")));
                connection
            };
            let mut owner = Owner((1..=2).map(connection).collect());
            owner.0[0].handle_io(Instant::from_millis(10_500), IoEvent::ReadClosed);
        });
        let text = panic.expect_err("a rule is broken");
        assert_eq!(text.downcast_ref::<String>().unwrap(), "connection 1: an event 10.5 s ago and no turn");
    }
}
