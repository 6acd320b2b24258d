use super::*;
use alloc::string::ToString;
use std::net::ToSocketAddrs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

/// Maximum time for what happens at once.
const SOON: Duration = Duration::from_secs(20);

fn listen(host: LoopbackHost, port: Port) -> Listen {
    Listen { host, first: None, port, path: "/callback".into(), until: mcp_proto::time::Instant::ZERO }
}

/// A listener, and the URLs of the redirects.
fn bound(listen: &Listen) -> (Listener, Receiver<String>) {
    let (sender, receiver): (Sender<String>, _) = channel();
    let sender = Mutex::new(sender);
    let send = move |url| drop(sender.lock().expect("not poisoned").send(url));
    (Listener::bind(listen, send).expect("bound"), receiver)
}

fn bound_v4() -> (Listener, Receiver<String>) {
    bound(&listen(LoopbackHost::V4, Port::Any))
}

fn port(listener: &Listener) -> u16 {
    listener.addresses[0].port()
}

/// Returns a request of this target as a browser makes it.
fn request(listener: &Listener, target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\n\r\n", listener.shared.expected.host)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, SOON).expect("connected");
    stream.set_read_timeout(Some(SOON)).expect("set");
    stream
}

/// Sends a request, and returns the response up to the end of the connection.
fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).expect("written");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    response
}

/// Checks this with other ports, until it holds: another test may take a port that was free.
fn with_other_ports(check: impl Fn() -> bool) {
    assert!((0..20).any(|_| check()));
}

fn status(response: &str) -> &str {
    response.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn redirect_gets_the_result_of_the_login() {
    for (result, wanted) in [(PageResult::Accepted, "200"), (PageResult::Refused, "400"), (PageResult::Ended, "404")] {
        let (listener, urls) = bound_v4();
        let address = listener.addresses[0];
        assert_eq!(listener.uri(), format!("http://127.0.0.1:{}/callback", address.port()));
        let asked = request(&listener, "/callback?code=c&state=s");
        let browser = thread::spawn(move || exchange(address, &asked));
        assert_eq!(urls.recv_timeout(SOON), Ok(listener.uri() + "?code=c&state=s"));
        listener.finish(result);
        let response = browser.join().expect("no panic");
        assert_eq!(status(&response), wanted, "{response}");
        assert!(!response.contains("code=c"));
    }
}

#[test]
fn other_requests_get_404_and_the_listener_goes_on() {
    let (listener, urls) = bound_v4();
    let address = listener.addresses[0];
    let good = request(&listener, "/callback?state=s");
    for wrong in [
        request(&listener, "/"),
        request(&listener, "/favicon.ico"),
        good.replace("GET", "POST"),
        good.replace("127.0.0.1", "rebound.example"),
        good.replace("\r\n\r\n", &format!("\r\nX: {}\r\n\r\n", "x".repeat(100_000))),
    ] {
        assert_eq!(status(&exchange(address, &wrong)), "404", "{wrong:.99}");
    }
    // One that says nothing, and one that goes.
    let _silent = connect(address);
    drop(connect(address));
    let browser = thread::spawn(move || exchange(address, &good));
    urls.recv_timeout(SOON).expect("the redirect");
    listener.finish(PageResult::Accepted);
    assert_eq!(status(&browser.join().expect("no panic")), "200");
}

#[test]
fn ignored_redirect_gets_404_and_the_next_one_its_result() {
    let (listener, urls) = bound_v4();
    let address = listener.addresses[0];
    let browse = |target: &str| {
        let asked = request(&listener, target);
        thread::spawn(move || exchange(address, &asked))
    };
    let forged = [browse("/callback?state=forged"), browse("/callback?state=forged")];
    for _ in &forged {
        urls.recv_timeout(SOON).expect("one at a time");
        assert!(urls.try_recv().is_err());
        listener.ignore();
    }
    assert!(forged.into_iter().all(|browser| status(&browser.join().expect("no panic")) == "404"));
    let last = [browse("/callback?state=s"), browse("/callback?state=s")];
    urls.recv_timeout(SOON).expect("the redirect");
    listener.finish(PageResult::Accepted);
    // The other one may have come too late for any response.
    let pages = last.map(|browser| browser.join().unwrap_or_default());
    assert!(urls.try_recv().is_err());
    assert_eq!(pages.iter().filter(|page| status(page) == "200").count(), 1, "{pages:?}");
}

#[test]
fn listener_releases_its_port_when_it_ends() {
    for finishes in [true, false] {
        with_other_ports(|| {
            let (listener, urls) = bound_v4();
            let other = listen(LoopbackHost::V4, Port::FirstOf([port(&listener)].into()));
            assert!(Listener::bind(&other, |_| {}).is_err(), "it is taken");
            match finishes {
                true => listener.finish(PageResult::Ended),
                false => drop(listener),
            }
            let is_free = Listener::bind(&other, |_| {}).is_ok();
            assert_eq!(urls.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected), "its threads have ended");
            is_free
        });
    }
}

