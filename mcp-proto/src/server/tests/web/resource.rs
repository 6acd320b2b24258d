//! The server as a resource of OAuth: its metadata document, denials, and what an access is for.

use super::*;
use crate::auth::{Access, AccessDenial, Resource, Scopes};
use crate::exchange::RequestHead;

const DOCUMENT: &str = "/.well-known/oauth-protected-resource/mcp";

fn resource() -> Resource {
    Resource::new("https://host.example/mcp", ["https://issuer.example"]).scopes_supported(["read"])
}

/// A server that verifies tokens.
fn guarded(change: impl FnOnce(&mut ServerConfig)) -> Site {
    Site::with(|config| {
        config.admit = true;
        config.resource = Some(Arc::new(resource()));
        change(config);
    })
}

fn access(scopes: &str) -> Arc<Access> {
    let mut access = Access::new("[\"https://issuer.example\",\"ada\",\"app\"]");
    access.subject = Some("ada".into());
    access.scopes = Scopes::parse(scopes);
    access.into()
}

/// Decides about the pending request, and returns its head.
fn decide(site: &mut Site, admission: Admission) -> Option<Arc<RequestHead>> {
    let Some(Event::Admit(token, head)) = site.event() else { panic!("something waits for its admission") };
    site.bench.server.admit(site.bench.now, token, admission);
    site.take();
    head
}

