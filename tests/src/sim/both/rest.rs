//! The end of a world: every client recovers without faults, every client closes, and no state is
//! left.

use super::super::app::Work;
use super::super::client::late;
use super::World;
use super::end::RAW;
use super::{Life, Report};
use mcp_proto::client::State;
use mcp_proto::input::{Change, ClientCommand, Input, ServerCommand};
use std::time::Duration;

/// The maximum recovery time of a client without faults: the longest wait between two attempts, the
/// longest sleep and a margin. By then the sessions of closed clients have ended.
const RECOVERY: Duration = Duration::from_secs(700);

impl World {
    /// Nothing goes wrong any more: every client finds its way back, unless it has ended.
    pub(super) fn recover(&mut self) {
        for _ in 0..4 {
            self.wait(RECOVERY / 4, |_| false);
            for n in 0..self.clients.len() {
                while self.clients[n].is_waited_for() && self.clients[n].ended.is_none() {
                    self.oblige(n, true);
                }
            }
        }
        assert_eq!(self.end.life, Life::Serving);
        for n in 0..self.clients.len() {
            self.check_well(n);
        }
        self.check_watchers();
    }

    fn check_well(&mut self, n: usize) {
        let host = &self.clients[n];
        if host.ended.is_some() || host.closing {
            return;
        }
        let state = host.state();
        assert!(matches!(state, State::Ready | State::Lapsed), "it is {state:?} though nothing goes wrong");
        // Several sessions that ended unused count as a server without sessions. The following call
        // tries again.
        let (before, alive) = (self.report.completed, self.alive());
        for _ in 0..2 {
            if self.report.completed == before && !self.clients[n].closing {
                self.call_of(n);
            }
        }
        let number = self.clients[n].number;
        // A client whose session has ended may close itself before it has another.
        let is_served = self.report.completed > before || self.clients[n].closing;
        // Of more clients than there may be sessions one is refused.
        let most = self.end.config.limits.server.max_sessions;
        let is_one_too_many = alive > most && self.end.watch.open_sessions() == most;
        assert!(is_served || is_one_too_many, "a call of client {number} fails though nothing goes wrong");
    }

    /// How many clients have not ended, and are not about to.
    fn alive(&self) -> usize {
        self.clients.iter().filter(|host| host.ended.is_none() && !host.closing).count()
    }

    fn call_of(&mut self, n: usize) {
        self.tag += 1;
        let tag = self.tag;
        let work = Work { tag, millis: 10, says: Some(1), ..Work::marked(self.clients[n].number) };
        assert!(self.work(n, &work), "a call is refused though nothing goes wrong");
        for _ in 0..5 {
            self.wait(Duration::from_secs(4), |world| !world.clients[n].alive.contains(&tag));
            if self.clients[n].is_waited_for() {
                self.oblige(n, true);
            }
        }
    }

    /// Every client that watches the tools receives their change.
    fn check_watchers(&mut self) {
        let ready = |world: &Self, n: usize| {
            let host = &world.clients[n];
            host.watches()
                && host.state() == State::Ready
                && world.end.watch.is_ready(host.number)
                && host.changed.is_none_or(|at| at < world.net.now)
        };
        self.net.now = self.net.now + Duration::from_millis(1);
        let watchers: Vec<usize> = (0..self.clients.len()).filter(|n| ready(self, *n)).collect();
        let published = self.net.now;
        self.apply_to_server(Input::Command(ServerCommand::Publish(Change::Tools)));
        self.wait(Duration::from_secs(60), |_| false);
        for n in watchers {
            let host = &self.clients[n];
            let told = host.changed.is_some_and(|at| at >= published) || host.state() != State::Ready;
            let few = self.end.config.limits.server.max_streams < 16;
            assert!(told || few, "client {} was not told that the tools changed", host.number);
        }
    }

    /// Every client ends, and the malicious peer disconnects.
    pub(super) fn close_all(&mut self) {
        for n in 0..self.clients.len() {
            self.apply(n, Input::Command(ClientCommand::Close));
        }
        for _ in 0..100_000 {
            let Some(n) = self.clients.iter().position(|host| host.state() == State::Closing) else { break };
            if self.per_mille(600) {
                self.burst(n);
            }
            let until = self.net.now + Duration::from_secs(600);
            if !self.step(until) {
                break;
            }
        }
        // Sleeping tasks wake up, and the sessions of closed clients end.
        self.wait(self.end.scenario.settings.session_idle * 4 + Duration::from_secs(600), |world| {
            world.next().is_none()
        });
    }

    /// Nothing is left of anything.
    pub(super) fn check_rest(&mut self) {
        self.clients.iter().for_each(|host| host.check_rest());
        assert!(self.end.app.tasks.is_empty(), "tasks that were not cancelled: {:?}", self.end.app.tasks.keys());
        assert!(self.net.links.is_empty() && self.net.opening.is_empty(), "connections that were not closed");
        assert_eq!(self.end.life, Life::Serving);
        assert_eq!(self.end.watch.open_sessions(), 0, "sessions without a user");
        self.check_server_at_rest();
        self.clients.iter().for_each(|client| client.check_runs(&self.end.app.handed));
        self.apply_to_server(Input::Command(ServerCommand::Shutdown(Duration::from_secs(1))));
        assert_eq!(self.end.life, Life::Ended, "nothing runs, and it does not end");
    }

    /// The server holds nothing, and waits for nothing.
    pub(super) fn check_server_at_rest(&self) {
        assert_eq!(self.end.server.running(), 0);
        assert_eq!(self.end.server.poll_timeout(), None, "the server waits for something: {:?}", self.end.server);
        let stats = self.end.server.stats();
        assert_eq!((stats.running, stats.channels, stats.queued), (0, 0, 0));
        assert_eq!((stats.sessions, stats.streams), (0, 0));
        assert_eq!((stats.lost_notifications, stats.lost_diagnostics), (0, 0));
        let shown = format!("{:?}", self.end.server);
        let tables =
            shown.split_once("server: Server {").and_then(|(_, rest)| rest.split_once('}')).expect("a server").0;
        let full = tables.split(", ").filter_map(|field| field.split_once(": ")?.1.trim().parse::<u64>().ok());
        assert_eq!(full.sum::<u64>(), 0, "the server holds something: {tables}");
    }

    pub(super) fn spurious_after_the_end(&mut self) {
        for n in 0..self.clients.len() {
            for input in late("HTTP/1.1 200 OK\r\n\r\n") {
                if !matches!(input, Input::Command(ClientCommand::Answer(..))) {
                    self.apply(n, input);
                }
            }
            self.burst(n);
            self.apply(n, Input::Tick);
        }
        for _ in 0..9 {
            self.spurious_at_server();
        }
        assert!(self.next().is_none(), "something happens after the end");
        assert!(!self.net.links.iter().any(|link| link.owner != RAW));
    }

    pub(super) fn count(&mut self) -> Report {
        self.report.statuses = self.end.watch.statuses.clone();
        (self.report.kept, self.report.replayed) = self.end.watch.events;
        self.report.resumed = self
            .end
            .done
            .values()
            .filter(|run| run.delivered && self.end.watch.resumed.contains(&run.mark.tag))
            .count() as u64;
        self.report.answered = self.clients.iter().map(|client| client.own.answered).sum();
        self.results()
    }
}
