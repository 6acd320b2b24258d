//! The server of a world and its application: its admissions, the times of its responses, its end
//! and its restart, and the invariants of its requests.

use super::super::accept;
use super::super::app::{Deed, Task, some_change, stray_note};
use super::super::digest::log::{Engine, Op};
use super::end::RAW;
use super::host::Done;
use super::{Fault, Rng, Scenario, World};
use super::{Life, ServerInputKind};
use mcp_proto::Era;
use mcp_proto::exchange::{Action, Closed, ConnectionId, IoEvent, RequestHead};
use mcp_proto::input::{
    Admission, AdmitKey, AdmitToken, Change, Input, Note, Principal, RequestKey, ServerCommand, WiredServerInput,
};
use mcp_proto::server::{Event, IncomingRequest, Responder, ServerCommands, ServerConfig, SessionEnd};
use mcp_proto::wired::WiredServer;
use std::sync::Arc;
use std::time::Duration;

/// The configuration of the server of a scenario.
pub(super) fn configure(mut config: ServerConfig, scenario: &Scenario, rng: &mut Rng) -> ServerConfig {
    config.admit = scenario.settings.admit;
    config.sessions = scenario.settings.sessions;
    config.hosts = scenario.settings.road.hosts();
    config.report_kept = true;
    config.retry = scenario.settings.retry;
    config.stream_after = scenario.settings.stream_after;
    config.keep_alive = Some(Duration::from_secs(rng.of(&[5, 15])));
    let limits = &mut config.limits.server;
    limits.page_size = 3;
    limits.ask_timeout = Duration::from_secs(60);
    limits.max_running_requests = rng.of(&[8, 64]);
    limits.max_sessions = rng.of(&[4, 16]);
    limits.max_streams = rng.of(&[4, 64]);
    // With 4, up to 4 clients of one principal may be alive, and each must get its session in the
    // end.
    limits.client_shares = if limits.max_sessions == 16 && scenario.seed.is_multiple_of(2) { 2 } else { 1 };
    limits.max_unsent = scenario.settings.max_unsent;
    limits.session_idle = scenario.settings.session_idle;
    limits.session_sweep = Duration::from_secs(20);
    limits.session_start = Duration::from_secs(20);
    limits.history_events = scenario.settings.history_events;
    limits.history_bytes = scenario.settings.history_bytes;
    limits.history_keep = Duration::from_secs(rng.of(&[5, 60]));
    limits.admit_timeout = Duration::from_secs(5);
    limits.handler_deadline = scenario.settings.handler_deadline;
    limits.max_queued_events = usize::MAX;
    config
}

impl World {
    pub(super) fn count_server(&mut self, kind: ServerInputKind) {
        *self.report.server_pairs.entry((self.end.life, kind)).or_default() += 1;
    }

    /// Applies an input to the server, and carries out its outputs.
    pub(super) fn apply_to_server(&mut self, input: WiredServerInput) {
        self.count_server(ServerInputKind::of(&input));
        self.trace(|| format!("server {:?} <- {input:?}", self.end.life));
        if self.end.life == Life::Serving && matches!(input, Input::Command(ServerCommand::Shutdown(_))) {
            self.end.life = Life::Draining;
            self.end.watch.shut_down();
            self.end.drain_until = self.net.now + Duration::from_secs(300);
        }
        self.log.server(self.net.now, &input);
        let _ = self.end.server.apply(self.net.now, input);
        self.drain_server();
    }

