//! The validation of results, with a validator that knows `required` and `broken`.

use super::*;
use crate::error::InvalidResult;
use crate::schema::{BadSchema, Checker, Mismatch, Validator};
use core::sync::atomic::{AtomicUsize, Ordering};

const ALL: [ProtocolVersion; 5] = ProtocolVersion::ALL;
const LATEST: ProtocolVersion = ProtocolVersion::V2026_07_28;

/// Compiles every schema but one with the member `broken`. A value must have the members that
/// `required` names. Counts the compilations.
fn validator(compiled: &Arc<AtomicUsize>) -> Validator {
    let compiled = compiled.clone();
    Validator::new(move |schema: &RawJson| {
        compiled.fetch_add(1, Ordering::Relaxed);
        let schema = Object::read(schema)?;
        if schema.contains("broken") {
            return Err(BadSchema::Panicked);
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

fn tool(name: &str, schema: Value) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}, "outputSchema": schema})
}

fn a() -> Value {
    json!({"type": "object", "required": ["a"]})
}

/// A client that validates, and has listed the tools `a`, `broken`, `null` and `free`.
struct Validating {
    rig: Rig,
    compiled: Arc<AtomicUsize>,
}

impl Validating {
    fn new(version: ProtocolVersion, validation: impl Fn(Validator) -> ResultValidation) -> Self {
        Self::with(version, validation, |_| {})
    }

    fn with(
        version: ProtocolVersion,
        validation: impl Fn(Validator) -> ResultValidation,
        change: impl FnOnce(&mut ClientConfig),
    ) -> Self {
        let compiled = Arc::default();
        let mut config = ClientConfig::given();
        config.validate = Some(validation(validator(&compiled)));
        change(&mut config);
        let mut this = Self { rig: Rig::ready(version, config), compiled };
        this.list(json!([
            tool("a", a()),
            tool("broken", json!({"type": "object", "broken": true})),
            tool("null", Value::Null),
            {"name": "free", "inputSchema": {"type": "object"}},
        ]));
        this
    }

    fn answer(&mut self, mut result: Value) {
        result["resultType"] = "complete".into();
        let id = self.rig.last_id();
        self.rig.answer(&id, result);
    }

    fn list(&mut self, tools: Value) {
        let call = self.rig.call(tools::list());
        self.answer(json!({"tools": tools, "ttlMs": 0, "cacheScope": "private"}));
        assert!(self.rig.outcome(call).is_ok());
    }

    /// Calls a tool that returns this result. Returns the error, and the diagnostics meanwhile.
    fn call(&mut self, name: &str, result: Value) -> (Option<CallError>, Vec<DiagnosticKind>) {
        self.rig.clear();
        let call = self.rig.call(tools::call(name));
        self.answer(result);
        (self.rig.outcome(call).as_ref().err().cloned(), self.rig.diagnostics())
    }
}

fn structured(value: Value) -> Value {
    json!({"content": [], "structuredContent": value})
}

fn invalid(why: InvalidResult) -> Option<CallError> {
    Some(CallError::InvalidResult(why))
}

fn missing() -> InvalidResult {
    InvalidResult::Mismatch(Mismatch::new("/a", "missing"))
}

// covers: TOOL-C-021, TOOL-C-029
#[test]
fn result_that_does_not_match_is_rejected_or_reported() {
    for version in [LATEST, ProtocolVersion::V2025_11_25, ProtocolVersion::V2025_06_18] {
        let mut strict = Validating::new(version, ResultValidation::reject);
        assert_eq!(strict.call("a", structured(json!({"a": 1}))), (None, vec![]));
        assert_eq!(strict.call("a", structured(json!({"b": 1}))), (invalid(missing()), vec![]));
        assert_eq!(strict.call("a", json!({"content": []})), (invalid(InvalidResult::NoStructure), vec![]));
        let mut lenient = Validating::new(version, ResultValidation::report);
        assert_eq!(lenient.call("a", structured(json!({"a": 1}))), (None, vec![]));
        for wrong in [structured(json!({"b": 1})), json!({"content": []})] {
            assert_eq!(lenient.call("a", wrong), (None, vec![DiagnosticKind::SchemaMismatch]));
        }
        let Some(Event::Diagnostic(diagnostic)) = lenient.rig.events.first() else { panic!() };
        assert_eq!(diagnostic.detail, "a: the tool has an output schema, and the result no structured content");
    }
}

#[test]
fn what_promises_nothing_is_never_validated() {
    let mut client = Validating::new(LATEST, ResultValidation::reject);
    let failed = json!({"content": [], "structuredContent": {"b": 1}, "isError": true});
    assert_eq!(client.call("a", failed), (None, vec![]));
    for name in ["free", "null", "unlisted"] {
        assert_eq!(client.call(name, structured(json!({"b": 1}))), (None, vec![]), "{name}");
        assert_eq!(client.call(name, json!({"content": []})), (None, vec![]), "{name}");
    }
    for version in ALL.into_iter().filter(|version| !version.rules().titles) {
        let mut older = Validating::new(version, ResultValidation::reject);
        assert_eq!(older.call("a", structured(json!({"b": 1}))), (None, vec![]), "{version}");
    }
    // Another method with the same params.
    let call = client.rig.call(custom::<Value>("tools/other", &json!({"name": "a"})));
    client.answer(structured(json!({"b": 1})));
    assert!(client.rig.outcome(call).is_ok());
    // An error of the protocol is no result.
    let call = client.rig.call(tools::call("a"));
    let id = client.rig.last_id();
    client.rig.say(error(&id, -32602));
    assert!(matches!(client.rig.outcome(call), Err(CallError::Rpc(_))));
}

