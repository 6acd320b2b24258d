//! Eviction: which kept events give way when the histories are above the limits.

use super::sessions::HttpState;
use super::streams::Eviction;
use crate::error::DiagnosticKind;
use crate::input::SessionKey;
use crate::server::client::{Bound, ClientIdentity};
use crate::server::env::ServerEnv;
use alloc::collections::BinaryHeap;

impl HttpState {
    /// Evicts the oldest events until the history of the session, those of its client, and all
    /// together are within the limits.
    pub(super) fn purge(&mut self, env: &mut ServerEnv, session_key: SessionKey) {
        let limits = &env.config.limits.server;
        let (max_events, max_bytes, max_total) = (limits.history_events, limits.history_bytes, limits.history_total);
        let share = Bound::History.share(limits);
        self.shorten(env, session_key, max_events, max_bytes);
        let Some(client) = self.http_session(session_key).map(|session| session.client.clone()) else { return };
        if env.shares.held(&client, Bound::History) > share {
            self.shorten_most(env, &client);
        }
        while env.shares.all(Bound::History) > max_total {
            // The client that keeps most gives way: no client can evict the events of another.
            let Some(client) = env.shares.most(Bound::History).cloned() else { return };
            self.shorten_most(env, &client);
        }
    }

    /// Evicts an eighth of the kept events of a client, from its longest histories. One pass over
    /// all sessions then serves many events.
    fn shorten_most(&mut self, env: &mut ServerEnv, client: &ClientIdentity) {
        let sessions = self.sessions.iter().filter(|(_, session)| session.client == *client);
        let mut kept: BinaryHeap<(usize, SessionKey)> =
            sessions.map(|(key, session)| (session.history.bytes(), *key)).collect();
        let held = env.shares.held(client, Bound::History);
        while env.shares.held(client, Bound::History) > held - held.div_ceil(8)
            && let Some((bytes, session)) = kept.pop().filter(|(bytes, _)| *bytes > 0)
        {
            let rest = bytes - bytes.div_ceil(8);
            self.shorten(env, session, usize::MAX, rest);
            kept.push((rest, session));
        }
    }

    /// Evicts the oldest events of a session until it is within these limits.
    fn shorten(&mut self, env: &mut ServerEnv, session_key: SessionKey, max_events: usize, max_bytes: usize) {
        loop {
            let Some(session) = self.sessions.get_mut(&session_key) else { return };
            let history = &mut session.history;
            if history.len() <= max_events && history.bytes() <= max_bytes {
                return;
            }
            let Some((number, key, weight)) = history.pop() else { return };
            env.shares.give_back_of(&session.client, Bound::History, weight);
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            let Eviction { is_first_loss, was_last } = stream.evict(number);
            if is_first_loss {
                env.diagnose(
                    DiagnosticKind::DroppedAnswer,
                    "an event that its client has not come for is not kept any longer",
                );
            }
            if was_last {
                self.remove_stream(env, key);
            }
        }
    }
}
