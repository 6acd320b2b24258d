//! A server that verifies tokens: with keys that it fetches from their issuer, over every
//! transport, and while the issuer is slow or down.

use super::raw::{answer, call, dial, listening, older, open_session, rest, say};
use super::transports::{options, use_all};
use super::*;
use mcp_proto::auth::{IssuerConfig, Resource, VerifierConfig};
use mcp_proto::client::Policy;
use mcp_proto::error::DiagnosticKind;
use mcp_proto::server::SsePaths;
use mcp_tests::certificates::{Authority, Leaf};
use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Condvar;
use std::sync::mpsc::Receiver;
use std::time::SystemTime;

/// What a client calls the server.
const RESOURCE: &str = "https://calc.example/mcp";

/// An authorization server that publishes a key, and tells whether a token is active.
struct Issuer {
    url: String,
    key: KeyPair,
    state: Arc<IssuerState>,
}

#[derive(Default)]
struct IssuerState {
    /// The paths that were asked for.
    asked: Mutex<Vec<String>>,
    /// It is down: 500.
    is_down: Mutex<bool>,
    /// It answers once this is not set.
    holds: Mutex<bool>,
    released: Condvar,
    /// The answer about every token.
    introspection: Mutex<String>,
    /// Connections that clients have closed.
    closed: Mutex<usize>,
}

impl Issuer {
    /// Returns one that runs until the end of the program.
    fn new() -> Self {
        Self::over(None)
    }

    /// Returns one over TLS, if it has a certificate.
    fn over(tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().expect("an address"));
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
        let (state, keys) = (Arc::<IssuerState>::default(), keys(&key));
        let serves = (Arc::clone(&state), url.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let ((state, url), keys, tls) = (serves.clone(), keys.clone(), tls.clone());
                std::thread::spawn(move || {
                    match tls {
                        None => state.serve(stream, &url, &keys),
                        Some(tls) => {
                            let session = rustls::ServerConnection::new(tls).expect("a session");
                            state.serve(rustls::StreamOwned::new(session, stream), &url, &keys);
                        }
                    }
                    *state.closed.lock().unwrap() += 1;
                });
            }
        });
        Self { url, key, state }
    }

    /// Returns the options of a server that verifies its tokens.
    fn guard(&self) -> ServerOptions {
        ServerOptions::new().verify(Resource::new(RESOURCE, [&self.url]), VerifierConfig::jwt(&self.url))
    }

    /// Returns a valid token with these claims in place of the usual ones.
    fn token(&self, claims: &[(&str, &str)]) -> String {
        self.signed(r#"{"alg":"EdDSA","typ":"at+jwt","kid":"k"}"#, claims, &self.key)
    }

    fn signed(&self, header: &str, changed: &[(&str, &str)], key: &KeyPair) -> String {
        let mut claims: Vec<(&str, String)> = vec![
            ("iss", format!("{:?}", self.url)),
            ("aud", format!("{RESOURCE:?}")),
            ("sub", "\"ada\"".into()),
            ("client_id", "\"app\"".into()),
            ("scope", "\"files:read\"".into()),
            ("exp", (unix() + 600).to_string()),
        ];
        for (name, value) in changed {
            claims.retain(|(known, _)| known != name);
            claims.push((name, (*value).into()));
        }
        let claims: Vec<_> = claims.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let input =
            format!("{}.{}", base64url(header.as_bytes()), base64url(format!("{{{}}}", claims.join(",")).as_bytes()));
        let signature = key.sign(input.as_bytes()).expect("a signature");
        format!("{input}.{}", base64url(&signature))
    }

    /// Returns how often this path was asked for.
    fn asked(&self, path: &str) -> usize {
        self.state.asked.lock().unwrap().iter().filter(|asked| *asked == path).count()
    }

    /// Lets all answers wait until [`release`](Self::release).
    fn hold(&self) {
        *self.state.holds.lock().unwrap() = true;
    }

    fn release(&self) {
        *self.state.holds.lock().unwrap() = false;
        self.state.released.notify_all();
    }

    fn set_down(&self, is_down: bool) {
        *self.state.is_down.lock().unwrap() = is_down;
    }

    fn introspects(&self, answer: &str) {
        *self.state.introspection.lock().unwrap() = answer.into();
    }
}

