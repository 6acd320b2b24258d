//! How the client of the suite logs in: there is no user, and nothing listens for the redirect.

use mcp_driver::{Browsed, OAuth};
use mcp_proto::auth::{Browse, GivenClient};
use serde_json::Value;

use crate::browser::Browser;

/// The client identifier that is the URL of a document. The document is not fetched.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// How the client becomes known to the authorization server.
#[derive(Clone, Debug, PartialEq)]
pub enum Login {
    /// It registers.
    Registers,
    /// By the URL of a document.
    Document,
    /// It is known already.
    Given(GivenClient),
}

impl Login {
    /// Returns the one of a scenario. `context` is the further input of the suite.
    ///
    /// # Errors
    /// The context is malformed.
    pub fn of(scenario: &str, context: Option<&Value>) -> Result<Option<Self>, String> {
        let told = |name: &str| {
            let text = context.and_then(|context| context.get(name)?.as_str());
            text.map(str::to_owned).ok_or_else(|| format!("the context has no `{name}`"))
        };
        Ok(match scenario {
            "auth/basic-cimd" => Some(Self::Document),
            "auth/pre-registration" => Some(Self::Given(GivenClient {
                issuer: told("issuer")?,
                client_id: told("client_id")?,
                client_secret: Some(told("client_secret")?.into()),
            })),
            _ => scenario.starts_with("auth/").then_some(Self::Registers),
        })
    }

    /// Returns the options for it.
    pub fn options(&self) -> OAuth {
        let options = OAuth::new("conformance").on_browse(consent).on_report(|report| eprintln!("{report}"));
        match self {
            Self::Registers => options,
            Self::Document => options.client_document(DOCUMENT),
            Self::Given(client) => options.client(client.clone()),
        }
    }
}

/// Opens the page of the suite, which answers at once: there is no question to a user.
fn consent(page: &Browse) -> Browsed {
    let redirect = Browser::new().get(&page.url);
    match redirect.as_ref().map(|redirect| redirect.field("location")) {
        Ok(Some(location)) => Browsed::Returned(location.to_owned()),
        _ => {
            eprintln!("no redirect: {redirect:?}");
            Browsed::Declined
        }
    }
}
