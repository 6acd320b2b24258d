//! The suite of both adapters with `mcp-smol`, and what only this adapter has: futures that are
//! dropped, a driver of the application, and an executor.

// The other adapter compiles the same files.
#[expect(clippy::duplicate_mod)]
#[path = "suite/mod.rs"]
mod suite;

/// The adapter under the names of the suite.
mod adapter {
    use super::suite::BOUND;
    use super::suite::Wait;
    pub(crate) use mcp_smol::*;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// What tells its temporary files from those of the other.
    pub(crate) const NAME: &str = "smol";
    /// Every progress notification reaches the callback.
    pub(crate) const EVERY_PROGRESS: bool = true;
    /// [`stop`] waits for the callbacks that it cancelled.
    pub(crate) const STOP_AWAITS_CALLBACKS: bool = true;

    impl<F: Future> Wait for F {
        type Output = F::Output;

        fn wait(self) -> F::Output {
            let late = async {
                smol::Timer::after(2 * BOUND).await;
                panic!("the test takes too long")
            };
            smol::block_on(smol::future::or(self, late))
        }
    }

    /// Waits for a call. Returns the call itself if it has not ended.
    pub(crate) fn wait_for<M: mcp_proto::call::Method, F: mcp_proto::call::CallListener>(
        mut call: PendingCall<M, F>,
        limit: Duration,
    ) -> Result<Result<M::Output, CallError>, PendingCall<M, F>> {
        let late = async {
            smol::Timer::after(limit).await;
            None
        };
        smol::block_on(smol::future::or(async { Some((&mut call).await) }, late)).ok_or(call)
    }

    pub(crate) fn tools_of(client: &Client) -> Vec<Tool> {
        client.pages(tools::list()).all().wait().expect("pages")
    }

    pub(crate) fn stop(server: &Server, grace: Duration) {
        server.stop(grace).wait();
    }

    pub(crate) fn over(server: &Server) {
        server.wait().wait();
    }

    pub(crate) fn settle(supervisor: &Supervisor) {
        supervisor.settled().wait();
    }

    /// Returns the number of threads that the operating system holds: here none.
    pub(crate) fn stuck_threads(_: usize) -> usize {
        0
    }

    type Socket = smol::net::unix::UnixStream;

    pub(crate) fn stream(socket: UnixStream) -> Socket {
        smol::Async::new(socket).expect("a socket").into()
    }

    /// Returns a reader and a writer.
    pub(crate) fn pair(socket: UnixStream) -> (Socket, Socket) {
        let socket = stream(socket);
        (socket.clone(), socket)
    }

    /// Returns the two ends of a connection: a reader and a writer each.
    pub(crate) fn duplex() -> ((Socket, Socket), (Socket, Socket)) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        (pair(ours), pair(theirs))
    }

    /// Serves a connection of this server to its end.
    pub(crate) fn attend<S: Into<Stream>>(server: &Server, stream: S, peer: Peer, is_http: bool) {
        match is_http {
            true => server.serve_http(stream, peer).wait(),
            false => server.serve(stream, peer).wait(),
        }
    }
}

use smol::future::{or, poll_once, zip};
use std::future::poll_fn;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use suite::raw::{self, answer, dial, read_until, rest, say, sum};
use suite::supervised::Telling;
use suite::*;

/// Ignores the end of its input and SIGTERM, and has a child.
const STUBBORN: &str = "trap '' TERM; sleep 1000 & while :; do read -r line || sleep 1000; done";

/// Creates a client whose driver is a task that can be dropped.
fn driven(target: impl IntoTarget<Given>, options: ClientOptions) -> (Client, smol::Task<()>) {
    let (client, driver) = connect_driven(target, options).expect("a target");
    (client, smol::spawn(driver))
}

/// The same, after the handshake.
fn ready(target: impl IntoTarget<Given>, options: ClientOptions) -> (Client, smol::Task<()>) {
    let (client, driver) = driven(target, options);
    client.ready().wait().expect("ready");
    (client, driver)
}

fn assert_aborted<T: std::fmt::Debug>(ended: Result<T, CallError>) {
    assert!(matches!(ended, Err(CallError::Closed { why: Closed::Aborted, .. })), "{ended:?}");
}

