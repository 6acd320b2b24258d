//! What a handler asks of the client and its user, in a further round of its request.

use super::Cx;
use crate::input::{InputAnswer, InputRequest, ServerCommand};
use crate::model::elicitation::{ElicitResult, Form, UrlRequest};
use crate::model::roots::Root;
use crate::model::sampling::{SampleRequest, SampleResult};
use crate::route::output::ToolError;
use crate::rpc::{ErrorObject, Object, code};
use crate::version::Era;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

impl Cx {
    /// Requests input of the user, in a form. The first call returns [`ToolError::Ask`]; pass it on
    /// with `?`. The handler then runs again with the answer. `name` identifies the request for
    /// input within the request.
    ///
    /// # Errors
    /// [`ToolError::Ask`]; [`ToolError::Failed`] if the client responded with an error, or if the
    /// content does not fit the form (ELIC-S-024). Use another name to repeat the request for
    /// input.
    pub fn elicit(&self, name: &str, form: Form) -> Result<ElicitResult, ToolError> {
        match self.input(name, InputRequest::Elicitation(form.clone().into()))? {
            InputAnswer::Elicitation(ElicitResult::Accept(content)) => match form.check(&content) {
                Ok(()) => Ok(ElicitResult::Accept(content)),
                Err(e) => Err(ToolError::Failed(format!("the answer to `{name}` does not fit the form: {e}"))),
            },
            InputAnswer::Elicitation(result) => Ok(result),
            answer => Err(unfit(name, &answer)),
        }
    }

    /// Requests that the user opens a web page, for what must not pass through the client. The user
    /// only consents here: on [`ElicitResult::Accept`], look up in your own state whether the user
    /// has done there what the request needs. A handler looks there first, before it asks: a client
    /// may repeat the call when the page is complete. As with [`elicit`](Self::elicit), the first
    /// call returns [`ToolError::Ask`].
    ///
    /// The page checks that only the user who was asked can use it (2025-11-25 elicitation,
    /// phishing). Bind your state to the [principal](crate::server::Context::principal) of the
    /// request, and tell the client with [`elicited`](Self::elicited) when the page is complete.
    ///
    /// On 2026-07-28 it is a request for input of the request. On 2025-11-25 the engine sends
    /// `elicitation/create` where the client can receive it, and otherwise answers the request with
    /// `-32042`: the client shows the page, and repeats the call. Earlier revisions have no web
    /// pages: the answer is that to a client without the capability.
    ///
    /// # Errors
    /// [`ToolError::Ask`]; [`ToolError::Failed`] if the client responded with an error. The engine
    /// answers the request with `-32603` if [`UrlRequest::check`] refuses the URL, or if another
    /// client was asked with the same [`elicitation_id`](UrlRequest::elicitation_id).
    pub fn elicit_url(&self, name: &str, page: UrlRequest) -> Result<ElicitResult, ToolError> {
        match self.input(name, InputRequest::Elicitation(page.into()))? {
            InputAnswer::Elicitation(ElicitResult::Accept(_)) => Ok(ElicitResult::Accept(Object::new())),
            InputAnswer::Elicitation(result) => Ok(result),
            answer => Err(unfit(name, &answer)),
        }
    }

    /// Returns the id of the web page that [`elicit_url`](Self::elicit_url) requests under this
    /// name, for the URL of the page and for your state: 144 unpredictable bits. It is the
    /// same in every round of the request, and no other request has it.
    pub fn elicitation_id(&self, name: &str) -> String {
        self.invocation.incoming.elicitation_id(name)
    }

    /// The web page with this id is complete: see
    /// [`Server::elicited`](crate::ServerCommands::elicited). It may be that of another request,
    /// also after the end of this one.
    pub fn elicited(&self, id: &str) {
        self.port.command(ServerCommand::Elicited(id.into()));
    }

