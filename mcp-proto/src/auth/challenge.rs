//! Challenges of a resource (RFC 9110 section 11, RFC 6750 section 3).

use super::dpop::ProofAlgs;
use super::resource::INSUFFICIENT_SCOPE;
use super::scopes::Scopes;
use alloc::string::String;
use alloc::vec::Vec;

/// The limits of the fields of one response. A field beyond the length is left out.
const MAX_LEN: usize = 8 << 10;
const MAX_CHALLENGES: usize = 16;

/// A challenge (RFC 9110 section 11.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AuthChallenge {
    /// The scheme, in lower case.
    pub(super) scheme: String,
    /// The value of a scheme without parameters.
    pub(super) token68: Option<String>,
    /// The parameters, with names in lower case.
    pub(super) params: Vec<(String, String)>,
}

impl AuthChallenge {
    /// Returns a parameter. A name in lower case finds the first one that is not empty.
    pub(super) fn param(&self, name: &str) -> Option<&str> {
        let mut values = self.params.iter().filter(|(known, value)| known == name && !value.is_empty());
        values.next().map(|(_, value)| value.as_str())
    }
}

/// What the challenges for a token say (RFC 6750 section 3, RFC 9449 section 7.1, RFC 9728 section
/// 5.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct TokenChallenge {
    /// The URL of the metadata of the resource.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub(super) scope: Option<Scopes>,
    /// The error code.
    pub(super) error: Option<String>,
    /// What a challenge of the scheme `DPoP` says, if there is one.
    pub(super) dpop: Option<DpopChallenge>,
}

/// What a challenge for a token that is bound to a key says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DpopChallenge {
    /// The algorithms that the server accepts.
    pub(super) algs: ProofAlgs,
    /// What is wrong with the proof of the request.
    pub(super) fault: Option<ProofFault>,
}

/// What a server says of a proof (RFC 9449 sections 7.1 and 9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProofFault {
    /// `use_dpop_nonce`: it needs the nonce that is in the same response.
    Nonce,
    /// `invalid_dpop_proof`.
    Invalid,
}

impl TokenChallenge {
    /// Reads the challenges of the schemes `Bearer` and `DPoP`. The first one that names metadata
    /// counts, else the first one that says something, else one that says nothing.
    pub(super) fn of<'a>(fields: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let challenges = parse(fields);
        let tokens = || challenges.iter().filter(|challenge| matches!(&*challenge.scheme, "bearer" | "dpop"));
        let mut found: Vec<_> = tokens().map(Self::read).collect();
        let names = found.iter().position(|challenge| challenge.resource_metadata.is_some());
        let says = names.or_else(|| found.iter().position(|challenge| *challenge != Self::default()));
        let first = (!found.is_empty()).then(|| found.swap_remove(says.unwrap_or(0)))?;
        let dpop = tokens().find(|challenge| challenge.scheme == "dpop").map(DpopChallenge::read);
        Some(Self { dpop, ..first })
    }

    fn read(challenge: &AuthChallenge) -> Self {
        let scope = challenge.param("scope").map(Scopes::parse);
        Self {
            resource_metadata: challenge.param("resource_metadata").map(String::from),
            scope: scope.filter(|scopes| !scopes.is_empty()),
            error: challenge.param("error").map(String::from),
            dpop: None,
        }
    }

    /// Returns whether a token with other scopes would do (RFC 6750 section 3.1).
    pub(super) fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some(INSUFFICIENT_SCOPE)
    }
}

impl DpopChallenge {
    fn read(challenge: &AuthChallenge) -> Self {
        let algs = challenge.param("algs").map(|names| ProofAlgs::listed(names.split(' ')));
        let fault = match challenge.param("error") {
            Some("use_dpop_nonce") => Some(ProofFault::Nonce),
            Some("invalid_dpop_proof") => Some(ProofFault::Invalid),
            _ => None,
        };
        Self { algs: algs.unwrap_or(ProofAlgs::ALL), fault }
    }
}

/// Reads the `WWW-Authenticate` fields of a response (RFC 9110 section 11.6.1): at most 16
/// challenges in at most 8 KiB. What is none is skipped up to the next challenge. Two deviations of
/// servers are tolerated: parameters without a comma between them, and a value without quotation
/// marks that is no token, such as a URL.
pub(super) fn parse<'a>(fields: impl IntoIterator<Item = &'a str>) -> Vec<AuthChallenge> {
    let mut room = MAX_LEN;
    let mut challenges = Vec::new();
    for field in fields {
        if let Some(left) = room.checked_sub(field.len()) {
            room = left;
            read_field(field, &mut challenges);
        }
    }
    challenges
}

