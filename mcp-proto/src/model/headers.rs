//! The header fields of the protocol. In 2026-07-28 some repeat parts of a request (transports,
//! request headers): this module has their names, the parts that each request repeats, and the
//! encoding of their values. The legacy fields are the session and the last event id. This module
//! knows no tool and no connection.

use crate::exchange::{Headers, trim_blanks};
use crate::model::lifecycle::meta;
use crate::rpc::{self, Message, Notification, Object, Request};
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

/// The revision.
pub(crate) const VERSION: &str = "MCP-Protocol-Version";

/// The method.
pub(crate) const METHOD: &str = "Mcp-Method";

/// The field for [`name_of`].
pub(crate) const NAME: &str = "Mcp-Name";

/// The prefix of the fields that mirror arguments of a tool.
pub(crate) const PARAM: &str = "Mcp-Param-";

/// Returns whether header fields of a message repeat something of its body that another body has
/// changed. `true` if a body cannot be read.
pub(crate) fn repeat_a_change(headers: &Headers, before: &Bytes, after: &Bytes) -> bool {
    let message = |body: &Bytes| match rpc::parse(body.clone(), u32::MAX) {
        Ok(
            Message::Request(Request { method, params, .. }) | Message::Notification(Notification { method, params }),
        ) => Some((method, Object::read_opt(params.as_ref()).ok()?)),
        _ => None,
    };
    // Only those of 2026-07-28 repeat anything of the body.
    if headers.get(METHOD).is_none() {
        return false;
    }
    let (Some((method, before)), Some((_, after))) = (message(before), message(after)) else { return true };
    let version = |params: &Object| {
        let meta = params.optional_object(meta::META).ok().flatten();
        meta.and_then(|meta| meta.get(meta::PROTOCOL_VERSION))
    };
    let mirrors = headers.iter().any(|(name, _)| name.starts_with(PARAM));
    name_of(&method, &before) != name_of(&method, &after)
        || version(&before) != version(&after)
        || (mirrors && before.get("arguments") != after.get("arguments"))
}

/// The session, from 2025-03-26 to 2025-11-25.
pub(crate) const SESSION: &str = "Mcp-Session-Id";

/// The event after which a stream resumes (WHATWG HTML section 9.2.4).
pub(crate) const CURSOR: &str = "Last-Event-ID";

const BEFORE: &str = "=?base64?";
const AFTER: &str = "?=";

/// Returns the key of the param that `Mcp-Name` repeats. `None` if the method has none.
pub(crate) fn name_key(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// Returns the value of `Mcp-Name` for this request. `None` if the method has none, or the params
/// lack it.
pub(crate) fn name_of<'a>(method: &str, params: &'a Object) -> Option<Cow<'a, str>> {
    params.str(name_key(method)?)
}

/// Returns whether this is a valid session id: visible ASCII (2025-11-25 transports, session
/// management) of a plausible length.
pub(crate) fn is_session_id(text: &str) -> bool {
    const MAX: usize = 4 << 10;
    !text.is_empty() && text.len() <= MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Encodes a value for a header field: unchanged if it is visible ASCII without blanks at its ends,
/// otherwise in Base64 with markers. A plain value that looks like that form is encoded too.
pub(crate) fn encode(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|b| (0x20..0x7f).contains(&b)) && value.trim() == value;
    let looks_encoded = value.starts_with(BEFORE) && value.ends_with(AFTER);
    match plain && !looks_encoded {
        true => Cow::Borrowed(value),
        false => Cow::Owned(format!("{BEFORE}{}{AFTER}", STANDARD.encode(value))),
    }
}

/// Returns the value of a field without the white space around it.
///
/// # Errors
/// The reason why the value is invalid. The text continues the name of the field.
pub(crate) fn plain(value: &str) -> Result<&str, &'static str> {
    let value = trim_blanks(value);
    let legal = value.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\t');
    if legal { Ok(value) } else { Err("contains a character that a header field must not contain") }
}

