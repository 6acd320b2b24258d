//! The cache of results: what it stores, for how long, for whom, and what drops it.

mod model;

use super::subscription::{acknowledged, closing, hello, told};
use super::*;
use crate::Authorization;
use crate::Pages;
use crate::exchange::Headers;
use crate::input::{AuthKey, AuthToken};
use crate::model::page::List;
use crate::model::{prompts, resources};
use crate::stats::CacheStats;

const NEWEST: ProtocolVersion = ProtocolVersion::V2026_07_28;

pub(super) fn with_cache(set: impl FnOnce(&mut Cache)) -> Option<Cache> {
    let mut cache = Cache::default();
    set(&mut cache);
    Some(cache)
}

fn ready(version: ProtocolVersion, set: impl FnOnce(&mut Cache)) -> Rig {
    Rig::ready(version, ClientConfig { cache: with_cache(set), ..ClientConfig::given() })
}

fn caching() -> Rig {
    ready(NEWEST, |_| {})
}

/// A complete result that is fresh for a minute.
fn page(n: u64) -> Value {
    json!({"resultType": "complete", "n": n, "ttlMs": 60_000, "cacheScope": "public"})
}

fn private(n: u64) -> Value {
    let mut result = page(n);
    result["cacheScope"] = json!("private");
    result
}

fn read(uri: &str) -> Call<resources::Read> {
    resources::read(uri)
}

/// Returns the member `n` of the result of a call, and its age.
fn told_by(rig: &Rig, call: CallId) -> (u64, Option<Duration>) {
    let result = rig.outcome(call).as_ref().unwrap();
    (Object::read(&result.json).unwrap().required("n").unwrap(), result.age)
}

/// Makes a call that the cache answers. Returns the member `n` of the result.
fn hit(rig: &mut Rig, call: Call<impl Method>) -> u64 {
    let (sent, timer) = (rig.sent.len(), rig.client.poll_timeout());
    let call = rig.call(call);
    assert_eq!((rig.sent.len(), rig.client.poll_timeout()), (sent, timer), "nothing is sent");
    let (n, age) = told_by(rig, call);
    assert!(age.is_some());
    n
}

/// Makes a call that is sent.
fn asks(rig: &mut Rig, call: Call<impl Method>) -> CallId {
    let sent = rig.sent.len();
    let call = rig.call(call);
    assert_eq!(rig.sent.len(), sent + 1, "it is sent");
    assert!(!rig.has_ended(call));
    call
}

/// Makes a call that is sent, and answers it.
fn fetch(rig: &mut Rig, call: Call<impl Method>, result: &Value) {
    let call = asks(rig, call);
    rig.answer(&rig.last_id(), result.clone());
    assert!(rig.outcome(call).as_ref().unwrap().age.is_none(), "it is of the server");
}

