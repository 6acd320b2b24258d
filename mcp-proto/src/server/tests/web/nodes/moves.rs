//! Sessions whose clients go from server to server, while replies and items are lost or late.

use super::*;
use crate::server::store::{Epoch, News, NodeItem};

/// Returns whether an event says this.
fn says(said: &[String], what: &str) -> bool {
    said.iter().any(|line| line.contains(what))
}

#[test]
fn own_stream_of_many_events_is_resumed_elsewhere() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let own = nodes.listen(0, &client);
    for _ in 0..120 {
        nodes.publish(0, Change::Tools);
    }
    let said = nodes.sites[0].said(own);
    assert_eq!(events(&said).1.len(), 120);
    let x = nodes.sites[1].begin("GET", client.after("s0-0").with("Accept", "text/event-stream"));
    nodes.sites[1].bench.item(x, Inbound::End);
    let count = nodes.settle_with(100, |_, _, _, _| Fate::Store);
    let said = nodes.sites[1].said(x);
    // All of them, and what may have changed since.
    assert_eq!(events(&said).1.len(), 123, "after {count} requests");
}

#[test]
fn change_between_two_listeners_reaches_the_second() {
    for begins_later in [false, true] {
        let mut nodes = Nodes::new(3);
        let client = nodes.session(0, "{}");
        nodes.post(0, client.headers(), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let own = nodes.listen(0, &client);
        nodes.sites[0].cut(own);
        nodes.publish(2, Change::Tools);
        if begins_later {
            nodes.kill(1);
            nodes.sites[1] = core::mem::replace(&mut nodes.sites[0], Site::with(|_| {}));
            nodes.sites[1] = Nodes::new(1).sites.pop().expect("a server");
            nodes.owns[1] = None;
            nodes.sites[1].bench = Bench::seeded([9; 32], |config| {
                announces(config);
                config.state_keys = Some([1; 32].into());
                config.store = Some(Memory::SERVES);
            });
            nodes.settle();
        }
        let there = nodes.listen(1, &client);
        let said = nodes.sites[1].said(there);
        assert!(says(&said, "tools/list_changed"), "{begins_later}: {said:?}");
    }
}

#[test]
fn first_listener_of_a_quiet_group_gets_nothing() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let own = nodes.listen(1, &client);
    let said = nodes.sites[1].said(own);
    assert!(events(&said).1.is_empty(), "{said:?}");
}

#[test]
fn load_for_a_listener_is_repeated_until_it_is_done() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let own = nodes.listen(0, &client);
    nodes.call(1, &client, 7);
    nodes.begin_post(1, client.headers(), &subscribe(1, "a:1"));
    let mut failures = 0;
    nodes.settle_with(usize::MAX, |at, _, request, _| match request {
        StoreRequest::Load { .. } if at == 0 && failures == 0 => {
            failures += 1;
            Fate::Result(Err(StoreError::Timeout))
        }
        _ => Fate::Store,
    });
    assert_eq!(failures, 1);
    nodes.pass(SECOND);
    nodes.pass(SECOND);
    nodes.publish(1, Change::Resource("a:1".into()));
    let said = nodes.sites[0].said(own);
    assert!(says(&said, "resources/updated"), "{said:?}");
}

