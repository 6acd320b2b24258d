//! Who writes: the thread that takes a turn, what the system accepts at once. Another thread, which
//! is started when it is needed, waits in the operating system and writes the rest.
//!
//! | stream | bytes to write | some are left | the end |
//! |---|---|---|---|
//! | `Thread`: it cannot be written at once | the thread is woken | the thread continues | the thread drops it |
//! | `Direct`, without a thread | written in the turn | the thread is started | dropped in the turn |
//! | `Direct`, the thread waits | written in the turn | the thread is woken | the thread is woken, and drops it |
//! | `Direct`, the thread has a step | no other thread writes | the thread continues | the thread drops it |
//!
//! The last row keeps the order of the bytes: while the thread has a step, [`Transfer::step`] has
//! none.

use crate::direct::Direct;
use crate::transport::Writer;
use mcp_proto::adapter::{Pieces, Step, Transfer};
use std::io::ErrorKind;
use std::mem::take;

/// Maximum number of bytes in one turn, whose thread may be one of the application. The writing
/// thread continues.
const MOST: usize = 4 * Pieces::MOST;

/// The writing direction of one connection.
#[derive(Default)]
pub(super) struct Writing {
    direct: Option<Direct>,
    /// The stream for the thread, until that is started. Only together with `direct`.
    stream: Option<Writer>,
    /// The thread waits for a step.
    waits: bool,
}

/// What a turn has left for the writing thread.
pub(super) enum Rest {
    Nothing,
    Wake,
    Start(Writer),
}

impl Writing {
    /// Begins to write to a stream. Returns it if a thread has to do that.
    pub(super) fn begin(&mut self, stream: Writer, direct: Option<Direct>) -> Option<Writer> {
        if direct.is_none() {
            return Some(stream);
        }
        (self.direct, self.stream) = (direct, Some(stream));
        None
    }

    /// Writes what the system accepts at once. Returns whether the engine has to hear of it.
    pub(super) fn write_now(&mut self, transfer: &mut Transfer) -> bool {
        let (mut written, mut reports) = (0, false);
        while let Some(direct) = &self.direct
            && let Some(step) = transfer.step()
        {
            let wrote = match step {
                Step::Write(_) if written >= MOST => break,
                Step::Write(pieces) => direct.write_now(&pieces.slices()),
                Step::Flush => Ok(0),
                // Dropping the stream ends it.
                Step::End if self.stream.is_some() => Ok(self.close()),
                Step::End => break,
            };
            match &wrote {
                Ok(n) => written += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => {}
            }
            transfer.wrote(wrote);
            reports = true;
        }
        if !(transfer.writes() || transfer.is_opening()) {
            self.close();
        }
        reports
    }

    /// Returns what is left for the thread.
    pub(super) fn rest(&mut self, transfer: &Transfer) -> Rest {
        let is_left = match &self.direct {
            Some(_) => transfer.is_writing(),
            None => transfer.has_waiting_step() || !(transfer.writes() || transfer.is_opening()),
        };
        match self.stream.take_if(|_| is_left) {
            Some(stream) => Rest::Start(stream),
            None if is_left && take(&mut self.waits) => Rest::Wake,
            None => Rest::Nothing,
        }
    }

    /// Returns the next step of the thread. `Some(None)` if nothing more is written, `None` if it
    /// has to wait.
    pub(super) fn take_step(&mut self, transfer: &mut Transfer) -> Option<Option<Step>> {
        let step = transfer.take_step();
        match step {
            // Of a pipe that was opened twice, both descriptions have to close.
            Some(Step::End) => drop(self.close()),
            Some(_) => {}
            // Until it is open, the thread waits as well.
            None if transfer.writes() || transfer.is_opening() => {
                self.waits = true;
                return None;
            }
            None => {}
        }
        Some(step)
    }

    /// Drops the stream. Returns zero, the number of bytes that this writes.
    fn close(&mut self) -> usize {
        (self.direct, self.stream) = (None, None);
        0
    }
}
