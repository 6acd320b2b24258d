//! Validation with a validator that knows `required`, `pinned` and `broken`, so that these tests
//! need no library.

use super::*;
use crate::schema::{BadSchema, Checker, Mismatch, Validator};
use core::sync::atomic::AtomicUsize;

/// Compiles every schema but one with the member `broken`. A value must have the members that
/// `required` names. Counts the compilations.
fn validator(compiled: &Arc<AtomicUsize>) -> Validator {
    let compiled = compiled.clone();
    Validator::new(move |schema: &RawJson| {
        compiled.fetch_add(1, Ordering::Relaxed);
        let schema = Object::read(schema)?;
        if schema.contains("broken") {
            return Err(BadSchema::reference("https://example.com/broken"));
        }
        let required: Vec<String> = schema.optional("required")?.unwrap_or_default();
        Ok(Checker::new(move |value: &RawJson| {
            let value = Object::read(value).map_err(|_| Mismatch::new("", "not an object"))?;
            match required.iter().find(|name| !value.contains(name)) {
                None => Ok(()),
                Some(name) => Err(Mismatch::new(format!("/{name}"), "missing")),
            }
        }))
    })
}

const A: &str = r#"{"type":"object","required":["a"]}"#;
const BROKEN: &str = r#"{"type":"object","broken":true}"#;

/// A router whose handlers count their runs, and whose validator counts its compilations.
struct Counted {
    router: Router,
    runs: Arc<AtomicUsize>,
    compiled: Arc<AtomicUsize>,
}

