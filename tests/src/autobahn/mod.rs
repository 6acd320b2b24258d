//! The cases of Autobahn|Testsuite against our codec of WebSocket, as a server and as a client.

pub mod echo;
mod run;
pub mod setup;
pub mod table;
pub mod text_socket;

pub use run::{as_client, as_server};

/// What the suite runs: the families of its numbers. The others (12 and 13) need the compression
/// extension, which our codec never offers.
pub const FAMILIES: [&str; 9] = ["1", "2", "3", "4", "5", "6", "7", "9", "10"];

/// The families of small messages, whose bytes our side also reads one by one.
pub const SMALL: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "10"];

/// Maximum length of a message in bytes: the largest of the suite.
pub const MAX_MESSAGE: usize = 16 << 20;
