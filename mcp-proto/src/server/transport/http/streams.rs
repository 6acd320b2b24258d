//! Response streams over HTTP: the response to a POST, and the session's own stream, which a client
//! opens with GET. A legacy stream outlives the exchange that carries it. An event of a stream that
//! can be resumed is kept before it is sent. Each message goes out on one stream, and a stream goes
//! out on one exchange, the newest (2025-11-25 transports, multiple connections).

mod response;
mod resume;
mod shared;

pub(super) use response::Eviction;
pub(in crate::server) use response::ResponseStream;
pub(in crate::server) use shared::Place;
pub(super) use shared::{OWN, lost_events};

use super::ResponseStage;
use super::history::event_id;
use super::respond::{retry_after, status_of};
use super::sessions::{HttpState, SessionEntry};
use crate::auth::AccessDenial;
use crate::error::{DiagnosticKind, Refusal};
use crate::exchange::{ExchangeId, Headers, Outbound};
use crate::input::{RequestKey, SessionKey};
use crate::rpc::code;
use crate::server::batch::Batch;
use crate::server::client::Bound;
use crate::server::env::ServerEnv;
use crate::server::keys::{ServerTimer, StreamKey};
use crate::server::response::SerializedResponse;
use crate::server::{Event, KeptEvent, Server};
use crate::short_set::ShortSet;
use crate::version::ProtocolVersion;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use shared::SharedStream;

/// What the opening of a stream has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StreamStart {
    /// Nothing: it was open, or no exchange carries it.
    Nothing,
    /// The head alone.
    Head,
    /// The head and an event.
    Event,
}

impl HttpState {
    fn new_stream(
        &mut self,
        session: Option<SessionKey>,
        version: ProtocolVersion,
        exchange: Option<ExchangeId>,
        can_stream: bool,
        is_own: bool,
    ) -> StreamKey {
        self.last_stream += 1;
        let key = StreamKey(self.last_stream);
        let (mut number, mut shared) = (0, None);
        let of_server = self.last_stream;
        if let Some(session) = session.and_then(|session| self.http_session_mut(session)) {
            session.last_stream += 1;
            number = session.last_stream;
            if let Some(of_session) = &session.shared {
                number = if is_own { OWN } else { of_session.number(of_server) };
                shared = Some(Box::new(SharedStream::new()));
            }
            session.streams.insert(key);
            session.own = if is_own { Some(key) } else { session.own };
        }
        let stream = ResponseStream {
            session,
            number,
            version,
            exchange,
            can_stream,
            streams: is_own,
            running: ShortSet::new(),
            batch: None,
            kept: VecDeque::new(),
            gone: None,
            said: None,
            is_own,
            is_over: false,
            speaks_dialect: false,
            shared,
        };
        self.streams.insert(key, stream);
        key
    }

    /// Returns whether the end of a stream waits for its client to resume.
    pub(in crate::server) fn is_awaited(&self) -> bool {
        let waits = |stream: &ResponseStream| {
            let is_kept = stream.exchange.is_none() && stream.kept.back() > stream.said.as_ref();
            stream.is_over && (is_kept || stream.is_being_stored())
        };
        self.streams.values().any(waits)
    }

    /// Returns the stream for the engine's requests to the client: that of the request, or the
    /// session's own if the client cannot receive events on the first.
    pub(in crate::server) fn stream_to_ask_on(&mut self, key: StreamKey) -> StreamKey {
        let Some(stream) = self.streams.get(&key) else { return key };
        match stream.session {
            Some(session) if !stream.can_stream || stream.is_lost() => self.own_stream_of(session, stream.version),
            _ => key,
        }
    }

    /// Returns whether the client can receive a request of the engine: on the stream of the
    /// request, or on the session's own, if an exchange carries that.
    pub(in crate::server) fn can_ask_on(&self, key: StreamKey) -> bool {
        let Some(stream) = self.streams.get(&key) else { return false };
        let own = || self.streams.get(&self.http_session(stream.session?)?.own?)?.exchange;
        stream.can_stream && !stream.is_lost() || own().is_some()
    }

