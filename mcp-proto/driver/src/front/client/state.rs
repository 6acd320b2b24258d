//! The state of a client behind its lock.

use super::super::events::{EventFn, WaitingEvents};
use super::super::shared::{Engine, Front, Later, Shared};
use super::super::{Attention, DrivenConnection, Events, RouteTask, RoutingKind, Task};
#[cfg(feature = "auth")]
use super::logins::Logins;
use super::outputs::Outputs;
use super::shared::ClientSetup;
use super::waiters::{WaitKey, Waiters};
use super::watches::{WatchId, Watches};
use crate::asking::{ClientLink, PendingQuestion, Questions};
use crate::check::Checks;
use crate::client_observer::{CallTag, ClientObserver, ClientReport};
use crate::client_options::{ClientCallbacks, ClientOptions};
use crate::question::{Question, ReplyKey};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::mem::{replace, take};
use mcp_proto::call::{Call, CallHandle, CallNews, Method, RawCall, RawResult};
use mcp_proto::client::{ClientCommands, Event, FetchId, FetchRequest, Termination};
#[cfg(feature = "auth")]
use mcp_proto::client::{FetchError, FetchResponse};
use mcp_proto::error::{CallError, NegotiationError, Refusal};
use mcp_proto::exchange::{Action, Closed, ConnectionId, Endpoint, IoEvent};
use mcp_proto::input::{CallId, ClientCommand, Input, InputResult, NotificationId, Watch};
use mcp_proto::model::lifecycle::ServerInfo;
use mcp_proto::process::Stderr;
use mcp_proto::rpc::Object;
use mcp_proto::span::Span;
use mcp_proto::stats::ClientStats;
use mcp_proto::time::Instant;
use mcp_proto::wired::{ConnectionOutput, WiredClient};

/// Its engine, who waits for what, the questions of the server, and the tasks of its driver.
pub(in crate::front) struct ClientState {
    pub(super) engine: WiredClient,
    checks: Option<Checks>,
    pub(super) calls: Waiters<CallId, <CallId as WaitKey>::Received>,
    pub(super) notifications: Waiters<NotificationId, <NotificationId as WaitKey>::Received>,
    pub(super) fetches: Waiters<FetchId, <FetchId as WaitKey>::Received>,
    last_fetch: u64,
    /// What is called at the ends of fetches without a waiter.
    #[cfg(feature = "auth")]
    fetch_calls: BTreeMap<FetchId, FetchCall>,
    #[cfg(feature = "auth")]
    pub(super) logins: Logins,
    questions: Questions,
    /// The way of the answers of callbacks, which leads to [`command`](Self::command).
    link: ClientLink,
    watches: Watches,
    /// The server, once negotiation has succeeded.
    pub(super) ready: Option<ServerInfo>,
    pub(super) terminated: Option<Termination>,
    tasks: VecDeque<ClientTask>,
    pub(super) connections: BTreeMap<ConnectionId, Outputs>,
    events: WaitingEvents<Action<Event>>,
    /// `None` once the client has ended: one of them may hold the client.
    callbacks: Option<Arc<ClientCallbacks>>,
    pub(super) stderr: Stderr,
    attention: Attention,
    observer: Option<Arc<ClientObserver>>,
    /// The calls of the supervisor, which has their ends from the observer.
    supervised: BTreeMap<CallId, CallTag>,
    /// Those that the telemetry follows.
    spans: BTreeMap<CallId, Span>,
    /// Those that wait for the start know that it took too long.
    is_overdue: bool,
    /// The driver has begun to carry out tasks.
    pub(super) begun: bool,
    /// The driver was dropped, or must not begin.
    pub(super) abandoned: bool,
    /// The driver knows that the client has ended.
    ended: bool,
    /// The exit code of this process once the client has ended.
    pub(super) exit: Option<i32>,
    pub(super) on_drop: Option<Box<dyn FnOnce() + Send>>,
}

