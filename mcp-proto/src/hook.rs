//! A function of the application that sees every message, in and out, and may refuse it. What a refusal does to calls and answers is the
//! engines' business; nothing here knows a method, an era or a channel.

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

/// Sees every message of a client or a server, on whatever transport, and may refuse it: for logs, counts and policies.
///
/// It is asked once for each message (once for each of a batch), when it was read and before it is acted upon, or before it is written. It
/// does not see what is no message (a [`BadMessage`](crate::error::DiagnosticKind::BadMessage) diagnostic tells of that), nor the heads of
/// HTTP. Nothing that is refused is lost without a word:
///
/// | refused | what happens |
/// |---|---|
/// | our request | its call ends with [`CallError::Denied`](crate::CallError::Denied), `sent: No`; nothing is written, and no connection opened for it |
/// | an answer to us | its call ends with [`CallError::Denied`](crate::CallError::Denied), `sent: Maybe` |
/// | a request to us | it is answered with the error -32603, and never reaches the application |
/// | our answer | the error -32603 is sent in its place |
/// | a notification, either way | it is dropped, with a [`Denied`](crate::error::DiagnosticKind::Denied) diagnostic |
/// | a request of the handshake, or its answer | connecting fails with [`NegotiationCause::Denied`](crate::error::NegotiationCause::Denied) |
/// | a question of a server to its client | it counts as answered with an error |
///
/// The reason stays on this side: the peer is told only that there was a refusal.
///
/// It runs where the bytes are read and written: a client runs it under the lock of its engine, a server outside of it. It must not wait,
/// and must not call the client that it belongs to. A panic in it refuses the message (only with the feature `std`; else it unwinds).
#[derive(Clone)]
pub struct MessageHook(Arc<Ask>);

type Ask = dyn Fn(&WireMessage<'_>) -> Result<(), Denied> + Send + Sync;

/// A message as a [`MessageHook`] sees it. Its `Debug` shows it redacted.
#[derive(Clone, Copy)]
pub struct WireMessage<'a> {
    direction: Direction,
    message: &'a Message,
}

/// Which way a message goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the peer to us.
    In,
    /// From us to the peer.
    Out,
}

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// It wants an answer.
    Request,
    /// It wants none.
    Notification,
    /// An answer with a result.
    Response,
    /// An answer with an error, or an error that belongs to no request.
    Error,
}

/// A refusal, and its reason: one sentence, for the application that asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denied(pub String);

impl Denied {
    /// A refusal for this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused by the message hook: {}", Visible(&self.0))
    }
}

impl core::error::Error for Denied {}

/// What is left of an [`Outbound`] that a hook was asked about.
#[derive(Clone, PartialEq, Debug)]
pub struct HookDecision {
    /// What to send; `None` if all of it was refused.
    pub send: Option<Outbound>,
    /// What was refused.
    pub denials: Vec<Blocked>,
}

/// One outgoing message that was refused.
#[derive(Clone, PartialEq, Debug)]
pub struct Blocked {
    /// If it was a request: its id. Somebody waits for the answer.
    pub request: Option<Id>,
    /// What it was, for people: its method or id. Not its content.
    pub what: String,
    /// Why.
    pub why: Denied,
}

