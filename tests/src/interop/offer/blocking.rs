//! The server with threads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use mcp_blocking::{ElicitRequest, ElicitResult, Json, Object, Progress, Router, ToolError, serve_stdio};

use super::{
    Add, Count, Echo, LOOK, LOOKS, Name, Nothing, Sum, add, configure, count, echo, listed, question, said, whereabouts,
};

pub(super) fn serve(legacy: bool) -> io::Result<()> {
    let ended = Arc::new(AtomicUsize::new(0));
    let cancelled = Arc::clone(&ended);
    let router = Router::new("interop", env!("CARGO_PKG_VERSION"))
        .configure(|config| configure(config, legacy))
        .tool(add(), |_cx, add: Add| add.a.checked_add(add.b).map(|sum| Json(Sum { sum })).ok_or("too large"))
        .tool(echo(), |_cx, echo: Echo| echo.text)
        .tool(count(), |cx, count: Count| {
            for step in 1..=count.steps {
                let step = Progress::new(f64::from(step)).total(f64::from(count.steps));
                cx.progress(step).map_err(|why| why.to_string())?;
                sleep(Duration::from_millis(count.pause));
            }
            Ok::<_, ToolError>(format!("counted to {}", count.steps))
        })
        .tool("greet", |cx, _: Nothing| {
            match cx.elicit("name", ElicitRequest::form("What is your name?").text("name"))? {
                answer @ ElicitResult::Accept(_) => {
                    let name = answer.content::<Name>()?.map(|form| form.name).unwrap_or_default();
                    Ok::<_, ToolError>(format!("hello {name}"))
                }
                ElicitResult::Decline => Ok("no name: decline".to_owned()),
                ElicitResult::Cancel => Ok("no name: cancel".to_owned()),
            }
        })
        .tool("sample", |cx, _: Nothing| said(&cx.ask(question())?))
        .tool("roots", |cx, _: Nothing| listed(&cx.ask(whereabouts())?))
        .tool("fail", |_cx, _: Nothing| Err::<String, _>("this tool always fails"))
        .tool("wait", move |cx, _: Nothing| {
            while !cx.is_cancelled() {
                sleep(LOOK);
            }
            ended.fetch_add(1, Ordering::Relaxed);
        })
        .tool("cancelled", move |_cx, _: Nothing| {
            for _ in 0..LOOKS {
                if cancelled.load(Ordering::Relaxed) > 0 {
                    break;
                }
                sleep(LOOK);
            }
            format!("{} cancelled", cancelled.load(Ordering::Relaxed))
        })
        .tool("print", |_cx, _: Nothing| {
            println!("this is no message");
            "printed"
        })
        .tool("note", |cx, _: Nothing| {
            cx.notify("notifications/interop", Object::new().with("n", 1_i64)).map_err(|why| why.to_string())?;
            Ok::<_, ToolError>("noted")
        });
    serve_stdio(router)
}
