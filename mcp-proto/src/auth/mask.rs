//! Masks the secrets of a login in what an application gives to it, for a recording. Each is as
//! long as before in a form, so that a replay sends requests of the same lengths.

use super::config::{AuthConfig, Registration};
use super::form;
use super::grant::{ClientAuth, GivenClient, Grant};
use super::jws::SignKey;
use super::record::Record;
use super::step::{Input, SaveFault};
use crate::redact::is_secret_name;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// How texts and URLs are masked.
#[derive(Clone, Copy)]
pub(crate) struct Masks {
    pub(crate) secret: fn(&str) -> String,
    pub(crate) url: fn(&str) -> String,
}

impl Masks {
    pub(crate) fn config(self, config: &mut AuthConfig) {
        for registration in &mut config.registrations {
            if let Registration::Given(client) = registration {
                self.client(client);
            }
        }
        if let Grant::Enterprise(provider) = &mut config.grant {
            provider.token_endpoint = (self.url)(&provider.token_endpoint);
            self.client(&mut provider.client);
        }
        for parameter in config.parameters.iter_mut().filter(|parameter| is_secret_name(&parameter.name)) {
            parameter.value = (self.secret)(&parameter.value);
        }
        config.metadata_url.iter_mut().for_each(|metadata| *metadata = (self.url)(metadata));
    }

    fn client(self, client: &mut GivenClient) {
        match &mut client.auth {
            ClientAuth::Secret(secret) => *secret = (self.secret)(secret.expose()).into(),
            ClientAuth::Key(key) => {
                if let SignKey::Pkcs8(secret) = &mut key.key {
                    *secret = (self.secret)(secret.expose()).into();
                }
            }
            ClientAuth::None => {}
        }
    }

    pub(crate) fn input(self, input: &mut Input) {
        match input {
            Input::Loaded(_, Ok(stored)) | Input::Saved(_, Err(SaveFault::Conflict(stored))) => {
                stored.record.iter_mut().for_each(|record| self.record(record));
            }
            Input::Redirected(_, redirect) => *redirect = self.redirect(redirect.expose().trim()).into(),
            Input::KeyMade(_, Ok(pair)) => pair.private = (self.secret)(pair.private.expose()).into(),
            Input::Asserted(_, Ok(assertion)) => *assertion = (self.secret)(assertion.expose()).into(),
            // A signature shows nothing of its key.
            Input::Signed(..) | Input::KeyMade(..) | Input::Asserted(..) => {}
            Input::Leased(..) | Input::Loaded(..) | Input::Saved(..) | Input::Listening(..) | Input::Declined(_) => {}
        }
    }

    fn record(self, record: &mut Record) {
        for entry in &mut record.entries {
            let tokens = entry.tokens.iter_mut().flat_map(|tokens| {
                let key = tokens.dpop_key.as_mut().map(|key| &mut key.private);
                [Some(&mut tokens.access_token), tokens.refresh_token.as_mut(), key].into_iter().flatten()
            });
            let secrets = tokens.chain(&mut entry.client.client_secret);
            secrets.for_each(|secret| *secret = (self.secret)(secret.expose()).into());
        }
    }

    /// Masks the URL of a redirect, or what a user gave in its place: the code alone, perhaps.
    fn redirect(self, redirect: &str) -> String {
        match redirect.split_once('?') {
            Some((place, rest)) => {
                let (query, fragment) = rest.split_at(rest.find('#').unwrap_or(rest.len()));
                let query: Vec<String> = query.split('&').map(|piece| self.piece(piece)).collect();
                format!("{}?{}{}", (self.url)(place), query.join("&"), (self.url)(fragment))
            }
            None => (self.secret)(redirect),
        }
    }

    /// Masks one parameter of a query. It is decoded first, since it is not spelled as in a form.
    fn piece(self, piece: &str) -> String {
        match (piece.split_once('='), form::decode(piece).pop()) {
            (Some((name, _)), Some((decoded, value))) if is_secret_name(&decoded) => {
                format!("{name}={}", (self.secret)(&value))
            }
            _ => (self.url)(piece),
        }
    }
}
