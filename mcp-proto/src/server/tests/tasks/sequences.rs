//! Every sequence of what can happen to a task, against a model of a few lines.

use super::*;
use crate::sizes::scaled;

/// What its handler, its client, other clients and the time do to a task.
#[derive(Clone, Copy, Debug)]
enum Step {
    Complete,
    Fail,
    Ask,
    /// An answer to one question.
    AnswerOne,
    /// Answers to all questions.
    AnswerAll,
    /// An answer of another shape.
    AnswerBadly,
    /// An update of a task that does not exist.
    AnswerElsewhere,
    Cancel,
    /// Its time, or that after its end, is over.
    Expire,
    /// Its client comes on another connection.
    Reconnect,
}

const STEPS: [Step; 10] = [
    Step::Complete,
    Step::Fail,
    Step::Ask,
    Step::AnswerOne,
    Step::AnswerAll,
    Step::AnswerBadly,
    Step::AnswerElsewhere,
    Step::Cancel,
    Step::Expire,
    Step::Reconnect,
];

const TTL: Duration = Duration::from_secs(600);

/// A server with one task, and what is known of it.
struct Run {
    bench: Bench,
    x: ExchangeId,
    id: String,
    /// That of the handler, also after the end of the task.
    responder: Option<Responder>,
    /// The status. `None`: it is removed.
    status: Option<&'static str>,
    /// The questions without an answer.
    open: Vec<String>,
    asked: u32,
}

impl Run {
    fn new() -> Self {
        let mut bench = bench();
        let handed = bench.request(A, &call(1, BOTH));
        let created = bench.becomes(A, &handed, TaskOptions::new().ttl(TTL));
        let id = created.required("taskId").unwrap();
        Self { bench, x: A, id, responder: Some(handed.0), status: Some("working"), open: Vec::new(), asked: 0 }
    }

    fn has_ended(&self) -> bool {
        !matches!(self.status, Some("working" | "input_required"))
    }

    /// The handler ends, if it runs. Its outcome counts only while the task goes on.
    fn handle(&mut self, outcome: Outcome, status: &'static str) {
        let Some(responder) = self.responder.take() else { return };
        self.bench.answer(responder, outcome);
        if self.status == Some("working") {
            self.status = Some(status);
        } else {
            self.open.clear();
        }
    }

    /// Sends an update. Returns whether it is taken.
    fn update(&mut self, id: &str, of: &[(&str, &str)]) -> bool {
        self.bench.item(self.x, read(&answers(2, id, of)));
        let mut taken = None;
        for output in self.bench.outputs() {
            if let Some(line) = on(self.x, &output) {
                taken = Some(line.contains(r#""resultType":"complete""#));
                assert!(taken == Some(true) || error(&line).code == -32602, "{line}");
            } else if let Output::Event(Event::Request(responder, _)) = output {
                assert!(self.responder.replace(responder).is_none(), "one handler runs at a time");
            }
        }
        taken.expect("a response")
    }

    fn answer(&mut self, names: &[String], answer: &str) -> bool {
        let id = self.id.clone();
        let unknown = [("unknown", answer)];
        let of: Vec<(&str, &str)> = names.iter().map(|name| (&**name, answer)).collect();
        self.update(&id, if of.is_empty() { &unknown } else { &of })
    }

    fn take(&mut self, step: Step) {
        let exists = self.status.is_some();
        match step {
            Step::Complete => self.handle(Outcome::Complete(object("{}")), "completed"),
            Step::Fail => self.handle(Outcome::Error(ErrorObject::new(-1, "no")), "failed"),
            Step::Ask => {
                let names = ["a", "b"].map(|name| format!("{name}{}", self.asked));
                self.asked += 1;
                if self.responder.is_some() {
                    self.open = names.to_vec();
                }
                let requests = names.iter().map(|name| question(name)).collect();
                self.handle(Outcome::NeedInput { requests, state: None }, "input_required");
            }
            Step::AnswerOne | Step::AnswerAll => {
                let count = if matches!(step, Step::AnswerOne) { 1 } else { 2 };
                let names: Vec<String> = self.open.drain(..count.min(self.open.len())).collect();
                assert_eq!(self.answer(&names, ACCEPTED), exists);
                if self.open.is_empty() && self.status == Some("input_required") {
                    self.status = Some("working");
                    assert!(self.responder.is_some(), "the handler runs again");
                }
            }
            Step::AnswerBadly => {
                let names = self.open.clone();
                assert_eq!(self.answer(&names, "7"), exists && names.is_empty());
            }
            Step::AnswerElsewhere => assert!(!self.update("elsewhere", &[("a0", ACCEPTED)])),
            Step::Cancel => {
                self.bench.item(self.x, read(&about(3, "tasks/cancel", &self.id, "")));
                let outputs = self.bench.outputs();
                let stops = outputs.iter().any(|output| matches!(output, Output::Event(Event::Cancelled(_))));
                assert_eq!(stops, self.status == Some("working"), "its handler stops, once");
                if !self.has_ended() {
                    self.status = Some("cancelled");
                }
            }
            Step::Expire => {
                self.bench.pass(TTL);
                self.status = if self.has_ended() { None } else { Some("failed") };
            }
            Step::Reconnect => {
                self.bench.handle_event(self.x, failed());
                self.x = ExchangeId(self.x.0 + 100);
                let before = core::mem::replace(&mut self.bench, bench());
                self.bench = before.open(self.x);
            }
        }
        if self.has_ended() {
            self.open.clear();
        }
        self.bench.outputs();
        let said = self.bench.say(self.x, &about(4, "tasks/get", &self.id, ""));
        match self.status {
            Some(status) => assert_eq!(result(&said[0]).str("status").as_deref(), Some(status)),
            None => assert_eq!(error(&said[0]).code, -32602),
        }
    }

    /// Everything is over: nothing is left.
    fn end(mut self) {
        self.take(Step::Complete);
        self.bench.pass(TTL);
        self.bench.pass(TTL);
        assert!(self.bench.server.wire.env.tasks.is_empty() && self.bench.server.requests.is_empty());
        assert_eq!(self.bench.server.running(), 0);
    }
}

// covers: TASKX-B-017, TASKX-S-021, TASKX-S-023, TASKX-S-028
#[test]
fn every_sequence_ends_a_task_once_and_leaves_nothing() {
    for sequence in 0..scaled(100_000) {
        let steps: Vec<Step> = (0..5).map(|at| STEPS[sequence / 10_usize.pow(at) % 10]).collect();
        let mut run = Run::new();
        for step in &steps {
            run.take(*step);
        }
        run.end();
    }
}
