//! Calls as data: the request, its timeout, and the type of its result. Both adapters make calls
//! from these types, and add only a way to wait.

mod callbacks;
mod level;
mod progress;
mod skipped;
pub(crate) mod task;

pub use callbacks::{CallCallbacks, CallListener, CallNews, CallWithCallbacks, IntoCall};
pub use level::LogLevel;
pub use progress::Progress;
pub use skipped::{SkippedElement, SkippedList};

use crate::error::CallError;
use crate::rpc::{DecodeError, EncodeError, Object, RawJson, ToObject};
use crate::trace_context::TraceContext;
use crate::version::ProtocolVersion;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use serde::de::DeserializeOwned;
use task::TaskHandle;

/// A kind of request, identified by the type of its result.
pub trait Method {
    /// The result of a successful call.
    type Output;

    /// Decodes a result.
    ///
    /// # Errors
    /// [`DecodeError`] if the result does not have the shape of this method.
    fn decode(result: RawResult) -> Result<Self::Output, DecodeError>;
}

/// A method that returns a list in pages.
pub trait PagedMethod: Method {
    /// The type of the list's elements.
    type Element;

    /// Splits a page into its elements and the cursor of the next page, if there is one. The empty
    /// string is a cursor.
    fn page(output: Self::Output) -> (Vec<Self::Element>, Option<String>);

    /// Returns the elements that a page has left out, since they could not be decoded. `None` if
    /// the method leaves out none.
    fn skipped(output: &Self::Output) -> Option<&SkippedList> {
        let _ = output;
        None
    }
}

/// A result as received, with the revision that defines its meaning.
#[derive(Clone, PartialEq, Debug)]
pub struct RawResult {
    /// The `result` member.
    pub json: RawJson,
    /// The negotiated revision.
    pub version: ProtocolVersion,
    /// The task that the result is, if the call does not wait for it ([`Call::detach`]).
    pub task: Option<Box<TaskHandle>>,
    /// The time since the client received the result, if it is one of its cache
    /// ([`ClientConfig::cache`](crate::client::ClientConfig::cache)). `None`: the server sent it in
    /// response to this call.
    pub age: Option<Duration>,
}

impl RawResult {
    /// Creates a result.
    pub const fn new(json: RawJson, version: ProtocolVersion) -> Self {
        Self { json, version, task: None, age: None }
    }
}

/// One request to a server, and how to wait for it. Plain data until an engine accepts it.
pub struct Call<M> {
    raw: RawCall,
    method: PhantomData<fn() -> M>,
}

/// A [`Call`] without the type of its result.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct RawCall {
    /// The name of the method on the wire.
    pub method: Cow<'static, str>,
    /// The params, or the error of their serialization. The engine adds its own `_meta` members.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub params: Result<Object, EncodeError>,
    /// Timeouts and other options.
    pub options: CallOptions,
}

impl RawCall {
    /// As [`Call::trace`].
    pub(crate) fn set_trace(&mut self, trace: &TraceContext) {
        if let Ok(params) = &mut self.params {
            let mut meta = params.optional_object("_meta").ok().flatten().unwrap_or_default();
            trace.write(&mut meta);
            params.set("_meta", meta);
        }
    }
}

/// The options of a call. `None` selects the default in
/// [`ClientConfig`](crate::client::ClientConfig).
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CallOptions {
    /// Maximum time to the response. `Some(None)` is no limit. The clock stops while the
    /// application has to answer a request of the server.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub timeout: Option<Option<Duration>>,
    /// Whether a progress notification restarts the timeout.
    pub reset_on_progress: Option<bool>,
    /// Maximum total time. This clock never stops.
    pub max_total: Option<Duration>,
    /// Whether the application receives progress.
    pub progress: bool,
    /// Whether the engine may send the request a second time when it cannot know whether the first
    /// one ran.
    pub repeatable: bool,
    /// Whether the client asks for a task as the response. Used only on 2025-11-25, with
    /// [`ClientConfig::tasks`](crate::client::ClientConfig::tasks).
    pub as_task: bool,
    /// Whether the call ends as soon as its result is a task, which then goes on
    /// ([`Call::detach`]).
    pub detach: bool,
    /// The task that the call waits for: it sends no request of its own
    /// ([`attach`](crate::tasks::attach)).
    pub attach: Option<Box<TaskHandle>>,
    /// Whether the server is asked even if the cache has a fresh result
    /// ([`ClientConfig::cache`](crate::client::ClientConfig::cache)).
    pub fresh: bool,
    /// The lowest level of log messages of this request. Used only on 2026-07-28.
    pub log_level: Option<LogLevel>,
    /// The kind of result that the call accepts besides those of the protocol.
    pub result_type: Option<Box<ExtensionResult>>,
}

/// A kind of result that an extension defines: a value of `resultType`, from 2026-07-28 on.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ExtensionResult {
    /// The identifier of the extension.
    pub extension: String,
    /// The value of `resultType`.
    pub result_type: String,
}