#[test]
fn news_while_a_session_is_loaded_load_it_again() {
    let mut nodes = Nodes::with(2, |config| config.admit = true);
    nodes.principal = Some("ada");
    let client = nodes.session(0, "{}");
    let own = nodes.listen(0, &client);
    nodes.post(0, client.headers(), &subscribe(1, "b:1"));
    let session = nodes.asked().iter().find_map(|request| match request {
        StoreRequest::Open { session, .. } => Some(*session),
        _ => None,
    });
    let (session, from) = (session.expect("a session"), nodes.owns[1].expect("a node"));
    // This server loads the session, and its client changes it before the last reply.
    let bench = &mut nodes.sites[0].bench;
    bench.server.arrived(bench.now, NodeItem::News { from, news: News::Session(session) });
    let mut late = None;
    let now = nodes.now();
    nodes.settle_with(usize::MAX, |_, token, request, store| match request {
        StoreRequest::IsRevoked { .. } if late.is_none() => {
            late = Some((token, store.apply(now, request.clone())));
            Fate::Nothing
        }
        _ => Fate::Store,
    });
    nodes.post(0, client.headers(), &subscribe(2, "a:1"));
    let (token, reply) = late.expect("it asks");
    let bench = &mut nodes.sites[0].bench;
    bench.server.stored(bench.now, token, Ok(reply));
    nodes.settle();
    nodes.sites[0].said(own);
    nodes.publish(0, Change::Resource("a:1".into()));
    let said = nodes.sites[0].said(own);
    assert!(says(&said, "resources/updated"), "{said:?}");
}

#[test]
fn word_of_a_taken_stream_may_arrive_twice() {
    let mut nodes = Nodes::new(3);
    let client = nodes.session(0, r#"{"elicitation":{}}"#);
    let mut taken = Vec::new();
    for at in [0, 1, 0, 2] {
        nodes.listen(at, &client);
        taken.extend(nodes.asked().into_iter().filter_map(|request| match request {
            StoreRequest::Send { item: item @ NodeItem::Taken { .. }, .. } => Some(item),
            _ => None,
        }));
    }
    let by_second = |item: &&NodeItem| matches!(item, NodeItem::Taken { epoch: Epoch { node, .. }, .. } if Some(*node) == nodes.owns[1]);
    let again = taken.iter().find(by_second).expect("the second has taken it").clone();
    let bench = &mut nodes.sites[0].bench;
    bench.server.arrived(bench.now, again);
    nodes.settle();
    // A client that takes no events here is asked on its own stream.
    nodes.post(0, client.headers().with("Accept", "application/json"), &call(5));
    let (responder, _) = nodes.sites[0].handed();
    nodes.sites[0].bench.answer(responder, ask("q"));
    let count = nodes.settle_with(100, |_, _, _, _| Fate::Store);
    assert!(count < 20, "{count} requests");
}

#[test]
fn session_whose_first_use_the_store_has_missed_is_kept() {
    for fails in [false, true] {
        let mut nodes = Nodes::new(2);
        let client = nodes.session(0, "{}");
        nodes.is_away = fails;
        nodes.post(0, client.headers(), &call(1));
        let (responder, _) = nodes.sites[0].handed();
        nodes.sites[0].complete(responder, "{}");
        nodes.pass(2 * SECOND);
        nodes.is_away = false;
        for _ in 0..40 {
            nodes.pass(2 * SECOND);
        }
        assert_eq!(nodes.call(0, &client, 9), ok(9), "{fails}");
    }
}

#[test]
fn server_that_could_not_leave_keeps_its_tag() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, r#"{"elicitation":{}}"#);
    let before = nodes.owns[0].expect("a node");
    // The store has gone back in time, and its connection breaks.
    let mut failures = 0;
    for _ in 0..8 {
        nodes.sites.iter_mut().for_each(|site| site.pass(SECOND));
        nodes.settle_with(usize::MAX, |at, _, request, _| match request {
            StoreRequest::Renew { node, .. } if *node == before => Fate::Result(Ok(StoreReply::Lapsed)),
            StoreRequest::Leave { .. } | StoreRequest::Join { .. } if at == 0 && failures < 2 => {
                failures += 1;
                Fate::Result(Err(StoreError::Timeout))
            }
            _ => Fate::Store,
        });
    }
    let now = nodes.owns[0].expect("a node");
    assert!(failures == 2 && now != before && now.tag() == before.tag());
    let x = nodes.post(0, streaming(&client), &call(1));
    let (responder, _) = nodes.sites[0].handed();
    nodes.sites[0].bench.answer(responder, ask("q"));
    nodes.settle();
    let said = nodes.sites[0].said(x);
    let question = said.iter().find(|line| line.contains("elicitation/create")).expect("a question");
    let crate::rpc::Message::Request(question) = message(event(question).1) else { panic!("{said:?}") };
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#, question.id);
    nodes.post(1, client.headers(), &answer);
    assert!(!nodes.sites[0].requests.is_empty(), "the answer reaches it");
}

