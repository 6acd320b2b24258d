#![forbid(unsafe_code)]
//! Clients of both adapters, recorded with a real program, and replayed without it.

use mcp_proto::client::{ClientConfig, Policy};
use mcp_proto::exchange::Program;
use mcp_proto::record::{Recorder, Redaction, Summary, read};
use mcp_proto::rpc::Object;
use mcp_proto::{Call, CallError, ElicitResult, tools};
use serde_json::json;
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

const SERVER: &str = env!("CARGO_BIN_EXE_bare_server");
const REPLAY: &str = env!("CARGO_BIN_EXE_replay");
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
    Program::new(SERVER).arg(format!("--token={SECRET}")).env("SECRET", SECRET)
}

fn set(policy: Policy) -> impl FnOnce(&mut ClientConfig) + Send + 'static {
    move |config| config.policy = policy
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

/// Every input of a client with threads: results, progress, input requests, a cancelled call, a
/// server that exits during a call.
fn blocking(target: impl mcp_blocking::IntoTarget<mcp_blocking::Given>, policy: Policy, recorder: Recorder) {
    let config = mcp_blocking::ClientOptions::new().set(set(policy)).on_elicit(|_| accepted()).record(recorder);
    let client = mcp_blocking::connect_with(target, config).expect("it connects");
    assert!(client.call(echo()).expect("an answer").first_text().is_some_and(|text| text.contains(SECRET)));
    let mut steps = 0;
    client.call(count().on_progress(|_| steps += 1)).expect("an answer");
    assert_eq!(steps, 3);
    assert_eq!(client.call(tools::call("confirm")).expect("an answer").first_text(), Some("done"));
    let id = Cell::new(None);
    let stop = |_| client.cancel(id.get().expect("begun"), Some("enough"));
    let pending = client.start(tools::call("wait").on_progress(stop));
    id.set(pending.id());
    assert!(matches!(pending.wait(), Err(CallError::Cancelled { .. })));
    assert!(client.call(tools::call("exit")).is_err());
    client.close();
}

/// The same on smol.
fn smol(target: impl mcp_smol::IntoTarget<mcp_smol::Given>, policy: Policy, recorder: Recorder) {
    let config = mcp_smol::ClientOptions::new()
        .set(set(policy))
        .on_elicit_async(|_| std::future::ready(accepted()))
        .record(recorder);
    let (client, driver) = mcp_smol::connect_driven(target, config).expect("it is made");
    smol::block_on(async {
        let driver = smol::spawn(driver);
        assert!(client.call(echo()).await.expect("an answer").first_text().is_some_and(|text| text.contains(SECRET)));
        let mut steps = 0;
        client.call(count().on_progress(|_| steps += 1)).await.expect("an answer");
        assert_eq!(steps, 3);
        assert_eq!(client.call(tools::call("confirm")).await.expect("an answer").first_text(), Some("done"));
        let (begun, wait) = smol::channel::unbounded();
        let told = move |_| begun.try_send(()).expect("room");
        let call = async { drop(client.call(tools::call("wait").on_progress(told)).await) };
        // The call is dropped once it runs.
        smol::future::or(call, async { wait.recv().await.expect("begun") }).await;
        assert!(client.call(tools::call("exit")).await.is_err());
        client.close().await;
        driver.await;
    });
}

#[track_caller]
fn replayed(bytes: &[u8]) -> Summary {
    let recording = read(bytes).unwrap_or_else(|e| panic!("{e}"));
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
    each(|policy, recorder| blocking(program(), policy, recorder));
}

// covers: S2-44
#[test]
fn client_on_smol_is_recorded_and_replayed() {
    each(|policy, recorder| smol(program(), policy, recorder));
}

/// A server behind a URL, with a secret in the URL.
fn over_http(session: impl Fn(String, Recorder)) {
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let mut server = Command::new(SERVER).args(["http", "99"]).stdout(Stdio::piped()).spawn().expect("it starts");
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
    over_http(|url, recorder| blocking(url, Policy::Modern, recorder));
    over_http(|url, recorder| smol(url, Policy::Modern, recorder));
}

/// A file that is removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("mcp-{name}-{}.jsonl", std::process::id())))
    }

    /// Returns the output of `replay` for it, and whether it succeeds.
    fn replay(&self) -> (bool, String) {
        let done = Command::new(REPLAY).arg(&self.0).output().expect("it runs");
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
    blocking(program(), Policy::Auto, Recorder::to(Redaction::Raw, File::create(&file.0).expect("a file")));
    let (done, said) = file.replay();
    assert!(done && said.contains("the same again"), "{said}");

    let text = fs::read_to_string(&file.0).expect("text");
    let at = text.lines().position(|line| line.contains("\\\"to\\\":3")).expect("a call") + 1;
    fs::write(&file.0, text.replacen("\\\"to\\\":3", "\\\"to\\\":4", 1)).expect("written");
    let (done, said) = file.replay();
    assert!(!done && said.contains("the client acts differently") && said.contains("recorded: "), "{said}");
    let line: usize = said.trim_start_matches("line ").split(':').next().and_then(|n| n.parse().ok()).expect("a line");
    assert!((at..at + 4).contains(&line), "{at}: {said}");

    fs::write(&file.0, &text[..text.len() / 2]).expect("written");
    let (done, said) = file.replay();
    assert!(!done && said.contains("is truncated"), "{said}");
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
        let config = mcp_blocking::ClientOptions::new()
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
