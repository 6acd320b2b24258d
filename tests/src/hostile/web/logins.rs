//! Servers and issuers whose documents trickle, circle or swell during a login, and other programs
//! that connect to the listener of one.
//!
//! The loop takes no part: it does not log in.

use super::parts::{good, idle, modern, stub};
use crate::adapters::cause;
use crate::hostile::client::{Place, Seen, Setup, failed};
use crate::hostile::rows::{READERS, expect, row_on};
use crate::hostile::{Bench, Row};
use crate::stub::{Ask, SOON, Step, Stub, endless, json, say, whole};
use mcp_driver::{Browsed, OAuth};
use mcp_proto::auth::Browse;
use mcp_proto::error::{AuthError, NegotiationError};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    login("the metadata of a resource by one byte a second", |b| ends(b, trickles(RESOURCE), discovery)),
    login("the metadata of an issuer by one byte a second", |b| ends(b, trickles(ISSUER), discovery)),
    login("a registration by one byte a second", |b| {
        ends(b, trickles("/register"), |error| matches!(error, AuthError::Unavailable(_)))
    }),
    login("tokens by one byte a second", |b| {
        ends(b, trickles("/token"), |error| matches!(error, AuthError::Unavailable(_)))
    }),
    login("the metadata of a resource without end", |b| ends(b, pours(RESOURCE), discovery)),
    login("the metadata of an issuer without end", |b| ends(b, pours(ISSUER), discovery)),
    login("a registration without end", |b| ends(b, pours("/register"), is_problem)),
    login("tokens without end", |b| ends(b, pours("/token"), is_problem)),
    login("metadata that redirect in a circle", |b| {
        let circle = |ask: &Ask, _: &str| match ask.target.as_str() {
            RESOURCE | ROOT_RESOURCE | "/b" => Some(to("/a")),
            "/a" => Some(to("/b")),
            _ => None,
        };
        ends(b, circle, discovery)
    }),
    login("metadata of an issuer that redirect in a circle", |b| {
        let circle = |ask: &Ask, _: &str| match ask.target.as_str() {
            ISSUER | OTHER_ISSUER | "/b" => Some(to("/a")),
            "/a" => Some(to("/b")),
            _ => None,
        };
        ends(b, circle, discovery)
    }),
    login("tokens that redirect in a circle", |b| {
        let circle = |ask: &Ask, _: &str| {
            (ask.target == "/token").then(|| vec![whole("307 Temporary Redirect", "Location: /token\r\n", "")])
        };
        ends(b, circle, is_problem)
    }),
    login("issuers whose metadata name each other", |b| {
        let circle = |ask: &Ask, origin: &str| {
            let other = match ask.target.as_str() {
                RESOURCE => return Some(resource(origin, &[format!("{origin}/a"), format!("{origin}/b")])),
                path if path.ends_with("/a") || path.starts_with("/a/") => "b",
                path if path.ends_with("/b") || path.starts_with("/b/") => "a",
                _ => return None,
            };
            Some(issuer(&format!("{origin}/{other}"), origin))
        };
        ends(b, circle, discovery)
    }),
    login("10,000 issuers", |b| ends(b, |ask, origin| issuers(ask, origin, 10_000), discovery)),
    login("1,000 issuers", |b| ends(b, |ask, origin| issuers(ask, origin, 1000), discovery)),
    login("a challenge to every token, each with other metadata", |b| {
        let next = Mutex::new(0);
        let other = move |ask: &Ask, origin: &str| match ask.target.as_str() {
            "/mcp" => {
                let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
                *next += 1;
                Some(challenge(&format!("{origin}/metadata/{next}")))
            }
            path if path.starts_with("/metadata/") => Some(resource(origin, &[origin.to_owned()])),
            _ => None,
        };
        ends(b, other, |error| *error == AuthError::Rejected)
    }),
    login("1,000 connections to the listener of a login", listener),
];

/// A row for the drivers that log in, with the usual memory.
const fn login(name: &'static str, run: fn(&Bench) -> Result<String, String>) -> Row {
    row_on(name, READERS, 32, run)
}

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const ROOT_RESOURCE: &str = "/.well-known/oauth-protected-resource";
const ISSUER: &str = "/.well-known/oauth-authorization-server";
const OTHER_ISSUER: &str = "/.well-known/openid-configuration";

/// The time for a document, in place of 30 s.
const BRIEF: Duration = Duration::from_secs(2);

/// Maximum time of a login that fails.
const LONG: Duration = Duration::from_secs(30);

/// Maximum number of requests of a login (`AuthLimits::max_fetches`), each with its redirects.
const REQUESTS: usize = 24 * 4;

