//! The lists of a server: tools, resources, resource templates and prompts. They outlive its
//! connections, and say so.

use super::server::MAX_RETRY_AFTER;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use mcp_proto::call::SkippedList;
use mcp_proto::error::{CallError, Refusal, WaitReason};
use mcp_proto::exchange::Sent;
use mcp_proto::model::page::ListElement;
use mcp_proto::model::prompts::Prompt;
use mcp_proto::model::resources::{Resource, ResourceTemplate};
use mcp_proto::model::tools::Tool;
use mcp_proto::rpc::{DecodeError, Object, RawJson};
use mcp_proto::time::Instant;
use mcp_proto::version::ProtocolVersion;

/// A list that a server offers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum ListKind {
    /// `tools/list`.
    Tools,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    ResourceTemplates,
    /// `prompts/list`.
    Prompts,
}

impl ListKind {
    /// All, in the order in which a supervisor loads them.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::ResourceTemplates, Self::Prompts];

    /// Returns the method on the wire.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::ResourceTemplates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }
}

/// A set of lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lists(u8);

impl Lists {
    /// No list.
    pub const NONE: Self = Self(0);
    /// Every list.
    pub const ALL: Self = Self(0b1111);

    /// Returns these lists and another one.
    #[must_use]
    pub const fn with(self, list: ListKind) -> Self {
        Self(self.0 | 1 << list as u8)
    }

    /// Returns whether a list is one of these.
    pub const fn has(self, list: ListKind) -> bool {
        self.0 & 1 << list as u8 != 0
    }
}

/// The elements of one list, of all of its pages.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Listing {
    /// The tools.
    Tools(Arc<[Tool]>),
    /// The resources.
    Resources(Arc<[Resource]>),
    /// The resource templates.
    ResourceTemplates(Arc<[ResourceTemplate]>),
    /// The prompts.
    Prompts(Arc<[Prompt]>),
}

impl Listing {
    /// Returns the list without elements.
    pub fn none(list: ListKind) -> Self {
        match list {
            ListKind::Tools => Self::Tools(Arc::default()),
            ListKind::Resources => Self::Resources(Arc::default()),
            ListKind::ResourceTemplates => Self::ResourceTemplates(Arc::default()),
            ListKind::Prompts => Self::Prompts(Arc::default()),
        }
    }

    /// Returns which list it is.
    pub const fn kind(&self) -> ListKind {
        match self {
            Self::Tools(_) => ListKind::Tools,
            Self::Resources(_) => ListKind::Resources,
            Self::ResourceTemplates(_) => ListKind::ResourceTemplates,
            Self::Prompts(_) => ListKind::Prompts,
        }
    }
}

/// A list that was loaded.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LoadedList {
    /// Its elements.
    #[cfg_attr(feature = "record", serde(with = "mcp_proto::record::value"))]
    pub listing: Listing,
    /// The elements that could not be decoded: [`Pages::skipped`](mcp_proto::Pages::skipped).
    pub skipped: SkippedList,
}

impl LoadedList {
    /// Creates a list without these elements, which could not be decoded.
    pub const fn new(listing: Listing, skipped: SkippedList) -> Self {
        Self { listing, skipped }
    }
}

impl From<Listing> for LoadedList {
    fn from(listing: Listing) -> Self {
        Self::new(listing, SkippedList::default())
    }
}

/// A list that a connected server has, and that cannot be loaded. Its `Display` has
/// [escapes](mcp_proto::error#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ListFault {
    /// The list.
    pub list: ListKind,
    /// Why the last load failed.
    pub error: CallError,
}

impl fmt::Display for ListFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.list.method(), self.error)
    }
}

/// The state of a list of a server.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ListHealth {
    /// The list.
    pub list: ListKind,
    /// How far it can be relied on.
    pub freshness: Freshness,
    /// The elements that could not be decoded when it was loaded last.
    pub skipped: SkippedList,
    /// Why the last load failed, on the connection of now. `None` if it did not.
    pub error: Option<CallError>,
}

