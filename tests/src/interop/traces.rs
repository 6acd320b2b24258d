//! One trace over four programs: a client with the official Python SDK, a server of ours, in it a
//! client of ours, and a server with that SDK. Each program prints its spans.

use mcp_driver::{ClientOptions, ServerOptions};
use mcp_proto::telemetry::{Observe, Side, SpanEnd, SpanStart};
use mcp_proto::{Cx, Program, Router, ToolError, TraceContext, tool, tools};
use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::setup::Installed;
use super::{Mark, Row};
use crate::adapters::Adapter;
use crate::sources;

/// The word for the program in the middle.
pub const RELAY: &str = "trace-relay";

/// Prints a line for each span, as the programs in Python do.
#[derive(Default)]
struct Printer(Mutex<BTreeMap<usize, TraceContext>>);

impl Observe for Printer {
    fn began(&self, span: &SpanStart<'_>) -> Option<TraceContext> {
        // Without a parent it belongs to no trace.
        let mut id = (span.id as u64).to_be_bytes();
        id[0] = if span.side == Side::Client { 0xc } else { 0x5 };
        let own = span.trace.as_ref()?.child(id)?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(span.id, own.clone());
        Some(own)
    }

    fn ended(&self, end: &SpanEnd<'_>) {
        let own = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&end.span.id);
        let (Some(own), Some(parent)) = (own, &end.span.trace) else { return };
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (trace, own, parent) = (hex(&own.trace_id()), hex(&own.parent_id()), hex(&parent.parent_id()));
        eprintln!("span {trace} {own} {parent} {}", end.span.name());
    }
}

/// Serves standard input and output. The tool `relay` calls `tick` of the program that the
/// arguments name, in the span of its own request.
pub fn relay(adapter: Adapter, arguments: &[String]) -> ExitCode {
    let Some((program, arguments)) = arguments.split_first() else {
        eprintln!("usage: {RELAY} blocking|smol PROGRAM ARGUMENTS...");
        return ExitCode::from(2);
    };
    let observed = ClientOptions::new().observe(Printer::default());
    let client = match adapter.connect(Program::new(program).args(arguments), observed) {
        Ok(client) => Arc::new(client),
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    let of_tool = Arc::clone(&client);
    let router = Router::new("relay", "1").tool(tool("relay"), move |cx: &Cx, ()| {
        let mut call = tools::call("tick");
        if let Some(trace) = cx.trace() {
            call = call.trace(&trace);
        }
        let result = of_tool.call(call).map_err(|why| ToolError::from(why.to_string()))?;
        Ok(result.first_text().unwrap_or_default().to_owned())
    });
    let served = adapter.serve_stdio((router, ServerOptions::new().observe(Printer::default())));
    // Its program prints its spans, and exits.
    drop(Arc::into_inner(client).map(crate::adapters::Client::close));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// A span that a program has printed.
#[derive(Debug)]
struct Printed<'a> {
    trace: &'a str,
    own: &'a str,
    parent: &'a str,
    name: &'a str,
}

/// Runs the four programs, and checks the trace.
pub fn row(installed: &Installed, adapter: Adapter) -> Row {
    let began = Instant::now();
    let (mark, stderr) = match run(installed, adapter) {
        Ok(stderr) => (check(&stderr).map_or_else(Mark::Failed, Mark::Passed), stderr),
        Err(why) => (Mark::Failed(why), String::new()),
    };
    Row {
        peer: "mcp 2 (Python), both ends".into(),
        role: "trace",
        // The client of the SDK begins with `initialize`, ours with `server/discover`.
        revision: "both eras",
        adapter,
        steps: vec![("one trace, right parents".into(), mark)],
        time: began.elapsed(),
        stderr: stderr.lines().map(str::to_owned).collect(),
    }
}

fn run(installed: &Installed, adapter: Adapter) -> Result<String, String> {
    let script = sources::root().join("tests/interop/python/traced.py");
    let mut client = Command::new(&installed.python2);
    client.arg(&script).arg("client").arg(&installed.server).args([RELAY, adapter.name()]);
    let output = client.arg(&installed.python2).arg(&script).arg("server").output().map_err(|why| why.to_string())?;
    let [said, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    match said.trim() {
        "tock" => Ok(stderr),
        other => Err(format!("the tool said {other:?}: {stderr}")),
    }
}

/// Checks the spans of the four programs: each is the parent of the next.
fn check(stderr: &str) -> Result<String, String> {
    let spans: Vec<Printed<'_>> = stderr.lines().filter_map(printed).collect();
    let root = spans.iter().find(|span| span.name == "begin").ok_or("no span of the client")?;
    let mut chain = vec![root];
    for name in ["relay", "relay", "tick", "tick"] {
        let parent = chain.last().ok_or("no parent")?;
        let is_next = |span: &&Printed<'_>| span.parent == parent.own && span.name.ends_with(name);
        let next = spans.iter().find(is_next).ok_or_else(|| format!("no {name} below {parent:?}: {spans:?}"))?;
        chain.push(next);
    }
    match chain.iter().all(|span| span.trace == root.trace) {
        true => Ok(chain.iter().map(|span| span.name).collect::<Vec<_>>().join(" > ")),
        false => Err(format!("more than one trace: {chain:?}")),
    }
}

fn printed(line: &str) -> Option<Printed<'_>> {
    let mut parts = line.strip_prefix("span ")?.splitn(4, ' ');
    let mut next = || parts.next();
    Some(Printed { trace: next()?, own: next()?, parent: next()?, name: next()? })
}
