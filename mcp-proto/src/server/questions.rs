//! Requests for input as the answer to a request: what the client can receive, and how it is asked.

use super::responder::{Responder, may_ask};
use super::seal::{self, Memory};
use crate::error::{Diagnostic, DiagnosticKind};
use crate::input::{Answer, InputRequest, LegacyInputRequest, RequestAnswer};
use crate::model::capabilities::ClientCapabilities;
use crate::model::elicitation::{ElicitRequest, UrlRequest};
use crate::model::tools::CallToolResult;
use crate::rpc::{ErrorObject, Object, RawJson, code, result_response};
use crate::telemetry::SpanOutcome;
use crate::version::Era;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Why input requests are not sent.
enum InputRefusal {
    Limit(&'static str),
    /// It violates the protocol.
    Invalid(String),
    Missing(Object),
}

impl Responder {
    /// Requests input of the client, or answers with an error if the client cannot receive that.
    pub(super) fn questions(self, mut requests: Vec<(String, InputRequest)>, state: Option<RawJson>) -> Answer {
        requests.iter_mut().for_each(|(name, request)| self.complete_question(name, request));
        if let Some(refusal) = self.refuse_questions(&requests) {
            return self.refused(refusal);
        }
        let insecure = requests.iter().filter_map(|(_, request)| request.page()).find(|page| !page.is_secure());
        let insecure = insecure.and_then(|page| page.host());
        let diagnostic = insecure.map(|host| Diagnostic::new(DiagnosticKind::InsecureUrl, host));
        if self.version.era() == Era::Modern && !self.is_task() {
            return self.ask_in_result(&requests, state, diagnostic);
        }
        let questions = requests.into_iter().map(|(name, request)| LegacyInputRequest {
            name,
            method: request.method(),
            params: request.params(self.version),
            elicitation: request.page().and_then(|page| page.elicitation_id.clone()),
        });
        let (questions, router) = (questions.collect(), self.router);
        let earlier = (self.version.era() == Era::Modern).then_some((self.inputs, self.rounds));
        Answer { key: self.key, what: RequestAnswer::Ask { questions, state, router, earlier, diagnostic } }
    }

    /// Adds what the engine knows to a request for input, and removes what its client did not
    /// declare.
    fn complete_question(&self, name: &str, request: &mut InputRequest) {
        match request {
            InputRequest::Elicitation(ElicitRequest::Url(page)) if page.elicitation_id.is_none() => {
                page.elicitation_id =
                    Some(self.shared.elicitation_id((self.first, self.key_age), self.principal.as_ref(), name));
            }
            InputRequest::Sampling(sampling) if self.version.rules().sampling_tools => {
                let declared = self.declared.capabilities();
                let has_context = declared.sampling.as_ref().is_some_and(|sampling| sampling.context.is_some());
                sampling.include_context =
                    sampling.include_context.take().filter(|context| has_context || context == "none");
            }
            InputRequest::Elicitation(_) | InputRequest::Sampling(_) | InputRequest::Roots => {}
        }
    }

    fn refuse_questions(&self, requests: &[(String, InputRequest)]) -> Option<InputRefusal> {
        let limits = &self.shared.config.limits.server;
        let names: BTreeSet<&str> = requests.iter().map(|(name, _)| name.as_str()).collect();
        if self.version.era() == Era::Modern && !may_ask(&self.method) {
            return Some(InputRefusal::Limit("this method cannot ask the client"));
        }
        if self.rounds >= limits.max_rounds {
            return Some(InputRefusal::Limit("the request asks the client too often"));
        }
        if requests.len() > limits.max_questions {
            return Some(InputRefusal::Limit("the request asks the client too many questions at once"));
        }
        if names.len() < requests.len() {
            return Some(InputRefusal::Limit("two questions have the same name"));
        }
        let missing: Vec<_> = requests.iter().map(|(_, request)| request).filter(|r| !self.can_ask(r)).collect();
        if !missing.is_empty() {
            return Some(InputRefusal::Missing(required_capabilities(&missing)));
        }
        let max_id = self.shared.config.limits.frame.max_id;
        let invalid = |(name, request): &(String, InputRequest)| match request {
            InputRequest::Elicitation(ElicitRequest::Url(UrlRequest { elicitation_id: Some(id), .. }))
                if id.is_empty() || id.len() > max_id =>
            {
                Some(format!("`{name}`: the id is empty or too long"))
            }
            request => request.check().err().map(|e| format!("`{name}`: {e}")),
        };
        let ids = || requests.iter().filter_map(|(_, request)| request.page()?.elicitation_id.as_deref());
        if ids().count() > ids().collect::<BTreeSet<_>>().len() {
            return Some(InputRefusal::Invalid("two web pages have the same id".into()));
        }
        requests.iter().find_map(invalid).map(InputRefusal::Invalid)
    }

