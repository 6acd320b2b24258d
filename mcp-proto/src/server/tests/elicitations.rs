//! Web pages that a handler asks the user to open: on every revision, and their completion.

use super::*;
use crate::input::{Admission, InputAnswer, InputResult, Principal};
use crate::model::elicitation::{ElicitResult, Form, UrlRequest};
use crate::version::Era;

pub(super) const URLS: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;
const PAGE: &str = "https://pay.example/4711";
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;

/// An outcome that asks the user to open a page.
pub(super) fn page(id: Option<&str>) -> Outcome {
    pages(&[("pay", id)])
}

fn pages(ids: &[(&str, Option<&str>)]) -> Outcome {
    let request = |id: &Option<&str>| {
        let request = UrlRequest::new("Pay first", PAGE);
        id.map_or(request.clone(), |id| request.id(id))
    };
    let requests = ids.iter().map(|(name, id)| (name.to_string(), InputRequest::Elicitation(request(id).into())));
    Outcome::NeedInput { requests: requests.collect(), state: None }
}

/// Calls the tool on this exchange. Its handler asks the user to open a page.
fn asked(bench: &mut Bench, x: ExchangeId, id: u32, outcome: Outcome) -> Vec<String> {
    let (responder, _) = bench.request(x, &legacy(&id.to_string(), "tools/call", r#"{"name":"t"}"#));
    bench.answer(responder, outcome);
    bench.heard(x)
}

/// Returns the id of the page in a request of the server.
fn id_in(said: &str) -> String {
    let crate::rpc::Message::Request(request) = message(said) else { panic!("{said}") };
    assert_eq!(request.method, "elicitation/create");
    Object::read_opt(request.params.as_ref()).unwrap().required("elicitationId").unwrap()
}

fn elicited(bench: &mut Bench, id: &str) {
    let input = Input::Command(ServerCommand::Elicited(id.into()));
    assert_eq!(bench.server.apply(bench.now, input), Ok(InputResult::Done));
}

fn completion(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{{"elicitationId":"{id}"}}}}"#)
}

