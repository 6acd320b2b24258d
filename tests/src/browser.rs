//! A browser as far as a login needs one: it follows redirects, keeps cookies, and sends the forms
//! of an authorization server. It reads a page only as far as it has to.

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time of a request.
const LIMIT: Duration = Duration::from_secs(20);
/// Maximum number of pages of a login.
const PAGES: usize = 20;

/// A browser with the cookies of one user. The pages of all ports of a host share them.
#[derive(Debug, Default)]
pub struct Browser {
    cookies: Vec<Cookie>,
    /// For the scheme `https`.
    tls: Option<Arc<ClientConfig>>,
}

#[derive(Debug)]
struct Cookie {
    host: String,
    path: String,
    name: String,
    value: String,
}

/// A response.
#[derive(Clone, Debug)]
pub struct Page {
    /// The status.
    pub status: u16,
    /// The fields.
    pub fields: Vec<(String, String)>,
    /// The body, as it was sent.
    pub body: String,
}

/// The decision of a user about what a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consent {
    /// The client gets it.
    Given,
    /// It gets nothing.
    Refused,
}

/// The parts of a URL.
struct Place<'a> {
    /// The scheme is `https`.
    is_secure: bool,
    /// The host with the port.
    authority: &'a str,
    /// The path with the query.
    target: &'a str,
}

impl Browser {
    /// Creates a browser without cookies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates one that also opens pages over TLS, from servers that `tls` trusts.
    pub const fn trusting(tls: Option<Arc<ClientConfig>>) -> Self {
        Self { cookies: Vec::new(), tls }
    }

    /// Gets a page, and follows no redirect.
    ///
    /// # Errors
    /// There is no response.
    pub fn get(&mut self, url: &str) -> Result<Page, String> {
        self.request("GET", url, "")
    }

    /// Sends a form, and follows no redirect. The names and values need no escapes.
    ///
    /// # Errors
    /// There is no response.
    pub fn post(&mut self, url: &str, form: &[(&str, &str)]) -> Result<Page, String> {
        let form: Vec<String> = form.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.request("POST", url, &form.join("&"))
    }

    /// Logs a user in at this page of an authorization server, and answers its question. Returns
    /// the URL of the redirect to the client, which is not followed.
    ///
    /// # Errors
    /// A page is another one.
    pub fn log_in(&mut self, url: &str, redirect_uri: &str, user: &str, consent: Consent) -> Result<String, String> {
        let mut page = self.get(url)?;
        let mut url = url.to_owned();
        for _ in 0..PAGES {
            if let Some(location) = page.field("location") {
                url = resolve(&url, location)?;
                if url.starts_with(redirect_uri) {
                    return Ok(url);
                }
                page = self.get(&url)?;
                continue;
            }
            let (action, prompt) = page.form().ok_or_else(|| format!("no form: {page:?}"))?;
            let action = resolve(&url, action)?;
            page = match (prompt, consent) {
                ("login", _) => self.post(&action, &[("prompt", prompt), ("login", user), ("password", user)])?,
                ("consent", Consent::Given) => self.post(&action, &[("prompt", prompt)])?,
                ("consent", Consent::Refused) => self.get(&format!("{action}/abort"))?,
                _ => return Err(format!("an unknown question: {prompt}")),
            };
            url = action;
        }
        Err(format!("no redirect after {PAGES} pages"))
    }

