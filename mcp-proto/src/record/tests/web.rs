//! An HTTP client whose application adds its own fields, recorded and replayed.

use super::*;
use crate::client::{ClientCommands, ListenerStart};
use crate::exchange::{Headers, IoEvent, Shutdown};
use crate::input::Authorization;
use crate::record::mask::Mask;
use alloc::collections::BTreeMap;
use alloc::format;

const URL: &str = "http://h/mcp";

/// Must not be in a redacted recording: a part of the values that the application set, and of the
/// session id.
const SECRET: &str = "hunter2";

/// Returns the response to a request. Its length is repeated in one field or in two.
fn response(status: &str, session: bool, body: &str) -> String {
    let length = body.len();
    let session = if session { format!("Mcp-Session-Id: {SECRET}-session\r\n") } else { String::new() };
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}, {length}\r\nContent-Type: application/json\r\n\
         X-Upstream-Key: {SECRET}\r\n{session}content-length: {length}\r\n\r\n{body}"
    )
}

/// A server of 2025-11-25 that requires other credentials for one call.
fn serve(request: &str, is_authorized: bool) -> String {
    let id = request.split("\"id\":").nth(1).and_then(|rest| rest.split([',', '}']).next()).unwrap_or("0");
    let result = |result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
    if request.contains("\"initialize\"") {
        let server = "\"capabilities\":{},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}";
        return response("200 OK", true, &result(&format!("{{\"protocolVersion\":\"2025-11-25\",{server}}}")));
    }
    if request.contains("\"ping\"") && !is_authorized {
        let text = response("401 no", false, "{}");
        return text.replacen("\r\n", &format!("\r\nWWW-Authenticate: Bearer {SECRET}, error=\"x\"\r\n"), 1);
    }
    match request.contains("\"ping\"") {
        true => response("200 OK", false, &result("{}")),
        false => response("202 Accepted", false, ""),
    }
}

/// Runs a client with two pings. The server challenges the first.
fn run(redaction: Redaction) -> String {
    let mut config = ClientConfig::url(URL).unwrap();
    for name in ["Ocp-Apim-Subscription-Key", "X-Auth-Key", "Date", "Cache-Control", "X-Tenant"] {
        config = config.header(name, &format!("{SECRET} {name} ü")).unwrap();
    }
    // It is not sent, so a replay must not send it.
    config.headers.push("X-Broken", format!("{SECRET}\r"));
    (config.policy, config.compat.listener, config.authorize) = (Policy::Legacy, ListenerStart::Never, true);
    let (recorder, kept) = recorder(redaction);
    let now = Instant::from_millis(1);
    let mut client = recorder.client(Arc::new(config), SEED, now);
    for _ in 0..2 {
        client.call(now, crate::call::ping()).unwrap();
    }
    let (mut asked, mut is_authorized, mut pongs) = (BTreeMap::<ConnectionId, String>::new(), false, 0);
    loop {
        while let Some(action) = client.poll_output() {
            match action {
                Action::Open(channel, _) => client.handle_io(now, channel, IoEvent::Opened(Peer::default())),
                Action::Secure(channel, _) => client.handle_io(now, channel, IoEvent::Secured),
                Action::Write(channel, bytes) => {
                    client.handle_io(now, channel, IoEvent::Written(bytes.len()));
                    asked.entry(channel).or_default().push_str(core::str::from_utf8(&bytes).unwrap());
                }
                Action::Close(_, Shutdown::WriteHalf | Shutdown::Terminate) | Action::Read(..) | Action::Notice(..) => {
                }
                Action::Close(channel, Shutdown::Abort) => {
                    client.handle_io(now, channel, IoEvent::Closed(Closed::Aborted))
                }
                Action::Event(Event::AuthNeeded { token, .. }) => {
                    is_authorized = true;
                    let fields = Headers::new().with("X-Weird", format!("{SECRET}-given")).with("Host", SECRET);
                    client.authorize(now, token, Authorization::Headers(fields));
                }
                Action::Event(Event::Ended { outcome, .. }) => {
                    outcome.unwrap();
                    pongs += 1;
                }
                Action::Event(_) => {}
            }
        }
        match asked.pop_first() {
            Some((channel, request)) => {
                client.handle_io(now, channel, IoEvent::Read(serve(&request, is_authorized).into()))
            }
            None => break,
        }
    }
    assert_eq!((pongs, is_authorized), (2, true));
    client.close(now);
    while let Some(action) = client.poll_output() {
        if let Action::Write(channel, bytes) = action {
            client.handle_io(now, channel, IoEvent::Written(bytes.len()));
            client.handle_io(now, channel, IoEvent::Read(serve("", true).into()));
        } else if let Action::Close(channel, _) = action {
            client.handle_io(now, channel, IoEvent::Closed(Closed::Eof));
        }
    }
    String::from_utf8(kept.lock().unwrap().clone()).unwrap()
}

