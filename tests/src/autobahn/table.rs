//! Judges the verdicts of the suite, and counts them by family.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::FAMILIES;
use super::echo::Pace;

/// A verdict of the suite about one case.
#[derive(Clone, Debug, Deserialize)]
pub struct Verdict {
    /// The number of the case, such as `6.4.1`.
    pub case: String,
    /// What the suite says of the messages.
    pub behavior: String,
    /// What the suite says of the end of the connection.
    #[serde(rename = "behaviorClose")]
    pub close: String,
    /// The reason for `behavior`.
    pub result: String,
    /// The reason for `close`.
    #[serde(rename = "resultClose")]
    pub close_result: String,
    /// The code of the `Close` that we sent.
    #[serde(rename = "closeCode")]
    pub code: Option<u16>,
    /// Whether the suite was the first to close the connection.
    #[serde(rename = "closedByMe")]
    pub closed_by_suite: bool,
    /// What it received: the kind and the beginning of each message and pong.
    pub received: Vec<(String, String)>,
    /// What it wants to receive.
    pub expected: Vec<(String, String)>,
}

/// Cases with another result than the suite wants, on purpose.
#[derive(Clone, Copy, Debug)]
pub struct Deviation {
    /// The numbers of the cases, or the first parts of the numbers of several.
    pub cases: &'static [&'static str],
    /// The result.
    pub result: Instead,
    /// The reason.
    pub why: &'static str,
}

/// What a known deviation looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instead {
    /// We close the connection with this code.
    Closed(u16),
    /// Pongs come later or are missing, but not the latest one, and the messages are as wanted.
    /// Whether they do depends on what one read returns: the wanted result passes as well, and it
    /// is required at [`Pace::Bytes`].
    LatePongs,
}

/// All deviations.
pub const DEVIATIONS: [Deviation; 2] = [
    Deviation {
        cases: &["1.2", "9.2", "9.4", "9.6", "9.8"],
        result: Instead::Closed(1003),
        why: "a binary message is refused, since a message of MCP is text (RFC 6455 section 7.4.1)",
    },
    Deviation {
        cases: &["2.10", "2.11", "5.6", "5.7", "5.8", "5.19", "5.20"],
        result: Instead::LatePongs,
        why: "of the pings in one read only the latest is answered, after the messages of that read (section 5.5.3)",
    },
];

/// The judgement of a case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// As the suite wants it.
    Passed,
    /// Conforming, but not what RFC 6455 recommends.
    NonStrict,
    /// The suite only reports what it saw.
    Informational,
    /// One of [`DEVIATIONS`].
    Deviation,
    /// Anything else.
    Failed,
}

const OUTCOMES: [(Outcome, &str); 5] = [
    (Outcome::Passed, "passed"),
    (Outcome::NonStrict, "non-strict"),
    (Outcome::Informational, "informational"),
    (Outcome::Deviation, "deviation"),
    (Outcome::Failed, "failed"),
];

impl Verdict {
    /// Returns the judgement about a side of this pace.
    pub fn outcome(&self, pace: Pace) -> Outcome {
        let known = DEVIATIONS.iter().find(|known| known.cases.iter().any(|parts| is_in(&self.case, parts)));
        match (self.behavior.as_str(), self.close.as_str(), known.map(|known| known.result)) {
            ("FAILED", _, Some(Instead::Closed(code))) if self.code == Some(code) && !self.closed_by_suite => {
                Outcome::Deviation
            }
            // Also if the suite is content: then the table is to be changed.
            (.., Some(Instead::Closed(_))) => Outcome::Failed,
            ("FAILED", "OK", Some(Instead::LatePongs)) if pace == Pace::Reads && self.has_late_pongs() => {
                Outcome::Deviation
            }
            ("OK", "OK", _) => Outcome::Passed,
            ("NON-STRICT", "OK", _) => Outcome::NonStrict,
            ("INFORMATIONAL", "OK" | "INFORMATIONAL", _) => Outcome::Informational,
            _ => Outcome::Failed,
        }
    }

    /// Returns whether only the time and the number of pongs differ from what the suite wants.
    fn has_late_pongs(&self) -> bool {
        let split = |events: &[(String, String)]| -> (Vec<_>, Vec<_>) {
            events.iter().cloned().partition(|(kind, _)| kind == "pong")
        };
        let (pongs, others) = split(&self.received);
        let (wanted_pongs, wanted_others) = split(&self.expected);
        let mut wanted = wanted_pongs.iter();
        let is_subsequence = pongs.iter().all(|pong| wanted.any(|other| other == pong));
        others == wanted_others && is_subsequence && pongs.last() == wanted_pongs.last()
    }

    fn family(&self) -> &str {
        self.case.split('.').next().unwrap_or_default()
    }
}

/// Returns whether a number begins with these parts.
fn is_in(case: &str, parts: &str) -> bool {
    case.strip_prefix(parts).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Counts(BTreeMap<(String, Outcome), usize>);

impl Counts {
    /// Counts the verdicts about a side of this pace.
    pub fn of(verdicts: &[Verdict], pace: Pace) -> Self {
        let mut counts = BTreeMap::new();
        for verdict in verdicts {
            *counts.entry((verdict.family().to_owned(), verdict.outcome(pace))).or_default() += 1;
        }
        Self(counts)
    }

    /// Returns the number of cases with this outcome.
    pub fn total(&self, outcome: Outcome) -> usize {
        self.0.iter().filter(|((_, of), _)| *of == outcome).map(|(_, count)| count).sum()
    }

    fn line(&self, name: &str, count: impl Fn(Outcome) -> usize) -> String {
        OUTCOMES.iter().fold(format!("{name:<8}"), |line, (outcome, _)| format!("{line} {:>13}", count(*outcome)))
    }

    /// Returns a line for each family, and one for all.
    pub fn lines(&self) -> Vec<String> {
        let header = OUTCOMES.iter().fold(format!("{:<8}", "family"), |line, (_, name)| format!("{line} {name:>13}"));
        let of = |family: &str, outcome| self.0.get(&(family.to_owned(), outcome)).copied().unwrap_or_default();
        let families = FAMILIES.iter().map(|family| self.line(family, |outcome| of(family, outcome)));
        [header].into_iter().chain(families).chain([self.line("all", |outcome| self.total(outcome))]).collect()
    }
}
