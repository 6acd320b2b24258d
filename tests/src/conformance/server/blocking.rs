//! The server over `mcp-blocking`.

use std::io;
use std::thread::sleep;

use mcp_blocking::{Handler, ServerOptions, serve_http, serve_stdio};

use super::{Options, Over, announce, router, tell};

/// Serves until it is killed.
///
/// # Errors
/// The error of the operating system.
pub fn serve(options: Options) -> io::Result<()> {
    let router = router(|steps, end| {
        Handler::sync(move |cx| {
            steps.iter().filter_map(|step| step.take(cx)).for_each(sleep);
            cx.outcome(end(cx))
        })
    });
    let callbacks = ServerOptions::new();
    let callbacks = if options.verbose { callbacks.on_message(tell) } else { callbacks };
    match options.over {
        Over::Stdio => serve_stdio((router, callbacks)),
        Over::Http(address) => {
            let server = serve_http((router, callbacks), address)?;
            announce(server.local_addr().expect("an address"))?;
            server.wait();
            Ok(())
        }
    }
}
