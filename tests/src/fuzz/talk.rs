//! The messages of a peer, so that a fuzzer gets past the handshake: texts of messages with a gap
//! or two, and the HTTP framing.

use super::script::Script;
use crate::sim::app::SECRET;
use mcp_proto::limits::FrameLimits;
use mcp_proto::rpc::{Id, RawJson};

/// Results of a server for any request. The first that fits its method is [`right`].
const RESULTS: [&str; 14] = [
    "{}",
    "null",
    r#"{"resultType":"complete","content":[{"type":"text","text":"x"}]}"#,
    r#"{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"c"}"#,
    r#"{"resultType":"input_required","requestState":"s"}"#,
    r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}"#,
    r#"{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}}}"#,
    r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#,
    r#"{"resultType":"complete","supportedVersions":["2025-11-25","1999-01-01"],"capabilities":{}}"#,
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}"#,
    r#"{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
    r#"{"resultType":"later"}"#,
    r#"{"resultType":"input_required","requestState":"s","inputRequests":{"p":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a.example/"}}}}"#,
    r#"{"resultType":"input_required","requestState":"s","inputRequests":{"m":{"method":"sampling/createMessage","params":{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"u","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","toolUseId":"u","content":[]}]}],"maxTokens":1,"tools":[]}}}}"#,
];

/// Errors of a server.
const ERRORS: [&str; 8] = [
    r#"{"code":-32601,"message":"no such method"}"#,
    r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"x"}}"#,
    r#"{"code":-32022,"message":"no","data":{"supported":["2025-03-26"]}}"#,
    r#"{"code":-32602,"message":"m","data":null}"#,
    r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":["roots"]}}"#,
    r#"{"code":1,"message":""}"#,
    r#"{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"1"},{"mode":"url","message":"m","url":"http://b.example/","elicitationId":"2"}]}}"#,
    r#"{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","message":"m","url":"mailto:a","elicitationId":"1"}]}}"#,
];

/// Params of requests of a server.
const ASKS: [&str; 4] = [
    r#"{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}"#,
    r#"{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"1"}"#,
    r#"{"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"maxTokens":1}"#,
    r#"{"messages":[{"role":"user","content":[{"type":"tool_result","toolUseId":"u","content":[]}]}],"maxTokens":1}"#,
];

/// Methods of either side.
const METHODS: [&str; 21] = [
    "tools/call",
    "tools/list",
    "ping",
    "initialize",
    "server/discover",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/message",
    "notifications/tools/list_changed",
    "elicitation/create",
    "sampling/createMessage",
    "roots/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "logging/setLevel",
    "subscriptions/listen",
    "notifications/resources/updated",
    "notifications/subscriptions/acknowledged",
    "notifications/elicitation/complete",
    "acme/x",
];

/// Members of the params of requests and notifications about what is watched and logged.
const WATCHED: &str =
    r#""uri":"a:1","level":"info","data":1,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}"#;

const META: &str = r#""_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"roots":{}}}"#;

/// Returns the correct result of a server.
fn right(method: &str) -> &'static str {
    match method {
        "server/discover" => RESULTS[7],
        "initialize" => RESULTS[9],
        "tools/list" => RESULTS[3],
        "tools/call" => RESULTS[2],
        _ => RESULTS[0],
    }
}

