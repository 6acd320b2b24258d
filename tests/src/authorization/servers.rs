//! The authorization server and the MCP server that it guards, as a process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rustls::ClientConfig;
use serde_json::Value;

use super::ground::Ground;
use super::user::NAME;
use crate::browser::{Browser, Consent, Page, between};
use crate::certificates::{Authority, Leaf};

/// Maximum time until they listen.
const START: Duration = Duration::from_secs(60);

/// The path of the server whose tokens live long.
pub(super) const LONG: &str = "/mcp";
/// The path of the server whose tokens live for [`BRIEFLY`].
pub(super) const BRIEF: &str = "/brief";
/// The path of the server whose tokens live for 10 s.
pub(super) const TEN: &str = "/ten";
/// The path of the server whose tokens are bound to a key, and live for [`BRIEFLY`].
pub(super) const BOUND: &str = "/bound";
/// The lifetime of the tokens for [`BRIEF`].
pub(super) const BRIEFLY: Duration = Duration::from_secs(5);

/// The client that logs users in at the issuer as an identity provider, and its redirect URI.
pub(super) const DESK: (&str, &str) = ("desk", "http://127.0.0.1:1/");
/// A verifier and its challenge (RFC 7636, appendix B).
const PKCE: (&str, &str) =
    ("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");

/// Both servers. Dropping them ends the process.
#[derive(Debug)]
pub(super) struct Servers {
    child: Child,
    issuer: String,
    base: String,
    /// For the requests of this program, if they listen with TLS.
    tls: Option<Arc<ClientConfig>>,
}

impl Servers {
    /// Starts them on free ports, and waits until they listen.
    pub(super) fn start(ground: &Ground) -> Result<Self, String> {
        Self::run(ground, None, None)
    }

    /// Starts them with TLS, with a certificate of this authority. `folder` is a new one for files.
    pub(super) fn with_tls(ground: &Ground, authority: &Authority, folder: &Path) -> Result<Self, String> {
        let written = fs::create_dir(folder).and_then(|()| authority.write(folder, &Leaf::default()));
        written.map_err(|why| format!("{}: {why}", folder.display()))?;
        Self::run(ground, Some(folder), Some(authority.client()))
    }

