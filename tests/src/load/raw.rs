//! A raw client over HTTP for invalid behaviour: one socket, and the text on it.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum silence of a socket before an expected byte.
pub(super) const SILENCE: Duration = Duration::from_secs(20);

pub(super) struct Conn {
    input: BufReader<TcpStream>,
    /// The bytes of an event stream after the last complete event.
    rest: String,
}

/// The head of an answer.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    text: String,
}

impl Head {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        field(&self.text, name)
    }

    pub(super) fn is_stream(&self) -> bool {
        self.field("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}

/// A field of a head, by its name in any case.
pub(super) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(field, value)| field.eq_ignore_ascii_case(name).then_some(value.trim()))
}

impl Conn {
    pub(super) fn open(address: SocketAddr) -> Result<Self, String> {
        let connect = || -> io::Result<TcpStream> {
            let stream = TcpStream::connect_timeout(&address, SILENCE)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(SILENCE))?;
            stream.set_write_timeout(Some(SILENCE))?;
            Ok(stream)
        };
        let stream = connect().map_err(|e| format!("no connection: {e}"))?;
        Ok(Self { input: BufReader::with_capacity(1024, stream), rest: String::new() })
    }

    pub(super) fn stream(&self) -> &TcpStream {
        self.input.get_ref()
    }

    pub(super) fn send(&mut self, text: &str) -> Result<(), String> {
        self.stream().write_all(text.as_bytes()).map_err(|e| format!("not written: {e}"))
    }

    /// The head of the next answer.
    pub(super) fn head(&mut self) -> Result<Head, String> {
        let mut text = String::new();
        while !text.ends_with("\r\n\r\n") {
            if self.input.read_line(&mut text).map_err(|e| format!("no head: {e}"))? == 0 {
                return Err(format!("no head but {text:?}"));
            }
        }
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok(Head { status: status.ok_or_else(|| format!("no status in {text:?}"))?, text })
    }

    /// Whether something can be read.
    pub(super) fn has_input(&self) -> Result<bool, String> {
        let look = || -> io::Result<bool> {
            self.stream().set_nonblocking(true)?;
            let peeked = self.stream().peek(&mut [0]);
            self.stream().set_nonblocking(false)?;
            match peeked {
                Ok(_) => Ok(true),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
                Err(e) => Err(e),
            }
        };
        Ok(!self.input.buffer().is_empty() || look().map_err(|e| format!("no input: {e}"))?)
    }

    /// Sends a request, and reads the response to its end: its head, and the message in it that has
    /// an id or is the only one.
    pub(super) fn ask(&mut self, text: &str) -> Result<(Head, Value), String> {
        self.send(text)?;
        let head = self.head()?;
        if head.is_stream() {
            let mut answer = Value::Null;
            while let Some(message) = self.event()? {
                if message.get("id").is_some() {
                    answer = message;
                }
            }
            return Ok((head, answer));
        }
        let length = head.field("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0_usize)];
        self.input.read_exact(&mut body).map_err(|e| format!("no body: {e}"))?;
        let message = match body.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&body).map_err(|e| format!("no JSON: {e}"))?,
        };
        Ok((head, message))
    }

    /// The next message of an event stream; `None` at its end.
    pub(super) fn event(&mut self) -> Result<Option<Value>, String> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let data: String = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                let message = (!data.trim().is_empty()).then(|| serde_json::from_str(&data));
                self.rest = rest.to_string();
                match message {
                    Some(message) => return message.map(Some).map_err(|e| format!("no JSON: {e}")),
                    None => continue,
                }
            }
            match self.chunk().map_err(|e| format!("no event: {e}"))? {
                Some(chunk) => self.rest += &chunk,
                None => return Ok(None),
            }
        }
    }

    /// The next chunk of a body; `None` at its end.
    fn chunk(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        self.input.read_line(&mut line)?;
        let size =
            usize::from_str_radix(line.trim(), 16).map_err(|_| io::Error::other(format!("no size: {line:?}")))?;
        let mut chunk = vec![0; size + 2];
        self.input.read_exact(&mut chunk)?;
        chunk.truncate(size);
        let chunk = String::from_utf8(chunk).map_err(io::Error::other)?;
        Ok((size > 0).then_some(chunk))
    }

    /// Closes the writing side, and reads until the other side has closed as well.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, String> {
        let _ = self.stream().shutdown(Shutdown::Write);
        self.until_closed()
    }

    /// Reads until the other side has closed, in whatever way.
    pub(super) fn until_closed(&mut self) -> Result<Vec<u8>, String> {
        let mut rest = Vec::new();
        match self.input.read_to_end(&mut rest) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err("it is not closed".into()),
            _ => Ok(rest),
        }
    }
}

/// A request of 2026-07-28.
pub(super) fn modern(id: u64, method: &str, name: Option<&str>, params: Value) -> String {
    modern_with(id, method, name, params, ("", ""))
}

/// The same, with a text in place of another, where that is too large to be built as a value.
pub(super) fn modern_with(
    id: u64,
    method: &str,
    name: Option<&str>,
    mut params: Value,
    (old, new): (&str, &str),
) -> String {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "load", "version": "1" });
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    let fields = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}");
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
    post_text(&fields, &if old.is_empty() { body } else { body.replacen(old, new, 1) })
}

/// A call of a tool.
pub(super) fn call(id: u64, tool: &str, arguments: Value) -> String {
    modern(id, "tools/call", Some(tool), json!({ "name": tool, "arguments": arguments }))
}

/// A call of a tool whose progress is wanted.
pub(super) fn watched(id: u64, tool: &str, arguments: Value) -> String {
    let meta = json!({ "progressToken": id });
    modern(id, "tools/call", Some(tool), json!({ "name": tool, "arguments": arguments, "_meta": meta }))
}

/// A notification of 2026-07-28.
pub(super) fn notification(method: &str, params: Value) -> String {
    let fields = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
    post(&fields, &json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

/// The same request from this principal.
pub(super) fn by(principal: &str, request: &str) -> String {
    request.replacen("\r\n", &format!("\r\nAuthorization: Bearer {principal}\r\n"), 1)
}

fn post(fields: &str, body: &Value) -> String {
    post_text(fields, &body.to_string())
}

fn post_text(fields: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
/// A subscription to changes of the tools.
pub(super) fn listen(id: u64) -> String {
    modern(id, "subscriptions/listen", None, json!({ "notifications": { "toolsListChanged": true } }))
}

/// The beginning of a session of 2025-11-25.
pub(super) fn initialize(id: u64) -> String {
    initialize_with(id, &json!({}))
}

/// The same, of a client with these capabilities.
pub(super) fn initialize_with(id: u64, capabilities: &Value) -> String {
    let info = json!({ "name": "load", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
    post("", &json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params }))
}

/// The second step of a session.
pub(super) fn initialized(session: &str) -> String {
    post(&of_session(session), &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
}

/// A call of a tool within a session.
pub(super) fn call_in(session: &str, id: u64, tool: &str, arguments: Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    post(&of_session(session), &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
}

/// What asks for the stream of a session.
pub(super) fn get(session: &str) -> String {
    format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{}\r\n", of_session(session))
}

fn of_session(session: &str) -> String {
    format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n")
}

/// The end of a session.
pub(super) fn delete(session: &str) -> String {
    format!("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n{}\r\n", of_session(session))
}
