//! Bodies that are too long, of another type, or invalid, and too many messages.

use super::ask::{Ask, BATCHES, LEGACY};
use super::link::Answer;
use super::parts::{closes, each, each_ask, gets, keeps, large_row, met, met_with, pours, proper, row, shown};
use super::site::good;
use crate::hostile::rows::expect;
use crate::hostile::{Bench, Row};
use serde_json::{Value, json};
use std::fmt::Write;

pub(super) const ROWS: &[Row] = &[
    row("asks with a body over the limit", declared),
    row("asks with a body over the limit, in chunks", |b| counted(b, &[b' '; 1 << 10])),
    row("asks with a string without end, in chunks", |b| counted(b, &[b'x'; 1 << 10])),
    row("asks with an array without end, in chunks", |b| counted(b, &[b'['; 1 << 10])),
    large_row("asks with a body of just the limit", |b| {
        let ask = Ask::mark();
        let body = [ask.content(), vec![b' '; (4 << 20) - ask.content().len()]].concat();
        met(b, ask.body(body).bytes(), &keeps(&[200]))
    }),
    row("asks with a body of another type", |b| {
        let types = [
            "text/plain",
            "text/plain; charset=utf-8",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonx",
            "application/json-rpc",
            "text/json",
            "application/ld+json",
            "text/plain; application/json",
            "text/plain;a=application/json",
            "text/plain, application/json",
            "application",
            "*/*",
            "",
        ];
        each_ask(b, &types, |kind| Ask::mark().set("Content-Type", kind), &gets(&[415]))
    }),
    row("asks with a body of no type", |b| met(b, Ask::mark().without("Content-Type").bytes(), &gets(&[415]))),
    row("asks with a body of JSON, however that is written", |b| {
        let types = [
            "application/json; charset=utf-8",
            "Application/JSON",
            "application/json;charset=\"UTF-8\"",
            "application/json ;x=y",
            " application/json\t",
        ];
        each_ask(b, &types, |kind| Ask::mark().set("Content-Type", kind), &keeps(&[200]))
    }),
    row("accepts what a server does not give", |b| {
        let types = ["text/html", "application/xml", "image/*"];
        each_ask(b, &types, |kind| Ask::mark().set("Accept", kind), &keeps(&[406, 400]))
    }),
    row("accepts what a server gives, however that is written", |b| {
        let types = [
            "*/*",
            "application/*, text/*",
            "text/event-stream;q=0.5, application/json;q=0.9",
            "APPLICATION/JSON , TEXT/EVENT-STREAM",
            "text/html, */*;q=0.1",
        ];
        each_ask(b, &types, |kind| Ask::mark().set("Accept", kind), &keeps(&[200]))
    }),
    row("asks with a body of two types", |b| {
        met(b, Ask::mark().lines("Content-Type: text/plain\r\n").bytes(), &gets(&[400, 415]))
    }),
    row("asks with a body that is no JSON", |b| {
        let bodies: [&[u8]; 20] = [
            b"",
            b" ",
            b"hello",
            b"{",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"",
            b"{}{}",
            b"{} x",
            b"{\"a\":01}",
            b"{'a':1}",
            b"{\"a\":1,}",
            b"{\"a\":NaN}",
            b"// x\n{}",
            b"{\"a\":\"\n\"}",
            b"{\"a\":\"\\x\"}",
            b"\0",
            b"{}\0",
            b"{\"a\":\"\xff\"}",
            b"{\"a\":\"\xc0\xaf\"}",
            b"{\"a\":\"\xed\xa0\x80\"}",
            b"\xff\xfe{\0}\0",
        ];
        let cases = bodies.map(|body| (String::from_utf8_lossy(body).into_owned(), Ask::mark().body(body).bytes()));
        each(b, |_| {}, cases, &keeps(&[400]).code(-32700))
    }),
    row("asks with a bomb of arrays", |b| bomb(b, "[", "]")),
    row("asks with a bomb of objects", |b| bomb(b, "{\"a\":", "}")),
    row("asks with a bomb in the arguments", |b| {
        let text = Ask::mark().with("x", "BOMB").content();
        let bomb = "[".repeat(100_000) + &"]".repeat(100_000);
        let body = String::from_utf8_lossy(&text).replace("\"BOMB\"", &bomb);
        met(b, Ask::mark().body(body).bytes(), &keeps(&[400]))
    }),
    row("asks with a body that is no message", |b| {
        let bodies = [
            "{}",
            "1",
            "\"x\"",
            "null",
            "true",
            "[]",
            "[[]]",
            "{\"jsonrpc\":\"2.0\"}",
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
            "{\"id\":1,\"method\":\"ping\"}",
            "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":1}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1,\"message\":\"x\"}}",
        ];
        each_ask(b, &bodies, |body| Ask::mark().body(body), &keeps(&[400]).code(-32600))
    }),
    row("asks with params that are none", |b| {
        let params = ["[]", "\"x\"", "1", "null", "{\"_meta\":[]}", "{\"_meta\":null}", "{\"_meta\":{}}"];
        let body =
            |params: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}");
        each_ask(b, &params, |params| Ask::mark().body(body(params)), &keeps(&[400]))
    }),
    row("answers what was not asked", |b| {
        let bodies = [
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
            "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":1,\"message\":\"x\"}}",
        ];
        each_ask(b, &bodies, |body| Ask::mark().body(body), &keeps(&[400]))
    }),
    row("asks with an id of 1 MiB", |b| {
        let long = "x".repeat(1 << 20);
        met(b, Ask::mark().message(|message| message["id"] = long.into()).bytes(), &gets(&[200, 400]))
    }),
    row("asks by a method of 1 MiB", |b| {
        let long = "x".repeat(1 << 20);
        met(b, Ask::mark().message(|message| message["method"] = long.into()).bytes(), &keeps(&[400]).code(-32020))
    }),
    row("asks by a method that there is not", |b| {
        let methods = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "x", "rpc.x", "tools/CALL"];
        each_ask(b, &methods, |method| Ask::modern(method, None), &keeps(&[404]).code(-32601))
    }),
    row("asks with a batch", |b| {
        let one = String::from_utf8_lossy(&Ask::mark().content()).into_owned();
        let bodies = [format!("[{one}]"), format!("[{one},{one}]"), format!("[{one},1]"), format!(" [ {one} ] ")];
        let cases = bodies.map(|body| (body.clone(), Ask::mark().body(body).bytes()));
        each(b, |_| {}, cases, &keeps(&[400]).code(-32600))
    }),
    large_row("asks with a batch of 100,000", |b| {
        met(b, Ask::mark().body(short_batch(100_000)).bytes(), &keeps(&[400]).code(-32600))
    }),
    row("asks with a batch, 2025-03-26", served_batch),
    large_row("asks with a batch of 100,000, 2025-03-26", |b| {
        refused_batch(b, BATCHES, &short_batch(100_000), &keeps(&[400]).code(-32600))
    }),
    row("asks with an empty batch, 2025-03-26", |b| refused_batch(b, BATCHES, "[]", &keeps(&[400]).code(-32600))),
    row("asks with a batch, 2025-06-18", |b| refused_batch(b, "2025-06-18", &batch(2), &keeps(&[400]).code(-32600))),
    row("asks with a batch, 2025-11-25", |b| refused_batch(b, LEGACY, &batch(2), &keeps(&[400]).code(-32600))),
    large_row("asks with a batch of 100,000, 2025-11-25", |b| {
        refused_batch(b, LEGACY, &short_batch(100_000), &keeps(&[400]).code(-32600))
    }),
    row("asks to initialize in a batch", |b| {
        let first = String::from_utf8_lossy(&Ask::initialize(BATCHES).content()).into_owned();
        let bodies = [format!("[{first}]"), format!("[{first},{first}]")];
        let cases = bodies.map(|body| (body.clone(), Ask::initialize(BATCHES).body(body).bytes()));
        each(b, |_| {}, cases, &keeps(&[400]).code(-32600))
    }),
    row("says in its head what its body does not say", |b| {
        let other = |name: &str, value: &str| (name.to_string(), Ask::mark().set(name, value).bytes());
        let lacks = |name: &str| (format!("no {name}"), Ask::mark().without(name).bytes());
        let twice = |name: &str, value: &str| {
            (format!("{name} twice"), Ask::mark().lines(format!("{name}: {value}\r\n")).bytes())
        };
        let cases = [
            other("Mcp-Method", "tools/list"),
            other("Mcp-Method", "TOOLS/CALL"),
            other("Mcp-Name", "echo"),
            other("Mcp-Name", "Mark"),
            other("Mcp-Name", "=?base64?ZWNobw==?="),
            other("Mcp-Name", "=?base64?!!!?="),
            other("Mcp-Name", ""),
            other("MCP-Protocol-Version", "2025-11-25"),
            lacks("Mcp-Method"),
            lacks("Mcp-Name"),
            lacks("MCP-Protocol-Version"),
            twice("Mcp-Method", "tools/list"),
            twice("Mcp-Name", "echo"),
            twice("MCP-Protocol-Version", "2025-11-25"),
        ];
        each(b, |_| {}, cases, &keeps(&[400]).code(-32020))
    }),
];

