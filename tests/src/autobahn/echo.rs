//! Both sides of an echo: a connection that sends each text message back, as the suite requires.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::text_socket::TextSocket;
use bytes::Bytes;

use super::MAX_MESSAGE;

/// Maximum time without bytes of the peer.
const SILENCE: Duration = Duration::from_secs(130);
/// Maximum time for the end of a connection after the closing handshake.
const LINGER: Duration = Duration::from_secs(2);

/// What the codec gets at once before it is polled, and what it has framed is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Single bytes.
    Bytes,
    /// What one read returns.
    Reads,
}

/// Serves connections on a free loopback port for the rest of the process. Returns the port.
///
/// # Errors
/// The error of the operating system.
pub fn serve(pace: Pace) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || echo(TextSocket::server(MAX_MESSAGE), stream, Side::Server, pace));
        }
    });
    Ok(port)
}

/// Connects to a server, asks for this target, and sends its messages back until the connection
/// ends.
///
/// # Errors
/// The error of the operating system. The end of a connection is none.
pub fn ask(address: SocketAddr, target: &str, seed: [u8; 32], pace: Pace) -> io::Result<()> {
    let socket = TextSocket::client(&address.to_string(), target, MAX_MESSAGE, seed);
    echo(socket, TcpStream::connect(address)?, Side::Client, pace)
}

/// The side of a connection. The server closes it after the closing handshake (RFC 6455 section
/// 7.1.1).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

fn echo(mut socket: TextSocket, mut stream: TcpStream, side: Side, pace: Pace) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    let mut buffer = vec![0; 64 << 10];
    write(&mut socket, &mut stream)?;
    while !socket.is_ended() {
        let count = match stream.read(&mut buffer) {
            Ok(count) => count,
            Err(why) if why.kind() == ErrorKind::Interrupted => continue,
            Err(why) => return Err(why),
        };
        if count == 0 {
            socket.eof();
            respond(&mut socket, &mut stream)?;
        }
        let size = if pace == Pace::Bytes { 1 } else { buffer.len() };
        for piece in buffer[..count].chunks(size) {
            socket.bytes(Bytes::copy_from_slice(piece));
            respond(&mut socket, &mut stream)?;
        }
    }
    if side == Side::Server {
        stream.shutdown(Shutdown::Write)?;
    }
    // Bytes that were not read would reset the connection, and the peer could lose our last frame.
    stream.set_read_timeout(Some(LINGER))?;
    while stream.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Sends back the messages that are complete, and writes what is to be written.
fn respond(socket: &mut TextSocket, stream: &mut TcpStream) -> io::Result<()> {
    while let Some(text) = socket.poll_text() {
        socket.text(text);
        write(socket, stream)?;
    }
    write(socket, stream)
}

fn write(socket: &mut TextSocket, stream: &mut TcpStream) -> io::Result<()> {
    while let Some(bytes) = socket.poll_write() {
        stream.write_all(&bytes)?;
    }
    Ok(())
}
