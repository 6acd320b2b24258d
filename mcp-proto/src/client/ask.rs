//! Questions of the server to the application, in both eras behind one event: requests of the server up to 2025-11-25, and entries of an
//! `input_required` result from 2026-07-28 on (multi round-trip requests). A question is answered, withdrawn, or refused; never lost.

use super::calls::{Question, Stage};
use super::{Client, Event, State};
use crate::error::{CallError, DiagnosticKind};
use crate::exchange::ExchangeId;
use crate::input::{CallId, InputAnswer, InputKey, InputRequest, InputToken};
use crate::model::elicitation::ElicitResult;
use crate::rpc::{self, DecodeError, ErrorObject, Id, JsonKind, Object, Request, code};
use crate::version::Era;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A question that the application has not answered.
#[derive(Debug)]
pub(super) struct Asked {
    request: InputRequest,
    asker: Asker,
}

/// Who asked.
#[derive(Clone, PartialEq, Debug)]
enum Asker {
    /// A request of the server: the answer is a response. The call is known if it came on the stream of one.
    Server { exchange: ExchangeId, id: Id, call: Option<CallId> },
    /// A round of a call: the answers go into its next request.
    Call(CallId),
}

impl Client {
    /// A request of the server.
    pub(super) fn on_request(&mut self, exchange: ExchangeId, request: Request) {
        let modern = self.version().is_some_and(|version| version.era() == Era::Modern);
        if modern || self.state() == State::Probing && !self.is_duplex() {
            // 2026-07-28, in which the probe is made, has no such requests, and a client must not post a response.
            return self.diagnose(DiagnosticKind::UnexpectedRequest, request.method);
        }
        if request.id.size() > self.config.limits.frame.max_id {
            self.diagnose(DiagnosticKind::LongId, request.method);
            let error = ErrorObject::new(code::INVALID_REQUEST, "The id is too long");
            return self.reply(exchange, &request.id, Err(error));
        }
        if request.method == "ping" {
            return self.reply(exchange, &request.id, Ok(Object::new()));
        }
        if self.version().is_none() {
            self.diagnose(DiagnosticKind::UnexpectedRequest, request.method);
            let error = ErrorObject::new(code::INVALID_REQUEST, "Not initialized");
            return self.reply(exchange, &request.id, Err(error));
        }
        if let Some(asked) = self.server_question(exchange, &request.id) {
            self.diagnose(DiagnosticKind::DuplicateRequestId, request.id.to_string());
            // Over HTTP it may be the same question, said again on another stream; an answer would answer the first.
            if asked == exchange && self.is_duplex() {
                let error = ErrorObject::new(code::INVALID_REQUEST, "The id is in use");
                self.reply(exchange, &request.id, Err(error));
            }
            return;
        }
        match self.check_request(&request) {
            Ok(question) => {
                let call = self.exchanges.call_on(exchange);
                self.ask(question, Asker::Server { exchange, id: request.id, call }, call);
                match call {
                    Some(call) => self.update_clock(call),
                    None => self.update_clocks(),
                }
            }
            Err(error) => self.reply(exchange, &request.id, Err(error)),
        }
    }

    /// On which exchange the server asked the question that has this id and is open; one of the session, whichever stream it came on.
    fn server_question(&self, on: ExchangeId, id: &Id) -> Option<ExchangeId> {
        self.open_question(on, id).and_then(|key| match &self.inputs.get(&key)?.asker {
            Asker::Server { exchange, .. } => Some(*exchange),
            Asker::Call(_) => None,
        })
    }

    fn open_question(&self, on: ExchangeId, id: &Id) -> Option<InputKey> {
        let anywhere = !self.is_duplex();
        let is_it = |asked: &Asked| matches!(&asked.asker, Asker::Server { exchange, id: of, .. } if of == id && (anywhere || *exchange == on));
        self.inputs.iter().find(|(_, asked)| is_it(asked)).map(|(key, _)| *key)
    }

    /// Whether a request of the server can be put to the application; else the error that answers it.
    fn check_request(&mut self, request: &Request) -> Result<InputRequest, ErrorObject> {
        let question = self.read_question(&request.method, request.params.as_ref())?;
        if self.inputs.len() >= self.config.limits.client.max_inputs {
            self.diagnose(DiagnosticKind::TooManyInputs, request.method.clone());
            return Err(ErrorObject::new(code::INTERNAL_ERROR, "Too many open questions"));
        }
        Ok(question)
    }

