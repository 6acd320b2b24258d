//! Unix domain sockets: many clients of one server, and the file of the socket.

use super::raw::{INITIALIZE, PING};
use super::*;
use mcp_proto::error::DiagnosticKind;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustix::process;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{scope, spawn};

/// A directory of this test, removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = temp(name);
        std::fs::create_dir(&path).expect("a directory");
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn at(path: &Path) -> UnixSocket {
    UnixSocket(path.to_str().expect("unicode").into())
}

fn connected(dir: &Dir, policy: Policy) -> Client {
    let config = quick(ClientOptions::new()).set(move |config| {
        config.policy = policy;
        config.timeout = Some(BOUND);
    });
    connect_with(at(&dir.socket()), config).wait().expect("connected")
}

// covers: CUST-B-001, CUST-B-005, S2-08, S2-44
#[test]
fn many_clients_of_both_eras_are_independent() {
    let _limit = limit();
    let dir = Dir::new("many");
    let server = serve_unix(router().0, dir.socket()).wait().expect("served");
    let clients: Vec<Client> =
        [Policy::Modern, Policy::Legacy, Policy::Modern].map(|policy| connected(&dir, policy)).into();
    let large = "x".repeat(1 << 20);
    for client in &clients {
        assert_eq!(add(client).as_deref(), Ok("3"));
        let echoed =
            client.call(tools::call("echo").arguments(&Text { text: large.clone() })).wait().expect("an answer");
        assert!(echoed.first_text() == Some(&large), "something else came back");
    }
    // Each is answered only when all have called.
    let met: Vec<_> =
        clients.iter().map(|client| client.start(tools::call("meet").arguments(&Count { to: 3 }))).collect();
    met.into_iter().for_each(|met| assert_eq!(text(met.wait()), "met"));
    // One is cut inside a line, another closes in order.
    let mut rude = UnixStream::connect(dir.socket()).expect("connected");
    rude.write_all(b"{\"jsonrpc\":").expect("written");
    until(|| server.stats().channels == 4);
    drop(rude);
    assert_eq!(clients[0].close().wait(), Termination::Requested);
    until(|| server.stats().channels == 2);
    assert!(clients[1..].iter().all(|client| add(client).as_deref() == Ok("3")));
}

// covers: S2-08, S2-44, S0-27, B-141
#[test]
fn stop_ends_every_connection_and_removes_the_socket() {
    let _limit = limit();
    let dir = Dir::new("stop");
    let server = serve_unix(router().0, dir.socket()).wait().expect("served");
    let client = connected(&dir, Policy::Modern);
    let mut idle = UnixStream::connect(dir.socket()).expect("connected");
    until(|| server.stats().channels == 2);
    let began = Instant::now();
    scope(|scope| {
        scope.spawn(|| over(&server));
        stop(&server, Duration::from_millis(100));
    });
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    assert_eq!((server.stats().channels, dir.socket().exists()), (0, false));
    assert_eq!(idle.read(&mut [0; 8]).expect("ended"), 0);
    assert!(add(&client).is_err());
    assert!(matches!(connect(at(&dir.socket())).wait(), Err(ConnectError::Negotiation(_))));
}

// covers: S2-44
#[test]
fn stop_lets_running_requests_end() {
    let _limit = limit();
    let dir = Dir::new("grace");
    let (router, seen) = router();
    let server = serve_unix(router, dir.socket()).wait().expect("served");
    let client = connected(&dir, Policy::Modern);
    let runs = client.start(tools::call("meet").arguments(&Count { to: 2 }));
    seen.wait(|counts| counts.met == 1);
    scope(|scope| {
        scope.spawn(|| stop(&server, BOUND));
        until(|| !dir.socket().exists());
        seen.count(|counts| counts.met += 1);
        assert_eq!(text(runs.wait()), "met");
    });
}

// covers: S2-44
#[test]
fn dropping_the_server_ends_its_connections_at_once() {
    let _limit = limit();
    with_endless(|tool| {
        let dir = Dir::new(tool);
        let (router, seen) = router();
        let server = serve_unix(router, dir.socket()).wait().expect("served");
        let client = connected(&dir, Policy::Modern);
        let pending = client.start(tools::call(tool));
        seen.wait(|counts| counts.begun == 1);
        drop(server);
        assert!(!dir.socket().exists());
        assert!(matches!(pending.wait(), Err(CallError::Closed { .. })));
        seen.wait(|counts| counts.cancelled == 1);
    });
}

