//! HTTP on loopback: this client with this server, and each with a hand-written peer.

use crate::common::{BOUND, bounded, until};
use crate::own::{Add, Count, Seen, Text, router};
use mcp_blocking::{
    Authorization, CallError, CallToolResult, Client, ClientOptions, ConnectError, ElicitResult, Headers, Object,
    Server, connect, connect_with, serve_http, tools,
};
use mcp_proto::Refusal;
use mcp_proto::client::Termination;
use mcp_proto::error::{NegotiationCause, Stage};
use mcp_proto::exchange::Closed;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

fn served() -> (Server, Arc<Seen>, String) {
    let (router, seen) = router();
    let server = serve_http(router, "127.0.0.1:0").expect("listens");
    let url = format!("http://{}/mcp", server.local_addr().expect("an address"));
    (server, seen, url)
}

fn text(result: Result<CallToolResult, CallError>) -> String {
    result.expect("a result").first_text().expect("a text").to_owned()
}

fn add(client: &Client) -> Result<CallToolResult, CallError> {
    client.call(tools::call("add").arguments(&Add { a: 1, b: 2 }))
}

/// Returns a hand-written request of 2026-07-28.
fn post(id: u32, tool: &str, arguments: &str, progress: bool) -> String {
    let token = if progress { r#""progressToken":"p","# } else { "" };
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{{token}"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

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

// covers: S2-14, S2-16, S2-22, S0-14, S0-15, S0-16
#[test]
fn url_responds_as_json_and_as_a_stream() {
    bounded(|| {
        let (server, _seen, url) = served();
        let client = connect(url.as_str()).expect("connected");
        assert_eq!(text(add(&client)), "3");
        let mut told = Vec::new();
        let count =
            tools::call("count").arguments(&Count { to: 5 }).on_progress(|progress| told.push(progress.progress));
        assert_eq!(text(client.call(count)), "5");
        assert_eq!(told.last(), Some(&5.0));
        assert_eq!(text(add(&client)), "3");
        assert_eq!(client.close(), Termination::Requested);
        server.stop(Duration::ZERO);
    });
}

#[test]
fn closing_an_http_client_leaves_no_thread_behind() {
    bounded(|| {
        let (_server, _seen, url) = served();
        let client = connect(url.as_str()).expect("connected");
        assert_eq!(text(add(&client)), "3");
        // Its writing thread waits for more bytes when the client is closed.
        client.close();
        until(|| client.stats().detached_threads == 0);
    });
}

#[test]
fn notifications_can_be_awaited_over_http_and_after_close() {
    bounded(|| {
        let (_server, _seen, url) = served();
        let client = connect(url.as_str()).expect("connected");
        client.notify("custom/told", Object::new()).expect("accepted").wait().expect("taken");
        let dropped = client.notify("custom/told", Object::new()).expect("accepted");
        drop(dropped);
        let late = client.notify("custom/told", Object::new()).expect("accepted");
        client.close();
        assert_eq!(late.wait_timeout(BOUND).expect("it has ended"), Ok(()));
        assert_eq!(client.notify("custom/told", Object::new()).unwrap_err(), Refusal::Closed);
    });
}

// covers: B-073
#[test]
fn elicitation_works_over_http() {
    bounded(|| {
        let (_server, _seen, url) = served();
        let config = ClientOptions::new().on_elicit(|_| ElicitResult::Accept(Object::new().with("name", "eve")));
        let client = connect_with(url, config).expect("connected");
        assert_eq!(text(client.call(tools::call("greet"))), "hello eve");
    });
}

// covers: B-049, B-072
#[test]
fn clients_with_equal_ids_get_their_own_responses() {
    bounded(|| {
        let (_server, _seen, url) = served();
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                let url = &url;
                scope.spawn(move || {
                    let client = connect(url.as_str()).expect("connected");
                    for n in 0..10 {
                        let mine = Text { text: format!("{name}{n}") };
                        assert_eq!(text(client.call(tools::call("echo").arguments(&mine))), mine.text);
                    }
                });
            }
        });
    });
}

