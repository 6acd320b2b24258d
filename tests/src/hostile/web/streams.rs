//! Streams of the older revisions that break off, and servers that never resume them: the number of
//! attempts, and the result of the call.

use super::parts::{PATIENCE, answered, fails, good, idle, late, legacy, let_go, old_stub, row, sent, text};
use crate::hostile::client::{Client, Setup};
use crate::hostile::rows::{DRIVERS, expect, row_on, soon};
use crate::hostile::{Bench, Row};
use crate::stub::{Ask, EVENTS, SOON, Step, Stub, endless, good_legacy, say, whole};
use mcp_proto::error::{StreamEnd, WaitReason};
use mcp_proto::exchange::{Closed, Sent};
use mcp_proto::{CallError, tools};
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row("primes, and never sends anything again", |b| gives_up(b, vec![say(EVENTS), Step::Close], 2, StreamEnd::Ended)),
    row("primes, and sends a new id for ever, retry: 50", |b| ids(b, 50, Duration::from_millis(50))),
    row("primes, and sends a new id for ever, retry: 0", |b| ids(b, 0, Duration::from_millis(10))),
    row("replays its first event for ever, retry: 0", |b| brings_nothing(b, "id: 1\n", NEWS)),
    row("sends pings without an id for ever, retry: 0", |b| brings_nothing(b, "", PING)),
    row("sends a new message for ever, retry: 0", news),
    row("a listener that sends a ping and ends, for ever", |b| listens(b, PING)),
    row("a listener that sends a new message and ends, for ever", |b| listens(b, NEWS)),
    row("an event id of 4 KiB", long_id),
    row("retry: 99999999999", |b| far(b, "99999999999", Duration::from_secs(300))),
    row("a retry of 40 digits", |b| far(b, "9999999999999999999999999999999999999999", Duration::from_secs(300))),
    row("a retry that is no number", |b| far(b, "-5", Duration::from_secs(1))),
    row("goes on with a web page without end", |b| {
        let page = vec![say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), endless("<p>no events</p>")];
        gives_up(b, page, 1, StreamEnd::ContentType(Some("text/html".into())))
    }),
    row("goes on with 405", |b| gives_up(b, vec![whole("405 No", "", "")], 1, refused(405))),
    row("goes on with 500", |b| gives_up(b, vec![whole("500 Oh", "", "")], 1, refused(500))),
    row("goes on with a redirect", |b| {
        gives_up(b, vec![whole("307 There", "Location: http://127.0.0.1:9/\r\n", "")], 1, refused(307))
    }),
    row("goes on with 503, for ever", |b| gives_up(b, vec![whole("503 Busy", "", "")], 2, refused(503))),
    row("goes on with an ended connection, for ever", |b| {
        gives_up(b, vec![Step::Close], 2, StreamEnd::Closed(Closed::Eof))
    }),
    row_on("goes on with an event over the limit", DRIVERS, 64, |b| {
        let why = "an event is larger than 16777216 bytes".into();
        gives_up(b, vec![say(EVENTS), say("data: "), endless("x")], 2, StreamEnd::Closed(Closed::Broken(why)))
    }),
    row("goes on after 503 and Retry-After", |b| {
        resumes(b, vec![whole("503 Busy", "Retry-After: 1\r\n", "")], Duration::from_secs(1))
    }),
    row("goes on after an ended connection", |b| resumes(b, vec![Step::Close], Duration::from_millis(50))),
    row("goes on after a reset", |b| resumes(b, vec![Step::Reset], Duration::from_millis(50))),
    row("goes on after a stream without an event", |b| {
        resumes(b, vec![say(EVENTS), Step::Close], Duration::from_millis(50))
    }),
    row("a primed stream that is reset in an event", |b| {
        resumes_from(b, vec![say(EVENTS), say(PRIMED), say("id: 2\ndata: {"), Step::Wait(TICK), Step::Reset])
    }),
    row("a primed stream that is cut in a chunk", |b| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        resumes_from(b, vec![say(head), say("17\r\nid: 1\nretry: 50\ndata:\n\n\r\n9"), Step::Close])
    }),
    row("a stream that ends unprimed", unprimed),
    row("a primed stream, goes on and says nothing", silent),
    row("a call is over while its stream is awaited", forgotten),
];

