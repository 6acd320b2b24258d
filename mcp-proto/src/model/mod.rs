//! The typed protocol, one file an area. Types are read from [`Object`](crate::rpc::Object)s member by member, unknown members are kept
//! where a peer's extension could matter, and `lower(version)` stands on the few types that a revision cannot carry as they are.

pub mod content;
pub mod elicitation;
#[cfg(feature = "http")]
pub(crate) mod headers;
pub mod lifecycle;
pub(crate) mod logging;
pub(crate) mod mirror;
pub mod tools;

pub use crate::call::Progress;
