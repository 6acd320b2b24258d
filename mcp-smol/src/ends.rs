//! The two halves of a connection.

use smol::io::{AsyncRead, AsyncWrite};

/// The reading half.
pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// The writing half.
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;
