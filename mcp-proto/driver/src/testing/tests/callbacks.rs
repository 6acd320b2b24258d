//! Handlers and callbacks: panics, cancellations, questions, admissions.

use super::{all_configs, link, offering, over_http, text};
use crate::testing::{Link, LinkOptions, Time};
use crate::{ClientOptions, ServerOptions};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{pending, poll_fn};
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Poll;
use core::time::Duration;
use mcp_proto::client::{ClientCommands, Event};
use mcp_proto::exchange::ConnectionNotice;
use mcp_proto::input::{Admission, Change};
use mcp_proto::server::ServerCommands;
use mcp_proto::{
    Authorization, CallError, ClientConfig, Cx, ElicitResult, Form, Headers, InputAnswer, Instant, Object, Router,
    tool, tools,
};
use std::sync::Mutex;

#[test]
fn panicking_handler_answers_with_an_error() {
    let later = |_cx, ()| async { if true { panic!("on purpose") } else { Ok(()) } };
    let router = || {
        offering()
            .tool(tool("sync"), |_cx, ()| if true { panic!("on purpose") } else { Ok(()) })
            .inline(|router| router.tool(tool("inline"), |_cx, ()| if true { panic!("on purpose") } else { Ok(()) }))
            .tool_async(tool("async"), later)
            .tool(tool("hello"), |_cx, ()| Ok("hello"))
    };
    for config in all_configs() {
        let mut link = Link::new(router(), config);
        for tool in ["sync", "inline", "async"] {
            let call = link.call(tools::call(tool)).expect("it is accepted");
            let outcome = link.outcome(&call).expect("it has ended");
            assert!(matches!(&outcome, Err(CallError::Rpc(error)) if error.code == -32603), "{tool}: {outcome:?}");
        }
        let call = link.call(tools::call("hello")).expect("it is accepted");
        assert_eq!(link.outcome(&call).map(text), Some(Ok("hello".into())));
    }
}

/// Counts up when it is dropped.
struct Dropped(Arc<AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn cancelled_handler_is_dropped() {
    for config in all_configs() {
        let drops = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&drops);
        let router = offering().tool_async(tool("never"), move |_cx, ()| {
            let dropped = Dropped(Arc::clone(&counter));
            async move {
                pending::<()>().await;
                drop(dropped);
                Ok(())
            }
        });
        let mut link = Link::new(router, config);
        let call = link.call(tools::call("never")).expect("it is accepted");
        assert_eq!((drops.load(Ordering::Relaxed), link.server().running()), (0, 1));
        link.with_client(|client, now| client.cancel(now, call.id(), None));
        assert_eq!((drops.load(Ordering::Relaxed), link.server().running()), (1, 0), "{}", link.log());
        assert_eq!(link.outcome(&call), Some(Err(CallError::Cancelled { reason: None })));
    }
}

#[test]
fn handler_that_was_cancelled_during_its_delay_never_begins() {
    let runs = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&runs);
    let count = move |_cx: &Cx, ()| Ok(counter.fetch_add(1, Ordering::Relaxed));
    let router = offering().inline(|router| router.tool(tool("count"), count));
    let mut link = Link::new(router, ClientConfig::given());
    link.delay_handlers(Duration::from_secs(1));
    let [cancelled, kept] = [(); 2].map(|()| link.call(tools::call("count")).expect("it is accepted"));
    link.with_client(|client, now| client.cancel(now, cancelled.id(), None));
    assert!(link.wait(&kept).is_ok());
    link.advance(Duration::from_secs(10));
    let begins = link.log().lines().filter(|line| line.ends_with("tools/call count begins")).count();
    assert_eq!((runs.load(Ordering::Relaxed), begins), (1, 1), "{}", link.log());
}

