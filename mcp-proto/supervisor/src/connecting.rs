//! How servers are connected, and how their clients end: the steps of a [`Supervisor`].

use super::catalogue::ListChange;
use super::clients::Clients;
use super::server::{Attempt, Next, Phase, Server, is_exclusive, watching};
use super::{CallRefusal, Cause, Closing, Event, Generation, Output, ServerId, Supervisor, Timer};
use alloc::sync::Arc;
use mcp_proto::client::ClientConfig;

impl<K: Clone + Ord> Supervisor<K> {
    pub(super) fn phase(&self, id: ServerId) -> Option<Phase> {
        self.servers.get(&id).map(|server| server.phase.clone())
    }

    /// Begins an attempt to connect, if no client before is in its way and the policy permits it.
    pub(super) fn attempt(&mut self, id: ServerId, attempt: Attempt) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        if self.clients.are_leaving(&server.key) {
            server.phase = Phase::Blocked { attempt };
            self.timers.set(Timer::Server(id), Some(self.now + self.policy.close_timeout));
            return;
        }
        if !server.may_attempt(self.now, &self.policy) {
            let since = server.down(self.now).map_or(self.now, |(since, _)| since);
            let next = server.rest(since, self.now, &self.policy, &mut self.seed);
            return self.follow(id, next);
        }
        server.count_attempt(self.now);
        let config = Arc::clone(&server.spec.config);
        let generation = self.clients.add(id, server.key.clone());
        if server.spec.resolve {
            server.phase = Phase::Resolving { generation, attempt };
            self.timers.set(Timer::Server(id), Some(self.now + config.connect_timeout));
            self.outputs.push_back(Output::Resolve { key: server.key.clone(), generation, config });
        } else {
            self.connect(id, generation, attempt, config);
        }
    }

    pub(super) fn connect(
        &mut self,
        id: ServerId,
        generation: Generation,
        attempt: Attempt,
        config: Arc<ClientConfig>,
    ) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let config = watching(config, server.spec.lists);
        server.phase = Phase::Connecting { generation, attempt };
        self.clients.start(generation, is_exclusive(&config));
        // The engine limits the time.
        self.timers.set(Timer::Server(id), None);
        self.outputs.push_back(Output::Connect { key: server.key.clone(), generation, config });
    }

    /// The server is not connected any more, or could not be.
    pub(super) fn fail(&mut self, id: ServerId, cause: Cause) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let next = server.failed(self.now, cause, &self.policy, &mut self.seed);
        self.timers.set(Timer::Load(id), None);
        self.follow(id, next);
    }

    pub(super) fn follow(&mut self, id: ServerId, next: Next) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let key = server.key.clone();
        let cause = server.cause.clone().unwrap_or(Cause::Requested);
        match next {
            Next::Attempt(attempt, wait) => {
                self.timers.set(Timer::Server(id), Some(self.now + wait));
                self.outputs.push_back(Output::Event(Event::Reconnecting { key, attempt, wait, cause }));
            }
            Next::Down(next) => {
                self.timers.set(Timer::Server(id), next);
                let since = server.down(self.now).map_or(self.now, |(since, _)| since);
                let waiting = core::mem::take(&mut server.waiting);
                self.outputs.push_back(Output::Event(Event::Down { key, next, cause: cause.clone() }));
                for ticket in waiting {
                    self.refuse(ticket, CallRefusal::Unavailable { since, next, cause: cause.clone() });
                }
            }
        }
    }

    pub(super) fn on_server_timer(&mut self, id: ServerId) {
        match self.phase(id) {
            Some(Phase::Waiting { .. }) => self.attempt(id, Attempt::Usual),
            Some(Phase::Down { since, .. }) => self.attempt(id, Attempt::Probe { since }),
            Some(Phase::Resolving { generation, .. }) => {
                self.clients.forget(generation);
                self.fail(id, Cause::ResolveTimeout);
            }
            Some(Phase::Blocked { attempt }) => {
                // Their driver has not reported their end in time.
                if let Some(server) = self.servers.get(&id) {
                    self.clients.give_up(&server.key);
                }
                self.attempt(id, attempt);
            }
            Some(Phase::Idle | Phase::Connecting { .. } | Phase::Ready { .. }) | None => {}
        }
    }

    /// A client of this key has ended. Begins the attempt that waited for it.
    pub(super) fn unblock(&mut self, key: &K) {
        // Its server may have been removed, and another one added.
        let Some(id) = self.keys.get(key).copied() else { return };
        if let Some(Phase::Blocked { attempt }) = self.phase(id) {
            self.attempt(id, attempt);
        }
    }

    /// The client of a server is no longer that. It is closed: over HTTP when its calls have ended.
    pub(super) fn retire(&mut self, id: ServerId) {
        let Some(generation) = self.servers.get(&id).and_then(Server::current) else { return };
        if self.clients.retire(generation) {
            self.close_client(generation);
        }
    }

    /// Closes all clients of a server at once. The calls that run end with this refusal.
    pub(super) fn retire_all(&mut self, id: ServerId, why: &CallRefusal) {
        for ticket in self.calls.running_at(id) {
            self.refuse(ticket, why.clone());
        }
        for generation in self.clients.of(id) {
            self.close_client(generation);
        }
    }

    pub(super) fn close_client(&mut self, generation: Generation) {
        if self.clients.close(generation) {
            self.outputs.push_back(Output::Close(generation));
        }
    }

    /// Ends a server: its calls, its clients, its timers.
    pub(super) fn drop_server(&mut self, id: ServerId, why: &CallRefusal) {
        self.retire_all(id, why);
        let Some(server) = self.servers.remove(&id) else { return };
        for ticket in server.waiting {
            self.refuse(ticket, why.clone());
        }
        self.timers.set(Timer::Server(id), None);
        self.timers.set(Timer::Load(id), None);
    }

    pub(super) fn close_if_done(&mut self) {
        if self.closing == Closing::Begun && self.clients.is_empty() {
            self.finish_closing();
        }
    }

    pub(super) fn finish_closing(&mut self) {
        self.closing = Closing::Done;
        self.timers.clear();
        self.outputs.push_back(Output::Event(Event::Closed { left: self.clients.len() }));
        self.clients = Clients::new();
    }

    /// Tells the application what the end of a load changes.
    pub(super) fn report_list(&mut self, id: ServerId, change: Option<ListChange>) {
        let (Some(server), Some(change)) = (self.servers.get(&id), change) else { return };
        let key = server.key.clone();
        self.outputs.push_back(Output::Event(match change {
            ListChange::Elements(list) => Event::Listed { key, list },
            ListChange::Fault(fault) => Event::NotListed { key, fault },
        }));
    }

    /// Begins the loads that are due, ends those that take too long, and arms the timer for the
    /// next one.
    pub(super) fn load(&mut self, id: ServerId) {
        let is_ready = |server: &&mut Server<K>| server.ready().is_some();
        while let Some(server) = self.servers.get_mut(&id).filter(is_ready)
            && let Some(change) = server.kept.expire(self.now)
        {
            self.report_list(id, change);
        }
        let Some(server) = self.servers.get_mut(&id) else { return };
        let Some(generation) = server.ready() else { return };
        let timeout = server.spec.config.timeout;
        while let Some(list) = server.kept.begin(self.now, timeout) {
            self.outputs.push_back(Output::Load { generation, list });
        }
        self.timers.set(Timer::Load(id), server.kept.next());
    }
}
