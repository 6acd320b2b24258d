//! Tools over HTTP: header fields of arguments, invalid tools, and the refresh of the list.

use super::*;
use crate::Authorization;
use crate::InputAnswer;
use crate::error::Refusal;
use crate::exchange::{Closed, Headers, RequestHead, ResponseHead};
use crate::model::elicitation::ElicitResult;

/// A client after negotiation with an HTTP server of 2026-07-28.
struct Shop {
    rig: Rig,
}

/// A POST request.
struct Post {
    exchange: ExchangeId,
    head: RequestHead,
    body: Value,
    repeatable: bool,
}

impl Shop {
    fn with(config: ClientConfig) -> Self {
        let mut shop = Self { rig: Rig::new(config) };
        let post = shop.last();
        shop.result(&post, discover(&["2026-07-28"]));
        assert_eq!(shop.rig.client.state(), State::Ready);
        shop.rig.clear();
        shop
    }

    fn new() -> Self {
        Self::with(ClientConfig::url("http://127.0.0.1:8000/mcp").unwrap())
    }

    /// A client whose server has listed these tools.
    fn knowing(tools: &Value) -> Self {
        let mut shop = Self::new();
        shop.list(tools);
        shop
    }

    fn posts(&self) -> Vec<Post> {
        let post = |(exchange, start): &(ExchangeId, Start)| match start {
            Start::Http { head, body, repeatable, .. } => Post {
                exchange: *exchange,
                head: head.clone(),
                body: serde_json::from_slice(body).unwrap(),
                repeatable: *repeatable,
            },
            Start::Duplex(_) | Start::WebSocket { .. } => panic!(),
        };
        self.rig.starts.iter().map(post).collect()
    }

    fn last(&self) -> Post {
        self.posts().pop().unwrap()
    }

    /// Returns the POST requests of this method, in order.
    fn of(&self, method: &str) -> Vec<Post> {
        self.posts().into_iter().filter(|post| post.body["method"] == method).collect()
    }

    fn reply(&mut self, exchange: ExchangeId, status: u16, body: &Value) {
        let head = ResponseHead { status, headers: Headers::new() };
        let message = parse(body.to_string().into(), 128).unwrap();
        for item in [Inbound::Response(head), Inbound::Message(message), Inbound::End] {
            self.rig.handle_event(exchange, ExchangeEvent::Inbound(item));
        }
    }

    fn result(&mut self, to: &Post, mut result: Value) {
        result["resultType"] = result.get("resultType").cloned().unwrap_or(json!("complete"));
        self.reply(to.exchange, 200, &json!({"jsonrpc": "2.0", "id": to.body["id"], "result": result}));
    }

    fn mismatch(&mut self, to: &Post) {
        self.reply(to.exchange, 400, &error(&to.body["id"], -32020));
    }

    /// The application lists the tools. Returns the names in the result.
    fn list(&mut self, tools: &Value) -> Value {
        let call = self.rig.call(tools::list());
        let post = self.last();
        self.result(&post, json!({"tools": tools, "ttlMs": 0}));
        self.rig.outcome(call).as_ref().unwrap().json.decode().unwrap()
    }

    fn call(&mut self, name: &str, arguments: &Value) -> CallId {
        self.rig.call(tools::call(name).arguments(arguments))
    }

    fn diagnostic(&self, kind: DiagnosticKind) -> Vec<&str> {
        let diagnostics = self.rig.events.iter().filter_map(|event| match event {
            Event::Diagnostic(diagnostic) => Some(diagnostic),
            _ => None,
        });
        diagnostics.filter(|diagnostic| diagnostic.kind == kind).map(|diagnostic| diagnostic.detail.as_str()).collect()
    }

    fn assert_at_rest(&self) {
        self.rig.assert_at_rest();
        assert!(self.rig.client.cx.link.is_empty());
        assert_eq!(self.rig.client.running(), 0);
    }
}

fn tool(name: &str, property: Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"a": property}}})
}

/// A tool whose argument `a` is mirrored into this field.
fn mirrored(name: &str, header: &str) -> Value {
    tool(name, json!({"type": "string", "x-mcp-header": header}))
}

