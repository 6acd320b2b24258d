//! [`Dialect::ToolStream`]: calls of tools without negotiation, and the events of their responses.
//! A request that names a session or a revision is one of MCP, whatever the dialect is.

use super::{HttpState, ResponseStream};
use crate::error::{DiagnosticKind, Refusal};
use crate::exchange::{Dialect, Outbound, RequestHead};
use crate::model::content::Content;
use crate::model::headers::{SESSION, VERSION};
use crate::rpc::Object;
use crate::server::ServerConfig;
use crate::server::env::ServerEnv;
use crate::server::keys::StreamKey;
use crate::server::response::SerializedResponse;
use crate::server::session::SessionTerms;
use crate::version::Era;
use bytes::Bytes;

impl ServerConfig {
    /// Returns the rules of a request if it is one of the dialect.
    pub(super) fn dialect_rules(&self, head: &RequestHead, method: &str) -> Option<SessionTerms> {
        let is_bare = head.headers.get(SESSION).is_none() && head.headers.get(VERSION).is_none();
        let is_call = self.dialect == Dialect::ToolStream && is_bare && method == "tools/call";
        is_call.then(|| self.assumed()).flatten()
    }

    /// Returns the rules of a client that negotiates nothing. `None` if the server has no legacy
    /// revision.
    pub(super) fn assumed(&self) -> Option<SessionTerms> {
        self.versions.newest(Era::Legacy).map(SessionTerms::assumed)
    }
}

impl HttpState {
    /// Sends an element of the content of a result before the result.
    pub(in crate::server) fn send_part(
        &mut self,
        env: &mut ServerEnv,
        key: StreamKey,
        part: &Content,
    ) -> Result<(), Refusal> {
        let stream = self.stream(key).ok_or(Refusal::Gone)?;
        if !stream.sends_dialect() {
            return Err(Refusal::NotWanted);
        }
        let x = stream.exchange().ok_or(Refusal::Gone)?;
        let data = Object::new().with("content", [part.write()].as_slice()).to_json().to_bytes();
        if !env.has_room(x, data.len()) {
            return Err(Refusal::Full);
        }
        self.open_events(env, key, None);
        env.send_on_stream(x, event("result", data));
        Ok(())
    }

    /// Sends the response of a request in the dialect.
    pub(super) fn complete_tool_stream(&mut self, env: &mut ServerEnv, key: StreamKey, reply: SerializedResponse) {
        self.open_events(env, key, None);
        let name = if reply.code.is_none() { "complete" } else { "error" };
        match self.stream(key).and_then(ResponseStream::exchange) {
            Some(x) => env.send_on_stream(x, event(name, reply.message)),
            None => env.diagnose(DiagnosticKind::DroppedAnswer, "its client is gone, and cannot come back for it"),
        }
        self.finish_stream_if_quiet(env, key);
    }
}

/// Returns an event, which is not kept: without a session no client can resume the stream.
const fn event(name: &'static str, data: Bytes) -> Outbound {
    Outbound::Event { event: Some(name), id: None, retry: None, data }
}
