//! The outputs of an engine after one input, as lines of text without names of the crates and
//! without messages for people.

use mcp_proto::client::{self, StreamOf, Termination};
use mcp_proto::exchange::{Action, Body, Closed, Endpoint, Headers, Outbound, Shutdown, Start};
use mcp_proto::input::Change;
use mcp_proto::{CallError, server};
use std::collections::BTreeMap;

/// The outputs of an engine after one input. The bytes of each connection are joined, and the order
/// between connections and events does not count.
#[derive(Debug, Default)]
pub struct Said {
    connections: BTreeMap<u64, Vec<Piece>>,
    events: Vec<String>,
}

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    Other(String),
}

impl Said {
    /// Returns the outputs of a client at seam A.
    pub fn client(&mut self, action: &Action<client::Event>) {
        if let Action::Event(event) = action {
            self.events.extend(of_client(event));
        }
        self.action(action);
    }

    /// Returns the outputs of a server at seam A.
    pub fn server(&mut self, action: &Action<server::Event>) {
        if let Action::Event(event) = action {
            self.event_of_server(event);
        }
        self.action(action);
    }

    /// An event of a server.
    pub fn event_of_server(&mut self, event: &server::Event) {
        self.events.extend(of_server(event));
    }

    /// An event of a client.
    pub fn event_of_client(&mut self, event: &client::Event) {
        self.events.extend(of_client(event));
    }

    fn action<E>(&mut self, action: &Action<E>) {
        match action {
            Action::Open(connection, endpoint) => self.other(connection.0, format!("open {}", of_endpoint(endpoint))),
            Action::Write(connection, bytes) => {
                let pieces = self.connections.entry(connection.0).or_default();
                match pieces.last_mut() {
                    Some(Piece::Bytes(joined)) => joined.extend_from_slice(bytes),
                    _ => pieces.push(Piece::Bytes(bytes.to_vec())),
                }
            }
            Action::Secure(connection, name) => self.other(connection.0, format!("secure {name}")),
            Action::Close(connection, how) => self.other(connection.0, of_shutdown(*how).into()),
            Action::Read(..) | Action::Notice(..) | Action::Event(_) => {}
        }
    }

    /// The server got a connection, or refused it.
    pub fn accepted(&mut self, connection: Option<u64>) {
        self.events.push(connection.map_or("refused".into(), |connection| format!("accepted {connection}")));
    }

    /// An engine at seam B begins an exchange.
    pub fn start(&mut self, exchange: u64, start: &Start) {
        let text = match start {
            Start::Duplex(endpoint) => format!("start {}", of_endpoint(endpoint)),
            Start::Http { origin, reach, head, body, repeatable, urgent, raw } => {
                let origin = of_endpoint(&Endpoint::Origin(origin.clone()));
                let head = format!("{} {} {}", head.method, head.target, of_headers(&head.headers));
                format!("start {origin} {head} {} {reach:?} {repeatable} {urgent} {raw}", plain(body))
            }
            Start::WebSocket { origin, head, dialect, .. } => {
                let origin = of_endpoint(&Endpoint::Origin(origin.clone()));
                format!("start websocket {dialect:?} {origin} {} {}", head.target, of_headers(&head.headers))
            }
        };
        self.other(exchange, text);
    }

    /// An engine at seam B sends something.
    pub fn send(&mut self, exchange: u64, outgoing: &Outbound) {
        let text = match outgoing {
            Outbound::Message(message) => format!("message {}", plain(message)),
            Outbound::Request { head, body } => {
                format!("request {} {} {} {}", head.method, head.target, of_headers(&head.headers), plain(body))
            }
            Outbound::Response { head, body } => {
                let body = match body {
                    Body::Full(bytes) => plain(bytes),
                    Body::Stream => "stream".into(),
                    Body::WebSocket(dialect) => format!("websocket {dialect:?}"),
                };
                format!("response {} {} {body}", head.status, of_headers(&head.headers))
            }
            Outbound::Event { event: None, id, retry, data } => format!("event {id:?} {retry:?} {}", plain(data)),
            Outbound::Event { event: Some(event), id, retry, data } => {
                format!("event {event} {id:?} {retry:?} {}", plain(data))
            }
            Outbound::Comment(text) => format!("comment {text:?}"),
            Outbound::Continue => "continue".into(),
            Outbound::End => "end".into(),
        };
        self.other(exchange, text);
    }

