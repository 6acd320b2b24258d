//! A function of the application that sees every message in both directions, and may refuse or
//! replace it. The engines decide what a refusal means for calls and responses. This module knows
//! no method, era or connection.

use crate::exchange::{Body, Data, Inbound, Outbound, SseEvent};
use crate::limits::FrameLimits;
use crate::peer_text::Visible;
use crate::redact::redact_message;
use crate::rpc::{self, Document, ErrorObject, Id, InvalidKind, InvalidMessage, Message, Payload, code};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// Sees every message of a client or a server, on every transport, and may refuse or replace it:
/// for logs, metrics and policies.
///
/// The hook runs once for each message (once for each element of a batch): after an incoming
/// message was parsed and before the engine handles it, or before an outgoing message is written.
/// It sees neither invalid messages, which are
/// [`BadMessage`](crate::error::DiagnosticKind::BadMessage) diagnostics, nor HTTP heads. Every
/// refusal is reported:
///
/// | refused message | effect |
/// |---|---|
/// | request of this side | its call ends with [`CallError::Denied`](crate::CallError::Denied), `sent: No`; nothing is written, and no connection is opened for it |
/// | response of the peer | its call ends with [`CallError::Denied`](crate::CallError::Denied), `sent: Maybe` |
/// | request of the peer | the engine responds with the error -32603; the application does not receive the request |
/// | response of this side | the engine sends the error -32603 instead |
/// | notification, in either direction | it is dropped, with a [`Denied`](crate::error::DiagnosticKind::Denied) diagnostic |
/// | request of the handshake, or its response | connecting fails with [`NegotiationCause::Denied`](crate::error::NegotiationCause::Denied) |
/// | request of a server to its client | counts as answered with an error |
///
/// The peer does not receive the reason. It learns only that its request was refused.
///
/// A replacement ([`Ruling::Replace`]) is the text of one message with the id and the method of the
/// one that it replaces; a response stays a response, or becomes an error. Another text refuses the
/// message. An incoming replacement passes the checks of any message: its nesting, and a length of
/// at most [`max_line`](crate::limits::FrameLimits::max_line). Over HTTP, header fields of
/// 2026-07-28 repeat parts of a request of a client: the name or URI, and arguments of some tools.
/// A client refuses a replacement that changes the name, or any argument beside a repeated one; a
/// server answers whatever differs from the fields with the error of a mismatch.
///
/// The hook runs where the bytes are read and written: in a client under the lock of its engine, in
/// a server outside of it. It must not block, and must not call its own client. A panic in it
/// refuses the message (only with the feature `std`; otherwise it unwinds).
#[derive(Clone)]
pub struct MessageHook(Arc<Ask>);

type Ask = dyn Fn(&WireMessage<'_>) -> Result<Ruling, Denial> + Send + Sync;

/// What becomes of a message that a [`MessageHook`] does not refuse. `()` converts to
/// [`Pass`](Self::Pass).
#[derive(Clone, PartialEq, Eq)]
pub enum Ruling {
    /// It goes on as it is.
    Pass,
    /// This message goes on instead, as JSON text.
    Replace(Bytes),
}

impl From<()> for Ruling {
    fn from((): ()) -> Self {
        Self::Pass
    }
}

impl fmt::Debug for Ruling {
    /// Never shows the text, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("Pass"),
            Self::Replace(bytes) => write!(f, "Replace({} bytes)", bytes.len()),
        }
    }
}

/// A message, as a [`MessageHook`] sees it. Its `Debug` is redacted.
#[derive(Clone, Copy)]
pub struct WireMessage<'a> {
    direction: Direction,
    message: &'a Message,
}

/// The direction of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the peer to this side.
    In,
    /// From this side to the peer.
    Out,
}

/// The kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// A request.
    Request,
    /// A notification.
    Notification,
    /// A response with a result.
    Response,
    /// A response with an error, or an error without an id.
    Error,
}

/// A refusal with its reason: one sentence for the application on this side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denial(pub String);

