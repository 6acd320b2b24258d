//! What is watched and logged, through both engines and their bytes: every revision, every
//! transport.

use super::{LinkOptions, Time, all_configs, offering, over_http, standard_configs};
use crate::testing::{Flow, Link};
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;
use mcp_proto::client::{ClientCommands, Event};
use mcp_proto::input::{Change, Watch};
use mcp_proto::model::logging::LogMessage;
use mcp_proto::server::ServerCommands;
use mcp_proto::{
    Call, CallToolResult, ClientConfig, ErrorObject, LogLevel, ProtocolVersion, Router, Versions, tool, tools,
};

/// A server that announces everything. Its tool `log` logs at every level.
fn announcing() -> Router {
    let router = offering().tools_change().prompts_change().resources_change().watchable().logging();
    router.tool(tool("log"), |cx, ()| {
        for level in LogLevel::ALL {
            // What the client does not want is refused.
            cx.log(level, "part", &level.as_str()).ok();
        }
        Ok("done")
    })
}

/// A client of every revision over every transport.
fn every_client() -> impl Iterator<Item = (ProtocolVersion, ClientConfig)> {
    ProtocolVersion::ALL.into_iter().flat_map(|version| {
        [ClientConfig::given(), over_http()].map(|mut config| {
            config.versions = Versions::new([version]);
            (version, config)
        })
    })
}

fn changed(link: &mut Link) -> Vec<Change> {
    let change = |event| if let Event::Changed(change) = event { Some(change) } else { None };
    link.events().into_iter().filter_map(change).collect()
}

fn logged(link: &mut Link) -> Vec<(bool, LogMessage)> {
    let log = |event| if let Event::Log { call, message } = event { Some((call.is_some(), message)) } else { None };
    link.events().into_iter().filter_map(log).collect()
}

fn publish(link: &mut Link, change: Change) {
    link.with_server(|server, now| server.publish(now, change));
}

fn resource(uri: &str) -> Change {
    Change::Resource(uri.into())
}

// covers: SUB-S-015, SUB-S-016, RSUB-S-002, RSUB-S-003, X-18, RES-S-008
#[test]
fn watched_changes_arrive_in_every_revision() {
    for (version, config) in every_client() {
        let mut link = Link::new(announcing(), config);
        let wanted = Watch::new().with_tools().with_prompts().with_resources().with_uri("file:///dir");
        link.with_client(|client, now| client.watch(now, wanted.clone())).expect("it is accepted");
        link.advance(Duration::from_secs(2));
        let events = link.events();
        let reported = events.iter().filter(|event| **event == Event::Watching(wanted.clone())).count();
        assert_eq!(reported, 1, "{version:?}: {events:?}\n{}", link.log());
        let all =
            [Change::Tools, Change::Prompts, Change::Resources, resource("file:///dir"), resource("file:///dir/a")];
        for change in all {
            publish(&mut link, change.clone());
            assert_eq!(changed(&mut link), [change], "{version:?}\n{}", link.log());
        }
        publish(&mut link, resource("file:///other"));
        assert_eq!(changed(&mut link), [], "{version:?}");
        // Another set: what it lacks is announced no more, as far as the revision can be told so.
        link.with_client(|client, now| client.watch(now, Watch::new().with_uri("file:///other"))).expect("accepted");
        link.advance(Duration::from_secs(2));
        link.events();
        for uri in ["file:///dir", "file:///other"] {
            publish(&mut link, resource(uri));
        }
        assert_eq!(changed(&mut link), [resource("file:///other")], "{version:?}");
        link.with_client(|client, now| client.watch(now, Watch::new())).expect("accepted");
        link.advance(Duration::from_secs(2));
        publish(&mut link, resource("file:///other"));
        assert_eq!(changed(&mut link), [], "{version:?}");
    }
}

// covers: SUB-C-010, SUB-C-011, RSUB-C-001
#[test]
fn no_change_is_lost_while_the_set_changes() {
    for mut config in all_configs() {
        config.watch = Watch::new().with_uri("a:0");
        let mut link = Link::new(announcing(), config);
        link.set_latency(Duration::from_millis(50));
        link.advance(Duration::from_secs(5));
        link.events();
        for n in 0..20 {
            let watch = Watch::new().with_uri("a:0").with_uri(format!("a:{n}"));
            link.with_client(|client, now| client.watch(now, watch)).expect("accepted");
            for _ in 0..10 {
                publish(&mut link, resource("a:0"));
                link.advance(Duration::from_millis(17));
                assert!(changed(&mut link).len() <= 4, "{}", link.log());
            }
        }
        link.advance(Duration::from_secs(1));
        link.events();
        publish(&mut link, resource("a:0"));
        link.advance(Duration::from_secs(1));
        assert_eq!(changed(&mut link), [resource("a:0")], "{}", link.log());
    }
}

