//! Legacy sessions that several servers share.

use super::*;

#[test]
fn session_goes_on_at_every_server() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let x = nodes.post(1, client.headers(), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(nodes.sites[1].said(x), ["202 "]);
    nodes.asked();
    for id in 0..20 {
        let at = usize::try_from(id % 2).unwrap();
        assert_eq!(nodes.call(at, &client, id), ok(id), "call {id} at server {at}");
    }
    // One of them has not had the session before, and both keep it alive.
    let asked = nodes.asked();
    assert!(asked.len() <= 3, "{asked:?}");
}

#[test]
fn call_costs_no_more_than_one_request_to_the_store() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    nodes.call(1, &client, 1);
    for id in 2..200 {
        nodes.asked();
        nodes.pass(SECOND);
        assert_eq!(nodes.call(1, &client, id), ok(id));
        let asked = nodes.asked();
        assert!(asked.len() <= 1, "{asked:?}");
    }
}

// covers: SHTTP-S-021
#[test]
fn session_that_ends_at_one_server_ends_at_all() {
    let mut nodes = Nodes::new(3);
    let client = nodes.session(0, "{}");
    (0..3).for_each(|at| assert_eq!(nodes.call(at, &client, 7 + at as u32), ok(7 + at as u32)));
    // A call runs at one of them.
    let x = nodes.post(2, client.headers(), &call(1));
    let (responder, _) = nodes.sites[2].handed();
    let deleted = nodes.bare(1, "DELETE", client.headers());
    assert_eq!(nodes.sites[1].said(deleted), [r#"200 {"success":true}"#]);
    assert!(nodes.sites[2].said(x)[0].contains("-32603"));
    nodes.sites[2].complete(responder, "{}");
    for at in 0..3 {
        let x = nodes.post(at, client.headers(), &call(2));
        assert_eq!(nodes.sites[at].refusal(x).0, 404);
        let ended = nodes.events(at).into_iter().filter(|event| matches!(event, Event::SessionEnded(..))).count();
        assert_eq!(ended, 1, "server {at}");
    }
    assert_eq!(nodes.store.sessions(nodes.now()), 0);
}

/// The first server asks a client. Returns its exchange, and the answer.
fn question(nodes: &mut Nodes, client: &Client) -> (ExchangeId, String) {
    let x = nodes.post(0, client.headers().with("Accept", "text/event-stream, application/json"), &call(1));
    let (responder, _) = nodes.sites[0].handed();
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    let said = nodes.sites[0].said(x);
    let question = said.iter().find(|line| line.contains("elicitation/create")).unwrap();
    let crate::rpc::Message::Request(question) = message(event(question).1) else { panic!("{said:?}") };
    let crate::rpc::Id::Int(id) = question.id else { panic!("{said:?}") };
    assert!(id < 1 << 53 && id >> 32 == i64::from(nodes.owns[0].unwrap().tag().0));
    (x, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{"it":"yes"}}}}}}"#))
}

// covers: HTTP-S-013
#[test]
fn question_of_one_server_is_answered_at_another() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, r#"{"elicitation":{}}"#);
    let (x, accept) = question(&mut nodes, &client);
    let answered = nodes.post(1, client.headers(), &accept);
    assert_eq!(nodes.sites[1].said(answered), ["202 "]);
    let (responder, incoming) = nodes.sites[0].handed();
    assert!(incoming.inputs["q"].as_ref().is_ok_and(|answer| answer.as_str().contains("yes")));
    nodes.finish(0, responder);
    assert!(nodes.sites[0].said(x).iter().any(|line| line.contains(&answer(1))));
    // Once more: the question is closed, which the server that has asked knows.
    let again = nodes.post(1, client.headers(), &accept);
    assert_eq!((nodes.sites[1].said(again), nodes.sites[0].codes()), (vec!["202 ".into()], vec!["late-answer"]));
}

