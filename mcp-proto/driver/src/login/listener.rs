//! The listener for a redirect: sockets and threads around [`CallbackConnection`].

#[cfg(all(test, not(shuttle)))]
mod tests;

use super::callback::{CallbackConnection, Expected, Page, Reaction};
use super::spawn;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use mcp_proto::auth::{Listen, LoopbackHost, PageResult, Port, StoreFault};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Maximum number of connections at a time. Further ones wait in the queue of the system.
const MAX_CONNECTIONS: usize = 32;

/// Maximum time for the request of a connection, and for what follows the response.
const REQUEST_TIME: Duration = Duration::from_secs(5);

/// The same while further connections may wait: the browser of the user is one of them, and another
/// program that says nothing must not keep it out.
const CROWDED_TIME: Duration = Duration::from_millis(250);

/// Maximum time for which a redirect waits for its result, before its response.
const RESULT_TIME: Duration = Duration::from_secs(10);

/// Maximum time for which the end of a listener waits for a response, and for its threads.
const FINISH_TIME: Duration = Duration::from_secs(1);

/// Maximum number of bytes that are read after a request, so that its peer gets the response.
const MAX_REST: usize = 64 << 10;

/// Maximum number of free ports that are tried, if the other loopback address has none of them.
const ATTEMPTS: usize = 8;

/// A listener for the redirect of a login. Dropping it ends it, and its port is free then.
/// Connections that are open get their responses on their own threads.
pub(super) struct Listener {
    shared: Arc<Listening>,
    addresses: Vec<SocketAddr>,
}

struct Listening {
    expected: Expected,
    /// Receives the URL of each redirect.
    redirected: Box<dyn Fn(String) + Send + Sync>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The addresses that are open.
    addresses: usize,
    connections: usize,
    /// The redirect whose result is awaited: one at a time, so that each result has its redirect.
    turn: Turn,
    /// The result for the redirect whose turn it is, once the listener has ended.
    ended: Option<PageResult>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Turn {
    #[default]
    Free,
    /// The login looks at it.
    Asked,
    /// It is none of this login.
    Ignored,
    /// Its response is written.
    Writing,
}

/// A counted connection.
struct Seat(Arc<Listening>);

impl Listener {
    /// Listens. `redirected` receives the URL of each request that may be the redirect, on a thread
    /// of the listener. [`ignore`](Self::ignore) or [`finish`](Self::finish) is the answer.
    pub(super) fn bind(
        listen: &Listen,
        redirected: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<Self, StoreFault> {
        let (port, listeners) = bind(listen).map_err(|e| StoreFault(format!("{e}")))?;
        let host = format!("{}:{port}", listen.host.as_str());
        let expected = Expected { host, path: listen.path.clone() };
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Listening { expected, redirected: Box::new(redirected), state, changed });
        // From here on, dropping it ends the threads that have begun.
        let mut listener = Self { shared, addresses: Vec::new() };
        for (address, socket) in listeners {
            let shared = Arc::clone(&listener.shared);
            spawn(move || shared.listen(socket)).map_err(|e| StoreFault(format!("{e}")))?;
            listener.shared.lock().addresses += 1;
            listener.addresses.push(address);
        }
        Ok(listener)
    }

    /// Returns the redirect URI.
    pub(super) fn uri(&self) -> String {
        let Expected { host, path } = &self.shared.expected;
        format!("http://{host}{path}")
    }

