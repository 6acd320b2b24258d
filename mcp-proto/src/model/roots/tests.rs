use super::*;
use alloc::vec::Vec;

// covers: ROOT-C-002
#[test]
fn roots_are_file_uris_without_segments_of_dots() {
    for (uri, is_valid) in [
        ("file:///", true),
        ("file:///home/ann", true),
        ("file:///C:/Users/ann", true),
        ("file://server/share/notes", true),
        ("file:///home/a%20b/..c/d..", true),
        ("", false),
        ("/home/ann", false),
        ("file:", false),
        ("file:/home/ann", false),
        ("https://notes.example/", false),
        ("profile:///x", false),
        ("file:///home/a b", false),
        ("file:///home/ann/..", false),
        ("file:///home/./ann", false),
        ("file:///home/%2e%2E/bob", false),
        ("file:///home/ann/..%2fbob", false),
        ("file:///C:/Users/..%5Cbob", false),
    ] {
        assert_eq!(Root::new(uri).check().is_ok(), is_valid, "{uri}");
        assert_eq!(Roots::new(["file:///ok", uri]).check().is_ok(), is_valid, "{uri}");
    }
}

#[test]
fn every_member_of_roots_is_read_and_written_unchanged() {
    let text = r#"{"roots":[{"uri":"file:///a","name":"A","_meta":{"x":1}},{"uri":"odd"}],"next":true}"#;
    let object = Object::read(&RawJson::parse(text.as_bytes().to_vec()).unwrap()).unwrap();
    let read = Roots::read(object).unwrap();
    let names: Vec<_> = read.roots.iter().map(|root| (root.uri.as_str(), root.name.as_deref())).collect();
    assert_eq!(names, [("file:///a", Some("A")), ("odd", None)], "a server reads leniently");
    assert_eq!(read.write().to_json().as_str(), text);
    for wrong in [r#"{}"#, r#"{"roots":{}}"#, r#"{"roots":null}"#] {
        let object = Object::read(&RawJson::parse(wrong.as_bytes().to_vec()).unwrap()).unwrap();
        assert!(Roots::read(object).is_err(), "{wrong}");
    }
}
