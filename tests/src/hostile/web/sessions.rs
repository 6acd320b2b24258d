//! Sessions and listeners of the older revisions on servers that violate the rules.

use super::parts::{answered, fails, good, idle, legacy, old_stub, row, sent};
use crate::hostile::client::{Client, Setup};
use crate::hostile::rows::{DRIVERS, becomes, expect, row_on};
use crate::hostile::{Bench, Row};
use crate::stub::{Ask, EVENTS, SESSION, SOON, Step, Stub, endless, good_legacy, say, whole};
use mcp_proto::limits::ClientLimits;
use mcp_proto::{CallError, ClientConfig};
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row("initialized answered by any 2xx with any body", initialized),
    row("initialized never answered", |b| held(b, "notifications/initialized", vec![Step::Hold])),
    row("no answer to the listener", |b| held(b, "GET", vec![Step::Hold])),
    row("a listener whose head stalls", |b| held(b, "GET", vec![say("HTTP/1.1 200 OK\r\nContent-"), Step::Hold])),
    row("listeners refused in every way", refused_listeners),
    row("a redirected listener, with credentials and a session", |b| redirected(b, "GET")),
    row("a redirected call, with credentials and a session", |b| redirected(b, "tools/call bad")),
    row("a redirected DELETE, with credentials and a session", |b| redirected(b, "DELETE")),
    row("a listener that ends again and again", |b| {
        ends_again(b, vec![say(EVENTS), say("retry: 50\n\n"), Step::Close])
    }),
    row("a listener that is reset again and again", |b| {
        ends_again(b, vec![say(EVENTS), say("retry: 50\n\n"), Step::Wait(Duration::from_millis(20)), Step::Reset])
    }),
    row_on("a listener with comments without end", DRIVERS, 64, |b| {
        goes_on(b, vec![say(EVENTS), endless(": hello\n")], |_| ())
    }),
    row_on("a listener with an event over the limit", DRIVERS, 128, |b| {
        goes_on(b, vec![say(EVENTS), say("data: "), endless("x")], |_| ())
    }),
    row("a listener with nonsense without end", |b| goes_on(b, vec![say(EVENTS), endless("data: ?\n\n")], |_| ())),
    row_on("10,000 pings in a listener", DRIVERS, 64, pings),
    row("a listener that vanishes", vanishes),
    row("a session that has ended", session_ended),
    row("sessions that end at once", sessions_end),
    row("session ids that are none", bad_ids),
    row("a DELETE that is never answered", |b| deleted(b, vec![Step::Hold])),
    row("a DELETE that is refused", |b| deleted(b, vec![whole("405 No", "", "")])),
    row("a DELETE answered without end", |b| {
        deleted(b, vec![say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), endless("<p>bye</p>")])
    }),
];

/// All of these count as accepted.
fn initialized(bench: &Bench) -> Result<String, String> {
    const JSON: &str = "Content-Type: application/json\r\n";
    let answers = [
        vec![whole("200 OK", "", "")],
        vec![whole("200 OK", JSON, "null")],
        vec![whole("200 OK", JSON, "{}")],
        vec![whole("201 Created", "Content-Type: text/plain\r\n", "accepted")],
        vec![say("HTTP/1.1 204 No Content\r\n\r\n")],
        vec![say(EVENTS), Step::Close],
    ];
    let count = answers.len();
    for answer in answers {
        let stub = old_stub(move |ask| (ask.what == "notifications/initialized").then(|| answer.clone()))?;
        let mut client = bench.visit(&stub, legacy())?;
        good(&mut client)?;
        let seen = client.leave()?;
        seen.is_silent()?;
    }
    Ok(format!("{count} of them, none remarked on; calls are answered"))
}

/// The number of tries for a step that has to be fast once: a busy machine may delay it, but a wait
/// for a limit always takes the full time.
const TRIES: usize = 8;

/// Repeats a step until it takes less than this. Returns the duration.
fn quick(limit: Duration, mut attempt: impl FnMut() -> Result<Duration, String>) -> Result<Duration, String> {
    let mut took = Duration::ZERO;
    for _ in 0..TRIES {
        took = attempt()?;
        if took < limit {
            return Ok(took);
        }
    }
    Err(format!("it takes {took:?}, and never less than {limit:?}"))
}

