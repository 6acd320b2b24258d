//! From a server of a file to the configuration of a client: variables, trust, and what a person is
//! shown before a program starts.

use super::entry::{Launch, ServerEntry, below, client_config};
use super::env_file;
use super::error::{ConfigError, ConfigErrorKind, Quoted};
use super::variables::{Lookup, Template, Variable};
use crate::client::{BadHeader, ClientConfig, ListenerTime, Target};
use crate::exchange::{Endpoint, Inherit, Program};
use crate::peer_text::write_list;
use crate::redact::Url;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Whether the user wrote a configuration file, or got it with something else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Trust {
    /// The user wrote the file, or has confirmed this server before.
    Trusted,
    /// The file came with a project, so that its author chose the commands. A server that
    /// [needs a confirmation](ServerEntry::needs_confirmation) is refused:
    /// [`preview`](ServerEntry::preview) shows it to the user.
    Project,
}

impl ServerEntry {
    /// Returns whether a server of a project's file needs a confirmation of the user: it starts a
    /// program, or it sends values of the environment or of a file to a URL.
    pub fn needs_confirmation(&self) -> bool {
        let reads = |variable: &Variable<'_>| matches!(variable, Variable::Environment(_) | Variable::File(_));
        self.command().is_some() || self.variables().iter().any(reads)
    }

