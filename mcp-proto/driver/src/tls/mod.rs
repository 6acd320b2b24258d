//! TLS (RFC 8446) below a connection: bytes of the network on one side, bytes of the engine on the
//! other. No socket, and no lock of an engine. Without the feature `rustls` the code compiles, and
//! the compiler removes it: no session exists.

#[cfg(feature = "rustls")]
mod failure;
#[cfg_attr(feature = "rustls", path = "library.rs")]
#[cfg_attr(not(feature = "rustls"), path = "absent.rs")]
mod library;

#[cfg(all(test, any(feature = "tls", feature = "tls-graviola"), not(shuttle)))]
mod tests;

use alloc::collections::VecDeque;
#[cfg(feature = "rustls")]
use alloc::sync::Arc;
use bytes::Bytes;
use core::fmt;
#[cfg(all(feature = "auth", feature = "rustls"))]
pub(crate) use library::provider;
use library::{Acceptor, Connector, Session};
use mcp_proto::exchange::{TlsFailure, TlsFailureKind};

/// The response to a client that speaks plain HTTP to a server with TLS.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\
    Content-Length: 40\r\n\r\nThis port speaks HTTPS, not plain HTTP.\n";

/// An output of a [`Tls`], in order.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub enum TlsOutput {
    /// Write these bytes to the network.
    Write(Bytes),
    /// The handshake is complete. Emitted once.
    Secured,
    /// The peer sent these bytes. Never empty, and only after [`Secured`](Self::Secured).
    Read(Bytes),
    /// The peer sends nothing more (`close_notify`). Bytes that follow are ignored.
    ReadClosed,
    /// It has failed: write what is left, which includes the alert to the peer, then close. Nothing
    /// follows but [`Write`](Self::Write).
    Failed(TlsFailure),
}

/// TLS 1.3 or 1.2 on one connection. A driver owns it below the engine: bytes of the network go in
/// with [`read`](Self::read), bytes of the engine with [`write`](Self::write). After either, carry
/// out what [`poll_output`](Self::poll_output) returns. [`Transfer`](super::Transfer) does so by
/// itself.
pub struct Tls {
    session: Session,
    outputs: VecDeque<TlsOutput>,
    /// The peer has sent nothing yet.
    is_new: bool,
    is_secured: bool,
    /// Nothing more is read.
    is_ended: bool,
    has_failed: bool,
}

impl Tls {
    fn new(session: Session) -> Self {
        let outputs = VecDeque::new();
        let mut tls = Self { session, outputs, is_new: true, is_secured: false, is_ended: false, has_failed: false };
        tls.flush();
        tls
    }

    /// Reports bytes that were read from the network.
    pub fn read(&mut self, bytes: &[u8]) {
        if core::mem::take(&mut self.is_new) && self.refuses_plain(bytes) {
            return;
        }
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_ended {
            let read = self.session.read(&mut rest);
            // An alert, or the next message of the handshake.
            self.flush();
            let (plaintext, has_ended) = match read {
                Ok(read) => read,
                Err(why) => return self.fail(why),
            };
            if !self.is_secured && !self.session.is_handshaking() {
                self.is_secured = true;
                self.outputs.push_back(TlsOutput::Secured);
            }
            if !plaintext.is_empty() {
                self.outputs.push_back(TlsOutput::Read(plaintext));
            }
            if has_ended {
                self.is_ended = true;
                match self.is_secured {
                    true => self.outputs.push_back(TlsOutput::ReadClosed),
                    false => self.fail(cut_off()),
                }
            }
        }
    }

    /// Reports the end of the network's bytes.
    pub fn read_end(&mut self) {
        let why = if self.is_secured { TlsFailure::new(TlsFailureKind::Truncated, "") } else { cut_off() };
        if !self.is_ended {
            self.fail(why);
        }
    }

    /// Encrypts bytes of the engine. Drops them after a failure.
    pub fn write(&mut self, bytes: &[u8]) {
        if !self.has_failed {
            self.session.write(bytes);
            self.flush();
        }
    }

    /// Ends the direction of the engine with `close_notify`. Nothing is written after it. After a
    /// failure it does nothing: bytes may have been dropped, and the peer must not take the rest
    /// for everything.
    pub fn close(&mut self) {
        if !self.has_failed {
            self.session.close();
            self.flush();
        }
    }

    /// Returns the next output. `None` if there is none for now.
    pub fn poll_output(&mut self) -> Option<TlsOutput> {
        self.outputs.pop_front()
    }