impl IssuerState {
    /// Serves until the client leaves.
    fn serve(&self, stream: impl Read + Write, url: &str, keys: &str) {
        let mut stream = BufReader::new(stream);
        while let Some(path) = read_path(&mut stream) {
            self.asked.lock().unwrap().push(path.clone());
            let holds = self.holds.lock().unwrap();
            drop(self.released.wait_while(holds, |holds| *holds).unwrap());
            let body = match &*path {
                _ if *self.is_down.lock().unwrap() => None,
                "/.well-known/oauth-authorization-server" => Some(format!(
                    r#"{{"issuer":"{url}","jwks_uri":"{url}/keys","introspection_endpoint":"{url}/introspect"}}"#
                )),
                "/keys" => Some(keys.to_owned()),
                "/introspect" => Some(self.introspection.lock().unwrap().clone()),
                _ => None,
            };
            let (status, body) = body.map_or((500, String::new()), |body| (200, body));
            let fields = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
            // A client that has left gets nothing.
            let answer = format!("HTTP/1.1 {status} X\r\n{fields}\r\n{body}");
            let stream = stream.get_mut();
            if stream.write_all(answer.as_bytes()).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
    }
}

/// Reads a request, and returns its path.
fn read_path(stream: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    stream.read_exact(&mut vec![0; length.unwrap_or(0)]).ok()?;
    head.split(' ').nth(1).map(str::to_owned)
}

fn unix() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs()
}

/// Returns the set of this public key.
fn keys(key: &KeyPair) -> String {
    let x = base64url(key.der_bytes());
    format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"k","use":"sig","alg":"EdDSA","x":"{x}"}}]}}"#)
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digits = |chunk: &[u8]| {
        let bits = chunk.iter().chain([0, 0].iter()).take(3).fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let digit = move |at: usize| char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]);
        (0..=chunk.len()).map(digit).collect::<String>()
    };
    bytes.chunks(3).map(digits).collect()
}

/// Returns a server with a tool that says who calls it.
fn who() -> Router {
    let router = Router::new("guarded", "1").tool(tool("who"), |cx, (): ()| {
        let access = cx.granted().expect("it is verified");
        let scopes: Vec<_> = access.scopes.iter().collect();
        let shows = cx.context().http.as_ref().is_some_and(|head| head.headers.get("Authorization").is_some());
        Ok(format!("{:?} of {:?} for {scopes:?}, token shown: {shows}", access.subject, access.client))
    });
    router.configure(|config| config.limits.server.admit_timeout = BOUND)
}

