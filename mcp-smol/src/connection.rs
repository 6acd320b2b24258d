//! One connection of a server as a future. The future owns the socket or pipes and the core's [`Connection`],
//! and shares the engine with the other connections. Only this future empties the mailbox of its
//! connection, so it writes in the order of the engine.

use crate::channel::{Channel, Reader, Writer};
use crate::clock::Alarm;
use crate::server::Shared;
use mcp_proto::exchange::{Closed, Peer, Shutdown};
use mcp_proto::input::IoEvent;
use mcp_proto::wired::{Connection, ConnectionOutput, Kind};
use smol::Task;
use smol::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// One connection: a future of how its channel ended. Dropping it ends the connection.
pub(crate) enum ConnectionTask {
    /// The executor drives the connection.
    Polled(Box<Live>),
    /// A thread of the blocking pool parses a large message. On the executor, the other tasks would wait for it.
    Parsing(Task<Box<Live>>),
    /// The future is complete.
    Over,
}

/// What a connection consists of. Dropping it ends the connection.
pub(crate) struct Live {
    server: Arc<Shared>,
    connection: Connection,
    channel: Channel,
    alarm: Alarm,
    /// For the only connection of a server: the alarm of the engine.
    keeps: Option<Alarm>,
    stopped: bool,
    /// Who takes no answer any more has nothing to ask.
    answers_only: bool,
    end: Option<Closed>,
}

/// What follows one turn of a connection.
enum Turn {
    /// Nothing, until an event wakes the task.
    Rest,
    /// Another turn, behind the other tasks that are ready.
    Again,
    /// Parsing, which may take long.
    Parse,
    /// Nothing: the channel has ended.
    Over(Closed),
}

impl ConnectionTask {
    /// A connection over an open channel.
    ///
    /// # Errors
    /// The channel, if the server takes no more.
    pub(crate) fn join(
        server: &Arc<Shared>,
        kind: Kind,
        peer: Peer,
        (reader, writer): (Reader, Writer),
        keeps: bool,
    ) -> Result<Self, (Reader, Writer)> {
        let Some(connection) = server.tell(|engine, now| engine.join(now, kind, peer)) else {
            return Err((reader, writer));
        };
        server.lock().connections.insert(connection.number(), None);
        Ok(Self::Polled(Box::new(Live {
            server: server.clone(),
            connection,
            channel: Channel::opened(reader, writer),
            alarm: Alarm::new(),
            keeps: keeps.then(Alarm::new),
            stopped: false,
            answers_only: kind != Kind::Lines,
            end: None,
        })))
    }
}

impl Live {
    /// Does what is possible now, with at most one read and one write.
    fn turn(&mut self, cx: &mut Context<'_>) -> Turn {
        self.settle(cx);
        let turn = self.poll_channel(cx);
        if matches!(turn, Turn::Parse) {
            return turn;
        }
        match self.end.clone() {
            _ if self.poll_alarms(cx) => Turn::Again,
            Some(end) if matches!(turn, Turn::Rest) => Turn::Over(end),
            _ => turn,
        }
    }

    /// Takes what one poll may take of the channel: one read and one write. Without this bound, a client that sends its next request as soon
    /// as it has its answer is served again and again while the others wait.
    fn poll_channel(&mut self, cx: &mut Context<'_>) -> Turn {
        let (mut read, mut written) = (false, false);
        while !written {
            let Poll::Ready(wire) = self.poll_wire(cx, !read) else {
                return if read { Turn::Again } else { Turn::Rest };
            };
            read |= matches!(wire, IoEvent::Bytes(_));
            written = matches!(wire, IoEvent::Written(_));
            if let IoEvent::Closed(why) = &wire {
                self.end = Some(why.clone());
            }
            self.connection.handle_io(self.server.origin.now(), wire);
            if self.connection.takes_long() {
                return Turn::Parse;
            }
            // Before the next: what was read is turned into facts only as they are taken.
            self.settle(cx);
        }
        Turn::Again
    }

