#![forbid(unsafe_code)]
//! A client over HTTP, recorded while it is challenged, loses a response half-way and resumes it;
//! then replayed without its server.

use mcp_blocking::{Authorization, ClientOptions, Headers, connect_with};
use mcp_proto::client::Policy;
use mcp_proto::record::{Recorder, Redaction, read};
use mcp_proto::tools;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const SESSION: &str = "5e551on-0f-a-client";
const TOKEN: &str = "t0ken-of-a-client";

/// A server of 2025-11-25 that requires a token, has a session, and closes the stream of a call
/// once before it responds.
fn serve(stream: TcpStream) {
    let mut requests = BufReader::new(stream.try_clone().expect("a clone"));
    let mut stream = stream;
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while requests.read_line(&mut line).is_ok_and(|n| n > 2) {
            head.push_str(&line);
            line.clear();
        }
        if head.is_empty() {
            return;
        }
        let field =
            |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned());
        let length = field("content-length:").or(field("Content-Length:")).map_or(0, |n| n.parse().expect("a length"));
        let mut body = vec![0; length];
        requests.read_exact(&mut body).expect("a body");
        let body = String::from_utf8(body).expect("text");
        let id = body.split("\"id\":").nth(1).and_then(|rest| rest.split([',', '}']).next()).unwrap_or("0");
        let json = |result: &str| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: {SESSION}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        };
        let events = |events: &str| {
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n{events}",
                events.len()
            )
        };
        let resumed = field("Last-Event-ID:").is_some();
        let answer = if !head.contains(TOKEN) {
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n".to_owned()
        } else if body.contains("\"initialize\"") {
            json(
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#,
            )
        } else if resumed {
            events(
                "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"late\"}]}}\n\n",
            )
        } else if head.starts_with("GET") {
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n".to_owned()
        } else if body.contains("tools/call") {
            events("id: 1\nretry: 10\ndata:\n\n")
        } else {
            "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned()
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// covers: SHTTP-C-049, S2-44
#[test]
fn run_over_http_is_replayed_exactly_without_secrets() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve(stream.expect("a connection")));
        }
    });
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let file = Memory::default();
        let config = ClientOptions::new()
            .set(|config| config.policy = Policy::Legacy)
            .on_authorize(|_| Authorization::Headers(Headers::new().with("Authorization", format!("Bearer {TOKEN}"))))
            .record(Recorder::to(redaction, file.clone()));
        let client = connect_with(url.as_str(), config).expect("it connects");
        assert_eq!(client.call(tools::call("x")).expect("an answer").first_text(), Some("late"));
        client.close();
        let bytes = file.0.lock().expect("no panic").clone();
        let text = String::from_utf8(bytes.clone()).expect("text");
        for secret in [SESSION, TOKEN] {
            assert_eq!(text.contains(secret), redaction == Redaction::Raw, "{secret}");
        }
        for told in ["auth-needed", "reconnecting", "DELETE /mcp", "Last-Event-ID: 1"] {
            assert!(text.contains(told), "{told}");
        }
        let recording = read(&bytes[..]).expect("a recording");
        let summary = recording.replay().expect("the same, to the byte");
        assert!(summary.complete, "{summary:?}");
    }
}
