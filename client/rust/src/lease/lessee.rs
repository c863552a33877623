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
    /// The wall clock, in milliseconds.
    pub(crate) clock_ms: i64,
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
    /// The server has no such lease. It will not extend it, but the interval remains valid.
    Unknown,
    /// The server at this address has the lease.
    Elsewhere(String),
    /// The request may be repeated at this server after so many microseconds.
    /// `claiming`: it is claiming a machine id for the token.
    NotReady {
        retry_after_us: i64,
        claiming: bool,
    },
    /// Another server may grant a lease.
    Refused,
    /// Every server would refuse.
    RefusedForGood(Error),
    /// No id may be issued under these terms.
    Unusable(Unusable),
    /// `sent`: the server may have done it.
    NoAnswer {
        sent: bool,
    },
}

/// What is needed to give back a lease that cannot be used. Its terms may be wrong in every respect.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) id: String,
    pub(crate) server: String,
    pub(crate) from_tick: i64,
    pub(crate) end_us: i64,
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
    /// Returns whether the list of servers has this address.
    pub(crate) knows: Box<dyn Fn(&str) -> bool + Send>,
    /// A request failed, and is repeated or given up; with the error if every server would refuse.
    pub(crate) on_refused: Box<dyn Fn(String, Option<Error>) + Send>,
    /// Returns 128 unguessable random bits as 32 hexadecimal digits.
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
    /// The wall clock minus the monotonic clock, when it was sent. Of several times, the lowest: which of them was
    /// answered is unknown.
    wall_at_zero_us: i64,
    /// It was sent in a jump of the wall clock, the last time.
    sent_in_jump: bool,
}

struct Grant {
    sending: Sending,
    token: String,
    server: String,
    avoid: Vec<String>,
    /// A server may have granted a lease for this token.
    spent: bool,
    /// The token before, and the only server that was asked in this round.
    former: Option<(String, String)>,
    /// The server has just answered that it is claiming a machine id.
    claiming: bool,
    repeats: u32,
    /// Of a server that would refuse every repetition.
    refusal: Option<Error>,
    /// Another server may still grant a lease.
    hopeful: bool,
}

struct Renewal {
    sending: Sending,
    turn: String,
}

struct Release {
    sending: Sending,
    server: String,
    granted_by: String, // address of the server, as the grant named it
    what: What,
    useless_at_us: i64, // by the id clock
}

struct Held {
    lease: Lease,
    server: String,
    granted_by: String,   // address of the server, as the grant named it
    acknowledged: String, // turn of the last answer
    third_us: i64,        // of the interval
    replace_at_us: i64,   // by the id clock: then another lease is requested
    renew_at_us: i64,
    answered_at_us: i64,
    renewable: bool,
    unknown: bool, // the server does not have it
    expired: bool, // and reported
}

const RETRY_FIRST_US: i64 = 200_000;
const RETRY_MAX_US: i64 = 2_000_000;
const RETRY_PART: i64 = 12; // of the interval: the longest delay after a failure
const RETRY_MAX_LEAST_US: i64 = 100_000;
const ADVICE_MAX_US: i64 = 10_000_000; // of a server, to wait
const RENEW_MIN_US: i64 = 100_000;
const TICK_MAX_US: i64 = 1_000_000;
const GRANT_PAUSE_US: i64 = 2_000_000; // between a lease and the request for another
const REPEATS_MAX: u32 = 1; // of a grant at one server
const HOPS_MAX: u32 = 2;
const RELEASES_MAX: usize = 4;

