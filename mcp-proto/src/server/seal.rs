//! The sealed `requestState` of 2026-07-28 (multi round-trip requests): the state of a handler
//! between two rounds goes through the client, which can read it and must not be able to change it.
//! HMAC-SHA-256 over everything that it depends on.

use crate::input::{Inputs, Principal};
use crate::rpc::{DecodeError, ErrorObject, Object, RawJson, canonical};
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac_sha256::HMAC;

/// The version of the sealed text. Another format gets another number.
const FORM: u8 = 4;
const HEAD: usize = 1 + 8;
const TAG: usize = 32;

/// The content of a state.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Memory {
    /// The nonce of the round. No other sealed state has the same.
    pub(super) nonce: String,
    /// The key of the request in its first round.
    pub(super) origin: u64,
    /// Number of rounds in which the request has asked.
    pub(super) rounds: u32,
    /// The names of the input requests of the last round.
    pub(super) asked: Vec<String>,
    /// The input responses of the rounds before it.
    pub(super) inputs: Inputs,
    /// The state of the handler.
    pub(super) state: Option<RawJson>,
}

/// The binding of a sealed state: the key, the principal, and the request.
pub(super) struct StateBinding<'a> {
    pub(super) key: &'a [u8; 32],
    /// The name of the server.
    pub(super) server: &'a str,
    pub(super) principal: Option<&'a Principal>,
    pub(super) method: &'a str,
    pub(super) params: &'a Object,
}

/// Seals `memory` until `expiry` (Unix seconds).
pub(super) fn seal(binding: &StateBinding<'_>, expiry: u64, memory: &Memory) -> String {
    let body = memory.write();
    let mut out = Vec::with_capacity(HEAD + TAG + body.as_bytes().len());
    out.push(FORM);
    out.extend_from_slice(&expiry.to_be_bytes());
    let tag = mac(binding, &out, body.as_bytes()).finalize();
    out.extend_from_slice(&tag);
    out.extend_from_slice(body.as_bytes());
    URL_SAFE_NO_PAD.encode(out)
}

/// Opens a sealed state. The error names the mismatch, for the log and not for the client.
pub(super) fn open(binding: &StateBinding<'_>, now: u64, sealed: &str) -> Result<Memory, &'static str> {
    let bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| "not base64url")?;
    let (head, rest) = bytes.split_at_checked(HEAD).ok_or("too short")?;
    let (tag, body) = rest.split_at_checked(TAG).ok_or("too short")?;
    let tag: &[u8; TAG] = tag.try_into().map_err(|_| "too short")?;
    let (form, expiry) = head.split_first().ok_or("too short")?;
    if *form != FORM {
        return Err("of another form");
    }
    // `finalize_verify` compares in constant time.
    if !mac(binding, head, body).finalize_verify(tag) {
        return Err("forged, or made for another request or by another server");
    }
    let expiry = expiry.iter().fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
    if expiry < now {
        return Err("expired");
    }
    let body = RawJson::parse(body.to_vec()).map_err(|_| "unreadable")?;
    Memory::read(&body).map_err(|_| "unreadable")
}

fn mac(binding: &StateBinding<'_>, head: &[u8], body: &[u8]) -> HMAC {
    let mut mac = HMAC::new(binding.key);
    mac.update(head);
    for text in [binding.server.as_bytes(), binding.method.as_bytes()] {
        mac.update((text.len() as u64).to_be_bytes());
        mac.update(text);
    }
    let principal = binding.principal.map(|principal| principal.0.as_bytes());
    // No principal is not the same as an empty one.
    mac.update(principal.map_or(0, |principal| principal.len() as u64 + 1).to_be_bytes());
    mac.update(principal.unwrap_or_default());
    // Some clients change the order of members between two attempts.
    let params = canonical(binding.params);
    mac.update((params.len() as u64).to_be_bytes());
    mac.update(params);
    mac.update(body);
    mac
}
impl Memory {
    fn write(&self) -> RawJson {
        let asked: Vec<RawJson> = self.asked.iter().map(|name| name.as_str().into()).collect();
        let (results, errors) = write_inputs(&self.inputs);
        Object::new()
            .with("nonce", self.nonce.as_str())
            .with("origin", self.origin)
            .with("rounds", u64::from(self.rounds))
            .with("asked", asked)
            .with("results", results)
            .with("errors", errors)
            .with_opt("state", self.state.clone())
            .to_json()
    }

    fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        let inputs = read_inputs(&object)?;
        Ok(Self {
            nonce: object.required("nonce")?,
            origin: object.required("origin")?,
            rounds: object.required("rounds")?,
            asked: object.required("asked")?,
            inputs,
            state: object.get("state"),
        })
    }
}

/// Returns the results and the errors among input responses.
pub(super) fn write_inputs(inputs: &Inputs) -> (Object, Object) {
    let results = inputs.iter().filter_map(|(name, input)| Some((name.clone(), input.as_ref().ok()?.clone())));
    let errors = inputs.iter().filter_map(|(name, input)| {
        let error = input.as_ref().err()?;
        Some((name.clone(), write_error(error).into()))
    });
    (results.collect(), errors.collect())
}

/// Reads the input responses in the members `results` and `errors`.
pub(super) fn read_inputs(object: &Object) -> Result<Inputs, DecodeError> {
    let mut inputs = Inputs::new();
    for (name, result) in object.object("results")?.iter() {
        inputs.insert(name.into_owned(), Ok(result));
    }
    for (name, error) in object.object("errors")?.iter() {
        inputs.insert(name.into_owned(), Err(read_error(&Object::read(&error)?)?));
    }
    Ok(inputs)
}

pub(super) fn write_error(error: &ErrorObject) -> Object {
    let object = Object::new().with("code", error.code).with("message", error.message.as_str());
    object.with_opt("data", error.data.clone())
}

pub(super) fn read_error(object: &Object) -> Result<ErrorObject, DecodeError> {
    Ok(ErrorObject { code: object.required("code")?, message: object.required("message")?, data: object.get("data") })
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: MRTR-S-010
    #[test]
    fn no_principal_and_an_empty_one_are_different_principals() {
        let (empty, named) = (Principal("".into()), Principal("a".into()));
        let principals = [None, Some(&empty), Some(&named)];
        let params = Object::new();
        let binding =
            |principal| StateBinding { key: &[7; 32], server: "s", principal, method: "tools/call", params: &params };
        for made_for in principals {
            let sealed = seal(&binding(made_for), 100, &Memory::default());
            for brought_by in principals {
                let opened = open(&binding(brought_by), 50, &sealed);
                assert_eq!(opened.is_ok(), made_for == brought_by, "{made_for:?}, {brought_by:?}");
            }
        }
    }
}
