//! Resources of a router, requested as text in both eras.

use crate::limits::ServerLimits;
use crate::model::lifecycle::{CacheHints, CacheScope};
use crate::model::resources::{ReadResult, ResourceContents};
use crate::route::tests::{Bench, outcome};
use crate::rpc::{ErrorObject, Object, code};
use crate::{Cx, ElicitResult, Form, Json, Router, ToolError, resource, template};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

fn files() -> Router {
    Router::new("files", "1")
        .resource(resource("x:text").name("text").mime("text/plain"), |_cx| Ok("plain"))
        .resource(resource("x:bytes").mime("image/png"), |_cx| Ok(alloc::vec![1_u8, 2]))
        .resource("x:json", |_cx| Ok(Json(7)))
        .resource("x:none", |_cx| Ok(None::<String>))
        .resource("x:empty", |_cx| Ok(Vec::<ResourceContents>::new()))
        .resource("x:failed", |_cx| Err::<String, _>(ToolError::from("out of order")))
        .resource("x:bad", |cx| Ok(ResourceContents::blob(cx.uri(), "no base64")))
        .resource("x:two", |cx| {
            let part = |n: &str| ResourceContents::text(format!("{}/{n}", cx.uri()), n);
            Ok(ReadResult::new([part("1"), part("2")]).cache(CacheHints::new(9, CacheScope::Public)))
        })
        .template(template("row:{table}/{id}").mime("text/csv"), |cx| {
            let id: u32 = cx.variable("id")?;
            Ok(format!("{} {id} {}", cx.variable::<String>("table")?, cx.variable::<String>("no").is_err()))
        })
}

