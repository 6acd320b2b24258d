//! The commands of an application to a client.

use crate::auth;
use crate::call::{Call, CallHandle, Method};
use crate::error::RefusedCommand;
use crate::fetch::{FetchId, FetchRequest};
use crate::input::{
    AuthToken, Authorization, CallId, ClientCommand, InputAnswer, InputResult, InputToken, NotificationId, Watch,
};
use crate::model::logging::LogLevel;
use crate::rpc::Object;
use crate::time::Instant;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;

/// The commands of an application to a client: to a [`Client`](super::Client) and to what contains
/// one, such as a [`WiredClient`](crate::wired::WiredClient). Each method is a form of
/// [`act`](Self::act).
pub trait ClientCommands {
    /// Executes a command.
    ///
    /// # Errors
    /// [`RefusedCommand`] with the command if the client cannot execute it. The state of the client
    /// does not change then. See the method of each command: one without errors is never refused.
    fn act(&mut self, now: Instant, command: ClientCommand) -> Result<InputResult, RefusedCommand<ClientCommand>>;

    /// Makes a call. The client sends it as soon as negotiation has succeeded, unless its cache has
    /// the result ([`ClientConfig::cache`](super::ClientConfig::cache)). Its events carry the id of
    /// the [`CallHandle`].
    ///
    /// # Errors
    /// [`Refusal::Full`](crate::Refusal::Full) at a limit,
    /// [`Refusal::Closed`](crate::Refusal::Closed) after [`close`](Self::close) or the end,
    /// [`Refusal::Unencodable`](crate::Refusal::Unencodable).
    #[track_caller]
    fn call<M: Method>(&mut self, now: Instant, call: Call<M>) -> Result<CallHandle<M>, RefusedCommand<Call<M>>> {
        match self.act(now, ClientCommand::Call(call.into_raw())) {
            Ok(InputResult::Call(id)) => Ok(CallHandle::new(id)),
            Ok(InputResult::Done | InputResult::Notification(_)) => unreachable!("a call has an id"),
            Err(refused) => Err(refused.map(|command| match command {
                ClientCommand::Call(raw) => Call::from_raw(raw),
                other => other.unexpected(),
            })),
        }
    }

    /// Cancels a call. It ends with [`CallError::Cancelled`](crate::CallError::Cancelled), and the
    /// client notifies the server as the era demands. Does nothing if the call has ended.
    #[track_caller]
    fn cancel(&mut self, now: Instant, call: CallId, reason: Option<&str>) {
        self.done(now, ClientCommand::Cancel(call, reason.map(ToOwned::to_owned)));
    }

    /// Answers a question. Ignored if the question was withdrawn. An answer of another kind than
    /// the question, or content that does not fit the form, counts as [`InputAnswer::Error`].
    #[track_caller]
    fn answer(&mut self, now: Instant, to: InputToken, answer: InputAnswer) {
        self.done(now, ClientCommand::Answer(to.key(), answer));
    }

    /// Answers a challenge. Ignored if the challenge was answered before, and after the end of the
    /// client. If the waiting requests have ended meanwhile, later requests use the credentials.
    #[track_caller]
    fn authorize(&mut self, now: Instant, to: AuthToken, with: Authorization) {
        self.done(now, ClientCommand::Authorize(to.key(), with));
    }

    /// Answers a step of a login ([`Event::Auth`](super::Event::Auth)). An answer to a step that is
    /// not open, or of another kind, is ignored with a diagnostic.
    #[track_caller]
    fn auth(&mut self, now: Instant, input: auth::Input) {
        self.done(now, ClientCommand::Auth(Box::new(input)));
    }

    /// Begins a login, or a new one in place of the stored one, although no request needs it. It
    /// ends with [`Output::Changed`](auth::Output::Changed) or
    /// [`Output::Failed`](auth::Output::Failed) in an [`Event::Auth`](super::Event::Auth). Does
    /// nothing during a login, and without [`ClientConfig::auth`](super::ClientConfig::auth).
    #[track_caller]
    fn login(&mut self, now: Instant) {
        self.done(now, ClientCommand::Login);
    }