// covers: RSUB-C-001, SUB-C-013, SUB-C-014, B-225
#[test]
fn gap_is_reported_once_and_what_is_watched_is_renewed() {
    for version in ["2025-11-25", "2026-07-28"] {
        let mut config = over_http();
        config.versions = Versions::new([ProtocolVersion::parse(version).expect("a revision")]);
        config.watch = Watch::new().with_prompts().with_uri("a:1");
        let mut link = Link::new(announcing(), config);
        link.advance(Duration::from_secs(5));
        link.events();
        for _ in 0..3 {
            link.cut();
            publish(&mut link, Change::Prompts);
            publish(&mut link, resource("a:1"));
            link.advance(Duration::from_secs(60));
            let mut missed = changed(&mut link);
            missed.dedup();
            let is_both = |missed: &[Change]| missed.contains(&Change::Prompts) && missed.contains(&resource("a:1"));
            assert!(is_both(&missed) && missed.len() == 2, "{version} {missed:?}\n{}", link.log());
            publish(&mut link, resource("a:1/part"));
            publish(&mut link, Change::Prompts);
            assert_eq!(changed(&mut link).len(), 2, "{version}\n{}", link.log());
        }
    }
}

// covers: LOG-S-001, LOG-S-003, LOG-S-004, LOG-S-006, LOG-S-007, LOG-C-002, X-17
#[test]
fn log_messages_arrive_as_they_were_requested() {
    for (version, config) in every_client() {
        let is_modern = version == ProtocolVersion::V2026_07_28;
        let is_http = matches!(config.target, mcp_proto::client::Target::Http(_));
        let mut link = Link::new(announcing(), config);
        let steps = [(None, !is_modern), (Some(LogLevel::Warning), true), (Some(LogLevel::Debug), true), (None, false)];
        for (level, is_any) in steps {
            link.with_client(|client, now| client.log_level(now, level));
            link.advance(Duration::from_secs(2));
            let call = link.call(tools::call("log")).expect("it is accepted");
            assert!(link.wait(&call).is_ok());
            let levels: Vec<LogLevel> =
                LogLevel::ALL.into_iter().filter(|of| is_any && level.is_none_or(|least| *of >= least)).collect();
            let logged = logged(&mut link);
            let got: Vec<LogLevel> = logged.iter().map(|(_, message)| message.level).collect();
            assert_eq!(got, levels, "{version:?} {level:?}\n{}", link.log());
            for (names_its_call, message) in logged {
                assert_eq!((names_its_call, message.logger.as_deref()), (is_http, Some("part")));
                assert_eq!(message.data, message.level.as_str().into());
            }
        }
        let call: Call<tools::CallTool> = tools::call("log").log_level(LogLevel::Alert);
        let call = link.call(call).expect("it is accepted");
        assert!(link.wait(&call).is_ok());
        assert_eq!(logged(&mut link).len(), if is_modern { 2 } else { 0 }, "{version:?}");
    }
}

// covers: LOG-S-010
#[test]
fn logs_faster_than_the_reader_end_no_call() {
    for config in standard_configs() {
        let time = Time::new();
        let clock = time.clone();
        let router = offering().logging().tool_async(tool("flood"), move |cx, ()| {
            let time = clock.clone();
            async move {
                let text = "x".repeat(1 << 10);
                for _ in 0..4 {
                    for _ in 0..100 {
                        cx.log(LogLevel::Info, None, &text).ok();
                    }
                    time.after(Duration::from_millis(100)).await;
                }
                Ok("done")
            }
        });
        let router = router.configure(|config| config.limits.server.max_unsent = 100 << 10);
        let mut link = Link::with(router, config, LinkOptions::new().time(&time));
        link.with_client(|client, now| client.log_level(now, Some(LogLevel::Info)));
        link.advance(Duration::from_secs(2));
        let call = link.call(tools::call("flood").timeout(None)).expect("it is accepted");
        link.stall(Flow::ToClient);
        link.advance(Duration::from_secs(3));
        link.resume(Flow::ToClient);
        let result: CallToolResult = link.wait(&call).expect("it is answered");
        assert_eq!(result.first_text(), Some("done"));
        let arrived = logged(&mut link).len();
        assert!((10..300).contains(&arrived), "{arrived} of 400");
        let dropped = |event: &mcp_proto::server::Event| match event {
            mcp_proto::server::Event::Diagnostic(d) if d.kind.code() == "dropped-log" => {
                d.detail.split(' ').next()?.parse::<usize>().ok()
            }
            _ => None,
        };
        let dropped: usize = link.server_events().iter().filter_map(dropped).sum();
        let lost: u64 = link.client().stats().lost_notifications;
        assert_eq!(arrived + dropped + lost as usize, 400);
    }
}

// covers: SUB-S-006, RSUB-C-001
#[test]
fn router_decides_which_resources_are_watched() {
    let router = || {
        offering().on_watch(|_context, uri| {
            if uri.starts_with("a:") { Ok(()) } else { Err(ErrorObject::new(-32602, "no such resource")) }
        })
    };
    for mut config in all_configs() {
        config.watch = Watch::new().with_uri("a:1").with_uri("b:1");
        let mut link = Link::new(router(), config);
        link.advance(Duration::from_secs(2));
        let events = link.events();
        let expected = Event::Watching(Watch::new().with_uri("a:1"));
        assert_eq!(events.iter().filter(|event| **event == expected).count(), 1, "{events:?}");
        publish(&mut link, resource("a:1"));
        publish(&mut link, resource("b:1"));
        assert_eq!(changed(&mut link), [resource("a:1")]);
    }
}