// covers: HTTP-S-013
#[test]
fn answer_waits_until_the_server_joins_again() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, r#"{"elicitation":{}}"#);
    // The store has lost its lease, and has not carried out its next join yet.
    let (node, now) = (nodes.owns[0].unwrap(), nodes.now());
    assert_eq!(nodes.store.apply(now, StoreRequest::Leave { node }), StoreReply::Done);
    nodes.sites.iter_mut().for_each(|site| site.pass(6 * SECOND));
    nodes.settle_with(usize::MAX, |_, _, request, _| match request {
        StoreRequest::Join { .. } => Fate::Result(Err(StoreError::Timeout)),
        _ => Fate::Store,
    });
    let (x, accept) = question(&mut nodes, &client);
    let answered = nodes.post(1, client.headers(), &accept);
    assert_eq!(nodes.sites[1].said(answered), [""; 0], "it has no result yet");
    nodes.pass(SECOND);
    nodes.pass(SECOND);
    assert!(nodes.owns[0].is_some_and(|own| own != node), "it has joined again");
    assert_eq!(nodes.sites[1].said(answered), ["202 "]);
    let (responder, incoming) = nodes.sites[0].handed();
    assert!(incoming.inputs["q"].as_ref().is_ok_and(|answer| answer.as_str().contains("yes")));
    nodes.finish(0, responder);
    assert!(nodes.sites[0].said(x).iter().any(|line| line.contains(&answer(1))));
}

