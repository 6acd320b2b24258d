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
use mcp_proto::adapter::{Step, WriteQueue};
use mcp_proto::exchange::IoEvent;
use mcp_proto::exchange::{Closed, Shutdown};
use mcp_proto::server::Event;
use mcp_proto::wired::{Connection, ConnectionOutput};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
    queue: WriteQueue,
    /// Whether the engine accepts input.
    reads: bool,
    read_ended: bool,
    reader_waits: bool,
    gone: bool,
    /// The deadline that the service knows.
    due: Option<Instant>,
}

impl ConnectionThreads {
    pub(crate) fn new(connection: Connection, socket: Option<Socket>) -> Self {
        let number = connection.number();
        let queue = WriteQueue::default();
        let served =
            Served { connection, queue, reads: true, read_ended: false, reader_waits: false, gone: false, due: None };
        Self { number, socket, served: Mutex::new(served), wake: Condvar::new() }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Starts its threads. A stream of the application may panic: that cuts the connection, like an
    /// error of the stream.
    pub(crate) fn start(
        self: &Arc<Self>,
        service: &Arc<Service>,
        mut reader: Reader,
        mut writer: Writer,
    ) -> io::Result<()> {
        self.turn(service, |_| {});
        // The server has no room for this client, and sends it no response.
        if self.lock().gone {
            return Ok(());
        }
        let heard = service.lock().events.waiting();
        let (this, home) = (Arc::clone(self), Arc::downgrade(service));
        sync::spawn("mcp-writer", move || {
            let next = || this.next_step();
            let written = |n| this.told(&home, IoEvent::Written(n));
            let write = AssertUnwindSafe(|| stream::write(&mut *writer, next, written));
            let written = catch_unwind(write);
            drop(writer);
            // A panic cuts the connection. So does a client that accepts no bytes: it could not
            // receive responses, and might never read again.
            if written.as_ref().map_or(true, |written| written.is_err() && this.socket.is_some()) {
                this.read_ended(&home, true);
            }
            this.write_ended(&home);
        })?;
        let (this, home) = (Arc::clone(self), Arc::downgrade(service));
        sync::spawn("mcp-reader", move || {
            let received =
                |bytes| this.told(&home, IoEvent::Read(bytes)) && this.wait_heard(&heard) && this.wait_wanted();
            // Nothing is read of a connection that waits for its admission.
            let read = || if this.wait_wanted() { stream::read(&mut *reader, received) } else { Ok(()) };
            let read = catch_unwind(AssertUnwindSafe(read));
            drop(reader);
            this.read_ended(&home, !matches!(read, Ok(Ok(()))));
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
        self.turn(service, |served| {
            served.queue.end();
            served.connection.handle_io(service.clock.now(), IoEvent::Closed(Closed::Aborted));
        });
    }

    /// Reports an event, and returns whether the connection still exists.
    fn told(&self, service: &Weak<Service>, wire: IoEvent) -> bool {
        let Some(service) = Weak::upgrade(service) else { return false };
        self.turn(&service, |served| served.connection.handle_io(service.clock.now(), wire));
        !self.lock().gone
    }

    fn read_ended(&self, service: &Weak<Service>, cut: bool) {
        let Some(service) = Weak::upgrade(service) else { return };
        self.turn(&service, |served| {
            served.read_ended = true;
            served
                .connection
                .handle_io(service.clock.now(), if cut { IoEvent::Closed(Closed::Reset) } else { IoEvent::ReadClosed });
        });
    }

    fn write_ended(&self, service: &Weak<Service>) {
        let Some(service) = Weak::upgrade(service) else { return };
        self.turn(&service, |served| {
            served.queue.end();
            if let Some(socket) = &self.socket {
                socket.shutdown(std::net::Shutdown::Write);
            }
        });
    }

    /// Waits while the application is behind with events that it must not miss. Returns false if
    /// nothing more is read. So the events that clients cause never exceed their memory limit.
    fn wait_heard(&self, heard: &Waiting<Event>) -> bool {
        while heard.is_behind(LOOK) {
            if self.lock().gone {
                return false;
            }
        }
        true
    }

    /// Waits until the connection has room for more. Returns false if nothing more is read.
    fn wait_wanted(&self) -> bool {
        let mut served = self.lock();
        while !served.gone && !served.reads {
            served.reader_waits = true;
            served = wait(&self.wake, served, None);
        }
        !served.gone
    }

    fn next_step(&self) -> Option<Step> {
        let mut served = self.lock();
        loop {
            if let Some(step) = served.queue.next_step() {
                return Some(step);
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

    /// Exchanges events and outputs with the engine until neither side has any, and carries out the
    /// instructions of the connection.
    fn exchange(&self, service: &Service, served: &mut Served, todo: &mut Todo) {
        if served.gone {
            return;
        }
        loop {
            self.talk(service, served, todo);
            let mut closed = None;
            while let Some(output) = served.connection.poll_output() {
                match output {
                    ConnectionOutput::Write(bytes) => served.queue.push(bytes),
                    ConnectionOutput::Read(reads) => served.reads = reads,
                    ConnectionOutput::Close(Shutdown::WriteHalf) => served.queue.finish(),
                    ConnectionOutput::Close(Shutdown::Terminate) => {}
                    ConnectionOutput::Close(Shutdown::Abort) => {
                        served.queue.end();
                        closed = Some(Closed::Aborted);
                    }
                }
            }
            if served.read_ended && served.queue.is_ended() {
                closed.get_or_insert(Closed::Eof);
            }
            match closed {
                Some(why) if !served.connection.is_closed() => {
                    served.connection.handle_io(service.clock.now(), IoEvent::Closed(why))
                }
                _ => break,
            }
        }
        if served.connection.is_closed() {
            served.gone = true;
            served.queue.end();
            if let Some(socket) = &self.socket {
                socket.shutdown(std::net::Shutdown::Both);
            }
            service.left(self.number, served.due.take());
        }
        if served.queue.waits() || std::mem::take(&mut served.reader_waits) {
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
            desk.collect(todo, Some(self.number));
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
