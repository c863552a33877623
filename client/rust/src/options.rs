//! Options of a client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{printable, Error, ErrorKind};

/// An event about servers, for the program's log. The library itself logs nothing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The server's address; empty if the event is about all servers.
    pub server: String,
    /// The details in a sentence.
    pub detail: String,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if !self.server.is_empty() {
            write!(f, " {}", self.server)?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

/// What an [`Event`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// A newer list of servers was received.
    List,
    /// A server failed too often; it is ejected, or called after the healthy servers.
    Unhealthy,
    /// A server that was out, draining or quarantined is healthy again.
    Healthy,
    /// A server sent invalid answers, or is of another cluster.
    Quarantined,
    /// A server is shutting down.
    Draining,
    /// A call found no server that may be asked.
    NoServer,
}

impl EventKind {
    /// Returns the kind in words, such as `unhealthy`.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::List => "list",
            EventKind::Unhealthy => "unhealthy",
            EventKind::Healthy => "healthy",
            EventKind::Quarantined => "quarantined",
            EventKind::Draining => "draining",
            EventKind::NoServer => "no server",
        }
    }
}

/// A tag whose ids are prefetched, so that taking one costs no call.
#[derive(Clone, Debug)]
pub struct LocalTag {
    pub(crate) tag: String,
    pub(crate) max_age: Option<Duration>,
    pub(crate) lasts: Duration,
    pub(crate) fetch_max: u32,
}

impl LocalTag {
    /// Prefetches for a segment tag. Ids are kept until they are used.
    pub fn segment(tag: impl Into<String>) -> LocalTag {
        LocalTag { tag: tag.into(), max_age: None, lasts: Duration::from_secs(1), fetch_max: 10_000_000 }
    }

    /// Prefetches for a snowflake tag. Ids are at most 1 s old; a fetch takes what a server issues in 25 ms.
    pub fn snowflake(tag: impl Into<String>) -> LocalTag {
        LocalTag {
            tag: tag.into(),
            max_age: Some(Duration::from_secs(1)),
            lasts: Duration::from_millis(250),
            fetch_max: 100_000,
        }
    }

    /// Sets the age at which unused ids are dropped.
    pub fn max_age(mut self, age: Duration) -> LocalTag {
        self.max_age = Some(age);
        self
    }

    /// Sets the time for which a fetch should last at the recent rate.
    pub fn lasts(mut self, time: Duration) -> LocalTag {
        self.lasts = time;
        self
    }

    /// Sets the maximum number of ids of one fetch.
    pub fn fetch_max(mut self, ids: u32) -> LocalTag {
        self.fetch_max = ids;
        self
    }
}

/// The options of TLS connections. The files are read again when they change; unusable files leave the last
/// usable ones in force.
#[cfg(feature = "tls")]
#[derive(Clone, Debug, Default)]
pub struct Tls {
    pub(crate) ca: Option<std::path::PathBuf>,
    pub(crate) identity: Option<(std::path::PathBuf, std::path::PathBuf)>,
    pub(crate) name: Option<String>,
}

#[cfg(feature = "tls")]
impl Tls {
    /// Returns options that trust the certificate authorities of this machine.
    pub fn new() -> Tls {
        Tls::default()
    }

    /// Sets the PEM file of the trusted certificate authorities.
    pub fn ca(mut self, file: impl Into<std::path::PathBuf>) -> Tls {
        self.ca = Some(file.into());
        self
    }

    /// Sets the PEM files of the client's certificate and of its private key.
    pub fn identity(mut self, cert: impl Into<std::path::PathBuf>, key: impl Into<std::path::PathBuf>) -> Tls {
        self.identity = Some((cert.into(), key.into()));
        self
    }

    /// Sets the name that servers' certificates must contain, instead of the host of the server's address.
    pub fn name(mut self, name: impl Into<String>) -> Tls {
        self.name = Some(name.into());
        self
    }
}

pub(crate) type OnEvent = Arc<dyn Fn(Event) + Send + Sync>;

/// The options of a client.
///
/// ```
/// use std::time::Duration;
/// let options = firn_client::Options::new()
///     .deadline(Duration::from_millis(500))
///     .rack(2)
///     .local_range(firn_client::LocalTag::segment("order"));
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) cluster_uuid: Option<String>,
    pub(crate) rack: Option<i32>,
    pub(crate) failfast: bool,
    pub(crate) deadline: Duration,
    pub(crate) attempt_limit: Duration,
    pub(crate) attempts_max: usize,
    pub(crate) connections_max: usize,
    pub(crate) servers_max: usize,
    pub(crate) local_ranges: Vec<LocalTag>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
    pub(crate) on_event: Option<OnEvent>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cluster_uuid: None,
            rack: None,
            failfast: false,
            deadline: Duration::from_millis(200),
            attempt_limit: Duration::from_millis(80),
            attempts_max: 3,
            connections_max: 64,
            servers_max: 16,
            local_ranges: Vec::new(),
            #[cfg(feature = "tls")]
            tls: None,
            on_event: None,
        }
    }
}

