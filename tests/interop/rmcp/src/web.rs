//! The server over HTTP. It prints each response as a line `METHOD STATUS`, with ` after ID` for a
//! resumed stream.

use std::convert::Infallible;
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::server::Interop;

/// How long a client is asked to wait before it resumes a stream.
const RETRY: Duration = Duration::from_millis(100);

/// Serves a port of loopback for ever.
pub async fn run(port: &str, flags: &[String]) -> Result<(), Box<dyn Error>> {
    let has = |flag: &str| flags.iter().any(|word| word == flag);
    let config = StreamableHttpServerConfig::default()
        .with_sse_retry(Some(RETRY))
        .with_legacy_session_mode(!has("--stateless"))
        .with_json_response(has("--json"));
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.sse_retry = Some(RETRY);
    let interop = Interop::default();
    let service = StreamableHttpService::new(move || Ok(interop.clone()), Arc::new(sessions), config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse()?)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let service = service.clone();
            async move {
                let mut line = request.method().to_string();
                let after = request.headers().get("last-event-id").and_then(|id| id.to_str().ok());
                let after = after.map(|id| format!(" after {id}")).unwrap_or_default();
                let response = service.handle(request).await;
                line.push_str(&format!(" {}{after}", response.status().as_u16()));
                println!("{line}");
                Ok::<_, Infallible>(response)
            }
        });
        // A connection that breaks is the client's affair.
        tokio::spawn(async move { drop(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await) });
    }
}
