//! Shims: programs through which `hostile --driver` runs its misbehaving peers against a driver.
//!
//! A shim reads commands from its standard input and writes results to its standard output, one
//! JSON value per line. `tests/hostile.md` describes the lines. A shim in Rust implements
//! [`Driver`] and calls [`run`]: see the program `shim`, which does so for both adapters.

mod adapters;
mod fronts;
mod wire;

pub use fronts::{Fronts, Port};
pub(crate) use wire::{Command, Done, EventLine, Output, StderrTo};
pub use wire::{Line, Options, ToolCall, Tools, check_output};

use crate::hostile::server as served;
use mcp_driver::{ClientOptions, ConnectError, Service};
use mcp_proto::client::{Event, Target};
use mcp_proto::exchange::ConnectionNotice;
use mcp_proto::input::CallId;
use mcp_proto::process::Stderr;
use mcp_proto::route::BoxFuture;
use mcp_proto::stats::ServerStats;
use mcp_proto::tools::CallTool;
use mcp_proto::{Call, CallError, CallToolResult, ClientConfig, Refusal};
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::io::{self, BufRead, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::error_form;

/// What a shim needs of a driver. Every command is a task of its own, so that calls run at the same
/// time. A driver for one role keeps the defaults of the other, and turns that role off.
pub trait Driver: Send + Sync + 'static {
    /// Whether it has clients.
    const CLIENT: bool = true;
    /// Whether it has servers.
    const SERVER: bool = true;
    /// A connected client.
    type Client: Send + Sync + 'static;
    /// A running server.
    type Server: Send + Sync + 'static;

    /// Runs a task to its end, on any thread. If the futures of this driver block, each task needs
    /// a thread of its own.
    fn spawn(&self, task: BoxFuture<()>);

    /// Connects a client, and waits for the end of negotiation.
    fn connect(
        &self,
        target: Target,
        options: ClientOptions,
    ) -> impl Future<Output = Result<Self::Client, ConnectError>> + Send {
        let _ = (target, options);
        ready(Err(ConnectError::System("no client".into())))
    }

    /// Makes a call, gives its id to `started`, and waits for its end.
    fn call(
        &self,
        client: Arc<Self::Client>,
        call: Call<CallTool>,
        started: Started,
    ) -> impl Future<Output = Result<CallToolResult, CallError>> + Send {
        let _ = (client, call, started);
        ready(Err(CallError::Refused(Refusal::Closed)))
    }

    /// Cancels a call.
    fn cancel(&self, client: &Self::Client, call: CallId) {
        let _ = (client, call);
    }

    /// Queues a notification without params.
    ///
    /// # Errors
    /// The reason why it was not sent.
    fn notify(&self, client: &Self::Client, method: &str) -> Result<(), Refusal> {
        let _ = (client, method);
        Err(Refusal::Closed)
    }

    /// Closes a client, and waits for its end.
    fn close(&self, client: Arc<Self::Client>) -> impl Future<Output = ()> + Send {
        let _ = client;
        ready(())
    }

    /// Serves over HTTP, on a free port of 127.0.0.1.
    fn serve(&self, service: Service) -> impl Future<Output = io::Result<(Self::Server, SocketAddr)>> + Send {
        let _ = service;
        ready(Err(ErrorKind::Unsupported.into()))
    }

    /// Returns a snapshot of the numbers of a server.
    fn stats(&self, server: &Self::Server) -> ServerStats {
        let _ = server;
        ServerStats::default()
    }

    /// Stops a server, and waits for its end.
    fn stop(&self, server: Arc<Self::Server>) -> impl Future<Output = ()> + Send {
        let _ = server;
        ready(())
    }
}

/// Receives the id of a call, so that a later command can cancel it. Dropping it forgets the id.
#[derive(Debug)]
pub struct Started {
    command: u64,
    calls: Arc<Mutex<BTreeMap<u64, CallId>>>,
}

