//! The envelope, compared with serde_json.

use bytes::Bytes;
use mcp_proto::limits::FrameLimits;
use mcp_proto::rpc::{self, Document, Id, InvalidKind, Message, Object, Payload, RawJson};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// Every message that this crate accepts is accepted by serde_json with equal parts. Every JSON-RPC
/// message of serde_json is accepted by this crate.
///
/// Exceptions: serde_json refuses numbers beyond a double, and stops at 127 levels, not 128. Only
/// this crate refuses a duplicate key of the envelope. For an integer that is written as a fraction
/// serde_json has no exact value, so the check only compares approximately.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    let ours = rpc::parse(bytes.clone(), 128);
    let theirs = serde_json::from_slice::<Value>(data);
    match (&ours, &theirs) {
        (Ok(message), Ok(value)) => {
            agree(message, value);
            written_back(message);
        }
        (Ok(_), Err(why)) => {
            let text = why.to_string();
            let excused = text.starts_with("number out of range") || text.starts_with("recursion limit exceeded");
            assert!(excused, "we accept what is not JSON: {why}");
        }
        (Err(defect), Ok(value)) => {
            let textual = [InvalidKind::Utf8, InvalidKind::Syntax, InvalidKind::Truncated, InvalidKind::TooDeep];
            assert!(!textual.contains(&defect.kind), "{defect} of what is JSON");
            let twice = defect.kind == InvalidKind::DuplicateKey && repeats(data);
            assert!(twice || !is_message(value), "{defect:?} of a message");
        }
        (Err(_), Err(_)) => {}
    }
    batch(bytes, &theirs, ours.ok());
}

/// An array is its elements. Any other value is a single element.
fn batch(bytes: Bytes, theirs: &serde_json::Result<Value>, alone: Option<Message>) {
    let mut limits = FrameLimits::default();
    limits.max_batch = 8;
    match rpc::parse_batch_or_message(bytes, &limits) {
        Ok(Document::Message(message)) => assert_eq!(Some(message), alone),
        Ok(Document::Batch(elements)) => {
            assert_eq!(alone, None);
            assert!(elements.len() <= limits.max_batch && !elements.is_empty());
            let Ok(Value::Array(values)) = theirs else { return };
            assert_eq!(elements.len(), values.len());
            for (element, value) in elements.iter().zip(values) {
                match element {
                    Ok(message) => agree(message, value),
                    Err(defect) if defect.kind == InvalidKind::DuplicateKey => {}
                    Err(defect) => assert!(!is_message(value), "{defect:?} of a message in an array"),
                }
            }
        }
        Err(_) => assert_eq!(alone, None),
    }
}

/// The parts of the message must equal those of the value.
fn agree(message: &Message, value: &Value) {
    assert_eq!(value["jsonrpc"], "2.0");
    match message {
        Message::Request(request) => {
            same_id(&request.id, &value["id"]);
            assert_eq!(value["method"], *request.method);
            same_params(request.params.as_ref(), &value["params"]);
        }
        Message::Notification(note) => {
            assert!(value.get("id").is_none());
            assert_eq!(value["method"], *note.method);
            same_params(note.params.as_ref(), &value["params"]);
        }
        Message::Response(response) => {
            same_id(&response.id, &value["id"]);
            match &response.payload {
                Payload::Result(result) => assert_eq!(read(result), value["result"]),
                Payload::Error(error) => same_error(error, &value["error"]),
            }
        }
        Message::Error(error) => {
            assert!(value["id"].is_null());
            same_error(error, &value["error"]);
        }
    }
}

fn read(json: &RawJson) -> Value {
    assert!(!json.as_str().contains(['\r', '\n']), "it can be framed by line");
    serde_json::from_str(json.as_str()).expect("a part of JSON is JSON")
}

