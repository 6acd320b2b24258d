//! The inputs of the engines of a simulated run, in names of the harness: renames in a crate change
//! nothing here.

use mcp_proto::call::{CallOptions, RawCall};
use mcp_proto::exchange::{Closed, ConnectionId, ExitStatus, Headers, IoEvent, Peer};
use mcp_proto::input::{
    Admission, AdmitKey, AuthKey, Authorization, CallId, Change, ClientCommand, Input, InputAnswer, InputKey,
    Principal, ServerCommand, WiredClientInput, WiredServerInput,
};
use mcp_proto::model::elicitation::ElicitResult;
use mcp_proto::rpc::{Object, RawJson};
use mcp_proto::{Instant, LogLevel, Watch};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The engine of a run that gets an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Engine {
    /// The client of this number.
    Client(u64),
    /// The server.
    Server,
}

/// One input: which engine, when in nanoseconds, and what.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry(pub Engine, pub u64, pub Op);

/// An input of an engine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Op {
    /// A new client, in place of one with the same number. `rng` is the state of the generator that
    /// draws its configuration.
    Client {
        /// The state.
        rng: u64,
        /// The seed of the engine.
        seed: [u8; 32],
    },
    /// A new server, in place of the last one.
    Server([u8; 32]),
    /// The server is gone.
    Crash,
    /// The server gets a connection.
    Accept,
    /// Something happened to this connection.
    Wire(u64, WireOp),
    /// Time has passed.
    Tick,
    /// The application of a client commands something.
    Command(CommandOp),
    /// The task of this request, an application of the server, does the next thing.
    Act(u64),
    /// The late response to this request, which was cancelled.
    Late(u64),
    /// Progress of a request that does not exist.
    StrayNote,
    /// The tools, the prompts or the resources changed, or the resource of this URI.
    Publish(ChangeOp),
    /// The router of the server is replaced, by one with another tool or without it.
    Replace(bool),
    /// The web page with this id is complete.
    Elicited(String),
    /// The access of this principal ends.
    Revoke(String),
    /// The application decides about the item with this key.
    Admit(u64, AdmissionOp),
    /// The server ends within this number of milliseconds.
    Shutdown(u64),
    /// The counters of the engine of the run until now. Compared while a run is recorded, and not
    /// written to a file.
    Stats(String),
}

/// What happened to a connection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum WireOp {
    /// It is open.
    Opened,
    /// These bytes were read, each as one character.
    Bytes(String),
    /// The peer sends no more.
    Eof,
    /// This number of bytes was written.
    Written(usize),
    /// It is closed.
    Closed(ClosedOp),
}

/// How a connection was closed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of mcp_proto::exchange::Closed")]
pub enum ClosedOp {
    Eof,
    Reset,
    Refused,
    Unresolved,
    Unreachable(String),
    Exited(Option<i32>, Option<i32>),
    Aborted,
    Timeout,
}

/// A command of a client's application.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of mcp_proto::input::ClientCommand and mcp_proto::call::CallOptions")]
pub enum CommandOp {
    Call { method: String, params: String, options: OptionsOp },
    Cancel(u64, Option<String>),
    Answer(u64, AnswerOp),
    Elicited(String),
    Notify(String, String),
    NotifyTracked(String, String),
    Authorize(u64, Option<String>),
    Watch { lists: [bool; 3], uris: Vec<String> },
    LogLevel(Option<String>),
    CredentialsChanged,
    RootsChanged,
    Close,
}

/// A change.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of mcp_proto::input::Change")]
pub enum ChangeOp {
    Tools,
    Prompts,
    Resources,
    Resource(String),
}

/// How to wait for a call, in milliseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of mcp_proto::call::CallOptions")]
pub struct OptionsOp {
    pub timeout: Limit,
    pub reset_on_progress: Option<bool>,
    pub max_total: Option<u64>,
    pub progress: bool,
    pub repeatable: bool,
    pub as_task: bool,
}

/// A time limit, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Limit {
    Configured,
    Never,
    After(u64),
}

/// An answer to an elicitation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of mcp_proto::model::elicitation::ElicitResult")]
pub enum AnswerOp {
    Accept(String),
    Decline,
    Cancel,
}

/// A decision about a request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of mcp_proto::input::Admission")]
pub enum AdmissionOp {
    Accept(Option<String>),
    Unauthorized(String),
    Forbidden(Option<String>),
}