    fn run(ground: &Ground, folder: Option<&Path>, tls: Option<Arc<ClientConfig>>) -> Result<Self, String> {
        let mut command = Command::new(&ground.node);
        command.arg(ground.packages.join("op.mjs")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(folder) = folder {
            // It fetches its own keys.
            command.arg(folder).env("NODE_EXTRA_CA_CERTS", folder.join("root.pem"));
        }
        let mut child = command.spawn().map_err(|why| format!("{}: {why}", ground.node.display()))?;
        let output = child.stdout.take();
        // From here on the process is ended in any case.
        let mut servers = Self { child, issuer: String::new(), base: String::new(), tls };
        let (say, said) = mpsc::channel();
        thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok) {
                if let Some(urls) = line.strip_prefix("LISTENING ") {
                    // The receiver takes one line.
                    let _ = say.send(urls.to_owned());
                }
            }
        });
        let urls = said.recv_timeout(START).map_err(|why| format!("the servers do not listen: {why}"))?;
        let (issuer, base) = urls.split_once(' ').ok_or_else(|| format!("the servers say {urls:?}"))?;
        (servers.issuer, servers.base) = (issuer.to_owned(), base.to_owned());
        Ok(servers)
    }

    /// Returns the issuer.
    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the URL of the MCP server at this path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns the key of the client `signer`, as PEM.
    pub(super) fn key(&self) -> Result<String, String> {
        let page = self.browser().get(&self.url("/key"))?;
        serde_json::from_str(&page.body).map_err(|why| format!("{page:?}: {why}"))
    }

    /// Returns what has happened since the last time.
    pub(super) fn events(&self) -> Result<Events, String> {
        let page = self.browser().get(&self.url("/events"))?;
        serde_json::from_str(&page.body).map(Events).map_err(|why| format!("{page:?}: {why}"))
    }

    /// Makes a token request with a refresh token, as a client that shows no more than its
    /// identifier. Returns the error code of the response, if it is an error.
    pub(super) fn refresh(&self, client: &str, token: &str) -> Result<Option<String>, String> {
        let form = [("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)];
        let answer = self.tokens(&form)?;
        Ok(answer.get("error").and_then(Value::as_str).map(str::to_owned))
    }

    /// Logs the user in at the issuer as an identity provider, and returns the ID token.
    pub(super) fn id_token(&self) -> Result<String, String> {
        let ((desk, redirect_uri), (verifier, challenge)) = (DESK, PKCE);
        let asked = format!("client_id={desk}&redirect_uri={redirect_uri}&response_type=code&scope=openid");
        let page = format!("{}/auth?{asked}&code_challenge={challenge}&code_challenge_method=S256", self.issuer);
        let url = self.browser().log_in(&page, redirect_uri, NAME, Consent::Given)?;
        let code = between(&url, "code=", "&").ok_or_else(|| format!("no code: {url}"))?;
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", desk),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
            ("code", code),
        ];
        let answer = self.tokens(&form)?;
        let token = answer.get("id_token").and_then(Value::as_str);
        token.map(str::to_owned).ok_or_else(|| format!("no ID token: {answer}"))
    }

    /// Makes a token request, and returns the members of the response.
    fn tokens(&self, form: &[(&str, &str)]) -> Result<Value, String> {
        let Page { body, .. } = self.browser().post(&format!("{}/token", self.issuer), form)?;
        serde_json::from_str(&body).map_err(|why| format!("{body:?}: {why}"))
    }

    fn browser(&self) -> Browser {
        Browser::trusting(self.tls.clone())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What has happened at both servers, a line for each event. `op.mjs` explains them.
#[derive(Debug)]
pub(super) struct Events(Vec<String>);

impl Events {
    /// Returns the number of lines that begin with this word and end with this one.
    fn count(&self, first: &str, last: &str) -> usize {
        let words = self.0.iter().map(|line| (line.split(' ').next(), line.split(' ').next_back()));
        words.filter(|words| *words == (Some(first), Some(last))).count()
    }

    /// Returns the number of lines that begin with this word.
    fn all(&self, first: &str) -> usize {
        self.0.iter().filter(|line| line.split(' ').next() == Some(first)).count()
    }

    /// Returns the number of tokens that this grant led to.
    pub(super) fn grants(&self, kind: &str) -> usize {
        self.count("grant", kind)
    }

    /// Returns the number of refreshed tokens.
    pub(super) fn refreshes(&self) -> usize {
        self.count("grant", "refresh_token")
    }

    /// Returns the number of refused token requests.
    pub(super) fn refusals(&self) -> usize {
        self.all("grant-error")
    }

    /// Returns the number of requests that the MCP server refused for this error.
    pub(super) fn denials(&self, error: &str) -> usize {
        self.count("denied", error)
    }

    /// Returns the number of pages at which a user logged in.
    pub(super) fn pages(&self) -> usize {
        self.all("page")
    }

    /// Checks the numbers of registrations, of pages at which a user logged in, of redeemed codes
    /// and of refused token requests.
    pub(super) fn expect(&self, expected: Expected) -> Result<(), String> {
        let found = Expected {
            registrations: self.all("registered"),
            pages: self.pages(),
            codes: self.count("grant", "authorization_code"),
            refused: self.refusals(),
        };
        if found == expected { Ok(()) } else { Err(format!("{found:?} in place of {expected:?}: {:?}", self.0)) }
    }
}

/// Numbers of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Expected {
    /// Registrations of clients.
    pub(super) registrations: usize,
    /// Pages at which a user logged in.
    pub(super) pages: usize,
    /// Redeemed codes.
    pub(super) codes: usize,
    /// Refused token requests.
    pub(super) refused: usize,
}

impl Expected {
    /// Of a first login.
    pub(super) const LOGIN: Self = Self { registrations: 1, pages: 1, codes: 1, refused: 0 };
    /// Without a login.
    pub(super) const NONE: Self = Self { registrations: 0, pages: 0, codes: 0, refused: 0 };
}
