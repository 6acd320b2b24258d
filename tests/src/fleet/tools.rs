//! The tools that only read: a call of a server, and how its answer looks.

use crate::interop::servers::Server;
use crate::sim::rng::Rng;
use serde_json::{Value, json};

/// Which tools a server has.
#[derive(Clone, Debug)]
pub(super) enum Offer {
    /// Those of the servers that this project writes with other SDKs.
    Ours,
    /// Those of `server-everything`.
    Everything,
    /// Those of `server-filesystem`, for this directory.
    Files(String),
    /// Those of `server-memory`.
    Graph,
}

/// A call.
pub(super) struct Asked {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    /// The answer contains this, and no other call has the same number in it.
    pub(super) answer: String,
}

impl Offer {
    pub(super) fn of(server: &Server) -> Self {
        let has = |tool| server.tools.contains(&tool);
        if has("get-sum") {
            Self::Everything
        } else if has("list_allowed_directories") {
            Self::Files(server.folder.to_string_lossy().into_owned())
        } else if has("read_graph") {
            Self::Graph
        } else {
            Self::Ours
        }
    }

    /// Returns a random call. `number` is that of the call.
    pub(super) fn ask(&self, number: u32, rng: &mut Rng) -> Asked {
        let (a, b, text) = (number, rng.below(1000) as u32, format!("the text of call {number}"));
        let asked = |tool, arguments, answer: String| Asked { tool, arguments, answer };
        match (self, rng.below(2)) {
            (Self::Ours, 0) => asked("add", json!({ "a": a, "b": b }), (a + b).to_string()),
            (Self::Ours, _) => asked("echo", json!({ "text": text }), text),
            (Self::Everything, 0) => asked("get-sum", json!({ "a": a, "b": b }), format!("is {}.", a + b)),
            (Self::Everything, _) => asked("echo", json!({ "message": text }), text),
            (Self::Files(folder), 0) => asked("list_allowed_directories", json!({}), folder.clone()),
            (Self::Files(folder), _) => asked("get_file_info", json!({ "path": folder }), "isDirectory: true".into()),
            (Self::Graph, 0) => asked("read_graph", json!({}), "entities".into()),
            (Self::Graph, _) => asked("search_nodes", json!({ "query": text }), "entities".into()),
        }
    }
}
