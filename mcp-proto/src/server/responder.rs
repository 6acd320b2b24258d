//! The right to answer one request. An outcome is serialised to a whole message here, outside any
//! lock, and no table of the engine is touched.

use super::ServerConfig;
use super::client::ClientKey;
use super::incoming::{Declaration, IncomingRequest, RequestState};
use super::keys::TaskKey;
use super::seal::{self, Memory};
use super::state_keys::{KeyAge, StateKeys};
use super::tasks::TaskSlot;
use crate::auth::{INSUFFICIENT_SCOPE, Scopes};
use crate::error::{Diagnostic, DiagnosticKind};
use crate::exchange::ExchangeId;
use crate::input::{Answer, Inputs, KeptRouter, Outcome, Principal, RequestAnswer, RequestKey, Watch};
use crate::model::content::Content;
use crate::model::elicitation::ElicitRequest;
use crate::model::lifecycle::{CacheHints, meta};
use crate::rpc::{ErrorObject, Id, Object, RawJson, code, error_response, result_response};
use crate::schema::Checker;
use crate::telemetry::SpanOutcome;
use crate::time::Instant;
use crate::version::{Era, ProtocolVersion};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::any::Any;
use core::fmt;
use core::time::Duration;
use hmac_sha256::HMAC;

/// The data that the responders of an engine share.
#[derive(PartialEq)]
pub(super) struct ResponderData {
    pub(super) config: Arc<ServerConfig>,
    pub(super) keys: StateKeys,
    /// The key of the nonces of sealed states.
    nonce_key: [u8; 32],
    /// The key of the ids of tasks.
    task_key: [u8; 32],
    /// The `_meta` that every result of 2026-07-28 has: the name and version of the server.
    pub(super) result_meta: Object,
}

impl ResponderData {
    pub(super) fn new(config: Arc<ServerConfig>, keys: StateKeys, nonce_key: [u8; 32]) -> Self {
        let info = config.info.write(ProtocolVersion::V2026_07_28);
        let result_meta = Object::new().with(meta::SERVER_INFO, info);
        let task_key = HMAC::mac("task ids", nonce_key);
        Self { config, keys, nonce_key, task_key, result_meta }
    }

    /// Returns the id of a web page that a request needs, by its first round. It cannot be
    /// predicted without the key of the ids. It belongs to this principal: a request of another one
    /// never has it.
    pub(super) fn elicitation_id(
        &self,
        (first, key_age): (RequestKey, KeyAge),
        principal: Option<&Principal>,
        name: &str,
    ) -> String {
        let principal = principal.map(|principal| principal.0.as_bytes());
        let mut mac = HMAC::new(self.keys.naming_pages(key_age));
        mac.update(first.number().to_be_bytes());
        // No principal is not the same as an empty one.
        mac.update(principal.map_or(0, |principal| principal.len() as u64 + 1).to_be_bytes());
        mac.update(principal.unwrap_or_default());
        mac.update(name);
        URL_SAFE_NO_PAD.encode(&mac.finalize()[..18])
    }

    /// Returns the id of a task. Without the key of the ids it cannot be guessed.
    pub(super) fn task_id(&self, key: TaskKey) -> String {
        let random = HMAC::mac(key.0.to_be_bytes(), self.task_key);
        if self.config.shares_tasks() {
            let [random @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _] = random;
            return self.keys.session_id(&random);
        }
        URL_SAFE_NO_PAD.encode(&random[..24])
    }

    /// Completes a result as its revision demands. On 2026-07-28 it gets `resultType`, the server's
    /// name and cache hints.
    pub(super) fn complete(&self, version: ProtocolVersion, method: &str, mut result: Object, kind: &str) -> Object {
        if version.era() == Era::Legacy {
            result.remove("resultType");
            return result;
        }
        let own_kind = result.get("resultType");
        let is_complete = own_kind.as_ref().map_or(kind == "complete", |own| *own == "complete".into());
        if let Some(hints) = self.cache_hints(method).filter(|_| is_complete) {
            hints.add_to(&mut result);
        }
        if own_kind.is_none() {
            result.set("resultType", kind);
        }
        match result.optional_object(meta::META).ok().flatten() {
            Some(meta) if meta.contains(meta::SERVER_INFO) => result.set(meta::META, meta),
            Some(meta) => result.set(meta::META, meta.with_all(&self.result_meta)),
            None => result.set(meta::META, &self.result_meta),
        }
        result
    }

