//! The end of a body (RFC 9112 sections 6 and 7).

use super::ByteQueue;
use super::head::{is_field, members};
use crate::exchange::Headers;
use crate::frame::work::Work;
use alloc::vec::Vec;

/// Maximum number of digits in the size of a chunk: as many as 64 bits need.
const MAX_DIGITS: usize = 16;

/// Maximum number of blanks after the size of a chunk in a response.
const MAX_BLANKS: usize = 16;

/// Maximum total size of the chunk extensions of one message, in bytes, beyond the [`REFILL`]. They
/// are dropped.
const MAX_EXTENSIONS: usize = 16 << 10;

/// What each chunk with content of a response adds to the size of the extensions that may follow,
/// up to the maximum. An event stream may last for months, and its extensions must be ignored (RFC
/// 9112 section 7.1.1; the limit that it recommends is one of requests).
const REFILL: usize = 256;

/// Maximum total size of the trailer fields of one message, in bytes. They are dropped.
const MAX_TRAILER: usize = 16 << 10;

/// The rest of a body.
#[derive(Debug)]
pub(super) enum Length {
    /// This many bytes.
    Known(u64),
    /// Chunks.
    Chunked(Chunks),
    /// Everything up to the end of the connection.
    Close,
}

/// A body in chunks, with the amount of framing that it may still have. Without these bounds, a
/// sender could hold a connection with framing that carries no content (CVE-2024-22019).
#[derive(Debug)]
pub(super) struct Chunks {
    at: Chunk,
    /// Bytes of extensions that may still arrive.
    extensions: usize,
    /// What a chunk with content adds to them.
    refill: usize,
    /// Number of blanks that may follow a size. RFC 9112 section 7.1 allows none, but some servers
    /// pad the size.
    blanks: usize,
}

/// The position in the chunks.
#[derive(Debug)]
enum Chunk {
    Size(Vec<u8>),
    Data(u64),
    DataEnd(Vec<u8>),
    Trailer { line: Vec<u8>, room: usize },
    Done,
}

/// The next piece of a body.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// Content at the front of the input, from which the caller removes it.
    Data(&'a [u8]),
    /// More bytes are needed.
    More,
    /// The connection ended before the body did.
    Cut,
    End,
}

/// The length according to the fields.
#[derive(Debug, PartialEq)]
pub(super) enum DeclaredLength {
    Nothing,
    Known(u64),
    Chunked,
    /// Several codings with `chunked` at the end.
    Unknown,
    /// Codings without `chunked` at the end. The end of a request would be unknown (RFC 9112
    /// section 6.3).
    Unfinished,
    Invalid(&'static str),
}

/// Reads `Content-Length` and `Transfer-Encoding`. Repeated equal lengths count once (RFC 9112
/// section 6.3).
pub(super) fn declared(headers: &Headers, old: bool) -> DeclaredLength {
    let mut lengths = members(headers, "content-length");
    let mut codings = members(headers, "transfer-encoding");
    match (lengths.next(), codings.next()) {
        (None, None) => DeclaredLength::Nothing,
        (Some(_), Some(_)) => DeclaredLength::Invalid("both a content-length and a transfer-encoding"),
        (Some(length), None) => {
            if lengths.any(|other| other != length) {
                return DeclaredLength::Invalid("content-lengths differ");
            }
            match length.parse() {
                // `parse` accepts a plus sign.
                Ok(number) if !length.starts_with('+') => DeclaredLength::Known(number),
                _ => DeclaredLength::Invalid("the content-length is not a number"),
            }
        }
        (None, Some(_)) if old => DeclaredLength::Invalid("a transfer-encoding in HTTP/1.0"),
        (None, Some(first)) => {
            let (last, more) = codings.fold((first, false), |_, next| (next, true));
            match (last.eq_ignore_ascii_case("chunked"), more) {
                (true, false) => DeclaredLength::Chunked,
                (true, true) => DeclaredLength::Unknown,
                (false, _) => DeclaredLength::Unfinished,
            }
        }
    }
}

impl Length {
    pub(super) fn chunked_request() -> Self {
        Self::chunked(0, 0)
    }

    pub(super) fn chunked_response() -> Self {
        Self::chunked(REFILL, MAX_BLANKS)
    }

    fn chunked(refill: usize, blanks: usize) -> Self {
        Self::Chunked(Chunks { at: Chunk::Size(Vec::new()), extensions: MAX_EXTENSIONS, refill, blanks })
    }

    /// Returns the number of bytes held of incomplete framing.
    pub(super) fn buffered(&self) -> usize {
        match self {
            Self::Chunked(chunks) => match &chunks.at {
                Chunk::Size(line) | Chunk::DataEnd(line) | Chunk::Trailer { line, .. } => line.capacity(),
                Chunk::Data(_) | Chunk::Done => 0,
            },
            Self::Known(_) | Self::Close => 0,
        }
    }

    /// Returns the next piece. The framing counts as work, the content does not. The text of an
    /// error is for people.
    pub(super) fn next<'a>(
        &mut self,
        input: &'a mut ByteQueue,
        eof: bool,
        work: &mut Work,
    ) -> Result<Piece<'a>, &'static str> {
        match self {
            Self::Known(0) => Ok(Piece::End),
            Self::Known(left) => match peek(input, *left) {
                Piece::More if eof => Ok(Piece::Cut),
                piece => Ok(piece),
            },
            Self::Chunked(chunks) => match chunks.next(input, work)? {
                Piece::More if eof => Ok(Piece::Cut),
                piece => Ok(piece),
            },
            Self::Close => match peek(input, u64::MAX) {
                Piece::More if eof => Ok(Piece::End),
                piece => Ok(piece),
            },
        }
    }

