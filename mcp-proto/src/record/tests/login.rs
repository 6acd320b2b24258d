//! A whole login, recorded and replayed: with a registration and with a given client, from an empty
//! store and from one with tokens, over HTTP and over a WebSocket.

mod grants;

use super::*;
use crate::auth::{
    AuthConfig, AuthMethod, ClientAuth, ClientSource, Dpop, Entry, GivenClient, Grant, Input as AuthInput, KeyPair,
    Lease, Output, Parameter, ParameterPlace, PublicKey, Record, RegisteredClient, Registration, SaveFault, Scopes,
    StepId, StoreFault, Stored, TokenType, Tokens, Version,
};
use crate::client::ListenerStart;
use crate::exchange::Shutdown;
use alloc::collections::BTreeMap;
use alloc::format;
use base64::Engine as _;

/// Must not be in a redacted recording: a part of every secret.
const SECRET: &str = "hunter2";
/// They are written in several ways, and forms encode some of their bytes.
const ACCESS: &str = "hunter2.a/b-c+d==";
const REFRESH: &str = "1//0hunter2=~.";
const CLIENT_SECRET: &str = "hunter2/:%=é";
/// As a redirect has it, only partly encoded.
const CODE: &str = "4/0Ahunter2%2B_%2f";
const DECODED_CODE: &str = "4/0Ahunter2+_/";
const NONCE: &str = "once-2";
const BASE: &str = "http://127.0.0.1:8000";

/// How the client is known at the issuer.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Known {
    /// It registers, and gets a secret.
    Registered,
    /// Its configuration has the secret.
    Given,
}

/// A server of 2025-11-25, its authorization server, the store, and the user.
struct World {
    url: &'static str,
    known: Known,
    /// How the client authenticates at the token endpoint.
    method: AuthMethod,
    grant: Grant,
    redaction: Redaction,
    /// Whether tokens are bound to a key. The server then wants its nonce in proofs.
    bound: bool,
    record: Option<Box<Record>>,
    version: Version,
    tokens: u64,
    /// The paths of the requests, with the bodies of forms.
    requests: Vec<(String, String)>,
    revoked: Vec<String>,
}

impl World {
    fn new(known: Known, method: AuthMethod, redaction: Redaction) -> Self {
        Self {
            url: "http://127.0.0.1:8000/mcp?token=hunter2",
            known,
            method,
            grant: Grant::Code,
            redaction,
            bound: false,
            record: None,
            version: Version::ABSENT,
            tokens: 0,
            requests: Vec::new(),
            revoked: Vec::new(),
        }
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::url(self.url).unwrap();
        (config.policy, config.compat.listener) = (Policy::Legacy, ListenerStart::Never);
        config.origin_unix = Duration::from_secs(1_700_000_000);
        let mut auth = AuthConfig::new("test");
        auth.dpop = if self.bound { Dpop::Required } else { Dpop::Off };
        auth.metadata_url = Some(format!("{BASE}/metadata?access_token=hunter2"));
        let parameter =
            |name: &str, value: &str| Parameter { place: ParameterPlace::Both, name: name.into(), value: value.into() };
        auth.parameters = vec![parameter("audience", "everyone"), parameter("api_key", "hunter2/")];
        if self.known == Known::Given {
            auth.registrations = vec![Registration::Given(GivenClient {
                issuer: BASE.into(),
                client_id: "given".into(),
                auth: ClientAuth::Secret(CLIENT_SECRET.into()),
            })];
        }
        if self.grant != Grant::Code {
            grants::configure(&mut auth, self);
        }
        config.auth = Some(Arc::new(auth));
        config
    }

