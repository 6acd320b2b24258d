use super::*;
use crate::InputAnswer;
use crate::model::elicitation::{ElicitRequest, ElicitResult, UrlRequest};
use crate::rpc::ErrorObject;

const URL: &str = "https://pay.example/4711";

fn capable() -> ClientConfig {
    let mut config = ClientConfig::given().with_elicitation();
    config.capabilities.elicitation.as_mut().unwrap().url = Some(Object::new());
    config
}

fn legacy() -> Rig {
    Rig::ready(ProtocolVersion::V2025_11_25, capable())
}

fn page(id: &str) -> Value {
    json!({"mode": "url", "message": "Pay first", "url": URL, "elicitationId": id})
}

/// Refuses the last request until these pages are complete.
fn require(rig: &mut Rig, pages: Value) {
    let error = json!({"code": -32042, "message": "pay first", "data": {"elicitations": pages}});
    rig.say(json!({"jsonrpc": "2.0", "id": rig.last_id(), "error": error}));
}

fn complete(rig: &mut Rig, id: &str) {
    let params = json!({"elicitationId": id});
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params}));
}

fn ask(rig: &mut Rig, id: i64, params: Value) {
    rig.say(json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}));
}

fn consent() -> InputAnswer {
    InputAnswer::Elicitation(ElicitResult::Accept(Object::new().with("card", "secret")))
}

fn answer_all(rig: &mut Rig, answer: InputAnswer) {
    let open: Vec<InputKey> = rig.questions().into_iter().map(|(key, _)| key).collect();
    open.into_iter().for_each(|key| rig.reply(key, answer.clone()));
}

fn calls(rig: &Rig) -> usize {
    rig.methods().iter().filter(|method| **method == "tools/call").count()
}

/// A call that waits for the page `a`, with consent.
fn waiting(rig: &mut Rig) -> CallId {
    let call = rig.echo();
    require(rig, json!([page("a")]));
    answer_all(rig, consent());
    call
}

// covers: ELIC-C-021, ELIC-C-022
#[test]
fn consent_to_a_page_is_answered_without_content() {
    let results = [(consent(), "accept"), (InputAnswer::Elicitation(ElicitResult::Decline), "decline")];
    for (answer, action) in results.into_iter().chain([(InputAnswer::Elicitation(ElicitResult::Cancel), "cancel")]) {
        let mut rig = legacy();
        ask(&mut rig, 1, page("a"));
        let (key, request) = rig.questions().pop().unwrap();
        let InputRequest::Elicitation(ElicitRequest::Url(asked)) = request else { panic!("{request:?}") };
        assert_eq!(asked, UrlRequest::new("Pay first", URL).id("a"));
        rig.reply(key, answer.clone());
        assert_eq!(rig.sent, [json!({"jsonrpc": "2.0", "id": 1, "result": {"action": action}})]);
        // From 2026-07-28 on a page has no id, and its outcome is learnt by the next request.
        let mut rig = Rig::ready(ProtocolVersion::V2026_07_28, capable());
        let call = rig.echo();
        let params = json!({"mode": "url", "message": "Pay first", "url": URL});
        let asks = json!({"pay": {"method": "elicitation/create", "params": params}});
        rig.answer(&rig.last_id(), json!({"resultType": "input_required", "inputRequests": asks}));
        rig.reply(rig.questions()[0].0, answer);
        assert_eq!(rig.sent.last().unwrap()["params"]["inputResponses"], json!({"pay": {"action": action}}));
        assert!(!rig.has_ended(call));
    }
}

// covers: ELIC-C-020, ELIC-C-003, X-08
#[test]
fn page_is_refused_where_the_client_or_the_revision_has_none() {
    for version in ProtocolVersion::ALL.into_iter().filter(|version| version.era() == Era::Legacy) {
        for (config, code) in [(capable(), -32602), (ClientConfig::given().with_elicitation(), -32602)] {
            let declares = config.capabilities.elicits_urls();
            let mut rig = Rig::ready(version, config);
            ask(&mut rig, 1, page("a"));
            let answer = rig.sent.last().cloned();
            if declares && version.rules().elicitation_modes {
                assert_eq!((answer, rig.questions().len()), (None, 1));
            } else {
                let code = if version.rules().elicitation { code } else { -32601 };
                assert_eq!(answer.unwrap()["error"]["code"], code, "{version}");
                assert_eq!(rig.diagnostics(), [DiagnosticKind::MissingCapability]);
            }
        }
    }
}

