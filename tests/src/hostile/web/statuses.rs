//! Well-framed responses with the wrong content: statuses, redirects, types, and responses to
//! notifications.

use super::parts::{answered, changed, ends, fails, good, http, let_go, modern, refused, row, stub, text};
use crate::hostile::rows::{OBEYED, expect, harmless};
use crate::hostile::{Bench, Row};
use crate::stub::{EVENTS, Step, Stub, endless, json, say, whole};
use mcp_proto::error::StreamEnd;
use mcp_proto::exchange::RedirectRefusal;
use mcp_proto::{CallError, ClientConfig, tools};
use std::time::Duration;

pub(super) const ROWS: &[Row] = &[
    row("every status of failure", failures),
    row("401 with a challenge and an authorization server", |b| {
        let fields = "WWW-Authenticate: Bearer realm=\"mcp\"\r\nMcp-Auth-Server: https://auth.example\r\n";
        let says =
            "HTTP 401: who is it? [WWW-Authenticate: Bearer realm=\"mcp\"; Mcp-Auth-Server: https://auth.example]";
        ends(b, vec![whole("401 Unauthorized", fields, "who is it?")], modern(), http(401, says))
    }),
    row("403 with two challenges", |b| {
        let fields = "WWW-Authenticate: Basic\r\nwww-authenticate: Bearer error=\"insufficient_scope\"\r\n";
        let says = "HTTP 403: no [WWW-Authenticate: Basic; WWW-Authenticate: Bearer error=\"insufficient_scope\"]";
        ends(b, vec![whole("403 Forbidden", fields, "no")], modern(), http(403, says))
    }),
    row("500 with a page without end", |b| {
        let steps = vec![say("HTTP/1.1 500 Oh\r\nContent-Type: text/html\r\n\r\n"), endless("<p>oh no</p>")];
        ends(
            b,
            steps,
            modern(),
            |error| matches!(error, CallError::Http(e) if e.status == 500 && e.body_head.len() == 8 << 10),
        )
    }),
    row("500 with a page that stalls", |b| {
        let steps = vec![say("HTTP/1.1 500 Oh\r\nContent-Type: text/html\r\n\r\noh"), Step::Hold];
        ends(b, steps, super::parts::impatient(), super::parts::late)
    }),
    row("503 to one call while another one waits", one_of_two),
    row("400 with a JSON-RPC error for the request", |b| {
        let body = r#"{"jsonrpc":"2.0","id":{id},"error":{"code":-32602,"message":"no such tool"}}"#;
        let is_so = |error: &CallError| {
            matches!(error, CallError::Rpc(e) if e.code == -32602)
                && error.to_string() == "MCP error -32602: no such tool"
        };
        ends(b, vec![whole("400 Bad Request", JSON, body)], modern(), is_so)
    }),
    row("400 with a JSON-RPC error without an id", |b| {
        let body = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no session"}}"#;
        ends(b, vec![whole("400 Bad Request", JSON, body)], modern(), |error| match error {
            CallError::Rpc(e) => e.code == -32600,
            CallError::Http(e) => e.status == 400 && e.error.as_ref().is_some_and(|e| e.code == -32600),
            _ => false,
        })
    }),
    row("200 with a JSON-RPC error", |b| {
        let body = r#"{"jsonrpc":"2.0","id":{id},"error":{"code":-32000,"message":"out of paper"}}"#;
        let is_so = |error: &CallError| {
            matches!(error, CallError::Rpc(_)) && error.to_string() == "MCP error -32000: out of paper"
        };
        ends(b, vec![json(body)], modern(), is_so)
    }),
    row("answers with what a terminal would obey", obeyed),
    row("redirects to another origin, with credentials", |b| redirects(b, true)),
    row("redirects within the origin", |b| redirects(b, false)),
    row("redirects without end, each time further", further),
    row("the answer under another type", other_types),
    row("events under another type", |b| {
        let steps = vec![say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), endless(FORGED)];
        ends(b, steps, modern(), |error| no_type(error, 200, Some("text/html")))
    }),
    row("types with parameters, in any case", good_types),
    row("202 for a request", |b| {
        ends(b, vec![whole("202 Accepted", "", "")], modern(), |error| no_type(error, 202, None))
    }),
    row("204 for a request", |b| {
        ends(b, vec![say("HTTP/1.1 204 No Content\r\n\r\n")], modern(), |error| no_type(error, 204, None))
    }),
    row("an empty 200", |b| ends(b, vec![whole("200 OK", "", "")], modern(), |error| no_type(error, 200, None))),
    row("an empty 200 of JSON", |b| ends(b, vec![json("")], modern(), |error| no_type(error, 200, None))),
    row("an event stream without an event", |b| {
        let is_so = |error: &CallError| {
            unanswered(error, false) && error.to_string() == "No valid JSON-RPC response found in SSE stream"
        };
        ends(b, vec![say(EVENTS), Step::Close], modern(), is_so)
    }),
    row("an event stream without the answer", |b| {
        let note = "data: {\"jsonrpc\":\"2.0\",\"method\":\"custom/tick\"}\n\n";
        let is_so =
            |error: &CallError| unanswered(error, true) && error.to_string() == "No response received for request ID 2";
        ends(b, vec![say(EVENTS), say(note), Step::Close], modern(), is_so)
    }),
    row("the answer to another request", |b| {
        ends(b, vec![json(r#"{"jsonrpc":"2.0","id":99,"result":{"content":[]}}"#)], modern(), |e| unanswered(e, true))
    }),
    row("notifications answered by any 2xx with any body", accepted),
    row("notifications answered by failures", rejected),
];

const JSON: &str = "Content-Type: application/json\r\n";

/// A reader that ignores the content type would take it for the response.
const FORGED: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[]}}\n\n";

