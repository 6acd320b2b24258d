//! Streams of the operating system, which tell when they are worth reading.

use async_io::Async;
use smol::io::{AsyncRead, AsyncWrite};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Something that knows when a read is worthwhile.
pub(crate) trait Readiness: Send + Sync {
    /// Waits until there is something to read, or the end, or an error. One task waits at a time.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()>;
}

impl<T: Send + Sync> Readiness for Async<T> {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        // If waiting fails, the next read reports the error.
        Self::poll_readable(self, cx).map(drop)
    }
}

/// How a writing half ends, before it is dropped.
pub(crate) trait End {
    /// Ends the output.
    fn end(&self) -> io::Result<()>;
}

impl End for TcpStream {
    fn end(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

#[cfg(unix)]
impl End for UnixStream {
    fn end(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// One half of a stream of the operating system.
pub(crate) struct Half<T>(pub(crate) Arc<Async<T>>);

impl<T> AsyncRead for Half<T>
where
    for<'a> &'a T: Read,
{
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.0).poll_read(cx, buffer)
    }
}

impl<T: End> AsyncWrite for Half<T>
where
    for<'a> &'a T: Write,
{
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.0).poll_write_vectored(cx, slices)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self.0).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.get_ref().end())
    }
}
