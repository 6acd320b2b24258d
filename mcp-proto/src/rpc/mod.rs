//! The JSON-RPC 2.0 envelope as MCP uses it: ids, messages, errors, and raw JSON that was validated
//! once. One pass of this crate parses a message ([`parse`]). serde is used only below `params`,
//! `result` and `data`, for the types of the application. This module gives no method a meaning,
//! and knows no revision and not where the bytes come from.

mod canonical;
pub mod code;
mod encode;
mod grammar;
mod id;
mod invalid;
mod json;
mod located;
mod members;
mod message;
mod method;
mod object;
mod parse;
mod scalar;
mod value;
mod walk;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use canonical::canonical;
pub use id::Id;
pub use invalid::{InvalidKind, InvalidMessage};
pub use json::{DecodeError, EncodeError, JsonKind, RawJson};
pub use located::{LocatedMember, LocatedValue};
pub use message::{ErrorObject, Message, Notification, Payload, Request, Response};
pub(crate) use object::Glance;
pub use object::{Object, ToObject};
pub use parse::{Document, parse, parse_batch_or_message};
pub(crate) use parse::{LARGE, parse_small};
pub(crate) use scalar::write_integer;
pub use value::JsonValue;
pub(crate) use value::Write;
pub(crate) use walk::Walk;
pub(crate) use write::request_with_meta;
pub use write::{error_response, message_size, notification, request, result_response, write_batch, write_message};
