//! Requests to open a web page (url mode): the request, and the rules for its URL (2025-11-25
//! elicitation, safe URL handling).

use crate::rpc::DecodeError;
use alloc::string::String;
use core::net::Ipv4Addr;
use iri_string::types::UriStr;

/// A web page, for what must not pass through the client: secrets, payments, third-party
/// authorization.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct UrlRequest {
    /// The message to the user: why the page is needed.
    pub message: String,
    /// The URL of the page. It contains nothing about the user that is sensitive, and does not log
    /// the user in. The server checks that only the user who was asked can use it.
    pub url: String,
    /// Identifies the request in `notifications/elicitation/complete`, and among all requests of
    /// the server. Only in 2025-11-25. A server that sets none sends
    /// [`Cx::elicitation_id`](crate::Cx::elicitation_id).
    pub elicitation_id: Option<String>,
}

impl UrlRequest {
    /// Creates a request to open this page. The engine refuses a URL that
    /// [`check`](Self::check) does.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { message: message.into(), url: url.into(), elicitation_id: None }
    }

    /// Sets the id. It must be unpredictable, and no other request of the server may have it.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.elicitation_id = Some(id.into());
        self
    }

    /// Checks the URL: absolute (RFC 3986), `http` or `https`, with a host and without credentials.
    ///
    /// ```
    /// # use mcp_proto::UrlRequest;
    /// assert!(UrlRequest::new("Pay", "https://pay.example/4711").check().is_ok());
    /// assert!(UrlRequest::new("Pay", "https://ann:secret@pay.example/").check().is_err());
    /// assert!(UrlRequest::new("Pay", "file:///etc/passwd").check().is_err());
    /// ```
    ///
    /// # Errors
    /// [`DecodeError`] with the rule that it violates.
    pub fn check(&self) -> Result<(), DecodeError> {
        self.page().map(drop)
    }

    /// Returns the host of the URL, which a client shows beside the whole URL. `None` if
    /// [`check`](Self::check) refuses the URL.
    ///
    /// ```
    /// # use mcp_proto::UrlRequest;
    /// let request = UrlRequest::new("Pay", "https://pay.example:8443/4711?from=bank.example");
    /// assert_eq!(request.host(), Some("pay.example"));
    /// ```
    pub fn host(&self) -> Option<&str> {
        self.page().ok().map(|page| page.host)
    }

    /// Returns whether the page is safe from changes on the way: its URL is `https`, or its host is
    /// this computer. False if [`check`](Self::check) refuses the URL.
    pub fn is_secure(&self) -> bool {
        self.page().is_ok_and(|page| page.tls || is_loopback(page.host))
    }

    fn page(&self) -> Result<PageUrl<'_>, DecodeError> {
        let url = UriStr::new(&self.url).map_err(|_| DecodeError::new("`url` is not an absolute URL"))?;
        let tls = match url.scheme_str() {
            scheme if scheme.eq_ignore_ascii_case("http") => false,
            scheme if scheme.eq_ignore_ascii_case("https") => true,
            _ => return Err(DecodeError::new("`url` is neither `http` nor `https`")),
        };
        let authority = url.authority_components().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| DecodeError::new("`url` has no host"))?;
        if authority.userinfo().is_some() {
            return Err(DecodeError::new("`url` contains credentials"));
        }
        Ok(PageUrl { tls, host: authority.host() })
    }
}

/// The parts of a URL that matter for its safety.
struct PageUrl<'a> {
    tls: bool,
    host: &'a str,
}

/// Returns whether a host is this computer (RFC 6761 section 6.3).
fn is_loopback(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    let top = name.rsplit('.').next().unwrap_or_default();
    top.eq_ignore_ascii_case("localhost")
        || host == "[::1]"
        || host.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
}
