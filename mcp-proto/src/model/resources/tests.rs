//! Resources in JSON text of every revision.

use super::*;
use crate::model::content::Role;
use crate::model::icon::Theme;
use crate::model::lifecycle::CacheScope;
use alloc::format;
use alloc::string::ToString;

fn json(text: &str) -> RawJson {
    RawJson::parse(String::from(text)).unwrap()
}

fn decode<M: Method>(text: &str) -> Result<M::Output, DecodeError> {
    M::decode(RawResult::new(json(text), ProtocolVersion::V2026_07_28))
}

fn full() -> Resource {
    let annotations =
        Annotations::audience([Role::User, Role::Assistant]).priority(0.5).last_modified("2025-01-12T15:00:58Z");
    Resource::new("file:///a")
        .name("a")
        .title("A")
        .describe("the first")
        .mime("text/plain")
        .size(3)
        .icon(Icon::new("https://h/i.png").theme(Theme::Light))
        .annotations(annotations)
        .meta("com.example/k", 1_i64)
}

// covers: RES-B-006
#[test]
fn resource_is_written_as_its_revision_has_it() {
    const OLDEST: &str = r#"{"uri":"file:///a","name":"a","description":"the first","mimeType":"text/plain","size":3,"annotations":{"audience":["user","assistant"],"priority":0.5}}"#;
    const V2025_06: &str = r#"{"uri":"file:///a","name":"a","title":"A","description":"the first","mimeType":"text/plain","size":3,"annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2025-01-12T15:00:58Z"},"_meta":{"com.example/k":1}}"#;
    const NEWEST: &str = r#"{"uri":"file:///a","name":"a","title":"A","description":"the first","mimeType":"text/plain","size":3,"icons":[{"src":"https://h/i.png","theme":"light"}],"annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2025-01-12T15:00:58Z"},"_meta":{"com.example/k":1}}"#;
    let written = ProtocolVersion::ALL.map(|version| full().write(version).to_json().as_str().to_string());
    assert_eq!(written, [OLDEST, OLDEST, V2025_06, NEWEST, NEWEST]);
    assert_eq!(Resource::read(&json(NEWEST)), Ok(full()));
}

#[test]
fn template_is_written_as_its_revision_has_it() {
    let template = ResourceTemplate::new("db://{id}")
        .title("Row")
        .mime("text/plain")
        .icon("data:,")
        .annotations(Annotations::default().last_modified("2025"))
        .meta("k", true);
    let written = ProtocolVersion::ALL.map(|version| template.write(version).to_json().as_str().to_string());
    let oldest = r#"{"uriTemplate":"db://{id}","name":"db://{id}","mimeType":"text/plain"}"#;
    let middle = r#"{"uriTemplate":"db://{id}","name":"db://{id}","title":"Row","mimeType":"text/plain","annotations":{"lastModified":"2025"},"_meta":{"k":true}}"#;
    let newest = r#"{"uriTemplate":"db://{id}","name":"db://{id}","title":"Row","mimeType":"text/plain","icons":[{"src":"data:,"}],"annotations":{"lastModified":"2025"},"_meta":{"k":true}}"#;
    assert_eq!(written, [oldest, oldest, middle, newest, newest]);
    assert_eq!(ResourceTemplate::read(&json(newest)), Ok(template));
}

