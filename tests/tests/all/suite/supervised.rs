//! Several servers that a supervisor keeps connected: programs that exit, are killed, replaced and
//! closed.

use super::*;
use crate::command::issuer::{Issuer, Setup, redirect};
use mcp_proto::client::Policy;
use mcp_proto::record::{Recorder, Redaction};
use mcp_proto::{ClientConfig, Refusal};
use mcp_supervisor::config_file::{ConfigFile, Trust, Variable};
use mcp_supervisor::record::SupervisorRecording;
use mcp_supervisor::{Cause, ConnectWhen, Lists, WhenDown};
use std::net::Shutdown::Both;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server with the tools `add`, which only reads, and `pay`. Arguments: the file for its process
/// ids, then the calls that each process answers before it exits with code 3. The text of an answer
/// is its process id and the number of the call.
const TOOLBOX: &str = r#"
    id() { id=${line#*'"id":'}; id=${id%%[,\}]*}; }
    echo $$ >> $1
    n=0
    while read -r line; do
        case $line in
        *'"initialize"'*) id
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"'$$'","version":"1"}}}';;
        *'"tools/list"'*) id
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"add","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"pay","inputSchema":{"type":"object"}}]}}';;
        *'"tools/call"'*) id
            [ $n -ge $2 ] && exit 3
            n=$((n+1))
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'$$' '$n'"}]}}';;
        esac
    done
"#;

/// A server, and the processes that it was started as.
struct Toolbox {
    pids: std::path::PathBuf,
    calls: u32,
}

impl Toolbox {
    fn new(name: &str, calls: u32) -> Self {
        Self { pids: temp(name), calls }
    }

    fn spec(&self) -> ServerSpec {
        spec(sh(TOOLBOX).args(["sh", &self.pids.display().to_string(), &self.calls.to_string()]))
    }

    /// Returns the ids of its processes, the oldest first.
    fn started(&self) -> Vec<u32> {
        let pids = std::fs::read_to_string(&self.pids).unwrap_or_default();
        pids.lines().map(|pid| pid.parse().expect("a process id")).collect()
    }

    /// Kills its process.
    fn kill(&self) {
        let pid = *self.started().last().expect("a process");
        std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill");
    }
}

/// No process of it is left.
impl Drop for Toolbox {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.started().into_iter().for_each(|pid| until(|| members(pid).is_empty() && is_reaped(pid)));
        }
        drop(std::fs::remove_file(&self.pids));
    }
}

fn spec(program: Program) -> ServerSpec {
    let mut config = ClientConfig::program(program);
    config.policy = Policy::Legacy;
    config.timeout = Some(BOUND);
    ServerSpec::new(config)
}

/// Delays of this many milliseconds.
fn policy(wait: u64) -> Supervision {
    let mut policy = Supervision::default();
    policy.waits = vec![Duration::from_millis(wait); 4];
    policy.jitter = false;
    policy
}

fn options(policy: Supervision) -> SupervisorOptions {
    SupervisorOptions::new().policy(policy).clients(|_| ClientOptions::new().stderr(Stderr::Discard))
}

/// Returns a supervisor of one server `a`, and a receiver of its events.
fn one(policy: Supervision, spec: ServerSpec) -> (Supervisor, mpsc::Receiver<SupervisorEvent<String>>) {
    let (tell, told) = mpsc::channel();
    let supervisor = supervise(options(policy).on_event(move |event| drop(tell.send(event)))).expect("a supervisor");
    supervisor.add("a", spec).expect("a new key");
    (supervisor, told)
}

/// Calls a tool of the server `a`.
fn tool_of(supervisor: &Supervisor, tool: &str) -> Result<String, SupervisedError> {
    let result = supervisor.call("a", tools::call(tool)).wait()?;
    Ok(result.first_text().expect("a text").to_owned())
}

fn lost(sent: Sent, why: Closed) -> SupervisedError {
    SupervisedError::Call(CallError::Closed { sent, why })
}

fn state(supervisor: &Supervisor) -> ServerState {
    supervisor.health("a").expect("a server").state
}

fn is_down(supervisor: &Supervisor) -> bool {
    matches!(state(supervisor), ServerState::Down { .. })
}

