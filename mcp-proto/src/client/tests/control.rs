//! Objects on a duplex connection that are no JSON-RPC messages.

use super::*;

// covers: S3-02, R-17
#[test]
fn listed_objects_on_a_duplex_connection_reach_the_application() {
    let mut config = ClientConfig::given();
    config.control = ["content", "error"].map(String::from).into();
    let mut rig = Rig::ready(ProtocolVersion::V2025_11_25, config);
    let call = rig.echo();
    let id = rig.last_id();
    for line in [
        json!({"type": "content", "content": "part"}),
        json!({"type": "other"}),
        json!({"type": ["content"]}),
        json!({"kind": "content"}),
        json!({"jsonrpc": "2.0", "type": "content"}),
        json!({"type": "error", "error": "no"}),
    ] {
        rig.say(line);
    }
    assert!(!rig.has_ended(call));
    rig.answer(&id, json!({"content": []}));
    assert!(rig.outcome(call).is_ok());
    let seen: Vec<(String, Value)> = rig
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Control(control) => {
                assert_eq!((control.stream, &control.id), (None, &None));
                Some((control.event.clone(), serde_json::from_slice(&control.data).unwrap()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("content".into(), json!({"type": "content", "content": "part"})),
            ("error".into(), json!({"type": "error", "error": "no"})),
        ]
    );
    assert_eq!(rig.diagnostics(), [DiagnosticKind::BadMessage; 4]);
    // Without a list, each of them is a bad message.
    let mut rig = Rig::legacy();
    rig.say(json!({"type": "content"}));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::BadMessage]);
}
