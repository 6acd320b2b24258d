//! How the client of the suite logs in: there is no user, and nothing listens for the redirect.

use mcp_driver::{Browsed, OAuth};
use mcp_proto::auth::{
    Alg, Browse, ClientAuth, ClientKey, GivenClient, IdentityProvider, Secret, SignKey, SubjectToken,
};
use serde_json::Value;

use crate::browser::Browser;

/// The client identifier that is the URL of a document. The document is not fetched.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// How the client becomes known to the authorization server.
#[derive(Clone, Debug, PartialEq)]
pub enum Login {
    /// It registers.
    Registers,
    /// By the URL of a document.
    Document,
    /// It is known already.
    Given(GivenClient),
    /// It is known already at the issuer of the server, and logs in without a user.
    Machine(String, ClientAuth),
    /// By the assertion of its platform.
    Workload(Secret),
    /// As [`Machine`](Self::Machine), with the login of a user at an identity provider.
    Enterprise {
        /// The client at the issuer of the server.
        client_id: String,
        /// Its secret.
        secret: Secret,
        /// The identity provider.
        provider: IdentityProvider,
        /// What the application has of the login there.
        subject: Secret,
    },
}

impl Login {
    /// Returns the one of a scenario. `context` is the further input of the suite.
    ///
    /// # Errors
    /// The context is malformed.
    pub fn of(scenario: &str, context: Option<&Value>) -> Result<Option<Self>, String> {
        let told = |name: &str| {
            let text = context.and_then(|context| context.get(name)?.as_str());
            text.map(str::to_owned).ok_or_else(|| format!("the context has no `{name}`"))
        };
        Ok(match scenario {
            "auth/basic-cimd" => Some(Self::Document),
            "auth/pre-registration" => Some(Self::Given(GivenClient {
                issuer: told("issuer")?,
                client_id: told("client_id")?,
                auth: ClientAuth::Secret(told("client_secret")?.into()),
            })),
            "auth/client-credentials-basic" => {
                Some(Self::Machine(told("client_id")?, ClientAuth::Secret(told("client_secret")?.into())))
            }
            "auth/client-credentials-jwt" => {
                let name = told("signing_algorithm")?;
                let alg = Alg::parse(&name).ok_or_else(|| format!("an unknown algorithm: {name}"))?;
                let key = ClientKey { key: SignKey::Pkcs8(told("private_key_pem")?.into()), alg, kid: None };
                Some(Self::Machine(told("client_id")?, ClientAuth::Key(key)))
            }
            "auth/wif-jwt-bearer" => Some(Self::Workload(told("valid_jwt")?.into())),
            "auth/enterprise-managed-authorization" => {
                let client_id = told("idp_client_id")?;
                let client = GivenClient { issuer: told("idp_issuer")?, client_id, auth: ClientAuth::None };
                let token_endpoint = told("idp_token_endpoint")?;
                let (client_id, secret) = (told("client_id")?, told("client_secret")?.into());
                let subject = told("idp_id_token")?.into();
                let provider = IdentityProvider { token_endpoint, client, subject: SubjectToken::IdToken };
                Some(Self::Enterprise { client_id, secret, provider, subject })
            }
            _ => scenario.starts_with("auth/").then_some(Self::Registers),
        })
    }

    /// Returns the options for it at the server with this URL.
    ///
    /// # Errors
    /// The issuer of the server is not known.
    pub fn options(&self, url: &str) -> Result<OAuth, String> {
        let options = OAuth::new("conformance").on_report(|report| eprintln!("{report}"));
        let given = |client_id: &str, auth| {
            let client_id = client_id.to_owned();
            issuer(url).map(|issuer| GivenClient { issuer, client_id, auth })
        };
        Ok(match self {
            Self::Registers => options.on_browse(consent),
            Self::Document => options.on_browse(consent).client_document(DOCUMENT),
            Self::Given(client) => options.on_browse(consent).client(client.clone()),
            Self::Machine(client_id, auth) => options.machine().client(given(client_id, auth.clone())?),
            Self::Workload(assertion) => {
                let assertion = assertion.clone();
                options.assertion(move |_| Ok(assertion.clone()))
            }
            Self::Enterprise { client_id, secret, provider, subject } => {
                let subject = subject.clone();
                let options = options.client(given(client_id, ClientAuth::Secret(secret.clone()))?);
                options.identity_provider(provider.clone()).assertion(move |_| Ok(subject.clone()))
            }
        })
    }
}

/// Returns the issuer of a server, which the suite does not tell. An operator knows where a client
/// is registered.
fn issuer(url: &str) -> Result<String, String> {
    let metadata = url.replacen("/mcp", "/.well-known/oauth-protected-resource/mcp", 1);
    let page = Browser::new().get(&metadata)?;
    let metadata: Value = serde_json::from_str(&page.body).map_err(|why| format!("{page:?}: {why}"))?;
    let issuer = metadata.pointer("/authorization_servers/0").and_then(Value::as_str);
    issuer.map(str::to_owned).ok_or_else(|| format!("{page:?} names no issuer"))
}

/// Opens the page of the suite, which answers at once: there is no question to a user.
fn consent(page: &Browse) -> Browsed {
    let redirect = Browser::new().get(&page.url);
    match redirect.as_ref().map(|redirect| redirect.field("location")) {
        Ok(Some(location)) => Browsed::Returned(location.to_owned()),
        _ => {
            eprintln!("no redirect: {redirect:?}");
            Browsed::Declined
        }
    }
}
