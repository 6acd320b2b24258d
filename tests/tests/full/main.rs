#![forbid(unsafe_code)]
//! What only the full stage runs, with feature `full`: small forms of its long steps with debug
//! assertions, the examples, and tests that need a runtime or an HTTP stack of somebody else.

mod axum_routes;
#[cfg(target_os = "linux")]
mod growth;
mod host_example;
mod hostile;
mod hostile_driver;
mod hostile_server;
mod hostile_web;
mod hosts;
mod kitchen;
#[cfg(target_os = "linux")]
mod load;
mod readme;
mod samples;
mod seam_b_library;
mod seam_b_server_library;
mod secured;
mod tokio_port;
mod validate;
