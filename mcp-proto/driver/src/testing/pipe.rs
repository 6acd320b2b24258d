//! One direction of a connection in memory: what was written and has not been read.

use alloc::collections::VecDeque;
use bytes::Bytes;
use mcp_proto::time::Instant;

/// Maximum number of unread bytes in one direction, in bytes: about the buffers of a socket. A
/// writer waits until the reader has taken some of them.
pub(super) const CAPACITY: usize = 64 << 10;

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    parts: VecDeque<PipePart>,
    /// Unread bytes.
    held: usize,
    /// Whether the writer has ended this direction.
    has_ended: bool,
}

/// What was written, with the instant of the writing and that of the arrival.
#[derive(Debug)]
pub(super) struct PipePart {
    pub(super) written: Instant,
    arrival: Instant,
    pub(super) content: PipeContent,
}

#[derive(Debug)]
pub(super) enum PipeContent {
    Bytes(Bytes),
    /// The writer sends nothing more.
    End,
    /// The writer has closed its end without ending this direction.
    Reset,
}

impl Pipe {
    /// Returns the number of bytes that the pipe accepts now.
    pub(super) fn room(&self) -> usize {
        CAPACITY.saturating_sub(self.held)
    }

    pub(super) fn write(&mut self, written: Instant, arrival: Instant, content: PipeContent) {
        self.has_ended |= !matches!(content, PipeContent::Bytes(_));
        self.held += size(&content);
        self.parts.push_back(PipePart { written, arrival, content });
    }

    /// Ends this direction, unless it has ended.
    pub(super) fn reset(&mut self, written: Instant, arrival: Instant) {
        if !self.has_ended {
            self.write(written, arrival, PipeContent::Reset);
        }
    }

    /// Returns the instant at which the next part arrives, and its content. Parts never overtake
    /// each other: one with a shorter latency waits for those before it.
    pub(super) fn peek(&self) -> Option<(Instant, &PipeContent)> {
        self.parts.front().map(|part| (part.arrival, &part.content))
    }

    pub(super) fn read(&mut self) -> Option<PipePart> {
        let part = self.parts.pop_front()?;
        self.held -= size(&part.content);
        Some(part)
    }
}

fn size(content: &PipeContent) -> usize {
    match content {
        PipeContent::Bytes(bytes) => bytes.len(),
        PipeContent::End | PipeContent::Reset => 0,
    }
}
