//! The example behind a web framework as a user runs it, with the client of an adapter.

#[path = "../../examples/axum/routes.rs"]
mod routes;

use axum::extract::connect_info::MockConnectInfo;
use axum::serve::Listener;
use mcp_blocking::{ClientOptions, connect_with};
use mcp_driver::ServerOptions;
use mcp_proto::client::{Policy, Termination};
use mcp_proto::server::Event;
use mcp_proto::{CallError, Progress, Router, ToolError, tool, tools};
use mcp_tests::adapters::Adapter;
use mcp_tests::certificates::{Authority, Leaf};
use std::future::pending;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Maximum time of a wait for a condition.
const BOUND: Duration = Duration::from_secs(20);

/// Tells when it is dropped: the handler that holds it was cancelled.
struct Told(std::sync::mpsc::Sender<&'static str>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

/// A server of the routes. Dropping it ends the server.
struct Served {
    address: SocketAddr,
    told: Receiver<&'static str>,
    _runtime: Runtime,
}

fn serve() -> Served {
    serve_with(None)
}

/// A listener with TLS. It passes over a client whose handshake fails.
struct Secured(TcpListener, TlsAcceptor);

impl Listener for Secured {
    type Io = TlsStream<tokio::net::TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.0).await;
            if let Ok(stream) = self.1.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Serves with TLS, if there is an authority for it. The server would also speak HTTP/2.
fn serve_with(authority: Option<&Authority>) -> Served {
    let (tell, told) = channel();
    let (sessions, handlers) = (tell.clone(), std::sync::Mutex::new(tell));
    let router = Router::new("routed", "1.0")
        .configure(|config| config.limits.frame.max_request_body = 10_000)
        .tool_async(tool("tick"), |_cx, ()| async { Ok("tock") })
        .tool(tool("blocks"), |_cx, ()| Ok("x".repeat(1 << 20)))
        .tool_async(tool("waits"), move |cx, ()| {
            let told = Told(handlers.lock().expect("no panic").clone());
            async move {
                let _ = cx.progress(Progress::new(0.0));
                let _told = told;
                pending::<Result<(), ToolError>>().await
            }
        });
    let options = ServerOptions::new().on_event(move |event| {
        let told = match event {
            Event::SessionOpened(_) => "opened",
            Event::SessionEnded(..) => "ended",
            _ => return,
        };
        let _ = sessions.send(told);
    });
    let runtime = Runtime::new().expect("a runtime");
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("listens");
    let address = listener.local_addr().expect("an address");
    let routes = runtime.block_on(async { routes::routes((router, options)) }).expect("a seed");
    match authority {
        Some(authority) => {
            let mut config = Arc::unwrap_or_clone(authority.server(&Leaf::default()));
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            let listener = Secured(listener, TlsAcceptor::from(Arc::new(config)));
            let routes = routes.layer(MockConnectInfo(address));
            runtime.spawn(async { axum::serve(listener, routes).await });
        }
        None => {
            let service = routes.into_make_service_with_connect_info::<SocketAddr>();
            runtime.spawn(async { axum::serve(listener, service).await });
        }
    }
    Served { address, told, _runtime: runtime }
}

impl Served {
    fn client(&self, policy: Policy) -> mcp_blocking::Client {
        let options = ClientOptions::new().set(move |config| config.policy = policy);
        connect_with(format!("http://{}/mcp", self.address), options).expect("connected")
    }

    /// Sends a request, and returns the response in lower case.
    fn asked(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("connected");
        stream.set_read_timeout(Some(BOUND)).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("writable");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("a response, and its end");
        response.to_lowercase()
    }

    fn posted(&self, fields: &str, body: &str) -> String {
        let length = body.len();
        self.asked(&format!(
            "POST /mcp HTTP/1.1\r\n{fields}Content-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ))
    }
}

#[test]
fn calls_of_both_eras_work_beside_the_old_route() {
    let served = serve();
    for policy in [Policy::Modern, Policy::Legacy] {
        let client = served.client(policy);
        let first = |name: &str| client.call(tools::call(name)).expect("it succeeds").first_text().map(str::to_owned);
        assert_eq!(first("tick").as_deref(), Some("tock"));
        assert_eq!(first("blocks").map(|text| text.len()), Some(1 << 20));
        let health = served.asked("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert!(health.starts_with("http/1.1 200 ") && health.ends_with("fine"), "{health}");
        if policy == Policy::Legacy {
            assert_eq!(served.told.recv_timeout(BOUND), Ok("opened"));
        }
        assert_eq!(client.close(), Termination::Requested);
    }
    assert_eq!(served.told.recv_timeout(BOUND), Ok("ended"));
}

/// hyper ends TLS with a certificate of an authority that only this client trusts.
#[test]
fn clients_of_both_eras_reach_hyper_over_tls() {
    let authority = Authority::new("the tests");
    let served = serve_with(Some(&authority));
    let url = format!("https://localhost:{}/mcp", served.address.port());
    let options = |policy, authority: &Authority| {
        ClientOptions::new().tls(authority.client()).set(move |config| config.policy = policy)
    };
    for adapter in Adapter::ALL {
        for policy in [Policy::Modern, Policy::Legacy] {
            let client = adapter.connect(url.as_str(), options(policy, &authority)).expect("connected");
            let first =
                |name: &str| client.call(tools::call(name)).expect("it succeeds").first_text().map(str::to_owned);
            assert_eq!(first("tick").as_deref(), Some("tock"));
            assert_eq!(first("blocks").map(|text| text.len()), Some(1 << 20));
            // An event arrives while the call runs.
            let (tell, begun) = channel();
            let mut call =
                client.start(tools::call("waits").on_progress(move |_| tell.send(()).expect("the test waits")));
            while begun.try_recv().is_err() {
                call = call.wait_timeout(Duration::from_millis(5)).expect_err("it waits");
            }
            call.cancel(None);
            assert!(matches!(call.wait(), Err(CallError::Cancelled { .. })));
            client.close().expect("nothing is left");
        }
        let refused = adapter.connect(url.as_str(), options(Policy::Auto, &Authority::new("another")));
        assert!(refused.is_err_and(|why| why.to_string().contains("no trusted authority")));
    }
}

#[test]
fn dropped_response_cancels_its_request() {
    let served = serve();
    let client = served.client(Policy::Modern);
    let (tell, begun) = channel();
    let call = client.start(tools::call("waits").on_progress(move |_| tell.send(()).expect("the test waits")));
    let id = call.id().expect("it runs");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| call.wait());
        begun.recv_timeout(BOUND).expect("it has begun");
        client.cancel(id, None);
        assert!(matches!(waits.join().expect("no panic"), Err(CallError::Cancelled { .. })));
    });
    assert_eq!(served.told.recv_timeout(BOUND), Ok("dropped"));
    client.close();
}

#[test]
fn foreign_and_large_requests_are_refused() {
    let served = serve();
    let response = served.posted("Host: evil.example\r\n", "{}");
    assert!(response.starts_with("http/1.1 403 "), "{response}");
    let response = served.posted("Host: localhost\r\nOrigin: http://evil.example\r\n", "{}");
    assert!(response.starts_with("http/1.1 403 "), "{response}");
    let response = served.posted("Host: localhost\r\n", &"x".repeat(20_000));
    assert!(response.starts_with("http/1.1 413 "), "{response}");
}
