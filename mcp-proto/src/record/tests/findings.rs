//! A client whose validator rejects results, recorded and replayed.

use super::*;
use crate::client::{ClientCommands, ResultValidation};
use crate::model::tools;
use crate::schema::{BadSchema, Checker, Mismatch, Validator};
use alloc::format;

/// Must not be in a redacted recording: a part of what the validator says about a result.
const SECRET: &str = "hunter2";

/// Rejects every second value, which a function of the value alone could not do, and one schema.
fn validator() -> Validator {
    let asked = Arc::new(core::sync::atomic::AtomicUsize::new(0));
    Validator::new(move |schema: &RawJson| {
        if schema.as_str().contains("broken") {
            return Err(BadSchema::invalid("/x", SECRET));
        }
        let asked = asked.clone();
        Ok(Checker::new(move |_: &RawJson| {
            match asked.fetch_add(1, core::sync::atomic::Ordering::Relaxed).is_multiple_of(2) {
                true => Ok(()),
                false => Err(Mismatch::new("/y", SECRET)),
            }
        }))
    })
}

/// A validator is a value of the application: what it finds wrong is recorded, and the replay does
/// not call it.
#[test]
fn findings_of_a_validator_are_replayed() {
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        for validation in [ResultValidation::report, ResultValidation::reject] {
            let mut config = ClientConfig::given();
            (config.policy, config.validate) = (Policy::Legacy, Some(validation(validator())));
            let (recorder, kept) = recorder(redaction);
            let mut client = recorder.client(Arc::new(config), SEED, Instant::ZERO);
            let read_text = |client: &mut WiredClient, text: String| {
                client.handle_io(Instant::ZERO, ConnectionId(1), IoEvent::Read(text.into()));
                drain(client);
            };
            client.handle_io(Instant::ZERO, ConnectionId(1), IoEvent::Opened(Peer::default()));
            read_text(&mut client, String::from_utf8(HELLO.to_vec()).unwrap());
            client.call(Instant::ZERO, tools::list()).unwrap();
            let tool = |name: &str| {
                format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"outputSchema":{{"title":"{name}"}}}}"#)
            };
            let result = |id: u64, result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
            read_text(&mut client, result(2, &format!(r#"{{"tools":[{},{}]}}"#, tool("broken"), tool("fine"))));
            for (at, name) in ["fine", "broken", "fine", "fine", "fine"].into_iter().enumerate() {
                client.call(Instant::ZERO, tools::call(name)).unwrap();
                drain(&mut client);
                read_text(&mut client, result(at as u64 + 3, r#"{"content":[],"structuredContent":{}}"#));
            }
            let file = kept.lock().unwrap().clone();
            let text = String::from_utf8(file.clone()).unwrap();
            assert_eq!(text.matches("{\"Note\":{\"Found\":").count(), 3, "{text}");
            assert_eq!(text.contains(SECRET), redaction == Redaction::Raw, "{text}");
            Recording::read(&file).unwrap().replay().unwrap();
            let without: String =
                text.split_inclusive('\n').filter(|line| !line.starts_with("{\"Note\":{\"Found\":")).collect();
            assert!(Recording::read(without.as_bytes()).unwrap().replay().is_err());
        }
    }
}
