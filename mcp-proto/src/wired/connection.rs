//! One connection: its codec, its current exchange, and its timers. The parts that only the server
//! of an HTTP connection needs are in `serving`. The steps that end a program are MCP 2025-11-25,
//! lifecycle, shutdown. This module must not know an engine, a pool or a socket.

use super::room::Reservation;
use super::tally;
use crate::error::{Diagnostic, DiagnosticKind};
use crate::exchange::IoEvent;
use crate::exchange::*;
use crate::frame::{Conn, Kind, Work, false_coding};
use crate::hook::MessageHook;
use crate::limits::FrameLimits;
use crate::observer::Observers;
use crate::short_queue::ShortQueue;
use crate::stats::Traffic;
use crate::time::{Instant, earliest};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

mod asking;
mod driven;
mod ending;
mod io;
mod reading;
mod refusing;
mod securing;
mod serving;
mod timers;
mod tunnel;
mod turn;
mod web_socket;

pub use driven::{ConnectionInput, ConnectionOutput, ConnectionTaken};
use securing::Securing;
use timers::{Due, PAUSE, RateFloor};
use tunnel::Route;
use web_socket::WebSocket;

/// Maximum number of unreported bytes of a request that was answered, in bytes: about as much as a
/// socket accepts at once.
const LATE_REPORT: usize = 64 << 10;

/// One connection: its codec, its current exchange, and its timers. It knows no engine.
///
/// After each call that changes it, take its events with [`poll_event`](Self::poll_event) until
/// there are none. Hand each event to the engine, and pass the engine's outputs to
/// [`send`](Self::send) and [`abort`](Self::abort). Then take the outputs and diagnostics of the
/// connection. The connection parses bytes as its events are taken, so an exchange that the engine
/// aborts in answer to one event yields no further one.
#[derive(Debug)]
pub struct Connection {
    number: u64,
    sequence: u64,
    role: ConnectionRole,
    conn: Conn,
    hook: Option<MessageHook>,
    limits: Arc<FrameLimits>,
    now: Instant,
    /// The peer, if anything is known of it. On a client not a proxy.
    peer: Option<Arc<Peer>>,
    exchange: Option<ExchangeId>,
    /// HTTP server: the previous exchange, if the engine has sent its response and the driver has
    /// not yet written it.
    answered: Option<ExchangeId>,
    /// HTTP server: the rate at which the awaited body comes in, or the response goes out.
    pace: RateFloor,
    /// HTTP server: the request of the exchange was read to its end, or is refused.
    asked: bool,
    /// Server of HTTP or WebSocket: its reservation of the budget that all connections share.
    share: Option<Reservation>,
    /// HTTP client: how much of the response to the latest request was received.
    answer: ResponseProgress,
    /// HTTP client: it is idle, and more connections are open than are kept.
    surplus: bool,
    /// Client: what is between the connection and the server, if anything is.
    route: Option<Box<Route>>,
    /// The connection can be used: it is open, and secured if it has to be.
    open: bool,
    eof: bool,
    /// HTTP server: `ExchangeEvent::ReadClosed` was reported.
    told_eof: bool,
    /// A content coding that is none was reported.
    told_coding: bool,
    gone: Option<Box<Closed>>,
    ending: Option<Shutdown>,
    events: ShortQueue<(ExchangeId, ExchangeEvent)>,
    outputs: ShortQueue<ConnectionOutput>,
    diagnostics: VecDeque<Diagnostic>,
    /// Framed bytes that the driver has not reported as written.
    unsent: usize,
    /// The part of `unsent` that was taken by `poll_output`.
    taken: usize,
    /// Whether bytes of the exchange were taken by `poll_output`.
    handed: bool,
    /// Bytes read since all events were taken.
    backlog: usize,
    /// What may still be parsed in this turn.
    work: Work,
    /// When parsing goes on, if the codec has stopped before the end of what was read.
    resume: Option<Instant>,
    timer: Option<(Instant, Due)>,
    /// Traffic since the last time it was taken.
    traffic: Traffic,
    /// Whether a turn has reported the end of the connection.
    left: bool,
    /// The last instruction to the driver: whether to read.
    reads: bool,
    /// The state of a WebSocket.
    web_socket: Option<Box<WebSocket>>,
    observers: Observers<Self>,
}