/// The call ends with the status and the body, at once, and the client continues.
fn failures(bench: &Bench) -> Result<String, String> {
    const STATUSES: [&str; 16] = [
        "304 Not Modified",
        "400 Bad Request",
        "402 Payment Required",
        "403 Forbidden",
        "404 Not Found",
        "405 Not Allowed",
        "406 Not Acceptable",
        "408 Request Timeout",
        "410 Gone",
        "415 Unsupported",
        "429 Too Many Requests",
        "500 Oh",
        "501 Not Implemented",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
    ];
    let stub = stub(|ask| {
        let is_bad = ask.what == "tools/call bad";
        is_bad.then(|| vec![whole(STATUSES[ask.count], "Content-Type: text/plain\r\n", "why it is so")])
    })?;
    let mut client = bench.visit(&stub, modern())?;
    for status in &STATUSES[1..] {
        // The first is one without a body.
        let number = status[..3].parse().map_err(|_| "no number")?;
        if stub.times("tools/call bad") == 0 {
            fails(&mut client, "bad", |error| matches!(error, CallError::Http(e) if e.status == 304))?;
        }
        fails(&mut client, "bad", http(number, &format!("HTTP {number}: why it is so")))?;
        good(&mut client)?;
    }
    let asked = stub.times("tools/call bad");
    expect(asked == STATUSES.len(), || format!("asked {asked} times"))?;
    client.close()?;
    Ok("each call ends with the status and the text; calls go on".into())
}

