//! A WebSocket whose token expires.

use super::*;
use crate::auth::Access;

// covers: WS-B-006, S2-40
#[test]
fn websocket_of_an_expired_token_is_closed_with_1008() {
    let mut peer = ServerPeer::server(server_config(|config| config.admit = true));
    peer.server.handle_io(peer.now, peer.id, IoEvent::Read(HELLO.into()));
    let token = core::iter::from_fn(|| peer.server.poll_output()).find_map(|action| match action {
        Action::Event(server::Event::Admit(token, _)) => Some(token),
        _ => None,
    });
    let mut access = Access::new("ada");
    access.expires = Some(ms(1_000));
    peer.server.admit(peer.now, token.expect("the handshake waits"), Admission::Granted(access.into()));
    peer.drain();
    assert!(peer.take().starts_with(b"HTTP/1.1 101 "));
    peer.read(&frame(TEXT, CALL));
    let responder = peer.requests.pop().expect("it is admitted");
    peer.pass(ms(1_000));
    assert_eq!((peer.take(), peer.closes.len()), (Vec::new(), 0), "the call goes on");
    peer.server.respond(peer.now, responder.write(Outcome::Complete(Default::default())));
    peer.drain();
    let written = peer.take();
    assert!(written.starts_with(&[0x81]) && written.ends_with(&[0x88, 2, 0x03, 0xf0]), "the response, then 1008");
    assert_eq!(peer.closes, [Shutdown::WriteHalf]);
}
