//! The prompts of a router.

use super::pages::{self, RouterEntry};
use super::scopes::{RouteRefusal, ScopeDemand as _};
use super::target::PromptTarget;
use super::{Cx, Handler, HandlerTarget, IntoMessages, MaybeFuture, Resolution, Router, ToolError, invalid};
use crate::input::Outcome;
use crate::model::prompts::Prompt;
use crate::rpc::{ErrorObject, JsonKind, Object};
use crate::server::{Context, IncomingRequest, Responder};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use core::future::Future;
use serde::de::DeserializeOwned;

/// Creates a prompt of this name. Add its properties: `prompt("greet").argument("name")`.
pub fn prompt(name: &str) -> Prompt {
    Prompt::new(name)
}

/// What a router knows of prompts.
#[derive(Clone, Debug, Default)]
pub(super) struct Prompts {
    /// By name.
    registered: BTreeMap<String, RouterEntry<Prompt>>,
    source: Option<Source>,
}

/// Prompts that functions list and get.
#[derive(Clone, Debug)]
struct Source {
    list: Handler,
    get: Handler,
}

impl Prompts {
    pub(super) fn are_offered(&self) -> bool {
        !self.registered.is_empty() || self.source.is_some()
    }

    /// Returns whether `prompts/list` has the same prompts in another router. Lists of different
    /// functions count as different.
    pub(super) fn lists_as(&self, other: &Self) -> bool {
        pages::same(&self.registered, &other.registered) && Handler::same(self.list_source(), other.list_source())
    }

    /// Returns whether there may be a prompt of this name.
    pub(super) fn may_have(&self, name: &str) -> bool {
        self.registered.contains_key(name) || self.source.is_some()
    }

    /// Checks that the client of a request may use the prompt of this name.
    pub(super) fn check_scopes(&self, name: &str, context: &Context) -> Result<(), RouteRefusal> {
        self.registered.get(name).map_or(Ok(()), |prompt| prompt.listed.check_scopes(context))
    }

    fn list_source(&self) -> Option<&Handler> {
        self.source.as_ref().map(|source| &source.list)
    }

    /// Returns a page of `prompts/list`.
    pub(super) fn list(
        &self,
        responder: &Responder,
        incoming: &IncomingRequest,
        hides: bool,
    ) -> Result<Resolution<'_>, RouteRefusal> {
        pages::page::<Prompt>(&self.registered, self.list_source(), responder, incoming, hides)
    }

    /// Returns the handler of a `prompts/get`. The arguments that the prompt requires are there
    /// then.
    pub(super) fn find(&self, incoming: &IncomingRequest) -> Result<Resolution<'_>, RouteRefusal> {
        let name = incoming.params.required_str("name").map_err(|e| invalid(&format!("{e}")))?;
        let registered = self.registered.get(&*name);
        let handler = registered.map(|prompt| &prompt.handler).or(self.source.as_ref().map(|source| &source.get));
        let handler = handler.ok_or_else(|| invalid(&format!("Unknown prompt: {name}")))?;
        let prompt = registered.map(|prompt| &prompt.listed);
        self.check_scopes(&name, &incoming.context)?;
        let arguments = texts(&incoming.params, "arguments")?;
        let required = prompt.iter().flat_map(|prompt| &prompt.arguments).filter(|argument| argument.required);
        for argument in required {
            if !arguments.contains(&argument.name) {
                return Err(invalid(&format!("Missing required argument: {}", argument.name)).into());
            }
        }
        let description = prompt.and_then(|prompt| prompt.description.clone());
        let target = PromptTarget { name: name.into_owned(), description };
        Ok(Resolution::WithArguments(handler, HandlerTarget::Prompt(Box::new(target)), arguments.into()))
    }
}

/// Returns a member whose members are all texts, as the arguments of prompts are. One that is
/// absent is empty.
pub(super) fn texts(params: &Object, key: &str) -> Result<Object, ErrorObject> {
    if params.get(key).is_some_and(|value| value.is_empty_array()) {
        return Ok(Object::new());
    }
    let object = params.optional_object(key).map_err(|e| invalid(&format!("{e}")))?.unwrap_or_default();
    for (name, value) in object.iter() {
        if value.kind() != JsonKind::String {
            return Err(invalid(&format!("`{key}`: `{name}` is not a string")));
        }
    }
    Ok(object)
}

