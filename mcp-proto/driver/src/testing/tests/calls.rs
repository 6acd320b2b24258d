//! Calls: their results, and the instants at which they end.

use super::{NANOSECOND, STEP, all_configs, link, offering, over_http, router, text};
use crate::ClientOptions;
use crate::testing::{Link, LinkOptions, Time};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use mcp_proto::client::{Event, Policy};
use mcp_proto::error::WaitReason;
use mcp_proto::exchange::Sent;
use mcp_proto::{CallError, ClientConfig, Form, Instant, tool, tools};

const TIMEOUT: Duration = Duration::from_secs(5);

fn timed_out() -> CallError {
    CallError::Timeout { after: TIMEOUT, sent: Sent::Maybe, awaited: WaitReason::Response }
}

#[test]
fn call_is_answered_on_every_transport_in_both_eras() {
    for config in all_configs() {
        let (mut link, policy) = (link(config.clone()), config.policy);
        let call = link.call(tools::call("hello")).expect("it is accepted");
        assert_eq!(link.outcome(&call).map(text), Some(Ok("hello".into())), "{}", link.log());
        assert_eq!(link.now(), Instant::ZERO);
        let revision = if policy == Policy::Modern { "2026-07-28" } else { "2025-11-25" };
        assert!(link.log().lines().any(|line| line.ends_with(&alloc::format!("ready, revision {revision}"))));
    }
}

#[test]
fn call_times_out_at_its_instant_and_not_before() {
    for config in all_configs() {
        let mut link = link(config);
        link.advance(Duration::from_millis(1234));
        link.delay_handlers(Duration::from_secs(60));
        let call = link.call(tools::call("hello").timeout(TIMEOUT)).expect("it is accepted");
        link.advance(TIMEOUT - NANOSECOND);
        assert_eq!(link.outcome(&call), None, "{}", link.log());
        link.advance(NANOSECOND);
        assert_eq!(link.outcome(&call), Some(Err(timed_out())), "{}", link.log());
    }
}

#[test]
fn wait_ends_at_the_instant_of_the_outcome() {
    for config in all_configs() {
        let mut link = link(config);
        let call = link.call(tools::call("steps").timeout(TIMEOUT)).expect("it is accepted");
        assert_eq!(link.wait(&call), Err(timed_out()));
        assert_eq!(link.now(), Instant::new(TIMEOUT));
        let call = link.call(tools::call("steps")).expect("it is accepted");
        assert_eq!(text(link.wait(&call)).as_deref(), Ok("done"));
        assert_eq!(link.now(), Instant::new(TIMEOUT + STEP * 3));
        assert_eq!(text(link.wait(&call)).as_deref(), Ok("done"), "the outcome stays");
    }
}

#[test]
fn response_at_the_instant_of_the_timeout_is_in_time() {
    for config in all_configs() {
        let mut link = link(config);
        link.delay_handlers(TIMEOUT);
        let call = link.call(tools::call("hello").timeout(TIMEOUT)).expect("it is accepted");
        assert_eq!(text(link.wait(&call)).as_deref(), Ok("hello"), "{}", link.log());
        link.delay_handlers(TIMEOUT + NANOSECOND);
        let call = link.call(tools::call("hello").timeout(TIMEOUT)).expect("it is accepted");
        assert_eq!(link.wait(&call), Err(timed_out()));
    }
}

#[test]
fn progress_restarts_the_timeout() {
    for config in all_configs() {
        let mut link = link(config);
        let call = tools::call("steps").progress().timeout(TIMEOUT);
        let (kept, restarted) = (call.clone(), call.reset_on_progress(true));
        let kept = link.call(kept).expect("it is accepted");
        let restarted = link.call(restarted).expect("it is accepted");
        link.advance(STEP);
        let progress = link.events().into_iter().filter(|event| matches!(event, Event::Progress { .. }));
        assert_eq!(progress.count(), 2);
        link.advance(STEP);
        assert_eq!(link.outcome(&kept), Some(Err(timed_out())));
        assert_eq!(link.outcome(&restarted), None);
        assert_eq!(text(link.wait(&restarted)).as_deref(), Ok("done"), "{}", link.log());
        assert_eq!(link.now(), Instant::new(STEP * 3));
    }
}

