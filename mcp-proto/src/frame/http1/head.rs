//! Heads: bytes to fields and back. `httparse` reads the lines; what it lets pass and we do not is checked here.

use super::super::conn::write;
use super::Input;
use crate::exchange::{Headers, HttpDefect};
use crate::limits::FrameLimits;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;

/// Collects one head.
#[derive(Debug, Default)]
pub(super) struct Gather {
    head: Vec<u8>,
    /// Where the line begins that is not finished.
    line: usize,
}

impl Gather {
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    pub(super) fn buffered(&self) -> usize {
        self.head.capacity()
    }

    /// Whether what there is of the head begins like this, as far as it goes.
    pub(super) fn begins_with(&self, start: &[u8]) -> bool {
        let there = start.len().min(self.head.len());
        // An empty line that is dropped may be half there.
        self.head == b"\r" || self.head[..there] == start[..there]
    }

    /// The bytes of a head up to and with its empty line. Empty lines before it are dropped (RFC 9112 section 2.2).
    pub(super) fn poll(&mut self, input: &mut Input, limits: &FrameLimits) -> Result<Option<Vec<u8>>, HttpDefect> {
        loop {
            match input.line(&mut self.head, limits.max_head) {
                None => return Ok(None),
                Some(false) => return Err(defect(431, "the head is too large")),
                Some(true) => {}
            }
            let line = &self.head[self.line..];
            if !line.ends_with(b"\r\n") {
                return Err(defect(400, "a line of the head does not end with CR LF"));
            }
            if line == b"\r\n" {
                let head = mem::take(self).head;
                if head.len() > 2 {
                    return Ok(Some(head));
                }
            } else {
                self.line = self.head.len();
            }
        }
    }
}

/// The first line of a request.
pub(super) struct RequestLine {
    pub(super) method: String,
    pub(super) target: String,
    /// HTTP/1.0.
    pub(super) old: bool,
}

pub(super) fn read_request(head: &[u8], limits: &FrameLimits) -> Result<(RequestLine, Headers), HttpDefect> {
    let mut fields = alloc::vec![httparse::EMPTY_HEADER; limits.max_headers];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Complete(end)) if end == head.len() => {}
        Ok(_) => return Err(defect(400, "the head is not a request")),
        Err(e) => return Err(read_fault(e)),
    }
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Err(defect(400, "the head is not a request"));
    };
    let line = RequestLine { method: method.into(), target: target.into(), old: version == 0 };
    Ok((line, headers(request.headers)))
}

/// The status, whether it is HTTP/1.0, and the fields.
pub(super) fn read_response(head: &[u8], limits: &FrameLimits) -> Result<(u16, bool, Headers), HttpDefect> {
    let mut fields = alloc::vec![httparse::EMPTY_HEADER; limits.max_headers];
    let mut response = httparse::Response::new(&mut fields);
    match response.parse(head) {
        Ok(httparse::Status::Complete(end)) if end == head.len() => {}
        Ok(_) => return Err(defect(400, "the head is not a response")),
        Err(e) => return Err(read_fault(e)),
    }
    let (Some(status), Some(version)) = (response.code, response.version) else {
        return Err(defect(400, "the head is not a response"));
    };
    Ok((status, version == 0, headers(response.headers)))
}

/// The comma-separated members of all fields of that name. What surrounds them is a space or a tab: another reader may hold other white
/// space of Unicode to be a part of them.
pub(super) fn members<'a>(headers: &'a Headers, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers.all(name).flat_map(|value| value.split(',')).map(|member| member.trim_matches([' ', '\t']))
}

/// Whether one of the members of the field is `token`, without case.
pub(super) fn has_token(headers: &Headers, name: &str, token: &str) -> bool {
    members(headers, name).any(|member| member.eq_ignore_ascii_case(token))
}

/// What the body is coded with, if with anything.
pub(super) fn content_coding(headers: &Headers) -> Option<&str> {
    members(headers, "content-encoding").find(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"))
}

/// Whether the sender of these fields keeps the connection (RFC 9112 section 9.3).
pub(super) fn persists(headers: &Headers, old: bool) -> bool {
    !has_token(headers, "connection", "close") && (!old || has_token(headers, "connection", "keep-alive"))
}

/// A head that is being written.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(first_line: &[&str]) -> Self {
        let mut out = Vec::with_capacity(256);
        first_line.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        out.extend_from_slice(b"\r\n");
        Self(out)
    }

    /// Adds one field that is known to be legal.
    pub(super) fn field(&mut self, name: &str, value: &str) {
        for part in [name, ": ", value, "\r\n"] {
            self.0.extend_from_slice(part.as_bytes());
        }
    }

    /// Adds the fields of the engine, but for those that are the codec's to say. `None` if one of them could break out of its line.
    pub(super) fn fields(&mut self, headers: &Headers) -> Option<()> {
        for (name, value) in headers.iter() {
            if !is_token(name) || value.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
                return None;
            }
            let ours = ["content-length", "transfer-encoding", "connection"];
            if !ours.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                self.field(name, value);
            }
        }
        Some(())
    }

    pub(super) fn finish(mut self, out: &mut VecDeque<Bytes>, body: Bytes) {
        self.0.extend_from_slice(b"\r\n");
        write(out, self.0, body, b"");
    }
}

/// Whether a line, its CR LF included, is one legal field.
pub(super) fn is_field(line: &[u8]) -> bool {
    let mut fields = [httparse::EMPTY_HEADER];
    let lines = [line, b"\r\n"].concat();
    matches!(httparse::parse_headers(&lines, &mut fields), Ok(httparse::Status::Complete(_)))
}

/// A token (RFC 9110 section 5.6.2): the name of a method or field.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

pub(super) fn defect(status: u16, why: &'static str) -> HttpDefect {
    HttpDefect { status, why }
}

fn read_fault(e: httparse::Error) -> HttpDefect {
    match e {
        httparse::Error::TooManyHeaders => defect(431, "the head has too many fields"),
        httparse::Error::Version => defect(505, "the version is not HTTP/1.0 or HTTP/1.1"),
        httparse::Error::HeaderName => defect(400, "the name of a field is not legal"),
        httparse::Error::HeaderValue => defect(400, "the value of a field is not legal"),
        _ => defect(400, "the head is not legal"),
    }
}

/// Values that are not UTF-8 are read as Latin-1, which is what they were (RFC 9110 section 5.5).
fn headers(fields: &[httparse::Header<'_>]) -> Headers {
    let mut headers = Headers::new();
    for field in fields {
        let value = match core::str::from_utf8(field.value) {
            Ok(value) => value.trim_matches([' ', '\t']).into(),
            Err(_) => field.value.iter().map(|&byte| char::from(byte)).collect::<String>(),
        };
        headers.push(field.name, value);
    }
    headers
}
