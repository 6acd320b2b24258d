//! Tests of the programs of the conformance suite: their start and end, and their answers.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{self, Command};
use std::time::{Duration, Instant};
use std::{env, fs};

use mcp_proto::rpc::Object;
use mcp_proto::{ElicitResult, Form, Handler, Outcome, RawJson};
use mcp_tests::conformance::client::fill;
use mcp_tests::conformance::refusing;
use mcp_tests::conformance::server::{Options, Over, router, tools};
use mcp_tests::conformance::started::Started;
use mcp_tests::conformance::suite::{results, wait};
use serde_json::{Value, json};

#[test]
fn refusing_server_refuses_every_request() {
    let server = refusing::serve().expect("loopback");
    let url = server.url();
    let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).expect("of this form");
    for body in [r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#, ""] {
        let mut connection = TcpStream::connect(address).expect("it listens");
        let head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n", body.len());
        connection.write_all((head + body).as_bytes()).expect("it reads");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("it answers and closes");
        let (head, answer) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
        let answer: Value = serde_json::from_str(answer).expect("JSON");
        assert_eq!(answer["error"]["code"], -32601);
        assert_eq!(answer["id"], if body.is_empty() { Value::Null } else { json!(7) });
    }
}

#[test]
fn program_that_does_not_listen_is_not_a_server() {
    let log = || env::temp_dir().join(format!("mcp-conformance-{}.log", process::id()));
    let why = Started::start(Path::new("true"), &[], log()).expect_err("it ends at once");
    assert!(why.contains("does not listen"), "{why}");
    let why = Started::start(Path::new("echo"), &[], log()).expect_err("it says something else");
    assert!(why.contains("it says"), "{why}");
    fs::remove_file(log()).expect("both wrote there");
}

#[test]
fn form_is_filled_with_defaults_and_entered_values() {
    let schema = json!({ "type": "object", "properties": {
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive"], "default": "active" },
        "confirmed": { "type": "boolean" },
        "empty": { "type": "string" },
    } });
    let question = Form::with_schema("?", RawJson::parse(schema.to_string()).expect("JSON"));
    let filled = fill(&json!({ "confirmed": true, "age": 31, "another": 1 }), &question);
    let ElicitResult::Accept(_) = filled else { panic!("{filled:?}") };
    let content: Value = filled.content().expect("an object").expect("accepted");
    assert_eq!(content, json!({ "age": 31, "score": 95.5, "status": "active", "confirmed": true }));
}

#[test]
fn hanging_run_is_ended() {
    let began = Instant::now();
    let status = wait(Command::new("sleep").arg("60"), Duration::from_millis(20)).expect("there is `sleep`");
    assert_eq!(status, None);
    assert!(began.elapsed() < Duration::from_secs(30));
    let status = wait(&mut Command::new("true"), Duration::from_secs(30)).expect("there is `true`");
    assert!(status.is_some_and(|status| status.success()));
}

#[test]
fn results_are_found_by_the_name_of_their_scenario() {
    let into = env::temp_dir().join(format!("mcp-conformance-results-{}", process::id()));
    for folder in ["auth/iss-supported-2026-11-29T06-00-00-123Z", "server-ping-2026-11-29T06-00-01-000Z", "auth/other"]
    {
        fs::create_dir_all(into.join(folder)).expect("it can be created");
    }
    fs::write(into.join("summary.json"), "{}").expect("it can be written");
    let mut found = results(&into, "server-").expect("it can be read");
    found.sort();
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["auth/iss-supported", "ping"]);
    assert!(found[0].1.ends_with("auth/iss-supported-2026-11-29T06-00-00-123Z"), "{found:?}");
    fs::remove_dir_all(&into).expect("it is there");
}

#[test]
fn program_gets_its_address() {
    let read = |words: &str| Options::read(words.split(' ').filter(|word| !word.is_empty()).map(str::to_owned));
    let http = || Over::Http("127.0.0.1:0".to_owned());
    assert_eq!(read("--http 127.0.0.1:0"), Some(Options { over: http(), verbose: false }));
    assert_eq!(read("--verbose --http 127.0.0.1:0"), Some(Options { over: http(), verbose: true }));
    assert_eq!(read("--stdio"), Some(Options { over: Over::Stdio, verbose: false }));
    for wrong in ["", "--http", "--verbose", "--stdio --http 127.0.0.1:0", "--other", "--stdio x"] {
        assert_eq!(read(wrong), None, "{wrong:?}");
    }
}

#[test]
fn every_tool_is_described_on_the_first_page() {
    let all = tools::all();
    let names: BTreeSet<&str> = all.iter().map(|fixture| fixture.tool.name.as_str()).collect();
    assert_eq!(names.len(), all.len(), "each once");
    assert!(all.iter().all(|fixture| fixture.tool.description.as_ref().is_some_and(|text| !text.is_empty())));
    assert_eq!(all[0].tool.required_arguments(), Vec::<String>::new(), "the first can be called without arguments");
    let router = router(|_, _| Handler::inline(|_| Outcome::internal("unused")));
    let config = router.config();
    assert!(all.len() <= config.limits.server.page_size);
    let declared = config.capabilities.tools.expect("tools are declared");
    assert!(declared.list_changed);
}

#[test]
fn a_property_of_one_tool_is_also_in_a_header() {
    let mut found = Vec::new();
    for fixture in tools::all() {
        let schema = Object::read(&fixture.tool.input_schema).expect("an object");
        let properties = schema.optional_object("properties").expect("an object, if any").unwrap_or_default();
        for (name, property) in properties.iter() {
            let property = Object::read(&property).expect("an object");
            if property.get("x-mcp-header").is_some() {
                found.push((
                    fixture.tool.name.clone(),
                    name.into_owned(),
                    property.required::<String>("type").expect("typed"),
                ));
            }
        }
    }
    assert_eq!(found, [("test_custom_header".to_owned(), "value".to_owned(), "string".to_owned())]);
}