/// The lists of a server, as far as they are known. A copy shares the elements.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Catalogue {
    /// The tools. `None` if they are not known.
    pub tools: Option<Arc<[Tool]>>,
    /// The resources.
    pub resources: Option<Arc<[Resource]>>,
    /// The resource templates.
    pub resource_templates: Option<Arc<[ResourceTemplate]>>,
    /// The prompts.
    pub prompts: Option<Arc<[Prompt]>>,
}

impl Catalogue {
    /// Replaces a list. Returns whether it is another one than before.
    pub fn set(&mut self, listing: Listing) -> bool {
        fn replace<T: PartialEq>(place: &mut Option<Arc<[T]>>, list: Arc<[T]>) -> bool {
            let differs = place.as_ref() != Some(&list);
            *place = Some(list);
            differs
        }
        match listing {
            Listing::Tools(tools) => replace(&mut self.tools, tools),
            Listing::Resources(resources) => replace(&mut self.resources, resources),
            Listing::ResourceTemplates(templates) => replace(&mut self.resource_templates, templates),
            Listing::Prompts(prompts) => replace(&mut self.prompts, prompts),
        }
    }

    /// Encodes the lists that are known, to keep them over runs of the application.
    pub fn write(&self) -> Object {
        fn list<T>(list: Option<&Arc<[T]>>, write: impl Fn(&T) -> Object) -> Option<Vec<Object>> {
            list.map(|list| list.iter().map(write).collect())
        }
        let version = ProtocolVersion::V2026_07_28;
        let lists = [
            list(self.tools.as_ref(), |tool| tool.write(version)),
            list(self.resources.as_ref(), |resource| resource.write(version)),
            list(self.resource_templates.as_ref(), |template| template.write(version)),
            list(self.prompts.as_ref(), |prompt| prompt.write(version)),
        ];
        KEYS.into_iter().zip(lists).fold(Object::new(), |object, (key, list)| object.with_opt(key, list))
    }

    /// Decodes a catalogue of [`write`](Self::write).
    ///
    /// # Errors
    /// [`DecodeError`] if an element of a list cannot be decoded.
    pub fn read(json: &RawJson) -> Result<Self, DecodeError> {
        fn list<T>(
            object: &Object,
            key: &str,
            read: impl Fn(&RawJson) -> Result<T, DecodeError>,
        ) -> Result<Option<Arc<[T]>>, DecodeError> {
            object.optional_array(key)?.map(|list| list.iter().map(read).collect()).transpose()
        }
        let object = Object::read(json)?;
        let [tools, resources, templates, prompts] = KEYS;
        Ok(Self {
            tools: list(&object, tools, Tool::read)?,
            resources: list(&object, resources, Resource::read)?,
            resource_templates: list(&object, templates, ResourceTemplate::read)?,
            prompts: list(&object, prompts, Prompt::read)?,
        })
    }

    /// Returns a list. `None` if it is not known.
    pub fn get(&self, list: ListKind) -> Option<Listing> {
        match list {
            ListKind::Tools => self.tools.clone().map(Listing::Tools),
            ListKind::Resources => self.resources.clone().map(Listing::Resources),
            ListKind::ResourceTemplates => self.resource_templates.clone().map(Listing::ResourceTemplates),
            ListKind::Prompts => self.prompts.clone().map(Listing::Prompts),
        }
    }

    /// Returns whether a list is known.
    pub const fn has(&self, list: ListKind) -> bool {
        match list {
            ListKind::Tools => self.tools.is_some(),
            ListKind::Resources => self.resources.is_some(),
            ListKind::ResourceTemplates => self.resource_templates.is_some(),
            ListKind::Prompts => self.prompts.is_some(),
        }
    }
}

/// The keys of the lists of a catalogue, as in the results of the methods that list them.
const KEYS: [&str; 4] = ["tools", "resources", "resourceTemplates", "prompts"];

