//! The message hook over both engines and their connections: the messages it sees, and the effects
//! of a refusal.

use super::net::Net;
use crate::client::{ClientCommands, ClientConfig, Policy, Termination};
use crate::error::{NegotiationCause, NegotiationError, Stage};
use crate::exchange::*;
use crate::hook::{Denial, Direction, MessageHook, MessageKind, Ruling, WireMessage};
use crate::input::*;
use crate::model::lifecycle::Implementation;
use crate::model::tools;
use crate::rpc::Object;
use crate::server::{ServerCommands, ServerConfig};
use crate::wired::WiredClient;
use crate::wired::{Kind, WiredServer};
use crate::{Instant, Limits};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use std::sync::Mutex;

/// The messages that a hook saw, such as `< request tools/call`.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn take(&self) -> Vec<String> {
        core::mem::take(&mut self.0.lock().unwrap())
    }

    /// Returns a hook that records its messages and refuses one of them.
    fn hook(&self, refused: &'static str) -> Option<MessageHook> {
        let seen = self.clone();
        Some(MessageHook::new(move |message| {
            let line = line(message);
            seen.0.lock().unwrap().push(line.clone());
            if line == refused { Err(Denial::new("not today")) } else { Ok(()) }
        }))
    }
}

fn line(message: &WireMessage<'_>) -> String {
    let direction = if message.direction() == Direction::In { "<" } else { ">" };
    let kind = match message.kind() {
        MessageKind::Request => "request",
        MessageKind::Notification => "notification",
        MessageKind::Response => "response",
        MessageKind::Error => "error",
    };
    assert_eq!(message.size(), message.raw().len());
    assert_eq!(message.size(), message.text().len());
    match (message.method(), message.id()) {
        (Some(method), id) => format!("{direction} {kind} {method}{}", if id.is_some() { "" } else { " -" }),
        (None, id) => format!("{direction} {kind} {}", id.expect("it has an id")),
    }
}

/// Targets: lines in both eras, and HTTP if its feature is enabled.
fn targets() -> Vec<(&'static str, ClientConfig)> {
    let lines = |policy| ClientConfig { policy, ..ClientConfig::given() };
    Vec::from([
        ("legacy", lines(Policy::Legacy)),
        ("modern", lines(Policy::Modern)),
        ("http", ClientConfig::url("http://localhost/mcp").expect("it is a url")),
    ])
}

fn server(hook: Option<MessageHook>) -> ServerConfig {
    ServerConfig { on_message: hook, ..ServerConfig::new(Implementation::new("server", "1")) }
}

/// Returns the same messages as seen from the other side.
fn mirrored(lines: &[String]) -> Vec<String> {
    let swap = |line: &String| match line.split_at(1) {
        ("<", rest) => format!(">{rest}"),
        (_, rest) => format!("<{rest}"),
    };
    lines.iter().map(swap).collect()
}

// covers: S2-44
#[test]
fn both_sides_see_every_message_in_order_on_every_transport() {
    for (name, mut config) in targets() {
        let (at_client, at_server) = (Seen::default(), Seen::default());
        config.on_message = at_client.hook("");
        let mut net = Net::between(config, server(at_server.hook("")), 7);
        net.rest();
        net.call(tools::call("steps").progress());
        net.rest();
        let (client, server) = (at_client.take(), at_server.take());
        assert_eq!(client, mirrored(&server), "{name}");
        let expected: &[&str] = if name == "legacy" {
            &["> request initialize", "< response 1", "> notification notifications/initialized -"]
        } else {
            &["> request server/discover", "< response 1"]
        };
        let call = [
            "> request tools/call",
            "< notification notifications/progress -",
            "< notification notifications/progress -",
            "< response 2",
        ];
        assert_eq!(client, [expected, &call].concat(), "{name}");
    }
}

