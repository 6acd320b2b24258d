//! Requests of the application that are not MCP: what is written for them, over which connections,
//! and what comes back.

use crate::client::{
    ClientCommands, ClientConfig, Event, FetchError, FetchId, FetchRequest, FetchResponse, HttpTarget, Redirects, State,
};
use crate::error::Refusal;
use crate::exchange::*;
use crate::input::Watch;
use crate::model::tools;
use crate::rpc::Object;
use crate::time::Instant;
use crate::wired::WiredClient;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

const OWN: &str = "http://own.example/mcp";

/// A client, whose driver opens every connection at once, and what it writes on each.
struct Fetching {
    client: WiredClient,
    now: Instant,
    opened: Vec<(ConnectionId, String)>,
    written: BTreeMap<ConnectionId, String>,
    fetched: Vec<(FetchId, Result<Box<FetchResponse>, FetchError>)>,
    aborted: Vec<ConnectionId>,
}

impl Fetching {
    /// A client whose own probe is on the first connection.
    fn new() -> Self {
        let mut config = ClientConfig::url(OWN).expect("it is a URL");
        config.headers = Headers::new().with("X-Own", "1").with("Authorization", "Bearer own");
        Self::of(config)
    }

    fn of(config: ClientConfig) -> Self {
        let client = WiredClient::new(config.into(), [1; 32], Instant::ZERO);
        let (opened, written, aborted) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut all = Self { client, now: Instant::ZERO, opened, written, fetched: Vec::new(), aborted };
        all.drive();
        all
    }

    fn fetch(&mut self, id: u64, request: FetchRequest) {
        self.client.fetch(self.now, FetchId(id), request).expect("it is accepted");
        self.drive();
    }

    fn cancel(&mut self, id: u64) {
        self.client.cancel_fetch(self.now, FetchId(id));
        self.drive();
    }

    fn drive(&mut self) {
        while let Some(action) = self.client.poll_output() {
            match action {
                Action::Open(id, endpoint) => {
                    let shown = match endpoint {
                        Endpoint::Origin(origin) => format!("{}:{}", origin.host, origin.port),
                        Endpoint::Within(origin, _) => format!("public {}:{}", origin.host, origin.port),
                        other => panic!("{other:?}"),
                    };
                    self.opened.push((id, shown));
                    self.client.handle_io(self.now, id, IoEvent::Opened(Peer::default()));
                }
                Action::Secure(id, _) => self.client.handle_io(self.now, id, IoEvent::Secured),
                Action::Write(id, bytes) => {
                    self.written.entry(id).or_default().push_str(core::str::from_utf8(&bytes).expect("text"));
                    self.client.handle_io(self.now, id, IoEvent::Written(bytes.len()));
                }
                Action::Close(id, Shutdown::Abort) => {
                    self.aborted.push(id);
                    self.client.handle_io(self.now, id, IoEvent::Closed(Closed::Aborted));
                }
                Action::Event(Event::Fetched { fetch, outcome }) => self.fetched.push((fetch, outcome)),
                _ => {}
            }
        }
    }

    /// The server of the latest connection responds.
    fn respond(&mut self, response: impl Into<String>) {
        let (id, _) = self.opened.last().expect("a connection").clone();
        self.read(id, response);
    }

    fn read(&mut self, id: ConnectionId, bytes: impl Into<String>) {
        self.client.handle_io(self.now, id, IoEvent::Read(bytes.into().into()));
        self.drive();
    }

    /// Returns the head and body of the latest request, without the codings that it accepts, and
    /// what the driver was to open for it.
    fn latest(&self) -> (&str, String) {
        let (id, endpoint) = self.opened.last().expect("a connection");
        let lines = self.written[id].split_inclusive("\r\n").filter(|line| !line.starts_with("accept-encoding: "));
        (endpoint, lines.collect())
    }

