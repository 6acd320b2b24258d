//! The dialect of bare calls: both engines joined, and each side against scripted bytes.

use super::*;
use crate::client::ClientCommands;
use crate::error::Refusal;
use crate::rpc::Object;
use crate::server::ServerCommands;
use serde_json::{Value, json};

fn bare() -> ClientConfig {
    let mut config = config(Policy::Auto);
    config.ws_dialect = WsDialect::BareTool;
    // The dialect has ids of its own.
    config.compat.ids = client::IdPolicy::Snowflake { node: 1 };
    config
}

fn serves_bare(config: &mut ServerConfig) {
    config.ws_dialect = WsDialect::BareTool;
}

impl ClientPeer {
    /// A client whose handshake the server has accepted.
    fn bare() -> Self {
        let (peer, head) = Self::opened(bare());
        assert!(!head.contains("sec-websocket-protocol"));
        peer
    }

    /// The same with this configuration, and the head of its handshake.
    fn opened(config: ClientConfig) -> (Self, String) {
        let mut peer = Self::new(config);
        let head = String::from_utf8(core::mem::take(&mut peer.written)).unwrap();
        assert!(!peer.is_ready());
        peer.read(
            format!(
                "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
                accept(&head)
            )
            .as_bytes(),
        );
        (peer, head.to_ascii_lowercase())
    }

    fn is_ready(&self) -> bool {
        self.events.iter().any(|event| matches!(event, client::Event::Ready(_)))
    }

    /// Sends a text of a server.
    fn say(&mut self, text: &Value) {
        let text = text.to_string();
        let mut frame = Vec::from([TEXT, u8::try_from(text.len()).unwrap()]);
        assert!(text.len() < 126);
        frame.extend_from_slice(text.as_bytes());
        self.read(&frame);
    }

    /// Returns the texts that the client has written, each in one small frame.
    fn texts(&mut self) -> Vec<Value> {
        let written = core::mem::take(&mut self.written);
        let (mut rest, mut texts) = (&written[..], Vec::new());
        while let [first, len, a, b, c, d, after @ ..] = rest {
            assert_eq!(*first, TEXT);
            let len = usize::from(len & 0x7f);
            let mask = [*a, *b, *c, *d];
            let text: Vec<u8> = after[..len].iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
            texts.push(serde_json::from_slice(&text).unwrap());
            rest = &after[len..];
        }
        assert!(rest.is_empty());
        texts
    }

    fn kinds(&self) -> Vec<DiagnosticKind> {
        let kind = |event: &client::Event| match event {
            client::Event::Diagnostic(diagnostic) => Some(diagnostic.kind),
            _ => None,
        };
        self.events.iter().filter_map(kind).collect()
    }

    fn outcomes(&self) -> Vec<Result<String, String>> {
        let outcome = |event: &client::Event| match event {
            client::Event::Ended { outcome: Ok(result), .. } => Some(Ok(result.json.as_str().to_string())),
            client::Event::Ended { outcome: Err(error), .. } => Some(Err(error.to_string())),
            _ => None,
        };
        self.events.iter().filter_map(outcome).collect()
    }
}

// covers: S2-33, S2-34, S2-35, S2-36, WS-B-001, WS-C-003
#[test]
fn conversation_of_bare_calls_is_independent_of_pieces() {
    let mut logs = Vec::new();
    for chunk in CHUNKS {
        let mut net = Net::between(bare(), server_config(serves_bare), chunk);
        net.call(tools::call("early"));
        net.rest();
        let slow = net.call(tools::call("slow"));
        net.call(tools::call("after"));
        net.rest();
        net.tell(Input::Command(ClientCommand::Cancel(slow.id(), None)));
        net.rest();
        let late = net.held.pop().expect("the slow call was handed out");
        net.answer(late, "too late");
        net.call(tools::call("last"));
        net.rest();
        net.tell(Input::Command(ClientCommand::Close));
        net.rest();
        net.check_replay();
        let mut log = net.log();
        log.sort();
        for line in
            ["ready 2026-07-28", "call 1 succeeded", "call 2: cancelled", "call 3 succeeded", "call 4 succeeded"]
        {
            assert!(log.iter().any(|told| told == line), "{line}: {log:?}");
        }
        // No message cancels a call: the server has answered it.
        let told: Vec<_> = log.iter().filter(|line| line.contains("diagnostic")).collect();
        assert_eq!(told, ["diagnostic late-answer"]);
        logs.push(log);
    }
    assert!(logs.windows(2).all(|pair| pair[0] == pair[1]));
}

