//! A router with an engine: requests and responses as text, handlers as plain functions.

mod replace;
mod validated;

use super::*;
use crate::error::Refusal;
use crate::exchange::{ExchangeEvent, ExchangeId, Inbound, Outbound, Peer};
use crate::model::Progress;
use crate::model::content::Content;
use crate::model::elicitation::{ElicitResult, Form};
use crate::model::page::ListElement;
use crate::model::tools::{CallToolResult, Tool};
use crate::rpc::{Message, Payload, parse};
use crate::server::{Event, Output, Server, ServerCommands};
use crate::time::Instant;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec;
use core::sync::atomic::{AtomicBool, Ordering};
use serde::{Deserialize, Serialize};

const X: ExchangeId = ExchangeId(1);
const NOW: Instant = Instant::ZERO;

/// Handlers that return any output.
trait Plain {
    fn plain<A: DeserializeOwned, R: IntoOutput>(
        self,
        tool: impl Into<Tool>,
        f: impl Fn(Cx, A) -> R + Send + Sync + 'static,
    ) -> Self;
    fn plain_method<A: DeserializeOwned, R: IntoOutput>(
        self,
        method: &str,
        f: impl Fn(Cx, A) -> R + Send + Sync + 'static,
    ) -> Self;
}

impl Plain for Router {
    fn plain<A: DeserializeOwned, R: IntoOutput>(
        self,
        tool: impl Into<Tool>,
        f: impl Fn(Cx, A) -> R + Send + Sync + 'static,
    ) -> Self {
        self.tool(tool, move |cx, arguments: A| f(cx.clone(), arguments).into_output())
    }

    fn plain_method<A: DeserializeOwned, R: IntoOutput>(
        self,
        method: &str,
        f: impl Fn(Cx, A) -> R + Send + Sync + 'static,
    ) -> Self {
        self.method(method, move |cx, arguments: A| f(cx.clone(), arguments).into_output())
    }
}

/// Refuses every note.
pub(super) struct Bench {
    router: Router,
    server: Server,
    cancelled: Arc<AtomicBool>,
    codes: Vec<&'static str>,
}

impl Bench {
    pub(super) fn new(router: Router) -> Self {
        let mut server = Server::new(Arc::new(router.config()), [1; 32], NOW);
        server.handle_event(NOW, X, ExchangeEvent::Opened(Peer::default()));
        Self { router, server, cancelled: Arc::default(), codes: Vec::new() }
    }

