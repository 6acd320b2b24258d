//! Admissions that are pending when their request or server ends.

use crate::common::{run, until};
use mcp_smol::{Admission, Router, ServerOptions, Service, serve_http};
use smol::io::AsyncWriteExt;
use smol::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const HEAD: &str =
    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n";

/// How often the application was asked, and how often its future was dropped.
#[derive(Default)]
struct Asked {
    begun: AtomicUsize,
    dropped: AtomicUsize,
}

/// One pending admission.
struct Question(Arc<Asked>);

impl Drop for Question {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Creates a server whose application never decides, with a long time limit.
fn undecided(asked: &Arc<Asked>) -> Service {
    let router =
        Router::new("undecided", "1").configure(|config| config.limits.server.admit_timeout = Duration::from_secs(600));
    let asked = asked.clone();
    Service::from((
        router,
        ServerOptions::new().on_admit_async(move |_, _| {
            asked.begun.fetch_add(1, Ordering::SeqCst);
            let question = Question(asked.clone());
            async move {
                let _question = question;
                std::future::pending::<Admission>().await
            }
        }),
    ))
}

// covers: B-141
#[test]
fn stopped_server_waits_for_no_admission() {
    run(async {
        let asked = Arc::<Asked>::default();
        let server = serve_http(undecided(&asked), "127.0.0.1:0").await.expect("an address");
        let mut stream = TcpStream::connect(server.local_addr().expect("an address")).await.expect("connected");
        stream.write_all(HEAD.as_bytes()).await.expect("written");
        until(|| asked.begun.load(Ordering::SeqCst) == 1).await;
        server.stop(Duration::ZERO).await;
        assert_eq!(asked.dropped.load(Ordering::SeqCst), 1, "it is asked still");
    });
}

// covers: B-174, B-149
#[test]
fn disconnect_drops_the_pending_admission() {
    run(async {
        let asked = Arc::<Asked>::default();
        let server = serve_http(undecided(&asked), "127.0.0.1:0").await.expect("an address");
        for n in 1..=3 {
            let mut stream = TcpStream::connect(server.local_addr().expect("an address")).await.expect("connected");
            stream.write_all(HEAD.as_bytes()).await.expect("written");
            until(|| asked.begun.load(Ordering::SeqCst) == n).await;
            assert_eq!(asked.dropped.load(Ordering::SeqCst), n - 1);
            drop(stream);
            until(|| asked.dropped.load(Ordering::SeqCst) == n).await;
        }
    });
}