fn notify(rig: &mut Rig, method: &str, params: &Value) {
    rig.say(json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

// covers: CACHE-C-006, CACHE-C-007, CACHE-C-008, CACHE-C-011, CACHE-C-012
#[test]
fn result_is_fresh_until_its_time_is_over() {
    for version in [NEWEST, ProtocolVersion::V2025_11_25] {
        let mut rig = ready(version, |_| {});
        fetch(&mut rig, tools::list(), &page(1));
        assert_eq!(rig.client.poll_timeout(), None, "the cache fetches nothing by itself");
        rig.tick(ms(59_999));
        let call = rig.call(tools::list());
        assert_eq!(told_by(&rig, call), (1, Some(ms(59_999))));
        assert!(matches!(rig.events.last(), Some(Event::Ended { .. })), "in the order of the events");
        rig.tick(ms(1));
        fetch(&mut rig, tools::list(), &page(2));
        assert_eq!(hit(&mut rig, tools::list()), 2);
        let stats = rig.client.cache_stats();
        assert_eq!((stats.hits, stats.misses, stats.entries), (2, 2, 1), "{version}");
        rig.assert_at_rest();
    }
}

// covers: CACHE-C-006, CACHE-C-009, CACHE-C-010
#[test]
fn result_without_a_time_is_stored_by_choice() {
    let absent = json!({"n": 1});
    for (ttl, stored, by_choice) in [
        (json!(0), false, false),
        (json!(-1), false, false),
        (json!("soon"), false, false),
        (json!(null), false, true),
        (json!(1), true, true),
        (json!(1e300), true, true),
    ] {
        for (default_ttl, is_stored) in [(Duration::ZERO, stored), (ms(50), by_choice)] {
            for version in [NEWEST, ProtocolVersion::V2024_11_05] {
                let mut rig = ready(version, |cache| cache.default_ttl = default_ttl);
                let mut result = absent.clone();
                result["ttlMs"] = ttl.clone();
                fetch(&mut rig, tools::list(), &result);
                assert_eq!(rig.client.cache_stats().entries, usize::from(is_stored), "{ttl} {default_ttl:?}");
            }
        }
    }
    let mut rig = ready(ProtocolVersion::V2025_06_18, |cache| cache.default_ttl = ms(50));
    fetch(&mut rig, tools::list(), &absent);
    rig.tick(ms(49));
    assert_eq!(hit(&mut rig, tools::list()), 1);
    // It has no scope either.
    rig.client.credentials_changed(rig.now);
    fetch(&mut rig, tools::list(), &absent);
    rig.tick(ms(50));
    asks(&mut rig, tools::list());
}

// covers: CACHE-C-007
#[test]
fn time_of_a_result_is_bounded() {
    let mut rig = ready(NEWEST, |cache| cache.max_ttl = ms(100));
    fetch(&mut rig, tools::list(), &page(1));
    rig.tick(ms(99));
    hit(&mut rig, tools::list());
    rig.tick(ms(1));
    asks(&mut rig, tools::list());
}

// covers: CACHE-C-003, CACHE-C-018, CACHE-S-019
#[test]
fn only_the_same_request_has_the_same_result() {
    let mut rig = caching();
    let all = |text: &str| custom::<Value>(text.to_string(), &Object::new());
    let methods = ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    for (n, method) in methods.iter().enumerate() {
        fetch(&mut rig, all(method), &page(n as u64));
    }
    for (n, method) in methods.iter().enumerate() {
        assert_eq!(hit(&mut rig, all(method)), n as u64);
    }
    // A page has its own time.
    let second = || tools::list().param("cursor", Ok("2".into()));
    let mut short = page(12);
    short["ttlMs"] = json!(10);
    fetch(&mut rig, second(), &short);
    fetch(&mut rig, read("x:a"), &page(20));
    fetch(&mut rig, read("x:b"), &page(21));
    fetch(&mut rig, read("x:b").param("view", Ok("raw".into())), &page(22));
    assert_eq!((hit(&mut rig, second()), hit(&mut rig, tools::list())), (12, 1));
    assert_eq!((hit(&mut rig, read("x:a")), hit(&mut rig, read("x:b"))), (20, 21));
    assert_eq!(hit(&mut rig, read("x:b").param("view", Ok("raw".into()))), 22);
    rig.tick(ms(10));
    assert_eq!(hit(&mut rig, tools::list()), 1);
    asks(&mut rig, second());
    // What does not change the result: progress, a level, a trace.
    let meta = RawJson::parse(r#"{"x":1}"#).unwrap();
    assert_eq!(hit(&mut rig, read("x:a").param("_meta", Ok(meta)).progress().timeout(ms(1))), 20);
    // Other methods have no results that last.
    for method in ["tools/call", "prompts/get", "completion/complete", "Tools/List", "ping", "acme/list"] {
        fetch(&mut rig, all(method), &page(1));
        fetch(&mut rig, all(method), &page(2));
    }
    // A read needs a URI.
    fetch(&mut rig, all("resources/read"), &page(1));
    asks(&mut rig, all("resources/read"));
}

#[test]
fn parts_of_a_key_are_not_confused() {
    let mut rig = caching();
    let mut call = |members: &[(&str, &str)]| {
        let of = |call: Call<_>, (name, value): &(&str, &str)| call.param(name, Ok((*value).into()));
        asks(&mut rig, members.iter().fold(read("x:a"), of));
        rig.answer(&rig.last_id(), page(1));
    };
    call(&[("a", "b"), ("c", "d")]);
    call(&[("a", "b\",\"c\":\"d")]);
    call(&[("a", "b"), ("c", "d"), ("e", "")]);
    call(&[("ab", "")]);
    call(&[("a", "b")]);
    call(&[]);
}

// covers: CACHE-C-004, CACHE-S-002
#[test]
fn result_of_a_request_with_input_is_not_stored() {
    let mut config = ClientConfig::given().with_elicitation();
    config.cache = Some(Cache::default());
    let mut rig = Rig::ready(NEWEST, config);
    for member in ["inputResponses", "requestState"] {
        let call = || read("x:a").param(member, Ok(RawJson::empty_object()));
        fetch(&mut rig, call(), &page(1));
        fetch(&mut rig, call(), &page(1));
    }
    // Neither is that of a call in which the server asks for something, nor its question.
    let question = json!({
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}},
    });
    let call = asks(&mut rig, read("x:a"));
    let asked = json!({
        "resultType": "input_required", "inputRequests": {"q": question}, "requestState": "s",
        "ttlMs": 60_000, "cacheScope": "public",
    });
    rig.answer(&rig.last_id(), asked);
    let (key, _) = rig.questions().pop().unwrap();
    rig.reply(key, InputAnswer::Elicitation(crate::ElicitResult::Decline));
    rig.answer(&rig.last_id(), page(2));
    assert_eq!(told_by(&rig, call), (2, None));
    asks(&mut rig, read("x:a"));
    // A round without a question has a state.
    rig.answer(&rig.last_id(), json!({"resultType": "input_required", "requestState": "s"}));
    rig.tick(ms(1_000));
    assert_eq!(rig.sent.last().unwrap()["params"]["requestState"], "s");
    rig.answer(&rig.last_id(), page(3));
    assert_eq!(rig.client.cache_stats().entries, 0);
}

// covers: CACHE-C-004
#[test]
fn result_of_another_kind_is_not_stored() {
    let mut config = ClientConfig { cache: Some(Cache::default()), ..ClientConfig::given() };
    config.capabilities.extensions.declare("com.example/x", Object::new()).unwrap();
    let mut rig = Rig::new(ClientConfig { versions: Versions::new([NEWEST]), ..config });
    rig.open();
    let mut hello = discover(&["2026-07-28"]);
    hello["capabilities"]["extensions"] = json!({"com.example/x": {}});
    rig.answer(&rig.last_id(), hello);
    rig.clear();
    let call = || tools::list().accept_result("com.example/x", "deferred");
    let mut result = page(1);
    result["resultType"] = json!("deferred");
    fetch(&mut rig, call(), &result);
    fetch(&mut rig, call(), &page(2));
    assert_eq!(hit(&mut rig, call()), 2);
    // An older revision has no kinds, and an unknown one is none that can be stored.
    let mut rig = ready(ProtocolVersion::V2025_11_25, |_| {});
    fetch(&mut rig, tools::list(), &result);
    fetch(&mut rig, tools::list(), &page(2));
}

// covers: CACHE-C-015, CACHE-B-014
#[test]
fn private_result_ends_with_the_credentials() {
    for way in 0..3 {
        let mut rig = caching();
        let change = |rig: &mut Rig| match way {
            0 => rig.client.credentials_changed(rig.now),
            1 => {
                let token = AuthToken::new(AuthKey::new(7));
                let headers = Headers::new().with("Authorization", "Bearer b");
                rig.client.authorize(rig.now, token, Authorization::Headers(headers));
            }
            _ => drop(rig.client.apply(rig.now, Input::Command(ClientCommand::CredentialsChanged)).unwrap()),
        };
        fetch(&mut rig, tools::list(), &page(1));
        fetch(&mut rig, prompts::list(), &private(2));
        fetch(&mut rig, read("x:a"), &json!({"n": 3, "ttlMs": 60_000}));
        fetch(&mut rig, read("x:b"), &json!({"n": 4, "ttlMs": 60_000, "cacheScope": "Public"}));
        assert_eq!(hit(&mut rig, prompts::list()), 2);
        change(&mut rig);
        assert_eq!(hit(&mut rig, tools::list()), 1, "it is for everyone");
        assert_eq!(rig.client.cache_stats().entries, 1);
        // On its way with the credentials before.
        for result in [private(5), page(6)] {
            let call = asks(&mut rig, prompts::list());
            change(&mut rig);
            rig.answer(&rig.last_id(), result);
            assert!(rig.outcome(call).is_ok());
        }
        assert_eq!(hit(&mut rig, prompts::list()), 6, "only the one for everyone was stored");
        asks(&mut rig, read("x:a"));
        asks(&mut rig, read("x:b"));
    }
    // A refusal changes nothing.
    let mut rig = caching();
    fetch(&mut rig, prompts::list(), &private(2));
    let token = AuthToken::new(AuthKey::new(7));
    rig.client.authorize(rig.now, token, Authorization::Refuse);
    assert_eq!(hit(&mut rig, prompts::list()), 2);
}

// covers: CACHE-C-017, CACHE-S-016
#[test]
fn announced_change_drops_what_it_concerns() {
    type Reads<'a> = &'a [&'a str];
    let uris = ["x:dir", "x:dir/a", "x:dir/a/b", "x:other"];
    let lists = [("tools", 2), ("prompts", 1), ("resources", 1), ("resources/templates", 1)];
    let cases: [(&str, Value, Reads<'_>, Reads<'_>); 5] = [
        ("tools/list_changed", json!({}), &["tools"], &[]),
        ("prompts/list_changed", json!({}), &["prompts"], &[]),
        ("resources/list_changed", json!({}), &["resources", "resources/templates"], &[]),
        ("resources/updated", json!({"uri": "x:dir/a"}), &[], &["x:dir", "x:dir/a"]),
        ("resources/updated", json!({"uri": 7}), &[], &[]),
    ];
    for version in [NEWEST, ProtocolVersion::V2025_11_25] {
        for (method, params, changed, updated) in &cases {
            let list = |of: &str| custom::<Value>(format!("{of}/list"), &Object::new());
            let second = |of: &str| list(of).param("cursor", Ok("2".into()));
            let mut rig = ready(version, |_| {});
            for (of, pages) in lists {
                fetch(&mut rig, list(of), &page(1));
                if pages == 2 {
                    fetch(&mut rig, second(of), &page(2));
                }
            }
            uris.iter().for_each(|uri| fetch(&mut rig, read(uri), &page(3)));
            // One more of each is on its way.
            let count = rig.sent.len();
            for (of, _) in lists {
                asks(&mut rig, list(of).fresh());
            }
            for uri in uris {
                asks(&mut rig, read(uri).fresh());
            }
            let open: Vec<Value> = rig.sent[count..].iter().map(|message| message["id"].clone()).collect();
            notify(&mut rig, &format!("notifications/{method}"), params);
            for answered in [false, true] {
                for (of, pages) in lists {
                    let is_dropped = changed.contains(&of);
                    let expected = if answered { 9 } else { 1 };
                    let is_hit = |rig: &mut Rig, call| {
                        let call = rig.call(call);
                        rig.has_ended(call).then(|| told_by(rig, call).0)
                    };
                    assert_eq!(is_hit(&mut rig, list(of)), (!is_dropped).then_some(expected), "{method}: {of}");
                    if pages == 2 {
                        assert_eq!(is_hit(&mut rig, second(of)), (!is_dropped).then_some(2), "{method}: {of}");
                    }
                }
                for uri in uris {
                    let call = rig.call(read(uri));
                    assert_eq!(rig.has_ended(call), !updated.contains(&uri), "{method}: {uri}");
                }
                if !answered {
                    open.iter().for_each(|id| rig.answer(id, page(9)));
                }
            }
        }
    }
}

// covers: CACHE-C-017
#[test]
fn change_that_may_have_been_missed_counts() {
    let config = ClientConfig { cache: Some(Cache::default()), ..ClientConfig::program(Program::new("server")) };
    let mut rig = Rig::new(ClientConfig { watch: Watch::new().with_tools(), ..config });
    rig.open();
    rig.answer(&rig.last_id(), hello(true));
    let id = rig.last_id();
    rig.say(acknowledged(&id, json!({"toolsListChanged": true})));
    fetch(&mut rig, tools::list(), &page(1));
    fetch(&mut rig, prompts::list(), &page(2));
    hit(&mut rig, tools::list());
    // With the subscription its entries end. What no one announced lives by its time.
    let before = asks(&mut rig, tools::list().fresh());
    let open = rig.last_id();
    rig.say(closing(&id));
    assert_eq!(hit(&mut rig, prompts::list()), 2);
    rig.answer(&open, page(3));
    assert!(rig.outcome(before).is_ok());
    fetch(&mut rig, tools::list(), &page(4));
    assert_eq!(hit(&mut rig, tools::list()), 4, "it never depended on the subscription");
    // Once there is another one, changes between the two may have been missed.
    rig.tick(ms(1_100));
    let id = rig.last_id();
    rig.say(acknowledged(&id, json!({"toolsListChanged": true})));
    fetch(&mut rig, tools::list(), &page(5));
    assert_eq!(hit(&mut rig, prompts::list()), 2);
    // A change by its own name, and one of no subscription.
    rig.say(told("notifications/tools/list_changed", &id));
    fetch(&mut rig, tools::list(), &page(6));
    rig.say(told("notifications/tools/list_changed", &json!("other")));
    asks(&mut rig, tools::list());
}

// covers: CACHE-C-021
#[test]
fn refused_cursor_drops_every_page() {
    let at = |cursor: &str| resources::list().param("cursor", Ok(cursor.into()));
    for refused in [Some("2"), None] {
        let mut rig = caching();
        fetch(&mut rig, resources::list(), &page(1));
        fetch(&mut rig, at("3"), &page(3));
        fetch(&mut rig, resources::templates(), &page(4));
        let open = asks(&mut rig, at("4"));
        let id = rig.last_id();
        match refused {
            Some(cursor) => asks(&mut rig, at(cursor)),
            None => asks(&mut rig, resources::list().fresh()),
        };
        rig.say(error(&rig.last_id(), -32602));
        rig.answer(&id, page(5));
        assert!(rig.outcome(open).is_ok());
        assert_eq!(hit(&mut rig, resources::templates()), 4);
        for call in [resources::list(), at("3"), at("4")] {
            asks(&mut rig, call);
        }
    }
    // One resource is gone, and not the others.
    let mut rig = caching();
    fetch(&mut rig, read("x:a"), &page(1));
    fetch(&mut rig, read("x:b"), &page(2));
    asks(&mut rig, read("x:a").fresh());
    rig.say(error(&rig.last_id(), -32002));
    assert_eq!(hit(&mut rig, read("x:b")), 2);
    asks(&mut rig, read("x:a"));
}

// covers: CACHE-C-013, CACHE-C-020
#[test]
fn application_may_ask_for_the_present_state() {
    let mut rig = caching();
    fetch(&mut rig, tools::list(), &page(1));
    fetch(&mut rig, tools::list().fresh(), &page(2));
    assert_eq!(hit(&mut rig, tools::list()), 2, "the new one is stored");
    let stats = rig.client.cache_stats();
    assert_eq!((stats.hits, stats.misses), (1, 1));
    // A list from its beginning: no page is of the cache.
    let mut last = page(4);
    last["tools"] = json!([]);
    let mut first = last.clone();
    first["nextCursor"] = json!("2");
    fetch(&mut rig, tools::list().param("cursor", Ok("2".into())), &last);
    let mut pages = Pages::new(tools::list().fresh(), 9);
    for result in [first, last] {
        let call = asks(&mut rig, pages.next().unwrap());
        rig.answer(&rig.last_id(), result);
        let result = rig.outcome(call).clone().map(|result| List::<tools::Tool>::decode(result).unwrap());
        pages.fetched(result).unwrap();
    }
    assert!(pages.next().is_none());
    // A newer result that is not to be stored ends the one before.
    fetch(&mut rig, tools::list().fresh(), &json!({"resultType": "complete", "n": 5, "ttlMs": 0}));
    asks(&mut rig, tools::list());
}

#[test]
fn response_to_an_earlier_request_replaces_no_later_one() {
    let mut rig = caching();
    asks(&mut rig, tools::list());
    let first = rig.last_id();
    asks(&mut rig, tools::list());
    rig.answer(&rig.last_id(), page(2));
    rig.answer(&first, page(1));
    assert_eq!(hit(&mut rig, tools::list()), 2);
    // Nor is it stored after a later one that says there is nothing to store.
    let unstorable = json!({"ttlMs": 0, "contents": [], "n": 3});
    for refuted in [Ok(unstorable), Err(json!({"code": -32602, "message": "gone"}))] {
        asks(&mut rig, read("a://b"));
        let first = rig.last_id();
        asks(&mut rig, read("a://b"));
        match refuted {
            Ok(result) => rig.answer(&rig.last_id(), result),
            Err(error) => rig.say(json!({"jsonrpc": "2.0", "id": rig.last_id(), "error": error})),
        }
        rig.answer(&first, json!({"ttlMs": 60_000, "cacheScope": "public", "contents": [], "n": 4}));
        asks(&mut rig, read("a://b"));
        rig.answer(&rig.last_id(), json!({"ttlMs": 0, "contents": [], "n": 5}));
    }
}

// covers: CACHE-C-013, CACHE-C-008
#[test]
fn expired_result_may_end_a_call_that_fails() {
    let mut rig = ready(NEWEST, |cache| cache.stale_on_error = Some(ms(120_000)));
    fetch(&mut rig, read("x:a"), &page(1));
    rig.tick(ms(100_000));
    let call = asks(&mut rig, read("x:a"));
    rig.tick(ms(30_000));
    assert_eq!(told_by(&rig, call), (1, Some(ms(130_000))));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::StaleResult]);
    // The application wanted to know, or had enough.
    let call = asks(&mut rig, read("x:a").fresh());
    rig.tick(ms(30_000));
    assert!(matches!(rig.outcome(call), Err(CallError::Timeout { .. })));
    let call = asks(&mut rig, read("x:a"));
    rig.client.cancel(rig.now, call, None);
    rig.drain();
    assert!(matches!(rig.outcome(call), Err(CallError::Cancelled { .. })));
    // Expired for too long. 160 s have passed, and a call takes 30 s.
    let call = asks(&mut rig, read("x:a"));
    rig.tick(ms(30_000));
    assert!(matches!(rig.outcome(call), Err(CallError::Timeout { .. })));
    // The server itself says that it is gone.
    let mut rig = ready(NEWEST, |cache| cache.stale_on_error = Some(Duration::MAX));
    fetch(&mut rig, read("x:a"), &page(1));
    rig.tick(ms(60_000));
    let call = asks(&mut rig, read("x:a"));
    rig.say(error(&rig.last_id(), -32002));
    assert!(matches!(rig.outcome(call), Err(CallError::Rpc(_))));
    let call = asks(&mut rig, read("x:a"));
    rig.tick(ms(30_000));
    assert!(rig.outcome(call).is_err(), "it was dropped");
    // What has changed is no substitute.
    fetch(&mut rig, read("x:a"), &page(1));
    rig.tick(ms(60_000));
    let call = asks(&mut rig, read("x:a"));
    notify(&mut rig, "notifications/resources/updated", &json!({"uri": "x:a"}));
    rig.tick(ms(30_000));
    assert!(rig.outcome(call).is_err());
    // By default a failure is one.
    let mut rig = caching();
    fetch(&mut rig, read("x:a"), &page(1));
    rig.tick(ms(60_000));
    let call = asks(&mut rig, read("x:a"));
    rig.tick(ms(30_000));
    assert!(rig.outcome(call).is_err());
}

