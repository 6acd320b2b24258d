//! Dialects whose servers only answer calls of tools. The link answers everything else itself, so
//! that the rest of the client sees a server of 2026-07-28 whose only capability is tools.

use super::OutgoingRequest;
use crate::client::ids::Purpose;
use crate::client::tools::CALL;
use crate::rpc::{ErrorObject, Message, Object, Payload, Response, code};
use alloc::format;

/// Returns the response to a request that the dialect does not have. `None` for a call of a tool.
pub(super) fn local_response(request: &OutgoingRequest<'_>) -> Option<Message> {
    let payload = match (request.purpose, request.method) {
        (Purpose::Discover, _) => {
            let discovered = Object::new()
                .with("supportedVersions", [request.version.as_str()].as_slice())
                .with("capabilities", Object::new().with("tools", Object::new()));
            Payload::Result(discovered.to_json())
        }
        (_, CALL) => return None,
        (_, method) => {
            let text = format!("the dialect has no {method}, only {}", CALL);
            Payload::Error(ErrorObject::new(code::METHOD_NOT_FOUND, text))
        }
    };
    Some(Message::Response(Response::new(request.id.clone(), payload)))
}
