//! Forward proxies that are none: they reflect what they get, pour, or never finish.

use crate::adapters::cause;
use crate::hostile::rows::{READERS, expect, row_on};
use crate::hostile::{Bench, Host, Row, shim};
use crate::orphans::Adapter;
use mcp_driver::ClientOptions;
use mcp_proto::client::{Policy, Proxies, Proxy};
use mcp_proto::exchange::{Closed, ProxyFailureKind};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row_on("a proxy that reflects every request", READERS, 32, |b| {
        fails(b, reflects, &["response is not HTTP"], Ends::ByProxy)
    }),
    row_on("a proxy whose head has no end", READERS, 32, |b| {
        fails(b, |stream| pours(stream, "HTTP/1.1 200 OK\r\n", "X-More: and more\r\n"), &["the head"], Ends::ByProxy)
    }),
    row_on("a proxy with interim responses without end", READERS, 32, |b| {
        fails(b, |stream| pours(stream, "", "HTTP/1.1 103 Early Hints\r\n\r\n"), &["interim responses"], Ends::ByProxy)
    }),
    // Over http, one body of the maximum size may be held.
    row_on("a proxy that pours behind its response", READERS, 64, |b| {
        fails(
            b,
            |stream| pours(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", "[[[["),
            &["it sent bytes after its response", "does not speak TLS", "not HTTP", "larger than the limit"],
            Ends::InTunnel,
        )
    }),
    row_on("a proxy that responds by one byte a second", READERS, 32, |b| {
        fails(b, drips, &["timed out", "took longer", "no response within"], Ends::Late)
    }),
];

/// How the connections of a client end.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    /// With an error of the proxy.
    ByProxy,
    /// The same, or, if the tunnel is open before the rest arrives, with an error of the server in
    /// it.
    InTunnel,
    /// After the time to open a connection, or to wait for a response, with an error of the proxy.
    Late,
}

/// The time that a client has for a proxy that does not finish.
const PATIENCE: Duration = Duration::from_secs(2);

/// A proxy on threads of its own, which live as long as the process. Returns its URL.
fn start(answer: fn(&mut TcpStream) -> io::Result<()>) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // The client ends the connection.
            thread::spawn(move || answer(&mut stream));
        }
    });
    Ok(format!("http://ann:s3cret@{address}"))
}

fn reflects(stream: &mut TcpStream) -> io::Result<()> {
    let mut from = stream.try_clone()?;
    io::copy(&mut from, stream).map(drop)
}

/// Waits for a request, then writes the end of its response for ever.
fn pours(stream: &mut TcpStream, first: &str, rest: &str) -> io::Result<()> {
    request(stream)?;
    stream.write_all(first.as_bytes())?;
    let rest = rest.repeat(1 << 10);
    loop {
        stream.write_all(rest.as_bytes())?;
    }
}

fn drips(stream: &mut TcpStream) -> io::Result<()> {
    request(stream)?;
    for byte in b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n".chunks(1) {
        stream.write_all(byte)?;
        thread::park_timeout(Duration::from_secs(1));
    }
    Ok(())
}

/// Reads the head of a request.
fn request(stream: &mut TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut bytes = [0; 1024];
        match stream.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => head.extend_from_slice(&bytes[..n]),
        }
    }
    Ok(())
}

/// No client connects through this proxy, and each error contains one of these texts.
fn fails(
    bench: &Bench,
    answer: fn(&mut TcpStream) -> io::Result<()>,
    words: &[&str],
    ends: Ends,
) -> Result<String, String> {
    let adapter = match bench.host {
        Host::Driver(Adapter::Of(adapter)) => adapter,
        Host::Shim => return Err(shim::running().ok_or("there is no shim")?.lacks("proxies of a client")),
        Host::Driver(Adapter::Loop) | Host::Engine => return Err("it has no proxies".into()),
    };
    let proxy = start(answer)?;
    let mut told = String::new();
    for scheme in ["https", "wss", "ws", "http"] {
        let proxies = Proxies::all(Proxy::parse(&proxy).map_err(|why| why.to_string())?);
        let options = ClientOptions::new().set(move |config| {
            (config.policy, config.proxies) = (Policy::Modern, proxies);
            config.limits.frame.open_timeout = PATIENCE;
            config.connect_timeout = 2 * PATIENCE;
        });
        let began = Instant::now();
        let why = match adapter.connect(format!("{scheme}://server.test/mcp").as_str(), options) {
            Ok(_) => return Err(format!("{scheme}: it connects")),
            Err(why) => why,
        };
        let (took, text) = (began.elapsed(), why.to_string());
        let of_proxy = |why: &Closed| matches!(why, Closed::Proxy(why) if why.kind == ProxyFailureKind::Broken);
        let is_so = words.iter().any(|word| text.contains(word)) && !text.contains("s3cret");
        // Over http, the response may be that of a server.
        let may_be_of_server = scheme == "http" || ends == Ends::InTunnel;
        let is_so = is_so && (may_be_of_server || cause(&why).is_some_and(of_proxy));
        expect(is_so, || format!("{scheme}: {why:?}: {why}"))?;
        let is_late = took > PATIENCE * 8 / 10;
        expect(is_late == (ends == Ends::Late) && took < PATIENCE * 10, || format!("{scheme}: it took {took:?}"))?;
        told = text;
    }
    Ok(told)
}