/// Returns a response to a request with this id.
pub fn answer(script: &mut Script<'_>, id: &Id, method: &str) -> String {
    let id = RawJson::from(id);
    let id = id.as_str();
    let (member, value) = match script.below(8) {
        0..=2 => ("result", right(method).to_owned()),
        3..=4 => ("result", (*script.pick(&RESULTS)).to_owned()),
        5 => ("error", (*script.pick(&ERRORS)).to_owned()),
        6 => ("result", String::from_utf8_lossy(script.chunk()).into_owned()),
        _ => ("error", String::from_utf8_lossy(script.chunk()).into_owned()),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#)
}

/// A notification or request of a server.
pub fn of_server(script: &mut Script<'_>) -> String {
    let id = script.below(8);
    match script.below(6) {
        0 => format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":{}}}}}"#,
            script.byte()
        ),
        1 => {
            let method = script.pick(&METHODS);
            format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":{id},"elicitationId":"{id}",{WATCHED}}}}}"#
            )
        }
        2 => {
            let method = script.pick(&METHODS);
            let params = script.pick(&ASKS);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
        }
        3 => {
            let (one, two) = (script.pick(&RESULTS), script.pick(&RESULTS));
            format!(r#"[{{"jsonrpc":"2.0","id":{id},"result":{one}}},{{"jsonrpc":"2.0","id":"2","result":{two}}},7]"#)
        }
        4 => format!(r#"{{"jsonrpc":"2.0","error":{}}}"#, script.pick(&ERRORS)),
        _ => String::from_utf8_lossy(script.chunk()).into_owned(),
    }
}

/// Values that a client may return.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// The latest sealed state of the server, in base64url.
    pub sealed: String,
    /// Name and arguments of the last call, to which a sealed state is bound.
    pub work: String,
}

/// An id or a progress token: numbers, texts, and texts of about the maximum length of an id.
fn id(script: &mut Script<'_>) -> String {
    let longest = FrameLimits::default().max_id;
    match script.below(8) {
        6 => format!("\"{}\"", "i".repeat(longest - 2 + script.below(4))),
        7 => format!("\"{}\"", "\\u0069".repeat(longest / 2 * script.below(4))),
        n => ["1", "2", "3", "\"1\"", "1.5", "null"][n].to_owned(),
    }
}

/// A state from a client: the latest sealed one, unchanged or damaged, or any text.
fn state(script: &mut Script<'_>, sealed: &str) -> String {
    let at = script.below(sealed.len());
    match script.below(6) {
        0 | 1 => sealed.to_owned(),
        2 => sealed
            .chars()
            .enumerate()
            .map(|(n, c)| {
                if n != at {
                    c
                } else if c == 'A' {
                    'B'
                } else {
                    'A'
                }
            })
            .collect(),
        3 => sealed[..at].to_owned(),
        4 => "QUJD".repeat(usize::from(script.byte()) * 100),
        _ => String::from_utf8_lossy(script.chunk()).into_owned(),
    }
}

/// The name and the arguments of a call, which may be nested deeply.
fn work(script: &mut Script<'_>, said: &mut Said) -> String {
    let (millis, ticks, questions) = (script.below(4) * 500, script.below(3), script.below(4).saturating_sub(1));
    let name = script.pick(&["work", "work", "work", "other1", "none"]);
    let padding = script.byte();
    let depth = [0, 0, 0, 0, 0, 0, 7, 120][script.below(8)];
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    said.work = format!(
        r#""name":"{name}","arguments":{{"tag":1,"millis":{millis},"ticks":{ticks},"questions":{questions},"padding":{padding},"api_key":"{SECRET}","more":[{open}{close}]}}"#
    );
    said.work.clone()
}

/// Returns a message of a client: its method, for the header, and the text.
pub fn of_client(script: &mut Script<'_>, said: &mut Said) -> (&'static str, String) {
    if script.below(8) < 7 {
        return of_client_alone(script, said);
    }
    let elements: Vec<_> = (0..script.below(6)).map(|_| of_client_alone(script, said)).collect();
    let texts: Vec<&str> = elements.iter().map(|(_, text)| text.as_str()).collect();
    (elements.first().map_or("ping", |(method, _)| method), format!("[{}]", texts.join(",")))
}

