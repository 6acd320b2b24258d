//! A recorded run of a client: configuration, seed, every input with its time, and every output. A
//! client is a function of the first three, so [`Recording::replay`](Log::replay) repeats the run
//! on any machine without its server, and compares each output byte by byte.
//!
//! [`Recorder::client`] creates a recorded client. The adapters have an option for it, and the
//! program `replay` of this repository reads the file. The format is text, one JSON object per
//! line:
//!
//! ```text
//! {"mcp-recording":3,"engine":"client","version":"0.1.0","redaction":"Redacted","seed":[7,…],…}
//! {"Output":{"Open":[1,{"Program":{…}}]}}
//! {"Input":[{"secs":0,"nanos":184211},{"Event":[1,{"Opened":{…}}]}]}
//! {"Output":{"Write":[1,{"Text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":…}\n"}]}}
//! {"Input":[{"secs":0,"nanos":4121007},{"Event":[1,{"Read":{"Text":"{\"jsonrpc\":…}\n"}}]}]}
//! {"Output":{"Event":{"what":"ready","id":null,"text":"Ready(ServerInfo { … })"}}}
//! {"End":{"inputs":2,"outputs":3}}
//! ```
//!
//! The names are those of the types: a line holds what serde derives for an
//! [`Input`](crate::input::Input), or an output. What an input returned is the output that follows
//! it. What a callback returned is a note: a refusal of a message hook is
//! `{"Note":{"Denied":[4,"…"]}}`, here that of the fifth message that the hook saw, a replacement
//! is `{"Note":{"Replaced":[4,{"Text":"…"}]}}`, and what a validator found wrong is
//! `{"Note":{"Found":[4,…]}}`. Times count from the driver's origin. Bytes
//! are text if they are UTF-8, otherwise `{"Base64":…}`. JSON of the protocol is text. The last
//! line is present if the client terminated. A limit that does not fit the `usize` of the machine
//! that reads is an error. The format, and the behaviour of an engine, may change with a version of
//! this crate: replay with the version that recorded.
//!
//! # Secrets
//!
//! A [`Redaction::Redacted`] recording contains no values of the environment and no arguments of a
//! program, nothing of its standard error, and no values of header fields that the application
//! configured ([`ClientConfig::headers`]) or provided as credentials. Of the traffic, it contains
//! nothing that [`redact`](crate::redact) identifies as secret. Each such byte is replaced, so that
//! lengths stay the same and the recording can be replayed. For an event it contains only the kind
//! and the call. Secrets that look like other data (a password as the argument `text` of a tool)
//! remain: check a recording before you share it. If a run depended on a secret itself (an invalid
//! string, one that does not fit its form, or the only difference between a URI and another one
//! that a cache knows), the replay may differ, and reports where.
//!
//! A compressed body cannot be masked, so a client with a [`Redaction::Redacted`] recording does
//! not ask for one ([`ClientConfig::compression`] is off).
//!
//! The frames of a WebSocket are not masked: its keys and payloads are one stream of bytes. A
//! [`Redaction::Redacted`] recording of one ends before it begins, with a diagnostic.
//!
//! # The seed
//!
//! Every recording contains the seed. It determines the values that the client generates, but
//! nothing of the operating system or of the server. It is useful only for this run. Do not share a
//! recording of a client that is still running.

pub mod bare;
mod client;
mod findings;
mod hook;
mod log;
mod mask;
mod proxies;
mod recorded;
mod replay;
pub mod value;
mod writer;

#[cfg(test)]
mod tests;

pub use client::ClientStart;
pub use log::{Log, ReadError, ReadProblem, Replay, engine_of};
pub use mask::Mask;
pub use replay::{Difference, Summary};

use crate::client::{ClientConfig, Target};
use crate::observer::{Observable, Observer};
use crate::time::Instant;
use crate::wired::WiredClient;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use findings::FindingsLog;
use hook::Overheard;
use recorded::RecordingObserver;
use serde::{Deserialize, Serialize};
use writer::Sink;

/// A recorded run of a client.
pub type Recording = Log<WiredClient>;

/// The parts that a recording omits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Redaction {
    /// Everything that is known to be secret: see the [module](self).
    #[default]
    Redacted,
    /// Nothing. The file contains every secret of the client.
    Raw,
}

/// The destination of a recording, and the parts to omit.
pub struct Recorder {
    redaction: Redaction,
    sink: Sink,
}

impl Recorder {
    /// Creates a recorder that passes the lines to `sink`: each one complete, with its newline; an
    /// empty slice after the last one. The client calls it while it handles an input, so it must
    /// not wait for that client. Once it returns an error, the recording ends and the client
    /// continues. The next input then emits one diagnostic (`recording-ended`), unless the client
    /// has ended.
    pub fn new(redaction: Redaction, sink: impl FnMut(&[u8]) -> Result<(), String> + Send + 'static) -> Self {
        Self { redaction, sink: Box::new(sink) }
    }

    /// Creates a recorder that writes the lines to `writer`. Each line is one `write_all`, so that
    /// a killed process leaves complete lines. The writer is flushed at the end.
    pub fn to(redaction: Redaction, mut writer: impl std::io::Write + Send + 'static) -> Self {
        Self::new(redaction, move |line| {
            let done = if line.is_empty() { writer.flush() } else { writer.write_all(line) };
            done.map_err(|e| format!("{e}"))
        })
    }

    /// Creates a client that is recorded from the start. The arguments are those of
    /// [`WiredClient::new`].
    pub fn client(self, config: Arc<ClientConfig>, seed: [u8; 32], now: Instant) -> WiredClient {
        let mask = Mask::new(self.redaction, &config.target);
        // What a coded body contains cannot be masked.
        let config = match mask.is_on() {
            true => Arc::new(ClientConfig { compression: false, ..ClientConfig::clone(&config) }),
            false => config,
        };
        let start = ClientStart { now, config: Arc::new(mask.config(&config)) };
        let (hook, found) = (Overheard::default(), FindingsLog::default());
        let cannot_be_masked = mask.is_on() && matches!(config.target, Target::Ws(_));
        let notes = client::notes(hook.clone(), found.clone(), mask);
        let mut recorded = RecordingObserver::new(self.redaction, self.sink, &start, notes);
        match cannot_be_masked {
            true => recorded.refuse("the frames of a websocket cannot be masked"),
            false => recorded.begin(&start, seed),
        }
        let config = match &config.on_message {
            None => config,
            Some(asked) => {
                Arc::new(ClientConfig { on_message: Some(hook.listen(asked.clone())), ..ClientConfig::clone(&config) })
            }
        };
        let config = findings::with_validator(config, |validator| found.listen(validator.clone()));
        let mut client = WiredClient::new(config, seed, now);
        client.observe(Box::new(recorded));
        client
    }

    /// Creates the observer of another engine, which records it from the start. `start` and `seed`
    /// are what the engine is created from.
    pub fn observer<E: Replay + 'static>(self, start: &E::Start, seed: [u8; 32]) -> Box<dyn Observer<E>> {
        let mut recorded = RecordingObserver::<E>::new(self.redaction, self.sink, start, Box::new(Vec::new));
        recorded.begin(start, seed);
        Box::new(recorded)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("redaction", &self.redaction).finish_non_exhaustive()
    }
}
