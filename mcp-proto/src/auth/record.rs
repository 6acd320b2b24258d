//! What is kept of a login: the record of a [`StoreKey`], as a value and as JSON. Neither metadata
//! nor a login that is under way is part of it, so a stale endpoint never gets a secret.

mod json;

pub use json::BadRecord;

use super::config::AuthMethod;
use super::jws::KeyPair;
use super::scopes::Scopes;
use super::secret::Secret;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// Identifies a record: the server, and the account of its user.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct StoreKey {
    /// The URL of the server as it was configured, without a fragment.
    pub server: String,
    /// A name that the application chooses, empty by default: a user may have several accounts.
    pub account: String,
}

impl StoreKey {
    /// Returns the SHA-256 of the server, a NUL and the account, to name a file by.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = hmac_sha256::Hash::new();
        hash.update(self.server.as_bytes());
        hash.update([0]);
        hash.update(self.account.as_bytes());
        hash.finalize()
    }
}

/// Names one content of a record, for a comparison before it is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Version(pub u64);

impl Version {
    /// There is no record.
    pub const ABSENT: Self = Self(0);

    /// Returns the version of a record with these bytes: the first eight of their SHA-256.
    pub fn of(bytes: &[u8]) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = hmac_sha256::Hash::hash(bytes);
        Self(u64::from_be_bytes([a, b, c, d, e, f, g, h]).max(1))
    }
}

/// The record of one [`StoreKey`]: at most four entries, the latest first, each for another issuer
/// or client. A store replaces it as a whole. Its `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Record {
    /// The entries. The engine ignores those after the fourth.
    pub entries: Vec<Entry>,
}

/// What is known of a client at one issuer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Entry {
    /// The issuer, as its own document spells it.
    pub issuer: String,
    /// The identifier of the resource that the tokens are for. No identifier if the server has no
    /// metadata of a resource and the client omits the parameter.
    pub resource: String,
    /// The client.
    pub client: RegisteredClient,
    /// All scopes that were ever requested for it. The set never shrinks.
    pub requested: Scopes,
    /// The tokens. `None` before the first login, and after a refresh token that was refused.
    pub tokens: Option<Tokens>,
}

/// A client as its issuer knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct RegisteredClient {
    /// The client identifier. Empty for a workload, whose assertion says who it is.
    pub client_id: String,
    /// The client secret.
    pub client_secret: Option<Secret>,
    /// The Unix time in seconds at which the secret expires. `None`: never.
    pub secret_expires: Option<u64>,
    /// How it authenticates at the token endpoint.
    pub method: AuthMethod,
    /// The redirect URI that it was registered with. `None` if it needs none.
    pub redirect_uri: Option<String>,
    /// The scopes that it was registered with.
    pub scopes: Scopes,
    /// Where its identifier is from.
    pub source: ClientSource,
}

/// Where a client identifier is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum ClientSource {
    /// The configuration.
    Given,
    /// The URL of a client metadata document.
    Document,
    /// A registration at the issuer (RFC 7591).
    Dynamic,
}

/// How an access token is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum TokenType {
    /// Its possession suffices (RFC 6750).
    Bearer,
    /// Each request that carries it proves the possession of a key (RFC 9449). It is never sent as
    /// a bearer token.
    Dpop,
}

/// The tokens of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Tokens {
    /// The access token.
    pub access_token: Secret,
    /// How it is used.
    pub token_type: TokenType,
    /// The key that the issuer has seen a proof of with each request for these tokens: a token of
    /// the type [`Dpop`](TokenType::Dpop), and the refresh token of a client without a secret, are
    /// bound to it. `None`: there was no proof.
    pub dpop_key: Option<Box<KeyPair>>,
    /// The refresh token.
    pub refresh_token: Option<Secret>,
    /// The Unix time in seconds at which the access token expires. `None` if the issuer named none:
    /// it is used until the server refuses it.
    pub expires: Option<u64>,
    /// The lifetime in seconds that the issuer named.
    pub lifetime: Option<u64>,
    /// The granted scopes.
    pub granted: Scopes,
    /// Counts the tokens of this entry. Tokens are compared by it, and not by their texts.
    pub generation: u64,
}
