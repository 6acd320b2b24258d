//! The level of log messages, in both eras, and the messages themselves.

use super::http::Http;
use super::watching::{announcing, greet};
use super::*;
use crate::model::logging::{LogLevel, LogMessage};

const KEY: &str = "io.modelcontextprotocol/logLevel";

fn client(version: ProtocolVersion, level: Option<LogLevel>) -> Rig {
    let mut config = ClientConfig { log_level: level, ..ClientConfig::program(Program::new("s")) };
    config.versions = Versions::new([version]);
    let mut rig = Rig::new(config);
    greet(&mut rig, version.as_str(), &announcing());
    rig
}

fn legacy(level: Option<LogLevel>) -> Rig {
    client(ProtocolVersion::V2025_11_25, level)
}

fn set(rig: &mut Rig, level: Option<LogLevel>) {
    rig.client.log_level(rig.now, level);
    rig.drain();
}

/// Returns the levels that were sent to the server.
fn levels(rig: &Rig) -> Vec<&str> {
    let level = |message: &'_ Value| message["method"] == "logging/setLevel";
    rig.sent.iter().filter(|message| level(message)).filter_map(|message| message["params"]["level"].as_str()).collect()
}

fn log(level: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": "d", "logger": "l", "x": 1}})
}

fn logged(rig: &Rig) -> Vec<(Option<CallId>, &LogMessage)> {
    rig.events
        .iter()
        .filter_map(|event| if let Event::Log { call, message } = event { Some((*call, message)) } else { None })
        .collect()
}

// covers: LOG-C-002, X-17
#[test]
fn older_server_gets_the_level_of_the_session() {
    let mut rig = legacy(Some(LogLevel::Warning));
    assert_eq!(rig.methods(), ["initialize", "notifications/initialized", "logging/setLevel"]);
    // One at a time: two could arrive in any order.
    set(&mut rig, Some(LogLevel::Debug));
    set(&mut rig, Some(LogLevel::Error));
    assert_eq!(levels(&rig), ["warning"]);
    let id = rig.last_id();
    rig.answer(&id, json!({}));
    assert_eq!(levels(&rig), ["warning", "error"]);
    let id = rig.last_id();
    rig.answer(&id, json!({}));
    set(&mut rig, Some(LogLevel::Error));
    set(&mut rig, None);
    assert_eq!(levels(&rig), ["warning", "error"], "no revision has a way to unset it");
    set(&mut rig, Some(LogLevel::Error));
    assert_eq!(levels(&rig), ["warning", "error", "error"]);
    let id = rig.last_id();
    rig.answer(&id, json!({}));
    assert_eq!(rig.client.running(), 0);
}

// covers: LOG-C-002
#[test]
fn level_is_not_sent_to_a_server_without_logging() {
    let mut config = ClientConfig { log_level: Some(LogLevel::Error), ..ClientConfig::given() };
    config.versions = Versions::new([ProtocolVersion::V2025_11_25]);
    let mut rig = Rig::new(config);
    greet(&mut rig, "2025-11-25", &json!({"tools": {}}));
    assert_eq!(levels(&rig), [""; 0]);
    // It sends messages nevertheless: the client drops those below the level.
    rig.say(log("warning"));
    rig.say(log("error"));
    assert_eq!(logged(&rig).len(), 1);
}

// covers: LOG-C-002, LOG-S-003, X-17
#[test]
fn client_drops_what_an_older_server_sends_below_the_level() {
    let mut rig = legacy(None);
    // Before the first level the server decides.
    rig.say(log("debug"));
    assert_eq!(logged(&rig).len(), 1);
    let (call, message) = logged(&rig)[0];
    assert_eq!((call, message.level, message.logger.as_deref()), (None, LogLevel::Debug, Some("l")));
    assert_eq!((message.data.clone(), message.other.get("x").unwrap().as_str()), ("d".into(), "1"));
    rig.clear();
    set(&mut rig, Some(LogLevel::Error));
    let id = rig.last_id();
    // It need not know the levels, or has not read the request.
    for level in ["warning", "error", "emergency"] {
        rig.say(log(level));
    }
    assert_eq!(logged(&rig).len(), 2);
    rig.say(error(&id, -32602));
    assert_eq!(rig.diagnostics(), [DiagnosticKind::LevelRefused]);
    rig.say(log("warning"));
    assert_eq!(logged(&rig).len(), 2);
    set(&mut rig, None);
    rig.say(log("emergency"));
    assert_eq!(logged(&rig).len(), 2, "the application wants none");
}

