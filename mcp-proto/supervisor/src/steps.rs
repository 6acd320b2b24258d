//! What a [`Supervisor`] does with each input.

use super::clients::EndedClient;
use super::retry::{Told, loss};
use super::server::{Attempt, Phase, Server};
use super::{
    CallKind, CallPlan, CallRefusal, Cause, Closing, ConnectWhen, Event, Generation, KeyInUse, ListKind, Lists,
    LoadedList, Output, ServerId, ServerSpec, Supervisor, Ticket, Timer,
};
use alloc::string::String;
use alloc::sync::Arc;
use mcp_proto::client::{ClientConfig, Termination};
use mcp_proto::error::{CallError, Refusal, StreamEnd};
use mcp_proto::input::Change;
use mcp_proto::model::capabilities::ServerCapabilities;

impl<K: Clone + Ord> Supervisor<K> {
    pub(super) fn on_add(&mut self, key: K, spec: ServerSpec) -> Result<(), KeyInUse> {
        if self.keys.contains_key(&key) || self.closing != Closing::No {
            return Err(KeyInUse(spec));
        }
        self.last_server += 1;
        let id = ServerId(self.last_server);
        self.keys.insert(key.clone(), id);
        let connect = spec.connect;
        self.servers.insert(id, Server::new(key, spec));
        if connect == ConnectWhen::AtOnce {
            self.attempt(id, Attempt::Usual);
        }
        Ok(())
    }

    pub(super) fn on_replace(&mut self, key: &K, spec: ServerSpec) -> bool {
        let Some(id) = self.keys.get(key).copied() else { return false };
        self.retire_all(id, &CallRefusal::Replaced);
        let Some(old) = self.servers.get_mut(&id) else { return false };
        let waiting = core::mem::take(&mut old.waiting);
        let at_once = spec.connect == ConnectWhen::AtOnce || !waiting.is_empty() || old.phase != Phase::Idle;
        let mut server = Server::new(old.key.clone(), spec);
        server.waiting = waiting;
        *old = server;
        self.timers.set(Timer::Server(id), None);
        self.timers.set(Timer::Load(id), None);
        if at_once {
            self.attempt(id, Attempt::Usual);
        }
        true
    }

    pub(super) fn on_remove(&mut self, key: &K) -> bool {
        let Some(id) = self.keys.remove(key) else { return false };
        self.drop_server(id, &CallRefusal::Removed);
        true
    }

    pub(super) fn on_reconnect(&mut self, key: &K) -> bool {
        let Some(id) = self.keys.get(key).copied() else { return false };
        let Some(server) = self.servers.get_mut(&id) else { return false };
        match &mut server.phase {
            Phase::Blocked { attempt } | Phase::Resolving { attempt, .. } | Phase::Connecting { attempt, .. } => {
                // Calls wait for a probe only if it was asked for.
                if core::mem::replace(attempt, Attempt::Usual) != Attempt::Usual {
                    server.forgive();
                }
                return true;
            }
            Phase::Idle | Phase::Ready { .. } | Phase::Waiting { .. } | Phase::Down { .. } => {}
        }
        if !server.may_attempt(self.now, &self.policy) {
            return false;
        }
        server.forgive();
        server.kept.forgive();
        if server.ready().is_some() {
            server.cause = Some(Cause::Requested);
        }
        self.timers.set(Timer::Load(id), None);
        self.retire(id);
        self.attempt(id, Attempt::Usual);
        true
    }

    pub(super) fn on_resolved(&mut self, generation: Generation, config: Result<Arc<ClientConfig>, String>) {
        let Some(id) = self.clients.server(generation) else { return };
        let Some(Phase::Resolving { generation: current, attempt }) = self.phase(id) else { return };
        if current != generation {
            return;
        }
        match config {
            Ok(config) => self.connect(id, generation, attempt, config),
            Err(why) => {
                self.clients.forget(generation);
                self.fail(id, Cause::Unresolved(why));
            }
        }
    }

    pub(super) fn on_ready(&mut self, generation: Generation, capabilities: &ServerCapabilities) {
        let Some(id) = self.clients.server(generation) else { return };
        let Some(server) = self.servers.get_mut(&id).filter(|server| server.current() == Some(generation)) else {
            return;
        };
        if server.ready().is_none() {
            server.connected(generation, self.now);
            self.timers.set(Timer::Server(id), None);
            self.outputs.push_back(Output::Event(Event::Up { key: server.key.clone(), generation }));
        }
        server.session_began();
        let emptied = server.kept.connect(self.now, server.spec.lists, offered(capabilities));
        for list in emptied {
            self.outputs.push_back(Output::Event(Event::Listed { key: server.key.clone(), list }));
        }
        let waiting = core::mem::take(&mut server.waiting);
        for ticket in waiting {
            self.run(ticket, generation);
        }
        self.load(id);
    }

