//! A run: the operations of the applications, inputs that nothing expects, and the end.

use super::super::app::{self, Application, Work};
use super::super::client::{Client, late, some_answer, stray, stray_answer, watch_or_log};
use super::super::digest::log::{Engine, Log, Op};
use super::super::net::Net;
use super::super::report::{Report, Transcript};
use super::super::rng::Rng;
use super::super::world::NEVER;
use super::end::Duplex;
use super::{Scenario, World};
use mcp_proto::client::State;
use mcp_proto::exchange::{ConnectionId, IoEvent, Peer};
use mcp_proto::input::{CallId, Change, ClientCommand, Input, WiredClientInput};
use mcp_proto::record::{Recorder, Redaction};
use mcp_proto::rpc::Object;
use mcp_proto::wired::{WiredClient, WiredServer};
use mcp_proto::{Instant, tools};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What only the clients of this world have.
#[derive(Default)]
pub struct Side {
    /// Tags of calls that are answered after a moment and without a question.
    pub(super) brief: BTreeSet<u64>,
    /// The output of the recorder.
    tape: Arc<Mutex<Vec<u8>>>,
    seed: [u8; 32],
}

impl World {
    /// A world at its beginning; `trace` prints what happens.
    pub(in crate::sim) fn begin(scenario: &Scenario, trace: bool, log: Log) -> Self {
        Self::with(scenario, trace, log, false, None)
    }

    /// A world that records the inputs and outputs of its clients, for [`refeed`](Self::refeed).
    pub fn recorded(scenario: &Scenario) -> Self {
        Self::with(scenario, false, Log::on(), true, None)
    }

    /// A world whose clients are recorded as those of a program are.
    pub fn taped(scenario: &Scenario, redaction: Redaction) -> Self {
        Self::with(scenario, false, Log::default(), false, Some(redaction))
    }

    fn with(scenario: &Scenario, trace: bool, mut log: Log, outputs: bool, redaction: Option<Redaction>) -> Self {
        let mut chaos = scenario.chaos(Rng::new(scenario.seed));
        chaos.grain = 100;
        let app = Application::new(app::router());
        let seed = chaos.rng.seed();
        log.push(Engine::Server, Instant::ZERO, || Op::Server(seed));
        let end = Duplex {
            scenario: scenario.clone(),
            server: WiredServer::new(Arc::new(super::server(&app.router)), seed, Instant::ZERO),
            app,
            is_over: false,
        };
        let mut world = Self::new(end, Net::new(chaos, scenario.capacity), None, &scenario.less, trace, log);
        for number in 0..scenario.settings.clients as u64 {
            let (config, seed) = (Arc::new(scenario.settings.client()), world.rng().seed());
            let side = Side { seed, ..Side::default() };
            let engine = match redaction {
                Some(redaction) => {
                    let tape = Arc::clone(&side.tape);
                    let keep = move |line: &[u8]| {
                        tape.lock().expect("no panic").extend_from_slice(line);
                        Ok(())
                    };
                    Recorder::new(redaction, keep).client(config, seed, Instant::ZERO)
                }
                None => WiredClient::new(config, seed, Instant::ZERO),
            };
            let mut client = Client::new(number, engine, side);
            client.said = outputs.then(Transcript::default);
            world.add_client(client, 0, seed);
        }
        world
    }

    /// The recording of a client so far.
    pub fn tape(&self, client: usize) -> Vec<u8> {
        self.clients[client].own.tape.lock().expect("no panic").clone()
    }

    /// The output of a client, with its writes joined, and that of a fresh one with the same
    /// inputs: `cut` splits each input, and the outputs are taken after every input or only at the
    /// end.
    pub fn refeed(
        &self,
        client: usize,
        drain_each: bool,
        mut cut: impl FnMut(&WiredClientInput) -> Vec<WiredClientInput>,
    ) -> (Transcript, Transcript) {
        let client = &self.clients[client];
        let config = Arc::clone(client.engine.client().config());
        let mut engine = WiredClient::new(config, client.own.seed, Instant::ZERO);
        let mut said = Transcript::default();
        for (at, input) in self.log.of_client(client.number) {
            for input in cut(&input) {
                let _ = engine.apply(at, input);
                while let Some(action) = drain_each.then(|| engine.poll_output()).flatten() {
                    said.push(&action);
                }
            }
        }
        while let Some(action) = engine.poll_output() {
            said.push(&action);
        }
        (client.said.clone().unwrap_or_default(), said)
    }

    /// Runs to the end: the operations, then the close of all clients. After that no state may be
    /// left.
    pub fn run(&mut self) -> Report {
        self.drive();
        self.check_watchers();
        self.net.chaos.rate = 0;
        for n in 0..self.clients.len() {
            self.apply(n, Input::Command(ClientCommand::Close));
        }
        self.drive();
        self.shut_down();
        self.drive();
        self.check_rest();
        for n in 0..self.clients.len() {
            for input in late("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n").chain([Input::Tick]) {
                self.apply(n, input);
            }
        }
        self.log.push(Engine::Server, self.net.now, || Op::Stats(format!("{:?}", self.end.server.stats())));
        (0..self.clients.len()).for_each(|n| self.log_stats(n));
        self.results()
    }

    /// Steps until nothing is left to happen. A task that waits is polled until it expires: with
    /// one byte a step, this takes some million steps.
    fn drive(&mut self) {
        let end = (0..10_000_000).find(|_| !self.step(NEVER));
        assert!(end.is_some(), "still busy at {:?}", self.net.now);
    }

    pub(super) const fn has_operations(&self) -> bool {
        self.operations < self.end.scenario.operations
    }

    // ---- the applications

