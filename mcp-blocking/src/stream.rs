//! Reads and writes a byte stream on its own thread. Knows neither the engine nor its lock.

use crate::transport::{Reader, Writer};
use bytes::Bytes;
use mcp_driver::Step;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Size of a read while little arrives, in bytes: on the stack, so that an idle connection holds no
/// buffer.
pub(crate) const READ: usize = 4 << 10;
/// Size of a read after one that was full, in bytes: the capacity of a pipe.
pub(crate) const MOST: usize = 64 << 10;

/// Reads until the stream has ended. `report` gets the result of each read, and returns whether to
/// read on.
pub(crate) fn read(mut reader: Reader, mut report: impl FnMut(io::Result<Bytes>) -> bool) {
    let (mut small, mut large) = ([0; READ], Vec::new());
    loop {
        let buffer = if large.is_empty() { &mut small[..] } else { &mut large[..] };
        let read = guarded(|| reader.read(buffer));
        let n = read.as_ref().map_or(0, |n| *n);
        let is_full = n == buffer.len();
        if !report(read.map(|n| Bytes::copy_from_slice(buffer.get(..n).unwrap_or_default()))) {
            return;
        }
        match is_full {
            true => large.resize(MOST, 0),
            false => large = Vec::new(),
        }
    }
}

/// Carries out steps until there are no more. `next` waits for a step. `report` gets the result of
/// each part of it, and returns whether to continue.
pub(crate) fn write(
    mut writer: Writer,
    mut next: impl FnMut() -> Option<Step>,
    mut report: impl FnMut(io::Result<usize>) -> bool,
) {
    while let Some(step) = next() {
        match step {
            Step::Write(mut pieces) => {
                while !pieces.is_empty() {
                    let wrote = guarded(|| writer.write_vectored(&pieces.slices()));
                    pieces.advance(wrote.as_ref().map_or(0, |n| *n));
                    if !report(wrote) {
                        return;
                    }
                }
            }
            Step::Flush => {
                if !report(guarded(|| writer.flush().map(|()| 0))) {
                    return;
                }
            }
            Step::End => {
                drop(writer);
                report(Ok(0));
                return;
            }
        }
    }
}

/// Runs an operation of a stream until it is not interrupted. A stream of the application may
/// panic, which cuts the connection like an error. One with a time limit, or that does not block,
/// is of no use here: the operation would be repeated at once.
fn guarded<T>(mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match catch_unwind(AssertUnwindSafe(&mut operation)) {
            Ok(Err(e)) if e.kind() == ErrorKind::Interrupted => {}
            Ok(Err(e)) if e.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Ok(result) => return result,
            Err(_) => return Err(io::Error::other("the stream panicked")),
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use mcp_driver::WriteQueue;
    use std::io::{Read, Write};
    use std::sync::{Arc, Mutex};

    /// A writer that accepts a limited number of bytes at once, is interrupted before each write,
    /// and breaks after a total number.
    struct Narrow {
        at_once: usize,
        until: usize,
        interrupted: bool,
        taken: Arc<Mutex<Taken>>,
    }

    #[derive(Default, PartialEq, Debug)]
    struct Taken {
        bytes: Vec<u8>,
        flushed: usize,
        dropped: bool,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(ErrorKind::Interrupted.into());
            }
            let mut taken = self.taken.lock().expect("no panic");
            if taken.bytes.len() >= self.until {
                return Err(ErrorKind::BrokenPipe.into());
            }
            let n = bytes.len().min(self.at_once);
            taken.bytes.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.taken.lock().expect("no panic").flushed += 1;
            Ok(())
        }
    }

    impl Drop for Narrow {
        fn drop(&mut self) {
            self.taken.lock().expect("no panic").dropped = true;
        }
    }

    /// Writes these pieces, and returns the reported results and what was taken.
    fn written(pieces: &[&'static str], at_once: usize, until: usize) -> (Vec<Result<usize, ErrorKind>>, Taken) {
        let mut queue = WriteQueue::default();
        pieces.iter().for_each(|piece| queue.push(Bytes::from_static(piece.as_bytes())));
        queue.finish();
        let (mut reported, taken) = (Vec::new(), Arc::<Mutex<Taken>>::default());
        let narrow = Narrow { at_once, until, interrupted: false, taken: Arc::clone(&taken) };
        write(
            Box::new(narrow),
            || queue.next_step(),
            |wrote| {
                reported.push(wrote.map_err(|e| e.kind()));
                reported.iter().all(Result::is_ok)
            },
        );
        (reported, std::mem::take(&mut taken.lock().expect("no panic")))
    }

    // covers: S2-09, B-144
    #[test]
    fn every_byte_is_written_once_and_reported_when_accepted() {
        for at_once in 1..12 {
            let (reported, taken) = written(&["one", "", "two", "three"], at_once, 99);
            assert_eq!(taken, Taken { bytes: b"onetwothree".to_vec(), flushed: 1, dropped: true });
            assert_eq!(reported.iter().map(|n| n.expect("written")).sum::<usize>(), 11);
            assert_eq!(reported[reported.len() - 2..], [Ok(0), Ok(0)], "flushed and ended");
        }
    }

    // covers: B-144
    #[test]
    fn broken_stream_is_an_error_and_accepts_no_more_bytes() {
        let (reported, taken) = written(&["one", "two", "three"], 2, 4);
        assert_eq!(reported, [Ok(2), Ok(1), Ok(2), Err(ErrorKind::BrokenPipe)]);
        assert_eq!(taken, Taken { bytes: b"onetw".to_vec(), flushed: 0, dropped: true });
    }

    /// A stream of the application that panics, or has a time limit.
    struct Unusable(bool);

    impl Read for Unusable {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            if self.0 { std::panic::resume_unwind(Box::new("on purpose")) } else { Err(ErrorKind::WouldBlock.into()) }
        }
    }

    // covers: B-281
    #[test]
    fn panic_and_time_limit_of_a_stream_are_errors() {
        for (panics, kind) in [(true, ErrorKind::Other), (false, ErrorKind::TimedOut)] {
            let mut seen = Vec::new();
            read(Box::new(Unusable(panics)), |read| {
                seen.push(read.map_err(|e| e.kind()));
                false
            });
            assert_eq!(seen, [Err(kind)]);
        }
    }

    /// Counts the bytes that are read of it.
    struct Endless(Arc<Mutex<usize>>);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            *self.0.lock().expect("no panic") += buffer.len();
            Ok(buffer.len())
        }
    }

    // covers: B-132
    #[test]
    fn reading_ends_on_request_and_reports_the_end() {
        let mut seen = Vec::new();
        read(Box::new(&b"some bytes"[..]), |bytes| {
            seen.push(bytes.expect("read"));
            seen.last().is_some_and(|bytes| !bytes.is_empty())
        });
        assert_eq!(seen, [Bytes::from_static(b"some bytes"), Bytes::new()]);
        let count = Arc::<Mutex<usize>>::default();
        read(Box::new(Endless(Arc::clone(&count))), |_| false);
        assert_eq!(*count.lock().expect("no panic"), READ);
    }
}