// covers: S0-24, B-145
#[test]
fn client_starts_nothing_before_its_driver_and_sends_nothing() {
    let _limit = limit();
    let file = temp("undriven");
    let (client, driver) =
        connect_driven(sh(&format!("echo started > {}", file.display())), legacy()).expect("a target");
    client.close().wait();
    driver.wait();
    assert!(!file.exists(), "a program was started");
    let (client, driver) = driven(Program::new("/nonexistent/server"), legacy());
    client.ready().wait().expect_err("it is not there");
    assert_eq!(call(&client, "add").expect_err("no answer").sent(), Sent::No);
    driver.wait();
}

// covers: B-135, B-088
#[test]
fn dropping_everything_before_negotiation_leaves_nothing() {
    let _limit = limit();
    let file = temp("handshake");
    let (client, driver) =
        driven(sh(&format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 1000", file.display())), legacy());
    until(|| file.exists());
    let group = take_pid(&file);
    assert!(!members(group).is_empty());
    drop((client, driver.cancel().wait()));
    until(|| members(group).is_empty());
}

// covers: B-133, S0-26
#[test]
fn dropped_driver_kills_the_group_and_ends_calls() {
    let _limit = limit();
    let (client, driver) = ready(server(STUBBORN), legacy());
    let group = group(&client);
    let pending = client.start(tools::call("add"));
    driver.cancel().wait();
    assert_aborted(pending.wait());
    until(|| members(group).is_empty() && is_reaped(group));
    assert!(matches!(call(&client, "add"), Err(CallError::Refused(_))));
    assert_eq!(client.close().wait(), Termination::Requested);
}

/// Records, when it is woken, whether a process group has ended. The waking thread continues only
/// after that.
struct Witness {
    group: u32,
    gone: Mutex<Option<bool>>,
}

impl Wake for Witness {
    fn wake(self: Arc<Self>) {
        let end = Instant::now() + BOUND / 2;
        // If it was killed, the system needs a moment.
        while !members(self.group).is_empty() && Instant::now() < end {
            std::thread::park_timeout(Duration::from_millis(2));
        }
        self.gone.lock().expect("no panic").get_or_insert(members(self.group).is_empty());
    }
}

// covers: B-133, B-141
#[test]
fn dropped_driver_kills_the_program_before_its_calls_end() {
    let _limit = limit();
    let program = server("trap '' TERM; while :; do read -r line || sleep 1000; done");
    let (client, mut driver) = connect_driven(program, legacy()).expect("a target");
    or(async { client.ready().await.expect("ready") }, &mut driver).wait();
    let mut pending = client.start(tools::call("add"));
    let witness = Arc::new(Witness { group: group(&client), gone: Mutex::default() });
    let waker = Waker::from(Arc::clone(&witness));
    assert!(Pin::new(&mut pending).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(driver);
    assert_eq!(*witness.gone.lock().expect("no panic"), Some(true), "who waits saw the program live on");
    assert_aborted(pending.wait());
}

// covers: B-133
#[test]
fn dropped_executor_ends_the_group_and_the_calls() {
    let _limit = limit();
    let executor = smol::Executor::new();
    let (client, driver) = connect_driven(server(STUBBORN), legacy()).expect("a target");
    executor.spawn(driver).detach();
    executor.run(client.ready()).wait().expect("ready");
    let other = client.clone();
    let waiting = std::thread::spawn(move || call(&other, "add"));
    let group = group(&client);
    assert!(!members(group).is_empty());
    drop(executor);
    let ended = waiting.join().expect("no panic").expect_err("no answer");
    assert!(matches!(ended, CallError::Closed { why: Closed::Aborted, .. } | CallError::Refused(_)), "{ended:?}");
    until(|| members(group).is_empty() && is_reaped(group));
    assert_eq!(client.close().wait(), Termination::Requested);
}

// covers: B-133
#[test]
fn panic_in_the_main_future_ends_the_group() {
    let _limit = limit();
    let (told, pid) = mpsc::channel();
    let main = std::thread::spawn(move || {
        let main = async move {
            let client = connect_with(server(STUBBORN), quick(legacy())).await.expect("connected");
            told.send(group(&client)).expect("awaited");
            std::panic::resume_unwind(Box::new("on purpose"));
        };
        main.wait()
    });
    let pid = pid.recv_timeout(BOUND).expect("connected");
    assert!(main.join().is_err());
    assert!(is_reaped(pid), "it was awaited");
    until(|| members(pid).is_empty());
}

// covers: B-129
#[test]
fn function_for_lines_may_close_the_client() {
    let _limit = limit();
    let slot = Arc::new(Mutex::new(None::<Closer>));
    let here = slot.clone();
    let options = legacy().stderr(Stderr::Lines(Arc::new(move |_: &str| {
        if let Some(closer) = here.lock().expect("no panic").take() {
            // This begins the close. The close ends only after the function has returned.
            drop(poll_once(closer.close()).wait());
        }
    })));
    let program = server("read -r line; echo fatal >&2; read -r line");
    let (client, driver) = connect_driven(program, options).expect("a target");
    *slot.lock().expect("no panic") = Some(client.closer());
    let (ended, ()) = zip(client.start(tools::call("add")), driver).wait();
    assert!(matches!(ended, Err(CallError::Closed { .. })), "{ended:?}");
}

// covers: B-149
#[test]
fn dropped_driver_ends_its_notifications_and_handlers() {
    let _limit = limit();
    let (router, seen) = router();
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let (reader, writer) = pair(theirs);
    let serving = smol::spawn(serve(router, reader, writer));
    let (client, driver) = ready(pair(ours), ClientOptions::new());
    let pending = hang(&client, &seen);
    let note = client.notify("custom/told", Object::new()).expect("accepted");
    driver.cancel().wait();
    assert_aborted(pending.wait());
    // It may have been delivered before.
    let ended = note.wait();
    assert!(matches!(ended, Ok(()) | Err(CallError::Closed { .. })), "{ended:?}");
    seen.wait(|counts| counts.cancelled == 1);
    serving.wait().expect("an end in order");
}

/// Starts a call that never ends.
fn hang(client: &Client, seen: &Seen) -> PendingCall<tools::CallTool> {
    let pending = client.start(tools::call("hang"));
    seen.wait(|counts| counts.begun == 1);
    pending
}

#[test]
fn dropping_the_serving_future_ends_the_connection() {
    let _limit = limit();
    let (router, seen) = router();
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let (reader, writer) = pair(theirs);
    let serving = smol::spawn(serve(router, reader, writer));
    let client = connect(pair(ours)).wait().expect("connected");
    let pending = hang(&client, &seen);
    serving.cancel().wait();
    assert!(matches!(pending.wait(), Err(CallError::Closed { .. })));
    assert_eq!(seen.counts().cancelled, 1);
    assert!(matches!(client.close().wait(), Termination::Closed(_) | Termination::Requested));
}

// covers: B-081
#[test]
fn client_and_server_run_on_one_thread_without_an_executor() {
    let _limit = limit();
    let (client, driver) = connect_driven(router().0, ClientOptions::new()).expect("a target");
    let add = tools::call("add").arguments(&Add { a: 1, b: 2 });
    let work = async {
        assert_eq!(client.call(add).await.expect("an answer").first_text(), Some("3"));
        client.close().await
    };
    assert_eq!(zip(work, driver).wait(), (Termination::Requested, ()));
}

#[test]
fn dropped_client_ends_its_driver() {
    let _limit = limit();
    let (client, driver) = connect_driven(server("while read -r line; do :; done"), legacy()).expect("a target");
    drop(client);
    driver.wait();
}

#[test]
fn dropped_fetch_is_aborted_on_the_wire() {
    let _limit = limit();
    let server = raw::listening(router().0, ServerOptions::new());
    let client = connect(format!("http://{}/mcp", server.local_addr().expect("an address"))).wait().expect("connected");
    let web = std::net::TcpListener::bind("127.0.0.1:0").expect("it listens");
    let url = format!("http://{}/page", web.local_addr().expect("an address"));
    let fetch = || client.fetch(FetchRequest::get(HttpTarget::parse(&url).expect("it is a URL")));
    for half in ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1234"] {
        let mut dropped = Box::pin(fetch());
        assert!(poll_once(&mut dropped).wait().is_none());
        let (mut stream, _) = web.accept().expect("a connection");
        read_until(&mut stream, "\r\n\r\n");
        say(&mut stream, half);
        stream.set_read_timeout(Some(BOUND)).expect("a socket");
        drop(dropped);
        let ended = std::io::Read::read(&mut stream, &mut [0; 1]);
        assert!(
            ended.as_ref().map_or_else(|e| e.kind() == std::io::ErrorKind::ConnectionReset, |n| *n == 0),
            "{ended:?}"
        );
    }
    assert_eq!(add(&client).as_deref(), Ok("3"), "the client goes on");
    client.close().wait();
    stop(&server, BOUND);
}

#[test]
fn many_futures_of_handlers_wait_for_each_other() {
    let _limit = limit();
    let arrived = AtomicUsize::new(0);
    let router = Router::new("meet", "1").tool_async(tool("meet"), {
        let arrived = Arc::new(arrived);
        move |_cx, ()| {
            let arrived = Arc::clone(&arrived);
            arrived.fetch_add(1, Ordering::SeqCst);
            async move {
                while arrived.load(Ordering::SeqCst) < 200 {
                    yield_once().await;
                }
                Ok("met")
            }
        }
    });
    let client = connect(router).wait().expect("connected");
    let calls: Vec<_> = (0..200).map(|_| client.start(tools::call("meet"))).collect();
    calls.into_iter().for_each(|call| assert_eq!(call.wait().expect("an answer").first_text(), Some("met")));
}

/// A task that only its wakers keep alive, as in executors without a list of their tasks.
struct Loose(Mutex<Option<smol::future::Boxed<()>>>);

impl Wake for Loose {
    fn wake(self: Arc<Self>) {}
}

/// Polls the future in `slot` once, in a task that also holds `kept`, and drops the task.
fn poll_loosely<P: Future<Output: Send> + Unpin + Send + 'static>(
    slot: &Arc<Mutex<Option<P>>>,
    kept: impl Send + 'static,
) {
    let slot = Arc::clone(slot);
    let work = async move {
        poll_fn(|cx| Pin::new(slot.lock().expect("a lock").as_mut().expect("a future")).poll(cx)).await;
        drop(kept);
    };
    let task = Arc::new(Loose(Mutex::new(Some(Box::pin(work)))));
    let waker = Waker::from(Arc::clone(&task));
    let mut work = task.0.lock().expect("a lock");
    let polled = work.as_mut().expect("a task").as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
}

// covers: B-277
#[test]
fn last_waker_of_a_task_is_dropped_outside_the_lock() {
    let _limit = limit();
    let client = connect(router().0).wait().expect("connected");
    let hang = || client.start(tools::call("hang"));
    // Dropped with the waker: a call, whose drop takes the lock.
    let slot = Arc::new(Mutex::new(Some(hang())));
    poll_loosely(&slot, hang());
    drop(slot.lock().expect("a lock").take());
    // The same when another task polls the call.
    let slot = Arc::new(Mutex::new(Some(hang())));
    poll_loosely(&slot, hang());
    let mut moved = slot.lock().expect("a lock").take().expect("a call");
    assert!(Pin::new(&mut moved).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(moved);
    client.close().wait();
}

// covers: B-141, B-149
#[test]
fn dropping_the_future_of_close_does_not_stop_the_close() {
    let _limit = limit();
    let (router, entered, dropped) = endings::grenades();
    let (client, driver) = driven(router, ClientOptions::new());
    let held = client.start(tools::call("grenade"));
    until(|| entered.load(Ordering::SeqCst) == 1);
    // Polled often enough to request the end, and not often enough to see it.
    drop(poll_once(client.close()).wait());
    driver.wait();
    held.wait().expect_err("no answer");
    until(|| dropped.load(Ordering::SeqCst) == 1);
    assert_eq!(client.close().wait(), Termination::Requested);
}

/// Serves one connection, on which a request runs that never ends.
fn hanging(change: impl FnOnce(&mut ServerConfig)) -> (Server, Arc<Seen>, UnixStream, smol::Task<()>) {
    let (router, seen) = router();
    let server = Server::new(router.configure(change), ServerOptions::new()).expect("a seed");
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let serving = smol::spawn(server.serve_http(stream(theirs), Peer::default()));
    say(&mut ours, &raw::call("hang", "{}", ""));
    seen.wait(|counts| counts.begun == 1);
    (server, seen, ours, serving)
}

// covers: B-141, B-149
#[test]
fn dropping_the_last_server_ends_connections_and_handlers() {
    let _limit = limit();
    let (server, seen, _ours, serving) = hanging(|_| {});
    let other = server.clone();
    drop(server);
    assert_eq!(other.stats().running, 1);
    drop(other);
    serving.wait();
    seen.wait(|counts| counts.cancelled == 1);
}

// covers: CANC-S-003, B-149
#[test]
fn dropped_serving_future_cancels_its_request_and_frees_slot() {
    let _limit = limit();
    let (server, seen, mut ours, serving) = hanging(|config| config.limits.server.max_exchanges = 1);
    assert_eq!(server.stats().running, 1);
    serving.cancel().wait();
    // The engine notices at once. The task of the handler ends soon.
    assert_eq!((server.stats().running, server.stats().channels), (0, 0));
    seen.wait(|counts| counts.cancelled == 1);
    assert_eq!(rest(&mut ours), "");
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    smol::spawn(server.serve_http(stream(theirs), Peer::default())).detach();
    sum(&mut ours);
}

// covers: B-141, B-149
#[test]
fn dropping_the_future_of_stop_does_not_stop_the_shutdown() {
    let _limit = limit();
    let (server, seen, _ours, serving) = hanging(|_| {});
    let stop = server.stop(Duration::from_millis(50));
    assert!(poll_once(stop).wait().is_none(), "the call has not ended");
    // The stop continues without a waiter: the grace period ends, and with it the call and the
    // connection.
    server.wait().wait();
    serving.wait();
    seen.wait(|counts| counts.cancelled == 1);
}

// covers: B-081
#[test]
fn server_runs_on_the_configured_executor() {
    let _limit = limit();
    let (executor, spawned) = (Arc::new(smol::Executor::new()), Arc::<AtomicUsize>::default());
    let (there, count) = (executor.clone(), spawned.clone());
    let options = ServerOptions::new().on_executor(move |task| {
        count.fetch_add(1, Ordering::SeqCst);
        there.spawn(task).detach();
    });
    let (router, seen) = router();
    let server = executor.run(serve_http((router, options), "127.0.0.1:0")).wait().expect("an address");
    let before = spawned.load(Ordering::SeqCst);
    let mut stream = dial(&server);
    let until_read = |mut stream: std::net::TcpStream, enough| {
        executor.run(smol::unblock(move || drop(read_until(&mut stream, enough)))).wait();
    };
    say(&mut stream, &raw::addition());
    until_read(stream.try_clone().expect("a clone"), r#""text":"3""#);
    // One for the connection. A handler that completes at once needs no task.
    assert_eq!(spawned.load(Ordering::SeqCst), before + 1);
    say(&mut stream, &raw::call("hang", "{}", ""));
    executor
        .run(async {
            while seen.counts().begun == 0 {
                yield_once().await;
            }
        })
        .wait();
    assert_eq!(spawned.load(Ordering::SeqCst), before + 2);
    executor.run(server.stop(Duration::ZERO)).wait();
    assert_eq!(seen.counts().cancelled, 1);
}

// covers: B-066, B-281
#[test]
fn request_of_a_dropped_handler_gets_an_error() {
    let _limit = limit();
    let tasks = AtomicUsize::new(0);
    let options = ServerOptions::new().on_executor(move |task| {
        // Timers, listener, connection; then a handler.
        match tasks.fetch_add(1, Ordering::SeqCst) {
            3 => drop(task),
            _ => smol::spawn(task).detach(),
        }
    });
    let server = raw::listening(router().0, options);
    let mut stream = dial(&server);
    say(&mut stream, &raw::call("hang", "{}", ""));
    let answer = answer(&mut stream);
    assert!(answer.contains("-32603") && answer.contains("the handler was dropped"), "{answer}");
    sum(&mut stream);
}

// covers: B-174, B-187
#[test]
fn handler_that_ignores_cancellation_counts_until_it_returns() {
    let _limit = limit();
    let (tell, entered) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let router = Router::new("stuck", "1").tool_async(tool("stuck"), move |_cx, ()| {
        let (tell, gate) = (tell.clone(), gate.clone());
        async move {
            // The rest runs in a separate task, which it blocks.
            yield_once().await;
            tell.send(()).expect("heard");
            let opened = gate.lock().expect("no panic").recv_timeout(BOUND);
            opened.map_err(|e| e.to_string().into()).map(|()| "done")
        }
    });
    let on_threads = |task: smol::future::Boxed<()>| drop(std::thread::spawn(|| smol::block_on(task)));
    let server = Server::new(router, ServerOptions::new().on_executor(on_threads)).expect("a seed");
    let held = || (server.stats().running, server.stats().abandoned_handlers);
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let serving = smol::spawn(server.serve(stream(theirs), Peer::default()));
    let client = connect(pair(ours)).wait().expect("hello");
    let call = client.start(tools::call("stuck"));
    entered.recv_timeout(BOUND).expect("entered");
    assert_eq!(held(), (1, 0));
    drop(call);
    until(|| held() == (0, 1));
    open.send(()).expect("waits");
    until(|| held() == (0, 0));
    client.close().wait();
    serving.wait();
}

// covers: B-136
#[test]
fn dropped_call_of_a_supervisor_is_cancelled_on_its_server() {
    use mcp_proto::ClientConfig;
    let _limit = limit();
    let (router, seen) = router();
    let path = temp("cancelled");
    let server = serve_unix(router, &path).wait().expect("listens");
    let supervisor = supervise(SupervisorOptions::new()).expect("a supervisor");
    let spec = ServerSpec::new(ClientConfig::unix(path.to_str().expect("unicode")));
    supervisor.add("a", spec).expect("a new key");
    smol::block_on(async {
        supervisor.ready("a", Some(BOUND)).await.expect("connected");
        let mut call = supervisor.start("a", tools::call("hang"));
        assert!(poll_once(&mut call).await.is_none());
        seen.wait(|counts| counts.begun == 1);
        drop(call);
        seen.wait(|counts| counts.cancelled == 1);
        // One that waits for its server ends with it.
        drop(supervisor.start("b", tools::call("hang")));
        assert_eq!(supervisor.health("a").map(|health| health.counters.calls), Some(2));
        assert_eq!(supervisor.close().await, 0);
    });
    drop(server);
}

// covers: B-133
#[test]
fn supervisor_whose_executor_is_dropped_refuses_its_calls() {
    use mcp_proto::ClientConfig;
    let _limit = limit();
    let executor = Arc::new(smol::Executor::new());
    let weak = Arc::downgrade(&executor);
    let spawn = move |task: mcp_proto::route::BoxFuture<()>| {
        if let Some(executor) = weak.upgrade() {
            executor.spawn(task).detach();
        }
    };
    let supervisor = supervise_on(SupervisorOptions::new(), Arc::new(spawn)).expect("a supervisor");
    let mut config = ClientConfig::program(server("while read -r line; do :; done"));
    config.policy = Policy::Legacy;
    supervisor.add("a", ServerSpec::new(config)).expect("a new key");
    let group = smol::block_on(executor.run(async {
        supervisor.ready("a", Some(BOUND)).await.expect("connected");
        group(&supervisor.client("a").expect("connected"))
    }));
    let mut call = supervisor.start("a", tools::call("add"));
    assert!(smol::block_on(poll_once(&mut call)).is_none());
    drop(executor);
    let ended = smol::block_on(call);
    assert!(ended.is_err(), "{ended:?}");
    until(|| members(group).is_empty());
    assert_eq!(smol::block_on(supervisor.close()), 0);
}

// covers: S0-62, R-29
#[test]
fn supervised_call_that_is_kept_and_not_polled_runs_again() {
    let _limit = limit();
    let server = Telling::new("unpolled");
    let mut call = server.supervisor.start("a", tools::call("add"));
    assert!(poll_once(&mut call).wait().is_none());
    let again = server.kill_and_wait();
    assert_eq!(call.wait().expect("a result").first_text(), Some(&*again));
    assert_eq!(server.supervisor.close().wait(), 0);
}
