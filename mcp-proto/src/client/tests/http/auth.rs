//! Challenges: the questions to the application, and the repeated requests, with their number and
//! credentials.

use super::*;
use crate::Authorization;
use crate::InputAnswer;
use crate::input::AuthKey;

mod waiting;

type Post = (ExchangeId, RequestHead, Value, bool);

const BEARER: &str = "Bearer realm=\"mcp\", resource_metadata=\"https://h/.well-known\"";
const SCOPE: &str = "Bearer error=\"insufficient_scope\", scope=\"write\"";

fn authorizing(config: &mut ClientConfig) {
    config.authorize = true;
}

/// A client of a modern server whose application answers challenges.
fn modern(set: impl FnOnce(&mut ClientConfig)) -> Http {
    let mut http = Http::with(|config| {
        authorizing(config);
        set(config);
    });
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
    http.rig.clear();
    http
}

/// Answers the exchange with a challenge.
fn challenge(http: &mut Http, exchange: ExchangeId, status: u16, hint: &str) {
    let headers = Headers::new().with("WWW-Authenticate", hint);
    http.item(exchange, Inbound::Response(ResponseHead { status, headers }));
    http.item(exchange, Inbound::Body(Bytes::from_static(b"who are you")));
    http.item(exchange, Inbound::End);
}

fn challenge_last(http: &mut Http, status: u16, hint: &str) {
    let exchange = http.last().0;
    challenge(http, exchange, status, hint);
}

/// Returns the challenges that the application received.
fn needed(http: &Http) -> Vec<(AuthKey, Challenge, Vec<CallId>)> {
    let needed = |event: &Event| match event {
        Event::AuthNeeded { token, challenge, targets } => Some((token.key(), challenge.clone(), targets.clone())),
        _ => None,
    };
    http.rig.events.iter().filter_map(needed).collect()
}

fn asked(http: &Http) -> usize {
    needed(http).len()
}

fn give(http: &mut Http, key: AuthKey, with: Authorization) {
    let input = Input::Command(ClientCommand::Authorize(key, with));
    http.rig.client.apply(http.rig.now, input).unwrap();
    http.rig.drain();
}

/// Answers the latest challenge with this token.
fn token(http: &mut Http, token: &str) {
    let key = needed(http).pop().unwrap().0;
    give(http, key, Authorization::Headers(Headers::new().with("Authorization", format!("Bearer {token}"))));
}

fn refuse(http: &mut Http) {
    let key = needed(http).pop().unwrap().0;
    give(http, key, Authorization::Refuse);
}

/// Returns the bytes of the body of each exchange, in the order of their starts.
fn bodies(http: &Http) -> Vec<Bytes> {
    let body = |(_, start): &(ExchangeId, Start)| match start {
        Start::Http { body, .. } => body.clone(),
        Start::Duplex(_) | Start::WebSocket { .. } => panic!(),
    };
    http.rig.starts.iter().map(body).collect()
}

fn last_post(http: &Http) -> Post {
    http.posts().pop().unwrap()
}

/// Returns all parts of a request except its credentials.
fn bare((_, head, body, repeatable): &Post) -> (String, Vec<(String, String)>, Value, bool) {
    let fields = head.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
    let fields = fields.map(|(name, value)| (name.to_string(), value.to_string())).collect();
    (head.method.to_string(), fields, body.clone(), *repeatable)
}

fn credentials(post: &Post) -> Vec<String> {
    post.1.headers.all("authorization").map(ToString::to_string).collect()
}

// covers: S0-45, R-28, B-161, R-29
#[test]
fn challenge_is_asked_once_and_repeats_its_requests() {
    let mut http = modern(|config| {
        config.headers = Headers::new().with("authorization", "Bearer old").with("X-Tenant", "t");
    });
    let calls: Vec<CallId> = (0..3).map(|_| http.rig.echo()).collect();
    let first = http.posts()[1..].to_vec();
    for (exchange, ..) in &first {
        challenge(&mut http, *exchange, 401, BEARER);
    }
    let asked = needed(&http);
    assert_eq!(asked.len(), 1, "one question for three requests");
    assert_eq!((asked[0].1.status, asked[0].1.hints.www_authenticate.clone()), (401, vec![BEARER.to_string()]));
    assert_eq!(asked[0].2, calls[..1]);
    assert_eq!(http.posts().len(), 4, "they wait");
    token(&mut http, "new");
    let again = http.posts()[4..].to_vec();
    assert_eq!(again.len(), 3);
    assert_eq!(bodies(&http)[4..], bodies(&http)[1..4], "the bytes of the body are the same");
    for (before, after) in first.iter().zip(&again) {
        assert_eq!(bare(before), bare(after));
        assert_eq!(credentials(before), ["Bearer old"]);
        assert_eq!(credentials(after), ["Bearer new"], "in place of the one of the configuration");
    }
    for (exchange, _, body, _) in &again {
        http.answer(*exchange, 200, &result(&body["id"]));
    }
    assert!(calls.iter().all(|call| http.rig.outcome(*call).is_ok()));
    // Later requests have the credentials from the start.
    http.rig.echo();
    assert_eq!(credentials(&last_post(&http)), ["Bearer new"]);
    assert!(http.rig.aborted.is_empty());
}

