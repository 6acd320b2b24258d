//! The completion of arguments of prompts and of variables of templates.

use super::prompts::texts;
use super::target::CompletionTarget;
use super::{Cx, Handler, IntoCompletion, Resolved, Router, Target, ToolError, invalid};
use crate::input::Outcome;
use crate::model::completion::Completion;
use crate::rpc::ErrorObject;
use crate::server::Incoming;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::future::Future;

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
    pub(super) fn find_completion(&self, incoming: &Incoming) -> Result<Resolved<'_>, ErrorObject> {
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
                (completions.prompts.get(&*prompt), self.0.prompts.may_have(&prompt))
            }
            "ref/resource" => {
                let uri = reference.required_str("uri").map_err(fault)?;
                (completions.templates.get(&*uri), self.0.resources.knows(&uri))
            }
            _ => return Err(invalid("`ref`: unknown type")),
        };
        match handlers.and_then(|handlers| handlers.get(&*name)) {
            Some(handler) => {
                let target = Target::Completion(Box::new(CompletionTarget { value, known }));
                Ok(Resolved::Other(handler, target))
            }
            None if is_known || handlers.is_some() => Ok(Resolved::Result(Completion::default().write())),
            None => Err(invalid("`ref` is not a prompt or a resource template of this server")),
        }
    }

    /// Adds a function that completes an argument of a prompt, and may block. It gets the part of
    /// the value that the user has entered, and returns values, best first: a list of texts, or a
    /// [`Completion`]. The client gets the first 100 of them.
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
    pub fn complete_prompt<O, F>(self, prompt: &str, argument: &str, f: F) -> Self
    where
        F: Fn(&Cx, &str) -> Result<O, ToolError> + Send + Sync + 'static,
        O: IntoCompletion,
    {
        self.add_prompt_completion(prompt, argument, Handler::sync(move |cx| completed(cx, &f)))
    }

    /// Like [`complete_prompt`](Self::complete_prompt), for a function that returns at once: a
    /// driver runs it on the thread that routes the request.
    #[must_use]
    pub fn complete_prompt_inline<O, F>(self, prompt: &str, argument: &str, f: F) -> Self
    where
        F: Fn(&Cx, &str) -> Result<O, ToolError> + Send + Sync + 'static,
        O: IntoCompletion,
    {
        self.add_prompt_completion(prompt, argument, Handler::inline(move |cx| completed(cx, &f)))
    }

    /// Like [`complete_prompt`](Self::complete_prompt), for a function that returns a future.
    #[must_use]
    pub fn complete_prompt_async<O, R, F>(self, prompt: &str, argument: &str, f: F) -> Self
    where
        F: Fn(Cx, String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: IntoCompletion + 'static,
    {
        self.add_prompt_completion(prompt, argument, completed_later(f))
    }

    /// Adds any handler that completes an argument of a prompt: see [`Cx::outcome_of_completion`].
    #[must_use]
    pub fn add_prompt_completion(mut self, prompt: &str, argument: &str, handler: Handler) -> Self {
        self.edit().completions.prompts.entry(prompt.into()).or_default().insert(argument.into(), handler);
        self
    }

    /// Adds a function that completes a variable of a resource template, and may block. `template`
    /// is the URI template. Otherwise as [`complete_prompt`](Self::complete_prompt).
    #[must_use]
    pub fn complete_template<O, F>(self, template: &str, variable: &str, f: F) -> Self
    where
        F: Fn(&Cx, &str) -> Result<O, ToolError> + Send + Sync + 'static,
        O: IntoCompletion,
    {
        self.add_template_completion(template, variable, Handler::sync(move |cx| completed(cx, &f)))
    }

    /// Like [`complete_template`](Self::complete_template), for a function that returns at once: a
    /// driver runs it on the thread that routes the request.
    #[must_use]
    pub fn complete_template_inline<O, F>(self, template: &str, variable: &str, f: F) -> Self
    where
        F: Fn(&Cx, &str) -> Result<O, ToolError> + Send + Sync + 'static,
        O: IntoCompletion,
    {
        self.add_template_completion(template, variable, Handler::inline(move |cx| completed(cx, &f)))
    }

    /// Like [`complete_template`](Self::complete_template), for a function that returns a future.
    #[must_use]
    pub fn complete_template_async<O, R, F>(self, template: &str, variable: &str, f: F) -> Self
    where
        F: Fn(Cx, String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: IntoCompletion + 'static,
    {
        self.add_template_completion(template, variable, completed_later(f))
    }

    /// Adds any handler that completes a variable of a resource template: see
    /// [`Cx::outcome_of_completion`].
    #[must_use]
    pub fn add_template_completion(mut self, template: &str, variable: &str, handler: Handler) -> Self {
        self.edit().completions.templates.entry(template.into()).or_default().insert(variable.into(), handler);
        self
    }
}

fn completed<O, F>(cx: &Cx, f: &F) -> Outcome
where
    F: Fn(&Cx, &str) -> Result<O, ToolError>,
    O: IntoCompletion,
{
    cx.outcome_of_completion(f(cx, cx.entered()))
}

fn completed_later<O, R, F>(f: F) -> Handler
where
    F: Fn(Cx, String) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoCompletion + 'static,
{
    Handler::future(move |cx| {
        let completed = f(cx.clone(), cx.entered().into());
        async move { cx.outcome_of_completion(completed.await) }
    })
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
    pub fn outcome_of_completion(&self, output: impl IntoCompletion) -> Outcome {
        match output.into_completion() {
            Ok(completion) => Outcome::Complete(completion.write()),
            Err(e) => self.failed(e),
        }
    }

    fn completion(&self) -> Option<&CompletionTarget> {
        match self.target() {
            Target::Completion(target) => Some(target),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
