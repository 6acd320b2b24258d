//! Servers of HTTP+SSE (2024-11-05) that name no endpoint, one of somebody else, or too many.

use super::parts::{answered, connected, fails, good, idle, legacy, refused, row, sent, stub};
use crate::hostile::client::Setup;
use crate::hostile::rows::{DRIVERS, expect, row_on};
use crate::hostile::{Bench, Row};
use crate::stub::{EVENTS, SOON, Step, Stub, endless, say, whole};
use mcp_proto::client::{HttpMode, Policy};
use mcp_proto::error::{NegotiationCause, Stage};
use mcp_proto::exchange::Closed;
use mcp_proto::{CallError, ClientConfig};
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row("names an endpoint of another origin, with credentials", elsewhere),
    row("names another origin during a call, with credentials", moves_away),
    row("an endpoint that redirects to another origin, with credentials", redirects),
    row("1,000,000 equal endpoints during a call", |b| storm(b, 1)),
    row("1,000,000 changing endpoints during a call", |b| storm(b, 1000)),
    row("comments without end, and no endpoint", |b| never_named(b, ": hello\n")),
    row("empty lines without end, and no endpoint", |b| never_named(b, "\n")),
    row("other events without end, and no endpoint", |b| never_named(b, "event: hello\ndata: you\n\n")),
    row("notifications without end, and no endpoint", |b| {
        never_named(b, "data: {\"jsonrpc\":\"2.0\",\"method\":\"custom/tick\"}\n\n")
    }),
    row("nonsense without end, and no endpoint", |b| never_named(b, "data: ?\n\n")),
    row("an event stream, and no endpoint", |b| gives_no_endpoint(b, vec![say(EVENTS), Step::Hold])),
    row_on("an endpoint without end", DRIVERS, 64, long_endpoint),
    row("an endpoint and the end, again and again", breaks_off),
];

/// The configuration of a client of HTTP+SSE, with credentials.
fn sse() -> Setup {
    let change = |config: &mut ClientConfig| {
        config.http_mode = HttpMode::Sse;
        config.headers.push("Authorization", "Bearer s3cret");
    };
    Setup { policy: Policy::Auto, change, ..legacy() }
}

/// The same, with little time for the handshake.
fn hasty() -> Setup {
    Setup { handshake: HASTE, timeout: None, ..sse() }
}

const HASTE: Duration = Duration::from_secs(1);

const INITIALIZED: &str = concat!(
    r#"data: {"jsonrpc":"2.0","id":{id},"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"#,
    r#""serverInfo":{"name":"stub","version":"1"}}}"#,
    "\n\n"
);

fn endpoint(reference: &str) -> Step {
    say(format!("event: endpoint\ndata: {reference}\n\n"))
}

/// The response to the first call of this tool.
fn answers(what: &'static str) -> Step {
    let tool = what.split(' ').next_back().unwrap_or_default();
    let start = r#"data: {"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":""#;
    Step::To(what, format!("{start}{tool}\"}}]}}}}\n\n").into())
}

/// A server whose stream goes on like this after the handshake. It accepts every message.
fn serves(rest: Vec<Step>) -> Result<Stub, String> {
    let start = [say(EVENTS), endpoint("/messages"), Step::To("initialize", INITIALIZED.into())];
    opens(start.into_iter().chain(rest).collect())
}

/// A server whose stream is this. It accepts every message.
fn opens(stream: Vec<Step>) -> Result<Stub, String> {
    stub(move |ask| match ask.what.as_str() {
        "open" => None,
        "GET" if ask.count == 0 => Some(stream.clone()),
        "GET" | "GET resumed" => Some(vec![whole("404 Not Found", "", "")]),
        _ => Some(vec![whole("202 Accepted", "", "")]),
    })
}

/// Neither a message nor the credentials arrive there, nor does a connection.
fn untouched(other: &Stub) -> Result<(), String> {
    connected(other, 0).map_err(|why| format!("the other origin has {why}"))
}

fn other_origin() -> Result<Stub, String> {
    Stub::start(|_| vec![whole("202 Accepted", "", "")]).map_err(|e| e.to_string())
}

/// Returns the part of the URL of a stub after the scheme.
fn rest_of_url(stub: &Stub) -> String {
    stub.url().trim_start_matches("http:").to_owned()
}

