//! The client engine (seam B): ids, deadlines, eras, questions. It speaks in exchanges and knows no socket, no clock and no thread.
//! The dual-era start follows the versioning and stdio pages of 2026-07-28; the handshake the lifecycle pages of the older revisions.
//!
//! Methods come in four kinds. *Commands* (`call`, `cancel`, `answer`, `authorize`, `notify`, `close`) are what the application asks; some may be
//! refused, and a refusal changes nothing. *Facts* (`fact`) and *time* (`handle_timeout`) cannot fail. *Results* come out of
//! `poll_output` in one order, and `poll_timeout` says when to call `handle_timeout`. Every method that takes `now` goes on with the
//! latest instant it has seen; an answer that arrives before the tick wins over the timer.

mod ask;
mod backoff;
mod binding;
mod calls;
mod config;
mod era;
#[cfg(feature = "http")]
mod headers;
mod ids;
mod notifications;
mod outbox;
mod pings;
#[cfg(feature = "http")]
mod refresh;
mod restart;
mod starting;
mod subscription;
#[cfg(feature = "http")]
mod tools;
#[cfg(feature = "http")]
mod url;

#[cfg(test)]
mod tests;

pub use config::{
    CancelSignal, ClientConfig, IdPolicy, ListenerEnd, ListenerStart, ListenerTime, Malformed, Policy, Repeat, Resume,
    SseDecode, Target, Verdict,
};
#[cfg(feature = "http")]
pub use headers::BadHeader;
pub use restart::Restart;
#[cfg(feature = "http")]
pub use url::{BadUrl, HttpTarget};

use crate::call::{Call, Calling, Method, RawResult};
use crate::error::{CallError, Diagnostic, DiagnosticKind, NegotiationError, Refused, StreamEnd, excerpt};
use crate::exchange::{Closed, ConnectionId, ExchangeEvent, ExchangeId, Outbound, Shutdown, Start};
use crate::input::{
    Applied, AuthToken, Authorization, CallId, Challenge, ClientCommand, ClientInput, Input, InputAnswer, InputKey,
    InputRequest, InputToken, NotificationId,
};
use crate::model::Progress;
use crate::model::lifecycle::ServerInfo;
use crate::rpc::{Object, RawJson};
use crate::seed::Seed;
use crate::time::{Instant, Timers};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ask::Asked;
use binding::Exchange;
#[cfg(feature = "http")]
use binding::Web;
use calls::CallState;
use core::time::Duration;
use era::Phase;
use ids::Ids;
use notifications::Notifications;
use outbox::Outbox;
use pings::Pings;
use restart::Restarts;
use starting::Starting;
use subscription::Subscription;

/// What a client tells its driver (seam B), in order.
#[derive(PartialEq, Debug)]
#[must_use]
pub enum Output {
    /// Begin an exchange.
    Start(ExchangeId, Start),
    /// Say this on it.
    Send(ExchangeId, Outbound),
    /// End it now; nothing more is said of it, by either side.
    Abort(ExchangeId),
    /// Something for the application.
    Event(Event),
}

