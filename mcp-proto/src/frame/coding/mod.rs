//! The content codings of HTTP (RFC 9110 section 8.4.1): gzip (RFC 1952) and deflate, which is zlib
//! (RFC 1950). A decoder returns all content of the bytes so far, in pieces of bounded size, so
//! that the reader of a body can stop at its limit. This module must not know a limit of a body.

mod accept;
mod crc32;
mod gzip;
mod support;

#[cfg(test)]
mod tests;

pub(super) use accept::takes_gzip;
pub(crate) use support::GzipSupport;

use super::input::ByteQueue;
use alloc::vec::Vec;
use bytes::Bytes;
use crc32::Crc32;
use gzip::GzipHeader;
use support::Inflate;

/// A supported coding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ContentCoding {
    Gzip,
    Deflate,
}

impl ContentCoding {
    /// Returns the coding of this name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        if is_gzip(name) { Some(Self::Gzip) } else { name.eq_ignore_ascii_case("deflate").then_some(Self::Deflate) }
    }
}

/// Returns whether a name is one of gzip. The old one means the same (RFC 9110 section 8.4.1.3).
fn is_gzip(name: &str) -> bool {
    name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip")
}

/// Maximum number of coded bytes without a decoded one, so that data without content ends: empty
/// blocks, empty members, long headers. A flush takes about five bytes.
const MAX_IDLE: usize = 64 << 10;

/// Decodes one body.
#[derive(Debug)]
pub(super) struct Decoder {
    support: GzipSupport,
    coding: ContentCoding,
    /// The bytes that are not decoded.
    input: ByteQueue,
    stage: CodingStage,
    inflate: Option<Inflate>,
    /// The decoder may have more output without more bytes.
    has_output: bool,
    /// Of the member of gzip so far.
    crc: Crc32,
    /// Length of that member, modulo 2^32.
    size: u32,
    /// Number of coded bytes since the last decoded one.
    idle: usize,
}

/// What the next byte belongs to.
#[derive(Debug)]
enum CodingStage {
    /// Nothing yet: the body or another member of gzip begins, or there is none.
    Start,
    Header(GzipHeader),
    /// The first byte of a body in deflate. The second one tells whether both belong to zlib.
    First(u8),
    Data,
    /// The trailer of a member of gzip. This many bytes of it were read.
    Trailer([u8; TRAILER], usize),
    /// A body in deflate is complete.
    End,
}

/// Length of the checksum and the length after a member of gzip.
const TRAILER: usize = 8;

impl Decoder {
    pub(super) fn new(coding: ContentCoding, support: GzipSupport) -> Self {
        Self {
            support,
            coding,
            input: ByteQueue::default(),
            stage: CodingStage::Start,
            inflate: None,
            has_output: false,
            crc: Crc32::new(),
            size: 0,
            idle: 0,
        }
    }

    /// Adds the next coded bytes.
    pub(super) fn bytes(&mut self, bytes: Bytes) {
        self.input.push(bytes);
    }

    /// Returns the bytes that are held.
    pub(super) fn buffered(&self) -> usize {
        self.input.held() + self.inflate.as_ref().map_or(0, |_| Inflate::HELD)
    }

    /// Returns whether [`next`](Self::next) may do something without more coded bytes.
    pub(super) fn has_more(&self) -> bool {
        self.has_output || !self.input.is_empty()
    }