    /// Stores tokens that have expired.
    fn store_expired(&mut self) {
        let source = if self.known == Known::Given { ClientSource::Given } else { ClientSource::Dynamic };
        let client = RegisteredClient {
            client_id: "given".into(),
            client_secret: Some(CLIENT_SECRET.into()),
            secret_expires: None,
            method: self.method,
            redirect_uri: None,
            scopes: Scopes::new(),
            source,
        };
        let tokens = Tokens {
            access_token: format!("{ACCESS}0").into(),
            token_type: TokenType::Bearer,
            dpop_key: None,
            refresh_token: Some(REFRESH.into()),
            expires: Some(1_600_000_000),
            lifetime: Some(60),
            granted: Scopes::new(),
            generation: 7,
        };
        let (issuer, resource, requested) = (BASE.into(), format!("{BASE}/mcp"), Scopes::new());
        let entry = Entry { issuer, resource, client, requested, tokens: Some(tokens) };
        (self.record, self.version) = (Some(Box::new(Record { entries: vec![entry] })), Version(1));
    }

    /// Answers a step of the login.
    fn step(&mut self, output: &Output) -> Option<AuthInput> {
        Some(match output {
            Output::Lease(step, ..) => AuthInput::Leased(*step, Ok(Lease::Held)),
            Output::Load(step, _) => {
                AuthInput::Loaded(*step, Ok(Stored { record: self.record.clone(), version: self.version }))
            }
            Output::Save(step, _, expected, record) => {
                assert_eq!(*expected, self.version);
                self.version = Version(self.version.0 + 1);
                self.record = record.clone();
                AuthInput::Saved(*step, Ok(self.version))
            }
            Output::Listen(step, listen) => {
                AuthInput::Listening(*step, Ok(format!("http://{}:4000{}", listen.host.as_str(), listen.path)))
            }
            Output::Browse(step, page) => {
                let state = page.url.split("state=").nth(1).unwrap().split('&').next().unwrap();
                let issuer = "http%3A%2F%2F127.0.0.1%3A8000";
                let url = format!("{}?code={CODE}&state={state}&iss={issuer}&x=\u{e9} y", page.redirect_uri);
                // As a user pastes it.
                AuthInput::Redirected(*step, format!(" {url}#code=hunter2\n").into())
            }
            Output::NewKey(step, _) => {
                let public = PublicKey::P256 { x: vec![1; 32], y: vec![2; 32] };
                let private = "hunter2/private+key==".into();
                AuthInput::KeyMade(*step, Ok(Box::new(KeyPair { private, public })))
            }
            Output::Sign(step, _) => AuthInput::Signed(*step, Ok(vec![7; 64])),
            Output::Assert(step, _) => AuthInput::Asserted(*step, Ok(grants::ASSERTION.into())),
            Output::Failed(why) => panic!("{why}"),
            _ => return None,
        })
    }

    /// Responds to an HTTP request, whichever server it is for.
    fn serve(&mut self, request: &str) -> String {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let path = head.split(' ').nth(1).unwrap().split('?').next().unwrap();
        self.requests.push((path.into(), body.into()));
        match path {
            "/metadata" => {
                document("200", &format!("{{\"resource\":\"{BASE}/mcp\",\"authorization_servers\":[\"{BASE}\"]}}"))
            }
            "/.well-known/oauth-authorization-server" => document("200", &self.metadata()),
            "/register" => document(
                "201",
                &format!(
                    "{{\"client_id\":\"c\",\"client_secret\":{},\"client_secret_expires_at\":0,\
                     \"token_endpoint_auth_method\":\"{}\",\"registration_access_token\":\"hunter2\"}}",
                    RawJson::from(CLIENT_SECRET),
                    self.method.as_str()
                ),
            ),
            "/token" if self.grant != Grant::Code => grants::issue(self, head, body),
            "/device" => document("200", &grants::device()),
            "/exchange" => document("200", grants::EXCHANGED),
            "/token" => self.issue(head, body),
            "/revoke" => {
                self.revoked.push(body.into());
                document("200", "")
            }
            "/mcp" => self.mcp(head, body),
            other => panic!("{other}"),
        }
    }

    fn metadata(&self) -> String {
        format!(
            "{{\"issuer\":\"{BASE}\",\"authorization_endpoint\":\"{BASE}/authorize?key=hunter2\",\
             \"token_endpoint\":\"{BASE}/token?api_key=hunter2\",\"registration_endpoint\":\"{BASE}/register\",\
             \"device_authorization_endpoint\":\"{BASE}/device?key=hunter2\",\
             \"revocation_endpoint\":\"{BASE}/revoke\",\"code_challenge_methods_supported\":[\"S256\"],\
             \"grant_types_supported\":[\"authorization_code\",\"refresh_token\"],\
             \"token_endpoint_auth_methods_supported\":[\"{}\"],\
             \"authorization_response_iss_parameter_supported\":true}}",
            self.method.as_str()
        )
    }

