//! What a driver has done with one engine: its connections, and its time. No engine, no clock.

use super::rules::{Age, ConnectionRules, PATIENCE, Rule, broken, name};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use mcp_proto::exchange::{Action, ConnectionId, Endpoint, IoEvent, Shutdown};
use mcp_proto::time::{Instant, Timers, earliest};
use mcp_proto::wired::ConnectionOutput;

/// Number of closed connections that are remembered, for the text of the panic.
const REMEMBERED: usize = 256;

/// What the driver has done with one engine, or with one connection that it drives alone.
#[derive(Debug)]
pub(super) struct DriverState {
    /// The latest time that the driver gave.
    now: Instant,
    /// The timer of the engine, and the time at which the driver could first know of it.
    due: Option<(Instant, Instant)>,
    /// Since when outputs may wait for the driver.
    outputs: Option<Instant>,
    /// Since when events of a connection wait for a turn.
    turn: Option<(Instant, ConnectionId)>,
    /// Until when a connection that the engine has woken takes a turn.
    woken: Timers<ConnectionId>,
    /// The connection, if it is only one.
    single: Option<ConnectionId>,
    connections: BTreeMap<ConnectionId, ConnectionRules>,
    /// The deadlines of the connections that must report `Closed`.
    deadlines: Timers<ConnectionId>,
    /// The connections that closed last.
    closed: VecDeque<ConnectionId>,
    /// The driver needs no more outputs.
    terminated: bool,
}

impl DriverState {
    pub(super) fn new() -> Self {
        Self {
            now: Instant::ZERO,
            due: None,
            outputs: None,
            turn: None,
            woken: Timers::default(),
            single: None,
            connections: BTreeMap::new(),
            deadlines: Timers::default(),
            closed: VecDeque::new(),
            terminated: false,
        }
    }

    /// Checks the time of an input. The driver must take its outputs.
    pub(super) fn input(&mut self, now: Instant) -> Result<(), String> {
        let earlier = core::mem::replace(&mut self.now, now);
        if now < earlier {
            broken(Rule::TimeBack, None, &[&format_args!("{earlier:?}"), &format_args!("{now:?}")])?;
        }
        if let Some((since, id)) = self.turn {
            self.check(Some(since), Rule::Turn, Some(id))?;
        }
        if let Some((due, id)) = self.woken.next().filter(|(due, _)| now >= *due) {
            broken(Rule::Woken, Some(id), &[&Age(now - due + PATIENCE)])?;
        }
        if self.terminated {
            return Ok(());
        }
        self.check(self.due.map(|(due, known)| due.max(known)), Rule::Timer, self.single)?;
        self.check(self.outputs, Rule::Outputs, None)?;
        if let Some((_, id)) = self.deadlines.next()
            && let Some(rules) = self.connections.get(&id)
        {
            rules.check(now)?;
        }
        self.outputs.get_or_insert(now);
        Ok(())
    }

    /// Checks an event of a connection.
    pub(super) fn event(&mut self, now: Instant, id: ConnectionId, event: &IoEvent) -> Result<(), String> {
        self.input(now)?;
        let Some(rules) = self.connections.get_mut(&id) else {
            let rule = if self.closed.contains(&id) { Rule::AfterClosed } else { Rule::Unknown };
            return broken(rule, Some(id), &[&name(event)]);
        };
        rules.event(now, event)?;
        if matches!(event, IoEvent::Closed(_)) {
            self.remove(id);
        } else {
            self.deadlines.set(id, rules.deadline());
        }
        Ok(())
    }

    /// Checks the time of a call of `handle_timeout`.
    pub(super) fn timeout(&mut self, now: Instant) -> Result<(), String> {
        self.input(now)?;
        self.due = None;
        Ok(())
    }

    /// Notes the next timer of the engine.
    pub(super) fn armed(&mut self, due: Option<Instant>) {
        if due != self.due.map(|(due, _)| due) {
            self.due = due.map(|due| (due, self.now));
        }
    }

    /// Checks an event of the only connection, which waits for a turn.
    pub(super) fn single_event(&mut self, now: Instant, event: &IoEvent) -> Result<(), String> {
        if let Some(id) = self.single {
            self.event(now, id, event)?;
        }
        self.needs_turn();
        Ok(())
    }