/// What the end of a fetch goes to.
#[cfg(feature = "auth")]
pub(super) type FetchCall = Box<dyn FnOnce(Result<Box<FetchResponse>, FetchError>) + Send>;

/// A task for the driver, or for the driver of a connection.
#[derive(Debug)]
enum ClientTask {
    Open(ConnectionId, Endpoint),
    Ask(PendingQuestion),
}

impl ClientState {
    pub(super) fn new(
        engine: WiredClient,
        options: &mut ClientOptions,
        callback: Option<EventFn<Action<Event>>>,
        link: ClientLink,
        #[cfg(feature = "auth")] logins: Logins,
    ) -> Self {
        let config = engine.client().config();
        let max = (config.limits.client.max_queued_events, config.limits.client.max_queued_event_bytes);
        Self {
            calls: Waiters::default(),
            notifications: Waiters::default(),
            fetches: Waiters::default(),
            last_fetch: 0,
            #[cfg(feature = "auth")]
            fetch_calls: BTreeMap::new(),
            #[cfg(feature = "auth")]
            logins,
            questions: Questions::default(),
            link,
            watches: Watches::new(engine.client().watched().clone()),
            ready: None,
            terminated: None,
            tasks: VecDeque::new(),
            connections: BTreeMap::new(),
            events: WaitingEvents::new(callback, max),
            callbacks: Some(Arc::new(options.take_callbacks())),
            stderr: options.take_stderr(),
            attention: Attention::default(),
            observer: options.take_observer().map(Arc::new),
            supervised: BTreeMap::new(),
            spans: BTreeMap::new(),
            is_overdue: false,
            begun: false,
            abandoned: false,
            ended: false,
            exit: None,
            on_drop: None,
            checks: options.take_checks(),
            engine,
        }
    }

    pub(super) fn call<M: Method>(
        &mut self,
        now: Instant,
        call: Call<M>,
        span: Option<Span>,
        later: &mut Later,
    ) -> Result<CallHandle<M>, Refusal> {
        let calling = match self.abandoned {
            true => Err(Refusal::Closed),
            false => self.engine.call(now, call).map_err(|refused| refused.why),
        };
        self.follow(now, span, calling.as_ref().map(CallHandle::id), later);
        if let Ok(calling) = &calling {
            self.calls.begin(calling.id());
        }
        calling
    }

    /// Keeps the span of a call until its end. That of a refused call has ended.
    fn follow(&mut self, now: Instant, span: Option<Span>, call: Result<CallId, &Refusal>, later: &mut Later) {
        match (span, call) {
            (None, _) => {}
            (Some(span), Ok(call)) => drop(self.spans.insert(call, span)),
            (Some(span), Err(why)) => self.end_span(now, span, &Err(CallError::Refused(why.clone())), later),
        }
    }

    fn end_span(&self, now: Instant, span: Span, outcome: &Result<RawResult, CallError>, later: &mut Later) {
        later.report(span.end_call(outcome, self.ready.as_ref().map(|server| server.version), now));
    }

    /// Makes a call of the supervisor.
    pub(super) fn run(&mut self, now: Instant, tag: CallTag, call: RawCall, span: Option<Span>, later: &mut Later) {
        let began = match self.engine.act(now, ClientCommand::Call(call)).map_err(|refused| refused.why) {
            Ok(InputResult::Call(call)) => Ok(call),
            Ok(InputResult::Done | InputResult::Notification(_)) => unreachable!("a call has an id"),
            Err(why) => Err(why),
        };
        self.follow(now, span, began.as_ref().copied(), later);
        match began {
            Ok(call) => drop(self.supervised.insert(call, tag)),
            Err(Refusal::Closed | Refusal::Gone) => self.observe_call(ClientReport::NotBegun(tag), later),
            Err(why) => self.observe_call(ClientReport::Ended(tag, Err(CallError::Refused(why))), later),
        }
    }

