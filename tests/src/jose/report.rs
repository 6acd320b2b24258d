//! What was compared, and what differed.

use super::differences::{Difference, Facts};
use super::peer::Answer;
use mcp_proto::auth::Alg;
use serde_json::Value;
use std::collections::BTreeMap;

/// Our decision on a text.
pub(super) struct Judgement<'a> {
    pub(super) kind: &'static str,
    pub(super) text: &'a str,
    /// Whether all have to accept it.
    pub(super) is_good: bool,
    /// What we read of it, or why we refuse it.
    pub(super) ours: Result<Value, String>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Report {
    cases: usize,
    failures: usize,
    /// By kind: how many we accepted, and how many we refused.
    kinds: BTreeMap<&'static str, [usize; 2]>,
    /// What each signed.
    signed: BTreeMap<(&'static str, &'static str), usize>,
    /// How often each difference came up, with each library.
    differences: BTreeMap<(&'static str, &'static str), usize>,
}

impl Report {
    pub(super) const fn cases(&self) -> usize {
        self.cases
    }

    pub(super) const fn failures(&self) -> usize {
        self.failures
    }

    pub(super) fn signed(&mut self, by: &'static str, alg: Alg) {
        *self.signed.entry((by, alg.as_str())).or_default() += 1;
    }

    /// Counts a case. One that all have to accept fails if we refuse it.
    pub(super) fn case(&mut self, judgement: &Judgement<'_>) {
        self.cases += 1;
        self.kinds.entry(judgement.kind).or_default()[usize::from(judgement.ours.is_err())] += 1;
        if let (true, Err(why)) = (judgement.is_good, &judgement.ours) {
            self.fail(judgement, &format!("refused: {why}"));
        }
    }

    /// Compares our decision with that of a library, whose answer is this.
    pub(super) fn compare(
        &mut self,
        judgement: &Judgement<'_>,
        peer: &'static str,
        answer: &Answer,
        tables: &[&'static [Difference]],
        facts: &dyn Fn() -> Facts,
    ) {
        match (&judgement.ours, answer) {
            (Ok(ours), Ok(theirs)) => {
                if !agree(ours, theirs) {
                    self.fail(judgement, &format!("{peer} reads {theirs}, and we read {ours}"));
                }
                return;
            }
            (Err(_), Err(_)) => return,
            _ => {}
        }
        let facts = facts();
        let is_it = |known: &&Difference| {
            let is_said = match &judgement.ours {
                Ok(_) => known.says.is_empty(),
                Err(why) => known.says.iter().any(|said| why.contains(said)),
            };
            is_said && known.peers.contains(&peer) && (known.applies)(&facts)
        };
        match tables.iter().copied().flatten().find(is_it).filter(|_| !judgement.is_good) {
            Some(known) => *self.differences.entry((known.what, peer)).or_default() += 1,
            None => self.fail(judgement, &format!("{peer} says {answer:?}, and we say {:?}", judgement.ours)),
        }
    }

    fn fail(&mut self, judgement: &Judgement<'_>, why: &str) {
        self.failures += 1;
        let parts: Vec<String> = judgement.text.split('.').take(2).map(decoded).collect();
        println!("{}: {why}\n  {}\n  {}", judgement.kind, judgement.text, parts.join("\n  "));
    }

    /// Prints the numbers.
    pub(super) fn print(&self) {
        for (kind, [accepted, refused]) in &self.kinds {
            println!("{kind}: {accepted} accepted, {refused} refused");
        }
        for ((by, alg), count) in &self.signed {
            println!("signed by {by} with {alg}: {count}");
        }
        for ((what, peer), count) in &self.differences {
            println!("decided otherwise by {peer}, {count} times: {what}");
        }
        println!("jose: {} passed, {} failed", self.cases - self.failures.min(self.cases), self.failures);
    }
}

/// Returns whether what two libraries read is the same, as far as both say something.
fn agree(ours: &Value, theirs: &Value) -> bool {
    let Some(members) = ours.as_object() else { return true };
    // A value of another type than a text is none for us.
    members.iter().all(|(name, value)| match (&theirs[name.as_str()], value) {
        (Value::String(theirs), Value::String(ours)) => theirs == ours,
        (Value::String(_), _) | (_, Value::String(_)) => false,
        _ => true,
    })
}

fn decoded(part: &str) -> String {
    crate::base64url::decode(part).map_or_else(String::new, |bytes| String::from_utf8_lossy(&bytes).into_owned())
}
