//! A forward proxy at the far end of a client's connection. It opens tunnels and forwards single
//! requests, or answers wrongly. What it says itself looks like an answer of the server.

use super::super::fault::{Chaos, Fault};
use super::{AUTHORIZATION, HOST, MARK};
use std::mem;

/// The wrong answers to a request for a tunnel.
const TUNNEL: &[Fault] = &[
    Fault::TunnelRefused,
    Fault::TunnelUnauthorized,
    Fault::TunnelGarbage,
    Fault::TunnelSilent,
    Fault::TunnelCut,
    Fault::TunnelTail,
];
/// The wrong answers to a request in absolute form.
const FORWARD: &[Fault] = &[Fault::ProxyPage, Fault::ProxyUnauthorized];
/// Their chance, in percent of the usual one.
const CHANCE: u64 = 250;
const GRANTED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

/// A proxy, as one connection of a client sees it.
#[derive(Debug, Default)]
pub(super) struct ForwardingProxy {
    stage: Stage,
    head: Vec<u8>,
    has_granted: bool,
}

#[derive(PartialEq, Debug, Default)]
enum Stage {
    /// It reads the head of a request.
    #[default]
    Reads,
    /// All bytes are passed on.
    Passes,
    /// It has answered itself, and ignores what follows.
    Answered,
}

/// What the proxy does with bytes of the client.
#[derive(Debug)]
pub(super) enum Relayed {
    /// Nothing.
    Nothing,
    /// These go to the server.
    Up(Vec<u8>),
    /// These go to the client, and the tunnel is open.
    Opens(&'static str),
    /// These go to the client, and nothing goes to the server. The connection may end behind them.
    Answer(String, bool),
}

impl ForwardingProxy {
    /// Returns whether bytes pass in both directions.
    pub(super) fn passes(&self) -> bool {
        self.stage == Stage::Passes
    }

    /// Returns whether the client may take what the proxy has said for a tunnel. It may even if the
    /// proxy has written more behind it, since the client can begin before it reads that.
    pub(super) fn has_granted(&self) -> bool {
        self.has_granted
    }

    /// Takes bytes of the client.
    pub(super) fn read(&mut self, chaos: &mut Chaos, bytes: &[u8]) -> Relayed {
        match self.stage {
            Stage::Passes => return Relayed::Up(bytes.into()),
            Stage::Answered => return Relayed::Nothing,
            Stage::Reads => self.head.extend_from_slice(bytes),
        }
        let Some(end) = self.head.windows(4).position(|window| window == b"\r\n\r\n") else { return Relayed::Nothing };
        let rest = self.head.split_off(end + 4);
        let head = String::from_utf8(mem::take(&mut self.head)).expect("a head is text");
        let (line, fields) = head.split_once("\r\n").expect("a head has lines");
        let own = |field: &&str| field.to_ascii_lowercase().starts_with("proxy-authorization:");
        let given: Vec<_> = fields.split("\r\n").filter(own).filter_map(|field| field.split_once(": ")).collect();
        assert!(matches!(given[..], [(_, AUTHORIZATION)]), "credentials for the proxy: {given:?}");
        let relayed = if line.starts_with("CONNECT ") {
            assert_eq!(line, format!("CONNECT {HOST}:443 HTTP/1.1"));
            assert!(rest.is_empty(), "bytes for the server before there is a tunnel to it");
            Self::tunnel(chaos)
        } else {
            let (method, rest_of_line) = line.split_once(' ').expect("a request line");
            let target = rest_of_line.strip_prefix("http://").and_then(|target| target.strip_prefix(HOST));
            let target = target.expect("the absolute form");
            let fields: String = fields.split_inclusive("\r\n").filter(|field| !own(field)).collect();
            let forwarded = format!("{method} {target}\r\n{fields}").into_bytes();
            Self::forward(chaos, forwarded, rest)
        };
        self.has_granted = match &relayed {
            Relayed::Opens(_) => true,
            Relayed::Answer(text, _) => text.starts_with(GRANTED),
            Relayed::Nothing | Relayed::Up(_) => false,
        };
        self.stage = match relayed {
            Relayed::Answer(..) => Stage::Answered,
            _ => Stage::Passes,
        };
        relayed
    }

    fn tunnel(chaos: &mut Chaos) -> Relayed {
        let Some(fault) = chaos.pick(TUNNEL, CHANCE) else { return Relayed::Opens(GRANTED) };
        let ends = chaos.rng.per_mille(500);
        let text = match fault {
            Fault::TunnelUnauthorized => page(407, "Proxy-Authenticate: Basic\r\n"),
            Fault::TunnelGarbage => format!("\u{15}\u{3}\u{3}{MARK}\r\n\r\n"),
            Fault::TunnelSilent => return Relayed::Answer(String::new(), false),
            Fault::TunnelCut => GRANTED[..chaos.rng.below(GRANTED.len() as u64) as usize].into(),
            Fault::TunnelTail => format!("{GRANTED}{}", page(200, "")),
            _ => page(chaos.rng.of(&[400, 401, 403, 404, 302, 429, 500, 502, 503, 504]), ""),
        };
        Relayed::Answer(text, ends || fault == Fault::TunnelCut)
    }

    fn forward(chaos: &mut Chaos, mut head: Vec<u8>, rest: Vec<u8>) -> Relayed {
        let text = match chaos.pick(FORWARD, CHANCE) {
            None => {
                head.extend(rest);
                return Relayed::Up(head);
            }
            Some(Fault::ProxyUnauthorized) => page(407, "Proxy-Authenticate: Basic\r\n"),
            Some(_) => {
                let status = chaos.rng.of(&[200, 403, 500, 502, 503, 504]);
                let body = format!("<html>{MARK}</html>");
                let length = body.len();
                let fields = format!("Content-Type: text/html\r\nContent-Length: {length}\r\nConnection: close");
                format!("HTTP/1.1 {status} {MARK}\r\n{fields}\r\n\r\n{body}")
            }
        };
        Relayed::Answer(text, true)
    }
}

/// Returns a response with everything that a client could take for the server's.
fn page(status: u16, fields: &str) -> String {
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":[{{\"text\":\"{MARK}\"}}]}}}}");
    let own = format!("WWW-Authenticate: Bearer realm=\"{MARK}\"\r\nMcp-Session-Id: {MARK}\r\nRetry-After: 1\r\n");
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\nLocation: http://{MARK}.example/\r\n\
         {own}{fields}Content-Length: {length}\r\n\r\n{body}"
    )
}
