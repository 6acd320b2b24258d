use super::*;
use crate::sizes::scaled;

fn json(text: &str) -> RawJson {
    RawJson::parse(text.as_bytes().to_vec()).unwrap()
}

fn object(text: &str) -> Object {
    Object::read(&json(text)).unwrap()
}

// covers: ELIC-S-006, ELIC-S-008
#[test]
fn form_is_a_flat_object_of_primitive_fields() {
    let request = Form::new("who?")
        .field(Field::text("mail").format("email").min(3.0).max(80.0).title("Mail"))
        .field(Field::integer("age").min(0.0).optional())
        .number("score")
        .field(Field::boolean("ok").default_value(true))
        .field(Field::titled_choice("size", [("s", "small"), ("l", "large")]))
        .field(Field::choices("tags", ["a", "b"]).min(1.0));
    let params = ElicitRequest::Form(request.clone()).write(ProtocolVersion::V2025_11_25);
    assert_eq!(params.required::<String>("message").unwrap(), "who?");
    assert!(params.get("mode").is_none());
    assert_eq!(
        params.get("requestedSchema").unwrap().as_str(),
        concat!(
            r#"{"type":"object","properties":{"#,
            r#""mail":{"type":"string","minLength":3,"maxLength":80,"format":"email","title":"Mail"},"#,
            r#""age":{"type":"integer","minimum":0.0},"score":{"type":"number"},"#,
            r#""ok":{"type":"boolean","default":true},"#,
            r#""size":{"type":"string","enum":["s","l"],"enumNames":["small","large"]},"#,
            r#""tags":{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1}},"#,
            r#""required":["mail","score","ok","size","tags"]}"#
        )
    );
    assert_eq!(ElicitRequest::read(&params).unwrap(), request.clone().into());
    let fields = request.fields().unwrap();
    assert_eq!(fields.iter().filter(|field| !field.required).count(), 1);
    assert_eq!(fields[0], Field::text("mail").format("email").min(3.0).max(80.0).title("Mail"));
    // A form without fields has a schema too.
    let consent = ElicitRequest::Form(Form::new("sure?")).write(ProtocolVersion::V2025_11_25);
    assert_eq!(consent.get("requestedSchema").unwrap().as_str(), r#"{"type":"object","properties":{}}"#);
}

// covers: ELIC-C-007
#[test]
fn request_without_mode_is_a_form() {
    let plain = object(r#"{"message":"m","requestedSchema":{"type":"object","properties":{} , "x":1}}"#);
    let read = ElicitRequest::read(&plain).unwrap();
    let ElicitRequest::Form(form) = &read else { panic!("{read:?}") };
    assert_eq!(form.schema.as_str(), r#"{"type":"object","properties":{} , "x":1}"#);
    assert_eq!(ElicitRequest::read(&plain.clone().with("mode", "form")).unwrap(), read);
    let other = ElicitRequest::read(&plain.with("mode", "voice")).unwrap_err();
    assert!(format!("{other}").contains("`mode`"));
}

// covers: ELIC-C-021, X-53
#[test]
fn result_has_content_only_if_the_user_accepted() {
    let accepted = object(r#"{"action":"accept","content":{"a":"x","n":1.5,"b":true,"l":["p","q"]}}"#);
    let read = ElicitResult::read(&accepted).unwrap();
    assert_eq!(read.to_object(), accepted);
    assert_eq!(ElicitResult::Decline.to_object(), object(r#"{"action":"decline"}"#));
    assert_eq!(ElicitResult::Cancel.to_object(), object(r#"{"action":"cancel"}"#));
    assert_eq!(ElicitResult::read(&object(r#"{"action":"accept"}"#)).unwrap(), ElicitResult::Accept(Object::new()));
    assert_eq!(ElicitResult::read(&object(r#"{"action":"decline","content":{"a":1}}"#)), Ok(ElicitResult::Decline));
    for bad in [
        r#"{}"#,
        r#"{"action":"maybe"}"#,
        r#"{"action":"accept","content":{"a":{}}}"#,
        r#"{"action":"accept","content":{"a":[1]}}"#,
    ] {
        assert!(ElicitResult::read(&object(bad)).is_err(), "{bad}");
    }
}

// covers: ELIC-S-024, ELIC-C-023, ELIC-B-025
#[test]
fn answer_is_checked_against_the_form() {
    let request = Form::new("q")
        .field(Field::text("t").min(2.0).max(3.0))
        .field(Field::integer("n").min(1.0).max(5.0).optional())
        .field(Field::choice("c", ["x", "y"]).optional())
        .field(Field::choices("m", ["x", "y"]).max(1.0).optional())
        .field(Field::boolean("b").optional());
    let good = [r#"{"t":"éé"}"#, r#"{"t":"abc","n":5,"c":"x","m":["y"],"b":false,"more":1}"#, r#"{"t":"ab","n":2.0}"#];
    for content in good {
        assert_eq!(request.check(&object(content)), Ok(()), "{content}");
    }
    let bad = [
        r#"{}"#,
        r#"{"t":1}"#,
        r#"{"t":"a"}"#,
        r#"{"t":"abcd"}"#,
        r#"{"t":"ab","n":0}"#,
        r#"{"t":"ab","n":6}"#,
        r#"{"t":"ab","n":1.5}"#,
        r#"{"t":"ab","c":"z"}"#,
        r#"{"t":"ab","m":["z"]}"#,
        r#"{"t":"ab","m":["x","y"]}"#,
        r#"{"t":"ab","b":"true"}"#,
    ];
    for content in bad {
        assert!(request.check(&object(content)).is_err(), "{content}");
    }
}

#[test]
fn choices_of_every_revision_are_decoded() {
    let schema = json(concat!(
        r#"{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"string","enum":["x"],"enumNames":["X"]},"#,
        r#""c":{"type":"string","oneOf":[{"const":"x","title":"X"}]},"d":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}},"#,
        r#""e":{"type":"thing"}}}"#
    ));
    let kinds: Vec<FieldKind> = Form::with_schema("q", schema).fields().unwrap().into_iter().map(|f| f.kind).collect();
    let (plain, titled) = (Choice::new("x", None), Choice::new("x", Some("X".into())));
    assert_eq!(kinds[0], FieldKind::Choice(alloc::vec![plain]));
    assert_eq!(kinds[1], FieldKind::Choice(alloc::vec![titled.clone()]));
    assert_eq!(kinds[2], kinds[1]);
    assert_eq!(kinds[3], FieldKind::Choices { options: alloc::vec![titled], min: None, max: None });
    assert_eq!(kinds[4], FieldKind::Other(json(r#"{"type":"thing"}"#)));
}

// covers: ELIC-S-008
#[test]
fn only_flat_schemas_of_primitive_fields_are_forms() {
    let form = |schema: &str| Form::with_schema("q", json(schema)).check_schema();
    let with = |field: &str| form(&format!(r#"{{"type":"object","properties":{{"f":{field}}}}}"#));
    assert_eq!(Form::new("consent").check_schema(), Ok(()));
    for field in [
        r#"{"type":"string"}"#,
        r#"{"type":"string","enum":["a"]}"#,
        r#"{"type":"string","oneOf":[{"const":"a","title":"A"}]}"#,
        r#"{"type":"array","items":{"type":"string","enum":["a"]}}"#,
        r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}"#,
    ] {
        assert_eq!(with(field), Ok(()), "{field}");
    }
    for field in [
        r#"{"type":"object","properties":{"inner":{"type":"string"}}}"#,
        r#"{"type":"array","items":{"type":"object"}}"#,
        r#"{"type":"array","items":{"type":"string"}}"#,
        r#"{"type":"array"}"#,
        r##"{"$ref":"#/$defs/a"}"##,
        r#"{"type":"null"}"#,
        r#"{"type":"string","enum":[]}"#,
        "true",
    ] {
        assert!(with(field).is_err(), "{field}");
    }
    for schema in ["[]", "{}", r#"{"properties":{}}"#, r#"{"type":"string"}"#, r#"{"type":"object","properties":[]}"#] {
        assert!(form(schema).is_err(), "{schema}");
    }
}

// covers: ELIC-C-009
#[test]
fn omitted_fields_get_the_defaults_of_the_form() {
    let schema = json(concat!(
        r#"{"type":"object","required":["name","none"],"properties":{"#,
        r#""name":{"type":"string","default":"John Doe"},"#,
        r#""age":{"type":"integer","default":30},"#,
        r#""score":{"type":"number","default":95.50},"#,
        r#""status":{"type":"string","enum":["active","inactive"],"default":"active"},"#,
        r#""size":{"type":"string","oneOf":[{"const":"s","title":"small"},{"const":"l","title":"large"}],"default":"l"},"#,
        r#""old":{"type":"string","enum":["a","b"],"enumNames":["A","B"],"default":"b"},"#,
        r#""tags":{"type":"array","items":{"type":"string","enum":["x","y","z"]},"default":["x","z"]},"#,
        r#""named":{"type":"array","items":{"anyOf":[{"const":"p","title":"P"}]},"default":[]},"#,
        r#""ok":{"type":"boolean","default":false},"#,
        r#""none":{"type":"string"}}}"#
    ));
    let form = Form::with_schema("m", schema);
    let all = concat!(
        r#"{"name":"John Doe","age":30,"score":95.50,"status":"active","size":"l","old":"b","tags":["x","z"],"named":[],"#,
        r#""ok":false}"#
    );
    assert_eq!(form.defaults().to_json().as_str(), all);
    assert_eq!(ElicitResult::accept_defaults(&form), ElicitResult::Accept(object(all)));
    assert!(form.check(&form.defaults()).is_err(), "a required field without a default is the user's to fill in");

    let given = object(r#"{"none":"n","ok":true,"age":31,"more":1}"#);
    let ElicitResult::Accept(content) = ElicitResult::accept(&form.fill(given)) else { panic!() };
    assert_eq!(form.check(&content), Ok(()));
    for (name, value) in [("none", r#""n""#), ("ok", "true"), ("age", "31"), ("more", "1"), ("name", r#""John Doe""#)] {
        assert_eq!(content.get(name), Some(json(value)));
    }
}

// covers: ELIC-C-009
#[test]
fn invalid_default_is_not_filled_in() {
    let schema = json(concat!(
        r#"{"type":"object","properties":{"#,
        r#""a":{"type":"integer","default":"x"},"b":{"type":"string","maxLength":1,"default":"long"},"c":{"type":"boolean","default":null},"#,
        r#""d":{"type":"string","enum":["p"],"default":"q"},"e":{"type":"thing","default":{}},"f":1,"#,
        r#""g":{"type":"array","default":["x"]},"h":{"type":"string","default":"here"}}}"#
    ));
    assert_eq!(Form::with_schema("m", schema).defaults(), object(r#"{"h":"here"}"#));
    for odd in ["[]", "{}", r#"{"properties":[]}"#] {
        assert!(Form::with_schema("m", json(odd)).defaults().is_empty());
    }
}

#[test]
fn form_of_very_many_fields_is_checked_in_linear_time() {
    const MANY: usize = scaled(100_000);
    let numbers = || (0..MANY).map(|n| format!("\"f{n}\""));
    let fields: Vec<String> = numbers().map(|name| format!(r#"{name}:{{"type":"boolean","default":true}}"#)).collect();
    let required: Vec<String> = numbers().collect();
    let schema = format!(r#"{{"properties":{{{}}},"required":[{}]}}"#, fields.join(","), required.join(","));
    let form = Form::with_schema("m", json(&schema));
    let content = form.fill(object(&format!(r#"{{"f{}":false}}"#, MANY - 1)));
    assert_eq!(content.len(), MANY);
    assert_eq!(form.check(&content), Ok(()));
}
