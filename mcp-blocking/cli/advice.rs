//! What a user can do about a failure. An advice is given only if it fits the fault.

use crate::failure::is_declined;
use crate::output::quoted;
use crate::wording::{cause, is_web_page};
use mcp_blocking::mcp_proto::error::{AuthError, NegotiationCause, Problem};
use mcp_blocking::mcp_proto::exchange::{Closed, TlsFailureKind};
use mcp_blocking::{CallError, ConnectError, HttpError, ProtocolVersion};

/// What the advice depends on beside the failure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    /// `--revision` was given.
    pub(crate) has_revision: bool,
    /// The requests have a field `Authorization`, or the fields of a file.
    pub(crate) has_credentials: bool,
    /// Maximum size of a message of the server, in bytes.
    pub(crate) max_message: usize,
    /// The command is `doctor`, which tries everything else by itself.
    pub(crate) is_doctor: bool,
    /// The command is `login`.
    pub(crate) is_login: bool,
    /// Logins need no user.
    pub(crate) is_machine: bool,
    /// The line to type for a login. `None` if the target is no URL.
    pub(crate) login: Option<String>,
}

const PATH: &str = "no MCP server at this path: it often ends with /mcp or /sse";
const PAGE: &str = "this is a web page, not an MCP endpoint: its path often ends with /mcp or /sse";

impl Hints {
    /// Returns the line of `mcp doctor` that shows more, unless this is it.
    fn doctor(&self, what: &str) -> Option<String> {
        let line = self.login.as_deref().unwrap_or("mcp login TARGET").replacen("login", "doctor", 1);
        (!self.is_doctor).then(|| format!("{what}: {line}"))
    }

    /// Returns the limit of a message, and the option that raises it.
    pub(crate) fn of_limit(&self) -> String {
        format!("the limit is {}: --max-message SIZE raises it, such as --max-message 256M", size(self.max_message))
    }
}

/// Returns a size for people.
fn size(bytes: usize) -> String {
    const MIB: usize = 1 << 20;
    const KIB: usize = 1 << 10;
    match bytes {
        MIB.. if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        KIB.. if bytes.is_multiple_of(KIB) => format!("{} KiB", bytes / KIB),
        _ => format!("{bytes} bytes"),
    }
}

pub(crate) fn of_connect(error: &ConnectError, hints: &Hints) -> Vec<String> {
    match (cause(error), error) {
        (Some(cause), _) => of_cause(cause, hints),
        (None, ConnectError::Closed(why)) => of_closed(why),
        (None, _) => None,
    }
    .into_iter()
    .collect()
}

pub(crate) fn of_call(error: &CallError, hints: &Hints) -> Vec<String> {
    match error {
        // The connection has shown that the path is right.
        CallError::Http(http) => of_http(http, hints).filter(|text| text != PATH),
        CallError::ContentType { content_type, .. } => of_content_type(content_type.as_deref()),
        CallError::Negotiation(error) => of_cause(&error.cause, hints),
        CallError::Closed { why, .. } => of_closed(why),
        _ => None,
    }
    .into_iter()
    .collect()
}

