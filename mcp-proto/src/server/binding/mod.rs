//! How messages travel: a duplex exchange for as long as it lives, or one HTTP request with its
//! answer.

mod duplex;
#[cfg(feature = "http")]
mod http;

pub(super) use duplex::Duplex;
#[cfg(feature = "http")]
pub(crate) use http::unavailable;
#[cfg(feature = "http")]
pub(super) use http::{Http, HttpState, ResponseStream, StreamKey};

/// What lasts longer than an HTTP exchange: nothing, without HTTP.
#[cfg(not(feature = "http"))]
#[derive(Debug)]
pub(super) struct HttpState;

use crate::input::AdmitKey;
use alloc::boxed::Box;

/// The state of an exchange that depends on how messages travel.
#[derive(Debug)]
pub(super) enum Binding {
    Duplex(Box<Duplex>),
    #[cfg(feature = "http")]
    Http(Http),
}

impl Binding {
    pub(super) fn duplex(&self) -> Option<&Duplex> {
        match self {
            Self::Duplex(duplex) => Some(duplex),
            #[cfg(feature = "http")]
            Self::Http(_) => None,
        }
    }

    #[cfg(feature = "http")]
    pub(super) fn http(&self) -> Option<&Http> {
        match self {
            Self::Http(http) => Some(http),
            Self::Duplex(_) => None,
        }
    }

    #[cfg(feature = "http")]
    pub(super) fn http_mut(&mut self) -> Option<&mut Http> {
        match self {
            Self::Http(http) => Some(http),
            Self::Duplex(_) => None,
        }
    }

    /// Returns the key of the admission that the exchange waits for.
    pub(super) fn waits_for_admission(&self) -> Option<AdmitKey> {
        match self {
            Self::Duplex(duplex) => duplex.waits_for_admission(),
            #[cfg(feature = "http")]
            Self::Http(http) => http.waits_for_admission(),
        }
    }

    pub(super) fn duplex_mut(&mut self) -> Option<&mut Duplex> {
        match self {
            Self::Duplex(duplex) => Some(duplex),
            #[cfg(feature = "http")]
            Self::Http(_) => None,
        }
    }
}
