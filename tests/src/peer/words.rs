//! The arguments of a peer.

use super::Failure;
use std::time::Duration;

/// The task of a peer.
#[derive(Clone, PartialEq, Debug)]
pub enum Task {
    /// Serve standard input and output.
    ServeStdio,
    /// Serve HTTP, on a free loopback port.
    ServeHttp(Style),
    /// Keep a server busy.
    Drive(Drive),
}

/// How an HTTP server responds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// With one JSON object, without sessions.
    Json,
    /// With event streams, where the engine lets a server choose.
    Sse,
    /// With a session for every client that requests one.
    Session,
}

/// The era of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Era {
    /// With `initialize`.
    Legacy,
    /// With self-contained requests.
    Modern,
}

/// How to keep a server busy.
#[derive(Clone, PartialEq, Debug)]
pub struct Drive {
    /// The era.
    pub era: Era,
    /// Number of concurrent calls, at least one.
    pub inflight: usize,
    /// The duration, after the warm-up.
    pub length: Duration,
    /// The number of calls that ends it earlier, without a warm-up.
    pub calls: Option<usize>,
    /// Number of echoed characters.
    pub payload: usize,
    /// The server.
    pub to: To,
}

/// A server to keep busy.
#[derive(Clone, PartialEq, Debug)]
pub enum To {
    /// A program and its arguments.
    Program(Vec<String>),
    /// An HTTP server, in a process with this id. `tuned` uses a connection for every concurrent
    /// call, not the default maximum of a client.
    Url {
        /// Its URL.
        url: String,
        /// Its process.
        pid: u32,
        /// Whether the client may open more connections than by default.
        tuned: bool,
    },
}

impl Task {
    /// Parses the arguments of a program.
    ///
    /// # Errors
    /// They are nothing that a peer does.
    pub fn read(args: impl Iterator<Item = String>) -> Result<Self, Failure> {
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
                calls: value("calls").map(|calls| number(Some(calls), 1)).transpose()?,
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

/// Words, `--key value` pairs anywhere, and the words after `--`.
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
