//! A forward proxy on a thread: it opens tunnels, and forwards requests in absolute form. Every
//! host leads to one address, so that tests can use names that do not exist.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A proxy that runs until the process ends.
#[derive(Debug)]
pub struct ForwardProxy {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

/// The settings of a proxy.
#[derive(Clone, Debug, Default)]
pub struct ForwardProxySettings {
    /// The value of `Proxy-Authorization` that every request needs. Without one, 407.
    pub authorization: Option<String>,
    /// The response to every request instead of the right one.
    pub response: Option<String>,
}

impl ForwardProxy {
    /// Starts a proxy whose hosts are all at `server`.
    ///
    /// # Errors
    /// Those of the listener.
    pub fn start(server: SocketAddr, settings: ForwardProxySettings) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let seen = Arc::default();
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (settings, log) = (settings.clone(), Arc::clone(&log));
                // A client may leave at any time.
                thread::spawn(move || drop(serve(&client, server, &settings, &log)));
            }
        });
        Ok(Self { address, seen })
    }

    /// Returns the address of the proxy.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the first lines of all requests so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Serves the requests of one connection.
fn serve(
    client: &TcpStream,
    server: SocketAddr,
    settings: &ForwardProxySettings,
    seen: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    let mut writer = client;
    loop {
        let Some((line, fields)) = read_head(&mut reader)? else { return Ok(()) };
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(line.trim_end().to_owned());
        let given = fields.iter().find_map(|field| value(field, "proxy-authorization"));
        if let Some(response) = &settings.response {
            return writer.write_all(response.as_bytes());
        }
        if settings.authorization.is_some() && given != settings.authorization.as_deref() {
            let fields = "Proxy-Authenticate: Basic realm=\"p\"\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0";
            return write!(writer, "HTTP/1.1 407 Proxy Authentication Required\r\n{fields}\r\n\r\n");
        }
        if line.starts_with("CONNECT ") {
            writer.write_all(b"HTTP/1.1 200 Connection established\r\nContent-Length: 9\r\n\r\n")?;
            return relay(client, &TcpStream::connect(server)?);
        }
        // The request without what is for the proxy. The connection to the server carries only it.
        let (method, rest) = line.split_once(' ').unwrap_or_default();
        let target = rest.split(' ').next().unwrap_or_default();
        let path = target.strip_prefix("http://").and_then(|rest| rest.find('/').map(|at| &rest[at..]));
        let Some(path) = path else { return writer.write_all(b"HTTP/1.1 400 no\r\nContent-Length: 0\r\n\r\n") };
        let upstream = TcpStream::connect(server)?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let own = ["proxy-authorization", "connection"];
        fields.iter().filter(|field| !own.iter().any(|own| value(field, own).is_some())).for_each(|f| head.push_str(f));
        head.push_str("\r\n");
        (&upstream).write_all(head.as_bytes())?;
        let length = fields.iter().find_map(|field| value(field, "content-length")?.parse().ok()).unwrap_or(0);
        io::copy(&mut (&mut reader).take(length), &mut &upstream)?;
        end_with(client.try_clone()?, upstream.try_clone()?);
        if forward_response(&mut BufReader::new(&upstream), client)? {
            return Ok(());
        }
    }
}

/// Ends the connection to the server once the client has left. Does nothing if the client sends
/// another request.
fn end_with(client: TcpStream, upstream: TcpStream) {
    thread::spawn(move || {
        if client.peek(&mut [0]).map_or(true, |n| n == 0) {
            drop(upstream.shutdown(Shutdown::Both));
        }
    });
}

/// Forwards a response. Without a length, the end of the connection ends it. Returns whether that
/// is so.
fn forward_response(upstream: &mut impl BufRead, mut client: &TcpStream) -> io::Result<bool> {
    let Some((line, fields)) = read_head(upstream)? else { return Ok(true) };
    let length = fields.iter().find_map(|field| value(field, "content-length")?.parse().ok());
    let mut head = line;
    fields.iter().filter(|field| value(field, "connection").is_none()).for_each(|field| head.push_str(field));
    head.push_str(if length.is_none() { "Connection: close\r\n\r\n" } else { "\r\n" });
    client.write_all(head.as_bytes())?;
    match length {
        Some(length) => io::copy(&mut upstream.take(length), &mut client)?,
        None => pass(upstream, client)?,
    };
    Ok(length.is_none())
}

/// Relays the bytes of both directions, each to its end.
fn relay(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    thread::scope(|scope| {
        scope.spawn(|| pass(&mut &*client, server));
        pass(&mut &*server, client).map(drop)
    })
}

fn pass(from: &mut impl Read, mut to: &TcpStream) -> io::Result<u64> {
    let copied = io::copy(from, &mut to);
    drop(to.shutdown(Shutdown::Write));
    copied
}

/// Reads a head: its first line, and its fields with their line ends.
fn read_head(reader: &mut impl BufRead) -> io::Result<Option<(String, Vec<String>)>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line == "\r\n" {
            break;
        }
        lines.push(line);
    }
    let first = lines.remove(0);
    Ok(Some((first, lines)))
}

/// Returns the value of a field with this name in small letters.
fn value<'a>(field: &'a str, name: &str) -> Option<&'a str> {
    let (its, value) = field.split_once(':')?;
    its.eq_ignore_ascii_case(name).then_some(value.trim())
}