/// How far a list of a [`Catalogue`] can be relied on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freshness {
    /// The list was never loaded.
    Unknown,
    /// The server is not connected, or has announced a change, and the list was not loaded since.
    Stale,
    /// The list is that of the connected server.
    Fresh,
}

/// The time between the end of one load and the next one of the same list: a server that announces
/// changes without end does not cause loads without end.
const GAP: Duration = Duration::from_millis(250);

/// The first delay after a load that failed. It doubles with each one.
const RETRY: Duration = Duration::from_secs(1);

/// Maximum delay after a load that failed.
const MAX_RETRY: Duration = Duration::from_secs(60);

/// Minimum of the time after which a load has failed.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// The lists of a server, and which of them have to be loaded.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) catalogue: Catalogue,
    loads: [Load; 4],
    /// What each list of the catalogue has left out.
    skipped: [SkippedList; 4],
}

/// What the end of a load changes.
pub(super) enum ListChange {
    /// The list has other elements than before.
    Elements(ListKind),
    /// The list cannot be loaded any more.
    Fault(ListFault),
}

/// The loads of one list.
#[derive(Clone, Debug, Default)]
struct Load {
    is_fresh: bool,
    /// When to load it. `None` if that is not necessary.
    due: Option<Instant>,
    /// While a load runs: when it has failed.
    until: Option<Instant>,
    /// The time of the load that runs.
    limit: Duration,
    /// Consecutive loads that failed.
    failures: u32,
    /// Why the last one failed. Most servers have none, and an error is large.
    error: Option<Box<CallError>>,
    /// When the next load may begin at the earliest.
    not_before: Instant,
}

impl Kept {
    pub(super) fn new(catalogue: Catalogue) -> Self {
        Self { catalogue, loads: Default::default(), skipped: Default::default() }
    }

    /// Returns the first list that cannot be loaded.
    pub(super) fn fault(&self) -> Option<ListFault> {
        ListKind::ALL.into_iter().find_map(|list| {
            let error = self.loads[list as usize].error.as_deref()?.clone();
            Some(ListFault { list, error })
        })
    }

    /// Returns the state of each list.
    pub(super) fn health(&self) -> Vec<ListHealth> {
        let health = |list: ListKind| ListHealth {
            list,
            freshness: self.freshness(list),
            skipped: self.skipped[list as usize].clone(),
            error: self.loads[list as usize].error.as_deref().cloned(),
        };
        ListKind::ALL.into_iter().map(health).collect()
    }

    /// Returns how far a list can be relied on.
    pub(super) const fn freshness(&self, list: ListKind) -> Freshness {
        match (self.loads[list as usize].is_fresh, self.catalogue.has(list)) {
            (true, _) => Freshness::Fresh,
            (false, true) => Freshness::Stale,
            (false, false) => Freshness::Unknown,
        }
    }

    /// The server is no longer connected. Loads that run belong to the past.
    pub(super) fn disconnect(&mut self) {
        for load in &mut self.loads {
            // What the server has asked for holds for its next session.
            let not_before = if load.failures > 0 { load.not_before } else { Instant::ZERO };
            *load = Load { failures: load.failures, not_before, ..Load::default() };
        }
    }

    /// Loads need not wait for the times that the server has asked for.
    pub(super) fn forgive(&mut self) {
        self.loads = Default::default();
    }

    /// The server is connected. Its wanted lists are to be loaded, and the others that it does not
    /// have are empty. A list that it refused for a time counts as one whose load failed until
    /// then. Returns the lists that have become empty.
    pub(super) fn connect(&mut self, now: Instant, wanted: Lists, offered: Lists) -> Vec<ListKind> {
        self.disconnect();
        let mut emptied = Vec::new();
        for list in ListKind::ALL.into_iter().filter(|list| wanted.has(*list)) {
            let load = &mut self.loads[list as usize];
            load.failures = u32::from(load.not_before > now);
            if offered.has(list) {
                load.due = Some(now.max(load.not_before));
                continue;
            }
            let had = self.catalogue.has(list);
            self.skipped[list as usize] = SkippedList::default();
            if self.catalogue.set(Listing::none(list)) && had {
                emptied.push(list);
            }
            self.loads[list as usize].is_fresh = true;
        }
        emptied
    }

