//! Reads a recording. The input is untrusted: the result is a recording, or an error with its line.

use super::Redaction;
use super::findings::Findings;
use super::hook::Denials;
use super::line::{self, FORMAT, Header, Line};
use crate::client::ClientConfig;
use crate::rpc::{DecodeError, Object, RawJson};
use crate::time::Instant;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// A recorded run of a client.
#[derive(Clone, PartialEq, Debug)]
pub struct Recording {
    /// The version of this crate that wrote it. Another version may behave differently, which a
    /// replay shows.
    pub version: String,
    /// The parts that it omits.
    pub redaction: Redaction,
    /// The configuration of the client.
    pub config: Arc<ClientConfig>,
    pub(super) seed: [u8; 32],
    pub(super) start: Instant,
    pub(super) denials: Denials,
    pub(super) findings: Findings,
    /// An output is its whole line.
    pub(super) lines: Vec<Line<RawJson>>,
    /// Whether it extends to the end of the client.
    pub complete: bool,
}

/// Bytes that are not a recording.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The fault of the line.
    pub why: ReadProblem,
}

/// The fault of a line in a recording.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ReadProblem {
    /// The first line is not that of a recording.
    NotARecording,
    /// The format is unknown.
    Format(u64),
    /// The line is truncated. Everything from here on is lost.
    Cut,
    /// The line is malformed. The text says why.
    Line(DecodeError),
    /// The numbers of inputs and outputs differ from those in the last line.
    Count,
    /// There are bytes after the end.
    AfterEnd,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.why {
            ReadProblem::NotARecording => f.write_str("this is no recording"),
            ReadProblem::Format(format) => write!(f, "the format {format} is not known"),
            ReadProblem::Cut => f.write_str("the line is truncated; the lines before it can be replayed without it"),
            ReadProblem::Line(e) => e.fmt(f),
            ReadProblem::Count => f.write_str("lines are missing, or were added"),
            ReadProblem::AfterEnd => f.write_str("something follows the end"),
        }
    }
}

impl core::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.why {
            ReadProblem::Line(e) => Some(e),
            _ => None,
        }
    }
}

/// Returns whether bytes begin like a recording.
pub fn is_recording(bytes: &[u8]) -> bool {
    bytes.starts_with(b"{\"mcp-recording\":")
}

/// Reads a recording. The memory use is proportional to `bytes`.
///
/// # Errors
/// [`ReadError`] for the first invalid line. [`Recording::replay`] checks whether the lines are
/// consistent.
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    if !is_recording(bytes) {
        return Err(ReadError { line: 1, why: ReadProblem::NotARecording });
    }
    let mut lines = Lines::new(bytes);
    let head = lines.head()?;
    let at_line = |line| move |why| ReadError { line, why };
    let mut recording = header(&head).map_err(at_line(1))?;
    let mut read = (0, 0);
    for next in lines {
        let (line, json) = next?;
        if recording.complete {
            return Err(at_line(line)(ReadProblem::AfterEnd));
        }
        recording.lines.push(match line::read(&json).map_err(ReadProblem::Line).map_err(at_line(line))? {
            Line::Input(at, input) => {
                read.0 += 1;
                Line::Input(at, input)
            }
            Line::Output(_) => {
                read.1 += 1;
                Line::Output(json)
            }
            Line::Denied(number, reason) => {
                recording.denials.insert(number, reason.clone());
                Line::Denied(number, reason)
            }
            Line::Found(number, found) => {
                recording.findings.insert(number, found.clone());
                Line::Found(number, found)
            }
            Line::End { inputs, outputs } if (inputs, outputs) == read => {
                recording.complete = true;
                Line::End { inputs, outputs }
            }
            Line::End { .. } => return Err(at_line(line)(ReadProblem::Count)),
        });
    }
    Ok(recording)
}

/// The lines of a recording, with their numbers.
pub(super) struct Lines {
    rest: Bytes,
    number: usize,
}

impl Lines {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self { rest: Bytes::copy_from_slice(bytes), number: 0 }
    }

    /// Returns the first line.
    pub(super) fn head(&mut self) -> Result<RawJson, ReadError> {
        let head = self.next().ok_or(ReadError { line: 1, why: ReadProblem::NotARecording })?;
        head.map(|(_, json)| json)
    }
}

impl Iterator for Lines {
    type Item = Result<(usize, RawJson), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let fail = |why| Err(ReadError { line: self.number, why });
        let Some(end) = memchr::memchr(b'\n', &self.rest) else { return Some(fail(ReadProblem::Cut)) };
        let line = self.rest.split_to(end + 1);
        Some(match RawJson::parse(line) {
            Ok(json) => Ok((self.number, json)),
            Err(defect) => fail(ReadProblem::Line(DecodeError::new(defect.kind.as_str()))),
        })
    }
}

fn header(head: &RawJson) -> Result<Recording, ReadProblem> {
    match Object::read(head).and_then(|head| head.required("mcp-recording")) {
        Ok(FORMAT) => {}
        Ok(format) => return Err(ReadProblem::Format(format)),
        Err(_) => return Err(ReadProblem::NotARecording),
    }
    let Header { format: _, version, redaction, seed, start, config } = head.decode().map_err(ReadProblem::Line)?;
    let config = Arc::new(config);
    Ok(Recording {
        version,
        redaction,
        config,
        seed,
        start,
        denials: Denials::new(),
        findings: Findings::new(),
        lines: Vec::new(),
        complete: false,
    })
}
