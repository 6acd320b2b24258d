//! Tasks, and calls of the newest revision that ask their client.

use super::client::{Kind, REVOKED, modern, modern_fields};
use super::node::LIFETIME;
use super::world::{SimEvent, World};
use mcp_proto::Instant;
use serde_json::{Value, json};

/// A task of a client.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) principal: &'static str,
    pub(super) of: String,
    pub(super) reruns: bool,
    /// Its id and its creation, once its client knows them.
    pub(super) id: Option<(String, Instant)>,
    /// How it has ended: its status.
    pub(super) ended: Option<String>,
    pub(super) is_cancelled: bool,
    /// Its client does not know it.
    pub(super) is_lost: bool,
    /// It had not ended when its client asked last.
    pub(super) goes_on: bool,
}

impl World {
    pub(super) fn new_task(&mut self, principal: &'static str, reruns: bool) {
        self.last_name += 1;
        let of = format!("{principal} {}", self.last_name);
        let params = modern(&json!({"name": "task", "arguments": {"of": of, "rerun": reruns}}));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let task =
            Task { principal, of, reruns, id: None, ended: None, is_cancelled: false, is_lost: false, goes_on: false };
        self.tasks.push(task);
        let headers = modern_fields(principal, "tools/call", Some("task"));
        self.send(Kind::NewTask(self.tasks.len() - 1), "POST", headers, Some(body.to_string()));
    }

    pub(super) fn task_created(&mut self, task: usize, value: &Value) {
        match value["result"]["taskId"].as_str() {
            Some(id) => {
                self.tasks[task].id = Some((id.to_owned(), self.now));
                self.report.tasks += 1;
                self.get_soon(task);
            }
            None => self.tasks[task].is_lost = true,
        }
    }

    fn get_soon(&mut self, task: usize) {
        let after = self.soon(5000);
        self.later(after, SimEvent::GetTask(task));
    }

    /// Sends a request about a task, as any principal.
    pub(super) fn ask_about(&mut self, kind: Kind, task: usize, principal: &str, method: &str, params: Value) {
        let Some((id, _)) = self.tasks[task].id.clone() else { return };
        let mut params = modern(&params);
        params["taskId"] = json!(id);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers = modern_fields(principal, method, Some(&id));
        self.send(kind, "POST", headers, Some(body.to_string()));
    }

    pub(super) fn get_task(&mut self, task: usize) {
        if self.tasks[task].ended.is_none() && !self.is_over {
            let principal = self.tasks[task].principal;
            self.ask_about(Kind::GetTask(task), task, principal, "tasks/get", json!({}));
            // Whatever becomes of it.
            self.get_soon(task);
        }
    }

    pub(super) fn task_read(&mut self, task: usize, value: &Value) {
        let state = &mut self.tasks[task];
        let is_old = state.id.as_ref().is_none_or(|(_, created)| self.now - *created > LIFETIME / 2);
        let result = &value["result"];
        let status = result["status"].as_str();
        state.goes_on = status.is_some_and(|status| !["completed", "failed", "cancelled"].contains(&status));
        match status {
            Some("input_required") => {
                let asked = &result["inputRequests"]["q"]["params"]["message"];
                assert_eq!(asked, &json!(state.of), "a question of another task");
                let answer = json!({"q": {"action": "accept", "content": {"it": state.of}}});
                let principal = state.principal;
                self.ask_about(Kind::Task, task, principal, "tasks/update", json!({"inputResponses": answer}));
            }
            Some(status @ ("completed" | "failed" | "cancelled")) => {
                let before = state.ended.replace(status.to_owned());
                let has_lost = self.store.has_lost;
                assert!(has_lost || before.is_none_or(|before| before == status), "{state:?} has ended before");
                if status == "completed" {
                    assert_eq!(result["result"]["of"], json!(state.of), "a result of another task");
                    self.report.completed += 1;
                }
                let is_expected = match status {
                    "completed" => true,
                    "cancelled" => state.is_cancelled,
                    // A server was lost, or its time is over.
                    _ => self.scenario.faults > 0 && !state.reruns || is_old,
                };
                let is_expected = is_expected || state.principal == REVOKED;
                assert!(is_expected || has_lost, "{state:?} ends with {value}");
            }
            Some(_) => {}
            // Its time is over, or the store does not reply.
            None => {
                let is_expected =
                    self.scenario.faults > 0 || state.is_cancelled || is_old || state.principal == REVOKED;
                assert!(is_expected, "{value}");
            }
        }
    }

    /// Calls a tool that asks its client.
    pub(super) fn modern_call(&mut self, principal: &'static str) {
        self.last_name += 1;
        let of = format!("{principal} {}", self.last_name);
        let params = json!({"name": "ask", "arguments": {"of": of}});
        self.send_modern(principal, of, &params);
    }

    fn send_modern(&mut self, principal: &'static str, of: String, params: &Value) {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": modern(params)});
        let headers = modern_fields(principal, "tools/call", Some("ask"));
        self.send(Kind::Modern(principal, of), "POST", headers, Some(body.to_string()));
    }

    pub(super) fn modern_ended(&mut self, principal: &'static str, of: String, value: &Value) {
        let result = &value["result"];
        if let Some(other) = result["of"].as_str() {
            assert_eq!(other, of, "an answer of another call");
            self.report.completed += 1;
        } else if result["resultType"] == "input_required" && !self.is_over {
            assert_eq!(result["inputRequests"]["q"]["params"]["message"], json!(of), "a question of another call");
            let params = json!({
                "name": "ask", "arguments": {"of": of}, "requestState": result["requestState"],
                "inputResponses": {"q": {"action": "accept", "content": {"it": of}}},
            });
            self.send_modern(principal, of, &params);
        }
    }
}