    pub(super) fn drain_server(&mut self) {
        while let Some(action) = self.end.server.poll_output() {
            self.trace(|| format!("server -> {action:?}"));
            assert!(self.end.life != Life::Ended, "{action:?} after the end of the server");
            match action {
                Action::Open(..) | Action::Secure(..) | Action::Notice(..) => panic!("a server emits no {action:?}"),
                Action::Read(channel, reads) => self.read_at_server(channel, reads),
                Action::Write(channel, bytes) => self.server_writes(channel, bytes),
                Action::Close(channel, how) => self.close_at_server(channel, how),
                Action::Event(event) => self.server_event(event),
            }
        }
        self.end.watch.settle();
        for task in std::mem::take(&mut self.end.cancelled) {
            // A disconnect cancels nothing in a session, and no client cancels a request of
            // another.
            if let (Some(session), None) = (task.context.session, self.end.config.limits.server.handler_deadline) {
                let may = self.end.life != Life::Serving || self.end.watch.may_cancel(session, task.mark);
                assert!(may, "{:?} was cancelled without an event", task.mark);
            }
            self.end.late.extend(task.into_late_answer());
            self.end.late.truncate(20);
        }
    }

    fn server_event(&mut self, event: Event) {
        self.end.watch.told(&event);
        match event {
            Event::Request(responder, incoming) => self.request(responder, incoming),
            Event::Cancelled(key) => self.end.cancelled.extend(self.end.app.tasks.remove(&key)),
            Event::Admit(token, head) => self.ask_to_admit(token, &head.expect("a request over HTTP")),
            Event::SessionOpened(_) => self.report.sessions += 1,
            Event::SessionEnded(_, why) => self.report.idled += u64::from(why == SessionEnd::Idle),
            Event::Terminated => {
                assert!(
                    self.end.app.tasks.is_empty(),
                    "tasks that were not cancelled: {:?}",
                    self.end.app.tasks.keys()
                );
                self.end.life = Life::Ended;
            }
            _ => {}
        }
    }

    // ---- requests

    fn request(&mut self, responder: Responder, incoming: IncomingRequest) {
        let key = responder.key();
        self.report.handled += 1;
        if let Some(answer) = self.end.app.request(responder, incoming, self.net.now) {
            return self.apply_to_server(Input::Command(answer));
        }
        let task = &self.end.app.tasks[&key];
        self.check_asker(task);
        self.end.pages.extend(task.pages());
        self.end.pages.truncate(20);
        self.end.done.insert(task.mark.run, Done::begun(task.mark));
    }

    /// A request has the peer that sent it.
    fn check_asker(&self, task: &Task) {
        let context = &task.context;
        let principal = if task.mark.host >= RAW {
            Some(RAW)
        } else {
            self.clients.iter().find(|host| host.number == task.mark.host).map(|host| host.own.principal)
        };
        if let Some(principal) = principal.filter(|_| self.end.scenario.settings.admit) {
            let expected = Some(Principal(principal.to_string().into()));
            assert_eq!(context.principal, expected, "{:?} on behalf of another", task.mark);
        }
        if let Some(session) = context.session {
            let owner = self.end.watch.owner(session).map(|session| session.peer.number);
            assert_eq!(owner, Some(task.mark.host), "{:?} in the session of another", task.mark);
        }
        assert!(context.http.is_some(), "a request over HTTP has a head");
    }

    pub(super) fn act(&mut self, key: RequestKey) {
        let Some(task) = self.end.app.tasks.get_mut(&key) else { return };
        let mark = task.mark;
        match task.act(self.net.now) {
            Deed::Note(key, note, number) => {
                self.log.push(Engine::Server, self.net.now, || Op::Act(key.number()));
                let closes = matches!(note, Note::CloseStream(_));
                self.count_server(ServerInputKind::Notify);
                self.trace(|| format!("{mark:?} notes {note:?}"));
                let told = self.end.server.notify(self.net.now, key, note).is_ok();
                if told && closes {
                    self.net.chaos.count(Fault::CloseStream);
                }
                let said = number.filter(|_| told);
                self.end.done.get_mut(&mark.run).expect("it runs").said.extend(said);
                self.drain_server();
            }
            Deed::Answer(responder, outcome) => {
                if self.net.chaos.hit(Fault::SlowHandler, 400) {
                    return self.dawdle(key, *responder);
                }
                self.log.push(Engine::Server, self.net.now, || Op::Act(key.number()));
                let task = self.end.app.tasks.remove(&key).expect("as above");
                self.end.done.get_mut(&mark.run).expect("it runs").answered = !task.asks();
                let answer = responder.write(outcome);
                self.apply_to_server(Input::Command(ServerCommand::Respond(answer)));
            }
        }
    }

