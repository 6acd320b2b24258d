//! What a person is shown before a server of a file is connected to.

use super::entry::{ServerEntry, ServerLaunch};
use super::error::{ConfigError, QuotedText};
use super::variables::Variable;
use alloc::string::String;
use core::fmt;
use mcp_proto::client::ClientConfig;
use mcp_proto::exchange::Inherit;
use mcp_proto::peer_text::write_list;
use mcp_proto::redact::Url;

/// What a client of a server would do, for a person who decides about it. `Display` writes one fact
/// a line: the program, each argument, the working directory, the file of variables, each variable
/// that is set, and the names of those that are removed or inherited; or the URL, the header fields
/// and the client of a login. Last come the variables, files, answers of the user and values of the
/// editor that the server would get.
///
/// Texts are those of the file, in full length, before anything was looked up: `${TOKEN}`, and not
/// its value. They are in quotes, with [escapes](mcp_proto::error#text-of-a-peer) for control and
/// invisible characters, quotes and backslashes. These are not shown: secrets in the query of a
/// URL, and header fields without a variable. Arguments and the values of environment variables are
/// shown, whatever their names: programs run the value of `GIT_ASKPASS`, `NODE_OPTIONS` or
/// `TOKEN_COMMAND`. So do not log a preview. `Debug` masks arguments that look like secrets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Preview<'a> {
    entry: &'a ServerEntry,
}

impl ServerEntry {
    /// Returns what a client of this server would do, to show it to the user. Nothing is looked up.
    pub const fn preview(&self) -> Preview<'_> {
        Preview { entry: self }
    }
}

impl Preview<'_> {
    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        self.entry.name()
    }

    /// Returns the configuration of a client that does what was shown, and nothing else: the user
    /// has confirmed it. `lookup` as for [`client_config`](ServerEntry::client_config).
    ///
    /// # Errors
    /// The first text that cannot be used with the values of its variables.
    pub fn confirmed(self, lookup: &dyn Fn(Variable<'_>) -> Option<String>) -> Result<ClientConfig, ConfigError> {
        self.entry.build(lookup)
    }
}

impl fmt::Display for Preview<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server {}", QuotedText(&self.entry.name))?;
        match &self.entry.launch {
            ServerLaunch::Program { command, args, cwd, env, env_file } => {
                write!(f, "\nprogram {}", QuotedText(&command.text))?;
                for arg in args {
                    write!(f, "\nargument {}", QuotedText(&arg.text))?;
                }
                if let Some(dir) = cwd {
                    write!(f, "\ndirectory {}", QuotedText(&dir.text))?;
                }
                if let Some(path) = env_file {
                    write!(f, "\nsets the variables of the file {}", QuotedText(&path.text))?;
                }
                for (name, value) in env {
                    match value {
                        Some(value) => write!(f, "\nsets {} to {}", QuotedText(name), QuotedText(&value.text))?,
                        None => write!(f, "\nremoves {}", QuotedText(name))?,
                    }
                }
                if let Inherit::Only(names) = Inherit::usual() {
                    f.write_str("\ninherits ")?;
                    write_list(f, names.iter().map(String::as_str))?;
                }
            }
            ServerLaunch::Url { url, headers, .. } => {
                write!(f, "\nurl {}", Url(&url.text))?;
                for (name, value) in headers {
                    match value.variables(self.entry.forms).next() {
                        Some(_) => write!(f, "\nheader field {}: {}", QuotedText(name), QuotedText(&value.text))?,
                        None => write!(f, "\nheader field {}", QuotedText(name))?,
                    }
                }
                if let Some(client_id) = self.entry.client_id() {
                    write!(f, "\nlogs in as the client {}", QuotedText(client_id))?;
                }
            }
        }
        self.entry.variables().into_iter().try_for_each(|variable| match variable {
            Variable::Environment(name) => write!(f, "\ngets the variable {}", QuotedText(name)),
            Variable::File(path) => write!(f, "\ngets the content of {}", QuotedText(path)),
            Variable::Input(id) => write!(f, "\ngets the answer {}", QuotedText(id)),
            Variable::Editor(name) => write!(f, "\ngets {} of the editor", QuotedText(name)),
            // Shown above.
            Variable::EnvFile(_) => Ok(()),
        })
    }
}
