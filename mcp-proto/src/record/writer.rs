//! Writes the lines of a recording.

use crate::rpc::{EncodeError, RawJson};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;
use std::sync::{Mutex, PoisonError};

/// The receiver of the lines. It gets each complete line with its newline, and an empty slice at
/// the end, which requests a flush. Its error is the reason why the recording ends.
pub(super) type Sink = Box<dyn FnMut(&[u8]) -> Result<(), String> + Send>;

/// The lines of a recording in progress.
pub(super) struct Writer {
    /// `None` once the recording has ended or a write has failed. An observer is `Sync`: this is
    /// what the mutex is for, and nothing locks it.
    sink: Option<Mutex<Sink>>,
    /// Why a write failed, until it is reported.
    failed: Option<String>,
    inputs: u64,
    outputs: u64,
}

impl Writer {
    pub(super) const fn new(sink: Sink) -> Self {
        Self { sink: Some(Mutex::new(sink)), failed: None, inputs: 0, outputs: 0 }
    }

    /// Returns whether further lines are written.
    pub(super) const fn is_open(&self) -> bool {
        self.sink.is_some()
    }

    /// Writes the line of an input.
    pub(super) fn input(&mut self, line: Result<RawJson, EncodeError>) {
        self.inputs += 1;
        self.line(line);
    }

    /// Writes the line of an output.
    pub(super) fn output(&mut self, line: Result<RawJson, EncodeError>) {
        self.outputs += 1;
        self.line(line);
    }

    /// Writes another line.
    pub(super) fn line(&mut self, line: Result<RawJson, EncodeError>) {
        match line {
            Ok(line) => self.send(&[line.as_bytes(), b"\n"].concat()),
            Err(e) => self.fail(format!("a line cannot be recorded: {e}")),
        }
    }

    /// Writes the last line, which states the numbers of inputs and outputs.
    pub(super) fn end(&mut self, line: impl FnOnce(u64, u64) -> Result<RawJson, EncodeError>) {
        self.line(line(self.inputs, self.outputs));
        self.send(b"");
        self.sink = None;
    }

    /// Ends the recording for a reason.
    pub(super) fn fail(&mut self, why: String) {
        self.failed = Some(why);
        self.sink = None;
    }

    /// Takes the reason why the recording has ended, if it was not its end.
    pub(super) fn take_failure(&mut self) -> Option<String> {
        self.failed.take()
    }

    fn send(&mut self, bytes: &[u8]) {
        let sink = self.sink.as_mut().map(|sink| sink.get_mut().unwrap_or_else(PoisonError::into_inner));
        if let Some(sink) = sink
            && let Err(why) = sink(bytes)
        {
            self.fail(why);
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("inputs", &self.inputs).field("outputs", &self.outputs).finish_non_exhaustive()
    }
}
