//! What the fleet makes of answers and failures, and of probes.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::counters::add;
use crate::error::{End, Failure, Reason};
use crate::fleet::{Fleet, State};
use crate::health::{Health, FAILURES_IN_A_ROW};
use crate::options::EventKind;
use crate::server::{at_least, is_before, Member, Mode, Server, PROBE_AGAIN};
use crate::wire::{self, Status};

const NO_ADVICE: Duration = Duration::from_millis(100);
const DIAL_PAUSE_FIRST: Duration = Duration::from_millis(10);
const DIAL_PAUSE_LONGEST: Duration = Duration::from_millis(100);

impl Fleet {
    /// Fails unless the server with this status is of the client's cluster.
    pub(crate) fn admit(&self, status: &Status) -> Result<(), Failure> {
        let mut state = self.lock();
        if status.cluster_uuid.is_empty() && !state.uuid.is_empty() {
            return Err(Failure::refused(Reason::NotReady, "it does not know its cluster yet"));
        }
        if !state.uuid.is_empty() && status.cluster_uuid != state.uuid {
            let text = format!("its cluster is '{}', not '{}'", status.cluster_uuid, state.uuid);
            return Err(Failure::new(End::WrongService, text));
        }
        if status.layout.is_empty() || (!state.layout.is_empty() && status.layout != state.layout) {
            let text = format!("its layout is '{}', not '{}'", status.layout, state.layout);
            return Err(Failure::new(End::WrongService, text));
        }
        state.uuid.clone_from(&status.cluster_uuid);
        state.layout.clone_from(&status.layout);
        for tag in status.tags.iter().filter(|tag| tag.strategy != "snowflake") {
            if !state.own_numbers.contains(&tag.tag) {
                state.own_numbers.insert(tag.tag.clone());
            }
        }
        Ok(())
    }

    /// Records that a server issued ids for a call, or refused it as every server would. A server that issued ids
    /// does not drain.
    pub(crate) fn answered(&self, server: &Server, tag: &str, refused: bool) {
        let mut state = self.lock();
        let Some(one) = state.member(server) else { return };
        let mut back = one.health.out;
        one.answered_at = Some(Instant::now());
        if !refused {
            back |= one.draining;
            one.draining = false;
            if !one.closed_until.is_empty() {
                one.closed_until.remove(tag);
            }
        }
        if !one.health.too_many_failures() && !back {
            one.health.answered();
            return;
        }
        one.health = Health::default();
        if !one.quarantined && !one.draining {
            one.probe_at = None;
        }
        drop(state);
        self.news.notify_waiters();
        if back {
            self.tell(EventKind::Healthy, &server.address, "answers again");
        }
    }

    /// Records a failed attempt.
    pub(crate) fn failed(&self, server: &Server, tag: &str, failure: &Failure) {
        if failure.end == End::NoRoom || failure.stale || failure.lacks_method {
            return;
        }
        match failure.end {
            End::Refused => return self.refused(server, tag, failure),
            End::Broken | End::WrongService => self.quarantine(server, failure, false),
            End::ConnectTimeout => self.count(server, 2, failure),
            _ => self.count(server, 1, failure),
        }
        self.trouble.notify_one();
    }

    fn refused(&self, server: &Server, tag: &str, failure: &Failure) {
        let Some(reason) = failure.reason else { return };
        match reason {
            Reason::Internal => return self.count(server, 1, failure),
            Reason::BadRequest | Reason::UnknownTag | Reason::Rejected | Reason::Exhausted => {
                return self.answered(server, tag, true)
            }
            _ => {}
        }
        let advice = if failure.retry_after.is_zero() { NO_ADVICE } else { failure.retry_after };
        let now = Instant::now();
        let mut state = self.lock();
        let Some(one) = state.member(server) else { return };
        one.why = format!("{reason}: {}", failure.detail);
        let mut drains = false;
        match reason {
            Reason::NotReady | Reason::Clock => one.not_ready_until = Some(now + at_least(advice)),
            Reason::StoreDown => one.store_is_down(tag, now + at_least(advice)),
            Reason::Draining => {
                one.drains(tag, now + at_least(PROBE_AGAIN));
                drains = !one.draining && !one.quarantined;
                if drains {
                    one.draining = true;
                    one.probe_at = Some(now);
                }
            }
            _ => {}
        }
        drop(state);
        if drains {
            self.trouble.notify_one();
            self.tell(EventKind::Draining, &server.address, &failure.detail);
        }
    }

    fn count(&self, server: &Server, times: u32, failure: &Failure) {
        let mut state = self.lock();
        let Some(one) = state.member(server) else { return };
        one.health.failed(times);
        if one.health.out || !one.health.too_many_failures() {
            return;
        }
        one.why = failure.to_string();
        let why = one.why.clone();
        let (length, ejected) = take_out(&mut state, server);
        drop(state);
        let what = if ejected { "is ejected" } else { "is called last" };
        self.tell(
            EventKind::Unhealthy,
            &server.address,
            &format!("{what} for {:.1} s; {why}", length.as_secs_f64()),
        );
    }

