//! The server of the tests.

use mcp_proto::{InputAnswer, InputRequest};
use mcp_smol::{ElicitRequest, ElicitResult, Object, Progress, RawJson, Router, ToolError, tool};
use serde::{Deserialize, Serialize};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Serialize, Deserialize)]
pub(crate) struct Add {
    pub(crate) a: i64,
    pub(crate) b: i64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Text {
    pub(crate) text: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) count: u32,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Nothing {}

/// The observable state of the handlers.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// Handlers of `hang` that were entered.
    pub(crate) entered: Arc<AtomicUsize>,
    /// Handlers of `hang` that were dropped.
    pub(crate) dropped: Arc<AtomicUsize>,
    /// Handlers of `meet` that have arrived.
    pub(crate) arrived: Arc<AtomicUsize>,
}

struct OnDrop(Arc<AtomicUsize>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn router(seen: &Seen) -> Router {
    let (hang, meet) = (seen.clone(), seen.arrived.clone());
    Router::new("calc", "1.0")
        .tool_async(tool("add").describe("adds two integers"), |_cx, add: Add| async move { Ok(add.a + add.b) })
        .tool_async(tool("echo").describe("says it again"), |_cx, say: Text| async move { Ok(say.text) })
        .tool_async(tool("count").describe("counts, and reports each step"), |cx, to: Count| async move {
            for n in 1..=to.count {
                // Fails if the client did not request progress.
                let _ = cx.progress(Progress::new(n.into()).total(to.count.into()));
                smol::future::yield_now().await;
            }
            Ok(to.count)
        })
        .tool_async(tool("greet").describe("asks for a name"), |cx, _: Nothing| async move {
            let schema =
                RawJson::parse(r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#);
            let request = ElicitRequest::new("Who are you?", schema.expect("json"));
            match cx.elicit("name", request)? {
                ElicitResult::Accept(form) => {
                    Ok(format!("hello {}", form.required::<String>("name").unwrap_or_default()))
                }
                _ => Ok("hello stranger".to_string()),
            }
        })
        .tool_async(tool("roots").describe("asks for the roots"), |cx, _: Nothing| async move {
            match cx.ask(vec![("roots".into(), InputRequest::Roots)])?.as_slice() {
                [InputAnswer::Roots(roots)] => Ok(roots.to_json().as_str().to_string()),
                other => Err(format!("{other:?}").into()),
            }
        })
        .tool_async(tool("hang").describe("never ends"), move |_cx, _: Nothing| {
            hang.entered.fetch_add(1, Ordering::SeqCst);
            let dropped = OnDrop(hang.dropped.clone());
            async move {
                let _dropped = dropped;
                pending::<Result<String, ToolError>>().await
            }
        })
        .tool_async(tool("meet").describe("ends when this many are here"), move |_cx, all: Count| {
            let meet = meet.clone();
            async move {
                meet.fetch_add(1, Ordering::SeqCst);
                while meet.load(Ordering::SeqCst) < all.count as usize {
                    smol::future::yield_now().await;
                }
                Ok("met".to_string())
            }
        })
        .tool_async(tool("panic").describe("panics"), |_cx, _: Nothing| async move {
            smol::future::yield_now().await;
            std::panic::resume_unwind(Box::new("on purpose"));
            #[expect(unreachable_code, reason = "says what it would return")]
            Ok(String::new())
        })
        .tool_async(tool("panic at once").describe("panics before there is a future"), |_cx, _: Nothing| {
            std::panic::resume_unwind(Box::new("on purpose"));
            #[expect(unreachable_code, reason = "says what it would return")]
            async {
                Ok(String::new())
            }
        })
}

pub(crate) fn name(name: &str) -> Object {
    Object::new().with("name", name)
}
