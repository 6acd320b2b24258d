//! The code of the application: handlers and the other callbacks of both sides. It runs in the
//! thread of the test, when the link lets it.

use super::lock;
use super::log::{LinkSide, Log};
use crate::{
    AsyncJob, ClientCallbacks, ClientLink, Job, Mailbox, Question, Questions, ReplyKey, ReplyToken, RunningCallbacks,
    ServerOptions, SharedRouter, Work,
};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use mcp_proto::client;
use mcp_proto::exchange::RequestHead;
use mcp_proto::input::{AdmitKey, AdmitToken, Change, ClientCommand, RequestKey, ServerCommand};
use mcp_proto::route::{BadReplacement, Router};
use mcp_proto::rpc::Object;
use mcp_proto::server::{IncomingRequest, Responder};
use mcp_proto::time::Instant;
use std::sync::Mutex;

/// Maximum number of polls at one instant. Only a future that wakes itself whenever it is polled
/// reaches it.
const MAX_POLLS: u32 = 100_000;

/// Handlers and callbacks: those that have not begun, and futures that have not completed.
pub(super) struct Callbacks {
    router: SharedRouter,
    options: ServerOptions,
    client: ClientCallbacks,
    running: RunningCallbacks,
    questions: Questions,
    /// Commands of the server's callbacks.
    mailbox: Mailbox,
    /// Commands of the client's callbacks.
    answers: Arc<Mutex<VecDeque<ClientCommand>>>,
    pub(super) delay: Duration,
    /// Requests whose handlers begin later, by that instant and a number.
    delayed: BTreeMap<(Instant, u64), (RequestKey, Work)>,
    /// The method and the tool of each request that is not answered.
    names: BTreeMap<RequestKey, String>,
    tasks: BTreeMap<u64, CallbackTask>,
    woken: Arc<Mutex<VecDeque<u64>>>,
    next: u64,
    /// The latest instant, and the number of polls at it.
    polls: (Instant, u32),
}

/// A future that has not completed.
struct CallbackTask {
    owner: Owner,
    job: AsyncJob,
    waker: Waker,
}

/// What a future belongs to.
#[derive(Clone, Copy)]
enum Owner {
    Handler(RequestKey),
    Admission,
    Question,
}

/// Marks a task as ready.
struct TaskWaker {
    task: u64,
    woken: Arc<Mutex<VecDeque<u64>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut woken = lock(&self.woken);
        if !woken.contains(&self.task) {
            woken.push_back(self.task);
        }
    }
}

/// A command of a callback to its engine.
pub(super) enum Command {
    Client(ClientCommand),
    Server(ServerCommand),
}

/// Returns the method of a request, and its tool or prompt.
pub(super) fn request_name(method: &str, params: &Object) -> String {
    let name = params.optional::<String>("name").ok().flatten();
    name.map_or(method.into(), |name| format!("{method} {name}"))
}

impl Callbacks {
    pub(super) fn new(router: SharedRouter, options: ServerOptions, client: ClientCallbacks) -> Self {
        Self {
            router,
            options,
            client,
            running: RunningCallbacks::default(),
            questions: Questions::default(),
            mailbox: Mailbox::default(),
            answers: Arc::default(),
            delay: Duration::ZERO,
            delayed: BTreeMap::new(),
            names: BTreeMap::new(),
            tasks: BTreeMap::new(),
            woken: Arc::default(),
            next: 0,
            polls: (Instant::ZERO, 0),
        }
    }

    /// Replaces the router of the server. Returns the lists that differ.
    pub(super) fn replace(&self, router: &Router) -> Result<Vec<Change>, BadReplacement> {
        self.router.update(&mut |_| router.clone())
    }

    /// Begins a request, after the delay.
    pub(super) fn handle(&mut self, now: Instant, responder: Responder, incoming: IncomingRequest, log: &mut Log) {
        let name = request_name(incoming.method.as_ref(), &incoming.params);
        let key = responder.key();
        let work = self.running.begin(&self.mailbox.link(), responder, incoming);
        if self.delay > Duration::ZERO {
            log.note(now, LinkSide::Server, format_args!("{name} waits {:?}", self.delay));
        }
        self.next += 1;
        self.delayed.insert((now + self.delay, self.next), (key, work));
        self.names.insert(key, name);
    }

    /// Stops the handler of a request.
    pub(super) fn cancel(&mut self, now: Instant, key: RequestKey, log: &mut Log) {
        if let Some(name) = self.names.get(&key) {
            log.note(now, LinkSide::Server, format_args!("{name} is cancelled"));
        }
        self.running.cancel(key).wake();
        self.delayed.retain(|_, (of, _)| *of != key);
    }

