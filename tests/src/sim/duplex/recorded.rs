//! The records of a world about its clients, and their replay.

use super::World;
use crate::sim::report::Transcript;
use mcp_proto::input::WiredClientInput;
use mcp_proto::record::Recorder;
use mcp_proto::wired::WiredClient;
use mcp_proto::{ClientConfig, Instant};
use std::sync::{Arc, Mutex};

impl World {
    /// A client, recorded onto `tape` if this world does that.
    pub(super) fn engine(&self, config: &Arc<ClientConfig>, seed: [u8; 32], tape: &Arc<Mutex<Vec<u8>>>) -> WiredClient {
        let sink = Arc::clone(tape);
        let keep = move |line: &[u8]| {
            sink.lock().expect("no panic").extend_from_slice(line);
            Ok(())
        };
        match self.tape {
            Some(redaction) => Recorder::new(redaction, keep).client(Arc::clone(config), seed, self.now),
            None => WiredClient::new(Arc::clone(config), seed, self.now),
        }
    }

    /// The recording of a client so far.
    pub fn tape(&self, client: usize) -> Vec<u8> {
        self.clients[client].tape.lock().expect("no panic").clone()
    }

    /// The output of a client, with its writes joined, and that of a fresh one with the same
    /// inputs: `cut` splits each input, and the outputs are taken after every input or only at the
    /// end.
    pub fn refeed(
        &self,
        client: usize,
        drain_each: bool,
        mut cut: impl FnMut(&WiredClientInput) -> Vec<WiredClientInput>,
    ) -> (Transcript, Transcript) {
        let side = &self.clients[client];
        let mut engine = WiredClient::new(side.config.clone(), side.seed, Instant::ZERO);
        let mut said = Transcript::default();
        for (at, input) in &side.log {
            for input in cut(input) {
                let _ = engine.apply(*at, input);
                while let Some(action) = drain_each.then(|| engine.poll_output()).flatten() {
                    said.push(&action);
                }
            }
        }
        while let Some(action) = engine.poll_output() {
            said.push(&action);
        }
        (side.said.clone(), said)
    }
}