// covers: STDIO-C-019, R-32, R-33, B-084
#[test]
fn exited_program_is_started_again_and_loses_one_call() {
    let _limit = limit();
    let server = Toolbox::new("again", 1);
    let (supervisor, events) = one(policy(20), server.spec());
    settle(&supervisor);
    let text = |n: usize| Ok(format!("{} 1", server.started()[n]));
    assert_eq!(tool_of(&supervisor, "pay"), text(0));
    // It is unknown whether the server has paid.
    assert_eq!(tool_of(&supervisor, "pay"), Err(lost(Sent::Maybe, exited(3))));
    // The next call waits for the next process.
    assert_eq!(tool_of(&supervisor, "pay"), text(1));
    let health = supervisor.health("a").expect("a server");
    assert_eq!((health.counters.attempts, health.counters.losses, health.counters.retries), (2, 1, 0));
    assert_eq!(supervisor.close().wait(), 0);
    drop(supervisor);
    let events = all(&events);
    let ups = events.iter().filter(|event| matches!(event, SupervisorEvent::Up { .. })).count();
    let again = events.iter().filter(|event| matches!(event, SupervisorEvent::Reconnecting { attempt: 1, .. })).count();
    assert_eq!((ups, again), (2, 1), "{events:?}");
    assert!(matches!(events.last(), Some(SupervisorEvent::Closed { left: 0 })));
}

/// A server of 2026-07-28 that appends a line to a file for each subscription, and exits with code
/// 3 at a call.
const LISTENED: &str = r#"
    id() { id=${line#*'"id":'}; id=${id%%[,\}]*}; }
    while read -r line; do
        case $line in
        *'"server/discover"'*) id
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}}';;
        *'"subscriptions/listen"'*) echo listen >> $1;;
        *'"tools/list"'*) id
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}';;
        *'"tools/call"'*) exit 3;;
        esac
    done
"#;

// covers: STDIO-C-020, SUB-C-014
#[test]
fn each_program_is_asked_for_the_changes_of_its_lists() {
    let _limit = limit();
    let file = temp("listened");
    let mut config = ClientConfig::program(sh(LISTENED).args(["sh", &file.display().to_string()]));
    config.policy = Policy::Modern;
    let mut spec = ServerSpec::new(config);
    spec.lists = Lists::NONE.with(ListKind::Tools);
    let (supervisor, _events) = one(policy(20), spec);
    for asked in 1..=3 {
        supervisor.ready("a", Some(BOUND)).wait().expect("connected");
        until(|| std::fs::read_to_string(&file).is_ok_and(|text| text.lines().count() == asked));
        assert_eq!(tool_of(&supervisor, "pay"), Err(lost(Sent::Maybe, exited(3))));
    }
    assert_eq!(supervisor.close().wait(), 0);
    std::fs::remove_file(&file).expect("removed");
}

// covers: S0-06, B-136
#[test]
fn call_that_only_reads_runs_once_more_on_the_next_program() {
    let _limit = limit();
    let server = Toolbox::new("reads", 1);
    let (supervisor, _events) = one(policy(20), server.spec());
    settle(&supervisor);
    assert!(tool_of(&supervisor, "add").is_ok());
    let again = tool_of(&supervisor, "add").expect("the second process answers");
    assert_eq!(again, format!("{} 1", server.started()[1]));
    assert_eq!(supervisor.health("a").expect("a server").counters.retries, 1);
    drop(supervisor);
}