// covers: S2-44
#[test]
fn refused_request_ends_its_call_and_is_not_written() {
    for (name, mut config) in targets() {
        let seen = Seen::default();
        config.on_message = seen.hook("> request tools/call");
        let mut net = Net::between(config, server(None), usize::MAX);
        net.rest();
        let channels = net.channels();
        net.log();
        let before: usize = net.wire.values().map(Vec::len).sum();
        net.call(tools::call("add"));
        net.rest();
        assert_eq!(net.log(), ["call 1: refused by the message hook: not today"], "{name}");
        assert_eq!(net.wire.values().map(Vec::len).sum::<usize>(), before, "{name}: nothing was written");
        assert_eq!(net.channels(), channels, "{name}: nothing was opened");
        assert!(net.actions.0.iter().any(|action| action.contains("sent: No")), "{name}");
        assert_eq!(seen.take().iter().filter(|line| line.contains("tools/call")).count(), 1, "{name}: asked once");
    }
}

// covers: S2-44
#[test]
fn refused_response_ends_only_its_call() {
    for (name, mut config) in targets() {
        config.on_message = Seen::default().hook("< response 2");
        let mut net = Net::between(config, server(None), usize::MAX);
        net.rest();
        net.log();
        net.call(tools::call("add"));
        net.call(tools::call("next"));
        net.rest();
        let log = net.log();
        assert!(log.contains(&"call 1: refused by the message hook: not today".to_string()), "{name}: {log:?}");
        assert!(log.contains(&"call 2 succeeded".to_string()), "{name}: {log:?}");
        assert!(log.contains(&"diagnostic denied".to_string()), "{name}: {log:?}");
        assert!(net.actions.0.iter().any(|action| action.contains("sent: Maybe")), "{name}");
    }
}

// covers: S2-44
#[test]
fn request_refused_by_the_server_gets_an_error() {
    for (name, config) in targets() {
        let mut net = Net::between(config, server(Seen::default().hook("< request tools/call")), usize::MAX);
        net.rest();
        net.log();
        net.call(tools::call("add"));
        net.rest();
        assert_eq!(
            net.log(),
            ["server: diagnostic denied", "call 1: MCP error -32603: the message was refused"],
            "{name}"
        );
    }
}

// covers: S2-44
#[test]
fn response_refused_by_the_server_becomes_an_error() {
    for tool in ["add", "steps"] {
        for (name, config) in targets() {
            let mut net = Net::between(config, server(Seen::default().hook("> response 2")), usize::MAX);
            net.rest();
            net.log();
            net.call(tools::call(tool).progress());
            net.rest();
            let log = net.log();
            let end = "call 1: MCP error -32603: the message was refused".to_string();
            assert!(log.contains(&end), "{name} {tool}: {log:?}");
            assert!(log.contains(&"server: diagnostic denied".to_string()), "{name} {tool}: {log:?}");
            assert!(!log.iter().any(|line| line.contains("not today")), "{name}: the reason stays");
        }
    }
}

// covers: S2-44
#[test]
fn refused_notification_is_dropped_and_reported() {
    for by_server in [true, false] {
        for (name, mut config) in targets() {
            let line = if by_server { "> " } else { "< " };
            let refused = if by_server {
                "> notification notifications/progress -"
            } else {
                "< notification notifications/progress -"
            };
            let hook = Seen::default().hook(refused);
            let mut at_server = server(by_server.then(|| hook.clone()).flatten());
            config.on_message = hook.filter(|_| !by_server);
            at_server.limits = Limits::default();
            let mut net = Net::between(config, at_server, usize::MAX);
            net.rest();
            net.log();
            net.call(tools::call("steps").progress());
            net.rest();
            let log = net.log();
            let told = log.iter().filter(|line| line.ends_with("diagnostic denied")).count();
            assert_eq!(told, 2, "{name} {line}: {log:?}");
            assert!(!log.iter().any(|line| line.contains("is at")), "{name} {line}: {log:?}");
            assert!(log.contains(&"call 1 succeeded".to_string()), "{name} {line}: {log:?}");
        }
    }
}

