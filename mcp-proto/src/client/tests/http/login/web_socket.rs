//! The handshake of a WebSocket carries the token, waits for the login, and ends with its error.

use super::*;
use crate::client::Redirects;
use crate::exchange::{Reach, UpgradeRefusal};

const URL: &str = "ws://127.0.0.1:8000/mcp?x=1";

/// A handshake: where it goes, and its head.
type Handshake = (ExchangeId, String, RequestHead);

impl Guarded {
    /// A client of a WebSocket at the same place.
    fn ws(set: impl FnOnce(&mut ClientConfig), record: Option<Box<Record>>) -> Self {
        let set = |config: &mut ClientConfig| {
            config.target = ClientConfig::url(URL).unwrap().target;
            set(config);
        };
        Self::of(set, record)
    }

    /// The same, up to its first handshake.
    fn ws_asking(set: impl FnOnce(&mut ClientConfig), record: Option<Box<Record>>) -> Self {
        let mut guarded = Self::ws(set, record);
        guarded.run();
        guarded
    }

    fn handshakes(&self) -> Vec<Handshake> {
        let handshake = |(exchange, start): &(ExchangeId, Start)| match start {
            Start::WebSocket { origin, head, .. } => {
                Some((*exchange, format!("{}:{}{}", origin.host, origin.port, head.target), head.clone()))
            }
            _ => None,
        };
        self.http.rig.starts.iter().filter_map(handshake).collect()
    }

    /// Returns the credentials of each handshake.
    fn shown(&self) -> Vec<Option<String>> {
        let field = |(.., head): &Handshake| head.headers.get("authorization").map(ToString::to_string);
        self.handshakes().iter().map(field).collect()
    }

    fn fails(&mut self, why: Closed) {
        let exchange = self.handshakes().pop().unwrap().0;
        self.http.rig.handle_event(exchange, ExchangeEvent::Failed { sent: Sent::No, why });
    }

    /// The server refuses the latest handshake with this challenge.
    fn refuses(&mut self, status: u16, challenge: &str) {
        let challenges = vec![challenge.to_string()];
        self.fails(Closed::NotUpgraded(Box::new(UpgradeRefusal { challenges, ..UpgradeRefusal::new(status) })));
    }

    /// The server redirects the latest handshake, from this address.
    fn redirects(&mut self, location: &str, address: Option<&str>) {
        let (location, address) = (Some(location.into()), address.map(|address| address.parse().unwrap()));
        self.fails(Closed::NotUpgraded(Box::new(UpgradeRefusal { location, address, ..UpgradeRefusal::new(307) })));
    }

    /// The server accepts the latest handshake, and the probe that follows.
    fn accepts(&mut self) {
        let exchange = self.handshakes().pop().unwrap().0;
        self.http.rig.handle_event(exchange, ExchangeEvent::Opened(Peer::default()));
        let id = self.http.rig.last_id();
        let message = json!({"jsonrpc": "2.0", "id": id, "result": discover(&["2026-07-28"])});
        self.http.item(exchange, Inbound::Message(parse(message.to_string().into(), 128).unwrap()));
        assert_eq!(self.http.rig.client.state(), State::Ready);
    }

    fn failure(&self) -> &NegotiationError {
        match self.http.rig.termination() {
            Some(Termination::Negotiation(why)) => why,
            other => panic!("{other:?}"),
        }
    }
}

/// The record after a login.
fn record() -> Option<Box<Record>> {
    Guarded::ready().record
}

// covers: AUTHD-C-005, WS-C-010, S0-45, B-214
#[test]
fn handshake_waits_for_the_record_then_for_the_login() {
    let mut guarded = Guarded::ws(|config| config.connect_timeout = Duration::from_secs(10), None);
    let call = guarded.http.rig.echo();
    assert!(guarded.handshakes().is_empty(), "the record is not known yet");
    assert_eq!(guarded.http.rig.client.state(), State::Probing);
    guarded.run();
    assert_eq!(guarded.shown(), [None]);
    guarded.refuses(401, "Bearer");
    // Only the limit of the login runs, however long the user needs.
    assert_eq!(guarded.http.rig.client.timeout_reason(), Some(Timer::Login));
    guarded.http.rig.tick(Duration::from_secs(100));
    assert_eq!((guarded.handshakes().len(), guarded.http.rig.has_ended(call)), (1, false));
    guarded.run();
    assert_eq!(guarded.shown(), [None, bearer("access-1")]);
    let handshakes = guarded.handshakes();
    assert_eq!(handshakes[0].1, handshakes[1].1);
    // The probe waits for the connection, once for each.
    assert_eq!(guarded.http.rig.methods(), ["server/discover"; 2]);
    guarded.accepts();
    assert_eq!(guarded.http.rig.methods(), ["server/discover", "server/discover", "tools/call"]);
    assert!(guarded.held.is_empty() && guarded.pages() == 1);
    let id = guarded.http.rig.last_id();
    let exchange = handshakes[1].0;
    guarded.http.item(exchange, Inbound::Message(parse(result(&id).to_string().into(), 128).unwrap()));
    assert!(guarded.http.rig.outcome(call).is_ok());
    guarded.http.rig.assert_at_rest();
}

