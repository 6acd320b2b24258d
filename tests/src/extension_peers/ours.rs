//! Our server, and what our client finds at those of others.

use hmac_sha256::Hash;
use mcp_driver::{ClientOptions, SkillFolderError, read_skill};
use mcp_proto::apps::{Csp, Permission, Visibility};
use mcp_proto::client::Policy;
use mcp_proto::skills::{self, Held, SkillError};
use mcp_proto::{CallError, Router, tool, ui_resource};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::adapters::{Adapter, Client};

/// The word for the program that is a server over standard input and output.
pub const SERVER: &str = "extension-server";

/// The files of the skill.
const FILES: [(&str, &[u8]); 4] = [
    (
        "SKILL.md",
        b"---\nname: reviews\ndescription: Reviews changes as this team does.\nlicense: MIT\nmetadata:\n  version: \"1.0\"\n  \
          team: core\n---\n\nRead references/STYLE.md first.\n",
    ),
    ("references/STYLE.md", "# Style\n\nNo jargon – ever.\n".as_bytes()),
    ("references/more words.txt", b"words\n"),
    ("assets/mark.bin", b"\0\x01\xff\xfe"),
];

/// Writes the skill into the directory `reviews` of a folder.
///
/// # Errors
/// The error of the operating system.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    for (name, bytes) in FILES {
        let path = folder.join("reviews").join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

/// Returns the hash of each file of the skill by its URI.
pub(super) fn expected() -> BTreeMap<String, String> {
    let uri = |name: &str| format!("skill://reviews/{}", name.replace(' ', "%20"));
    FILES.iter().map(|(name, bytes)| (uri(name), hash(bytes))).collect()
}

fn hash(bytes: &[u8]) -> String {
    Hash::hash(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server of the skill in the folder, and of a tool with a document.
///
/// # Errors
/// The skill cannot be read.
pub fn router(folder: &Path) -> Result<Router, SkillFolderError> {
    let csp = Csp::new().connect(["https://time.example"]);
    let face = ui_resource("ui://clock/face", "<!doctype html><title>Clock</title><p id=now>").csp(csp);
    let face = face.permissions([Permission::Geolocation, Permission::ClipboardWrite]).prefers_border(true).hidden();
    Ok(Router::new("extensions", "1")
        .skill(read_skill("reviews", folder.join("reviews"))?)
        .skill_directories(true)
        .ui_resource(face)
        .tool(tool("time").ui("ui://clock/face"), |cx, ()| Ok(if cx.supports_apps() { "shown" } else { "told" }))
        .tool(tool("tick").ui("ui://clock/face").visibility([Visibility::App]), |_cx, ()| Ok("tock"))
        .tool(tool("zone").visibility([Visibility::Model]), |_cx, ()| Ok("UTC")))
}

/// Serves it over standard input and output.
pub fn serve(adapter: Adapter, folder: &Path) -> ExitCode {
    let served = router(folder).map_err(|why| why.to_string());
    match served.and_then(|router| adapter.serve_stdio(router).map_err(|why| why.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// What our client finds at a server.
#[derive(Debug)]
pub(super) struct Found {
    /// The hash of each file by its URI.
    pub(super) files: BTreeMap<String, String>,
    /// The directories in that of the skill, if the server lists them.
    pub(super) directories: Option<Vec<String>>,
}

/// Reads all files of the only skill of a server.
///
/// # Errors
/// Why not, or what is wrong.
pub(super) fn read(adapter: Adapter, server: Command) -> Result<Found, String> {
    let options = ClientOptions::new().set(|config| config.policy = Policy::Auto);
    let client = adapter.connect(server, options).map_err(|why| why.to_string())?;
    let found = read_of(&client).map_err(|why| why.to_string());
    client.close()?;
    found
}

fn read_of(client: &Client) -> Result<Found, SkillError> {
    let server = client.server().ok_or(SkillError::Undeclared)?;
    let mut listed = client.all(skills::list(&server)?)?;
    let (Some(entry), true) = (listed.pop(), listed.is_empty()) else { return Err(SkillError::Undeclared) };
    let got = client.call(skills::get(&server, &entry.uri)?)?.skill;
    let held = Held::new("peer", got)?;
    let mut files = BTreeMap::new();
    for file in held.skill().files() {
        files.insert(file.uri.clone(), hash(&client.read_skill(&held, &file.uri)?));
    }
    match client.call(skills::get(&server, "skill://none/SKILL.md")?) {
        Err(CallError::Rpc(error)) if error.code == -32602 => {}
        Err(why) => return Err(why.into()),
        Ok(other) => return Err(SkillError::Uri { uri: other.skill.uri, why: "the server has no such skill" }),
    }
    let directories = match skills::directory(&server, held.skill().root().unwrap_or_default()) {
        Ok(directory) => {
            let children = client.all(directory)?.into_iter();
            let children = children.filter(|child| child.mime_type.as_deref() == Some("inode/directory"));
            Some(children.map(|child| child.uri).collect())
        }
        Err(_) => None,
    };
    Ok(Found { files, directories })
}