impl Entry {
    /// Returns the time.
    pub const fn at(&self) -> Instant {
        Instant::new(Duration::from_nanos(self.1))
    }
}

impl Op {
    /// Returns the input, if it is one of a client.
    pub fn of_client(&self) -> Option<WiredClientInput> {
        match self {
            Self::Wire(connection, wire) => Some(Input::Event(ConnectionId(*connection), wire.wire())),
            Self::Command(command) => Some(Input::Command(command.command())),
            Self::Tick => Some(Input::Tick),
            _ => None,
        }
    }
}

/// The inputs of a run that is recorded; of any other run, nothing.
#[derive(Debug, Default)]
pub struct Log(Option<Vec<Entry>>);

impl Log {
    /// A log that records its entries.
    pub const fn on() -> Self {
        Self(Some(Vec::new()))
    }

    /// Keeps an input.
    pub fn push(&mut self, engine: Engine, at: Instant, op: impl FnOnce() -> Op) {
        if let Some(entries) = &mut self.0 {
            let at = u64::try_from(at.since_origin().as_nanos()).expect("no run takes centuries");
            entries.push(Entry(engine, at, op()));
        }
    }

    /// Keeps an input of a client.
    pub fn client(&mut self, number: u64, at: Instant, input: &WiredClientInput) {
        self.push(Engine::Client(number), at, || match input {
            Input::Event(connection, wire) => Op::Wire(connection.0, wire.into()),
            Input::Command(command) => Op::Command(command.into()),
            Input::Tick => Op::Tick,
        });
    }

    /// Keeps an input of the server, except responses and notifications: those are [`Op::Act`] or
    /// [`Op::Late`] of a task.
    pub fn server(&mut self, at: Instant, input: &WiredServerInput) {
        if self.0.is_none() {
            return;
        }
        let op = match input {
            Input::Event(connection, wire) => Op::Wire(connection.0, wire.into()),
            Input::Tick => Op::Tick,
            Input::Command(ServerCommand::Respond(_) | ServerCommand::Notify(..)) => return,
            Input::Command(ServerCommand::Publish(change)) => Op::Publish(change.into()),
            Input::Command(ServerCommand::Elicited(id)) => Op::Elicited(id.clone()),
            Input::Command(ServerCommand::Revoke(principal)) => Op::Revoke(principal.as_str().to_owned()),
            Input::Command(ServerCommand::Admit(key, admission)) => Op::Admit(key.number(), admission.into()),
            Input::Command(ServerCommand::Shutdown(grace)) => Op::Shutdown(millis(*grace)),
            Input::Command(ServerCommand::Stored(..) | ServerCommand::Arrived(_)) => panic!("there is no store"),
        };
        self.push(Engine::Server, at, || op);
    }

    /// Returns the inputs of a client, with their times.
    pub fn of_client(&self, number: u64) -> impl Iterator<Item = (Instant, WiredClientInput)> {
        let entries = self.0.iter().flatten().filter(move |Entry(engine, ..)| *engine == Engine::Client(number));
        entries.filter_map(|entry| Some((entry.at(), entry.2.of_client()?)))
    }

    /// Returns the entries.
    pub fn take(&mut self) -> Vec<Entry> {
        self.0.take().unwrap_or_default()
    }
}

fn millis(duration: Duration) -> u64 {
    let millis = u64::try_from(duration.as_millis()).expect("no run takes centuries");
    assert_eq!(Duration::from_millis(millis), duration, "a fraction of a millisecond");
    millis
}

impl From<&IoEvent> for WireOp {
    fn from(wire: &IoEvent) -> Self {
        match wire {
            IoEvent::Opened(peer) => {
                assert_eq!(*peer, Peer::default(), "peers are not recorded");
                Self::Opened
            }
            IoEvent::Secured => panic!("TLS is not recorded"),
            IoEvent::Read(bytes) => Self::Bytes(bytes.iter().copied().map(char::from).collect()),
            IoEvent::ReadClosed => Self::Eof,
            IoEvent::Written(n) => Self::Written(*n),
            IoEvent::Closed(why) => Self::Closed(match why {
                Closed::Eof => ClosedOp::Eof,
                Closed::Reset => ClosedOp::Reset,
                Closed::Refused => ClosedOp::Refused,
                Closed::Unresolved => ClosedOp::Unresolved,
                Closed::Unreachable(text) => ClosedOp::Unreachable(text.clone()),
                Closed::Exited(status) => ClosedOp::Exited(status.code, status.signal),
                Closed::Aborted => ClosedOp::Aborted,
                Closed::Timeout => ClosedOp::Timeout,
                other => panic!("no driver reports {other:?}"),
            }),
        }
    }
}

