//! Redirects of HTTP requests (RFC 9110 section 15.4): which a client follows, and where they lead.
//! No exchange, no state.

use super::url::HttpTarget;
use crate::exchange::{Headers, Origin, Reach, RedirectRefusal};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;
use iri_string::types::{UriAbsoluteStr, UriReferenceStr};

/// The redirects that a client follows.
///
/// A status 307 or 308 repeats the request with its method and its body. A status 301, 302 or 303
/// is followed for a GET only, since it would turn a POST into a GET. But 301 and 302 repeat any
/// request too if the URLs differ only by a slash at the end of the path, within the origin: so
/// older frameworks redirect, and RFC 9110 section 15.4 only permits the change to GET. No redirect
/// from `https:` to `http:` is followed, and none to a URL that the request has already been at.
///
/// A redirect that is not followed is the [`HttpError`](crate::error::HttpError) of its request,
/// which tells the reason: [`RedirectRefusal`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Redirects {
    /// None.
    None,
    /// Those to the same scheme, host and port.
    SameOrigin {
        /// Maximum number in a row.
        max: u8,
    },
    /// Those to any `http:` or `https:` URL. To another origin the client sends neither
    /// credentials, nor header fields of the application, nor anything that belongs to a session.
    /// After an origin at a public address, every further one must be at a public address too
    /// ([`Reach::Public`]): it must not lead to what only this machine or its network can reach.
    /// An origin counts as public by the address to which the connection led. If that is unknown,
    /// as behind a proxy, it counts by its host: an address, or any name but `localhost`.
    Follow {
        /// Maximum number in a row.
        max: u8,
    },
}

impl Default for Redirects {
    /// Up to five within the origin: frameworks for servers redirect `/mcp` to `/mcp/`.
    fn default() -> Self {
        Self::SameOrigin { max: 5 }
    }
}

/// Returns whether a response with this status names another URL for the request.
pub(crate) const fn is_redirect(status: u16) -> bool {
    matches!(status, 301..=303 | 307 | 308)
}

/// The URLs that a request has been at, without the current one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hops(Vec<String>);

impl Hops {
    /// Returns whether nothing redirected the request.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns where a response redirects a request, and adds the current URL.
    ///
    /// # Errors
    /// [`RedirectRefusal`] if the request does not go there.
    pub(crate) fn follow(
        &mut self,
        redirects: Redirects,
        (method, current): (&str, &HttpTarget),
        (status, fields): (u16, &Headers),
    ) -> Result<HttpTarget, RedirectRefusal> {
        let (max, follows_all) = match redirects {
            Redirects::None => return Err(RedirectRefusal::Off),
            Redirects::SameOrigin { max } => (max, false),
            Redirects::Follow { max } => (max, true),
        };
        let target = location(current, fields).ok_or(RedirectRefusal::Location)?;
        let url = target.url();
        match () {
            () if !keeps_method(status, current, &target) && !matches!(method, "GET" | "HEAD") => {
                Err(RedirectRefusal::Method)
            }
            () if current.origin.tls && !target.origin.tls => Err(RedirectRefusal::Insecure),
            () if !follows_all && target.origin != current.origin => Err(RedirectRefusal::Origin),
            () if url == current.url() || self.0.contains(&url) => Err(RedirectRefusal::Loop),
            () if self.0.len() >= usize::from(max) => Err(RedirectRefusal::TooMany),
            () => {
                self.0.push(current.url());
                Ok(target)
            }
        }
    }
}

/// Where a request was that is redirected.
#[derive(Clone, Copy)]
pub(crate) struct HopFrom<'a> {
    pub(crate) origin: &'a Origin,
    /// The address to which the connection led, if that is known.
    pub(crate) address: Option<IpAddr>,
    /// The reach of the request.
    pub(crate) reach: Reach,
}

