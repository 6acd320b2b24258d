//! Actions of an application or a driver at a time when none is expected.

use super::World;
use bytes::Bytes;
use mcp_proto::exchange::{Closed, ConnectionId, IoEvent, Peer};
use mcp_proto::input::{CallId, ClientCommand, Input, InputAnswer, InputKey};
use mcp_proto::model::elicitation::ElicitResult;
use mcp_proto::rpc::Object;

impl World {
    /// Applies an input that no correct driver sends.
    pub(super) fn spurious(&mut self, client: usize) {
        let channel = ConnectionId(1 + self.rng.below(4));
        let known = self.links.iter().any(|link| link.client == client && link.at_client == channel);
        let opening = self.clients[client].hanging.contains(&channel)
            || self.opening.iter().any(|(_, c, ch)| *c == client && *ch == channel);
        let input = match self.rng.below(7) {
            0 => Input::Tick,
            1 => Input::Command(ClientCommand::Cancel(CallId(9999), None)),
            2 => Input::Command(ClientCommand::Answer(
                InputKey::new(9999),
                InputAnswer::Elicitation(ElicitResult::Cancel),
            )),
            3 if !known && !opening => Input::Event(channel, IoEvent::Read(Bytes::from_static(b"late\n"))),
            4 if !known && !opening => Input::Event(channel, IoEvent::ReadClosed),
            5 if !known && !opening => Input::Event(channel, IoEvent::Closed(Closed::Reset)),
            6 if !opening => Input::Event(channel, IoEvent::Opened(Peer::default())),
            _ => Input::Event(channel, IoEvent::Written(0)),
        };
        self.input(client, input);
    }

    /// Sends up to `most` random inputs to a client whose server has ended its output or exited.
    /// The client then waits for the exit status, or starts the server again. Both states are short
    /// in a scenario, so other tests cover them rarely.
    pub(super) fn burst(&mut self, client: usize, channel: ConnectionId, most: u64) {
        for _ in 0..self.rng.below(most) {
            let call = self.some_call(client);
            let input = match self.rng.below(21) {
                20 => Input::Event(channel, IoEvent::Written(9)),
                0..=2 => Input::Event(channel, IoEvent::Opened(Peer::default())),
                3..=5 => Input::Event(channel, IoEvent::Read(Bytes::from_static(b"{}\n"))),
                6..=8 => Input::Event(channel, IoEvent::ReadClosed),
                9 | 10 => Input::Command(ClientCommand::Cancel(call, None)),
                11..=13 => Input::Command(ClientCommand::NotifyTracked("acme/note".into(), Object::new())),
                14 | 15 => Input::Tick,
                16 => Input::Command(ClientCommand::Close),
                17 => return self.work(client),
                _ => Input::Command(ClientCommand::Answer(
                    InputKey::new(9999),
                    InputAnswer::Elicitation(ElicitResult::Cancel),
                )),
            };
            self.input(client, input);
        }
    }
}
