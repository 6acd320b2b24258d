//! The return values of a handler.

use crate::input::InputRequest;
use crate::model::completion::Completion;
use crate::model::content::Content;
use crate::model::prompts::{GetPromptResult, PromptMessage};
use crate::model::resources::{ReadResult, ResourceContents};
use crate::model::tools::CallToolResult;
use crate::peer_text::{Visible, write_list};
use crate::rpc::{DecodeError, EncodeError, ErrorObject, RawJson, code};
use crate::version::ProtocolVersion;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use serde::Serialize;

/// Why a handler returned no result.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ToolError {
    /// It needs input first.
    Ask {
        /// The requests for input.
        requests: Vec<(String, InputRequest)>,
        /// The state to keep.
        state: Option<RawJson>,
    },
    /// It failed. The text is for the model. For everything but a tool it becomes the error
    /// `-32603`.
    Failed(String),
    /// What the request names does not exist: a resource of a template, a prompt. It becomes the
    /// error of the revision: `-32602`, for a resource before 2026-07-28 `-32002`. For a tool it is
    /// a failure.
    NotFound,
    /// The request is invalid.
    Protocol(ErrorObject),
}

impl ToolError {
    /// Returns the error for arguments of a tool that are not valid: for the model from 2025-11-25
    /// on, and of the protocol before.
    pub(super) fn invalid_arguments(version: ProtocolVersion, text: String) -> Self {
        match version.rules().invalid_arguments_as_result {
            true => Self::Failed(text),
            false => Self::Protocol(ErrorObject::new(code::INVALID_PARAMS, text)),
        }
    }

    /// Keeps this value for the next run of the handler. Useful only on [`ToolError::Ask`], as in
    /// `cx.elicit("name", form).map_err(|ask| ask.remember(&draft))?`. In the modern era the value
    /// is sent through the client, sealed but readable: do not keep secrets.
    #[must_use]
    pub fn remember<T: Serialize + ?Sized>(self, value: &T) -> Self {
        match (self, RawJson::encode(value)) {
            (Self::Ask { requests, .. }, Ok(state)) => Self::Ask { requests, state: Some(state) },
            (Self::Ask { .. }, Err(e)) => e.into(),
            (other, _) => other,
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask { requests, .. } => {
                f.write_str("answers are needed: ")?;
                write_list(f, requests.iter().map(|(name, _)| name.as_str()))
            }
            Self::Failed(text) => Visible(text).fmt(f),
            Self::NotFound => f.write_str("not found"),
            Self::Protocol(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ToolError {}

impl From<&str> for ToolError {
    fn from(text: &str) -> Self {
        Self::Failed(text.into())
    }
}

impl From<String> for ToolError {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

impl From<ErrorObject> for ToolError {
    fn from(error: ErrorObject) -> Self {
        Self::Protocol(error)
    }
}

impl From<DecodeError> for ToolError {
    fn from(e: DecodeError) -> Self {
        Self::Failed(e.to_string())
    }
}

impl From<EncodeError> for ToolError {
    fn from(e: EncodeError) -> Self {
        Self::Failed(e.to_string())
    }
}

#[cfg(feature = "std")]
impl From<std::io::Error> for ToolError {
    /// The text of the error, for the model.
    fn from(e: std::io::Error) -> Self {
        Self::Failed(e.to_string())
    }
}

/// A return value of a handler. There is no blanket implementation for `Serialize`: a `Result` is
/// serializable, and an error would be sent as a success.
#[diagnostic::on_unimplemented(
    note = "return `()`, a text, a number, `Content`, `CallToolResult`, or data in `Json(..)`"
)]
pub trait IntoOutput {
    /// Converts it to the result of a tool.
    ///
    /// # Errors
    /// The reason why there is none.
    fn into_output(self) -> Result<CallToolResult, ToolError>;
}

/// A result as data: structured content, and the same as a block of text for clients that do not
/// read it.
#[derive(Clone, PartialEq, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoOutput for Json<T> {
    fn into_output(self) -> Result<CallToolResult, ToolError> {
        let json = RawJson::encode(&self.0)?;
        let mut result = CallToolResult::text(json.as_str());
        result.structured = Some(json);
        Ok(result)
    }
}

impl IntoOutput for CallToolResult {
    fn into_output(self) -> Result<CallToolResult, ToolError> {
        Ok(self)
    }
}

impl IntoOutput for Content {
    fn into_output(self) -> Result<CallToolResult, ToolError> {
        alloc::vec![self].into_output()
    }
}

impl IntoOutput for Vec<Content> {
    fn into_output(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult { content: self, ..CallToolResult::default() })
    }
}

impl IntoOutput for () {
    /// No content.
    fn into_output(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::default())
    }
}

