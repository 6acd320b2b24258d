//! Unix sockets: many clients of one socket, and files that are in the way.

use crate::calc::{Add, Count, Nothing, Seen, router};
use crate::common::{run, until};
use mcp_proto::CallError;
use mcp_proto::error::DiagnosticKind;
use mcp_smol::{
    Admission, ClientOptions, Credentials, Peer, Policy, Router, Server, ServerOptions, Service, UnixSocket, connect,
    connect_driven, connect_with, serve, serve_unix, tool, tools,
};
use rustix::process;
use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::net::unix::UnixStream;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Returns an unused path for this test.
fn free(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("mcp-smol-{}-{name}.sock", std::process::id()));
    drop(std::fs::remove_file(&path));
    path
}

fn to(path: &Path) -> UnixSocket {
    UnixSocket(path.to_str().expect("unicode").into())
}

async fn serving(seen: &Seen, path: &Path) -> Server {
    serve_unix(router(seen), path).await.expect("a socket")
}

// covers: S2-44
#[test]
fn clients_of_both_eras_share_one_socket() {
    run(async {
        let path = free("many");
        let _server = serving(&Seen::default(), &path).await;
        let mode = std::fs::metadata(&path).expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it is ours alone");
        let mut clients = Vec::new();
        for n in 0..16 {
            let policy = if n % 2 == 0 { Policy::Modern } else { Policy::Legacy };
            let config = ClientOptions::new().set(move |config| config.policy = policy);
            let (client, driver) = connect_driven(to(&path), config).expect("a target");
            smol::spawn(driver).detach();
            clients.push(client);
        }
        // Each is answered only when all have called.
        let met: Vec<_> =
            clients.iter().map(|client| client.start(tools::call("meet").arguments(&Count { count: 16 }))).collect();
        for met in met {
            assert_eq!(met.await.expect("an answer").first_text(), Some("met"));
        }
        drop(clients.split_off(1));
        let sum = clients[0].call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
        assert_eq!(sum.first_text(), Some("3"), "the others are gone");
        clients[0].close().await;
    });
}

// covers: S2-44
#[test]
fn stop_lets_running_requests_end_and_removes_the_socket() {
    run(async {
        let (seen, path) = (Seen::default(), free("stop"));
        let server = serving(&seen, &path).await;
        let client = connect(to(&path)).await.expect("connected");
        let runs = client.start(tools::call("meet").arguments(&Count { count: 2 }));
        until(|| seen.arrived.load(Ordering::SeqCst) == 1).await;
        let stopping = smol::spawn(async move {
            server.stop(Duration::from_secs(20)).await;
            server.wait().await;
        });
        until(|| !path.exists()).await;
        seen.arrived.fetch_add(1, Ordering::SeqCst);
        assert_eq!(runs.await.expect("an answer").first_text(), Some("met"));
        stopping.await;
        connect(to(&path)).await.expect_err("nothing listens");
    });
}

#[test]
fn stopped_server_leaves_its_path_to_its_successor() {
    run(async {
        let (seen, path) = (Seen::default(), free("after"));
        let first = serving(&seen, &path).await;
        first.stop(Duration::ZERO).await;
        // Its file may have the same number as that of the first.
        let second = serving(&seen, &path).await;
        drop(first);
        let client = connect(to(&path)).await.expect("connected");
        let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
        assert_eq!(sum.first_text(), Some("3"));
        drop(second);
    });
}

// covers: S2-44
#[test]
fn dropping_the_server_ends_its_connections_at_once() {
    run(async {
        let (seen, path) = (Seen::default(), free("drop"));
        let server = serving(&seen, &path).await;
        let client = connect(to(&path)).await.expect("connected");
        let pending = client.start(tools::call("hang").arguments(&Nothing {}));
        until(|| seen.entered.load(Ordering::SeqCst) == 1).await;
        drop(server);
        assert!(!path.exists());
        assert!(matches!(pending.await, Err(CallError::Closed { .. })));
        until(|| seen.dropped.load(Ordering::SeqCst) == 1).await;
    });
}

