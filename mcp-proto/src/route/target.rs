//! The kinds of requests that a handler serves, each with what it needs to know.

use crate::rpc::Object;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// What a run of a handler is about. The variants of rare requests are boxed, so that a call of a
/// tool does not move them.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum HandlerTarget {
    /// `tools/call`.
    Tool,
    /// A method of the application.
    Method,
    /// `resources/read`.
    Resource(Box<ReadTarget>),
    /// `prompts/get`.
    Prompt(Box<PromptTarget>),
    /// `completion/complete`.
    Completion(Box<CompletionTarget>),
    /// `resources/list` or `prompts/list`, beyond what is registered.
    List(Box<ListTarget>),
    /// What the router answers itself.
    Router,
}

/// The resource that is read.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ReadTarget {
    pub(super) uri: String,
    /// The media type of what is registered.
    pub(super) mime_type: Option<String>,
    /// The variables of the template, decoded.
    pub(super) variables: Vec<(String, String)>,
}

/// The prompt whose messages are requested.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PromptTarget {
    pub(super) name: String,
    /// The description of what is registered.
    pub(super) description: Option<String>,
}

/// The argument that is completed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct CompletionTarget {
    /// The part of the value that the user has entered.
    pub(super) value: String,
    /// The arguments whose values are known.
    pub(super) known: Object,
}

/// The page that is requested.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ListTarget {
    /// The key of the last element of the page before.
    pub(super) after: Option<String>,
    /// Maximum number of elements.
    pub(super) size: usize,
}
