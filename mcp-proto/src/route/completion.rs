//! The completion of arguments of prompts and of variables of templates.

use super::prompts::texts;
use super::scopes::RouteRefusal;
use super::target::CompletionTarget;
use super::{Cx, Handler, HandlerTarget, IntoCompletion, MaybeFuture, Resolution, Router, ToolError, invalid};
use crate::input::Outcome;
use crate::model::completion::Completion;
use crate::server::IncomingRequest;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

/// What a router knows of completion: a handler for each argument of a prompt or template.
#[derive(Clone, Debug, Default)]
pub(super) struct Completions {
    prompts: BTreeMap<String, BTreeMap<String, Handler>>,
    templates: BTreeMap<String, BTreeMap<String, Handler>>,
}

impl Completions {
    pub(super) fn are_offered(&self) -> bool {
        !self.prompts.is_empty() || !self.templates.is_empty()
    }
}

impl Router {
    /// Returns the handler of a `completion/complete`, or no values for an argument that has none.
    pub(super) fn find_completion(&self, incoming: &IncomingRequest) -> Result<Resolution<'_>, RouteRefusal> {
        let fault = |e| invalid(&format!("{e}"));
        let reference = incoming.params.object("ref").map_err(fault)?;
        let argument = incoming.params.object("argument").map_err(fault)?;
        let name = argument.required_str("name").map_err(fault)?;
        let value: String = argument.required("value").map_err(fault)?;
        let context = incoming.params.optional_object("context").map_err(fault)?.unwrap_or_default();
        let known = texts(&context, "arguments")?;
        let completions = &self.0.completions;
        let (handlers, is_known) = match &*reference.required_str("type").map_err(fault)? {
            "ref/prompt" => {
                let prompt = reference.required_str("name").map_err(fault)?;
                self.0.prompts.check_scopes(&prompt, &incoming.context)?;
                (completions.prompts.get(&*prompt), self.0.prompts.may_have(&prompt))
            }
            "ref/resource" => {
                let uri = reference.required_str("uri").map_err(fault)?;
                self.0.resources.check_scopes(&uri, &incoming.context)?;
                (completions.templates.get(&*uri), self.0.resources.knows(&uri))
            }
            _ => return Err(invalid("`ref`: unknown type").into()),
        };
        match handlers.and_then(|handlers| handlers.get(&*name)) {
            Some(handler) => {
                let target = HandlerTarget::Completion(Box::new(CompletionTarget { value, known }));
                Ok(Resolution::Other(handler, target))
            }
            None if is_known || handlers.is_some() => Ok(Resolution::Result(Completion::default().write())),
            None => Err(invalid("`ref` is not a prompt or a resource template of this server").into()),
        }
    }

    /// Adds a function that completes an argument of a prompt. It may block, or returns a future.
    /// It gets the part of the value that the user has entered, and returns values, best first: a
    /// list of texts, or a [`Completion`]. The client gets the first 100 of them.
    ///
    /// ```
    /// use mcp_proto::{Router, prompt};
    ///
    /// let router = Router::new("greeter", "1.0")
    ///     .prompt(prompt("greet").argument("tone"), |_cx, ()| Ok("Greet the guest."))
    ///     .complete_prompt("greet", "tone", |_cx, entered| {
    ///         let tones = ["formal", "friendly"].into_iter();
    ///         Ok(tones.filter(|tone| tone.starts_with(entered)).collect::<Vec<_>>())
    ///     });
    /// # drop(router);
    /// ```
    #[must_use]
    pub fn complete_prompt<O, R, M, F>(mut self, prompt: &str, argument: &str, f: F) -> Self
    where
        F: Fn(&Cx, &str) -> R + Send + Sync + 'static,
        R: MaybeFuture<Result<O, ToolError>, M>,
        O: IntoCompletion + 'static,
    {
        let handler = self.in_mode(completed(f));
        self.edit().completions.prompts.entry(prompt.into()).or_default().insert(argument.into(), handler);
        self
    }

    /// Adds a function that completes a variable of a resource template. `template` is the URI
    /// template. Otherwise as [`complete_prompt`](Self::complete_prompt).
    #[must_use]
    pub fn complete_template<O, R, M, F>(mut self, template: &str, variable: &str, f: F) -> Self
    where
        F: Fn(&Cx, &str) -> R + Send + Sync + 'static,
        R: MaybeFuture<Result<O, ToolError>, M>,
        O: IntoCompletion + 'static,
    {
        let handler = self.in_mode(completed(f));
        self.edit().completions.templates.entry(template.into()).or_default().insert(variable.into(), handler);
        self
    }
}

fn completed<O, R, M>(f: impl Fn(&Cx, &str) -> R + Send + Sync + 'static) -> Handler
where
    R: MaybeFuture<Result<O, ToolError>, M>,
    O: IntoCompletion + 'static,
{
    R::handler(move |cx| Ok(f(cx, cx.entered())), Cx::outcome_of_completion)
}

impl Cx {
    /// Returns the part of the value to complete that the user has entered. Empty for every other
    /// request.
    pub fn entered(&self) -> &str {
        self.completion().map_or("", |target| &target.value)
    }

    /// Returns the value of another argument of the prompt or template that is completed, if the
    /// client knows it. From 2025-06-18 on.
    pub fn known(&self, argument: &str) -> Option<String> {
        self.completion().and_then(|target| target.known.str(argument)).map(Into::into)
    }

    /// Converts the return value of a handler of `completion/complete` to an outcome.
    fn outcome_of_completion(&self, output: impl IntoCompletion) -> Outcome {
        match output.into_completion() {
            Ok(completion) => Outcome::Complete(completion.write()),
            Err(e) => self.failed(e),
        }
    }

    fn completion(&self) -> Option<&CompletionTarget> {
        match self.target() {
            HandlerTarget::Completion(target) => Some(target),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
