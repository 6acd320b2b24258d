//! A run over TLS. Every program finds the certificates in its environment: the trusted root where
//! its users set one, and our own programs and servers in a folder.

use crate::certificates::{Authority, Leaf};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The variable with the folder of `cert.pem`, `key.pem` and `root.pem`.
const FOLDER: &str = "INTEROP_TLS";

/// Returns whether this run is over TLS.
pub fn is_on() -> bool {
    env::var_os(FOLDER).is_some()
}

/// Writes certificates to a folder. Returns the environment of a run with them.
///
/// # Errors
/// The error of the operating system.
pub fn environment(folder: &Path) -> Result<Vec<(&'static str, OsString)>, String> {
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| Authority::new("the interoperability tests").write(folder, &Leaf::default()));
    written.map_err(|why| format!("{}: {why}", folder.display()))?;
    let root: OsString = folder.join("root.pem").into();
    Ok(vec![(FOLDER, folder.into()), ("SSL_CERT_FILE", root.clone()), ("NODE_EXTRA_CA_CERTS", root)])
}

/// Returns the configuration of our server. `None` without TLS.
pub fn server() -> Option<Arc<ServerConfig>> {
    let folder = PathBuf::from(env::var_os(FOLDER)?);
    let chain = CertificateDer::pem_file_iter(folder.join("cert.pem")).expect("a file");
    let chain = chain.collect::<Result<_, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).expect("a key");
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    Some(Arc::new(builder.with_single_cert(chain, key).expect("a certificate")))
}
