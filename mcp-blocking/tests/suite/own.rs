//! A server of this crate with a tool for each tested behaviour.

use mcp_blocking::{ElicitRequest, ElicitResult, Object, Progress, Router, ToolError, tool};
use mcp_proto::{InputAnswer, InputRequest};
use std::sync::{Arc, Condvar, Mutex};

#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Add {
    pub(crate) a: i64,
    pub(crate) b: i64,
}

#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Text {
    pub(crate) text: String,
}

#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Count {
    pub(crate) to: u32,
}

/// The state of the handlers of one server.
#[derive(Default)]
pub(crate) struct Seen {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Default, Clone, Copy)]
pub(crate) struct Counts {
    /// Handlers of `slow` that have begun.
    pub(crate) begun: u32,
    /// Number of these that saw their cancellation.
    pub(crate) cancelled: u32,
    /// Handlers of `meet` that have arrived.
    pub(crate) met: u32,
}

impl Seen {
    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().expect("no panic"));
        self.changed.notify_all();
    }

    /// Waits until `is_so`, at most for the time limit.
    pub(crate) fn wait(&self, mut is_so: impl FnMut(&Counts) -> bool) {
        let counts = self.counts.lock().expect("no panic");
        let (_counts, late) =
            self.changed.wait_timeout_while(counts, crate::common::BOUND, |counts| !is_so(counts)).expect("no panic");
        assert!(!late.timed_out(), "the handlers do not come to it");
    }
}

/// Returns the server and the state of its handlers.
pub(crate) fn router() -> (Router, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let (slow, meet) = (Arc::clone(&seen), Arc::clone(&seen));
    let router = Router::new("served", "1.0")
        .tool(tool("add").describe("adds"), |_cx, add: Add| Ok(add.a + add.b))
        .tool(tool("echo"), |_cx, echo: Text| Ok(echo.text))
        .tool(tool("boom"), |_cx, ()| -> Result<(), ToolError> {
            std::panic::resume_unwind(Box::new("the handler fails"))
        })
        .tool(tool("pid"), |_cx, ()| Ok(std::process::id()))
        .tool(tool("print"), |_cx, (): ()| {
            println!("this is no message");
            let child =
                std::process::Command::new("/bin/sh").args(["-c", "read -r line; echo \"not this: $line\""]).status();
            Ok(child?.to_string())
        })
        .tool(tool("count"), |cx, count: Count| {
            for n in 1..=count.to {
                // Fails if the client did not request progress.
                let _ = cx.progress(Progress::new(n.into()).total(count.to.into()));
            }
            Ok(count.to)
        })
        .tool(tool("greet"), |cx, (): ()| {
            #[derive(serde::Deserialize)]
            struct Form {
                name: String,
            }
            match cx.elicit("who", ElicitRequest::form("who are you?").text("name"))? {
                result @ ElicitResult::Accept(_) => {
                    let form: Option<Form> = result.content()?;
                    Ok(form.map_or_else(|| "nobody".into(), |form| format!("hello {}", form.name)))
                }
                other => Err(ToolError::Failed(format!("{other:?}"))),
            }
        })
        .tool(tool("roots"), |cx, (): ()| {
            let answers = cx.ask(vec![("roots".into(), InputRequest::Roots), ("model".into(), sampling())])?;
            match answers.as_slice() {
                [InputAnswer::Roots(roots), InputAnswer::Sampling(said)] => {
                    Ok(format!("{} {}", roots.to_json().as_str(), said.to_json().as_str()))
                }
                other => Err(ToolError::Failed(format!("{other:?}"))),
            }
        })
        .tool(tool("slow"), move |cx, (): ()| {
            slow.count(|counts| counts.begun += 1);
            crate::common::until(|| cx.is_cancelled());
            slow.count(|counts| counts.cancelled += 1);
            Ok(())
        })
        .tool(tool("meet"), move |_cx, ()| {
            meet.count(|counts| counts.met += 1);
            meet.wait(|counts| counts.met >= 2);
            Ok("met")
        });
    (router, seen)
}

fn sampling() -> InputRequest {
    InputRequest::Sampling(Object::new().with("messages", Vec::new()).with("maxTokens", 1_i64))
}
