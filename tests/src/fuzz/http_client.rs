//! Responses of HTTP/1.1, compared with another reader: the first bytes choose the request method
//! and the cuts of the rest.

use super::script::{Script, pieces};
use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper::rt::{Read, ReadBufCursor, Write};
use mcp_proto::exchange::{Data, Headers, Inbound, Outbound, RequestHead, ResponseHead, SseEvent};
use mcp_proto::frame::{BodyDecoder, Conn, Kind};
use mcp_proto::limits::FrameLimits;
use std::cell::Cell;
use std::future::Future;
use std::io;
use std::iter::from_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Responses that we refuse and hyper accepts, by a part of our reason.
const STRICTER: &[&str] = &[
    // RFC 9112 section 6.3 lets a reader choose the coding. A sender of both fields may intend two
    // readings.
    "both a content-length and a transfer-encoding",
    // It compares the elements of a list as numbers: `02, 2`. RFC 9110 section 8.6 lets a reader
    // refuse any list.
    "content-lengths differ",
    // It reads such a body up to the end of the connection.
    "the transfer-encoding is not known",
    // httparse takes a bare LF for the end of a line (RFC 9112 section 2.2 lets it).
    "does not end with CR LF",
    // It does not parse bodies.
    "content-encoding",
    // Its limits are set higher than ours.
    "the head has too many fields",
    // It skips bytes after the size of a chunk.
    "in the extensions of a chunk",
    "the chunk extensions are too long",
    "too many blanks after the size of a chunk",
    // Zeros before it do not count.
    "the size of a chunk has too many digits",
    // It skips empty lines before the status line.
    "the response is not HTTP",
    // It passes the connection on.
    "the server switched protocols",
];

/// It counts the fields of a trailer like those of a head; we count the bytes of a trailer. No
/// input reaches either limit.
const MOST_FIELDS: usize = 1100;

/// Any cut of a response gives the items of the whole one. A complete response is read by hyper in
/// the same way, and hyper keeps the connection if we do. An invalid response is invalid for hyper
/// too, except where our rules are stricter.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let method = *script.pick(&["POST", "GET", "HEAD"]);
    let cut = u64::from(script.byte());
    let bytes = script.rest();
    let ours = Ours::read(method, [Bytes::copy_from_slice(bytes)]);
    assert_eq!(Ours::read(method, pieces(bytes, cut)), ours, "in pieces");
    let theirs = Theirs::read(method, bytes);
    let expected = theirs.items(method);
    let show = || format!("ours: {ours:#?}\ntheirs: {theirs:#?}");
    if ours.items.last() == Some(&Inbound::End) {
        assert!(theirs.end == End::Complete && ours.items == expected, "{}", show());
        assert_eq!(ours.keeps, theirs.keeps, "{}", show());
        return;
    }
    let Some(why) = &ours.broken else {
        return assert!(ours.items.is_empty() && theirs.head.is_none(), "{}", show());
    };
    // It does not read the length of a response without a body.
    let unread = ["content-length", "transfer-encoding"].iter().any(|field| why.contains(field));
    let unread = unread && theirs.head.as_ref().is_some_and(|head| bodiless(method, head));
    let stricter = unread || STRICTER.iter().any(|reason| why.contains(reason));
    assert!(stricter || theirs.end != End::Complete, "{}", show());
    // Both have the same items until one of them stops.
    if theirs.head.is_some() {
        assert!(agree(&ours.items, &expected), "{}", show());
    }
}

fn bodiless(method: &str, head: &ResponseHead) -> bool {
    method == "HEAD" || matches!(head.status, 204 | 304)
}

fn agree(ours: &[Inbound], theirs: &[Inbound]) -> bool {
    let ours = match ours {
        // The `retry` time of an event at a cut is not part of the body.
        [before @ .., Inbound::Event(SseEvent { id: None, retry: Some(_), data: Data::None })] => before,
        all => all,
    };
    ours.iter().zip(theirs).all(|pair| match pair {
        (Inbound::Body(ours), Inbound::Body(theirs)) => ours.starts_with(theirs) || theirs.starts_with(ours),
        (ours, theirs) => ours == theirs,
    })
}

/// Our outcome.
#[derive(Debug, PartialEq)]
struct Ours {
    items: Vec<Inbound>,
    broken: Option<String>,
    /// Whether the connection was free for another request before it ended.
    keeps: bool,
}

impl Ours {
    fn read(method: &str, pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let mut conn = Conn::new(Kind::HttpClient, &FrameLimits::default());
        // The other reader decodes no body.
        conn.set_coding(false);
        let headers = Headers::new().with("Host", "a");
        let head = RequestHead { method: method.to_owned().into(), target: "/".into(), headers };
        conn.encode(Outbound::Request { head, body: Bytes::new() });
        let mut items = Vec::new();
        for piece in pieces {
            conn.bytes(piece);
            collect(&mut items, || conn.poll_item());
        }
        let keeps = conn.keep_alive() && conn.at_boundary() && items.last() == Some(&Inbound::End);
        conn.eof();
        collect(&mut items, || conn.poll_item());
        if let Some(Inbound::Response(head)) = items.first_mut() {
            head.headers = sorted(head.headers.iter().map(|(name, value)| (name.into(), value.into())).collect());
        }
        Self { items, broken: conn.broken().cloned(), keeps }
    }
}