#[test]
fn delayed_handlers_begin_at_their_instant() {
    let order = |_cx: &mcp_proto::Cx, ()| Ok("inline");
    let time = Time::new();
    let clock = time.clone();
    let router = router(&time)
        .inline(|router| router.tool(tool("inline"), order))
        .tool(tool("time"), move |_cx, ()| Ok(alloc::format!("{:?}", clock.now())));
    let mut link = Link::with(router, ClientConfig::given(), LinkOptions::new().time(&time));
    link.delay_handlers(Duration::from_secs(7));
    let calls: Vec<_> =
        ["time", "inline"].into_iter().map(|tool| link.call(tools::call(tool)).expect("it is accepted")).collect();
    let list = link.call(tools::list()).expect("it is accepted");
    link.delay_handlers(Duration::ZERO);
    let early = link.call(tools::call("time")).expect("it is accepted");
    assert_eq!(link.outcome(&early).map(text), Some(Ok("0ns".into())));
    link.advance(Duration::from_secs(7) - NANOSECOND);
    assert!(calls.iter().all(|call| link.outcome(call).is_none()) && link.outcome(&list).is_none());
    link.advance(NANOSECOND);
    let texts: Vec<_> = calls.iter().map(|call| link.outcome(call).map(text)).collect();
    assert_eq!(texts, [Some(Ok(String::from("7s"))), Some(Ok("inline".into()))]);
    assert!(link.outcome(&list).is_some_and(|page| page.is_ok_and(|page| page.elements.len() == 4)));
}

#[test]
fn time_stops_at_the_given_instant() {
    let mut link = link(over_http());
    link.run_until(Instant::from_millis(250));
    link.run_until(Instant::from_millis(100));
    link.advance(Duration::ZERO);
    assert_eq!(link.now(), Instant::from_millis(250));
    assert!(link.poll_timeout().is_some_and(|next| next > link.now()));
}

#[test]
#[should_panic(expected = "call 1 is pending, and nothing more happens (1 futures of callbacks wait)")]
fn wait_panics_if_nothing_more_happens() {
    let never = |_cx, ()| core::future::pending::<Result<(), _>>();
    let router = offering().tool_async(tool("never"), never);
    let mut link = Link::new(router, ClientConfig::given());
    let call = link.call(tools::call("never").timeout(None)).expect("it is accepted");
    drop(link.wait(&call));
}

#[test]
#[should_panic(expected = "call 1 is pending after a day")]
fn wait_panics_if_only_keep_alives_happen() {
    let never = |_cx, ()| core::future::pending::<Result<(), _>>();
    let router = offering().tool_async(tool("never"), never);
    let mut config = ClientConfig::given();
    config.ping = Some(Duration::from_secs(60));
    let mut link = Link::new(router, config);
    let call = link.call(tools::call("never").timeout(None)).expect("it is accepted");
    drop(link.wait(&call));
}

#[test]
fn timeout_names_a_handler_that_waits_outside_of_the_link() {
    for config in all_configs() {
        let (time, clock) = (Time::new(), Time::new());
        let boil = clock.clone();
        let router = offering()
            .tool_async(tool("real"), |_cx, ()| core::future::pending::<Result<(), _>>())
            .tool_async(tool("boil"), move |_cx, ()| {
                let boiled = boil.after(Duration::from_secs(300));
                async move {
                    boiled.await;
                    Ok(())
                }
            });
        // One link whose time the handler has, and one whose time it has not.
        for (time, named) in [(&clock, false), (&time, true)] {
            let mut link = Link::with(router.clone(), config.clone(), LinkOptions::new().time(time));
            let real = link.call(tools::call("real").timeout(TIMEOUT)).expect("it is accepted");
            let boil = link.call(tools::call("boil").timeout(TIMEOUT)).expect("it is accepted");
            let text = link.wait(&real).unwrap_err().to_string();
            let waits = "waits for something outside of its driver";
            assert_eq!(text, format!("no response within 5000 ms: the handler of tools/call real {waits}"));
            assert!(link.log().to_string().contains(&text), "{}", link.log());
            let text = link.wait(&boil).unwrap_err().to_string();
            assert_eq!(text.contains(&format!("the handler of tools/call boil {waits}")), named, "{text}");
        }
        // A handler that is late is not.
        let mut link = Link::new(router, config);
        link.delay_handlers(Duration::from_secs(60));
        let late = link.call(tools::call("real").timeout(TIMEOUT)).expect("it is accepted");
        assert_eq!(link.wait(&late), Err(timed_out()));
    }
}

#[test]
fn timeout_names_a_callback_that_waits_outside_of_the_link() {
    let router = offering().tool(tool("greet"), |cx, ()| {
        let form = Form::new("Your name?").text("name");
        cx.elicit("name", form).map(drop)
    });
    let client = ClientOptions::new().on_elicit(|_form| core::future::pending());
    let mut link = Link::with(router, ClientConfig::given(), LinkOptions::new().client(client));
    let call = link.call(tools::call("greet").timeout(None).max_total(TIMEOUT)).expect("it is accepted");
    let text = link.wait(&call).unwrap_err().to_string();
    assert!(text.contains("a callback of the client waits for something"), "{text}");
}