/// Returns the advice about a login that failed, or is not there.
pub(crate) fn of_login(error: &AuthError, hints: &Hints) -> Vec<String> {
    const HEADER: &str = "--header 'Authorization: Bearer TOKEN'";
    let line = hints.login.as_deref().unwrap_or("mcp login TARGET");
    let with = |options: String| format!("{line} {options}");
    let client = |issuer: &str| with(format!("--issuer {} --client-id ID", quoted(issuer)));
    let code = |problem: &Problem| problem.error.clone().unwrap_or_default();
    let advice = match error {
        AuthError::Quiet(why) => return of_login(why, hints),
        AuthError::LoginRequired | AuthError::Rejected => {
            return vec![format!("log in: {line}"), format!("or give a token: {HEADER}")];
        }
        AuthError::Scope { scopes } => {
            let options: Vec<_> = scopes.split(' ').map(|scope| format!("--scope {}", quoted(scope))).collect();
            format!("log in with them: {}", with(options.join(" ")))
        }
        AuthError::NoRegistration { issuer } => format!("register a client there, and name it: {}", client(issuer)),
        AuthError::Registration(_) => format!("register a client there by hand, and name it: {}", client("URL")),
        AuthError::OtherIssuer { issuer, .. } => {
            format!("the client must be one of this issuer: --issuer {}", quoted(issuer))
        }
        AuthError::NoDeviceGrant { .. } => format!("log in with a page: {line} --no-browser"),
        AuthError::Discovery { .. } => format!("does the server want a token of another kind? {HEADER}"),
        AuthError::Authorization(problem) if is_declined(problem) => {
            format!("the page was declined: to accept it, log in again: {line}")
        }
        AuthError::Authorization(problem) | AuthError::Token(problem) if code(problem) == "invalid_scope" => {
            return hints.doctor("see the scopes that it lists").into_iter().collect();
        }
        AuthError::Token(problem) if hints.is_machine && code(problem) == "invalid_client" => {
            "is it the secret or the key of this client, at this authorization server?".to_owned()
        }
        AuthError::PageTimeout | AuthError::Token(_) | AuthError::Authorization(_)
            if !hints.is_login && !hints.is_machine =>
        {
            format!("log in again: {line}")
        }
        AuthError::PageTimeout if hints.is_login => {
            let line = line.replacen("login", "logout", 1);
            format!("if the page showed an error, the client may be forgotten there: {line}, then log in again")
        }
        AuthError::Busy => "another program uses this login: try again".to_owned(),
        AuthError::ResourceMismatch { .. } | AuthError::BadUrl { .. } | AuthError::Unavailable(_) => {
            return hints.doctor("see each step").into_iter().collect();
        }
        _ => return Vec::new(),
    };
    vec![advice]
}

fn of_cause(cause: &NegotiationCause, hints: &Hints) -> Option<String> {
    match cause {
        NegotiationCause::Http(http) => of_http(http, hints),
        NegotiationCause::Closed(why) => of_closed(why),
        NegotiationCause::NoMutualVersion(_) if hints.has_revision => Some("leave out --revision".to_owned()),
        NegotiationCause::NoMutualVersion(_) => {
            let known = ProtocolVersion::ALL.map(ProtocolVersion::as_str).join(", ");
            Some(format!("this command has the revisions {known}"))
        }
        NegotiationCause::Timeout(_) | NegotiationCause::StartTimeout(_) if !hints.is_doctor => {
            Some("the server does not answer; `mcp doctor` tries older revisions and other transports".to_owned())
        }
        // The library has only the text of this error at this point.
        NegotiationCause::Decode(e) => {
            let text = e.to_string();
            match text.split_once(" with a body of type ") {
                Some((_, kind)) => of_content_type(Some(kind.trim_start_matches('"'))),
                None if text.ends_with(" without a response body") => of_content_type(None),
                None => Some("the server violates the protocol there, which its author can mend".to_owned()),
            }
        }
        _ => None,
    }
}

/// Returns the advice for a success without a message. `None`: its body is empty.
fn of_content_type(kind: Option<&str>) -> Option<String> {
    let is_page = |kind: &str| kind.to_ascii_lowercase().starts_with("text/html");
    Some(match kind {
        Some(kind) if is_page(kind) => PAGE.to_owned(),
        Some(_) => "this is not an MCP endpoint: its path often ends with /mcp or /sse".to_owned(),
        None => "the response is empty, so this is hardly an MCP endpoint: its path often ends with /mcp".to_owned(),
    })
}

