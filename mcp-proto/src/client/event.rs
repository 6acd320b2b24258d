//! The outputs of a client: what it sends on exchanges, and the events for its application. The
//! weights of the events determine which of them may be dropped.

use super::{ControlEvent, FetchError, FetchId, FetchResponse, StreamOf};
use crate::auth;
use crate::call::RawResult;
use crate::error::{CallError, Diagnostic, NegotiationError, StreamEnd};
use crate::event_queue::{EVENT, Weigh, Weight};
use crate::exchange::{Closed, ExchangeId, Outbound, Start};
use crate::input::{AuthToken, CallId, Challenge, Change, InputKey, InputRequest, InputToken, NotificationId, Watch};
use crate::model::Progress;
use crate::model::lifecycle::ServerInfo;
use crate::model::logging::LogMessage;
use crate::model::tasks::TaskUpdate;
use crate::rpc::RawJson;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// An output of a client, for its driver (seam B).
#[derive(PartialEq, Debug)]
#[must_use]
pub enum Output {
    /// Begin an exchange.
    Start(ExchangeId, Start),
    /// Send this on the exchange.
    Send(ExchangeId, Outbound),
    /// End the exchange now. The driver reports no further event of it, and the engine sends
    /// nothing on it.
    Abort(ExchangeId),
    /// An event for the application.
    Event(Event),
}

/// An event of a client, for the application.
#[derive(PartialEq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Negotiation succeeded. Emitted again for each new HTTP session, with the current
    /// information. The client now sends calls that were made earlier.
    Ready(Box<ServerInfo>),
    /// Progress of a call that requested it. Never emitted after the call has ended.
    Progress {
        /// The call.
        call: CallId,
        /// The progress.
        progress: Progress,
    },
    /// The result of a call is a task, or its state was received: see
    /// [`ClientConfig::tasks`](super::ClientConfig::tasks). The call goes on. Not emitted for a
    /// call that ends with its task ([`Call::detach`](crate::Call::detach)).
    Task {
        /// The call.
        call: CallId,
        /// The task.
        update: Box<TaskUpdate>,
    },
    /// A call has ended. Emitted exactly once for every accepted call, as its last event.
    Ended {
        /// The call.
        call: CallId,
        /// The result or the error. [`CallHandle::finish`](crate::CallHandle::finish) decodes it.
        outcome: Result<RawResult, CallError>,
    },
    /// The delivery of a notification of [`notify_tracked`](super::ClientCommands::notify_tracked)
    /// ended. Emitted exactly once for each accepted notification, unless the application
    /// [untracked](super::ClientCommands::untrack) it before. Not emitted for a notification of
    /// [`notify`](super::ClientCommands::notify).
    NotificationEnded {
        /// The notification.
        notification: NotificationId,
        /// Over HTTP, `Ok` if the server responded with a 2xx status. Otherwise the failure of the
        /// request, which is also a diagnostic. On a duplex exchange, `Ok` if the driver wrote the
        /// notification. Otherwise the end of the exchange.
        outcome: Result<(), CallError>,
    },
    /// The server requests input. Emitted only for capabilities that the configuration declares.
    InputNeeded {
        /// The token for [`Client::answer`](super::ClientCommands::answer).
        token: InputToken,
        /// The call that waits for the answer, if the revision identifies it.
        call: Option<CallId>,
        /// The question.
        request: InputRequest,
    },
    /// What the server offers may have changed: the server sent a notification, or the client may
    /// have missed one. On 2026-07-28 only what [`Client::watch`](super::ClientCommands::watch)
    /// names. Servers of older revisions announce changed lists unasked: then with a listener
    /// ([`ClientCompat::listener`](super::ClientCompat::listener)) or on a duplex connection.
    /// Dropped like a notification when the queue is full.
    Changed(Change),
    /// The server announces these of the changes that the application
    /// [watches](super::ClientCommands::watch): it has acknowledged them (2026-07-28), or has
    /// declared them and accepted the resources (older revisions). Emitted after each successful
    /// negotiation and each change of the set, once the server has responded. Not emitted while
    /// nothing is watched, except after a change to that.
    Watching(Watch),
    /// A log message of the server. On 2026-07-28 only on request. Servers of older revisions also
    /// send some before any request: see [`Client::log_level`](super::ClientCommands::log_level).
    /// Dropped like a notification when the queue is full. Log messages are deprecated since
    /// 2026-07-28.
    Log {
        /// The call during which the server sent it. `None` on a duplex connection, where nothing
        /// names it, and for a message of no call.
        call: Option<CallId>,
        /// The message.
        message: LogMessage,
    },
    /// The server requires credentials, and requests wait for them. Emitted once per challenge,
    /// however many requests wait, and only with
    /// [`ClientConfig::authorize`](super::ClientConfig::authorize).
    AuthNeeded {
        /// The token for [`Client::authorize`](super::ClientCommands::authorize).
        token: AuthToken,
        /// The status and the challenge of the server.
        challenge: Challenge,
        /// The calls that wait now. Others may join them. Empty if the handshake or the listener
        /// waits.
        targets: Vec<CallId>,
    },
    /// A step of a login that [`ClientConfig::auth`](super::ClientConfig::auth) configures, for the
    /// driver: an answer is [`Client::auth`](super::ClientCommands::auth). Or what happened, for
    /// the application. Never [`Output::Fetch`](auth::Output::Fetch): the client fetches by itself.
    Auth(Box<auth::Output>),
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
    /// The listener, or the subscription in its place, is lost. Calls continue. Notifications and
    /// input requests that belong to no call do not arrive. Over HTTP+SSE the stream of all
    /// messages is lost: calls in flight have ended, and the next call opens it again. Emitted once
    /// while the client retries, and once more if it stops retrying. Not emitted if the server
    /// offers neither.
    ListenerLost {
        /// How the last attempt ended.
        cause: StreamEnd,
        /// The time until the next attempt, which is at least what the server asks for
        /// (`Retry-After`, at most 5 min); `None` if there is none.
        again: Option<Duration>,
        /// Whether the session has ended with it: over HTTP+SSE.
        ends_session: bool,
    },
    /// The server no longer waits for this input. The engine ignores an answer.
    InputWithdrawn(InputKey),
    /// The server says that the web page of this
    /// [`elicitation_id`](crate::UrlRequest::elicitation_id) is complete. The client now sends the
    /// calls again that needed it. Emitted at most once for each id, and only for an id that the
    /// server has named before, on 2025-11-25. Dropped like a notification when the queue is full.
    Elicited(String),
    /// An event of an event stream whose type the configuration lists
    /// ([`ClientConfig::control`](super::ClientConfig::control)), or on a duplex connection a JSON
    /// object that is no JSON-RPC message, whose member `type` it lists. The protocol defines no
    /// meaning: the stream continues. Dropped like a notification when the queue is full.
    Control(Box<ControlEvent>),
    /// A [`fetch`](super::ClientCommands::fetch) has ended. Emitted exactly once for each accepted
    /// one.
    Fetched {
        /// The fetch.
        fetch: FetchId,
        /// The response, or why there is none.
        outcome: Result<Box<FetchResponse>, FetchError>,
    },
    /// A notification that belongs to no call.
    Notification {
        /// Its method.
        method: Cow<'static, str>,
        /// Its params.
        params: Option<RawJson>,
    },
    /// The server violated a rule, or the engine dropped something that it sent.
    Diagnostic(Diagnostic),
    /// Notifications or diagnostics were dropped, since the application did not fetch them in time.
    Lost {
        /// The number of dropped notifications.
        notifications: u64,
        /// The number of dropped diagnostics.
        diagnostics: u64,
    },
    /// A ping of [`ClientConfig::ping`](super::ClientConfig::ping) got no response, or could not be
    /// sent. The connection stays open: the application decides whether to close it. Not emitted
    /// for a ping of the application, which is a call. Dropped like a diagnostic when the queue is
    /// full.
    PingMissed {
        /// The time waited: [`ClientConfig::ping_timeout`](super::ClientConfig::ping_timeout), less
        /// if an HTTP exchange ended first, zero if the ping was not sent because the server reads
        /// nothing.
        waited: Duration,
        /// The number of pings missed since the last response, this one included.
        in_a_row: u32,
    },
    /// The client has terminated. Emitted exactly once, as the last output, after the end of every
    /// call.
    Terminated(Termination),
}

