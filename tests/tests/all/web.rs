//! HTTP in virtual time: the invariants over simulated runs, and a client against servers of a few
//! lines. `cargo run --release -p mcp-tests -- replay --web --steps N` runs any number of
//! steps.

use crate::sized;
use mcp_proto::client::{Event, Policy};
use mcp_proto::input::CallId;
use mcp_proto::{Call, CallError, ClientConfig, Instant, Method, tools};
use mcp_tests::sim::Report;
use mcp_tests::sim::fault::Chaos;
use mcp_tests::sim::net::Net;
use mcp_tests::sim::rng::Rng;
use mcp_tests::sim::web::wire::Request;
use mcp_tests::sim::web::{self, Scenario, Site, Stub, Turn, Web};
use serde_json::json;
use std::time::Duration;

/// A client of 2025-11-25 and its server, without faults.
fn legacy<S: Site>(site: S) -> Web<S> {
    let mut config = ClientConfig::url("http://localhost/mcp").unwrap();
    config.policy = Policy::Legacy;
    Web::bare(site, Net::new(Chaos::new(Rng::new(1), 0), 1 << 20)).with_client(config)
}

/// The stub `answer`, with 405 for a listener.
fn without_listener(mut answer: impl FnMut(&mut Turn<'_>, &Request)) -> impl Site {
    Stub::new(move |turn: &mut Turn<'_>, request: &Request| {
        if request.method == "GET" && request.header("last-event-id").is_none() {
            turn.respond(405, &[], "")
        } else {
            answer(turn, request)
        }
    })
}

trait Calls {
    fn start<M: Method>(&mut self, call: Call<M>) -> CallId;
    fn outcome(&self, call: CallId) -> Option<(Instant, Result<String, CallError>)>;
    fn resumes(&self) -> Vec<(Instant, String)>;
}

impl<S: Site> Calls for Web<S> {
    fn start<M: Method>(&mut self, call: Call<M>) -> CallId {
        self.call(0, None, None, call).expect("accepted")
    }

    fn outcome(&self, call: CallId) -> Option<(Instant, Result<String, CallError>)> {
        self.events.iter().find_map(|(at, event)| match event {
            Event::Ended { call: of, outcome } if *of == call => {
                Some((*at, outcome.clone().map(|result| result.json.as_str().to_owned())))
            }
            _ => None,
        })
    }

    /// Returns the times of the resumptions of a stream, with their event ids.
    fn resumes(&self) -> Vec<(Instant, String)> {
        let resume = |sent: &web::tap::Sent| Some((sent.at, sent.request.header("last-event-id")?.to_owned()));
        self.clients[0].tap().sent("GET").filter_map(resume).collect()
    }
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The response to a request with this id, as the data of an event.
fn done(id: &serde_json::Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "done"}]}}).to_string()
}

/// The waits between attempts.
fn waits(resumes: &[(Instant, String)]) -> Vec<u128> {
    resumes.windows(2).map(|two| (two[1].0 - two[0].0).as_millis()).collect()
}

// covers: B-019, S1-02, S1-09, S1-13, SHTTP-C-043
#[test]
fn runs_over_http_under_faults_keep_the_invariants() {
    let mut report = Report::default();
    for seed in 1.. {
        if report.steps >= sized(100_000) {
            break;
        }
        Scenario::from_seed(seed).run(&mut report, false);
    }
    let often = [report.calls > sized(2000), report.completed > sized(800), report.resumed > sized(400)];
    assert!(often.iter().all(|often| *often), "{report:?}");
    assert_eq!(
        Scenario::missing(&report, sized(20), sized(5) - 1),
        Vec::<String>::new(),
        "every fault and every pair of state and input occurs"
    );
}

/// In the first two, calls that the pool had sent twice ended with `Sent::No`. In the third, the
/// model took the first attempt after the loss of a listener for the repetition of one that had
/// timed out.
// covers: B-100
#[test]
fn seeds_of_former_http_failures_keep_the_invariants() {
    for seed in [953313684, 960175273, 12605451643678, 173547373281203] {
        Scenario::from_seed(seed).run(&mut Report::default(), false);
    }
}

#[test]
fn scenario_over_http_survives_writing_and_reading() {
    for seed in 0..50 {
        let scenario = Scenario::from_seed(seed);
        assert_eq!(Scenario::parse(&scenario.to_string()), Some(scenario));
    }
    for text in ["nonsense", "web = 1\ncapacity = 0", "web = -1", "seed = 1"] {
        assert_eq!(Scenario::parse(text), None, "{text}");
    }
}

