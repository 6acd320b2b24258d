//! Requests of the engine to a legacy client (`elicitation/create`, `sampling/createMessage`,
//! `roots/list`), on its duplex connection or on the stream of the request that asks. On 2026-07-28
//! a server sends no request; there questions are results, see `responder.rs`.

use super::client::Bound;
use super::env::ServerEnv;
use super::keys::{ReplyTo, ServerTimer, SessionRef};
use super::requests::Requests;
use super::running::{OpenQuestions, RequestStage, TaskPlace};
use super::session::QuestionState;
use super::wire::Wire;
use super::{ExchangeId, weight};
use crate::error::DiagnosticKind;
use crate::input::{LegacyInputRequest, RequestKey};
use crate::rpc::{ErrorObject, Id, InvalidMessage, Object, Payload, RawJson, Response, code, notification, request};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

impl OpenQuestions {
    /// Closes the engine's requests in the table of their session.
    pub(super) fn settle(&self, wire: &mut Wire, reply_to: ReplyTo) {
        if let Some(session) = wire.session_of_mut(reply_to) {
            self.close_in(session);
        }
    }

    /// Sends `notifications/cancelled` for the engine's open requests.
    pub(super) fn withdraw(&self, wire: &mut Wire, reply_to: ReplyTo) {
        let at = wire.target_of_questions(reply_to);
        for id in self.ids() {
            let params = Object::new().with("requestId", id);
            wire.send(at, notification("notifications/cancelled", Some(&params)));
        }
    }
}

impl Requests {
    /// Sends the engine's requests for a request. The next round begins when every response has
    /// arrived, at once if there are none.
    pub(super) fn ask(
        &mut self,
        wire: &mut Wire,
        key: RequestKey,
        questions: Vec<LegacyInputRequest>,
        state: Option<RawJson>,
    ) {
        let timeout = wire.env.now + wire.env.config.limits.server.ask_timeout;
        let Some(key) = self.rekey(wire, key) else { return };
        let Some(running) = self.get_mut(key) else { return };
        let reply_to = running.reply_to;
        if let Some(entry) = &mut running.entry {
            entry.rounds += 1;
            // A response of an earlier round with the same name is out of date.
            let old = questions.iter().filter_map(|question| entry.inputs.remove_entry(&question.name));
            let freed: usize = old.map(|(name, input)| weight::of_input(&name, &input)).sum();
            running.size -= freed;
            wire.env.shares.give_back(running.client, Bound::RunningBytes, freed);
        }
        let mut asking = OpenQuestions { open: BTreeMap::new(), state, until: timeout };
        let mut messages = Vec::with_capacity(questions.len());
        if let Some(session) = wire.session_of_mut(reply_to) {
            for question in questions {
                let id = session.open_question(key);
                messages.push(request(&Id::Int(id), question.method, question.params.as_ref()));
                asking.open.insert(id, question.name);
            }
        }
        let at = wire.target_of_questions(reply_to);
        messages.into_iter().for_each(|message| wire.send(at, message));
        let Some(running) = self.get_mut(key) else { return };
        if asking.open.is_empty() {
            self.enter_again(&mut wire.env, key, asking.state);
        } else {
            running.stage = RequestStage::Asking(asking);
            wire.env.timers.set(ServerTimer::Ask(key), Some(timeout));
            self.time_questions(wire, key);
        }
    }

    /// Handles a response of a client. One that refers to no open request is reported and dropped;
    /// none ends the connection.
    pub(super) fn on_response(&mut self, wire: &mut Wire, session_ref: SessionRef, response: Response) {
        let outcome = match response.payload {
            Payload::Result(result) => Ok(result),
            Payload::Error(error) => Err(error),
        };
        if response.has_nulls
            && let Some(session) = wire.session_mut(session_ref)
            && session.note_nulls()
        {
            let detail = format!("response {}: a member that is absent is null", response.id);
            wire.env.diagnose(DiagnosticKind::Deviation, &detail);
        }
        let Some(session) = wire.session(session_ref) else { return };
        let (id, as_text) = match &response.id {
            Id::Int(id) => (Some(*id), false),
            // Some clients send the decimal digits of a number as a string.
            Id::Text(text) => (text.parse().ok().filter(|id: &i64| id.to_string() == *text), true),
        };
        match session.question(id) {
            QuestionState::Open(id) => {
                if as_text {
                    wire.env.diagnose(DiagnosticKind::TextId, &format!("{}", response.id));
                }
                self.on_input(wire, session_ref, id, outcome);
            }
            closed_or_unknown => {
                let kind = match (session.negotiated().is_some(), closed_or_unknown) {
                    (false, _) => DiagnosticKind::UnexpectedResponse,
                    (true, QuestionState::Closed) => DiagnosticKind::LateAnswer,
                    (true, _) => DiagnosticKind::UnknownId,
                };
                wire.env.diagnose(kind, &format!("{}", response.id));
            }
        }
    }

