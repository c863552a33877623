//! One server as the fleet knows it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "blocking")]
use crate::connection::Connection;
use crate::health::{Backoff, Health};
use crate::pipe::Pipe;
use crate::random;
use crate::wire::State;

pub(crate) const PROBE_AGAIN: Duration = Duration::from_secs(30);
const PROBE_FIRST: Duration = Duration::from_secs(1);
const LONGEST_QUARANTINE: Duration = Duration::from_secs(300);
const TAGS_REMEMBERED: usize = 1000;
const MOVES_EVERY: u32 = 10; // in times of an attempt

/// How a call waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Async,
    #[cfg(feature = "blocking")]
    Blocking,
}

/// Whether, and why not, a server is called. Calls use the earlier ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ServerHealth {
    /// The server is healthy.
    Healthy,
    /// The server failed too often while half of the servers were out already.
    Failing,
    /// The server is ejected, because it failed too often or reported that it cannot issue for now.
    Ejected,
    /// An operator has disabled the server.
    Disabled,
    /// The server is shutting down.
    Draining,
    /// A seed that the list does not contain.
    LastResort,
    /// The server sent invalid answers, or is of another cluster.
    Quarantined,
}

impl ServerHealth {
    /// Returns the state in words, such as `last resort`.
    pub fn name(self) -> &'static str {
        match self {
            ServerHealth::Healthy => "healthy",
            ServerHealth::Failing => "failing",
            ServerHealth::Ejected => "ejected",
            ServerHealth::Disabled => "disabled",
            ServerHealth::Draining => "draining",
            ServerHealth::LastResort => "last resort",
            ServerHealth::Quarantined => "quarantined",
        }
    }
}

impl fmt::Display for ServerHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One server as the client sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SeenServer {
    /// The address, `host:port`.
    pub address: String,
    /// The rack, from the list of servers.
    pub rack: i32,
    /// The server's share of the calls; 100 is usual.
    pub weight: i32,
    /// Whether, and why not, the server is called.
    pub health: ServerHealth,
    /// The cause in a sentence; empty if the server is healthy.
    pub why: String,
    /// Calls in progress.
    pub in_flight: u32,
}

/// The part of a server that calls share without the fleet's mutex.
pub(crate) struct Server {
    pub(crate) id: u64,
    pub(crate) slot: usize,
    pub(crate) address: String,
    /// A permit for each blocking call that uses a connection.
    #[cfg(feature = "blocking")]
    pub(crate) room: tokio::sync::Semaphore,
    /// Held by the call that opens the connection of asynchronous calls.
    pub(crate) dialling: tokio::sync::Mutex<()>,
    /// Whether the last connection received its status.
    pub(crate) spoke: AtomicBool,
    /// Calls in progress.
    pub(crate) in_flight: AtomicU32,
}

/// The part that the fleet's mutex guards.
pub(crate) struct Member {
    pub(crate) server: Arc<Server>,
    pub(crate) rack: i32,
    pub(crate) weight: i32,
    pub(crate) online: bool,
    pub(crate) tls: bool,
    pub(crate) state: State,
    pub(crate) last_resort: bool,
    pub(crate) health: Health,
    pub(crate) why: String,
    pub(crate) not_ready_until: Option<Instant>,
    down_until: HashMap<String, Instant>, // by tag: the store is down
    pub(crate) closed_until: HashMap<String, Instant>, // by tag: draining
    pub(crate) draining: bool,
    pub(crate) quarantined: bool,
    /// Quarantined, as a server of another cluster or service.
    pub(crate) foreign: bool,
    quarantine: Backoff,    // between two probes of a quarantined server
    probe_backoff: Backoff, // of any other server
    /// No call opens a connection before this time.
    pub(crate) connect_at: Option<Instant>,
    /// The last connection could not be opened.
    pub(crate) dial_failed: bool,
    pub(crate) dial_pause: Backoff,
    /// When it last answered a call.
    pub(crate) answered_at: Option<Instant>,
    pub(crate) moves: Moves,
    /// When the next probe is due.
    pub(crate) probe_at: Option<Instant>,
    /// The connection that asynchronous calls share.
    pub(crate) pipe: Option<Arc<Pipe>>,
    #[cfg(feature = "blocking")]
    pub(crate) idle: Vec<Connection>,
}

/// When calls that time out at the server may fail over free of the retry budget.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    lost_at: Option<Instant>, // a call timed out here
    until: Option<Instant>,
    again_at: Option<Instant>,
}

impl Moves {
    /// Records that a call timed out, and returns whether another one did since this attempt began.
    pub(crate) fn lost(&mut self, began: Instant, now: Instant) -> bool {
        self.lost_at.replace(now).is_some_and(|at| at > began)
    }

