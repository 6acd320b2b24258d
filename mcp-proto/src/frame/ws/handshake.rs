//! The opening handshake (RFC 6455 section 4): an HTTP/1.1 GET that asks for an upgrade, and its
//! response. The heads are parsed elsewhere. No extension is offered or accepted.

use super::WsSupport;
use crate::exchange::{self, BadRequest, Headers, RequestHead, ResponseHead, WsDialect, trim_blanks};
use alloc::string::String;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The subprotocol of MCP.
pub(crate) const PROTOCOL: &str = "mcp";

/// The version of RFC 6455, the only one.
const VERSION: &str = "13";

/// What a server appends to the key, so that no other protocol gives its answer by chance.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Length of the random bytes behind a key.
const KEY: usize = 16;

/// Returns the `Sec-WebSocket-Key` of a connection. Each connection needs new random bytes.
pub(crate) fn key(random: [u8; KEY]) -> String {
    STANDARD.encode(random)
}

/// Adds the fields of the handshake to those of a GET.
pub(crate) fn request_fields(headers: Headers, key: &str, dialect: WsDialect) -> Headers {
    const FIELDS: &[(&str, &str)] =
        &[("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", VERSION)];
    const OFFER: &[(&str, &str)] = &[("Sec-WebSocket-Protocol", PROTOCOL)];
    let offer = match dialect {
        WsDialect::JsonRpc => OFFER,
        WsDialect::BareTool => &[],
    };
    headers.with_fixed(FIELDS).with_fixed(offer).with("Sec-WebSocket-Key", key)
}

/// Checks the response to a handshake with this key (RFC 6455 section 4.1). The error says why the
/// connection cannot be used. The server may ignore the subprotocol.
pub(crate) fn check_response(
    head: &ResponseHead,
    key: &str,
    dialect: WsDialect,
    support: WsSupport,
) -> Result<(), &'static str> {
    let headers = &head.headers;
    if head.status != 101 {
        return Err("the status is not 101");
    }
    let mut upgrades = members(headers, "upgrade").peekable();
    if upgrades.peek().is_none() || !upgrades.all(is_websocket) {
        return Err("the response does not upgrade to websocket");
    }
    if !has_upgrade(headers) {
        return Err("the connection field of the response has no upgrade");
    }
    if single(headers, "sec-websocket-accept") != Some(&accept(key, support)) {
        return Err("the sec-websocket-accept field does not match the key");
    }
    if members(headers, "sec-websocket-extensions").next().is_some() {
        return Err("the server uses an extension that was not offered");
    }
    let is_offered = dialect == WsDialect::JsonRpc && single(headers, "sec-websocket-protocol") == Some(PROTOCOL);
    if headers.get("sec-websocket-protocol").is_some() && !is_offered {
        return Err("the server chose a subprotocol that was not offered");
    }
    Ok(())
}

/// What a server does with an HTTP request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Upgrade {
    /// It does not ask for WebSocket: it is an ordinary request.
    None,
    /// The handshake is complete once the server has responded. The bytes after the request are
    /// the first frame.
    Accept(HandshakeReply),
    /// It asks for WebSocket in a way that is refused, with the status 400 or 426. See
    /// [`refusal_fields`].
    Refuse(BadRequest),
}

/// A handshake that a server accepts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HandshakeReply {
    /// The `Sec-WebSocket-Accept` that proves it.
    pub(crate) accept: String,
    /// The subprotocol, if the client offered it.
    pub(crate) protocol: Option<&'static str>,
}

impl HandshakeReply {
    /// Returns the head of the response.
    pub(crate) fn response(&self) -> ResponseHead {
        const FIELDS: &[(&str, &str)] = &[("Upgrade", "websocket"), ("Connection", "Upgrade")];
        let headers = Headers::new().with_fixed(FIELDS).with("Sec-WebSocket-Accept", &self.accept);
        let headers = match self.protocol {
            Some(protocol) => headers.with("Sec-WebSocket-Protocol", protocol),
            None => headers,
        };
        ResponseHead { status: 101, headers }
    }
}

