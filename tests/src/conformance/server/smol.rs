//! The server over `mcp-smol`.

use std::io;
use std::sync::Arc;

use mcp_smol::{Handler, Service, serve_http, serve_stdio};
use smol::Timer;

use super::{Options, Over, announce, router, tell};

/// Serves until it is killed.
///
/// # Errors
/// The error of the operating system.
pub fn serve(options: Options) -> io::Result<()> {
    let router = router(|steps, end| {
        let steps = Arc::new(steps);
        Handler::new(move |cx| {
            let steps = Arc::clone(&steps);
            async move {
                for pause in steps.iter().filter_map(|step| step.take(&cx)) {
                    Timer::after(pause).await;
                }
                cx.outcome(end(&cx))
            }
        })
    });
    let service = Service::new(router);
    let service = if options.verbose { service.on_message(tell) } else { service };
    smol::block_on(async {
        match options.over {
            Over::Stdio => serve_stdio(service).await,
            Over::Http(address) => {
                let server = serve_http(service, address).await?;
                announce(server.local_addr())?;
                server.wait().await;
                Ok(())
            }
        }
    })
}
