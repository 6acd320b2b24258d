//! Servers that begin TLS and do not finish it.

use crate::adapters::cause;
use crate::certificates::{Authority, Leaf};
use crate::hostile::rows::{READERS, expect, row_on};
use crate::hostile::{Bench, Host, Row, shim};
use crate::orphans::Adapter;
use mcp_driver::{ClientOptions, ConnectError};
use mcp_proto::client::Policy;
use mcp_proto::exchange::{Closed, TlsFailureKind};
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(super) const ROWS: &[Row] = &[
    row_on("ends its side at every byte of its handshake of TLS", READERS, 40, breaks_off),
    row_on("says its handshake of TLS by one byte a second", READERS, 32, drips),
];

/// The time that a client has for a connection that does not finish TLS.
const PATIENCE: Duration = Duration::from_secs(3);

/// A server on a thread of its own, which lives as long as the process.
struct Stub {
    address: SocketAddr,
    authority: Authority,
    /// Bytes of the last handshake that the server has to say.
    length: Arc<AtomicUsize>,
}

impl Stub {
    /// Reads the hello of each client, and lets `say` answer it with the bytes of the handshake.
    fn start(say: impl Fn(&mut TcpStream, &[u8]) + Send + Sync + Copy + 'static) -> Result<Self, String> {
        let authority = Authority::new("the tests");
        let (config, length) = (authority.server(&Leaf::default()), Arc::new(AtomicUsize::new(0)));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let last = Arc::clone(&length);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (config, last) = (Arc::clone(&config), Arc::clone(&last));
                thread::spawn(move || {
                    if let Some(handshake) = handshake(&mut stream, config) {
                        last.store(handshake.len(), Ordering::SeqCst);
                        say(&mut stream, &handshake);
                    }
                });
            }
        });
        Ok(Self { address, authority, length })
    }

    /// Returns why a client cannot connect.
    fn refuses(&self, bench: &Bench) -> Result<ConnectError, String> {
        let adapter = match bench.host {
            Host::Driver(Adapter::Of(adapter)) => adapter,
            Host::Shim => return Err(shim::running().ok_or("there is no shim")?.lacks("TLS of a client")),
            Host::Driver(Adapter::Loop) | Host::Engine => return Err("it has no TLS".into()),
        };
        let options = ClientOptions::new().tls(self.authority.client()).set(|config| {
            config.policy = Policy::Modern;
            config.limits.frame.open_timeout = PATIENCE;
        });
        let url = format!("https://localhost:{}/mcp", self.address.port());
        match adapter.connect(url.as_str(), options) {
            Ok(_) => Err("it connects".into()),
            Err(why) => Ok(why),
        }
    }
}

/// Reads the hello of a client. Returns the rest of the handshake as far as a server can say it.
fn handshake(stream: &mut TcpStream, config: Arc<ServerConfig>) -> Option<Vec<u8>> {
    let mut tls = ServerConnection::new(config).ok()?;
    while !tls.wants_write() {
        if tls.read_tls(stream).ok()? == 0 {
            return None;
        }
        tls.process_new_packets().ok()?;
    }
    let mut handshake = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut handshake).ok()?;
    }
    Some(handshake)
}

/// The number of bytes before the end.
static CUT: AtomicUsize = AtomicUsize::new(0);

fn breaks_off(bench: &Bench) -> Result<String, String> {
    let stub = Stub::start(|stream, handshake| {
        let cut = CUT.load(Ordering::SeqCst).min(handshake.len() - 1);
        // The client may be gone. What it still says is read, so that the end is no reset.
        let ended = stream.write_all(&handshake[..cut]).and_then(|()| stream.shutdown(Shutdown::Write));
        let _ = ended.and_then(|()| io::copy(stream, &mut io::sink()));
    })?;
    let mut length = usize::MAX;
    let mut cut = 0;
    while cut < length {
        CUT.store(cut, Ordering::SeqCst);
        let why = stub.refuses(bench)?;
        let is_so = matches!(cause::<Closed>(&why), Some(Closed::Tls(why)) if why.kind == TlsFailureKind::Truncated);
        expect(is_so, || format!("cut at byte {cut}: {why}"))?;
        length = stub.length.load(Ordering::SeqCst);
        cut += 1;
    }
    Ok(format!("{cut} times: the connection ended during the handshake"))
}

fn drips(bench: &Bench) -> Result<String, String> {
    let stub = Stub::start(|stream, handshake| {
        for byte in handshake.chunks(1) {
            if stream.write_all(byte).is_err() {
                break;
            }
            thread::park_timeout(Duration::from_secs(1));
        }
    })?;
    let began = Instant::now();
    let why = stub.refuses(bench)?;
    let took = began.elapsed();
    expect(cause::<Closed>(&why) == Some(&Closed::Timeout), || why.to_string())?;
    let is_so = took > PATIENCE * 8 / 10 && took < PATIENCE * 10;
    expect(is_so, || format!("it took {took:?}, and the limit is {PATIENCE:?}"))?;
    Ok(why.to_string())
}
