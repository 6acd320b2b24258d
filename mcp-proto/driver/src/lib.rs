#![forbid(unsafe_code)]
//! For authors of drivers: what every driver needs, in one place. An adapter is a crate that runs
//! the engines for applications, such as `mcp-blocking` or `mcp-smol`; both are written on this
//! crate.
//!
//! It has two layers. Most drivers need only the first:
//!
//! * *Fronts*: [`Client`], [`Server`] and [`Gateway`] are handles of the application, which wait
//!   with wakers on any runtime. Each comes with a [`DriverHandle`] for the loop of its driver, and
//!   each connection is a [`DrivenConnection`], in the same loop, in a task or in threads of its
//!   own. An HTTP library gets an [`Exchange`] for each request. A front of another crate, as the
//!   supervisor of `mcp-supervisor`, is a [`Front`] in a [`Shared`].
//! * *Parts*, for the fronts and for drivers without them.
//!
//! The parts:
//!
//! * *A connection:* [`Transfer`] has its write queue, its read switch and its [`Ending`], which
//!   knows when a socket, an accepted socket and a program are over. Outputs of the engine and
//!   results of the operating system go in; steps, signals and events come out. [`Attempts`] paces
//!   the attempts to connect.
//! * *The callbacks of a server:* [`RunningCallbacks`] has the requests and admissions that the
//!   application works on. Each is [`Work`] that a router turns into a [`Job`], which answers
//!   exactly once, whatever becomes of it. The application can replace a [`SharedRouter`] while the
//!   server runs. A [`ServerLink`] or a [`Mailbox`] leads from callbacks to the engine.
//! * *The questions of a server:* [`Questions`] has what a client is asked. [`ClientCallbacks`]
//!   turn each into a [`Job`].
//! * *Options:* [`ClientOptions`] and [`ServerOptions`], the same for every driver.
//! * *Stores:* [`store`] has what servers share that serve their clients together.
//! * *The tests of a driver:* [`check`] makes an engine panic when its driver breaks a rule.
//! * *The operating system*: a clock, a seed, programs with their groups, the standard streams, the
//!   file of a Unix socket. With the surroundings of a login (feature `auth`), which has threads,
//!   files and a listener of its own, it is the only part of this crate that calls the system:
//!   nothing else here opens, reads or waits.
//!
//! An application on an adapter needs nothing of this crate but its [`guide`]; one with an HTTP
//! library of its own needs [`Gateway`].
//!
//! # Locks
//!
//! A driver may keep an engine behind a lock. It holds the lock for inputs, commands and outputs,
//! which take microseconds, and for nothing else. Without any lock it runs what may take longer or
//! may come back: reading and writing JSON, a callback or another value of the application (to drop
//! it is enough), and waking a task. The fronts keep this rule by their types. The functions of the
//! parts to which it applies refer to this section.
#![doc = include_str!("porting.md")]

extern crate alloc;

mod accepting;
mod asking;
mod attempts;
mod check;
mod client_observer;
mod client_options;
mod connect;
mod ending;
mod front;
pub mod guide;
mod job;
#[cfg(feature = "auth")]
pub mod keys;
mod launcher;
#[cfg(feature = "auth")]
mod login;
mod mailbox;
mod options;
mod os;
mod question;
mod queue;
mod running;
mod shared_router;
#[cfg(feature = "skills")]
mod skills;
mod stderr;
pub mod store;
mod sync;
mod target;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod transfer;
mod watch;
mod work;

pub use accepting::AcceptRetry;
pub use asking::{ClientLink, PendingQuestion, Questions};
pub use attempts::Attempts;
pub use check::{Checks, DriverRules, check};
pub use client_observer::{CallTag, ClientObserver, ClientReport};
pub use client_options::{ClientCallbacks, ClientEventCallback, ClientOptions, NoticeCallback};
pub use connect::ConnectError;
pub use connect::{not_bound, not_opened};
pub use ending::{DRAIN, Ending, Signal, VANISH};
pub use front::{
    Attention, CALLBACK_GRACE, Client, ClientHandle, Closer, Delay, DrivenConnection, DriverHandle, Elements, Events,
    Exchange, Front, Gateway, Later, ListenerGuard, NewsQueue, Part, PendingCall, PendingNotification, RouteTask,
    Server, ServerHandle, Shared, Task, TurnResult, WaitingEvents, Watcher,
};
pub use job::{AsyncJob, Job, JobKind, JobResult, JobWatch, Rejection, ServerLink, StuckHandlers, SyncJob};
pub use launcher::find_launcher;
#[cfg(feature = "auth")]
pub use login::{Browsed, FileStore, MemoryStore, OAuth, TokenStore};
pub use mailbox::Mailbox;
pub use options::{Block, EventCallback, ServerOptions, Service, Spawn};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use os::WakeableWait;
#[cfg(shuttle)]
pub use os::model;
pub use os::{BadTimeout, ChildProcess, Clock, SpawnedProgram, TakenStdio, block_on, block_on_for, seed};
#[cfg(unix)]
pub use os::{NonBlocking, SocketFile, peer_credentials, recv_now, send_now};
pub use question::{Question, Reply, ReplyKey, ReplyToken};
pub use queue::{Pieces, Step, WriteQueue};
pub use running::{Cancellation, RunningCallbacks};
pub use shared_router::SharedRouter;
#[cfg(feature = "skills")]
pub use skills::{SkillFolderError, read_skill};
pub use stderr::StderrReader;
pub use sync::guarded;
pub use target::{IntoTarget, Target};
pub use tls::{Tls, TlsAcceptor, TlsConnector, TlsOutput};
pub use transfer::{Transfer, TransferOutput};
pub use work::Work;

use os::{environment_proxies, is_unwinding};

#[cfg(all(test, not(shuttle)))]
mod tests;