/// The role of this end: the transport, client or server, and how it closes the connection.
#[derive(Clone, Copy, PartialEq, Debug)]
enum ConnectionRole {
    DuplexClient {
        program: bool,
    },
    DuplexServer,
    HttpClient,
    HttpServer,
    /// A WebSocket, also before its handshake is complete.
    WsClient,
    /// An HTTP connection that has become a WebSocket.
    WsServer,
}

/// How much of the response to the request of an HTTP client was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ResponseProgress {
    /// No byte was received.
    Awaited,
    /// A part of the head was received.
    Begun,
    /// The head was received, and the body has an end.
    Body,
    /// The head was received, and the body is an event stream, which may pause for any time.
    Stream,
}

impl Connection {
    /// Returns the connection of a client, which is to be opened. With `program`, its end takes the
    /// steps `WriteHalf`, `Terminate`, `Abort`; otherwise `WriteHalf`, `Abort`. If the connection
    /// is not open after [`FrameLimits::open_timeout`], its exchange fails and the connection is
    /// closed.
    pub fn client(kind: Kind, program: bool, limits: &FrameLimits, now: Instant) -> Self {
        let role = ConnectionRole::DuplexClient { program };
        let mut connection = Self::new(0, kind, role, Arc::new(limits.clone()), now);
        connection.timer = Some((now + limits.open_timeout, Due::Connect));
        connection
    }

    /// Returns the connection of a client to a WebSocket, which is to be opened. Its exchange is
    /// open once the server has accepted the handshake with this head. `seed` must be unpredictable
    /// and used for nothing else. Its end takes the steps of the closing handshake, then `Abort`
    /// (RFC 6455 section 7.1).
    pub fn web_socket(
        head: RequestHead,
        dialect: WsDialect,
        seed: [u8; 32],
        limits: &FrameLimits,
        now: Instant,
    ) -> Self {
        let mut connection = Self::client(Kind::WsClient(dialect), false, limits, now);
        connection.conn = connection.conn.with_seed(&connection.limits, seed);
        connection.web_socket = Some(Box::new(WebSocket::asking(head, now)));
        connection
    }

    /// Returns a connection that a server accepted, which is already open. With newline-delimited
    /// messages its exchange exists from the start, and the first event is
    /// [`ExchangeEvent::Opened`] with `peer`. Over HTTP each request follows an
    /// [`ExchangeEvent::From`] with `peer`, unless nothing is known of the peer
    /// ([`Peer::default`]). Two connections of one server must not have the same number.
    pub fn server(number: u64, kind: Kind, peer: Peer, limits: &FrameLimits, now: Instant) -> Self {
        Self::accepted(number, kind, peer, Arc::new(limits.clone()), now)
    }

    /// Like [`server`](Self::server), with limits that are not copied.
    pub(super) fn accepted(number: u64, kind: Kind, peer: Peer, limits: Arc<FrameLimits>, now: Instant) -> Self {
        let mut connection = Self::new(number, kind, ConnectionRole::DuplexServer, limits, now);
        connection.open = true;
        connection.peer = (peer != Peer::default()).then(|| Arc::new(peer.clone()));
        if connection.role == ConnectionRole::HttpServer {
            connection.arm(connection.limits.head_timeout, Due::Head);
        } else {
            let exchange = connection.mint();
            connection.events.push_back((exchange, ExchangeEvent::Opened(peer)));
        }
        connection
    }

    fn new(number: u64, kind: Kind, duplex: ConnectionRole, limits: Arc<FrameLimits>, now: Instant) -> Self {
        let role = match kind {
            Kind::Lines => duplex,
            Kind::HttpClient => ConnectionRole::HttpClient,
            Kind::HttpServer => ConnectionRole::HttpServer,
            Kind::WsClient(_) => ConnectionRole::WsClient,
        };
        Self {
            number,
            sequence: 0,
            role,
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
            answer: ResponseProgress::Awaited,
            surplus: false,
            route: None,
            open: false,
            eof: false,
            told_eof: false,
            told_coding: false,
            gone: None,
            ending: None,
            events: ShortQueue::new(),
            outputs: ShortQueue::new(),
            diagnostics: VecDeque::new(),
            unsent: 0,
            taken: 0,
            handed: false,
            backlog: 0,
            work: Work::of_turn(),
            resume: None,
            timer: None,
            traffic: Traffic::default(),
            left: false,
            reads: true,
            web_socket: None,
            observers: Observers::default(),
        }
    }