#[test]
fn port_of_a_registration_is_tried_first() {
    let bind = |first, ports| {
        let listen = Listen { first, ..listen(LoopbackHost::V4, ports) };
        Listener::bind(&listen, |_| {}).map(|listener| port(&listener))
    };
    let (taken, _urls) = bound_v4();
    let taken = port(&taken);
    with_other_ports(|| {
        let free = port(&bound_v4().0);
        let both = || Port::FirstOf([taken, free].into());
        [(Some(free), Port::Any), (Some(free), both()), (Some(taken), both()), (None, both())]
            .into_iter()
            .all(|(first, ports)| bind(first, ports) == Ok(free))
    });
    assert!(bind(Some(taken), Port::Any).is_ok_and(|port| port != taken && port != 0));
    let told = bind(None, Port::FirstOf([taken].into())).expect_err("taken").to_string();
    assert!(told.starts_with(&format!("127.0.0.1, port {taken}: ")), "{told}");
    assert!(bind(None, Port::FirstOf(Vec::new())).is_err());
}

#[test]
fn localhost_is_heard_on_both_addresses() {
    let (listener, urls) = bound(&listen(LoopbackHost::Localhost, Port::Any));
    let port = port(&listener);
    assert_eq!(listener.uri(), format!("http://localhost:{port}/callback"));
    assert!(listener.addresses.iter().all(|address| address.ip().is_loopback() && address.port() == port));
    for address in ("localhost", port).to_socket_addrs().expect("resolved") {
        let asked = request(&listener, "/callback?state=s");
        if listener.addresses.contains(&address) {
            let browser = thread::spawn(move || exchange(address, &asked));
            assert_eq!(urls.recv_timeout(SOON), Ok(listener.uri() + "?state=s"));
            listener.ignore();
            assert_eq!(status(&browser.join().expect("no panic")), "404");
        }
        let other = request(&listener, "/callback").replace("localhost", "127.0.0.1");
        assert_eq!(status(&exchange(address, &other)), "404", "another host");
    }
}

#[test]
fn many_connections_leave_room_for_the_redirect() {
    let (listener, urls) = bound_v4();
    let address = listener.addresses[0];
    let idle: Vec<TcpStream> = (0..2 * MAX_CONNECTIONS).map(|_| connect(address)).collect();
    let asked = request(&listener, "/callback?state=s");
    let browser = thread::spawn(move || exchange(address, &asked));
    assert!(listener.shared.lock().connections <= MAX_CONNECTIONS);
    drop(idle);
    urls.recv_timeout(SOON).expect("the redirect");
    listener.finish(PageResult::Accepted);
    assert_eq!(status(&browser.join().expect("no panic")), "200");
}

#[test]
fn silent_connections_do_not_keep_the_redirect_out() {
    let (listener, urls) = bound_v4();
    let address = listener.addresses[0];
    let began = Instant::now();
    let idle: Vec<TcpStream> = (0..3 * MAX_CONNECTIONS).map(|_| connect(address)).collect();
    let asked = request(&listener, "/callback?state=s");
    let browser = thread::spawn(move || exchange(address, &asked));
    urls.recv_timeout(SOON).expect("the redirect");
    listener.finish(PageResult::Accepted);
    assert_eq!(status(&browser.join().expect("no panic")), "200");
    assert!(began.elapsed() < 2 * REQUEST_TIME, "{:?}", began.elapsed());
    drop(idle);
}