/// A server with the tool `add`, which only reads. Its first process answers a call with progress
/// and nothing else, the later ones with their process id. Arguments: the file for the process ids,
/// and the file for the calls, with the process id of each.
const TELLING: &str = r#"
    id() { id=${line#*'"id":'}; id=${id%%[,\}]*}; }
    echo $$ >> $1
    n=$(wc -l < $1)
    while read -r line; do
        case $line in
        *'"initialize"'*) id
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
        *'"tools/list"'*) id
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"add","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}';;
        *'"tools/call"'*) id; echo $$ >> $2
            token=${line#*'"progressToken":'}; token=${token%%[,\}]*}
            if [ $n -eq 1 ]; then
                echo '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'$token',"progress":1}}'
            else
                echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'$$'"}]}}'
            fi;;
        esac
    done
"#;

/// A connected supervisor of [`TELLING`].
pub(crate) struct Telling {
    pub(crate) supervisor: Supervisor,
    files: [std::path::PathBuf; 2],
}

impl Telling {
    pub(crate) fn new(name: &str) -> Self {
        let files = [temp(name), temp(&format!("{name}-calls"))];
        let spec = spec(sh(TELLING).args(["sh", &files[0].display().to_string(), &files[1].display().to_string()]));
        let (supervisor, _events) = one(policy(20), spec);
        settle(&supervisor);
        Self { supervisor, files }
    }

    /// Returns the process id of each call, as the server has received them.
    fn calls(&self) -> Vec<String> {
        std::fs::read_to_string(&self.files[1]).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Kills the process that has received the first call, and waits until the next process has
    /// received it as well. Returns the process id of that.
    pub(crate) fn kill_and_wait(&self) -> String {
        until(|| self.calls().len() == 1);
        std::process::Command::new("kill").args(["-9", &self.calls()[0]]).status().expect("kill");
        until(|| self.calls().len() == 2);
        let calls = self.calls();
        assert_ne!(calls[0], calls[1]);
        calls[1].clone()
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.files.iter().for_each(|file| drop(std::fs::remove_file(file)));
    }
}

/// A callback for progress that does not return before the second channel is closed: its caller
/// does not look at the call meanwhile. The first channel tells that it has begun.
fn stuck() -> (impl FnMut(Progress) + Send, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let ((tell, begun), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let callback = move |_: Progress| {
        let _ = tell.send(());
        let _ = released.recv_timeout(BOUND);
    };
    (callback, begun, release)
}

// covers: S0-62, R-29
#[test]
fn call_runs_again_although_its_caller_does_not_look() {
    let _limit = limit();
    let server = Telling::new("unseen");
    let (callback, begun, release) = stuck();
    std::thread::scope(|scope| {
        let supervisor = &server.supervisor;
        let caller = scope.spawn(|| supervisor.call("a", tools::call("add").on_progress(callback)).wait());
        begun.recv_timeout(BOUND).expect("progress");
        let again = server.kill_and_wait();
        assert!(!caller.is_finished());
        drop(release);
        let result = caller.join().expect("no panic").expect("a result");
        assert_eq!(result.first_text(), Some(&*again));
    });
    assert_eq!(server.supervisor.health("a").expect("a server").counters.retries, 1);
    assert_eq!(server.supervisor.close().wait(), 0);
}

// covers: S0-62
#[test]
fn retired_client_closes_although_its_caller_does_not_look() {
    let _limit = limit();
    let (finish, finished) = mpsc::channel::<()>();
    let finished = Mutex::new(finished);
    let router = router().0.tool(tool("tell"), move |cx, (): ()| {
        drop(cx.progress(Progress::new(1.0)));
        let _ = finished.lock().expect("no panic").recv_timeout(BOUND);
        Ok("told")
    });
    let server = raw::listening(router, ServerOptions::new());
    let config = ClientConfig::url(&format!("http://{}/mcp", transports::address(&server))).expect("a URL");
    let (supervisor, _events) = one(policy(20), ServerSpec::new(config));
    settle(&supervisor);
    let old = supervisor.client("a").expect("connected");
    let (callback, begun, release) = stuck();
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| supervisor.call("a", tools::call("tell").on_progress(callback)).wait());
        begun.recv_timeout(BOUND).expect("progress");
        assert!(supervisor.reconnect("a"));
        supervisor.ready("a", Some(BOUND)).wait().expect("connected again");
        assert!(call(&old, "pid").is_ok(), "it is open, since it has a call");
        finish.send(()).expect("it waits");
        until(|| call(&old, "pid") == Err(CallError::Refused(Refusal::Closed)));
        assert!(!caller.is_finished());
        drop(release);
        assert_eq!(caller.join().expect("no panic").expect("a result").first_text(), Some("told"));
    });
    assert_eq!(supervisor.close().wait(), 0);
    stop(&server, Duration::ZERO);
}

