//! The client engine (seam B): ids, deadlines, eras, questions. It uses exchanges, and no socket, clock or
//! thread. Negotiation follows the versioning and stdio pages of 2026-07-28; the handshake follows the
//! lifecycle pages of the legacy revisions.
//!
//! The application gives *commands*: `call`, `cancel`, `answer`, `authorize`, `notify`, `close`. The engine may
//! refuse some of them, and nothing has changed then. The driver reports *events* of exchanges with
//! `handle_event`, and *time* with `handle_timeout`, at the instant that `poll_timeout` returns. Neither can
//! fail. *Outputs* leave through `poll_output`, in one order. Every method that takes `now` uses the latest instant that the engine was given. A response that
//! arrives before the tick wins over the timer.

mod ask;
mod backoff;
mod calls;
mod config;
mod era;
#[cfg(feature = "http")]
mod headers;
mod ids;
mod link;
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
use calls::CallState;
use core::time::Duration;
use era::Phase;
use ids::Ids;
use link::Exchanges;
#[cfg(feature = "http")]
use link::HttpState;
use notifications::Notifications;
use outbox::Outbox;
use pings::Pings;
#[cfg(feature = "http")]
use refresh::Catalogue;
use restart::Restarts;
use starting::Starting;
use subscription::Subscription;

/// An output of a client, for its driver (seam B).
#[derive(PartialEq, Debug)]
#[must_use]
pub enum Output {
    /// Begin an exchange.
    Start(ExchangeId, Start),
    /// Send this on the exchange.
    Send(ExchangeId, Outbound),
    /// End the exchange now. The driver reports no further event of it, and the engine sends nothing on it.
    Abort(ExchangeId),
    /// An event for the application.
    Event(Event),
}

/// An event of a client, for the application.
#[derive(PartialEq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Negotiation succeeded. Emitted again after each restart of the server and for each new HTTP session,
    /// with the information of that one. Calls that were made earlier are sent now.
    Ready(ServerInfo),
    /// The server exited, and the client restarts it after a delay ([`ClientConfig::restart`]). Emitted after
    /// the ends of its calls. Not emitted when the client gives up: that is [`Terminated`](Self::Terminated).
    Restarting {
        /// The number of consecutive restarts, this one included. It selects the delay in [`Restart::waits`].
        attempt: u32,
        /// The delay.
        wait: Duration,
        /// How the server exited.
        why: Closed,
    },
    /// Progress of a call that asked for it. Never emitted after the call has ended.
    Progress {
        /// The call.
        call: CallId,
        /// The progress.
        progress: Progress,
    },
    /// A call has ended. Emitted exactly once for every accepted call, as its last event.
    Ended {
        /// The call.
        call: CallId,
        /// The result or the error. [`Calling::finish`] decodes it.
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
    /// The server requests input. Emitted only for capabilities that the configuration declares.
    InputNeeded {
        /// The right to answer, for [`Client::answer`].
        token: InputToken,
        /// The call that waits for the answer, if the revision says which one.
        call: Option<CallId>,
        /// The question.
        request: InputRequest,
    },
    /// The tools of the server may have changed: the server sent a notification, or the client may have
    /// missed one. Emitted only with a listener ([`ClientConfig::listener`], up to 2025-11-25), on a duplex
    /// connection, or with [`ClientConfig::watch_tools`]. Dropped like a notification when the queue is full.
    ToolsChanged,
    /// The server requires credentials, and requests wait for them. Emitted once per challenge, however many
    /// requests wait, and only with [`ClientConfig::authorize`].
    AuthNeeded {
        /// The right to answer, for [`Client::authorize`].
        token: AuthToken,
        /// The status and the challenge of the server.
        challenge: Challenge,
        /// The calls that wait now. Others may join them. Empty if the handshake or the listener waits.
        targets: Vec<CallId>,
    },
    /// An event stream ended early, and the client resumes it after a delay (2025-11-25 transports,
    /// resumability). Dropped like a diagnostic when the queue is full.
    Reconnecting {
        /// The purpose of the stream.
        stream: StreamOf,
        /// The number of consecutive attempts without a message, the next one included.
        attempt: u32,
        /// The delay.
        wait: Duration,
        /// How the stream, or the previous attempt, ended.
        cause: StreamEnd,
        /// The last event id, which the client sends as `Last-Event-ID`.
        last_event: Option<String>,
    },
    /// The listener, or the subscription in its place, is lost. Calls continue. Notifications and input
    /// requests that belong to no call do not arrive. Emitted once while the client retries, and once more
    /// if it stops retrying. Not emitted if the server offers neither.
    ListenerLost {
        /// How the last attempt ended.
        cause: StreamEnd,
        /// The time until the next attempt; `None` if there is none.
        again: Option<Duration>,
    },
    /// The server no longer waits for this input. The engine ignores an answer.
    InputWithdrawn(InputKey),
    /// A notification that belongs to no call.
    Notification {
        /// Its method.
        method: String,
        /// Its params.
        params: Option<RawJson>,
    },
    /// The server violated a rule, or the engine dropped something that it sent.
    Diagnostic(Diagnostic),
    /// Notifications or diagnostics were dropped, since the application did not take them in time.
    Lost {
        /// The number of dropped notifications.
        notifications: u64,
        /// The number of dropped diagnostics.
        diagnostics: u64,
    },
    /// A ping of [`ClientConfig::ping`] got no response, or could not be sent. The connection stays open: the
    /// application decides whether to close it. Not emitted for a ping of the application, which is a call.
    /// Dropped like a diagnostic when the queue is full.
    PingMissed {
        /// The time waited: [`ClientConfig::ping_timeout`], less if an HTTP exchange ended first, zero if the
        /// ping was not sent because the server reads nothing.
        waited: Duration,
        /// The number of pings missed since the last response, this one included.
        in_a_row: u32,
    },
    /// A connection is being ended in this way. Emitted after the action, once for each step. Not emitted for
    /// a step that was unnecessary because the program had exited. Only a
    /// [`WiredClient`](crate::wired::WiredClient) emits it. Dropped like a diagnostic when the queue is full.
    ChannelClosing {
        /// The connection.
        channel: ConnectionId,
        /// The step.
        step: Shutdown,
    },
    /// A connection is closed. Emitted once for every connection, after its effects on calls. Only a
    /// [`WiredClient`](crate::wired::WiredClient) emits it. Dropped like a diagnostic when the queue is full.
    ChannelClosed {
        /// The connection.
        channel: ConnectionId,
        /// How it ended.
        why: Closed,
    },
    /// The client has terminated. Emitted exactly once, as the last output, after the end of every call.
    Terminated(Termination),
}

