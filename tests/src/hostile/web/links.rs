//! Connections that stall, vanish or end at the wrong moment: before, within and after a response.

use super::parts::{answered, bad, closed, connected, ends, fails, good, impatient, late, modern, row, sent, stub};
use crate::hostile::rows::{READERS, expect, row_on, soon};
use crate::hostile::{Bench, Row};
use crate::stub::{Ask, EVENTS, Step, good_modern, say};
use mcp_proto::exchange::Closed;
use mcp_proto::tools;

pub(super) const ROWS: &[Row] = &[
    row("reads the request and says nothing", |b| ends(b, vec![Step::Hold], impatient(), late)),
    row("a head that stalls", |b| ends(b, vec![say("HTTP/1.1 200 OK\r\nContent-"), Step::Hold], impatient(), late)),
    row("a body that never begins", |b| {
        ends(b, vec![say(JSON), say("Content-Length: 9\r\n\r\n"), Step::Hold], impatient(), late)
    }),
    row("a body that stalls", |b| {
        ends(b, vec![say(JSON), say("Content-Length: 9\r\n\r\n{"), Step::Hold], impatient(), late)
    }),
    row("a chunk that stalls", |b| {
        ends(b, vec![say(JSON), say("Transfer-Encoding: chunked\r\n\r\n9\r\n{"), Step::Hold], impatient(), late)
    }),
    row("an event that stalls", |b| ends(b, vec![say(EVENTS), say("data: {"), Step::Hold], impatient(), late)),
    row("an interim response that stalls", |b| {
        ends(b, vec![say("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"), Step::Hold], impatient(), late)
    }),
    row("vanishes with the request", |b| ends(b, vec![Step::Vanish], impatient(), late)),
    row("vanishes while the connection is idle", vanishes_idle),
    row("ends the connection in place of an answer", |b| ends(b, vec![Step::Close], modern(), closed(Closed::Eof))),
    row("resets the connection in place of an answer", |b| ends(b, vec![Step::Reset], modern(), closed(Closed::Reset))),
    row("ends a used connection, a call that may be repeated", |b| repeated(b, Step::Close)),
    row("resets a used connection, a call that may be repeated", |b| repeated(b, Step::Reset)),
    row("ends a used connection after the head, again and again", repeated_once),
    row("ends each connection after its answer, unannounced", |b| ends_each(b, Step::Close)),
    row("resets each connection after its answer", |b| ends_each(b, Step::Reset)),
    row_on("ends an idle connection, then a call", READERS, 32, |b| ends_idle(b, None)),
    row_on("408 on an idle connection, then a call", READERS, 32, |b| {
        ends_idle(b, Some("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
    }),
    row("ends new connections before a request", ends_new),
];

const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

/// The response of a good server, followed by other bytes.
fn then(ask: &Ask, steps: impl IntoIterator<Item = Step>) -> Option<Vec<Step>> {
    Some(good_modern(ask).into_iter().chain(steps).collect())
}

/// The next call cannot know it. The one after it uses another connection.
fn vanishes_idle(bench: &Bench) -> Result<String, String> {
    let stub = stub(|ask| (ask.what == "tools/call last").then(|| then(ask, [Step::Vanish])).flatten())?;
    let mut client = bench.visit(&stub, impatient())?;
    answered(&mut client, "last")?;
    let error = fails(&mut client, "good", late)?;
    answered(&mut client, "other")?;
    connected(&stub, 2)?;
    expect(stub.times("tools/call good") == 0, || "it is not the connection that vanished".into())?;
    client.close()?;
    Ok(format!("{error}; the next call has a connection of its own"))
}

/// It is sent once more, on a new connection.
fn repeated(bench: &Bench, end: Step) -> Result<String, String> {
    let stub = stub(move |ask| (ask.what == "tools/call bad" && ask.count == 0).then(|| vec![end.clone()]))?;
    let mut client = bench.visit(&stub, modern())?;
    let answer = client.call(tools::call("bad").repeatable());
    expect(answer.is_ok(), || format!("the call ends with {answer:?}"))?;
    good(&mut client)?;
    let (asked, connections) = (stub.times("tools/call bad"), stub.connections());
    expect((asked, connections) == (2, 2), || format!("sent {asked} times on {connections} connections"))?;
    client.close()?;
    Ok("sent once more on a new connection, and answered".into())
}

/// A part of a response came, so it is another request, and only for a call that may be repeated.
fn repeated_once(bench: &Bench) -> Result<String, String> {
    let stub = bad(vec![say(JSON), say("Content-Length: 9\r\n\r\n"), Step::Close])?;
    let mut client = bench.visit(&stub, modern())?;
    let ended = client.call(tools::call("bad").repeatable());
    let is_so = ended.as_ref().is_err_and(closed(Closed::Eof));
    expect(is_so, || format!("the call ends with {ended:?}"))?;
    let asked = stub.asked("tools/call bad");
    expect(asked.len() == 2 && asked[0].id != asked[1].id, || format!("{asked:?}"))?;
    fails(&mut client, "bad", closed(Closed::Eof))?;
    let asked = stub.times("tools/call bad");
    expect(asked == 3, || format!("the call that may not be repeated is sent {} times", asked - 2))?;
    good(&mut client)?;
    client.close()?;
    Ok("sent once more under another id if it may be; Transport closed".into())
}

/// Repeatable calls are not affected.
fn ends_each(bench: &Bench, end: Step) -> Result<String, String> {
    const CALLS: usize = 50;
    let stub = stub(move |ask| (ask.what == "tools/call good").then(|| then(ask, [end.clone()])).flatten())?;
    let mut client = bench.visit(&stub, modern())?;
    for _ in 0..CALLS {
        let answer = client.call(tools::call("good").repeatable());
        expect(answer.is_ok(), || format!("the call ends with {answer:?}"))?;
    }
    sent(&stub, "tools/call good", CALLS)?;
    client.close()?;
    Ok(format!("{CALLS} calls are answered, each once"))
}

/// A call that may not be repeated does not use it again.
fn ends_idle(bench: &Bench, says: Option<&'static str>) -> Result<String, String> {
    let stub = stub(move |ask| {
        let end = says.map(say).into_iter().chain([Step::Close]);
        (ask.what == "tools/call last").then(|| then(ask, end)).flatten()
    })?;
    let mut client = bench.visit(&stub, modern())?;
    for round in 1..=10 {
        answered(&mut client, "last")?;
        let seen = client.seen.clone();
        soon(|| seen.counts().closed == round);
        good(&mut client)?;
    }
    // The good ones leave their connections, and the last ones use them.
    connected(&stub, 11)?;
    client.close()?;
    Ok("each call is answered, on another connection".into())
}

/// A call whose connection never worked has not been sent. The pool must not retry it forever.
fn ends_new(bench: &Bench) -> Result<String, String> {
    let stub = stub(|ask| match (ask.what.as_str(), ask.connection) {
        ("open", 1..4) => Some(vec![Step::Close]),
        ("tools/call last", _) => then(ask, [Step::Close]),
        _ => None,
    })?;
    let mut client = bench.visit(&stub, modern())?;
    answered(&mut client, "last")?;
    let mut failures = 0;
    while let Err(error) = client.call(tools::call("good")) {
        failures += 1;
        let is_so = closed(Closed::Eof)(&error) || closed(Closed::Reset)(&error);
        expect(is_so && failures < 5, || format!("call {failures} ends with {error:?}"))?;
    }
    client.close()?;
    Ok("Transport closed, for each; then calls are answered".into())
}