// covers: R-33, B-025
#[test]
fn program_that_always_exits_is_down_and_calls_fail_at_once() {
    let _limit = limit();
    let file = temp("always");
    let script = format!("echo $$ >> {}; exit 7", file.display());
    let mut policy = policy(10);
    policy.when_down = WhenDown::GiveUp;
    let (supervisor, events) = one(policy, spec(sh(&script)));
    // It was begun while the server was not down.
    let waited = tool_of(&supervisor, "add");
    assert!(matches!(waited, Err(SupervisedError::Refused(CallRefusal::Unavailable { next: None, .. }))), "{waited:?}");
    let began = Instant::now();
    let failed = tool_of(&supervisor, "add").expect_err("it is down");
    assert!(failed.to_string().starts_with("the server is down: "), "{failed}");
    assert!(failed.to_string().contains("exited with code 7"), "{failed}");
    assert!(began.elapsed() < BOUND / 2);
    assert_eq!(supervisor.close().wait(), 0);
    drop(supervisor);
    let attempts = |event| match event {
        SupervisorEvent::Reconnecting { attempt, .. } => Some(attempt),
        _ => None,
    };
    assert!(all(&events).into_iter().filter_map(attempts).eq([1, 2, 3, 4]));
    let pids = std::fs::read_to_string(&file).expect("the starts");
    std::fs::remove_file(&file).expect("removed");
    let pids: Vec<u32> = pids.lines().map(|pid| pid.parse().expect("a process id")).collect();
    // A program that exits during the probe would be started twice; these are not probed.
    assert_eq!(pids.len(), 5);
    pids.into_iter().for_each(|pid| until(|| members(pid).is_empty()));
}

// covers: B-025
#[test]
fn calls_that_find_their_program_killed_share_one_attempt() {
    let _limit = limit();
    let server = Toolbox::new("shared", 1000);
    let (supervisor, _events) = one(policy(20), server.spec());
    settle(&supervisor);
    server.kill();
    let answers: Vec<String> = std::thread::scope(|scope| {
        let call = || tool_of(&supervisor, "add").expect("an answer");
        let calls: Vec<_> = (0..20).map(|_| scope.spawn(call)).collect();
        calls.into_iter().map(|call| call.join().expect("no panic")).collect()
    });
    let started = server.started();
    assert_eq!(started.len(), 2);
    assert!(answers.iter().all(|answer| answer.starts_with(&format!("{} ", started[1]))), "{answers:?}");
    drop(supervisor);
}

#[test]
fn close_during_the_delay_refuses_the_calls_that_wait() {
    let _limit = limit();
    let server = Toolbox::new("delay", 0);
    let (supervisor, _events) = one(policy(600_000), server.spec());
    settle(&supervisor);
    assert_eq!(tool_of(&supervisor, "pay"), Err(lost(Sent::Maybe, exited(3))));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| supervisor.call("a", tools::call("add").timeout(None)).wait());
        until(|| supervisor.health("a").is_some_and(|health| health.waiting == 1));
        let began = Instant::now();
        assert_eq!(supervisor.close().wait(), 0);
        assert_eq!(waits.join().expect("no panic"), Err(SupervisedError::Refused(CallRefusal::Closed)));
        assert!(began.elapsed() < BOUND / 2, "{:?}", began.elapsed());
    });
    assert_eq!(tool_of(&supervisor, "add"), Err(SupervisedError::Refused(CallRefusal::Closed)));
    assert!(supervisor.add("b", server.spec()).is_err());
}

// covers: B-084
#[test]
fn call_of_a_replaced_server_ends_and_the_next_gets_the_new_one() {
    let _limit = limit();
    // It answers nothing after the handshake.
    let (mut old, new) = (spec(server("while read -r line; do :; done")), Toolbox::new("new", 1000));
    old.lists = Lists::NONE;
    let (supervisor, _events) = one(policy(20), old);
    supervisor.ready("a", Some(BOUND)).wait().expect("connected");
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| tool_of(&supervisor, "add"));
        until(|| supervisor.health("a").is_some_and(|health| health.counters.calls == 2));
        assert!(supervisor.replace("a", new.spec()));
        assert_eq!(runs.join().expect("no panic"), Err(SupervisedError::Refused(CallRefusal::Replaced)));
    });
    assert_eq!(tool_of(&supervisor, "add"), Ok(format!("{} 1", new.started()[0])));
    assert!(supervisor.remove("a"));
    assert_eq!(tool_of(&supervisor, "add"), Err(SupervisedError::Refused(CallRefusal::Unknown)));
    assert!(!supervisor.replace("a", new.spec()) && !supervisor.remove("a") && !supervisor.reconnect("a"));
}