// covers: S2-44
#[test]
fn fields_of_the_application_are_masked_and_replayed() {
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let text = run(redaction);
        let summary =
            Recording::read(text.as_bytes()).unwrap().replay().unwrap_or_else(|difference| panic!("{difference}"));
        assert!(summary.complete && summary.outputs > 20, "{summary:?}");
        assert_eq!(text.contains(SECRET), redaction == Redaction::Raw, "{text}");
        for kept in ["Ocp-Apim-Subscription-Key: ", "X-Weird: ", "\\\"ping\\\"", "401 no", "X-Upstream-Key: ", "error="]
        {
            assert!(text.contains(kept), "{kept} is missing: {text}");
        }
    }
}

// covers: S2-44
#[test]
fn urls_of_fetches_are_masked_and_replayed() {
    use crate::fetch::{FetchId, FetchRequest, HttpTarget};
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let (recorder, kept) = recorder(redaction);
        let now = Instant::from_millis(1);
        let config = ClientConfig { policy: Policy::Legacy, ..ClientConfig::url(URL).unwrap() };
        let mut client = recorder.client(Arc::new(config), SEED, now);
        let urls =
            ["http://h/cb?state=1&code=hunter2", "http://as/t?access_token=hunter2#a", "http://h/key?sig=hunter2"];
        for (number, url) in (1..).zip(urls) {
            client.fetch(now, FetchId(number), FetchRequest::get(HttpTarget::parse(url).unwrap())).unwrap();
        }
        client.fetch(now, FetchId(1), FetchRequest::get(HttpTarget::parse("http://h/?token=hunter2").unwrap())).ok();
        client.close(now);
        while let Some(action) = client.poll_output() {
            match action {
                Action::Open(channel, _) => client.handle_io(now, channel, IoEvent::Closed(Closed::Refused)),
                Action::Close(channel, _) => client.handle_io(now, channel, IoEvent::Closed(Closed::Aborted)),
                _ => {}
            }
        }
        let text = String::from_utf8(kept.lock().unwrap().clone()).unwrap();
        let summary =
            Recording::read(text.as_bytes()).unwrap().replay().unwrap_or_else(|difference| panic!("{difference}"));
        assert!(summary.complete, "{summary:?}");
        assert_eq!(text.contains(SECRET), redaction == Redaction::Raw, "{text}");
        for kept in ["/cb?state=1&code=", "http://as/t?access_token=", "/key?sig="] {
            assert!(text.contains(kept), "{kept} is missing: {text}");
        }
    }
}

// covers: S2-44
#[test]
fn redacted_client_asks_for_no_coding() {
    for (redaction, accepts) in [(Redaction::Raw, "gzip, deflate"), (Redaction::Redacted, "identity")] {
        let text = run(redaction);
        let fields: Vec<_> = text.match_indices("accept-encoding: ").collect();
        assert!(fields.len() > 2, "{text}");
        for (at, name) in fields {
            assert!(text[at + name.len()..].starts_with(accepts), "{redaction:?}: {text}");
        }
    }
}

/// The masked value of a field has the same length, and is sent if the original was sent.
// covers: S2-44
#[test]
fn masked_fields_keep_their_length_and_are_sent_as_before() {
    use crate::client::BadHeader;
    let mask = Mask::new(Redaction::Redacted, &ClientConfig::url(URL).unwrap().target);
    let fields = Headers::new()
        .with("Accept", "hunter2")
        .with("X-A", "a b\tc")
        .with("X-B", "é")
        .with("X-C", "")
        .with("X-D", "\rhunter2")
        .with("X-E", " a")
        .with("a b", "hunter2");
    let masked = mask.headers(&fields);
    for ((name, value), (kept, shown)) in fields.iter().zip(masked.iter()) {
        assert_eq!((name, value.len()), (kept, shown.len()));
        assert_eq!(BadHeader::check(name, value), BadHeader::check(name, shown), "{name}");
        assert!(shown.bytes().all(|byte| matches!(byte, b'x' | b'\t')), "{shown:?}");
    }
    assert_eq!(mask.headers(&masked), masked);
}
