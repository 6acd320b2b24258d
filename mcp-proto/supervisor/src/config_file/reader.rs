//! What the readers of all parts of a file share: positions, types, and the members without effect.

use super::IgnoredMember;
use super::dialect::Dialect;
use super::error::{ConfigError, ConfigErrorKind, element_path, member_path};
use super::position::{Lines, Position};
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::string::String;
use alloc::vec::Vec;
use mcp_proto::rpc::{JsonKind, LocatedMember, LocatedValue, RawJson};

/// The members of an object, by their keys.
pub(super) type Members<'a> = BTreeMap<String, LocatedMember<'a>>;

/// The state of a parser.
pub(super) struct Reader<'a> {
    lines: Lines<'a>,
    pub(super) dialect: Dialect,
    /// The members without effect, each with its position in bytes.
    ignored: Vec<(usize, IgnoredMember)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, dialect: Dialect) -> Self {
        Self { lines: Lines::new(text), dialect, ignored: Vec::new() }
    }

    pub(super) fn position(&self, at: usize) -> Position {
        self.lines.position(at)
    }

    /// Returns the error of the value at a position.
    pub(super) fn error(&self, at: usize, path: &str, kind: ConfigErrorKind) -> ConfigError {
        ConfigError::new(self.position(at), path.into(), kind)
    }

    /// Checks the type of a value. `expected` is its name, for people.
    pub(super) fn check(
        &self,
        value: LocatedValue<'_>,
        path: &str,
        kind: JsonKind,
        expected: &'static str,
    ) -> Result<(), ConfigError> {
        let found = value.kind();
        if found == kind {
            return Ok(());
        }
        Err(self.error(value.at(), path, ConfigErrorKind::WrongType { expected, found }))
    }

    /// Returns the text of a string.
    pub(super) fn text(&self, value: LocatedValue<'_>, path: &str) -> Result<String, ConfigError> {
        self.check(value, path, JsonKind::String, "a string")?;
        value.text().ok_or_else(|| self.error(value.at(), path, ConfigErrorKind::Surrogate))
    }

    /// Returns the value of a boolean.
    pub(super) fn boolean(&self, value: LocatedValue<'_>, path: &str) -> Result<bool, ConfigError> {
        self.check(value, path, JsonKind::Bool, "a boolean")?;
        Ok(value.raw() == "true")
    }

    /// Returns the texts of an array of strings, with their positions and paths.
    pub(super) fn texts(
        &self,
        value: LocatedValue<'_>,
        path: &str,
    ) -> Result<Vec<(usize, String, String)>, ConfigError> {
        self.check(value, path, JsonKind::Array, "an array of strings")?;
        let text = |(index, value): (usize, LocatedValue<'_>)| {
            let path = element_path(path, index);
            let text = self.text(value, &path)?;
            Ok((value.at(), text, path))
        };
        value.elements().enumerate().map(text).collect()
    }

    /// Returns the members of an object, in the order of the file.
    pub(super) fn members<'v>(
        &self,
        value: LocatedValue<'v>,
        path: &str,
    ) -> Result<Vec<(String, LocatedMember<'v>)>, ConfigError> {
        self.check(value, path, JsonKind::Object, "an object")?;
        let member = |member: LocatedMember<'v>| match &member.key {
            Some(key) => Ok((key.clone(), member)),
            None => Err(self.error(member.at, path, ConfigErrorKind::Surrogate)),
        };
        value.members().map(member).collect()
    }

    /// Returns the members of an object that `has` knows. The others have no effect.
    pub(super) fn known<'v>(
        &mut self,
        value: LocatedValue<'v>,
        path: &str,
        has: impl Fn(&str) -> bool,
    ) -> Result<Members<'v>, ConfigError> {
        let members = self.members(value, path)?;
        let mut known = BTreeMap::new();
        for (key, member) in members {
            if !has(&key) {
                self.ignore(&member, path);
                continue;
            }
            match known.entry(key) {
                Entry::Vacant(place) => _ = place.insert(member),
                Entry::Occupied(other) => {
                    return Err(self.error(member.at, &member_path(path, other.key()), ConfigErrorKind::Duplicate));
                }
            }
        }
        Ok(known)
    }

    /// Adds a member of the object at `path` to those without effect.
    pub(super) fn ignore(&mut self, member: &LocatedMember<'_>, path: &str) {
        let path = member_path(path, member.key.as_deref().unwrap_or_default());
        let Position { line, column } = self.position(member.at);
        // A value with a lone surrogate is no `RawJson`.
        let value = RawJson::parse_indented(member.value.raw().as_bytes()).ok();
        self.ignored.push((member.at, IgnoredMember { line, column, path, value }));
    }

    /// Returns the members without effect, in the order of the file.
    pub(super) fn into_ignored(mut self) -> Vec<IgnoredMember> {
        self.ignored.sort_by_key(|(at, _)| *at);
        self.ignored.into_iter().map(|(_, member)| member).collect()
    }
}