// covers: S0-45, R-28
#[test]
fn each_challenge_resumes_its_own_requests() {
    let mut http = modern(|_| {});
    let calls = [http.rig.echo(), http.rig.echo(), http.rig.echo()];
    let posts = http.posts()[1..].to_vec();
    challenge(&mut http, posts[0].0, 401, BEARER);
    challenge(&mut http, posts[1].0, 403, SCOPE);
    challenge(&mut http, posts[2].0, 401, "Bearer realm=\"other\"");
    let asked = needed(&http);
    assert_eq!(asked.iter().map(|asked| asked.2.clone()).collect::<Vec<_>>(), calls.map(|call| vec![call]));
    give(&mut http, asked[1].0, Authorization::Headers(Headers::new().with("Authorization", "Bearer wide")));
    assert_eq!(http.posts().len(), 5);
    assert_eq!(bare(&last_post(&http)), bare(&posts[1]));
    give(&mut http, asked[0].0, Authorization::Refuse);
    assert!(http.rig.outcome(calls[0]).is_err());
    assert!(!http.rig.has_ended(calls[1]) && !http.rig.has_ended(calls[2]));
    // A token can be answered once.
    give(&mut http, asked[1].0, Authorization::Headers(Headers::new().with("Authorization", "Bearer twice")));
    assert_eq!(http.posts().len(), 5);
    http.rig.echo();
    assert_eq!(credentials(&last_post(&http)), ["Bearer wide"]);
}

// covers: S0-45, S0-46, S0-47, R-12, R-28
#[test]
fn second_refusal_ends_the_call_with_the_response() {
    let mut http = modern(|_| {});
    let call = http.rig.echo();
    challenge_last(&mut http, 401, BEARER);
    token(&mut http, "bad");
    let headers = Headers::new().with("www-authenticate", "Basic").with("Www-Authenticate", "Bearer x=\"1\"");
    let headers = headers.with("mcp-auth-server", "https://login");
    let exchange = http.last().0;
    http.item(exchange, Inbound::Response(ResponseHead { status: 401, headers }));
    http.item(exchange, Inbound::Body(Bytes::from_static(b"go away")));
    http.item(exchange, Inbound::End);
    assert_eq!(asked(&http), 1);
    let error = http.rig.outcome(call).clone().unwrap_err();
    assert_eq!(
        error.to_string(),
        "HTTP 401: go away [WWW-Authenticate: Basic; WWW-Authenticate: Bearer x=\"1\"; Mcp-Auth-Server: https://login]"
    );
    let CallError::Http(error) = error else { panic!("{error:?}") };
    assert_eq!(error.auth.www_authenticate, ["Basic", "Bearer x=\"1\""]);
    assert_eq!(error.auth.auth_server.as_deref(), Some("https://login"));
    http.assert_at_rest();
    // Without a handler for challenges, the application is not asked.
    for status in [401, 403] {
        let mut http = Http::ready();
        let call = http.rig.echo();
        challenge_last(&mut http, status, SCOPE);
        assert_eq!(asked(&http), 0);
        let text = format!("HTTP {status}: who are you [WWW-Authenticate: {SCOPE}]");
        assert_eq!(http.rig.outcome(call).clone().unwrap_err().to_string(), text);
        http.assert_at_rest();
    }
}

// covers: S0-45, R-28
#[test]
fn insufficient_scope_is_stepped_up_once() {
    let mut http = modern(|_| {});
    let call = http.rig.echo();
    challenge_last(&mut http, 401, BEARER);
    token(&mut http, "narrow");
    challenge_last(&mut http, 403, SCOPE);
    assert_eq!((asked(&http), needed(&http)[1].1.status), (2, 403));
    token(&mut http, "wide");
    challenge_last(&mut http, 403, SCOPE);
    assert_eq!((asked(&http), http.posts().len()), (2, 4));
    assert!(matches!(http.rig.outcome(call), Err(CallError::Http(e)) if e.status == 403));
    http.assert_at_rest();

    for (set, hint, asks) in [(false, BEARER, 0), (false, "", 0), (true, BEARER, 1), (true, "", 1)] {
        let mut http = modern(|config| config.compat.retry_plain_403 = set);
        let call = http.rig.echo();
        challenge_last(&mut http, 403, hint);
        assert_eq!(asked(&http), asks, "{hint}");
        assert_eq!(http.rig.has_ended(call), asks == 0);
        if asks > 0 {
            token(&mut http, "x");
            challenge_last(&mut http, 403, hint);
            assert_eq!(asked(&http), 1);
        }
        assert!(matches!(http.rig.outcome(call), Err(CallError::Http(e)) if e.status == 403));
        http.assert_at_rest();
    }
}

