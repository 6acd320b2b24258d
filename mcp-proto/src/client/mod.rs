//! The client engine (seam B): ids, deadlines, eras, questions. It uses exchanges, and no socket,
//! clock or thread. Negotiation follows the versioning and stdio pages of 2026-07-28; the handshake
//! follows the lifecycle pages of the legacy revisions.
//!
//! The application gives *commands*: `call`, `cancel`, `answer`, `authorize`, `notify`, `close`.
//! The engine may refuse some of them, and its state does not change then. The driver reports
//! *events* of exchanges with `handle_event`, and *time* with `handle_timeout`, at the instant that
//! `poll_timeout` returns. Neither can fail. *Outputs* leave through `poll_output`, in one order.
//! Every method that takes `now` uses the latest instant that the engine was given. A response that
//! arrives before the tick takes precedence over the timer.

mod answer_tasks;
mod ask;
mod backoff;
mod cache;
mod call_table;
mod calls;
mod commands;
mod compat;
mod config;
mod control;
mod ctx;
mod elicitations;
mod ended;
mod env;
mod event;
mod fetch;
mod handshake;
mod headers;
mod ids;
mod incoming;
mod link;
mod logging;
mod login;
mod no_proxy;
mod notifications;
mod outgoing;
mod pings;
mod proxy;
mod queue;
mod refresh;
mod subscription;
mod tasks;
mod tools;
mod validate;
mod watching;

#[cfg(test)]
mod tests;

pub use crate::fetch::{BadUrl, FetchError, FetchId, FetchRequest, FetchResponse, HttpTarget, Redirects, WsTarget};
pub use cache::Cache;
pub use commands::ClientCommands;
pub use compat::{
    CancelSignal, ClientCompat, EndpointOrigin, EndpointRefresh, EndpointRule, IdPolicy, ListenerEnd, ListenerStart,
    ListenerTime, OnMalformed, SseDecode,
};
pub use config::{ClientConfig, HttpMode, HttpTransport, Policy, Repeat, Resume, Target, Verdict};
pub use control::{ControlEvent, StreamOf};
pub use event::{Event, Output, Termination};
pub use handshake::State;
pub use headers::BadHeader;
pub use no_proxy::NoProxy;
#[cfg(feature = "record")]
pub(crate) use proxy::ProxySetting;
pub use proxy::{BadProxy, Proxies, Proxy};
pub use validate::{OnMismatch, ResultValidation};

use crate::auth::FlowState;
use crate::error::{CallError, RefusedCommand};
use crate::exchange::{ExchangeEvent, ExchangeId, Inbound};
use crate::input::{Authorization, CallId, ClientCommand, ClientInput, Input, InputResult};
use crate::model::lifecycle::ServerInfo;
use crate::time::Instant;
use alloc::sync::Arc;
use ctx::Ctx;
use elicitations::Elicitations;
use fetch::Fetches;
use handshake::{Handshake, HandshakeEvent, Next};
use logging::SessionLogLevel;
use notifications::Notifications;
use pings::Pings;
use refresh::Refresh;
use subscription::Subscription;
use watching::ResourceSubscriptions;

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
    /// The next ping of the engine, or the limit for its response.
    Ping,
    /// Limit for the response to a call.
    Call(CallId),
    /// Limit for the total duration of a call.
    Total(CallId),
    /// Delay before the next round of a call.
    Round(CallId),
    /// Limit for the completion of the web pages that a call needs.
    Elicitation(CallId),
    /// Limit for the rest of an HTTP response.
    Drain(ExchangeId),
    /// Limit for the head of an HTTP response, or for the response to an HTTP request that is no
    /// call.
    Answer(ExchangeId),
    /// Limit for the silence of a listener.
    Idle(ExchangeId),
    /// Delay before an event stream is resumed.
    Resume(ExchangeId),
    /// Limit for the time that calls wait for the listener.
    Hold,
    /// Delay before the next subscription, or the limit for its acknowledgement.
    Subscription,
    /// Limit for a fetch.
    Fetch(ExchangeId),
    /// Limit for a step of the login, or delay before its next attempt.
    Login,
    /// The end of the time of a question that is a task.
    AnswerTasks,
}

/// The client engine. See the [module](self) for how it is driven.
#[derive(Debug)]
pub struct Client {
    cx: Ctx,
    notifications: Notifications,
    elicitations: Elicitations,
    handshake: Handshake,
    pings: Pings,
    subscription: Subscription,
    resources: ResourceSubscriptions,
    logging: SessionLogLevel,
    refresh: Refresh,
    fetches: Fetches,
}

