//! Tests of this package's library.

mod api;
mod autobahn;
mod conformance;
mod conformance_programs;
mod cost;
mod fuzz;
mod hostile;
mod interop;
mod items;
mod modules;
mod peer;
mod planted;
mod planted_choose;
mod prose;
mod shim;
mod sim_digest;
mod sources;
mod survey;
mod text_socket;
mod trace;
