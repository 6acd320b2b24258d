//! The HTTP request of an exchange: what is kept of it while it may be repeated, and its header
//! fields, which are written once for each attempt.

use crate::client::headers;
use crate::exchange::Headers;
use crate::model::headers::{CURSOR, METHOD, NAME, SESSION, VERSION, encode, name_of};
use crate::rpc::{Object, RawJson};
use crate::version::{Era, ProtocolVersion};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// The repeatable part of an HTTP request: everything that depends on neither session nor
/// credentials.
#[derive(Clone, Debug)]
pub(super) struct HttpRequest {
    pub(super) method: &'static str,
    /// The revision that its header fields name.
    version: Option<ProtocolVersion>,
    /// The header fields that mirror arguments of a tool.
    mirrored: Vec<(String, String)>,
    /// The event after which a stream resumes.
    cursor: Option<String>,
    pub(super) body: Bytes,
    pub(super) repeatable: bool,
}

/// What the header fields of an HTTP request repeat of the message in its body.
#[derive(Clone, Copy)]
pub(super) struct MessageSummary<'a> {
    pub(super) method: &'a str,
    pub(super) params: Option<&'a Object>,
}

impl MessageSummary<'_> {
    /// Without a message, or with a response.
    pub(super) const NOTHING: Self = Self { method: "", params: None };
}

/// The fields that depend on more than the message.
pub(super) struct CommonFields<'a> {
    /// The value of `Host`.
    pub(super) authority: &'a str,
    /// Those of the application.
    pub(super) own: &'a Headers,
    /// They replace those of the application.
    pub(super) credentials: &'a Headers,
    pub(super) session: Option<&'a str>,
}

impl HttpRequest {
    /// Returns a POST of a message.
    pub(super) fn post(version: Option<ProtocolVersion>, body: Bytes, repeatable: bool) -> Self {
        Self { method: "POST", version, mirrored: Vec::new(), cursor: None, body, repeatable }
    }

    /// Returns a GET of an event stream, from the event after `cursor` on.
    pub(super) fn get(version: Option<ProtocolVersion>, cursor: Option<&str>) -> Self {
        let cursor = cursor.map(ToOwned::to_owned);
        Self { method: "GET", version, mirrored: Vec::new(), cursor, body: Bytes::new(), repeatable: true }
    }

    /// Returns a DELETE of a session.
    pub(super) fn delete(version: ProtocolVersion) -> Self {
        Self { method: "DELETE", ..Self::get(Some(version), None) }
    }

    /// Returns the same request with these header fields, which mirror arguments of a tool.
    pub(super) fn mirroring(self, mirrored: Vec<(String, String)>) -> Self {
        Self { mirrored, ..self }
    }

    /// Leaves out the header fields that mirror arguments.
    pub(super) fn mirror_nothing(&mut self) {
        self.mirrored.clear();
    }

    /// Returns whether the request continues a stream.
    pub(super) const fn resumes(&self) -> bool {
        self.cursor.is_some()
    }

    /// Returns the header fields of the first attempt.
    pub(super) fn headers(&self, common: &CommonFields<'_>, described: MessageSummary<'_>) -> Headers {
        // Room for what most requests have. A token may be longer than all of that.
        let others = common.own.heap_size() + common.credentials.heap_size();
        let mut headers = Headers::with_room(8, 192 + common.authority.len() + others).with("Host", common.authority);
        for (name, value) in headers::own(common.own).filter(|(name, _)| common.credentials.get(name).is_none()) {
            headers.push(name, value);
        }
        common.credentials.iter().for_each(|(name, value)| headers.push(name, value));
        if let Some(version) = self.version {
            describe(&mut headers, version, described);
        }
        self.mirrored.iter().for_each(|(name, value)| headers.push(name, value));
        match self.method {
            // Both media types, whatever the message is.
            "POST" => {
                headers.push("Content-Type", "application/json");
                headers.push("Accept", "application/json, text/event-stream");
            }
            "GET" => headers.push("Accept", "text/event-stream"),
            _ => {}
        }
        if let Some(cursor) = &self.cursor {
            headers.push(CURSOR, cursor);
        }
        if let Some(session) = common.session {
            headers.push(SESSION, session);
        }
        headers
    }

    /// Returns the header fields of a further attempt. They repeat what the body says, which is
    /// read again: few requests are repeated.
    pub(super) fn headers_again(&self, common: &CommonFields<'_>) -> Headers {
        if self.body.is_empty() {
            return self.headers(common, MessageSummary::NOTHING);
        }
        let message = self.message();
        let method = message.str("method").unwrap_or_default();
        let params = message.object("params").ok();
        self.headers(common, MessageSummary { method: &method, params: params.as_ref() })
    }

    /// Returns what the request asks for: its method, that of the message, and the name that the
    /// message is for.
    pub(super) fn operation(&self) -> String {
        let message = self.message();
        let method = message.str("method").unwrap_or_default();
        let params = message.object("params").unwrap_or_default();
        let name = name_of(&method, &params).unwrap_or_default();
        format!("{} {method} {name}", self.method)
    }

    /// Returns the message in the body, or an empty object without one.
    fn message(&self) -> Object {
        Object::read(&RawJson::trusted(self.body.clone())).unwrap_or_default()
    }
}

/// Adds the header fields that describe the message. `Mcp-Method` and `Mcp-Name` exist from
/// 2026-07-28 on.
fn describe(headers: &mut Headers, version: ProtocolVersion, described: MessageSummary<'_>) {
    headers.push(VERSION, version.as_str());
    if version.era() == Era::Modern {
        headers.push(METHOD, encode(described.method));
        if let Some(name) = described.params.and_then(|params| name_of(described.method, params)) {
            headers.push(NAME, encode(&name));
        }
    }
}
