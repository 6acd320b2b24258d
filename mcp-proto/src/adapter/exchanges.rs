//! Seam B without a lock and without waiting: the exchanges of a server whose HTTP is spoken by a
//! library. Requests and their bodies go in, parts of responses come out.

use super::job::Link;
use super::server_core::{ServerTask, ServerTasks};
use crate::error::Refusal;
use crate::exchange::{
    BadRequest, Body, Closed, ExchangeEvent, ExchangeId, Inbound, Outbound, Peer, RequestHead, ResponseHead, Sent,
};
use crate::frame::{self, BodyDecoder};
use crate::input::{Change, Principal, ServerCommand};
use crate::server::{Event, Output, Server};
use crate::time::Instant;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem::take;
use core::task::Waker;
use core::time::Duration;

/// A server behind an HTTP library: its engine, the exchanges that are open, and the callbacks that
/// run. It takes no lock and calls no callback. After each change, carry out what
/// [`next_task`](Self::next_task) returns until there is nothing.
///
/// [`Gateway`](super::Gateway) is this behind a lock.
#[derive(Debug)]
pub struct Exchanges {
    engine: Server,
    tasks: ServerTasks,
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
    reading: BodyReading,
    parts: VecDeque<Part>,
    /// Bytes in `parts`, and those that were taken last and may not be written yet.
    unsent: usize,
    taken: usize,
    waker: Option<Waker>,
}

/// What becomes of the body of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodyReading {
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
        let reading = if config.admit { BodyReading::Held } else { BodyReading::Wanted };
        let decoder = BodyDecoder::of_request(head, &config.limits.frame);
        Self { decoder, reading, parts: VecDeque::new(), unsent: 0, taken: 0, waker: None }
    }

    /// Returns the next item of the body for the engine.
    fn next_item(&mut self) -> Option<Inbound> {
        if self.reading != BodyReading::Wanted {
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
            self.reading = BodyReading::Over;
        }
        Some(item)
    }

    fn wants_body(&self) -> bool {
        self.reading != BodyReading::Over && self.parts.is_empty()
    }
}

