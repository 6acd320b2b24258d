//! Values with secret names inside a text: `name=value` of queries, forms and arguments,
//! `"name": value` of JSON inside a string, and `Bearer value` of a challenge. It decides about
//! single characters. The caller knows whether they belong to a string, a header field or a body.

use super::names::{CHALLENGE, Word};

/// Reads a text character by character. A non-ASCII character may be any byte above 0x7F.
#[derive(Clone, Default)]
pub(super) struct Pairs {
    state: PairState,
    word: Word,
    /// Hexadecimal digits of a percent-encoded character, and how many are missing.
    percent: Option<(u8, u8)>,
    /// Whether it is the value of the field in which a server challenges a client.
    is_challenge: bool,
}

#[derive(Clone, Copy, PartialEq, Default)]
enum PairState {
    #[default]
    Plain,
    /// After a secret name and a quote.
    Named,
    /// After the word `Bearer` and a space.
    Bearer,
    /// The same in a challenge, after these bytes of the name of a parameter.
    Parameter {
        /// Each bit is a name of the list that begins like this.
        fits: u16,
        len: usize,
    },
    Masked(Until),
}

/// The end of a value.
#[derive(Clone, Copy, PartialEq)]
enum Until {
    /// That of `name=value`.
    Pair,
    /// That of a word in a list.
    Token,
    /// The end of the text.
    End,
}

impl Pairs {
    /// Creates the state for the value of a header field. In a challenge, parameters may follow the
    /// name of a scheme.
    pub(super) fn of_field(name: &[u8]) -> Self {
        Self { is_challenge: name.eq_ignore_ascii_case(b"www-authenticate"), ..Self::default() }
    }

    /// Adds the next character. Returns whether it is masked.
    pub(super) fn masks(&mut self, byte: u8) -> bool {
        match self.state {
            PairState::Plain => self.plain(byte),
            PairState::Named => match byte {
                b'"' | b'\\' => {}
                // How the value is quoted, and where it ends, depends on how often the text is.
                b':' => self.mask_rest(),
                _ if is_space(byte) => {}
                _ => self.begin(byte),
            },
            PairState::Bearer => match byte {
                b'"' => self.begin(byte),
                _ if is_space(byte) => {}
                _ if self.is_challenge => return self.parameter(u16::MAX, 0, byte),
                _ => {
                    self.state = PairState::Masked(Until::Token);
                    return true;
                }
            },
            PairState::Parameter { fits, len } => return self.parameter(fits, len, byte),
            PairState::Masked(until) => {
                let ends = match until {
                    Until::Pair => matches!(byte, b'&' | b'#' | b'"') || is_space(byte),
                    Until::Token => matches!(byte, b'&' | b'"' | b',' | b';') || is_space(byte),
                    Until::End => false,
                };
                if ends {
                    self.skip();
                }
                return !ends;
            }
        }
        false
    }

    /// Returns whether this is inside a value, or the next character may begin one.
    pub(super) fn in_value(&self) -> bool {
        matches!(self.state, PairState::Masked(_) | PairState::Bearer)
    }

    /// Masks everything up to the end of the text.
    pub(super) fn mask_rest(&mut self) {
        self.state = PairState::Masked(Until::End);
    }

    /// Skips a character that is not part of a name and begins no value.
    pub(super) fn skip(&mut self) {
        *self = Self { is_challenge: self.is_challenge, ..Self::default() };
    }

    /// Adds a character of the name of a parameter, unless it is one of a token.
    fn parameter(&mut self, fits: u16, len: usize, byte: u8) -> bool {
        let known = || CHALLENGE.iter().zip(0..).filter(|(_, bit)| fits >> bit & 1 == 1);
        if byte == b'=' && known().any(|(name, _)| name.len() == len) {
            self.skip();
            return false;
        }
        let next = known().filter(|(name, _)| name.as_bytes().get(len) == Some(&byte.to_ascii_lowercase()));
        let fits = next.fold(0, |fits, (_, bit)| fits | 1 << bit);
        if fits == 0 {
            self.state = PairState::Masked(Until::Token);
            return len == 0 || self.masks(byte);
        }
        self.state = PairState::Parameter { fits, len: len + 1 };
        false
    }

    /// The byte did not match: it is plain text.
    fn begin(&mut self, byte: u8) {
        self.skip();
        self.plain(byte);
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
            b'=' if self.word.is_secret_parameter() => self.state = PairState::Masked(Until::Pair),
            b'"' if self.word.is_secret() => self.state = PairState::Named,
            b' ' if self.word.is("bearer") => self.state = PairState::Bearer,
            _ => {}
        }
        self.word.clear();
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
