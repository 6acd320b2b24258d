//! Lines and columns.

use alloc::vec::Vec;

/// Bytes between two marks of a [`Lines`].
const BLOCK: usize = 1024;

/// A position in a text, for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Position {
    /// The line, from 1.
    pub(super) line: u32,
    /// The column in characters, from 1.
    pub(super) column: u32,
}

impl Position {
    /// The beginning of a text.
    pub(super) const START: Self = Self { line: 1, column: 1 };
}

/// The lines of a text. A look-up takes as long in a long line as in a short one.
pub(super) struct Lines<'a> {
    text: &'a [u8],
    /// The positions of the first bytes.
    starts: Vec<usize>,
    /// The number of characters before each block.
    marks: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let text = text.as_bytes();
        let starts = [0].into_iter().chain(memchr::memchr_iter(b'\n', text).map(|end| end + 1)).collect();
        let mut marks = Vec::with_capacity(text.len() / BLOCK + 1);
        let mut before = 0;
        for block in text.chunks(BLOCK) {
            marks.push(before);
            before += characters(block);
        }
        // For a text whose length is a multiple of the block.
        marks.push(before);
        Self { text, starts, marks }
    }

    /// Returns the position of a byte.
    pub(super) fn position(&self, at: usize) -> Position {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at);
        let start = line.checked_sub(1).and_then(|line| self.starts.get(line)).copied().unwrap_or_default();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Position { line: number(line), column: number(self.before(at) - self.before(start) + 1) }
    }

    /// Returns the number of characters before a position.
    fn before(&self, at: usize) -> usize {
        let mark = at / BLOCK;
        self.marks.get(mark).copied().unwrap_or_default() + characters(&self.text[mark * BLOCK..at])
    }
}

/// Returns the number of characters that begin in a part of a text.
fn characters(part: &[u8]) -> usize {
    part.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positions_are_those_of_a_count(short in "[aé\n]{0,20}", times in 0..300_usize) {
            let text = short.repeat(times);
            let lines = Lines::new(&text);
            for at in (0..=text.len()).step_by(97).filter(|at| text.is_char_boundary(*at)) {
                let before: String = text[..at].into();
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
                let expected = Position { line: line as u32, column: column as u32 };
                prop_assert_eq!(lines.position(at), expected);
            }
        }
    }
}