    /// An engine at seam B aborts an exchange.
    pub fn abort(&mut self, exchange: u64) {
        self.other(exchange, "abort".into());
    }

    fn other(&mut self, connection: u64, text: String) {
        self.connections.entry(connection).or_default().push(Piece::Other(text));
    }

    /// As lines.
    pub fn into_lines(self) -> impl Iterator<Item = String> {
        let connections = self.connections.into_iter().flat_map(|(connection, pieces)| {
            pieces.into_iter().map(move |piece| match piece {
                Piece::Bytes(bytes) => format!("{connection} {}", plain(&bytes)),
                Piece::Other(text) => format!("{connection} {text}"),
            })
        });
        connections.chain(self.events)
    }
}

fn of_endpoint(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Program(_) => "program".into(),
        Endpoint::Origin(origin) => format!("origin {} {} {}", origin.tls, origin.host, origin.port),
        Endpoint::Unix(path) => format!("unix {path}"),
        Endpoint::Given => "given".into(),
        other => format!("{other:?}"),
    }
}

const fn of_shutdown(how: Shutdown) -> &'static str {
    match how {
        Shutdown::WriteHalf => "half-close",
        Shutdown::Terminate => "terminate",
        Shutdown::Abort => "close",
    }
}

fn of_headers(headers: &Headers) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {value}; ")).collect()
}

/// The number of each kind of event of a client, and its key. Events of connections are not events
/// of the engine.
fn of_client(event: &client::Event) -> Option<String> {
    use client::Event;
    Some(match event {
        Event::Ready(info) => format!("1 {}", info.version.as_str()),
        Event::Progress { call, progress } => format!("3 {} {}", call.0, progress.progress),
        Event::Ended { call, outcome: Ok(result) } => format!("4 {} {}", call.0, result.json.as_str()),
        Event::Ended { call, outcome: Err(error) } => format!("5 {} {}", call.0, of_error(error)),
        Event::NotificationEnded { notification, outcome } => {
            format!("6 {} {}", notification.0, outcome.as_ref().err().map_or(0, of_error))
        }
        Event::InputNeeded { token, call, .. } => format!("7 {} {:?}", token.key().number(), call.map(|call| call.0)),
        Event::Changed(Change::Tools) => "8".into(),
        Event::Changed(change) => format!("20 {change:?}"),
        Event::Watching(watch) => format!("21 {watch:?}"),
        Event::Log { call, message } => format!("22 {:?} {}", call.map(|call| call.0), message.data.as_str()),
        Event::AuthNeeded { token, challenge, targets } => {
            let targets: Vec<u64> = targets.iter().map(|call| call.0).collect();
            format!("9 {} {} {targets:?}", token.key().number(), challenge.status)
        }
        Event::Reconnecting { stream, attempt, wait, last_event, .. } => {
            let stream = match stream {
                StreamOf::Call(call) => call.0.to_string(),
                StreamOf::Own => "own".into(),
                StreamOf::Listener => "listener".into(),
            };
            format!("10 {stream} {attempt} {wait:?} {last_event:?}")
        }
        Event::ListenerLost { again, .. } => format!("11 {again:?}"),
        Event::InputWithdrawn(key) => format!("12 {}", key.number()),
        Event::Notification { method, params } => {
            format!("13 {method} {:?}", params.as_ref().map(|params| params.as_str()))
        }
        Event::Diagnostic(diagnostic) => format!("14 {}", diagnostic.kind.code()),
        Event::Lost { notifications, diagnostics } => format!("15 {notifications} {diagnostics}"),
        Event::PingMissed { waited, in_a_row } => format!("16 {waited:?} {in_a_row}"),
        Event::Task { call, update } => format!("23 {} {}", call.0, update.task.status.as_str()),
        Event::Elicited(id) => format!("20 {id}"),
        Event::Terminated(why) => match why {
            Termination::Requested => "17".into(),
            Termination::Closed(why) => format!("18 {}", of_closed(why)),
            Termination::Negotiation(_) => "19".into(),
        },
        other => panic!("an event without a number: {other:?}"),
    })
}

