//! What surrounds a login: the store that keeps it, the listener for its redirect, and the thread
//! that carries out its steps. Feature `auth`.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a login has threads, files and sockets")]

mod callback;
mod file_store;
mod listener;
mod oauth;
mod store;
mod worker;

pub use file_store::FileStore;
pub(super) use oauth::LoginSetup;
pub use oauth::{Browsed, OAuth};
pub use store::{MemoryStore, TokenStore};
pub(super) use worker::LoginWorker;

use alloc::borrow::ToOwned;
use std::io;
use std::thread;

/// Runs this on a new thread.
fn spawn(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("mcp-login".to_owned()).spawn(run).map(drop)
}
