//! Programs to start as peers: command, arguments, environment and process group.

use crate::redact::Arguments;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A program to start.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Program {
    /// The command: a path, or a name that the operating system looks up.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its working directory. `None` inherits that of this process.
    pub current_dir: Option<String>,
    /// The part of the environment of this process that it inherits.
    pub inherit: Inherit,
    /// Changes to the inherited environment: `Some` sets a variable, `None` removes it.
    pub env: Vec<(String, Option<String>)>,
    /// Its process group.
    pub group: Group,
}

/// What a program inherits of the environment of this process, before its own changes apply.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Inherit {
    /// All variables, including any secrets in them. For programs that are trusted like this
    /// process.
    #[default]
    All,
    /// These variables, if they are set. [`Inherit::usual`] is a list to start with.
    Only(Vec<String>),
    /// Nothing.
    Nothing,
}

impl Inherit {
    /// Returns the variables that most programs need and that hold no secrets, for Unix and
    /// Windows: home directory, search path, user, terminal, temporary directory, language.
    pub fn usual() -> Self {
        const USUAL: [&str; 27] = [
            "APPDATA",
            "COMSPEC",
            "HOME",
            "HOMEDRIVE",
            "HOMEPATH",
            "LANG",
            "LC_ALL",
            "LC_CTYPE",
            "LOCALAPPDATA",
            "LOGNAME",
            "PATH",
            "PATHEXT",
            "PROCESSOR_ARCHITECTURE",
            "PROGRAMFILES",
            "SHELL",
            "SYSTEMDRIVE",
            "SYSTEMROOT",
            "TEMP",
            "TERM",
            "TMP",
            "TMPDIR",
            "TZ",
            "USER",
            "USERNAME",
            "USERPROFILE",
            "WINDIR",
            "XDG_RUNTIME_DIR",
        ];
        Self::Only(USUAL.map(String::from).to_vec())
    }
}

/// The process group of a program (on Windows: its job).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Group {
    /// A new group, so that the program and its descendants can be ended together. On Unix a
    /// process that leaves the group or its session (`setsid`) is not found and not ended. A Ctrl-C
    /// at the terminal of this process does not reach the group.
    #[default]
    Own,
    /// The group of this process. A Ctrl-C reaches the program too (not on Windows, where it has no
    /// console). The end of the client ends only the program itself, not its descendants.
    Inherit,
}

impl Program {
    /// Creates a program without arguments, with the working directory and the environment of this
    /// process, in a new process group.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            current_dir: None,
            inherit: Inherit::All,
            env: Vec::new(),
            group: Group::Own,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Sets the part of the environment that it inherits.
    #[must_use]
    pub fn inherit(mut self, inherit: Inherit) -> Self {
        self.inherit = inherit;
        self
    }

    /// Sets the process group.
    #[must_use]
    pub const fn group(mut self, group: Group) -> Self {
        self.group = group;
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, dir: impl Into<String>) -> Self {
        self.current_dir = Some(dir.into());
        self
    }
}

impl fmt::Debug for Program {
    /// Shows the names of the environment variables without their values, and masks arguments that
    /// look like secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Program")
            .field("command", &self.command)
            .field("args", &Arguments(&self.args))
            .field("current_dir", &self.current_dir)
            .field("inherit", &self.inherit)
            .field("env", &names)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}
