//! JSON, and other text where JSON is expected. It does not check the grammar: any text between
//! quotes is a string, and a string before a colon is a key. So nothing nests, and no text makes
//! this fail or grow.

use super::names::{Meaning, Word};
use super::pairs::Pairs;
use super::{MASK, mask_of};

/// The digits of an escaped `~`.
const TILDE: &[u8; 4] = b"007e";

/// A text, byte by byte.
#[derive(Clone, Default)]
pub(super) struct TextRedactor {
    string: Option<Str>,
    pairs: Pairs,
    /// The string that has just ended, in case it is a key.
    key: Option<Meaning>,
    /// The meaning of the next value.
    meaning: Meaning,
    /// Open brackets below a secret key.
    depth: u64,
    in_number: bool,
    /// Set for server-sent events, where an empty line ends everything unfinished.
    events: Option<EventLineState>,
}

/// A line of an event stream, which ends with CR, LF or both (WHATWG HTML section 9.2.5).
#[derive(Clone, Copy, PartialEq)]
enum EventLineState {
    Empty,
    Begun,
    /// A CR has ended it. An LF after it belongs to the same line end.
    Ended,
}

/// Inside a string.
#[derive(Clone)]
struct Str {
    word: Word,
    meaning: Meaning,
    link: UrlPart,
    escape: Escape,
}

#[derive(Clone, Copy, PartialEq)]
enum Escape {
    None,
    /// After an unmasked backslash.
    Slash,
    /// After a masked backslash.
    Gone,
    /// Inside `\u`, after this many digits.
    Hex(u8, u16),
}

/// The part of a URL that the next byte belongs to.
#[derive(Clone, Copy, PartialEq)]
enum UrlPart {
    Scheme,
    Slashes(u8),
    Host,
    Port,
    Masked,
}

impl TextRedactor {
    /// Creates the state for the data of an event stream.
    pub(super) fn events() -> Self {
        Self { events: Some(EventLineState::Empty), ..Self::default() }
    }

    /// Follows the lines of an event stream.
    fn follow(&mut self, line: EventLineState, byte: u8) {
        let next = match (line, byte) {
            (_, b'\r') => EventLineState::Ended,
            (_, b'\n') => EventLineState::Empty,
            _ => EventLineState::Begun,
        };
        let was_empty = line == EventLineState::Empty || line == EventLineState::Ended && byte == b'\r';
        if was_empty && next != EventLineState::Begun {
            *self = Self::default();
        }
        self.events = Some(next);
    }

    /// Returns the next byte, or its replacement.
    pub(super) fn step(&mut self, byte: u8) -> u8 {
        if let Some(line) = self.events {
            self.follow(line, byte);
        }
        let shown = if self.string.is_some() { self.inside(byte) } else { self.between(byte) };
        // Line breaks are never masked.
        if matches!(byte, b'\r' | b'\n') { byte } else { shown }
    }

    fn is_secret(&self) -> bool {
        self.depth > 0 || self.meaning == Meaning::Secret
    }

    fn between(&mut self, byte: u8) -> u8 {
        let secret = self.is_secret();
        if byte == b'"' {
            let meaning = if secret || self.pairs.in_value() { Meaning::Secret } else { self.meaning };
            self.string = Some(Str { word: Word::default(), meaning, link: UrlPart::Scheme, escape: Escape::None });
            self.pairs.skip();
            self.key = None;
            self.in_number = false;
            return byte;
        }
        let first_digit = !self.in_number;
        self.in_number = byte.is_ascii_digit() || self.in_number && matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
        match byte {
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(secret.into());
                self.end_value();
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.end_value();
            }
            b',' => self.end_value(),
            b':' => self.meaning = self.key.take().unwrap_or(self.meaning),
            _ => {}
        }
        match byte {
            // A number must not begin with a zero before another digit.
            b'0'..=b'9' if secret => b'0' + u8::from(first_digit),
            _ if secret => byte,
            _ if self.pairs.masks(byte) => b'x',
            _ => byte,
        }
    }

    fn end_value(&mut self) {
        self.meaning = Meaning::Plain;
        self.key = None;
    }

    fn inside(&mut self, byte: u8) -> u8 {
        let Some(string) = &mut self.string else { return byte };
        if byte == b'"' && matches!(string.escape, Escape::None | Escape::Hex(..)) {
            self.key = Some(string.word.meaning());
            self.meaning = Meaning::Plain;
            self.pairs.skip();
            self.string = None;
            return byte;
        }
        match string.meaning {
            Meaning::Plain => string.plain(&mut self.pairs, byte),
            Meaning::Kept => {
                string.skip(byte);
                byte
            }
            Meaning::Link => string.link(byte),
            Meaning::Secret => string.secret(byte),
        }
    }
}

