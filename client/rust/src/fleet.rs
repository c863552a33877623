//! The servers: which exist, which are healthy, and which one a call asks next.

use std::collections::{BTreeMap, HashSet};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::choice;
#[cfg(feature = "blocking")]
use crate::connection::Connection;
use crate::counters::{add, Counts};
use crate::error::Failure;
use crate::health::RetryBudget;
use crate::meter;
use crate::options::{path_of_socket, split_address, Event, EventKind, OnEvent, Options, Seeds};
use crate::pipe::Pipe;
use crate::random;
use crate::server::{Member, Mode, SeenServer, Server, ServerHealth};
use crate::wire::{Entry, ServerList};

const OFFERED_LEAST: usize = 3; // while fewer are healthy, calls can use all servers
#[cfg(feature = "blocking")]
const CHECKS_MAX: usize = 16; // idle connections of one server that are checked at a time

/// All servers, and what calls and probes found out about them.
pub(crate) struct Fleet {
    pub(crate) lists_change: bool,
    pub(crate) rack: Option<i32>,
    pub(crate) servers_max: usize,
    /// Drawn at random: decides which servers of a large cluster this client uses.
    pub(crate) name: String,
    seeds: Vec<String>,
    #[cfg(feature = "blocking")]
    connections_max: usize,
    pub(crate) attempt_limit: Duration,
    tls: bool,
    on_event: Option<OnEvent>,
    pub(crate) counts: Counts,
    /// Notifies calls that servers were added or became healthy.
    pub(crate) news: Notify,
    /// Notifies the upkeep that a call failed, so that a newer list may help.
    pub(crate) trouble: Notify,
    state: Mutex<State>,
}

/// What the fleet's mutex guards.
pub(crate) struct State {
    pub(crate) uuid: String,
    pub(crate) layout: String,
    pub(crate) version: i64,
    pub(crate) own_numbers: HashSet<String>, // tags that need no machine id
    pub(crate) budget: RetryBudget,
    slots: Vec<Option<Member>>,
    by_address: BTreeMap<String, usize>,
    subset: Vec<usize>, // slots of the servers that the client uses
    next_id: u64,
}

impl State {
    pub(crate) fn member(&mut self, server: &Server) -> Option<&mut Member> {
        self.slots.get_mut(server.slot)?.as_mut().filter(|member| member.server.id == server.id)
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.slots.iter().flatten()
    }

    pub(crate) fn members_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.slots.iter_mut().flatten()
    }

    pub(crate) fn needs_machine(&self, tag: &str) -> bool {
        self.own_numbers.is_empty() || !self.own_numbers.contains(tag)
    }

    /// Returns whether fewer than half of the servers are healthy.
    fn panics(&self, now: Instant) -> bool {
        let (mut members, mut healthy) = (0, 0);
        for one in self.members().filter(|one| one.online && !one.foreign && !one.last_resort) {
            members += 1;
            healthy += usize::from(one.standing("", false, now) == ServerHealth::Healthy);
        }
        healthy * 2 < members
    }

    /// Returns whether one more server may be ejected or quarantined: never more than half of the enabled ones are.
    pub(crate) fn may_leave(&self, leaving: &Server) -> bool {
        let (mut members, mut out) = (0, 0);
        for one in self.members().filter(|one| one.online && !one.foreign) {
            members += 1;
            let counts = one.server.id != leaving.id && (one.health.is_ejected() || one.quarantined);
            out += usize::from(counts);
        }
        (out + 1) * 2 <= members
    }

    /// Returns the servers with the best standing, and that standing. Quarantined servers are among them only while
    /// fewer than half of the servers are healthy, and foreign ones never.
    fn offer<'a>(
        &'a self,
        servers: impl Iterator<Item = &'a Member>,
        tag: &str,
        tried: &[u64],
        mode: Mode,
        now: Instant,
    ) -> (ServerHealth, Vec<&'a Member>) {
        let (mut best, mut offered) = (ServerHealth::Quarantined, Vec::with_capacity(self.slots.len()));
        // In the usual case, no server lacks a machine id, and the tag is not hashed.
        let needs_machine = self.members().any(|one| one.not_ready(now)) && self.needs_machine(tag);
        for one in servers {
            if tried.contains(&one.server.id) || !one.may_serve(mode, now) {
                continue;
            }
            let mut standing = one.standing(tag, needs_machine, now);
            if standing == ServerHealth::Quarantined {
                if one.foreign || !self.panics(now) {
                    continue;
                }
                standing = ServerHealth::Ejected;
            }
            if standing < best {
                best = standing;
                offered.clear();
            }
            if standing == best {
                offered.push(one);
            }
        }
        (best, offered)
    }
}

