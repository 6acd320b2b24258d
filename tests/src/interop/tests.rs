//! What judges other people must itself be right.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use serde_json::json;

use super::clients::verdict;
use super::listening::{Listening, PORT};
use super::processes::Watch;
use super::relay::Relay;
use super::steps::Expect;
use super::{Answer, Mark, Shows, judge};

#[test]
fn a_process_is_left_until_it_has_ended_and_was_waited_for() {
    let mut child = Command::new("sleep").arg("60").spawn().expect("there is `sleep`");
    let watch = Watch::these(vec![child.id()]);
    assert_eq!(watch.left(), [child.id()]);
    child.kill().expect("it runs");
    // Nobody has waited for it: it is still in the table of processes.
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
fn an_answer_is_what_was_expected_in_every_part() {
    let expect = Expect::text("5").structured(json!({ "sum": 5 })).progress(2).asks(&["user"]);
    let right = Answer {
        text: "it is 5".to_owned(),
        structured: Some(json!({ "sum": 5 })),
        is_error: false,
        progress: vec![1.0, 2.0],
        // A server may ask for the roots whenever it likes.
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
fn a_program_that_does_not_listen_is_told_of_with_what_it_said() {
    let command = |script: &str| ["sh", "-c", script, "sh", PORT].map(OsString::from);
    let why = Listening::start(&command("echo out $1; echo err >&2; exit 3"), &[]).expect_err("it ends at once");
    assert!(why.contains("exit status: 3"), "{why}");
    assert!(!why.contains(PORT), "the port is filled in: {why}");
}

#[test]
fn a_relay_passes_each_way_on_its_own_until_it_is_cut() {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let port = server.local_addr().expect("it is bound").port();
    let echo = thread::spawn(move || {
        for stream in server.incoming().take(2) {
            let mut stream = stream.expect("it comes");
            let mut line = [0; 5];
            stream.read_exact(&mut line).expect("the line");
            stream.write_all(&line).expect("the way back is open");
            let mut rest = Vec::new();
            // The end of the client's way, which is not that of the server's.
            stream.read_to_end(&mut rest).expect("an end in order");
            let _ = stream.write_all(b"bye");
        }
    });
    let relay = Relay::to(port).expect("a port is free");
    let address = relay.url().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let connect = || {
        let mut client = TcpStream::connect(&address).expect("the relay listens");
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
