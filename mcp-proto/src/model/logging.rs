//! Log messages (`notifications/message`): their levels. The messages themselves are not typed yet.

use crate::rpc::RawJson;

/// The severity of a log message, lowest first (`LoggingLevel`; RFC 5424 section 6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const NAMES: [(&str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    /// Decodes a level. `None` for anything that is not one of the eight names.
    pub(crate) fn read(level: &RawJson) -> Option<Self> {
        Self::NAMES.iter().find(|(name, _)| *level == (*name).into()).map(|(_, level)| *level)
    }
}
