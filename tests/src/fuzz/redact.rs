//! The redactor on any bytes, and on connections with known secrets.

use super::script::{Script, pieces};
use crate::sim::app::SECRET;
use mcp_proto::exchange::{Headers, Inbound, Outbound, RequestHead};
use mcp_proto::frame::{Conn, Kind};
use mcp_proto::limits::FrameLimits;
use mcp_proto::redact::Redactor;
use std::fmt::Write;

/// The bytes before and after those of the fuzzer, from a server and from a client, and the masked
/// form of the latter.
const AROUND: [(Kind, [&str; 3]); 2] = [
    (
        Kind::HttpClient,
        [
            "HTTP/1.1 204 \r\n\r\n",
            "HTTP/1.1 200 OK\r\nMcp-Session-Id: sk-very-secret\r\nContent-Length: 8\r\n\r\n{\"id\":7}",
            "HTTP/1.1 200 OK\r\nMcp-Session-Id: xxxxxxxxxxxxxx\r\nContent-Length: 8\r\n\r\n{\"id\":7}",
        ],
    ),
    (
        Kind::HttpServer,
        [
            "GET / HTTP/1.1\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nX-Auth-Key: sk-very-secret\r\nContent-Length: 8\r\n\r\n{\"id\":7}",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nX-Auth-Key: xxxxxxxxxxxxxx\r\nContent-Length: 8\r\n\r\n{\"id\":7}",
        ],
    ),
];

/// For any input, the output has the same length, is the same at every cut, and does not change
/// when redacted again. A protocol connection loses its secrets and keeps its ids. After an error
/// of the HTTP codec nothing more is shown, and valid input is masked by the same rules.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    match script.below(8) {
        0 => drop(redacted(script.rest(), 0)),
        1 | 2 => beside_the_codec(&mut script),
        _ => of_the_protocol(&mut script),
    }
}

/// Redacts, and checks the invariants for any bytes.
fn redacted(bytes: &[u8], choice: u64) -> Vec<u8> {
    let whole = Redactor::new().redact(bytes);
    assert_eq!(whole.len(), bytes.len(), "as many bytes");
    let mut redactor = Redactor::new();
    let cut: Vec<u8> = pieces(bytes, choice).iter().flat_map(|piece| redactor.redact(piece)).collect();
    assert!(cut == whole, "cut: {:?} and whole: {:?}", text(&cut), text(&whole));
    let twice = Redactor::new().redact(&whole);
    assert!(twice == whole, "twice: {:?} and once: {:?}", text(&twice), text(&whole));
    whole
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

// ---- any bytes, compared with the codec

fn beside_the_codec(script: &mut Script<'_>) {
    let (kind, [first, next, left]) = *script.pick(&AROUND);
    let message = script.rest();
    let all = redacted(&[first.as_bytes(), message, next.as_bytes()].concat(), message.len() as u64);
    let (_, tail) = all.split_at(first.len() + message.len());
    match accepts(kind, message) {
        Some(true) if has_known_method(message) => assert_eq!(text(tail), left, "behind {:?}", text(message)),
        Some(_) => assert!(!text(tail).contains(SECRET), "behind {:?}", text(message)),
        None => {}
    }
}

/// Whether the codec reads the bytes as one whole message. `None` for an incomplete message or for
/// several ones.
fn accepts(kind: Kind, bytes: &[u8]) -> Option<bool> {
    let mut conn = Conn::new(kind, &FrameLimits::default());
    // As in a redacted recording.
    conn.set_coding(false);
    if kind == Kind::HttpClient {
        let head = RequestHead { method: "GET".into(), target: "/".into(), headers: Headers::new().with("Host", "h") };
        conn.encode(Outbound::Request { head, body: bytes::Bytes::new() });
    }
    conn.bytes(bytes.to_vec().into());
    let (mut begun, mut ended) = (0, 0);
    while let Some(item) = conn.poll_item() {
        match item {
            Inbound::Reject(_) => return Some(false),
            Inbound::Request(_) | Inbound::Response(_) => begun += 1,
            Inbound::End => ended += 1,
            _ => {}
        }
    }
    match conn.broken() {
        // Bytes after a whole response belong to no request. The redactor reads them as the next
        // response.
        Some(_) => (ended == 0).then_some(false),
        None => ((begun, ended) == (1, 1) && conn.at_boundary()).then_some(true),
    }
}

/// The redactor takes a method with lower-case letters as a sign of a lost position.
fn has_known_method(message: &[u8]) -> bool {
    let method = message.trim_ascii_start().split(|byte| *byte == b' ').next().unwrap_or_default();
    method.starts_with(b"HTTP/") || method.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'-')
}