/// Takes all items. Joins the pieces of a body.
pub(super) fn collect(items: &mut Vec<Inbound>, mut poll: impl FnMut() -> Option<Inbound>) {
    for item in from_fn(&mut poll) {
        match (items.last_mut(), item) {
            (Some(Inbound::Body(last)), Inbound::Body(next)) => *last = [&last[..], &next[..]].concat().into(),
            (_, item) => items.push(item),
        }
    }
}

/// The outcome of hyper.
#[derive(Debug)]
struct Theirs {
    head: Option<ResponseHead>,
    body: Vec<u8>,
    end: End,
    keeps: bool,
}

#[derive(Debug, PartialEq)]
enum End {
    Open,
    Complete,
    Failed(String),
}

impl Theirs {
    fn read(method: &str, bytes: &[u8]) -> Self {
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(woken.clone());
        let cx = &mut Context::from_waker(&waker);
        let ended = Rc::new(Cell::new(false));
        let wire = Stream { rest: Bytes::copy_from_slice(bytes), asked: false, ended: ended.clone() };
        let handshake = http1::Builder::new().max_headers(MOST_FIELDS).handshake::<_, String>(wire);
        let Poll::Ready(Ok((mut sender, connection))) = pin!(handshake).poll(cx) else {
            unreachable!("a handshake waits for nothing")
        };
        let mut connection = Some(Box::pin(connection));
        let request = hyper::Request::builder().method(method).uri("/").header("Host", "a").body(String::new());
        let mut response = Some(Box::pin(sender.send_request(request.expect("it is a request"))));
        let mut body: Option<Incoming> = None;
        let mut seen = Self { head: None, body: Vec::new(), end: End::Open, keeps: false };
        for end in [false, true] {
            ended.set(end);
            woken.0.store(true, Ordering::Relaxed);
            while woken.0.swap(false, Ordering::Relaxed) {
                if connection.as_mut().is_some_and(|connection| connection.as_mut().poll(cx).is_ready()) {
                    connection = None;
                }
                match response.as_mut().map(|response| response.as_mut().poll(cx)) {
                    Some(Poll::Ready(Ok(answer))) => {
                        let (head, incoming) = answer.into_parts();
                        seen.head = Some(head_of(&head));
                        (response, body) = (None, Some(incoming));
                    }
                    Some(Poll::Ready(Err(why))) => {
                        seen.end = End::Failed(why.to_string());
                        response = None;
                    }
                    Some(Poll::Pending) | None => {}
                }
                while let Some(incoming) = &mut body
                    && let Poll::Ready(frame) = Pin::new(incoming).poll_frame(cx)
                {
                    match frame {
                        Some(Ok(frame)) => seen.body.extend(frame.into_data().into_iter().flatten()),
                        Some(Err(why)) => seen.end = End::Failed(why.to_string()),
                        None => seen.end = End::Complete,
                    }
                    if seen.end != End::Open {
                        body = None;
                    }
                }
            }
            if !end {
                seen.keeps = seen.end == End::Complete && connection.is_some() && sender.is_ready();
            }
        }
        seen
    }

    /// The items that it has read.
    fn items(&self, method: &str) -> Vec<Inbound> {
        let Some(head) = &self.head else { return Vec::new() };
        let mut items = vec![Inbound::Response(head.clone())];
        if bodiless(method, head) {
            // An absent body is not an empty one: neither is read as JSON.
            items.push(Inbound::End);
            return items;
        }
        let mut body = BodyDecoder::of_response(head, &FrameLimits::default());
        body.bytes(Bytes::copy_from_slice(&self.body));
        if self.end == End::Complete {
            body.end();
        }
        collect(&mut items, || body.poll_item());
        items
    }
}

/// Their head in our form.
fn head_of(head: &hyper::http::response::Parts) -> ResponseHead {
    let fields = head.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes())));
    ResponseHead { status: head.status.as_u16(), headers: sorted(fields.collect()) }
}

/// A value in our form.
pub(super) fn text(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(value) => value.to_owned(),
        Err(_) => value.iter().map(|&byte| char::from(byte)).collect(),
    }
}

/// They ignore the case of names and the order of fields with different names.
pub(super) fn sorted(mut fields: Vec<(String, String)>) -> Headers {
    fields.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    fields.into_iter().fold(Headers::new(), |all, (name, value)| all.with(&name, value))
}

pub(super) struct Flag(pub(super) AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A connection that delivers these bytes once it was asked, and ends on request.
pub(super) struct Stream {
    pub(super) rest: Bytes,
    pub(super) asked: bool,
    pub(super) ended: Rc<Cell<bool>>,
}

impl Read for Stream {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if self.rest.is_empty() || !self.asked {
            // Zero bytes are the end.
            return if self.ended.get() { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
        let count = buf.remaining().min(self.rest.len());
        buf.put_slice(&self.rest.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.asked = true;
        cx.waker().wake_by_ref();
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
