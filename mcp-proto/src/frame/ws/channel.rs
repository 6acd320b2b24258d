//! A WebSocket as the codec of a connection: each text message is a JSON-RPC message, or a batch.

use super::{CloseCode, CloseFrame, WsCodec, WsItem, WsSide, WsSupport, bare};
use crate::exchange::{Closed, Inbound, Outbound, WsDialect};
use crate::frame::work::Work;
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
    dialect: WsDialect,
    is_server: bool,
    limits: Arc<FrameLimits>,
    /// How the peer ended the connection, once that was polled.
    end: Option<Closed>,
}

impl WsChannel {
    pub(in crate::frame) fn new(
        role: WsSide,
        dialect: WsDialect,
        limits: Arc<FrameLimits>,
        support: WsSupport,
    ) -> Self {
        let is_server = matches!(role, WsSide::Server);
        Self { codec: WsCodec::new(role, limits.max_line, support), dialect, is_server, limits, end: None }
    }

    pub(in crate::frame) fn bytes(&mut self, bytes: Bytes) {
        self.codec.bytes(bytes);
    }

    pub(in crate::frame) fn eof(&mut self) {
        self.codec.eof();
    }

    /// Returns the next message. After the last one, [`take_end`](Self::take_end) tells how the
    /// peer ended the connection.
    pub(in crate::frame) fn poll_item(&mut self, out: &mut ShortQueue<Bytes>, work: &mut Work) -> Option<Inbound> {
        let text = self.poll_text(out, work)?;
        Some(if self.translates() {
            self.read_bare(text)
        } else if text.len() < LARGE {
            rpc::parse_small(&text, &self.limits).into()
        } else {
            rpc::parse_batch_or_message(text, &self.limits).into()
        })
    }

    /// Returns the next text message as it is. Otherwise as [`poll_item`](Self::poll_item).
    pub(in crate::frame) fn poll_text(&mut self, out: &mut ShortQueue<Bytes>, work: &mut Work) -> Option<Bytes> {
        loop {
            self.end = Some(match self.codec.poll_within(out, work)? {
                WsItem::Text(text) => return Some(text),
                WsItem::Ping(_) | WsItem::Pong(_) => continue,
                WsItem::Close(CloseFrame { code, reason }) => Closed::WebSocket { code, reason },
                WsItem::Fail { why, .. } => Closed::Broken(why.into()),
                WsItem::End => Closed::Eof,
            });
            return None;
        }
    }

    /// Returns whether the peer writes calls of tools as plain objects.
    fn translates(&self) -> bool {
        self.dialect == WsDialect::BareTool && self.is_server
    }

    /// Parses a text of the dialect.
    fn read_bare(&self, text: Bytes) -> Inbound {
        rpc::parse_batch_or_message(bare::to_request(&text).unwrap_or(text), &self.limits).into()
    }

    /// Returns how the peer ended the connection, once.
    pub(in crate::frame) fn take_end(&mut self) -> Option<Closed> {
        self.end.take()
    }

    pub(in crate::frame) fn encode(&mut self, part: Outbound, out: &mut ShortQueue<Bytes>) -> Result<(), &'static str> {
        match part {
            Outbound::Message(message) if self.dialect == WsDialect::BareTool && !self.is_server => {
                self.codec.text(bare::from_message(message)?, out)
            }
            Outbound::Message(message) => self.codec.text(message, out),
            Outbound::End => {
                let code = if self.is_server { CloseCode::GoingAway } else { CloseCode::Normal };
                self.codec.close(code, "", out);
                Ok(())
            }
            _ => Err("a part of http on a websocket"),
        }
    }

    /// Closes the connection with this code.
    pub(in crate::frame) fn close(&mut self, code: CloseCode, out: &mut ShortQueue<Bytes>) {
        self.codec.close(code, "", out);
    }

    /// Closes the connection with this code, and drops what the peer sends.
    pub(in crate::frame) fn give_up(&mut self, code: CloseCode, out: &mut ShortQueue<Bytes>) {
        self.codec.give_up(code, out);
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
