//! Asking an older client: the engine's own requests on a duplex exchange (`elicitation/create`, `sampling/createMessage`, `roots/list`).
//! In 2026-07-28 a server sends no request; there questions are results, see `responder.rs`.

use super::Timer;
use super::requests::Stage;
use super::{ExchangeId, Server};
use crate::error::DiagnosticKind;
use crate::exchange::Outgoing;
use crate::input::{Question, RequestKey};
use crate::rpc::{ErrorObject, Id, Object, Payload, RawJson, Response, code, notification, request};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The questions of one round.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// Those without an answer: the id on the wire, and the name.
    open: BTreeMap<i64, String>,
    /// What the handler wants back.
    state: Option<RawJson>,
}

impl Asking {
    pub(super) fn has(&self, id: i64) -> bool {
        self.open.contains_key(&id)
    }

    fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        self.open.keys().copied()
    }
}

impl Server {
    /// Sends the questions of a request. Its handler is entered again when all are answered, at once if there are none.
    pub(super) fn ask(&mut self, key: RequestKey, questions: Vec<Question>, state: Option<RawJson>) {
        let timeout = self.now + self.shared.config.limits.server.ask_timeout;
        let Some((key, running)) = self.rekey(key) else { return };
        let x = running.exchange;
        if let Some(entry) = &mut running.entry {
            entry.rounds += 1;
            // An answer to an earlier question of the same name is out of date.
            questions.iter().for_each(|question| drop(entry.inputs.remove(&question.name)));
        }
        let mut asking = Asking { open: BTreeMap::new(), state };
        let mut messages = Vec::with_capacity(questions.len());
        if let Some(duplex) = self.exchanges.get_mut(&x).and_then(|exchange| exchange.binding.duplex_mut()) {
            for question in questions {
                let id = duplex.next_id;
                duplex.next_id += 1;
                duplex.asked.insert(id, key);
                messages.push(request(&Id::Int(id), question.method, question.params.as_ref()));
                asking.open.insert(id, question.name);
            }
        }
        messages.into_iter().for_each(|message| self.send(x, Outgoing::Message(message)));
        let Some(running) = self.requests.get_mut(&key) else { return };
        if asking.open.is_empty() {
            self.enter_again(key, asking.state);
        } else {
            running.stage = Stage::Asking(asking);
            self.timers.set(Timer::Ask(key), Some(timeout));
        }
    }

    /// An answer of a client. Answers to nothing are told and dropped; none ever ends the exchange.
    pub(super) fn on_response(&mut self, x: ExchangeId, response: Response) {
        let outcome = match response.payload {
            Payload::Result(result) => Ok(result),
            Payload::Error(error) => Err(error),
        };
        let Some(duplex) = self.exchanges.get(&x).and_then(|exchange| exchange.binding.duplex()) else { return };
        let (id, as_text) = match &response.id {
            Id::Int(id) => (Some(*id), false),
            // Some clients answer a number with its decimal digits.
            Id::Text(text) => (text.parse().ok().filter(|id: &i64| id.to_string() == *text), true),
        };
        let asked_before = id.is_some_and(|id| (1..duplex.next_id).contains(&id));
        match id.filter(|id| duplex.asked.contains_key(id)) {
            Some(id) => {
                if as_text {
                    self.diagnose(DiagnosticKind::TextId, &format!("{}", response.id));
                }
                self.on_input(x, id, outcome);
            }
            None => {
                let kind = match (duplex.negotiated.is_some(), asked_before) {
                    (false, _) => DiagnosticKind::UnexpectedResponse,
                    (true, true) => DiagnosticKind::LateAnswer,
                    (true, false) => DiagnosticKind::UnknownId,
                };
                self.diagnose(kind, &format!("{}", response.id));
            }
        }
    }

    /// An answer that cannot be read, to a question that is open: it counts as an error, so that nobody waits for it.
    pub(super) fn on_unreadable_answer(&mut self, x: ExchangeId, id: Option<&Id>) {
        let Some(duplex) = self.exchanges.get(&x).and_then(|exchange| exchange.binding.duplex()) else { return };
        if let Some(Id::Int(id)) = id
            && duplex.asked.contains_key(id)
        {
            let error = ErrorObject::new(code::INTERNAL_ERROR, "the client's answer cannot be read");
            self.on_input(x, *id, Err(error));
        }
    }

    /// A hook refused a question of ours: it counts as answered with an error.
    pub(super) fn on_unsendable(&mut self, x: ExchangeId, id: &Id, reason: &str) {
        self.diagnose(DiagnosticKind::Denied, &format!("a question of ours: {reason}"));
        if let Id::Int(id) = id {
            let error = ErrorObject::new(code::INTERNAL_ERROR, "the question was refused on this side");
            self.on_input(x, *id, Err(error));
        }
    }

    fn on_input(&mut self, x: ExchangeId, id: i64, outcome: Result<RawJson, ErrorObject>) {
        let Some(duplex) = self.exchanges.get_mut(&x).and_then(|exchange| exchange.binding.duplex_mut()) else {
            return;
        };
        let Some(key) = duplex.asked.remove(&id) else { return };
        let Some(running) = self.requests.get_mut(&key) else { return };
        let Stage::Asking(asking) = &mut running.stage else { return };
        if let (Some(name), Some(entry)) = (asking.open.remove(&id), &mut running.entry) {
            entry.inputs.insert(name, outcome);
        }
        if asking.open.is_empty() {
            let state = asking.state.take();
            self.timers.set(Timer::Ask(key), None);
            self.enter_again(key, state);
        }
    }

    /// Takes questions out of the table of their exchange.
    pub(super) fn settle(&mut self, x: ExchangeId, asking: &Asking) {
        if let Some(duplex) = self.exchanges.get_mut(&x).and_then(|exchange| exchange.binding.duplex_mut()) {
            duplex.asked.retain(|id, _| !asking.has(*id));
        }
    }

    /// Tells the client that the answers to these questions are of no interest any more.
    pub(super) fn withdraw(&mut self, x: ExchangeId, asking: &Asking) {
        for id in asking.ids() {
            let params = Object::new().with("requestId", id);
            self.send(x, Outgoing::Message(notification("notifications/cancelled", Some(&params))));
        }
    }
}
