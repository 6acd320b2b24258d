//! Programs that a channel leads to: what is started, with which arguments, in which environment and process group.

use crate::redact::Arguments;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A program to start.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Program {
    /// The command: a path, or a name that the operating system looks up.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its working directory; `None` inherits ours.
    pub current_dir: Option<String>,
    /// What of our environment it inherits.
    pub inherit: Inherit,
    /// Changes to what it inherits: a value sets, `None` removes.
    pub env: Vec<(String, Option<String>)>,
    /// The process group it runs in.
    pub group: Group,
}

/// What a program inherits of our environment, before the changes of its own are made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Inherit {
    /// All of it, with whatever secrets are in it. Fit for programs that one trusts as oneself.
    #[default]
    All,
    /// These variables, where we have them. [`Inherit::usual`] is a list to start from.
    Only(Vec<String>),
    /// Nothing.
    Nothing,
}

impl Inherit {
    /// The variables that most programs need and that hold no secrets, of Unix and of Windows: the home, the search path, the user, the
    /// terminal, the folder for temporary files, the language.
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
pub enum Group {
    /// One of its own, so that the program and all that it starts can be ended together. A process that leaves the group or its session
    /// (`setsid`) is not found on Unix, and is not ended. A Ctrl-C at our terminal does not reach the group.
    #[default]
    Own,
    /// Ours. A Ctrl-C reaches it as it reaches us (not on Windows, where it has no console); only the program itself is ended with its
    /// client, not what it has started.
    Inherit,
}

impl Program {
    /// A program without arguments, in our working directory and environment, in a process group of its own.
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

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Sets what it inherits of our environment.
    #[must_use]
    pub fn inherit(mut self, inherit: Inherit) -> Self {
        self.inherit = inherit;
        self
    }

    /// Sets the process group it runs in.
    #[must_use]
    pub const fn group(mut self, group: Group) -> Self {
        self.group = group;
        self
    }

    /// Sets its working directory.
    #[must_use]
    pub fn current_dir(mut self, dir: impl Into<String>) -> Self {
        self.current_dir = Some(dir.into());
        self
    }
}

impl fmt::Debug for Program {
    /// Shows the names, not the values, of the environment, and no argument that looks like a secret.
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
