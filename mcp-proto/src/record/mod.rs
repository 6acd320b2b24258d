//! A run of a client on file: configuration, seed, every input with its time, and every output. A client is a function of the first three,
//! so [`Recording::replay`] repeats the run on any machine, without its server, and compares each output to the byte.
//!
//! [`Recorder::client`] makes a client that is recorded; the adapters have an option for it, and the program `replay` of this
//! repository reads the file. The format is text, one JSON object a line:
//!
//! ```text
//! {"mcp-recording":1,"role":"client","version":"0.1.0","redacted":true,"seed":"07…","at":"0","config":{…}}
//! {"out":"open","on":1,"to":{"program":{…}}}
//! {"at":"0.000184211","in":"opened","on":1,"peer":{"name":[]}}
//! {"out":"write","on":1,"bytes":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",…}\n"}
//! {"at":"0.004121007","in":"bytes","on":1,"bytes":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{…}}\n"}
//! {"out":"event","what":"ready","text":"Ready(ServerInfo { … })"}
//! {"end":true,"inputs":2,"outputs":3}
//! ```
//!
//! What a message hook refused stands as `{"denied":4,"why":"…"}`: the fifth message that it was asked about.
//! Times are seconds since the driver's origin. Bytes are text where they are UTF-8, else `{"base64":…}`; an option is a list of none or
//! one. The last line is there if the client came to its end. The format, and what an engine does, may change with a version of this
//! crate: replay with the version that recorded.
//!
//! # Secrets
//!
//! A [`Redaction::Redacted`] recording holds no value of the environment and no argument of a program, nothing that it wrote to standard
//! error, no value of a header field that the application configured ([`ClientConfig::headers`]) or gave as its credentials, and of the
//! traffic nothing that [`redact`](crate::redact) knows as secret: each such byte is replaced, so that lengths
//! stay and the recording can still be replayed. It says of an event only which it was and which call it is about. Secrets that look
//! like anything else (a password as the argument `text` of a tool) stay: look at a recording before you hand it on.
//! Where a run turned on what a secret itself was (one that is no valid string, one that does not fit its form), the replay may go another
//! way, and then says where.
//!
//! Every recording holds the seed. From it follow the values that a client makes up itself, and nothing of the operating
//! system or of the server; it is of use for a run that is over, and for no other. Do not hand on a recording of a client that still runs.

mod config;
mod hook;
mod line;
mod mask;
mod read;
mod replay;
mod value;

#[cfg(test)]
mod tests;

pub use read::{ReadError, ReadProblem, Recording, is_recording, read};
pub use replay::{Difference, Summary};

use crate::client::{ClientConfig, Event};
use crate::error::Refused;
use crate::exchange::Action;
use crate::input::{Applied, Input, WiredClientInput};
use crate::rpc::Object;
use crate::time::Instant;
use crate::wired::{Tape, WiredClient};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use hook::Overheard;
use mask::Mask;

/// The version of the format.
const FORMAT: u64 = 1;

/// What is left out of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Redaction {
    /// What is known as secret; see the [module](self).
    #[default]
    Redacted,
    /// Nothing. The file holds every secret that the client was given or has seen.
    Raw,
}

/// What takes the lines of a recording: each comes whole, with its newline, and then a flush is asked for by an empty one at the end.
/// What it gives as an error is the reason why nothing more is recorded.
type Sink = Box<dyn FnMut(&[u8]) -> Result<(), String> + Send>;

/// Where a recording goes, and what is left out of it.
pub struct Recorder {
    redaction: Redaction,
    sink: Sink,
}

impl Recorder {
    /// Lines go to `sink`: each whole, with its newline; an empty slice after the last. It is called while the client is told something,
    /// so it must not wait for anything of that client. Once it returns an error, nothing more is recorded, and the client goes on. Its
    /// next input brings one diagnostic of that (`recording-ended`), unless it has ended.
    pub fn new(redaction: Redaction, sink: impl FnMut(&[u8]) -> Result<(), String> + Send + 'static) -> Self {
        Self { redaction, sink: Box::new(sink) }
    }

