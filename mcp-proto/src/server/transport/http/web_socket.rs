//! WebSockets on the port of an HTTP server (RFC 6455): a request asks for one, and after the
//! response the exchange is a duplex connection. No other part of the engine knows the difference.

use crate::exchange::{Body, ExchangeId, Outbound, RequestHead, WsDialect};
use crate::frame::{HandshakeReply, Upgrade, WsSupport, check_request, refusal_fields};
use crate::server::Server;
use crate::server::transport::{Binding, Duplex};
use alloc::boxed::Box;
use alloc::sync::Arc;

impl Server {
    /// Notes that a request asks for a WebSocket. Returns false if it does so in an invalid way,
    /// and was refused. Without WebSockets, the field `Upgrade` is ignored (RFC 9110 section 7.8).
    pub(super) fn checks_upgrade(&mut self, x: ExchangeId, head: &RequestHead) -> bool {
        let Some(support) = WsSupport::get().filter(|_| self.shared.config.web_socket) else { return true };
        match check_request(head, false, support) {
            Upgrade::None => {}
            Upgrade::Accept(accepted) => {
                if let Some(http) = self.wire.env.http(x) {
                    http.upgrade = Some(Box::new(accepted));
                }
            }
            Upgrade::Refuse(defect) => {
                self.wire.env.refuse(x, defect.status, refusal_fields(defect.status), defect.why);
                return false;
            }
        }
        true
    }

    /// Completes the handshake of an admitted request.
    pub(super) fn open_web_socket(&mut self, x: ExchangeId, head: &Arc<RequestHead>, accepted: &HandshakeReply) {
        if !self.is_serving() {
            return self.wire.env.refuse_busy(x, None, "the server is shutting down");
        }
        let bare = accepted.protocol.is_none() && self.shared.config.ws_dialect == WsDialect::BareTool;
        let assumed = self.shared.config.assumed().filter(|_| bare);
        let dialect = if assumed.is_some() { WsDialect::BareTool } else { WsDialect::JsonRpc };
        self.wire.env.send(x, Outbound::Response { head: accepted.response(), body: Body::WebSocket(dialect) });
        let changes = self.listens.changes();
        let Some(exchange) = self.wire.env.exchanges.get_mut(&x) else { return };
        let rights = exchange.binding.rights().cloned().unwrap_or_default();
        let mut duplex = Duplex::over_web_socket(changes, rights, Arc::clone(head));
        let negotiates = assumed.is_none();
        assumed.into_iter().for_each(|negotiated| duplex.session.negotiate(negotiated));
        exchange.binding = Binding::Duplex(Box::new(duplex));
        self.wire.env.end_with_token(x);
        if negotiates {
            self.wire.env.await_handshake(x);
        }
    }
}
