//! The reference in an `endpoint` event of HTTP+SSE (2024-11-05 transports): which URL it names,
//! and whether the client may post there. RFC 3986 section 5 resolves it. No exchange, no stream.

use crate::client::compat::{EndpointOrigin, EndpointRule};
use crate::fetch::HttpTarget;
use crate::peer_text::beginning;
use alloc::format;
use alloc::string::{String, ToString};
use iri_string::types::{UriAbsoluteStr, UriReferenceStr, UriReferenceString};

/// Characters of a reference in a text for people.
const SHOWN: usize = 200;

/// Returns the URL that a reference names, as seen from the URL of the stream.
///
/// # Errors
/// A text for people if the reference is none, or names an origin that is not allowed.
pub(super) fn resolve(
    stream: &HttpTarget,
    reference: &[u8],
    rule: EndpointRule,
    allowed: &EndpointOrigin,
) -> Result<HttpTarget, String> {
    let text = core::str::from_utf8(reference).map_err(|_| String::from("an endpoint that is not UTF-8"))?.trim();
    let shown = || beginning(text, SHOWN).to_string();
    let invalid = || format!("an endpoint that is not a URL: {}", shown());
    let parsed = UriReferenceStr::new(text).map_err(|_| invalid())?;
    if text.is_empty() || text.starts_with('#') {
        // It would be the URL of the stream itself.
        return Err(invalid());
    }
    let is_relative_path = parsed.scheme_str().is_none()
        && parsed.authority_str().is_none()
        && !parsed.path_str().is_empty()
        && !parsed.path_str().starts_with('/');
    let rooted = match rule {
        EndpointRule::RootReplace if is_relative_path => Some(format!("/{text}")),
        EndpointRule::RootReplace | EndpointRule::Rfc3986 => None,
    };
    let rooted = rooted.map(UriReferenceString::try_from).transpose().map_err(|_| invalid())?;
    let reference = rooted.as_deref().unwrap_or(parsed);
    let base = stream.url();
    let base = UriAbsoluteStr::new(&base).map_err(|_| invalid())?;
    let target = HttpTarget::parse(&reference.resolve_against(base).to_string()).map_err(|_| invalid())?;
    let is_allowed = target.origin == stream.origin || *allowed == EndpointOrigin::Any || allowed.lists(&target.origin);
    if is_allowed { Ok(target) } else { Err(format!("an endpoint at another origin: {}", shown())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "http://Example.com:8080/a/sse?key=1";

    fn resolved(reference: &str, rule: EndpointRule, allowed: &EndpointOrigin) -> Option<String> {
        let stream = HttpTarget::parse(STREAM).unwrap();
        resolve(&stream, reference.as_bytes(), rule, allowed).ok().map(|target| target.url())
    }

    // covers: S4-06, S4-07, S4-08, SSE24-C-005, B-262, B-267
    #[test]
    fn reference_is_resolved_against_the_url_of_the_stream() {
        for (reference, by_rfc, by_root) in [
            ("/messages?sessionId=1", "/messages?sessionId=1", "/messages?sessionId=1"),
            ("?sessionId=1", "/a/sse?sessionId=1", "/a/sse?sessionId=1"),
            ("messages", "/a/messages", "/messages"),
            ("messages?s=1", "/a/messages?s=1", "/messages?s=1"),
            ("./messages", "/a/messages", "/messages"),
            ("../messages", "/messages", "/messages"),
            ("/messages/", "/messages/", "/messages/"),
            ("http://example.com:8080/m?s=1", "/m?s=1", "/m?s=1"),
            ("//example.com:8080/m", "/m", "/m"),
            (" /messages \n", "/messages", "/messages"),
            ("/messages?s=a%2Fb#part", "/messages?s=a%2Fb", "/messages?s=a%2Fb"),
        ] {
            for (rule, expected) in [(EndpointRule::Rfc3986, by_rfc), (EndpointRule::RootReplace, by_root)] {
                let found = resolved(reference, rule, &EndpointOrigin::Same);
                assert_eq!(found, Some(format!("http://example.com:8080{expected}")), "{reference} {rule:?}");
            }
        }
    }

    // covers: B-262, B-263, X-22, R-22
    #[test]
    fn other_origins_are_refused_unless_the_application_allows_them() {
        let other = HttpTarget::parse("https://other.example/").unwrap().origin;
        let list = EndpointOrigin::List([other].into());
        for (reference, by_list, by_any) in [
            ("https://other.example/m", true, true),
            ("https://other.example:8443/m", false, true),
            ("http://other.example/m", false, true),
            ("https://example.com:8080/m", false, true),
            ("http://example.com/m", false, true),
            ("//other.example/m", false, true),
            ("http://user@example.com:8080/m", false, false),
            ("ftp://example.com:8080/m", false, false),
            ("javascript:alert(1)", false, false),
            ("", false, false),
            ("#part", false, false),
            ("/a b", false, false),
            ("/\u{e9}", false, false),
        ] {
            let allowed = |allowed| resolved(reference, EndpointRule::Rfc3986, allowed).is_some();
            assert!(!allowed(&EndpointOrigin::Same), "{reference}");
            assert_eq!(allowed(&list), by_list, "{reference}");
            assert_eq!(allowed(&EndpointOrigin::Any), by_any, "{reference}");
        }
        let stream = HttpTarget::parse(STREAM).unwrap();
        assert!(resolve(&stream, b"/\xff", EndpointRule::Rfc3986, &EndpointOrigin::Any).is_err());
    }
}