impl Options {
    /// Returns the default options.
    pub fn new() -> Options {
        Options::default()
    }

    /// Sets the UUID of the cluster. By default it is that of the first server that answers.
    pub fn cluster_uuid(mut self, uuid: impl Into<String>) -> Options {
        self.cluster_uuid = Some(uuid.into());
        self
    }

    /// Prefers healthy servers of this rack.
    pub fn rack(mut self, rack: i32) -> Options {
        self.rack = Some(rack);
        self
    }

    /// Returns the first failure without failover, if set.
    pub fn failfast(mut self, failfast: bool) -> Options {
        self.failfast = failfast;
        self
    }

    /// Sets the maximum time of a call. (200 ms)
    pub fn deadline(mut self, time: Duration) -> Options {
        self.deadline = time;
        self
    }

    /// Sets the maximum time for one server's answer, connecting included. (80 ms)
    pub fn attempt_limit(mut self, time: Duration) -> Options {
        self.attempt_limit = time;
        self
    }

    /// Sets the maximum number of requests per call. (3)
    pub fn attempts_max(mut self, requests: usize) -> Options {
        self.attempts_max = requests;
        self
    }

    /// Sets the maximum number of connections per server for blocking calls; each serves one call at a time. (64)
    /// Asynchronous calls share one.
    pub fn connections_max(mut self, connections: usize) -> Options {
        self.connections_max = connections;
        self
    }

    /// Sets the maximum number of servers that the client uses in a large cluster; 0: all. (16)
    pub fn servers_max(mut self, servers: usize) -> Options {
        self.servers_max = servers;
        self
    }

    /// Adds a tag whose ids are prefetched.
    pub fn local_range(mut self, tag: LocalTag) -> Options {
        self.local_ranges.push(tag);
        self
    }

    /// Connects to every server by TLS. Without this, only servers whose entry in the list requires TLS are
    /// connected to so.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Options {
        self.tls = Some(tls);
        self
    }

    /// Sets the callback for events. It is called by the client's own tasks and by calls, and must return soon.
    pub fn on_event(mut self, callback: impl Fn(Event) + Send + Sync + 'static) -> Options {
        self.on_event = Some(Arc::new(callback));
        self
    }

    pub(crate) fn uses_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        return false;
    }

    /// Returns a sentence for each invalid option.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, time) in [("deadline", self.deadline), ("attempt_limit", self.attempt_limit)] {
            if time.is_zero() || time > Duration::from_secs(3600) {
                faults.push(format!("{name} is {time:?}, not above 0 and at most 1 h"));
            }
        }
        for (name, value, most) in
            [("attempts_max", self.attempts_max, 100), ("connections_max", self.connections_max, 10_000)]
        {
            if value < 1 || value > most {
                faults.push(format!("{name} is {value}, not 1 to {most}"));
            }
        }
        let tags = self.local_ranges.iter().map(|one| one.tag.as_str());
        if tags.clone().collect::<std::collections::HashSet<_>>().len() < tags.len() {
            faults.push("local_range has a tag twice".to_owned());
        }
        faults
    }

    /// Parses the servers, and fails with every fault of them and of the options.
    pub(crate) fn check(&self, servers: &str) -> Result<Seeds, Error> {
        let mut faults = self.faults();
        match parse_servers(servers) {
            Ok(seeds) if faults.is_empty() => return Ok(seeds),
            Ok(_) => {}
            Err(fault) => faults.push(fault),
        }
        Err(Error::new(ErrorKind::Invalid, faults.join("; ")))
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("cluster_uuid", &self.cluster_uuid)
            .field("rack", &self.rack)
            .field("failfast", &self.failfast)
            .field("deadline", &self.deadline)
            .field("attempt_limit", &self.attempt_limit)
            .field("attempts_max", &self.attempts_max)
            .field("connections_max", &self.connections_max)
            .field("servers_max", &self.servers_max)
            .field("local_ranges", &self.local_ranges)
            .finish_non_exhaustive()
    }
}

/// The parsed text of `servers`.
#[derive(Debug)]
pub(crate) struct Seeds {
    pub(crate) addresses: Vec<String>,
    pub(crate) lists_change: bool,
}

