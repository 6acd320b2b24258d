//! Hostile web clients against our own server on every driver: the responses, the service for a
//! modest client meanwhile and afterwards, the absence of smuggled calls, and the memory.
//!
//! The server runs in the process of the clients, which hold next to nothing. A peak of memory is
//! that of both.

mod ask;
mod bodies;
mod coded;
mod doors;
mod ends;
mod floods;
mod flow;
mod heads;
mod lengths;
mod link;
mod paces;
mod parts;
mod replays;
mod served;
mod sessions;
mod shares;
mod site;
mod sockets;
mod tasks;
mod tls;
mod tokens;
mod tools;

pub(crate) use served::service;
pub(super) use tokens::STORM;
pub(crate) use tools::{free, state};

use super::Row;

/// The tables of rows, in their order.
pub const SERVER: &[&[Row]] = &[
    heads::ROWS,
    lengths::ROWS,
    bodies::ROWS,
    coded::ROWS,
    doors::ROWS,
    paces::ROWS,
    ends::ROWS,
    floods::ROWS,
    sessions::ROWS,
    replays::ROWS,
    shares::ROWS,
    sockets::ROWS,
    tasks::ROWS,
    tls::ROWS,
    tokens::ROWS,
    flow::ROWS,
];
