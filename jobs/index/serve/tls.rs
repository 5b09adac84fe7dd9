//! Certificates of the server.

use std::sync::Arc;

use anyhow::{Context, Result};
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::HEADER_TIME;
use super::args::ServeArgs;

impl ServeArgs {
    /// Reads the certificates; `None` without any.
    ///
    /// # Errors
    /// When a file is missing or has no certificate, and when the key does not fit.
    pub fn tls(&self) -> Result<Option<RustlsAcceptor<NoDelayAcceptor>>> {
        let (Some(chain), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let key_of_server =
            PrivateKeyDer::from_pem_file(key).with_context(|| format!("could not read the key \"{key}\""))?;
        let provider = Arc::new(ring::default_provider());
        let versions = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let clients = match &self.client_ca {
            None => versions.with_no_client_auth(),
            Some(authorities) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(authorities)? {
                    roots
                        .add(authority)
                        .with_context(|| format!("\"{authorities}\" has a bad certificate"))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
                versions.with_client_cert_verifier(verifier)
            }
        };
        let mut config = clients
            .with_single_cert(certificates(chain)?, key_of_server)
            .with_context(|| format!("the certificate \"{chain}\" and the key \"{key}\" do not fit"))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = RustlsAcceptor::new(RustlsConfig::from_config(Arc::new(config)));
        Ok(Some(acceptor.handshake_timeout(HEADER_TIME).acceptor(NoDelayAcceptor::new())))
    }
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> = read.with_context(|| format!("could not read the certificates \"{path}\""))?;
    anyhow::ensure!(!certificates.is_empty(), "\"{path}\" has no certificate");
    Ok(certificates)
}