impl WireOp {
    /// As a driver reports it.
    pub fn wire(&self) -> IoEvent {
        match self {
            Self::Opened => IoEvent::Opened(Peer::default()),
            Self::Bytes(text) => {
                let byte = |c| u8::try_from(u32::from(c)).expect("each character is a byte");
                IoEvent::Read(text.chars().map(byte).collect::<Vec<_>>().into())
            }
            Self::Eof => IoEvent::ReadClosed,
            Self::Written(n) => IoEvent::Written(*n),
            Self::Closed(why) => IoEvent::Closed(match why {
                ClosedOp::Eof => Closed::Eof,
                ClosedOp::Reset => Closed::Reset,
                ClosedOp::Refused => Closed::Refused,
                ClosedOp::Unresolved => Closed::Unresolved,
                ClosedOp::Unreachable(text) => Closed::Unreachable(text.clone()),
                ClosedOp::Exited(Some(code), _) => Closed::Exited(ExitStatus::exited(*code)),
                ClosedOp::Exited(None, Some(signal)) => Closed::Exited(ExitStatus::killed(*signal)),
                ClosedOp::Exited(None, None) => Closed::Exited(ExitStatus::default()),
                ClosedOp::Aborted => Closed::Aborted,
                ClosedOp::Timeout => Closed::Timeout,
            }),
        }
    }
}

impl From<&ClientCommand> for CommandOp {
    fn from(command: &ClientCommand) -> Self {
        let json = |object: &Object| object.to_json().as_str().to_owned();
        match command {
            ClientCommand::Call(call) => Self::Call {
                method: call.method.clone().into_owned(),
                params: json(call.params.as_ref().expect("params that can be written")),
                options: OptionsOp {
                    timeout: match call.options.timeout {
                        None => Limit::Configured,
                        Some(None) => Limit::Never,
                        Some(Some(limit)) => Limit::After(millis(limit)),
                    },
                    reset_on_progress: call.options.reset_on_progress,
                    max_total: call.options.max_total.map(millis),
                    progress: call.options.progress,
                    repeatable: call.options.repeatable,
                    as_task: call.options.as_task,
                },
            },
            ClientCommand::Cancel(call, reason) => Self::Cancel(call.0, reason.clone()),
            ClientCommand::Answer(key, InputAnswer::Elicitation(answer)) => Self::Answer(
                key.number(),
                match answer {
                    ElicitResult::Accept(content) => AnswerOp::Accept(json(content)),
                    ElicitResult::Decline => AnswerOp::Decline,
                    ElicitResult::Cancel => AnswerOp::Cancel,
                },
            ),
            ClientCommand::Elicited(id) => Self::Elicited(id.clone()),
            ClientCommand::Notify(method, params) => Self::Notify(method.clone(), json(params)),
            ClientCommand::NotifyTracked(method, params) => Self::NotifyTracked(method.clone(), json(params)),
            ClientCommand::Authorize(key, Authorization::Refuse) => Self::Authorize(key.number(), None),
            ClientCommand::Authorize(key, Authorization::Headers(fields)) => {
                assert_eq!(fields.iter().count(), 1, "one field");
                Self::Authorize(key.number(), Some(fields.get("Authorization").expect("that field").to_owned()))
            }
            ClientCommand::Watch(watch) => Self::Watch {
                lists: [watch.tools, watch.prompts, watch.resources],
                uris: watch.uris.iter().cloned().collect(),
            },
            ClientCommand::LogLevel(level) => Self::LogLevel(level.map(|level| level.as_str().to_owned())),
            ClientCommand::CredentialsChanged => Self::CredentialsChanged,
            ClientCommand::RootsChanged => Self::RootsChanged,
            ClientCommand::Close => Self::Close,
            other => panic!("no run commands {other:?}"),
        }
    }
}