    fn can_ask(&self, request: &InputRequest) -> bool {
        request.exists_in(self.version) && request.is_supported_by(&self.declared.capabilities())
    }

    fn refused(self, refusal: InputRefusal) -> Answer {
        match refusal {
            InputRefusal::Limit(why) => {
                let diagnostic = Diagnostic::new(DiagnosticKind::TooManyInputs, why);
                self.error(ErrorObject::new(code::INTERNAL_ERROR, why), Some(diagnostic))
            }
            InputRefusal::Invalid(why) => {
                let diagnostic = Diagnostic::new(DiagnosticKind::InvalidInputRequest, why.as_str());
                self.error(ErrorObject::new(code::INTERNAL_ERROR, why), Some(diagnostic))
            }
            InputRefusal::Missing(capabilities) => {
                let names: Vec<_> = capabilities.slices().map(|(name, _)| name).collect();
                let text = format!("the client lacks the capability: {}", names.join(", "));
                let diagnostic = Diagnostic::new(DiagnosticKind::MissingCapability, text.as_str());
                if self.version.era() == Era::Modern {
                    let data = Object::new().with("requiredCapabilities", capabilities);
                    let error = ErrorObject::new(code::MISSING_CLIENT_CAPABILITY, text).with_data(data.into());
                    self.error(error, Some(diagnostic))
                } else if self.method == "tools/call" {
                    let result = CallToolResult::error(text).lower(self.version).write();
                    self.message(result_response(&self.id, &result), SpanOutcome::ToolError, Some(diagnostic))
                } else {
                    self.error(ErrorObject::new(code::INTERNAL_ERROR, text), Some(diagnostic))
                }
            }
        }
    }

    /// Returns an `InputRequiredResult`. It carries no cache hints, and always a state, which holds
    /// the input responses of earlier rounds.
    fn ask_in_result(
        self,
        requests: &[(String, InputRequest)],
        state: Option<RawJson>,
        diagnostic: Option<Diagnostic>,
    ) -> Answer {
        let limits = &self.shared.config.limits.server;
        if self.has_large_params() {
            return self.refused(InputRefusal::Limit("the params of a request that asks are larger than the limit"));
        }
        let memory = Memory {
            nonce: self.mint_nonce(),
            origin: self.first.number(),
            rounds: self.rounds + 1,
            asked: requests.iter().map(|(name, _)| name.clone()).collect(),
            inputs: self.inputs.clone(),
            state,
        };
        let sealed =
            seal::seal(&self.binding(), self.received_unix().saturating_add(limits.state_lifetime.as_secs()), &memory);
        if sealed.len() > limits.max_state {
            return self.refused(InputRefusal::Limit("what the request remembers is larger than the limit"));
        }
        let mut questions = Object::new();
        for (name, request) in requests {
            let question =
                Object::new().with("method", request.method()).with_opt("params", request.params(self.version));
            questions.set(name, question);
        }
        let questions = (!questions.is_empty()).then_some(questions);
        let result = Object::new().with_opt("inputRequests", questions).with("requestState", sealed.as_str());
        self.result(result, "input_required", diagnostic)
    }
}

/// Returns an object in the shape of the capabilities of a client.
fn required_capabilities(requests: &[&InputRequest]) -> Object {
    let mut required = ClientCapabilities::default();
    requests.iter().for_each(|request| request.require(&mut required));
    required.write()
}
