//! The state of an HTTP exchange: its role, how far it has come, and what its response is so far.

use super::address::Address;
use super::auth::LoginUse;
use super::connection::ConnectionReport;
use super::request::HttpRequest;
use super::stream::Stream;
use super::success;
use super::tool_stream::ResultParts;
use crate::auth::StepId;
use crate::client::ids::Purpose;
use crate::client::link::challenge::TriedStatuses;
use crate::error::HttpError;
use crate::exchange::{Data, RedirectRefusal, ResponseHead};
use crate::fetch::Hops;
use crate::frame::{Media, media_type};
use crate::input::{AuthKey, CallId, NotificationId};
use crate::rpc::{ErrorObject, Id, InvalidMessage, Message, Response};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::IpAddr;

/// An HTTP exchange that has not ended, or one that has ended and will be repeated.
#[derive(Debug)]
pub(in crate::client) struct HttpExchange {
    pub(super) role: ExchangeRole,
    pub(super) stage: ExchangeStage,
    pub(super) sent: HttpRequest,
    /// Where it goes. `None` before it begins.
    pub(super) address: Option<Arc<Address>>,
    /// The URLs that redirected it.
    pub(super) hops: Hops,
    /// The address that its connection led to, if the driver reported it.
    pub(super) reached: Option<IpAddr>,
    /// Why it did not follow a redirect.
    pub(super) refusal: Option<RedirectRefusal>,
    pub(super) connection: ConnectionReport,
    /// Whether an earlier exchange with the same role was started, and may have been sent.
    pub(super) again: bool,
    /// Whether its request named a session.
    pub(super) in_session: bool,
    /// Number of challenges that were answered with credentials before it started.
    pub(super) credentials: u64,
    /// The statuses of the challenges that were answered for it.
    pub(super) tried: TriedStatuses,
    pub(super) login: LoginUse,
    pub(super) head: Option<ResponseHead>,
    /// The first bytes of a body that holds no message.
    pub(super) body: Vec<u8>,
    /// A JSON-RPC error that came with an HTTP error and does not name the request.
    pub(super) error: Option<ErrorObject>,
    pub(super) any_message: bool,
    pub(super) last_defect: Option<InvalidMessage>,
    /// Items received after the response, and their bytes.
    pub(super) drained: (usize, usize),
    pub(super) stream: Stream,
    /// The parts of a result, in a dialect that sends it in parts.
    pub(super) parts: Option<Box<ResultParts>>,
}

/// The purpose of an exchange.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::client::link) enum ExchangeRole {
    /// A request that awaits its response. The exchange is its POST, or a GET that resumes the
    /// response.
    Request(Id, Purpose),
    /// HTTP+SSE: a request whose response arrives on the stream. The exchange is its POST.
    Posted(Id, Purpose),
    /// The response has arrived. The client reads the rest of the body for a limited time.
    Answered,
    /// A notification, and its id if it is tracked.
    Notification(Option<NotificationId>),
    /// `notifications/cancelled`, which must not wait behind the request that it cancels.
    Cancelled,
    /// `notifications/initialized`. The session is usable after it.
    Initialized,
    /// A response of the client to a request of the server.
    Response,
    /// The GET for messages that belong to no request.
    Listener,
    /// HTTP+SSE: the GET for all messages of the server.
    Sse,
    /// The DELETE of a session.
    Delete,
}

/// The stage of an HTTP exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ExchangeStage {
    /// HTTP+SSE: a message that waits for the stream. It is not on the wire.
    Held,
    /// It waits for the signature of its proof. It is not on the wire.
    Signing(StepId),
    Live,
    /// It has ended. The client resumes its stream when a timer fires.
    AwaitingResume,
    /// It has ended. The client repeats it with other credentials.
    Parked(AuthKey),
    /// It has ended, and the end is not handled yet.
    Over,
}

impl HttpExchange {
    pub(super) fn new(role: ExchangeRole, sent: HttpRequest) -> Self {
        Self {
            role,
            stage: ExchangeStage::Live,
            sent,
            address: None,
            hops: Hops::default(),
            reached: None,
            refusal: None,
            connection: ConnectionReport::Unreported,
            again: false,
            in_session: false,
            credentials: 0,
            tried: TriedStatuses::default(),
            login: LoginUse::default(),
            head: None,
            body: Vec::new(),
            error: None,
            any_message: false,
            last_defect: None,
            drained: (0, 0),
            stream: Stream::default(),
            parts: None,
        }
    }