    /// Returns the stream for a notification about a request: its own while it runs, then that of
    /// the session.
    pub(in crate::server) fn stream_to_tell_on(&mut self, key: StreamKey, session: SessionKey) -> StreamKey {
        if self.streams.get(&key).is_some_and(|stream| !stream.running.is_empty()) {
            return self.stream_to_ask_on(key);
        }
        let version = self.http_session(session).and_then(|session| session.session.negotiated());
        match version.map(|negotiated| negotiated.version) {
            Some(version) => self.own_stream_of(session, version),
            None => key,
        }
    }

    pub(super) fn own_stream_of(&mut self, session: SessionKey, version: ProtocolVersion) -> StreamKey {
        let own = self.http_session(session).and_then(|session| session.own);
        own.unwrap_or_else(|| self.new_stream(Some(session), version, None, true, true))
    }

    /// Opens the stream that answers the POST of this exchange.
    pub(in crate::server) fn open_stream(
        &mut self,
        env: &mut ServerEnv,
        x: ExchangeId,
        session: Option<SessionKey>,
        version: ProtocolVersion,
        is_batch: bool,
    ) -> StreamKey {
        let can_stream = env.takes_events(x);
        let key = self.new_stream(session, version, Some(x), can_stream, false);
        let Some(stream) = self.streams.get_mut(&key) else { return key };
        stream.batch = is_batch.then(Batch::new);
        // Servers that share the session learn then who runs the request.
        let is_early = stream.is_primed() || stream.shared.is_some();
        let after = if is_early { Some(env.config.stream_after) } else { env.config.keep_alive };
        let is_shared = stream.shared.is_some();
        if let Some(http) = env.http(x) {
            http.stage = ResponseStage::Carrying(key);
        }
        env.keep_alive_in(x, after.filter(|_| can_stream || is_shared));
        key
    }

