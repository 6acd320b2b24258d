//! The rows: one pair of a client and a server each, with one of our adapters.

use serde_json::{Value, json};
use std::process::Command;

use super::ours::{SERVER, expected, read};
use super::theirs::Ground;
use crate::adapters::Adapter;
use crate::interop::setup::last_line;
use crate::rows::Row;

/// All rows.
pub const ROWS: &[Row<Ground>] = &[
    Row { name: "rmcp reads", run: |ground, adapter| theirs(ground, adapter, ground.rmcp_client()) },
    Row { name: "rmcp serves", run: |ground, adapter| ours(adapter, ground.rmcp_server(), true) },
    Row {
        name: "TypeScript reads (2026-07-28)",
        run: |ground, adapter| theirs(ground, adapter, ground.node_client("modern")),
    },
    Row {
        name: "TypeScript reads (2025-11-25)",
        run: |ground, adapter| theirs(ground, adapter, ground.node_client("legacy")),
    },
    Row { name: "TypeScript serves", run: |ground, adapter| ours(adapter, ground.node_server(), true) },
    Row { name: "FastMCP reads", run: |ground, adapter| theirs(ground, adapter, ground.fastmcp_client()) },
    Row { name: "FastMCP serves", run: |ground, adapter| ours(adapter, ground.fastmcp_server(), false) },
    Row { name: "ext-apps 2.0.4 (2026-07-28)", run: |ground, adapter| apps(ground, adapter, "modern") },
    Row { name: "ext-apps 2.0.4 (2025-11-25)", run: |ground, adapter| apps(ground, adapter, "legacy") },
];

/// The directories in that of the skill.
const DIRECTORIES: [&str; 2] = ["skill://reviews/assets", "skill://reviews/references"];

fn value(line: &str) -> Result<Value, String> {
    serde_json::from_str(line).map_err(|why| format!("{why}: {line}"))
}

/// Starts a client of others with our server.
fn run(ground: &Ground, adapter: Adapter, mut client: Command) -> Result<Value, String> {
    client.arg(&ground.ours).args([SERVER, adapter.name()]).arg(&ground.folder);
    value(&last_line(&mut client)?)
}

/// A client of others reads the skill of our server.
fn theirs(ground: &Ground, adapter: Adapter, client: Command) -> Result<String, String> {
    let mut said = run(ground, adapter, client)?;
    let mut expected = json!({ "found": expected(), "unknown": -32602 });
    // Not every client lists directories, or tells what it refused.
    for (key, value) in [("directories", json!(DIRECTORIES)), ("invalid", json!(0))] {
        if said.get(key).is_some() {
            expected[key] = value;
        }
    }
    match said == expected {
        true => Ok(format!("{} files", said["found"].as_object_mut().map_or(0, |found| found.len()))),
        false => Err(format!("{said} instead of {expected}")),
    }
}

/// Our client reads the skill of a server of others.
fn ours(adapter: Adapter, server: Command, lists: bool) -> Result<String, String> {
    let found = read(adapter, server)?;
    let directories = found.directories.as_ref().map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
    match found.files == expected() && directories.as_deref() == lists.then_some(&DIRECTORIES[..]) {
        true => Ok(format!("{} files", found.files.len())),
        false => Err(format!("{found:?} instead of {:?}", expected())),
    }
}

/// A host finds the document of our tool.
fn apps(ground: &Ground, adapter: Adapter, era: &str) -> Result<String, String> {
    let said = run(ground, adapter, ground.host(era))?;
    let expected = json!({
        "uri": "ui://clock/face",
        "html": true,
        "connect": ["https://time.example"],
        "allow": "geolocation; clipboard-write",
        "border": true,
        "apps": ["tick"],
        "models": ["zone"],
        "text": "shown",
    });
    if said == expected { Ok(said.to_string()) } else { Err(format!("{said} instead of {expected}")) }
}
