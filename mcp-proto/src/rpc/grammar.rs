//! A strict grammar of JSON (RFC 8259), as steps over a text, without knowledge of messages.
//! Nothing here recurses or allocates.

use super::InvalidKind;
use core::ops::Range;

/// The maximum nesting for any limit: one bit of a `u128` for each level.
pub(super) const MAX_DEPTH: u32 = 128;

/// Returns the range of the one JSON value in `bytes`.
pub(super) fn value(bytes: &[u8]) -> Result<Range<usize>, InvalidKind> {
    whole(bytes, |scan| scan.value(0))
}

/// Reads a whole text.
pub(super) fn whole<T>(
    bytes: &[u8],
    read: impl FnOnce(&mut Scan<'_>) -> Result<T, InvalidKind>,
) -> Result<T, InvalidKind> {
    let (text, cut) = utf8_prefix(bytes);
    let mut scan = Scan::new(text, MAX_DEPTH);
    let found = read(&mut scan).and_then(|found| scan.end().map(|()| found));
    let found = add_fault(found, cut)?;
    if scan.lone { Err(InvalidKind::LoneSurrogate) } else { Ok(found) }
}

/// Returns the longest prefix that is UTF-8, and the fault of the bytes after it. A character that
/// the end of the input splits is truncated, not invalid.
pub(super) fn utf8_prefix(bytes: &[u8]) -> (&[u8], Option<InvalidKind>) {
    match core::str::from_utf8(bytes) {
        Ok(_) => (bytes, None),
        Err(e) => {
            let kind = if e.error_len().is_some() { InvalidKind::Utf8 } else { InvalidKind::Truncated };
            (&bytes[..e.valid_up_to()], Some(kind))
        }
    }
}

/// Adds the fault of the encoding in reading order: any other fault of the prefix comes first,
/// except that the prefix itself looks truncated.
pub(super) fn add_fault<T>(outcome: Result<T, InvalidKind>, cut: Option<InvalidKind>) -> Result<T, InvalidKind> {
    match (outcome, cut) {
        (Ok(_) | Err(InvalidKind::Truncated), Some(kind)) => Err(kind),
        (outcome, _) => outcome,
    }
}

/// Length of a string above which it is searched in larger steps, in bytes.
const SHORT: usize = 64;

/// Returns the number of bytes before the next quote, backslash or control character: those that
/// end a string, or need an escape in one.
pub(super) fn plain(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGHS: u64 = ONES << 7;
    let mut rest = text;
    // Most strings are short.
    for _ in 0..SHORT / 8 {
        let Some((word, after)) = rest.split_first_chunk() else { break };
        let word = u64::from_le_bytes(*word);
        let (quote, slash) = (word ^ (ONES * b'"' as u64), word ^ (ONES * b'\\' as u64));
        // A byte below its bound borrows, which sets its high bit. Only bytes after the first match
        // can match falsely.
        let low = word.wrapping_sub(ONES * 0x20) & !word;
        let hits = (low | quote.wrapping_sub(ONES) & !quote | slash.wrapping_sub(ONES) & !slash) & HIGHS;
        if hits != 0 {
            return text.len() - rest.len() + hits.trailing_zeros() as usize / 8;
        }
        rest = after;
    }
    text.len() - rest.len() + plain_blocks(rest)
}

/// Like [`plain`], for the rest of a long string.
fn plain_blocks(rest: &[u8]) -> usize {
    let is_plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    // Without an early exit, the compiler compares many bytes at a time.
    let is_clean = |block: &&[u8; SHORT]| block.iter().fold(true, |clean, byte| clean & is_plain(byte));
    let clean = rest.as_chunks().0.iter().take_while(is_clean).count() * SHORT;
    clean + rest[clean..].iter().take_while(|byte| is_plain(byte)).count()
}

/// A pass over a text that is known to be UTF-8.
pub(super) struct Scan<'a> {
    pub(super) text: &'a [u8],
    /// The current position.
    pub(super) at: usize,
    pub(super) max_depth: u32,
    /// Whether a lone surrogate was found.
    pub(super) lone: bool,
    /// Whether the latest key or checked string has an escape.
    pub(super) escaped: bool,
    /// Whether there was a CR or LF between tokens.
    pub(super) breaks: bool,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a [u8], max_depth: u32) -> Self {
        Self { text, at: 0, max_depth: max_depth.min(MAX_DEPTH), lone: false, escaped: false, breaks: false }
    }

    /// Parses any value at `outer` levels of nesting. Open brackets are kept as bits, so that the
    /// text cannot grow the stack.
    pub(super) fn value(&mut self, outer: u32) -> Result<Range<usize>, InvalidKind> {
        self.space();
        let start = self.at;
        let mut objects: u128 = 0;
        let mut depth = 0;
        'value: loop {
            self.space();
            match self.byte()? {
                b'"' => {
                    self.string()?;
                }
                open @ (b'{' | b'[') => {
                    if outer + depth >= self.max_depth {
                        return Err(InvalidKind::TooDeep);
                    }
                    let object = open == b'{';
                    self.at += 1;
                    self.space();
                    if self.byte()? == if object { b'}' } else { b']' } {
                        self.at += 1;
                    } else {
                        depth += 1;
                        objects = objects << 1 | u128::from(object);
                        if object {
                            self.key()?;
                        }
                        continue 'value;
                    }
                }
                b'-' | b'0'..=b'9' => {
                    self.number()?;
                    // Further digits may have been cut off, so the value of this number is unknown.
                    if self.at == self.text.len() && outer + depth > 0 {
                        return Err(InvalidKind::Truncated);
                    }
                }
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => return Err(InvalidKind::Syntax),
            }
            loop {
                if depth == 0 {
                    return Ok(start..self.at);
                }
                self.space();
                let object = objects & 1 == 1;
                match self.byte()? {
                    b',' => {
                        self.at += 1;
                        if object {
                            self.key()?;
                        }
                        continue 'value;
                    }
                    b'}' if object => {}
                    b']' if !object => {}
                    _ => return Err(InvalidKind::Syntax),
                }
                self.at += 1;
                depth -= 1;
                objects >>= 1;
            }
        }
    }

    /// Skips the next value of a text that was validated before, by looking only for its end.
    pub(super) fn skip(&mut self) -> Result<Range<usize>, InvalidKind> {
        self.space();
        let start = self.at;
        let mut depth: u32 = 0;
        loop {
            match self.byte()? {
                b'"' => self.skip_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1).ok_or(InvalidKind::Syntax)?;
                    self.at += 1;
                }
                // A number or a literal; inside an object or an array, also the bytes between the
                // values.
                _ => {
                    let rest = &self.text[self.at..];
                    let ends: fn(&u8) -> bool = match depth {
                        0 => |byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'),
                        _ => |byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'),
                    };
                    self.at += rest.iter().position(ends).unwrap_or(rest.len());
                }
            }
            if depth == 0 {
                return Ok(start..self.at);
            }
        }
    }

    fn skip_string(&mut self) -> Result<(), InvalidKind> {
        loop {
            // Behind the first quote, or behind an escaped character.
            self.at += 1;
            let rest = self.text.get(self.at..).unwrap_or_default();
            self.at += memchr::memchr2(b'"', b'\\', rest).ok_or(InvalidKind::Truncated)? + 1;
            if self.text[self.at - 1] == b'"' {
                return Ok(());
            }
        }
    }

    /// Skips `bracket` if it is next.
    pub(super) fn open(&mut self, bracket: u8) -> bool {
        let found = self.text.get(self.at) == Some(&bracket);
        self.at += usize::from(found);
        found
    }

    /// Moves to the value of the next member. Returns the range of its key, without the quotes.
    /// `None` at the end of the object.
    pub(super) fn member(&mut self, first: bool) -> Result<Option<Range<usize>>, InvalidKind> {
        Ok(if self.next(first, b'}')? { Some(self.key()?) } else { None })
    }

    /// Moves to the next element. Returns `false` at the end of the array.
    pub(super) fn element(&mut self, first: bool) -> Result<bool, InvalidKind> {
        self.next(first, b']')
    }

    fn next(&mut self, first: bool, close: u8) -> Result<bool, InvalidKind> {
        self.space();
        match self.byte()? {
            byte if byte == close => {
                self.at += 1;
                return Ok(false);
            }
            b',' if !first => self.at += 1,
            _ if first => {}
            _ => return Err(InvalidKind::Syntax),
        }
        Ok(true)
    }

    fn key(&mut self) -> Result<Range<usize>, InvalidKind> {
        self.space();
        if self.byte()? != b'"' {
            return Err(InvalidKind::Syntax);
        }
        let key = self.string()?;
        self.space();
        if self.byte()? != b':' {
            return Err(InvalidKind::Syntax);
        }
        self.at += 1;
        Ok(key)
    }

    /// Parses a string from its first quote. Returns its range without the quotes.
    fn string(&mut self) -> Result<Range<usize>, InvalidKind> {
        self.at += 1;
        self.escaped = false;
        let start = self.at;
        // Where the second half of a surrogate pair must begin.
        let mut high = None;
        loop {
            self.at += plain(&self.text[self.at..]);
            match self.byte()? {
                b'"' => break,
                b'\\' => {
                    self.escaped = true;
                    let escape = self.at;
                    self.at += 1;
                    match self.byte()? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                        b'u' => {
                            self.at += 1;
                            match self.unit()? {
                                0xDC00..=0xDFFF if high == Some(escape) => high = None,
                                0xDC00..=0xDFFF => self.lone = true,
                                0xD800..=0xDBFF => self.lone |= high.replace(self.at).is_some(),
                                _ => {}
                            }
                        }
                        _ => return Err(InvalidKind::Syntax),
                    }
                }
                _ => return Err(InvalidKind::Syntax),
            }
        }
        self.lone |= high.is_some();
        self.at += 1;
        Ok(start..self.at - 1)
    }

    /// Parses the four digits of a `\u`.
    fn unit(&mut self) -> Result<u16, InvalidKind> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = char::from(self.byte()?).to_digit(16).ok_or(InvalidKind::Syntax)?;
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), InvalidKind> {
        self.at += usize::from(self.byte()? == b'-');
        match self.byte()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.byte()?, b'+' | b'-'));
            self.digits()?;
        }
        match self.text.get(self.at) {
            None | Some(b' ' | b'\t' | b'\r' | b'\n' | b',' | b']' | b'}') => Ok(()),
            Some(_) => Err(InvalidKind::Syntax),
        }
    }

    /// Parses at least one digit.
    fn digits(&mut self) -> Result<(), InvalidKind> {
        if !self.byte()?.is_ascii_digit() {
            return Err(InvalidKind::Syntax);
        }
        self.at += self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        Ok(())
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), InvalidKind> {
        let rest = &self.text[self.at..];
        if rest.starts_with(word) {
            self.at += word.len();
            Ok(())
        } else if word.starts_with(rest) {
            Err(InvalidKind::Truncated)
        } else {
            Err(InvalidKind::Syntax)
        }
    }

    pub(super) fn space(&mut self) {
        while let Some(space @ (b' ' | b'\t' | b'\r' | b'\n')) = self.text.get(self.at) {
            self.breaks |= matches!(space, b'\r' | b'\n');
            self.at += 1;
        }
    }

    /// Returns the next byte without consuming it.
    fn byte(&self) -> Result<u8, InvalidKind> {
        self.text.get(self.at).copied().ok_or(InvalidKind::Truncated)
    }

    /// Checks that only white space follows.
    pub(super) fn end(&mut self) -> Result<(), InvalidKind> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(InvalidKind::Syntax) }
    }
}