/// The prefix of a Unix socket's address.
const UNIX: &str = "unix:";
/// The longest path of a Unix socket, in bytes, in Linux.
const UNIX_PATH_MAX: usize = 107;

/// Parses `firn://seed,seed` or `list://host:port,unix:/path`.
fn parse_servers(servers: &str) -> Result<Seeds, String> {
    let (lists_change, rest) = match servers.split_once("://") {
        Some(("firn", rest)) => (true, rest),
        Some(("list", rest)) => (false, rest),
        _ => return Err(format!("servers is '{}', neither firn://... nor list://...", printable(servers))),
    };
    let mut addresses: Vec<String> = Vec::new();
    for address in rest.split(',') {
        if let Some(fault) = fault_of_seed(address) {
            return Err(format!("'{}'{fault}", printable(address)));
        }
        if !addresses.iter().any(|one| one == address) {
            addresses.push(address.to_owned());
        }
    }
    Ok(Seeds { addresses, lists_change })
}

/// Returns the path of `unix:/path`, or `None` if the address is not that of a Unix socket.
pub(crate) fn path_of_socket(address: &str) -> Option<&str> {
    address.strip_prefix(UNIX)
}

/// Returns what is wrong with `host:port` or `unix:/path`, to be read after the address.
fn fault_of_seed(address: &str) -> Option<String> {
    let Some(path) = path_of_socket(address) else {
        return split_address(address).is_none().then(|| " is not host:port".to_owned());
    };
    if cfg!(not(unix)) {
        return Some(": this system has no Unix sockets; use the server's host and port".to_owned());
    }
    if !path.starts_with('/') {
        return Some(": unix: requires an absolute path".to_owned());
    }
    let invalid = path.len() > UNIX_PATH_MAX || path.contains('\0');
    invalid.then(|| format!(": the path of a Unix socket has at most {UNIX_PATH_MAX} bytes and no NUL"))
}

/// Splits `host:port` or `[ipv6]:port`. No host is named `unix`.
pub(crate) fn split_address(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']')?,
        None if host.contains(':') || path_of_socket(address).is_some() => return None,
        None => host,
    };
    let usable = !host.is_empty()
        && !host.chars().any(|one| one.is_control() || one.is_whitespace() || one == '[' || one == ']');
    if !usable || !port.bytes().all(|one| one.is_ascii_digit()) {
        return None;
    }
    port.parse().ok().filter(|port| *port > 0).map(|port| (host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_host_and_port() {
        assert_eq!(split_address("10.0.0.7:7609"), Some(("10.0.0.7", 7609)));
        assert_eq!(split_address("[::1]:1"), Some(("::1", 1)));
        for wrong in ["", "nowhere", ":1", "a:0", "a:65536", "a:+1", "::1:1", "[::1:1", "a\n:1", "a b:1", "unix:1"]
        {
            assert_eq!(split_address(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn seeds_are_parsed_and_repeated_ones_dropped() {
        let seeds = parse_servers("firn://a:1,b:2,a:1").unwrap();
        assert!(seeds.lists_change);
        assert_eq!(seeds.addresses, ["a:1", "b:2"]);
        assert!(!parse_servers("list://a:1").unwrap().lists_change);
        assert!(parse_servers("zk://a:1").unwrap_err().contains("neither"));
    }

    #[cfg(unix)]
    #[test]
    fn paths_that_no_unix_socket_can_have_are_refused() {
        let longest = format!("unix:/{}", "x".repeat(106));
        let (too_long, umlauts) = (format!("{longest}x"), format!("unix:/{}", "\u{e4}".repeat(54)));
        for (address, words) in [
            ("unix:firn.sock", "requires an absolute path"),
            ("unix:", "requires an absolute path"),
            ("unix:/a\0b", "no NUL"),
            (too_long.as_str(), "at most 107 bytes"),
            (umlauts.as_str(), "at most 107 bytes"),
            ("a:1,unix:firn.sock", "requires an absolute path"),
            ("/run/firn.sock", "not host:port"),
        ] {
            let fault = parse_servers(&format!("list://{address}")).unwrap_err();
            assert!(fault.contains(words), "{fault}");
        }
        let seeds = parse_servers(&format!("list://a:1,{longest}")).unwrap();
        assert_eq!(seeds.addresses, ["a:1", longest.as_str()]);
    }

    #[test]
    fn every_invalid_option_is_named() {
        let options = Options::new().deadline(Duration::ZERO).attempts_max(0).connections_max(10_001);
        let error = options.check("list://nowhere").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        for word in ["deadline", "attempts_max", "connections_max", "'nowhere' is not host:port"] {
            assert!(error.message().contains(word), "{word}: {error}");
        }
    }
}
