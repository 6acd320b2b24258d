//! The lines of a recording: each is one input or output as a JSON object. Inputs are read back.
//! Outputs are only compared.

use super::Redaction;
use super::findings::Finding;
use super::mask::Mask;
use crate::client::{ClientConfig, Event};
use crate::error::Refusal;
use crate::exchange::{Action, ConnectionId, ConnectionNotice, Endpoint, Shutdown};
use crate::input::{Applied, Change, WiredClientInput};
use crate::rpc::{DecodeError, EncodeError, RawJson};
use crate::time::Instant;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use bytes::Bytes;
use core::fmt;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The version of the format.
pub(super) const FORMAT: u64 = 2;

/// The first line.
#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    #[serde(rename = "mcp-recording")]
    pub(super) format: u64,
    pub(super) version: String,
    pub(super) redaction: Redaction,
    pub(super) seed: [u8; 32],
    #[serde(with = "crate::record::value")]
    pub(super) start: Instant,
    pub(super) config: ClientConfig,
}

/// A line after the first, with outputs of the type `O`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) enum Line<O> {
    Input(#[serde(with = "crate::record::value")] Instant, WiredClientInput),
    Output(O),
    /// A refusal of the message hook: the number of the message, and the reason. It belongs to the
    /// recording as a whole.
    Denied(usize, String),
    /// What the validator found wrong: the number of the schema or value.
    Found(usize, Finding),
    End {
        inputs: u64,
        outputs: u64,
    },
}

/// An output, as it is written.
#[derive(Serialize)]
pub(super) enum OutputLine {
    /// A call or a notification has this id.
    Begun(u64),
    /// A command was refused. A redacted recording leaves the reason out.
    Refused(Option<String>),
    Open(ConnectionId, Endpoint),
    Write(ConnectionId, #[serde(with = "crate::record::value")] Bytes),
    Read(ConnectionId, bool),
    Close(ConnectionId, Shutdown),
    Secure(ConnectionId, Arc<str>),
    /// An event or a notice. Its text contains input of the peer: a redacted recording leaves the
    /// text out.
    Event {
        what: &'static str,
        id: Option<u64>,
        text: Option<String>,
    },
}

impl Line<OutputLine> {
    /// Returns the line as JSON.
    pub(super) fn json(&self) -> Result<RawJson, EncodeError> {
        RawJson::encode(self)
    }
}

/// Reads a line after the first.
pub(super) fn read(line: &RawJson) -> Result<Line<IgnoredAny>, DecodeError> {
    line.decode()
}

/// Returns an error if an input could not be read back.
pub(super) fn check(now: Instant, input: &WiredClientInput) -> Result<(), DecodeError> {
    let line = Line::Input(now, input.clone()).json().map_err(|e| DecodeError::new(e.to_string()))?;
    read(&line).map(drop)
}

/// Returns the result of an input. `None` if the input was applied and returned nothing.
pub(super) fn applied(applied: Result<Applied, &Refusal>, mask: &Mask) -> Option<OutputLine> {
    match applied {
        Ok(Applied::Done) => None,
        Ok(Applied::Call(call)) => Some(OutputLine::Begun(call.0)),
        Ok(Applied::Notification(id)) => Some(OutputLine::Begun(id.0)),
        Err(why) => Some(OutputLine::Refused((!mask.is_on()).then(|| why.to_string()))),
    }
}

/// Returns an action of the engine as an output.
pub(super) fn output(action: &Action<Event>, mask: &mut Mask) -> OutputLine {
    match action {
        Action::Open(connection, endpoint) => OutputLine::Open(*connection, mask.endpoint(endpoint)),
        Action::Write(connection, bytes) => OutputLine::Write(*connection, mask.written(*connection, bytes)),
        Action::Secure(connection, name) => OutputLine::Secure(*connection, Arc::clone(name)),
        Action::Close(connection, how) => OutputLine::Close(*connection, *how),
        Action::Read(connection, reads) => OutputLine::Read(*connection, *reads),
        Action::Notice(connection, notice) => {
            let what = match notice {
                ConnectionNotice::Closing(_) => "channel-closing",
                ConnectionNotice::Closed(_) => "channel-closed",
            };
            event(what, Some(connection.0), notice, mask)
        }
        Action::Event(told) => {
            let (what, id) = outline(told);
            event(what, id, told, mask)
        }
    }
}

fn event(what: &'static str, id: Option<u64>, text: &dyn fmt::Debug, mask: &Mask) -> OutputLine {
    OutputLine::Event { what, id, text: (!mask.is_on()).then(|| format!("{text:?}")) }
}

/// Returns the kind of the event, and the number of the call, input request, connection or attempt
/// that it is about.
fn outline(event: &Event) -> (&'static str, Option<u64>) {
    match event {
        Event::Ready(_) => ("ready", None),
        Event::Progress { call, .. } => ("progress", Some(call.0)),
        Event::Ended { call, outcome: Ok(_) } => ("completed", Some(call.0)),
        Event::Ended { call, outcome: Err(_) } => ("failed", Some(call.0)),
        Event::NotificationEnded { notification, outcome: Ok(()) } => ("notified", Some(notification.0)),
        Event::NotificationEnded { notification, outcome: Err(_) } => ("not-notified", Some(notification.0)),
        Event::Changed(Change::Tools) => ("tools-changed", None),
        Event::Changed(Change::Prompts) => ("prompts-changed", None),
        Event::Changed(Change::Resources) => ("resources-changed", None),
        Event::Changed(Change::Resource(_)) => ("resource-changed", None),
        Event::Watching(_) => ("watching", None),
        Event::Log { call, .. } => ("log", call.map(|call| call.0)),
        Event::Control(_) => ("control", None),
        Event::Fetched { fetch, outcome: Ok(_) } => ("fetched", Some(fetch.0)),
        Event::Fetched { fetch, outcome: Err(_) } => ("not-fetched", Some(fetch.0)),
        Event::Elicited(_) => ("elicited", None),
        Event::AuthNeeded { token, .. } => ("auth-needed", Some(token.key().number())),
        Event::Reconnecting { attempt, .. } => ("reconnecting", Some((*attempt).into())),
        Event::ListenerLost { .. } => ("listener-lost", None),
        Event::InputNeeded { token, .. } => ("asked", Some(token.key().number())),
        Event::InputWithdrawn(key) => ("withdrawn", Some(key.number())),
        Event::Notification { .. } => ("notification", None),
        Event::Diagnostic(diagnostic) => (diagnostic.kind.code(), None),
        Event::Lost { .. } => ("lost", None),
        Event::PingMissed { in_a_row, .. } => ("ping-missed", Some((*in_a_row).into())),
        Event::Terminated(_) => ("terminated", None),
    }
}