/// Obtains a lease, extends it, and obtains the next one in time.
///
/// 1. A grant is repeated with its token at the server that may have granted it, once, or until it is answered if that is
///    the only server. Then another one is asked with a fresh token: nothing was issued under the first, and its lease
///    expires.
/// 2. A renewal has a fresh turn, which is repeated until it is answered, and the turn that was answered last. If several
///    requests are due, it is sent first.
/// 3. The lease is used until its end. Only a revocation ends it earlier: then the generator is closed at once.
/// 4. A lease that is ending is renewed, too: its server extends it up to a final bound. When a third of the interval is
///    left, or at once if the server does not extend the lease, another one is requested. It replaces the first, and continues in a later tick.
/// 5. A lease that was replaced is released: first its ids are closed, then the last tick is read. A lease that cannot be
///    used is released at once.
/// 6. A lease's id is secret. It is sent only to servers in the list, to the one that granted the lease, and to the one
///    that the grant named.
///
/// Reads no clock but the id clock, sends nothing itself and never waits.
pub(crate) struct Lessee {
    ids: Arc<LeasedIds>,
    hooks: Hooks,
    ahead_us: i64,
    interval_us: i64, // that a server gave last, at most `ahead_us`; before that, `ahead_us`
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
            ahead_us,
            interval_us: ahead_us,
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
        let (time_us, jumped) = self.ids.read_clocks();
        self.next_tick_us = now.mono_us + TICK_MAX_US;
        self.hurry(jumped, now);
        self.tick_held(time_us, now);
        let replace = self.held.as_ref().map_or(true, |held| time_us >= held.replace_at_us);
        if replace && !self.stopping && self.grant.is_none() && now.mono_us >= self.grant_not_before_us {
            self.grant = Some(self.new_grant(now));
        }
        self.releases.retain(|one| one.useless_at_us > time_us);