//
#[test]
fn challenge_with_a_json_rpc_error_is_recognised() {
    let mut http = modern(|_| {});
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.answer(exchange, 401, &error(&id, -32001));
    assert_eq!(asked(&http), 1);
    refuse(&mut http);
    let error = http.rig.outcome(call).clone().unwrap_err();
    assert!(matches!(&error, CallError::Http(e) if e.status == 401 && e.error.as_ref().unwrap().code == -32001));
    http.assert_at_rest();
}

/// Returns a client for each kind of request. The request is the last exchange that was started.
fn kinds() -> Vec<(&'static str, Http)> {
    let legacy = |set: &dyn Fn(&mut ClientConfig)| {
        let mut http = Http::legacy(|config| {
            authorizing(config);
            config.capabilities.roots = Some(Default::default());
            set(config);
        });
        http.rig.clear();
        http
    };
    let mut kinds = vec![
        ("probe", Http::with(authorizing)),
        (
            "initialize",
            Http::with(|config| {
                authorizing(config);
                config.policy = Policy::Legacy;
            }),
        ),
        ("initialized", Http::initialized(authorizing)),
    ];
    let mut http = Http::initialized(authorizing);
    let note = http.last().0;
    http.refuse(note, 202);
    kinds.push(("listener", http));
    let mut http = legacy(&|_| {});
    let listener = http.last().0;
    http.numbered(listener, "e1", None, None);
    http.item(listener, Inbound::End);
    http.rig.tick(ms(1100));
    kinds.push(("listener that goes on", http));
    let mut http = legacy(&|_| {});
    http.rig.echo();
    kinds.push(("call", http));
    let mut http = legacy(&|_| {});
    http.rig.echo();
    let exchange = http.last().0;
    http.stream(exchange);
    http.numbered(exchange, "e1", None, None);
    http.item(exchange, Inbound::End);
    http.rig.tick(ms(1100));
    kinds.push(("call that goes on", http));
    let mut http = legacy(&|_| {});
    http.rig.client.notify(http.rig.now, "acme/note", Object::new()).unwrap();
    http.rig.drain();
    kinds.push(("notification", http));
    let mut http = legacy(&|_| {});
    let listener = http.last().0;
    http.event(listener, &json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}));
    http.rig.reply(http.rig.questions()[0].0, InputAnswer::roots(["file:///"]));
    kinds.push(("response", http));
    let mut http = legacy(&|config| config.ping = Some(Duration::from_secs(60)));
    http.rig.tick(Duration::from_secs(60));
    kinds.push(("ping", http));
    let mut http = modern(|_| {});
    http.rig.echo();
    kinds.push(("modern call", http));
    let mut http = modern(|_| {});
    http.rig.client.notify(http.rig.now, "acme/note", Object::new()).unwrap();
    http.rig.drain();
    kinds.push(("modern notification", http));
    kinds.push(("subscription", subscription::watching(authorizing)));
    kinds
}

// covers: B-159, B-161, B-200, S0-45, S0-18, R-28
#[test]
fn every_kind_of_request_handles_challenges() {
    for (kind, mut http) in kinds() {
        let (count, before) = (http.posts().len(), last_post(&http));
        let subject = bodies(&http).pop().unwrap();
        challenge(&mut http, before.0, 401, BEARER);
        assert_eq!((asked(&http), http.posts().len()), (1, count), "{kind}");
        token(&mut http, "t");
        let again = http.posts()[count..].to_vec();
        assert_eq!(again.len(), 1, "{kind}");
        assert_eq!(bare(&again[0]), bare(&before), "{kind}");
        assert_eq!(bodies(&http)[count], subject, "{kind}");
        assert_eq!(credentials(&again[0]), ["Bearer t"], "{kind}");
        challenge(&mut http, again[0].0, 401, BEARER);
        assert_eq!(asked(&http), 1, "{kind}: a second time is the end");
        let repeated = http.posts()[count + 1..].iter().any(|post| bare(post) == bare(&before));
        assert!(!repeated, "{kind}");
        http.rig.client.close(http.rig.now);
        http.rig.drain();
        http.rig.tick(Duration::from_secs(2));
        assert!(http.rig.termination().is_some(), "{kind}");
        http.assert_at_rest();
    }
    // Refused, it ends at once, and nothing is sent for it.
    for (kind, mut http) in kinds() {
        let (count, before) = (http.posts().len(), last_post(&http));
        challenge(&mut http, before.0, 401, BEARER);
        refuse(&mut http);
        assert!(!http.posts()[count..].iter().any(|post| bare(post) == bare(&before)), "{kind}");
        assert!(http.rig.client.cx.link.http().is_some_and(|link| link.live() == link.ids()), "{kind}");
        http.rig.client.close(http.rig.now);
        http.rig.drain();
        http.rig.tick(Duration::from_secs(2));
        http.assert_at_rest();
    }
}

