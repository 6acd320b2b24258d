//! What a store costs: commands and time of a call, of an event and of sessions at rest, how soon a
//! killed server is noticed, and how soon its tasks are settled.

use super::checks::Checks;
use super::ground::{Ground, SERVERS};
use super::monitor::Monitor;
use super::redis::{Servers, Shape, cli};
use super::server::{NO_STORE, SERVER};
use crate::adapters::{Adapter, Client};
use crate::interop::listening::{Listening, PORT};
use crate::interop::setup;
use mcp_driver::ClientOptions;
use mcp_proto::client::Policy;
use mcp_proto::{CallError, Object, tools};
use serde_json::json;
use std::env;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// The number of calls, of events and of sessions.
const CALLS: u32 = 4000;
const EVENTS: u64 = 100;
const SESSIONS: u64 = 10_000;
/// The number of tasks of a killed server, and of the clients that have called them.
const ORPHANS: usize = 10_000;
const OWNERS: usize = 8;
/// The longest wait for their end.
const LONGEST: Duration = Duration::from_secs(300);
/// The time for which sessions are at rest.
const REST: Duration = Duration::from_secs(70);

/// A number, and the most that it may be.
#[derive(Debug)]
pub struct Row {
    name: &'static str,
    value: f64,
    most: f64,
}

impl Row {
    /// Returns whether it is good.
    pub fn is_kept(&self) -> bool {
        self.value <= self.most
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<60} {:>9.3}  (at most {})", self.name, self.value, self.most)
    }
}

/// Measures all of them.
pub(super) fn measure() -> Result<Vec<Row>, String> {
    let folder = setup::place("nodes-cost")?;
    let store = Servers::start(Shape::One, &folder)?;
    let mut rows = Vec::new();
    {
        let (with, without) = (server(&store.words())?, server(&[NO_STORE.to_owned()])?);
        let url = |server: &Listening| format!("http://127.0.0.1:{}/mcp", server.port());
        calls(&store, &url(&with), &url(&without), &mut rows)?;
        sessions(&store, with.port(), &mut rows)?;
    }
    drop(store);
    noticed(&mut rows)?;
    orphans(&mut rows)?;
    Ok(rows)
}

/// Starts a server with these words for its store.
fn server(store: &[String]) -> Result<Listening, String> {
    let program = env::current_exe().map_err(|why| why.to_string())?;
    let first: [OsString; 4] = [program.into(), SERVER.into(), Adapter::Blocking.name().into(), PORT.into()];
    let words: Vec<OsString> = first.into_iter().chain(store.iter().map(OsString::from)).collect();
    Listening::start(&words, &[])
}

/// Returns the number behind a name in a section of what the store says of itself.
fn number(store: &Servers, section: &str, name: &str) -> Result<f64, String> {
    let info = cli(["-p", &store.port().to_string(), "INFO", section])?;
    let value = info.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let value: String = value.chars().take_while(char::is_ascii_digit).collect();
    value.parse().map_err(|_| format!("no {name}"))
}

fn connected(url: &str) -> Result<Client, String> {
    let options = ClientOptions::new().set(|config| config.policy = Policy::Legacy);
    Adapter::Blocking.connect(url.to_owned(), options).map_err(|why| why.to_string())
}

fn calls(store: &Servers, with: &str, without: &str, rows: &mut Vec<Row>) -> Result<(), String> {
    let clients = [connected(with)?, connected(without)?];
    let call = |client: &Client| {
        let begun = Instant::now();
        let result = client.call(tools::call("echo").arguments(&Object::new().with("text", "x")));
        result.map(|_| begun.elapsed()).map_err(|why| why.to_string())
    };
    let mut times = [Vec::new(), Vec::new()];
    let monitor = Monitor::start(store.port())?;
    for _ in 0..CALLS {
        for (client, times) in clients.iter().zip(&mut times) {
            times.push(call(client)?);
        }
    }
    let commands = monitor.end()? / f64::from(CALLS);
    let [with, without] = times.map(|mut times| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1000.0
    });
    rows.push(Row { name: "a legacy call: commands", value: commands, most: 1.0 });
    rows.push(Row { name: "a legacy call: milliseconds more", value: with - without, most: 0.2 });
    let monitor = Monitor::start(store.port())?;
    let arguments = Object::new().with("text", "x").with("millis", EVENTS * 10).with("steps", EVENTS);
    let progress = tools::call("slow").arguments(&arguments).on_progress(|_| {});
    clients[0].call(progress).map_err(|why| why.to_string())?;
    let appends = monitor.end()? / EVENTS as f64;
    // The claim of the stream, its response, a renewal of the lease and a read of what others say
    // are no events.
    rows.push(Row { name: "an event of a stream: commands", value: appends, most: 1.1 });
    Ok(())
}

