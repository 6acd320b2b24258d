//! The server with smol.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_smol::{
    Change, ElicitRequest, ElicitResult, Json, Object, Progress, Router, ServerOptions, Service, ToolError, serve_stdio,
};
use smol::Timer;

use super::{
    AWAY, Add, Count, Echo, LOOK, LOOKS, Name, Nothing, Offer, Poll, Read, Sum, add, count, echo, hang_up, listed,
    listening, poll, prompts, question, resource, resources, said, tell, templates, whereabouts,
};

/// Counts a future that is dropped before its end.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(super) fn serve(offer: &Offer) -> io::Result<()> {
    smol::block_on(serve_stdio(router(offer)))
}

pub(super) fn serve_http(offer: &Offer, port: u16) -> io::Result<()> {
    let service = Service::from((router(offer), ServerOptions::new().on_event(|event| tell(&event))));
    smol::block_on(async {
        let server = mcp_smol::serve_http(service, (Ipv4Addr::LOCALHOST, port)).await?;
        listening(server.local_addr().expect("an address"));
        server.wait().await;
        Ok(())
    })
}

fn router(offer: &Offer) -> Router {
    let ended = Arc::new(AtomicUsize::new(0));
    let cancelled = Arc::clone(&ended);
    Router::new("interop", env!("CARGO_PKG_VERSION"))
        .configure(|config| offer.configure(config))
        .tool_async(add(), |_cx, add: Add| async move {
            Ok(Json(Sum { sum: add.a.checked_add(add.b).ok_or("too large")? }))
        })
        .tool_async(echo(), |_cx, echo: Echo| async move { Ok(echo.text) })
        .tool_async(count(), |cx, count: Count| async move {
            for step in 1..=count.steps {
                let step = Progress::new(f64::from(step)).total(f64::from(count.steps));
                cx.progress(step).map_err(|why| why.to_string())?;
                Timer::after(Duration::from_millis(count.pause)).await;
            }
            Ok(format!("counted to {}", count.steps))
        })
        .tool_async("greet", |cx, _: Nothing| async move {
            match cx.elicit("name", ElicitRequest::form("What is your name?").text("name"))? {
                answer @ ElicitResult::Accept(_) => {
                    let name = answer.content::<Name>()?.map(|form| form.name).unwrap_or_default();
                    Ok(format!("hello {name}"))
                }
                ElicitResult::Decline => Ok("no name: decline".to_owned()),
                ElicitResult::Cancel => Ok("no name: cancel".to_owned()),
            }
        })
        .tool_async("sample", |cx, _: Nothing| async move { said(&cx.ask(question())?) })
        .tool_async("roots", |cx, _: Nothing| async move { listed(&cx.ask(whereabouts())?) })
        .tool_async(
            "fail",
            |_cx, _: Nothing| async move { Err::<String, _>(ToolError::from("this tool always fails")) },
        )
        .tool_async("wait", move |_cx, _: Nothing| {
            let dropped = Dropped(Arc::clone(&ended));
            async move {
                let _dropped = dropped;
                std::future::pending::<Result<(), ToolError>>().await
            }
        })
        .tool_async("cancelled", move |_cx, _: Nothing| {
            let cancelled = Arc::clone(&cancelled);
            async move {
                for _ in 0..LOOKS {
                    if cancelled.load(Ordering::Relaxed) > 0 {
                        break;
                    }
                    Timer::after(LOOK).await;
                }
                Ok(format!("{} cancelled", cancelled.load(Ordering::Relaxed)))
            }
        })
        .tool_async("print", |_cx, _: Nothing| async move {
            println!("this is no message");
            Ok("printed")
        })
        .tool_async("note", |cx, _: Nothing| async move {
            cx.notify("notifications/interop", Object::new().with("n", 1_i64)).map_err(|why| why.to_string())?;
            Ok("noted")
        })
        .method_async("resources/list", |_cx, _: Nothing| async move { Ok(Json(resources())) })
        .method_async("resources/templates/list", |_cx, _: Nothing| async move { Ok(Json(templates())) })
        .method_async("resources/read", |_cx, read: Read| async move { Ok(Json(resource(&read))) })
        .method_async("prompts/list", |_cx, _: Nothing| async move { Ok(Json(prompts())) })
        .tools_change()
        .tool_async("change", |cx, _: Nothing| async move {
            cx.publish(Change::Tools);
            Ok("changed")
        })
        .tool_async(poll(), |cx, poll: Poll| async move {
            let mut closed = 0;
            for step in 1..=poll.times {
                cx.progress(Progress::new(f64::from(step))).map_err(|why| why.to_string())?;
                closed += u32::from(hang_up(&cx)?);
                if step < poll.times {
                    Timer::after(AWAY).await;
                }
            }
            Ok(format!("closed {closed} times"))
        })
}
