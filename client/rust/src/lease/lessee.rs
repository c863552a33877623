//! Obtains a lease, extends it, and obtains the next one in time.

use std::sync::Arc;

use super::ids::LeasedIds;
use super::pace::Now;
use super::terms::{utc, Lease};
use crate::error::{Error, ErrorKind};

/// A request to a server, without its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseRequest {
    /// Address of the server; empty, for a grant: any one that is not in `avoid`.
    pub(crate) server: String,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Grant { avoid: Vec<String>, token: String },
    Renewal { lease: String, turn: String, acknowledged: String },
    Release { lease: String, turn: String, used_tick: i64 },
}

/// The outcome of a [`LeaseRequest`], and the server that was asked; empty: none was left.
#[derive(Debug)]
pub(crate) struct LeaseOutcome {
    pub(crate) server: String,
    pub(crate) kind: Outcome,
    pub(crate) message: String,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Lease(Box<Lease>),
    Released,
    /// Another process may have the ids.
    Revoked,
    /// The server has accepted a later turn, which was not this one's.
    Outdated,
    /// The server has no such lease: it will not extend it, but the promise stands.
    Unknown,
    /// The server at this address has the lease.
    Elsewhere(String),
    /// The request may be repeated at this server after so many microseconds.
    NotReady {
        retry_after_us: i64,
    },
    /// Another server may grant a lease.
    Refused,
    /// Every server would refuse.
    RefusedForGood(Error),
    /// `sent`: the server may have done it.
    NoAnswer {
        sent: bool,
    },
}

/// A lease that a generator has lost. Until the next one, [`next`](crate::LocalGenerator::next) fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseLoss {
    /// What happened.
    pub kind: LossKind,
    /// The machine id of the lease.
    pub machine_id: u32,
    /// The details in a sentence.
    pub reason: String,
}

/// How a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossKind {
    /// A server ended the lease, because another process may have its ids.
    Revoked,
    /// The interval ended before a server extended it.
    Expired,
}

/// What a lessee needs of its generator.
pub(crate) struct Hooks {
    pub(crate) on_lost: Box<dyn Fn(LeaseLoss) + Send>,
    /// A request failed, and is repeated or given up; with the error if every server would refuse.
    pub(crate) on_refused: Box<dyn Fn(String, Option<Error>) + Send>,
    /// Returns 128 random bits, which nobody can guess, as 32 hexadecimal digits.
    pub(crate) draw: Box<dyn Fn() -> String + Send>,
    /// Returns a number from 0, inclusive, to 1, exclusive.
    pub(crate) fraction: Box<dyn Fn() -> f64 + Send>,
}

/// When a request is sent. It is repeated until it has an outcome.
#[derive(Debug)]
struct Sending {
    number: u64,
    at_us: i64,
    in_flight: bool,
    delay_us: i64, // of the next repetition
    hops: u32,     // from one server to another that has the lease
}

struct Grant {
    sending: Sending,
    token: String,
    server: String,
    avoid: Vec<String>,
    /// A server may have granted a lease for this token.
    spent: bool,
    repeats: u32,
}

struct Renewal {
    sending: Sending,
    turn: String,
}

struct Release {
    sending: Sending,
    server: String,
    what: What,
    useless_at_us: i64, // by the id clock
}

struct Held {
    lease: Lease,
    server: String,
    acknowledged: String, // turn of the last answer
    replace_at_us: i64,   // by the id clock: then another lease is requested
    renew_at_us: i64,
    renewable: bool,
    unknown: bool, // the server does not have it
    expired: bool, // and reported
}

const RETRY_FIRST_US: i64 = 200_000;
const RETRY_MAX_US: i64 = 2_000_000;
const RENEW_MIN_US: i64 = 100_000;
const TICK_MAX_US: i64 = 1_000_000;
const GRANT_PAUSE_US: i64 = 2_000_000; // between a lease and the request for another
const REPEATS_MAX: u32 = 1; // of a grant at one server
const HOPS_MAX: u32 = 3;
const RELEASES_MAX: usize = 4;

