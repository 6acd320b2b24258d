//! Servers that share a store.

use super::*;
use mcp_proto::client::Policy;
use mcp_proto::input::{Change, Watch};
use mcp_proto::server::StateKeys;
use mcp_proto::{ElicitResult, Form, tool};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read};

fn node(store: &store::SharedMemory) -> Server {
    let router = Router::new("node", "1").tools_change().resources_change().configure(|config| {
        config.state_keys = Some(StateKeys::from([7; 32]));
    });
    let router = router.tool(tool("say"), |_cx, (): ()| Ok("said")).tool(tool("ask"), |cx, (): ()| {
        match cx.elicit("word", Form::new("Which word?").text("word"))? {
            ElicitResult::Accept(content) => Ok(content.required::<String>("word")?),
            ElicitResult::Decline | ElicitResult::Cancel => Ok("none".to_owned()),
        }
    });
    raw::listening(router, ServerOptions::new().store(store.clone()))
}

// covers: SUB-S-015
#[test]
fn client_of_one_server_learns_what_changes_at_another() {
    let _limit = limit();
    let store = store::SharedMemory::new();
    let (first, second) = (node(&store), node(&store));
    until(|| [&first, &second].iter().all(|server| server.stats().store.is_member));
    for policy in [Policy::Modern, Policy::Legacy] {
        let url = format!("http://{}/mcp", second.local_addr().expect("an address"));
        let (config, told) = told(ClientOptions::new().set(move |config| config.policy = policy));
        let client = connect_with(url, config).wait().expect("connected");
        let next = |wanted: ClientEvent| {
            while told.recv_timeout(BOUND).expect("an event") != wanted {}
        };
        let watch = Watch::new().with_tools().with_resources();
        let watcher = client.watch(watch.clone()).expect("it is open");
        next(ClientEvent::Watching(watch));
        first.update(|router| router.tool(tool("new"), |_cx, (): ()| Ok("new"))).expect("it offers more");
        next(ClientEvent::Changed(Change::Tools));
        first.update(|router| router.without_tool("new")).expect("it offers less");
        next(ClientEvent::Changed(Change::Tools));
        drop(watcher);
        client.close().wait();
    }
    // A server that ends is no member any more, and the other one goes on.
    stop(&first, Duration::ZERO);
    until(|| store.members() == 1);
    stop(&second, Duration::ZERO);
}

/// Sends a request over a connection of its own. Returns the head of the response, and its message.
fn ask(server: &Server, fields: &str, body: &Value) -> (String, Value) {
    let (mut stream, body) = (raw::dial(server), body.to_string());
    let length = body.len();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let accept = "Accept: application/json, text/event-stream\r\n";
    raw::say(&mut stream, &format!("{head}{accept}{fields}Content-Length: {length}\r\n\r\n{body}"));
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), serde_json::from_str(body).unwrap_or(Value::Null))
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

// A load balancer sends each request to the next server.
#[test]
fn twenty_of_twenty_calls_are_answered_in_each_era() {
    let _limit = limit();
    let store = store::SharedMemory::new();
    let servers = [node(&store), node(&store)];
    until(|| servers.iter().all(|server| server.stats().store.is_member));
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let (head, _) = ask(&servers[0], "", &body);
    let is_session = |line: &&str| line.to_lowercase().starts_with("mcp-session-id:");
    let session = head.lines().find(is_session).expect("a session");
    let session = format!("{session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    for nth in 0..20 {
        let body =
            json!({"jsonrpc": "2.0", "id": nth, "method": "tools/call", "params": {"name": "say", "arguments": {}}});
        let (head, message) = ask(&servers[nth % 2], &session, &body);
        assert_eq!(text(&message), "said", "call {nth}: {head}");
    }
    let fields = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ask\r\n";
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    for nth in 0..10 {
        let call = |more: Value| {
            let mut params = json!({"name": "ask", "arguments": {}, "_meta": meta});
            more.as_object().into_iter().flatten().for_each(|(key, value)| params[key] = value.clone());
            json!({"jsonrpc": "2.0", "id": nth, "method": "tools/call", "params": params})
        };
        let (head, asked) = ask(&servers[nth % 2], fields, &call(json!({})));
        assert_eq!(asked["result"]["resultType"], "input_required", "question {nth}: {head}");
        let answers = json!({"word": {"action": "accept", "content": {"word": "good"}}});
        let retry = json!({"requestState": asked["result"]["requestState"], "inputResponses": answers});
        let (head, message) = ask(&servers[(nth + 1) % 2], fields, &call(retry));
        assert_eq!(text(&message), "good", "question {nth}: {head}");
    }
    servers.iter().for_each(|server| stop(server, Duration::ZERO));
}

#[test]
fn server_without_keys_does_not_start_with_a_store() {
    let _limit = limit();
    let options = ServerOptions::new().store(store::SharedMemory::new());
    let refused = serve_http((Router::new("node", "1"), options), "127.0.0.1:0").wait().expect_err("it needs keys");
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}