impl Denial {
    /// Creates a refusal with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused by the message hook: {}", Visible(&self.0))
    }
}

impl core::error::Error for Denial {}

/// The decision of a hook about an [`Outbound`].
#[derive(Clone, PartialEq, Debug)]
pub struct HookDecision {
    /// What to send. `None` if all of it was refused.
    pub send: Option<Outbound>,
    /// The refused messages.
    pub denials: Vec<BlockedMessage>,
}

/// One refused outgoing message.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockedMessage {
    /// Its id, if it was a request, whose sender waits for a response.
    pub request: Option<Id>,
    /// Its method or id, for people. Not its content.
    pub what: String,
    /// The reason.
    pub why: Denial,
}

impl MessageHook {
    /// Creates a hook from this function, which returns `Ok(())` for a message that passes.
    ///
    /// ```
    /// use mcp_proto::hook::{Denial, MessageHook, Ruling};
    ///
    /// let polite = MessageHook::new(|message| match message.method() {
    ///     Some("acme/forbidden") => Err(Denial::new("not here")),
    ///     Some("tools/call") if message.raw().contains("colour") => {
    ///         Ok(Ruling::Replace(message.raw().replace("colour", "color").into()))
    ///     }
    ///     _ => Ok(Ruling::Pass),
    /// });
    /// # drop(polite);
    /// ```
    pub fn new<R: Into<Ruling>>(ask: impl Fn(&WireMessage<'_>) -> Result<R, Denial> + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |message| ask(message).map(Into::into)))
    }

    /// Applies the hook to a part that was read. A refused message becomes an invalid message of
    /// the kind [`InvalidKind::Denied`], so that the engine answers it. A
    /// [`Connection`](crate::wired::Connection) does this itself.
    pub fn incoming(&self, item: Inbound, limits: &FrameLimits) -> Inbound {
        let read = |message: Message| match self.judge(Direction::In, &message, limits) {
            Ok(None) => Ok(message),
            Ok(Some(replacement)) => Ok(replacement),
            Err(why) => Err(defect(&message, &why)),
        };
        match item {
            Inbound::Message(message) => read(message).map_or_else(Inbound::Invalid, Inbound::Message),
            Inbound::Batch(elements) => {
                Inbound::Batch(elements.into_iter().map(|element| element.and_then(read)).collect())
            }
            Inbound::Event(SseEvent { id, retry, data }) => {
                let data = match data {
                    Data::Message(message) => read(message).map_or_else(Data::Invalid, Data::Message),
                    Data::Batch(elements) => {
                        Data::Batch(elements.into_iter().map(|element| element.and_then(read)).collect())
                    }
                    other => other,
                };
                Inbound::Event(SseEvent { id, retry, data })
            }
            other => other,
        }
    }

    /// Applies the hook to a part to be written. A [`Connection`](crate::wired::Connection) does
    /// this itself, except for the requests of HTTP clients: a
    /// [`WiredClient`](crate::wired::WiredClient) applies the hook to those before it opens a
    /// connection.
    pub fn outgoing(&self, outgoing: Outbound) -> HookDecision {
        let mut denials = Vec::new();
        let mut rule = |bytes: Bytes| self.rule(bytes, &mut denials);
        let send = match outgoing {
            Outbound::Message(message) => rule(message).map(Outbound::Message),
            // A GET or DELETE has no body, and so no message.
            Outbound::Request { head, body } if !body.is_empty() => {
                rule(body).map(|body| Outbound::Request { head, body })
            }
            Outbound::Response { head, body: Body::Full(body) } if is_json(&body) => {
                // Without its body, it is still the response that the client waits for.
                let body = Body::Full(rule(body).unwrap_or_default());
                Some(Outbound::Response { head, body })
            }
            Outbound::Event { event, id, retry, data } if !data.is_empty() => match rule(data) {
                None if id.is_none() && retry.is_none() => None,
                // The other fields of the event still count.
                data => Some(Outbound::Event { event, id, retry, data: data.unwrap_or_default() }),
            },
            other => Some(other),
        };
        HookDecision { send, denials }
    }

    /// Applies this hook to what another hook sees.
    #[cfg(feature = "record")]
    pub(crate) fn pass(&self, seen: &WireMessage<'_>) -> Result<Ruling, Denial> {
        self.ask(seen.direction, seen.message)
    }

    /// Returns the message that replaces this one, if the hook has one.
    fn judge(&self, direction: Direction, message: &Message, limits: &FrameLimits) -> Result<Option<Message>, Denial> {
        match self.ask(direction, message)? {
            Ruling::Pass => Ok(None),
            Ruling::Replace(text) => read_replacement(message, &text, limits).map(Some),
        }
    }

    fn ask(&self, direction: Direction, message: &Message) -> Result<Ruling, Denial> {
        let seen = WireMessage { direction, message };
        #[cfg(feature = "std")]
        return std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.0)(&seen)))
            .unwrap_or_else(|_| Err(Denial::new("the hook panicked")));
        #[cfg(not(feature = "std"))]
        return (self.0)(&seen);
    }

    /// Returns what to write instead of an outgoing text: the text itself, a part of it, or
    /// nothing.
    fn rule(&self, bytes: Bytes, denials: &mut Vec<BlockedMessage>) -> Option<Bytes> {
        let limits = FrameLimits { max_batch: usize::MAX, ..outgoing_limits() };
        let single = match rpc::parse_batch_or_message(bytes.clone(), &limits) {
            Ok(Document::Batch(elements)) => return self.rule_batch(bytes, elements, denials),
            Ok(Document::Message(message)) => Ok(message),
            Err(defect) => Err(defect),
        };
        match self.judge_outgoing(single) {
            Ok((_, false)) => Some(bytes),
            Ok((replacement, true)) => Some(rpc::write_message(&replacement)),
            Err((denial, instead)) => {
                denials.push(denial);
                instead
            }
        }
    }

    fn rule_batch(
        &self,
        bytes: Bytes,
        elements: Vec<Result<Message, InvalidMessage>>,
        denials: &mut Vec<BlockedMessage>,
    ) -> Option<Bytes> {
        let mut is_changed = false;
        let mut kept = Vec::new();
        for element in elements {
            match self.judge_outgoing(element) {
                Ok((message, is_replacement)) => {
                    is_changed |= is_replacement;
                    kept.push(rpc::write_message(&message));
                }
                Err((denial, instead)) => {
                    is_changed = true;
                    denials.push(denial);
                    kept.extend(instead);
                }
            }
        }
        if !is_changed {
            return Some(bytes);
        }
        (!kept.is_empty()).then(|| rpc::write_batch(&kept))
    }

    /// Returns the message to write, and whether it replaces this one. Otherwise returns the
    /// refusal, and what to write instead.
    fn judge_outgoing(
        &self,
        element: Result<Message, InvalidMessage>,
    ) -> Result<(Message, bool), (BlockedMessage, Option<Bytes>)> {
        let (what, why, id, is_request) = match element {
            Ok(message) => match self.judge(Direction::Out, &message, &outgoing_limits()) {
                Ok(None) => return Ok((message, false)),
                Ok(Some(replacement)) => return Ok((replacement, true)),
                Err(why) => {
                    let id = id(&message).cloned();
                    (describe(&message), why, id, matches!(message, Message::Request(_)))
                }
            },
            // A text that the hook cannot see does not pass.
            Err(defect) => {
                let why = Denial::new(format!("the hook cannot see it: {defect}"));
                (defect.to_string(), why, defect.id, defect.has_method)
            }
        };
        let instead = id.as_ref().filter(|_| !is_request).map(|id| {
            rpc::error_response(Some(id), &ErrorObject::new(code::INTERNAL_ERROR, InvalidKind::Denied.as_str()))
        });
        Err((BlockedMessage { request: id.filter(|_| is_request), what, why }, instead))
    }
}