#[test]
fn cache_has_bounds() {
    let mut rig = ready(NEWEST, |cache| cache.entries = 2);
    for (n, uri) in ["x:a", "x:b"].iter().enumerate() {
        fetch(&mut rig, read(uri), &page(n as u64));
    }
    hit(&mut rig, read("x:a"));
    fetch(&mut rig, read("x:c"), &page(2));
    assert_eq!((hit(&mut rig, read("x:a")), hit(&mut rig, read("x:c"))), (0, 2));
    asks(&mut rig, read("x:b"));
    let stats = rig.client.cache_stats();
    assert_eq!((stats.entries, stats.evicted, stats.hits, stats.misses), (2, 1, 3, 4));
    // By bytes: three of these fit, and none of half a megabyte.
    let sized = |size: usize| json!({"n": 1, "ttlMs": 60_000, "pad": "x".repeat(size)});
    let mut rig = ready(NEWEST, |cache| cache.bytes = 3 * 1400);
    for uri in ["x:a", "x:b", "x:c", "x:d"] {
        fetch(&mut rig, read(uri), &sized(1000));
    }
    let stats = rig.client.cache_stats();
    assert_eq!((stats.entries, stats.evicted), (3, 1));
    assert!((3 * 1256..=3 * 1400).contains(&stats.bytes), "{stats:?}");
    fetch(&mut rig, read("x:e"), &sized(500_000));
    assert_eq!(rig.client.cache_stats(), CacheStats { misses: 5, ..stats });
    // In place of one that is stored: it is not fresh any more.
    fetch(&mut rig, read("x:d").fresh(), &sized(500_000));
    asks(&mut rig, read("x:d"));
    for cache in [Cache { entries: 0, ..Cache::default() }, Cache { bytes: 0, ..Cache::default() }] {
        let mut rig = ready(NEWEST, |own| *own = cache);
        fetch(&mut rig, tools::list(), &page(1));
        fetch(&mut rig, tools::list(), &page(1));
    }
}

