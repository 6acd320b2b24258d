//! Hostile web servers against every driver: the outcome of a call, the requests to the server, and
//! the absence of side effects.
//!
//! The server is a stub in the same process, which holds next to nothing. A peak of memory is that
//! of both.

mod answers;
mod coded;
mod doors;
mod flow;
mod links;
mod lists;
mod logins;
mod parts;
mod proxies;
mod sessions;
mod socket_stub;
mod sockets;
mod sse;
mod statuses;
mod streams;
mod tls;

use super::Row;
pub(super) use coded::EVENTS as EVENTS_IN_GZIP;
pub(super) use socket_stub::SocketStub;

/// The tables of rows, in their order.
pub const WEB: &[&[Row]] = &[
    answers::ROWS,
    coded::ROWS,
    statuses::ROWS,
    links::ROWS,
    doors::ROWS,
    streams::ROWS,
    sessions::ROWS,
    lists::ROWS,
    sse::ROWS,
    sockets::ROWS,
    tls::ROWS,
    proxies::ROWS,
    logins::ROWS,
    flow::ROWS,
];
