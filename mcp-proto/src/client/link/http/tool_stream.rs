//! The events of [`Dialect::ToolStream`]: the parts of a result, and its end.

use super::{ExchangeRole, HttpExchange, HttpLink};
use crate::client::env::ClientEnv;
use crate::client::link::event::LinkEvent;
use crate::error::CallError;
use crate::exchange::{Dialect, ExchangeId};
use crate::rpc::{self, DecodeError, InvalidKind, InvalidMessage, Message, Object, Payload, RawJson, Response};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// The member whose elements are joined.
const CONTENT: &str = "content";

/// Maximum number of members of a result beside its content. A result has a handful.
const MAX_MEMBERS: usize = 64;

/// The parts of a result so far. What is held is the text of the parts: a server chooses how many
/// elements and events there are, and each costs only its own length.
#[derive(Debug, Default)]
pub(super) struct ResultParts {
    /// The elements of the content, with commas between them.
    content: Vec<u8>,
    /// The other members.
    other: BTreeMap<String, RawJson>,
    /// The bytes of all events.
    size: usize,
}

impl ResultParts {
    /// Adds the data of an event `result`.
    fn add(&mut self, data: &Bytes) -> Result<(), InvalidMessage> {
        let bad = || InvalidMessage::new(InvalidKind::NotAnObject, data);
        let part = Object::read(&RawJson::parse_indented(data)?).map_err(|_| bad())?;
        for (name, value) in part.iter() {
            if name != CONTENT {
                self.other.insert(name.into_owned(), value.detached());
                continue;
            }
            let elements = elements(&value).ok_or_else(bad)?;
            if !self.content.is_empty() && !elements.is_empty() {
                self.content.push(b',');
            }
            self.content.extend_from_slice(elements);
        }
        Ok(())
    }

    /// Returns whether the parts are larger than a result may be.
    fn exceed(&self, max: usize) -> bool {
        self.size > max || self.other.len() > MAX_MEMBERS
    }

    /// Completes a result with the parts that it lacks.
    fn complete(self, result: RawJson) -> RawJson {
        let Ok(mut whole) = Object::read(&result) else { return result };
        let own = whole.get(CONTENT);
        if own.is_none_or(|own| elements(&own).is_some_and(<[u8]>::is_empty)) {
            let text = [&b"["[..], &self.content, b"]"].concat();
            whole.set(CONTENT, RawJson::trusted(text.into()));
        }
        for (name, value) in self.other {
            if !whole.contains(&name) {
                whole.set(&name, value);
            }
        }
        whole.to_json()
    }
}

/// Returns the text of the elements of an array. `None` if the value is none.
fn elements(value: &RawJson) -> Option<&[u8]> {
    Some(value.as_bytes().strip_prefix(b"[")?.strip_suffix(b"]")?.trim_ascii())
}

impl HttpLink {
    /// Handles an event of the dialect, on the response to a call. Returns false for any other
    /// event.
    pub(super) fn on_dialect_event(
        &mut self,
        env: &mut ClientEnv,
        exchange: ExchangeId,
        event: &str,
        data: &Bytes,
    ) -> bool {
        let http = self.exchanges.get_mut(exchange).filter(|_| env.config.dialect == Dialect::ToolStream);
        let Some(HttpExchange { role: ExchangeRole::Request(id, purpose), parts, .. }) = http else { return false };
        let (id, purpose) = (id.clone(), *purpose);
        match event {
            "result" => {
                let parts = parts.get_or_insert_default();
                parts.size = parts.size.saturating_add(data.len());
                let max = env.config.limits.frame.max_event;
                let added = if parts.exceed(max) { Ok(()) } else { parts.add(data) };
                if parts.exceed(max) {
                    self.end_oversized(env, exchange, max);
                } else if let Err(defect) = added {
                    self.on_defect(env, exchange, defect);
                }
            }
            "complete" | "error" => {
                let parts = parts.take();
                match (rpc::parse(data.clone(), env.config.limits.frame.max_depth), parts) {
                    (
                        Ok(Message::Response(Response { id, payload: Payload::Result(result), has_nulls })),
                        Some(parts),
                    ) => {
                        let payload = Payload::Result(parts.complete(result));
                        self.on_message(env, exchange, Message::Response(Response { id, payload, has_nulls }));
                    }
                    // It has no id, or the id null.
                    (Ok(Message::Error(error)), _) => {
                        self.events.push_back(LinkEvent::Refused(exchange, id, purpose, error));
                    }
                    (Ok(message), _) => self.on_message(env, exchange, message),
                    (Err(defect), _) => {
                        self.on_defect(env, exchange, defect);
                        self.finish(env, exchange);
                    }
                }
            }
            _ => return false,
        }
        true
    }

    /// Ends the call whose parts are larger than a result may be.
    fn end_oversized(&mut self, env: &mut ClientEnv, exchange: ExchangeId, max: usize) {
        let Some(call) = self.call_on(exchange) else { return };
        let Some(id) = self.exchanges.get(exchange).and_then(|http| Some(http.request()?.0.clone())) else { return };
        self.drop_exchange(env, exchange);
        let error = CallError::Decode(DecodeError::new(format!(
            "the parts of the result exceed {max} bytes, or {MAX_MEMBERS} members"
        )));
        self.events.push_back(LinkEvent::CallEnded { call, id, is_lost: false, error });
    }
}
