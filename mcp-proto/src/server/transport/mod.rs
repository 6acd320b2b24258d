//! The two transports of messages: a duplex exchange for as long as it lives, or one HTTP request
//! and its response.

mod duplex;
mod exchange;
mod http;

pub(super) use duplex::{Duplex, DuplexAdmission, PostOrigin};
pub(super) use exchange::{Binding, ServedExchange};
pub(crate) use http::unavailable;
pub(super) use http::{ForwardedItem, Http, HttpState, Opening, Place, ResponseStream};
