//! The server over `mcp-blocking`.

use std::io;
use std::thread::sleep;

use mcp_blocking::{Handler, Serving, serve_http_with, serve_stdio_with};

use super::{Options, Over, announce, router, tell};

/// Serves until it is killed.
///
/// # Errors
/// The error of the operating system.
pub fn serve(options: Options) -> io::Result<()> {
    let router = router(|steps, end| {
        Handler::new(move |cx| {
            steps.iter().filter_map(|step| step.take(&cx)).for_each(sleep);
            cx.outcome(end(&cx))
        })
    });
    let serving = Serving::new();
    let serving = if options.verbose { serving.on_message(tell) } else { serving };
    match options.over {
        Over::Stdio => serve_stdio_with(router, serving),
        Over::Http(address) => {
            let server = serve_http_with(router, serving, address)?;
            announce(server.local_addr())?;
            server.wait();
            Ok(())
        }
    }
}
