//! What a store keeps of a session, as the text of a JSON object.

use crate::input::Principal;
use crate::model::capabilities::ClientCapabilities;
use crate::model::lifecycle::Implementation;
use crate::model::logging::LogLevel;
use crate::rpc::{DecodeError, Object, RawJson};
use crate::server::session::SessionTerms;
use crate::version::{Era, ProtocolVersion};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

/// The number of the format. A reader refuses another one, which a newer version may write.
const FORMAT: u64 = 1;

/// What a store keeps of a session: what every server needs that serves a request of it.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::server) struct SessionRecord {
    pub(in crate::server) terms: SessionTerms,
    pub(in crate::server) principal: Option<Principal>,
    pub(in crate::server) is_ready: bool,
    pub(in crate::server) log_level: Option<LogLevel>,
    pub(in crate::server) watched: BTreeSet<String>,
}

/// A change of what is kept of a session.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::server) enum SessionChange {
    Ready,
    Level(LogLevel),
    Watch(String),
    Unwatch(String),
}

impl SessionRecord {
    pub(in crate::server) fn encode(&self) -> Bytes {
        let SessionTerms { version, client, capabilities, .. } = &self.terms;
        let watched: Vec<RawJson> = self.watched.iter().map(|uri| uri.as_str().into()).collect();
        let object = Object::new()
            .with("format", FORMAT)
            .with("revision", version.as_str())
            .with_opt("client", client.as_ref().map(|client| client.write(ProtocolVersion::V2026_07_28)))
            .with("capabilities", capabilities.write())
            .with_opt("principal", self.principal.as_ref().map(Principal::as_str))
            .with("ready", self.is_ready)
            .with_opt("level", self.log_level.map(LogLevel::as_str))
            .with("watched", watched);
        Bytes::copy_from_slice(object.to_json().as_bytes())
    }

    pub(in crate::server) fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let json = RawJson::parse(bytes.to_vec()).map_err(|_| DecodeError::new("a session is not JSON"))?;
        let object = Object::read(&json)?;
        let format: u64 = object.required("format")?;
        if format != FORMAT {
            return Err(DecodeError::new(format!("a session has the format {format}")));
        }
        let revision = object.required_str("revision")?;
        let version = ProtocolVersion::parse(&revision).filter(|version| version.era() == Era::Legacy);
        let client = object.optional_object("client")?.map(Implementation::read).transpose()?;
        let capabilities = ClientCapabilities::read(&object.object("capabilities")?);
        Ok(Self {
            terms: SessionTerms {
                version: version.ok_or_else(|| DecodeError::new("a session has an unknown revision"))?,
                client: client.map(Arc::new),
                capabilities: Arc::new(capabilities),
                weight: bytes.len(),
            },
            principal: object.optional::<String>("principal")?.map(|name| Principal(name.into())),
            is_ready: object.required("ready")?,
            log_level: object.get("level").and_then(|level| LogLevel::read(&level)),
            watched: object.required("watched")?,
        })
    }

    /// Makes a change that the store does not have yet.
    pub(in crate::server) fn apply(&mut self, change: &SessionChange) {
        match change {
            SessionChange::Ready => self.is_ready = true,
            SessionChange::Level(level) => self.log_level = Some(*level),
            SessionChange::Watch(uri) => drop(self.watched.insert(uri.clone())),
            SessionChange::Unwatch(uri) => drop(self.watched.remove(uri)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &'static str) -> Result<SessionRecord, DecodeError> {
        SessionRecord::decode(&Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn record_is_read_as_it_was_written() {
        let text = concat!(
            r#"{"format":1,"revision":"2025-11-25","client":{"name":"c","version":"1","title":"C"},"#,
            r#""capabilities":{"x":{"y":[1]},"roots":{"listChanged":true}},"principal":"ada","ready":true,"#,
            r#""level":"info","watched":["a:1","a:2"]}"#
        );
        let mut read = record(text).unwrap();
        assert_eq!(read.encode(), text);
        for change in [
            SessionChange::Watch("a:3".into()),
            SessionChange::Unwatch("a:1".into()),
            SessionChange::Level(LogLevel::Error),
        ] {
            read.apply(&change);
        }
        let after =
            text.replace(r#""level":"info","watched":["a:1","a:2"]"#, r#""level":"error","watched":["a:2","a:3"]"#);
        assert_eq!(read.encode(), after);
    }

    #[test]
    fn little_is_enough_and_the_rest_is_refused() {
        let least = r#"{"format":1,"revision":"2024-11-05","capabilities":{},"ready":false,"watched":[]}"#;
        let mut read = record(least).unwrap();
        assert_eq!(
            (read.encode(), &read.principal, &read.log_level),
            (Bytes::from_static(least.as_bytes()), &None, &None)
        );
        read.apply(&SessionChange::Ready);
        assert!(read.is_ready);
        let bad = [
            "",
            "[]",
            r#"{"format":2,"revision":"2024-11-05","capabilities":{},"ready":false,"watched":[]}"#,
            r#"{"format":1,"revision":"2026-07-28","capabilities":{},"ready":false,"watched":[]}"#,
            r#"{"format":1,"revision":"2024-11-05","ready":false,"watched":[]}"#,
            r#"{"format":1,"revision":"2024-11-05","capabilities":{},"watched":[]}"#,
            r#"{"format":1,"revision":"2024-11-05","capabilities":{},"ready":false}"#,
        ];
        bad.into_iter().for_each(|text| assert!(record(text).is_err(), "{text}"));
    }
}