// covers: S1-08, S1-09, B-019
#[test]
fn silent_server_is_asked_twice_and_the_cursor_stays() {
    let mut web = legacy(without_listener(|turn, request| {
        turn.stream();
        if request.method == "POST" {
            turn.event(Some("first"), Some(50), "");
        }
        turn.end();
    }));
    let call = web.start(tools::call("x").timeout(None));
    web.run_until(Instant::from_millis(600_000));
    let resumes = web.resumes();
    assert_eq!(resumes.iter().map(|(_, id)| id.as_str()).collect::<Vec<_>>(), ["first", "first"]);
    let (at, outcome) = web.outcome(call).expect("it ends without a timeout");
    assert!(matches!(outcome, Err(CallError::NoResponse { attempts: 2, .. })), "{outcome:?}");
    assert!(at < Instant::from_millis(1_000), "{at:?}");
}

// covers: B-019, S1-02, S1-13
#[test]
fn server_with_only_new_ids_is_asked_every_five_seconds() {
    let mut n = 0;
    let mut web = legacy(without_listener(move |turn, _| {
        n += 1;
        turn.stream();
        turn.event(Some(&format!("id-{n}")), Some(50), "");
        turn.end();
    }));
    let call = web.start(tools::call("x").timeout(None));
    web.run_until(Instant::from_millis(30_000));
    let resumes = web.resumes();
    assert!((10..=13).contains(&resumes.len()), "{resumes:?}");
    for (n, (_, id)) in resumes.iter().enumerate() {
        assert_eq!(*id, format!("id-{}", n + 1), "the latest id");
    }
    for (n, wait) in waits(&resumes).iter().enumerate() {
        assert!(*wait >= (50 << n).min(5_000), "each wait is twice the one before: {:?}", waits(&resumes));
    }
    // It continues like that until the timeout of the call, and at most every 5 s.
    web.run_until(Instant::from_millis(600_000));
    assert!(web.outcome(call).is_none());
    let later = web.resumes();
    assert!(later.len() <= resumes.len() + 114, "{} attempts in ten minutes", later.len());
    let last = *waits(&later).last().unwrap();
    assert!((5_000..5_700).contains(&last), "{last}");
}

// covers: S1-08
#[test]
fn timeout_of_a_call_bounds_its_polling() {
    let mut web = legacy(without_listener(|turn, _| {
        turn.stream();
        turn.event(Some("a"), Some(100), "");
        turn.event_after(secs(3600), None, "");
    }));
    let call = web.start(tools::call("x").timeout(secs(5)));
    web.run_until(Instant::from_millis(60_000));
    let (at, outcome) = web.outcome(call).unwrap();
    assert!(matches!(outcome, Err(CallError::Timeout { .. })), "{outcome:?}");
    assert_eq!(at, Instant::from_millis(5_000));
    let after = web.clients[0].tap().log.iter().filter(|sent| sent.at > at && sent.request.method == "GET").count();
    assert_eq!(after, 0);
}

// covers: SHTTP-C-018, SHTTP-C-020, S1-01, S1-02
#[test]
fn polled_tool_of_ten_minutes_completes_promptly() {
    let ready = Instant::from_millis(600_000);
    let mut id = json!(null);
    let mut n = 0;
    let mut web = legacy(without_listener(move |turn, request| {
        if request.method == "POST" {
            id = request.json()["id"].clone();
        }
        n += 1;
        turn.stream();
        if turn.net.now >= ready {
            turn.event(Some(&format!("id-{n}")), None, &done(&id));
        } else {
            turn.event(Some(&format!("id-{n}")), Some(5_000), "");
        }
        turn.end();
    }));
    let call = web.start(tools::call("x").timeout(None));
    web.run_until(Instant::from_millis(700_000));
    let (at, outcome) = web.outcome(call).expect("it ends");
    assert!(outcome.unwrap().contains("done"));
    assert!(at - ready <= secs(6), "seen {:?} after it was there", at - ready);
    assert!(web.resumes().len() <= 121, "{} attempts", web.resumes().len());
    assert!(waits(&web.resumes()).iter().all(|wait| *wait >= 5_000), "{:?}", waits(&web.resumes()));
}

// covers: SHTTP-C-020, S1-06, S1-13
#[test]
fn waits_follow_the_server_within_bounds() {
    for (named, least) in
        [(None, 1_000), (Some(0), 10), (Some(1), 10), (Some(10), 10), (Some(700), 700), (Some(u64::MAX), 300_000)]
    {
        let mut first = true;
        let mut web = legacy(without_listener(move |turn, request| {
            turn.stream();
            if std::mem::take(&mut first) {
                turn.event(Some("a"), named, "");
            } else {
                turn.event(None, None, &done(&json!(2)));
            }
            turn.end();
            assert!(request.method == "POST" || !first);
        }));
        let call = web.start(tools::call("x").timeout(None));
        web.run_until(Instant::from_millis(400_000));
        assert!(matches!(web.outcome(call), Some((_, Ok(_)))), "{named:?}: {:?}", web.outcome(call));
        let begun = web.clients[0].tap().sent("POST").last().unwrap().at;
        let waited = (web.resumes()[0].0 - begun).as_millis();
        assert!((least..least * 11 / 10 + 100).contains(&waited), "{named:?}: {waited} ms");
    }
}

