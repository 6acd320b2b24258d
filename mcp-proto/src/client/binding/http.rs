//! Streamable HTTP of 2026-07-28: one POST for each request or notification, answered by JSON or by a stream of events.
//! (The older revisions over HTTP, sessions and resumption are not spoken yet.)

use super::Exchange;
use crate::client::ids::Purpose;
use crate::client::{Client, State, Target, Timer};
use crate::error::{CallError, DiagnosticKind, NegotiationCause};
use crate::exchange::{
    Closed, Data, ExchangeId, Fact, Headers, Item, RequestHead, ResponseHead, Sent, SseEvent, Start,
};
use crate::input::CallId;
use crate::rpc::{DecodeError, Defect, DefectKind, Id, Message, Object, Payload};
use crate::version::ProtocolVersion;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

/// The answer to one POST, as far as it has come.
#[derive(Debug)]
pub(in crate::client) struct Answer {
    /// The request that was posted; `None` for a notification, or once it is settled.
    request: Option<(Id, Purpose)>,
    is_notification: bool,
    head: Option<ResponseHead>,
    /// The first bytes of a body that holds no message.
    body: Vec<u8>,
    any_message: bool,
    last_defect: Option<Defect>,
    /// Items after the response.
    drained: usize,
}

impl Client {
    /// Posts a message. `request` is there if it is a request.
    pub(super) fn post(
        &mut self,
        exchange: ExchangeId,
        method: &str,
        params: Option<&Object>,
        body: Bytes,
        version: ProtocolVersion,
        request: Option<(Id, Purpose)>,
    ) {
        let Target::Http(target) = &self.config.target else { return };
        let authority = match (target.origin.tls, target.origin.port) {
            (false, 80) | (true, 443) => bracketed(&target.origin.host),
            (_, port) => format!("{}:{port}", bracketed(&target.origin.host)),
        };
        let mut headers = Headers::new()
            .with("Host", authority)
            .with("Content-Type", "application/json")
            .with("Accept", "application/json, text/event-stream")
            .with("MCP-Protocol-Version", version.as_str())
            .with("Mcp-Method", encode_value(method));
        if let Some(name) = params.and_then(|params| mirrored_name(method, params)) {
            headers.push("Mcp-Name", encode_value(&name));
        }
        let head = RequestHead { method: "POST".into(), target: target.path.clone(), headers };
        let repeatable = match &request {
            Some((_, Purpose::Call(call))) => self.is_repeatable(*call),
            Some((_, Purpose::Discover | Purpose::Initialize | Purpose::Ping)) => true,
            None => false,
        };
        let start = Start::Http { origin: target.origin.clone(), head, body, repeatable };
        if request.is_none() {
            self.timers.set(Timer::Drain(exchange), self.config.timeout.map(|limit| self.now + limit));
        }
        let is_notification = request.is_none();
        let (head, last_defect) = (None, None);
        let answer =
            Answer { request, is_notification, head, body: vec![], any_message: false, last_defect, drained: 0 };
        self.exchanges.insert(exchange, Exchange::Http(answer));
        self.out.start(exchange, start);
    }

    fn is_repeatable(&self, call: CallId) -> bool {
        self.calls.get(&call).is_some_and(|call| call.raw.options.repeatable)
    }

    pub(super) fn on_http(&mut self, exchange: ExchangeId, fact: Fact) {
        match fact {
            Fact::Item(item) => self.on_http_item(exchange, item),
            Fact::Failed { sent, why } => self.on_http_failed(exchange, sent, why),
            Fact::Opened(_) | Fact::Unsent(_) | Fact::Unsendable { .. } => {}
        }
    }