        let (mut due, next, clock_ms) = (Vec::new(), &mut self.next_tick_us, now.wall_us / 1000);
        if let (Some(renewal), Some(held)) = (&mut self.renewal, &self.held) {
            if renewal.sending.is_due(now, jumped, next) {
                let what = What::Renewal {
                    lease: held.lease.id.clone(),
                    turn: renewal.turn.clone(),
                    acknowledged: held.acknowledged.clone(),
                };
                due.push((renewal.sending.number, LeaseRequest { server: held.server.clone(), what, clock_ms }));
            }
        }
        if let Some(grant) = &mut self.grant {
            if grant.sending.is_due(now, jumped, next) {
                let what = What::Grant { avoid: grant.avoid.clone(), token: grant.token.clone() };
                due.push((grant.sending.number, LeaseRequest { server: grant.server.clone(), what, clock_ms }));
            }
        }
        for one in &mut self.releases {
            if one.sending.is_due(now, jumped, next) {
                let (server, what) = (one.server.clone(), one.what.clone());
                due.push((one.sending.number, LeaseRequest { server, what, clock_ms }));
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

    /// After a jump of the wall clock, makes a request due whose answer confirms it: a renewal, or a request that was sent
    /// before the jump. If that fails, too, it has the ordinary delay.
    fn hurry(&mut self, jumped: bool, now: Now) {
        if let Some(held) = self.held.as_mut().filter(|_| jumped) {
            held.renew_at_us = held.renew_at_us.min(held.answered_at_us + RENEW_MIN_US);
        }
        let renewal = self.renewal.as_mut().map(|one| &mut one.sending);
        for sending in renewal.into_iter().chain(self.grant.as_mut().map(|one| &mut one.sending)) {
            sending.sent_in_jump &= jumped;
            if jumped && !sending.sent_in_jump {
                sending.at_us = sending.at_us.min(now.mono_us);
            }
        }
    }

    fn new_sending(&mut self, now: Now) -> Sending {
        self.numbers += 1;
        Sending {
            number: self.numbers,
            at_us: now.mono_us,
            in_flight: false,
            delay_us: RETRY_FIRST_US,
            hops: 0,
            wall_at_zero_us: i64::MAX,
            sent_in_jump: false,
        }
    }

    fn new_grant(&mut self, now: Now) -> Grant {
        Grant {
            sending: self.new_sending(now),
            token: (self.hooks.draw)(),
            server: String::new(),
            avoid: self.last_server.clone(),
            spent: false,
            former: None,
            claiming: false,
            repeats: 0,
            refusal: None,
            hopeful: false,
        }
    }

    // --- answers ------------------------------------------------------------------------------------------------

    /// Returns the grant, unless it was answered.
    fn on_grant(&mut self, mut grant: Grant, outcome: LeaseOutcome, now: Now) -> Option<Grant> {
        let LeaseOutcome { server, kind, message } = outcome;
        let mut retry_after = None;
        match kind {
            Outcome::Lease(lease) => {
                let given = Unusable {
                    id: lease.id.clone(),
                    server: lease.server.clone(),
                    from_tick: lease.from_tick,
                    end_us: lease.end_us(),
                };
                let fault = self.adopt(*lease, &server, grant.sending.wall_at_zero_us, now).err()?;
                (self.hooks.on_refused)(format!("the lease of {server} cannot be used: {fault}"), None);
                self.give_back(given, &server, now);
                grant.spent = true; // the token would get the same lease
            }
            Outcome::Unusable(terms) => {
                (self.hooks.on_refused)(message, None);
                self.give_back(terms, &server, now);
                grant.spent = true;
            }
            Outcome::NotReady { retry_after_us, claiming } => {
                (self.hooks.on_refused)(message, None);
                grant.spent = true;
                grant.hopeful = true;
                grant.repeats = if claiming { 0 } else { grant.repeats };
                grant.claiming = claiming;
                retry_after = Some(retry_after_us);
            }
            Outcome::NoAnswer { sent } => {
                if !server.is_empty() {
                    (self.hooks.on_refused)(message, None);
                    grant.hopeful = true;
                }
                grant.spent |= sent;
                retry_after = Some(0).filter(|_| grant.spent && !server.is_empty());
            }
            Outcome::Refused => (self.hooks.on_refused)(message, None),
            Outcome::RefusedForGood(error) => {
                (self.hooks.on_refused)(message, None);
                grant.refusal.get_or_insert(error);
            }
            // This token's lease has ended, or a copy of this process has extended it.
            _ => grant.spent = true,
        }
        // Repeats the request at the server that may have granted it, and then fails over.
        match retry_after {
            Some(retry_after_us) if grant.claiming || grant.repeats < REPEATS_MAX => {
                grant.repeats += u32::from(!std::mem::take(&mut grant.claiming));
                grant.server = server;
                self.retry(&mut grant.sending, retry_after_us, now);
            }
            Some(_) => {
                let former = (grant.token.clone(), server.clone());
                self.ask_another(&mut grant, server, now);
                grant.former = Some(former).filter(|_| grant.avoid.len() == 1);
            }
            None => self.ask_another(&mut grant, server, now),
        }
        Some(grant)
    }

    fn ask_another(&mut self, grant: &mut Grant, server: String, now: Now) {
        if std::mem::take(&mut grant.spent) {
            grant.token = (self.hooks.draw)();
        }
        grant.server.clear();
        grant.repeats = 0;
        let former = grant.former.take();
        if server.is_empty() {
            grant.avoid.clear(); // all were tried
            if let Some(former) = former {
                (grant.token, grant.server) = former;
                grant.spent = true;
            }
            if let Some(error) = grant.refusal.take().filter(|_| !std::mem::take(&mut grant.hopeful)) {
                (self.hooks.on_refused)(error.to_string(), Some(error));
            }
            grant.hopeful = false;
            self.retry(&mut grant.sending, 0, now);
        } else {
            grant.avoid.push(server);
            grant.sending.at_us = now.mono_us;
        }
    }

    fn holds(&self, id: &str) -> bool {
        self.held.as_ref().is_some_and(|held| held.lease.id == id)
    }

    /// Fails with a sentence if the lease cannot be used.
    fn adopt(&mut self, lease: Lease, address: &str, wall_at_zero_us: i64, now: Now) -> Result<(), String> {
        if self.holds(&lease.id) {
            return Err("it is held already".to_owned());
        }
        let used_tick = self.ids.adopt(&lease)?;
        self.ids.confirm(wall_at_zero_us);
        self.release(used_tick, now);
        self.renewal = None;
        let server = self.home(&lease.server, address);
        self.last_server = vec![server.clone()];
        self.grant_not_before_us = now.mono_us + GRANT_PAUSE_US;
        let (renew_in_us, ending) = (lease.renew_in_us, lease.ending);
        self.held = Some(Held {
            server,
            granted_by: lease.server.clone(),
            lease,
            acknowledged: String::new(),
            third_us: 0,
            replace_at_us: 0,
            renew_at_us: 0,
            answered_at_us: 0,
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
        let left_us = (end_us - time_us).max(0);
        if left_us > 0 {
            self.interval_us = left_us.min(self.ahead_us);
        }
        let third = left_us / 3;
        // A lease that is ending is finally not extended any further.
        held.third_us = if ending { third.max(held.third_us) } else { third };
        held.replace_at_us = end_us - held.third_us;
        held.answered_at_us = now.mono_us;
        held.renew_at_us = now.mono_us + renew_in_us.min(third).max(RENEW_MIN_US);
        held.expired &= time_us >= end_us;
    }

    /// Returns the renewal, unless it was answered.
    fn on_renewal(&mut self, mut renewal: Renewal, outcome: LeaseOutcome, now: Now) -> Option<Renewal> {
        let held = self.held.as_mut()?;
        let LeaseOutcome { server, kind, message } = outcome;
        match kind {
            Outcome::Lease(lease) => {
                let ids_of = |one: &Lease| (one.id.clone(), one.base_bits, one.shape);
                let same = ids_of(&lease) == ids_of(&held.lease);
                if same && lease.until_tick >= held.lease.until_tick {
                    held.lease.until_tick = lease.until_tick;
                    held.acknowledged = renewal.turn;
                    held.server = if (self.hooks.knows)(&lease.server) { lease.server } else { server };
                    self.ids.extend_to(lease.until_tick);
                    self.ids.confirm(renewal.sending.wall_at_zero_us);
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
                held.unknown = true;
                self.on_extended_no_further(now);
                return None;
            }
            Outcome::Refused => {
                (self.hooks.on_refused)(message, None);
                self.on_extended_no_further(now);
                return None;
            }
            Outcome::Elsewhere(owner) => {
                let granted_by = held.granted_by.clone();
                match (self.follow(&mut renewal.sending, owner, &granted_by, now), &mut self.held) {
                    (Some(owner), Some(held)) => held.server = owner,
                    _ => {
                        (self.hooks.on_refused)(message, None);
                        self.retry(&mut renewal.sending, 0, now);
                    }
                }
            }
            Outcome::NotReady { retry_after_us, .. } => {
                (self.hooks.on_refused)(message, None);
                self.retry(&mut renewal.sending, retry_after_us, now);
            }
            Outcome::RefusedForGood(_) | Outcome::NoAnswer { .. } | Outcome::Unusable(_) | Outcome::Released => {
                (self.hooks.on_refused)(message, None);
                self.retry(&mut renewal.sending, 0, now);
            }
        }
        Some(renewal)
    }

    /// The lease is used to its end, and another one is requested at once.
    fn on_extended_no_further(&mut self, now: Now) {
        if let Some(held) = &mut self.held {
            held.renewable = false;
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
        self.ids.close(Error::new(ErrorKind::NoLease, text));
        (self.hooks.on_lost)(LeaseLoss { kind: LossKind::Revoked, machine_id, reason });
    }

    /// Returns the release, unless it was answered.
    fn on_release(&self, mut release: Release, outcome: LeaseOutcome, now: Now) -> Option<Release> {
        match outcome.kind {
            Outcome::Elsewhere(owner) => match self.follow(&mut release.sending, owner, &release.granted_by, now) {
                Some(owner) => release.server = owner,
                None => self.retry(&mut release.sending, 0, now),
            },
            Outcome::NoAnswer { .. } => self.retry(&mut release.sending, 0, now),
            Outcome::NotReady { retry_after_us, .. } => self.retry(&mut release.sending, retry_after_us, now),
            _ => return None,
        }
        Some(release)
    }

    /// Asks for the end of the lease, whose ids are closed.
    fn release(&mut self, used_tick: i64, now: Now) {
        let sending = self.new_sending(now);
        let Some(held) = self.held.as_ref().filter(|held| !held.unknown) else { return };
        let what = What::Release {
            lease: held.lease.id.clone(),
            turn: self.renewal.as_ref().map_or(&held.acknowledged, |renewal| &renewal.turn).clone(),
            used_tick: used_tick.min(held.lease.until_tick - 1),
        };
        let (server, granted_by) = (held.server.clone(), held.granted_by.clone());
        let useless_at_us = held.lease.end_us();
        self.add_release(Release { sending, server, granted_by, what, useless_at_us });
    }

    /// Releases a lease of which no id was issued. `address` is that of the server that granted it. The terms may be wrong:
    /// an end that has passed, or is more than `ahead` away, is ignored.
    fn give_back(&mut self, terms: Unusable, address: &str, now: Now) {
        if terms.id.is_empty() || self.holds(&terms.id) {
            return;
        }
        let (sending, server) = (self.new_sending(now), self.home(&terms.server, address));
        let what = What::Release { lease: terms.id, turn: String::new(), used_tick: terms.from_tick.max(0) - 1 };
        let time_us = self.ids.advance();
        let latest_us = time_us + self.ahead_us;
        let useless_at_us = if terms.end_us > time_us { terms.end_us.min(latest_us) } else { latest_us };
        self.add_release(Release { sending, server, granted_by: terms.server, what, useless_at_us });
    }

    fn add_release(&mut self, release: Release) {
        if self.releases.len() == RELEASES_MAX {
            self.releases.remove(0);
        }
        self.releases.push(release);
    }

    /// Returns the server to ask next about a lease: the one that its terms name, or the one that sent the terms.
    fn home(&self, named: &str, address: &str) -> String {
        if (self.hooks.knows)(named) { named } else { address }.to_owned()
    }

    /// Repeats the request at once at the server that is said to have the lease, which it returns; not if that may be a
    /// stranger's address, or if servers name each other.
    fn follow(&self, sending: &mut Sending, owner: String, granted_by: &str, now: Now) -> Option<String> {
        let permitted = (self.hooks.knows)(&owner) || owner == granted_by;
        if !permitted || sending.hops == HOPS_MAX {
            return None;
        }
        sending.hops += 1;
        sending.at_us = now.mono_us;
        Some(owner)
    }

    /// Returns the longest delay after a failure: a twelfth of the interval, but at least 100 ms, and at most 2 s.
    fn longest_delay_us(&self) -> i64 {
        (self.interval_us / RETRY_PART).clamp(RETRY_MAX_LEAST_US, RETRY_MAX_US)
    }

    /// Delays the next repetition. The delay doubles, and half of it is random. A server may ask for a longer one, but not
    /// so long that the lease ends.
    fn retry(&self, sending: &mut Sending, advice_us: i64, now: Now) {
        let drawn = (self.hooks.fraction)();
        let longest_us = sending.delay_us.min(self.longest_delay_us());
        let delay_us = (longest_us as f64 * (1.0 + drawn) / 2.0) as i64;
        let left_us = self.held.as_ref().map_or(0, |held| held.lease.end_us() - self.ids.advance());
        let most_us = if left_us > 0 { ADVICE_MAX_US.min(left_us / 2) } else { ADVICE_MAX_US };
        sending.at_us = now.mono_us + delay_us.max(advice_us.min(most_us));
        sending.delay_us = 2 * longest_us;
    }
}

impl Sending {
    /// Returns whether it is sent now; otherwise moves `next` to its time.
    fn is_due(&mut self, now: Now, jumped: bool, next: &mut i64) -> bool {
        if self.in_flight {
            return false;
        }
        self.in_flight = now.mono_us >= self.at_us;
        if self.in_flight {
            self.wall_at_zero_us = self.wall_at_zero_us.min(now.wall_us - now.mono_us);
            self.sent_in_jump = jumped;
        } else {
            *next = (*next).min(self.at_us);
        }
        self.in_flight
    }
}
