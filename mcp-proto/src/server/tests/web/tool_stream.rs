//! The dialect of tool streams, for clients that negotiate nothing.

use super::*;
use crate::exchange::Dialect;
use crate::model::content::Content;

const CALL: &str = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t"}}"#;

fn site(sessions: Sessions) -> Site {
    Site::with(|config| {
        config.dialect = Dialect::ToolStream;
        config.sessions = sessions;
        config.keep_alive_text = "heartbeat".into();
    })
}

fn part(site: &mut Site, responder: &Responder, text: &str) -> Result<(), Refusal> {
    let note = Note::Part(Content::text(text));
    site.bench.server.notify(site.bench.now, responder.key(), note).map_err(|refused| refused.why)
}

// covers: S2-22, S2-23, S2-24, S2-26, S2-29, S2-30, S2-42
#[test]
fn call_is_answered_by_typed_events() {
    for sessions in [Sessions::Optional, Sessions::Required, Sessions::Off] {
        let mut site = site(sessions);
        let x = site.post(Headers::new(), CALL);
        let (responder, incoming) = site.handed();
        assert_eq!(incoming.context.version, ProtocolVersion::V2025_11_25);
        site.pass(Duration::from_secs(15));
        assert_eq!(site.said(x), ["200 stream", ":heartbeat"]);
        assert_eq!(part(&mut site, &responder, "one"), Ok(()));
        assert_eq!(part(&mut site, &responder, "two"), Ok(()));
        let result = r#"{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}"#;
        site.complete(responder, result);
        let said = site.said(x);
        let parts = ["one", "two"].map(|text| format!(r#"result|{{"content":[{{"type":"text","text":"{text}"}}]}}"#));
        assert_eq!(said[..2], parts);
        assert_eq!(said[2..], [format!(r#"complete|{{"jsonrpc":"2.0","id":"a","result":{result}}}"#), "end".into()]);
        assert_eq!(site.head(x).headers.get("content-type"), Some("text/event-stream"));
        assert_eq!(site.head(x).headers.get("x-accel-buffering"), Some("no"));
        assert!(site.at_rest());
    }
}

// covers: S2-25
#[test]
fn error_is_an_event_that_ends_the_stream() {
    let mut site = site(Sessions::Optional);
    let x = site.post(Headers::new(), CALL);
    let (responder, _) = site.handed();
    site.bench.answer(responder, Outcome::Error(ErrorObject::new(-32000, "no")));
    let error = r#"error|{"jsonrpc":"2.0","id":"a","error":{"code":-32000,"message":"no"}}"#;
    assert_eq!(site.said(x), ["200 stream", error, "end"]);
    // A client that takes no events gets JSON.
    let x = site.post(Headers::new().with("Accept", "application/json"), CALL);
    let (responder, _) = site.handed();
    assert_eq!(part(&mut site, &responder, "one"), Err(Refusal::NotWanted));
    site.complete(responder, "{}");
    assert_eq!(site.said(x), [r#"200 {"jsonrpc":"2.0","id":"a","result":{}}"#]);
}

// covers: S2-28
#[test]
fn end_of_its_connection_cancels_a_call() {
    let mut site = site(Sessions::Optional);
    for read_closed in [false, true] {
        let x = site.post(Headers::new(), CALL);
        let (responder, _) = site.handed();
        match read_closed {
            true => site.bench.handle_event(x, ExchangeEvent::ReadClosed),
            false => site.cut(x),
        }
        assert_eq!(site.event(), Some(Event::Cancelled(responder.key())));
        assert!(site.at_rest());
    }
}

#[test]
fn requests_of_mcp_are_served_as_ever_beside_it() {
    let mut site = site(Sessions::Optional);
    let client = site.session("2025-11-25", "{}");
    while site.event().is_some() {}
    for headers in [client.headers(), Headers::new().with("MCP-Protocol-Version", "2025-06-18")] {
        let x = site.post(headers, &call(1));
        let (responder, _) = site.handed();
        assert_eq!(part(&mut site, &responder, "one"), Err(Refusal::NotWanted));
        site.complete(responder, "{}");
        assert_eq!(site.said(x), [format!("200 {}", answer(1))]);
    }
    // The dialect has no other method.
    let x = site.post(Headers::new(), &legacy("1", "tools/list", "{}"));
    assert_eq!(site.refusal(x), (400, -32600));
    // Without the dialect, a call without a revision is no call.
    let mut site = Site::new();
    let x = site.post(Headers::new(), CALL);
    assert_eq!(site.refusal(x), (400, -32600));
}

#[test]
fn part_waits_for_a_client_that_reads() {
    let mut site = Site::with(|config| {
        config.dialect = Dialect::ToolStream;
        config.limits.server.max_unsent = 100;
    });
    let x = site.post(Headers::new(), CALL);
    let (responder, _) = site.handed();
    assert_eq!(part(&mut site, &responder, &"x".repeat(200)), Err(Refusal::Full));
    assert_eq!(part(&mut site, &responder, "x"), Ok(()));
    let key = responder.key();
    site.complete(responder, "{}");
    site.said(x);
    let note = Note::Part(Content::text("late"));
    assert_eq!(site.bench.server.notify(site.bench.now, key, note).unwrap_err().why, Refusal::Gone);
}
