//! From the words of the command line to the configuration of a client.

use crate::ask;
use crate::failure::Failure;
use crate::files;
use crate::headers;
use crate::login::NAME;
use crate::lookup::Lookup;
use crate::options::Reach;
use crate::output::{note, one_line, printable, word};
use crate::suggest;
use mcp_blocking::mcp_proto::ClientConfig;
use mcp_blocking::mcp_proto::client::Target;
use mcp_blocking::mcp_proto::exchange::Headers;
use mcp_blocking::mcp_proto::redact::Url;
use mcp_blocking::mcp_supervisor::config_file::{ConfigFile, Dialect, Trust, Variable};
use mcp_blocking::{OAuth, Program, ProtocolVersion, Versions};
use std::collections::VecDeque;
use std::env;
use std::path::Path;
use std::time::Duration;

/// A server to connect to.
#[derive(Clone)]
pub(crate) struct Server {
    /// Its name for people: one line without secrets.
    pub(crate) name: String,
    pub(crate) config: ClientConfig,
    /// How a client logs in, as its file says. `None`: it turns logins off.
    pub(crate) login: Option<OAuth>,
}

impl Server {
    /// Returns whether it is a program that this command starts.
    pub(crate) const fn is_program(&self) -> bool {
        matches!(self.config.target, Target::Duplex(_))
    }
}

impl Reach {
    /// Returns the server, and the words that are left.
    pub(crate) fn server(&self, words: Vec<String>) -> Result<(Server, VecDeque<String>), Failure> {
        let mut words = VecDeque::from(words);
        let mut server = match (self.command.split_first(), &self.config) {
            (Some(_), Some(_)) => return Err(Failure::usage("--config and a command after -- exclude each other")),
            (Some((program, args)), None) => Server {
                name: Url(program).to_string(),
                config: ClientConfig::program(Program::new(program).args(args)),
                login: None,
            },
            (None, config) => {
                let target = words.pop_front();
                match (config, target) {
                    (Some(file), target) => self.of_file(file, target.as_deref())?,
                    (None, Some(url)) => of_url(url)?,
                    (None, None) => {
                        let kinds = "a URL, a server of a file (--config), or a command after --";
                        return Err(Failure::usage(format!("TARGET is missing: {kinds}")));
                    }
                }
            }
        };
        server.config = self.adjusted(server.config)?;
        Ok((server, words))
    }

    fn of_file(&self, path: &Path, name: Option<&str>) -> Result<Server, Failure> {
        let shown = Url(&path.to_string_lossy()).to_string();
        let text = files::config(path).map_err(|e| Failure::usage(format!("{shown}: {e}")))?;
        let file = if self.gemini { ConfigFile::parse_as(Dialect::GeminiCli, &text) } else { ConfigFile::parse(&text) };
        let file = file.map_err(|e| Failure::usage(format!("{shown}: {e}")))?;
        let Some((name, entry)) = name.and_then(|name| Some((name, file.server(name)?))) else {
            let names: Vec<_> = file.servers().map(|(name, _)| one_line(name)).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let why = match name {
                Some(name) => format!("{shown} has no server {}", word(name)),
                None => "TARGET is missing: the name of a server of the file".to_owned(),
            };
            return Err(Failure::usage(format!("{why}; its servers: {names}")));
        };
        let entry = entry.map_err(|e| Failure::usage(format!("{shown}: {e}")))?;
        if entry.is_disabled() {
            note(format_args!("[mcp] {shown} turns the server {} off: it is used since it was named", one_line(name)));
        }
        without_effect(&file, name).iter().for_each(|text| note(format_args!("[mcp] {shown}: {text}")));
        let values = Lookup::new(&file, path, &self.inputs)?;
        let lookup = |variable: Variable<'_>| values.value(variable);
        let mut trust = if self.yes { Trust::Trusted } else { Trust::Project };
        let config = if entry.needs_confirmation() && !self.yes {
            let preview = entry.preview();
            note(shown_preview(&preview.to_string(), self.verbose));
            if !ask::can_ask() {
                return Err(Failure::usage("this needs a confirmation: --yes, or a terminal to ask on"));
            }
            if !ask::confirms("Connect to this server?") {
                return Err(Failure::Declined);
            }
            trust = Trust::Trusted;
            preview.confirmed(&lookup)
        } else {
            entry.client_config(&lookup, trust)
        };
        let login = entry.login(OAuth::new(NAME), &lookup, trust);
        let found = config.and_then(|config| Ok((config, login?)));
        let (config, login) = found.map_err(|e| {
            // Perhaps the variable is one of these.
            let faulty = file.inputs().filter_map(Result::err).map(|why| format!("; {why}"));
            Failure::usage(format!("{shown}: {e}{}{}", values.reasons(), faulty.collect::<String>()))
        })?;
        Ok(Server { name: one_line(name), config, login })
    }