impl HopFrom<'_> {
    /// Returns the reach of the request at the origin to which it is redirected.
    ///
    /// # Errors
    /// [`RedirectRefusal::NotPublic`] if the host is an address beyond that reach. The driver asks
    /// for those to which a name resolves.
    pub(crate) fn reach(self, redirects: Redirects, to: &Origin) -> Result<Reach, RedirectRefusal> {
        let leaves = matches!(redirects, Redirects::Follow { .. }) && to != self.origin;
        let reach = match self.reach {
            // None of its addresses is public.
            Reach::Loopback => Reach::Loopback,
            _ if leaves && self.is_public() => Reach::Public,
            reach => reach,
        };
        match to.host.parse() {
            Ok(address) if !reach.allows(address) => Err(RedirectRefusal::NotPublic),
            Ok(_) | Err(_) => Ok(reach),
        }
    }

    fn is_public(self) -> bool {
        match self.origin.host.parse().ok().or(self.address) {
            Some(address) => Reach::Public.allows(address),
            None => !is_local(&self.origin.host),
        }
    }
}

/// Returns whether a name is one of this computer (RFC 6761 section 6.3).
fn is_local(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or_default();
    last.eq_ignore_ascii_case("localhost")
}

/// Returns whether a redirect with this status repeats a request with its method.
fn keeps_method(status: u16, from: &HttpTarget, to: &HttpTarget) -> bool {
    match status {
        307 | 308 => true,
        301 | 302 => from.origin == to.origin && differ_by_slash(&from.path, &to.path),
        _ => false,
    }
}

/// Returns whether two request targets differ only by a slash at the end of the path.
fn differ_by_slash(one: &str, other: &str) -> bool {
    let (one, other) = (one.split_once('?').unwrap_or((one, "")), other.split_once('?').unwrap_or((other, "")));
    let (short, long) = if one.0.len() < other.0.len() { (one, other) } else { (other, one) };
    long.0.strip_suffix('/') == Some(short.0) && short.1 == long.1
}

