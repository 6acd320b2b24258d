//! The parameters of a request by era, and the results of the requests that the engine serves
//! itself.

use super::incoming::Declaration;
use super::keys::TaskKey;
use super::responder::may_ask;
use super::response::ErrorReply;
use super::rights::ClientRights;
use super::session::SessionTerms;
use super::state_keys::KeyAge;
use super::{Context, IncomingRequest, RequestState, ServerConfig, Sessions, weight};
use crate::error::{DiagnosticKind, excerpt};
use crate::exchange::{Peer, RequestHead};
use crate::input::{Inputs, SessionKey};
use crate::model::capabilities::{self, ClientCapabilities, ServerCapabilities};
use crate::model::lifecycle::{Implementation, meta};
use crate::model::logging::LogLevel;
use crate::model::tasks::{self, TaskOptions};
use crate::rpc::{ErrorObject, Id, JsonKind, Object, RawJson, Request, code};
use crate::version::{Era, ProtocolVersion};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

/// How a request travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transport {
    Duplex,
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

impl Transport {
    /// Returns whether the server names this revision over the transport. 2024-11-05 has another
    /// HTTP transport; a client that requests it over Streamable HTTP is served. 2026-07-28 does
    /// not exist over HTTP+SSE.
    fn carries(self, version: ProtocolVersion) -> bool {
        match self {
            Self::Duplex => true,
            Self::Http => version != ProtocolVersion::V2024_11_05,
            Self::Sse => version.era() == Era::Legacy,
        }
    }
}

/// The client of a request, as far as the transport knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Caller {
    pub(super) peer: Arc<Peer>,
    pub(super) http: Option<Arc<RequestHead>>,
    pub(super) rights: ClientRights,
    pub(super) session: Option<SessionKey>,
}

/// A request that the application may run.
pub(super) struct AdmittedRequest {
    pub(super) id: Id,
    pub(super) incoming: IncomingRequest,
    pub(super) token: Option<Id>,
    /// The error in the input responses that it brings.
    pub(super) fault: Option<Box<ErrorObject>>,
    /// Whether it brought input responses without the state of a round. They were dropped.
    pub(super) unasked: bool,
    /// The memory that it holds while it runs, in bytes, as estimated.
    pub(super) size: usize,
    /// What it waits for: the application does not get it.
    pub(super) awaits: Option<AwaitTarget>,
}

/// What a request waits for that the engine answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AwaitTarget {
    /// The end of this task.
    Task(TaskKey),
    /// What the store has of tasks.
    Store,
}

/// The params of a request, and its metadata.
pub(super) struct RequestParts {
    pub(super) params: Object,
    pub(super) meta: Object,
    /// The length of their text, in bytes.
    pub(super) text: usize,
}

impl RequestParts {
    /// Takes them. They share no text with the message, so what they hold is known.
    pub(super) fn of(request: &mut Request) -> Result<Self, ErrorReply> {
        let text = request.params.take().map(RawJson::alone);
        let len = text.as_ref().map_or(0, |text| text.as_bytes().len());
        let mut params = text
            .map_or_else(|| Ok(Object::new()), Object::from_json)
            .map_err(|_| ErrorReply::metadata("the params are not an object"))?;
        let meta = match params.remove(meta::META) {
            None => Object::new(),
            Some(value) if value.kind() == JsonKind::Null => Object::new(),
            Some(value) => Object::read(&value).map_err(|_| ErrorReply::metadata("`_meta` is not an object"))?,
        };
        Ok(Self { params, meta, text: len })
    }

    /// Returns whether the request names its revision, which makes it modern whatever its method
    /// is.
    pub(super) fn is_modern(&self) -> bool {
        self.meta.contains(meta::PROTOCOL_VERSION)
    }

    /// Returns whether the request has a part of the metadata that 2026-07-28 demands, without its
    /// revision.
    pub(super) fn is_half_modern(&self) -> bool {
        !self.is_modern() && [meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO].iter().any(|key| self.meta.contains(key))
    }

