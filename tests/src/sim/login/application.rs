//! The application of each process, and the operators of the servers: what happens by their choice.

use super::super::fault::Fault;
use super::super::report::LoginInput;
use super::settings::Habit;
use super::world::{SimEvent, World};
use mcp_proto::auth::Purpose;
use mcp_proto::client::ClientCommands;
use mcp_proto::input::{ClientCommand, Input};
use mcp_proto::tools;

/// What happens by choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Call,
    Write,
    /// Calls at the same time. A logout may follow at once.
    Burst,
    Login,
    Logout,
    Death,
    Move,
    Revocation,
    Loss,
    Spurious,
}

/// The operations, each with its usual share.
const OPERATIONS: [(Operation, u64); 10] = [
    (Operation::Call, 11),
    (Operation::Write, 3),
    (Operation::Burst, 4),
    (Operation::Login, 1),
    (Operation::Logout, 1),
    (Operation::Death, 1),
    (Operation::Move, 1),
    (Operation::Revocation, 1),
    (Operation::Loss, 1),
    (Operation::Spurious, 1),
];

impl World {
    pub(super) fn operate(&mut self) {
        let at = self.rng.below(self.processes.len() as u64) as usize;
        if self.processes[at].client.is_terminated() {
            self.processes.remove(at);
            return self.start();
        }
        match self.choose() {
            Operation::Call => self.call(at, "whoami"),
            Operation::Write => self.call(at, "write"),
            Operation::Burst => {
                (0..2 + self.rng.below(4)).for_each(|_| self.call(at, "whoami"));
                if self.scenario.faults > 0 && self.rng.per_mille(200) {
                    self.log_out(at);
                }
            }
            Operation::Login => self.log_in(at),
            Operation::Logout => self.log_out(at),
            Operation::Death if self.chaos.hit(Fault::ProcessDies, 500) => self.kill(at),
            Operation::Move if self.hit(Fault::IssuerMoved, 200) => self.current = 1 - self.current,
            Operation::Revocation if self.hit(Fault::GrantDead, 300) => self.issuers[self.current].revoke_latest(),
            Operation::Loss if self.hit(Fault::ClientForgotten, 300) => self.issuers[self.current].forget_client(),
            _ => {
                let input = self.rng.of(LoginInput::ALL);
                if self.scenario.faults > 0 || !matches!(input, LoginInput::Close | LoginInput::Refused) {
                    self.provoke(at, input);
                }
            }
        }
    }

    /// Chooses an operation by the shares that the settings lead to.
    fn choose(&mut self) -> Operation {
        let settings = &self.scenario.settings;
        let (habit, favourite, is_calm) = (settings.habit(), settings.favourite, self.is_calm());
        let share = |(operation, share): (Operation, u64)| {
            if is_calm && !matches!(operation, Operation::Call | Operation::Write | Operation::Burst) {
                return 0;
            }
            let is_favoured = match operation {
                Operation::Login => habit == Habit::Logins,
                Operation::Logout => habit == Habit::Logouts,
                Operation::Death => habit == Habit::Deaths,
                Operation::Write => favourite == Some(Fault::ScopeDemanded),
                Operation::Move => favourite == Some(Fault::IssuerMoved),
                Operation::Revocation => favourite == Some(Fault::GrantDead),
                Operation::Loss => favourite == Some(Fault::ClientForgotten),
                Operation::Call | Operation::Burst | Operation::Spurious => false,
            };
            share + if is_favoured { 30 } else { 0 }
        };
        let mut left = self.rng.below(OPERATIONS.into_iter().map(share).sum());
        let found = OPERATIONS.into_iter().find(|operation| {
            let share = share(*operation);
            let is_here = left < share;
            left = left.saturating_sub(share);
            is_here
        });
        found.map_or(Operation::Call, |(operation, _)| operation)
    }

    /// Returns whether there are neither faults nor commands, so that a user logs in as seldom as
    /// possible.
    pub(super) fn is_calm(&self) -> bool {
        self.scenario.faults == 0 && self.scenario.seed.is_multiple_of(2)
    }

    pub(super) fn call(&mut self, at: usize, tool: &str) {
        if tool == "write" {
            self.reasons_to_log_in += 1;
        }
        if tool == "write" && self.chaos.hit(Fault::ScopeDemanded, 300) {
            let scope = format!("scope-{}", self.demanded.len());
            self.demanded.insert(scope);
        }
        self.count(at, LoginInput::Call);
        let (process, now) = (&mut self.processes[at], self.now);
        if let Ok(call) = process.client.call(now, tools::call(tool)) {
            process.calls.insert(call.id(), 0);
            self.report.calls += 1;
        }
        self.drain(at);
    }

    pub(super) fn log_in(&mut self, at: usize) {
        self.reasons_to_log_in += 1;
        self.processes[at].logins += 1;
        self.disturb();
        self.count(at, LoginInput::Login);
        self.command(at, ClientCommand::Login);
    }

    pub(super) fn log_out(&mut self, at: usize) {
        self.reasons_to_log_in += 1;
        self.disturb();
        self.count(at, LoginInput::Logout);
        self.command(at, ClientCommand::Logout);
    }

    pub(super) fn close(&mut self, at: usize) {
        self.count(at, LoginInput::Close);
        self.processes[at].is_closing = true;
        self.command(at, ClientCommand::Close);
    }

    fn command(&mut self, at: usize, command: ClientCommand) {
        let (process, now) = (&mut self.processes[at], self.now);
        // A client that has ended refuses it.
        let _ = process.client.apply(now, Input::Command(command));
        self.drain(at);
    }

    /// Nothing of a process moves any more, and the system releases its leases.
    fn kill(&mut self, at: usize) {
        let process = self.processes.remove(at);
        self.disturb();
        for purpose in [Purpose::Login, Purpose::Change] {
            self.release(process.id, purpose);
        }
        self.agenda.retain(|_, happening| match happening {
            SimEvent::Respond(id, ..) | SimEvent::Fail(id, _) | SimEvent::Answer(id, _) => *id != process.id,
            SimEvent::Entered(..) => true,
        });
        self.start();
    }
}
