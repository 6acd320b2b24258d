//! One face for the clients of the three drivers, and a count of what they were told.

use super::{Bench, Host};
use crate::orphans::Adapter;
use crate::poll_loop::PollLoop;
use mcp_proto::client::{Event, Policy};
use mcp_proto::process::Stderr;
use mcp_proto::tools::CallTool;
use mcp_proto::{Call, CallError, CallToolResult, ClientConfig, Method, Program};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A client of one of the drivers.
pub(super) struct Client {
    driver: Driver,
    pub(super) seen: Seen,
}

enum Driver {
    Blocking(mcp_blocking::Client),
    Smol(mcp_smol::Client, smol::Task<()>),
    /// Whether anyone takes its events.
    Loop(Box<PollLoop>, bool),
}

/// What a client was told.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Counts>>);

#[derive(Default)]
pub(super) struct Counts {
    pub(super) notes: u64,
    /// By their codes.
    pub(super) diagnostics: BTreeMap<&'static str, u64>,
    pub(super) lost_notes: u64,
    pub(super) lost_diagnostics: u64,
}

impl Seen {
    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, event: &Event) {
        let mut counts = self.counts();
        match event {
            Event::Notification { .. } => counts.notes += 1,
            Event::Diagnostic(diagnostic) => *counts.diagnostics.entry(diagnostic.kind.code()).or_default() += 1,
            Event::Lost { notifications, diagnostics } => {
                counts.lost_notes += notifications;
                counts.lost_diagnostics += diagnostics;
            }
            _ => {}
        }
    }

    /// How many diagnostics of this code were told.
    pub(super) fn of(&self, code: &str) -> u64 {
        self.counts().diagnostics.get(code).copied().unwrap_or_default()
    }
}

/// How a client is made.
pub(super) struct Setup {
    pub(super) stderr: Stderr,
    /// Whether anyone listens to events.
    pub(super) listens: bool,
    pub(super) timeout: Option<Duration>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { stderr: Stderr::Discard, listens: true, timeout: Some(Duration::from_secs(60)) }
    }
}

impl Bench {
    /// Connects to `misbehaving` with these arguments.
    pub(super) fn start(&self, args: &[&str], setup: Setup) -> Result<Client, String> {
        let child = self.child.to_str().ok_or("the path is not unicode")?;
        self.connect(Program::new(child).args(args.iter().copied()), setup)
    }

    /// Connects, and waits until the two sides have agreed.
    pub(super) fn connect(&self, program: Program, setup: Setup) -> Result<Client, String> {
        let seen = Seen::default();
        let (told, listens) = (seen.clone(), setup.listens);
        let configure = move |config: &mut ClientConfig| {
            let short = Duration::from_millis(300);
            (config.limits.frame.exit_timeout, config.limits.frame.terminate_timeout) = (short, short);
            config.initialize_timeout = Duration::from_secs(1);
            config.timeout = setup.timeout;
            config.policy = Policy::Legacy;
        };
        let driver = match self.host {
            Host::Driver(Adapter::Blocking) => {
                let mut config = mcp_blocking::Config::new().stderr(setup.stderr).set(configure);
                if listens {
                    config = config.on_event(move |event| told.note(&event));
                }
                Driver::Blocking(mcp_blocking::connect_with(program, config).map_err(|e| failed(&e, &seen))?)
            }
            Host::Driver(Adapter::Smol) => {
                let mut config = mcp_smol::Config::new().stderr(setup.stderr).set(configure);
                if listens {
                    config = config.on_event(move |event| told.note(&event));
                }
                let (client, driver) = mcp_smol::connect_with(program, config).map_err(|e| e.to_string())?;
                let driver = smol::spawn(driver);
                smol::block_on(client.ready()).map_err(|e| failed(&e, &seen))?;
                Driver::Smol(client, driver)
            }
            Host::Driver(Adapter::Loop) => {
                let mut config = ClientConfig::program(program);
                configure(&mut config);
                let mut client = Box::new(PollLoop::new(config).map_err(|e| e.to_string())?);
                loop {
                    match client.next_event() {
                        Some(Event::Ready(_)) => break,
                        Some(Event::Terminated(why)) => {
                            return Err(failed(&mcp_proto::driver::ConnectError::from(why), &seen));
                        }
                        Some(event) => seen.note(&event),
                        None => drop(client.turn().map_err(|e| e.to_string())?),
                    }
                }
                Driver::Loop(client, listens)
            }
            Host::Engine => return Err("an engine starts no programs".into()),
        };
        Ok(Client { driver, seen })
    }
}

/// What a failed connection says, and what was told before it.
fn failed(why: &impl std::fmt::Display, seen: &Seen) -> String {
    let told: Vec<String> = seen.counts().diagnostics.iter().map(|(code, n)| format!("{n} {code}")).collect();
    if told.is_empty() { why.to_string() } else { format!("{why}; {}", told.join(", ")) }
}

impl Client {
    pub(super) fn call(&mut self, call: Call<CallTool>) -> Result<CallToolResult, CallError> {
        match &mut self.driver {
            Driver::Blocking(client) => client.call(call),
            Driver::Smol(client, _) => smol::block_on(client.call(call)),
            Driver::Loop(client, true) => run(client, call, &self.seen),
            Driver::Loop(client, false) => client.call(call),
        }
    }

    /// Closes it, and says how long that took.
    pub(super) fn close(self) -> Result<Duration, String> {
        let began = Instant::now();
        match self.driver {
            Driver::Blocking(client) => drop(client.close()),
            Driver::Smol(client, driver) => smol::block_on(async {
                client.close().await;
                driver.await;
            }),
            Driver::Loop(mut client, _) => client.close().map_err(|e| e.to_string())?,
        }
        Ok(began.elapsed())
    }
}

/// Makes a call on the loop, and takes every event meanwhile.
fn run<M: Method>(client: &mut PollLoop, call: Call<M>, seen: &Seen) -> Result<M::Output, CallError> {
    let now = client.now();
    let calling = client.engine.call(now, call).map_err(|refused| CallError::Refused(refused.why))?;
    loop {
        match client.next_event() {
            Some(Event::Ended { call, outcome }) if call == calling.id() => return calling.finish(outcome),
            Some(event) => seen.note(&event),
            None => {
                client.turn().expect("poll works");
            }
        }
    }
}