/// What a client tells its application.
#[derive(PartialEq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The two sides have agreed: once, and once more after each restart of the server and for each new session over HTTP, of which this
    /// tells as it is now. Calls made before it wait for it.
    Ready(ServerInfo),
    /// The server has ended, and is started anew after a wait. Comes after the ends of the calls that are lost with it. Only with
    /// [`ClientConfig::restart`]. Not when the client gives up: that is [`Terminated`](Self::Terminated).
    Restarting {
        /// Which start in a row this is, the first one after the end being 1: what [`Restart::waits`] goes by.
        attempt: u32,
        /// How long is waited before it.
        wait: Duration,
        /// How the server ended.
        why: Closed,
    },
    /// A call that asked for it got progress. Never after the call has ended.
    Progress {
        /// The call.
        call: CallId,
        /// How far it is.
        progress: Progress,
    },
    /// A call has ended: exactly once for every call that was accepted, the last event of that call.
    Ended {
        /// The call.
        call: CallId,
        /// How it ended; [`Calling::finish`] reads it.
        outcome: Result<RawResult, CallError>,
    },
    /// The delivery of a notification of [`notify_tracked`](Client::notify_tracked) ended. Emitted exactly once for each accepted one, unless
    /// it was [untracked](Client::untrack) before. Not emitted for a notification of [`notify`](Client::notify).
    NotificationEnded {
        /// The notification.
        notification: NotificationId,
        /// Over HTTP, `Ok` if the server responded with a 2xx status; otherwise how the request failed, which is also a diagnostic. On a
        /// duplex exchange, `Ok` if the driver wrote it; otherwise how the exchange ended first.
        outcome: Result<(), CallError>,
    },
    /// The server asks something. Only for capabilities that the configuration declares.
    InputNeeded {
        /// Give it back with the answer.
        token: InputToken,
        /// The call that waits for it, where the revision tells.
        call: Option<CallId>,
        /// The question.
        request: InputRequest,
    },
    /// The tools of the server may have changed: it said so, or there was a time in which it could not have said so. Only for a listener
    /// ([`ClientConfig::listener`], up to 2025-11-25), a duplex connection, or [`ClientConfig::watch_tools`]. May be counted as lost like a
    /// notification.
    ToolsChanged,
    /// The server wants credentials, and requests wait for them. Once for a challenge, however many requests it stops. Only with
    /// [`ClientConfig::authorize`].
    AuthNeeded {
        /// Give it back with the answer.
        token: AuthToken,
        /// What the server says.
        challenge: Challenge,
        /// The calls that wait at the moment; others may join them. Empty if something else does, the handshake or the listener.
        targets: Vec<CallId>,
    },
    /// An event stream broke off and the rest of it is asked for after a wait (2025-11-25 transports, resumability). May be counted as lost
    /// like a diagnostic.
    Reconnecting {
        /// What the stream serves.
        stream: StreamOf,
        /// Which attempt in a row it will be, since a message last came of it; the first is 1.
        attempt: u32,
        /// How long is waited before it.
        wait: Duration,
        /// How the stream, or the attempt before, ended.
        cause: StreamEnd,
        /// The id of the last event that had one: from there on it is asked for.
        last_event: Option<String>,
    },
    /// The listener, or the subscription in its place, is lost. Calls continue; notifications and questions that belong to no call do not
    /// arrive. Emitted once while the client tries again, and once more if it stops trying. Not emitted where the server offers none.
    ListenerLost {
        /// How the last attempt ended.
        cause: StreamEnd,
        /// The time until the next attempt; `None` if there is none.
        again: Option<Duration>,
    },
    /// A question is no longer of interest; an answer to it is ignored.
    InputWithdrawn(InputKey),
    /// A notification that is not part of a call.
    Notification {
        /// Its method.
        method: String,
        /// Its params.
        params: Option<RawJson>,
    },
    /// The server did something wrong, or something of it was dropped.
    Diagnostic(Diagnostic),
    /// So many notifications or diagnostics were not delivered, since the application did not take them.
    Lost {
        /// How many notifications.
        notifications: u64,
        /// How many diagnostics.
        diagnostics: u64,
    },
    /// A ping of [`ClientConfig::ping`] went unanswered, or could not be sent. The connection goes on: whether it is to end is for the
    /// application to say. May be counted as lost like a diagnostic. Not for a ping that the application makes: that is a call.
    PingMissed {
        /// How long its answer was waited for: [`ClientConfig::ping_timeout`], less if an HTTP exchange ended before, and zero if the
        /// ping was not sent because the server takes no bytes.
        waited: Duration,
        /// How many were missed since the last answer, this one included.
        in_a_row: u32,
    },
    /// A channel is being ended in this way: told after the action that does it, one for each step that is taken. Of the ladder that
    /// ends a program, a step that was not needed is not told, since the program had exited before it. Only from a
    /// [`WiredClient`](crate::wired::WiredClient): an engine alone knows no channels. May be counted as lost like a diagnostic.
    ChannelClosing {
        /// The channel.
        channel: ConnectionId,
        /// The step.
        step: Shutdown,
    },
    /// A channel is closed: once for every channel that was to be opened, after all that came of it for calls. Here is the exit status
    /// of a program that was closed on request. Only from a [`WiredClient`](crate::wired::WiredClient), and only once the driver told it
    /// the end: a driver that is dropped tells nobody. May be counted as lost like a diagnostic.
    ChannelClosed {
        /// The channel.
        channel: ConnectionId,
        /// How it ended.
        why: Closed,
    },
    /// The client has ended; exactly once, and the last output of all. Every call has ended before.
    Terminated(Termination),
}

/// What an event stream serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum StreamOf {
    /// The answer to a call.
    Call(CallId),
    /// The answer to a ping of the engine's own.
    Own,
    /// What the server says unasked.
    Listener,
}

