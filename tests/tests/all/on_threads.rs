//! The suite of both adapters with `mcp-blocking`, and what only this adapter has: streams and
//! callbacks that block, and a limit for threads.

// The other adapter compiles the same files.
#[expect(clippy::duplicate_mod)]
#[path = "suite/mod.rs"]
mod suite;

/// The adapter under the names of the suite.
mod adapter {
    use super::suite::Wait;
    pub(crate) use mcp_blocking::*;
    use std::io;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// What tells its temporary files from those of the other.
    pub(crate) const NAME: &str = "threads";
    /// Progress that cannot be written in time is reduced to the newest.
    pub(crate) const EVERY_PROGRESS: bool = false;
    /// [`stop`] does not wait for the callbacks that it cancelled.
    pub(crate) const STOP_AWAITS_CALLBACKS: bool = false;

    impl<T, E> Wait for Result<T, E> {
        type Output = Self;

        fn wait(self) -> Self {
            self
        }
    }

    impl Wait for Termination {
        type Output = Self;

        fn wait(self) -> Self {
            self
        }
    }

    impl Wait for usize {
        type Output = Self;

        fn wait(self) -> Self {
            self
        }
    }

    /// Waits for a call. Returns the call itself if it has not ended.
    pub(crate) fn wait_for<M: mcp_proto::call::Method, F: mcp_proto::call::CallListener>(
        call: PendingCall<M, F>,
        limit: Duration,
    ) -> Result<Result<M::Output, CallError>, PendingCall<M, F>> {
        call.wait_timeout(limit)
    }

    pub(crate) fn tools_of(client: &Client) -> Vec<Tool> {
        client.pages(tools::list()).collect::<Result<_, _>>().expect("pages")
    }

    pub(crate) fn stop(server: &Server, grace: Duration) {
        server.stop(grace);
    }

    pub(crate) fn over(server: &Server) {
        server.wait();
    }

    pub(crate) fn settle(supervisor: &Supervisor) {
        supervisor.settled();
    }

    /// Returns the number of threads that the operating system holds.
    pub(crate) fn stuck_threads(count: usize) -> usize {
        count
    }

    pub(crate) fn stream(socket: UnixStream) -> UnixStream {
        socket
    }

    /// Returns a reader and a writer.
    pub(crate) fn pair(socket: UnixStream) -> (UnixStream, UnixStream) {
        (socket.try_clone().expect("a clone"), socket)
    }

    type Pipe = (io::PipeReader, io::PipeWriter);

    /// Returns the two ends of a connection: a reader and a writer each.
    pub(crate) fn duplex() -> (Pipe, Pipe) {
        let ((input, ask), (answers, output)) = (io::pipe().expect("a pipe"), io::pipe().expect("a pipe"));
        ((answers, ask), (input, output))
    }

    /// Serves a connection of this server to its end.
    pub(crate) fn attend<S: Into<Stream>>(server: &Server, stream: S, peer: Peer, is_http: bool) {
        let served = if is_http { server.serve_http(stream, peer) } else { server.serve(stream, peer) };
        served.expect("served");
    }
}

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use suite::raw::{self, PING, answer, dial, listening, open_session, read_until, say, sum};
use suite::*;

/// A given stream that fails with a panic.
struct Panics;

impl Read for Panics {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        std::panic::resume_unwind(Box::new("the reader fails"))
    }
}

