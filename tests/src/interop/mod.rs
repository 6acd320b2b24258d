//! Clients and servers of other SDKs, over stdio and HTTP: their installation, their start, and the
//! required results with ours.
//!
//! `tests/interop` has exact versions. They are installed below the target directory, once for each
//! content of the lock files. A failed installation is a failure, never a reason to skip.
//! [`servers`] is the table of servers for our client over stdio, [`web`] that over HTTP,
//! [`clients`] that of clients for our server ([`offer`]).

pub mod areas;
pub mod callers;
pub mod clients;
pub mod ear;
pub mod everything;
pub mod listening;
pub mod offer;
pub mod processes;
pub mod relay;
pub mod servers;
pub mod session;
pub mod setup;
pub mod steps;
pub mod tls;
pub mod traces;
pub mod web;
mod web_steps;

use std::process::Command;
use std::time::Duration;

use crate::adapters::Adapter;
use mcp_proto::CallToolResult;
use mcp_proto::client::{Policy, Verdict};
use serde_json::Value;

/// Time between the start and the cancellation of a call, so that the server has begun it. The call
/// itself takes far longer.
const BEFORE_CANCEL: Duration = Duration::from_millis(200);
/// Maximum time of a server's exit after the end of its input: an interpreter takes more than a
/// second on a busy machine.
const EXIT: Duration = Duration::from_secs(8);
/// Maximum time of anything that should be immediate, on a slow machine.
const SOON: Duration = Duration::from_secs(10);

/// The result of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// It passed, with a description.
    Passed(String),
    /// It failed, with the reason.
    Failed(String),
    /// It failed in a known way: the result, and why the peer causes it.
    Deviates(String, &'static str),
}

/// A step that a peer is known to fail: the revision, the step, why the peer causes it, and whether
/// it occurs in every run. An entry that has to occur in every run, and occurs in no row, is stale
/// and fails the run.
pub type Deviation = (&'static str, &'static str, &'static str, Shows);

/// Whether a deviation depends on chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// It occurs in every run.
    Always,
    /// It depends on which messages are read together.
    AtTimes,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The peer and its version.
    pub peer: String,
    /// The role of the peer: `server` or `client`.
    pub role: &'static str,
    /// The revision in use.
    pub revision: &'static str,
    /// Our adapter.
    pub adapter: Adapter,
    /// The steps, in order.
    pub steps: Vec<(String, Mark)>,
    /// The standard error of the peer.
    pub stderr: Vec<String>,
    /// The total time.
    pub time: Duration,
}

impl Row {
    /// Creates a row without steps.
    fn new(peer: &str, role: &'static str, revision: &'static str, adapter: Adapter) -> Self {
        Self {
            peer: peer.to_owned(),
            role,
            revision,
            adapter,
            steps: Vec::new(),
            stderr: Vec::new(),
            time: Duration::ZERO,
        }
    }

    /// Returns the numbers of passed, failed and deviating steps.
    pub fn count(&self) -> (usize, usize, usize) {
        let of = |wanted: fn(&Mark) -> bool| self.steps.iter().filter(|(_, mark)| wanted(mark)).count();
        (
            of(|mark| matches!(mark, Mark::Passed(_))),
            of(|mark| matches!(mark, Mark::Failed(_))),
            of(|mark| matches!(mark, Mark::Deviates(..))),
        )
    }
}

/// Returns the result of a step, given the list of known deviations.
pub fn judge(known: &[Deviation], revision: &str, step: &str, result: Result<String, String>) -> Mark {
    let known = known.iter().find(|(of, name, ..)| *of == revision && *name == step);
    match (result, known) {
        (Ok(what), _) => Mark::Passed(what),
        (Err(why), None) => Mark::Failed(why),
        (Err(why), Some((_, _, reason, _))) => Mark::Deviates(why, reason),
    }
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The texts of the result, joined by line feeds.
    pub text: String,
    /// The result as data.
    pub structured: Option<Value>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// The progress values in the order of arrival.
    pub progress: Vec<f64>,
    /// The requests of the server during the call.
    pub asked: Vec<&'static str>,
}

impl Answer {
    fn new(result: &CallToolResult, progress: Vec<f64>, asked: Vec<&'static str>) -> Self {
        let texts: Vec<&str> = result.content.iter().filter_map(|block| block.as_text()).collect();
        let structured = result.structured.as_ref().and_then(|json| json.decode().ok());
        Self { text: texts.join("\n"), structured, is_error: result.is_error, progress, asked }
    }
}

/// The location of a server.
#[derive(Debug)]
pub enum Place {
    /// A program with pipes.
    Program(Command),
    /// A URL.
    Url(String),
}

/// How a client connects.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The location of the server.
    pub place: Place,
    /// The policy for the era.
    pub policy: Policy,
    /// The intended revision. If it is not the newest of its era, the client supports no other.
    pub revision: &'a str,
    /// The findings of an earlier client.
    pub verdict: Option<Verdict>,
    /// The root that the client declares.
    pub root: String,
}