#[test]
fn session_of_a_store_that_has_lost_it_ends() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 1.0);
    let said = nodes.sites[0].said(x);
    let cursor = events(&said).0[1].to_owned();
    nodes.call(1, &client, 2);
    nodes.sites[0].cut(x);
    nodes.store = Memory::new();
    let there = nodes.resume(1, &client, &cursor);
    assert!(nodes.sites[1].said(there)[0].starts_with("400 "), "it does not know the event");
    assert!(nodes.call(1, &client, 3)[0].starts_with("404 "), "nor the session then");
    drop(responder);
}

#[test]
fn own_stream_lost_while_it_is_read_is_claimed_again() {
    let mut nodes = Nodes::new(1);
    let client = nodes.session(0, "{}");
    let own = nodes.listen(0, &client);
    nodes.publish(0, Change::Tools);
    nodes.sites[0].cut(own);
    nodes.pass(4 * SECOND);
    let x = nodes.sites[0].begin("GET", client.after("s0-0").with("Accept", "text/event-stream"));
    nodes.sites[0].bench.item(x, Inbound::End);
    let (mut late, now) = (None, nodes.now());
    nodes.settle_with(usize::MAX, |_, token, request, store| match request {
        StoreRequest::Read { .. } => {
            late = Some((token, store.apply(now, request.clone())));
            Fate::Nothing
        }
        _ => Fate::Store,
    });
    // The lease lapses meanwhile: the server is another node, and has no streams.
    let before = nodes.owns[0].expect("a node");
    nodes.sites[0].pass(SECOND);
    let (token, reply) = late.expect("it reads");
    nodes.settle_with(usize::MAX, |_, _, request, _| match request {
        StoreRequest::Renew { node, .. } if *node == before => Fate::Result(Ok(StoreReply::Lapsed)),
        _ => Fate::Store,
    });
    let bench = &mut nodes.sites[0].bench;
    bench.server.stored(bench.now, token, Ok(reply));
    nodes.settle();
    nodes.asked();
    for _ in 0..30 {
        nodes.pass(SECOND);
    }
    nodes.publish(0, Change::Tools);
    let asked = nodes.asked();
    let is_last = |request: &StoreRequest| matches!(request, StoreRequest::Append { last: Some(_), .. });
    assert!(!asked.iter().any(is_last), "it does not end: {asked:?}");
    let said = nodes.sites[0].said(x);
    assert!(events(&said).1.len() >= 2 && !said.contains(&"end".to_string()), "{said:?}");
}