fn timed(client: &mut Client) -> Result<Duration, String> {
    let began = Instant::now();
    good(client)?;
    Ok(began.elapsed())
}

/// Calls wait for it, but at most for a second.
fn held(bench: &Bench, what: &'static str, steps: Vec<Step>) -> Result<String, String> {
    let first = quick(Duration::from_millis(1900), || {
        let steps = steps.clone();
        let stub = old_stub(move |ask| (ask.what == what).then(|| steps.clone()))?;
        let mut client = bench.visit(&stub, legacy())?;
        let first = timed(&mut client)?;
        quick(Duration::from_millis(900), || timed(&mut client)).map_err(|why| format!("a later call: {why}"))?;
        let closed = client.close()?;
        expect(closed < SOON, || format!("the close takes {closed:?}"))?;
        Ok(first)
    });
    let first = first.map_err(|why| format!("the first call: {why}"))?;
    Ok(format!("the first call is answered after {:.1} s, later ones at once", first.as_secs_f64()))
}

/// None is reported, and none is repeated.
fn refused_listeners(bench: &Bench) -> Result<String, String> {
    let answers = [
        vec![whole("405 Method Not Allowed", "", "")],
        vec![whole("404 Not Found", "", "")],
        vec![whole(
            "400 Bad Request",
            "Content-Type: application/json\r\n",
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"}}"#,
        )],
        vec![whole("501 Not Implemented", "", "")],
        vec![whole("200 OK", "Content-Type: text/html\r\n", "<p>welcome</p>")],
        vec![whole("200 OK", "Content-Type: application/json\r\n", "{}")],
        vec![whole("200 OK", "", "")],
        vec![say("HTTP/1.1 204 No Content\r\n\r\n")],
        vec![say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), endless("<p>hi</p>")],
    ];
    let count = answers.len();
    for answer in answers {
        quick(Duration::from_millis(900), || {
            let answer = answer.clone();
            let stub = old_stub(move |ask| (ask.what == "GET").then(|| answer.clone()))?;
            let mut client = bench.visit(&stub, legacy())?;
            let took = timed(&mut client)?;
            super::parts::let_go(&stub, &mut client)?;
            let seen = client.leave()?;
            sent(&stub, "GET", 1)?;
            let lost = seen.counts().lost_listeners;
            expect(lost == 0, || "a listener is reported lost that never was".into())?;
            Ok(took)
        })
        .map_err(|why| format!("a call: {why}"))?;
    }
    Ok(format!("{count} of them, one GET each; calls are answered at once"))
}

/// No request arrives at its target.
fn redirected(bench: &Bench, what: &'static str) -> Result<String, String> {
    let other = Stub::start(|_| Vec::new()).map_err(|e| e.to_string())?;
    let field = format!("Location: {}\r\n", other.url());
    let stub = old_stub(move |ask| (ask.what == what).then(|| vec![whole("307 There", field.clone(), "moved")]))?;
    let secret = |config: &mut ClientConfig| config.headers.push("Authorization", "Bearer s3cret");
    let mut client = bench.visit(&stub, Setup { change: secret, ..legacy() })?;
    let mut text = "silent".to_owned();
    if what == "tools/call bad" {
        text = fails(&mut client, "bad", |error| matches!(error, CallError::Http(e) if e.status == 307))?;
    }
    good(&mut client)?;
    client.close()?;
    let asks = stub.asks();
    let after = |ask: &&Ask| ask.what != "initialize";
    let named = asks.iter().filter(after).all(|ask| ask.field("mcp-session-id") == Some(SESSION));
    expect(named, || "the session is not named".into())?;
    let sent = asks.iter().all(|ask| ask.field("authorization") == Some("Bearer s3cret"));
    expect(sent, || "the credentials are not sent where they belong".into())?;
    expect(asks.iter().filter(|ask| ask.what == what).count() == 1, || "it is asked again".into())?;
    expect(other.connections() == 0, || "it is followed".into())?;
    Ok(text.replace(&other.url(), "http://other"))
}

