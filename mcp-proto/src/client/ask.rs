//! Questions of the server to the application, in both eras. Up to 2025-11-25 they are requests of
//! the server. From 2026-07-28 on they are entries of an `input_required` result (multi round-trip
//! requests). The engine emits the same event for both. Each question is answered, withdrawn or
//! refused, and none is lost.

use super::call_table::{CallStage, CallState, InputState};
use super::ctx::Ctx;
use super::elicitations::check_page;
use super::env::ClientEnv;
use super::{Client, Event, State};
use crate::error::{CallError, DiagnosticKind};
use crate::exchange::ExchangeId;
use crate::input::{CallId, InputAnswer, InputKey, InputRequest, InputToken};
use crate::model::elicitation::{ElicitRequest, ElicitResult};
use crate::rpc::{DecodeError, ErrorObject, Id, JsonKind, Object, RawJson, Request, code};
use crate::version::ProtocolVersion;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The open questions: those that the application has not answered.
#[derive(Debug, Default)]
pub(super) struct ServerQuestions {
    open: BTreeMap<InputKey, OpenQuestion>,
    last: u64,
}

/// An open question.
#[derive(Debug)]
pub(super) struct OpenQuestion {
    request: InputRequest,
    asker: Asker,
}

/// The origin of a question.
#[derive(Clone, PartialEq, Debug)]
enum Asker {
    /// A request of the server. The client sends the answer as a response. `call` is set if the
    /// request arrived on the stream of a call.
    Server { exchange: ExchangeId, id: Id, call: Option<CallId> },
    /// A round of a call. The next request of the call carries the answers.
    Call(CallId),
    /// The error of a call that needs web pages. The answer is sent nowhere.
    Page(CallId),
    /// A request of the server that is a task with this id. The server fetches the answer.
    Task(String),
}

impl ServerQuestions {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    fn ask(&mut self, env: &mut ClientEnv, request: InputRequest, asker: Asker, call: Option<CallId>) -> InputKey {
        self.last += 1;
        let key = InputKey::new(self.last);
        self.open.insert(key, OpenQuestion { request: request.clone(), asker });
        env.event(Event::InputNeeded { token: InputToken::new(key), call, request });
        key
    }

    /// Asks for the consent of the user to a web page that a call needs.
    pub(super) fn ask_for_call(&mut self, env: &mut ClientEnv, page: InputRequest, call: CallId) -> InputKey {
        self.ask(env, page, Asker::Page(call), Some(call))
    }

    /// Returns the question in a request of the server, or the error with which the client
    /// responds.
    fn check_request(&mut self, env: &mut ClientEnv, request: &Request) -> Result<InputRequest, ErrorObject> {
        let question = read_question(env, &request.method, request.params.as_ref())?;
        if self.open.len() >= env.config.limits.client.max_inputs {
            env.diagnose(DiagnosticKind::TooManyInputs, request.method.clone());
            return Err(ErrorObject::new(code::INTERNAL_ERROR, "Too many open questions"));
        }
        Ok(question)
    }

    /// Returns the exchange on which the server asked the open question with this id. Over HTTP,
    /// any stream of the session matches.
    fn server_question(&self, env: &ClientEnv, on: ExchangeId, id: &Id) -> Option<ExchangeId> {
        self.open_question(env, on, id).and_then(|key| match &self.open.get(&key)?.asker {
            Asker::Server { exchange, .. } => Some(*exchange),
            Asker::Call(_) | Asker::Page(_) | Asker::Task(_) => None,
        })
    }

    fn open_question(&self, env: &ClientEnv, on: ExchangeId, id: &Id) -> Option<InputKey> {
        let anywhere = !env.is_duplex();
        let is_it = |asked: &OpenQuestion| matches!(&asked.asker, Asker::Server { exchange, id: of, .. } if of == id && (anywhere || *exchange == on));
        self.open.iter().find(|(_, asked)| is_it(asked)).map(|(key, _)| *key)
    }

