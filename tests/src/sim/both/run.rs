//! The random operations of a run, and the invariants after each step.

use super::super::app::Work;
use super::super::client::{stray, stray_answer};
use super::super::digest::log::{Engine, Op};
use super::host::TIMEOUT;
use super::{Fault, Life, Report, World};
use mcp_proto::client::State;
use mcp_proto::exchange::ConnectionId;
use mcp_proto::input::{ClientCommand, Input};
use mcp_proto::rpc::Object;
use mcp_proto::tools;
use std::time::Duration;

impl World {
    pub(super) fn some_work(&mut self, n: usize) {
        self.tag += 1;
        let work = self.clients[n].some_work(self.tag);
        self.work(n, &work);
    }

    pub(super) fn work(&mut self, n: usize, work: &Work) -> bool {
        let (call, limit) = self.clients[n].ask_for(work);
        self.call(n, Some(work.tag), limit, call).is_some()
    }

    // ---- the operations

    /// Runs to the end: the operations, a time without faults in which every client must recover,
    /// then the end of every client, of every session and of the server. After that no state may be
    /// left.
    pub(in crate::sim) fn run(&mut self) -> Report {
        while self.operations < self.end.scenario.operations {
            while self.step(self.next_operation) {}
            self.net.now = self.net.now.max(self.next_operation);
            let pause = self.of(&[20, 100, 400, 4_000]);
            if self.begins_operation(pause) {
                self.operate();
            }
            self.look();
        }
        self.wait(Duration::from_secs(150), |world| world.clients.iter().all(|host| host.alive.is_empty()));
        self.net.chaos.rate = 0;
        if self.per_mille(300) {
            self.recover();
        }
        self.close_all();
        self.check_rest();
        self.spurious_after_the_end();
        (0..self.clients.len()).for_each(|n| self.log_stats(n));
        self.log_server_stats();
        self.count()
    }

    pub(super) fn log_server_stats(&mut self) {
        self.log.push(Engine::Server, self.net.now, || Op::Stats(format!("{:?}", self.end.server.stats())));
    }

    fn operate(&mut self) {
        let n = self.below(self.clients.len() as u64) as usize;
        if self.clients[n].is_waited_for() && self.per_mille(400) {
            return self.oblige(n, false);
        }
        let odd = matches!(self.clients[n].state(), State::Probing | State::Initializing | State::Lapsed);
        if odd && self.per_mille(400) {
            return self.burst(n);
        }
        match self.below(100) {
            0..=41 => self.some_work(n),
            42..=48 => {
                self.call(n, None, Some(TIMEOUT), tools::list());
            }
            49..=52 if self.net.chaos.rate > 0 => {
                self.net.chaos.count(Fault::Cancel);
                let call = self.clients[n].some_call();
                self.apply(n, Input::Command(ClientCommand::Cancel(call, Some("no longer wanted".into()))));
            }
            53..=55 => self.publish(),
            56 => {
                self.apply(n, Input::Command(ClientCommand::Notify("acme/note".into(), Object::new())));
            }
            // In the end nothing changes what is watched.
            _ if self.net.chaos.rate > 0 && self.per_mille(40) => {
                let command = self.clients[n].watch_or_log();
                self.apply(n, Input::Command(command));
            }
            57..=58 => {
                if self.per_mille(400) {
                    self.apply(n, Input::Command(ClientCommand::Close));
                }
                if self.clients[n].ended.is_some()
                    && self.clients.len() < 2 * self.end.scenario.settings.clients as usize
                {
                    self.add_host();
                }
            }
            59..=62 => self.spurious(n),
            63..=65 => self.spurious_at_server(),
            66..=87 if self.net.chaos.rate > 0 && self.end.life == Life::Serving => {
                for _ in 0..=self.below(4) {
                    self.attack();
                }
            }
            88..=91 if self.net.chaos.rate > 0 => self.dead_idle(),
            92..=96 if self.net.chaos.rate > 0 => self.mishap(n),
            _ => self.some_work(n),
        }
    }

    /// Something that happens to a whole client, or to the server.
    fn mishap(&mut self, n: usize) {
        match self.below(8) {
            0 | 1 => self.crash(),
            2 | 3 => self.restart(),
            4 | 5 => self.vanish(n),
            _ => {
                self.net.chaos.count(Fault::Asleep);
                self.clients[n].asleep = self.net.now + self.end.scenario.settings.session_idle * 3 / 2;
            }
        }
    }

    /// A client is gone, and its connections with it, without a word.
    fn vanish(&mut self, n: usize) {
        self.net.chaos.count(Fault::Vanish);
        self.log_stats(n);
        let host = self.clients.swap_remove(n);
        let owner = host.number;
        self.net.links.iter_mut().filter(|link| link.owner == owner).for_each(|link| link.frozen = true);
        // The server has left these already, and a proxy has no timers.
        self.net.links.retain(|link| !link.frozen || link.wrap.as_ref().is_none_or(|wrap| wrap.has()[1]));
        self.net.opening.retain(|(_, of, ..)| *of != owner);
        self.net.closing.retain(|(_, of, ..)| *of != owner);
        self.net.hanging.retain(|(of, _)| *of != owner);
        self.add_host();
    }

    /// Answers a question or a challenge.
    pub(super) fn oblige(&mut self, n: usize, kindly: bool) {
        if let Some(command) = self.clients[n].oblige(kindly) {
            self.apply(n, Input::Command(command));
        }
    }

    /// A client that is not ready, or not any more, is looked at closely.
    pub(super) fn burst(&mut self, n: usize) {
        let lapsed = self.clients[n].state() == State::Lapsed;
        for _ in 0..self.below(if lapsed { 45 } else { 5 }) {
            let command = match self.below(8) {
                2..=4 | 6 if lapsed && self.per_mille(700) => {
                    self.spurious(n);
                    continue;
                }
                0 | 7 => ClientCommand::Cancel(self.clients[n].some_call(), None),
                1 | 2 => stray_answer(),
                3 | 4 => ClientCommand::Notify("acme/note".into(), Object::new()),
                5 if self.per_mille(if self.clients[n].closing {
                    700
                } else if lapsed {
                    400
                } else {
                    200
                }) =>
                {
                    ClientCommand::Close
                }
                6 => {
                    self.spurious(n);
                    continue;
                }
                _ => return self.some_work(n),
            };
            self.apply(n, Input::Command(command));
        }
    }

    /// Applies an input that no correct driver sends.
    fn spurious(&mut self, n: usize) {
        let channel = ConnectionId(1 + self.below(40));
        let is_known = self.net.is_known(self.clients[n].number, channel);
        let choice = self.below(9);
        self.apply(n, stray(if choice == 7 { 4 } else { choice }, channel, is_known));
    }

    /// Checks the invariants after each step.
    pub(super) fn look(&mut self) {
        let now = self.net.now;
        self.clients.iter_mut().for_each(|host| host.look(now));
        let limits = &self.end.config.limits.server;
        assert!(self.end.server.running() <= limits.max_running_requests, "more requests than the limit");
        assert!(self.end.watch.open_sessions() <= limits.max_sessions, "more sessions than the limit");
        // A response is never refused, and the stored events are at most the history.
        let most = limits.max_unsent + self.end.scenario.settings.history_bytes + (64 << 10);
        assert!(self.net.links.iter().all(|link| link.unsent <= most), "more unsent bytes than the limit");
    }
}
