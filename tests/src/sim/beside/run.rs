//! The random operations of a run, its end, and the invariants after it.

use super::super::app::Work;
use super::super::both::host::TIMEOUT;
use super::super::client::late;
use super::super::report::Report;
use super::{Fault, World};
use mcp_proto::client::{EndpointRefresh, State};
use mcp_proto::input::{Change, ClientCommand, Input, ServerCommand};
use mcp_proto::rpc::Object;
use mcp_proto::tools;
use std::time::Duration;

/// The maximum recovery time of a client without faults. No quarter of it is the time after which a
/// server closes an idle connection, at which a call might be lost.
const RECOVERY: Duration = Duration::from_secs(200);

impl World {
    /// Runs to the end: the operations, a time without faults in which every client must recover,
    /// then the end of every client and of the server. After that no state may be left.
    pub(in crate::sim) fn run(&mut self) -> Report {
        while self.operations < self.end.operations {
            while self.step(self.next_operation) {}
            self.net.now = self.net.now.max(self.next_operation);
            let pause = self.of(&[20, 100, 400, 4_000]);
            if self.begins_operation(pause) {
                self.operate();
            }
        }
        self.net.chaos.rate = 0;
        self.recover();
        self.close_all();
        self.check_rest();
        self.results()
    }

    fn some_work(&mut self, n: usize) {
        self.tag += 1;
        let mut work = self.clients[n].some_work(self.tag);
        // Only a stream that can be resumed is closed.
        work.closes = Some(false);
        let (call, limit) = self.clients[n].ask_for(&work);
        self.call(n, Some(work.tag), limit, call);
    }

    fn operate(&mut self) {
        let n = self.below(self.clients.len() as u64) as usize;
        if self.clients[n].ended.is_some() {
            if self.clients.len() < 4 * self.end.clients as usize {
                self.add_host();
            }
            return;
        }
        if self.clients[n].is_waited_for() && self.per_mille(400) {
            return self.oblige(n, false);
        }
        match self.below(100) {
            0..=8 => {
                self.call(n, None, Some(TIMEOUT), tools::list());
            }
            9..=12 if self.net.chaos.rate > 0 => {
                self.net.chaos.count(Fault::Cancel);
                let call = self.clients[n].some_call();
                self.apply(n, Input::Command(ClientCommand::Cancel(call, Some("no longer wanted".into()))));
            }
            13..=15 => self.apply_to_server(Input::Command(ServerCommand::Publish(Change::Tools))),
            16 => _ = self.apply(n, Input::Command(ClientCommand::Notify("acme/note".into(), Object::new()))),
            17 if self.per_mille(300) => _ = self.apply(n, Input::Command(ClientCommand::Close)),
            18..=19 if self.net.chaos.rate > 0 => self.crash(),
            20..=22 if self.net.chaos.rate > 0 => {
                let command = self.clients[n].watch_or_log();
                self.apply(n, Input::Command(command));
            }
            23 if self.net.chaos.rate > 0 => {
                self.net.chaos.count(Fault::Asleep);
                self.clients[n].asleep = self.net.now + Duration::from_secs(self.of(&[10, 90]));
            }
            _ => self.some_work(n),
        }
    }

    fn oblige(&mut self, n: usize, kindly: bool) {
        if let Some(command) = self.clients[n].oblige(kindly) {
            self.apply(n, Input::Command(command));
        }
    }

    /// Nothing goes wrong any more: every client finds its way back, unless it has ended. A new one
    /// is served as well.
    fn recover(&mut self) {
        self.add_host();
        for _ in 0..4 {
            self.wait(RECOVERY / 4, |_| false);
            for n in 0..self.clients.len() {
                while self.clients[n].is_waited_for() && self.clients[n].ended.is_none() {
                    self.oblige(n, true);
                }
            }
        }
        for n in 0..self.clients.len() {
            self.check_well(n);
        }
    }

    fn check_well(&mut self, n: usize) {
        let host = &self.clients[n];
        if host.ended.is_some() || host.closing {
            return;
        }
        let (number, state) = (host.number, host.state());
        assert!(
            matches!(state, State::Ready | State::Lapsed),
            "client {number} is {state:?} though nothing goes wrong"
        );
        let before = self.report.completed;
        self.tag += 1;
        let tag = self.tag;
        let work = Work { tag, millis: 10, says: Some(1), ..Work::marked(number) };
        let (call, limit) = self.clients[n].ask_for(&work);
        assert!(self.call(n, Some(tag), limit, call).is_some(), "a call is refused though nothing goes wrong");
        self.wait(Duration::from_secs(60), |world| !world.clients[n].alive.contains(&tag));
        // A client that takes every endpoint for its own session is at odds with this server, which
        // opens a session for each stream: its calls end, with the errors of the server.
        let follows = self.clients[n].config().compat.endpoint_refresh == EndpointRefresh::Continue;
        let is_served = self.report.completed > before || follows && !self.clients[n].alive.contains(&tag);
        assert!(is_served, "a call of client {number} fails though nothing goes wrong");
    }

    fn close_all(&mut self) {
        for n in 0..self.clients.len() {
            self.apply(n, Input::Command(ClientCommand::Close));
        }
        self.wait(Duration::from_secs(3_600), |world| world.next().is_none());
    }

    /// Nothing is left of anything.
    fn check_rest(&mut self) {
        self.clients.iter().for_each(|host| host.check_rest());
        assert!(self.end.app.tasks.is_empty(), "tasks that were not cancelled: {:?}", self.end.app.tasks.keys());
        assert!(self.net.is_empty(), "connections that were not closed");
        assert_eq!(self.end.server.running(), 0);
        assert_eq!(self.end.server.poll_timeout(), None, "the server waits for something: {:?}", self.end.server);
        let stats = self.end.server.stats();
        assert_eq!((stats.running, stats.channels, stats.queued), (0, 0, 0));
        assert_eq!((stats.sessions, stats.streams), (0, 0));
        self.clients.iter().for_each(|client| client.check_runs(&self.end.app.handed));
        for n in 0..self.clients.len() {
            for input in late("HTTP/1.1 200 OK\r\n\r\n") {
                if !matches!(input, Input::Command(ClientCommand::Answer(..))) {
                    self.apply(n, input);
                }
            }
        }
        assert!(self.next().is_none(), "something happens after the end");
        self.apply_to_server(Input::Command(ServerCommand::Shutdown(Duration::from_secs(1))));
        assert!(self.end.server.is_terminated(), "nothing runs, and it does not end");
    }
}
