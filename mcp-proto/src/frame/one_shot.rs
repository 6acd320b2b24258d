//! The message of one whole HTTP response, for a program that makes a single request without an
//! engine. No limit of time, no session, no resumption.

use crate::limits::FrameLimits;
use crate::rpc::{InvalidMessage, Message, parse};
use bytes::Bytes;

/// The byte order mark that an event stream may begin with.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Returns the message in the body of a response: that of the first `data:` line of an event
/// stream, or the whole body as JSON. The `Content-Type` does not matter.
///
/// # Errors
/// [`InvalidMessage`] if that is not one JSON-RPC message, or nests deeper than
/// [`FrameLimits::max_depth`].
///
/// ```
/// let body = b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";
/// let message = mcp_proto::frame::one_shot(body.as_slice().into(), &Default::default())?;
/// assert!(matches!(message, mcp_proto::rpc::Message::Response(_)));
/// # Ok::<_, mcp_proto::rpc::InvalidMessage>(())
/// ```
pub fn one_shot(body: Bytes, limits: &FrameLimits) -> Result<Message, InvalidMessage> {
    let text = body.strip_prefix(MARK).unwrap_or(&body);
    let mut lines = text.split(|byte| matches!(byte, b'\r' | b'\n'));
    // A line of JSON cannot begin like this: its strings begin with a quotation mark.
    let data = lines.find_map(|line| line.strip_prefix(b"data:")).unwrap_or(text);
    parse(body.slice_ref(data), limits.max_depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Id;
    use alloc::format;

    const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"text":"data: x"}}"#;

    // covers: S0-59
    #[test]
    fn message_is_that_of_the_first_data_line_or_of_the_body() {
        let mark = "\u{feff}";
        for body in [
            RESULT.into(),
            format!(" {RESULT}\r\n"),
            RESULT.replace("\"id\"", "\r\n\"id\""),
            format!("data: {RESULT}\n\n"),
            format!("{mark}data:{RESULT}\r\rdata: {{}}\r\r"),
            format!(": hello\r\nid: 7\r\nevent: message\r\ndata: {RESULT}"),
        ] {
            let message = one_shot(body.clone().into(), &FrameLimits::default());
            assert!(
                matches!(&message, Ok(Message::Response(response)) if response.id == Id::from(1)),
                "{body}: {message:?}"
            );
        }
        for body in ["", "data:", "data: {}\n", "<html>", "event: message\n\n", "[]"] {
            assert!(one_shot(body.into(), &FrameLimits::default()).is_err(), "{body}");
        }
    }
}
