//! What is wrong with a peer, and what the user reads.

use super::certificates::{Authority, Leaf};
use super::*;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use mcp_proto::exchange::TlsFailureKind;
use rcgen::ExtendedKeyUsagePurpose;

/// Returns why the client fails. It has read nothing, and the server got an alert.
#[track_caller]
fn refused(client: Arc<ClientConfig>, server: Arc<ServerConfig>, name: &str) -> TlsFailure {
    let (client, server) = shake(client, server, name);
    assert!(!client.is_secured && client.read.is_empty());
    let of_server = server.failed.expect("the alert has arrived");
    assert!(matches!(of_server.kind, TlsFailureKind::Refused | TlsFailureKind::Incompatible), "{of_server}");
    client.failed.expect("it has failed")
}

// covers: TLS-C-001, TLS-C-002, TLS-C-003
#[test]
fn each_fault_of_a_certificate_has_its_kind_and_its_text() {
    let authority = Authority::new();
    let leaf = Leaf::good;
    let table = [
        (Leaf { until: 2021, ..leaf() }, "localhost", TlsFailureKind::Expired, "not valid after 16094"),
        (Leaf { from: 3000, ..leaf() }, "localhost", TlsFailureKind::NotYetValid, "not valid before"),
        (leaf(), "other.test", TlsFailureKind::WrongName, "localhost"),
        (leaf(), "common.test", TlsFailureKind::WrongName, "common.test"),
        (leaf(), "127.0.0.2", TlsFailureKind::WrongName, "127.0.0.1"),
        (leaf(), "a.b.example.test", TlsFailureKind::WrongName, "*.example.test"),
        (leaf(), "example.test", TlsFailureKind::WrongName, "*.example.test"),
        (Leaf { names: vec!["127.0.0.1"], ..leaf() }, "localhost", TlsFailureKind::WrongName, "localhost"),
        (
            Leaf { usage: ExtendedKeyUsagePurpose::ClientAuth, ..leaf() },
            "localhost",
            TlsFailureKind::BadCertificate,
            "extended key usage",
        ),
    ];
    for (leaf, name, kind, text) in table {
        let failed = refused(authority.client(), authority.server(&leaf), name);
        assert_eq!(failed.kind, kind, "{name}: {failed}");
        assert!(failed.detail.contains(text), "{name}: {failed}");
    }
    for name in ["localhost", "127.0.0.1", "a.example.test", "A.EXAMPLE.test", "a.example.test."] {
        let (client, _) = shake(authority.client(), authority.server(&leaf()), name);
        assert!(client.is_secured, "{name}: {:?}", client.failed);
    }
}

// covers: TLS-C-001
#[test]
fn only_trusted_authorities_count() {
    let (trusted, other) = (Authority::new(), Authority::named("another authority"));
    let failed = refused(trusted.client(), other.server(&Leaf::good()), "localhost");
    let text = "no trusted authority has issued the certificate of the peer: ";
    assert!(failed.to_string().starts_with(text), "{failed}");
    assert_eq!(failed.kind, TlsFailureKind::UnknownIssuer);
}

#[test]
fn client_certificate_is_asked_for() {
    let (authority, other) = (Authority::new(), Authority::named("another authority"));
    let leaf = || Leaf { usage: ExtendedKeyUsagePurpose::ClientAuth, ..Leaf::good() };
    let server = || authority.server_that_asks(&Leaf::good());
    let (client, server_side) = shake(authority.client_with(authority.issue(&leaf())), server(), "localhost");
    assert!(client.is_secured && server_side.is_secured);
    let foreign = authority.client_with(other.issue(&leaf()));
    let (client, server_side) = shake(foreign, server(), "localhost");
    assert_eq!(server_side.failed.expect("it is refused").kind, TlsFailureKind::UnknownIssuer);
    assert_eq!(client.failed.expect("it is refused").kind, TlsFailureKind::Refused);
    let (client, server_side) = shake(authority.client(), server(), "localhost");
    assert_eq!(server_side.failed.expect("it is refused").kind, TlsFailureKind::BadCertificate);
    let refused = client.failed.expect("it is refused");
    assert_eq!(refused.kind, TlsFailureKind::Refused);
    assert!(refused.detail.contains("CertificateRequired"), "{refused}");
}