    /// Returns the configuration of a client of this server. `lookup` returns the values of
    /// variables, and `None` for those that have none.
    ///
    /// A program inherits only [`Inherit::usual`] of the environment, whatever the trust, beside
    /// the variables that the file names. Relative paths stay relative.
    ///
    /// ```
    /// use mcp_proto::config_file::{ConfigFile, Trust, Variable};
    ///
    /// let text = r#"{"mcpServers": {"mail": {
    ///     "command": "mail-server", "args": ["-u", "${USER:-me}"], "env": {"KEY": "${MAIL_KEY}"},
    /// }}}"#;
    /// let file = ConfigFile::parse(text).unwrap();
    /// let entry = file.server("mail").unwrap().unwrap();
    /// let lookup = |variable: Variable<'_>| match variable {
    ///     Variable::Environment("MAIL_KEY") => Some("secret".to_owned()),
    ///     _ => None,
    /// };
    /// let config = entry.client_config(&lookup, Trust::Trusted).unwrap();
    /// let shown = format!("{config:?}");
    /// assert!(shown.contains("mail-server") && !shown.contains("secret"));
    /// // A project's file does not start a program by itself.
    /// assert!(entry.client_config(&lookup, Trust::Project).is_err());
    /// let preview = entry.preview(&lookup).unwrap();
    /// let shown = preview.to_string();
    /// assert!(shown.starts_with("server \"mail\"\nprogram \"mail-server\"\nargument \"-u\"\n"));
    /// let config = preview.confirmed();
    /// # drop(config);
    /// ```
    ///
    /// # Errors
    /// [`Unconfirmed`](ConfigErrorKind::Unconfirmed) for a server of a project that needs a
    /// confirmation; `lookup` is not called then. Otherwise the first text that cannot be used with
    /// the values of its variables.
    pub fn client_config(
        &self,
        lookup: &dyn Fn(Variable<'_>) -> Option<String>,
        trust: Trust,
    ) -> Result<ClientConfig, ConfigError> {
        match trust {
            Trust::Project if self.needs_confirmation() => {
                let Some(first) = self.launch.templates().next() else { return self.build(lookup) };
                Err(self.fault(first, ConfigErrorKind::Unconfirmed))
            }
            Trust::Trusted | Trust::Project => self.build(lookup),
        }
    }

    /// Returns what a client of this server would do, to show it to the user.
    ///
    /// # Errors
    /// As [`client_config`](Self::client_config), except for the confirmation.
    pub fn preview(&self, lookup: &dyn Fn(Variable<'_>) -> Option<String>) -> Result<Preview, ConfigError> {
        Ok(Preview { name: self.name.clone(), config: self.build(lookup)? })
    }

    fn build(&self, lookup: Lookup<'_>) -> Result<ClientConfig, ConfigError> {
        let mut config = match &self.launch {
            Launch::Program { command, args, cwd, env, env_file } => {
                let text = |template: &Template| self.program_text(template, lookup);
                let name = text(command)?;
                if name.trim().is_empty() {
                    return Err(self.fault(command, ConfigErrorKind::EmptyCommand));
                }
                let mut program = Program::new(name).inherit(Inherit::usual());
                program.args = args.iter().map(text).collect::<Result<_, _>>()?;
                program.current_dir = cwd.as_ref().map(text).transpose()?;
                if let Some(path) = env_file {
                    program.env = self.env_of_file(path, env, lookup)?;
                }
                for (name, value) in env {
                    program.env.push((name.clone(), value.as_ref().map(text).transpose()?));
                }
                ClientConfig::program(program)
            }
            Launch::Url { url, headers, mode, scheme } => {
                let text = self.resolve(url, lookup)?;
                let mut config = client_config(&text, *mode, *scheme).map_err(|kind| self.fault(url, kind))?;
                for (name, template) in headers {
                    let value = self.resolve(template, lookup)?;
                    BadHeader::check(name, &value).map_err(|why| self.fault(template, ConfigErrorKind::Header(why)))?;
                    config.headers.push(name, value);
                }
                config
            }
        };
        if let Some(timeout) = self.timeout {
            config.timeout = timeout;
            if timeout.is_none() {
                config.compat.listener_start = ListenerTime::Unlimited;
            }
        }
        Ok(config)
    }

    /// Returns the variables of the file of variables that `env` does not set or remove.
    fn env_of_file(
        &self,
        path: &Template,
        env: &[(String, Option<Template>)],
        lookup: Lookup<'_>,
    ) -> Result<Vec<(String, Option<String>)>, ConfigError> {
        let name = self.program_text(path, lookup)?;
        let Some(text) = lookup(Variable::EnvFile(&name)) else {
            return Err(self.fault(path, ConfigErrorKind::EnvFileMissing));
        };
        let variables = env_file::parse(&text)
            .map_err(|(line, fault)| self.fault(path, ConfigErrorKind::EnvFile { line, fault }))?;
        let names: BTreeSet<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        let others = variables.into_iter().filter(|(name, _)| !names.contains(name.as_str()));
        Ok(others.map(|(name, value)| (name, Some(value))).collect())
    }

    /// Returns a text with the values of its variables, for a program.
    fn program_text(&self, template: &Template, lookup: Lookup<'_>) -> Result<String, ConfigError> {
        let text = self.resolve(template, lookup)?;
        if text.contains('\0') { Err(self.fault(template, ConfigErrorKind::Nul)) } else { Ok(text) }
    }

    fn resolve(&self, template: &Template, lookup: Lookup<'_>) -> Result<String, ConfigError> {
        template.resolve(self.forms, lookup).map_err(|kind| self.fault(template, kind))
    }

    fn fault(&self, template: &Template, kind: ConfigErrorKind) -> ConfigError {
        ConfigError::new(template.at, below(&self.path, &template.path), kind)
    }
}

/// What a client of a server would do, for a person who decides about it. `Display` writes one fact
/// a line: the program, each argument, the working directory, and the names of variables; or the
/// URL and the names of header fields. Texts are in quotes, with
/// [escapes](crate::error#text-of-a-peer) for control characters, quotes and backslashes, and in
/// full length.
///
/// Values of variables and header fields are not shown, nor secrets in the query of a URL.
/// Arguments are shown, since they are part of the command. They contain what the file or a
/// variable put there: do not log them. `Debug` masks those that look like secrets.
#[derive(Clone, PartialEq, Debug)]
pub struct Preview {
    name: String,
    config: ClientConfig,
}

impl Preview {
    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the configuration of a client that does what was shown, and nothing else: the user
    /// has confirmed it.
    pub fn confirmed(self) -> ClientConfig {
        self.config
    }
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server {}", Quoted(&self.name))?;
        match &self.config.target {
            Target::Duplex(Endpoint::Program(program)) => write_program(f, program),
            Target::Http(target) => self.write_url(f, &target.original),
            Target::Ws(target) => self.write_url(f, &target.original),
            Target::Duplex(_) => Ok(()),
        }
    }
}

impl Preview {
    fn write_url(&self, f: &mut fmt::Formatter<'_>, url: &str) -> fmt::Result {
        write!(f, "\nurl {}", Url(url))?;
        write_names(f, "header fields", self.config.headers.iter().map(|(name, _)| name))
    }
}

fn write_program(f: &mut fmt::Formatter<'_>, program: &Program) -> fmt::Result {
    write!(f, "\nprogram {}", Quoted(&program.command))?;
    for arg in &program.args {
        write!(f, "\nargument {}", Quoted(arg))?;
    }
    if let Some(dir) = &program.current_dir {
        write!(f, "\ndirectory {}", Quoted(dir))?;
    }
    let set = |is_set: bool| program.env.iter().filter(move |(_, value)| value.is_some() == is_set);
    write_names(f, "sets", set(true).map(|(name, _)| name.as_str()))?;
    write_names(f, "removes", set(false).map(|(name, _)| name.as_str()))?;
    match &program.inherit {
        Inherit::All => f.write_str("\ninherits the whole environment"),
        Inherit::Only(names) => write_names(f, "inherits", names.iter().map(String::as_str)),
        Inherit::Nothing => Ok(()),
    }
}

/// Writes a line of names, if there are any.
fn write_names<'a>(f: &mut fmt::Formatter<'_>, what: &str, names: impl Iterator<Item = &'a str>) -> fmt::Result {
    let mut names = names.peekable();
    if names.peek().is_none() {
        return Ok(());
    }
    write!(f, "\n{what} ")?;
    write_list(f, names)
}
