//! The standard streams of a server, as asynchronous ones.

use mcp_proto::adapter::TakenStdio;
use smol::Unblock;
use std::io;

/// Buffer between the blocking thread and the engine, in bytes: small, so that bytes count as
/// written only when they nearly are.
const PIPE: usize = 64 << 10;

/// Returns both streams. Threads of the blocking pool read and write them, since either may be a
/// file or a terminal, which cannot be polled.
pub(crate) fn streams(
    taken: &TakenStdio,
) -> io::Result<(Unblock<impl io::Read + Send + use<>>, Unblock<impl io::Write + Send + use<>>)> {
    let (input, output) = taken.streams()?;
    Ok((Unblock::with_capacity(PIPE, input), Unblock::with_capacity(PIPE, output)))
}
