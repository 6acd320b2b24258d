//! Tests of the checks of interoperability themselves.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use mcp_tests::interop::areas::{Reaches, offered};
use mcp_tests::interop::callers::{applies, complaints};
use mcp_tests::interop::clients::{Client, Ours, Reach, has, verdict};
use mcp_tests::interop::listening::{Listening, PORT, Transport};
use mcp_tests::interop::processes::Watch;
use mcp_tests::interop::relay::Relay;
use mcp_tests::interop::servers::{LEGACY, MODERN, OLDEST};
use mcp_tests::interop::steps::Expect;
use mcp_tests::interop::{Answer, Mark, Shows, judge, setup};
use mcp_tests::sources::{files, root};
use serde_json::json;

// The tables name what ran.
#[test]
fn peers_have_the_versions_that_are_installed() {
    let pins = |file: &str| std::fs::read_to_string(setup::programs().join(file)).expect("the pins are there");
    let all = ["rmcp/Cargo.toml", "node/package.json", "python/requirements.txt", "python/requirements-1.txt"];
    let pins = all.into_iter().chain(["python/requirements-fastmcp.txt"]).map(pins).collect::<String>();
    let mut seen = 0;
    for (path, text) in
        files(&root(), "tests/src/interop", ".rs").into_iter().chain(files(&root(), "tests/src/fleet", ".rs"))
    {
        let words = text.split('"').map(|literal| literal.split([' ', ',']).collect::<Vec<_>>());
        for (name, version) in words.filter_map(|words| Some((*words.first()?, *words.get(1)?))) {
            let pin = match name {
                "rmcp" => format!("version = \"={version}\""),
                "mcp" | "fastmcp" => format!("{name}=={version} "),
                "client" | "server" | "sdk" => format!("\"@modelcontextprotocol/{name}\": \"{version}\""),
                _ if name.starts_with("server-") => format!("\"@modelcontextprotocol/{name}\": \"{version}\""),
                _ => continue,
            };
            if version.matches('.').count() == 2 && version.split('.').all(|part| part.parse::<u32>().is_ok()) {
                assert!(pins.contains(&pin), "{path}: {name} {version} is not installed");
                seen += 1;
            }
        }
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn process_exists_until_it_is_reaped() {
    let mut child = Command::new("sleep").arg("60").spawn().expect("there is `sleep`");
    let watch = Watch::these(vec![child.id()]);
    assert_eq!(watch.left(), [child.id()]);
    child.kill().expect("it runs");
    // It was not reaped, so it is still in the table of processes.
    assert_eq!(watch.left(), [child.id()]);
    child.wait().expect("it has ended");
    watch.gone().expect("it is gone");
    Watch::these(Vec::new()).gone().expect_err("to have seen nothing proves nothing");
}

#[test]
fn a_line_is_about_one_step() {
    assert_eq!(verdict("ok cancel", "cancel"), Some(Ok("ok".to_owned())));
    assert_eq!(verdict("ok cancelled", "cancel"), None);
    assert_eq!(verdict("FAIL cancelled: why", "cancel"), None);
    assert_eq!(verdict("FAIL cancel: why: because", "cancel"), Some(Err("why: because".to_owned())));
    assert_eq!(verdict("done", "cancel"), None);
}

#[test]
fn a_deviation_is_known_for_its_revision_and_step_only() {
    let known = [("2025-11-25", "exit", "a timer", Shows::Always)];
    let wrong = || Err("killed".to_owned());
    assert_eq!(judge(&known, "2025-11-25", "exit", wrong()), Mark::Deviates("killed".to_owned(), "a timer"));
    assert_eq!(judge(&known, "2026-07-28", "exit", wrong()), Mark::Failed("killed".to_owned()));
    assert_eq!(judge(&known, "2025-11-25", "close", wrong()), Mark::Failed("killed".to_owned()));
    assert_eq!(judge(&known, "2025-11-25", "exit", Ok("0".to_owned())), Mark::Passed("0".to_owned()));
}

#[test]
fn response_must_match_in_every_part() {
    let expect = Expect::text("5").structured(json!({ "sum": 5 })).progress(2).asks(&["user"]);
    let right = Answer {
        text: "it is 5".to_owned(),
        structured: Some(json!({ "sum": 5 })),
        is_error: false,
        progress: vec![1.0, 2.0],
        // A server may request the roots at any time.
        asked: vec!["roots", "user"],
    };
    expect.check(&right).expect("all of it is right");
    let wrong: [fn(&mut Answer); 7] = [
        |answer| answer.text = "4".to_owned(),
        |answer| answer.structured = None,
        |answer| answer.is_error = true,
        |answer| answer.progress = vec![2.0, 1.0],
        |answer| answer.progress = vec![1.0],
        |answer| answer.asked.clear(),
        |answer| answer.asked.push("model"),
    ];
    for (n, spoil) in wrong.iter().enumerate() {
        let mut answer = right.clone();
        spoil(&mut answer);
        expect.check(&answer).expect_err(&format!("the {n}th part is wrong"));
    }
}

#[test]
fn program_that_does_not_listen_is_reported_with_its_output() {
    let command = |script: &str| ["sh", "-c", script, "sh", PORT].map(OsString::from);
    let why = Listening::start(&command("echo out $1; echo err >&2; exit 3"), &[]).expect_err("it ends at once");
    assert!(why.contains("exit status: 3"), "{why}");
    assert!(!why.contains(PORT), "the port is filled in: {why}");
}

#[test]
fn relay_forwards_each_direction_until_it_is_cut() {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let port = server.local_addr().expect("it is bound").port();
    let echo = thread::spawn(move || {
        for stream in server.incoming().take(2) {
            let mut stream = stream.expect("it comes");
            let mut line = [0; 5];
            stream.read_exact(&mut line).expect("the line");
            stream.write_all(&line).expect("the way back is open");
            let mut rest = Vec::new();
            // The end of the client's direction, which is not that of the server's.
            stream.read_to_end(&mut rest).expect("an end in order");
            let _ = stream.write_all(b"bye");
        }
    });
    let relay = Relay::to(port).expect("a port is free");
    let address = relay.address();
    let connect = || {
        let mut client = TcpStream::connect(address).expect("the relay listens");
        client.write_all(b"hello").expect("it takes bytes");
        let mut line = [0; 5];
        client.read_exact(&mut line).expect("the same comes back");
        assert_eq!(&line, b"hello");
        client
    };
    let mut client = connect();
    relay.cut();
    assert_eq!(client.read_to_end(&mut Vec::new()).ok(), Some(0), "nothing comes after a cut");
    let mut client = connect();
    client.shutdown(Shutdown::Write).expect("it is open");
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).expect("an end in order");
    assert_eq!(rest, b"bye");
    echo.join().expect("the server is content");
}

#[test]
fn diagnostic_of_our_server_is_excused_only_if_expected() {
    let client = Client {
        name: "a client",
        command: Vec::new(),
        reached: &[],
        probes: |_| false,
        lacks: &[],
        deviations: &[],
        web: Some(Transport::Streamable),
        faults: &[("late-answer", "it is slow")],
    };
    let judged_of = |client: &Client, mode, lines: &[&str], restarted, ours| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        complaints(client, &lines, restarted, Reach { mode, ours, revision: LEGACY })
    };
    let judged = |lines: &[&str], restarted, ours| judged_of(&client, "legacy", lines, restarted, ours);
    let (gone, newer) = ("diagnostic bad-session: who?", "diagnostic unsupported-version: no");
    let passed = |mark| matches!(mark, Mark::Passed(_));
    assert!(passed(judged(&["session opened", "LISTENING"], 1, Ours::Whole)));
    assert!(passed(judged(&["session opened", gone], 1, Ours::Whole)));
    assert_eq!(judged(&[gone, "LISTENING"], 1, Ours::Whole), Mark::Failed("bad-session: who?".to_owned()));
    assert!(passed(judged(&[newer], 9, Ours::Older)));
    assert_eq!(judged(&[newer], 0, Ours::Whole), Mark::Failed("unsupported-version: no".to_owned()));
    let late = judged(&["diagnostic late-answer: to 3"], 0, Ours::Whole);
    assert_eq!(late, Mark::Deviates("late-answer: to 3".to_owned(), "it is slow"));
    let both = judged(&["diagnostic late-answer: to 3", newer], 0, Ours::Whole);
    assert!(matches!(both, Mark::Failed(_)), "{both:?}");
    // HTTP+SSE has no revision that such a client tries first.
    let older = Client { web: Some(Transport::Sse), ..client.clone() };
    assert!(passed(judged_of(&older, "auto", &[newer], 9, Ours::Whole)));
    assert!(!passed(judged_of(&older, "legacy", &[newer], 9, Ours::Whole)));
    assert!(!passed(judged_of(&client, "auto", &[newer], 9, Ours::Whole)));
}

