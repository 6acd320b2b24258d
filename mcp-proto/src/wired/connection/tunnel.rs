//! A connection of a client to a forward proxy. Requests over `http` have the absolute form (RFC
//! 9112 section 3.2.2). Before TLS, and before a WebSocket, the proxy opens a tunnel (RFC 9110
//! section 9.3.6). Nothing that a proxy responds is a response of the server.

use super::securing::Securing;
use super::{Connection, ConnectionRole};
use crate::client::Proxy;
use crate::exchange::{
    Closed, Origin, Outbound, Peer, ProxyFailure, ProxyFailureKind, RequestHead, ResponseHead, Shutdown,
};
use crate::fetch::authority_with_port;
use crate::frame::ConnectCodec;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use bytes::Bytes;

/// The status with which a proxy demands credentials (RFC 9110 section 15.5.8).
const UNAUTHORIZED: u16 = 407;

/// What is between the connection of a client and the server.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// The forward proxy to which the connection leads.
    proxied: Option<ConnectionProxy>,
    /// The beginning of TLS. `None` without TLS, and once it is established.
    pub(super) securing: Option<Securing>,
}

/// The proxy of a connection.
#[derive(Debug)]
struct ConnectionProxy {
    proxy: Proxy,
    stage: ProxyStage,
}

#[derive(Debug)]
enum ProxyStage {
    /// The proxy forwards single requests.
    Forwards,
    /// The connection is not open, and will ask for a tunnel to this host and port.
    Waits(String),
    Asks(TunnelRequest),
    /// The tunnel is open.
    Open,
}

/// A request for a tunnel.
#[derive(Debug)]
struct TunnelRequest {
    codec: ConnectCodec,
    /// The request, until the driver takes it.
    request: Option<Bytes>,
    /// Bytes of it that were not reported as written.
    unwritten: usize,
    /// The proxy has opened the tunnel.
    is_granted: bool,
}

impl Connection {
    /// Leads the connection to this server through a proxy, whose address the driver opens. With
    /// TLS, and for a WebSocket, the connection asks the proxy for a tunnel once it is open, which
    /// counts toward [`open_timeout`](crate::limits::FrameLimits::open_timeout).
    #[must_use]
    pub fn with_proxy(mut self, proxy: &Proxy, server: &Origin) -> Self {
        let stage = match self.role {
            ConnectionRole::HttpClient if !server.tls => ProxyStage::Forwards,
            _ => ProxyStage::Waits(authority_with_port(&server.host, server.port)),
        };
        self.route.get_or_insert_default().proxied = Some(ConnectionProxy { proxy: proxy.clone(), stage });
        self
    }

    /// Returns whether the connection leads to a forward proxy.
    pub(super) fn is_proxied(&self) -> bool {
        self.proxied().is_some()
    }

    fn proxied(&self) -> Option<&ConnectionProxy> {
        self.route.as_ref()?.proxied.as_ref()
    }

    fn proxied_mut(&mut self) -> Option<&mut ConnectionProxy> {
        self.route.as_mut()?.proxied.as_mut()
    }

    /// The connection is open. Returns whether it asks for a tunnel first.
    pub(super) fn begin_tunnel(&mut self) -> bool {
        let limits = Arc::clone(&self.limits);
        let Some(ConnectionProxy { proxy, stage }) = self.proxied_mut() else { return false };
        match stage {
            ProxyStage::Forwards | ProxyStage::Open => return false,
            ProxyStage::Asks(_) => {}
            ProxyStage::Waits(server) => {
                let (codec, request) = ConnectCodec::new(server, proxy.authorization(), limits, proxy.support());
                let unwritten = request.len();
                *stage =
                    ProxyStage::Asks(TunnelRequest { codec, request: Some(request), unwritten, is_granted: false });
            }
        }
        true
    }

    /// Takes the request for a tunnel. Its bytes belong to no exchange.
    pub(super) fn take_tunnel_request(&mut self) -> Option<Bytes> {
        self.tunnel_request()?.request.take()
    }

    /// Returns whether the connection asks for a tunnel.
    pub(super) fn is_in_tunnel_request(&self) -> bool {
        matches!(self.proxied(), Some(ConnectionProxy { stage: ProxyStage::Asks(_), .. }))
    }

    fn tunnel_request(&mut self) -> Option<&mut TunnelRequest> {
        if self.ending == Some(Shutdown::Abort) {
            return None;
        }
        match self.proxied_mut() {
            Some(ConnectionProxy { stage: ProxyStage::Asks(tunnel), .. }) => Some(tunnel),
            _ => None,
        }
    }

