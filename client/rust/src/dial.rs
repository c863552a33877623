//! Opens connections: resolves names, races addresses, and begins TLS.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::net::{lookup_host, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{timeout, timeout_at};

use crate::connection::{Connection, Stream};
use crate::error::{End, Failure};
#[cfg(unix)]
use crate::options::path_of_socket;
use crate::options::{split_address, Options};

/// The longest time for which one address of several is tried alone.
const ALONE_MOST: Duration = Duration::from_millis(250);

/// Opens connections to servers.
pub(crate) struct Dialer {
    turn: AtomicUsize,
    #[cfg(feature = "tls")]
    tls: crate::tls::TlsFiles,
}

impl Dialer {
    pub(crate) fn new(_options: &Options) -> Dialer {
        Dialer {
            turn: AtomicUsize::new(0),
            #[cfg(feature = "tls")]
            tls: crate::tls::TlsFiles::new(_options.tls.clone().unwrap_or_default()),
        }
    }

    /// Connects to the address, and uses TLS if `secure`.
    pub(crate) async fn connect(&self, address: &str, secure: bool, until: Instant) -> Result<Connection, Failure> {
        #[cfg(unix)]
        if let Some(path) = path_of_socket(address) {
            let stream = in_time(until, tokio::net::UnixStream::connect(path)).await?;
            return Ok(Connection::new(Stream::Unix(stream)));
        }
        let (host, port) =
            split_address(address).ok_or_else(|| Failure::new(End::Unreachable, "its address is invalid"))?;
        let stream = in_time(until, self.connect_tcp(host, port, until)).await?;
        let _ = stream.set_nodelay(true);
        if !secure {
            return Ok(Connection::new(Stream::Plain(stream)));
        }
        #[cfg(feature = "tls")]
        return Ok(Connection::new(Stream::Tls(Box::new(self.tls.begin(stream, host, until).await?))));
        #[cfg(not(feature = "tls"))]
        return Err(Failure::new(End::WrongService, "it requires TLS; enable the feature `tls` of firn-client"));
    }

    /// Tries the addresses of the host in turn. The next one is tried as well if the current one fails, or does
    /// not respond within its share of the time. The first connection wins.
    async fn connect_tcp(&self, host: &str, port: u16, until: Instant) -> io::Result<TcpStream> {
        let mut addresses: Vec<SocketAddr> = lookup_host((host, port)).await?.collect();
        if addresses.len() < 2 {
            let address = addresses.pop().ok_or_else(|| io::Error::other("the name has no address"))?;
            return TcpStream::connect(address).await;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % addresses.len();
        addresses.rotate_left(turn);
        let share = until.saturating_duration_since(Instant::now()) / addresses.len() as u32;
        let (mut attempts, mut waiting) = (JoinSet::new(), addresses.into_iter());
        let mut failure = io::Error::other("no address was tried");
        loop {
            let next = waiting.next();
            let more = next.is_some();
            if let Some(address) = next {
                attempts.spawn(TcpStream::connect(address));
            }
            let patience = if more { share.min(ALONE_MOST) } else { Duration::from_secs(3600) };
            match timeout(patience, attempts.join_next()).await {
                Err(_) => {} // the next address is tried as well
                Ok(None) => return Err(failure),
                Ok(Some(Ok(Ok(stream)))) => return Ok(stream),
                Ok(Some(Ok(Err(fault)))) => failure = fault,
                Ok(Some(Err(fault))) => failure = io::Error::other(fault),
            }
        }
    }
}

async fn in_time<T>(until: Instant, connecting: impl Future<Output = io::Result<T>>) -> Result<T, Failure> {
    match timeout_at(until.into(), connecting).await {
        Err(_) => Err(Failure::new(End::ConnectTimeout, "")),
        Ok(outcome) => outcome.map_err(|fault| connect_failure(&fault)),
    }
}

fn connect_failure(fault: &io::Error) -> Failure {
    if is_own_fault(fault) {
        return Failure::new(End::NoRoom, "this process has no file descriptor or memory left");
    }
    if fault.kind() == io::ErrorKind::TimedOut {
        return Failure::new(End::ConnectTimeout, "");
    }
    Failure::new(End::Unreachable, fault.to_string())
}

/// Returns whether this process or its machine is at fault, and not the server.
fn is_own_fault(fault: &io::Error) -> bool {
    const OWN: &[i32] = if cfg!(windows) {
        &[10024, 10055] // WSAEMFILE, WSAENOBUFS
    } else if cfg!(target_os = "linux") {
        &[12, 23, 24, 105] // ENOMEM, ENFILE, EMFILE, ENOBUFS
    } else {
        &[12, 23, 24, 55]
    };
    fault.raw_os_error().is_some_and(|code| OWN.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[tokio::test]
    async fn a_name_with_several_addresses_connects_to_the_one_that_accepts() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("localhost:{}", listener.local_addr().unwrap().port());
        let dialer = Dialer::new(&Options::new());
        for _ in 0..4 {
            assert!(dialer.connect(&address, false, soon()).await.is_ok());
        }
    }

    #[tokio::test]
    async fn a_refused_connection_is_unreachable() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let failure = Dialer::new(&Options::new()).connect(&address, false, soon()).await.err().unwrap();
        assert_eq!(failure.end, End::Unreachable);
    }

    #[test]
    fn a_lack_of_descriptors_is_no_fault_of_the_server() {
        if cfg!(target_os = "linux") {
            assert_eq!(connect_failure(&io::Error::from_raw_os_error(24)).end, End::NoRoom);
        }
        assert_eq!(connect_failure(&io::Error::other("no route")).end, End::Unreachable);
    }
}
