//! Functions around handlers, with an engine, and handlers that run at once.

use super::*;
use crate::exchange::{ExchangeEvent, ExchangeId, Outbound, Peer};
use crate::limits::Limits;
use crate::model::elicitation::Form;
use crate::model::tasks::TaskSupport;
use crate::route::{Key, Rate, RateLimit, RouteResult, Router, prompt, resource, tool};
use crate::rpc::{ErrorObject, Message, Object, Payload, code, parse, parse_batch_or_message};
use crate::server::{Event, Output, Server, ServerCommands};
use crate::time::Instant;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Mutex;

const X: ExchangeId = ExchangeId(1);
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}}"#;

/// What functions have said, in order.
type Said = Arc<Mutex<Vec<String>>>;

struct Bench {
    router: Router,
    server: Server,
    now: Instant,
    /// The kind of the handler that ran last.
    kind: String,
    notes: Said,
}

impl Bench {
    fn new(router: Router) -> Self {
        let mut server = Server::new(Arc::new(router.config()), [1; 32], Instant::ZERO);
        server.handle_event(Instant::ZERO, X, ExchangeEvent::Opened(Peer::default()));
        Self { router, server, now: Instant::ZERO, kind: String::new(), notes: Said::default() }
    }

    /// Makes a request of 2026-07-28, with these members of its params.
    fn ask(&mut self, method: &str, params: &str) -> Result<Object, ErrorObject> {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{META}{params}}}}}"#);
        let read = parse_batch_or_message(line.into_bytes().into(), &Limits::default().frame);
        self.server.handle_event(self.now, X, ExchangeEvent::Inbound(read.into()));
        let mut response = None;
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Event(Event::Request(responder, incoming)) => {
                    let answer = match self.router.route(responder, incoming) {
                        RouteResult::Answer(answer) => answer,
                        RouteResult::Handle { handler, invocation, responder } => {
                            self.kind = format!("{handler:?}");
                            let notes = Arc::clone(&self.notes);
                            let note = move |note| {
                                notes.lock().unwrap().push(format!("{note:?}"));
                                Ok(())
                            };
                            responder.write(run(&handler, Cx::linked(invocation, Arc::default(), note, |_| {})))
                        }
                    };
                    self.server.respond(self.now, answer);
                }
                Output::Send(X, Outbound::Message(message)) => response = Some(message),
                _ => {}
            }
        }
        match parse(response.expect("a response"), 128) {
            Ok(Message::Response(response)) => match response.payload {
                Payload::Result(result) => Ok(Object::read(&result).unwrap()),
                Payload::Error(error) => Err(error),
            },
            other => panic!("{other:?}"),
        }
    }

    fn call(&mut self, tool: &str) -> Result<String, ErrorObject> {
        let result = self.ask("tools/call", &format!(r#","name":"{tool}","arguments":{{}}"#))?;
        Ok(result.get("content").map(|content| content.to_string()).unwrap_or_default())
    }
}

/// Runs a handler that is never pending.
fn run(handler: &Handler, cx: Cx) -> Outcome {
    match handler {
        Handler::Sync(f) | Handler::Inline(f) => f(&cx),
        Handler::Async(f) => match f(cx).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => panic!("it waits"),
        },
    }
}

fn say(said: &Said, text: impl Into<String>) {
    said.lock().unwrap().push(text.into());
}

fn take(said: &Said) -> Vec<String> {
    core::mem::take(&mut *said.lock().unwrap())
}

/// A router with two functions of each kind, which say when they run, and tools of each kind.
fn layered(said: &Said, waits: bool) -> Router {
    let [outer, inner, ends, answers, around, handler] = [(); 6].map(|()| Arc::clone(said));
    let router = Router::new("s", "1")
        .before(move |cx: &Cx| {
            say(&outer, format!("outer {} {}", cx.method(), cx.name().unwrap_or_default()));
            Ok(())
        })
        .after(move |_, outcome| {
            say(&ends, format!("ends {}", matches!(outcome, Outcome::Complete(_))));
        });
    let router = match waits {
        true => router.around_async(move |cx, next| {
            say(&around, "around");
            let around = Arc::clone(&around);
            async move {
                let outcome = next.run(cx).await;
                say(&around, "leaves");
                outcome
            }
        }),
        false => router,
    };
    let tools = |router: Router| {
        let [sync, later] = [(); 2].map(|()| Arc::clone(&handler));
        router
            .tool(tool("sync"), move |_, ()| {
                say(&sync, "handler");
                Ok("done")
            })
            .tool_async(tool("later"), move |_, ()| {
                say(&later, "handler");
                async { Ok("done") }
            })
            .inline(|router| router.tool(tool("inline"), |_, ()| Ok("done")))
    };
    tools(router)
        .before(move |cx: &Cx| {
            say(&inner, "inner");
            if cx.name().is_some_and(|name| name == "test://no") { Err("refused".into()) } else { Ok(()) }
        })
        .after(move |_, outcome| {
            say(&answers, "answers");
            if let Outcome::Complete(result) = outcome {
                result.set("extra", 1_u64);
            }
        })
        .resource(resource("test://no").name("no"), |_| Ok("x"))
        .prompt(prompt("p"), |_, ()| Ok("x"))
}