impl ClientCommands for Client {
    fn act(&mut self, now: Instant, command: ClientCommand) -> Result<InputResult, RefusedCommand<ClientCommand>> {
        self.cx.env.now = self.cx.env.now.max(now);
        let result = self.execute(command);
        self.run_login();
        result
    }
}

impl Client {
    fn execute(&mut self, command: ClientCommand) -> Result<InputResult, RefusedCommand<ClientCommand>> {
        match command {
            ClientCommand::Call(call) => {
                return self.on_call(call).map(InputResult::Call).map_err(|refused| refused.map(ClientCommand::Call));
            }
            ClientCommand::Cancel(call, reason) => self.on_cancel(call, reason),
            ClientCommand::Answer(key, answer) => self.on_answer(key, answer),
            ClientCommand::Elicited(id) => self.on_page_complete(&id),
            ClientCommand::Notify(method, params) => {
                let sent = Notifications::send(&mut self.cx, &method, &params);
                sent.map_err(|why| RefusedCommand { value: ClientCommand::Notify(method, params), why })?;
            }
            ClientCommand::NotifyTracked(method, params) => {
                let tracked = self.notifications.track(&mut self.cx, &method, &params);
                let refused = |why| RefusedCommand { value: ClientCommand::NotifyTracked(method, params), why };
                return tracked.map(InputResult::Notification).map_err(refused);
            }
            ClientCommand::Untrack(id) => self.notifications.untrack(id),
            ClientCommand::Watch(watch) => {
                self.on_watch(watch).map_err(|refused| refused.map(ClientCommand::Watch))?;
            }
            ClientCommand::CredentialsChanged => self.cx.env.drop_private(),
            ClientCommand::LogLevel(level) => self.logging.set_level(&mut self.cx, level),
            ClientCommand::RootsChanged => {
                let value = ClientCommand::RootsChanged;
                Notifications::send_roots_changed(&mut self.cx).map_err(|why| RefusedCommand { value, why })?;
            }
            ClientCommand::Fetch(id, request) => {
                let begun = self.fetches.begin(&mut self.cx.env, id, &request);
                begun.map_err(|why| RefusedCommand { value: ClientCommand::Fetch(id, request), why })?;
            }
            ClientCommand::CancelFetch(id) => self.fetches.cancel(&mut self.cx.env, id),
            ClientCommand::Authorize(key, with) => {
                if let Authorization::Headers(_) = with {
                    self.cx.env.drop_private();
                }
                self.cx.link.authorize(&mut self.cx.env, key, with);
                self.run_link();
            }
            ClientCommand::Auth(input) => self.on_auth(*input),
            ClientCommand::Login => self.on_login(),
            ClientCommand::Logout => self.on_logout(),
            ClientCommand::Close => self.shut(Termination::Requested),
        }
        Ok(InputResult::Done)
    }
}

impl Client {
    /// Creates a client. It begins to negotiate at once: its first output starts an exchange.
    /// `seed` must be unpredictable and used for no other engine.
    pub fn new(config: Arc<ClientConfig>, seed: [u8; 32], now: Instant) -> Self {
        let mut client = Self {
            cx: Ctx::new(config, seed, now),
            notifications: Notifications::default(),
            elicitations: Elicitations::default(),
            handshake: Handshake::default(),
            pings: Pings::default(),
            subscription: Subscription::default(),
            resources: ResourceSubscriptions::default(),
            logging: SessionLogLevel::default(),
            refresh: Refresh::default(),
            fetches: Fetches::default(),
        };
        client.cx.env.take_configured_watch();
        client.begin();
        // In a dialect without negotiation the link has answered.
        client.run_link();
        client.run_login();
        client
    }

    /// Applies one input. The other methods that change the client are forms of this one.
    ///
    /// # Errors
    /// Those of [`act`](ClientCommands::act). Events and ticks are never refused.
    pub fn apply(&mut self, now: Instant, input: ClientInput) -> Result<InputResult, RefusedCommand<ClientInput>> {
        match input {
            Input::Event(exchange, event) => self.handle_event(now, exchange, event),
            Input::Command(command) => {
                return self.act(now, command).map_err(|refused| refused.map(Input::Command));
            }
            Input::Tick => self.handle_timeout(now),
        }
        Ok(InputResult::Done)
    }

    /// Handles an event of an exchange. Events of an exchange that has ended are ignored.
    pub fn handle_event(&mut self, now: Instant, exchange: ExchangeId, event: ExchangeEvent) {
        self.cx.env.now = self.cx.env.now.max(now);
        if matches!(event, ExchangeEvent::Inbound(Inbound::Event(_))) {
            self.handle_stream_event(exchange, event);
        } else if Fetches::owns(exchange) {
            self.fetches.handle(&mut self.cx.env, exchange, event);
        } else {
            self.cx.link.handle(&mut self.cx.env, exchange, event);
            self.run_link();
        }
        self.run_login();
    }

