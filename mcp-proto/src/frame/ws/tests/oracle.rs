//! Random frames, against somebody else's WebSocket.

use super::random::{Frames, frames, ours, wire};
use super::*;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;
use proptest::prelude::*;
use std::io::{self, Read, Write};
use tungstenite::protocol::{self, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket, error::ProtocolError};

/// A connection in memory: each read returns one piece, and then the connection ends.
#[derive(Default)]
struct Wire {
    pieces: VecDeque<Vec<u8>>,
    written: Vec<u8>,
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(mut piece) = self.pieces.pop_front() else { return Ok(0) };
        let rest = piece.split_off(piece.len().min(buffer.len()));
        buffer[..piece.len()].copy_from_slice(&piece);
        if !rest.is_empty() {
            self.pieces.push_front(rest);
        }
        Ok(piece.len())
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens their side of a connection, which is the same as ours.
fn open(reader: Reader, wire: Wire, max: usize) -> WebSocket<Wire> {
    let role = if reader == Reader::Client { protocol::Role::Client } else { protocol::Role::Server };
    // Their limit of a frame is also that of a control frame.
    let config = WebSocketConfig::default()
        .max_message_size(Some(max))
        .max_frame_size(Some(max.max(125)))
        .read_buffer_size(4096);
    WebSocket::from_raw_socket(wire, role, Some(config))
}

/// Returns their items. The code of a failure is not theirs.
fn theirs(reader: Reader, max: usize, bytes: &[u8], cut: usize) -> Vec<WsItem> {
    let pieces = bytes.chunks(cut).map(<[u8]>::to_vec).collect();
    let mut socket = open(reader, Wire { pieces, written: vec![] }, max);
    let mut items = Vec::new();
    while items.last().is_none_or(|item| !is_final(item)) {
        items.push(match socket.read() {
            Ok(Message::Text(message)) => text(&message),
            Ok(Message::Ping(payload)) => WsItem::Ping(payload),
            Ok(Message::Pong(payload)) => WsItem::Pong(payload),
            Ok(Message::Close(None)) => close(None, ""),
            Ok(Message::Close(Some(frame))) => close(u16::from(frame.code), &frame.reason),
            Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => WsItem::End,
            Ok(Message::Binary(_)) | Err(_) => protocol("theirs"),
            Ok(Message::Frame(_)) => panic!(),
        });
    }
    items
}

/// Checks that both read the same, as far as the standard says what to read.
fn check_same(reader: Reader, max: usize, bytes: &[u8], cuts: &[usize]) -> Result<(), TestCaseError> {
    let (mut ours, mut theirs) = (ours(reader, max, bytes, cuts), theirs(reader, max, bytes, cuts[0]));
    let last = ours.pop().unwrap();
    let other = theirs.get(ours.len()).cloned();
    theirs.truncate(ours.len());
    prop_assert_eq!(&ours, &theirs);
    let Some(other) = other else { panic!("{ours:?} and then {last:?}") };
    let WsItem::Fail { code, why } = &last else {
        // They refuse 1014, which was registered later.
        let late = matches!(&last, WsItem::Close(frame) if frame.code == Some(1014));
        prop_assert!(other == last || late, "{:?} and {:?}", last, other);
        return Ok(());
    };
    let agreed = match (code, *why, &other) {
        // They read binary messages, and lengths in any form.
        (CloseCode::Unsupported, _, _) | (_, "a length in a form that is too long", _) => true,
        // They tell the application of a close that they refuse.
        (_, "a close code that must not be sent", WsItem::Close(frame)) => frame.code == Some(1002),
        // They judge only whole frames: the connection ended inside this one.
        (_, _, WsItem::End) => true,
        (_, _, other) => matches!(other, WsItem::Fail { .. }),
    };
    prop_assert!(agreed, "{:?} and {:?}", last, other);
    Ok(())
}

proptest! {
    // covers: WS-B-016, WS-B-017, WS-B-019, WS-B-020, WS-B-022, WS-B-024, WS-B-025, WS-B-026
    #[test]
    fn tungstenite_reads_the_same_frames(
        frames in frames(),
        faults in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..2),
        cuts in prop::collection::vec(1..40_usize, 1..20),
        max in prop::sample::select(vec![10, 100, 100_000]),
        is_client in any::<bool>(),
    ) {
        let reader = if is_client { Reader::Client } else { Reader::Server };
        let frames: Frames = frames;
        let mut bytes = wire(reader, &frames);
        for (index, byte) in faults.iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
            let at = index.index(bytes.len());
            bytes[at] = *byte;
        }
        check_same(reader, max, &bytes, &cuts)?;
    }

    // covers: WS-B-016, WS-B-018, WS-B-022, WS-C-015
    #[test]
    fn tungstenite_and_this_codec_read_each_other(
        parts in prop::collection::vec((0..3, "\\PC{0,30}", prop::sample::select(vec![1, 1, 10, 1000])), 0..8),
        reason in "\\PC{0,30}",
        cuts in prop::collection::vec(1..5000_usize, 1..20),
        is_client in any::<bool>(),
    ) {
        let (reader, writer) =
            if is_client { (Reader::Client, Reader::Server) } else { (Reader::Server, Reader::Client) };
        let (mut codec, mut out) = (writer.codec(0), ShortQueue::new());
        let mut socket = open(writer, Wire::default(), 0);
        let mut items = vec![];
        for (kind, part, times) in parts {
            let (message, payload) = (part.repeat(times), Bytes::from(part));
            let payload = payload.slice(..payload.len().min(125));
            match kind {
                0 => {
                    codec.ping(payload.clone(), &mut out).unwrap();
                    socket.send(Message::Ping(payload.clone())).unwrap();
                    items.push(WsItem::Ping(payload));
                }
                1 => {
                    codec.pong(payload.clone());
                    out.extend(codec.poll_pong());
                    socket.send(Message::Pong(payload.clone())).unwrap();
                    items.push(WsItem::Pong(payload));
                }
                _ => {
                    codec.text(message.clone().into(), &mut out).unwrap();
                    socket.send(Message::text(&*message)).unwrap();
                    items.push(text(&message));
                }
            }
        }
        let reason: String = reason.chars().take(30).collect();
        codec.close(CloseCode::GoingAway, &reason, &mut out);
        let code = protocol::frame::coding::CloseCode::Away;
        socket.close(Some(protocol::CloseFrame { code, reason: reason.clone().into() })).unwrap();
        items.push(close(1001, &reason));
        prop_assert_eq!(&theirs(reader, 1 << 20, &drain(&mut out), cuts[0]), &items);
        let written = core::mem::take(&mut socket.get_mut().written);
        prop_assert_eq!(&ours(reader, 1 << 20, &written, &cuts), &items);
        // Each answers the close of the other, and then both have ended.
        let (mut closing, mut out) = (reader.codec(1 << 20), ShortQueue::new());
        closing.bytes(written.into());
        while closing.poll(&mut out).is_some() {}
        socket.get_mut().pieces.push_back(drain(&mut out));
        let answer = core::iter::repeat_with(|| socket.read()).find(|read| !matches!(read, Ok(Message::Pong(_))));
        let Some(Ok(Message::Close(Some(answer)))) = answer else { panic!("{answer:?}") };
        prop_assert_eq!((u16::from(answer.code), &*answer.reason), (1001, ""));
        prop_assert!(matches!(socket.read(), Err(Error::ConnectionClosed)));
    }
}
