//! A record as JSON: `{"version":1, …}`.

use super::{ClientSource, Entry, Record, RegisteredClient, TokenType, Tokens};
use crate::auth::config::AuthMethod;
use crate::auth::jwk::PublicKey;
use crate::auth::jws::KeyPair;
use crate::auth::metadata;
use crate::auth::scopes::Scopes;
use crate::auth::secret::Secret;
use crate::rpc::{Object, RawJson};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// The version of the format.
const VERSION: u64 = 1;

/// The maximum number of entries.
const MAX_ENTRIES: usize = 4;

/// Bytes that are no record, or that of a newer version of this format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadRecord {
    /// No JSON of a record.
    Form,
    /// A format with this version, which this version of the crate does not know. It must not be
    /// overwritten.
    Newer(u64),
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("it is no record of logins"),
            Self::Newer(version) => {
                write!(f, "it is a record of logins in version {version} of its format; this program knows {VERSION}")
            }
        }
    }
}

impl core::error::Error for BadRecord {}

impl Record {
    /// Maximum length of the JSON of a record, in bytes: 64 KiB.
    pub const MAX_LEN: usize = 64 << 10;

    /// Returns the record as JSON, for a store. It contains the secrets. At most four entries are
    /// written, and none that makes it longer than [`MAX_LEN`](Self::MAX_LEN).
    pub fn to_json(&self) -> Vec<u8> {
        let empty = Object::new().with("version", VERSION).with("entries", Vec::<Object>::new());
        let mut room = Self::MAX_LEN - empty.to_json().as_bytes().len();
        let mut entries = Vec::new();
        for entry in self.entries.iter().take(MAX_ENTRIES) {
            let json = entry.to_json();
            // With the comma after it.
            if let Some(left) = room.checked_sub(json.as_bytes().len() + 1) {
                room = left;
                entries.push(json);
            }
        }
        empty.with("entries", entries).to_json().as_bytes().to_vec()
    }

    /// Reads what [`to_json`](Self::to_json) has written. Members with other names are ignored, and
    /// entries after the fourth.
    ///
    /// # Errors
    /// [`BadRecord`] if it is longer than [`MAX_LEN`](Self::MAX_LEN), of a newer version, or no
    /// record.
    pub fn read(bytes: &[u8]) -> Result<Self, BadRecord> {
        if bytes.len() > Self::MAX_LEN {
            return Err(BadRecord::Form);
        }
        let object = metadata::object(bytes).map_err(|_| BadRecord::Form)?;
        match object.required("version") {
            Ok(VERSION) => {}
            Ok(newer) if newer > VERSION => return Err(BadRecord::Newer(newer)),
            Ok(_) | Err(_) => return Err(BadRecord::Form),
        }
        let entries = object.array("entries").map_err(|_| BadRecord::Form)?;
        let entries = entries.iter().take(MAX_ENTRIES).map(Entry::read).collect::<Option<_>>();
        entries.map(|entries| Self { entries }).ok_or(BadRecord::Form)
    }
}

impl Entry {
    fn to_json(&self) -> RawJson {
        let Self { issuer, resource, client, requested, tokens } = self;
        let entry = Object::new()
            .with("issuer", issuer)
            .with("resource", resource)
            .with("client", client.to_object())
            .with("requested", requested.to_string());
        entry.with_opt("tokens", tokens.as_ref().map(Tokens::to_object)).into()
    }

    fn read(json: &RawJson) -> Option<Self> {
        let object = Object::read(json).ok()?;
        let tokens = object.optional_object("tokens").ok()?;
        Some(Self {
            issuer: object.str("issuer")?.into(),
            resource: object.str("resource")?.into(),
            client: RegisteredClient::read(&object.object("client").ok()?)?,
            requested: scopes(&object, "requested")?,
            tokens: match tokens {
                Some(tokens) => Some(Tokens::read(&tokens)?),
                None => None,
            },
        })
    }
}

