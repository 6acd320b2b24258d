//! One channel: its codec, the exchange that is on it, and its timers. What only the server of an HTTP connection does is in `serving`.
//! The ladder that ends a program is MCP 2025-11-25, lifecycle, shutdown.
//! No engine, no pool and no socket may be known here.

use super::room::Reservation;
use super::tally;
use crate::error::Diagnostic;
use crate::exchange::*;
use crate::frame::{Conn, Kind};
use crate::hook::MessageHook;
use crate::input::IoEvent;
use crate::limits::FrameLimits;
use crate::stats::Traffic;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::iter::from_fn;

mod asking;
mod ending;
mod serving;
mod timers;

use timers::{Due, RateFloor};

/// How many bytes of a request that was answered may be unreported: what a socket takes at once.
const LATE_REPORT: usize = 64 << 10;

/// A text of this size takes about a millisecond to parse in the worst case, which is brackets in a build without optimization.
const LONG: usize = 32 << 10;

/// One channel: its codec, the exchange that is on it, and its timers. It knows no engine.
///
/// After each call that changes it, take its facts with [`poll_fact`](Self::poll_fact) until there are none, hand each to the engine and
/// what the engine says back to [`send`](Self::send) and [`abort`](Self::abort); then take its outputs and its diagnostics. Bytes are
/// parsed as facts are taken, so an exchange that the engine aborts in answer to one fact yields no further one.
#[derive(Debug)]
pub struct Connection {
    number: u64,
    sequence: u64,
    side: Side,
    conn: Conn,
    hook: Option<MessageHook>,
    limits: Arc<FrameLimits>,
    now: Instant,
    /// Server: who is at the other end, if anything is known of it.
    peer: Option<Box<Peer>>,
    exchange: Option<ExchangeId>,
    /// HTTP server: the exchange before, whose answer was said and is not written yet.
    answered: Option<ExchangeId>,
    /// HTTP server: how fast the body comes that is awaited, or the answer goes that was said.
    pace: RateFloor,
    /// HTTP server: the request of the exchange was read to its end, or is refused.
    asked: bool,
    /// HTTP server: its part of what all connections may hold.
    share: Option<Reservation>,
    /// HTTP client: how far the answer to the latest request has come.
    answer: Answer,
    /// HTTP client: it is idle, and more such connections are open than are kept.
    surplus: bool,
    open: bool,
    eof: bool,
    /// HTTP server: `ExchangeEvent::ReadClosed` was reported.
    told_eof: bool,
    gone: Option<Closed>,
    ending: Option<Shutdown>,
    facts: VecDeque<(ExchangeId, ExchangeEvent)>,
    outputs: VecDeque<ConnectionOutput>,
    diagnostics: VecDeque<Diagnostic>,
    /// Framed bytes that were not reported written.
    unsent: usize,
    /// The part of `unsent` that was taken by `poll_output`.
    taken: usize,
    /// Whether bytes of the exchange were taken by `poll_output`.
    handed: bool,
    /// Bytes read since all facts were taken.
    backlog: usize,
    timer: Option<(Instant, Due)>,
    /// What went over it since that was last taken.
    traffic: Traffic,
}

/// What a connection wants of its channel, in order.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub enum ConnectionOutput {
    /// Write these bytes.
    Write(Bytes),
    /// End the channel in this way.
    Close(Shutdown),
}

/// What is spoken, from which side, and how the channel is ended.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Side {
    DuplexClient { program: bool },
    DuplexServer,
    HttpClient,
    HttpServer,
}

/// How far the answer to the request of an HTTP client has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// No byte of it came.
    Awaited,
    /// Its head is not complete.
    Begun,
    /// Its head came, and its body has an end.
    Body,
    /// Its head came, and its body is an event stream, which may rest for as long as it likes.
    Stream,
}

impl Connection {
    /// A channel of a client, to be opened. `program`: ending it goes down the ladder `WriteHalf`, `Terminate`, `Abort`; else `WriteHalf`,
    /// `Abort`. If it is not open after [`FrameLimits::open_timeout`], its exchange fails and it is closed.
    pub fn client(kind: Kind, program: bool, limits: &FrameLimits, now: Instant) -> Self {
        let mut connection = Self::new(0, kind, Side::DuplexClient { program }, limits, now);
        connection.timer = Some((now + limits.open_timeout, Due::Connect));
        connection
    }

