//! The configuration of authorization: a value with methods that build it.

use super::grant::{ClientAuth, ClientKey, GivenClient, Grant};
use super::identifier::{IssuerMatch, same_issuer};
use super::policy::UrlPolicy;
use super::scopes::Scopes;
use super::support::AuthSupport;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// How a client obtains and keeps the credentials for its server (OAuth 2.1, with PKCE S256 and
/// resource indicators; 2026-07-28 authorization). Everything has a default but the name of the
/// client.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct AuthConfig {
    /// The name of the program, which an authorization server shows to the user.
    pub client_name: String,
    /// What it obtains its tokens with. Default [`Grant::Code`].
    pub grant: Grant,
    /// How the client becomes known at an issuer, in the order in which they are tried. A client
    /// that is stored for the issuer comes after those that are [given](Registration::Given).
    /// Default [`Dynamic`](Registration::Dynamic) alone.
    pub registrations: Vec<Registration>,
    /// The scopes that are requested always, beside those that the server asks for. Default none.
    pub scopes: Scopes,
    /// Where the authorization server sends the user back to. Default: a listener on `127.0.0.1`.
    pub redirect: Redirect,
    /// The only issuer that is used. Default `None`: those that the server names.
    pub issuer: Option<String>,
    /// The URL of the metadata of the resource, in place of those that the server and its URL name.
    /// Default `None`.
    pub metadata_url: Option<String>,
    /// Further parameters. Default none.
    pub parameters: Vec<Parameter>,
    /// The parameter `prompt` of the page. Default [`Prompt::Auto`].
    pub prompt: Prompt,
    /// The account of the user, for a program with several. Default empty.
    pub account: String,
    /// Whether a request that needs a login begins one, which opens a page. Otherwise it ends with
    /// [`AuthError::LoginRequired`](crate::error::AuthError::LoginRequired), and only
    /// [`login`](crate::ClientCommands::login) begins one. Without effect on a [grant](Grant) that
    /// needs no user. Default `true`.
    pub interactive: bool,
    /// Whether new tokens are bound to a key. Default [`Dpop::Off`].
    pub dpop: Dpop,
    /// The URLs that are used.
    pub policy: UrlPolicy,
    /// Settings for servers that deviate from the specifications.
    pub compat: AuthCompat,
    /// The limits.
    pub limits: AuthLimits,
    support: AuthSupport,
}

/// A way for a client to become known at an issuer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Registration {
    /// A client that its operator registered at one issuer before. It uses and changes its own
    /// entry of the record only.
    Given(GivenClient),
    /// The `https:` URL of a client metadata document, which is the client identifier
    /// (draft-ietf-oauth-client-id-metadata-document).
    Document(String),
    /// A registration when one is needed (RFC 7591).
    Dynamic,
}

/// How a client authenticates at a token endpoint (RFC 6749 section 2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum AuthMethod {
    /// `none`: it only names itself.
    None,
    /// `client_secret_basic`.
    Basic,
    /// `client_secret_post`.
    Post,
    /// `private_key_jwt`, with the key of a client that is given.
    Key,
}

impl AuthMethod {
    /// Returns the name in the IANA registry of token endpoint authentication methods.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::Key => "private_key_jwt",
        }
    }

    /// Returns the method with this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post, Self::Key].into_iter().find(|method| method.as_str() == name)
    }
}

/// Where an authorization server sends the user back to.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Redirect {
    /// A listener on this machine (RFC 8252 section 7.3).
    Loopback {
        /// Its host.
        host: LoopbackHost,
        /// Its port.
        port: Port,
        /// The path, with a slash at its beginning. Default `/callback`.
        path: String,
    },
    /// This URL, which the application serves. It passes the redirects that arrive there on.
    Fixed(String),
}

/// The host in the redirect URI of a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum LoopbackHost {
    /// `127.0.0.1`.
    #[default]
    V4,
    /// `localhost`, on both loopback addresses. Some authorization servers know no other.
    Localhost,
}