/// Decodes a value that [`encode`] may have written. Strict: Base64 in the standard alphabet,
/// padded, with zero spare bits, of UTF-8.
///
/// # Errors
/// As in [`plain`].
pub(crate) fn decode(value: &str) -> Result<Cow<'_, str>, &'static str> {
    let value = plain(value)?;
    match value.strip_prefix(BEFORE).and_then(|rest| rest.strip_suffix(AFTER)) {
        None => Ok(Cow::Borrowed(value)),
        Some(coded) => {
            let bytes = STANDARD.decode(coded).map_err(|_| "is not the Base64 that it says it is")?;
            String::from_utf8(bytes).map(Cow::Owned).map_err(|_| "is Base64 of what is not UTF-8")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // covers: HDR-C-006, HDR-C-035, HDR-C-036, HDR-B-037, HDR-S-013, HDR-S-038, B-215, B-216
    #[test]
    fn values_follow_the_published_vectors() {
        for (value, encoded) in [
            ("us-west1", "us-west1"),
            ("two words", "two words"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            (" leading", "=?base64?IGxlYWRpbmc=?="),
            ("trailing ", "=?base64?dHJhaWxpbmcg?="),
            ("\ttab", "=?base64?CXRhYg==?="),
            ("a\tb", "=?base64?YQli?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
            ("=?BASE64?literal?=", "=?BASE64?literal?="),
            ("=?base64?open", "=?base64?open"),
            ("", ""),
        ] {
            assert_eq!(encode(value), encoded, "{value:?}");
            assert_eq!(decode(encoded).as_deref(), Ok(value), "{value:?}");
        }
    }

    // covers: HDR-S-012, HDR-S-013, HDR-S-033, HDR-B-037, B-170, B-216
    #[test]
    fn values_are_decoded_strictly() {
        for (field, value) in [
            ("\t  plain \t", "plain"),
            ("in  the\tmiddle", "in  the\tmiddle"),
            ("=?base64?SGVsbG8=?=", "Hello"),
            (" =?base64?SGVsbG8=?= ", "Hello"),
            ("=?base64??=", ""),
            // A value without a marker, or with one in another case, is plain.
            ("SGVsbG8=", "SGVsbG8="),
            ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
            ("SGVsbG8=?=", "SGVsbG8=?="),
            ("=?Base64?SGVsbG8=?=", "=?Base64?SGVsbG8=?="),
            ("=?base64?=", "=?base64?="),
        ] {
            assert_eq!(decode(field).as_deref(), Ok(value), "{field:?}");
        }
        for field in [
            "=?base64?SGVsbG8?=",
            "=?base64?SGVsbG8==?=",
            "=?base64?SGVs!!!bG8=?=",
            "=?base64?SGVs bG8=?=",
            "=?base64?SGVsbG9=?=",
            "=?base64?PT9_?=",
            "=?base64?/w==?=",
            "=?base64?7aCA?=",
            "a\u{1}b",
            "a\rb",
            "a\u{7f}",
            "caf\u{e9}",
            "\u{a0}x",
        ] {
            assert!(decode(field).is_err(), "{field:?}");
        }
        assert_eq!(plain("=?base64?SGVsbG8=?="), Ok("=?base64?SGVsbG8=?="));
        assert!(plain("a\u{1}b").is_err());
    }

    // covers: HDR-C-005, HDR-B-008, TASKX-C-034
    #[test]
    fn each_method_with_a_name_sends_it() {
        let params = Object::new().with("name", "n").with("uri", "u:v").with("taskId", "t");
        let cases = [
            ("tools/call", Some("n")),
            ("prompts/get", Some("n")),
            ("resources/read", Some("u:v")),
            ("tasks/get", Some("t")),
            ("tasks/update", Some("t")),
            ("tasks/cancel", Some("t")),
            ("tools/list", None),
            ("tasks/list", None),
            ("completion/complete", None),
            ("Tools/call", None),
        ];
        for (method, name) in cases {
            assert_eq!(name_of(method, &params).as_deref(), name, "{method}");
        }
        for odd in [Object::new(), Object::new().with("name", 1i64), Object::new().with("name", crate::RawJson::null())]
        {
            assert_eq!(name_of("tools/call", &odd), None);
        }
    }

    proptest! {
        // covers: B-215, B-216, HDR-C-035, HDR-S-013
        #[test]
        fn every_value_round_trips_as_a_valid_field(value in any::<String>()) {
            let header = encode(&value);
            prop_assert!(header.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            prop_assert_eq!(header.trim(), &*header);
            prop_assert_eq!(decode(&header), Ok(value.as_str().into()));
        }
    }
}