/// Reads one field: elements with commas between them. One begins a challenge, or is a parameter
/// of the challenge before it.
fn read_field(field: &str, challenges: &mut Vec<AuthChallenge>) {
    let mut scan = Scan(field);
    // Whether the last challenge takes parameters.
    let mut open = false;
    while scan.next_element() {
        let element = scan;
        let name = scan.token();
        let has_space = scan.spaces();
        if !name.is_empty() && scan.0.starts_with('=') {
            scan = element;
            let params = scan.params();
            if let Some(challenge) = challenges.last_mut().filter(|_| open) {
                challenge.params.extend(params);
            }
            continue;
        }
        open = !name.is_empty() && (has_space || scan.at_border());
        if !open {
            scan.skip_element();
            continue;
        }
        if challenges.len() == MAX_CHALLENGES {
            return;
        }
        let token68 = scan.token68().map(String::from);
        let params = if token68.is_none() { scan.params() } else { Vec::new() };
        open = token68.is_none();
        challenges.push(AuthChallenge { scheme: name.to_ascii_lowercase(), token68, params });
    }
}

/// What is left of a field.
#[derive(Clone, Copy)]
struct Scan<'a>(&'a str);

impl<'a> Scan<'a> {
    /// Goes to the next element that is not empty. Returns whether there is one.
    fn next_element(&mut self) -> bool {
        self.0 = self.0.trim_start_matches([' ', '\t', ',']);
        !self.0.is_empty()
    }

    /// Returns whether an element ends here.
    fn at_border(&self) -> bool {
        self.0.is_empty() || self.0.starts_with(',')
    }

    /// Takes white space. Returns whether there is some.
    fn spaces(&mut self) -> bool {
        !self.take_while(|c| matches!(c, ' ' | '\t')).is_empty()
    }

    /// Takes a token (RFC 9110 section 5.6.2), or nothing.
    fn token(&mut self) -> &'a str {
        self.take_while(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
    }

    /// Takes the value of a scheme without parameters, which is all of an element.
    fn token68(&mut self) -> Option<&'a str> {
        let (before, mut after) = (self.0, *self);
        let text = after.take_while(|c| c.is_ascii_alphanumeric() || "-._~+/".contains(c));
        after.take_while(|c| c == '=');
        let value = &before[..before.len() - after.0.len()];
        after.spaces();
        (!text.is_empty() && after.at_border()).then(|| {
            *self = after;
            value
        })
    }

    /// Takes the parameters that an element consists of. Usually it is one.
    fn params(&mut self) -> Vec<(String, String)> {
        let mut params = Vec::new();
        while !self.at_border() {
            let Some(param) = self.param() else {
                // The value before it may be a part of what was meant.
                params.pop();
                self.skip_element();
                break;
            };
            params.push(param);
            self.spaces();
        }
        params
    }

    /// Takes a parameter.
    fn param(&mut self) -> Option<(String, String)> {
        let name = self.token();
        self.spaces();
        self.0 = self.0.strip_prefix('=').filter(|_| !name.is_empty())?;
        self.spaces();
        let value = match self.0.strip_prefix('"') {
            Some(text) => {
                let (value, rest) = unquote(text)?;
                self.0 = rest;
                value
            }
            None => {
                let text = self.take_while(|c| !matches!(c, ',' | '"') && !c.is_whitespace());
                Some(text).filter(|text| !text.is_empty())?.into()
            }
        };
        Some((name.to_ascii_lowercase(), value))
    }

    /// Goes to the end of an element. A comma in quotation marks is no end.
    fn skip_element(&mut self) {
        let (mut quoted, mut escaped) = (false, false);
        let end = self.0.find(|c| match c {
            _ if escaped => {
                escaped = false;
                false
            }
            '\\' => {
                escaped = quoted;
                false
            }
            '"' => {
                quoted = !quoted;
                false
            }
            c => c == ',' && !quoted,
        });
        self.0 = &self.0[end.unwrap_or(self.0.len())..];
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|c| !is_part(c)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }
}

/// Reads a quoted string behind its first quotation mark (RFC 9110 section 5.6.4). Returns its
/// value and what follows.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => value.push(chars.next()?),
            c => value.push(c),
        }
    }
}

#[cfg(test)]
mod tests;
