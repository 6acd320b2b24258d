//! A server with a tool for each tested behaviour. Some of its handlers are functions that block,
//! the others futures: each adapter runs both kinds.

use super::*;
use mcp_proto::{InputAnswer, InputRequest};
use std::future::{pending, poll_fn};
use std::process::Command;
use std::sync::Condvar;
use std::task::Poll;

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

/// Runs a test with both tools that never end, at the same time: a function that waits for its
/// cancellation, and a future.
pub(crate) fn with_endless(test: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for tool in ["slow", "hang"] {
            let test = &test;
            scope.spawn(move || test(tool));
        }
    });
}

/// The state of the handlers of one server.
#[derive(Default)]
pub(crate) struct Seen {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Default, Clone, Copy)]
pub(crate) struct Counts {
    /// Handlers of the endless tools that have begun.
    pub(crate) begun: u32,
    /// Number of these that saw their cancellation, or were dropped.
    pub(crate) cancelled: u32,
    /// Handlers of `meet` that have arrived.
    pub(crate) met: u32,
}

impl Seen {
    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().expect("no panic"));
        self.changed.notify_all();
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock().expect("no panic")
    }

    /// Waits until `is_so`, at most for the time limit.
    pub(crate) fn wait(&self, mut is_so: impl FnMut(&Counts) -> bool) {
        let counts = self.counts.lock().expect("no panic");
        let (_counts, late) =
            self.changed.wait_timeout_while(counts, BOUND, |counts| !is_so(counts)).expect("no panic");
        assert!(!late.timed_out(), "the handlers do not come to it");
    }
}

/// Counts the end of a handler of `hang`.
struct Ended(Arc<Seen>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.count(|counts| counts.cancelled += 1);
    }
}

/// Lets other tasks run.
pub(crate) async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Returns the server and the state of its handlers.
pub(crate) fn router() -> (Router, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let router = Router::new("served", "1.0")
        .tool_async(tool("add").describe("adds"), |_cx, add: Add| async move { Ok(add.a + add.b) })
        .tool(tool("echo"), |_cx, echo: Text| Ok(echo.text))
        .tool(tool("boom"), |_cx, ()| -> Result<(), ToolError> { boom() })
        .tool_async(tool("boom later"), |_cx, ()| async move {
            yield_once().await;
            boom::<Result<(), ToolError>>()
        })
        .tool_async(tool("boom at once"), |_cx, ()| boom::<std::future::Ready<Result<(), ToolError>>>())
        .tool(tool("pid"), |_cx, ()| Ok(std::process::id()))
        .tool(tool("print"), |_cx, (): ()| {
            println!("this is no message");
            Ok(Command::new("/bin/sh").args(["-c", "cat; echo not this"]).status()?.to_string())
        })
        .tool_async(tool("count"), |cx, count: Count| async move {
            for n in 1..=count.to {
                // Fails if the client did not request progress.
                let _ = cx.progress(Progress::new(n.into()).total(count.to.into()));
                yield_once().await;
            }
            Ok(count.to)
        })
        .tool(tool("change"), |cx, ()| {
            cx.publish(Change::Tools);
            Ok("told")
        });
    (endless(asking(router), &seen), seen)
}

fn boom<T>() -> T {
    std::panic::resume_unwind(Box::new("the handler fails"))
}

/// Adds the tools that request input.
fn asking(router: Router) -> Router {
    router
        .tool(tool("greet"), |cx, (): ()| {
            #[derive(serde::Deserialize)]
            struct Name {
                name: String,
            }
            match cx.elicit("who", Form::new("who are you?").text("name"))? {
                result @ ElicitResult::Accept(_) => {
                    let entered: Option<Name> = result.content()?;
                    Ok(entered.map_or_else(|| "no name".into(), |entered| format!("hello {}", entered.name)))
                }
                other => Err(ToolError::Failed(format!("{other:?}"))),
            }
        })
        .tool_async(tool("roots"), |cx, (): ()| async move {
            match cx.ask(vec![("roots".into(), InputRequest::Roots)])?.as_slice() {
                [InputAnswer::Roots(roots)] => Ok(format!("{roots:?}")),
                other => Err(ToolError::Failed(format!("{other:?}"))),
            }
        })
        .tool(tool("roots and model"), |cx, (): ()| {
            let answers = cx.ask(vec![("roots".into(), InputRequest::Roots), ("model".into(), sampling())])?;
            match answers.as_slice() {
                [InputAnswer::Roots(roots), InputAnswer::Sampling(said)] => Ok(format!("{roots:?} {said:?}")),
                other => Err(ToolError::Failed(format!("{other:?}"))),
            }
        })
}

fn sampling() -> InputRequest {
    SampleRequest::new(1).user("?").into()
}

/// Adds the tools that end when they are told to.
fn endless(router: Router, seen: &Arc<Seen>) -> Router {
    let (slow, hang, meet) = (Arc::clone(seen), Arc::clone(seen), Arc::clone(seen));
    router
        .tool(tool("slow"), move |cx, (): ()| {
            slow.count(|counts| counts.begun += 1);
            until(|| cx.is_cancelled());
            slow.count(|counts| counts.cancelled += 1);
            Ok(())
        })
        .tool_async(tool("hang"), move |_cx, ()| {
            hang.count(|counts| counts.begun += 1);
            let ended = Ended(Arc::clone(&hang));
            async move {
                let _ended = ended;
                pending::<Result<(), ToolError>>().await
            }
        })
        .tool(tool("meet"), move |_cx, all: Count| {
            meet.count(|counts| counts.met += 1);
            meet.wait(|counts| counts.met >= all.to);
            Ok("met")
        })
}
