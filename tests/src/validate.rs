//! Checks transcripts against the official JSON schema of their revision, line by line.
//!
//! A transcript has one message per line: `> ` precedes a message of the client, `< ` one of the
//! server. Empty lines and lines that begin with `#` are skipped. `# revision: 2025-11-25` names
//! the revision. Each message must match the schema for its kind (request, notification, result,
//! error), for its sender, and for its method. A result is checked by the method of its request.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// The sender of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// `>`
    Client,
    /// `<`
    Server,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Client => "Client",
            Self::Server => "Server",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The schema of one revision.
#[derive(Debug)]
pub struct Schema {
    document: Value,
    /// `$defs`, or `definitions` in the older drafts.
    place: &'static str,
    compiled: RefCell<BTreeMap<String, Rc<Validator>>>,
}

/// Returns the revision that a transcript names.
pub fn revision(transcript: &str) -> Option<&str> {
    transcript.lines().find_map(|line| line.strip_prefix("# revision:")).map(str::trim)
}

impl Schema {
    /// Reads `folder/revision/schema.json`.
    pub fn read(folder: &Path, revision: &str) -> Result<Self, String> {
        let path = folder.join(revision).join("schema.json");
        let text = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        let document = serde_json::from_str(&text).map_err(|why| format!("{}: {why}", path.display()))?;
        Self::new(document).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Creates a schema from its document.
    pub fn new(document: Value) -> Result<Self, String> {
        let place = ["$defs", "definitions"]
            .into_iter()
            .find(|place| document[place].is_object())
            .ok_or("it has no definitions")?;
        Ok(Self { document, place, compiled: RefCell::default() })
    }

    /// Checks every line. Returns a result for each message, with its line number.
    pub fn check(&self, transcript: &str) -> Vec<(usize, Result<(), String>)> {
        // The definition of each pending request, by sender and id.
        let mut open = BTreeMap::new();
        let lines =
            transcript.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        lines.map(|(at, line)| (at + 1, self.check_line(line, &mut open))).collect()
    }

    fn check_line(&self, line: &str, open: &mut BTreeMap<(Side, String), String>) -> Result<(), String> {
        let (side, text) = match (line.strip_prefix("> "), line.strip_prefix("< ")) {
            (Some(text), _) => (Side::Client, text),
            (_, Some(text)) => (Side::Server, text),
            _ => return Err("it begins with neither `> ` nor `< `".to_owned()),
        };
        let message: Value = serde_json::from_str(text).map_err(|why| why.to_string())?;
        self.valid("JSONRPCMessage", &message)?;
        match &message {
            Value::Array(parts) => parts.iter().try_for_each(|part| self.check_message(side, part, open)),
            message => self.check_message(side, message, open),
        }
    }

    fn check_message(
        &self,
        side: Side,
        message: &Value,
        open: &mut BTreeMap<(Side, String), String>,
    ) -> Result<(), String> {
        let id = message.get("id").map(Value::to_string);
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => {
                self.valid("JSONRPCRequest", message)?;
                let definition = self.of_method(method, "Request")?;
                self.valid(&format!("{}Request", side.name()), message)?;
                self.valid(&definition, message)?;
                match open.insert((side, id), definition) {
                    Some(_) => Err("its id is in use".to_owned()),
                    None => Ok(()),
                }
            }
            (Some(method), None) => {
                self.valid("JSONRPCNotification", message)?;
                self.valid(&format!("{}Notification", side.name()), message)?;
                self.valid(&self.of_method(method, "Notification")?, message)
            }
            (None, id) => {
                let request = id.and_then(|id| open.remove(&(side.other(), id)));
                match message.get("error") {
                    Some(error) => self.check_error(message, &error["code"]),
                    None => self.check_result(message, &request.ok_or("it answers no open request")?),
                }
            }
        }
    }

    fn check_error(&self, message: &Value, code: &Value) -> Result<(), String> {
        let general = if self.has("JSONRPCErrorResponse") { "JSONRPCErrorResponse" } else { "JSONRPCError" };
        self.valid(general, message)?;
        // Codes with their own shape name it inside `error`.
        let of_code = |definition: &Value| {
            let parts = definition["properties"]["error"]["allOf"].as_array();
            parts.is_some_and(|parts| parts.iter().any(|part| part["properties"]["code"]["const"] == *code))
        };
        let special = self.definitions().iter().find(|(_, definition)| of_code(definition));
        special.map_or(Ok(()), |(name, _)| self.valid(name, message))
    }

    fn check_result(&self, message: &Value, request: &str) -> Result<(), String> {
        let general = if self.has("JSONRPCResultResponse") { "JSONRPCResultResponse" } else { "JSONRPCResponse" };
        self.valid(general, message)?;
        let stem = request.trim_end_matches("Request");
        let (response, result) = (format!("{stem}ResultResponse"), format!("{stem}Result"));
        if self.has(&response) {
            self.valid(&response, message)
        } else {
            self.valid(if self.has(&result) { &result } else { "EmptyResult" }, &message["result"])
        }
    }

    fn definitions(&self) -> &Map<String, Value> {
        self.document[self.place].as_object().expect("invariant: checked when it was read")
    }

    fn has(&self, definition: &str) -> bool {
        self.definitions().contains_key(definition)
    }

    /// Returns the definition of a method, for example `CallToolRequest`. The union types of each
    /// side do not count.
    fn of_method(&self, method: &str, kind: &str) -> Result<String, String> {
        let unions = [Side::Client, Side::Server].map(|side| format!("{}{kind}", side.name()));
        let mut found = self.definitions().iter().filter(|(name, definition)| {
            name.ends_with(kind) && !unions.contains(name) && definition["properties"]["method"]["const"] == *method
        });
        found
            .next()
            .map(|(name, _)| name.clone())
            .ok_or_else(|| format!("{method} is no {} of this revision", kind.to_lowercase()))
    }

    fn valid(&self, definition: &str, value: &Value) -> Result<(), String> {
        let validator = self.compiled(definition)?;
        let mut errors = validator.iter_errors(value);
        match errors.next() {
            None => Ok(()),
            Some(error) => Err(format!("not a {definition}: {error} (at {:?})", error.instance_path().to_string())),
        }
    }

    fn compiled(&self, definition: &str) -> Result<Rc<Validator>, String> {
        if let Some(validator) = self.compiled.borrow().get(definition) {
            return Ok(Rc::clone(validator));
        }
        if !self.has(definition) {
            return Err(format!("this revision has no {definition}"));
        }
        let schema = json!({
            "$schema": self.document["$schema"],
            "allOf": [{ "$ref": format!("#/{}/{definition}", self.place) }],
            self.place: self.document[self.place],
        });
        let validator = Rc::new(jsonschema::validator_for(&schema).map_err(|why| format!("{definition}: {why}"))?);
        self.compiled.borrow_mut().insert(definition.to_owned(), Rc::clone(&validator));
        Ok(validator)
    }
}
