//! 2026-07-28 over HTTP: one POST, one response. No sessions, no GET, no requests of the server,
//! and a client that leaves has cancelled. The metadata is checked first, then the header fields,
//! then the revision, then the method.

use super::headers::{METHOD, VERSION, check_headers, differs, mismatch, names_modern};
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Headers, RequestHead};
use crate::rpc::{ErrorObject, Notification, Request, code, result_response};
use crate::server::dispatch::{Modern, RequestContext, opens_session};
use crate::server::era::{RequestParts, Transport};
use crate::server::response::ErrorReply;
use crate::server::{Server, ServerConfig};
use alloc::format;
use alloc::string::{String, ToString};

impl Server {
    /// Handles a request that names its revision, whatever its method is.
    pub(super) fn modern_request(
        &mut self,
        x: ExchangeId,
        head: &RequestHead,
        request: Request,
        parts: RequestParts,
    ) -> Result<(), ErrorReply> {
        let named = parts.named_version()?;
        check_headers(head, &named, &request.method, &parts.params)?;
        let version = self.shared.config.modern_version(&named, Transport::Http)?;
        let id = request.id.clone();
        let context = RequestContext { exchange: x, session: None, in_batch: false };
        match self.dispatch_modern(context, version, Transport::Http, request, parts)? {
            Modern::Listen(_) | Modern::Ask(_) if !self.wire.env.takes_events(x) => {
                let text = "the answer is an event stream, which is not accepted";
                return Err(ErrorReply { status: Some(406), ..ErrorReply::params(text) });
            }
            Modern::Run(admitted) | Modern::Ask(admitted) => {
                let reply_to = self.wire.open_target(x, version);
                self.requests.run(&mut self.wire, reply_to, x, admitted, None);
            }
            Modern::Reply(result) => self.wire.env.answer_one(x, Headers::new(), result_response(&id, &result)),
            Modern::Listen(filter) => self.listen(x, id, filter, version)?,
        }
        Ok(())
    }

    /// Handles a notification. Leaving is how a client cancels, so `notifications/cancelled` names
    /// nothing.
    pub(super) fn modern_notification(&mut self, x: ExchangeId, head: &RequestHead, notification: Notification) {
        let Notification { method, params } = notification;
        if differs(head, METHOD, &method) {
            let text = format!("the header {METHOD} is not the method of the body");
            self.wire.env.diagnose(DiagnosticKind::HeaderMismatch, &text);
            let error = ErrorObject::new(code::HEADER_MISMATCH, text);
            return self.wire.env.respond_error(x, 400, Headers::new(), None, &error);
        }
        self.on_notification(x, None, Notification { method, params });
        self.wire.env.accept(x);
    }
}

impl ServerConfig {
    /// Returns the error for a request with half of the metadata of 2026-07-28, or that no
    /// supported revision can have sent.
    pub(super) fn incomplete(&self, head: &RequestHead, parts: &RequestParts, method: &str) -> ErrorReply {
        let header = head.headers.get(VERSION).map(str::trim);
        let requested = parts.params.optional::<String>("protocolVersion").ok().flatten();
        match (header, requested) {
            _ if parts.is_half_modern() || names_modern(head) => {
                parts.named_version().err().unwrap_or_else(|| ErrorReply::method(method))
            }
            (None, None) if !opens_session(method) => mismatch(format!("the header {VERSION} is missing")),
            (header, requested) => {
                let requested = requested.or_else(|| header.map(ToString::to_string)).unwrap_or_default();
                ErrorReply { status: Some(400), ..self.unsupported(&requested, Transport::Http) }
            }
        }
    }
}