    /// The next fact of the channel.
    fn poll_wire(&mut self, cx: &mut Context<'_>, reads: bool) -> Poll<IoEvent> {
        loop {
            let refused = self.answers_only && self.channel.is_refused();
            if refused {
                self.channel.close(Shutdown::Abort);
            }
            let wire = self.channel.poll_wire(cx, reads && self.connection.wants_read());
            // A write that fails in this very poll ends the connection in it too: it has registered no waker.
            if wire.is_ready() || refused || !(self.answers_only && self.channel.is_refused()) {
                return wire;
            }
        }
    }

    /// Lets the connection and the engine talk until both are silent; whether either said anything.
    fn settle(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while self.tell_facts() | self.take_mail(cx) {
            moved = true;
        }
        moved
    }

    /// Reports the connection's exchange events to the engine.
    fn tell_facts(&mut self) -> bool {
        let (facts, diagnostics) = self.connection.take_facts();
        let moved = !facts.is_empty() || !diagnostics.is_empty();
        if moved {
            self.server.tell_of(self.connection.number(), |engine, now| engine.facts(now, facts, diagnostics));
        }
        moved
    }

    /// Passes the engine's outputs to the connection, and the connection's outputs to the channel.
    fn take_mail(&mut self, cx: &mut Context<'_>) -> bool {
        let (mail, terminated, stopped, before) = {
            let mut state = self.server.lock();
            state.engine.count(self.connection.take_traffic());
            let mail: Vec<_> = std::iter::from_fn(|| state.engine.poll_mail(self.connection.number())).collect();
            // Under the same lock: whoever tells the engine more from here on finds the waker.
            let before = state.connections.insert(self.connection.number(), Some(cx.waker().clone()));
            (mail, state.engine.is_terminated(), state.stopped, before)
        };
        // Outside the lock: it may be the last of a task that holds a server.
        drop(before);
        let mut moved = !mail.is_empty();
        let now = self.server.origin.now();
        mail.into_iter().for_each(|mail| mail.deliver(now, &mut self.connection));
        if terminated {
            self.connection.close(now);
        }
        if stopped && !std::mem::replace(&mut self.stopped, true) {
            self.channel.close(Shutdown::Abort);
            moved = true;
        }
        while let Some(output) = self.connection.poll_output() {
            moved = true;
            match output {
                ConnectionOutput::Write(bytes) => self.channel.write(bytes),
                ConnectionOutput::Close(how) => self.channel.close(how),
            }
        }
        moved
    }

    fn poll_alarms(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = self.alarm.poll(cx, self.server.origin, self.connection.poll_timeout());
        if moved {
            self.connection.handle_timeout(self.server.origin.now());
            self.settle(cx);
        }
        if let Some(alarm) = &mut self.keeps {
            moved |= self.server.poll_time(cx, alarm);
        }
        moved
    }
}

impl Future for ConnectionTask {
    type Output = Closed;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Closed> {
        let mut live = match std::mem::replace(&mut *self, Self::Over) {
            Self::Polled(live) => live,
            Self::Parsing(mut task) => match Pin::new(&mut task).poll(cx) {
                Poll::Ready(mut live) => {
                    // A client that never pauses, each read large, would otherwise starve the timers.
                    live.settle(cx);
                    live.poll_alarms(cx);
                    live
                }
                Poll::Pending => {
                    *self = Self::Parsing(task);
                    return Poll::Pending;
                }
            },
            Self::Over => return Poll::Pending,
        };
        let turn = live.turn(cx);
        if matches!(turn, Turn::Again | Turn::Parse) {
            cx.waker().wake_by_ref();
        }
        *self = match turn {
            Turn::Rest | Turn::Again => Self::Polled(live),
            Turn::Parse => Self::Parsing(smol::unblock(move || {
                live.tell_facts();
                live
            })),
            Turn::Over(end) => return Poll::Ready(end),
        };
        Poll::Pending
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.connection.handle_io(self.server.origin.now(), IoEvent::Closed(Closed::Aborted));
        }
        self.tell_facts();
        self.server.leave(self.connection.number());
        self.server.lock().engine.count(self.connection.take_traffic());
    }
}

#[cfg(all(test, feature = "http", not(shuttle)))]
mod tests;