    /// Returns the cache hints for a complete result of this method without its own. `None`: its
    /// results carry none (2026-07-28, caching: cacheable results).
    fn cache_hints(&self, method: &str) -> Option<CacheHints> {
        match method {
            "server/discover" => Some(self.config.discover_cache.clone()),
            "tools/list" => Some(self.config.list_cache.clone()),
            "resources/list" => Some(self.config.resources_cache.clone()),
            "resources/templates/list" => Some(self.config.templates_cache.clone()),
            "resources/read" => Some(self.config.read_cache.clone()),
            "prompts/list" => Some(self.config.prompts_cache.clone()),
            _ => None,
        }
    }
}

impl fmt::Debug for ResponderData {
    /// Never shows the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The right to answer one request, once. It belongs to the engine that created it: another engine
/// ignores its answer.
#[derive(PartialEq, Debug)]
#[must_use = "a request whose responder is dropped is never answered"]
pub struct Responder {
    pub(super) key: RequestKey,
    /// The key of its first round.
    pub(super) first: RequestKey,
    /// Which key seals its state.
    pub(super) key_age: KeyAge,
    pub(super) exchange: ExchangeId,
    pub(super) client: ClientKey,
    pub(super) id: Id,
    pub(super) version: ProtocolVersion,
    pub(super) method: Cow<'static, str>,
    /// The params that a sealed state is bound to. Empty if no state can be sealed.
    pub(super) params: Object,
    pub(super) declared: Declaration,
    /// The principal of the request, which a sealed state is bound to.
    pub(super) principal: Option<Principal>,
    /// Number of rounds in which the request has asked.
    pub(super) rounds: u32,
    /// Its place among the tasks.
    pub(super) task: Option<TaskSlot>,
    /// The input responses of those rounds.
    pub(super) inputs: Inputs,
    /// The time of the request, in microseconds since the origin.
    pub(super) received_at: u64,
    /// The error in the input responses that it brings. It is reported once the method is known.
    pub(super) fault: Option<Box<ErrorObject>>,
    /// Why the state that received_at with it was refused.
    pub(super) state_fault: Option<&'static str>,
    /// Whether the arguments are large, and may be validated.
    pub(super) validates_much: bool,
    /// What the output schema of the tool promises.
    pub(super) promised: OutputPromise,
    /// The router of the first round, which routes the others too. `None` until it has routed the
    /// request, and on 2026-07-28.
    pub(super) router: Option<KeptRouter>,
    pub(super) shared: Arc<ResponderData>,
}

/// What the output schema of a tool promises of its result.
#[derive(PartialEq, Debug)]
pub(super) enum OutputPromise {
    Nothing,
    /// Structured content.
    Structure,
    /// Structured content that passes this check.
    Schema(Checker),
}

/// The methods that a modern server may answer with input requests.
const MAY_ASK: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// The request that opens a subscription.
pub(super) const LISTEN: &str = "subscriptions/listen";

/// Maximum size of params, in bytes, that are sealed or opened within half a millisecond, whatever
/// they contain.
const LARGE: usize = 32 << 10;

/// Returns whether params may be validated, and are so large that it takes long.
pub(super) fn validates_much(config: &ServerConfig, method: &str, params: &Object) -> bool {
    config.validate.is_some() && method == "tools/call" && size(params) > LARGE
}

fn size(params: &Object) -> usize {
    params.slices().map(|(key, value)| key.len() + value.len()).sum()
}

/// Returns whether a modern server may answer this method with input requests.
pub(super) fn may_ask(method: &str) -> bool {
    MAY_ASK.contains(&method)
}

impl Responder {
    /// Returns the key of the request in commands and in
    /// [`Event::Cancelled`](super::Event::Cancelled).
    pub const fn key(&self) -> RequestKey {
        self.key
    }

    /// Returns the id that the client gave the request.
    pub const fn id(&self) -> &Id {
        &self.id
    }

    /// Returns the exchange that brought the request.
    pub const fn exchange(&self) -> ExchangeId {
        self.exchange
    }

    /// Returns a number of the client: two requests of an engine have the same number only if they
    /// are of one client, as [`ServerLimits`](crate::limits::ServerLimits) defines it. For a driver
    /// that shares a resource of its own among clients.
    pub const fn client(&self) -> u64 {
        self.client.0
    }