    /// Cancels a call of the supervisor, which does not learn of its end.
    pub(super) fn cancel_run(&mut self, now: Instant, tag: CallTag) {
        let call = self.supervised.iter().find_map(|(call, of)| (*of == tag).then_some(*call));
        if let Some(call) = call {
            // First, so that nothing of its end is observed.
            self.supervised.remove(&call);
            self.engine.cancel(now, call, None);
        }
    }

    pub(super) fn notify(&mut self, now: Instant, method: &str, params: Object) -> Result<NotificationId, Refusal> {
        let id = self.engine.notify_tracked(now, method, params).map_err(|refused| refused.why)?;
        self.notifications.begin(id);
        Ok(id)
    }

    pub(super) fn fetch(&mut self, now: Instant, request: FetchRequest) -> Result<FetchId, Refusal> {
        let id = self.begin_fetch(now, request)?;
        self.fetches.begin(id);
        Ok(id)
    }

    fn begin_fetch(&mut self, now: Instant, request: FetchRequest) -> Result<FetchId, Refusal> {
        let id = FetchId(self.last_fetch + 1);
        self.engine.fetch(now, id, request).map_err(|refused| refused.why)?;
        self.last_fetch = id.0;
        Ok(id)
    }

    /// Makes a fetch whose end goes to this function. Returns the function if the fetch is refused.
    #[cfg(feature = "auth")]
    pub(super) fn fetch_then(
        &mut self,
        now: Instant,
        request: FetchRequest,
        call: FetchCall,
    ) -> Result<(), (Refusal, FetchCall)> {
        match self.begin_fetch(now, request) {
            Ok(id) => drop(self.fetch_calls.insert(id, call)),
            Err(why) => return Err((why, call)),
        }
        Ok(())
    }

    /// Watches these changes beside all others, until [`unwatch`](Self::unwatch).
    pub(super) fn watch(&mut self, now: Instant, watch: Watch) -> Result<WatchId, Refusal> {
        if self.abandoned {
            return Err(Refusal::Closed);
        }
        let all = self.watches.with(&watch);
        self.engine.watch(now, all).map_err(|refused| refused.why)?;
        Ok(self.watches.insert(watch))
    }

    /// Watches these changes no longer, unless another part of the application does.
    pub(super) fn unwatch(&mut self, now: Instant, id: WatchId) {
        if let Some(rest) = self.watches.remove(id) {
            // A smaller set is refused only after the end.
            self.engine.watch(now, rest).ok();
        }
    }

    /// Executes a command of a callback.
    pub(super) fn command(&mut self, now: Instant, command: ClientCommand) -> Result<(), Refusal> {
        self.questions.answered(&command);
        self.engine.apply(now, Input::Command(command)).map(drop).map_err(|refused| refused.why)
    }

    /// Returns the error of a negotiation that took too long. The client may still be closing: the
    /// end of a program is not awaited within any limit of a start.
    pub(super) fn overdue(&self) -> Option<&NegotiationError> {
        let why = self.engine.client().closing().or(self.terminated.as_ref())?;
        match why {
            Termination::Negotiation(why) if why.cause.is_timeout() => Some(why),
            Termination::Negotiation(_) | Termination::Requested | Termination::Closed(_) => None,
        }
    }

    pub(super) fn stats(&self) -> ClientStats {
        let mut stats = self.engine.stats();
        let (waiting, (notifications, diagnostics)) = self.events.counts();
        stats.queued += waiting;
        // With a callback, events that the engine lost have been counted here as well.
        stats.lost_notifications = stats.lost_notifications.max(notifications);
        stats.lost_diagnostics = stats.lost_diagnostics.max(diagnostics);
        stats
    }

