//! Leaves out of a recording what is secret, byte for byte, so that what is left can be replayed: the replay's outputs go through the same.

use super::Redaction;
use crate::client::{ClientConfig, Target};
use crate::exchange::{ChannelId, Closed, Endpoint, ExitStatus, Headers};
use crate::input::{Input, Wire, WiredClientInput};
use crate::redact::{Redactor, is_secret_field, redact_message};
use crate::rpc::{ErrorObject, Object, RawJson};
use alloc::collections::BTreeMap;
use alloc::string::String;
use bytes::Bytes;

/// What is left out, and where in each channel it is.
#[derive(Debug)]
pub(super) struct Mask {
    /// Absent if nothing is left out.
    channels: Option<BTreeMap<ChannelId, [Redactor; 2]>>,
}

impl Mask {
    pub(super) fn new(redaction: Redaction) -> Self {
        Self { channels: (redaction == Redaction::Redacted).then(BTreeMap::new) }
    }

    /// Whether anything is left out.
    pub(super) fn is_on(&self) -> bool {
        self.channels.is_some()
    }

    /// The next bytes that were read from a channel.
    pub(super) fn read(&mut self, channel: ChannelId, bytes: &Bytes) -> Bytes {
        self.bytes(channel, 0, bytes)
    }

    /// The next bytes that are to be written to a channel.
    pub(super) fn written(&mut self, channel: ChannelId, bytes: &Bytes) -> Bytes {
        self.bytes(channel, 1, bytes)
    }

    fn bytes(&mut self, channel: ChannelId, direction: usize, bytes: &Bytes) -> Bytes {
        match &mut self.channels {
            None => bytes.clone(),
            Some(channels) => match channels.get_mut(&channel) {
                Some(directions) => directions[direction].redact(bytes).into(),
                // It is closed; what the driver takes and tells later is nobody's.
                None => Redactor::new().redact(bytes).into(),
            },
        }
    }

    /// After an input: bytes go over a channel from the fact that it is open to the fact that it is closed.
    pub(super) fn follow(&mut self, input: &WiredClientInput) {
        let (Some(channels), Input::Fact(channel, wire)) = (&mut self.channels, input) else { return };
        match wire {
            Wire::Opened(_) => drop(channels.entry(*channel).or_default()),
            Wire::Closed(_) => drop(channels.remove(channel)),
            Wire::Bytes(_) | Wire::Eof | Wire::Written(_) => {}
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

    /// Fields that the application hands over to be sent.
    pub(super) fn headers(&self, headers: &Headers) -> Headers {
        let shown =
            |name: &str, value: &str| if self.is_on() && is_secret_field(name) { masked(value) } else { value.into() };
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

/// The target of a request as it is masked where it goes over a channel.
#[cfg(feature = "http")]
fn request_target(target: &str) -> String {
    let line = Redactor::new().redact(alloc::format!("GET {target} HTTP/1.1\r\n").as_bytes());
    let shown = line.get("GET ".len().."GET ".len() + target.len()).unwrap_or_default();
    core::str::from_utf8(shown).map_or_else(|_| masked(target), Into::into)
}