// covers: S2-44
#[test]
fn only_an_abandoned_socket_is_replaced() {
    run(async {
        let path = free("taken");
        drop(UnixListener::bind(&path).expect("a socket"));
        assert!(path.exists(), "left behind");
        let server = serving(&Seen::default(), &path).await;
        let refused = serve_unix(router(&Seen::default()), &path).await.expect_err("somebody listens");
        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
        assert!(refused.to_string().contains(path.to_str().expect("unicode")), "{refused}");
        let client = connect(to(&path)).await.expect("the first still serves");
        client.close().await;
        // Another file takes its place, which this server must not remove.
        std::fs::remove_file(&path).expect("a socket");
        let other = UnixListener::bind(&path).expect("a socket");
        drop(server);
        assert!(path.exists());
        drop(other);
        std::fs::remove_file(&path).expect("a socket");
        std::fs::write(&path, "no socket").expect("a file");
        serve_unix(router(&Seen::default()), &path).await.expect_err("a file is there");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "no socket");
        std::fs::remove_file(&path).expect("a file");
    });
}

#[test]
fn link_at_the_path_is_not_followed() {
    run(async {
        let (path, left, nothing) = (free("link"), free("left"), free("nothing"));
        drop(UnixListener::bind(&left).expect("a socket"));
        for target in [&left, &nothing] {
            symlink(target, &path).expect("a link");
            let taken = serve_unix(router(&Seen::default()), &path).await.expect_err("a link is there");
            assert_eq!(taken.kind(), ErrorKind::AddrInUse);
            assert_eq!(&std::fs::read_link(&path).expect("a link"), target);
            std::fs::remove_file(&path).expect("removed");
        }
        assert!(left.exists() && !nothing.exists());
        std::fs::remove_file(&left).expect("removed");
    });
}

/// Returns the credentials that the server sees of this process.
fn own_credentials() -> Credentials {
    let pid = std::process::id();
    Credentials { pid: Some(pid), uid: process::getuid().as_raw(), gid: process::getgid().as_raw() }
}

// covers: S3-45
#[cfg(target_os = "linux")]
#[test]
fn handler_sees_the_credentials_of_its_peer() {
    run(async {
        let path = free("credentials");
        let (tell, told) = smol::channel::unbounded();
        let router = Router::new("who", "1").tool_async(tool("who"), move |cx, _: Nothing| {
            drop(tell.try_send(cx.context().peer.clone()));
            std::future::ready(Ok("seen"))
        });
        let _server = serve_unix(router, &path).await.expect("a socket");
        let client = connect(to(&path)).await.expect("connected");
        client.call(tools::call("who").arguments(&Nothing {})).await.expect("a result");
        let mut peer = Peer::unix(Some(own_credentials()));
        peer.connection = Some(1);
        assert_eq!(told.recv().await, Ok(peer));
    });
}

/// Creates a server that admits connections with this function, and has a tool that returns the
/// principal of a request.
async fn guarded<F, R>(path: &Path, admit: F) -> Server
where
    F: Fn(Peer) -> R + Send + Sync + 'static,
    R: Future<Output = Admission> + Send + 'static,
{
    let router = Router::new("guarded", "1").tool_async(tool("who"), |cx, _: Nothing| async move {
        Ok(cx.context().principal.as_ref().map_or("nobody".to_owned(), |who| who.as_str().to_owned()))
    });
    let router = router.configure(|config| config.limits.server.admit_timeout = Duration::from_secs(2));
    let service = Service::from((
        router,
        ServerOptions::new().on_admit_async(move |head, peer| {
            assert_eq!(head, None, "a connection has no head");
            admit(peer)
        }),
    ));
    serve_unix(service, path).await.expect("a socket")
}

