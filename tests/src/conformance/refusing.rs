//! A web server that refuses everything with 404 and the JSON-RPC error -32601. If the suite
//! accepts it in a scenario, a pass of that scenario proves nothing.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

/// Serves on its own thread until the process ends. Returns the URL.
///
/// # Errors
/// The error of the operating system.
pub fn serve() -> io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // A client that disconnects needs no response.
            thread::spawn(move || refuse(&connection));
        }
    });
    Ok(format!("http://{address}/mcp"))
}

/// Responds to one request, and closes.
fn refuse(connection: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let error = json!({ "code": -32601, "message": "Method not found" });
    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string();
    let head = "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nConnection: close\r\n";
    (&mut &*connection).write_all(format!("{head}Content-Length: {}\r\n\r\n{answer}", answer.len()).as_bytes())
}
