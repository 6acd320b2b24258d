//! The end of a world: every client recovers without faults, every client closes, and no state is
//! left.

use super::World;
use super::app::Work;
use super::net::Owner;
use super::{Life, Report};
use mcp_proto::client::State;
use mcp_proto::exchange::{Closed, ConnectionId, IoEvent, Peer};
use mcp_proto::input::{Change, ClientCommand, Input, ServerCommand};
use mcp_proto::tools;
use std::time::Duration;

/// The maximum recovery time of a client without faults: the longest wait between two attempts, the
/// longest sleep and a margin. By then the sessions of closed clients have ended.
const RECOVERY: Duration = Duration::from_secs(700);

impl World {
    /// Nothing goes wrong any more: every client finds its way back, unless it has ended.
    pub(super) fn recover(&mut self) {
        for _ in 0..4 {
            self.wait(RECOVERY / 4, |_| false);
            for n in 0..self.hosts.len() {
                while self.hosts[n].is_waited_for() && self.hosts[n].ended.is_none() {
                    self.oblige(n, true);
                }
            }
        }
        assert_eq!(self.life, Life::Serving);
        for n in 0..self.hosts.len() {
            self.check_well(n);
        }
        self.check_watchers();
    }

    fn check_well(&mut self, n: usize) {
        let host = &self.hosts[n];
        if host.ended.is_some() || host.closing {
            return;
        }
        let state = host.state();
        assert!(matches!(state, State::Ready | State::Lapsed), "it is {state:?} though nothing goes wrong");
        // Several sessions that ended unused count as a server without sessions. The following call
        // tries again.
        let (before, alive) = (self.report.completed, self.alive());
        for _ in 0..2 {
            if self.report.completed == before && !self.hosts[n].closing {
                self.call_of(n);
            }
        }
        let number = self.hosts[n].number;
        // A client whose session has ended may close itself before it has another.
        let is_served = self.report.completed > before || self.hosts[n].closing;
        // Of more clients than there may be sessions one is refused.
        let most = self.config.limits.server.max_sessions;
        let is_one_too_many = alive > most && self.watch.open_sessions() == most;
        assert!(is_served || is_one_too_many, "a call of client {number} fails though nothing goes wrong");
    }

    /// How many clients have not ended, and are not about to.
    fn alive(&self) -> usize {
        self.hosts.iter().filter(|host| host.ended.is_none() && !host.closing).count()
    }

    fn call_of(&mut self, n: usize) {
        self.tag += 1;
        let tag = self.tag;
        let work = Work { tag, millis: 10, says: Some(1), ..Work::marked(self.hosts[n].number) };
        assert!(self.work(n, &work), "a call is refused though nothing goes wrong");
        for _ in 0..5 {
            self.wait(Duration::from_secs(4), |world| !world.hosts[n].alive.contains(&tag));
            if self.hosts[n].is_waited_for() {
                self.oblige(n, true);
            }
        }
    }

    /// Every client that watches the tools receives their change.
    fn check_watchers(&mut self) {
        let ready = |world: &Self, n: usize| {
            let host = &world.hosts[n];
            host.watches
                && host.state() == State::Ready
                && world.watch.is_ready(host.number)
                && host.changed.is_none_or(|at| at < world.now)
        };
        self.now = self.now + Duration::from_millis(1);
        let watchers: Vec<usize> = (0..self.hosts.len()).filter(|n| ready(self, *n)).collect();
        let published = self.now;
        self.tell_server(Input::Command(ServerCommand::Publish(Change::Tools)));
        self.wait(Duration::from_secs(60), |_| false);
        for n in watchers {
            let host = &self.hosts[n];
            let told = host.changed.is_some_and(|at| at >= published) || host.state() != State::Ready;
            let few = self.config.limits.server.max_streams < 16;
            assert!(told || few, "client {} was not told that the tools changed", host.number);
        }
    }

