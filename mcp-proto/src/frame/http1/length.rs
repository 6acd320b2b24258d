//! Where a body ends (RFC 9112 sections 6 and 7).

use super::Input;
use super::head::{is_field, members};
use crate::exchange::Headers;
use alloc::vec::Vec;
use bytes::Bytes;

/// The longest line of a chunk's size with its extensions.
const MAX_SIZE_LINE: usize = 4 << 10;

/// The most that trailer fields may hold together. They are dropped.
const MAX_TRAILER: usize = 16 << 10;

/// What is still to come of a body.
#[derive(Debug)]
pub(super) enum Length {
    /// So many bytes.
    Known(u64),
    /// Chunks.
    Chunked(Chunk),
    /// All up to the end of the connection.
    Close,
}

/// Where in the chunks.
#[derive(Debug)]
pub(super) enum Chunk {
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
    /// A coding other than `chunked`.
    Unknown,
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
        (None, Some(coding)) if coding.eq_ignore_ascii_case("chunked") && codings.next().is_none() => Declared::Chunked,
        (None, Some(_)) => Declared::Unknown,
    }
}

impl Length {
    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunk::Size(Vec::new()))
    }

    /// The next part; the text of an error is for people.
    pub(super) fn next(&mut self, input: &mut Input, eof: bool) -> Result<Piece, &'static str> {
        match self {
            Self::Known(0) => Ok(Piece::End),
            Self::Known(left) => match take(input, left) {
                Piece::More if eof => Ok(Piece::Cut),
                piece => Ok(piece),
            },
            Self::Chunked(chunk) => match chunk.next(input)? {
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

impl Chunk {
    fn next(&mut self, input: &mut Input) -> Result<Piece, &'static str> {
        loop {
            *self = match self {
                Self::Size(line) => match input.line(line, MAX_SIZE_LINE) {
                    None => return Ok(Piece::More),
                    Some(false) => return Err("the line of a chunk's size is too long"),
                    Some(true) => match size(line)? {
                        0 => Self::Trailer { line: Vec::new(), room: MAX_TRAILER },
                        size => Self::Data(size),
                    },
                },
                Self::Data(0) => Self::DataEnd(Vec::new()),
                Self::Data(left) => return Ok(take(input, left)),
                Self::DataEnd(line) => match input.line(line, 2) {
                    None if b"\r\n".starts_with(line) => return Ok(Piece::More),
                    Some(true) if line == b"\r\n" => Self::Size(Vec::new()),
                    _ => return Err("a chunk is longer than its size"),
                },
                Self::Trailer { line, room } => match input.line(line, *room) {
                    None => return Ok(Piece::More),
                    Some(true) if line == b"\r\n" => Self::Done,
                    Some(true) if !line.ends_with(b"\r\n") => return Err("a trailer line does not end with CR LF"),
                    Some(true) if is_field(line) => Self::Trailer { room: *room - line.len(), line: Vec::new() },
                    Some(true) => return Err("a trailer is not legal"),
                    Some(false) => return Err("the trailer is too long"),
                },
                Self::Done => return Ok(Piece::End),
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

/// Hexadecimal digits, and perhaps extensions, which mean nothing to us.
fn size(line: &[u8]) -> Result<u64, &'static str> {
    const FAULT: &str = "the size of a chunk is not a number";
    let line = line.strip_suffix(b"\r\n").ok_or("the line of a chunk's size does not end with CR LF")?;
    if memchr::memchr(b'\r', line).is_some() {
        return Err("a CR without LF");
    }
    let (digits, extensions) = line.split_at(memchr::memchr(b';', line).unwrap_or(line.len()));
    if extensions.iter().any(|byte| *byte != b'\t' && byte.is_ascii_control()) {
        return Err("a control character in the extensions of a chunk");
    }
    let blanks = digits.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let digits = &digits[..digits.len() - blanks];
    if digits.is_empty() {
        return Err(FAULT);
    }
    digits.iter().try_fold(0_u64, |n, &digit| match char::from(digit).to_digit(16) {
        Some(_) if n >> 60 > 0 => Err("the size of a chunk is too large"),
        Some(digit) => Ok(n << 4 | u64::from(digit)),
        None => Err(FAULT),
    })
}