/// Returns a call on a connection that ends with it, with these fields.
fn ask(server: &Server, fields: &str) -> String {
    let mut stream = dial(server);
    say(&mut stream, &call("who", "{}", &format!("Connection: close\r\n{fields}")));
    rest(&mut stream)
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

// covers: AUTHT-S-003, AUTHT-S-004, AUTHT-S-005, AUTHT-S-007
#[test]
fn tokens_of_the_issuer_for_this_server_are_accepted() {
    let _limit = limit();
    let issuer = Issuer::new();
    let server = listening(who(), issuer.guard());
    let other = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
    let header = r#"{"alg":"EdDSA","typ":"at+jwt","kid":"k"}"#;
    let good = issuer.token(&[]);
    let old = (unix() - 120).to_string();
    for (what, fields, status, part) in [
        ("good", bearer(&good), 200, r#"Some(\"ada\") of Some(\"app\") for [\"files:read\"], token shown: false"#),
        ("none", String::new(), 401, "resource_metadata="),
        ("of another server", bearer(&issuer.token(&[("aud", "\"https://other.example/mcp\"")])), 401, "invalid_token"),
        ("of another issuer", bearer(&issuer.token(&[("iss", "\"https://other.example\"")])), 401, "invalid_token"),
        ("expired", bearer(&issuer.token(&[("exp", &old)])), 401, "invalid_token"),
        ("an ID token", bearer(&issuer.signed(r#"{"alg":"EdDSA","kid":"k"}"#, &[], &issuer.key)), 401, "invalid_token"),
        ("signed by another", bearer(&issuer.signed(header, &[], &other)), 401, "invalid_token"),
        (
            "of another key",
            bearer(&issuer.signed(&header.replace("\"k\"", "\"l\""), &[], &other)),
            401,
            "invalid_token",
        ),
        ("changed", bearer(&good.replace('.', ".e")), 401, "invalid_token"),
        ("no token", bearer("x"), 401, "invalid_token"),
        ("twice", format!("{0}{0}", bearer(&good)), 400, "invalid_request"),
        ("good again", bearer(&good), 200, "ada"),
    ] {
        let answer = ask(&server, &fields);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {answer}");
        assert!(answer.contains(part), "{what}: {answer}");
    }
    // Keys that are not known cost one more fetch in 30 s.
    for n in 0..20 {
        let token = issuer.signed(&header.replace("\"k\"", &format!("\"x{n}\"")), &[], &other);
        assert!(ask(&server, &bearer(&token)).starts_with("HTTP/1.1 401 "));
    }
    assert_eq!(issuer.asked("/.well-known/oauth-authorization-server"), 1);
    assert!(issuer.asked("/keys") <= 2, "{}", issuer.asked("/keys"));
    stop(&server, BOUND);
    until(|| *issuer.state.closed.lock().unwrap() > 0);
}

// covers: AUTHT-S-003, SEC-S-006
#[test]
fn every_transport_of_a_client_carries_its_token() {
    let _limit = limit();
    let issuer = Issuer::new();
    let (router, seen) = router();
    let router = router.configure(|config| {
        config.sse = Some(SsePaths::default());
        config.web_socket = true;
    });
    let server = listening(router, issuer.guard());
    let address = server.local_addr().expect("an address");
    let token = format!("Bearer {}", issuer.token(&[]));
    for (url, policy) in [
        (format!("http://{address}/mcp"), Policy::Modern),
        (format!("http://{address}/mcp"), Policy::Legacy),
        (format!("http://{address}/sse"), Policy::Legacy),
        (format!("ws://{address}/mcp"), Policy::Modern),
        (format!("ws://{address}/mcp"), Policy::Legacy),
    ] {
        let with_token = options(policy).header("Authorization", &token).expect("a field");
        let client = connect_with(url.as_str(), with_token).wait().expect(&url);
        use_all(&client, &seen);
        client.close().wait();
        assert!(connect_with(url.as_str(), options(policy)).wait().is_err(), "{url} without a token");
    }
    assert_eq!(issuer.asked("/keys"), 1);
    stop(&server, BOUND);
}

#[test]
fn requests_that_wait_for_keys_share_one_fetch() {
    let _limit = limit();
    let issuer = Issuer::new();
    let server = listening(who(), issuer.guard());
    issuer.hold();
    let tokens: Vec<_> = (0..20).map(|n| issuer.token(&[("sub", &format!("\"user{n}\""))])).collect();
    let mut streams: Vec<_> = tokens
        .iter()
        .map(|token| {
            let mut stream = dial(&server);
            say(&mut stream, &call("who", "{}", &bearer(token)));
            stream
        })
        .collect();
    until(|| issuer.asked("/.well-known/oauth-authorization-server") == 1);
    // Some of them leave before there is an answer.
    streams.truncate(15);
    // Another connection of the server is not held up.
    assert!(ask(&server, "").starts_with("HTTP/1.1 401 "));
    issuer.release();
    for (n, stream) in streams.iter_mut().enumerate() {
        let answer = answer(stream);
        assert!(answer.contains(&format!("user{n}")), "{answer}");
    }
    assert_eq!(issuer.asked("/keys"), 1);
    stop(&server, BOUND);
}

fn diagnostics(options: ServerOptions) -> (ServerOptions, Receiver<DiagnosticKind>) {
    let (tell, told) = mpsc::channel();
    let told_by = options.on_event(move |event| {
        if let ServerEvent::Diagnostic(diagnostic) = event {
            tell.send(diagnostic.kind).ok();
        }
    });
    (told_by, told)
}

#[test]
fn issuer_that_is_down_is_reported_and_asked_again() {
    let _limit = limit();
    let issuer = Issuer::new();
    let (options, told) = diagnostics(issuer.guard());
    let server = listening(who(), options);
    let token = bearer(&issuer.token(&[]));
    issuer.set_down(true);
    let answer = ask(&server, &token);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.to_lowercase().contains("retry-after: "), "{answer}");
    assert_eq!(told.recv_timeout(BOUND), Ok(DiagnosticKind::IssuerUnavailable));
    issuer.set_down(false);
    until(|| ask(&server, &token).starts_with("HTTP/1.1 200 "));
    stop(&server, BOUND);
}

#[test]
fn events_of_a_server_show_no_token() {
    let _limit = limit();
    let issuer = Issuer::new();
    let (tell, told) = mpsc::channel();
    let options = issuer.guard().on_event(move |event| drop(tell.send(format!("{event:?}"))));
    let server = listening(who(), options);
    let good = issuer.token(&[]);
    let bad = good.replacen('.', ".e", 1);
    issuer.set_down(true);
    assert!(ask(&server, &bearer(&good)).starts_with("HTTP/1.1 503 "));
    issuer.set_down(false);
    until(|| ask(&server, &bearer(&good)).starts_with("HTTP/1.1 200 "));
    assert!(ask(&server, &bearer(&bad)).starts_with("HTTP/1.1 401 "));
    stop(&server, BOUND);
    let shown: Vec<String> = told.try_iter().collect();
    assert!(shown.iter().any(|event| event.contains("IssuerUnavailable")), "{shown:?}");
    let parts = good.split('.').chain(bad.split('.'));
    assert!(!parts.into_iter().any(|part| shown.iter().any(|event| event.contains(part))), "{shown:?}");
}

#[test]
fn keys_come_over_tls_with_the_roots_of_the_application() {
    let _limit = limit();
    let authority = Authority::new("the issuer");
    let issuer = Issuer::over(Some(authority.server(&Leaf::default())));
    let token = bearer(&issuer.token(&[]));
    let trusting = issuer.guard().fetch_with(ClientOptions::new().tls(authority.client()));
    for (options, status) in [(trusting, 200), (issuer.guard(), 503)] {
        let server = listening(who(), options);
        let answer = ask(&server, &token);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        stop(&server, BOUND);
    }
}

#[test]
fn server_ends_while_requests_wait_for_keys() {
    let _limit = limit();
    let issuer = Issuer::new();
    let server = listening(who(), issuer.guard());
    issuer.hold();
    let mut stream = dial(&server);
    say(&mut stream, &call("who", "{}", &bearer(&issuer.token(&[]))));
    until(|| issuer.asked("/.well-known/oauth-authorization-server") == 1);
    stop(&server, Duration::ZERO);
    over(&server);
    // A response, or the end: but not for ever nothing.
    let _ = stream.read_to_string(&mut String::new());
    issuer.release();
    until(|| *issuer.state.closed.lock().unwrap() == 1);
}

#[test]
fn tokens_that_only_the_issuer_can_read_are_asked_about() {
    let _limit = limit();
    let issuer = Issuer::new();
    let config = VerifierConfig::new(IssuerConfig::introspection(&issuer.url, "calc", "its secret"));
    let resource = Resource::new(RESOURCE, [&issuer.url]);
    let server = listening(who(), ServerOptions::new().verify(resource, config));
    let active = |sub: &str| {
        let (iss, exp) = (&issuer.url, unix() + 600);
        format!(r#"{{"active":true,"iss":"{iss}","aud":"{RESOURCE}","sub":"{sub}","client_id":"app","exp":{exp}}}"#)
    };
    issuer.introspects(&active("ada"));
    for _ in 0..3 {
        let answer = ask(&server, &bearer("opaque"));
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("ada"), "{answer}");
    }
    assert_eq!(issuer.asked("/introspect"), 1);
    // A principal that is revoked is asked about again.
    issuer.introspects(r#"{"active":false}"#);
    server.revoke(&Principal::from(format!(r#"["{}","ada","app"]"#, issuer.url)));
    let answer = ask(&server, &bearer("opaque"));
    assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("invalid_token"), "{answer}");
    assert_eq!(issuer.asked("/introspect"), 2);
    stop(&server, BOUND);
}

#[test]
fn session_belongs_to_the_user_of_its_token() {
    let _limit = limit();
    let issuer = Issuer::new();
    let server = listening(who(), issuer.guard());
    let mut stream = dial(&server);
    let session = open_session(&mut stream, &bearer(&issuer.token(&[])));
    let (_, id) = session.split_once("\r\n").expect("the id of the session follows the token");
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    for (sub, status) in [("\"ada\"", 200), ("\"eve\"", 404)] {
        let fields = format!("{}{id}", bearer(&issuer.token(&[("sub", sub)])));
        say(&mut stream, &older("POST", &fields, ping));
        let answer = answer(&mut stream);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{sub}: {answer}");
    }
    stop(&server, BOUND);
}

#[test]
fn invalid_resource_does_not_start_a_server() {
    let options = ServerOptions::new()
        .verify(Resource::new("calc", ["https://as.example"]), VerifierConfig::jwt("https://as.example"));
    let why = Server::new(who(), options).expect_err("no URL");
    assert_eq!(why.kind(), std::io::ErrorKind::InvalidInput);
}