/// Obtains a lease, extends it, and obtains the next one in time.
///
/// 1. A grant is repeated with its token at the server that may have granted it, once. Then another server is asked with
///    a fresh token: nothing was issued under the first, and its lease expires.
/// 2. A renewal has a fresh turn, which is repeated until it is answered, and the turn that was answered last.
/// 3. The lease is used until its end. Only a revocation ends it earlier: then the generator is closed at once.
/// 4. When a third of the interval is left, or at once if the server does not have the lease, another one is requested.
///    It replaces the first, and continues in a later tick.
/// 5. A lease that was replaced is released: first its ids are closed, then the last tick is read.
///
/// Reads no clock but the id clock, sends nothing itself and never waits.
pub(crate) struct Lessee {
    ids: Arc<LeasedIds>,
    hooks: Hooks,
    retry_max_us: i64,
    numbers: u64,
    held: Option<Held>,
    grant: Option<Grant>,
    renewal: Option<Renewal>,
    releases: Vec<Release>,
    last_server: Vec<String>, // at most one
    grant_not_before_us: i64,
    stopping: bool,
    next_tick_us: i64,
}

impl Lessee {
    pub(crate) fn new(ids: Arc<LeasedIds>, ahead_us: i64, hooks: Hooks) -> Lessee {
        Lessee {
            ids,
            hooks,
            retry_max_us: (ahead_us / 12).clamp(RETRY_FIRST_US, RETRY_MAX_US),
            numbers: 0,
            held: None,
            grant: None,
            renewal: None,
            releases: Vec::new(),
            last_server: Vec::new(),
            grant_not_before_us: i64::MIN,
            stopping: false,
            next_tick_us: 0,
        }
    }

    /// Returns when `tick` must be called next, by the monotonic clock.
    pub(crate) fn due_us(&self) -> i64 {
        self.next_tick_us
    }