    pub(super) fn on_ended(&mut self, generation: Generation, why: Termination) {
        let Some(EndedClient { server: id, key, was_retired }) = self.clients.end(generation) else { return };
        if was_retired {
            self.unblock(&key);
        } else {
            self.fail(id, Cause::Ended(why));
        }
        self.close_if_done();
    }

    pub(super) fn on_changed(&mut self, generation: Generation, change: &Change) {
        let Some(id) = self.served_by(generation) else { return };
        let Some(server) = self.servers.get_mut(&id) else { return };
        let lists: &[ListKind] = match change {
            Change::Tools => &[ListKind::Tools],
            Change::Prompts => &[ListKind::Prompts],
            Change::Resources => &[ListKind::Resources, ListKind::ResourceTemplates],
            // Another change is of no list.
            _ => &[],
        };
        lists.iter().for_each(|list| server.kept.change(self.now, *list));
        self.load(id);
    }

    pub(super) fn on_session_lost(&mut self, generation: Generation, cause: StreamEnd) {
        if let Some(id) = self.served_by(generation) {
            self.lose(id, Cause::SessionLost(cause));
        }
    }

    pub(super) fn on_ping_missed(&mut self, generation: Generation, in_a_row: u32) {
        if let Some(id) = self.served_by(generation)
            && in_a_row >= self.policy.max_missed_pings
        {
            self.lose(id, Cause::Unresponsive { pings: in_a_row });
        }
    }

    pub(super) fn on_loaded(&mut self, generation: Generation, list: ListKind, outcome: Result<LoadedList, CallError>) {
        let Some(id) = self.served_by(generation) else { return };
        let Some(server) = self.servers.get_mut(&id) else { return };
        if outcome.is_ok() {
            server.answered();
        }
        let change = server.kept.finish(self.now, list, outcome);
        self.report_list(id, change);
        self.load(id);
    }

    pub(super) fn on_call(&mut self, key: &K, plan: CallPlan) -> Result<Ticket, CallRefusal> {
        if self.closing != Closing::No {
            return Err(CallRefusal::Closed);
        }
        let id = *self.keys.get(key).ok_or(CallRefusal::Unknown)?;
        let server = self.servers.get_mut(&id).ok_or(CallRefusal::Unknown)?;
        if let (Some((since, next)), Some(cause)) = (server.down(self.now), server.cause.clone()) {
            return Err(CallRefusal::Unavailable { since, next, cause });
        }
        if server.ready().is_none() && server.waiting.len() >= self.policy.max_waiting {
            return Err(CallRefusal::Full);
        }
        let ticket = self.calls.add(id, plan, self.now);
        match server.phase {
            Phase::Ready { generation, .. } => self.run(ticket, generation),
            Phase::Idle => {
                self.wait(ticket, id);
                self.attempt(id, Attempt::Usual);
            }
            _ => self.wait(ticket, id),
        }
        Ok(ticket)
    }

    pub(super) fn on_finished(&mut self, ticket: Ticket, outcome: Result<(), &CallError>) {
        let Some((id, generation)) = self.calls.running(ticket) else { return };
        let Some(server) = self.servers.get_mut(&id) else { return };
        let is_idle = self.clients.finish(generation, ticket);
        let (is_closing, is_exclusive) = (self.clients.is_closing(generation), self.clients.is_exclusive(generation));
        let told = outcome.err().map_or(Told::Nothing, |error| Told::by(error, is_closing));
        let tools = server.kept.catalogue.tools.as_deref().unwrap_or_default();
        let rule = |kind: &CallKind| told.allows(kind, server.spec.retry, tools);
        let again = self.calls.repeat(ticket, self.now, rule);
        let is_current = server.ready() == Some(generation);
        let is_refused = is_current && server.call_ended(outcome);
        match outcome {
            Err(error) if is_current && told.ends_connection(is_exclusive) => {
                self.lose(id, loss(error, is_exclusive));
            }
            Err(error) if is_refused => self.lose(id, Cause::CallsRefused(error.clone())),
            Ok(()) | Err(_) if is_idle => self.close_client(generation),
            Ok(()) | Err(_) => {}
        }
        if again {
            return self.place(ticket, id);
        }
        self.calls.end(ticket);
        self.outputs.push_back(Output::End { ticket });
    }