fn params_of(post: &Post) -> Vec<(String, String)> {
    let is_param = |(name, _): &(&str, &str)| name.starts_with("Mcp-Param-");
    post.head.headers.iter().filter(is_param).map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn field(name: &str, value: &str) -> Vec<(String, String)> {
    vec![(name.to_string(), value.to_string())]
}

// covers: HDR-C-016, HDR-C-028, HDR-C-029, HDR-C-039, HDR-C-004, HDR-B-008, SEPX-C-001, SEPX-C-006,
// B-215
#[test]
fn call_of_a_listed_tool_mirrors_its_arguments() {
    let mut shop = Shop::new();
    shop.call("t", &json!({"a": "x"}));
    assert_eq!(params_of(&shop.last()), [], "the schema is not known");
    shop.list(&json!([mirrored("t", "A"), mirrored("u", "B")]));
    for (name, arguments, fields) in [
        ("t", json!({"a": "x"}), field("Mcp-Param-A", "x")),
        ("u", json!({"a": "ü"}), field("Mcp-Param-B", "=?base64?w7w=?=")),
        ("t", json!({"a": ""}), field("Mcp-Param-A", "")),
        ("t", json!({"a": null}), vec![]),
        ("t", json!({}), vec![]),
        ("v", json!({"a": "x"}), vec![]),
    ] {
        shop.call(name, &arguments);
        let post = shop.last();
        assert_eq!(params_of(&post), fields);
        assert_eq!(post.head.headers.get("mcp-name"), Some(name));
        assert_eq!(post.body["params"]["arguments"], arguments);
    }
    // Only `tools/call` has such fields, and method names are case-sensitive.
    for method in ["prompts/get", "Tools/Call"] {
        shop.rig.call(custom::<Value>(method, &json!({"name": "t", "arguments": {"a": "x"}})));
        assert_eq!(params_of(&shop.last()), []);
        assert_eq!(shop.last().head.headers.get("mcp-method"), Some(method));
    }
}

// covers: TASKX-C-034, HDR-C-005
#[test]
fn request_about_a_task_has_its_name_header() {
    let mut shop = Shop::new();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        shop.rig.call(custom::<Value>(method, &json!({"taskId": "job ü"})));
        assert_eq!(shop.last().head.headers.get("mcp-name"), Some("=?base64?am9iIMO8?="));
    }
}

// covers: HDR-C-025, HDR-C-026
#[test]
fn tool_with_an_invalid_annotation_is_left_out() {
    let mut shop = Shop::new();
    let bad = tool("bad", json!({"type": "number", "x-mcp-header": "A"}));
    let good = mirrored("good", "A");
    let listed = shop.list(&json!([good, bad]));
    assert_eq!(listed, json!({"tools": [good], "ttlMs": 0, "resultType": "complete"}));
    let told = shop.diagnostic(DiagnosticKind::InvalidTool);
    assert!(matches!(told[..], [one] if one.starts_with("bad: ") && one.contains("`properties/a`")), "{told:?}");
    shop.call("bad", &json!({"a": 1}));
    assert_eq!(params_of(&shop.last()), []);
}

// covers: HDR-C-027
#[test]
fn annotations_apply_only_to_modern_http() {
    let bad = json!([tool("bad", json!({"type": "number", "x-mcp-header": ""})), mirrored("good", "A")]);
    for mut rig in [Rig::modern(), Rig::legacy()] {
        let call = rig.call(tools::list());
        let id = rig.last_id();
        rig.answer(&id, json!({"tools": bad, "ttlMs": 0}));
        let listed: Value = rig.outcome(call).as_ref().unwrap().json.decode().unwrap();
        assert_eq!(listed["tools"], bad);
        assert_eq!(rig.diagnostics(), []);
        // A header mismatch also has no meaning without header fields.
        let call = rig.call(tools::call("good").arguments(&json!({"a": "x"})));
        let id = rig.last_id();
        rig.say(error(&id, -32020));
        assert!(matches!(rig.outcome(call), Err(CallError::Rpc(e)) if e.code == -32020));
        rig.assert_at_rest();
    }
}

// covers: HDR-B-022
#[test]
fn call_with_an_argument_unfit_for_a_field_is_not_sent() {
    let mut shop = Shop::knowing(&json!([tool("t", json!({"type": "integer", "x-mcp-header": "N"}))]));
    let before = shop.posts().len();
    let call = shop.call("t", &json!({"a": 9_007_199_254_740_992_i64}));
    assert_eq!(shop.posts().len(), before);
    let e = shop.rig.outcome(call).as_ref().unwrap_err();
    assert!(matches!(e, CallError::Refused(Refusal::Unencodable(_))) && e.sent() == Sent::No);
    shop.assert_at_rest();
    shop.call("t", &json!({"a": 9_007_199_254_740_991_i64}));
    assert_eq!(params_of(&shop.last()), field("Mcp-Param-N", "9007199254740991"));
}

