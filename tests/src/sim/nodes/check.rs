//! What holds once the faults are over, once the clients are gone, and once the servers are.

use super::client::{Kind, REVOKED};
use super::node::LIFETIME;
use super::world::World;
use serde_json::json;
use std::time::Duration;

impl World {
    /// Nothing hangs, everything that was promised is there, and all know what has changed.
    pub(super) fn check_settled(&mut self) {
        let has_lost = self.store.has_lost;
        for session in self.sessions.iter().filter(|session| !session.is_over && !session.is_revoked && !has_lost) {
            for call in session.calls.values() {
                let has_end = call.place.is_some() || call.is_lost || call.is_cancelled;
                assert!(has_end, "{call:?} has no end");
            }
        }
        for task in self.tasks.iter().filter(|task| task.principal != REVOKED) {
            // Whatever the store has lost.
            assert!(!task.goes_on || task.ended.is_some(), "{task:?} does not end");
        }
        for task in self.tasks.iter().filter(|task| task.principal != REVOKED && !has_lost) {
            let Some((_, created)) = &task.id else { continue };
            // A clock may be ahead, so that it ends earlier.
            let is_kept = self.now - *created < LIFETIME / 2 && self.scenario.settings.apart.0 == 0;
            assert!(!is_kept || task.ended.is_some() || task.is_cancelled, "{task:?} has no end");
        }
        let before = self.now;
        self.publish();
        for nth in 0..self.sessions.len() {
            if self.sessions[nth].is_gone && !has_lost {
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
                for at in 0..self.nodes.len() {
                    let headers = self.fields(nth);
                    self.send_to(at, Kind::Revoked, "POST", headers, Some(body.clone()));
                }
            }
        }
        self.run_for(Duration::from_secs(20));
        for watcher in &self.watchers {
            let is_over =
                watcher.session.is_some_and(|nth| self.sessions[nth].is_over || self.sessions[nth].is_revoked);
            if watcher.since.is_some_and(|since| since < before) && !is_over {
                assert!(watcher.told >= before, "{watcher:?} is not told of a change");
            }
        }
    }

    /// Nothing is left of the clients.
    pub(super) fn check_at_rest(&self) {
        let now = self.now.since_origin();
        let memory = &self.store.memory;
        assert_eq!((memory.sessions(now), memory.tasks(now)), (0, 0), "the store keeps something");
        for node in &self.nodes {
            let engine = &node.engine;
            let left = (engine.sessions(), engine.streams(), engine.running());
            assert_eq!(left, (0, 0, 0), "{:?} keeps something", node.id);
        }
    }

    /// Nothing is left of the servers.
    pub(super) fn check_ended(&self) {
        assert!(self.nodes.iter().all(|node| node.engine.is_terminated()), "a server does not end");
        assert_eq!(self.store.memory.members(self.now.since_origin()), 0, "a node is left");
    }
}
