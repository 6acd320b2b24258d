//! The error codes that the specification defines.

/// The bytes are not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON, but not a message.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist or is not available.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The params are invalid.
pub const INVALID_PARAMS: i64 = -32602;
/// An internal error of the responder.
pub const INTERNAL_ERROR: i64 = -32603;
/// Up to 2025-11-25: the resource does not exist. 2026-07-28 forbids the code, and has
/// [`INVALID_PARAMS`] instead.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// 2025-11-25: the request needs web pages that the user has to open first.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// 2026-07-28: a header field is missing, malformed, or contradicts the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// 2026-07-28: the request needs a client capability that it did not declare.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The client has made too many requests: see [`RateLimit`](crate::route::RateLimit). Over HTTP it
/// is the status too.
pub const TOO_MANY_REQUESTS: i64 = 429;
/// 2026-07-28: the requested revision is not supported.
pub const UNSUPPORTED_VERSION: i64 = -32022;
