//! The code that a user enters at a page on any device (RFC 8628).

#[cfg(test)]
mod tests;

use super::form::Form;
use super::scopes::Scopes;
use super::secret::Secret;
use super::token::{Members, with_resource, with_use};
use alloc::borrow::ToOwned;
use alloc::string::String;
use core::time::Duration;

/// The grant with such a code.
pub(super) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Maximum time for which a code is used.
const MAX_TIME: Duration = Duration::from_secs(30 * 60);
/// Minimum and maximum interval of the token requests.
const INTERVALS: (u64, u64) = (5, 60);
/// Maximum length of a code that a user enters.
const MAX_USER_CODE: usize = 256;

/// What an issuer answers to the request for a code (RFC 8628 section 3.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DeviceAuthorization {
    pub(super) device_code: Secret,
    pub(super) user_code: Secret,
    /// The page, which is not checked yet.
    pub(super) verification_uri: String,
    /// The same with the code in it.
    pub(super) verification_uri_complete: Option<String>,
    /// For how long the code is used.
    pub(super) lifetime: Duration,
    /// The interval of the token requests.
    pub(super) interval: Duration,
}

/// Returns the form that asks for a code.
pub(super) fn request(scopes: &Scopes, resource: Option<&str>) -> Form {
    with_use(Form::new(), scopes, resource)
}

/// Returns the form that asks whether the user is done.
pub(super) fn redeem(code: &Secret, resource: Option<&str>) -> Form {
    with_resource(Form::new().with("grant_type", GRANT).with("device_code", code.expose()), resource)
}

/// Returns the interval of the token requests after `slow_down`, or after a failed request.
pub(super) fn longer(interval: Duration, by: Duration) -> Duration {
    (interval + by).min(Duration::from_secs(INTERVALS.1))
}

/// Reads the answer.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(members: &Members, max: usize) -> Result<DeviceAuthorization, String> {
    let text = |name: &str, max: usize| members.text(name).filter(|text| text.len() <= max).map(String::from);
    let code = text("device_code", max).ok_or("there is no device code, or one that is too long")?;
    let user_code = text("user_code", MAX_USER_CODE).ok_or("there is no code for the user, or one that is too long")?;
    let page = members.text("verification_uri").ok_or("there is no page for the user")?;
    let lifetime = members.seconds("expires_in").ok_or("the code has no end")?;
    let interval = members.seconds("interval").unwrap_or(INTERVALS.0);
    Ok(DeviceAuthorization {
        device_code: code.into(),
        user_code: user_code.into(),
        verification_uri: page.as_ref().to_owned(),
        verification_uri_complete: members.text("verification_uri_complete").map(String::from),
        lifetime: Duration::from_secs(lifetime).min(MAX_TIME),
        interval: Duration::from_secs(interval.clamp(INTERVALS.0, INTERVALS.1)),
    })
}