fn of_client_alone(script: &mut Script<'_>, said: &mut Said) -> (&'static str, String) {
    let id = id(script);
    let method = *script.pick(&METHODS);
    let text = match script.below(8) {
        0 => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{},{META}}}}}"#, work(script, said))
        }
        1 => {
            let answers = r#""inputResponses":{"q0":{"action":"accept","content":{"answer":"x"}}}"#;
            let state = state(script, &said.sealed);
            let work = if script.below(4) == 0 { work(script, said) } else { said.work.clone() };
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{work},{answers},"requestState":"{state}",{META}}}}}"#
            )
        }
        2 => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{},"_meta":{{"progressToken":{id}}}}}}}"#,
            work(script, said)
        ),
        3 => {
            let version = script.pick(&["2025-11-25", "2024-11-05", "2025-03-26", "2099-01-01"]);
            let params = r#""capabilities":{"elicitation":{"form":{},"url":{}},"roots":{}},"clientInfo":{"name":"c","version":"1"}"#;
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{version}",{params}}}}}"#
            )
        }
        4 => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"cursor":"x",{WATCHED},{META}}}}}"#),
        5 => format!(
            r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":{id},"progressToken":{id},"progress":1}}}}"#
        ),
        6 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{"answer":"x"}}}}}}"#),
        _ => return (method, String::from_utf8_lossy(script.chunk()).into_owned()),
    };
    (if text.contains("tools/call") { "tools/call" } else { method }, text)
}

/// The text as an HTTP response, in one of its forms.
pub fn response(script: &mut Script<'_>, text: &str) -> String {
    let text = text.replace(['\r', '\n'], " ");
    let length = text.len();
    match script.below(8) {
        0..=1 => format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{text}"),
        2 => format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 1\ndata: {text}\n\n"),
        3 => {
            let event = format!("data: {text}\n\n");
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{event}\r\n0\r\n\r\n",
                event.len()
            )
        }
        4 => format!("data: {text}\n\n"),
        5 => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned(),
        6 => {
            let status = script.pick(&["404 a", "400 b", "401 c", "503 d", "301 e", "100 f", "204 g"]);
            format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{text}")
        }
        _ => format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{text}"),
    }
}

/// The text as an HTTP request, in one of its forms.
pub fn request(script: &mut Script<'_>, method: &str, text: &str) -> String {
    let verb = script.pick(&["POST", "POST", "POST", "POST", "GET", "DELETE", "PUT"]);
    let host = script.pick(&["localhost", "localhost", "localhost", "evil.example"]);
    let extra = script.pick(&[
        "",
        "",
        "Connection: close\r\n",
        "Expect: 100-continue\r\n",
        "Origin: null\r\n",
        "Mcp-Name: =?base64?d29yaw==?=\r\n",
    ]);
    let length = text.len();
    let fields = format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: work\r\n{extra}"
    );
    let (length, body) = match script.below(8) {
        3 | 7 => ("Transfer-Encoding: chunked".to_owned(), format!("{length:x}\r\n{text}\r\n0\r\n\r\n")),
        4 => (format!("Content-Length: {length}, {length}"), text.to_owned()),
        5 => (format!("Content-Length: {length}\r\ncontent-length:{length}"), text.to_owned()),
        6 => (format!("Content-Length: {length}, {}", length + script.below(2)), text.to_owned()),
        _ => (format!("Content-Length: {length}"), text.to_owned()),
    };
    format!("{verb} /mcp HTTP/1.1\r\nHost: {host}\r\n{fields}{length}\r\n\r\n{body}")
}

/// Returns an end of a connection.
pub fn closed(script: &mut Script<'_>) -> mcp_proto::exchange::Closed {
    use mcp_proto::exchange::{Closed, ExitStatus};
    match script.below(9) {
        0 => Closed::Eof,
        1 => Closed::Reset,
        2 => Closed::Refused,
        3 => Closed::Unresolved,
        4 => Closed::Unreachable("no".into()),
        5 => Closed::Exited(ExitStatus::exited(1)),
        6 => Closed::Aborted,
        7 => Closed::Timeout,
        _ => Closed::Broken("x".into()),
    }
}

/// Returns an amount of time.
pub fn time(script: &mut Script<'_>) -> std::time::Duration {
    let millis = [0, 1, 100, 500, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000];
    std::time::Duration::from_millis(*script.pick(&millis))
}