fn modern_call() -> (Headers, String) {
    let headers = Headers::new()
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", "tools/call")
        .with("Mcp-Name", "t")
        .with("Authorization", "Bearer SECRET");
    (headers, modern("1", "tools/call", r#","name":"t""#))
}

// covers: RSRC-S-011, AUTHD-S-001, AUTHD-S-004
#[test]
fn document_is_served_before_admission() {
    for path in [Some("/mcp".into()), None] {
        let mut site = guarded(|config| config.path = path);
        for method in ["GET", "HEAD"] {
            let x = site.bare_at(&alloc::format!("{DOCUMENT}?x=1"), method, Headers::new());
            let said = site.said(x);
            assert!(said[0].starts_with(r#"200 {"resource":"https://host.example/mcp""#), "{said:?}");
            let fields: Vec<_> = site.head(x).headers.iter().collect();
            let expected = [
                ("Content-Type", "application/json"),
                ("Cache-Control", "max-age=3600"),
                ("Access-Control-Allow-Origin", "*"),
            ];
            assert_eq!(fields, expected);
        }
        for method in ["POST", "DELETE", "OPTIONS", "PUT"] {
            let x = site.bare_at(DOCUMENT, method, Headers::new());
            assert_eq!(site.refusal(x).0, 405);
            assert_eq!(site.head(x).headers.get("allow"), Some("GET, HEAD"));
        }
        assert!(site.event().is_none(), "nothing waits for its admission");
        assert!(site.at_rest());
    }
}

#[test]
fn document_is_served_at_its_own_path_only() {
    let mut site = guarded(|_| {});
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp/"] {
        let x = site.bare_at(path, "GET", Headers::new());
        assert_eq!(site.refusal(x).0, 404, "{path}");
    }
    // Without a resource there is none.
    let mut site = Site::new();
    let x = site.bare_at(DOCUMENT, "GET", Headers::new());
    assert_eq!(site.refusal(x).0, 404);
}

// covers: B-195, B-180
#[test]
fn document_is_for_pages_of_every_origin_and_for_no_other_host() {
    for cors in [false, true] {
        let mut site = guarded(|config| {
            config.cors = cors;
            config.hosts = Hosts::Only(vec!["host.example".into()]);
        });
        let page = Headers::new().with("Host", "host.example").with("Origin", "https://page.example");
        let x = site.bare_at(DOCUMENT, "GET", page.clone());
        assert!(site.said(x)[0].starts_with("200 "));
        let origins: Vec<_> = site.head(x).headers.all("Access-Control-Allow-Origin").collect();
        assert_eq!(origins, ["*"]);
        let asks = page.with("Access-Control-Request-Method", "GET");
        let x = site.bare_at(DOCUMENT, "OPTIONS", asks.with("Access-Control-Request-Headers", "mcp-protocol-version"));
        assert_eq!(site.said(x), ["204 "]);
        assert_eq!(site.head(x).headers.get("Access-Control-Allow-Headers"), Some("*"));
        let x = site.bare_at(DOCUMENT, "GET", Headers::new().with("Host", "evil.example"));
        assert_eq!(site.refusal(x).0, 403);
    }
}

// covers: AUTHD-S-003, AUTHG-S-007, AUTHT-S-003, RSRC-S-009
#[test]
fn denied_request_gets_its_challenge_and_is_not_read() {
    let mut site = guarded(|_| {});
    let x = site.begin("POST", modern_call().0.with("Content-Type", "application/json"));
    decide(&mut site, Admission::Denied(AccessDenial::Invalid("it has expired")));
    assert_eq!(site.refusal(x).0, 401);
    let challenge = site.head(x).headers.get("WWW-Authenticate").unwrap();
    for part in [
        r#"Bearer error="invalid_token""#,
        r#"scope="read""#,
        r#"resource_metadata="https://host.example/.well-known/oauth-protected-resource/mcp""#,
    ] {
        assert!(challenge.contains(part), "{challenge}");
    }
    site.bench.item(x, read(&modern_call().1));
    site.bench.item(x, Inbound::End);
    site.take();
    assert!(site.requests.is_empty() && site.at_rest());
    let mut site = Site::with(|config| config.admit = true);
    let x = site.begin("POST", Headers::new().with("Content-Type", "application/json"));
    decide(&mut site, Admission::Denied(AccessDenial::Missing));
    assert_eq!((site.refusal(x).0, site.head(x).headers.get("WWW-Authenticate")), (401, Some("Bearer")));
}

#[test]
fn token_without_a_scope_that_everything_needs_is_refused() {
    let required = resource().scopes_required(["mcp"]);
    let mut site = guarded(|config| config.resource = Some(Arc::new(required)));
    let (headers, body) = modern_call();
    let x = site.post(headers.clone(), &body);
    decide(&mut site, Admission::Granted(access("read")));
    assert_eq!(site.refusal(x).0, 403);
    let challenge = site.head(x).headers.get("WWW-Authenticate").unwrap();
    assert!(challenge.starts_with(r#"Bearer error="insufficient_scope", scope="mcp","#), "{challenge}");
    site.post(headers, &body);
    decide(&mut site, Admission::Granted(access("read mcp")));
    let _ = site.handed();
}

// covers: RSRC-S-013
#[test]
fn handler_sees_the_access_in_every_revision() {
    let mut site = guarded(|_| {});
    let granted = access("read");
    let (headers, body) = modern_call();
    let old = Headers::new().with("MCP-Protocol-Version", "2025-11-25").with("Authorization", "Bearer SECRET");
    for (headers, body) in [(headers, body), (old, call(1))] {
        site.post(headers, &body);
        decide(&mut site, Admission::Granted(Arc::clone(&granted)));
        let (responder, incoming) = site.handed();
        assert_eq!(incoming.context.access.as_deref(), Some(&*granted));
        assert_eq!(incoming.context.principal.as_ref(), Some(&granted.principal));
        site.complete(responder, "{}");
    }
    // A session belongs to the principal of its token.
    let x = site.post(Headers::new(), &initialize("2025-11-25", "{}"));
    decide(&mut site, Admission::Granted(Arc::clone(&granted)));
    let session = site.head(x).headers.get("mcp-session-id").unwrap().to_string();
    while site.event().is_some() {}
    let client = Client { session, version: "2025-11-25" };
    for (principal, status) in [("eve", "404 "), (granted.principal.as_str(), "200 ")] {
        let x = site.post(client.headers(), &legacy("2", "ping", "{}"));
        decide(&mut site, Admission::Granted(Access::new(principal).into()));
        assert!(site.said(x)[1].starts_with(status), "{principal}");
    }
}

// covers: AUTHT-S-007, B-190
#[test]
fn handler_does_not_see_the_credentials() {
    for (keeps, has_resource) in [(false, true), (true, true), (false, false)] {
        let mut site = guarded(|config| {
            config.keeps_credentials = keeps;
            config.resource = config.resource.take().filter(|_| has_resource);
        });
        let (headers, body) = modern_call();
        let secret = ["authorization", "DPOP", "Proxy-Authorization", "cookie"];
        let headers = secret[1..].iter().fold(headers, |headers, name| headers.with(name, "SECRET"));
        site.post(headers.with("User-Agent", "a"), &body);
        let head = decide(&mut site, Admission::Granted(access("read"))).unwrap();
        assert!(secret.iter().all(|name| head.headers.get(name).is_some()), "the application sees them");
        let (responder, incoming) = site.handed();
        let head = incoming.context.http.as_ref().unwrap();
        for name in secret {
            assert_eq!(head.headers.get(name).is_some(), keeps || !has_resource, "{name}");
        }
        assert_eq!((head.headers.get("user-agent"), &*head.target), (Some("a"), "/mcp"));
        site.complete(responder, "{}");
    }
}

// covers: AUTHT-S-007
#[test]
fn server_without_admission_hides_credentials_too() {
    let mut site = guarded(|config| config.admit = false);
    let (headers, body) = modern_call();
    site.post(headers, &body);
    let (_responder, incoming) = site.handed();
    assert_eq!(incoming.context.http.unwrap().headers.get("Authorization"), None);
}

// covers: AUTHS-S-007
#[test]
fn page_reads_the_challenge_and_sends_proofs() {
    let mut site = guarded(|config| {
        config.cors = true;
        config.resource = Some(Arc::new(resource().dpop(true)));
    });
    let page = Headers::new().with("Origin", "http://localhost");
    let x = site.bare("OPTIONS", page.clone().with("Access-Control-Request-Method", "POST"));
    let allowed = site.head(x).headers.get("Access-Control-Allow-Headers").unwrap();
    assert!(allowed.ends_with(", DPoP"), "{allowed}");
    let x = site.begin("POST", page);
    decide(&mut site, Admission::Denied(AccessDenial::Nonce("n".into())));
    let headers = &site.head(x).headers;
    assert_eq!(headers.get("DPoP-Nonce"), Some("n"));
    let exposed = headers.get("Access-Control-Expose-Headers").unwrap();
    assert!(exposed.contains("WWW-Authenticate") && exposed.ends_with(", DPoP-Nonce"), "{exposed}");
}

// covers: AUTHS-S-007
#[test]
fn scope_that_is_missing_has_a_status_until_a_stream_begins() {
    let mut site = guarded(|config| config.dialect = crate::Dialect::ToolStream);
    let lacks = || Scopes::parse("write");
    let session = {
        let x = site.post(Headers::new(), &initialize("2025-11-25", "{}"));
        decide(&mut site, Admission::Granted(access("read")));
        site.head(x).headers.get("mcp-session-id").unwrap().to_string()
    };
    while site.event().is_some() {}
    let client = Client { session, version: "2025-11-25" };
    let ask = |site: &mut Site, headers: Headers, id: u32| {
        let x = site.post(headers, &call(id));
        decide(site, Admission::Granted(access("read")));
        (x, site.handed().0)
    };
    // In a session, and in the dialect of tool streams.
    for (headers, id) in [(client.headers(), 1), (Headers::new(), 1)] {
        let (x, responder) = ask(&mut site, headers, id);
        site.bench.server.respond(site.bench.now, responder.deny(lacks()));
        let said = site.said(x);
        assert!(said[1].starts_with("403 ") && said[1].contains(r#""scope":"write""#), "{said:?}");
        let challenge = site.head(x).headers.get("WWW-Authenticate").unwrap();
        assert!(challenge.starts_with(r#"Bearer error="insufficient_scope", scope="write", "#), "{challenge}");
    }
    let (x, responder) = ask(&mut site, client.headers(), 2);
    site.pass(Duration::from_millis(500));
    site.bench.server.respond(site.bench.now, responder.deny(lacks()));
    let said = site.said(x);
    assert_eq!(said[1], "200 stream");
    let (_, data) = event(&said[said.len() - 2]);
    assert_eq!((error(data).code, said.last().map(String::as_str)), (-32603, Some("end")), "{said:?}");
    assert!(error(data).data.unwrap().as_str().contains("insufficient_scope"));
}
