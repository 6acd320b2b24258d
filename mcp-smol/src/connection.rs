//! One connection of a server as a future. It owns the socket or the pipes, and shares the engine
//! with the other connections.

use crate::transport::{ConnectionChange, Transport};
use smol::Task;
use smol::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// One connection of a server: a future of its end. Dropping it ends the connection.
pub(crate) struct ConnectionTask(Place);

enum Place {
    /// The executor drives the connection.
    Here(Box<Transport>),
    /// A thread of the blocking pool parses a large message. On the executor, the other tasks would
    /// wait for it.
    Pool(Task<Box<Transport>>),
    /// The future is complete.
    Over,
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
    Over,
}

impl ConnectionTask {
    pub(crate) fn new(transport: Transport) -> Self {
        Self(Place::Here(Box::new(transport)))
    }
}

/// Performs at most one read and one write. Without this limit, a client that sends its next
/// request right after a response would be served repeatedly while the others wait.
fn turn(transport: &mut Transport, cx: &mut Context<'_>) -> Turn {
    let mut read = false;
    loop {
        match transport.poll(cx, !read) {
            Poll::Ready(ConnectionChange::Long) => return Turn::Parse,
            Poll::Ready(ConnectionChange::Wrote) => return Turn::Again,
            Poll::Ready(ConnectionChange::Read) => read = true,
            Poll::Ready(ConnectionChange::Other) => {}
            Poll::Pending if transport.is_closed() => return Turn::Over,
            Poll::Pending if read && transport.may_have_more() => return Turn::Again,
            Poll::Pending => return Turn::Rest,
        }
    }
}

impl Future for ConnectionTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut transport = match std::mem::replace(&mut self.0, Place::Over) {
            Place::Here(transport) => transport,
            Place::Pool(mut task) => match Pin::new(&mut task).poll(cx) {
                Poll::Ready(transport) => transport,
                Poll::Pending => {
                    self.0 = Place::Pool(task);
                    return Poll::Pending;
                }
            },
            Place::Over => return Poll::Pending,
        };
        let turn = turn(&mut transport, cx);
        if matches!(turn, Turn::Again | Turn::Parse) {
            cx.waker().wake_by_ref();
        }
        self.0 = match turn {
            Turn::Rest | Turn::Again => Place::Here(transport),
            Turn::Parse => Place::Pool(smol::unblock(move || {
                let _ = transport.take_turn(Waker::noop());
                transport
            })),
            Turn::Over => return Poll::Ready(()),
        };
        Poll::Pending
    }
}

#[cfg(all(test, feature = "http", not(shuttle)))]
mod tests;
