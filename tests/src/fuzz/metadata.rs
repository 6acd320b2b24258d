//! The documents of a login: metadata of the resource and of issuers, and registrations.

use super::login::{self, ISSUER, Login, SERVER, Surroundings, TOKEN};
use mcp_proto::auth::{
    AuthConfig, AuthMethod, Browse, ClientSource, Entry, Record, RegisteredClient, Scopes, TokenType, Tokens,
};
use mcp_proto::client::{FetchError, FetchRequest, FetchResponse};

/// The secrets that the authorization server [`ISSUER`] gave before.
const SECRETS: [&str; 2] = ["canary-of-the-client", "canary-of-the-refresh"];

/// Zeros separate the documents of the fuzzer, which are the first responses. The first byte of
/// each selects its status.
///
/// A login with them ends, within its limits, and nothing stays open. Every request and every page
/// has a URL that the policy allows. The secrets of an issuer leave only after its own document was
/// read. A registration names the redirect URI of the login.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let Some((first, documents)) = data.split_first() else { return };
    let flag = |bit: u8| first >> bit & 1 == 1;
    let mut config = AuthConfig::new("fuzz");
    config.compat.missing_issuer = flag(0);
    config.compat.unlisted_pkce = flag(1);
    config.compat.issuer_slash = !flag(2);
    config.compat.first_revision = !flag(3);
    let documents = documents.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect::<Vec<_>>().into_iter();
    let mut around = Documents { documents, knows_issuer: false };
    let login = Login::run(config, flag(4).then(record), &mut around);
    for request in &login.fetched {
        if request.body.starts_with(b"{") && request.method == "POST" {
            let body: serde_json::Value = serde_json::from_slice(&request.body).expect("it is JSON");
            let uris = body["redirect_uris"].as_array().expect("it has redirect URIs");
            // An issuer that refuses one of them gets the other.
            let is_own = |uri: &str| ["http://127.0.0.1:", "http://localhost:"].iter().any(|own| uri.starts_with(own));
            assert!(uris.iter().all(|uri| uri.as_str().is_some_and(is_own)), "{uris:?}");
        }
    }
    if let Some(Ok(_)) = login.ends.last() {
        let tokens = login.record.iter().flat_map(|record| &record.entries).flat_map(|entry| &entry.tokens);
        assert!(tokens.into_iter().any(|tokens| tokens.access_token.expose() == TOKEN), "the token is stored");
    }
}

fn record() -> Record {
    let client = RegisteredClient {
        client_id: "client".into(),
        client_secret: Some(SECRETS[0].into()),
        secret_expires: None,
        method: AuthMethod::Post,
        redirect_uri: Some("http://127.0.0.1:4711/callback".into()),
        scopes: Scopes::new(),
        source: ClientSource::Dynamic,
    };
    let tokens = Tokens {
        access_token: "an-old-token".into(),
        token_type: TokenType::Bearer,
        dpop_key: None,
        refresh_token: Some(SECRETS[1].into()),
        expires: Some(1),
        lifetime: None,
        granted: Scopes::new(),
        generation: 1,
    };
    let (issuer, resource, tokens) = (ISSUER.into(), SERVER.into(), Some(tokens));
    Record { entries: vec![Entry { issuer, resource, client, requested: Scopes::new(), tokens }] }
}

struct Documents {
    documents: std::vec::IntoIter<Vec<u8>>,
    /// Whether a document of the issuer was read.
    knows_issuer: bool,
}

impl Surroundings for Documents {
    fn answer(&mut self, request: &FetchRequest) -> Result<Box<FetchResponse>, FetchError> {
        let body = String::from_utf8_lossy(&request.body);
        let has_secret = SECRETS.iter().any(|secret| body.contains(secret) || request.url.path.contains(secret));
        assert!(!has_secret || self.knows_issuer, "a secret for {ISSUER} leaves: {request:?}");
        let is_form = request.method == "POST" && !request.body.starts_with(b"{");
        let response = match self.documents.next().filter(|_| !is_form) {
            Some(document) => {
                let (status, body) = document.split_first().unwrap_or((&0, &[]));
                let status = [200, 201, 200, 404, 500, 401, 302, 200][usize::from(*status) % 8];
                login::json(status, body.to_vec(), &login::url(request))
            }
            None => login::honest(request),
        };
        let is_its_own = request.method == "GET" && &*request.url.origin.host == "as.example";
        self.knows_issuer |= is_its_own && response.status < 300;
        Ok(response)
    }

    fn visit(&mut self, page: &Browse) -> Vec<String> {
        vec![login::redirect(page)]
    }
}
