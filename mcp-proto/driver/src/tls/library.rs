//! Sessions of rustls over slices and vectors, and their configurations.

use super::failure::failure;
use crate::sync::{Mutex, lock};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use mcp_proto::exchange::{TlsFailure, TlsFailureKind};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use rustls_platform_verifier::BuilderVerifierExt;
use std::io::{Read, Write};

/// The only application protocol of both sides (RFC 7301), also for WebSocket.
const HTTP_1_1: &[u8] = b"http/1.1";

/// One side of TLS on one connection.
pub(super) struct Session(Connection);

impl Session {
    fn new(mut session: Connection) -> Self {
        // The engine bounds what it writes, and every write is taken at once.
        session.set_buffer_limit(None);
        Self(session)
    }

    pub(super) fn is_client(&self) -> bool {
        matches!(self.0, Connection::Client(_))
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    /// Reads from the front of these bytes. Returns what they decrypt to, and whether the peer has
    /// sent `close_notify`.
    pub(super) fn read(&mut self, bytes: &mut &[u8]) -> Result<(Bytes, bool), TlsFailure> {
        // Each round takes what was decrypted, so there is room for more.
        let Ok(1..) = self.0.read_tls(bytes) else {
            return Err(TlsFailure::new(TlsFailureKind::Violation, "more than is accepted at once"));
        };
        let state = self.0.process_new_packets().map_err(|e| failure(&e))?;
        let mut plaintext = vec![0; state.plaintext_bytes_to_read()];
        let read = if plaintext.is_empty() { Ok(()) } else { self.0.reader().read_exact(&mut plaintext) };
        debug_assert!(read.is_ok(), "invariant: this many bytes were announced");
        Ok((plaintext.into(), state.peer_has_closed()))
    }

    /// Encrypts these bytes. The session must not have failed.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let taken = self.0.writer().write_all(bytes);
        debug_assert!(taken.is_ok(), "invariant: the buffer has no limit, and the session has not failed");
    }

    pub(super) fn close(&mut self) {
        self.0.send_close_notify();
    }

    /// Returns the bytes for the network.
    pub(super) fn poll_write(&mut self) -> Bytes {
        let mut bytes = Vec::new();
        while self.0.wants_write() && self.0.write_tls(&mut bytes).is_ok() {}
        bytes.into()
    }
}

/// A configuration, or why there is none.
type Built = Result<Arc<ClientConfig>, String>;

/// The configuration of a client.
#[derive(Clone, Default)]
pub(super) struct Connector {
    /// `None` until the default is built.
    config: Arc<Mutex<Option<Built>>>,
}

impl Connector {
    pub(super) fn new(config: Arc<ClientConfig>) -> Self {
        let mut config = Arc::unwrap_or_clone(config);
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        config.enable_early_data = false;
        Self { config: Arc::new(Mutex::new(Some(Ok(Arc::new(config))))) }
    }

    pub(super) fn prepare(&self) -> Result<(), TlsFailure> {
        self.config().map(drop)
    }

    pub(super) fn connect(&self, name: &str) -> Result<Session, TlsFailure> {
        let server = ServerName::try_from(name.to_owned())
            .map_err(|_| TlsFailure::new(TlsFailureKind::WrongName, "no certificate can be for this host"))?;
        let session = ClientConnection::new(self.config()?, server).map_err(|e| failure(&e))?;
        Ok(Session::new(session.into()))
    }

    fn config(&self) -> Result<Arc<ClientConfig>, TlsFailure> {
        let config = lock(&self.config).get_or_insert_with(|| platform().map(Arc::new)).clone();
        config.map_err(|why| TlsFailure::new(TlsFailureKind::Unavailable, why))
    }
}

/// Returns the default configuration of a client.
fn platform() -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(provider()?)
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("no version of TLS: {e}"))?
        .with_platform_verifier()
        .map_err(|e| format!("the trusted roots of the system: {e}"))?;
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    Ok(config)
}

/// Returns the cryptography: that of the process if the application has installed one, otherwise
/// that of the feature `tls` or `tls-graviola`.
pub(crate) fn provider() -> Result<Arc<CryptoProvider>, String> {
    if let Some(installed) = CryptoProvider::get_default() {
        return Ok(Arc::clone(installed));
    }
    #[cfg(feature = "tls")]
    let built_in = Some(rustls::crypto::ring::default_provider());
    #[cfg(all(feature = "tls-graviola", not(feature = "tls")))]
    let built_in = Some(rustls_graviola::default_provider());
    #[cfg(not(any(feature = "tls", feature = "tls-graviola")))]
    let built_in: Option<CryptoProvider> = None;
    built_in.map(Arc::new).ok_or_else(|| "no cryptography: install a `CryptoProvider`, or use feature `tls`".into())
}

/// The configuration of a server.
#[derive(Clone)]
pub(super) struct Acceptor {
    config: Arc<Mutex<Arc<ServerConfig>>>,
}

impl Acceptor {
    pub(super) fn new(config: Arc<ServerConfig>) -> Self {
        Self { config: Arc::new(Mutex::new(with_protocols(config))) }
    }

    pub(super) fn set(&self, config: Arc<ServerConfig>) {
        *lock(&self.config) = with_protocols(config);
    }

    pub(super) fn accept(&self) -> Result<Session, TlsFailure> {
        let config = Arc::clone(&lock(&self.config));
        let session = ServerConnection::new(config).map_err(|e| failure(&e))?;
        Ok(Session::new(session.into()))
    }
}

fn with_protocols(config: Arc<ServerConfig>) -> Arc<ServerConfig> {
    if !config.alpn_protocols.is_empty() {
        return config;
    }
    let mut config = Arc::unwrap_or_clone(config);
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    Arc::new(config)
}
