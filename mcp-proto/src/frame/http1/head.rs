//! HTTP heads: bytes to fields and back. `httparse` parses the lines. This module rejects what it
//! accepts and this crate does not.

use super::super::coding::{ContentCoding, GzipSupport};
use super::super::conn::write;
use super::super::input::LARGE;
use super::ByteQueue;
use crate::exchange::{self, BadRequest, Headers, is_clean, is_token, trim_blanks};
use crate::limits::FrameLimits;
use crate::rpc::write_integer;
use crate::short_queue::ShortQueue;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem::{self, MaybeUninit};
use core::str::Utf8Error;

/// Maximum number of bytes around the target in the first line: a method, the version, spaces and
/// the line end.
const AROUND_TARGET: usize = 64;

const LONG_TARGET: &str = "the request target is too long";
const LARGE_HEAD: &str = "the head is too large";

/// Collects the bytes of one head.
#[derive(Debug, Default)]
pub(super) struct Gather {
    head: Vec<u8>,
    /// The start of the incomplete line.
    line: usize,
    /// Bytes of the empty lines before the head.
    blank: usize,
    /// Bytes of the interim responses before the head.
    interim: usize,
}

impl Gather {
    /// Returns whether nothing has arrived, neither of the head nor of a response before it.
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.interim == 0
    }

    /// Begins again after the head of an interim response of this length. Too many are an error.
    pub(super) fn skip_interim(&mut self, len: usize, limits: &FrameLimits) -> Result<(), &'static str> {
        *self = Self { interim: self.interim + len, ..Self::default() };
        if self.interim > limits.max_head { Err("too many interim responses") } else { Ok(()) }
    }

    /// Returns whether the head has not begun. Half of an empty line before it does not count.
    pub(super) fn is_blank(&self) -> bool {
        self.head.is_empty() || self.head == b"\r"
    }

    pub(super) fn buffered(&self) -> usize {
        self.head.capacity()
    }

    /// Returns the first byte of the head so far.
    pub(super) fn first(&self) -> Option<u8> {
        self.head.first().copied()
    }

    /// Returns whether the head so far matches this start.
    pub(super) fn begins_with(&self, start: &[u8]) -> bool {
        let there = start.len().min(self.head.len());
        // It may be half of an empty line, which is dropped.
        self.head == b"\r" || self.head[..there] == start[..there]
    }

    /// Returns the length of a request head that is the next bytes of `input`, within the limits:
    /// the common case, which saves a copy. `None` for any other; [`poll_request`] judges it.
    ///
    /// [`poll_request`]: Self::poll_request
    pub(super) fn whole_request(&self, input: &ByteQueue, limits: &FrameLimits) -> Option<usize> {
        self.whole(input, longest_line(limits), limits.max_head)
    }

    /// Like [`whole_request`](Self::whole_request), for a response head.
    pub(super) fn whole_response(&self, input: &ByteQueue, limits: &FrameLimits) -> Option<usize> {
        self.whole(input, limits.max_head, limits.max_head)
    }

    fn whole(&self, input: &ByteQueue, max_line: usize, max_head: usize) -> Option<usize> {
        let front = input.front().filter(|_| self.head.is_empty())?;
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', front).map(|at| at + 1) {
            let max = if start == 0 { max_line } else { max_head };
            match &front[start..end] {
                b"\r\n" if start > 0 && end <= max => return Some(end),
                [_, .., b'\r', b'\n'] if end <= max => start = end,
                _ => return None,
            }
        }
        None
    }

    /// Returns the bytes of a request head, up to and including its empty line. Rejects a first
    /// line that is too long for any permitted target.
    pub(super) fn poll_request(
        &mut self,
        input: &mut ByteQueue,
        limits: &FrameLimits,
    ) -> Result<Option<Vec<u8>>, BadRequest> {
        self.gather(input, (longest_line(limits), defect(414, LONG_TARGET)), limits.max_head)
    }

    /// Returns the bytes of a response head, up to and including its empty line.
    pub(super) fn poll(&mut self, input: &mut ByteQueue, limits: &FrameLimits) -> Result<Option<Vec<u8>>, BadRequest> {
        self.gather(input, (limits.max_head, defect(431, LARGE_HEAD)), limits.max_head)
    }

    /// Drops empty lines before the head (RFC 9112 section 2.2), up to the size of a head. `first`
    /// is the maximum length of the first line, and the error for a longer one.
    fn gather(
        &mut self,
        input: &mut ByteQueue,
        first: (usize, BadRequest),
        max_head: usize,
    ) -> Result<Option<Vec<u8>>, BadRequest> {
        loop {
            let max = if self.line == 0 { first.0 } else { max_head };
            match input.line(&mut self.head, max) {
                None => return Ok(None),
                Some(false) if self.line == 0 => return Err(first.1),
                Some(false) => return Err(defect(431, LARGE_HEAD)),
                Some(true) => {}
            }
            let line = &self.head[self.line..];
            if !line.ends_with(b"\r\n") {
                return Err(defect(400, "a line of the head does not end with CR LF"));
            }
            if line == b"\r\n" {
                if self.line > 0 {
                    let interim = self.interim;
                    return Ok(Some(mem::replace(self, Self { interim, ..Self::default() }).head));
                }
                self.head.clear();
                self.blank += 2;
                if self.blank > max_head {
                    return Err(defect(431, LARGE_HEAD));
                }
            } else {
                self.line = self.head.len();
            }
        }
    }
}

