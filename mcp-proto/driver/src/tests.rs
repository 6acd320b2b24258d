//! Callbacks of a server with a real engine: each request and each admission gets exactly one
//! answer, whatever becomes of its callback.

use super::sync::{Mutex, lock};
use super::*;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, pending, ready};
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use mcp_proto::error::Refusal;
use mcp_proto::exchange::{Action, ConnectionId, IoEvent, Peer};
use mcp_proto::input::{Admission, Change, ServerCommand};
use mcp_proto::model::Progress;
use mcp_proto::route::{Handler, Router, tool};
use mcp_proto::server::{Event, ServerCommands};
use mcp_proto::time::Instant;
use mcp_proto::wired::{Kind, WiredServer};
use mcp_proto::{Cx, ToolError};
use std::task::Wake;

const NOW: Instant = Instant::ZERO;

/// A server with one connection, and its callbacks.
struct Bench {
    server: Arc<Mutex<(WiredServer, RunningCallbacks)>>,
    link: ServerLink,
    router: SharedRouter,
    options: ServerOptions,
    connection: ConnectionId,
}

impl Bench {
    fn new(router: Router) -> Self {
        Self::with(router, ServerOptions::new(), Peer::default())
    }

    fn with(router: Router, options: ServerOptions, peer: Peer) -> Self {
        let mut config = router.config();
        options.configure(&mut config);
        let config = Arc::new(config);
        let router = SharedRouter::new(router, Arc::clone(&config));
        let mut server = WiredServer::new(config, [1; 32], NOW);
        let connection = server.accept(NOW, Kind::Lines, peer);
        let server = Arc::new(Mutex::new((server, RunningCallbacks::default())));
        let shared = Arc::clone(&server);
        let link: ServerLink = Arc::new(move |command| {
            let mut guard = lock(&shared);
            let (server, running) = &mut *guard;
            running.answered(&command);
            server.act(NOW, command).map(drop).map_err(|refused| refused.why)
        });
        Self { server, link, router, options, connection }
    }

    fn read(&self, line: &str) {
        let line = format!("{line}\n");
        lock(&self.server).0.handle_io(NOW, self.connection, IoEvent::Read(line.into()));
    }