impl Router {
    /// Adds a prompt with a function that makes its messages, which may block. `prompt` is
    /// `prompt("greet").argument("name")` or a [`Prompt`]. It replaces one of the same name. The
    /// list of prompts is sorted by name. The router checks that required arguments are present and
    /// that all are texts. The function gets them decoded: a struct of texts, a map, or `()`. It
    /// returns a text of the user, a [`PromptMessage`](crate::model::prompts::PromptMessage),
    /// several, or a [`GetPromptResult`](crate::model::prompts::GetPromptResult).
    ///
    /// ```
    /// use mcp_proto::{Router, prompt};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Guest {
    ///     name: String,
    /// }
    ///
    /// let router = Router::new("greeter", "1.0")
    ///     .prompt(prompt("greet").argument("name"), |_cx, guest: Guest| {
    ///         Ok(format!("Greet {}.", guest.name))
    ///     });
    /// # drop(router);
    /// ```
    #[must_use]
    pub fn prompt<A, O, F>(self, prompt: impl Into<Prompt>, f: F) -> Self
    where
        F: Fn(&Cx, A) -> Result<O, ToolError> + Send + Sync + 'static,
        A: DeserializeOwned,
        O: IntoMessages + 'static,
    {
        let handler = self.in_mode(Handler::of(f, Cx::outcome_of_prompt));
        self.add_prompt(prompt, handler)
    }

    /// Like [`prompt`](Self::prompt), for a function that returns a future.
    #[must_use]
    pub fn prompt_async<A, O, R, F>(self, prompt: impl Into<Prompt>, f: F) -> Self
    where
        F: Fn(Cx, A) -> R + Send + Sync + 'static,
        A: DeserializeOwned,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: IntoMessages + 'static,
    {
        self.add_prompt(prompt, Handler::of(move |cx, arguments| f(cx.clone(), arguments), Cx::outcome_of_prompt))
    }

    fn add_prompt(mut self, prompt: impl Into<Prompt>, handler: Handler) -> Self {
        let listed = prompt.into();
        self.edit().prompts.registered.insert(listed.name.clone(), RouterEntry { listed, handler });
        self
    }

    /// Removes the prompt of this name, if one was added by its name.
    #[must_use]
    pub fn without_prompt(mut self, name: &str) -> Self {
        self.edit().prompts.registered.remove(name);
        self
    }

    /// Adds prompts that a function lists and another one gets, for many of them, or for those of a
    /// database. Each may block, or returns a future. `list` gets the name of the last prompt of
    /// the page before, and returns those after it, as the function of
    /// [`resources_from`](Self::resources_from) does. `get` finds the name of the prompt in
    /// [`Cx::prompt`], and returns what that of [`prompt`](Self::prompt) returns, or
    /// [`ToolError::NotFound`]. They follow the prompts that were added one by one.
    #[must_use]
    pub fn prompts_from<I, P, N, L, A, O, R, M, G>(mut self, list: L, get: G) -> Self
    where
        L: Fn(&Cx, Option<&str>) -> P + Send + Sync + 'static,
        P: MaybeFuture<Result<I, ToolError>, N>,
        I: IntoIterator<Item = Prompt> + 'static,
        G: Fn(&Cx, A) -> R + Send + Sync + 'static,
        A: DeserializeOwned,
        R: MaybeFuture<Result<O, ToolError>, M>,
        O: IntoMessages + 'static,
    {
        let list = self.in_mode(pages::source(list));
        let get = self.in_mode(Handler::of(get, Cx::outcome_of_prompt));
        self.edit().prompts.source = Some(Source { list, get });
        self
    }
}

impl Cx {
    /// Returns the name of the prompt whose messages are requested. Empty for every other request.
    pub fn prompt(&self) -> &str {
        match self.target() {
            HandlerTarget::Prompt(target) => &target.name,
            _ => "",
        }
    }

    /// Converts the return value of a handler of `prompts/get` to an outcome that the revision of
    /// the request can represent. The description of the prompt becomes that of the result, if it
    /// has none. Content that the protocol forbids becomes the error `-32603`: binary data that is
    /// not base64, or data without a media type.
    fn outcome_of_prompt(&self, output: impl IntoMessages) -> Outcome {
        let mut result = match output.into_messages() {
            Ok(result) => result,
            Err(e) => return self.failed(e),
        };
        if let (None, HandlerTarget::Prompt(target)) = (&result.description, self.target()) {
            result.description.clone_from(&target.description);
        }
        match result.messages.iter().try_for_each(|message| message.content.check()) {
            Ok(()) => Outcome::Complete(result.write(self.context().version)),
            Err(e) => self.failed(ToolError::Failed(e.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
