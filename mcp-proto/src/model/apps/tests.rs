use super::*;
use crate::model::page::ListElement;
use crate::model::tools::CallToolResult;
use crate::version::ProtocolVersion;
use alloc::format;

const HTML: &str = "<!doctype html><title>T</title>";

fn json(text: &str) -> RawJson {
    RawJson::parse(text.as_bytes().to_vec()).expect("JSON")
}

/// A tool with this `_meta`, as a server describes it.
fn tool(meta: &str) -> Tool {
    Tool::read(&json(&format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},"_meta":{meta}}}"#))).expect("a tool")
}

// covers: APPS-B-006
#[test]
fn tool_names_its_document_in_one_way_and_is_read_in_two() {
    let written = Tool::new("t").meta("ui/resourceUri", "ui://old").meta("x", 1_i64).ui("ui://a/b");
    let written = written.visibility([Visibility::App]).write(ProtocolVersion::V2026_07_28);
    let meta = written.object("_meta").expect("a `_meta`").to_json();
    assert_eq!(meta.as_str(), r#"{"x":1,"ui":{"resourceUri":"ui://a/b","visibility":["app"]}}"#);
    for (meta, uri) in [
        (r#"{"ui":{"resourceUri":"ui://a"}}"#, Some("ui://a")),
        (r#"{"ui/resourceUri":"ui://b"}"#, Some("ui://b")),
        (r#"{"ui":{"resourceUri":"ui://a"},"ui/resourceUri":"ui://b"}"#, Some("ui://a")),
        (r#"{"ui":{"visibility":["app"]},"ui/resourceUri":"ui://b"}"#, Some("ui://b")),
        (r#"{"ui":{"resourceUri":7}}"#, None),
        (r#"{"ui":"ui://a"}"#, None),
        ("{}", None),
    ] {
        assert_eq!(tool(meta).ui_resource().as_deref(), uri, "{meta}");
    }
}

// covers: APPS-C-008
#[test]
fn visibility_says_who_may_use_a_tool() {
    for (meta, model, apps) in [
        ("{}", true, true),
        (r#"{"ui":{}}"#, true, true),
        (r#"{"ui":{"visibility":["model","app"]}}"#, true, true),
        (r#"{"ui":{"visibility":["model"]}}"#, true, false),
        (r#"{"ui":{"visibility":["app","other",7]}}"#, false, true),
        (r#"{"ui":{"visibility":[]}}"#, false, false),
        (r#"{"ui":{"visibility":"app"}}"#, true, true),
        (r#"{"ui":{"visibility":null}}"#, true, true),
    ] {
        assert_eq!((tool(meta).is_for_model(), tool(meta).is_for_apps()), (model, apps), "{meta}");
    }
}

// covers: APPS-C-009
#[test]
fn document_reaches_only_tools_of_its_own_server() {
    let calls = AppCalls::new("clock");
    let both = Tool::new("time");
    let for_model = Tool::new("set").visibility([Visibility::Model]);
    assert_eq!(calls.check(&both, "clock"), Ok(()));
    assert_eq!(calls.check(&both, "bank"), Err(AppRefusal::OtherServer { server: "bank".into() }));
    assert_eq!(calls.check(&for_model, "clock"), Err(AppRefusal::NotForApps { tool: "set".into() }));
    assert_eq!(calls.check_method("tools/call"), Ok(()));
    for method in ["ui/initialize", "ui/notifications/tool-result", "ui/"] {
        assert_eq!(calls.check_method(method), Err(AppRefusal::HostMethod { method: method.into() }));
    }
}

// covers: APPS-C-007
#[test]
fn document_is_fetched_with_resources_read() {
    let call = document(&Tool::new("t").ui("ui://a/b")).expect("a document").into_raw();
    let params = call.params.expect("params").to_json();
    assert_eq!((&*call.method, params.as_str()), ("resources/read", r#"{"uri":"ui://a/b"}"#));
    assert_eq!(document(&Tool::new("t")), None);
    // A server cannot make a host fetch what is no document.
    assert_eq!(document(&tool(r#"{"ui":{"resourceUri":"file:///etc/passwd"}}"#)), None);
}

// covers: APPS-S-004
#[test]
fn document_that_no_server_may_offer_is_refused() {
    for html in
        [HTML, "\u{feff} <!-- a --> <!-- b -->\n<!DOCTYPE  HTML >", "<!doctype html SYSTEM \"about:legacy-compat\">"]
    {
        assert_eq!(ui_resource("ui://a", html).check(), Ok(()), "{html}");
    }
    for (uri, html) in [
        ("http://a", HTML),
        ("ui:a", HTML),
        ("UI://a", HTML),
        ("ui://a b", HTML),
        ("ui://a", ""),
        ("ui://a", "<html>"),
        ("ui://a", "<!doctype svg>"),
        ("ui://a", "<!-- <!doctype html>"),
        ("ui://a", "<!doct"),
        ("ui://a", "é<!doctype html>"),
    ] {
        assert!(ui_resource(uri, html).check().is_err(), "{uri} {html}");
    }
    assert!(Tool::new("t").ui("http://a").check().is_err());
}

// covers: APPS-S-004, APPS-B-010
#[test]
fn document_says_what_it_needs() {
    let csp = Csp::new()
        .connect(["https://a", "wss://b"])
        .resources(["https://*.c"])
        .frames(["https://d"])
        .base_uris(["https://e"]);
    let document = ui_resource("ui://a", HTML)
        .name("n")
        .title("T")
        .describe("d")
        .csp(csp)
        .permissions([Permission::Camera, Permission::Microphone, Permission::Geolocation, Permission::ClipboardWrite])
        .domain("x.example")
        .prefers_border(true)
        .hidden();
    let (resource, contents) = document.into_parts();
    let ui = concat!(
        r#"{"csp":{"connectDomains":["https://a","wss://b"],"resourceDomains":["https://*.c"],"frameDomains":["https://d"],"#,
        r#""baseUriDomains":["https://e"]},"permissions":{"camera":{},"microphone":{},"geolocation":{},"clipboardWrite":{}},"#,
        r#""domain":"x.example","prefersBorder":true}"#
    );
    assert!(resource.hidden);
    assert_eq!(resource.meta.to_json().as_str(), format!(r#"{{"ui":{ui}}}"#));
    assert_eq!((contents.mime_type(), contents.as_text()), (Some(MIME_TYPE), Some(HTML)));
    assert_eq!(requested(&contents).to_json().as_str(), ui);
    let (plain, contents) = ui_resource("ui://a", HTML).into_parts();
    assert!(plain.meta.is_empty() && requested(&contents).is_empty());
}

// covers: APPS-B-010
#[test]
fn members_of_apps_pass_unchanged() {
    let contents = r#"{"uri":"ui://a","mimeType":"text/html;profile=mcp-app","text":"x","_meta":{"ui":{"csp":{"new":[1]},"later":null,"domain":"d"}}}"#;
    let read = ResourceContents::read(Object::read(&json(contents)).expect("an object")).expect("contents");
    assert_eq!(read.write().to_json().as_str(), contents);
    assert_eq!(requested(&read).to_json().as_str(), r#"{"csp":{"new":[1]},"later":null,"domain":"d"}"#);
    let result =
        r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":[1.50]},"_meta":{"ui":{"x":1},"y":{}}}"#;
    assert_eq!(CallToolResult::read(&json(result)).expect("a result").write().to_json().as_str(), result);
}

// covers: APPS-C-001
#[test]
fn settings_always_have_the_type_of_html() {
    assert_eq!(settings([]).to_json().as_str(), r#"{"mimeTypes":["text/html;profile=mcp-app"]}"#);
    let two = settings(["application/x", MIME_TYPE]).to_json();
    assert_eq!(two.as_str(), r#"{"mimeTypes":["text/html;profile=mcp-app","application/x"]}"#);
    for (settings, shown) in
        [("{}", false), (r#"{"mimeTypes":["text/html"]}"#, false), (r#"{"mimeTypes":7}"#, false), (two.as_str(), true)]
    {
        assert_eq!(shows(&Object::read(&json(settings)).expect("an object")), shown, "{settings}");
    }
}