    /// A channel that a server accepted, open already. On newline-delimited messages its exchange exists from the start, and the first
    /// fact is [`ExchangeEvent::Opened`] with `peer`. Over HTTP each request comes after [`ExchangeEvent::From`] with `peer`, unless nothing is known of it
    /// ([`Peer::default`]). Two connections of one server must not have the same number.
    pub fn server(number: u64, kind: Kind, peer: Peer, limits: &FrameLimits, now: Instant) -> Self {
        let mut connection = Self::new(number, kind, Side::DuplexServer, limits, now);
        connection.open = true;
        connection.peer = (peer != Peer::default()).then(|| Box::new(peer.clone()));
        if connection.side == Side::HttpServer {
            connection.arm(limits.head_timeout, Due::Head);
        } else {
            let exchange = connection.mint();
            connection.facts.push_back((exchange, ExchangeEvent::Opened(peer)));
        }
        connection
    }

    fn new(number: u64, kind: Kind, duplex: Side, limits: &FrameLimits, now: Instant) -> Self {
        let side = match kind {
            Kind::Lines => duplex,
            #[cfg(feature = "http")]
            Kind::HttpClient => Side::HttpClient,
            #[cfg(feature = "http")]
            Kind::HttpServer => Side::HttpServer,
        };
        let limits = Arc::new(limits.clone());
        Self {
            number,
            sequence: 0,
            side,
            conn: Conn::sharing(kind, limits.clone()),
            hook: None,
            limits,
            now,
            peer: None,
            exchange: None,
            answered: None,
            pace: RateFloor::from(now),
            asked: false,
            share: None,
            answer: Answer::Awaited,
            surplus: false,
            open: false,
            eof: false,
            told_eof: false,
            gone: None,
            ending: None,
            facts: VecDeque::new(),
            outputs: VecDeque::new(),
            diagnostics: VecDeque::new(),
            unsent: 0,
            taken: 0,
            handed: false,
            backlog: 0,
            timer: None,
            traffic: Traffic::default(),
        }
    }

    /// The number that the ids of accepted exchanges carry; zero on a client.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// A client puts an exchange on it. The one before must be over.
    pub fn begin(&mut self, exchange: ExchangeId) {
        debug_assert!(
            self.exchange.is_none() && self.unsent <= LATE_REPORT,
            "invariant: a channel carries one exchange at a time"
        );
        self.exchange = Some(exchange);
        self.answer = Answer::Awaited;
        self.surplus = false;
        self.handed = false;
        if self.open {
            self.timer = None;
        }
    }

    /// The exchange that is on it; `None` between two, and after the end.
    pub fn exchange(&self) -> Option<ExchangeId> {
        self.exchange
    }

    /// Tells it what happened to its channel. After [`IoEvent::Closed`] nothing is heard any more.
    pub fn handle_io(&mut self, now: Instant, wire: IoEvent) {
        self.catch_up(now);
        if self.gone.is_some() {
            return;
        }
        match wire {
            IoEvent::Opened(peer) => self.opened(peer),
            IoEvent::Bytes(bytes) => {
                self.traffic.bytes_in += bytes.len() as u64;
                self.read(bytes);
            }
            IoEvent::Eof => self.end_of_input(),
            IoEvent::Written(n) => self.written(n),
            IoEvent::Closed(why) => self.closed(why),
        }
    }

    /// Says something on the exchange. Nothing happens if the exchange is over, or after its `End`. Before the channel is open it is kept.
    /// What cannot be written where it stands (see [`Conn::encode`]) is not written, which is a diagnostic (`out-of-place`).
    ///
    /// The answer of an HTTP server ends its exchange. Until the last byte of it is written, facts still tell what becomes of it:
    /// [`ExchangeEvent::Unsent`], at last with zero, or [`ExchangeEvent::Failed`] if the channel ends before. Both are harmless to an engine that has
    /// forgotten the exchange.
    pub fn send(&mut self, now: Instant, exchange: ExchangeId, outgoing: Outbound) {
        self.now = self.now.max(now);
        if self.exchange != Some(exchange) || self.ending.is_some() || self.gone.is_some() {
            return;
        }
        let Some(outgoing) = self.rule(exchange, outgoing) else { return };
        let mut said = Traffic::default();
        tally::said(&mut said, &outgoing);
        let last = matches!(outgoing, Outbound::End | Outbound::Response { body: Body::Full(_), .. });
        let held = self.conn.is_held();
        self.conn.encode(outgoing);
        if let Some(why) = self.conn.take_refused() {
            return self.out_of_place(exchange, why);
        }
        self.traffic += said;
        let more = self.collect();
        if more && self.open && self.side == Side::HttpClient {
            self.arm_request();
        }
        let answered = last && self.side == Side::HttpServer;
        if more || answered {
            self.facts.push_back((exchange, ExchangeEvent::Unsent(self.unsent)));
        }
        if answered {
            self.answered(exchange);
        } else if held && !self.conn.is_held() && self.side == Side::HttpServer {
            self.await_body();
        }
        if last && matches!(self.side, Side::DuplexClient { .. } | Side::DuplexServer) {
            self.half_close();
        }
    }

