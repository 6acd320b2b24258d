mod urls;

use super::*;
use crate::exchange::{Closed, Reach, RedirectRefusal, Sent};
use alloc::collections::BTreeMap;
use bytes::Bytes;

const SERVER: &str = "https://h/mcp";
const RESOURCE_PATH: &str = "https://h/.well-known/oauth-protected-resource/mcp";
const RESOURCE_ROOT: &str = "https://h/.well-known/oauth-protected-resource";
const OAUTH: &str = "https://i/.well-known/oauth-authorization-server";
const OPENID: &str = "https://i/.well-known/openid-configuration";
const ORIGIN: &str = "https://h/.well-known/oauth-authorization-server";

/// What a URL answers.
#[derive(Clone)]
enum Reply {
    Body(String),
    Status(u16),
    Error(FetchError),
    Response(FetchResponse),
}

fn response(url: &str, status: u16, body: &str) -> FetchResponse {
    let body = Bytes::copy_from_slice(body.as_bytes());
    FetchResponse { status, headers: Headers::new(), body, url: url.into(), redirect: None }
}

/// A search, and the documents of the servers that it asks.
struct World {
    config: AuthConfig,
    server: HttpTarget,
    peer: Option<IpAddr>,
    hint: Option<&'static str>,
    auth_server: Option<&'static str>,
    preferred: Option<&'static str>,
    replies: BTreeMap<String, Reply>,
}

impl World {
    fn new(server: &str) -> Self {
        Self {
            config: AuthConfig::new("test"),
            server: HttpTarget::parse(server).unwrap(),
            peer: None,
            hint: None,
            auth_server: None,
            preferred: None,
            replies: BTreeMap::new(),
        }
    }

    fn with(mut self, url: &str, reply: Reply) -> Self {
        self.replies.insert(url.into(), reply);
        self
    }

    fn body(self, url: &str, body: impl Into<String>) -> Self {
        self.with(url, Reply::Body(body.into()))
    }

    fn status(self, url: &str, status: u16) -> Self {
        self.with(url, Reply::Status(status))
    }

    /// The server has metadata that names these issuers.
    fn issuers(self, issuers: &[&str]) -> Self {
        let document = resource(SERVER, issuers);
        self.body(RESOURCE_PATH, document)
    }

    fn set(mut self, change: impl FnOnce(&mut AuthConfig)) -> Self {
        change(&mut self.config);
        self
    }

    fn search(&self) -> Discovery {
        Discovery::new(&self.config, &self.server, self.hint, self.auth_server, self.preferred)
    }

    /// Runs a search. Returns the requests, and its end. A URL without a reply answers 404.
    fn requests(&self) -> (Vec<FetchRequest>, Next) {
        let (mut search, mut requests) = (self.search(), Vec::new());
        loop {
            let next = search.next(&self.config, &self.server, self.peer);
            assert_eq!(search.next(&self.config, &self.server, self.peer), next, "the same until it is answered");
            let Next::Fetch(request) = next else {
                search.answer(&Ok(Box::new(response("https://h/", 500, ""))));
                assert_eq!(search.next(&self.config, &self.server, self.peer), next, "an end stays");
                return (requests, next);
            };
            let url = request.url.url();
            let outcome = match self.replies.get(&url).cloned().unwrap_or(Reply::Status(404)) {
                Reply::Body(body) => Ok(response(&url, 200, &body)),
                Reply::Status(status) => Ok(response(&url, status, "<html>")),
                Reply::Response(response) => Ok(response),
                Reply::Error(error) => Err(error),
            };
            search.answer(&outcome.map(Box::new));
            search.answer(&Ok(Box::new(response(&url, 500, "a second answer"))));
            requests.push(*request);
            assert!(requests.len() < 24, "the search does not end");
        }
    }

    /// Runs a search. Returns the URLs that it asks, and its end.
    fn run(&self) -> (Vec<String>, Next) {
        let (requests, end) = self.requests();
        (requests.iter().map(|request| request.url.url()).collect(), end)
    }