    fn dawdle(&mut self, key: RequestKey, responder: Responder) {
        let until = self.net.now + Duration::from_secs(20 + self.below(60));
        if let Some(task) = self.end.app.tasks.get_mut(&key) {
            task.resume(responder, until);
        }
    }

    /// After a disconnect a request of 2026-07-28 is cancelled, and one of a session continues.
    pub(super) fn check_disconnected(&self, channel: ConnectionId) {
        for task in self.end.app.tasks.values() {
            let here = task.exchange().is_some_and(|exchange| exchange.connection() == channel.0);
            let modern = task.context.version.era() == Era::Modern;
            assert!(!here || !modern, "{:?} goes on without a client", task.mark);
        }
    }

    // ---- admission

    fn ask_to_admit(&mut self, token: AdmitToken, head: &RequestHead) {
        let principal = head
            .headers
            .get("Authorization")
            .and_then(|value| value.strip_prefix("Bearer "))
            .and_then(|value| value.split('.').next());
        // A session was lost, and another is not to be had.
        let anew = head.headers.get("Mcp-Session-Id").or(head.headers.get("MCP-Protocol-Version")).is_none();
        let is_closed = anew && self.net.now < self.end.closed_until && self.net.chaos.rate > 0;
        let admission = match principal {
            Some(_) if is_closed && self.per_mille(700) => {
                self.net.chaos.count(Fault::Forbidden);
                Admission::Forbidden(None)
            }
            Some(_) if self.net.chaos.hit(Fault::Unauthorized, 130) => {
                Admission::Unauthorized("Bearer error=\"invalid_token\"".into())
            }
            Some(_) if self.net.chaos.hit(Fault::Forbidden, 120) => Admission::Forbidden(None),
            Some(principal) => Admission::Accept(Some(Principal(principal.into()))),
            None => Admission::Unauthorized("Bearer realm=\"sim\"".into()),
        };
        let after = match self.below(3) {
            _ if self.net.chaos.hit(Fault::AdmitLate, 120) => 6_000 + self.below(6_000),
            0 => self.below(500),
            _ => 0,
        };
        self.end.admits.push((self.net.now + Duration::from_millis(after), token, admission));
    }

    pub(super) fn admit(&mut self, n: usize) {
        let (_, token, admission) = self.end.admits.swap_remove(n);
        self.apply_to_server(Input::Command(ServerCommand::Admit(token.key(), admission)));
    }

    // ---- its life

    /// What the server offers has changed, or a user has done what a web page asks for.
    pub(super) fn publish(&mut self) {
        if let Some(id) = self.end.pages.pop_front() {
            self.apply_to_server(Input::Command(ServerCommand::Elicited(id)));
        }
        let changes =
            some_change(self.below(8)).map_or_else(|is_larger| self.replace(is_larger), |change| vec![change]);
        for change in changes {
            self.apply_to_server(Input::Command(ServerCommand::Publish(change)));
        }
    }

    fn replace(&mut self, is_larger: bool) -> Vec<Change> {
        self.log.push(Engine::Server, self.net.now, || Op::Replace(is_larger));
        self.end.app.replace(is_larger, &self.end.config)
    }

    /// It is gone without a word.
    pub(super) fn crash(&mut self) {
        if self.end.up.is_some() {
            return;
        }
        self.net.chaos.count(Fault::Crash);
        self.log_server_stats();
        self.log.push(Engine::Server, self.net.now, || Op::Crash);
        // The clients receive the rest of its output after it has ended.
        self.end.server = WiredServer::new(Arc::clone(&self.end.config), [0; 32], self.net.now);
        self.end.server.shutdown(self.net.now, Duration::ZERO);
        while self.end.server.poll_output().is_some() {}
        self.end.life = Life::Ended;
        self.forget_server();
        while !self.net.links.is_empty() {
            self.cut(0, Closed::Reset, Closed::Reset);
        }
        self.end.up = Some(self.net.now + Duration::from_millis(self.below(5_000)));
    }

