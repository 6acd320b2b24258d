//! Connecting a client.

use crate::clock::delay;
use crate::driver::Driver;
use crate::spawned::SharedDriver;
use crate::stream::{Given, GivenKind};
use crate::{Service, serve};
use mcp_driver::{Client, ClientOptions, Closer, ConnectError, IntoTarget};
use smol::future::{Boxed, Future};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Capacity of the channel to a server in this process, in bytes per direction.
const PIPE: usize = 64 << 10;

/// Connects to a server with the default configuration, and waits for the end of negotiation. The
/// [`Driver`] runs on smol's global executor. Dropping the future before it completes ends the
/// attempt and leaves nothing behind.
///
/// Dropping the last clone of the client waits for its driver: this blocks until the program has
/// exited, usually some milliseconds, at most until it was killed. [`Client::close`] does not
/// block.
///
/// # Errors
/// [`ConnectError`], with the step that failed and the exit status of a program. If a time
/// limit was reached, the driver may still be ending a program: the [`Closer`] of [`connecting`]
/// waits for it.
pub async fn connect(target: impl IntoTarget<Given>) -> Result<Client, ConnectError> {
    connect_with(target, ClientOptions::new()).await
}

/// Like [`connect`], with options.
///
/// ```
/// use mcp_smol::{ClientOptions, Router, connect_with, tool, tools};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # smol::block_on(async {
/// let server = Router::new("clock", "1.0").tool(tool("tick"), |_cx, ()| Ok("tock"));
/// let options = ClientOptions::new().on_event(|event| eprintln!("{event:?}"));
/// let client = connect_with(server, options).await?;
/// assert_eq!(client.call(tools::call("tick")).await?.first_text(), Some("tock"));
/// client.close().await;
/// # Ok(())
/// # })
/// # }
/// ```
///
/// # Errors
/// As [`connect`].
pub async fn connect_with(target: impl IntoTarget<Given>, options: ClientOptions) -> Result<Client, ConnectError> {
    connecting(target, options)?.await
}

/// Like [`connect_with`], in two steps. The returned value has started nothing yet, and another
/// task or a signal handler can close it before and while it connects.
/// [`ClientConfig::connect_timeout`](mcp_proto::ClientConfig::connect_timeout) counts from this
/// call.
///
/// ```
/// use mcp_smol::{ClientOptions, Router, connecting};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # smol::block_on(async {
/// let connecting = connecting(Router::new("calc", "1.0"), ClientOptions::new())?;
/// // For a handler of Ctrl-C: `move || smol::block_on(closer.exit(130))`.
/// let closer = connecting.closer();
/// let client = connecting.await?;
/// closer.close().await;
/// # drop(client);
/// # Ok(())
/// # })
/// # }
/// ```
///
/// # Errors
/// [`ConnectError`] if the target is invalid, or the system lacks a resource.
pub fn connecting(target: impl IntoTarget<Given>, options: ClientOptions) -> Result<Connecting, ConnectError> {
    let (client, driver) = connect_driven(target, options)?;
    let closer = client.closer();
    let connected = Box::pin(async move {
        let driver = SharedDriver::new(driver);
        let (at_drop, limit) = (driver.clone(), client.end_time());
        client.set_on_drop(move || at_drop.finish(limit));
        crate::sync::spawn(driver);
        if let Err(why) = client.ready().await {
            // What has not ended by then is left to the driver.
            client.unset_on_drop();
            return Err(why);
        }
        Ok(client)
    });
    Ok(Connecting { closer, connected })
}

/// Creates a client and its [`Driver`]. Nothing happens before the driver is polled, on any
/// executor. Calls may be made at once. [`Client::ready`] waits for the end of negotiation.
///
/// # Errors
/// [`ConnectError`] if the target is invalid, or the system lacks a resource.
pub fn connect_driven(
    target: impl IntoTarget<Given>,
    options: ClientOptions,
) -> Result<(Client, Driver), ConnectError> {
    let (config, given) = target.into_target()?.into_parts();
    let (client, driving) = Client::begin(config, options, delay)?;
    let (stream, guest) = match given.map(|given| given.0) {
        None => (None, None),
        Some(GivenKind::Stream(stream)) => (Some(stream), None),
        Some(GivenKind::Service(service)) => {
            let (stream, serving) = serve_here(*service);
            (Some(stream), Some(serving))
        }
    };
    let open_timeout = client.open_timeout();
    Ok((client, Driver::new(driving, open_timeout, stream, guest)))
}

/// Serves in this process. The client notices the end of the server on its connection.
fn serve_here(service: Service) -> (crate::Stream, Boxed<()>) {
    let ((reader, their_writer), (their_reader, writer)) = (piper::pipe(PIPE), piper::pipe(PIPE));
    let serving = serve(service, their_reader, their_writer);
    ((reader, writer).into(), Box::pin(async { drop(serving.await) }))
}

/// A client that has not connected yet, returned by [`connecting`]: a future of the [`Client`]. It
/// starts nothing before it is polled. Dropping it ends the attempt and leaves nothing behind.
#[must_use = "nothing is started before it is awaited"]
pub struct Connecting {
    closer: Closer,
    connected: Boxed<Result<Client, ConnectError>>,
}

impl Connecting {
    /// Returns a handle that closes this attempt, and after it the connected client.
    pub fn closer(&self) -> Closer {
        self.closer.clone()
    }
}

impl Future for Connecting {
    type Output = Result<Client, ConnectError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.connected.as_mut().poll(cx)
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use crate::{Object, Router, connect};
    use smol::future::poll_once;

    // covers: B-133
    #[test]
    fn notification_stays_pending_while_the_process_exits() {
        smol::block_on(async {
            let client = connect(Router::new("server", "1")).await.expect("connected");
            let notify = || client.notify("acme/note", Object::new()).expect("accepted");
            let earlier = notify();
            notify().await.expect("delivered, and the earlier one before it");
            client.closer().begin_exit(130);
            assert!(poll_once(earlier).await.is_none());
            // Dropping the client would end this process.
            std::mem::forget(client);
        });
    }
}