/// Returns the response that accepts the handshake of this request, for
/// [`Conn::encode`](crate::frame::Conn::encode) with
/// [`Body::WebSocket`](crate::exchange::Body::WebSocket) (RFC 6455 section 4.2.2). `None` if it is
/// no request for a WebSocket, or a faulty one.
#[cfg(feature = "ws")]
pub fn accept_web_socket(head: &RequestHead) -> Option<ResponseHead> {
    match check_request(head, false, WsSupport::get()?) {
        Upgrade::Accept(accepted) => Some(accepted.response()),
        Upgrade::None | Upgrade::Refuse(_) => None,
    }
}

/// Checks a request head (RFC 6455 section 4.2.1), whose `Host` has been checked. `old` is whether
/// it is HTTP/1.0. Extensions that the client offers are ignored.
pub(crate) fn check_request(head: &RequestHead, old: bool, support: WsSupport) -> Upgrade {
    let headers = &head.headers;
    if !members(headers, "upgrade").any(is_websocket) {
        return Upgrade::None;
    }
    if head.method != "GET" {
        return refuse(400, "a websocket handshake is a GET");
    }
    if old {
        return refuse(400, "a websocket handshake needs HTTP/1.1");
    }
    if !has_upgrade(headers) {
        return refuse(400, "the connection field has no upgrade");
    }
    // Another version may have another key, or none.
    if single(headers, "sec-websocket-version") != Some(VERSION) {
        return refuse(426, "the version of websocket is not 13");
    }
    let Some(key) = single(headers, "sec-websocket-key").filter(|key| is_key(key)) else {
        return refuse(400, "the sec-websocket-key field is not one key of 16 bytes");
    };
    let is_offered = members(headers, "sec-websocket-protocol").any(|member| member == PROTOCOL);
    Upgrade::Accept(HandshakeReply { accept: accept(key, support), protocol: is_offered.then_some(PROTOCOL) })
}

/// Returns the fields of a response that refuses a handshake with this status. The client learns
/// the version to use (RFC 6455 section 4.4, RFC 9110 section 15.5.22).
pub(crate) fn refusal_fields(status: u16) -> Headers {
    const FIELDS: &[(&str, &str)] =
        &[("Sec-WebSocket-Version", VERSION), ("Upgrade", "websocket"), ("Connection", "Upgrade")];
    Headers::new().with_fixed(if status == 426 { FIELDS } else { &[] })
}

fn refuse(status: u16, why: &'static str) -> Upgrade {
    Upgrade::Refuse(BadRequest { status, why })
}

/// Returns the `Sec-WebSocket-Accept` for a key.
fn accept(key: &str, support: WsSupport) -> String {
    STANDARD.encode(support.sha1([key, GUID]))
}

fn is_key(text: &str) -> bool {
    // Base64 decoders want room for whole groups.
    STANDARD.decode_slice(text, &mut [0; KEY + 2]) == Ok(KEY)
}

fn is_websocket(member: &str) -> bool {
    member.eq_ignore_ascii_case("websocket")
}

fn has_upgrade(headers: &Headers) -> bool {
    members(headers, "connection").any(|member| member.eq_ignore_ascii_case("upgrade"))
}

/// Returns the comma-separated members of all fields of this name. Empty ones do not count (RFC
/// 9110 section 5.6.1).
fn members<'a>(headers: &'a Headers, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers.all(name).flat_map(exchange::members).filter(|member| !member.is_empty())
}

/// Returns the value of the only field of this name. Two readers of several could choose different
/// ones.
fn single<'a>(headers: &'a Headers, name: &'a str) -> Option<&'a str> {
    let mut values = headers.all(name);
    values.next().filter(|_| values.next().is_none()).map(trim_blanks)
}
