//! TLS of a transfer, and how many bytes of the engine the network has taken.

use crate::tls::{Tls, TlsOutput};
use alloc::collections::VecDeque;
use mcp_proto::wired::HandshakeReservation;

/// TLS on one connection.
#[derive(Debug)]
pub(super) struct SecuredTransfer {
    tls: Tls,
    /// The engine has asked for it, and hears of its beginning.
    pub(super) is_client: bool,
    /// The memory of a server for a handshake that is not complete.
    pub(super) handshake: Option<HandshakeReservation>,
    /// Bytes for the network that were queued, and that it has taken, in all.
    queued: u64,
    taken: u64,
    /// The writes of the engine that the network has not taken: how many bytes each has, and where
    /// it ends among those for the network.
    writes: VecDeque<(u64, usize)>,
}

impl SecuredTransfer {
    /// Maximum number of bytes of the engine in one write: those of a record (RFC 8446 section
    /// 5.1).
    pub(super) const PART: usize = 16 << 10;

    pub(super) fn new(tls: Tls, is_client: bool) -> Self {
        Self { tls, is_client, handshake: None, queued: 0, taken: 0, writes: VecDeque::new() }
    }

    /// Reports bytes of the network, or their end if there are none.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        if bytes.is_empty() { self.tls.read_end() } else { self.tls.read(bytes) }
    }

    /// Encrypts bytes of the engine. Take the outputs, then call [`wrote`](Self::wrote).
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.tls.write(bytes);
    }

    /// Notes that the outputs of a write of this length were taken.
    pub(super) fn wrote(&mut self, length: usize) {
        self.writes.push_back((self.queued, length));
    }

    pub(super) fn close(&mut self) {
        self.tls.close();
    }

    pub(super) fn poll_output(&mut self) -> Option<TlsOutput> {
        let output = self.tls.poll_output()?;
        if let TlsOutput::Write(bytes) = &output {
            self.queued += bytes.len() as u64;
        }
        Some(output)
    }

    /// Notes that the network has taken `n` bytes. Returns the number of bytes of the engine that
    /// it has taken with them.
    pub(super) fn taken(&mut self, n: usize) -> usize {
        self.taken += n as u64;
        let mut written = 0;
        while let Some((end, length)) = self.writes.front().copied()
            && end <= self.taken
        {
            self.writes.pop_front();
            written += length;
        }
        written
    }
}
