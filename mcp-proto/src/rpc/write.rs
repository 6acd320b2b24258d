//! Messages to bytes. Each message is written once into one buffer, without a newline.

use super::value::Write;
use super::{ErrorObject, Id, Message, Object, Payload, RawJson};
use alloc::vec::Vec;
use bytes::Bytes;

const ID: &[u8] = b",\"id\":";
const METHOD: &[u8] = b",\"method\":";
const PARAMS: &[u8] = b",\"params\":";
const RESULT: &[u8] = b",\"result\":";
const ERROR: &[u8] = b",\"error\":";

/// Writes a request. Omits absent `params`.
pub fn request(id: &Id, method: &str, params: Option<&Object>) -> Bytes {
    let mut out = open(ID.len() + id.json_len() + method_len(method, params));
    push(&mut out, ID, id);
    close_with_method(out, method, params)
}

/// Writes a request whose params have one more member, `_meta`, at their end.
pub(crate) fn request_with_meta(id: &Id, method: &str, params: &Object, meta: &Object) -> Bytes {
    const META: &[u8] = b"\"_meta\":";
    let meta_len = META.len() + meta.json_len() + usize::from(!params.is_empty());
    let mut out = open(ID.len() + id.json_len() + method_len(method, Some(params)) + meta_len);
    push(&mut out, ID, id);
    push(&mut out, METHOD, method);
    push(&mut out, PARAMS, params);
    out.pop();
    if !params.is_empty() {
        out.push(b',');
    }
    push(&mut out, META, meta);
    out.extend_from_slice(b"}}");
    out.into()
}

/// Writes a notification. Omits absent `params`.
pub fn notification(method: &str, params: Option<&Object>) -> Bytes {
    close_with_method(open(method_len(method, params)), method, params)
}

/// Writes a response with a result.
pub fn result_response(id: &Id, result: &Object) -> Bytes {
    let mut out = open(ID.len() + id.json_len() + RESULT.len() + result.json_len());
    push(&mut out, ID, id);
    push(&mut out, RESULT, result);
    out.push(b'}');
    out.into()
}

/// Writes a response with an error. It has no id if the id of the request could not be parsed.
pub fn error_response(id: Option<&Id>, error: &ErrorObject) -> Bytes {
    let fields = error.write();
    let mut out = open(id.map_or(0, |id| ID.len() + id.json_len()) + ERROR.len() + fields.json_len());
    if let Some(id) = id {
        push(&mut out, ID, id);
    }
    push(&mut out, ERROR, &fields);
    out.push(b'}');
    out.into()
}

/// Writes any message. Raw JSON in it is written unchanged.
pub fn write_message(message: &Message) -> Bytes {
    let (mut out, payload) = envelope(message);
    if let Some(payload) = payload {
        out.reserve_exact(payload.as_bytes().len() + 1);
        out.extend_from_slice(payload.as_bytes());
        out.push(b'}');
    }
    out.into()
}

/// Returns the length of the output of [`write_message`], without writing it.
pub fn message_size(message: &Message) -> usize {
    let (out, payload) = envelope(message);
    out.len() + payload.map_or(0, |payload| payload.as_bytes().len() + 1)
}

/// Writes an array of serialized messages.
pub fn write_batch(elements: &[Bytes]) -> Bytes {
    let mut out = Vec::with_capacity(elements.iter().map(|element| element.len() + 1).sum::<usize>() + 1);
    for (n, element) in elements.iter().enumerate() {
        out.push(if n == 0 { b'[' } else { b',' });
        out.extend_from_slice(element);
    }
    out.push(b']');
    out.into()
}

/// Returns a message up to its last member, and the value of that member; or the whole message.
fn envelope(message: &Message) -> (Vec<u8>, Option<&RawJson>) {
    let (id, method, params) = match message {
        Message::Request(request) => (Some(&request.id), &request.method, request.params.as_ref()),
        Message::Notification(notification) => (None, &notification.method, notification.params.as_ref()),
        Message::Response(response) => match &response.payload {
            Payload::Error(error) => return (error_response(Some(&response.id), error).into(), None),
            Payload::Result(result) => {
                let mut out = open(0);
                push(&mut out, ID, &response.id);
                out.extend_from_slice(RESULT);
                return (out, Some(result));
            }
        },
        Message::Error(error) => return (error_response(None, error).into(), None),
    };
    let mut out = open(0);
    if let Some(id) = id {
        push(&mut out, ID, id);
    }
    push(&mut out, METHOD, &**method);
    out.extend_from_slice(if params.is_some() { PARAMS } else { b"}" });
    (out, params)
}

/// Begins a message with room for this number of bytes and its last bracket. A buffer without
/// further room becomes [`Bytes`] as it is.
fn open(len: usize) -> Vec<u8> {
    const OPEN: &[u8] = b"{\"jsonrpc\":\"2.0\"";
    let mut out = Vec::with_capacity(OPEN.len() + len + 1);
    out.extend_from_slice(OPEN);
    out
}

fn push(out: &mut Vec<u8>, key: &[u8], value: &(impl Write + ?Sized)) {
    out.extend_from_slice(key);
    value.write_json(out);
}

fn method_len(method: &str, params: Option<&Object>) -> usize {
    METHOD.len() + method.json_len() + params.map_or(0, |params| PARAMS.len() + params.json_len())
}

fn close_with_method(mut out: Vec<u8>, method: &str, params: Option<&Object>) -> Bytes {
    push(&mut out, METHOD, method);
    if let Some(params) = params {
        push(&mut out, PARAMS, params);
    }
    out.push(b'}');
    out.into()
}
