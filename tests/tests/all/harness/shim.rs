//! Tests of shims: the documented lines, and the results of commands that are not carried out.

use std::time::Duration;

use mcp_driver::block_on;
use mcp_proto::limits::Limits;
use mcp_proto::route::BoxFuture;
use mcp_proto::server::{Hosts, ServerConfig, Sessions};
use mcp_proto::{CallError, ClientConfig, tools};
use mcp_tests::shim::{Driver, Line, Options, ToolCall, carry_out, check_output};
use serde_json::{Value, json};

/// The lines of the documentation after this mark.
fn documented(mark: &str) -> Vec<String> {
    let config = serde_json::to_string(&ClientConfig::url("http://127.0.0.1:1/mcp").expect("a URL")).expect("a form");
    let limits = serde_json::to_string(&Limits::default()).expect("a form");
    let lines = include_str!("../../../hostile.md").lines().filter_map(|line| line.strip_prefix(mark));
    let fill = |line: &str| {
        let line = line.replace(r#""config":{…}"#, &format!(r#""config":{config}"#));
        line.replace(r#""limits":{…}"#, &format!(r#""limits":{limits}"#))
    };
    lines.map(fill).collect()
}

#[test]
fn documented_lines_are_understood() {
    let (commands, outputs) = (documented("> "), documented("< "));
    assert!(commands.len() >= 10 && outputs.len() >= 20, "{} and {}", commands.len(), outputs.len());
    for line in commands {
        let read: Line = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let again: Value = serde_json::to_value(&read).expect("a form");
        assert_eq!(again, serde_json::from_str::<Value>(&line).expect("JSON"), "{line}");
    }
    for line in outputs {
        check_output(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let read: Value = serde_json::from_str(&line).expect("JSON");
        if let Some(error) = read.get("error") {
            serde_json::from_value::<CallError>(error.clone()).unwrap_or_else(|e| panic!("{line}: {e}"));
        }
    }
}

#[test]
fn calls_keep_their_options() {
    let call =
        || tools::call("echo").arguments(&json!({"text": "hi"})).timeout(Duration::from_millis(300)).repeatable();
    let read = ToolCall::of(call()).expect("it has a form").call();
    assert_eq!(read.into_raw(), call().into_raw());
    assert!(ToolCall::of(tools::call("echo").timeout(None)).is_none(), "it has no form");
}

#[test]
fn option_without_a_form_is_noticed() {
    let known = |config: &mut ServerConfig| {
        config.limits.server.max_sessions = 3;
        config.hosts = Hosts::Only(vec!["a".into()]);
        config.sessions = Sessions::Off;
    };
    assert!(Options::of(known, false).is_some());
    assert!(Options::of(|config| config.cors = true, false).is_none());
}

/// A driver without a role, with the defaults of both.
struct Neither;

impl Driver for Neither {
    const CLIENT: bool = false;
    const SERVER: bool = false;
    type Client = ();
    type Server = ();

    fn spawn(&self, task: BoxFuture<()>) {
        block_on(task);
    }
}

/// Returns the result of a command with such a driver.
fn done(command: Value) -> Value {
    let line: Line = serde_json::from_value(command).expect("it is a command");
    serde_json::from_str(&block_on(carry_out(Neither, line))).expect("JSON")
}

#[test]
fn role_that_is_off_is_not_offered() {
    let config = ClientConfig::given();
    let connect =
        json!({"id": 1, "do": "connect", "client": 1, "config": config, "stderr": "inherit", "events": false});
    let options = Options::of(|_| {}, false).expect("they have a form");
    let serve = json!({"id": 1, "do": "serve", "server": 2, "options": options});
    for (command, role) in [(connect, "a client"), (serve, "a server")] {
        assert_eq!(done(command), json!({"id": 1, "not_offered": role}), "{role}");
    }
}

#[test]
fn command_for_an_unknown_number_fails() {
    let done = done(json!({"id": 1, "do": "stats", "server": 7}));
    assert_eq!(done, json!({"id": 1, "error": "there is no number 7"}));
}