    /// Calls a tool, and returns the work.
    fn call(&self, id: u32, tool: &str) -> Work {
        self.read(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","_meta":{{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        ));
        let mut work = self.turn().1;
        assert_eq!(work.len(), 1);
        work.remove(0)
    }

    fn cancel(&self, id: u32) {
        self.read(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#));
        assert!(self.turn().0.is_empty());
    }

    fn job(&self, work: Work) -> Option<Job> {
        work.route(&self.router, &self.options)
    }

    fn lines(&self) -> Vec<String> {
        self.turn().0
    }

    /// Carries out the actions of the engine, and returns the written lines and the work.
    fn turn(&self) -> (Vec<String>, Vec<Work>) {
        let (mut lines, mut work, mut cancelled) = (Vec::new(), Vec::new(), Vec::new());
        let mut guard = lock(&self.server);
        let (server, running) = &mut *guard;
        while let Some(action) = server.poll_output() {
            match action {
                Action::Write(_, bytes) => lines.push(String::from_utf8(bytes.to_vec()).expect("text")),
                Action::Event(Event::Request(responder, incoming)) => {
                    work.push(running.begin(&self.link, responder, incoming));
                }
                Action::Event(Event::Admit(token, head)) => work.push(running.admit(&self.link, token, head)),
                Action::Event(Event::Cancelled(key)) => cancelled.push(running.cancel(key)),
                Action::Event(Event::AdmitWithdrawn(key)) => cancelled.push(running.withdraw(key)),
                _ => {}
            }
        }
        drop(guard);
        cancelled.into_iter().for_each(Cancellation::wake);
        (lines, work)
    }

    fn at_rest(&self) -> bool {
        let guard = lock(&self.server);
        guard.1.is_empty() && guard.0.running() == 0
    }
}

/// Counts its wakes.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Counts how often it is dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(job: &mut AsyncJob, waker: &Waker) -> Poll<JobResult> {
    Pin::new(job).poll(&mut Context::from_waker(waker))
}

fn sync(job: Option<Job>) -> SyncJob {
    match job {
        Some(Job::Sync(job)) => job,
        other => panic!("{other:?}"),
    }
}

fn future(job: Option<Job>) -> AsyncJob {
    match job {
        Some(Job::Async(job)) => job,
        other => panic!("{other:?}"),
    }
}

/// Runs a callback that does not wait.
fn finish(job: Job) {
    match job {
        Job::Sync(job) => job.run(),
        Job::Async(mut job) => assert!(poll(&mut job, Waker::noop()).is_ready()),
    }
}

#[track_caller]
fn one(lines: Vec<String>, part: &str) {
    assert!(matches!(&lines[..], [line] if line.contains(part)), "{part:?} in {lines:?}");
}

fn explode<T>() -> T {
    std::panic::resume_unwind(Box::new("on purpose"))
}

// covers: B-149, B-281
#[test]
fn every_handler_answers_once() {
    let router = Router::new("t", "1")
        .tool(tool("sync"), |_cx, ()| Ok("one"))
        .inline(|router| router.tool(tool("inline"), |_cx, ()| Ok("two")))
        .tool_async(tool("async"), |_cx, ()| async { Ok("three") })
        .tool(tool("panics"), |_cx, ()| explode::<Result<(), ToolError>>())
        .inline(|router| router.tool(tool("panics inline"), |_cx, ()| explode::<Result<(), ToolError>>()))
        .tool_async(tool("panics late"), |_cx, ()| async { Ok(explode::<&str>()) })
        .add(tool("panics early"), Handler::future(|_cx| explode::<core::future::Ready<_>>()));
    let bench = Bench::new(router);
    let answered = |id, name: &str| match bench.job(bench.call(id, name)) {
        Some(job) => {
            let inline = bench.lines();
            assert!(inline.is_empty(), "{inline:?}");
            finish(job);
            bench.lines()
        }
        None => bench.lines(),
    };
    one(answered(1, "sync"), r#""text":"one""#);
    one(answered(2, "inline"), r#""text":"two""#);
    one(answered(3, "async"), r#""text":"three""#);
    for (id, name) in [(4, "panics"), (5, "panics inline"), (6, "panics late"), (7, "panics early")] {
        one(answered(id, name), r#""code":-32603,"message":"the handler panicked""#);
    }
    assert!(bench.at_rest());
}

// covers: B-149
#[test]
fn dropped_handler_answers_with_an_error() {
    let router = Router::new("t", "1")
        .tool(tool("sync"), |_cx, ()| Ok("one"))
        .tool_async(tool("async"), |_cx, ()| pending::<Result<(), ToolError>>());
    let bench = Bench::new(router);
    let dropped = || one(bench.lines(), r#""message":"the handler was dropped""#);
    drop(bench.call(1, "sync"));
    dropped();
    drop(bench.job(bench.call(2, "sync")));
    dropped();
    drop(bench.job(bench.call(3, "async")));
    dropped();
    let mut job = future(bench.job(bench.call(4, "async")));
    assert!(poll(&mut job, Waker::noop()).is_pending());
    drop(job);
    dropped();
    assert!(bench.at_rest());
}

/// Panics when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        explode()
    }
}

// covers: B-149
#[test]
fn panic_in_the_drop_of_a_handler_is_caught() {
    let router = Router::new("t", "1").tool_async(tool("grenade"), |_cx, ()| {
        let grenade = Grenade;
        async move {
            let _grenade = grenade;
            pending::<Result<(), ToolError>>().await
        }
    });
    let bench = Bench::new(router);
    let mut job = future(bench.job(bench.call(1, "grenade")));
    assert!(poll(&mut job, Waker::noop()).is_pending());
    drop(job);
    one(bench.lines(), r#""message":"the handler was dropped""#);
    let mut job = future(bench.job(bench.call(2, "grenade")));
    assert!(poll(&mut job, Waker::noop()).is_pending());
    bench.cancel(2);
    assert!(poll(&mut job, Waker::noop()).is_ready() && bench.at_rest());
}

// covers: B-063
#[test]
fn cancelled_request_stops_its_handler_and_gets_no_answer() {
    let (begun, dropped) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (counts, drops) = (Arc::clone(&begun), Arc::clone(&dropped));
    let router = Router::new("t", "1")
        .tool(tool("sync"), move |_cx, ()| Ok(counts.fetch_add(1, Ordering::SeqCst).to_string()))
        .tool_async(tool("async"), move |cx: Cx, ()| {
            let guard = Dropped(Arc::clone(&drops));
            async move {
                let _guard = guard;
                assert!(!cx.is_cancelled());
                pending::<Result<(), ToolError>>().await
            }
        });
    let bench = Bench::new(router);
    // Before it runs.
    let job = bench.job(bench.call(1, "sync")).expect("a job");
    assert!(!job.is_cancelled());
    bench.cancel(1);
    assert!(job.is_cancelled() && !bench.at_rest(), "it is still there");
    sync(Some(job)).run();
    assert_eq!(begun.load(Ordering::SeqCst), 0);
    // While it runs.
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    let mut job = future(bench.job(bench.call(2, "async")));
    assert!(poll(&mut job, &waker).is_pending() && poll(&mut job, &waker).is_pending());
    bench.cancel(2);
    assert_eq!((woken.0.load(Ordering::SeqCst), lock(&bench.server).1.abandoned()), (1, 1));
    let Poll::Ready(finished) = poll(&mut job, &waker) else { panic!("it stops") };
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    drop(finished);
    assert!(bench.lines().is_empty() && bench.at_rest());
    assert_eq!(lock(&bench.server).1.abandoned(), 0);
}

#[test]
fn notifications_precede_the_answer_and_end_at_cancellation() {
    let kept = Arc::new(Mutex::new(None));
    let keeps = Arc::clone(&kept);
    let router = Router::new("t", "1")
        .tool(tool("one"), |cx, ()| {
            assert_eq!(cx.progress(Progress::new(1.0)), Ok(()));
            cx.publish(Change::Tools);
            Ok("done")
        })
        .tool_async(tool("two"), move |cx: Cx, ()| {
            *lock(&keeps) = Some(cx);
            pending::<Result<(), ToolError>>()
        });
    let bench = Bench::new(router);
    sync(bench.job(bench.call(1, "one"))).run();
    let lines = bench.lines();
    assert!(lines[0].contains("notifications/progress") && lines[1].contains("done"), "{lines:?}");
    let job = future(bench.job(bench.call(2, "two")));
    bench.cancel(2);
    let cx = lock(&kept).take().expect("it was called");
    assert_eq!((cx.is_cancelled(), cx.progress(Progress::new(1.0))), (true, Err(Refusal::Gone)));
    drop(job);
    assert!(bench.lines().is_empty() && bench.at_rest());
}

#[test]
fn end_of_a_server_cancels_also_what_begins_later() {
    let bench = Bench::new(Router::new("t", "1").tool(tool("t"), |_cx, ()| Ok("late")));
    let early = bench.job(bench.call(1, "t")).expect("a job");
    let all: Vec<_> = lock(&bench.server).1.cancel_all().collect();
    all.into_iter().for_each(Cancellation::wake);
    let late = bench.job(bench.call(2, "t")).expect("a job");
    assert!(early.is_cancelled() && late.is_cancelled());
    drop((early, late));
    assert!(bench.at_rest());
}

fn accepted() -> Peer {
    Peer::unix(None)
}

// covers: S3-45
#[test]
fn admission_is_decided_once_by_any_callback() {
    let admits = || Admission::Accept(Some("ada".into()));
    let callbacks: [(ServerOptions, bool); 5] = [
        (ServerOptions::new().on_admit(move |head, _| if head.is_none() { admits() } else { explode() }), true),
        (ServerOptions::new().on_admit_async(move |_, _| ready(admits())), true),
        (ServerOptions::new().on_admit(|_, _| Admission::Forbidden(None)), false),
        (ServerOptions::new().on_admit(|_, _| explode()), false),
        (ServerOptions::new().on_admit_async(|_, _| explode::<core::future::Ready<_>>()), false),
    ];
    for (options, admitted) in callbacks {
        let bench = Bench::with(Router::new("t", "1"), options, accepted());
        let work = bench.turn().1.remove(0);
        if let Some(job) = bench.job(work) {
            assert_eq!(job.kind(), JobKind::Admission);
            finish(job);
        }
        assert!(bench.at_rest());
        bench.read(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}"#,
        );
        assert_eq!(bench.lines().len(), usize::from(admitted));
    }
}

#[test]
fn withdrawn_admission_drops_its_callback() {
    let dropped = Arc::<AtomicUsize>::default();
    let drops = Arc::clone(&dropped);
    let options = ServerOptions::new().on_admit_async(move |_, _| {
        let guard = Dropped(Arc::clone(&drops));
        async move {
            let _guard = guard;
            pending().await
        }
    });
    let bench = Bench::with(Router::new("t", "1"), options, accepted());
    let mut job = future(bench.job(bench.turn().1.remove(0)));
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    assert!(poll(&mut job, &waker).is_pending());
    lock(&bench.server).0.handle_timeout(NOW + Duration::from_secs(60));
    bench.turn();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert!(poll(&mut job, &waker).is_ready() && bench.at_rest());
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[test]
fn mailbox_keeps_the_order_and_refuses_only_notifications() {
    let (mailbox, woken) = (Mailbox::default(), Arc::<Woken>::default());
    let (link, waker) = (mailbox.link(), Waker::from(Arc::clone(&woken)));
    assert!(mailbox.poll(&waker).is_none());
    let router = Router::new("t", "1").tool(tool("t"), |cx, ()| {
        let refused = (0..2 * Mailbox::MAX_NOTES).filter(|n| {
            let progress = cx.progress(Progress::new(*n as f64));
            progress == Err(Refusal::Full)
        });
        Ok(refused.count() as u64)
    });
    let mut bench = Bench::new(router);
    bench.link = link;
    let server = Arc::clone(&bench.server);
    sync(bench.job(bench.call(1, "t"))).run();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    let commands: Vec<_> = core::iter::from_fn(|| mailbox.poll(&waker)).collect();
    assert_eq!(commands.len(), Mailbox::MAX_NOTES + 1);
    assert!(matches!(commands.last(), Some(ServerCommand::Respond(_))));
    for command in commands {
        let mut guard = lock(&server);
        guard.1.answered(&command);
        // The engine refuses what the connection does not take in time.
        let _ = guard.0.act(NOW, command);
    }
    let lines = bench.lines();
    assert!(lines.last().is_some_and(|line| line.contains(&Mailbox::MAX_NOTES.to_string())), "{lines:?}");
    assert!(bench.at_rest());
}
