//! The applications of a run: the tools of the server, and the records of the clients about their
//! calls.

use mcp_proto::input::{CallId, Note, RequestKey};
use mcp_proto::model::elicitation::{ElicitRequest, ElicitResult};
use mcp_proto::model::tools::CallToolResult;
use mcp_proto::route::{Cx, Routed, ToolError};
use mcp_proto::server::{Incoming, Responder};
use mcp_proto::{CallError, Handler, Instant, Outcome, Router, tool};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The marker of every secret.
pub const SECRET: &str = "sk-very-secret";

/// The arguments of the tool `work`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    /// The returned text, which identifies the right response.
    pub tag: u64,
    /// How long it takes, in milliseconds.
    pub millis: u64,
    /// The number of its progress notifications.
    pub ticks: u64,
    /// How many questions it asks, one after the other.
    pub questions: u64,
    /// How large the answer is.
    pub padding: usize,
    /// Something that no log may show.
    pub api_key: String,
}

/// The server of a run: one tool, several pages of others.
pub fn router() -> Router {
    let mut router =
        Router::new("sim", "1").add(tool("work").describe("does what its arguments say"), Handler::inline(work));
    for n in 0..7 {
        router = router.add(tool(&format!("other{n}")), Handler::inline(work));
    }
    router
}

fn work(cx: &Cx) -> Outcome {
    let done = || {
        let work: Work = cx.arguments()?;
        for n in 0..work.questions {
            let name = format!("q{n}");
            match cx.elicit(&name, ElicitRequest::form("go on?").text("answer"))? {
                ElicitResult::Accept(_) => {}
                ElicitResult::Decline | ElicitResult::Cancel => return Err(ToolError::from("declined")),
            }
        }
        Ok::<_, ToolError>(CallToolResult::text(format!("{}:{}", work.tag, "x".repeat(work.padding))))
    };
    cx.outcome(done())
}

/// A request that the server's application works on.
#[derive(Debug)]
pub struct Task {
    /// The tag of the call, unless its arguments cannot be read.
    pub tag: Option<u64>,
    responder: Option<Responder>,
    answer: Outcome,
    ticks: u64,
    told: u64,
    /// When it does something next.
    pub next: Instant,
    step: Duration,
}

/// A step of a task.
#[derive(Debug)]
pub enum Deed {
    /// It sends progress.
    Note(RequestKey, Note),
    /// It answers.
    Answer(Box<Responder>, Outcome),
}

/// Takes a request: answered at once, or a task.
pub fn take(
    router: &Router,
    responder: Responder,
    incoming: Incoming,
    now: Instant,
) -> Result<Task, mcp_proto::input::Answer> {
    match router.route(responder, incoming) {
        Routed::Answer(answer) => Err(answer),
        Routed::Handle { handler, invocation, responder } => {
            let cx = Cx::detached(invocation);
            let work = cx.arguments::<Work>().ok();
            let tag = work.as_ref().map(|work| work.tag);
            let (millis, ticks) = work.map_or((0, 0), |work| (work.millis, work.ticks));
            let answer = handler.call(&cx).expect("it returns no future");
            let step = Duration::from_millis(millis / (ticks + 1));
            Ok(Task { tag, responder: Some(responder), answer, ticks, told: 0, next: now + step, step })
        }
    }
}

impl Task {
    /// Does the next thing. The last one is the answer.
    pub fn act(&mut self, now: Instant) -> Deed {
        self.next = now + self.step;
        let responder = self.responder.take().expect("a task acts until it has answered");
        if self.told < self.ticks {
            self.told += 1;
            let key = responder.key();
            self.responder = Some(responder);
            return Deed::Note(key, Note::Progress(mcp_proto::Progress::new(self.told as f64)));
        }
        Deed::Answer(Box::new(responder), self.answer.clone())
    }
}

/// The record of a client about a call.
#[derive(Debug)]
pub struct Made {
    /// The call.
    pub call: CallId,
    /// The tag that its answer must carry; `None` for a list.
    pub tag: Option<u64>,
    /// Whether its answer takes a moment and asks nothing.
    pub brief: bool,
    /// Whether its request was sent: then it cannot outlive the server.
    pub sent: bool,
    /// The last progress seen.
    pub progress: f64,
    /// How it ended.
    pub ended: Option<Result<(), CallError>>,
}