    /// Returns whether calls may move now: for the time of one attempt, at most once in that of ten.
    pub(crate) fn may_move(&mut self, now: Instant, attempt_limit: Duration) -> bool {
        if !is_before(now, self.again_at) {
            self.until = Some(now + attempt_limit);
            self.again_at = Some(now + MOVES_EVERY * attempt_limit);
        }
        is_before(now, self.until)
    }
}

impl Member {
    pub(crate) fn new(server: Arc<Server>, tls: bool) -> Member {
        Member {
            server,
            rack: 0,
            weight: 100,
            online: true,
            tls,
            state: State::READY,
            last_resort: false,
            health: Health::default(),
            why: String::new(),
            not_ready_until: None,
            down_until: HashMap::new(),
            closed_until: HashMap::new(),
            draining: false,
            quarantined: false,
            foreign: false,
            quarantine: Backoff::default(),
            probe_backoff: Backoff::default(),
            connect_at: None,
            dial_failed: false,
            dial_pause: Backoff::default(),
            answered_at: None,
            moves: Moves::default(),
            probe_at: None,
            pipe: None,
            #[cfg(feature = "blocking")]
            idle: Vec::new(),
        }
    }

    /// Returns whether the server lacks a machine id, or reported that its clock is wrong.
    pub(crate) fn not_ready(&self, now: Instant) -> bool {
        self.state == State::NOT_READY || is_before(now, self.not_ready_until)
    }

    pub(crate) fn standing(&self, tag: &str, needs_machine: bool, now: Instant) -> ServerHealth {
        let leaves = matches!(self.state, State::DRAINING | State::OFFLINE);
        if self.quarantined {
            ServerHealth::Quarantined
        } else if self.last_resort {
            ServerHealth::LastResort
        } else if self.draining || leaves || is_before(now, until_of(&self.closed_until, tag)) {
            ServerHealth::Draining
        } else if !self.online || self.weight <= 0 {
            ServerHealth::Disabled
        } else if self.health.is_ejected()
            || (needs_machine && self.not_ready(now))
            || is_before(now, until_of(&self.down_until, tag))
        {
            ServerHealth::Ejected
        } else if self.health.too_many_failures() || self.health.out {
            ServerHealth::Failing
        } else {
            ServerHealth::Healthy
        }
    }

    /// Returns whether a call has, or may open, a connection to the server.
    pub(crate) fn may_serve(&self, mode: Mode, now: Instant) -> bool {
        !is_before(now, self.connect_at)
            || match mode {
                Mode::Async => self.pipe.as_ref().is_some_and(|pipe| !pipe.is_closed()),
                #[cfg(feature = "blocking")]
                Mode::Blocking => !self.idle.is_empty(),
            }
    }

    pub(crate) fn share(&self) -> f64 {
        f64::from(self.weight.max(1))
    }

    /// Returns the number of calls in progress.
    pub(crate) fn in_flight(&self) -> u32 {
        self.server.in_flight.load(Ordering::Relaxed)
    }

    /// Begins a pause between two probes.
    pub(crate) fn until_next_probe(&mut self, now: Instant) -> Duration {
        if self.quarantined && !self.foreign {
            return self.quarantine.next(now, PROBE_AGAIN, LONGEST_QUARANTINE);
        }
        self.probe_backoff.next(now, PROBE_FIRST, PROBE_AGAIN)
    }

    pub(crate) fn store_is_down(&mut self, tag: &str, until: Instant) {
        remember(&mut self.down_until, tag, until);
    }

    pub(crate) fn drains(&mut self, tag: &str, until: Instant) {
        remember(&mut self.closed_until, tag, until);
    }

    pub(crate) fn seen(&self, now: Instant) -> SeenServer {
        let standing = self.standing("", true, now);
        SeenServer {
            address: self.server.address.clone(),
            rack: self.rack,
            weight: self.weight,
            health: standing,
            why: if standing == ServerHealth::Healthy { String::new() } else { self.why.clone() },
            in_flight: self.in_flight(),
        }
    }
}

pub(crate) fn is_before(now: Instant, time: Option<Instant>) -> bool {
    time.is_some_and(|time| now < time)
}

fn until_of(times: &HashMap<String, Instant>, tag: &str) -> Option<Instant> {
    if times.is_empty() {
        return None; // the usual case, without a hash
    }
    times.get(tag).copied()
}

fn remember(times: &mut HashMap<String, Instant>, tag: &str, until: Instant) {
    if times.len() >= TAGS_REMEMBERED {
        times.clear();
    }
    times.insert(tag.to_owned(), until);
}

/// Returns up to half as long again, so that clients do not return together.
pub(crate) fn at_least(advice: Duration) -> Duration {
    advice + random::up_to(advice / 2)
}
