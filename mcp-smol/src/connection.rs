//! One connection of a server as a future: it owns its channel, its lane and its handlers, and shares the engine with the others.
//! What the engine says to its lane waits in the lane's mailbox, which only this future empties, so the order is the engine's.

use crate::channel::{Channel, Reader, Writer};
use crate::clock::Alarm;
use crate::server::{Request, Shared};
use crate::sync::guarded;
use crate::tasks::Tasks;
use mcp_proto::exchange::{Closed, Peer, Shutdown};
use mcp_proto::input::{Answer, RequestKey, Wire};
use mcp_proto::route::Routed;
use mcp_proto::server::{Incoming, Responder};
use mcp_proto::wired::{Hub, Kind, Lane, LaneOutput};
use mcp_proto::{Cx, Instant, Outcome, Refusal};
use smol::future::Future;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// Facts taken from the channel, or handlers polled, before the rest of the connection has its turn.
const TURN: usize = 16;
/// Turns taken before other tasks of the executor have theirs.
const TURNS: usize = 32;

/// One connection: a future of how its channel ended. Dropping it ends the connection and its handlers.
pub(crate) struct Connection {
    server: Arc<Shared>,
    lane: Lane,
    channel: Channel,
    requests: VecDeque<Request>,
    tasks: Tasks,
    /// The handlers here, to see which are cancelled.
    handlers: BTreeMap<RequestKey, Arc<AtomicBool>>,
    alarm: Alarm,
    /// For the only connection of a server: the alarm of the engine.
    keeps: Option<Alarm>,
    stopped: bool,
    end: Option<Closed>,
}

impl Connection {
    /// A connection over an open channel; `None` if the server takes no more.
    pub(crate) fn join(
        server: &Arc<Shared>,
        kind: Kind,
        peer: Peer,
        reader: Reader,
        writer: Writer,
        keeps: bool,
    ) -> Option<Self> {
        let lane = server.tell(|hub, now| hub.join(now, kind, peer))?;
        server.lock().connections.insert(lane.number(), None);
        Some(Self {
            server: server.clone(),
            lane,
            channel: Channel::opened(reader, writer),
            requests: VecDeque::new(),
            tasks: Tasks::default(),
            handlers: BTreeMap::new(),
            alarm: Alarm::new(),
            keeps: keeps.then(Alarm::new),
            stopped: false,
            end: None,
        })
    }

    fn poll_channel(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        for _ in 0..TURN {
            let Poll::Ready(wire) = self.channel.poll_wire(cx, self.lane.wants_read()) else { break };
            moved = true;
            if let Wire::Closed(why) = &wire {
                self.end = Some(why.clone());
            }
            self.lane.wire(self.server.origin.now(), wire);
            // Before the next: what was read is turned into facts only as they are taken.
            self.settle(cx);
        }
        moved
    }

    /// Lets the lane and the engine talk until both are silent; whether either said anything.
    fn settle(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while self.tell_facts() | self.take_mail(cx) {
            moved = true;
        }
        moved
    }

    /// Hands what the lane found to the engine.
    fn tell_facts(&mut self) -> bool {
        let (facts, diagnostics) = self.lane.take_facts();
        let moved = !facts.is_empty() || !diagnostics.is_empty();
        if moved {
            self.tell(|hub, now| hub.facts(now, facts, diagnostics));
        }
        moved
    }

    fn tell(&mut self, tell: impl FnOnce(&mut Hub, Instant)) {
        let ((), requests) = self.server.talk(Some(self.lane.number()), tell);
        self.requests.extend(requests);
    }