// covers: S2-44
#[test]
fn only_an_abandoned_socket_is_replaced() {
    let _limit = limit();
    let dir = Dir::new("left");
    // The remains of a killed server.
    drop(UnixListener::bind(dir.socket()).expect("bound"));
    let server = serve_unix(router().0, dir.socket()).wait().expect("served");
    let mode = std::fs::metadata(dir.socket()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(add(&connected(&dir, Policy::Modern)).as_deref(), Ok("3"));
    let in_use = serve_unix(router().0, dir.socket()).wait().expect_err("in use");
    assert_eq!(in_use.kind(), ErrorKind::AddrInUse);
    assert!(in_use.to_string().contains(dir.socket().to_str().expect("unicode")), "{in_use}");
    assert_eq!(add(&connected(&dir, Policy::Modern)).as_deref(), Ok("3"));
    drop(server);
    assert!(!dir.socket().exists());

    std::fs::write(dir.socket(), "a file of someone").expect("written");
    let taken = serve_unix(router().0, dir.socket()).wait().expect_err("not a socket");
    assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    assert_eq!(std::fs::read(dir.socket()).expect("it is there"), b"a file of someone");
}

#[test]
fn link_at_the_path_is_not_followed() {
    let _limit = limit();
    let dir = Dir::new("followed");
    let left = dir.0.join("left");
    drop(UnixListener::bind(&left).expect("bound"));
    for target in [left.clone(), dir.0.join("nothing")] {
        symlink(&target, dir.socket()).expect("a link");
        let taken = serve_unix(router().0, dir.socket()).wait().expect_err("a link is there");
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        assert_eq!(std::fs::read_link(dir.socket()).expect("a link"), target);
        std::fs::remove_file(dir.socket()).expect("removed");
    }
    assert!(left.exists() && !dir.0.join("nothing").exists());
}

#[test]
fn socket_that_replaced_this_one_is_not_removed() {
    let _limit = limit();
    let dir = Dir::new("place");
    let server = serve_unix(router().0, dir.socket()).wait().expect("served");
    let kept = dir.0.join("kept");
    std::fs::rename(dir.socket(), &kept).expect("moved");
    let other = UnixListener::bind(dir.socket()).expect("bound");
    // It is served, so the accepting thread runs and waits for the next connection.
    let mut idle = UnixStream::connect(&kept).expect("connected");
    idle.write_all(PING.as_bytes()).expect("written");
    BufReader::new(&idle).read_line(&mut String::new()).expect("an answer");
    stop(&server, Duration::ZERO);
    assert!(dir.socket().exists());
    // Nothing listens any more, although no connection could wake the accepting thread.
    let refused = UnixStream::connect(&kept).expect_err("nothing listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(idle.read(&mut [0; 8]).expect("ended"), 0);
    drop(other);
}

#[test]
fn stopped_server_leaves_its_path_to_its_successor() {
    let _limit = limit();
    let dir = Dir::new("after");
    let first = serve_unix(router().0, dir.socket()).wait().expect("served");
    stop(&first, Duration::ZERO);
    // Its file may have the same number as that of the first.
    let _second = serve_unix(router().0, dir.socket()).wait().expect("served");
    drop(first);
    assert_eq!(add(&connected(&dir, Policy::Modern)).as_deref(), Ok("3"));
}

/// Returns the credentials that the server sees of this process.
fn own_credentials() -> Credentials {
    let pid = std::process::id();
    Credentials { pid: Some(pid), uid: process::getuid().as_raw(), gid: process::getgid().as_raw() }
}

// covers: S3-45
#[test]
fn handler_sees_the_credentials_of_its_peer() {
    let _limit = limit();
    let dir = Dir::new("credentials");
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let router = Router::new("who", "1").tool(tool("who"), move |cx, (): ()| {
        tell.lock().expect("no panic").send(cx.context().peer.clone()).expect("it is waited for");
        Ok("seen")
    });
    let _server = serve_unix(router, dir.socket()).wait().expect("served");
    call(&connected(&dir, Policy::Modern), "who").expect("a result");
    let mut peer = Peer::unix(Some(own_credentials()));
    peer.connection = Some(1);
    assert_eq!(told.recv_timeout(BOUND).as_deref(), Ok(&peer));
}

/// Creates a server that admits connections with these options. Its tool `who` returns the
/// principal of a request.
fn guarded(dir: &Dir, options: ServerOptions) -> Server {
    let router = Router::new("guarded", "1").tool(tool("who"), |cx, (): ()| {
        Ok(cx.context().principal.as_ref().map_or("anonymous".to_owned(), |who| who.as_str().to_owned()))
    });
    let router = router.configure(|config| config.limits.server.admit_timeout = Duration::from_secs(2));
    serve_unix((router, options), dir.socket()).wait().expect("served")
}

// covers: S3-45
#[test]
fn connection_is_admitted_by_the_user_of_its_peer() {
    let _limit = limit();
    let dir = Dir::new("admitted");
    let allowed = Arc::new(AtomicU32::new(own_credentials().uid));
    let uid = Arc::clone(&allowed);
    let options = ServerOptions::new().on_admit(move |head, peer| match peer.credentials {
        _ if head.is_some() => panic!("a connection has no head"),
        Some(process) if process.uid == uid.load(Ordering::SeqCst) => Admission::Accept(Some("ada".into())),
        Some(_) => Admission::Forbidden(None),
        None => panic!("no credentials"),
    });
    let server = guarded(&dir, options);
    for policy in [Policy::Modern, Policy::Legacy] {
        assert_eq!(text(call(&connected(&dir, policy), "who")), "ada");
    }
    // From now on the principal of connections is another user.
    allowed.fetch_add(1, Ordering::SeqCst);
    let mut raw = UnixStream::connect(dir.socket()).expect("connected");
    // The write may fail because the connection is already closed.
    let _ = raw.write_all(PING.as_bytes());
    let mut said = Vec::new();
    // The kind of end depends on whether the written bytes were read.
    let _ = raw.read_to_end(&mut said);
    assert_eq!(String::from_utf8_lossy(&said), "");
    assert_eq!(server.stats().diagnostics.get(&DiagnosticKind::NotAdmitted), Some(&1));
    let refused = connect(at(&dir.socket())).wait().expect_err("another user");
    assert!(matches!(refused, ConnectError::Negotiation(_)), "{refused}");
}

// covers: S3-45
#[test]
fn connection_is_not_read_before_it_is_admitted() {
    let _limit = limit();
    scope(|scope| {
        scope.spawn(|| unread_before_admission(false));
        unread_before_admission(true);
    });
}

fn unread_before_admission(is_async: bool) {
    let dir = Dir::new(if is_async { "unread" } else { "unread-sync" });
    let (tell, asked) = mpsc::channel();
    let (open, gate) = smol::channel::unbounded::<()>();
    let decision = |opened| if opened { Admission::Accept(None) } else { Admission::Forbidden(None) };
    let options = if is_async {
        ServerOptions::new().on_admit_async(move |head, _| {
            assert_eq!(head, None, "a connection has no head");
            tell.send(()).expect("it is waited for");
            let gate = gate.clone();
            async move { decision(gate.recv().await.is_ok()) }
        })
    } else {
        ServerOptions::new().on_admit(move |_, _| {
            tell.send(()).expect("it is waited for");
            decision(gate.recv_blocking().is_ok())
        })
    };
    let server = guarded(&dir, options);
    let mut client = UnixStream::connect(dir.socket()).expect("connected");
    client.write_all(format!("{INITIALIZE}\n").as_bytes()).expect("written");
    asked.recv_timeout(BOUND).expect("it is asked");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(server.stats().traffic.bytes_in, 0);
    open.try_send(()).expect("it waits");
    let mut answer = String::new();
    BufReader::new(&client).read_line(&mut answer).expect("an answer");
    assert!(answer.contains(r#""protocolVersion":"2025-06-18""#), "{answer}");
    // There is no decision on the next one: it is closed at the time limit.
    let mut late = UnixStream::connect(dir.socket()).expect("connected");
    assert_eq!(late.read(&mut [0; 8]).expect("an end"), 0);
    drop(open);
}

// covers: B-145, B-094
#[test]
fn connect_without_listener_fails_at_once() {
    let _limit = limit();
    let dir = Dir::new("anonymous");
    let failed = connect(at(&dir.socket())).wait().expect_err("nothing listens");
    assert!(failed.to_string().contains("socket"), "{failed}");
    drop(UnixListener::bind(dir.socket()).expect("bound"));
    assert!(connect(at(&dir.socket())).wait().is_err());
}

// covers: B-145, B-148
#[test]
fn stuck_server_keeps_its_socket_and_delays_no_other_server() {
    let _limit = limit();
    let dir = Dir::new("stuck");
    let stuck = UnixListener::bind(dir.socket()).expect("bound");
    // Fills the queue of the listener, so that a further connection waits.
    let address = SocketAddrUnix::new(dir.socket()).expect("a path");
    let mut waiting = Vec::new();
    let full = loop {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None);
        let socket = socket.expect("a socket");
        match net::connect(&socket, &address) {
            Ok(()) => waiting.push(socket),
            Err(e) => break e,
        }
    };
    assert_eq!((full, waiting.is_empty()), (Errno::AGAIN, false));
    let began = Instant::now();
    let in_use = serve_unix(router().0, dir.socket()).wait().expect_err("in use");
    assert_eq!(in_use.kind(), ErrorKind::AddrInUse);
    let config = ClientOptions::new().set(|config| {
        config.limits.frame.open_timeout = Duration::from_millis(200);
    });
    assert!(connect_with(at(&dir.socket()), config).wait().is_err());
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    drop((stuck, waiting));
}

// covers: B-142
#[test]
fn broken_connection_is_not_a_server_error() {
    let _limit = limit();
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let (input, output) = pair(theirs);
    let serving = spawn(move || serve(router().0, input, output).wait());
    ours.write_all(format!("{INITIALIZE}\n").as_bytes()).expect("written");
    ours.read_exact(&mut [0; 1]).expect("an answer");
    // The unread bytes make this a reset.
    drop(ours);
    serving.join().expect("no panic").expect("an end in order");
}

// covers: B-142
#[test]
fn faulty_client_does_not_affect_other_clients() {
    let _limit = limit();
    let dir = Dir::new("rude");
    let _server = serve_unix(router().0, dir.socket()).wait().expect("served");
    let client = connected(&dir, Policy::Modern);
    let mut rude = UnixStream::connect(dir.socket()).expect("connected");
    rude.write_all(format!("nonsense\n\0\n{INITIALIZE}\n").as_bytes()).expect("written");
    rude.read_exact(&mut [0; 1]).expect("an answer");
    // The unread bytes make this a reset.
    drop(rude);
    assert_eq!(add(&client).as_deref(), Ok("3"));
}
