//! The challenges of a server: the fields `WWW-Authenticate` of a 401.

use super::login;
use super::script::Script;
use mcp_proto::ClientConfig;
use mcp_proto::auth::{AuthConfig, Input as Answer, Lease, Output, Stored};
use mcp_proto::client::{ClientCommands, Event};
use mcp_proto::exchange::{Action, Closed, ConnectionId, Endpoint, IoEvent, Peer, Reach, Shutdown};
use mcp_proto::time::Instant;
use mcp_proto::wired::WiredClient;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The URL of metadata in a challenge that the script produces.
const METADATA: &str = "https://meta.example/of/the/resource?a=b";

/// The most outputs of one run.
const MOST: usize = 2_000;

/// The first byte selects whether the others are the fields, or produce challenges of several
/// schemes with one for bearer tokens among them.
///
/// The client looks for metadata and ends. It connects to nothing but public addresses by TLS, and
/// to its server. Of produced challenges it finds the metadata, whatever surrounds it.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let (fields, is_produced) = match script.below(3) {
        0 => (String::from_utf8_lossy(script.rest()).split('\n').map(clean).collect(), false),
        _ => (produced(&mut script), true),
    };
    let asked = asked(&fields);
    let first = asked.iter().find(|url| !url.starts_with("POST "));
    assert!(!is_produced || first.is_some_and(|url| *url == format!("GET {METADATA}")), "{asked:?} after {fields:?}");
}

/// Removes what a field cannot have.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || *c == '\t').take(2_000).collect()
}

/// Produces fields with one challenge for bearer tokens.
fn produced(script: &mut Script<'_>) -> Vec<String> {
    let mut elements = Vec::new();
    let (before, after) = (script.below(3), script.below(3));
    (0..before).for_each(|_| elements.push(other(script)));
    let mut parameters = vec![match script.below(3) {
        0 => format!("Resource_Metadata = \"{METADATA}\""),
        1 => format!("resource_metadata=\"{}\"", METADATA.replace('/', "\\/")),
        _ => format!("resource_metadata=\"{METADATA}\""),
    }];
    for _ in 0..script.below(4) {
        let name = *script.pick(&["realm", "scope", "error", "error_description", "x-other"]);
        let at = script.below(parameters.len() + 1);
        let parameter = format!("{name}={}", value(script));
        if !parameters.iter().any(|known| known.starts_with(name)) {
            parameters.insert(at, parameter);
        }
    }
    let comma = *script.pick(&[", ", ",", " , ", ",,\t"]);
    elements.push(format!("{} {}", script.pick(&["Bearer", "bearer", "BEARER"]), parameters.join(comma)));
    (0..after).for_each(|_| elements.push(other(script)));
    match script.below(2) {
        0 => elements,
        _ => vec![elements.join(*script.pick(&[", ", ",", ", ,"]))],
    }
}

/// A challenge of another scheme.
fn other(script: &mut Script<'_>) -> String {
    match script.below(5) {
        0 => "Negotiate".into(),
        1 => "Negotiate YWJj/+ab==".into(),
        2 => format!("Basic realm={}, charset=\"UTF-8\"", value(script)),
        3 => format!("Digest realm={}, qop=\"auth, auth-int\", nonce={}", value(script), value(script)),
        _ => format!("DPoP algs=\"ES256 EdDSA\", error={}", value(script)),
    }
}

/// A value: a token, or a quoted string.
fn value(script: &mut Script<'_>) -> String {
    let count = script.below(12);
    let text = String::from_utf8_lossy(&(0..count).map(|_| script.byte()).collect::<Vec<_>>()).into_owned();
    if script.below(2) == 0 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return text;
    }
    let quoted = clean(&text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{quoted}\"")
}

