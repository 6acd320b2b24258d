//! Reads a server of a configuration file from its members.

use super::dialect::Dialect;
use super::entry::{Scheme, ServerEntry, ServerLaunch, below, client_config};
use super::error::{ConfigError, ConfigErrorKind, element_path, member_path};
use super::reader::{Members, Reader};
use super::variables::Template;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use mcp_proto::client::{BadHeader, HttpMode};
use mcp_proto::rpc::{JsonKind, LocatedMember, LocatedValue};

/// The types of servers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Program,
    Http(HttpMode),
    Ws,
}

impl Kind {
    /// Returns a type by its name in a file, with that name.
    fn parse(name: &str, dialect: Dialect) -> Option<(Self, &'static str)> {
        Some(match name {
            "stdio" => (Self::Program, "stdio"),
            "local" => (Self::Program, "local"),
            // Clients mean either transport by it, and the first request shows which.
            "sse" => (Self::Http(HttpMode::Auto), "sse"),
            "remote" => (Self::Http(HttpMode::Auto), "remote"),
            // VS Code falls back to HTTP+SSE if the server does not speak Streamable HTTP.
            "http" if dialect == Dialect::VsCode => (Self::Http(HttpMode::Auto), "http"),
            "http" => (Self::Http(HttpMode::Streamable), "http"),
            "streamable-http" => (Self::Http(HttpMode::Streamable), "streamable-http"),
            "streamableHttp" => (Self::Http(HttpMode::Streamable), "streamableHttp"),
            "ws" => (Self::Ws, "ws"),
            _ => return None,
        })
    }
}

/// Reads a server.
pub(super) fn read(
    reader: &mut Reader<'_>,
    name: &str,
    path: String,
    value: LocatedValue<'_>,
) -> Result<ServerEntry, ConfigError> {
    let dialect = reader.dialect;
    let members = reader.known(value, &path, |key| dialect.has(key))?;
    let mut fields = Fields { reader, path: &path, members };
    let launch = fields.launch(value)?;
    let disabled = fields.boolean("disabled")?;
    let enabled = fields.boolean("enabled")?;
    let timeout = fields.timeout()?;
    let Fields { reader, members, .. } = fields;
    members.values().for_each(|member| reader.ignore(member, &path));
    let is_disabled = disabled == Some(true) || enabled == Some(false);
    Ok(ServerEntry { name: name.into(), path, forms: dialect.forms(), is_disabled, timeout, launch })
}

/// The members of a server that were not read yet.
pub(super) struct Fields<'r, 'a, 'v> {
    pub(super) reader: &'r mut Reader<'a>,
    pub(super) path: &'r str,
    members: Members<'v>,
}

