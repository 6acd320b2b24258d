//! A server behind a URL, and the world of one client of it. The server implements [`Site`]: it
//! receives the requests and returns bytes. Connections are cut, delayed, stalled, refused and
//! reset at random.

use super::super::client::Client;
use super::super::fault::Fault;
use super::super::net::{Net, Odds};
use super::super::world::{Ends, World};
use super::wire::Request;
use mcp_proto::client::Event;
use mcp_proto::exchange::{Closed, ConnectionId, IoEvent, Shutdown};
use mcp_proto::wired::WiredClient;
use mcp_proto::{ClientConfig, Instant};
use std::sync::Arc;

/// A connection, as a server knows it: never used twice.
pub type Conn = ConnectionId;

/// A client and its server, in virtual time.
pub type Web<S> = World<S>;

/// A server over HTTP.
pub trait Site: Sized {
    /// A request has been read.
    fn request(&mut self, conn: Conn, request: Request, net: &mut Net);
    /// The connection is gone, or will carry no further request.
    fn gone(&mut self, conn: Conn, net: &mut Net);
    /// When it wants to act by itself.
    fn due(&self) -> Option<Instant>;
    /// Handles the time.
    fn wake(&mut self, net: &mut Net);
    /// The client emitted an event.
    fn event(web: &mut Web<Self>, event: Event) {
        web.events.push((web.net.now, event));
    }
}

impl<S: Site> Ends for S {
    type Client = ();
    type Step = ();
    const ODDS: Odds = Odds {
        connect: (&[Fault::Refused, Fault::Unresolved, Fault::Unreachable, Fault::Hang], 350),
        opening: 20,
        stall: ([Fault::Stall; 2], 20, 40_000),
        cut: 40,
        delay: 20,
        half_close: (Fault::HalfClose, 40),
        reset: ([Fault::Reset; 2], 30),
    };

    fn steps(web: &Web<S>) -> [Vec<(Instant, ())>; 2] {
        [Vec::new(), web.end.due().map(|at| (at, ())).into_iter().collect()]
    }

    fn step(web: &mut Web<S>, (): ()) {
        web.end.wake(&mut web.net);
    }

    fn accept(_web: &mut Web<S>, _owner: u64, at_client: ConnectionId) -> Option<ConnectionId> {
        Some(at_client)
    }

    fn at_server(web: &mut Web<S>, conn: ConnectionId, event: IoEvent) {
        match event {
            IoEvent::Read(bytes) => {
                let Some(n) = web.net.link_at(conn) else { return };
                let link = &mut web.net.links[n];
                let requests = link.requests.read(&bytes);
                link.read += requests.len() as u64;
                for request in requests {
                    web.trace(|| {
                        format!("server {conn:?} <- {} {}", request.method, String::from_utf8_lossy(&request.body))
                    });
                    web.end.request(conn, request, &mut web.net);
                }
            }
            IoEvent::Closed(_) => web.end.gone(conn, &mut web.net),
            _ => {}
        }
    }

    fn event(web: &mut Web<S>, _n: usize, event: Event) {
        S::event(web, event);
    }

    fn close(web: &mut Web<S>, link: usize, how: Shutdown) {
        assert_eq!(how, Shutdown::Abort, "a connection over HTTP is cut");
        web.cut(link, Closed::Aborted, Closed::Reset);
    }

    /// A connection that has carried a request is found dead by the next one.
    fn is_dead(web: &mut Web<S>, n: usize) -> bool {
        let link = &web.net.links[n];
        link.read > 0 && !link.requests.is_partial() && web.net.chaos.hit(Fault::DeadAtWrite, 150)
    }

    /// A server does not read a part of a request.
    fn survivors(web: &mut Web<S>, up: bool, bytes: usize) -> usize {
        if up { 0 } else { web.net.chaos.rng.below(bytes as u64 + 1) as usize }
    }
}

impl<S: Site> Web<S> {
    /// Adds the client of this world, with this configuration.
    pub fn with_client(mut self, config: ClientConfig) -> Self {
        let (config, seed) = (Arc::new(config), self.net.chaos.rng.seed());
        let engine = WiredClient::new(config, seed, Instant::ZERO);
        self.add_client(Client::new(0, engine, ()), 0, seed);
        self
    }

    /// Steps until `until`, which then is now.
    pub fn run_until(&mut self, until: Instant) {
        self.wait(until - self.net.now, |_| false);
    }
}
