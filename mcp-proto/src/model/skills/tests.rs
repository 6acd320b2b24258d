use super::*;
use crate::error::CallError;
use crate::model::capabilities::ServerCapabilities;
use crate::model::resources::{ReadResult, ResourceContents};
use crate::rpc::ErrorObject;
use alloc::boxed::Box;
use alloc::vec;
use proptest::prelude::*;

const TEXT: &str = "---\nname: refunds\ndescription: Refunds money.\nmetadata:\n  version: 1.50\n---\nAsk first.\n";

fn json(text: &str) -> RawJson {
    RawJson::parse(text.as_bytes().to_vec()).expect("JSON")
}

/// Reads front matter between its lines.
fn front(yaml: &str) -> Result<String, String> {
    front_matter::read(format!("---\n{yaml}\n---\nbody\n").as_bytes()).map(|read| read.to_json().as_str().to_string())
}

fn server(extension: Option<&str>) -> ServerInfo {
    let mut capabilities = ServerCapabilities::default();
    if let Some(settings) = extension {
        let settings = Object::read(&json(settings)).expect("an object");
        capabilities.extensions.declare(EXTENSION, settings).expect("a valid identifier");
    }
    ServerInfo { version: ProtocolVersion::V2026_07_28, implementation: None, capabilities, instructions: None }
}

/// A skill with two files, as a server describes it.
fn served() -> ServedSkill {
    Skill::from_files("billing/refunds", [("SKILL.md", TEXT.as_bytes()), ("forms/a b.bin", b"\0\x01")]).expect("valid")
}

fn held() -> Held {
    Held::new("bank", served().entry().clone()).expect("valid")
}

fn entry_of(files: &[(&str, u64)]) -> Skill {
    let files = files.iter().map(|(uri, size)| SkillFile { uri: (*uri).into(), digest: [0; 32], size: *size });
    let frontmatter = Object::new().with("name", "a").with("description", "d");
    Skill::new("skill://a/SKILL.md".into(), frontmatter, SkillResources::Files(files.collect()))
}

fn text_of(uri: &str, text: &str) -> ReadResult {
    ReadResult::new([ResourceContents::text(uri, text)])
}

