//! Tests of the verdicts about the cases of Autobahn|Testsuite.

use mcp_tests::autobahn::echo::Pace;
use mcp_tests::autobahn::table::{Counts, Outcome, Verdict};

fn verdict(case: &str, behavior: &str, close: &str, code: Option<u16>) -> Verdict {
    Verdict {
        case: case.to_owned(),
        behavior: behavior.to_owned(),
        close: close.to_owned(),
        result: String::new(),
        close_result: String::new(),
        code,
        closed_by_suite: false,
        received: Vec::new(),
        expected: Vec::new(),
    }
}

#[test]
fn both_verdicts_about_a_case_decide() {
    for (behavior, close, outcome) in [
        ("OK", "OK", Outcome::Passed),
        ("OK", "UNCLEAN", Outcome::Failed),
        ("OK", "WRONG CODE", Outcome::Failed),
        ("OK", "FAILED BY CLIENT", Outcome::Failed),
        ("NON-STRICT", "OK", Outcome::NonStrict),
        ("INFORMATIONAL", "INFORMATIONAL", Outcome::Informational),
        ("INFORMATIONAL", "FAILED", Outcome::Failed),
        ("FAILED", "OK", Outcome::Failed),
        ("", "", Outcome::Failed),
    ] {
        assert_eq!(verdict("5.1", behavior, close, Some(1002)).outcome(Pace::Reads), outcome, "{behavior} {close}");
    }
}

#[test]
fn deviation_must_be_the_one_of_the_table() {
    assert_eq!(verdict("1.2.8", "FAILED", "FAILED", Some(1003)).outcome(Pace::Reads), Outcome::Deviation);
    assert_eq!(verdict("1.2.8", "FAILED", "FAILED", Some(1002)).outcome(Pace::Reads), Outcome::Failed);
    assert_eq!(verdict("1.2.8", "FAILED", "FAILED", None).outcome(Pace::Reads), Outcome::Failed);
    assert_eq!(verdict("1.2.8", "OK", "OK", Some(1000)).outcome(Pace::Reads), Outcome::Failed);
    assert_eq!(verdict("1.20.8", "FAILED", "FAILED", Some(1003)).outcome(Pace::Reads), Outcome::Failed);
    let closed_by_suite = Verdict { closed_by_suite: true, ..verdict("1.2.8", "FAILED", "FAILED", Some(1003)) };
    assert_eq!(closed_by_suite.outcome(Pace::Reads), Outcome::Failed);
}

#[test]
fn pongs_may_be_late_but_the_latest_must_come() {
    let events = |texts: &[&str]| {
        let kind = |text: &str| if text.starts_with("ping") { "pong" } else { "message" };
        texts.iter().map(|text| (kind(text).to_owned(), (*text).to_owned())).collect::<Vec<_>>()
    };
    let wanted = events(&["ping 1", "text", "ping 2", "ping 3"]);
    let seen = |case, close, received: &[&str]| {
        let verdict = verdict(case, "FAILED", close, None);
        Verdict { received: events(received), expected: wanted.clone(), ..verdict }
    };
    let outcome = |case, close, received| seen(case, close, received).outcome(Pace::Reads);
    assert_eq!(outcome("5.19", "OK", &["text", "ping 3"]), Outcome::Deviation);
    assert_eq!(outcome("5.19", "OK", &["text", "ping 1", "ping 3"]), Outcome::Deviation);
    assert_eq!(outcome("5.19", "OK", &["text", "ping 1", "ping 2"]), Outcome::Failed, "the latest is missing");
    assert_eq!(outcome("5.19", "OK", &["text", "ping 2", "ping 1", "ping 3"]), Outcome::Failed, "out of order");
    assert_eq!(outcome("5.19", "OK", &["text", "ping 3", "ping 3"]), Outcome::Failed, "one too many");
    assert_eq!(outcome("5.19", "OK", &["ping 3"]), Outcome::Failed, "no message");
    assert_eq!(outcome("5.19", "UNCLEAN", &["text", "ping 3"]), Outcome::Failed);
    assert_eq!(outcome("5.18", "OK", &["text", "ping 3"]), Outcome::Failed, "another case");
    assert_eq!(seen("5.19", "OK", &["text", "ping 3"]).outcome(Pace::Bytes), Outcome::Failed, "single bytes");
    assert_eq!(verdict("5.19", "OK", "OK", None).outcome(Pace::Reads), Outcome::Passed);
}

#[test]
fn counts_are_by_family() {
    let counts = Counts::of(
        &[
            verdict("1.1.1", "OK", "OK", None),
            verdict("1.2.1", "FAILED", "FAILED", Some(1003)),
            verdict("10.1.1", "OK", "OK", None),
            verdict("7.1.1", "FAILED", "OK", None),
        ],
        Pace::Reads,
    );
    assert_eq!((counts.total(Outcome::Passed), counts.total(Outcome::Failed)), (2, 1));
    let lines = counts.lines();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&lines[1]), ["1", "1", "0", "0", "1", "0"]);
    assert_eq!(words(&lines[7]), ["7", "0", "0", "0", "0", "1"]);
    assert_eq!(words(&lines[9]), ["10", "1", "0", "0", "0", "0"]);
    assert_eq!(words(&lines[10]), ["all", "2", "0", "0", "1", "1"]);
}
