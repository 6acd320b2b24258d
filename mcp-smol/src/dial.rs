//! Connecting to an origin over TCP.

use crate::clock::after;
use crate::transport::OpenStream;
use mcp_driver::{Attempts, Clock, TlsConnector, not_opened};
use mcp_proto::exchange::{Closed, Origin, Peer, Reach};
use smol::net::TcpStream;
use std::net::SocketAddr;
use std::time::Duration;

/// Connects to the addresses of an origin, one after another, within `limit`. TLS begins later.
pub(crate) async fn connect(
    origin: Origin,
    reach: Reach,
    limit: Duration,
    connector: TlsConnector,
) -> Result<OpenStream, Closed> {
    if origin.tls {
        smol::unblock(move || connector.prepare()).await.map_err(Closed::Tls)?;
    }
    let clock = Clock::start();
    let addresses = smol::net::resolve((&*origin.host, origin.port)).await.map_err(|_| Closed::Unresolved)?;
    let (stream, address) = dial(Attempts::within(reach, addresses, limit), || clock.now().since_origin()).await?;
    Ok(OpenStream { stream: stream.into(), process: None, peer: Peer::tcp(address) })
}

/// Connects to the first address that accepts.
async fn dial(
    mut attempts: Attempts<SocketAddr>,
    elapsed: impl Fn() -> Duration,
) -> Result<(TcpStream, SocketAddr), Closed> {
    while let Some((address, patience)) = attempts.next(elapsed()) {
        let attempt = async { TcpStream::connect(address).await.map_err(|e| not_opened(&address, &e)) };
        let timeout = async {
            after(patience).await;
            Err(Closed::Timeout)
        };
        match smol::future::or(attempt, timeout).await {
            Ok(stream) => {
                // Otherwise small requests would wait for the acknowledgement of earlier ones. A
                // failure is harmless.
                let _ = stream.set_nodelay(true);
                return Ok((stream, address));
            }
            Err(why) => attempts.failed(address, why),
        }
    }
    Err(attempts.why())
}

#[cfg(all(test, unix, feature = "http", not(shuttle)))]
mod tests;