// covers: S2-31, S2-32, S2-33, S2-35, S2-36, WS-C-002, WS-C-003, R-03
#[test]
fn call_is_an_object_with_a_number_that_counts() {
    let mut peer = ClientPeer::bare();
    assert!(peer.is_ready(), "with the connection");
    assert!(peer.texts().is_empty(), "without a word");
    let add = tools::call("add").arguments(&json!({"a": 1}));
    peer.client.call(peer.now, add).unwrap();
    peer.client.call(peer.now, tools::call("now")).unwrap();
    peer.drain();
    assert_eq!(peer.texts(), [json!({"id": 2, "name": "add", "arguments": {"a": 1}}), json!({"id": 3, "name": "now"})]);
    peer.say(&json!({"jsonrpc": "2.0", "id": 3, "result": {"content": []}}));
    peer.say(&json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": "no"}}));
    assert_eq!(peer.outcomes(), [Ok(r#"{"content":[]}"#.to_string()), Err("MCP error -32000: no".to_string())]);
    peer.say(&json!({"jsonrpc": "2.0", "id": 3, "result": {"content": []}}));
    assert_eq!(peer.outcomes().len(), 2);
    // The numbers of calls that have ended do not return.
    peer.client.call(peer.now, tools::call("now")).unwrap();
    peer.drain();
    assert_eq!(peer.texts(), [json!({"id": 4, "name": "now"})]);
}

// covers: S2-37, WS-C-004, R-15
#[test]
fn unknown_frames_of_a_server_are_ignored() {
    let mut peer = ClientPeer::bare();
    peer.client.call(peer.now, tools::call("now")).unwrap();
    peer.drain();
    peer.texts();
    for text in [
        json!({"type": "ping"}),
        json!({"jsonrpc": "2.0", "method": "notification"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 9, "result": {}}),
    ] {
        peer.say(&text);
    }
    assert!(peer.texts().is_empty(), "no answer is in the dialect");
    let kinds = [DiagnosticKind::BadMessage, DiagnosticKind::UnexpectedRequest, DiagnosticKind::UnknownId];
    assert_eq!(peer.kinds(), kinds);
    peer.say(&json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    assert_eq!(peer.outcomes(), [Ok("{}".to_string())]);
}

// covers: S2-37, WS-C-004, R-15
#[test]
fn ping_of_a_server_of_mcp_is_answered() {
    let (mut peer, head) = ClientPeer::opened(config(Policy::Legacy));
    assert!(head.contains("sec-websocket-protocol: mcp"));
    // A frame of `initialize` has an extended length.
    assert!(core::mem::take(&mut peer.written).len() > 126);
    peer.say(&json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}}));
    assert!(peer.is_ready());
    peer.texts();
    peer.say(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    assert_eq!(peer.texts(), [json!({"jsonrpc": "2.0", "id": "p", "result": {}})]);
}

// covers: S2-32, S2-36, S2-38, S2-41, WS-C-002, WS-C-003, WS-C-005
#[test]
fn loss_of_the_connection_ends_every_bare_call_once() {
    let mut peer = ClientPeer::bare();
    for _ in 0..3 {
        peer.client.call(peer.now, tools::call("now")).unwrap();
    }
    peer.drain();
    peer.client.handle_io(peer.now, peer.id, IoEvent::Closed(Closed::Reset));
    peer.drain();
    assert_eq!(peer.outcomes().len(), 3);
    assert!(peer.outcomes().iter().all(|outcome| outcome.as_ref().is_err_and(|error| error.contains("reset"))));
    let refused = peer.client.call(peer.now, tools::call("now")).unwrap_err();
    assert_eq!(refused.why, Refusal::Closed);
}

#[test]
fn connection_that_never_opens_fails_the_bare_client() {
    let mut peer = ClientPeer::new(bare());
    peer.client.call(peer.now, tools::call("now")).unwrap();
    peer.read(b"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n");
    assert!(!peer.is_ready());
    let outcomes = peer.outcomes();
    assert!(matches!(&outcomes[..], [Err(error)] if error.contains("404")), "{outcomes:?}");
    // So does one that takes too long. Nothing is left to try.
    for (limit, why) in [(20_000, "the connection timed out"), (1_000, "the start took longer than 1000 ms")] {
        let mut peer = ClientPeer::new(ClientConfig { connect_timeout: ms(limit), ..bare() });
        peer.client.call(peer.now, tools::call("now")).unwrap();
        peer.pass(ms(10_000));
        let outcomes = peer.outcomes();
        assert!(matches!(&outcomes[..], [Err(error)] if error.contains(why)), "{outcomes:?}");
        assert_eq!(peer.kinds(), []);
    }
    // Other requests are refused in every state.
    let mut peer = ClientPeer::bare();
    let refused = peer.client.call(peer.now, tools::list()).unwrap_err();
    assert_eq!(refused.why, Refusal::NotInDialect);
    peer.client.notify(peer.now, "x/y", Object::new()).unwrap_err();
}

// covers: WS-C-010, S0-45
#[test]
fn challenge_of_the_handshake_is_answered_for_bare_calls() {
    challenge_is_answered_once(bare());
}

// covers: WS-B-001, S2-33, S2-34, S2-39, S2-42
#[test]
fn server_reads_bare_calls_where_no_subprotocol_is_offered() {
    let mut peer = ServerPeer::server(server_config(serves_bare));
    peer.read(HELLO.as_bytes());
    assert!(!String::from_utf8_lossy(&peer.take()).contains("Sec-WebSocket-Protocol"));
    peer.read(&frame(TEXT, br#"{"id":"a","name":"t","arguments":{}}"#));
    let responder = peer.requests.pop().expect("a call");
    let result = Object::new().with("content", [].as_slice() as &[&str]);
    peer.server.respond(peer.now, responder.write(Outcome::Complete(result)));
    peer.drain();
    assert_eq!(&peer.take()[2..], br#"{"jsonrpc":"2.0","id":"a","result":{"content":[]}}"#);
    // Only a call with an id is one.
    for text in [&br#"{"name":"t"}"#[..], br#"{"id":null,"name":"t"}"#, br#"{"id":1}"#, b"{"] {
        peer.read(&frame(TEXT, text));
        assert!(peer.requests.is_empty(), "{text:?}");
    }
    peer.take();
    peer.read(&frame(TEXT, br#"{"id":2,"name":"t"}"#));
    assert_eq!(peer.requests.len(), 1);
    // A client that offers the subprotocol of MCP speaks MCP.
    let mut peer = ServerPeer::server(server_config(serves_bare));
    let hello = HELLO.replace("Upgrade: websocket\r\n", "Upgrade: websocket\r\nSec-WebSocket-Protocol: mcp\r\n");
    peer.read(hello.as_bytes());
    assert!(String::from_utf8_lossy(&peer.take()).contains("Sec-WebSocket-Protocol: mcp"));
    peer.read(&frame(TEXT, br#"{"id":1,"name":"t"}"#));
    assert!(peer.requests.is_empty());
    peer.read(&frame(TEXT, CALL));
    assert_eq!(peer.requests.len(), 1);
}

// covers: WS-B-001, S2-33, R-15
#[test]
fn server_reads_bare_calls_only_if_it_is_configured_to() {
    for offer in ["", "Sec-WebSocket-Protocol: mcp\r\n"] {
        let mut peer = ServerPeer::server(server_config(|_| {}));
        peer.read(HELLO.replace("Connection: ", &format!("{offer}Connection: ")).as_bytes());
        let client = json!({"name": "c", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        for message in [
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"id": 1, "name": "t"}),
        ] {
            peer.read(&frame(TEXT, message.to_string().as_bytes()));
        }
        assert!(peer.requests.is_empty(), "{offer}");
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}});
        peer.read(&frame(TEXT, call.to_string().as_bytes()));
        assert_eq!(peer.requests.len(), 1, "{offer}");
    }
}