    fn found(&self) -> (Vec<String>, Found) {
        match self.run() {
            (urls, Next::Found(found)) => (urls, *found),
            (urls, end) => panic!("{end:?} after {urls:?}"),
        }
    }

    fn failed(&self) -> (Vec<String>, AuthError) {
        match self.run() {
            (urls, Next::Failed(error)) => (urls, error),
            (urls, end) => panic!("{end:?} after {urls:?}"),
        }
    }
}

fn resource(resource: &str, issuers: &[&str]) -> String {
    format!(r#"{{"resource":"{resource}","authorization_servers":{issuers:?},"scopes_supported":["s"]}}"#)
}

/// Metadata of an issuer, with further members.
fn issuer_with(issuer: &str, more: &str) -> String {
    let base = issuer.trim_end_matches('/');
    format!(
        r#"{{"issuer":"{issuer}","authorization_endpoint":"{base}/authorize","token_endpoint":"{base}/token",
        "code_challenge_methods_supported":["S256"]{more}}}"#
    )
}

fn issuer(issuer: &str) -> String {
    issuer_with(issuer, "")
}

/// Returns the URLs that an error lists, with the reasons.
fn tried(error: AuthError) -> Vec<(String, Option<u16>, String)> {
    let AuthError::Discovery { tried } = error else { panic!("{error:?}") };
    tried.into_iter().map(|TriedUrl { url, status, why }| (url, status, why)).collect()
}

/// Like [`tried`], with the reasons alone.
fn reasons(error: AuthError) -> Vec<String> {
    tried(error).into_iter().map(|(_, _, why)| why).collect()
}

fn broken(why: Closed) -> Reply {
    Reply::Error(FetchError::Closed { sent: Sent::Maybe, why })
}

// covers: AUTHD-C-006, AUTHD-C-010, AUTHD-C-012, AUTHD-C-013, AUTHD-C-014, B-233, B-234
#[test]
fn documents_are_asked_in_order_until_one_can_be_used() {
    let tenant = "https://i/tenant1";
    let oauth_tenant = "https://i/.well-known/oauth-authorization-server/tenant1";
    let openid_tenant = "https://i/.well-known/openid-configuration/tenant1";
    let appended = "https://i/tenant1/.well-known/openid-configuration";
    let custom = "https://h/custom/metadata/location.json";
    let root = resource("https://h", &[tenant]);
    for (hint, resource_at, document, issuer_at, asked) in [
        // As the conformance suite has it: metadata-default, -var1, -var2 and -var3.
        (Some(RESOURCE_PATH), RESOURCE_PATH, resource(SERVER, &["https://i"]), OAUTH, &[RESOURCE_PATH, OAUTH][..]),
        (None, RESOURCE_PATH, resource(SERVER, &["https://i"]), OPENID, &[RESOURCE_PATH, OAUTH, OPENID]),
        (None, RESOURCE_ROOT, root, oauth_tenant, &[RESOURCE_PATH, RESOURCE_ROOT, oauth_tenant]),
        (Some(custom), custom, resource(SERVER, &[tenant]), appended, &[custom, oauth_tenant, openid_tenant, appended]),
        // The URL of the challenge fails.
        (Some(custom), RESOURCE_PATH, resource(SERVER, &["https://i/"]), OAUTH, &[custom, RESOURCE_PATH, OAUTH]),
        (
            Some(RESOURCE_ROOT),
            RESOURCE_PATH,
            resource(SERVER, &["https://i"]),
            OAUTH,
            &[RESOURCE_ROOT, RESOURCE_PATH, OAUTH],
        ),
        // Its origin may be another one.
        (
            Some("https://meta.example/x?y"),
            "https://meta.example/x?y",
            resource(SERVER, &["https://i"]),
            OAUTH,
            &["https://meta.example/x?y", OAUTH],
        ),
    ] {
        let name = if document.contains("tenant1") { tenant } else { "https://i" };
        let mut world = World::new("https://h/mcp?x=1").body(resource_at, document).body(issuer_at, issuer(name));
        world.hint = hint;
        let (urls, found) = world.found();
        assert_eq!(urls, asked, "{hint:?}");
        assert_eq!(found.issuer.issuer, name);
        assert_eq!(found.resource.as_ref().map(|metadata| &metadata.resource), Some(&found.identifier));
    }
    let configured = World::new(SERVER).set(|config| config.metadata_url = Some("https://x/r".into()));
    let mut configured =
        configured.body("https://x/r", resource(SERVER, &["https://i"])).body(OAUTH, issuer("https://i"));
    configured.hint = Some(custom);
    assert_eq!(configured.found().0, ["https://x/r", OAUTH], "in place of those that the server names");
    let (urls, _) = configured.status("https://x/r", 410).set(|config| config.compat.first_revision = false).failed();
    assert_eq!(urls, ["https://x/r"]);
}