fn read(bench: &mut Bench, uri: &str) -> Result<Object, ErrorObject> {
    bench.modern("resources/read", &format!(r#","uri":"{uri}""#))
}

fn contents(result: &Object) -> Vec<String> {
    result.array("contents").unwrap().iter().map(|contents| contents.as_str().to_string()).collect()
}

fn listed(bench: &mut Bench, method: &str, rest: &str) -> (Vec<String>, Option<String>) {
    let page = bench.modern(method, rest).unwrap();
    let (member, key) = match method {
        "resources/list" => ("resources", "uri"),
        _ => ("resourceTemplates", "uriTemplate"),
    };
    let keys =
        page.array(member).unwrap().into_iter().map(|element| Object::read(&element).unwrap().required(key).unwrap());
    (keys.collect(), page.optional("nextCursor").unwrap())
}

/// Fetches a list to its end.
fn all(bench: &mut Bench, method: &str) -> Vec<Vec<String>> {
    let (mut pages, mut rest) = (Vec::new(), String::new());
    loop {
        let (keys, cursor) = listed(bench, method, &rest);
        pages.push(keys);
        let Some(cursor) = cursor else { return pages };
        assert!(pages.len() < 100, "{pages:?}");
        rest = format!(r#","cursor":"{cursor}""#);
    }
}

// covers: RES-S-005, RES-S-018
#[test]
fn handler_returns_text_bytes_data_or_contents() {
    let mut bench = Bench::new(files());
    let mut said = |uri: &str| contents(&read(&mut bench, uri).unwrap());
    assert_eq!(said("x:text"), [r#"{"uri":"x:text","mimeType":"text/plain","text":"plain"}"#]);
    assert_eq!(said("x:bytes"), [r#"{"uri":"x:bytes","mimeType":"image/png","blob":"AQI="}"#]);
    assert_eq!(said("x:json"), [r#"{"uri":"x:json","mimeType":"application/json","text":"7"}"#]);
    assert_eq!(said("x:two"), [r#"{"uri":"x:two/1","text":"1"}"#, r#"{"uri":"x:two/2","text":"2"}"#]);
    assert_eq!(said("row:users/7"), [r#"{"uri":"row:users/7","mimeType":"text/csv","text":"users 7 true"}"#]);
}

// covers: RES-S-009, RES-S-010, RES-S-012, X-07
#[test]
fn missing_resource_is_an_error_of_its_revision() {
    let missing = ["x:other", "x:none", "x:empty", "row:users/x", "row:users", "x:text/"];
    let mut bench = Bench::new(files());
    for uri in missing {
        let error = read(&mut bench, uri).unwrap_err();
        assert_eq!(error.code, -32602, "{uri}");
        assert_eq!(error.data.unwrap().as_str(), format!(r#"{{"uri":"{uri}"}}"#));
    }
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut bench = Bench::legacy(files(), version);
        for uri in missing {
            let error = outcome(&bench.say("resources/read", &format!(r#"{{"uri":"{uri}"}}"#))[0]).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (-32002, "Resource not found"), "{uri}");
            assert_eq!(error.data.unwrap().as_str(), format!(r#"{{"uri":"{uri}"}}"#));
        }
    }
}

// covers: RES-S-013, RES-S-018
#[test]
fn failed_read_is_an_internal_error() {
    let mut bench = Bench::new(files());
    let error = read(&mut bench, "x:failed").unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (code::INTERNAL_ERROR, "out of order"));
    let error = read(&mut bench, "x:bad").unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (code::INTERNAL_ERROR, "`blob` is not base64"));
}

// covers: RES-S-017
#[test]
fn invalid_uri_reaches_no_handler() {
    let router = Router::new("all", "1").template("{+uri}", |cx| cx.variable::<String>("uri"));
    let mut bench = Bench::new(router.configure(|config| config.limits.server.max_uri = 20));
    assert!(read(&mut bench, "any:thing/?at=all#x").is_ok());
    for uri in ["", "no scheme", "a", "x:{a}", "x:%zz", "x:é", "1:a", "x:\\u0000"] {
        let error = read(&mut bench, uri).unwrap_err();
        assert_eq!((error.code, &*error.message), (-32602, "the URI is not valid (RFC 3986)"), "{uri}");
    }
    let long = format!("x:{}", "a".repeat(18));
    assert!(read(&mut bench, &long).is_ok());
    let error = read(&mut bench, &format!("{long}a")).unwrap_err();
    assert_eq!((error.code, &*error.message), (-32602, "the URI is longer than 20 bytes"));
    assert_eq!(error.data, None);
    for rest in ["", r#","uri":7"#, r#","uri":null"#] {
        assert_eq!(bench.modern("resources/read", rest).unwrap_err().code, -32602, "{rest}");
    }
    assert_eq!(ServerLimits::default().max_uri, 8 << 10);
}

// covers: B-192
#[test]
fn uri_of_a_gigabyte_and_hostile_templates_cost_little() {
    let router = (0..200).fold(Router::new("many", "1"), |router, n| {
        router.template(template(&format!("x:{{+a}}/{n}/{{+b}}/{{+c}}/end")), |_cx| Ok(""))
    });
    let mut bench = Bench::new(router);
    let hostile = format!("x:{}", "a/1/".repeat(2000));
    assert!(hostile.len() < 8 << 10);
    assert_eq!(read(&mut bench, &hostile).unwrap_err().code, -32602);
    // One that is too long is compared with no template.
    let long = format!("x:{}/0/a/a/end", "a".repeat(4 << 20));
    assert_eq!(read(&mut bench, &long).unwrap_err().message, "the URI is longer than 8192 bytes");
}

// covers: RES-S-020
#[test]
fn path_of_a_file_cannot_leave_its_directory() {
    let router = Router::new("files", "1")
        .template("file:///srv/{+path}", |cx| cx.variable::<String>("path"))
        .template("doc:{+path}", |cx| Ok(cx.path("path")?.to_string()))
        .resource("file:///srv/../listed", |_cx| Ok("listed"));
    let mut bench = Bench::new(router);
    for uri in ["file:///srv/a/b.txt", "file:///srv/..a", "doc:a/b", "file:///srv/../listed"] {
        assert!(read(&mut bench, uri).is_ok(), "{uri}");
    }
    let hostile = [
        "file:///srv/../etc/passwd",
        "file:///srv/a/%2e%2e/%2E%2E/etc",
        "file:///srv/..%2fetc",
        "file:///srv/a%5c..%5cb",
        "file:///srv/%00",
        "file:///srv/./a",
        "doc:../a",
        "doc:/etc/passwd",
        "doc:a/%2e%2e/b",
        "doc:%2Fetc",
        "doc:C:%5Ca",
    ];
    for uri in hostile {
        assert_eq!(read(&mut bench, uri).unwrap_err().code, -32602, "{uri}");
    }
}

#[test]
fn resources_come_before_templates_and_templates_in_order() {
    let router = Router::new("order", "1")
        .template("x:{+any}", |_cx| Ok("any"))
        .template("x:a/{one}", |_cx| Ok("never"))
        .resource("x:a/b", |_cx| Ok("exact"))
        .template("x:{+any}", |_cx| Ok("replaced"));
    let mut bench = Bench::new(router);
    let mut said = |uri: &str| contents(&read(&mut bench, uri).unwrap()).concat();
    assert!(said("x:a/b").contains("exact"));
    assert!(said("x:a/c").contains("replaced"));
    assert_eq!(all(&mut bench, "resources/templates/list"), [["x:a/{one}", "x:{+any}"]]);
}

#[test]
#[should_panic(expected = "the resource `no uri` cannot be offered: it is not a URI (RFC 3986)")]
fn resource_without_a_uri_is_not_offered() {
    let _ = Router::new("n", "1").resource("no uri", |_cx| Ok(""));
}

#[test]
#[should_panic(expected = "the resource `x:{a}{b}` cannot be offered")]
fn template_that_cannot_be_matched_is_not_offered() {
    let _ = Router::new("n", "1").template("x:{a}{b}", |_cx| Ok(""));
}

// covers: RES-S-001, RES-S-002, PAGE-S-008, CACHE-S-001, CACHE-S-022
#[test]
fn lists_have_pages_with_the_hints_of_the_configuration() {
    let router = files().template("z:{a}", |_cx| Ok("")).configure(|config| {
        config.limits.server.page_size = 3;
        config.resources_cache = CacheHints::new(1, CacheScope::Public);
        config.templates_cache = CacheHints::new(2, CacheScope::Public);
        config.read_cache = CacheHints::new(3, CacheScope::Public);
    });
    let mut bench = Bench::new(router);
    let declared = bench.modern("server/discover", "").unwrap().object("capabilities").unwrap();
    assert_eq!(declared.get("resources").unwrap().as_str(), "{}");
    assert!(!declared.contains("tools") && !declared.contains("prompts") && !declared.contains("completions"));
    let pages = all(&mut bench, "resources/list");
    let sorted = [&["x:bad", "x:bytes", "x:empty"][..], &["x:failed", "x:json", "x:none"], &["x:text", "x:two"]];
    assert_eq!(pages, sorted);
    let hints =
        |result: Object| (result.required::<u64>("ttlMs").unwrap(), result.required::<String>("cacheScope").unwrap());
    let mut rest = String::new();
    for _ in 0..3 {
        let page = bench.modern("resources/list", &rest).unwrap();
        rest = format!(r#","cursor":"{}""#, page.optional::<String>("nextCursor").unwrap().unwrap_or_default());
        assert_eq!(hints(page), (1, "public".into()));
    }
    assert_eq!(hints(bench.modern("resources/templates/list", "").unwrap()), (2, "public".into()));
    assert_eq!(hints(read(&mut bench, "x:text").unwrap()), (3, "public".into()));
    assert_eq!(hints(read(&mut bench, "x:two").unwrap()), (9, "public".into()));
    let mut bench = Bench::new(files());
    for result in [bench.modern("resources/list", "").unwrap(), read(&mut bench, "x:text").unwrap()] {
        assert_eq!(hints(result), (0, "private".into()));
    }
    let mut bench = Bench::legacy(files(), "2025-11-25");
    for (method, params) in [("resources/list", "{}"), ("resources/read", r#"{"uri":"x:two"}"#)] {
        assert!(!bench.say(method, params)[0].contains("ttlMs"), "{method}");
    }
}

// covers: CACHE-S-023, CACHE-S-024
#[test]
fn access_is_checked_for_each_read_whatever_its_scope() {
    let is_open = Arc::new(AtomicBool::new(true));
    let gate = Arc::clone(&is_open);
    let router = files()
        .configure(|config| config.read_cache = CacheHints::new(60_000, CacheScope::Public))
        .before(move |_: &Cx| if gate.load(Ordering::Relaxed) { Ok(()) } else { Err(ToolError::NotFound) });
    let mut bench = Bench::new(router);
    let result = read(&mut bench, "x:text").unwrap();
    assert_eq!(result.required::<String>("cacheScope").unwrap(), "public");
    is_open.store(false, Ordering::Relaxed);
    assert_eq!(read(&mut bench, "x:text").unwrap_err().code, code::INVALID_PARAMS);
    is_open.store(true, Ordering::Relaxed);
    assert_eq!(contents(&read(&mut bench, "x:text").unwrap()), contents(&result));
}

// covers: PAGE-S-002, PAGE-S-007
#[test]
fn changed_list_neither_repeats_nor_skips_a_resource() {
    let server = |uris: &[&str]| {
        let router = uris.iter().fold(Router::new("n", "1"), |router, uri| router.resource(*uri, |_cx| Ok("")));
        Bench::new(router.configure(|config| config.limits.server.page_size = 2))
    };
    let (first, cursor) = listed(&mut server(&["x:b", "x:d", "x:f", "x:h"]), "resources/list", "");
    assert_eq!(first, ["x:b", "x:d"]);
    let rest = format!(r#","cursor":"{}""#, cursor.unwrap());
    let mut same = server(&["x:b", "x:d", "x:f", "x:h"]);
    assert_eq!(listed(&mut same, "resources/list", &rest), (["x:f", "x:h"].map(String::from).to_vec(), None));
    // The last one of the page is gone, and others are new.
    let mut changed = server(&["x:a", "x:b", "x:e", "x:f", "x:h"]);
    assert_eq!(listed(&mut changed, "resources/list", &rest).0, ["x:e", "x:f"]);
    for bad in [r#""!""#, r#""eDpi""#, r#""""#, "7", "{}", r#""c3g6Yg""#] {
        let error = changed.modern("resources/list", &format!(r#","cursor":{bad}"#)).unwrap_err();
        assert_eq!(error.code, -32602, "{bad}");
    }
    assert_eq!(listed(&mut changed, "resources/list", r#","cursor":null"#).0, ["x:a", "x:b"]);
}

// covers: RES-S-003, RES-S-004
#[test]
fn empty_list_and_one_after_other_requests_are_the_same() {
    let router = Router::new("n", "1").configure(|config| config.capabilities.resources = Some(Default::default()));
    let mut bench = Bench::new(router);
    assert_eq!(all(&mut bench, "resources/list"), [Vec::<String>::new()]);
    assert_eq!(all(&mut bench, "resources/templates/list"), [Vec::<String>::new()]);
    assert_eq!(read(&mut bench, "x:a").unwrap_err().code, -32602);
    let mut bench = Bench::new(files());
    let first = bench.modern("resources/list", "").unwrap();
    let _ = read(&mut bench, "x:text");
    let _ = read(&mut bench, "x:none");
    assert_eq!(bench.modern("resources/list", "").unwrap(), first);
    assert_eq!(Bench::new(files()).modern("resources/list", "").unwrap(), first);
}

#[test]
fn list_of_a_source_never_ends_and_costs_a_page_each() {
    let router = Router::new("numbers", "1")
        .resource("a:first", |_cx| Ok(""))
        .resources_from(|_cx, after| {
            let last: u64 = after.map_or(Ok(0), |uri| uri[2..].parse().map_err(|_| ToolError::NotFound))?;
            Ok((last + 1..).map(|n| resource(&format!("n:{n:03}"))))
        })
        .configure(|config| config.limits.server.page_size = 2);
    let mut bench = Bench::new(router);
    let (mut rest, mut keys) = (String::new(), Vec::new());
    for _ in 0..4 {
        let (page, cursor) = listed(&mut bench, "resources/list", &rest);
        keys.push(page);
        rest = format!(r#","cursor":"{}""#, cursor.unwrap());
    }
    let numbers = [&["a:first"][..], &["n:001", "n:002"], &["n:003", "n:004"], &["n:005", "n:006"]];
    assert_eq!(keys, numbers);
}

#[test]
fn source_that_does_not_continue_is_an_error() {
    let router = Router::new("stuck", "1")
        .resources_from(|_cx, _after| Ok(["x:a", "x:b", "x:c"].map(resource)))
        .configure(|config| config.limits.server.page_size = 2);
    let mut bench = Bench::new(router);
    let (keys, cursor) = listed(&mut bench, "resources/list", "");
    assert_eq!(keys, ["x:a", "x:b"]);
    let error = bench.modern("resources/list", &format!(r#","cursor":"{}""#, cursor.unwrap())).unwrap_err();
    assert_eq!((error.code, &*error.message), (-32603, "the list does not continue after its last element"));
    let router = Router::new("failing", "1").resources_from(|_cx, _after| Err::<Vec<_>, _>("no database".into()));
    assert_eq!(Bench::new(router).modern("resources/list", "").unwrap_err().code, -32603);
}

fn asking(cx: &Cx) -> Result<String, ToolError> {
    match cx.elicit("key", Form::new("The key?").text("key"))? {
        ElicitResult::Accept(content) => Ok(format!("{} {}", cx.uri(), content.required::<String>("key")?)),
        _ => Err(ToolError::NotFound),
    }
}

// covers: RES-S-007, CACHE-S-002
#[test]
fn reading_a_resource_can_ask_in_both_eras() {
    let router = || Router::new("n", "1").resource("x:locked", asking).template("y:{a}", asking);
    for uri in ["x:locked", "y:b"] {
        let mut bench = Bench::new(router());
        let asked = read(&mut bench, uri).unwrap();
        assert_eq!(asked.required::<String>("resultType").unwrap(), "input_required");
        assert!(!asked.contains("ttlMs") && !asked.contains("cacheScope"));
        let state: String = asked.required("requestState").unwrap();
        let answer = r#"{"key":{"action":"accept","content":{"key":"k"}}}"#;
        let rest = format!(r#","uri":"{uri}","inputResponses":{answer},"requestState":"{state}""#);
        let result = bench.modern("resources/read", &rest).unwrap();
        assert_eq!(contents(&result), [format!(r#"{{"uri":"{uri}","text":"{uri} k"}}"#)]);
        let declined = rest.replace("accept", "decline");
        let error = bench.modern("resources/read", &declined).unwrap_err();
        assert_eq!((error.code, error.data.unwrap().as_str()), (-32602, &*format!(r#"{{"uri":"{uri}"}}"#)));

        let mut bench = Bench::legacy(router(), "2025-06-18");
        let asked = bench.say("resources/read", &format!(r#"{{"uri":"{uri}"}}"#));
        assert!(asked[0].contains("elicitation/create"), "{asked:?}");
        let id = crate::rpc::parse(asked[0].clone().into_bytes().into(), 128).unwrap();
        let crate::rpc::Message::Request(request) = id else { panic!("{asked:?}") };
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept","content":{{"key":"k"}}}}}}"#,
            request.id
        );
        let said = bench.line(&line);
        assert_eq!(contents(&outcome(&said[0]).unwrap()), [format!(r#"{{"uri":"{uri}","text":"{uri} k"}}"#)]);
    }
}