impl Started {
    /// Reports the id of the call. `None` if it has ended already.
    pub fn with(&self, id: Option<CallId>) {
        if let Some(id) = id {
            lock(&self.calls).insert(self.command, id);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        lock(&self.calls).remove(&self.command);
    }
}

/// Carries out the commands on standard input until its end.
///
/// # Errors
/// Standard input cannot be read, or a line is no command.
pub fn run<D: Driver>(driver: D) -> io::Result<()> {
    let shim = Arc::new(Shim::new(driver));
    for line in io::stdin().lock().lines() {
        let line: Line = serde_json::from_str(&line?)?;
        shim.take(line);
    }
    // Dropping a client or a server ends it.
    let (clients, servers) = (std::mem::take(&mut *lock(&shim.clients)), std::mem::take(&mut *lock(&shim.servers)));
    drop((clients, servers));
    Ok(())
}

/// Carries out one command with a new shim. Returns the line with its result.
pub async fn carry_out<D: Driver>(driver: D, line: Line) -> String {
    let done = Shim::new(driver).carry_out(line.id, line.command).await;
    text(&output(line.id, done))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clients or servers of a shim, by their numbers.
type Numbered<T> = Mutex<BTreeMap<u64, Arc<T>>>;

struct Shim<D: Driver> {
    driver: D,
    clients: Numbered<D::Client>,
    servers: Numbered<D::Server>,
    /// The running calls, by their commands.
    calls: Arc<Mutex<BTreeMap<u64, CallId>>>,
}

/// What becomes of a command that is not carried out.
enum Not {
    /// It has failed.
    Failed(Value),
    /// The driver does not have this.
    Offered(String),
}

impl<D: Driver> Shim<D> {
    fn new(driver: D) -> Self {
        Self { driver, clients: Mutex::default(), servers: Mutex::default(), calls: Arc::default() }
    }

    /// Carries out a command: a notification and a cancellation at once, so that their order is
    /// kept, and any other in a task.
    fn take(self: &Arc<Self>, line: Line) {
        let id = line.id;
        match line.command {
            Command::Notify { client, method } => reply(id, self.notify(client, &method)),
            Command::Cancel { client, call } => reply(id, self.cancel(client, call)),
            command => {
                let shim = Arc::clone(self);
                self.driver.spawn(Box::pin(async move {
                    let done = shim.carry_out(id, command).await;
                    reply(id, done);
                }));
            }
        }
    }

    fn notify(&self, client: u64, method: &str) -> Result<Done, Not> {
        let client = find(&self.clients, client)?;
        let refused = |why| Not::Failed(error_form(&CallError::Refused(why)));
        self.driver.notify(&client, method).map_err(refused)?;
        Ok(Done::Notified)
    }

    fn cancel(&self, client: u64, call: u64) -> Result<Done, Not> {
        let client = find(&self.clients, client)?;
        let call = lock(&self.calls).get(&call).copied();
        if let Some(call) = call {
            self.driver.cancel(&client, call);
        }
        Ok(Done::Cancelled)
    }

    async fn carry_out(&self, id: u64, command: Command) -> Result<Done, Not> {
        match command {
            Command::Connect { .. } if !D::CLIENT => Err(Not::Offered("a client".into())),
            Command::Serve { .. } if !D::SERVER => Err(Not::Offered("a server".into())),
            Command::Connect { client, config, stderr, events } => {
                let (target, options) = (config.target.clone(), options(client, *config, stderr, events));
                let connected = self.driver.connect(target, options).await;
                let connected = connected.map_err(|e| Not::Failed(error_form(&e)))?;
                lock(&self.clients).insert(client, Arc::new(connected));
                Ok(Done::Connected)
            }
            Command::Call { client, call } => {
                let client = find(&self.clients, client)?;
                let started = Started { command: id, calls: Arc::clone(&self.calls) };
                let ended = self.driver.call(client, call.call(), started).await;
                ended.map(|result| Done::result(&result)).map_err(|e| Not::Failed(error_form(&e)))
            }
            Command::Close { client } => {
                let client = lock(&self.clients).remove(&client);
                if let Some(client) = client {
                    self.driver.close(client).await;
                }
                Ok(Done::Closed)
            }
            other => self.serve(other).await,
        }
    }

    /// Carries out a command about a server.
    async fn serve(&self, command: Command) -> Result<Done, Not> {
        match command {
            Command::Serve { server, options } => {
                let begun = self.driver.serve(served::service(*options)).await;
                let (running, address) = begun.map_err(|e| Not::Failed(e.to_string().into()))?;
                lock(&self.servers).insert(server, Arc::new(running));
                Ok(Done::Listening(address))
            }
            Command::Stats { server } => {
                let stats = self.driver.stats(&*find(&self.servers, server)?);
                Ok(Done::Stats { connections: stats.channels, running: stats.running })
            }
            Command::Stop { server } => {
                let server = lock(&self.servers).remove(&server);
                if let Some(server) = server {
                    self.driver.stop(server).await;
                }
                Ok(Done::Stopped)
            }
            Command::Free { tag } => {
                served::free(&tag);
                Ok(Done::Freed)
            }
            Command::Tools => Ok(Done::Tools(served::state())),
            other => Err(Not::Failed(format!("{other:?} is no command of a server").into())),
        }
    }
}

fn find<T>(all: &Numbered<T>, number: u64) -> Result<Arc<T>, Not> {
    let found = lock(all).get(&number).cloned();
    found.ok_or_else(|| Not::Failed(format!("there is no number {number}").into()))
}

/// Returns the options of a client, with callbacks that write its events.
fn options(client: u64, config: ClientConfig, stderr: StderrTo, events: bool) -> ClientOptions {
    let stderr = match stderr {
        StderrTo::Inherit => Stderr::Inherit,
        StderrTo::Discard => Stderr::Discard,
        StderrTo::Lines => Stderr::Lines(Arc::new(move |line| emit(client, EventLine::Stderr(line.into())))),
    };
    let options = ClientOptions::new().stderr(stderr).set(move |own| *own = config);
    if !events {
        return options;
    }
    options.on_event(move |event| form(&event).into_iter().for_each(|event| emit(client, event))).on_notice(
        move |_, notice| {
            if matches!(notice, ConnectionNotice::Closed(_)) {
                emit(client, EventLine::Closed);
            }
        },
    )
}

/// Returns the form of an event that a row may count.
pub(crate) fn form(event: &Event) -> Option<EventLine> {
    Some(match event {
        Event::Notification { .. } | Event::Log { .. } => EventLine::Notification,
        Event::Diagnostic(diagnostic) => EventLine::Diagnostic(diagnostic.kind.code().into()),
        Event::Lost { notifications, diagnostics } => {
            EventLine::Lost { notifications: *notifications, diagnostics: *diagnostics }
        }
        Event::Reconnecting { wait, .. } => {
            EventLine::Reconnecting { wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) }
        }
        Event::ListenerLost { .. } => EventLine::ListenerLost,
        _ => return None,
    })
}

fn emit(client: u64, event: EventLine) {
    write(&Output::Event { client, event });
}

fn reply(id: u64, done: Result<Done, Not>) {
    write(&output(id, done));
}

fn output(id: u64, done: Result<Done, Not>) -> Output {
    match done {
        Ok(done) => Output::Done { id, done },
        Err(Not::Failed(error)) => Output::Failed { id, error },
        Err(Not::Offered(not_offered)) => Output::NotOffered { id, not_offered },
    }
}

/// Returns the text of a line, without its end.
fn text(output: &Output) -> String {
    serde_json::to_string(output).unwrap_or_default()
}

/// Writes a line. If it is not read, the end of standard input follows.
fn write(output: &Output) {
    let mut line = text(output);
    line.push('\n');
    let mut out = io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}