// covers: TLS-C-008
#[test]
fn server_without_our_protocol_is_refused() {
    let authority = Authority::new();
    let mut config = (*authority.server(&Leaf::good())).clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let (client, server) = shake(authority.client(), Arc::new(config), "localhost");
    assert_eq!(client.failed.expect("it is refused").kind, TlsFailureKind::Incompatible);
    assert_eq!(server.failed.expect("it refuses").kind, TlsFailureKind::Incompatible);
}

#[test]
fn older_version_is_enough() {
    let authority = Authority::new();
    let leaf = Leaf { algorithm: &rcgen::PKCS_ECDSA_P256_SHA256, ..Leaf::good() };
    let server = authority.server_of(&leaf, &[&rustls::version::TLS12]);
    let (mut client, mut server) = shake(authority.client(), server, "localhost");
    client.write(b"hello");
    run(&mut client, &mut server, 1);
    assert_eq!(server.read, b"hello");
}

// covers: TLS-B-007
#[test]
fn version_that_is_too_old_is_refused() {
    let authority = Authority::new();
    let mut server = Side::new(TlsAcceptor::new(authority.server(&Leaf::good())).accept().expect("a configuration"));
    // A ClientHello of TLS 1.1: version 3.2, 32 random bytes, no session, one cipher suite.
    let mut hello = vec![22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 2];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0xc0, 0x13, 1, 0]);
    server.get(&hello);
    let failed = server.failed.expect("it is refused");
    assert_eq!(failed.kind, TlsFailureKind::Incompatible, "{failed}");
    assert_eq!(server.wire[..3], [21, 3, 3], "an alert");
}

#[test]
fn plain_http_is_recognized_on_both_sides() {
    let authority = Authority::new();
    let mut server = Side::new(TlsAcceptor::new(authority.server(&Leaf::good())).accept().expect("a configuration"));
    server.get(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(server.failed.expect("it has failed").kind, TlsFailureKind::NotTls);
    let response = core::str::from_utf8(&server.wire).expect("it is text");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 400 "), "{response}");
    assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{response}");
    let mut client = Side::new(TlsConnector::new(authority.client()).connect("localhost").expect("a name"));
    client.get(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    let failed = client.failed.expect("it has failed");
    assert_eq!(failed.to_string(), "the peer does not speak TLS: it speaks plain HTTP");
    for junk in [&b"SSH-2.0-x\r\n"[..], b"\0\0\0\0\0\0\0\0", b"{}\n{}\n"] {
        let mut client = Side::new(TlsConnector::new(authority.client()).connect("localhost").expect("a name"));
        client.get(junk);
        assert_eq!(client.failed.expect("it has failed").kind, TlsFailureKind::NotTls, "{junk:?}");
    }
}

#[test]
fn handshake_that_ends_early_has_failed() {
    let authority = Authority::new();
    let mut whole = Side::new(TlsAcceptor::new(authority.server(&Leaf::good())).accept().expect("a configuration"));
    let hello = Side::new(TlsConnector::new(authority.client()).connect("localhost").expect("a name")).wire;
    whole.get(&hello);
    for cut in [0, 1, 5, 100, whole.wire.len() - 1] {
        let mut client = Side::new(TlsConnector::new(authority.client()).connect("localhost").expect("a name"));
        client.get(&whole.wire[..cut.min(90)]);
        client.end();
        let failed = client.failed.expect("it has failed");
        assert!(matches!(failed.kind, TlsFailureKind::Truncated), "{cut}: {failed}");
        assert!(failed.detail.contains("during the handshake"), "{failed}");
    }
}

#[test]
fn changed_record_is_refused() {
    let (mut client, mut server) = pair();
    server.write(b"hello");
    let mut record = core::mem::take(&mut server.wire);
    *record.last_mut().expect("a record") ^= 1;
    client.get(&record);
    assert!(client.read.is_empty());
    assert_eq!(client.failed.as_ref().expect("it has failed").kind, TlsFailureKind::Violation);
    // The alert is written, and ends the other side.
    run(&mut client, &mut server, usize::MAX);
    assert_eq!(server.failed.expect("it is refused").kind, TlsFailureKind::Refused);
}

#[test]
fn name_that_no_certificate_can_have_is_refused() {
    let authority = Authority::new();
    for name in ["", "a b", "-", "a..b"] {
        let failed = TlsConnector::new(authority.client()).connect(name).expect_err("no name");
        assert_eq!(failed.kind, TlsFailureKind::WrongName, "{name}");
    }
}
