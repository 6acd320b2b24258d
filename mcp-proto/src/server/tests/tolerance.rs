//! Clients that deviate from the specification: what is left out or taken as it is meant, and the
//! diagnostics.

use super::web::Site;
use super::*;
use crate::exchange::Headers;
use crate::model::roots::Roots;

const BOTH: &str = r#"{"roots":{},"sampling":{}}"#;

impl Bench {
    /// The details of the pending diagnostics of this kind.
    fn details(&mut self, kind: DiagnosticKind) -> Vec<String> {
        let detail = |event| match event {
            Event::Diagnostic(diagnostic) if diagnostic.kind == kind => Some(diagnostic.detail),
            _ => None,
        };
        self.events().into_iter().filter_map(detail).collect()
    }
}

fn asks_for_roots() -> Outcome {
    Outcome::NeedInput { requests: vec![("r".into(), InputRequest::Roots)], state: None }
}

/// A legacy server whose handler asks for the roots. Returns the id of its request.
fn asking() -> (Bench, i64) {
    let mut bench = Bench::new().initialized(A, "2025-11-25", BOTH);
    let (responder, _) = bench.request(A, &legacy("1", "tools/call", r#"{"name":"t"}"#));
    bench.answer(responder, asks_for_roots());
    let said = bench.heard(A);
    let crate::rpc::Message::Request(request) = message(&said[0]) else { panic!("{said:?}") };
    let crate::rpc::Id::Int(id) = request.id else { panic!("{said:?}") };
    (bench, id)
}

#[test]
fn root_that_cannot_be_decoded_is_left_out_and_named() {
    const ROOTS: &str = r#"{"roots":[{"uri":"file:///a"},{"name":"b"},{"uri":"file:///c"}]}"#;
    let (mut bench, id) = asking();
    bench.item(A, read(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ROOTS}}}"#)));
    let outputs = bench.outputs();
    let named = outputs.iter().find_map(|output| match output {
        Output::Event(Event::Diagnostic(d)) => Some((d.kind, d.detail.as_str())),
        _ => None,
    });
    assert_eq!(named, Some((DiagnosticKind::InvalidElement, "r: element 1 (`b`): `uri` is missing")));
    let answer = outputs.into_iter().find_map(|output| match output {
        Output::Event(Event::Request(_, incoming)) => incoming.inputs.get("r").cloned(),
        _ => None,
    });
    let roots = Roots::read(Object::read(&answer.unwrap().unwrap()).unwrap()).unwrap();
    assert_eq!((roots.roots.len(), roots.skipped.len()), (2, 1));
}

#[test]
fn answers_of_a_round_of_a_modern_client_are_looked_at() {
    let mut bench = Bench::with(|config| config.compat.unasked_answers = true).open(A);
    let sampled = r#"{"role":"assistant","model":"m","content":[{"type":"text"},{"type":"text","text":"t"}]}"#;
    let rest = format!(r#","name":"t","inputResponses":{{"s":{sampled}}}"#);
    bench.item(A, read(&modern_with("1", "tools/call", BOTH, &rest)));
    assert_eq!(bench.details(DiagnosticKind::InvalidElement), ["s: element 0: `text` is missing"]);
}

// covers: RPC-B-010
#[test]
fn nulls_of_a_client_have_one_diagnostic() {
    let (mut bench, mut id) = asking();
    let mut found = Vec::new();
    for _ in 0..3 {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}},"error":null,"method":null}}"#);
        bench.item(A, read(&answer));
        let mut handed = None;
        for output in bench.outputs() {
            match output {
                Output::Event(Event::Diagnostic(d)) => found.push(d.kind),
                Output::Event(Event::Request(responder, incoming)) => handed = Some((responder, incoming)),
                _ => {}
            }
        }
        let (responder, incoming) = handed.expect("the answer arrived");
        assert!(incoming.inputs["r"].is_ok());
        bench.answer(responder, asks_for_roots());
        let said = bench.heard(A);
        let crate::rpc::Message::Request(request) = message(&said[0]) else { panic!("{said:?}") };
        id = if let crate::rpc::Id::Int(id) = request.id { id } else { panic!("{said:?}") };
    }
    assert_eq!(found, [DiagnosticKind::Deviation]);
    // What a malformed error says reaches the handler.
    bench.item(A, read(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"no roots today"}}"#)));
    let (_, incoming) = bench.handed();
    let error = incoming.inputs["r"].clone().unwrap_err();
    assert!(error.message.ends_with("no roots today"), "{error:?}");
}

#[test]
fn handshake_of_a_client_is_taken_as_it_is_meant() {
    for (info, capabilities, detail) in [
        (r#"{"name":"c"}"#, "{}", "`clientInfo` has no version"),
        (r#"{"name":"c","version":7}"#, "{}", "the version in `clientInfo` is a number"),
        (r#"{"name":"c","version":"1"}"#, "[]", "`capabilities` is an array"),
        (r#"{"name":"c","version":"1"}"#, r#"{"roots":[]}"#, "the capability `roots` is an array"),
    ] {
        let mut bench = Bench::new().open(A);
        let params = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{info}}}"#);
        bench.item(A, read(&legacy("1", "initialize", &params)));
        assert_eq!(bench.details(DiagnosticKind::Deviation), [detail]);
        let (_, incoming) = bench.request(A, &legacy("2", "tools/call", r#"{"name":"t"}"#));
        assert_eq!(incoming.context.client().expect("a client").name, "c", "{info}");
        assert_eq!(incoming.context.capabilities().roots.is_some(), capabilities.contains("roots"));
    }
}

/// In whatever way it arrives, and on every revision, a notification has no answer.
// covers: B-064, RPC-B-008
#[test]
fn notification_with_an_array_is_dropped_in_silence() {
    let odd = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":["1"]}"#;
    for version in ["2025-11-25", "2025-03-26"] {
        let mut bench = Bench::new().initialized(A, version, "{}");
        bench.item(A, read(odd));
        let outputs = bench.outputs();
        assert_eq!(outputs.iter().filter_map(|output| on(A, output)).count(), 0, "{outputs:?}");
        assert!(matches!(&outputs[..], [Output::Event(Event::Diagnostic(d))] if d.kind == DiagnosticKind::BadMessage));
    }
    let only_modern = |config: &mut ServerConfig| config.versions = Versions::new([ProtocolVersion::V2026_07_28]);
    let mut bench = Bench::with(only_modern).open(A);
    assert!(bench.say(A, odd).is_empty());
    let mut site = Site::new();
    let client = site.session("2025-11-25", "{}");
    let modern = Headers::new().with("mcp-protocol-version", "2026-07-28");
    for headers in [client.headers(), modern] {
        let x = site.post(headers, odd);
        assert_eq!(site.said(x), ["202 "]);
    }
    let batching = site.session("2025-03-26", "{}");
    let x = site.post(batching.headers(), &format!("[{odd},{odd}]"));
    assert_eq!(site.said(x), ["202 "]);
}

// covers: B-064
#[test]
fn empty_array_of_params_is_an_empty_object_of_a_request() {
    let mut bench = Bench::new().initialized(A, "2025-11-25", "{}");
    let (_, incoming) = bench.request(A, &legacy("1", "tools/list", "[]"));
    assert!(incoming.params.is_empty());
    assert!(bench.say(A, &legacy("2", "tools/list", "[1]"))[0].contains("-32602"));
    bench.item(A, read(r#"{"jsonrpc":"2.0","method":"notifications/custom","params":[]}"#));
    let events = bench.events();
    assert!(
        matches!(&events[..], [Event::Notification { method, .. }] if method == "notifications/custom"),
        "{events:?}"
    );
}
