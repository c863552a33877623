//! A lessee with clocks and servers that a test moves.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ids::{Clock, LeasedIds};
use super::lessee::{Hooks, LeaseLoss, LeaseOutcome, LeaseRequest, Lessee, Outcome, What};
use super::pace::Now;
use super::terms::Lease;
use super::wire::LeaseTerms;
use crate::layout::Layout;

pub(crate) const EPOCH_MS: i64 = 1_704_067_200_000;
pub(crate) const NOON_MS: i64 = 1_795_694_400_000; // 2026-11-26 12:00:00 UTC
pub(crate) const SECOND: i64 = 1_000;

pub(crate) type Hook = Box<dyn FnOnce() + Send>;

#[derive(Clone)]
pub(crate) struct FakeClock(Arc<Mutex<Readings>>);

struct Readings {
    now: Now,
    slept: Duration,
    process: u32,
    fractions: Vec<f64>,
    /// Runs between a reading of the clocks and what follows it.
    after_read: Option<Hook>,
}

impl FakeClock {
    pub(crate) fn new() -> FakeClock {
        let now = Now { wall_us: NOON_MS * 1000, mono_us: 1_000_000 };
        FakeClock(Arc::new(Mutex::new(Readings {
            now,
            slept: Duration::ZERO,
            process: 1,
            fractions: Vec::new(),
            after_read: None,
        })))
    }

    pub(crate) fn now(&self) -> Now {
        self.0.lock().unwrap().now
    }

    pub(crate) fn advance(&self, ms: i64) {
        self.advance_us(ms * 1000);
    }

    fn advance_us(&self, us: i64) {
        let mut readings = self.0.lock().unwrap();
        readings.now.wall_us += us;
        readings.now.mono_us += us;
    }

    pub(crate) fn step(&self, ms: i64) {
        self.0.lock().unwrap().now.wall_us += ms * 1000;
    }

    /// Returns the wall clock minus the monotonic clock.
    pub(crate) fn wall_at_zero(&self) -> i64 {
        self.now().wall_us - self.now().mono_us
    }

    pub(crate) fn slept(&self) -> Duration {
        self.0.lock().unwrap().slept
    }

    pub(crate) fn fork(&self) {
        self.0.lock().unwrap().process += 1;
    }

    /// Draws these, and then 0.
    pub(crate) fn draw(&self, fractions: &[f64]) {
        self.0.lock().unwrap().fractions = fractions.iter().rev().copied().collect();
    }

    pub(crate) fn after_read(&self, hook: impl FnOnce() + Send + 'static) {
        self.0.lock().unwrap().after_read = Some(Box::new(hook));
    }
}

impl Clock for FakeClock {
    fn read(&self) -> Now {
        let (now, hook) = {
            let mut readings = self.0.lock().unwrap();
            (readings.now, readings.after_read.take())
        };
        if let Some(hook) = hook {
            hook();
        }
        now
    }

    fn wall_us(&self) -> i64 {
        self.now().wall_us
    }

    fn sleep(&self, time: Duration) {
        self.advance_us(time.as_micros() as i64);
        self.0.lock().unwrap().slept += time;
    }

    fn process(&self) -> u32 {
        self.0.lock().unwrap().process
    }

    fn fraction(&self) -> f64 {
        self.0.lock().unwrap().fractions.pop().unwrap_or(0.0)
    }
}

pub(crate) fn terms(machine: i32, from_ms: i64, until_ms: i64) -> LeaseTerms {
    LeaseTerms {
        lease: format!("lease-{machine}"),
        number: 1,
        machine,
        worker: machine,
        rack: 0,
        base_bits: i64::from(machine) << 12,
        tick_shift: 22,
        sequence_shift: 0,
        sequence_bits: 12,
        sequence_from: 0,
        sequence_count: 4096,
        tick_ms: 1,
        epoch_ms: EPOCH_MS,
        from_tick: from_ms - EPOCH_MS,
        until_tick: until_ms - EPOCH_MS,
        renew_in_ms: ((until_ms - from_ms) / 3) as i32,
        ending: false,
        server: format!("10.0.0.{machine}:7609"),
    }
}

pub(crate) fn layout() -> Layout {
    Layout::parse("firn").unwrap()
}

pub(crate) fn lease_of(terms: &LeaseTerms) -> Lease {
    Lease::read(terms, Some(&layout())).unwrap()
}

pub(crate) fn lease(machine: i32, from_ms: i64, until_ms: i64) -> Lease {
    lease_of(&terms(machine, from_ms, until_ms))
}

pub(crate) fn tick_of(id: i64) -> i64 {
    id >> 22
}

pub(crate) fn machine_of(id: i64) -> i64 {
    id >> 12 & 1023
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Grant,
    Renewal,
    Release,
}

pub(crate) fn kind_of(request: &LeaseRequest) -> Kind {
    match request.what {
        What::Grant { .. } => Kind::Grant,
        What::Renewal { .. } => Kind::Renewal,
        What::Release { .. } => Kind::Release,
    }
}

