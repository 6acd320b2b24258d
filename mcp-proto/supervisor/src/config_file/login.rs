//! The login at a server as a file has it: the members that the clients document.

use super::dialect::Dialect;
use super::entry::below;
use super::error::{ConfigError, ConfigErrorKind};
use super::fields::Fields;
use super::variables::Template;
use alloc::string::String;
use alloc::vec::Vec;
use mcp_proto::rpc::{JsonKind, LocatedValue};

/// What a file says of the login at a server (OAuth).
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct LoginTexts {
    /// The file turns logins off.
    pub(super) is_off: bool,
    pub(super) client_id: Option<Template>,
    /// It refers to a variable.
    pub(super) client_secret: Option<Template>,
    pub(super) scopes: Vec<Template>,
    pub(super) callback_port: Option<u16>,
    /// The URL of the metadata of the authorization server.
    pub(super) metadata: Option<Template>,
    /// The redirect URI.
    pub(super) redirect: Option<Template>,
}

/// A member of the login of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoginMember {
    Enabled,
    ClientId,
    ClientSecret,
    Scopes,
    CallbackPort,
    Metadata,
    Redirect,
}

/// The members that a client documents, below a member of the server.
type LoginForm = (&'static str, &'static [(&'static str, LoginMember)]);

use LoginMember::{CallbackPort, ClientId, ClientSecret, Enabled, Metadata, Redirect, Scopes};

const CLAUDE_CODE: LoginForm = (
    "oauth",
    &[("clientId", ClientId), ("callbackPort", CallbackPort), ("authServerMetadataUrl", Metadata), ("scopes", Scopes)],
);
const CURSOR: LoginForm = ("auth", &[("CLIENT_ID", ClientId), ("CLIENT_SECRET", ClientSecret), ("scopes", Scopes)]);
const GEMINI_CLI: LoginForm = (
    "oauth",
    &[
        ("enabled", Enabled),
        ("clientId", ClientId),
        ("clientSecret", ClientSecret),
        ("redirectUri", Redirect),
        ("scopes", Scopes),
    ],
);
const VS_CODE: LoginForm = ("oauth", &[("clientId", ClientId)]);
const ZED: LoginForm = ("oauth", &[("client_id", ClientId), ("client_secret", ClientSecret)]);
const OPEN_CODE: LoginForm = (
    "oauth",
    &[
        ("clientId", ClientId),
        ("client_id", ClientId),
        ("clientSecret", ClientSecret),
        ("client_secret", ClientSecret),
        ("scope", Scopes),
        ("callback_port", CallbackPort),
    ],
);

impl Dialect {
    /// Returns the members of a login.
    const fn logins(self) -> &'static [LoginForm] {
        match self {
            Self::McpServers => &[CLAUDE_CODE, CURSOR],
            Self::GeminiCli => &[GEMINI_CLI],
            Self::VsCode => &[VS_CODE],
            Self::Zed => &[ZED],
            Self::OpenCode => &[OPEN_CODE],
        }
    }

    /// Returns whether servers have this member for their login.
    pub(super) fn has_login(self, key: &str) -> bool {
        self.logins().iter().any(|(member, _)| *member == key)
    }
}

impl LoginTexts {
    /// Returns all texts that may refer to variables.
    pub(super) fn templates(&self) -> impl Iterator<Item = &Template> {
        let Self { client_id, client_secret, scopes, metadata, redirect, .. } = self;
        client_id.iter().chain(client_secret).chain(scopes).chain(metadata).chain(redirect)
    }
}

impl Fields<'_, '_, '_> {
    /// Reads the login of a server at a URL. `None` if the file says nothing of it.
    pub(super) fn login(&mut self) -> Result<Option<LoginTexts>, ConfigError> {
        let mut logins = self.dialect().logins().iter();
        let found = logins.find_map(|(key, members)| Some((*key, *members, self.take(key)?)));
        let Some((key, members, member)) = found else { return Ok(None) };
        let mut login = LoginTexts::default();
        match (member.value.kind(), self.dialect()) {
            (JsonKind::Object, _) => {}
            (JsonKind::Bool, Dialect::OpenCode) => {
                login.is_off = member.value.raw() == "false";
                return Ok(Some(login));
            }
            _ => {
                self.reader.ignore(&member, self.path);
                return Ok(None);
            }
        }
        let path = below(self.path, key);
        let meaning = |name: &str| members.iter().find(|(known, _)| *known == name).map(|(_, meaning)| *meaning);
        for (name, member) in self.reader.known(member.value, &path, |name| meaning(name).is_some())? {
            let path = below(key, &name);
            match meaning(&name) {
                Some(Enabled) => login.is_off = !self.reader.boolean(member.value, &below(self.path, &path))?,
                Some(ClientId) => login.client_id = Some(self.template(path, member.value)?),
                Some(ClientSecret) => {
                    let secret = self.template(path, member.value)?;
                    match secret.check(self.dialect().forms()) {
                        Ok(true) => login.client_secret = Some(secret),
                        // A secret is never in a file itself.
                        Ok(false) | Err(_) => self.reader.ignore(&member, &below(self.path, key)),
                    }
                }
                Some(Scopes) => login.scopes = self.scopes(path, member.value)?,
                Some(CallbackPort) => login.callback_port = Some(self.port(&path, member.value)?),
                Some(Metadata) => login.metadata = Some(self.template(path, member.value)?),
                Some(Redirect) => login.redirect = Some(self.template(path, member.value)?),
                None => {}
            }
        }
        Ok(Some(login))
    }

    /// Reads scopes: a text with spaces between them, or an array.
    fn scopes(&self, path: String, value: LocatedValue<'_>) -> Result<Vec<Template>, ConfigError> {
        match value.kind() {
            JsonKind::String => Ok([self.template(path, value)?].into()),
            _ => self.templates(&path, value),
        }
    }

    fn port(&self, path: &str, value: LocatedValue<'_>) -> Result<u16, ConfigError> {
        self.reader.check(value, &below(self.path, path), JsonKind::Number, "a number")?;
        let port = value.integer().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        port.ok_or_else(|| self.error(value.at(), path, ConfigErrorKind::Port))
    }
}
