//! CORS (WHATWG Fetch): lets pages of other origins use the server, where the configuration allows
//! it. No response allows credentials: a page with a token writes `Authorization` itself.

use crate::auth::ProofUse;
use crate::exchange::{Headers, Outbound, RequestHead, is_token, members, trim_blanks};
use crate::model::headers::PARAM;
use crate::server::ServerConfig;
use alloc::string::String;

/// The header fields that a page may read, in addition to those that are always allowed.
const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate, Retry-After";

const METHODS: &str = "POST, GET, DELETE";

/// The same, for a server whose tokens may be bound to a key (RFC 9449).
const EXPOSED_WITH_NONCES: &str = "Mcp-Session-Id, WWW-Authenticate, Retry-After, DPoP-Nonce";

/// The header fields that a page may send. Fields that mirror arguments are allowed by name, as a
/// page asks for them.
const FIELDS: &str =
    "Content-Type, Accept, Authorization, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name";

/// Seconds for which a browser caches a preflight: two hours, the maximum of the common browsers.
const MAX_AGE: &str = "7200";

impl ServerConfig {
    /// Returns the response fields of a preflight. Returns `None` if the request is not a
    /// preflight, its origin or its host is not served, or other origins are not served at all. The
    /// engine then handles it like any other request.
    pub(super) fn preflight(&self, head: &RequestHead) -> Option<Headers> {
        let asks = head.method == "OPTIONS" && head.headers.get("Access-Control-Request-Method").is_some();
        if !asks || origin(head).is_none() || !self.serves_pages(head) {
            return None;
        }
        let mut allowed = String::from(FIELDS);
        if self.takes_proofs() {
            allowed.push_str(", DPoP");
        }
        let asked = head.headers.all("Access-Control-Request-Headers").flat_map(members);
        for name in asked.filter(|name| is_token(name)) {
            if name.get(..PARAM.len()).is_some_and(|start| start.eq_ignore_ascii_case(PARAM)) {
                allowed.push_str(", ");
                allowed.push_str(name);
            }
        }
        let headers = Headers::new()
            .with("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
            .with("Access-Control-Allow-Methods", METHODS)
            .with("Access-Control-Allow-Headers", allowed)
            .with("Access-Control-Max-Age", MAX_AGE);
        Some(headers)
    }

    /// Adds the CORS fields of a response to this request, if its origin is served.
    pub(in crate::server) fn for_page(&self, request: &RequestHead, mut outgoing: Outbound) -> Outbound {
        if self.cors
            && let Outbound::Response { head, .. } = &mut outgoing
            && self.serves_pages(request)
            && head.headers.get("Access-Control-Allow-Origin").is_none()
        {
            // Without an origin too: a cached response must not be given to a page.
            head.headers.push("Vary", "Origin");
            if let Some(origin) = origin(request) {
                head.headers.push("Access-Control-Allow-Origin", origin);
                let exposed = if self.takes_proofs() { EXPOSED_WITH_NONCES } else { EXPOSED };
                head.headers.push("Access-Control-Expose-Headers", exposed);
            }
        }
        outgoing
    }

    /// Returns whether a request may have a proof that its client has the key of its token.
    fn takes_proofs(&self) -> bool {
        self.resource.as_ref().is_some_and(|resource| resource.dpop != ProofUse::Off)
    }

    fn serves_pages(&self, head: &RequestHead) -> bool {
        self.cors && self.stranger(head).is_none()
    }
}

/// Returns the one origin of a request.
fn origin(head: &RequestHead) -> Option<&str> {
    let mut origins = head.headers.all("Origin").map(trim_blanks);
    let origin = origins.next().filter(|_| origins.next().is_none())?;
    (!origin.is_empty() && origin.bytes().all(|byte| byte.is_ascii_graphic())).then_some(origin)
}
