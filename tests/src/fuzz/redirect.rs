//! The redirects of a page.

use super::login::{self, ISSUER, Login, Surroundings};
use super::script::Script;
use mcp_proto::auth::{AuthConfig, Browse};
use mcp_proto::client::{FetchError, FetchRequest, FetchResponse};
use mcp_proto::error::AuthError;

/// Maximum number of redirects of one page.
const MOST: usize = 20;

/// The script produces redirects: with right and wrong places, states, issuers and codes, and with
/// texts of the fuzzer.
///
/// A code is sent only if its redirect leads to the login, has its state, and comes from its
/// issuer; it is sent once. The first such redirect is not missed. Another issuer ends the login,
/// and its error is not shown. All others change nothing.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let is_advertised = script.below(2) == 0;
    let mut user = User { script, is_advertised, redirects: Vec::new(), base: String::new(), state: String::new() };
    let login = Login::run(AuthConfig::new("fuzz"), None, &mut user);
    let meant = user.redirects.iter().find_map(|url| match user.judge(url) {
        Verdict::Ignored => None,
        verdict => Some(verdict),
    });
    let mut codes = login.token_requests().map(|form| {
        form.into_iter().find(|(name, _)| name == "code").map(|(_, code)| code).expect("it redeems a code")
    });
    let (code, end) = (codes.next(), login.ends.last().expect("it has ended"));
    assert_eq!(codes.next(), None, "a second code is sent");
    match meant {
        Some(Verdict::Code(meant)) => assert_eq!(code.as_ref(), Some(&meant), "{:?}: {end:?}", user.redirects),
        Some(Verdict::OtherIssuer) => {
            assert!(matches!(end, Err(AuthError::WrongIssuer { .. })), "{:?}: {end:?}", user.redirects);
            assert!(!format!("{end:?}").contains("refused-by-it"), "{end:?}");
        }
        Some(Verdict::Error) => {
            assert!(matches!(end, Err(AuthError::Authorization(_))), "{:?}: {end:?}", user.redirects);
        }
        Some(Verdict::Ignored) | None => assert_eq!(end, &Err(AuthError::Declined), "{:?}", user.redirects),
    }
    assert!(code.is_none() || matches!(user.first(), Some(Verdict::Code(_))), "{code:?} of {:?}", user.redirects);
}

/// What a redirect means.
#[derive(PartialEq, Debug)]
enum Verdict {
    Ignored,
    Code(String),
    Error,
    OtherIssuer,
}

struct User<'a> {
    script: Script<'a>,
    is_advertised: bool,
    redirects: Vec<String>,
    base: String,
    state: String,
}

impl User<'_> {
    fn first(&self) -> Option<Verdict> {
        self.redirects.iter().map(|url| self.judge(url)).find(|verdict| *verdict != Verdict::Ignored)
    }

    /// Reads a redirect as the rules say.
    fn judge(&self, url: &str) -> Verdict {
        let Some(query) = url.strip_prefix(&*self.base).and_then(|rest| rest.strip_prefix('?')) else {
            return Verdict::Ignored;
        };
        let found = login::parameters(query);
        let is_repeated =
            found.iter().enumerate().any(|(at, (name, _))| found[..at].iter().any(|(known, _)| known == name));
        let get = |name: &str| found.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        if is_repeated || get("state") != Some(&*self.state) {
            return Verdict::Ignored;
        }
        match get("iss") {
            Some(ISSUER) => {}
            None if !self.is_advertised => {}
            Some(_) | None => return Verdict::OtherIssuer,
        }
        match (get("code").filter(|code| !code.is_empty()), get("error")) {
            (_, Some(_)) => Verdict::Error,
            (Some(code), None) => Verdict::Code(code.into()),
            (None, None) => Verdict::Ignored,
        }
    }

    fn url(&mut self) -> String {
        let base = self.base.clone();
        let other = base.replace("127.0.0.1", "localhost");
        let with_slash = format!("{base}/");
        let place = *self.script.pick(&[&*base, &*base, &*base, &*base, &*base, &*other, &*with_slash, ""]);
        let mut pairs: Vec<String> = Vec::new();
        for _ in 0..self.script.below(7) {
            let name = *self.script.pick(&["state", "iss", "code", "error", "error_description", "session_state"]);
            let state = self.state.clone();
            let issuer = login::encoded(ISSUER);
            let value = match self.script.below(8) {
                0..=4 => match name {
                    "state" => state,
                    "iss" => issuer,
                    "code" => "code-1".into(),
                    _ => "refused-by-it".into(),
                },
                5 => String::new(),
                6 => format!("{ISSUER}/"),
                _ => {
                    let count = self.script.below(24);
                    let bytes: Vec<u8> = (0..count).map(|_| self.script.byte()).collect();
                    login::encoded(&String::from_utf8_lossy(&bytes))
                }
            };
            pairs.push(format!("{name}={value}"));
        }
        format!("{place}?{}", pairs.join("&"))
    }
}

impl Surroundings for User<'_> {
    fn answer(&mut self, request: &FetchRequest) -> Result<Box<FetchResponse>, FetchError> {
        let mut response = login::honest(request);
        if request.url.path == "/.well-known/oauth-authorization-server" && !self.is_advertised {
            let body = String::from_utf8_lossy(&response.body).replace("supported\":true", "supported\":false");
            response.body = body.into();
        }
        Ok(response)
    }

    fn visit(&mut self, page: &Browse) -> Vec<String> {
        let right = login::redirect(page);
        let query = right.split_once('?').map(|(_, query)| query).unwrap_or_default();
        let state = login::parameters(query).into_iter().find(|(name, _)| name == "state");
        (self.base, self.state) = (page.redirect_uri.clone(), state.map(|(_, state)| state).unwrap_or_default());
        while !self.script.is_over() && self.redirects.len() < MOST {
            let url = self.url();
            self.redirects.push(url);
        }
        self.redirects.clone()
    }
}