/// An error shows no control characters of a response.
fn obeyed(bench: &Bench) -> Result<String, String> {
    let lines = format!("{OBEYED}\r\nall is well");
    let message = serde_json::Value::from(lines.as_str());
    let error = format!(r#"{{"jsonrpc":"2.0","id":{{id}},"error":{{"code":-32000,"message":{message}}}}}"#);
    let plain = "Content-Type: text/plain\r\n";
    let answers = [
        vec![json(error)],
        vec![whole(
            "401 Unauthorized",
            format!("{plain}WWW-Authenticate: Bearer realm=\"\u{9b}31m\"\r\n"),
            lines.clone(),
        )],
        vec![whole("401 Unauthorized", "WWW-Authenticate: Bearer realm=\"\u{1b}]0;owned\u{7}\"\r\n", "")],
        vec![whole("500 Oh", plain, lines.clone())],
        vec![whole("302 Found", "Location: /\u{9b}31m\r\n", lines.clone())],
        vec![whole("200 OK", "Content-Type: text/\u{9b}31m\r\n", lines.clone())],
        vec![whole("\u{1b}]0", "", "")],
        vec![json(lines)],
    ];
    let count = answers.len();
    let everywhere = answers[1].clone();
    let stub = stub(move |ask| (ask.what == "tools/call bad").then(|| answers[ask.count].clone()))?;
    let mut client = bench.visit(&stub, modern())?;
    let mut shown = Vec::new();
    for _ in 0..count {
        let error = fails(&mut client, "bad", |_| true)?;
        harmless(&error)?;
        shown.push(error);
        good(&mut client)?;
    }
    client.close()?;
    for (at, says) in
        [(0, r"\u{1b}]0;owned"), (0, r"\u{9b}31m"), (1, r"\u{9b}31m"), (3, r"\u{1b}]0;owned"), (3, r"\r\n")]
    {
        expect(shown[at].contains(says), || format!("{:?} does not show {says}", shown[at]))?;
    }
    let door = Stub::start(move |_| everywhere.clone()).map_err(|e| e.to_string())?;
    let why = refused(bench, &door, modern())?.to_string();
    harmless(&why)?;
    expect(why.contains(r"\u{9b}31m"), || format!("{why:?} does not show the challenge"))?;
    Ok(format!("{count} errors without control characters; {}", shown[0]))
}

/// It ends with 503, and the other one with its response.
fn one_of_two(bench: &Bench) -> Result<String, String> {
    let slow = r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":"slow"}]}}"#;
    let stub = stub(move |ask| match ask.what.as_str() {
        // It has been refused when the other one is answered.
        "tools/call slow" => {
            Some(vec![Step::After("tools/call bad"), Step::Wait(Duration::from_millis(50)), json(slow)])
        }
        "tools/call bad" => Some(vec![whole("503 Service Unavailable", "Connection: close\r\n", "busy"), Step::Close]),
        _ => None,
    })?;
    let mut client = bench.visit(&stub, modern())?;
    let [slow, bad] = client.call_both([tools::call("slow"), tools::call("bad")]);
    let is_so = slow.as_ref().is_ok_and(|answer| answer.first_text() == Some("slow"));
    expect(is_so, || format!("the other call ends with {slow:?}"))?;
    let Err(error) = bad else { return Err(format!("{bad:?}")) };
    expect(http(503, "HTTP 503: busy")(&error), || format!("{error:?}"))?;
    good(&mut client)?;
    client.close()?;
    Ok(format!("{}; the other call is answered", text(&error)))
}

/// None is followed to another origin, and none that leads back.
fn redirects(bench: &Bench, away: bool) -> Result<String, String> {
    const STATUSES: [&str; 5] =
        ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"];
    let other = Stub::start(|_| Vec::new()).map_err(|e| e.to_string())?;
    let location = if away { other.url() } else { "/elsewhere".to_owned() };
    let field = format!("Location: {location}\r\n");
    let stub = stub(move |ask| {
        (ask.what == "tools/call bad")
            .then(|| vec![whole(STATUSES[ask.count % STATUSES.len()], field.clone(), "moved")])
    })?;
    let secret = |config: &mut ClientConfig| config.headers.push("Authorization", "Bearer s3cret");
    let mut client = bench.visit(&stub, changed(secret))?;
    let mut last = String::new();
    // Within the origin the client follows the 307, to the 308 that leads back.
    let ends = if away { &[301, 302, 303, 307, 308][..] } else { &[301, 302, 303, 308] };
    for &number in ends {
        let why = match number {
            301..=303 => "this status would change the method",
            _ if away => "it leads to another origin",
            _ => "it leads back to where the request has been",
        };
        let says = format!("HTTP {number}: moved [redirected to {location}, not followed: {why}]");
        last = fails(&mut client, "bad", |error| {
            matches!(error, CallError::Http(e) if e.location.as_ref() == Some(&location)) && http(number, &says)(error)
        })?;
        good(&mut client)?;
    }
    client.close()?;
    let asks = stub.asks();
    let sent = asks.iter().all(|ask| ask.field("authorization") == Some("Bearer s3cret"));
    expect(sent, || "the credentials are not sent where they belong".into())?;
    // Five redirects, the good calls between them, and the probe.
    expect(asks.len() == 6 + ends.len(), || format!("{} requests", asks.len()))?;
    expect(other.connections() == 0, || "it is followed".into())?;
    Ok(last.replace(&location, if away { "http://other" } else { &location }))
}

/// The client follows five redirects of each call, and remembers nothing of them.
fn further(bench: &Bench) -> Result<String, String> {
    const CALLS: usize = 50;
    let stub = stub(|ask| {
        (ask.what == "tools/call bad").then(|| {
            let field = format!("Location: /{}/{}\r\n", ask.count, "x".repeat(7 << 10));
            vec![whole("307 Temporary Redirect", field, "moved")]
        })
    })?;
    let mut client = bench.visit(&stub, modern())?;
    for _ in 0..CALLS {
        fails(
            &mut client,
            "bad",
            |error| matches!(error, CallError::Http(e) if e.redirect == Some(RedirectRefusal::TooMany)),
        )?;
    }
    good(&mut client)?;
    client.close()?;
    // Each call is sent six times. The others are the good one and the probe.
    expect(stub.asks().len() == 6 * CALLS + 2, || format!("{} requests", stub.asks().len()))?;
    Ok(format!("{CALLS} calls, 5 redirects each"))
}

/// Its content is never read.
fn other_types(bench: &Bench) -> Result<String, String> {
    const TYPES: [&str; 6] = [
        "text/html",
        "text/plain; charset=utf-8",
        "application/jsonx",
        "text/event-streams",
        "application/json-seq",
        "",
    ];
    let body = r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[]}}"#;
    let stub = stub(move |ask| {
        let field = match TYPES[ask.count % TYPES.len()] {
            "" => String::new(),
            kind => format!("Content-Type: {kind}\r\n"),
        };
        (ask.what == "tools/call bad").then(|| vec![whole("200 OK", field, body)])
    })?;
    let mut client = bench.visit(&stub, modern())?;
    let mut last = String::new();
    for kind in TYPES {
        last = fails(&mut client, "bad", |error| no_type(error, 200, Some(kind).filter(|kind| !kind.is_empty())))?;
        good(&mut client)?;
    }
    client.close()?;
    Ok(last)
}