// covers: S0-05
#[test]
fn tools_stay_known_while_their_program_is_down() {
    let _limit = limit();
    let server = Toolbox::new("stale", 0);
    let (supervisor, _events) = one(policy(600_000), server.spec());
    assert_eq!(supervisor.freshness("a", ListKind::Tools), Freshness::Unknown);
    settle(&supervisor);
    let names =
        || supervisor.catalogue("a").tools.map(|tools| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>());
    assert_eq!(names().as_deref(), Some(&["add".to_owned(), "pay".to_owned()][..]));
    assert_eq!(supervisor.freshness("a", ListKind::Tools), Freshness::Fresh);
    server.kill();
    until(|| matches!(state(&supervisor), ServerState::Waiting { .. }));
    assert_eq!(supervisor.freshness("a", ListKind::Tools), Freshness::Stale);
    assert_eq!(names().map(|names| names.len()), Some(2));
    assert!(supervisor.reconnect("a"));
    settle(&supervisor);
    assert_eq!(supervisor.freshness("a", ListKind::Tools), Freshness::Fresh);
    drop(supervisor);
}

#[test]
fn program_on_demand_starts_at_the_first_call() {
    let _limit = limit();
    let server = Toolbox::new("demand", 1000);
    let mut spec = server.spec();
    spec.connect = ConnectWhen::OnDemand;
    let (supervisor, _events) = one(policy(20), spec);
    settle(&supervisor);
    assert_eq!((state(&supervisor), server.started().len()), (ServerState::Idle, 0));
    assert!(supervisor.client("a").is_none());
    assert!(tool_of(&supervisor, "add").is_ok());
    assert_eq!(server.started().len(), 1);
    let client = supervisor.client("a").expect("connected");
    assert_eq!(group(&client), server.started()[0]);
    assert!(call(&client, "add").is_ok());
    // It does not outlive the supervisor, although it is held here.
    assert_eq!(supervisor.close().wait(), 0);
    assert!(matches!(call(&client, "add"), Err(CallError::Refused(_))));
}

// covers: B-133
#[test]
fn dropping_the_last_handle_ends_every_program() {
    let _limit = limit();
    let servers = ["one", "two", "three"].map(|name| Toolbox::new(name, 1000));
    let supervisor = supervise(options(policy(20))).expect("a supervisor");
    for (key, server) in ["one", "two", "three"].into_iter().zip(&servers) {
        // It takes its time after the end of its input.
        let program = sh(&format!("{TOOLBOX}\nsleep 0.3"));
        supervisor.add(key, spec(program.args(["sh", &server.pids.display().to_string(), "1000"]))).expect("a new key");
    }
    settle(&supervisor);
    let started: Vec<u32> = servers.iter().flat_map(Toolbox::started).collect();
    assert_eq!(started.len(), 3);
    drop(supervisor.clone());
    assert!(started.iter().all(|pid| !members(*pid).is_empty()));
    drop(supervisor);
    // Dropping has waited for them.
    assert!(started.iter().all(|pid| members(*pid).is_empty()));
}

/// A callback that resolves configurations, in its two forms.
fn resolving(options: SupervisorOptions, is_async: bool, counts: &Arc<AtomicUsize>) -> SupervisorOptions {
    let counts = Arc::clone(counts);
    let resolve = move |key: &str, mut config: ClientConfig| {
        assert_eq!(key, "a");
        match counts.fetch_add(1, Ordering::SeqCst) {
            0 => Err("the vault is locked".to_owned()),
            1 => panic!("the vault is broken"),
            _ => {
                config.policy = Policy::Legacy;
                Ok(config)
            }
        }
    };
    match is_async {
        false => options.on_resolve(resolve),
        true => options.on_resolve_async(move |key, config| {
            let (resolve, key) = (resolve.clone(), key.to_owned());
            async move {
                yield_once().await;
                resolve(&key, config)
            }
        }),
    }
}

