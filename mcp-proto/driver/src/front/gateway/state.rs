//! The state of a gateway behind its lock. Requests and their bodies go in, parts of responses come
//! out.

use super::super::backlog::{Backlog, NextTask};
use super::super::events::WaitingEvents;
use super::super::shared::{Engine, Front, Later, Shared};
use super::super::{Attention, Events, RouteTask, RoutingKind, Task};
use super::GatewaySetup;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem::take;
use core::task::Waker;
use mcp_proto::error::Refusal;
use mcp_proto::exchange::{
    BadRequest, Body, Closed, ExchangeEvent, ExchangeId, Inbound, Outbound, Peer, RequestHead, ResponseHead, Sent,
};
use mcp_proto::frame::{self, BodyDecoder};
use mcp_proto::input::ServerCommand;
use mcp_proto::server::{Event, Output, Server, ServerCommands};
use mcp_proto::time::{Instant, earliest};

/// Its engine, the exchanges that are open, and the tasks of its driver.
pub(in crate::front) struct GatewayState {
    pub(super) engine: Server,
    pub(super) backlog: Backlog,
    open: BTreeMap<ExchangeId, OpenExchange>,
    last: u64,
    /// The engine has ended, or nothing drives it any more.
    ended: bool,
}

/// A part of a response, in order. [`Cut`](Self::Cut) can come at any time, also first.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub enum Part {
    /// The head, before any other part but `Cut`. With a body: the response is complete, and
    /// nothing follows.
    Head(ResponseHead, Option<Bytes>),
    /// Bytes of an event stream. Write them at once.
    Bytes(Bytes),
    /// The stream has ended in order. Nothing follows.
    End,
    /// The response is cut off, or there is none: reset the stream, or close the connection.
    /// Nothing follows.
    Cut,
}

#[derive(Debug)]
struct OpenExchange {
    decoder: BodyDecoder,
    reading: BodyState,
    parts: VecDeque<Part>,
    /// Bytes in `parts`, and those that were taken last and may not be written yet.
    unsent: usize,
    taken: usize,
    waker: Option<Waker>,
}

/// What becomes of the body of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodyState {
    /// It is kept until the request is admitted.
    Held,
    /// It is passed to the engine.
    Wanted,
    /// It has ended, or the engine has refused it.
    Over,
}

impl OpenExchange {
    fn new(head: &RequestHead, engine: &Server) -> Self {
        let config = engine.config();
        let reading = if config.admit { BodyState::Held } else { BodyState::Wanted };
        let decoder = BodyDecoder::of_request(head, &config.limits.frame);
        Self { decoder, reading, parts: VecDeque::new(), unsent: 0, taken: 0, waker: None }
    }

    /// Returns the next item of the body for the engine.
    fn next_item(&mut self) -> Option<Inbound> {
        if self.reading != BodyState::Wanted {
            return None;
        }
        let item = match self.decoder.poll_item() {
            Some(item) => item,
            None => {
                self.decoder.broken()?;
                Inbound::Reject(BadRequest { status: 413, why: "the body is larger than the limit" })
            }
        };
        if matches!(item, Inbound::End | Inbound::Reject(_)) {
            self.reading = BodyState::Over;
        }
        Some(item)
    }

    fn wants_body(&self) -> bool {
        self.reading != BodyState::Over && self.parts.is_empty()
    }
}

impl GatewayState {
    pub(super) const fn new(engine: Server, backlog: Backlog) -> Self {
        Self { engine, backlog, open: BTreeMap::new(), last: 0, ended: false }
    }

    /// Begins the exchange of a request, whose body follows. After the end of the server the only
    /// part is [`Part::Cut`].
    pub(super) fn begin(&mut self, now: Instant, peer: Peer, head: RequestHead) -> ExchangeId {
        self.last += 1;
        let id = ExchangeId(self.last);
        if !self.ended {
            self.open.insert(id, OpenExchange::new(&head, &self.engine));
            self.engine.handle_event(now, id, ExchangeEvent::From(Arc::new(peer)));
            self.engine.handle_event(now, id, ExchangeEvent::Inbound(Inbound::Request(head)));
        }
        id
    }

    /// Feeds the decoder of a body. Returns whether more of the body is wanted: if not, the
    /// response is there.
    pub(super) fn read(
        &mut self,
        now: Instant,
        id: ExchangeId,
        later: &mut Later,
        feed: impl FnOnce(&mut BodyDecoder),
    ) -> bool {
        let Some(open) = self.open.get_mut(&id).filter(|open| open.reading != BodyState::Over) else { return false };
        feed(&mut open.decoder);
        self.pass_on(now, id, later);
        self.sort(now, later);
        self.open.get(&id).is_some_and(OpenExchange::wants_body)
    }

