//! A relay on loopback between a client and a server, whose connections can be cut.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::listening::Transport;

/// Forwards bytes in both directions independently, until it is dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Both ends of every connection so far.
    ends: Mutex<Vec<TcpStream>>,
    over: AtomicBool,
}

impl Relay {
    /// Listens on a free port, and connects to `port` for every accepted connection.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn to(port: u16) -> io::Result<Self> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = socket.local_addr()?;
        let shared = Arc::new(Shared::default());
        let inner = Arc::clone(&shared);
        thread::spawn(move || {
            for client in socket.incoming().map_while(Result::ok) {
                if inner.over.load(Ordering::SeqCst) {
                    break;
                }
                // If the server is down, the connection ends at once.
                let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|server| inner.join(&client, &server));
            }
        });
        Ok(Self { address, shared })
    }

    /// Returns the address for a client.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL for a client, for a transport.
    pub fn url(&self, transport: Transport) -> String {
        transport.url(self.address)
    }

    /// Cuts all current connections at once, in the middle of their streams. Later ones are
    /// forwarded.
    pub fn cut(&self) {
        for end in self.shared.lock().drain(..) {
            // Fails if that end is already closed.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the thread that waits for the next one.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<TcpStream>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, client: &TcpStream, server: &TcpStream) -> io::Result<()> {
        self.lock().extend([client.try_clone()?, server.try_clone()?]);
        for (from, to) in [(client, server), (server, client)] {
            let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
            to.set_nodelay(true)?;
            thread::spawn(move || {
                // The end of one direction is not that of the other.
                let _ = pass(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
        }
        Ok(())
    }
}

fn pass(from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            read => to.write_all(buffer.get(..read).unwrap_or_default())?,
        }
    }
}