    /// Returns the codes of the diagnostics since the last call.
    pub(super) fn codes(&mut self) -> Vec<&'static str> {
        core::mem::take(&mut self.codes)
    }

    pub(super) fn legacy(router: Router, version: &str) -> Self {
        let mut bench = Self::new(router);
        let params = format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{"elicitation":{{}}}},"clientInfo":{{"name":"c","version":"0"}}}}"#
        );
        bench.say("initialize", &params);
        bench
    }

    /// Sends a line, runs the handlers, and returns the lines that the server sends.
    pub(super) fn line(&mut self, line: &str) -> Vec<String> {
        self.line_on(X, line)
    }

    fn line_on(&mut self, x: ExchangeId, line: &str) -> Vec<String> {
        let message = parse(line.as_bytes().to_vec().into(), 128).unwrap();
        self.server.handle_event(NOW, x, ExchangeEvent::Inbound(Inbound::Message(message)));
        let mut said = Vec::new();
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Event(Event::Request(responder, incoming)) => {
                    let answer = match self.router.route(responder, incoming) {
                        RouteResult::Answer(answer) => answer,
                        RouteResult::Handle { handler, invocation, responder } => {
                            let refuse = |_| Err(Refusal::NotWanted);
                            let cx = Cx::linked(invocation, self.cancelled.clone(), refuse, |_| {});
                            responder.write(handler.call(&cx).expect("no future"))
                        }
                    };
                    self.server.respond(NOW, answer);
                }
                Output::Event(Event::Diagnostic(diagnostic)) => self.codes.push(diagnostic.kind.code()),
                Output::Send(_, Outbound::Message(bytes)) => said.push(String::from_utf8(bytes.to_vec()).unwrap()),
                _ => {}
            }
        }
        said
    }

    pub(super) fn say(&mut self, method: &str, params: &str) -> Vec<String> {
        self.line(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#))
    }

    /// Makes a request of 2026-07-28.
    pub(super) fn modern(&mut self, method: &str, rest: &str) -> Result<Object, ErrorObject> {
        let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}"#;
        let said = self.say(method, &format!(r#"{{"_meta":{{{meta}}}{rest}}}"#));
        outcome(&said[0])
    }

    fn legacy_call(&mut self, params: &str) -> Result<Object, ErrorObject> {
        outcome(&self.say("tools/call", params)[0])
    }
}

pub(super) fn outcome(said: &str) -> Result<Object, ErrorObject> {
    let Ok(Message::Response(response)) = parse(said.as_bytes().to_vec().into(), 128) else { panic!("{said}") };
    match response.payload {
        Payload::Result(result) => Ok(Object::read(&result).unwrap()),
        Payload::Error(error) => Err(error),
    }
}

fn text(result: &Object) -> String {
    let content = result.array("content").unwrap();
    Content::read(&content[0]).unwrap().as_text().unwrap().into()
}

#[derive(Deserialize, Serialize)]
struct Add {
    a: i64,
    b: i64,
}

fn adder() -> Router {
    Router::new("calc", "1.0").plain(tool("add").describe("adds"), |_cx, a: Add| Ok::<_, ToolError>(a.a + a.b))
}

fn names(page: &Object) -> Vec<String> {
    page.array("tools").unwrap().iter().map(|tool| Object::read(tool).unwrap().required("name").unwrap()).collect()
}

fn named(names: &[&str]) -> Router {
    names.iter().fold(Router::new("n", "1"), |router, name| router.plain(*name, |_cx, (): ()| "ok"))
}

// covers: VER-B-012
#[test]
fn handler_can_require_an_extension_of_the_client() {
    let router = || {
        Router::new("n", "1").plain("t", |cx: Cx, (): ()| {
            let settings = cx.require_extension("com.example/x")?;
            Ok::<_, ToolError>(settings.to_json().as_str().to_string())
        })
    };
    let mut bench = Bench::new(router().extension("com.example/x", Object::new()).unwrap());
    let offered = bench.modern("server/discover", "").unwrap().object("capabilities").unwrap();
    assert_eq!(offered.object("extensions").unwrap().to_json().as_str(), r#"{"com.example/x":{}}"#);
    let error = bench.modern("tools/call", r#","name":"t""#).unwrap_err();
    assert_eq!(error.code, -32021);
    let required = r#"{"requiredCapabilities":{"extensions":{"com.example/x":{}}}}"#;
    assert_eq!(error.data.unwrap().as_str(), required);
    let mut bench = Bench::legacy(router(), "2025-11-25");
    let result = bench.legacy_call(r#"{"name":"t"}"#).unwrap();
    assert!(text(&result).contains("com.example/x") && result.get("isError") == Some(true.into()));
    let capabilities = r#"{"extensions":{"com.example/x":{"a":1}}}"#;
    let mut bench = Bench::new(router());
    bench.say("initialize", &format!(r#"{{"protocolVersion":"2025-06-18","capabilities":{capabilities}}}"#));
    assert_eq!(text(&bench.legacy_call(r#"{"name":"t"}"#).unwrap()), r#"{"a":1}"#);
}

// covers: TOOL-S-001, TOOL-S-002, TOOL-S-005, TOOL-S-007, TOOL-S-010, CACHE-S-001, INIT-S-019,
// DISC-S-001
#[test]
fn list_of_tools_is_sorted_by_name() {
    let router = named(&["z", "a", "m"]).configure(|config| {
        config.list_cache = crate::model::lifecycle::CacheHints::new(9, crate::model::lifecycle::CacheScope::Public);
    });
    let mut bench = Bench::new(router);
    assert!(bench.modern("server/discover", "").unwrap().object("capabilities").unwrap().get("tools").is_some());
    let page = bench.modern("tools/list", "").unwrap();
    assert_eq!(names(&page), ["a", "m", "z"]);
    assert!(page.get("nextCursor").is_none());
    assert_eq!(
        (page.required::<u64>("ttlMs").unwrap(), page.required::<String>("cacheScope").unwrap()),
        (9, "public".to_string())
    );
    let tool = Object::read(&page.array("tools").unwrap()[0]).unwrap();
    assert_eq!(tool.get("inputSchema").unwrap().as_str(), r#"{"type":"object"}"#);
    let mut bench = Bench::legacy(named(&["z"]), "2025-06-18");
    let said = bench.say("tools/list", "{}");
    assert!(!said[0].contains("ttlMs") && !said[0].contains("resultType"), "{said:?}");
}

// covers: HTTP-S-031, X-45
#[test]
fn unknown_method_takes_precedence_over_invalid_input_responses() {
    let mut bench = Bench::new(adder());
    for wrong in [r#","inputResponses":7"#, r#","requestState":"forged""#] {
        let mut code = |method: &str, rest: &str| bench.modern(method, &format!("{rest}{wrong}")).unwrap_err().code;
        assert_eq!(code("prompts/get", r#","name":"add""#), -32601, "{wrong}");
        assert_eq!(code("tools/call", r#","name":"add","arguments":{"a":1,"b":2}"#), -32602, "{wrong}");
    }
}

// covers: PAGE-S-002, PAGE-S-007, PAGE-S-008, TOOL-S-002, B-286, B-284, CACHE-S-022
#[test]
fn pages_are_consecutive_and_invalid_cursor_is_refused() {
    let router = named(&["a", "b", "c", "", "e"]).configure(|config| {
        config.limits.server.page_size = 2;
        config.list_cache = crate::model::lifecycle::CacheHints::new(9, crate::model::lifecycle::CacheScope::Public);
    });
    let mut bench = Bench::new(router);
    let (mut all, mut rest) = (Vec::new(), String::new());
    let mut pages = 0;
    loop {
        let page = bench.modern("tools/list", &rest).unwrap();
        assert_eq!(page.required::<String>("cacheScope").unwrap(), "public");
        assert_eq!(page.required::<u64>("ttlMs").unwrap(), 9);
        all.extend(names(&page));
        pages += 1;
        let Some(cursor) = page.optional::<String>("nextCursor").unwrap() else { break };
        rest = format!(r#","cursor":"{cursor}""#);
    }
    assert_eq!((all, pages), (["", "a", "b", "c", "e"].map(String::from).to_vec(), 3));
    for cursor in [r#""!""#, r#""bm9wZQ""#, "1", "{}"] {
        assert_eq!(bench.modern("tools/list", &format!(r#","cursor":{cursor}"#)).unwrap_err().code, -32602, "{cursor}");
    }
    assert_eq!(names(&bench.modern("tools/list", r#","cursor":null"#).unwrap()), ["", "a"]);
}

// covers: TOOL-S-004, TOOL-S-005
#[test]
fn list_is_the_same_on_every_connection() {
    let router = || named(&["b", "a"]).plain(tool("c").describe("third"), |_cx, (): ()| "ok");
    let mut bench = Bench::new(router());
    let first = bench.modern("tools/list", "").unwrap();
    assert_eq!(names(&first), ["a", "b", "c"]);
    for (method, rest) in [
        ("tools/call", r#","name":"a""#),
        ("tools/call", r#","name":"no such""#),
        ("tools/list", r#","cursor":"!""#),
        ("server/discover", ""),
        ("no/such", ""),
    ] {
        let _ = bench.modern(method, rest);
        assert_eq!(bench.modern("tools/list", "").unwrap(), first, "after {method}");
    }
    // Another connection of the same engine, and one of another engine.
    bench.server.handle_event(NOW, ExchangeId(2), ExchangeEvent::Opened(Peer::default()));
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    assert_eq!(outcome(&bench.line_on(ExchangeId(2), line)[0]).unwrap(), first);
    assert_eq!(Bench::new(router()).modern("tools/list", "").unwrap(), first);
}

// covers: TOOL-S-003, RPC-S-040, SEPX-S-012, X-21, SUB-S-017
#[test]
fn methods_that_are_not_offered_do_not_exist() {
    let mut bench = Bench::new(Router::new("n", "1"));
    assert!(bench.modern("server/discover", "").unwrap().object("capabilities").unwrap().get("tools").is_none());
    for method in
        ["tools/list", "tools/call", "resources/list", "resources/subscribe", "resources/unsubscribe", "tasks/result"]
    {
        assert_eq!(bench.modern(method, "").unwrap_err().code, -32601);
    }
    let mut bench = Bench::legacy(adder(), "2024-11-05");
    let error = outcome(&bench.say("resources/list", "{}")[0]).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-32601, "Method not found"));
}

// covers: TOOL-S-022, SEPX-S-011, S2-01, S2-02, RPC-B-012
#[test]
fn call_runs_the_named_tool() {
    let mut bench = Bench::new(adder());
    for task in ["", r#","task":{"ttl":1000}"#] {
        let rest = format!(r#","name":"add","arguments":{{"a":1,"b":2}}{task}"#);
        assert_eq!(text(&bench.modern("tools/call", &rest).unwrap()), "3");
    }
    for rest in
        [r#","name":"sub""#, "", r#","name":1"#, r#","name":"add","arguments":[1]"#, r#","name":"add","arguments":"x""#]
    {
        assert_eq!(bench.modern("tools/call", rest).unwrap_err().code, -32602, "{rest}");
    }
    let mut bench = Bench::legacy(adder(), "2025-11-25");
    assert_eq!(bench.legacy_call(r#"{"name":"sub"}"#).unwrap_err().code, -32602);
}

// covers: TOOL-S-023, TOOL-S-024, X-22, B-291
#[test]
fn invalid_arguments_fail_as_the_revision_requires() {
    let wrong = r#"{"name":"add","arguments":{"a":"1"}}"#;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        assert_eq!(Bench::legacy(adder(), version).legacy_call(wrong).unwrap_err().code, -32602);
    }
    let result = Bench::legacy(adder(), "2025-11-25").legacy_call(wrong).unwrap();
    assert!(result.required::<bool>("isError").unwrap());
    let result = Bench::new(adder()).modern("tools/call", r#","name":"add","arguments":{"a":"1"}"#).unwrap();
    assert!(result.required::<bool>("isError").unwrap() && text(&result).contains("invalid arguments"));
}

// covers: B-287
#[test]
fn tool_without_arguments_accepts_every_empty_form() {
    let mut bench = Bench::new(named(&["t"]));
    for rest in ["", r#","arguments":{}"#, r#","arguments":null"#, r#","arguments":[ ]"#] {
        assert_eq!(text(&bench.modern("tools/call", &format!(r#","name":"t"{rest}"#)).unwrap()), "ok");
    }
}

// covers: TOOL-S-025
#[test]
fn tool_error_is_a_result_and_request_error_is_an_error() {
    let router = Router::new("n", "1")
        .plain("text", |_cx, (): ()| Err::<(), _>("broken"))
        .plain("protocol", |_cx, (): ()| Err::<(), _>(ErrorObject::new(7, "wrong")));
    let mut bench = Bench::new(router);
    let result = bench.modern("tools/call", r#","name":"text""#).unwrap();
    assert!(result.required::<bool>("isError").unwrap());
    assert_eq!(text(&result), "broken");
    assert_eq!(bench.modern("tools/call", r#","name":"protocol""#).unwrap_err().code, 7);
}

// covers: TOOL-S-017, TOOL-B-018, TOOL-B-019, X-23, TOOL-S-014, TOOL-S-015
#[test]
fn outputs_are_reduced_to_the_revision() {
    let router = || {
        Router::new("n", "1")
            .plain("object", |_cx, (): ()| Json(Add { a: 1, b: 2 }))
            .plain("null", |_cx, (): ()| Json(()))
            .plain("many", |_cx, (): ()| vec![Content::text("x"), Content::audio("AA==", "audio/wav")])
            .plain("nothing", |_cx, (): ()| ())
            .plain("flag", |_cx, (): ()| true)
            .plain("raw", |_cx, (): ()| CallToolResult::text("r"))
    };
    let mut modern = Bench::new(router());
    let result = modern.modern("tools/call", r#","name":"object""#).unwrap();
    assert_eq!(
        (text(&result), result.get("structuredContent").unwrap().as_str()),
        (r#"{"a":1,"b":2}"#.into(), r#"{"a":1,"b":2}"#)
    );
    let result = modern.modern("tools/call", r#","name":"null""#).unwrap();
    assert_eq!(result.get("structuredContent").unwrap().as_str(), "null");
    assert_eq!(modern.modern("tools/call", r#","name":"nothing""#).unwrap().get("content").unwrap().as_str(), "[]");
    assert_eq!(text(&modern.modern("tools/call", r#","name":"flag""#).unwrap()), "true");
    assert_eq!(text(&modern.modern("tools/call", r#","name":"raw""#).unwrap()), "r");
    let mut old = Bench::legacy(router(), "2024-11-05");
    let result = old.legacy_call(r#"{"name":"object"}"#).unwrap();
    assert!(result.get("structuredContent").is_none() && text(&result) == r#"{"a":1,"b":2}"#);
    assert!(
        !old.legacy_call(r#"{"name":"many"}"#).unwrap().get("content").unwrap().as_str().contains(r#""type":"audio""#)
    );
    assert!(
        Bench::legacy(router(), "2025-11-25")
            .legacy_call(r#"{"name":"null"}"#)
            .unwrap()
            .get("structuredContent")
            .is_none()
    );
}

/// Returns a router with tools that declare an output schema. Each handler returns the result that
/// its name describes.
fn promising(schema: &str) -> Router {
    let promises = |name: &str| tool(name).output_schema(schema);
    Router::new("n", "1")
        .plain(promises("text"), |_cx, (): ()| "plain text")
        .plain(promises("nothing"), |_cx, (): ()| ())
        .plain(promises("object"), |_cx, (): ()| Json(Add { a: 1, b: 2 }))
        .plain(promises("array"), |_cx, (): ()| Json([1, 2]))
        .plain(promises("null"), |_cx, (): ()| Json(()))
        .plain(promises("fails"), |_cx, (): ()| Err::<(), _>("broken"))
        .plain(promises("asks"), |cx: Cx, (): ()| {
            cx.elicit("name", Form::new("Name?").text("name"))?;
            Ok::<_, ToolError>(Json(Add { a: 1, b: 2 }))
        })
        .plain("free", |_cx, (): ()| "plain text")
}

const NO_STRUCTURE: &str = "the tool declares an output schema, and its result has no structured content";

// covers: TOOL-S-025, TOOL-B-019
#[test]
fn result_without_declared_structure_is_an_error() {
    let call = |bench: &mut Bench, name: &str| {
        let result = bench.modern("tools/call", &format!(r#","name":"{name}""#)).unwrap();
        let texts: Vec<String> = result
            .optional_array("content")
            .unwrap()
            .unwrap_or_default()
            .iter()
            .map(|block| Content::read(block).unwrap().as_text().unwrap().into())
            .collect();
        (result.optional::<bool>("isError").unwrap().unwrap_or(false), texts, bench.codes())
    };
    let mut bench = Bench::new(promising(r#"{"type":"object"}"#));
    let missing = |rest: &[&str]| {
        let texts = [&[NO_STRUCTURE], rest].concat().iter().map(ToString::to_string).collect::<Vec<_>>();
        (true, texts, vec!["missing-structure"])
    };
    assert_eq!(call(&mut bench, "text"), missing(&["plain text"]));
    assert_eq!(call(&mut bench, "nothing"), missing(&[]));
    // These results are complete.
    let fine = |is_error: bool, text: &str| (is_error, vec![text.to_string()], Vec::new());
    assert_eq!(call(&mut bench, "object"), fine(false, r#"{"a":1,"b":2}"#));
    assert_eq!(call(&mut bench, "null"), fine(false, "null"));
    assert_eq!(call(&mut bench, "fails"), fine(true, "broken"));
    assert_eq!(call(&mut bench, "free"), fine(false, "plain text"));
    assert_eq!(call(&mut bench, "asks"), (false, vec![], vec![]));
}

// covers: TOOL-B-018, TOOL-B-019
#[test]
fn structure_is_required_only_if_the_schema_was_sent() {
    let call = |schema: &str, version: &str, name: &str| {
        let mut bench = Bench::legacy(promising(schema), version);
        let result = bench.legacy_call(&format!(r#"{{"name":"{name}"}}"#)).unwrap();
        assert_eq!(bench.codes().is_empty(), result.get("isError").is_none());
        result.get("isError").is_some()
    };
    // Output schemas exist from 2025-06-18 on, and before 2026-07-28 only for objects.
    for (version, sent) in [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", true), ("2025-11-25", true)] {
        assert_eq!(call(r#"{"type":"object"}"#, version, "text"), sent, "{version}");
        assert_eq!(call(r#"{"type":"object"}"#, version, "array"), sent, "{version}: no array can be sent");
        assert!(!call(r#"{"type":"object"}"#, version, "object"), "{version}");
        assert!(!call(r#"{"type":"array"}"#, version, "text"), "{version}");
    }
}

#[test]
fn tool_of_the_same_name_replaces_the_first() {
    let router = named(&["a", "b"]).plain(tool("a").describe("second"), |_cx, (): ()| "new");
    let mut bench = Bench::new(router);
    assert_eq!(names(&bench.modern("tools/list", "").unwrap()), ["a", "b"]);
    assert_eq!(text(&bench.modern("tools/call", r#","name":"a""#).unwrap()), "new");
}

// covers: TOOL-S-007
#[test]
fn tool_requires_an_object_schema_as_input() {
    for schema in
        ["null", "true", "[]", "7", "{}", r#"{"type":"string"}"#, r#"{"type":["object"]}"#, r#"{"type":null}"#]
    {
        let mut bad = tool("t");
        bad.input_schema = RawJson::parse(schema.as_bytes().to_vec()).unwrap();
        let why = bad.check().unwrap_err();
        assert!(why.why.contains("input schema"), "{schema}: {why}");
        let added = std::panic::catch_unwind(|| Router::new("n", "1").plain(bad, |_cx, (): ()| "ok"));
        assert!(added.is_err(), "{schema}");
    }
    for (schema, panics) in [("true", true), ("[]", true), (r#"{"type":"array"}"#, true), ("{}", false)] {
        let made = std::panic::catch_unwind(|| tool("t").input_schema(schema));
        assert_eq!(made.is_err(), panics, "{schema}");
        assert!(made.is_err() || made.unwrap().check().is_ok());
    }
}

// covers: TOOL-S-008
#[test]
fn tool_builder_sets_every_property() {
    let described = tool("t")
        .describe("d")
        .title("T")
        .read_only()
        .idempotent()
        .destructive(false)
        .open_world(true)
        .input_schema(r#"{"properties":{"a":{"type":"integer"}}}"#)
        .output_schema(RawJson::parse(&br#"{"type":"object"}"#[..]).unwrap());
    assert_eq!(
        described.write(crate::ProtocolVersion::V2026_07_28).to_json().as_str(),
        concat!(
            r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"integer"}}},"#,
            r#""outputSchema":{"type":"object"},"#,
            r#""annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":true}}"#
        )
    );
    let old = described.write(crate::ProtocolVersion::V2024_11_05).to_json();
    assert_eq!(
        old.as_str(),
        r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"integer"}}}}"#
    );
}

#[test]
fn custom_method_returns_an_object() {
    let router = Router::new("n", "1")
        .plain_method("x/sum", |_cx, a: Add| Json(Add { a: a.a + a.b, b: 0 }))
        .plain_method("x/text", |_cx, (): ()| "no object")
        .plain_method("x/none", |_cx, (): ()| ());
    let mut bench = Bench::new(router);
    let result = bench.modern("x/sum", r#","a":1,"b":2"#).unwrap();
    assert_eq!(result.required::<i64>("a").unwrap(), 3);
    assert_eq!(bench.modern("x/sum", "").unwrap_err().code, -32602);
    assert_eq!(bench.modern("x/text", "").unwrap_err().code, -32603);
    assert_eq!(bench.modern("x/none", "").unwrap().required::<String>("resultType").unwrap(), "complete");
}

/// Requests a name, then a colour, and returns both.
fn asking() -> Router {
    Router::new("n", "1").plain("ask", |cx: Cx, (): ()| {
        let name = match cx.elicit("name", Form::new("Name?").text("name"))? {
            ElicitResult::Accept(content) => content.required::<String>("name")?,
            _ => return Err(ToolError::from("no name")),
        };
        let entries: u32 = cx.state().unwrap_or(0);
        let colour = cx
            .elicit("colour", Form::new("Colour?").choice("colour", ["red", "blue"]))
            .map_err(|ask| ask.remember(&(entries + 1)))?;
        let colour: Object = match colour {
            ElicitResult::Accept(content) => content,
            _ => return Ok(format!("{name} without colour, entry {entries}")),
        };
        Ok(format!("{name} {} {entries}", colour.required::<String>("colour")?))
    })
}

// covers: ELIC-S-005, ELIC-S-030, ELIC-S-031, ELIC-S-024, ELIC-B-025, MRTR-S-002, MRTR-S-025,
// B-221, B-228
#[test]
fn modern_handler_with_two_rounds_sees_all_answers() {
    let mut bench = Bench::new(asking());
    let rest = r#","name":"ask""#;
    let first = bench.modern("tools/call", rest).unwrap();
    assert_eq!(first.required::<String>("resultType").unwrap(), "input_required");
    let with = |result: &Object, responses: &str| {
        let state: String = result.required("requestState").unwrap();
        format!(r#"{rest},"requestState":"{state}","inputResponses":{responses}"#)
    };
    // A missing answer is requested again.
    let again = bench.modern("tools/call", &with(&first, "{}")).unwrap();
    assert!(again.object("inputRequests").unwrap().get("name").is_some());
    let name = r#"{"name":{"action":"accept","content":{"name":"Ada"}}}"#;
    let second = bench.modern("tools/call", &with(&first, name)).unwrap();
    assert!(second.object("inputRequests").unwrap().get("colour").is_some());
    let red = r#"{"colour":{"action":"accept","content":{"colour":"red"}},"name":{"action":"accept","content":{"name":"Eve"}}}"#;
    assert_eq!(text(&bench.modern("tools/call", &with(&second, red)).unwrap()), "Ada red 1");
    let declined = bench.modern("tools/call", &with(&second, r#"{"colour":{"action":"decline"}}"#)).unwrap();
    assert_eq!(text(&declined), "Ada without colour, entry 1");
    // The content is checked against the form. A malformed answer makes the request invalid.
    let green = bench
        .modern("tools/call", &with(&second, r#"{"colour":{"action":"accept","content":{"colour":"green"}}}"#))
        .unwrap();
    assert!(green.required::<bool>("isError").unwrap() && text(&green).contains("does not fit"));
    let error = bench.modern("tools/call", &with(&second, r#"{"colour":{"colour":"red"}}"#)).unwrap_err();
    assert_eq!(error.code, -32602);
    let forged = with(&second, red).replace("requestState\":\"B", "requestState\":\"C");
    let error = bench.modern("tools/call", &forged).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-32602, "the request state is not valid"));
}

// covers: ELIC-S-030, ELIC-S-031, B-073
#[test]
fn same_handler_works_with_a_legacy_client() {
    let mut bench = Bench::legacy(asking(), "2025-06-18");
    let asked = bench.say("tools/call", r#"{"name":"ask"}"#);
    assert!(asked[0].contains(r#""id":1,"method":"elicitation/create""#) && !asked[0].contains("mode"), "{asked:?}");
    let asked = bench.line(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}}"#);
    assert!(asked[0].contains(r#""id":2,"method":"elicitation/create""#));
    let said = bench.line(r#"{"jsonrpc":"2.0","id":2,"result":{"action":"accept","content":{"colour":"blue"}}}"#);
    assert_eq!(text(&outcome(&said[0]).unwrap()), "Ada blue 1");
    // A client that fails, and one that sends a malformed answer.
    bench.say("tools/call", r#"{"name":"ask"}"#);
    let said = bench.line(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no screen"}}"#);
    let result = outcome(&said[0]).unwrap();
    assert!(result.required::<bool>("isError").unwrap() && text(&result).contains("no screen"));
    bench.say("tools/call", r#"{"name":"ask"}"#);
    let said = bench.line(r#"{"jsonrpc":"2.0","id":4,"result":[]}"#);
    assert_eq!(outcome(&said[0]).unwrap_err().code, -32603);
}

#[test]
fn several_requests_for_input_are_sent_at_once() {
    let router = Router::new("n", "1").plain("t", |cx: Cx, (): ()| {
        let question = |text: &str| Form::new(text).into();
        let answers = cx.ask(vec![("a".into(), question("A?")), ("b".into(), question("B?"))])?;
        Ok::<_, ToolError>(format!("{answers:?}"))
    });
    let mut bench = Bench::legacy(router, "2025-11-25");
    assert_eq!(bench.say("tools/call", r#"{"name":"t"}"#).len(), 2);
    bench.line(r#"{"jsonrpc":"2.0","id":2,"error":{"code":5,"message":"no"}}"#);
    let said = bench.line(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}"#);
    let text = text(&outcome(&said[0]).unwrap());
    assert!(text.starts_with("[Elicitation(Decline), Error("), "{text}");
}

#[test]
fn cx_offers_what_adapters_need() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Cx>();
    let router = Router::new("n", "1").plain("t", |cx: Cx, (): ()| {
        let refused = cx.progress(Progress::new(1.0)).unwrap_err();
        format!("{refused} {} {} {}", cx.is_cancelled(), cx.raw().as_str(), cx.meta().len())
    });
    let result = Bench::new(router).modern("tools/call", r#","name":"t""#).unwrap();
    assert_eq!(text(&result), "the request does not allow it false {} 2");
}

// covers: TOOL-S-002, TOOL-S-003
#[test]
fn server_with_tools_capability_lists_even_no_tools() {
    let router = Router::new("r", "1").configure(|config| config.capabilities.tools = Some(Default::default()));
    let mut bench = Bench::legacy(router, "2025-06-18");
    let said = bench.line(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(said, [r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#]);
    let said = bench.line(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}"#);
    assert!(said[0].contains("-32602"), "{said:?}");
}

#[test]
fn handler_sees_its_cancellation() {
    let router = Router::new("n", "1").plain("look", |cx: Cx, (): ()| format!("{}", cx.is_cancelled()));
    let mut bench = Bench::legacy(router, "2025-06-18");
    for cancelled in [false, true] {
        bench.cancelled.store(cancelled, Ordering::Relaxed);
        let seen = bench.legacy_call(r#"{"name":"look"}"#).unwrap();
        assert_eq!(text(&seen), cancelled.to_string());
    }
}