    /// Revokes the tokens at the authorization server, if it offers that (RFC 7009), and removes
    /// the login from the store. [`AuthReport::LoggedOut`](auth::AuthReport::LoggedOut) in an
    /// [`Event::Auth`](super::Event::Auth) is the end. Does nothing without
    /// [`ClientConfig::auth`](super::ClientConfig::auth).
    #[track_caller]
    fn logout(&mut self, now: Instant) {
        self.done(now, ClientCommand::Logout);
    }

    /// Sends a notification of a custom method. The engine does not report its delivery, except
    /// that a failure over HTTP is a diagnostic
    /// ([`DroppedNotification`](crate::error::DiagnosticKind::DroppedNotification)). If the
    /// application closes the client right after, the client still sends the notification, within
    /// [`ClientLimits::session_end_time`](crate::limits::ClientLimits::session_end_time).
    ///
    /// # Errors
    /// [`Refusal::Closed`](crate::Refusal::Closed) before negotiation has succeeded and after the
    /// end, [`Refusal::Full`](crate::Refusal::Full) at a limit,
    /// [`Refusal::NotInDialect`](crate::Refusal::NotInDialect) in a dialect that only calls tools.
    #[track_caller]
    fn notify(&mut self, now: Instant, method: &str, params: Object) -> Result<(), RefusedCommand<Object>> {
        let applied = self.act(now, ClientCommand::Notify(method.to_owned(), params));
        applied.map(drop).map_err(|refused| refused.map(ClientCommand::into_params))
    }

    /// Like [`notify`](Self::notify), and
    /// [`Event::NotificationEnded`](super::Event::NotificationEnded) reports the delivery. On a
    /// duplex exchange this needs a driver that reports
    /// [`ExchangeEvent::Unsent`](crate::exchange::ExchangeEvent::Unsent).
    ///
    /// # Errors
    /// As [`notify`](Self::notify); also [`Refusal::Full`](crate::Refusal::Full) while
    /// [`ClientLimits::max_calls`](crate::limits::ClientLimits::max_calls) notifications are
    /// tracked.
    #[track_caller]
    fn notify_tracked(
        &mut self,
        now: Instant,
        method: &str,
        params: Object,
    ) -> Result<NotificationId, RefusedCommand<Object>> {
        match self.act(now, ClientCommand::NotifyTracked(method.to_owned(), params)) {
            Ok(InputResult::Notification(id)) => Ok(id),
            Ok(InputResult::Done | InputResult::Call(_)) => unreachable!("a tracked notification has an id"),
            Err(refused) => Err(refused.map(ClientCommand::into_params)),
        }
    }

    /// Stops tracking a notification. The engine still sends it, and does not report its delivery.
    /// Does nothing if the delivery has ended.
    #[track_caller]
    fn untrack(&mut self, now: Instant, notification: NotificationId) {
        self.done(now, ClientCommand::Untrack(notification));
    }

    /// Sets the changes that the application watches: the whole set, which replaces the one before.
    /// [`Event::Watching`](super::Event::Watching) reports what the server announces of it, and
    /// [`Event::Changed`](super::Event::Changed) each change. After a gap (a new subscription or
    /// session) each watched list and resource is reported once, since it may have changed
    /// unnoticed. Before negotiation has succeeded, the set counts from then on.
    ///
    /// # Errors
    /// [`Refusal::Full`](crate::Refusal::Full) with more URIs than
    /// [`max_watched`](crate::limits::ClientLimits::max_watched),
    /// [`Refusal::Closed`](crate::Refusal::Closed) after [`close`](Self::close) or the end.
    #[track_caller]
    fn watch(&mut self, now: Instant, watch: Watch) -> Result<(), RefusedCommand<Watch>> {
        let applied = self.act(now, ClientCommand::Watch(watch));
        applied.map(drop).map_err(|refused| {
            refused.map(|command| match command {
                ClientCommand::Watch(watch) => watch,
                other => other.unexpected(),
            })
        })
    }

    /// Requests log messages of this level or above ([`Event::Log`](super::Event::Log)). `None`
    /// requests none. Until the first level, a server of an older revision decides which messages
    /// it sends. Such a revision has no way to stop them later: after `None` the client drops them.
    /// On 2026-07-28 the level is a part of each request from now on, and
    /// [`Call::log_level`](crate::Call::log_level) sets another one for one call. Log messages are
    /// deprecated since 2026-07-28.
    #[track_caller]
    fn log_level(&mut self, now: Instant, level: Option<LogLevel>) {
        self.done(now, ClientCommand::LogLevel(level));
    }

