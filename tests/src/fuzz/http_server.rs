//! Requests of HTTP/1.1, compared with another reader: the first byte chooses the cuts of the rest.

use super::http_client::{Flag, Stream, collect, sorted, text};
use super::script::{Script, pieces};
use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use mcp_proto::exchange::{self, Inbound, Outbound, RequestHead, ResponseHead};
use mcp_proto::frame::{BodyDecoder, Conn, Kind};
use mcp_proto::limits::FrameLimits;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::mem::take;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

/// Requests that we refuse and hyper accepts, by a part of our reason.
const STRICTER: &[&str] = &[
    // It gives the coding precedence (RFC 9112 section 6.3 permits it). A sender of both fields may
    // intend two readings.
    "both a content-length and a transfer-encoding",
    // It accepts any coding if `chunked` is the last. Otherwise it refuses the request as we do.
    "the transfer-encoding is not known",
    // It compares numbers, we compare the text.
    "content-lengths differ",
    // httparse takes a bare LF for the end of a line (RFC 9112 section 2.2 lets it).
    "does not end with CR LF",
    // It leaves the host to the application, and most of the target.
    "host",
    "the request target",
    // It reads that as an empty body.
    "the length of the body is missing",
    // It does not parse bodies or expectations.
    "content-encoding",
    "the expectation is not known",
    // It skips bytes after the size of a chunk, and zeros before it.
    "in the extensions of a chunk",
    "the chunk extensions are too long",
    "too many blanks after the size of a chunk",
    "the size of a chunk has too many digits",
    // Its limits are set higher than ours.
    "the head has too many fields",
    "larger than the limit",
];

/// It counts the fields of a trailer like those of a head; we count the bytes of a trailer. No
/// input reaches either limit.
const MOST_FIELDS: usize = 1100;

/// Any cut of a connection gives the requests of the whole one. A complete request is read by hyper
/// in the same way. Where we stop, hyper stops too, except where our rules are stricter.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let cut = u64::from(script.byte());
    let bytes = script.rest();
    let ours = Ours::read([Bytes::copy_from_slice(bytes)]);
    assert_eq!(Ours::read(pieces(bytes, cut)), ours, "in pieces");
    let theirs = Theirs::read(bytes);
    let show = || format!("ours: {ours:#?}\ntheirs: {theirs:#?}");
    let whole = theirs.requests.iter().filter(|request| request.whole).count();
    for (ours, theirs) in ours.requests.iter().zip(&theirs.requests) {
        assert!(theirs.head == ours.head && (!theirs.whole || theirs.items() == ours.items), "{}", show());
    }
    if whole < ours.requests.len() {
        // It reads no option after a character other than ASCII, so HTTP/1.0 may end for it.
        let unread =
            whole > 0 && ours.requests[whole - 1].head.headers.all("connection").any(|value| !value.is_ascii());
        return assert!(unread || theirs.is_stricter(&ours.requests[whole]), "{}", show());
    }
    let goes_on = whole > ours.requests.len();
    let may = match &ours.stop {
        Stop::Refused(why) => STRICTER.iter().any(|reason| why.contains(reason)),
        // With several options it uses the last.
        Stop::Closed => ours.requests.last().is_some_and(|last| words(&last.head, "connection") > 1),
        Stop::Cut | Stop::End => false,
    };
    assert!(!goes_on || may, "{}", show());
}

/// Returns the number of options in the fields of that name.
fn words(head: &RequestHead, name: &str) -> usize {
    head.headers.all(name).map(|value| value.split(',').count()).sum()
}

/// A complete request.
#[derive(Debug, PartialEq)]
struct Request {
    head: RequestHead,
    items: Vec<Inbound>,
    /// The number of its length fields.
    lengths: usize,
}

/// Our outcome.
#[derive(Debug, PartialEq)]
struct Ours {
    requests: Vec<Request>,
    stop: Stop,
}

/// Why we stopped.
#[derive(Debug, PartialEq)]
enum Stop {
    /// The end of the input.
    End,
    /// The last request is truncated.
    Cut,
    /// The last response ends the connection.
    Closed,
    Refused(String),
}

impl Ours {
    fn read(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let mut conn = Conn::new(Kind::HttpServer, &FrameLimits::default());
        // The other reader decodes no body.
        conn.set_coding(false);
        let mut ours = Self { requests: Vec::new(), stop: Stop::End };
        let mut items = Vec::new();
        for piece in pieces {
            conn.bytes(piece);
            ours.go_on(&mut conn, &mut items);
        }
        conn.eof();
        ours.go_on(&mut conn, &mut items);
        if conn.broken().is_some() {
            ours.stop = Stop::Cut;
        }
        ours
    }

