//! For authors of drivers: what every driver needs, in one place. An adapter is a crate that runs
//! the engines for applications, such as `mcp-blocking` or `mcp-smol`; both are written on this
//! module.
//!
//! It has two layers. Most drivers need only the first:
//!
//! * *Fronts*, with feature `os`: [`Client`], [`Server`] and [`Gateway`] are handles of the
//!   application, which wait with wakers on any runtime. Each comes with a [`Driving`] for the loop
//!   of its driver, and each connection is a [`DrivenConnection`], in the same loop, in a task or
//!   in threads of its own. An HTTP library gets an [`Exchange`] for each request. A [`Supervisor`]
//!   keeps several clients connected, which an adapter drives through [`Launch`].
//! * *Parts*, for the fronts and for drivers without them.
//!
//! The parts:
//!
//! * *A connection:* [`Transfer`] has its write queue, its read switch and its [`Ending`], which
//!   knows when a socket, an accepted socket and a program are over. Outputs of the engine and
//!   results of the operating system go in; steps, signals and events come out. [`Attempts`] paces
//!   the attempts to connect.
//! * *The callbacks of a server:* [`Running`] has the requests and admissions that the application
//!   works on. Each is [`Work`] that a router turns into a [`Job`], which answers exactly once,
//!   whatever becomes of it. The application can replace a [`SharedRouter`] while the server runs.
//!   A [`Link`] or a [`Mailbox`] leads from callbacks to the engine.
//! * *The questions of a server:* [`Questions`] has what a client is asked. [`ClientCallbacks`]
//!   turn each into a [`Job`].
//! * *Options:* [`ClientOptions`] and [`ServerOptions`], the same for every driver.
//! * *The tests of a driver:* [`check`] makes an engine panic when its driver breaks a rule.
//! * *The operating system*, with feature `os`: a clock, a seed, programs with their groups, the
//!   standard streams, the file of a Unix socket. It is the only part of this crate that calls the
//!   system.
//!
//! # Locks
//!
//! A driver may keep an engine behind a lock. It holds the lock for inputs, commands and outputs,
//! which take microseconds, and for nothing else. Without any lock it runs what may take longer or
//! may come back: reading and writing JSON, a callback or another value of the application (to drop
//! it is enough), and waking a task. The fronts keep this rule by their types. The functions of the
//! parts to which it applies refer to this section.
//!
//! Nothing else here opens, reads or waits. An application on an adapter needs nothing of this
//! module; one with an HTTP library of its own needs [`Gateway`].
#![cfg_attr(feature = "os", doc = include_str!("porting.md"))]

#[cfg(feature = "std")]
mod accepting;
#[cfg(feature = "std")]
mod asking;
mod attempts;
mod check;
#[cfg(feature = "std")]
mod client_options;
mod connect;
mod ending;
#[cfg(feature = "os")]
mod front;
pub mod guide;
#[cfg(feature = "std")]
mod job;
#[cfg(feature = "std")]
mod launcher;
#[cfg(feature = "std")]
mod mailbox;
#[cfg(feature = "std")]
mod options;
#[cfg(feature = "os")]
mod os;
mod question;
mod queue;
#[cfg(feature = "std")]
mod running;
#[cfg(feature = "std")]
mod shared_router;
#[cfg(feature = "std")]
mod stderr;
#[cfg(feature = "std")]
mod sync;
#[cfg(feature = "std")]
mod target;
#[cfg(feature = "std")]
mod tls;
#[cfg(feature = "std")]
mod transfer;
#[cfg(feature = "os")]
mod watch;
#[cfg(feature = "std")]
mod work;

pub use crate::event_queue::{EventQueue, Weigh, Weight};
#[cfg(feature = "std")]
pub use accepting::AcceptRetry;
#[cfg(feature = "std")]
pub use asking::{Asking, ClientLink, Questions};
pub use attempts::Attempts;
pub use check::{Checks, DriverRules, check};
#[cfg(feature = "std")]
pub use client_options::{ClientCallbacks, ClientEventCallback, ClientOptions, NoticeCallback};
pub use connect::ConnectError;
#[cfg(feature = "std")]
pub use connect::{not_bound, not_opened};
pub use ending::{DRAIN, Ending, Signal, VANISH};
#[cfg(feature = "os")]
pub use front::{
    CALLBACK_GRACE, CallStep, Client, ClientHandle, Closer, Delay, DrivenConnection, Driving, Elements, Events,
    Exchange, Gateway, Launch, Listening, Part, Pending, PendingNotification, Routing, Server, ServerHandle,
    SupervisedCall, Supervisor, SupervisorDriver, SupervisorOptions, Task, Turned, Watcher,
};
#[cfg(feature = "std")]
pub use job::{AsyncJob, Finished, Job, JobKind, JobWatch, Link, Rejection, StuckHandlers, SyncJob};
#[cfg(feature = "std")]
pub use launcher::find_launcher;
#[cfg(feature = "std")]
pub use mailbox::Mailbox;
#[cfg(feature = "std")]
pub use options::{EventCallback, ServerOptions, Service, Spawn};
#[cfg(all(feature = "os", any(target_os = "linux", target_os = "android")))]
pub use os::WakeableWait;
#[cfg(all(feature = "os", shuttle))]
pub use os::model;
#[cfg(feature = "os")]
pub use os::{BadTimeout, ChildProcess, Clock, Spawned, TakenStdio, block_on, block_on_for, seed};
#[cfg(all(feature = "os", unix))]
pub use os::{NonBlocking, SocketFile, peer_credentials, recv_now, send_now};
pub use question::{Question, Reply, ReplyKey, ReplyToken};
pub use queue::{Pieces, Step, WriteQueue};
#[cfg(feature = "std")]
pub use running::{Cancelled, Running};
#[cfg(feature = "std")]
pub use shared_router::SharedRouter;
#[cfg(feature = "std")]
pub use stderr::StderrReader;
#[cfg(feature = "std")]
pub use target::{IntoTarget, Target};
#[cfg(feature = "std")]
pub use tls::{Tls, TlsAcceptor, TlsConnector, TlsOutput};
#[cfg(feature = "std")]
pub use transfer::{Transfer, TransferOutput};
#[cfg(feature = "std")]
pub use work::Work;

#[cfg(feature = "os")]
use os::{environment_proxies, is_unwinding};

/// Without the feature `os`, no environment is read.
#[cfg(all(feature = "std", not(feature = "os")))]
fn environment_proxies() -> crate::client::Proxies {
    crate::client::Proxies::none()
}

/// Without the feature `os`, it is not known whether the thread unwinds.
#[cfg(not(feature = "os"))]
const fn is_unwinding() -> bool {
    false
}

#[cfg(all(test, feature = "std", not(shuttle)))]
mod tests;
