//! One connection of a server: its state, a reading thread and a writing thread.
//!
//! The connection has its own lock, so bytes are parsed and framed while other connections use the
//! engine. The engine's lock is taken under the connection's, never the other way round. The events
//! of a connection therefore reach the engine in order, and the engine's outputs reach the
//! connection in order.

use crate::ends::{Reader, Writer};
use crate::events::Waiting;
use crate::service::{Service, Todo};
use crate::socket::Socket;
use crate::stream;
use crate::sync::{self, Condvar, Mutex, MutexGuard, lock, wait};
use mcp_proto::Instant;
use mcp_proto::adapter::{Step, Transfer, TransferOutput};
use mcp_proto::exchange::Shutdown;
use mcp_proto::server::Event;
use mcp_proto::wired::{Connection, ConnectionOutput};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Interval at which a connection that waits for the application checks whether it still exists.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct ConnectionThreads {
    number: u64,
    /// The socket to shut down with the connection. Absent if the stream can only be waited for.
    socket: Option<Socket>,
    served: Mutex<Served>,
    /// Wakes the threads of this connection.
    wake: Condvar,
}

struct Served {
    connection: Connection,
    transfer: Transfer,
    reader_waits: bool,
    /// The deadline that the service knows.
    due: Option<Instant>,
}

impl ConnectionThreads {
    pub(crate) fn new(connection: Connection, socket: Option<Socket>) -> Self {
        let number = connection.number();
        // A pair of streams may be standard input and output.
        let transfer = if socket.is_some() { Transfer::accepted() } else { Transfer::given() };
        let served = Served { connection, transfer, reader_waits: false, due: None };
        Self { number, socket, served: Mutex::new(served), wake: Condvar::new() }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Starts its threads.
    pub(crate) fn start(self: &Arc<Self>, service: &Arc<Service>, reader: Reader, writer: Writer) -> io::Result<()> {
        self.turn(service, |_| {});
        // The server has no room for this client, and sends it no response.
        if self.lock().transfer.is_closed() {
            return Ok(());
        }
        let heard = service.lock().events.waiting();
        let (this, home) = (Arc::clone(self), Arc::downgrade(service));
        sync::spawn("mcp-writer", move || {
            let wrote = |wrote| this.report(&home, |transfer| transfer.wrote(wrote)) && this.lock().transfer.writes();
            stream::write(writer, || this.next_step(), wrote);
        })?;
        let (this, home) = (Arc::clone(self), Arc::downgrade(service));
        sync::spawn("mcp-reader", move || {
            let received = |read| {
                this.report(&home, |transfer| transfer.read(read)) && this.wait_heard(&heard) && this.wait_wanted()
            };
            // Nothing is read of a connection that waits for its admission.
            if this.wait_wanted() {
                stream::read(reader, received);
            }
        })
    }

    /// Delivers the engine's outputs for this connection.
    pub(crate) fn deliver(&self, service: &Service, todo: &mut Todo) {
        self.exchange(service, &mut self.lock(), todo);
    }

    pub(crate) fn handle_timeout(&self, service: &Arc<Service>) {
        self.turn(service, |served| served.connection.handle_timeout(service.clock.now()));
    }

    /// Ends at once.
    pub(crate) fn abort(&self, service: &Arc<Service>) {
        let now = service.clock.now();
        self.turn(service, |served| served.transfer.act(now, ConnectionOutput::Close(Shutdown::Abort)));
    }

    /// Reports what happened to the stream. Returns whether the connection still exists.
    fn report(&self, service: &Weak<Service>, change: impl FnOnce(&mut Transfer)) -> bool {
        let Some(service) = Weak::upgrade(service) else { return false };
        self.turn(&service, |served| change(&mut served.transfer));
        !self.lock().transfer.is_closed()
    }

    /// Waits while the application is behind with events that it must not miss. Returns false if
    /// nothing more is read. So the events that clients cause never exceed their memory limit.
    fn wait_heard(&self, heard: &Waiting<Event>) -> bool {
        while heard.is_behind(LOOK) {
            if self.lock().transfer.is_closed() {
                return false;
            }
        }
        true
    }

    /// Waits until the connection has room for more. Returns false if nothing more is read.
    fn wait_wanted(&self) -> bool {
        let mut served = self.lock();
        while served.transfer.reads() && !served.transfer.wants_read() {
            served.reader_waits = true;
            served = wait(&self.wake, served, None);
        }
        served.transfer.reads()
    }

    fn next_step(&self) -> Option<Step> {
        let mut served = self.lock();
        loop {
            if let Some(step) = served.transfer.take_step() {
                return Some(step);
            }
            if !served.transfer.writes() {
                return None;
            }
            served = wait(&self.wake, served, None);
        }
    }

    fn turn(&self, service: &Arc<Service>, change: impl FnOnce(&mut Served)) {
        let mut todo = Todo::default();
        let mut served = self.lock();
        change(&mut served);
        self.exchange(service, &mut served, &mut todo);
        drop(served);
        service.work(todo);
    }

    /// Exchanges events and outputs with the engine until neither side has any.
    fn exchange(&self, service: &Service, served: &mut Served, todo: &mut Todo) {
        if served.transfer.is_closed() {
            return;
        }
        let now = service.clock.now();
        loop {
            while let Some(output) = served.transfer.poll_output(now) {
                match output {
                    TransferOutput::Event(event) => served.connection.handle_io(now, event),
                    TransferOutput::Signal(_) => {}
                }
            }
            self.talk(service, served, todo);
            let outputs: Vec<_> = std::iter::from_fn(|| served.connection.poll_output()).collect();
            if outputs.is_empty() {
                break;
            }
            outputs.into_iter().for_each(|output| served.transfer.act(now, output));
        }
        if served.transfer.is_closed() {
            if let Some(socket) = &self.socket {
                socket.shutdown(std::net::Shutdown::Both);
            }
            service.left(self.number, served.due.take());
        }
        let writer_waits = served.transfer.is_waiting();
        if writer_waits || std::mem::take(&mut served.reader_waits) {
            self.wake.notify_all();
        }
    }

    /// Takes turns until one is empty.
    fn talk(&self, service: &Service, served: &mut Served, todo: &mut Todo) {
        let connection = &mut served.connection;
        loop {
            let turn = connection.take_turn();
            let is_empty = turn.is_empty();
            let now = service.clock.now();
            let mut desk = service.lock();
            let reply = desk.engine.exchange(now, turn);
            service.collect(&mut desk, todo, self.number);
            if is_empty && reply.is_empty() {
                service.set_due(&mut desk, self.number, &mut served.due, connection.poll_timeout());
                return;
            }
            drop(desk);
            connection.apply(now, reply);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Served> {
        lock(&self.served)
    }
}
