//! Peers that are not a server: pages, other protocols, silence. Connecting fails, and the
//! application gets the cause.

use super::parts::{LONG, legacy, modern, refused, row};
use crate::hostile::client::Setup;
use crate::hostile::rows::{DRIVERS, expect, row_on};
use crate::hostile::{Bench, Row};
use crate::stub::{EVENTS, Step, Stub, endless, json, say, whole};
use mcp_proto::client::Policy;
use mcp_proto::error::{NegotiationCause, NegotiationError, Stage};
use mcp_proto::exchange::Closed;
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row("a web page for everything", |b| {
        shut(b, vec![whole("200 OK", "Content-Type: text/html\r\n", "<p>welcome</p>")], 2, |why| {
            why.to_string().contains("text/html")
        })
    }),
    row("a web page without end for everything", |b| {
        shut(b, vec![say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"), endless("<p>hi</p>")], 2, |why| {
            why.to_string().contains("text/html")
        })
    }),
    row("401 for everything", |b| {
        let fields = "WWW-Authenticate: Bearer resource_metadata=\"https://a.example/p\"\r\n";
        shut(b, vec![whole("401 Unauthorized", fields, "")], 1, |why| {
            let text = "HTTP 401 [WWW-Authenticate: Bearer resource_metadata=\"https://a.example/p\"]";
            matches!(&why.cause, NegotiationCause::Http(e) if e.status == 401) && why.to_string().ends_with(text)
        })
    }),
    row("404 for everything", |b| status(b, "404 Not Found", 404)),
    row("500 for everything", |b| status(b, "500 Oh", 500)),
    row("an empty object for everything", |b| {
        shut(b, vec![json("{}")], 2, |why| matches!(why.cause, NegotiationCause::Decode(_)))
    }),
    row("an empty 200 for everything", |b| {
        shut(b, vec![whole("200 OK", "", "")], 2, |why| matches!(why.cause, NegotiationCause::Decode(_)))
    }),
    row("a login page elsewhere", login),
    row("a head without end for everything", |b| {
        shut(b, vec![say("HTTP/1.1 200 OK\r\n"), endless("X-More: and more\r\n")], 2, |why| is_broken(why, "the head"))
    }),
    row_on("JSON without end for everything", DRIVERS, 80, |b| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
        shut(b, vec![say(head), endless("[")], 2, |why| is_broken(why, "larger than the limit"))
    }),
    row("comments without end for everything", |b| {
        silent(
            b,
            vec![
                say(EVENTS),
                endless(
                    ": hello
",
                ),
            ],
            |why| why.cause.is_timeout() || is_broken(why, "no event"),
        )
    }),
    row("an answer that is not the gzip it claims to be, to everything", |b| {
        let steps = vec![whole("200 OK", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "zip")];
        shut(b, steps, 2, |why| is_broken(why, "the coded body is not gzip"))
    }),
    row("hears everything and says nothing", |b| silent(b, vec![Step::Hold], |why| why.cause.is_timeout())),
    row("ends every connection", |b| {
        shut(b, vec![Step::Close], 4, |why| why.cause == NegotiationCause::Closed(Closed::Eof))
    }),
    row("speaks first", |b| {
        let stub = Stub::start(|_| vec![say("SSH-2.0-OpenSSH_9.9\r\n"), Step::Hold]).map_err(|e| e.to_string())?;
        let is_so = |why: &NegotiationError| matches!(why.cause, NegotiationCause::Closed(_)) || why.cause.is_timeout();
        closed_door(b, &stub, HANDSHAKE, 4, is_so)
    }),
];

/// The timeouts of the handshake and of the probe before it, if nothing else ends them.
const HANDSHAKE: Duration = Duration::from_secs(1);

fn is_broken(why: &NegotiationError, says: &str) -> bool {
    matches!(&why.cause, NegotiationCause::Closed(Closed::Broken(how)) if how.contains(says))
}

/// Every request gets this response. Connecting fails as `is_so` requires, after this small number
/// of requests.
fn shut(
    bench: &Bench,
    steps: Vec<Step>,
    most: usize,
    is_so: impl Fn(&NegotiationError) -> bool,
) -> Result<String, String> {
    asked(bench, steps, LONG, most, is_so)
}

/// The same, if only the timeout of the handshake ends it.
fn silent(bench: &Bench, steps: Vec<Step>, is_so: impl Fn(&NegotiationError) -> bool) -> Result<String, String> {
    asked(bench, steps, HANDSHAKE, 2, is_so)
}

fn asked(
    bench: &Bench,
    steps: Vec<Step>,
    handshake: Duration,
    most: usize,
    is_so: impl Fn(&NegotiationError) -> bool,
) -> Result<String, String> {
    let answer = move |what: &str| if what == "open" { Vec::new() } else { steps.clone() };
    let stub = Stub::start(move |ask| answer(&ask.what)).map_err(|e| e.to_string())?;
    closed_door(bench, &stub, handshake, most, is_so)
}

/// For a client of either era, and for one of each.
fn closed_door(
    bench: &Bench,
    stub: &Stub,
    handshake: Duration,
    most: usize,
    is_so: impl Fn(&NegotiationError) -> bool,
) -> Result<String, String> {
    let mut text = String::new();
    for setup in [modern(), legacy(), Setup { policy: Policy::Auto, ..modern() }] {
        let setup = Setup { handshake, ..setup };
        let (began, before) = (Instant::now(), stub.asks().len());
        let why = refused(bench, stub, setup)?;
        expect(is_so(&why), || format!("{why:?}"))?;
        expect(why.stage != Stage::Connect, || "it was connected".into())?;
        let asks = stub.asks().len() - before;
        expect(asks <= most, || format!("{asks} requests"))?;
        // Without the limit it takes twice as long as the longer of them, for the probe and the
        // handshake.
        expect(began.elapsed() < LONG / 2, || format!("after {:?}", began.elapsed()))?;
        text = why.to_string();
    }
    Ok(text)
}

fn status(bench: &Bench, status: &'static str, number: u16) -> Result<String, String> {
    shut(bench, vec![whole(status, "Content-Type: text/plain\r\n", "why it is so")], 3, |why| {
        matches!(&why.cause, NegotiationCause::Http(e) if e.status == number)
            && why.to_string().ends_with(&format!("HTTP {number}: why it is so"))
    })
}

/// No request arrives there.
fn login(bench: &Bench) -> Result<String, String> {
    let other = Stub::start(|_| Vec::new()).map_err(|e| e.to_string())?;
    let location = other.url();
    let field = format!("Location: {location}\r\n");
    let text = shut(
        bench,
        vec![whole("302 Found", field, "")],
        2,
        |why| matches!(&why.cause, NegotiationCause::Http(e) if e.location.as_ref() == Some(&location)),
    )?;
    expect(other.connections() == 0, || "it is followed".into())?;
    Ok(text.replace(&location, "http://other"))
}