    /// Takes what the engine says to this lane, and hands what the lane wants to the channel.
    fn take_mail(&mut self, cx: &mut Context<'_>) -> bool {
        let (mail, terminated, stopped, before) = {
            let mut state = self.server.lock();
            state.hub.count(self.lane.take_traffic());
            let mail: Vec<_> = std::iter::from_fn(|| state.hub.poll_mail(self.lane.number())).collect();
            self.requests.extend(state.requests.drain(..));
            // Under the same lock: whoever tells the engine more from here on finds the waker.
            let before = state.connections.insert(self.lane.number(), Some(cx.waker().clone()));
            (mail, state.hub.is_terminated(), state.stopped, before)
        };
        // Outside the lock: it may be the last of a task that holds a server.
        drop(before);
        let mut moved = !mail.is_empty();
        let now = self.server.origin.now();
        mail.into_iter().for_each(|mail| mail.deliver(now, &mut self.lane));
        if terminated {
            self.lane.close(now);
        }
        if stopped && !std::mem::replace(&mut self.stopped, true) {
            self.channel.close(Shutdown::Abort);
            moved = true;
        }
        while let Some(output) = self.lane.poll_output() {
            moved = true;
            match output {
                LaneOutput::Write(bytes) => self.channel.write(bytes),
                LaneOutput::Close(how) => self.channel.close(how),
            }
        }
        moved
    }

    /// Starts the handlers of new requests.
    fn take_requests(&mut self) -> bool {
        let mut moved = false;
        while let Some((responder, incoming, cancelled)) = self.requests.pop_front() {
            moved = true;
            self.handle(responder, incoming, cancelled);
        }
        moved
    }

    fn handle(&mut self, responder: Responder, incoming: Incoming, cancelled: Arc<AtomicBool>) {
        let key = responder.key();
        match self.server.router.route(responder, incoming) {
            Routed::Answer(answer) => self.answer(key, answer),
            Routed::Handle { handler, invocation, responder } => {
                let server = Arc::downgrade(&self.server);
                let cx = Cx::linked(invocation, cancelled.clone(), move |note| {
                    let server = server.upgrade().ok_or(Refusal::Gone)?;
                    server.tell(|hub, now| hub.notify(now, key, note)).map_err(|refused| refused.why)
                });
                let handler = guarded(|| (handler.0)(cx))
                    .unwrap_or_else(|| Box::pin(std::future::ready(Outcome::internal("the handler panicked"))));
                self.handlers.insert(key, cancelled);
                self.tasks.push(responder, handler);
            }
        }
    }

    fn answer(&mut self, key: RequestKey, answer: Answer) {
        self.server.lock().running.remove(&key);
        self.tell(|hub, now| hub.respond(now, answer));
    }

    fn poll_handlers(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        let (tasks, server) = (&mut self.tasks, &self.server);
        self.handlers.retain(|key, cancelled| {
            let cancelled = cancelled.load(Ordering::Relaxed);
            if cancelled {
                tasks.cancel(*key);
                server.lock().running.remove(key);
            }
            !cancelled
        });
        for _ in 0..TURN {
            let Poll::Ready(ended) = self.tasks.poll(cx) else { break };
            moved = true;
            if let Some((responder, outcome)) = ended {
                let key = responder.key();
                self.handlers.remove(&key);
                // Serialised here, outside the lock.
                let answer = responder.write(outcome);
                self.answer(key, answer);
            }
        }
        moved
    }

    fn poll_alarms(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = self.alarm.poll(cx, self.server.origin, self.lane.poll_timeout());
        if moved {
            self.lane.handle_timeout(self.server.origin.now());
            self.settle(cx);
        }
        if let Some(alarm) = &mut self.keeps {
            moved |= self.server.poll_time(cx, alarm);
        }
        moved
    }
}

impl Future for Connection {
    type Output = Closed;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Closed> {
        let this = self.get_mut();
        for _ in 0..TURNS {
            let mut moved = this.settle(cx);
            moved |= this.poll_channel(cx);
            moved |= this.take_requests();
            moved |= this.poll_handlers(cx);
            moved |= this.poll_alarms(cx);
            if !moved {
                return match &this.end {
                    Some(why) if this.tasks.is_empty() => Poll::Ready(why.clone()),
                    _ => Poll::Pending,
                };
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.lane.wire(self.server.origin.now(), Wire::Closed(Closed::Aborted));
        }
        self.tell_facts();
        self.server.leave(self.lane.number());
        let mut state = self.server.lock();
        state.hub.count(self.lane.take_traffic());
        let unhandled = self.requests.iter().map(|(responder, ..)| responder.key());
        self.handlers.keys().copied().chain(unhandled).for_each(|key| drop(state.running.remove(&key)));
    }
}