    /// Logs a user in at the page for a code of another device, whose URL has the code in it, and
    /// confirms it. Returns the last page.
    ///
    /// # Errors
    /// A page is another one.
    pub fn confirm(&mut self, url: &str, user: &str) -> Result<Page, String> {
        let mut page = self.get(url)?;
        let mut url = url.to_owned();
        for _ in 0..PAGES {
            if let Some(location) = page.field("location") {
                url = resolve(&url, location)?;
                page = self.get(&url)?;
                continue;
            }
            let Some(action) = between(&page.body, "action=\"", "\"") else { return Ok(page) };
            url = resolve(&url, action)?;
            let fields = ["xsrf", "user_code", "confirm", "prompt"];
            let hidden = fields.map(|name| (name, between(&page.body, &format!("name=\"{name}\" value=\""), "\"")));
            let hidden: Vec<_> =
                hidden.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned()))).collect();
            let mut form: Vec<_> = hidden.iter().map(|(name, value)| (*name, value.as_str())).collect();
            if form.contains(&("prompt", "login")) {
                form.extend([("login", user), ("password", user)]);
            }
            page = self.post(&url, &form)?;
        }
        Err(format!("no end after {PAGES} pages"))
    }

    fn request(&mut self, method: &str, url: &str, body: &str) -> Result<Page, String> {
        let Place { is_secure, authority, target } = Place::of(url)?;
        let told = |why: io::Error| format!("{method} {url}: {why}");
        let stream = TcpStream::connect(authority).map_err(told)?;
        stream.set_read_timeout(Some(LIMIT)).map_err(told)?;
        let cookies = self.cookies(authority, target);
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
        if !cookies.is_empty() {
            head += &format!("Cookie: {cookies}\r\n");
        }
        if method == "POST" {
            let kind = "application/x-www-form-urlencoded";
            head += &format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
        }
        let request = format!("{head}\r\n{body}");
        let answer = match &self.tls {
            Some(tls) if is_secure => {
                let name = ServerName::try_from(host(authority).to_owned()).map_err(|why| format!("{url}: {why}"))?;
                let session = ClientConnection::new(Arc::clone(tls), name).map_err(|why| format!("{url}: {why}"))?;
                exchange(StreamOwned::new(session, stream), &request)
            }
            _ if is_secure => return Err(format!("no certificate of {url} is trusted")),
            _ => exchange(stream, &request),
        };
        let answer = answer.map_err(told)?;
        let page = Page::read(&String::from_utf8_lossy(&answer))?;
        for (_, cookie) in page.fields.iter().filter(|(name, _)| name == "set-cookie") {
            self.keep(authority, cookie);
        }
        Ok(page)
    }

    /// Returns the field `Cookie` of a request.
    fn cookies(&self, authority: &str, target: &str) -> String {
        let host = host(authority);
        let sent = self.cookies.iter().filter(|cookie| cookie.host == host && target.starts_with(&cookie.path));
        sent.map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect::<Vec<_>>().join("; ")
    }

    /// Keeps or removes the cookie of a field `Set-Cookie`.
    fn keep(&mut self, authority: &str, cookie: &str) {
        let mut parts = cookie.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let path = parts.find_map(|part| part.strip_prefix("path=")).unwrap_or("/");
        let host = host(authority);
        self.cookies
            .retain(|known| (known.host.as_str(), known.path.as_str(), known.name.as_str()) != (host, path, name));
        if !value.is_empty() {
            let [host, path, name, value] = [host, path, name, value].map(str::to_owned);
            self.cookies.push(Cookie { host, path, name, value });
        }
    }
}

impl Page {
    fn read(text: &str) -> Result<Self, String> {
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| format!("no response: {text:?}"))?;
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let fields = lines.filter_map(|line| line.split_once(':'));
        Ok(Self {
            status: status.ok_or_else(|| format!("no status: {head:?}"))?,
            fields: fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect(),
            body: body.to_owned(),
        })
    }

    /// Returns a field by its name in lower case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the target of the form, and the value of its hidden field `prompt`.
    fn form(&self) -> Option<(&str, &str)> {
        let action = between(&self.body, "action=\"", "\"")?;
        let prompt = between(&self.body, "name=\"prompt\" value=\"", "\"")?;
        Some((action, prompt))
    }
}

impl<'a> Place<'a> {
    fn of(url: &'a str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("no URL: {url}"))?;
        let is_secure = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(format!("neither of the scheme http nor https: {url}")),
        };
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(at);
        Ok(Self { is_secure, authority, target: if target.is_empty() { "/" } else { target } })
    }
}

/// Sends a request, and returns the bytes of the response.
fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<Vec<u8>> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Returns the host of a host with a port.
fn host(authority: &str) -> &str {
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// Returns the URL of a reference on a page: an absolute one, or a path.
fn resolve(page: &str, reference: &str) -> Result<String, String> {
    if !reference.starts_with('/') {
        return Ok(reference.to_owned());
    }
    let Place { is_secure, authority, .. } = Place::of(page)?;
    Ok(format!("{}://{authority}{reference}", if is_secure { "https" } else { "http" }))
}

/// Returns the text between two others.
pub fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}