impl<'v> Fields<'_, '_, 'v> {
    pub(super) fn take(&mut self, key: &str) -> Option<LocatedMember<'v>> {
        self.members.remove(key)
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.reader.dialect
    }

    /// Returns the error of a value below the server.
    pub(super) fn error(&self, at: usize, path: &str, kind: ConfigErrorKind) -> ConfigError {
        self.reader.error(at, &below(self.path, path), kind)
    }

    /// Reads how to reach the server, which has the value `whole`.
    fn launch(&mut self, whole: LocatedValue<'_>) -> Result<ServerLaunch, ConfigError> {
        let kind = match self.take("type") {
            None => None,
            Some(member) => {
                let name = self.reader.text(member.value, &below(self.path, "type"))?;
                let unknown = || self.error(member.value.at(), "type", ConfigErrorKind::UnknownType(name.clone()));
                Some(Kind::parse(&name, self.dialect()).ok_or_else(unknown)?)
            }
        };
        let mut found: Option<(&'static str, LocatedMember<'v>)> = None;
        for key in ["command", "url", "serverUrl", "httpUrl"] {
            let Some(member) = self.take(key) else { continue };
            if let Some((other, first)) = &found {
                let at = first.at.max(member.at);
                return Err(self.reader.error(at, self.path, ConfigErrorKind::Conflict(other, key)));
            }
            found = Some((key, member));
        }
        let fault = match (&found, kind) {
            (Some(("command", _)), None | Some((Kind::Program, _))) => None,
            (Some((key, _)), None | Some((Kind::Http(_) | Kind::Ws, _))) if *key != "command" => None,
            (_, Some((Kind::Program, kind))) => Some(ConfigErrorKind::TypeNeeds { kind, member: "command" }),
            (_, Some((_, kind))) => Some(ConfigErrorKind::TypeNeeds { kind, member: "url" }),
            (_, None) => Some(ConfigErrorKind::Missing("`command` or `url`")),
        };
        match (found, fault) {
            (Some(("command", member)), None) => self.program(&member),
            (Some((key, member)), None) => self.url(key, &member, kind.map(|(kind, _)| kind)),
            (_, fault) => {
                let fault = fault.unwrap_or(ConfigErrorKind::Missing("`command` or `url`"));
                Err(self.reader.error(whole.at(), self.path, fault))
            }
        }
    }

    fn program(&mut self, command: &LocatedMember<'v>) -> Result<ServerLaunch, ConfigError> {
        let mut args = Vec::new();
        // Older settings of Zed have the program in an object.
        let is_older = self.dialect() == Dialect::Zed && command.value.kind() == JsonKind::Object;
        let mut inside = Members::new();
        if is_older {
            let path = below(self.path, "command");
            inside = self.reader.known(command.value, &path, |key| matches!(key, "path" | "args" | "env"))?;
        }
        let command = if self.dialect() == Dialect::OpenCode {
            let mut words = self.templates("command", command.value)?.into_iter();
            let first = words.next();
            args.extend(words);
            first.ok_or_else(|| self.error(command.value.at(), "command", ConfigErrorKind::EmptyCommand))?
        } else {
            let template = if is_older {
                let missing = || self.error(command.value.at(), "command", ConfigErrorKind::Missing("`path`"));
                self.template("command.path".into(), inside.remove("path").ok_or_else(missing)?.value)?
            } else {
                self.template("command".into(), command.value)?
            };
            if let Some((path, member)) = self.take_of_program(&mut inside, "args") {
                args = self.templates(&path, member.value)?;
            }
            template
        };
        if command.text.trim().is_empty() {
            let path = below(self.path, &command.path);
            return Err(ConfigError::new(command.at, path, ConfigErrorKind::EmptyCommand));
        }
        let cwd = self.optional("cwd")?;
        let env_file = self.optional("envFile")?;
        let mut env = Vec::new();
        if let Some((path, member)) = self.take_of_program(&mut inside, self.dialect().env()) {
            for (name, path, member) in self.map(&path, member.value)? {
                if name.is_empty() || name.contains(['=', '\0']) {
                    return Err(self.error(member.at, &path, ConfigErrorKind::EnvName));
                }
                env.push((name, self.env_value(path, member.value)?));
            }
        }
        let launch = ServerLaunch::Program { command, args, cwd, env, env_file };
        // What is known now is checked now, and what variables add when they have values.
        if let Some(Template { at, path, .. }) = launch.templates().find(|template| template.text.contains('\0')) {
            return Err(ConfigError::new(*at, below(self.path, path), ConfigErrorKind::Nul));
        }
        Ok(launch)
    }

    /// Takes a member of the object `inside` the command, or else of the server, with its path.
    fn take_of_program(&mut self, inside: &mut Members<'v>, key: &str) -> Option<(String, LocatedMember<'v>)> {
        let found = inside.remove(key).map(|member| (below("command", key), member));
        found.or_else(|| Some((key.into(), self.take(key)?)))
    }

    /// Reads the value of a variable. In a file of VS Code it may be a number, and `null` removes
    /// the variable.
    fn env_value(&self, path: String, value: LocatedValue<'v>) -> Result<Option<Template>, ConfigError> {
        let is_code = self.dialect() == Dialect::VsCode;
        match value.kind() {
            JsonKind::Null if is_code => Ok(None),
            JsonKind::Number if is_code => {
                Ok(Some(Template { text: value.raw().into(), at: self.reader.position(value.at()), path }))
            }
            _ => self.template(path, value).map(Some),
        }
    }

    fn url(&mut self, key: &str, url: &LocatedMember<'v>, kind: Option<Kind>) -> Result<ServerLaunch, ConfigError> {
        let url = self.template(key.into(), url.value)?;
        let (mode, scheme) = match kind {
            None if key == "httpUrl" => (HttpMode::Streamable, Some(Scheme::Http)),
            None | Some(Kind::Program) => (HttpMode::Auto, None),
            Some(Kind::Http(mode)) => (mode, Some(Scheme::Http)),
            Some(Kind::Ws) => (HttpMode::Auto, Some(Scheme::Ws)),
        };
        let forms = self.dialect().forms();
        let fault = |template: &Template, kind| ConfigError::new(template.at, below(self.path, &template.path), kind);
        if !url.check(forms).map_err(|kind| fault(&url, kind))? {
            client_config(&url.text, mode, scheme).map_err(|kind| fault(&url, kind))?;
        }
        let mut headers = Vec::new();
        if let Some(member) = self.take("headers") {
            let mut names = BTreeSet::new();
            for (name, path, member) in self.map("headers", member.value)? {
                // Files repeat what every request has.
                if ["accept", "content-type"].iter().any(|field| name.eq_ignore_ascii_case(field)) {
                    self.reader.ignore(&member, &below(self.path, "headers"));
                    continue;
                }
                if !names.insert(name.to_ascii_lowercase()) {
                    return Err(self.error(member.at, &path, ConfigErrorKind::Duplicate));
                }
                let value = self.template(path, member.value)?;
                let known = if value.check(forms).unwrap_or(true) { "" } else { &value.text };
                BadHeader::check(&name, known)
                    .map_err(|why| self.error(member.at, &value.path, ConfigErrorKind::Header(why)))?;
                headers.push((name, value));
            }
        }
        let login = self.login()?.map(Box::new);
        Ok(ServerLaunch::Url { url, headers, mode, scheme, login })
    }

    /// Returns the members of an object, each with its name and path. No name occurs twice.
    fn map(
        &mut self,
        key: &str,
        value: LocatedValue<'v>,
    ) -> Result<Vec<(String, String, LocatedMember<'v>)>, ConfigError> {
        let members = self.reader.members(value, &below(self.path, key))?;
        let mut names = BTreeSet::new();
        let mut map = Vec::with_capacity(members.len());
        for (name, member) in members {
            let path = member_path(key, &name);
            if !names.insert(name.clone()) {
                return Err(self.error(member.at, &path, ConfigErrorKind::Duplicate));
            }
            map.push((name, path, member));
        }
        Ok(map)
    }

    fn optional(&mut self, key: &str) -> Result<Option<Template>, ConfigError> {
        self.take(key).map(|member| self.template(key.into(), member.value)).transpose()
    }

    pub(super) fn templates(&self, key: &str, value: LocatedValue<'_>) -> Result<Vec<Template>, ConfigError> {
        let texts = self.reader.texts(value, &below(self.path, key))?;
        let template =
            |(index, (at, text, _)): (usize, (usize, String, String))| self.checked(element_path(key, index), at, text);
        texts.into_iter().enumerate().map(template).collect()
    }

    pub(super) fn template(&self, path: String, value: LocatedValue<'_>) -> Result<Template, ConfigError> {
        let text = self.reader.text(value, &below(self.path, &path))?;
        self.checked(path, value.at(), text)
    }

    fn checked(&self, path: String, at: usize, text: String) -> Result<Template, ConfigError> {
        let template = Template { text, at: self.reader.position(at), path };
        match template.check(self.dialect().forms()) {
            Ok(_) => Ok(template),
            Err(kind) => Err(self.error(at, &template.path, kind)),
        }
    }

    fn boolean(&mut self, key: &str) -> Result<Option<bool>, ConfigError> {
        let member = self.take(key);
        member.map(|member| self.reader.boolean(member.value, &below(self.path, key))).transpose()
    }

    fn timeout(&mut self) -> Result<Option<Option<Duration>>, ConfigError> {
        let dialect = self.dialect();
        let (path, member) = match self.take("requestTimeoutMs") {
            Some(member) => ("requestTimeoutMs".into(), member),
            None => match self.take("timeout") {
                Some(member) if dialect == Dialect::OpenCode && member.value.kind() == JsonKind::Object => {
                    match self.one_of_times(member.value)? {
                        Some(found) => found,
                        None => return Ok(None),
                    }
                }
                Some(member) => ("timeout".into(), member),
                None => return Ok(None),
            },
        };
        self.reader.check(member.value, &below(self.path, &path), JsonKind::Number, "a number")?;
        let value = member.value.integer().and_then(|value| u64::try_from(value).ok());
        let value = value.ok_or_else(|| self.error(member.value.at(), &path, ConfigErrorKind::Timeout))?;
        let time = if path == "requestTimeoutMs" { Duration::from_millis(value) } else { dialect.timeout(value) };
        Ok(Some(Some(time).filter(|time| !time.is_zero())))
    }

    /// Returns the timeout of requests among those of opencode 2, with its path. Those of the start
    /// and of lists have no effect.
    fn one_of_times(&mut self, times: LocatedValue<'v>) -> Result<Option<(String, LocatedMember<'v>)>, ConfigError> {
        const NAMES: [&str; 2] = ["execution", "request"];
        let path = below(self.path, "timeout");
        let mut known = self.reader.known(times, &path, |key| NAMES.contains(&key))?;
        let name = NAMES.into_iter().find(|name| known.contains_key(*name));
        let found = name.and_then(|name| Some((below("timeout", name), known.remove(name)?)));
        known.values().for_each(|member| self.reader.ignore(member, &path));
        Ok(found)
    }
}