impl MessageHook {
    /// Asks this function.
    pub fn new(ask: impl Fn(&WireMessage<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    /// Asks about what was read. What is refused comes back as a defect of the kind [`InvalidKind::Denied`], so that the engine answers it.
    /// A [`Connection`](crate::wired::Connection) does this itself.
    pub fn incoming(&self, item: Inbound) -> Inbound {
        let read = |message: Message| match self.ask(Direction::In, &message) {
            Ok(()) => Ok(message),
            Err(why) => Err(defect(&message, &why)),
        };
        match item {
            Inbound::Message(message) => read(message).map_or_else(Inbound::Invalid, Inbound::Message),
            Inbound::Batch(elements) => {
                Inbound::Batch(elements.into_iter().map(|element| element.and_then(read)).collect())
            }
            Inbound::Event(SseEvent { id, retry, data }) => {
                let data = match data {
                    Data::Message(message) => read(message).map_or_else(Data::Bad, Data::Message),
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

    /// Asks about what is to be written. A [`Connection`](crate::wired::Connection) does this itself, but for the requests of HTTP clients, about which
    /// a [`WiredClient`](crate::wired::WiredClient) asks before there is a connection.
    pub fn outgoing(&self, outgoing: Outbound) -> HookDecision {
        let mut denials = Vec::new();
        let mut rule = |bytes: Bytes| self.rule(bytes, &mut denials);
        let send = match outgoing {
            Outbound::Message(message) => rule(message).map(Outbound::Message),
            // A GET and a DELETE have no body, and so no message.
            Outbound::Request { head, body } if !body.is_empty() => {
                rule(body).map(|body| Outbound::Request { head, body })
            }
            Outbound::Response { head, body: Body::Full(body) } if is_json(&body) => {
                // Without its body it is still the answer that the client waits for.
                let body = Body::Full(rule(body).unwrap_or_default());
                Some(Outbound::Response { head, body })
            }
            Outbound::Event { id, retry, data } if !data.is_empty() => match rule(data) {
                None if id.is_none() && retry.is_none() => None,
                // What the event says besides its data still counts.
                data => Some(Outbound::Event { id, retry, data: data.unwrap_or_default() }),
            },
            other => Some(other),
        };
        HookDecision { send, denials }
    }

    /// Asks what another hook is asked.
    #[cfg(feature = "std")]
    pub(crate) fn pass(&self, seen: &WireMessage<'_>) -> Result<(), Denied> {
        self.ask(seen.direction, seen.message)
    }

    fn ask(&self, direction: Direction, message: &Message) -> Result<(), Denied> {
        let seen = WireMessage { direction, message };
        #[cfg(feature = "std")]
        return std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.0)(&seen)))
            .unwrap_or_else(|_| Err(Denied::new("the hook panicked")));
        #[cfg(not(feature = "std"))]
        return (self.0)(&seen);
    }

    /// What is to be written in place of a text of ours: itself, less, or nothing.
    fn rule(&self, bytes: Bytes, denials: &mut Vec<Blocked>) -> Option<Bytes> {
        // What we write nests no deeper, and no list of answers is longer, than what we were asked.
        let limits = FrameLimits { max_depth: u32::MAX, max_batch: usize::MAX, ..FrameLimits::default() };
        let single = match rpc::parse_batch_or_message(bytes.clone(), &limits) {
            Ok(Document::Batch(elements)) => return self.rule_batch(bytes, elements, denials),
            Ok(Document::Message(message)) => Ok(message),
            Err(defect) => Err(defect),
        };
        match self.judge(single) {
            Ok(_) => Some(bytes),
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
        denials: &mut Vec<Blocked>,
    ) -> Option<Bytes> {
        let before = denials.len();
        let mut kept = Vec::new();
        for element in elements {
            match self.judge(element) {
                Ok(message) => kept.push(rpc::write_message(&message)),
                Err((denial, instead)) => {
                    denials.push(denial);
                    kept.extend(instead);
                }
            }
        }
        if denials.len() == before {
            return Some(bytes);
        }
        (!kept.is_empty()).then(|| rpc::write_batch(&kept))
    }

    /// A message of ours that passes, or what was refused and what stands in its place.
    fn judge(&self, element: Result<Message, InvalidMessage>) -> Result<Message, (Blocked, Option<Bytes>)> {
        let (what, why, id, is_request) = match element {
            Ok(message) => match self.ask(Direction::Out, &message) {
                Ok(()) => return Ok(message),
                Err(why) => {
                    let id = id(&message).cloned();
                    (describe(&message), why, id, matches!(message, Message::Request(_)))
                }
            },
            // What the hook cannot be shown does not pass it.
            Err(defect) => {
                let why = Denied::new(format!("it cannot be shown to the hook: {defect}"));
                (defect.to_string(), why, defect.id, defect.has_method)
            }
        };
        let instead = id.as_ref().filter(|_| !is_request).map(|id| {
            rpc::error_response(Some(id), &ErrorObject::new(code::INTERNAL_ERROR, InvalidKind::Denied.as_str()))
        });
        Err((Blocked { request: id.filter(|_| is_request), what, why }, instead))
    }
}

impl fmt::Debug for MessageHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MessageHook(..)")
    }
}

impl PartialEq for MessageHook {
    /// Whether it is the same function.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<'a> WireMessage<'a> {
    /// Which way it goes.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// What it is.
    pub fn kind(&self) -> MessageKind {
        match self.message {
            Message::Request(_) => MessageKind::Request,
            Message::Notification(_) => MessageKind::Notification,
            Message::Response(response) if matches!(response.payload, Payload::Result(_)) => MessageKind::Response,
            Message::Response(_) | Message::Error(_) => MessageKind::Error,
        }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&'a str> {
        method(self.message)
    }

    /// The id of a request, or of the request that is answered.
    pub fn id(&self) -> Option<&'a Id> {
        id(self.message)
    }

    /// The length of [`raw`](Self::raw) in bytes.
    pub fn size(&self) -> usize {
        rpc::message_size(self.message)
    }

    /// The message as JSON, without its secrets: see [`redact`](crate::redact). As long as [`raw`](Self::raw).
    pub fn text(&self) -> String {
        String::from_utf8(redact_message(&rpc::write_message(self.message))).unwrap_or_default()
    }

    /// The message as JSON with all its secrets. Not for logs. The members of the envelope stand in our order, and what does not belong to
    /// it is left out.
    pub fn raw(&self) -> String {
        String::from_utf8(rpc::write_message(self.message).into()).unwrap_or_default()
    }
}

impl fmt::Debug for WireMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.direction, Visible(&self.text()))
    }
}

/// Whether a body is a message of ours, and no text for people.
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

fn defect(message: &Message, why: &Denied) -> InvalidMessage {
    let defect = InvalidMessage::new(InvalidKind::Denied, why.0.as_bytes());
    InvalidMessage { id: id(message).cloned(), has_method: method(message).is_some(), ..defect }
}
