use crate::apps::{self, Csp, Visibility};
use crate::route::tests::{Bench, outcome};
use crate::rpc::Object;
use crate::{Router, template, tool, ui_resource};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

const HTML: &str = "<!doctype html><p>";

fn clock() -> Router {
    Router::new("clock", "1")
        .ui_resource(ui_resource("ui://clock", HTML).csp(Csp::new().connect(["https://a"])).hidden())
        .tool(tool("time").ui("ui://clock"), |cx, ()| {
            // A client that does not show the hands gets the words.
            Ok(if cx.supports_apps() { "12:00" } else { "twelve o'clock" })
        })
        .tool(tool("tick").ui("ui://clock").visibility([Visibility::App]), |_cx, ()| Ok("tock"))
}

fn said(result: &Object) -> String {
    Object::read(&result.array("content").expect("content")[0]).expect("a block").required("text").expect("a text")
}

// covers: APPS-S-002, APPS-S-003, APPS-C-001
#[test]
fn handler_knows_whether_documents_are_shown() {
    let declared = format!(r#"{{"extensions":{{"{}":{}}}}}"#, apps::EXTENSION, apps::settings([]).to_json().as_str());
    for (capabilities, expected) in [(&*declared, "12:00"), ("{}", "twelve o'clock")] {
        let mut bench = Bench::new(clock());
        let meta = format!(
            r#"{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}"#
        );
        let said_now = bench.say("tools/call", &format!(r#"{{"name":"time","_meta":{meta}}}"#));
        assert_eq!(said(&outcome(&said_now[0]).expect("a result")), expected);
        let mut bench = Bench::new(clock());
        bench.say(
            "initialize",
            &format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"0"}}}}"#),
        );
        assert_eq!(said(&outcome(&bench.say("tools/call", r#"{"name":"time"}"#)[0]).expect("a result")), expected);
    }
}

// covers: APPS-S-004, APPS-S-005, APPS-B-010
#[test]
fn document_is_read_and_need_not_be_listed() {
    let mut bench = Bench::new(clock());
    assert!(bench.modern("resources/list", "").expect("a list").array("resources").expect("a list").is_empty());
    let read = bench.modern("resources/read", r#","uri":"ui://clock""#).expect("a document");
    let contents = read.array("contents").expect("contents").remove(0);
    let expected = r#"{"uri":"ui://clock","mimeType":"text/html;profile=mcp-app","text":"<!doctype html><p>","_meta":{"ui":{"csp":{"connectDomains":["https://a"]}}}}"#;
    assert_eq!(contents.as_str(), expected);
    let listed = bench.modern("tools/list", "").expect("a list").array("tools").expect("a list");
    let uis: Vec<_> =
        listed.iter().map(|tool| Object::read(tool).expect("a tool").object("_meta").expect("one")).collect();
    // The raw list has the tool that is not for the model too.
    assert_eq!(uis[0].to_json().as_str(), r#"{"ui":{"resourceUri":"ui://clock","visibility":["app"]}}"#);
    assert_eq!(uis[1].to_json().as_str(), r#"{"ui":{"resourceUri":"ui://clock"}}"#);
    // A change of what is not listed is none of the list.
    let config = clock().config();
    let other = clock().ui_resource(ui_resource("ui://other", HTML).hidden());
    assert_eq!(clock().replace(other, &config), Ok(Vec::new()));
}

// covers: APPS-S-004
#[test]
#[should_panic = "the tool `t` shows `ui://none`, which is no resource of the router"]
fn tool_cannot_show_what_does_not_exist() {
    drop(clock().tool(tool("t").ui("ui://none"), |_cx, ()| Ok("")));
}

// covers: APPS-S-004
#[test]
#[should_panic = "the tool `tick` shows `ui://clock`, which is no resource of the router"]
fn document_of_a_tool_cannot_be_removed() {
    drop(clock().without_resource("ui://clock"));
}

// covers: APPS-S-004
#[test]
fn document_may_be_made_by_a_template() {
    let made = Router::new("t", "1").template(template("ui://made/{name}").mime(apps::MIME_TYPE), |_cx| Ok(HTML));
    let mut bench = Bench::new(made.tool(tool("t").ui("ui://made/x"), |_cx, ()| Ok("")));
    assert!(bench.modern("resources/read", r#","uri":"ui://made/x""#).is_ok());
}

// covers: APPS-S-004
#[test]
#[should_panic = "cannot be offered: it does not begin with `<!doctype html>`"]
fn document_is_one_of_html() {
    drop(Router::new("t", "1").ui_resource(ui_resource("ui://a", "<p>")));
}
