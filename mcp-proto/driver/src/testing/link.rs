//! Both engines, the bytes between them and the callbacks of the application, in one thread.

use super::callbacks::{Callbacks, Command, request_name};
use super::connection::ConnectionEvent;
use super::log::{LinkSide, Log, client_event, server_event};
use super::network::Network;
use super::options::{Flow, LinkOptions};
use super::time::Time;
use crate::{ClientEventCallback, EventCallback, NoticeCallback, Question, ReplyKey, SharedRouter};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use mcp_proto::call::{Call, CallHandle, CallId, Method, RawResult};
use mcp_proto::client::{self, ClientCommands, ClientConfig};
use mcp_proto::error::{CallError, RefusedCommand, WaitReason};
use mcp_proto::exchange::{Action, ConnectionId, IoEvent};
use mcp_proto::route::{BadReplacement, Router};
use mcp_proto::server;
use mcp_proto::server::ServerCommands;
use mcp_proto::time::{Instant, earliest};
use mcp_proto::wired::{ConnectionOutput, WiredClient, WiredServer, WiredTimer};

/// Maximum virtual time of [`Link::wait`]. Keep-alives and pings have no end.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Number of lines of the log in the panic of [`Link::wait`].
const LAST_LINES: usize = 40;

/// A client and a server, connected in memory, in virtual time. See the [module](super).
///
/// Time begins at [`Instant::ZERO`] and passes only in [`advance`](Self::advance),
/// [`run_until`](Self::run_until) and [`wait`](Self::wait). At each instant bytes arrive, then
/// handlers and callbacks run, then due timers fire, until nothing is left. A response that arrives
/// at the instant of a timeout is therefore in time. A call or a command also runs what happens at
/// the present instant, before it returns.
///
/// The client begins to connect in the first of these methods, so that a test can choose the
/// latency, the delays and the stalls before. The random values of both engines are the same in
/// every link.
pub struct Link {
    client: WiredClient,
    server: WiredServer,
    network: Network,
    callbacks: Callbacks,
    time: Time,
    /// The requests of the calls that have not ended.
    requests: BTreeMap<CallId, String>,
    outcomes: BTreeMap<CallId, Result<RawResult, CallError>>,
    client_events: Vec<client::Event>,
    server_events: Vec<server::Event>,
    on_client_event: Option<ClientEventCallback>,
    on_server_event: Option<EventCallback>,
    on_notice: Option<NoticeCallback>,
    log: Log,
}

impl Link {
    /// Creates a client of this configuration and a server of this router.
    pub fn new(router: Router, config: ClientConfig) -> Self {
        Self::with(router, config, LinkOptions::new())
    }

    /// Like [`new`](Self::new), with a time for handlers, and with callbacks.
    pub fn with(router: Router, config: ClientConfig, options: LinkOptions) -> Self {
        let LinkOptions { time, client: mut for_client, server: mut for_server } = options;
        let now = time.now();
        let mut served = router.config();
        for_server.configure(&mut served);
        let on_server_event = for_server.take_event();
        let served = Arc::new(served);
        let router = SharedRouter::new(router, Arc::clone(&served));
        Self {
            client: for_client.create_unchecked(config, [1; 32], now),
            server: WiredServer::new(served, [2; 32], now),
            network: Network::default(),
            callbacks: Callbacks::new(router, for_server, for_client.take_callbacks()),
            time,
            requests: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            client_events: Vec::new(),
            server_events: Vec::new(),
            on_client_event: for_client.take_event(),
            on_server_event,
            on_notice: for_client.take_notice(),
            log: Log::default(),
        }
    }

    /// Returns the present instant.
    pub fn now(&self) -> Instant {
        self.time.now()
    }

    /// Makes a call. For its progress, call [`Call::progress`] and look at the events.
    ///
    /// # Errors
    /// As [`WiredClient::call`].
    pub fn call<M: Method>(&mut self, call: Call<M>) -> Result<CallHandle<M>, RefusedCommand<Call<M>>> {
        let request = call.raw().params.as_ref().ok().map(|params| request_name(&call.raw().method, params));
        let calling = self.client.call(self.now(), call)?;
        self.requests.extend(request.map(|request| (calling.id(), request)));
        self.log.note(self.now(), LinkSide::Client, format_args!("call {} is made", calling.id().0));
        self.settle();
        Ok(calling)
    }

