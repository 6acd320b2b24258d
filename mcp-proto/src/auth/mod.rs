//! OAuth 2.1 for clients (2026-07-28 authorization): a flow obtains and keeps the credentials for
//! one server. It contains no engine, no clock and no store: what it wants leaves as a step, and
//! comes back as an input, so a login can be replayed to the byte. Only functions that know the
//! addressee of a secret write it into a request.
//!
//! [`ClientConfig::auth`](crate::ClientConfig::auth) gives a client a flow.
//!
//! For servers: a [`Resource`] describes the server, and a [`Verifier`] decides whether the tokens
//! of requests are valid. It has no cryptography, either.

mod assertion;
mod challenge;
mod client_auth;
mod config;
mod device;
mod discovery;
mod dpop;
mod enterprise;
mod flow;
mod form;
mod grant;
mod identifier;
mod jwk;
mod jws;
#[cfg(feature = "record")]
mod mask;
mod metadata;
mod page;
mod pkce;
mod policy;
mod principal;
mod record;
mod registration;
mod resource;
mod scopes;
mod secret;
mod step;
mod support;
mod survey;
mod token;

pub use config::{
    AuthCompat, AuthConfig, AuthLimits, AuthMethod, Dpop, LoopbackHost, Parameter, ParameterPlace, Port, Prompt,
    Redirect, Registration,
};
pub(crate) use dpop::NONCE_FIELD;
pub(crate) use flow::{Attach, Reaction, Refused, RequestProof, Tried};
pub use flow::{Flow, FlowState};
pub use grant::{ClientAuth, ClientKey, GivenClient, Grant, IdentityProvider, SubjectToken};
pub use jwk::PublicKey;
pub use jws::{Alg, KeyPair, SignKey, SignRequest};
#[cfg(feature = "record")]
pub(crate) use mask::Masks;
pub use policy::{AuthReach, UrlPolicy};
pub use principal::Principal;
pub use record::{BadRecord, ClientSource, Entry, Record, RegisteredClient, StoreKey, TokenType, Tokens, Version};
pub use resource::{
    Access, AccessDenial, Check, CheckId, IssuerConfig, ProofUse, Resource, Trust, Verification, Verifier,
    VerifierConfig, VerifierOutput, VerifierReport,
};
pub(crate) use resource::{DenialResponse, INSUFFICIENT_SCOPE, INVALID_TOKEN, ResourceDocument};
pub use scopes::Scopes;
pub use secret::Secret;
pub use step::{
    AssertionPurpose, AssertionRequest, AuthReport, Browse, DeviceCode, Generation, Input, Lease, Listen, Output,
    PageResult, Purpose, SaveFault, StepId, StoreFault, Stored,
};
pub use survey::{Survey, SurveyedIssuer};
