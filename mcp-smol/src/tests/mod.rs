//! The client, its driver and the server under a model checker: random schedules of all threads and
//! tasks, over pipes that hold a few bytes. In every schedule each call ends, closing returns, and
//! no wake-up is lost (the checker reports that as a deadlock). Run with `RUSTFLAGS='--cfg shuttle'
//! cargo test -p mcp-smol --lib`. `MODEL_RUNS` sets the number of schedules for each scenario.

#[cfg(feature = "tls")]
mod securing;
mod supervised;
pub(crate) mod time;

use crate::spawned::SharedDriver;
use crate::sync::{Mutex, lock};
use crate::{
    Client, ClientOptions, Driver, Policy, Router, Server, ServerOptions, ToolError, connect_driven, serve, tool, tools,
};
use mcp_driver::model;
use mcp_proto::CallError;
use mcp_proto::client::Termination;
use mcp_proto::exchange::Peer;
use shuttle::Runner;
use shuttle::future::{block_on, yield_now};
use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread;
use smol::future::Future;
use smol::io::{AsyncRead, AsyncWrite};
use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Checks a scenario under this many schedules, unless the environment sets another number: half of
/// them at random, half with few preemptions.
fn check(runs: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let runs = std::env::var("MODEL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(runs);
    let scenario = Arc::new(scenario);
    let again = scenario.clone();
    let mut config = shuttle::Config::new();
    // The default is too small for an unoptimized engine.
    config.stack_size = 256 << 10;
    // The same schedules in every run, so that findings are reproducible.
    Runner::new(RandomScheduler::new_from_seed(1, runs / 2), config.clone()).run(move || {
        model::begin();
        scenario();
    });
    Runner::new(PctScheduler::new_from_seed(2, 3, runs / 2), config).run(move || {
        model::begin();
        again();
    });
    eprintln!("{} schedules", runs / 2 * 2);
}

/// One direction of a connection.
struct Pipe {
    bytes: VecDeque<u8>,
    room: usize,
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

type End = Arc<Mutex<Pipe>>;
struct ReadEnd(End);
struct WriteEnd(End);

fn pipe(room: usize) -> (ReadEnd, WriteEnd) {
    let pipe = Pipe { bytes: VecDeque::new(), room, closed: false, reader: None, writer: None };
    let pipe = Arc::new(Mutex::new(pipe));
    (ReadEnd(pipe.clone()), WriteEnd(pipe))
}

fn end(pipe: &End) {
    let mut pipe = lock(pipe);
    pipe.closed = true;
    let woken = [pipe.reader.take(), pipe.writer.take()];
    drop(pipe);
    woken.into_iter().flatten().for_each(Waker::wake);
}

impl AsyncRead for ReadEnd {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut pipe = lock(&self.0);
        if pipe.bytes.is_empty() && !pipe.closed {
            let _before = pipe.reader.replace(cx.waker().clone());
            drop(pipe);
            return Poll::Pending;
        }
        let n = buffer.len().min(pipe.bytes.len());
        pipe.bytes.drain(..n).zip(buffer).for_each(|(byte, to)| *to = byte);
        let woken = pipe.writer.take();
        drop(pipe);
        woken.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(n))
    }
}

impl AsyncWrite for WriteEnd {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut pipe = lock(&self.0);
        if pipe.closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let n = bytes.len().min(pipe.room - pipe.bytes.len());
        if n == 0 {
            let _before = pipe.writer.replace(cx.waker().clone());
            drop(pipe);
            return Poll::Pending;
        }
        pipe.bytes.extend(&bytes[..n]);
        let woken = pipe.reader.take();
        drop(pipe);
        woken.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(n))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        end(&self.0);
        Poll::Ready(Ok(()))
    }
}

impl Drop for ReadEnd {
    fn drop(&mut self) {
        end(&self.0);
    }
}

impl Drop for WriteEnd {
    fn drop(&mut self) {
        end(&self.0);
    }
}

/// The progress of a scenario, in steps that several tasks may wait for.
#[derive(Clone, Default)]
struct Flag(Arc<Mutex<Reached>>);

#[derive(Default)]
struct Reached {
    step: Step,
    waiting: Vec<Waker>,
}

#[derive(Clone, Copy, Default, PartialEq, PartialOrd)]
enum Step {
    #[default]
    Nothing,
    Entered,
    Set,
}

