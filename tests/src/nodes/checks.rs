//! What is checked once: requests of principals that name a server.

use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};
use ureq::http::Response;
use ureq::{Agent, Body};

/// The time in which the servers hear of each other.
const SOON: Duration = Duration::from_secs(10);

/// The length of a task.
const LENGTH: Duration = Duration::from_secs(3);

/// The requests about a task. The last one ends it.
const METHODS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];

pub(super) struct Checks<'a> {
    agent: Agent,
    servers: &'a [String],
    checked: usize,
}

/// A response: its status, its session, and its message.
pub(super) struct Said {
    status: u16,
    session: String,
    pub(super) message: Value,
}

/// Runs all of them. Returns their number.
pub(super) fn check(servers: &[String]) -> Result<usize, String> {
    let mut checks = Checks::new(servers);
    checks.twenty_calls_in_each_era()?;
    checks.nothing_crosses()?;
    checks.delete_ends_a_session_everywhere()?;
    checks.revocation_ends_a_session_everywhere()?;
    Ok(checks.checked)
}

impl<'a> Checks<'a> {
    pub(super) fn new(servers: &'a [String]) -> Self {
        let agent = Agent::config_builder().http_status_as_error(false).timeout_global(Some(SOON)).build().new_agent();
        Self { agent, servers, checked: 0 }
    }

    fn send(&self, at: usize, method: &str, fields: &[(&str, &str)], body: &Value) -> Result<Said, String> {
        let url = format!("http://{}/mcp", self.servers[at % self.servers.len()]);
        let mut request = ureq::http::Request::builder().method(method).uri(&url);
        let both = "application/json, text/event-stream";
        for (name, value) in [("Accept", both), ("Content-Type", "application/json")].iter().chain(fields) {
            request = request.header(*name, *value);
        }
        let failed = |why: ureq::Error| format!("{method} {url}: {why}");
        let response = match body {
            Value::Null => request
                .body(())
                .map_err(|why| why.to_string())
                .and_then(|request| self.agent.run(request).map_err(failed)),
            body => {
                let request = request.body(body.to_string()).map_err(|why| why.to_string());
                request.and_then(|request| self.agent.run(request).map_err(failed))
            }
        };
        said(response?)
    }

    fn expect(&mut self, is_right: bool, what: impl Fn() -> String) -> Result<(), String> {
        self.checked += 1;
        if is_right { Ok(()) } else { Err(what()) }
    }

    /// Opens a session at a server. Returns the fields of its requests.
    fn session(&self, at: usize, principal: &str) -> Result<Vec<(&'static str, String)>, String> {
        let bearer = format!("Bearer {principal}");
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "checks", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let said = self.send(at, "POST", &[("Authorization", &bearer)], &body)?;
        let fields = vec![
            ("Authorization", bearer),
            ("Mcp-Session-Id", said.session),
            ("MCP-Protocol-Version", "2025-11-25".to_owned()),
        ];
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.send(at + 1, "POST", &borrowed(&fields), &ready)?;
        Ok(fields)
    }

    fn echo(&self, at: usize, fields: &[(&str, &str)], text: &str) -> Result<Said, String> {
        let params = json!({"name": "echo", "arguments": {"text": text}});
        self.send(at, "POST", fields, &json!({"jsonrpc": "2.0", "id": text, "method": "tools/call", "params": params}))
    }

