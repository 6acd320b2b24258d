//! One connection of a server as a future. The future owns the socket or pipes and the core's
//! [`Connection`], and shares the engine with the other connections. Only this future empties the
//! mailbox of its connection, so it writes in the order of the engine.

use crate::channel::Channel;
use crate::clock::Alarm;
use crate::ends::{Reader, Writer};
use crate::server::Shared;
use mcp_proto::adapter::Transfer;
use mcp_proto::exchange::IoEvent;
use mcp_proto::exchange::{Closed, Peer, Shutdown};
use mcp_proto::wired::{Connection, ConnectionOutput, Kind};
use smol::Task;
use smol::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// One connection: a future of how it closed. Dropping it ends the connection.
pub(crate) enum ConnectionTask {
    /// The executor drives the connection.
    Polled(Box<Live>),
    /// A thread of the blocking pool parses a large message. On the executor, the other tasks would
    /// wait for it.
    Parsing(Task<Box<Live>>),
    /// The future is complete.
    Over,
}

/// The parts of a connection. Dropping it ends the connection.
pub(crate) struct Live {
    server: Arc<Shared>,
    connection: Connection,
    channel: Channel,
    alarm: Alarm,
    /// For the only connection of a server: the alarm of the engine.
    keeps: Option<Alarm>,
    stopped: bool,
    end: Option<Closed>,
}

/// The result of one turn of a connection.
enum Turn {
    /// Nothing to do until an event wakes the task.
    Rest,
    /// Another turn, after the other tasks that are ready.
    Again,
    /// Parsing, which may be slow.
    Parse,
    /// The connection has closed.
    Over(Closed),
}

impl ConnectionTask {
    /// Creates a connection over an open channel.
    pub(crate) fn accept(server: &Arc<Shared>, kind: Kind, peer: Peer, streams: (Reader, Writer), keeps: bool) -> Self {
        // A single pair of streams may be standard input and output.
        let transfer = if keeps && kind == Kind::Lines { Transfer::given() } else { Transfer::accepted() };
        let connection = server.tell(|engine, now| engine.accept(now, kind, peer));
        server.lock().connections.insert(connection.number(), None);
        Self::Polled(Box::new(Live {
            server: server.clone(),
            connection,
            channel: Channel::opened(transfer, streams),
            alarm: Alarm::new(),
            keeps: keeps.then(Alarm::new),
            stopped: false,
            end: None,
        }))
    }
}

impl Live {
    /// Makes progress with at most one read and one write.
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

    /// Performs at most one read and one write. Without this limit, a client that sends its next
    /// request right after a response would be served repeatedly while the others wait.
    fn poll_channel(&mut self, cx: &mut Context<'_>) -> Turn {
        let (mut read, mut written) = (false, false);
        while !written {
            let Poll::Ready(event) = self.channel.poll_event(cx, self.server.clock, !read) else {
                return if read { Turn::Again } else { Turn::Rest };
            };
            read |= matches!(event, IoEvent::Read(_));
            written = matches!(event, IoEvent::Written(_));
            if let IoEvent::Closed(why) = &event {
                self.end = Some(why.clone());
            }
            self.connection.handle_io(self.server.clock.now(), event);
            if self.connection.takes_long() {
                return Turn::Parse;
            }
            // Do this before the next event: bytes become exchange events only when these are
            // taken.
            self.settle(cx);
        }
        Turn::Again
    }

    /// Takes turns of the connection until one is empty, and passes its outputs to the channel.
    /// Returns whether anything happened.
    fn settle(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while self.take_turn(Some(cx.waker())) | self.take_outputs() {
            moved = true;
        }
        moved
    }

    /// Takes one turn. Returns whether anything happened. The engine wakes `waker` when it has
    /// something for the connection.
    fn take_turn(&mut self, waker: Option<&Waker>) -> bool {
        let turn = self.connection.take_turn();
        let is_empty = turn.is_empty();
        let number = self.connection.number();
        let (reply, stopped, before) = self.server.with_state(|state, now| {
            let reply = state.engine.exchange(now, turn);
            // Under the same lock: a command after this point finds the waker.
            let before = waker.and_then(|waker| state.connections.insert(number, Some(waker.clone())));
            (reply, state.stopped, before)
        });
        // Outside of the lock: it may be the last waker of a task that holds a server.
        drop(before);
        let mut moved = !is_empty || !reply.is_empty();
        self.connection.apply(self.server.clock.now(), reply);
        if stopped && !std::mem::replace(&mut self.stopped, true) {
            self.channel.act(self.server.clock, ConnectionOutput::Close(Shutdown::Abort));
            moved = true;
        }
        moved
    }

    fn take_outputs(&mut self) -> bool {
        let mut moved = false;
        while let Some(output) = self.connection.poll_output() {
            moved = true;
            self.channel.act(self.server.clock, output);
        }
        moved
    }

    fn poll_alarms(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = self.alarm.poll(cx, self.server.clock, self.connection.poll_timeout());
        if moved {
            self.connection.handle_timeout(self.server.clock.now());
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
                    // Otherwise a client that never pauses and always sends large messages would
                    // delay the timers.
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
                live.take_turn(None);
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
            self.connection.handle_io(self.server.clock.now(), IoEvent::Closed(Closed::Aborted));
        }
        while self.take_turn(None) {}
        self.server.leave(self.connection.number());
    }
}

#[cfg(all(test, feature = "http", not(shuttle)))]
mod tests;
