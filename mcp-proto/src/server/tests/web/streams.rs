//! Streams that outlive their exchange: begun, cut, resumed, closed early, stored and dropped.

use super::*;
use crate::Change;
use crate::frame::{Conn, Kind};
use crate::model::Progress;

const STREAM_AFTER: Duration = Duration::from_millis(500);

fn tell(site: &mut Site, responder: &Responder, n: f64) {
    site.bench.server.notify(site.bench.now, responder.key(), Note::Progress(Progress::new(n))).unwrap();
    site.take();
}

/// Returns the number in a progress notification.
fn progress(data: &str) -> f64 {
    let crate::rpc::Message::Notification(note) = message(data) else { panic!("{data}") };
    Object::read(&note.params.unwrap()).unwrap().required("progress").unwrap()
}

#[test]
fn half_closed_legacy_client_gets_its_response() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    for streams in [false, true] {
        let x = client.call(&mut site, 1 + u32::from(streams));
        let (responder, _) = site.handed();
        site.bench.handle_event(x, ExchangeEvent::ReadClosed);
        if streams {
            site.pass(STREAM_AFTER);
        }
        site.take();
        assert_eq!(site.bench.server.running(), 1);
        site.complete(responder, "{}");
        let said = site.said(x);
        assert!(said.iter().any(|said| said.contains(r#""result":{}"#)), "{said:?}");
    }
    // A stream without a request is aborted, so that its place is free.
    let own = site.bare("GET", client.headers());
    site.said(own);
    site.bench.handle_event(own, ExchangeEvent::ReadClosed);
    assert_eq!(site.said(own), ["abort"]);
}

#[test]
fn half_close_of_a_modern_client_cancels() {
    let mut site = Site::new();
    let headers = Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", "tools/call");
    let x = site.post(headers.with("Mcp-Name", "t"), &modern("1", "tools/call", r#","name":"t""#));
    let (responder, _) = site.handed();
    site.bench.handle_event(x, ExchangeEvent::ReadClosed);
    assert_eq!(site.event(), Some(Event::Cancelled(responder.key())));
    assert_eq!(site.said(x), ["abort"]);
    assert_eq!(site.bench.server.running(), 0);
}

// covers: SHTTP-S-014, SHTTP-S-021, S3-07
#[test]
fn fast_response_is_json() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let x = client.call(&mut site, 1);
    let (responder, incoming) = site.handed();
    assert_eq!(incoming.context.version.as_str(), "2025-11-25");
    site.pass(STREAM_AFTER - Duration::from_millis(1));
    assert!(site.said(x).is_empty());
    site.complete(responder, "{}");
    assert_eq!(site.said(x), [format!("200 {}", answer(1))]);
    assert_eq!(site.head(x).headers.get("content-type"), Some("application/json"));
}

/// Returns the head of a stream in the form of HTTP/1.1.
fn written(head: &ResponseHead) -> String {
    let mut conn = Conn::new(Kind::HttpServer, &Limits::default().frame);
    conn.bytes(Bytes::from_static(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
    while conn.poll_item().is_some() {}
    conn.encode(Outbound::Response { head: head.clone(), body: Body::Stream });
    let bytes: Vec<Bytes> = core::iter::from_fn(|| conn.poll_write()).collect();
    String::from_utf8(bytes.concat()).unwrap()
}

// covers: SHTTP-S-016, SHTTP-S-019, SHTTP-S-023, SHTTP-S-027, SHTTP-S-040, SHTTP-S-042, S3-12,
// S3-23, S3-35, B-018, B-034, B-043, B-168, S2-29, S2-30
#[test]
fn stream_begins_with_an_id_where_supported() {
    for (version, primed) in [("2025-11-25", true), ("2025-06-18", false), ("2025-03-26", false)] {
        let mut site = Site::new();
        let client = site.session(version, "{}");
        let x = client.call(&mut site, 1);
        let (responder, _) = site.handed();
        tell(&mut site, &responder, 1.0);
        let said = site.said(x);
        assert_eq!(said[0], "200 stream");
        for (name, value) in [
            ("Content-Type", "text/event-stream"),
            ("Cache-Control", "no-cache, no-transform"),
            ("X-Accel-Buffering", "no"),
        ] {
            assert_eq!(site.head(x).headers.get(name), Some(value));
        }
        let written = written(site.head(x));
        assert!(written.contains("\r\nconnection: keep-alive\r\n"), "{written}");
        if primed {
            assert_eq!((said.len(), said[1].as_str()), (3, "s1-1(1000)|"));
        }
        let (id, data) = event(said.last().unwrap());
        assert_eq!((id, progress(data)), (if primed { "s1-2" } else { "s1-1" }, 1.0));
        site.complete(responder, "{}");
        let said = site.said(x);
        assert_eq!((event(&said[0]).1, said[1].as_str(), said.len()), (answer(1).as_str(), "end", 2));
    }
}

// covers: SHTTP-S-016, B-039, B-179
#[test]
fn slow_response_becomes_a_resumable_stream() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    site.pass(STREAM_AFTER);
    assert_eq!(site.said(x), ["200 stream", "s1-1(1000)|"]);
    // The connection is cut, and the response follows while the client is disconnected.
    site.cut(x);
    assert!(site.event().is_none_or(|event| !matches!(event, Event::Cancelled(_))));
    site.complete(responder, "{}");
    let y = site.bare("GET", client.after("s1-1"));
    assert_eq!(site.said(y), ["200 stream".into(), format!("s1-2|{}", answer(1)), "end".into()]);
}

// covers: SHTTP-S-028, X-02, X-12, B-222, B-167
#[test]
fn disconnect_does_not_cancel_a_legacy_request() {
    for version in ["2025-11-25", "2025-03-26"] {
        let mut site = Site::new();
        let client = site.session(version, "{}");
        while site.event().is_some() {}
        let x = client.call(&mut site, 1);
        let (responder, _) = site.handed();
        assert_eq!(site.bench.server.unheard().count(), 0);
        site.cut(x);
        assert_eq!(site.event(), None);
        assert_eq!((site.bench.server.running(), site.bench.server.unheard().count()), (1, 1));
        site.codes();
        site.complete(responder, "{}");
        assert_eq!(site.bench.server.unheard().count(), 0);
        assert_eq!(site.codes(), ["dropped-answer"]);
        site.bare("DELETE", client.headers());
        assert!(site.at_rest());
    }
}

// covers: SHTTP-S-045, S3-13, S3-26, B-036, B-037, SHTTP-S-041, SHTTP-S-039, S3-11, SHTTP-S-036
#[test]
fn replay_covers_one_stream_after_the_event() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let own = site.bare("GET", client.headers());
    let (x, y) = (client.call(&mut site, 1), client.call(&mut site, 2));
    let (first, _) = site.handed();
    let (second, _) = site.handed();
    // More than nine events on each stream, interleaved: ids must compare as numbers.
    for n in 1..=12 {
        tell(&mut site, &first, f64::from(n));
        tell(&mut site, &second, f64::from(100 + n));
    }
    let said = site.said(x);
    let ids: Vec<String> = said[1..].iter().map(|line| event(line).0.to_string()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 13);
    site.said(y);
    assert_eq!(site.said(own).len(), 2);
    for (at, id) in ids.iter().enumerate() {
        let z = site.bare("GET", client.after(id));
        let replayed = site.said(z);
        assert_eq!(replayed[0], "200 stream");
        let seen: Vec<f64> =
            replayed[1..].iter().filter(|line| line.contains('|')).map(|line| progress(event(line).1)).collect();
        let expected: Vec<f64> = (1..=12).map(f64::from).skip(at).collect();
        assert_eq!(seen, expected, "after {id}");
    }
    assert_eq!(site.said(own), Vec::<String>::new());
    assert_eq!(site.said(y), Vec::<String>::new());
    site.complete(second, "{}");
    assert_eq!(site.said(y).last().map(String::as_str), Some("end"));
}

// covers: SHTTP-S-045, B-038, R-19
#[test]
fn unknown_last_event_id_is_refused() {
    let mut site = Site::with(|config| config.limits.server.history_events = 3);
    let (client, other) = (site.session("2025-11-25", "{}"), site.session("2025-11-25", "{}"));
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    other.call(&mut site, 1);
    let (theirs, _) = site.handed();
    for n in 1..=8 {
        tell(&mut site, &responder, f64::from(n));
    }
    tell(&mut site, &theirs, 1.0);
    site.said(x);
    // Purged, future, of another stream, malformed, empty numbers.
    for cursor in
        ["s1-1", "s1-5", "s1-10", "s2-7", "7", "s1-7 ", "s1-07", "s1-+7", "-", "s1-", "x-7", "s1-99999999999999999999"]
    {
        let y = site.bare("GET", client.after(cursor));
        let refused = cursor.trim() != "s1-7";
        let said = site.said(y);
        assert_eq!(said[0].starts_with("400 "), refused, "{cursor}: {said:?}");
    }
    // The newest purged event is as good as a stored one: no event after it is missing.
    let y = site.bare("GET", client.after("s1-6"));
    assert_eq!(site.said(y).len(), 4);
    // Ids of another session are refused in both directions.
    let y = site.bare("GET", other.after("s1-7"));
    assert_eq!(site.refusal(y).0, 400);
}

// covers: B-041, SHTTP-C-038, SHTTP-S-001
#[test]
fn new_exchange_supersedes_the_old_one_of_a_stream() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    tell(&mut site, &responder, 1.0);
    site.said(x);
    let y = site.bare("GET", client.after("s1-1"));
    assert_eq!(site.said(x), ["end"]);
    assert_eq!(site.said(y).len(), 2);
    // The end of the old exchange changes nothing.
    site.cut(x);
    tell(&mut site, &responder, 2.0);
    assert_eq!(site.said(y).len(), 1);
    let (a, b) = (site.bare("GET", client.headers()), site.bare("GET", client.headers()));
    assert_eq!(site.said(a).last().map(String::as_str), Some("end"));
    assert_eq!(site.said(b)[0], "200 stream");
    site.complete(responder, "{}");
    assert_eq!((site.said(y).len(), site.said(b).len()), (2, 0));
}

// covers: SHTTP-S-017, SHTTP-S-019, SHTTP-S-044
#[test]
fn stream_closed_by_a_handler_can_be_resumed() {
    for began in [false, true] {
        let mut site = Site::new();
        let client = site.session("2025-11-25", "{}");
        let x = client.call(&mut site, 1);
        let (responder, _) = site.handed();
        if began {
            tell(&mut site, &responder, 1.0);
            site.said(x);
        }
        let close = Note::CloseStream(Some(Duration::from_millis(250)));
        site.bench.server.notify(site.bench.now, responder.key(), close.clone()).unwrap();
        let said = site.said(x);
        let last = if began { "s1-3" } else { "s1-1" };
        assert_eq!(said[said.len() - 2..], [format!("{last}(250)|"), "end".into()]);
        // Closing a closed stream changes nothing.
        site.bench.server.notify(site.bench.now, responder.key(), close).unwrap();
        site.complete(responder, "{}");
        let y = site.bare("GET", client.after(last));
        let said = site.said(y);
        assert_eq!((event(&said[1]).1, said[2].as_str()), (answer(1).as_str(), "end"));
    }
}

// covers: B-018, SHTTP-S-025, X-13
#[test]
fn early_close_is_refused_where_unsupported() {
    let close = || Note::CloseStream(None);
    for version in ["2025-06-18", "2025-03-26"] {
        let mut site = Site::new();
        let client = site.session(version, "{}");
        let x = client.call(&mut site, 1);
        let (responder, _) = site.handed();
        let refused = site.bench.server.notify(site.bench.now, responder.key(), close()).unwrap_err();
        assert_eq!((refused.why, refused.value), (Refusal::NotWanted, close()));
        assert!(site.said(x).is_empty());
    }
    let mut site = Site::new();
    let headers = Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", "tools/list");
    site.post(headers, &modern("1", "tools/list", ""));
    let (responder, _) = site.handed();
    assert!(site.bench.server.notify(site.bench.now, responder.key(), close()).is_err());
}

// covers: B-039, B-040, B-042, SHTTP-S-030
#[test]
fn finished_stream_is_kept_a_minute_after_its_write() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    tell(&mut site, &responder, 1.0);
    site.unsent(x, 10);
    site.complete(responder, "{}");
    site.said(x);
    // Before its bytes are written, the time does not count.
    for _ in 0..5 {
        site.pass(Duration::from_secs(20));
        site.unsent(x, 5);
        site.unsent(x, 4);
    }
    assert_eq!(site.bench.server.wire.http.streams(), 1);
    site.unsent(x, 0);
    assert!(site.bench.server.wire.env.exchanges.is_empty());
    site.pass(Duration::from_secs(59));
    let y = site.bare("GET", client.after("s1-2"));
    let said = site.said(y);
    assert_eq!((event(&said[1]).1, said[2].as_str()), (answer(1).as_str(), "end"));
    // An exchange without reports gets the maximum time of a write.
    site.pass(Duration::from_secs(89));
    assert_eq!(site.bench.server.wire.http.streams(), 1);
    site.pass(Duration::from_secs(1));
    let y = site.bare("GET", client.after("s1-2"));
    assert_eq!(site.refusal(y).0, 400);
    assert_eq!((site.bench.server.wire.http.streams(), site.kept()), (0, 0));
}

// covers: B-039
#[test]
fn unwritten_response_is_kept_with_its_session() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    tell(&mut site, &responder, 1.0);
    site.unsent(x, 10);
    site.complete(responder, "{}");
    site.cut(x);
    site.pass(Duration::from_secs(20 * 60));
    let y = site.bare("GET", client.after("s1-2"));
    let said = site.said(y);
    assert_eq!((event(&said[1]).1, said[2].as_str()), (answer(1).as_str(), "end"));
    site.cut(y);
    site.bare("DELETE", client.headers());
    assert!(site.at_rest());
}

