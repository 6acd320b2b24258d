//! HTTP+SSE of 2024-11-05 for clients that have no other transport (2024-11-05 transports, HTTP
//! with SSE). A client opens one event stream, and posts its messages to the URL in the `endpoint`
//! event. Together they are a duplex connection of the older revisions, whose messages to the
//! client are events. It ends with its stream.

use super::legacy::{missing_session, unknown_session};
use super::{Accepts, HttpState, is_json};
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Headers, Inbound, Outbound, RequestHead};
use crate::rpc::{ErrorObject, code};
use crate::server::client::Bound;
use crate::server::env::ServerEnv;
use crate::server::transport::{Binding, Duplex, PostOrigin};
use crate::server::{Server, ServerConfig};
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use hmac_sha256::Hash;

/// The parameter of the query that names the session.
const SESSION: &str = "sessionId";

/// What is served at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PathUse {
    /// Streamable HTTP.
    Mcp,
    /// HTTP+SSE: the stream.
    SseStream,
    /// HTTP+SSE: the messages of clients.
    SseMessages,
}

impl ServerConfig {
    /// Returns what is served at a path. `None`: nothing.
    pub(super) fn place(&self, path: &str) -> Option<PathUse> {
        match &self.sse {
            Some(sse) if sse.stream == path => Some(PathUse::SseStream),
            Some(sse) if sse.messages == path => Some(PathUse::SseMessages),
            Some(_) | None => self.path.as_deref().is_none_or(|served| served == path).then_some(PathUse::Mcp),
        }
    }
}

impl HttpState {
    /// Forgets the id of a connection that has ended, and gives back its place among the streams.
    pub(in crate::server) fn forget_sse(&mut self, env: &mut ServerEnv, duplex: &Duplex) {
        if let Some(sse) = &duplex.sse {
            self.sse.remove(&sse.digest);
            env.shares.give_back(sse.client, Bound::Streams, 1);
        }
    }
}

impl Server {
    /// Opens the stream of a client, with its `endpoint` event.
    pub(super) fn open_sse(&mut self, x: ExchangeId, head: &RequestHead, accepts: Accepts) {
        if head.method != "GET" {
            // This is what a client that tries Streamable HTTP first waits for.
            let allow = Headers::new().with("Allow", "GET");
            return self.wire.env.refuse(x, 405, allow, "the stream is opened with GET");
        }
        if !accepts.events {
            let why = "the answer is an event stream, which is not accepted";
            return self.wire.env.refuse(x, 406, Headers::new(), why);
        }
        if !self.is_serving() || !self.shared.config.serves_legacy() {
            return self.wire.env.refuse_busy(x, None, "the server serves no older revision now");
        }
        let client = self.wire.env.client_on(x, None);
        if let Err(full) = self.wire.env.check_share(&client, Bound::Streams, 1) {
            return self.wire.env.reject(x, None, 503, &full.reject("there are too many streams"));
        }
        let node = self.wire.env.node.as_ref().filter(|_| self.shared.config.shares_sessions());
        let tag = node.map(|node| node.tag());
        let id = match tag {
            Some(tag) => self.wire.http.mint_shared_id(&self.shared.keys, tag),
            None => self.wire.http.mint_id(),
        };
        let digest = Hash::hash(id.as_bytes());
        let changes = self.listens.changes();
        let Some(paths) = &self.shared.config.sse else { return };
        let endpoint = format!("{}?{SESSION}={id}", paths.reference.as_ref().unwrap_or(&paths.messages));
        self.wire.env.begin_events(x, Headers::new());
        let Some(exchange) = self.wire.env.exchanges.get_mut(&x) else { return };
        let rights = exchange.binding.rights().cloned().unwrap_or_default();
        let client = self.wire.env.shares.take(&client, Bound::Streams, 1);
        exchange.binding = Binding::Duplex(Box::new(Duplex::over_sse(changes, rights, digest, client)));
        self.wire.http.sse.insert(digest, x);
        self.wire
            .env
            .send(x, Outbound::Event { event: Some("endpoint"), id: None, retry: None, data: endpoint.into() });
        self.wire.env.keep_alive_in(x, self.wire.env.config.keep_alive);
        self.wire.env.end_with_token(x);
        self.wire.env.await_handshake(x);
    }

    /// Handles a message that a client has posted. Its response is an event of the stream, and the
    /// POST only says whether the message was accepted.
    pub(super) fn sse_message(&mut self, x: ExchangeId, head: &Arc<RequestHead>, item: Inbound) {
        if head.method != "POST" {
            let allow = Headers::new().with("Allow", "POST");
            return self.wire.env.refuse(x, 405, allow, "messages are posted here");
        }
        if !is_json(head) {
            return self.wire.env.refuse(x, 415, Headers::new(), "the content type must be application/json");
        }
        let Some(id) = session_of(head) else {
            return self.wire.env.reject(x, None, 400, &missing_session());
        };
        let Some(item) = self.pass_on_post(x, head, id, item) else { return };
        let stream = self.wire.http.sse.get(&Hash::hash(id.as_bytes())).copied();
        let rights = self.wire.env.rights(x);
        let is_of_client = |stream: &ExchangeId| self.wire.env.rights(*stream).principal == rights.principal;
        let Some(stream) = stream.filter(is_of_client) else {
            return self.wire.env.reject(x, None, 404, &unknown_session());
        };
        // A client whose responses pile up unread must not cause more of them.
        if !self.wire.env.has_room(stream, 0) {
            return self.wire.env.refuse_busy(x, None, "the client does not read its stream");
        }
        match &item {
            Inbound::Message(_) | Inbound::Batch(_) => self.wire.env.accept(x),
            // The stream answers it.
            Inbound::Invalid(defect) if defect.has_method && defect.id.is_some() => self.wire.env.accept(x),
            Inbound::Invalid(defect) => self.wire.env.respond_error(x, 400, Headers::new(), None, &defect.to_error()),
            Inbound::End => {
                let error = ErrorObject::new(code::PARSE_ERROR, "the body is empty");
                self.wire.env.diagnose(DiagnosticKind::BadMessage, "the body is empty");
                return self.wire.env.respond_error(x, 400, Headers::new(), None, &error);
            }
            _ => return self.wire.env.refuse(x, 415, Headers::new(), "the content type must be application/json"),
        }
        self.take_posted(stream, PostOrigin { head: Arc::clone(head), access: rights.access }, item);
    }

    /// Handles a posted message on its stream.
    pub(super) fn take_posted(&mut self, stream: ExchangeId, post: PostOrigin, item: Inbound) {
        self.set_posted(stream, Some(post));
        self.duplex_item(stream, item);
        self.set_posted(stream, None);
    }

    /// Sets the POST that is handled now: requests see its header fields, and have its access.
    fn set_posted(&mut self, stream: ExchangeId, post: Option<PostOrigin>) {
        if let Some(sse) = self.wire.env.duplex_mut(stream).and_then(|duplex| duplex.sse.as_mut()) {
            sse.posted = post;
        }
    }
}

/// Returns the session that a POST names.
fn session_of(head: &RequestHead) -> Option<&str> {
    let (_, query) = head.target.split_once('?')?;
    query.split('&').find_map(|parameter| parameter.strip_prefix(SESSION)?.strip_prefix('='))
}
