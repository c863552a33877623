//! TLS: the configuration of new connections, from files that are read again when they change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use tokio::net::TcpStream;
use tokio::time::timeout_at;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::error::{End, Failure};
use crate::options::Tls;

type Stamp = Vec<Option<(SystemTime, u64)>>;

/// Makes configurations for new connections.
pub(crate) struct TlsFiles {
    options: Tls,
    last: Mutex<Option<(Stamp, Arc<ClientConfig>)>>,
}

impl TlsFiles {
    pub(crate) fn new(options: Tls) -> TlsFiles {
        TlsFiles { options, last: Mutex::new(None) }
    }

    /// Performs the handshake.
    pub(crate) async fn begin(
        &self,
        stream: TcpStream,
        host: &str,
        until: Instant,
    ) -> Result<TlsStream<TcpStream>, Failure> {
        let config = self.current().map_err(|fault| Failure::new(End::WrongService, format!("TLS: {fault}")))?;
        let name = self.options.name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| Failure::new(End::WrongService, format!("TLS: '{name}' is not a host name")))?;
        match timeout_at(until.into(), TlsConnector::from(config).connect(name, stream)).await {
            Err(_) => Err(Failure::new(End::ConnectTimeout, "in the TLS handshake")),
            Ok(Err(fault)) => Err(handshake_failure(&fault)),
            Ok(Ok(stream)) => Ok(stream),
        }
    }

    /// Returns the configuration of the files. While they are unusable, such as half written, the last usable
    /// ones stay in force.
    fn current(&self) -> Result<Arc<ClientConfig>, String> {
        let stamp = self.stamp();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((read, config)) = last.as_ref() {
            if *read == stamp {
                return Ok(Arc::clone(config));
            }
        }
        match (self.read(), last.as_ref()) {
            (Ok(config), _) => {
                let config = Arc::new(config);
                *last = Some((stamp, Arc::clone(&config)));
                Ok(config)
            }
            (Err(_), Some((_, config))) => Ok(Arc::clone(config)), // the next connection reads them again
            (Err(fault), None) => Err(fault),
        }
    }

    /// Returns the times of change and the sizes of the files.
    fn stamp(&self) -> Stamp {
        let of = |path: &PathBuf| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.modified().ok()?, file.len()))
        };
        let identity = self.options.identity.iter().flat_map(|(cert, key)| [cert, key]);
        self.options.ca.iter().chain(identity).map(of).collect()
    }

    fn read(&self) -> Result<ClientConfig, String> {
        let mut roots = RootCertStore::empty();
        match &self.options.ca {
            Some(file) => {
                for authority in certificates(file)? {
                    roots.add(authority).map_err(|fault| format!("{}: {fault}", file.display()))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|fault| fault.to_string())?
            .with_root_certificates(roots);
        let Some((cert, key)) = &self.options.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let key = PrivateKeyDer::from_pem_file(key).map_err(|fault| format!("{}: {fault}", key.display()))?;
        builder
            .with_client_auth_cert(certificates(cert)?, key)
            .map_err(|fault| format!("{}: {fault}", cert.display()))
    }
}

/// Reads the certificates of a PEM file, at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(|found| found.collect::<Result<Vec<_>, _>>());
    match read {
        Ok(found) if found.is_empty() => Err(format!("{} contains no certificate", file.display())),
        Ok(found) => Ok(found),
        Err(fault) => Err(format!("{}: {fault}", file.display())),
    }
}

fn handshake_failure(fault: &io::Error) -> Failure {
    match fault_of(fault) {
        Some(text) => Failure::new(End::WrongService, text),
        None => Failure::new(End::Unreachable, format!("in the TLS handshake: {fault}")),
    }
}

/// Returns a sentence if TLS is at fault, and not the connection below it.
pub(crate) fn fault_of(fault: &io::Error) -> Option<String> {
    let inner = fault.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(match inner {
        rustls::Error::InvalidMessage(_) => "it does not speak TLS".to_owned(),
        other => format!("TLS: {other}"),
    })
}
