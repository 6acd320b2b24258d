use super::*;
use crate::rpc::{LARGE, Message, parse};
use crate::sizes::scaled;
use proptest::prelude::*;

fn object(text: &str) -> Object {
    Object::read(&RawJson::parse(text.as_bytes().to_vec()).unwrap()).unwrap()
}

// covers: B-292
#[test]
fn repeated_key_keeps_last_value_at_first_position() {
    let cases = [
        (r#"{"b":1,"a":2,"b":3,"c":4,"a":5,"b":6}"#, r#"{"b":6,"a":5,"c":4}"#),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"a":1,"\u0061":2}"#, r#"{"a":2}"#),
        (r#"{"z":1,"y":2}"#, r#"{"z":1,"y":2}"#),
        ("{}", "{}"),
    ];
    for (text, expected) in cases {
        assert_eq!(object(text).to_json().as_str(), expected);
    }
    // More than are compared with each other.
    let many: Vec<String> = (0..100).map(|n| format!("\"{}\":{n}", n % 40)).collect();
    let expected: Vec<String> = (0..40).map(|n| format!("\"{n}\":{}", if n < 20 { n + 80 } else { n + 40 })).collect();
    assert_eq!(object(&format!("{{{}}}", many.join(","))).to_json().as_str(), format!("{{{}}}", expected.join(",")));
}

#[test]
fn object_of_very_many_members_is_read_in_linear_time() {
    const MANY: usize = scaled(1_000_000);
    let members: Vec<String> = (0..MANY).map(|n| format!("\"{}\":0", n / 2)).collect();
    assert_eq!(object(&format!("{{{}}}", members.join(","))).len(), MANY / 2);
}

/// As with members that are set one after another: those that exist keep their places.
#[test]
fn many_members_are_set_as_one_by_one() {
    let numbered = |keys: core::ops::Range<u32>, value: &str| {
        let members: Vec<_> = keys.map(|n| format!(r#""k\"{n}" : {value}"#)).collect();
        object(&format!("{{{}}}", members.join(" ,")))
    };
    for (own, other) in [(0..40, 20..70), (0..1, 0..100), (0..100, 50..51), (0..0, 0..50), (0..50, 0..0)] {
        let (own, other) = (numbered(own, "[1]"), numbered(other, "\"x\""));
        let mut expected = own.clone();
        other.iter().for_each(|(key, value)| expected.set(&key, &value));
        let mut merged = own.with_all(&other);
        assert_eq!((&merged, merged.to_json()), (&expected, expected.to_json()));
        assert_eq!(merged.get("k\"50"), expected.get("k\"50"));
        assert_eq!(merged.remove("k\"0"), expected.remove("k\"0"));
        assert_eq!(merged.with("z", true).to_json(), expected.with("z", true).to_json());
    }
}

#[test]
fn very_many_members_are_set_in_linear_time() {
    const MANY: usize = scaled(1_000_000);
    let all = |name: &str| -> Object { (0..MANY).map(|n| (format!("{name}{n}"), RawJson::null())).collect() };
    let merged = all("a").with_all(&all("b")).with_all(&all("a"));
    assert_eq!(merged.len(), 2 * MANY);
}

#[test]
fn object_is_written_without_space_between_members() {
    let cases = [
        (" { \"a\" : 1 , \"b\" : [ 2 ] } ", r#"{"a":1,"b":[ 2 ]}"#),
        (r#"{"a":1 }"#, r#"{"a":1}"#),
        (r#"{"\u0061\/\"":1}"#, r#"{"a/\"":1}"#),
        ("{ }", "{}"),
    ];
    for (text, expected) in cases {
        let read = object(text);
        assert_eq!(read.to_json().as_str(), expected);
        assert_eq!(RawJson::from(read.clone()).as_str(), expected);
        // A change copies the text.
        assert_eq!(read.with("z", true), object(expected).with("z", true));
    }
    assert_eq!(object(r#"{"\u0061\n":1}"#).get("a\n"), Some(1_i64.into()));
    assert_eq!(Object::new().with("a\"", 1_i64).with("b", 2_i64).remove("a\""), Some(1_i64.into()));
}

#[test]
fn values_are_written_as_json() {
    let inner = Object::new().with("x", i64::MIN);
    let written = Object::new()
        .with("text", "a\n\"")
        .with("max", u64::MAX)
        .with("none", Object::new())
        .with("inner", &inner)
        .with("list", alloc::vec![inner.clone(), inner])
        .with("id", Id::from("7"))
        .with_opt("absent", None::<bool>)
        .with("raw", RawJson::null());
    let expected = r#"{"text":"a\n\"","max":18446744073709551615,"none":{},"inner":{"x":-9223372036854775808},"list":[{"x":-9223372036854775808},{"x":-9223372036854775808}],"id":"7","raw":null}"#;
    assert_eq!(written.to_json().as_str(), expected);
    assert_eq!(written.str("text").as_deref(), Some("a\n\""));
    assert_eq!((written.str("max"), written.kind("raw"), written.kind("absent")), (None, Some(JsonKind::Null), None));
    assert_eq!(written, object(expected));
}

// covers: B-187
#[test]
fn what_is_left_of_a_large_object_does_not_keep_its_text() {
    let text =
        RawJson::parse(format!(r#"{{"large":"{}","small":1,"key":2}}"#, "x".repeat(LARGE)).into_bytes()).unwrap();
    let mut read = Object::read(&text).unwrap();
    let inner = |object: &Object| object.0.clone().unwrap();
    assert!(inner(&read).shares_text());
    read.remove("large");
    assert!(!inner(&read).shares_text() && inner(&read).bytes().len() < 64, "{read:?}");
    assert_eq!(read.to_json().as_str(), r#"{"small":1,"key":2}"#);
    for key in ["small", "key"] {
        read.remove(key);
    }
    assert_eq!(read.heap_size(), 0);
}

/// What may happen to an object.
#[derive(Clone, Debug)]
enum Step {
    Set(String, RawJson),
    Remove(String),
    Merge(String),
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(["a", "b", "ab", "", "a\"", "\\", "\n", "é"].map(String::from).to_vec())
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop::sample::select(["1", "null", "\"}\"", "[ {\"a\" :2}]", "{\"b\":\"\\\"\"}"].to_vec());
    let value = value.prop_map(|text| RawJson::parse(text).unwrap());
    prop_oneof![
        (key(), value).prop_map(|(key, value)| Step::Set(key, value)),
        key().prop_map(Step::Remove),
        prop::sample::select(TEXTS).prop_map(|text| Step::Merge(text.to_owned())),
    ]
}

const TEXTS: &[&str] = &[
    "{}",
    r#"{"a":1,"b":2,"":3}"#,
    r#"{ "b" : {"c" : []}, "\u0061":"x","a\"":null}"#,
    r#"{"a":1,"b":2,"a":3}"#,
    r#"{"\\":1,"\n":"\n"}"#,
];

proptest! {
    /// A list of keys and values, changed in the simplest way, has the same members.
    #[test]
    fn object_behaves_like_a_list_of_members(
        start in prop::sample::select(TEXTS),
        steps in prop::collection::vec(step(), 0..12),
    ) {
        let mut real = object(start);
        let mut model: Vec<(String, RawJson)> = real.iter().map(|(key, value)| (key.into_owned(), value)).collect();
        let set = |model: &mut Vec<(String, RawJson)>, key: &str, value: RawJson| {
            match model.iter_mut().find(|(other, _)| other == key) {
                Some(member) => member.1 = value,
                None => model.push((key.to_owned(), value)),
            }
        };
        for step in steps {
            match step {
                Step::Set(key, value) => {
                    real.set(&key, &value);
                    set(&mut model, &key, value);
                }
                Step::Remove(key) => {
                    let at = model.iter().position(|(other, _)| *other == key);
                    prop_assert_eq!(real.remove(&key), at.map(|at| model.remove(at).1));
                }
                Step::Merge(text) => {
                    let other = object(&text);
                    real = real.with_all(&other);
                    other.iter().for_each(|(key, value)| set(&mut model, &key, value));
                }
            }
            let members: Vec<_> = real.iter().map(|(key, value)| (key.into_owned(), value)).collect();
            prop_assert_eq!(&members, &model);
            let collected: Object = model.iter().cloned().collect();
            prop_assert_eq!(real.to_json(), collected.to_json());
            prop_assert_eq!(&real, &Object::read(&real.to_json()).unwrap());
            for (key, value) in &model {
                prop_assert_eq!(real.get(key), Some(value.clone()));
            }
        }
    }
}

// covers: B-187, B-292
#[test]
fn members_noted_with_a_message_are_those_of_its_params() {
    let many: Vec<_> = (0..40).map(|at| format!(r#""k{at}":{{"in":[{at}]}}"#)).collect();
    let texts = [
        r#"{"a":1,"b":{"c":"}"},"d":[{"e":"]"}]}"#.to_owned(),
        r#"{ "a" : 1 , "b":"x" }"#.to_owned(),
        r#"{"a":1,"b":2,"a":3}"#.to_owned(),
        r#"{"\u0061":"\n","a\"":1,"a":2}"#.to_owned(),
        format!(r#"{{"large":"{}","small":1}}"#, "x".repeat(LARGE)),
        format!("{{{}}}", many.join(",")),
        "{}".to_owned(),
    ];
    for text in texts {
        for message in [
            format!(r#"{{"jsonrpc":"2.0","id":1,"other":{{"z":1}},"method":"m","params":{text}}}"#),
            format!(r#"{{"params":{text},"id":1,"jsonrpc":"2.0","method":"m","other":{{"z":1}}}}"#),
        ] {
            let Ok(Message::Request(request)) = parse(message.into_bytes().into(), 64) else { panic!("{text}") };
            let params = request.params.unwrap();
            assert_eq!(params.as_str(), text);
            let (noted, read) = (Object::read(&params).unwrap(), object(&text));
            assert_eq!((noted.to_json(), noted.len()), (read.to_json(), read.len()));
            assert_eq!(Object::from_json(params.clone()).unwrap(), noted);
            for (key, _) in read.iter() {
                assert_eq!(noted.get(&key), read.get(&key), "{key}");
                let (mut changed, mut expected) = (noted.clone(), read.clone());
                assert_eq!((changed.remove(&key), &changed), (expected.remove(&key), &expected));
                assert_eq!(read.clone().without(&[&key]), expected);
            }
            // Changing an object changes no text that was read.
            assert_eq!(params.as_str(), text);
        }
    }
}
