//! Servers that deviate from the specification in ways that were reported in public, as programs
//! and over HTTP: what can be used is used, and a diagnostic names the rest.

use super::*;
use mcp_proto::ClientConfig;
use mcp_proto::client::Policy;
use mcp_supervisor::{Cause, Freshness, ListKind};
use mcp_tests::stub::{Ask, Stub, json, whole};
use std::collections::BTreeMap;

const TOOL: &str = r#"{"name":"echo","inputSchema":{"type":"object"}}"#;

/// The whole message with which the server answers each method, with `{id}` for the id.
#[derive(Clone)]
struct Deviating(BTreeMap<&'static str, String>);

impl Deviating {
    fn new() -> Self {
        let info = r#""serverInfo":{"name":"stub","version":"1"}"#;
        let initialized =
            |capabilities| format!(r#"{{"protocolVersion":"2025-06-18","capabilities":{capabilities},{info}}}"#);
        Self(BTreeMap::new())
            .result("initialize", &initialized(r#"{"tools":{}}"#))
            .result("tools/list", &format!(r#"{{"tools":[{TOOL}]}}"#))
            .result("tools/call", r#"{"content":[{"type":"text","text":"ok"}]}"#)
    }

    fn result(self, method: &'static str, result: &str) -> Self {
        self.message(method, &format!(r#""result":{result}"#))
    }

    fn message(mut self, method: &'static str, members: &str) -> Self {
        self.0.insert(method, format!(r#"{{"jsonrpc":"2.0","id":{{id}},{members}}}"#));
        self
    }

    /// The server as a program.
    fn program(&self) -> Program {
        let id = r#"id=${line#*'"id":'}; id=${id%%[,\}]*}"#;
        let say = |answer: &str| format!("{id}; echo '{}' ;;\n", answer.replace("{id}", "'$id'"));
        let case = |(method, answer): (&&str, &String)| format!("*'\"{method}\"'*) {}", say(answer));
        let cases: String = self.0.iter().map(case).collect();
        let unknown = say(UNKNOWN);
        sh(&format!("while read -r line; do case $line in\n{cases}*'\"id\":'*) {unknown}esac; done"))
    }

    /// The server over HTTP.
    fn stub(&self) -> Stub {
        let answers = self.0.clone();
        let script = move |ask: &Ask| match ask.what.split(' ').next().unwrap_or_default() {
            "open" => Vec::new(),
            "GET" => vec![whole("405 Method Not Allowed", "Allow: POST\r\n", "")],
            _ if ask.body.get("id").is_none() => vec![whole("202 Accepted", "", "")],
            method => vec![json(answers.get(method).map_or(UNKNOWN, String::as_str).to_owned())],
        };
        Stub::start(script).expect("listens")
    }

    /// Runs a test with a configuration for it, over each transport.
    fn over_each(&self, test: impl Fn(ClientConfig)) {
        let _limit = limit();
        let stub = self.stub();
        for mut config in [ClientConfig::program(self.program()), ClientConfig::url(&stub.url()).expect("a url")] {
            config.policy = Policy::Legacy;
            config.timeout = Some(BOUND);
            test(config);
        }
    }

    /// Runs a test with a client of it, over each transport. These are its diagnostics.
    fn client(&self, diagnostics: &[&str], test: impl Fn(&Client)) {
        self.over_each(|config| {
            let (options, events) = told(ClientOptions::new().stderr(Stderr::Discard));
            let client = connect_with(Target::new(config), options).wait().expect("connected");
            test(&client);
            let codes: Vec<_> = codes(client, &events).into_iter().filter(|code| *code != "listener-off").collect();
            assert_eq!(codes, diagnostics);
        });
    }
}

const UNKNOWN: &str = r#"{"jsonrpc":"2.0","id":{id},"error":{"code":-32601,"message":"Method not found"}}"#;

#[test]
fn one_broken_tool_does_not_cost_the_others() {
    let broken = r#"{"name":"broken"}"#;
    let odd = r#"{"name":"odd","inputSchema":{"type":"object"},"icons":[{"sizes":["any"]}]}"#;
    let server = Deviating::new().result("tools/list", &format!(r#"{{"tools":[{broken},{TOOL},{odd}]}}"#));
    server.client(&["invalid-element", "invalid-element"], |client| {
        let names: Vec<_> = tools_of(client).into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["echo"]);
        assert_eq!(text(call(client, "echo")), "ok");
    });
}

#[test]
fn broken_block_does_not_cost_the_result() {
    let blocks = r#"{"content":[{"type":"text"},{"type":"text","text":"done"},7]}"#;
    let server = Deviating::new().result("tools/call", blocks);
    server.client(&["invalid-element", "invalid-element"], |client| {
        let result = call(client, "echo").expect("a result");
        assert_eq!((result.content.len(), result.first_text()), (3, Some("done")));
    });
}

#[test]
fn nulls_for_absent_members_are_absent() {
    let mut server = Deviating::new();
    for answer in server.0.values_mut() {
        let end = answer.len() - 1;
        answer.insert_str(end, r#","error":null"#);
    }
    server.client(&["deviation"], |client| {
        assert_eq!(tools_of(client).len(), 1);
        assert_eq!(text(call(client, "echo")), "ok");
    });
    let refused =
        Deviating::new().message("tools/call", r#""method":null,"result":null,"error":{"code":-5,"message":"no"}"#);
    refused.client(&["deviation"], |client| {
        assert!(matches!(call(client, "echo"), Err(CallError::Rpc(error)) if error.code == -5));
    });
}

#[test]
fn malformed_error_is_shown() {
    let server = Deviating::new().message("tools/call", r#""error":"out of memory""#);
    server.client(&["bad-message"], |client| {
        let error = call(client, "echo").expect_err("an error").to_string();
        assert!(error.ends_with("out of memory"), "{error}");
    });
}

#[test]
fn server_without_a_version_is_connected() {
    for (capabilities, info) in [
        (r#"{"tools":{}}"#, r#"{"name":"stub"}"#),
        (r#"{"tools":{}}"#, r#"{"name":"stub","version":3}"#),
        (r#"{"tools":[]}"#, r#"{"name":"stub","version":"1"}"#),
    ] {
        let result = format!(r#"{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"serverInfo":{info}}}"#);
        Deviating::new().result("initialize", &result).client(&["deviation"], |client| {
            assert_eq!(tools_of(client).len(), 1);
        });
    }
}

/// A supervisor says which list it cannot load, and does not ask for one that is not there.
#[test]
fn supervisor_tells_of_lists_and_elements() {
    let offers = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"prompts":{}}}"#;
    let server = Deviating::new()
        .result("initialize", offers)
        .result("tools/list", &format!(r#"{{"tools":[{TOOL},{{"name":"broken"}}]}}"#))
        .result("resources/list", r#"{"resources":[{"uri":"x://1","name":"one"}]}"#)
        .result("prompts/list", r#"{"prompts":7}"#);
    server.over_each(|config| {
        let (tell, events) = mpsc::channel();
        let options = SupervisorOptions::new().clients(|_| ClientOptions::new().stderr(Stderr::Discard));
        let supervisor = supervise(options.on_event(move |event| drop(tell.send(event)))).expect("a supervisor");
        supervisor.add("a", ServerSpec::new(config)).expect("a new key");
        settle(&supervisor);
        let health = supervisor.health("a").expect("a server");
        assert!(matches!(&health.cause, Some(Cause::NotListed(fault)) if fault.list == ListKind::Prompts));
        let skipped: Vec<_> = health.lists.iter().map(|list| list.skipped.len()).collect();
        assert_eq!(skipped, [1, 0, 0, 0]);
        assert_eq!(health.lists[0].skipped.named()[0].name.as_deref(), Some("broken"));
        let fresh = |list| supervisor.freshness("a", list);
        assert_eq!((fresh(ListKind::Tools), fresh(ListKind::Prompts)), (Freshness::Fresh, Freshness::Unknown));
        assert_eq!(fresh(ListKind::ResourceTemplates), Freshness::Fresh, "there are none");
        let names = supervisor.catalogue("a").tools.unwrap_or_default();
        assert_eq!(names.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["echo"]);
        assert_eq!(supervisor.close().wait(), 0);
        drop(supervisor);
        let faults: Vec<_> = all(&events)
            .into_iter()
            .filter_map(
                |event| if let SupervisorEvent::NotListed { fault, .. } = event { Some(fault.list) } else { None },
            )
            .collect();
        assert_eq!(faults, [ListKind::Prompts]);
    });
}