// covers: S2-44
#[test]
fn refused_handshake_ends_negotiation_without_fallback() {
    // With `either`, a client falls back to `initialize` if the server does not know the probe.
    let either = ("either", ClientConfig::given());
    for (name, config) in targets().into_iter().chain([either]) {
        let (stage, request) = if name == "legacy" {
            (Stage::Initialize, "> request initialize")
        } else {
            (Stage::Discover, "> request server/discover")
        };
        for refused in [request, "< response 1"] {
            let mut config = config.clone();
            config.on_message = Seen::default().hook(refused);
            let mut net = Net::between(config, server(None), usize::MAX);
            net.rest();
            let cause = NegotiationCause::Denied("not today".into());
            let (after, first) = (Duration::ZERO, None);
            let why = Termination::Negotiation(NegotiationError { stage, cause, after, first, earlier: Vec::new() });
            let ended = format!("terminated {why:?}");
            assert!(net.log.contains(&ended), "{name} {refused}: {:?}", net.log);
        }
    }
}

// covers: S2-44
#[test]
fn hook_sees_redacted_messages_by_default() {
    let seen = Seen::default();
    let notes = seen.clone();
    let mut config = ClientConfig { policy: Policy::Modern, ..ClientConfig::given() };
    config.on_message = Some(MessageHook::new(move |message| {
        notes.0.lock().unwrap().extend([message.text(), format!("{message:?}"), message.raw()]);
        Ok(())
    }));
    let mut net = Net::between(config, server(None), usize::MAX);
    net.rest();
    seen.take();
    net.call(tools::call("add").arguments(&BTreeMap::from([("api_key", "sk-123")])));
    net.rest();
    let seen = seen.take();
    assert!(seen[0].contains(r#""api_key":"xxxxxx""#) && !seen[0].contains("sk-123"), "{}", seen[0]);
    assert!(!seen[1].contains("sk-123") && seen[1].starts_with("Out {"), "{}", seen[1]);
    assert!(seen[2].contains("sk-123"), "{}", seen[2]);
}

// covers: S2-44
#[cfg(feature = "std")]
#[test]
fn panicking_hook_refuses() {
    let mut config = ClientConfig::given();
    config.on_message = Some(MessageHook::new(|message| {
        assert_ne!(message.method(), Some("tools/call"));
        Ok(())
    }));
    let mut net = Net::between(config, server(None), usize::MAX);
    net.rest();
    net.log();
    net.call(tools::call("add"));
    net.rest();
    assert_eq!(net.log(), ["call 1: refused by the message hook: the hook panicked"]);
    net.tell(Input::Command(ClientCommand::Close));
    net.rest();
    assert_eq!(net.log(), ["terminated Requested"]);
}

/// A server of lines after `initialize` with 2025-03-26, which has batches, and its output.
struct Raw {
    server: WiredServer,
    channel: ConnectionId,
}

impl Raw {
    fn new(hook: Option<MessageHook>, capabilities: &str) -> Self {
        Self::of(server(hook), capabilities)
    }

    fn of(config: ServerConfig, capabilities: &str) -> Self {
        let mut server = WiredServer::new(Arc::new(config), [1; 32], Instant::ZERO);
        let channel = server.accept(Instant::ZERO, Kind::Lines, Peer::default());
        let mut raw = Self { server, channel };
        raw.say(&format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-03-26","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
        ));
        raw
    }

    /// Sends a line. Returns the output and the pending requests.
    fn say(&mut self, line: &str) -> (String, Vec<crate::server::Responder>) {
        let bytes = Bytes::from(format!("{line}\n"));
        self.server.handle_io(Instant::ZERO, self.channel, IoEvent::Read(bytes));
        self.drain()
    }

    fn drain(&mut self) -> (String, Vec<crate::server::Responder>) {
        let (mut written, mut requests) = (Vec::new(), Vec::new());
        while let Some(action) = self.server.poll_output() {
            match action {
                Action::Write(channel, bytes) => {
                    self.server.handle_io(Instant::ZERO, channel, IoEvent::Written(bytes.len()));
                    written.extend_from_slice(&bytes);
                }
                Action::Event(crate::server::Event::Request(responder, _)) => requests.push(responder),
                _ => {}
            }
        }
        (String::from_utf8(written).expect("it is text"), requests)
    }
}

// covers: S2-44
#[test]
fn hook_sees_each_element_of_a_batch() {
    let seen = Seen::default();
    let mut raw = Raw::new(seen.hook("> response 2"), "{}");
    seen.take();
    let ping = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let (out, _) = raw.say(&format!("[{},{},{}]", ping(1), ping(2), ping(3)));
    assert_eq!(
        out,
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},\
         {\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32603,\"message\":\"the message was refused\"}},\
         {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}]\n"
    );
    assert_eq!(
        seen.take(),
        ["< request ping", "< request ping", "< request ping", "> response 1", "> response 2", "> response 3"]
    );
    let mut raw = Raw::new(Seen::default().hook("< request ping"), "{}");
    let (out, _) = raw.say(&format!("[{}]", ping(1)));
    assert_eq!(
        out,
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"the message was refused\"}}]\n"
    );
}

// covers: S2-44
#[test]
fn refused_input_request_counts_as_answered() {
    for (refused, answers) in [("> request roots/list", false), ("< response 1", true)] {
        let mut raw = Raw::new(Seen::default().hook(refused), r#"{"roots":{}}"#);
        let (_, mut requests) = raw.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#);
        let responder = requests.pop().expect("it is handed out");
        let questions = [("r".to_string(), InputRequest::Roots)].to_vec();
        let answer = responder.write(Outcome::NeedInput { requests: questions, state: None });
        raw.server.respond(Instant::ZERO, answer);
        let (out, mut requests) = raw.drain();
        assert_eq!(out.contains("roots/list"), answers, "{out}");
        if answers {
            requests = raw.say(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#).1;
        }
        let again = requests.pop().expect("it is handed out again");
        raw.server.respond(Instant::ZERO, again.write(Outcome::internal("done")));
        assert!(raw.drain().0.contains("done"));
    }
}

// covers: S2-44
#[test]
fn refused_messages_do_not_count_as_unsent() {
    let mut config = server(Seen::default().hook("> notification custom/note -"));
    config.limits.server.max_unsent = 200;
    let mut raw = Raw::of(config, "{}");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
    let responder = raw.say(call).1.pop().expect("it is handed out");
    for _ in 0..10 {
        let note = Note::Custom("custom/note".into(), Object::new().with("text", "x".repeat(100).as_str()));
        raw.server.notify(Instant::ZERO, responder.key(), note).expect("nothing waits to be written");
        assert_eq!(raw.drain().0, "");
    }
}

// covers: S2-44
#[test]
fn http_request_without_a_message_skips_the_hook() {
    let seen = Seen::default();
    let mut config = ClientConfig::url("http://localhost/mcp").expect("it is a url");
    (config.policy, config.on_message) = (Policy::Legacy, seen.hook(""));
    let mut client = WiredClient::new(Arc::new(config), [1; 32], Instant::ZERO);
    let mut written = Vec::new();
    let mut closing = false;
    loop {
        match client.poll_output() {
            Some(Action::Open(channel, _)) => {
                client.handle_io(Instant::ZERO, channel, IoEvent::Opened(Peer::default()))
            }
            Some(Action::Secure(channel, _)) => client.handle_io(Instant::ZERO, channel, IoEvent::Secured),
            Some(Action::Write(channel, bytes)) => {
                client.handle_io(Instant::ZERO, channel, IoEvent::Written(bytes.len()));
                let request = String::from_utf8(bytes.into()).expect("it is text");
                let answer = match request.split(' ').next() {
                    Some("POST") if request.contains("\"initialize\"") => {
                        let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
                        format!(
                            "200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s\r\nContent-Length: {}\r\n\r\n{result}",
                            result.len()
                        )
                    }
                    Some("POST") => "202 Accepted\r\nContent-Length: 0\r\n\r\n".into(),
                    _ => "405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n".into(),
                };
                written.push(request);
                client.handle_io(Instant::ZERO, channel, IoEvent::Read(format!("HTTP/1.1 {answer}").into()));
            }
            Some(Action::Close(channel, _)) => {
                client.handle_io(Instant::ZERO, channel, IoEvent::Closed(Closed::Aborted))
            }
            Some(Action::Notice(..) | Action::Read(..)) => {}
            Some(Action::Event(crate::client::Event::Terminated(_))) => break,
            Some(Action::Event(_)) => {}
            None if !closing => {
                closing = true;
                client.close(Instant::ZERO);
            }
            None => panic!("it does not end: {written:?}"),
        }
    }
    let methods: Vec<&str> = written.iter().filter_map(|request| request.split(' ').next()).collect();
    assert_eq!(methods, ["POST", "POST", "GET", "DELETE"]);
    assert_eq!(seen.take(), ["> request initialize", "< response 1", "> notification notifications/initialized -"]);
}

// covers: S2-44
#[test]
fn refused_ping_is_reported_and_not_a_missed_ping() {
    for (name, mut config) in targets() {
        config.ping = Some(Duration::from_secs(1));
        let ping = if name == "legacy" { "ping" } else { "server/discover" };
        let agreed = Arc::new(Mutex::new(name == "legacy"));
        config.on_message = Some(MessageHook::new(move |message| {
            let refused = message.method() == Some(ping) && *agreed.lock().unwrap();
            *agreed.lock().unwrap() = true;
            if refused { Err(Denial::new("no pings")) } else { Ok(()) }
        }));
        let mut net = Net::between(config, server(None), usize::MAX);
        net.rest();
        net.log();
        while net.now < Instant::ZERO + Duration::from_secs(5) {
            net.tick();
        }
        let log = net.log();
        assert!(log.len() >= 4 && log.iter().all(|line| line == "diagnostic denied"), "{name}: {log:?}");
    }
}

/// Returns a hook that replaces one text by another in the messages of this line, and one that
/// keeps the messages that it sees.
fn replacing(line_of: &'static str, from: &'static str, to: &'static str) -> Option<MessageHook> {
    Some(MessageHook::new(move |message| {
        let is_it = line(message) == line_of;
        Ok(if is_it { Ruling::Replace(message.raw().replace(from, to).into()) } else { Ruling::Pass })
    }))
}

fn keeping() -> (Option<MessageHook>, Arc<Mutex<Vec<String>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&kept);
    let hook = MessageHook::new(move |message| {
        seen.lock().unwrap().push(message.raw());
        Ok(())
    });
    (Some(hook), kept)
}

// covers: S2-44
#[test]
fn replacement_is_what_the_other_side_gets() {
    for (name, mut config) in targets() {
        let (at_server, kept) = keeping();
        config.on_message = replacing("> request tools/call", "\"first\"", "\"second\"");
        let mut net = Net::between(config, server(at_server), 7);
        net.rest();
        net.call(tools::call("add").arguments(&Object::new().with("word", "first")));
        net.rest();
        assert!(net.log().contains(&"call 1 succeeded".to_string()), "{name}");
        let kept = kept.lock().unwrap();
        assert!(kept.iter().any(|text| text.contains("second")) && !kept.iter().any(|text| text.contains("first")));
    }
    // The response of a server, with line breaks that would end it on a duplex connection.
    for (name, mut config) in targets() {
        let (at_client, kept) = keeping();
        config.on_message = at_client;
        let at_server = replacing("> response 2", "\"result\":{", "\n\"result\":\r\n{\"more\":true,");
        let mut net = Net::between(config, server(at_server), 7);
        net.rest();
        net.call(tools::call("add"));
        net.rest();
        assert!(net.log().contains(&"call 1 succeeded".to_string()), "{name}");
        assert!(kept.lock().unwrap().iter().any(|text| text.contains("\"more\":true")), "{name}");
    }
}

// covers: S2-44
#[test]
fn incoming_replacement_is_handled_in_place_of_the_message() {
    for (name, mut config) in targets() {
        config.on_message = Some(MessageHook::new(|message: &WireMessage<'_>| {
            let text = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-31000,"message":"replaced"}}"#;
            Ok(if line(message) == "< response 2" { Ruling::Replace(text.into()) } else { Ruling::Pass })
        }));
        let mut net = Net::between(config, server(None), 7);
        net.rest();
        net.log();
        net.call(tools::call("add"));
        net.rest();
        assert_eq!(net.log(), ["server: tools/call add", "call 1: MCP error -31000: replaced"], "{name}");
    }
    // A header field repeats the name of the tool.
    for (name, config) in targets() {
        let at_server = replacing("< request tools/call", "\"add\"", "\"next\"");
        let mut net = Net::between(config, server(at_server), 7);
        net.rest();
        net.log();
        net.call(tools::call("add"));
        net.rest();
        let log = net.log();
        match name {
            "http" => assert!(log.iter().any(|line| line.contains("-32020")), "{log:?}"),
            _ => assert_eq!(log, ["server: tools/call next", "call 1 succeeded"], "{name}"),
        }
    }
    let (_, mut config) = targets().pop().expect("http");
    config.on_message = replacing("> request tools/call", "\"add\"", "\"next\"");
    let mut net = Net::between(config, server(None), 7);
    net.rest();
    net.log();
    net.call(tools::call("add"));
    net.rest();
    let why = "its replacement changes what a header field repeats";
    assert_eq!(net.log(), [format!("call 1: refused by the message hook: {why}")]);
}

