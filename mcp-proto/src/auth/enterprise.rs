//! The exchange of a login at an identity provider for a grant at the issuer of a server (RFC 8693
//! section 2, draft-ietf-oauth-identity-assertion-authz-grant).

#[cfg(test)]
mod tests;

use super::form::Form;
use super::grant::SubjectToken;
use super::scopes::Scopes;
use super::secret::Secret;
use super::token::{Members, with_use};
use alloc::format;
use alloc::string::String;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// The type of the grant that comes of it.
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// The type of a token that is no access token.
const NO_TYPE: &str = "N_A";

/// An exchange.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    /// What the application has of the login.
    pub(super) subject: &'a Secret,
    pub(super) subject_type: SubjectToken,
    /// The issuer of the server.
    pub(super) audience: &'a str,
    /// The identifier of the server. The grant is restricted to it.
    pub(super) resource: &'a str,
    pub(super) scopes: &'a Scopes,
}

impl Exchange<'_> {
    /// Returns the form for the identity provider.
    pub(super) fn form(&self) -> Form {
        let form = Form::new()
            .with("grant_type", GRANT)
            .with("requested_token_type", ID_JAG)
            .with("audience", self.audience)
            .with("subject_token", self.subject.expose())
            .with("subject_token_type", self.subject_type.as_str());
        with_use(form, self.scopes, Some(self.resource))
    }
}

/// Reads the grant in an answer.
///
/// # Errors
/// What is wrong with it.
pub(super) fn grant(members: &Members, max: usize) -> Result<Secret, String> {
    let grant = members.text("access_token").ok_or("there is no grant")?;
    let issued = members.text("issued_token_type");
    if issued.as_deref().is_some_and(|issued| issued != ID_JAG) {
        return Err("the identity provider issued something else than a grant".into());
    }
    // It may be left out here, but an access token is none.
    if members.text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case(NO_TYPE)) {
        return Err("the identity provider issued an access token in place of a grant".into());
    }
    if grant.len() > max {
        return Err(format!("the grant is longer than {max} bytes"));
    }
    Ok(grant.as_ref().into())
}