// covers: S3-45
#[cfg(target_os = "linux")]
#[test]
fn connection_is_admitted_by_the_user_of_its_peer() {
    run(async {
        let path = free("admitted");
        let allowed = Arc::new(AtomicU32::new(own_credentials().uid));
        let uid = allowed.clone();
        let server = guarded(&path, move |peer| {
            let admission = match peer.credentials {
                Some(process) if process.uid == uid.load(Ordering::SeqCst) => Admission::Accept(Some("ada".into())),
                Some(_) => Admission::Forbidden(None),
                None => panic!("no credentials"),
            };
            std::future::ready(admission)
        })
        .await;
        for policy in [Policy::Modern, Policy::Legacy] {
            let config = ClientOptions::new().set(move |config| config.policy = policy);
            let client = connect_with(to(&path), config).await.expect("connected");
            let who = client.call(tools::call("who").arguments(&Nothing {})).await.expect("a result");
            assert_eq!(who.first_text(), Some("ada"));
        }
        // From now on the principal of connections is another user.
        allowed.fetch_add(1, Ordering::SeqCst);
        let mut raw = UnixStream::connect(&path).await.expect("connected");
        // The write may fail because the connection is already closed.
        let _ = raw.write_all(format!("{INITIALIZE}\n").as_bytes()).await;
        let mut said = Vec::new();
        // The kind of end depends on whether the written bytes were read.
        let _ = raw.read_to_end(&mut said).await;
        assert_eq!(String::from_utf8_lossy(&said), "");
        assert_eq!(server.stats().diagnostics.get(&DiagnosticKind::NotAdmitted), Some(&1));
        connect(to(&path)).await.expect_err("another user");
    });
}

// covers: S3-45
#[test]
fn connection_is_not_read_before_it_is_admitted() {
    run(async {
        let path = free("unread");
        let (tell, asked) = smol::channel::unbounded();
        let (open, gate) = smol::channel::unbounded::<()>();
        let server = guarded(&path, move |_| {
            let _ = tell.try_send(());
            let gate = gate.clone();
            async move {
                match gate.recv().await {
                    Ok(()) => Admission::Accept(None),
                    Err(_) => Admission::Forbidden(None),
                }
            }
        })
        .await;
        let mut client = UnixStream::connect(&path).await.expect("connected");
        client.write_all(format!("{INITIALIZE}\n").as_bytes()).await.expect("written");
        asked.recv().await.expect("it is asked");
        smol::Timer::after(Duration::from_millis(50)).await;
        assert_eq!(server.stats().traffic.bytes_in, 0);
        open.send(()).await.expect("it waits");
        let mut answer = [0; 16];
        client.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, br#"{"jsonrpc":"2.0""#);
        // There is no decision on the next one: it is closed at the time limit.
        let mut late = UnixStream::connect(&path).await.expect("connected");
        assert_eq!(late.read(&mut [0; 8]).await.expect("an end"), 0);
    });
}

/// A request that is answered in every state.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

// covers: B-142
#[test]
fn broken_connection_is_not_a_server_error() {
    run(async {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let serving = smol::spawn(serve(router(&Seen::default()), theirs.clone(), theirs));
        ours.write_all(format!("{INITIALIZE}\n").as_bytes()).await.expect("written");
        ours.read_exact(&mut [0; 1]).await.expect("an answer");
        // The unread bytes make this a reset.
        drop(ours);
        serving.await.expect("an end in order");
    });
}

// covers: B-142
#[test]
fn faulty_client_does_not_affect_other_clients() {
    run(async {
        let (seen, path) = (Seen::default(), free("rude"));
        let _server = serving(&seen, &path).await;
        let client = connect(to(&path)).await.expect("connected");
        let mut rude = UnixStream::connect(&path).await.expect("connected");
        rude.write_all(format!("nonsense\n\0\n{INITIALIZE}\n").as_bytes()).await.expect("written");
        rude.read_exact(&mut [0; 1]).await.expect("an answer");
        // The unread bytes make this a reset.
        drop(rude);
        let sum = client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).await.expect("an answer");
        assert_eq!(sum.first_text(), Some("3"));
        client.close().await;
    });
}