/// Why a client has ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Termination {
    /// The application closed it.
    Requested,
    /// The two sides did not agree.
    Negotiation(NegotiationError),
    /// The connection ended.
    Closed(Closed),
}

/// The timers of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Timer {
    /// The probe or the handshake goes unanswered.
    Handshake,
    /// The maximum time of a whole start: [`ClientConfig::connect_timeout`].
    Start,
    /// The server has closed its output, and its exit status has not come.
    ExitGrace,
    /// A server that has ended is started anew.
    Restart,
    /// A ping of our own is due, or the answer to it.
    Ping,
    /// A call has waited as long as it may for its answer.
    Call(CallId),
    /// A call has lasted as long as it may in total.
    Total(CallId),
    /// A call that was told to try again does so.
    Round(CallId),
    /// The rest of an HTTP answer does not come.
    Drain(ExchangeId),
    /// The head of an HTTP answer does not come, or the answer to what is no call.
    Answer(ExchangeId),
    /// Nothing comes of a listener.
    Idle(ExchangeId),
    /// The rest of an event stream is asked for.
    Resume(ExchangeId),
    /// Calls have waited for the listener.
    Hold,
    /// The subscription to changes is made again, or its acknowledgement does not come.
    Subscription,
    /// A timer of a channel, not of the engine.
    Connection,
}

/// Where a client is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum State {
    /// `server/discover` was sent.
    Probing,
    /// `initialize` was sent.
    Initializing,
    /// Calls are being made.
    Ready,
    /// The session has ended, and another could not be had. The next call tries again.
    Lapsed,
    /// A program has closed its output; its exit status is awaited.
    Ending,
    /// The server has ended; it is started anew after a wait. Calls wait.
    Restarting,
    /// The application closed it, or the negotiation failed; the exchanges end.
    Closing,
    /// It has ended.
    Terminated,
}

/// The client engine. See the [module](self) for how it is driven.
#[derive(Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
    seed: Seed,
    now: Instant,
    phase: Phase,
    ids: Ids,
    calls: BTreeMap<CallId, CallState>,
    next_call: u64,
    notifications: Notifications,
    inputs: BTreeMap<InputKey, Asked>,
    next_input: u64,
    exchanges: BTreeMap<ExchangeId, Exchange>,
    next_exchange: u64,
    timers: Timers<Timer>,
    restarts: Restarts,
    starting: Starting,
    pings: Pings,
    subscription: Subscription,
    #[cfg(feature = "http")]
    web: Web,
    out: Outbox,
}

impl Client {
    /// A client that begins to negotiate at once: its first output starts an exchange. `seed` must be unguessable and used for no other
    /// engine.
    pub fn new(config: Arc<ClientConfig>, seed: [u8; 32], now: Instant) -> Self {
        let mut client = Self {
            ids: Ids::new(config.ids, config.origin_unix, config.limits.client.max_retired),
            out: Outbox::new(&config.limits.client),
            config,
            seed: Seed::new(seed),
            now,
            phase: Phase::Terminated,
            calls: BTreeMap::new(),
            next_call: 0,
            notifications: Notifications::default(),
            inputs: BTreeMap::new(),
            next_input: 0,
            exchanges: BTreeMap::new(),
            next_exchange: 0,
            timers: Timers::new(),
            restarts: Restarts::default(),
            starting: Starting::default(),
            pings: Pings::default(),
            subscription: Subscription::default(),
            #[cfg(feature = "http")]
            web: Web::new(&Seed::new(seed)),
        };
        client.begin();
        client
    }

    /// The one entrance: every other mutator is a thin form of it.
    ///
    /// # Errors
    /// [`Refused`] with the input, if it was a command that cannot be carried out; nothing has changed then.
    pub fn apply(&mut self, now: Instant, input: ClientInput) -> Result<Applied, Refused<ClientInput>> {
        self.now = self.now.max(now);
        let refused = |value, why| Refused { value: Input::Command(value), why };
        match input {
            Input::Event(exchange, fact) => self.on_fact(exchange, fact),
            Input::Tick => self.on_tick(),
            Input::Command(ClientCommand::Call(call)) => {
                return self
                    .on_call(call)
                    .map(Applied::Call)
                    .map_err(|r| r.map(|c| Input::Command(ClientCommand::Call(c))));
            }
            Input::Command(ClientCommand::Cancel(call, reason)) => self.on_cancel(call, reason),
            Input::Command(ClientCommand::Answer(key, answer)) => self.on_answer(key, answer),
            Input::Command(ClientCommand::Notify(method, params)) => {
                if let Err(why) = self.on_notify(&method, &params) {
                    return Err(refused(ClientCommand::Notify(method, params), why));
                }
            }
            Input::Command(ClientCommand::NotifyTracked(method, params)) => {
                return match self.on_notify_tracked(&method, &params) {
                    Ok(id) => Ok(Applied::Notification(id)),
                    Err(why) => Err(refused(ClientCommand::NotifyTracked(method, params), why)),
                };
            }
            Input::Command(ClientCommand::Untrack(id)) => self.on_untrack(id),
            Input::Command(ClientCommand::Authorize(key, with)) => self.on_authorize(key, with),
            Input::Command(ClientCommand::Close) => self.shut(Termination::Requested),
        }
        Ok(Applied::Done)
    }