const TICK: Duration = Duration::from_millis(20);

/// An event with an id at the start of a stream.
const PRIMED: &str = "id: 1\nretry: 50\ndata:\n\n";
const NEWS: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{count}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":"bad"}]}}"#;

fn primed() -> Vec<Step> {
    vec![say(EVENTS), say(PRIMED), Step::Close]
}

/// A server that begins the response to the bad call with an event and continues it like this. It
/// keeps no connection: on a reused one, a request without a response would be repeated at once on
/// another.
fn primes(resumed: impl Fn(&Ask) -> Vec<Step> + Send + Sync + 'static) -> Result<Stub, String> {
    old_stub(move |ask| match ask.what.as_str() {
        "tools/call bad" => Some(primed()),
        "GET resumed" => Some(resumed(ask)),
        _ => Some(good_legacy(ask).into_iter().map(unkept).collect()),
    })
}

fn unkept(step: Step) -> Step {
    match step {
        Step::Whole(status, fields, body) => Step::Whole(status, format!("{fields}Connection: close\r\n").into(), body),
        other => other,
    }
}

/// The waits before each resumption have at least the required length, and each attempt has the
/// cursor.
fn paced(stub: &Stub, least: Duration) -> Result<Vec<Ask>, String> {
    let resumed = stub.asked("GET resumed");
    let begun = stub.asked("tools/call bad");
    let times: Vec<Duration> = begun.iter().chain(&resumed).map(|ask| ask.at).collect();
    for pair in times.windows(2) {
        expect(pair[1] - pair[0] >= least, || format!("a wait of {:?}", pair[1] - pair[0]))?;
    }
    let session = resumed.iter().all(|ask| ask.field("mcp-session-id") == Some(crate::stub::SESSION));
    expect(session, || "the session is not named".into())?;
    Ok(resumed)
}

/// A call without a timeout still ends, after this number of attempts, and the process goes idle.
fn gives_up(bench: &Bench, resumed: Vec<Step>, attempts: usize, end: StreamEnd) -> Result<String, String> {
    let stub = primes(move |_| resumed.clone())?;
    let mut client = bench.visit(&stub, Setup { timeout: None, ..legacy() })?;
    let error = fails(&mut client, "bad", |error| match error {
        CallError::NoResponse { attempts: made, any_message: false, cause, .. } => {
            *made as usize == attempts && *cause == end
        }
        _ => false,
    })?;
    let resumed = paced(&stub, Duration::from_millis(50))?;
    expect(resumed.len() == attempts, || format!("{} attempts", resumed.len()))?;
    let after = resumed.iter().all(|ask| ask.field("last-event-id") == Some("1"));
    expect(after, || "the last event is forgotten".into())?;
    good(&mut client)?;
    idle(&stub)?;
    client.close()?;
    Ok(format!("{attempts} GET; {error}"))
}

/// The end of an attempt with this status.
fn refused(status: u16) -> StreamEnd {
    StreamEnd::Status { status, retry_after: None }
}

/// The observation time for a server whose stream is resumed repeatedly.
const LONG: Duration = Duration::from_secs(30);