// covers: S0-07
#[test]
fn configuration_is_resolved_before_each_attempt() {
    let _limit = limit();
    for is_async in [false, true] {
        let (server, counts) = (Toolbox::new("resolved", 1000), Arc::default());
        let (tell, told) = mpsc::channel();
        let options = resolving(options(policy(20)), is_async, &counts);
        let supervisor = supervise(options.on_event(move |event| drop(tell.send(event)))).expect("a supervisor");
        let mut spec = server.spec();
        spec.resolve = true;
        supervisor.add("a", spec).expect("a new key");
        assert!(tool_of(&supervisor, "add").is_ok());
        assert_eq!(counts.load(Ordering::SeqCst), 3);
        drop(supervisor);
        let causes = all(&told).into_iter().filter_map(|event| match event {
            SupervisorEvent::Reconnecting { cause, .. } => Some(cause),
            _ => None,
        });
        let texts = ["the vault is locked", "the callback panicked"];
        assert!(causes.eq(texts.map(|text| Cause::Unresolved(text.into()))));
    }
}

// covers: S0-07
#[test]
fn callback_that_does_not_return_is_called_once() {
    let _limit = limit();
    let (server, counts) = (Toolbox::new("stuck", 1000), Arc::new(AtomicUsize::new(0)));
    let (release, released) = mpsc::channel::<()>();
    let (released, asked) = (Mutex::new(released), Arc::clone(&counts));
    let options = options(policy(1)).on_resolve(move |key, config| {
        if key == "stuck" {
            asked.fetch_add(1, Ordering::SeqCst);
            let _ = released.lock().expect("not poisoned").recv();
        }
        Ok(config)
    });
    let supervisor = supervise(options).expect("a supervisor");
    let mut spec = server.spec();
    spec.resolve = true;
    let mut stuck = spec.clone();
    Arc::make_mut(&mut stuck.config).connect_timeout = Duration::from_millis(5);
    supervisor.add("stuck", stuck).expect("a new key");
    until(|| supervisor.health("stuck").is_some_and(|health| health.counters.failures >= 4));
    // It takes no thread from another server.
    supervisor.add("a", spec).expect("a new key");
    assert!(tool_of(&supervisor, "add").is_ok());
    assert_eq!(counts.load(Ordering::SeqCst), 1);
    drop(release);
    assert_eq!(supervisor.close().wait(), 0);
}

/// A server whose list of tools never ends. It appends a line to a file for each page, of a
/// million bytes.
const ENDLESS: &str = r#"
    big=$(printf '%01000000d' 0)
    id() { id=${line#*'"id":'}; id=${id%%[,\}]*}; }
    while read -r line; do
        case $line in
        *'"initialize"'*) id
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
        *'"tools/list"'*) id; echo page >> $1
            echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t'$id'","inputSchema":{"type":"object"},"description":"'$big'"}],"nextCursor":"'$id'"}}';;
        esac
    done
"#;

// covers: B-011
#[test]
fn list_without_end_is_given_up() {
    let _limit = limit();
    let file = temp("endless");
    let mut spec = spec(sh(ENDLESS).args(["sh", &file.display().to_string()]));
    spec.lists = Lists::NONE.with(ListKind::Tools);
    let (supervisor, _events) = one(policy(20), spec);
    settle(&supervisor);
    let pages = std::fs::read_to_string(&file).expect("pages").lines().count();
    assert_eq!((pages, supervisor.freshness("a", ListKind::Tools)), (17, Freshness::Unknown));
    assert_eq!(supervisor.close().wait(), 0);
    std::fs::remove_file(&file).expect("removed");
}