/// Returns the requests of a client that is challenged with these fields, with their methods.
fn asked(fields: &[String]) -> Vec<String> {
    let mut config = ClientConfig::url(login::SERVER).expect("it is a URL");
    config.auth = Some(Arc::new(AuthConfig::new("fuzz")));
    let mut run = Run {
        client: WiredClient::new(Arc::new(config), [7; 32], Instant::ZERO),
        now: Instant::ZERO,
        fields: fields.iter().map(|field| format!("WWW-Authenticate: {field}\r\n")).collect(),
        hosts: BTreeMap::new(),
        asked: Vec::new(),
    };
    let mut outputs = 0;
    loop {
        while let Some(action) = run.client.poll_output() {
            outputs += 1;
            assert!(outputs < MOST, "it does not end");
            run.handle(action);
        }
        let Some(at) = run.client.poll_timeout() else { break };
        run.now = run.now.max(at);
        run.client.handle_timeout(run.now);
        outputs += 1;
        assert!(outputs < MOST, "it does not end");
    }
    run.asked
}

struct Run {
    client: WiredClient,
    now: Instant,
    fields: String,
    /// The host of each connection.
    hosts: BTreeMap<ConnectionId, String>,
    asked: Vec<String>,
}

impl Run {
    fn handle(&mut self, action: Action<Event>) {
        match action {
            Action::Open(id, endpoint) => {
                self.hosts.insert(id, allowed(&endpoint));
                self.client.handle_io(self.now, id, IoEvent::Opened(Peer::default()));
            }
            Action::Secure(id, _) => self.client.handle_io(self.now, id, IoEvent::Secured),
            Action::Write(id, bytes) => {
                self.client.handle_io(self.now, id, IoEvent::Written(bytes.len()));
                let text = String::from_utf8_lossy(&bytes);
                if let Some((head, _)) = text.split_once(" HTTP/1.1\r\n") {
                    self.respond(id, head);
                }
            }
            Action::Close(id, Shutdown::Abort) => self.client.handle_io(self.now, id, IoEvent::Closed(Closed::Aborted)),
            Action::Close(id, _) => self.client.handle_io(self.now, id, IoEvent::Closed(Closed::Eof)),
            Action::Event(Event::Auth(step)) => self.step(*step),
            Action::Event(_) | Action::Read(..) | Action::Notice(..) => {}
        }
    }

    fn respond(&mut self, id: ConnectionId, head: &str) {
        let (method, target) = head.split_once(' ').expect("a method");
        let host = self.hosts.get(&id).map(String::as_str).unwrap_or_default();
        self.asked.push(format!("{method} https://{host}{target}"));
        let response = match method {
            "GET" => "HTTP/1.1 404 no\r\nContent-Length: 0\r\n\r\n".into(),
            _ => format!("HTTP/1.1 401 no\r\n{}Content-Length: 0\r\n\r\n", self.fields),
        };
        self.client.handle_io(self.now, id, IoEvent::Read(response.into()));
    }

    fn step(&mut self, step: Output) {
        let answer = match step {
            Output::Lease(step, ..) => Answer::Leased(step, Ok(Lease::Held)),
            Output::Load(step, _) => Answer::Loaded(step, Ok(Stored::default())),
            Output::Browse(step, _) => Answer::Declined(step),
            Output::Listen(step, _) => Answer::Listening(step, Ok("http://127.0.0.1:4711/callback".into())),
            _ => return,
        };
        self.client.auth(self.now, answer);
    }
}

/// Returns the host of an endpoint to which the client may connect.
fn allowed(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Origin(origin) => {
            assert!(origin.tls && &*origin.host == "mcp.example", "{endpoint:?}");
            origin.host.to_string()
        }
        Endpoint::Within(origin, reach) => {
            assert!(origin.tls && *reach == Reach::Public, "{endpoint:?}");
            assert!(
                origin.host.parse::<IpAddr>().is_ok_and(|ip| reach.allows(ip))
                    || origin.host.parse::<IpAddr>().is_err()
            );
            origin.host.to_string()
        }
        _ => panic!("{endpoint:?}"),
    }
}
