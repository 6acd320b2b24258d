//! Redirects: the request that follows one, what it leaves behind, and the URL after it.

use super::*;
use crate::Authorization;
use crate::client::Redirects;
use crate::exchange::{Origin, Reach, RedirectRefusal};

const ALL: Redirects = Redirects::Follow { max: 5 };
const ELSEWHERE: &str = "https://elsewhere.example/mcp";

impl Http {
    /// The server redirects the request of the latest exchange.
    fn redirect(&mut self, status: u16, location: &str) {
        let exchange = self.last().0;
        let headers = Headers::new().with("Location", location);
        self.item(exchange, Inbound::Response(ResponseHead { status, headers }));
        self.item(exchange, Inbound::Body(Bytes::from_static(b"moved")));
        self.item(exchange, Inbound::End);
    }

    fn fail(&mut self, sent: Sent, why: Closed) {
        let exchange = self.last().0;
        self.rig.handle_event(exchange, ExchangeEvent::Failed { sent, why });
    }

    /// Returns the requests after the first `from`, as `METHOD URL`.
    fn urls(&self, from: usize) -> Vec<String> {
        let url = |(_, start): &(ExchangeId, Start)| match start {
            Start::Http { origin: Origin { tls, host, port }, head, .. } => {
                format!("{} {}{host}:{port}{}", head.method, if *tls { "https:" } else { "" }, head.target)
            }
            Start::Duplex(_) | Start::WebSocket { .. } => panic!(),
        };
        self.rig.starts[from..].iter().map(url).collect()
    }

    /// Returns the fields of the latest request.
    fn fields(&self) -> Headers {
        self.posts().pop().unwrap().1.headers
    }

    fn answer_last(&mut self) {
        let (exchange, id) = self.last();
        self.answer(exchange, 200, &result(&id));
    }
}

fn following(config: &mut ClientConfig) {
    config.redirects = ALL;
    config.headers = Headers::new().with("X-Own", "1");
}

/// A client of a modern server, which follows every redirect.
fn modern(set: impl FnOnce(&mut ClientConfig)) -> Http {
    let mut http = Http::with(|config| {
        following(config);
        set(config);
    });
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
    http.rig.clear();
    http
}

// covers: REDIR-C-001, REDIR-C-004, REDIR-C-007, B-157
#[test]
fn followed_request_is_the_same_at_another_url() {
    let mut http = Http::ready();
    let call = http.rig.echo();
    let (_, before, body, repeatable) = http.posts().pop().unwrap();
    http.redirect(307, "/mcp/?x=1");
    http.redirect(308, "../other");
    let (_, after, again, still) = http.posts().pop().unwrap();
    assert_eq!((before.headers, body, repeatable), (after.headers, again, still));
    http.answer_last();
    assert!(http.rig.outcome(call).is_ok());
    let urls = ["POST 127.0.0.1:8000/mcp?x=1", "POST 127.0.0.1:8000/mcp/?x=1", "POST 127.0.0.1:8000/other"];
    assert_eq!(http.urls(1), urls);
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::Redirected; 2]);
    let next = http.rig.echo();
    http.answer_last();
    assert!(http.rig.outcome(next).is_ok());
    assert_eq!(http.urls(4), ["POST 127.0.0.1:8000/other"], "the URL is kept");
    http.assert_at_rest();
}

#[test]
fn handshake_follows_redirects_in_both_eras() {
    for policy in [Policy::Modern, Policy::Legacy] {
        let mut http = Http::with(|config| config.policy = policy);
        http.redirect(307, "/mcp/");
        match policy {
            Policy::Legacy => http.accept("s1"),
            _ => {
                let (exchange, id) = http.last();
                http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
            }
        }
        let call = http.rig.echo();
        assert!(http.urls(1).iter().all(|url| url.ends_with(":8000/mcp/")), "{:?}", http.urls(1));
        assert!(!http.rig.has_ended(call));
    }
}

