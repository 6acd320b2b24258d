//! Invalid responses to a call: heads, framings and bodies that are endless, meaningless, or
//! against the rules.

use super::parts::{
    bad, broken, changed, closed, connected, ends, good, idle_or_late, impatient, late, let_go, modern, row,
};
use crate::hostile::rows::{DRIVERS, expect, row_on, soon};
use crate::hostile::{Bench, Row};
use crate::stub::{EVENTS, Step, endless, json, say};
use mcp_proto::exchange::Closed;
use mcp_proto::{CallError, tools};
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row("a head without end", |b| raw(b, vec![say(OK), endless("X-More: and more\r\n")], "the head")),
    row("a header without end", |b| raw(b, vec![say(OK), say("X-More: "), endless("more ")], "the head")),
    row("100,000 headers", |b| raw(b, vec![say(OK), Step::Repeat("X: y\r\n", 100_000), say("\r\n")], "the head")),
    row("101 headers", |b| raw(b, vec![say(OK), Step::Repeat("X: y\r\n", 101), say("\r\n")], "too many fields")),
    row("interim responses without end", |b| {
        raw(b, vec![endless("HTTP/1.1 100 Continue\r\n\r\n")], "too many interim responses")
    }),
    row("empty lines without end", |b| raw(b, vec![endless("\r\n")], "the head is too large")),
    row("switches protocols", |b| raw(b, vec![say("HTTP/1.1 101 Up\r\nUpgrade: x\r\n\r\n")], "switched")),
    row("a greeting of another protocol", |b| raw(b, vec![say("220 mail.example ESMTP\r\n"), Step::Hold], "not HTTP")),
    row("an alert of TLS", |b| raw(b, vec![Step::Bytes(b"\x15\x03\x01\x00\x02\x02\x46"), Step::Close], "speaks TLS")),
    row("a status of 1000", |b| raw(b, vec![say("HTTP/1.1 1000 No\r\n\r\n")], "the head is not legal")),
    row("a folded header", |b| raw(b, head("X: y\r\n z\r\nContent-Length: 0\r\n"), "not legal")),
    row("both lengths", |b| {
        raw(b, head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), "both a content-length")
    }),
    row("lengths that differ", |b| {
        raw(b, head("Content-Length: 5\r\nContent-Length: 6\r\n"), "content-lengths differ")
    }),
    row("a length that is no number", |b| raw(b, head("Content-Length: -1\r\n"), "the content-length is not a number")),
    row("an unknown transfer coding", |b| {
        raw(b, head("Transfer-Encoding: gzip, chunked\r\n"), "transfer-encoding is not known")
    }),
    row("an unknown content coding", |b| {
        raw(
            b,
            head("Content-Type: application/json\r\nContent-Encoding: br\r\nContent-Length: 9\r\n"),
            "content-encoding",
        )
    }),
    row("the size of a chunk overflows", |b| raw(b, chunked("FFFFFFFFFFFFFFFFF\r\n"), "the size of a chunk")),
    row("the size of a chunk is no number", |b| raw(b, chunked("0x5\r\n"), "the size of a chunk")),
    row("a chunk longer than its size", |b| raw(b, chunked("2\r\n{}{}\r\n"), "longer than its size")),
    row("extensions of a chunk without end", |b| {
        raw(b, [chunked("2;"), vec![endless("x=y;")]].concat(), "the chunk extensions are too long")
    }),
    row("extensions of chunks of one byte without end", |b| {
        // More than a chunk with content allows to follow.
        let part = concat!(
            "1;",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "\r\n \r\n"
        );
        raw(b, [chunked(""), vec![endless(part)]].concat(), "the chunk extensions are too long")
    }),
    row("a trailer without end", |b| {
        raw(b, [chunked("2\r\n{}\r\n0\r\n"), vec![endless("X: y\r\n")]].concat(), "the trailer is too long")
    }),
    // One body of the maximum size may be held.
    row_on("a chunk without end, JSON", DRIVERS, 64, |b| {
        raw(b, [chunked("FFFFFFFFFFFFFFFF\r\n"), vec![endless("[[[[[[[[")]].concat(), "larger than the limit")
    }),
    row_on("chunks without end, JSON", DRIVERS, 64, |b| {
        raw(
            b,
            [chunked(""), vec![endless("20\r\n[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\r\n")]].concat(),
            "larger than the limit",
        )
    }),
    row("a body that says it is over the limit", |b| {
        raw(b, head("Content-Type: application/json\r\nContent-Length: 16777217\r\n"), "larger than the limit")
    }),
    row_on("a body over the limit, without a length", DRIVERS, 64, |b| {
        raw(b, [head("Content-Type: application/json\r\n"), vec![endless(" ")]].concat(), "larger than the limit")
    }),
    row_on("an event over the limit", DRIVERS, 64, |b| {
        raw(b, vec![say(EVENTS), say("data: "), endless("x")], "an event is larger")
    }),
    row_on("an event of lines without end", DRIVERS, 64, |b| {
        raw(b, vec![say(EVENTS), endless("data: a line of an event that never ends\n")], "an event is larger")
    }),
    row_on("the id of an event without end", DRIVERS, 64, |b| {
        raw(b, vec![say(EVENTS), say("id:"), endless("9")], "an event is larger")
    }),
    row("a field of an event without end", |b| {
        ends(b, vec![say(EVENTS), say("x"), endless("y")], impatient(), idle_or_late)
    }),
    row("a comment without end", |b| ends(b, vec![say(EVENTS), endless(":")], impatient(), idle_or_late)),
    row("a retry without end", |b| ends(b, vec![say(EVENTS), say("retry:"), endless("9")], impatient(), idle_or_late)),
    row("comments without end", |b| ends(b, vec![say(EVENTS), endless(": \n")], impatient(), idle_or_late)),
    row("events without data, without end", |b| ends(b, vec![say(EVENTS), endless("event: x\n\n")], impatient(), late)),
    row("other events without end", |b| {
        ends(b, vec![say(EVENTS), endless("event: x\ndata: y\n\n")], impatient(), late)
    }),
    row("1,000,000 notifications in a stream", notes),
    row("notifications without end after the answer", notes_after),
    row("a stream that stays open after the answer", held_open),
    row("a body cut short", |b| {
        cut(b, [head("Content-Type: application/json\r\nContent-Length: 9\r\n"), vec![say("{"), Step::Close]].concat())
    }),
    row("chunks cut short", |b| cut(b, [chunked("2\r\n{"), vec![Step::Close]].concat())),
    row("a head cut short", |b| cut(b, vec![say("HTTP/1.1 200 OK\r\nCont"), Step::Close])),
    row("a reset in the body", |b| {
        let steps =
            [head("Content-Type: application/json\r\nContent-Length: 9\r\n"), vec![say("{"), Step::Reset]].concat();
        ends(b, steps, modern(), closed(Closed::Reset))
    }),
    row("bytes after the answer", bytes_after),
    row("not JSON", |b| undecodable(b, vec![json("<!DOCTYPE html>")])),
    row("JSON that is cut short", |b| undecodable(b, vec![json(r#"{"jsonrpc":"2.0","id":{id},"#)])),
    row("JSON that is not UTF-8", |b| {
        let fields = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 42\r\n\r\n";
        let body = Step::Bytes(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"x\":\"\xff\xfe\"}}");
        undecodable(b, vec![say(fields), body, Step::Close])
    }),
    row("JSON nested 100,000 deep", |b| {
        let steps =
            [head("Content-Type: application/json\r\nContent-Length: 100000\r\n"), vec![Step::Repeat("[", 100_000)]];
        undecodable(b, steps.concat())
    }),
    row("JSON that is no message", |b| undecodable(b, vec![json(r#"{"result":"ok"}"#)])),
    row("a result and an error", |b| {
        undecodable(b, vec![json(r#"{"jsonrpc":"2.0","id":{id},"result":{},"error":{"code":1,"message":"m"}}"#)])
    }),
    row("an event that is not UTF-8", |b| {
        let event = Step::Bytes(b"data: {\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}\n\n");
        undecodable(b, vec![say(EVENTS), event, Step::Close])
    }),
    row("an event that is not JSON, then the answer", bad_event),
    row("the answer by one byte in 2 ms", |b| {
        answers(b, vec![Step::Drip(SLOW, Duration::from_millis(2)), Step::Close])
    }),
    row("the answer in CR, LF and CR LF, after a mark", |b| {
        let mixed = "\u{feff}: hello\r\nretry: 10\rdata: {\"jsonrpc\":\"2.0\",\"id\":{id},\rdata: \"result\":{\"content\":[]}}\n\r\n";
        answers(b, vec![say(EVENTS), say(mixed), Step::Close])
    }),
];

const OK: &str = "HTTP/1.1 200 OK\r\n";

/// A response for a client with a long timeout.
const SLOW: &str = concat!(
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
    "data: {\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{\"content\":[]}}\n\n"
);

/// A head with these fields.
fn head(fields: &'static str) -> Vec<Step> {
    vec![say(OK), say(fields), say("\r\n")]
}

/// JSON in chunks, up to this point.
fn chunked(chunks: &'static str) -> Vec<Step> {
    vec![say(OK), say("Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"), say(chunks)]
}

/// The framing is invalid, and the call ends so at once.
fn raw(bench: &Bench, steps: Vec<Step>, says: &str) -> Result<String, String> {
    ends(bench, steps, modern(), broken(says))
}

/// The connection ends within the response, and the call ends so at once.
fn cut(bench: &Bench, steps: Vec<Step>) -> Result<String, String> {
    ends(bench, steps, modern(), closed(Closed::Eof))
}

/// The response has valid framing and unreadable content.
fn undecodable(bench: &Bench, steps: Vec<Step>) -> Result<String, String> {
    ends(bench, steps, modern(), |error| matches!(error, CallError::Decode(_)))
}

/// It is still a valid response.
fn answers(bench: &Bench, steps: Vec<Step>) -> Result<String, String> {
    let stub = bad(steps)?;
    let mut client = bench.visit(&stub, modern())?;
    let answer = client.call(tools::call("bad"));
    expect(answer.is_ok(), || format!("the call ends with {answer:?}"))?;
    good(&mut client)?;
    let told: Vec<String> = client.seen.counts().diagnostics.keys().cloned().collect();
    expect(told.is_empty(), || format!("{told:?}"))?;
    client.close()?;
    Ok("understood".into())
}

const NOTE: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"custom/tick\"}\n\n";
const ANSWER: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{\"content\":[]}}\n\n";

/// Every one of them is reported or counted.
fn notes(bench: &Bench) -> Result<String, String> {
    let count = bench.scaled(1_000_000);
    let stub = bad(vec![say(EVENTS), Step::Repeat(NOTE, count), say(ANSWER), Step::Close])?;
    let mut client = bench.visit(&stub, modern())?;
    client.call(tools::call("bad")).map_err(|e| format!("the call ends with {e}"))?;
    good(&mut client)?;
    let (told, lost) = client.leave()?.notes(count)?;
    Ok(format!("{told} told, {lost} counted as lost; calls are answered"))
}

/// Data after a response is read only for a limited time.
fn notes_after(bench: &Bench) -> Result<String, String> {
    let stub = bad(vec![say(EVENTS), say(ANSWER), endless(NOTE)])?;
    let mut client = bench.visit(&stub, modern())?;
    client.call(tools::call("bad")).map_err(|e| format!("the call ends with {e}"))?;
    good(&mut client)?;
    let_go(&stub, &mut client)?;
    let seen = client.leave()?;
    let notes = seen.counts().notes;
    expect(notes <= 64, || format!("{notes} are told"))?;
    Ok("the call is answered; the rest is let go of".into())
}

/// The response is reported at once, and the stream is closed in time.
fn held_open(bench: &Bench) -> Result<String, String> {
    let held = || bad(vec![say(EVENTS), say(ANSWER), Step::Hold]);
    let stub = held()?;
    // The call would end with the stream, if it waited for that.
    let patient = changed(|config| config.limits.client.drain_time = Duration::from_secs(40));
    let mut client = bench.visit(&stub, patient)?;
    let began = Instant::now();
    client.call(tools::call("bad").timeout(Duration::from_secs(80))).map_err(|e| format!("the call ends with {e}"))?;
    expect(began.elapsed() < Duration::from_secs(20), || format!("it takes {:?}", began.elapsed()))?;
    client.close()?;
    let stub = held()?;
    let mut client =
        bench.visit(&stub, changed(|config| config.limits.client.drain_time = Duration::from_millis(200)))?;
    client.call(tools::call("bad")).map_err(|e| format!("the call ends with {e}"))?;
    let_go(&stub, &mut client)?;
    client.close()?;
    Ok("the call is answered at once; the stream is let go of".into())
}

/// They belong to no exchange: the connection is not used again, and the call has its response.
fn bytes_after(bench: &Bench) -> Result<String, String> {
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#;
    let forged = r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"forged"}]}}"#;
    // In one write, so that they arrive before the next request.
    let both = [answer, forged].map(|body| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    });
    let stub = bad(vec![say(both.concat())])?;
    let mut client = bench.visit(&stub, modern())?;
    client.call(tools::call("bad")).map_err(|e| format!("the call ends with {e}"))?;
    good(&mut client)?;
    connected(&stub, 2)?;
    client.close()?;
    Ok("the call is answered; the next one has a connection of its own, and its own answer".into())
}

/// It is skipped, and reported.
fn bad_event(bench: &Bench) -> Result<String, String> {
    let stub = bad(vec![say(EVENTS), say("data: ?\n\n"), say(ANSWER), Step::Close])?;
    let mut client = bench.visit(&stub, modern())?;
    client.call(tools::call("bad")).map_err(|e| format!("the call ends with {e}"))?;
    let seen = client.leave()?;
    soon(|| seen.of("bad-message") == 1);
    let bad = seen.of("bad-message");
    expect(bad == 1, || format!("{bad} bad messages"))?;
    Ok("1 bad-message; the call is answered".into())
}