impl fmt::Debug for MessageHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MessageHook(..)")
    }
}

impl PartialEq for MessageHook {
    /// Returns whether both are the same function.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<'a> WireMessage<'a> {
    /// Returns the direction.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Returns the kind.
    pub fn kind(&self) -> MessageKind {
        match self.message {
            Message::Request(_) => MessageKind::Request,
            Message::Notification(_) => MessageKind::Notification,
            Message::Response(response) if matches!(response.payload, Payload::Result(_)) => MessageKind::Response,
            Message::Response(_) | Message::Error(_) => MessageKind::Error,
        }
    }

    /// Returns the method of a request or notification.
    pub fn method(&self) -> Option<&'a str> {
        method(self.message)
    }

    /// Returns the id of a request, or of the request that a response answers.
    pub fn id(&self) -> Option<&'a Id> {
        id(self.message)
    }

    /// Returns the length of [`raw`](Self::raw) in bytes.
    pub fn size(&self) -> usize {
        rpc::message_size(self.message)
    }

    /// Returns the message as redacted JSON: see [`redact`](crate::redact). It is as long as
    /// [`raw`](Self::raw).
    pub fn text(&self) -> String {
        String::from_utf8(redact_message(&rpc::write_message(self.message))).unwrap_or_default()
    }

    /// Returns the message as JSON with all its secrets. Not for logs. The members of the envelope
    /// are in the order in which this crate writes them, and unknown members are omitted.
    pub fn raw(&self) -> String {
        String::from_utf8(rpc::write_message(self.message).into()).unwrap_or_default()
    }
}