const SPACES: &str = "                                                                ";

/// Returns the steps in place of those of an honest server. It gets the request, and the origin of
/// the server.
type OddScript = Box<dyn Fn(&Ask, &str) -> Option<Vec<Step>> + Send + Sync>;

/// Says the document at this path slowly, as the one at the other paths for the same.
fn trickles(path: &'static str) -> impl Fn(&Ask, &str) -> Option<Vec<Step>> + Send + Sync + 'static {
    move |ask, _| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
        is_at(ask, path).then(|| vec![say(head), Step::Drip(SPACES, Duration::from_secs(1))])
    }
}

/// Says the document at this path without end.
fn pours(path: &'static str) -> impl Fn(&Ask, &str) -> Option<Vec<Step>> + Send + Sync + 'static {
    move |ask, _| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"x\":[";
        is_at(ask, path).then(|| vec![say(head), endless("\"https://issuer.example\",")])
    }
}

/// Whether a request is for this document, at any of its URLs.
fn is_at(ask: &Ask, path: &str) -> bool {
    let others = [(RESOURCE, ROOT_RESOURCE), (ISSUER, OTHER_ISSUER)];
    ask.target == path || others.contains(&(path, ask.target.as_str()))
}

fn to(path: &str) -> Vec<Step> {
    vec![whole("302 Found", format!("Location: {path}\r\n"), "")]
}

/// Each has no metadata.
fn issuers(ask: &Ask, origin: &str, count: usize) -> Option<Vec<Step>> {
    let all = || (0..count).map(|n| format!("{origin}/{n}")).collect::<Vec<_>>();
    is_at(ask, RESOURCE).then(|| resource(origin, &all()))
}

fn discovery(error: &AuthError) -> bool {
    matches!(error, AuthError::Discovery { .. } | AuthError::Unavailable(_))
}

/// Whether an endpoint failed, now or at every time.
fn is_problem(error: &AuthError) -> bool {
    matches!(error, AuthError::Registration(_) | AuthError::Token(_) | AuthError::Unavailable(_))
}

