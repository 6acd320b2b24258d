//! The words that a peer is started with.

use super::Failure;
use std::time::Duration;

/// What a peer is to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Task {
    /// Serve whoever started it.
    ServeStdio,
    /// Serve over HTTP, on a port of loopback that it chooses.
    ServeHttp(Style),
    /// Keep a server busy.
    Drive(Drive),
}

/// How a server over HTTP answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// With one JSON object, without sessions.
    Json,
    /// With event streams, where the engine lets a server choose.
    Sse,
    /// With a session for every client that wants one.
    Session,
}

/// Which revision a client speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Era {
    /// That of `initialize`.
    Legacy,
    /// That of self-contained requests.
    Modern,
}

/// How a server is kept busy.
#[derive(Clone, PartialEq, Debug)]
pub struct Drive {
    /// The revision.
    pub era: Era,
    /// How many calls are under way at any time; at least one.
    pub inflight: usize,
    /// For how long, after the warm-up.
    pub length: Duration,
    /// How many characters are echoed.
    pub payload: usize,
    /// The server.
    pub to: To,
}

/// A server to keep busy.
#[derive(Clone, PartialEq, Debug)]
pub enum To {
    /// A program and its arguments.
    Program(Vec<String>),
    /// A server over HTTP, in a process of this id. `tuned`: with a connection for every call that is under way, not with the number that
    /// a client has by default.
    Url {
        /// Where it is.
        url: String,
        /// Its process.
        pid: u32,
        /// Whether the client may have more connections than by default.
        tuned: bool,
    },
}

impl Task {
    /// Reads the arguments of a program.
    pub(super) fn read(args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let Args { words, values, rest } = Args::read(args)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let value = |key: &str| values.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        let drive = |to| {
            Ok(Self::Drive(Drive {
                era: match value("era") {
                    Some("legacy") | None => Era::Legacy,
                    Some("modern") => Era::Modern,
                    Some(other) => return Err(format!("--era {other} is none").into()),
                },
                inflight: number(value("inflight"), 1_usize)?.max(1),
                length: Duration::try_from_secs_f64(number(value("secs"), 1.0)?)?,
                payload: number(value("payload"), 64)?,
                to,
            }))
        };
        match words[..] {
            ["serve", "stdio"] => Ok(Self::ServeStdio),
            ["serve", "http"] => Ok(Self::ServeHttp(match value("style") {
                Some("json") | None => Style::Json,
                Some("sse") => Style::Sse,
                Some("session") => Style::Session,
                Some(other) => return Err(format!("--style {other} is none").into()),
            })),
            ["drive", "stdio"] if !rest.is_empty() => drive(To::Program(rest)),
            ["drive", "http"] => drive(To::Url {
                url: value("url").ok_or("--url is missing")?.into(),
                pid: number(value("server-pid"), 0)?,
                tuned: match value("client") {
                    Some("tuned") => true,
                    Some("default" | "") | None => false,
                    Some(other) => return Err(format!("--client {other} is none").into()),
                },
            }),
            _ => Err(format!("{words:?} is nothing that a peer does").into()),
        }
    }
}

fn number<T: std::str::FromStr>(value: Option<&str>, or: T) -> Result<T, Failure> {
    match value {
        Some(value) => value.parse().map_err(|_| format!("{value} is no such number").into()),
        None => Ok(or),
    }
}

/// Words, `--key value` pairs in any place, and what stands after `--`.
#[derive(Default)]
struct Args {
    words: Vec<String>,
    values: Vec<(String, String)>,
    rest: Vec<String>,
}

impl Args {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut read = Self::default();
        while let Some(arg) = args.next() {
            match arg.strip_prefix("--") {
                Some("") => read.rest.extend(args.by_ref()),
                Some(key) => {
                    let value = args.next().ok_or_else(|| format!("{arg} wants a value"))?;
                    read.values.push((key.into(), value));
                }
                None => read.words.push(arg),
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Task, Failure> {
        Task::read(line.split(' ').map(|word| if word == "''" { String::new() } else { word.into() }))
    }

    #[test]
    fn words_are_read_as_other_peers_read_them() {
        assert_eq!(read("serve stdio").unwrap(), Task::ServeStdio);
        assert_eq!(read("serve http --style session").unwrap(), Task::ServeHttp(Style::Session));
        let line = "drive stdio --era modern --inflight 64 --secs 0.5 --payload 9 -- server serve --style stdio";
        let Task::Drive(drive) = read(line).unwrap() else { panic!("it is to drive") };
        assert_eq!((drive.era, drive.inflight, drive.payload), (Era::Modern, 64, 9));
        assert_eq!(drive.length, Duration::from_millis(500));
        let words = ["server", "serve", "--style", "stdio"].map(String::from);
        assert_eq!(drive.to, To::Program(words.into()));
        // What measures gives an empty word where it has no wish.
        let line = "drive http --url http://h/mcp --server-pid 7 --client ''";
        let Task::Drive(drive) = read(line).unwrap() else { panic!("it is to drive") };
        assert_eq!(drive.to, To::Url { url: "http://h/mcp".into(), pid: 7, tuned: false });
        assert_eq!((drive.era, drive.inflight, drive.payload), (Era::Legacy, 1, 64));
    }

    #[test]
    fn other_words_are_refused() {
        for line in [
            "",
            "serve",
            "serve http --style",
            "serve http --style x",
            "drive stdio",
            "drive http",
            "drive stdio --era x -- y",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