fn counted() -> Counted {
    let (runs, compiled) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let run = |result: CallToolResult| {
        let runs = runs.clone();
        move |_: Cx, _: Anything| {
            runs.fetch_add(1, Ordering::Relaxed);
            result.clone()
        }
    };
    let json = |text: &str| {
        let mut result = CallToolResult::text(text);
        result.structured = Some(RawJson::parse(text.as_bytes().to_vec()).unwrap());
        result
    };
    let failed = CallToolResult { is_error: true, ..json(r#"{"b":1}"#) };
    let router = Router::new("n", "1")
        .plain(tool("input").input_schema(A), run(CallToolResult::text("ran")))
        .configure(|config| config.validate = Some(validator(&compiled)))
        .plain(tool("right").output_schema(A), run(json(r#"{"a":1}"#)))
        .plain(tool("wrong").output_schema(A), run(json(r#"{"b":1}"#)))
        .plain(tool("array").output_schema(A), run(json("[1]")))
        .plain(tool("failed").output_schema(A), run(failed))
        .plain(tool("bare").output_schema(A), run(CallToolResult::text("bare")))
        .plain(tool("bad-input").input_schema(BROKEN), run(CallToolResult::text("ran")))
        .plain(tool("bad-output").output_schema(BROKEN), run(json(r#"{"a":1}"#)))
        .plain("free", run(CallToolResult::text("ran")));
    Counted { router, runs, compiled }
}

/// Arguments of any kind.
#[derive(Deserialize)]
struct Anything {}

/// Returns what a call returned: the text of an error, or whether it is an error of the tool and
/// the texts of its content, and whether it has structured content.
type Seen = Result<(bool, Vec<String>, bool), (i64, String)>;

fn seen(outcome: Result<Object, ErrorObject>) -> Seen {
    let result = outcome.map_err(|e| (e.code, e.message))?;
    let texts = result.array("content").unwrap();
    let texts = texts.iter().map(|block| Content::read(block).unwrap().as_text().unwrap().into());
    let is_error = result.optional::<bool>("isError").unwrap().unwrap_or(false);
    Ok((is_error, texts.collect(), result.contains("structuredContent")))
}

fn modern(bench: &mut Bench, name: &str, arguments: &str) -> Seen {
    seen(bench.modern("tools/call", &format!(r#","name":"{name}","arguments":{arguments}"#)))
}

fn fine(texts: &[&str], structured: bool) -> Seen {
    Ok((false, texts.iter().map(ToString::to_string).collect(), structured))
}

fn failed(texts: &[&str], structured: bool) -> Seen {
    Ok((true, texts.iter().map(ToString::to_string).collect(), structured))
}

// covers: TOOL-S-023, TOOL-S-024
#[test]
fn arguments_that_do_not_match_never_reach_the_handler() {
    let Counted { router, runs, .. } = counted();
    let mut bench = Bench::new(router);
    let text = "invalid arguments: missing (at /a)";
    assert_eq!(modern(&mut bench, "input", r#"{"b":1}"#), failed(&[text], false));
    assert_eq!(modern(&mut bench, "input", "null"), failed(&[text], false));
    assert_eq!((runs.load(Ordering::Relaxed), bench.codes()), (0, vec![]));
    assert_eq!(modern(&mut bench, "input", r#"{"a":1}"#), fine(&["ran"], false));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    for (version, is_result) in
        [("2025-11-25", true), ("2025-06-18", false), ("2025-03-26", false), ("2024-11-05", false)]
    {
        let Counted { router, runs, .. } = counted();
        let mut bench = Bench::legacy(router, version);
        let call = seen(bench.legacy_call(r#"{"name":"input","arguments":{}}"#));
        let expected = if is_result { failed(&[text], false) } else { Err((-32602, text.into())) };
        assert_eq!((call, runs.load(Ordering::Relaxed)), (expected, 0), "{version}");
    }
}

const WRONG: &str = "the structured content of the tool does not match its output schema: missing (at /a)";

// covers: TOOL-S-020
#[test]
fn result_that_does_not_match_is_sent_as_an_error_of_the_tool() {
    let mut bench = Bench::new(counted().router);
    assert_eq!(modern(&mut bench, "right", "{}"), fine(&[r#"{"a":1}"#], true));
    assert_eq!(bench.codes(), Vec::<&str>::new());
    assert_eq!(modern(&mut bench, "wrong", "{}"), failed(&[WRONG, r#"{"b":1}"#], false));
    assert_eq!(bench.codes(), ["schema-mismatch"]);
    let (is_error, _, structured) = modern(&mut bench, "array", "{}").unwrap();
    assert!(is_error && !structured);
    assert_eq!(bench.codes(), ["schema-mismatch"]);
    assert_eq!(modern(&mut bench, "bare", "{}"), failed(&[NO_STRUCTURE, "bare"], false));
    assert_eq!(bench.codes(), ["missing-structure"]);
    for version in ["2025-11-25", "2025-06-18"] {
        let mut bench = Bench::legacy(counted().router, version);
        let call = seen(bench.legacy_call(r#"{"name":"wrong"}"#));
        assert_eq!((call, bench.codes()), (failed(&[WRONG, r#"{"b":1}"#], false), vec!["schema-mismatch"]));
    }
}

#[test]
fn failed_tool_and_older_revision_promise_nothing() {
    let mut bench = Bench::new(counted().router);
    assert_eq!(modern(&mut bench, "failed", "{}"), failed(&[r#"{"b":1}"#], true));
    assert_eq!(bench.codes(), Vec::<&str>::new());
    for version in ["2025-03-26", "2024-11-05"] {
        let mut bench = Bench::legacy(counted().router, version);
        for name in ["wrong", "bare", "bad-output"] {
            let (is_error, _, structured) = seen(bench.legacy_call(&format!(r#"{{"name":"{name}"}}"#))).unwrap();
            assert!(!is_error && !structured, "{name}");
        }
        assert_eq!(bench.codes(), Vec::<&str>::new());
    }
}

#[test]
fn schema_that_cannot_be_used_affects_its_own_tool_only() {
    let Counted { router, runs, .. } = counted();
    let bad: Vec<_> = router.bad_schemas().map(|(tool, bad)| (tool.name.clone(), bad.clone())).collect();
    let why = BadSchema::Reference("https://example.com/broken".into());
    assert_eq!(bad, [("bad-input".to_string(), why.clone()), ("bad-output".to_string(), why)]);
    let mut bench = Bench::new(router);
    for name in ["bad-input", "bad-output"] {
        let refused = Err((-32603, "a schema of the tool cannot be used".to_string()));
        assert_eq!((modern(&mut bench, name, "{}"), bench.codes()), (refused, vec!["bad-schema"]), "{name}");
    }
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    assert_eq!(modern(&mut bench, "free", "{}"), fine(&["ran"], false));
}

#[test]
fn schemas_are_compiled_once_and_again_for_another_validator() {
    let Counted { router, compiled, .. } = counted();
    // Nine input schemas and six output schemas.
    assert_eq!(compiled.load(Ordering::Relaxed), 15);
    let router = router.configure(|config| config.cors = true);
    let mut bench = Bench::new(router);
    for _ in 0..3 {
        modern(&mut bench, "right", "{}").unwrap();
    }
    assert_eq!(compiled.load(Ordering::Relaxed), 15);
    let other = Arc::default();
    let router = bench.router.configure(|config| config.validate = Some(validator(&other)));
    assert_eq!((compiled.load(Ordering::Relaxed), other.load(Ordering::Relaxed)), (15, 15));
    let mut bench = Bench::new(router.configure(|config| config.validate = None));
    assert_eq!(bench.router.bad_schemas().count(), 0);
    assert_eq!(modern(&mut bench, "wrong", "{}"), fine(&[r#"{"b":1}"#], true));
    assert_eq!(modern(&mut bench, "bad-input", "{}"), fine(&["ran"], false));
}

#[test]
fn request_for_input_is_not_a_result() {
    let asks = |cx: Cx, (): ()| {
        cx.elicit("name", Form::new("Name?").text("name"))?;
        Ok::<_, ToolError>(Json(Add { a: 1, b: 2 }))
    };
    let compiled = Arc::default();
    let router = Router::new("n", "1")
        .configure(|config| config.validate = Some(validator(&compiled)))
        .plain(tool("asks").output_schema(A), asks);
    let mut bench = Bench::new(router);
    let result = bench.modern("tools/call", r#","name":"asks""#).unwrap();
    assert_eq!(result.str("resultType").as_deref(), Some("input_required"));
    assert_eq!(bench.codes(), Vec::<&str>::new());
}

#[test]
fn large_arguments_are_routed_on_a_thread_of_their_own() {
    let takes_long = |validates: bool, size: usize| {
        let compiled = Arc::default();
        let router = adder().configure(|config| config.validate = validates.then(|| validator(&compiled)));
        let mut bench = Bench::legacy(router, "2025-11-25");
        let params = format!(r#"{{"name":"add","arguments":{{"x":"{}"}}}}"#, "x".repeat(size));
        let line = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}"#);
        let message = parse(line.into_bytes().into(), 128).unwrap();
        bench.server.handle_event(NOW, X, ExchangeEvent::Inbound(Inbound::Message(message)));
        let Some(Output::Event(Event::Request(responder, _))) = bench.server.poll_output() else { panic!() };
        responder.takes_long()
    };
    assert!(takes_long(true, 40_000));
    assert!(!takes_long(true, 1_000) && !takes_long(false, 40_000));
}