impl<M: Method> Call<M> {
    /// Creates a call of this method with these params.
    pub fn new(method: impl Into<Cow<'static, str>>, params: Result<Object, EncodeError>) -> Self {
        let raw = RawCall { method: method.into(), params, options: CallOptions::default() };
        Self { raw, method: PhantomData }
    }

    /// Sets the maximum time from the call to its response. `None` is no limit. The time includes
    /// the wait before the request is sent, for the start of the server or for an HTTP connection.
    /// Progress does not extend it, unless [`reset_on_progress`](Self::reset_on_progress) is on.
    /// Default: [`ClientConfig::timeout`](crate::client::ClientConfig).
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.raw.options.timeout = Some(timeout.into());
        self
    }

    /// Sets whether each progress notification restarts the timeout. A total limit applies whenever
    /// this is on.
    #[must_use]
    pub fn reset_on_progress(mut self, reset: bool) -> Self {
        self.raw.options.reset_on_progress = Some(reset);
        self
    }

    /// Sets the maximum total time, which neither progress nor requests of the server extend.
    #[must_use]
    pub fn max_total(mut self, max: Duration) -> Self {
        self.raw.options.max_total = Some(max);
        self
    }

    /// Requests progress: the engine emits [`Event::Progress`](crate::client::Event::Progress) for
    /// this call.
    #[must_use]
    pub fn progress(mut self) -> Self {
        self.raw.options.progress = true;
        self
    }

    /// Declares that the request may safely run twice.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.raw.options.repeatable = true;
        self
    }

    /// Asks the server even if the cache of the client has a fresh result
    /// ([`ClientConfig::cache`](crate::client::ClientConfig::cache)). The cache stores the new one.
    #[must_use]
    pub const fn fresh(mut self) -> Self {
        self.raw.options.fresh = true;
        self
    }

    /// Accepts a result whose `resultType` has this value, if client and server both declared the
    /// extension. Without this, such a result ends the call with [`CallError::Decode`] (2026-07-28
    /// basic, `resultType`). The type of the call has to decode it: see [`custom`].
    #[must_use]
    pub fn accept_result(mut self, extension: impl Into<String>, result_type: impl Into<String>) -> Self {
        let accepted = ExtensionResult { extension: extension.into(), result_type: result_type.into() };
        self.raw.options.result_type = Some(Box::new(accepted));
        self
    }

    /// Requests log messages of this level or above, in place of the level of
    /// [`Client::log_level`](crate::ClientCommands::log_level). Only 2026-07-28 has a level for
    /// each request: before, a server has one for the whole session, and this has no effect. Log
    /// messages are deprecated since 2026-07-28.
    #[must_use]
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.raw.options.log_level = Some(level);
        self
    }

    /// Sets one member of the params.
    #[must_use]
    pub fn param(mut self, key: &str, value: Result<RawJson, EncodeError>) -> Self {
        match (&mut self.raw.params, value) {
            (Ok(params), Ok(value)) => params.set(key, value),
            (params @ Ok(_), Err(e)) => *params = Err(e),
            (Err(_), _) => {}
        }
        self
    }

    /// Changes the params, if they could be serialized.
    pub(crate) fn change(mut self, change: impl FnOnce(&mut Object)) -> Self {
        if let Ok(params) = &mut self.raw.params {
            change(params);
        }
        self
    }

    /// Makes the request a part of a trace: its server finds the context in `_meta`
    /// ([`Cx::trace`](crate::Cx::trace)). It has the parent that the context names: give it the id
    /// of the span of this call.
    #[must_use]
    pub fn trace(mut self, trace: &TraceContext) -> Self {
        self.raw.set_trace(trace);
        self
    }

    /// Changes the options.
    pub(crate) fn with_options(mut self, change: impl FnOnce(&mut CallOptions)) -> Self {
        change(&mut self.raw.options);
        self
    }

    /// Returns the method, the params and the options.
    pub const fn raw(&self) -> &RawCall {
        &self.raw
    }

    /// Returns the method, the params and the options, to change them. With another method the
    /// result is that of this method, and may not decode.
    pub const fn raw_mut(&mut self) -> &mut RawCall {
        &mut self.raw
    }

    /// Returns the call without its type.
    pub fn into_raw(self) -> RawCall {
        self.raw
    }

    pub(crate) fn from_raw(raw: RawCall) -> Self {
        Self { raw, method: PhantomData }
    }
}

impl<M> Clone for Call<M> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone(), method: PhantomData }
    }
}

impl<M> PartialEq for Call<M> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<M> fmt::Debug for Call<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.raw).finish()
    }
}

/// Identifies a call of the application. An engine never reuses an id. It is not the id on the
/// wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct CallId(pub u64);