    pub(super) fn operate(&mut self) {
        let pause = self.below(400);
        if !self.begins_operation(pause) {
            return;
        }
        let n = self.below(self.clients.len() as u64) as usize;
        let call = self.some_call(n);
        let command = match self.below(30) {
            0..=9 => return self.work(n),
            26 | 27 => return self.publish(),
            // Over HTTP the comments on a subscription never end, and these runs do.
            28 | 29 if self.is_lines() => watch_or_log(self.rng()),
            20..=24 => return self.spurious(n),
            10 | 11 => {
                self.call(n, None, None, tools::list());
                return;
            }
            12 | 13 => ClientCommand::Cancel(call, Some("no longer wanted".into())),
            14..=17 => {
                let questions = self.clients[n].questions.len() as u64;
                if questions == 0 {
                    return;
                }
                let at = self.below(questions) as usize;
                let key = self.clients[n].take_question(at);
                ClientCommand::Answer(key, some_answer(self.below(10), "yes"))
            }
            18 => ClientCommand::NotifyTracked("acme/note".into(), Object::new()),
            _ if self.per_mille(500) => ClientCommand::Close,
            _ => return self.spurious(n),
        };
        self.apply(n, Input::Command(command));
    }

    /// What the server offers has changed.
    fn publish(&mut self) {
        let changes = app::some_change(self.below(8)).map_or_else(
            |is_larger| {
                self.log.push(Engine::Server, self.net.now, || Op::Replace(is_larger));
                self.end.app.replace(is_larger, self.end.server.config())
            },
            |change| vec![change],
        );
        changes.into_iter().for_each(|change| self.announce(change));
    }

    fn some_call(&mut self, n: usize) -> CallId {
        CallId(1 + self.below(self.clients[n].made.len() as u64 + 1))
    }

    fn work(&mut self, n: usize) {
        self.tag += 1;
        let millis = self.of(&[0, 10, 500, 40_000]);
        let padding = self.of(&[0, 100, 4 * self.end.scenario.capacity.min(8192)]);
        let (ticks, questions) = (self.below(4), self.below(8).saturating_sub(5));
        let api_key = Some(app::SECRET.into());
        let task = (self.end.scenario.settings.tasks && self.per_mille(600)).then(|| self.below(4));
        let work = Work { tag: self.tag, millis, ticks, questions, padding, task, api_key, ..Work::default() };
        let mut call = tools::call("work").arguments(&work);
        if task == Some(0) {
            call = call.as_task();
        }
        if self.per_mille(500) {
            call = call.progress();
        }
        if self.per_mille(200) {
            call = call.reset_on_progress(true).max_total(Duration::from_secs(90));
        }
        if millis <= 500 && questions == 0 && task.is_none() {
            self.clients[n].own.brief.insert(self.tag);
        }
        self.call(n, Some(self.tag), None, call);
    }

    /// Applies an input that no correct driver sends.
    fn spurious(&mut self, n: usize) {
        let channel = ConnectionId(1 + self.below(4));
        let is_opening = self.net.is_opening(n as u64, channel);
        let is_known = is_opening || self.net.link_of(n as u64, channel).is_some();
        let choice = self.below(7);
        self.apply(n, stray(choice, channel, if choice == 6 { is_opening } else { is_known }));
    }

    /// Sends up to `most` random inputs to a client whose server has ended its output or exited.
    /// The client then waits for the exit status, or starts the server again. Both states are short
    /// in a scenario, so other tests cover them rarely.
    pub(super) fn burst(&mut self, owner: u64, channel: ConnectionId, most: u64) {
        let n = owner as usize;
        for _ in 0..self.below(most) {
            let call = self.some_call(n);
            let input = match self.below(21) {
                20 => Input::Event(channel, IoEvent::Written(9)),
                0..=2 => Input::Event(channel, IoEvent::Opened(Peer::default())),
                3..=5 => Input::Event(channel, IoEvent::Read("{}\n".into())),
                6..=8 => Input::Event(channel, IoEvent::ReadClosed),
                9 | 10 => Input::Command(ClientCommand::Cancel(call, None)),
                11..=13 => Input::Command(ClientCommand::NotifyTracked("acme/note".into(), Object::new())),
                14 | 15 => Input::Tick,
                16 => Input::Command(ClientCommand::Close),
                17 => return self.work(n),
                _ => Input::Command(stray_answer()),
            };
            self.apply(n, input);
        }
    }

    /// Where no message is lost, every client that watches the tools receives their change.
    fn check_watchers(&mut self) {
        if self.end.scenario.faults > 0 {
            return;
        }
        self.net.now = self.net.now + Duration::from_millis(1);
        let published = self.net.now;
        let watchers = |world: &Self| -> Vec<usize> {
            let watches =
                |client: &WiredClient| client.client().state() == State::Ready && client.client().watched().tools;
            (0..world.clients.len()).filter(|n| watches(&world.clients[*n].engine)).collect()
        };
        let before = watchers(self);
        self.announce(Change::Tools);
        self.drive();
        for n in watchers(self).into_iter().filter(|n| before.contains(n)) {
            assert!(self.clients[n].changed >= Some(published), "client {n} was not told that the tools changed");
        }
    }

    fn check_rest(&self) {
        for client in &self.clients {
            client.check_rest();
            client.check_runs(&self.end.app.handed);
        }
        assert!(self.end.is_over, "the server never ended");
        assert_eq!(self.end.server.poll_timeout(), None, "the server waits after its end");
        assert_eq!(self.end.server.running(), 0);
        assert!(self.end.app.tasks.is_empty(), "tasks that were not cancelled: {:?}", self.end.app.tasks.keys());
        assert!(self.net.is_empty(), "links that were not closed");
    }
}