// covers: REDIR-C-002, REDIR-C-003, REDIR-C-006, REDIR-C-007, B-156, B-157
#[test]
fn redirect_that_is_not_followed_is_an_error_with_its_reason() {
    for (status, location, expected, text) in [
        (303, "/mcp/", RedirectRefusal::Method, "this status would change the method"),
        (301, "/mcp/", RedirectRefusal::Method, "this status would change the method"),
        (302, "/mcp/", RedirectRefusal::Method, "this status would change the method"),
        (307, ELSEWHERE, RedirectRefusal::Origin, "it leads to another origin"),
        (308, "https://127.0.0.1:8000/mcp", RedirectRefusal::Origin, "it leads to another origin"),
        (307, "/mcp?x=1", RedirectRefusal::Loop, "it leads back to where the request has been"),
        (307, "", RedirectRefusal::Loop, "it leads back to where the request has been"),
        (307, "ftp://a/", RedirectRefusal::Location, "the location is not one http: or https: URL"),
    ] {
        let mut http = Http::ready();
        let call = http.rig.echo();
        http.redirect(status, location);
        let Err(CallError::Http(error)) = http.rig.outcome(call) else { panic!("{:?}", http.rig.outcome(call)) };
        assert_eq!((error.status, error.redirect, &*error.body_head), (status, Some(expected), &b"moved"[..]));
        let shown = format!("HTTP {status}: moved [redirected to {location}, not followed: {text}]");
        assert_eq!(error.to_string(), shown);
        assert_eq!(http.posts().len(), 2, "{status} {location}");
        http.assert_at_rest();
    }
}

// covers: REDIR-C-007
#[test]
fn chain_of_redirects_ends() {
    let mut http = Http::ready();
    let call = http.rig.echo();
    for n in 0..6 {
        http.redirect(307, &format!("/{n}"));
    }
    let found =
        matches!(http.rig.outcome(call), Err(CallError::Http(e)) if e.redirect == Some(RedirectRefusal::TooMany));
    assert!(found, "{:?}", http.rig.outcome(call));
    assert_eq!(http.urls(1).len(), 6);
    http.rig.echo();
    assert_eq!(http.urls(7), ["POST 127.0.0.1:8000/mcp?x=1"], "no success, so no other URL");
}

// covers: REDIR-C-005, B-156
#[test]
fn nothing_of_the_application_goes_to_another_origin() {
    let mut http = modern(|config| config.authorize = true);
    let call = http.rig.echo();
    let exchange = http.last().0;
    let headers = Headers::new().with("WWW-Authenticate", "Bearer");
    http.item(exchange, Inbound::Response(ResponseHead { status: 401, headers }));
    http.item(exchange, Inbound::End);
    let key = http.rig.events.iter().find_map(|event| match event {
        Event::AuthNeeded { token, .. } => Some(token.key()),
        _ => None,
    });
    let with = Authorization::Headers(Headers::new().with("Authorization", "Bearer secret"));
    http.rig.client.apply(http.rig.now, Input::Command(ClientCommand::Authorize(key.unwrap(), with))).unwrap();
    http.rig.drain();
    let own = |http: &Http| ["authorization", "x-own"].map(|name| http.fields().get(name).is_some());
    assert_eq!(own(&http), [true, true]);
    http.redirect(307, ELSEWHERE);
    assert_eq!(own(&http), [false, false]);
    assert_eq!(http.fields().get("host"), Some("elsewhere.example"));
    http.answer_last();
    assert!(http.rig.outcome(call).is_ok());
    let next = http.rig.echo();
    assert_eq!(http.urls(4), ["POST https:elsewhere.example:443/mcp"]);
    assert_eq!(own(&http), [false, false], "also later");
    // A challenge of that server gets no credentials, so the application is not asked for them.
    let asked = http.rig.events.iter().filter(|event| matches!(event, Event::AuthNeeded { .. })).count();
    let exchange = http.last().0;
    let headers = Headers::new().with("WWW-Authenticate", "Bearer");
    http.item(exchange, Inbound::Response(ResponseHead { status: 401, headers }));
    http.item(exchange, Inbound::End);
    assert!(matches!(http.rig.outcome(next), Err(CallError::Http(e)) if e.status == 401));
    let again = http.rig.events.iter().filter(|event| matches!(event, Event::AuthNeeded { .. })).count();
    assert_eq!(asked, again);
}

