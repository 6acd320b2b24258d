//! Reads and writes a byte stream on its own thread. Knows neither the engine nor its lock.

use bytes::Bytes;
use mcp_proto::adapter::Step;
use std::io::{self, ErrorKind, Read, Write};

/// Size of the first read, and of all reads if there is never more to read, in bytes.
const READ: usize = 4 << 10;
/// Maximum size of a read, in bytes: the capacity of a pipe.
const MOST: usize = 64 << 10;

/// Reads to the end. `received` gets the bytes, and returns whether to read on.
pub(crate) fn read(reader: &mut dyn Read, mut received: impl FnMut(Bytes) -> bool) -> io::Result<()> {
    let mut buffer = vec![0; READ];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                if !received(Bytes::copy_from_slice(buffer.get(..n).unwrap_or_default())) {
                    return Ok(());
                }
                if n == buffer.len() && n < MOST {
                    buffer.resize(4 * n, 0);
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Carries out steps until the last one, or until the stream breaks. `next` waits for a step.
/// `written` gets the size of every accepted part, and returns whether to continue.
pub(crate) fn write(
    writer: &mut dyn Write,
    mut next: impl FnMut() -> Option<Step>,
    mut written: impl FnMut(usize) -> bool,
) -> io::Result<()> {
    while let Some(step) = next() {
        match step {
            Step::Write(mut pieces) => {
                while !pieces.is_empty() {
                    match writer.write_vectored(&pieces.slices()) {
                        Ok(0) => return Err(ErrorKind::WriteZero.into()),
                        Ok(n) if !written(n) => return Ok(()),
                        Ok(n) => pieces.advance(n),
                        Err(e) if e.kind() == ErrorKind::Interrupted => {}
                        Err(e) => return Err(e),
                    }
                }
            }
            Step::Flush => writer.flush()?,
            Step::End => break,
        }
    }
    Ok(())
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use mcp_proto::adapter::WriteQueue;

    /// A writer that accepts a limited number of bytes at once, is interrupted before each write,
    /// and breaks after a total number.
    struct Narrow {
        at_once: usize,
        until: usize,
        taken: Vec<u8>,
        interrupted: bool,
        flushed: usize,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(ErrorKind::Interrupted.into());
            }
            if self.taken.len() >= self.until {
                return Err(ErrorKind::BrokenPipe.into());
            }
            let n = bytes.len().min(self.at_once);
            self.taken.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.flushed += 1;
            Ok(())
        }
    }

    fn queue(pieces: &[&'static str]) -> WriteQueue {
        let mut queue = WriteQueue::default();
        pieces.iter().for_each(|piece| queue.push(Bytes::from_static(piece.as_bytes())));
        queue.finish();
        queue
    }

    // covers: S2-09, B-144
    #[test]
    fn every_byte_is_written_once_and_reported_when_accepted() {
        for at_once in 1..12 {
            let mut narrow = Narrow { at_once, until: 99, taken: Vec::new(), interrupted: false, flushed: 0 };
            let (mut queue, mut reported) = (queue(&["one", "", "two", "three"]), 0);
            let count = |n| {
                reported += n;
                true
            };
            write(&mut narrow, || queue.next_step(), count).expect("written");
            assert_eq!((narrow.taken.as_slice(), reported, narrow.flushed), (&b"onetwothree"[..], 11, 1));
        }
    }

    // covers: B-144
    #[test]
    fn broken_stream_is_an_error_and_accepts_no_more_bytes() {
        let mut narrow = Narrow { at_once: 2, until: 4, taken: Vec::new(), interrupted: false, flushed: 0 };
        let mut queue = queue(&["one", "two", "three"]);
        let broken = write(&mut narrow, || queue.next_step(), |_| true).expect_err("broken");
        assert_eq!((broken.kind(), narrow.taken.as_slice()), (ErrorKind::BrokenPipe, &b"onetw"[..]));
        queue.end();
        queue.push(Bytes::from_static(b"more"));
        assert!(matches!(queue.next_step(), Some(Step::End)));
    }

    // covers: B-132
    #[test]
    fn reading_ends_at_eof_and_on_request() {
        let mut seen = Vec::new();
        read(&mut &b"some bytes"[..], |bytes| {
            seen.push(bytes);
            true
        })
        .expect("read");
        assert_eq!(seen, [Bytes::from_static(b"some bytes")]);
        let mut rest = io::repeat(1).take(10 << 20);
        read(&mut rest, |_| false).expect("read");
        assert_eq!(rest.limit(), (10 << 20) - READ as u64);
    }
}
