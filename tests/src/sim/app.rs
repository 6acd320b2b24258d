//! The application of a server: a tool that does what its arguments say, and marks that identify
//! each of its messages anywhere.

use mcp_proto::exchange::ExchangeId;
use mcp_proto::input::{Answer, Change, InputRequest, Note, RequestKey, ServerCommand};
use mcp_proto::model::elicitation::{ElicitRequest, ElicitResult, Form, UrlRequest};
use mcp_proto::model::logging::LogMessage;
use mcp_proto::model::tools::{CallToolResult, Tool};
use mcp_proto::route::{Cx, RouteResult, ToolError};
use mcp_proto::rpc::Object;
use mcp_proto::server::{Context, IncomingRequest, Responder, ServerConfig};
use mcp_proto::{Handler, Instant, LogLevel, Outcome, Progress, Router, TaskOptions, TaskSupport, tool};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The marker of every secret.
pub const SECRET: &str = "sk-very-secret";

/// What lies between the progress of one run of a handler and that of the next.
const STRIDE: u64 = 1 << 10;

/// The arguments of the tool `work`. Each world sends only those that it uses.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Work {
    /// Which client asks. All messages of the tool then have a [`Mark`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<u64>,
    /// Which call it is, unique over all clients.
    pub tag: u64,
    /// How long it takes, in milliseconds.
    pub millis: u64,
    /// The number of its progress notifications.
    pub ticks: u64,
    /// How many notifications it sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<u64>,
    /// How many questions it asks, one after the other.
    pub questions: u64,
    /// How large the answer is.
    pub padding: usize,
    /// Whether it may run twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harmless: Option<bool>,
    /// Whether it closes its stream in between, so that the client has to resume it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closes: Option<bool>,
    /// After how many messages it becomes a task, if its client has tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<u64>,
    /// Something that no log may show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
}

impl Work {
    /// Work for this client, whose messages have a mark.
    pub fn marked(host: u64) -> Self {
        let (says, flag) = (Some(0), Some(false));
        Self { host: Some(host), says, harmless: flag, closes: flag, ..Self::default() }
    }
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
    with_tools(tool("work").describe("does what its arguments say").task(TaskSupport::Optional))
}

/// The same with messages that have a mark.
pub fn marked_router() -> Router {
    with_tools(tool("work"))
}

fn with_tools(work: Tool) -> Router {
    let router = Router::new("sim", "1").tools_change().prompts_change().watchable().logging();
    let tools = (0..7).map(|n| tool(&format!("other{n}")));
    [work].into_iter().chain(tools).fold(router, |router, tool| router.add(tool, unused()))
}

/// The run itself does the work of a handler, in steps.
fn unused() -> Handler {
    Handler::inline(|_| Outcome::internal("the run does not call it"))
}

/// The result of a step of a task.
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
    /// When it does something next.
    pub next: Instant,
    responder: Option<Responder>,
    answer: Outcome,
    /// Its messages before the answer, with the numbers of its own notifications.
    notes: VecDeque<(Note, Option<u64>)>,
    pause: Duration,
}

/// The application of a server: its tools, and the requests that it works on.
pub struct Application {
    /// The tools.
    pub router: Router,
    /// The requests.
    pub tasks: BTreeMap<RequestKey, Task>,
    /// How often each call was handed out in each round.
    pub handed: BTreeMap<(u64, usize), u32>,
    /// The number of the latest run of a handler.
    pub runs: u64,
}

impl Application {
    /// An application with these tools.
    pub const fn new(router: Router) -> Self {
        Self { router, tasks: BTreeMap::new(), handed: BTreeMap::new(), runs: 0 }
    }

    /// Replaces the router, by one with another tool or without it. Returns the lists that differ.
    pub fn replace(&mut self, is_larger: bool, config: &ServerConfig) -> Vec<Change> {
        let next = self.router.clone().without_tool("other9");
        let next = if is_larger { next.add("other9", unused()) } else { next };
        self.router.replace(next, config).expect("it offers tools as before")
    }

    /// Takes a request as the next run. Returns the answer, if there is one at once.
    pub fn request(&mut self, responder: Responder, incoming: IncomingRequest, now: Instant) -> Option<ServerCommand> {
        let key = responder.key();
        self.runs += 1;
        match take(&self.router, responder, incoming, self.runs, now) {
            Ok(task) => {
                *self.handed.entry((task.mark.tag, task.round)).or_default() += 1;
                assert!(self.tasks.insert(key, task).is_none(), "a key was used twice");
                None
            }
            Err(answer) => Some(ServerCommand::Respond(answer)),
        }
    }

    /// Lets a task do the next thing. Returns what it sends.
    pub fn act(&mut self, key: RequestKey, now: Instant) -> Option<ServerCommand> {
        Some(match self.tasks.get_mut(&key)?.act(now) {
            Deed::Note(key, note, _) => ServerCommand::Notify(key, note),
            Deed::Answer(responder, outcome) => {
                self.tasks.remove(&key);
                ServerCommand::Respond(responder.write(outcome))
            }
        })
    }
}

