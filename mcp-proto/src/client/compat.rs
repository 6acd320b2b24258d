//! Settings of a client for servers that deviate from the specification or from most others.

use crate::exchange::Origin;
use alloc::vec::Vec;
use core::time::Duration;

/// The settings of a [`ClientConfig`](super::ClientConfig) that only some servers need. With the
/// defaults the client also works with most servers that deviate from the specification.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ClientCompat {
    /// Whether and when the client opens the listener. On it a legacy HTTP server sends the
    /// messages that belong to no call: notifications, and the requests of some servers. 2026-07-28
    /// has no listener. Default [`ListenerStart::AfterInitialized`]. The others are for servers
    /// that send messages before they respond to `notifications/initialized`, and for servers that
    /// fail on the GET of a listener.
    pub listener: ListenerStart,
    /// Maximum time to open the listener. Calls wait for the opening, since servers send requests
    /// for a call on the listener, but for 1 s at most. Default [`ListenerTime::Quarter`]. A longer
    /// time is for servers that send the head of the response only with their first message.
    pub listener_start: ListenerTime,
    /// The consequence of the end of an open listener. Default [`ListenerEnd::Resume`]. The others
    /// are for servers that close the listener and expect no second one.
    pub listener_end: ListenerEnd,
    /// The effect of an event that is not a message on its stream. Default [`SseDecode::Skip`],
    /// since some servers send events of their own. `Reject` is for applications that prefer an
    /// error to a response which may lack a part.
    pub sse_decode: SseDecode,
    /// Whether every 403 is a challenge, not only one with `insufficient_scope`, if
    /// [`ClientConfig::authorize`](super::ClientConfig::authorize) is on. Default off. On is for
    /// servers that refuse credentials with a 403 and do not say what is missing.
    pub retry_plain_403: bool,
    /// Whether the client notifies the server of a cancelled call. Default
    /// [`CancelSignal::Server`], as the era demands. `LocalOnly` is for servers that fail on
    /// `notifications/cancelled`: the client only stops waiting.
    pub cancel_signal: CancelSignal,
    /// The form of request ids. Default [`IdPolicy::Counter`]. `Snowflake` is for servers that
    /// confuse the equal ids of several clients.
    pub ids: IdPolicy,
    /// The effect of a line that is not a message. Default [`OnMalformed::Skip`], since some
    /// programs write their log to standard output. `Fatal` is for applications that must not
    /// continue after a line which may have been a message.
    pub malformed: OnMalformed,
    /// Whether a string id that is the decimal form of a pending integer id matches it, if no
    /// pending string id does. Default yes, for servers that return each id as a string.
    pub match_text_ids: bool,
    /// Whether a malformed line that still contains the id of a pending call fails that call at
    /// once. Default yes. No is for servers that send a valid response after such a line: without
    /// one, the call waits until its timeout.
    pub fail_on_defect: bool,
    /// HTTP+SSE: how the client resolves the reference in an `endpoint` event. Default
    /// [`EndpointRule::Rfc3986`].
    pub endpoint_rule: EndpointRule,
    /// HTTP+SSE: the origins to which the client posts messages. Default [`EndpointOrigin::Same`]:
    /// a server must not be able to direct the messages and credentials of its client elsewhere.
    pub endpoint_origin: EndpointOrigin,
    /// HTTP+SSE: the meaning of another endpoint on a stream that was opened again. Default
    /// [`EndpointRefresh::NewSession`].
    pub endpoint_refresh: EndpointRefresh,
}

impl Default for ClientCompat {
    fn default() -> Self {
        Self {
            listener: ListenerStart::AfterInitialized,
            listener_start: ListenerTime::Quarter,
            listener_end: ListenerEnd::Resume,
            sse_decode: SseDecode::Skip,
            retry_plain_403: false,
            cancel_signal: CancelSignal::Server,
            ids: IdPolicy::Counter,
            malformed: OnMalformed::Skip,
            match_text_ids: true,
            fail_on_defect: true,
            endpoint_rule: EndpointRule::default(),
            endpoint_origin: EndpointOrigin::default(),
            endpoint_refresh: EndpointRefresh::default(),
        }
    }
}

