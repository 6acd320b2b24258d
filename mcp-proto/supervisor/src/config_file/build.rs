//! From a server of a file to the configuration of a client: variables and trust.

use super::entry::{ServerEntry, ServerLaunch, below, client_config};
use super::env_file;
use super::error::{ConfigError, ConfigErrorKind};
use super::variables::{Lookup, Template, Variable};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use mcp_proto::client::{BadHeader, ClientConfig, ListenerTime};
use mcp_proto::exchange::{Inherit, Program};

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
    /// program, or it sends the value of a variable to a URL, of whatever kind: one of the
    /// environment, an answer of the user, the content of a file, or a value of the editor, such as
    /// `${userHome}` or `${config:http.proxy}`. A default does not change that.
    pub fn needs_confirmation(&self) -> bool {
        self.command().is_some() || !self.variables().is_empty()
    }

    /// Returns the configuration of a client of this server. `lookup` returns the values of
    /// variables, and `None` for those that have none.
    ///
    /// A program inherits only [`Inherit::usual`] of the environment, whatever the trust, beside
    /// the variables that the file names. Relative paths stay relative.
    ///
    /// ```
    /// use mcp_supervisor::config_file::{ConfigFile, Trust, Variable};
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
    /// let preview = entry.preview();
    /// let shown = preview.to_string();
    /// assert!(shown.starts_with("server \"mail\"\nprogram \"mail-server\"\nargument \"-u\"\n"));
    /// assert!(shown.contains("sets \"KEY\" to \"${MAIL_KEY}\""));
    /// let config = preview.confirmed(&lookup).unwrap();
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
        self.check_trust(trust)?;
        self.build(lookup)
    }

    pub(super) fn check_trust(&self, trust: Trust) -> Result<(), ConfigError> {
        match (trust, self.launch.templates().next()) {
            (Trust::Project, Some(first)) if self.needs_confirmation() => {
                Err(self.fault(first, ConfigErrorKind::Unconfirmed))
            }
            (Trust::Trusted | Trust::Project, _) => Ok(()),
        }
    }

    pub(super) fn build(&self, lookup: Lookup<'_>) -> Result<ClientConfig, ConfigError> {
        let mut config = match &self.launch {
            ServerLaunch::Program { command, args, cwd, env, env_file } => {
                let text = |template: &Template| self.program_text(template, lookup);
                let name = text(command)?;
                if name.trim().is_empty() {
                    return Err(self.fault(command, ConfigErrorKind::EmptyCommand));
                }
                let mut program = Program::new(name).inherit(Inherit::usual());
                // A program such as `mcp-remote` expands its own variables in its arguments.
                let set: BTreeSet<&str> =
                    env.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name.as_str()).collect();
                let arg = |template: &Template| self.argument(template, lookup, &set);
                program.args = args.iter().map(arg).collect::<Result<_, _>>()?;
                program.current_dir = cwd.as_ref().map(text).transpose()?;
                if let Some(path) = env_file {
                    program.env = self.env_of_file(path, env, lookup)?;
                }
                for (name, value) in env {
                    program.env.push((name.clone(), value.as_ref().map(text).transpose()?));
                }
                ClientConfig::program(program)
            }
            ServerLaunch::Url { url, headers, mode, scheme, .. } => {
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

    /// As [`resolve`](Self::resolve), for a program: the system takes no NUL.
    fn program_text(&self, template: &Template, lookup: Lookup<'_>) -> Result<String, ConfigError> {
        self.argument(template, lookup, &BTreeSet::new())
    }

    /// Returns an argument of a program. A variable of `of_program` that has no value stays as it
    /// is written: the program may expand it.
    fn argument(
        &self,
        template: &Template,
        lookup: Lookup<'_>,
        of_program: &BTreeSet<&str>,
    ) -> Result<String, ConfigError> {
        let text = template.resolve(self.forms, lookup, of_program).map_err(|kind| self.fault(template, kind))?;
        if text.contains('\0') { Err(self.fault(template, ConfigErrorKind::Nul)) } else { Ok(text) }
    }

    /// Returns a text with the values of its variables.
    pub(super) fn resolve(&self, template: &Template, lookup: Lookup<'_>) -> Result<String, ConfigError> {
        template.resolve(self.forms, lookup, &BTreeSet::new()).map_err(|kind| self.fault(template, kind))
    }

    pub(super) fn fault(&self, template: &Template, kind: ConfigErrorKind) -> ConfigError {
        ConfigError::new(template.at, below(&self.path, &template.path), kind)
    }
}