    /// Returns the number that the ids of accepted exchanges carry. Zero on a client.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Starts an exchange of a client. The exchange before must be over.
    pub fn begin(&mut self, exchange: ExchangeId) {
        debug_assert!(
            self.exchange.is_none() && self.unsent <= LATE_REPORT,
            "invariant: a channel carries one exchange at a time"
        );
        self.exchange = Some(exchange);
        self.answer = ResponseProgress::Awaited;
        self.surplus = false;
        self.handed = false;
        self.begin_part();
        if self.open {
            self.timer = None;
        }
    }

    /// Returns the current exchange. `None` between two exchanges, and after the end.
    pub fn exchange(&self) -> Option<ExchangeId> {
        self.exchange
    }

    /// Reports an I/O event of the connection. After [`IoEvent::Closed`] the connection ignores all
    /// events.
    #[track_caller]
    pub fn handle_io(&mut self, now: Instant, wire: IoEvent) {
        self.observe_input(now, || ConnectionInput::Event(wire.clone()));
        self.catch_up(now);
        self.resume();
        if self.gone.is_some() {
            return;
        }
        match wire {
            IoEvent::Opened(peer) => self.opened(peer),
            IoEvent::Secured => self.secured(),
            IoEvent::Read(bytes) => {
                self.traffic.bytes_in += bytes.len() as u64;
                self.read(bytes);
            }
            IoEvent::ReadClosed => self.end_of_input(),
            IoEvent::Written(n) => self.written(n),
            IoEvent::Closed(why) => self.closed(why),
        }
    }

    /// Sends an output on the exchange. Does nothing if the exchange is over, or after its `End`.
    /// Before the connection is open, the output is queued. An output that is not allowed at this
    /// point (see [`Conn::encode`]) is not written, and causes a diagnostic (`out-of-place`).
    ///
    /// The response of an HTTP server ends its exchange. Until the last byte of it is written,
    /// events still report its progress: [`ExchangeEvent::Unsent`], finally with zero, or
    /// [`ExchangeEvent::Failed`] if the connection ends before. Both are harmless to an engine that
    /// has forgotten the exchange.
    #[track_caller]
    pub fn send(&mut self, now: Instant, exchange: ExchangeId, outgoing: Outbound) {
        self.observe_input(now, || ConnectionInput::Command);
        self.now = self.now.max(now);
        if self.exchange != Some(exchange) || self.ending.is_some() || self.gone.is_some() {
            return;
        }
        let Some(outgoing) = self.rule(exchange, outgoing) else { return };
        let outgoing = if self.route.is_some() { self.for_proxy(outgoing) } else { outgoing };
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
        if more && self.open && self.role == ConnectionRole::HttpClient {
            self.arm_request();
        }
        let answered = last && self.role == ConnectionRole::HttpServer;
        if more || answered {
            self.events.push_back((exchange, ExchangeEvent::Unsent(self.unsent)));
        }
        if answered {
            self.answered(exchange);
        } else if held && !self.conn.is_held() && self.role == ConnectionRole::HttpServer {
            self.await_body();
        }
        if last && matches!(self.role, ConnectionRole::DuplexClient { .. } | ConnectionRole::DuplexServer) {
            self.half_close();
        }
        self.upgrade_or_close(last);
    }

    /// Ends the exchange and the connection at once. No event of the exchange follows. Does nothing
    /// if the exchange is over. The exchange of an HTTP server is over only when its response is
    /// written.
    #[track_caller]
    pub fn abort(&mut self, now: Instant, exchange: ExchangeId) {
        self.observe_input(now, || ConnectionInput::Command);
        self.now = self.now.max(now);
        if self.exchange == Some(exchange) || self.answered == Some(exchange) {
            (self.exchange, self.answered) = (None, None);
            self.events.retain(|(of, _)| *of != exchange);
            if !self.close_web_socket() {
                self.abort_channel();
            }
        }
    }