    /// Issues tokens. One escapes its slashes, as PHP does, the other what HTML has a meaning for.
    fn issue(&mut self, head: &str, body: &str) -> String {
        let has = |name: &str, value: &str| body.split('&').any(|field| field == format!("{name}={}", encoded(value)));
        let code = has("grant_type", "authorization_code") && has("code", DECODED_CODE);
        assert!(code || has("grant_type", "refresh_token") && has("refresh_token", REFRESH), "{body}");
        assert!(has("api_key", "hunter2/") && has("audience", "everyone"), "{body}");
        match self.method {
            AuthMethod::Basic => assert!(head.contains(&basic(self.client_id())), "{head}"),
            _ => assert!(has("client_secret", CLIENT_SECRET), "{body}"),
        }
        assert_eq!(head.contains("DPoP: "), self.bound, "{head}");
        let kind = if self.bound { "DPoP" } else { "Bearer" };
        self.tokens += 1;
        let access = format!("{ACCESS}{}", self.tokens).replace('/', "\\/");
        let refresh = REFRESH.replace('=', "\\u003d");
        document(
            "200",
            &format!(
                "{{\"access_token\":\"{access}\",\"token_type\":\"{kind}\",\"expires_in\":60,\
                 \"refresh_token\":\"{refresh}\",\"id_token\":\"hunter2\",\"scope\":\"read\"}}"
            ),
        )
    }

    fn client_id(&self) -> &'static str {
        if self.known == Known::Given { "given" } else { "c" }
    }

    fn mcp(&self, head: &str, body: &str) -> String {
        let kind = if self.bound { "dpop" } else { "bearer" };
        if !head.to_ascii_lowercase().contains(&format!("authorization: {kind} {ACCESS}{}\r\n", self.tokens)) {
            let field = format!("WWW-Authenticate: Bearer scope=\"read\", error=\"x\", token={SECRET}\r\n");
            return document("401", "{}").replacen("Content-Type", &format!("{field}Content-Type"), 1);
        }
        if self.bound && !has_nonce(head) {
            let fields = format!("WWW-Authenticate: DPoP error=\"use_dpop_nonce\"\r\nDPoP-Nonce: {NONCE}\r\n");
            return document("401", "{}").replacen("Content-Type", &format!("{fields}Content-Type"), 1);
        }
        let id = body.split("\"id\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
        let result = match body.contains("\"initialize\"") {
            true => {
                "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}"
            }
            false => "",
        };
        match id {
            Some(id) => document("200", &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{{result}}}}}")),
            None => document("202", ""),
        }
    }
}

/// Returns whether the proof in a head has the nonce of the server.
fn has_nonce(head: &str) -> bool {
    let proof = head.split("DPoP: ").nth(1).unwrap().split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(proof).unwrap();
    String::from_utf8(claims).unwrap().contains(&format!("\"nonce\":\"{NONCE}\""))
}