/// An empty array is an empty object.
fn same_params(ours: Option<&RawJson>, theirs: &Value) {
    match is_empty(theirs) {
        true => assert_eq!(ours.map(RawJson::as_str), Some("{}")),
        false => same_or_null(ours, theirs),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn same_or_null(ours: Option<&RawJson>, theirs: &Value) {
    match ours {
        Some(json) => assert_eq!(read(json), *theirs),
        None => assert!(theirs.is_null(), "{theirs} was lost"),
    }
}

fn same_id(id: &Id, value: &Value) {
    match id {
        Id::Int(n) => assert!(is_integer(*n, value), "{n} is not {value}"),
        Id::Text(text) => assert_eq!(value, text),
    }
}

fn is_integer(n: i64, value: &Value) -> bool {
    value.as_i64().map_or_else(|| value.as_f64() == Some(n as f64), |other| other == n)
}

fn same_error(error: &rpc::ErrorObject, value: &Value) {
    assert!(is_integer(error.code, &value["code"]), "{} is not {}", error.code, value["code"]);
    assert_eq!(value["message"], *error.message);
    same_or_null(error.data.as_ref(), &value["data"]);
}

/// JSON-RPC 2.0 as MCP uses it, for a value that serde_json has read.
fn is_message(value: &Value) -> bool {
    let Value::Object(members) = value else { return false };
    let id = members.get("id");
    // Null is an absence where a result or an error shows what is meant.
    let is_real = |key: &str| members.get(key).is_some_and(|value| !value.is_null());
    let result = members.get("result").filter(|result| !result.is_null() || !is_real("error"));
    let error = members.get("error").filter(|error| !error.is_null() || !is_real("result"));
    let is_response = result.is_some() || error.is_some();
    let method = members.get("method").filter(|method| !method.is_null() || !is_response);
    let error = error.map(|error| {
        error.is_object()
            && error.get("code").is_some_and(integral)
            && error.get("message").is_some_and(Value::is_string)
    });
    let shape = match (method, result, error) {
        (Some(method), None, None) => {
            let params =
                members.get("params").is_none_or(|params| params.is_object() || params.is_null() || is_empty(params));
            method.is_string() && params && id.is_none_or(legal)
        }
        (None, Some(_), None) => id.is_some_and(legal),
        (None, None, Some(right)) => right && id.is_none_or(|id| id.is_null() || legal(id)),
        _ => false,
    };
    shape && value["jsonrpc"] == "2.0"
}

fn legal(id: &Value) -> bool {
    id.is_string() || integral(id)
}

/// Certainly an integer of 64 bits. A double of serde_json may have been rounded to one: `1e-7222`
/// is none.
fn integral(value: &Value) -> bool {
    value.is_i64()
}

/// A message that is read, written and read again stays the same.
fn written_back(message: &Message) {
    let object = |json: &RawJson| Object::read(json).expect("an object");
    let text = match message {
        Message::Request(request) => {
            rpc::request(&request.id, &request.method, request.params.as_ref().map(object).as_ref())
        }
        Message::Notification(note) => rpc::notification(&note.method, note.params.as_ref().map(object).as_ref()),
        Message::Response(rpc::Response { id, payload: Payload::Error(error), .. }) => {
            rpc::error_response(Some(id), error)
        }
        Message::Response(rpc::Response { id, payload: Payload::Result(result), .. }) => match Object::read(result) {
            Ok(result) => rpc::result_response(id, &result),
            Err(_) => return,
        },
        Message::Error(error) => rpc::error_response(None, error),
    };
    let value: Value = serde_json::from_slice(&text).expect("what we write is JSON");
    agree(message, &value);
    assert!(!text.contains(&b'\n') && !text.contains(&b'\r'), "it can be framed by line");
}

/// Returns whether a key is repeated at the top level, or in the error object.
fn repeats(data: &[u8]) -> bool {
    serde_json::from_slice::<Keys>(data).is_ok_and(|keys| {
        let mut known = keys.0;
        let count = known.len();
        known.sort();
        known.dedup();
        known.len() < count
    })
}

struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Keys;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, _)) = map.next_entry::<String, IgnoredAny>()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}
