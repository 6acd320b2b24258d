//! The examples that serve and speak dialects, and that keep data for each session, run as their
//! programs do.

#[path = "../../examples/sample_dialect/client.rs"]
mod client;
#[path = "../../examples/sample_dialect/server.rs"]
mod server;
#[path = "../../examples/session_data.rs"]
mod session_data;

use mcp_blocking::{ClientOptions, Policy, connect_with, tools};
use session_data::{Entry, SessionData};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

// covers: S3-27, S3-33, S4-03
#[test]
fn sample_dialect_is_served_and_spoken() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || server::serve(&listener));
    let mut client = client::SampleClient::connect(&url).unwrap();
    assert_eq!(client.call("count", &[("to", 3)]).unwrap(), ["1", "2", "3"]);
    assert_eq!(client.call("nonsense", &[]).unwrap_err().to_string(), "there is no such tool");
    assert_eq!(client.call("count", &[("to", 12)]).unwrap().len(), 12);
}

/// Sends a request of HTTP, and returns what the server says up to this text.
fn ask(stream: &mut TcpStream, head: &str, body: &str, end: &str) -> String {
    write!(
        stream,
        "{head}\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains(end) {
        let mut buffer = [0; 1 << 10];
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "{}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8(said).unwrap()
}

// covers: S3-34
#[test]
fn sample_dialect_resumes_after_an_event_by_its_number() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    std::thread::spawn(move || server::serve(&listener));
    let opening = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    let opened = ask(&mut stream, "POST / HTTP/1.1", opening, "serverInfo");
    let session = opened.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:")).unwrap();
    let count = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"count","arguments":{"to":12}}}"#;
    ask(&mut stream, &format!("POST / HTTP/1.1\r\n{session}"), count, "requestId");
    let resumed = ask(&mut stream, &format!("GET / HTTP/1.1\r\n{session}\r\nLast-Event-ID: 9"), "", "connected");
    let numbers: Vec<_> = resumed.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert!(numbers.starts_with(&["10", "11", "12", "13"]), "{resumed}");
}

// covers: S3-41
#[test]
fn each_session_has_its_own_data_until_it_ends() {
    let data = SessionData::default();
    let server = session_data::serve(&data, "127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let connect = || {
        let options = ClientOptions::new().set(|config| config.policy = Policy::Legacy);
        connect_with(url.as_str(), options).unwrap()
    };
    let remember = |client: &mcp_blocking::Client, value: Option<&str>| {
        let entry = Entry { name: "color".into(), value: value.map(String::from) };
        let result = client.call(tools::call("remember").arguments(&entry)).unwrap();
        (result.is_error, result.first_text().unwrap().to_owned())
    };
    let (one, two) = (connect(), connect());
    assert_eq!(remember(&one, Some("red")), (false, "set".into()));
    assert_eq!(remember(&two, None), (true, "not set".into()));
    assert_eq!(remember(&two, Some("blue")), (false, "set".into()));
    assert_eq!(remember(&one, None), (false, "red".into()));
    assert_eq!(data.len(), 2);
    one.close();
    two.close();
    // Closing a client ends its session, with a DELETE.
    let over = std::time::Instant::now() + Duration::from_secs(30);
    while data.len() > 0 && std::time::Instant::now() < over {
        std::thread::yield_now();
    }
    assert_eq!(data.len(), 0, "nothing is left of an ended session");
    server.stop(Duration::ZERO);
}