/// Returns the URL that the field `Location` names (RFC 9110 section 10.2.2). `None` if there is
/// not exactly one such field, or it names none.
fn location(current: &HttpTarget, fields: &Headers) -> Option<HttpTarget> {
    let mut all = fields.all("location");
    let (text, None) = (all.next()?.trim(), all.next()) else { return None };
    let reference = UriReferenceStr::new(text).ok()?;
    let base = current.url();
    let base = UriAbsoluteStr::new(&base).ok()?;
    HttpTarget::parse(&reference.resolve_against(base).to_string()).ok()
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec;

    const ALL: Redirects = Redirects::Follow { max: 5 };

    fn followed(
        redirects: Redirects,
        method: &str,
        from: &str,
        status: u16,
        to: &str,
    ) -> Result<String, RedirectRefusal> {
        let from = HttpTarget::parse(from).unwrap();
        let fields = Headers::new().with("Location", to);
        Hops::default().follow(redirects, (method, &from), (status, &fields)).map(|target| target.url())
    }

    // covers: REDIR-C-001, REDIR-C-002, REDIR-C-003, B-157
    #[test]
    fn method_is_never_changed() {
        for status in [301, 302, 303, 307, 308] {
            assert!(is_redirect(status));
            let keeps = matches!(status, 307 | 308);
            for method in ["POST", "DELETE"] {
                let to = followed(Redirects::default(), method, "http://a/mcp", status, "/other");
                assert_eq!(to.is_ok(), keeps, "{status} {method}");
                assert!(keeps || to == Err(RedirectRefusal::Method));
            }
            for method in ["GET", "HEAD"] {
                let to = followed(Redirects::default(), method, "http://a/mcp", status, "/other");
                assert_eq!(to, Ok("http://a/other".into()), "{status} {method}");
            }
        }
        for status in [200, 300, 304, 305, 306, 309, 400] {
            assert!(!is_redirect(status), "{status}");
        }
    }

    // covers: REDIR-C-003, B-157
    #[test]
    fn slash_at_the_end_keeps_the_method() {
        for status in [301, 302] {
            for (from, to, keeps) in [
                ("http://a/mcp", "/mcp/", true),
                ("http://a/mcp/", "/mcp", true),
                ("http://a/mcp", "http://a:80/mcp/", true),
                ("http://a/x/mcp?b=1&c", "/x/mcp/?b=1&c", true),
                ("http://a/mcp?b=1", "/mcp/?b=2", false),
                ("http://a/mcp?b=1", "/mcp/", false),
                ("http://a/mcp", "/mcp//", false),
                ("http://a/mcp", "/MCP/", false),
                ("http://a/mcp", "/mcp/x", false),
                ("http://a/mcp?/", "/mcp?", false),
                ("http://a/mcp", "http://a:81/mcp/", false),
                ("http://a/mcp", "http://b/mcp/", false),
            ] {
                let found = followed(ALL, "POST", from, status, to);
                assert_eq!(found.is_ok(), keeps, "{status} from {from} to {to}: {found:?}");
                assert!(keeps || found == Err(RedirectRefusal::Method), "{found:?}");
            }
        }
        let other = followed(ALL, "POST", "http://a/mcp", 303, "/mcp/");
        assert_eq!(other, Err(RedirectRefusal::Method), "303 means GET");
    }

    // covers: REDIR-C-006
    #[test]
    fn other_origins_need_leave_and_plain_text_is_never_entered() {
        let same = Redirects::default();
        for (from, to, by_default, by_follow) in [
            ("http://a/mcp", "https://a/mcp", Err(RedirectRefusal::Origin), Ok("https://a/mcp")),
            ("http://a/mcp", "http://b/mcp", Err(RedirectRefusal::Origin), Ok("http://b/mcp")),
            ("http://a/mcp", "http://a:81/mcp", Err(RedirectRefusal::Origin), Ok("http://a:81/mcp")),
            ("http://a/mcp", "http://A:80/x", Ok("http://a/x"), Ok("http://a/x")),
            ("https://a/mcp", "http://a/mcp/", Err(RedirectRefusal::Insecure), Err(RedirectRefusal::Insecure)),
            ("https://a/mcp", "http://b/", Err(RedirectRefusal::Insecure), Err(RedirectRefusal::Insecure)),
            ("https://a/mcp", "//b/x", Err(RedirectRefusal::Origin), Ok("https://b/x")),
            ("http://a/mcp", "ftp://a/mcp", Err(RedirectRefusal::Location), Err(RedirectRefusal::Location)),
            ("http://a/mcp", "file:///etc/passwd", Err(RedirectRefusal::Location), Err(RedirectRefusal::Location)),
            ("http://a/mcp", "http://user@a/x", Err(RedirectRefusal::Location), Err(RedirectRefusal::Location)),
            ("http://a/mcp", "http://a/ x", Err(RedirectRefusal::Location), Err(RedirectRefusal::Location)),
            ("http://a/mcp", "http://a:70000/", Err(RedirectRefusal::Location), Err(RedirectRefusal::Location)),
        ] {
            for (redirects, expected) in
                [(same, by_default), (ALL, by_follow), (Redirects::None, Err(RedirectRefusal::Off))]
            {
                let found = followed(redirects, "POST", from, 307, to);
                assert_eq!(found.as_deref().map_err(|e| *e), expected, "{from} to {to} by {redirects:?}");
            }
        }
    }

    // covers: REDIR-C-006, B-237
    #[test]
    fn no_hop_leads_from_a_public_server_to_another_address() {
        let reach = |redirects, from: &str, address: Option<&str>, reach, to: &str| {
            let origin = |url: &str| HttpTarget::parse(url).unwrap().origin;
            let address = address.map(|address| address.parse().unwrap());
            HopFrom { origin: &origin(from), address, reach }.reach(redirects, &origin(to))
        };
        let follow = |from, address, to| reach(ALL, from, address, Reach::Any, to);
        let refused = Err(RedirectRefusal::NotPublic);
        for (from, address) in [
            ("https://1.1.1.1", None),
            ("https://[2606:4700::1]", None),
            ("https://example.com", Some("1.1.1.1")),
            // Unknown: behind a proxy.
            ("https://example.com", None),
            ("http://localhost", Some("1.1.1.1")),
        ] {
            for to in ["http://127.0.0.1:9", "http://169.254.169.254", "http://[::1]", "http://[::ffff:10.0.0.1]"] {
                assert_eq!(follow(from, address, to), refused, "{from} to {to}");
            }
            // The driver asks for the addresses of names.
            for to in ["http://1.0.0.1", "http://example.org", "http://localhost:9", "http://2130706433"] {
                assert_eq!(follow(from, address, to), Ok(Reach::Public), "{from} to {to}");
            }
        }
        for (from, address) in [
            ("http://127.0.0.1", None),
            ("http://10.0.0.1", Some("10.0.0.1")),
            ("http://intranet.example", Some("10.0.0.1")),
            ("http://localhost", None),
            ("http://x.localhost.", None),
        ] {
            for to in ["http://127.0.0.1:9", "http://example.org"] {
                assert_eq!(follow(from, address, to), Ok(Reach::Any), "{from} to {to}");
                assert_eq!(reach(ALL, from, address, Reach::Public, "http://10.1.2.3"), refused);
            }
        }
        let same = Redirects::default();
        for redirects in [same, ALL] {
            let to = "http://example.com";
            assert_eq!(reach(redirects, to, Some("1.1.1.1"), Reach::Any, to), Ok(Reach::Any), "nothing is left");
        }
        assert_eq!(reach(same, "http://example.com", None, Reach::Public, "http://example.com"), Ok(Reach::Public));
        // A hop widens no reach: behind a proxy, the address of every server is unknown.
        for (before, after) in
            [(Reach::Loopback, Reach::Loopback), (Reach::Site, Reach::Public), (Reach::Near, Reach::Public)]
        {
            assert_eq!(reach(ALL, "http://example.com", None, before, "http://example.org"), Ok(after));
            assert_eq!(reach(ALL, "http://example.com", None, before, "http://169.254.169.254"), refused);
        }
        for (to, allowed) in [("http://10.1.2.3", [true, true, false]), ("http://127.0.0.1", [false, true, true])] {
            for (within, is_allowed) in [Reach::Site, Reach::Near, Reach::Loopback].into_iter().zip(allowed) {
                let expected = if is_allowed { Ok(within) } else { refused };
                assert_eq!(
                    reach(ALL, "http://intranet", Some("10.0.0.1"), within, to),
                    expected,
                    "{to} within {within:?}"
                );
            }
        }
    }

    // covers: REDIR-C-007
    #[test]
    fn location_is_resolved_against_the_current_url() {
        for (reference, expected) in [
            ("/mcp/", "http://a:8/mcp/"),
            ("mcp/", "http://a:8/x/mcp/"),
            ("../y", "http://a:8/y"),
            ("?b=2", "http://a:8/x/mcp?b=2"),
            ("//a:8/z", "http://a:8/z"),
            ("http://a:8/z#part", "http://a:8/z"),
            (" /mcp/ ", "http://a:8/mcp/"),
        ] {
            let found = followed(Redirects::default(), "POST", "http://a:8/x/mcp?a=1", 308, reference);
            assert_eq!(found, Ok(expected.into()), "{reference}");
        }
        let from = HttpTarget::parse("http://a/").unwrap();
        for fields in [Headers::new(), Headers::new().with("Location", "/b").with("Location", "/c")] {
            let found = Hops::default().follow(ALL, ("GET", &from), (302, &fields));
            assert_eq!(found, Err(RedirectRefusal::Location), "{fields:?}");
        }
    }

    // covers: REDIR-C-007
    #[test]
    fn loops_and_long_chains_end() {
        let at = |n: usize| HttpTarget::parse(&format!("http://a/{n}")).unwrap();
        let to = |n: usize| Headers::new().with("Location", format!("/{n}"));
        let mut hops = Hops::default();
        for n in 0..5 {
            let next = hops.follow(Redirects::default(), ("POST", &at(n)), (307, &to(n + 1)));
            assert_eq!(next.map(|next| next.url()), Ok(at(n + 1).url()));
        }
        let mut follow = |from, next| hops.follow(Redirects::default(), ("POST", &at(from)), (307, &to(next)));
        assert_eq!(follow(5, 6), Err(RedirectRefusal::TooMany));
        assert_eq!(vec![follow(5, 5), follow(5, 0), follow(5, 4)], vec![Err(RedirectRefusal::Loop); 3]);
        let mut none = Hops::default();
        let refused = none.follow(Redirects::SameOrigin { max: 0 }, ("GET", &at(0)), (302, &to(1)));
        assert_eq!(refused, Err(RedirectRefusal::TooMany));
    }
}