impl LoopbackHost {
    /// Returns the host as a URL has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "127.0.0.1",
            Self::Localhost => "localhost",
        }
    }
}

/// The port of a listener.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Port {
    /// A free one. A stored registration asks for its own first.
    #[default]
    Any,
    /// The first free one of these, which a registration lists.
    FirstOf(Vec<u16>),
}

/// A parameter beside those that the client sets itself. Some authorization servers need one:
/// `audience`, or `access_type`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Parameter {
    /// The requests that carry it.
    pub place: ParameterPlace,
    /// Its name. One that the client sets itself, such as `scope`, has no effect.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The requests that carry a [`Parameter`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum ParameterPlace {
    /// The page.
    Page,
    /// Token requests.
    Token,
    /// Both.
    Both,
}

/// The names of the parameters that a client sets itself.
const OWN_PARAMETERS: [&str; 21] = [
    "response_type",
    "client_id",
    "client_secret",
    "redirect_uri",
    "scope",
    "state",
    "code",
    "code_challenge",
    "code_challenge_method",
    "code_verifier",
    "resource",
    "grant_type",
    "refresh_token",
    "prompt",
    "assertion",
    "client_assertion",
    "client_assertion_type",
    "device_code",
    "subject_token",
    "subject_token_type",
    "requested_token_type",
];

impl Parameter {
    /// Returns whether page requests carry it.
    pub(super) fn is_in_page(&self) -> bool {
        self.place != ParameterPlace::Token && !self.is_own()
    }

    /// Returns whether token requests carry it.
    pub(super) fn is_in_token_requests(&self) -> bool {
        self.place != ParameterPlace::Page && !self.is_own()
    }

    fn is_own(&self) -> bool {
        OWN_PARAMETERS.contains(&&*self.name)
    }
}

/// The parameter `prompt` of the page (OpenID Connect Core section 3.1.2.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Prompt {
    /// `consent` if `offline_access` is requested and the client is not
    /// [given](Registration::Given): some authorization servers issue no refresh token without it.
    #[default]
    Auto,
    /// None.
    Omit,
    /// This one.
    Value(String),
}

/// Whether tokens are bound to a key. Each request that carries one then proves that the client has
/// the key (RFC 9449, DPoP), so a stolen token is of no use. The keys are for ES256 or EdDSA, and
/// steps make them and sign with them: [`Output::NewKey`](super::Output::NewKey) and
/// [`Output::Sign`](super::Output::Sign).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Dpop {
    /// New tokens are bearer tokens. A token of the record that is bound stays bound.
    #[default]
    Off,
    /// They are bound if the server asks for that, by a challenge or in its metadata, and its
    /// issuer lists an algorithm of this client.
    IfOffered,
    /// They are bound, and bearer tokens are not used.
    Required,
}

/// Settings for servers that deviate from the specifications.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct AuthCompat {
    /// Whether the issuer in metadata may differ from the one asked for by a slash at its end.
    /// Both spellings have the same URLs of metadata. RFC 8414 section 3.3 demands equality.
    /// Default `true`.
    pub issuer_slash: bool,
    /// Whether a server without metadata of a resource is treated as 2025-03-26 has it: the
    /// authorization server is at its origin. Default `true`.
    pub first_revision: bool,
    /// Whether metadata of an issuer without an `issuer` is used. Default `false`.
    pub missing_issuer: bool,
    /// Whether metadata that lists no `code_challenge_methods_supported` is used. The
    /// client still sends a challenge. Default `false`.
    pub unlisted_pkce: bool,
    /// Whether the field `Mcp-Auth-Server` names a last candidate for the issuer. Default `false`.
    pub auth_server_hint: bool,
    /// Whether the parameter `resource` is left out, since the authorization server refuses it.
    /// Default `false`.
    pub omit_resource: bool,
}

impl Default for AuthCompat {
    fn default() -> Self {
        Self {
            issuer_slash: true,
            first_revision: true,
            missing_issuer: false,
            unlisted_pkce: false,
            auth_server_hint: false,
            omit_resource: false,
        }
    }
}

