//! A common interface of the clients of the three drivers, and counters of their events.

use super::rows::{expect, soon};
use super::{Bench, Host, shim};
use crate::adapters;
use crate::orphans::Adapter;
use crate::poll_loop::PollLoop;
use crate::shim::EventLine;
use mcp_driver::{ClientOptions, ConnectError, OAuth, check};
use mcp_proto::call::CallHandle;
use mcp_proto::client::{ClientCommands, Event, Policy};
use mcp_proto::exchange::ConnectionNotice;
use mcp_proto::process::Stderr;
use mcp_proto::rpc::Object;
use mcp_proto::tools::CallTool;
use mcp_proto::{Call, CallError, CallToolResult, ClientConfig, Program, Refusal};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A client of one of the drivers.
pub(super) struct Client {
    driver: Driver,
    pub(super) seen: Seen,
}

enum Driver {
    Of(adapters::Client),
    /// Whether the application takes its events.
    Loop(Box<PollLoop>, bool),
    /// It has this number.
    Shim(&'static shim::Shim, u64),
}

/// The counted events of a client.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Counts>>);

#[derive(Default)]
pub(super) struct Counts {
    pub(super) notes: u64,
    /// By their codes.
    pub(super) diagnostics: BTreeMap<String, u64>,
    pub(super) lost_notes: u64,
    pub(super) lost_diagnostics: u64,
    /// Connections and pipes that were closed.
    pub(super) closed: u64,
    /// The waits before the resumptions of a stream.
    pub(super) waits: Vec<Duration>,
    /// The number of lost listeners.
    pub(super) lost_listeners: u64,
}

impl Seen {
    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, event: &Event) {
        crate::shim::form(event).into_iter().for_each(|event| self.told(event));
    }

    /// Counts an event, as a shim reports it.
    pub(super) fn told(&self, event: EventLine) {
        let mut counts = self.counts();
        match event {
            EventLine::Notification => counts.notes += 1,
            EventLine::Diagnostic(code) => *counts.diagnostics.entry(code).or_default() += 1,
            EventLine::Lost { notifications, diagnostics } => {
                counts.lost_notes += notifications;
                counts.lost_diagnostics += diagnostics;
            }
            EventLine::Reconnecting { wait_ms } => counts.waits.push(Duration::from_millis(wait_ms)),
            EventLine::ListenerLost => counts.lost_listeners += 1,
            EventLine::Closed => counts.closed += 1,
            EventLine::Stderr(_) => {}
        }
    }

    fn notice(&self, notice: &ConnectionNotice) {
        if matches!(notice, ConnectionNotice::Closed(_)) {
            self.told(EventLine::Closed);
        }
    }

    /// Waits until this number of notifications was told, which a separate thread does, or lost.
    /// Returns how many were told, and how many lost.
    pub(super) fn notes(&self, count: u64) -> Result<(u64, u64), String> {
        let both = || {
            let counts = self.counts();
            (counts.notes, counts.lost_notes)
        };
        let sum = || both().0 + both().1;
        soon(|| sum() >= count);
        expect(sum() == count, || format!("{} of {count}", sum()))?;
        Ok(both())
    }

    /// Checks that there was no diagnostic.
    pub(super) fn is_silent(&self) -> Result<(), String> {
        let told: Vec<String> = self.counts().diagnostics.keys().cloned().collect();
        expect(told.is_empty(), || format!("{told:?}"))
    }

    /// Returns the number of diagnostics with this code.
    pub(super) fn of(&self, code: &str) -> u64 {
        self.counts().diagnostics.get(code).copied().unwrap_or_default()
    }
}

/// The target of a client.
pub(super) enum Place {
    Program(Program),
    Url(String),
}

impl Place {
    /// Returns the configuration of a client of this server.
    fn config(self) -> Result<ClientConfig, ConnectError> {
        match self {
            Self::Program(program) => Ok(ClientConfig::program(program)),
            Self::Url(url) => ClientConfig::url(&url).map_err(ConnectError::Url),
        }
    }
}

/// The setup of a client.
pub(super) struct Setup {
    pub(super) stderr: Stderr,
    /// Whether the application listens to events.
    pub(super) listens: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) policy: Policy,
    /// The timeout of the handshake.
    pub(super) handshake: Duration,
    /// Further changes of the configuration.
    pub(super) change: fn(&mut ClientConfig),
    /// How it logs in.
    pub(super) login: Option<OAuth>,
}

