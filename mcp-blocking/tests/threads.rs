//! The number of threads of a server, counted in a separate program.
#![cfg(all(target_os = "linux", feature = "http"))]

use mcp_blocking::{Router, ServerOptions, serve_http, tool};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Returns the number of threads of this program whose names begin with `name`.
fn count(name: &str) -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("/proc").flatten();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|found| found.starts_with(name)).count()
}

#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "the condition did not come true");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

fn ask(stream: &mut TcpStream, tool: &str) {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"t","version":"1"}}}}}}}}"#
    );
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("written");
}

fn told(stream: &mut TcpStream, enough: &str) {
    let (mut all, mut buffer) = (String::new(), [0; 4096]);
    while !all.contains(enough) {
        let n = stream.read(&mut buffer).expect("bytes");
        assert!(n > 0, "the end came before {enough:?}: {all}");
        all.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
}

// covers: B-174
#[test]
fn server_uses_two_threads_per_connection_and_bounded_handlers() {
    const CONNECTIONS: usize = 20;
    const HANDLERS: usize = 4;
    let router = Router::new("threads", "1")
        .tool(tool("large"), |_cx, ()| Ok("x".repeat(8 << 20)))
        .tool(tool("slow"), |cx, ()| {
            until(|| cx.is_cancelled());
            Ok(())
        })
        .tool(tool("quick"), |_cx, ()| Ok("done"))
        .configure(|config| {
            config.limits.server.max_exchanges = CONNECTIONS;
            // Longer than the test takes on any machine.
            config.limits.frame.head_timeout = Duration::from_secs(600);
            config.limits.frame.linger_timeout = Duration::from_millis(100);
        });
    let server = serve_http((router, ServerOptions::new().threads(HANDLERS)), "127.0.0.1:0").expect("listens");
    let dial = || TcpStream::connect(server.local_addr().expect("an address")).expect("connected");
    // Some send nothing, some read nothing, and those that make calls get responses.
    let mut stuck: Vec<TcpStream> = (0..CONNECTIONS - 1).map(|_| dial()).collect();
    stuck.iter_mut().step_by(5).for_each(|stream| ask(stream, "large"));
    until(|| server.stats().requests == 4 && server.stats().running == 0);
    let mut lively = dial();
    for _ in 0..3 {
        ask(&mut lively, "quick");
        told(&mut lively, "done");
    }
    // A thread sets its name when it begins to run.
    until(|| (count("mcp-reader"), count("mcp-writer")) == (CONNECTIONS, CONNECTIONS));
    // Connections beyond the limit get a response, and keep their threads no longer than a closed
    // connection may linger.
    let mut beyond: Vec<TcpStream> = (0..50).map(|_| dial()).collect();
    beyond.iter_mut().for_each(|stream| drop(stream.read_to_end(&mut Vec::new())));
    until(|| (count("mcp-reader"), count("mcp-writer")) == (CONNECTIONS, CONNECTIONS));
    drop((beyond, stuck));
    until(|| server.stats().channels == 1);
    let mut slow: Vec<TcpStream> = (0..CONNECTIONS - 1).map(|_| dial()).collect();
    slow.iter_mut().for_each(|stream| ask(stream, "slow"));
    until(|| server.stats().running == CONNECTIONS - 1 && count("mcp-handler") >= HANDLERS);
    assert_eq!(count("mcp-handler"), HANDLERS);
    drop((slow, lively));
    until(|| count("mcp-reader") + count("mcp-writer") == 0);
    // A connection that the server has ended keeps no thread, even if its client stays.
    let mut stays: Vec<TcpStream> = (0..3).map(|_| dial()).collect();
    for stream in &mut stays {
        stream.write_all(b"nonsense\r\n\r\n").expect("written");
        let mut said = Vec::new();
        stream.read_to_end(&mut said).expect("the answer, and the end");
        assert!(said.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&said));
    }
    until(|| count("mcp-reader") + count("mcp-writer") == 0);
    drop(stays);
    assert_eq!((count("mcp-timer"), count("mcp-accept")), (1, 1));
    drop(server);
    until(|| count("mcp-timer") + count("mcp-accept") == 0);
}