// covers: B-100
#[test]
fn repeated_call_with_an_unfit_argument_may_have_run() {
    let number = |annotation: Value| json!([tool("t", annotation)]);
    let mut shop = Shop::knowing(&number(json!({"type": "integer"})));
    let call = shop.call("t", &json!({"a": 9_007_199_254_740_992_i64}));
    let first = shop.last();
    shop.rig.handle_event(first.exchange, ExchangeEvent::Repeated);
    shop.mismatch(&first);
    let page = shop.last();
    shop.result(&page, json!({"tools": number(json!({"type": "integer", "x-mcp-header": "N"}))}));
    let e = shop.rig.outcome(call).as_ref().unwrap_err();
    assert!(matches!(e, CallError::NotRepeated(_)) && e.sent() == Sent::Maybe, "{e:?}");
    assert!(e.to_string().starts_with("a later request of the call cannot be serialized: "), "{e}");
    shop.assert_at_rest();
}

// covers: HDR-C-040, B-217
#[test]
fn mismatch_refreshes_the_list_and_repeats_the_calls() {
    let mut shop = Shop::knowing(&json!([mirrored("t", "Old"), mirrored("u", "U")]));
    shop.rig.clear();
    let (first, second) = (shop.call("t", &json!({"a": "1"})), shop.call("u", &json!({"a": "2"})));
    let third = shop.call("unknown", &json!({"a": "3"}));
    let calls = shop.of("tools/call");
    assert_eq!(params_of(&calls[0]), field("Mcp-Param-Old", "1"));
    let listed = shop.of("tools/list").len();
    shop.mismatch(&calls[0]);
    shop.mismatch(&calls[1]);
    assert_eq!(shop.rig.client.running(), 3);
    let page = shop.of("tools/list");
    assert_eq!(page.len(), listed + 1, "one for all");
    assert_eq!(page[listed].body["params"].get("cursor"), None);
    shop.result(&page[listed], json!({"tools": [mirrored("t", "New")], "nextCursor": ""}));
    shop.mismatch(&calls[2]);
    let page = shop.of("tools/list");
    assert_eq!((page.len(), &page[listed + 1].body["params"]["cursor"]), (listed + 2, &json!("")));
    assert_eq!(shop.of("tools/call").len(), 3, "not before the last page");
    shop.result(&page[listed + 1], json!({"tools": [tool("u", json!({"type": "string"})), mirrored("unknown", "X")]}));

    let again = shop.of("tools/call").split_off(3);
    let fields: Vec<_> = again.iter().map(params_of).collect();
    assert_eq!(fields, [field("Mcp-Param-New", "1"), vec![], field("Mcp-Param-X", "3")]);
    let ids: alloc::collections::BTreeSet<String> =
        shop.posts().iter().map(|post| post.body["id"].to_string()).collect();
    assert_eq!(ids.len(), shop.posts().len(), "no id is used twice");
    for (post, call) in again.iter().zip([first, second, third]) {
        assert_eq!(
            post.body["params"]["arguments"]["a"],
            calls[call_index(call, first)].body["params"]["arguments"]["a"]
        );
        shop.result(post, json!({"content": []}));
        assert!(shop.rig.outcome(call).is_ok());
    }
    assert_eq!(shop.of("tools/list").len(), listed + 2);
    // The application sees nothing of the list.
    assert_eq!(shop.rig.events.len(), 3, "{:?}", shop.rig.events);
    shop.assert_at_rest();
}

fn call_index(call: CallId, first: CallId) -> usize {
    usize::try_from(call.0 - first.0).unwrap()
}

