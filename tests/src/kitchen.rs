//! A server with a tool, a resource, a template, a prompt and a completion, and a client that uses
//! each of them, with this library and with two official SDKs: how long they are, and that each
//! client understands each server.

use crate::example;
use crate::interop::setup::{copy, install_node, install_python, programs};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt};

/// A server and a client of one library.
#[derive(Clone, Copy, Debug)]
pub struct Kitchen {
    /// The name of the library.
    pub name: &'static str,
    /// The text of the server, and that of the client.
    pub texts: [&'static str; 2],
    /// How a line begins that is a comment, or an import.
    beside: &'static [&'static str],
}

/// All of them, this library first.
pub const KITCHENS: [Kitchen; 3] = [
    Kitchen {
        name: "this library",
        texts: [include_str!("../examples/kitchen_server.rs"), include_str!("../examples/kitchen_client.rs")],
        beside: &["//", "use "],
    },
    Kitchen {
        name: "Python SDK 1.x, FastMCP",
        texts: [
            include_str!("../interop/python/kitchen_server.py"),
            include_str!("../interop/python/kitchen_client.py"),
        ],
        beside: &["# ", "import ", "from "],
    },
    Kitchen {
        name: "TypeScript SDK 1.x",
        texts: [include_str!("../interop/node/kitchen_server.mjs"), include_str!("../interop/node/kitchen_client.mjs")],
        beside: &["//", "import "],
    },
];

/// What every client prints about every server.
pub const SAID: [&str; 5] = ["2 of soup", "11 to 22", "stew of the day", "Praise the salad.", "salad, soup, stew"];

impl Kitchen {
    /// Returns the lines of the server and of the client, without blank lines, comments and
    /// imports.
    pub fn lines(&self) -> [usize; 2] {
        let counts = |line: &&str| {
            let line = line.trim_start();
            !line.is_empty() && !self.beside.iter().any(|start| line.starts_with(start))
        };
        self.texts.map(|text| text.lines().filter(counts).count())
    }
}

impl fmt::Display for Kitchen {
    /// Writes a row of a table in Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [server, client] = self.lines();
        write!(f, "| {} | {server} | {client} |", self.name)
    }
}

/// The commands of the servers or of the clients, in the order of [`KITCHENS`].
type Commands = [Vec<PathBuf>; 3];

/// Installs what is missing. Returns the commands of the servers and of the clients.
///
/// # Errors
/// The part that could not be installed or built.
pub fn install() -> Result<[Commands; 2], String> {
    let (node, modules) = install_node()?;
    let python = install_python("requirements-1.txt")?;
    let ours = [("kitchen_server", example("kitchen_server")?), ("kitchen_client", example("kitchen_client")?)];
    let mut commands = ours.map(|(name, ours)| {
        let script = format!("{name}.mjs");
        let theirs = programs().join("python").join(name).with_extension("py");
        [vec![ours], vec![python.clone(), theirs], vec![node.clone(), modules.join(script)]]
    });
    for name in ["kitchen_server.mjs", "kitchen_client.mjs"] {
        // A script must be beside the packages to find them.
        copy(&programs().join("node"), &modules, name)?;
    }
    // A client starts a server with few variables, and finds it by its path.
    for command in commands.iter_mut().flatten() {
        command[0] = found(&command[0]);
    }
    Ok(commands)
}

/// Returns the path of a program that is looked up in `PATH`.
fn found(program: &Path) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).map(|folder| folder.join(program));
    places.find(|place| place.is_file()).unwrap_or_else(|| program.to_owned())
}

/// Runs a client with a server.
///
/// # Errors
/// What it prints, unless that is [`SAID`].
pub fn meet(client: &[PathBuf], server: &[PathBuf]) -> Result<(), String> {
    let [program, args @ ..] = client else { return Err("there is no client".into()) };
    let output = Command::new(program).args(args).args(server).stdin(Stdio::null()).output();
    let output = output.map_err(|why| format!("{}: {why}", program.display()))?;
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match output.status.success() && said.lines().eq(SAID) {
        true => Ok(()),
        false => Err(format!("{}: {said}{told}", output.status)),
    }
}
