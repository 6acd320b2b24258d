//! Prompts in JSON text of every revision.

use super::*;
use crate::model::content::Annotations;
use crate::model::resources::ResourceContents;
use alloc::string::ToString;

fn json(text: &str) -> RawJson {
    RawJson::parse(String::from(text)).unwrap()
}

fn decode<M: Method>(text: &str) -> Result<M::Output, DecodeError> {
    M::decode(RawResult::new(json(text), ProtocolVersion::V2026_07_28))
}

#[test]
fn prompt_is_written_as_its_revision_has_it() {
    let argument = PromptArgument::new("tone").title("Tone").describe("how").optional();
    let prompt = Prompt::new("greet")
        .title("Greet")
        .describe("greets")
        .argument("name")
        .argument(argument)
        .icon("data:,")
        .meta("k", 1_i64);
    let written = ProtocolVersion::ALL.map(|version| prompt.write(version).to_json().as_str().to_string());
    let oldest = r#"{"name":"greet","description":"greets","arguments":[{"name":"name","required":true},{"name":"tone","description":"how","required":false}]}"#;
    let middle = r#"{"name":"greet","title":"Greet","description":"greets","arguments":[{"name":"name","required":true},{"name":"tone","title":"Tone","description":"how","required":false}],"_meta":{"k":1}}"#;
    let newest = r#"{"name":"greet","title":"Greet","description":"greets","arguments":[{"name":"name","required":true},{"name":"tone","title":"Tone","description":"how","required":false}],"icons":[{"src":"data:,"}],"_meta":{"k":1}}"#;
    assert_eq!(written, [oldest, oldest, middle, newest, newest]);
    assert_eq!(Prompt::read(&json(newest)), Ok(prompt));
}

#[test]
fn unknown_members_of_prompts_are_kept() {
    let text = r#"{"name":"p","arguments":[{"name":"x","required":false,"later":1}],"later":{}}"#;
    let prompt = Prompt::read(&json(text)).unwrap();
    assert_eq!(prompt.write(ProtocolVersion::V2026_07_28).to_json().as_str(), text);
    let text = r#"{"messages":[{"role":"user","content":{"type":"later","x":1},"later":2}],"_meta":{"k":1}}"#;
    let result = decode::<Get>(text).unwrap();
    assert_eq!(result.write(ProtocolVersion::V2026_07_28).to_json().as_str(), text);
}