// ---- connections of the protocol

/// The bytes of a connection, and their required masked form.
struct Channel {
    text: String,
    /// Ids and methods, as long as the framing holds.
    kept: Vec<String>,
    is_broken: bool,
}

fn of_the_protocol(script: &mut Script<'_>) {
    let mut channel = Channel { text: String::new(), kept: Vec::new(), is_broken: false };
    let is_http = script.below(4) > 0;
    let is_client = script.below(2) == 0;
    for _ in 0..=script.below(6) {
        let message = channel.messages(script);
        match (is_http, is_client) {
            (false, _) => channel.text += &(message + *script.pick(&["\n", "\r\n"])),
            (true, true) => channel.request(script, &message),
            (true, false) => channel.response(script, &message),
        }
    }
    if channel.is_broken {
        let _ = write!(channel.text, "{SECRET}\n{{\"a\":\"{SECRET}\"}}\r\nDate: {SECRET}");
    }
    let left = text(&redacted(channel.text.as_bytes(), script.byte().into()));
    assert!(!left.contains(SECRET), "{left:?} of {:?}", channel.text);
    for kept in channel.kept {
        assert!(left.contains(&kept), "{kept} is not in {left:?} of {:?}", channel.text);
    }
}

impl Channel {
    /// A message or a batch of some.
    fn messages(&mut self, script: &mut Script<'_>) -> String {
        let count = [1, 1, 1, 2, 7][script.below(5)];
        let messages: Vec<String> = (0..count).map(|_| self.message(script)).collect();
        if count == 1 { messages.concat() } else { format!("[{}]", messages.join(",")) }
    }