    /// Returns whether nothing is left to be sent after `stop`.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopping && self.releases.is_empty()
    }

    /// Returns the requests that are due, with their numbers.
    pub(crate) fn tick(&mut self, now: Now) -> Vec<(u64, LeaseRequest)> {
        let time_us = self.ids.advance();
        self.next_tick_us = now.mono_us + TICK_MAX_US;
        self.tick_held(time_us, now);
        let replace = self.held.as_ref().map_or(true, |held| time_us >= held.replace_at_us);
        if replace && !self.stopping && self.grant.is_none() && now.mono_us >= self.grant_not_before_us {
            self.grant = Some(self.new_grant(now));
        }
        self.releases.retain(|one| one.useless_at_us > time_us);

        let (mut due, next) = (Vec::new(), &mut self.next_tick_us);
        if let Some(grant) = &mut self.grant {
            if grant.sending.is_due(now, next) {
                let what = What::Grant { avoid: grant.avoid.clone(), token: grant.token.clone() };
                due.push((grant.sending.number, LeaseRequest { server: grant.server.clone(), what }));
            }
        }
        if let (Some(renewal), Some(held)) = (&mut self.renewal, &self.held) {
            if renewal.sending.is_due(now, next) {
                let what = What::Renewal {
                    lease: held.lease.id.clone(),
                    turn: renewal.turn.clone(),
                    acknowledged: held.acknowledged.clone(),
                };
                due.push((renewal.sending.number, LeaseRequest { server: held.server.clone(), what }));
            }
        }
        for one in &mut self.releases {
            if one.sending.is_due(now, next) {
                due.push((one.sending.number, LeaseRequest { server: one.server.clone(), what: one.what.clone() }));
            }
        }
        due
    }

    /// Applies the outcome of a request. Ignored if the request is no longer needed.
    pub(crate) fn on_reply(&mut self, number: u64, outcome: LeaseOutcome, now: Now) {
        self.next_tick_us = now.mono_us;
        if self.grant.as_ref().is_some_and(|one| one.sending.number == number) {
            let Some(mut grant) = self.grant.take() else { return };
            grant.sending.in_flight = false;
            self.grant = self.on_grant(grant, outcome, now);
        } else if self.renewal.as_ref().is_some_and(|one| one.sending.number == number) {
            let Some(mut renewal) = self.renewal.take() else { return };
            renewal.sending.in_flight = false;
            self.renewal = self.on_renewal(renewal, outcome, now);
        } else if let Some(at) = self.releases.iter().position(|one| one.sending.number == number) {
            let mut release = self.releases.remove(at);
            release.sending.in_flight = false;
            let left = self.on_release(release, outcome, now);
            self.releases.extend(left);
        }
    }

    /// Closes the generator for good, and asks for the end of its lease.
    pub(crate) fn stop(&mut self, failure: Error, now: Now) {
        if self.stopping {
            return;
        }
        self.stopping = true;
        let used_tick = self.ids.end(failure);
        self.release(used_tick, now);
        self.held = None;
        self.grant = None;
        self.renewal = None;
        self.next_tick_us = now.mono_us;
    }

    // --- what is due --------------------------------------------------------------------------------------------

    fn tick_held(&mut self, time_us: i64, now: Now) {
        let Some(held) = &mut self.held else { return };
        let end_us = held.lease.end_us();
        if time_us < end_us {
            self.next_tick_us = self.next_tick_us.min(now.mono_us + end_us - time_us);
        } else if !held.expired {
            held.expired = true;
            let reason = format!("the lease ended at {}, and no server has extended it", utc(end_us));
            let machine_id = held.lease.machine;
            (self.hooks.on_lost)(LeaseLoss { kind: LossKind::Expired, machine_id, reason });
        }
        let (renewable, renew_at_us) = (held.renewable && self.renewal.is_none(), held.renew_at_us);
        if renewable && now.mono_us >= renew_at_us {
            let turn = (self.hooks.draw)();
            self.renewal = Some(Renewal { sending: self.new_sending(now), turn });
        } else if renewable {
            self.next_tick_us = self.next_tick_us.min(renew_at_us);
        }
    }

    fn new_sending(&mut self, now: Now) -> Sending {
        self.numbers += 1;
        Sending { number: self.numbers, at_us: now.mono_us, in_flight: false, delay_us: RETRY_FIRST_US, hops: 0 }
    }

    fn new_grant(&mut self, now: Now) -> Grant {
        Grant {
            sending: self.new_sending(now),
            token: (self.hooks.draw)(),
            server: String::new(),
            avoid: self.last_server.clone(),
            spent: false,
            repeats: 0,
        }
    }

    // --- answers ------------------------------------------------------------------------------------------------

    /// Returns the grant, unless it was answered.
    fn on_grant(&mut self, mut grant: Grant, outcome: LeaseOutcome, now: Now) -> Option<Grant> {
        let LeaseOutcome { server, kind, message } = outcome;
        let mut retry_after = None;
        match kind {
            Outcome::Lease(lease) => {
                let fault = self.adopt(*lease, now).err()?;
                (self.hooks.on_refused)(format!("the lease of {server} cannot be used: {fault}"), None);
                grant.spent = true; // the token would get the same lease
            }
            Outcome::NotReady { retry_after_us } => {
                (self.hooks.on_refused)(message, None);
                grant.spent = true;
                retry_after = Some(retry_after_us);
            }
            Outcome::NoAnswer { sent } => {
                if !server.is_empty() {
                    (self.hooks.on_refused)(message, None);
                }
                grant.spent |= sent;
                retry_after = Some(0).filter(|_| grant.spent && !server.is_empty());
            }
            Outcome::Refused => (self.hooks.on_refused)(message, None),
            Outcome::RefusedForGood(error) => (self.hooks.on_refused)(message, Some(error)),
            // This token's lease has ended, or a copy of this process has extended it.
            _ => grant.spent = true,
        }
        // The server that may have granted it is asked again, and then another one.
        match retry_after {
            Some(retry_after_us) if grant.repeats < REPEATS_MAX => {
                grant.repeats += 1;
                grant.server = server;
                self.retry(&mut grant.sending, retry_after_us, now);
            }
            _ => self.ask_another(&mut grant, server, now),
        }
        Some(grant)
    }

    fn ask_another(&mut self, grant: &mut Grant, server: String, now: Now) {
        if std::mem::take(&mut grant.spent) {
            grant.token = (self.hooks.draw)();
        }
        grant.server.clear();
        grant.repeats = 0;
        if server.is_empty() {
            grant.avoid.clear(); // all were asked
            self.retry(&mut grant.sending, 0, now);
        } else {
            grant.avoid.push(server);
            grant.sending.at_us = now.mono_us;
        }
    }

    /// Fails with a sentence if the lease cannot be used.
    fn adopt(&mut self, lease: Lease, now: Now) -> Result<(), String> {
        let used_tick = self.ids.adopt(&lease)?;
        self.release(used_tick, now);
        self.renewal = None;
        self.last_server = vec![lease.server.clone()];
        self.grant_not_before_us = now.mono_us + GRANT_PAUSE_US;
        let (renew_in_us, ending) = (lease.renew_in_us, lease.ending);
        self.held = Some(Held {
            server: lease.server.clone(),
            lease,
            acknowledged: String::new(),
            replace_at_us: 0,
            renew_at_us: 0,
            renewable: true,
            unknown: false,
            expired: false,
        });
        self.schedule(renew_in_us, ending, now);
        Ok(())
    }

    /// Sets the times of the held lease after an answer.
    fn schedule(&mut self, renew_in_us: i64, ending: bool, now: Now) {
        let time_us = self.ids.advance();
        let Some(held) = &mut self.held else { return };
        let end_us = held.lease.end_us();
        let third = (end_us - time_us).max(0) / 3;
        held.replace_at_us = end_us - third;
        held.renew_at_us = now.mono_us + renew_in_us.min(third).max(RENEW_MIN_US);
        held.renewable = !ending;
        held.expired &= time_us >= end_us;
    }

    /// Returns the renewal, unless it was answered.
    fn on_renewal(&mut self, mut renewal: Renewal, outcome: LeaseOutcome, now: Now) -> Option<Renewal> {
        let held = self.held.as_mut()?;
        let LeaseOutcome { server, kind, message } = outcome;
        match kind {
            Outcome::Lease(lease) => {
                let same = lease.id == held.lease.id && lease.base_bits == held.lease.base_bits;
                if same && lease.until_tick >= held.lease.until_tick {
                    held.lease.until_tick = lease.until_tick;
                    held.acknowledged = renewal.turn;
                    held.server = lease.server;
                    self.ids.extend_to(lease.until_tick);
                    self.schedule(lease.renew_in_us, lease.ending, now);
                    if !lease.ending {
                        self.grant = self.grant.take().filter(|one| one.spent || one.sending.in_flight);
                    }
                    return None;
                }
                (self.hooks.on_refused)(format!("{server} answered a renewal with another lease"), None);
                self.retry(&mut renewal.sending, 0, now);
            }
            Outcome::Revoked | Outcome::Outdated => {
                self.on_revoked(message, now);
                return None;
            }
            Outcome::Unknown => {
                self.on_unknown(now);
                return None;
            }
            Outcome::Refused => {
                (self.hooks.on_refused)(message, None);
                self.on_unknown(now);
                return None;
            }
            Outcome::Elsewhere(owner) => {
                held.server = owner;
                self.follow(&mut renewal.sending, now);
            }
            Outcome::NotReady { retry_after_us } => {
                (self.hooks.on_refused)(message, None);
                self.retry(&mut renewal.sending, retry_after_us, now);
            }
            Outcome::RefusedForGood(_) | Outcome::NoAnswer { .. } | Outcome::Released => {
                (self.hooks.on_refused)(message, None);
                self.retry(&mut renewal.sending, 0, now);
            }
        }
        Some(renewal)
    }

    /// The server does not have the lease, or grants none any more: the lease is used to its end.
    fn on_unknown(&mut self, now: Now) {
        if let Some(held) = &mut self.held {
            held.renewable = false;
            held.unknown = true;
            held.replace_at_us = i64::MIN;
        }
        if let Some(grant) = self.grant.as_mut().filter(|one| !one.spent) {
            grant.sending.at_us = now.mono_us; // a server answers again
        }
    }

    fn on_revoked(&mut self, message: String, now: Now) {
        let Some(held) = self.held.take() else { return };
        let reason = Some(message).filter(|text| !text.is_empty());
        let reason = reason
            .unwrap_or_else(|| "the server has ended it, because another process may have its ids".to_owned());
        let machine_id = held.lease.machine;
        let at = utc(now.wall_us);
        let text = format!("the lease of machine id {machine_id} was revoked at {at}: {reason}");
        self.ids.close(Error::new(ErrorKind::Unavailable, text));
        (self.hooks.on_lost)(LeaseLoss { kind: LossKind::Revoked, machine_id, reason });
    }

    /// Returns the release, unless it was answered.
    fn on_release(&self, mut release: Release, outcome: LeaseOutcome, now: Now) -> Option<Release> {
        match outcome.kind {
            Outcome::Elsewhere(owner) => {
                release.server = owner;
                self.follow(&mut release.sending, now);
            }
            Outcome::NoAnswer { .. } => self.retry(&mut release.sending, 0, now),
            Outcome::NotReady { retry_after_us } => self.retry(&mut release.sending, retry_after_us, now),
            _ => return None,
        }
        Some(release)
    }

    /// Asks for the end of the lease, whose ids are closed.
    fn release(&mut self, used_tick: i64, now: Now) {
        let sending = self.new_sending(now);
        let Some(held) = self.held.as_ref().filter(|held| !held.unknown) else { return };
        if self.releases.len() == RELEASES_MAX {
            self.releases.remove(0);
        }
        let what = What::Release {
            lease: held.lease.id.clone(),
            turn: self.renewal.as_ref().map_or(&held.acknowledged, |renewal| &renewal.turn).clone(),
            used_tick: used_tick.min(held.lease.until_tick - 1),
        };
        let useless_at_us = held.lease.end_us();
        self.releases.push(Release { sending, server: held.server.clone(), what, useless_at_us });
    }

    /// Repeats the request at once at the server that has the lease, unless servers send it from one to the other.
    fn follow(&self, sending: &mut Sending, now: Now) {
        sending.hops += 1;
        if sending.hops > HOPS_MAX {
            return self.retry(sending, 0, now);
        }
        sending.at_us = now.mono_us;
    }

    /// Delays the next repetition; the delay doubles, and half of it is random.
    fn retry(&self, sending: &mut Sending, at_least_us: i64, now: Now) {
        let drawn = (self.hooks.fraction)();
        let delay_us = (sending.delay_us as f64 * (1.0 + drawn) / 2.0) as i64;
        sending.at_us = now.mono_us + delay_us.max(at_least_us);
        sending.delay_us = (2 * sending.delay_us).min(self.retry_max_us);
    }
}

impl Sending {
    /// Returns whether it is sent now; otherwise moves `next` to its time.
    fn is_due(&mut self, now: Now, next: &mut i64) -> bool {
        if self.in_flight {
            return false;
        }
        self.in_flight = now.mono_us >= self.at_us;
        if !self.in_flight {
            *next = (*next).min(self.at_us);
        }
        self.in_flight
    }
}
