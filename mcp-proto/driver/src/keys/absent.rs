//! Without the feature `rustls` there is no cryptography.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use mcp_proto::auth::{Alg, KeyPair, SignKey, Verification};

/// Signs nothing.
///
/// # Errors
/// Always.
pub fn sign(_key: &SignKey, _alg: Alg, _input: &[u8]) -> Result<Vec<u8>, String> {
    Err(missing())
}

/// Verifies nothing.
///
/// # Errors
/// Always.
pub fn verify(_verification: &Verification) -> Result<bool, String> {
    Err(missing())
}

/// Makes no key.
///
/// # Errors
/// Always.
pub fn generate(_alg: Alg) -> Result<KeyPair, String> {
    Err(missing())
}

fn missing() -> String {
    "no cryptography: this build lacks the feature `tls`".to_owned()
}
