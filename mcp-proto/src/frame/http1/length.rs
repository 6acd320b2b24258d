//! Where a body ends (RFC 9112 sections 6 and 7).

use super::Input;
use super::head::{is_field, members};
use crate::exchange::Headers;
use alloc::vec::Vec;
use bytes::Bytes;

/// Maximum number of digits in the size of a chunk: as many as 64 bits need.
const MAX_DIGITS: usize = 16;

/// Maximum number of blanks between the size of a chunk in a response and what follows it.
const MAX_BLANKS: usize = 16;

/// Maximum size of the chunk extensions of one message in all, in bytes. They mean nothing here and are dropped.
const MAX_EXTENSIONS: usize = 16 << 10;

/// Maximum size of the trailer fields of one message in all, in bytes. They are dropped.
const MAX_TRAILER: usize = 16 << 10;

/// What is still to come of a body.
#[derive(Debug)]
pub(super) enum Length {
    /// So many bytes.
    Known(u64),
    /// Chunks.
    Chunked(Chunks),
    /// All up to the end of the connection.
    Close,
}

/// A body in chunks, and what its framing may still have. Without these totals a sender could hold a connection with framing that carries
/// no content (CVE-2024-22019).
#[derive(Debug)]
pub(super) struct Chunks {
    at: Chunk,
    /// How many bytes of extensions may still come.
    extensions: usize,
    /// How many blanks may follow a size. RFC 9112 section 7.1 allows none; some servers pad the size.
    blanks: usize,
}

/// Where in the chunks.
#[derive(Debug)]
enum Chunk {
    Size(Vec<u8>),
    Data(u64),
    DataEnd(Vec<u8>),
    Trailer { line: Vec<u8>, room: usize },
    Done,
}

/// The next part of a body.
#[derive(Debug)]
pub(super) enum Piece {
    Data(Bytes),
    /// Nothing without more bytes.
    More,
    /// Nothing will come, and the end is not reached.
    Cut,
    End,
}

/// What the fields say of the length.
#[derive(Debug, PartialEq)]
pub(super) enum Declared {
    Nothing,
    Known(u64),
    Chunked,
    /// Codings of which the last is `chunked`, and it is not the only one.
    Unknown,
    /// Codings of which the last is not `chunked`: a request has no end that way (RFC 9112 section 6.3).
    Unfinished,
    Invalid(&'static str),
}

/// Reads `Content-Length` and `Transfer-Encoding`. Equal lengths that are repeated count once (RFC 9112 section 6.3).
pub(super) fn declared(headers: &Headers, old: bool) -> Declared {
    let mut lengths = members(headers, "content-length");
    let mut codings = members(headers, "transfer-encoding");
    match (lengths.next(), codings.next()) {
        (None, None) => Declared::Nothing,
        (Some(_), Some(_)) => Declared::Invalid("both a content-length and a transfer-encoding"),
        (Some(length), None) => {
            if lengths.any(|other| other != length) {
                return Declared::Invalid("content-lengths differ");
            }
            match length.parse() {
                // `parse` lets a plus pass.
                Ok(number) if !length.starts_with('+') => Declared::Known(number),
                _ => Declared::Invalid("the content-length is not a number"),
            }
        }
        (None, Some(_)) if old => Declared::Invalid("a transfer-encoding in HTTP/1.0"),
        (None, Some(first)) => {
            let (last, more) = codings.fold((first, false), |_, next| (next, true));
            match (last.eq_ignore_ascii_case("chunked"), more) {
                (true, false) => Declared::Chunked,
                (true, true) => Declared::Unknown,
                (false, _) => Declared::Unfinished,
            }
        }
    }
}

impl Length {
    pub(super) fn chunked_request() -> Self {
        Self::chunked(0)
    }

    pub(super) fn chunked_response() -> Self {
        Self::chunked(MAX_BLANKS)
    }

    fn chunked(blanks: usize) -> Self {
        Self::Chunked(Chunks { at: Chunk::Size(Vec::new()), extensions: MAX_EXTENSIONS, blanks })
    }

    /// Bytes held of framing that is half read.
    pub(super) fn buffered(&self) -> usize {
        match self {
            Self::Chunked(chunks) => match &chunks.at {
                Chunk::Size(line) | Chunk::DataEnd(line) | Chunk::Trailer { line, .. } => line.capacity(),
                Chunk::Data(_) | Chunk::Done => 0,
            },
            Self::Known(_) | Self::Close => 0,
        }
    }

    /// The next part; the text of an error is for people.
    pub(super) fn next(&mut self, input: &mut Input, eof: bool) -> Result<Piece, &'static str> {
        match self {
            Self::Known(0) => Ok(Piece::End),
            Self::Known(left) => match take(input, left) {
                Piece::More if eof => Ok(Piece::Cut),
                piece => Ok(piece),
            },
            Self::Chunked(chunks) => match chunks.next(input)? {
                Piece::More if eof => Ok(Piece::Cut),
                piece => Ok(piece),
            },
            Self::Close => match take(input, &mut { u64::MAX }) {
                Piece::More if eof => Ok(Piece::End),
                piece => Ok(piece),
            },
        }
    }
}

impl Chunks {
    fn next(&mut self, input: &mut Input) -> Result<Piece, &'static str> {
        loop {
            self.at = match &mut self.at {
                Chunk::Size(line) => match input.line(line, MAX_DIGITS + self.blanks + self.extensions + 2) {
                    None => return Ok(Piece::More),
                    // Extensions of earlier chunks have made the room for this line smaller.
                    Some(false) if line.contains(&b';') => return Err("the chunk extensions are too long"),
                    Some(false) => return Err("the line of a chunk's size is too long"),
                    Some(true) => {
                        let line = size_line(line, self.blanks)?;
                        let left = self.extensions.checked_sub(line.extensions);
                        self.extensions = left.ok_or("the chunk extensions are too long")?;
                        match line.size {
                            0 => Chunk::Trailer { line: Vec::new(), room: MAX_TRAILER },
                            size => Chunk::Data(size),
                        }
                    }
                },
                Chunk::Data(0) => Chunk::DataEnd(Vec::new()),
                Chunk::Data(left) => return Ok(take(input, left)),
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

fn take(input: &mut Input, left: &mut u64) -> Piece {
    match input.front().map(<[u8]>::len) {
        None => Piece::More,
        Some(there) => {
            let count = usize::try_from(*left).map_or(there, |left| left.min(there));
            *left -= count as u64;
            Piece::Data(input.take(count))
        }
    }
}

/// What stands in the line before the bytes of a chunk.
struct SizeLine {
    size: u64,
    /// The length of the extensions, with the semicolon before them.
    extensions: usize,
}

/// Hexadecimal digits, perhaps blanks, and perhaps extensions (RFC 9112 section 7.1).
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

/// Refuses what could make another reader end the line elsewhere: a control character, or a quoted string that is still open.
fn check_extensions(extensions: &[u8]) -> Result<(), &'static str> {
    if extensions.iter().any(|byte| *byte != b'\t' && byte.is_ascii_control()) {
        return Err("a control character in the extensions of a chunk");
    }
    let mut rest = extensions.iter();
    let mut quoted = false;
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => quoted = !quoted,
            // The next one is itself, whatever it is (RFC 9110 section 5.6.4).
            b'\\' if quoted => drop(rest.next()),
            _ => {}
        }
    }
    if quoted { Err("a string without an end in the extensions of a chunk") } else { Ok(()) }
}
