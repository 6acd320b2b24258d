//! What a client obtains its tokens with, and how it authenticates: settings of a
//! [configuration](super::AuthConfig).

use super::jws::{Alg, SignKey};
use super::secret::Secret;
use alloc::boxed::Box;
use alloc::string::String;

/// What a client obtains its tokens with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Grant {
    /// A user logs in at a page, which redirects to the client with a code (RFC 6749 section 4.1).
    #[default]
    Code,
    /// A user logs in at a page on any device and enters a code there (RFC 8628). The issuer has to
    /// offer it.
    Device,
    /// The client itself, which is [given](super::Registration::Given) with a secret or a key (RFC
    /// 6749 section 4.4, `io.modelcontextprotocol/oauth-client-credentials`).
    ClientCredentials,
    /// An assertion of the platform that runs the client: a workload identity (RFC 7523 section
    /// 2.1). There is neither a client identifier nor a secret.
    Assertion,
    /// The login of a user at an identity provider
    /// (`io.modelcontextprotocol/enterprise-managed-authorization`). The client itself is
    /// [given](super::Registration::Given), or has a [document](super::Registration::Document).
    Enterprise(Box<IdentityProvider>),
}

impl Grant {
    /// Returns whether a user takes part, so that a login can be declined and takes minutes.
    pub const fn needs_user(&self) -> bool {
        matches!(self, Self::Code | Self::Device)
    }

    /// Returns the identifier of the extension that a client with this grant declares among its
    /// [capabilities](crate::model::capabilities::ClientCapabilities::extensions). `None`: it needs
    /// none.
    pub const fn extension(&self) -> Option<&'static str> {
        match self {
            Self::Code | Self::Device | Self::Assertion => None,
            Self::ClientCredentials => Some("io.modelcontextprotocol/oauth-client-credentials"),
            Self::Enterprise(_) => Some("io.modelcontextprotocol/enterprise-managed-authorization"),
        }
    }
}

/// The identity provider that a user of an organization logs in at. It exchanges the token of that
/// login for a grant at the issuer of the server (RFC 8693,
/// draft-ietf-oauth-identity-assertion-authz-grant).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct IdentityProvider {
    /// Its token endpoint. The rules for the URLs of a peer hold for it:
    /// [`UrlPolicy`](super::UrlPolicy).
    pub token_endpoint: String,
    /// The client as the identity provider knows it, which logged the user in.
    pub client: GivenClient,
    /// What the application has of the login. It is asked for it each time.
    pub subject: SubjectToken,
}

/// What an application has of a login at an identity provider (RFC 8693 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum SubjectToken {
    /// An ID token of OpenID Connect.
    #[default]
    IdToken,
    /// A refresh token of the identity provider.
    RefreshToken,
    /// An assertion of SAML 2.0, in base64url.
    Saml2,
}

impl SubjectToken {
    /// Returns the identifier in the IANA registry of OAuth URIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IdToken => "urn:ietf:params:oauth:token-type:id_token",
            Self::RefreshToken => "urn:ietf:params:oauth:token-type:refresh_token",
            Self::Saml2 => "urn:ietf:params:oauth:token-type:saml2",
        }
    }
}

/// A client that is registered already.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct GivenClient {
    /// The issuer that knows it. No other one gets its credentials. Empty: the issuer that the
    /// server names, since the configuration files of other programs name none. Once there is a
    /// login of this client in the record, no other issuer is used. A client with a key has an
    /// issuer.
    pub issuer: String,
    /// The client identifier.
    pub client_id: String,
    /// How it authenticates.
    pub auth: ClientAuth,
}

/// What a client that is registered already authenticates with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ClientAuth {
    /// Nothing: it is a public client.
    #[default]
    None,
    /// A secret. An empty one counts as none. The issuer decides how it is sent.
    Secret(Secret),
    /// A key, which signs an assertion for each request (`private_key_jwt`, RFC 7523 section 2.2).
    Key(ClientKey),
}

/// The key of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct ClientKey {
    /// The key.
    pub key: SignKey,
    /// The algorithm that it signs with. An issuer that does not list it gets no request.
    pub alg: Alg,
    /// The identifier of the key at the issuer (`kid`), for a client with several.
    pub kid: Option<String>,
}
