//! TLS as a driver has it ([`Tls`]), beside the loop of rustls itself, over loopback sockets: full
//! handshakes, and a mebibyte to the client. `cargo bench -p mcp-tests --bench tls`. The server
//! runs on a thread of its own, and is the same for all. What is under the names `mcp-proto` and
//! `mcp-proto again` is the same: their difference is the noise of the machine.
#![forbid(unsafe_code)]

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use mcp_driver::{Tls, TlsConnector, TlsOutput};
use mcp_tests::certificates::{Authority, Leaf};
use rustls::client::Resumption;
use rustls::{ClientConfig, ClientConnection, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, OnceLock};
use std::thread;

fn main() {
    divan::main();
}

/// The clients.
const CLIENTS: [&str; 3] = ["rustls", "mcp-proto", "mcp-proto again"];

/// Bytes of a response.
const LENGTH: usize = 1 << 20;

/// Bytes that a client reads at once.
const READ: usize = 16 << 10;

/// A server that responds to each byte with [`LENGTH`] bytes, and what connects to it.
struct Ground {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Ground {
    fn get() -> &'static Self {
        static GROUND: OnceLock<Ground> = OnceLock::new();
        GROUND.get_or_init(|| {
            let authority = Authority::new("the benchmark");
            let server = authority.server(&Leaf::default());
            let mut config = ClientConfig::clone(&authority.client());
            // Every handshake is a full one.
            config.resumption = Resumption::disabled();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("an address");
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let stream = stream.expect("a connection");
                    let tls = ServerConnection::new(Arc::clone(&server)).expect("a configuration");
                    thread::spawn(move || respond(StreamOwned::new(tls, stream)));
                }
            });
            Self { address, config: Arc::new(config) }
        })
    }

    fn dial(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        stream
    }

    /// Returns a client that has completed its handshake.
    fn secure(&self, client: &str) -> Client {
        match client {
            "rustls" => {
                let name = "localhost".try_into().expect("a name");
                let tls = ClientConnection::new(Arc::clone(&self.config), name).expect("a configuration");
                let mut stream = StreamOwned::new(tls, self.dial());
                while stream.conn.is_handshaking() {
                    stream.conn.complete_io(&mut stream.sock).expect("a handshake");
                }
                Client::Rustls(Box::new(stream))
            }
            _ => {
                let tls = TlsConnector::new(Arc::clone(&self.config)).connect("localhost").expect("a name");
                let mut client =
                    Ours { tls: Box::new(tls), stream: self.dial(), buffer: vec![0; READ], secured: false };
                client.carry_out();
                while !client.secured {
                    client.turn();
                }
                Client::Ours(client)
            }
        }
    }
}

/// Ends with its client.
fn respond(mut stream: StreamOwned<ServerConnection, TcpStream>) {
    let body = vec![b'x'; LENGTH];
    while let Ok(1) = stream.read(&mut [0]) {
        if stream.write_all(&body).is_err() {
            break;
        }
    }
}

enum Client {
    Rustls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Ours(Ours),
}

impl Client {
    /// Asks for a response, and reads all of it.
    fn ask(&mut self) {
        let mut left = LENGTH;
        match self {
            Self::Rustls(stream) => {
                stream.write_all(b"?").expect("written");
                let mut buffer = [0; READ];
                while left > 0 {
                    left -= stream.read(&mut buffer).expect("a response");
                }
            }
            Self::Ours(client) => {
                client.tls.write(b"?");
                client.carry_out();
                while left > 0 {
                    left -= client.turn();
                }
            }
        }
    }
}

/// A driver that does nothing with what it reads.
struct Ours {
    tls: Box<Tls>,
    stream: TcpStream,
    buffer: Vec<u8>,
    secured: bool,
}

impl Ours {
    /// Reads once. Returns the number of decrypted bytes.
    fn turn(&mut self) -> usize {
        let n = self.stream.read(&mut self.buffer).expect("bytes");
        self.tls.read(&self.buffer[..n]);
        self.carry_out()
    }

    fn carry_out(&mut self) -> usize {
        let mut count = 0;
        while let Some(output) = self.tls.poll_output() {
            match output {
                TlsOutput::Write(bytes) => self.stream.write_all(&bytes).expect("written"),
                TlsOutput::Secured => self.secured = true,
                TlsOutput::Read(bytes) => count += bytes.len(),
                TlsOutput::ReadClosed | TlsOutput::Failed(_) => panic!("{output:?}"),
            }
        }
        count
    }
}

#[divan::bench(args = CLIENTS)]
fn handshake(bencher: Bencher<'_, '_>, client: &str) {
    let ground = Ground::get();
    bencher.counter(ItemsCount::new(1_usize)).bench(|| ground.secure(client));
}

#[divan::bench(args = CLIENTS)]
fn read(bencher: Bencher<'_, '_>, client: &str) {
    let mut client = Ground::get().secure(client);
    bencher.counter(BytesCount::new(LENGTH)).bench_local(|| client.ask());
}