    /// Returns whether [`Router::route`](crate::Router::route), [`open`](Self::open) or
    /// [`write`](Self::write) may take longer than about half a millisecond, since the request has
    /// large params that a sealed state is bound to, or that are validated. An executor should run
    /// these on a thread of its own.
    pub fn takes_long(&self) -> bool {
        self.validates_much || size(&self.params) > LARGE
    }

    /// Returns the revision of the request.
    pub const fn version(&self) -> ProtocolVersion {
        self.version
    }

    /// Returns the configuration of the engine.
    pub fn config(&self) -> &Arc<ServerConfig> {
        &self.shared.config
    }

    /// Refuses the request, since its client lacks one of these scopes, which are all that the
    /// request needs. [`Router::route`](crate::Router::route) does. Over HTTP the status is 403
    /// with a challenge, unless something was sent before or it is one of a batch. Else it is the
    /// error `-32603`, with `insufficient_scope` and the scopes in its data.
    pub fn deny(self, scopes: Scopes) -> Answer {
        let data = Object::new().with("error", INSUFFICIENT_SCOPE).with("scope", format!("{scopes}"));
        let error = ErrorObject::new(code::INTERNAL_ERROR, "the credentials do not suffice").with_data(data.into());
        let bytes = error_response(Some(&self.id), &error);
        Answer { key: self.key, what: RequestAnswer::Denied { bytes, code: error.code, scopes } }
    }

    /// Returns when the engine got the request.
    pub(crate) const fn received_at(&self) -> Instant {
        Instant::new(Duration::from_micros(self.received_at))
    }

    /// Returns the same in Unix seconds.
    pub(super) fn received_unix(&self) -> u64 {
        self.received_at().unix(self.shared.config.origin_unix).as_secs()
    }

    /// Serialises an outcome. Give the answer to
    /// [`Server::respond`](super::ServerCommands::respond).
    ///
    /// Input requests that the client cannot receive become an error: `-32021` on a modern
    /// connection, otherwise a tool result with `isError` (`tools/call`) or `-32603`. Input
    /// requests become `-32603` if they exceed
    /// [`max_rounds`](crate::limits::ServerLimits::max_rounds),
    /// [`max_questions`](crate::limits::ServerLimits::max_questions),
    /// [`max_state`](crate::limits::ServerLimits::max_state) or
    /// [`max_state_params`](crate::limits::ServerLimits::max_state_params). So do input requests
    /// with a duplicate name, and those on a modern request whose method does not allow them. If
    /// the request brought invalid input responses, any outcome other than an error becomes the
    /// error of [`open`](Self::open).
    ///
    /// On 2026-07-28 a complete result of `server/discover`, `tools/list`, `prompts/list`,
    /// `resources/list`, `resources/templates/list` or `resources/read` gets the cache hints that
    /// it does not have: those of the [`ServerConfig`](super::ServerConfig), for a list on all its
    /// pages. A result that a [`Router`](crate::Router) expects to have structured content, and
    /// that has none or does not match the schema of its tool, becomes one with `isError`: see
    /// [`Tool::output_schema`](crate::Tool::output_schema).
    pub fn write(mut self, outcome: Outcome) -> Answer {
        let fault = self.fault.take();
        match outcome {
            Outcome::Error(error) => self.error(error, None),
            _ if let Some(fault) = fault => self.error(*fault, None),
            Outcome::Complete(result) if self.version.era() == Era::Modern && self.method == LISTEN => {
                self.subscription(&result)
            }
            Outcome::Complete(result) => match self.broken_promise(&result) {
                None => self.result(result, "complete", None),
                Some(diagnostic) => self.error_of_tool(result, diagnostic),
            },
            Outcome::NeedInput { requests, state } => self.questions(requests, state),
        }
    }