    /// The client of a stream speaks the dialect of tool streams.
    pub(super) fn speak_dialect(&mut self, key: StreamKey) {
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.speaks_dialect = true;
        }
    }

    /// Sends a notification or a request of the engine. The first makes the response an event
    /// stream.
    pub(in crate::server) fn stream_send(&mut self, env: &mut ServerEnv, key: StreamKey, message: Bytes) {
        let Some(stream) = self.streams.get(&key) else { return };
        if !stream.can_stream || stream.is_lost() {
            return env.diagnose(DiagnosticKind::DroppedNotification, "its client can take no event");
        }
        self.open_events(env, key, None);
        self.stream_event(env, key, None, message);
    }

    /// Makes the response of a POST an event stream, if it is none yet. `retry`: when the client
    /// should resume, if not the configured time.
    pub(super) fn open_events(&mut self, env: &mut ServerEnv, key: StreamKey, retry: Option<Duration>) -> StreamStart {
        let Some(stream) = self.streams.get_mut(&key) else { return StreamStart::Nothing };
        if core::mem::replace(&mut stream.streams, true) {
            return StreamStart::Nothing;
        }
        let (x, primed, batch) = (stream.exchange, stream.is_primed(), stream.batch.take());
        let is_shared = stream.shared.is_some();
        let Some(x) = x else { return StreamStart::Nothing };
        env.begin_events(x, Headers::new());
        if is_shared {
            // The first event waits for the store.
            env.send_comment(x);
        }
        let mut opening = StreamStart::Head;
        if primed {
            self.stream_event(env, key, Some(retry.unwrap_or(env.config.retry)), Bytes::new());
            opening = StreamStart::Event;
        }
        for answer in batch.into_iter().flat_map(Batch::into_responses) {
            self.stream_event(env, key, None, answer);
            opening = StreamStart::Event;
        }
        opening
    }

    /// Keeps an event, then sends it if an exchange carries the stream.
    fn stream_event(&mut self, env: &mut ServerEnv, key: StreamKey, retry: Option<Duration>, data: Bytes) {
        if self.append_shared(env, key, retry, &data, false) {
            return;
        }
        let kept = self.keep_event(env, key, &data);
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let Some(x) = stream.exchange else { return };
        let id = kept.map(|(number, id)| {
            stream.said = Some(number);
            id
        });
        env.send_on_stream(x, Outbound::Event { event: None, id, retry, data });
    }

    /// Keeps an event of a stream that can be resumed, and evicts older ones beyond the limits.
    fn keep_event(&mut self, env: &mut ServerEnv, key: StreamKey, data: &Bytes) -> Option<(u64, String)> {
        let stream = self.streams.get_mut(&key)?;
        let session_key = stream.session?;
        let SessionEntry { history, client, .. } = &mut **self.sessions.get_mut(&session_key)?;
        let is_too_large = data.len() > env.config.limits.server.history_bytes;
        let number = if is_too_large {
            // A client that has this event has missed nothing; one that resumes before it has.
            let number = history.pass();
            let weight = history.forget(core::mem::take(&mut stream.kept));
            env.shares.give_back_of(client, Bound::History, weight);
            stream.gone = Some(number);
            number
        } else {
            let (number, weight) = history.push(key, data.clone());
            stream.kept.push_back(number);
            env.shares.take(client, Bound::History, weight);
            number
        };
        let (stream_number, id) = (stream.number, event_id(stream.number, number));
        if is_too_large {
            env.diagnose(DiagnosticKind::DroppedAnswer, "an event is larger than all that is kept of a session");
        }
        if env.config.report_kept {
            let kept = KeptEvent { session: session_key, stream: stream_number, id: id.clone(), data: data.clone() };
            env.emit(Event::Kept(kept));
        }
        self.purge(env, session_key);
        Some((number, id))
    }

    pub(super) fn remove_stream(&mut self, env: &mut ServerEnv, key: StreamKey) {
        self.forget_waiting(env, key);
        env.timers.set(ServerTimer::Keep(key), None);
        let Some(stream) = self.streams.remove(&key) else { return };
        let Some(session) = stream.session.and_then(|session| self.sessions.get_mut(&session)) else { return };
        session.streams.remove(&key);
        session.own = session.own.filter(|own| *own != key);
        let weight = session.history.forget(stream.kept);
        env.shares.give_back_of(&session.client, Bound::History, weight);
    }

    /// Every element of a batch was read. `answers`: the engine's own responses.
    pub(super) fn batch_is_read(&mut self, env: &mut ServerEnv, key: StreamKey, answers: Vec<Bytes>) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        if let Some(batch) = &mut stream.batch {
            answers.into_iter().for_each(|answer| batch.push(answer));
            batch.close();
        }
        self.finish_stream_if_quiet(env, key);
    }

    /// Sends the response of a request. The stream ends with the last one.
    pub(in crate::server) fn stream_reply(&mut self, env: &mut ServerEnv, key: StreamKey, reply: SerializedResponse) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        // The status of a response that has not begun says more than an event.
        let has_status = reply.lacks.is_some() && !stream.streams;
        if stream.sends_dialect() && !has_status {
            return self.complete_tool_stream(env, key, reply);
        }
        let SerializedResponse { message: answer, code, lacks, .. } = reply;
        if stream.streams {
            if stream.is_lost() {
                env.diagnose(DiagnosticKind::DroppedAnswer, "its client is gone, and cannot come back for it");
            } else if stream.shared.is_some() && stream.running.is_empty() && !stream.is_own {
                stream.is_over = true;
                self.append_shared(env, key, None, &answer, true);
            } else {
                self.stream_event(env, key, None, answer);
            }
        } else if let Some(batch) = &mut stream.batch {
            batch.end(Some(answer));
        } else {
            let (status, headers) = match lacks {
                Some(scopes) => {
                    let denial = env.denial(&AccessDenial::Scope(scopes));
                    (denial.status, denial.headers)
                }
                None if code == Some(code::TOO_MANY_REQUESTS) => (429, retry_after(&answer)),
                None if stream.is_legacy() => (200, Headers::new()),
                None => (status_of(code), Headers::new()),
            };
            return self.answer_whole(env, key, status, headers, Some(answer));
        }
        self.finish_stream_if_quiet(env, key);
    }

    /// A request of the stream was cancelled.
    pub(in crate::server) fn stream_no_reply(&mut self, env: &mut ServerEnv, key: StreamKey) {
        if let Some(batch) = self.streams.get_mut(&key).and_then(|stream| stream.batch.as_mut()) {
            batch.end(None);
        }
        self.finish_stream_if_quiet(env, key);
    }

    /// Adds a request of the application to the batch of a stream.
    pub(super) fn run_in_batch(&mut self, key: StreamKey) {
        if let Some(batch) = self.streams.get_mut(&key).and_then(|stream| stream.batch.as_mut()) {
            batch.run();
        }
    }

    /// Ends a stream that answers a POST once no request of it runs.
    pub(in crate::server) fn finish_stream_if_quiet(&mut self, env: &mut ServerEnv, key: StreamKey) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        if stream.is_own || stream.is_over || !stream.running.is_empty() {
            return;
        }
        if stream.streams {
            return self.finish_stream(env, key);
        }
        if stream.batch.as_ref().is_some_and(|batch| !batch.is_complete()) {
            return;
        }
        let array = stream.batch.take().and_then(|batch| batch.into_array().bytes);
        self.answer_whole(env, key, 200, Headers::new(), array);
    }

    /// Responds to a POST whose stream has not begun, and removes the stream. `None`: its requests
    /// were cancelled.
    fn answer_whole(
        &mut self,
        env: &mut ServerEnv,
        key: StreamKey,
        status: u16,
        headers: Headers,
        body: Option<Bytes>,
    ) {
        let Some(stream) = self.streams.get(&key) else { return };
        let (x, can_stream, session) = (stream.exchange, stream.can_stream, stream.session);
        if !self.end_claim(env, key) {
            self.remove_stream(env, key);
        }
        session.into_iter().for_each(|session| self.touch_session(env, session));
        let Some(x) = x else {
            if body.is_some() {
                env.diagnose(DiagnosticKind::DroppedAnswer, "its client is gone, and cannot come back for it");
            }
            return;
        };
        match body {
            Some(body) if status == 200 => env.answer_one(x, headers, body),
            Some(body) => env.answer_json(x, status, headers, body),
            None if !can_stream => env.accept(x),
            None => {
                env.begin_events(x, headers);
                env.send_comment(x);
                env.send(x, Outbound::End);
                env.end(x);
            }
        }
    }

    /// Everything of a stream was sent, or is kept for a client that resumes.
    fn finish_stream(&mut self, env: &mut ServerEnv, key: StreamKey) {
        if self.finish_shared(env, key) {
            return;
        }
        let Some(stream) = self.streams.get_mut(&key) else { return };
        stream.is_over = true;
        let (session, is_lost, kept_none) = (stream.session, stream.is_lost(), stream.kept.is_empty());
        match stream.exchange {
            None if is_lost || session.is_none() || kept_none => self.remove_stream(env, key),
            None => {}
            Some(x) => self.end_of_stream(env, key, x, session),
        }
        session.into_iter().for_each(|session| self.touch_session(env, session));
    }

    /// Sends the end of a stream. Its events are kept until the end is written, and some time more.
    fn end_of_stream(&mut self, env: &mut ServerEnv, key: StreamKey, x: ExchangeId, session: Option<SessionKey>) {
        env.send(x, Outbound::End);
        if session.is_none() {
            self.remove_stream(env, key);
            return env.end(x);
        }
        env.timers.set(ServerTimer::KeepAlive(x), None);
        let limits = &env.config.limits.server;
        env.timers.set(ServerTimer::Keep(key), Some(env.now + limits.history_keep + limits.write_stall));
        if let Some(http) = env.http(x) {
            http.stage = ResponseStage::Written(key);
        }
    }

    /// Everything on an exchange is written. If that was the end of a stream, its keep time starts.
    pub(in crate::server) fn stream_is_written(&mut self, env: &mut ServerEnv, x: ExchangeId) {
        let Some(http) = env.http(x) else { return };
        let ResponseStage::Written(key) = http.stage else { return };
        env.timers.set(ServerTimer::Keep(key), Some(env.now + env.config.limits.server.history_keep));
        self.let_go(env, key, x);
    }

    /// Sends the end of the exchange of a stream before the end of the stream, so that its client
    /// resumes it. Returns that exchange, which is over then. `None`: no exchange carries the
    /// stream.
    pub(in crate::server) fn close_stream(
        &mut self,
        env: &mut ServerEnv,
        key: StreamKey,
        retry: Option<Duration>,
    ) -> Result<Option<ExchangeId>, Refusal> {
        let stream = self.streams.get(&key).ok_or(Refusal::NotWanted)?;
        if !stream.is_primed() || !stream.can_stream || stream.is_lost() {
            return Err(Refusal::NotWanted);
        }
        let Some(x) = stream.exchange else { return Ok(None) };
        if self.open_events(env, key, retry) == StreamStart::Nothing {
            let retry = retry.unwrap_or(env.config.retry);
            self.stream_event(env, key, Some(retry), Bytes::new());
        }
        if self.close_shared(key) {
            return Ok(None);
        }
        env.send(x, Outbound::End);
        Ok(Some(x))
    }

    /// Ends an exchange that has sent all of a stream. The stream is kept by its own timer from now
    /// on.
    fn let_go(&mut self, env: &mut ServerEnv, key: StreamKey, x: ExchangeId) {
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.exchange = None;
        }
        if let Some(http) = env.http(x) {
            http.stage = ResponseStage::Answering;
        }
        env.end(x);
    }

    /// Ends the oldest exchange that has sent all of a stream, if the driver does not report what
    /// is written: its place is needed.
    pub(in crate::server) fn let_go_of_untold(&mut self, env: &mut ServerEnv) {
        let found = env.exchanges.iter().find_map(|(x, exchange)| match exchange.binding.http()?.stage {
            ResponseStage::Written(key) if !exchange.load.told => Some((key, *x)),
            _ => None,
        });
        found.into_iter().for_each(|(key, x)| self.let_go(env, key, x));
    }

    /// The keep time of a stream is over, unless it is still being written.
    pub(in crate::server) fn on_keep(&mut self, env: &mut ServerEnv, key: StreamKey) {
        let Some(stream) = self.streams.get(&key) else { return };
        let exchange = stream.exchange.and_then(|x| Some((x, env.exchanges.get(&x)?)));
        // A driver that reports unsent bytes is waited for as long as there are some; another is
        // not.
        if exchange.is_some_and(|(_, exchange)| exchange.load.told && exchange.load.total() > 0) {
            let next = env.again(env.config.limits.server.history_keep);
            return env.timers.set(ServerTimer::Keep(key), Some(next));
        }
        if let Some(x) = stream.exchange {
            self.let_go(env, key, x);
        }
        self.remove_stream(env, key);
    }

    /// Returns the session and its own stream, if the exchange carries that.
    pub(in crate::server) fn own_stream(&self, env: &ServerEnv, x: ExchangeId) -> Option<(SessionKey, StreamKey)> {
        let http = env.exchanges.get(&x)?.binding.http()?;
        let ResponseStage::Carrying(key) = http.stage else { return None };
        let stream = self.streams.get(&key).filter(|stream| stream.is_own)?;
        Some((stream.session?, key))
    }
}