impl fmt::Debug for WireMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.direction, Visible(&self.text()))
    }
}

/// Returns the limits of what this side writes. An outgoing text is nested no deeper than the
/// requests that led to it, and its application may write at any length.
fn outgoing_limits() -> FrameLimits {
    FrameLimits { max_depth: u32::MAX, max_line: usize::MAX, ..FrameLimits::default() }
}

/// Reads the replacement of a message.
fn read_replacement(message: &Message, text: &Bytes, limits: &FrameLimits) -> Result<Message, Denial> {
    let refused = |why: &str| Denial::new(format!("its replacement {why}"));
    if text.len() > limits.max_line {
        return Err(refused("is too long"));
    }
    // Line breaks between its tokens are left out here.
    let read =
        rpc::parse(text.clone(), limits.max_depth).map_err(|defect| refused(&format!("is not valid: {defect}")))?;
    let is_same_kind = match (message, &read) {
        (Message::Request(_), Message::Request(_)) | (Message::Notification(_), Message::Notification(_)) => true,
        (Message::Response(_), Message::Response(_)) | (Message::Error(_), Message::Error(_)) => true,
        (Message::Request(_) | Message::Notification(_) | Message::Response(_) | Message::Error(_), _) => false,
    };
    match is_same_kind && id(message) == id(&read) && method(message) == method(&read) {
        true => Ok(read),
        false => Err(refused("is of another kind, or has another id or method")),
    }
}

/// Returns whether a body is a message, and not a text for people.
fn is_json(body: &Bytes) -> bool {
    matches!(body.first(), Some(b'{' | b'['))
}

fn id(message: &Message) -> Option<&Id> {
    match message {
        Message::Request(request) => Some(&request.id),
        Message::Response(response) => Some(&response.id),
        Message::Notification(_) | Message::Error(_) => None,
    }
}

fn method(message: &Message) -> Option<&str> {
    match message {
        Message::Request(request) => Some(&request.method),
        Message::Notification(notification) => Some(&notification.method),
        Message::Response(_) | Message::Error(_) => None,
    }
}

fn describe(message: &Message) -> String {
    match (method(message), id(message)) {
        (Some(method), _) => method.into(),
        (None, Some(id)) => format!("the answer to {id}"),
        (None, None) => "an error without an id".into(),
    }
}

fn defect(message: &Message, why: &Denial) -> InvalidMessage {
    let defect = InvalidMessage::new(InvalidKind::Denied, why.0.as_bytes());
    InvalidMessage { id: id(message).cloned(), has_method: method(message).is_some(), ..defect }
}