// covers: ELIC-S-010, ELIC-S-036, ELIC-S-037
#[test]
fn only_a_url_that_is_safe_to_show_is_shown() {
    for (url, is_valid, is_secure) in [
        ("https://pay.example/?a=b#c", true, true),
        ("HTTPS://PAY.example", true, true),
        ("http://localhost:8080/x", true, true),
        ("http://127.1.2.3/", true, true),
        ("http://[::1]:1/", true, true),
        ("http://a.localhost./", true, true),
        ("http://pay.example/", true, false),
        ("http://localhost.evil.example/", true, false),
        ("", false, false),
        ("/relative", false, false),
        ("pay.example", false, false),
        ("javascript:alert(1)", false, false),
        ("file:///etc/passwd", false, false),
        ("ws://pay.example/", false, false),
        ("https:///x", false, false),
        ("https:pay", false, false),
        ("https://ann:secret@pay.example/", false, false),
        ("https://ann@pay.example/", false, false),
        ("https://pay.example\\@evil.example/", false, false),
        ("https://pay.example/ x", false, false),
        ("https://pay.example/\n", false, false),
        ("https://p\u{430}y.example/", false, false),
    ] {
        let mut rig = legacy();
        let mut params = page("a");
        params["url"] = json!(url);
        ask(&mut rig, 1, params.clone());
        assert_eq!(rig.questions().len(), usize::from(is_valid), "{url}");
        let told = match (is_valid, is_secure) {
            (true, true) => vec![],
            (true, false) => vec![DiagnosticKind::InsecureUrl],
            (false, _) => vec![DiagnosticKind::BadParams],
        };
        assert_eq!(rig.diagnostics(), told, "{url}");
        if !is_valid {
            assert_eq!(rig.sent.last().unwrap()["error"]["code"], -32602, "{url}");
        }
        // The same holds for the pages of an error.
        let mut rig = legacy();
        let call = rig.echo();
        require(&mut rig, json!([params]));
        assert_eq!((rig.has_ended(call), rig.questions().len()), (!is_valid, usize::from(is_valid)), "{url}");
    }
}

// covers: X-08, ELIC-C-015, ELIC-C-021
#[test]
fn call_is_repeated_once_when_every_page_is_complete() {
    let mut rig = legacy();
    let call = rig.echo();
    require(&mut rig, json!([page("a"), page("b")]));
    assert_eq!((rig.questions().len(), calls(&rig)), (2, 1));
    answer_all(&mut rig, consent());
    complete(&mut rig, "a");
    assert_eq!((calls(&rig), rig.has_ended(call)), (1, false), "a page is not complete");
    complete(&mut rig, "b");
    assert_eq!(calls(&rig), 2);
    let elicited: Vec<_> = rig.events.iter().filter(|event| matches!(event, Event::Elicited(_))).collect();
    assert_eq!(elicited, [&Event::Elicited("a".into()), &Event::Elicited("b".into())]);
    // The repeated request has another id, and the same params.
    let requests: Vec<_> = rig.sent.iter().filter(|sent| sent["method"] == "tools/call").collect();
    assert_ne!(requests[0]["id"], requests[1]["id"]);
    assert_eq!(requests[0]["params"], requests[1]["params"]);
    // The server refuses it again: the call ends.
    require(&mut rig, json!([page("c")]));
    assert!(matches!(rig.outcome(call), Err(CallError::Rpc(error)) if error.code == -32042));
    assert_eq!((calls(&rig), rig.questions().len()), (2, 2));
    rig.assert_at_rest();
}

#[test]
fn page_may_be_complete_before_the_consent_is_known() {
    let mut rig = legacy();
    let call = rig.echo();
    require(&mut rig, json!([page("a")]));
    complete(&mut rig, "a");
    assert_eq!(calls(&rig), 1);
    answer_all(&mut rig, consent());
    assert_eq!(calls(&rig), 2);
    rig.answer(&rig.last_id(), json!({"content": []}));
    assert!(rig.outcome(call).is_ok());
    rig.assert_at_rest();
}

// covers: ELIC-C-016
#[test]
fn application_may_say_that_a_page_is_complete() {
    let mut rig = legacy();
    let call = waiting(&mut rig);
    rig.client.elicited(rig.now, "b");
    rig.drain();
    assert_eq!(calls(&rig), 1, "another page");
    rig.client.elicited(rig.now, "a");
    rig.drain();
    assert_eq!(calls(&rig), 2);
    rig.client.elicited(rig.now, "a");
    complete(&mut rig, "a");
    assert_eq!((calls(&rig), rig.diagnostics()), (2, vec![DiagnosticKind::UnknownElicitation]));
    assert!(!rig.events.iter().any(|event| matches!(event, Event::Elicited(_))));
    rig.answer(&rig.last_id(), json!({"content": []}));
    assert!(rig.outcome(call).is_ok());
}