/// Whether and when the client opens the listener (2025-11-25 transports, listening for messages
/// from the server).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum ListenerStart {
    /// After the response to `notifications/initialized`: servers refuse the listener before.
    #[default]
    AfterInitialized,
    /// After the response to `initialize`.
    BeforeInitialized,
    /// Never.
    Never,
}

/// Maximum time to open the listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum ListenerTime {
    /// A quarter of [`ClientConfig::timeout`](super::ClientConfig::timeout), at least 1 ms, at most
    /// 1 s. 1 s if that has no limit.
    #[default]
    Quarter,
    /// This time.
    After(Duration),
    /// No limit.
    Unlimited,
}

/// The consequence of the end of an open listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum ListenerEnd {
    /// The client opens it again, as [`ClientConfig::resume`](super::ClientConfig::resume)
    /// determines.
    #[default]
    Resume,
    /// The client emits [`Event::ListenerLost`](super::Event::ListenerLost), and the listener stays
    /// closed.
    Stop,
    /// The listener stays closed, without an event: for servers that close it regularly.
    Ignore,
}

/// The effect of an event that is not a message on its stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum SseDecode {
    /// The client skips it, with a diagnostic. A call that gets no other response ends with the
    /// reason.
    #[default]
    Skip,
    /// The event ends the stream, and the call that the stream serves.
    Reject,
}

/// What the client sends when it cancels a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum CancelSignal {
    /// The client notifies the server: by `notifications/cancelled`, or on 2026-07-28 over HTTP by
    /// the end of the exchange.
    #[default]
    Server,
    /// Nothing. A late response is ignored.
    LocalOnly,
}

/// The form of request ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum IdPolicy {
    /// 1, 2, 3, …
    #[default]
    Counter,
    /// Strings: milliseconds since 1970, ten bits of node, twelve bits of sequence, as one decimal
    /// number.
    Snowflake {
        /// Distinguishes this client from others. Ten bits count.
        node: u16,
    },
}

/// The effect of bytes that are not a message on the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum OnMalformed {
    /// The client skips them, with a diagnostic.
    #[default]
    Skip,
    /// They end the connection.
    Fatal,
}

/// How the client resolves the reference in an `endpoint` event of HTTP+SSE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum EndpointRule {
    /// Against the URL of the stream (RFC 3986 section 5.2): `messages` on a stream at `/a/sse` is
    /// `/a/messages`.
    #[default]
    Rfc3986,
    /// Like [`Rfc3986`](Self::Rfc3986), except that a relative path replaces the whole path:
    /// `messages` on a stream at `/a/sse` is `/messages`.
    RootReplace,
}

/// The origins that an `endpoint` event of HTTP+SSE may name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum EndpointOrigin {
    /// Only that of the stream.
    #[default]
    Same,
    /// That of the stream, and these. The client sends them its credentials and header fields.
    List(Vec<Origin>),
    /// Any. The client sends credentials and header fields of the application only to the origin
    /// of the stream.
    Any,
}

impl EndpointOrigin {
    /// Returns whether the application named this origin.
    pub(in crate::client) fn lists(&self, origin: &Origin) -> bool {
        matches!(self, Self::List(origins) if origins.contains(origin))
    }
}

/// The meaning of an `endpoint` event of HTTP+SSE that differs from the last one, on a stream that
/// broke and was opened again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum EndpointRefresh {
    /// A new session: the server has lost the old one. The client initializes the new one first.
    /// Calls in flight end, unless they may be repeated.
    #[default]
    NewSession,
    /// The same session at another address. The client posts further messages there, and waits for
    /// the responses to those before.
    Continue,
}
