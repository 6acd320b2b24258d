//! What drivers need of the operating system besides sockets: a clock, a seed, programs, the
//! standard streams, and the file of a Unix domain socket. Feature `os`. The only part of the crate
//! that calls the system. Nothing here waits, except where its name says so.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the one exception: drivers use this module, and the engines do not"
)]

mod clock;
mod environment;
#[cfg(shuttle)]
pub mod model;
#[cfg(unix)]
mod nonblocking;
mod park;
mod process;
#[cfg(feature = "skills")]
mod skill_folder;
#[cfg(unix)]
mod socket_file;
mod stdio;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod wakeable;

pub use clock::{Clock, seed};
pub use environment::BadTimeout;
#[cfg(feature = "auth")]
pub(super) use environment::environment_path;
pub(super) use environment::environment_proxies;
#[cfg(unix)]
pub use nonblocking::{NonBlocking, recv_now, send_now};
pub(super) use park::exit;
pub(super) use park::is_unwinding;
pub use park::{block_on, block_on_for};
pub use process::{ChildProcess, SpawnedProgram};
#[cfg(feature = "skills")]
pub use skill_folder::SkillFolderError;
#[cfg(feature = "skills")]
pub(crate) use skill_folder::skill_files;
#[cfg(unix)]
pub use socket_file::{SocketFile, peer_credentials};
pub use stdio::TakenStdio;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use wakeable::WakeableWait;
