//! Who may make a request: the application decides by its head and its peer.

use super::raw::{answer, call, dial, listening, rest, say};
use super::*;
use std::future::{pending, ready};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Creates a server that has a tool that returns the principal.
fn who() -> Router {
    let router = Router::new("guarded", "1").tool(tool("who"), |cx, (): ()| {
        let context = cx.context();
        let agent = context.http.as_ref().and_then(|head| head.headers.get("User-Agent").map(str::to_owned));
        Ok(format!("{:?} with {:?}", context.principal, agent))
    });
    router.configure(|config| config.limits.server.admit_timeout = Duration::from_secs(3))
}

fn token(head: Option<&RequestHead>) -> Option<&str> {
    head?.headers.get("Authorization")
}

/// Admits `ada`. `None` if it does not decide in time.
fn decide(token: Option<&str>) -> Option<Admission> {
    Some(match token {
        Some("Bearer ada") => Admission::Accept(Some(Principal("ada".into()))),
        Some("Bearer weak") => Admission::Forbidden(Some("Bearer error=\"insufficient_scope\"".into())),
        Some("Bearer boom") => panic!("on purpose"),
        Some("Bearer slow") => return None,
        _ => Admission::Unauthorized("Bearer realm=\"calc\"".into()),
    })
}

// covers: S3-45, HTTP-S-006, SHTTP-S-006
#[test]
fn request_is_admitted_or_refused_by_its_head() {
    let blocks = ServerOptions::new().threads(2).on_admit(|head, _peer| {
        decide(token(head)).unwrap_or_else(|| {
            std::thread::park_timeout(Duration::from_secs(6));
            Admission::Accept(None)
        })
    });
    let waits = ServerOptions::new().on_admit_async(|head, _peer| async move {
        yield_once().await;
        match decide(token(head.as_deref())) {
            Some(admission) => admission,
            None => pending().await,
        }
    });
    let _limit = limit();
    std::thread::scope(|scope| {
        for options in [blocks, waits] {
            scope.spawn(|| decides_by_head(options));
        }
    });
}

fn decides_by_head(options: ServerOptions) {
    let server = listening(who(), options);
    for (token, status, told) in [
        ("ada", "200", r#"Some(Principal(\"ada\")) with Some(\"t/1\")"#),
        ("weak", "403", "insufficient_scope"),
        ("boom", "403", "\r\n"),
        ("slow", "503", "\r\n"),
        ("eve", "401", "WWW-Authenticate: Bearer realm=\"calc\""),
    ] {
        let mut stream = dial(&server);
        let fields = format!("User-Agent: t/1\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n");
        say(&mut stream, &call("who", "{}", &fields));
        let answer = rest(&mut stream);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{token}: {answer}");
        assert!(answer.to_lowercase().contains(&told.to_lowercase()), "{token}: {answer}");
    }
}

#[test]
fn handlers_and_admission_see_the_client_address() {
    let (tell, told) = mpsc::channel();
    let tells = tell.clone();
    let at_once = ServerOptions::new().on_admit(move |_, peer| {
        drop(tell.send(peer.clone()));
        Admission::Accept(None)
    });
    let later = ServerOptions::new().on_admit_async(move |_, peer| {
        drop(tells.send(peer));
        ready(Admission::Accept(None))
    });
    let _limit = limit();
    for options in [at_once, later] {
        let who = tool("who");
        let router = Router::new("who", "1").tool(who, |cx, ()| Ok(format!("{:?}", cx.context().peer.name)));
        let server = listening(router, options);
        let mut stream = dial(&server);
        let address = stream.local_addr().expect("an address");
        for _ in 0..2 {
            say(&mut stream, &call("who", "{}", ""));
            let answer = answer(&mut stream);
            assert!(answer.contains(&format!(r#"Some(\"{address}\")"#)), "{answer}");
            let mut peer = Peer::tcp(address);
            peer.connection = Some(1);
            assert_eq!(told.recv_timeout(BOUND), Ok(peer));
        }
    }
}

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
fn undecided() -> (Server, Arc<Asked>) {
    let asked = Arc::<Asked>::default();
    let asks = Arc::clone(&asked);
    let options = ServerOptions::new().on_admit_async(move |_, _| {
        asks.begun.fetch_add(1, Ordering::SeqCst);
        let question = Question(asks.clone());
        async move {
            let _question = question;
            pending::<Admission>().await
        }
    });
    let router = who().configure(|config| config.limits.server.admit_timeout = Duration::from_secs(600));
    (listening(router, options), asked)
}

// covers: B-141
#[test]
fn stopped_server_waits_for_no_admission() {
    let _limit = limit();
    let (server, asked) = undecided();
    let mut stream = dial(&server);
    say(&mut stream, &call("who", "{}", ""));
    until(|| asked.begun.load(Ordering::SeqCst) == 1);
    stop(&server, Duration::ZERO);
    assert!(!STOP_AWAITS_CALLBACKS || asked.dropped.load(Ordering::SeqCst) == 1, "it is asked still");
    until(|| asked.dropped.load(Ordering::SeqCst) == 1);
}

// covers: B-174, B-149
#[test]
fn disconnect_drops_the_pending_admission() {
    let _limit = limit();
    let (server, asked) = undecided();
    for n in 1..=3 {
        let mut stream = dial(&server);
        say(&mut stream, &call("who", "{}", ""));
        until(|| asked.begun.load(Ordering::SeqCst) == n);
        assert_eq!(asked.dropped.load(Ordering::SeqCst), n - 1);
        drop(stream);
        until(|| asked.dropped.load(Ordering::SeqCst) == n);
    }
}