// covers: HDR-C-040
#[test]
fn second_mismatch_ends_the_call() {
    let mut shop = Shop::new();
    let call = shop.call("t", &json!({}));
    let post = shop.last();
    shop.mismatch(&post);
    let page = shop.last();
    shop.result(&page, json!({"tools": []}));
    let again = shop.last();
    assert_eq!(again.body["method"], "tools/call");
    shop.mismatch(&again);
    assert!(matches!(shop.rig.outcome(call), Err(CallError::Rpc(e)) if e.code == -32020));
    assert_eq!((shop.of("tools/list").len(), shop.of("tools/call").len()), (1, 2));
    shop.assert_at_rest();
    // A later call can be repeated again.
    let call = shop.call("t", &json!({}));
    let post = shop.last();
    shop.mismatch(&post);
    let page = shop.last();
    shop.result(&page, json!({"tools": []}));
    let post = shop.last();
    shop.result(&post, json!({"content": []}));
    assert!(shop.rig.outcome(call).is_ok());

    let listed = shop.of("tools/list").len();
    let other = shop.call("t", &json!({}));
    let post = shop.last();
    shop.reply(post.exchange, 400, &error(&post.body["id"], -32602));
    assert!(matches!(shop.rig.outcome(other), Err(CallError::Rpc(e)) if e.code == -32602));
    let prompt = shop.rig.call(custom::<Value>("prompts/get", &json!({"name": "p"})));
    let post = shop.last();
    shop.mismatch(&post);
    assert!(matches!(shop.rig.outcome(prompt), Err(CallError::Rpc(e)) if e.code == -32020));
    assert_eq!(shop.of("tools/list").len(), listed);
    shop.assert_at_rest();
}

// In an older revision the code is defined by the server, and the tool may have run.
#[test]
fn legacy_error_with_the_mismatch_code_ends_the_call() {
    let mut config = ClientConfig::url("http://127.0.0.1:8000/mcp").unwrap();
    (config.policy, config.compat.listener) = (Policy::Legacy, ListenerStart::Never);
    let mut shop = Shop { rig: Rig::new(config) };
    let post = shop.last();
    shop.reply(
        post.exchange,
        200,
        &json!({"jsonrpc": "2.0", "id": post.body["id"], "result": initialized("2025-11-25")}),
    );
    let note = shop.last();
    for item in [Inbound::Response(ResponseHead { status: 202, headers: Headers::new() }), Inbound::End] {
        shop.rig.handle_event(note.exchange, ExchangeEvent::Inbound(item));
    }
    let call = shop.call("pay", &json!({}));
    let post = shop.last();
    shop.reply(post.exchange, 200, &error(&post.body["id"], -32020));
    assert!(matches!(shop.rig.outcome(call), Err(CallError::Rpc(e)) if e.code == -32020));
    assert_eq!((shop.of("tools/list").len(), shop.of("tools/call").len()), (0, 1));
}

#[test]
fn failed_refresh_ends_each_call_with_its_own_error() {
    let config = || ClientConfig::url("http://127.0.0.1:8000/mcp").unwrap();
    type Step = fn(&mut Shop);
    let steps: [(Step, &str); 5] = [
        (
            |shop| {
                let page = shop.last();
                shop.reply(page.exchange, 400, &error(&page.body["id"], -32603));
            },
            "-32603",
        ),
        (
            |shop| {
                let page = shop.last();
                shop.rig.handle_event(page.exchange, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused });
            },
            "closed",
        ),
        (
            |shop| {
                for _ in 0..2 {
                    let page = shop.last();
                    shop.result(&page, json!({"tools": [], "nextCursor": "same"}));
                }
            },
            "cursor",
        ),
        (
            |shop| {
                let page = shop.last();
                shop.result(&page, json!({"tools": [], "nextCursor": 1}));
            },
            "nextCursor",
        ),
        (|shop| shop.rig.tick(ms(1000)), "no response"),
    ];
    for (step, why) in steps {
        let mut shop = Shop::with(ClientConfig { timeout: Some(ms(1000)), ..config() });
        let call = shop.rig.call(tools::call("t").timeout(None));
        let post = shop.last();
        shop.mismatch(&post);
        step(&mut shop);
        assert!(matches!(shop.rig.outcome(call), Err(CallError::Rpc(e)) if e.code == -32020), "{why}");
        let told = shop.diagnostic(DiagnosticKind::RefreshFailed);
        assert!(matches!(told[..], [one] if one.contains(why)), "{told:?} of {why}");
        assert_eq!(shop.of("tools/call").len(), 1);
        shop.assert_at_rest();
    }
    let mut config = config();
    config.limits.client.max_pages = 20;
    let mut shop = Shop::with(config);
    let call = shop.call("t", &json!({}));
    let post = shop.last();
    shop.mismatch(&post);
    for n in 0..20 {
        let page = shop.last();
        shop.result(&page, json!({"tools": [], "nextCursor": n.to_string()}));
    }
    assert!(matches!(shop.rig.outcome(call), Err(CallError::Rpc(_))), "a list without an end");
    shop.assert_at_rest();
}