// covers: S3-34, S3-50, B-042, R-34
#[test]
fn histories_are_bounded_by_events_and_bytes() {
    let kept = |change: fn(&mut ServerConfig)| {
        let mut site = Site::with(change);
        let clients = [site.session("2025-11-25", "{}"), site.session("2025-11-25", "{}")];
        for client in &clients {
            client.call(&mut site, 1);
            let (responder, _) = site.handed();
            for n in 0..1500_u64 {
                let note = Note::Custom("x".into(), Object::new().with("data", "x".repeat(1000).as_str()).with("n", n));
                site.bench.server.notify(site.bench.now, responder.key(), note).unwrap();
                site.take();
            }
        }
        site.kept()
    };
    let one = 1060 + 64;
    let both = kept(|_| {});
    assert!((2000 * (one - 20)..2000 * (one + 20)).contains(&both), "{both}");
    let half = kept(|config| config.limits.server.history_bytes = 500_000);
    assert!((900_000..=1_000_000).contains(&half), "{half}");
    let all = kept(|config| {
        config.limits.server.client_shares = 1;
        config.limits.server.history_total = 300_000;
    });
    assert!((260_000..=300_000).contains(&all), "{all}");
}

// covers: S3-34, B-042, B-187
#[test]
fn large_history_evicts_none_of_another_client() {
    let mut site = Site::with(|config| {
        config.limits.server.client_shares = 1;
        config.limits.server.history_total = 300_000;
    });
    let (greedy, modest) = (site.session("2025-11-25", "{}"), site.session("2025-11-25", "{}"));
    let note = |n: u64| Note::Custom("x".into(), Object::new().with("data", "x".repeat(1000).as_str()).with("n", n));
    let flood = |site: &mut Site, id: u32| {
        let x = greedy.call(site, id);
        let (responder, _) = site.handed();
        for n in 0..400 {
            site.bench.server.notify(site.bench.now, responder.key(), note(n)).unwrap();
            site.take();
        }
        site.cut(x);
        site.complete(responder, "{}");
    };
    flood(&mut site, 1);
    let x = modest.call(&mut site, 1);
    let (responder, _) = site.handed();
    tell(&mut site, &responder, 1.0);
    site.cut(x);
    site.complete(responder, "{}");
    flood(&mut site, 2);
    assert!(site.kept() <= 300_000);
    let back = site.bare("GET", modest.after("s1-1"));
    let said = site.said(back);
    assert_eq!(event(&said[2]).1, answer(1), "{said:?}");
    // Lost events are reported, once for each stream.
    site.codes();
    let x = greedy.call(&mut site, 3);
    let (responder, _) = site.handed();
    tell(&mut site, &responder, 1.0);
    site.cut(x);
    for n in 0..400 {
        site.bench.server.notify(site.bench.now, responder.key(), note(n)).unwrap();
    }
    let told = site.codes().iter().filter(|code| **code == "dropped-answer").count();
    assert_eq!(told, 2, "the answer of the second call, and of the third what came after its client had gone");
}