/// Maximum length of the first line of a request with any permitted target.
fn longest_line(limits: &FrameLimits) -> usize {
    limits.max_target.saturating_add(AROUND_TARGET).min(limits.max_head)
}

/// Number of fields that a head may have without memory for more.
const FEW: usize = 24;

/// Room for a field of a head that is parsed.
type Room<'a> = MaybeUninit<httparse::Header<'a>>;

/// Returns room for the maximum number of fields, if the head may have more lines than a few, or if
/// fewer are allowed.
fn many<'a>(head: &[u8], limits: &FrameLimits) -> Option<Vec<Room<'a>>> {
    let max = limits.max_headers;
    let has_many = max < FEW || memchr::memchr_iter(b'\n', head).count() > FEW;
    has_many.then(|| alloc::vec![MaybeUninit::uninit(); max])
}

/// Methods whose names are not copied.
const COMMON: [&str; 5] = ["POST", "GET", "DELETE", "OPTIONS", "HEAD"];

/// The first line of a request.
pub(super) struct RequestLine {
    pub(super) method: Cow<'static, str>,
    pub(super) target: Arc<str>,
    /// HTTP/1.0.
    pub(super) old: bool,
}

pub(super) fn read_request(head: &[u8], limits: &FrameLimits) -> Result<(RequestLine, Headers), BadRequest> {
    let (mut few, mut many) = ([const { MaybeUninit::uninit() }; FEW], many(head, limits));
    let room = many.as_deref_mut().unwrap_or(&mut few);
    let mut request = httparse::Request::new(&mut []);
    match httparse::ParserConfig::default().parse_request_with_uninit_headers(&mut request, head, room) {
        Ok(httparse::Status::Complete(end)) if end == head.len() => {}
        Ok(_) => return Err(defect(400, "the head is not a request")),
        Err(httparse::Error::Version) if !names_version(head) => return Err(defect(400, "the head is not HTTP")),
        Err(e) => return Err(read_fault(e)),
    }
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Err(defect(400, "the head is not a request"));
    };
    if target.len() > limits.max_target {
        return Err(defect(414, LONG_TARGET));
    }
    let method = match COMMON.into_iter().find(|common| *common == method) {
        Some(common) => Cow::Borrowed(common),
        None => Cow::Owned(method.into()),
    };
    let line = RequestLine { method, target: target.into(), old: version == 0 };
    Ok((line, headers(head, request.headers)))
}

/// Returns whether the first line is that of an HTTP request, of any version.
fn names_version(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut parts = line.split(|&byte| byte == b' ').skip(2);
    let (Some(version), None) = (parts.next(), parts.next()) else { return false };
    let number = version.strip_prefix(b"HTTP/").unwrap_or_default();
    number.first().is_some_and(u8::is_ascii_digit) && number.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// Returns the path and query of the target. A request names one host. The host of a target in
/// absolute form replaces that of the field `Host`, which must be legal nevertheless (RFC 9112
/// sections 3.2 and 3.2.2).
pub(super) fn path_of(line: RequestLine, headers: &mut Headers) -> Result<Arc<str>, BadRequest> {
    let (first, second) = {
        let mut hosts = headers.all("Host");
        (hosts.next(), hosts.next())
    };
    let host = match (first, second) {
        (_, Some(_)) => return Err(defect(400, "there is more than one host")),
        (None, _) if !line.old => return Err(defect(400, "the host is missing")),
        (host, None) => host.unwrap_or_default(),
    };
    if !is_host(host) {
        return Err(defect(400, "the host is not legal"));
    }
    let target = &*line.target;
    if !is_target(target) {
        return Err(defect(400, "the request target is not legal"));
    }
    if target.starts_with('/') || target == "*" && line.method == "OPTIONS" {
        return Ok(line.target);
    }
    let absolute = target
        .split_once("://")
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"));
    let Some((_, rest)) = absolute else { return Err(defect(400, "the request target is not a path")) };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if authority.is_empty() || !is_host(authority) {
        return Err(defect(400, "the request target has no legal host"));
    }
    if !authority.eq_ignore_ascii_case(host) {
        let others = headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host"));
        *headers = others.fold(Headers::new().with("Host", authority), |all, (name, value)| all.with(name, value));
    }
    Ok(if path.starts_with('/') { path.into() } else { format!("/{path}").into() })
}

/// Returns whether a host has no character that a host with a port cannot have.
fn is_host(host: &str) -> bool {
    host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(&byte))
}

