//! The observer of every input and output of an engine. This module does not know how an observer
//! uses them.

use crate::client::Event;
use crate::error::Refusal;
use crate::exchange::Action;
use crate::input::{Applied, WiredClientInput};
use crate::time::Instant;
use alloc::string::String;
use core::fmt;

/// Receives every input of a [`WiredClient`](super::WiredClient), its result, and every output that
/// the driver takes, in the order in which they happen. The feature `record` writes them to a
/// recording.
pub trait Tape: fmt::Debug + Send {
    /// The engine is about to apply this input.
    fn input(&mut self, now: Instant, input: &WiredClientInput);

    /// The result of the last input.
    fn applied(&mut self, applied: Result<Applied, &Refusal>);

    /// The driver takes this action.
    fn output(&mut self, action: &Action<Event>);

    /// Returns why the tape cannot record any more. The client calls this after every input. After
    /// the first reason it passes nothing more to the tape.
    fn failed(&mut self) -> Option<String>;
}