// covers: SEC-C-001, AUTHL-C-006, B-237
#[test]
fn requests_are_bounded_and_carry_nothing_of_the_application() {
    let (requests, _) = World::new("https://10.0.0.1/mcp").requests();
    let [resource, _, oauth] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!((resource.method.as_str(), resource.body.len()), ("GET", 0));
    assert_eq!(resource.headers, Headers::new().with("Accept", "application/json"));
    assert_eq!(resource.redirects, Redirects::Follow { max: 3 });
    assert_eq!((resource.timeout, resource.max_body), (Duration::from_secs(10), 64 << 10));
    assert_eq!(resource.reach, Reach::Site, "as the origin of the server is");
    let version = Headers::new().with("Accept", "application/json").with("MCP-Protocol-Version", "2025-03-26");
    assert_eq!(oauth.headers, version, "only there");

    let mut world = World::new(SERVER).issuers(&["https://i"]).body(OAUTH, issuer("https://i")).set(|config| {
        config.limits.discovery_time = Duration::from_secs(2);
        config.limits.max_document = 99;
    });
    for (peer, reach) in [("127.0.0.1", Reach::Near), ("10.0.0.1", Reach::Site), ("1.1.1.1", Reach::Public)] {
        world.peer = Some(peer.parse().unwrap());
        let (requests, _) = world.requests();
        assert_eq!(requests.iter().map(|request| request.reach).collect::<Vec<_>>(), [reach; 2]);
        assert_eq!(requests[1].headers, Headers::new().with("Accept", "application/json"));
        assert_eq!((requests[1].timeout, requests[1].max_body), (Duration::from_secs(2), 99));
    }
}

// covers: RSRC-C-012, B-236
#[test]
fn resource_of_another_server_ends_the_search() {
    let other = "https://evil.example.com/mcp";
    for (hint, at) in [(Some("https://meta.example/x"), "https://meta.example/x"), (None, RESOURCE_PATH)] {
        let mut world = World::new(SERVER).body(RESOURCE_ROOT, resource("https://h", &["https://i"]));
        world = world.body(at, resource(other, &["https://i"])).body(OAUTH, issuer("https://i"));
        world.hint = hint;
        let expected = AuthError::ResourceMismatch { url: at.into(), wanted: SERVER.into(), found: other.into() };
        assert_eq!(world.failed(), (vec![at.into()], expected), "nothing else is asked");
    }
}

// covers: AUTHD-C-015, B-229
#[test]
fn slash_at_the_end_of_an_issuer_is_tolerated_with_a_report() {
    for (listed, published) in [("https://i", "https://i/"), ("https://i/", "https://i")] {
        let world = World::new(SERVER).issuers(&[listed]).body(OAUTH, issuer(published));
        let (_, found) = world.found();
        assert_eq!(found.issuer.issuer, published, "the string of the document counts");
        let text = format!("the metadata at {OAUTH} is of the issuer {published}, and not of {listed}");
        assert_eq!(found.reports, [AuthReport::Deviation(text.clone())]);
        let (urls, error) = world.set(|config| config.compat.issuer_slash = false).failed();
        assert_eq!(urls, [RESOURCE_PATH, OAUTH, OPENID]);
        assert_eq!(reasons(error)[0], format!("it is of the issuer {published}, and not of {listed}"));
    }
    let world = World::new(SERVER).issuers(&["https://i"]).body(OAUTH, issuer("https://i"));
    assert_eq!(world.found().1.reports, [], "none without a deviation");
}

