//! The server over `mcp-smol`.

use std::io;
use std::sync::Arc;

use mcp_smol::{Handler, ServerOptions, serve_http, serve_stdio};
use smol::Timer;

use super::{Options, Over, announce, router, tell};

/// Serves until it is killed.
///
/// # Errors
/// The error of the operating system.
pub fn serve(options: Options) -> io::Result<()> {
    let router = router(|steps, end| {
        let steps = Arc::new(steps);
        Handler::future(move |cx| {
            let steps = Arc::clone(&steps);
            async move {
                for pause in steps.iter().filter_map(|step| step.take(&cx)) {
                    Timer::after(pause).await;
                }
                cx.outcome(end(&cx))
            }
        })
    });
    let callbacks = ServerOptions::new();
    let callbacks = if options.verbose { callbacks.on_message(tell) } else { callbacks };
    smol::block_on(async {
        match options.over {
            Over::Stdio => serve_stdio((router, callbacks)).await,
            Over::Http(address) => {
                let server = serve_http((router, callbacks), address).await?;
                announce(server.local_addr().expect("an address"))?;
                server.wait().await;
                Ok(())
            }
        }
    })
}