    /// Reads a question and checks that it needs no more than was declared.
    fn read_question(&mut self, method: &str, params: Option<&rpc::RawJson>) -> Result<InputRequest, ErrorObject> {
        let question = match InputRequest::read(method, params) {
            Ok(Some(question)) => question,
            Ok(None) => {
                self.diagnose(DiagnosticKind::UnknownMethod, method);
                return Err(ErrorObject::new(code::METHOD_NOT_FOUND, "Method not found"));
            }
            Err(_) if !self.declares(capability_of(method)) => return Err(self.undeclared(method)),
            Err(e) => {
                self.diagnose(DiagnosticKind::BadParams, format!("{method}: {e}"));
                return Err(ErrorObject::new(code::INVALID_PARAMS, e.to_string()));
            }
        };
        if self.declares(question.capability()) { Ok(question) } else { Err(self.undeclared(method)) }
    }

    fn declares(&self, capability: &str) -> bool {
        let in_revision = capability != "elicitation" || self.version().is_some_and(|v| v.rules().elicitation);
        in_revision && self.config.capabilities.has(capability)
    }

    fn undeclared(&mut self, method: &str) -> ErrorObject {
        self.diagnose(DiagnosticKind::MissingCapability, method);
        ErrorObject::new(code::METHOD_NOT_FOUND, format!("Method not found: {method} was not declared"))
    }

    /// A result of the kind `input_required`.
    pub(super) fn on_input_required(&mut self, call: CallId, result: &Object) {
        match self.read_round(call, result) {
            Ok((questions, Some(state))) if questions.is_empty() => {
                self.leave_request(call);
                self.retry_later(call, state);
            }
            Ok((questions, state)) => {
                self.leave_request(call);
                let mut open = Vec::new();
                for (name, question) in questions {
                    let key = self.ask(question, Asker::Call(call), Some(call));
                    open.push((name, Question::Open(key)));
                }
                if let Some(entry) = self.calls.get_mut(&call) {
                    entry.stage = Stage::Asking { questions: open, state };
                }
                self.update_clock(call);
            }
            Err(e) => self.end(call, Err(e)),
        }
    }

    /// Reads the questions and the state of a round, and counts it.
    #[expect(clippy::type_complexity, reason = "the two members of the result, read")]
    fn read_round(
        &mut self,
        call: CallId,
        result: &Object,
    ) -> Result<(Vec<(String, InputRequest)>, Option<rpc::RawJson>), CallError> {
        let max_rounds = self.config.limits.client.max_rounds;
        let Some(entry) = self.calls.get_mut(&call) else { return Ok((Vec::new(), None)) };
        let method = entry.raw.method.clone();
        entry.rounds += 1;
        if entry.rounds > max_rounds {
            return Err(CallError::TooManyRounds(max_rounds));
        }
        if !matches!(&*method, "tools/call" | "prompts/get" | "resources/read") {
            return Err(DecodeError::new(format!("`input_required` is no answer to {method}")).into());
        }
        let state = result.get("requestState").filter(|state| state.kind() != JsonKind::Null).cloned();
        if state.as_ref().is_some_and(|state| state.kind() != JsonKind::String) {
            return Err(DecodeError::new("`requestState` is not a string").into());
        }
        let requests = result.optional_object("inputRequests")?.unwrap_or_default();
        if state.is_none() && requests.is_empty() {
            return Err(DecodeError::new("neither `inputRequests` nor `requestState`").into());
        }
        if self.inputs.len() + requests.len() > self.config.limits.client.max_inputs {
            self.diagnose(DiagnosticKind::TooManyInputs, method);
            return Err(CallError::Input(ErrorObject::new(code::INTERNAL_ERROR, "Too many open questions")));
        }
        let mut questions = Vec::new();
        for (name, request) in requests.iter() {
            let request = Object::read(request)?;
            let method: String = request.required("method")?;
            let question = self.read_question(&method, request.get("params")).map_err(CallError::Input)?;
            questions.push((name.to_string(), question));
        }
        Ok((questions, state))
    }

    /// The request that is out was answered; the next round has another id.
    pub(super) fn leave_request(&mut self, call: CallId) {
        if let Some(Stage::Sent(id)) = self.calls.get(&call).map(|entry| &entry.stage) {
            self.ids.retire(&id.clone());
        }
    }

    fn ask(&mut self, request: InputRequest, asker: Asker, call: Option<CallId>) -> InputKey {
        self.next_input += 1;
        let key = InputKey(self.next_input);
        self.inputs.insert(key, Asked { request: request.clone(), asker });
        self.out.event(Event::InputNeeded { token: InputToken::new(key), call, request });
        key
    }

