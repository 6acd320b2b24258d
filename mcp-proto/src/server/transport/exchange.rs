//! An open exchange, and what of it depends on how messages travel.

use super::duplex::Duplex;
use super::http::Http;
use crate::exchange::Peer;
use crate::input::{AdmitKey, RequestKey};
use crate::server::client::ClientKey;
use crate::server::load::Load;
use crate::server::rights::ClientRights;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;

/// An open exchange.
#[derive(Debug)]
pub(in crate::server) struct ServedExchange {
    pub(in crate::server) peer: Arc<Peer>,
    /// The client at its other end.
    pub(in crate::server) client: ClientKey,
    pub(in crate::server) binding: Binding,
    /// Its subscriptions.
    pub(in crate::server) listens: BTreeSet<RequestKey>,
    pub(in crate::server) load: Load,
}

/// The state of an exchange that depends on how messages travel.
#[derive(Debug)]
pub(in crate::server) enum Binding {
    Duplex(Box<Duplex>),
    Http(Http),
}

impl Binding {
    pub(in crate::server) fn duplex(&self) -> Option<&Duplex> {
        match self {
            Self::Duplex(duplex) => Some(duplex),
            Self::Http(_) => None,
        }
    }

    pub(in crate::server) fn http(&self) -> Option<&Http> {
        match self {
            Self::Http(http) => Some(http),
            Self::Duplex(_) => None,
        }
    }

    pub(in crate::server) fn http_mut(&mut self) -> Option<&mut Http> {
        match self {
            Self::Http(http) => Some(http),
            Self::Duplex(_) => None,
        }
    }

    /// Returns as whom its client was admitted. `None`: that is not decided.
    pub(in crate::server) fn rights(&self) -> Option<&ClientRights> {
        match self {
            Self::Duplex(duplex) => duplex.rights(),
            Self::Http(http) => Some(http.rights()),
        }
    }

    /// Returns the key of the admission that the exchange waits for.
    pub(in crate::server) fn waits_for_admission(&self) -> Option<AdmitKey> {
        match self {
            Self::Duplex(duplex) => duplex.waits_for_admission(),
            Self::Http(http) => http.waits_for_admission(),
        }
    }

    pub(in crate::server) fn duplex_mut(&mut self) -> Option<&mut Duplex> {
        match self {
            Self::Duplex(duplex) => Some(duplex),
            Self::Http(_) => None,
        }
    }
}