    /// Returns the revision that the request names. An error unless all metadata that 2026-07-28
    /// demands is there.
    pub(super) fn named_version(&self) -> Result<Cow<'_, str>, ErrorReply> {
        let version = self
            .meta
            .required_str(meta::PROTOCOL_VERSION)
            .map_err(|e| ErrorReply::metadata(format!("`_meta`: {e}")))?;
        self.meta.object(meta::CLIENT_CAPABILITIES).map_err(|e| ErrorReply::metadata(format!("`_meta`: {e}")))?;
        Ok(version)
    }

    /// Returns the progress token. One that is neither a string nor an integer is an error, `null`
    /// is none.
    pub(super) fn progress_token(&self) -> Result<Option<Id>, ErrorReply> {
        match self.meta.get(meta::PROGRESS_TOKEN) {
            None => Ok(None),
            Some(value) if value.kind() == JsonKind::Null => Ok(None),
            Some(_) => match self.meta.id(meta::PROGRESS_TOKEN) {
                Some(token) => Ok(Some(token)),
                None => Err(ErrorReply::metadata("`progressToken` is neither a string nor an integer")),
            },
        }
    }

    /// Checks the level of log messages that a modern request names (2026-07-28, logging: error
    /// handling). `null` is none.
    pub(super) fn check_log_level(&self) -> Result<(), ErrorReply> {
        match self.meta.get(meta::LOG_LEVEL) {
            Some(level) if level.kind() != JsonKind::Null && LogLevel::read(&level).is_none() => {
                Err(ErrorReply::params("`logLevel` is not one of the eight levels"))
            }
            _ => Ok(()),
        }
    }

    /// Admits a modern request whose revision is supported. `takes_unasked`: input responses
    /// without a state count. `has_tasks`: the server has tasks. Nothing of an earlier request
    /// enters its context.
    pub(super) fn admit_modern(
        mut self,
        request: Request,
        version: ProtocolVersion,
        caller: Caller,
        takes_unasked: bool,
        has_tasks: bool,
    ) -> Result<AdmittedRequest, ErrorReply> {
        let token = self.progress_token()?;
        let may_be_task = has_tasks && request.method == "tools/call" && self.declares_tasks();
        let (mut inputs, mut state, mut fault, mut unasked) = (Inputs::new(), None, None, false);
        if may_ask(&request.method) {
            match self.take_inputs() {
                // Without a state, no round has asked for them.
                Ok((brought, None)) if !takes_unasked => unasked = !brought.is_empty(),
                Ok(taken) => (inputs, state) = taken,
                // The application knows whether the method and the tool exist, and that error comes
                // first.
                Err(rejection) => fault = Some(rejection.error.into()),
            }
        }
        let context = Context {
            version,
            declared: Declaration::Here(self.meta.clone()),
            peer: caller.peer,
            http: caller.http,
            principal: caller.rights.principal,
            access: caller.rights.access,
            session: caller.session,
            wants_progress: token.is_some(),
        };
        let Self { params, meta, text } = self;
        let method = request.method.clone();
        let incoming = IncomingRequest {
            method,
            params,
            meta,
            context,
            inputs,
            state,
            nonce: None,
            rounds: 0,
            first: None,
            key_age: KeyAge::Current,
            may_be_task,
            wanted_task: None,
            task: None,
        };
        let size = weight::of_request(&request.id, token.as_ref(), text, &incoming);
        Ok(AdmittedRequest { id: request.id, incoming, token, fault, unasked, size, awaits: None })
    }

    /// Admits a legacy request with a negotiated revision. `has_tasks`: the server has tasks.
    pub(super) fn admit_legacy(
        mut self,
        request: Request,
        negotiated: &SessionTerms,
        caller: Caller,
        has_tasks: bool,
    ) -> Result<AdmittedRequest, ErrorReply> {
        let token = self.progress_token()?;
        let has_tasks = has_tasks && negotiated.version.rules().tasks && request.method == "tools/call";
        let wanted_task = if has_tasks { self.take_wanted_task()? } else { None };
        let context = Context {
            version: negotiated.version,
            declared: Declaration::Before {
                client: negotiated.client.clone(),
                capabilities: Arc::clone(&negotiated.capabilities),
            },
            peer: caller.peer,
            http: caller.http,
            principal: caller.rights.principal,
            access: caller.rights.access,
            session: caller.session,
            wants_progress: token.is_some(),
        };
        let Self { params, meta, text } = self;
        let method = request.method.clone();
        let incoming = IncomingRequest {
            method,
            params,
            meta,
            context,
            inputs: Inputs::new(),
            state: None,
            nonce: None,
            rounds: 0,
            first: None,
            key_age: KeyAge::Current,
            may_be_task: wanted_task.is_some(),
            wanted_task: wanted_task.map(Box::new),
            task: None,
        };
        let size = weight::of_request(&request.id, token.as_ref(), text, &incoming);
        Ok(AdmittedRequest { id: request.id, incoming, token, fault: None, unasked: false, size, awaits: None })
    }

    /// Returns whether the client takes a task as the response to this request (2026-07-28).
    pub(super) fn declares_tasks(&self) -> bool {
        let declared = self.meta.optional_object(meta::CLIENT_CAPABILITIES).ok().flatten();
        declared.is_some_and(|declared| capabilities::declares(&declared, tasks::EXTENSION))
    }

    /// Takes what the client wants of the task of this request (2025-11-25, creating tasks).
    fn take_wanted_task(&mut self) -> Result<Option<TaskOptions>, ErrorReply> {
        let wanted = self.params.optional_object("task").map_err(|_| ErrorReply::params("`task` is not an object"))?;
        self.params.remove("task");
        let Some(wanted) = wanted else { return Ok(None) };
        let ttl = wanted.optional::<f64>("ttl").map_err(|_| ErrorReply::params("`ttl` is not a number"))?;
        let ttl = ttl.map(|ttl| {
            Duration::try_from_secs_f64(ttl / 1000.0).unwrap_or(if ttl > 0.0 { Duration::MAX } else { Duration::ZERO })
        });
        Ok(Some(TaskOptions { ttl, ..TaskOptions::new() }))
    }

    /// Takes the input responses of a retry (multi round-trip requests). A client sends results
    /// only.
    fn take_inputs(&mut self) -> Result<(Inputs, Option<RequestState>), ErrorReply> {
        let responses = self.params.optional_object("inputResponses");
        let responses =
            responses.map_err(|_| ErrorReply::params("`inputResponses` is not an object"))?.unwrap_or_default();
        let state = self.params.optional::<String>("requestState");
        let state = state.map_err(|_| ErrorReply::params("`requestState` is not a string"))?;
        self.params.remove("inputResponses");
        self.params.remove("requestState");
        let mut inputs = Inputs::new();
        for (name, response) in responses.iter() {
            if response.kind() != JsonKind::Object {
                return Err(ErrorReply::params(format!("`inputResponses`: `{}` is not an object", excerpt(&name))));
            }
            inputs.insert(name.into_owned(), Ok(response));
        }
        Ok((inputs, state.map(RequestState::Sealed)))
    }
}