    pub(super) fn on_not_begun(&mut self, ticket: Ticket) {
        let Some((id, generation)) = self.calls.running(ticket) else { return };
        let is_idle = self.clients.finish(generation, ticket);
        self.calls.take_back(ticket);
        if self.served_by(generation).is_some() {
            self.lose(id, Cause::Unreachable(CallError::Refused(Refusal::Closed)));
        } else if is_idle {
            self.close_client(generation);
        }
        self.place(ticket, id);
    }

    pub(super) fn on_cancel(&mut self, ticket: Ticket) {
        if let Some((_, generation)) = self.calls.running(ticket)
            && self.clients.finish(generation, ticket)
        {
            self.close_client(generation);
        }
        self.forget(ticket);
    }

    pub(super) fn on_close(&mut self) {
        if self.closing != Closing::No {
            return;
        }
        self.closing = Closing::Begun;
        self.keys.clear();
        for ticket in self.calls.all() {
            self.refuse(ticket, CallRefusal::Closed);
        }
        while let Some((&id, _)) = self.servers.first_key_value() {
            self.drop_server(id, &CallRefusal::Closed);
        }
        self.timers.set(Timer::Close, Some(self.now + self.policy.close_timeout));
        self.close_if_done();
    }

    pub(super) fn on_timeout(&mut self) {
        while let Some(timer) = self.timers.pop_due(self.now) {
            match timer {
                Timer::Server(id) => self.on_server_timer(id),
                Timer::Load(id) => self.load(id),
                Timer::Call(ticket) => self.on_call_timer(ticket),
                Timer::Close => self.finish_closing(),
            }
        }
    }

    /// Returns the server that this client serves now.
    fn served_by(&self, generation: Generation) -> Option<ServerId> {
        let id = self.clients.server(generation)?;
        self.servers.get(&id).is_some_and(|server| server.ready() == Some(generation)).then_some(id)
    }

    /// The server is not reached through its client any more. Another one takes its place.
    fn lose(&mut self, id: ServerId, cause: Cause) {
        self.retire(id);
        self.fail(id, cause);
    }
}

/// Calls.
impl<K: Clone + Ord> Supervisor<K> {
    /// Runs a call, or makes it wait for a connection, or refuses it.
    fn place(&mut self, ticket: Ticket, id: ServerId) {
        if self.calls.is_overdue(ticket, self.now) {
            return self.on_call_timer(ticket);
        }
        let Some(server) = self.servers.get(&id) else { return self.refuse(ticket, CallRefusal::Removed) };
        match (server.ready(), server.down(self.now), server.cause.clone()) {
            (Some(generation), ..) => self.run(ticket, generation),
            (None, Some((since, next)), Some(cause)) => {
                self.refuse(ticket, CallRefusal::Unavailable { since, next, cause });
            }
            _ => self.wait(ticket, id),
        }
    }

    fn run(&mut self, ticket: Ticket, generation: Generation) {
        self.timers.set(Timer::Call(ticket), None);
        let Some((id, timeout, again)) = self.calls.run(ticket, generation, self.now) else { return };
        self.clients.run(generation, ticket);
        if let Some(server) = self.servers.get_mut(&id) {
            server.counters.calls += 1;
            server.counters.retries += u64::from(again);
        }
        self.outputs.push_back(Output::Run { ticket, generation, timeout });
    }

    fn wait(&mut self, ticket: Ticket, id: ServerId) {
        if let Some(server) = self.servers.get_mut(&id) {
            server.waiting.insert(ticket);
        }
        self.timers.set(Timer::Call(ticket), self.calls.deadline(ticket));
    }

    fn on_call_timer(&mut self, ticket: Ticket) {
        if let Some(after) = self.calls.timeout(ticket) {
            self.refuse(ticket, CallRefusal::Timeout { after });
        }
    }

    pub(super) fn refuse(&mut self, ticket: Ticket, why: CallRefusal) {
        if self.forget(ticket) {
            self.outputs.push_back(Output::Refuse { ticket, why });
        }
    }

    /// Forgets a call. Returns whether there was one.
    fn forget(&mut self, ticket: Ticket) -> bool {
        self.timers.set(Timer::Call(ticket), None);
        let Some(id) = self.calls.end(ticket) else { return false };
        if let Some(server) = self.servers.get_mut(&id) {
            server.waiting.remove(&ticket);
        }
        true
    }
}

/// Returns the lists that a server has.
fn offered(capabilities: &ServerCapabilities) -> Lists {
    let tools = if capabilities.tools.is_some() { Lists::NONE.with(ListKind::Tools) } else { Lists::NONE };
    let prompts = if capabilities.prompts.is_some() { tools.with(ListKind::Prompts) } else { tools };
    match capabilities.resources {
        Some(_) => prompts.with(ListKind::Resources).with(ListKind::ResourceTemplates),
        None => prompts,
    }
}
