//! Conversion between `Program` and `std::process::Command`, and the setting for standard error.
//! Nothing here starts a process.

#[cfg(unix)]
use crate::exchange::Group;
use crate::exchange::{ExitStatus, Inherit, Program};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;
use std::ffi::{OsStr, OsString};
use std::process::Command;
use std::process::Stdio;

/// Where the standard error of a program goes. It is always read, and nothing in it counts as an
/// error of the connection.
#[derive(Clone, Default)]
pub enum Stderr {
    /// To the standard error of this process.
    #[default]
    Inherit,
    /// Nowhere. The last bytes are kept for the error that the exit of the program may cause.
    Discard,
    /// To this function, line by line, without the newline. A line over 64 KiB is split. The
    /// adapter documents where the function runs, and what it may do.
    Lines(Arc<dyn Fn(&str) + Send + Sync>),
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "Inherit",
            Self::Discard => "Discard",
            Self::Lines(_) => "Lines",
        })
    }
}

impl TryFrom<&Command> for Program {
    type Error = NotUnicode;

    /// Copies the command, arguments, working directory and environment changes. The adapter
    /// decides about the streams.
    fn try_from(command: &Command) -> Result<Self, NotUnicode> {
        let mut program = Self::new(text(command.get_program())?);
        for arg in command.get_args() {
            program.args.push(text(arg)?);
        }
        if let Some(dir) = command.get_current_dir() {
            program.current_dir = Some(text(dir.as_os_str())?);
        }
        for (name, value) in command.get_envs() {
            program.env.push((text(name)?, value.map(text).transpose()?));
        }
        Ok(program)
    }
}

impl Program {
    /// Returns a command that starts this program as a peer: standard input and output piped,
    /// standard error according to `stderr`, and a new process group if configured (Unix). `ours`
    /// is the environment of this process, as in [`to_command`](Self::to_command).
    pub fn to_piped(&self, stderr: &Stderr, ours: impl IntoIterator<Item = (OsString, OsString)>) -> Command {
        let mut command = self.to_command(ours);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(match stderr {
            Stderr::Inherit => Stdio::inherit(),
            // The driver reads it anyway: an error about the exit of the program includes its last
            // line.
            Stderr::Discard | Stderr::Lines(_) => Stdio::piped(),
        });
        #[cfg(unix)]
        if self.group == Group::Own {
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        command
    }

    /// Returns a command that starts this program, without setting its streams and its process
    /// group. `ours` is the environment of this process. It is read only if the program inherits a
    /// part of it.
    pub fn to_command(&self, ours: impl IntoIterator<Item = (OsString, OsString)>) -> Command {
        let mut command = Command::new(&self.command);
        command.args(&self.args);
        if let Some(dir) = &self.current_dir {
            command.current_dir(dir);
        }
        match &self.inherit {
            Inherit::All => {}
            Inherit::Only(names) => {
                command.env_clear();
                let wanted = |name: &OsStr| names.iter().any(|wanted| same_variable(name, wanted));
                command.envs(ours.into_iter().filter(|(name, _)| wanted(name)));
            }
            Inherit::Nothing => {
                command.env_clear();
            }
        }
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

impl From<std::process::ExitStatus> for ExitStatus {
    fn from(status: std::process::ExitStatus) -> Self {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal = None;
        Self { code: status.code(), signal, stderr: String::new() }
    }
}

/// Returns whether two names denote the same variable. On Windows, case does not matter.
fn same_variable(name: &OsStr, wanted: &str) -> bool {
    if cfg!(windows) { name.eq_ignore_ascii_case(wanted) } else { name == wanted }
}

fn text(os: &OsStr) -> Result<String, NotUnicode> {
    os.to_str().map(ToString::to_string).ok_or(NotUnicode)
}

/// A command, an argument, a path or a variable is not Unicode, and a [`Program`] cannot represent
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct NotUnicode;

impl fmt::Display for NotUnicode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of the command is not Unicode")
    }
}

impl core::error::Error for NotUnicode {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    // covers: S2-05, R-14
    #[test]
    fn program_inherits_the_configured_variables() {
        let ours = || [("PATH", "/bin"), ("TOKEN", "secret"), ("HOME", "/root")].map(|(k, v)| (k.into(), v.into()));
        let set = |program: &Program| -> Vec<(OsString, Option<OsString>)> {
            let command = program.to_command(ours());
            command.get_envs().map(|(name, value)| (name.into(), value.map(Into::into))).collect()
        };
        let own = [("OWN".into(), Some("1".into()))];
        let program = Program::new("p").env("OWN", "1");
        assert_eq!(set(&program), own, "the rest is inherited");
        assert_eq!(set(&program.clone().inherit(Inherit::Nothing)), own);
        let [own] = own;
        let usual = [("HOME".into(), Some("/root".into())), own, ("PATH".into(), Some("/bin".into()))];
        assert_eq!(set(&program.inherit(Inherit::usual())), usual);
    }

    /// A `Command` does not reveal whether its environment is cleared, so this test runs a program.
    // covers: S2-05, R-14
    #[cfg(unix)]
    #[test]
    fn program_does_not_see_other_variables() {
        let told = |inherit| {
            let program = Program::new("/usr/bin/env").env("OWN", "1").inherit(inherit);
            let out = program.to_command([("GIVEN".into(), "2".into())]).output().expect("it runs");
            let mut lines: Vec<String> = String::from_utf8_lossy(&out.stdout).lines().map(String::from).collect();
            lines.sort();
            lines
        };
        assert_eq!(told(Inherit::Nothing), ["OWN=1"]);
        assert_eq!(told(Inherit::Only(alloc::vec!["GIVEN".into(), "PATH".into()])), ["GIVEN=2", "OWN=1"]);
        assert!(told(Inherit::All).len() > 1, "the tests have an environment");
    }
}
