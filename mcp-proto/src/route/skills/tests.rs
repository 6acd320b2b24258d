use crate::model::lifecycle::{CacheHints, CacheScope};
use crate::model::skills::{EXTENSION, MAX_FILES, ServedSkill};
use crate::route::tests::{Bench, outcome};
use crate::rpc::{ErrorObject, Object};
use crate::skills::Skill;
use crate::{Router, resource, template};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

fn md(name: &str) -> String {
    format!("---\nname: {name}\ndescription: What {name} does.\n---\nRead forms/one.md.\n")
}

fn skill(path: &str) -> ServedSkill {
    let name = path.rsplit('/').next().expect("a name");
    let files = [("SKILL.md", md(name)), ("forms/one.md", "one".to_string()), ("forms/deep/two.md", "two".to_string())];
    Skill::from_files(path, files).expect("valid")
}

fn router() -> Router {
    Router::new("skills", "1").skill(skill("acme/refunds")).skill(skill("git"))
}

/// The member of each element of a list of a result.
fn each(result: &Object, list: &str, member: &str) -> Vec<String> {
    let elements = result.array(list).expect("a list");
    elements.iter().map(|element| Object::read(element).expect("an object").required(member).expect("a text")).collect()
}

fn directory(bench: &mut Bench, uri: &str) -> Result<Vec<(String, String)>, ErrorObject> {
    let result = bench.modern("resources/directory/read", &format!(r#","uri":"{uri}""#))?;
    // Hints are not demanded here. These promise nothing.
    assert_eq!((result.str("resultType").as_deref(), result.optional::<u64>("ttlMs")), (Some("complete"), Ok(Some(0))));
    let mimes = each(&result, "resources", "mimeType");
    Ok(each(&result, "resources", "uri").into_iter().zip(mimes).collect())
}

// covers: SKILL-S-001, SKILL-S-002
#[test]
fn declared_extension_has_its_methods() {
    let bare = Router::new("bare", "1");
    assert!(bare.config().capabilities.extensions.is_empty());
    let error = Bench::new(bare).modern("skills/list", "").expect_err("not served");
    assert_eq!(error.code, -32601);
    let capabilities = router().config().capabilities;
    assert_eq!(capabilities.extensions.get(EXTENSION), Some(Object::new()));
    assert!(capabilities.resources.is_some());
    let mut bench = Bench::new(router());
    assert!(bench.modern("skills/list", "").is_ok());
    assert!(bench.modern("skills/get", r#","uri":"skill://git/SKILL.md""#).is_ok());
    let error = bench.modern("resources/directory/read", r#","uri":"skill://git""#).expect_err("not declared");
    assert_eq!(error.code, -32601);
    let capabilities = router().skill_directories(true).config().capabilities;
    assert_eq!(capabilities.extensions.get(EXTENSION), Some(Object::new().with("directoryRead", true)));
    // A server whose first skill comes later declares the extension from the beginning.
    let later = Router::new("later", "1").skill_directories(true);
    assert!(later.config().capabilities.resources.is_some());
    let config = later.config();
    assert!(later.clone().replace(router(), &config).is_ok());
    let mut bench = Bench::new(later);
    assert_eq!(each(&bench.modern("skills/list", "").expect("a list"), "skills", "uri"), Vec::<String>::new());
}

// covers: SKILL-S-013, SKILL-S-014, X-63
#[test]
fn list_has_pages_of_whole_entries_and_hints() {
    let hints = CacheHints::new(300_000, CacheScope::Public);
    let router = router().skills_cache(hints).configure(|config| config.limits.server.page_size = 1);
    let mut bench = Bench::new(router.clone());
    let first = bench.modern("skills/list", "").expect("a page");
    assert_eq!(each(&first, "skills", "uri"), ["skill://acme/refunds/SKILL.md"]);
    let hints = |result: &Object| {
        (
            result.str("resultType").map(String::from),
            result.optional::<u64>("ttlMs"),
            result.str("cacheScope").map(String::from),
        )
    };
    assert_eq!(hints(&first), (Some("complete".into()), Ok(Some(300_000)), Some("public".into())));
    let cursor: String = first.required("nextCursor").expect("a cursor");
    let second = bench.modern("skills/list", &format!(r#","cursor":"{cursor}""#)).expect("a page");
    assert_eq!(
        (each(&second, "skills", "uri"), second.contains("nextCursor")),
        (["skill://git/SKILL.md".into()].into(), false)
    );
    let entry = second.array("skills").expect("a list").remove(0);
    assert_eq!(Object::read(&entry).expect("an object").array("resources").expect("all files").len(), 3);
    let got = bench.modern("skills/get", r#","uri":"skill://git/SKILL.md""#).expect("an entry");
    assert_eq!((got.get("skill"), got.contains("nextCursor")), (Some(entry), false));
    assert_eq!(hints(&got), hints(&first));
    assert_eq!(bench.modern("skills/list", r#","cursor":"x""#).expect_err("a foreign cursor").code, -32602);
    let mut bench = Bench::legacy(router, "2025-11-25");
    for (method, params) in [("skills/list", "{}"), ("skills/get", r#"{"uri":"skill://git/SKILL.md"}"#)] {
        let result = outcome(&bench.say(method, params)[0]).expect("a result");
        assert!(!result.contains("resultType") && !result.contains("ttlMs") && !result.contains("cacheScope"));
    }
}

// covers: SKILL-S-015
#[test]
fn entry_is_got_whether_listed_or_not() {
    let mut bench = Bench::new(router().skill(skill("secret").hidden()));
    let listed = bench.modern("skills/list", "").expect("a list");
    assert_eq!(each(&listed, "skills", "uri"), ["skill://acme/refunds/SKILL.md", "skill://git/SKILL.md"]);
    let listed = bench.modern("resources/list", "").expect("a list");
    assert_eq!(each(&listed, "resources", "uri"), ["skill://acme/refunds/SKILL.md", "skill://git/SKILL.md"]);
    for uri in ["skill://secret/SKILL.md", "skill://git/SKILL.md"] {
        assert!(bench.modern("skills/get", &format!(r#","uri":"{uri}""#)).is_ok(), "{uri}");
        assert!(bench.modern("resources/read", &format!(r#","uri":"{uri}""#)).is_ok(), "{uri}");
    }
    for uri in
        ["skill://git", "skill://git/forms/one.md", "skill://none/SKILL.md", "skill://git/%53KILL.md", "", "no uri"]
    {
        assert_eq!(bench.modern("skills/get", &format!(r#","uri":"{uri}""#)).expect_err(uri).code, -32602);
    }
    let long = format!("skill://{}/SKILL.md", "a".repeat(1 << 20));
    for rest in ["", r#","uri":7"#, &format!(r#","uri":"{long}""#)] {
        assert_eq!(bench.modern("skills/get", rest).expect_err("no skill").code, -32602);
    }
}

// covers: SKILL-S-006
#[test]
fn files_are_read_as_resources_by_their_exact_uri() {
    let mut bench = Bench::new(router());
    let listed = bench.modern("resources/list", "").expect("a list");
    assert_eq!(each(&listed, "resources", "name"), ["refunds", "git"]);
    assert_eq!(each(&listed, "resources", "mimeType"), ["text/markdown", "text/markdown"]);
    assert_eq!(each(&listed, "resources", "description"), ["What refunds does.", "What git does."]);
    let read = bench.modern("resources/read", r#","uri":"skill://git/forms/deep/two.md""#).expect("a file");
    let contents = read.array("contents").expect("contents").remove(0);
    assert_eq!(contents.as_str(), r#"{"uri":"skill://git/forms/deep/two.md","mimeType":"text/markdown","text":"two"}"#);
    for uri in [
        "skill://git/forms/../SKILL.md",
        "skill://git/forms/%2e%2e/SKILL.md",
        "skill://git/..%2facme/refunds/SKILL.md",
        "skill://git/%53KILL.md",
        "skill://git//SKILL.md",
        "skill://GIT/SKILL.md",
        "skill://git/forms",
        "skill://git/SKILL.md%00",
        "skill://git/forms%5cone.md",
    ] {
        assert_eq!(bench.modern("resources/read", &format!(r#","uri":"{uri}""#)).expect_err(uri).code, -32602);
    }
}

// covers: SKILL-S-017
#[test]
fn directory_has_its_direct_children() {
    let dynamic = Skill::dynamic("daily", Object::new().with("name", "daily").with("description", "d")).expect("valid");
    let router = router().skill_directories(true).skill(dynamic).resource(resource("x:/y/z"), |_cx| Ok("z"));
    let mut bench = Bench::new(router.template(template("skill://daily/{+path}"), |_cx| Ok("made")));
    let md = |uri: &str| (uri.to_string(), "text/markdown".to_string());
    let dir = |uri: &str| (uri.to_string(), "inode/directory".to_string());
    let git = [md("skill://git/SKILL.md"), dir("skill://git/forms")];
    assert_eq!(directory(&mut bench, "skill://git").expect("a directory"), git);
    let forms = [dir("skill://git/forms/deep"), md("skill://git/forms/one.md")];
    assert_eq!(directory(&mut bench, "skill://git/forms").expect("a directory"), forms);
    assert_eq!(directory(&mut bench, "skill://acme").expect("a directory"), [dir("skill://acme/refunds")]);
    assert_eq!(directory(&mut bench, "skill://daily").expect("an empty directory"), []);
    for uri in [
        "skill://git/SKILL.md",
        "skill://git/",
        "skill://git/none",
        "skill://none",
        "skill://gi",
        "skill:",
        "skill:/",
        "skill://",
        "x:/y",
        "x:",
        "",
        "skill://git/forms/..",
        "skill://git/%66orms",
        "skill://daily/x",
    ] {
        assert_eq!(directory(&mut bench, uri).expect_err(uri).code, -32602, "{uri}");
    }
}

// covers: SKILL-S-017
#[test]
fn directory_above_does_not_show_a_hidden_skill() {
    let router = Router::new("hidden", "1").skill_directories(true).skill(skill("acme/refunds"));
    let router = router.skill(skill("acme/audit").hidden()).skill(skill("beta/audit").hidden());
    let mut bench = Bench::new(router);
    let dir = |uri: &str| (uri.to_string(), "inode/directory".to_string());
    assert_eq!(directory(&mut bench, "skill://acme").expect("a directory"), [dir("skill://acme/refunds")]);
    assert_eq!(directory(&mut bench, "skill://beta").expect_err("nothing is shown").code, -32602);
    let known = directory(&mut bench, "skill://beta/audit").expect("a directory");
    assert_eq!(known.last(), Some(&dir("skill://beta/audit/forms")));
}

// covers: SKILL-S-017
#[test]
fn directory_has_pages() {
    let names: Vec<String> = (0..MAX_FILES - 1).map(|n| format!("d{}/{n}", n % 5)).collect();
    let files = names.iter().map(|name| (name.as_str(), String::new())).chain([("SKILL.md", md("big"))]);
    let big = Skill::from_files("big", files).expect("valid");
    let router = Router::new("big", "1").skill(big).skill_directories(true);
    let mut bench = Bench::new(router.configure(|config| config.limits.server.page_size = 4));
    let first = bench.modern("resources/directory/read", r#","uri":"skill://big""#).expect("a page");
    assert_eq!(each(&first, "resources", "name"), ["big", "d0", "d1", "d2"]);
    let cursor: String = first.required("nextCursor").expect("a cursor");
    let rest = format!(r#","uri":"skill://big","cursor":"{cursor}""#);
    let second = bench.modern("resources/directory/read", &rest).expect("a page");
    assert_eq!(
        (each(&second, "resources", "name"), second.contains("nextCursor")),
        (["d3".into(), "d4".into()].into(), false)
    );
}

// covers: SKILL-S-009
#[test]
fn nested_skill_is_published_by_itself() {
    let inner = [("SKILL.md", md("inner"))];
    let outer = [("SKILL.md", md("outer")), ("inner/SKILL.md", md("inner"))];
    let [inner, outer] =
        [Skill::from_files("outer/inner", inner).expect("valid"), Skill::from_files("outer", outer).expect("valid")];
    let listed = |router: &Router| {
        let mut bench = Bench::new(router.clone());
        let skills = bench.modern("skills/list", "").expect("a list");
        let resources = bench.modern("resources/list", "").expect("a list");
        (each(&skills, "skills", "uri"), each(&resources, "resources", "name"))
    };
    let both = (
        ["skill://outer/SKILL.md", "skill://outer/inner/SKILL.md"].map(String::from).to_vec(),
        ["outer", "inner"].map(String::from).to_vec(),
    );
    let new = || Router::new("nested", "1");
    assert_eq!(listed(&new().skill(outer.clone()).skill(inner.clone())), both);
    let router = new().skill(inner).skill(outer);
    assert_eq!(listed(&router), both);
    // Its file stays as one of the other skill.
    let router = router.without_skill("skill://outer/inner/SKILL.md");
    assert_eq!(listed(&router).1, ["outer"]);
    assert!(Bench::new(router.clone()).modern("resources/read", r#","uri":"skill://outer/inner/SKILL.md""#).is_ok());
    let router = router.without_skill("skill://outer/SKILL.md");
    assert!(!router.0.resources.are_offered());
}

#[test]
#[should_panic = "another skill has other bytes at `skill://outer/inner/SKILL.md`"]
fn two_skills_cannot_disagree_about_a_file() {
    let outer = [("SKILL.md", md("outer")), ("inner/SKILL.md", "stale".to_string())];
    let router = Router::new("nested", "1").skill(Skill::from_files("outer", outer).expect("valid"));
    drop(router.skill(skill("outer/inner")));
}

#[test]
#[should_panic = "another skill has other scopes for `skill://outer/inner/SKILL.md`"]
fn two_skills_cannot_disagree_about_scopes() {
    let outer = [("SKILL.md", md("outer")), ("inner/SKILL.md", md("inner"))];
    let router = Router::new("nested", "1").skill(Skill::from_files("outer", outer).expect("valid"));
    drop(router.skill(skill("outer/inner").scopes(["admin"])));
}

#[test]
fn skill_with_scopes_needs_them() {
    let router = router().skill(skill("admin").scopes(["admin"])).hide_unscoped();
    let entry = &router.0.resources.registered()["skill://admin/forms/one.md"];
    assert_eq!(entry.listed.scopes.to_string(), "admin");
    assert!(router.0.skills.skills["skill://admin/SKILL.md"].0.scopes.to_string() == "admin");
}
