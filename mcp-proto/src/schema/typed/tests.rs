use super::*;
use crate::Tool;
use crate::schema::validator;
use alloc::string::ToString;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Tree {
    /// what it is called
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    inner: Vec<Tree>,
    kind: Kind,
    /// read only
    #[serde(skip_deserializing)]
    id: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Kind {
    File { bytes: u64 },
    Folder,
}

fn tree() -> Tree {
    let leaf = Tree { name: "b".into(), size: Some(1), inner: Vec::new(), kind: Kind::File { bytes: 9 }, id: 2 };
    Tree { name: "a".into(), size: None, inner: alloc::vec![leaf], kind: Kind::Folder, id: 1 }
}

#[test]
fn what_serde_writes_matches_the_output_schema() {
    let schema = output_schema::<Tree>().unwrap();
    let checker = validator().compile(&schema).unwrap();
    let value = RawJson::encode(&tree()).unwrap();
    checker.check(&value).unwrap();
    // Only what is written has an `id`.
    let input = validator().compile(&input_schema::<Tree>().unwrap()).unwrap();
    let without = json!({"name": "a", "inner": [], "kind": {"kind": "folder"}});
    let without = RawJson::encode(&without).unwrap();
    input.check(&without).unwrap();
    assert!(without.decode::<Tree>().is_ok());
    assert!(checker.check(&without).is_err());
    let wrong = json!({"name": "a", "inner": [{}], "kind": {"kind": "folder"}});
    assert!(input.check(&RawJson::encode(&wrong).unwrap()).is_err());
}

// covers: TOOL-S-007, SCHEMA-B-001
#[test]
fn schema_of_a_tool_is_self_contained() {
    let tool = Tool::new("t").input::<Tree>().output::<Tree>();
    for schema in [&tool.input_schema, tool.output_schema.as_ref().unwrap()] {
        let schema = Object::read(schema).unwrap();
        assert_eq!(schema.str("type").as_deref(), Some("object"));
        assert!(!schema.contains("$schema"));
        assert!(validator().compile(&schema.to_json()).is_ok());
    }
    assert_eq!(tool.required_arguments(), ["name", "inner", "kind"]);
    tool.check().unwrap();
    // An enum is an object by each of its alternatives.
    let schema = Tool::new("t").input::<Kind>().input_schema;
    assert_eq!(Object::read(&schema).unwrap().str("type").as_deref(), Some("object"));
}

#[test]
#[should_panic(expected = "the type of an input schema is \"object\"")]
fn type_that_is_no_object_is_refused_as_input() {
    let _ = Tool::new("t").input::<Vec<u8>>();
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Arguments {
    /// The language.
    #[schemars(title = "Language", regex(pattern = "^[a-z]+$"))]
    language: String,
    tone: Option<Tone>,
    #[serde(default)]
    extra: String,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
enum Tone {
    Plain,
    /// with many words
    Flowery,
}

#[test]
fn members_of_a_struct_of_texts_are_listed() {
    let mut members = text_members::<Arguments>().unwrap();
    // Their order depends on a feature of `serde_json`.
    members.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let seen: Vec<_> = members.iter().map(|member| (member.name.as_str(), member.required)).collect();
    assert_eq!(seen, [("extra", false), ("language", true), ("tone", false)]);
    let language = &members[1];
    assert_eq!((language.title.as_deref(), language.description.as_deref()), (Some("Language"), Some("The language.")));
    let path = |error: BadSchema| match error {
        BadSchema::Invalid { path, .. } => path,
        other => other.to_string(),
    };
    assert!(["/properties/inner", "/properties/size"].contains(&&*path(text_members::<Tree>().unwrap_err())));
    assert_eq!(path(text_members::<Kind>().unwrap_err()), "");
    assert_eq!(path(text_members::<u8>().unwrap_err()), "");
}