/// A call in progress: its id, and the type of its result.
pub struct CallHandle<M> {
    id: CallId,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> CallHandle<M> {
    pub(crate) const fn new(id: CallId) -> Self {
        Self { id, method: PhantomData }
    }

    /// Returns the id that events of this call carry.
    pub const fn id(&self) -> CallId {
        self.id
    }

    /// Decodes the outcome of [`Event::Ended`](crate::client::Event::Ended) for this call.
    ///
    /// # Errors
    /// The error of the call, or [`CallError::Decode`].
    pub fn finish(self, outcome: Result<RawResult, CallError>) -> Result<M::Output, CallError> {
        M::decode(outcome?).map_err(CallError::Decode)
    }
}

impl<M> fmt::Debug for CallHandle<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Calling").field(&self.id).finish()
    }
}

/// The method `ping`.
#[derive(Clone, Copy, Debug)]
pub struct Ping;

impl Method for Ping {
    type Output = ();

    fn decode(_: RawResult) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// Creates a call that checks whether the server responds. 2026-07-28 has no `ping`; there the
/// engine sends `server/discover`, which every server supports.
pub fn ping() -> Call<Ping> {
    Call::new("ping", Ok(Object::new())).repeatable()
}

/// A method that this crate has no type for. Its result is decoded as a `T`.
pub struct Custom<T>(PhantomData<fn() -> T>);

impl<T: DeserializeOwned> Method for Custom<T> {
    type Output = T;

    fn decode(result: RawResult) -> Result<T, DecodeError> {
        result.json.decode()
    }
}

/// Creates a call of any method. `params` must serialize to a JSON object: a serde value, an
/// [`Object`] or a [`RawJson`].
pub fn custom<T: DeserializeOwned>(
    method: impl Into<Cow<'static, str>>,
    params: &(impl ToObject + ?Sized),
) -> Call<Custom<T>> {
    Call::new(method, params.to_object())
}

/// Fetches a paged list with one call after another. It ends after the last page, at a cursor that
/// repeats, and at a maximum number of pages. It does no I/O: take elements with
/// [`pop`](Self::pop); when there are none, get a call from [`next`](Self::next), make it, and
/// report its outcome with [`fetched`](Self::fetched).
pub struct Pages<M: PagedMethod> {
    call: Call<M>,
    /// The hashes of the cursors: a cursor may be as long as its message.
    seen: alloc::collections::BTreeSet<[u8; 32]>,
    next: NextPage,
    max: usize,
    left: usize,
    elements: alloc::vec::IntoIter<M::Element>,
    skipped: SkippedList,
    /// Number of elements of the pages so far, with those that were left out.
    count: usize,
}

impl<M: PagedMethod> fmt::Debug for Pages<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("call", &self.call)
            .field("next", &self.next)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// The page that is fetched next.
#[derive(Debug)]
enum NextPage {
    First,
    Cursor(String),
    Done,
}

impl<M: PagedMethod> Pages<M> {
    /// Creates a fetch that begins with `call` and fetches at most `max_pages` pages.
    pub fn new(call: Call<M>, max_pages: usize) -> Self {
        Self {
            call,
            seen: alloc::collections::BTreeSet::new(),
            next: NextPage::First,
            max: max_pages,
            left: max_pages,
            elements: Vec::new().into_iter(),
            skipped: SkippedList::default(),
            count: 0,
        }
    }

    /// Returns the call of the next page. `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it yields calls to make, not elements")]
    pub fn next(&mut self) -> Option<Call<M>> {
        match core::mem::replace(&mut self.next, NextPage::Done) {
            NextPage::Done => None,
            NextPage::First => Some(self.call.clone()),
            NextPage::Cursor(cursor) => Some(self.call.clone().param("cursor", Ok(cursor.as_str().into()))),
        }
    }

    /// Returns the next element of the latest page. `None` if another page has to be fetched.
    pub fn pop(&mut self) -> Option<M::Element> {
        self.elements.next()
    }

    /// Returns the elements that the pages so far have left out, since they could not be decoded.
    /// Their positions are those in the list of all pages.
    pub const fn skipped(&self) -> &SkippedList {
        &self.skipped
    }

    /// Reports the outcome of the call of a page. [`pop`](Self::pop) then returns its elements.
    ///
    /// # Errors
    /// The error of the call; [`CallError::TooManyPages`] if the list has more pages than the
    /// maximum; [`CallError::Decode`] if a cursor repeats. Each of them ends the list.
    pub fn fetched(&mut self, outcome: Result<M::Output, CallError>) -> Result<(), CallError> {
        let page = outcome?;
        let start = self.count;
        if let Some(skipped) = M::skipped(&page) {
            self.skipped.append(skipped, start);
            self.count += skipped.len();
        }
        let (elements, cursor) = M::page(page);
        self.count = self.count.saturating_add(elements.len());
        let Some(cursor) = cursor else {
            self.elements = elements.into_iter();
            return Ok(());
        };
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return Err(CallError::TooManyPages(self.max));
        }
        if !self.seen.insert(hmac_sha256::Hash::hash(cursor.as_bytes())) {
            return Err(DecodeError::new("the server repeats a page cursor").into());
        }
        self.next = NextPage::Cursor(cursor);
        self.elements = elements.into_iter();
        Ok(())
    }
}