//
#[test]
fn call_ends_if_the_user_does_not_consent() {
    for declined in [true, false] {
        let mut rig = legacy();
        let call = rig.echo();
        require(&mut rig, json!([page("a"), page("b")]));
        let (first, second) = (rig.questions()[0].0, rig.questions()[1].0);
        let result = if declined { ElicitResult::Decline } else { ElicitResult::Cancel };
        rig.reply(first, InputAnswer::Elicitation(result));
        assert_eq!(*rig.outcome(call), Err(CallError::NoConsent { declined }));
        assert!(rig.events.contains(&Event::InputWithdrawn(second)), "the other page is not needed");
        complete(&mut rig, "a");
        assert_eq!(calls(&rig), 1);
        rig.assert_at_rest();
    }
    let mut rig = legacy();
    let call = rig.echo();
    require(&mut rig, json!([page("a")]));
    let failed = ErrorObject::new(-32603, "no browser");
    answer_all(&mut rig, InputAnswer::Error(failed.clone()));
    assert_eq!(*rig.outcome(call), Err(CallError::Input(failed)));
    let mut rig = legacy();
    let call = rig.echo();
    require(&mut rig, json!([page("a")]));
    answer_all(&mut rig, InputAnswer::roots(["file:///"]));
    assert!(matches!(rig.outcome(call), Err(CallError::Input(_))));
}

// covers: ELIC-C-016
#[test]
fn call_waits_for_a_page_until_its_limit() {
    let mut rig = legacy();
    let call = rig.echo();
    require(&mut rig, json!([page("a")]));
    // A person decides: no limit of the call runs.
    rig.tick(Duration::from_secs(3600));
    assert!(!rig.has_ended(call));
    answer_all(&mut rig, consent());
    let limit = rig.client.config().limits.client.elicitation_timeout;
    assert_eq!(rig.client.timeout_reason(), Some(Timer::Elicitation(call)));
    rig.tick(limit - ms(1));
    assert!(!rig.has_ended(call));
    rig.tick(ms(1));
    let error = CallError::Timeout { after: limit, sent: Sent::Maybe, awaited: WaitReason::Elicitation };
    assert_eq!(*rig.outcome(call), Err(error));
    // The application still learns that the page is complete, and may call again.
    complete(&mut rig, "a");
    assert_eq!((rig.events.last(), calls(&rig)), (Some(&Event::Elicited("a".into())), 1));
    rig.assert_at_rest();
}

#[test]
fn total_limit_runs_while_a_page_is_open() {
    let mut rig = legacy();
    let call = rig.call(tools::call("echo").max_total(ms(500)));
    require(&mut rig, json!([page("a")]));
    answer_all(&mut rig, consent());
    rig.tick(ms(500));
    assert!(matches!(rig.outcome(call), Err(CallError::Timeout { after, .. }) if *after == ms(500)));
    rig.assert_at_rest();
}

#[test]
fn cancelled_call_asks_nothing_more() {
    let mut rig = legacy();
    let call = rig.echo();
    require(&mut rig, json!([page("a")]));
    let key = rig.questions()[0].0;
    rig.client.cancel(rig.now, call, None);
    rig.drain();
    assert_eq!(*rig.outcome(call), Err(CallError::Cancelled { reason: None }));
    assert!(rig.events.contains(&Event::InputWithdrawn(key)));
    rig.reply(key, consent());
    complete(&mut rig, "a");
    assert_eq!(calls(&rig), 1);
    assert!(!rig.methods().contains(&"notifications/cancelled"), "its request was answered");
    rig.assert_at_rest();
}

// covers: ELIC-C-014
#[test]
fn completion_of_an_unknown_page_is_ignored() {
    let mut rig = legacy();
    let call = waiting(&mut rig);
    complete(&mut rig, "b");
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": 1}}));
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete"}));
    assert_eq!((calls(&rig), rig.has_ended(call)), (1, false));
    use DiagnosticKind::{BadParams, UnknownElicitation};
    assert_eq!(rig.diagnostics(), [UnknownElicitation, BadParams, BadParams]);
    complete(&mut rig, "a");
    complete(&mut rig, "a");
    assert_eq!(calls(&rig), 2);
    assert_eq!(rig.diagnostics().last(), Some(&UnknownElicitation), "it is complete already");
    assert_eq!(rig.events.iter().filter(|event| matches!(event, Event::Elicited(_))).count(), 1);
    // One of a request.
    ask(&mut rig, 1, page("c"));
    complete(&mut rig, "c");
    assert!(rig.events.contains(&Event::Elicited("c".into())));
    // Only 2025-11-25 has it: elsewhere it is a notification like any other.
    for version in ProtocolVersion::ALL.into_iter().filter(|version| *version != ProtocolVersion::V2025_11_25) {
        let mut rig = Rig::ready(version, capable());
        complete(&mut rig, "a");
        assert!(matches!(rig.events[..], [Event::Notification { .. }]), "{version}: {:?}", rig.events);
    }
}