    /// Passes an output to the driver of its connection, if it has not closed.
    fn act(&mut self, id: ConnectionId, output: ConnectionOutput, later: &mut Later) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.push(output, later);
        }
    }

    /// Passes an event to who waits for it.
    fn event(&mut self, now: Instant, event: Event, later: &mut Later) {
        if let Event::Ended { call, outcome } = &event
            && let Some(span) = self.spans.remove(call)
        {
            self.end_span(now, span, outcome, later);
        }
        match event {
            Event::Progress { call, progress } => self.news(call, CallNews::Progress(progress), later),
            Event::Task { call, update } => self.news(call, CallNews::Task(update), later),
            Event::Ended { call, outcome } => match self.supervised.remove(&call) {
                Some(tag) => self.observe_call(ClientReport::Ended(tag, outcome), later),
                None => self.calls.receive(call, later, |call| call.end(outcome)),
            },
            Event::NotificationEnded { notification, outcome } => {
                self.notifications.receive(notification, later, |end| *end = Some(outcome));
            }
            #[cfg(feature = "auth")]
            Event::Fetched { fetch, outcome } if self.fetch_calls.contains_key(&fetch) => {
                if let Some(call) = self.fetch_calls.remove(&fetch) {
                    later.call(move || call(outcome));
                }
            }
            Event::Fetched { fetch, outcome } => self.fetches.receive(fetch, later, |end| *end = Some(outcome)),
            Event::InputWithdrawn(key) => later.cancel(self.questions.withdraw(ReplyKey::Input(key))),
            #[cfg(feature = "auth")]
            Event::Auth(output) => self.auth(output, later),
            event => match Question::of(event) {
                Ok((token, question)) => {
                    self.tasks.push_back(ClientTask::Ask(self.questions.begin(&self.link, token, question)));
                }
                Err(event) => self.tell(event, later),
            },
        }
    }

    /// Passes to the caller what comes before the end of a call.
    fn news(&mut self, call: CallId, news: CallNews, later: &mut Later) {
        match self.supervised.get(&call) {
            Some(tag) => self.observe_call(ClientReport::News(*tag, news), later),
            None => self.calls.receive(call, later, |call| call.news.push(news)),
        }
    }

    /// Passes an event to the application, and to who waits for the start or the end.
    pub(super) fn tell(&mut self, event: Event, later: &mut Later) {
        match &event {
            Event::Ready(server) => self.ready = Some(ServerInfo::clone(server)),
            Event::Terminated(why) => {
                self.terminated = Some(why.clone());
                #[cfg(feature = "auth")]
                self.logins.stop(later);
            }
            _ => {}
        }
        if matches!(event, Event::Ready(_) | Event::Terminated(_)) {
            later.milestone();
        }
        if self.observer.is_some()
            && let Some(observed) = ClientReport::of(&event)
        {
            self.observe(observed, later);
        }
        self.events.push(Action::Event(event));
    }

    fn observe(&self, observed: ClientReport, later: &mut Later) {
        if let Some(observer) = self.observer.clone() {
            observer.push(observed);
            later.call(move || observer.tell());
        }
    }

    /// Calls stay pending if the process exits with this client.
    fn observe_call(&self, observed: ClientReport, later: &mut Later) {
        if self.exit.is_none() {
            self.observe(observed, later);
        }
    }

    /// Ends the engine, its connections, and everything that has a waiter, as aborted by this side.
    fn abort(&mut self, now: Instant, open: &BTreeMap<ConnectionId, Outputs>, later: &mut Later) {
        let aborted = || IoEvent::Closed(Closed::Aborted);
        self.checks.iter().for_each(Checks::stop);
        self.engine.close(now);
        open.keys().for_each(|id| self.engine.handle_io(now, *id, aborted()));
        while let Some(action) = self.engine.poll_output() {
            match action {
                Action::Open(id, _) => self.engine.handle_io(now, id, aborted()),
                Action::Event(event) => self.event(now, event, later),
                Action::Secure(..) | Action::Write(..) | Action::Read(..) | Action::Close(..) | Action::Notice(..) => {}
            }
        }
        if self.terminated.is_none() {
            let why = Termination::Closed(Closed::Aborted);
            self.observe(ClientReport::Terminated(why.clone()), later);
            self.terminated = Some(why);
        }
        self.calls.abort(later);
        self.notifications.abort(later);
        self.fetches.abort(later);
        #[cfg(feature = "auth")]
        self.logins.stop(later);
    }
}

