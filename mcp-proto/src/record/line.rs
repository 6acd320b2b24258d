//! The lines of a recording: each is one input or output as a JSON object. Inputs are read back.
//! Outputs are only compared.

use super::mask::Mask;
use super::value::{Value, fields, member, name, unknown};
use crate::call::{CallId, CallOptions, RawCall};
use crate::client::Event;
use crate::error::Refusal;
use crate::exchange::{Action, ConnectionId, ConnectionNotice, IoEvent, Shutdown};
use crate::input::{
    Applied, AuthKey, Authorization, ClientCommand, Input, InputAnswer, InputKey, NotificationId, WiredClientInput,
};
use crate::model::elicitation::ElicitResult;
use crate::rpc::{DecodeError, EncodeError, ErrorObject, Object, RawJson};
use crate::time::Instant;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;

/// The latest instant in a recording, in seconds: about a century. An engine could not tick through
/// more in a reasonable time.
const LAST_SECOND: u64 = u32::MAX as u64;

fields!(CallOptions { timeout, reset_on_progress, max_total, progress, repeatable });
fields!(ErrorObject { code, message, data });

impl Value for i64 {
    fn write(&self) -> RawJson {
        (*self).into()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        json.decode()
    }
}

impl Value for Instant {
    fn write(&self) -> RawJson {
        self.since_origin().write()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let since = Duration::read(json)?;
        if since.as_secs() > LAST_SECOND {
            return Err(DecodeError::new("too far ahead"));
        }
        Ok(Self::new(since))
    }
}

/// Writes an input.
pub(super) fn input(now: Instant, input: &WiredClientInput, mask: &mut Mask) -> Object {
    let line = |what: &str| Object::new().with("at", now.write()).with("in", what);
    match input {
        Input::Tick => line("tick"),
        Input::Event(channel, wire) => {
            let line = |what| line(what).with("on", channel.0);
            match wire {
                IoEvent::Opened(peer) => line("opened").with("peer", peer.write()),
                IoEvent::Read(bytes) => line("bytes").with("bytes", mask.read(*channel, bytes).write()),
                IoEvent::ReadClosed => line("eof"),
                IoEvent::Written(n) => line("written").with("n", n.write()),
                IoEvent::Closed(why) => line("closed").with("why", mask.closed(why).write()),
            }
        }
        Input::Command(ClientCommand::Call(call)) => {
            let line = line("call").with("method", call.method.as_ref());
            let line = match &call.params {
                Ok(params) => line.with("params", mask.object(params).write()),
                Err(e) => line.with("unencodable", e.text()),
            };
            line.with("options", call.options.write())
        }
        Input::Command(ClientCommand::Cancel(call, reason)) => {
            line("cancel").with("id", call.0).with("reason", reason.as_ref().map(|reason| mask.words(reason)).write())
        }
        Input::Command(ClientCommand::Answer(key, answer)) => {
            let line = |what: &str, value: RawJson| line("answer").with("id", key.number()).with(what, value);
            match answer {
                InputAnswer::Elicitation(ElicitResult::Accept(content)) => line("accept", mask.object(content).write()),
                InputAnswer::Elicitation(ElicitResult::Decline) => line("decline", true.into()),
                InputAnswer::Elicitation(ElicitResult::Cancel) => line("dismiss", true.into()),
                InputAnswer::Sampling(result) => line("sample", mask.object(result).write()),
                InputAnswer::Roots(result) => line("roots", mask.object(result).write()),
                InputAnswer::Error(error) => line("error", mask.error(error).write()),
            }
        }
        Input::Command(ClientCommand::Notify(method, params)) => {
            line("notify").with("method", method.write()).with("params", mask.object(params).write())
        }
        Input::Command(ClientCommand::NotifyTracked(method, params)) => {
            line("notify-tracked").with("method", method.write()).with("params", mask.object(params).write())
        }
        Input::Command(ClientCommand::Untrack(id)) => line("untrack").with("id", id.0),
        Input::Command(ClientCommand::Authorize(key, with)) => {
            let line = line("authorize").with("id", key.number());
            match with {
                Authorization::Headers(headers) => line.with("headers", mask.headers(headers).write()),
                Authorization::Refuse => line,
            }
        }
        Input::Command(ClientCommand::Close) => line("close"),
    }
}

