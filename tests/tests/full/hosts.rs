//! Each host that is accepted as ours is the same host to browsers: the check uses their URL
//! parser, for any text.

use mcp_proto::server::Hosts;
use proptest::prelude::*;
use std::net::IpAddr;
use url::{Host, Url};

/// Parts of names that an attacker could use to pass for another host.
const PIECES: [&str; 60] = [
    "localhost",
    "LOCALHOST",
    "127.0.0.1",
    "127",
    "1",
    "0",
    "01",
    "0x7f",
    "0X7F",
    "0x",
    "2130706433",
    "[::1]",
    "[::]",
    "[",
    "]",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "mcp.example",
    "MCP.example",
    "evil.example",
    "evil",
    "example",
    ":",
    ":80",
    ":443",
    ":8443",
    ":08443",
    ":65536",
    ":+1",
    ".",
    "..",
    "-",
    "_",
    "@",
    "/",
    "\\",
    "?",
    "#",
    "%",
    "%2e",
    "%6c",
    "%00",
    "%25eth0",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\0",
    ",",
    ";",
    "*",
    "\u{3002}",
    "\u{ff0e}",
    "\u{ff41}",
    "\u{e9}",
    "\u{ad}",
    "\u{200d}",
    "xn--",
    "http://",
];

fn made_up() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES.to_vec());
    prop_oneof![
        4 => prop::collection::vec(piece.clone(), 1..6).prop_map(|pieces| pieces.concat()),
        1 => (prop::sample::select(vec!["localhost", "127.0.0.1", "[::1]", "mcp.example:8443", "[2001:db8::1]"]), any::<char>(), 0usize..16)
            .prop_map(|(host, c, at)| {
                let mut text = host.to_owned();
                text.insert(at.min(text.len()), c);
                text
            }),
        1 => (0u32.., any::<u16>()).prop_map(|(address, port)| format!("{}:{port}", std::net::Ipv4Addr::from(address))),
        1 => any::<String>(),
    ]
}

fn listed() -> Hosts {
    Hosts::Only(["mcp.example:8443", "2001:db8::1", "10.0.0.1"].map(String::from).to_vec())
}

/// Returns whether a browser connects to this machine for this URL.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns whether a browser connects to a host of the list.
fn is_listed(url: &Url) -> bool {
    let is = |address: &str| address.parse::<IpAddr>().expect("an address");
    match url.host() {
        Some(Host::Domain(name)) => name == "mcp.example" && url.port() == Some(8443),
        Some(Host::Ipv4(address)) => IpAddr::from(address) == is("10.0.0.1"),
        Some(Host::Ipv6(address)) => IpAddr::from(address) == is("2001:db8::1"),
        None => false,
    }
}

/// Returns the URL as a browser parses it, if it has only a host and a port.
fn read(scheme: &str, authority: &str) -> Option<Url> {
    let url = Url::parse(&format!("{scheme}://{authority}")).ok()?;
    let bare = url.username().is_empty() && url.password().is_none() && url.path() == "/";
    (bare && url.query().is_none() && url.fragment().is_none()).then_some(url)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    // covers: B-180, B-181, B-182
    #[test]
    fn hosts_that_browsers_read_differently_are_refused(text in made_up()) {
        for (hosts, is_ours) in [(Hosts::Loopback, is_loopback as fn(&Url) -> bool), (listed(), is_listed)] {
            // White space around a field is not part of it.
            let host = text.trim_matches([' ', '\t']);
            if hosts.allows_host(&text) {
                for scheme in ["http", "https"] {
                    prop_assert!(read(scheme, host).is_some_and(|url| is_ours(&url)), "{text:?} passes");
                }
            }
            for scheme in ["http", "https"] {
                let origin = format!("{scheme}://{host}");
                if hosts.allows_origin(&origin) {
                    prop_assert!(read(scheme, host).is_some_and(|url| is_ours(&url)), "{origin:?} passes");
                }
            }
            if hosts.allows_origin(&text) {
                let (scheme, host) = host.split_once("://").expect("an origin");
                prop_assert!(read(scheme, host).is_some_and(|url| is_ours(&url)), "{text:?} passes");
            }
        }
    }

    // covers: B-181, B-183
    #[test]
    fn origin_of_a_local_page_in_a_browser_is_accepted(name in prop::sample::select(vec!["localhost", "127.0.0.1", "[::1]", "127.1.2.3"]), port: u16, tls: bool) {
        let scheme = if tls { "https" } else { "http" };
        let url = Url::parse(&format!("{scheme}://{name}:{port}/a/page?of#ours")).expect("a url");
        let origin = url.origin().ascii_serialization();
        prop_assert!(Hosts::Loopback.allows_origin(&origin), "{}", origin);
        prop_assert!(Hosts::Loopback.allows_host(&url[url::Position::BeforeHost..url::Position::AfterPort]));
    }
}
