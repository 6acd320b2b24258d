//! Masks the secrets in a recording byte by byte, so that it can still be replayed: the outputs of
//! the replay are masked in the same way.
//!
//! The values of fields that an application adds to requests are masked everywhere: in the
//! configuration, in its responses to challenges, and on the wire, where the redactor shows only
//! fields that the client writes itself.

use super::Redaction;
use super::value::EVERY_CAPABILITY;
use crate::auth::Masks;
use crate::client::{BadHeader, ClientConfig, HttpTarget, Target};
use crate::exchange::{Closed, ConnectionId, Endpoint, Headers, IoEvent};
use crate::input::{Authorization, ClientCommand, Input, InputAnswer, Watch, WiredClientInput};
use crate::model::capabilities::{ClientCapabilities, ServerCapabilities};
use crate::model::elicitation::ElicitResult;
use crate::model::roots::Roots;
use crate::model::sampling::SampleResult;
use crate::redact::{Redactor, Side, masked_secret, redact_message};
use crate::rpc::{ErrorObject, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::Bytes;

/// How the secrets of a login are masked: as they are masked on the wire.
const LOGIN: Masks = Masks { secret: masked_secret, url: request_target };

/// The masking of a recording, with its state for each connection.
#[derive(Debug)]
pub struct Mask {
    /// Absent if nothing is masked.
    channels: Option<BTreeMap<ConnectionId, [Redactor; 2]>>,
    /// The initial state of a connection: for bytes read, and for bytes written.
    fresh: [Redactor; 2],
}

impl Mask {
    /// Creates the mask for a client of this server. All of its connections use the same protocol.
    pub fn new(redaction: Redaction, server: &Target) -> Self {
        let fresh = match server {
            // Nothing of a WebSocket is recorded if anything is to be masked.
            Target::Duplex(_) | Target::Ws(_) => [Redactor::of_lines(), Redactor::of_lines()],
            Target::Http(_) | Target::NoServer => [Redactor::of_http(Side::Response), Redactor::of_http(Side::Request)],
        };
        Self { channels: (redaction == Redaction::Redacted).then(BTreeMap::new), fresh }
    }

    /// Returns whether anything is masked.
    pub fn is_on(&self) -> bool {
        self.channels.is_some()
    }

    /// Masks an input. Bytes are the next ones that were read from their connection.
    pub(super) fn input(&mut self, input: &WiredClientInput) -> WiredClientInput {
        let mut input = input.clone();
        if !self.is_on() {
            return input;
        }
        match &mut input {
            Input::Event(channel, IoEvent::Read(bytes)) => *bytes = self.read(*channel, bytes),
            // The standard error of a program may contain anything.
            Input::Event(_, IoEvent::Closed(Closed::Exited(status))) => status.stderr = masked(&status.stderr),
            Input::Event(
                _,
                IoEvent::Closed(_) | IoEvent::Opened(_) | IoEvent::Secured | IoEvent::ReadClosed | IoEvent::Written(_),
            )
            | Input::Tick => {}
            Input::Command(command) => self.command(command),
        }
        input
    }

    fn command(&self, command: &mut ClientCommand) {
        match command {
            ClientCommand::Call(call) => {
                if let Ok(params) = &mut call.params {
                    *params = self.object(params);
                }
            }
            ClientCommand::Cancel(_, Some(reason)) => *reason = self.words(reason),
            ClientCommand::Answer(_, answer) => self.answer(answer),
            ClientCommand::Notify(_, params) | ClientCommand::NotifyTracked(_, params) => *params = self.object(params),
            ClientCommand::Watch(watch) => self.watch(watch),
            ClientCommand::Authorize(_, Authorization::Headers(headers)) => *headers = self.headers(headers),
            ClientCommand::Fetch(_, request) => {
                mask_url(&mut request.url);
                request.headers = self.headers(&request.headers);
                request.body = alloc::vec![b'x'; request.body.len()].into();
            }
            ClientCommand::Auth(input) => LOGIN.input(input),
            ClientCommand::Authorize(_, Authorization::Refuse)
            | ClientCommand::Cancel(_, None)
            // It is not masked on the wire either.
            | ClientCommand::Elicited(_)
            | ClientCommand::Untrack(_)
            | ClientCommand::CancelFetch(_)
            | ClientCommand::Login
            | ClientCommand::Logout
            | ClientCommand::LogLevel(_)
            | ClientCommand::CredentialsChanged
            | ClientCommand::RootsChanged
            | ClientCommand::Close => {}
        }
    }

    /// Masks the URIs that the application watches, as they are masked on the wire.
    fn watch(&self, watch: &mut Watch) {
        let masked = watch.uris.iter().map(|uri| self.uri(uri));
        watch.uris = masked.collect();
    }

    /// Masks a URI.
    pub fn uri(&self, uri: &str) -> String {
        self.object(&Object::new().with("uri", uri)).required("uri").unwrap_or_default()
    }

    fn answer(&self, answer: &mut InputAnswer) {
        match answer {
            InputAnswer::Elicitation(ElicitResult::Accept(content)) => *content = self.object(content),
            // Masking changes no member that these types need.
            InputAnswer::Sampling(result) => {
                let masked = self.object(&result.write(ProtocolVersion::V2026_07_28));
                *result = SampleResult::read(masked).unwrap_or_else(|_| SampleResult::text("", ""));
            }
            InputAnswer::Roots(roots) => *roots = Roots::read(self.object(&roots.write())).unwrap_or_default(),
            InputAnswer::Elicitation(ElicitResult::Decline | ElicitResult::Cancel) => {}
            InputAnswer::Error(error) => *error = self.error(error),
        }
    }

    /// Masks the next bytes that were read from a connection.
    pub(super) fn read(&mut self, channel: ConnectionId, bytes: &Bytes) -> Bytes {
        self.bytes(channel, 0, bytes)
    }

    /// Masks the next bytes to write to a connection.
    pub(super) fn written(&mut self, channel: ConnectionId, bytes: &Bytes) -> Bytes {
        self.bytes(channel, 1, bytes)
    }

    fn bytes(&mut self, channel: ConnectionId, direction: usize, bytes: &Bytes) -> Bytes {
        match &mut self.channels {
            None => bytes.clone(),
            Some(channels) => match channels.get_mut(&channel) {
                Some(directions) => directions[direction].redact(bytes).into(),
                // The connection is closed. Whatever the driver reports later belongs to no
                // connection.
                None => self.fresh[direction].clone().redact(bytes).into(),
            },
        }
    }

    /// Tracks the open connections after an input.
    pub(super) fn follow(&mut self, input: &WiredClientInput) {
        let (Some(channels), Input::Event(channel, wire)) = (&mut self.channels, input) else { return };
        match wire {
            IoEvent::Opened(_) => drop(channels.entry(*channel).or_insert_with(|| self.fresh.clone())),
            // Inside of TLS another stream of HTTP begins, after the tunnel of a proxy.
            IoEvent::Secured => {
                if let Some(directions) = channels.get_mut(channel) {
                    *directions = self.fresh.clone();
                }
            }
            IoEvent::Closed(_) => drop(channels.remove(channel)),
            IoEvent::Read(_) | IoEvent::ReadClosed | IoEvent::Written(_) => {}
        }
    }

    /// Masks an object that the application sends.
    pub fn object(&self, object: &Object) -> Object {
        let masked = RawJson::parse(redact_message(object.to_json().as_bytes()));
        // What cannot be searched for secrets is omitted entirely.
        masked.ok().and_then(|json| Object::read(&json).ok()).unwrap_or_default()
    }

    /// Masks an error that the application sends.
    /// Masks what a server can do.
    pub fn server_capabilities(&self, capabilities: &ServerCapabilities) -> ServerCapabilities {
        ServerCapabilities::read(self.object(&capabilities.write(EVERY_CAPABILITY)))
    }

    fn error(&self, error: &ErrorObject) -> ErrorObject {
        let data =
            error.data.as_ref().and_then(|data| self.object(&Object::new().with("data", data.clone())).remove("data"));
        ErrorObject { code: error.code, message: self.words(&error.message), data }
    }

    /// Masks a sentence that the application sends.
    fn words(&self, text: &str) -> String {
        self.object(&Object::new().with("text", text)).required("text").unwrap_or_default()
    }

    /// Masks fields that the application sends. Any of them may be a credential.
    pub(super) fn headers(&self, headers: &Headers) -> Headers {
        headers.iter().fold(Headers::new(), |all, (name, value)| all.with(name, masked_field(name, value)))
    }

    /// Masks a reason that the application gave.
    pub fn text(&self, text: &str) -> String {
        if self.is_on() { masked(text) } else { text.into() }
    }

    /// Masks the endpoint of a connection.
    pub(super) fn endpoint(&self, endpoint: &Endpoint) -> Endpoint {
        let mut endpoint = endpoint.clone();
        if let (Endpoint::Program(program), true) = (&mut endpoint, self.is_on()) {
            program.args.iter_mut().for_each(|arg| *arg = masked(arg));
            program.env.iter_mut().filter_map(|(_, value)| value.as_mut()).for_each(|value| *value = masked(value));
        }
        endpoint
    }

    /// Masks the configuration of a client.
    pub fn config(&self, config: &ClientConfig) -> ClientConfig {
        let mut config = config.clone();
        if !self.is_on() {
            return config;
        }
        self.watch(&mut config.watch);
        config.headers = self.headers(&config.headers);
        if let Some(auth) = &mut config.auth {
            LOGIN.config(Arc::make_mut(auth));
        }
        config.proxies.mask(masked);
        config.info.other = self.object(&config.info.other);
        config.capabilities = ClientCapabilities::read(&self.object(&config.capabilities.write()));
        config.target = self.target(&config.target);
        config
    }

    /// Masks the server of a client.
    pub fn target(&self, target: &Target) -> Target {
        let mut target = target.clone();
        if !self.is_on() {
            return target;
        }
        match &mut target {
            Target::Duplex(endpoint) => *endpoint = self.endpoint(endpoint),
            Target::Http(target) => mask_url(target),
            Target::Ws(target) => {
                target.path = request_target(&target.path);
                target.original = request_target(&target.original);
            }
            Target::NoServer => {}
        }
        target
    }
}

/// Replaces every byte except line breaks.
fn masked(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { 'x' }).collect()
}

/// Masks the value of a field as it is masked on the wire. An invalid value becomes another invalid
/// one.
fn masked_field(name: &str, value: &str) -> String {
    match BadHeader::check(name, value) {
        Err(BadHeader::Value { .. }) => "\t".repeat(value.len()),
        _ => masked(value),
    }
}

/// Masks a URL as its request target is masked on the wire.
fn mask_url(url: &mut HttpTarget) {
    url.path = request_target(&url.path);
    url.original = request_target(&url.original);
}

/// Masks a request target as it is masked on the wire.
fn request_target(target: &str) -> String {
    let line = Redactor::of_http(Side::Request).redact(alloc::format!("GET {target} HTTP/1.1\r\n").as_bytes());
    let shown = line.get("GET ".len().."GET ".len() + target.len()).unwrap_or_default();
    core::str::from_utf8(shown).map_or_else(|_| masked(target), Into::into)
}