/// The number of each kind of event of a server, and its key.
fn of_server(event: &server::Event) -> Option<String> {
    use server::Event;
    Some(match event {
        Event::Request(responder, incoming) => format!(
            "1 {} {} {} {} {:?}",
            responder.key().number(),
            incoming.context.version.as_str(),
            incoming.method,
            incoming.params.to_json().as_str(),
            incoming.context.session.map(|session| session.number()),
        ),
        Event::Cancelled(key) => format!("2 {}", key.number()),
        Event::Notification { method, .. } => format!("3 {method}"),
        Event::Admit(token, _) => format!("4 {}", token.key().number()),
        // Newer than the digest.
        Event::AdmitWithdrawn(_) => return None,
        Event::SessionOpened(session) => format!("5 {}", session.number()),
        Event::SessionEnded(session, why) => {
            let why = match why {
                server::SessionEnd::Deleted => 1,
                server::SessionEnd::Idle => 2,
                server::SessionEnd::Revoked => 3,
                other => panic!("an end without a number: {other:?}"),
            };
            format!("6 {} {why}", session.number())
        }
        Event::Kept(kept) => {
            format!("7 {} {} {} {}", kept.session.number(), kept.stream, kept.id, plain(&kept.data))
        }
        Event::Diagnostic(diagnostic) => format!("8 {}", diagnostic.kind.code()),
        Event::Lost { notifications, diagnostics } => format!("9 {notifications} {diagnostics}"),
        Event::Terminated => "10".into(),
        other => panic!("an event without a number: {other:?}"),
    })
}

/// The number of each kind of error.
const fn of_error(error: &CallError) -> u32 {
    match error {
        CallError::Rpc(_) => 1,
        CallError::Timeout { .. } => 2,
        CallError::Cancelled { .. } => 3,
        CallError::Closed { .. } => 4,
        CallError::NoResponse { .. } => 5,
        CallError::Http(_) => 6,
        CallError::ContentType { .. } => 7,
        CallError::SessionEnded => 8,
        CallError::Decode(_) => 9,
        CallError::Negotiation(_) => 10,
        CallError::Input(_) => 11,
        CallError::TooManyRounds(_) => 12,
        CallError::Refused(_) => 13,
        CallError::NotRepeated(_) => 14,
        _ => 15,
    }
}

/// The number of each way to be closed.
const fn of_closed(why: &Closed) -> u32 {
    match why {
        Closed::Eof => 1,
        Closed::Reset => 2,
        Closed::Refused => 3,
        Closed::Unresolved => 4,
        Closed::Unreachable(_) => 5,
        Closed::Exited(_) => 6,
        Closed::Aborted => 7,
        Closed::Timeout => 8,
        Closed::Broken(_) => 9,
        _ => 10,
    }
}

/// Bytes as one line of text, without the messages of JSON-RPC errors, and without every length
/// that they change: `Content-Length` and the sizes of chunks.
pub fn plain(bytes: &[u8]) -> String {
    const ERROR: &[u8] = b"\"error\":{\"code\":";
    const MESSAGE: &[u8] = b",\"message\":\"";
    const LENGTH: &[u8] = b"content-length: ";
    let mut text = String::with_capacity(bytes.len());
    let (mut at, mut line_begins) = (0, true);
    let digits = |from: usize, hex: bool| {
        let is_digit = |byte: &&u8| byte.is_ascii_digit() || (hex && byte.is_ascii_hexdigit());
        bytes[from..].iter().take_while(is_digit).count()
    };
    while at < bytes.len() {
        let rest = &bytes[at..];
        let hex = if line_begins { digits(at, true) } else { 0 };
        if hex > 0 && rest[hex..].starts_with(b"\r\n") {
            text.push('N');
            at += hex;
        } else if rest.len() >= LENGTH.len() && rest[..LENGTH.len()].eq_ignore_ascii_case(LENGTH) {
            text.push_str("content-length: N");
            at += LENGTH.len() + digits(at + LENGTH.len(), false);
        } else if rest.starts_with(ERROR) {
            text.push_str("error ");
            at += ERROR.len();
            while at < bytes.len() && (bytes[at] == b'-' || bytes[at].is_ascii_digit()) {
                text.push(char::from(bytes[at]));
                at += 1;
            }
            if bytes[at..].starts_with(MESSAGE) {
                at += MESSAGE.len();
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
        } else {
            text.extend(bytes[at].escape_ascii().map(char::from));
            at += 1;
        }
        line_begins = at > 0 && bytes.get(at - 1) == Some(&b'\n');
    }
    text
}
