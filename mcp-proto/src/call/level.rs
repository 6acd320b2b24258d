//! The levels of log messages.

use crate::rpc::RawJson;
use core::fmt;

/// The severity of a log message, lowest first (`LoggingLevel`; RFC 5424 section 6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum LogLevel {
    /// Details for developers, such as the entry of a function.
    Debug,
    /// General information, such as the progress of an operation.
    Info,
    /// Normal but significant events, such as a changed configuration.
    Notice,
    /// Warnings, such as the use of a deprecated feature.
    Warning,
    /// Errors, such as a failed operation.
    Error,
    /// Critical conditions, such as a failed component.
    Critical,
    /// Conditions that need action at once, such as damaged data.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    /// The levels, lowest first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the name on the wire, such as `warning`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Returns the level of this name. `None` if it is not one of the eight.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }

    /// Decodes a level. `None` for anything that is not one of the eight names.
    pub(crate) fn read(level: &RawJson) -> Option<Self> {
        Self::ALL.into_iter().find(|known| *level == known.as_str().into())
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
