//! The headers that mirror parts of a request (2026-07-28 transports, server validation): each must
//! be present, be legible, and match the request. A [`Router`](crate::Router) checks those that
//! mirror arguments of a tool, since it knows the tools.

use crate::error::DiagnosticKind;
use crate::exchange::RequestHead;
use crate::model::headers::{NAME, decode, encode, name_key, name_of, plain};
use crate::rpc::{Object, code};
use crate::server::response::ErrorReply;
use crate::version::Era;
use alloc::format;
use alloc::string::String;

pub(super) use crate::model::headers::{METHOD, VERSION};

/// Returns whether the head names a modern revision.
pub(super) fn names_modern(head: &RequestHead) -> bool {
    head.headers.get(VERSION).map(str::trim).and_then(Era::of_name) == Some(Era::Modern)
}

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
        // The router reports a body without the value. A header that has a value for it is a fault
        // of its own.
        None if name_key(method).is_some() && head.headers.get(NAME).is_some() => Err(wrong(NAME, DIFFERS)),
        None => Ok(()),
    }
}

fn check(head: &RequestHead, header: &'static str, body: &str) -> Result<(), ErrorReply> {
    let why = match faults(head, header, body).try_fold(0, |count, fault| fault.map_or(Ok(count + 1), Err)) {
        Ok(0) => "is missing",
        Ok(_) => return Ok(()),
        Err(why) => why,
    };
    Err(wrong(header, why))
}

/// Returns whether any field of this name is malformed, or does not match the body. An absent
/// header always matches.
pub(super) fn differs(head: &RequestHead, header: &'static str, body: &str) -> bool {
    faults(head, header, body).any(|fault| fault.is_some())
}

const DIFFERS: &str = "does not say what the body says";

/// Returns the fault of each field of this name, if it has one.
fn faults<'a>(
    head: &'a RequestHead,
    header: &'static str,
    body: &'a str,
) -> impl Iterator<Item = Option<&'static str>> + 'a {
    head.headers.all(header).map(move |value| {
        let same = match header {
            NAME => decode(value).map(|said| said == body),
            // Only the form in which a client sends the method is valid: an intermediary that reads
            // this header must not see another method.
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