// covers: LOG-S-006, LOG-S-007, X-17
#[test]
fn modern_request_names_its_own_level() {
    let level_of = |rig: &Rig| rig.sent.last().unwrap()["params"]["_meta"][KEY].clone();
    let mut config = ClientConfig { log_level: Some(LogLevel::Notice), ..ClientConfig::given() };
    config.watch = Watch::new().with_tools();
    config.versions = Versions::new([ProtocolVersion::V2026_07_28]);
    let mut rig = Rig::new(config);
    greet(&mut rig, "2026-07-28", &announcing());
    let named: Vec<_> = rig.sent.iter().map(|sent| (sent["method"].as_str(), &sent["params"]["_meta"][KEY])).collect();
    let expected = [(Some("server/discover"), &json!("notice")), (Some("subscriptions/listen"), &json!(null))];
    assert_eq!(named, expected);
    rig.echo();
    assert_eq!(level_of(&rig), "notice");
    rig.call(tools::call("echo").log_level(LogLevel::Debug));
    assert_eq!(level_of(&rig), "debug");
    rig.call(ping());
    assert_eq!(level_of(&rig), "notice");
    set(&mut rig, None);
    rig.echo();
    assert_eq!(level_of(&rig), json!(null));
    rig.call(tools::call("echo").log_level(LogLevel::Error));
    assert_eq!(level_of(&rig), "error");
    assert_eq!(levels(&rig), [""; 0], "the request does not exist there");
    // The level of the application is no level of the engine's own.
    rig.call(custom::<Value>("acme/x", &json!({"_meta": {KEY: "info"}})));
    assert_eq!(level_of(&rig), "info");
    // No revision before has it.
    let mut rig = legacy(None);
    rig.call(tools::call("echo").log_level(LogLevel::Debug));
    assert_eq!(rig.sent.last().unwrap()["params"]["_meta"], json!(null));
}

// covers: LOG-S-007
#[test]
fn message_on_the_stream_of_a_call_names_it() {
    let mut http = Http::ready();
    let call = http.rig.echo();
    let (exchange, _) = http.last();
    http.stream(exchange);
    http.event(exchange, &log("info"));
    assert_eq!(logged(&http.rig)[0].0, Some(call));
    // On a duplex connection nothing does.
    let mut rig = Rig::modern();
    rig.echo();
    rig.say(log("info"));
    assert_eq!(logged(&rig)[0].0, None);
}

#[test]
fn malformed_message_is_a_diagnostic() {
    for params in [json!({}), json!({"level": "trace", "data": 1}), json!({"level": 1, "data": 1})] {
        for mut rig in [Rig::modern(), Rig::legacy()] {
            rig.say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
            assert_eq!((logged(&rig).len(), rig.diagnostics()), (0, vec![DiagnosticKind::BadParams]), "{params}");
        }
    }
    // What is missing and not needed is no reason to drop it.
    let mut rig = Rig::legacy();
    rig.say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "logger": 7}}));
    assert_eq!(logged(&rig)[0].1, &LogMessage::new(LogLevel::Info, RawJson::null()));
}

// covers: RSUB-C-004
#[test]
fn changed_roots_are_announced_where_the_revision_has_that() {
    for version in ProtocolVersion::ALL {
        for declared in [true, false] {
            let mut config = ClientConfig::given();
            config.capabilities.roots.get_or_insert_default().list_changed = declared;
            config.versions = Versions::new([version]);
            let mut rig = Rig::new(config);
            rig.client.roots_changed(rig.now).unwrap();
            rig.drain();
            assert!(!rig.methods().contains(&"notifications/roots/list_changed"));
            greet(&mut rig, version.as_str(), &announcing());
            rig.clear();
            rig.client.roots_changed(rig.now).unwrap();
            rig.drain();
            let announces = declared && version != ProtocolVersion::V2026_07_28;
            let expected: &[&str] = if announces { &["notifications/roots/list_changed"] } else { &[] };
            assert_eq!(rig.methods(), expected, "{version:?}");
            rig.client.close(rig.now);
            assert_eq!(rig.client.roots_changed(rig.now).unwrap_err().why, Refusal::Closed);
        }
    }
}
