//! Clients of both adapters, recorded with a real program and with a server that challenges them
//! and breaks off, and replayed without it.

use mcp_driver::{ClientOptions, ServerOptions};
use mcp_proto::client::Policy;
use mcp_proto::exchange::Program;
use mcp_proto::input::Authorization;
use mcp_proto::record::{Recorder, Recording, Redaction, Summary};
use mcp_proto::rpc::Object;
use mcp_proto::{Call, CallError, ClientConfig, Cx, ElicitResult, Headers, Instant, Router, tool, tools};
use mcp_supervisor::{ServerSpec, Supervision, Supervisor};
use mcp_tests::adapters::{Adapter, AnyTarget};
use mcp_tests::certificates::{Authority, Leaf};
use mcp_tests::stub::{EVENTS, SESSION, Step, Stub, good_legacy, say, whole};
use serde_json::json;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::future::ready;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TESTS: &str = env!("CARGO_BIN_EXE_mcp-tests");
const SERVER: &str = "bare-server";
const SECRET: &str = "sk-very-secret";

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn recorder(&self, redaction: Redaction) -> Recorder {
        Recorder::to(redaction, self.clone())
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no panic").clone()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A program that gets secrets in every possible way.
fn program() -> Program {
    Program::new(TESTS).arg(SERVER).arg(format!("--token={SECRET}")).env("SECRET", SECRET)
}

/// A call with a secret in it, which is returned.
fn echo() -> Call<tools::CallTool> {
    tools::call("echo").arguments(&json!({"text": format!("{{\"password\":\"{SECRET}\"}}"), "api_key": SECRET}))
}

fn count() -> Call<tools::CallTool> {
    tools::call("count").arguments(&json!({"to": 3}))
}

fn accepted() -> ElicitResult {
    ElicitResult::Accept(Object::new().with("why", "because"))
}

/// Every input of a client: results, progress, input requests, a call that is cancelled or dropped,
/// a server that exits during a call.
fn session(adapter: Adapter, target: impl AnyTarget, policy: Policy, recorder: Recorder) {
    let options = ClientOptions::new().set(move |config| config.policy = policy).record(recorder);
    let options = match adapter {
        Adapter::Blocking => options.on_elicit(|_| accepted()),
        Adapter::Smol => options.on_elicit(|_| ready(accepted())),
    };
    let client = adapter.connect_driven(target, options).expect("it connects");
    assert!(client.call(echo()).expect("an answer").first_text().is_some_and(|text| text.contains(SECRET)));
    let mut steps = 0;
    client.call(count().on_progress(|_| steps += 1)).expect("an answer");
    assert_eq!(steps, 3);
    assert_eq!(client.call(tools::call("confirm")).expect("an answer").first_text(), Some("done"));
    let begun = Cell::new(false);
    let mut pending = client.start(tools::call("wait").on_progress(|_| begun.set(true)));
    while !begun.get() {
        match pending.wait_timeout(Duration::from_millis(10)) {
            Ok(ended) => panic!("{ended:?}"),
            Err(call) => pending = call,
        }
    }
    match adapter {
        Adapter::Blocking => {
            pending.cancel(Some("enough"));
            assert!(matches!(pending.wait(), Err(CallError::Cancelled { .. })));
        }
        Adapter::Smol => drop(pending),
    }
    assert!(client.call(tools::call("exit")).is_err());
    client.close().expect("in order");
}

#[track_caller]
fn replayed(bytes: &[u8]) -> Summary {
    let recording = Recording::read(bytes).unwrap_or_else(|e| panic!("{e}"));
    let summary = recording.replay().unwrap_or_else(|difference| panic!("{difference}"));
    assert!(summary.complete);
    summary
}

/// Records a session in every era and with and without redaction, and replays each.
fn each(session: impl Fn(Policy, Recorder)) {
    for (policy, redaction) in [
        (Policy::Legacy, Redaction::Raw),
        (Policy::Modern, Redaction::Raw),
        (Policy::Legacy, Redaction::Redacted),
        (Policy::Modern, Redaction::Redacted),
    ] {
        let file = Memory::default();
        session(policy, file.recorder(redaction));
        let bytes = file.bytes();
        let summary = replayed(&bytes);
        assert!(summary.inputs > 20 && summary.outputs > 20, "{summary:?}");
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(text.contains(SECRET), redaction == Redaction::Raw, "{text}");
        for line in ["\"Cancel\"", "\"Answer\"", "\"what\":\"progress\"", "\"what\":\"failed\"", "\"Exited\""] {
            assert!(text.contains(line), "{line} is missing:\n{text}");
        }
    }
}

// covers: S2-44
#[test]
fn client_with_threads_is_recorded_and_replayed() {
    each(|policy, recorder| session(Adapter::Blocking, program(), policy, recorder));
}

// covers: S2-44
#[test]
fn client_on_smol_is_recorded_and_replayed() {
    each(|policy, recorder| session(Adapter::Smol, program(), policy, recorder));
}

// covers: S2-21, S2-44
#[test]
fn client_over_tls_is_recorded_in_plain_text_and_replayed() {
    let authority = Authority::new("the tests");
    for (adapter, redaction) in
        Adapter::ALL.into_iter().flat_map(|adapter| [(adapter, Redaction::Raw), (adapter, Redaction::Redacted)])
    {
        let echo = |_cx: &Cx, arguments: BTreeMap<String, String>| Ok(arguments["text"].clone());
        let router = Router::new("server", "1").tool(tool("echo"), echo);
        let service = (router, ServerOptions::new());
        let server = adapter.serve_https(service, "127.0.0.1:0", authority.server(&Leaf::default())).expect("listens");
        let file = Memory::default();
        let options = ClientOptions::new().tls(authority.client()).header("Authorization", SECRET).expect("a field");
        let options = options.record(file.recorder(redaction));
        let url = format!("https://localhost:{}/mcp", server.address().port());
        let client = adapter.connect_driven(url, options).expect("it connects");
        assert!(client.call(self::echo()).expect("an answer").first_text().is_some_and(|text| text.contains(SECRET)));
        client.close().expect("in order");
        let bytes = file.bytes();
        assert!(replayed(&bytes).outputs > 5);
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(text.contains(SECRET), redaction == Redaction::Raw, "{text}");
        // The messages and not their encryption, and nothing of the certificates.
        for part in ["\"Secure\"", "\"Secured\"", "HTTP/1.1 200 OK", "tools/call"] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
        assert!(!text.contains("the tests"), "{text}");
    }
}

/// A server behind a URL, with a secret in the URL.
fn over_http(session: impl Fn(String, Recorder)) {
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let mut server =
            Command::new(TESTS).args([SERVER, "http", "99"]).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut url = String::new();
        BufReader::new(server.stdout.take().expect("piped")).read_line(&mut url).expect("it says where");
        let file = Memory::default();
        session(format!("{}?api_key={SECRET}", url.trim()), file.recorder(redaction));
        // It has exited in the last call.
        drop(server.wait());
        let bytes = file.bytes();
        assert!(replayed(&bytes).outputs > 20);
        assert_eq!(String::from_utf8_lossy(&bytes).contains(SECRET), redaction == Redaction::Raw);
    }
}