// covers: S3-34, B-043
#[test]
fn event_is_stored_before_it_is_sent() {
    let mut site = Site::with(|config| config.report_kept = true);
    let client = site.session("2025-11-25", "{}");
    client.call(&mut site, 1);
    let (responder, _) = site.handed();
    site.bench.server.notify(site.bench.now, responder.key(), Note::Progress(Progress::new(1.0))).unwrap();
    site.bench.complete(responder, "{}");
    let mut order = Vec::new();
    for output in site.bench.outputs() {
        match output {
            Output::Event(Event::Kept(kept)) => order.push(format!("kept {}", kept.id)),
            Output::Send(_, Outbound::Event { id, .. }) => order.push(format!("send {}", id.unwrap())),
            _ => {}
        }
    }
    assert_eq!(order, ["kept s1-1", "send s1-1", "kept s1-2", "send s1-2", "kept s1-3", "send s1-3"]);
    // Events of a disconnected client are stored as well.
    let x = client.call(&mut site, 2);
    let (responder, _) = site.handed();
    tell(&mut site, &responder, 1.0);
    site.cut(x);
    site.bench.complete(responder, "{}");
    assert!(matches!(&site.bench.outputs()[..], [Output::Event(Event::Kept(kept))] if kept.stream == 2));
}

// covers: HTTP-S-024, S3-28, B-033, B-179, R-11
#[test]
fn keep_alive_is_sent_only_on_streams_that_are_read() {
    let mut site = Site::new();
    let client = site.session("2025-06-18", "{}");
    let own = site.bare("GET", client.headers());
    assert_eq!(site.said(own), ["200 stream", ":"]);
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    for _ in 0..240 {
        site.pass(Duration::from_secs(15));
    }
    assert_eq!(site.said(own), vec![":"; 240]);
    // A long request gets a stream, so that no intermediary considers its connection dead.
    let said = site.said(x);
    assert_eq!((said[0].as_str(), said.len()), ("200 stream", 241));
    site.unsent(own, 1);
    site.pass(Duration::from_secs(15));
    assert!(site.said(own).is_empty());
    site.complete(responder, "{}");
    assert_eq!(site.said(x).last().map(String::as_str), Some("end"));
    let mut silent = Site::with(|config| config.keep_alive = None);
    let client = silent.session("2025-11-25", "{}");
    let own = silent.bare("GET", client.headers());
    assert_eq!(silent.said(own), ["200 stream", "s1-1(1000)|"]);
    silent.pass(Duration::from_secs(3600));
    assert!(silent.said(own).is_empty());
}

