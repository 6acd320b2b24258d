//! A client behind a proxy, recorded and replayed: its credentials, and what is inside of a tunnel.

use super::*;
use crate::client::{ClientCommands, ListenerStart, Proxies, Proxy};
use crate::exchange::{IoEvent, Shutdown};
use alloc::collections::BTreeMap;
use alloc::format;

/// `ann:hunter2`, and a part of the values that the server sends.
const SECRETS: [&str; 2] = ["YW5uOmh1bnRlcjI=", "hunter2"];

/// Responds like a proxy, and like a server of 2025-11-25 behind it.
fn serve(request: &str) -> String {
    if request.starts_with("CONNECT ") {
        return "HTTP/1.1 200 Connection established\r\nX-Proxy: hunter2\r\nContent-Length: 7\r\n\r\n".into();
    }
    let result = match request.contains("\"initialize\"") {
        true => r#""protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}"#,
        false => "",
    };
    let id = request.split("\"id\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
    let body = id.map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{{result}}}}}")).unwrap_or_default();
    let status = if body.is_empty() { "202 Accepted" } else { "200 OK" };
    let fields = "Mcp-Session-Id: hunter2-session\r\nContent-Type: application/json";
    format!("HTTP/1.1 {status}\r\n{fields}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Runs a client with a ping behind a proxy.
fn run(url: &str, redaction: Redaction) -> String {
    let mut config = ClientConfig::url(url).unwrap();
    (config.policy, config.compat.listener) = (Policy::Legacy, ListenerStart::Never);
    config.proxies = Proxies::all(Proxy::parse("http://ann:hunter2@proxy.test:3128").unwrap());
    let (recorder, kept) = recorder(redaction);
    let now = Instant::from_millis(1);
    let mut client = recorder.client(Arc::new(config), SEED, now);
    client.call(now, crate::call::ping()).unwrap();
    let (mut asked, mut is_done) = (BTreeMap::<ConnectionId, String>::new(), false);
    loop {
        while let Some(action) = client.poll_output() {
            match action {
                Action::Open(id, _) => client.handle_io(now, id, IoEvent::Opened(Peer::default())),
                Action::Secure(id, _) => client.handle_io(now, id, IoEvent::Secured),
                Action::Write(id, bytes) => {
                    client.handle_io(now, id, IoEvent::Written(bytes.len()));
                    asked.entry(id).or_default().push_str(core::str::from_utf8(&bytes).unwrap());
                }
                Action::Close(id, Shutdown::Abort) => client.handle_io(now, id, IoEvent::Closed(Closed::Aborted)),
                Action::Event(Event::Ended { outcome, .. }) => {
                    outcome.unwrap();
                    is_done = true;
                }
                _ => {}
            }
        }
        match asked.pop_first() {
            Some((id, request)) => client.handle_io(now, id, IoEvent::Read(serve(&request).into())),
            None => break,
        }
    }
    assert!(is_done);
    String::from_utf8(kept.lock().unwrap().clone()).unwrap()
}

// covers: PROXY-C-005
#[test]
fn credentials_of_a_proxy_are_masked_and_replayed() {
    for url in ["http://server.test/mcp?token=hunter2", "https://server.test/mcp?token=hunter2"] {
        for redaction in [Redaction::Raw, Redaction::Redacted] {
            let text = run(url, redaction);
            let summary =
                Recording::read(text.as_bytes()).unwrap().replay().unwrap_or_else(|difference| panic!("{difference}"));
            assert!(summary.outputs > 5, "{summary:?}");
            for secret in SECRETS {
                assert_eq!(text.contains(secret), redaction == Redaction::Raw, "{text}");
            }
            for kept in ["Proxy-Authorization: ", "Mcp-Session-Id: ", "proxy.test", "\\\"ping\\\""] {
                assert!(text.contains(kept), "{kept} is missing: {text}");
            }
        }
    }
}
