//! Lists that do not end: the client fetches the list of tools when a server does not accept the
//! header fields of a call. And a result that is larger than any client takes.

use super::parts::{broken, ends, fails, good, modern, row, sent, stub};
use crate::hostile::rows::{DRIVERS, expect, row_on, soon};
use crate::hostile::{Bench, Row};
use crate::stub::{Step, json, say, whole};
use mcp_proto::CallError;

pub(super) const ROWS: &[Row] = &[
    row("a list of tools without end", |b| given_up(b, |count| count.to_string(), 1000)),
    row("a list of tools in a circle", |b| given_up(b, |count| (count % 3).to_string(), 4)),
    row_on("a result of 1 GiB", DRIVERS, 64, |b| {
        let start =
            r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"resource","resource":{"uri":"x:","text":""#;
        let fields = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
        let steps = vec![say(fields), say(start), Step::Repeat("x", b.size), say("\"}}]}}"), Step::Close];
        ends(b, steps, modern(), broken("larger than the limit"))
    }),
];

/// The call ends after this number of pages, with the error of the server.
fn given_up(bench: &Bench, cursor: fn(usize) -> String, pages: usize) -> Result<String, String> {
    let stub = stub(move |ask| match ask.what.as_str() {
        "tools/call bad" => {
            let error = r#"{"jsonrpc":"2.0","id":{id},"error":{"code":-32020,"message":"mismatch"}}"#;
            Some(vec![whole("400 Bad Request", "Content-Type: application/json\r\n", error)])
        }
        "tools/list" => {
            let next = cursor(ask.count);
            let page = r#"{"jsonrpc":"2.0","id":{id},"result":{"resultType":"complete","tools":[],"nextCursor":""#;
            Some(vec![json(format!(r#"{page}{next}"}}}}"#))])
        }
        _ => None,
    })?;
    let mut client = bench.visit(&stub, modern())?;
    let error = fails(&mut client, "bad", |e| matches!(e, CallError::Rpc(e) if e.code == -32020))?;
    sent(&stub, "tools/list", pages)?;
    sent(&stub, "tools/call bad", 1)?;
    good(&mut client)?;
    let seen = client.seen.clone();
    soon(|| seen.of("refresh-failed") > 0);
    expect(seen.of("refresh-failed") == 1, || "there is no diagnostic".into())?;
    client.close()?;
    Ok(format!("{pages} pages; {error}"))
}
