//! The recording of a client: how its start, its inputs and its outputs are written.

use super::Redaction;
use super::findings::{self, Finding, FindingsLog};
use super::hook::{self, Overheard};
use super::log::{Log, Replay};
use super::mask::Mask;
use super::recorded::TakeNotes;
use crate::client::{ClientConfig, Event};
use crate::error::Refusal;
use crate::exchange::{Action, ConnectionId, ConnectionNotice, Endpoint, IoEvent, Shutdown};
use crate::hook::{Denial, Ruling};
use crate::input::{Change, Input, InputResult, WiredClientInput};
use crate::redact::redact_message;
use crate::time::Instant;
use crate::wired::WiredClient;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use bytes::Bytes;
use core::fmt;
use serde::{Deserialize, Serialize};

/// What a client is created from, beside its seed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientStart {
    /// The time at which it began.
    #[serde(with = "crate::record::value")]
    pub now: Instant,
    /// The configuration of the client.
    pub config: Arc<ClientConfig>,
}

/// What a callback of the application returned to a client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ClientNote {
    /// A refusal of the message hook: the number of the message, and the reason.
    Denied(usize, String),
    /// A replacement of the message hook: the number of the message, and the other message.
    Replaced(usize, #[serde(with = "crate::record::value")] Bytes),
    /// What the validator found wrong: the number of the schema or value.
    Found(usize, Finding),
}

/// Returns the notes of the callbacks that are observed.
pub(super) fn notes(hook: Overheard, found: FindingsLog, mask: Mask) -> TakeNotes<WiredClient> {
    Box::new(move || {
        let ruled = hook.take().into_iter().filter_map(|(number, ruling)| match ruling {
            Ok(Ruling::Pass) => None,
            Ok(Ruling::Replace(text)) if mask.is_on() => {
                Some(ClientNote::Replaced(number, redact_message(&text).into()))
            }
            Ok(Ruling::Replace(text)) => Some(ClientNote::Replaced(number, text)),
            Err(Denial(reason)) => Some(ClientNote::Denied(number, mask.text(&reason))),
        });
        let masked = |found: Finding| if mask.is_on() { found.masked() } else { found };
        let found = found.take().into_iter().map(|(number, found)| ClientNote::Found(number, masked(found)));
        found.chain(ruled).collect()
    })
}

/// An output, as it is written.
#[derive(Serialize)]
pub enum OutputLine {
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

impl Replay for WiredClient {
    const ENGINE: &'static str = "client";
    const BOUNDS_OUTPUTS: bool = true;
    type Start = ClientStart;
    type Note = ClientNote;
    type Mask = Mask;
    type Line = OutputLine;

    fn mask(redaction: Redaction, start: &ClientStart) -> Mask {
        Mask::new(redaction, &start.config.target)
    }

    fn create(log: &Log<Self>) -> Self {
        let mut config = Arc::clone(&log.start.config);
        if config.on_message.is_some() {
            let rulings = log.notes.iter().filter_map(|note| match note {
                ClientNote::Denied(number, reason) => Some((*number, Err(Denial::new(reason.as_str())))),
                ClientNote::Replaced(number, text) => Some((*number, Ok(Ruling::Replace(text.clone())))),
                ClientNote::Found(..) => None,
            });
            let on_message = Some(hook::scripted(rulings.collect()));
            config = Arc::new(ClientConfig { on_message, ..ClientConfig::clone(&config) });
        }
        let findings = log.notes.iter().filter_map(|note| match note {
            ClientNote::Found(number, found) => Some((*number, found.clone())),
            ClientNote::Denied(..) | ClientNote::Replaced(..) => None,
        });
        config = findings::with_validator(config, |_| findings::scripted(findings.collect()));
        Self::new(config, log.seed, log.start.now)
    }

    fn origin(start: &ClientStart) -> Instant {
        start.now
    }

    fn apply(&mut self, now: Instant, input: WiredClientInput) -> Result<InputResult, Refusal> {
        self.apply(now, input).map_err(|refused| refused.why)
    }

    fn poll(&mut self) -> Option<Action<Event>> {
        self.poll_output()
    }

    fn written(mask: &mut Mask, input: &WiredClientInput) -> WiredClientInput {
        let written = mask.input(input);
        mask.follow(input);
        written
    }

    fn may_be_unreadable(input: &WiredClientInput) -> bool {
        matches!(input, Input::Command(_))
    }

    fn returned(mask: &Mask, returned: &Result<InputResult, Refusal>) -> Option<OutputLine> {
        applied(returned, mask)
    }

    fn output(mask: &mut Mask, output: &Action<Event>) -> OutputLine {
        action(output, mask)
    }

    fn is_last(output: &Action<Event>) -> bool {
        matches!(output, Action::Event(Event::Terminated(_)))
    }

    fn bytes_read(input: &WiredClientInput) -> usize {
        match input {
            Input::Event(_, IoEvent::Read(bytes)) => bytes.len(),
            _ => 0,
        }
    }

    fn bytes_written(output: &Action<Event>) -> usize {
        match output {
            Action::Write(_, bytes) => bytes.len(),
            _ => 0,
        }
    }
}

/// Returns the result of an input. `None` if the input was applied and returned nothing.
fn applied(applied: &Result<InputResult, Refusal>, mask: &Mask) -> Option<OutputLine> {
    match applied {
        Ok(InputResult::Done) => None,
        Ok(InputResult::Call(call)) => Some(OutputLine::Begun(call.0)),
        Ok(InputResult::Notification(id)) => Some(OutputLine::Begun(id.0)),
        Err(why) => Some(OutputLine::Refused((!mask.is_on()).then(|| why.to_string()))),
    }
}

/// Returns an action of the engine as an output.
fn action(action: &Action<Event>, mask: &mut Mask) -> OutputLine {
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
        Event::Task { call, .. } => ("task", Some(call.0)),
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
        Event::Auth(_) => ("auth", None),
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