// covers: AUTHD-C-015, B-230
#[test]
fn document_of_another_issuer_is_skipped() {
    let attacker = "https://attacker.example.com";
    let world = World::new(SERVER).issuers(&["https://i/t"]);
    let [oauth, openid] = ["oauth-authorization-server", "openid-configuration"]
        .map(|suffix| format!("https://i/.well-known/{suffix}/t"));
    let world = world.body(&oauth, issuer(attacker)).body(&openid, issuer("https://i"));
    let (urls, error) = world.failed();
    let appended = "https://i/t/.well-known/openid-configuration";
    assert_eq!(urls, [RESOURCE_PATH, &oauth, &openid, appended]);
    let not = |found: &str| (Some(200), format!("it is of the issuer {found}, and not of https://i/t"));
    let expected = [(&*oauth, not(attacker)), (&openid, not("https://i")), (appended, (Some(404), "HTTP 404".into()))];
    assert_eq!(tried(error.clone()), expected.map(|(url, (status, why))| (url.into(), status, why)));
    assert!(error.to_string().contains(attacker) && error.to_string().contains("not of https://i/t"), "{error}");
    // The identity is checked against the first URL, also after a redirect.
    let moved = FetchResponse { body: issuer("https://j").into(), ..response("https://j/doc", 200, "") };
    let (_, error) = World::new(SERVER).issuers(&["https://i"]).with(OAUTH, Reply::Response(moved)).failed();
    assert_eq!(reasons(error)[0], "it is of the issuer https://j, and not of https://i");
    let (urls, found) = world.body(appended, issuer("https://i/t")).found();
    assert_eq!((urls.len(), found.issuer.token_endpoint.as_str()), (4, "https://i/t/token"));
}

// covers: B-231
#[test]
fn document_without_an_issuer_needs_a_setting() {
    let document = issuer("https://i").replace("\"issuer\":\"https://i\",", "");
    let world = World::new(SERVER).issuers(&["https://i"]).body(OAUTH, document);
    assert_eq!(reasons(world.failed().1), ["it names no issuer (setting: missing_issuer)", "HTTP 404"]);
    let (_, found) = world.set(|config| config.compat.missing_issuer = true).found();
    assert_eq!(found.issuer.issuer, "https://i", "the one that was asked for");
    assert_eq!(found.reports, [AuthReport::Deviation(format!("the metadata at {OAUTH} names no issuer"))]);
}

