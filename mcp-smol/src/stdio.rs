//! The standard streams of a server, as asynchronous ones.

use crate::stream::{Reader, Stream, Writer};
use mcp_driver::TakenStdio;
use smol::Unblock;
use std::io;

/// Buffer between the blocking thread and the engine, in bytes: small, so that bytes count as
/// written only when they nearly are.
const PIPE: usize = 64 << 10;

/// Returns both streams. On Linux, a pipe or a socket is polled. Otherwise threads of the blocking
/// pool read and write: either stream may be a file or a terminal, which cannot be polled.
pub(crate) fn stream(taken: &TakenStdio) -> io::Result<Stream> {
    let (input, output) = taken.streams()?;
    #[cfg(target_os = "linux")]
    let (reader, writer) = (polled::reader(&input), polled::writer(&output));
    #[cfg(not(target_os = "linux"))]
    let (reader, writer) = (None, None);
    let reader = reader.unwrap_or_else(|| Reader::new(Unblock::with_capacity(PIPE, input)));
    let writer = writer.unwrap_or_else(|| Box::new(Unblock::with_capacity(PIPE, output)) as Writer);
    Ok(Stream { reader, writer, is_pair: true })
}

/// Standard streams without threads.
#[cfg(target_os = "linux")]
mod polled {
    use crate::source::{End, Half};
    use crate::stream::{Reader, Writer};
    use async_io::Async;
    use mcp_driver::NonBlocking;
    use std::io;
    use std::os::fd::AsFd;
    use std::sync::Arc;

    pub(super) fn reader(input: impl AsFd) -> Option<Reader> {
        Some(Reader::of_system(Arc::new(Async::new_nonblocking(NonBlocking::reader(input)?).ok()?)))
    }

    pub(super) fn writer(output: impl AsFd) -> Option<Writer> {
        Some(Box::new(Half(Arc::new(Async::new_nonblocking(NonBlocking::writer(output)?).ok()?))))
    }

    /// It is closed with the last descriptor, since other processes may go on using it.
    impl End for NonBlocking {
        fn end(&self) -> io::Result<()> {
            Ok(())
        }
    }
}