#[test]
fn step_runs_only_with_its_prerequisites() {
    let reach = |mode, ours, revision| Reach { mode, ours, revision };
    let whole = reach("legacy", Ours::Whole, LEGACY);
    let older = reach("auto", Ours::Older, LEGACY);
    let alone = reach("stateless", Ours::Stateless, LEGACY);
    let modern = reach("auto", Ours::Whole, MODERN);
    let taken = |step| [whole, older, alone, modern].map(|reach| applies(step, reach));
    assert_eq!(taken("list"), [true; 4]);
    assert_eq!(taken("form"), [true, true, false, true]);
    assert_eq!(taken("gone"), [true, true, false, false]);
    assert_eq!(taken("cut"), [true, false, false, false]);
    assert_eq!(taken("ping"), [true, true, true, false]);
    assert_eq!(taken("restarted"), [true; 4]);
}

#[test]
fn steps_beside_tools_need_a_way_to_the_client() {
    let has = |revision, reaches, name| offered(revision, reaches).iter().any(|step| step.name == name);
    let ways = [Reaches::Always, Reaches::BesideCalls, Reaches::Never];
    let taken = |revision, name| ways.map(|reaches| has(revision, reaches, name));
    assert_eq!(taken(LEGACY, "read"), [true; 3]);
    assert_eq!(taken(LEGACY, "updated"), [true, true, false]);
    assert_eq!(taken(LEGACY, "logging"), [true, false, false]);
    assert_eq!(taken(LEGACY, "consult"), [true, false, false]);
    assert_eq!(taken(MODERN, "consult"), [true; 3], "the result asks");
    assert_eq!(taken("2025-06-18", "consult"), [false; 3]);
    assert_eq!(taken(MODERN, "gate"), [false; 3]);
    assert_eq!(taken("2025-03-26", "schema"), [false; 3]);
}

#[test]
fn client_takes_only_the_steps_of_its_revision() {
    let having = |step| [OLDEST, "2025-06-18", LEGACY, MODERN].map(|revision| has(revision, step));
    assert_eq!(having("read"), [true; 4]);
    assert_eq!(having("form"), [false, true, true, true]);
    assert_eq!(having("ping"), [true, true, true, false]);
    assert_eq!(having("page"), [false, false, true, true]);
    assert_eq!(having("page told"), [false, false, true, false]);
}
