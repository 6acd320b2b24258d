//! The observer of an engine: it receives what the driver gives to the engine and takes from it, in
//! the order in which that happens. This module does not know what an observer does with it.

use crate::exchange::ConnectionId;
use crate::time::{Instant, earliest};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// An engine that can be observed.
pub trait Observable {
    /// What the driver gives to the engine.
    type Input;
    /// What the engine returns for an input.
    type Returned;
    /// What the driver takes from the engine.
    type Output;

    /// Passes everything from now on to this observer, beside those that the engine has. For a
    /// complete record, call this before anything else.
    fn observe(&mut self, observer: Box<dyn Observer<Self>>);
}

/// Receives every input of an engine, what the engine returns for it, and every output that the
/// driver takes. The feature `record` writes them to a recording, and `mcp_driver::check` verifies
/// the rules for a driver.
pub trait Observer<E: Observable + ?Sized>: fmt::Debug + Send + Sync {
    /// It observes this engine from now on.
    fn begin(&mut self, engine: &E) {
        let _ = engine;
    }

    /// The engine is about to apply this input. `timer` is the next timer of the engine before it.
    ///
    /// # Errors
    /// The driver has broken a rule. The engine drops the observer and panics with this text where
    /// the driver gave the input: for the tests of a driver.
    fn input(&mut self, now: Instant, input: &E::Input, timer: Option<Instant>) -> Result<(), String>;

    /// A [`WiredServer`](crate::wired::WiredServer) has accepted a connection.
    ///
    /// # Errors
    /// As [`input`](Self::input).
    fn accepted(&mut self, now: Instant, connection: ConnectionId, timer: Option<Instant>) -> Result<(), String> {
        let _ = (now, connection, timer);
        Ok(())
    }

    /// What the engine returns for the last input. Not called if its
    /// [`Returned`](Observable::Returned) is `()`.
    ///
    /// # Errors
    /// Why the observer cannot go on. The engine drops it, reports the reason, and continues.
    fn returned(&mut self, returned: &E::Returned) -> Result<(), String> {
        let _ = returned;
        Ok(())
    }

    /// The driver takes this output, or has asked for one while there was none.
    fn output(&mut self, output: Option<&E::Output>);

    /// Returns when the observer needs an input of the driver, as a timer of the engine.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// The observers of one engine, for the engine. Usually there are none, which takes the room of one
/// pointer.
#[derive(Debug)]
pub struct Observers<E: Observable + ?Sized>(Option<Box<ObserverList<E>>>);

#[derive(Debug)]
struct ObserverList<E: Observable + ?Sized>(Vec<Box<dyn Observer<E>>>);

impl<E: Observable + ?Sized> Default for Observers<E> {
    /// Creates the list of an engine without observers.
    fn default() -> Self {
        Self(None)
    }
}

impl<E: Observable + ?Sized> Observers<E> {
    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds an observer.
    pub fn push(&mut self, observer: Box<dyn Observer<E>>) {
        self.0.get_or_insert_with(|| Box::new(ObserverList(Vec::new()))).0.push(observer);
    }

    /// Passes an input. `timer` is the next timer of the engine before it.
    ///
    /// # Panics
    /// An observer has found a fault of the driver.
    #[track_caller]
    pub fn input(&mut self, now: Instant, timer: Option<Instant>, input: &E::Input) {
        if let Some(rule) = self.retain(|observer| observer.input(now, input, timer)) {
            panic!("{rule}");
        }
    }

    /// Passes a connection that was accepted. `timer` is the next timer of the engine before that.
    ///
    /// # Panics
    /// As [`input`](Self::input).
    #[track_caller]
    pub fn accepted(&mut self, now: Instant, connection: ConnectionId, timer: Option<Instant>) {
        if let Some(rule) = self.retain(|observer| observer.accepted(now, connection, timer)) {
            panic!("{rule}");
        }
    }

    /// Passes what the engine returns. Returns why an observer has failed, which is gone then.
    pub fn returned(&mut self, returned: impl FnOnce() -> E::Returned) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let returned = returned();
        self.retain(|observer| observer.returned(&returned))
    }

    /// Passes an output, or that there was none.
    pub fn output(&mut self, output: Option<&E::Output>) {
        self.0.iter_mut().flat_map(|list| &mut list.0).for_each(|observer| observer.output(output));
    }

    /// Passes an output that is made for the observers.
    pub fn made_output(&mut self, output: impl FnOnce() -> E::Output) {
        if !self.is_empty() {
            self.output(Some(&output()));
        }
    }

    /// Returns the earlier of a timer of the engine and those of its observers.
    pub fn earliest(&self, timer: Option<Instant>) -> Option<Instant> {
        let observers = self.0.iter().flat_map(|list| &list.0);
        observers.fold(timer, |at, observer| earliest(at, observer.poll_timeout()))
    }

    /// Drops the observers that fail, and returns why the last of them did.
    fn retain(&mut self, mut f: impl FnMut(&mut dyn Observer<E>) -> Result<(), String>) -> Option<String> {
        let mut failure = None;
        self.0.iter_mut().for_each(|list| {
            list.0.retain_mut(|observer| f(&mut **observer).map_err(|why| failure = Some(why)).is_ok());
        });
        failure
    }
}