    /// Begins an admission.
    pub(super) fn admit(&mut self, token: AdmitToken, head: Option<Arc<RequestHead>>) {
        let work = self.running.admit(&self.mailbox.link(), token, head);
        let job = work.route(&self.router, &self.options);
        self.begin(Owner::Admission, job);
    }

    /// Stops an admission.
    pub(super) fn withdraw_admission(&self, key: AdmitKey) {
        self.running.withdraw(key).wake();
    }

    /// Returns whether the client has a callback for the question in this event.
    pub(super) fn answers(&self, event: &client::Event) -> bool {
        self.client.answers(event)
    }

    /// Begins the callback that answers a question.
    pub(super) fn ask(&mut self, token: ReplyToken, question: Question) {
        let answers = Arc::clone(&self.answers);
        let link: ClientLink = Arc::new(move |command| {
            lock(&answers).push_back(command);
            Ok(())
        });
        let asking = self.questions.begin(&link, token, question);
        let job = self.client.route(asking);
        self.begin(Owner::Question, job);
    }

    /// Stops the callback for a question.
    pub(super) fn withdraw(&self, key: ReplyKey) {
        self.questions.withdraw(key).wake();
    }

    /// Runs callbacks until one has a command for its engine. `None` if all of them wait.
    pub(super) fn step(&mut self, now: Instant, log: &mut Log) -> Option<Command> {
        loop {
            if let Some(command) = self.mailbox.poll(Waker::noop()) {
                self.running.answered(&command);
                if let ServerCommand::Respond(answer) = &command {
                    self.names.remove(&answer.key());
                }
                return Some(Command::Server(command));
            }
            let answer = lock(&self.answers).pop_front();
            if let Some(command) = answer {
                self.questions.answered(&command);
                return Some(Command::Client(command));
            }
            let woken = lock(&self.woken).pop_front();
            if let Some(task) = woken {
                self.poll(now, task);
            } else if let Some(entry) = self.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
                let (key, work) = entry.remove();
                if let Some(name) = self.names.get(&key) {
                    log.note(now, LinkSide::Server, format_args!("{name} begins"));
                }
                let job = work.route(&self.router, &self.options);
                self.begin(Owner::Handler(key), job);
            } else {
                return None;
            }
        }
    }

    /// Returns when the next delayed handler begins.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((at, _), _)| *at)
    }

    /// Returns a future that a call with this request may wait for, and that waits for something
    /// other than these wakers of the time of the link. `None` if there is none, or if that cannot
    /// be told, since a future inside another one has a waker of its own.
    pub(super) fn outside(&self, request: Option<&str>, times: &[Waker]) -> Option<String> {
        let wakes = |time: &Waker| self.tasks.values().any(|task| time.will_wake(&task.waker));
        if !times.iter().all(wakes) {
            return None;
        }
        let waits = |task: &&CallbackTask| !times.iter().any(|time| time.will_wake(&task.waker));
        self.tasks.values().filter(waits).find_map(|task| match task.owner {
            Owner::Handler(key) => {
                let name = self.names.get(&key).filter(|name| request.is_none_or(|request| request == *name))?;
                Some(format!("the handler of {name}"))
            }
            Owner::Admission => Some("the callback for admissions".into()),
            Owner::Question => Some("a callback of the client".into()),
        })
    }

    /// Returns the number of futures that have not completed.
    pub(super) fn pending(&self) -> usize {
        self.tasks.len()
    }

    fn begin(&mut self, owner: Owner, job: Option<Job>) {
        match job {
            Some(Job::Sync(job)) => job.run(),
            Some(Job::Async(job)) => {
                self.next += 1;
                let waker = Waker::from(Arc::new(TaskWaker { task: self.next, woken: Arc::clone(&self.woken) }));
                waker.wake_by_ref();
                self.tasks.insert(self.next, CallbackTask { owner, job, waker });
            }
            None => {}
        }
    }

    fn poll(&mut self, now: Instant, number: u64) {
        self.polls = if self.polls.0 == now { (now, self.polls.1 + 1) } else { (now, 1) };
        assert!(self.polls.1 < MAX_POLLS, "a future of the application wakes itself without end, and time stops");
        let Some(task) = self.tasks.get_mut(&number) else { return };
        if let Poll::Ready(finished) = Pin::new(&mut task.job).poll(&mut Context::from_waker(&task.waker)) {
            self.tasks.remove(&number);
            drop(finished);
        }
    }
}