    /// Quarantines a server that breaks the protocol, or is foreign: of another cluster or service. Other
    /// connections may find the same again, which makes it no longer; a failed probe does.
    fn quarantine(&self, server: &Server, failure: &Failure, probed: bool) {
        let (now, foreign) = (Instant::now(), failure.end == End::WrongService);
        let mut state = self.lock();
        let may_leave = state.may_leave(server);
        let Some(one) = state.member(server) else { return };
        let begins = !one.quarantined;
        if !foreign && begins && !may_leave {
            drop(state);
            return self.count(server, FAILURES_IN_A_ROW, failure);
        }
        if begins || probed || (foreign && !one.foreign) {
            one.quarantined = true;
            one.foreign |= foreign;
            one.why.clone_from(&failure.detail);
            one.probe_at = Some(now + one.until_next_probe(now));
        }
        drop(state);
        if begins {
            self.tell(EventKind::Quarantined, &server.address, &failure.detail);
        }
    }

    /// Returns the servers that must be probed now, and when the next probe is due.
    pub(crate) fn due_probes(&self) -> (Vec<Arc<Server>>, Option<Instant>) {
        let (now, mut due, mut next) = (Instant::now(), Vec::new(), None);
        let mut state = self.lock();
        for one in state.members_mut() {
            let Some(mut at) = one.probe_at else { continue };
            if at <= now {
                due.push(Arc::clone(&one.server));
                at = now + PROBE_AGAIN;
                one.probe_at = Some(at);
            }
            next = Some(next.map_or(at, |next: Instant| next.min(at)));
        }
        (due, next)
    }

    /// Records the result of a probe.
    pub(crate) fn probed(&self, server: &Server, outcome: Result<Status, Failure>) {
        let now = Instant::now();
        let status = match outcome {
            Ok(status) => status,
            Err(failure) if matches!(failure.end, End::Broken | End::WrongService) => {
                return self.quarantine(server, &failure, true)
            }
            Err(_) => {
                let mut state = self.lock();
                let Some(one) = state.member(server) else { return };
                one.probe_at = Some(now + one.until_next_probe(now));
                if one.health.out {
                    take_out(&mut state, server);
                }
                return;
            }
        };
        let mut state = self.lock();
        let Some(one) = state.member(server) else { return };
        let out = one.draining || one.quarantined || one.health.out;
        one.draining = status.state == wire::State::DRAINING;
        one.quarantined = false;
        one.foreign = false;
        one.health.seen();
        one.probe_at = one.draining.then(|| now + PROBE_AGAIN);
        let back = out && !one.draining;
        drop(state);
        if back {
            self.news.notify_waiters();
            self.tell(EventKind::Healthy, &server.address, "answers again");
        }
    }

    /// Records whether a connection, up to the server's status, could be opened.
    pub(crate) fn dialled(&self, server: &Server, reached: bool) {
        self.counts.dialled(reached);
        let now = Instant::now();
        let mut state = self.lock();
        let Some(one) = state.member(server) else { return };
        if !reached {
            one.dial_failed = true;
            one.connect_at = Some(now + one.dial_pause.next(now, DIAL_PAUSE_FIRST, DIAL_PAUSE_LONGEST));
            return;
        }
        one.connect_at = None;
        if std::mem::take(&mut one.dial_failed) {
            drop(state);
            self.news.notify_waiters(); // calls that wait for the backoff to end
        }
    }

    /// Returns whether a call may open a connection now. After a failure one call at a time may.
    pub(crate) fn may_dial(&self, server: &Server, until: Instant) -> bool {
        let mut state = self.lock();
        let Some(one) = state.member(server) else { return true };
        if is_before(Instant::now(), one.connect_at) {
            return false;
        }
        if one.dial_failed {
            one.connect_at = Some(until);
        }
        true
    }

    /// Returns when the first server that is not tried may be connected to again. None: no server is in backoff.
    pub(crate) fn paused_until(&self, tried: &[u64], mode: Mode) -> Option<Instant> {
        let now = Instant::now();
        let state = self.lock();
        let paused = state.members().filter(|one| !tried.contains(&one.server.id) && !one.foreign);
        paused.filter(|one| !one.may_serve(mode, now)).filter_map(|one| one.connect_at).min()
    }

    /// Returns whether a call whose attempt timed out fails over free of the retry budget: another call timed out
    /// at the server since this attempt began, another server has answered since, and the server has not lost calls
    /// so recently. One hung server then does not use up the budget.
    pub(crate) fn may_move(&self, from: &Server, began: Instant) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        let others = |one: &Member| one.server.id != from.id && one.answered_at.is_some_and(|at| at > began);
        let others_answer = state.members().any(others);
        let Some(one) = state.member(from) else { return false };
        one.moves.lost(began, now) && others_answer && one.moves.may_move(now, self.attempt_limit)
    }

    pub(crate) fn take_retry(&self) -> bool {
        let calls = self.counts.calls.load(Ordering::Relaxed);
        let taken = self.lock().budget.take(Instant::now(), calls);
        add(if taken { &self.counts.retries } else { &self.counts.retries_denied }, 1);
        taken
    }
}

/// Begins an outage of the server; returns its length, and whether the server is ejected.
fn take_out(state: &mut State, server: &Server) -> (Duration, bool) {
    let (now, eject) = (Instant::now(), state.may_leave(server));
    let Some(one) = state.member(server) else { return (Duration::ZERO, eject) };
    let length = one.health.take_out(eject, now);
    if !one.quarantined && !one.draining {
        one.probe_at = Some(now + length);
    }
    (length, eject)
}
