//! The notifications that a handler may send for its request.

use super::*;
use crate::LogLevel;
use crate::model::capabilities::ServerCapabilities;
use crate::model::logging::LogMessage;

const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// A server that declares these capabilities, and its client of one revision.
struct Talking {
    bench: Bench,
    version: &'static str,
}

impl Talking {
    fn new(version: &'static str, declared: &str) -> Self {
        let declared = object(declared);
        let bench = Bench::with(|config| config.capabilities = ServerCapabilities::read(declared));
        let bench = if version == "2026-07-28" { bench.open(A) } else { bench.initialized(A, version, "{}") };
        Self { bench, version }
    }

    /// Sends a notification on a new request. Returns the message to the client, or the reason of
    /// the refusal.
    fn send(&mut self, method: &str, params: &str) -> Result<Vec<String>, Refusal> {
        self.note(None, Note::Custom(method.into(), object(params)))
    }

    /// Like [`send`](Self::send), on a request with this `logLevel`.
    fn note(&mut self, level: Option<&str>, note: Note) -> Result<Vec<String>, Refusal> {
        let request = if self.version == "2026-07-28" { modern("7", "x/y", "") } else { legacy("7", "x/y", "{}") };
        let level = level.map(|level| format!(r#""_meta":{{"io.modelcontextprotocol/logLevel":{level},"#));
        let request = match &level {
            Some(level) => request.replace(r#""_meta":{"#, level),
            None => request,
        };
        let (responder, _) = self.bench.request(A, &request);
        let sent = self.bench.server.notify(self.bench.now, responder.key(), note.clone());
        let heard = self.bench.heard(A);
        self.bench.complete(responder, "{}");
        self.bench.outputs();
        match sent {
            Ok(()) => Ok(heard),
            Err(refused) => {
                assert_eq!((heard, refused.value), (Vec::new(), note), "a refusal changes nothing");
                Err(refused.why)
            }
        }
    }

    fn log(&mut self, asked: Option<&str>, level: &str) -> Result<Vec<String>, Refusal> {
        let asked = asked.map(|asked| format!("\"{asked}\""));
        self.note(asked.as_deref(), Note::Log(LogMessage::new(LogLevel::parse(level).unwrap(), "d")))
    }
}

const ALL: &str =
    r#"{"logging":{},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"tasks":{}}"#;

// covers: SUB-S-001, LOG-S-006, CANC-S-005, PROG-B-003, PROG-B-006
#[test]
fn notification_of_the_engine_is_refused() {
    let engine = [
        "notifications/progress",
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/roots/list_changed",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/subscriptions/acknowledged",
        "notifications/tasks",
        "notifications/message",
        "notifications/resources/updated",
        "notifications/elicitation/complete",
    ];
    for version in VERSIONS {
        let mut talking = Talking::new(version, ALL);
        for method in engine {
            let sent = talking.send(method, r#"{"level":"error","data":1}"#);
            assert_eq!(sent, Err(Refusal::NotWanted), "{version} {method}");
        }
    }
}

#[test]
fn notifications_pass_in_their_revisions() {
    // The method, the revisions that have it, and the capability that the server must declare.
    let rows: [(&str, &[&str], &str); 1] = [("notifications/tasks/status", &VERSIONS[3..4], r#"{"tasks":{}}"#)];
    for (method, versions, declared) in rows {
        for version in VERSIONS {
            let sent = Talking::new(version, declared).send(method, r#"{"a":1}"#);
            let line = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"a":1}}}}"#);
            let expected = if versions.contains(&version) { Ok(vec![line]) } else { Err(Refusal::NotWanted) };
            assert_eq!(sent, expected, "{version} {method}");
            for missing in ["{}", r#"{"resources":{}}"#, r#"{"resources":{"subscribe":false}}"#] {
                let sent = Talking::new(version, missing).send(method, "{}");
                assert_eq!(sent, Err(Refusal::NotWanted), "{version} {method} {missing}");
            }
        }
    }
    for version in VERSIONS {
        for method in ["x", "notifications/interop", "notifications/message/x", "acme/list_changed"] {
            assert!(Talking::new(version, "{}").send(method, "{}").is_ok(), "{version} {method}");
        }
    }
}

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

// covers: LOG-S-006, LOG-S-007
#[test]
fn modern_log_level_filters_per_request() {
    let mut talking = Talking::new("2026-07-28", r#"{"logging":{}}"#);
    for (at, asked) in LEVELS.iter().enumerate() {
        for (severity, level) in LEVELS.iter().enumerate() {
            let sent = talking.log(Some(asked), level);
            let line = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"d"}}}}"#
            );
            let expected = if severity >= at { Ok(vec![line]) } else { Err(Refusal::NotWanted) };
            assert_eq!(sent, expected, "{level} where {asked} was asked for");
        }
    }
    // The level is absent. The level of one request does not apply to the next one.
    assert_eq!(talking.log(None, "emergency"), Err(Refusal::NotWanted));
    // A server that does not declare that it logs sends nothing.
    assert_eq!(Talking::new("2026-07-28", "{}").log(Some("debug"), "emergency"), Err(Refusal::NotWanted));
}

// covers: LOG-S-001, LOG-S-003
#[test]
fn legacy_log_message_needs_the_logging_capability() {
    for version in &VERSIONS[..4] {
        for level in LEVELS {
            assert!(Talking::new(version, r#"{"logging":{}}"#).log(None, level).is_ok(), "{version} {level}");
            for undeclared in ["{}", r#"{"logging":null}"#, r#"{"logging":true}"#] {
                let sent = Talking::new(version, undeclared).log(None, level);
                assert_eq!(sent, Err(Refusal::NotWanted), "{version} {level} {undeclared}");
            }
        }
        // The field of the modern era has no meaning there.
        assert!(Talking::new(version, r#"{"logging":{}}"#).log(Some("emergency"), "debug").is_ok());
    }
}

// covers: LOG-S-004
#[test]
fn log_level_applies_to_its_connection() {
    let mut talking = Talking::new("2025-06-18", r#"{"logging":{}}"#);
    let set = |talking: &mut Talking, params: &str| {
        let said = talking.bench.say(A, &legacy("8", "logging/setLevel", params));
        said == [r#"{"jsonrpc":"2.0","id":8,"result":{}}"#]
    };
    assert!(set(&mut talking, r#"{"level":"warning"}"#));
    assert_eq!(talking.log(None, "notice"), Err(Refusal::NotWanted));
    assert!(talking.log(None, "warning").is_ok());
    // An invalid level changes nothing.
    assert!(!set(&mut talking, r#"{"level":"trace"}"#) && !set(&mut talking, "{}"));
    assert_eq!(talking.log(None, "notice"), Err(Refusal::NotWanted));
    assert!(set(&mut talking, r#"{"level":"debug"}"#));
    assert!(talking.log(None, "debug").is_ok());
    // Another connection has a level of its own.
    assert!(set(&mut talking, r#"{"level":"emergency"}"#));
    talking.bench = talking.bench.initialized(B, "2025-06-18", "{}");
    let (responder, _) = talking.bench.request(B, &legacy("7", "x/y", "{}"));
    let note = Note::Log(LogMessage::new(LogLevel::Info, "d"));
    talking.bench.server.notify(talking.bench.now, responder.key(), note).unwrap();
    assert_eq!(talking.bench.heard(B).len(), 1);
}
