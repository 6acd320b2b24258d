//! What this thread does for connections at the moment, so that a wake-up knows what it may do at
//! once.

use crate::sync::thread_local;
use std::cell::Cell;

/// What a wake-up of a connection may do on this thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Here {
    /// Take a turn.
    Free,
    /// Nothing: this thread takes a turn later anyway.
    Later,
    /// Nothing that takes the lock of a connection: this thread holds one.
    Locked,
}

/// A connection by its address, which is unique while the connection exists. A destructor of
/// another thread-local variable may wake a connection, so this has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Busy {
    No,
    /// In a turn, under the lock of the connection.
    InTurn(usize),
    /// Running the callbacks of requests of the connection. A turn follows.
    Serving(usize),
}

thread_local! {
    static BUSY: Cell<Busy> = const { Cell::new(Busy::No) };
    /// The connection to which this thread has written.
    static WROTE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Notes that this thread has written to a connection: the answer comes from there.
pub(crate) fn wrote(connection: u64) {
    WROTE.with(|wrote| wrote.set(Some(connection)));
}

/// Also returns the connection to which this thread has written in `action`.
pub(crate) fn noting_writes<T>(action: impl FnOnce() -> T) -> (T, Option<u64>) {
    let before = WROTE.with(|wrote| wrote.replace(None));
    let done = action();
    (done, WROTE.with(|wrote| wrote.replace(before)))
}

/// Marks this thread until it is dropped.
pub(crate) struct Mark(Busy);

/// Begins a turn of a connection on this thread, which holds its lock.
pub(crate) fn in_turn<T>(of: &T) -> Mark {
    Mark(BUSY.with(|busy| busy.replace(Busy::InTurn(address(of)))))
}

/// Begins to run callbacks of a connection, which is followed by a turn of it.
pub(crate) fn serving<T>(of: &T) -> Mark {
    Mark(BUSY.with(|busy| busy.replace(Busy::Serving(address(of)))))
}

/// Returns what a wake-up of this connection may do.
pub(crate) fn for_wake_of<T>(of: &T) -> Here {
    match BUSY.with(Cell::get) {
        Busy::No => Here::Free,
        Busy::InTurn(at) | Busy::Serving(at) if at == address(of) => Here::Later,
        Busy::InTurn(_) => Here::Locked,
        Busy::Serving(_) => Here::Free,
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        BUSY.with(|busy| busy.set(self.0));
    }
}

fn address<T>(of: &T) -> usize {
    std::ptr::from_ref(of).addr()
}
