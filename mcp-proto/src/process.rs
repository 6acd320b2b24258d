//! What drivers that start programs share: `Program` from and to `std::process::Command`, and the lines of standard error. Starts nothing.

#[cfg(unix)]
use crate::exchange::Group;
use crate::exchange::{ExitStatus, Inherit, Program};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::ffi::{OsStr, OsString};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How long a driver reads on what a program has said once it has ended, if another process still holds its pipe open. Then the end is told.
pub const DRAIN: Duration = Duration::from_millis(500);

/// Where the standard error of a program goes. It is drained always, and nothing in it is taken as an error of the connection.
#[derive(Clone, Default)]
pub enum Stderr {
    /// To ours.
    #[default]
    Inherit,
    /// Nowhere; but what came last is kept for the error that the program's end may become.
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

/// Standard error of one program, as a driver reads it: told by lines if someone wants them, and its end kept.
#[derive(Debug)]
pub struct Errors {
    stderr: Stderr,
    lines: Lines,
    tail: Tail,
}

impl Errors {
    /// Of a program that was started with this. `None`: it writes to ours, and there is nothing to read.
    pub fn new(stderr: &Stderr) -> Option<Self> {
        match stderr {
            Stderr::Inherit => None,
            Stderr::Discard | Stderr::Lines(_) => {
                Some(Self { stderr: stderr.clone(), lines: Lines::default(), tail: Tail::default() })
            }
        }
    }

    /// Takes bytes as they were read. A panic of the function that is told lines is caught: the pipe must be read on, or the program
    /// would block.
    pub fn push(&mut self, bytes: &[u8]) {
        self.tail.push(bytes);
        if let Stderr::Lines(told) = &self.stderr {
            self.lines.push(bytes, |line| tell(told, line));
        }
    }

    /// Nothing follows.
    pub fn end(&mut self) {
        if let Stderr::Lines(told) = &self.stderr {
            self.lines.end(|line| tell(told, line));
        }
    }

