//! What a node says to all others.

use super::{SessionDigest, TaskDigest};
use crate::input::{Change, Principal};
use crate::rpc::{DecodeError, Object, RawJson};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What a node says to all others.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum News {
    /// This session has ended.
    Closed(SessionDigest),
    /// What is kept of this session has changed.
    Session(SessionDigest),
    /// This task has changed: it waits for its client, or has ended.
    Task(TaskDigest),
    /// The access of this principal ends.
    Revoked(Principal),
    /// The web page of this elicitation is complete.
    Elicited(String),
    /// What the servers offer has changed.
    Changed(Change),
    /// Anything may have changed.
    ChangedAll,
}

/// The number of the format. A reader refuses another.
const FORMAT: u64 = 1;

impl News {
    /// Returns its form in a store, which [`decode`](Self::decode) reads: the text of a JSON
    /// object.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, value) = match self {
            Self::Closed(session) => ("closed", Some(session.to_string())),
            Self::Session(session) => ("session", Some(session.to_string())),
            Self::Task(task) => ("task", Some(task.to_string())),
            Self::Revoked(principal) => ("revoked", Some(principal.as_str().to_string())),
            Self::Elicited(id) => ("elicited", Some(id.clone())),
            Self::Changed(Change::Tools) => ("tools", None),
            Self::Changed(Change::Prompts) => ("prompts", None),
            Self::Changed(Change::Resources) => ("resources", None),
            Self::Changed(Change::Resource(uri)) => ("resource", Some(uri.clone())),
            Self::ChangedAll => ("all", None),
        };
        Object::new().with("format", FORMAT).with("kind", kind).with_opt("value", value).to_json().as_bytes().to_vec()
    }

    /// Reads what [`encode`](Self::encode) has written, by this version or an older one.
    ///
    /// # Errors
    /// [`DecodeError`] for anything else.
    pub fn decode(bytes: Vec<u8>) -> Result<Self, DecodeError> {
        let json = RawJson::parse(bytes).map_err(|_| DecodeError::new("news are not JSON"))?;
        let object = Object::read(&json)?;
        let format: u64 = object.required("format")?;
        if format != FORMAT {
            return Err(DecodeError::new(format!("news have the format {format}")));
        }
        let value = || object.required::<String>("value");
        Ok(match object.required::<String>("kind")?.as_str() {
            "closed" => Self::Closed(SessionDigest::parse(&value()?)?),
            "session" => Self::Session(SessionDigest::parse(&value()?)?),
            "task" => Self::Task(TaskDigest::parse(&value()?)?),
            "revoked" => Self::Revoked(Principal(value()?.into())),
            "elicited" => Self::Elicited(value()?),
            "tools" => Self::Changed(Change::Tools),
            "prompts" => Self::Changed(Change::Prompts),
            "resources" => Self::Changed(Change::Resources),
            "resource" => Self::Changed(Change::Resource(value()?)),
            "all" => Self::ChangedAll,
            _ => return Err(DecodeError::new("news of a kind that is not known")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn news_are_read_as_they_were_written() {
        let all = [
            News::Closed(SessionDigest([0xa7; 32])),
            News::Session(SessionDigest([7; 32])),
            News::Task(TaskDigest([9; 32])),
            News::Revoked(Principal("ada \"x\"".into())),
            News::Elicited("e-1".into()),
            News::Changed(Change::Tools),
            News::Changed(Change::Prompts),
            News::Changed(Change::Resources),
            News::Changed(Change::Resource("file:///a\n".into())),
            News::ChangedAll,
        ];
        for news in all {
            assert_eq!(News::decode(news.encode()).unwrap(), news);
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let bad: [&[u8]; 7] = [
            b"",
            b"[]",
            br#"{"kind":"tools"}"#,
            br#"{"format":2,"kind":"tools"}"#,
            br#"{"format":1,"kind":"resource"}"#,
            br#"{"format":1,"kind":"tool"}"#,
            br#"{"format":1,"kind":"closed","value":"a7"}"#,
        ];
        for bytes in bad {
            assert!(News::decode(bytes.to_vec()).is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
        assert!(News::decode(vec![0xff]).is_err());
    }
}
