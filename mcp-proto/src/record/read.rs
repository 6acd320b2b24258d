//! Reads a recording. The input is untrusted: the result is a recording, or an error with its line.

use super::hook::Denials;
use super::value::{Value, member};
use super::{FORMAT, Redaction};
use crate::client::ClientConfig;
use crate::input::WiredClientInput;
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
    pub(super) lines: Vec<Line>,
    /// Whether it extends to the end of the client.
    pub complete: bool,
}

/// One line after the first.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Line {
    Input(Instant, WiredClientInput),
    /// An output, as text. It is only compared.
    Output(RawJson),
    /// A refusal of the message hook. It belongs to the recording as a whole.
    Denied(usize, String),
    End,
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
    let mut rest = Bytes::copy_from_slice(bytes);
    let mut number = 0;
    let mut next = || -> Option<Result<Object, ReadError>> {
        if rest.is_empty() {
            return None;
        }
        number += 1;
        let fail = |why| Err(ReadError { line: number, why });
        let Some(end) = memchr::memchr(b'\n', &rest) else { return Some(fail(ReadProblem::Cut)) };
        let line = rest.split_to(end + 1);
        let object = RawJson::parse(line).map_err(|defect| DecodeError::new(defect.kind.as_str()));
        Some(object.and_then(|json| Object::read(&json)).or_else(|e| fail(ReadProblem::Line(e))))
    };
    if !is_recording(bytes) {
        return Err(ReadError { line: 1, why: ReadProblem::NotARecording });
    }
    let head = next().ok_or(ReadError { line: 1, why: ReadProblem::NotARecording })??;
    let at_line = |line| move |why| ReadError { line, why };
    let mut recording = header(&head).map_err(at_line(1))?;
    let (mut line, mut inputs, mut outputs) = (1, 0, 0);
    while let Some(object) = next() {
        line += 1;
        let object = object?;
        if recording.complete {
            return Err(at_line(line)(ReadProblem::AfterEnd));
        }
        let parsed = body(&object).map_err(ReadProblem::Line).map_err(at_line(line))?;
        match &parsed {
            Line::Input(..) => inputs += 1,
            Line::Output(_) => outputs += 1,
            Line::Denied(number, reason) => drop(recording.denials.insert(*number, reason.clone())),
            Line::End => {
                let counted = |key| member::<u64>(&object, key).ok();
                if (counted("inputs"), counted("outputs")) != (Some(inputs), Some(outputs)) {
                    return Err(at_line(line)(ReadProblem::Count));
                }
                recording.complete = true;
            }
        }
        recording.lines.push(parsed);
    }
    Ok(recording)
}

fn header(head: &Object) -> Result<Recording, ReadProblem> {
    match member::<u64>(head, "mcp-recording") {
        Ok(FORMAT) => {}
        Ok(format) => return Err(ReadProblem::Format(format)),
        Err(_) => return Err(ReadProblem::NotARecording),
    }
    let read = || -> Result<Recording, DecodeError> {
        let role: String = member(head, "role")?;
        if role != "client" {
            return Err(super::value::unknown(&role));
        }
        Ok(Recording {
            version: member(head, "version")?,
            redaction: if member(head, "redacted")? { Redaction::Redacted } else { Redaction::Raw },
            config: Arc::new(member(head, "config")?),
            seed: member(head, "seed")?,
            start: member(head, "at")?,
            denials: Denials::new(),
            lines: Vec::new(),
            complete: false,
        })
    };
    read().map_err(ReadProblem::Line)
}

fn body(line: &Object) -> Result<Line, DecodeError> {
    if line.get("in").is_some() {
        return super::line::read_input(line).map(|(at, input)| Line::Input(at, input));
    }
    if line.get("out").is_some() {
        return Ok(Line::Output(line.to_json()));
    }
    if line.get("denied").is_some() {
        return Ok(Line::Denied(member(line, "denied")?, member(line, "why")?));
    }
    match line.get("end") {
        Some(_) => Ok(Line::End),
        None => Err(DecodeError::new("neither an input nor an output, nor a refusal")),
    }
}

/// Writes the first line.
pub(super) fn write_header(config: &ClientConfig, seed: &[u8; 32], start: Instant, redaction: Redaction) -> Object {
    Object::new()
        .with("mcp-recording", FORMAT)
        .with("role", "client")
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("redacted", redaction == Redaction::Redacted)
        .with("seed", seed.write())
        .with("at", start.write())
        .with("config", config.write())
}
