//! Messages to bytes. Each message is written once into one buffer, without a newline.

use super::scalar::write_string;
use super::value::Write;
use super::{ErrorObject, Id, Message, Object, Payload, RawJson};
use alloc::vec::Vec;
use bytes::Bytes;

/// Writes a request. Omits absent `params`.
pub fn request(id: &Id, method: &str, params: Option<&Object>) -> Bytes {
    let mut out = open(params.map_or(0, Object::text_len));
    out.extend_from_slice(b",\"id\":");
    id.write_json(&mut out);
    close_with_method(out, method, params)
}

/// Writes a notification. Omits absent `params`.
pub fn notification(method: &str, params: Option<&Object>) -> Bytes {
    close_with_method(open(params.map_or(0, Object::text_len)), method, params)
}

/// Writes a response with a result.
pub fn result_response(id: &Id, result: &Object) -> Bytes {
    let mut out = open(result.text_len());
    out.extend_from_slice(b",\"id\":");
    id.write_json(&mut out);
    out.extend_from_slice(b",\"result\":");
    result.write_to(&mut out);
    out.push(b'}');
    out.into()
}

/// Writes a response with an error. It has no id if the id of the request could not be parsed.
pub fn error_response(id: Option<&Id>, error: &ErrorObject) -> Bytes {
    let mut out = open(error.data.as_ref().map_or(0, |data| data.as_bytes().len()) + error.message.len());
    if let Some(id) = id {
        out.extend_from_slice(b",\"id\":");
        id.write_json(&mut out);
    }
    out.extend_from_slice(b",\"error\":");
    let fields = Object::new()
        .with("code", error.code)
        .with("message", error.message.as_str())
        .with_opt("data", error.data.clone());
    fields.write_to(&mut out);
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
                out.extend_from_slice(b",\"id\":");
                response.id.write_json(&mut out);
                out.extend_from_slice(b",\"result\":");
                return (out, Some(result));
            }
        },
        Message::Error(error) => return (error_response(None, error).into(), None),
    };
    let mut out = open(0);
    if let Some(id) = id {
        out.extend_from_slice(b",\"id\":");
        id.write_json(&mut out);
    }
    out.extend_from_slice(b",\"method\":");
    write_string(&mut out, method);
    out.extend_from_slice(if params.is_some() { b",\"params\":" } else { b"}" });
    (out, params)
}

fn open(size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(size + 96);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    out
}

fn close_with_method(mut out: Vec<u8>, method: &str, params: Option<&Object>) -> Bytes {
    out.extend_from_slice(b",\"method\":");
    write_string(&mut out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        params.write_to(&mut out);
    }
    out.push(b'}');
    out.into()
}
