//! The metadata document of the server as a resource (RFC 9728), for everyone: it names no secret,
//! and a client needs it before it has credentials.

use crate::exchange::{ExchangeId, Headers, RequestHead};
use crate::server::env::ServerEnv;
use bytes::Bytes;

const DOCUMENT: &[(&str, &str)] =
    &[("Content-Type", "application/json"), ("Cache-Control", "max-age=3600"), ("Access-Control-Allow-Origin", "*")];

/// The fields of a preflight (WHATWG Fetch section 4.8). Clients send the revision along.
const PREFLIGHT: &[(&str, &str)] = &[
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Allow-Methods", "GET, HEAD"),
    ("Access-Control-Allow-Headers", "*"),
    ("Access-Control-Max-Age", "7200"),
];

impl ServerEnv {
    /// Answers a request at the path of the document.
    pub(super) fn answer_document(&mut self, x: ExchangeId, head: &RequestHead) {
        let Some(document) = &self.document else { return };
        let body = document.body.clone();
        match &*head.method {
            "GET" | "HEAD" => self.answer_with(x, 200, Headers::new().with_fixed(DOCUMENT), body),
            "OPTIONS" if head.headers.get("Access-Control-Request-Method").is_some() => {
                self.answer_with(x, 204, Headers::new().with_fixed(PREFLIGHT), Bytes::new());
            }
            _ => self.refuse(x, 405, Headers::new().with("Allow", "GET, HEAD"), "the document is read with GET"),
        }
    }
}