#[test]
fn answer_to_a_server_that_is_gone_is_accepted_and_reported() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let id = i64::from(u32::MAX >> 12) << 32 | 1;
    let x = nodes.post(1, client.headers(), &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    assert_eq!(nodes.sites[1].said(x), [""; 0], "it may join again");
    for _ in 0..11 {
        nodes.pass(SECOND);
    }
    assert_eq!((nodes.sites[1].said(x), nodes.sites[1].codes()), (vec!["202 ".into()], vec!["late-answer"]));
    nodes.is_away = true;
    let x = nodes.post(1, client.headers(), &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    assert_eq!(nodes.sites[1].said(x), [""; 0]);
    nodes.pass(2 * SECOND);
    assert_eq!(nodes.sites[1].refusal(x).0, 503);
}

// covers: RSUB-C-001, LOG-S-005
#[test]
fn what_a_client_sets_at_one_server_holds_at_all() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let own = nodes.bare(0, "GET", client.headers().with("Accept", "text/event-stream"));
    let x = nodes.post(1, client.headers(), &subscribe(1, "a:1"));
    assert_eq!(nodes.sites[1].said(x), [r#"200 {"jsonrpc":"2.0","id":1,"result":{}}"#]);
    let updates = |nodes: &mut Nodes| {
        let said = nodes.sites[0].said(own);
        let lines = said.iter().filter(|line| line.contains("resources/updated"));
        lines.map(|line| update(event(line).1).0).collect::<Vec<_>>()
    };
    // It may have missed one before it learned of the subscription.
    assert_eq!(updates(&mut nodes), ["a:1"]);
    let bench = &mut nodes.sites[1].bench;
    bench.server.publish(bench.now, Change::Resource("a:1/part".into()));
    nodes.settle();
    assert_eq!(updates(&mut nodes), ["a:1/part"]);
    let level = legacy("2", "logging/setLevel", r#"{"level":"error"}"#);
    nodes.post(1, client.headers(), &level);
    let x = nodes.post(0, client.headers().with("Accept", "text/event-stream, application/json"), &call(3));
    let (responder, _) = nodes.sites[0].handed();
    for (level, is_sent) in [(LogLevel::Info, false), (LogLevel::Error, true)] {
        let note = Note::Log(LogMessage::new(level, "x"));
        let bench = &mut nodes.sites[0].bench;
        assert_eq!(bench.server.notify(bench.now, responder.key(), note).is_ok(), is_sent, "{level:?}");
    }
    drop((responder, x));
    // It ends at one server, too.
    let x = nodes.post(1, client.headers(), &legacy("4", "resources/unsubscribe", r#"{"uri":"a:1"}"#));
    assert!(nodes.sites[1].said(x)[0].starts_with("200 "));
    let bench = &mut nodes.sites[1].bench;
    bench.server.publish(bench.now, Change::Resource("a:1".into()));
    nodes.settle();
    assert_eq!(updates(&mut nodes), [""; 0]);
}

#[test]
fn changes_at_two_servers_at_once_are_merged() {
    let mut nodes = Nodes::new(3);
    let client = nodes.session(0, "{}");
    (0..3).for_each(|at| drop(nodes.call(at, &client, 9 + at as u32)));
    // Both are on their way before either arrives.
    nodes.is_away = true;
    nodes.post(0, client.headers(), &subscribe(1, "a:0"));
    nodes.post(1, client.headers(), &subscribe(2, "a:1"));
    nodes.is_away = false;
    (0..4).for_each(|_| nodes.pass(SECOND));
    let own = nodes.bare(2, "GET", client.headers().with("Accept", "text/event-stream"));
    for uri in ["a:0", "a:1"] {
        let bench = &mut nodes.sites[0].bench;
        bench.server.publish(bench.now, Change::Resource(uri.into()));
        nodes.settle();
    }
    let said = nodes.sites[2].said(own).concat();
    assert!(said.contains(r#""uri":"a:0""#) && said.contains(r#""uri":"a:1""#), "{said}");
}

// covers: B-146
#[test]
fn session_belongs_to_its_principal_at_every_server() {
    let mut nodes = Nodes::with(2, |config| config.admit = true);
    nodes.principal = Some("ada");
    let client = nodes.session(0, "{}");
    for (name, status) in [(Some("bob"), 404), (None, 404), (Some("ada"), 200), (Some("bob"), 404)] {
        nodes.principal = name;
        for at in [1, 0] {
            for body in [call(1), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into()] {
                let x = nodes.post(at, client.headers(), &body);
                while !nodes.sites[at].requests.is_empty() {
                    let (responder, _) = nodes.sites[at].handed();
                    nodes.sites[at].complete(responder, "{}");
                }
                // A server that is to get the answer might join again.
                for _ in 0..11 {
                    nodes.pass(SECOND);
                }
                let said = nodes.sites[at].said(x);
                let last = said.last().unwrap();
                let accepted = last.starts_with("200 ") || last.starts_with("202 ");
                assert_eq!(accepted, status == 200, "{name:?} {said:?}");
            }
            let methods: &[&str] = if status == 200 { &[] } else { &["GET", "DELETE"] };
            for method in methods {
                let x = nodes.bare(at, method, client.headers().with("Accept", "text/event-stream"));
                assert!(nodes.sites[at].said(x).last().unwrap().starts_with("404 "), "{name:?} {method}");
            }
        }
    }
}

// covers: B-148
#[test]
fn id_that_no_server_made_never_reaches_the_store() {
    let mut nodes = Nodes::new(1);
    nodes.asked();
    for session in ["x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        let client = Client { session: session.into(), version: "2025-11-25" };
        let x = nodes.post(0, client.headers(), &call(1));
        assert_eq!(nodes.sites[0].refusal(x).0, 404);
    }
    assert_eq!(nodes.asked(), []);
}

#[test]
fn without_the_store_sessions_get_503_and_the_rest_goes_on() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    nodes.call(0, &client, 1);
    nodes.is_away = true;
    // The server has a copy, for a time.
    nodes.pass(10 * SECOND);
    assert_eq!(nodes.call(0, &client, 2), ok(2));
    nodes.pass(21 * SECOND);
    let waiting = [
        (0, nodes.post(0, client.headers(), &call(3))),
        (1, nodes.post(1, client.headers(), &call(4))),
        (1, nodes.post(1, Headers::new(), &initialize("2025-11-25", "{}"))),
        (0, nodes.bare(0, "GET", client.headers().with("Accept", "text/event-stream"))),
    ];
    // An exchange whose client leaves meanwhile is forgotten.
    let left = nodes.post(1, client.headers(), &call(5));
    nodes.sites[1].cut(left);
    nodes.pass(2 * SECOND);
    for (at, x) in waiting {
        assert_eq!(nodes.sites[at].head(x).headers.get("Retry-After"), Some("1"));
        assert_eq!(nodes.sites[at].refusal(x).0, 503);
    }
    let modern = Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", "tools/list");
    let x = nodes.post(1, modern, &super::super::modern("1", "tools/list", ""));
    let (responder, _) = nodes.sites[1].handed();
    nodes.sites[1].complete(responder, "{}");
    assert!(nodes.sites[1].said(x)[0].starts_with("200 "));
    nodes.is_away = false;
    nodes.pass(2 * SECOND);
    assert_eq!(nodes.call(1, &client, 6), ok(6));
}

#[test]
fn session_ends_when_no_server_is_asked_for_it() {
    let mut nodes = Nodes::with(2, |config| config.limits.server.session_idle = Duration::from_secs(600));
    let (unused, used) = (nodes.session(0, "{}"), nodes.session(0, "{}"));
    let listening = nodes.session(0, "{}");
    nodes.call(1, &used, 1);
    nodes.bare(1, "GET", listening.headers().with("Accept", "text/event-stream"));
    (0..13).for_each(|_| nodes.pass(5 * SECOND));
    // It was never used after its start.
    assert_eq!(nodes.store.sessions(nodes.now()), 2);
    let x = nodes.post(0, unused.headers(), &call(2));
    assert_eq!(nodes.sites[0].refusal(x).0, 404);
    // In steps that the leases survive.
    (0..240).for_each(|_| nodes.pass(5 * SECOND));
    assert_eq!(nodes.store.sessions(nodes.now()), 1, "its stream is open");
    let x = nodes.post(1, used.headers(), &call(3));
    assert_eq!(nodes.sites[1].refusal(x).0, 404);
    assert_eq!(nodes.call(0, &listening, 4), ok(4));
}

#[test]
fn more_open_streams_than_store_requests_keep_their_sessions() {
    const SESSIONS: usize = 200;
    let mut nodes = Nodes::with(1, |config| {
        config.limits.server.session_idle = Duration::from_secs(600);
        config.limits.server.max_store_requests = 16;
    });
    for _ in 0..SESSIONS {
        let client = nodes.session(0, "{}");
        nodes.bare(0, "GET", client.headers().with("Accept", "text/event-stream"));
    }
    nodes.asked();
    let mut most = 0;
    for _ in 0..1500 {
        nodes.pass(SECOND);
        most = most.max(nodes.asked().len());
    }
    assert_eq!(nodes.store.sessions(nodes.now()), SESSIONS);
    assert!(most <= 160, "{most} requests at once");
}

#[test]
fn record_that_cannot_be_read_is_an_unknown_session() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let Some(StoreRequest::Open { session, .. }) = nodes.asked().pop() else { panic!("it was opened") };
    let newer = r#"{"format":2}"#.into();
    let now = nodes.now();
    assert_eq!(nodes.store.apply(now, StoreRequest::Change { session, version: 1, record: newer }), StoreReply::Done);
    let x = nodes.post(1, client.headers(), &call(1));
    assert_eq!(nodes.sites[1].refusal(x).0, 404);
    assert_eq!(nodes.sites[1].codes()[..1], ["record-corrupt"]);
}

#[test]
fn loads_are_bounded_and_one_serves_many_requests() {
    let mut nodes = Nodes::new(2);
    let clients: Vec<Client> = (0..65).map(|_| nodes.session(0, "{}")).collect();
    nodes.asked();
    nodes.is_away = true;
    let waiting: Vec<ExchangeId> = clients.iter().map(|client| nodes.post(1, client.headers(), &call(1))).collect();
    let again = nodes.post(1, clients[0].headers(), &call(2));
    assert_eq!(nodes.asked().len(), 64);
    assert_eq!(nodes.sites[1].refusal(waiting[64]).0, 503);
    nodes.pass(2 * SECOND);
    nodes.is_away = false;
    assert_eq!(nodes.sites[1].refusal(again).0, 503);
    assert!(waiting[..64].iter().all(|x| nodes.sites[1].refusal(*x).0 == 503));
    assert!(nodes.sites[1].bench.server.wire.env.node.as_ref().unwrap().loading.is_empty());
}

#[test]
fn message_posted_at_another_server_reaches_its_stream() {
    let mut nodes = Nodes::with(2, |config| {
        config.sse = Some(SsePaths::default());
        config.admit = true;
    });
    nodes.principal = Some("ada");
    let stream = nodes.sites[0].begin_at("/sse", "GET", Headers::new().with("Accept", "text/event-stream"));
    nodes.settle();
    nodes.sites[0].bench.item(stream, Inbound::End);
    nodes.settle();
    let said = nodes.sites[0].said(stream);
    let endpoint = said.iter().find_map(|line| line.strip_prefix("endpoint|")).expect("an endpoint").to_owned();
    let post = |nodes: &mut Nodes, at: usize, target: &str, body: &str| {
        let headers = Headers::new().with("Content-Type", "application/json").with("X-Own", "1");
        let x = nodes.sites[at].begin_at(target, "POST", headers);
        nodes.settle();
        nodes.sites[at].bench.item(x, read(body));
        nodes.sites[at].bench.item(x, Inbound::End);
        nodes.settle();
        // The server of the stream might join again.
        for _ in 0..if nodes.owns[0].is_none() { 11 } else { 0 } {
            nodes.pass(SECOND);
        }
        nodes.sites[at].said(x).pop().unwrap()
    };
    for at in [1, 0, 1] {
        let initialize = initialize("2024-11-05", "{}");
        let body = if at == 0 { r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"# } else { &initialize };
        assert_eq!(post(&mut nodes, at, &endpoint, body), "202 ");
    }
    assert_eq!(post(&mut nodes, 1, &endpoint, &call(2)), "202 ");
    let (responder, incoming) = nodes.sites[0].handed();
    let head = incoming.context.http.as_ref().expect("the head of the post");
    assert_eq!((head.headers.get("X-Own"), &*head.method), (Some("1"), "POST"));
    assert_eq!(incoming.context.principal, Some(Principal("ada".into())));
    nodes.finish(0, responder);
    assert!(nodes.sites[0].said(stream).iter().any(|line| line.contains(&answer(2))));
    // Another principal's message does not reach it, and nothing does once it is gone.
    nodes.principal = Some("bob");
    post(&mut nodes, 1, &endpoint, &call(3));
    assert!(nodes.sites[0].requests.is_empty() && nodes.sites[0].codes().contains(&"bad-session"));
    nodes.principal = Some("ada");
    nodes.kill(0);
    nodes.sites[1].bench.pass(20 * SECOND);
    nodes.sites[0].bench.now = nodes.sites[1].bench.now;
    nodes.settle();
    assert!(post(&mut nodes, 1, &endpoint, &call(4)).starts_with("404 "));
    let forged = "/messages?sessionId=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    assert!(post(&mut nodes, 1, forged, &call(5)).starts_with("404 "));
}

#[test]
fn store_of_changes_alone_leaves_sessions_to_each_server() {
    let mut nodes = Nodes::with(2, |config| config.store = Some(Serves::CHANGES));
    let client = nodes.session(0, "{}");
    nodes.asked();
    assert_eq!(nodes.call(0, &client, 1), ok(1));
    let x = nodes.post(1, client.headers(), &call(2));
    assert_eq!((nodes.sites[1].refusal(x).0, nodes.asked()), (404, vec![]));
    let own = nodes.bare(0, "GET", client.headers().with("Accept", "text/event-stream"));
    nodes.sites[0].said(own);
    let bench = &mut nodes.sites[1].bench;
    bench.server.publish(bench.now, Change::Tools);
    nodes.settle();
    assert!(nodes.sites[0].said(own).concat().contains("tools/list_changed"));
}

// covers: SHTTP-S-021
#[test]
fn revocation_ends_sessions_that_no_server_has_loaded() {
    let mut nodes = Nodes::with(3, |config| config.admit = true);
    nodes.principal = Some("ada");
    let before = nodes.session(0, "{}");
    nodes.principal = Some("bob");
    let other = nodes.session(0, "{}");
    // The only server that has them ends.
    nodes.kill(0);
    nodes.pass(SECOND);
    let bench = &mut nodes.sites[1].bench;
    bench.server.revoke(bench.now, &Principal("ada".into()));
    nodes.settle();
    nodes.pass(SECOND);
    nodes.principal = Some("ada");
    let after = nodes.session(1, "{}");
    let x = nodes.post(2, before.headers(), &call(1));
    assert!(nodes.sites[2].said(x)[1].starts_with("404 "));
    assert_eq!(nodes.call(2, &after, 2)[1..], ok(2), "it was opened since");
    nodes.principal = Some("bob");
    assert_eq!(nodes.call(2, &other, 3)[1..], ok(3), "it is of another principal");
    assert_eq!(nodes.store.sessions(nodes.now()), 2);
}

#[test]
fn revocation_reaches_the_store_once_it_replies_again() {
    let mut nodes = Nodes::with(2, |config| config.admit = true);
    nodes.principal = Some("ada");
    let client = nodes.session(0, "{}");
    assert_eq!(nodes.call(0, &client, 1)[1..], ok(1));
    nodes.is_away = true;
    let bench = &mut nodes.sites[1].bench;
    bench.server.revoke(bench.now, &Principal("ada".into()));
    nodes.pass(SECOND * 4);
    nodes.is_away = false;
    nodes.pass(SECOND * 4);
    for at in 0..2 {
        let x = nodes.post(at, client.headers(), &call(2));
        assert!(nodes.sites[at].said(x)[1].starts_with("404 "), "server {at}");
    }
}

#[test]
fn session_that_is_idle_at_one_server_may_be_in_use_at_another() {
    for fresh in [30, 3600] {
        let mut nodes = Nodes::with(2, |config| {
            config.limits.server.session_start = SECOND * 10;
            config.limits.server.session_idle = SECOND * 100;
            config.limits.server.session_cache = SECOND * fresh;
        });
        let client = nodes.session(0, "{}");
        for id in 1..30 {
            nodes.pass(SECOND * 9);
            assert_eq!(nodes.call(1, &client, id), ok(id));
        }
        assert_eq!(nodes.call(0, &client, 100), ok(100), "{fresh}");
        nodes.pass(SECOND * 99);
        assert_eq!(nodes.call(0, &client, 101), ok(101), "{fresh}");
        nodes.pass(SECOND * 150);
        let x = nodes.post(1, client.headers(), &call(102));
        assert_eq!(nodes.sites[1].refusal(x).0, 404);
    }
}

// covers: HTTP-S-013
#[test]
fn answer_reaches_a_server_that_has_joined_again() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, r#"{"elicitation":{}}"#);
    let own = nodes.bare(1, "GET", client.headers().with("Accept", "text/event-stream"));
    // Its question goes out on the own stream, at the other one.
    let x = nodes.post(0, client.headers().with("Accept", "application/json"), &call(1));
    let (responder, _) = nodes.sites[0].handed();
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    let said = nodes.sites[1].said(own);
    let question = said.iter().find(|line| line.contains("elicitation/create")).expect("a question");
    let crate::rpc::Message::Request(question) = message(event(question).1) else { panic!("{said:?}") };
    let before = nodes.owns[0].unwrap();
    nodes.is_away = true;
    (0..20).for_each(|_| nodes.pass(SECOND));
    nodes.is_away = false;
    (0..5).for_each(|_| nodes.pass(SECOND));
    let after = nodes.owns[0].unwrap();
    assert!(before != after && before.tag() == after.tag());
    let accept = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#, question.id);
    let answered = nodes.post(1, client.headers(), &accept);
    assert_eq!(nodes.sites[1].said(answered), ["202 "]);
    let (responder, incoming) = nodes.sites[0].handed();
    assert!(incoming.inputs["q"].as_ref().is_ok_and(|answer| answer.as_str().contains("decline")));
    nodes.finish(0, responder);
    assert_eq!(nodes.sites[0].said(x), [format!("200 {}", answer(1))]);
}
