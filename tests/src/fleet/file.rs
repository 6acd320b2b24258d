//! The configuration file: programs of other projects, and the URLs of servers of other projects,
//! which this program starts.

use super::processes::MARK;
use super::tools::Offer;
use crate::interop::listening::{Listening, Transport};
use crate::interop::servers::{self, Server};
use crate::interop::setup::{Installed, empty};
use crate::interop::web;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

/// The programs that occur twice, with arguments of their own. They start faster than the others.
const AGAIN: [&str; 3] = ["filesystem", "memory", "rmcp"];

/// The servers with a URL: the keys, and the names in the table. They differ in how a client learns
/// that one was killed: from a session that is unknown, from a connection that is refused, or from
/// the end of a stream.
const URLS: [(&str, &str); 4] = [
    ("python1-http", "mcp 1.30.0 (Python), HTTP"),
    ("typescript2-http", "server 2.4.0 (TypeScript), HTTP"),
    ("typescript1-sse", "sdk 1.32.2 (TypeScript), HTTP+SSE"),
    ("rmcp-http", "rmcp 3.11.0 (Rust), HTTP"),
];

/// A server of the file.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) offer: Offer,
    /// Its place among the servers with a URL. `None` for a program.
    pub(super) url: Option<usize>,
}

/// The content of the file, and the processes that it needs.
pub(super) struct Listed {
    pub(super) entries: Arc<[Entry]>,
    pub(super) text: String,
    pub(super) listening: Vec<Listening>,
}

/// Writes the file, and starts the servers with a URL. The environment of each program has
/// [`MARK`] with `run` and its key.
pub(super) fn list(installed: &Installed, run: &str) -> Result<Listed, String> {
    let (mut entries, mut file, mut listening) = (Vec::new(), Map::new(), Vec::new());
    for (key, server) in programs(installed) {
        empty(&server.folder).map_err(|why| format!("{}: {why}", server.folder.display()))?;
        file.insert(key.clone(), program(&server, &format!("{run}/{key}"))?);
        entries.push(Entry { key, offer: Offer::of(&server), url: None });
    }
    let table = web::servers(installed);
    for (key, name) in URLS {
        let server = table.iter().find(|server| server.name == name).ok_or_else(|| format!("there is no {name}"))?;
        let transport = server.web.as_ref().map_or(Transport::Streamable, |web| web.transport);
        let started = Listening::start(&server.command, &server.env).map_err(|why| format!("{name}: {why}"))?;
        let kind = if transport == Transport::Sse { "sse" } else { "http" };
        file.insert(key.to_owned(), json!({ "type": kind, "url": started.url(transport) }));
        entries.push(Entry { key: key.to_owned(), offer: Offer::of(server), url: Some(listening.len()) });
        listening.push(started);
    }
    let text = serde_json::to_string_pretty(&json!({ "mcpServers": file })).map_err(|why| why.to_string())?;
    Ok(Listed { entries: entries.into(), text, listening })
}

/// Returns all programs with their keys, and some of them twice.
fn programs(installed: &Installed) -> Vec<(String, Server)> {
    let mut all = Vec::new();
    for server in servers::servers(installed) {
        let key = server.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if AGAIN.contains(&key.as_str()) {
            all.push((format!("{key}-again"), again(&server)));
        }
        all.push((key, server));
    }
    all
}

/// Returns the same server with another directory.
fn again(server: &Server) -> Server {
    let old = server.folder.clone();
    let new = old.with_extension("again");
    let moved = |word: &OsString| match Path::new(word).strip_prefix(&old) {
        Ok(rest) if rest.as_os_str().is_empty() => new.clone().into(),
        Ok(rest) => new.join(rest).into(),
        Err(_) => word.clone(),
    };
    Server {
        command: server.command.iter().map(moved).collect(),
        env: server.env.iter().map(|(name, value)| (*name, moved(value))).collect(),
        folder: new,
        ..server.clone()
    }
}

fn program(server: &Server, mark: &str) -> Result<Value, String> {
    let text = |word: &OsString| word.to_str().map(str::to_owned).ok_or_else(|| format!("{word:?} is no text"));
    let words = server.command.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let (command, args) = words.split_first().ok_or("no program")?;
    let mut env = Map::new();
    env.insert(MARK.to_owned(), mark.into());
    for (name, value) in &server.env {
        env.insert((*name).to_owned(), text(value)?.into());
    }
    Ok(json!({ "command": command, "args": args, "env": env }))
}