impl Fleet {
    pub(crate) fn new(options: &Options, seeds: Seeds) -> Fleet {
        let fleet = Fleet {
            lists_change: seeds.lists_change,
            rack: options.rack,
            servers_max: options.servers_max,
            name: format!("{:x}", random::bits()),
            seeds: seeds.addresses,
            #[cfg(feature = "blocking")]
            connections_max: options.connections_max,
            attempt_limit: options.attempt_limit,
            tls: options.uses_tls(),
            on_event: options.on_event.clone(),
            counts: Counts::default(),
            news: Notify::new(),
            trouble: Notify::new(),
            state: Mutex::new(State {
                uuid: options.cluster_uuid.clone().unwrap_or_default(),
                layout: String::new(),
                version: 0,
                own_numbers: HashSet::new(),
                budget: RetryBudget::default(),
                slots: Vec::new(),
                by_address: BTreeMap::new(),
                subset: Vec::new(),
                next_id: 0,
            }),
        };
        let mut state = fleet.lock();
        for seed in &fleet.seeds {
            fleet.member_at(&mut state, seed);
        }
        fleet.choose(&mut state);
        drop(state);
        fleet
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the slot of the server at the address, which is added if it is new.
    fn member_at(&self, state: &mut State, address: &str) -> usize {
        if let Some(slot) = state.by_address.get(address) {
            return *slot;
        }
        let slot = state.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            state.slots.push(None);
            state.slots.len() - 1
        });
        state.next_id += 1;
        let server = Arc::new(Server {
            id: state.next_id,
            slot,
            address: address.to_owned(),
            #[cfg(feature = "blocking")]
            room: tokio::sync::Semaphore::new(self.connections_max),
            dialling: tokio::sync::Mutex::default(),
            spoke: Default::default(),
            in_flight: Default::default(),
        });
        let secure = self.tls && path_of_socket(address).is_none();
        state.slots[slot] = Some(Member::new(server, secure));
        state.by_address.insert(address.to_owned(), slot);
        slot
    }

    /// Applies a list if it is newer, or if a server answered that is called only as the last resort.
    pub(crate) fn apply(&self, list: &ServerList, told_by: &Server) {
        let mut gone = Vec::new();
        let mut state = self.lock();
        let by_last_resort = state.member(told_by).is_some_and(|one| one.last_resort);
        let lower = list.version < state.version && !by_last_resort;
        if list.servers.is_empty() || list.version == state.version || lower {
            return;
        }
        let mut listed = HashSet::new();
        for entry in &list.servers {
            if split_address(&entry.address).is_some() {
                let slot = self.member_at(&mut state, &entry.address);
                self.merge(state.slots[slot].as_mut(), entry);
                listed.insert(slot);
            }
        }
        for seed in &self.seeds {
            let slot = self.member_at(&mut state, seed);
            if listed.insert(slot) {
                if let Some(member) = state.slots[slot].as_mut() {
                    member.last_resort = true;
                }
            }
        }
        for slot in 0..state.slots.len() {
            if !listed.contains(&slot) {
                gone.extend(state.slots[slot].take());
            }
        }
        state.by_address.retain(|_, slot| listed.contains(slot));
        state.version = list.version;
        self.choose(&mut state);
        drop(state);
        gone.iter().filter_map(|one| one.pipe.as_ref()).for_each(|pipe| pipe.leave());
        drop(gone); // closes the connections without the mutex
        self.news.notify_waiters();
        add(&self.counts.lists, 1);
        self.tell(EventKind::List, "", &format!("{} servers", list.servers.len()));
    }

    fn merge(&self, member: Option<&mut Member>, entry: &Entry) {
        let Some(one) = member else { return };
        one.rack = entry.rack;
        one.weight = entry.weight;
        one.online = entry.online;
        one.state = entry.state;
        one.tls = entry.tls || self.tls;
        one.last_resort = false;
        one.draining = false;
        one.quarantined = false;
        one.foreign = false;
        one.closed_until.clear();
    }

    fn choose(&self, state: &mut State) {
        let members = state.members().filter(|one| !one.last_resort);
        let candidates = members.map(|one| choice::Candidate {
            slot: one.server.slot,
            score: choice::score(&self.name, &one.server.address, one.share()),
            rack: one.rack,
        });
        state.subset = choice::subset(candidates.collect(), self.servers_max, self.rack);
    }

    /// Returns a server that is not among `tried`. Of the servers with the best standing, those of the client's rack
    /// come first; two of them are drawn by weight, and the second is taken if it is clearly less busy. The server
    /// counts as busy until it is dropped.
    pub(crate) fn pick(&self, tag: &str, tried: &[u64], mode: Mode) -> Option<Picked> {
        self.pick_at(Instant::now(), tag, tried, mode)
    }

    pub(crate) fn pick_at(&self, now: Instant, tag: &str, tried: &[u64], mode: Mode) -> Option<Picked> {
        let state = self.lock();
        let subset = state.subset.iter().filter_map(|slot| state.slots[*slot].as_ref());
        let (best, mut offered) = state.offer(subset, tag, tried, mode, now);
        let few = offered.len() < OFFERED_LEAST && offered.len() < state.subset.len();
        if best > ServerHealth::Healthy || few {
            offered = state.offer(state.members(), tag, tried, mode, now).1;
        }
        if let Some(rack) = self.rack {
            if offered.iter().any(|one| one.rack == rack) {
                offered.retain(|one| one.rack == rack);
            }
        }
        let picked = choice::less_busy(&offered)?;
        picked.server.in_flight.fetch_add(1, Ordering::Relaxed);
        Some(Picked { server: Arc::clone(&picked.server), pipe: picked.pipe.clone() })
    }

    /// Returns whether a server that is neither this one nor tried is healthier for the tag.
    #[cfg(feature = "blocking")]
    pub(crate) fn has_healthier(&self, than: &Server, tag: &str, tried: &[u64]) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        let needs_machine = state.needs_machine(tag);
        let Some(standing) = state.member(than).map(|one| one.standing(tag, needs_machine, now)) else {
            return true; // it has left the list
        };
        let healthier = state.members().any(|one| {
            one.server.id != than.id
                && !tried.contains(&one.server.id)
                && one.standing(tag, needs_machine, now) < standing
        });
        healthier
    }

    pub(crate) fn view(&self) -> Vec<SeenServer> {
        let now = Instant::now();
        let state = self.lock();
        state.by_address.values().filter_map(|slot| state.slots[*slot].as_ref()).map(|one| one.seen(now)).collect()
    }

    /// Returns the ids of the servers with these addresses, for `pick`.
    pub(crate) fn ids_of(&self, addresses: &[String]) -> Vec<u64> {
        let state = self.lock();
        let listed = state.members().filter(|one| addresses.contains(&one.server.address));
        listed.map(|one| one.server.id).collect()
    }

    /// Returns whether the list has this address.
    pub(crate) fn knows(&self, address: &str) -> bool {
        self.lock().by_address.contains_key(address)
    }

    /// Returns whether the server at this address, which may not be in the list, is connected to by TLS.
    pub(crate) fn is_secure(&self, address: &str) -> bool {
        let state = self.lock();
        let listed = state.by_address.get(address).and_then(|slot| state.slots[*slot].as_ref());
        listed.map_or(self.tls, |one| one.tls)
    }

    /// Returns whether the server at this address sent its status on the last connection: it speaks as this client does.
    pub(crate) fn has_spoken(&self, address: &str) -> bool {
        let state = self.lock();
        let listed = state.by_address.get(address).and_then(|slot| state.slots[*slot].as_ref());
        listed.is_some_and(|one| one.server.spoke.load(Ordering::Relaxed))
    }

    /// Returns the connection to the server that asynchronous calls share.
    pub(crate) fn pipe_of(&self, server: &Server) -> Option<Arc<Pipe>> {
        let mut state = self.lock();
        state.member(server)?.pipe.clone().filter(|pipe| !pipe.is_closed())
    }

    /// Lets asynchronous calls share the connection, if the server is still listed. Otherwise it is closed after its
    /// first calls.
    pub(crate) fn put_pipe(&self, server: &Server, pipe: &Arc<Pipe>) {
        let mut state = self.lock();
        if let Some(member) = state.member(server) {
            member.pipe = Some(Arc::clone(pipe));
        } else {
            pipe.leave_when_used();
        }
    }

    /// Records a failure of a connection that no call reports.
    pub(crate) fn unreported(&self, server: u64, failure: Failure) {
        let found = self.lock().members().find(|one| one.server.id == server).map(|one| Arc::clone(&one.server));
        if let Some(server) = found {
            self.failed(&server, "", &failure);
            self.counts.attempted::<()>(&Err(failure));
        }
    }

    /// Takes the connection to the server that a blocking call used last.
    #[cfg(feature = "blocking")]
    pub(crate) fn take_idle(&self, server: &Server) -> Option<Connection> {
        self.lock().member(server)?.idle.pop()
    }

    /// Keeps a connection for the next call, if the server is still listed.
    #[cfg(feature = "blocking")]
    pub(crate) fn put_idle(&self, server: &Server, mut connection: Connection) {
        connection.idle_since = Instant::now();
        let mut state = self.lock();
        match state.member(server) {
            Some(member) => member.idle.push(connection),
            None => drop(state), // before the connection
        }
    }

    /// Drops idle connections that their servers have closed: nothing else would notice. Checks the oldest ones
    /// that are idle for that time; calls use the youngest.
    #[cfg(feature = "blocking")]
    pub(crate) fn drop_closed(&self, idle: Duration) {
        let (now, mut closed) = (Instant::now(), Vec::new());
        let mut state = self.lock();
        for member in state.members_mut() {
            let old = member.idle.iter().take_while(|one| now.duration_since(one.idle_since) > idle);
            let mut checked = old.count().min(CHECKS_MAX);
            while checked > 0 {
                checked -= 1;
                if member.idle[checked].is_over() {
                    closed.push(member.idle.remove(checked));
                } else {
                    member.idle[checked].idle_since = now;
                }
            }
            member.idle.sort_by_key(|one| one.idle_since);
        }
        drop(state);
    }

    /// Closes the connections of blocking calls that no call uses.
    #[cfg(feature = "blocking")]
    pub(crate) fn drop_idle(&self) {
        let idle: Vec<_> = self.lock().members_mut().flat_map(|member| std::mem::take(&mut member.idle)).collect();
        drop(idle); // without the mutex
    }

    /// Calls `on_event`. Its panics must not end a call or the upkeep.
    pub(crate) fn tell(&self, kind: EventKind, server: &str, detail: &str) {
        meter::event(kind);
        if let Some(on_event) = &self.on_event {
            let event = Event { kind, server: server.to_owned(), detail: detail.to_owned() };
            let _ = catch_unwind(AssertUnwindSafe(|| on_event(event)));
        }
    }
}

/// A server that a call asks.
pub(crate) struct Picked {
    pub(crate) server: Arc<Server>,
    /// The connection that asynchronous calls share; it may have been closed.
    pub(crate) pipe: Option<Arc<Pipe>>,
}

impl Drop for Picked {
    fn drop(&mut self) {
        self.server.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
