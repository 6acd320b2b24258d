//! Futures whose types the application chooses, and the function that runs them.

use smol::future::Future;
use std::pin::Pin;

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs a task to its end, or drops it.
pub(crate) type Spawn = dyn Fn(BoxFuture<()>) + Send + Sync;