impl CommandOp {
    /// The type that an application uses.
    pub fn command(&self) -> ClientCommand {
        let object = |text: &String| {
            let json = RawJson::parse(text.clone().into_bytes()).expect("written as JSON");
            Object::read(&json).expect("written as an object")
        };
        match self {
            Self::Call { method, params, options } => {
                let mut call = RawCall {
                    method: method.clone().into(),
                    params: Ok(object(params)),
                    options: CallOptions::default(),
                };
                call.options.timeout = match options.timeout {
                    Limit::Configured => None,
                    Limit::Never => Some(None),
                    Limit::After(millis) => Some(Some(Duration::from_millis(millis))),
                };
                call.options.reset_on_progress = options.reset_on_progress;
                call.options.max_total = options.max_total.map(Duration::from_millis);
                call.options.progress = options.progress;
                call.options.repeatable = options.repeatable;
                call.options.as_task = options.as_task;
                ClientCommand::Call(call)
            }
            Self::Cancel(call, reason) => ClientCommand::Cancel(CallId(*call), reason.clone()),
            Self::Answer(key, answer) => {
                let answer = match answer {
                    AnswerOp::Accept(content) => ElicitResult::Accept(object(content)),
                    AnswerOp::Decline => ElicitResult::Decline,
                    AnswerOp::Cancel => ElicitResult::Cancel,
                };
                ClientCommand::Answer(InputKey::new(*key), InputAnswer::Elicitation(answer))
            }
            Self::Elicited(id) => ClientCommand::Elicited(id.clone()),
            Self::Notify(method, params) => ClientCommand::Notify(method.clone(), object(params)),
            Self::NotifyTracked(method, params) => ClientCommand::NotifyTracked(method.clone(), object(params)),
            Self::Authorize(key, with) => {
                let with = with.as_ref().map_or(Authorization::Refuse, |value| {
                    Authorization::Headers(Headers::new().with("Authorization", value.clone()))
                });
                ClientCommand::Authorize(AuthKey::new(*key), with)
            }
            Self::Watch { lists: [tools, prompts, resources], uris } => {
                let mut watch = uris.iter().fold(Watch::new(), |watch, uri| watch.with_uri(uri.as_str()));
                (watch.tools, watch.prompts, watch.resources) = (*tools, *prompts, *resources);
                ClientCommand::Watch(watch)
            }
            Self::LogLevel(level) => ClientCommand::LogLevel(level.as_deref().and_then(LogLevel::parse)),
            Self::CredentialsChanged => ClientCommand::CredentialsChanged,
            Self::RootsChanged => ClientCommand::RootsChanged,
            Self::Close => ClientCommand::Close,
        }
    }
}

impl From<&Change> for ChangeOp {
    fn from(change: &Change) -> Self {
        match change {
            Change::Tools => Self::Tools,
            Change::Prompts => Self::Prompts,
            Change::Resources => Self::Resources,
            Change::Resource(uri) => Self::Resource(uri.clone()),
            other => panic!("no run publishes {other:?}"),
        }
    }
}

impl ChangeOp {
    /// The type that an application uses.
    pub fn change(&self) -> Change {
        match self {
            Self::Tools => Change::Tools,
            Self::Prompts => Change::Prompts,
            Self::Resources => Change::Resources,
            Self::Resource(uri) => Change::Resource(uri.clone()),
        }
    }
}

impl From<&Admission> for AdmissionOp {
    fn from(admission: &Admission) -> Self {
        match admission {
            Admission::Accept(principal) => {
                Self::Accept(principal.as_ref().map(|principal| principal.as_str().to_owned()))
            }
            Admission::Unauthorized(text) => Self::Unauthorized(text.clone()),
            Admission::Forbidden(text) => Self::Forbidden(text.clone()),
            other => panic!("no run decides {other:?}"),
        }
    }
}

impl AdmissionOp {
    /// The type that an application uses.
    pub fn command(&self, key: u64) -> ServerCommand {
        let admission = match self {
            Self::Accept(principal) => Admission::Accept(principal.clone().map(Principal::from)),
            Self::Unauthorized(text) => Admission::Unauthorized(text.clone()),
            Self::Forbidden(text) => Admission::Forbidden(text.clone()),
        };
        ServerCommand::Admit(AdmitKey::new(key), admission)
    }
}