/// Why a client terminated.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Termination {
    /// The application closed it.
    Requested,
    /// Negotiation failed.
    Negotiation(NegotiationError),
    /// The connection ended.
    Closed(Closed),
}

impl Weigh for Output {
    fn weight(&self) -> Weight {
        match self {
            Self::Event(event) => event.weight(),
            Self::Start(..) | Self::Send(..) | Self::Abort(_) => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Event(Event::lost(notifications, diagnostics))
    }
}

impl Weigh for Event {
    fn weight(&self) -> Weight {
        match self {
            Self::Notification { method, params } => Weight::of_notification(method, params.as_ref()),
            Self::Changed(Change::Resource(uri)) => Weight::Notification(EVENT + uri.capacity()),
            Self::Changed(_) => Weight::Notification(EVENT),
            Self::Log { message, .. } => Weight::Notification(EVENT + message.heap_size()),
            Self::Control(control) => {
                let id = control.id.as_ref().map_or(0, String::len);
                Weight::Notification(EVENT + control.event.len() + id + control.data.len())
            }
            Self::Elicited(id) => Weight::Notification(EVENT + id.len()),
            Self::Diagnostic(diagnostic) => Weight::of_diagnostic(diagnostic),
            Self::Reconnecting { last_event, .. } => {
                Weight::Diagnostic(EVENT + last_event.as_ref().map_or(0, |id| id.len()))
            }
            // Pings may be missed without end, and no application waits for these events.
            Self::PingMissed { .. } => Weight::Diagnostic(EVENT),
            Self::Lost { notifications, diagnostics } => Weight::Lost(*notifications, *diagnostics),
            _ => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Lost { notifications, diagnostics }
    }
}
