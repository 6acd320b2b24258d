//! The lines between `hostile --driver` and a shim: `hostile.md` describes them.

use mcp_proto::limits::Limits;
use mcp_proto::model::lifecycle::Implementation;
use mcp_proto::server::{Hosts, ServerConfig, Sessions};
use mcp_proto::tools::CallTool;
use mcp_proto::version::{ProtocolVersion, Versions};
use mcp_proto::{Call, CallToolResult, ClientConfig};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// A line to a shim.
#[derive(Serialize, Deserialize, Debug)]
pub struct Line {
    /// Of this command. Its result has the same.
    pub(crate) id: u64,
    #[serde(flatten)]
    pub(crate) command: Command,
}

/// A command to a shim.
#[derive(Serialize, Deserialize, Debug)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Command {
    /// Connects a client, and waits for the end of negotiation.
    Connect { client: u64, config: Box<ClientConfig>, stderr: StderrTo, events: bool },
    /// Calls a tool, and waits for the result.
    Call { client: u64, call: Box<ToolCall> },
    /// Cancels the call of that command.
    Cancel { client: u64, call: u64 },
    /// Queues a notification.
    Notify { client: u64, method: String },
    /// Closes a client, and waits for its end.
    Close { client: u64 },
    /// Serves the tools over HTTP on a free port of the loopback address.
    Serve { server: u64, options: Box<Options> },
    /// Counts the connections and running requests of a server.
    Stats { server: u64 },
    /// Stops a server, and waits for its end.
    Stop { server: u64 },
    /// Returns the state of the tools.
    Tools,
    /// Releases a call of the tool `wait`.
    Free { tag: String },
}

/// The destination of a program's standard error.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StderrTo {
    Inherit,
    Discard,
    Lines,
}

/// A call of a tool.
#[derive(Serialize, Deserialize, Debug)]
pub struct ToolCall {
    tool: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    arguments: Value,
    /// Absent for that of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    repeatable: bool,
}

impl ToolCall {
    /// Returns the form of a call. `None` if it has none.
    pub fn of(call: Call<CallTool>) -> Option<Self> {
        let raw = call.into_raw();
        let params = raw.params.ok()?;
        let arguments = match params.get("arguments") {
            Some(arguments) => arguments.decode().ok()?,
            None => Value::Null,
        };
        let timeout_ms = match raw.options.timeout {
            None => None,
            Some(Some(timeout)) => Some(u64::try_from(timeout.as_millis()).ok()?),
            Some(None) => return None,
        };
        Some(Self { tool: params.required("name").ok()?, arguments, timeout_ms, repeatable: raw.options.repeatable })
    }

    /// Returns the call.
    pub fn call(self) -> Call<CallTool> {
        let mut call = mcp_proto::tools::call(&self.tool);
        if !self.arguments.is_null() {
            call = call.arguments(&self.arguments);
        }
        if let Some(timeout) = self.timeout_ms {
            call = call.timeout(Duration::from_millis(timeout));
        }
        if self.repeatable { call.repeatable() } else { call }
    }
}

/// The options of a server.
#[derive(Serialize, Deserialize, Debug)]
pub struct Options {
    /// `optional`, `required` or `off`.
    sessions: String,
    hosts: HostNames,
    versions: Vec<String>,
    stream_after_ms: u64,
    web_socket: bool,
    limits: Limits,
    /// Whether only clients with `Authorization: Bearer NAME` are admitted.
    pub(crate) admit: bool,
}

/// The hosts of a server.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
enum HostNames {
    Loopback,
    Any,
    Only(Vec<String>),
}

impl Options {
    /// Returns the options of a server whose configuration is changed like this. `None` if the
    /// change has no form.
    pub fn of(change: impl Fn(&mut ServerConfig), admit: bool) -> Option<Self> {
        let plain = || ServerConfig::new(Implementation::new("target", "1.0"));
        let mut wanted = plain();
        change(&mut wanted);
        let options = Self {
            sessions: match wanted.sessions {
                Sessions::Required => "required",
                Sessions::Off => "off",
                _ => "optional",
            }
            .into(),
            hosts: match &wanted.hosts {
                Hosts::Any => HostNames::Any,
                Hosts::Only(names) => HostNames::Only(names.clone()),
                _ => HostNames::Loopback,
            },
            versions: wanted.versions.newest_first().map(|version| version.as_str().into()).collect(),
            stream_after_ms: u64::try_from(wanted.stream_after.as_millis()).ok()?,
            web_socket: wanted.web_socket,
            limits: wanted.limits.clone(),
            admit,
        };
        let mut made = plain();
        options.set(&mut made);
        (made == wanted).then_some(options)
    }

    /// Sets them in a configuration.
    pub(crate) fn set(&self, config: &mut ServerConfig) {
        config.sessions = match self.sessions.as_str() {
            "required" => Sessions::Required,
            "off" => Sessions::Off,
            _ => Sessions::Optional,
        };
        config.hosts = match &self.hosts {
            HostNames::Loopback => Hosts::Loopback,
            HostNames::Any => Hosts::Any,
            HostNames::Only(names) => Hosts::Only(names.clone()),
        };
        config.versions = Versions::new(self.versions.iter().filter_map(|name| ProtocolVersion::parse(name)));
        config.stream_after = Duration::from_millis(self.stream_after_ms);
        config.web_socket = self.web_socket;
        config.limits = self.limits.clone();
    }
}

/// A line of a shim: the result of a command, or an event of a client.
#[derive(Serialize, Deserialize, Debug)]
#[serde(untagged)]
pub(crate) enum Output {
    /// A command is carried out.
    Done { id: u64, done: Done },
    /// A command has failed.
    Failed { id: u64, error: Value },
    /// The shim does not offer the command.
    NotOffered { id: u64, not_offered: String },
    /// Something happened.
    Event { client: u64, event: EventLine },
}

/// Checks that a line is one of a shim.
///
/// # Errors
/// It is none.
pub fn check_output(line: &str) -> serde_json::Result<()> {
    serde_json::from_str::<Output>(line).map(drop)
}

/// What a command returns.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Done {
    Connected,
    Result { text: Option<String>, is_error: bool },
    Cancelled,
    Notified,
    Closed,
    Listening(std::net::SocketAddr),
    Stats { connections: usize, running: usize },
    Stopped,
    Tools(Tools),
    Freed,
}

/// The state of the tools of a server.
#[derive(Serialize, Deserialize, Clone, Default, Debug)]
pub struct Tools {
    /// Number of runs of `mark`.
    pub(crate) marks: usize,
    /// Tags of the calls of `wait` that began.
    pub(crate) begun: BTreeSet<String>,
    /// Tags of those that were cancelled before their release.
    pub(crate) left: BTreeSet<String>,
}

/// An event of a client.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventLine {
    Notification,
    Diagnostic(String),
    Lost {
        notifications: u64,
        diagnostics: u64,
    },
    Reconnecting {
        wait_ms: u64,
    },
    ListenerLost,
    /// A connection was closed.
    Closed,
    /// A line of standard error.
    Stderr(String),
}

impl Done {
    /// Returns the result of a tool.
    pub(crate) fn result(result: &CallToolResult) -> Self {
        Self::Result { text: result.first_text().map(str::to_owned), is_error: result.is_error }
    }
}

/// Returns the error of a command, as a value.
pub(crate) fn error_form(error: &impl Serialize) -> Value {
    serde_json::to_value(error).unwrap_or_default()
}