    /// Ends the exchange and the channel at once. No fact of it follows. Nothing happens if the exchange is over, for which an HTTP server
    /// waits until its answer is written.
    pub fn abort(&mut self, now: Instant, exchange: ExchangeId) {
        self.now = self.now.max(now);
        if self.exchange == Some(exchange) || self.answered == Some(exchange) {
            (self.exchange, self.answered) = (None, None);
            self.facts.retain(|(of, _)| *of != exchange);
            self.abort_channel();
        }
    }

    /// Ends the channel in order, since the engine has ended: newline-delimited messages go down the ladder as after
    /// [`Outbound::End`]; HTTP closes, after what was handed over is written.
    pub fn close(&mut self, now: Instant) {
        self.catch_up(now);
        if self.gone.is_some() || self.ending.is_some() {
            return;
        }
        let unfinished = self.exchange.is_some() || self.unsent == 0;
        match self.side {
            _ if !self.open => self.abort_channel(),
            Side::HttpClient => self.abort_channel(),
            Side::HttpServer if unfinished => self.abort_channel(),
            _ => self.half_close(),
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout). Valid once all facts were taken.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timer.map(|(at, _)| at)
    }

    /// What became of an exchange on it.
    pub fn poll_fact(&mut self) -> Option<(ExchangeId, ExchangeEvent)> {
        while self.facts.is_empty() && self.step() {}
        let fact = self.facts.pop_front();
        if fact.is_none() {
            self.backlog = 0;
        }
        fact
    }

    /// What [`poll_fact`](Self::poll_fact) and [`poll_diagnostic`](Self::poll_diagnostic) give, for [`SharedServer::facts`](super::SharedServer::facts): all
    /// of it, but that a client which waits to be asked for its body is not asked before the engine has seen the head. Call it again,
    /// until there are none.
    pub fn take_facts(&mut self) -> (Vec<(ExchangeId, ExchangeEvent)>, Vec<Diagnostic>) {
        let mut facts = Vec::new();
        while let Some(fact) = self.poll_fact() {
            facts.push(fact);
            // What is there already goes along: no fact of another connection comes between a request and who sends it.
            if self.conn.expects() && self.facts.is_empty() {
                break;
            }
        }
        (facts, from_fn(|| self.poll_diagnostic()).collect())
    }

    /// Whether [`take_facts`](Self::take_facts), and telling the engine what it gives, may take longer than about a millisecond, since a
    /// message of more than 32 KiB may be complete. An executor should have a thread of its own do both.
    pub fn takes_long(&self) -> bool {
        self.backlog > 0 && self.conn.buffered() > LONG
    }

    /// What went over it since this was last asked, for [`SharedServer::count`](super::SharedServer::count). What was read and not yet turned into facts is
    /// in it as bytes, not as messages.
    pub fn take_traffic(&mut self) -> Traffic {
        core::mem::take(&mut self.traffic)
    }

    /// What to do with the channel next. Nothing but [`Shutdown::Abort`] comes before it is open, and nothing after it is closed.
    pub fn poll_output(&mut self) -> Option<ConnectionOutput> {
        if !self.open && self.outputs.front() != Some(&ConnectionOutput::Close(Shutdown::Abort)) {
            return None;
        }
        let output = self.outputs.pop_front()?;
        if let ConnectionOutput::Write(bytes) = &output {
            self.taken += bytes.len();
            self.handed = true;
        }
        Some(output)
    }

    /// What the other side did wrong that belongs to no exchange.
    pub fn poll_diagnostic(&mut self) -> Option<Diagnostic> {
        self.diagnostics.pop_front()
    }