    fn go_on(&mut self, conn: &mut Conn, items: &mut Vec<Inbound>) {
        while self.stop == Stop::End {
            // The next request is not read before this one is answered.
            let mut ended = false;
            collect(items, || {
                let item = if ended { None } else { conn.poll_item() };
                ended = item == Some(Inbound::End);
                item
            });
            match items.last() {
                Some(Inbound::Reject(defect)) => self.stop = Stop::Refused(defect.why.into()),
                Some(Inbound::End) => {
                    let mut items = take(items);
                    let Inbound::Request(head) = items.remove(0) else { panic!("a request begins with its head") };
                    let lengths = words(&head, "content-length");
                    self.requests.push(Request { head: tidied(head), items, lengths });
                    let head = ResponseHead { status: 404, headers: exchange::Headers::new() };
                    conn.encode(Outbound::Response { head, body: exchange::Body::Full(Bytes::new()) });
                    if !conn.keep_alive() {
                        self.stop = Stop::Closed;
                    }
                }
                _ => return,
            }
        }
    }
}

/// In the form of both: names without case, in any order, and equal lengths once.
fn tidied(head: RequestHead) -> RequestHead {
    let mut fields: Vec<(String, String)> =
        head.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.into())).collect();
    let mut lengths = 0;
    fields.retain(|(name, _)| {
        lengths += usize::from(name == "content-length");
        name != "content-length" || lengths == 1
    });
    RequestHead { headers: sorted(fields), ..head }
}

/// A request that hyper has read completely or in part.
#[derive(Debug)]
struct Theirs {
    requests: Vec<Seen>,
    why: Option<String>,
}

#[derive(Debug)]
struct Seen {
    head: RequestHead,
    body: Vec<u8>,
    whole: bool,
}

impl Seen {
    /// The items that it has read.
    fn items(&self) -> Vec<Inbound> {
        let headers = &self.head.headers;
        let none = headers.get("transfer-encoding").is_none() && self.body.is_empty() && self.head.method != "POST";
        if none {
            // Without a body, the type does not matter.
            return vec![Inbound::End];
        }
        let mut body = BodyDecoder::of_request(&self.head, &FrameLimits::default());
        body.bytes(Bytes::copy_from_slice(&self.body));
        body.end();
        let mut items = Vec::new();
        collect(&mut items, || body.poll_item());
        items
    }
}

impl Theirs {
    fn read(bytes: &[u8]) -> Self {
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(woken.clone());
        let cx = &mut Context::from_waker(&waker);
        let ended = Rc::new(Cell::new(false));
        let wire = Stream { rest: Bytes::copy_from_slice(bytes), asked: true, ended: ended.clone() };
        let requests = Rc::new(RefCell::new(Vec::new()));
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let requests = requests.clone();
            async move {
                let (head, mut body) = request.into_parts();
                let seen = Seen { head: head_of(&head), body: Vec::new(), whole: false };
                requests.borrow_mut().push(seen);
                loop {
                    let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
                    let mut requests = requests.borrow_mut();
                    let seen: &mut Seen = requests.last_mut().expect("it was pushed");
                    match frame {
                        Some(Ok(frame)) => seen.body.extend(frame.into_data().into_iter().flatten()),
                        Some(Err(_)) => break,
                        None => {
                            seen.whole = true;
                            break;
                        }
                    }
                }
                let answer = hyper::Response::builder().status(404).body(String::new());
                Ok::<_, Infallible>(answer.expect("it is an answer"))
            }
        });
        let mut builder = http1::Builder::new();
        builder.max_headers(MOST_FIELDS).header_read_timeout(None).auto_date_header(false);
        let mut why = None;
        {
            let mut connection = pin!(builder.serve_connection(wire, service));
            let mut over = false;
            for end in [false, true] {
                ended.set(end);
                woken.0.store(true, Ordering::Relaxed);
                while !over && woken.0.swap(false, Ordering::Relaxed) {
                    if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                        why = ended.err().map(|why| why.to_string());
                        over = true;
                    }
                }
            }
        }
        let requests = requests.take();
        Self { requests, why }
    }

    /// Returns whether it refuses this request, which we read.
    fn is_stricter(&self, request: &Request) -> bool {
        self.why.as_deref().is_some_and(|why| {
            // Characters that many clients send unencoded.
            why.contains("invalid URI")
                // RFC 9112 section 6.3 permits a list of equal lengths.
                || why.contains("content-length") && request.lengths > 1
        })
    }
}

/// Their head in our form.
fn head_of(head: &hyper::http::request::Parts) -> RequestHead {
    let mut fields: Vec<_> =
        head.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect();
    // It leaves the field to its application (RFC 9110 section 7.8).
    fields.retain(|(name, _)| head.version != hyper::Version::HTTP_10 || name != "upgrade");
    // It leaves it to its application that the host of the target counts (RFC 9112 section 3.2.2).
    if let Some(authority) = head.uri.authority()
        && !fields.iter().any(|(name, value)| name == "host" && value.eq_ignore_ascii_case(authority.as_str()))
    {
        fields.retain(|(name, _)| name != "host");
        fields.push(("host".into(), authority.to_string()));
    }
    let target = head.uri.path_and_query().map_or("/", |path| path.as_str());
    // It gives no path to a query directly after a host.
    let target = if target.starts_with('?') { format!("/{target}") } else { target.into() };
    RequestHead { method: head.method.to_string().into(), target: target.into(), headers: sorted(fields) }
}
