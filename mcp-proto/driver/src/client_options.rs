//! The options of a client, which are the same in every driver.

use super::asking::PendingQuestion;
use super::check::{Checks, check};
use super::client_observer::ClientObserver;
use super::environment_proxies;
use super::job::{Failure, Job, Promise};
use super::question::{Question, Reply, ReplyToken};
use super::tls::TlsConnector;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use mcp_proto::apps;
use mcp_proto::client::{BadHeader, Cache, ClientConfig, Event};
use mcp_proto::exchange::{ConnectionId, ConnectionNotice};
use mcp_proto::hook::{Denial, MessageHook, Ruling, WireMessage};
use mcp_proto::input::{Authorization, Challenge, InputAnswer, InputRequest};
use mcp_proto::model::capabilities::{BadExtension, Extensions, RootsCapability, SamplingCapability};
use mcp_proto::model::elicitation::{ElicitRequest, ElicitResult, Form, UrlRequest};
use mcp_proto::model::roots::Root;
use mcp_proto::model::sampling::{SampleRequest, SampleResult};
use mcp_proto::process::Stderr;
#[cfg(feature = "record")]
use mcp_proto::record::Recorder;
use mcp_proto::route::{Callback, MaybeFuture};
use mcp_proto::rpc::{ErrorObject, Object};
use mcp_proto::telemetry::{Observe, Telemetry};
use mcp_proto::time::Instant;
use mcp_proto::wired::WiredClient;

/// The options of a client, with its callbacks. Registering a callback declares the capability.
///
/// Each callback that answers the server has two forms: a function that returns its answer and may
/// block, which the driver runs on a thread that may wait, and one that returns a future. A
/// callback may call the same client. One that holds a client keeps it open; end such a client with
/// `close`.
#[derive(Default)]
#[must_use]
pub struct ClientOptions {
    changes: Vec<ConfigChange>,
    callbacks: ClientCallbacks,
    event: Option<ClientEventCallback>,
    notice: Option<NoticeCallback>,
    observer: Option<ClientObserver>,
    stderr: Stderr,
    connector: TlsConnector,
    checked: bool,
    checks: Option<Checks>,
    ignores_environment: bool,
    #[cfg(feature = "auth")]
    pub(super) login: Option<super::login::LoginSetup>,
    #[cfg(feature = "record")]
    recorder: Option<Recorder>,
}

type ConfigChange = Box<dyn FnOnce(&mut ClientConfig) + Send>;

/// The callback for events of a client.
pub type ClientEventCallback = Box<dyn FnMut(Event) + Send>;

/// The callback for changes of the connections of a client.
pub type NoticeCallback = Box<dyn FnMut(ConnectionId, ConnectionNotice) + Send>;

impl ClientOptions {
    /// Creates options with the defaults of [`ClientConfig`] and without callbacks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes any field of the engine's configuration except its target, which `connect` sets.
    pub fn set(mut self, change: impl FnOnce(&mut ClientConfig) + Send + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// Adds a header field to every HTTP request: `Authorization`, a tenant, a trace.
    ///
    /// # Errors
    /// [`BadHeader`] if the field is invalid, or if the client writes it itself.
    pub fn header(self, name: &str, value: &str) -> Result<Self, BadHeader> {
        BadHeader::check(name, value)?;
        let (name, value) = (name.to_owned(), value.to_owned());
        Ok(self.set(move |config| config.headers.push(&name, value)))
    }

    /// Declares an extension with its settings.
    ///
    /// # Errors
    /// [`BadExtension`] if the identifier has no prefix or is not valid.
    pub fn extension(self, id: &str, settings: Object) -> Result<Self, BadExtension> {
        let mut declared = Extensions::new();
        declared.declare(id, settings)?;
        Ok(self.set(move |config| config.capabilities.extensions.add(declared)))
    }

    /// Declares that the host shows documents of MCP Apps beside the results of tools: those of
    /// [`MIME_TYPE`](mcp_proto::apps::MIME_TYPE), and of these further media types. The client
    /// shows nothing itself.
    pub fn apps<'a>(self, mime_types: impl IntoIterator<Item = &'a str>) -> Self {
        let settings = apps::settings(mime_types);
        self.set(|config| {
            let declared = config.capabilities.extensions.declare(apps::EXTENSION, settings);
            debug_assert!(declared.is_ok(), "its identifier is valid");
        })
    }

