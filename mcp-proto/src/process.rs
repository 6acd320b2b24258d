//! What drivers that start programs share: `Program` from and to `std::process::Command`, and the lines of standard error. Starts nothing.

use crate::exchange::{ExitStatus, Program};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// How long a driver reads on what a program has said once it has ended, if another process still holds its pipe open. Then the end is told.
pub const DRAIN: Duration = Duration::from_millis(500);

/// Where the standard error of a program goes. It is drained always, and nothing in it is taken as an error of the connection.
#[derive(Clone, Default)]
pub enum Stderr {
    /// To ours.
    #[default]
    Inherit,
    /// Nowhere.
    Discard,
    /// To this function, line by line, without the newline; a line over 64 KiB comes in pieces. Where the function is called, and what
    /// it may do there, is told by the adapter.
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

/// Cuts bytes into lines, and lines that are too long into pieces, so that a program that writes none costs no more than one piece.
#[derive(Debug, Default)]
pub struct Lines {
    line: Vec<u8>,
}

impl Lines {
    /// The longest piece of a line, in bytes.
    pub const MAX: usize = 64 << 10;

    /// Takes bytes as they were read, and tells every line that they end. What is not UTF-8 in it is replaced.
    pub fn push(&mut self, mut bytes: &[u8], mut told: impl FnMut(&str)) {
        while !bytes.is_empty() {
            let room = Self::MAX - self.line.len();
            let newline = memchr::memchr(b'\n', bytes).filter(|at| *at < room);
            let (piece, rest) = bytes.split_at(newline.map_or(room.min(bytes.len()), |at| at + 1));
            self.line.extend_from_slice(piece);
            bytes = rest;
            if newline.is_some() || self.line.len() == Self::MAX {
                self.end(&mut told);
            }
        }
    }

    /// Tells the last line, if it has begun: nothing follows.
    pub fn end(&mut self, mut told: impl FnMut(&str)) {
        let line = core::mem::take(&mut self.line);
        if !line.is_empty() {
            told(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
        }
    }
}

impl TryFrom<&Command> for Program {
    type Error = NotUnicode;

    /// Takes the command, arguments, working directory and environment changes; where its streams lead is the adapter's choice.
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
    /// A command that starts this program as a channel: its input and output piped, its standard error led away as `stderr` says, in a
    /// process group of its own if it is to have one (Unix).
    pub fn to_piped(&self, stderr: &Stderr) -> Command {
        let mut command = self.to_command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(match stderr {
            Stderr::Inherit => Stdio::inherit(),
            Stderr::Discard => Stdio::null(),
            Stderr::Lines(_) => Stdio::piped(),
        });
        #[cfg(unix)]
        if self.own_group {
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        command
    }

    /// A command that starts this program. Its streams are not set, and neither is its process group.
    pub fn to_command(&self) -> Command {
        let mut command = Command::new(&self.command);
        command.args(&self.args);
        if let Some(dir) = &self.current_dir {
            command.current_dir(dir);
        }
        if !self.inherit_env {
            command.env_clear();
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
        Self { code: status.code(), signal }
    }
}

fn text(os: &OsStr) -> Result<String, NotUnicode> {
    os.to_str().map(ToString::to_string).ok_or(NotUnicode)
}

/// A command, an argument, a path or a variable is not Unicode; describe the program with [`Program`] instead, which cannot hold such.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotUnicode;

impl fmt::Display for NotUnicode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of the command is not unicode")
    }
}

impl core::error::Error for NotUnicode {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn lines(parts: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut told) = (Lines::default(), Vec::new());
        parts.iter().for_each(|part| lines.push(part, |line| told.push(line.to_string())));
        lines.end(|line| told.push(line.to_string()));
        told
    }

    #[test]
    fn lines_are_the_same_wherever_the_bytes_are_cut() {
        let text = b"one\r\n\nthree \xff\nlast";
        let whole = vec!["one", "", "three \u{fffd}", "last"];
        assert_eq!(lines(&[]), Vec::<String>::new());
        assert_eq!(lines(&[b"ended\n"]), ["ended"]);
        for at in 0..=text.len() {
            assert_eq!(lines(&[&text[..at], &text[at..]]), whole);
        }
    }

    #[test]
    fn a_line_without_end_comes_in_pieces() {
        let long = vec![b'x'; 2 * Lines::MAX + 3];
        for chunk in [1000, 4096, Lines::MAX, long.len()] {
            let parts: Vec<&[u8]> = long.chunks(chunk).chain([&b"\nnext\n"[..]]).collect();
            let told: Vec<usize> = lines(&parts).iter().map(String::len).collect();
            assert_eq!(told, [Lines::MAX, Lines::MAX, 3, 4], "in chunks of {chunk}");
        }
    }
}
