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
use mcp_driver::{Pieces, Step, Transfer};
use std::io::ErrorKind;
use std::mem::take;

/// Maximum number of bytes in one turn, whose thread may be one of the application. The writing
/// thread continues.
const MOST: usize = 4 * Pieces::MOST;

/// The writing direction of one connection.
#[derive(Default)]
pub(super) struct WriteHalf {
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

impl WriteHalf {
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

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::direct::WriteNow;
    use mcp_proto::Instant;
    use mcp_proto::wired::ConnectionOutput;
    use std::cell::Cell;
    use std::io::{self, IoSlice};

    /// A stream that accepts nothing for now, then has failed.
    #[derive(Default)]
    struct Failing(Cell<bool>);

    impl WriteNow for Failing {
        fn write_now(&self, _: &[IoSlice<'_>]) -> io::Result<usize> {
            Err(if self.0.replace(true) { ErrorKind::BrokenPipe } else { ErrorKind::WouldBlock }.into())
        }
    }

    // covers: B-167
    #[test]
    fn writing_thread_is_woken_by_a_write_that_failed() {
        let (mut writing, mut transfer) = (WriteHalf::default(), Transfer::given());
        let write = || ConnectionOutput::Write("{}\n".into());
        assert!(writing.begin(Box::new(io::sink()), Some(Box::new(Failing::default()))).is_none());
        transfer.act(Instant::ZERO, write());
        assert!(!writing.write_now(&mut transfer));
        assert!(matches!(writing.rest(&transfer), Rest::Start(_)));
        // The thread writes what is left, and waits for more.
        while let Some(step) = writing.take_step(&mut transfer) {
            let Some(Step::Write(pieces)) = step else { continue };
            transfer.wrote(Ok(pieces.slices().iter().map(|piece| piece.len()).sum()));
        }
        transfer.act(Instant::ZERO, write());
        assert!(writing.write_now(&mut transfer) && !transfer.writes());
        assert!(matches!(writing.rest(&transfer), Rest::Wake));
        assert!(matches!(writing.take_step(&mut transfer), Some(None)));
    }
}