    fn on_http_item(&mut self, exchange: ExchangeId, item: Item) {
        let Some(Exchange::Http(answer)) = self.exchanges.get_mut(&exchange) else {
            return;
        };
        if answer.request.is_none() && !matches!(item, Item::End) {
            answer.drained += 1;
            if answer.drained > self.config.limits.client.drain_items {
                return self.drop_exchange(exchange);
            }
        }
        match item {
            Item::Response(head) => answer.head = Some(head),
            Item::Body(bytes) => {
                let room = Defect::HEAD - answer.body.len().min(Defect::HEAD);
                answer.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Item::Event(SseEvent { data, .. }) => match data {
                Data::None => {}
                Data::Message(message) => self.on_http_message(exchange, message),
                Data::Bad(defect) => self.on_http_defect(exchange, defect),
                Data::Other { event, .. } => self.diagnose(DiagnosticKind::BadEvent, event),
            },
            Item::Message(message) => self.on_http_message(exchange, message),
            Item::BadMessage(defect) => self.on_http_defect(exchange, defect),
            Item::End => self.on_http_end(exchange),
            item @ (Item::Batch(_) | Item::Request(_) | Item::Reject(_)) => self.on_items(exchange, item),
        }
    }

    fn on_http_message(&mut self, exchange: ExchangeId, message: Message) {
        let Some(Exchange::Http(answer)) = self.exchanges.get_mut(&exchange) else {
            return;
        };
        answer.any_message = true;
        let failed = answer.head.as_ref().is_some_and(|head| !success(head.status));
        match (message, answer.request.clone()) {
            // The body of an error status may be an error without an id: it can only mean this request.
            (Message::Error(error), Some((id, purpose))) if failed => {
                self.settle(exchange, &id, purpose, Ok(Payload::Error(error)));
            }
            (message, _) => self.on_message(exchange, message),
        }
    }

    fn on_http_defect(&mut self, exchange: ExchangeId, defect: Defect) {
        if let Some(Exchange::Http(answer)) = self.exchanges.get_mut(&exchange)
            && defect.kind != DefectKind::Denied
        {
            answer.last_defect = Some(defect.clone());
        }
        self.on_defect(exchange, defect);
    }

    /// The response has come: what follows it is read for a while, then dropped.
    pub(super) fn answered(&mut self, exchange: ExchangeId) {
        let Some(Exchange::Http(answer)) = self.exchanges.get_mut(&exchange) else {
            return;
        };
        answer.request = None;
        let until = self.now + self.config.limits.client.drain_time;
        self.timers.set(Timer::Drain(exchange), Some(until));
    }

    /// The server has said all. If the response was not in it, the request ends with what can be told of the reason.
    fn on_http_end(&mut self, exchange: ExchangeId) {
        let Some(Exchange::Http(answer)) = self.exchanges.remove(&exchange) else { return };
        self.timers.set(Timer::Drain(exchange), None);
        let status = answer.head.as_ref().map_or(0, |head| head.status);
        match answer.request {
            Some((id, purpose)) => {
                self.ids.retire(&id);
                self.on_unanswered(id, purpose, status, &answer.body, answer.any_message, answer.last_defect);
            }
            None if success(status) => {}
            None => self.diagnose(DiagnosticKind::DroppedNotification, format!("HTTP {status}")),
        }
        self.terminate_if_done();
    }

    fn on_unanswered(
        &mut self,
        id: Id,
        purpose: Purpose,
        status: u16,
        body: &[u8],
        any_message: bool,
        last_defect: Option<Defect>,
    ) {
        let body_head = Bytes::copy_from_slice(body);
        if success(status) && !body_head.is_empty() {
            self.diagnose(DiagnosticKind::UnknownContentType, format!("{} bytes", body_head.len()));
        }
        let decode = last_defect.map(|defect| DecodeError::new(defect.to_string()));
        match purpose {
            Purpose::Call(call) => {
                let error = match decode {
                    _ if !success(status) => CallError::Http { status, body_head },
                    Some(e) => CallError::Decode(e),
                    None => CallError::NoResponse { id, any_message },
                };
                self.end(call, Err(error));
            }
            Purpose::Ping => self.on_ping_lost(),
            Purpose::Discover | Purpose::Initialize => {
                let cause = match decode {
                    _ if !success(status) => NegotiationCause::Http { status, body_head },
                    Some(e) => NegotiationCause::Decode(e),
                    None => NegotiationCause::Decode(DecodeError::new("the answer holds no response")),
                };
                self.on_handshake_status(cause);
            }
        }
    }

    fn on_http_failed(&mut self, exchange: ExchangeId, sent: Sent, why: Closed) {
        let Some(Exchange::Http(answer)) = self.exchanges.remove(&exchange) else { return };
        self.timers.set(Timer::Drain(exchange), None);
        match (answer.request, self.state()) {
            (_, State::Closing | State::Terminated) => {}
            (Some((id, purpose)), _) if matches!(why, Closed::Denied(_)) => {
                let Closed::Denied(reason) = why else { return };
                self.ids.retire(&id);
                match purpose {
                    Purpose::Call(call) => self.end(call, Err(CallError::Denied { sent, reason })),
                    Purpose::Discover | Purpose::Initialize => self.on_handshake_denied(reason),
                    Purpose::Ping => self.on_ping_denied(&id, &reason),
                }
            }
            (None, _) if answer.is_notification && matches!(why, Closed::Denied(_)) => {
                self.diagnose(DiagnosticKind::Denied, why.to_string());
            }
            (None, _) if answer.is_notification => self.diagnose(DiagnosticKind::DroppedNotification, why.to_string()),
            (None, _) => {}
            (Some((id, Purpose::Call(call))), _) => {
                self.ids.retire(&id);
                self.end(call, Err(CallError::Closed { sent, why }));
            }
            (Some((id, Purpose::Ping)), _) => {
                self.ids.retire(&id);
                self.on_ping_lost();
            }
            (Some((id, Purpose::Discover | Purpose::Initialize)), _) => {
                self.ids.retire(&id);
                self.on_handshake_closed(sent == Sent::Maybe, why);
            }
        }
        self.terminate_if_done();
    }
}

/// The field of the params that `Mcp-Name` mirrors.
fn mirrored_name(method: &str, params: &Object) -> Option<String> {
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    params.optional(field).ok().flatten()
}

/// A value as a header may carry it: plain if it is visible ASCII without blanks at its ends, else in the Base64 form with its markers,
/// which a plain value that looks like that form is put into as well (2026-07-28, value encoding).
fn encode_value(value: &str) -> String {
    let plain = value.bytes().all(|b| (0x20..0x7f).contains(&b)) && value.trim() == value;
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if plain && !looks_encoded { value.to_string() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_string() }
}

const fn success(status: u16) -> bool {
    status >= 200 && status < 300
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: HDR-C-006, HDR-C-035, HDR-C-036, B-215, B-216
    #[test]
    fn header_values_follow_the_published_vectors() {
        for (value, encoded) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
        ] {
            assert_eq!(encode_value(value), encoded);
        }
    }
}
