//! Requests, initially well-formed.

use serde_json::{Value, json};

pub(super) const MODERN: &str = "2026-07-28";
pub(super) const LEGACY: &str = "2025-11-25";
/// The revision with batches.
pub(super) const BATCHES: &str = "2025-03-26";

/// A request, as its parts.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    line: String,
    fields: Vec<(String, String)>,
    /// The bytes after the fields, verbatim.
    lines: Vec<u8>,
    message: Value,
    /// The body in place of the message.
    body: Option<Vec<u8>>,
    /// Whether the length of the body is declared.
    framed: bool,
}

impl Ask {
    fn new(line: &str, fields: &[(&str, &str)], message: Value) -> Self {
        let fields = fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Self { line: line.into(), fields, lines: Vec::new(), message, body: None, framed: true }
    }

    /// A request of 2026-07-28.
    pub(super) fn modern(method: &str, name: Option<&str>) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        });
        let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}});
        if let Some(name) = name {
            message["params"]["name"] = name.into();
            message["params"]["arguments"] = json!({});
        }
        let ask = Self::new("POST /mcp HTTP/1.1", FIELDS, message);
        let ask = ask.set("MCP-Protocol-Version", MODERN).set("Mcp-Method", method);
        match name {
            Some(name) => ask.set("Mcp-Name", name),
            None => ask,
        }
    }

    /// A call of 2026-07-28.
    pub(super) fn call(tool: &str) -> Self {
        Self::modern("tools/call", Some(tool))
    }

    /// The call that must not run unless it is answered with success.
    pub(super) fn mark() -> Self {
        Self::call("mark")
    }

    /// A message of an older revision.
    pub(super) fn legacy(revision: &str, session: Option<&str>, message: &Value) -> Self {
        Self::new("POST /mcp HTTP/1.1", FIELDS, message.clone()).of(revision, session)
    }

    /// A call of an older revision.
    pub(super) fn legacy_call(revision: &str, session: Option<&str>, id: i64, tool: &str, arguments: &Value) -> Self {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        Self::legacy(revision, session, &message)
    }

    /// The first request of a session, of a client with elicitation.
    pub(super) fn initialize(revision: &str) -> Self {
        let client = json!({"name": "raw", "version": "1"});
        let params = json!({"protocolVersion": revision, "capabilities": {"elicitation": {}}, "clientInfo": client});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        Self::new("POST /mcp HTTP/1.1", FIELDS, message)
    }

    /// Opens the stream of a session.
    pub(super) fn get(revision: &str, session: Option<&str>) -> Self {
        let fields = [("Host", "localhost"), ("Accept", "text/event-stream")];
        Self::new("GET /mcp HTTP/1.1", &fields, Value::Null).body("").unframed().of(revision, session)
    }

    /// Ends a session.
    pub(super) fn delete(revision: &str, session: Option<&str>) -> Self {
        let fields = [("Host", "localhost")];
        Self::new("DELETE /mcp HTTP/1.1", &fields, Value::Null).body("").unframed().of(revision, session)
    }

    fn of(self, revision: &str, session: Option<&str>) -> Self {
        // Revisions before 2025-06-18 do not know the field.
        let ask = if revision < "2025-06-18" { self } else { self.set("MCP-Protocol-Version", revision) };
        match session {
            Some(id) => ask.set("Mcp-Session-Id", id),
            None => ask,
        }
    }

    /// Replaces its first line.
    pub(super) fn line(mut self, line: &str) -> Self {
        self.line = line.into();
        self
    }

    /// Adds the credentials of this principal.
    pub(super) fn who(self, name: &str) -> Self {
        self.set("Authorization", &format!("Bearer {name}"))
    }

    /// Sets this field, as the only one with its name.
    pub(super) fn set(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.fields.push((name.into(), value.into()));
        self
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(one, _)| !one.eq_ignore_ascii_case(name));
        self
    }

    /// Adds these bytes between its fields and the empty line.
    pub(super) fn lines(mut self, lines: impl AsRef<[u8]>) -> Self {
        self.lines.extend_from_slice(lines.as_ref());
        self
    }

    /// Adds this argument of the tool.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.message["params"]["arguments"][name] = value.into();
        self
    }

    /// Changes the message.
    pub(super) fn message(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.message);
        self
    }

    /// Replaces the message by this body.
    pub(super) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Some(body.as_ref().to_vec());
        self
    }

    /// Omits the length of its body.
    pub(super) fn unframed(mut self) -> Self {
        self.framed = false;
        self
    }

    /// Replaces the body by these literal chunks.
    pub(super) fn chunks(self, chunks: impl AsRef<[u8]>) -> Self {
        self.set("Transfer-Encoding", "chunked").unframed().body(chunks)
    }

    /// Sends its message as one chunk, and the end.
    pub(super) fn chunked(self) -> Self {
        let body = self.content();
        self.chunks([format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat())
    }

    /// The body.
    pub(super) fn content(&self) -> Vec<u8> {
        self.body.clone().unwrap_or_else(|| self.message.to_string().into_bytes())
    }

    /// The head, with its empty line.
    pub(super) fn head(&self) -> Vec<u8> {
        let mut head = format!("{}\r\n", self.line);
        for (name, value) in &self.fields {
            head += &format!("{name}: {value}\r\n");
        }
        if self.framed {
            head += &format!("Content-Length: {}\r\n", self.content().len());
        }
        [head.as_bytes(), &self.lines, b"\r\n"].concat()
    }

    /// Returns all bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        [self.head(), self.content()].concat()
    }
}

const FIELDS: &[(&str, &str)] =
    &[("Host", "localhost"), ("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];
