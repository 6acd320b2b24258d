//! The server's application of a run: a tool that does what its arguments say, and marks that
//! identify each of its messages anywhere.

use mcp_proto::input::{Answer, Note, RequestKey};
use mcp_proto::model::elicitation::{ElicitRequest, ElicitResult};
use mcp_proto::model::tools::CallToolResult;
use mcp_proto::route::{Cx, Routed, ToolError};
use mcp_proto::rpc::Object;
use mcp_proto::server::{Context, Incoming, Responder};
use mcp_proto::{Handler, Instant, Outcome, Progress, Router, tool};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// What lies between the progress of one run of a handler and that of the next.
const STRIDE: u64 = 1 << 10;

/// The arguments of the tool `work`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Work {
    /// Which client asks.
    pub host: u64,
    /// Which call it is, unique over all clients.
    pub tag: u64,
    /// How long it takes, in milliseconds.
    pub millis: u64,
    /// The number of its progress notifications.
    pub ticks: u64,
    /// How many notifications it sends.
    pub says: u64,
    /// How many questions it asks, one after the other.
    pub questions: u64,
    /// How large the answer is.
    pub padding: usize,
    /// Whether it may run twice.
    pub harmless: bool,
    /// Whether it closes its stream in between, so that the client has to resume it.
    pub closes: bool,
}

/// The owner of a message: every notification, input request and response of the application
/// contains it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mark {
    /// The client.
    pub host: u64,
    /// The call.
    pub tag: u64,
    /// The run of the handler: never the same twice.
    pub run: u64,
}

impl Mark {
    /// Its form in a text.
    pub fn text(self) -> String {
        format!("mark:{}:{}:{};", self.host, self.tag, self.run)
    }

    /// Returns all marks in a text.
    pub fn all(text: &str) -> Vec<Self> {
        text.split("mark:").skip(1).filter_map(Self::read).collect()
    }

    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split(';').next()?.split(':').map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { host: next()?, tag: next()?, run: next()? })
    }

    /// The run that sent this progress.
    pub fn run_of(progress: f64) -> u64 {
        progress as u64 / STRIDE
    }
}

/// The server of a run: one tool, several pages of others.
pub fn router() -> Router {
    let mut router = Router::new("sim", "1").tools_change().add(tool("work"), unused());
    for n in 0..7 {
        router = router.add(tool(&format!("other{n}")), unused());
    }
    router
}

/// The run itself does the work of a handler, in steps.
fn unused() -> Handler {
    Handler::inline(|_| Outcome::internal("the run does not call it"))
}

/// A step of a task.
#[derive(Clone, Copy, Debug)]
enum Step {
    Progress(u64),
    Say(u64),
    Close,
}

/// The result of a step.
#[derive(Debug)]
pub enum Deed {
    /// It sends a message. The number is that of the notification within its run, if it is one.
    Note(RequestKey, Note, Option<u64>),
    /// It answers.
    Answer(Box<Responder>, Outcome),
}

/// A request that the server's application works on.
#[derive(Debug)]
pub struct Task {
    /// Whose it is.
    pub mark: Mark,
    /// The peer, as reported by the engine.
    pub context: Context,
    /// Responses that came before this run.
    pub round: usize,
    /// Its input requests.
    pub work: Work,
    /// When it does something next.
    pub next: Instant,
    responder: Option<Responder>,
    answer: Outcome,
    steps: VecDeque<Step>,
    pause: Duration,
}

/// Takes a request: answered at once, or a task. `run` is the number of the run that it may be.
pub fn take(router: &Router, responder: Responder, incoming: Incoming, run: u64, now: Instant) -> Result<Task, Answer> {
    match router.route(responder, incoming) {
        Routed::Answer(answer) => Err(answer),
        Routed::Handle { invocation, responder, .. } => {
            let (context, round) = (invocation.context().clone(), invocation.incoming().inputs.len());
            let cx = Cx::detached(invocation);
            let work = match cx.arguments::<Work>() {
                Ok(work) => work,
                Err(error) => return Err(responder.write(cx.outcome(Err::<(), _>(error)))),
            };
            let mark = Mark { host: work.host, tag: work.tag, run };
            let mut steps: VecDeque<Step> = (1..=work.ticks).map(Step::Progress).collect();
            steps.extend((1..=work.says).map(Step::Say));
            if work.closes {
                steps.insert(steps.len() / 2, Step::Close);
            }
            let pause = Duration::from_millis(work.millis / (steps.len() as u64 + 1));
            let answer = outcome(&cx, &work, mark);
            let responder = Some(responder);
            Ok(Task { mark, context, round, work, next: now + pause, responder, answer, steps, pause })
        }
    }
}

fn outcome(cx: &Cx, work: &Work, mark: Mark) -> Outcome {
    let done = || {
        for n in 0..work.questions {
            let question = ElicitRequest::form(format!("{} question {n}", mark.text())).text("answer");
            match cx.elicit(&format!("q{n}"), question)? {
                ElicitResult::Accept(content) => {
                    let answer: String = content.required("answer").expect("the form has it");
                    assert_eq!(answer, reply(work.host, work.tag), "the answer to another question");
                }
                ElicitResult::Decline | ElicitResult::Cancel => {
                    return Err(ToolError::from(format!("{} declined", mark.text())));
                }
            }
        }
        Ok::<_, ToolError>(CallToolResult::text(format!("{}{}", mark.text(), "x".repeat(work.padding))))
    };
    cx.outcome(done())
}

/// Returns the response of a client to an input request of its call.
pub fn reply(host: u64, tag: u64) -> String {
    format!("reply {host} {tag}")
}

impl Task {
    /// Does the next thing. The last one is the answer.
    pub fn act(&mut self, now: Instant) -> Deed {
        self.next = now + self.pause;
        let responder = self.responder.take().expect("a task acts until it has answered");
        let key = responder.key();
        let (note, number) = match self.steps.pop_front() {
            None => return Deed::Answer(Box::new(responder), self.answer.clone()),
            Some(Step::Close) => (Note::CloseStream(None), None),
            Some(Step::Progress(n)) => (Note::Progress(Progress::new((self.mark.run * STRIDE + n) as f64)), None),
            Some(Step::Say(n)) => {
                let params = Object::new().with("mark", self.mark.text().as_str()).with("n", n);
                (Note::Custom("acme/said".into(), params), Some(n))
            }
        };
        self.responder = Some(responder);
        Deed::Note(key, note, number)
    }

    /// It does not answer yet, though it could.
    pub fn resume(&mut self, responder: Responder, until: Instant) {
        self.responder = Some(responder);
        self.next = until;
    }

    /// The exchange of the request.
    pub fn exchange(&self) -> Option<mcp_proto::exchange::ExchangeId> {
        self.responder.as_ref().map(Responder::exchange)
    }

    /// The rest of a cancelled task: its responder, which has no effect any more.
    pub fn into_late_answer(self) -> Option<Answer> {
        self.responder.map(|responder| responder.write(self.answer))
    }

    /// Whether it asks its client instead of answering.
    pub const fn asks(&self) -> bool {
        matches!(self.answer, Outcome::NeedInput { .. })
    }
}