impl Write for Panics {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        std::panic::resume_unwind(Box::new("the writer fails"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn panic_of_a_given_stream_ends_the_serving() {
    let _limit = limit();
    // A writer that fails ends the serving once what waits to be written has stalled.
    let router = || router().0.configure(|config| config.limits.server.write_stall = Duration::from_secs(1));
    serve(router(), Panics, io::sink()).expect("served");
    let (input, mut asks) = io::pipe().expect("a pipe");
    asks.write_all(PING.as_bytes()).expect("written");
    // Its input stays open, so only the writer can end it.
    serve(router(), input, Panics).expect("served");
    drop(asks);
}

// covers: B-138, B-280
#[test]
fn function_for_lines_may_close_the_client() {
    let _limit = limit();
    let own: Arc<OnceLock<Client>> = Arc::default();
    let (said, closed) = mpsc::channel();
    let seen = Arc::clone(&own);
    let options = quick(legacy()).stderr(Stderr::Lines(Arc::new(move |line: &str| {
        if line == "fatal" {
            until(|| seen.get().is_some());
            drop(said.send(seen.get().expect("set").close()));
        }
    })));
    let client = connect_with(server("echo fatal >&2; while read -r line; do :; done"), options).expect("hello");
    let group = group(&client);
    own.set(client).expect("once");
    assert_eq!(closed.recv_timeout(BOUND), Ok(Termination::Requested));
    until(|| members(group).is_empty());
}

// covers: B-174, B-075
#[test]
fn request_cancelled_before_it_runs_waits_for_no_thread() {
    let _limit = limit();
    let (told, waits) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let router = Router::new("narrow", "1")
        .tool(tool("stuck"), move |_cx, (): ()| {
            told.send(()).expect("heard");
            gate.lock().expect("no panic").recv_timeout(BOUND).expect("opened");
            Ok("free")
        })
        .tool(tool("add"), |_cx, ()| Ok(3));
    let server = listening(router, ServerOptions::new().threads(1));
    let mut first = dial(&server);
    say(&mut first, &raw::call("stuck", "{}", ""));
    waits.recv_timeout(BOUND).expect("entered");
    // Each is cancelled before a thread takes it. If one remained, the last would wait behind
    // it.
    for _ in 0..50 {
        let mut impatient = dial(&server);
        say(&mut impatient, &raw::call("stuck", "{}", ""));
        until(|| server.stats().running == 2);
        drop(impatient);
        until(|| server.stats().running == 1);
    }
    let mut last = dial(&server);
    say(&mut last, &raw::call("add", "{}", ""));
    open.send(()).expect("the first is there");
    assert!(answer(&mut first).contains("free"));
    assert!(answer(&mut last).contains(r#""text":"3""#));
    assert!(waits.try_recv().is_err(), "a handler of a cancelled request was run");
}

/// A client of a server over a pair of streams, whose tool `stuck` returns once `open` is dropped.
struct Stuck {
    client: Client,
    entered: mpsc::Receiver<()>,
    open: mpsc::Sender<()>,
    diagnostics: mpsc::Receiver<String>,
    serving: thread::JoinHandle<io::Result<()>>,
}

impl Stuck {
    fn new(options: ServerOptions) -> Self {
        let (told, entered) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let router = Router::new("stuck", "1")
            .tool(tool("stuck"), move |_cx, (): ()| {
                told.send(()).expect("heard");
                let _ = gate.lock().expect("no panic").recv();
                Ok("late")
            })
            .tool(tool("add"), |_cx, add: Add| Ok(add.a + add.b));
        let (happened, diagnostics) = mpsc::channel();
        let options = options.on_event(move |event| {
            if let ServerEvent::Diagnostic(diagnostic) = event {
                happened.send(diagnostic.kind.code().to_owned()).expect("heard");
            }
        });
        let ((ours, ask), (input, output)) = duplex();
        let serving = thread::spawn(move || serve((router, options), input, output));
        let client = connect((ours, ask)).expect("connected");
        Self { client, entered, open, diagnostics, serving }
    }

    /// Starts a call that does not return.
    fn enter(&self) -> PendingCall<tools::CallTool> {
        let call = self.client.start(tools::call("stuck"));
        self.entered.recv_timeout(BOUND).expect("entered");
        call
    }

    /// Lets the handlers return, and ends.
    fn end(self, calls: Vec<PendingCall<tools::CallTool>>) {
        drop(self.open);
        calls.into_iter().for_each(|call| assert_eq!(text(call.wait()), "late"));
        // A handler answers before its place is free.
        until(|| add(&self.client).as_deref() == Ok("3"));
        self.client.close();
        self.serving.join().expect("no panic").expect("an end in order");
    }
}

// covers: B-174
#[test]
fn only_client_has_every_thread_for_its_handlers() {
    let _limit = limit();
    let stuck = Stuck::new(ServerOptions::new());
    // More than a quarter of 256.
    let calls: Vec<_> = (0..70).map(|_| stuck.enter()).collect();
    assert_eq!(add(&stuck.client).as_deref(), Ok("3"));
    stuck.end(calls);
}

// covers: B-174
#[test]
fn handlers_that_never_return_stop_no_other_call() {
    let _limit = limit();
    let stuck = Stuck::new(ServerOptions::new().threads(2).abandoned_threads(40));
    // Each is cancelled, and takes no place from the next. The last two are beyond the limit, and
    // keep their places.
    (0..42).for_each(|_| drop(stuck.enter()));
    until(|| match add(&stuck.client) {
        Err(CallError::Rpc(error)) => (error.code, &*error.message) == (-32603, "handlers do not return"),
        ended => panic!("{ended:?}"),
    });
    assert_eq!(stuck.diagnostics.recv_timeout(BOUND).as_deref(), Ok("stuck-handlers"));
    stuck.end(Vec::new());
}

// covers: B-174
#[test]
fn server_whose_threads_are_all_in_use_says_so() {
    let _limit = limit();
    let stuck = Stuck::new(ServerOptions::new().threads(1));
    let call = stuck.enter();
    // After 5 s, and then at once.
    for _ in 0..3 {
        let ended = add(&stuck.client).expect_err("no thread is free");
        assert!(ended.to_string().contains("the server is busy"), "{ended}");
    }
    assert_eq!(stuck.diagnostics.recv_timeout(BOUND).as_deref(), Ok("stuck-handlers"));
    assert!(stuck.diagnostics.try_recv().is_err(), "once");
    stuck.end(vec![call]);
}

// covers: B-187, B-274
#[test]
fn slow_application_delays_clients_and_misses_no_session() {
    const SESSIONS: usize = 30;
    let _limit = limit();
    let (told, heard) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let slow = ServerOptions::new().on_event(move |event| {
        // The other end is dropped once all may pass.
        let _ = gate.lock().expect("no panic").recv_timeout(BOUND);
        told.send(format!("{event:?}")).expect("heard");
    });
    let router = router().0.configure(|config| config.limits.server.max_queued_events = 4);
    let server = listening(router, slow);
    let (mut stream, opened) = (dial(&server), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..SESSIONS {
                open_session(&mut stream, "");
                opened.fetch_add(1, Ordering::SeqCst);
            }
        });
        until(|| opened.load(Ordering::SeqCst) > 4);
        // Other clients make twice as many requests meanwhile. They are answered, and delayed
        // as well: each opens a connection.
        let others: Vec<TcpStream> = (0..4 * SESSIONS)
            .map(|_| {
                let mut other = dial(&server);
                sum(&mut other);
                assert!(opened.load(Ordering::SeqCst) < 10, "nothing holds the client up");
                assert!(server.stats().queued < 10);
                other
            })
            .collect();
        drop(others);
        drop(open);
    });
    let heard: Vec<String> = (0..SESSIONS).map(|_| heard.recv_timeout(BOUND).expect("told")).collect();
    assert!(heard.iter().all(|event| event.starts_with("SessionOpened")), "{heard:?}");
}

/// Returns the number of threads of this program whose names begin with `name`.
fn count(name: &str) -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("/proc").flatten();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|found| found.starts_with(name)).count()
}