fn of_http(http: &HttpError, hints: &Hints) -> Option<String> {
    let has_challenge = !http.auth.www_authenticate.is_empty() || http.auth.auth_server.is_some();
    let credentials = match hints.has_credentials {
        true => "the server does not accept these credentials",
        false => "the server requires credentials: --header 'Authorization: Bearer TOKEN'",
    };
    let text = match http.status {
        401 => credentials,
        407 => "the proxy requires credentials: HTTPS_PROXY=http://user:password@host:port",
        _ if is_web_page(&http.body_head) => PAGE,
        403 if has_challenge || http.body_head.is_empty() => credentials,
        404 | 405 => PATH,
        400 if expects_tls(&http.body_head) => "the server expects TLS at this port: try https://",
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns whether a server with TLS answers a request without it: Go, nginx and Apache say so.
fn expects_tls(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    text.contains("http request to an https server") || text.contains("speaking plain http to an ssl-enabled server")
}

fn of_closed(why: &Closed) -> Option<String> {
    let text = match why {
        Closed::Refused => "nothing listens there: is the server running?",
        Closed::Unresolved => "is the name of the host right?",
        Closed::Unreachable(_) => "is the command installed, and in PATH?",
        Closed::Exited(_) => "does the command need other arguments or variables?",
        Closed::Tls(failure) => match failure.kind {
            TlsFailureKind::NotTls => "the server has no TLS at this port: try http://",
            TlsFailureKind::Expired | TlsFailureKind::NotYetValid => {
                "the server needs a valid certificate, or the clock of this computer is wrong"
            }
            TlsFailureKind::WrongName => "the certificate must be valid for the host of the URL",
            TlsFailureKind::UnknownIssuer | TlsFailureKind::BadCertificate => {
                "the certificate must be valid for this host, and issued by an authority that this system trusts"
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_blocking::mcp_proto::exchange::TlsFailure;

    fn http(status: u16, body: &'static str, challenge: bool) -> Option<String> {
        let mut http = HttpError::new(status);
        http.body_head = body.as_bytes().into();
        http.auth.www_authenticate.extend(challenge.then(|| "Bearer".to_owned()));
        of_http(&http, &Hints::default())
    }

    #[test]
    fn tls_advice_names_certificates_only_if_they_matter() {
        let of = |kind| of_closed(&Closed::Tls(TlsFailure::new(kind, "")));
        let plain = of(TlsFailureKind::NotTls).expect("advice");
        assert!(plain.contains("http://") && !plain.contains("certificate"), "{plain}");
        assert!(of(TlsFailureKind::UnknownIssuer).is_some_and(|text| text.contains("authority")));
        assert!(of(TlsFailureKind::Expired).is_some_and(|text| text.contains("clock")));
        assert_eq!(of(TlsFailureKind::Violation), None);
        assert!(http(400, "Client sent an HTTP request to an HTTPS server.\n", false).unwrap().contains("https://"));
    }

    #[test]
    fn path_is_in_doubt_only_without_a_connection() {
        let lost = HttpError::new(404);
        assert_eq!(of_http(&lost, &Hints::default()).as_deref(), Some(PATH));
        assert!(of_call(&CallError::Http(Box::new(lost)), &Hints::default()).is_empty());
    }

    #[test]
    fn revision_is_named_only_if_it_was_given() {
        let cause = NegotiationCause::NoMutualVersion(vec!["2024-10-07".to_owned()]);
        let of = |has_revision| of_cause(&cause, &Hints { has_revision, ..Hints::default() }).expect("advice");
        assert_eq!(of(true), "leave out --revision");
        assert!(of(false).ends_with("2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"), "{}", of(false));
    }

    // covers: B-248
    #[test]
    fn missing_login_names_the_line_to_type() {
        let hints = Hints { login: Some("mcp login https://h/mcp".to_owned()), ..Hints::default() };
        let of = |error| of_login(&error, &hints).join("; ");
        let missing = "log in: mcp login https://h/mcp; or give a token: --header 'Authorization: Bearer TOKEN'";
        assert_eq!(of(AuthError::LoginRequired), missing);
        assert_eq!(of(AuthError::Quiet(Box::new(AuthError::LoginRequired))), missing);
        let scopes = AuthError::Scope { scopes: "a b".to_owned() };
        assert_eq!(of(scopes), "log in with them: mcp login https://h/mcp --scope a --scope b");
        let closed = AuthError::NoRegistration { issuer: "https://i/;id".to_owned() };
        assert!(of(closed).ends_with("mcp login https://h/mcp --issuer 'https://i/;id' --client-id ID"));
        assert_eq!(of(AuthError::PageTimeout), "log in again: mcp login https://h/mcp");
        let problem = |error: &str| Problem { error: Some(error.to_owned()), ..Problem::default() };
        let declined = AuthError::Authorization(problem("access_denied"));
        assert!(of(declined).ends_with("to accept it, log in again: mcp login https://h/mcp"));
        let scope = AuthError::Authorization(problem("invalid_scope"));
        assert_eq!(of(scope), "see the scopes that it lists: mcp doctor https://h/mcp");
        assert_eq!(of(AuthError::Token(problem("invalid_client"))), "log in again: mcp login https://h/mcp");
        let tried = of_login(&AuthError::PageTimeout, &Hints { is_login: true, ..hints.clone() }).join("; ");
        assert!(tried.ends_with("forgotten there: mcp logout https://h/mcp, then log in again"), "{tried}");
    }

    #[test]
    fn sizes_have_the_largest_whole_unit() {
        assert_eq!([1 << 24, 1536, 5 << 10].map(size), ["16 MiB", "1536 bytes", "5 KiB"]);
    }
}
