//! OAuth 2.1 for clients (2026-07-28 authorization): a flow obtains and keeps the credentials for
//! one server. It contains no engine, no clock and no store: what it wants leaves as a step, and
//! comes back as an input, so a login can be replayed to the byte. Only functions that know the
//! addressee of a secret write it into a request.
//!
//! [`ClientConfig::auth`](crate::ClientConfig::auth) gives a client a flow.

mod challenge;
mod client_auth;
mod config;
mod discovery;
mod flow;
mod form;
mod identifier;
#[cfg(feature = "record")]
mod mask;
mod metadata;
mod page;
mod pkce;
mod policy;
mod record;
mod registration;
mod scopes;
mod secret;
mod step;
mod support;
mod token;

pub use config::{
    AuthCompat, AuthConfig, AuthLimits, AuthMethod, GivenClient, LoopbackHost, Parameter, ParameterPlace, Port, Prompt,
    Redirect, Registration,
};
pub(crate) use flow::{Attach, Reaction, Refused, Tried};
pub use flow::{Flow, FlowState};
#[cfg(feature = "record")]
pub(crate) use mask::Masks;
pub use policy::{AuthReach, UrlPolicy};
pub use record::{BadRecord, ClientSource, Entry, Record, RegisteredClient, StoreKey, Tokens, Version};
pub use scopes::Scopes;
pub use secret::Secret;
pub use step::{
    AuthReport, Browse, Generation, Input, Lease, Listen, Output, PageResult, Purpose, SaveFault, StepId, StoreFault,
    Stored,
};