    /// Returns the outcome of a call. `None` while it is pending.
    pub fn outcome<M: Method>(&self, call: &CallHandle<M>) -> Option<Result<M::Output, CallError>> {
        let outcome = self.outcomes.get(&call.id())?.clone();
        Some(outcome.and_then(|result| M::decode(result).map_err(CallError::Decode)))
    }

    /// Lets time pass until a call has ended, and returns its outcome.
    ///
    /// # Errors
    /// The error of the call. If it timed out while its handler waited for something that the link
    /// does not control, such as real time, the error names the handler:
    /// [`WaitReason::Callback`].
    ///
    /// # Panics
    /// If the call cannot end: nothing more happens by itself, or it is pending after a day.
    pub fn wait<M: Method>(&mut self, call: &CallHandle<M>) -> Result<M::Output, CallError> {
        self.settle();
        let last = self.now() + LONGEST_WAIT;
        loop {
            if let Some(outcome) = self.outcome(call) {
                return outcome;
            }
            match self.poll_timeout() {
                Some(next) if next <= last => self.step_to(next),
                Some(_) => panic!("call {} is pending after a day{}", call.id().0, self.situation()),
                None => panic!("call {} is pending, and nothing more happens{}", call.id().0, self.situation()),
            }
        }
    }

    /// Lets this much time pass. Everything that happens meanwhile happens at its own instant.
    pub fn advance(&mut self, time: Duration) {
        self.run_until(self.now() + time);
    }

    /// Lets time pass until this instant, inclusive. Runs what happens now if it is in the past.
    pub fn run_until(&mut self, at: Instant) {
        self.settle();
        while let Some(next) = self.poll_timeout().filter(|next| *next <= at) {
            self.step_to(next);
        }
        self.step_to(at);
    }

    /// Runs what happens at the present instant. The other methods do so by themselves.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    /// Returns when the next thing happens by itself: a timer, an arrival, the beginning of a
    /// handler, or the end of an [`After`](super::After). `None` if nothing does.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let engines = earliest(self.client.poll_timeout(), self.server.poll_timeout());
        let outside = earliest(self.network.poll_timeout(), self.time.poll_timeout());
        earliest(earliest(engines, outside), self.callbacks.poll_timeout())
    }

    /// Returns the client, to inspect it.
    pub fn client(&self) -> &WiredClient {
        &self.client
    }

    /// Returns the server, to inspect it.
    pub fn server(&self) -> &WiredServer {
        &self.server
    }

    /// Gives the client a command, at the instant that the function receives. The function does not
    /// take outputs, report I/O or fire timers: the link does.
    ///
    /// ```
    /// # use mcp_driver::testing::Link;
    /// # use mcp_proto::{ClientCommands, ClientConfig, Router};
    /// # let mut link = Link::new(Router::new("calc", "1.0"), ClientConfig::given());
    /// link.with_client(|client, now| client.close(now));
    /// ```
    pub fn with_client<R>(&mut self, command: impl FnOnce(&mut WiredClient, Instant) -> R) -> R {
        let result = command(&mut self.client, self.time.now());
        self.settle();
        result
    }

    /// Like [`with_client`](Self::with_client), for the server: `publish`, `revoke`, `shutdown`.
    pub fn with_server<R>(&mut self, command: impl FnOnce(&mut WiredServer, Instant) -> R) -> R {
        let result = command(&mut self.server, self.time.now());
        self.settle();
        result
    }

    /// Replaces the router of the server, and publishes the lists that differ: see
    /// [`Router::replace`].
    ///
    /// # Errors
    /// [`BadReplacement`]. Nothing has changed then.
    pub fn replace(&mut self, router: Router) -> Result<(), BadReplacement> {
        let changes = self.callbacks.replace(&router)?;
        self.log.test(self.now(), "replaces the router");
        self.with_server(|server, now| changes.into_iter().for_each(|change| server.publish(now, change)));
        Ok(())
    }

    /// Returns the events of the client since the last call. With
    /// [`ClientOptions::on_event`](crate::ClientOptions::on_event), only progress and the
    /// ends of calls and notifications.
    pub fn events(&mut self) -> Vec<client::Event> {
        core::mem::take(&mut self.client_events)
    }

    /// Returns the events of the server since the last call, except requests and admissions. With
    /// [`ServerOptions::on_event`](crate::ServerOptions::on_event), none.
    pub fn server_events(&mut self) -> Vec<server::Event> {
        core::mem::take(&mut self.server_events)
    }

    /// Breaks every connection. What is under way is lost, and both sides see a reset. A
    /// [program](ClientConfig::program) is killed by signal 9. A client of a program, a socket or a
    /// URL connects again; one of [`ClientConfig::given`] has ended.
    pub fn cut(&mut self) {
        self.log.test(self.now(), "cuts every connection");
        self.network.cut();
        self.settle();
    }

    /// Stops the bytes in this direction, also the end of a connection. A writer can still write 64
    /// KiB. While either direction stops, no connection to a URL or a Unix socket opens.
    pub fn stall(&mut self, flow: Flow) {
        self.set_stalled(flow, true);
    }

    /// Lets the bytes in this direction flow again. Those that waited arrive now.
    pub fn resume(&mut self, flow: Flow) {
        self.set_stalled(flow, false);
        self.settle();
    }

    /// Sets the time that bytes take in each direction from now on. A connection to a URL or a Unix
    /// socket opens after twice that time. At most 64 KiB are under way in one direction. Default
    /// zero.
    pub fn set_latency(&mut self, latency: Duration) {
        self.log.test(self.now(), format_args!("sets the latency to {latency:?}"));
        self.network.path.latency = latency;
    }

    /// Lets each handler of the server begin this much later from now on, also those of tools that
    /// run inline, and the answers of the router itself. Requests that wait already keep their
    /// instant. Default zero.
    pub fn delay_handlers(&mut self, delay: Duration) {
        self.log.test(self.now(), format_args!("delays handlers by {delay:?}"));
        self.callbacks.delay = delay;
    }

    /// Returns the log: everything that has happened, to print and to compare.
    pub fn log(&self) -> &Log {
        &self.log
    }
}