    /// Returns whether `count` bytes are the rest of the body.
    pub(super) fn is_rest(&self, count: usize) -> bool {
        matches!(self, Self::Known(left) if *left == count as u64)
    }

    /// Counts content that was removed from the input, at most that of the last [`Piece::Data`].
    pub(super) fn advance(&mut self, count: usize) {
        match self {
            Self::Known(left) | Self::Chunked(Chunks { at: Chunk::Data(left), .. }) => *left -= count as u64,
            Self::Chunked(_) | Self::Close => {}
        }
    }
}

impl Chunks {
    fn next<'a>(&mut self, input: &'a mut ByteQueue, work: &mut Work) -> Result<Piece<'a>, &'static str> {
        loop {
            self.at = match &mut self.at {
                Chunk::Size(line) => match input.line(line, MAX_DIGITS + self.blanks + self.extensions + 2) {
                    None => return Ok(Piece::More),
                    // Extensions of earlier chunks have reduced the room for this line.
                    Some(false) if line.contains(&b';') => return Err("the chunk extensions are too long"),
                    Some(false) => return Err("the line of a chunk's size is too long"),
                    Some(true) => {
                        work.spend(line.len() + Work::UNIT);
                        let line = size_line(line, self.blanks)?;
                        let left = self.extensions.checked_sub(line.extensions);
                        self.extensions = left.ok_or("the chunk extensions are too long")?;
                        match line.size {
                            0 => Chunk::Trailer { line: Vec::new(), room: MAX_TRAILER },
                            size => {
                                self.extensions = (self.extensions + self.refill).min(MAX_EXTENSIONS);
                                Chunk::Data(size)
                            }
                        }
                    }
                },
                Chunk::Data(0) => Chunk::DataEnd(Vec::new()),
                Chunk::Data(left) => return Ok(peek(input, *left)),
                Chunk::DataEnd(line) => match input.line(line, 2) {
                    None if b"\r\n".starts_with(line) => return Ok(Piece::More),
                    Some(true) if line == b"\r\n" => Chunk::Size(Vec::new()),
                    _ => return Err("a chunk is longer than its size"),
                },
                Chunk::Trailer { line, room } => match input.line(line, *room) {
                    None => return Ok(Piece::More),
                    Some(true) if line == b"\r\n" => Chunk::Done,
                    Some(true) if !line.ends_with(b"\r\n") => return Err("a trailer line does not end with CR LF"),
                    Some(true) if is_field(line) => Chunk::Trailer { room: *room - line.len(), line: Vec::new() },
                    Some(true) => return Err("a trailer is not legal"),
                    Some(false) => return Err("the trailer is too long"),
                },
                Chunk::Done => return Ok(Piece::End),
            };
        }
    }
}

/// Returns the next bytes of the input, at most `left`.
fn peek(input: &ByteQueue, left: u64) -> Piece<'_> {
    match input.front() {
        None => Piece::More,
        Some(front) => Piece::Data(&front[..usize::try_from(left).map_or(front.len(), |left| left.min(front.len()))]),
    }
}

/// The line before the bytes of a chunk.
struct SizeLine {
    size: u64,
    /// Length of the extensions, including the semicolon before them.
    extensions: usize,
}

/// Parses hexadecimal digits, optional blanks and optional extensions (RFC 9112 section 7.1).
fn size_line(line: &[u8], most_blanks: usize) -> Result<SizeLine, &'static str> {
    const FAULT: &str = "the size of a chunk is not a number";
    let line = line.strip_suffix(b"\r\n").ok_or("the line of a chunk's size does not end with CR LF")?;
    if memchr::memchr(b'\r', line).is_some() {
        return Err("a CR without LF");
    }
    let (digits, extensions) = line.split_at(memchr::memchr(b';', line).unwrap_or(line.len()));
    check_extensions(extensions)?;
    let blanks = digits.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let digits = &digits[..digits.len() - blanks];
    if digits.is_empty() {
        return Err(FAULT);
    }
    if blanks > most_blanks {
        return Err("too many blanks after the size of a chunk");
    }
    if digits.len() > MAX_DIGITS {
        return Err("the size of a chunk has too many digits");
    }
    let size = digits.iter().try_fold(0, |n, &digit| match char::from(digit).to_digit(16) {
        Some(digit) => Ok(n << 4 | u64::from(digit)),
        None => Err(FAULT),
    })?;
    Ok(SizeLine { size, extensions: extensions.len() })
}

/// Rejects extensions in which another reader could find the line end elsewhere: those with a
/// control character or an unterminated quoted string.
fn check_extensions(extensions: &[u8]) -> Result<(), &'static str> {
    if extensions.iter().any(|byte| *byte != b'\t' && byte.is_ascii_control()) {
        return Err("a control character in the extensions of a chunk");
    }
    let mut rest = extensions.iter();
    let mut quoted = false;
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => quoted = !quoted,
            // A backslash quotes the next byte, whatever it is (RFC 9110 section 5.6.4).
            b'\\' if quoted => drop(rest.next()),
            _ => {}
        }
    }
    if quoted { Err("a string without an end in the extensions of a chunk") } else { Ok(()) }
}
