//! Secrets in running text: `name=value` of queries and forms, `"name": "value"` of JSON inside a
//! string, `Bearer …`, and the password of a URL. It decides about single characters. The caller
//! knows whether they belong to a string, a header field or a body.

use super::names::Word;

/// Reads a text character by character. A non-ASCII character may be any byte above 0x7F.
#[derive(Clone, Default)]
pub(super) struct Prose {
    state: ProseState,
    word: Word,
    /// Hexadecimal digits of a percent-encoded character, and how many are missing.
    percent: Option<(u8, u8)>,
    /// Inside a value: the previous character was a backslash that escapes the next one.
    escaped: bool,
}

#[derive(Clone, Copy, PartialEq, Default)]
enum ProseState {
    #[default]
    Plain,
    /// After a secret name and a quote.
    Named,
    /// After a secret name, a quote and a colon.
    Value,
    /// After the word `Bearer` and a space.
    Bearer,
    Masked(Until),
    /// After a word, a colon and this many slashes.
    Scheme(u8),
    Authority,
    /// Inside the brackets of an IPv6 address.
    Bracket,
    /// After this many digits of what is either a port or a password.
    Port(u8),
}

/// The end of a value.
#[derive(Clone, Copy, PartialEq)]
enum Until {
    /// `name=value`.
    Pair,
    /// `"value"`.
    Quote,
    /// A word.
    Token,
    /// `://user:password@`.
    Host,
    /// The end of the text.
    End,
}

impl Prose {
    /// Adds the next character. Returns whether it is masked.
    pub(super) fn masks(&mut self, byte: u8) -> bool {
        let ProseState::Masked(until) = self.state else { return self.open(byte) };
        self.escaped = false;
        if byte == b'\\' && until == Until::Quote {
            // The meaning of a backslash depends on how often the text was quoted, so nothing after
            // it is reliable.
            self.state = ProseState::Masked(Until::End);
            return true;
        }
        let ends = match until {
            Until::Pair => matches!(byte, b'&' | b'#' | b'"') || is_space(byte),
            Until::Quote => byte == b'"',
            Until::Token => matches!(byte, b'&' | b'"' | b',' | b';' | b'}' | b']') || is_space(byte),
            Until::Host => matches!(byte, b'@' | b'/' | b'?' | b'#' | b'"') || is_space(byte),
            Until::End => false,
        };
        if ends {
            self.word.clear();
            self.state = if byte == b'@' { ProseState::Authority } else { ProseState::Plain };
        }
        !ends
    }

    /// Returns whether this is inside a value, or the next character may begin one.
    pub(super) fn in_value(&self) -> bool {
        matches!(self.state, ProseState::Masked(_) | ProseState::Value | ProseState::Bearer)
    }

    /// Returns whether this is inside a value that only the end of the text ends.
    pub(super) fn masks_all(&self) -> bool {
        self.state == ProseState::Masked(Until::End)
    }

    /// Inside a value, after an unmasked backslash: returns the character to write, so that the two
    /// are a JSON escape.
    pub(super) fn escape(&mut self, byte: u8) -> u8 {
        match (byte, self.state) {
            (b'"', _) if !self.escaped => {
                self.masks(byte);
                return byte;
            }
            (b'n' | b'r' | b't' | b'\\', ProseState::Value) => return byte,
            (b'u', _) => self.state = ProseState::Masked(Until::End),
            (_, ProseState::Masked(_)) => self.escaped = !self.escaped,
            _ => self.state = ProseState::Masked(Until::Token),
        }
        b'\\'
    }

    /// Skips a character that is not part of a name and begins no value.
    pub(super) fn skip(&mut self) {
        *self = Self::default();
    }

    fn open(&mut self, byte: u8) -> bool {
        match self.state {
            ProseState::Plain => {
                self.plain(byte);
                false
            }
            ProseState::Named => match byte {
                b'"' | b'\'' | b'\\' => false,
                b':' => self.enter(ProseState::Value, false),
                _ if is_space(byte) => false,
                _ => self.again(byte),
            },
            ProseState::Value => match byte {
                b'"' => self.enter(ProseState::Masked(Until::Quote), false),
                b'{' | b'[' => self.enter(ProseState::Masked(Until::End), false),
                b'\\' => false,
                b',' | b'}' | b']' => self.again(byte),
                _ if is_space(byte) => false,
                _ => self.enter(ProseState::Masked(Until::Token), true),
            },
            ProseState::Bearer => match byte {
                b'"' => self.again(byte),
                _ if is_space(byte) => false,
                _ => self.enter(ProseState::Masked(Until::Token), true),
            },
            ProseState::Scheme(0) if byte == b'/' => self.enter(ProseState::Scheme(1), false),
            ProseState::Scheme(1) if byte == b'/' => self.enter(ProseState::Authority, false),
            ProseState::Scheme(_) => self.again(byte),
            ProseState::Authority => match byte {
                b':' => self.enter(ProseState::Port(0), false),
                b'[' => self.enter(ProseState::Bracket, false),
                b'/' | b'?' | b'#' | b'"' | b'&' | b'=' => self.again(byte),
                _ if is_space(byte) => self.again(byte),
                _ => false,
            },
            ProseState::Bracket => match byte {
                b']' => self.enter(ProseState::Authority, false),
                b':' | b'.' | b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' => false,
                _ => self.again(byte),
            },
            ProseState::Port(digits) => match byte {
                b'0'..=b'9' if digits < 5 => self.enter(ProseState::Port(digits + 1), false),
                b'@' => self.enter(ProseState::Authority, false),
                b'/' | b'?' | b'#' | b'"' | b'&' | b',' | b')' => self.again(byte),
                _ if is_space(byte) => self.again(byte),
                _ => self.enter(ProseState::Masked(Until::Host), true),
            },
            ProseState::Masked(_) => true,
        }
    }

    fn enter(&mut self, state: ProseState, mask: bool) -> bool {
        self.state = state;
        self.escaped = false;
        mask
    }

    /// The byte did not match: it is plain text.
    fn again(&mut self, byte: u8) -> bool {
        self.state = ProseState::Plain;
        self.word.clear();
        self.plain(byte);
        false
    }

    fn plain(&mut self, byte: u8) {
        if let Some((so_far, left)) = self.percent.take()
            && let Some(digit) = char::from(byte).to_digit(16)
        {
            let value = so_far << 4 | digit as u8;
            if left > 1 {
                self.percent = Some((value, left - 1));
            } else {
                self.character(value);
            }
        } else if byte == b'%' {
            self.percent = Some((0, 2));
        } else {
            self.character(byte);
        }
    }

    fn character(&mut self, byte: u8) {
        match byte {
            b'_' | b'-' | b'\\' => return,
            _ if byte.is_ascii_alphanumeric() => return self.word.push(byte),
            b'=' if self.word.is_secret_parameter() => _ = self.enter(ProseState::Masked(Until::Pair), false),
            b'"' | b'\'' if self.word.is_secret() => self.state = ProseState::Named,
            b':' if !self.word.is_empty() => self.state = ProseState::Scheme(0),
            b' ' if self.word.is("bearer") => self.state = ProseState::Bearer,
            _ => {}
        }
        self.word.clear();
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