// covers: B-232
#[test]
fn failing_document_is_skipped_and_only_some_may_come_later() {
    let refused = FetchResponse { redirect: Some(RedirectRefusal::Insecure), ..response("https://i/x", 302, "") };
    for (reply, why, may_come) in [
        (Reply::Status(404), "HTTP 404", false),
        (Reply::Status(401), "HTTP 401", false),
        (Reply::Status(400), "HTTP 400", false),
        (Reply::Status(204), "HTTP 204", false),
        (Reply::Response(refused), "it leads from https: to http:", false),
        (Reply::Body("<html>".into()), "it is no JSON object", false),
        (Reply::Body("[]".into()), "it is no JSON object", false),
        (Reply::Body(r#"{"issuer":1,"resource":1}"#.into()), "is no string", false),
        (Reply::Body(r#"{"resource":"https://h","issuer":"https://i"}"#.into()), "it ", false),
        (Reply::Error(FetchError::TooLong), "longer than the limit", false),
        (broken(Closed::NotPublic), "no address that the request may reach", false),
        (Reply::Status(408), "HTTP 408", true),
        (Reply::Status(429), "HTTP 429", true),
        (Reply::Status(500), "HTTP 500", true),
        (Reply::Status(503), "HTTP 503", true),
        (Reply::Error(FetchError::Timeout(Sent::Maybe)), "too long", true),
        (broken(Closed::Refused), "refused", true),
        (broken(Closed::Unresolved), "no address", true),
        (broken(Closed::Broken("x".into())), "x", true),
    ] {
        // The next candidate is asked, and used.
        let world = World::new(SERVER).set(|config| config.compat.first_revision = false);
        let used = World { ..world }.with(RESOURCE_PATH, reply.clone()).with(OAUTH, reply.clone());
        let used = used.body(RESOURCE_ROOT, resource("https://h", &["https://i"])).body(OPENID, issuer("https://i"));
        assert_eq!(used.found().0, [RESOURCE_PATH, RESOURCE_ROOT, OAUTH, OPENID], "{why}");
        // Nothing else can be used.
        let of_issuer = World::new(SERVER).issuers(&["https://i"]).with(OAUTH, reply.clone());
        let of_server =
            World::new(SERVER).with(RESOURCE_PATH, reply).set(|config| config.compat.first_revision = false);
        for (world, at, urls) in [
            (of_issuer, OAUTH, &[RESOURCE_PATH, OAUTH, OPENID][..]),
            (of_server, RESOURCE_PATH, &[RESOURCE_PATH, RESOURCE_ROOT]),
        ] {
            let (asked, error) = world.failed();
            assert_eq!(asked, urls, "{why}");
            match error {
                AuthError::Unavailable(problem) if may_come => {
                    assert_eq!(problem.url, at);
                    let text = problem.why.unwrap_or_else(|| format!("HTTP {}", problem.status.unwrap()));
                    assert!(text.contains(why), "{text}: {why}");
                }
                error => {
                    assert!(!may_come, "{error:?} of {why}");
                    let (url, _, text) = tried(error).remove(0);
                    assert!(url == at && text.contains(why), "{text}: {why}");
                }
            }
        }
    }
}

// covers: B-232
#[test]
fn failure_of_a_place_that_no_longer_counts_is_forgotten() {
    let world =
        World::new(SERVER).status(RESOURCE_PATH, 503).body(RESOURCE_ROOT, resource("https://h", &["https://i"]));
    let (urls, error) = world.failed();
    assert_eq!(urls, [RESOURCE_PATH, RESOURCE_ROOT, OAUTH, OPENID]);
    assert_eq!(reasons(error), ["HTTP 503", "HTTP 404", "HTTP 404"]);
    let (_, error) = World::new(SERVER).issuers(&["https://j", "https://i"]).status(OAUTH, 502).failed();
    let problem = Problem { url: OAUTH.into(), status: Some(502), ..Problem::default() };
    assert_eq!(error, AuthError::Unavailable(problem), "one of two issuers may come back");
}

// covers: AUTHD-C-002
#[test]
fn issuers_are_tried_in_the_order_of_preference() {
    let names = ["https://a", "https://b/", "https://c", "https://d", "https://e"];
    let world = || {
        let document = |name: &str| format!("{}/.well-known/oauth-authorization-server", name.trim_end_matches('/'));
        let all = names
            .iter()
            .fold(World::new(SERVER).issuers(&names), |world, name| world.body(&document(name), issuer(name)));
        all.issuers(&names)
    };
    let first = |world: &World| world.found().1.issuer.issuer;
    assert_eq!(first(&world()), "https://a");
    // The issuer of the record, if it is still listed.
    for (preferred, expected) in [
        ("https://c", "https://c"),
        ("https://b", "https://b/"),
        ("https://c/", "https://c"),
        ("https://e", "https://a"),
        ("https://old.example", "https://a"),
    ] {
        let mut world = world();
        world.preferred = Some(preferred);
        assert_eq!(first(&world), expected, "{preferred}");
    }
    // The configured one is the only one.
    for only in ["https://d", "https://e", "https://b/"] {
        let mut world = world().set(|config| config.issuer = Some(only.into()));
        world.preferred = Some("https://c");
        assert_eq!(first(&world), only);
        world.replies.retain(|url, _| url == RESOURCE_PATH);
        assert_eq!(world.failed().0.len(), 3, "the issuers of the server are not asked");
    }
    // Each issuer once, at most four, until one has metadata.
    let twice = World::new(SERVER).issuers(&["https://a", "https://a", "https://b", "https://i", "https://c"]);
    assert_eq!(twice.failed().0.len(), 1 + 3 * 2);
    let (urls, found) = twice.body(OPENID, issuer("https://i")).found();
    assert_eq!((urls.len(), found.issuer.issuer.as_str()), (7, "https://i"));
}

// covers: AUTHD-C-002
#[test]
fn configured_issuer_needs_no_metadata_of_the_server() {
    let world =
        World::new(SERVER).body(OAUTH, issuer("https://i")).set(|config| config.issuer = Some("https://i".into()));
    let (urls, found) = world.found();
    assert_eq!(urls, [RESOURCE_PATH, RESOURCE_ROOT, OAUTH]);
    assert_eq!((found.resource, found.identifier.as_str()), (None, SERVER));
    let unlisted = World::new(SERVER).issuers(&[]).body(OAUTH, issuer("https://i"));
    assert_eq!(reasons(unlisted.failed().1), ["it names no authorization server", "HTTP 404"]);
    let unlisted = unlisted.set(|config| config.issuer = Some("https://i".into()));
    assert_eq!(unlisted.found().0, [RESOURCE_PATH, OAUTH]);
    let (urls, error) = world.status(RESOURCE_ROOT, 500).failed();
    assert_eq!(urls, [RESOURCE_PATH, RESOURCE_ROOT], "the identifier is not known now");
    assert!(matches!(error, AuthError::Unavailable(_)), "{error:?}");
}

// covers: AUTHL-C-001, AUTHL-C-004, AUTHL-C-005, B-240
#[test]
fn server_of_the_first_revision_is_its_own_issuer() {
    let asked = [RESOURCE_PATH, RESOURCE_ROOT, ORIGIN];
    let document = issuer_with("https://h", r#","registration_endpoint":"https://h/oauth/register""#);
    let (urls, found) = World::new(SERVER).body(ORIGIN, document).found();
    assert_eq!(urls, asked);
    assert_eq!((found.resource, found.identifier.as_str()), (None, SERVER));
    assert!(!found.issuer.is_default && found.issuer.issuer == "https://h");
    // Some sites answer every path with a page.
    for absent in [Reply::Status(404), Reply::Status(401), Reply::Body("<html>".into()), Reply::Body("7".into())] {
        let world = asked.iter().fold(World::new(SERVER), |world, url| world.with(url, absent.clone()));
        let (urls, found) = world.found();
        assert_eq!(urls, asked);
        assert_eq!(found.issuer, IssuerMetadata::first_revision(&HttpTarget::parse(SERVER).unwrap()));
        assert_eq!(found.issuer.token_endpoint, "https://h/token");
        assert_eq!((found.identifier.as_str(), found.reports.len()), (SERVER, 0));
    }
}

// covers: B-240
#[test]
fn default_endpoints_need_that_no_document_exists() {
    let present = [
        Reply::Body("{}".into()),
        Reply::Body(resource(SERVER, &[])),
        Reply::Error(FetchError::TooLong),
        Reply::Status(302),
        Reply::Status(429),
        Reply::Status(503),
        broken(Closed::Reset),
    ];
    for reply in present {
        for at in [RESOURCE_PATH, RESOURCE_ROOT] {
            let (urls, _) = World::new(SERVER).with(at, reply.clone()).failed();
            assert_eq!(urls, [RESOURCE_PATH, RESOURCE_ROOT], "no other document is asked");
        }
        let (urls, _) = World::new(SERVER).with(ORIGIN, reply).failed();
        assert_eq!(urls, [RESOURCE_PATH, RESOURCE_ROOT, ORIGIN]);
    }
    for document in [issuer("https://other.example"), issuer("https://h").replace("S256", "plain")] {
        World::new(SERVER).body(ORIGIN, document).failed();
    }
    // A URL of the challenge that may not be asked tells nothing.
    let mut world = World::new(SERVER);
    world.hint = Some("http://h/metadata");
    assert_eq!(world.failed().0, [RESOURCE_PATH, RESOURCE_ROOT]);
    let off = World::new(SERVER).body(ORIGIN, issuer("https://h")).set(|config| config.compat.first_revision = false);
    assert_eq!(off.failed().0, [RESOURCE_PATH, RESOURCE_ROOT]);
    // Nothing goes to a remote server without TLS.
    let (urls, error) = World::new("http://intranet.example/mcp").failed();
    assert_eq!((urls.len(), reasons(error)), (0, vec!["it has no TLS".into(); 2]));
}

// covers: S0-47
#[test]
fn field_of_the_server_is_shown_and_used_on_demand() {
    let mut world = World::new(SERVER).body(OAUTH, issuer("https://i")).status(ORIGIN, 302);
    world.auth_server = Some("https://i");
    let (urls, error) = world.failed();
    assert_eq!(urls, [RESOURCE_PATH, RESOURCE_ROOT, ORIGIN]);
    let why = "the field Mcp-Auth-Server names it (setting: auth_server_hint)";
    assert_eq!(tried(error).pop().unwrap(), ("https://i".into(), None, why.into()));
    let world = world.set(|config| config.compat.auth_server_hint = true);
    assert_eq!(world.found().0, [RESOURCE_PATH, RESOURCE_ROOT, ORIGIN, OAUTH], "the last candidate");
    let listed = world.issuers(&["https://j"]);
    assert_eq!(listed.found().0.last().unwrap(), OAUTH);
    let listed = listed.body("https://j/.well-known/openid-configuration", issuer("https://j"));
    assert_eq!(listed.found().1.issuer.issuer, "https://j");
    let mut bad = World::new(SERVER).set(|config| config.compat.auth_server_hint = true).status(ORIGIN, 302);
    bad.auth_server = Some("http://i");
    assert_eq!(reasons(bad.failed().1).pop().unwrap(), "it has no TLS");
    let (urls, found) = bad.status(ORIGIN, 404).found();
    assert!(found.issuer.is_default && urls.last().unwrap() == ORIGIN);
}

// covers: AUTHF-C-003, B-252
#[test]
fn issuer_must_support_proof_keys_with_s256() {
    let listing = |methods: &str| issuer("https://i").replace(r#"["S256"]"#, methods);
    let world = |methods: &str| World::new(SERVER).issuers(&["https://i"]).body(OAUTH, listing(methods));
    assert_eq!(world(r#"["plain","S256"]"#).found().1.reports, []);
    for (methods, listed) in [("null", false), ("[]", false), (r#"["plain"]"#, true), (r#"["s256"]"#, true)] {
        let world = world(methods);
        let expected = AuthError::NoPkce { issuer: "https://i".into(), listed };
        assert_eq!(world.failed(), ([RESOURCE_PATH, OAUTH, OPENID].map(String::from).into(), expected.clone()));
        let world = world.set(|config| config.compat.unlisted_pkce = true);
        match world.run() {
            (_, Next::Found(found)) if !listed => {
                assert_eq!(found.reports, [AuthReport::Deviation(expected.to_string())]);
            }
            (_, end) => assert_eq!(end, Next::Failed(expected)),
        }
    }
    // Another document or issuer may list it.
    assert_eq!(world("null").body(OPENID, issuer("https://i")).found().0, [RESOURCE_PATH, OAUTH, OPENID]);
    let (_, error) = world("null").status(OPENID, 500).failed();
    assert!(matches!(error, AuthError::Unavailable(_)), "{error:?}");
}
