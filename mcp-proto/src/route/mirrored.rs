//! Checks the header fields that mirror arguments of a call: each must be present and valid, and
//! must match its argument (2026-07-28 transports, server behavior for custom headers). Other
//! fields of such names are ignored.

use crate::exchange::RequestHead;
use crate::model::headers::{PARAM, decode};
use crate::model::mirror::{Mirror, says};
use crate::rpc::{ErrorObject, Object, code};
use alloc::format;

/// Checks that the fields of a call match its arguments.
///
/// # Errors
/// `-32020`, with the first field that does not match. An argument that no field can represent
/// never matches.
pub(super) fn check(mirror: &Mirror, params: &Object, head: &RequestHead) -> Result<(), ErrorObject> {
    if mirror.is_empty() {
        return Ok(());
    }
    let arguments = params.optional_object("arguments").ok().flatten().unwrap_or_default();
    mirror.visit(&arguments, &mut |place| {
        let field = format!("{PARAM}{}", place.header);
        let mut fields = head.headers.all(&field).peekable();
        let fault = match place.value {
            None => fields.next().map(|_| "mirrors an argument that is not there"),
            Some(_) if fields.peek().is_none() => Some("is missing"),
            Some(value) => fields.find_map(|said| match decode(said) {
                Ok(said) => (!says(&said, value)).then_some("does not match the argument"),
                Err(why) => Some(why),
            }),
        };
        match fault {
            Some(why) => Err(ErrorObject::new(code::HEADER_MISMATCH, format!("the header {field} {why}"))),
            None => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests;
