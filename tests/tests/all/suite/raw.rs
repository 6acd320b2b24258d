//! HTTP by hand, for peers that do what no correct one does.

use super::*;
use mcp_tests::stub::{self, Ask, Step};
use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// A request that is answered in every state.
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
pub(crate) const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
/// The result of a call.
pub(crate) const CALLED: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"3"}]}"#;

/// Serves the tools of these tests. Returns the URL of the server as well.
pub(crate) fn serving() -> (Server, Arc<Seen>, String) {
    let (server, seen) = limited(|_| {});
    let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
    (server, seen, url)
}

/// The same, with a connected client.
pub(crate) fn served() -> (Server, Arc<Seen>, Client) {
    let (server, seen, url) = serving();
    (server, seen, connect(url).wait().expect("connected"))
}

/// Serves them with another configuration.
pub(crate) fn limited(change: impl FnOnce(&mut ServerConfig)) -> (Server, Arc<Seen>) {
    let (router, seen) = router();
    (listening(router.configure(change), ServerOptions::new()), seen)
}

pub(crate) fn listening(router: Router, options: ServerOptions) -> Server {
    serve_http((router, options), "127.0.0.1:0").wait().expect("listens")
}

pub(crate) fn dial(server: &Server) -> TcpStream {
    TcpStream::connect(server.local_addr().expect("an address")).expect("connected")
}

/// Returns a call of 2026-07-28 with this id, with further lines in its head.
pub(crate) fn numbered(id: u32, tool: &str, arguments: &str, fields: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"progressToken":"p"}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},{meta}}}}}"#
    );
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    )
}

pub(crate) fn call(tool: &str, arguments: &str, fields: &str) -> String {
    numbered(1, tool, arguments, fields)
}

pub(crate) fn addition() -> String {
    call("add", r#"{"a":1,"b":2}"#, "")
}

/// Returns a call whose response fits into no buffer of a socket.
pub(crate) fn large() -> String {
    call("echo", &format!(r#"{{"text":"{}"}}"#, "x".repeat(3 << 20)), "")
}

/// Makes a call over this connection, which is answered.
pub(crate) fn sum(stream: &mut (impl Read + Write)) {
    say(stream, &addition());
    let answer = answer(stream);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""text":"3""#), "{answer}");
}

pub(crate) fn say(stream: &mut impl Write, words: &str) {
    stream.write_all(words.as_bytes()).expect("written");
}

pub(crate) fn read_until(stream: &mut impl Read, enough: &str) -> String {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&all).contains(enough) {
        let n = stream.read(&mut buffer).expect("bytes");
        assert!(n > 0, "the end came before {enough:?}: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8(all).expect("text")
}

/// Leaves the bytes unread, so that dropping the stream resets the connection.
pub(crate) fn peek_until(stream: &TcpStream, enough: &str) -> String {
    let mut buffer = [0; 4096];
    loop {
        let n = stream.peek(&mut buffer).expect("bytes");
        let text = String::from_utf8_lossy(&buffer[..n]);
        assert!(n > 0, "the end came before {enough:?}: {text}");
        if text.contains(enough) {
            return text.into_owned();
        }
        std::thread::yield_now();
    }
}

/// Reads a response that has a length: its head and its body.
pub(crate) fn answer(stream: &mut impl Read) -> String {
    let (mut all, mut buffer) = (String::new(), [0; 4096]);
    loop {
        if let Some((head, body)) = all.split_once("\r\n\r\n") {
            let small = head.to_lowercase();
            let length = small.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap_or("0");
            if body.len() >= length.trim().parse().expect("a length") {
                return all;
            }
        }
        let n = stream.read(&mut buffer).expect("bytes");
        assert!(n > 0, "the end came within {all:?}");
        all.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
}

/// Reads everything up to the end.
pub(crate) fn rest(stream: &mut impl Read) -> String {
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("an end in order");
    said
}

/// Returns the head of a message in lower case, and its body if it has a length.
pub(crate) fn read_message(stream: &mut impl BufRead) -> Option<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).expect("readable") == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().expect("a length"))];
    stream.read_exact(&mut body).expect("a body");
    Some((head, String::from_utf8(body).expect("unicode")))
}

/// Returns a response with this result.
pub(crate) fn result(result: &str) -> Step {
    stub::json(format!(r#"{{"jsonrpc":"2.0","id":{{id}},"result":{result}}}"#))
}

/// Responds like a server of 2026-07-28 whose calls return 3.
pub(crate) fn responds(ask: &Ask) -> Vec<Step> {
    if ask.what.starts_with("tools/call") { vec![result(CALLED)] } else { stub::good_modern(ask) }
}

/// Returns a request of 2025-11-25.
pub(crate) fn older(method: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2025-11-25\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    )
}

pub(crate) fn older_call(tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#)
}

/// Opens a session over this connection, with these fields. Returns them and the one with its id.
pub(crate) fn open_session(stream: &mut (impl Read + Write), fields: &str) -> String {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    say(stream, &older("POST", fields, hello));
    let hello = answer(stream);
    let session = hello.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id:")).expect("a session");
    let field = format!("{fields}{}\r\n", session.trim());
    say(stream, &older("POST", &field, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#));
    let accepted = answer(stream);
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    field
}