// covers: AUTHT-C-001, S3-45
#[test]
fn stored_token_is_in_every_handshake() {
    let mut guarded = Guarded::ws_asking(|_| {}, record());
    assert_eq!(guarded.shown(), [bearer("access-1")]);
    // The server ends the connection because of the probe, so the client opens another one.
    let first = guarded.handshakes()[0].0;
    guarded.http.rig.handle_event(first, ExchangeEvent::Opened(Peer::default()));
    guarded.http.rig.handle_event(first, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Eof });
    assert_eq!(guarded.http.rig.client.state(), State::Initializing);
    assert_eq!(guarded.shown(), [bearer("access-1"), bearer("access-1")]);
    assert_eq!((guarded.pages(), guarded.paths.len()), (0, 0));
}

// covers: AUTHT-C-002
#[test]
fn token_is_in_no_url() {
    let guarded = Guarded::ws_asking(|_| {}, record());
    assert_eq!(guarded.handshakes()[0].1, "127.0.0.1:8000/mcp?x=1");
}

#[test]
fn expired_token_is_renewed_before_the_handshake() {
    let mut guarded = Guarded::ws(|config| config.origin_unix = Duration::from_secs(3601), record());
    guarded.run();
    assert_eq!(guarded.shown(), [bearer("access-1")]);
    assert_eq!((guarded.tokens, guarded.pages()), (1, 0), "this store has issued no token before");
    assert_eq!(guarded.paths.last().map(String::as_str), Some("/token"));
    guarded.accepts();
    guarded.http.rig.assert_at_rest();
}

#[test]
fn refused_token_is_renewed_and_the_handshake_repeated() {
    let mut guarded = Guarded::ws(|_| {}, record());
    guarded.tokens = 1;
    guarded.run();
    guarded.refuses(401, "Bearer error=\"invalid_token\"");
    assert_eq!(guarded.handshakes().len(), 1);
    guarded.run();
    assert_eq!(guarded.shown(), [bearer("access-1"), bearer("access-2")]);
    assert_eq!(guarded.pages(), 0);
    guarded.accepts();
    guarded.http.rig.assert_at_rest();
}

// covers: AUTHS-C-005, WS-C-010
#[test]
fn missing_scope_of_a_handshake_is_asked_for() {
    let mut guarded = Guarded::ws(|_| {}, record());
    guarded.tokens = 1;
    guarded.run();
    guarded.refuses(403, "Bearer error=\"insufficient_scope\", scope=\"write\"");
    guarded.run();
    assert_eq!((guarded.shown(), guarded.pages()), (vec![bearer("access-1"), bearer("access-2")], 1));
    // A second time it is the end.
    guarded.refuses(403, "Bearer error=\"insufficient_scope\", scope=\"write\"");
    guarded.run();
    assert_eq!(guarded.failure().unauthorized(), Some(&AuthError::Scope { scopes: "write".into() }));
    assert_eq!(guarded.pages(), 1);
}

// covers: B-250
#[test]
fn declined_login_ends_the_negotiation_and_its_calls() {
    let mut guarded = Guarded::ws_asking(|_| {}, None);
    guarded.declines = true;
    let call = guarded.http.rig.echo();
    guarded.refuses(401, "Bearer");
    guarded.run();
    assert_eq!(guarded.failure().unauthorized(), Some(&AuthError::Declined));
    assert_eq!(guarded.failure().to_string(), "connecting failed after 0 ms: the user declined to log in");
    let error = guarded.http.rig.outcome(call).clone().unwrap_err();
    assert_eq!((error.unauthorized(), error.sent()), (Some(&AuthError::Declined), Sent::No));
    // 401 says nothing of the era: no other handshake follows.
    assert_eq!((guarded.handshakes().len(), guarded.pages()), (1, 1));
    assert!(guarded.held.is_empty());
    guarded.http.rig.assert_at_rest();
}

// covers: B-241
#[test]
fn token_of_the_login_is_refused_once() {
    let mut guarded = Guarded::ws_asking(|_| {}, None);
    for _ in 0..2 {
        guarded.refuses(401, "Bearer");
        guarded.run();
    }
    assert_eq!(guarded.failure().unauthorized(), Some(&AuthError::Rejected));
    assert_eq!((guarded.handshakes().len(), guarded.pages(), guarded.tokens), (2, 1, 1));
    guarded.http.rig.assert_at_rest();
}