    /// Closes the connection in order, since the engine has terminated. With newline-delimited
    /// messages, this takes the same steps as [`Outbound::End`]. HTTP closes after the queued bytes
    /// are written.
    #[track_caller]
    pub fn close(&mut self, now: Instant) {
        self.observe_input(now, || ConnectionInput::Command);
        self.catch_up(now);
        if self.gone.is_some() || self.ending.is_some() {
            return;
        }
        let unfinished = self.exchange.is_some() || self.unsent == 0;
        match self.role {
            _ if !self.open => self.abort_channel(),
            ConnectionRole::HttpClient => self.abort_channel(),
            ConnectionRole::HttpServer if unfinished => self.abort_channel(),
            ConnectionRole::WsClient | ConnectionRole::WsServer => {
                if !self.close_web_socket() {
                    self.abort_channel();
                }
            }
            _ => self.half_close(),
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout). Valid once all events were
    /// taken.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.observers.earliest(self.next_timeout())
    }

    /// Returns the next timer of the connection.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let resume = self.resume.filter(|_| self.pauses());
        earliest(resume, self.timer.map(|(at, _)| at))
    }

    /// Returns the next event of an exchange on this connection.
    pub fn poll_event(&mut self) -> Option<(ExchangeId, ExchangeEvent)> {
        while self.events.is_empty() && self.step() {}
        let event = self.events.pop_front();
        self.observers.made_output(|| if event.is_some() { ConnectionTaken::Event } else { ConnectionTaken::Turn });
        if event.is_none() && !self.pauses() {
            self.backlog = 0;
            if self.conn.is_streaming() {
                // A stream may stay open for hours without an event.
                self.events.shrink();
            }
        }
        event
    }

    /// Returns the next instruction for the driver, once all events were taken. Before the
    /// connection is open and secured, returns nothing but a request to a proxy,
    /// [`ConnectionOutput::Secure`] and [`Shutdown::Abort`]. Returns nothing after it is closed.
    pub fn poll_output(&mut self) -> Option<ConnectionOutput> {
        let output = self.next_output().or_else(|| self.poll_read().map(ConnectionOutput::Read));
        match &output {
            Some(output) => self.observers.made_output(|| ConnectionTaken::Output(output.clone())),
            None => self.observers.output(None),
        }
        output
    }

    /// As [`poll_output`](Self::poll_output), without changes of reading, which depend on events
    /// that were not taken.
    pub(super) fn next_output(&mut self) -> Option<ConnectionOutput> {
        if !self.open && self.outputs.front() != Some(&ConnectionOutput::Close(Shutdown::Abort)) {
            if let Some(request) = self.take_tunnel_request() {
                return Some(ConnectionOutput::Write(request));
            }
            let name = self.securing().and_then(Securing::begin);
            return name.map(ConnectionOutput::Secure);
        }
        let output = self.outputs.pop_front()?;
        if let ConnectionOutput::Write(bytes) = &output {
            self.taken += bytes.len();
            self.handed = true;
        }
        Some(output)
    }

    /// Returns the next fault of the peer that belongs to no exchange.
    pub fn poll_diagnostic(&mut self) -> Option<Diagnostic> {
        self.diagnostics.pop_front()
    }

    /// Returns whether the driver has reported `Closed` and all events were taken: nothing follows.
    pub fn is_closed(&self) -> bool {
        self.gone.is_some() && self.events.is_empty() && self.exchange.is_none()
    }

    /// Returns the number of framed bytes that the driver has not reported as written.
    pub(super) fn unsent(&self) -> usize {
        self.unsent
    }

    /// Returns how the connection ended, once the driver has reported it.
    pub(super) fn closed_by(&self) -> Option<&Closed> {
        self.gone.as_deref()
    }

    /// Returns whether the connection is being closed.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }
}

/// From bytes to events.
impl Connection {
    /// Updates the time. Parses the bytes that were read before, first: the time at which events
    /// are taken changes nothing.
    fn catch_up(&mut self, now: Instant) {
        while self.step() {}
        self.now = self.now.max(now);
    }

    /// Takes one step from the bytes that were read to events. Returns false if there is no step
    /// before the next I/O event.
    fn step(&mut self) -> bool {
        self.understand() || !self.pauses() && self.outgrows()
    }