fn resource(origin: &str, issuers: &[String]) -> Vec<Step> {
    vec![json(format!(r#"{{"resource":"{origin}/mcp","authorization_servers":{issuers:?}}}"#))]
}

fn issuer(name: &str, origin: &str) -> Vec<Step> {
    vec![json(format!(
        r#"{{"issuer":"{name}","authorization_endpoint":"{origin}/authorize","token_endpoint":"{origin}/token",
            "registration_endpoint":"{origin}/register","code_challenge_methods_supported":["S256"],
            "token_endpoint_auth_methods_supported":["none"]}}"#
    ))]
}

fn challenge(metadata: &str) -> Vec<Step> {
    vec![whole("401 Unauthorized", format!("WWW-Authenticate: Bearer resource_metadata=\"{metadata}\"\r\n"), "")]
}

/// A server and its issuer, at one origin, but for the odd responses.
fn guarded(odd: OddScript) -> Result<Stub, String> {
    stub(move |ask| {
        let origin = format!("http://{}", ask.field("host").unwrap_or_default());
        if let Some(steps) = odd(ask, &origin) {
            return Some(steps);
        }
        match ask.target.as_str() {
            "/mcp" if ask.field("authorization") == Some("Bearer access") => None,
            "/mcp" => Some(challenge(&format!("{origin}{RESOURCE}"))),
            RESOURCE => Some(resource(&origin, std::slice::from_ref(&origin))),
            ISSUER => Some(issuer(&origin, &origin)),
            "/register" => Some(vec![whole("201 Created", JSON, r#"{"client_id":"client"}"#)]),
            "/token" => Some(vec![json(r#"{"access_token":"access","token_type":"Bearer","expires_in":3600}"#)]),
            // A connection that has asked nothing yet.
            "" => None,
            _ => Some(vec![whole("404 Not Found", "", "")]),
        }
    })
}

const JSON: &str = "Content-Type: application/json\r\n";

/// How a client logs in, with a browser that arrives at once.
fn arriving() -> OAuth {
    OAuth::new("hostile").on_browse(|page| Browsed::Returned(redirect(page)))
}

/// Returns the URL at which a user arrives.
fn redirect(page: &Browse) -> String {
    let state = page.url.split_once("state=").map_or("", |(_, rest)| rest);
    let state = state.split('&').next().unwrap_or_default();
    format!("{}?code=code&state={state}", page.redirect_uri)
}

/// A client cannot log in, in time, and says why. It asks no more than a login may.
fn ends(
    bench: &Bench,
    odd: impl Fn(&Ask, &str) -> Option<Vec<Step>> + Send + Sync + 'static,
    is_so: fn(&AuthError) -> bool,
) -> Result<String, String> {
    let stub = guarded(Box::new(odd))?;
    let login = arriving().config(|config| {
        config.limits.discovery_time = BRIEF;
        config.limits.token_time = BRIEF;
    });
    let began = Instant::now();
    let seen = Seen::default();
    let error = match bench.open(Place::Url(stub.url()), Setup { login: Some(login), ..modern() }, &seen) {
        Ok(_) => return Err("it logs in".into()),
        Err(error) => error,
    };
    let took = began.elapsed();
    let why = cause::<NegotiationError>(&error).and_then(NegotiationError::unauthorized);
    expect(why.is_some_and(is_so), || format!("it ends with {}: {why:?}", failed(&error, &seen)))?;
    expect(took < LONG, || format!("it takes {took:?}"))?;
    expect(stub.is_done_within(SOON), || "a connection stays open".into())?;
    let asks = stub.asks().len();
    expect(asks <= REQUESTS, || format!("{asks} requests"))?;
    idle(&stub)?;
    let why = why.map(|why| why.to_string()).unwrap_or_default();
    Ok(format!("in {:.1} s, after {asks} requests: {}", took.as_secs_f64(), why.chars().take(150).collect::<String>()))
}

/// Other programs scan the port, with other paths, other hosts, and without an end. The browser of
/// the user arrives after them.
fn listener(bench: &Bench) -> Result<String, String> {
    const SLOW: usize = 100;
    const WRONG: usize = 900;
    /// At once.
    const PROGRAMS: usize = 10;
    let stub = guarded(Box::new(|_, _| None))?;
    let (tell, told) = channel();
    let login = OAuth::new("hostile").on_browse(move |page| {
        // The row has ended if this fails.
        let _ = tell.send(scan(page, SLOW, WRONG, PROGRAMS));
    });
    let began = Instant::now();
    let seen = Seen::default();
    let setup = Setup { login: Some(login), handshake: 4 * LONG, ..modern() };
    let client = bench.open(Place::Url(stub.url()), setup, &seen);
    let scanned = told.recv_timeout(SOON).map_err(|_| format!("no page is shown: {:?}", client.as_ref().err()))??;
    let mut client = client.map_err(|e| failed(&e, &seen))?;
    good(&mut client)?;
    client.close()?;
    Ok(format!("{scanned}; logged in after {:.1} s", began.elapsed().as_secs_f64()))
}

/// Connects to the listener as other programs, and then as the browser.
fn scan(page: &Browse, slow: usize, wrong: usize, programs: usize) -> Result<String, String> {
    let redirect = redirect(page);
    let rest = redirect.strip_prefix("http://").ok_or("no URL")?;
    let (host, path) = rest.split_once('/').ok_or("no path")?;
    let right = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let half = &right.as_bytes()[..right.len() / 2];
    let mut kept = Vec::with_capacity(slow);
    for number in 0..slow {
        let mut stream = connect(host)?;
        if number % 2 == 0 {
            // Half of them say nothing at all.
            stream.write_all(half).map_err(|e| e.to_string())?;
        }
        kept.push(stream);
    }
    let others = [
        right.replace("/callback", "/favicon.ico"),
        right.replace("Host: 127.0.0.1", "Host: rebound.example"),
        right.replace("GET", "POST"),
        right.replace("state=", "state=x"),
    ];
    let asks = || -> Result<(), String> {
        for number in 0..wrong / programs {
            let answer = ask(host, &others[number % others.len()])?;
            expect(answer.starts_with("HTTP/1.1 404 "), || format!("another program gets {answer:?}"))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..programs).map(|_| scope.spawn(asks)).collect();
        all.into_iter().try_for_each(|one| one.join().map_err(|_| "a program panics".to_string())?)
    })?;
    let answer = ask(host, &right)?;
    expect(answer.starts_with("HTTP/1.1 200 "), || format!("the browser gets {answer:?}"))?;
    drop(kept);
    Ok(format!("{wrong} times 404 beside {slow} that say nothing, and 200"))
}

fn connect(host: &str) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(host).map_err(|e| format!("no connection: {e}"))?;
    stream.set_read_timeout(Some(2 * LONG)).map_err(|e| e.to_string())?;
    Ok(stream)
}

/// Sends a request, and returns what comes until the end of the connection.
fn ask(host: &str, request: &str) -> Result<String, String> {
    let mut stream = connect(host)?;
    stream.write_all(request.as_bytes()).map_err(|e| e.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|e| format!("no response: {e}"))?;
    Ok(answer)
}
