//! Certificates for servers on this machine, from an authority that only the tests trust.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519,
    SerialNumber, SignatureAlgorithm, date_time_ymd,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A certificate authority.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    algorithm: &'static SignatureAlgorithm,
}

/// What a certificate says.
pub struct Leaf<'a> {
    /// The names and addresses of the server.
    pub names: &'a [&'a str],
    /// The first year and the year after the last one.
    pub years: (i32, i32),
}

impl Default for Leaf<'_> {
    /// A certificate for this machine, which is valid.
    fn default() -> Self {
        Self { names: &["localhost", "127.0.0.1", "::1"], years: (2020, 4000) }
    }
}

impl Authority {
    /// Returns a new authority with this name.
    pub fn new(name: &str) -> Self {
        Self::with(name, &PKCS_ECDSA_P256_SHA256)
    }

    /// Returns a new authority whose certificates and handshakes always have the same lengths:
    /// those of an ECDSA signature vary.
    pub fn of_fixed_lengths(name: &str) -> Self {
        Self::with(name, &PKCS_ED25519)
    }

    fn with(name: &str, algorithm: &'static SignatureAlgorithm) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate_for(algorithm).expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("a certificate"), algorithm }
    }

    /// Returns the configuration of a client that trusts only this authority.
    pub fn client(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("a certificate");
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    }

    /// Returns the configuration of a server with this certificate.
    pub fn server(&self, leaf: &Leaf<'_>) -> Arc<ServerConfig> {
        let (certificate, key) = self.issue(leaf);
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Arc::new(builder.with_single_cert(vec![certificate.der().clone()], key).expect("a certificate"))
    }

    /// Writes a certificate as `cert.pem`, its key as `key.pem`, and the authority as `root.pem`.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn write(&self, folder: &Path, leaf: &Leaf<'_>) -> io::Result<()> {
        let (certificate, key) = self.issue(leaf);
        std::fs::write(folder.join("cert.pem"), certificate.pem())?;
        std::fs::write(folder.join("key.pem"), key.serialize_pem())?;
        std::fs::write(folder.join("root.pem"), self.issuer.pem())
    }

    fn issue(&self, leaf: &Leaf<'_>) -> (rcgen::Certificate, KeyPair) {
        let names: Vec<_> = leaf.names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.not_before = date_time_ymd(leaf.years.0, 1, 1);
        params.not_after = date_time_ymd(leaf.years.1, 1, 1);
        // A drawn one may be a byte shorter.
        params.serial_number = Some(SerialNumber::from(0x1234_5678));
        let key = KeyPair::generate_for(self.algorithm).expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate, key)
    }
}