impl ServerConfig {
    /// Returns whether a legacy revision is supported.
    pub(super) fn serves_legacy(&self) -> bool {
        self.versions.newest(Era::Legacy).is_some()
    }

    /// Returns the modern revision of this name, or the error that names the supported ones.
    pub(super) fn modern_version(&self, name: &str, over: Transport) -> Result<ProtocolVersion, ErrorReply> {
        let version = ProtocolVersion::parse(name).filter(|v| v.era() == Era::Modern && self.versions.contains(*v));
        let version = version.filter(|version| over.carries(*version));
        version.ok_or_else(|| self.unsupported(name, over))
    }

    /// Returns the error -32022 with the supported revisions.
    pub(super) fn unsupported(&self, requested: &str, over: Transport) -> ErrorReply {
        let requested = excerpt(requested);
        let data = Object::new().with("supported", self.supported(over)).with("requested", requested.as_str());
        let message = format!("Unsupported protocol version: {requested}");
        let mut rejection = ErrorReply::new(DiagnosticKind::UnsupportedVersion, code::UNSUPPORTED_VERSION, message);
        rejection.error.data = Some(data.into());
        rejection
    }

    /// Returns the result of `server/discover`, before it is completed like every modern result.
    pub(super) fn discover(&self, over: Transport) -> Object {
        Object::new()
            .with("supportedVersions", self.supported(over))
            .with("capabilities", self.with_tasks(ProtocolVersion::V2026_07_28).write(ProtocolVersion::V2026_07_28))
            .with_opt("instructions", self.instructions.as_deref())
    }