    /// Reads the questions of a round, and the params of the next request: its state. Counts the
    /// round.
    fn read_round(
        &self,
        env: &mut ClientEnv,
        call: &mut CallState,
        result: &Object,
    ) -> Result<(Vec<(String, InputRequest)>, Object), CallError> {
        let max_rounds = env.config.limits.client.max_rounds;
        let method = call.raw.method.clone();
        call.rounds += 1;
        if call.rounds > max_rounds {
            return Err(CallError::TooManyRounds(max_rounds));
        }
        if !matches!(&*method, "tools/call" | "prompts/get" | "resources/read") {
            return Err(DecodeError::new(format!("`input_required` is no answer to {method}")).into());
        }
        let state = result.get("requestState").filter(|state| state.kind() != JsonKind::Null);
        if state.as_ref().is_some_and(|state| state.kind() != JsonKind::String) {
            return Err(DecodeError::new("`requestState` is not a string").into());
        }
        let requests = result.optional_object("inputRequests")?.unwrap_or_default();
        if state.is_none() && requests.is_empty() {
            return Err(DecodeError::new("neither `inputRequests` nor `requestState`").into());
        }
        if self.open.len() + requests.len() > env.config.limits.client.max_inputs {
            env.diagnose(DiagnosticKind::TooManyInputs, method);
            return Err(CallError::Input(ErrorObject::new(code::INTERNAL_ERROR, "Too many open questions")));
        }
        let mut questions = Vec::new();
        for (name, request) in requests.iter() {
            let request = Object::read(&request)?;
            let method: String = request.required("method")?;
            let question = read_question(env, &method, request.get("params").as_ref()).map_err(CallError::Input)?;
            questions.push((name.into_owned(), question));
        }
        Ok((questions, Object::new().with_opt("requestState", state)))
    }

    /// Puts a question of the task that a call waits for.
    fn ask_in_task(&mut self, env: &mut ClientEnv, call: CallId, request: &RawJson) -> Result<InputKey, CallError> {
        let request = Object::read(request)?;
        let method: String = request.required("method")?;
        if self.open.len() >= env.config.limits.client.max_inputs {
            env.diagnose(DiagnosticKind::TooManyInputs, method);
            return Err(CallError::Input(ErrorObject::new(code::INTERNAL_ERROR, "Too many open questions")));
        }
        let question = read_question(env, &method, request.get("params").as_ref()).map_err(CallError::Input)?;
        Ok(self.ask(env, question, Asker::Call(call), Some(call)))
    }

    pub(super) fn withdraw(&mut self, env: &mut ClientEnv, key: InputKey) {
        if self.open.remove(&key).is_some() {
            env.event(Event::InputWithdrawn(key));
        }
    }

    pub(super) fn withdraw_all(&mut self, env: &mut ClientEnv) {
        while let Some((&key, _)) = self.open.first_key_value() {
            self.withdraw(env, key);
        }
    }

    /// Withdraws the questions that the server asked on the stream of a call that has ended.
    pub(super) fn withdraw_of(&mut self, env: &mut ClientEnv, call: CallId) {
        let of = |asked: &OpenQuestion| matches!(asked.asker, Asker::Server { call: Some(of), .. } if of == call);
        while let Some(key) = self.open.iter().find(|(_, asked)| of(asked)).map(|(key, _)| *key) {
            self.withdraw(env, key);
        }
    }

    /// Returns whether an open question belongs, or may belong, to the call.
    pub(super) fn owes_answer(&self, call: CallId) -> bool {
        self.open.values().any(|asked| match asked.asker {
            Asker::Server { call: of, .. } => of.is_none_or(|of| of == call),
            Asker::Call(of) | Asker::Page(of) => of == call,
            // It may belong to any call: the server did not say.
            Asker::Task(_) => true,
        })
    }
}

impl Ctx {
    /// Returns what the server wants of the task that its request is to become (2025-11-25).
    fn wanted_answer_task(&self, request: &Request) -> Option<Object> {
        if !self.env.answers_as_tasks() || request.method == "roots/list" {
            return None;
        }
        Object::read_opt(request.params.as_ref()).ok()?.optional_object("task").ok().flatten()
    }

    /// Puts a question of the task that a call waits for to the application.
    pub(super) fn ask_for_task(&mut self, call: CallId, request: &RawJson) -> Result<InputKey, CallError> {
        self.questions.ask_in_task(&mut self.env, call, request)
    }
}