#[test]
fn handshake_without_a_user_ends_with_its_reason() {
    let not_interactive = |config: &mut ClientConfig| {
        let mut auth = AuthConfig::new("test");
        auth.interactive = false;
        config.auth = Some(Arc::new(auth));
    };
    let mut guarded = Guarded::ws_asking(not_interactive, None);
    guarded.refuses(401, "Bearer");
    guarded.run();
    assert_eq!(guarded.failure().unauthorized(), Some(&AuthError::LoginRequired));
    assert_eq!((guarded.handshakes().len(), guarded.pages()), (1, 0));
}

#[test]
fn refusal_that_is_no_challenge_is_reported_as_it_is() {
    for (status, field) in [(403, "Bearer"), (404, "Bearer"), (500, "")] {
        let mut guarded = Guarded::ws_asking(|_| {}, record());
        guarded.refuses(status, field);
        guarded.run();
        let why = guarded.failure();
        assert_eq!(why.unauthorized(), None);
        assert!(why.to_string().contains(&format!("HTTP {status} in place of a websocket")), "{why}");
        assert_eq!((guarded.handshakes().len(), guarded.pages()), (1, 0));
    }
}

#[test]
fn client_that_closes_ends_its_login_first() {
    for (has_begun, count) in [(false, 0), (true, 1)] {
        let mut guarded = Guarded::ws(|_| {}, None);
        if has_begun {
            guarded.run();
            guarded.refuses(401, "Bearer");
        }
        let call = guarded.http.rig.echo();
        guarded.http.rig.client.close(guarded.http.rig.now);
        guarded.http.rig.drain();
        assert_eq!(guarded.http.rig.events.last(), Some(&Event::Terminated(Termination::Requested)));
        assert!(matches!(guarded.http.rig.outcome(call), Err(CallError::Closed { why: Closed::Aborted, .. })));
        let is_release = |output: &auth::Output| matches!(output, auth::Output::Release(_, Purpose::Login));
        assert_eq!(guarded.outputs().iter().filter(|output| is_release(output)).count(), count);
        // Answers to its steps come too late.
        guarded.run();
        assert_eq!(guarded.handshakes().len(), count);
        assert_eq!(guarded.http.rig.client.poll_timeout(), None);
    }
}

// covers: REDIR-C-005, WS-C-010, B-238
#[test]
fn redirected_handshake_has_no_token_at_another_origin() {
    let follow = |config: &mut ClientConfig| config.redirects = Redirects::Follow { max: 5 };
    let mut guarded = Guarded::ws_asking(follow, record());
    guarded.redirects("ws://127.0.0.1:8001/x", None);
    // Back at its own origin, it has the token again.
    guarded.redirects("http://127.0.0.1:8000/y", None);
    let places: Vec<String> = guarded.handshakes().into_iter().map(|(_, place, _)| place).collect();
    assert_eq!(places, ["127.0.0.1:8000/mcp?x=1", "127.0.0.1:8001/x", "127.0.0.1:8000/y"]);
    assert_eq!(guarded.shown(), [bearer("access-1"), None, bearer("access-1")]);
    guarded.accepts();
    // The other origin gets no login either.
    let mut guarded = Guarded::ws_asking(follow, record());
    guarded.redirects("ws://127.0.0.1:8001/x", None);
    guarded.refuses(401, "Bearer");
    guarded.run();
    assert!(guarded.failure().to_string().contains("HTTP 401"), "{}", guarded.failure());
    assert_eq!((guarded.failure().unauthorized(), guarded.paths.len()), (None, 0));
}

// covers: B-237
#[test]
fn address_of_another_origin_is_not_that_of_the_server() {
    let far = |config: &mut ClientConfig| {
        config.redirects = Redirects::Follow { max: 5 };
        config.target = ClientConfig::url("wss://example.com/mcp").unwrap().target;
    };
    let mut guarded = Guarded::ws_asking(far, None);
    let metadata = "{\"resource\":\"https://example.com/mcp\",\"authorization_servers\":[\"https://as.test\"]}";
    guarded.faults.insert("/.well-known/oauth-protected-resource/mcp".into(), (200, metadata));
    guarded.redirects("wss://inner.test/mcp", Some("10.0.0.1"));
    let exchange = guarded.handshakes().pop().unwrap().0;
    let address = Peer::tcp("127.0.0.1:443".parse().unwrap());
    guarded.http.rig.handle_event(exchange, ExchangeEvent::Opened(address));
    guarded.http.rig.client.login(guarded.http.rig.now);
    guarded.http.rig.drain();
    guarded.run();
    let reach = guarded.http.rig.starts.iter().find_map(|(_, start)| match start {
        Start::Http { origin, reach, .. } if &*origin.host == "as.test" => Some(*reach),
        _ => None,
    });
    assert_eq!(reach, Some(Reach::Public), "{:?}", guarded.paths);
}
