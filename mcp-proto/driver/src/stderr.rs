//! The standard error of a program, as an adapter reads it: lines for the application, and the end
//! for the error that the exit of the program may cause.

use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use mcp_proto::exchange::ExitStatus;
use mcp_proto::process::Stderr;
use std::panic::{AssertUnwindSafe, catch_unwind};

type LineFn = dyn Fn(&str) + Send + Sync;

/// The standard error of one program, as a driver reads it: passes its lines to the function of
/// [`Stderr::Lines`]. Does not keep the function alive, so that a pipe that stays open does not
/// either; the driver holds the [`Stderr`].
#[derive(Debug)]
pub struct StderrReader {
    told: Option<Weak<LineFn>>,
    lines: StderrLines,
}

impl StderrReader {
    /// Creates the reader for a program that was started with this setting. `None` if it writes to
    /// the standard error of this process, so that there is nothing to read.
    pub fn new(stderr: &Stderr) -> Option<Self> {
        let told = match stderr {
            Stderr::Inherit => return None,
            Stderr::Discard => None,
            Stderr::Lines(told) => Some(Arc::downgrade(told)),
        };
        Some(Self { told, lines: StderrLines::default() })
    }

    /// Passes on the lines that are complete with these bytes. Empty bytes are the end: passes on
    /// the last line. Catches a panic of the function: if the driver stopped reading, the program
    /// would block.
    pub fn push(&mut self, bytes: &[u8]) {
        let Some(told) = self.told.as_ref().and_then(Weak::upgrade) else { return };
        let tell = |line: &str| drop(catch_unwind(AssertUnwindSafe(|| told(line))));
        if bytes.is_empty() {
            self.lines.end(tell);
        } else {
            self.lines.push(bytes, tell);
        }
    }
}

/// Splits bytes into lines, and long lines into pieces, so that a program that writes no newline
/// uses no more memory than one piece.
#[derive(Debug, Default)]
struct StderrLines {
    line: Vec<u8>,
}

impl StderrLines {
    /// Maximum length of a piece, in bytes.
    const MAX: usize = 64 << 10;

    /// Adds bytes, and passes on every line that is complete. Replaces invalid UTF-8.
    fn push(&mut self, mut bytes: &[u8], mut told: impl FnMut(&str)) {
        while !bytes.is_empty() {
            let room = Self::MAX - self.line.len();
            let newline = memchr::memchr(b'\n', bytes).filter(|at| *at < room);
            let (piece, rest) = bytes.split_at(newline.map_or(room.min(bytes.len()), |at| at + 1));
            self.line.extend_from_slice(piece);
            bytes = rest;
            if newline.is_some() || self.line.len() == Self::MAX {
                self.end(&mut told);
            }
        }
    }

    /// Passes on the last line, if it is not empty: nothing follows.
    fn end(&mut self, mut told: impl FnMut(&str)) {
        let line = core::mem::take(&mut self.line);
        if !line.is_empty() {
            told(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
        }
    }
}

/// The last [`ExitStatus::STDERR_TAIL`] bytes of standard error.
#[derive(Debug, Default)]
pub(super) struct StderrTail {
    bytes: Vec<u8>,
}

impl StderrTail {
    /// Adds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        const MAX: usize = ExitStatus::STDERR_TAIL;
        self.bytes.extend_from_slice(&bytes[bytes.len().saturating_sub(MAX)..]);
        // Dropped in large steps, so that a stream of single bytes does not move the rest each
        // time.
        if self.bytes.len() > 2 * MAX {
            self.bytes.drain(..self.bytes.len() - MAX);
        }
    }

    /// Returns the kept bytes as text. Omits a character that was cut at the front, and replaces
    /// invalid UTF-8.
    pub(super) fn text(&self) -> String {
        let kept = &self.bytes[self.bytes.len().saturating_sub(ExitStatus::STDERR_TAIL)..];
        // If the tail is full, bytes before it may have been dropped.
        let cut = if kept.len() == ExitStatus::STDERR_TAIL {
            kept.iter().take(3).take_while(|b| **b & 0xc0 == 0x80).count()
        } else {
            0
        };
        String::from_utf8_lossy(&kept[cut..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn lines(parts: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut told) = (StderrLines::default(), Vec::new());
        parts.iter().for_each(|part| lines.push(part, |line| told.push(line.to_string())));
        lines.end(|line| told.push(line.to_string()));
        told
    }

    #[test]
    fn lines_do_not_depend_on_the_split() {
        let text = b"one\r\n\nthree \xff\nlast";
        let whole = vec!["one", "", "three \u{fffd}", "last"];
        assert_eq!(lines(&[]), Vec::<String>::new());
        assert_eq!(lines(&[b"ended\n"]), ["ended"]);
        for at in 0..=text.len() {
            assert_eq!(lines(&[&text[..at], &text[at..]]), whole);
        }
    }

    // covers: B-129
    #[test]
    fn only_the_end_of_standard_error_is_kept() {
        const MAX: usize = ExitStatus::STDERR_TAIL;
        let mut tail = StderrTail::default();
        assert_eq!(tail.text(), "");
        tail.push("größer".as_bytes());
        assert_eq!(tail.text(), "größer");
        for n in [1, 7, 1000, MAX, 3 * MAX] {
            let text: String = (0..10_000).map(|n| format!("ö{n}\n")).collect();
            let mut tail = StderrTail::default();
            for part in text.as_bytes().chunks(n) {
                tail.push(part);
                assert!(tail.bytes.capacity() <= 8 * MAX, "in chunks of {n}");
            }
            assert!(text.ends_with(&tail.text()), "in chunks of {n}");
            assert!(tail.text().len() > MAX - 2, "in chunks of {n}");
        }
    }

    // covers: B-129
    #[test]
    fn truncated_first_character_of_the_tail_is_omitted() {
        const MAX: usize = ExitStatus::STDERR_TAIL;
        for character in ['ö', '€', '😀'] {
            for shift in 0..character.len_utf8() {
                let text = character.to_string().repeat(MAX) + &"x".repeat(shift);
                for n in [1, 7, MAX - 1, MAX, MAX + 1, text.len()] {
                    let mut tail = StderrTail::default();
                    text.as_bytes().chunks(n).for_each(|part| tail.push(part));
                    let told = tail.text();
                    assert!(text.ends_with(&told), "{character} and {shift}, in chunks of {n}");
                    assert!(told.len() > MAX - character.len_utf8(), "{character} and {shift}, in chunks of {n}");
                }
            }
        }
    }

    #[test]
    fn endless_line_is_split_into_pieces() {
        let long = vec![b'x'; 2 * StderrLines::MAX + 3];
        for chunk in [1000, 4096, StderrLines::MAX, long.len()] {
            let parts: Vec<&[u8]> = long.chunks(chunk).chain([&b"\nnext\n"[..]]).collect();
            let told: Vec<usize> = lines(&parts).iter().map(String::len).collect();
            assert_eq!(told, [StderrLines::MAX, StderrLines::MAX, 3, 4], "in chunks of {chunk}");
        }
    }
}
