//! The scopes of tools, resources, templates and prompts, over HTTP and over a connection.

use super::*;
use crate::auth::Resource as Guarded;
use crate::exchange::{Body, ExchangeEvent, ExchangeId, Headers, Inbound, Outbound, Peer, RequestHead};
use crate::input::Admission;
use crate::limits::Limits;
use crate::route::RouteResult;
use crate::rpc::{Object, parse_batch_or_message};
use crate::server::{Event, Output, Server, ServerCommands};
use crate::time::Instant;
use crate::{Cx, Outcome, prompt, resource, template, tool};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

const X: ExchangeId = ExchangeId(1);
const NOW: Instant = Instant::ZERO;

type Texts = alloc::collections::BTreeMap<String, String>;

fn files() -> Router {
    Router::new("files", "1")
        .configure(|config| {
            config.admit = true;
            config.resource = Some(Arc::new(Guarded::new("https://host.example/mcp", ["https://issuer.example"])));
        })
        .tool(tool("look"), |_cx, ()| Ok("seen"))
        .tool(tool("delete").scopes(["files:write", "files:read"]), |_cx, ()| Ok("deleted"))
        .resource("file:///open", |_cx| Ok("open"))
        .resource(resource("file:///closed").scopes(["files:read"]), |_cx| Ok("closed"))
        .template(template("user:///{name}").scopes(["users"]), |_cx| Ok("user"))
        .complete_template("user:///{name}", "name", |_cx, _| Ok(["ada"]))
        .prompt("open", |_cx, _: Texts| Ok("open"))
        .prompt(prompt("closed").argument("a").scopes(["prompts"]), |_cx, _: Texts| Ok("closed"))
        .complete_prompt("closed", "a", |_cx, _| Ok(["b"]))
}

/// What the client of a request receives.
#[derive(Debug)]
struct Receipt {
    status: u16,
    challenge: Option<String>,
    body: String,
}

impl Receipt {
    /// Returns whether the request was refused for want of these scopes, as the response to an HTTP
    /// request.
    #[track_caller]
    fn check_denied(&self, scopes: &str) {
        assert_eq!(self.status, 403, "{self:?}");
        let challenge = self.challenge.as_deref().unwrap_or_default();
        let expected = format!(
            r#"Bearer error="insufficient_scope", scope="{scopes}", resource_metadata="https://host.example/.well-known/oauth-protected-resource/mcp""#
        );
        assert_eq!(challenge, expected);
        self.check_error(scopes);
    }

    /// The same, as a JSON-RPC error.
    #[track_caller]
    fn check_error(&self, scopes: &str) {
        let data = format!(r#""data":{{"error":"insufficient_scope","scope":"{scopes}"}}"#);
        assert!(self.body.contains("-32603") && self.body.contains(&data), "{self:?}");
    }

    #[track_caller]
    fn check_served(&self) {
        assert!(self.status < 300 && self.body.contains(r#""result""#), "{self:?}");
    }
}

fn access(scopes: &str) -> Admission {
    let mut access = Access::new("ada");
    access.scopes = Scopes::parse(scopes);
    Admission::Granted(access.into())
}

/// Sends a request, and returns the response. `headers`: over HTTP.
fn ask(router: &Router, headers: Option<Headers>, admission: &Admission, body: &str) -> Receipt {
    let mut server = Server::new(Arc::new(router.config()), [1; 32], NOW);
    let begin = match headers {
        Some(headers) => {
            let headers = headers.with("Content-Type", "application/json");
            let head = RequestHead { method: "POST".into(), target: "/mcp".into(), headers };
            ExchangeEvent::Inbound(Inbound::Request(head))
        }
        None => ExchangeEvent::Opened(Peer::tcp(([127, 0, 0, 1], 1).into())),
    };
    server.handle_event(NOW, X, begin);
    let mut body = Some(body.to_string());
    loop {
        match server.poll_output() {
            Some(Output::Event(Event::Admit(token, _))) => server.admit(NOW, token, admission.clone()),
            Some(Output::Event(Event::Request(responder, incoming))) => {
                let answer = match router.route(responder, incoming) {
                    RouteResult::Answer(answer) => answer,
                    RouteResult::Handle { handler, invocation, responder } => {
                        let outcome = handler.call(&Cx::detached(invocation));
                        responder.write(outcome.unwrap_or(Outcome::Complete(Object::new())))
                    }
                };
                server.respond(NOW, answer);
            }
            Some(Output::Send(X, Outbound::Response { head, body: Body::Full(body) })) => {
                let challenge = head.headers.get("WWW-Authenticate").map(ToString::to_string);
                return Receipt { status: head.status, challenge, body: String::from_utf8(body.to_vec()).unwrap() };
            }
            Some(Output::Send(X, Outbound::Message(message))) => {
                return Receipt { status: 0, challenge: None, body: String::from_utf8(message.to_vec()).unwrap() };
            }
            Some(_) => {}
            None => {
                let body = body.take().expect("an answer");
                let read = parse_batch_or_message(body.into_bytes().into(), &Limits::default().frame);
                server.handle_event(NOW, X, ExchangeEvent::Inbound(read.into()));
            }
        }
    }
}

fn body(method: &str, rest: &str) -> String {
    const META: &str =
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{{META}}}{rest}}}}}"#)
}

