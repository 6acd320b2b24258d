//! The end of what a token has opened and what outlives a request, when the token expires: the
//! stream of a GET, a subscription, a connection. Requests that run go on.

use super::Server;
use super::keys::ReplyTo;
use super::response::ErrorReply;
use super::transport::{Binding, Duplex};
use crate::auth::INVALID_TOKEN;
use crate::error::DiagnosticKind;
use crate::exchange::ExchangeId;
use crate::rpc::{Object, code};
use crate::short_set::ShortSet;

impl Server {
    /// The token that opened an exchange has expired.
    pub(super) fn on_expiry(&mut self, x: ExchangeId) {
        self.end_listens(x);
        match self.wire.env.exchanges.get(&x).map(|exchange| &exchange.binding) {
            Some(Binding::Duplex(_)) => {
                self.wire.env.expired.insert(x);
            }
            Some(Binding::Http(_)) => self.end_own_exchange(x),
            None => {}
        }
    }

    /// Closes the connections whose token has expired, once no request of them runs.
    pub(super) fn close_expired(&mut self) {
        while let Some(x) = self.wire.env.expired.iter().copied().find(|x| self.is_quiet(*x)) {
            self.wire.env.expired.remove(&x);
            // A WebSocket says why it ends: with the code 1008.
            match self.wire.env.duplex(x).map(Duplex::is_web_socket) {
                Some(true) => self.abort(x),
                Some(false) => self.end_duplex(x),
                None => {}
            }
        }
    }

    fn is_quiet(&self, x: ExchangeId) -> bool {
        self.wire.running(ReplyTo::Duplex(x)).is_none_or(ShortSet::is_empty)
    }
}

/// The error for a request on a connection whose token has expired.
pub(super) fn expired() -> ErrorReply {
    let text = "the credentials of the connection have expired";
    let mut rejection = ErrorReply::new(DiagnosticKind::ExpiredAccess, code::INTERNAL_ERROR, text);
    rejection.error.data = Some(Object::new().with("error", INVALID_TOKEN).into());
    rejection
}
