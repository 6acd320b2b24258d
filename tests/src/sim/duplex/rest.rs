//! The end of a world: no state is left, the numbers are right, and later inputs have no effect.

use super::world::{Side, World};
use bytes::Bytes;
use mcp_proto::exchange::{Closed, ConnectionId, IoEvent, Peer, Sent};
use mcp_proto::input::{CallId, ClientCommand, Input, InputAnswer, InputKey};
use mcp_proto::model::elicitation::ElicitResult;
use mcp_proto::rpc::Object;
use mcp_proto::tools;

impl World {
    pub(super) fn check_rest(&mut self) {
        for (n, side) in self.clients.iter().enumerate() {
            assert!(side.terminated.is_some(), "client {n} never ended: {:?}", side.engine.client().state());
            assert_eq!(side.engine.poll_timeout(), None, "client {n} waits after its end");
            assert_eq!(side.engine.client().running(), 0);
            side.check_numbers();
            for made in side.made.values() {
                let unsent = matches!(&made.ended, Some(Err(error)) if error.sent() == Sent::No);
                let ran = made.tag.is_some_and(|tag| self.ran.contains(&tag));
                assert!(!(unsent && ran), "{:?} ran, and its end says that it certainly did not", made.call);
            }
        }
        assert!(self.server_terminated, "the server never ended");
        assert_eq!(self.server.poll_timeout(), None, "the server waits after its end");
        assert_eq!(self.server.running(), 0);
        assert!(self.tasks.is_empty(), "tasks that were not cancelled: {:?}", self.tasks.keys());
        assert!(self.links.is_empty() && self.opening.is_empty(), "links that were not closed");
    }

    pub(super) fn spurious_after_the_end(&mut self) {
        for client in 0..self.clients.len() {
            let channel = ConnectionId(1);
            let events = [
                IoEvent::Opened(Peer::default()),
                IoEvent::Read(Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n")),
                IoEvent::ReadClosed,
                IoEvent::Written(10),
                IoEvent::Closed(Closed::Eof),
            ];
            for event in events {
                self.input(client, Input::Event(channel, event));
            }
            for command in [
                ClientCommand::Call(tools::list().into_raw()),
                ClientCommand::Cancel(CallId(1), None),
                ClientCommand::Answer(InputKey::new(1), InputAnswer::Elicitation(ElicitResult::Cancel)),
                ClientCommand::Notify("x".into(), Object::new()),
                ClientCommand::Close,
            ] {
                let call = self.input(client, Input::Command(command));
                assert_eq!(call, None);
            }
            self.input(client, Input::Tick);
        }
    }
}

impl Side {
    /// The counters of the client must equal the observations.
    fn check_numbers(&self) {
        let stats = self.engine.stats();
        assert_eq!((stats.calls, stats.questions, stats.channels, stats.unsent, stats.queued), (0, 0, 0, 0, 0));
        assert_eq!(stats.calls_made, self.made.len() as u64);
        assert_eq!((stats.restarts, stats.pings_missed), (self.seen.restarts, self.seen.pings_missed));
        assert_eq!(stats.diagnostics.values().sum::<u64>(), self.seen.diagnostics);
        assert_eq!((stats.lost_notifications, stats.lost_diagnostics), (0, 0));
        // Not equal: a dead connection receives bytes as well, and an aborted one never reports its
        // writes.
        assert!(stats.traffic.bytes_in <= self.seen.told && stats.traffic.bytes_out <= self.seen.written);
        assert_eq!(self.seen.steps_taken, self.seen.steps_told, "each step of an end is reported");
        assert_eq!(self.seen.opened, self.seen.closed, "the end of each channel is reported");
    }
}