#[test]
fn stored_result_shares_no_bytes_with_what_was_read() {
    let mut rig = caching();
    let mut result = page(1);
    result["pad"] = json!("x".repeat(100_000));
    let first = asks(&mut rig, tools::list());
    rig.answer(&rig.last_id(), result);
    let second = rig.call(tools::list());
    let place = |rig: &Rig, call| rig.outcome(call).as_ref().unwrap().json.as_bytes().as_ptr();
    assert_ne!(place(&rig, first), place(&rig, second));
    let third = rig.call(tools::list());
    assert_eq!(place(&rig, second), place(&rig, third), "nothing is copied again");
}

#[test]
fn without_a_cache_every_call_is_sent() {
    let mut rig = Rig::modern();
    for _ in 0..2 {
        fetch(&mut rig, tools::list(), &page(1));
    }
    rig.client.credentials_changed(rig.now);
    assert_eq!(rig.client.cache_stats(), CacheStats::default());
}

#[test]
fn only_a_client_that_is_ready_answers_from_the_cache() {
    let mut rig = caching();
    fetch(&mut rig, tools::list(), &page(1));
    rig.client.close(rig.now);
    rig.drain();
    assert_eq!(rig.client.call(rig.now, tools::list()).unwrap_err().why, Refusal::Closed);
    assert_eq!(rig.client.cache_stats().entries, 0, "it holds nothing any more");
    // The output of the server has ended: no response can follow, and no change.
    let mut rig = Rig::ready(
        NEWEST,
        ClientConfig { cache: Some(Cache::default()), ..ClientConfig::program(Program::new("server")) },
    );
    fetch(&mut rig, tools::list(), &page(1));
    rig.handle_event(rig.exchange(), ExchangeEvent::Inbound(Inbound::End));
    assert_eq!(rig.client.call(rig.now, tools::list()).unwrap_err().why, Refusal::Closed);
    // A call made before the negotiation has ended is sent then.
    let mut rig = Rig::new(ClientConfig { cache: Some(Cache::default()), ..ClientConfig::given() });
    let early = rig.call(tools::list());
    rig.open();
    rig.answer(&rig.last_id(), discover(&["2026-07-28"]));
    rig.answer(&rig.last_id(), page(1));
    assert_eq!(told_by(&rig, early), (1, None));
    assert_eq!(hit(&mut rig, tools::list()), 1);
}