    /// Notes that events of the only connection may wait for a turn.
    pub(super) fn needs_turn(&mut self) {
        if let (None, Some(id)) = (self.turn, self.single) {
            self.turn = Some((self.now, id));
        }
    }

    /// Notes a turn, or a part of one after which events may wait.
    pub(super) fn took_turn(&mut self, is_whole: bool) {
        self.turn = self.turn.filter(|_| !is_whole).map(|(_, id)| (self.now, id));
    }

    /// Notes that the driver of a connection was woken.
    pub(super) fn woken(&mut self, id: ConnectionId) {
        self.woken.set(id, Some(self.now + PATIENCE));
    }

    /// Notes a turn of a connection of a server.
    pub(super) fn exchanged(&mut self, id: ConnectionId) {
        self.woken.set(id, None);
    }

    /// Notes the only connection.
    pub(super) fn add_single(&mut self, rules: ConnectionRules) {
        self.single = Some(rules.id());
        self.add(rules);
    }

    /// Notes a connection that is open, or is to be opened.
    pub(super) fn add(&mut self, rules: ConnectionRules) {
        self.connections.insert(rules.id(), rules);
    }

    /// Notes what the driver took, if there was anything.
    pub(super) fn took_action<E>(&mut self, action: Option<&Action<E>>) {
        match action {
            Some(Action::Open(id, endpoint)) => {
                self.add(ConnectionRules::opening(*id, matches!(endpoint, Endpoint::Program(_))));
            }
            Some(Action::Secure(id, _)) => self.secure(*id),
            Some(Action::Write(id, bytes)) => self.write(*id, bytes.len()),
            Some(Action::Read(id, reads)) => self.read(*id, *reads),
            Some(Action::Close(id, how)) => self.close(*id, *how),
            Some(Action::Notice(..) | Action::Event(_)) | None => {}
        }
        self.took_output(action.is_some());
    }

    /// Notes what the driver of a single connection took, if there was anything.
    pub(super) fn took_connection_output(&mut self, output: Option<&ConnectionOutput>) {
        if let (Some(id), Some(output)) = (self.single, output) {
            match output {
                ConnectionOutput::Secure(_) => self.secure(id),
                ConnectionOutput::Write(bytes) => self.write(id, bytes.len()),
                ConnectionOutput::Read(reads) => self.read(id, *reads),
                ConnectionOutput::Close(how) => self.close(id, *how),
            }
        }
        self.took_output(output.is_some());
    }

    /// Notes that the driver needs no more outputs.
    pub(super) fn terminated(&mut self) {
        self.terminated = true;
        (self.due, self.outputs) = (None, None);
    }

    /// Returns when a rule is broken, if the driver does nothing until then.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let turn = self.turn.map(|(since, _)| since);
        let waits = earliest(self.outputs, turn).map(|since| since + PATIENCE);
        let [closing, woken] = [&self.deadlines, &self.woken].map(|timers| timers.next().map(|(at, _)| at));
        earliest(waits, earliest(closing, woken))
    }

    /// More outputs may follow one that was taken.
    pub(super) fn took_output(&mut self, has_more: bool) {
        self.outputs = self.outputs.filter(|_| has_more).map(|_| self.now);
    }

    // The outputs for a connection that is closed are void.
    fn secure(&mut self, id: ConnectionId) {
        if let Some(rules) = self.connections.get_mut(&id) {
            rules.secure();
        }
    }

    fn write(&mut self, id: ConnectionId, n: usize) {
        if let Some(rules) = self.connections.get_mut(&id) {
            rules.write(n);
        }
    }

    fn read(&mut self, id: ConnectionId, reads: bool) {
        if let Some(rules) = self.connections.get_mut(&id) {
            rules.read(reads);
        }
    }

    fn close(&mut self, id: ConnectionId, how: Shutdown) {
        if let Some(rules) = self.connections.get_mut(&id) {
            rules.close(self.now, how);
            self.deadlines.set(id, rules.deadline());
        }
    }

    fn remove(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
        self.deadlines.set(id, None);
        if self.closed.len() == REMEMBERED {
            self.closed.pop_front();
        }
        self.closed.push_back(id);
    }

    fn check(&self, since: Option<Instant>, rule: Rule, connection: Option<ConnectionId>) -> Result<(), String> {
        match since {
            Some(since) if self.now >= since + PATIENCE => broken(rule, connection, &[&Age(self.now - since)]),
            _ => Ok(()),
        }
    }
}
