//! What judges other people must itself be right.

use std::process::Command;

use serde_json::json;

use super::clients::verdict;
use super::processes::Watch;
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
