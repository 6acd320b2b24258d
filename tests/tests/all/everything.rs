//! The servers of the conformance suite with our own client: both programs, over each of their
//! transports, in both eras.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use mcp_blocking::{Change, Client, ClientEvent, ClientOptions, IntoTarget, Policy, Progress, connect_with, tools};
use mcp_proto::{CallError, ElicitResult, Form, Object};
use mcp_tests::adapters::Adapter;
use mcp_tests::conformance::server;
use mcp_tests::conformance::started::Started;
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-tests");
/// The maximum time of any step.
const SOON: Duration = Duration::from_secs(30);

fn connect(target: impl IntoTarget<mcp_blocking::Given>, policy: Policy, changed: mpsc::Sender<()>) -> Client {
    let config = ClientOptions::new()
        .on_elicit(|question: Form| {
            ElicitResult::accept(&question.fill(Object::new().with("ok", true).with("name", "Ada")))
        })
        .on_event(move |event| {
            if matches!(event, ClientEvent::Changed(Change::Tools)) {
                // The second call is not awaited.
                let _ = changed.send(());
            }
        })
        .set(move |config| {
            config.policy = policy;
            config.timeout = Some(SOON);
            config.watch.tools = true;
        });
    connect_with(target, config).expect("it serves")
}

/// Calls a tool of each kind.
fn tour(target: impl IntoTarget<mcp_blocking::Given>, policy: Policy) {
    let (say, changed) = mpsc::channel();
    let client = connect(target, policy, say);
    let listed: Vec<String> = client.pages(tools::list()).map(|tool| tool.expect("a tool").name).collect();
    let fixtures = server::tools::all().into_iter().chain(server::tasks::all());
    let mut all: Vec<String> = fixtures.map(|fixture| fixture.tool.name).collect();
    all.sort_unstable();
    assert_eq!(listed, all);

    let text = |name: &str| {
        let result = client.call(tools::call(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(!result.is_error, "{name}: {result:?}");
        result.first_text().unwrap_or_default().to_owned()
    };
    assert_eq!(text("test_simple_text"), "This is a simple text response for testing.");
    assert_eq!(text("test_input_required_result_request_state"), "state-ok");
    assert!(text("test_elicitation_sep1034_defaults").contains("95.5"));
    assert_eq!(text("test_reconnection"), "The stream was closed before this answer.");

    let (say, told) = mpsc::channel();
    let counting = tools::call("test_tool_with_progress").on_progress(move |progress: Progress| {
        say.send(progress.progress).expect("it is waited for");
    });
    client.call(counting).expect("it counts");
    assert_eq!(told.iter().collect::<Vec<_>>(), [0.0, 50.0, 100.0]);

    // One of each kind of failure.
    assert!(client.call(tools::call("test_error_handling")).expect("a result").is_error);
    let needed = client.call(tools::call("test_missing_capability"));
    match policy {
        Policy::Legacy => assert!(needed.expect("a result").is_error),
        _ => assert!(matches!(&needed, Err(CallError::Rpc(why)) if why.code == -32021), "{needed:?}"),
    }
    let value = client.call(tools::call("test_custom_header").arguments(&json!({ "value": "Hello, 世界" })));
    assert_eq!(value.expect("a result").first_text(), Some("The value is: Hello, 世界"));

    while changed.try_recv().is_ok() {}
    let began = Instant::now();
    // Only its own side knows whether it listens already.
    loop {
        assert_eq!(text("test_trigger_tool_change"), "Said.");
        if changed.recv_timeout(Duration::from_secs(1)).is_ok() {
            break;
        }
        assert!(began.elapsed() < SOON, "the change is not told");
    }
    client.close();
}

// covers: SUB-S-015, RSUB-S-003
#[test]
fn each_program_serves_stdio_in_both_eras() {
    for adapter in Adapter::ALL {
        for policy in [Policy::Modern, Policy::Legacy] {
            let mut command = Command::new(PROGRAM);
            command.args(["everything-server", adapter.name(), "--stdio"]);
            tour(command, policy);
        }
    }
}

// covers: S3-03, SUB-S-015, RSUB-S-003
#[test]
fn each_program_serves_both_eras_on_one_http_endpoint() {
    for adapter in Adapter::ALL {
        let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("everything-{}.log", adapter.name()));
        let words = ["everything-server", adapter.name()];
        let mut server = Started::start(Path::new(PROGRAM), &words, log).expect("it listens");
        let url = server.url();
        thread::scope(|scope| {
            for policy in [Policy::Modern, Policy::Legacy, Policy::Auto] {
                let url = url.as_str();
                scope.spawn(move || tour(url, policy));
            }
        });
        assert_eq!(server.fault(), None);
    }
}