impl<T: IntoOutput, E: Into<ToolError>> IntoOutput for Result<T, E> {
    fn into_output(self) -> Result<CallToolResult, ToolError> {
        self.map_err(Into::into)?.into_output()
    }
}

impl IntoOutput for String {
    /// One block of text.
    fn into_output(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::text(self))
    }
}

impl IntoOutput for &str {
    /// One block of text.
    fn into_output(self) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::text(self))
    }
}

macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl IntoOutput for $type {
            /// One block of text.
            fn into_output(self) -> Result<CallToolResult, ToolError> {
                Ok(CallToolResult::text(self.to_string()))
            }
        }
    )*};
}

as_text!(bool, i8, i16, i32, i64, u8, u16, u32, u64, usize, isize, f32, f64);

/// A return value of a handler that reads a resource.
#[diagnostic::on_unimplemented(
    note = "return a text, bytes, `ResourceContents`, `ReadResult`, an option of these, or data in `Json(..)`"
)]
pub trait IntoContents {
    /// Converts it to the result of `resources/read`. `uri` is the URI that is read, and
    /// `mime_type` the media type of the resource or template.
    ///
    /// # Errors
    /// The reason why there is none.
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<ReadResult, ToolError>;
}

impl IntoContents for ReadResult {
    fn into_contents(self, _: &str, _: Option<&str>) -> Result<ReadResult, ToolError> {
        Ok(self)
    }
}

impl IntoContents for ResourceContents {
    /// Contents without a media type get that of the resource.
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<ReadResult, ToolError> {
        alloc::vec![self].into_contents(uri, mime_type)
    }
}

impl IntoContents for Vec<ResourceContents> {
    /// Contents without a media type get that of the resource.
    fn into_contents(self, _: &str, mime_type: Option<&str>) -> Result<ReadResult, ToolError> {
        Ok(ReadResult::new(self.into_iter().map(|contents| typed(contents, mime_type))))
    }
}

impl IntoContents for String {
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<ReadResult, ToolError> {
        ResourceContents::text(uri, self).into_contents(uri, mime_type)
    }
}

impl IntoContents for &str {
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<ReadResult, ToolError> {
        ResourceContents::text(uri, self).into_contents(uri, mime_type)
    }
}