    /// Returns whether the body may end here. An empty body is complete: some senders name a coding
    /// whatever they send.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.stage, CodingStage::Start | CodingStage::End)
    }

    /// Returns the next decoded bytes, at most 32 KiB. `None` if more coded bytes are needed. After
    /// an error there are none.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, &'static str> {
        while self.has_more() {
            let (used, decoded) = match self.stage {
                CodingStage::Data => self.decode()?,
                _ => self.frame().map(|used| (used, Bytes::new()))?,
            };
            self.input.skip(used);
            self.idle += used;
            if !decoded.is_empty() {
                self.idle = 0;
                return Ok(Some(decoded));
            }
            if self.idle > MAX_IDLE {
                return Err("the coded body has no content");
            }
        }
        Ok(None)
    }

    /// Takes the next byte around the data. Returns the number of bytes that were used.
    fn frame(&mut self) -> Result<usize, &'static str> {
        let Some(&byte) = self.input.front().and_then(<[u8]>::first) else { return Ok(0) };
        match &mut self.stage {
            CodingStage::Start if self.coding == ContentCoding::Deflate => self.stage = CodingStage::First(byte),
            CodingStage::Start => {
                self.stage = CodingStage::Header(GzipHeader::new());
                return Ok(0);
            }
            CodingStage::Header(header) => {
                if header.push(byte)? {
                    self.begin(false);
                }
            }
            &mut CodingStage::First(first) => {
                // Some senders leave zlib out, against RFC 9110 section 8.4.1.2.
                let inflate = self.begin(is_zlib(first, byte));
                return inflate.step(&[first]).2.map(|_| 0);
            }
            CodingStage::Trailer(trailer, len) => {
                trailer[*len] = byte;
                *len += 1;
                if *len == TRAILER {
                    let wanted = u64::from(self.size) << 32 | u64::from(self.crc.value());
                    if u64::from_le_bytes(*trailer) != wanted {
                        return Err(CHECKSUM);
                    }
                    self.stage = CodingStage::Start;
                }
            }
            CodingStage::End => return Err("bytes after the end of the coded body"),
            CodingStage::Data => return Ok(0),
        }
        Ok(1)
    }

    /// Begins the data. It may refer back to an earlier member, whose sender is the same.
    fn begin(&mut self, is_zlib: bool) -> &mut Inflate {
        (self.crc, self.size, self.stage) = (Crc32::new(), 0, CodingStage::Data);
        let support = self.support;
        let inflate = self.inflate.get_or_insert_with(|| support.inflate(is_zlib));
        inflate.restart();
        inflate
    }

    /// Decodes some bytes. Returns the number of bytes that were used, and the output.
    fn decode(&mut self) -> Result<(usize, Bytes), &'static str> {
        let Some(inflate) = &mut self.inflate else { return Ok((0, Bytes::new())) };
        let (used, output, is_done) = inflate.step(self.input.front().unwrap_or_default());
        let decoded = Bytes::copy_from_slice(output);
        self.has_output = !decoded.is_empty();
        match is_done {
            // What was decoded counts, as it would if it had arrived alone.
            Err(why) if decoded.is_empty() => return Err(why),
            Ok(false) | Err(_) => {}
            Ok(true) => {
                self.has_output = false;
                self.stage = match self.coding {
                    ContentCoding::Gzip => CodingStage::Trailer([0; TRAILER], 0),
                    ContentCoding::Deflate => CodingStage::End,
                };
            }
        }
        if self.coding == ContentCoding::Gzip {
            self.crc.update(&decoded);
            self.size = self.size.wrapping_add(decoded.len() as u32);
        }
        Ok((used, decoded))
    }
}

const CHECKSUM: &str = "the checksum of the coded body is wrong";

/// Returns whether two bytes are the header of zlib (RFC 1950 section 2.2). Deflate alone begins
/// otherwise, but for a block without compression whose unused bits are not zero.
fn is_zlib(method: u8, flags: u8) -> bool {
    method & 0x0f == 8 && method >> 4 <= 7 && u16::from_be_bytes([method, flags]).is_multiple_of(31)
}

/// Bytes from which on a text is compressed: for a smaller one the head matters more.
const WORTH: usize = 1 << 10;

/// Returns the text in gzip, always the same. `None` if it is too small, or would not be smaller.
pub(super) fn gzip(text: &[u8], support: GzipSupport) -> Option<Bytes> {
    /// Without a name, a time and a system, so that nothing but the text matters.
    const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    if text.len() <= WORTH {
        return None;
    }
    let mut coded = Vec::with_capacity(text.len() / 4);
    coded.extend_from_slice(&HEADER);
    if !support.deflate(text, &mut coded, text.len() - TRAILER - 1) {
        return None;
    }
    let mut crc = Crc32::new();
    crc.update(text);
    coded.extend_from_slice(&crc.value().to_le_bytes());
    coded.extend_from_slice(&(text.len() as u32).to_le_bytes());
    coded.shrink_to_fit();
    Some(coded.into())
}