impl Exchanges {
    /// Creates a server without exchanges. Callbacks send their commands through `link`, which
    /// leads to [`command`](Self::command).
    pub fn new(engine: Server, link: Link) -> Self {
        Self { engine, tasks: ServerTasks::new(link), open: BTreeMap::new(), last: 0, ended: false }
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Server {
        &self.engine
    }

    /// Begins the exchange of a request, whose body follows. The target is as received; the
    /// `:authority` of HTTP/2 is a field `Host`. After the end of the server the only part is
    /// [`Part::Cut`].
    pub fn begin(&mut self, now: Instant, peer: Peer, head: RequestHead) -> ExchangeId {
        self.last += 1;
        let id = ExchangeId(self.last);
        if self.ended {
            return id;
        }
        self.open.insert(id, OpenExchange::new(&head, &self.engine));
        self.engine.handle_event(now, id, ExchangeEvent::From(Arc::new(peer)));
        self.engine.handle_event(now, id, ExchangeEvent::Inbound(Inbound::Request(head)));
        self.run(now);
        id
    }

    /// Reports bytes of the body. Returns whether more are wanted: if not, the response is there.
    pub fn body(&mut self, now: Instant, id: ExchangeId, bytes: Bytes) -> bool {
        self.read(now, id, |decoder| decoder.bytes(bytes))
    }

    /// Reports the end of the body.
    pub fn end(&mut self, now: Instant, id: ExchangeId) {
        self.read(now, id, BodyDecoder::end);
    }

    /// Reports that the client has disconnected, or that nothing takes the response any more.
    /// Returns a waker, to be dropped outside of every lock. Does nothing after the last part.
    pub fn gone(&mut self, now: Instant, id: ExchangeId) -> Option<Waker> {
        let open = self.open.remove(&id)?;
        self.engine.handle_event(now, id, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
        self.run(now);
        open.waker
    }

    /// Returns whether the body is to be read: not before the request is admitted, and not once
    /// there is a response. `None` if that is not decided: `waker` is woken then.
    pub fn poll_wants_body(&mut self, id: ExchangeId, waker: &Waker) -> (Option<bool>, Option<Waker>) {
        match self.open.get_mut(&id) {
            None => (Some(false), None),
            Some(open) if open.reading == BodyReading::Held && open.parts.is_empty() => {
                (None, open.waker.replace(waker.clone()))
            }
            Some(open) => (Some(open.wants_body()), None),
        }
    }

    /// Returns the next part of the response. The one before counts as written. `None` if there is
    /// none for now: `waker` is woken by the next one. The second value is the waker before, to be
    /// dropped outside of every lock.
    pub fn poll_part(&mut self, now: Instant, id: ExchangeId, waker: &Waker) -> (Option<Part>, Option<Waker>) {
        let Some(open) = self.open.get_mut(&id) else { return (Some(Part::Cut), None) };
        let taken = take(&mut open.taken);
        open.unsent -= taken;
        let (unsent, part) = (open.unsent, open.parts.pop_front());
        let mut before = None;
        match &part {
            Some(Part::Bytes(bytes)) => open.taken = bytes.len(),
            Some(Part::End | Part::Cut | Part::Head(_, Some(_))) => {
                before = self.open.remove(&id).and_then(|open| open.waker);
            }
            Some(Part::Head(_, None)) => {}
            None => before = open.waker.replace(waker.clone()),
        }
        // An exchange that was cut off has been forgotten.
        if taken > 0 && part != Some(Part::Cut) {
            self.engine.handle_event(now, id, ExchangeEvent::Unsent(unsent));
            self.run(now);
        }
        (part, before)
    }

    /// Executes a command of a callback.
    ///
    /// # Errors
    /// The refusal of the engine.
    pub fn command(&mut self, now: Instant, command: ServerCommand) -> Result<(), Refusal> {
        self.tasks.running.answered(&command);
        let done = self.engine.command(now, command).map(drop).map_err(|refused| refused.why);
        self.run(now);
        done
    }

    /// Notifies the clients that subscribed to a change.
    pub fn publish(&mut self, now: Instant, change: Change) {
        self.engine.publish(now, change);
        self.run(now);
    }

    /// The web page of this id is complete: see [`Server::elicited`].
    pub fn elicited(&mut self, now: Instant, id: &str) {
        self.engine.elicited(now, id);
        self.run(now);
    }

    /// Ends everything that was admitted for this principal: see [`Server::revoke`].
    pub fn revoke(&mut self, now: Instant, principal: &Principal) {
        self.engine.revoke(now, principal);
        self.run(now);
    }

    /// Accepts nothing more, and gives running requests `grace` to end: see [`Server::shutdown`].
    pub fn shutdown(&mut self, now: Instant, grace: Duration) {
        self.engine.shutdown(now, grace);
        self.run(now);
    }

    /// Ends everything at once: cancels the callbacks, and cuts every response.
    pub fn abandon(&mut self) {
        self.ended = true;
        self.tasks.cancel_all();
        for open in self.open.values_mut() {
            open.parts.push_back(Part::Cut);
            self.tasks.queue.extend(open.waker.take().map(ServerTask::Wake));
        }
    }

    /// Fires the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
        self.run(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }

    /// Returns the next task. `None` if there is none for now.
    pub fn next_task(&mut self) -> Option<ServerTask> {
        self.tasks.queue.pop_front()
    }

    /// Returns the number of callbacks that run although their request was cancelled.
    pub fn abandoned(&self) -> usize {
        self.tasks.running.abandoned()
    }

    /// Feeds the decoder of a body. Returns whether more of the body is wanted.
    fn read(&mut self, now: Instant, id: ExchangeId, feed: impl FnOnce(&mut BodyDecoder)) -> bool {
        let Some(open) = self.open.get_mut(&id).filter(|open| open.reading != BodyReading::Over) else { return false };
        feed(&mut open.decoder);
        self.pass_on(now, id);
        self.run(now);
        self.open.get(&id).is_some_and(OpenExchange::wants_body)
    }

    /// Passes the items of a body to the engine, which may answer or cut the exchange at any item.
    fn pass_on(&mut self, now: Instant, id: ExchangeId) {
        while let Some(item) = self.open.get_mut(&id).and_then(OpenExchange::next_item) {
            self.engine.handle_event(now, id, ExchangeEvent::Inbound(item));
            self.collect();
        }
    }

    /// Takes the outputs of the engine, and passes on the bodies that they admit.
    fn run(&mut self, now: Instant) {
        for admitted in self.collect() {
            self.pass_on(now, admitted);
        }
    }

    /// Takes the outputs of the engine. Returns the exchanges whose body it now wants.
    fn collect(&mut self) -> Vec<ExchangeId> {
        let mut admitted = Vec::new();
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Send(id, Outbound::Continue) => {
                    if let Some(open) = self.open.get_mut(&id).filter(|open| open.reading == BodyReading::Held) {
                        open.reading = BodyReading::Wanted;
                        self.tasks.queue.extend(open.waker.take().map(ServerTask::Wake));
                        admitted.push(id);
                    }
                }
                Output::Send(id, outbound) => self.push(id, part(outbound)),
                Output::Abort(id) => self.push(id, Some(Part::Cut)),
                Output::Event(event) => {
                    self.ended |= matches!(event, Event::Terminated);
                    self.tasks.push(event);
                }
            }
        }
        admitted
    }

    fn push(&mut self, id: ExchangeId, part: Option<Part>) {
        let (Some(open), Some(part)) = (self.open.get_mut(&id), part) else { return };
        if let Part::Bytes(bytes) = &part {
            open.unsent += bytes.len();
        }
        open.parts.push_back(part);
        self.tasks.queue.extend(open.waker.take().map(ServerTask::Wake));
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