// covers: S2-44
#[test]
fn clients_of_a_server_behind_a_url_are_recorded_and_replayed() {
    for adapter in Adapter::ALL {
        over_http(|url, recorder| session(adapter, url, Policy::Modern, recorder));
    }
}

/// A file that is removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("mcp-{name}-{}.jsonl", std::process::id())))
    }

    /// Returns the output of `replay` for it, and whether it succeeds.
    fn replay(&self) -> (bool, String) {
        let done = Command::new(TESTS).arg("replay").arg(&self.0).output().expect("it runs");
        (done.status.success(), String::from_utf8([done.stdout, done.stderr].concat()).expect("text"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

#[test]
fn program_replays_a_file_and_prints_the_first_difference() {
    let file = Scratch::new("recorded");
    let recorder = Recorder::to(Redaction::Raw, File::create(&file.0).expect("a file"));
    session(Adapter::Blocking, program(), Policy::Auto, recorder);
    let (done, said) = file.replay();
    assert!(done && said.contains("the same again"), "{said}");

    let text = fs::read_to_string(&file.0).expect("text");
    let at = text.lines().position(|line| line.contains("\\\"to\\\":3")).expect("a call") + 1;
    fs::write(&file.0, text.replacen("\\\"to\\\":3", "\\\"to\\\":4", 1)).expect("written");
    let (done, said) = file.replay();
    assert!(!done && said.contains("the replay acts differently") && said.contains("recorded: "), "{said}");
    let line: usize = said.trim_start_matches("line ").split(':').next().and_then(|n| n.parse().ok()).expect("a line");
    assert!((at..at + 4).contains(&line), "{at}: {said}");

    fs::write(&file.0, &text[..text.len() / 2]).expect("written");
    let (done, said) = file.replay();
    assert!(!done && said.contains("is truncated"), "{said}");
}

// covers: S0-61
#[test]
fn program_replays_a_supervisor() {
    let file = Scratch::new("supervisor");
    let recorder = Recorder::to(Redaction::Redacted, File::create(&file.0).expect("a file"));
    let mut supervisor: Supervisor<String> = Supervisor::recorded(Supervision::default(), [7; 32], recorder);
    let spec = ServerSpec::new(ClientConfig::program(Program::new("server")));
    supervisor.add(Instant::ZERO, "a".into(), spec).expect("a new key");
    while supervisor.poll_output().is_some() {}
    let (done, said) = file.replay();
    assert!(done && said.contains("1 inputs, 2 outputs, the same again"), "{said}");
    assert!(said.contains("stops before the end of the run"), "{said}");
}

/// A disk that is full after this number of bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn full_disk_ends_the_recording_and_not_the_client() {
    for room in [0, 5000] {
        let events = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&events);
        let config = ClientOptions::new()
            .on_event(move |event| heard.lock().expect("no panic").push(format!("{event:?}")))
            .record(Recorder::to(Redaction::Raw, Full(room)));
        let client = mcp_blocking::connect_with(program(), config).expect("it connects");
        for _ in 0..10 {
            client.call(echo()).expect("an answer");
        }
        client.close();
        let events = events.lock().expect("no panic");
        let ended = events.iter().filter(|event| event.contains("RecordingEnded"));
        assert_eq!(ended.count(), 1, "{room} {events:?}");
    }
}

const TOKEN: &str = "t0ken-of-a-client";

/// A server of 2025-11-25 that requires a token, has a session, and closes the stream of a call
/// once before it responds.
fn challenging() -> Stub {
    let stub = Stub::start(|ask| match ask.what.as_str() {
        "open" => Vec::new(),
        _ if ask.field("authorization").is_none_or(|value| !value.contains(TOKEN)) => {
            vec![whole("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "")]
        }
        "GET resumed" => vec![
            say(EVENTS),
            say(
                "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"late\"}]}}\n\n",
            ),
            Step::Close,
        ],
        "tools/call x" => vec![say(EVENTS), say("id: 1\nretry: 10\ndata:\n\n"), Step::Close],
        _ => good_legacy(ask),
    });
    stub.expect("a socket")
}

// covers: SHTTP-C-049, S2-44
#[test]
fn run_over_http_is_replayed_exactly_without_secrets() {
    let stub = challenging();
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let file = Memory::default();
        let config = ClientOptions::new()
            .set(|config| config.policy = Policy::Legacy)
            .on_authorize(|_| Authorization::Headers(Headers::new().with("Authorization", format!("Bearer {TOKEN}"))))
            .record(file.recorder(redaction));
        let client = Adapter::Blocking.connect(stub.url(), config).expect("it connects");
        assert_eq!(client.call(tools::call("x")).expect("an answer").first_text(), Some("late"));
        client.close().expect("in order");
        let bytes = file.bytes();
        let text = String::from_utf8(bytes.clone()).expect("text");
        for secret in [SESSION, TOKEN] {
            assert_eq!(text.contains(secret), redaction == Redaction::Raw, "{secret}");
        }
        for told in ["auth-needed", "reconnecting", "DELETE /mcp", "Last-Event-ID: 1"] {
            assert!(text.contains(told), "{told}");
        }
        let recording = Recording::read(&bytes[..]).expect("a recording");
        let summary = recording.replay().expect("the same, to the byte");
        assert!(summary.complete, "{summary:?}");
    }
}
