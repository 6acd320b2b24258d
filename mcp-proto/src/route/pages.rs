//! The pages of a list of resources, templates or prompts. First come the registered elements,
//! sorted by their key, then those of a source. A cursor names the last element of its page, so
//! that an element that is added or removed neither repeats nor hides another.

use super::scopes::{RouteRefusal, ScopeDemand};
use super::target::ListTarget;
use super::{Cx, Handler, HandlerTarget, MaybeFuture, Resolution, ToolError, invalid};
use crate::input::Outcome;
use crate::model::page::ListElement;
use crate::rpc::{ErrorObject, JsonKind, Object, RawJson, code};
use crate::server::{IncomingRequest, Responder};
use crate::version::ProtocolVersion;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::ops::Bound;

/// An element of a list, and its handler.
#[derive(Clone, Debug)]
pub(super) struct RouterEntry<T> {
    pub(super) listed: T,
    pub(super) handler: Handler,
}

impl<T> AsRef<T> for RouterEntry<T> {
    fn as_ref(&self) -> &T {
        &self.listed
    }
}

/// The position of a cursor.
enum Position {
    /// After the registered element with this key. `None`: the beginning.
    Registered(Option<String>),
    /// After the element of the source with this key. `None`: the beginning.
    Source(Option<String>),
}

impl Position {
    /// Reads the member `cursor` of the params.
    fn read(params: &Object) -> Result<Self, ErrorObject> {
        let Some(cursor) = params.get("cursor").filter(|cursor| cursor.kind() != JsonKind::Null) else {
            return Ok(Self::Registered(None));
        };
        Self::decode(&cursor).ok_or_else(|| invalid("the cursor is not valid"))
    }

    fn decode(cursor: &RawJson) -> Option<Self> {
        let cursor: String = cursor.decode().ok()?;
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        match text.split_at_checked(1)? {
            ("r", key) => Some(Self::Registered(Some(key.to_owned()))),
            ("s", "") => Some(Self::Source(None)),
            ("s", key) => Some(Self::Source(Some(key.to_owned()))),
            _ => None,
        }
    }

    fn encode(&self) -> String {
        let (tag, key) = match self {
            Self::Registered(key) => ("r", key),
            Self::Source(key) => ("s", key),
        };
        URL_SAFE_NO_PAD.encode(format!("{tag}{}", key.as_deref().unwrap_or_default()))
    }
}

/// Returns whether clients receive the same elements of two lists.
pub(super) fn same<T: PartialEq + ScopeDemand, R: AsRef<T>>(
    ours: &BTreeMap<String, R>,
    theirs: &BTreeMap<String, R>,
) -> bool {
    fn listed<'a, T: ScopeDemand + 'a, R: AsRef<T>>(all: &'a BTreeMap<String, R>) -> impl Iterator<Item = &'a T> {
        all.values().map(R::as_ref).filter(|element| !element.is_hidden())
    }
    listed(ours).eq(listed(theirs))
}

/// Returns the page that a request names, or the handler that makes it. `hides`: without the
/// elements that its client may not use.
pub(super) fn page<'a, T: ListElement + ScopeDemand>(
    registered: &BTreeMap<String, impl AsRef<T>>,
    source: Option<&'a Handler>,
    responder: &Responder,
    incoming: &IncomingRequest,
    hides: bool,
) -> Result<Resolution<'a>, RouteRefusal> {
    let access = incoming.context.access.as_deref().filter(|_| hides);
    let size = responder.config().limits.server.page_size.max(1);
    let after = match (Position::read(&incoming.params)?, source) {
        (Position::Registered(after), _) if !registered.is_empty() || source.is_none() => {
            let start = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let rest = registered.range::<str, _>((start, Bound::Unbounded)).map(|(_, element)| element.as_ref());
            let mut rest = rest.filter(|element| !element.is_hidden() && element.is_open_to(access));
            let page: Vec<&T> = rest.by_ref().take(size).collect();
            let next = match (rest.next(), page.last(), source) {
                (Some(_), Some(last), _) => Some(Position::Registered(Some(last.key().to_owned()))),
                (_, _, Some(_)) => Some(Position::Source(None)),
                _ => None,
            };
            return Ok(Resolution::Result(write(page.into_iter(), next.as_ref(), responder.version())));
        }
        (Position::Registered(_), _) => None,
        (Position::Source(after), _) => after,
    };
    let source = source.ok_or_else(|| invalid("the cursor is not valid"))?;
    Ok(Resolution::Other(source, HandlerTarget::List(Box::new(ListTarget { after, size }))))
}

/// Returns a handler that makes pages of the elements that this function returns.
pub(super) fn source<T, I, R, M>(f: impl Fn(&Cx, Option<&str>) -> R + Send + Sync + 'static) -> Handler
where
    T: ListElement,
    I: IntoIterator<Item = T> + 'static,
    R: MaybeFuture<Result<I, ToolError>, M>,
{
    R::handler(move |cx| cx.list().map(|list| f(cx, list.after.as_deref())).ok_or_else(|| Err(foreign())), made::<T, I>)
}

/// Returns the page of what a source returned. It takes no more elements than the page has, and one
/// to know whether there are more.
fn made<T: ListElement, I>(cx: &Cx, elements: Result<I, ToolError>) -> Outcome
where
    I: IntoIterator<Item = T>,
{
    let listed = elements.and_then(|elements| Ok((elements, cx.list().ok_or_else(foreign)?)));
    let (mut rest, list) = match listed {
        Ok((elements, list)) => (elements.into_iter(), list),
        Err(e) => return cx.failed(e),
    };
    let page: Vec<T> = rest.by_ref().take(list.size).collect();
    let last = page.last().map(T::key);
    if last.is_some() && last == list.after.as_deref() {
        let error = ErrorObject::new(code::INTERNAL_ERROR, "the list does not continue after its last element");
        return Outcome::Error(error);
    }
    let next = last.filter(|_| rest.next().is_some()).map(|last| Position::Source(Some(last.to_owned())));
    Outcome::Complete(write(page.iter(), next.as_ref(), cx.context().version))
}

fn foreign() -> ToolError {
    ErrorObject::new(code::INTERNAL_ERROR, "the handler makes lists, and this is another request").into()
}

fn write<'a, T: ListElement>(
    elements: impl Iterator<Item = &'a T>,
    next: Option<&Position>,
    version: ProtocolVersion,
) -> Object {
    let elements: Vec<_> = elements.map(|element| element.write(version)).collect();
    Object::new().with(T::MEMBER, elements).with_opt("nextCursor", next.map(Position::encode))
}