    fn understand(&mut self) -> bool {
        let Some(exchange) = self.exchange else { return self.role == ConnectionRole::HttpServer && self.accept() };
        if self.pauses() {
            return false;
        }
        if !self.holds() {
            let item = self.conn.poll_within(&mut self.work);
            self.content_comes();
            // Reading an HTTP request may request its body (`100 Continue`).
            if self.collect() {
                self.events.push_back((exchange, ExchangeEvent::Unsent(self.unsent)));
            }
            if let Some(item) = item {
                self.work.spend(Work::UNIT);
                let whole = matches!(item, Inbound::Message(_) | Inbound::Batch(_) | Inbound::Invalid(_));
                self.item(exchange, item);
                // The end of a JSON body comes with its message: the engine answers or continues
                // only after the end.
                if whole
                    && matches!(self.role, ConnectionRole::HttpClient | ConnectionRole::HttpServer)
                    && let Some(end) = self.conn.poll_item()
                {
                    self.item(exchange, end);
                }
                return true;
            }
            if self.work.is_stopped() {
                self.resume = Some(self.now + PAUSE);
                return false;
            }
            if self.conn.is_web_socket() && self.ends_web_socket(exchange) {
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
        if self.role == ConnectionRole::HttpServer && self.asked && self.eof && self.gone.is_none() {
            return self.read_closed(exchange);
        }
        // On a duplex connection the end of the input is an item. The exchange is over when the
        // connection is closed.
        let is_cut = !matches!(self.role, ConnectionRole::DuplexClient { .. } | ConnectionRole::DuplexServer);
        let cut = self.eof && is_cut;
        let why = match self.gone.as_deref() {
            Some(why) => why.clone(),
            None if cut => Closed::Eof,
            None => return false,
        };
        self.fail(exchange, why);
        true
    }

    /// Only content extends a timeout, not the framing around it: a sender can stretch the framing.
    fn content_comes(&mut self) {
        match (self.conn.take_content(), self.role) {
            (0, _) => {}
            (n, ConnectionRole::HttpServer) if !self.asked => self.body_goes_on(n),
            (_, ConnectionRole::HttpClient) => self.answer_goes_on(),
            _ => {}
        }
    }

    fn item(&mut self, exchange: ExchangeId, item: Inbound) {
        tally::read(&mut self.traffic, &item);
        let item = match &self.hook {
            Some(hook) => hook.incoming(item, &self.limits),
            None => item,
        };
        if let Inbound::Request(RequestHead { headers, .. }) | Inbound::Response(ResponseHead { headers, .. }) = &item
            && let Some(name) = false_coding(headers)
            && !core::mem::replace(&mut self.told_coding, true)
        {
            self.diagnostics.push_back(Diagnostic::new(DiagnosticKind::FalseCoding, name));
        }
        let end = item == Inbound::End;
        let refused = matches!(item, Inbound::Reject(_));
        if let Inbound::Response(head) = &item {
            if self.role == ConnectionRole::WsClient {
                return self.web_socket_answered(exchange, head);
            }
            if let Some(why) = self.refused_by_proxy(head) {
                return self.fail(exchange, why);
            }
            self.answer_begins(head);
        }
        self.events.push_back((exchange, ExchangeEvent::Inbound(item)));
        match self.role {
            ConnectionRole::HttpServer if end || refused => {
                self.asked = true;
                self.timer = None;
            }
            ConnectionRole::HttpClient if end => self.complete(),
            _ => {}
        }
    }

    /// Takes the bytes that the codec has framed. Returns whether there were any.
    fn collect(&mut self) -> bool {
        let before = self.unsent;
        while let Some(bytes) = self.conn.poll_write() {
            self.unsent += bytes.len();
            self.outputs.push_back(ConnectionOutput::Write(bytes));
        }
        if self.conn.is_web_socket() {
            self.collect_pong();
        }
        self.unsent != before
    }

    fn fail(&mut self, exchange: ExchangeId, why: Closed) {
        self.exchange = None;
        let sent = if self.handed { Sent::Maybe } else { Sent::No };
        let why = self.named_after_proxy(why);
        self.events.push_back((exchange, ExchangeEvent::Failed { sent, why }));
        self.abort_channel();
    }
}

mod hooked;
#[cfg(test)]
mod tests;