    fn message(&mut self, script: &mut Script<'_>) -> String {
        let long = "i".repeat(usize::from(script.byte()) * 20);
        let id = match script.below(4) {
            0 => script.byte().to_string(),
            1 => format!("\"{long}\""),
            2 => format!("\"token={}\"", script.byte()),
            _ => "\"\\u0022\\\\\"".to_owned(),
        };
        let id = format!("\"id\":{id}");
        let token = format!("\"progressToken\":\"t{long}\",\"maxTokens\":{}", script.byte());
        let members: Vec<String> = (0..script.below(4)).map(|_| secret(script)).collect();
        let members = members.concat();
        let text = match script.below(3) {
            0 => format!(r#"{{"jsonrpc":"2.0",{id},"method":"tools/call","params":{{{members}"_meta":{{{token}}}}}}}"#),
            1 => format!(r#"{{"jsonrpc":"2.0",{id},"result":{{{members}"_meta":{{{token}}}}}}}"#),
            _ => format!(r#"{{{members}{id},{token},"jsonrpc":"2.0"}}"#),
        };
        if !self.is_broken {
            self.kept.extend([id, token]);
        }
        text
    }

    /// A request whose body is the message.
    fn request(&mut self, script: &mut Script<'_>, message: &str) {
        let target = script.pick(&["/mcp", "/?token=sk-very-secret", "/x/bearer", "/?a=b&code=sk-very-secret&c"]);
        let _ = write!(self.text, "POST {target} HTTP/1.1\r\nHost: h\r\nMcp-Method: tools/call\r\n");
        self.rest(script, message);
    }

    /// A response whose body is the message, perhaps as an event.
    fn response(&mut self, script: &mut Script<'_>, message: &str) {
        let before = script.pick(&[
            "",
            "",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 204 \r\nContent-Length: 2\r\n\r\n",
            "\r\n",
        ]);
        let status = script.pick(&["200 OK", "404", "500 no token=sk-very-secret"]);
        let _ = write!(self.text, "{before}HTTP/1.1 {status}\r\nDate: Sunday\r\n");
        if script.below(2) == 0 {
            return self.rest(script, message);
        }
        let end = *script.pick(&["\n", "\r", "\r\n"]);
        // A truncated event hides nothing of the next one.
        let cut = script.pick(&["", "data: {\"token\":{\"a\":\"", "data: {\"a\\"]);
        self.text += "Content-Type: text/event-stream\r\n";
        let events = format!("id: 7{end}{cut}{end}{end}: {end}data: {message}{end}{end}");
        self.rest(script, &events);
    }

    /// The fields and the body.
    fn rest(&mut self, script: &mut Script<'_>, body: &str) {
        for _ in 0..script.below(4) {
            self.text += *script.pick(&[
                "Mcp-Session-Id: sk-very-secret\r\n",
                "Ocp-Apim-Subscription-Key:sk-very-secret\r\n",
                "x-auth-key: \t sk-very-secret sk-very-secret\t\r\n",
                "Authorization: Bearer sk-very-secret\r\n",
                "Mcp-Param-A: sk-very-secret\r\n",
                "Content_Length: 7, sk-very-secret\r\n",
                "Cookie: a=sk-very-secret; b\r\n",
                "Accept: text/html;token=sk-very-secret\r\n",
            ]);
        }
        let length = body.len();
        let (fields, is_legal) = match script.below(16) {
            0..=2 => (format!("Content-Length: {length}\r\n"), true),
            3 => (format!("Content-Length: {length}, {length}\r\n"), true),
            4 => (format!("Content-Length:{length}\r\nX: y\r\ncontent-length:\t{length} ,{length}\r\n"), true),
            5 => (format!("Content-Length: 000{length}\r\n"), true),
            6..=8 => return self.chunks(script, body),
            9 => (format!("Content-Length: {length}\r\nContent-Length: 0{length}\r\n"), false),
            10 => (format!("Content-Length: {length}, 2\r\n"), false),
            11 => (format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"), false),
            12 => (format!("Content-Length: {length}\n"), false),
            13 => (format!("Content-Length: {length}\r\n X: y\r\n"), false),
            14 => (format!("Content-Length: {length}\r\nContent-Encoding: gzip\r\n"), false),
            _ => ("Transfer-Encoding: gzip, chunked\r\n".to_owned(), false),
        };
        self.lose_if(!is_legal);
        self.text += &format!("{fields}\r\n{body}");
    }

    fn chunks(&mut self, script: &mut Script<'_>, body: &str) {
        self.text += "Transfer-Encoding: chunked\r\n\r\n";
        // Text that is cut by a chunk need not be kept.
        let is_whole = script.below(2) == 0;
        let size = if is_whole { body.len() } else { 1 + usize::from(script.byte()) };
        if !is_whole && body.len() > size {
            self.kept.clear();
        }
        for chunk in body.as_bytes().chunks(size.max(1)) {
            let extension = script.pick(&["", "", ";a=\"b\\\";\"", ";"]);
            self.text += &format!("{:x}{extension}\r\n{}\r\n", chunk.len(), text(chunk));
        }
        let (end, is_legal) = *script.pick(&[
            ("0\r\n\r\n", true),
            ("00\r\nDate: sk-very-secret\r\nX: y\r\n\r\n", true),
            ("0\n\r\n", false),
            ("g\r\n", false),
            ("0\r\n X: y\r\n\r\n", false),
            ("0;a=\"\r\n\r\n", false),
        ]);
        self.text += end;
        self.lose_if(!is_legal);
    }

    /// The codec refuses the added bytes: from here on nothing is shown.
    fn lose_if(&mut self, is_lost: bool) {
        if is_lost && !self.is_broken {
            // The body after an invalid head is masked as well. Earlier parts of a body are shown.
            self.kept.clear();
            self.is_broken = true;
        }
    }
}

/// A member with a secret value, and a comma.
fn secret(script: &mut Script<'_>) -> String {
    let name = script.pick(&[
        "requestState",
        "token",
        "dbPassword2",
        "mytokenvalue",
        "api_key",
        "client_secret",
        "MY-PASSWD",
        "Mcp-Session-Id",
        "tok\\u0065n",
    ]);
    let state = "QUJD".repeat(usize::from(script.byte()));
    match script.below(5) {
        0 => format!("\"{name}\":\"{SECRET}\","),
        1 => format!("\"{name}\":\"{state}{SECRET}\","),
        2 => format!("\"{name}\" : [\"{SECRET}\", {{\"{SECRET}\":\"\\\"{SECRET}\"}} ],"),
        3 => format!("\"url\":\"https://h/{SECRET}\","),
        _ => format!("\"a\":\"see /?x=y&{}={SECRET}\",", name.replace("\\u0065", "%65")),
    }
}