fn sessions(store: &Servers, port: u16, rows: &mut Vec<Row>) -> Result<(), String> {
    let before = number(store, "memory", "used_memory:")?;
    let mut streams = Vec::new();
    for nth in 0..SESSIONS {
        streams.push(listener(port, nth).map_err(|why| format!("session {nth}: {why}"))?);
    }
    thread::sleep(Duration::from_secs(5));
    let held = (number(store, "memory", "used_memory:")? - before) / SESSIONS as f64 / 1024.0;
    let (monitor, begun) = (Monitor::start(store.port())?, Instant::now());
    thread::sleep(REST);
    let rate = monitor.end()? / begun.elapsed().as_secs_f64();
    rows.push(Row { name: "10,000 sessions with open streams: KiB of each", value: held, most: 7.0 });
    rows.push(Row { name: "10,000 sessions with open streams: commands a second", value: rate, most: 200.0 });
    Ok(())
}

/// Opens a session and its stream.
fn listener(port: u16, nth: u64) -> std::io::Result<TcpStream> {
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
    let fields =
        format!("Host: localhost\r\nAuthorization: Bearer principal-{nth}\r\nContent-Type: application/json\r\n");
    let accept = "Accept: application/json, text/event-stream\r\n";
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let head = read_head(
        &mut stream,
        &format!("POST /mcp HTTP/1.1\r\n{fields}{accept}Content-Length: {}\r\n\r\n{body}", body.len()),
    )?;
    let session = head.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id:"));
    let session = session.ok_or_else(|| std::io::Error::other(format!("no session: {head}")))?.to_owned();
    let version = "MCP-Protocol-Version: 2025-11-25\r\n";
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let fields = format!("{fields}{accept}{session}\r\n{version}");
    read_head(&mut stream, &format!("POST /mcp HTTP/1.1\r\n{fields}Content-Length: {}\r\n\r\n{ready}", ready.len()))?;
    read_head(&mut stream, &format!("GET /mcp HTTP/1.1\r\n{fields}\r\n"))?;
    Ok(stream)
}

/// Sends a request. Returns the response up to the end of its head, and what came with it.
fn read_head(stream: &mut TcpStream, request: &str) -> std::io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
    while !read.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::Error::other("the connection ended")),
            length => read.extend_from_slice(&buffer[..length]),
        }
    }
    let head = String::from_utf8_lossy(&read).into_owned();
    if head.starts_with("HTTP/1.1 2") { Ok(head) } else { Err(std::io::Error::other(head)) }
}

/// A server is killed while a call runs there.
fn noticed(rows: &mut Vec<Row>) -> Result<(), String> {
    let mut ground = Ground::start(Some(Shape::One))?;
    let client = connected(&ground.url())?;
    let call = thread::spawn(move || {
        let arguments = Object::new().with("text", "x").with("millis", 60_000_u64);
        let result = client.call(tools::call("slow").arguments(&arguments).timeout(Duration::from_secs(90)));
        (result, Instant::now())
    });
    thread::sleep(Duration::from_secs(5));
    let killed = Instant::now();
    (0..SERVERS).try_for_each(|nth| ground.kill(nth))?;
    let (result, ended) = call.join().map_err(|_| "the call panicked")?;
    match result {
        Err(CallError::Rpc(error)) if error.message.contains("was lost") => {}
        other => return Err(format!("the server of a call was killed: {other:?}")),
    }
    let value = ended.saturating_duration_since(killed).as_secs_f64();
    rows.push(Row { name: "a killed server: seconds until its call ends", value, most: 20.0 });
    Ok(())
}

/// A server is killed that has tasks, which do not run again.
fn orphans(rows: &mut Vec<Row>) -> Result<(), String> {
    // One of an adapter that needs no thread for each.
    const OWNER: usize = 1;
    let mut ground = Ground::start(Some(Shape::One))?;
    let servers = ground.addresses();
    let create = |owner: usize| {
        let (checks, principal) = (Checks::new(&servers[OWNER..=OWNER]), format!("owner-{owner}"));
        let task = |_| checks.begin_task(0, &principal, "once", ("orphan", LONGEST));
        (0..ORPHANS / OWNERS).map(task).collect::<Result<Vec<_>, _>>()
    };
    let tasks = thread::scope(|scope| {
        let threads: Vec<_> = (0..OWNERS).map(|owner| scope.spawn(move || create(owner))).collect();
        let tasks = threads.into_iter().map(|thread| thread.join().map_err(|_| "it panicked".to_owned())?);
        tasks.collect::<Result<Vec<_>, String>>()
    })?;
    let owned = ground.owned()?;
    if owned != ORPHANS {
        return Err(format!("the store knows of {owned} tasks of a server"));
    }
    let killed = Instant::now();
    ground.kill(OWNER)?;
    while ground.owned()? > 0 && killed.elapsed() < LONGEST {
        thread::sleep(Duration::from_millis(200));
    }
    let value = killed.elapsed().as_secs_f64();
    rows.push(Row { name: "10,000 tasks of a killed server: seconds until they end", value, most: 60.0 });
    let checks = Checks::new(&servers);
    for (owner, tasks) in tasks.iter().enumerate() {
        // Some of them.
        for task in tasks.iter().step_by(50) {
            let said = checks.about(0, &format!("owner-{owner}"), "tasks/get", task)?;
            if said.message["result"]["status"] != "failed" {
                return Err(format!("a task of a killed server: {}", said.message));
            }
        }
    }
    Ok(())
}