fn take(
    router: &Router,
    responder: Responder,
    incoming: IncomingRequest,
    run: u64,
    now: Instant,
) -> Result<Task, Answer> {
    match router.route(responder, incoming) {
        RouteResult::Answer(answer) => Err(answer),
        RouteResult::Handle { invocation, responder, .. } => {
            let (context, round) = (invocation.context().clone(), invocation.incoming().inputs.len());
            let cx = Cx::detached(invocation);
            let work = match cx.arguments::<Work>() {
                Ok(work) => work,
                Err(error) => return Err(responder.write(cx.outcome(Err::<(), _>(error)))),
            };
            let mark = Mark { host: work.host.unwrap_or_default(), tag: work.tag, run };
            let notes = notes(&work, mark);
            let pause = Duration::from_millis(work.millis / (notes.len() as u64 + 1));
            let answer = outcome(&cx, &work, mark);
            let responder = Some(responder);
            Ok(Task { mark, context, round, next: now + pause, responder, answer, notes, pause })
        }
    }
}

fn notes(work: &Work, mark: Mark) -> VecDeque<(Note, Option<u64>)> {
    let first = work.host.map_or(0, |_| mark.run * STRIDE);
    let progress = |n: u64| (Note::Progress(Progress::new((first + n) as f64)), None);
    let said = |n: u64| {
        let params = Object::new().with("mark", mark.text().as_str()).with("n", n);
        (Note::Custom("acme/said".into(), params), Some(n))
    };
    let logged = |n: u64| {
        let level = LogLevel::ALL[n as usize % LogLevel::ALL.len()];
        (Note::Log(LogMessage::new(level, mark.text().as_str())), None)
    };
    // Each other one has a log message before it, as far as the client wants it.
    let said = (1..=work.says.unwrap_or_default())
        .flat_map(|n| (work.host.is_some() && n % 2 == 1).then(|| logged(n + mark.run)).into_iter().chain([said(n)]));
    let mut notes: VecDeque<_> = (1..=work.ticks).map(progress).chain(said).collect();
    if let Some(at) = work.task {
        let options = TaskOptions::new().poll(Duration::from_millis(100));
        notes.insert(notes.len().min(at as usize), (Note::IntoTask(options), None));
        let status = (Note::Status(mark.text()), None);
        notes.push_back(status);
    }
    if work.closes == Some(true) {
        notes.insert(notes.len() / 2, (Note::CloseStream(None), None));
    }
    notes
}

fn outcome(cx: &Cx, work: &Work, mark: Mark) -> Outcome {
    let is_marked = work.host.is_some();
    let done = || {
        for n in 0..work.questions {
            let question = if is_marked { format!("{} question {n}", mark.text()) } else { "go on?".into() };
            let name = format!("q{n}");
            let is_page = (work.tag + n).is_multiple_of(3) && cx.context().capabilities().elicits_urls();
            let answer = match is_page {
                true => cx.elicit_url(&name, page(work, mark, question))?,
                false => cx.elicit(&name, Form::new(question).text("answer"))?,
            };
            match answer {
                ElicitResult::Accept(content) if is_page => {
                    assert!(content.is_empty(), "what is on a page stays there")
                }
                ElicitResult::Accept(content) if is_marked => {
                    let answer: String = content.required("answer").expect("the form has it");
                    assert_eq!(answer, reply(mark.host, mark.tag), "the answer to another question");
                }
                ElicitResult::Accept(_) => {}
                ElicitResult::Decline | ElicitResult::Cancel if is_marked => {
                    return Err(ToolError::from(format!("{} declined", mark.text())));
                }
                ElicitResult::Decline | ElicitResult::Cancel => return Err(ToolError::from("declined")),
            }
        }
        let name = if is_marked { mark.text() } else { format!("{}:", work.tag) };
        Ok::<_, ToolError>(CallToolResult::text(name + &"x".repeat(work.padding)))
    };
    cx.outcome(done())
}

/// A web page for the user. Its id has the mark, if the messages have one.
fn page(work: &Work, mark: Mark, question: String) -> UrlRequest {
    let page = UrlRequest::new(question, "https://pages.example/");
    page.id(if work.host.is_some() { mark.text() } else { work.tag.to_string() })
}

/// Returns a change of a list or of a resource, or for the last two of eight whether the router is
/// to be replaced by the larger one.
pub fn some_change(n: u64) -> Result<Change, bool> {
    match n {
        0 => Ok(Change::Prompts),
        1..=3 => Ok(Change::Resource(format!("sim:{n}"))),
        4 => Ok(Change::Resource("sim:1/part".into())),
        5 => Ok(Change::Tools),
        _ => Err(n == 6),
    }
}

/// Returns progress of a request that does not exist.
pub fn stray_note() -> ServerCommand {
    ServerCommand::Notify(RequestKey::new(9999), Note::Progress(Progress::new(1.0)))
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
        let Some((note, number)) = self.notes.pop_front() else {
            return Deed::Answer(Box::new(responder), self.answer.clone());
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
    pub fn exchange(&self) -> Option<ExchangeId> {
        self.responder.as_ref().map(Responder::exchange)
    }

    /// The rest of a cancelled task: its responder, which has no effect any more.
    pub fn into_late_answer(self) -> Option<Answer> {
        self.responder.map(|responder| responder.write(self.answer))
    }

    /// The ids of the web pages that it asks its client to open.
    pub fn pages(&self) -> Vec<String> {
        let Outcome::NeedInput { requests, .. } = &self.answer else { return Vec::new() };
        let id = |request: &InputRequest| match request {
            InputRequest::Elicitation(ElicitRequest::Url(page)) => page.elicitation_id.clone(),
            _ => None,
        };
        requests.iter().filter_map(|(_, request)| id(request)).collect()
    }

    /// Whether it asks its client instead of answering.
    pub const fn asks(&self) -> bool {
        matches!(self.answer, Outcome::NeedInput { .. })
    }
}