impl Server {
    /// The exchange that carried a stream is over.
    pub(in crate::server) fn detach(&mut self, key: StreamKey, x: ExchangeId) {
        if let Some(client) = self.wire.http.own.remove(&x) {
            self.wire.env.shares.give_back(client, Bound::Streams, 1);
        }
        let Some(stream) = self.wire.http.streams.get_mut(&key).filter(|stream| stream.exchange == Some(x)) else {
            return;
        };
        stream.exchange = None;
        if !stream.is_legacy() || stream.speaks_dialect {
            // Leaving is how a modern client cancels (2026-07-28 cancellation), and the only way of
            // one that speaks the dialect.
            let running: Vec<RequestKey> = stream.running.iter().collect();
            running.into_iter().for_each(|request| self.requests.cancel(&mut self.wire, request, false));
            return self.wire.http.remove_stream(&mut self.wire.env, key);
        }
        let session = stream.session;
        let nothing_left = stream.is_over && stream.kept.is_empty() && !stream.is_being_stored();
        if stream.running.is_empty() && (stream.is_lost() || session.is_none() || nothing_left) {
            self.wire.http.remove_stream(&mut self.wire.env, key);
        }
        if let Some(session) = session {
            self.wire.http.touch_session(&mut self.wire.env, session);
            self.requests.time_questions_of(&mut self.wire, session);
        }
    }

    /// Ends a stream, since its session ends or the server terminates.
    pub(super) fn end_stream(&mut self, key: StreamKey) {
        let Some(stream) = self.wire.http.streams.get(&key) else { return };
        if let Some(x) = stream.exchange {
            if self.wire.env.http(x).is_some_and(|http| matches!(http.stage, ResponseStage::Carrying(_))) {
                self.wire.http.send_waiting(&mut self.wire.env, key, x);
                self.wire.env.send(x, Outbound::End);
            }
            self.drop_exchange(x);
        }
        self.wire.http.remove_stream(&mut self.wire.env, key);
    }
}