// covers: S2-44
#[test]
fn bad_replacement_refuses_the_message() {
    let request = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add"}}"#;
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"text\":\"{}\"}}}}", "x".repeat(1 << 20));
    let bad: [(&'static str, String); 10] = [
        ("> request tools/call", request.replace("2,", "3,")),
        ("> request tools/call", request.replace("tools/call", "tools/list")),
        ("> request tools/call", request.replace("\"id\":2,", "")),
        ("> request tools/call", request.replace("}}", "}")),
        ("> request tools/call", format!("[{request}]")),
        ("> request tools/call", String::new()),
        ("> request tools/call", request.replace("add", "ad\nd")),
        ("< response 2", r#"{"jsonrpc":"2.0","id":4,"result":{}}"#.into()),
        ("< response 2", deep),
        ("< response 2", long),
    ];
    for (at, text) in bad {
        for (name, mut config) in targets() {
            config.limits.frame.max_line = 1 << 20;
            let (replaced, text) = (at, text.clone());
            config.on_message = Some(MessageHook::new(move |message: &WireMessage<'_>| {
                let is_it = line(message) == replaced;
                Ok(if is_it { Ruling::Replace(text.clone().into()) } else { Ruling::Pass })
            }));
            let mut net = Net::between(config, server(None), usize::MAX);
            net.rest();
            net.log();
            net.call(tools::call("add"));
            net.rest();
            let log = net.log();
            let refused = "call 1: refused by the message hook: its replacement";
            assert!(log.iter().any(|line| line.starts_with(refused)), "{name} {at}: {log:?}");
        }
    }
}

// covers: S2-44
#[test]
fn notification_is_replaced_on_every_transport() {
    for (name, mut config) in targets() {
        let (at_server, kept) = keeping();
        config.on_message = replacing("> notification acme/note -", "first", "second");
        let mut net = Net::between(config, server(at_server), 7);
        net.rest();
        let sent = net.client.notify(net.now, "acme/note", Object::new().with("word", "first"));
        assert!(sent.is_ok(), "{name}");
        net.rest();
        assert!(kept.lock().unwrap().iter().any(|text| text.contains("second")), "{name}");
    }
}
