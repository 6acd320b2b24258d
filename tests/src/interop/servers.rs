//! The servers for our client.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mcp_proto::client::Policy;
use mcp_proto::{ProtocolVersion, Versions};
use serde_json::json;

use super::areas::{self, Reaches};
use super::setup::{Installed, empty, programs};
use super::steps::{Does, Expect, Step, call, step};
use super::web::Web;
use super::{Deviation, Shows};

/// A server of another project.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its name in the table.
    pub name: &'static str,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Additions to its environment.
    pub env: Vec<(&'static str, OsString)>,
    /// The policies that work with it, and the resulting revisions.
    pub reached: &'static [(Policy, &'static str)],
    /// Names of tools that it must list.
    pub tools: &'static [&'static str],
    /// Returns the steps and their required results, for a revision.
    pub steps: fn(&Server, &str) -> Vec<Step>,
    /// Policies that do not work with it.
    pub refuses: &'static [Policy],
    /// Its known deviations.
    pub deviations: &'static [Deviation],
    /// Diagnostics of our client by code, with the reason why the peer causes them.
    pub faults: &'static [(&'static str, &'static str)],
    /// The directory of this server. Our client declares it as its root.
    pub folder: PathBuf,
    /// Its properties over HTTP. `None` for a server over stdio.
    pub web: Option<Web>,
}

/// The newest revision with `initialize`.
pub const LEGACY: &str = "2025-11-25";
/// The revision with `server/discover`.
pub const MODERN: &str = "2026-07-28";

/// The first revision of all.
pub const OLDEST: &str = "2024-11-05";

/// Returns the supported revisions of our client for an intended revision: all, unless it is not
/// the newest of its era.
pub fn versions(revision: &str) -> Versions {
    match ProtocolVersion::parse(revision) {
        Some(older) if ![LEGACY, MODERN].contains(&revision) => Versions::new([older]),
        _ => Versions::all(),
    }
}