impl IntoContents for &[u8] {
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<ReadResult, ToolError> {
        ResourceContents::bytes(uri, self).into_contents(uri, mime_type)
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<ReadResult, ToolError> {
        self.as_slice().into_contents(uri, mime_type)
    }
}

impl IntoContents for Bytes {
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<ReadResult, ToolError> {
        (&*self).into_contents(uri, mime_type)
    }
}

impl<T: Serialize> IntoContents for Json<T> {
    /// Text of the type `application/json`, if the resource has no other.
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<ReadResult, ToolError> {
        let json = RawJson::encode(&self.0)?;
        let mime_type = mime_type.unwrap_or("application/json");
        ResourceContents::text(uri, json.as_str()).mime(mime_type).into_contents(uri, None)
    }
}

impl<T: IntoContents> IntoContents for Option<T> {
    /// `None`: the resource does not exist.
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<ReadResult, ToolError> {
        self.ok_or(ToolError::NotFound)?.into_contents(uri, mime_type)
    }
}

impl<T: IntoContents, E: Into<ToolError>> IntoContents for Result<T, E> {
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<ReadResult, ToolError> {
        self.map_err(Into::into)?.into_contents(uri, mime_type)
    }
}

fn typed(contents: ResourceContents, mime_type: Option<&str>) -> ResourceContents {
    match (contents.mime_type(), mime_type) {
        (None, Some(name)) => contents.mime(name),
        _ => contents,
    }
}

/// A return value of a handler of a prompt.
#[diagnostic::on_unimplemented(
    note = "return a text, `Content`, `PromptMessage`, several of these, or `GetPromptResult`"
)]
pub trait IntoMessages {
    /// Converts it to the result of `prompts/get`.
    ///
    /// # Errors
    /// The reason why there is none.
    fn into_messages(self) -> Result<GetPromptResult, ToolError>;
}

impl IntoMessages for GetPromptResult {
    fn into_messages(self) -> Result<GetPromptResult, ToolError> {
        Ok(self)
    }
}

impl IntoMessages for Vec<PromptMessage> {
    fn into_messages(self) -> Result<GetPromptResult, ToolError> {
        Ok(GetPromptResult::new(self))
    }
}

impl<const N: usize> IntoMessages for [PromptMessage; N] {
    fn into_messages(self) -> Result<GetPromptResult, ToolError> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoMessages for PromptMessage {
    fn into_messages(self) -> Result<GetPromptResult, ToolError> {
        [self].into_messages()
    }
}

impl IntoMessages for Content {
    /// One message of the user.
    fn into_messages(self) -> Result<GetPromptResult, ToolError> {
        PromptMessage::user(self).into_messages()
    }
}

impl IntoMessages for String {
    /// One message of the user.
    fn into_messages(self) -> Result<GetPromptResult, ToolError> {
        PromptMessage::user(self).into_messages()
    }
}

impl IntoMessages for &str {
    /// One message of the user.
    fn into_messages(self) -> Result<GetPromptResult, ToolError> {
        PromptMessage::user(self).into_messages()
    }
}

impl<T: IntoMessages> IntoMessages for Option<T> {
    /// `None`: the prompt does not exist.
    fn into_messages(self) -> Result<GetPromptResult, ToolError> {
        self.ok_or(ToolError::NotFound)?.into_messages()
    }
}

impl<T: IntoMessages, E: Into<ToolError>> IntoMessages for Result<T, E> {
    fn into_messages(self) -> Result<GetPromptResult, ToolError> {
        self.map_err(Into::into)?.into_messages()
    }
}

/// A return value of a handler that completes an argument.
#[diagnostic::on_unimplemented(note = "return a list of texts, or `Completion`")]
pub trait IntoCompletion {
    /// Converts it to the result of `completion/complete`.
    ///
    /// # Errors
    /// The reason why there is none.
    fn into_completion(self) -> Result<Completion, ToolError>;
}

impl IntoCompletion for Completion {
    fn into_completion(self) -> Result<Completion, ToolError> {
        Ok(self)
    }
}

impl<S: Into<String>> IntoCompletion for Vec<S> {
    fn into_completion(self) -> Result<Completion, ToolError> {
        Ok(Completion::new(self))
    }
}

impl<S: Into<String>, const N: usize> IntoCompletion for [S; N] {
    fn into_completion(self) -> Result<Completion, ToolError> {
        Ok(Completion::new(self))
    }
}

impl<T: IntoCompletion, E: Into<ToolError>> IntoCompletion for Result<T, E> {
    fn into_completion(self) -> Result<Completion, ToolError> {
        self.map_err(Into::into)?.into_completion()
    }
}