/// The attempts become rare: at most 12 in 30 s. With less work than a gibibyte, the first 3 s of
/// it.
fn ids(bench: &Bench, retry: u64, least: Duration) -> Result<String, String> {
    let (watched, most) = if bench.size < 1 << 30 || retry == 0 { (LONG / 10, 9) } else { (LONG, 12) };
    let event = move |id: usize| vec![say(EVENTS), say(format!("id: {id}\nretry: {retry}\ndata:\n\n")), Step::Close];
    let stub = old_stub(move |ask| match ask.what.as_str() {
        "tools/call bad" => Some(event(0)),
        "GET resumed" => Some(event(ask.count + 1)),
        _ => None,
    })?;
    let mut client = bench.visit(&stub, legacy())?;
    let ended = client.call(tools::call("bad").timeout(watched));
    let is_so = ended == Err(CallError::Timeout { after: watched, sent: Sent::Maybe, awaited: WaitReason::Response });
    expect(is_so, || format!("the call ends with {ended:?}"))?;
    let resumed = paced(&stub, least)?;
    let count = resumed.len();
    expect((4..=most).contains(&count), || format!("{count} attempts in {watched:?}"))?;
    for (at, ask) in resumed.iter().enumerate() {
        expect(ask.field("last-event-id") == Some(&at.to_string()), || format!("{ask:?} forgets where it was"))?;
    }
    cancelled(&stub, &mut client)?;
    idle(&stub)?;
    client.close()?;
    Ok(format!("{count} GET in {} s; no response within {} ms", watched.as_secs(), watched.as_millis()))
}

/// A server that begins a call with an event and then sends the same in each round: it gets two
/// more requests.
fn brings_nothing(bench: &Bench, id: &'static str, message: &'static str) -> Result<String, String> {
    let pings = if message == PING { 2 } else { 0 };
    let message = message.replace("{count}", "0");
    let stub = old_stub(move |ask| {
        let first = say(format!("id: 1\nretry: 0\ndata: {}\n\n", NEWS.replace("{count}", "0")));
        match ask.what.as_str() {
            "tools/call bad" => Some(vec![say(EVENTS), first, Step::Close]),
            "GET resumed" => Some(vec![say(EVENTS), say(format!("{id}data: {message}\n\n")), Step::Close]),
            _ => None,
        }
    })?;
    let mut client = bench.visit(&stub, legacy())?;
    let error = fails(&mut client, "bad", |error| {
        matches!(error, CallError::NoResponse { any_message: true, cause: StreamEnd::Ended, .. })
    })?;
    let count = paced(&stub, Duration::from_millis(10))?.len();
    expect(count == 2, || format!("{count} GET"))?;
    let end = Instant::now() + SOON;
    good(&mut client)?;
    while stub.times("response") < pings {
        expect(Instant::now() < end, || "a ping is not answered".into())?;
        good(&mut client)?;
    }
    idle(&stub)?;
    client.close()?;
    Ok(format!("{count} GET; {error}"))
}

/// The observation time for a server with a new message each time.
const NEWS_TIME: Duration = Duration::from_secs(2);

/// A server with a new message in each round gets one request per second.
fn news(bench: &Bench) -> Result<String, String> {
    let round = |count: usize| {
        let event = format!("id: {count}\nretry: 0\ndata: {}\n\n", NEWS.replace("{count}", &count.to_string()));
        Some(vec![say(EVENTS), say(event), Step::Close])
    };
    let stub = old_stub(move |ask| match ask.what.as_str() {
        "tools/call bad" => round(0),
        "GET resumed" => round(ask.count + 1),
        _ => None,
    })?;
    let mut client = bench.visit(&stub, legacy())?;
    let ended = client.call(tools::call("bad").timeout(NEWS_TIME));
    let is_so = ended == Err(CallError::Timeout { after: NEWS_TIME, sent: Sent::Maybe, awaited: WaitReason::Response });
    expect(is_so, || format!("the call ends with {ended:?}"))?;
    // The waits are 10, 10, 20, … 640 ms, and then 1 s.
    let count = paced(&stub, Duration::from_millis(10))?.len();
    expect((4..=8).contains(&count), || format!("{count} GET in {NEWS_TIME:?}"))?;
    cancelled(&stub, &mut client)?;
    idle(&stub)?;
    client.close()?;
    Ok(format!("{count} GET in {} s", NEWS_TIME.as_secs()))
}

