//! What arrives at a node from the others.

use super::{Epoch, Incarnation, News, NodeTag, RequestDigest, SessionDigest, TaskDigest};
use crate::rpc::{DecodeError, Object, RawJson};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;

/// The number of the format. A reader refuses another.
const FORMAT: u64 = 1;

/// What arrives at a node from the others, at least once, and what one node says in its order.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum NodeItem {
    /// One node says this to all. A node ignores what it has said itself.
    News {
        /// The node that says it.
        from: Incarnation,
        /// What it says.
        news: News,
    },
    /// The client of a session has answered a question of this node at another one. The message is
    /// a response of JSON-RPC.
    Answer {
        /// The session.
        session: SessionDigest,
        /// The message.
        message: Bytes,
    },
    /// Another node has got this right to write a stream from this node.
    Taken {
        /// The session.
        session: SessionDigest,
        /// The stream.
        stream: u64,
        /// Its new epoch.
        epoch: Epoch,
    },
    /// A node wants to be told when a stream of this node grows: [`Grown`](Self::Grown).
    Tail {
        /// The session.
        session: SessionDigest,
        /// The stream.
        stream: u64,
        /// The node.
        by: NodeTag,
    },
    /// A stream has got an event.
    Grown {
        /// The session.
        session: SessionDigest,
        /// The stream.
        stream: u64,
    },
    /// The node that writes a stream, as the store says, does not have it: the store may have gone
    /// back in time.
    Gone {
        /// The session.
        session: SessionDigest,
        /// The stream.
        stream: u64,
    },
    /// A client has asked for a task that this node works on, as the store says. The node looks
    /// whether it does: the store may have gone back to a time before the end of the task.
    Task {
        /// The task.
        task: TaskDigest,
    },
    /// A message for the client of a session whose own stream this node has.
    Own {
        /// The session.
        session: SessionDigest,
        /// The message.
        message: Bytes,
    },
    /// A client cancels a request that this node runs.
    Cancel {
        /// The session.
        session: SessionDigest,
        /// The request.
        request: RequestDigest,
    },
    /// HTTP+SSE: the client of a stream of this node has posted a message at another one.
    Posted {
        /// The stream, by the digest of its id.
        stream: SessionDigest,
        /// The message, with its origin.
        post: Bytes,
    },
    /// News were lost: the store keeps a bounded number of them, and this node was away for too
    /// long. It takes everything that its clients watch as changed.
    Missed,
}