    /// It ends in order.
    pub(super) fn restart(&mut self) {
        if self.end.up.is_some() {
            return;
        }
        self.net.chaos.count(Fault::Restart);
        let grace = Duration::from_millis(self.of(&[0, 500, 5_000]));
        self.apply_to_server(Input::Command(ServerCommand::Shutdown(grace)));
        self.end.up = Some(self.net.now + grace + Duration::from_millis(self.below(5_000)));
        self.burst_at_server();
    }

    /// Starts another server at its address.
    pub(super) fn come_up(&mut self) {
        if self.end.life == Life::Draining {
            // A client still reads the last output.
            assert!(self.net.now < self.end.drain_until, "it does not end: {:?}", self.end.server);
            self.end.up = Some(self.net.now + Duration::from_secs(1));
            return self.spurious_at_server();
        }
        self.end.up = None;
        self.burst_at_server();
        self.check_server_at_rest();
        let seed = self.rng().seed();
        self.log.push(Engine::Server, self.net.now, || Op::Server(seed));
        self.end.server = WiredServer::new(Arc::clone(&self.end.config), seed, self.net.now);
        if self.per_mille(800) {
            self.end.closed_until = self.net.now + Duration::from_secs(30);
        }
        self.end.life = Life::Serving;
        self.forget_server();
    }

    fn forget_server(&mut self) {
        self.end.app.tasks.clear();
        self.end.late.clear();
        self.end.pages.clear();
        self.end.admits.clear();
        self.end.watch.restarted();
    }

    fn burst_at_server(&mut self) {
        for _ in 0..self.below(8) {
            self.spurious_at_server();
        }
    }

    /// Applies an input that no correct driver sends to a server.
    pub(super) fn spurious_at_server(&mut self) {
        let channel = ConnectionId(1_000_000);
        let input = match self.below(9) {
            0 => Input::Event(channel, IoEvent::Read("late\r\n".into())),
            1 => Input::Event(channel, IoEvent::ReadClosed),
            2 => Input::Event(channel, IoEvent::Written(7)),
            3 => Input::Event(channel, IoEvent::Closed(Closed::Reset)),
            4 => match self.end.late.pop_front() {
                Some(answer) => {
                    self.log.push(Engine::Server, self.net.now, || Op::Late(answer.key().number()));
                    Input::Command(ServerCommand::Respond(answer))
                }
                None => Input::Tick,
            },
            5 => {
                self.log.push(Engine::Server, self.net.now, || Op::StrayNote);
                Input::Command(stray_note())
            }
            6 => {
                // A principal that was never admitted.
                self.apply_to_server(Input::Command(ServerCommand::Revoke(Principal("absent".into()))));
                Input::Command(ServerCommand::Admit(AdmitKey::new(9999), Admission::Accept(None)))
            }
            7 if self.end.life != Life::Serving => Input::Command(ServerCommand::Shutdown(Duration::from_secs(5))),
            7 | 8 if self.per_mille(500) => {
                self.count_server(ServerInputKind::Accept);
                let accepted = self.end.life == Life::Serving;
                if !accepted {
                    let kind = mcp_proto::wired::Kind::HttpServer;
                    self.log.push(Engine::Server, self.net.now, || Op::Accept);
                    assert_eq!(accept(&mut self.end.server, self.net.now, kind), None, "it accepts no more");
                }
                return;
            }
            _ if self.end.life == Life::Serving => Input::Tick,
            _ => Input::Command(ServerCommand::Publish(Change::Tools)),
        };
        self.apply_to_server(input);
    }
}