    fn outcome(&mut self) -> Result<Box<FetchResponse>, FetchError> {
        assert_eq!(self.fetched.len(), 1, "{:?}", self.fetched);
        self.fetched.pop().expect("an outcome").1
    }
}

fn get(url: &str) -> FetchRequest {
    FetchRequest::get(HttpTarget::parse(url).expect("it is a URL"))
}

fn whole(status: u16, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len())
}

// covers: B-260
#[test]
fn fetch_carries_nothing_of_the_client() {
    let mut all = Fetching::new();
    let mut request = get("http://as.example/.well-known/x?a=1");
    request.headers = Headers::new()
        .with("Accept", "application/json")
        .with("Mcp-Protocol-Version", "2025-11-25")
        .with("Host", "evil.example")
        .with("Content-Length", "9")
        .with("X-Bad", "a\r\nX-Injected: 1");
    all.fetch(7, request);
    let expected = "GET /.well-known/x?a=1 HTTP/1.1\r\nHost: as.example\r\nAccept: application/json\r\n\
        Mcp-Protocol-Version: 2025-11-25\r\n\r\n";
    assert_eq!(all.latest(), ("as.example:80", expected.into()));
    // A JSON body is no message, and an event stream is none either.
    for kind in ["application/json", "text/event-stream", "text/html"] {
        let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
        all.respond(whole(200, &format!("Content-Type: {kind}\r\n"), body));
        let response = all.outcome().expect("a response");
        assert_eq!((response.status, &*response.body, response.redirect), (200, body.as_bytes(), None));
        assert_eq!(response.headers.get("content-type"), Some(kind));
        assert_eq!(response.url, "http://as.example/.well-known/x?a=1");
        let connections = all.opened.len();
        all.fetch(7, get("http://as.example/.well-known/x?a=1"));
        assert_eq!(all.opened.len(), connections, "the connection is used again");
    }
}

#[test]
fn post_has_its_body_and_follows_nothing() {
    let mut all = Fetching::new();
    let url = HttpTarget::parse("https://as.example/token").expect("it is a URL");
    all.fetch(1, FetchRequest::post(url, "application/x-www-form-urlencoded", "grant_type=x"));
    let (endpoint, written) = all.latest();
    assert_eq!(endpoint, "as.example:443");
    assert!(written.starts_with("POST /token HTTP/1.1\r\n") && written.ends_with("\r\n\r\ngrant_type=x"), "{written}");
    all.respond(whole(307, "Location: /other\r\n", "moved"));
    let response = all.outcome().expect("a response");
    let found = (response.status, response.redirect, response.headers.get("location"));
    assert_eq!(found, (307, Some(RedirectRefusal::Off), Some("/other")));
}

// covers: REDIR-C-005, REDIR-C-006, REDIR-C-008
#[test]
fn get_follows_redirects_without_secrets() {
    let mut all = Fetching::new();
    let mut request = get("http://as.example/a");
    request.headers = Headers::new().with("Accept", "text/plain").with("Authorization", "Bearer x").with("X-Key", "1");
    all.fetch(1, request);
    all.respond(whole(302, "Location: /b\r\n", "moved"));
    assert!(all.latest().1.contains("GET /b ") && all.latest().1.matches("Bearer x").count() == 2);
    all.respond(whole(302, "Location: https://other.example/c\r\n", "moved"));
    let (endpoint, written) = all.latest();
    assert_eq!(endpoint, "public other.example:443", "its own address is unknown and counts as public");
    let expected = "GET /c HTTP/1.1\r\nHost: other.example\r\nAccept: text/plain\r\n\r\n";
    assert_eq!(written, expected);
    all.respond(whole(302, "Location: http://other.example/d\r\n", "moved"));
    let response = all.outcome().expect("a response");
    assert_eq!((response.status, response.redirect), (302, Some(RedirectRefusal::Insecure)));
    assert_eq!(response.url, "https://other.example/c");

    let mut request = get("http://as.example/a");
    request.redirects = Redirects::default();
    all.fetch(2, request);
    let id = all.opened[1].0;
    all.read(id, whole(302, "Location: http://other.example/d\r\n", ""));
    assert_eq!(all.outcome().expect("a response").redirect, Some(RedirectRefusal::Origin));
}

