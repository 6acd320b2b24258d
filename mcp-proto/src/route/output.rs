//! The return values of a handler.

use crate::input::InputRequest;
use crate::model::content::Content;
use crate::model::tools::CallToolResult;
use crate::peer_text::{Visible, write_list};
use crate::rpc::{DecodeError, EncodeError, ErrorObject, RawJson};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
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
    /// It failed. The text is for the model.
    Failed(String),
    /// The request is invalid.
    Protocol(ErrorObject),
}

impl ToolError {
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
