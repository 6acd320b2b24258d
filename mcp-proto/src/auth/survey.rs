//! The search for the authorization server of a server as a value of its own, for diagnosis.

use super::config::AuthConfig;
use super::discovery::{Discovery, Found, Next};
use super::dpop::ProofAlgs;
use super::jws::Alg;
use super::scopes::Scopes;
use crate::error::{AuthError, TriedUrl};
use crate::fetch::{FetchError, FetchRequest, FetchResponse, HttpTarget};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

/// Finds out which authorization server a login at a server would use, and what it offers. It
/// registers nothing, opens no page, and asks for no token. The caller makes the requests, one
/// after the other:
///
/// ```
/// # #[cfg(feature = "auth")] {
/// use mcp_proto::auth::{AuthConfig, Survey};
/// use mcp_proto::client::{FetchResponse, HttpTarget};
///
/// let server = HttpTarget::parse("https://example.com/mcp").unwrap();
/// let mut survey = Survey::new(AuthConfig::new("my-app"), server, &[], None);
/// while let Some(request) = survey.next_request() {
///     // In place of an HTTP client: nothing is found.
///     let response = FetchResponse::new(404, request.headers, "", "https://example.com/");
///     survey.answer(&Ok(Box::new(response)));
/// }
/// assert!(survey.tried()[0].url.starts_with("https://example.com/.well-known/"));
/// # drop(survey.end());
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Survey {
    config: AuthConfig,
    server: HttpTarget,
    peer: Option<IpAddr>,
    discovery: Discovery,
    end: Option<Result<SurveyedIssuer, AuthError>>,
}

/// The authorization server that a login would use.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SurveyedIssuer {
    /// The issuer, as its own document spells it.
    pub issuer: String,
    /// Whether nothing has metadata, and these are the endpoints that 2025-03-26 names without it.
    pub is_default: bool,
    /// The identifier of the server that the tokens are for.
    pub resource: String,
    /// Whether it registers clients (RFC 7591).
    pub registers: bool,
    /// Whether it reads client metadata documents.
    pub reads_documents: bool,
    /// How clients may authenticate at its token endpoint, as it lists it.
    pub client_auth: Vec<String>,
    /// The methods of PKCE that it lists (RFC 7636).
    pub pkce: Vec<String>,
    /// Whether users can log in at another device (RFC 8628).
    pub has_device_grant: bool,
    /// The algorithms for proofs of possession that it lists (RFC 9449), of those of this client.
    pub proof_algs: Vec<Alg>,
    /// Whether the server asks for tokens that are bound to a key.
    pub wants_proofs: bool,
    /// The scopes that the server lists.
    pub scopes: Scopes,
    /// The scopes that the issuer lists.
    pub issuer_scopes: Scopes,
    /// The deviations from specifications that were tolerated.
    pub deviations: Vec<String>,
}

impl Survey {
    /// Creates the search for a login at this server with this configuration. `challenge` are the
    /// `WWW-Authenticate` fields of its refusal, if there was one. `peer` is its address, if it is
    /// known: the URLs of a server on this machine may lead to this machine.
    #[cfg(any(test, feature = "auth"))]
    pub fn new(config: AuthConfig, server: HttpTarget, challenge: &[String], peer: Option<IpAddr>) -> Self {
        let challenge = super::challenge::TokenChallenge::of(challenge.iter().map(String::as_str));
        let hint = challenge.and_then(|challenge| challenge.resource_metadata);
        let discovery = Discovery::new(&config, &server, hint.as_deref(), None, None);
        Self { config, server, peer, discovery, end: None }
    }

    /// Returns the next request: the same one until there is an [`answer`](Self::answer). `None`
    /// once the search has ended.
    pub fn next_request(&mut self) -> Option<FetchRequest> {
        match self.discovery.next(&self.config, &self.server, self.peer) {
            Next::Fetch(request) => return Some(*request),
            Next::Found(found) => self.end = Some(Ok(SurveyedIssuer::new(*found))),
            Next::Failed(why) => self.end = Some(Err(why)),
        }
        None
    }

    /// Takes the end of the request that [`next_request`](Self::next_request) returned.
    pub fn answer(&mut self, outcome: &Result<Box<FetchResponse>, FetchError>) {
        self.discovery.answer(outcome);
    }

    /// Returns the URLs so far, in order. `why` is empty if the document is used.
    pub fn tried(&self) -> &[TriedUrl] {
        self.discovery.tried()
    }

    /// Returns how the search has ended. `None` before that.
    pub const fn end(&self) -> Option<&Result<SurveyedIssuer, AuthError>> {
        self.end.as_ref()
    }
}