// covers: REDIR-C-006, B-237
#[test]
fn reach_belongs_to_each_connection_of_a_fetch() {
    let mut all = Fetching::new();
    all.fetch(1, get("http://as.example/a"));
    all.respond(whole(200, "", "free"));
    assert!(all.outcome().is_ok());
    let public = || FetchRequest { reach: Reach::Public, ..get("http://as.example/a") };
    all.fetch(2, public());
    assert_eq!(all.latest().0, "public as.example:80", "an idle connection of another reach is not used");
    all.respond(whole(302, "Location: http://inside.example/\r\n", ""));
    assert_eq!(all.latest().0, "public inside.example:80");
    let id = all.opened.last().expect("a connection").0;
    all.client.handle_io(all.now, id, IoEvent::Closed(Closed::NotPublic));
    all.drive();
    // It was open in this test, so the request may have been sent.
    assert!(matches!(all.outcome(), Err(FetchError::Closed { why: Closed::NotPublic, .. })));
    let before = all.opened.len();
    all.fetch(3, public());
    assert_eq!(all.opened.len(), before, "one of the same reach is");
}

#[test]
fn fetch_is_bounded_in_time_and_length() {
    let mut all = Fetching::new();
    all.fetch(1, FetchRequest { timeout: Duration::from_secs(5), ..get("http://as.example/a") });
    all.respond(whole(302, "Location: /b\r\n", ""));
    all.now = Instant::from_millis(4_999);
    all.client.handle_timeout(all.now);
    all.drive();
    assert!(all.fetched.is_empty());
    all.now = Instant::from_millis(5_000);
    all.client.handle_timeout(all.now);
    all.drive();
    assert_eq!(all.outcome(), Err(FetchError::Timeout(Sent::Maybe)), "over all redirects");
    assert_eq!(all.aborted.len(), 1);
    for (body, is_fine) in [("1234", true), ("12345", false)] {
        all.fetch(2, FetchRequest { max_body: 4, ..get("http://as.example/a") });
        all.respond(format!("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", &body[..2]));
        all.respond(format!("{:x}\r\n{}\r\n0\r\n\r\n", body.len() - 2, &body[2..]));
        let outcome = all.outcome();
        assert_eq!(outcome.as_ref().is_ok_and(|response| &*response.body == body.as_bytes()), is_fine);
        assert_eq!(outcome == Err(FetchError::TooLong), !is_fine);
    }
}

#[test]
fn every_fetch_ends_with_the_client() {
    let mut all = Fetching::new();
    for id in 1..=3 {
        all.fetch(id, get("http://as.example/a"));
    }
    all.client.close(all.now);
    all.drive();
    let ended: Vec<_> = all.fetched.iter().map(|(id, outcome)| (id.0, outcome.is_err())).collect();
    assert_eq!(ended, [(1, true), (2, true), (3, true)]);
    let refused = all.client.fetch(all.now, FetchId(4), get("http://as.example/a")).map_err(|refused| refused.why);
    assert_eq!(refused, Err(Refusal::Closed));
}

#[test]
fn cancelled_fetch_ends_at_once_and_its_connection_is_aborted() {
    let mut all = Fetching::new();
    let aborted = |sent| Err(FetchError::Closed { sent, why: Closed::Aborted });
    // In the middle of its response, also after a redirect.
    all.fetch(1, get("http://as.example/a"));
    all.respond(whole(302, "Location: /b\r\n", ""));
    all.respond("HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n1234");
    // Another one goes on.
    all.fetch(2, get("http://other.example/a"));
    all.cancel(1);
    assert_eq!(all.outcome(), aborted(Sent::Maybe));
    let connection = all.opened.iter().find(|(_, endpoint)| endpoint.starts_with("as.example")).expect("opened").0;
    assert_eq!(all.aborted, [connection]);
    // Twice, after its end, and one that never began.
    all.respond(whole(200, "", "whole"));
    assert!(all.outcome().is_ok());
    [1, 2, 3].into_iter().for_each(|id| all.cancel(id));
    assert!(all.fetched.is_empty() && all.aborted.len() == 1);
}

