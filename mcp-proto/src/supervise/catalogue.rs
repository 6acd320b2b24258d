//! The lists of a server: tools, resources, resource templates and prompts. They outlive its
//! connections, and say so.

use crate::model::prompts::Prompt;
use crate::model::resources::{Resource, ResourceTemplate};
use crate::model::tools::Tool;
use crate::rpc::{DecodeError, Object, RawJson};
use crate::time::Instant;
use crate::version::ProtocolVersion;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

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
}

/// The loads of one list.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    is_fresh: bool,
    /// When to load it. `None` if that is not necessary.
    due: Option<Instant>,
    /// While a load runs: when it has failed.
    until: Option<Instant>,
    /// Consecutive loads that failed.
    failures: u32,
    /// When the next load may begin at the earliest.
    not_before: Instant,
}

impl Kept {
    pub(super) const fn new(catalogue: Catalogue) -> Self {
        let none = Load { is_fresh: false, due: None, until: None, failures: 0, not_before: Instant::ZERO };
        Self { catalogue, loads: [none; 4] }
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
        self.loads = [Load::default(); 4];
    }

    /// The server is connected. Its wanted lists are to be loaded, and the others that it does not
    /// have are empty. Returns the lists that have become empty.
    pub(super) fn connect(&mut self, now: Instant, wanted: Lists, offered: Lists) -> Vec<ListKind> {
        self.disconnect();
        let mut emptied = Vec::new();
        for list in ListKind::ALL.into_iter().filter(|list| wanted.has(*list)) {
            if offered.has(list) {
                self.loads[list as usize].due = Some(now);
                continue;
            }
            let had = self.catalogue.has(list);
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

    /// Begins a load that is due, of a server whose calls have this timeout. Returns its list.
    pub(super) fn begin(&mut self, now: Instant, timeout: Option<Duration>) -> Option<ListKind> {
        for list in ListKind::ALL {
            if self.loads[list as usize].until.is_some_and(|until| until <= now) {
                self.finish(now, list, None);
            }
        }
        let is_due = |load: &Load| load.until.is_none() && load.due.is_some_and(|due| due <= now);
        let list = ListKind::ALL.into_iter().find(|list| is_due(&self.loads[*list as usize]))?;
        let load = &mut self.loads[list as usize];
        (load.until, load.due) = (Some(now + timeout.unwrap_or_default().max(LOAD_TIMEOUT)), None);
        Some(list)
    }

    /// Handles the end of a load. Returns the list if it is another one than before. Does nothing
    /// if none runs.
    pub(super) fn finish(&mut self, now: Instant, list: ListKind, listing: Option<Listing>) -> Option<ListKind> {
        let load = &mut self.loads[list as usize];
        load.until.take()?;
        let Some(listing) = listing else {
            let wait = RETRY.saturating_mul(1 << load.failures.min(16)).min(MAX_RETRY);
            load.failures += 1;
            load.due = Some(now + wait);
            return None;
        };
        (load.failures, load.not_before) = (0, now + GAP);
        // A change during the load may not be in its result.
        load.is_fresh = load.due.is_none();
        load.due = load.due.map(|_| load.not_before);
        self.catalogue.set(listing).then_some(list)
    }
}
