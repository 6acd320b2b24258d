//! The server with threads.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use mcp_blocking::{
    Change, ElicitRequest, ElicitResult, Json, Object, Progress, Router, ServerOptions, ToolError, serve_stdio,
};

use super::{
    AWAY, Add, Count, Echo, LOOK, LOOKS, Name, Nothing, Offer, Poll, Read, Sum, add, count, echo, hang_up, listed,
    listening, poll, prompts, question, resource, resources, said, tell, templates, whereabouts,
};

pub(super) fn serve(offer: &Offer) -> io::Result<()> {
    serve_stdio(router(offer))
}

pub(super) fn serve_http(offer: &Offer, port: u16) -> io::Result<()> {
    let options = ServerOptions::new().on_event(|event| tell(&event));
    let server = mcp_blocking::serve_http((router(offer), options), (Ipv4Addr::LOCALHOST, port))?;
    listening(server.local_addr().expect("an address"));
    server.wait();
    Ok(())
}

fn router(offer: &Offer) -> Router {
    let ended = Arc::new(AtomicUsize::new(0));
    let cancelled = Arc::clone(&ended);
    Router::new("interop", env!("CARGO_PKG_VERSION"))
        .configure(|config| offer.configure(config))
        .tool(add(), |_cx, add: Add| Ok(Json(Sum { sum: add.a.checked_add(add.b).ok_or("too large")? })))
        .tool(echo(), |_cx, echo: Echo| Ok(echo.text))
        .tool(count(), |cx, count: Count| {
            for step in 1..=count.steps {
                let step = Progress::new(f64::from(step)).total(f64::from(count.steps));
                cx.progress(step).map_err(|why| why.to_string())?;
                sleep(Duration::from_millis(count.pause));
            }
            Ok(format!("counted to {}", count.steps))
        })
        .tool("greet", |cx, _: Nothing| {
            match cx.elicit("name", ElicitRequest::form("What is your name?").text("name"))? {
                answer @ ElicitResult::Accept(_) => {
                    let name = answer.content::<Name>()?.map(|form| form.name).unwrap_or_default();
                    Ok(format!("hello {name}"))
                }
                ElicitResult::Decline => Ok("no name: decline".to_owned()),
                ElicitResult::Cancel => Ok("no name: cancel".to_owned()),
            }
        })
        .tool("sample", |cx, _: Nothing| said(&cx.ask(question())?))
        .tool("roots", |cx, _: Nothing| listed(&cx.ask(whereabouts())?))
        .tool("fail", |_cx, _: Nothing| Err::<(), _>(ToolError::from("this tool always fails")))
        .tool("wait", move |cx, _: Nothing| {
            while !cx.is_cancelled() {
                sleep(LOOK);
            }
            ended.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .tool("cancelled", move |_cx, _: Nothing| {
            for _ in 0..LOOKS {
                if cancelled.load(Ordering::Relaxed) > 0 {
                    break;
                }
                sleep(LOOK);
            }
            Ok(format!("{} cancelled", cancelled.load(Ordering::Relaxed)))
        })
        .tool("print", |_cx, _: Nothing| {
            println!("this is no message");
            Ok("printed")
        })
        .tool("note", |cx, _: Nothing| {
            cx.notify("notifications/interop", Object::new().with("n", 1_i64)).map_err(|why| why.to_string())?;
            Ok("noted")
        })
        .method("resources/list", |_cx, _: Nothing| Ok(Json(resources())))
        .method("resources/templates/list", |_cx, _: Nothing| Ok(Json(templates())))
        .method("resources/read", |_cx, read: Read| Ok(Json(resource(&read))))
        .method("prompts/list", |_cx, _: Nothing| Ok(Json(prompts())))
        .tools_change()
        .tool("change", |cx, _: Nothing| {
            cx.publish(Change::Tools);
            Ok("changed")
        })
        .tool(poll(), |cx, poll: Poll| {
            let mut closed = 0;
            for step in 1..=poll.times {
                cx.progress(Progress::new(f64::from(step))).map_err(|why| why.to_string())?;
                closed += u32::from(hang_up(cx)?);
                if step < poll.times {
                    sleep(AWAY);
                }
            }
            Ok(format!("closed {closed} times"))
        })
}
