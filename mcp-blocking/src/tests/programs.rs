//! The programs of the model.

use super::os::ends;
use super::router;
use super::world::{Held, World};
use crate::{Router, Stream, tool};
use mcp_proto::exchange::ExitStatus;
use std::io::{BufRead, BufReader, Write};

/// The response of a legacy server to `initialize`, its first request.
const HELLO: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}
"#;

/// Serves, and exits at the end of its input.
pub(super) fn server() {
    World::program("server", |held| serve(router(), held));
}

/// Serves. Its tool `exit` exits without a response.
pub(super) fn exiting() {
    World::program("exiting", |held| {
        let process = std::sync::Arc::clone(&held.process);
        let router = router().tool(tool("exit"), move |_cx, ()| {
            process.cut(ExitStatus::exited(3));
            Ok("too late")
        });
        serve(router, held)
    });
}

/// Sends its greeting, reads nothing more, and exits when it is terminated, or only when it is
/// killed.
pub(super) fn deaf(ignores_term: bool) {
    World::program("deaf", move |mut held| {
        let mut input = BufReader::with_capacity(1, &mut held.input);
        for answer in [HELLO, b""] {
            let mut line = Vec::new();
            // A disconnect of the client does not matter.
            drop(input.read_until(b'\n', &mut line));
            drop(held.output.write_all(answer));
        }
        if ignores_term {
            drop(held.process.wait());
        } else {
            held.process.wait_terminated();
        }
        0
    });
}

/// Writes to standard error, partly after its other streams have ended, and exits at once.
pub(super) fn failing(said: &'static [u8]) {
    World::program("failing", move |held| {
        let Held { input, output, mut errors, .. } = held;
        let (first, last) = said.split_at(said.len() / 2);
        errors.write_all(first).expect("it is read");
        drop((input, output));
        errors.write_all(last).expect("it is read");
        4
    });
}

/// Exits at once, and leaves its output to another process that holds it until `time` has passed.
pub(super) fn leaving(until: impl Fn() + Send + Sync + Clone + 'static) {
    World::program("leaving", move |held| {
        let Held { output, errors, process, .. } = held;
        process.share_outputs();
        let until = until.clone();
        let other = crate::sync::spawn("grandchild", move || {
            until();
            drop((output, errors));
        });
        other.expect("a thread");
        5
    });
}

fn serve(router: Router, held: Held) -> i32 {
    let Held { input, output, errors: _errors, process: _process } = held;
    crate::server::serve_stream(router, Stream::of(ends(input, output))).map_or(1, |()| 0)
}
