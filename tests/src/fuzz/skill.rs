//! The front matter of skills.

use super::script::Script;
use mcp_proto::ProtocolVersion;
use mcp_proto::model::page::ListElement as _;
use mcp_proto::rpc::RawJson;
use mcp_proto::skills::front_matter::{MAX_BYTES, MAX_DEPTH};
use mcp_proto::skills::{Held, ServedSkill, Skill};
use serde_json::{Map, Value};

/// The fields that every skill has.
const FIELDS: &str = "name: x\ndescription: d\n";

/// The first byte selects whether the others are a `SKILL.md`, the fields that follow the name and
/// the description, or JSON, since nearly all of it is YAML too.
///
/// A client accepts the files of what a server accepts, and no other byte. JSON is read as itself.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let (kind, rest) = (script.below(3), script.rest());
    let text = match kind {
        0 => rest.to_vec(),
        1 => [b"---\n", FIELDS.as_bytes(), rest, b"\n---\n"].concat(),
        _ => {
            let Some(fields) = json(rest) else { return };
            let served = skill(format!("---\n{fields}\n---\n").as_bytes()).expect("JSON is YAML");
            let read: Value = RawJson::from(served.entry().frontmatter.clone()).decode().expect("JSON");
            return assert_eq!(read, fields);
        }
    };
    let Some(served) = skill(&text) else { return };
    let entry = RawJson::from(served.entry().write(ProtocolVersion::V2026_07_28));
    let held = Held::new("server", Skill::read(&entry).expect("the client reads the entry")).expect("it holds it");
    let uri = &held.skill().uri;
    assert_eq!(held.verify(uri, &text), Ok(()));
    let mut other = text.clone();
    other[data.len() % text.len()] ^= 1;
    assert!(held.verify(uri, &other).is_err());
}

fn skill(text: &[u8]) -> Option<ServedSkill> {
    Skill::from_files("x", [("SKILL.md", text)]).ok()
}

/// Returns fields of a front matter in JSON. `None` if the text is none, or if YAML may differ: it
/// knows fewer escapes, and no long keys.
fn json(text: &[u8]) -> Option<Value> {
    let Value::Object(mut fields) = serde_json::from_slice(text).ok()? else { return None };
    fields.remove("metadata");
    fields.extend([("name".into(), "x".into()), ("description".into(), "d".into())]);
    (text.len() < MAX_BYTES / 2 && is_yaml(&fields, 1)).then_some(Value::Object(fields))
}

fn is_yaml(fields: &Map<String, Value>, level: usize) -> bool {
    fields.iter().all(|(key, value)| key.len() < 256 && is_plain(key) && is_yaml_value(value, level + 1))
}

fn is_yaml_value(value: &Value, level: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => is_plain(text),
        Value::Array(values) => level <= MAX_DEPTH && values.iter().all(|value| is_yaml_value(value, level + 1)),
        Value::Object(fields) => level <= MAX_DEPTH && is_yaml(fields, level),
    }
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}
