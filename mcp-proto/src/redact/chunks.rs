//! The framing of a body in chunks (RFC 9112 section 7.1), by the rules of the codec.

/// Where in the chunks the next byte is.
#[derive(Clone)]
pub(super) struct Chunks {
    at: At,
    /// Of the current chunk: its size, later what is left of it.
    size: u64,
    /// Hexadecimal digits of its size, and blanks behind them.
    digits: u8,
    blanks: u8,
    max_blanks: u8,
}

#[derive(Clone, Copy, PartialEq)]
enum At {
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
pub(super) enum Part {
    Framing,
    Data,
    /// The last byte before the trailer fields.
    Last,
    /// No framing: the codec reads no further.
    Broken,
}

impl Chunks {
    /// As many hexadecimal digits as 64 bits need.
    const MAX_DIGITS: u8 = 16;

    /// Before the first chunk of a request. A size has nothing behind it but extensions.
    pub(super) fn of_request() -> Self {
        Self { at: At::Size, size: 0, digits: 0, blanks: 0, max_blanks: 0 }
    }

    /// Before the first chunk of a response. Some servers pad the size with blanks.
    pub(super) fn of_response() -> Self {
        Self { max_blanks: 16, ..Self::of_request() }
    }

    pub(super) fn step(&mut self, byte: u8) -> Part {
        let next = match (self.at, byte) {
            (At::Size, b'\r') if self.digits > 0 => At::SizeEnd,
            (At::Size, b';') if self.digits > 0 => At::Extension(Quote::None),
            (At::Size, b' ' | b'\t') if self.digits > 0 && self.blanks < self.max_blanks => {
                self.blanks += 1;
                At::Size
            }
            (At::Size, _) => match char::from(byte).to_digit(16) {
                Some(digit) if self.blanks == 0 && self.digits < Self::MAX_DIGITS => {
                    self.size = self.size << 4 | u64::from(digit);
                    self.digits += 1;
                    At::Size
                }
                _ => return Part::Broken,
            },
            (At::Extension(Quote::None), b'\r') => At::SizeEnd,
            (At::Extension(_), _) if byte != b'\t' && byte.is_ascii_control() => return Part::Broken,
            (At::Extension(quote), _) => At::Extension(match (quote, byte) {
                (Quote::None, b'"') | (Quote::Escape, _) => Quote::Open,
                (Quote::Open, b'"') => Quote::None,
                (Quote::Open, b'\\') => Quote::Escape,
                (quote, _) => quote,
            }),
            (At::SizeEnd, b'\n') if self.size == 0 => return Part::Last,
            (At::SizeEnd, b'\n') => At::Data,
            (At::Data, _) => {
                self.size -= 1;
                if self.size == 0 {
                    self.at = At::DataEnd;
                }
                return Part::Data;
            }
            (At::DataEnd, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => {
                (self.digits, self.blanks) = (0, 0);
                At::Size
            }
            (At::SizeEnd | At::DataEnd | At::DataLf, _) => return Part::Broken,
        };
        self.at = next;
        Part::Framing
    }
}
