//! The standard streams of a server, as asynchronous ones.

#[cfg(target_os = "linux")]
mod linux;

use crate::stream::{Reader, Stream, Writer};
use mcp_proto::adapter::TakenStdio;
use smol::Unblock;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;

/// Buffer between the blocking thread and the engine, in bytes: small, so that bytes count as
/// written only when they nearly are.
const PIPE: usize = 64 << 10;

/// Returns both streams. On Linux, a pipe or a socket is polled. Otherwise threads of the blocking
/// pool read and write: either stream may be a file or a terminal, which cannot be polled.
pub(crate) fn stream(taken: &TakenStdio) -> io::Result<Stream> {
    let (input, output) = taken.streams()?;
    #[cfg(target_os = "linux")]
    let (reader, writer) = (linux::reader(input.as_fd()), linux::writer(output.as_fd()));
    #[cfg(not(target_os = "linux"))]
    let (reader, writer) = (None, None);
    let reader = reader.unwrap_or_else(|| Reader::new(Unblock::with_capacity(PIPE, input)));
    let writer = writer.unwrap_or_else(|| Box::new(Unblock::with_capacity(PIPE, output)) as Writer);
    Ok(Stream { reader, writer, is_pair: true })
}