impl RegisteredClient {
    fn to_object(&self) -> Object {
        let Self { client_id, client_secret, secret_expires, method, redirect_uri, scopes, source } = self;
        Object::new()
            .with("client_id", client_id)
            .with_opt("client_secret", client_secret.as_ref().map(Secret::expose))
            .with_opt("secret_expires", *secret_expires)
            .with("method", method.as_str())
            .with_opt("redirect_uri", redirect_uri.as_ref())
            .with("scopes", scopes.to_string())
            .with("source", source.as_str())
    }

    fn read(object: &Object) -> Option<Self> {
        Some(Self {
            client_id: object.str("client_id")?.into(),
            client_secret: secret(object, "client_secret")?,
            secret_expires: object.optional("secret_expires").ok()?,
            method: AuthMethod::parse(&object.str("method")?)?,
            redirect_uri: object.optional("redirect_uri").ok()?,
            scopes: scopes(object, "scopes")?,
            source: ClientSource::parse(&object.str("source")?)?,
        })
    }
}

impl ClientSource {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Document => "document",
            Self::Dynamic => "dynamic",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Given, Self::Document, Self::Dynamic].into_iter().find(|source| source.as_str() == name)
    }
}

impl Tokens {
    fn to_object(&self) -> Object {
        let Self { access_token, token_type, dpop_key, refresh_token, expires, lifetime, granted, generation } = self;
        Object::new()
            .with("access_token", access_token.expose())
            .with("token_type", token_type.as_str())
            .with_opt("dpop_key", dpop_key.as_ref().map(|key| key.to_object()))
            .with_opt("refresh_token", refresh_token.as_ref().map(Secret::expose))
            .with_opt("expires", *expires)
            .with_opt("lifetime", *lifetime)
            .with("granted", granted.to_string())
            .with("generation", *generation)
    }

    /// A file of an older version has no type, and bearer tokens only.
    fn read(object: &Object) -> Option<Self> {
        let token_type = match object.optional::<String>("token_type").ok()? {
            Some(name) => TokenType::parse(&name)?,
            None => TokenType::Bearer,
        };
        let dpop_key = match object.optional_object("dpop_key").ok()? {
            Some(key) => Some(Box::new(KeyPair::read(&key)?)),
            None => None,
        };
        if token_type == TokenType::Dpop && dpop_key.is_none() {
            return None;
        }
        Some(Self {
            token_type,
            dpop_key,
            access_token: object.str("access_token")?.into_owned().into(),
            refresh_token: secret(object, "refresh_token")?,
            expires: object.optional("expires").ok()?,
            lifetime: object.optional("lifetime").ok()?,
            granted: scopes(object, "granted")?,
            generation: object.required("generation").ok()?,
        })
    }
}

impl KeyPair {
    fn to_object(&self) -> Object {
        let Self { private, public } = self;
        Object::new().with("private", private.expose()).with("public", public.write())
    }

    fn read(object: &Object) -> Option<Self> {
        let private = object.str("private")?.into_owned().into();
        Some(Self { private, public: PublicKey::read(&object.object("public").ok()?).ok()? })
    }
}

impl TokenType {
    /// Returns the name as token responses and the field `Authorization` have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }

    /// Returns the type with this name, in any case (RFC 6749 section 5.1).
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Bearer, Self::Dpop].into_iter().find(|kind| name.eq_ignore_ascii_case(kind.as_str()))
    }
}

/// Reads a secret that may be absent. `None` if it is no text.
fn secret(object: &Object, key: &str) -> Option<Option<Secret>> {
    let text: Option<String> = object.optional(key).ok()?;
    Some(text.map(Secret::from))
}

/// Reads scopes. Absent ones are none.
fn scopes(object: &Object, key: &str) -> Option<Scopes> {
    let text: Option<String> = object.optional(key).ok()?;
    Some(text.map(|text| Scopes::parse(&text)).unwrap_or_default())
}

#[cfg(test)]
mod tests;