    fn modern(&self, at: usize, principal: &str, method: &str, name: &str, params: Value) -> Result<Said, String> {
        let mut params = params;
        let capabilities = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities});
        let bearer = format!("Bearer {principal}");
        let fields = [
            ("Authorization", bearer.as_str()),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
            ("Mcp-Name", name),
        ];
        self.send(at, "POST", &fields, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    }

    /// Each call goes to the next server.
    fn twenty_calls_in_each_era(&mut self) -> Result<(), String> {
        let session = self.session(0, "ada")?;
        for nth in 0..20 {
            let text = format!("call {nth}");
            let said = self.echo(nth, &borrowed(&session), &text)?;
            self.expect(said.text() == text, || format!("{text}: {} {}", said.status, said.message))?;
        }
        for nth in 0..10 {
            let text = format!("question {nth}");
            let arguments = json!({"text": text});
            let asked = self.modern(nth, "ada", "tools/call", "ask", json!({"name": "ask", "arguments": arguments}))?;
            let result = &asked.message["result"];
            self.expect(result["resultType"] == "input_required", || format!("{text}: {}", asked.message))?;
            let answers = json!({"word": {"action": "accept", "content": {"word": "good"}}});
            let retry = json!({"name": "ask", "arguments": arguments, "requestState": result["requestState"],
                "inputResponses": answers});
            let stolen = self.modern(nth + 1, "bob", "tools/call", "ask", retry.clone())?;
            self.expect(stolen.message["error"]["code"] == -32602, || format!("{text}: {}", stolen.message))?;
            let said = self.modern(nth + 1, "ada", "tools/call", "ask", retry)?;
            self.expect(said.text() == format!("{text} good"), || format!("{text}: {}", said.message))?;
        }
        Ok(())
    }

    /// Begins a task with a tool, a text and a length. Returns its id.
    pub(super) fn begin_task(
        &self,
        at: usize,
        principal: &str,
        tool: &str,
        (text, length): (&str, Duration),
    ) -> Result<String, String> {
        let arguments = json!({"text": text, "millis": length.as_millis() as u64});
        let created = self.modern(at, principal, "tools/call", tool, json!({"name": tool, "arguments": arguments}))?;
        let task = created.message["result"]["taskId"].as_str();
        task.map(str::to_owned).ok_or_else(|| format!("no task: {}", created.message))
    }

    /// Sends a request about a task.
    pub(super) fn about(&self, at: usize, principal: &str, method: &str, task: &str) -> Result<Said, String> {
        self.modern(at, principal, method, task, json!({"taskId": task, "inputResponses": {}}))
    }

    /// Two principals, who try to reach what belongs to the other one.
    fn nothing_crosses(&mut self) -> Result<(), String> {
        let session = self.session(0, "ada")?;
        let task = self.begin_task(0, "ada", "job", ("hers", LENGTH))?;
        for at in 0..self.servers.len() {
            let mut theft = session.clone();
            theft[0].1 = "Bearer bob".to_owned();
            for method in ["POST", "GET", "DELETE"] {
                let body =
                    if method == "POST" { json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}) } else { Value::Null };
                let said = self.send(at, method, &borrowed(&theft), &body)?;
                self.expect(said.status == 404, || format!("{method} of a thief: {}", said.status))?;
            }
            let other = self.begin_task(at + 1, "ada", "job", ("other", LENGTH))?;
            for (task, method) in [&task, &other].into_iter().flat_map(|task| METHODS.map(|method| (task, method))) {
                let said = self.about(at, "bob", method, task)?;
                self.expect(said.message["error"]["code"] == -32602, || format!("{method}: {}", said.message))?;
            }
            // Nothing but the principal was wrong.
            for method in METHODS {
                let said = self.about(at, "ada", method, &other)?;
                let is_done = said.message["result"].is_object() && said.message["error"].is_null();
                self.expect(is_done, || format!("{method} of its own client: {}", said.message))?;
            }
            let own = self.modern(at, "ada", "tasks/get", &task, json!({"taskId": task}))?;
            self.expect(own.message["result"]["taskId"] == task.as_str(), || format!("tasks/get: {}", own.message))?;
            let said = self.echo(at, &borrowed(&session), "still")?;
            self.expect(said.text() == "still", || format!("her session: {} {}", said.status, said.message))?;
        }
        let begun = Instant::now();
        loop {
            let own = self.modern(0, "ada", "tasks/get", &task, json!({"taskId": task}))?;
            let result = &own.message["result"];
            if result["status"] != "working" || begun.elapsed() > SOON {
                let is_hers = result["result"]["content"][0]["text"] == "hers";
                return self.expect(is_hers, || format!("her task: {}", own.message));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn delete_ends_a_session_everywhere(&mut self) -> Result<(), String> {
        let session = self.session(2, "ada")?;
        for at in 0..self.servers.len() {
            // Each has a copy now.
            self.echo(at, &borrowed(&session), "a copy")?;
        }
        let said = self.send(1, "DELETE", &borrowed(&session), &Value::Null)?;
        self.expect(said.status < 300, || format!("DELETE: {}", said.status))?;
        self.is_gone(&session)
    }

    fn revocation_ends_a_session_everywhere(&mut self) -> Result<(), String> {
        let (gone, stays) = (self.session(3, "eve")?, self.session(3, "ada")?);
        for at in 0..self.servers.len() {
            self.echo(at, &borrowed(&gone), "a copy")?;
        }
        let said =
            self.modern(4, "ada", "tools/call", "revoke", json!({"name": "revoke", "arguments": {"text": "eve"}}))?;
        self.expect(said.text() == "revoked", || format!("revoke: {}", said.message))?;
        self.is_gone(&gone)?;
        let said = self.echo(5, &borrowed(&stays), "still")?;
        self.expect(said.text() == "still", || format!("another session: {} {}", said.status, said.message))
    }

    /// No server knows a session, soon.
    fn is_gone(&mut self, session: &[(&'static str, String)]) -> Result<(), String> {
        for at in 0..self.servers.len() {
            let begun = Instant::now();
            loop {
                let said = self.echo(at, &borrowed(session), "gone")?;
                if said.status == 404 {
                    break;
                }
                if begun.elapsed() > SOON {
                    return Err(format!("server {at} still knows a session: {} {}", said.status, said.message));
                }
                thread::sleep(Duration::from_millis(20));
            }
            self.checked += 1;
        }
        Ok(())
    }
}

impl Said {
    fn text(&self) -> &str {
        self.message["result"]["content"][0]["text"].as_str().unwrap_or_default()
    }
}

fn borrowed<'a>(fields: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    fields.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// Reads a response, whose message may be the last event of a stream.
fn said(response: Response<Body>) -> Result<Said, String> {
    let status = response.status().as_u16();
    let session =
        response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let text = response.into_body().read_to_string().map_err(|why| why.to_string())?;
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back();
    let message = serde_json::from_str(data.unwrap_or(&text).trim()).unwrap_or(Value::Null);
    Ok(Said { status, session, message })
}