    /// Requests a message of the client's language model. As with [`elicit`](Self::elicit), the
    /// first call returns [`ToolError::Ask`]. 2026-07-28 deprecates sampling: new servers call a
    /// model themselves.
    ///
    /// If the model [uses tools](SampleResult::uses), run them, and make a further request whose
    /// messages end with this one and with the results ([`SamplingMessage::results`]).
    ///
    /// # Errors
    /// [`ToolError::Ask`]; [`ToolError::Failed`] if the client responded with an error. The engine
    /// answers the request with `-32603` if [`SampleRequest::check`] refuses this one.
    ///
    /// [`SamplingMessage::results`]: crate::model::sampling::SamplingMessage::results
    pub fn sample(&self, name: &str, request: SampleRequest) -> Result<SampleResult, ToolError> {
        match self.input(name, InputRequest::Sampling(request.into()))? {
            InputAnswer::Sampling(result) => Ok(result),
            answer => Err(unfit(name, &answer)),
        }
    }

    /// Requests the roots of the client. As with [`elicit`](Self::elicit), the first call returns
    /// [`ToolError::Ask`]. 2026-07-28 deprecates roots: new servers take directories as arguments.
    ///
    /// Check a URI before you use it: it comes from the client, and may name nothing
    /// ([`Root::check`]).
    ///
    /// # Errors
    /// [`ToolError::Ask`]; [`ToolError::Failed`] if the client responded with an error.
    pub fn roots(&self, name: &str) -> Result<Vec<Root>, ToolError> {
        match self.input(name, InputRequest::Roots)? {
            InputAnswer::Roots(roots) => Ok(roots.roots),
            answer => Err(unfit(name, &answer)),
        }
    }

    /// Requests several inputs at once, also of the model or for the roots. The answers have the
    /// order of the requests. An error of the client is [`InputAnswer::Error`]. Content is not
    /// checked against a form.
    ///
    /// # Errors
    /// [`ToolError::Ask`] with the missing requests, while an answer is missing;
    /// [`ToolError::Protocol`] if an answer cannot be decoded.
    pub fn ask(&self, requests: Vec<(String, InputRequest)>) -> Result<Vec<InputAnswer>, ToolError> {
        let (mut answers, mut missing) = (Vec::new(), Vec::new());
        for (name, request) in requests {
            match self.answer(&name, &request)? {
                Some(answer) => answers.push(answer),
                None => missing.push((name, request)),
            }
        }
        if missing.is_empty() { Ok(answers) } else { Err(self.need(missing)) }
    }

    /// Returns the answer to a request for input, or the request if there is none.
    fn input(&self, name: &str, request: InputRequest) -> Result<InputAnswer, ToolError> {
        let answer = self.answer(name, &request)?;
        answer.ok_or_else(|| self.need(alloc::vec![(name.into(), request)]))
    }

    /// Returns the request for these inputs. Keeps the earlier state.
    fn need(&self, requests: Vec<(String, InputRequest)>) -> ToolError {
        ToolError::Ask { requests, state: self.kept().cloned() }
    }

    /// Returns the answer to a request for input, if there is one.
    fn answer(&self, name: &str, request: &InputRequest) -> Result<Option<InputAnswer>, ToolError> {
        match self.invocation.incoming.inputs.get(name) {
            None => Ok(None),
            Some(Err(error)) => Ok(Some(InputAnswer::Error(error.clone()))),
            Some(Ok(result)) => request.read_answer(result).map(Some).map_err(|e| {
                // In the modern era the answer is a part of the request. A legacy answer is a
                // response of its own, so the request is valid.
                let modern = self.context().version.era() == Era::Modern;
                let code = if modern { code::INVALID_PARAMS } else { code::INTERNAL_ERROR };
                ToolError::Protocol(ErrorObject::new(code, format!("the answer to `{name}` cannot be decoded: {e}")))
            }),
        }
    }
}

/// Returns the failure of a handler whose request for input was answered by this.
fn unfit(name: &str, answer: &InputAnswer) -> ToolError {
    ToolError::Failed(match answer {
        InputAnswer::Error(e) => format!("`{name}` was not answered: {}", e.message),
        _ => format!("`{name}` was answered by something else"),
    })
}
