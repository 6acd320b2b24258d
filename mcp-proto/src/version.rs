//! The published revisions, and one table of what each of them allows. No other file compares
//! revisions.

use alloc::vec::Vec;
use core::fmt;

/// A published revision of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ProtocolVersion {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
    /// 2026-07-28.
    V2026_07_28,
}

/// The two ways to start a connection and to carry its metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
pub enum Era {
    /// Up to 2025-11-25: a handshake (`initialize`), then a stateful connection.
    Legacy,
    /// From 2026-07-28 on: no handshake, metadata in every request, and requests to the client as
    /// results.
    Modern,
}

/// What a revision allows and requires.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Rules {
    /// The era.
    pub era: Era,
    /// Arrays of messages are legal on the wire.
    pub batches: bool,
    /// An error response without an id is legal.
    pub idless_errors: bool,
    /// Over HTTP, an event stream of a session begins with an event that has an id and no data, and
    /// may be closed before its end.
    pub polling: bool,
    /// `message` of a progress notification exists.
    pub progress_message: bool,
    /// `elicitation/create` exists.
    pub elicitation: bool,
    /// Audio content exists.
    pub audio: bool,
    /// Resource links exist as content of a tool result.
    pub resource_links: bool,
    /// `annotations` of a tool exist.
    pub tool_annotations: bool,
    /// `title` and `_meta` of tools, resources and prompts, `_meta` of content, `lastModified` of
    /// annotations, `title` of an implementation, `outputSchema` and `structuredContent` exist.
    pub titles: bool,
    /// `structuredContent` may be any JSON value, and `outputSchema` any schema. Otherwise both are
    /// objects.
    pub any_structured: bool,
    /// `icons` of tools, resources and prompts, `description`, `icons` and `websiteUrl` of an
    /// implementation exist.
    pub icons: bool,
    /// Arguments that cannot be decoded lead to a tool result with `isError`. Otherwise they lead
    /// to the protocol error `-32602`.
    pub invalid_arguments_as_result: bool,
    /// Elicitation has modes (`form`, `url`), and a client declares them one by one.
    pub elicitation_modes: bool,
    /// A request for sampling may have tools, and the content of its messages may be several
    /// blocks.
    pub sampling_tools: bool,
    /// The capability `completions` exists.
    pub completions: bool,
    /// A request for completion may have a `context`.
    pub completion_context: bool,
    /// The revision itself defines (experimental) tasks: `tasks/get` and the others,
    /// `notifications/tasks/status`.
    pub tasks: bool,
}

impl Era {
    /// Returns the era of a revision by its name. The revision need not be published yet: a date
    /// after all published ones belongs to the modern era.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let is_later = || {
            let is_date = name.len() == 10 && name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            is_date && ProtocolVersion::ALL.iter().all(|version| version.as_str() < name)
        };
        ProtocolVersion::parse(name).map(ProtocolVersion::era).or_else(|| is_later().then_some(Self::Modern))
    }
}

