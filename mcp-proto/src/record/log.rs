//! The format of recordings, which all engines share: a first line, then a line for each input,
//! each output, and each note. Reading and replaying one. A file is untrusted: the result is a
//! recording, or an error with its line.

use super::Redaction;
use super::replay::{Difference, Summary};
use crate::observer::Observable;
use crate::rpc::{DecodeError, EncodeError, Object, RawJson};
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

/// The version of the format.
const FORMAT: u64 = 3;

/// The beginning of the first line.
const MAGIC: &[u8] = b"{\"mcp-recording\":";

/// An engine whose runs can be recorded and replayed: a function of its start, its seed and its
/// inputs.
pub trait Replay:
    Observable<Input: Clone + PartialEq + fmt::Debug + Serialize + DeserializeOwned + Send + Sync> + Sized
{
    /// The name of the engine in the first line.
    const ENGINE: &'static str;
    /// Whether the engine itself bounds the outputs that the driver does not take. If so, the
    /// outputs may depend on the time at which they are taken.
    const BOUNDS_OUTPUTS: bool;
    /// What the engine is created from, beside its seed.
    type Start: Serialize + DeserializeOwned;
    /// What a callback of the application returned, which is no input.
    type Note: Serialize + DeserializeOwned;
    /// Masks secrets. Its state follows the inputs.
    type Mask: fmt::Debug + Send + Sync;
    /// An output, or what an input returned, as it is written. It is only compared.
    type Line: Serialize;

    /// Creates the mask of a recording.
    fn mask(redaction: Redaction, start: &Self::Start) -> Self::Mask;

    /// Creates the engine of a recording.
    fn create(log: &Log<Self>) -> Self;

    /// Returns the time at which it begins.
    fn origin(start: &Self::Start) -> Instant {
        let _ = start;
        Instant::ZERO
    }

    /// Applies an input.
    fn apply(&mut self, now: Instant, input: Self::Input) -> Self::Returned;

    /// Takes the next output.
    fn poll(&mut self) -> Option<Self::Output>;

    /// Returns an input as it is written. One that was written before stays the same.
    fn written(mask: &mut Self::Mask, input: &Self::Input) -> Self::Input;

    /// Returns whether an input has values of the application, which may be nested too deeply to be
    /// read back.
    fn may_be_unreadable(input: &Self::Input) -> bool;

    /// Returns what an input returned. `None` if nothing.
    fn returned(mask: &Self::Mask, returned: &Self::Returned) -> Option<Self::Line>;

    /// Returns an output.
    fn output(mask: &mut Self::Mask, output: &Self::Output) -> Self::Line;

    /// Returns whether an output is the last one of the engine.
    fn is_last(output: &Self::Output) -> bool;

    /// Returns the number of bytes that an input reads.
    fn bytes_read(input: &Self::Input) -> usize {
        let _ = input;
        0
    }

    /// Returns the number of bytes that an output writes.
    fn bytes_written(output: &Self::Output) -> usize {
        let _ = output;
        0
    }
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header<S> {
    #[serde(rename = "mcp-recording")]
    format: u64,
    engine: String,
    version: String,
    redaction: Redaction,
    seed: [u8; 32],
    start: S,
}

/// Returns the first line of a recording.
pub(super) fn first_line<E: Replay>(
    redaction: Redaction,
    start: &E::Start,
    seed: [u8; 32],
) -> Result<RawJson, EncodeError> {
    let (engine, version) = (E::ENGINE.into(), env!("CARGO_PKG_VERSION").into());
    RawJson::encode(&Header { format: FORMAT, engine, version, redaction, seed, start })
}

/// A line after the first, with outputs of the type `O` and notes of the type `N`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) enum Line<I, O, N> {
    Input(#[serde(with = "crate::record::value")] Instant, I),
    /// An output, or what the input before it returned.
    Output(O),
    /// It belongs to the recording as a whole.
    Note(N),
    End {
        inputs: u64,
        outputs: u64,
    },
}

/// A line of an engine, as it is written.
pub(super) type WrittenLine<'a, E> = Line<&'a <E as Observable>::Input, <E as Replay>::Line, <E as Replay>::Note>;

/// A line of an engine, as it is read. Of an output only that it is one.
pub(super) type ReadLine<E> = Line<<E as Observable>::Input, IgnoredAny, <E as Replay>::Note>;

impl<I: Serialize, O: Serialize, N: Serialize> Line<I, O, N> {
    /// Returns the line as JSON.
    pub(super) fn json(&self) -> Result<RawJson, EncodeError> {
        RawJson::encode(self)
    }

    /// Returns an error if the line could not be read back.
    pub(super) fn check<E: Replay>(&self) -> Result<(), DecodeError> {
        let line = self.json().map_err(|e| DecodeError::new(e.to_string()))?;
        line.decode::<ReadLine<E>>().map(drop)
    }
}

/// A recorded run of an engine.
pub struct Log<E: Replay> {
    /// The version of this crate that wrote it. Another version may behave differently, which a
    /// replay shows.
    pub version: String,
    /// The parts that it omits.
    pub redaction: Redaction,
    /// What the engine is created from, beside its seed.
    pub start: E::Start,
    /// Whether it extends to the end of the engine.
    pub complete: bool,
    pub(super) seed: [u8; 32],
    pub(super) notes: Vec<E::Note>,
    /// An output is its whole line. Notes have none here.
    lines: Vec<Line<E::Input, RawJson, ()>>,
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
    /// The first line is not that of a recording of this engine.
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

/// Returns the name of the engine that a recording is of: `client` or `supervisor`. `None` if the
/// bytes do not begin like a recording. A malformed one has the name `""`.
pub fn engine_of(bytes: &[u8]) -> Option<String> {
    let head = bytes.starts_with(MAGIC).then(|| RecordingLines::new(bytes).next())?;
    let engine = |json: RawJson| Object::read(&json).and_then(|head| head.required("engine"));
    Some(head.and_then(Result::ok).and_then(|(_, json)| engine(json).ok()).unwrap_or_default())
}

impl<E: Replay> Log<E> {
    /// Returns the seed, for [`Replay::create`].
    pub fn seed(&self) -> [u8; 32] {
        self.seed
    }

    /// Reads a recording. The memory use is proportional to `bytes`.
    ///
    /// # Errors
    /// [`ReadError`] for the first invalid line. [`replay`](Self::replay) checks whether the lines
    /// are consistent.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let at_line = |line| move |why| ReadError { line, why };
        if !bytes.starts_with(MAGIC) {
            return Err(at_line(1)(ReadProblem::NotARecording));
        }
        let mut lines = RecordingLines::new(bytes);
        let (_, head) = lines.next().ok_or(at_line(1)(ReadProblem::NotARecording))??;
        let mut log = Self::begin(&head).map_err(at_line(1))?;
        let mut read = (0, 0);
        for next in lines {
            let (line, json) = next?;
            if log.complete {
                return Err(at_line(line)(ReadProblem::AfterEnd));
            }
            log.lines.push(match json.decode::<ReadLine<E>>().map_err(ReadProblem::Line).map_err(at_line(line))? {
                Line::Input(at, input) => {
                    read.0 += 1;
                    Line::Input(at, input)
                }
                Line::Output(_) => {
                    read.1 += 1;
                    Line::Output(json)
                }
                Line::Note(note) => {
                    log.notes.push(note);
                    Line::Note(())
                }
                Line::End { inputs, outputs } if (inputs, outputs) == read => {
                    log.complete = true;
                    Line::End { inputs, outputs }
                }
                Line::End { .. } => return Err(at_line(line)(ReadProblem::Count)),
            });
        }
        Ok(log)
    }

    /// Reads the first line.
    fn begin(head: &RawJson) -> Result<Self, ReadProblem> {
        let members = Object::read(head).map_err(|_| ReadProblem::NotARecording)?;
        match members.required("mcp-recording") {
            Ok(FORMAT) => {}
            Ok(format) => return Err(ReadProblem::Format(format)),
            Err(_) => return Err(ReadProblem::NotARecording),
        }
        if members.required::<String>("engine").map_err(ReadProblem::Line)? != E::ENGINE {
            return Err(ReadProblem::NotARecording);
        }
        let Header { version, redaction, seed, start, .. } = head.decode().map_err(ReadProblem::Line)?;
        Ok(Self { version, redaction, start, complete: false, seed, notes: Vec::new(), lines: Vec::new() })
    }

    /// Creates an engine with the same start and seed, applies the same inputs at the same times,
    /// and compares what each returns and all outputs, in order, byte by byte. Outputs after the
    /// last one of an incomplete recording are not compared. The memory use is proportional to the
    /// recording.
    ///
    /// # Errors
    /// The first [`Difference`].
    pub fn replay(&self) -> Result<Summary, Difference> {
        let mut engine = E::create(self);
        let mut mask = E::mask(self.redaction, &self.start);
        let mut summary = Summary { complete: self.complete, ..Summary::default() };
        let origin = E::origin(&self.start);
        let mut latest = origin;
        // The number of outputs in the lines to come.
        let mut left = self.lines.iter().filter(|line| matches!(line, Line::Output(_))).count();
        // What the latest input returned, which precedes its outputs.
        let mut returned = None;
        let mut outputs = VecDeque::new();
        for (number, line) in self.lines.iter().enumerate() {
            let differ = |recorded: Option<&RawJson>, replayed: Option<E::Line>| {
                let replayed = replayed.and_then(|line| WrittenLine::<E>::Output(line).json().ok());
                Difference::check(number, recorded, replayed.as_ref())
            };
            match line {
                Line::Input(now, input) => {
                    differ(None, returned.take())?;
                    summary.inputs += 1;
                    latest = latest.max(*now);
                    summary.bytes_read += E::bytes_read(input) as u64;
                    E::written(&mut mask, input);
                    returned = E::returned(&mask, &engine.apply(*now, input.clone()));
                    // A file that takes no outputs keeps none.
                    while !E::BOUNDS_OUTPUTS
                        && let Some(output) = engine.poll()
                    {
                        if outputs.len() <= left {
                            outputs.push_back(output);
                        }
                    }
                }
                Line::Output(recorded) => {
                    summary.outputs += 1;
                    left -= 1;
                    let replayed = returned.take().or_else(|| {
                        let output = outputs.pop_front().or_else(|| engine.poll())?;
                        summary.bytes_written += E::bytes_written(&output) as u64;
                        Some(E::output(&mut mask, &output))
                    });
                    differ(Some(recorded), replayed)?;
                }
                Line::Note(()) => {}
                Line::End { .. } => {
                    let more = || outputs.pop_front().or_else(|| engine.poll()).map(|more| E::output(&mut mask, &more));
                    differ(None, returned.take().or_else(more))?;
                }
            }
        }
        summary.time = latest.since(origin);
        Ok(summary)
    }
}

impl<E: Replay<Start: fmt::Debug>> fmt::Debug for Log<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut log = f.debug_struct("Log");
        log.field("version", &self.version).field("redaction", &self.redaction).field("start", &self.start);
        log.field("complete", &self.complete).field("lines", &self.lines.len()).finish_non_exhaustive()
    }
}

/// The lines of a recording, with their numbers.
struct RecordingLines {
    rest: Bytes,
    number: usize,
}

impl RecordingLines {
    fn new(bytes: &[u8]) -> Self {
        Self { rest: Bytes::copy_from_slice(bytes), number: 0 }
    }
}

impl Iterator for RecordingLines {
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