// covers: REDIR-C-005, B-156
#[test]
fn session_stays_at_the_origin_that_began_it() {
    let mut http = Http::legacy(|config| {
        following(config);
        config.compat.listener = ListenerStart::Never;
    });
    let call = http.rig.call(tools::call("x").repeatable());
    assert_eq!(http.fields().get("mcp-session-id"), Some("s1"));
    let from = http.posts().len();
    http.redirect(307, ELSEWHERE);
    assert_eq!(http.urls(from), ["POST https:elsewhere.example:443/mcp"]);
    assert_eq!(http.lines(from), ["POST initialize"], "the server there gets a session of its own");
    assert_eq!(http.fields().get("mcp-session-id"), None);
    http.accept("s2");
    let note = http.last().0;
    http.refuse(note, 202);
    assert_eq!(http.lines(from)[2..], ["POST tools/call"]);
    assert_eq!((http.fields().get("mcp-session-id"), http.fields().get("x-own")), (Some("s2"), None));
    http.answer_last();
    assert!(http.rig.outcome(call).is_ok());
}

#[test]
fn configured_url_is_used_again_when_the_other_is_gone() {
    for (set, location) in [(Redirects::default(), "/mcp/"), (ALL, ELSEWHERE)] {
        let mut http = modern(|config| config.redirects = set);
        let call = http.rig.echo();
        http.redirect(308, location);
        http.answer_last();
        assert!(http.rig.outcome(call).is_ok());
        let from = http.posts().len();
        let next = http.rig.echo();
        http.fail(Sent::No, Closed::Refused);
        assert_eq!(http.urls(from)[1..], ["POST 127.0.0.1:8000/mcp?x=1"]);
        assert_eq!(http.fields().get("x-own"), Some("1"));
        http.answer_last();
        assert!(http.rig.outcome(next).is_ok());
        // What may have run is not sent again, and a dead target is an error.
        for (sent, count) in [(Sent::Maybe, 1), (Sent::No, 1)] {
            let from = http.posts().len();
            let lost = http.rig.echo();
            http.fail(sent, Closed::Reset);
            assert!(http.rig.has_ended(lost));
            assert_eq!(http.posts().len() - from, count);
        }
        http.assert_at_rest();
    }
}

// covers: REDIR-C-003
#[test]
fn redirected_listener_moves_no_post() {
    let mut http = Http::initialized(|_| {});
    let note = http.last().0;
    http.refuse(note, 202);
    let from = http.posts().len();
    http.redirect(302, "/events");
    assert_eq!(http.urls(from), ["GET 127.0.0.1:8000/events"]);
    assert_eq!(http.fields().get("mcp-session-id"), Some("s1"));
    let listener = http.last().0;
    http.stream(listener);
    assert_eq!(http.rig.client.state(), State::Ready);
    http.rig.echo();
    assert_eq!(http.urls(from + 1), ["POST 127.0.0.1:8000/mcp?x=1"]);
}

// covers: REDIR-C-005
#[test]
fn listener_of_a_session_follows_to_no_other_origin() {
    let mut http = Http::initialized(following);
    let note = http.last().0;
    http.refuse(note, 202);
    let from = http.posts().len();
    http.redirect(307, ELSEWHERE);
    assert_eq!(http.urls(from), [""; 0]);
    assert_eq!(http.rig.client.state(), State::Ready);
}

