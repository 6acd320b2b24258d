//! Streams of such sessions: who writes them, and where a client resumes them.

use super::*;

// covers: B-043, S3-34
#[test]
fn event_is_sent_once_the_store_has_it() {
    let mut nodes = Nodes::new(1);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.is_away = true;
    nodes.progress(0, &responder, 1.0);
    let said = nodes.sites[0].said(x);
    assert_eq!(said, ["200 stream", ":"], "the head, and nothing of the stream");
    nodes.is_away = false;
    nodes.pass(3 * SECOND);
    nodes.pass(SECOND);
    let said = nodes.sites[0].said(x);
    let (ids, data) = events(&said);
    assert_eq!((ids.len(), data.len()), (2, 1), "{said:?}");
    nodes.finish(0, responder);
    let said = nodes.sites[0].said(x);
    assert_eq!((events(&said).1, said.last().unwrap().as_str()), (vec![answer(1).as_str()], "end"));
}

// covers: SHTTP-S-028, S3-13, B-222
#[test]
fn stream_is_resumed_at_another_server_while_its_request_runs() {
    let mut nodes = Nodes::new(3);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 1.0);
    nodes.progress(0, &responder, 2.0);
    let said = nodes.sites[0].said(x);
    let first = events(&said).0[1].to_owned();
    nodes.sites[0].cut(x);
    // What it has missed, then what follows.
    let there = nodes.resume(1, &client, &first);
    let said = nodes.sites[1].said(there);
    let (ids, data) = events(&said);
    assert_eq!((ids.len(), data.len()), (1, 1), "{said:?}");
    assert!(data[0].contains(r#""progress":2"#), "{said:?}");
    nodes.progress(0, &responder, 3.0);
    let said = nodes.sites[1].said(there);
    assert!(said[0].contains(r#""progress":3"#), "{said:?}");
    // A third server, from the beginning; and back to the one that runs it.
    let beginning = format!("{}-1", first.rsplit_once('-').unwrap().0);
    let third = nodes.resume(2, &client, &beginning);
    assert_eq!(events(&nodes.sites[2].said(third)).1.len(), 3);
    let back = nodes.resume(0, &client, &beginning);
    assert_eq!(events(&nodes.sites[0].said(back)).1.len(), 3);
    nodes.finish(0, responder);
    for (at, x) in [(0, back), (1, there), (2, third)] {
        let said = nodes.sites[at].said(x);
        assert_eq!((events(&said).1, said.last().unwrap().as_str()), (vec![answer(1).as_str()], "end"), "server {at}");
    }
    // Also once it is over.
    let late = nodes.resume(2, &client, &beginning);
    let said = nodes.sites[2].said(late);
    assert_eq!((events(&said).1.len(), said.last().unwrap().as_str()), (4, "end"));
    nodes.pass(61 * SECOND);
    let gone = nodes.resume(2, &client, &beginning);
    assert_eq!(nodes.sites[2].refusal(gone).0, 400);
    assert!(nodes.sites.iter().all(|site| site.bench.server.streams() == 0));
}

#[test]
fn requests_of_a_lost_server_end_with_an_error_once() {
    let mut nodes = Nodes::new(3);
    let client = nodes.session(1, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 1.0);
    let said = nodes.sites[0].said(x);
    let cursor = events(&said).0[1].to_owned();
    drop(responder);
    nodes.kill(0);
    let two = [1, 2].map(|at| (at, nodes.resume(at, &client, &cursor)));
    for _ in 0..20 {
        nodes.sites[1].bench.pass(SECOND);
        nodes.sites[2].bench.pass(SECOND);
        nodes.sites[0].bench.now = nodes.sites[1].bench.now;
        nodes.settle();
    }
    for (at, x) in two {
        let said = nodes.sites[at].said(x);
        let (_, data) = events(&said);
        assert_eq!(data.len(), 1, "server {at}: {said:?}");
        let lost = error(data[0]);
        assert_eq!((lost.code, said.last().unwrap().as_str()), (-32603, "end"));
        assert!(lost.message.contains("was lost"));
    }
    let codes = [nodes.sites[1].codes(), nodes.sites[2].codes()].concat();
    assert_eq!(codes.iter().filter(|code| **code == "node-lost").count(), 1, "{codes:?}");
}

#[test]
fn server_that_was_taken_for_dead_writes_nothing_more() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(1, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 1.0);
    let said = nodes.sites[0].said(x);
    let cursor = events(&said).0[1].to_owned();
    // It sleeps, and the other one goes on.
    let there = nodes.resume(1, &client, &cursor);
    for _ in 0..20 {
        nodes.sites[1].bench.pass(SECOND);
        let now = nodes.sites[1].bench.now.since_origin();
        let own = nodes.owns[1].unwrap();
        loop {
            nodes.sites[1].take();
            let pending: Vec<Event> = core::mem::take(&mut nodes.sites[1].events).into();
            let mut is_idle = true;
            for event in pending {
                if let Event::Store(token, request) = event {
                    is_idle = false;
                    let reply = nodes.store.apply(now, request);
                    let bench = &mut nodes.sites[1].bench;
                    bench.server.stored(bench.now, token, Ok(reply));
                }
            }
            for item in nodes.store.take_arrived(now, own) {
                let bench = &mut nodes.sites[1].bench;
                bench.server.arrived(bench.now, item);
            }
            if is_idle {
                break;
            }
        }
    }
    let said = nodes.sites[1].said(there);
    assert_eq!(error(events(&said).1[0]).code, -32603, "{said:?}");
    // It wakes, and answers.
    nodes.sites[0].bench.now = nodes.sites[1].bench.now;
    nodes.sites[0].complete(responder, "{}");
    nodes.settle();
    assert_eq!(nodes.sites[0].said(x), ["abort"]);
    assert!(nodes.sites[0].codes().contains(&"fenced"));
    let whole = nodes.resume(1, &client, &cursor);
    assert_eq!(events(&nodes.sites[1].said(whole)).1.len(), 1, "the error, and no answer");
}

/// Without the id of an event a client cannot resume.
#[test]
fn response_that_ends_before_its_first_event_says_why() {
    let session = (StoreReply::Missing, "the session has ended");
    let claim = (StoreReply::Over, "the node that ran this request was lost");
    for ((reply, why), accept) in [session, claim].into_iter().flat_map(|lost| {
        ["application/json", "application/json, text/event-stream"].map(|accept| (lost.clone(), accept))
    }) {
        let mut nodes = Nodes::new(1);
        let client = nodes.session(0, "{}");
        let x = nodes.post(0, client.headers().with("Accept", accept), &call(1));
        let (responder, _) = nodes.sites[0].handed();
        nodes.sites[0].pass(SECOND);
        nodes.settle_with(usize::MAX, |_, _, request, _| match request {
            StoreRequest::Claim { .. } => Fate::Result(Ok(reply.clone())),
            _ => Fate::Store,
        });
        let said = nodes.sites[0].said(x);
        let lost = match &said[..] {
            [head, .., last, end] if head == "200 stream" && end == "end" => error(event(last).1),
            [whole] => error(whole.strip_prefix("200 ").unwrap()),
            _ => panic!("{said:?}"),
        };
        assert_eq!((lost.code, &*lost.message, said.len() == 1), (-32603, why, !accept.contains("stream")), "{said:?}");
        assert!(nodes.events(0).iter().any(|event| matches!(event, Event::Cancelled(_))), "{why}");
        let server = &nodes.sites[0].bench.server;
        assert_eq!((server.streams(), server.wire.env.held_for_store()), (0, 0), "{why}");
        drop(responder);
    }
}

// covers: HTTP-S-036
#[test]
fn own_stream_of_a_session_moves_with_its_get() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let get = |nodes: &mut Nodes, at| nodes.bare(at, "GET", client.headers().with("Accept", "text/event-stream"));
    let tools = |said: &[String]| said.iter().filter(|line| line.contains("tools/list_changed")).count();
    let first = get(&mut nodes, 0);
    nodes.sites[0].said(first);
    let publish = |nodes: &mut Nodes| {
        let bench = &mut nodes.sites[0].bench;
        bench.server.publish(bench.now, Change::Tools);
        nodes.settle();
    };
    publish(&mut nodes);
    assert_eq!(tools(&nodes.sites[0].said(first)), 1);
    let second = get(&mut nodes, 1);
    assert_eq!(nodes.sites[0].said(first), ["end"], "the newest counts");
    nodes.sites[1].said(second);
    publish(&mut nodes);
    let said = nodes.sites[1].said(second);
    assert_eq!((tools(&said), nodes.sites[0].said(first).len()), (1, 0));
    // With a cursor, at the first one again.
    let cursor = events(&said).0[0].to_owned();
    nodes.sites[1].cut(second);
    publish(&mut nodes);
    let third = nodes.resume(0, &client, &cursor);
    assert_eq!(tools(&nodes.sites[0].said(third)), 1);
}

#[test]
fn question_without_a_stream_goes_where_the_client_listens() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, r#"{"elicitation":{}}"#);
    let own = nodes.bare(1, "GET", client.headers().with("Accept", "text/event-stream"));
    nodes.sites[1].said(own);
    // It takes only JSON as the response to its call.
    let x = nodes.post(0, client.headers().with("Accept", "application/json"), &call(1));
    let (responder, _) = nodes.sites[0].handed();
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    let said = nodes.sites[1].said(own);
    let question = said.iter().find(|line| line.contains("elicitation/create")).expect("it is asked");
    let crate::rpc::Message::Request(question) = message(event(question).1) else { panic!("{said:?}") };
    let accept = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#, question.id);
    nodes.post(1, client.headers(), &accept);
    let (responder, _) = nodes.sites[0].handed();
    nodes.finish(0, responder);
    assert_eq!(nodes.sites[0].said(x), ok(1));
}