// covers: B-200, R-28, S0-47
#[test]
fn challenge_to_the_handshake_decides_no_era() {
    for legacy in [false, true] {
        let mut http = Http::with(|config| {
            authorizing(config);
            config.policy = if legacy { Policy::Legacy } else { Policy::Auto };
        });
        challenge_last(&mut http, 401, BEARER);
        assert_eq!((asked(&http), needed(&http)[0].2.clone()), (1, vec![]));
        assert_eq!(http.rig.termination(), None);
        refuse(&mut http);
        assert_eq!(http.posts().len(), 1, "it is no reason to try another era");
        let text = format!("HTTP 401: who are you [WWW-Authenticate: {BEARER}]");
        let stage = if legacy { Stage::Initialize } else { Stage::Discover };
        let found = matches!(
            http.rig.termination(),
            Some(Termination::Negotiation(NegotiationError { stage: at, cause: NegotiationCause::Http(e), .. }))
                if *at == stage && e.to_string() == text
        );
        assert!(found, "{:?}", http.rig.termination());
        http.assert_at_rest();
    }
}

// covers: B-158, S3-17
#[test]
fn fields_reserved_for_the_engine_are_left_out() {
    let mut http = Http::legacy(authorizing);
    http.rig.echo();
    challenge_last(&mut http, 401, BEARER);
    let mut fields = Headers::new().with("Authorization", "Bearer t").with("DPoP", "proof").with("X-Cut", "a\r\nX: 1");
    for name in ["Host", "Accept", "content-length", "Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID", "a b"] {
        fields.push(name, "evil");
    }
    let key = needed(&http)[0].0;
    give(&mut http, key, Authorization::Headers(fields));
    let (_, head, ..) = last_post(&http);
    assert_eq!((head.headers.get("authorization"), head.headers.get("dpop")), (Some("Bearer t"), Some("proof")));
    assert!(head.headers.iter().all(|(_, value)| value != "evil" && !value.contains('\n')), "{head:?}");
    for name in ["host", "accept", "mcp-session-id", "mcp-protocol-version"] {
        assert_eq!(head.headers.all(name).count(), 1);
    }
    assert!(!format!("{head:?}").contains("Bearer t"), "and no log shows it");
}

// covers: R-28, S0-45
#[test]
fn refusing_server_gets_each_request_at_most_twice() {
    for legacy in [false, true] {
        let mut http = Http::with(|config| {
            authorizing(config);
            config.watch.tools = true;
            config.ping = Some(Duration::from_secs(60));
            config.verdict = legacy.then_some(Verdict::new(ProtocolVersion::V2025_11_25));
        });
        let mut answered = 0;
        // The handshake passes, so that there are requests to refuse.
        match legacy {
            true => http.accept("s1"),
            false => {
                let (exchange, id) = http.last();
                let mut body = discover_body(&id, &["2026-07-28"]);
                body["result"]["capabilities"] = json!({"tools": {"listChanged": true}});
                http.answer(exchange, 200, &body);
            }
        }
        let mut next = 1;
        for _ in 0..5 {
            http.rig.echo();
            http.rig.client.notify(http.rig.now, "acme/note", Object::new()).unwrap();
            http.rig.drain();
            while next < http.posts().len() {
                let exchange = http.posts()[next].0;
                next += 1;
                assert!(next < 100, "it loops");
                if http.rig.is_open(exchange) {
                    challenge(&mut http, exchange, 401, BEARER);
                }
                for (key, ..) in needed(&http).split_off(answered) {
                    answered += 1;
                    give(
                        &mut http,
                        key,
                        Authorization::Headers(Headers::new().with("Authorization", format!("Bearer {answered}"))),
                    );
                }
            }
            http.rig.tick(Duration::from_secs(61));
        }
        assert_eq!(http.rig.client.running(), 0);
        let posts: Vec<_> = http.posts()[1..].iter().map(bare).collect();
        for post in &posts {
            // Notifications are identical, so they are counted together.
            let most = if post.2.get("id").is_some() || post.0 == "GET" { 2 } else { 10 };
            assert!(posts.iter().filter(|other| *other == post).count() <= most, "{post:?}");
        }
        assert!(posts.len() <= 60, "{}", posts.len());
    }
}
