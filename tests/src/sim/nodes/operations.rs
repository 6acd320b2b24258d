//! What clients and applications do.

use super::client::{Kind, REVOKED, Watcher};
use super::world::World;
use mcp_proto::Instant;
use mcp_proto::input::{Change, Principal, ServerCommand};
use serde_json::json;

const PRINCIPALS: [&str; 3] = ["ada", "bob", REVOKED];

impl World {
    /// A client or an application does something, and something may fail.
    pub(super) fn operate(&mut self) {
        self.node_fault();
        self.store_fault();
        let principal = self.rng.of(&PRINCIPALS);
        let session = self.some_session();
        match (self.rng.below(100), session) {
            (0..8, _) | (_, None) => self.initialize(principal),
            (8..38, Some(session)) => {
                let tool = self.rng.of(&["quick", "slow", "slow", "ask"]);
                self.call(session, tool);
            }
            (38..46, Some(session)) => self.open_own(session),
            (46..50, Some(session)) => self.cancel(session),
            (50..53, Some(session)) => {
                self.sessions[session].is_over = true;
                let headers = self.fields(session);
                self.send(Kind::Delete(session), "DELETE", headers, None);
            }
            (53..60, _) => self.publish(),
            (60..66, _) => {
                self.watchers.push(Watcher { session: None, since: None, told: Instant::ZERO });
                self.subscribe(self.watchers.len() - 1);
            }
            (66..76, _) => {
                let reruns = self.rng.per_mille(500);
                self.new_task(principal, reruns);
            }
            (76..80, _) => self.cancel_task(),
            (80..88, _) => self.modern_call(principal),
            (88..90, _) => self.revoke(),
            (_, Some(session)) => self.steal(session),
        }
    }

    fn some_session(&mut self) -> Option<usize> {
        let open = self.sessions.iter().enumerate().filter(|(_, session)| !session.is_over && !session.is_revoked);
        let open: Vec<usize> = open.map(|(nth, _)| nth).collect();
        (!open.is_empty()).then(|| self.rng.of(&open))
    }

    fn some_node(&mut self) -> Option<usize> {
        let awake: Vec<usize> = (0..self.nodes.len()).filter(|at| !self.nodes[*at].is_asleep).collect();
        (!awake.is_empty()).then(|| self.rng.of(&awake))
    }

    fn cancel(&mut self, session: usize) {
        let calls = &self.sessions[session].calls;
        let open: Vec<u64> = calls.iter().filter(|(_, call)| call.place.is_none()).map(|(id, _)| *id).collect();
        if open.is_empty() {
            return;
        }
        let id = self.rng.of(&open);
        if let Some(call) = self.sessions[session].calls.get_mut(&id) {
            call.is_cancelled = true;
        }
        let body = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        self.answer(session, body.to_string());
    }

    pub(super) fn publish(&mut self) {
        if let Some(at) = self.some_node() {
            self.command(at, ServerCommand::Publish(Change::Tools));
        }
    }

    fn cancel_task(&mut self) {
        let known: Vec<usize> = (0..self.tasks.len()).filter(|task| self.tasks[*task].id.is_some()).collect();
        if !known.is_empty() {
            let task = self.rng.of(&known);
            self.tasks[task].is_cancelled = true;
            let principal = self.tasks[task].principal;
            self.ask_about(Kind::Task, task, principal, "tasks/cancel", json!({}));
        }
    }

    fn revoke(&mut self) {
        let Some(at) = self.some_node() else { return };
        for session in self.sessions.iter_mut().filter(|session| session.principal == REVOKED) {
            session.is_revoked = true;
        }
        self.command(at, ServerCommand::Revoke(Principal(REVOKED.into())));
    }

    /// Somebody uses what belongs to somebody else.
    fn steal(&mut self, session: usize) {
        let owner = self.sessions[session].principal;
        let others: Vec<&str> = PRINCIPALS.into_iter().filter(|other| *other != owner).collect();
        let thief = self.rng.of(&others);
        let headers = self.fields_of(session, thief);
        match self.rng.below(4) {
            0 => {
                let arguments = json!({"of": format!("{thief} 0")});
                let params = json!({"name": "quick", "arguments": arguments});
                let body = json!({"jsonrpc": "2.0", "id": 1_000_000, "method": "tools/call", "params": params});
                self.send(Kind::Theft, "POST", headers, Some(body.to_string()));
            }
            1 => {
                let known = self.events.keys().filter(|(of, _)| *of == session).map(|(_, id)| id.clone());
                let known: Vec<String> = known.collect();
                let headers = match known.is_empty() {
                    true => headers,
                    false => {
                        let nth = self.rng.below(known.len() as u64) as usize;
                        headers.with("Last-Event-ID", known[nth].as_str())
                    }
                };
                self.send(Kind::Theft, "GET", headers, None);
            }
            2 => self.send(Kind::Theft, "DELETE", headers, None),
            _ => {
                let own: Vec<usize> =
                    (0..self.tasks.len()).filter(|task| self.tasks[*task].principal == owner).collect();
                if !own.is_empty() {
                    let task = self.rng.of(&own);
                    let method = self.rng.of(&["tasks/get", "tasks/cancel", "tasks/update"]);
                    self.ask_about(Kind::Theft, task, thief, method, json!({"inputResponses": {}}));
                }
            }
        }
    }
}