    /// Lines go to `writer`, each in one `write_all`, so that a process that is killed leaves whole lines; it is flushed at the end.
    #[cfg(feature = "std")]
    pub fn to(redaction: Redaction, mut writer: impl std::io::Write + Send + 'static) -> Self {
        Self::new(redaction, move |line| {
            let done = if line.is_empty() { writer.flush() } else { writer.write_all(line) };
            done.map_err(|e| format!("{e}"))
        })
    }

    /// A client that is recorded from its first moment. The arguments are those of [`WiredClient::new`].
    pub fn client(self, config: Arc<ClientConfig>, seed: [u8; 32], now: Instant) -> WiredClient {
        let mask = Mask::new(self.redaction, &config.target);
        let head = read::write_header(&mask.config(&config), &seed, now, self.redaction);
        let (hook, sink) = (Overheard::default(), Some(self.sink));
        let mut tape = Recorded { mask, sink, failed: None, hook: hook.clone(), inputs: 0, outputs: 0 };
        tape.write(head);
        #[cfg(feature = "std")]
        let config = match &config.on_message {
            None => config,
            Some(asked) => {
                Arc::new(ClientConfig { on_message: Some(hook.listen(asked.clone())), ..ClientConfig::clone(&config) })
            }
        };
        #[cfg(not(feature = "std"))]
        if config.on_message.is_some() {
            tape.fail("a message hook can only be recorded with the feature `std`".into());
        }
        let mut client = WiredClient::new(config, seed, now);
        client.show(Box::new(tape));
        client
    }
}

/// A client that is recorded if there is a recorder. The other arguments are those of [`WiredClient::new`].
pub fn client(recorder: Option<Recorder>, config: Arc<ClientConfig>, seed: [u8; 32], now: Instant) -> WiredClient {
    match recorder {
        Some(recorder) => recorder.client(config, seed, now),
        None => WiredClient::new(config, seed, now),
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("redaction", &self.redaction).finish_non_exhaustive()
    }
}

/// A recording that is being made.
struct Recorded {
    mask: Mask,
    /// `None` once the client has ended or a line could not be written.
    sink: Option<Sink>,
    /// Why a line could not be written, until that was told.
    failed: Option<String>,
    hook: Overheard,
    inputs: u64,
    outputs: u64,
}

impl Recorded {
    fn write(&mut self, line: Object) {
        let mut bytes = Vec::from(line.to_json().to_bytes());
        bytes.push(b'\n');
        self.send(&bytes);
    }

    /// What the message hook has refused meanwhile.
    fn write_denials(&mut self) {
        for (number, reason) in self.hook.take() {
            self.write(Object::new().with("denied", number as u64).with("why", self.mask.text(&reason).as_str()));
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        if let Some(sink) = &mut self.sink
            && let Err(why) = sink(bytes)
        {
            self.fail(why);
        }
    }

    fn fail(&mut self, why: String) {
        self.failed = Some(why);
        self.sink = None;
    }
}

impl Tape for Recorded {
    fn input(&mut self, now: Instant, input: &WiredClientInput) {
        if self.sink.is_none() {
            return;
        }
        // What an application says may be nested too deeply to be read back.
        if let Input::Command(_) = input
            && let Err(e) = line::read_input(&line::input(now, input, &mut self.mask.off()))
        {
            return self.fail(format!("a command cannot be recorded: {e}"));
        }
        self.inputs += 1;
        let line = line::input(now, input, &mut self.mask);
        self.mask.follow(input);
        self.write(line);
    }

    fn applied(&mut self, applied: &Result<Applied, Refused<WiredClientInput>>) {
        self.write_denials();
        if let Some(line) = line::applied(applied, &self.mask).filter(|_| self.sink.is_some()) {
            self.outputs += 1;
            self.write(line);
        }
    }

    fn output(&mut self, action: &Action<Event>) {
        if self.sink.is_none() {
            return;
        }
        self.write_denials();
        self.outputs += 1;
        let line = line::output(action, &mut self.mask);
        self.write(line);
        if let Action::Event(Event::Terminated(_)) = action {
            self.write(Object::new().with("end", true).with("inputs", self.inputs).with("outputs", self.outputs));
            self.send(b"");
            self.sink = None;
        }
    }

    fn failed(&mut self) -> Option<String> {
        self.failed.take()
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").field("inputs", &self.inputs).field("outputs", &self.outputs).finish_non_exhaustive()
    }
}