    /// Every client ends, and the malicious peer disconnects.
    pub(super) fn close_all(&mut self) {
        for n in 0..self.hosts.len() {
            self.tell(n, Input::Command(ClientCommand::Close));
        }
        for _ in 0..100_000 {
            let Some(n) = self.hosts.iter().position(|host| host.state() == State::Closing) else { break };
            if self.rng.per_mille(600) {
                self.burst(n);
            }
            let until = self.now + Duration::from_secs(600);
            if !self.step(until) {
                break;
            }
        }
        // Sleeping tasks wake up, and the sessions of closed clients end.
        self.wait(self.scenario.settings.session_idle * 4 + Duration::from_secs(600), |world| world.next().is_none());
    }

    /// Nothing is left of anything.
    pub(super) fn check_rest(&mut self) {
        self.hosts.iter().for_each(|host| host.check_rest());
        assert!(self.tasks.is_empty(), "tasks that were not cancelled: {:?}", self.tasks.keys());
        assert!(self.links.is_empty() && self.opening.is_empty(), "connections that were not closed");
        assert_eq!(self.life, Life::Serving);
        assert_eq!(self.watch.open_sessions(), 0, "sessions without a user");
        self.check_server_at_rest();
        for host in &self.hosts {
            for tag in &host.unsent {
                let ran = self.handed.contains_key(&(*tag, 0));
                assert!(!ran, "the call {tag} ran, and its end says that it certainly did not");
            }
            let twice = self.handed.iter().find(|((tag, _), n)| host.once.contains(tag) && **n > 1);
            assert_eq!(twice, None, "a call ran twice");
        }
        self.tell_server(Input::Command(ServerCommand::Shutdown(Duration::from_secs(1))));
        assert_eq!(self.life, Life::Ended, "nothing runs, and it does not end");
    }

    /// The server holds nothing, and waits for nothing.
    pub(super) fn check_server_at_rest(&self) {
        assert_eq!(self.server.running(), 0);
        assert_eq!(self.server.poll_timeout(), None, "the server waits for something: {:?}", self.server);
        let stats = self.server.stats();
        assert_eq!((stats.running, stats.channels, stats.queued), (0, 0, 0));
        assert_eq!((stats.sessions, stats.streams), (0, 0));
        assert_eq!((stats.lost_notifications, stats.lost_diagnostics), (0, 0));
        let shown = format!("{:?}", self.server);
        let tables =
            shown.split_once("server: Server {").and_then(|(_, rest)| rest.split_once('}')).expect("a server").0;
        let full = tables.split(", ").filter_map(|field| field.split_once(": ")?.1.trim().parse::<u64>().ok());
        assert_eq!(full.sum::<u64>(), 0, "the server holds something: {tables}");
    }

    pub(super) fn spurious_after_the_end(&mut self) {
        for n in 0..self.hosts.len() {
            let channel = ConnectionId(1);
            for event in [
                IoEvent::Opened(Peer::default()),
                IoEvent::Read("HTTP/1.1 200 OK\r\n\r\n".into()),
                IoEvent::ReadClosed,
                IoEvent::Written(10),
                IoEvent::Closed(Closed::Eof),
            ] {
                self.tell(n, Input::Event(channel, event));
            }
            for command in [
                ClientCommand::Call(tools::list().into_raw()),
                ClientCommand::Cancel(mcp_proto::input::CallId(1), None),
                ClientCommand::Notify("x".into(), mcp_proto::rpc::Object::new()),
                ClientCommand::Close,
            ] {
                self.tell(n, Input::Command(command));
            }
            self.burst(n);
            self.tell(n, Input::Tick);
        }
        for _ in 0..9 {
            self.spurious_at_server();
        }
        assert!(self.next().is_none(), "something happens after the end");
        assert!(!self.links.iter().any(|link| link.owner != Owner::Raw));
    }

    pub(super) fn count(&mut self) -> Report {
        self.report.steps = self.chaos.steps;
        self.report.faults = self.chaos.faults.clone();
        self.report.statuses = self.watch.statuses.clone();
        (self.report.kept, self.report.replayed) = self.watch.events;
        self.report.resumed =
            self.done.values().filter(|run| run.delivered && self.watch.resumed.contains(&run.mark.tag)).count() as u64;
        self.report.answered = self.hosts.iter().map(super::host::Host::answers).sum();
        std::mem::take(&mut self.report)
    }
}