#[test]
fn delays_end_in_the_order_of_their_deadlines() {
    let (time, order) = (Time::new(), Arc::new(Mutex::new(Vec::new())));
    let (clock, ends) = (time.clone(), Arc::clone(&order));
    let race = move |_cx, ()| {
        let (clock, ends) = (clock.clone(), Arc::clone(&ends));
        // The first delay is dropped while it is pending.
        let mut lost = Some(clock.after(Duration::from_secs(1)));
        let waits = [3, 2, 2].map(|seconds| clock.after(Duration::from_secs(seconds)));
        async move {
            let mut waits: Vec<_> = waits.into_iter().enumerate().collect();
            poll_fn(|cx| {
                if let Some(lost) = &mut lost {
                    assert!(core::pin::pin!(lost).poll(cx).is_pending());
                }
                lost = None;
                waits.retain_mut(|(number, wait)| {
                    let pending = core::pin::pin!(wait).poll(cx).is_pending();
                    if !pending {
                        ends.lock().expect("it is not poisoned").push((*number, clock.now()));
                    }
                    pending
                });
                if waits.is_empty() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            Ok("done")
        }
    };
    let router = offering().tool_async(tool("race"), race);
    let mut link = Link::with(router, ClientConfig::given(), LinkOptions::new().time(&time));
    let call = link.call(tools::call("race")).expect("it is accepted");
    assert_eq!(link.poll_timeout(), Some(Instant::from_millis(2000)), "the dropped delay has no deadline");
    assert_eq!(text(link.wait(&call)).as_deref(), Ok("done"));
    let at = Instant::from_millis;
    assert_eq!(*order.lock().expect("it is not poisoned"), [(1, at(2000)), (2, at(2000)), (0, at(3000))]);
}

#[test]
#[should_panic(expected = "wakes itself without end")]
fn future_that_always_wakes_itself_is_found() {
    let busy = |_cx, ()| async {
        poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        })
        .await;
        Ok(())
    };
    let mut link = Link::new(offering().tool_async(tool("busy"), busy), ClientConfig::given());
    drop(link.call(tools::call("busy")));
}

/// Returns a router whose tool asks the user for a name.
fn asking() -> Router {
    offering().tool(tool("greet"), |cx, ()| match cx.elicit("name", Form::new("Your name?").text("name"))? {
        ElicitResult::Accept(content) => Ok(content.required::<String>("name")?),
        _ => Err("no name".into()),
    })
}

#[test]
fn callback_of_the_client_answers_in_virtual_time() {
    for config in all_configs() {
        let time = Time::new();
        let clock = time.clone();
        let client = ClientOptions::new().on_elicit(move |request| {
            let thought = clock.after(Duration::from_secs(100));
            async move {
                thought.await;
                ElicitResult::accept(&request.fill(Object::new().with("name", "Ada")))
            }
        });
        let mut link = Link::with(asking(), config, LinkOptions::new().time(&time).client(client));
        let call = link.call(tools::call("greet")).expect("it is accepted");
        assert_eq!(text(link.wait(&call)).as_deref(), Ok("Ada"), "the clock of the call stops: {}", link.log());
        assert_eq!(link.now(), Instant::from_millis(100_000));
    }
}

#[test]
fn question_without_a_callback_is_an_event() {
    for config in all_configs() {
        let mut link = Link::new(asking(), config.with_elicitation());
        let call = link.call(tools::call("greet")).expect("it is accepted");
        let question = link.events().into_iter().find_map(|event| match event {
            Event::InputNeeded { token, .. } => Some(token),
            _ => None,
        });
        let answer = ElicitResult::Accept(Object::new().with("name", "Ada"));
        let token = question.expect("there is a question");
        link.with_client(|client, now| client.answer(now, token, InputAnswer::Elicitation(answer)));
        assert_eq!(link.outcome(&call).map(text), Some(Ok("Ada".into())), "{}", link.log());
    }
}