#[test]
fn request_is_cancelled_at_another_server() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let cancelled =
        |nodes: &mut Nodes| nodes.events(0).into_iter().filter(|event| matches!(event, Event::Cancelled(_))).count();
    // It is known which server runs it, after some time.
    for accept in ["application/json", "application/json, text/event-stream"] {
        let x = nodes.post(0, client.headers().with("Accept", accept), &call(1));
        let (responder, _) = nodes.sites[0].handed();
        nodes.pass(SECOND);
        let told = nodes.post(1, client.headers(), cancel);
        assert_eq!((nodes.sites[1].said(told), cancelled(&mut nodes)), (vec!["202 ".into()], 1), "{accept}");
        drop((responder, x));
        nodes.sites[0].codes();
        nodes.pass(SECOND);
    }
    // It comes before that.
    let client = nodes.session(0, "{}");
    let (_, responder) = nodes.stream(0, &client, 1);
    nodes.post(1, client.headers(), cancel);
    assert_eq!(cancelled(&mut nodes), 0);
    nodes.pass(SECOND / 2);
    assert_eq!(cancelled(&mut nodes), 1, "it is claimed");
    drop(responder);
}

#[test]
fn streams_go_on_after_the_store_was_away() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 1.0);
    let there = {
        let said = nodes.sites[0].said(x);
        nodes.resume(1, &client, events(&said).0[0])
    };
    nodes.sites[1].said(there);
    nodes.is_away = true;
    for nth in 2..6 {
        nodes.progress(0, &responder, f64::from(nth));
        nodes.pass(SECOND);
    }
    nodes.is_away = false;
    (0..4).for_each(|_| nodes.pass(2 * SECOND));
    nodes.finish(0, responder);
    nodes.pass(6 * SECOND);
    for (at, x) in [(0, x), (1, there)] {
        let said = nodes.sites[at].said(x);
        let (ids, data) = events(&said);
        let numbers: Vec<u64> = ids.iter().map(|id| id.rsplit_once('-').unwrap().1.parse().unwrap()).collect();
        assert!(numbers.windows(2).all(|two| two[0] + 1 == two[1]), "{numbers:?}");
        assert_eq!((data.len(), said.last().unwrap().as_str()), (5, "end"), "server {at}: {said:?}");
    }
}