impl Client {
    /// Handles a request of the server.
    pub(super) fn on_request(&mut self, exchange: ExchangeId, request: Request) {
        let cx = &mut self.cx;
        if cx.env.is_modern() || cx.env.state() == State::Probing && !cx.env.is_duplex() {
            // The probe uses 2026-07-28. That revision has no requests of the server, and a client
            // must not post a response.
            return cx.env.diagnose(DiagnosticKind::UnexpectedRequest, request.method);
        }
        if request.id.size() > cx.env.config.limits.frame.max_id {
            cx.env.diagnose(DiagnosticKind::LongId, request.method);
            let error = ErrorObject::new(code::INVALID_REQUEST, "The id is too long");
            return cx.reply(exchange, &request.id, Err(error));
        }
        if request.method == "ping" {
            return cx.reply(exchange, &request.id, Ok(Object::new()));
        }
        if cx.env.version().is_none() {
            cx.env.diagnose(DiagnosticKind::UnexpectedRequest, request.method);
            let error = ErrorObject::new(code::INVALID_REQUEST, "Not initialized");
            return cx.reply(exchange, &request.id, Err(error));
        }
        if let Some(asked) = cx.questions.server_question(&cx.env, exchange, &request.id) {
            cx.env.diagnose(DiagnosticKind::DuplicateRequestId, request.id.to_string());
            // Over HTTP the server may repeat the same question on another stream. A second
            // response would answer the first question.
            if asked == exchange && cx.env.is_duplex() {
                let error = ErrorObject::new(code::INVALID_REQUEST, "The id is in use");
                cx.reply(exchange, &request.id, Err(error));
            }
            return;
        }
        if cx.env.answers_as_tasks() && self.on_answer_task_request(exchange, &request) {
            return;
        }
        let cx = &mut self.cx;
        match cx.questions.check_request(&mut cx.env, &request) {
            Ok(question) if let Some(wanted) = cx.wanted_answer_task(&request) => {
                match cx.answer_tasks.begin(&mut cx.env, &wanted) {
                    Ok((id, created)) => {
                        cx.reply(exchange, &request.id, Ok(created));
                        self.elicitations.on_question(cx, &question);
                        let key = cx.questions.ask(&mut cx.env, question, Asker::Task(id.clone()), None);
                        cx.answer_tasks.is_asked(&id, key);
                        cx.update_clocks();
                    }
                    Err(error) => cx.reply(exchange, &request.id, Err(error)),
                }
            }
            Ok(question) => {
                let call = cx.link.call_on(exchange);
                self.elicitations.on_question(cx, &question);
                cx.questions.ask(&mut cx.env, question, Asker::Server { exchange, id: request.id, call }, call);
                match call {
                    Some(call) => cx.update_clock(call),
                    None => cx.update_clocks(),
                }
            }
            Err(error) => cx.reply(exchange, &request.id, Err(error)),
        }
    }

    /// Handles a result of the kind `input_required`.
    pub(super) fn on_input_required(&mut self, call: CallId, result: &Object) {
        let cx = &mut self.cx;
        let Some(state) = cx.calls.get_mut(call) else { return };
        match cx.questions.read_round(&mut cx.env, state, result) {
            Ok((questions, round)) if questions.is_empty() => {
                cx.calls.leave_request(&mut cx.env, call);
                cx.calls.retry_later(&mut cx.env, call, round);
            }
            Ok((questions, round)) => {
                cx.calls.leave_request(&mut cx.env, call);
                let mut open = Vec::new();
                for (name, question) in questions {
                    let key = cx.questions.ask(&mut cx.env, question, Asker::Call(call), Some(call));
                    open.push((name, InputState::Open(key)));
                }
                if let Some(entry) = cx.calls.get_mut(call) {
                    entry.stage = CallStage::Asking { questions: open };
                    entry.round = round;
                }
                cx.update_clock(call);
            }
            Err(e) => self.end(call, Err(e)),
        }
    }

    pub(super) fn on_answer(&mut self, key: InputKey, answer: InputAnswer) {
        let Some(OpenQuestion { request, asker }) = self.cx.questions.open.remove(&key) else { return };
        match (asker, self.cx.env.version()) {
            (Asker::Page(call), _) => self.on_consent(call, key, consent(answer)),
            (Asker::Server { exchange, id, .. }, Some(version)) => {
                self.cx.reply(exchange, &id, fitting(&request, answer, version));
                self.cx.update_clocks();
            }
            (Asker::Task(id), Some(version)) => {
                self.cx.end_answer_task(&id, fitting(&request, answer, version));
                self.cx.update_clocks();
            }
            (Asker::Call(call), Some(version)) => match fitting(&request, answer, version) {
                // A client cannot report to a modern server that a question has no answer. It can
                // only send no further request.
                Err(error) => {
                    self.cancel_task(call);
                    self.end(call, Err(CallError::Input(error)));
                }
                Ok(result) => {
                    let is_last = self.cx.calls.answer_round(call, key, &result);
                    if self.cx.calls.task(call).is_some() {
                        self.send_answers(call);
                    } else if is_last {
                        self.on_round(call);
                    }
                }
            },
            (Asker::Server { .. } | Asker::Call(_) | Asker::Task(_), None) => {}
        }
    }

    /// Handles `notifications/cancelled`: the server no longer wants the response to its request.
    pub(super) fn on_cancelled(&mut self, exchange: ExchangeId, params: &Object) {
        let id = params.id("requestId");
        if id.as_ref().is_some_and(|id| id.size() > self.cx.env.config.limits.frame.max_id) {
            return self.cx.env.diagnose(DiagnosticKind::LongId, "a cancellation names an id that is too long");
        }
        if id.as_ref().is_some_and(|id| self.subscription.on_cancelled(&mut self.cx, exchange, id)) {
            return;
        }
        match id.as_ref().and_then(|id| self.cx.questions.open_question(&self.cx.env, exchange, id)) {
            Some(key) => {
                self.cx.questions.withdraw(&mut self.cx.env, key);
                self.cx.update_clocks();
            }
            None => {
                let id = id.map_or_else(|| "no id".to_string(), |id| id.to_string());
                self.cx.env.diagnose(DiagnosticKind::UnknownCancel, id);
            }
        }
    }
}