#[test]
fn callbacks_of_both_sides_agree_on_credentials() {
    let server =
        ServerOptions::new().on_admit(|head, _peer| match head.and_then(|head| head.headers.get("Authorization")) {
            Some("Bearer good") => Admission::Accept(Some("ada".into())),
            _ => Admission::Unauthorized("Bearer".into()),
        });
    let get = |_challenge| Authorization::Headers(Headers::new().with("Authorization", "Bearer good"));
    let client = ClientOptions::new().on_authorize(get);
    let principal = |cx: &Cx, ()| Ok(cx.context().principal.as_ref().ok_or("none")?.as_str().to_owned());
    let router = offering().tool(tool("who"), principal);
    let mut link = Link::with(router, over_http(), LinkOptions::new().client(client).server(server));
    let call = link.call(tools::call("who")).expect("it is accepted");
    assert_eq!(link.outcome(&call).map(text), Some(Ok("ada".into())), "{}", link.log());
    assert!(link.log().lines().any(|line| line.contains("401")), "{}", link.log());
}

#[test]
fn callback_of_a_withdrawn_question_is_dropped() {
    let drops = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&drops);
    let client = ClientOptions::new().on_elicit(move |_| {
        let dropped = Dropped(Arc::clone(&counter));
        async move {
            pending::<()>().await;
            drop(dropped);
            ElicitResult::Cancel
        }
    });
    let mut link = Link::with(asking(), ClientConfig::given(), LinkOptions::new().client(client));
    let call = link.call(tools::call("greet")).expect("it is accepted");
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    link.with_client(|client, now| client.cancel(now, call.id(), None));
    assert_eq!(drops.load(Ordering::Relaxed), 1, "{}", link.log());
}

#[test]
fn callback_of_a_withdrawn_admission_is_dropped() {
    let drops = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&drops);
    let server = ServerOptions::new().on_admit_async(move |_, _| {
        let dropped = Dropped(Arc::clone(&counter));
        async move {
            pending::<()>().await;
            drop(dropped);
            Admission::Accept(None)
        }
    });
    let mut link = Link::with(asking(), over_http(), LinkOptions::new().server(server));
    link.settle();
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    // `admit_timeout` is 10 s.
    link.advance(Duration::from_secs(10) - super::NANOSECOND);
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    link.advance(super::NANOSECOND);
    assert_eq!(drops.load(Ordering::Relaxed), 1, "{}", link.log());
}

#[test]
fn event_callbacks_receive_the_events_of_their_side() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let [events, notices, served] = [(); 3].map(|()| Arc::clone(&seen));
    let client = ClientOptions::new()
        .on_event(move |event| events.lock().expect("it is not poisoned").push(alloc::format!("{event:?}")))
        .on_notice(move |_, notice| {
            if matches!(notice, ConnectionNotice::Closed(_)) {
                notices.lock().expect("it is not poisoned").push("closed".into());
            }
        })
        .set(|config| config.watch.tools = true);
    let server = ServerOptions::new()
        .on_event(move |event| served.lock().expect("it is not poisoned").push(alloc::format!("{event:?}")));
    let router = offering().tools_change().tool(tool("hello"), |_cx, ()| Ok("hello"));
    let mut link = Link::with(router, ClientConfig::given(), LinkOptions::new().client(client).server(server));
    let call = link.call(tools::call("hello")).expect("it is accepted");
    assert!(link.wait(&call).is_ok());
    link.with_server(|server, now| server.publish(now, Change::Tools));
    link.with_client(|client, now| client.notify(now, "acme/note", Object::new())).expect("it is sent");
    link.with_client(|client, now| client.close(now));
    let seen = seen.lock().expect("it is not poisoned");
    for text in ["Ready(", "Changed(Tools)", "Notification {", "closed", "Terminated(Requested)"] {
        assert_eq!(seen.iter().filter(|line| line.starts_with(text)).count(), 1, "{text}: {seen:?}");
    }
    assert!(link.server_events().is_empty());
    assert!(matches!(*link.events(), [Event::Ended { .. }]));
}

#[test]
fn link_without_events_is_idle() {
    let mut link = link(ClientConfig::given());
    link.settle();
    assert_eq!((link.poll_timeout(), link.client().stats().calls), (None, 0));
}
