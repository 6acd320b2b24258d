//! Leaves out of a recording what is secret, byte for byte, so that what is left can be replayed: the replay's outputs go through the same.
//!
//! Values of the fields that an application adds to requests are masked wherever they are: in the configuration, in its answers to
//! challenges, and on the wire, where the redactor shows only fields that the client writes itself.

use super::Redaction;
#[cfg(feature = "http")]
use crate::client::BadHeader;
use crate::client::{ClientConfig, Target};
use crate::exchange::{Closed, ConnectionId, Endpoint, ExitStatus, Headers};
use crate::input::{Input, IoEvent, WiredClientInput};
#[cfg(feature = "http")]
use crate::redact::Side;
use crate::redact::{Redactor, redact_message};
use crate::rpc::{ErrorObject, Object, RawJson};
use alloc::collections::BTreeMap;
use alloc::string::String;
use bytes::Bytes;

/// What is left out, and where in each channel it is.
#[derive(Debug)]
pub(super) struct Mask {
    /// Absent if nothing is left out.
    channels: Option<BTreeMap<ConnectionId, [Redactor; 2]>>,
    /// What a channel begins with: bytes that are read, and bytes that are written.
    fresh: [Redactor; 2],
}

impl Mask {
    /// For a client of this server, all of whose channels speak the same.
    pub(super) fn new(redaction: Redaction, server: &Target) -> Self {
        let fresh = match server {
            Target::Duplex(_) => [Redactor::of_lines(), Redactor::of_lines()],
            #[cfg(feature = "http")]
            Target::Http(_) => [Redactor::of_http(Side::Response), Redactor::of_http(Side::Request)],
        };
        Self { channels: (redaction == Redaction::Redacted).then(BTreeMap::new), fresh }
    }

    /// The same, but that nothing is left out.
    pub(super) fn off(&self) -> Self {
        Self { channels: None, fresh: self.fresh.clone() }
    }

    /// Whether anything is left out.
    pub(super) fn is_on(&self) -> bool {
        self.channels.is_some()
    }

    /// The next bytes that were read from a channel.
    pub(super) fn read(&mut self, channel: ConnectionId, bytes: &Bytes) -> Bytes {
        self.bytes(channel, 0, bytes)
    }

    /// The next bytes that are to be written to a channel.
    pub(super) fn written(&mut self, channel: ConnectionId, bytes: &Bytes) -> Bytes {
        self.bytes(channel, 1, bytes)
    }

    fn bytes(&mut self, channel: ConnectionId, direction: usize, bytes: &Bytes) -> Bytes {
        match &mut self.channels {
            None => bytes.clone(),
            Some(channels) => match channels.get_mut(&channel) {
                Some(directions) => directions[direction].redact(bytes).into(),
                // It is closed; what the driver takes and tells later is nobody's.
                None => self.fresh[direction].clone().redact(bytes).into(),
            },
        }
    }

    /// After an input: bytes go over a channel from the fact that it is open to the fact that it is closed.
    pub(super) fn follow(&mut self, input: &WiredClientInput) {
        let (Some(channels), Input::Event(channel, wire)) = (&mut self.channels, input) else { return };
        match wire {
            IoEvent::Opened(_) => drop(channels.entry(*channel).or_insert_with(|| self.fresh.clone())),
            IoEvent::Closed(_) => drop(channels.remove(channel)),
            IoEvent::Bytes(_) | IoEvent::Eof | IoEvent::Written(_) => {}
        }
    }

    /// What an application hands over to be sent.
    pub(super) fn object(&self, object: &Object) -> Object {
        if !self.is_on() {
            return object.clone();
        }
        let masked = RawJson::parse(redact_message(object.to_json().as_bytes()));
        // What cannot be looked through is left out as a whole.
        masked.ok().and_then(|json| Object::read(&json).ok()).unwrap_or_default()
    }

    /// An error that an application hands over to be sent.
    pub(super) fn error(&self, error: &ErrorObject) -> ErrorObject {
        let data =
            error.data.as_ref().and_then(|data| self.object(&Object::new().with("data", data.clone())).remove("data"));
        ErrorObject { code: error.code, message: self.words(&error.message), data }
    }

    /// A sentence that an application hands over to be sent.
    pub(super) fn words(&self, text: &str) -> String {
        self.object(&Object::new().with("text", text)).required("text").unwrap_or_default()
    }

    /// Fields that the application hands over to be sent. Any of them may be a credential.
    pub(super) fn headers(&self, headers: &Headers) -> Headers {
        let shown = |name, value| if self.is_on() { masked_field(name, value) } else { String::from(value) };
        headers.iter().fold(Headers::new(), |all, (name, value)| all.with(name, shown(name, value)))
    }

    /// A reason that the application gave itself.
    pub(super) fn text(&self, text: &str) -> String {
        if self.is_on() { masked(text) } else { text.into() }
    }

    /// How a channel ended. What a program wrote to standard error is no protocol, and may be anything.
    pub(super) fn closed(&self, why: &Closed) -> Closed {
        match why {
            Closed::Exited(status) if self.is_on() => {
                Closed::Exited(ExitStatus { stderr: masked(&status.stderr), ..status.clone() })
            }
            other => other.clone(),
        }
    }

    /// Where a channel leads.
    pub(super) fn endpoint(&self, endpoint: &Endpoint) -> Endpoint {
        let mut endpoint = endpoint.clone();
        if let (Endpoint::Program(program), true) = (&mut endpoint, self.is_on()) {
            program.args.iter_mut().for_each(|arg| *arg = masked(arg));
            program.env.iter_mut().filter_map(|(_, value)| value.as_mut()).for_each(|value| *value = masked(value));
        }
        endpoint
    }

    /// What a client is configured with.
    pub(super) fn config(&self, config: &ClientConfig) -> ClientConfig {
        let mut config = config.clone();
        if !self.is_on() {
            return config;
        }
        config.headers = self.headers(&config.headers);
        config.info.other = self.object(&config.info.other);
        let capabilities = &mut config.capabilities;
        capabilities.other = self.object(&capabilities.other);
        for options in [&mut capabilities.elicitation, &mut capabilities.sampling, &mut capabilities.roots] {
            *options = options.as_ref().map(|options| self.object(options));
        }
        match &mut config.target {
            Target::Duplex(endpoint) => *endpoint = self.endpoint(endpoint),
            #[cfg(feature = "http")]
            Target::Http(target) => {
                target.path = request_target(&target.path);
                target.original = request_target(&target.original);
            }
        }
        config
    }
}

/// As many bytes that say nothing. A line break stays.
fn masked(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { 'x' }).collect()
}

/// The value of a field as it is masked where it goes over a channel. One that cannot be sent becomes another that cannot be sent.
#[cfg(feature = "http")]
fn masked_field(name: &str, value: &str) -> String {
    match BadHeader::check(name, value) {
        Err(BadHeader::Value { .. }) => "\t".repeat(value.len()),
        _ => masked(value),
    }
}

#[cfg(not(feature = "http"))]
fn masked_field(_: &str, value: &str) -> String {
    masked(value)
}

/// The target of a request as it is masked where it goes over a channel.
#[cfg(feature = "http")]
fn request_target(target: &str) -> String {
    let line = Redactor::of_http(Side::Request).redact(alloc::format!("GET {target} HTTP/1.1\r\n").as_bytes());
    let shown = line.get("GET ".len().."GET ".len() + target.len()).unwrap_or_default();
    core::str::from_utf8(shown).map_or_else(|_| masked(target), Into::into)
}