    /// Detects a peer that does not begin with TLS, as far as that can be told from its first
    /// bytes. A client that speaks HTTP gets a response.
    fn refuses_plain(&mut self, bytes: &[u8]) -> bool {
        let is_client = self.session.is_client();
        // The first byte of a handshake is 22, and methods are letters.
        let is_plain = match is_client {
            true => bytes.starts_with(b"HTTP/"),
            false => bytes.first().is_some_and(u8::is_ascii_uppercase),
        };
        if is_plain {
            if !is_client {
                self.outputs.push_back(TlsOutput::Write(Bytes::from_static(PLAIN_HTTP)));
            }
            self.fail(TlsFailure::new(TlsFailureKind::NotTls, "it speaks plain HTTP"));
        }
        is_plain
    }

    /// Moves what the session has to write to the outputs.
    fn flush(&mut self) {
        let bytes = self.session.poll_write();
        if !bytes.is_empty() {
            self.outputs.push_back(TlsOutput::Write(bytes));
        }
    }

    fn fail(&mut self, why: TlsFailure) {
        (self.is_ended, self.has_failed) = (true, true);
        self.outputs.push_back(TlsOutput::Failed(why));
    }
}

/// The peer has left in the middle of the handshake.
fn cut_off() -> TlsFailure {
    TlsFailure::new(TlsFailureKind::Truncated, "it ended during the handshake")
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("is_secured", &self.is_secured).field("is_ended", &self.is_ended).finish()
    }
}

/// How a client begins TLS: its configuration, which all its connections share. Cheap to clone.
///
/// The default is the verifier of the platform with its trusted roots, and no client certificate.
/// It is built at the first connection. On Linux the roots are
/// those of OpenSSL, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`. On Windows, macOS and Android it
/// asks the system, which may block for as long as a request to an authority takes. Without the
/// feature `rustls` a client cannot begin TLS.
#[derive(Clone, Default)]
pub struct TlsConnector(Connector);

impl TlsConnector {
    /// Returns a connector with a configuration of the application: its roots, its certificate, its
    /// cryptography. The connector replaces the application protocols by `http/1.1`, and sends no
    /// early data, which an attacker could repeat (RFC 8470).
    #[cfg(feature = "rustls")]
    pub fn new(config: Arc<rustls::ClientConfig>) -> Self {
        Self(Connector::new(config))
    }

    /// Builds the default configuration, if that has not happened. It reads files, and may take
    /// some milliseconds: a driver calls it before it opens a connection, where that is harmless.
    ///
    /// # Errors
    /// [`TlsFailureKind::Unavailable`]: no connection can begin TLS.
    pub fn prepare(&self) -> Result<(), TlsFailure> {
        self.0.prepare()
    }

    /// Begins TLS as the client of this server: a host name, which its certificate must be for (RFC
    /// 9525), or an IP address without brackets.
    ///
    /// # Errors
    /// [`TlsFailureKind::WrongName`]: no certificate can be for such a name.
    /// [`TlsFailureKind::Unavailable`] as for [`prepare`](Self::prepare).
    pub fn connect(&self, name: &str) -> Result<Tls, TlsFailure> {
        self.0.connect(name).map(Tls::new)
    }
}

impl fmt::Debug for TlsConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsConnector(..)")
    }
}

/// How a server begins TLS. Cheap to clone: all clones share the configuration.
#[derive(Clone)]
pub struct TlsAcceptor(Acceptor);

impl TlsAcceptor {
    /// Returns an acceptor with this configuration: its certificates, its cryptography. Without
    /// application protocols, it offers `http/1.1`.
    #[cfg(feature = "rustls")]
    pub fn new(config: Arc<rustls::ServerConfig>) -> Self {
        Self(Acceptor::new(config))
    }

    /// Replaces the configuration, of all clones: connections from now on use it.
    #[cfg(feature = "rustls")]
    pub fn set(&self, config: Arc<rustls::ServerConfig>) {
        self.0.set(config);
    }

    /// Begins TLS on a connection that was accepted.
    ///
    /// # Errors
    /// An error of the configuration.
    pub fn accept(&self) -> Result<Tls, TlsFailure> {
        self.0.accept().map(Tls::new)
    }
}

#[cfg(feature = "rustls")]
impl From<Arc<rustls::ServerConfig>> for TlsAcceptor {
    fn from(config: Arc<rustls::ServerConfig>) -> Self {
        Self::new(config)
    }
}

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsAcceptor(..)")
    }
}