/// The loop.
impl Link {
    fn set_stalled(&mut self, flow: Flow, stalled: bool) {
        self.log.test(self.now(), format_args!("{} {flow:?}", if stalled { "stalls" } else { "resumes" }));
        for (direction, included) in self.network.path.stalled.iter_mut().zip(flow.directions()) {
            if included {
                *direction = stalled;
            }
        }
    }

    /// Moves to a later instant, and runs what happens there.
    fn step_to(&mut self, at: Instant) {
        self.time.advance(at);
        self.settle();
    }

    /// Lets one thing happen. Returns whether there was one.
    fn step(&mut self) -> bool {
        let now = self.now();
        if let Some(action) = self.client.poll_output() {
            self.client_action(now, action);
        } else if let Some(action) = self.server.poll_output() {
            self.server_action(now, action);
        } else if let Some((connection, event)) = self.network.step(now, &mut self.log) {
            self.happen(now, connection, event);
        } else if let Some(command) = self.callbacks.step(now, &mut self.log) {
            // A refusal of a notification is harmless: the client did not ask for it, or the
            // request is over. An engine refuses no other command of a callback.
            match command {
                Command::Client(command) => drop(self.client.act(now, command)),
                Command::Server(command) => drop(self.server.act(now, command)),
            }
        } else {
            return self.fire(now);
        }
        true
    }

    /// Reports an event of a connection, which has this id at the client.
    fn happen(&mut self, now: Instant, connection: ConnectionId, event: ConnectionEvent) {
        let (side, id, event) = match event {
            ConnectionEvent::Accept(kind, peer) => {
                let accepted = self.server.accept(now, kind, peer);
                return self.network.accepted(connection, accepted);
            }
            ConnectionEvent::Io(side, id, event) => (side, id, event),
        };
        if let IoEvent::Closed(why) = &event {
            self.log.connection(now, side, connection, format_args!("closed: {why}"));
        }
        match side {
            LinkSide::Client => self.client.handle_io(now, id, event),
            LinkSide::Server => self.server.handle_io(now, id, event),
        }
    }

