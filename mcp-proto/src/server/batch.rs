//! Batches of 2025-03-26 (JSON-RPC 2.0 section 6): an array of messages, and the one array of its
//! responses.

use crate::rpc::write_batch;
use alloc::vec::Vec;
use bytes::Bytes;

/// The responses of a batch. They leave together, once the last is there and every element was
/// read.
#[derive(Debug)]
pub(super) struct Batch {
    is_being_read: bool,
    /// Number of running requests.
    running: usize,
    /// Whether the application answers a part of it. Otherwise every response is the engine's own.
    has_run: bool,
    responses: Vec<Bytes>,
}

/// The array of a batch.
pub(super) struct Array {
    /// `None` if no element needs a response.
    pub(super) bytes: Option<Bytes>,
    pub(super) has_run: bool,
}

impl Batch {
    pub(super) const fn new() -> Self {
        Self { is_being_read: true, running: 0, has_run: false, responses: Vec::new() }
    }

    /// The application runs one of its requests.
    pub(super) const fn run(&mut self) {
        self.running += 1;
        self.has_run = true;
    }

    /// A request that ran is over. `response`: `None` if it was cancelled.
    pub(super) fn end(&mut self, response: Option<Bytes>) {
        self.running = self.running.saturating_sub(1);
        self.responses.extend(response);
    }

    /// Adds a response of the engine itself.
    pub(super) fn push(&mut self, response: Bytes) {
        self.responses.push(response);
    }

    /// Every element was read.
    pub(super) const fn close(&mut self) {
        self.is_being_read = false;
    }

    /// Returns whether no further response will follow.
    pub(super) const fn is_complete(&self) -> bool {
        !self.is_being_read && self.running == 0
    }

    /// Takes the responses one by one: a message has to be sent before the batch is complete.
    pub(super) fn into_responses(self) -> Vec<Bytes> {
        self.responses
    }

    pub(super) fn into_array(self) -> Array {
        let bytes = (!self.responses.is_empty()).then(|| write_batch(&self.responses));
        Array { bytes, has_run: self.has_run }
    }
}
