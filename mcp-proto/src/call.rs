//! A call as data: what to ask, how long to wait, and the type of the answer. Both adapters make calls from these, and add only a way to wait.

mod progress;

pub use progress::Progress;

use crate::error::CallError;
use crate::rpc::{DecodeError, EncodeError, Object, RawJson, ToObject};
use crate::version::ProtocolVersion;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use serde::de::DeserializeOwned;

/// A kind of request, known by the type of its result.
pub trait Method {
    /// What a successful call returns.
    type Output;

    /// Reads a result.
    ///
    /// # Errors
    /// [`DecodeError`] if it is not of the method's shape.
    fn decode(result: &RawResult) -> Result<Self::Output, DecodeError>;
}

/// A method that returns a list in pages.
pub trait Paged: Method {
    /// What the list consists of.
    type Element;

    /// Takes a page apart: its elements, and the cursor of the next page if there is one. The empty string is a cursor.
    fn page(output: Self::Output) -> (Vec<Self::Element>, Option<String>);
}

/// A result as it stood on the wire, with the revision that explains it.
#[derive(Clone, PartialEq, Debug)]
pub struct RawResult {
    /// The `result` member.
    pub json: RawJson,
    /// The revision in which it was given.
    pub version: ProtocolVersion,
}

/// One request to a server, and how to wait for it. Plain data until it is handed to an engine.
pub struct Call<M> {
    raw: RawCall,
    method: PhantomData<fn() -> M>,
}

/// A [`Call`] without the type of its result.
#[derive(Clone, PartialEq, Debug)]
pub struct RawCall {
    /// The method on the wire.
    pub method: Cow<'static, str>,
    /// The params, or why they could not be serialised. The engine adds its own `_meta` members to those given here.
    pub params: Result<Object, EncodeError>,
    /// How to wait.
    pub options: CallOptions,
}

/// How to wait for a call. `None` means what [`ClientConfig`](crate::client::ClientConfig) says.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// How long to wait for the answer; `Some(None)` without limit. The clock stands still while we owe the server an answer.
    pub timeout: Option<Option<Duration>>,
    /// Whether progress starts the clock anew.
    pub reset_on_progress: Option<bool>,
    /// The limit in total, which also runs while the clock stands still.
    pub max_total: Option<Duration>,
    /// Whether the application wants to see progress.
    pub progress: bool,
    /// Whether the request may run twice without harm, so that it may be repeated when it is unclear whether it ran.
    pub repeatable: bool,
}

impl<M: Method> Call<M> {
    /// A call of this method with these params.
    pub fn new(method: impl Into<Cow<'static, str>>, params: Result<Object, EncodeError>) -> Self {
        let raw = RawCall { method: method.into(), params, options: CallOptions::default() };
        Self { raw, method: PhantomData }
    }

    /// Maximum time from the call to its response; `None`: no limit. It includes the time before the request is sent, in which the call waits
    /// for the server to start or for an HTTP connection. Default: [`ClientConfig::timeout`](crate::client::ClientConfig).
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.raw.options.timeout = Some(timeout.into());
        self
    }

    /// Whether each progress notification starts the clock anew. A total limit applies whenever this is on.
    #[must_use]
    pub fn reset_on_progress(mut self, reset: bool) -> Self {
        self.raw.options.reset_on_progress = Some(reset);
        self
    }

    /// Waits at most so long in total, whatever progress or questions come.
    #[must_use]
    pub fn max_total(mut self, max: Duration) -> Self {
        self.raw.options.max_total = Some(max);
        self
    }

    /// Asks for progress: [`Event::Progress`](crate::client::Event::Progress) is emitted for this call.
    #[must_use]
    pub fn progress(mut self) -> Self {
        self.raw.options.progress = true;
        self
    }

    /// Asks for progress, and names who is told. The callback runs where the call is waited for.
    #[must_use]
    pub fn on_progress<F: FnMut(Progress)>(self, told: F) -> Watched<M, F> {
        Watched { call: self.progress(), told }
    }

    /// Declares that running this twice does no harm.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.raw.options.repeatable = true;
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

    /// The call without its type.
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

/// A call with someone who is told of its progress.
pub struct Watched<M, F> {
    call: Call<M>,
    told: F,
}

/// What an adapter's `call` takes: a [`Call`], or a [`Watched`] one.
pub trait IntoCall {
    /// The method called.
    type Method: Method;
    /// Who is told of progress.
    type Told: FnMut(Progress);

    /// Takes it apart.
    fn into_call(self) -> (Call<Self::Method>, Self::Told);
}

impl<M: Method> IntoCall for Call<M> {
    type Method = M;
    type Told = fn(Progress);

    fn into_call(self) -> (Call<M>, fn(Progress)) {
        (self, |_| {})
    }
}

