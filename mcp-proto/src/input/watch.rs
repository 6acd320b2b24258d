//! What changes at a server, and what of it an application watches.

use crate::model::capabilities::ServerCapabilities;
use crate::rpc::{DecodeError, Object};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

/// A change of what a server offers. A server announces it, and its clients report it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Change {
    /// The list of tools has changed (`notifications/tools/list_changed`).
    Tools,
    /// The list of prompts has changed (`notifications/prompts/list_changed`).
    Prompts,
    /// The list of resources, or that of resource templates, has changed
    /// (`notifications/resources/list_changed`).
    Resources,
    /// The resource of this URI has changed (`notifications/resources/updated`). It may be a part
    /// of the resource that a client watches: a server announces `file:///dir/a` also to a client
    /// that watches `file:///dir`.
    Resource(String),
}

/// The changes of a server that an application watches.
///
/// ```
/// # use mcp_proto::input::Watch;
/// let watch = Watch::new().with_tools().with_uri("file:///notes");
/// assert!(watch.tools && !watch.prompts);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Watch {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the list of resources, and of that of resource templates.
    pub resources: bool,
    /// Changes of the resources of these URIs.
    pub uris: BTreeSet<String>,
    /// Changes of the tasks with these ids (`taskIds` of the extension
    /// `io.modelcontextprotocol/tasks`). The engines fill it.
    pub(crate) tasks: BTreeSet<String>,
}

impl Watch {
    /// Creates an empty set: nothing is watched.
    pub const fn new() -> Self {
        Self { tools: false, prompts: false, resources: false, uris: BTreeSet::new(), tasks: BTreeSet::new() }
    }

    /// Adds the list of tools.
    #[must_use]
    pub fn with_tools(self) -> Self {
        Self { tools: true, ..self }
    }

    /// Adds the list of prompts.
    #[must_use]
    pub fn with_prompts(self) -> Self {
        Self { prompts: true, ..self }
    }

    /// Adds the lists of resources and of resource templates.
    #[must_use]
    pub fn with_resources(self) -> Self {
        Self { resources: true, ..self }
    }

    /// Adds the resource of this URI.
    #[must_use]
    pub fn with_uri(mut self, uri: impl Into<String>) -> Self {
        self.uris.insert(uri.into());
        self
    }

    /// Returns whether nothing is watched.
    pub fn is_empty(&self) -> bool {
        !self.has_lists() && self.uris.is_empty() && self.tasks.is_empty()
    }

    /// Returns whether a list is watched.
    pub(crate) const fn has_lists(&self) -> bool {
        self.tools || self.prompts || self.resources
    }

    /// Adds everything that the other set has.
    pub fn add(&mut self, other: &Self) {
        self.tools |= other.tools;
        self.prompts |= other.prompts;
        self.resources |= other.resources;
        self.uris.extend(other.uris.iter().cloned());
        self.tasks.extend(other.tasks.iter().cloned());
    }

    /// Returns the changes to report if any of them may have been missed.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        let lists = [(self.tools, Change::Tools), (self.prompts, Change::Prompts), (self.resources, Change::Resources)];
        let lists = lists.into_iter().filter(|(is_watched, _)| *is_watched).map(|(_, change)| change);
        lists.chain(self.uris.iter().cloned().map(Change::Resource))
    }

    /// Returns what both sets have.
    pub(crate) fn both(&self, other: &Self) -> Self {
        Self {
            tools: self.tools && other.tools,
            prompts: self.prompts && other.prompts,
            resources: self.resources && other.resources,
            uris: self.uris.intersection(&other.uris).cloned().collect(),
            tasks: self.tasks.intersection(&other.tasks).cloned().collect(),
        }
    }

    /// Returns what a server of these capabilities announces of it.
    pub(crate) fn declared(&self, by: &ServerCapabilities) -> Self {
        Self {
            tools: self.tools && by.announces_tools(),
            prompts: self.prompts && by.announces_prompts(),
            resources: self.resources && by.announces_resources(),
            uris: if by.watches_resources() { self.uris.clone() } else { BTreeSet::new() },
            tasks: self.tasks.clone(),
        }
    }

    /// Encodes it as the filter of a subscription (2026-07-28, notification filter). A member that
    /// is missing is not watched.
    pub(crate) fn write(&self) -> Object {
        let flag = |is_watched: bool| is_watched.then_some(true);
        let uris: Vec<&str> = self.uris.iter().map(String::as_str).collect();
        let tasks: Vec<&str> = self.tasks.iter().map(String::as_str).collect();
        Object::new()
            .with_opt("toolsListChanged", flag(self.tools))
            .with_opt("promptsListChanged", flag(self.prompts))
            .with_opt("resourcesListChanged", flag(self.resources))
            .with_opt("resourceSubscriptions", (!uris.is_empty()).then_some(uris))
            .with_opt("taskIds", (!tasks.is_empty()).then_some(tasks))
    }

    /// Decodes the filter of a subscription.
    pub(crate) fn read(filter: &Object) -> Result<Self, DecodeError> {
        let flag = |key: &str| Ok::<_, DecodeError>(filter.optional(key)?.unwrap_or(false));
        Ok(Self {
            tools: flag("toolsListChanged")?,
            prompts: flag("promptsListChanged")?,
            resources: flag("resourcesListChanged")?,
            uris: filter.optional("resourceSubscriptions")?.unwrap_or_default(),
            tasks: filter.optional("taskIds")?.unwrap_or_default(),
        })
    }
}