    /// The server has announced a change of a list. Does nothing if the list is not kept.
    pub(super) fn change(&mut self, now: Instant, list: ListKind) {
        let load = &mut self.loads[list as usize];
        if load.until.is_some() || load.is_fresh {
            (load.is_fresh, load.due) = (false, Some(now.max(load.not_before)));
        }
    }

    /// Returns whether no load is under way, or to be begun, but those after one that failed.
    pub(super) fn is_settled(&self) -> bool {
        self.loads.iter().all(|load| load.until.is_none() && load.due.is_none() || load.failures > 0)
    }

    /// Returns when the next load begins, or has failed.
    pub(super) fn next(&self) -> Option<Instant> {
        self.loads.iter().filter_map(|load| load.until.or(load.due)).min()
    }

    /// Ends a load that takes too long. Returns what follows, or `None` if there is no such load.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Option<ListChange>> {
        let is_late = |list: &ListKind| self.loads[*list as usize].until.is_some_and(|until| until <= now);
        let list = ListKind::ALL.into_iter().find(is_late)?;
        let after = self.loads[list as usize].limit;
        let error = CallError::Timeout { after, sent: Sent::Maybe, awaited: WaitReason::Response };
        Some(self.finish(now, list, Err(error)))
    }

    /// Begins a load that is due, of a server whose calls have this timeout. Returns its list.
    pub(super) fn begin(&mut self, now: Instant, timeout: Option<Duration>) -> Option<ListKind> {
        let is_due = |load: &Load| load.until.is_none() && load.due.is_some_and(|due| due <= now);
        let list = ListKind::ALL.into_iter().find(|list| is_due(&self.loads[*list as usize]))?;
        let load = &mut self.loads[list as usize];
        load.limit = timeout.unwrap_or_default().max(LOAD_TIMEOUT);
        (load.until, load.due) = (Some(now + load.limit), None);
        Some(list)
    }

    /// Handles the end of a load. Does nothing if none runs. A list whose method the server does
    /// not have is empty, until the server is connected again or announces a change of it.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        list: ListKind,
        outcome: Result<LoadedList, CallError>,
    ) -> Option<ListChange> {
        let load = &mut self.loads[list as usize];
        load.until.take()?;
        let loaded = match outcome {
            Ok(loaded) if loaded.listing.kind() == list => Ok(loaded),
            Ok(_) => Err(CallError::Decode(DecodeError::new("it is another list"))),
            Err(error) if error.is_method_not_found() => Ok(Listing::none(list).into()),
            Err(error) => Err(error),
        };
        let LoadedList { listing, skipped } = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                let wait = RETRY.saturating_mul(1 << load.failures.min(16)).min(MAX_RETRY);
                load.failures += 1;
                load.not_before = now + error.retry_after().unwrap_or_default().min(MAX_RETRY_AFTER);
                load.due = Some(load.not_before.max(now + wait));
                // What ends the connection is the cause of that.
                let is_new = load.error.is_none() && !ends_connection(&error);
                if !ends_connection(&error) {
                    load.error = Some(Box::new(error.clone()));
                }
                return is_new.then_some(ListChange::Fault(ListFault { list, error }));
            }
        };
        (load.failures, load.error, load.not_before) = (0, None, now + GAP);
        // A change during the load may not be in its result.
        load.is_fresh = load.due.is_none();
        load.due = load.due.map(|_| load.not_before);
        self.skipped[list as usize] = skipped;
        self.catalogue.set(listing).then_some(ListChange::Elements(list))
    }
}

/// Returns whether a load fails with this error because its client has ended, or was closed.
const fn ends_connection(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Closed { .. }
            | CallError::SessionEnded
            | CallError::Negotiation(_)
            | CallError::Refused(Refusal::Closed | Refusal::Gone)
            | CallError::Cancelled { .. }
    )
}