impl Str {
    /// Only looks for the end of the string.
    fn skip(&mut self, byte: u8) {
        self.escape = if byte == b'\\' && self.escape == Escape::None { Escape::Gone } else { Escape::None };
    }

    /// Masks a byte. An escape stays one, of a character that a form encodes, so that the string
    /// stays as long when it is read.
    fn secret(&mut self, byte: u8) -> u8 {
        let (next, shown) = match self.escape {
            Escape::None | Escape::Gone if byte == b'\\' => (Escape::Slash, byte),
            Escape::None | Escape::Gone => (Escape::None, mask_of(byte)),
            Escape::Slash => match byte {
                b'u' => (Escape::Hex(0, 0), byte),
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => (Escape::None, b'/'),
                _ => (Escape::None, MASK),
            },
            Escape::Hex(digits, _) if byte.is_ascii_hexdigit() => {
                let next = if digits == 3 { Escape::None } else { Escape::Hex(digits + 1, 0) };
                (next, TILDE.get(usize::from(digits)).copied().unwrap_or(MASK))
            }
            // Not JSON.
            Escape::Hex(..) => (Escape::None, mask_of(byte)),
        };
        self.escape = next;
        shown
    }

    fn plain(&mut self, pairs: &mut Pairs, byte: u8) -> u8 {
        match self.escape {
            Escape::None if byte == b'\\' && pairs.in_value() => {
                // Whether it ends the value depends on how often the text was quoted.
                pairs.mask_rest();
                self.escape = Escape::Gone;
                b'x'
            }
            Escape::None if byte == b'\\' => {
                self.escape = Escape::Slash;
                byte
            }
            Escape::None => {
                self.word.push(byte);
                if pairs.masks(byte) { b'x' } else { byte }
            }
            Escape::Slash => {
                self.escape = Escape::None;
                match byte {
                    b'u' => self.escape = Escape::Hex(0, 0),
                    b'n' | b'r' | b't' | b'b' | b'f' => self.character(pairs, b' '),
                    _ => self.character(pairs, byte),
                }
                byte
            }
            Escape::Gone => {
                self.escape = Escape::None;
                b'x'
            }
            Escape::Hex(digits, value) => {
                let Some(digit) = char::from(byte).to_digit(16) else {
                    // Not JSON.
                    self.escape = Escape::None;
                    return self.plain(pairs, byte);
                };
                let value = value << 4 | digit as u16;
                self.escape = Escape::Hex(digits + 1, value);
                if digits == 3 {
                    self.escape = Escape::None;
                    match u8::try_from(value) {
                        Ok(byte) if byte.is_ascii() => self.character(pairs, byte),
                        _ => {
                            self.word.push(0xFF);
                            pairs.skip();
                        }
                    }
                }
                byte
            }
        }
    }

    /// Handles the character of an escape that was written unmasked.
    fn character(&mut self, pairs: &mut Pairs, byte: u8) {
        self.word.push(byte);
        pairs.masks(byte);
    }

    /// Shows the scheme and the host of a link.
    fn link(&mut self, byte: u8) -> u8 {
        let name = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        let next = match (self.link, byte) {
            (UrlPart::Scheme, b':') => UrlPart::Slashes(0),
            (UrlPart::Scheme, _) if name || byte == b'+' => UrlPart::Scheme,
            (UrlPart::Slashes(0), b'/') => UrlPart::Slashes(1),
            (UrlPart::Slashes(1), b'/') => UrlPart::Host,
            (UrlPart::Host, b'[') => UrlPart::Host,
            (UrlPart::Host, _) if name => UrlPart::Host,
            (UrlPart::Host | UrlPart::Port, b':') => UrlPart::Port,
            (UrlPart::Port, b'0'..=b'9' | b']') => UrlPart::Port,
            (UrlPart::Host | UrlPart::Port, b'/' | b'?' | b'#') => {
                self.link = UrlPart::Masked;
                return byte;
            }
            _ => UrlPart::Masked,
        };
        self.link = next;
        self.skip(byte);
        if next == UrlPart::Masked { b'x' } else { byte }
    }
}
