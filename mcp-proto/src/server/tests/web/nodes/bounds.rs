//! What a client can take of the store, and of the servers that share it.

use super::*;
use crate::model::Progress;
use crate::server::store::NodeItem;

/// The id of a question of a server that is none.
fn foreign(nth: i64) -> i64 {
    (0xfffff << 32) + nth
}

impl Nodes {
    /// Opens a session of a revision with batches.
    fn batching(&mut self) -> Client {
        let x = self.post(0, Headers::new(), &initialize("2025-03-26", "{}"));
        let session = self.sites[0].head(x).headers.get("mcp-session-id").expect("a session").into();
        Client { session, version: "2025-03-26" }
    }
}

#[test]
fn answers_to_other_servers_are_bounded_in_bytes() {
    let mut nodes = Nodes::with(2, |config| config.limits.server.max_store_bytes = 1 << 20);
    let client = nodes.batching();
    nodes.is_away = true;
    nodes.asked();
    let text = "x".repeat(300_000);
    for nth in 0..40 {
        let id = foreign(nth);
        nodes.post(0, client.headers(), &format!(r#"[{{"jsonrpc":"2.0","id":{id},"result":{{"t":"{text}"}}}}]"#));
    }
    let sent = nodes.asked().into_iter().filter_map(|request| match request {
        StoreRequest::Send { item: NodeItem::Answer { message, .. }, .. } => Some(message.len()),
        _ => None,
    });
    let bytes: usize = sent.sum();
    assert!(bytes > 0 && bytes <= 1 << 20, "{bytes}");
    assert!(nodes.sites[0].codes().contains(&"late-answer"), "what is dropped is told");
}

#[test]
fn answers_that_wait_for_lost_servers_are_bounded_in_bytes() {
    let mut nodes = Nodes::with(2, |config| config.limits.server.max_store_bytes = 1 << 20);
    let client = nodes.batching();
    let text = "x".repeat(300_000);
    // What has waited has left its room.
    for _ in 0..2 {
        for nth in 0..10 {
            let id = foreign(nth);
            nodes.post(0, client.headers(), &format!(r#"[{{"jsonrpc":"2.0","id":{id},"result":{{"t":"{text}"}}}}]"#));
        }
        assert_eq!(nodes.sites[0].codes(), ["late-answer"; 7], "three have room");
        nodes.asked();
        nodes.pass(SECOND);
        assert_eq!(nodes.asked().len(), 3, "each is sent again");
        for _ in 0..15 {
            nodes.pass(SECOND);
        }
        assert_eq!(nodes.sites[0].codes(), ["late-answer"; 3], "their servers are lost");
        nodes.asked();
        nodes.pass(SECOND);
        assert_eq!(nodes.asked(), []);
    }
}

#[test]
fn answer_without_a_response_of_its_own_is_sent_again() {
    let mut nodes = Nodes::new(2);
    let client = nodes.batching();
    nodes.asked();
    let x = nodes.post(0, client.headers(), &format!(r#"[{{"jsonrpc":"2.0","id":{},"result":{{}}}}]"#, foreign(1)));
    assert_eq!(nodes.sites[0].said(x), ["202 "]);
    for _ in 0..30 {
        nodes.pass(SECOND);
    }
    let is_sent = |request: &StoreRequest| matches!(request, StoreRequest::Send { .. });
    let count = nodes.asked().into_iter().filter(is_sent).count();
    assert!((9..=11).contains(&count), "each second, for ten seconds: {count}");
    assert_eq!(nodes.sites[0].codes(), ["late-answer"], "its server has not come back");
}

#[test]
fn client_that_fills_its_share_of_the_store_leaves_the_rest() {
    let mut nodes = Nodes::new(2);
    let (client, other) = (nodes.batching(), nodes.session(0, "{}"));
    nodes.is_away = true;
    nodes.asked();
    let answers: Vec<String> =
        (0..1000).map(|nth| format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, foreign(nth))).collect();
    let cancels: Vec<String> = (0..1000)
        .map(|id| format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#))
        .collect();
    for _ in 0..5 {
        nodes.post(0, client.headers(), &format!("[{}]", answers.join(",")));
        nodes.post(0, client.headers(), &format!("[{}]", cancels.join(",")));
    }
    let limits = &nodes.sites[0].bench.server.config().limits.server;
    let share = limits.max_running_requests;
    let asked = nodes.asked().len();
    assert!(asked > 0 && asked <= share, "{asked}");
    // There is room for another client.
    nodes.bare(0, "DELETE", other.headers());
    assert!(nodes.asked().iter().any(|request| matches!(request, StoreRequest::Close { .. })));
}

#[test]
fn stream_from_elsewhere_waits_for_a_client_that_reads_nothing() {
    let mut nodes = Nodes::new(2);
    let client = nodes.session(0, "{}");
    let (x, responder) = nodes.stream(0, &client, 1);
    nodes.progress(0, &responder, 1.0);
    let said = nodes.sites[0].said(x);
    let first = events(&said).0[1].to_owned();
    nodes.sites[0].cut(x);
    let there = nodes.resume(1, &client, &first);
    nodes.sites[1].said(there);
    let max = nodes.sites[1].bench.server.config().limits.server.max_unsent;
    nodes.sites[1].bench.handle_event(there, ExchangeEvent::Unsent(max + 1));
    let text = "x".repeat(100_000);
    for nth in 0..200 {
        let bench = &mut nodes.sites[0].bench;
        let mut progress = Progress::new(2.0 + f64::from(nth));
        progress.message = Some(text.clone());
        bench.server.notify(bench.now, responder.key(), Note::Progress(progress)).unwrap();
        nodes.settle();
    }
    let bytes: usize = nodes.sites[1].said(there).iter().map(String::len).sum();
    assert_eq!(bytes, 0, "it has not read what it has");
    nodes.sites[1].bench.handle_event(there, ExchangeEvent::Unsent(0));
    nodes.settle();
    let said = nodes.sites[1].said(there);
    assert!(!events(&said).1.is_empty(), "it reads again");
    nodes.finish(0, responder);
    for _ in 0..10 {
        nodes.sites[1].bench.handle_event(there, ExchangeEvent::Unsent(0));
        nodes.settle();
    }
    assert_eq!(nodes.sites[1].said(there).last().unwrap(), "end", "and gets all of it");
}

#[test]
fn revocation_does_not_wait_behind_changes() {
    let mut nodes = Nodes::new(2);
    let clients: Vec<Client> = (0..40).map(|_| nodes.session(0, "{}")).collect();
    let (mut on_way, mut is_told) = (Vec::<(StoreToken, StoreRequest)>::new(), false);
    for round in 0..40 {
        // A reply takes a round, and each client changes its session in each.
        for (client, nth) in clients.iter().zip(0..) {
            let body = subscribe(round * 100 + nth, "a:1");
            let body = if round % 2 == 0 { body } else { body.replace("subscribe", "unsubscribe") };
            nodes.begin_post(0, client.headers(), &body);
        }
        if round == 5 {
            let bench = &mut nodes.sites[0].bench;
            bench.server.revoke(bench.now, &Principal("eve".into()));
        }
        let now = nodes.now();
        for (token, request) in core::mem::take(&mut on_way) {
            is_told |= matches!(request, StoreRequest::Revoke { .. });
            let reply = nodes.store.apply(now, request);
            let bench = &mut nodes.sites[0].bench;
            bench.server.stored(bench.now, token, Ok(reply));
        }
        nodes.settle_with(usize::MAX, |_, token, request, _| {
            on_way.push((token, request.clone()));
            Fate::Nothing
        });
        assert!(round < 10 || is_told, "the revocation is at the store soon");
    }
}

#[test]
fn events_in_the_store_are_bounded_in_bytes_and_number() {
    let mut nodes = Nodes::with(1, |config| {
        let limits = &mut config.limits.server;
        (limits.history_bytes, limits.history_events) = (50_000, 20);
    });
    let client = nodes.session(0, "{}");
    let (_, responder) = nodes.stream(0, &client, 1);
    let mut kept = |length: usize, count: u32, from: u32| {
        for nth in from..from + count {
            let bench = &mut nodes.sites[0].bench;
            let mut progress = Progress::new(f64::from(nth));
            progress.message = Some("x".repeat(length));
            bench.server.notify(bench.now, responder.key(), Note::Progress(progress)).unwrap();
            nodes.settle();
        }
        let place = nodes.asked().into_iter().rev().find_map(|request| match request {
            StoreRequest::Append { session, stream, event, .. } => Some((session, stream, event.number)),
            _ => None,
        });
        let ((session, stream, last), now) = (place.expect("events"), nodes.now());
        let read = |after| StoreRequest::Read { session, stream, after };
        let StoreReply::Gap(before) = nodes.store.apply(now, read(0)) else { panic!("all are kept") };
        last - before
    };
    assert_eq!(kept(10, 40, 1), 20);
    assert_eq!(kept(9_000, 30, 100), 5);
    assert_eq!(kept(90_000, 1, 200), 1, "the last one is always kept");
}