// An event that the store has may be an equal one that another server has added.
#[test]
fn event_in_the_store_says_nothing_of_the_one_before_it() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let first = nodes.listen(0, &client);
    nodes.sites[0].said(first);
    // The second server takes the stream, and its words to the first one are lost.
    let says_nothing = |at, request: &StoreRequest| {
        at == 1 && matches!(request, StoreRequest::Send { .. } | StoreRequest::Publish { .. })
    };
    let second = nodes.sites[1].begin("GET", client.headers().with("Accept", "text/event-stream"));
    nodes.sites[1].bench.item(second, Inbound::End);
    let publish = |nodes: &mut Nodes, at: usize| {
        let bench = &mut nodes.sites[at].bench;
        bench.server.publish(bench.now, Change::Tools);
    };
    let fate = |at, _, request: &_, _: &mut _| if says_nothing(at, request) { Fate::Nothing } else { Fate::Store };
    nodes.settle_with(100, fate);
    publish(&mut nodes, 1);
    nodes.settle_with(100, fate);
    let number = |id: &str| id.rsplit_once('-').unwrap().1.parse::<u64>().unwrap();
    let said = nodes.sites[1].said(second);
    let (ids, data) = events(&said);
    let last = number(ids.last().unwrap());
    assert!(number(ids[1]) == 3 && data[0].contains("tools/list_changed"), "{said:?}");
    // The first one adds two, and the request for the first of them is lost.
    for is_lost in [true, false] {
        publish(&mut nodes, 0);
        nodes.settle_with(100, |_, _, request, _| match request {
            StoreRequest::Append { .. } if is_lost => Fate::Nothing,
            StoreRequest::Publish { .. } => Fate::Nothing,
            _ => Fate::Store,
        });
    }
    assert_eq!(nodes.sites[0].said(first), [""; 0], "it is not known what the store has");
    (0..4).for_each(|_| nodes.pass(2 * SECOND));
    assert_eq!(nodes.sites[0].said(first), ["end"], "the second server has it");
    let said = nodes.sites[1].said(second);
    let (ids, data) = events(&said);
    assert!(ids.iter().all(|id| number(id) > last), "{said:?}");
    assert!(data.iter().all(|data| data.contains("tools/list_changed")), "{said:?}");
    assert!(!data.is_empty(), "the change is told");
}

// A server that has claimed a stream in the store may not know it yet.
#[test]
fn message_for_an_own_stream_does_not_go_in_a_circle() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    nodes.listen(0, &client);
    let there = nodes.listen(1, &client);
    nodes.sites[1].said(there);
    // The first one takes the stream again, and the reply is lost; the second one learns of it.
    let own = nodes.owns[0].unwrap();
    let session = nodes.asked().into_iter().rev().find_map(|request| match request {
        StoreRequest::Claim { session, stream: 0, .. } => Some(session),
        _ => None,
    });
    let session = session.expect("it was claimed");
    let claim = |over| StoreRequest::Claim { session, stream: 0, requests: Vec::new(), node: own, over };
    let now = nodes.now();
    let StoreReply::Owned(second) = nodes.store.apply(now, claim(None)) else { panic!("the second has it") };
    let StoreReply::Claimed { epoch, .. } = nodes.store.apply(now, claim(Some(second))) else { panic!("it is free") };
    let bench = &mut nodes.sites[1].bench;
    bench.server.arrived(bench.now, NodeItem::Taken { session, stream: 0, epoch });
    nodes.settle();
    let message = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"x/y"}"#);
    let bench = &mut nodes.sites[0].bench;
    bench.server.arrived(bench.now, NodeItem::Own { session, message });
    let count = nodes.settle_with(100, |_, _, _, _| Fate::Store);
    assert!(count < 10, "{count} requests");
    let read = nodes.store.apply(now, StoreRequest::Read { session, stream: 0, after: 0 });
    let StoreReply::Stream { events, .. } = read else { panic!("{read:?}") };
    assert!(events.last().is_some_and(|event| event.data.ends_with(br#""x/y"}"#)), "{events:?}");
}

#[test]
fn listener_of_a_store_that_has_gone_back_is_served() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let first = nodes.listen(0, &client);
    let before = nodes.store.clone();
    nodes.listen(1, &client);
    nodes.sites[0].said(first);
    nodes.store = before;
    // The store knows the claim of the first server only, which knows a newer one.
    let again = nodes.sites[0].begin("GET", client.headers().with("Accept", "text/event-stream"));
    nodes.sites[0].bench.item(again, Inbound::End);
    let count = nodes.settle_with(100, |_, _, _, _| Fate::Store);
    assert!(count < 10, "{count} requests");
    nodes.publish(0, Change::Tools);
    assert!(says(&nodes.sites[0].said(again), "tools/list_changed"));
}