#[test]
fn functions_surround_each_handler_in_their_order() {
    for waits in [false, true] {
        let said = Said::default();
        let mut bench = Bench::new(layered(&said, waits));
        for name in ["sync", "later", "inline"] {
            let result = bench.ask("tools/call", &format!(r#","name":"{name}","arguments":{{}}"#)).unwrap();
            assert!(result.contains("extra"), "the inner one changes the outcome");
            let handler = if name == "inline" { None } else { Some("handler") };
            let outer = format!("outer tools/call {name}");
            let mut expected = vec![&*outer];
            expected.extend(waits.then_some("around"));
            expected.push("inner");
            expected.extend(handler);
            expected.push("answers");
            expected.extend(waits.then_some("leaves"));
            expected.push("ends true");
            assert_eq!(take(&said), expected, "{name} {waits}");
        }
    }
}

#[test]
fn every_request_that_is_served_passes_them() {
    let said = Said::default();
    let mut bench = Bench::new(layered(&said, false));
    let list = bench.ask("tools/list", "").unwrap();
    assert!(list.contains("tools") && list.contains("extra"));
    assert_eq!(take(&said), ["outer tools/list ", "inner", "answers", "ends true"]);
    bench.ask("prompts/get", r#","name":"p""#).unwrap();
    assert_eq!(take(&said)[0], "outer prompts/get p");
    // One that is refused goes back through those that it has passed.
    let refused = bench.ask("resources/read", r#","uri":"test://no""#).unwrap_err();
    assert_eq!((refused.code, &*refused.message), (code::INTERNAL_ERROR, "refused"));
    assert_eq!(take(&said), ["outer resources/read test://no", "inner", "ends false"]);
    // What the router refuses itself does not reach them.
    assert_eq!(bench.call("unknown").unwrap_err().code, code::INVALID_PARAMS);
    assert!(take(&said).is_empty());
}

#[test]
fn handler_stays_inline_only_among_functions_that_are() {
    let inline = |router: Router| router.inline(|router| router.tool(tool("t"), |_, ()| Ok("1")));
    let kind = |router: Router| {
        let mut bench = Bench::new(router);
        bench.call("t").unwrap();
        bench.kind
    };
    let router = || inline(Router::new("s", "1"));
    assert_eq!(kind(router()), "Inline");
    assert_eq!(kind(router().before(|_: &Cx| Ok(()))), "Sync");
    assert_eq!(kind(router().inline(|router| router.before(|_: &Cx| Ok(())).after(|_, _| {}))), "Inline");
    assert_eq!(kind(router().before(RateLimit::by(Key::Tool, Rate::per_second(1)))), "Inline");
    assert_eq!(kind(router().around_async(|cx, next| next.run(cx))), "Async");
}

#[test]
fn functions_see_each_round_of_a_request() {
    let said = Said::default();
    let rounds = Arc::clone(&said);
    let router = Router::new("s", "1")
        .after(move |cx, outcome| {
            say(&rounds, format!("{} {}", cx.round(), matches!(outcome, Outcome::NeedInput { .. })))
        })
        .tool(tool("t"), |cx, ()| cx.elicit("who", Form::new("?").text("it")).map(|_| "done"));
    let mut bench = Bench::new(router);
    let asked = bench.ask("tools/call", r#","name":"t","arguments":{}"#).unwrap();
    let state = asked.get("requestState").unwrap();
    let answer = r#""inputResponses":{"who":{"action":"decline"}}"#;
    bench.ask("tools/call", &format!(r#","name":"t","arguments":{{}},"requestState":{state},{answer}"#)).unwrap();
    assert_eq!(take(&said), ["0 true", "1 false"]);
}

#[test]
fn refused_call_becomes_no_task() {
    let slow = || tool("slow").task(TaskSupport::Optional).at_once();
    let router = Router::new("s", "1").tool(slow(), |_, ()| Ok("done"));
    let mut bench = Bench::new(router.clone().before(|_: &Cx| Ok(())));
    bench.call("slow").unwrap();
    assert_eq!(take(&bench.notes).len(), 1, "it becomes one");
    let mut bench = Bench::new(router.before(|_: &Cx| Err("no".into())));
    bench.call("slow").unwrap();
    assert!(take(&bench.notes).is_empty());
}

#[test]
fn limit_counts_by_tool_and_first_rounds_only() {
    let router = Router::new("s", "1")
        .before(RateLimit::by(Key::Tool, Rate::per_minute(60).burst(2)))
        .tool(tool("a"), |_, ()| Ok("a"))
        .tool(tool("b"), |_, ()| Ok("b"));
    let mut bench = Bench::new(router);
    let outcomes = [(); 3].map(|()| bench.call("a").map_err(|error| error.code).is_ok());
    assert_eq!(outcomes, [true, true, false]);
    let error = bench.call("a").unwrap_err();
    assert_eq!(error.code, 429);
    let data = Object::read(&error.data.unwrap()).unwrap();
    assert_eq!(data.get("retryAfterMs"), Some(1000_u64.into()));
    bench.call("b").unwrap();
    bench.ask("tools/list", "").unwrap();
    bench.now = bench.now + Duration::from_secs(1);
    bench.call("a").unwrap();
    assert_eq!(bench.call("a").unwrap_err().code, 429);
}