impl Front for ClientState {
    type Setup = ClientSetup;
    type Event = Action<Event>;

    fn sort(&mut self, now: Instant, later: &mut Later) {
        while let Some(action) = self.engine.poll_output() {
            match action {
                Action::Open(id, endpoint) => {
                    self.connections.insert(id, Outputs::default());
                    self.tasks.push_back(ClientTask::Open(id, endpoint));
                }
                Action::Write(id, bytes) => self.act(id, ConnectionOutput::Write(bytes), later),
                Action::Read(id, reads) => self.act(id, ConnectionOutput::Read(reads), later),
                Action::Secure(id, name) => self.act(id, ConnectionOutput::Secure(name), later),
                Action::Close(id, how) => self.act(id, ConnectionOutput::Close(how), later),
                Action::Notice(id, notice) => self.events.push(Action::Notice(id, notice)),
                Action::Event(event) => self.event(now, event, later),
            }
        }
        if !self.is_overdue && self.overdue().is_some() {
            self.is_overdue = true;
            later.milestone();
        }
    }

    fn has_task(&self) -> bool {
        !self.begun || !self.tasks.is_empty() || self.events.wait() || self.ends()
    }

    fn ends(&self) -> bool {
        self.terminated.is_some() && !self.ended
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }

    fn attention(&mut self) -> &mut Attention {
        &mut self.attention
    }

    fn events(&mut self) -> &mut WaitingEvents<Self::Event> {
        &mut self.events
    }
}

impl Engine for ClientState {
    const NAME: &'static str = "Client";

    fn begin(&mut self, now: Instant, later: &mut Later) {
        if !replace(&mut self.begun, true) {
            self.sort(now, later);
        }
    }

    fn next_task(&mut self, shared: &Arc<Shared<Self>>) -> Option<Task> {
        if !self.begun {
            return None;
        }
        match self.tasks.pop_front() {
            Some(ClientTask::Open(id, endpoint)) => {
                let mark = self.connections.get(&id).map(Outputs::mark).unwrap_or_default();
                let connection = DrivenConnection::client(Arc::clone(shared), id, &endpoint, mark);
                Some(Task::Open(connection, endpoint))
            }
            Some(ClientTask::Ask(asking)) => {
                let callbacks = self.callbacks.clone().unwrap_or_default();
                Some(Task::Route(RouteTask(RoutingKind::Asking(asking, callbacks))))
            }
            None => self.events.claim().then(|| Task::Deliver(Events::new(Arc::clone(shared) as _))),
        }
    }

    fn take_end(&mut self, later: &mut Later) -> bool {
        let ends = self.ends();
        if ends {
            self.ended = true;
            later.drop_later((self.callbacks.take(), take(&mut self.stderr)));
            self.events.finish(later);
        }
        ends
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
    }

    fn abandon(&mut self, now: Instant, later: &mut Later) {
        let had_ended = self.terminated.is_some();
        (self.abandoned, self.begun) = (true, true);
        let mut connections = take(&mut self.connections);
        if !had_ended {
            self.abort(now, &connections, later);
        }
        // Their drivers abort them.
        connections.values_mut().for_each(|connection| connection.alert(later));
        later.milestone();
        // Somebody may still deliver the last events of a client that has ended.
        match had_ended {
            true => self.events.finish(later),
            false => self.events.clear(later),
        }
        later.drop_later((self.callbacks.take(), take(&mut self.stderr), self.on_drop.take(), take(&mut self.tasks)));
    }
}