/// Reads an input.
pub(super) fn read_input(line: &Object) -> Result<(Instant, WiredClientInput), DecodeError> {
    let at: Instant = member(line, "at")?;
    let on = || member(line, "on").map(ConnectionId);
    let what: String = member(line, "in")?;
    let input = match what.as_str() {
        "tick" => Input::Tick,
        "opened" => Input::Event(on()?, IoEvent::Opened(member(line, "peer")?)),
        "bytes" => Input::Event(on()?, IoEvent::Read(member(line, "bytes")?)),
        "eof" => Input::Event(on()?, IoEvent::ReadClosed),
        "written" => Input::Event(on()?, IoEvent::Written(member(line, "n")?)),
        "closed" => Input::Event(on()?, IoEvent::Closed(member(line, "why")?)),
        "call" => {
            let params = match line.get("unencodable") {
                Some(text) => Err(EncodeError::new(name(text)?)),
                None => Ok(member(line, "params")?),
            };
            let method = member::<String>(line, "method")?.into();
            Input::Command(ClientCommand::Call(RawCall { method, params, options: member(line, "options")? }))
        }
        "cancel" => Input::Command(ClientCommand::Cancel(member(line, "id").map(CallId)?, member(line, "reason")?)),
        "answer" => Input::Command(ClientCommand::Answer(member(line, "id").map(InputKey::new)?, read_answer(line)?)),
        "notify" => Input::Command(ClientCommand::Notify(member(line, "method")?, member(line, "params")?)),
        "notify-tracked" => {
            Input::Command(ClientCommand::NotifyTracked(member(line, "method")?, member(line, "params")?))
        }
        "untrack" => Input::Command(ClientCommand::Untrack(member(line, "id").map(NotificationId)?)),
        "authorize" => {
            let with = match line.get("headers") {
                Some(headers) => Authorization::Headers(Value::read(headers)?),
                None => Authorization::Refuse,
            };
            Input::Command(ClientCommand::Authorize(member(line, "id").map(AuthKey::new)?, with))
        }
        "close" => Input::Command(ClientCommand::Close),
        other => return Err(unknown(other)),
    };
    Ok((at, input))
}

fn read_answer(line: &Object) -> Result<InputAnswer, DecodeError> {
    for (key, value) in line.iter() {
        return Ok(match key {
            "accept" => InputAnswer::Elicitation(ElicitResult::Accept(Value::read(value)?)),
            "decline" => InputAnswer::Elicitation(ElicitResult::Decline),
            "dismiss" => InputAnswer::Elicitation(ElicitResult::Cancel),
            "sample" => InputAnswer::Sampling(Value::read(value)?),
            "roots" => InputAnswer::Roots(Value::read(value)?),
            "error" => InputAnswer::Error(Value::read(value)?),
            _ => continue,
        });
    }
    Err(DecodeError::new("the answer is missing"))
}

/// The result of an input. `None` if the input was applied and returned nothing.
pub(super) fn applied(applied: Result<Applied, &Refusal>, mask: &Mask) -> Option<Object> {
    match applied {
        Ok(Applied::Done) => None,
        Ok(Applied::Call(call)) => Some(Object::new().with("out", "begun").with("id", call.0)),
        Ok(Applied::Notification(id)) => Some(Object::new().with("out", "begun").with("id", id.0)),
        Err(why) => {
            let line = Object::new().with("out", "refused");
            Some(if mask.is_on() { line } else { line.with("why", why.to_string().as_str()) })
        }
    }
}

/// Writes an output.
pub(super) fn output(action: &Action<Event>, mask: &mut Mask) -> Object {
    let line = |what: &str, channel: &ConnectionId| Object::new().with("out", what).with("on", channel.0);
    match action {
        Action::Open(channel, endpoint) => line("open", channel).with("to", mask.endpoint(endpoint).write()),
        Action::Write(channel, bytes) => line("write", channel).with("bytes", mask.written(*channel, bytes).write()),
        Action::Close(channel, how) => {
            let how = match how {
                Shutdown::WriteHalf => "write-half",
                Shutdown::Terminate => "terminate",
                Shutdown::Abort => "abort",
            };
            line("close", channel).with("how", how)
        }
        Action::Read(connection, reads) => line("read", connection).with("reading", *reads),
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

/// Returns the line of an event or a notice. Its text contains input of the peer: a redacted
/// recording leaves the text out.
fn event(what: &str, id: Option<u64>, text: &dyn fmt::Debug, mask: &Mask) -> Object {
    let line = Object::new().with("out", "event").with("what", what).with_opt("id", id);
    if mask.is_on() { line } else { line.with("text", format!("{text:?}").as_str()) }
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
        Event::ToolsChanged => ("tools-changed", None),
        Event::AuthNeeded { token, .. } => ("auth-needed", Some(token.key().number())),
        Event::Reconnecting { attempt, .. } => ("reconnecting", Some((*attempt).into())),
        Event::ListenerLost { .. } => ("listener-lost", None),
        Event::InputNeeded { token, .. } => ("asked", Some(token.key().number())),
        Event::InputWithdrawn(key) => ("withdrawn", Some(key.number())),
        Event::Notification { .. } => ("notification", None),
        Event::Diagnostic(diagnostic) => (diagnostic.kind.code(), None),
        Event::Lost { .. } => ("lost", None),
        Event::Restarting { attempt, .. } => ("restarting", Some((*attempt).into())),
        Event::PingMissed { in_a_row, .. } => ("ping-missed", Some((*in_a_row).into())),
        Event::Terminated(_) => ("terminated", None),
    }
}