/// Makes a request of 2026-07-28 over HTTP, with the field `Mcp-Name` if it has a name.
fn http(router: &Router, scopes: &str, method: &str, name: Option<&str>, rest: &str) -> Receipt {
    let headers = Headers::new().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method);
    let headers = name.into_iter().fold(headers, |headers, name| headers.with("Mcp-Name", name));
    ask(router, Some(headers), &access(scopes), &body(method, rest))
}

fn call(router: &Router, scopes: &str, tool: &str) -> Receipt {
    http(router, scopes, "tools/call", Some(tool), &format!(r#","name":"{tool}""#))
}

// covers: AUTHS-S-007, AUTHS-S-008, AUTHS-S-009, RSRC-S-009
#[test]
fn token_without_the_scopes_of_a_tool_is_refused_with_403() {
    let router = files();
    call(&router, "", "look").check_served();
    call(&router, "files:read files:write", "delete").check_served();
    for scopes in ["", "files:read", "files:write", "files", "FILES:READ FILES:WRITE"] {
        // All that the call needs, whatever the token has.
        call(&router, scopes, "delete").check_denied("files:read files:write");
    }
    // A tool that does not exist is no question of scopes.
    assert_eq!(call(&router, "", "none").status, 200);
}

// covers: AUTHS-S-007
#[test]
fn resources_templates_and_prompts_have_scopes_too() {
    let router = files();
    let read =
        |scopes: &str, uri: &str| http(&router, scopes, "resources/read", Some(uri), &format!(r#","uri":"{uri}""#));
    read("", "file:///open").check_served();
    read("files:read", "file:///closed").check_served();
    read("users", "file:///closed").check_denied("files:read");
    read("users", "user:///ada").check_served();
    read("files:read", "user:///ada").check_denied("users");
    let get = |scopes: &str, name: &str| {
        let rest = format!(r#","name":"{name}","arguments":{{"a":"1"}}"#);
        http(&router, scopes, "prompts/get", Some(name), &rest)
    };
    get("", "open").check_served();
    get("prompts", "closed").check_served();
    get("", "closed").check_denied("prompts");
    // A value that is completed says as much as what it is for.
    for (reference, name, scope) in [
        (r#"{"type":"ref/prompt","name":"closed"}"#, "a", "prompts"),
        (r#"{"type":"ref/resource","uri":"user:///{name}"}"#, "name", "users"),
    ] {
        let rest = format!(r#","ref":{reference},"argument":{{"name":"{name}","value":""}}"#);
        http(&router, scope, "completion/complete", None, &rest).check_served();
        http(&router, "", "completion/complete", None, &rest).check_denied(scope);
    }
}

// covers: AUTHS-S-007
#[test]
fn older_revision_over_http_gets_403_and_a_batch_an_error() {
    let router = files();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete"}}"#;
    for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let headers = Headers::new().with("MCP-Protocol-Version", version);
        ask(&router, Some(headers.clone()), &access("x"), call).check_denied("files:read files:write");
        ask(&router, Some(headers), &access("files:read files:write"), call).check_served();
    }
    let look = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"look"}}"#;
    let headers = Headers::new().with("MCP-Protocol-Version", "2025-03-26");
    let received = ask(&router, Some(headers), &access("x"), &format!("[{call},{look}]"));
    assert_eq!((received.status, &received.challenge), (200, &None));
    received.check_error("files:read files:write");
    received.check_served();
}

#[test]
fn connection_gets_an_error_with_the_scopes() {
    let router = files();
    let received = ask(&router, None, &access("files:read"), &body("tools/call", r#","name":"delete""#));
    received.check_error("files:read files:write");
    let served = ask(&router, None, &access("files:read files:write"), &body("tools/call", r#","name":"delete""#));
    served.check_served();
}

#[test]
fn client_without_a_token_needs_no_scopes() {
    let router = files();
    let body = body("tools/call", r#","name":"delete""#);
    for principal in [None, Some("ada".into())] {
        ask(&router, None, &Admission::Accept(principal), &body).check_served();
    }
}

#[test]
fn refused_call_runs_no_handler_and_checks_no_arguments() {
    let router = Router::new("r", "1")
        .configure(|config| config.admit = true)
        .tool(tool("t").scopes(["a"]), |_cx, (): ()| Err::<String, _>("it has run".into()));
    let rest = r#","name":"t","arguments":7"#;
    let received = http(&router, "", "tools/call", Some("t"), rest);
    assert_eq!(received.status, 403);
    assert_eq!(received.challenge.as_deref(), Some(r#"Bearer error="insufficient_scope", scope="a""#));
}

fn listed(router: &Router, scopes: &str, method: &str, member: &str, key: &str) -> Vec<String> {
    let Receipt { body, .. } = http(router, scopes, method, None, "");
    let response = Object::read(&crate::RawJson::parse(body.into_bytes()).unwrap()).unwrap();
    let elements = response.object("result").unwrap().array(member).unwrap();
    elements.iter().map(|element| Object::read(element).unwrap().required(key).unwrap()).collect()
}

#[test]
fn lists_show_all_unless_they_hide_what_needs_more() {
    let shown = files();
    let hidden = files().hide_unscoped();
    for (method, member, key, open, all, scopes) in [
        ("tools/list", "tools", "name", &["look"][..], &["delete", "look"][..], "files:read files:write x"),
        ("resources/list", "resources", "uri", &["file:///open"], &["file:///closed", "file:///open"], "files:read"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate", &[], &["user:///{name}"], "users"),
        ("prompts/list", "prompts", "name", &["open"], &["closed", "open"], "prompts"),
    ] {
        assert_eq!(listed(&shown, "", method, member, key), all);
        assert_eq!(listed(&hidden, "", method, member, key), open);
        assert_eq!(listed(&hidden, scopes, method, member, key), all);
    }
    assert_eq!(listed(&hidden, "files:write", "tools/list", "tools", "name"), ["look"]);
    // Scopes are never sent.
    assert!(!http(&shown, "", "tools/list", None, "").body.contains("files:write"));
    // Without a token nothing is hidden.
    let all = ask(&hidden, None, &Admission::Accept(None), &body("tools/list", ""));
    assert!(all.body.contains(r#""name":"delete""#), "{all:?}");
}

#[test]
fn page_has_as_many_elements_as_can_be_seen() {
    let router = ["a", "b", "c", "d", "e"].into_iter().fold(Router::new("r", "1"), |router, name| {
        let hidden = tool(name).scopes((name == "b" || name == "d").then_some("more"));
        router.tool(hidden, |_cx, ()| Ok(""))
    });
    let router = router.hide_unscoped().configure(|config| {
        config.admit = true;
        config.limits.server.page_size = 2;
    });
    assert_eq!(listed(&router, "", "tools/list", "tools", "name"), ["a", "c"]);
    assert_eq!(listed(&router, "more", "tools/list", "tools", "name"), ["a", "b"]);
    let first = http(&router, "", "tools/list", None, "").body;
    let cursor = first.split(r#""nextCursor":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let next = http(&router, "", "tools/list", None, &format!(r#","cursor":"{cursor}""#)).body;
    assert!(
        next.contains(r#""name":"e""#) && !next.contains(r#""name":"d""#) && !next.contains("nextCursor"),
        "{next}"
    );
}

#[test]
fn handler_knows_what_its_client_was_granted() {
    let router = Router::new("r", "1").configure(|config| config.admit = true).tool(tool("t"), |cx, ()| {
        let granted = cx.granted();
        Ok(granted.map_or("no token".into(), |access| format!("{}: {}", access.principal.as_str(), access.scopes)))
    });
    assert!(call(&router, "b a", "t").body.contains("ada: a b"));
    let body = body("tools/call", r#","name":"t""#);
    assert!(ask(&router, None, &Admission::Accept(None), &body).body.contains("no token"));
}

#[test]
#[should_panic(expected = "is no scope")]
fn tool_with_a_scope_that_cannot_be_checked_is_refused() {
    let _ = tool("t").scopes(["files:read files:write"]);
}