    /// Fires the timers that are due, in the order of their deadlines. Does nothing if called early
    /// or without need.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.cx.env.now = self.cx.env.now.max(now);
        while let Some(timer) = self.cx.env.timers.pop_due(self.cx.env.now) {
            match timer {
                Timer::Handshake => self.on_handshake(HandshakeEvent::Timeout),
                Timer::Start => self.on_handshake(HandshakeEvent::StartTimeout),
                Timer::ExitGrace => self.on_exit_grace(),
                Timer::Ping => self.pings.on_timer(&mut self.cx),
                Timer::Call(call) | Timer::Total(call) | Timer::Elicitation(call) => self.on_call_timeout(call, timer),
                Timer::Round(call) => self.on_round(call),
                Timer::Drain(_) | Timer::Answer(_) | Timer::Idle(_) | Timer::Resume(_) | Timer::Hold => {
                    self.cx.link.on_timeout(&mut self.cx.env, timer);
                    self.run_link();
                }
                Timer::Subscription if self.cx.env.is_legacy() => self.resources.update(&mut self.cx),
                Timer::Subscription => self.subscription.on_timer(&mut self.cx),
                Timer::Fetch(exchange) => self.fetches.on_timeout(&mut self.cx.env, exchange),
                Timer::Login => self.on_login_timeout(),
                Timer::AnswerTasks => self.on_answer_tasks_timeout(),
            }
            self.run_login();
        }
    }

    /// Returns the next output. The time of this call never changes the outputs, except that
    /// [`Event::Lost`] counts those that the driver did not fetch in time.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.cx.env.out.pop()
    }

    /// Returns the instant for the next [`handle_timeout`](Self::handle_timeout); `None` if no
    /// timer is armed. Only the methods that change the client change it.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.cx.env.timers.next().map(|(at, _)| at)
    }

    /// Returns the timer of [`poll_timeout`](Self::poll_timeout).
    pub fn timeout_reason(&self) -> Option<Timer> {
        self.cx.env.timers.next().map(|(_, timer)| timer)
    }

    /// Returns the state of the client.
    pub const fn state(&self) -> State {
        self.cx.env.phase.state()
    }

    /// Returns the information about the server. `None` before [`Event::Ready`], from the end of an
    /// HTTP session until the next one is ready, and after the end of the client.
    pub const fn server_info(&self) -> Option<&ServerInfo> {
        self.cx.env.server_info()
    }

    /// Returns the findings about the server, which the application may store for a later client of
    /// it. `None` before the first [`Event::Ready`].
    pub const fn verdict(&self) -> Option<Verdict> {
        self.handshake.verdict()
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &Arc<ClientConfig> {
        &self.cx.env.config
    }

    /// Returns the number of calls that have not ended.
    pub fn running(&self) -> usize {
        self.cx.calls.running()
    }

    /// Returns the state of the login. `None` without [`ClientConfig::auth`], and on a connection
    /// that is neither HTTP nor a WebSocket.
    pub fn login_state(&self) -> Option<FlowState> {
        self.cx.env.login.state()
    }

    /// Returns the number of questions of the server that the application has not answered.
    pub fn questions(&self) -> usize {
        self.cx.questions.len()
    }

    /// Returns whether [`Event::Terminated`] was emitted.
    pub fn is_terminated(&self) -> bool {
        self.cx.env.state() == State::Terminated
    }

    /// Returns why the client closes, while its exchanges end. [`Event::Terminated`] says it then.
    /// `None` before, and after that.
    pub const fn closing(&self) -> Option<&Termination> {
        self.cx.env.phase.closing()
    }
    /// Begins the negotiation of the next session.
    fn begin(&mut self) {
        let next = self.handshake.begin(&mut self.cx);
        self.after_handshake(next);
    }

    fn on_handshake(&mut self, event: HandshakeEvent) {
        let next = self.handshake.on_event(&mut self.cx, event);
        self.after_handshake(next);
    }

    fn after_handshake(&mut self, next: Next) {
        match next {
            Next::Wait => {}
            Next::Ready => {
                self.cx.tools.clear();
                self.cx.env.drop_cached();
                self.pings.begin(&mut self.cx.env);
                self.logging.begin(&mut self.cx);
                self.begin_watching();
                self.send_queued();
            }
            Next::Lapsed(why) => {
                let calls = self.cx.calls.ids().into_iter();
                calls.for_each(|call| self.end(call, Err(CallError::Negotiation(why.clone()))));
            }
            Next::Failed(why) => self.shut(Termination::Negotiation(why)),
        }
    }
}