/// A listener that ends after a message is opened less and less often.
fn listens(bench: &Bench, message: &'static str) -> Result<String, String> {
    let stub = old_stub(move |ask| {
        let message = message.replace("{count}", &ask.count.to_string());
        let event = say(format!("retry: 0\ndata: {message}\n\n"));
        (ask.what == "GET").then(|| vec![say(EVENTS), event, Step::Close])
    })?;
    let mut client = bench.visit(&stub, legacy())?;
    let began = Instant::now();
    while began.elapsed() < NEWS_TIME {
        good(&mut client)?;
        std::thread::park_timeout(Duration::from_millis(50));
    }
    client.close()?;
    let gets = stub.asked("GET");
    for pair in gets.windows(2) {
        let waited = pair[1].at - pair[0].at;
        expect(waited >= Duration::from_millis(10), || format!("a wait of {waited:?}"))?;
    }
    // As for a call. Without a new message, the wait doubles beyond 1 s.
    expect((4..=9).contains(&gets.len()), || format!("{} GET in {NEWS_TIME:?}", gets.len()))?;
    Ok(format!("{} GET in {} s; calls are answered", gets.len(), NEWS_TIME.as_secs()))
}

/// The id is not sent back, so the stream ends with its exchange.
fn long_id(bench: &Bench) -> Result<String, String> {
    let stub = old_stub(|ask| {
        let event = format!("id: {}\nretry: 0\ndata:\n\n", "x".repeat(4096));
        (ask.what == "tools/call bad").then(|| vec![say(EVENTS), say(event), Step::Close])
    })?;
    let mut client = bench.visit(&stub, legacy())?;
    let error = fails(&mut client, "bad", |error| {
        matches!(error, CallError::NoResponse { attempts: 0, cause: StreamEnd::Ended, .. })
    })?;
    let seen = client.seen.clone();
    soon(|| seen.of("long-event-id") > 0);
    expect(seen.of("long-event-id") == 1, || "there is no diagnostic".into())?;
    expect(stub.times("GET resumed") == 0, || "it goes on".into())?;
    good(&mut client)?;
    idle(&stub)?;
    client.close()?;
    Ok(format!("no GET; {error}"))
}

/// The wait is bounded, and the timeout of the call ends it.
fn far(bench: &Bench, retry: &'static str, wait: Duration) -> Result<String, String> {
    let stub = old_stub(move |ask| {
        let event = || say(format!("id: 1\nretry: {retry}\ndata:\n\n"));
        (ask.what == "tools/call bad").then(|| vec![say(EVENTS), event(), Step::Close])
    })?;
    let mut client = bench.visit(&stub, Setup { timeout: Some(PATIENCE), ..legacy() })?;
    let error = fails(&mut client, "bad", late)?;
    cancelled(&stub, &mut client)?;
    idle(&stub)?;
    let seen = client.seen.clone();
    soon(|| !seen.counts().waits.is_empty());
    client.close()?;
    expect(stub.times("GET resumed") == 0, || "it goes on too early".into())?;
    let waits = seen.counts().waits.clone();
    // It may be a tenth longer, so that many clients do not return at once.
    expect(waits.len() == 1 && (wait..=wait * 11 / 10).contains(&waits[0]), || format!("{waits:?}"))?;
    Ok(format!("a wait of {} s; {error}", wait.as_secs()))
}

/// One attempt fails, the next one follows after this wait and succeeds.
fn resumes(bench: &Bench, first: Vec<Step>, wait: Duration) -> Result<String, String> {
    let stub = primes(move |ask| match ask.count {
        0 => first.clone(),
        _ => answer_of_first(ask),
    })?;
    let mut client = bench.visit(&stub, legacy())?;
    answered(&mut client, "bad")?;
    good(&mut client)?;
    let resumed = paced(&stub, Duration::from_millis(50))?;
    expect(resumed.len() == 2, || format!("{} attempts", resumed.len()))?;
    let waited = resumed[1].at - resumed[0].at;
    expect(waited >= wait, || format!("a wait of {waited:?}"))?;
    idle(&stub)?;
    client.close()?;
    Ok("2 GET; answered".into())
}

