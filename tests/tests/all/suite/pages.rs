//! Web pages that a call needs (2025-11-25): between the client and the server, something carries
//! no streams, so the server cannot ask, and refuses the call with `-32042`.

use super::raw::listening;
use super::*;
use mcp_proto::client::ListenerTime;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;

/// Returns the URL of a proxy for this server. It hides from the server that the client accepts
/// streams, and holds a request for one back until it can lock `gate`.
fn proxy(server: SocketAddr, gate: &Arc<Mutex<()>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let address = listener.local_addr().expect("an address");
    let gate = Arc::clone(gate);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else { return };
            let [back, answers] = [&client, &server].map(|stream| stream.try_clone().expect("a clone"));
            thread::spawn(move || pass(answers, back, |_| ()));
            let gate = Arc::clone(&gate);
            thread::spawn(move || {
                pass(client, server, |request| {
                    const STREAMS: &[u8] = b", text/event-stream";
                    if request.starts_with(b"GET ") {
                        drop(gate.lock());
                    } else if let Some(at) = request.windows(STREAMS.len()).position(|part| part == STREAMS) {
                        request[at..at + STREAMS.len()].fill(b' ');
                    }
                })
            });
        }
    });
    format!("http://{address}/mcp")
}

/// Passes bytes on until the end, with this change.
fn pass(mut from: TcpStream, mut to: TcpStream, change: impl Fn(&mut [u8])) -> io::Result<()> {
    let mut part = [0; 16 << 10];
    loop {
        let count = from.read(&mut part)?;
        if count == 0 {
            return to.shutdown(Shutdown::Write);
        }
        change(&mut part[..count]);
        to.write_all(&part[..count])?;
    }
}

/// A server of one user, who buys something once they have paid on a web page.
struct Shop {
    server: Server,
    url: String,
    /// Whether the user has paid.
    paid: Arc<Mutex<bool>>,
    /// How often the tool began.
    runs: Arc<AtomicUsize>,
    gate: Arc<Mutex<()>>,
}

impl Shop {
    fn new() -> Self {
        let (paid, runs) = (Arc::new(Mutex::new(false)), Arc::new(AtomicUsize::new(0)));
        let (has_paid, begun) = (Arc::clone(&paid), Arc::clone(&runs));
        let router = Router::new("shop", "1").tool(tool("buy"), move |cx, (): ()| {
            begun.fetch_add(1, Ordering::SeqCst);
            if *has_paid.lock().expect("no panic") {
                return Ok("bought");
            }
            let page = UrlRequest::new("Pay first", format!("https://pay.example/{}", cx.elicitation_id("pay")));
            cx.elicit_url("pay", page).map(|_| "it could ask")
        });
        let server = listening(router, ServerOptions::new());
        let gate = Arc::default();
        let url = proxy(server.local_addr().expect("an address"), &gate);
        Self { server, url, paid, runs, gate }
    }

    /// A client whose user answers like this. Returns its events, and the pages that it showed.
    fn client(&self, answer: fn() -> ElicitResult) -> (Client, Receiver<ClientEvent>, Receiver<UrlRequest>) {
        let (show, shown) = mpsc::channel();
        let (options, events) = told(ClientOptions::new());
        let options = options
            .on_elicit_url(move |page| {
                show.send(page).expect("it is awaited");
                answer()
            })
            .set(|config| {
                config.versions = Versions::new([ProtocolVersion::V2025_11_25]);
                // The proxy holds the stream of the session back for longer than calls wait for it.
                config.compat.listener_start = ListenerTime::Unlimited;
            });
        (connect_with(self.url.as_str(), options).wait().expect("connected"), events, shown)
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

/// Calls the tool, and completes the page that the user is shown. Returns the id of the page.
fn buy(shop: &Shop, client: &Client, shown: &Receiver<UrlRequest>, complete: impl FnOnce(&str)) -> String {
    thread::scope(|scope| {
        let bought = scope.spawn(|| text(call(client, "buy")));
        let page = shown.recv_timeout(BOUND).expect("a page is shown");
        let id = page.elicitation_id.clone().expect("an id");
        assert_eq!((&*page.message, &*page.url), ("Pay first", &*format!("https://pay.example/{id}")));
        assert_eq!(shop.runs(), 1, "the call waits for the page");
        *shop.paid.lock().expect("no panic") = true;
        complete(&id);
        assert_eq!(bought.join().expect("no panic"), "bought");
        assert_eq!((shop.runs(), shown.try_recv().is_err()), (2, true), "it is repeated once, without a question");
        id
    })
}

fn accept() -> ElicitResult {
    ElicitResult::Accept(Object::new())
}

/// Closes a client, and returns the ids of the pages whose completion the server has notified.
fn completed(client: Client, events: &Receiver<ClientEvent>) -> Vec<String> {
    client.close().wait();
    drop(client);
    let id = |event| match event {
        ClientEvent::Elicited(id) => Some(id),
        _ => None,
    };
    all(events).into_iter().filter_map(id).collect()
}

// covers: ELIC-S-012, ELIC-S-013, ELIC-C-015, ELIC-S-017, ELIC-S-019, X-08
#[test]
fn refused_call_is_repeated_once_its_page_is_complete() {
    let _limit = limit();
    let shop = Shop::new();
    let closed = shop.gate.lock().expect("no panic");
    let (client, events, shown) = shop.client(accept);
    let id = buy(&shop, &client, &shown, |id| {
        // The notification waits for the stream of the session.
        shop.server.elicited(id);
        drop(closed);
    });
    assert_eq!(text(call(&client, "buy")), "bought");
    assert_eq!(completed(client, &events), [id]);
    stop(&shop.server, Duration::ZERO);
}

// covers: ELIC-C-016
#[test]
fn refused_call_is_repeated_when_the_application_says_so() {
    let _limit = limit();
    let shop = Shop::new();
    let _closed = shop.gate.lock().expect("no panic");
    let (client, events, shown) = shop.client(accept);
    // No stream will ever carry the notification.
    buy(&shop, &client, &shown, |id| client.elicited(id));
    assert_eq!(completed(client, &events), [""; 0]);
    stop(&shop.server, Duration::ZERO);
}

// covers: ELIC-C-021, ELIC-S-017
#[test]
fn refused_call_ends_when_its_user_declines() {
    let _limit = limit();
    let shop = Shop::new();
    let _closed = shop.gate.lock().expect("no panic");
    for (answer, declined) in [(ElicitResult::Decline, true), (ElicitResult::Cancel, false)] {
        let (client, events, shown) = match answer {
            ElicitResult::Decline => shop.client(|| ElicitResult::Decline),
            _ => shop.client(|| ElicitResult::Cancel),
        };
        let runs = shop.runs();
        assert_eq!(call(&client, "buy"), Err(CallError::NoConsent { declined }));
        assert_eq!((shop.runs() - runs, shown.try_iter().count()), (1, 1));
        assert_eq!(completed(client, &events), [""; 0]);
    }
    stop(&shop.server, Duration::ZERO);
}