impl Default for Setup {
    fn default() -> Self {
        // A server that answers gets the time that a busy machine may need to load and run it.
        let (timeout, handshake) = (Some(Duration::from_secs(60)), Duration::from_secs(30));
        let (policy, change) = (Policy::Legacy, |_: &mut ClientConfig| ());
        Self { stderr: Stderr::Discard, listens: true, timeout, policy, handshake, change, login: None }
    }
}

impl Bench {
    /// Connects to `misbehaving` with these arguments.
    pub(super) fn start(&self, args: &[&str], setup: Setup) -> Result<Client, String> {
        let child = self.child.to_str().ok_or("the path is not unicode")?;
        self.connect(Program::new(child).args(args.iter().copied()), setup)
    }

    /// Connects, and waits for the end of negotiation.
    pub(super) fn connect(&self, program: Program, setup: Setup) -> Result<Client, String> {
        let seen = Seen::default();
        self.open(Place::Program(program), setup, &seen).map_err(|e| failed(&e, &seen))
    }

    /// Connects, and waits for the end of negotiation.
    pub(super) fn open(&self, place: Place, setup: Setup, seen: &Seen) -> Result<Client, ConnectError> {
        let (told, listens) = (seen.clone(), setup.listens);
        let configure = move |config: &mut ClientConfig| {
            let short = Duration::from_millis(300);
            (config.limits.frame.exit_timeout, config.limits.frame.terminate_timeout) = (short, short);
            config.initialize_timeout = setup.handshake;
            // All of it is for the probe if nothing can follow.
            config.connect_timeout = setup.handshake.saturating_mul(3);
            config.timeout = setup.timeout;
            config.policy = setup.policy;
            (setup.change)(config);
        };
        let driver = match self.host {
            Host::Driver(Adapter::Of(adapter)) => {
                let mut options = ClientOptions::new().stderr(setup.stderr).set(configure);
                if let Some(login) = setup.login {
                    options = options.oauth(login);
                }
                if listens {
                    let noticed = told.clone();
                    options = options
                        .on_event(move |event| told.note(&event))
                        .on_notice(move |_, notice| noticed.notice(&notice));
                }
                Driver::Of(match place {
                    Place::Program(program) => adapter.connect_driven(program, options)?,
                    Place::Url(url) => adapter.connect_driven(url, options)?,
                })
            }
            Host::Driver(Adapter::Loop) if setup.login.is_some() => {
                return Err(ConnectError::System("the loop does not log in".into()));
            }
            Host::Driver(Adapter::Loop) => {
                let mut config = place.config()?;
                configure(&mut config);
                let mut client = Box::new(PollLoop::new(config).map_err(|e| system(&e))?);
                check(&mut client.engine);
                loop {
                    match client.next_event() {
                        Some(Event::Ready(_)) => break,
                        Some(Event::Terminated(why)) => return Err(why.into()),
                        Some(event) => seen.note(&event),
                        None => drop(client.turn().map_err(|e| system(&e))?),
                    }
                }
                Driver::Loop(client, listens)
            }
            Host::Shim => {
                let shim = shim::running().ok_or_else(|| ConnectError::System("there is no shim".into()))?;
                if setup.login.is_some() {
                    return Err(ConnectError::System(shim.lacks("a login")));
                }
                let mut config = place.config()?;
                configure(&mut config);
                Driver::Shim(shim, shim.connect(config, setup.stderr, listens.then_some(seen))?)
            }
            Host::Engine => return Err(ConnectError::System("an engine starts no programs".into())),
        };
        Ok(Client { driver, seen: seen.clone() })
    }
}

fn system(e: &std::io::Error) -> ConnectError {
    ConnectError::System(e.to_string())
}

/// Returns the error of a failed connection, and the events before it.
pub(super) fn failed(why: &impl std::fmt::Display, seen: &Seen) -> String {
    let told: Vec<String> = seen.counts().diagnostics.iter().map(|(code, n)| format!("{n} {code}")).collect();
    if told.is_empty() { why.to_string() } else { format!("{why}; {}", told.join(", ")) }
}

impl Client {
    pub(super) fn call(&mut self, call: Call<CallTool>) -> Result<CallToolResult, CallError> {
        match &mut self.driver {
            Driver::Of(client) => client.call(call),
            Driver::Loop(client, true) => {
                let calling = begin(client, call);
                let [ended] = ends(client, [calling], &self.seen);
                ended
            }
            Driver::Loop(client, false) => client.call(call),
            Driver::Shim(shim, client) => shim.end(shim.begin(*client, call)),
        }
    }

