use super::*;
use alloc::collections::{BTreeMap, BTreeSet};

#[derive(JsonSchema, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Copy,
    Move,
}

#[derive(JsonSchema, serde::Deserialize)]
enum Plan {
    /// for one person
    Solo,
    #[schemars(title = "For all")]
    Team,
    Other,
}

#[derive(JsonSchema, serde::Deserialize, PartialEq, Eq, PartialOrd, Ord)]
enum Only {
    One,
}

#[derive(JsonSchema, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct All {
    /// Where it goes.
    #[schemars(title = "Path", length(min = 1, max = 9))]
    path: String,
    #[schemars(email)]
    email: Option<String>,
    #[schemars(url)]
    uri: Option<String>,
    count: u8,
    signed: i64,
    big: u64,
    ratio: f64,
    perhaps: Option<i32>,
    #[serde(default)]
    force: bool,
    mode: Mode,
    another: Option<Mode>,
    plan: Plan,
    modes: Vec<Mode>,
    only: BTreeSet<Only>,
    plans: Option<Vec<Plan>>,
    letter: char,
}

// covers: ELIC-S-008
#[test]
fn form_of_a_struct_has_a_field_for_each_of_its_fields() {
    let form = Form::of::<All>("What?").unwrap();
    assert_eq!(form.message, "What?");
    let schema = Object::read(&form.schema).unwrap();
    let keys: Vec<_> = schema.iter().map(|(key, _)| key.into_owned()).collect();
    assert_eq!(keys, ["type", "properties", "required"]);
    let mut required: Vec<String> = schema.required("required").unwrap();
    // The order of the fields depends on a feature of `serde_json`.
    required.sort_unstable();
    assert_eq!(required, ["big", "count", "letter", "mode", "modes", "only", "path", "plan", "ratio", "signed"]);
    let properties = schema.object("properties").unwrap();
    for (name, expected) in [
        ("path", r#"{"type":"string","minLength":1,"maxLength":9,"title":"Path","description":"Where it goes."}"#),
        ("email", r#"{"type":"string","format":"email"}"#),
        ("uri", r#"{"type":"string","format":"uri"}"#),
        ("count", r#"{"type":"integer","minimum":0.0,"maximum":255.0}"#),
        ("signed", r#"{"type":"integer"}"#),
        ("ratio", r#"{"type":"number"}"#),
        ("perhaps", r#"{"type":"integer"}"#),
        ("force", r#"{"type":"boolean","default":false}"#),
        ("mode", r#"{"type":"string","enum":["copy","move"]}"#),
        ("another", r#"{"type":"string","enum":["copy","move"]}"#),
        (
            "plan",
            r#"{"type":"string","enum":["Other","Solo","Team"],"enumNames":["Other","for one person","For all"]}"#,
        ),
        ("modes", r#"{"type":"array","items":{"type":"string","enum":["copy","move"]}}"#),
        ("only", r#"{"type":"array","items":{"type":"string","enum":["One"]}}"#),
        (
            "plans",
            r#"{"type":"array","items":{"anyOf":[{"const":"Other","title":"Other"},{"const":"Solo","title":"for one person"},{"const":"Team","title":"For all"}]}}"#,
        ),
        ("letter", r#"{"type":"string","minLength":1,"maxLength":1}"#),
    ] {
        assert_eq!(properties.get(name).unwrap().as_str(), expected, "{name}");
    }
    // What the form writes, it reads: the options keep their names.
    let fields = form.fields().unwrap();
    assert_eq!(fields.len(), 16);
    let plans = fields.iter().find(|field| field.name == "plans").unwrap();
    let FieldKind::Choices { options, .. } = &plans.kind else { panic!() };
    let titles: BTreeMap<_, _> = options.iter().map(|option| (&*option.value, option.title.as_deref())).collect();
    assert_eq!(titles["Solo"], Some("for one person"));
}

/// A struct with one field that a form cannot hold.
macro_rules! unfit {
    ($($(#[$attribute:meta])* $type:ty => $why:expr),* $(,)?) => {$({
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Asked {
            fine: String,
            $(#[$attribute])*
            #[serde(rename = "a/b")]
            wrong: $type,
        }
        let error = Form::of::<Asked>("x").unwrap_err();
        assert_eq!(error, BadSchema::invalid("/properties/a~1b", $why), "{}", stringify!($type));
    })*};
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Inner {
    x: String,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
enum Data {
    None,
    Some(String),
}

// covers: ELIC-S-008
#[test]
fn what_a_form_cannot_hold_is_refused_with_its_path() {
    const TYPES: &str = "a form has only texts, numbers, booleans and enums without data";
    const LISTS: &str = "a form has no lists but those of an enum without data";
    unfit!(
        Inner => TYPES,
        Option<Inner> => TYPES,
        BTreeMap<String, String> => TYPES,
        Data => "an option of a form is a text",
        Vec<String> => LISTS,
        Vec<Vec<Only>> => LISTS,
        [u8; 2] => LISTS,
        #[schemars(regex(pattern = "^a$"))] String => "a form has no `pattern`",
        #[schemars(extend("format" = "uuid"))] String => "a form has no texts of the format `uuid`",
        #[schemars(extend("exclusiveMinimum" = 1))] i32 => "a form has no `exclusiveMinimum`",
        #[schemars(extend("multipleOf" = 2))] i32 => "a form has no `multipleOf`",
        () => TYPES,
        serde_json::Value => TYPES,
    );
    let whole = |error: BadSchema| error == BadSchema::invalid("", "the type is not an object with properties");
    assert!(whole(Form::of::<String>("x").unwrap_err()));
    assert!(whole(Form::of::<Data>("x").unwrap_err()));
    assert!(whole(Form::of::<Vec<Inner>>("x").unwrap_err()));
}

#[test]
fn answer_to_a_form_of_a_type_decodes_as_that_type() {
    #[derive(JsonSchema, serde::Deserialize, PartialEq, Debug)]
    struct Copy {
        path: String,
        count: Option<u32>,
        #[serde(default = "yes")]
        force: bool,
    }
    fn yes() -> bool {
        true
    }
    let form = Form::of::<Copy>("x").unwrap();
    let content = Object::new().with("path", "/a");
    form.check(&content).unwrap();
    let answer = super::super::ElicitResult::accept(&form.fill(content));
    assert_eq!(answer.content().unwrap(), Some(Copy { path: "/a".into(), count: None, force: true }));
    assert!(form.check(&Object::new()).is_err());
}