/// Returns the status, whether the response is HTTP/1.0, and the fields.
pub(super) fn read_response(head: &[u8], limits: &FrameLimits) -> Result<(u16, bool, Headers), BadRequest> {
    let (mut few, mut many) = ([const { MaybeUninit::uninit() }; FEW], many(head, limits));
    let room = many.as_deref_mut().unwrap_or(&mut few);
    let mut response = httparse::Response::new(&mut []);
    match httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, head, room) {
        Ok(httparse::Status::Complete(end)) if end == head.len() => {}
        Ok(_) => return Err(defect(400, "the head is not a response")),
        Err(e) => return Err(read_fault(e)),
    }
    let (Some(status), Some(version)) = (response.code, response.version) else {
        return Err(defect(400, "the head is not a response"));
    };
    Ok((status, version == 0, headers(head, response.headers)))
}

/// Returns the comma-separated members of all fields of this name.
pub(super) fn members<'a>(headers: &'a Headers, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers.all(name).flat_map(exchange::members)
}

/// Returns whether one of the members of the field is `token`. Case does not matter.
pub(super) fn has_token(headers: &Headers, name: &str, token: &str) -> bool {
    members(headers, name).any(|member| member.eq_ignore_ascii_case(token))
}

/// Names that some senders write although the body has no coding.
const FALSE_CODINGS: [&str; 2] = ["none", "utf-8"];

/// Returns the first member of `Content-Encoding` that is no coding, and means that there is none.
pub(crate) fn false_coding(headers: &Headers) -> Option<&str> {
    members(headers, "content-encoding").find(|name| is_false_coding(name))
}

fn is_false_coding(name: &str) -> bool {
    FALSE_CODINGS.iter().any(|no| name.eq_ignore_ascii_case(no))
}

/// Returns the content coding of the body, if there is one. The error is the name of one that is
/// not supported, or the first one of several.
pub(super) fn content_coding(
    headers: &Headers,
    support: Option<GzipSupport>,
) -> Result<Option<(ContentCoding, GzipSupport)>, &str> {
    let is_coding = |name: &&str| !name.is_empty() && !name.eq_ignore_ascii_case("identity") && !is_false_coding(name);
    let mut names = members(headers, "content-encoding").filter(is_coding);
    let Some(name) = names.next() else { return Ok(None) };
    let coding = support.and_then(|support| Some((ContentCoding::of_name(name)?, support)));
    coding.filter(|_| names.next().is_none()).map(Some).ok_or(name)
}

/// Returns whether the sender of these fields keeps the connection open (RFC 9112 section 9.3).
pub(super) fn persists(headers: &Headers, old: bool) -> bool {
    !has_token(headers, "connection", "close") && (!old || has_token(headers, "connection", "keep-alive"))
}

/// The fields that the codec adds to a head: the length of the body, and whole lines.
#[derive(Default)]
pub(super) struct OwnFields {
    pub(super) length: Option<usize>,
    pub(super) coding: &'static str,
    pub(super) connection: &'static str,
}

pub(super) const CLOSE: &str = "connection: close\r\n";
pub(super) const UPGRADE: &str = "connection: upgrade\r\n";

/// Fields that can be written.
pub(super) struct GivenFields<'a> {
    headers: &'a Headers,
    /// The length of their lines, without those that the codec sets.
    len: usize,
}

impl<'a> GivenFields<'a> {
    pub(super) const NONE: GivenFields<'static> = GivenFields { headers: &Headers::new(), len: 0 };