    /// Returns whether the exchange is on the wire.
    pub(in crate::client) fn is_live(&self) -> bool {
        self.stage == ExchangeStage::Live
    }

    /// Returns whether the exchange starts even if the maximum number of connections is open.
    pub(super) const fn is_urgent(&self) -> bool {
        matches!(self.role, ExchangeRole::Response | ExchangeRole::Cancelled | ExchangeRole::Delete)
    }

    /// Returns whether the exchange ends a session.
    pub(in crate::client) fn is_delete(&self) -> bool {
        self.role == ExchangeRole::Delete
    }

    /// Returns whether the exchange carries a notification.
    pub(super) const fn is_notification(&self) -> bool {
        matches!(self.role, ExchangeRole::Notification(_) | ExchangeRole::Cancelled | ExchangeRole::Initialized)
    }

    /// Returns whether the exchange belongs to a request that awaits its response.
    pub(in crate::client) fn awaits_answer(&self) -> bool {
        self.request().is_some()
    }

    /// Returns whether the client limits an exchange with this role by another timer.
    pub(super) fn has_timer(role: &ExchangeRole) -> bool {
        match role {
            ExchangeRole::Request(_, purpose) | ExchangeRole::Posted(_, purpose) => *purpose != Purpose::Listen,
            _ => false,
        }
    }

    /// Returns whether the exchange requests a stream, or resumes one.
    pub(super) fn is_get(&self) -> bool {
        self.sent.method == "GET"
    }

    /// Returns whether the exchange carries a message.
    pub(super) fn is_post(&self) -> bool {
        self.sent.method == "POST"
    }

    pub(super) fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |head| head.status)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.head.as_ref().is_some_and(|head| !success(head.status))
    }

    /// Returns whether the response is an event stream.
    pub(super) fn is_stream(&self) -> bool {
        let stream = |head: &ResponseHead| success(head.status) && media_type(&head.headers) == Media::EventStream;
        self.head.as_ref().is_some_and(stream)
    }

    /// Returns whether the client needs the body of a successful response.
    pub(super) const fn wants_body(&self) -> bool {
        matches!(self.role, ExchangeRole::Request(..) | ExchangeRole::Listener | ExchangeRole::Sse)
    }

    /// Returns whether a successful response has an unusable media type. A response without a media
    /// type may have an empty body.
    pub(super) fn is_other_type(&self) -> bool {
        let Some(head) = self.head.as_ref().filter(|head| self.wants_body() && success(head.status)) else {
            return false;
        };
        let is_fine = match media_type(&head.headers) {
            Media::EventStream => true,
            Media::Json => self.is_post(),
            Media::Other => false,
        };
        !is_fine && head.headers.get("content-type").is_some_and(|kind| !kind.is_empty())
    }

    /// Returns whether the head decides the outcome. The rest can only add to the text of an error.
    pub(super) fn is_decided(&self) -> bool {
        self.head.is_some() && (self.has_failed() || !self.wants_body() || self.is_other_type())
    }

    /// Returns the call of the exchange.
    pub(in crate::client) fn call(&self) -> Option<CallId> {
        match self.role {
            ExchangeRole::Request(_, Purpose::Call(call)) | ExchangeRole::Posted(_, Purpose::Call(call)) => Some(call),
            _ => None,
        }
    }

    /// Returns the request of the exchange, if it awaits its response.
    pub(super) fn request(&self) -> Option<(&Id, Purpose)> {
        match &self.role {
            ExchangeRole::Request(id, purpose) | ExchangeRole::Posted(id, purpose) => Some((id, *purpose)),
            _ => None,
        }
    }

    /// Returns whether the data is the response to the request of the exchange.
    pub(super) fn is_answer(&self, data: &Data) -> bool {
        match (&self.role, data) {
            (ExchangeRole::Request(own, _), Data::Message(Message::Response(Response { id, .. }))) => id == own,
            _ => false,
        }
    }

    /// Returns the error for an error status.
    pub(super) fn to_error(&self) -> HttpError {
        let location = self.head.as_ref().and_then(|head| head.headers.get("location")).map(ToOwned::to_owned);
        HttpError {
            error: self.error.clone(),
            auth: self.hints(),
            location: location.filter(|_| (300..400).contains(&self.status())),
            redirect: self.refusal,
            retry_after: self.head.as_ref().and_then(|head| head.headers.retry_after()),
            body_head: Bytes::copy_from_slice(&self.body),
            ..HttpError::new(self.status())
        }
    }
}