    /// Fires the timers of one engine that are due. Returns whether there were any.
    fn fire(&mut self, now: Instant) -> bool {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.client.poll_timeout()) {
            match self.client.timeout_reason() {
                Some(WiredTimer::Engine(timer)) => {
                    self.log.note(now, LinkSide::Client, format_args!("timer: {timer:?}"))
                }
                Some(WiredTimer::Connection(id)) => self.log.connection(now, LinkSide::Client, id, "timer"),
                None => {}
            }
            self.client.handle_timeout(now);
        } else if is_due(self.server.poll_timeout()) {
            self.log.note(now, LinkSide::Server, "timer");
            self.server.handle_timeout(now);
        } else {
            return false;
        }
        true
    }

    fn client_action(&mut self, now: Instant, action: Action<client::Event>) {
        let (id, output) = match action {
            Action::Open(id, endpoint) => {
                self.log.connection(now, LinkSide::Client, id, "open");
                return self.network.open(now, id, &endpoint);
            }
            Action::Secure(id, name) => (id, ConnectionOutput::Secure(name)),
            Action::Write(id, bytes) => (id, ConnectionOutput::Write(bytes)),
            Action::Read(id, reads) => (id, ConnectionOutput::Read(reads)),
            Action::Close(id, how) => (id, ConnectionOutput::Close(how)),
            Action::Notice(id, notice) => {
                if let Some(callback) = &mut self.on_notice {
                    callback(id, notice);
                }
                return;
            }
            Action::Event(event) => return self.client_event(now, event),
        };
        self.network.act(now, LinkSide::Client, id, output, &mut self.log);
    }

    fn server_action(&mut self, now: Instant, action: Action<server::Event>) {
        let (id, output) = match action {
            Action::Write(id, bytes) => (id, ConnectionOutput::Write(bytes)),
            Action::Read(id, reads) => (id, ConnectionOutput::Read(reads)),
            Action::Close(id, how) => (id, ConnectionOutput::Close(how)),
            // A server emits none of them.
            Action::Open(..) | Action::Secure(..) | Action::Notice(..) => return,
            Action::Event(event) => return self.server_event(now, event),
        };
        self.network.act(now, LinkSide::Server, id, output, &mut self.log);
    }

    fn client_event(&mut self, now: Instant, mut event: client::Event) {
        if let client::Event::Ended { call, outcome } = &mut event {
            let request = self.requests.remove(call);
            if let Err(CallError::Timeout { awaited: awaited @ WaitReason::Response, .. }) = outcome
                && let Some(callback) = self.callbacks.outside(request.as_deref(), &self.time.waiting())
            {
                *awaited = WaitReason::Callback(callback);
            }
        }
        self.log.note(now, LinkSide::Client, client_event(&event));
        let event = if self.callbacks.answers(&event) {
            match Question::of(event) {
                Ok((token, question)) => return self.callbacks.ask(token, question),
                Err(event) => event,
            }
        } else {
            event
        };
        match &event {
            client::Event::Ended { call, outcome } => {
                self.outcomes.insert(*call, outcome.clone());
            }
            client::Event::InputWithdrawn(key) => self.callbacks.withdraw(ReplyKey::Input(*key)),
            _ => {}
        }
        let is_waited_for = matches!(
            event,
            client::Event::Progress { .. } | client::Event::Ended { .. } | client::Event::NotificationEnded { .. }
        );
        match &mut self.on_client_event {
            Some(callback) if !is_waited_for => callback(event),
            _ => self.client_events.push(event),
        }
    }

    fn server_event(&mut self, now: Instant, event: server::Event) {
        match &event {
            server::Event::Request(..) | server::Event::Admit(..) => {}
            server::Event::Cancelled(key) => self.callbacks.cancel(now, *key, &mut self.log),
            event => self.log.note(now, LinkSide::Server, server_event(event)),
        }
        match event {
            server::Event::Request(responder, incoming) => {
                return self.callbacks.handle(now, responder, incoming, &mut self.log);
            }
            server::Event::Admit(token, head) => return self.callbacks.admit(token, head),
            server::Event::AdmitWithdrawn(key) => self.callbacks.withdraw_admission(key),
            _ => {}
        }
        match &mut self.on_server_event {
            Some(callback) => callback(event),
            None => self.server_events.push(event),
        }
    }

    /// Returns what a panic says about the link.
    fn situation(&self) -> String {
        let lines: Vec<&str> = self.log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        let pending = self.callbacks.pending();
        format!(" ({pending} futures of callbacks wait). The end of the log:\n{}", last.join("\n"))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("now", &self.now())
            .field("client", &self.client)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