#[test]
fn endpoint_is_resolved_against_the_url_after_redirects() {
    let mut http = Http::with(|config| {
        config.policy = Policy::Legacy;
        config.http_mode = HttpMode::Sse;
    });
    http.redirect(307, "/a/sse/");
    let stream = http.last().0;
    assert_eq!(http.urls(1), ["GET 127.0.0.1:8000/a/sse/"]);
    http.stream(stream);
    let data = Data::Other { event: "endpoint".into(), data: Bytes::from_static(b"messages") };
    http.item(stream, Inbound::Event(SseEvent { id: None, retry: None, data }));
    assert_eq!(http.urls(2), ["POST 127.0.0.1:8000/a/sse/messages"]);
}

#[test]
fn redirects_can_be_off() {
    let mut http = modern(|config| config.redirects = Redirects::None);
    let call = http.rig.echo();
    http.redirect(308, "/mcp/");
    assert!(matches!(http.rig.outcome(call), Err(CallError::Http(e)) if e.redirect == Some(RedirectRefusal::Off)));
}

impl Http {
    /// The connection of the latest exchange is open, and leads to this address.
    fn reaches(&mut self, address: &str) {
        let exchange = self.last().0;
        let peer = Peer::tcp(format!("{address}:443").parse().unwrap());
        self.rig.handle_event(exchange, ExchangeEvent::Opened(peer));
    }

    /// The reach of the latest request.
    fn reach(&self) -> Reach {
        match self.rig.starts.last() {
            Some((_, Start::Http { reach, .. })) => *reach,
            other => panic!("{other:?}"),
        }
    }
}

// covers: REDIR-C-006, B-237
#[test]
fn hops_after_a_public_server_stay_public() {
    let private = "https://10.0.0.1/mcp";
    let named =
        |config: &mut ClientConfig| config.target = ClientConfig::url("https://server.example/mcp").unwrap().target;
    let mut http = modern(named);
    let call = http.rig.echo();
    http.reaches("1.1.1.1");
    http.redirect(307, ELSEWHERE);
    assert_eq!(http.reach(), Reach::Public, "the driver asks for the addresses of a name");
    let count = http.rig.starts.len();
    http.redirect(307, private);
    assert_eq!(http.urls(count), Vec::<String>::new());
    let refused = matches!(
        http.rig.outcome(call),
        Err(CallError::Http(e)) if e.redirect == Some(RedirectRefusal::NotPublic) && e.location.as_deref() == Some(private)
    );
    assert!(refused, "{:?}", http.rig.outcome(call));
    // Later requests at the URL after redirects too.
    let mut http = modern(named);
    http.rig.echo();
    http.reaches("1.1.1.1");
    http.redirect(307, ELSEWHERE);
    http.answer_last();
    http.rig.echo();
    assert_eq!((http.reach(), http.fields().get("host")), (Reach::Public, Some("elsewhere.example")));
    // A server of a private network may lead anywhere.
    let mut http = modern(named);
    http.rig.echo();
    http.reaches("10.9.9.9");
    http.redirect(307, private);
    assert_eq!(http.reach(), Reach::Any);
    // Within the origin, nothing changes by default.
    let mut http = modern(|config| {
        named(config);
        config.redirects = Redirects::default();
    });
    http.rig.echo();
    http.reaches("1.1.1.1");
    http.redirect(307, "/mcp/");
    assert_eq!(http.reach(), Reach::Any);
}

// covers: REDIR-C-003, B-157
#[test]
fn post_is_repeated_at_the_url_with_a_slash() {
    for status in [301, 302] {
        let mut http = Http::ready();
        let call = http.rig.echo();
        let (_, before, body, _) = http.posts().pop().unwrap();
        http.redirect(status, "/mcp/?x=1");
        let (_, after, again, _) = http.posts().pop().unwrap();
        assert_eq!((&*after.method, &*after.target, &again), ("POST", "/mcp/?x=1", &body));
        assert_eq!(before.headers, after.headers);
        http.answer_last();
        assert!(http.rig.outcome(call).is_ok());
        let call = http.rig.echo();
        http.redirect(status, "/other");
        assert!(
            matches!(http.rig.outcome(call), Err(CallError::Http(e)) if e.redirect == Some(RedirectRefusal::Method))
        );
    }
}