// covers: ELIC-S-019, ELIC-S-018
#[test]
fn error_that_names_no_pages_ends_its_call() {
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let without_id = json!({"mode": "url", "message": "Pay", "url": URL});
    let long = page(&"i".repeat(2000));
    for pages in [
        json!([]),
        json!({}),
        json!(null),
        json!(["a"]),
        json!([form]),
        json!([without_id]),
        json!([page("a"), without_id]),
        json!([page("a"), page("a")]),
        json!([long]),
        json!((0..65).map(|n| page(&n.to_string())).collect::<Vec<_>>()),
    ] {
        let mut rig = legacy();
        let call = rig.echo();
        require(&mut rig, pages.clone());
        assert!(matches!(rig.outcome(call), Err(CallError::Rpc(error)) if error.code == -32042), "{pages}");
        assert_eq!((rig.questions().len(), rig.diagnostics().len()), (0, 1), "{pages}");
        rig.assert_at_rest();
    }
    // On other revisions, and without the capability, it is an error like any other.
    for version in ProtocolVersion::ALL {
        let mut rig =
            Rig::ready(version, if version.rules().elicitation_modes { ClientConfig::given() } else { capable() });
        let call = rig.echo();
        require(&mut rig, json!([page("a")]));
        assert!(matches!(rig.outcome(call), Err(CallError::Rpc(error)) if error.code == -32042), "{version}");
        let mut rig = Rig::ready(version, capable());
        let call = rig.echo();
        require(&mut rig, json!([page("a")]));
        assert_eq!(rig.has_ended(call), version != ProtocolVersion::V2025_11_25, "{version}");
    }
}

#[test]
fn pages_of_calls_and_their_ids_are_bounded() {
    let mut config = capable();
    config.limits.client.max_elicitations = 3;
    let mut rig = Rig::ready(ProtocolVersion::V2025_11_25, config);
    let first = rig.echo();
    require(&mut rig, json!([page("a"), page("b")]));
    let second = rig.echo();
    require(&mut rig, json!([page("c"), page("d")]));
    assert!(matches!(rig.outcome(second), Err(CallError::Rpc(_))));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::TooManyInputs]);
    answer_all(&mut rig, consent());
    // Pages of requests push out one another, and none that a call waits for.
    for n in 0..100 {
        ask(&mut rig, n, page(&format!("p{n}")));
        let key = rig.questions().last().unwrap().0;
        rig.reply(key, consent());
        assert!(rig.client.elicitations.len() <= 3);
    }
    complete(&mut rig, "p0");
    assert_eq!(rig.diagnostics().last(), Some(&DiagnosticKind::UnknownElicitation));
    complete(&mut rig, "p99");
    complete(&mut rig, "a");
    complete(&mut rig, "b");
    assert_eq!((calls(&rig), rig.has_ended(first)), (3, false));
}

#[test]
fn calls_that_share_a_page_are_repeated_together() {
    let mut rig = legacy();
    waiting(&mut rig);
    rig.echo();
    require(&mut rig, json!([page("a")]));
    let key = rig.questions().last().unwrap().0;
    rig.reply(key, consent());
    assert_eq!(calls(&rig), 2);
    complete(&mut rig, "a");
    assert_eq!(calls(&rig), 4);
}

#[test]
fn call_that_waits_for_a_page_ends_with_its_server() {
    let mut rig = legacy();
    let call = waiting(&mut rig);
    rig.client.close(rig.now);
    rig.drain();
    assert!(matches!(rig.outcome(call), Err(CallError::Closed { sent: Sent::Maybe, .. })));
    let mut rig = legacy();
    let (call, x) = (rig.echo(), rig.exchange());
    require(&mut rig, json!([page("a")]));
    let key = rig.questions()[0].0;
    rig.handle_event(x, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
    assert!(matches!(rig.outcome(call), Err(CallError::Closed { .. })));
    assert!(rig.events.contains(&Event::InputWithdrawn(key)));
    rig.reply(key, consent());
    assert!(rig.termination().is_some());
}
