//! A recording in progress: the observer of an engine that writes it.

use super::Redaction;
use super::log::{Replay, WrittenLine, first_line};
use super::writer::{Sink, Writer};
use crate::observer::Observer;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Returns what callbacks of the application have returned since the last call.
pub(super) type TakeNotes<E> = Box<dyn FnMut() -> Vec<<E as Replay>::Note> + Send + Sync>;

/// The observer of an engine that is recorded.
pub(super) struct RecordingObserver<E: Replay> {
    redaction: Redaction,
    mask: E::Mask,
    writer: Writer,
    notes: TakeNotes<E>,
}

impl<E: Replay> RecordingObserver<E> {
    /// Creates the recording of an engine that is created from `start`, as it is written.
    pub(super) fn new(redaction: Redaction, sink: Sink, start: &E::Start, notes: TakeNotes<E>) -> Self {
        Self { redaction, mask: E::mask(redaction, start), writer: Writer::new(sink), notes }
    }

    /// Writes the first line.
    pub(super) fn begin(&mut self, start: &E::Start, seed: [u8; 32]) {
        self.writer.line(first_line::<E>(self.redaction, start, seed));
    }

    /// Ends the recording for a reason, before it has begun.
    pub(super) fn refuse(&mut self, why: &str) {
        self.writer.fail(why.into());
    }

    /// Records what callbacks have returned.
    fn write_notes(&mut self) {
        for note in (self.notes)() {
            self.writer.line(WrittenLine::<E>::Note(note).json());
        }
    }
}

impl<E: Replay> Observer<E> for RecordingObserver<E> {
    fn input(&mut self, now: Instant, input: &E::Input, _: Option<Instant>) -> Result<(), String> {
        if !self.writer.is_open() {
            return Ok(());
        }
        if E::may_be_unreadable(input)
            && let Err(e) = WrittenLine::<E>::Input(now, input).check::<E>()
        {
            self.writer.fail(format!("an input cannot be recorded: {e}"));
            return Ok(());
        }
        let written = E::written(&mut self.mask, input);
        self.writer.input(WrittenLine::<E>::Input(now, &written).json());
        Ok(())
    }

    fn returned(&mut self, returned: &E::Returned) -> Result<(), String> {
        self.write_notes();
        if let Some(line) = E::returned(&self.mask, returned).filter(|_| self.writer.is_open()) {
            self.writer.output(WrittenLine::<E>::Output(line).json());
        }
        self.writer.take_failure().map_or(Ok(()), Err)
    }

    fn output(&mut self, output: Option<&E::Output>) {
        let Some(output) = output.filter(|_| self.writer.is_open()) else { return };
        self.write_notes();
        let line = E::output(&mut self.mask, output);
        self.writer.output(WrittenLine::<E>::Output(line).json());
        if E::is_last(output) {
            self.writer.end(|inputs, outputs| WrittenLine::<E>::End { inputs, outputs }.json());
        }
    }
}

impl<E: Replay> fmt::Debug for RecordingObserver<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").field("mask", &self.mask).field("writer", &self.writer).finish_non_exhaustive()
    }
}