    /// The application has other credentials, in header fields of its own: the cache drops all
    /// results but those with the `cacheScope` `public`, which are for everyone
    /// ([`ClientConfig::cache`](super::ClientConfig::cache)). After
    /// [`authorize`](Self::authorize), and for a login of
    /// [`ClientConfig::auth`](super::ClientConfig::auth) when its access token changes, the client
    /// does so by itself.
    #[track_caller]
    fn credentials_changed(&mut self, now: Instant) {
        self.done(now, ClientCommand::CredentialsChanged);
    }

    /// Notifies the server that the roots have changed, if the client declares that it does
    /// ([`RootsCapability::list_changed`](crate::model::capabilities::RootsCapability)). Does
    /// nothing on 2026-07-28 and before negotiation has succeeded: the server asks for the roots
    /// when it needs them. Roots are deprecated since 2026-07-28.
    ///
    /// # Errors
    /// [`Refusal::Full`](crate::Refusal::Full) at a limit, as for [`notify`](Self::notify),
    /// [`Refusal::Closed`](crate::Refusal::Closed) after [`close`](Self::close) or the end.
    #[track_caller]
    fn roots_changed(&mut self, now: Instant) -> Result<(), RefusedCommand<()>> {
        self.act(now, ClientCommand::RootsChanged).map(drop).map_err(|refused| refused.map(drop))
    }

    /// The user says that the web page with this
    /// [`elicitation_id`](crate::UrlRequest::elicitation_id) is complete, or wants to try again.
    /// The client sends the calls again that need only this page, as it does when the server says
    /// so: a server need not. Does nothing if no call needs the page.
    #[track_caller]
    fn elicited(&mut self, now: Instant, id: &str) {
        self.done(now, ClientCommand::Elicited(id.to_owned()));
    }

    /// Makes an HTTP request of the application, over the connections of the client and within
    /// their limits, also before negotiation and while credentials are sought. Its response is
    /// [`Event::Fetched`](super::Event::Fetched) with this id.
    ///
    /// # Errors
    /// [`Refusal::Full`](crate::Refusal::Full) if as many fetches are open as there may be calls
    /// ([`max_calls`](crate::limits::ClientLimits::max_calls)),
    /// [`Refusal::Closed`](crate::Refusal::Closed) after [`close`](Self::close) or the end.
    #[track_caller]
    fn fetch(&mut self, now: Instant, id: FetchId, request: FetchRequest) -> Result<(), RefusedCommand<FetchRequest>> {
        let applied = self.act(now, ClientCommand::Fetch(id, Box::new(request)));
        applied.map(drop).map_err(|refused| {
            refused.map(|command| match command {
                ClientCommand::Fetch(_, request) => *request,
                other => other.unexpected(),
            })
        })
    }

    /// Cancels a fetch. It ends with [`FetchError::Closed`](super::FetchError::Closed) and
    /// [`Closed::Aborted`](crate::exchange::Closed::Aborted), and its exchange is aborted. Does
    /// nothing if it has ended.
    #[track_caller]
    fn cancel_fetch(&mut self, now: Instant, id: FetchId) {
        self.done(now, ClientCommand::CancelFetch(id));
    }

    /// Closes the client in order: calls end with
    /// [`CallError::Closed`](crate::CallError::Closed), questions are withdrawn, then exchanges are
    /// ended. Over HTTP the client first waits for accepted notifications, then ends the session,
    /// each within
    /// [`ClientLimits::session_end_time`](crate::limits::ClientLimits::session_end_time). The last
    /// output is [`Event::Terminated`](super::Event::Terminated). Idempotent.
    #[track_caller]
    fn close(&mut self, now: Instant) {
        self.done(now, ClientCommand::Close);
    }

    /// Executes a command that is never refused.
    #[doc(hidden)]
    #[track_caller]
    fn done(&mut self, now: Instant, command: ClientCommand) {
        let applied = self.act(now, command);
        debug_assert!(applied.is_ok(), "it is never refused");
    }
}

impl ClientCommand {
    fn into_params(self) -> Object {
        match self {
            Self::Notify(_, params) | Self::NotifyTracked(_, params) => params,
            other => other.unexpected(),
        }
    }

    fn unexpected(self) -> ! {
        unreachable!("a client gives back the command that it refuses, and not {self:?}")
    }
}