    /// Opens the sealed state of a request of 2026-07-28. Moves the state of the handler, the input
    /// responses of earlier rounds and the nonce of the round into `incoming`. Drops input
    /// responses that the server did not request. Does nothing if there is no sealed state. The
    /// time is proportional to the size of the params, some milliseconds at most for the default of
    /// [`max_state_params`](crate::limits::ServerLimits::max_state_params). Call it once the
    /// handler is known, before the handler receives the request:
    /// [`Router::route`](crate::Router::route) does.
    ///
    /// # Errors
    /// `-32602` if the request brings invalid input responses, or the params beside its state are
    /// larger than [`max_state_params`](crate::limits::ServerLimits::max_state_params). Also if the
    /// state was changed, has expired, or belongs to another request or server.
    pub fn open(&mut self, incoming: &mut IncomingRequest) -> Result<(), ErrorObject> {
        if let Some(fault) = &self.fault {
            return Err((**fault).clone());
        }
        let Some(RequestState::Sealed(sealed)) = &incoming.state else { return Ok(()) };
        if self.has_large_params() {
            self.state_fault = Some("the params beside it are larger than the limit");
            return Err(ErrorObject::new(code::INVALID_PARAMS, "the params beside the request state are too large"));
        }
        let memory = self.unseal(sealed).map_err(|why| {
            // The error does not contain the reason, which would help only a client that forges a
            // state. A diagnostic contains it.
            self.state_fault = Some(why);
            ErrorObject::new(code::INVALID_PARAMS, "the request state is not valid")
        })?;
        let mut inputs = memory.inputs;
        for (name, input) in core::mem::take(&mut incoming.inputs) {
            if memory.asked.contains(&name) {
                inputs.insert(name, input);
            }
        }
        incoming.inputs = inputs.clone();
        incoming.state = memory.state.map(RequestState::Kept);
        incoming.nonce = Some(memory.nonce);
        self.first = RequestKey::new(memory.origin);
        if let Some(first) = &mut incoming.first {
            first.key = self.first;
        }
        incoming.key_age = self.key_age;
        self.inputs = inputs;
        (self.rounds, incoming.rounds) = (memory.rounds, memory.rounds);
        Ok(())
    }

    fn unseal(&mut self, sealed: &str) -> Result<Memory, &'static str> {
        if sealed.len() > self.shared.config.limits.server.max_state {
            return Err("larger than the limit");
        }
        let opened = seal::open(&self.binding(), self.received_unix(), sealed);
        if opened.is_ok() || self.shared.keys.previous.is_none() {
            return opened;
        }
        self.key_age = KeyAge::Previous;
        seal::open(&self.binding(), self.received_unix(), sealed)
    }

