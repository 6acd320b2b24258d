//! From the words of the command line to the configuration of a client.

use crate::ask;
use crate::failure::Failure;
use crate::options::Reach;
use crate::output::{note, one_line, printable};
use mcp_blocking::mcp_proto::ClientConfig;
use mcp_blocking::mcp_proto::client::Target;
use mcp_blocking::mcp_proto::config_file::{ConfigFile, Dialect, Trust, Variable};
use mcp_blocking::mcp_proto::exchange::Headers;
use mcp_blocking::{Program, ProtocolVersion, Versions};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A server to connect to.
#[derive(Clone)]
pub(crate) struct Server {
    /// Its name for people.
    pub(crate) name: String,
    pub(crate) config: ClientConfig,
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
            (Some((program, args)), None) => {
                Server { name: program.clone(), config: ClientConfig::program(Program::new(program).args(args)) }
            }
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
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|e| Failure::usage(format!("{shown}: {e}")))?;
        let file = if self.gemini { ConfigFile::parse_as(Dialect::GeminiCli, &text) } else { ConfigFile::parse(&text) };
        let file = file.map_err(|e| Failure::usage(format!("{shown}: {e}")))?;
        let Some((name, entry)) = name.and_then(|name| Some((name, file.server(name)?))) else {
            let names: Vec<_> = file.servers().map(|(name, _)| one_line(name)).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let why = match name {
                Some(name) => format!("{shown} has no server {}", one_line(name)),
                None => "TARGET is missing: the name of a server of the file".to_owned(),
            };
            return Err(Failure::usage(format!("{why}; its servers: {names}")));
        };
        let entry = entry.map_err(|e| Failure::usage(format!("{shown}: {e}")))?;
        let inputs = RefCell::new(BTreeMap::new());
        let lookup = |variable: Variable<'_>| look_up(&file, &inputs, path, variable);
        let trust = if self.yes { Trust::Trusted } else { Trust::Project };
        let config = if entry.needs_confirmation() && !self.yes {
            let preview = entry.preview();
            note(preview);
            if !ask::can_ask() {
                return Err(Failure::usage("this needs a confirmation: --yes, or a terminal to ask on"));
            }
            if !ask::confirms("Connect to this server?") {
                return Err(Failure::Declined);
            }
            preview.confirmed(&lookup)
        } else {
            entry.client_config(&lookup, trust)
        };
        let config = config.map_err(|e| {
            // Perhaps the variable is one of these.
            let faulty = file.inputs().filter_map(Result::err).map(|why| format!("; {why}"));
            Failure::usage(format!("{shown}: {e}{}", faulty.collect::<String>()))
        })?;
        Ok(Server { name: name.to_owned(), config })
    }

    fn adjusted(&self, mut config: ClientConfig) -> Result<ClientConfig, Failure> {
        let fields = self
            .headers
            .iter()
            .map(|field| field.split_once(':').ok_or_else(|| Failure::usage("--header is written as 'Name: value'")));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        // They replace those of a file: a server takes one `Authorization`.
        let is_given = |name: &str| fields.iter().any(|(given, _)| given.trim().eq_ignore_ascii_case(name));
        let kept = config.headers.iter().filter(|(name, _)| !is_given(name));
        config.headers = kept.fold(Headers::new(), |headers, (name, value)| headers.with(name, value));
        for (name, value) in fields {
            config = config.header(name.trim(), value.trim()).map_err(|e| Failure::usage(format!("--header: {e}")))?;
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

fn seconds(number: f64, option: &str) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(number).map_err(|_| Failure::usage(format!("{option} is a number of seconds from 0")))
}

fn of_url(url: String) -> Result<Server, Failure> {
    let config = ClientConfig::url(&url).map_err(|e| {
        let shown = one_line(&url);
        let hint =
            if url.contains("://") { "" } else { "; a command stands after --, a server of a file needs --config" };
        Failure::usage(format!("{shown} is no URL of a server: {e}{hint}"))
    })?;
    Ok(Server { name: url, config })
}

fn home() -> Option<String> {
    env::var("HOME").or_else(|_| env::var("USERPROFILE")).ok()
}

/// Returns the value of a variable of a file.
fn look_up(
    file: &ConfigFile,
    inputs: &RefCell<BTreeMap<String, Option<String>>>,
    path: &Path,
    variable: Variable<'_>,
) -> Option<String> {
    let folder = || env::current_dir().ok();
    match variable {
        Variable::Environment(name) => env::var(name).ok(),
        Variable::File(name) | Variable::EnvFile(name) => {
            // A relative path is one in the folder of the file.
            let path = match name.strip_prefix("~/") {
                Some(below) => Path::new(&home()?).join(below),
                None => path.parent().unwrap_or(Path::new("")).join(name),
            };
            fs::read_to_string(path).ok()
        }
        Variable::Input(id) => {
            if let Some(known) = inputs.borrow().get(id) {
                return known.clone();
            }
            let prompt = file.inputs().flatten().find(|prompt| prompt.id == id)?;
            let answer = ask::input(prompt);
            inputs.borrow_mut().insert(id.to_owned(), answer.clone());
            answer
        }
        Variable::Editor("workspaceFolder" | "cwd") => folder()?.into_os_string().into_string().ok(),
        Variable::Editor("workspaceFolderBasename") => Some(folder()?.file_name()?.to_str()?.to_owned()),
        Variable::Editor("userHome") => home(),
        Variable::Editor("pathSeparator" | "/") => Some(std::path::MAIN_SEPARATOR.to_string()),
        _ => None,
    }
}
