//! The lists of a server in pages: `tools/list`, `prompts/list`, `resources/list` and
//! `resources/templates/list`.

use super::lifecycle::CacheHints;
use super::skipped::{SkippedList, read_list};
use crate::call::{Call, Method, PagedMethod, RawResult};
use crate::rpc::{DecodeError, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// An element of a list of a server: a tool, a prompt, a resource or a resource template.
pub trait ListElement: Sized + 'static {
    /// The method that returns the list.
    const METHOD: &'static str;

    /// The member of its result that holds the elements.
    const MEMBER: &'static str;

    /// Returns what identifies the element within its list: its name, its URI or its URI template.
    fn key(&self) -> &str;

    /// Decodes an element.
    ///
    /// # Errors
    /// [`DecodeError`] if a required member is missing, or if a member has another type.
    fn read(json: &RawJson) -> Result<Self, DecodeError>;

    /// Encodes the element, without the members that the revision does not have.
    fn write(&self, version: ProtocolVersion) -> Object;
}

/// The method that returns a list of these elements.
#[derive(Debug)]
pub struct List<T>(PhantomData<fn() -> T>);

/// One page of a list.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Page<T> {
    /// The elements of this page.
    pub elements: Vec<T>,
    /// The elements that could not be decoded, which are not among the others.
    pub skipped: SkippedList,
    /// The cursor of the next page. It may be empty.
    pub next_cursor: Option<String>,
    /// How long the page may be cached. Stale at once if the server did not specify it.
    pub cache: CacheHints,
}

impl<T: ListElement> List<T> {
    /// Creates a call that returns the first page.
    pub(super) fn call() -> Call<Self> {
        Call::new(T::METHOD, Ok(Object::new())).repeatable()
    }
}

impl<T: ListElement> Method for List<T> {
    type Output = Page<T>;

    fn decode(result: RawResult) -> Result<Page<T>, DecodeError> {
        let object = Object::read(&result.json)?;
        let (elements, skipped) = read_list(object.array(T::MEMBER)?, T::read);
        Ok(Page { elements, skipped, next_cursor: object.optional("nextCursor")?, cache: CacheHints::read(&object) })
    }
}

impl<T: ListElement> PagedMethod for List<T> {
    type Element = T;

    fn page(output: Page<T>) -> (Vec<T>, Option<String>) {
        (output.elements, output.next_cursor)
    }

    fn skipped(output: &Page<T>) -> Option<&SkippedList> {
        Some(&output.skipped)
    }
}
