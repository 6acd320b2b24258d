//! One connection of a server: its connection, a thread that reads it, a thread that writes it.
//!
//! The connection has a lock of its own, so bytes are parsed and framed while other connections use the engine. The engine's lock is taken while
//! the connection's is held, never the other way round: so facts of a connection reach the engine, and the engine's words reach the connection, in order.

use crate::events::Waiting;
use crate::service::{Service, Todo};
use crate::socket::Socket;
use crate::stream;
use crate::sync::{self, Condvar, Mutex, MutexGuard, lock, wait};
use crate::target::{Reader, Writer};
use mcp_proto::Instant;
use mcp_proto::driver::{Step, WriteQueue};
use mcp_proto::exchange::{Closed, Shutdown};
use mcp_proto::input::IoEvent;
use mcp_proto::server::Event;
use mcp_proto::wired::{Connection, ConnectionOutput};
use std::io;
use std::iter::from_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often a connection that waits for the application looks whether it still is there.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct ConnectionThreads {
    number: u64,
    /// What is shut down when the connection is; absent if it can only be waited for.
    socket: Option<Socket>,
    served: Mutex<Served>,
    /// The threads of this connection wait here.
    wake: Condvar,
}

struct Served {
    connection: Connection,
    queue: WriteQueue,
    read_ended: bool,
    reader_waits: bool,
    gone: bool,
    /// The deadline that the service knows of.
    due: Option<Instant>,
}

impl ConnectionThreads {
    pub(crate) fn new(connection: Connection, socket: Option<Socket>) -> Self {
        let number = connection.number();
        let queue = WriteQueue::default();
        let served = Served { connection, queue, read_ended: false, reader_waits: false, gone: false, due: None };
        Self { number, socket, served: Mutex::new(served), wake: Condvar::new() }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Starts its threads. A stream that was given may panic: that cuts the connection, as an error of the stream does.
    pub(crate) fn start(
        self: &Arc<Self>,
        service: &Arc<Service>,
        mut reader: Reader,
        mut writer: Writer,
    ) -> io::Result<()> {
        self.turn(service, |_| {});
        let heard = service.lock().events.waiting();
        let (this, home) = (Arc::clone(self), Arc::downgrade(service));
        sync::spawn("mcp-writer", move || {
            let next = || this.next_step();
            let written = |n| this.told(&home, IoEvent::Written(n));
            let write = AssertUnwindSafe(|| stream::write(&mut *writer, next, written));
            let written = catch_unwind(write);
            drop(writer);
            // A panic cuts the connection. So does a client that takes no answer any more and can only ask for answers: nobody might read on.
            if written.as_ref().map_or(true, |written| written.is_err() && this.socket.is_some()) {
                this.read_ended(&home, true);
            }
            this.write_ended(&home);
        })?;
        let (this, home) = (Arc::clone(self), Arc::downgrade(service));
        sync::spawn("mcp-reader", move || {
            let received =
                |bytes| this.told(&home, IoEvent::Bytes(bytes)) && this.wait_heard(&heard) && this.wait_wanted();
            // Nothing is read of a connection that waits for its admission.
            let read = || if this.wait_wanted() { stream::read(&mut *reader, received) } else { Ok(()) };
            let read = catch_unwind(AssertUnwindSafe(read));
            drop(reader);
            this.read_ended(&home, !matches!(read, Ok(Ok(()))));
        })
    }

    /// The engine has said something to this connection.
    pub(crate) fn deliver(&self, service: &Service, todo: &mut Todo) {
        self.exchange(service, &mut self.lock(), todo);
    }

    pub(crate) fn handle_timeout(&self, service: &Arc<Service>) {
        self.turn(service, |served| served.connection.handle_timeout(service.clock.now()));
    }

    /// The service has ended. Ends in order, as far as that takes no time that a peer could lengthen for ever.
    pub(crate) fn close(&self, service: &Arc<Service>) {
        // First what the engine still had to say, which whoever made it say that may not have come to.
        self.turn(service, |_| {});
        self.turn(service, |served| served.connection.close(service.clock.now()));
    }

    /// Ends at once.
    pub(crate) fn abort(&self, service: &Arc<Service>) {
        self.turn(service, |served| {
            served.queue.end();
            served.connection.handle_io(service.clock.now(), IoEvent::Closed(Closed::Aborted));
        });
    }

    /// Tells the connection something, and says whether the connection still is there.
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
                .handle_io(service.clock.now(), if cut { IoEvent::Closed(Closed::Reset) } else { IoEvent::Eof });
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

    /// Waits until the application keeps up with what it is told and must not miss; false if nothing more is read. What clients make us
    /// tell so never takes more memory than its bound.
    fn wait_heard(&self, heard: &Waiting<Event>) -> bool {
        while heard.is_behind(LOOK) {
            if self.lock().gone {
                return false;
            }
        }
        true
    }

    /// Waits until the connection has room for more; false if nothing more is read.
    fn wait_wanted(&self) -> bool {
        let mut served = self.lock();
        while !served.gone && !served.connection.wants_read() {
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

    /// Lets the connection and the engine talk until both are silent, and does what the connection wants of its channel.
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

    /// Hands facts to the engine and its mail to the connection, in turn.
    fn talk(&self, service: &Service, served: &mut Served, todo: &mut Todo) {
        let connection = &mut served.connection;
        loop {
            let (facts, diagnostics) = connection.take_facts();
            let silent = facts.is_empty();
            let now = service.clock.now();
            let mut desk = service.lock();
            desk.engine.count(connection.take_traffic());
            if !silent || !diagnostics.is_empty() {
                desk.engine.facts(now, facts, diagnostics);
            }
            let mail: Vec<_> = from_fn(|| desk.engine.poll_mail(self.number)).collect();
            desk.collect(todo, Some(self.number));
            if silent && mail.is_empty() {
                service.set_due(&mut desk, self.number, &mut served.due, connection.poll_timeout());
                return;
            }
            drop(desk);
            mail.into_iter().for_each(|mail| mail.deliver(now, connection));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Served> {
        lock(&self.served)
    }
}
