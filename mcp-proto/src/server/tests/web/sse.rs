//! HTTP+SSE of 2024-11-05: the stream, the messages that are posted, and the end of both.

use super::*;
use crate::Change;
use crate::input::Admission;
use crate::rpc::Message;
use crate::server::SsePaths;

const INIT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#;

fn with_sse(change: impl FnOnce(&mut ServerConfig)) -> Site {
    Site::with(|config| {
        config.sse = Some(SsePaths::default());
        change(config);
    })
}

/// An open stream, and the target of its messages.
struct Stream {
    x: ExchangeId,
    target: String,
}

impl Stream {
    fn open(site: &mut Site) -> Self {
        let x = site.bare_at("/sse", "GET", Headers::new().with("Accept", "text/event-stream"));
        Self::opened(site, x)
    }

    fn opened(site: &mut Site, x: ExchangeId) -> Self {
        let said = site.said(x);
        assert_eq!(site.head(x).headers.get("content-type"), Some("text/event-stream"));
        let (event, target) = event(said.last().unwrap());
        assert_eq!(event, "endpoint");
        Self { x, target: target.into() }
    }

    /// A stream whose client has negotiated.
    fn ready(site: &mut Site) -> Self {
        let stream = Self::open(site);
        stream.post(site, INIT);
        stream.post(site, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let [said] = &site.said(stream.x)[..] else { panic!() };
        assert!(said.contains(r#""protocolVersion":"2024-11-05""#), "{said}");
        stream
    }

    /// Posts a message, which is accepted.
    fn post(&self, site: &mut Site, body: &str) {
        let x = site.post_at(&self.target, Headers::new(), body);
        assert_eq!(site.said(x), ["202 "]);
    }
}

// covers: SSE24-S-003, SSE24-S-004, SSE24-S-006, SSE24-S-010, S3-46, B-263
#[test]
fn stream_names_its_endpoint_and_carries_the_responses() {
    let mut site = with_sse(|_| {});
    let stream = Stream::open(&mut site);
    let id = stream.target.strip_prefix("/messages?sessionId=").expect("a relative reference");
    assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')), "{id}");
    let other = Stream::open(&mut site);
    assert_ne!(other.target, stream.target);
    stream.post(&mut site, INIT);
    let [said] = &site.said(stream.x)[..] else { panic!() };
    assert!(event(said).1.contains(r#""id":1,"result""#), "{said}");
    assert_eq!(site.said(other.x), Vec::<String>::new());
    stream.post(&mut site, &call(7));
    let (responder, incoming) = site.handed();
    assert_eq!(incoming.context.http.as_ref().unwrap().target.as_ref(), stream.target, "the POST");
    site.complete(responder, "{}");
    assert_eq!(site.said(stream.x), [format!("|{}", answer(7))]);
    // Both transports are served beside each other.
    let client = site.session("2025-11-25", "{}");
    let x = client.call(&mut site, 3);
    let (responder, _) = site.handed();
    site.complete(responder, "{}");
    assert!(site.said(x)[0].starts_with("200 "));
    let x = site.bare("GET", client.headers());
    assert_eq!(site.head(x).status, 200);
    let x = site.bare("DELETE", client.headers());
    assert_eq!(site.head(x).status, 200);
    stream.post(&mut site, &call(8));
    let (responder, _) = site.handed();
    site.complete(responder, "{}");
    assert_eq!(site.said(stream.x), [format!("|{}", answer(8))], "the other sessions go on");
}

// covers: SSE24-B-011, SSE24-S-003
#[test]
fn http_sse_is_served_only_where_the_application_asks_for_it() {
    let mut site = Site::new();
    for target in ["/sse", "/messages?sessionId=1"] {
        let x = site.bare_at(target, "GET", Headers::new());
        assert_eq!(site.refusal(x).0, 404);
    }
    let mut site = with_sse(|config| {
        let paths = config.sse.as_mut().unwrap();
        (paths.stream, paths.messages) = ("/old/events".into(), "/old/in".into());
        paths.reference = Some("/prefix/old/in".into());
    });
    let x = site.bare_at("/old/events", "GET", Headers::new());
    let stream = Stream::opened(&mut site, x);
    let query = stream.target.strip_prefix("/prefix").unwrap();
    let x = site.post_at(query, Headers::new(), INIT);
    assert_eq!(site.said(x), ["202 "]);
}

// covers: SSE24-C-007, SSE24-S-003, S3-19, S3-20, B-264, B-266
#[test]
fn other_requests_are_refused_with_the_status_that_says_why() {
    let mut site = with_sse(|_| {});
    let stream = Stream::ready(&mut site);
    let accept = |kind: &str| Headers::new().with("Accept", kind);
    // A client that tries Streamable HTTP at the URL of the stream goes on to GET.
    let x = site.post_at("/sse", Headers::new(), INIT);
    assert_eq!(site.refusal(x).0, 405);
    assert_eq!(site.head(x).headers.get("allow"), Some("GET"));
    let x = site.bare_at("/sse", "GET", accept("application/json"));
    assert_eq!(site.refusal(x).0, 406);
    let x = site.bare_at(&stream.target, "GET", Headers::new());
    assert_eq!((site.refusal(x).0, site.head(x).headers.get("allow")), (405, Some("POST")));
    for (target, status) in [("/messages", 400), ("/messages?other=1", 400), ("/messages?sessionId=nope", 404)] {
        site.codes();
        let x = site.post_at(target, Headers::new(), &call(9));
        assert_eq!(site.refusal(x), (status, -32600), "{target}");
        assert_eq!(site.codes(), ["bad-session"], "{target}");
    }
    let x = site.post_at(&stream.target, Headers::new().with("Content-Type", "text/plain"), &call(9));
    assert_eq!(site.refusal(x).0, 415);
    let x = site.post_at(&stream.target, Headers::new(), "{");
    assert_eq!(site.refusal(x), (400, -32700));
    let x = site.begin_at(&stream.target, "POST", Headers::new().with("Content-Type", "application/json"));
    site.bench.item(x, Inbound::End);
    assert_eq!(site.refusal(x), (400, -32700));
    assert_eq!(site.said(stream.x), Vec::<String>::new(), "the stream is not affected");
    // An extra parameter of a proxy does no harm.
    let x = site.post_at(&format!("{}&trace=1", stream.target), Headers::new(), &call(9));
    assert_eq!(site.said(x), ["202 "]);
}

// covers: SSE24-S-001, SSE24-S-002, S3-43, S3-45
#[test]
fn hosts_origins_and_admission_hold_on_both_paths() {
    for (field, value) in [("Host", "evil.example"), ("Origin", "https://evil.example")] {
        let mut site = with_sse(|_| {});
        let stream = Stream::open(&mut site);
        let x = site.bare_at("/sse", "GET", Headers::new().with(field, value));
        assert_eq!(site.refusal(x).0, 403, "{field}");
        let x = site.post_at(&stream.target, Headers::new().with(field, value), INIT);
        assert_eq!(site.refusal(x).0, 403, "{field}");
    }
    // The session belongs to the principal that opened the stream.
    let mut site = with_sse(|config| config.admit = true);
    let x = site.bare_at("/sse", "GET", Headers::new());
    assert_eq!(site.said(x), Vec::<String>::new(), "it waits for the application");
    site.admit_all();
    site.said.entry(x).or_default().retain(|line| line != "continue");
    let stream = Stream::opened(&mut site, x);
    let x = site.post_at(&stream.target, Headers::new(), INIT);
    let Some(Event::Admit(token, _)) = site.event() else { panic!() };
    site.bench.server.admit(site.bench.now, token, Admission::Accept(Some("another".into())));
    assert!(site.said(x).last().unwrap().starts_with("404 "));
    let x = site.post_at(&stream.target, Headers::new(), INIT);
    let Some(Event::Admit(token, _)) = site.event() else { panic!() };
    site.bench.server.admit(site.bench.now, token, Admission::Unauthorized("Bearer".into()));
    assert!(site.said(x).last().unwrap().starts_with("401 "));
    let x = site.post_at(&stream.target, Headers::new(), INIT);
    site.admit_all();
    assert_eq!(site.said(x).last().unwrap(), "202 ");
}

// covers: B-266, SSE24-S-004
#[test]
fn session_ends_with_its_stream_at_every_step() {
    type Act<'a> = &'a dyn Fn(&mut Site, &Stream);
    let steps: [Act<'_>; 4] = [
        &|_, _| {},
        &|site, stream| stream.post(site, INIT),
        &|site, stream| {
            stream.post(site, INIT);
            stream.post(site, &call(2));
        },
        &|site, stream| {
            stream.post(site, INIT);
            stream.post(site, &call(2));
            let (responder, _) = site.handed();
            site.bench.answer(
                responder,
                Outcome::NeedInput { requests: vec![("r".into(), InputRequest::Roots)], state: None },
            );
        },
    ];
    let ends: [Act<'_>; 2] = [&|site, stream| site.cut(stream.x), &|site, stream| {
        site.bench.handle_event(stream.x, ExchangeEvent::ReadClosed);
        site.take();
    }];
    for step in steps {
        for end in ends {
            let mut site = with_sse(|_| {});
            let stream = Stream::open(&mut site);
            step(&mut site, &stream);
            end(&mut site, &stream);
            let x = site.post_at(&stream.target, Headers::new(), &call(3));
            assert_eq!(site.refusal(x).0, 404);
            assert!(site.at_rest());
        }
    }
}

// covers: SSE24-S-006, S3-26
#[test]
fn server_asks_and_notifies_on_the_stream() {
    let mut site = with_sse(|config| config.capabilities.tools.get_or_insert_default().list_changed = true);
    let stream = Stream::ready(&mut site);
    site.bench.server.publish(site.bench.now, Change::Tools);
    assert_eq!(site.said(stream.x), [r#"|{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#]);
    stream.post(&mut site, &call(2));
    let (responder, _) = site.handed();
    site.bench.answer(responder, Outcome::NeedInput { requests: vec![("r".into(), InputRequest::Roots)], state: None });
    let [said] = &site.said(stream.x)[..] else { panic!() };
    let Message::Request(asked) = message(event(said).1) else { panic!("{said}") };
    let response = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, asked.id);
    stream.post(&mut site, &response);
    let (responder, incoming) = site.handed();
    assert_eq!(incoming.inputs.len(), 1);
    site.complete(responder, "{}");
    assert_eq!(site.said(stream.x), [format!("|{}", answer(2))]);
    // Cancellation, and a ping.
    stream.post(&mut site, &call(3));
    let _ = site.handed();
    stream.post(&mut site, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#);
    assert!(matches!(site.event(), Some(Event::Cancelled(..))));
    stream.post(&mut site, &legacy("4", "ping", "{}"));
    assert_eq!(site.said(stream.x), [format!("|{}", answer(4))]);
}

// covers: SSE24-C-009
#[test]
fn revision_of_2026_does_not_exist_over_http_sse() {
    let mut site = with_sse(|_| {});
    let stream = Stream::open(&mut site);
    stream.post(&mut site, &modern_with("1", "server/discover", "{}", ""));
    let [said] = &site.said(stream.x)[..] else { panic!() };
    let error = error(event(said).1);
    assert_eq!(error.code, -32022);
    let data = Object::read(&error.data.unwrap()).unwrap();
    let supported: Vec<String> = data.required("supported").unwrap();
    assert_eq!(supported, ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
    let mut site = with_sse(|config| config.versions = Versions::new([ProtocolVersion::V2026_07_28]));
    let x = site.bare_at("/sse", "GET", Headers::new());
    assert_eq!(site.refusal(x).0, 503);
}

// covers: S2-26, S3-50
#[test]
fn stream_gets_comments_while_nothing_else_is_sent() {
    let mut site = with_sse(|_| {});
    let stream = Stream::ready(&mut site);
    site.unsent(stream.x, 0);
    for _ in 0..3 {
        site.pass(Duration::from_secs(15));
        assert_eq!(site.said(stream.x), [":"]);
    }
}

// covers: B-266, S3-50
#[test]
fn client_that_does_not_read_its_stream_cannot_fill_the_server() {
    let mut site = with_sse(|config| config.limits.server.max_unsent = 4096);
    let stream = Stream::ready(&mut site);
    let body = r#"{"content":[{"type":"text","text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}]}"#;
    let mut sent = 0;
    let refused = (2..1000).find(|id| {
        let x = site.post_at(&stream.target, Headers::new(), &call(*id));
        match &site.said(x)[..] {
            [said] if said == "202 " => {
                let (responder, _) = site.handed();
                site.complete(responder, body);
                sent += site.said(stream.x).iter().map(String::len).sum::<usize>();
                site.unsent(stream.x, sent);
                false
            }
            [said] => said.starts_with("503 "),
            other => panic!("{other:?}"),
        }
    });
    assert!(refused.is_some() && sent < 8192, "{sent}");
    site.unsent(stream.x, 0);
    stream.post(&mut site, &call(1001));
}

// covers: S3-50, B-066
#[test]
fn shutdown_answers_what_runs_and_ends_the_stream() {
    let mut site = with_sse(|_| {});
    let stream = Stream::ready(&mut site);
    stream.post(&mut site, &call(2));
    let (responder, _) = site.handed();
    site.bench.server.shutdown(site.bench.now, Duration::from_secs(5));
    let x = site.bare_at("/sse", "GET", Headers::new());
    assert_eq!(site.refusal(x).0, 503);
    site.complete(responder, "{}");
    assert_eq!(site.said(stream.x), [format!("|{}", answer(2)), "end".into()]);
    assert!(site.bench.server.is_terminated());
}

// covers: B-187, S3-50
#[test]
fn streams_count_towards_their_limit() {
    let mut site = with_sse(|config| (config.limits.server.max_streams, config.limits.server.client_shares) = (2, 1));
    let open = |site: &mut Site| site.bare_at("/sse", "GET", Headers::new());
    let first = Stream::open(&mut site);
    let client = site.session("2025-11-25", "{}");
    let own = site.bare("GET", client.headers());
    assert_eq!(site.head(own).status, 200);
    let x = open(&mut site);
    assert_eq!(site.refusal(x).0, 503, "together with those of Streamable HTTP");
    site.cut(own);
    let second = Stream::open(&mut site);
    let own = site.bare("GET", client.headers());
    assert_eq!(site.refusal(own).0, 503);
    site.cut(first.x);
    site.cut(second.x);
    for _ in 0..2 {
        Stream::open(&mut site);
    }
    let x = open(&mut site);
    assert_eq!(site.refusal(x).0, 503);
}

// covers: B-187
#[test]
fn one_client_has_a_share_of_the_streams() {
    let mut site = with_sse(|config| {
        config.limits.server.max_streams = 8;
        config.hosts = Hosts::Any;
    });
    let from = |site: &mut Site, address: &str| {
        site.peer = Peer::tcp(format!("{address}:1").parse().unwrap());
        let x = site.bare_at("/sse", "GET", Headers::new());
        site.head(x).status
    };
    let statuses = [(); 3].map(|()| from(&mut site, "192.0.2.1"));
    assert_eq!(statuses, [200, 200, 503]);
    assert_eq!(from(&mut site, "192.0.2.2"), 200);
}
