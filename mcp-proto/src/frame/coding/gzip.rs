//! The header of a member of gzip (RFC 1952 section 2.3).

use super::crc32::Crc32;

/// A header, byte by byte. Its file name, comment and extra field are checked and dropped.
#[derive(Debug)]
pub(super) struct GzipHeader {
    at: HeaderAt,
    flags: u8,
    crc: Crc32,
}

/// The position of the next byte.
#[derive(Clone, Copy, Debug)]
enum HeaderAt {
    /// In the part that every header has.
    Fixed(usize),
    /// In the length of the extra field, after its first byte.
    ExtraLength(Option<u8>),
    /// In the extra field, before this number of bytes.
    Extra(u16),
    /// In a text that a zero byte ends. The value is that of its field in [`FIELDS`].
    Text(usize),
    /// In the checksum of the header, after its first byte.
    Check(Option<u8>),
    End,
}

/// Length of the part that every header has.
const FIXED: usize = 10;

/// Flags without a meaning. A member that has one cannot be decoded (RFC 1952 section 2.3.1.2).
const RESERVED: u8 = 0b1110_0000;

/// The optional fields, in their order, with the flag of each.
const FIELDS: [(u8, HeaderAt); 4] =
    [(4, HeaderAt::ExtraLength(None)), (8, HeaderAt::Text(1)), (16, HeaderAt::Text(2)), (2, HeaderAt::Check(None))];

impl GzipHeader {
    pub(super) const fn new() -> Self {
        Self { at: HeaderAt::Fixed(0), flags: 0, crc: Crc32::new() }
    }

    /// Adds a byte. Returns whether it is the last one.
    pub(super) fn push(&mut self, byte: u8) -> Result<bool, &'static str> {
        let check = self.crc.value() as u16;
        self.crc.update(&[byte]);
        self.at = match self.at {
            HeaderAt::Fixed(at) => {
                match (at, byte) {
                    (0, 0x1f) | (1, 0x8b) | (2, 8) => {}
                    (0 | 1, _) => return Err("the coded body is not gzip"),
                    (2, _) => return Err("a member of gzip is not deflate"),
                    (3, flags) if flags & RESERVED != 0 => return Err("a member of gzip has unknown flags"),
                    (3, flags) => self.flags = flags,
                    _ => {}
                }
                if at + 1 < FIXED { HeaderAt::Fixed(at + 1) } else { self.field(0) }
            }
            HeaderAt::ExtraLength(None) => HeaderAt::ExtraLength(Some(byte)),
            HeaderAt::ExtraLength(Some(low)) => self.extra(u16::from_le_bytes([low, byte])),
            HeaderAt::Extra(left) => self.extra(left - 1),
            HeaderAt::Text(field) if byte == 0 => self.field(field + 1),
            HeaderAt::Text(field) => HeaderAt::Text(field),
            // The checksum is that of everything before it.
            HeaderAt::Check(None) if check as u8 != byte => return Err(CHECK),
            HeaderAt::Check(None) => HeaderAt::Check(Some((check >> 8) as u8)),
            HeaderAt::Check(Some(high)) if high != byte => return Err(CHECK),
            HeaderAt::Check(Some(_)) | HeaderAt::End => HeaderAt::End,
        };
        Ok(matches!(self.at, HeaderAt::End))
    }

    fn extra(&self, left: u16) -> HeaderAt {
        if left == 0 { self.field(1) } else { HeaderAt::Extra(left) }
    }

    /// Returns the start of the next field that the header has, from this one on.
    fn field(&self, from: usize) -> HeaderAt {
        let mut fields = FIELDS.into_iter().skip(from);
        fields.find(|(flag, _)| self.flags & flag != 0).map_or(HeaderAt::End, |(_, at)| at)
    }
}

const CHECK: &str = "the checksum of a gzip header is wrong";
