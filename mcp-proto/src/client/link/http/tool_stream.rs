//! The events of [`Dialect::ToolStream`]: the parts of a result, and its end.

use super::{ExchangeRole, HttpExchange, HttpLink};
use crate::client::env::Env;
use crate::client::link::event::LinkEvent;
use crate::error::CallError;
use crate::exchange::{Dialect, ExchangeId};
use crate::rpc::{self, DecodeError, InvalidMessage, Message, Object, Payload, RawJson, Response};
use alloc::format;
use alloc::vec::Vec;
use bytes::Bytes;

/// The parts of a result so far.
#[derive(Debug, Default)]
pub(super) struct ResultParts {
    content: Vec<RawJson>,
    /// The other members.
    other: Object,
    /// The bytes of all events.
    size: usize,
}

impl ResultParts {
    /// Adds the data of an event `result`.
    fn add(&mut self, data: &Bytes) -> Result<(), InvalidMessage> {
        let bad = |_| InvalidMessage::new(rpc::InvalidKind::NotAnObject, data);
        let mut part = Object::read(&RawJson::parse_indented(data)?).map_err(bad)?;
        self.content.extend(part.optional_array("content").map_err(bad)?.unwrap_or_default());
        part.remove("content");
        let other = core::mem::take(&mut self.other);
        self.other = other.with_all(&part);
        Ok(())
    }

    /// Completes a result with the parts that it lacks.
    fn complete(self, result: RawJson) -> RawJson {
        let Ok(own) = Object::read(&result) else { return result };
        let has_content = own.array("content").is_ok_and(|content| !content.is_empty());
        let whole = self.other.with_all(&own);
        if has_content { whole } else { whole.with("content", self.content) }.to_json()
    }
}

impl HttpLink {
    /// Handles an event of the dialect, on the response to a call. Returns false for any other
    /// event.
    pub(super) fn on_dialect_event(&mut self, env: &mut Env, exchange: ExchangeId, event: &str, data: &Bytes) -> bool {
        let http = self.exchanges.get_mut(exchange).filter(|_| env.config.dialect == Dialect::ToolStream);
        let Some(HttpExchange { role: ExchangeRole::Request(id, purpose), parts, .. }) = http else { return false };
        let (id, purpose) = (id.clone(), *purpose);
        match event {
            "result" => {
                let parts = parts.get_or_insert_default();
                parts.size = parts.size.saturating_add(data.len());
                let max = env.config.limits.frame.max_event;
                if parts.size > max {
                    self.end_oversized(env, exchange, max);
                } else if let Err(defect) = parts.add(data) {
                    self.on_defect(env, exchange, defect);
                }
            }
            "complete" | "error" => {
                let parts = parts.take();
                match (rpc::parse(data.clone(), env.config.limits.frame.max_depth), parts) {
                    (Ok(Message::Response(Response { id, payload: Payload::Result(result) })), Some(parts)) => {
                        let payload = Payload::Result(parts.complete(result));
                        self.on_message(env, exchange, Message::Response(Response { id, payload }));
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

    /// Ends the call whose parts are larger than one event may be.
    fn end_oversized(&mut self, env: &mut Env, exchange: ExchangeId, max: usize) {
        let Some(call) = self.call_on(exchange) else { return };
        let Some(id) = self.exchanges.get(exchange).and_then(|http| Some(http.request()?.0.clone())) else { return };
        self.drop_exchange(env, exchange);
        let error = CallError::Decode(DecodeError::new(format!("the parts of the result exceed {max} bytes")));
        self.events.push_back(LinkEvent::CallEnded { call, id, is_lost: false, error });
    }
}