// covers: PROMPT-B-009, PROMPT-S-008
#[test]
fn messages_are_written_as_their_revision_has_them() {
    let annotations = Annotations::audience([Role::User]).last_modified("2025");
    let link = Content::link("x:l", "l").annotate(&annotations).meta("k", 1_i64);
    let Content::ResourceLink { uri, name, other } = link else { panic!() };
    let link = Content::ResourceLink { uri, name, other: other.with("icons", alloc::vec![Object::new()]) };
    let result = GetPromptResult::new([
        PromptMessage::user("hello"),
        PromptMessage::assistant(link),
        PromptMessage::user(Content::text("t").annotate(&annotations).meta("k", 1_i64)),
        PromptMessage::user(ResourceContents::text("x:y", "t").mime("a/b").meta("k", 1_i64)),
        PromptMessage::user(Content::audio_of([1], "audio/wav")),
    ]);
    let written = |version| {
        let result = result.write(version);
        result.array("messages").unwrap().iter().map(|message| message.as_str().to_string()).collect::<Vec<_>>()
    };
    let newest = written(ProtocolVersion::V2026_07_28);
    assert_eq!(newest[0], r#"{"role":"user","content":{"type":"text","text":"hello"}}"#);
    assert_eq!(
        newest[1],
        r#"{"role":"assistant","content":{"type":"resource_link","uri":"x:l","name":"l","annotations":{"audience":["user"],"lastModified":"2025"},"_meta":{"k":1},"icons":[{}]}}"#
    );
    let june = written(ProtocolVersion::V2025_06_18);
    assert_eq!(
        june[1],
        r#"{"role":"assistant","content":{"type":"resource_link","uri":"x:l","name":"l","annotations":{"audience":["user"],"lastModified":"2025"},"_meta":{"k":1}}}"#
    );
    assert_eq!((&june[2..], &june[0]), (&newest[2..], &newest[0]));
    for version in [ProtocolVersion::V2024_11_05, ProtocolVersion::V2025_03_26] {
        let old = written(version);
        assert_eq!(old[1], r#"{"role":"assistant","content":{"type":"text","text":"[l: x:l]"}}"#);
        assert_eq!(
            old[2],
            r#"{"role":"user","content":{"type":"text","text":"t","annotations":{"audience":["user"]}}}"#
        );
        assert_eq!(
            old[3],
            r#"{"role":"user","content":{"type":"resource","resource":{"uri":"x:y","mimeType":"a/b","text":"t"}}}"#
        );
    }
    assert!(written(ProtocolVersion::V2025_03_26)[4].contains(r#""type":"audio""#));
    assert!(written(ProtocolVersion::V2024_11_05)[4].contains("[audio: audio/wav]"));
}

#[test]
fn annotations_of_content_are_read() {
    let json = json(r#"{"type":"text","text":"t","annotations":{"priority":1,"audience":["assistant"]}}"#);
    let annotations = Content::read(&json).unwrap().annotations().unwrap();
    assert_eq!((annotations.audience, annotations.priority), (alloc::vec![Role::Assistant], Some(1.0)));
    assert_eq!(Content::text("t").annotations(), Ok(Annotations::default()));
    let bad = RawJson::parse(r#"{"type":"text","text":"t","annotations":{"priority":"high"}}"#).unwrap();
    assert!(Content::read(&bad).unwrap().annotations().is_err());
    assert_eq!(Content::text("t").annotate(&Annotations::default().priority(f64::NAN)), Content::text("t"));
}

#[test]
fn call_has_its_arguments() {
    let call = get("p").argument("x", "1").argument("y", "2").into_raw();
    assert!(call.options.repeatable);
    assert_eq!(call.params.unwrap().to_json().as_str(), r#"{"name":"p","arguments":{"x":"1","y":"2"}}"#);
    assert_eq!(get("p").into_raw().params.unwrap().to_json().as_str(), r#"{"name":"p"}"#);
}

#[test]
fn results_without_their_members_are_errors() {
    for bad in ["{}", r#"{"messages":[{"role":"user"}]}"#, r#"{"messages":[{"role":"robot","content":{"type":"x"}}]}"#]
    {
        assert!(decode::<Get>(bad).is_err(), "{bad}");
    }
    for bad in ["{}", r#"{"prompts":{}}"#, r#"{"prompts":null}"#] {
        assert!(decode::<List<Prompt>>(bad).is_err(), "{bad}");
    }
    for bad in [r#"{"prompts":[{}]}"#, r#"{"prompts":[{"name":"p","arguments":[{}]}]}"#] {
        let page = decode::<List<Prompt>>(bad).unwrap();
        assert_eq!((page.elements.len(), page.skipped.len()), (0, 1), "{bad}");
    }
    let page = decode::<List<Prompt>>(r#"{"prompts":[{"name":"p","arguments":null}],"nextCursor":"n"}"#).unwrap();
    assert_eq!((page.elements, page.next_cursor.as_deref()), (alloc::vec![Prompt::new("p")], Some("n")));
}

// covers: PROMPT-S-006, PROMPT-S-007, PROMPT-S-010
#[test]
fn content_that_a_prompt_must_not_have_is_found() {
    let good = [
        Content::text(""),
        Content::image_of([1, 2, 3], "image/png"),
        Content::audio_of([], "audio/wav; rate=8000"),
        Content::resource(ResourceContents::text("x:y", "").mime("text/plain")),
        Content::resource(ResourceContents::bytes("x:y", [1]).mime("a/b")),
        Content::link("x:y", "n"),
    ];
    for content in good {
        assert_eq!(content.check(), Ok(()), "{content:?}");
    }
    let bad = [
        Content::image("no base64", "image/png"),
        Content::image("AAAA", "png"),
        Content::audio("AAA", "audio/wav"),
        Content::audio("AAAA", "/wav"),
        Content::audio("AAAA", "audio/"),
        Content::image("AAAA", ""),
        Content::resource(ResourceContents::text("x:y", "")),
        Content::resource(ResourceContents::blob("x:y", "?").mime("a/b")),
    ];
    for content in bad {
        assert!(content.check().is_err(), "{content:?}");
    }
}

#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Counted {
    subject: String,
    #[serde(rename = "a/b")]
    count: u32,
}

#[cfg(feature = "schema")]
#[test]
#[should_panic(expected = "/properties/a~1b")]
fn field_that_is_no_text_is_refused_with_its_path() {
    let _ = Prompt::new("counted").arguments_of::<Counted>();
}
