//! Who is shown everything that goes into an engine and comes out of it. What is made of it is not known here.

use crate::client::Event;
use crate::error::Refused;
use crate::exchange::Action;
use crate::input::{Applied, WiredClientInput};
use crate::time::Instant;
use alloc::string::String;
use core::fmt;

/// Is shown, in the order in which it happens, every input of a [`WiredClient`](super::WiredClient), what it came to, and every output
/// that the driver takes. [`record`](crate::record) writes it down.
pub trait Tape: fmt::Debug + Send {
    /// The engine is about to be told this.
    fn input(&mut self, now: Instant, input: &WiredClientInput);

    /// What the last input came to.
    fn applied(&mut self, applied: &Result<Applied, Refused<WiredClientInput>>);

    /// The driver takes this.
    fn output(&mut self, action: &Action<Event>);

    /// Why nothing more can be kept. Asked after every input; once it gives a reason, nothing more is shown.
    fn failed(&mut self) -> Option<String>;
}