    /// Reports that the client has disconnected, or that nothing takes the response any more. Does
    /// nothing after the last part.
    pub(super) fn gone(&mut self, now: Instant, id: ExchangeId, later: &mut Later) {
        if let Some(open) = self.open.remove(&id) {
            later.replaced(open.waker);
            self.engine.handle_event(now, id, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
        }
    }

    /// Returns whether the body is to be read: not before the request is admitted, and not once
    /// there is a response. `None` if that is not decided: `waker` is woken then.
    pub(super) fn poll_wants_body(&mut self, id: ExchangeId, waker: &Waker, later: &mut Later) -> Option<bool> {
        match self.open.get_mut(&id) {
            None => Some(false),
            Some(open) if open.reading == BodyState::Held && open.parts.is_empty() => {
                later.replaced(open.waker.replace(waker.clone()));
                None
            }
            Some(open) => Some(open.wants_body()),
        }
    }

    /// Returns the next part of the response. The one before counts as written. `None` if there is
    /// none for now: `waker` is woken by the next one.
    pub(super) fn poll_part(&mut self, now: Instant, id: ExchangeId, waker: &Waker, later: &mut Later) -> Option<Part> {
        let Some(open) = self.open.get_mut(&id) else { return Some(Part::Cut) };
        let taken = take(&mut open.taken);
        open.unsent -= taken;
        let (unsent, part) = (open.unsent, open.parts.pop_front());
        match &part {
            Some(Part::Bytes(bytes)) => open.taken = bytes.len(),
            Some(Part::End | Part::Cut | Part::Head(_, Some(_))) => {
                later.replaced(self.open.remove(&id).and_then(|open| open.waker));
            }
            Some(Part::Head(_, None)) => {}
            None => later.replaced(open.waker.replace(waker.clone())),
        }
        // An exchange that was cut off has been forgotten.
        if taken > 0 && part != Some(Part::Cut) {
            self.engine.handle_event(now, id, ExchangeEvent::Unsent(unsent));
        }
        part
    }

    /// Executes a command of a callback.
    pub(super) fn command(&mut self, now: Instant, command: ServerCommand) -> Result<(), Refusal> {
        self.backlog.running.answered(&command);
        self.engine.act(now, command).map(drop).map_err(|refused| refused.why)
    }

    /// Ends everything at once: cancels the callbacks, and cuts every response.
    pub(super) fn end(&mut self, has_driver: bool, later: &mut Later) {
        self.ended = true;
        for open in self.open.values_mut() {
            open.parts.push_back(Part::Cut);
            later.wake(open.waker.take());
        }
        self.backlog.stop(has_driver, later);
    }

    /// Passes the items of a body to the engine, which may answer or cut the exchange at any item.
    fn pass_on(&mut self, now: Instant, id: ExchangeId, later: &mut Later) {
        while let Some(item) = self.open.get_mut(&id).and_then(OpenExchange::next_item) {
            self.engine.handle_event(now, id, ExchangeEvent::Inbound(item));
            self.collect(later);
        }
    }

    /// Takes the outputs of the engine. Returns the exchanges whose body it now wants.
    fn collect(&mut self, later: &mut Later) -> Vec<ExchangeId> {
        let mut admitted = Vec::new();
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Send(id, Outbound::Continue) => {
                    if let Some(open) = self.open.get_mut(&id).filter(|open| open.reading == BodyState::Held) {
                        open.reading = BodyState::Wanted;
                        later.wake(open.waker.take());
                        admitted.push(id);
                    }
                }
                Output::Send(id, outbound) => self.push(id, part(outbound), later),
                Output::Abort(id) => self.push(id, Some(Part::Cut), later),
                Output::Event(event) => {
                    self.ended |= matches!(event, Event::Terminated);
                    let work = self.backlog.sort(event, later);
                    self.backlog.push(work);
                }
            }
        }
        admitted
    }

    fn push(&mut self, id: ExchangeId, part: Option<Part>, later: &mut Later) {
        let (Some(open), Some(part)) = (self.open.get_mut(&id), part) else { return };
        if let Part::Bytes(bytes) = &part {
            open.unsent += bytes.len();
        }
        open.parts.push_back(part);
        later.wake(open.waker.take());
    }
}

impl Front for GatewayState {
    type Setup = GatewaySetup;
    type Event = Event;

    /// Also passes on the bodies that the engine admits.
    fn sort(&mut self, now: Instant, later: &mut Later) {
        for admitted in self.collect(later) {
            self.pass_on(now, admitted, later);
        }
    }

    fn has_task(&self) -> bool {
        self.backlog.has_task()
    }

    fn ends(&self) -> bool {
        self.backlog.ends()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.engine.poll_timeout(), self.backlog.guard.poll_timeout())
    }

    fn attention(&mut self) -> &mut Attention {
        &mut self.backlog.attention
    }

    fn events(&mut self) -> &mut WaitingEvents<Event> {
        &mut self.backlog.events
    }
}

impl Engine for GatewayState {
    const NAME: &'static str = "Gateway";

    fn next_task(&mut self, shared: &Arc<Shared<Self>>) -> Option<Task> {
        Some(match self.backlog.next()? {
            NextTask::Route(work) => Task::Route(RouteTask(RoutingKind::Work(work, Arc::clone(shared) as _))),
            NextTask::Guard(task) => task,
            NextTask::Deliver => Task::Deliver(Events::new(Arc::clone(shared) as _)),
        })
    }

    fn take_end(&mut self, _later: &mut Later) -> bool {
        self.backlog.next_end()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
        self.backlog.guard.handle_timeout(now);
    }

    fn abandon(&mut self, _now: Instant, later: &mut Later) {
        self.end(false, later);
    }
}

/// Returns the part of a response. `None` for what a server over HTTP does not send.
fn part(outbound: Outbound) -> Option<Part> {
    Some(match outbound {
        Outbound::Response { head, body: Body::Full(body) } => Part::Head(head, Some(body)),
        Outbound::Response { head, body: Body::Stream } => Part::Head(head, None),
        Outbound::Event { event, id, retry, data } => {
            Part::Bytes(frame::encode_event(event, id.as_deref(), retry, &data))
        }
        Outbound::Comment(text) => Part::Bytes(frame::encode_comment(&text)),
        // The HTTP library has no way to hand the connection out.
        Outbound::Response { body: Body::WebSocket(_), .. } => Part::Cut,
        Outbound::End => Part::End,
        Outbound::Continue | Outbound::Request { .. } | Outbound::Message(_) => return None,
    })
}