    /// What came last.
    pub fn tail(&self) -> String {
        self.tail.text()
    }
}

fn tell(told: &Arc<dyn Fn(&str) + Send + Sync>, line: &str) {
    drop(catch_unwind(AssertUnwindSafe(|| told(line))));
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

/// The last [`ExitStatus::STDERR_TAIL`] bytes of standard error.
#[derive(Debug, Default)]
pub struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    /// Takes bytes as they were read.
    pub fn push(&mut self, bytes: &[u8]) {
        const MAX: usize = ExitStatus::STDERR_TAIL;
        self.bytes.extend_from_slice(&bytes[bytes.len().saturating_sub(MAX)..]);
        // Dropped in large steps, so that a stream of single bytes does not move the rest for each.
        if self.bytes.len() > 2 * MAX {
            self.bytes.drain(..self.bytes.len() - MAX);
        }
    }

    /// What is kept. A character that was cut at the front is left away; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        let kept = &self.bytes[self.bytes.len().saturating_sub(ExitStatus::STDERR_TAIL)..];
        // As many as can be kept: something before them may have been dropped.
        let cut = if kept.len() == ExitStatus::STDERR_TAIL {
            kept.iter().take(3).take_while(|b| **b & 0xc0 == 0x80).count()
        } else {
            0
        };
        String::from_utf8_lossy(&kept[cut..]).into_owned()
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
    /// process group of its own if it is to have one (Unix). `ours`: our environment, as for [`to_command`](Self::to_command).
    pub fn to_piped(&self, stderr: &Stderr, ours: impl IntoIterator<Item = (OsString, OsString)>) -> Command {
        let mut command = self.to_command(ours);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(match stderr {
            Stderr::Inherit => Stdio::inherit(),
            // Read all the same: an error that ends the program is to show what it said last.
            Stderr::Discard | Stderr::Lines(_) => Stdio::piped(),
        });
        #[cfg(unix)]
        if self.group == Group::Own {
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        command
    }

    /// A command that starts this program. Its streams are not set, and neither is its process group. `ours`: our environment, looked at
    /// if the program inherits a part of it.
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

/// Where Windows has a command: the file that its shell would start. A launcher such as `npx` is a script there, `npx.cmd`, and only
/// programs (`.exe`) are found by the system itself.
///
/// `dirs`: the folders of `PATH`, not looked at if the command is a path. An empty or relative one is skipped: it would lead to a file in
/// whatever folder is the current one, which others may write to. `extensions`: `PATHEXT`, or nothing. `is_file`: asked of each
/// candidate, in order. A file without one of the extensions is not taken: beside `npx.cmd` lies a `npx` for other systems. `None`: there
/// is none, and the command may be left to the system.
pub fn find_launcher(
    command: &str,
    dirs: impl IntoIterator<Item = PathBuf>,
    extensions: Option<&str>,
    is_file: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    // What the system can start, by itself or with its command interpreter; `PATHEXT` orders them, and may leave some away.
    const STARTABLE: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];
    let listed: Vec<String> = extensions.map_or_else(Vec::new, |listed| {
        listed.split(';').map(str::to_ascii_lowercase).filter(|one| STARTABLE.contains(&one.as_str())).collect()
    });
    let listed = if listed.is_empty() { STARTABLE.map(String::from).to_vec() } else { listed };
    let small = command.to_ascii_lowercase();
    let whole = listed.iter().any(|extension| small.ends_with(extension.as_str()));
    let endings = whole.then_some("").into_iter().chain(listed.iter().map(String::as_str));
    let names: Vec<String> = endings.map(|ending| alloc::format!("{command}{ending}")).collect();
    let is_path = command.contains(['/', '\\', ':']);
    let listed = dirs.into_iter().filter(|dir| !is_path && dir.is_absolute());
    let dirs = is_path.then(PathBuf::new).into_iter().chain(listed);
    dirs.flat_map(|dir| names.iter().map(move |name| dir.join(name)).collect::<Vec<_>>()).find(|file| is_file(file))
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

/// Names of variables compare without case on Windows.
fn same_variable(name: &OsStr, wanted: &str) -> bool {
    if cfg!(windows) { name.eq_ignore_ascii_case(wanted) } else { name == wanted }
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
    use alloc::format;
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

    // covers: B-129
    #[test]
    fn only_the_end_of_standard_error_is_kept() {
        const MAX: usize = ExitStatus::STDERR_TAIL;
        let mut tail = Tail::default();
        assert_eq!(tail.text(), "");
        tail.push("größer".as_bytes());
        assert_eq!(tail.text(), "größer");
        for n in [1, 7, 1000, MAX, 3 * MAX] {
            let text: String = (0..10_000).map(|n| format!("ö{n}\n")).collect();
            let mut tail = Tail::default();
            for part in text.as_bytes().chunks(n) {
                tail.push(part);
                assert!(tail.bytes.capacity() <= 8 * MAX, "in chunks of {n}");
            }
            assert!(text.ends_with(&tail.text()), "in chunks of {n}");
            assert!(tail.text().len() > MAX - 2, "in chunks of {n}");
        }
    }

    // covers: B-129
    #[test]
    fn a_character_cut_at_the_front_of_the_tail_is_left_out() {
        const MAX: usize = ExitStatus::STDERR_TAIL;
        for character in ['ö', '€', '😀'] {
            for shift in 0..character.len_utf8() {
                let text = character.to_string().repeat(MAX) + &"x".repeat(shift);
                for n in [1, 7, MAX - 1, MAX, MAX + 1, text.len()] {
                    let mut tail = Tail::default();
                    text.as_bytes().chunks(n).for_each(|part| tail.push(part));
                    let told = tail.text();
                    assert!(text.ends_with(&told), "{character} and {shift}, in chunks of {n}");
                    assert!(told.len() > MAX - character.len_utf8(), "{character} and {shift}, in chunks of {n}");
                }
            }
        }
    }

    // covers: S2-05
    #[test]
    fn a_program_inherits_what_it_is_to() {
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

    /// What a command holds says nothing of what is cleared, so a program is asked.
    // covers: S2-05
    #[cfg(unix)]
    #[test]
    fn what_a_program_does_not_inherit_is_not_there() {
        let told = |inherit| {
            let program = Program::new("/usr/bin/env").env("OWN", "1").inherit(inherit);
            let out = program.to_command([("GIVEN".into(), "2".into())]).output().expect("it runs");
            let mut lines: Vec<String> = String::from_utf8_lossy(&out.stdout).lines().map(String::from).collect();
            lines.sort();
            lines
        };
        assert_eq!(told(Inherit::Nothing), ["OWN=1"]);
        assert_eq!(told(Inherit::Only(vec!["GIVEN".into(), "PATH".into()])), ["GIVEN=2", "OWN=1"]);
        assert!(told(Inherit::All).len() > 1, "the tests have an environment");
    }

    /// Where absolute paths begin.
    const ROOT: &str = if cfg!(windows) { "C:\\" } else { "/" };

    // covers: B-146
    #[test]
    fn relative_folders_hold_no_launcher() {
        let found = |dirs: &[&str]| find_launcher("npx", dirs.iter().map(PathBuf::from), None, |_| true);
        for dir in ["", ".", "..", "bin", "./bin", "node_modules/.bin"] {
            assert_eq!(found(&[dir]), None, "{dir:?}");
            let kept = Path::new(ROOT).join("node");
            assert_eq!(found(&[dir, kept.to_str().expect("unicode")]), Some(kept.join("npx.com")), "{dir:?}");
        }
    }

    // covers: B-146
    #[test]
    fn a_launcher_is_found_as_the_shell_of_windows_finds_it() {
        let found = |command: &str, extensions: Option<&str>, files: &[&str]| {
            let dirs = ["system", "node", "tools"].map(|dir| Path::new(ROOT).join(dir));
            let below = |file: &Path| file.strip_prefix(ROOT).unwrap_or(file).to_string_lossy().replace('\\', "/");
            let file = find_launcher(command, dirs, extensions, |file| {
                files.iter().any(|known| below(file).eq_ignore_ascii_case(known))
            });
            file.map(|file| below(&file).to_lowercase())
        };
        let node = ["node/npx", "node/npx.cmd", "node/node.exe", "tools/npx.exe", "tools/run.js", "tools/x.y.bat"];
        let usual = Some(".COM;.EXE;.BAT;.CMD;.VBS;.JS");
        assert_eq!(found("npx", usual, &node).as_deref(), Some("node/npx.cmd"), "the first folder wins");
        assert_eq!(found("npx", Some(".exe"), &node).as_deref(), Some("tools/npx.exe"), "only what is listed");
        assert_eq!(found("NPX.CMD", None, &node).as_deref(), Some("node/npx.cmd"), "an extension may be given");
        assert_eq!(found("node", Some(""), &node).as_deref(), Some("node/node.exe"), "without a list");
        assert_eq!(found("x.y", usual, &node).as_deref(), Some("tools/x.y.bat"), "another dot is no extension");
        assert_eq!(found("run", usual, &node), None, "the system cannot start it");
        assert_eq!(found("uvx", usual, &node), None);
        let order = ["node/a.cmd", "node/a.exe", "system/a"];
        assert_eq!(found("a", Some(".CMD;.EXE"), &order).as_deref(), Some("node/a.cmd"), "in the order of the list");
        for path in ["tools/npx", "./npx", "c:npx"] {
            assert_eq!(found(path, usual, &["node/npx.exe", "tools/tools/npx.exe"]), None, "{path}");
        }
        assert_eq!(found("tools/npx", usual, &node).as_deref(), Some("tools/npx.exe"));
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
