//! What `cost https` of the workspace measures: a server with one tool, `echo`, over HTTPS, and a
//! client that calls it, one call after another. They have the words, the variables and the printed
//! lines of the peers there (`tests/src/peer`), as far as these are needed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::env;
use std::error::Error;
use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ClientLifecycleMode, ClientServiceExt, ErrorData, RoleServer, ServerHandler};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::client::{params, text};
use crate::server::wrong;

/// The unit of processor time in `/proc`.
const TICK: Duration = Duration::from_millis(10);

/// A server with one tool, which returns its argument.
#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let tool = Tool::new("echo", "Echo", schema.as_object().cloned().unwrap_or_default());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let said = request.arguments.as_ref().and_then(|arguments| arguments.get("text")?.as_str());
        let said = said.filter(|_| request.name == "echo").ok_or_else(|| wrong("the call"))?;
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }
}

/// Serves a free port of loopback for ever, with the certificate and the key of the environment.
pub async fn serve() -> Result<(), Box<dyn Error>> {
    let chain = CertificateDer::pem_file_iter(env::var("TLS_CERT")?)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(env::var("TLS_KEY")?)?;
    let tls = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let tls = tls.with_protocol_versions(&[&TLS13])?.with_no_client_auth().with_single_cert(chain, key)?;
    let tls = TlsAcceptor::from(Arc::new(tls));
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let service = StreamableHttpService::new(|| Ok(Echo), Arc::new(NeverSessionManager::default()), config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("LISTENING {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (tls, service) = (tls.clone(), service.clone());
        let answer = service_fn(move |request| {
            let service = service.clone();
            async move { Ok::<_, Infallible>(service.handle(request).await) }
        });
        // A connection that breaks is the client's affair.
        tokio::spawn(async move {
            if let Ok(stream) = tls.accept(stream).await {
                drop(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await);
            }
        });
    }
}

/// Calls a server, which has a certificate of the root of the environment, and prints the report.
/// The client of the SDK keeps no connection, so every call would begin with a handshake; this one
/// keeps them, as reqwest does by itself.
pub async fn drive(options: &[String]) -> Result<(), Box<dyn Error>> {
    let options: BTreeMap<&str, &str> = options.chunks_exact(2).map(|pair| (&*pair[0], &*pair[1])).collect();
    let option = |name: &str| options.get(name).copied().ok_or_else(|| format!("{name} is missing"));
    let (url, server) = (option("--url")?, option("--server-pid")?);
    let length = Duration::try_from_secs_f64(option("--secs")?.parse()?)?;
    let payload: String = "the same words again ".chars().cycle().take(option("--payload")?.parse()?).collect();

    default_provider().install_default().map_err(|_| "there is a provider")?;
    let root = reqwest::Certificate::from_pem(&fs::read(env::var("TLS_ROOT")?)?)?;
    let client = reqwest::Client::builder().tls_certs_only([root]).no_proxy().build()?;
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let service = ().serve_with_lifecycle(transport, ClientLifecycleMode::Discover { preferred_versions }).await?;

    // As the clock of the peers: a warm-up, then what counts.
    let warm = Instant::now() + (length / 5).clamp(Duration::from_millis(50), Duration::from_millis(500));
    let mut began = None;
    let mut latencies = Vec::with_capacity(1 << 20);
    loop {
        let call = Instant::now();
        let result = service.call_tool(params("echo", json!({ "text": payload }))).await?;
        if text(&result) != payload {
            return Err(format!("this is no echo: {result:?}").into());
        }
        let now = Instant::now();
        match began {
            None if now >= warm => began = Some((now, used("self")?, used(server)?)),
            None => {}
            Some((at, own, of_server)) => {
                latencies.push(now - call);
                if now - at >= length {
                    let (own, of_server) = (used("self")? - own, used(server)? - of_server);
                    report(latencies, at.elapsed(), own, of_server);
                    break;
                }
            }
        }
    }
    service.cancel().await?;
    Ok(())
}

fn report(mut latencies: Vec<Duration>, length: Duration, own: Duration, server: Duration) {
    latencies.sort_unstable();
    let calls = latencies.len();
    let (p50, p99) = (micros(latencies[calls / 2]), micros(latencies[calls * 99 / 100]));
    let (client, server) = (micros(own) / calls as f64, micros(server) / calls as f64);
    print!("REPORT ops={calls} secs={} p50_us={p50} p99_us={p99} ", length.as_secs_f64());
    println!("client_cpu_us={client} server_cpu_us={server}");
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The processor time of all threads of a process so far, of the user and of the system.
fn used(process: &str) -> Result<Duration, Box<dyn Error>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name before may contain anything.
    let fields: Vec<&str> = text.rsplit_once(')').ok_or("no name")?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok()).unwrap_or_default();
    Ok(TICK * (ticks(11) + ticks(12)))
}
