//! A server of a configuration file, as written.

use super::error::ConfigErrorKind;
use super::login::LoginTexts;
use super::variables::{Forms, Template, Variable};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use mcp_proto::client::{ClientConfig, HttpMode, Target};
use mcp_proto::redact::{Arguments, Url};

/// A server of a configuration file. Its texts are as written: they may refer to
/// [variables](Variable). Its `Debug` shows no value of a variable or header field, and masks
/// arguments that look like secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerEntry {
    pub(super) name: String,
    /// The path in the file.
    pub(super) path: String,
    pub(super) forms: Forms,
    pub(super) is_disabled: bool,
    pub(super) timeout: Option<Option<Duration>>,
    pub(super) launch: ServerLaunch,
}

/// How to reach a server.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum ServerLaunch {
    Program {
        command: Template,
        args: Vec<Template>,
        cwd: Option<Template>,
        /// `None` removes a variable.
        env: Vec<(String, Option<Template>)>,
        env_file: Option<Template>,
    },
    Url {
        url: Template,
        headers: Vec<(String, Template)>,
        mode: HttpMode,
        scheme: Option<Scheme>,
        login: Option<Box<LoginTexts>>,
    },
}

/// The scheme that the type of a server requires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Ws,
}

/// Returns the configuration of a client of the server at a URL.
pub(super) fn client_config(
    url: &str,
    mode: HttpMode,
    scheme: Option<Scheme>,
) -> Result<ClientConfig, ConfigErrorKind> {
    let mut config = ClientConfig::url(url).map_err(ConfigErrorKind::Url)?;
    match (&config.target, scheme) {
        (Target::Ws(_), Some(Scheme::Http)) => return Err(ConfigErrorKind::UrlScheme("an http: or https:")),
        (Target::Http(_), Some(Scheme::Ws)) => return Err(ConfigErrorKind::UrlScheme("a ws: or wss:")),
        _ => {}
    }
    config.http_mode = mode;
    Ok(config)
}

/// Returns the path of something in a server.
pub(super) fn below(server: &str, path: &str) -> String {
    [server, ".", path].concat()
}

impl ServerLaunch {
    /// Returns all texts that may refer to variables.
    pub(super) fn templates(&self) -> impl Iterator<Item = &Template> {
        let (first, args, cwd, env, env_file, headers, login) = match self {
            Self::Program { command, args, cwd, env, env_file } => {
                (command, &args[..], cwd.as_ref(), &env[..], env_file.as_ref(), &[][..], None)
            }
            Self::Url { url, headers, login, .. } => {
                (url, &[][..], None, &[][..], None, &headers[..], login.as_deref())
            }
        };
        let env = env.iter().filter_map(|(_, value)| value.as_ref());
        let headers = headers.iter().map(|(_, value)| value);
        let login = login.into_iter().flat_map(LoginTexts::templates);
        [first].into_iter().chain(args).chain(cwd).chain(env_file).chain(env).chain(headers).chain(login)
    }
}

impl ServerEntry {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the file turns the server off: `disabled`, or `enabled` with `false`. The
    /// application decides what follows from it.
    pub const fn is_disabled(&self) -> bool {
        self.is_disabled
    }

    /// Returns the command, as written. `None` if the server has a URL.
    pub fn command(&self) -> Option<&str> {
        match &self.launch {
            ServerLaunch::Program { command, .. } => Some(&command.text),
            ServerLaunch::Url { .. } => None,
        }
    }

    /// Returns the arguments of the command, as written.
    pub fn args(&self) -> impl Iterator<Item = &str> {
        let args = match &self.launch {
            ServerLaunch::Program { args, .. } => &args[..],
            ServerLaunch::Url { .. } => &[],
        };
        args.iter().map(|arg| arg.text.as_str())
    }

    /// Returns the working directory of the command, as written. `None` without one.
    pub fn current_dir(&self) -> Option<&str> {
        match &self.launch {
            ServerLaunch::Program { cwd, .. } => cwd.as_ref().map(|cwd| cwd.text.as_str()),
            ServerLaunch::Url { .. } => None,
        }
    }

    /// Returns the names of the environment variables that the file sets or removes.
    pub fn env_names(&self) -> impl Iterator<Item = &str> {
        let env = match &self.launch {
            ServerLaunch::Program { env, .. } => &env[..],
            ServerLaunch::Url { .. } => &[],
        };
        env.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the path of the file of variables (`envFile`), as written. `None` without one. The
    /// look-up gets it as [`Variable::EnvFile`].
    pub fn env_file(&self) -> Option<&str> {
        match &self.launch {
            ServerLaunch::Program { env_file, .. } => env_file.as_ref().map(|path| path.text.as_str()),
            ServerLaunch::Url { .. } => None,
        }
    }

    /// Returns the URL, as written. It may contain a secret. `None` if the server has a command.
    pub fn url(&self) -> Option<&str> {
        match &self.launch {
            ServerLaunch::Program { .. } => None,
            ServerLaunch::Url { url, .. } => Some(&url.text),
        }
    }

    /// Returns the names of the header fields.
    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        let headers = match &self.launch {
            ServerLaunch::Program { .. } => &[],
            ServerLaunch::Url { headers, .. } => &headers[..],
        };
        headers.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the client identifier with which the file logs in (OAuth), as written. `None`: it
    /// names none.
    pub fn client_id(&self) -> Option<&str> {
        match &self.launch {
            ServerLaunch::Program { .. } => None,
            ServerLaunch::Url { login, .. } => Some(&login.as_ref()?.client_id.as_ref()?.text),
        }
    }

    /// Returns the timeout of requests that the file sets. `None`: it sets none.
    /// `Some(None)`: requests have no timeout, as the value 0 says.
    pub const fn timeout(&self) -> Option<Option<Duration>> {
        self.timeout
    }

    /// Returns the variables that the texts refer to, each once, in the order of first use:
    /// command, arguments, working directory, file of variables, variables; or URL, header fields,
    /// login.
    pub fn variables(&self) -> Vec<Variable<'_>> {
        let mut met = BTreeSet::new();
        let all = self.launch.templates().flat_map(|template| template.variables(self.forms));
        all.filter(|variable| met.insert(*variable)).collect()
    }
}

impl fmt::Debug for ServerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ServerEntry");
        shown.field("name", &self.name).field("is_disabled", &self.is_disabled).field("timeout", &self.timeout);
        match &self.launch {
            ServerLaunch::Program { command, .. } => {
                let args: Vec<String> = self.args().map(String::from).collect();
                shown.field("command", &command.text).field("args", &Arguments(&args));
                shown.field("current_dir", &self.current_dir()).field("env_file", &self.env_file());
                shown.field("env", &self.env_names().collect::<Vec<_>>());
            }
            ServerLaunch::Url { url, mode, login, .. } => {
                shown.field("url", &Url(&url.text)).field("http_mode", mode);
                shown.field("headers", &self.header_names().collect::<Vec<_>>());
                if let Some(login) = login {
                    shown.field("logs_in", &!login.is_off).field("client_id", &self.client_id());
                    shown.field("callback_port", &login.callback_port);
                }
            }
        }
        shown.finish_non_exhaustive()
    }
}