    fn adjusted(&self, mut config: ClientConfig) -> Result<ClientConfig, Failure> {
        let fields = headers::fields(self)?;
        // They replace those of a file: a server takes one `Authorization`.
        let is_given = |name: &str| fields.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let kept = config.headers.iter().filter(|(name, _)| !is_given(name));
        config.headers = kept.fold(Headers::new(), |headers, (name, value)| headers.with(name, value));
        for (name, value) in fields {
            config = config.header(&name, &value).map_err(|e| Failure::usage(format!("--header: {e}")))?;
        }
        if let Some(revision) = &self.revision {
            let version = ProtocolVersion::parse(revision).ok_or_else(|| {
                let known = ProtocolVersion::ALL.map(ProtocolVersion::as_str).join(", ");
                Failure::usage(format!("--revision {} is unknown; the revisions are {known}", printable(revision)))
            })?;
            config.versions = Versions::new([version]);
        }
        let (frame, max) = (&mut config.limits.frame, self.max_message());
        (frame.max_line, frame.max_event, frame.max_response_body) = (max, max, max);
        if let Some(timeout) = self.timeout {
            let timeout = seconds(timeout, "--timeout")?;
            config.timeout = (!timeout.is_zero()).then_some(timeout);
        }
        if let Some(timeout) = self.connect_timeout {
            config.connect_timeout = seconds(timeout, "--connect-timeout")?;
        }
        Ok(config)
    }
}

/// Returns a preview with the names of the inherited variables, which are always the same, only if
/// they are wanted. Each of its lines begins with a word of the library.
fn shown_preview(preview: &str, verbose: bool) -> String {
    let lines = preview.lines().map(|text| match text.strip_prefix("inherits ") {
        Some(names) if !verbose => {
            format!("inherits {} usual variables of this environment (--verbose names them)", names.split(", ").count())
        }
        _ => text.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Maximum number of members without effect that are named.
const NAMED: usize = 5;

/// Returns a line for each member of a file that has no effect on this server. Values are not
/// shown: they may be secrets.
fn without_effect(file: &ConfigFile, name: &str) -> Vec<String> {
    let is_of = |path: &str, server: &str| {
        let quoted = format!("[\"{server}\"]");
        path.contains(&format!(".{server}.")) || path.contains(&quoted)
    };
    let others: Vec<&str> = file.servers().map(|(other, _)| other).filter(|other| *other != name).collect();
    let of_another = |path: &str| !is_of(path, name) && others.iter().any(|other| is_of(path, other));
    let ignored = file.ignored().iter().take(MOST_IGNORED).filter(|member| !of_another(&member.path));
    let mut lines: Vec<_> = ignored
        .map(|member| {
            format!("line {}, column {}, {} has no effect", member.line, member.column, one_line(&member.path))
        })
        .collect();
    if let Some(more) = lines.len().checked_sub(NAMED).filter(|more| *more > 0) {
        lines.truncate(NAMED);
        lines.push(format!("{more} more members have no effect"));
    }
    lines
}

/// Maximum number of members without effect that are looked at: a file may have many, and servers.
const MOST_IGNORED: usize = 1000;

fn seconds(number: f64, option: &str) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(number).map_err(|_| Failure::usage(format!("{option} is a number of seconds from 0")))
}

fn of_url(url: String) -> Result<Server, Failure> {
    let config = ClientConfig::url(&url).map_err(|e| {
        let words: Vec<String> = env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let form = suggest::form(&words).map(|form| format!("; {form}"));
        Failure::usage(format!("{} is no URL of a server: {e}{}", word(&url), form.unwrap_or_default()))
    })?;
    Ok(Server { name: word(&url), config, login: Some(OAuth::new(NAME)) })
}
