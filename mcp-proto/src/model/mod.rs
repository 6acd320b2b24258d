//! The typed protocol, one file for each area. Types are decoded from
//! [`Object`](crate::rpc::Object)s member by member. Unknown members are kept where an extension of
//! a peer could matter. The few types that a revision cannot represent unchanged have a method
//! `lower(version)`.

pub mod apps;
pub mod capabilities;
pub mod completion;
pub mod content;
mod described;
pub mod elicitation;
pub(crate) mod headers;
pub mod icon;
pub mod lifecycle;
pub mod logging;
pub(crate) mod mirror;
pub mod page;
pub mod prompts;
pub mod resources;
pub mod roots;
pub mod sampling;
#[cfg(feature = "skills")]
pub mod skills;
pub mod skipped;
pub mod tasks;
pub mod tools;
pub(crate) mod uri_template;

pub use crate::call::Progress;
