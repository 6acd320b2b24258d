//! The credentials of a request: the application that admits it sees them, and a handler does not,
//! so that it cannot pass them on (2025-06-18 authorization, token handling).

use crate::auth::{AccessDenial, DenialResponse};
use crate::exchange::ExchangeId;
use crate::server::env::ServerEnv;
use alloc::sync::Arc;

/// The fields that are credentials, or a part of them.
const CREDENTIALS: [&str; 4] = ["Authorization", "DPoP", "Proxy-Authorization", "Cookie"];

impl ServerEnv {
    /// Removes the credentials from the head of a request that was admitted, unless the application
    /// keeps them.
    pub(super) fn hide_credentials(&mut self, x: ExchangeId) {
        if self.config.resource.is_none() || self.config.keeps_credentials {
            return;
        }
        let Some(http) = self.http(x) else { return };
        if CREDENTIALS.iter().any(|name| http.head.headers.get(name).is_some()) {
            // In place, unless the application still has the head.
            Arc::make_mut(&mut http.head).headers.remove(&CREDENTIALS);
        }
    }

    /// Refuses a request for its credentials.
    pub(super) fn deny(&mut self, x: ExchangeId, denial: &AccessDenial) {
        let DenialResponse { status, headers, why } = self.denial(denial);
        self.refuse(x, status, headers, why);
    }

    /// Returns the response to a request that is refused for its credentials.
    pub(super) fn denial(&self, denial: &AccessDenial) -> DenialResponse {
        DenialResponse::new(denial, self.config.resource.as_deref(), self.document.as_ref())
    }
}