/// It is opened less and less often.
fn ends_again(bench: &Bench, steps: Vec<Step>) -> Result<String, String> {
    let stub = old_stub(move |ask| ask.what.starts_with("GET").then(|| steps.clone()))?;
    let mut client = bench.visit(&stub, legacy())?;
    good(&mut client)?;
    // Calls continue meanwhile.
    let end = Instant::now() + Duration::from_secs(2);
    let late = end + SOON;
    let came_back = || stub.asks().iter().filter(|ask| ask.what.starts_with("GET")).count() >= 2;
    while Instant::now() < end || (!came_back() && Instant::now() < late) {
        good(&mut client)?;
        std::thread::park_timeout(Duration::from_millis(20));
    }
    client.close()?;
    let gets = stub.asks().into_iter().filter(|ask| ask.what.starts_with("GET")).collect::<Vec<_>>();
    for pair in gets.windows(2) {
        let waited = pair[1].at - pair[0].at;
        expect(waited >= Duration::from_millis(50), || format!("a wait of {waited:?}"))?;
    }
    expect((2..=8).contains(&gets.len()), || format!("{} GET in 2 s", gets.len()))?;
    Ok(format!("{} GET in 2 s; calls are answered", gets.len()))
}

/// Calls continue beside it.
fn goes_on(bench: &Bench, listener: Vec<Step>, change: fn(&mut ClientConfig)) -> Result<String, String> {
    let stub = old_stub(move |ask| ask.what.starts_with("GET").then(|| listener.clone()))?;
    let mut client = bench.visit(&stub, Setup { change, ..legacy() })?;
    let end = Instant::now() + Duration::from_millis(500);
    // At least two, for any load of the machine.
    good(&mut client)?;
    good(&mut client)?;
    while Instant::now() < end {
        good(&mut client)?;
    }
    let took = client.close()?;
    expect(took < SOON, || format!("the close takes {took:?}"))?;
    let gets = stub.asks().iter().filter(|ask| ask.what.starts_with("GET")).count();
    expect(gets <= 2, || format!("{gets} GET"))?;
    Ok("calls are answered meanwhile".into())
}

