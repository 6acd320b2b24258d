//! [`WsDialect::BareTool`](crate::exchange::WsDialect): the request `tools/call` as an object of
//! its id, the name of the tool, and its arguments.

use crate::rpc::{self, Object, RawJson};
use bytes::Bytes;

/// The only request of the dialect.
const CALL: &str = "tools/call";

/// Returns the object for a message of a client.
///
/// # Errors
/// The message is not the request `tools/call`.
pub(super) fn from_message(message: Bytes) -> Result<Bytes, &'static str> {
    call_of(message).ok_or("a message other than the call of a tool")
}

fn call_of(message: Bytes) -> Option<Bytes> {
    let request = Object::read(&RawJson::parse(message).ok()?).ok()?;
    let id = request.id("id")?;
    let params = request.object("params").ok().filter(|_| request.str("method").as_deref() == Some(CALL))?;
    let call = Object::new().with("id", id).with("name", params.get("name")?);
    Some(call.with_opt("arguments", params.get("arguments")).to_json().to_bytes())
}

/// Returns the request of the object that a client sent. `None` if the text is anything else, such
/// as a message.
pub(super) fn to_request(text: &[u8]) -> Option<Bytes> {
    let call = Object::read(&RawJson::parse_indented(text).ok()?).ok()?;
    let id = call.id("id").filter(|_| !call.contains("jsonrpc") && !call.contains("method"))?;
    let params = Object::new().with("name", call.get("name")?).with_opt("arguments", call.get("arguments"));
    Some(rpc::request(&id, CALL, Some(&params)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        to_request(text.as_bytes()).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    // covers: S2-33, WS-B-001
    #[test]
    fn call_becomes_an_object_and_a_request_again() {
        let params = Object::new().with("name", "add").with("arguments", Object::new().with("a", 1_i64));
        let with_meta = params.clone().with("_meta", Object::new().with("x", 1_i64));
        let object = from_message(rpc::request(&7.into(), CALL, Some(&with_meta))).unwrap();
        assert_eq!(object, r#"{"id":7,"name":"add","arguments":{"a":1}}"#);
        assert_eq!(to_request(&object).unwrap(), rpc::request(&7.into(), CALL, Some(&params)));
        let bare = from_message(rpc::request(&"a".into(), CALL, Some(&Object::new().with("name", "now")))).unwrap();
        assert_eq!(bare, r#"{"id":"a","name":"now"}"#);
    }

    #[test]
    fn other_messages_of_a_client_are_refused() {
        let others = [
            rpc::request(&1.into(), "tools/list", None),
            rpc::request(&1.into(), CALL, None),
            rpc::notification("notifications/cancelled", None),
            rpc::result_response(&1.into(), &Object::new()),
        ];
        for message in others {
            assert!(from_message(message.clone()).is_err(), "{message:?}");
        }
    }

    #[test]
    fn text_that_is_no_call_stays_as_it_is() {
        assert_eq!(
            read("{\n \"id\": 1,\r\n \"name\": \"now\"\n}").as_deref(),
            Some(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"now"}}"#)
        );
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"name":"now"}"#,
            r#"{"id":1,"name":"now","method":"ping"}"#,
            r#"{"id":null,"name":"now"}"#,
            r#"{"name":"now"}"#,
            r#"{"id":1}"#,
            r#"[{"id":1,"name":"now"}]"#,
            "{",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
