//! Without the feature `rustls` there is no session: the type has no value.

use bytes::Bytes;
use mcp_proto::exchange::{TlsFailure, TlsFailureKind};

pub(super) enum Session {}

impl Session {
    pub(super) fn is_client(&self) -> bool {
        match *self {}
    }

    pub(super) fn is_handshaking(&self) -> bool {
        match *self {}
    }

    pub(super) fn read(&mut self, _bytes: &mut &[u8]) -> Result<(Bytes, bool), TlsFailure> {
        match *self {}
    }

    pub(super) fn write(&mut self, _bytes: &[u8]) {
        match *self {}
    }

    pub(super) fn close(&mut self) {
        match *self {}
    }

    pub(super) fn poll_write(&mut self) -> Bytes {
        match *self {}
    }
}

#[derive(Clone, Default)]
pub(super) struct Connector;

impl Connector {
    pub(super) fn prepare(&self) -> Result<(), TlsFailure> {
        self.connect("").map(drop)
    }

    pub(super) fn connect(&self, _name: &str) -> Result<Session, TlsFailure> {
        Err(TlsFailure::new(TlsFailureKind::Unavailable, "this build lacks the feature `tls`"))
    }
}

#[derive(Clone)]
pub(super) enum Acceptor {}

impl Acceptor {
    pub(super) fn accept(&self) -> Result<Session, TlsFailure> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_connection_begins_tls() {
        let why = Connector.prepare().expect_err("there is no TLS");
        assert_eq!(why.kind, TlsFailureKind::Unavailable);
    }
}