    /// Whether the driver should read on. False before it is open, while a connection of lines waits for its admission, and after its end;
    /// else only at a bound: facts that nobody takes,
    /// requests that wait behind an unfinished answer, or a body that is held back hold [`FrameLimits::max_read_ahead`] bytes, or more than
    /// 64 KiB while all connections together hold [`ServerLimits::max_held`](crate::limits::ServerLimits::max_held).
    pub fn wants_read(&self) -> bool {
        let held = if self.holds() { self.conn.buffered() } else { 0 };
        let bound = self.limits.max_read_ahead.max(1);
        let reads = self.open && !self.eof && self.gone.is_none() && self.ending != Some(Shutdown::Abort);
        let reads = reads && !self.waits_for_room() && !(self.side == Side::DuplexServer && self.conn.is_held());
        reads && self.backlog < bound && held < bound
    }

    /// Whether `closed` was told and all facts were taken: nothing follows.
    pub fn is_closed(&self) -> bool {
        self.gone.is_some() && self.facts.is_empty() && self.exchange.is_none()
    }

    /// Framed bytes that were not reported written.
    pub(super) fn unsent(&self) -> usize {
        self.unsent
    }

    /// How the channel ended, once that was told.
    pub(super) fn closed_by(&self) -> Option<&Closed> {
        self.gone.as_ref()
    }

    /// Whether it is being ended.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }
}

/// What happened to the channel.
impl Connection {
    fn opened(&mut self, peer: Peer) {
        if self.open || self.ending == Some(Shutdown::Abort) {
            return;
        }
        self.open = true;
        self.timer = None;
        match (self.side, self.exchange) {
            (Side::DuplexClient { .. }, Some(exchange)) => {
                self.facts.push_back((exchange, ExchangeEvent::Opened(peer)))
            }
            (Side::HttpClient, None) => self.arm_idle(),
            (Side::HttpClient, Some(_)) => self.arm_request(),
            _ => {}
        }
        if self.ending.is_some() {
            self.arm_end();
        }
    }

    fn read(&mut self, bytes: Bytes) {
        if !self.open || self.eof || bytes.is_empty() || self.ending == Some(Shutdown::Abort) {
            return;
        }
        match (self.side, self.exchange) {
            // After a refusal the channel is read so that the client sees the answer and no reset (RFC 9112 section 9.6).
            (Side::HttpServer, None) if self.ending.is_some() => return,
            (Side::HttpClient, None) => return self.late_bytes(),
            (Side::HttpClient, Some(_)) => self.answer_comes(),
            (Side::DuplexClient { .. } | Side::DuplexServer, None) => return,
            _ => {}
        }
        self.backlog += bytes.len();
        self.conn.bytes(bytes);
    }

    fn end_of_input(&mut self) {
        if !self.open || self.eof {
            return;
        }
        self.eof = true;
        match (self.side, self.exchange) {
            (Side::HttpClient, None) => self.abort_channel(),
            // An answer that is complete still goes out.
            (Side::HttpServer, None) if self.ending.is_none() => self.half_close(),
            (_, Some(_)) => self.conn.eof(),
            _ => {}
        }
    }

    fn written(&mut self, n: usize) {
        let n = n.min(self.taken);
        if n == 0 {
            return;
        }
        self.taken -= n;
        self.unsent -= n;
        self.traffic.bytes_out += n as u64;
        if let Some(exchange) = self.exchange.or(self.answered) {
            self.facts.push_back((exchange, ExchangeEvent::Unsent(self.unsent)));
        }
        if self.answered.is_some() {
            self.answer_goes_out(n);
        }
        match (self.side, self.ending) {
            (Side::HttpServer | Side::DuplexServer, Some(Shutdown::WriteHalf)) => self.arm_end(),
            (Side::HttpServer, None) if self.exchange.is_none() => self.arm_next(),
            (Side::HttpClient, None) if self.exchange.is_none() && self.unsent == 0 => {
                self.arm_idle();
            }
            (Side::HttpClient, None) if self.exchange.is_some() => self.arm_request(),
            _ => {}
        }
    }

    fn closed(&mut self, why: Closed) {
        // A driver may leave out `eof` where the end of the channel says it as well.
        if matches!(why, Closed::Eof | Closed::Exited(_)) && self.open && !self.eof {
            self.eof = true;
            self.conn.eof();
        }
        self.unwritten(&why);
        self.gone = Some(why);
        self.outputs.clear();
        self.timer = None;
    }
}