    pub(super) fn binding(&self) -> seal::StateBinding<'_> {
        seal::StateBinding {
            key: self.shared.keys.sealing(self.key_age),
            server: &self.shared.config.info.name,
            principal: self.principal.as_ref(),
            method: &self.method,
            params: &self.params,
        }
    }

    /// Returns whether these params are too large to be sealed with a state.
    pub(super) fn has_large_params(&self) -> bool {
        size(&self.params) > self.shared.config.limits.server.max_state_params
    }

    /// Returns the nonce of the round in which this request asks. No request of any engine asks
    /// twice under the same key.
    pub(super) fn mint_nonce(&self) -> String {
        let nonce = HMAC::mac(self.key.number().to_be_bytes(), self.shared.nonce_key);
        URL_SAFE_NO_PAD.encode(&nonce[..16])
    }

    /// Returns the router that this request began with, if this is a further round.
    pub(crate) fn router<R: Send + Sync + 'static>(&self) -> Option<Arc<R>> {
        Arc::downcast(Arc::clone(&self.router.as_ref()?.0)).ok()
    }

    /// Keeps the router of the request for further rounds. On 2026-07-28 each round is a request of
    /// its own, which may reach another server, unless it is a task.
    pub(crate) fn keep_router(&mut self, router: impl FnOnce() -> Arc<dyn Any + Send + Sync>) {
        if (self.version.era() == Era::Legacy || self.task.is_some()) && self.router.is_none() {
            self.router = Some(KeptRouter(router()));
        }
    }

    /// Requires structured content, and that it passes this check, if any: from now on any other
    /// complete result becomes an error of the tool.
    pub(crate) fn expect_structure(&mut self, check: Option<Checker>) {
        self.promised = check.map_or(OutputPromise::Structure, OutputPromise::Schema);
    }

    /// Answers with an error that is the fault of this server.
    pub(crate) fn fail(self, error: ErrorObject, diagnostic: Diagnostic) -> Answer {
        self.error(error, Some(diagnostic))
    }

    /// Returns the diagnostic of a complete result that is no error, and without the structured
    /// content that the schema of its tool promises. A client that validates results treats such a
    /// result as a protocol error, and its model would receive nothing of it.
    fn broken_promise(&self, result: &Object) -> Option<Diagnostic> {
        const MISSING: &str = "the tool declares an output schema, and its result has no structured content";
        let checker = match &self.promised {
            OutputPromise::Nothing => return None,
            OutputPromise::Structure => None,
            OutputPromise::Schema(checker) => Some(checker),
        };
        let is_complete = result.get("resultType").is_none_or(|kind| kind == "complete".into());
        let is_error = result.get("isError").is_some_and(|is_error| is_error == true.into());
        if !is_complete || is_error {
            return None;
        }
        let Some(structured) = result.get("structuredContent") else {
            return Some(Diagnostic::new(DiagnosticKind::MissingStructure, MISSING));
        };
        let mismatch = checker?.check(&structured).err()?;
        let why = format!("the structured content of the tool does not match its output schema: {mismatch}");
        Some(Diagnostic::new(DiagnosticKind::SchemaMismatch, why))
    }

    /// Returns the result as an error of the tool, whose text is that of the diagnostic. Its
    /// content stays in it, without the structured content.
    fn error_of_tool(self, mut result: Object, diagnostic: Diagnostic) -> Answer {
        result.remove("structuredContent");
        let mut content = alloc::vec![Content::text(diagnostic.detail.as_str()).write()];
        content.extend(result.array("content").unwrap_or_default());
        let result = result.with("content", content).with("isError", true);
        self.result(result, "complete", Some(diagnostic))
    }

    pub(super) fn result(self, result: Object, kind: &str, diagnostic: Option<Diagnostic>) -> Answer {
        let outcome = match kind {
            "complete" if self.is_observed_error(&result) => SpanOutcome::ToolError,
            "complete" => SpanOutcome::Complete,
            _ => SpanOutcome::InputRequired,
        };
        let result = self.shared.complete(self.version, &self.method, result, kind);
        self.message(result_response(&self.id, &result), outcome, diagnostic)
    }

    pub(super) fn error(self, mut error: ErrorObject, diagnostic: Option<Diagnostic>) -> Answer {
        let fault = self.state_fault.map(|why| Diagnostic::new(DiagnosticKind::BadState, why));
        let diagnostic = diagnostic.or(fault);
        if error.code == code::URL_ELICITATION_REQUIRED && !self.requires_pages(&error) {
            error.code = code::INTERNAL_ERROR;
        }
        if self.version.era() == Era::Modern {
            // Codes of legacy revisions, and reserved ones without a meaning: 2026-07-28 forbids
            // them.
            error.code = match error.code {
                code::RESOURCE_NOT_FOUND => code::INVALID_PARAMS,
                known @ (code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_VERSION) => known,
                -32099..=-32020 => code::INTERNAL_ERROR,
                other => other,
            };
        }
        self.message(error_response(Some(&self.id), &error), SpanOutcome::Rpc(error.code), diagnostic)
    }

    /// Returns the decision on a subscription: the engine opens it with the filter in the result.
    fn subscription(self, result: &Object) -> Answer {
        match result.object("notifications").and_then(|filter| Watch::read(&filter)) {
            Ok(filter) => Answer { key: self.key, what: RequestAnswer::Listen(filter) },
            Err(e) => self.error(ErrorObject::new(code::INTERNAL_ERROR, format!("the decision: {e}")), None),
        }
    }

    /// Returns whether the error of a handler names web pages that its client can open, as a proxy
    /// passes it on (2025-11-25 elicitation, url elicitation required error).
    fn requires_pages(&self, error: &ErrorObject) -> bool {
        let is_page = |json: &RawJson| {
            let request = Object::read(json).and_then(|object| ElicitRequest::read(&object));
            matches!(request, Ok(ElicitRequest::Url(page)) if page.elicitation_id.is_some() && page.check().is_ok())
        };
        let pages = Object::read_opt(error.data.as_ref()).and_then(|data| data.array("elicitations"));
        let rules = self.version.rules();
        rules.elicitation_modes
            && rules.era == Era::Legacy
            && self.declared.capabilities().elicits_urls()
            && pages.is_ok_and(|pages| !pages.is_empty() && pages.iter().all(is_page))
    }

    /// Returns whether the request is a task, so that its questions are kept there.
    pub(super) fn is_task(&self) -> bool {
        self.task.as_ref().is_some_and(TaskSlot::is_taken)
    }

    /// Returns whether the result is an error of the tool. Without telemetry nothing asks.
    fn is_observed_error(&self, result: &Object) -> bool {
        self.shared.config.observe.is_some()
            && self.method == "tools/call"
            && result.get("isError").is_some_and(|is_error| is_error == true.into())
    }

    pub(super) fn message(&self, bytes: bytes::Bytes, outcome: SpanOutcome, diagnostic: Option<Diagnostic>) -> Answer {
        Answer { key: self.key, what: RequestAnswer::Message { bytes, outcome, diagnostic } }
    }
}