pub(crate) struct Rig {
    pub(crate) clock: FakeClock,
    pub(crate) ids: Arc<LeasedIds>,
    pub(crate) lessee: Lessee,
    pub(crate) sent: Vec<(u64, LeaseRequest)>,
    pub(crate) losses: Arc<Mutex<Vec<LeaseLoss>>>,
    pub(crate) refusals: Arc<Mutex<Vec<String>>>,
    /// Servers that are not in the list.
    pub(crate) strangers: Arc<Mutex<HashSet<String>>>,
    pub(crate) taken: HashSet<i64>,
    last: i64,
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with_ahead(60 * SECOND)
    }

    pub(crate) fn with_ahead(ahead_ms: i64) -> Rig {
        let clock = FakeClock::new();
        let ids = Arc::new(LeasedIds::new(clock.clone()));
        let (losses, refusals) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<Mutex<Vec<_>>>::default());
        let strangers = Arc::<Mutex<HashSet<String>>>::default();
        let unlisted = Arc::clone(&strangers);
        let (lost, refused, drawn) = (Arc::clone(&losses), Arc::clone(&refusals), Mutex::new(0));
        let hooks = Hooks {
            on_lost: Box::new(move |loss| lost.lock().unwrap().push(loss)),
            knows: Box::new(move |address| !unlisted.lock().unwrap().contains(address)),
            on_refused: Box::new(move |message, _| refused.lock().unwrap().push(message)),
            draw: Box::new(move || {
                let mut drawn = drawn.lock().unwrap();
                *drawn += 1;
                format!("{:032x}", *drawn)
            }),
            fraction: Box::new(|| 0.0),
        };
        let lessee = Lessee::new(Arc::clone(&ids), ahead_ms * 1000, hooks);
        Rig { clock, ids, lessee, sent: Vec::new(), losses, refusals, strangers, taken: HashSet::new(), last: -1 }
    }

    pub(crate) fn tick(&mut self) {
        self.sent.extend(self.lessee.tick(self.clock.now()));
    }

    /// Lets the time pass, as the task of a generator does.
    pub(crate) fn pass(&mut self, ms: i64) {
        let until = self.clock.now().mono_us + ms * 1000;
        self.tick();
        loop {
            let left = until - self.clock.now().mono_us;
            if left <= 0 {
                return;
            }
            let due = self.lessee.due_us() - self.clock.now().mono_us;
            self.clock.advance_us(due.max(1000).min(left));
            self.tick();
        }
    }

    fn all(&self, kind: Kind) -> impl Iterator<Item = &(u64, LeaseRequest)> {
        self.sent.iter().filter(move |(_, request)| kind_of(request) == kind)
    }

    /// Returns the last request of this kind.
    pub(crate) fn newest(&self, kind: Kind) -> LeaseRequest {
        self.all(kind).last().unwrap().1.clone()
    }

    pub(crate) fn number(&self, kind: Kind) -> u64 {
        self.all(kind).last().unwrap().0
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.all(kind).count()
    }

    /// Returns the servers to avoid and the token of the last grant.
    pub(crate) fn grant(&self) -> (Vec<String>, String) {
        match self.newest(Kind::Grant).what {
            What::Grant { avoid, token } => (avoid, token),
            _ => unreachable!(),
        }
    }

    pub(crate) fn token(&self) -> String {
        self.grant().1
    }

    /// Returns the turn and the acknowledged turn of the last renewal.
    pub(crate) fn turns(&self) -> (String, String) {
        match self.newest(Kind::Renewal).what {
            What::Renewal { turn, acknowledged, .. } => (turn, acknowledged),
            _ => unreachable!(),
        }
    }

    /// Returns the turn and the used tick of the last release.
    pub(crate) fn released(&self) -> (String, i64) {
        match self.newest(Kind::Release).what {
            What::Release { turn, used_tick, .. } => (turn, used_tick),
            _ => unreachable!(),
        }
    }

    /// Answers the last request of this kind.
    pub(crate) fn answer(&mut self, kind: Kind, server: &str, outcome: Outcome) {
        self.answer_with(kind, server, outcome, "");
    }

    pub(crate) fn answer_with(&mut self, kind: Kind, server: &str, outcome: Outcome, message: &str) {
        let outcome = LeaseOutcome { server: server.to_owned(), kind: outcome, message: message.to_owned() };
        self.lessee.on_reply(self.number(kind), outcome, self.clock.now());
        self.tick();
    }

    pub(crate) fn answer_lease(&mut self, kind: Kind, lease: Lease) {
        let server = lease.server.clone();
        self.answer(kind, &server, Outcome::Lease(Box::new(lease)));
    }

    pub(crate) fn no_answer(&mut self, kind: Kind, server: &str, sent: bool) {
        self.answer_with(kind, server, Outcome::NoAnswer { sent }, &format!("{server} timeout"));
    }

    /// Grants what the lessee has requested, or requests now.
    pub(crate) fn hold(&mut self, machine: i32, lasts_ms: i64) -> Lease {
        self.tick();
        let now = self.clock.now().wall_us / 1000;
        let granted = lease(machine, now, now + lasts_ms);
        self.answer_lease(Kind::Grant, granted.clone());
        granted
    }

    /// Takes ids, which must rise.
    pub(crate) fn take(&mut self, count: usize) -> Vec<i64> {
        (0..count)
            .map(|_| {
                let id = self.ids.next().unwrap();
                assert!(id > self.last, "{id} after {}", self.last);
                self.last = id;
                assert!(self.taken.insert(id));
                id
            })
            .collect()
    }

    pub(crate) fn refusal(&self) -> String {
        self.refusals.lock().unwrap().last().cloned().unwrap_or_default()
    }

    /// Returns why there is no id.
    pub(crate) fn fault(&self) -> String {
        self.ids.next().unwrap_err().message().to_owned()
    }
}
