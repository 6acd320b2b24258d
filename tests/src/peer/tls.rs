//! The certificates of a peer, from its environment.

use super::Failure;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::env;
use std::sync::Arc;

/// Returns the configuration of a server. `None` without TLS.
pub(super) fn server() -> Result<Option<Arc<ServerConfig>>, Failure> {
    let (Some(chain), Some(key)) = (env::var_os("TLS_CERT"), env::var_os("TLS_KEY")) else { return Ok(None) };
    let chain = CertificateDer::pem_file_iter(chain)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_protocol_versions(&[&TLS13])?.with_no_client_auth();
    Ok(Some(Arc::new(builder.with_single_cert(chain, key)?)))
}

/// Returns the configuration of a client that trusts one root. `None` for that of the platform.
pub(super) fn client() -> Result<Option<Arc<ClientConfig>>, Failure> {
    let Some(root) = env::var_os("TLS_ROOT") else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(root)?)?;
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_protocol_versions(&[&TLS13])?;
    Ok(Some(Arc::new(builder.with_root_certificates(roots).with_no_client_auth())))
}