// covers: HDR-C-040
#[test]
fn calls_time_out_during_a_refresh() {
    let mut shop = Shop::new();
    let (slow, gone) = (shop.call("t", &json!({})), shop.call("t", &json!({})));
    let calls = shop.of("tools/call");
    shop.rig.tick(ms(20_000));
    shop.mismatch(&calls[0]);
    shop.mismatch(&calls[1]);
    let page = shop.last();
    shop.rig.client.cancel(shop.rig.now, gone, None);
    shop.rig.drain();
    assert_eq!(shop.rig.aborted, []);
    shop.rig.tick(ms(10_000));
    assert!(matches!(shop.rig.outcome(slow), Err(CallError::Timeout { sent: Sent::Maybe, .. })));
    assert_eq!(shop.rig.aborted, [page.exchange], "nobody waits for it");
    assert_eq!(shop.diagnostic(DiagnosticKind::RefreshFailed), [""; 0]);
    shop.assert_at_rest();
    shop.result(&page, json!({"tools": []}));
    assert_eq!(shop.of("tools/call").len(), 2);
}

#[test]
fn repeated_round_keeps_its_input_responses() {
    let config = ClientConfig::url("http://127.0.0.1:8000/mcp").unwrap().with_elicitation();
    let mut shop = Shop::with(config);
    let call = shop.call("t", &json!({"a": "x"}));
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let asks = json!({"q": {"method": "elicitation/create", "params": form}});
    let post = shop.last();
    let round = json!({"resultType": "input_required", "inputRequests": asks, "requestState": "s"});
    shop.result(&post, round);
    let (key, _) = shop.rig.questions()[0].clone();
    shop.rig.reply(key, InputAnswer::Elicitation(ElicitResult::Accept(Object::new())));
    let second = shop.last();
    assert_eq!(second.body["params"]["requestState"], "s");
    shop.mismatch(&second);
    let page = shop.last();
    shop.result(&page, json!({"tools": [mirrored("t", "A")]}));
    let again = shop.last();
    assert_eq!(params_of(&again), field("Mcp-Param-A", "x"));
    for member in ["inputResponses", "requestState", "arguments"] {
        assert_eq!(again.body["params"][member], second.body["params"][member], "{member}");
    }
    // A third round has its own responses, and none of the second round.
    shop.result(&again, json!({"resultType": "input_required", "requestState": "t"}));
    shop.rig.tick(ms(1000));
    let third = shop.last();
    assert_eq!(
        (&third.body["params"]["requestState"], third.body["params"].get("inputResponses")),
        (&json!("t"), None)
    );
    shop.result(&third, json!({"content": []}));
    assert!(shop.rig.outcome(call).is_ok());
    shop.assert_at_rest();
}

#[test]
fn close_ends_calls_that_wait_for_a_refresh() {
    let mut shop = Shop::new();
    let call = shop.call("t", &json!({}));
    let post = shop.last();
    shop.mismatch(&post);
    shop.rig.client.close(shop.rig.now);
    shop.rig.drain();
    assert!(matches!(shop.rig.outcome(call), Err(CallError::Closed { why: Closed::Aborted, .. })));
    assert!(shop.rig.termination().is_some());
    assert_eq!(shop.diagnostic(DiagnosticKind::RefreshFailed), [""; 0]);
    shop.assert_at_rest();
}

