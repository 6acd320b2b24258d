//! The client's side of the opening handshake: an HTTP exchange, after which the connection is a
//! WebSocket. Messages wait until then.

use super::channel::WsChannel;
use super::{Masks, WsSide, WsSupport, handshake};
use crate::exchange::{Inbound, Outbound, RequestHead, WsDialect};
use crate::frame::http1::ClientCodec;
use crate::limits::FrameLimits;
use crate::seed::Seed;
use crate::short_queue::ShortQueue;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

/// The codec of a connection of a client before the handshake is complete.
#[derive(Debug)]
pub(in crate::frame) struct WsHandshakeCodec {
    pub(in crate::frame) http: ClientCodec,
    dialect: WsDialect,
    limits: Arc<FrameLimits>,
    seed: Seed,
    key: String,
    /// Messages for the connection once it is open.
    early: Vec<Bytes>,
    support: WsSupport,
}

impl WsHandshakeCodec {
    pub(in crate::frame) fn new(
        http: ClientCodec,
        dialect: WsDialect,
        limits: Arc<FrameLimits>,
        seed: [u8; 32],
        support: WsSupport,
    ) -> Self {
        let mut seed = Seed::new(seed);
        let random = seed.next_bytes();
        let mut key = [0; 16];
        key.copy_from_slice(&random[..16]);
        Self { http, dialect, limits, seed, key: handshake::key(key), early: Vec::new(), support }
    }

    pub(in crate::frame) fn encode(&mut self, part: Outbound, out: &mut ShortQueue<Bytes>) -> Result<(), &'static str> {
        match part {
            Outbound::Request { head, body } => {
                let headers = handshake::request_fields(head.headers, &self.key, self.dialect);
                self.http.encode(Outbound::Request { head: RequestHead { headers, ..head }, body }, out)
            }
            Outbound::Message(message) => {
                self.early.push(message);
                Ok(())
            }
            Outbound::End => Ok(()),
            _ => Err("a part of http on a websocket"),
        }
    }

    /// Checks the response of the server. Returns the open connection with its messages, or why it
    /// is none.
    pub(in crate::frame) fn open(
        &mut self,
        item: &Inbound,
        out: &mut ShortQueue<Bytes>,
    ) -> Option<Result<WsChannel, &'static str>> {
        let Inbound::Response(head) = item else { return None };
        if head.status != 101 {
            return None;
        }
        if let Err(why) = handshake::check_response(head, &self.key, self.dialect, self.support) {
            return Some(Err(why));
        }
        let masks = Masks::new(self.seed.clone());
        let mut channel = WsChannel::new(WsSide::Client(masks), self.dialect, Arc::clone(&self.limits), self.support);
        for bytes in self.http.reader.take_rest() {
            channel.bytes(bytes);
        }
        if self.http.reader.is_eof() {
            channel.eof();
        }
        for message in self.early.drain(..) {
            if let Err(why) = channel.encode(Outbound::Message(message), out) {
                return Some(Err(why));
            }
        }
        Some(Ok(channel))
    }
}
