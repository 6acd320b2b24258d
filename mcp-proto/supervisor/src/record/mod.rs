//! A recorded run of a supervisor: its policy, its seed, every input and every output, but nothing
//! of what its clients say to their servers. The format is that of
//! [`mcp_proto::record`]:
//!
//! ```text
//! {"mcp-recording":3,"engine":"supervisor","version":"0.1.0","seed":[7,…],…}
//! {"Input":[{"secs":0,"nanos":84211},{"Add":["github",{…}]}]}
//! {"Output":{"Done":true}}
//! {"Output":{"Connect":["github",1,{"Duplex":{"Program":{…}}}]}}
//! {"Input":[{"secs":0,"nanos":91084112},{"Ready":[1,"{\"tools\":{}}"]}]}
//! ```
//!
//! A [`Redaction::Redacted`](mcp_proto::record::Redaction::Redacted) one masks configurations and
//! lists as above. Of errors it contains the kind, the codes and the times, and no text of a
//! server, a proxy, the system or the application. The keys of servers and the names of tools
//! remain.

mod supervised;
mod value;

#[cfg(test)]
mod tests;

use crate::{Supervision, Supervisor};
use core::fmt;
use mcp_proto::observer::Observable;
use mcp_proto::record::{Log, Recorder};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A recorded run of a supervisor. [`Supervisor::recorded`] writes it.
pub type SupervisorRecording<K = String> = Log<Supervisor<K>>;

impl<K> Supervisor<K>
where
    K: Clone + Ord + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    /// Creates a supervisor that is recorded from the start. The other arguments are those of
    /// [`new`](Self::new). The recording of its clients is their own. If a write fails, the
    /// recording ends with [`Event::RecordingEnded`](crate::Event::RecordingEnded).
    pub fn recorded(policy: Supervision, seed: [u8; 32], recorder: Recorder) -> Self {
        let observer = recorder.observer(&policy, seed);
        let mut supervisor = Self::new(policy, seed);
        supervisor.observe(observer);
        supervisor
    }
}
