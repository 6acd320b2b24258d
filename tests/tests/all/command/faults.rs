//! What the command says about a fault, and what it advises.

use super::peers::{ECHO, initialized, large, large_over_http, legacy, script, with};
use super::{Printed, answering, run_with};
use mcp_proto::{Router, tool};
use mcp_tests::adapters::Adapter;
use mcp_tests::stub::{Stub, whole};

/// Lists what this program offers.
fn list(script: &str) -> Printed {
    run_with(&with(&["list"], script), "")
}

impl Printed {
    /// None of these texts is in the error.
    #[track_caller]
    fn says_not(&self, texts: &[&str]) {
        texts.iter().for_each(|text| assert!(!self.err.contains(text), "{text:?} is in {}", self.err));
    }
}

// `https:` to a port without TLS is no matter of certificates.
#[test]
fn https_to_a_plain_port_suggests_http() {
    let url = answering("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let printed = run_with(&["list", &url.replace("http://", "https://")], "");
    printed.says_not(&["certificate"]);
    printed.is(3, &[], &["the peer does not speak TLS", "try http://"]);
}

// The report `revision-hint`: a revision that the client does not have, and no `--revision`.
#[test]
fn revision_option_is_named_only_if_it_was_given() {
    let strange = initialized(r#"{"tools":{}}"#).replace("2025-06-18", "2024-10-07");
    let strange = script("", &[("initialize", &strange)]);
    let printed = list(&strange);
    printed.says_not(&["--revision"]);
    printed.is(3, &[], &["the server supports 2024-10-07", "this command has the revisions 2024-11-05, "]);
    let words = with(&["list", "--revision", "2025-11-25"], &strange);
    run_with(&words, "").is(3, &[], &["leave out --revision"]);
}

// The options of the library have no names here.
#[test]
fn program_that_exits_is_described_without_the_library() {
    let printed = list("echo 'no licence' >&2; exit 7");
    printed.says_not(&["Policy", "restart_after_probe", "verdict"]);
    printed.is(3, &[], &["started twice: exit 7 after server/discover, exit 7 after initialize", "no licence"]);
}

// One exit code, the value and the option, over each transport.
#[test]
fn message_over_the_limit_names_the_option() {
    let over = |words: &[&str]| {
        let words = |limit: &'static str| [&["call", "--max-message", limit][..], words].concat();
        let printed = run_with(&words("64K"), "");
        printed.is(6, &[], &["larger than the limit", "the limit is 64 KiB: --max-message SIZE raises it"]);
        run_with(&words("1M"), "").is(0, &["xxx"], &[]);
    };
    let big = ECHO.replace("echo", "big");
    let text = "!big=$(head -c 100000 /dev/zero | tr '\\0' x); \
                printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}}\\n' \"$id\" \"$big\"";
    let script = legacy(r#"{"tools":{}}"#, &[("tools/list", &big), ("tools/call", text)]);
    over(&with(&["big"], &script));
    for streams in [false, true] {
        let stub = large_over_http(streams);
        over(&[stub.url().as_str(), "big"]);
    }
    let router = Router::new("large", "1").tool(tool("big"), |_cx, (): ()| Ok(large()));
    let router = router.configure(|config| config.web_socket = true);
    let server = Adapter::Blocking.serve_http(router, "127.0.0.1:0").expect("listens");
    for scheme in ["http", "ws"] {
        over(&[format!("{scheme}://{}/mcp", server.address()).as_str(), "big"]);
    }
}

// A body that is no message: one line of what came.
#[test]
fn web_page_and_empty_body_are_named() {
    let page = "<!DOCTYPE html>\n<html>\n<head><title>Welcome to\n  nginx</title></head></html>";
    let of = |status: &'static str, fields: &'static str, body: &'static str| {
        let stub = Stub::start(move |ask| match ask.what.as_str() {
            "open" => Vec::new(),
            _ => vec![whole(status, fields, body)],
        });
        let stub = stub.expect("it listens");
        run_with(&["list", &stub.url()], "")
    };
    let html = "Content-Type: text/html\r\n";
    let missing = of("404 Not Found", html, page);
    missing.says_not(&["DOCTYPE", "\\n"]);
    assert_eq!(missing.err.matches("Welcome").count(), 1, "{}", missing.err);
    let line = "HTTP 404 with a web page (\"Welcome to nginx\")";
    missing.is(3, &[], &[line, "this is a web page, not an MCP endpoint"]);
    of("200 OK", html, page).is(3, &[], &["of type \"text/html\"", "this is a web page, not an MCP endpoint"]);
    let empty = of("200 OK", "Content-Type: application/json\r\n", "");
    empty.is(3, &[], &["HTTP 200 without a response body", "the response is empty"]);
    of("404 Not Found", "", "").is(3, &[], &["HTTP 404\n", "no MCP server at this path"]);
    let other = of("200 OK", "Content-Type: text/plain\r\n", "OK");
    other.is(3, &[], &["of type \"text/plain\"", "this is not an MCP endpoint"]);
}

// A server that says why it refuses needs no advice about credentials.
#[test]
fn refusal_with_a_reason_advises_no_credentials() {
    let of = |words: &[&str], fields: &'static str, body: &'static str| {
        let stub = Stub::start(move |ask| match ask.what.as_str() {
            "open" => Vec::new(),
            _ => vec![whole("403 Forbidden", fields, body)],
        });
        let stub = stub.expect("it listens");
        run_with(&[&["list", &stub.url()][..], words].concat(), "")
    };
    let told = of(&[], "", "Origin not allowed");
    told.says_not(&["--header"]);
    told.is(3, &[], &["HTTP 403: Origin not allowed"]);
    let challenge = "WWW-Authenticate: Bearer scope=\"all\"\r\n";
    of(&[], challenge, "insufficient scope").is(3, &[], &["--header 'Authorization: Bearer TOKEN'"]);
    of(&[], "", "").is(3, &[], &["--header 'Authorization: Bearer TOKEN'"]);
    let given = of(&["--header", "Authorization: Bearer secret1"], challenge, "");
    given.says_not(&["TOKEN", "secret1"]);
    given.is(3, &[], &["the server does not accept these credentials"]);
}

// An error that comes after a connection names its request.
#[test]
fn error_of_a_request_names_it() {
    let refused = r#""error":{"code":-32603,"message":"the disk is full"}"#;
    let capabilities = r#"{"tools":{},"prompts":{},"resources":{}}"#;
    let script = legacy(capabilities, &[("tools/list", ECHO), ("tools/call", refused), ("prompts/get", refused)]);
    let of = |words: &[&str]| run_with(&with(words, &script), "");
    of(&["call", "echo"]).is(1, &[], &["mcp: tools/call echo: MCP error -32603: the disk is full"]);
    of(&["prompt", "greet"]).is(1, &[], &["mcp: prompts/get greet: MCP error -32603"]);
    of(&["read", "x:y"]).is(1, &[], &["mcp: resources/read x:y: MCP error -32601"]);
    let failing = legacy(r#"{"tools":{}}"#, &[("tools/list", refused)]);
    list(&failing).is(1, &[], &["mcp: tools/list: MCP error -32603: the disk is full"]);
}

// The last line of a crash of Node.js is its version.
#[test]
fn crash_is_explained_by_the_lines_that_say_why() {
    let crash = "printf '%s\\n' /a.js:1 'Error: no licence' '    at f (/a.js:1:7)' '' 'Node.js v20.11.0' >&2; exit 1";
    list(crash).is(3, &[], &["last lines of its standard error: /a.js:1 | Error: no licence\n"]);
}

// A line of the server without an end is ended before the error.
#[test]
fn error_begins_a_line_of_its_own() {
    let printed = list("printf 'loading 50 %%' >&2; exit 7");
    assert!(printed.err.contains("loading 50 %\n") && printed.err.contains("\nmcp: cannot connect"), "{}", printed.err);
}