#[test]
fn client_without_a_validator_keeps_no_schemas() {
    let mut client = Validating::with(LATEST, ResultValidation::reject, |config| config.validate = None);
    assert_eq!(client.call("a", structured(json!({"b": 1}))), (None, vec![]));
    let mut client = Validating::new(LATEST, |_| ResultValidation::content());
    assert_eq!(client.call("a", json!({"content": [{"type": "text", "text": ""}]})), (None, vec![]));
    assert_eq!(client.compiled.load(Ordering::Relaxed), 0);
}

#[test]
fn broken_output_schema_affects_its_own_tool_only() {
    let result = || structured(json!({"a": 1}));
    let mut strict = Validating::new(LATEST, ResultValidation::reject);
    let bad = invalid(InvalidResult::Schema(BadSchema::Panicked));
    assert_eq!(strict.call("broken", result()), (bad, vec![]));
    assert_eq!(strict.call("a", result()), (None, vec![]));
    let mut lenient = Validating::new(LATEST, ResultValidation::report);
    assert_eq!(lenient.call("broken", result()), (None, vec![DiagnosticKind::BadSchema]));
    assert_eq!(lenient.call("a", result()), (None, vec![]));
}

#[test]
fn result_of_an_extension_has_its_own_shape() {
    const EXTENSION: &str = "com.example/later";
    let mut config = ClientConfig::given();
    config.versions = Versions::new([LATEST]);
    config.capabilities.extensions.declare(EXTENSION, Object::new()).unwrap();
    config.validate = Some(ResultValidation::reject(validator(&Arc::default())).with_content());
    let mut rig = Rig::new(config);
    rig.open();
    let mut discovered = discover(&[LATEST.as_str()]);
    discovered["capabilities"]["extensions"] = json!({EXTENSION: {}});
    rig.answer(&rig.last_id(), discovered);
    let mut client = Validating { rig, compiled: Arc::default() };
    client.list(json!([tool("a", a())]));
    let call = client.rig.call(tools::call("a").accept_result(EXTENSION, "later"));
    let id = client.rig.last_id();
    client.rig.answer(&id, json!({"resultType": "later", "ticket": 7}));
    assert!(client.rig.outcome(call).is_ok());
}

// covers: S2-02, S2-16, R-13
#[test]
fn result_needs_content_if_the_application_requires_it() {
    let text = json!([{"type": "text", "text": "x"}]);
    let empty =
        || [json!({"content": []}), json!({}), json!({"content": null}), json!({"content": [], "isError": true})];
    for version in ALL {
        let mut strict = Validating::new(version, |_| ResultValidation::content());
        for result in empty() {
            assert_eq!(strict.call("free", result), (invalid(InvalidResult::NoContent), vec![]), "{version}");
        }
        assert_eq!(strict.call("free", json!({"content": text})), (None, vec![]));
        // A list has no content.
        strict.list(json!([]));
        let mut default = Validating::new(version, ResultValidation::reject);
        for result in empty() {
            assert_eq!(default.call("free", result), (None, vec![]), "{version}");
        }
    }
    // Whatever happens to a result that does not match its schema.
    let mut both = Validating::new(LATEST, |validator| ResultValidation::report(validator).with_content());
    assert_eq!(both.call("a", structured(json!({"a": 1}))), (invalid(InvalidResult::NoContent), vec![]));
    let result = json!({"content": text, "structuredContent": {"b": 1}});
    assert_eq!(both.call("a", result), (None, vec![DiagnosticKind::SchemaMismatch]));
}

#[test]
fn schema_is_compiled_at_the_first_result_and_once() {
    let mut client = Validating::new(LATEST, ResultValidation::reject);
    assert_eq!(client.compiled.load(Ordering::Relaxed), 0);
    for _ in 0..3 {
        client.call("a", structured(json!({"a": 1})));
        client.call("broken", structured(json!({"a": 1})));
    }
    assert_eq!(client.compiled.load(Ordering::Relaxed), 2);
    // The tool has another schema now.
    client.list(json!([tool("a", json!({"type": "object", "required": ["b"]}))]));
    let outcome = client.call("a", structured(json!({"a": 1}))).0;
    assert_eq!(outcome, invalid(InvalidResult::Mismatch(Mismatch::new("/b", "missing"))));
    assert_eq!(client.compiled.load(Ordering::Relaxed), 3);
}

#[test]
fn schemas_are_bounded_compiled_and_not() {
    let mut client = Validating::with(LATEST, ResultValidation::reject, |config| {
        (config.limits.client.max_tools, config.limits.client.max_compiled_schemas) = (10, 2);
    });
    client.list((0..8).map(|n| tool(&format!("t{n}"), a())).collect());
    let wrong = |client: &mut Validating, n: usize| client.call(&format!("t{n}"), structured(json!({}))).0;
    for n in [0, 1, 0, 1, 2, 1, 2] {
        assert_eq!(wrong(&mut client, n), invalid(missing()));
    }
    assert_eq!(client.compiled.load(Ordering::Relaxed), 3);
    // The first one was discarded, and takes the place of the next.
    assert_eq!(wrong(&mut client, 0), invalid(missing()));
    assert_eq!(wrong(&mut client, 1), invalid(missing()));
    assert_eq!(client.compiled.load(Ordering::Relaxed), 5);
    // Each of these counts as four tools: the third one forgets what was listed before it.
    let long = |name: &str| tool(name, json!({"type": "object", "required": ["a"], "title": "x".repeat(3 << 10)}));
    client.list(json!([long("x"), long("y"), long("z")]));
    for (name, is_known) in [("t7", false), ("x", false), ("y", true), ("z", true)] {
        assert_eq!(client.call(name, structured(json!({}))).0.is_some(), is_known, "{name}");
    }
}