    /// Reads the response to the request for a tunnel. The server sends nothing before the client
    /// does, so bytes behind the response are no part of the tunnel.
    pub(super) fn read_tunnel_response(&mut self, bytes: Bytes) {
        let Some(tunnel) = self.tunnel_request() else { return };
        tunnel.codec.bytes(bytes);
        if tunnel.is_granted {
            return self.tunnel_broke(LATE.into());
        }
        match tunnel.codec.poll_status() {
            Ok(None) => {}
            Ok(Some(200..300)) if tunnel.codec.has_more() => self.tunnel_broke(LATE.into()),
            Ok(Some(200..300)) => {
                tunnel.is_granted = true;
                self.use_tunnel();
            }
            Ok(Some(status)) => {
                let kind =
                    if status == UNAUTHORIZED { ProxyFailureKind::Unauthorized } else { ProxyFailureKind::Refused };
                self.tunnel_failed(kind, Some(status), String::new());
            }
            Err(why) => self.tunnel_broke(why),
        }
    }

    /// The driver has written `n` bytes. Returns how many of them are behind the request for a
    /// tunnel.
    pub(super) fn tunnel_request_written(&mut self, n: usize) -> usize {
        let Some(tunnel) = self.tunnel_request().filter(|tunnel| tunnel.request.is_none()) else { return n };
        let of_request = n.min(tunnel.unwritten);
        tunnel.unwritten -= of_request;
        self.traffic.bytes_out += of_request as u64;
        self.use_tunnel();
        n - of_request
    }

    /// Uses the tunnel once it is open and the request is written: from then on, written bytes are
    /// those of TLS, or those of the exchange.
    fn use_tunnel(&mut self) {
        if let Some(proxied) = self.proxied_mut()
            && let ProxyStage::Asks(TunnelRequest { unwritten: 0, is_granted: true, .. }) = proxied.stage
        {
            proxied.stage = ProxyStage::Open;
            self.connected(Peer::default());
        }
    }

    /// The proxy broke off, or broke a rule.
    pub(super) fn tunnel_broke(&mut self, why: String) {
        self.tunnel_failed(ProxyFailureKind::Broken, None, why);
    }

    fn tunnel_failed(&mut self, kind: ProxyFailureKind, status: Option<u16>, detail: String) {
        if let Some(exchange) = self.exchange
            && let Some(proxied) = self.proxied()
        {
            let why = Closed::Proxy(proxied.failure(kind, status, detail));
            self.fail(exchange, why);
        }
    }

    /// Returns how a connection to a proxy ended, if that is not the end of one to the server.
    pub(super) fn named_after_proxy(&self, why: Closed) -> Closed {
        let Some(proxied) = self.proxied() else { return why };
        let kind = match (&proxied.stage, &why) {
            (_, Closed::Proxy(_) | Closed::Tls(_)) | (ProxyStage::Open, _) => return why,
            (ProxyStage::Forwards, _) if self.open => return why,
            (ProxyStage::Forwards | ProxyStage::Waits(_), _) => ProxyFailureKind::Unreachable,
            (ProxyStage::Asks(_), _) => ProxyFailureKind::Broken,
        };
        Closed::Proxy(proxied.failure(kind, None, why.to_string()))
    }

    /// Returns a request as the proxy expects it, with its credentials. It is the only one of its
    /// connection: tinyproxy closes the connection after each response without saying so, which
    /// would lose the next call.
    pub(super) fn for_proxy(&self, outgoing: Outbound) -> Outbound {
        match (self.proxied(), outgoing) {
            (Some(ConnectionProxy { proxy, stage: ProxyStage::Forwards }), Outbound::Request { head, body }) => {
                let RequestHead { method, target, mut headers } = head;
                let target = format!("http://{}{target}", headers.get("host").unwrap_or_default()).into();
                headers.push("Connection", "close");
                if let Some(authorization) = proxy.authorization() {
                    headers.push("Proxy-Authorization", authorization);
                }
                Outbound::Request { head: RequestHead { method, target, headers }, body }
            }
            (_, outgoing) => outgoing,
        }
    }

    /// Returns why a response is none of the server: the proxy demands credentials. The proxy of a
    /// proxy can demand them as well, so it is not known whether the server got the request.
    pub(super) fn refused_by_proxy(&self, head: &ResponseHead) -> Option<Closed> {
        let proxied = self.proxied().filter(|proxied| matches!(proxied.stage, ProxyStage::Forwards))?;
        let failure = || proxied.failure(ProxyFailureKind::Unauthorized, Some(head.status), String::new());
        (head.status == UNAUTHORIZED).then(|| Closed::Proxy(failure()))
    }
}

const LATE: &str = "it sent bytes after its response";

impl ConnectionProxy {
    fn failure(&self, kind: ProxyFailureKind, status: Option<u16>, detail: String) -> ProxyFailure {
        let detail = match (kind, self.proxy.has_credentials()) {
            (ProxyFailureKind::Unauthorized, true) => "it does not accept those of the configuration".into(),
            (ProxyFailureKind::Unauthorized, false) => "the configuration has none".into(),
            _ => detail,
        };
        ProxyFailure { status, ..ProxyFailure::new(kind, self.proxy.name(), detail) }
    }
}