/// The purpose of an event stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum StreamOf {
    /// The response to a call.
    Call(CallId),
    /// The response to a ping of the engine.
    Own,
    /// Notifications and requests of the server that belong to no call.
    Listener,
}

/// Why a client terminated.
#[derive(Clone, PartialEq, Debug)]
pub enum Termination {
    /// The application closed it.
    Requested,
    /// Negotiation failed.
    Negotiation(NegotiationError),
    /// The connection ended.
    Closed(Closed),
}

/// The timers of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Timer {
    /// Limit for the response to `server/discover` or `initialize`.
    Handshake,
    /// Limit for connecting and negotiating: [`ClientConfig::connect_timeout`].
    Start,
    /// Limit for the exit of a program that has closed its output.
    ExitGrace,
    /// Delay before the restart of a server.
    Restart,
    /// The next ping of the engine, or the limit for its response.
    Ping,
    /// Limit for the response to a call.
    Call(CallId),
    /// Limit for the total duration of a call.
    Total(CallId),
    /// Delay before the next round of a call.
    Round(CallId),
    /// Limit for the rest of an HTTP response.
    Drain(ExchangeId),
    /// Limit for the head of an HTTP response, or for the response to an HTTP request that is no call.
    Answer(ExchangeId),
    /// Limit for the silence of a listener.
    Idle(ExchangeId),
    /// Delay before an event stream is resumed.
    Resume(ExchangeId),
    /// Limit for the time that calls wait for the listener.
    Hold,
    /// Delay before the next subscription, or the limit for its acknowledgement.
    Subscription,
    /// A timer of a connection, not of the engine.
    Connection,
}

/// The state of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum State {
    /// `server/discover` was sent.
    Probing,
    /// `initialize` was sent.
    Initializing,
    /// Negotiated: the client sends calls.
    Ready,
    /// The session has ended, and the server refused another one. The next call tries again.
    Lapsed,
    /// The program has closed its output, and the client waits for its exit status.
    Ending,
    /// The server has exited, and the client restarts it after a delay. Calls wait.
    Restarting,
    /// The application closed the client, or negotiation failed. The exchanges end.
    Closing,
    /// The client has terminated.
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
    exchanges: Exchanges,
    timers: Timers<Timer>,
    restarts: Restarts,
    starting: Starting,
    pings: Pings,
    subscription: Subscription,
    #[cfg(feature = "http")]
    catalogue: Catalogue,
    #[cfg(feature = "http")]
    http_state: HttpState,
    out: Outbox,
}

impl Client {
    /// Creates a client, which begins to negotiate at once: its first output starts an exchange. `seed` must
    /// be unpredictable and used for no other engine.
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
            exchanges: Exchanges::default(),
            timers: Timers::new(),
            restarts: Restarts::default(),
            starting: Starting::default(),
            pings: Pings::default(),
            subscription: Subscription::default(),
            #[cfg(feature = "http")]
            catalogue: Catalogue::default(),
            #[cfg(feature = "http")]
            http_state: HttpState::new(&Seed::new(seed)),
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
        self.end_http_state();
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
}