/// The limits of authorization.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct AuthLimits {
    /// Maximum number of HTTP requests of one run, from a challenge to its tokens. Default 24.
    pub max_fetches: u32,
    /// Maximum length of a document, in bytes. Default 64 KiB.
    pub max_document: usize,
    /// Maximum time for all documents of one run. Default 30 s.
    pub discovery_time: Duration,
    /// Maximum time for the response to a token request. Default 30 s.
    pub token_time: Duration,
    /// Maximum time for which a page is open. Default 5 min.
    pub page_time: Duration,
    /// Maximum time to wait for the lease of a change. Default 35 s.
    pub lease_time: Duration,
    /// Time after a login that failed in which no request begins another one. It doubles with each
    /// failure, up to 10 min. Default 30 s.
    pub quiet: Duration,
    /// Maximum length of a token, in bytes. Default 16 KiB.
    pub max_token: usize,
}

impl Default for AuthLimits {
    fn default() -> Self {
        Self {
            max_fetches: 24,
            max_document: 64 << 10,
            discovery_time: Duration::from_secs(30),
            token_time: Duration::from_secs(30),
            page_time: Duration::from_secs(300),
            lease_time: Duration::from_secs(35),
            quiet: Duration::from_secs(30),
            max_token: 16 << 10,
        }
    }
}

#[cfg(any(test, feature = "auth"))]
impl AuthConfig {
    /// Returns the configuration of a program with this name.
    pub fn new(client_name: impl Into<String>) -> Self {
        Self {
            client_name: client_name.into(),
            grant: Grant::default(),
            registrations: alloc::vec![Registration::Dynamic],
            scopes: Scopes::new(),
            redirect: Redirect::Loopback {
                host: LoopbackHost::default(),
                port: Port::default(),
                path: "/callback".into(),
            },
            issuer: None,
            metadata_url: None,
            parameters: Vec::new(),
            prompt: Prompt::default(),
            account: String::new(),
            interactive: true,
            dpop: Dpop::default(),
            policy: UrlPolicy::default(),
            compat: AuthCompat::default(),
            limits: AuthLimits::default(),
            support: AuthSupport::ON,
        }
    }
}

impl AuthConfig {
    /// Returns the evidence that authorization is compiled in.
    pub(crate) const fn support(&self) -> AuthSupport {
        self.support
    }

    /// Returns whether a request that needs credentials begins a run for them.
    pub(super) const fn begins_runs(&self) -> bool {
        self.interactive || !self.grant.needs_user()
    }

    /// Returns the clients that are given.
    pub(super) fn all_given(&self) -> impl Iterator<Item = &GivenClient> {
        self.registrations.iter().filter_map(|way| match way {
            Registration::Given(client) => Some(client),
            Registration::Document(_) | Registration::Dynamic => None,
        })
    }

    /// Returns the client that is given for this issuer.
    pub(super) fn given_at(&self, issuer: &str) -> Option<&GivenClient> {
        self.all_given().find(|client| self.is_at(client, issuer))
    }

    fn is_at(&self, client: &GivenClient, issuer: &str) -> bool {
        client.issuer.is_empty()
            || same_issuer(&client.issuer, issuer, self.compat.issuer_slash) != IssuerMatch::Different
    }

    /// Returns the key of this client at this issuer, or at the identity provider.
    pub(super) fn key_of(&self, issuer: &str, client_id: &str) -> Option<&ClientKey> {
        let provider = match &self.grant {
            Grant::Enterprise(provider) => Some(&provider.client),
            _ => None,
        };
        let is_meant = |client: &&GivenClient| self.is_at(client, issuer) && client.client_id == client_id;
        match &self.all_given().chain(provider).find(is_meant)?.auth {
            ClientAuth::Key(key) => Some(key),
            ClientAuth::None | ClientAuth::Secret(_) => None,
        }
    }
}