impl NodeItem {
    /// Returns its size, in bytes, as a store counts it.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Answer { message, .. } | Self::Own { message, .. } | Self::Posted { post: message, .. } => {
                message.len()
            }
            Self::News { .. }
            | Self::Taken { .. }
            | Self::Tail { .. }
            | Self::Grown { .. }
            | Self::Gone { .. }
            | Self::Task { .. }
            | Self::Cancel { .. }
            | Self::Missed => 0,
        }
    }

    /// Returns its form in a store, which [`decode`](Self::decode) reads: the text of a JSON
    /// object.
    pub fn encode(&self) -> Vec<u8> {
        let object = |kind: &str| Object::new().with("format", FORMAT).with("kind", kind);
        let of = |kind: &str, session: &SessionDigest| object(kind).with("session", session.to_string());
        let object = match self {
            Self::News { from, news } => {
                object("news").with("from", from.to_string()).with_opt("news", RawJson::parse(news.encode()).ok())
            }
            Self::Answer { session, message } => of("answer", session).with("message", text(message)),
            Self::Own { session, message } => of("own", session).with("message", text(message)),
            Self::Posted { stream, post } => of("posted", stream).with("message", text(post)),
            Self::Taken { session, stream, epoch } => {
                let epoch = Object::new().with("node", epoch.node.to_string()).with("number", epoch.number);
                of("taken", session).with("stream", *stream).with("epoch", epoch)
            }
            Self::Tail { session, stream, by } => {
                of("tail", session).with("stream", *stream).with("by", u64::from(by.0))
            }
            Self::Grown { session, stream } => of("grown", session).with("stream", *stream),
            Self::Gone { session, stream } => of("gone", session).with("stream", *stream),
            Self::Task { task } => object("task").with("task", task.to_string()),
            Self::Cancel { session, request } => of("cancel", session).with("request", request.to_string()),
            Self::Missed => object("missed"),
        };
        object.to_json().as_bytes().to_vec()
    }

    /// Reads what [`encode`](Self::encode) has written, by this version or an older one.
    ///
    /// # Errors
    /// [`DecodeError`] for anything else.
    pub fn decode(bytes: Vec<u8>) -> Result<Self, DecodeError> {
        let json = RawJson::parse(bytes).map_err(|_| DecodeError::new("an item is not JSON"))?;
        let object = Object::read(&json)?;
        let format: u64 = object.required("format")?;
        if format != FORMAT {
            return Err(DecodeError::new(format!("an item has the format {format}")));
        }
        let session = || SessionDigest::parse(&object.required_str("session")?);
        let stream = || object.required::<u64>("stream");
        let message = || object.required::<String>("message").map(Bytes::from);
        Ok(match &*object.required_str("kind")? {
            "news" => {
                let news = object.get("news").ok_or_else(|| DecodeError::new("an item has no news"))?;
                let news = News::decode(news.as_bytes().to_vec())?;
                Self::News { from: Incarnation::parse(&object.required_str("from")?)?, news }
            }
            "answer" => Self::Answer { session: session()?, message: message()? },
            "own" => Self::Own { session: session()?, message: message()? },
            "posted" => Self::Posted { stream: session()?, post: message()? },
            "taken" => {
                let epoch = object.object("epoch")?;
                let node = Incarnation::parse(&epoch.required_str("node")?)?;
                let epoch = Epoch { node, number: epoch.required("number")? };
                Self::Taken { session: session()?, stream: stream()?, epoch }
            }
            "tail" => Self::Tail { session: session()?, stream: stream()?, by: NodeTag(object.required("by")?) },
            "grown" => Self::Grown { session: session()?, stream: stream()? },
            "gone" => Self::Gone { session: session()?, stream: stream()? },
            "task" => Self::Task { task: TaskDigest::parse(&object.required_str("task")?)? },
            "cancel" => {
                let request = RequestDigest::parse(&object.required_str("request")?)?;
                Self::Cancel { session: session()?, request }
            }
            "missed" => Self::Missed,
            _ => return Err(DecodeError::new("an item of a kind that is not known")),
        })
    }
}

/// Returns a message as text, which JSON always is.
fn text(message: &Bytes) -> &str {
    core::str::from_utf8(message).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_as_they_were_written() {
        let (session, stream) = (SessionDigest([7; 32]), (5 << 32) | 1);
        let epoch = Epoch { node: Incarnation([1; 16]), number: 3 };
        let message = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{"text":"\u00fc\n"}}"#);
        let all = [
            NodeItem::News { from: epoch.node, news: News::Elicited("e".into()) },
            NodeItem::Answer { session, message: message.clone() },
            NodeItem::Own { session, message: message.clone() },
            NodeItem::Posted { stream: session, post: message },
            NodeItem::Taken { session, stream, epoch },
            NodeItem::Tail { session, stream, by: NodeTag(9) },
            NodeItem::Grown { session, stream },
            NodeItem::Gone { session, stream },
            NodeItem::Task { task: TaskDigest::of("t") },
            NodeItem::Cancel { session, request: RequestDigest([3; 32]) },
            NodeItem::Missed,
        ];
        for item in all {
            let bytes = item.encode();
            assert_eq!(NodeItem::decode(bytes.clone()).unwrap(), item);
            // Half of it is nothing.
            assert!(NodeItem::decode(bytes[..bytes.len() / 2].to_vec()).is_err());
        }
        for bad in [r#"{"format":1,"kind":"x"}"#, r#"{"format":2,"kind":"missed"}"#, r#"{"format":1,"kind":"grown"}"#] {
            assert!(NodeItem::decode(bad.as_bytes().to_vec()).is_err(), "{bad}");
        }
    }
}
