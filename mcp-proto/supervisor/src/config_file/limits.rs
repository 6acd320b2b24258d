//! The limits of a configuration file.

/// Maximum length of a text, in bytes.
pub(super) const MAX_LEN: usize = 1 << 20;

/// Maximum number of servers.
pub(super) const MAX_SERVERS: usize = 1000;