#[test]
fn events_go_out_at_once_if_the_store_may_lag_behind() {
    let mut nodes = Nodes::with(2, |config| config.durability = Durability::Behind);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.is_away = true;
    nodes.progress(0, &responder, 1.0);
    let said = nodes.sites[0].said(x);
    let (ids, data) = events(&said);
    assert_eq!((ids.len(), data.len()), (2, 1), "{said:?}");
    let cursor = ids[0].to_owned();
    nodes.is_away = false;
    (0..3).for_each(|_| nodes.pass(2 * SECOND));
    nodes.finish(0, responder);
    let said = nodes.sites[0].said(x);
    assert_eq!((events(&said).1, said.last().unwrap().as_str()), (vec![answer(1).as_str()], "end"), "nothing twice");
    // The other server has all of it.
    let there = nodes.resume(1, &client, &cursor);
    assert_eq!(events(&nodes.sites[1].said(there)).1.len(), 2);
}

#[test]
fn events_that_wait_are_bounded_and_answers_are_not_lost() {
    let mut nodes = Nodes::with(1, |config| config.limits.server.max_store_bytes = 1 << 10);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 0.5);
    nodes.sites[0].said(x);
    nodes.is_away = true;
    (1..100).for_each(|nth| nodes.progress(0, &responder, f64::from(nth)));
    let env = &nodes.sites[0].bench.server.wire.env;
    assert!(env.held_for_store() <= 1 << 10);
    assert!(nodes.sites[0].codes().contains(&"dropped-notification"));
    nodes.finish(0, responder);
    nodes.is_away = false;
    (0..3).for_each(|_| nodes.pass(2 * SECOND));
    let said = nodes.sites[0].said(x);
    let (_, data) = events(&said);
    assert!(data.len() < 20 && *data.last().unwrap() == answer(1), "{said:?}");
    assert_eq!(nodes.sites[0].bench.server.wire.env.held_for_store(), 0);
}

