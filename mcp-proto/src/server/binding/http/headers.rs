//! The headers that repeat what a request says (2026-07-28 transports, server validation): each
//! must be there, be legible, and say the same. Those that mirror arguments of a tool are checked
//! where the tools are known, by a [`Router`](crate::Router).

use crate::error::DiagnosticKind;
use crate::exchange::RequestHead;
use crate::model::headers::{NAME, decode, encode, name_key, name_of, plain};
use crate::rpc::{Object, code};
use crate::server::era::ErrorReply;
use alloc::format;
use alloc::string::String;

pub(super) use crate::model::headers::{METHOD, VERSION};

/// The standard headers of a request must be there and say what the body says.
pub(super) fn check_headers(
    head: &RequestHead,
    version: &str,
    method: &str,
    params: &Object,
) -> Result<(), ErrorReply> {
    check(head, VERSION, version)?;
    check(head, METHOD, method)?;
    match name_of(method, params) {
        Some(name) => check(head, NAME, &name),
        // A body that does not say it is wrong by itself, which the router says, unless a header
        // says it instead.
        None if name_key(method).is_some() && head.headers.get(NAME).is_some() => Err(wrong(NAME, DIFFERS)),
        None => Ok(()),
    }
}

fn check(head: &RequestHead, header: &'static str, body: &str) -> Result<(), ErrorReply> {
    let absent = head.headers.get(header).is_none().then_some("is missing");
    absent.or_else(|| fault(head, header, body)).map_or(Ok(()), |why| Err(wrong(header, why)))
}

/// Whether any field of this name is malformed, or says something else than the body. An absent
/// header says nothing.
pub(super) fn differs(head: &RequestHead, header: &'static str, body: &str) -> bool {
    fault(head, header, body).is_some()
}

const DIFFERS: &str = "does not say what the body says";

/// What is wrong with the fields of this name: each counts.
fn fault(head: &RequestHead, header: &'static str, body: &str) -> Option<&'static str> {
    head.headers.all(header).find_map(|value| {
        let same = match header {
            NAME => decode(value).map(|said| said == body),
            // In the one form in which it is sent: whoever looks at this header on the way must not
            // be told another method.
            METHOD => plain(value).map(|said| said == encode(body)),
            _ => plain(value).map(|said| said == body),
        };
        same.map_or_else(Some, |same| (!same).then_some(DIFFERS))
    })
}

fn wrong(header: &str, why: &str) -> ErrorReply {
    mismatch(format!("the header {header} {why}"))
}

pub(super) fn mismatch(text: String) -> ErrorReply {
    ErrorReply::new(DiagnosticKind::HeaderMismatch, code::HEADER_MISMATCH, text)
}