    /// The latest redirect is none of this login: the listener goes on.
    pub(super) fn ignore(&self) {
        let mut state = self.shared.lock();
        if state.turn == Turn::Asked {
            state.turn = Turn::Ignored;
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Ends the listener. Waits until the response with this result is written, for a short time:
    /// the process may exit after it.
    pub(super) fn finish(self, result: PageResult) {
        self.shared.end(result);
        self.shared.wait_until(|state| state.turn == Turn::Free);
    }
}

impl Listening {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change. `None` once the time is over.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, deadline: Instant) -> Option<MutexGuard<'a, State>> {
        let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        Some(self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Waits for a state, for a short time.
    fn wait_until(&self, is_reached: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + FINISH_TIME;
        let mut state = self.lock();
        while !is_reached(&state) {
            match self.wait(state, deadline) {
                Some(changed) => state = changed,
                None => return,
            }
        }
    }

    fn end(&self, result: PageResult) {
        self.lock().ended.get_or_insert(result);
        self.changed.notify_all();
    }

    fn listen(self: &Arc<Self>, socket: TcpListener) {
        self.accept(&socket);
        // The port is free from here on.
        drop(socket);
        self.lock().addresses -= 1;
        self.changed.notify_all();
    }

    /// Accepts connections until the listener has ended.
    fn accept(self: &Arc<Self>, socket: &TcpListener) {
        loop {
            let Some(seat) = self.seat() else { return };
            match socket.accept() {
                Ok((stream, _)) if self.lock().ended.is_none() => {
                    // Without a thread, the connection is closed.
                    let _ = spawn(move || seat.0.serve(&stream));
                }
                Ok(_) => return,
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                // The system lacks a resource.
                Err(_) => drop(self.wait(self.lock(), Instant::now() + Duration::from_millis(100))),
            }
        }
    }

    /// Waits until there is room for a connection. `None` once the listener has ended.
    fn seat(self: &Arc<Self>) -> Option<Seat> {
        let mut state = self.lock();
        while state.connections >= MAX_CONNECTIONS && state.ended.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.ended.is_some() {
            return None;
        }
        state.connections += 1;
        Some(Seat(Arc::clone(self)))
    }

    /// Serves one connection. An error of it ends it.
    fn serve(&self, stream: &TcpStream) {
        match self.request(stream) {
            Ok(Some(Reaction::Redirected(url))) => self.redirected(url, stream),
            Ok(Some(_)) => drop(self.respond(stream, Page::Absent)),
            Ok(None) | Err(_) => {}
        }
    }

    /// Reads the request. `None` if the connection ends before.
    fn request(&self, stream: &TcpStream) -> io::Result<Option<Reaction>> {
        let (began, mut connection, mut buffer) = (Instant::now(), CallbackConnection::default(), [0; 2048]);
        loop {
            let bytes = match self.read(stream, &mut buffer, began)? {
                0 => return Ok(None),
                length => buffer.get(..length).unwrap_or_default(),
            };
            match connection.read(bytes, &self.expected) {
                Reaction::Wait => {}
                decided => return Ok(Some(decided)),
            }
        }
    }

    /// Reads some bytes. Returns 0 at their end, and once the time is over that a connection has.
    fn read(&self, mut stream: &TcpStream, buffer: &mut [u8], began: Instant) -> io::Result<usize> {
        loop {
            let is_crowded = self.lock().connections >= MAX_CONNECTIONS;
            let time = if is_crowded { CROWDED_TIME } else { REQUEST_TIME };
            let Some(left) = left(began + time) else { return Ok(0) };
            stream.set_read_timeout(Some(left.min(CROWDED_TIME)))?;
            match stream.read(buffer) {
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                read => return read,
            }
        }
    }

    fn respond(&self, stream: &TcpStream, page: Page) -> io::Result<()> {
        write(stream, page)?;
        self.drain(stream)
    }

    /// Waits for a short time until the peer has the response: closing a connection with unread
    /// bytes could lose it.
    fn drain(&self, stream: &TcpStream) -> io::Result<()> {
        let (began, mut rest, mut buffer) = (Instant::now(), 0, [0; 2048]);
        while rest < MAX_REST {
            match self.read(stream, &mut buffer, began)? {
                0 => break,
                length => rest += length,
            }
        }
        Ok(())
    }

    /// Asks the login what to respond to a redirect, and responds.
    fn redirected(&self, url: String, stream: &TcpStream) {
        let deadline = Instant::now() + RESULT_TIME;
        let mut state = self.lock();
        while state.turn != Turn::Free && state.ended.is_none() {
            match self.wait(state, deadline) {
                Some(changed) => state = changed,
                None => return drop(self.respond(stream, Page::Absent)),
            }
        }
        if state.ended.is_some() {
            drop(state);
            return drop(self.respond(stream, Page::Absent));
        }
        state.turn = Turn::Asked;
        drop(state);
        (self.redirected)(url);
        let page = self.result(deadline);
        let written = write(stream, page);
        self.lock().turn = Turn::Free;
        self.changed.notify_all();
        // An error of the connection is the end of it.
        let _ = written.and_then(|()| self.drain(stream));
    }

    /// Waits for the result of the redirect whose turn it is.
    fn result(&self, deadline: Instant) -> Page {
        let mut state = self.lock();
        loop {
            let page = match (state.turn, state.ended) {
                (Turn::Ignored, _) => Some(Page::Absent),
                (_, Some(result)) => Some(Page::of(result)),
                _ => None,
            };
            if let Some(page) = page {
                state.turn = Turn::Writing;
                return page;
            }
            match self.wait(state, deadline) {
                Some(changed) => state = changed,
                None => {
                    self.lock().turn = Turn::Writing;
                    return Page::Arrived;
                }
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.end(PageResult::Ended);
        for address in &self.addresses {
            // Wakes the thread that accepts. An error means that it does not wait.
            let _ = TcpStream::connect_timeout(address, FINISH_TIME);
        }
        // A listener that follows may need the port.
        self.shared.wait_until(|state| state.addresses == 0);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.lock().connections -= 1;
        self.0.changed.notify_all();
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.addresses).finish()
    }
}

/// Writes a response.
fn write(mut stream: &TcpStream, page: Page) -> io::Result<()> {
    stream.set_write_timeout(Some(REQUEST_TIME))?;
    stream.write_all(&page.response())?;
    stream.shutdown(Shutdown::Write)
}

fn left(deadline: Instant) -> Option<Duration> {
    deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

type Bound = (u16, Vec<(SocketAddr, TcpListener)>);

/// Binds the first port that is free.
fn bind(listen: &Listen) -> io::Result<Bound> {
    let ports: Vec<u16> = match &listen.port {
        Port::Any => listen.first.into_iter().chain([0; ATTEMPTS]).collect(),
        Port::FirstOf(ports) => {
            let first = listen.first.filter(|first| ports.contains(first));
            first.into_iter().chain(ports.iter().copied().filter(|port| Some(*port) != first)).collect()
        }
    };
    let mut failure = io::Error::new(ErrorKind::InvalidInput, "there is no port to listen on");
    for port in ports {
        match bind_port(listen.host, port) {
            Ok(bound) => return Ok(bound),
            Err(e) => failure = e,
        }
    }
    Err(failure)
}

/// Binds one port on the addresses of a host. A machine may have only one of the two families.
fn bind_port(host: LoopbackHost, port: u16) -> io::Result<Bound> {
    let addresses: &[IpAddr] = match host {
        LoopbackHost::V4 => &[IpAddr::V4(Ipv4Addr::LOCALHOST)],
        LoopbackHost::Localhost => &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)],
    };
    let (mut port, mut bound, mut failure) = (port, Vec::new(), None);
    for address in addresses {
        match TcpListener::bind((*address, port)) {
            Ok(socket) => {
                let address = socket.local_addr()?;
                port = address.port();
                bound.push((address, socket));
            }
            Err(e) => {
                let is_taken = matches!(e.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied);
                let e = io::Error::new(e.kind(), format!("{address}, port {port}: {e}"));
                if is_taken {
                    return Err(e);
                }
                failure = Some(e);
            }
        }
    }
    match failure {
        Some(e) if bound.is_empty() => Err(e),
        _ => Ok((port, bound)),
    }
}
