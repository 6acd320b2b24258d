//! The neutral other end of a measurement, which uses nothing of the crates: a server and a client
//! that read and write as little as they can.

use crate::peer::Failure;
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{ChildStdin, ChildStdout};
use std::thread;

/// Bytes of one read.
const BLOCK: usize = 64 << 10;

/// Returns the call of the tool `echo` with this id and number of characters.
pub fn call(id: usize, payload: usize) -> String {
    let text: String = "the same words again ".chars().cycle().take(payload).collect();
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"_meta":{{"#,
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
            r#""io.modelcontextprotocol/clientInfo":{{"name":"cost","version":"1.0.0"}},"#,
            r#""io.modelcontextprotocol/clientCapabilities":{{}}}},"#,
            r#""name":"echo","arguments":{{"text":"{}"}}}}}}"#
        ),
        id, text
    )
}

/// Returns the HTTP request with this body, a call of the tool `echo`.
pub fn post(body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: echo\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns the response of a server with the tool `echo`. `None` for a notification.
///
/// # Errors
/// The message is no JSON.
pub fn answer(message: &[u8]) -> Result<Option<String>, Failure> {
    let message: Value = serde_json::from_slice(message)?;
    let Some(id) = message.get("id") else { return Ok(None) };
    let result = match message["method"].as_str() {
        Some("server/discover") => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "raw", "version": "1" },
            "ttlMs": 0,
            "cacheScope": "private",
        }),
        _ => json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": message["params"]["arguments"]["text"] }],
            "isError": false,
        }),
    };
    Ok(Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()))
}

/// Serves standard input and output to the end: all lines of a read are answered with one write.
///
/// # Errors
/// As of the system. A line is no JSON.
pub fn serve_stdio() -> Result<(), Failure> {
    let mut input = BufReader::with_capacity(BLOCK, io::stdin().lock());
    let (mut line, mut answers) = (Vec::new(), String::new());
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(text) = answer(&line)? {
            answers += &text;
            answers.push('\n');
        }
        line.clear();
        if !input.buffer().contains(&b'\n') {
            io::stdout().write_all(answers.as_bytes())?;
            io::stdout().flush()?;
            answers.clear();
        }
    }
    Ok(())
}

/// Serves HTTP on a free loopback port until this process ends, with a thread for each connection.
///
/// # Errors
/// The system provides no socket.
pub fn serve_http() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || connection(stream));
        }
    });
    Ok(address)
}

/// The requests of a connection, to its end.
fn connection(stream: TcpStream) -> Result<(), Failure> {
    let mut conn = Conn::new(stream)?;
    while let Some(body) = conn.message()? {
        let response = match answer(&body)? {
            Some(text) => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            ),
            None => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".into(),
        };
        conn.write(&response)?;
    }
    Ok(())
}

/// Makes this number of calls over lines, `inflight` at a time: they are written at once when all
/// before them are answered, so that the bursts do not depend on the speed of either side.
///
/// # Errors
/// As of the system. The server ends.
pub fn drive_stdio(to: &mut ChildStdin, from: ChildStdout, inflight: usize, calls: usize) -> Result<(), Failure> {
    let mut from = BufReader::with_capacity(BLOCK, from);
    let mut line = String::new();
    for first in (0..calls).step_by(inflight) {
        let requests: String = (first..first + inflight).map(|id| call(id, 64) + "\n").collect();
        to.write_all(requests.as_bytes())?;
        for _ in 0..inflight {
            line.clear();
            from.read_line(&mut line)?;
            check(&line)?;
        }
    }
    Ok(())
}

/// The same over HTTP, with a connection for each call of a burst.
///
/// # Errors
/// As of the system. The server ends.
pub fn drive_http(address: SocketAddr, inflight: usize, calls: usize) -> Result<(), Failure> {
    let mut connections = Vec::with_capacity(inflight);
    for _ in 0..inflight {
        connections.push(Conn::new(TcpStream::connect(address)?)?);
    }
    for first in (0..calls).step_by(inflight) {
        for (at, connection) in connections.iter_mut().enumerate() {
            connection.write(&post(&call(first + at, 64)))?;
        }
        for connection in &mut connections {
            let body = connection.message()?.ok_or("the server closes the connection")?;
            check(&String::from_utf8_lossy(&body))?;
        }
    }
    Ok(())
}

fn check(response: &str) -> Result<(), Failure> {
    match response.contains("the same words") {
        true => Ok(()),
        false => Err(format!("this is no echo: {response:?}").into()),
    }
}

/// A connection over HTTP, on which messages have a length.
struct Conn {
    input: BufReader<TcpStream>,
}

impl Conn {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { input: BufReader::with_capacity(BLOCK, stream) })
    }

    fn write(&self, text: &str) -> io::Result<()> {
        self.input.get_ref().write_all(text.as_bytes())
    }

    /// Returns the body of the next message. `None` at the end of the connection.
    fn message(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match self.input.read_line(&mut head) {
                Ok(0) if head.is_empty() => return Ok(None),
                Ok(0) => return Err(format!("no head but {head:?}").into()),
                Err(e) if e.kind() == ErrorKind::ConnectionReset && head.is_empty() => return Ok(None),
                done => drop(done?),
            }
        }
        let fields = head.lines().filter_map(|line| line.split_once(':'));
        let mut length =
            fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length")).map(|(_, length)| length);
        let length: usize = length.next_back().ok_or_else(|| format!("no length in {head:?}"))?.trim().parse()?;
        let mut body = vec![0; length];
        self.input.read_exact(&mut body)?;
        Ok(Some(body))
    }
}
