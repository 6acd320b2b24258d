//! Tools whose calls become tasks, with an engine and with handlers that run at once.

use super::*;
use crate::exchange::{ExchangeEvent, ExchangeId, Outbound, Peer};
use crate::input::Note;
use crate::limits::Limits;
use crate::model::elicitation::Form;
use crate::route::{Cx, RouteResult, Router, tool};
use crate::rpc::{Message, Object, Payload, parse, parse_batch_or_message};
use crate::server::{Event, Output, Server, ServerCommands};
use crate::time::Instant;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::Mutex;

const X: ExchangeId = ExchangeId(1);
const NOW: Instant = Instant::ZERO;
const TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}"#;

struct Bench {
    router: Router,
    server: Server,
    last: u32,
    /// What was said of the tasks.
    options: Vec<TaskOptions>,
}

impl Bench {
    fn new(router: Router) -> Self {
        let mut server = Server::new(Arc::new(router.config()), [1; 32], NOW);
        server.handle_event(NOW, X, ExchangeEvent::Opened(Peer::default()));
        Self { router, server, last: 0, options: Vec::new() }
    }

    /// One whose client has negotiated this revision.
    fn legacy(router: Router, version: &str) -> Self {
        let mut bench = Self::new(router);
        let params = format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{"elicitation":{{}}}},"clientInfo":{{"name":"c","version":"0"}}}}"#
        );
        bench.ask("initialize", &params).unwrap();
        bench
    }

    /// Sends a request, and runs handlers until nothing is left. Returns the response.
    fn ask(&mut self, method: &str, params: &str) -> Result<Object, ErrorObject> {
        self.last += 1;
        let line = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#, self.last);
        let read = parse_batch_or_message(line.into_bytes().into(), &Limits::default().frame);
        self.server.handle_event(NOW, X, ExchangeEvent::Inbound(read.into()));
        let mut response = None;
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Event(Event::Request(responder, incoming)) => {
                    let answer = match self.router.route(responder, incoming) {
                        RouteResult::Answer(answer) => answer,
                        RouteResult::Handle { handler, invocation, responder } => {
                            let (notes, key) = (Arc::new(Mutex::new(Vec::new())), responder.key());
                            let kept = Arc::clone(&notes);
                            let note = move |note: Note| {
                                kept.lock().unwrap().push(note);
                                Ok(())
                            };
                            let cx = Cx::linked(invocation, Arc::default(), note, |_| {});
                            let outcome = handler.call(&cx).unwrap();
                            for note in notes.lock().unwrap().drain(..) {
                                if let Note::IntoTask(options) = note {
                                    self.options.push(options);
                                }
                                self.server.notify(NOW, key, note).unwrap();
                            }
                            responder.write(outcome)
                        }
                    };
                    self.server.respond(NOW, answer);
                }
                Output::Send(X, Outbound::Message(message)) => match parse(message, 128) {
                    Ok(Message::Response(found)) if found.id == crate::rpc::Id::Int(self.last.into()) => {
                        response = Some(found.payload);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        match response.expect("a response") {
            Payload::Result(result) => Ok(Object::read(&result).unwrap()),
            Payload::Error(error) => Err(error),
        }
    }

    fn modern(&mut self, method: &str, capabilities: &str, rest: &str) -> Result<Object, ErrorObject> {
        let meta = format!(
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}"#
        );
        self.ask(method, &format!(r#"{{"_meta":{{{meta}}}{rest}}}"#))
    }

    fn call(&mut self, capabilities: &str, tool: &str) -> Result<Object, ErrorObject> {
        self.modern("tools/call", capabilities, &format!(r#","name":"{tool}""#))
    }

    fn get(&mut self, task: &Object) -> Object {
        let id: String = task.required("taskId").unwrap();
        self.modern("tasks/get", TASKS, &format!(r#","taskId":"{id}""#)).unwrap()
    }
}

fn kind(object: &Object) -> String {
    object.required("resultType").unwrap()
}

fn router() -> Router {
    Router::new("builder", "1")
        .tool("quick", |_cx, ()| Ok("at once"))
        .tool(tool("build").task(TaskSupport::Optional), |cx, ()| {
            let is_task = cx.into_task(TaskOptions::new())?;
            cx.status("half of it").ok();
            Ok(format!("{is_task} {} {}", cx.task().is_some(), cx.round()))
        })
        .tool(tool("whole").task(TaskSupport::Required).at_once(), |cx, ()| Ok(format!("{}", cx.task().is_some())))
        .tool(tool("ask").task(TaskSupport::Optional), |cx, ()| {
            let first = cx.elicit("first", Form::new("?").text("it"))?;
            cx.into_task(TaskOptions::new())?;
            let second = cx.elicit("second", Form::new("?").text("it"))?;
            Ok(format!("{first:?} {second:?} {}", cx.round()))
        })
}

fn text(result: &Object) -> String {
    let content = result.array("content").unwrap();
    Object::read(&content[0]).unwrap().required("text").unwrap()
}

// covers: TASKX-S-001, TASKX-S-005
#[test]
fn a_handler_decides_when_its_call_becomes_a_task() {
    let mut bench = Bench::new(router());
    let task = bench.call(TASKS, "build").unwrap();
    assert_eq!(kind(&task), "task");
    assert_eq!(text(&bench.get(&task).object("result").unwrap()), "true true 0");
    let plain = bench.call("{}", "build").unwrap();
    assert_eq!((kind(&plain), text(&plain)), ("complete".into(), "false false 0".into()));
    assert_eq!(kind(&bench.call(TASKS, "quick").unwrap()), "complete");
    let task = bench.call(TASKS, "whole").unwrap();
    assert_eq!(text(&bench.get(&task).object("result").unwrap()), "true", "before the handler runs");
    let refused = bench.call("{}", "whole").unwrap_err();
    assert_eq!(refused.code, -32021);
    assert!(refused.data.unwrap().as_str().contains("io.modelcontextprotocol/tasks"));
}

#[test]
fn tool_or_handler_lets_a_task_run_again() {
    let build = || tool("build").task(TaskSupport::Optional);
    for (described, options, reruns) in [
        (build(), TaskOptions::new(), false),
        (build(), TaskOptions::new().rerun(true), true),
        (build().rerun(true), TaskOptions::new(), true),
        (build().rerun(true).at_once(), TaskOptions::new(), true),
        (build().at_once(), TaskOptions::new(), false),
    ] {
        let mut bench = Bench::new(Router::new("builder", "1").tool(described, move |cx, ()| {
            cx.into_task(options)?;
            Ok("built")
        }));
        bench.call(TASKS, "build").unwrap();
        assert!(bench.options.iter().map(|options| options.reruns).eq([reruns]));
    }
}

// covers: TASKX-S-011, TASKX-S-021
#[test]
fn a_handler_asks_before_its_task_and_in_it() {
    let mut bench = Bench::new(router());
    let asked = bench.call(TASKS, "ask").unwrap();
    assert_eq!(kind(&asked), "input_required");
    let state: String = asked.required("requestState").unwrap();
    let yes = r#"{"action":"accept","content":{"it":"x"}}"#;
    let rest = format!(r#","name":"ask","requestState":"{state}","inputResponses":{{"first":{yes}}}"#);
    let task = bench.modern("tools/call", TASKS, &rest).unwrap();
    assert_eq!(kind(&task), "task");
    let waiting = bench.get(&task);
    assert!(waiting.object("inputRequests").unwrap().contains("second"));
    let id: String = task.required("taskId").unwrap();
    let rest = format!(r#","taskId":"{id}","inputResponses":{{"second":{yes}}}"#);
    bench.modern("tasks/update", TASKS, &rest).unwrap();
    let said = text(&bench.get(&task).object("result").unwrap());
    assert!(said.starts_with("Accept") && said.ends_with(" 2"), "{said}");
}

#[test]
fn without_room_a_call_runs_as_any_other() {
    let mut bench = Bench::new(router().configure(|config| config.limits.server.max_tasks = 0));
    assert_eq!(text(&bench.call(TASKS, "build").unwrap()), "false false 0");
    assert_eq!(bench.call(TASKS, "whole").unwrap_err().code, -32603);
}

// covers: TASKL-C-005, TASKL-S-006, TASKL-S-009, TASKL-B-011
#[test]
fn the_client_of_2025_11_25_decides_within_what_a_tool_supports() {
    let mut bench = Bench::legacy(router(), "2025-11-25");
    let mut call = |tool: &str, task: &str| bench.ask("tools/call", &format!(r#"{{"name":"{tool}"{task}}}"#));
    let wish = r#","task":{}"#;
    assert_eq!(call("quick", wish).unwrap_err().code, -32601);
    assert_eq!(call("whole", "").unwrap_err().code, -32601);
    assert_eq!(text(&call("build", "").unwrap()), "false false 0");
    let created = call("build", wish).unwrap();
    assert!(created.object("task").unwrap().contains("taskId"));
    assert!(call("whole", wish).unwrap().contains("task"));
    let mut older = Bench::legacy(router(), "2025-06-18");
    assert_eq!(older.ask("tools/call", r#"{"name":"whole"}"#).unwrap_err().code, -32601);
    assert_eq!(text(&older.ask("tools/call", r#"{"name":"build","task":{}}"#).unwrap()), "false false 0");
}

// covers: TASKL-B-001
#[test]
fn a_list_says_which_tools_support_tasks() {
    let mut bench = Bench::legacy(router(), "2025-11-25");
    let listed = |list: Object| {
        let tools = list.array("tools").unwrap();
        let support = |tool: &crate::RawJson| {
            let tool = Object::read(tool).unwrap();
            let execution = tool.optional_object("execution").unwrap();
            (
                tool.required::<String>("name").unwrap(),
                execution.and_then(|of| of.required::<String>("taskSupport").ok()),
            )
        };
        tools.iter().map(support).collect::<Vec<_>>()
    };
    let expected: [(&str, Option<&str>); 4] =
        [("ask", Some("optional")), ("build", Some("optional")), ("quick", None), ("whole", Some("required"))];
    let expected = expected.map(|(name, support)| (name.to_string(), support.map(ToString::to_string)));
    assert_eq!(listed(bench.ask("tools/list", "{}").unwrap()), expected);
    let modern = Bench::new(router()).modern("tools/list", "{}", "").unwrap();
    assert!(listed(modern).iter().all(|(_, support)| support.is_none()));
    assert!(!Router::new("plain", "1").tool("t", |_cx, ()| Ok("x")).config().tasks);
}