    pub(super) fn on_answer(&mut self, key: InputKey, answer: InputAnswer) {
        let Some(asked) = self.inputs.remove(&key) else { return };
        let result = fitting(&asked.request, answer);
        match asked.asker {
            Asker::Server { exchange, id, .. } => {
                self.reply(exchange, &id, result);
                self.update_clocks();
            }
            Asker::Call(call) => match result {
                // There is no way to tell a modern server that a question cannot be answered, other than not to ask again.
                Err(error) => self.end(call, Err(CallError::Input(error))),
                Ok(result) => self.answer_round(call, key, result),
            },
        }
    }

    fn answer_round(&mut self, call: CallId, key: InputKey, result: Object) {
        let Some(entry) = self.calls.get_mut(&call) else { return };
        let Stage::Asking { questions, .. } = &mut entry.stage else { return };
        let mut open = false;
        for (_, question) in questions {
            match question {
                Question::Open(k) if *k == key => *question = Question::Answered(result.clone()),
                Question::Open(_) => open = true,
                Question::Answered(_) => {}
            }
        }
        if !open {
            self.on_round(call);
        }
    }

    /// `notifications/cancelled` of the server: it no longer wants the answer to a request of its own.
    pub(super) fn on_cancelled(&mut self, exchange: ExchangeId, params: &Object) {
        let id = params.id("requestId");
        if id.as_ref().is_some_and(|id| id.size() > self.config.limits.frame.max_id) {
            return self.diagnose(DiagnosticKind::LongId, "a cancellation names an id that is too long");
        }
        if id.as_ref().is_some_and(|id| self.ends_subscription(exchange, id)) {
            return;
        }
        match id.as_ref().and_then(|id| self.open_question(exchange, id)) {
            Some(key) => {
                self.withdraw(key);
                self.update_clocks();
            }
            None => {
                let id = id.map_or_else(|| "no id".to_string(), |id| id.to_string());
                self.diagnose(DiagnosticKind::UnknownCancel, id);
            }
        }
    }

    pub(super) fn withdraw(&mut self, key: InputKey) {
        if self.inputs.remove(&key).is_some() {
            self.out.event(Event::InputWithdrawn(key));
        }
    }

    pub(super) fn withdraw_all(&mut self) {
        while let Some((&key, _)) = self.inputs.first_key_value() {
            self.withdraw(key);
        }
    }

    /// Withdraws what the server asked on the stream of a call that has ended.
    pub(super) fn withdraw_of(&mut self, call: CallId) {
        let of = |asked: &Asked| matches!(asked.asker, Asker::Server { call: Some(of), .. } if of == call);
        while let Some(key) = self.inputs.iter().find(|(_, asked)| of(asked)).map(|(key, _)| *key) {
            self.withdraw(key);
        }
    }

    /// Whether a question waits for the application that belongs to the call, or may.
    pub(super) fn owes_answer(&self, call: CallId) -> bool {
        self.inputs.values().any(|asked| match asked.asker {
            Asker::Server { call: of, .. } => of.is_none_or(|of| of == call),
            Asker::Call(of) => of == call,
        })
    }

    fn reply(&mut self, exchange: ExchangeId, id: &Id, result: Result<Object, ErrorObject>) {
        let message = match result {
            Ok(result) => rpc::result_response(id, &result),
            Err(error) => rpc::error_response(Some(id), &error),
        };
        self.send_response(exchange, message);
    }
}

/// The answer as the result of the question, or the error in its place: of another kind, or content that does not fit the form.
fn fitting(question: &InputRequest, answer: InputAnswer) -> Result<Object, ErrorObject> {
    let misfit = |text: String| ErrorObject::new(code::INTERNAL_ERROR, text);
    match (question, &answer) {
        (_, InputAnswer::Error(error)) => Err(error.clone()),
        (InputRequest::Elicitation(request), InputAnswer::Elicitation(result)) => {
            // A form that cannot be read is the server's own affair; then any content may fit it.
            if let (ElicitResult::Accept(content), Ok(_)) = (result, request.fields()) {
                request.check(content).map_err(|e| misfit(format!("the answer does not fit the form: {e}")))?;
            }
            Ok(result.to_object())
        }
        (InputRequest::Sampling(_), InputAnswer::Sampling(result))
        | (InputRequest::Roots, InputAnswer::Roots(result)) => Ok(result.clone()),
        _ => Err(misfit(format!("the answer is not one to {}", question.method()))),
    }
}

/// The capability that a method of a server needs.
fn capability_of(method: &str) -> &str {
    method.split('/').next().unwrap_or(method)
}
