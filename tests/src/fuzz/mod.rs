//! The checks of the fuzz targets. Each module has one `check`, which panics if its invariant is
//! violated. The targets in `fuzz/` pass it the inputs of a fuzzer, and `tests/corpus.rs` passes it
//! the kept corpus.

pub mod challenge;
pub mod client;
pub mod config_file;
pub mod envelope;
pub mod guarded;
pub mod http;
pub mod http_client;
pub mod http_server;
pub mod jws;
pub mod line;
pub mod login;
pub mod login_record;
pub mod metadata;
pub mod proof;
pub mod redact;
pub mod redirect;
pub mod replay;
pub mod script;
pub mod server;
pub mod skill;
pub mod sse;
pub mod talk;
pub mod token_answer;
pub mod web_socket;
pub mod web_socket_model;

/// Checks one input. Panics if an invariant is violated.
pub type Check = fn(&[u8]);

/// The targets by the names of their folders in `fuzz/corpus`.
pub const TARGETS: [(&str, Check); 20] = [
    ("challenge", challenge::check),
    ("client", client::check),
    ("config_file", config_file::check),
    ("envelope", envelope::check),
    ("http", http::check),
    ("http_client", http_client::check),
    ("http_server", http_server::check),
    ("jws", jws::check),
    ("line", line::check),
    ("login_record", login_record::check),
    ("metadata", metadata::check),
    ("proof", proof::check),
    ("redact", redact::check),
    ("redirect", redirect::check),
    ("replay", replay::check),
    ("server", server::check),
    ("skill", skill::check),
    ("sse", sse::check),
    ("token_answer", token_answer::check),
    ("web_socket", web_socket::check),
];
