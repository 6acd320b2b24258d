//! The values that a file of VS Code asks the user for (`inputs`).

use super::error::{ConfigError, ConfigErrorKind, element_path};
use super::reader::Reader;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use mcp_proto::rpc::{JsonKind, LocatedMember, LocatedValue};

/// A value that the application asks the user for. The look-up returns it for
/// [`Variable::Input`](super::Variable::Input). Its `Debug` does not show the default of a
/// password.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputPrompt {
    /// The id, as in `${input:id}`.
    pub id: String,
    /// How to ask.
    pub kind: InputKind,
    /// The question for the user.
    pub description: Option<String>,
    /// The answer to offer.
    pub default: Option<String>,
    /// Whether the answer is a secret, which is not displayed while the user types it.
    pub is_password: bool,
}

/// How to ask for a value.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum InputKind {
    /// The user types a text (`promptString`).
    Text,
    /// The user picks one of these texts (`pickString`).
    Pick(Vec<String>),
    /// A command of the editor returns the value (`command`). Its arguments are among the
    /// [members without effect](super::ConfigFile::ignored).
    Command(String),
}

impl fmt::Debug for InputPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = if self.is_password { self.default.as_ref().map(|_| "…") } else { self.default.as_deref() };
        f.debug_struct("InputPrompt")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("description", &self.description)
            .field("default", &default)
            .field("is_password", &self.is_password)
            .finish()
    }
}

/// Reads the list at `path`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    path: &str,
    list: LocatedValue<'_>,
) -> Vec<Result<InputPrompt, ConfigError>> {
    if let Err(why) = reader.check(list, path, JsonKind::Array, "an array") {
        return [Err(why)].into();
    }
    let mut ids = BTreeSet::new();
    let mut inputs = Vec::new();
    for (index, value) in list.elements().enumerate() {
        let path = element_path(path, index);
        inputs.push(input(reader, &path, value).and_then(|input| {
            let is_new = ids.insert(input.id.clone());
            if is_new { Ok(input) } else { Err(reader.error(value.at(), &path, ConfigErrorKind::Duplicate)) }
        }));
    }
    inputs
}

fn input(reader: &mut Reader<'_>, path: &str, value: LocatedValue<'_>) -> Result<InputPrompt, ConfigError> {
    const KNOWN: [&str; 7] = ["type", "id", "description", "default", "password", "options", "command"];
    let mut members = reader.known(value, path, |key| KNOWN.contains(&key))?;
    let text = |reader: &Reader<'_>, member: &LocatedMember<'_>, key: &str| {
        reader.text(member.value, &format!("{path}.{key}"))
    };
    let mut take = |reader: &Reader<'_>, key: &str| {
        members.remove(key).map(|member| text(reader, &member, key).map(|text| (member.value.at(), text))).transpose()
    };
    let missing = |reader: &Reader<'_>, what| reader.error(value.at(), path, ConfigErrorKind::Missing(what));
    let (_, id) = take(reader, "id")?.ok_or_else(|| missing(reader, "`id`"))?;
    let (at, kind) = take(reader, "type")?.ok_or_else(|| missing(reader, "`type`"))?;
    let description = take(reader, "description")?.map(|(_, text)| text);
    let default = take(reader, "default")?.map(|(_, text)| text);
    let kind = match kind.as_str() {
        "promptString" => InputKind::Text,
        "command" => InputKind::Command(take(reader, "command")?.ok_or_else(|| missing(reader, "`command`"))?.1),
        "pickString" => {
            let options = members.remove("options").ok_or_else(|| missing(reader, "`options`"))?;
            InputKind::Pick(picks(reader, &format!("{path}.options"), options.value)?)
        }
        _ => return Err(reader.error(at, &format!("{path}.type"), ConfigErrorKind::UnknownType(kind))),
    };
    let is_password = match members.remove("password") {
        Some(member) => reader.boolean(member.value, &format!("{path}.password"))?,
        None => false,
    };
    members.values().for_each(|member| reader.ignore(member, path));
    Ok(InputPrompt { id, kind, description, default, is_password })
}

/// Reads the options of a `pickString`: texts, or objects with a `label` and a `value`.
fn picks(reader: &Reader<'_>, path: &str, list: LocatedValue<'_>) -> Result<Vec<String>, ConfigError> {
    reader.check(list, path, JsonKind::Array, "an array")?;
    let pick = |(index, option): (usize, LocatedValue<'_>)| {
        let path = element_path(path, index);
        if option.kind() != JsonKind::Object {
            return reader.text(option, &path);
        }
        let members = reader.members(option, &path)?;
        let value = members.iter().find(|(key, _)| key == "value");
        let (_, value) = value.ok_or_else(|| reader.error(option.at(), &path, ConfigErrorKind::Missing("`value`")))?;
        reader.text(value.value, &format!("{path}.value"))
    };
    list.elements().enumerate().map(pick).collect()
}