/// Negotiation fails with the reason, and nothing is posted anywhere.
fn elsewhere(bench: &Bench) -> Result<String, String> {
    let other = other_origin()?;
    let rest = rest_of_url(&other);
    let port = rest.rsplit(':').next().unwrap_or_default().to_owned();
    let references = [
        other.url(),
        rest.clone(),
        format!("http:\\\\127.0.0.1:{port}"),
        format!("\\\\127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
        format!("http://127.0.0.1:80@127.0.0.1:{port}"),
        format!("https://127.0.0.1:{port}"),
        format!("ws://127.0.0.1:{port}"),
        "file:///etc/passwd".into(),
        "http://".into(),
    ];
    let count = references.len();
    for reference in references {
        let stub = opens(vec![say(EVENTS), endpoint(&reference), Step::Hold])?;
        let why = refused(bench, &stub, sse()).map_err(|why| format!("{reference}: {why}"))?;
        let is_so = why.stage == Stage::Endpoint && matches!(why.cause, NegotiationCause::BadEndpoint(_));
        expect(is_so, || format!("{reference}: {why}"))?;
        sent(&stub, "GET", 1)?;
        expect(stub.asks().len() == 1, || format!("{reference}: {} requests", stub.asks().len()))?;
        untouched(&other)?;
    }
    Ok(format!("{count} of them; the handshake fails, and nothing is posted"))
}

/// The call ends with an error, as do later ones, and none is posted to the other origin.
fn moves_away(bench: &Bench) -> Result<String, String> {
    let other = other_origin()?;
    let stub = serves(vec![Step::After("tools/call bad"), endpoint(&other.url()), Step::Hold])?;
    let mut client = bench.visit(&stub, Setup { timeout: None, ..sse() })?;
    let error = fails(&mut client, "bad", |error| !matches!(error, CallError::Timeout { .. }))?;
    let later = fails(&mut client, "good", |error| !matches!(error, CallError::Timeout { .. }))?;
    client.close()?;
    sent(&stub, "tools/call bad", 1)?;
    sent(&stub, "tools/call good", 0)?;
    let known = stub.asks().iter().all(|ask| ask.field("authorization") == Some("Bearer s3cret"));
    expect(known, || "the credentials are not sent where they belong".into())?;
    untouched(&other)?;
    Ok(format!("{error}; then {later}"))
}

/// The redirect is an error, and is not followed.
fn redirects(bench: &Bench) -> Result<String, String> {
    let other = other_origin()?;
    let field = format!("Location: {}\r\n", other.url());
    let stub = stub(move |ask| match ask.what.as_str() {
        "open" => None,
        "GET" => Some(vec![say(EVENTS), endpoint("/messages"), Step::Hold]),
        _ => Some(vec![whole("307 There", field.clone(), "moved")]),
    })?;
    let why = refused(bench, &stub, sse())?;
    let is_so = matches!(&why.cause, NegotiationCause::Http(http) if http.status == 307);
    expect(is_so, || why.to_string())?;
    sent(&stub, "initialize", 1)?;
    untouched(&other)?;
    Ok(why.to_string().replace(&other.url(), "http://other"))
}

/// The response behind them arrives, and none of them causes a request. `different` is
/// the number of different ones.
fn storm(bench: &Bench, different: u64) -> Result<String, String> {
    let times = bench.scaled(1_000_000) / different;
    let events: String = (0..different).map(|at| format!("event: endpoint\ndata: /messages/{at}\n\n")).collect();
    let stub = serves(vec![
        Step::After("tools/call bad"),
        // The process runs this row only.
        Step::Repeat(events.leak(), times),
        answers("tools/call bad"),
        answers("tools/call good"),
        Step::Hold,
    ])?;
    let mut client = bench.visit(&stub, sse())?;
    answered(&mut client, "bad")?;
    good(&mut client)?;
    idle(&stub)?;
    let seen = client.leave()?;
    let asks: Vec<_> = stub.asks().into_iter().map(|ask| ask.what).collect();
    let wanted = ["GET", "initialize", "notifications/initialized", "tools/call bad", "tools/call good"];
    expect(asks == wanted, || format!("{asks:?}"))?;
    let connections = stub.connections();
    expect(connections <= wanted.len(), || format!("{connections} connections"))?;
    seen.is_silent()?;
    Ok(format!("{} of them; the call and later ones are answered, by one request each", times * different))
}

/// The handshake fails at its own limit, however much is said.
fn never_named(bench: &Bench, part: &'static str) -> Result<String, String> {
    gives_no_endpoint(bench, vec![say(EVENTS), endless(part)])
}

fn gives_no_endpoint(bench: &Bench, stream: Vec<Step>) -> Result<String, String> {
    let stub = opens(stream)?;
    let began = Instant::now();
    let why = refused(bench, &stub, hasty())?;
    let took = began.elapsed();
    // Too much that is no event may come first.
    let is_broken = matches!(&why.cause, NegotiationCause::Closed(Closed::Broken(why)) if why.contains("no event"));
    let is_so = why.stage == Stage::Endpoint && (why.cause == NegotiationCause::Timeout(HASTE) || is_broken);
    expect(is_so, || format!("{why:?}"))?;
    expect(took < HASTE + SOON, || format!("it takes {took:?}"))?;
    expect(stub.is_done_within(SOON), || "the stream is not let go of".into())?;
    sent(&stub, "GET", 1)?;
    expect(stub.asks().len() == 1, || format!("{} requests", stub.asks().len()))?;
    Ok(format!("{}: {}, in {:.1} s", why.stage, why.cause, took.as_secs_f64()))
}

/// It is an event over the limit.
fn long_endpoint(bench: &Bench) -> Result<String, String> {
    let stub = opens(vec![say(EVENTS), say("event: endpoint\ndata: /"), endless("x")])?;
    let why = refused(bench, &stub, sse())?;
    let is_so = why.stage == Stage::Endpoint
        && matches!(&why.cause, NegotiationCause::Closed(Closed::Broken(why)) if why.contains("larger than"));
    expect(is_so, || format!("{why:?}"))?;
    sent(&stub, "GET", 1)?;
    Ok(format!("{}", why.cause))
}

/// A stream that names another endpoint each time it is opened begins a new session each time. The
/// client opens it less and less often.
fn breaks_off(bench: &Bench) -> Result<String, String> {
    let stub = stub(|ask| match ask.what.as_str() {
        "open" => None,
        "GET" => Some(vec![say(EVENTS), endpoint(&format!("/messages/{}", ask.count)), Step::Close]),
        _ => Some(vec![whole("202 Accepted", "", "")]),
    })?;
    let began = Instant::now();
    let why = refused(bench, &stub, hasty())?;
    let gets = stub.times("GET");
    expect(gets <= 2, || format!("{gets} GET in {:?}", began.elapsed()))?;
    expect(why.stage == Stage::Initialize || why.stage == Stage::Endpoint, || format!("{why:?}"))?;
    Ok(format!("{gets} GET; {}", why.cause))
}