/// From bytes to facts.
impl Connection {
    /// Time passes, and what was read before is understood before: when facts are taken changes nothing.
    fn catch_up(&mut self, now: Instant) {
        while self.step() {}
        self.now = self.now.max(now);
    }

    /// Takes one step from what was read to facts. False: there is none before something happens.
    fn step(&mut self) -> bool {
        self.understand() || self.outgrows()
    }

    fn understand(&mut self) -> bool {
        let Some(exchange) = self.exchange else { return self.side == Side::HttpServer && self.accept() };
        if !self.holds() {
            let item = self.conn.poll_item();
            self.content_comes();
            // Reading an HTTP request may ask for its body (`100 Continue`).
            if self.collect() {
                self.facts.push_back((exchange, ExchangeEvent::Unsent(self.unsent)));
            }
            if let Some(item) = item {
                let whole = matches!(item, Inbound::Message(_) | Inbound::Batch(_) | Inbound::Invalid(_));
                self.item(exchange, item);
                // A JSON body ends with its message: whoever answers it, or goes on after it, does so after the end.
                if whole
                    && matches!(self.side, Side::HttpClient | Side::HttpServer)
                    && let Some(end) = self.conn.poll_item()
                {
                    self.item(exchange, end);
                }
                return true;
            }
            if !self.eof
                && let Some(how) = self.conn.broken()
            {
                let why = Closed::Broken(how.clone());
                self.fail(exchange, why);
                return true;
            }
        }
        if self.side == Side::HttpServer && self.asked && self.eof && self.gone.is_none() {
            return self.read_closed(exchange);
        }
        // On a duplex channel the end of the input is an item; it is over when it is closed.
        let cut = self.eof && matches!(self.side, Side::HttpClient | Side::HttpServer);
        let Some(why) = self.gone.clone().or(cut.then_some(Closed::Eof)) else { return false };
        self.fail(exchange, why);
        true
    }

    /// Time is earned by content and not by the framing around it, which a sender can stretch.
    fn content_comes(&mut self) {
        match (self.conn.take_content(), self.side) {
            (0, _) => {}
            (n, Side::HttpServer) if !self.asked => self.body_goes_on(n),
            (_, Side::HttpClient) => self.answer_goes_on(),
            _ => {}
        }
    }

    fn item(&mut self, exchange: ExchangeId, item: Inbound) {
        tally::read(&mut self.traffic, &item);
        let item = match &self.hook {
            Some(hook) => hook.incoming(item),
            None => item,
        };
        let end = item == Inbound::End;
        let refused = matches!(item, Inbound::Reject(_));
        if let Inbound::Response(head) = &item {
            self.answer_begins(head);
        }
        self.facts.push_back((exchange, ExchangeEvent::Inbound(item)));
        match self.side {
            Side::HttpServer if end || refused => {
                self.asked = true;
                self.timer = None;
            }
            Side::HttpClient if end => self.complete(),
            _ => {}
        }
    }

    /// Takes what the codec has framed; whether there was anything.
    fn collect(&mut self) -> bool {
        let before = self.unsent;
        while let Some(bytes) = self.conn.poll_write() {
            self.unsent += bytes.len();
            self.outputs.push_back(ConnectionOutput::Write(bytes));
        }
        self.unsent != before
    }

    /// The response to our request is complete. The report that the request was written may come after it: a few bytes are taken for
    /// written, since a second connection for every such race would be worse. A large rest is a request that was answered early, and
    /// until it is written the channel is not used again.
    fn complete(&mut self) {
        self.exchange = None;
        let late = self.conn.buffered();
        if late > 0 {
            self.report_late();
        }
        if late > 0 || self.eof || self.gone.is_some() || !self.conn.keep_alive() {
            self.abort_channel();
        } else if self.unsent > 0 {
            self.arm(self.limits.linger_timeout, Due::Linger);
        } else {
            self.arm_idle();
        }
    }

    fn fail(&mut self, exchange: ExchangeId, why: Closed) {
        self.exchange = None;
        let sent = if self.handed { Sent::Maybe } else { Sent::No };
        self.facts.push_back((exchange, ExchangeEvent::Failed { sent, why }));
        self.abort_channel();
    }
}

mod hooked;
#[cfg(test)]
mod tests;