impl SurveyedIssuer {
    fn new(Found { resource, identifier, issuer, reports }: Found) -> Self {
        Self {
            issuer: issuer.issuer,
            is_default: issuer.is_default,
            resource: identifier,
            registers: issuer.registration_endpoint.is_some(),
            reads_documents: issuer.client_id_metadata_document,
            client_auth: issuer.token_auth_methods.unwrap_or_default(),
            pkce: issuer.code_challenge_methods.unwrap_or_default(),
            has_device_grant: issuer.device_endpoint.is_some(),
            proof_algs: issuer.dpop.map(ProofAlgs::to_vec).unwrap_or_default(),
            wants_proofs: resource.as_ref().is_some_and(|resource| resource.dpop.is_some()),
            scopes: resource.and_then(|resource| resource.scopes_supported).unwrap_or_default(),
            issuer_scopes: issuer.scopes_supported.unwrap_or_default(),
            deviations: reports.iter().map(ToString::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Headers;
    use alloc::format;

    /// Answers each request with the document at its URL, and 404 without one.
    fn survey(challenge: &[String], documents: &[(&str, &str)]) -> Survey {
        let server = HttpTarget::parse("https://h/mcp").unwrap();
        let mut survey = Survey::new(AuthConfig::new("test"), server, challenge, None);
        while let Some(request) = survey.next_request() {
            assert_eq!(survey.end(), None);
            let url = request.url.url();
            let (status, body) = match documents.iter().find(|(at, _)| *at == url) {
                Some((_, document)) => (200, *document),
                None => (404, ""),
            };
            survey.answer(&Ok(Box::new(FetchResponse::new(status, Headers::new(), body.as_bytes().to_vec(), url))));
        }
        survey
    }

    fn tried(survey: &Survey) -> Vec<(&str, &str)> {
        survey.tried().iter().map(|tried| (&*tried.url, &*tried.why)).collect()
    }

    #[test]
    fn survey_names_each_url_and_what_the_issuer_offers() {
        let resource = r#"{"resource":"https://h/mcp","authorization_servers":["https://i"],
            "scopes_supported":["a"],"dpop_bound_access_tokens_required":true}"#;
        let issuer = r#"{"issuer":"https://i/","token_endpoint":"https://i/t","registration_endpoint":"https://i/r",
            "authorization_endpoint":"https://i/a","code_challenge_methods_supported":["S256"],
            "token_endpoint_auth_methods_supported":["none"],"scopes_supported":["b"],
            "dpop_signing_alg_values_supported":["ES256","RS256"]}"#;
        let challenge = [r#"Bearer resource_metadata="https://h/meta""#.to_string()];
        let documents = [
            ("https://h/.well-known/oauth-protected-resource", resource),
            ("https://i/.well-known/openid-configuration", issuer),
        ];
        let survey = survey(&challenge, &documents);
        let urls = [
            ("https://h/meta", "HTTP 404"),
            ("https://h/.well-known/oauth-protected-resource/mcp", "HTTP 404"),
            ("https://h/.well-known/oauth-protected-resource", ""),
            ("https://i/.well-known/oauth-authorization-server", "HTTP 404"),
            ("https://i/.well-known/openid-configuration", ""),
        ];
        assert_eq!(tried(&survey), urls);
        let found = survey.end().unwrap().as_ref().unwrap();
        assert_eq!((&*found.issuer, &*found.resource), ("https://i/", "https://h/mcp"));
        assert!(found.registers && !found.reads_documents && !found.has_device_grant && found.wants_proofs);
        assert_eq!((&*found.client_auth, &*found.pkce), (&["none".to_string()][..], &["S256".to_string()][..]));
        assert_eq!((found.scopes.to_string(), found.issuer_scopes.to_string()), ("a".into(), "b".into()));
        assert_eq!(found.proof_algs, [Alg::Es256]);
        assert!(found.deviations[0].contains("is of the issuer https://i/"), "{:?}", found.deviations);
    }

    #[test]
    fn survey_says_why_there_is_no_issuer() {
        let none = survey(&[], &[]);
        let found = none.end().unwrap().as_ref().unwrap();
        assert!(found.is_default && none.tried().iter().all(|tried| tried.why == "HTTP 404"), "{none:?}");
        // A document that is used is no reason.
        let named = r#"{"resource":"https://h/mcp","authorization_servers":["https://i"]}"#;
        let lost = survey(&[], &[("https://h/.well-known/oauth-protected-resource/mcp", named)]);
        let AuthError::Discovery { tried: urls } = lost.end().unwrap().as_ref().unwrap_err() else { panic!() };
        assert_eq!((urls.len(), lost.tried().len(), &*lost.tried()[0].why), (2, 3, ""));
        // One for another server ends the search.
        let other = r#"{"resource":"https://other/mcp","authorization_servers":["https://i"]}"#;
        let found = survey(&[], &[("https://h/.well-known/oauth-protected-resource/mcp", other)]);
        let why = found.end().unwrap().as_ref().unwrap_err();
        assert!(matches!(why, AuthError::ResourceMismatch { .. }), "{why}");
        assert_eq!(found.tried()[0].why, format!("{why}"));
    }
}