#[test]
fn panic_of_a_callback_changes_nothing_else() {
    let _limit = limit();
    let (server, creations) = (Toolbox::new("panics", 1000), AtomicUsize::new(0));
    let options = SupervisorOptions::new()
        .policy(policy(20))
        .clients(move |_| {
            assert!(creations.fetch_add(1, Ordering::SeqCst) > 0, "no options yet");
            ClientOptions::new().stderr(Stderr::Discard).on_event(|_| panic!("an event of the client"))
        })
        .on_event(|_| panic!("an event"));
    let supervisor = supervise(options).expect("a supervisor");
    supervisor.add("a", server.spec()).expect("a new key");
    assert!(tool_of(&supervisor, "add").is_ok());
    settle(&supervisor);
    server.kill();
    assert!(tool_of(&supervisor, "add").is_ok());
    assert_eq!(supervisor.close().wait(), 0);
}

// covers: STDIO-C-019
#[test]
fn unix_socket_is_connected_again_when_its_server_returns() {
    let _limit = limit();
    let path = temp("returns");
    let serve_one = |path: &Path| {
        let (listener, (told, socket)) = (UnixListener::bind(path).expect("listens"), mpsc::channel());
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            told.send(stream.try_clone().expect("a clone")).expect("it waits");
            let (input, output) = pair(stream);
            serve(router().0, input, output).wait().expect("served");
        });
        socket
    };
    let first = serve_one(&path);
    let spec = ServerSpec::new(ClientConfig::unix(path.to_str().expect("unicode")));
    let mut policy = policy(20);
    (policy.waits, policy.max_attempts) = (vec![Duration::from_millis(20); 1000], 1000);
    let (supervisor, events) = one(policy, spec);
    let sum = || supervisor.call("a", tools::call("add").arguments(&Add { a: 1, b: 2 })).wait();
    assert_eq!(sum().expect("a sum").first_text(), Some("3"));
    // The server ends, and for a while there is none.
    std::fs::remove_file(&path).expect("removed");
    first.recv_timeout(BOUND).expect("a client").shutdown(Both).expect("cut");
    let attempts = std::iter::from_fn(|| Some(events.recv_timeout(BOUND).expect("an event")));
    let attempts = attempts.filter(|event| matches!(event, SupervisorEvent::Reconnecting { .. }));
    assert_eq!(attempts.take(3).count(), 3);
    let second = serve_one(&path);
    assert_eq!(sum().expect("a sum").first_text(), Some("3"));
    // The test holds no end of the connection.
    drop(second.recv_timeout(BOUND).expect("a client"));
    assert_eq!(supervisor.close().wait(), 0);
    std::fs::remove_file(&path).expect("removed");
}

// covers: B-227
#[test]
fn program_that_answers_no_ping_is_started_again() {
    let _limit = limit();
    let (server, mut spec) = (Toolbox::new("deaf", 1000), spec(sh("")));
    let mut config = (*server.spec().config).clone();
    (config.ping, config.ping_timeout) = (Some(Duration::from_millis(10)), Duration::from_millis(30));
    spec.config = Arc::new(config);
    let (supervisor, _events) = one(policy(20), spec);
    let cause = || supervisor.health("a").and_then(|health| health.cause);
    until(|| matches!(cause(), Some(Cause::Unresponsive { pings: 3.. })));
    until(|| server.started().len() >= 2);
    drop(supervisor);
}

#[test]
fn probe_of_a_server_that_is_down_brings_it_back() {
    let _limit = limit();
    let (file, server) = (temp("probe"), Toolbox::new("probed", 1000));
    let script = format!("[ -e {} ] || exit 7\n{TOOLBOX}", file.display());
    let program = sh(&script).args(["sh", &server.pids.display().to_string(), "1000"]);
    let mut policy = policy(5);
    policy.when_down = WhenDown::Probe { first: Duration::from_millis(50), max: Duration::from_millis(100) };
    policy.max_attempts = 1000;
    let (supervisor, _events) = one(policy, spec(program));
    until(|| is_down(&supervisor));
    std::fs::write(&file, "").expect("written");
    until(|| matches!(state(&supervisor), ServerState::Ready { .. }));
    assert!(tool_of(&supervisor, "add").is_ok());
    drop(supervisor);
    std::fs::remove_file(&file).expect("removed");
}

