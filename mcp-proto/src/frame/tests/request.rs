use super::http::{get, limits};
use super::*;
use crate::exchange::{Headers, RequestHead};
use proptest::prelude::*;

// covers: B-166
#[test]
fn requests_are_written_with_their_length() {
    let head = |method: &str, headers| RequestHead { method: method.into(), target: "/mcp".into(), headers };
    let mut conn = Conn::new(Kind::HttpClient, &limits());
    let headers = Headers::new().with("host", "h:1").with("Content-Length", "9").with("a", "b\tc é");
    conn.encode(Outgoing::Request { head: head("POST", headers), body: "{}".into() });
    assert_eq!(
        conn.poll_write().unwrap(),
        "POST /mcp HTTP/1.1\r\nhost: h:1\r\na: b\tc é\r\ncontent-length: 2\r\naccept-encoding: identity\r\n\r\n{}"
            .as_bytes()
    );
    assert_eq!(conn.poll_write(), None);
    // Our own server reads what our client writes.
    let mut peer = Conn::new(Kind::HttpServer, &limits());
    peer.bytes("POST /mcp HTTP/1.1\r\nhost: h:1\r\na: b\tc é\r\ncontent-length: 2\r\n\r\n{}".into());
    let Some(Item::Request(read)) = peer.poll_item() else { panic!() };
    assert_eq!(read.headers.get("a"), Some("b\tc é"));
    // A body in flight is not the place for another request.
    conn.encode(get());
    assert!(conn.broken().is_some() && conn.poll_write().is_none());
}

proptest! {
    /// A request is written so that a server reads what was meant, or not at all.
    #[test]
    fn no_text_in_a_head_means_more_than_itself(
        method in prop::sample::select(&["GET", "POST", "A\r\nB", "G T", "", "DELETE\n"][..]),
        target in proptest::collection::vec(prop::sample::select(TEXT), 0..4),
        name in proptest::collection::vec(prop::sample::select(TEXT), 0..4),
        value in proptest::collection::vec(prop::sample::select(TEXT), 0..6),
        body in prop::sample::select(&["", "{}", "\r\n\r\nGET / HTTP/1.1\r\n"][..]),
    ) {
        let (target, name, value) = (format!("/{}", target.concat()), name.concat(), value.concat());
        let headers = Headers::new().with("host", "h").with(&name, value.clone());
        let head = RequestHead { method: method.into(), target, headers };
        let mut conn = Conn::new(Kind::HttpClient, &FrameLimits::default());
        conn.encode(Outgoing::Request { head: head.clone(), body: body.into() });
        let bytes = written(&mut conn);
        prop_assert_eq!(bytes.is_empty(), conn.broken().is_some());
        if !bytes.is_empty() {
            let mut peer = Conn::new(Kind::HttpServer, &FrameLimits::default());
            peer.bytes(bytes.into());
            let mut items = Vec::new();
            poll(&mut peer, &mut items);
            let Item::Request(read) = items.remove(0) else { panic!("{items:?}") };
            prop_assert_eq!((&read.method, &read.target), (&head.method, &head.target));
            let ours = ["content-length", "accept-encoding", "connection"];
            let fields: Vec<_> = read.headers.iter().filter(|(name, _)| !ours.contains(name)).collect();
            let expected = [("host", "h"), (&name, value.trim_matches([' ', '\t']))];
            prop_assert_eq!(fields, expected);
            let body = (!body.is_empty()).then(|| Item::Body(body.into()));
            prop_assert_eq!(items, body.into_iter().chain([Item::End]).collect::<Vec<_>>());
        }
    }
}

const TEXT: &[&str] = &[
    "a",
    "X-b",
    ":",
    " ",
    "\t",
    "\r\n",
    "\n",
    "\r",
    "\0",
    "\u{7f}",
    "é",
    "\u{85}",
    "/?x=%0D%0A",
    "\"",
    "(",
    "\u{1}",
    "#",
];