// covers: S2-19
#[test]
fn server_keeps_the_connection_and_responds_in_order() {
    bounded(|| {
        let (server, _seen, _url) = served();
        let mut stream = TcpStream::connect(server.local_addr().expect("an address")).expect("connected");
        let mut answers = BufReader::new(stream.try_clone().expect("a clone"));
        for id in 1..=2 {
            write!(stream, "{}", post(id, "add", r#"{"a":1,"b":2}"#, false)).expect("written");
            let (head, body) = read_message(&mut answers).expect("an answer");
            assert!(head.starts_with("http/1.1 200") && head.contains("content-type: application/json"), "{head}");
            assert!(body.contains(&format!(r#""id":{id}"#)) && body.contains(r#""text":"3""#), "{body}");
        }
        // Two at once: the second is held until the first is answered.
        let (first, second) = (post(3, "count", r#"{"to":3}"#, true), post(4, "add", r#"{"a":2,"b":2}"#, false));
        write!(stream, "{first}{second}").expect("written");
        let (head, _) = read_message(&mut answers).expect("an answer");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        let mut stream = String::new();
        while !stream.ends_with("\n0\r\n\r\n") {
            assert!(answers.read_line(&mut stream).expect("readable") > 0, "{stream}");
        }
        assert!(stream.contains(r#""progress":1"#) && stream.contains(r#""id":3"#), "{stream}");
        let (_, body) = read_message(&mut answers).expect("an answer");
        assert!(body.contains(r#""id":4"#) && body.contains(r#""text":"4""#), "{body}");
    });
}

// covers: S2-19, S0-14, S0-15
#[test]
fn client_uses_one_connection_for_sequential_calls() {
    bounded(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut requests = BufReader::new(stream.try_clone().expect("a clone"));
            let mut methods = Vec::new();
            while let Some((head, body)) = read_message(&mut requests) {
                let method =
                    head.lines().find_map(|line| line.strip_prefix("mcp-method: ")).expect("a method").to_owned();
                let id = body.split(r#""id":"#).nth(1).and_then(|rest| rest.split([',', '}']).next()).expect("an id");
                let result = match method.as_str() {
                    "server/discover" => {
                        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#
                    }
                    _ => r#"{"resultType":"complete","content":[{"type":"text","text":"3"}]}"#,
                };
                methods.push(method);
                let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                let answer = if methods.len() % 2 == 0 {
                    let body =
                        format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"custom/note\"}}\n\ndata: {answer}\n\n");
                    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked";
                    format!("{head}\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
                } else {
                    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length";
                    format!("{head}: {}\r\n\r\n{answer}", answer.len())
                };
                // In one write: a call between the event and the last chunk would rightly open a
                // second connection.
                stream.write_all(answer.as_bytes()).expect("written");
            }
            methods
        });
        let client = connect(url.as_str()).expect("connected");
        for _ in 0..4 {
            assert_eq!(text(add(&client)), "3");
        }
        assert_eq!(client.stats().channels, 1);
        client.close();
        let methods = server.join().expect("no panic");
        assert_eq!(methods, ["server/discover", "tools/call", "tools/call", "tools/call", "tools/call"]);
    });
}

// covers: CANC-S-003, TIME-B-002, S0-42
#[test]
fn cancelling_a_call_closes_its_stream_and_stops_its_handler() {
    bounded(|| {
        let (_server, seen, url) = served();
        let client = connect(url.as_str()).expect("connected");
        let slow = client.start(tools::call("slow"));
        seen.wait(|counts| counts.begun == 1);
        slow.cancel(None);
        assert_eq!(slow.wait(), Err(CallError::Cancelled { reason: None }));
        seen.wait(|counts| counts.cancelled == 1);
        let ended = client.call(tools::call("slow").timeout(Duration::from_millis(200)));
        assert!(matches!(ended, Err(CallError::Timeout { .. })), "{ended:?}");
        seen.wait(|counts| counts.begun == counts.cancelled);
        assert_eq!(text(add(&client)), "3");
    });
}

// covers: CANC-S-003, B-149
#[test]
fn disconnect_cancels_the_request() {
    bounded(|| {
        let (server, seen, _url) = served();
        let mut stream = TcpStream::connect(server.local_addr().expect("an address")).expect("connected");
        write!(stream, "{}", post(1, "slow", "{}", false)).expect("written");
        seen.wait(|counts| counts.begun == 1);
        drop(stream);
        seen.wait(|counts| counts.cancelled == 1);
    });
}

// covers: B-087, B-094
#[test]
fn connect_without_listener_fails_with_the_reason() {
    bounded(|| {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address");
        let failed = connect(format!("http://{address}")).expect_err("nothing listens");
        let ConnectError::Negotiation(e) = &failed else { panic!("{failed:?}") };
        assert_eq!((e.stage, &e.cause), (Stage::Connect, &NegotiationCause::Closed(Closed::Refused)));
    });
}

// covers: B-087
#[test]
fn invalid_and_unusable_urls_are_refused() {
    bounded(|| {
        assert!(matches!(connect("localhost:8000"), Err(ConnectError::Url(_))));
        assert!(matches!(connect("ftp://localhost/"), Err(ConnectError::Url(_))));
        let failed = connect("https://localhost:1/").expect_err("no TLS");
        assert!(failed.to_string().contains("https needs TLS"), "{failed}");
    });
}

// covers: B-149
#[test]
fn stop_ends_everything_in_time() {
    bounded(|| {
        let (server, seen, url) = served();
        let client = connect(url.as_str()).expect("connected");
        let slow = client.start(tools::call("slow"));
        seen.wait(|counts| counts.begun == 1);
        // One sends nothing, and one never reads its response.
        let mute = TcpStream::connect(server.local_addr().expect("an address")).expect("connected");
        let mut deaf = TcpStream::connect(server.local_addr().expect("an address")).expect("connected");
        let large = post(1, "echo", &format!(r#"{{"text":"{}"}}"#, "x".repeat(3 << 20)), false);
        deaf.write_all(large.as_bytes()).expect("written");
        let began = Instant::now();
        server.stop(Duration::from_millis(100));
        assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
        assert!(slow.wait().is_err());
        seen.wait(|counts| counts.cancelled == 1);
        assert!(TcpStream::connect_timeout(&server.local_addr().expect("an address"), Duration::from_secs(1)).is_err());
        server.wait();
        drop((mute, deaf));
    });
}

/// Set for the child that another test starts.
const FULL: &str = "MCP_BLOCKING_TEST_FULL";

/// A server that is stopped without a free descriptor: this binary, which runs only the test below.
fn full() {
    let (server, _seen, _url) = served();
    let mut stream = TcpStream::connect(server.local_addr().expect("an address")).expect("connected");
    write!(stream, "{}", post(1, "add", r#"{"a":1,"b":2}"#, false)).expect("written");
    read_message(&mut BufReader::new(&stream)).expect("an answer");
    let taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    server.stop(Duration::ZERO);
    println!("stopped at {}!", server.local_addr().expect("an address"));
    std::io::stdin().read_to_end(&mut Vec::new()).expect("an end");
    drop(taken);
}

// covers: B-141, B-189
#[test]
fn server_without_descriptors_closes_its_listener_on_stop() {
    if std::env::var_os(FULL).is_some() {
        return full();
    }
    bounded(|| {
        let mut full = Command::new("/bin/sh")
            .args(["-c", "ulimit -n 64; exec \"$0\" --exact http::server_without_descriptors_closes_its_listener_on_stop --nocapture --test-threads=1"])
            .arg(std::env::current_exe().expect("a path"))
            .env(FULL, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut said = BufReader::new(full.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains('!') {
            line.clear();
            assert!(said.read_line(&mut line).expect("readable") > 0, "it ends");
        }
        let address = line.split("stopped at ").nth(1).and_then(|rest| rest.split('!').next()).expect("an address");
        let refused = TcpStream::connect(address).expect_err("it listens still");
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        drop(full.stdin.take());
        assert!(full.wait().expect("an end").success());
    });
}

#[test]
fn stop_accepts_the_maximum_duration() {
    bounded(|| served().0.stop(Duration::MAX));
}

#[test]
fn dropped_server_closes_its_listener() {
    bounded(|| {
        let (server, _seen, url) = served();
        let address = server.local_addr().expect("an address");
        let client = connect(url.as_str()).expect("connected");
        drop(server);
        assert!(TcpStream::connect_timeout(&address, BOUND).is_err(), "it still listens");
        assert!(add(&client).is_err());
    });
}

// covers: S2-09
#[test]
fn large_messages_pass_in_both_directions() {
    bounded(|| {
        let (_server, _seen, url) = served();
        let client =
            connect_with(url, ClientOptions::new().set(|config| config.timeout = Some(BOUND))).expect("connected");
        let large = "z".repeat(1 << 20);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let echoed = text(client.call(tools::call("echo").arguments(&Text { text: large.clone() })));
                    assert!(echoed == large, "something else came back");
                });
            }
        });
    });
}

/// A server that requires credentials: it responds with 401 without them, and otherwise with a
/// matching result. Counts both.
fn guarded_server() -> (String, Arc<Mutex<(u32, u32)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let counts = Arc::<Mutex<(u32, u32)>>::default();
    let counted = Arc::clone(&counts);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, counted) = (stream.expect("accepted"), Arc::clone(&counted));
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                while let Some((head, body)) = read_message(&mut reader) {
                    let id =
                        body.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or("0").to_owned();
                    let allowed = head.contains("authorization: bearer good");
                    let result = if body.contains("server/discover") {
                        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#
                    } else {
                        r#"{"resultType":"complete","content":[{"type":"text","text":"3"}]}"#
                    };
                    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                    let mut counts = counted.lock().expect("no panic");
                    let bytes = if allowed {
                        counts.1 += 1;
                        format!(
                            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
                            answer.len()
                        )
                    } else {
                        counts.0 += 1;
                        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"x\"\r\nContent-Length: 0\r\n\r\n"
                            .into()
                    };
                    drop(counts);
                    reader.get_mut().write_all(bytes.as_bytes()).expect("written");
                }
            });
        }
    });
    (url, counts)
}

// covers: S0-45
#[test]
fn credentials_are_requested_once_and_the_request_repeated() {
    bounded(|| {
        let (url, counts) = guarded_server();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let config = ClientOptions::new().on_authorize(move |challenge| {
            heard.lock().expect("no panic").push((challenge.status, challenge.hints.www_authenticate));
            Authorization::Headers(Headers::new().with("Authorization", "Bearer good"))
        });
        let client = connect_with(url.as_str(), config).expect("connected");
        assert_eq!(text(add(&client)), "3");
        assert_eq!(text(add(&client)), "3");
        client.close();
        assert_eq!(*asked.lock().expect("no panic"), [(401, vec!["Bearer realm=\"x\"".to_owned()])]);
        assert_eq!(*counts.lock().expect("no panic"), (1, 3));
        // There are no credentials.
        let refused = connect_with(url.as_str(), ClientOptions::new().on_authorize(|_| Authorization::Refuse));
        let Err(ConnectError::Negotiation(e)) = refused else { panic!("{refused:?}") };
        let said = e.to_string();
        assert!(said.starts_with("server/discover failed after "), "{said}");
        assert!(said.ends_with(" ms: HTTP 401 [WWW-Authenticate: Bearer realm=\"x\"]"), "{said}");
        // Nor does a callback that panics provide any.
        let panicked = connect_with(url.as_str(), ClientOptions::new().on_authorize(|_| panic!("on purpose")));
        assert!(matches!(panicked, Err(ConnectError::Negotiation(_))));
    });
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
    bounded(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (methods, called) = mpsc::channel();
        std::thread::spawn(move || renaming_server(listener, methods));
        assert!(ClientOptions::new().header("X-User", "a\r\nHost: b").is_err());
        let config = ClientOptions::new().header("X-User", "José").expect("a legal field");
        let client = connect_with(url.as_str(), config).expect("connected");
        let tools: Vec<_> = client.pages(tools::list()).map(|tool| tool.expect("a page").name).collect();
        assert_eq!(tools, ["add"]);
        assert_eq!(text(add(&client)), "3");
        client.close();
        let methods: Vec<String> = called.try_iter().collect();
        assert_eq!(methods, ["server/discover", "tools/list", "tools/call", "tools/list", "tools/call"]);
    });
}

#[test]
fn error_names_the_address_in_use() {
    let (server, _seen, _url) = served();
    let in_use = serve_http(router().0, server.local_addr().expect("an address")).expect_err("in use");
    assert_eq!(in_use.kind(), std::io::ErrorKind::AddrInUse);
    assert!(
        in_use.to_string().contains(&format!("cannot listen at {}: ", server.local_addr().expect("an address"))),
        "{in_use}"
    );
}