impl ProtocolVersion {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the revision of that name. `None` if no published revision has it.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == name)
    }

    /// Returns what this revision allows.
    pub const fn rules(self) -> Rules {
        const OLDEST: Rules = Rules {
            era: Era::Legacy,
            batches: false,
            idless_errors: false,
            polling: false,
            progress_message: false,
            elicitation: false,
            audio: false,
            resource_links: false,
            tool_annotations: false,
            titles: false,
            any_structured: false,
            icons: false,
            invalid_arguments_as_result: false,
            elicitation_modes: false,
            sampling_tools: false,
            completions: false,
            completion_context: false,
            tasks: false,
        };
        const V2025_03: Rules = Rules {
            batches: true,
            progress_message: true,
            audio: true,
            tool_annotations: true,
            completions: true,
            ..OLDEST
        };
        const V2025_06: Rules = Rules {
            batches: false,
            elicitation: true,
            resource_links: true,
            titles: true,
            completion_context: true,
            ..V2025_03
        };
        const V2025_11: Rules = Rules {
            idless_errors: true,
            polling: true,
            icons: true,
            invalid_arguments_as_result: true,
            elicitation_modes: true,
            sampling_tools: true,
            tasks: true,
            ..V2025_06
        };
        const V2026_07: Rules =
            Rules { era: Era::Modern, polling: false, any_structured: true, tasks: false, ..V2025_11 };
        match self {
            Self::V2024_11_05 => OLDEST,
            Self::V2025_03_26 => V2025_03,
            Self::V2025_06_18 => V2025_06,
            Self::V2025_11_25 => V2025_11,
            Self::V2026_07_28 => V2026_07,
        }
    }

    /// Returns the era of this revision.
    pub const fn era(self) -> Era {
        self.rules().era
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The revisions that one side supports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Versions(Vec<ProtocolVersion>);

impl Versions {
    /// Every published revision.
    pub fn all() -> Self {
        Self(ProtocolVersion::ALL.to_vec())
    }

    /// Creates a set of these revisions. Order and repetition do not matter.
    pub fn new(versions: impl IntoIterator<Item = ProtocolVersion>) -> Self {
        let mut versions: Vec<_> = versions.into_iter().collect();
        versions.sort_unstable();
        versions.dedup();
        Self(versions)
    }

    /// Returns whether the set contains `version`.
    pub fn contains(&self, version: ProtocolVersion) -> bool {
        self.0.contains(&version)
    }

    /// Returns the revisions, newest first, which is the order on the wire.
    pub fn newest_first(&self) -> impl Iterator<Item = ProtocolVersion> + '_ {
        self.0.iter().rev().copied()
    }

    /// Returns the newest revision of `era`.
    pub fn newest(&self, era: Era) -> Option<ProtocolVersion> {
        self.newest_first().find(|version| version.era() == era)
    }

    /// Returns the newest revision of `era` that `names` also contains. Unknown names are ignored.
    pub fn mutual<S: AsRef<str>>(&self, era: Era, names: &[S]) -> Option<ProtocolVersion> {
        self.newest_first().find(|v| v.era() == era && names.iter().any(|name| name.as_ref() == v.as_str()))
    }
}

impl Default for Versions {
    /// Every published revision.
    fn default() -> Self {
        Self::all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_names_are_rejected() {
        for version in ProtocolVersion::ALL {
            assert_eq!(ProtocolVersion::parse(version.as_str()), Some(version));
        }
        assert_eq!(ProtocolVersion::parse("2099-01-01"), None);
        assert_eq!(ProtocolVersion::parse("draft"), None);
    }

    // covers: RPC-B-042
    #[test]
    fn only_one_revision_has_batches_and_only_one_is_modern() {
        let batches: Vec<_> = ProtocolVersion::ALL.into_iter().filter(|v| v.rules().batches).collect();
        assert_eq!(batches, [ProtocolVersion::V2025_03_26]);
        let modern: Vec<_> = ProtocolVersion::ALL.into_iter().filter(|v| v.era() == Era::Modern).collect();
        assert_eq!(modern, [ProtocolVersion::V2026_07_28]);
    }

    #[test]
    fn mutual_revision_is_the_newest_common_one_of_the_era() {
        let all = Versions::all();
        let theirs = ["2099-01-01", "2025-06-18", "2026-07-28", "2025-11-25"];
        assert_eq!(all.mutual(Era::Modern, &theirs), Some(ProtocolVersion::V2026_07_28));
        assert_eq!(all.mutual(Era::Legacy, &theirs), Some(ProtocolVersion::V2025_11_25));
        assert_eq!(all.mutual(Era::Modern, &["2099-01-01"]), None);
        let old = Versions::new([ProtocolVersion::V2025_06_18, ProtocolVersion::V2024_11_05]);
        assert_eq!(old.mutual(Era::Legacy, &theirs), Some(ProtocolVersion::V2025_06_18));
        assert_eq!(old.newest(Era::Modern), None);
    }
}