#[test]
fn cancelled_fetch_frees_its_place_for_another() {
    let mut all = Fetching::new();
    let max = all.client.client().config().limits.client.max_calls as u64;
    (1..=max).for_each(|id| all.fetch(id, get("http://as.example/a")));
    // Most of them wait for a connection.
    assert!((all.opened.len() as u64) < max);
    (1..=max).for_each(|id| all.cancel(id));
    assert_eq!(all.fetched.len() as u64, max);
    assert_eq!(all.client.stats().waiting, 0);
    all.fetched.clear();
    all.fetch(max + 1, get("http://as.example/a"));
    all.respond(whole(200, "", "whole"));
    assert!(all.outcome().is_ok());
}

#[test]
fn number_of_fetches_is_bounded() {
    let mut config = ClientConfig::url(OWN).expect("it is a URL");
    config.limits.client.max_calls = 2;
    let mut client = WiredClient::new(config.into(), [1; 32], Instant::ZERO);
    let mut begin = |id| client.fetch(Instant::ZERO, FetchId(id), get("http://as.example/a"));
    assert!(begin(1).is_ok() && begin(2).is_ok());
    assert_eq!(begin(3).map_err(|refused| refused.why), Err(Refusal::Full));
}

#[test]
fn fetcher_opens_connections_for_fetches_only() {
    let mut all = Fetching::of(ClientConfig::fetcher());
    assert!(all.opened.is_empty() && all.client.poll_timeout().is_none(), "it negotiates");
    assert_eq!(all.client.client().state(), State::NoServer);
    for id in 1..3 {
        all.fetch(id, get("http://as.example/keys"));
        assert_eq!(all.latest().1, "GET /keys HTTP/1.1\r\nHost: as.example\r\n\r\n".repeat(id as usize));
        all.respond(whole(200, "", "{}"));
        assert_eq!(&*all.outcome().expect("a response").body, b"{}");
    }
    assert_eq!(all.opened.len(), 1, "the connection is used again");
    let now = all.now;
    let call = all.client.call(now, tools::list());
    assert_eq!(call.expect_err("no server").why, Refusal::NoServer);
    let notified = all.client.notify(now, "acme/x", Object::new());
    assert_eq!(notified.expect_err("no server").why, Refusal::NoServer);
    let roots = all.client.roots_changed(now);
    assert_eq!(roots.expect_err("no server").why, Refusal::NoServer);
    let watched = all.client.watch(now, Watch::new().with_tools());
    assert_eq!(watched.expect_err("no server").why, Refusal::NoServer);
}

#[test]
fn fetcher_ends_with_its_fetches() {
    let mut all = Fetching::of(ClientConfig::fetcher());
    all.fetch(1, get("http://as.example/keys"));
    all.client.close(all.now);
    all.drive();
    assert!(matches!(all.outcome(), Err(FetchError::Closed { sent: Sent::Maybe, why: Closed::Aborted })));
    assert!(all.client.client().is_terminated());
    assert_eq!(all.client.poll_timeout(), None);
}

#[test]
fn debug_shows_no_secret_of_a_fetch() {
    let mut request = get("http://as.example/?token=hunter2");
    request.headers = Headers::new().with("Authorization", "Bearer hunter2");
    request.body = "client_secret=hunter2".into();
    let shown = format!("{request:?}");
    assert!(!shown.contains("hunter2") && shown.contains("as.example"), "{shown}");
    let error = FetchError::Closed { sent: Sent::No, why: Closed::NotPublic }.to_string();
    assert_eq!(error, "the host has no address that the request may reach");
}
