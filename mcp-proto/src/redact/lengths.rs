//! The length of a body according to its head (RFC 9112 section 6.3), by the rules of the codec.
//! Other rules would find the next head at another position.

/// The length of a body, as its head declares it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BodyLength {
    Nothing,
    Known(u64),
    Chunked,
    /// Codings other than a single `chunked`.
    Unknown,
    Invalid,
}

/// The members of all `Content-Length` and `Transfer-Encoding` fields.
#[derive(Clone, Default)]
pub(super) struct Lengths {
    /// The first member of a `Content-Length`. All others must be equal.
    length: Option<LengthValue>,
    number: LengthValue,
    is_invalid: bool,
    /// Number of members of `Transfer-Encoding`.
    codings: usize,
    /// Whether each of them is `chunked`.
    chunked: bool,
    coding: ListMember,
}

impl Lengths {
    const CHUNKED: &str = "chunked";

    /// Adds a byte of a `Content-Length`. Returns whether it may be part of one.
    pub(super) fn length(&mut self, byte: u8) -> bool {
        match byte {
            b',' => self.end_length(),
            _ => return self.number.push(byte),
        }
        true
    }

    /// Ends a member of a `Content-Length`.
    pub(super) fn end_length(&mut self) {
        let number = core::mem::take(&mut self.number);
        let first = *self.length.get_or_insert(number);
        self.is_invalid |= !number.is_valid() || (number.value, number.digits) != (first.value, first.digits);
    }

    /// Adds a byte of a `Transfer-Encoding`.
    pub(super) fn coding(&mut self, byte: u8) {
        match byte {
            b',' => self.end_coding(),
            _ => self.coding.push(byte, Self::CHUNKED),
        }
    }

    /// Ends a member of a `Transfer-Encoding`.
    pub(super) fn end_coding(&mut self) {
        let coding = core::mem::take(&mut self.coding);
        self.chunked = coding.is(Self::CHUNKED);
        self.codings = self.codings.saturating_add(1);
    }

    /// Returns the result of all fields. `old` is whether the message is HTTP/1.0, which has no
    /// transfer codings.
    pub(super) fn declared(&self, old: bool) -> BodyLength {
        match (self.length, self.codings) {
            _ if self.is_invalid => BodyLength::Invalid,
            (None, 0) => BodyLength::Nothing,
            (Some(length), 0) => BodyLength::Known(length.value),
            (Some(_), _) => BodyLength::Invalid,
            _ if old => BodyLength::Invalid,
            (None, 1) if self.chunked => BodyLength::Chunked,
            (None, _) => BodyLength::Unknown,
        }
    }
}

/// A decimal number with blanks around it, byte by byte. Two are equal if their texts are: `2` and
/// `02` are not.
#[derive(Clone, Copy, Default)]
struct LengthValue {
    value: u64,
    digits: usize,
    /// A blank follows the digits.
    ended: bool,
    is_invalid: bool,
}

impl LengthValue {
    /// Adds a byte. Returns whether it may be part of a number or of the blanks around it.
    fn push(&mut self, byte: u8) -> bool {
        let digit = char::from(byte).to_digit(10).filter(|_| !self.ended);
        match (digit, byte) {
            (Some(digit), _) => {
                let next = self.value.checked_mul(10).and_then(|value| value.checked_add(digit.into()));
                self.is_invalid |= next.is_none();
                self.value = next.unwrap_or_default();
                self.digits = self.digits.saturating_add(1);
            }
            (None, b' ' | b'\t') => self.ended = self.digits > 0,
            (None, _) => self.is_invalid = true,
        }
        byte.is_ascii_digit() || matches!(byte, b' ' | b'\t')
    }

    fn is_valid(&self) -> bool {
        self.digits > 0 && !self.is_invalid
    }
}

/// A member of a comma-separated list, byte by byte, compared with one word without case.
#[derive(Clone, Copy)]
pub(super) struct ListMember {
    len: usize,
    is_same: bool,
    /// A blank follows the member.
    ended: bool,
}

impl Default for ListMember {
    fn default() -> Self {
        Self { len: 0, is_same: true, ended: false }
    }
}

impl ListMember {
    pub(super) fn push(&mut self, byte: u8, word: &str) {
        if matches!(byte, b' ' | b'\t') {
            self.ended = self.len > 0;
            return;
        }
        let next = word.as_bytes().get(self.len).filter(|_| !self.ended);
        self.is_same &= next.is_some_and(|expected| expected.eq_ignore_ascii_case(&byte));
        self.len = self.len.saturating_add(1);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether the member equals the word that it was compared with.
    pub(super) fn is(&self, word: &str) -> bool {
        self.is_same && self.len == word.len()
    }
}