    /// Returns these fields. `None` if one of them could inject a line.
    pub(super) fn new(headers: &'a Headers) -> Option<Self> {
        let mut len = 0;
        for (name, value) in headers.iter() {
            if !is_token(name) || !is_clean(value) {
                return None;
            }
            if !is_set_by_codec(name) {
                len += name.len() + value.len() + ": \r\n".len();
            }
        }
        Some(Self { headers, len })
    }
}

/// Writes a head, without the given fields that the codec sets, and the body. It needs one piece of
/// memory of the exact size.
pub(super) fn write_head(
    out: &mut ShortQueue<Bytes>,
    first_line: &[&str],
    given: &GivenFields<'_>,
    own: &OwnFields,
    body: Bytes,
) {
    let length = own.length.map_or(0, |len| LENGTH.len() + len.checked_ilog10().unwrap_or(0) as usize + 3);
    let lines = [own.coding, own.connection, "\r\n"];
    let small = if body.len() < LARGE { body.len() } else { 0 };
    let len: usize = first_line.iter().chain(&["\r\n"]).chain(&lines).map(|part| part.len()).sum();
    let mut head = Vec::with_capacity(len + given.len + length + small);
    first_line.iter().for_each(|part| head.extend_from_slice(part.as_bytes()));
    head.extend_from_slice(b"\r\n");
    for (name, value) in given.headers.iter().filter(|(name, _)| !is_set_by_codec(name)) {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    if let Some(len) = own.length {
        head.extend_from_slice(LENGTH.as_bytes());
        write_integer(&mut head, false, len as u64);
        head.extend_from_slice(b"\r\n");
    }
    lines.iter().for_each(|line| head.extend_from_slice(line.as_bytes()));
    write(out, head, body, b"");
}

const LENGTH: &str = "content-length: ";

fn is_set_by_codec(name: &str) -> bool {
    let own = match name.len() {
        10 => "connection",
        14 => "content-length",
        17 => "transfer-encoding",
        _ => return false,
    };
    name.eq_ignore_ascii_case(own)
}

/// Returns whether a line, including its CR LF, is one valid field.
pub(super) fn is_field(line: &[u8]) -> bool {
    let mut fields = [httparse::EMPTY_HEADER];
    let lines = [line, b"\r\n"].concat();
    matches!(httparse::parse_headers(&lines, &mut fields), Ok(httparse::Status::Complete(_)))
}

/// Returns whether `text` is visible ASCII without `#`, so that it cannot end the target or the
/// line (RFC 9112 section 3.2). Other readers may change other characters.
pub(super) fn is_target(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

pub(super) fn defect(status: u16, why: &'static str) -> BadRequest {
    BadRequest { status, why }
}

fn read_fault(e: httparse::Error) -> BadRequest {
    match e {
        httparse::Error::TooManyHeaders => defect(431, "the head has too many fields"),
        httparse::Error::Version => defect(505, "the version is not HTTP/1.0 or HTTP/1.1"),
        httparse::Error::HeaderName => defect(400, "the name of a field is not legal"),
        httparse::Error::HeaderValue => defect(400, "the value of a field is not legal"),
        _ => defect(400, "the head is not legal"),
    }
}

/// A value that is not UTF-8 is Latin-1, as it was historically (RFC 9110 section 5.5).
fn headers(head: &[u8], fields: &[httparse::Header<'_>]) -> Headers {
    let len = fields.iter().map(|field| field.name.len() + field.value.len()).sum();
    let mut headers = Headers::with_room(fields.len(), len);
    let head = HeadText::of(head);
    for field in fields {
        let value = match head.part(field.value) {
            Ok(value) => Cow::Borrowed(trim_blanks(value)),
            Err(_) => Cow::Owned(field.value.iter().map(|&byte| char::from(byte)).collect::<String>()),
        };
        headers.push(field.name, value);
    }
    headers
}

/// A head, as text if all of it is UTF-8: then its parts need no check of their own.
struct HeadText<'a> {
    text: &'a str,
    start: usize,
}

impl<'a> HeadText<'a> {
    fn of(head: &'a [u8]) -> Self {
        Self { text: core::str::from_utf8(head).unwrap_or_default(), start: head.as_ptr().addr() }
    }

    /// Returns a part of the head, if it is UTF-8.
    fn part(&self, part: &'a [u8]) -> Result<&'a str, Utf8Error> {
        let start = part.as_ptr().addr().wrapping_sub(self.start);
        let known = self.text.get(start..start.wrapping_add(part.len()));
        known.map_or_else(|| core::str::from_utf8(part), Ok)
    }
}
