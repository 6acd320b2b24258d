//! What a store keeps of a task, as the text of a JSON object: all that another server needs to
//! answer for it, and to run its handler again.

use super::TaskEnd;
use crate::input::{Inputs, LegacyInputRequest, Principal};
use crate::model::capabilities::ClientCapabilities;
use crate::model::lifecycle::Implementation;
use crate::rpc::{DecodeError, Object, RawJson};
use crate::server::incoming::Declaration;
use crate::server::seal::{read_error, read_inputs, write_error, write_inputs};
use crate::version::{Era, ProtocolVersion};
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// The number of the format. A reader refuses another one, which a newer version may write.
const FORMAT: u64 = 1;

/// See the [module](self).
#[derive(Clone, PartialEq, Debug)]
pub(in crate::server) struct TaskRecord {
    pub(in crate::server) id: String,
    /// The principal of its request.
    pub(in crate::server) owner: Option<Principal>,
    pub(in crate::server) version: ProtocolVersion,
    /// The Unix times of its creation and of its latest change.
    pub(in crate::server) created: Duration,
    pub(in crate::server) updated: Duration,
    pub(in crate::server) ttl: Duration,
    pub(in crate::server) poll: Duration,
    pub(in crate::server) message: Option<String>,
    /// The names of all questions that it has asked.
    pub(in crate::server) asked: BTreeSet<String>,
    /// Whether its handler may run again from the beginning.
    pub(in crate::server) reruns: bool,
    pub(in crate::server) request: TaskRequest,
    pub(in crate::server) stage: StoredStage,
}

/// The request that has become a task. Empty once the task has ended.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::server) struct TaskRequest {
    pub(in crate::server) params: Object,
    pub(in crate::server) meta: Object,
    /// What its client has declared before it (2025-11-25).
    pub(in crate::server) declared: Option<(Option<Arc<Implementation>>, Arc<ClientCapabilities>)>,
    pub(in crate::server) inputs: Inputs,
    pub(in crate::server) rounds: u32,
    /// The state that its handler has got in this round.
    pub(in crate::server) state: Option<RawJson>,
    /// Its key in its first round.
    pub(in crate::server) origin: u64,
}

/// What happens in a task.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::server) enum StoredStage {
    Working,
    Asking { questions: BTreeMap<String, LegacyInputRequest>, state: Option<RawJson> },
    Ended(TaskEnd),
}

impl TaskRecord {
    pub(in crate::server) fn encode(&self) -> Bytes {
        let asked: Vec<RawJson> = self.asked.iter().map(|name| name.as_str().into()).collect();
        let object = Object::new()
            .with("format", FORMAT)
            .with("id", self.id.as_str())
            .with_opt("principal", self.owner.as_ref().map(Principal::as_str))
            .with("revision", self.version.as_str())
            .with("created", millis(self.created))
            .with("updated", millis(self.updated))
            .with("ttl", millis(self.ttl))
            .with("poll", millis(self.poll))
            .with_opt("message", self.message.as_deref())
            .with("asked", asked)
            .with("reruns", self.reruns)
            .with("request", self.request.write())
            .with("stage", self.stage.write());
        Bytes::copy_from_slice(object.to_json().as_bytes())
    }