// covers: B-187
#[test]
fn only_newest_progress_is_kept_for_a_disconnected_client() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    tell(&mut site, &responder, 1.0);
    site.cut(x);
    for n in 2..5000 {
        tell(&mut site, &responder, f64::from(n));
    }
    let y = site.bare("GET", client.after("s1-2"));
    let said = site.said(y);
    assert_eq!(progress(event(said.last().unwrap()).1), 4999.0);
    assert!(said.len() <= 3, "{said:?}");
    site.complete(responder, "{}");
    assert_eq!(site.said(y).len(), 2);
}

// covers: B-039
#[test]
fn unread_replay_can_be_repeated() {
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    site.pass(STREAM_AFTER);
    site.cut(x);
    site.complete(responder, "{}");
    for _ in 0..3 {
        let y = site.bare("GET", client.after("s1-1"));
        assert_eq!(site.said(y).len(), 3);
        // The driver reports unsent bytes, and the client reads nothing.
        site.unsent(y, 300);
        site.cut(y);
        site.pass(Duration::from_secs(10 * 60));
    }
    // A report about earlier bytes does not cover the queued end of the stream.
    let x = client.call(&mut site, 2);
    let (responder, _) = site.handed();
    tell(&mut site, &responder, 1.0);
    site.bench.complete(responder, "{}");
    site.bench.handle_event(x, ExchangeEvent::Unsent(0));
    site.cut(x);
    site.pass(Duration::from_secs(20 * 60));
    let y = site.bare("GET", client.after("s2-4"));
    assert!(site.said(y).iter().any(|line| line.contains(r#""id":2"#)));
}

// covers: B-039, B-042
#[test]
fn event_too_large_to_store_evicts_no_other() {
    let mut site = Site::with(|config| config.limits.server.history_bytes = 10_000);
    let client = site.session("2025-11-25", "{}");
    let (x, y) = (client.call(&mut site, 1), client.call(&mut site, 2));
    let (first, _) = site.handed();
    let (second, _) = site.handed();
    tell(&mut site, &first, 1.0);
    tell(&mut site, &second, 1.0);
    site.cut(x);
    site.complete(first, "{}");
    site.codes();
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(20_000));
    site.complete(second, &large);
    assert_eq!(site.codes(), ["dropped-answer"]);
    assert_eq!(site.said(y).last().map(String::as_str), Some("end"));
    let again = site.bare("GET", client.after("s1-1"));
    assert!(site.said(again).iter().any(|line| line.contains(r#""id":1"#)));
    let never = site.bare("GET", client.after("s2-3"));
    assert_eq!(site.refusal(never).0, 400);
}

// covers: B-042, S3-26, SHTTP-S-041
#[test]
fn stream_resumes_after_an_event_too_large_to_store() {
    let mut site = Site::with(|config| config.limits.server.history_bytes = 10_000);
    let client = site.session("2025-11-25", "{}");
    let x = client.call(&mut site, 1);
    let (responder, _) = site.handed();
    let large = || Note::Custom("x".into(), Object::new().with("data", "x".repeat(20_000).as_str()));
    for _ in 0..2 {
        site.bench.server.notify(site.bench.now, responder.key(), large()).unwrap();
    }
    let said = site.said(x);
    let ids: Vec<&str> = said[1..].iter().map(|line| event(line).0).collect();
    assert_eq!(ids, ["s1-1", "s1-2", "s1-3"], "each has an id of its own");
    site.cut(x);
    tell(&mut site, &responder, 1.0);
    site.complete(responder, "{}");
    // After the last of them no event is missing, before it one is.
    for before in &ids[..2] {
        let early = site.bare("GET", client.after(before));
        assert_eq!(site.refusal(early).0, 400, "{before}");
    }
    let back = site.bare("GET", client.after(ids[2]));
    let said = site.said(back);
    assert_eq!((said.len(), event(&said[1]).0, progress(event(&said[1]).1)), (4, "s1-4", 1.0));
    assert_eq!((event(&said[2]), said[3].as_str()), (("s1-5", answer(1).as_str()), "end"));
}

// covers: B-041, B-187
#[test]
fn superseded_exchange_that_is_not_read_is_aborted() {
    let max = Limits::default().server.max_unsent;
    for (unsent, end) in [(max, "end"), (max + 1, "abort")] {
        let mut site = Site::new();
        let client = site.session("2025-11-25", "{}");
        let first = site.bare("GET", client.headers());
        site.said(first);
        site.unsent(first, unsent);
        let second = site.bare("GET", client.headers());
        assert_eq!(site.said(first), [end], "{unsent} bytes are not written");
        assert_eq!(site.said(second)[0], "200 stream");
        // In both cases the first exchange is gone.
        assert_eq!(site.bench.server.wire.env.exchanges.keys().collect::<Vec<_>>(), [&second]);
    }
}

// covers: B-189
#[test]
fn unreported_streams_occupy_no_exchange() {
    let mut site = Site::with(|config| config.limits.server.max_exchanges = 2);
    let client = site.session("2025-11-25", "{}");
    for id in 1..=5 {
        let x = client.call(&mut site, id);
        let (responder, _) = site.handed();
        tell(&mut site, &responder, 1.0);
        site.complete(responder, "{}");
        assert_eq!(site.said(x).last().map(String::as_str), Some("end"), "{id}");
    }
    // Each stream can still be resumed, as long as one with a place.
    site.pass(Duration::from_secs(89));
    assert_eq!(site.bench.server.wire.http.streams(), 5);
    site.pass(Duration::from_secs(1));
    assert_eq!(site.bench.server.wire.http.streams(), 0);
}

// covers: R-19, S3-26
#[test]
fn unknown_event_is_refused_or_replays_the_own_stream() {
    for replays in [false, true] {
        let mut site = Site::with(|config| {
            config.capabilities.tools.get_or_insert_default().list_changed = true;
            config.capabilities.prompts.get_or_insert_default().list_changed = true;
            if replays {
                config.compat.unknown_event = UnknownEvent::ReplayFromOldest;
            }
        });
        let client = site.session("2025-06-18", "{}");
        let x = site.bare("GET", client.headers());
        site.bench.server.publish(site.bench.now, Change::Tools);
        site.bench.server.publish(site.bench.now, Change::Prompts);
        let said: Vec<String> = site.said(x).into_iter().filter(|line| line.contains("list_changed")).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        site.cut(x);
        for cursor in ["nonsense", "s9-99"] {
            let x = site.bare("GET", client.after(cursor));
            if replays {
                let again: Vec<String> =
                    site.said(x).into_iter().filter(|line| line.contains("list_changed")).collect();
                assert_eq!(again, said, "{cursor}");
                site.cut(x);
            } else {
                assert_eq!(site.refusal(x).0, 400, "{cursor}");
            }
        }
        // A known one goes on after it, as always.
        let x = site.bare("GET", client.after(event(&said[0]).0));
        let rest: Vec<String> = site.said(x).into_iter().filter(|line| line.contains("list_changed")).collect();
        assert_eq!(rest, said[1..]);
    }
}