    /// Negotiates: the requested revision if it is supported, else the newest legacy one.
    pub(super) fn initialize(&self, params: &Object, over: Transport) -> Result<(SessionTerms, Object), ErrorReply> {
        let requested: String = params.required("protocolVersion").map_err(|e| ErrorReply::params(format!("{e}")))?;
        let newest = self.versions.newest(Era::Legacy).ok_or_else(|| self.unsupported(&requested, over))?;
        let version = self.versions.mutual(Era::Legacy, &[&requested]).unwrap_or(newest);
        let max = self.limits.server.max_client_data;
        // A missing or malformed `clientInfo` is no error: nothing depends on it.
        let info = params.get("clientInfo").filter(|info| info.as_bytes().len() <= max).map(|info| info.detached());
        let client = info.as_ref().and_then(|info| Implementation::read(Object::read(info).ok()?).ok());
        let capabilities = params.get("capabilities").map(|value| value.detached());
        let said: usize = [&info, &capabilities].into_iter().flatten().map(|value| value.as_bytes().len()).sum();
        if said > max {
            return Err(ErrorReply::params("the client says more of itself than is kept"));
        }
        let capabilities = Object::new().with_opt("capabilities", capabilities.as_ref());
        let capabilities = capabilities::read_member(&capabilities)
            .map_err(|_| ErrorReply::params("`capabilities` is not an object"))?
            .unwrap_or_default();
        let result = Object::new()
            .with("protocolVersion", version.as_str())
            .with("capabilities", self.offered(over, version).write(version))
            .with("serverInfo", self.info.write(version))
            .with_opt("instructions", self.instructions.as_deref());
        let capabilities = Arc::new(ClientCapabilities::read(&capabilities));
        let client = client.map(Arc::new);
        let weight = said + weight::of_declared(client.as_deref(), &capabilities);
        Ok((SessionTerms { version, client, capabilities, weight }, result))
    }

    /// Returns the capabilities that a legacy client can use. Without a session the server has no
    /// stream on which it could announce a change.
    fn offered(&self, over: Transport, version: ProtocolVersion) -> ServerCapabilities {
        let mut offered = self.with_tasks(version);
        if over == Transport::Http && self.sessions == Sessions::Off {
            let lists = [offered.tools.as_mut(), offered.prompts.as_mut()];
            lists.into_iter().flatten().for_each(|list| list.list_changed = false);
            if let Some(resources) = &mut offered.resources {
                (resources.subscribe, resources.list_changed) = (false, false);
            }
        }
        offered
    }

    /// Returns the capabilities with those of tasks, if the server has them. `list` needs
    /// admission: without it, the server does not know whose tasks it would list.
    fn with_tasks(&self, version: ProtocolVersion) -> ServerCapabilities {
        let mut offered = self.capabilities.clone();
        if self.tasks && version.era() == Era::Modern {
            // The identifier is valid.
            drop(offered.extensions.declare(tasks::EXTENSION, Object::new()));
        } else if self.tasks {
            let calls = Object::new().with("tools", Object::new().with("call", Object::new()));
            let declared = Object::new().with_opt("list", self.admit.then(Object::new));
            offered.other.set("tasks", declared.with("cancel", Object::new()).with("requests", calls));
        }
        offered
    }

    fn supported(&self, over: Transport) -> Vec<RawJson> {
        self.versions.newest_first().filter(|v| over.carries(*v)).map(|v| v.as_str().into()).collect()
    }
}