impl<M: Method, F: FnMut(Progress)> IntoCall for Watched<M, F> {
    type Method = M;
    type Told = F;

    fn into_call(self) -> (Call<M>, F) {
        (self.call, self.told)
    }
}

/// A call of ours. Never reused within an engine, and not the id on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

/// A call under way: its id, and the type of its result.
pub struct Calling<M> {
    id: CallId,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> Calling<M> {
    pub(crate) const fn new(id: CallId) -> Self {
        Self { id, method: PhantomData }
    }

    /// The id that events of this call carry.
    pub const fn id(&self) -> CallId {
        self.id
    }

    /// Reads the outcome that [`Event::Ended`](crate::client::Event::Ended) brought for this call.
    ///
    /// # Errors
    /// The call's own error, or [`CallError::Decode`].
    pub fn finish(self, outcome: Result<RawResult, CallError>) -> Result<M::Output, CallError> {
        M::decode(&outcome?).map_err(CallError::Decode)
    }
}

impl<M> fmt::Debug for Calling<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Calling").field(&self.id).finish()
    }
}

/// The method `ping`.
#[derive(Clone, Copy, Debug)]
pub struct Ping;

impl Method for Ping {
    type Output = ();

    fn decode(_: &RawResult) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// Asks whether the server answers. 2026-07-28 has no `ping`; there `server/discover` is sent, which every server has.
pub fn ping() -> Call<Ping> {
    Call::new("ping", Ok(Object::new())).repeatable()
}

/// A method that this crate has no type for; the result is read as a `T`.
pub struct Custom<T>(PhantomData<fn() -> T>);

impl<T: DeserializeOwned> Method for Custom<T> {
    type Output = T;

    fn decode(result: &RawResult) -> Result<T, DecodeError> {
        result.json.decode()
    }
}

/// A call of any method. `params` must become a JSON object: a value that serde serialises, an [`Object`] or a [`RawJson`].
pub fn custom<T: DeserializeOwned>(
    method: impl Into<Cow<'static, str>>,
    params: &(impl ToObject + ?Sized),
) -> Call<Custom<T>> {
    Call::new(method, params.to_object())
}

/// The walk through a paged list: makes one call after another, and stops at the end, on a cursor that was seen before, and on a page cap.
/// It does no I/O: take elements with [`pop`](Self::pop); when there are none, ask [`next`](Self::next) for a call, make it, and hand
/// its outcome to [`fetched`](Self::fetched).
pub struct Pages<M: Paged> {
    call: Call<M>,
    seen: alloc::collections::BTreeSet<String>,
    next: Next,
    max: usize,
    left: usize,
    elements: alloc::vec::IntoIter<M::Element>,
}

impl<M: Paged> fmt::Debug for Pages<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("call", &self.call)
            .field("next", &self.next)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Next {
    First,
    Cursor(String),
    Done,
}

impl<M: Paged> Pages<M> {
    /// A walk that begins with `call` and fetches at most `max_pages` pages.
    pub fn new(call: Call<M>, max_pages: usize) -> Self {
        Self {
            call,
            seen: alloc::collections::BTreeSet::new(),
            next: Next::First,
            max: max_pages,
            left: max_pages,
            elements: Vec::new().into_iter(),
        }
    }

    /// The call of the next page; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it yields calls to make, not elements")]
    pub fn next(&mut self) -> Option<Call<M>> {
        match core::mem::replace(&mut self.next, Next::Done) {
            Next::Done => None,
            Next::First => Some(self.call.clone()),
            Next::Cursor(cursor) => Some(self.call.clone().param("cursor", Ok(cursor.as_str().into()))),
        }
    }

    /// The next element of the page that was fetched last; `None` if another page is to be fetched.
    pub fn pop(&mut self) -> Option<M::Element> {
        self.elements.next()
    }

    /// Takes how the call of a page ended; its elements are there for [`pop`](Self::pop).
    ///
    /// # Errors
    /// The error of the call; [`CallError::TooManyPages`] if the list has more pages than the maximum; [`CallError::Decode`] if a cursor
    /// repeats. The walk ends with any of them.
    pub fn fetched(&mut self, outcome: Result<M::Output, CallError>) -> Result<(), CallError> {
        let (elements, cursor) = M::page(outcome?);
        let Some(cursor) = cursor else {
            self.elements = elements.into_iter();
            return Ok(());
        };
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return Err(CallError::TooManyPages(self.max));
        }
        if !self.seen.insert(cursor.clone()) {
            return Err(DecodeError::new("the server repeats a page cursor").into());
        }
        self.next = Next::Cursor(cursor);
        self.elements = elements.into_iter();
        Ok(())
    }
}