#[test]
fn challenge_to_the_refresh_names_no_call() {
    let mut config = ClientConfig::url("http://127.0.0.1:8000/mcp").unwrap();
    config.authorize = true;
    let mut shop = Shop::with(config);
    let call = shop.call("t", &json!({}));
    let post = shop.last();
    shop.mismatch(&post);
    let page = shop.last();
    let head = ResponseHead { status: 401, headers: Headers::new() };
    shop.rig.handle_event(page.exchange, ExchangeEvent::Inbound(Inbound::Response(head)));
    shop.rig.handle_event(page.exchange, ExchangeEvent::Inbound(Inbound::End));
    let keys: Vec<_> = shop
        .rig
        .events
        .iter()
        .filter_map(|event| match event {
            Event::AuthNeeded { token, targets, .. } => Some((token.key(), targets.clone())),
            _ => None,
        })
        .collect();
    let [(key, targets)] = &keys[..] else { panic!("{keys:?}") };
    assert_eq!(targets, &[]);
    // The timeout of the call is paused as well.
    shop.rig.tick(ms(60_000));
    assert!(!shop.rig.has_ended(call));
    let credentials = Authorization::Headers(Headers::new().with("Authorization", "Bearer x"));
    shop.rig.client.apply(shop.rig.now, Input::Command(ClientCommand::Authorize(*key, credentials))).unwrap();
    shop.rig.drain();
    let page = shop.last();
    assert_eq!(
        (&page.body["method"], page.head.headers.get("authorization")),
        (&json!("tools/list"), Some("Bearer x"))
    );
    shop.result(&page, json!({"tools": []}));
    let again = shop.last();
    shop.result(&again, json!({"content": []}));
    assert!(shop.rig.outcome(call).is_ok());
    shop.assert_at_rest();
}

#[test]
fn refresh_does_not_count_as_a_call() {
    let mut config = ClientConfig::url("http://127.0.0.1:8000/mcp").unwrap();
    config.limits.client.max_calls = 2;
    let mut shop = Shop::with(config);
    let call = shop.call("t", &json!({}));
    let post = shop.last();
    shop.mismatch(&post);
    assert_eq!(shop.rig.client.running(), 1);
    shop.call("u", &json!({}));
    assert!(shop.rig.client.call(shop.rig.now, tools::call("v")).is_err());
    assert!(!shop.rig.has_ended(call));
}

//
#[test]
fn read_only_or_idempotent_tool_may_be_repeated() {
    let hinted = |name: &str, hint: &str| json!({"name": name, "inputSchema": {}, "annotations": {hint: true}});
    let mut shop = Shop::knowing(&json!([
        hinted("reads", "readOnlyHint"),
        hinted("same", "idempotentHint"),
        hinted("breaks", "destructiveHint"),
    ]));
    for (name, repeatable) in [("reads", true), ("same", true), ("breaks", false), ("unknown", false)] {
        shop.call(name, &json!({}));
        assert_eq!(shop.last().repeatable, repeatable, "{name}");
    }
    shop.rig.call(tools::call("breaks").repeatable());
    assert!(shop.last().repeatable);

    // The response is lost.
    let (reads, breaks) = (shop.call("reads", &json!({"a": 1})), shop.call("breaks", &json!({})));
    let lost = shop.posts().split_off(shop.posts().len() - 2);
    for post in &lost {
        shop.rig.handle_event(post.exchange, ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset });
    }
    assert!(matches!(shop.rig.outcome(breaks), Err(CallError::Closed { why: Closed::Reset, .. })));
    let again = shop.last();
    assert_eq!(again.body["params"]["arguments"], json!({"a": 1}));
    assert_ne!(again.body["id"], lost[0].body["id"]);
    shop.result(&again, json!({"content": []}));
    assert!(shop.rig.outcome(reads).is_ok());
}

// covers: S2-15, B-158, B-162
#[test]
fn fields_of_the_application_are_sent_and_replace_none() {
    let config = ClientConfig::url("http://127.0.0.1:8000/mcp").unwrap();
    let mut config = config.header("Authorization", "Bearer x").unwrap().header("X-User", "José").unwrap();
    config.headers.push("accept", "*/*");
    config.headers.push("Mcp-Method", "ping");
    config.headers.push("X-Evil", "a\r\nb");
    let mut shop = Shop::with(config);
    shop.rig.echo();
    shop.rig.client.notify(shop.rig.now, "acme/note", Object::new()).unwrap();
    shop.rig.drain();
    let posts = shop.posts();
    assert_eq!(posts.len(), 3);
    for post in posts {
        let headers = &post.head.headers;
        let all = |name| headers.all(name).collect::<Vec<_>>();
        assert_eq!(all("authorization"), ["Bearer x"]);
        assert_eq!(all("x-user"), ["José"]);
        assert_eq!(all("accept"), ["application/json, text/event-stream"]);
        assert_eq!(all("content-type"), ["application/json"]);
        assert_eq!(all("mcp-method"), [post.body["method"].as_str().unwrap()]);
        assert_eq!(all("x-evil"), [""; 0]);
    }
}