#[test]
fn unknown_members_are_kept() {
    let text = r#"{"uri":"x:y","name":"n","annotations":{"audience":["user","robot"],"z":0},"later":{"a":[1]}}"#;
    let resource = Resource::read(&json(text)).unwrap();
    assert_eq!(resource.annotations.audience, []);
    assert_eq!(resource.write(ProtocolVersion::V2026_07_28).to_json().as_str(), text);
    let text = r#"{"uriTemplate":"x:{y}","name":"n","later":null}"#;
    let template = ResourceTemplate::read(&json(text)).unwrap();
    assert_eq!(template.write(ProtocolVersion::V2024_11_05).to_json().as_str(), text);
    let result = decode::<Read>(r#"{"contents":[{"uri":"x:y","text":"t","later":1}],"_meta":{"k":1}}"#).unwrap();
    let written = result.write(ProtocolVersion::V2025_11_25);
    assert_eq!(written.to_json().as_str(), r#"{"contents":[{"uri":"x:y","text":"t","later":1}],"_meta":{"k":1}}"#);
}

#[test]
fn lists_and_results_without_their_members_are_errors() {
    for bad in ["{}", r#"{"resources":{}}"#, r#"{"resources":null}"#] {
        assert!(decode::<List<Resource>>(bad).is_err(), "{bad}");
    }
    for bad in [r#"{"resources":[{"uri":"x:y"}]}"#, r#"{"resources":[{"name":"n"}]}"#] {
        let page = decode::<List<Resource>>(bad).unwrap();
        assert_eq!((page.elements.len(), page.skipped.len()), (0, 1), "{bad}");
    }
    for bad in ["{}", r#"{"resourceTemplates":{}}"#] {
        assert!(decode::<List<ResourceTemplate>>(bad).is_err(), "{bad}");
    }
    for bad in [r#"{"resourceTemplates":[{"name":"n"}]}"#, r#"{"resourceTemplates":[{"uriTemplate":"x:{y}"}]}"#] {
        let page = decode::<List<ResourceTemplate>>(bad).unwrap();
        assert_eq!((page.elements.len(), page.skipped.len()), (0, 1), "{bad}");
    }
    for bad in ["{}", r#"{"contents":null}"#, r#"{"contents":[{"uri":"x:y"}]}"#, r#"{"contents":[{"text":""}]}"#] {
        assert!(decode::<Read>(bad).is_err(), "{bad}");
    }
}

// covers: RES-B-006, PAGE-C-006, CACHE-C-009
#[test]
fn pages_and_contents_are_read() {
    let page = decode::<List<Resource>>(
        r#"{"resources":[{"uri":"x:y","name":"n"}],"nextCursor":"","ttlMs":5,"cacheScope":"public"}"#,
    )
    .unwrap();
    assert_eq!((page.elements.len(), page.cache), (1, CacheHints::new(5, CacheScope::Public)));
    assert_eq!(page.next_cursor.as_deref(), Some(""));
    assert_eq!(decode::<List<ResourceTemplate>>(r#"{"resourceTemplates":[]}"#).unwrap().next_cursor, None);
    let none = decode::<Read>(r#"{"contents":[]}"#).unwrap();
    assert_eq!((none.contents.len(), none.cache), (0, None));
    let mixed =
        r#"{"contents":[{"uri":"x:a","blob":"AQI=","mimeType":"image/png"},{"uri":"x:b","text":"t"}],"ttlMs":0}"#;
    let mixed = decode::<Read>(mixed).unwrap();
    assert_eq!(mixed.contents[0].to_bytes(), Ok(alloc::vec![1, 2]));
    assert_eq!((mixed.first_text(), &mixed.cache), (Some("t"), &Some(CacheHints::default())));
}

#[test]
fn contents_are_written_as_their_revision_has_them() {
    let contents = ResourceContents::bytes("x:a", [1, 2]).mime("image/png").meta("k", 1_i64);
    let result = ReadResult::new([contents]).cache(CacheHints::new(7, CacheScope::Public)).meta("m", 2_i64);
    let written = ProtocolVersion::ALL.map(|version| result.write(version).to_json().as_str().to_string());
    let oldest = r#"{"contents":[{"uri":"x:a","mimeType":"image/png","blob":"AQI="}],"_meta":{"m":2}}"#;
    let middle = r#"{"contents":[{"uri":"x:a","mimeType":"image/png","blob":"AQI=","_meta":{"k":1}}],"_meta":{"m":2}}"#;
    let newest = r#"{"contents":[{"uri":"x:a","mimeType":"image/png","blob":"AQI=","_meta":{"k":1}}],"ttlMs":7,"cacheScope":"public","_meta":{"m":2}}"#;
    assert_eq!(written, [oldest, oldest, middle, middle, newest]);
}

// covers: RES-S-018
#[test]
fn only_base64_is_binary_data() {
    for good in ["", "AA==", "AAA=", "AAAA", "+/+/"] {
        assert_eq!(ResourceContents::blob("x:y", good).check(), Ok(()), "{good}");
        assert!(ResourceContents::blob("x:y", good).to_bytes().is_ok(), "{good}");
    }
    for bad in ["A", "AA", "AAA", "A===", "====", "AA=A", "A A=", "-_-_", "AAAA\n", "é==="] {
        assert!(ResourceContents::blob("x:y", bad).check().is_err(), "{bad}");
        assert!(ResourceContents::blob("x:y", bad).to_bytes().is_err(), "{bad}");
    }
}

// covers: RES-S-016
#[test]
fn resource_that_no_server_may_offer_is_found() {
    for uri in ["file:///a", "db+x://h/%20", "urn:isbn:1", "x:"] {
        assert_eq!(Resource::new(uri).check(), Ok(()), "{uri}");
    }
    for uri in ["", "a", "/a", "//h/a", "1x:a", "db_x:a", "x:a b", "x:é", "x:%zz", "x:{a}", "x:\n"] {
        let bad = Resource::new(uri).check().unwrap_err();
        assert!(format!("{bad}").contains("cannot be offered"), "{uri}");
    }
    let bad = ResourceTemplate::new("x:{a").check().unwrap_err();
    assert_eq!(format!("{bad}"), "the resource `x:{a` cannot be offered: a `{` has no `}`");
}