// covers: S0-61, S0-62
#[test]
fn lost_session_of_http_sse_is_a_lost_connection() {
    let _limit = limit();
    let (server, _) = transports::serve("127.0.0.1:0");
    let at = transports::address(&server);
    let mut config = ClientConfig::url(&format!("http://{at}/sse")).expect("a URL");
    config.timeout = Some(BOUND);
    let (supervisor, _events) = one(policy(300), ServerSpec::new(config));
    let add = || supervisor.call("a", tools::call("add").arguments(&Add { a: 1, b: 2 })).wait();
    assert!(add().is_ok());
    stop(&server, Duration::ZERO);
    drop(server);
    // Without a call that could notice it.
    until(|| !matches!(state(&supervisor), ServerState::Ready { .. }));
    let health = supervisor.health("a").expect("a server");
    assert!(matches!(health.cause, Some(Cause::SessionLost(_))), "{health:?}");
    let (server, _) = transports::serve(&at.to_string());
    assert!(add().is_ok());
    assert_eq!(supervisor.close().wait(), 0);
    stop(&server, Duration::ZERO);
}

// covers: S0-61
#[test]
fn recorded_supervisor_is_replayed() {
    let toolbox = Toolbox::new("recorded", 100);
    let file = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&file);
    let recorder = Recorder::new(Redaction::Raw, move |line| {
        kept.lock().unwrap().extend_from_slice(line);
        Ok(())
    });
    let supervisor = supervise(options(policy(1)).record(recorder)).expect("a supervisor");
    supervisor.add("a", toolbox.spec()).expect("a new key");
    assert!(tool_of(&supervisor, "add").is_ok());
    // The list tells that the tool may run a second time.
    settle(&supervisor);
    toolbox.kill();
    assert!(tool_of(&supervisor, "add").is_ok());
    settle(&supervisor);
    assert_eq!(supervisor.close().wait(), 0);
    let file = file.lock().unwrap();
    let replayed = SupervisorRecording::<String>::read(&file).expect("a recording").replay();
    let summary = replayed.unwrap_or_else(|difference| panic!("line {}{difference}", difference.line));
    assert!(summary.complete && summary.outputs > 10, "{summary:?}");
}

// covers: S0-06, S0-61
#[test]
fn supervised_server_logs_in_as_its_file_says() {
    let issuer = Issuer::start(Setup { registers_none: true, ..Setup::default() });
    let auth = r#"{"CLIENT_ID": "mine", "CLIENT_SECRET": "${env:KEY}"}"#;
    let text = format!(r#"{{"mcpServers": {{"a": {{"url": "{}", "auth": {auth}}}}}}}"#, issuer.url());
    let file = ConfigFile::parse(&text).expect("a file");
    let entry = file.server("a").expect("a server").expect("no error");
    let lookup = |variable: Variable<'_>| (variable == Variable::Environment("KEY")).then(|| "canary".to_owned());
    let shown = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&shown);
    let oauth = OAuth::new("test").on_browse(move |page| {
        count.fetch_add(1, Ordering::SeqCst);
        Browsed::Returned(redirect(&page.url))
    });
    let login = entry.login(oauth, &lookup, Trust::Trusted).expect("no error").expect("a login");
    let config = entry.client_config(&lookup, Trust::Trusted).expect("a configuration");
    let options = SupervisorOptions::new().clients(move |_| ClientOptions::new().oauth(login.clone()));
    let supervisor = supervise(options).expect("a supervisor");
    supervisor.add("a", ServerSpec::new(config)).expect("a new key");
    settle(&supervisor);
    assert_eq!(supervisor.catalogue("a").tools.map(|tools| tools.len()), Some(1));
    // `mine:canary` in Base64.
    assert!(issuer.asked("POST /token")[0].contains("authorization: basic bwluztpjyw5hcnk="));
    // The next client has the same login.
    assert!(supervisor.reconnect("a"));
    until(|| issuer.asked("POST /mcp").iter().filter(|ask| ask.contains("tools/list")).count() == 2);
    assert_eq!((shown.load(Ordering::SeqCst), issuer.asked("POST /token").len()), (1, 1));
    assert_eq!(supervisor.close().wait(), 0);
}
