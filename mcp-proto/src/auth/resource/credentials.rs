//! The token of a request (RFC 6750 section 2.1, RFC 9449 section 7.1).

use super::AccessDenial;
use crate::auth::form;
use crate::exchange::RequestHead;

/// Maximum length of a token, in bytes.
const MAX_TOKEN: usize = 8 << 10;

/// The scheme of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scheme {
    /// The token alone.
    Bearer,
    /// The token with a proof of possession of its key.
    Dpop,
}

/// Returns the token of a request.
///
/// # Errors
/// Why there is none, or none that counts.
pub(super) fn read(head: &RequestHead) -> Result<(Scheme, &str), AccessDenial> {
    if has_query_token(&head.target) {
        return Err(AccessDenial::Malformed("a token does not belong into the URL"));
    }
    let mut fields = head.headers.all("authorization");
    let (Some(field), None) = (fields.next(), fields.next()) else {
        let is_missing = head.headers.get("authorization").is_none();
        return Err(if is_missing { AccessDenial::Missing } else { AccessDenial::Malformed("more than one token") });
    };
    let field = field.trim();
    let (scheme, token) = field.split_once(' ').unwrap_or((field, ""));
    let scheme = if scheme.eq_ignore_ascii_case("bearer") {
        Scheme::Bearer
    } else if scheme.eq_ignore_ascii_case("dpop") {
        Scheme::Dpop
    } else {
        // Credentials for something else, such as a proxy that left them.
        return Err(AccessDenial::Missing);
    };
    let token = token.trim_start();
    // Wider than the grammar of RFC 6750 section 2.1, as issuers are. A comma would separate two.
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',') {
        return Err(AccessDenial::Malformed("the field Authorization has no token"));
    }
    if token.len() > MAX_TOKEN {
        return Err(AccessDenial::Invalid("the token is too long"));
    }
    Ok((scheme, token))
}

/// Returns whether a request target has a token in its query (RFC 6750 section 2.3).
fn has_query_token(target: &str) -> bool {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    !query.is_empty() && form::decode(query).iter().any(|(name, _)| name == "access_token")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Headers;
    use alloc::string::String;

    fn head(target: &str, fields: &[&str]) -> RequestHead {
        let headers = fields.iter().fold(Headers::new(), |headers, field| headers.with("Authorization", field));
        RequestHead { method: "POST".into(), target: target.into(), headers }
    }

    // covers: RSRC-S-010
    #[test]
    fn token_is_read_whatever_the_case_of_its_scheme() {
        for (field, scheme) in [
            ("Bearer abc", Scheme::Bearer),
            ("bearer abc", Scheme::Bearer),
            ("BEARER   abc ", Scheme::Bearer),
            ("DPoP abc", Scheme::Dpop),
            ("dpop abc", Scheme::Dpop),
        ] {
            assert_eq!(read(&head("/mcp?a=b", &[field])), Ok((scheme, "abc")), "{field}");
        }
    }

    // covers: RSRC-S-009, RSRC-S-010
    #[test]
    fn request_without_one_token_is_refused() {
        let missing: &[&[&str]] = &[&[], &["Basic YTpi"], &[""], &["Bearerabc"]];
        for fields in missing {
            assert_eq!(read(&head("/mcp", fields)), Err(AccessDenial::Missing), "{fields:?}");
        }
        let malformed: &[(&str, &[&str])] = &[
            ("/mcp", &["Bearer a", "Bearer a"]),
            ("/mcp", &["Bearer a", "Basic YTpi"]),
            ("/mcp", &["Bearer"]),
            ("/mcp", &["Bearer "]),
            ("/mcp", &["Bearer a b"]),
            ("/mcp", &["Bearer a, Bearer b"]),
            ("/mcp", &["Bearer \u{e9}"]),
            ("/mcp?access_token=a", &["Bearer a"]),
            ("/mcp?b=c&access%5ftoken=a", &[]),
        ];
        for (target, fields) in malformed {
            let denial = read(&head(target, fields)).unwrap_err();
            assert!(matches!(denial, AccessDenial::Malformed(_)), "{target} {fields:?}");
        }
    }

    #[test]
    fn long_token_is_not_looked_at() {
        let field = |len| -> String { ["Bearer ", &"a".repeat(len)].concat() };
        assert!(read(&head("/mcp", &[&field(8192)])).is_ok());
        assert!(matches!(read(&head("/mcp", &[&field(8193)])), Err(AccessDenial::Invalid(_))));
    }
}
