//! Header fields over loopback, with a hand-written server.

use crate::calc::Add;
use crate::common::run;
use mcp_smol::{ClientOptions, connect_driven, tools};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

/// Returns the head of a message in lower case, and its body if it has a length.
fn read_message(stream: &mut impl BufRead) -> Option<(String, String)> {
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

/// A hand-written server with one tool, whose argument `a` is mirrored: into `Mcp-Param-Old` as it
/// is listed first, and into `Mcp-Param-New`, which it requires, as it is listed later. Every
/// request must have the field of the application. Reports the methods of its requests.
fn renaming_server(listener: TcpListener, methods: mpsc::Sender<String>) {
    for stream in listener.incoming() {
        let methods = methods.clone();
        std::thread::spawn(move || serve_renamed(stream.expect("a connection"), &methods));
    }
}

fn serve_renamed(mut stream: TcpStream, methods: &mpsc::Sender<String>) {
    let mut requests = BufReader::new(stream.try_clone().expect("a clone"));
    while let Some((head, body)) = read_message(&mut requests) {
        let method = head.lines().find_map(|line| line.strip_prefix("mcp-method: ")).expect("a method");
        let id = body.split(r#""id":"#).nth(1).and_then(|rest| rest.split([',', '}']).next()).expect("an id");
        assert!(head.contains("\r\nx-user: josé\r\n"), "{head}");
        methods.send(method.to_owned()).expect("the test listens");
        let tool = |header: &str| {
            let a = format!(r#"{{"type":"integer","x-mcp-header":"{header}"}}"#);
            format!(
                r#"{{"resultType":"complete","tools":[{{"name":"add","inputSchema":{{"type":"object","properties":{{"a":{a}}}}}}}],"ttlMs":0,"cacheScope":"private"}}"#
            )
        };
        let result = match method {
            "server/discover" => r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#.to_owned(),
            "tools/list" if id == "2" => tool("Old"),
            "tools/list" => tool("New"),
            _ if head.contains("\r\nmcp-param-new: 1\r\n") => r#"{"resultType":"complete","content":[{"type":"text","text":"3"}]}"#.to_owned(),
            _ => {
                assert!(head.contains("\r\nmcp-param-old: 1\r\n"), "{head}");
                String::new()
            }
        };
        let (status, member) = match result.as_str() {
            "" => ("400 Bad Request", r#""error":{"code":-32020,"message":"HeaderMismatch"}"#.to_owned()),
            result => ("200 OK", format!(r#""result":{result}"#)),
        };
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},{member}}}"#);
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}", answer.len());
        stream.write_all(format!("{head}\r\n\r\n{answer}").as_bytes()).expect("written");
    }
}

// covers: HDR-C-016, HDR-C-040, B-217, S2-15
#[test]
fn arguments_and_application_fields_are_sent_in_the_header() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (methods, called) = mpsc::channel();
        std::thread::spawn(move || renaming_server(listener, methods));
        assert!(ClientOptions::new().header("X-User", "a\r\nHost: b").is_err());
        let config = ClientOptions::new().header("X-User", "José").expect("a legal field");
        let (client, driver) = connect_driven(url.as_str(), config).expect("a target");
        smol::spawn(driver).detach();
        let tools = client.pages(tools::list()).all().await.expect("pages");
        assert!(tools.iter().map(|tool| &*tool.name).eq(["add"]));
        let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
        assert_eq!(sum.first_text(), Some("3"));
        client.close().await;
        let methods: Vec<String> = called.try_iter().collect();
        assert_eq!(methods, ["server/discover", "tools/list", "tools/call", "tools/list", "tools/call"]);
    });
}