// covers: SKILL-C-019
#[test]
fn front_matter_follows_the_core_schema() {
    let read = [
        ("a: b", r#"{"a":"b"}"#),
        ("a: yes\nb: on\nc: 2026-01-02\nd: 1:30", r#"{"a":"yes","b":"on","c":"2026-01-02","d":"1:30"}"#),
        ("a: ~\nb:\nc: NULL", r#"{"a":null,"b":null,"c":null}"#),
        ("a: True\nb: FALSE\nc: tRUE", r#"{"a":true,"b":false,"c":"tRUE"}"#),
        ("a: 017\nb: 0x1F\nc: 0o17\nd: -0\ne: +12", r#"{"a":17,"b":31,"c":15,"d":-0,"e":12}"#),
        ("a: 1.50\nb: .5\nc: 1.\nd: 1E+3\ne: 1e", r#"{"a":1.50,"b":0.5,"c":1.0,"d":1e+3,"e":"1e"}"#),
        ("a: 123456789012345678901234567890", r#"{"a":123456789012345678901234567890}"#),
        ("a: '1'\nb: \"true\"\nc: |\n  x\n  y", r#"{"a":"1","b":"true","c":"x\ny\n"}"#),
        ("a: >\n  x\n  y\nb: [1, {c: d}]", r#"{"a":"x y\n","b":[1,{"c":"d"}]}"#),
        ("'1': a\n\"<<\": b\nyes: c", r#"{"1":"a","<<":"b","yes":"c"}"#),
        ("a: {}\nb: []\n# c", r#"{"a":{},"b":[]}"#),
        ("a: \"\\u00e9\\n\"", "{\"a\":\"é\\n\"}"),
    ];
    for (yaml, expected) in read {
        assert_eq!(front(yaml).as_deref(), Ok(expected), "{yaml}");
    }
}

// covers: SKILL-C-019
#[test]
fn front_matter_that_readers_disagree_on_is_refused() {
    let deep = |levels| format!("a: {}{}", "[".repeat(levels), "]".repeat(levels));
    let deepest = deep(front_matter::MAX_DEPTH - 1);
    assert!(front(&deepest).is_ok());
    let refused = [
        "",
        "- a",
        "text",
        "a: &x b\nc: *x",
        "a: &x b",
        "a: !!str 1",
        "a: !own {}",
        "a: b\na: c",
        "{a: 1, 'a': 2}",
        "1: a",
        "true: a",
        "~: a",
        "<<: {a: b}",
        "? [a]\n: b",
        "a: .inf",
        "a: -.INF",
        "a: .nan",
        "a: 1e999",
        "a: 0xFFFFFFFFFFFFFFFFF",
        "a: b\n...\nc: d",
        "a: [",
        "a: b: c",
        "a: \"\\x\"",
        &deep(front_matter::MAX_DEPTH),
        &deep(20_000),
        &format!("a: {}", "x".repeat(front_matter::MAX_BYTES)),
    ];
    for yaml in refused {
        assert!(front(yaml).is_err(), "{}", yaml.get(..60).unwrap_or(yaml));
    }
    // A few hundred bytes of aliases would be gigabytes.
    let bomb: String = (1..9).map(|n| format!("a{n}: &a{n} [*a{p}, *a{p}, *a{p}, *a{p}]\n", p = n - 1)).collect();
    assert!(front(&format!("a0: &a0 [x]\n{bomb}")).is_err());
}

// covers: SKILL-S-004, SKILL-C-019
#[test]
fn front_matter_opens_the_file() {
    let read = |file: &str| front_matter::read(file.as_bytes()).map(|read| read.to_json().as_str().to_string());
    for file in
        ["---\na: b\n---", "---  \r\na: b\r\n---\r\n", "\u{feff}---\na: b\n---\n", "---\na: b\n---\n---\nc: d\n"]
    {
        assert_eq!(read(file).as_deref(), Ok(r#"{"a":"b"}"#), "{file:?}");
    }
    for file in
        ["", "a: b", "\n---\na: b\n---\n", "----\na: b\n---\n", "---\na: b\n", "---\na: b\n ---\n", "--- a: b\n---\n"]
    {
        assert!(read(file).is_err(), "{file:?}");
    }
    assert!(front_matter::read(b"---\na: \xff\n---\n").is_err());
    let open = format!("---\n{}", "# x\n".repeat(front_matter::MAX_BYTES));
    assert!(front_matter::read(open.as_bytes()).is_err());
}

proptest! {
    // covers: SKILL-C-019
    #[test]
    fn any_front_matter_is_read_or_refused(yaml in "([a-c<&*!|>'\"~?:,{}\\[\\]0-9.eE+#%@`-]|: |\n| |\n- |\n  ){0,80}") {
        if let Ok(text) = front(&yaml) {
            let read = json(&text);
            prop_assert!(front_matter::same(&read, &read));
            prop_assert_eq!(front(&yaml), Ok(text));
        }
    }
}

/// A comparison whose cost doubled with each level would not end.
// covers: SKILL-C-019
#[test]
fn deeply_nested_front_matter_is_compared_at_once() {
    let nested = |inner: &str| {
        let text = format!("{}{inner}{}", "{\"a\":".repeat(100), "}".repeat(100));
        Object::read(&json(&text)).expect("an object")
    };
    let [one, same, other] = ["1", "1", "2"].map(nested);
    assert!(front_matter::same_objects(&one, &same));
    assert!(!front_matter::same_objects(&one, &other));
}

// covers: SKILL-C-019
#[test]
fn front_matter_is_compared_as_values() {
    let same = |one: &str, other: &str| front_matter::same(&json(one), &json(other));
    for (one, other) in [
        (r#"{"a":1,"b":[1,"x"]}"#, r#"{"b":[1,"\u0078"],"a":1}"#),
        (r#"{"a":1.50}"#, r#"{"a":1.5}"#),
        (r#"{"a":1}"#, r#"{"a":1.0}"#),
        (r#"{"a":null}"#, "{}"),
        (r#"{"a":{"b":null}}"#, r#"{"a":{}}"#),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
    ] {
        assert!(same(one, other) && same(other, one), "{one} {other}");
    }
    for (one, other) in [
        (r#"{"a":1}"#, r#"{"a":"1"}"#),
        (r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
        (r#"{"a":[1,2]}"#, r#"{"a":[1]}"#),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
        (r#"{"a":true}"#, r#"{"a":false}"#),
        (r#"{"a":{}}"#, r#"{"a":[]}"#),
        (r#"{"a":null}"#, r#"{"a":false}"#),
        (r#"{"a":{}}"#, "{}"),
        // A double does not tell these apart.
        ("9007199254740993", "9007199254740992"),
        (r#"{"a":1,"a":2}"#, r#"{"a":1}"#),
    ] {
        assert!(!same(one, other) && !same(other, one), "{one} {other}");
    }
}

// covers: SKILL-C-011, SKILL-S-008, SKILL-S-010, X-62
#[test]
fn entry_without_valid_files_is_left_out() {
    let digest = "0".repeat(64);
    let file = format!(r#"{{"uri":"skill://a/SKILL.md","digest":"sha256:{digest}","size":3}}"#);
    let with = |resources: &str| {
        let front = r#""frontmatter":{"name":"a","description":"d","x":[1]}"#;
        Skill::read(&json(&format!(r#"{{"uri":"skill://a/SKILL.md",{front}{resources},"y":1}}"#)))
    };
    let read = with(&format!(r#","resources":[{file}]"#)).expect("valid");
    assert_eq!(read.files(), [SkillFile { uri: "skill://a/SKILL.md".into(), digest: [0; 32], size: 3 }]);
    let written = read.write(ProtocolVersion::V2026_07_28).to_json();
    let expected = r#"{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"d","x":[1]},"resources":["#;
    assert_eq!(written.as_str(), format!(r#"{expected}{file}],"y":1}}"#));
    assert_eq!(Skill::read(&written), Ok(read));
    let dynamic = with(r#","resources":"dynamic""#).expect("valid");
    assert_eq!(dynamic.resources, SkillResources::Dynamic);
    for resources in [
        String::new(),
        r#","resources":null"#.into(),
        r#","resources":"static""#.into(),
        r#","resources":{}"#.into(),
        r#","resources":["skill://a/SKILL.md"]"#.into(),
        format!(r#","resources":[{}]"#, file.replace(r#","size":3"#, "")),
        format!(r#","resources":[{}]"#, file.replace("3}", "-3}")),
        format!(r#","resources":[{}]"#, file.replace("sha256:0", "sha256:A")),
        format!(r#","resources":[{}]"#, file.replace("sha256:0", "sha256:")),
        format!(r#","resources":[{}]"#, file.replace("sha256:", "sha512:")),
    ] {
        assert!(with(&resources).is_err(), "{resources}");
    }
    let page = format!(r#"{{"skills":[{{"uri":"skill://b/SKILL.md","frontmatter":{{}}}},{}]}}"#, written.as_str());
    let page = List::<Skill>::decode(RawResult::new(json(&page), ProtocolVersion::V2026_07_28)).expect("a page");
    assert_eq!((page.elements.len(), page.skipped.len()), (1, 1));
}

// covers: SKILL-C-003
#[test]
fn methods_need_the_declaration() {
    let uri = "skill://a/SKILL.md";
    let undeclared = server(None);
    assert_eq!(list(&undeclared).err(), Some(SkillError::Undeclared));
    assert_eq!(get(&undeclared, uri).err(), Some(SkillError::Undeclared));
    assert_eq!(directory(&undeclared, "skill://a").err(), Some(SkillError::Undeclared));
    for without in ["{}", r#"{"directoryRead":false}"#, r#"{"directoryRead":"true"}"#] {
        let declared = server(Some(without));
        assert_eq!(list(&declared).map(|call| call.raw().method.to_string()), Ok("skills/list".into()));
        let got = get(&declared, uri).expect("declared").into_raw();
        assert_eq!(
            (&*got.method, got.params.expect("params").to_json().as_str()),
            ("skills/get", r#"{"uri":"skill://a/SKILL.md"}"#)
        );
        assert_eq!(directory(&declared, "skill://a").err(), Some(SkillError::Undeclared), "{without}");
    }
    let read = directory(&server(Some(r#"{"directoryRead":true}"#)), "skill://a").expect("declared");
    assert_eq!(read.raw().method, "resources/directory/read");
}

// covers: SKILL-C-012
#[test]
fn skill_up_to_the_limits_is_held() {
    let names: Vec<String> = (1..MAX_FILES).map(|n| format!("skill://a/{n}")).collect();
    let mut files: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    files.push(("skill://a/SKILL.md", MAX_BYTES - files.len() as u64));
    assert!(Held::new("s", entry_of(&files)).is_ok());
    let mut large = files.clone();
    large[0].1 += 1;
    let refused = Held::new("s", entry_of(&large)).expect_err("too large");
    assert_eq!(refused, SkillError::Limits { files: MAX_FILES, bytes: MAX_BYTES + 1 });
    files.push(("skill://a/more", 0));
    assert!(matches!(Held::new("s", entry_of(&files)), Err(SkillError::Limits { files: 513, .. })));
    let huge = entry_of(&[("skill://a/SKILL.md", u64::MAX), ("skill://a/b", u64::MAX)]);
    assert!(matches!(Held::new("s", huge), Err(SkillError::Limits { bytes: u64::MAX, .. })));
}

// covers: SKILL-C-011, SKILL-S-009
#[test]
fn hostile_uris_of_files_are_refused() {
    let main = ("skill://a/SKILL.md", 1);
    for uri in [
        "skill://a",
        "skill://a/",
        "skill://b/x",
        "skill://ab/x",
        "skill://a/../b/x",
        "skill://a/x/..",
        "skill://a/./x",
        "skill://a//x",
        "skill://a/%2e%2e/x",
        "skill://a/%2E%2e/x",
        "skill://a/x%2F..%2f..%2fetc",
        "skill://a/%2fetc",
        "skill://a/x%5c..%5cy",
        "skill://a/x%00",
        "skill://a/%ff",
        "skill://a/%zz",
        "skill://a/c:/x",
        "skill://a/c%3a",
        "skill://a/x?y",
        "skill://a/x#y",
        "skill://a/x y",
        "https://a/x",
        "file:///etc/passwd",
    ] {
        let refused = Held::new("s", entry_of(&[main, (uri, 1)])).expect_err(uri);
        assert!(matches!(&refused, SkillError::Uri { uri: of, .. } if of == uri), "{uri}: {refused:?}");
    }
    // Once decoded they are one file.
    for twice in ["skill://a/SKILL.md", "skill://a/%53KILL.md"] {
        assert!(matches!(Held::new("s", entry_of(&[main, (twice, 1)])), Err(SkillError::Uri { .. })), "{twice}");
    }
    assert!(Held::new("s", entry_of(&[main, ("skill://a/%252e%252e", 1)])).is_ok());
    assert!(matches!(Held::new("s", entry_of(&[("skill://a/x", 1)])), Err(SkillError::Uri { .. })));
    for uri in ["skill://a/skill.md", "skill://b/SKILL.md", "skill://a/%61/SKILL.md", "SKILL.md", "skill:///SKILL.md"] {
        let entry = Skill { uri: uri.into(), ..entry_of(&[(uri, 1)]) };
        assert!(matches!(Held::new("s", entry), Err(SkillError::Uri { .. })), "{uri}");
    }
    let dynamic = Skill { resources: SkillResources::Dynamic, ..entry_of(&[]) };
    assert_eq!(Held::new("s", dynamic), Err(SkillError::Dynamic));
}

// covers: SKILL-C-018
#[test]
fn file_that_does_not_match_is_not_used() {
    let held = held();
    let uri = held.skill().uri.clone();
    assert_eq!(held.accept(&uri, &text_of(&uri, TEXT)), Ok(TEXT.as_bytes().to_vec()));
    let binary = "skill://billing/refunds/forms/a%20b.bin";
    let blob = |bytes: &[u8]| ReadResult::new([ResourceContents::bytes(binary, bytes)]);
    assert_eq!(held.accept(binary, &blob(b"\0\x01")), Ok(vec![0, 1]));
    assert_eq!(held.accept(binary, &blob(b"\0\x02")), Err(SkillError::Digest { uri: binary.into() }));
    let longer = SkillError::Size { uri: binary.into(), listed: 2, size: 3 };
    assert_eq!(held.accept(binary, &blob(b"\0\x01\x02")), Err(longer));
    let contents = Err(SkillError::Contents { uri: binary.into() });
    assert_eq!(held.accept(binary, &ReadResult::new([])), contents);
    let two = ReadResult::new([ResourceContents::bytes(binary, b"\0\x01"), ResourceContents::text(binary, "x")]);
    assert_eq!(held.accept(binary, &two), contents);
    assert_eq!(held.accept(binary, &ReadResult::new([ResourceContents::blob(binary, "!")])), contents);
}

// covers: SKILL-C-018
#[test]
fn mismatch_asks_for_the_entry_once_more() {
    let held = held();
    let uri = held.skill().uri.clone();
    let found = held.accept(&uri, &text_of(&uri, &TEXT.replace("first", "never"))).expect_err("another digest");
    assert_eq!(found, SkillError::Digest { uri: uri.clone() });
    assert!(found.is_mismatch());
    let refresh = held.refresh().into_raw();
    assert_eq!((&*refresh.method, refresh.params.expect("params").str("uri").as_deref()), ("skills/get", Some(&*uri)));
    let got = |skill: &Skill| Ok(GetSkillResult { skill: skill.clone(), cache: CacheHints::default() });
    // The server says the same again: the file is wrong, and not the entry.
    assert_eq!(held.refreshed(found.clone(), got(held.skill())), found);
    let failed = CallError::Rpc(ErrorObject::new(-32602, "no"));
    assert_eq!(held.refreshed(found.clone(), Err(failed)), found);
    let other = Skill::from_files("billing/refunds", [("SKILL.md", TEXT.replace("first", "never"))]).expect("valid");
    let changed = held.refreshed(found.clone(), got(other.entry()));
    assert_eq!(changed, SkillError::Changed { skill: Box::new(other.entry().clone()) });
    let elsewhere = Skill { uri: "skill://x/SKILL.md".into(), ..other.entry().clone() };
    assert_eq!(held.refreshed(found.clone(), got(&elsewhere)), found);
}

// covers: SKILL-C-019
#[test]
fn front_matter_other_than_that_of_the_entry_is_a_mismatch() {
    let honest = served();
    let uri = honest.entry().uri.clone();
    for (key, value) in [("description", "Harmless."), ("allowed-tools", "Bash")] {
        let frontmatter = honest.entry().frontmatter.clone().with(key, value);
        let held = Held::new("bank", Skill { frontmatter, ..honest.entry().clone() }).expect("valid");
        let refused = held.accept(&uri, &text_of(&uri, TEXT)).expect_err("another front matter");
        assert!(matches!(&refused, SkillError::FrontMatter { .. }), "{refused:?}");
        assert!(refused.is_mismatch());
    }
    // Size and digest match, and the file has none.
    let bare = SkillFile { uri: uri.clone(), digest: hash(b"none"), size: 4 };
    let resources = SkillResources::Files(vec![bare]);
    let held = Held::new("bank", Skill { resources, ..honest.entry().clone() }).expect("valid");
    assert!(matches!(held.verify(&uri, b"none"), Err(SkillError::FrontMatter { .. })));
}

// covers: SKILL-C-019, SKILL-S-009
#[test]
fn nested_skill_is_a_file_as_any_other() {
    let files = [("SKILL.md", TEXT), ("nested/SKILL.md", "no front matter")];
    let outer = Skill::from_files("billing/refunds", files).expect("valid");
    let nested = "skill://billing/refunds/nested/SKILL.md";
    assert!(outer.entry().files().iter().any(|file| file.uri == nested));
    let held = Held::new("bank", outer.entry().clone()).expect("valid");
    assert!(held.accept(nested, &text_of(nested, "no front matter")).is_ok());
}

// covers: SKILL-C-020, SKILL-C-021, SKILL-C-007
#[test]
fn only_listed_files_are_read_and_only_on_demand() {
    let held = held();
    let uri = held.skill().uri.clone();
    let call = held.request(&uri).expect("listed").into_raw();
    // A request to the server of the skill, whatever host its URI seems to name.
    assert_eq!((&*call.method, call.params.expect("params").str("uri").as_deref()), ("resources/read", Some(&*uri)));
    for unlisted in ["skill://billing/refunds/new.md", "skill://other/SKILL.md", "https://billing/refunds/SKILL.md", ""]
    {
        let refused = SkillError::Unlisted { uri: unlisted.into() };
        assert_eq!(held.request(unlisted).err(), Some(refused.clone()));
        assert_eq!(held.accept(unlisted, &text_of(unlisted, TEXT)), Err(refused));
        assert_eq!(held.path(unlisted), None);
    }
    assert_eq!(held.path("skill://billing/refunds/forms/a%20b.bin").as_deref(), Some("forms/a b.bin"));
    assert_eq!(held.file("./forms/a b.bin").map(|file| file.size), Some(2));
    assert_eq!(held.file("../refunds/SKILL.md"), None);
}

// covers: SKILL-C-022
#[test]
fn approval_is_bound_to_the_server_and_all_files() {
    let first = held();
    assert_eq!(first.key(), &SkillKey { server: "bank".into(), uri: "skill://billing/refunds/SKILL.md".into() });
    let again = |server: &str, change: &dyn Fn(&mut Vec<SkillFile>)| {
        let mut files = first.skill().files().to_vec();
        change(&mut files);
        let skill = Skill { resources: SkillResources::Files(files), ..first.skill().clone() };
        Held::new(server, skill).expect("valid")
    };
    assert_eq!(again("bank", &|files| files.reverse()).approval(), first.approval());
    let others = [
        again("bank2", &|_| ()),
        again("bank", &|files| files[1].digest[0] ^= 1),
        again("bank", &|files| files.retain(|file| file.uri.ends_with("SKILL.md"))),
        again("bank", &|files| {
            files.push(SkillFile { uri: "skill://billing/refunds/x".into(), digest: [0; 32], size: 0 })
        }),
    ];
    for other in &others {
        assert_ne!(other.approval(), first.approval());
    }
    assert_ne!(others[0].key(), first.key());
}

// covers: SKILL-C-016
#[test]
fn skill_that_no_list_has_is_got_by_its_uri() {
    let empty = List::<Skill>::decode(RawResult::new(json(r#"{"skills":[]}"#), ProtocolVersion::V2026_07_28));
    assert!(empty.expect("a page").elements.is_empty());
    let entry = served().entry().write(ProtocolVersion::V2026_07_28);
    let result = Object::new().with("skill", entry).with("ttlMs", 7_u64).with("cacheScope", "public");
    let got = GetSkill::decode(RawResult::new(result.into(), ProtocolVersion::V2026_07_28)).expect("an entry");
    assert_eq!((&got.skill, got.cache.ttl_ms), (served().entry(), 7));
    assert!(Held::new("bank", got.skill).is_ok());
    for bad in ["{}", r#"{"skill":null}"#, r#"{"skill":[]}"#] {
        assert!(GetSkill::decode(RawResult::new(json(bad), ProtocolVersion::V2026_07_28)).is_err());
    }
}

// covers: SKILL-S-004, SKILL-S-005, SKILL-S-006, SKILL-S-008
#[test]
fn skill_that_no_server_may_offer_is_refused() {
    let made =
        |path: &str, text: &str| Skill::from_files(path, [("SKILL.md", text)]).map(|skill| skill.entry().uri.clone());
    let md = |name: &str| format!("---\nname: {name}\ndescription: d\n---\n");
    for (path, name, uri) in [
        ("a", "a", "skill://a/SKILL.md"),
        ("acme/billing/a-1", "a-1", "skill://acme/billing/a-1/SKILL.md"),
        ("github://owner/repo/skills/a", "a", "github://owner/repo/skills/a/SKILL.md"),
    ] {
        assert_eq!(made(path, &md(name)).as_deref(), Ok(uri));
    }
    let long = "a".repeat(65);
    for (path, name) in [
        ("a", "b"),
        ("", "a"),
        ("a/", "a"),
        ("/a", "a"),
        ("x//a", "a"),
        ("../a", "a"),
        ("x/../a", "a"),
        ("x/%2e%2e/a", "a"),
        ("x%2fa", "a"),
        ("A", "A"),
        ("a_b", "a_b"),
        ("-a", "-a"),
        ("a-", "a-"),
        ("a--b", "a--b"),
        (&long, &long),
        ("a?b", "a"),
        ("a b/a", "a"),
        ("me@x/a", "a"),
        ("x:80/a", "a"),
        ("é", "é"),
    ] {
        assert!(made(path, &md(name)).is_err(), "{path}");
    }
    for text in [
        "no front matter",
        "---\nname: a\n---\n",
        "---\ndescription: d\n---\n",
        "---\nname: a\ndescription: ''\n---\n",
        "---\nname: a\ndescription: 7\n---\n",
        "---\nname: a\ndescription: d\nmetadata: x\n---\n",
        "---\nname: a\ndescription: d\nmetadata: {io.modelcontextprotocol/x: y}\n---\n",
    ] {
        assert!(made("a", text).is_err(), "{text}");
    }
    let described = |length: usize| made("a", &format!("---\nname: a\ndescription: {}\n---\n", "é".repeat(length)));
    assert!(described(1024).is_ok() && described(1025).is_err());
}

// covers: SKILL-S-009, SKILL-S-010, SKILL-C-012
#[test]
fn served_files_are_all_listed_with_digest_and_size() {
    let md = "---\nname: a\ndescription: d\n---\n";
    let with = |more: &[(&str, &'static [u8])]| {
        let files = [("SKILL.md", md.as_bytes())].into_iter().chain(more.iter().copied());
        Skill::from_files("a", files)
    };
    let skill = with(&[("z/é %2e", b"x"), ("b.PNG", b"\xff"), ("n.txt", b"a\0b")]).expect("valid");
    let listed: Vec<_> = skill.entry().files().iter().map(|file| (file.uri.as_str(), file.size)).collect();
    let expected = [
        ("skill://a/SKILL.md", md.len() as u64),
        ("skill://a/b.PNG", 1),
        ("skill://a/n.txt", 3),
        ("skill://a/z/%C3%A9%20%252e", 1),
    ];
    assert_eq!(listed, expected);
    // SHA-256 of "x", as other programs print it.
    let x = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    assert!(skill.entry().write(ProtocolVersion::V2026_07_28).to_json().as_str().contains(&format!("sha256:{x}")));
    let mimes: Vec<_> = skill.files.iter().map(|file| file.contents.mime_type().expect("one")).collect();
    assert_eq!(mimes, ["text/markdown", "image/png", "application/octet-stream", "text/plain"]);
    // Text with NUL is sent as bytes.
    let texts: Vec<_> = skill.files.iter().map(|file| file.contents.as_text().is_some()).collect();
    assert_eq!(texts, [true, false, false, true]);
    assert!(Held::new("s", skill.entry().clone()).is_ok());
    for name in ["", "/x", "x/", "../x", "x/../y", "./x", "x//y", "x\\y", "x\0", "c:/x", "SKILL.md", "SKILL.md/x"] {
        assert!(with(&[(name, b"")]).is_err(), "{name:?}");
    }
    assert!(Skill::from_files("a", [("skill.md", md)]).is_err());
    let many = |count: usize| {
        let names: Vec<String> = (1..count).map(|n| n.to_string()).collect();
        Skill::from_files("a", core::iter::once(("SKILL.md", md)).chain(names.iter().map(|name| (name.as_str(), ""))))
            .is_ok()
    };
    assert!(many(MAX_FILES) && !many(MAX_FILES + 1));
    let sized = |size: u64| {
        let rest = vec![b'x'; usize::try_from(size).expect("small") - md.len()];
        Skill::from_files("a", [("SKILL.md", md.as_bytes().to_vec()), ("x", rest)]).is_ok()
    };
    assert!(sized(MAX_BYTES) && !sized(MAX_BYTES + 1));
}

// covers: SKILL-S-009
#[test]
fn dynamic_skill_says_so() {
    let front = Object::new().with("name", "daily").with("description", "d");
    let skill = Skill::dynamic("reports/daily", front.clone()).expect("valid");
    let written = skill.entry().write(ProtocolVersion::V2026_07_28);
    assert_eq!(written.str("resources").as_deref(), Some("dynamic"));
    assert!(Skill::dynamic("reports/weekly", front).is_err());
}