    /// Handles a malformed response. If its id is open it counts as an error, so that the request
    /// does not wait for the timeout.
    pub(super) fn on_unreadable_answer(&mut self, wire: &mut Wire, session_ref: SessionRef, answer: &InvalidMessage) {
        let Some(session) = wire.session(session_ref) else { return };
        if let Some(Id::Int(id)) = &answer.id
            && matches!(session.question(Some(*id)), QuestionState::Open(_))
        {
            let text = match &answer.error_text {
                Some(said) => format!("the client's answer cannot be read: {said}"),
                None => "the client's answer cannot be read".to_string(),
            };
            let error = ErrorObject::new(code::INTERNAL_ERROR, text);
            self.on_input(wire, session_ref, *id, Err(error));
        }
    }

    /// A hook of the application blocked a request of the engine: it counts as an error response.
    pub(super) fn on_unsendable(&mut self, wire: &mut Wire, x: ExchangeId, id: &Id, reason: &str) {
        wire.env.diagnose(DiagnosticKind::Denied, &format!("a question of ours: {reason}"));
        if let Id::Int(id) = id {
            let error = ErrorObject::new(code::INTERNAL_ERROR, "the question was refused on this side");
            if let Some(session_ref) = wire.target_on(x).and_then(|reply_to| wire.session_of(reply_to)) {
                self.on_input(wire, session_ref, *id, Err(error));
            }
        }
    }

    fn on_input(&mut self, wire: &mut Wire, session_ref: SessionRef, id: i64, outcome: Result<RawJson, ErrorObject>) {
        let Some(session) = wire.session_mut(session_ref) else { return };
        let Some(key) = session.close_question(id) else { return };
        let task = self.get(key).map(|running| running.place);
        // Otherwise the rest of its message would stay in memory, and not be counted.
        let outcome = match outcome {
            Ok(result) => Ok(result.detached()),
            Err(ErrorObject { code, message, data }) => {
                Err(ErrorObject { code, message: message.as_str().into(), data: data.as_ref().map(RawJson::detached) })
            }
        };
        let outcome = self.if_there_is_room(&mut wire.env, key, outcome);
        if let Some(TaskPlace::Taken(task)) = task {
            return self.on_task_input(wire, task, (session_ref, id), outcome);
        }
        let Some(running) = self.get_mut(key) else { return };
        let RequestStage::Asking(asking) = &mut running.stage else { return };
        if let (Some(name), Some(entry)) = (asking.open.remove(&id), &mut running.entry) {
            if let Ok(answer) = &outcome {
                wire.env.diagnose_answer(&name, answer);
            }
            let held = weight::of_input(&name, &outcome);
            running.size += held;
            wire.env.shares.add(running.client, Bound::RunningBytes, held);
            entry.inputs.insert(name, outcome);
        }
        if asking.open.is_empty() {
            let state = asking.state.take();
            wire.env.timers.set(ServerTimer::Ask(key), None);
            self.enter_again(&mut wire.env, key, state);
        }
    }

    /// Returns the response, or an error if the limits leave no room: a response is held for as
    /// long as its request runs.
    fn if_there_is_room(
        &mut self,
        env: &mut ServerEnv,
        key: RequestKey,
        outcome: Result<RawJson, ErrorObject>,
    ) -> Result<RawJson, ErrorObject> {
        let client = self.get(key).and_then(|running| env.shares.client(running.client));
        let more = weight::of_input("", &outcome);
        if client.is_some_and(|client| env.check_share(client, Bound::RunningBytes, more).is_ok()) {
            return outcome;
        }
        let why = "there is no room for the client's answer";
        env.diagnose(DiagnosticKind::TooManyInputs, why);
        Err(ErrorObject::new(code::INTERNAL_ERROR, why))
    }
}