impl Flag {
    fn reach(&self, step: Step) {
        let mut reached = lock(&self.0);
        if reached.step < step {
            reached.step = step;
        }
        let woken = std::mem::take(&mut reached.waiting);
        drop(reached);
        woken.into_iter().for_each(Waker::wake);
    }

    async fn wait(&self, step: Step) {
        poll_fn(|cx| {
            let mut reached = lock(&self.0);
            if reached.step >= step {
                return Poll::Ready(());
            }
            reached.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

#[derive(serde::Deserialize)]
struct Nothing {}

/// `add` returns 3, `hang` never ends, `wait` ends when the flag is set.
fn router(flag: &Flag) -> Router {
    let flag = flag.clone();
    Router::new("model", "1")
        .tool_async(tool("add"), |_cx, _: Nothing| async {
            yield_now().await;
            Ok(3)
        })
        .tool_async(tool("hang"), |_cx, _: Nothing| pending::<Result<String, ToolError>>())
        .tool_async(tool("wait"), move |_cx, _: Nothing| {
            let flag = flag.clone();
            async move {
                flag.reach(Step::Entered);
                flag.wait(Step::Set).await;
                Ok("set")
            }
        })
}

fn config() -> ClientOptions {
    ClientOptions::new().set(|config| config.policy = Policy::Modern)
}

/// Creates a client, its driver, and the server at the other end of two pipes.
fn pair(
    room: usize,
    config: ClientOptions,
    flag: &Flag,
) -> (Client, Driver, impl Future<Output = io::Result<()>> + use<>) {
    let ((their_reader, our_writer), (our_reader, their_writer)) = (pipe(room), pipe(room));
    let (client, driver) = connect_driven((our_reader, our_writer), config).expect("a target");
    (client, driver, serve(router(flag), their_reader, their_writer))
}

/// The same, with the driver and the server running as tasks. Both end.
fn running(room: usize, config: ClientOptions, flag: &Flag) -> (Client, impl FnOnce() + use<>) {
    let (client, driver, serving) = pair(room, config, flag);
    let (driver, serving) = (shuttle::future::spawn(driver), shuttle::future::spawn(serving));
    let ended = || {
        block_on(driver).expect("no panic");
        block_on(serving).expect("no panic").expect("served");
    };
    (client, ended)
}

/// Runs `body` while time passes.
fn in_time<T>(body: impl FnOnce() -> T) -> T {
    let done = Arc::new(Mutex::new(false));
    let over = done.clone();
    let time = thread::spawn(move || {
        while !*lock(&over) {
            time::pass();
            thread::yield_now();
        }
    });
    let result = body();
    *lock(&done) = true;
    time.join().expect("no panic");
    result
}

/// Calls `add` on this thread.
fn add(client: &Client) -> Result<(), CallError> {
    let sum = block_on(client.call(tools::call("add")))?;
    assert_eq!(sum.first_text(), Some("3"));
    Ok(())
}

fn threads(count: usize, body: impl Fn(usize) + Send + Sync + 'static) -> Vec<thread::JoinHandle<()>> {
    let body = Arc::new(body);
    (0..count)
        .map(|n| {
            let body = body.clone();
            thread::spawn(move || body(n))
        })
        .collect()
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

/// Returns a future that ends after this many polls.
fn after_polls(polls: usize) -> impl Future<Output = ()> {
    let mut left = polls;
    poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

fn any(below: usize) -> usize {
    shuttle::rand::thread_rng().gen_range(0..below)
}

// covers: B-081
#[test]
fn calls_from_three_threads_end() {
    check(2000, || {
        let (client, ended) = running(256, config(), &Flag::default());
        let theirs = client.clone();
        join(threads(3, move |_| (0..2).for_each(|_| add(&theirs).expect("an answer"))));
        assert_eq!(block_on(client.close()), Termination::Requested);
        ended();
    });
}

// covers: B-131
#[test]
fn pipes_of_one_byte_carry_everything() {
    check(250, || {
        let (client, ended) = running(1, config(), &Flag::default());
        let theirs = client.clone();
        join(threads(2, move |_| add(&theirs).expect("an answer")));
        assert_eq!(block_on(client.close()), Termination::Requested);
        ended();
    });
}

// covers: S0-29
#[test]
fn call_dropped_at_any_point_does_not_affect_others() {
    check(2000, || {
        let (client, ended) = running(256, config(), &Flag::default());
        let theirs = client.clone();
        let threads = threads(3, move |n| {
            let tool = ["hang", "add", "wait"][n];
            // The schedule decides whether the call or the polls end first.
            block_on(smol::future::or(async { drop(theirs.call(tools::call(tool)).await) }, after_polls(any(4))));
            add(&theirs).expect("an answer");
        });
        join(threads);
        assert_eq!(block_on(client.close()), Termination::Requested);
        ended();
    });
}

// covers: B-277
#[test]
fn closing_ends_every_call_in_any_state() {
    check(2000, || {
        let (client, ended) = running(256, config(), &Flag::default());
        let theirs = client.clone();
        let threads = threads(4, move |n| match n {
            0 => drop(block_on(theirs.call(tools::call("hang"))).expect_err("never ends")),
            1 => drop(add(&theirs)),
            2 => drop(block_on(theirs.ready())),
            _ => drop(block_on(theirs.close())),
        });
        // Closing waits for a server whose handler never ends, up to a limit.
        in_time(|| {
            block_on(client.close());
            join(threads);
            ended();
        });
    });
}

// covers: B-277
#[test]
fn dropping_the_last_handle_ends_the_driver() {
    check(2000, || {
        let (client, ended) = running(256, config(), &Flag::default());
        let theirs = client.clone();
        let threads = threads(2, move |n| match n {
            0 => add(&theirs).expect("an answer"),
            _ => drop(theirs.start(tools::call("hang"))),
        });
        drop(client);
        join(threads);
        ended();
    });
}

// covers: B-141
#[test]
fn dropping_the_driver_at_any_point_ends_the_calls() {
    check(2000, || {
        let (client, driver, serving) = pair(256, config(), &Flag::default());
        let serving = shuttle::future::spawn(serving);
        let driving = thread::spawn(move || block_on(smol::future::or(driver, after_polls(any(30)))));
        let theirs = client.clone();
        let threads = threads(3, move |n| match n {
            0 => drop(block_on(theirs.call(tools::call("hang"))).expect_err("never ends")),
            1 => drop(add(&theirs)),
            _ => drop(block_on(theirs.ready())),
        });
        in_time(|| {
            join(threads);
            block_on(client.close());
            driving.join().expect("no panic");
            block_on(serving).expect("no panic").expect("served");
        });
    });
}

// covers: B-141
#[test]
fn dropping_the_server_at_any_point_ends_the_calls() {
    check(2000, || {
        let (client, driver, serving) = pair(256, config(), &Flag::default());
        let driver = shuttle::future::spawn(driver);
        let serving = thread::spawn(move || {
            block_on(smol::future::or(async { drop(serving.await) }, after_polls(any(30))));
        });
        let theirs = client.clone();
        join(threads(2, move |n| match n {
            0 => drop(block_on(theirs.call(tools::call("hang"))).expect_err("never ends")),
            _ => drop(add(&theirs)),
        }));
        block_on(client.close());
        block_on(driver).expect("no panic");
        serving.join().expect("no panic");
    });
}

/// Creates a client whose last handle takes its driver back, like [`connect`](crate::connect).
fn owning(config: ClientOptions) -> (Client, impl FnOnce()) {
    let (client, driver, serving) = pair(256, config, &Flag::default());
    let (driver, limit) = (SharedDriver::new(driver), client.end_time());
    let at_drop = driver.clone();
    client.set_on_drop(move || at_drop.finish(limit));
    let serving = shuttle::future::spawn(serving);
    let driver = shuttle::future::spawn(driver);
    let ended = || {
        block_on(driver).expect("no panic");
        block_on(serving).expect("no panic").expect("served");
    };
    (client, ended)
}

// covers: B-133
#[test]
fn last_handle_takes_the_driver_back_from_its_task() {
    check(2000, || {
        let (client, ended) = owning(config());
        let theirs = client.clone();
        let threads = threads(2, move |_| drop(add(&theirs)));
        block_on(client.ready()).expect("ready");
        drop(client);
        join(threads);
        ended();
    });
}

// covers: B-277
#[test]
fn last_handle_may_be_dropped_by_a_callback() {
    check(2000, || {
        let slot = Arc::new(Mutex::new(None::<Client>));
        let (here, there) = (slot.clone(), Flag::default());
        let set = there.clone();
        let config = config().on_event(move |_| {
            let client = lock(&here).take();
            drop(client);
            set.reach(Step::Set);
        });
        let (client, ended) = owning(config);
        *lock(&slot) = Some(client.clone());
        let calls = thread::spawn(move || {
            drop(add(&client));
        });
        block_on(there.wait(Step::Set));
        calls.join().expect("no panic");
        let client = lock(&slot).take();
        drop(client);
        ended();
    });
}

// covers: B-277
#[test]
fn handler_woken_by_another_thread_continues() {
    check(2000, || {
        let flag = Flag::default();
        let (client, ended) = running(256, config(), &flag);
        let theirs = client.clone();
        let threads = threads(3, move |n| match n {
            0 => {
                block_on(flag.wait(Step::Entered));
                flag.reach(Step::Set);
            }
            1 => assert_eq!(block_on(theirs.call(tools::call("wait"))).expect("an answer").first_text(), Some("set")),
            _ => drop(theirs.start(tools::call("wait"))),
        });
        join(threads);
        block_on(client.close());
        ended();
    });
}

/// Connects a client to a server. Also returns the client's driver and the future that serves it.
fn connected(server: &Server) -> (Client, Driver, impl Future<Output = ()> + Send + use<>) {
    let ((their_reader, our_writer), (our_reader, their_writer)) = (pipe(256), pipe(256));
    let (client, driver) = connect_driven((our_reader, our_writer), config()).expect("a target");
    (client, driver, server.serve((their_reader, their_writer), Peer::default()))
}

fn server() -> Server {
    Server::new(router(&Flag::default()), ServerOptions::new()).expect("a seed")
}

/// Runs two clients of one server. The caller decides how the server ends.
fn two_connections(stop: impl Fn(Server) + Send + Sync + 'static) {
    check(2000, move || {
        let server = server();
        let running = || {
            let (client, driver, serving) = connected(&server);
            (client, shuttle::future::spawn(driver), shuttle::future::spawn(serving))
        };
        let (first, second) = (running(), running());
        let clients = [first.0.clone(), second.0.clone()];
        let calls = threads(3, move |n| match n {
            0 => drop(add(&clients[0])),
            1 => drop(add(&clients[1])),
            _ => drop(block_on(clients[1].call(tools::call("hang"))).expect_err("never ends")),
        });
        stop(server);
        join(calls);
        for (client, driver, serving) in [first, second] {
            block_on(serving).expect("no panic");
            drop(client);
            block_on(driver).expect("no panic");
        }
    });
}

// covers: B-143
#[test]
fn dropped_server_ends_every_connection() {
    two_connections(drop);
}

// covers: B-143
#[test]
fn stopped_server_ends_every_connection() {
    two_connections(|server| {
        block_on(server.stop(Duration::ZERO));
        let stats = server.stats();
        assert_eq!((stats.channels, stats.running), (0, 0));
    });
}

// covers: B-141, B-149
#[test]
fn connection_dropped_at_any_point_does_not_affect_the_other() {
    check(1000, || {
        let server = server();
        let running = |end: Pin<Box<dyn Future<Output = ()> + Send>>| {
            let (client, driver, serving) = connected(&server);
            (client, shuttle::future::spawn(driver), shuttle::future::spawn(smol::future::or(serving, end)))
        };
        let (dropped, stays) = (running(Box::pin(after_polls(any(20)))), running(Box::pin(pending())));
        let clients = [dropped.0.clone(), stays.0.clone()];
        let calls = threads(3, move |n| match n {
            0 => drop(add(&clients[0])),
            1 => drop(block_on(clients[0].call(tools::call("hang"))).expect_err("never ends")),
            _ => add(&clients[1]).expect("an answer"),
        });
        join(calls);
        block_on(dropped.2).expect("no panic");
        assert_eq!(block_on(stays.0.close()), Termination::Requested);
        for (client, driver) in [(dropped.0, dropped.1), (stays.0, stays.1)] {
            drop(client);
            block_on(driver).expect("no panic");
        }
        block_on(stays.2).expect("no panic");
        assert_eq!(server.stats().running, 0);
    });
}
