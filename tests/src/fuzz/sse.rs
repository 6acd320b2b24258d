//! Event streams, compared with another reader: the first byte chooses the cuts of the rest.

use super::script::{Script, pieces};
use bytes::Bytes;
use mcp_proto::exchange::{Data, Headers, Inbound, ResponseHead, SseEvent};
use mcp_proto::frame::BodyDecoder;
use mcp_proto::limits::FrameLimits;
use mcp_proto::rpc::parse_batch_or_message;
use smol::stream::{StreamExt, iter};
use sse_stream::{Sse, SseByteStream};
use std::convert::Infallible;
use std::iter::from_fn;
use std::time::Duration;

/// Any cut of an event stream gives the items of the whole stream, its events are those of the
/// crate `sse-stream`, and the reader holds no more bytes than the stream has.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let cut = u64::from(script.byte());
    let bytes = script.rest();
    let whole = read([Bytes::copy_from_slice(bytes)], true);
    assert_eq!(read(pieces(bytes, cut), true), whole, "in pieces");
    assert_eq!(read(pieces(bytes, cut), false), whole, "in pieces, polled late");
    let mut ours: Vec<SseEvent> = whole
        .into_iter()
        .filter_map(|item| if let Inbound::Event(event) = item { Some(event) } else { None })
        .collect();
    let (mut theirs, whole) = theirs(bytes);
    // A time out of range is the longest one for us, and none for them.
    if ours.iter().any(|event| event.retry == Some(Duration::from_millis(u64::MAX))) {
        ours.iter_mut().chain(&mut theirs).for_each(|event| event.retry = None);
    }
    // They treat an event with only a type, or with empty data, like we do, except with such a
    // time.
    for events in [&mut ours, &mut theirs] {
        events.retain(|event| event.id.is_some() || event.retry.is_some() || event.data != Data::None);
    }
    if !whole {
        // Bytes other than UTF-8 end their stream. We replace them in ids and types, and report
        // them as a defect in data.
        ours.truncate(theirs.len());
    }
    assert_eq!(ours, theirs);
}

/// The items before the end of the stream. At the end only the `retry` time of an unfinished event
/// is left.
fn read(pieces: impl IntoIterator<Item = Bytes>, polls: bool) -> Vec<Inbound> {
    let headers = Headers::new().with("content-type", "text/event-stream");
    let mut body = BodyDecoder::of_response(&ResponseHead { status: 200, headers }, &FrameLimits::default());
    let (mut items, mut length) = (Vec::new(), 0);
    for piece in pieces {
        length += piece.len();
        body.bytes(piece);
        if polls {
            items.extend(from_fn(|| body.poll_item()));
            // Three buffers of 512 bytes at most stay for the next event.
            assert!(body.buffered() <= 2 * length + 3 * 512, "{} bytes are held of {length}", body.buffered());
        }
    }
    items.extend(from_fn(|| body.poll_item()));
    body.end();
    let last: Vec<Inbound> = from_fn(|| body.poll_item()).collect();
    match &last[..] {
        [Inbound::End] | [Inbound::Event(SseEvent { id: None, retry: Some(_), data: Data::None }), Inbound::End] => {}
        other => panic!("at the end: {other:?}"),
    }
    assert_eq!(body.broken(), None);
    items
}

/// Their items in our form, and whether they reached the end.
fn theirs(bytes: &[u8]) -> (Vec<SseEvent>, bool) {
    let mut stream = SseByteStream::new(iter([Ok::<_, Infallible>(Bytes::copy_from_slice(bytes))]));
    let mut events = Vec::new();
    loop {
        match smol::block_on(stream.next()) {
            Some(Ok(block)) => events.push(told(block)),
            Some(Err(sse_stream::Error::Utf8Parse(_))) => return (events, false),
            Some(Err(other)) => panic!("{other}"),
            None => return (events, true),
        }
    }
}

fn told(block: Sse) -> SseEvent {
    let event = block.event.unwrap_or_default();
    let data = match block.data.unwrap_or_default() {
        data if data.is_empty() => Data::None,
        data if matches!(event.as_str(), "" | "message") => {
            parse_batch_or_message(data.into(), &FrameLimits::default()).into()
        }
        data => Data::Other { event, data: data.into() },
    };
    SseEvent { id: block.id, retry: block.retry.map(Duration::from_millis), data }
}