/// A body with an excessive length is refused before any of it arrives.
fn declared(bench: &Bench) -> Result<String, String> {
    let head = |length: u64| Ask::mark().unframed().set("Content-Length", &length.to_string()).head();
    met_with(bench, |_| {}, head((4 << 20) + 1), &closes(&[413]))?;
    met_with(bench, |config| config.limits.frame.max_request_body = 4 << 10, head((4 << 10) + 1), &closes(&[413]))
}

/// A body without a length is refused as soon as it is too long.
fn counted(bench: &Bench, part: &[u8]) -> Result<String, String> {
    let chunk = [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
    pours(bench, |_| {}, &Ask::mark().chunks("1\r\n \r\n").bytes(), &chunk, &[413, 400])
}

fn bomb(bench: &Bench, open: &str, close: &str) -> Result<String, String> {
    let cases = [129, 1000, 100_000].map(|depth| {
        let whole = open.repeat(depth) + "1" + &close.repeat(depth);
        [(format!("{depth} deep"), whole), (format!("{depth} deep, cut"), open.repeat(depth))]
    });
    let cases = cases.into_iter().flatten().map(|(name, body)| (name, Ask::mark().body(body).bytes()));
    each(bench, |_| {}, cases, &keeps(&[400]))
}

/// This number of calls, with ids from 1.
fn batch(count: usize) -> String {
    let call = |id| {
        let params = json!({"name": "echo", "arguments": {"text": "x"}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let calls: Vec<String> = (1..=count).map(call).collect();
    format!("[{}]", calls.join(","))
}

/// This number of requests, as short as possible: the body is within its limit.
fn short_batch(count: usize) -> String {
    // Written in place: a string for each call would take more memory than the server does.
    let mut batch = String::from("[");
    for id in 0..count {
        let comma = if id == 0 { "" } else { "," };
        let _ = write!(batch, "{comma}{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}}", id % 10_000);
    }
    batch.push(']');
    batch
}

/// Every element is answered like a single message, including invalid ones.
fn served_batch(bench: &Bench) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let session = site.session(BATCHES)?;
    let ask = Ask::legacy(BATCHES, Some(&session), &Value::Null);
    let answer = site.asked(&ask.clone().body(batch(50)))?;
    let answers = answers(&answer)?;
    for id in 1..=50 {
        let times = answers.iter().filter(|answer| answer["id"] == id && answer["result"].is_object()).count();
        expect(times == 1, || format!("{id} is answered {times} times"))?;
    }
    let notes = r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","method":"notifications/y"}]"#;
    let told = site.asked(&ask.clone().body(notes))?;
    expect(told.status == 202 && told.body.is_empty(), || format!("notifications are answered with {told}"))?;
    let mixed = site.asked(&ask.body(batch(1).replace('[', "[1,{},")))?;
    proper(&mixed)?;
    site.serves_session(BATCHES, &session)?;
    site.serves()?;
    Ok(format!("200 with 50 answers; notifications 202; with nonsense {}", shown(&mixed)))
}

/// Returns the responses in a response of any form.
pub(super) fn answers(answer: &Answer) -> Result<Vec<Value>, String> {
    let body = String::from_utf8_lossy(&answer.body);
    let events = answer.field("Content-Type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let texts: Vec<&str> =
        if events { body.lines().filter_map(|line| line.strip_prefix("data:")).collect() } else { vec![&body] };
    let mut found = Vec::new();
    for text in texts.into_iter().filter(|text| !text.trim().is_empty()) {
        match serde_json::from_str(text).map_err(|e| format!("{e}: {answer}"))? {
            Value::Array(all) => found.extend(all),
            one => found.push(one),
        }
    }
    Ok(found)
}

/// A session refuses this batch, and continues.
fn refused_batch(bench: &Bench, revision: &str, body: &str, refused: &super::parts::Gets) -> Result<String, String> {
    let site = bench.site(|_| {})?;
    let session = site.session(revision)?;
    let mut link = site.says(&Ask::legacy(revision, Some(&session), &Value::Null).body(body))?;
    let answer = refused.next(&mut link)?;
    good(&mut link)?;
    site.serves_session(revision, &session)?;
    site.serves()?;
    Ok(format!("{}, kept", shown(&answer)))
}