    /// Makes a call while the application takes no event, unless that blocks the client itself, as
    /// with smol. A shim always takes them.
    pub(super) fn call_unheard(&mut self, call: Call<CallTool>) -> Result<CallToolResult, CallError> {
        match &mut self.driver {
            Driver::Of(adapters::Client::Blocking(client)) => {
                let _rests = self.seen.counts();
                client.call(call)
            }
            Driver::Loop(client, _) => client.call(call),
            Driver::Of(_) | Driver::Shim(..) => self.call(call),
        }
    }

    /// Makes two calls at once.
    pub(super) fn call_both(&mut self, calls: [Call<CallTool>; 2]) -> [Result<CallToolResult, CallError>; 2] {
        let [first, second] = calls;
        match &mut self.driver {
            Driver::Of(client) => {
                let first = client.start(first);
                let second = client.call(second);
                [first.wait(), second]
            }
            Driver::Loop(client, _) => {
                let calls = [first, second].map(|call| begin(client, call));
                ends(client, calls, &self.seen)
            }
            Driver::Shim(shim, client) => {
                let [first, second] = [first, second].map(|call| shim.begin(*client, call));
                [shim.end(first), shim.end(second)]
            }
        }
    }

    /// Makes a call, waits until `is_sent` returns, and cancels the call.
    pub(super) fn call_and_cancel(
        &mut self,
        call: Call<CallTool>,
        is_sent: impl FnOnce(),
    ) -> Result<CallToolResult, CallError> {
        match &mut self.driver {
            Driver::Of(client) => {
                let pending = client.start(call);
                is_sent();
                pending.cancel(None);
                pending.wait()
            }
            Driver::Loop(client, _) => {
                let calling = begin(client, call)?;
                // One turn writes a small request on a connection that is open.
                client.turn().expect("poll works");
                is_sent();
                let now = client.now();
                client.engine.cancel(now, calling.id(), None);
                let [ended] = ends(client, [Ok(calling)], &self.seen);
                ended
            }
            Driver::Shim(shim, client) => {
                let call = shim.begin(*client, call);
                is_sent();
                shim.cancel(*client, call);
                shim.end(call)
            }
        }
    }

    /// Sends a notification.
    pub(super) fn notify(&mut self, method: &str) -> Result<(), Refusal> {
        match &mut self.driver {
            Driver::Of(client) => client.notify(method, Object::new()),
            Driver::Loop(client, _) => {
                let now = client.now();
                client.engine.notify(now, method, Object::new()).map_err(|refused| refused.why)
            }
            Driver::Shim(shim, client) => shim.notify(*client, method),
        }
    }

    /// Closes it, and returns its events.
    pub(super) fn leave(self) -> Result<Seen, String> {
        let seen = self.seen.clone();
        self.close().map(|_| seen)
    }

    /// Closes it, and returns the duration.
    pub(super) fn close(self) -> Result<Duration, String> {
        let began = Instant::now();
        match self.driver {
            Driver::Of(client) => drop(client.close()?),
            Driver::Loop(mut client, _) => client.close().map_err(|e| e.to_string())?,
            Driver::Shim(shim, client) => shim.close(client)?,
        }
        Ok(began.elapsed())
    }
}

/// Begins a call on the loop.
fn begin(client: &mut PollLoop, call: Call<CallTool>) -> Result<CallHandle<CallTool>, CallError> {
    let now = client.now();
    client.engine.call(now, call).map_err(|refused| CallError::Refused(refused.why))
}

/// Runs the loop until the end of these calls, and takes every event meanwhile.
fn ends<const N: usize>(
    client: &mut PollLoop,
    calls: [Result<CallHandle<CallTool>, CallError>; N],
    seen: &Seen,
) -> [Result<CallToolResult, CallError>; N] {
    let mut ended = [const { None }; N];
    let mut waiting = Vec::new();
    for (at, calling) in calls.into_iter().enumerate() {
        match calling {
            Ok(calling) => waiting.push((at, calling)),
            Err(refused) => ended[at] = Some(Err(refused)),
        }
    }
    while ended.iter().any(Option::is_none) {
        match client.next_event() {
            Some(Event::Ended { call, outcome }) => {
                if let Some(found) = waiting.iter().position(|(_, calling)| calling.id() == call) {
                    let (at, calling) = waiting.swap_remove(found);
                    ended[at] = Some(calling.finish(outcome));
                }
            }
            Some(event) => seen.note(&event),
            None => drop(client.turn().expect("poll works")),
        }
    }
    ended.map(|ended| ended.expect("all have ended"))
}