    pub(in crate::server) fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let json = RawJson::parse(bytes.to_vec()).map_err(|_| DecodeError::new("a task is not JSON"))?;
        let object = Object::read(&json)?;
        let format: u64 = object.required("format")?;
        if format != FORMAT {
            return Err(DecodeError::new(format!("a task has the format {format}")));
        }
        let version = ProtocolVersion::parse(&object.required_str("revision")?);
        let version = version.ok_or_else(|| DecodeError::new("a task has an unknown revision"))?;
        let time = |key: &str| object.required::<u64>(key).map(Duration::from_millis);
        Ok(Self {
            id: object.required("id")?,
            owner: object.optional::<String>("principal")?.map(|name| Principal(name.into())),
            version,
            created: time("created")?,
            updated: time("updated")?,
            ttl: time("ttl")?,
            poll: time("poll")?,
            message: object.optional("message")?,
            asked: object.required("asked")?,
            reruns: object.required("reruns")?,
            request: TaskRequest::read(&object.object("request")?)?,
            stage: StoredStage::read(&object.object("stage")?)?,
        })
    }

    /// Returns whether it has ended.
    pub(in crate::server) const fn has_ended(&self) -> bool {
        matches!(self.stage, StoredStage::Ended(_))
    }

    /// Returns whether it has not ended although its time is over, at this Unix time.
    pub(in crate::server) fn is_over(&self, unix: Duration) -> bool {
        !self.has_ended() && self.created + self.ttl <= unix
    }

    /// Returns its creation in Unix milliseconds.
    pub(in crate::server) fn created_millis(&self) -> u64 {
        millis(self.created)
    }

    /// Ends it.
    pub(in crate::server) fn end(&mut self, end: TaskEnd, unix: Duration) {
        self.message = match &end {
            TaskEnd::Outcome(Err(error)) => Some(error.message.as_str().into()),
            TaskEnd::Outcome(Ok(_)) | TaskEnd::Cancelled => None,
        };
        (self.stage, self.updated, self.request) = (StoredStage::Ended(end), unix, TaskRequest::empty());
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl TaskRequest {
    pub(in crate::server) fn empty() -> Self {
        Self {
            params: Object::new(),
            meta: Object::new(),
            declared: None,
            inputs: Inputs::new(),
            rounds: 0,
            state: None,
            origin: 0,
        }
    }

    fn write(&self) -> Object {
        let (results, errors) = write_inputs(&self.inputs);
        let object = Object::new()
            .with("params", &self.params)
            .with("meta", &self.meta)
            .with("results", results)
            .with("errors", errors)
            .with("rounds", u64::from(self.rounds))
            .with_opt("state", self.state.as_ref())
            .with("origin", self.origin);
        let Some((client, capabilities)) = &self.declared else { return object };
        let client = client.as_ref().map(|client| client.write(ProtocolVersion::V2026_07_28));
        object.with_opt("client", client).with("capabilities", capabilities.write())
    }

    fn read(object: &Object) -> Result<Self, DecodeError> {
        let client = object.optional_object("client")?.map(Implementation::read).transpose()?.map(Arc::new);
        let capabilities =
            object.optional_object("capabilities")?.map(|read| Arc::new(ClientCapabilities::read(&read)));
        Ok(Self {
            params: object.object("params")?,
            meta: object.object("meta")?,
            declared: capabilities.map(|capabilities| (client, capabilities)),
            inputs: read_inputs(object)?,
            rounds: object.required("rounds")?,
            state: object.get("state"),
            origin: object.required("origin")?,
        })
    }

    /// Returns what its client has declared.
    pub(in crate::server) fn declaration(&self, version: ProtocolVersion) -> Declaration {
        match (&self.declared, version.era()) {
            (Some((client, capabilities)), Era::Legacy) => {
                Declaration::Before { client: client.clone(), capabilities: Arc::clone(capabilities) }
            }
            (_, _) => Declaration::Here(self.meta.clone()),
        }
    }
}

impl StoredStage {
    fn write(&self) -> Object {
        match self {
            Self::Working => Object::new().with("is", "working"),
            Self::Asking { questions, state } => {
                let mut all = Object::new();
                for (name, question) in questions {
                    let object = Object::new()
                        .with("method", question.method)
                        .with_opt("params", question.params.as_ref())
                        .with_opt("elicitation", question.elicitation.as_deref());
                    all.set(name, object);
                }
                Object::new().with("is", "asking").with("questions", all).with_opt("state", state.as_ref())
            }
            Self::Ended(TaskEnd::Cancelled) => Object::new().with("is", "cancelled"),
            Self::Ended(TaskEnd::Outcome(Ok(result))) => Object::new().with("is", "completed").with("result", result),
            Self::Ended(TaskEnd::Outcome(Err(error))) => {
                Object::new().with("is", "failed").with("error", write_error(error))
            }
        }
    }

    fn read(object: &Object) -> Result<Self, DecodeError> {
        Ok(match &*object.required_str("is")? {
            "working" => Self::Working,
            "asking" => {
                let mut questions = BTreeMap::new();
                for (name, question) in object.object("questions")?.iter() {
                    let question = Object::read(&question)?;
                    let request = LegacyInputRequest {
                        name: name.clone().into_owned(),
                        method: method(&question.required_str("method")?)?,
                        params: question.optional_object("params")?,
                        elicitation: question.optional("elicitation")?,
                    };
                    questions.insert(name.into_owned(), request);
                }
                Self::Asking { questions, state: object.get("state") }
            }
            "cancelled" => Self::Ended(TaskEnd::Cancelled),
            "completed" => {
                let result = object.get("result").ok_or_else(|| DecodeError::new("a task has no result"))?;
                Self::Ended(TaskEnd::Outcome(Ok(result.detached())))
            }
            "failed" => Self::Ended(TaskEnd::Outcome(Err(read_error(&object.object("error")?)?))),
            other => return Err(DecodeError::new(format!("a task is {}", other.to_owned()))),
        })
    }
}

/// Returns the method of a question.
fn method(name: &str) -> Result<&'static str, DecodeError> {
    let known = ["elicitation/create", "sampling/createMessage", "roots/list"];
    known.into_iter().find(|known| *known == name).ok_or_else(|| DecodeError::new("a task asks something unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::ErrorObject;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn record_is_read_as_it_was_written() {
        let question = LegacyInputRequest {
            name: "q".into(),
            method: "elicitation/create",
            params: Some(Object::new().with("message", "?")),
            elicitation: Some("e".into()),
        };
        let stages = [
            StoredStage::Working,
            StoredStage::Asking { questions: BTreeMap::from([("q".into(), question)]), state: Some(json("[1]")) },
            StoredStage::Ended(TaskEnd::Cancelled),
            StoredStage::Ended(TaskEnd::Outcome(Ok(json(r#"{"content":[]}"#)))),
            StoredStage::Ended(TaskEnd::Outcome(Err(ErrorObject::new(-32603, "no").with_data(json("{}"))))),
        ];
        for stage in stages {
            let declared = (Some(Arc::new(Implementation::new("c", "1"))), Arc::default());
            let record = TaskRecord {
                id: "t".into(),
                owner: Some(Principal("ada".into())),
                version: ProtocolVersion::V2025_11_25,
                created: Duration::from_millis(1_700_000_000_123),
                updated: Duration::from_millis(1_700_000_000_456),
                ttl: Duration::from_secs(60),
                poll: Duration::from_secs(1),
                message: Some("compiling".into()),
                asked: BTreeSet::from(["q".into()]),
                reruns: true,
                request: TaskRequest {
                    params: Object::new().with("name", "build"),
                    meta: Object::new().with("x", 1_u64),
                    declared: Some(declared),
                    inputs: Inputs::from([
                        ("a".into(), Ok(json(r#"{"action":"accept"}"#))),
                        ("b".into(), Err(ErrorObject::new(-1, "refused"))),
                    ]),
                    rounds: 2,
                    state: Some(json(r#"{"step":2}"#)),
                    origin: 7,
                },
                stage,
            };
            let read = TaskRecord::decode(&record.encode()).unwrap();
            assert_eq!(read, record);
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        for bad in ["", "[]", r#"{"format":2}"#, r#"{"format":1,"id":"t"}"#] {
            assert!(TaskRecord::decode(&Bytes::copy_from_slice(bad.as_bytes())).is_err(), "{bad}");
        }
    }
}