fn good_types(bench: &Bench) -> Result<String, String> {
    let answer = r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":"bad"}]}}"#;
    let stub = stub(move |ask| match (ask.what.as_str(), ask.count) {
        ("tools/call bad", 0) => {
            Some(vec![whole("200 OK", "content-type: Application/JSON ; charset=UTF-8\r\n", answer)])
        }
        ("tools/call bad", _) => Some(vec![
            say("HTTP/1.1 203 Fine\r\nCONTENT-TYPE: TEXT/Event-Stream;charset=utf-8\r\n\r\n"),
            say(format!("data: {answer}\n\n")),
            Step::Close,
        ]),
        _ => None,
    })?;
    let mut client = bench.visit(&stub, modern())?;
    answered(&mut client, "bad")?;
    answered(&mut client, "bad")?;
    client.close()?;
    Ok("understood".into())
}

/// All of these count as accepted, and none is read.
fn accepted(bench: &Bench) -> Result<String, String> {
    let answers = [
        vec![whole("202 Accepted", "", "")],
        vec![whole("200 OK", "", "")],
        vec![whole("200 OK", JSON, "null")],
        vec![whole("200 OK", JSON, "<p>not even JSON</p>")],
        vec![whole("200 OK", JSON, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)],
        vec![whole("200 OK", "Content-Type: text/html\r\n", "<p>ok</p>")],
        vec![whole("202 Accepted", "Content-Type: text/plain\r\n", "accepted")],
        vec![say("HTTP/1.1 204 No Content\r\n\r\n")],
        vec![whole("299 Fine", "", "fine")],
        vec![say(EVENTS), Step::Close],
        vec![say(EVENTS), say(": here to stay\n\n"), Step::Hold],
        vec![say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), endless("<p>ok</p>")],
    ];
    let count = answers.len();
    let stub = stub(move |ask| (ask.what == "custom/told").then(|| answers[ask.count].clone()))?;
    let mut client =
        bench.visit(&stub, changed(|config| config.limits.client.drain_time = Duration::from_millis(200)))?;
    for told in 1..=count {
        client.notify("custom/told").map_err(|e| e.to_string())?;
        // The loop runs only during a call.
        good(&mut client)?;
        expect(stub.was_asked("custom/told", told), || "it is not sent".into())?;
    }
    let_go(&stub, &mut client)?;
    let seen = client.leave()?;
    seen.is_silent()?;
    Ok(format!("{count} of them, none remarked on; calls go on"))
}

/// Each is one diagnostic.
fn rejected(bench: &Bench) -> Result<String, String> {
    let answers = [
        vec![whole("400 Bad Request", "", "")],
        vec![whole("404 Not Found", JSON, r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}"#)],
        vec![whole("500 Oh", "Content-Type: text/html\r\n", "<p>oh</p>")],
        vec![whole("302 Found", "Location: /\r\n", "")],
        vec![Step::Close],
    ];
    let count = answers.len();
    let stub = stub(move |ask| (ask.what == "custom/told").then(|| answers[ask.count].clone()))?;
    let mut client = bench.visit(&stub, modern())?;
    for told in 1..=count {
        client.notify("custom/told").map_err(|e| e.to_string())?;
        good(&mut client)?;
        expect(stub.was_asked("custom/told", told), || "it is not sent".into())?;
    }
    let seen = client.seen.clone();
    let end = std::time::Instant::now() + crate::stub::SOON;
    while seen.of("dropped-notification") < count as u64 && std::time::Instant::now() < end {
        good(&mut client)?;
    }
    client.close()?;
    let dropped = seen.of("dropped-notification");
    expect(dropped == count as u64, || format!("{dropped} of {count} are told"))?;
    Ok("a dropped-notification for each; calls go on".into())
}

fn no_type(error: &CallError, of: u16, kind: Option<&str>) -> bool {
    matches!(error, CallError::ContentType { status, content_type } if *status == of && content_type.as_deref() == kind)
}

fn unanswered(error: &CallError, any: bool) -> bool {
    matches!(error, CallError::NoResponse { attempts: 0, any_message, cause: StreamEnd::Ended, .. } if *any_message == any)
}
