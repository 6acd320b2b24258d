//! One connection to the listener for a redirect, as a value: bytes come in, and what to do comes
//! out. Nothing of a request is in a response.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use httparse::{EMPTY_HEADER, Header, Request, Status};
use mcp_proto::auth::PageResult;

/// Maximum length of the head of a request, in bytes.
const MAX_HEAD: usize = 8 << 10;

/// Maximum number of its header fields.
const MAX_FIELDS: usize = 64;

/// The requests that count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Expected {
    /// The host and the port, as in the redirect URI.
    pub(super) host: String,
    /// The path.
    pub(super) path: String,
}

/// A connection, up to its one response.
#[derive(Debug, Default)]
pub(super) struct CallbackConnection {
    head: Vec<u8>,
    /// A reaction other than [`Reaction::Wait`] was returned.
    decided: bool,
}

/// What to do with a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Reaction {
    /// Wait for more bytes.
    Wait,
    /// A redirect with this URL. Its result is the response.
    Redirected(String),
    /// Respond with [`Page::Absent`].
    Wrong,
}

/// A response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Page {
    /// The login goes on well.
    Accepted,
    /// The login has failed.
    Refused,
    /// The redirect has arrived. Its result is not known yet.
    Arrived,
    /// There is nothing to see.
    Absent,
}

impl CallbackConnection {
    /// Takes bytes of the connection. After a decision, further ones are ignored.
    pub(super) fn read(&mut self, bytes: &[u8], expected: &Expected) -> Reaction {
        if self.decided {
            return Reaction::Wait;
        }
        let room = (MAX_HEAD + 1).saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(room));
        let reaction = expected.look(&self.head);
        self.decided = reaction != Reaction::Wait;
        reaction
    }
}

impl Expected {
    fn look(&self, read: &[u8]) -> Reaction {
        let mut fields = [EMPTY_HEADER; MAX_FIELDS];
        let mut request = Request::new(&mut fields);
        match request.parse(read) {
            Ok(Status::Complete(length)) if length <= MAX_HEAD => {
                self.redirect(&request).map_or(Reaction::Wrong, Reaction::Redirected)
            }
            Ok(Status::Partial) if read.len() <= MAX_HEAD => Reaction::Wait,
            _ => Reaction::Wrong,
        }
    }

    /// Returns the URL of a request that is a redirect.
    fn redirect(&self, request: &Request<'_, '_>) -> Option<String> {
        let target = request.path?;
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        let is_body = |field: &Header<'_>| {
            let is = |name| field.name.eq_ignore_ascii_case(name);
            is("transfer-encoding") || (is("content-length") && field.value != b"0")
        };
        let is_host = |field: &&Header<'_>| field.name.eq_ignore_ascii_case("host");
        let mut hosts = request.headers.iter().filter(is_host);
        let host = hosts.next().filter(|_| hosts.next().is_none())?;
        let is_ours = request.method == Some("GET")
            && path == self.path
            && host.value.eq_ignore_ascii_case(self.host.as_bytes())
            && !request.headers.iter().any(is_body);
        is_ours.then(|| format!("http://{}{target}", self.host))
    }
}

impl Page {
    /// Returns the page that shows the result of a login.
    pub(super) const fn of(result: PageResult) -> Self {
        match result {
            PageResult::Accepted => Self::Accepted,
            PageResult::Refused => Self::Refused,
            PageResult::Ended => Self::Absent,
        }
    }

    /// Returns the whole response.
    pub(super) fn response(self) -> Vec<u8> {
        let (status, title, text) = match self {
            Self::Accepted => ("200 OK", "Logged in", "You are logged in. You can close this page."),
            Self::Refused => ("400 Bad Request", "Not logged in", "The login has failed. The program says why."),
            Self::Arrived => ("200 OK", "Login", "The program continues with the login. You can close this page."),
            Self::Absent => ("404 Not Found", "Not found", "There is nothing here."),
        };
        let page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><p>{text}</p></html>\n"
        );
        let fields = [
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Length", &page.len().to_string()),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("Content-Security-Policy", "default-src 'none'"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
        ];
        let head = fields
            .iter()
            .fold(format!("HTTP/1.1 {status}\r\n"), |head, (name, value)| format!("{head}{name}: {value}\r\n"));
        (head + "\r\n" + &page).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "GET /callback?code=c&state=s HTTP/1.1\r\nHost: 127.0.0.1:4242\r\n\r\n";

    fn expected() -> Expected {
        Expected { host: "127.0.0.1:4242".into(), path: "/callback".into() }
    }

    fn read(request: &str) -> Reaction {
        CallbackConnection::default().read(request.as_bytes(), &expected())
    }

    fn url(url: &str) -> Reaction {
        Reaction::Redirected(url.into())
    }