impl Server {
    /// Returns the command that starts it, with an empty directory, so that its exit code is
    /// available later: a client does not report the exit of its server.
    ///
    /// # Errors
    /// The directory is not writable.
    pub fn command(&self) -> Result<Command, String> {
        let told = |why: std::io::Error| format!("{}: {why}", self.folder.display());
        empty(&self.folder).map_err(told)?;
        if self.exit().exists() {
            fs::remove_file(self.exit()).map_err(told)?;
        }
        let mut command = Command::new("sh");
        command.args(["-c", r#""$@"; echo $? >"$0""#]).arg(self.exit()).args(&self.command);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    /// Returns the root that our client declares.
    pub fn root(&self) -> String {
        format!("file://{}", self.folder.display())
    }

    /// Checks that it exited by itself, with success.
    ///
    /// # Errors
    /// It was killed, or exited with another code.
    pub fn exited(&self) -> Result<String, String> {
        match fs::read_to_string(self.exit()) {
            Ok(code) if code.trim() == "0" => Ok("exited by itself".to_owned()),
            Ok(code) => Err(format!("exited with code {}", code.trim())),
            Err(_) => Err("it did not exit at the end of its input, and was ended by a signal".to_owned()),
        }
    }

    fn exit(&self) -> PathBuf {
        self.folder.with_extension("exit")
    }
}

/// Its tool continues to sleep, and nothing else ends the program at the end of its input.
const TIMER: &str = "the timer of a call that was cancelled keeps it alive";

/// The code of 2026-07-28, without its data, in revisions that have another code.
pub(super) const UNNAMED: &str = "for an unknown resource it answers -32602 without the URI, in place of -32002";

pub(super) const CODE_0: &str = "for an unknown resource it answers an error of code 0, in place of -32002";
pub(super) const NO_SUBSCRIBE: &str = "it declares no subscriptions to resources, also if the program handles them";

pub(super) const PYTHON1: &[Deviation] = &[
    (LEGACY, "missing", CODE_0, Shows::Always),
    (OLDEST, "missing", CODE_0, Shows::Always),
    (LEGACY, "updated", NO_SUBSCRIBE, Shows::Always),
    (OLDEST, "updated", NO_SUBSCRIBE, Shows::Always),
];

pub(super) const LATE: (&str, &str) = ("late-answer", "it answers a call that was cancelled");

pub(super) const UNSUBSCRIBED: &str = "it has no subscriptions to resources";
pub(super) const NO_LISTEN: &str = "it does not know the request that subscribes to changes";
pub(super) const FAILED: &str = "a tool that raises -32042 fails, in place of its call";

const FASTMCP: &[Deviation] = &[
    (MODERN, "changed", NO_LISTEN, Shows::Always),
    (MODERN, "updated", NO_LISTEN, Shows::Always),
    (MODERN, "grown", NO_LISTEN, Shows::Always),
    (LEGACY, "updated", UNSUBSCRIBED, Shows::Always),
    (OLDEST, "updated", UNSUBSCRIBED, Shows::Always),
    (LEGACY, "gate", FAILED, Shows::Always),
];

/// The policies of a server that supports only legacy revisions.
pub(super) const LEGACY_ONLY: &[(Policy, &str)] =
    &[(Policy::Auto, LEGACY), (Policy::Legacy, LEGACY), (Policy::Legacy, OLDEST)];

/// Returns the table.
pub fn servers(installed: &Installed) -> Vec<Server> {
    let node = |package: &str| -> Vec<OsString> {
        let program = installed.modules.join("node_modules/@modelcontextprotocol").join(package).join("dist/index.js");
        vec![installed.node.clone().into(), program.into()]
    };
    let with = |mut command: Vec<OsString>, argument: &Path| {
        command.push(argument.into());
        command
    };
    let python = |interpreter: &PathBuf, program: &str| -> Vec<OsString> {
        vec![interpreter.into(), programs().join("python").join(program).into()]
    };
    let script = |name: &str| vec![installed.node.clone().into(), installed.modules.join(name).into()];
    let folder = |name: &str| installed.scratch.join(name);
    let both: &[_] =
        &[(Policy::Auto, MODERN), (Policy::Modern, MODERN), (Policy::Legacy, LEGACY), (Policy::Legacy, OLDEST)];
    let server = |name, folder: &str, command| Server {
        name,
        command,
        env: Vec::new(),
        reached: LEGACY_ONLY,
        refuses: &[Policy::Modern],
        tools: OFFERED,
        steps: |_, revision| whole(revision, unknown("Unknown tool")),
        deviations: &[],
        faults: &[],
        web: None,
        folder: installed.scratch.join(folder),
    };
    vec![
        Server {
            tools: &["echo", "get-sum", "trigger-sampling-request", "get-roots-list"],
            steps: everything,
            deviations: &[
                (LEGACY, "exit", TIMER, Shows::Always),
                (OLDEST, "exit", TIMER, Shows::Always),
                (LEGACY, "missing", UNNAMED, Shows::Always),
                (OLDEST, "missing", UNNAMED, Shows::Always),
            ],
            ..server("server-everything 2026.8.31", "everything", with(node("server-everything"), Path::new("stdio")))
        },
        Server {
            tools: &["read_text_file", "write_file", "list_allowed_directories"],
            steps: filesystem,
            ..server(
                "server-filesystem 2026.8.31",
                "filesystem",
                with(node("server-filesystem"), &folder("filesystem")),
            )
        },
        Server {
            env: vec![("MEMORY_FILE_PATH", folder("memory").join("graph.jsonl").into())],
            tools: &["create_entities", "read_graph", "search_nodes"],
            steps: memory,
            ..server("server-memory 2026.8.31", "memory", node("server-memory"))
        },
        Server {
            steps: |_, revision| whole(revision, unknown("not found")),
            deviations: &[(LEGACY, "missing", UNNAMED, Shows::Always), (OLDEST, "missing", UNNAMED, Shows::Always)],
            ..server("sdk 1.32.2 (TypeScript)", "typescript1", script("server1.mjs"))
        },
        Server {
            reached: both,
            refuses: &[],
            steps: |_, revision| whole(revision, refused()),
            ..server("server 2.4.0 (TypeScript)", "typescript2", script("server2.mjs"))
        },
        Server {
            reached: both,
            refuses: &[],
            ..server("mcp 2.3.0 (Python)", "python2", python(&installed.python2, "server2.py"))
        },
        Server {
            deviations: PYTHON1,
            faults: &[LATE],
            ..server("mcp 1.30.0 (Python)", "python1", python(&installed.python1, "server1.py"))
        },
        Server {
            reached: both,
            refuses: &[],
            steps: |_, revision| whole(revision, unknown("Unknown tool")),
            deviations: FASTMCP,
            ..server("fastmcp 4.2.3 (Python)", "fastmcp", python(&installed.fastmcp, "serverfast.py"))
        },
        Server {
            reached: both,
            refuses: &[],
            steps: |_, revision| whole(revision, refused()),
            ..server("rmcp 3.11.0 (Rust)", "rmcp", with(vec![installed.rmcp.clone().into()], Path::new("serve")))
        },
    ]
}

/// The tools of the servers that this project writes with other SDKs.
pub(super) const OFFERED: &[&str] =
    &["add", "echo", "count", "greet", "sample", "roots", "fail", "wait", "cancelled", "note"];

/// Returns all steps of these servers, with that of an unknown tool.
fn whole(revision: &str, unknown: Step) -> Vec<Step> {
    let mut steps = offered(revision);
    steps.push(unknown);
    steps.extend(areas::offered(revision, Reaches::Always));
    steps
}

/// The step of an unknown tool: it fails with this text.
pub(super) fn unknown(text: &'static str) -> Step {
    call("unknown", "no-such-tool", json!({}), Expect::text(text).fails())
}

/// The same: the call is refused.
pub(super) fn refused() -> Step {
    step("unknown", Does::Refused("no-such-tool", json!({}), "no-such-tool"))
}

/// Removes the steps that a revision does not support.
pub(super) fn fit(steps: &mut Vec<Step>, revision: &str) {
    // Structured results, and requests to the user.
    let since = ["structured", "form", "declined"];
    steps.retain(|step| revision >= "2025-06-18" || !since.contains(&step.name));
}

/// Returns the steps of these servers.
pub(super) fn offered(revision: &str) -> Vec<Step> {
    let ann = || json!({ "name": "Ann" });
    let mut steps = vec![
        call("structured", "add", json!({ "a": 2, "b": 3 }), Expect::text("5").structured(json!({ "sum": 5 }))),
        call(
            "text",
            "echo",
            json!({ "text": "gr\u{fc}\u{df} \u{2028}\u{1f600}\n" }),
            Expect::text("gr\u{fc}\u{df} \u{2028}\u{1f600}\n"),
        ),
        call("progress", "count", json!({ "steps": 3 }), Expect::text("counted to 3").progress(3)),
        call("form", "greet", json!({}), Expect::text("hello Ann").asks(&["user"]).form(ann())),
        call("declined", "greet", json!({}), Expect::text("no name: decline").asks(&["user"])),
        call("model", "sample", json!({}), Expect::text("the model said: forty-two").asks(&["model"])),
        call("roots", "roots", json!({}), Expect::text("roots: file://").asks(&["roots"])),
        call("failing", "fail", json!({}), Expect::text("always fails").fails()),
        step("cancel", Does::Cancel("wait", json!({}))),
        call("cancelled", "cancelled", json!({}), Expect::text("1 cancelled")),
        call("after", "add", json!({ "a": 20, "b": 3 }), Expect::text("23")),
        step("many", Does::Many("echo", "text")),
        step("large", Does::Large("echo", "text")),
    ];
    fit(&mut steps, revision);
    if revision != MODERN {
        steps.push(step("ping", Does::Ping));
    }
    steps.push(step("changed", Does::Changed("note")));
    steps
}

pub(super) fn everything(_: &Server, revision: &str) -> Vec<Step> {
    let weather = json!({ "temperature": 33, "conditions": "Cloudy", "humidity": 82 });
    let ann = json!({ "name": "Ann" });
    let (ask, long) = ("trigger-elicitation-request", "trigger-long-running-operation");
    let greeting = "gr\u{fc}\u{df} dich \u{2028} \u{1f600}";
    let mut steps = vec![
        call(
            "structured",
            "get-structured-content",
            json!({ "location": "New York" }),
            Expect::text("Cloudy").structured(weather),
        ),
        call(
            "text",
            "echo",
            json!({ "message": greeting }),
            Expect::text("Echo: gr\u{fc}\u{df} dich \u{2028} \u{1f600}"),
        ),
        call("progress", long, json!({ "duration": 0.4, "steps": 4 }), Expect::text("Steps: 4").progress(4)),
        call("form", ask, json!({}), Expect::text("- Name: Ann").asks(&["user"]).form(ann)),
        call("declined", ask, json!({}), Expect::text("declined").asks(&["user"])),
        call(
            "model",
            "trigger-sampling-request",
            json!({ "prompt": "six times seven" }),
            Expect::text("forty-two").asks(&["model"]),
        ),
        call("roots", "get-roots-list", json!({}), Expect::text("file://")),
        call("unknown", "no-such-tool", json!({}), Expect::text("not found").fails()),
        call("bad arguments", "get-sum", json!({ "a": "two" }), Expect::text("Invalid").fails()),
        step("cancel", Does::Cancel(long, json!({ "duration": 60, "steps": 1 }))),
        call("after", "get-sum", json!({ "a": 20, "b": 3 }), Expect::text("is 23.")),
        step("many", Does::Many("echo", "message")),
        step("large", Does::Large("echo", "message")),
        step("ping", Does::Ping),
        step("changed", Does::HasChanged),
    ];
    fit(&mut steps, revision);
    steps.extend(super::everything::offered(revision));
    steps
}

fn filesystem(server: &Server, revision: &str) -> Vec<Step> {
    let path = |name: &str| json!(server.folder.join(name));
    let mut steps = vec![
        call(
            "write",
            "write_file",
            json!({ "path": path("a.txt"), "content": "gr\u{fc}\u{df}" }),
            Expect::text("Successfully wrote"),
        ),
        call(
            "structured",
            "read_text_file",
            json!({ "path": path("a.txt") }),
            Expect::text("gr\u{fc}\u{df}").structured(json!({ "content": "gr\u{fc}\u{df}" })),
        ),
        call("failing", "read_text_file", json!({ "path": "/etc/passwd" }), Expect::text("Access denied").fails()),
        call("roots", "list_allowed_directories", json!({}), Expect::text("filesystem")),
        call("unknown", "no-such-tool", json!({}), Expect::text("not found").fails()),
        step("ping", Does::Ping),
    ];
    fit(&mut steps, revision);
    steps.extend(super::everything::filesystem(revision));
    steps
}

fn memory(_: &Server, revision: &str) -> Vec<Step> {
    let ann = json!({ "name": "Ann", "entityType": "person", "observations": ["likes \u{fc}"] });
    let graph = json!({ "entities": [ann], "relations": [] });
    let mut steps = vec![
        call("create", "create_entities", json!({ "entities": [ann] }), Expect::text("Ann")),
        call("structured", "read_graph", json!({}), Expect::text("likes \u{fc}").structured(graph)),
        call("search", "search_nodes", json!({ "query": "ann" }), Expect::text("person")),
        call("bad arguments", "search_nodes", json!({ "query": 3 }), Expect::text("Invalid").fails()),
        call("unknown", "no-such-tool", json!({}), Expect::text("not found").fails()),
        step("ping", Does::Ping),
    ];
    fit(&mut steps, revision);
    steps.extend(super::everything::memory(revision));
    steps
}