/// Each one gets a response in a POST, or is reported as not answered: the number of unaccepted
/// responses is limited like that of calls.
fn pings(bench: &Bench) -> Result<String, String> {
    let count = bench.scaled(10_000);
    let events: String =
        (0..count).map(|id| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n\n")).collect();
    let stub = old_stub(move |ask| (ask.what == "GET").then(|| vec![say(EVENTS), say(events.clone()), Step::Hold]))?;
    let change = |config: &mut ClientConfig| config.limits.frame.max_connections_per_origin = 16;
    let mut client = bench.visit(&stub, Setup { change, ..legacy() })?;
    let end = Instant::now() + 3 * SOON;
    let (answered, dropped) = loop {
        good(&mut client)?;
        let answered = stub.times("response") as u64;
        let dropped = client.seen.of("dropped-response") + client.seen.counts().lost_diagnostics;
        // Notices of connections count as diagnostics when they are lost.
        if answered + dropped >= count {
            break (answered, dropped);
        }
        expect(Instant::now() < end, || format!("of {count} {answered} are answered and {dropped} told as dropped"))?;
    };
    let least = count.min(ClientLimits::default().max_calls as u64);
    expect(answered >= least, || format!("{answered} of {count} are answered"))?;
    client.close()?;
    // Twice the limit of calls, and the listener: 33. The pings arrive in several reads. If all of
    // one are answered before the next, the pool closes most idle connections and opens others: up
    // to 81 were seen with threads. One for each answer would be a thousand.
    let connections = stub.connections();
    expect(connections <= 200, || format!("{connections} connections"))?;
    expect(answered + dropped <= count + 4 * connections as u64, || format!("{answered} and {dropped} of {count}"))?;
    Ok(format!("{answered} are answered on {connections} connections, {dropped} dropped; calls are answered meanwhile"))
}

/// A listener that vanished silently is opened again.
fn vanishes(bench: &Bench) -> Result<String, String> {
    let stub = old_stub(|ask| match (ask.what.as_str(), ask.count) {
        ("GET", 0) => Some(vec![say(EVENTS), say("id: 7\nretry: 50\ndata:\n\n"), Step::Vanish]),
        ("GET" | "GET resumed", _) => Some(vec![
            say(EVENTS),
            say("id: 8\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"),
            Step::Hold,
        ]),
        _ => None,
    })?;
    let change = |config: &mut ClientConfig| config.listener_idle = Some(Duration::from_millis(200));
    let mut client = bench.visit(&stub, Setup { change, ..legacy() })?;
    let end = Instant::now() + SOON;
    while stub.times("GET resumed") == 0 {
        expect(Instant::now() < end, || "it is not opened again".into())?;
        good(&mut client)?;
    }
    let resumed = stub.asked("GET resumed");
    expect(resumed[0].field("last-event-id") == Some("7"), || format!("{resumed:?}"))?;
    client.close()?;
    Ok("opened again after its last event".into())
}

/// One new session, in which the call is repeated.
fn session_ended(bench: &Bench) -> Result<String, String> {
    let stub = old_stub(|ask| {
        (ask.what == "tools/call bad" && ask.count == 0).then(|| vec![whole("404 Not Found", "", "no such session")])
    })?;
    let mut client = bench.visit(&stub, legacy())?;
    answered(&mut client, "bad")?;
    good(&mut client)?;
    idle(&stub)?;
    client.close()?;
    let times = stub.asked("initialize");
    expect(times.len() == 2, || format!("initialize {} times", times.len()))?;
    expect(times.iter().all(|ask| ask.field("mcp-session-id").is_none()), || "it names a session".into())?;
    Ok("initialize once more; the call is made again, and answered".into())
}

/// The call ends, and others are made in the next session.
fn sessions_end(bench: &Bench) -> Result<String, String> {
    let stub =
        old_stub(|ask| (ask.what == "tools/call bad").then(|| vec![whole("404 Not Found", "", "no such session")]))?;
    let mut client = bench.visit(&stub, Setup { timeout: None, ..legacy() })?;
    let error = fails(&mut client, "bad", |error| matches!(error, CallError::Http(e) if e.status == 404))?;
    sent(&stub, "tools/call bad", 2)?;
    good(&mut client)?;
    idle(&stub)?;
    client.close()?;
    sent(&stub, "initialize", 3)?;
    Ok(format!("the call is made twice; {error}"))
}

/// They are not used, and reported.
fn bad_ids(bench: &Bench) -> Result<String, String> {
    let ids = ["x".repeat(60 << 10), "two words".into(), "\u{e4}".into(), "tab\tbed".into()];
    let count = ids.len();
    for id in ids {
        let field = format!("Content-Type: application/json\r\nMcp-Session-Id: {id}\r\n");
        let stub = old_stub(move |ask| match good_legacy(ask).pop() {
            Some(Step::Whole(status, _, body)) if ask.what == "initialize" => {
                Some(vec![whole(status, field.clone(), body)])
            }
            _ => None,
        })?;
        let mut client = bench.visit(&stub, legacy())?;
        good(&mut client)?;
        let seen = client.leave()?;
        becomes(|| seen.of("bad-session") == 1, || format!("{:?}", seen.counts().diagnostics))?;
        let named = stub.asks().iter().any(|ask| ask.field("mcp-session-id").is_some());
        expect(!named, || "it is named".into())?;
    }
    Ok(format!("{count} of them, a bad-session for each; calls are answered"))
}

/// The close is bounded, and ignores the failure.
fn deleted(bench: &Bench, steps: Vec<Step>) -> Result<String, String> {
    let took = quick(Duration::from_secs(1), || {
        let steps = steps.clone();
        let stub = old_stub(move |ask| (ask.what == "DELETE").then(|| steps.clone()))?;
        let change = |config: &mut ClientConfig| config.limits.client.session_end_time = Duration::from_millis(300);
        let mut client = bench.visit(&stub, Setup { change, ..legacy() })?;
        good(&mut client)?;
        let took = client.close()?;
        let deletes = stub.asked("DELETE");
        expect(deletes.len() == 1, || format!("{} DELETE", deletes.len()))?;
        expect(deletes[0].field("mcp-session-id") == Some(SESSION), || format!("{deletes:?}"))?;
        Ok(took)
    });
    let took = took.map_err(|why| format!("the close: {why}"))?;
    Ok(format!("1 DELETE; closed in {:.1} s", took.as_secs_f64()))
}