    #[test]
    fn only_a_get_of_the_redirect_uri_counts() {
        let with = |from: &str, to: &str| GOOD.replace(from, to);
        let good = url("http://127.0.0.1:4242/callback?code=c&state=s");
        for (request, reaction) in [
            (GOOD.to_string(), good.clone()),
            (with("1.1", "1.0"), good.clone()),
            (with("Host", "hOST"), good.clone()),
            (with("\r\n\r\n", "\r\nContent-Length: 0\r\n\r\n"), good.clone()),
            (with("?code=c&state=s", ""), url("http://127.0.0.1:4242/callback")),
            (with("?code=c&state=s", "?%00\"<>"), url("http://127.0.0.1:4242/callback?%00\"<>")),
            (with("GET", "POST"), Reaction::Wrong),
            (with("GET", "HEAD"), Reaction::Wrong),
            (with("GET", "get"), Reaction::Wrong),
            (with("/callback", "/favicon.ico"), Reaction::Wrong),
            (with("/callback", "/callback/"), Reaction::Wrong),
            (with("/callback", "//callback"), Reaction::Wrong),
            (with("/callback", "/Callback"), Reaction::Wrong),
            (with("/callback", "/call%62ack"), Reaction::Wrong),
            (with("/callback", "http://127.0.0.1:4242/callback"), Reaction::Wrong),
            (with("4242", "4243"), Reaction::Wrong),
            (with(":4242", ""), Reaction::Wrong),
            (with("127.0.0.1", "localhost"), Reaction::Wrong),
            (with("127.0.0.1", "rebound.example"), Reaction::Wrong),
            (with("Host: 127.0.0.1:4242\r\n", ""), Reaction::Wrong),
            (with("\r\n\r\n", "\r\nHost: 127.0.0.1:4242\r\n\r\n"), Reaction::Wrong),
            (with("\r\n\r\n", "\r\nContent-Length: 1\r\n\r\nx"), Reaction::Wrong),
            (with("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"), Reaction::Wrong),
            ("\u{16}\u{3}\u{1}\u{2}\0".into(), Reaction::Wrong),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), Reaction::Wrong),
        ] {
            assert_eq!(read(&request), reaction, "{request}");
        }
    }

    #[test]
    fn request_may_come_in_pieces_and_is_answered_once() {
        for size in 1..GOOD.len() {
            let mut connection = CallbackConnection::default();
            let pieces: Vec<&[u8]> = GOOD.as_bytes().chunks(size).collect();
            let (last, before) = pieces.split_last().expect("pieces");
            before.iter().for_each(|piece| assert_eq!(connection.read(piece, &expected()), Reaction::Wait));
            assert!(matches!(connection.read(last, &expected()), Reaction::Redirected(_)), "in pieces of {size}");
            assert_eq!(connection.read(GOOD.as_bytes(), &expected()), Reaction::Wait, "a second request");
        }
    }

    #[test]
    fn head_has_a_limited_size() {
        let padded = |length: usize| {
            let rest = "\r\nX: \r\n\r\n";
            GOOD.replace("\r\n\r\n", &format!("\r\nX: {}\r\n\r\n", "x".repeat(length + 4 - GOOD.len() - rest.len())))
        };
        for (length, is_read) in [(MAX_HEAD, true), (MAX_HEAD + 1, false), (3 * MAX_HEAD, false)] {
            let request = padded(length);
            assert_eq!(request.len(), length);
            assert_eq!(matches!(read(&request), Reaction::Redirected(_)), is_read, "{length}");
        }
        let mut endless = CallbackConnection::default();
        let reactions: Vec<Reaction> = (0..100).map(|_| endless.read(&[b'G'; 1000], &expected())).collect();
        assert_eq!(reactions.iter().filter(|reaction| **reaction == Reaction::Wrong).count(), 1);
        assert!(endless.head.len() <= MAX_HEAD + 1);
        let fields = "A: b\r\n".repeat(MAX_FIELDS + 1);
        assert_eq!(read(&GOOD.replace("Host", &(fields + "Host"))), Reaction::Wrong);
    }

    #[test]
    fn pages_are_fixed_and_loaded_by_nothing_else() {
        for (page, status) in [
            (Page::of(PageResult::Accepted), "200 OK"),
            (Page::of(PageResult::Refused), "400 Bad Request"),
            (Page::of(PageResult::Ended), "404 Not Found"),
            (Page::Arrived, "200 OK"),
        ] {
            let response = String::from_utf8(page.response()).expect("text");
            let (head, body) = response.split_once("\r\n\r\n").expect("a head");
            assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
            assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
            for field in [
                "Cache-Control: no-store",
                "Referrer-Policy: no-referrer",
                "Content-Security-Policy: default-src 'none'",
                "Connection: close",
            ] {
                assert!(head.split("\r\n").any(|line| line == field), "{head}");
            }
        }
    }
}