fn document(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Encodes a value as a form has it.
fn encoded(value: &str) -> String {
    let encode = |byte: u8| match byte {
        b'*' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(encode).collect()
}

fn basic(client_id: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(format!("{client_id}:{}", encoded(CLIENT_SECRET)))
}

/// A recorded client in its world.
struct Session {
    world: World,
    client: WiredClient,
    now: Instant,
    file: Arc<Mutex<Vec<u8>>>,
    asked: BTreeMap<ConnectionId, String>,
    ended: usize,
}

impl Session {
    fn new(world: World) -> Self {
        let (recorder, file) = recorder(world.redaction);
        let now = Instant::from_millis(1);
        let client = recorder.client(Arc::new(world.config()), SEED, now);
        Self { world, client, now, file, asked: BTreeMap::new(), ended: 0 }
    }

    /// Does everything that is to be done now.
    fn rest(&mut self) {
        loop {
            while let Some(action) = self.client.poll_output() {
                self.action(action);
            }
            let Some((channel, request)) = self.asked.pop_first() else { return };
            let response = self.world.serve(&request);
            self.client.handle_io(self.now, channel, IoEvent::Read(response.into()));
        }
    }

    fn action(&mut self, action: Action<Event>) {
        let now = self.now;
        match action {
            Action::Open(channel, _) => self.client.handle_io(now, channel, IoEvent::Opened(Peer::default())),
            Action::Write(channel, bytes) => {
                self.client.handle_io(now, channel, IoEvent::Written(bytes.len()));
                self.asked.entry(channel).or_default().push_str(&String::from_utf8_lossy(&bytes));
            }
            Action::Close(channel, Shutdown::Abort) => {
                self.asked.remove(&channel);
                self.client.handle_io(now, channel, IoEvent::Closed(Closed::Aborted));
            }
            Action::Event(Event::Auth(output)) => {
                if let Some(input) = self.world.step(&output) {
                    self.client.auth(now, input);
                }
            }
            Action::Event(Event::Ended { outcome, .. }) => {
                outcome.unwrap();
                self.ended += 1;
            }
            _ => {}
        }
    }

    fn ping(&mut self) {
        self.client.call(self.now, crate::call::ping()).unwrap();
        self.rest();
    }

    /// Ends the client. Returns the recording.
    fn finish(mut self) -> (World, String) {
        self.client.close(self.now);
        self.rest();
        let text = String::from_utf8(self.file.lock().unwrap().clone()).unwrap();
        (self.world, text)
    }
}

/// Replays a recording, and checks that it has no secret if it is a redacted one.
fn check(world: &World, text: &str) {
    let recording = Recording::read(text.as_bytes()).unwrap();
    let summary = recording.replay().unwrap_or_else(|difference| panic!("{world:?}: {difference}"));
    assert!(summary.complete && summary.outputs > 20, "{summary:?}");
    let is_raw = world.redaction == Redaction::Raw;
    assert_eq!(text.contains(SECRET), is_raw, "{text}");
    if !is_raw {
        for secret in [basic(world.client_id()), encoded(CLIENT_SECRET), "0Ahunt".into(), "unter2".into()] {
            assert!(!text.contains(&secret), "{secret}: {text}");
        }
    }
    for kept in
        ["/token?api_key=", "\\\"token_type\\\":\\\"Bearer\\\"", "grant_type=refresh_token", "audience=everyone"]
    {
        assert!(text.contains(kept), "{kept} is missing: {text}");
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.known, self.method, self.redaction)
    }
}

fn worlds() -> impl Iterator<Item = World> {
    let ways = [Known::Registered, Known::Given]
        .into_iter()
        .flat_map(|known| [AuthMethod::Basic, AuthMethod::Post].map(|method| (known, method)));
    ways.flat_map(|(known, method)| {
        [Redaction::Raw, Redaction::Redacted].map(|redaction| World::new(known, method, redaction))
    })
}

// covers: S2-44
#[test]
fn login_refresh_and_logout_are_masked_and_replayed() {
    for world in worlds() {
        let mut session = Session::new(world);
        session.ping();
        assert_eq!((session.ended, session.world.tokens), (1, 1));
        // The token expires.
        session.now = session.now + Duration::from_secs(61);
        session.client.handle_timeout(session.now);
        session.ping();
        assert_eq!((session.ended, session.world.tokens), (2, 2));
        // The server refuses the next one.
        session.world.tokens = 5;
        session.ping();
        assert_eq!((session.ended, session.world.tokens), (3, 6));
        session.client.logout(session.now);
        session.rest();
        assert_eq!(session.world.record, None);
        let (world, text) = session.finish();
        let revoked =
            |token: &str| world.revoked.iter().any(|form| form.contains(&format!("token={}", encoded(token))));
        assert!(revoked(REFRESH) && revoked(&format!("{ACCESS}6")), "{:?}", world.revoked);
        assert!(text.contains("code_verifier="), "{text}");
        check(&world, &text);
    }
}

// covers: S2-44, DPOP-C-010
#[test]
fn proofs_of_a_login_are_masked_and_replayed() {
    for mut world in worlds() {
        world.bound = true;
        let mut session = Session::new(world);
        session.ping();
        session.now = session.now + Duration::from_secs(61);
        session.client.handle_timeout(session.now);
        session.ping();
        assert_eq!((session.ended, session.world.tokens), (2, 2));
        let (world, text) = session.finish();
        let recording = Recording::read(text.as_bytes()).unwrap();
        let summary = recording.replay().unwrap_or_else(|difference| panic!("{world:?}: {difference}"));
        assert!(summary.complete && text.contains("use_dpop_nonce"), "{summary:?}");
        assert_eq!(text.contains(SECRET), world.redaction == Redaction::Raw, "{text}");
    }
}

// covers: S2-44
#[test]
fn stored_record_is_masked_and_its_refresh_replayed() {
    for mut world in worlds().filter(|world| world.known == Known::Given) {
        world.store_expired();
        let mut session = Session::new(world);
        session.ping();
        assert_eq!((session.ended, session.world.tokens), (1, 1));
        let (world, text) = session.finish();
        let paths: Vec<&str> = world.requests.iter().map(|(path, _)| &**path).collect();
        assert_eq!(paths[..3], ["/metadata", "/.well-known/oauth-authorization-server", "/token"], "{text}");
        check(&world, &text);
    }
}

/// The answer to the key of a handshake.
fn accepted(head: &str) -> String {
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
    let digest = sha1_smol::Sha1::from(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")).digest().bytes();
    let accept = base64::engine::general_purpose::STANDARD.encode(digest);
    format!("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n")
}

// covers: WS-C-010, S2-44
#[test]
fn login_of_a_websocket_is_replayed() {
    let mut world = World::new(Known::Registered, AuthMethod::Post, Redaction::Raw);
    world.url = "ws://127.0.0.1:8000/mcp";
    let mut session = Session::new(world);
    let mut handshakes = Vec::new();
    loop {
        while let Some(action) = session.client.poll_output() {
            session.action(action);
        }
        let Some((channel, request)) = session.asked.pop_first() else { break };
        let is_handshake = request.contains("Sec-WebSocket-Key: ");
        let is_known = request.contains(&format!("Authorization: Bearer {ACCESS}1\r\n"));
        let response = match (is_handshake, is_known) {
            (true, true) => accepted(&request),
            (true, false) => {
                document("401", "").replacen("Content-Type", "WWW-Authenticate: Bearer\r\nContent-Type", 1)
            }
            _ if request.starts_with("GET ") || request.starts_with("POST ") => session.world.serve(&request),
            // A frame.
            _ => continue,
        };
        if is_handshake {
            handshakes.push(is_known);
        }
        session.client.handle_io(session.now, channel, IoEvent::Read(response.into()));
    }
    assert_eq!((handshakes, session.world.tokens), (vec![false, true], 1));
    session.client.close(session.now);
    session.now = session.now + Duration::from_secs(60);
    session.client.handle_timeout(session.now);
    while let Some(action) = session.client.poll_output() {
        session.action(action);
    }
    let text = session.file.lock().unwrap().clone();
    let replayed = Recording::read(&text).unwrap().replay();
    assert!(replayed.unwrap_or_else(|difference| panic!("{difference}")).complete);
}

fn any_auth_input() -> impl Strategy<Value = AuthInput> {
    let secret = || any::<String>();
    let key = (secret(), any::<[u8; 32]>()).prop_map(|(private, public)| {
        Box::new(KeyPair { private: private.into(), public: PublicKey::Ed25519(public.to_vec()) })
    });
    let key = proptest::option::of(key);
    let tokens = (secret(), key, proptest::option::of(secret()), any::<Option<u64>>(), any::<u64>()).prop_map(
        |(access, dpop_key, refresh, expires, generation)| Tokens {
            access_token: access.into(),
            token_type: if dpop_key.is_some() { TokenType::Dpop } else { TokenType::Bearer },
            dpop_key,
            refresh_token: refresh.map(Into::into),
            expires,
            lifetime: expires,
            granted: Scopes::parse("a b"),
            generation,
        },
    );
    let entry = (proptest::option::of(tokens), proptest::option::of(secret()), any::<String>()).prop_map(
        |(tokens, client_secret, text)| {
            let client = RegisteredClient {
                client_id: text.clone(),
                client_secret: client_secret.map(Into::into),
                secret_expires: None,
                method: AuthMethod::Basic,
                redirect_uri: Some(text.clone()),
                scopes: Scopes::new(),
                source: ClientSource::Dynamic,
            };
            Entry { issuer: text.clone(), resource: text, client, requested: Scopes::parse("a"), tokens }
        },
    );
    let stored = (proptest::option::of(list(entry, 0..3)), any::<u64>()).prop_map(|(entries, version)| {
        let record = entries.map(|entries| Box::new(Record { entries }));
        Stored { record, version: Version(version) }
    });
    let fault = || any::<String>().prop_map(StoreFault);
    let url = prop_oneof![
        any::<String>(),
        "http://127.0.0.1:1/cb\\?(code|state|iss|%63ode)=[a-z0-9/%+~ é]{0,9}(&code=%2[a-f0-9]%zz)?(#token=a)?",
    ];
    let input = prop_oneof![
        proptest::bool::ANY
            .prop_map(|held| Ok(if held { Lease::Held } else { Lease::Waiting }))
            .prop_map(|lease| AuthInput::Leased(StepId(1), lease)),
        stored.clone().prop_map(|stored| AuthInput::Loaded(StepId(2), Ok(stored))),
        fault().prop_map(|why| AuthInput::Loaded(StepId(3), Err(why))),
        any::<u64>().prop_map(|version| AuthInput::Saved(StepId(4), Ok(Version(version)))),
        stored.prop_map(|stored| AuthInput::Saved(StepId(5), Err(SaveFault::Conflict(stored)))),
        fault().prop_map(|why| AuthInput::Saved(StepId(6), Err(SaveFault::Fault(why)))),
        any::<String>().prop_map(|uri| AuthInput::Listening(StepId(7), Ok(uri))),
        url.prop_map(|url| AuthInput::Redirected(StepId(8), url.into())),
        Just(AuthInput::Declined(StepId(9))),
    ];
    input
}

proptest! {
    #[test]
    fn input_of_a_login_round_trips(input in any_auth_input()) {
        for command in [ClientCommand::Auth(Box::new(input)), ClientCommand::Login, ClientCommand::Logout] {
            let input = Input::Command(command);
            prop_assert_eq!(input_of(&line_of(&input, Redaction::Raw)), input.clone());
            let once = line_of(&input, Redaction::Redacted);
            prop_assert_eq!(line_of(&input_of(&once), Redaction::Redacted), once);
        }
    }
}

/// Otherwise the length of the token request would differ in a replay.
// covers: S2-44
#[test]
fn masked_redirect_keeps_what_a_login_reads() {
    for (url, masked) in [
        ("http://h/cb?code=4/0A&state=s%2F&iss=http%3A%2F%2Fa", "http://h/cb?code=x~xx&state=s%2F&iss=http%3A%2F%2Fa"),
        ("http://h/cb?code=4%2F0A+b&state=a", "http://h/cb?code=x~xxxx&state=a"),
        ("http://h/cb?state=a&x=\u{e9}&code=ab#access_token=ab", "http://h/cb?state=a&x=xx&code=xx#access_token=xx"),
        (" http://h/cb?error=access_denied&state=a\n", "http://h/cb?error=access_denied&state=a"),
        ("4/0Ahunter2", "x~xxxxxxxxx"),
    ] {
        let input = Input::Command(ClientCommand::Auth(Box::new(AuthInput::Redirected(StepId(1), url.into()))));
        let Input::Command(ClientCommand::Auth(shown)) = input_of(&line_of(&input, Redaction::Redacted)) else {
            panic!()
        };
        assert_eq!(*shown, AuthInput::Redirected(StepId(1), masked.into()));
    }
}