// covers: S1-04, B-019
#[test]
fn streams_have_independent_waits() {
    let mut web = legacy(without_listener(|turn, request| {
        let slow = request.json().pointer("/params/name").is_some_and(|name| name == "slow")
            || request.header("last-event-id").is_some_and(|id| id.starts_with("slow"));
        turn.stream();
        if request.method == "POST" && slow {
            turn.event(Some("slow-1"), Some(20_000), "");
        } else if request.method == "POST" {
            turn.event(Some("fast-1"), Some(50), "");
        } else {
            turn.event(None, None, &done(&json!(if slow { 2 } else { 3 })));
        }
        turn.end();
    }));
    let slow = web.start(tools::call("slow"));
    let fast = web.start(tools::call("fast"));
    web.run_until(Instant::from_millis(30_000));
    let (slow_at, slow) = web.outcome(slow).unwrap();
    let (fast_at, fast) = web.outcome(fast).unwrap();
    assert!(slow.is_ok() && fast.is_ok(), "{slow:?} {fast:?}");
    assert!(
        slow_at >= Instant::from_millis(20_000) && fast_at < Instant::from_millis(1_000),
        "{slow_at:?} {fast_at:?}"
    );
}

// covers: S0-51, S0-57, SHTTP-C-043
#[test]
fn listener_cut_every_minute_misses_nothing() {
    // The server sends a message every 7 s, with or without a listener, and cuts the listener every
    // 60 s.
    let said = |now: Instant| (now.since_origin().as_millis() / 7_000) as u64;
    let note = |n: u64| json!({"jsonrpc": "2.0", "method": "acme/said", "params": {"n": n}}).to_string();
    let mut web = legacy(Stub::new(move |turn: &mut Turn<'_>, request: &Request| {
        assert_eq!(request.method, "GET");
        let from = request.header("last-event-id").map_or(0, |id| id.parse::<u64>().unwrap());
        let now = turn.net.now;
        turn.stream();
        if from == 0 {
            turn.event(Some("0"), Some(2_000), "");
        }
        for n in from + 1..=said(now) {
            turn.event(Some(&n.to_string()), None, &note(n));
        }
        for n in said(now) + 1..=said(now + secs(60)) {
            let at = Instant::from_millis(n * 7_000);
            turn.event_after(at - now, Some(&n.to_string()), &note(n));
        }
        turn.cut_after(secs(60));
    }));
    web.run_until(Instant::from_millis(3_600_000));
    let heard = web.events.iter().filter_map(|(_, event)| match event {
        Event::Notification { method, params } if method == "acme/said" => {
            let params: serde_json::Value = serde_json::from_str(params.as_ref()?.as_str()).ok()?;
            params["n"].as_u64()
        }
        _ => None,
    });
    let heard: Vec<u64> = heard.collect();
    let last = *heard.last().expect("something was heard");
    assert_eq!(heard, (1..=last).collect::<Vec<_>>(), "each once, in order");
    assert!(last >= 3_590 / 7, "{last}");
    let lost = web.events.iter().filter(|(_, event)| matches!(event, Event::ListenerLost { .. })).count();
    assert_eq!(lost, 0);
    let resumes = web.resumes();
    assert!((55..=60).contains(&resumes.len()), "{} attempts", resumes.len());
}

// covers: S0-57, B-019
#[test]
fn lost_listener_is_reported_and_calls_continue() {
    let mut first = true;
    let mut web = legacy(Stub::new(move |turn: &mut Turn<'_>, request: &Request| {
        if request.method == "POST" {
            return turn.result(request, &json!({"content": [{"type": "text", "text": "done"}]}));
        }
        if !std::mem::take(&mut first) {
            return turn.respond(503, &[], "");
        }
        turn.stream();
        turn.event(Some("a"), Some(50), "");
        turn.end();
    }));
    web.run_until(Instant::from_millis(20_000));
    let lost = web.events.iter().filter(|(_, event)| matches!(event, Event::ListenerLost { .. })).count();
    assert_eq!(lost, 1, "{:?}", web.events);
    assert_eq!(web.resumes().len(), 2);
    let call = web.start(tools::call("x"));
    web.run_until(Instant::from_millis(21_000));
    assert!(web.outcome(call).unwrap().1.unwrap().contains("done"));
}