    /// Makes a call. It is sent at once if the two sides have agreed, else as soon as they have.
    ///
    /// # Errors
    /// [`Refusal::Full`](crate::Refusal::Full) at a limit, [`Refusal::Closed`](crate::Refusal::Closed) after [`close`](Self::close) or the
    /// end, [`Refusal::Unencodable`](crate::Refusal::Unencodable).
    pub fn call<M: Method>(&mut self, now: Instant, call: Call<M>) -> Result<Calling<M>, Refused<Call<M>>> {
        self.now = self.now.max(now);
        self.on_call(call.into_raw()).map(Calling::new).map_err(|refused| refused.map(Call::from_raw))
    }

    /// Cancels a call: it ends with [`CallError::Cancelled`], and the server is told as the era demands. Nothing happens if it has ended.
    pub fn cancel(&mut self, now: Instant, call: CallId, reason: Option<&str>) {
        self.now = self.now.max(now);
        self.on_cancel(call, reason.map(ToOwned::to_owned));
    }

    /// Answers a question. Ignored if it was withdrawn. An answer of another kind than the question, or content that does not fit the
    /// form, counts as [`InputAnswer::Error`].
    pub fn answer(&mut self, now: Instant, to: InputToken, answer: InputAnswer) {
        self.now = self.now.max(now);
        self.on_answer(to.key(), answer);
    }

    /// Answers a challenge. Ignored if it was answered, and after the end. If what waited for it has ended meanwhile, its credentials are good
    /// for what comes.
    pub fn authorize(&mut self, now: Instant, to: AuthToken, with: Authorization) {
        self.now = self.now.max(now);
        self.on_authorize(to.key(), with);
    }

    /// Sends a notification of a custom method. The engine does not report its delivery, except that a failure over HTTP is a diagnostic
    /// ([`DiagnosticKind::DroppedNotification`]). If the client is closed right after, it still sends the notification, within
    /// [`ClientLimits::session_end_time`](crate::limits::ClientLimits::session_end_time).
    ///
    /// # Errors
    /// [`Refusal::Closed`](crate::Refusal::Closed) before negotiation has succeeded and after the end,
    /// [`Refusal::Full`](crate::Refusal::Full) at a limit.
    pub fn notify(&mut self, now: Instant, method: &str, params: Object) -> Result<(), Refused<Object>> {
        self.now = self.now.max(now);
        self.on_notify(method, &params).map_err(|why| Refused { value: params, why })
    }

    /// Like [`notify`](Self::notify), and [`Event::NotificationEnded`] reports the delivery. On a duplex exchange this needs a driver that
    /// reports [`ExchangeEvent::Unsent`].
    ///
    /// # Errors
    /// As [`notify`](Self::notify); also [`Refusal::Full`](crate::Refusal::Full) while
    /// [`ClientLimits::max_calls`](crate::limits::ClientLimits::max_calls) notifications are tracked.
    pub fn notify_tracked(
        &mut self,
        now: Instant,
        method: &str,
        params: Object,
    ) -> Result<NotificationId, Refused<Object>> {
        self.now = self.now.max(now);
        self.on_notify_tracked(method, &params).map_err(|why| Refused { value: params, why })
    }

    /// Stops tracking a notification: the engine still sends it, and does not report its delivery. Does nothing if that has ended.
    pub fn untrack(&mut self, now: Instant, notification: NotificationId) {
        self.now = self.now.max(now);
        self.on_untrack(notification);
    }

    /// Closes the client in order: calls end with [`CallError::Closed`], questions are withdrawn, then exchanges are ended. Over HTTP the
    /// client first waits for accepted notifications, then ends the session, each within
    /// [`ClientLimits::session_end_time`](crate::limits::ClientLimits::session_end_time). Idempotent.
    pub fn close(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.shut(Termination::Requested);
    }