/// Reads a question and checks that the client declared the capabilities that it needs.
fn read_question(env: &mut ClientEnv, method: &str, params: Option<&RawJson>) -> Result<InputRequest, ErrorObject> {
    let question = match InputRequest::read(method, params) {
        Ok(Some(question)) => question,
        Ok(None) => {
            env.diagnose(DiagnosticKind::UnknownMethod, method);
            return Err(ErrorObject::new(code::METHOD_NOT_FOUND, "Method not found"));
        }
        Err(_) if !declares(env, method) => return Err(undeclared(env, method)),
        Err(e) => {
            env.diagnose(DiagnosticKind::BadParams, format!("{method}: {e}"));
            return Err(ErrorObject::new(code::INVALID_PARAMS, e.to_string()));
        }
    };
    let exists = env.version().is_some_and(|version| question.exists_in(version));
    if !exists || !question.is_supported_by(&env.config.capabilities) {
        if !declares(env, method) {
            return Err(undeclared(env, method));
        }
        // A mode, or the use of tools (2025-11-25 elicitation, error handling).
        env.diagnose(DiagnosticKind::MissingCapability, method);
        let text = format!("{method}: the client did not declare this form of it");
        return Err(ErrorObject::new(code::INVALID_PARAMS, text));
    }
    let checked = match &question {
        InputRequest::Elicitation(ElicitRequest::Url(page)) => check_page(env, page),
        question => question.check(),
    };
    match checked {
        Ok(()) => Ok(question),
        Err(e) => {
            env.diagnose(DiagnosticKind::BadParams, format!("{method}: {e}"));
            Err(ErrorObject::new(code::INVALID_PARAMS, e.to_string()))
        }
    }
}

/// Returns whether the client declared the capability of a method, with whatever options.
fn declares(env: &ClientEnv, method: &str) -> bool {
    let declared = &env.config.capabilities;
    match method {
        "elicitation/create" => {
            declared.elicitation.is_some() && env.version().is_some_and(|version| version.rules().elicitation)
        }
        "sampling/createMessage" => declared.sampling.is_some(),
        _ => declared.roots.is_some(),
    }
}

fn undeclared(env: &mut ClientEnv, method: &str) -> ErrorObject {
    env.diagnose(DiagnosticKind::MissingCapability, method);
    ErrorObject::new(code::METHOD_NOT_FOUND, format!("Method not found: {method} was not declared"))
}

/// Returns the decision of the user about a web page.
fn consent(answer: InputAnswer) -> Result<ElicitResult, ErrorObject> {
    match answer {
        InputAnswer::Elicitation(result) => Ok(result),
        InputAnswer::Error(error) => Err(error),
        InputAnswer::Sampling(_) | InputAnswer::Roots(_) => Err(misfit("it is not one to elicitation/create")),
    }
}

/// Returns the answer as the result of the question. Returns an error if the answer is of another
/// kind, or if its content does not fit the question.
fn fitting(question: &InputRequest, answer: InputAnswer, version: ProtocolVersion) -> Result<Object, ErrorObject> {
    let checked = match (question, &answer) {
        (_, InputAnswer::Error(error)) => return Err(error.clone()),
        // A form that cannot be read is the fault of the server. The client then accepts any
        // content.
        (
            InputRequest::Elicitation(ElicitRequest::Form(form)),
            InputAnswer::Elicitation(ElicitResult::Accept(content)),
        ) if form.fields().is_ok() => form.check(content),
        // What the user did on the page stays there (2025-11-25 elicitation, response actions).
        (InputRequest::Elicitation(ElicitRequest::Url(_)), InputAnswer::Elicitation(ElicitResult::Accept(_))) => {
            return Ok(Object::new().with("action", "accept"));
        }
        (InputRequest::Elicitation(_), InputAnswer::Elicitation(_)) => Ok(()),
        (InputRequest::Sampling(request), InputAnswer::Sampling(result)) => result.check(request, version),
        (InputRequest::Roots, InputAnswer::Roots(roots)) => roots.check(),
        _ => return Err(misfit(&format!("it is not one to {}", question.method()))),
    };
    checked.map_err(|e| misfit(&e.to_string()))?;
    answer.to_object(version)
}

fn misfit(why: &str) -> ErrorObject {
    ErrorObject::new(code::INTERNAL_ERROR, format!("the answer does not fit: {why}"))
}