/// Set for the child whose threads are counted.
const COUNTED: &str = "MCP_TEST_COUNTED";

// covers: B-174
#[test]
fn connection_has_one_reading_thread_and_handlers_are_bounded() {
    let _limit = limit();
    if std::env::var_os(COUNTED).is_some() {
        return count_threads();
    }
    let mut counted =
        limited_to(1024, module_path!(), "connection_has_one_reading_thread_and_handlers_are_bounded", COUNTED);
    let counted = counted.output().expect("started");
    let told = [counted.stdout, counted.stderr].concat();
    assert!(counted.status.success(), "{}", String::from_utf8_lossy(&told));
}

/// Serves in a process without other servers.
fn count_threads() {
    const CONNECTIONS: usize = 20;
    const HANDLERS: usize = 4;
    let router = Router::new("threads", "1")
        .tool(tool("large"), |_cx, ()| Ok("x".repeat(8 << 20)))
        .tool(tool("slow"), |cx, ()| {
            until(|| cx.is_cancelled());
            Ok(())
        })
        .tool(tool("quick"), |_cx, ()| Ok("done"))
        .configure(|config| {
            config.limits.server.max_exchanges = CONNECTIONS;
            // Longer than the test takes on any machine.
            config.limits.frame.head_timeout = Duration::from_secs(600);
            config.limits.frame.linger_timeout = Duration::from_millis(100);
        });
    let server = listening(router, ServerOptions::new().threads(HANDLERS));
    let dial = || dial(&server);
    // Some send nothing, some read nothing, and those that make calls get responses.
    let mut stuck: Vec<TcpStream> = (0..CONNECTIONS - 1).map(|_| dial()).collect();
    stuck.iter_mut().step_by(5).for_each(|stream| say(stream, &raw::call("large", "{}", "")));
    until(|| server.stats().requests == 4 && server.stats().running == 0);
    let mut lively = dial();
    for _ in 0..3 {
        say(&mut lively, &raw::call("quick", "{}", ""));
        drop(read_until(&mut lively, "done"));
    }
    // A thread sets its name when it begins to run. Only a client that does not read what it was
    // sent needs a thread that writes.
    until(|| (count("mcp-reader"), count("mcp-writer")) == (CONNECTIONS, 4));
    // Connections beyond the limit get a response, and keep their threads no longer than a closed
    // connection may linger.
    let mut beyond: Vec<TcpStream> = (0..50).map(|_| dial()).collect();
    beyond.iter_mut().for_each(|stream| drop(stream.read_to_end(&mut Vec::new())));
    until(|| (count("mcp-reader"), count("mcp-writer")) == (CONNECTIONS, 4));
    drop((beyond, stuck));
    until(|| server.stats().channels == 1);
    let mut slow: Vec<TcpStream> = (0..CONNECTIONS - 1).map(|_| dial()).collect();
    slow.iter_mut().for_each(|stream| say(stream, &raw::call("slow", "{}", "")));
    // A thread that a handler starts has its name for an instant.
    until(|| server.stats().running == CONNECTIONS - 1 && count("mcp-handler") == HANDLERS);
    drop((slow, lively));
    until(|| count("mcp-reader") + count("mcp-writer") == 0);
    // A connection that the server has ended keeps no thread, even if its client stays.
    let mut stays: Vec<TcpStream> = (0..3).map(|_| dial()).collect();
    for stream in &mut stays {
        stream.write_all(b"nonsense\r\n\r\n").expect("written");
        let mut said = Vec::new();
        stream.read_to_end(&mut said).expect("the answer, and the end");
        assert!(said.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&said));
    }
    until(|| count("mcp-reader") + count("mcp-writer") == 0);
    drop(stays);
    until(|| (count("mcp-timer"), count("mcp-accept")) == (1, 1));
    drop(server);
    until(|| count("mcp-timer") + count("mcp-accept") == 0);
}