    /// Tells what became of an exchange. Facts about an exchange that is over are ignored.
    pub fn handle_event(&mut self, now: Instant, exchange: ExchangeId, fact: ExchangeEvent) {
        self.now = self.now.max(now);
        self.on_fact(exchange, fact);
    }

    /// Fires the timers that are due, in the order of their deadlines. Does nothing if called early or without need.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.on_tick();
    }

    /// The next output. When it is asked for never changes what comes out, except that
    /// [`Event::Lost`] counts what nobody fetched.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout); `None`: nothing is awaited. Changes only through the other mutators.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next().map(|(at, _)| at)
    }

    /// Why [`poll_timeout`](Self::poll_timeout) says what it says.
    pub fn timeout_reason(&self) -> Option<Timer> {
        self.timers.next().map(|(_, timer)| timer)
    }

    /// Where the client is in its life.
    pub const fn state(&self) -> State {
        self.phase.state()
    }

    /// What is known of the server; `None` before [`Event::Ready`], and from the end of a server to the next one.
    pub const fn server_info(&self) -> Option<&ServerInfo> {
        match &self.phase {
            Phase::Ready(info) | Phase::Ending(info) => Some(info),
            _ => None,
        }
    }

    /// What was found out about the server, to be stored for a later client of it; `None` before the first [`Event::Ready`].
    pub const fn verdict(&self) -> Option<Verdict> {
        self.restarts.learnt()
    }

    /// The configuration.
    pub const fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }

    /// Calls that have not ended.
    pub fn running(&self) -> usize {
        self.calls.len() - self.own_calls()
    }

    /// Questions of the server that the application has not answered.
    pub fn questions(&self) -> usize {
        self.inputs.len()
    }

    /// Whether [`Event::Terminated`] was emitted.
    pub fn is_terminated(&self) -> bool {
        self.state() == State::Terminated
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.timers.pop_due(self.now) {
            match timer {
                Timer::Handshake => self.on_handshake_timeout(),
                Timer::Start => self.on_start_timeout(),
                Timer::ExitGrace => self.on_exit_grace(),
                Timer::Restart => self.on_restart(),
                Timer::Ping => self.on_ping_timer(),
                Timer::Call(call) | Timer::Total(call) => self.on_call_timeout(call, timer),
                Timer::Round(call) => self.on_round(call),
                Timer::Drain(exchange) => self.drop_exchange(exchange),
                Timer::Answer(exchange) => self.on_answer_timeout(exchange),
                Timer::Idle(exchange) => self.on_idle(exchange),
                Timer::Resume(exchange) => self.on_resume(exchange),
                Timer::Hold => self.release(),
                Timer::Subscription => self.on_subscription_timer(),
                Timer::Connection => {}
            }
        }
    }

    /// Ends everything: the calls, the questions, the exchanges. `Terminated` follows when the last exchange is gone.
    fn shut(&mut self, why: Termination) {
        match self.phase.state() {
            State::Closing | State::Terminated => return,
            State::Probing | State::Initializing | State::Ready | State::Lapsed | State::Ending | State::Restarting => {
            }
        }
        let session = self.version().filter(|_| why == Termination::Requested && !self.is_duplex());
        self.forget_tools(false);
        self.end_all_calls(&why);
        self.end_pings();
        if why == Termination::Requested {
            self.unsubscribe();
        }
        self.end_watching();
        self.ids.retire_handshake();
        self.withdraw_all();
        self.end_web();
        self.timers.clear();
        self.phase = Phase::Closing(why);
        self.delete_session_last(session);
        self.end_exchanges();
        self.terminate_if_done();
    }

    fn terminate_if_done(&mut self) {
        if !self.exchanges.is_empty() || self.phase.state() != State::Closing || self.delete_session() {
            return;
        }
        self.end_notifications(&Closed::Aborted);
        if let Phase::Closing(why) = core::mem::replace(&mut self.phase, Phase::Terminated) {
            self.timers.clear();
            let why = self.date_termination(why);
            self.out.finish(Event::Terminated(why));
        }
    }

    fn diagnose(&mut self, kind: DiagnosticKind, detail: impl Into<String>) {
        self.out.diagnostic(Diagnostic::new(kind, excerpt(&detail.into())));
    }

    fn mint_exchange(&mut self) -> ExchangeId {
        self.next_exchange += 1;
        ExchangeId(self.next_exchange)
    }
}