    /// Lets calls of tools take tasks as results: see [`ClientConfig::tasks`]. The caller still
    /// waits for one result.
    pub fn tasks(self) -> Self {
        self.set(|config| config.tasks = true)
    }

    /// Lets a server of 2025-11-25 make tasks of its questions: see
    /// [`ClientConfig::answer_as_tasks`].
    pub fn answer_as_tasks(self) -> Self {
        self.set(|config| config.answer_as_tasks = true)
    }

    /// Answers calls from results that are fresh: see [`ClientConfig::cache`]. Begin with
    /// [`Cache::default`].
    pub fn cache(self, cache: Cache) -> Self {
        self.set(move |config| config.cache = Some(cache))
    }

    /// Sets the callback for requests to the user, in a form.
    pub fn on_elicit<R, M>(mut self, ask: impl Fn(Form) -> R + Send + Sync + 'static) -> Self
    where
        R: MaybeFuture<ElicitResult, M>,
    {
        self.callbacks.elicit = Some(R::callback(ask));
        self.declare_forms()
    }

    /// Sets the callback for requests to open a web page. It shows the user the whole URL, opens it
    /// only with consent, and returns whether the user consented. The engine never opens a URL.
    pub fn on_elicit_url<R, M>(mut self, ask: impl Fn(UrlRequest) -> R + Send + Sync + 'static) -> Self
    where
        R: MaybeFuture<ElicitResult, M>,
    {
        self.callbacks.elicit_url = Some(R::callback(ask));
        self.declare_urls()
    }

    /// Sets the callback for requests to a language model.
    pub fn on_sample<R, M>(mut self, ask: impl Fn(SampleRequest) -> R + Send + Sync + 'static) -> Self
    where
        R: MaybeFuture<Result<SampleResult, ErrorObject>, M>,
    {
        self.callbacks.sample = Some(R::callback(ask));
        self.declare_sampling(SamplingCapability::default())
    }

    /// Like [`on_sample`](Self::on_sample), for a model that can use the tools of a request. The
    /// server runs them, and sends their results in a later request.
    pub fn on_sample_with_tools<R, M>(self, ask: impl Fn(SampleRequest) -> R + Send + Sync + 'static) -> Self
    where
        R: MaybeFuture<Result<SampleResult, ErrorObject>, M>,
    {
        self.on_sample(ask).declare_sampling(SamplingCapability::with_tools())
    }

    /// Sets the callback that lists the roots. If [`Root::check`] refuses one of them, the server
    /// receives an error.
    pub fn on_roots<R, M>(mut self, list: impl Fn() -> R + Send + Sync + 'static) -> Self
    where
        R: MaybeFuture<Result<Vec<Root>, ErrorObject>, M>,
    {
        self.callbacks.roots = Some(R::callback(move |()| list()));
        self.set(|config| config.capabilities.roots = Some(RootsCapability::default()))
    }

    /// Sets the roots.
    ///
    /// # Panics
    /// [`Root::check`] refuses one of them: it is no `file://` URI.
    pub fn roots<R: Into<Root>>(self, roots: impl IntoIterator<Item = R>) -> Self {
        let roots: Vec<Root> = roots.into_iter().map(Into::into).collect();
        for root in &roots {
            if let Err(why) = root.check() {
                panic!("{why}: `{}`", root.uri);
            }
        }
        self.on_roots(move || core::future::ready(Ok(roots.clone())))
    }

    /// Sets the callback that provides credentials. HTTP requests that the server refused for lack
    /// of credentials wait for it and are then repeated. Without this callback they end with the
    /// status.
    pub fn on_authorize<R, M>(mut self, get: impl Fn(Challenge) -> R + Send + Sync + 'static) -> Self
    where
        R: MaybeFuture<Authorization, M>,
    {
        self.callbacks.authorize = Some(R::callback(get));
        self.set(|config| config.authorize = true)
    }

    /// Sets the callback for events: notifications, diagnostics, and changes of the client. These
    /// are the end of the negotiation, a missed ping, the resumption or loss of a stream over HTTP,
    /// a change of the tools, a web page that is complete, and the end. Without a callback all of
    /// them are dropped. A panic in it is caught. The adapter documents where it runs, and whether
    /// it may block.
    pub fn on_event(mut self, told: impl FnMut(Event) + Send + 'static) -> Self {
        self.event = Some(Box::new(told));
        self
    }

    /// Sets the callback for each step of the end of a connection, and for the exit status of a
    /// program. It runs like that for events.
    pub fn on_notice(mut self, told: impl FnMut(ConnectionId, ConnectionNotice) + Send + 'static) -> Self {
        self.notice = Some(Box::new(told));
        self
    }

    /// Sets the message hook, which sees every message in both directions before it is handled or
    /// written, and may refuse or replace it. See [`MessageHook`]. It runs under the lock of the
    /// client: it must not block, and must not call the client.
    pub fn on_message<R: Into<Ruling>>(
        self,
        ask: impl Fn(&WireMessage<'_>) -> Result<R, Denial> + Send + Sync + 'static,
    ) -> Self {
        let hook = MessageHook::new(ask);
        self.set(move |config| config.on_message = Some(hook))
    }

    /// Sets the telemetry: this learns of the beginning and the end of every call. See
    /// [`Observe`].
    pub fn observe(self, observe: impl Observe + 'static) -> Self {
        let telemetry = Telemetry::new(observe);
        self.set(move |config| config.observe = Some(telemetry))
    }

    /// Sets the destination of a program's standard error. By default it is inherited. The adapter
    /// documents where a function for its lines runs.
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Sets how the client begins TLS, for `https` and `wss`: the trusted roots, a client
    /// certificate, the cryptography. The default is the verifier of the platform: see
    /// [`TlsConnector`].
    #[cfg(feature = "rustls")]
    pub fn tls(mut self, config: Arc<rustls::ClientConfig>) -> Self {
        self.connector = TlsConnector::new(config);
        self
    }

    /// Sets whether the client uses the proxies of the environment, if its configuration names none
    /// ([`ClientConfig::proxies`]): see
    /// [`Proxies::from_variables`](mcp_proto::client::Proxies::from_variables). The environment is
    /// that of the process when the client is created. Default on.
    pub fn environment_proxies(mut self, uses: bool) -> Self {
        self.ignores_environment = !uses;
        self
    }

    /// Records the client from the start until its end: see [`record`](mcp_proto::record) for the
    /// contents of a recording. `Recorder::to(Redaction::Redacted, File::create(path)?)` writes to
    /// a file. The writer is called under the lock of the client, so that a crash loses nothing and
    /// the lines are in order. A file is fast enough; pass lines to a thread if writing may be
    /// slow. If the writer fails, the recording ends with a diagnostic, and the client continues.
    #[cfg(feature = "record")]
    pub fn record(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Makes the engine panic when the driver breaks a rule, for the tests of a driver: see
    /// [`check`].
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }

    /// For a driver: creates the engine, with the changes of the configuration, and with the
    /// proxies of the environment.
    pub fn create(&mut self, mut config: ClientConfig, seed: [u8; 32], now: Instant) -> WiredClient {
        self.change(&mut config);
        if !self.ignores_environment && config.proxies.is_none() {
            config.proxies = environment_proxies();
        }
        let mut engine = self.create_unchecked(config, seed, now);
        self.checks = self.checked.then(|| check(&mut engine));
        engine
    }

    /// Takes the checks of the engine that was created.
    pub(super) const fn take_checks(&mut self) -> Option<Checks> {
        self.checks.take()
    }

    fn change(&mut self, config: &mut ClientConfig) {
        self.changes.drain(..).for_each(|change| change(config));
    }

    pub(crate) fn create_unchecked(&mut self, mut config: ClientConfig, seed: [u8; 32], now: Instant) -> WiredClient {
        self.change(&mut config);
        let config = Arc::new(config);
        #[cfg(feature = "record")]
        if let Some(recorder) = self.recorder.take() {
            return recorder.client(config, seed, now);
        }
        WiredClient::new(config, seed, now)
    }

    /// For a supervisor: sets the observer.
    pub fn supervised_by(mut self, observer: ClientObserver) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Takes the observer.
    pub(super) const fn take_observer(&mut self) -> Option<ClientObserver> {
        self.observer.take()
    }

    /// For a driver: takes the callback for events.
    pub fn take_event(&mut self) -> Option<ClientEventCallback> {
        self.event.take()
    }

    /// For a driver: takes the callback for changes of connections.
    pub fn take_notice(&mut self) -> Option<NoticeCallback> {
        self.notice.take()
    }

    /// For a driver: takes the destination of a program's standard error.
    pub fn take_stderr(&mut self) -> Stderr {
        core::mem::take(&mut self.stderr)
    }

    /// For a driver: returns how the client begins TLS.
    pub fn connector(&self) -> TlsConnector {
        self.connector.clone()
    }

    /// For a driver: takes the callbacks that answer the server.
    pub fn take_callbacks(&mut self) -> ClientCallbacks {
        core::mem::take(&mut self.callbacks)
    }

    fn declare_forms(self) -> Self {
        // An empty object, the form of 2025-06-18, is understood by more servers.
        self.set(|config| {
            let modes = config.capabilities.elicitation.get_or_insert_default();
            modes.form = modes.url.as_ref().map(|_| Object::new());
        })
    }

    fn declare_urls(self) -> Self {
        self.set(|config| {
            let forms = config.capabilities.elicits_forms();
            let modes = config.capabilities.elicitation.get_or_insert_default();
            (modes.form, modes.url) = (forms.then(Object::new), Some(Object::new()));
        })
    }

    fn declare_sampling(self, sampling: SamplingCapability) -> Self {
        self.set(|config| config.capabilities.sampling = Some(sampling))
    }
}

/// The callbacks of a client that answer its server: from
/// [`ClientOptions::take_callbacks`].
#[derive(Default)]
pub struct ClientCallbacks {
    elicit: Option<Callback<Form, ElicitResult>>,
    elicit_url: Option<Callback<UrlRequest, ElicitResult>>,
    sample: Option<Callback<SampleRequest, Result<SampleResult, ErrorObject>>>,
    roots: Option<Callback<(), Result<Vec<Root>, ErrorObject>>>,
    authorize: Option<Callback<Challenge, Authorization>>,
}

impl ClientCallbacks {
    /// Returns whether there is a callback for the question in this event.
    #[cfg(feature = "testing")]
    pub(crate) const fn answers(&self, event: &Event) -> bool {
        match event {
            Event::InputNeeded { request: InputRequest::Elicitation(ElicitRequest::Form(_)), .. } => {
                self.elicit.is_some()
            }
            Event::InputNeeded { request: InputRequest::Elicitation(ElicitRequest::Url(_)), .. } => {
                self.elicit_url.is_some()
            }
            Event::InputNeeded { request: InputRequest::Sampling(_), .. } => self.sample.is_some(),
            Event::InputNeeded { request: InputRequest::Roots, .. } => self.roots.is_some(),
            Event::AuthNeeded { .. } => self.authorize.is_some(),
            _ => false,
        }
    }

    /// Returns the job that answers a question. `None` if it is answered: there is no callback for
    /// it, or the callback panicked. This may run code of the application: see
    /// [locks](super#locks).
    pub fn route(&self, asking: PendingQuestion) -> Option<Job> {
        let (promise, question) = asking.into_parts();
        match question {
            Question::Input(InputRequest::Elicitation(ElicitRequest::Form(form))) => {
                answer(&self.elicit, promise, form, |result| Reply::Input(InputAnswer::Elicitation(result)))
            }
            Question::Input(InputRequest::Elicitation(ElicitRequest::Url(request))) => {
                answer(&self.elicit_url, promise, request, |result| Reply::Input(InputAnswer::Elicitation(result)))
            }
            Question::Input(InputRequest::Sampling(request)) => answer(&self.sample, promise, *request, |result| {
                Reply::Input(result.map_or_else(InputAnswer::Error, InputAnswer::Sampling))
            }),
            Question::Input(InputRequest::Roots) => answer(&self.roots, promise, (), |roots| {
                Reply::Input(roots.map_or_else(InputAnswer::Error, InputAnswer::roots))
            }),
            Question::Challenge(challenge) => answer(&self.authorize, promise, challenge, Reply::Authorization),
            // A kind that this crate does not know has no callback.
            Question::Input(_) => {
                promise.finish(Err(Failure::Absent));
                None
            }
        }
    }
}

fn answer<Q: Send + 'static, A: Send + 'static>(
    callback: &Option<Callback<Q, A>>,
    promise: Promise<ReplyToken>,
    question: Q,
    reply: impl FnOnce(A) -> Reply + Send + 'static,
) -> Option<Job> {
    match callback {
        Some(Callback::Sync(f)) => {
            let f = Arc::clone(f);
            Some(Job::sync(promise, move || reply(f(question))))
        }
        Some(Callback::Async(f)) => Job::future(promise, || {
            let answer = f(question);
            Box::pin(async { reply(answer.await) })
        }),
        None => {
            promise.finish(Err(Failure::Absent));
            None
        }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions").field("stderr", &self.stderr).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;
