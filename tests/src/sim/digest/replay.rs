//! Engines that get the inputs of those of a run again.

use super::super::app::{Task, stray_note};
use super::super::{accept, is_of_refused};
use super::apart::Apart;
use super::log::{Engine, Entry, Op};
use super::said::Said;
use super::settings::Setting;
use mcp_proto::Instant;
use mcp_proto::exchange::{Action, ConnectionId};
use mcp_proto::input::{Answer, Input, RequestKey, ServerCommand, WiredServerInput};
use mcp_proto::server::Event;
use mcp_proto::wired::{WiredClient, WiredServer};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// At which seam the server is driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seam {
    /// Its connections belong to it.
    A,
    /// Its connections are separate.
    B,
}

enum Serving {
    Whole(Box<WiredServer>),
    Apart(Box<Apart>),
}

/// The engines of a run.
pub struct Replay {
    setting: Setting,
    seam: Seam,
    clients: BTreeMap<u64, WiredClient>,
    server: Option<Serving>,
    late: BTreeMap<RequestKey, Answer>,
}

impl Replay {
    /// No engine yet.
    pub const fn new(setting: Setting, seam: Seam) -> Self {
        Self { setting, seam, clients: BTreeMap::new(), server: None, late: BTreeMap::new() }
    }

    /// Applies an input to an engine, and returns its outputs.
    ///
    /// # Panics
    /// If it counted something else than the engine of the run.
    pub fn tell(&mut self, entry: &Entry) -> Said {
        let (now, mut said) = (entry.at(), Said::default());
        match entry.0 {
            // Seam B is that of the server.
            Engine::Client(_) if self.seam == Seam::B => {}
            Engine::Client(number) => self.tell_client(number, now, &entry.2, &mut said),
            Engine::Server => self.tell_server(now, &entry.2, &mut said),
        }
        said
    }

    fn tell_client(&mut self, number: u64, now: Instant, op: &Op, said: &mut Said) {
        if let Op::Client { rng, seed } = op {
            let config = Arc::new((self.setting.client)(*rng));
            self.clients.insert(number, WiredClient::new(config, *seed, now));
        }
        let Some(client) = self.clients.get_mut(&number) else { return };
        if let Some(input) = op.of_client() {
            let _ = client.apply(now, input);
        }
        while let Some(action) = client.poll_output() {
            said.client(&action);
        }
        if let Op::Stats(stats) = op {
            assert_eq!(*stats, format!("{:?}", client.stats()), "client {number} acts differently than in its run");
        }
    }

    fn tell_server(&mut self, now: Instant, op: &Op, said: &mut Said) {
        match op {
            Op::Server(seed) => {
                self.forget();
                let config = Arc::clone(&self.setting.server);
                self.server = Some(match self.seam {
                    Seam::A => Serving::Whole(Box::new(WiredServer::new(config, *seed, now))),
                    Seam::B => Serving::Apart(Box::new(Apart::new(config, *seed, now))),
                });
            }
            Op::Crash => {
                self.forget();
                self.server = None;
            }
            Op::Accept => {
                let kind = self.setting.kind;
                let accepted = match &mut self.server {
                    Some(Serving::Whole(server)) => accept(server, now, kind).map(|id| id.0),
                    Some(Serving::Apart(server)) => server.accept(now, kind),
                    None => None,
                };
                said.accepted(accepted);
            }
            Op::Act(key) => {
                if let Some(command) = self.setting.app.act(RequestKey::new(*key), now) {
                    self.input(now, Input::Command(command));
                }
            }
            Op::Late(key) => {
                if let Some(answer) = self.late.remove(&RequestKey::new(*key)) {
                    self.input(now, Input::Command(ServerCommand::Respond(answer)));
                }
            }
            Op::StrayNote => self.input(now, Input::Command(stray_note())),
            Op::Wire(connection, wire) => self.input(now, Input::Event(ConnectionId(*connection), wire.wire())),
            Op::Tick => self.input(now, Input::Tick),
            Op::Publish(change) => self.input(now, Input::Command(ServerCommand::Publish(change.change()))),
            Op::Replace(is_larger) => drop(self.setting.app.replace(*is_larger, &self.setting.server)),
            Op::Revoke(principal) => {
                self.input(now, Input::Command(ServerCommand::Revoke(principal.as_str().into())));
            }
            Op::Elicited(id) => self.input(now, Input::Command(ServerCommand::Elicited(id.clone()))),
            Op::Admit(key, admission) => self.input(now, Input::Command(admission.command(*key))),
            Op::Shutdown(grace) => {
                let grace = Duration::from_millis(*grace);
                self.input(now, Input::Command(ServerCommand::Shutdown(grace)));
            }
            Op::Client { .. } | Op::Command(_) | Op::Stats(_) => {}
        }
        self.drain(now, said);
        if let (Op::Stats(stats), Some(Serving::Whole(server))) = (op, &self.server) {
            assert_eq!(*stats, format!("{:?}", server.stats()), "the server acts differently than in its run");
        }
    }

    fn forget(&mut self) {
        self.setting.app.tasks.clear();
        self.late.clear();
    }

    fn input(&mut self, now: Instant, input: WiredServerInput) {
        match &mut self.server {
            Some(Serving::Whole(server)) => drop(server.apply(now, input)),
            Some(Serving::Apart(server)) => server.input(now, input),
            None => {}
        }
    }

    /// Takes the outputs of the server. Its application takes and answers requests meanwhile.
    fn drain(&mut self, now: Instant, said: &mut Said) {
        loop {
            let event = match &mut self.server {
                Some(Serving::Whole(server)) => match server.poll_output() {
                    Some(action) => {
                        if !is_of_refused(&action) {
                            said.server(&action);
                        }
                        match action {
                            Action::Event(event) => event,
                            _ => continue,
                        }
                    }
                    None => return,
                },
                Some(Serving::Apart(server)) => match server.poll(now, said) {
                    Some(event) => event,
                    None => return,
                },
                None => return,
            };
            match event {
                Event::Request(responder, incoming) => {
                    if let Some(answer) = self.setting.app.request(responder, incoming, now) {
                        self.input(now, Input::Command(answer));
                    }
                }
                Event::Cancelled(key) => {
                    let late = self.setting.app.tasks.remove(&key).and_then(Task::into_late_answer);
                    self.late.extend(late.map(|answer| (key, answer)));
                }
                _ => {}
            }
        }
    }
}
