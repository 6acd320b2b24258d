//! The framing of a body in chunks (RFC 9112 section 7.1), by the rules of the codec.

/// Where in the chunks the next byte is.
#[derive(Clone)]
pub(super) struct ChunkFraming {
    at: ChunkState,
    /// Of the current chunk: its size, later what is left of it.
    size: u64,
    /// Hexadecimal digits of its size, and blanks behind them.
    digits: u8,
    blanks: u8,
    max_blanks: u8,
}

#[derive(Clone, Copy, PartialEq)]
enum ChunkState {
    Size,
    Extension(Quote),
    /// After the CR of the line of the size.
    SizeEnd,
    Data,
    DataEnd,
    /// After the CR behind the data.
    DataLf,
}

/// In an extension: whether a quoted string is open.
#[derive(Clone, Copy, PartialEq)]
enum Quote {
    None,
    Open,
    /// After a backslash in the string.
    Escape,
}

/// What a byte is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum ChunkPart {
    Framing,
    Data,
    /// The last byte before the trailer fields.
    Last,
    /// No framing: the codec reads no further.
    Broken,
}

impl ChunkFraming {
    /// As many hexadecimal digits as 64 bits need.
    const MAX_DIGITS: u8 = 16;

    /// Before the first chunk of a request. A size has nothing behind it but extensions.
    pub(super) fn of_request() -> Self {
        Self { at: ChunkState::Size, size: 0, digits: 0, blanks: 0, max_blanks: 0 }
    }

    /// Before the first chunk of a response. Some servers pad the size with blanks.
    pub(super) fn of_response() -> Self {
        Self { max_blanks: 16, ..Self::of_request() }
    }

    pub(super) fn step(&mut self, byte: u8) -> ChunkPart {
        let next = match (self.at, byte) {
            (ChunkState::Size, b'\r') if self.digits > 0 => ChunkState::SizeEnd,
            (ChunkState::Size, b';') if self.digits > 0 => ChunkState::Extension(Quote::None),
            (ChunkState::Size, b' ' | b'\t') if self.digits > 0 && self.blanks < self.max_blanks => {
                self.blanks += 1;
                ChunkState::Size
            }
            (ChunkState::Size, _) => match char::from(byte).to_digit(16) {
                Some(digit) if self.blanks == 0 && self.digits < Self::MAX_DIGITS => {
                    self.size = self.size << 4 | u64::from(digit);
                    self.digits += 1;
                    ChunkState::Size
                }
                _ => return ChunkPart::Broken,
            },
            (ChunkState::Extension(Quote::None), b'\r') => ChunkState::SizeEnd,
            (ChunkState::Extension(_), _) if byte != b'\t' && byte.is_ascii_control() => return ChunkPart::Broken,
            (ChunkState::Extension(quote), _) => ChunkState::Extension(match (quote, byte) {
                (Quote::None, b'"') | (Quote::Escape, _) => Quote::Open,
                (Quote::Open, b'"') => Quote::None,
                (Quote::Open, b'\\') => Quote::Escape,
                (quote, _) => quote,
            }),
            (ChunkState::SizeEnd, b'\n') if self.size == 0 => return ChunkPart::Last,
            (ChunkState::SizeEnd, b'\n') => ChunkState::Data,
            (ChunkState::Data, _) => {
                self.size -= 1;
                if self.size == 0 {
                    self.at = ChunkState::DataEnd;
                }
                return ChunkPart::Data;
            }
            (ChunkState::DataEnd, b'\r') => ChunkState::DataLf,
            (ChunkState::DataLf, b'\n') => {
                (self.digits, self.blanks) = (0, 0);
                ChunkState::Size
            }
            (ChunkState::SizeEnd | ChunkState::DataEnd | ChunkState::DataLf, _) => return ChunkPart::Broken,
        };
        self.at = next;
        ChunkPart::Framing
    }
}
