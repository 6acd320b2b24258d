//! HTTP+SSE: messages that a client has posted at another server than that of its stream. They are
//! sent to that server whole: with the head of the request, and as whom its client was admitted.

use super::HttpState;
use super::exchange::StoreWait;
use crate::auth::{Access, Principal, Scopes};
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Headers, Inbound, RequestHead};
use crate::rpc::{DecodeError, Object, RawJson, error_response, parse_batch_or_message, write_batch, write_message};
use crate::server::Server;
use crate::server::rights::ClientRights;
use crate::server::state_keys::StateKeys;
use crate::server::store::{NodeItem, NodeTag, SessionDigest};
use crate::server::transport::PostOrigin;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use hmac_sha256::Hash;

/// A posted message on its way to another server.
struct ForwardedPost {
    head: RequestHead,
    rights: ClientRights,
    message: Bytes,
}

impl ForwardedPost {
    fn encode(&self) -> Bytes {
        let (names, values): (Vec<&str>, Vec<&str>) = self.head.headers.iter().unzip();
        let object = Object::new()
            .with("method", &*self.head.method)
            .with("target", &*self.head.target)
            .with("names", names)
            .with("values", values)
            .with_opt("principal", self.rights.principal.as_ref().map(Principal::as_str))
            .with_opt("access", self.rights.access.as_deref().map(write_access))
            .with_opt("message", RawJson::parse(self.message.to_vec()).ok());
        Bytes::copy_from_slice(object.to_json().as_bytes())
    }

    fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let json = RawJson::parse(bytes.to_vec()).map_err(|_| DecodeError::new("a posted message is not JSON"))?;
        let object = Object::read(&json)?;
        let mut headers = Headers::new();
        let (names, values): (Vec<String>, Vec<String>) = (object.required("names")?, object.required("values")?);
        for (name, value) in names.iter().zip(values) {
            headers.push(name, value);
        }
        let principal = object.optional::<String>("principal")?.map(|name| Principal(name.into()));
        let access = object.optional_object("access")?.map(|access| read_access(&access)).transpose()?;
        let message = object.get("message").ok_or_else(|| DecodeError::new("a post has no message"))?;
        Ok(Self {
            head: RequestHead {
                method: object.required::<String>("method")?.into(),
                target: object.required::<String>("target")?.into(),
                headers,
            },
            rights: ClientRights { principal, access: access.map(Arc::new) },
            message: Bytes::copy_from_slice(message.as_bytes()),
        })
    }
}

fn write_access(access: &Access) -> Object {
    let Access { principal, issuer, subject, client, scopes, expires, claims } = access;
    Object::new()
        .with("principal", principal.as_str())
        .with("issuer", issuer.as_str())
        .with_opt("subject", subject.as_deref())
        .with_opt("client", client.as_deref())
        .with("scopes", alloc::format!("{scopes}"))
        .with_opt("expires", expires.map(|at| at.as_secs()))
        .with("claims", claims)
}

fn read_access(object: &Object) -> Result<Access, DecodeError> {
    let mut access = Access::new(object.required::<String>("principal")?.as_str());
    access.issuer = object.required("issuer")?;
    access.subject = object.optional("subject")?;
    access.client = object.optional("client")?;
    access.scopes = Scopes::parse(&object.required_str("scopes")?);
    access.expires = object.optional::<u64>("expires")?.map(Duration::from_secs);
    access.claims = object.object("claims")?;
    Ok(access)
}

impl HttpState {
    /// Returns a new id of a stream of HTTP+SSE that servers share a store with: it names this
    /// server.
    pub(super) fn mint_shared_id(&mut self, keys: &StateKeys, tag: NodeTag) -> String {
        let [mut random @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _] = self.seed.next_bytes();
        let [_, a, b, c] = tag.0.to_be_bytes();
        random[..3].copy_from_slice(&[a, b, c]);
        keys.session_id(&random)
    }
}

impl Server {
    /// Passes a posted message on to the server of its stream. Returns it if there is none.
    pub(super) fn pass_on_post(
        &mut self,
        x: ExchangeId,
        head: &Arc<RequestHead>,
        id: &str,
        item: Inbound,
    ) -> Option<Inbound> {
        let Some(own) = self.wire.env.node.as_ref().map(|node| node.tag()) else { return Some(item) };
        let Some(random) = self.shared.keys.made_session(id) else { return Some(item) };
        let node = NodeTag(u32::from_be_bytes([0, random[0], random[1], random[2]]));
        if node == own {
            return Some(item);
        }
        let message = match &item {
            Inbound::Message(message) => write_message(message),
            Inbound::Batch(elements) => {
                let parts = elements.iter().map(|element| match element {
                    Ok(message) => write_message(message),
                    Err(defect) => error_response(defect.id.as_ref(), &defect.to_error()),
                });
                write_batch(&parts.collect::<Vec<_>>())
            }
            _ => return Some(item),
        };
        let stream = SessionDigest(Hash::hash(id.as_bytes()));
        let post = ForwardedPost { head: (**head).clone(), rights: self.wire.env.rights(x), message }.encode();
        self.wait_for_store(x, StoreWait::Post);
        self.forward(Some(x), self.wire.env.client_on(x, None), node, NodeItem::Posted { stream, post });
        None
    }

    /// A client of a stream here has posted a message at another server.
    pub(in crate::server) fn on_posted(&mut self, stream: SessionDigest, post: &Bytes) {
        let found = self.wire.http.sse.get(&stream.0).copied();
        let ForwardedPost { head, rights, message } = match ForwardedPost::decode(post) {
            Ok(posted) => posted,
            Err(why) => return self.wire.env.diagnose(DiagnosticKind::RecordCorrupt, &alloc::format!("{why}")),
        };
        let Some(x) = found.filter(|x| self.wire.env.rights(*x).principal == rights.principal) else {
            return self.wire.env.diagnose(DiagnosticKind::BadSession, "a message for a stream that is not open here");
        };
        let item = parse_batch_or_message(message, &self.shared.config.limits.frame).into();
        self.take_posted(x, PostOrigin { head: Arc::new(head), access: rights.access }, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn post_is_read_as_it_was_written() {
        let mut access = Access::new("ada");
        access.issuer = "https://issuer.example".into();
        access.subject = Some("a".into());
        access.scopes = Scopes::parse("read write");
        access.expires = Some(Duration::from_secs(1_800_000_000));
        access.claims = Object::new().with("sub", "a").with("roles", alloc::vec!["x"]);
        let headers = Headers::new().with("Content-Type", "application/json").with("X-A", "1").with("X-A", "2");
        let head = RequestHead { method: "POST".into(), target: "/messages?sessionId=x".into(), headers };
        let message = Bytes::from_static(br#"[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":1,"method":"y"}]"#);
        for access in [None, Some(Arc::new(access))] {
            let rights = ClientRights { principal: Some(Principal("ada".into())), access };
            let posted = ForwardedPost { head: head.clone(), rights: rights.clone(), message: message.clone() };
            let read = ForwardedPost::decode(&posted.encode()).unwrap();
            assert_eq!((read.head, read.message), (head.clone(), message.clone()));
            assert_eq!((read.rights.principal, read.rights.access), (rights.principal, rights.access));
        }
        assert!(ForwardedPost::decode(&Bytes::from_static(b"{}")).is_err());
    }
}