// covers: R-11
#[test]
fn clients_of_a_server_that_ends_listen_at_another_at_once() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let own = nodes.bare(0, "GET", client.headers().with("Accept", "text/event-stream"));
    nodes.sites[0].said(own);
    let bench = &mut nodes.sites[0].bench;
    bench.server.shutdown(bench.now, 10 * SECOND);
    nodes.settle();
    assert_eq!(nodes.sites[0].said(own), ["(0)|", "end"]);
    let there = nodes.bare(1, "GET", client.headers().with("Accept", "text/event-stream"));
    assert_eq!(nodes.sites[1].said(there)[0], "200 stream");
    assert_eq!(nodes.call(1, &client, 2), ok(2));
}

#[test]
fn own_stream_is_claimed_again_from_a_store_that_goes_back() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    nodes.post(0, client.headers(), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    nodes.bare(0, "GET", client.headers().with("Accept", "text/event-stream"));
    let before = nodes.store.clone();
    let own = nodes.bare(1, "GET", client.headers().with("Accept", "text/event-stream"));
    nodes.store = before;
    nodes.asked();
    let bench = &mut nodes.sites[1].bench;
    bench.server.publish(bench.now, Change::Tools);
    nodes.settle();
    assert!(nodes.sites[1].said(own).iter().any(|line| line.contains("tools/list_changed")));
    let asked = nodes.asked();
    assert!(asked.len() < 20, "{asked:?}");
}

#[test]
fn stream_that_was_answered_whole_is_over_in_the_store() {
    for is_early in [false, true] {
        let mut nodes = Nodes::new(2);
        let x = nodes.post(0, Headers::new(), &initialize("2025-06-18", "{}"));
        let session = nodes.sites[0].head(x).headers.get("mcp-session-id").unwrap().into();
        let client = Client { session, version: "2025-06-18" };
        nodes.asked();
        let x = nodes.post(0, client.headers(), &call(1));
        let (responder, _) = nodes.sites[0].handed();
        nodes.is_away = is_early;
        nodes.pass(SECOND);
        nodes.finish(0, responder);
        assert_eq!(nodes.sites[0].said(x), ok(1));
        nodes.is_away = false;
        nodes.pass(3 * SECOND);
        nodes.pass(SECOND);
        let claimed = nodes.asked().into_iter().find_map(|request| match request {
            StoreRequest::Claim { session, stream, .. } => Some((session, stream)),
            _ => None,
        });
        let (session, stream) = claimed.expect("others know who runs it");
        let now = nodes.now();
        let read = StoreRequest::Read { session, stream, after: 0 };
        assert!(matches!(nodes.store.apply(now, read.clone()), StoreReply::Stream { is_over: true, .. }));
        nodes.pass(120 * SECOND);
        assert_eq!(nodes.store.apply(now + 120 * SECOND, read), StoreReply::Missing, "early: {is_early}");
    }
}

/// A part of a store can go back without the part that has the leases: a shard of a cluster.
#[test]
fn stream_that_its_server_does_not_have_ends_with_an_error() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    nodes.asked();
    let (_, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 0.5);
    let before = nodes.asked();
    nodes.finish(0, responder);
    // The store has such a stream without an end.
    let (now, stream) = (nodes.now(), 7);
    for request in before {
        let request = match request {
            StoreRequest::Claim { session, requests, node, over, .. } => {
                StoreRequest::Claim { session, stream, requests, node, over }
            }
            StoreRequest::Append { session, epoch, event, is_sent, answers, keep, last, .. } => {
                StoreRequest::Append { session, stream, epoch, event, is_sent, answers, keep, last }
            }
            _ => continue,
        };
        let reply = nodes.store.apply(now, request);
        assert!(matches!(reply, StoreReply::Claimed { .. } | StoreReply::Done), "{reply:?}");
    }
    let x = nodes.resume(1, &client, "s7-1");
    let said = nodes.sites[1].said(x);
    let (_, data) = events(&said);
    assert_eq!(said.last().unwrap(), "end", "{said:?}");
    assert!(error(data.last().unwrap()).message.contains("was lost"), "{said:?}");
}

#[test]
fn stream_with_a_lost_part_is_resumed_with_an_error() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 0.5);
    let said = nodes.sites[0].said(x);
    let cursor = events(&said).0[0].to_owned();
    let bench = &mut nodes.sites[0].bench;
    bench.server.notify(bench.now, responder.key(), Note::Progress(crate::model::Progress::new(1.0))).unwrap();
    nodes.settle_with(usize::MAX, |_, _, request, _| match request {
        StoreRequest::Append { .. } => Fate::Result(Ok(StoreReply::Gap(1))),
        _ => Fate::Store,
    });
    assert_eq!(nodes.sites[0].said(x), ["abort"]);
    let there = nodes.resume(1, &client, &cursor);
    let said = nodes.sites[1].said(there);
    let (_, data) = events(&said);
    assert_eq!(said.last().unwrap(), "end", "{said:?}");
    assert!(error(data.last().unwrap()).message.contains("was lost"), "{said:?}");
    drop(responder);
}
