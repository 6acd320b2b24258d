//! TLS on a connection of the server, whose client is the loop of rustls itself.

use super::{Flag, ReadEnd, WriteEnd, check, pipe, router};
use crate::sync::thread;
use crate::{Server, ServerOptions, TlsAcceptor};
use mcp_proto::exchange::Peer;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use shuttle::future::block_on;
use shuttle::rand::Rng;
use smol::io::{AsyncReadExt, AsyncWriteExt};
use std::io::{self, Read, Write};
use std::sync::Arc;

/// The socket of the client. It breaks when `left` more bytes were written.
struct Socket {
    reader: ReadEnd,
    writer: WriteEnd,
    left: usize,
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        block_on(self.reader.read(buffer))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let written = block_on(self.writer.write(&bytes[..bytes.len().min(self.left)]))?;
        self.left -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a client that trusts the server. Signatures of Ed25519 have one length, so that a
/// schedule is the same whenever it runs.
fn configurations() -> (Arc<ClientConfig>, TlsAcceptor) {
    let signing_key = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
    let params = CertificateParams::new(vec!["localhost".into()]).expect("a name");
    let cert = params.self_signed(&signing_key).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let client = client.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
    let server = ServerConfig::builder_with_provider(provider);
    let server = server.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let server = server.with_single_cert(vec![cert.der().clone()], key).expect("a certificate");
    (Arc::new(client.with_no_client_auth()), TlsAcceptor::from(Arc::new(server)))
}

/// Calls the tool `add`. Returns the response.
fn call(stream: &mut (impl Read + Write)) -> io::Result<String> {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","arguments":{{}},"_meta":{meta}}}}}"#
    );
    let fields = format!(
        "Host: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: add\r\nContent-Length: {}\r\n",
        body.len()
    );
    write!(stream, "POST /mcp HTTP/1.1\r\n{fields}\r\n{body}")?;
    let mut response = Vec::new();
    while !response.ends_with(b"}}") {
        let mut bytes = [0; 256];
        match stream.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => response.extend_from_slice(&bytes[..n]),
        }
    }
    Ok(String::from_utf8_lossy(&response).into_owned())
}

/// Runs a client that can write `left` bytes, beside the server. Returns its responses.
fn serve(client: &Arc<ClientConfig>, acceptor: &TlsAcceptor, left: usize) -> io::Result<[String; 2]> {
    let ((input, writer), (reader, output)) = (pipe(700), pipe(700));
    let server = Server::new(router(&Flag::default()), ServerOptions::new()).expect("a server");
    let serving = shuttle::future::spawn(server.serve_https((input, output), Peer::default(), acceptor));
    let name = "localhost".try_into().expect("a name");
    let tls = ClientConnection::new(Arc::clone(client), name).expect("a configuration");
    let asking = thread::spawn(move || {
        let (mut tls, mut socket) = (tls, Socket { reader, writer, left });
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        call(&mut stream).and_then(|first| Ok([first, call(&mut stream)?]))
    });
    let responses = asking.join().expect("no panic");
    block_on(serving).expect("no panic");
    responses
}

#[test]
fn responses_over_tls_arrive_whole() {
    let (client, acceptor) = configurations();
    check(1000, move || {
        for response in serve(&client, &acceptor, usize::MAX).expect("two responses") {
            assert!(response.contains(r#""text":"3""#), "{response}");
        }
    });
}

/// The task of the server ends with it, which the checker proves.
#[test]
fn client_may_break_off_at_any_byte_of_tls() {
    let (client, acceptor) = configurations();
    check(1000, move || {
        let left = shuttle::rand::thread_rng().gen_range(0..1500);
        drop(serve(&client, &acceptor, left));
    });
}
