//! A WebSocket as the codec of a connection: each text message is a JSON-RPC message, or a batch.

use super::{CloseCode, CloseFrame, Role, WsCodec, WsItem, WsSupport};
use crate::exchange::{Closed, Inbound, Outbound};
use crate::limits::FrameLimits;
use crate::rpc;
use crate::short_queue::ShortQueue;
use alloc::sync::Arc;
use bytes::Bytes;

/// A text of this length or more may keep the buffer that it was read into.
const LARGE: usize = rpc::LARGE;

/// The codec of a connection after the handshake.
#[derive(Debug)]
pub(in crate::frame) struct WsChannel {
    codec: WsCodec,
    limits: Arc<FrameLimits>,
    /// The code of the `Close` that ends the connection in order.
    goodbye: CloseCode,
    /// How the peer ended the connection, once that was polled.
    end: Option<Closed>,
}

impl WsChannel {
    pub(in crate::frame) fn new(role: Role, limits: Arc<FrameLimits>, support: WsSupport) -> Self {
        let goodbye = match role {
            Role::Client(_) => CloseCode::Normal,
            Role::Server => CloseCode::GoingAway,
        };
        Self { codec: WsCodec::new(role, limits.max_line, support), limits, goodbye, end: None }
    }

    pub(in crate::frame) fn bytes(&mut self, bytes: Bytes) {
        self.codec.bytes(bytes);
    }

    pub(in crate::frame) fn eof(&mut self) {
        self.codec.eof();
    }

    /// Returns the next message. After the last one, [`take_end`](Self::take_end) tells how the
    /// peer ended the connection.
    pub(in crate::frame) fn poll_item(&mut self, out: &mut ShortQueue<Bytes>) -> Option<Inbound> {
        loop {
            self.end = Some(match self.codec.poll(out)? {
                WsItem::Text(text) if text.len() < LARGE => return Some(rpc::parse_small(&text, &self.limits).into()),
                WsItem::Text(text) => return Some(rpc::parse_batch_or_message(text, &self.limits).into()),
                WsItem::Ping(_) | WsItem::Pong(_) => continue,
                WsItem::Close(CloseFrame { code, reason }) => Closed::WebSocket { code, reason },
                WsItem::Fail { why, .. } => Closed::Broken(why.into()),
                WsItem::End => Closed::Eof,
            });
            return None;
        }
    }

    /// Returns how the peer ended the connection, once.
    pub(in crate::frame) fn take_end(&mut self) -> Option<Closed> {
        self.end.take()
    }

    pub(in crate::frame) fn encode(&mut self, part: Outbound, out: &mut ShortQueue<Bytes>) -> Result<(), &'static str> {
        match part {
            Outbound::Message(message) => self.codec.text(message, out),
            Outbound::End => {
                self.codec.close(self.goodbye, "", out);
                Ok(())
            }
            _ => Err("a part of http on a websocket"),
        }
    }

    /// Closes the connection with this code.
    pub(in crate::frame) fn close(&mut self, code: CloseCode, out: &mut ShortQueue<Bytes>) {
        self.codec.close(code, "", out);
    }

    /// Queues a ping, unless the connection is closed.
    pub(in crate::frame) fn ping(&mut self, out: &mut ShortQueue<Bytes>) {
        // It fails only after a close.
        let _ = self.codec.ping(Bytes::new(), out);
    }

    pub(in crate::frame) fn poll_pong(&mut self) -> Option<Bytes> {
        self.codec.poll_pong()
    }

    pub(in crate::frame) fn buffered(&self) -> usize {
        self.codec.buffered()
    }

    pub(in crate::frame) fn at_boundary(&self) -> bool {
        self.codec.at_boundary()
    }
}