// covers: ELIC-S-004, ELIC-S-006, ELIC-S-010, ELIC-S-011, X-08
#[test]
fn page_is_asked_for_as_the_revision_has_it() {
    for version in ProtocolVersion::ALL {
        let bench = Bench::new();
        let is_modern = version.era() == Era::Modern;
        for declared in
            [URLS, r#"{"elicitation":{"url":{}}}"#, r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#, "{}"]
        {
            let mut bench = match is_modern {
                true => Bench::new().open(A),
                false => Bench::new().initialized(A, version.as_str(), declared),
            };
            let call = if is_modern { modern_with("1", "tools/call", declared, r#","name":"t""#) } else { CALL.into() };
            let (responder, _) = bench.request(A, &call);
            bench.answer(responder, page(Some("it")));
            let said = bench.heard(A);
            let [said] = &said[..] else { panic!("{said:?}") };
            let has_urls = declared.contains("url");
            match (is_modern, has_urls && version.rules().elicitation_modes) {
                (true, true) => {
                    let expected = r#"{"pay":{"method":"elicitation/create","params":{"mode":"url","message":"Pay first","url":"https://pay.example/4711"}}}"#;
                    assert_eq!(result(said).get("inputRequests").unwrap().as_str(), expected);
                }
                (true, false) => {
                    let error = error(said);
                    let data = error.data.unwrap();
                    assert_eq!((error.code, data.as_str()), (-32021, r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#));
                }
                (false, true) => assert!(
                    said.ends_with(r#""params":{"mode":"url","message":"Pay first","url":"https://pay.example/4711","elicitationId":"it"}}"#),
                    "{said}"
                ),
                (false, false) => assert_eq!(result(said).required("isError"), Ok(true), "{version} {declared}"),
            }
            assert_eq!(
                bench.server.requests.elicitations.len(),
                usize::from(!is_modern && has_urls && version.rules().elicitation_modes)
            );
        }
        assert!(bench.at_rest());
    }
}

// covers: ELIC-S-010, ELIC-S-036, ELIC-S-037
#[test]
fn page_with_an_invalid_url_is_not_asked_for() {
    for (url, kinds) in [
        ("https://pay.example/", &[][..]),
        ("http://localhost/", &[]),
        ("http://pay.example/", &["insecure-url"]),
        ("https://ann:secret@pay.example/", &["invalid-input-request"]),
        ("javascript:alert(1)", &["invalid-input-request"]),
        ("pay.example", &["invalid-input-request"]),
    ] {
        for is_modern in [true, false] {
            let mut bench =
                if is_modern { Bench::new().open(A) } else { Bench::new().initialized(A, "2025-11-25", URLS) };
            let call = if is_modern { modern_with("1", "tools/call", URLS, r#","name":"t""#) } else { CALL.into() };
            let (responder, _) = bench.request(A, &call);
            let request = InputRequest::Elicitation(UrlRequest::new("?", url).into());
            bench.answer(responder, Outcome::NeedInput { requests: vec![("pay".into(), request)], state: None });
            let outputs = bench.outputs();
            let said: Vec<String> = outputs.iter().filter_map(|output| on(A, output)).collect();
            let code = |output: &Output| match output {
                Output::Event(Event::Diagnostic(d)) => Some(d.kind.code()),
                _ => None,
            };
            let told: Vec<&str> = outputs.iter().filter_map(code).collect();
            assert_eq!((told, said.len()), (kinds.to_vec(), 1), "{url}");
            assert_eq!(said[0].contains("-32603"), kinds.contains(&"invalid-input-request"), "{url}: {said:?}");
        }
    }
}

// covers: ELIC-S-008
#[test]
fn form_with_a_nested_schema_is_not_sent() {
    for version in ProtocolVersion::ALL.into_iter().filter(|version| version.rules().elicitation) {
        let is_modern = version.era() == Era::Modern;
        let mut bench = match is_modern {
            true => Bench::new().open(A),
            false => Bench::new().initialized(A, version.as_str(), URLS),
        };
        let call = if is_modern { modern_with("1", "tools/call", URLS, r#","name":"t""#) } else { CALL.into() };
        let (responder, _) = bench.request(A, &call);
        let schema = RawJson::parse(r#"{"type":"object","properties":{"a":{"type":"object"}}}"#).unwrap();
        let request = InputRequest::Elicitation(Form::with_schema("?", schema).into());
        bench.answer(responder, Outcome::NeedInput { requests: vec![("form".into(), request)], state: None });
        let said: Vec<String> = bench.outputs().iter().filter_map(|output| on(A, output)).collect();
        let [said] = &said[..] else { panic!("{version}: {said:?}") };
        assert_eq!(error(said).code, -32603, "{version}");
    }
}

// covers: ELIC-S-011, ELIC-S-032
#[test]
fn id_of_a_page_is_unpredictable_and_the_same_in_every_round() {
    let mut seen = BTreeSet::new();
    for seed in [[7; 32], [8; 32]] {
        let mut bench = Bench::seeded(seed, |_| {}).initialized(A, "2025-11-25", URLS);
        for id in ["1", "2"] {
            let (responder, incoming) = bench.request(A, &legacy(id, "tools/call", r#"{"name":"t"}"#));
            let named = incoming.elicitation_id("pay");
            assert_ne!(named, incoming.elicitation_id("other"));
            bench.answer(responder, page(None));
            let said = bench.heard(A);
            assert_eq!(id_in(&said[0]), named);
            assert!(named.len() == 24 && seen.insert(named.clone()), "{named}");
            let crate::rpc::Message::Request(question) = message(&said[0]) else { panic!("{said:?}") };
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept"}}}}"#, question.id);
            let (responder, incoming) = bench.request(A, &answer);
            assert_eq!(incoming.elicitation_id("pay"), named);
            bench.complete(responder, "{}");
            bench.outputs();
        }
    }
    // On 2026-07-28 the sealed state carries it to whichever server has the key of the state.
    let fleet = |seed| Bench::seeded([seed; 32], |config| config.state_keys = Some([1; 32].into())).open(A);
    let mut bench = fleet(1);
    let call = |rest: &str| modern_with("1", "tools/call", URLS, &format!(r#","name":"t"{rest}"#));
    let (responder, incoming) = bench.request(A, &call(""));
    let named = incoming.elicitation_id("pay");
    bench.answer(responder, page(None));
    let state: String = result(&bench.heard(A)[0]).required("requestState").unwrap();
    let retry = call(&format!(r#","inputResponses":{{"pay":{{"action":"accept"}}}},"requestState":"{state}""#));
    let (mut responder, mut incoming) = fleet(2).request(A, &retry);
    responder.open(&mut incoming).unwrap();
    assert_eq!(incoming.elicitation_id("pay"), named);
    drop(responder);
}

// covers: ELIC-S-012, ELIC-S-013, X-08
#[test]
fn completion_is_sent_once_and_to_the_client_that_was_asked() {
    let mut bench = Bench::new().initialized(A, "2025-11-25", URLS).initialized(B, "2025-11-25", URLS);
    let said = asked(&mut bench, A, 1, page(None));
    let a = id_in(&said[0]);
    let b = id_in(&asked(&mut bench, B, 1, page(None))[0]);
    assert_ne!(a, b);
    let told = |bench: &mut Bench, id: &str| {
        elicited(bench, id);
        let outputs = bench.outputs();
        let to = |x| outputs.iter().filter_map(|output| on(x, output)).collect::<Vec<_>>();
        (to(A), to(B))
    };
    assert_eq!(told(&mut bench, &b), (vec![], vec![completion(&b)]));
    // Also after the end of the request.
    let crate::rpc::Message::Request(question) = message(&said[0]) else { panic!("{said:?}") };
    let accept = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept"}}}}"#, question.id);
    let (responder, _) = bench.request(A, &accept);
    bench.complete(responder, "{}");
    bench.outputs();
    assert_eq!(told(&mut bench, &a), (vec![completion(&a)], vec![]));
    for id in [&a, &b, "", "unknown"] {
        assert_eq!(told(&mut bench, id), (vec![], vec![]), "it is complete, or unknown");
    }
    assert_eq!(bench.server.requests.elicitations.len(), 0);
}

// covers: ELIC-S-013, ELIC-S-032
#[test]
fn id_of_another_client_is_refused() {
    let mut bench = Bench::new().initialized(A, "2025-11-25", URLS).initialized(B, "2025-11-25", URLS);
    assert_eq!(id_in(&asked(&mut bench, A, 1, page(Some("it")))[0]), "it");
    // Both are of a local user, and nothing says that it is the same one.
    let (responder, _) = bench.request(B, CALL);
    bench.answer(responder, page(Some("it")));
    let outputs = bench.outputs();
    assert!(
        outputs
            .iter()
            .any(|o| matches!(o, Output::Event(Event::Diagnostic(d)) if d.kind.code() == "invalid-input-request"))
    );
    let said: Vec<String> = outputs.iter().filter_map(|output| on(B, output)).collect();
    assert_eq!(error(&said[0]).code, -32603);
    elicited(&mut bench, "it");
    let outputs = bench.outputs();
    assert_eq!(outputs.iter().filter_map(|output| on(A, output)).collect::<Vec<_>>(), [completion("it")]);
    assert!(outputs.iter().all(|output| on(B, output).is_none()));
    // The same client may be asked again, for the same page.
    let mut bench = Bench::new().initialized(A, "2025-11-25", URLS);
    asked(&mut bench, A, 1, page(Some("it")));
    assert_eq!(id_in(&asked(&mut bench, A, 2, page(Some("it")))[0]), "it");
    assert_eq!(bench.server.requests.elicitations.len(), 1);
}

fn admitted(bench: &mut Bench, x: ExchangeId, who: &str) {
    bench.handle_event(x, ExchangeEvent::Opened(Peer { kind: crate::exchange::PeerKind::Unix, ..Peer::default() }));
    let token = bench.events().into_iter().find_map(|event| match event {
        Event::Admit(token, _) => Some(token),
        _ => None,
    });
    let admission = Admission::Accept(Some(Principal::from(who)));
    bench.server.admit(bench.now, token.unwrap(), admission);
    bench.say(x, &initialize("2025-11-25", URLS));
}

// covers: ELIC-S-032, ELIC-S-033
#[test]
fn id_belongs_to_its_principal() {
    let guarded = || Bench::with(|config| config.admit = true);
    for (who, is_same) in [("ann", true), ("bob", false)] {
        let mut bench = guarded();
        admitted(&mut bench, A, "ann");
        admitted(&mut bench, B, who);
        assert_eq!(id_in(&asked(&mut bench, A, 1, page(Some("it")))[0]), "it");
        let said = asked(&mut bench, B, 1, page(Some("it")));
        assert_eq!(said[0].contains("-32603"), !is_same, "{said:?}");
        elicited(&mut bench, "it");
        let outputs = bench.outputs();
        // The newest connection of the same principal, or the only client that was asked.
        let (told, other) = if is_same { (B, A) } else { (A, B) };
        assert_eq!(outputs.iter().filter_map(|output| on(told, output)).collect::<Vec<_>>(), [completion("it")]);
        assert!(outputs.iter().all(|output| on(other, output).is_none()));
    }
    // The same request of another principal has other ids.
    let id = |who| {
        let mut bench = guarded();
        admitted(&mut bench, A, who);
        id_in(&asked(&mut bench, A, 1, page(None))[0])
    };
    assert_ne!(id("ann"), id("bob"));
}

#[test]
fn pages_end_with_their_client_and_their_time() {
    let mut bench = Bench::with(|config| config.limits.server.elicitation_lifetime = Duration::from_secs(60))
        .initialized(A, "2025-11-25", URLS)
        .initialized(B, "2025-11-25", URLS);
    asked(&mut bench, A, 1, page(Some("a")));
    bench.pass(Duration::from_secs(30));
    asked(&mut bench, B, 1, page(Some("b")));
    bench.handle_event(B, failed());
    assert_eq!(bench.server.requests.elicitations.len(), 1);
    elicited(&mut bench, "b");
    assert!(bench.heard(A).is_empty());
    bench.pass(Duration::from_secs(29));
    assert_eq!(bench.server.requests.elicitations.len(), 1);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.server.requests.elicitations.len(), 0);
    elicited(&mut bench, "a");
    assert!(bench.heard(A).is_empty());
    bench.server.shutdown(bench.now, Duration::ZERO);
    elicited(&mut bench, "a");
    assert!(bench.server.is_terminated());
}

#[test]
fn open_pages_are_bounded() {
    let mut bench = Bench::with(|config| config.limits.server.max_elicitations = 4)
        .initialized(A, "2025-11-25", URLS)
        .initialized(B, "2025-11-25", URLS);
    // A client has a quarter of them.
    let said = asked(&mut bench, A, 1, pages(&[("one", None), ("two", None)]));
    assert_eq!(error(&said[0]).code, -32603);
    assert!(asked(&mut bench, A, 2, page(Some("a")))[0].contains("elicitation/create"));
    assert_eq!(error(&asked(&mut bench, A, 3, page(None))[0]).code, -32603);
    assert!(asked(&mut bench, B, 1, page(None))[0].contains("elicitation/create"), "another client has its own");
    elicited(&mut bench, "a");
    bench.outputs();
    assert!(asked(&mut bench, A, 4, page(None))[0].contains("elicitation/create"));
    let twice = asked(&mut bench, B, 8, pages(&[("one", Some("b")), ("two", Some("b"))]));
    assert_eq!(error(&twice[0]).code, -32603);
    for id in ["", &"i".repeat(2000)] {
        assert_eq!(error(&asked(&mut bench, B, 9, page(Some(id)))[0]).code, -32603);
    }
}

// covers: ELIC-S-018, ELIC-S-019, X-08, X-46
#[test]
fn error_with_pages_is_sent_only_where_it_may_be() {
    let valid = r#"{"elicitations":[{"mode":"url","message":"m","url":"https://a.example/","elicitationId":"i"}]}"#;
    let invalid = [
        "{}",
        r#"{"elicitations":[]}"#,
        r#"{"elicitations":[{"message":"m","requestedSchema":{"type":"object","properties":{}}}]}"#,
        r#"{"elicitations":[{"mode":"url","message":"m","url":"https://a.example/"}]}"#,
        r#"{"elicitations":[{"mode":"url","message":"m","url":"mailto:a","elicitationId":"i"}]}"#,
    ];
    for version in ProtocolVersion::ALL {
        for declared in [URLS, r#"{"elicitation":{}}"#] {
            for data in [valid].into_iter().chain(invalid) {
                let is_modern = version.era() == Era::Modern;
                let mut bench = match is_modern {
                    true => Bench::new().open(A),
                    false => Bench::new().initialized(A, version.as_str(), declared),
                };
                let call = if is_modern { modern_with("1", "tools/call", declared, "") } else { CALL.into() };
                let (responder, _) = bench.request(A, &call);
                let data = RawJson::parse(data.as_bytes().to_vec()).unwrap();
                let failure = ErrorObject::new(-32042, "pay").with_data(data.clone());
                bench.answer(responder, Outcome::Error(failure));
                let passes = version == ProtocolVersion::V2025_11_25 && declared == URLS && data.as_str() == valid;
                let code = if passes { -32042 } else { -32603 };
                assert_eq!(error(&bench.heard(A)[0]).code, code, "{version} {declared} {data:?}");
            }
        }
    }
}

// covers: ELIC-S-030, ELIC-S-031
#[test]
fn handler_gets_the_decision_about_a_page() {
    for (answer, expected) in [
        (r#"{"action":"accept","content":{"card":"4711"}}"#, Some(ElicitResult::Accept(Object::new()))),
        (r#"{"action":"accept"}"#, Some(ElicitResult::Accept(Object::new()))),
        (r#"{"action":"decline"}"#, Some(ElicitResult::Decline)),
        (r#"{"action":"cancel"}"#, Some(ElicitResult::Cancel)),
        (r#"{"action":"later"}"#, None),
    ] {
        let mut bench = Bench::new().initialized(A, "2025-11-25", URLS);
        let said = asked(&mut bench, A, 1, page(None));
        let crate::rpc::Message::Request(question) = message(&said[0]) else { panic!("{said:?}") };
        let line = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{answer}}}"#, question.id);
        let (responder, incoming) = bench.request(A, &line);
        let given = incoming.inputs["pay"].as_ref().unwrap();
        let request = InputRequest::Elicitation(UrlRequest::new("?", PAGE).into());
        match (request.read_answer(given), expected) {
            (Ok(InputAnswer::Elicitation(ElicitResult::Accept(_))), Some(ElicitResult::Accept(_))) => {}
            (Ok(InputAnswer::Elicitation(read)), Some(expected)) => assert_eq!(read, expected),
            (Err(_), None) => {}
            (read, _) => panic!("{answer}: {read:?}"),
        }
        bench.complete(responder, "{}");
    }
}