/// A stream with this beginning is resumed from its first event.
fn resumes_from(bench: &Bench, begin: Vec<Step>) -> Result<String, String> {
    let stub = old_stub(move |ask| match ask.what.as_str() {
        "tools/call bad" => Some(begin.clone()),
        "GET resumed" => Some(answer_of_first(ask)),
        _ => None,
    })?;
    let mut client = bench.visit(&stub, legacy())?;
    answered(&mut client, "bad")?;
    let resumed = paced(&stub, Duration::from_millis(50))?;
    expect(resumed.len() == 1, || format!("{} attempts", resumed.len()))?;
    expect(resumed[0].field("last-event-id") == Some("1"), || format!("{resumed:?}"))?;
    client.close()?;
    Ok("1 GET; answered".into())
}

/// The response to the first call: `initialize` was request 1.
fn answer_of_first(_: &Ask) -> Vec<Step> {
    vec![say(EVENTS), say(format!("id: 9\ndata: {}\n\n", ANSWER.replace("{id}", "2"))), Step::Close]
}

/// The server receives the cancellation of the call.
fn cancelled(stub: &Stub, client: &mut Client) -> Result<(), String> {
    good(client)?;
    expect(stub.was_asked("notifications/cancelled", 1), || "the server is not told".into())
}

fn unprimed(bench: &Bench) -> Result<String, String> {
    let stub = old_stub(|ask| {
        (ask.what == "tools/call bad").then(|| vec![say(EVENTS), say("retry: 50\ndata:\n\n"), Step::Close])
    })?;
    let mut client = bench.visit(&stub, Setup { timeout: None, ..legacy() })?;
    let error = fails(&mut client, "bad", |error| {
        matches!(error, CallError::NoResponse { attempts: 0, cause: StreamEnd::Ended, .. })
            && error.to_string() == "No valid JSON-RPC response found in SSE stream"
    })?;
    good(&mut client)?;
    idle(&stub)?;
    expect(stub.times("GET resumed") == 0, || "it goes on".into())?;
    client.close()?;
    Ok(format!("no GET; {error}"))
}

/// The timeout of the call ends the stream that serves it.
fn silent(bench: &Bench) -> Result<String, String> {
    let stub = primes(|_| vec![say(EVENTS), Step::Hold])?;
    // Enough time to reconnect after 50 ms on a busy machine.
    let limit = 8 * PATIENCE;
    let mut client = bench.visit(&stub, Setup { timeout: Some(limit), ..legacy() })?;
    let late = |error: &CallError| {
        *error == CallError::Timeout { after: limit, sent: Sent::Maybe, awaited: WaitReason::Response }
    };
    let error = fails(&mut client, "bad", late)?;
    let_go(&stub, &mut client)?;
    cancelled(&stub, &mut client)?;
    idle(&stub)?;
    sent(&stub, "GET resumed", 1)?;
    client.close()?;
    Ok(format!("1 GET; {error}"))
}

/// This also ends the wait for its stream, and the server receives the cancellation.
fn forgotten(bench: &Bench) -> Result<String, String> {
    let stub = old_stub(|ask| {
        let primed = vec![say(EVENTS), say("id: 1\nretry: 400\ndata:\n\n"), Step::Close];
        (ask.what == "tools/call bad").then_some(primed)
    })?;
    let mut client = bench.visit(&stub, Setup { timeout: Some(PATIENCE), ..legacy() })?;
    let Err(error) = client.call(tools::call("bad")) else { return Err("it is answered".into()) };
    expect(late(&error), || format!("{error:?}"))?;
    cancelled(&stub, &mut client)?;
    // Longer than the rest of the wait.
    idle(&stub)?;
    expect(stub.times("GET resumed") == 0, || "it goes on".into())?;
    client.close()?;
    Ok(format!("no GET, 1 notifications/cancelled; {}", text(&error)))
}
