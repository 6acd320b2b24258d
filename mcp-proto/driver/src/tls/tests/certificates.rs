//! Certificates with one fault each.

use super::super::library::provider;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, PKCS_ED25519,
    SignatureAlgorithm, date_time_ymd,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

/// A chain and its key.
pub(super) type Issued = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A certificate authority.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// What a certificate says.
pub(super) struct Leaf {
    pub(super) names: Vec<&'static str>,
    pub(super) from: i32,
    pub(super) until: i32,
    pub(super) usage: ExtendedKeyUsagePurpose,
    /// The signatures of Ed25519 have one length. Graviola has them with TLS 1.3 only.
    pub(super) algorithm: &'static SignatureAlgorithm,
}

impl Leaf {
    pub(super) fn good() -> Self {
        let names = vec!["localhost", "127.0.0.1", "*.example.test"];
        let (usage, algorithm) = (ExtendedKeyUsagePurpose::ServerAuth, &PKCS_ED25519);
        Self { names, from: 2020, until: 4000, usage, algorithm }
    }
}

impl Authority {
    pub(super) fn new() -> Self {
        Self::named("an authority")
    }

    pub(super) fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, key(&PKCS_ED25519)).expect("a certificate");
        Self { issuer }
    }

    /// Returns the configuration of a client that trusts this authority.
    pub(super) fn client(&self) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(cryptography());
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        Arc::new(builder.with_root_certificates(self.roots()).with_no_client_auth())
    }

    /// The same with a certificate of its own.
    pub(super) fn client_with(&self, (chain, key): Issued) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(cryptography());
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let config = builder.with_root_certificates(self.roots()).with_client_auth_cert(chain, key);
        Arc::new(config.expect("a certificate"))
    }

    /// Returns the configuration of a server with this certificate.
    pub(super) fn server(&self, leaf: &Leaf) -> Arc<ServerConfig> {
        self.server_of(leaf, rustls::ALL_VERSIONS)
    }

    /// The same with these versions only.
    pub(super) fn server_of(&self, leaf: &Leaf, versions: &[&'static SupportedProtocolVersion]) -> Arc<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(cryptography());
        let builder = builder.with_protocol_versions(versions).expect("versions");
        let (chain, key) = self.issue(leaf);
        Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).expect("a certificate"))
    }

    /// Returns the configuration of a server that requires a certificate of this authority.
    pub(super) fn server_that_asks(&self, leaf: &Leaf) -> Arc<ServerConfig> {
        let provider = cryptography();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots()), Arc::clone(&provider));
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("versions").with_client_cert_verifier(verifier.build().expect("roots"));
        let (chain, key) = self.issue(leaf);
        Arc::new(builder.with_single_cert(chain, key).expect("a certificate"))
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("a certificate");
        roots
    }

    pub(super) fn issue(&self, leaf: &Leaf) -> Issued {
        let names: Vec<_> = leaf.names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).expect("names");
        // Clients ignore it (RFC 9525 section 2).
        params.distinguished_name.push(rcgen::DnType::CommonName, "common.test");
        params.not_before = date_time_ymd(leaf.from, 1, 1);
        params.not_after = date_time_ymd(leaf.until, 1, 1);
        params.extended_key_usages = vec![leaf.usage.clone()];
        let key = key(leaf.algorithm);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
    }
}

/// Returns the cryptography of this build: ring, or Graviola.
fn cryptography() -> Arc<CryptoProvider> {
    provider().expect("a feature has it")
}

fn key(algorithm: &'static SignatureAlgorithm) -> KeyPair {
    KeyPair::generate_for(algorithm).expect("a key")
}
