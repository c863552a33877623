//! A lessee with clocks that a test moves, which plays the steps of tests/contract/lessees.json and jumps.json. The
//! generators of all languages share them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ids::{Clock, LeasedIds};
use super::lessee::{Hooks, LeaseLoss, LeaseOutcome, LeaseRequest, Lessee, LossKind, Outcome, Unusable, What};
use super::pace::Now;
use super::terms::Lease;
use super::wire::LeaseTerms;
use crate::error::{Error, ErrorKind};
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
        renew_in_ms: 20_000,
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

type Keys<'a> = HashMap<&'a str, &'a str>;

fn kind_of(request: &LeaseRequest) -> &'static str {
    match request.what {
        What::Grant { .. } => "grant",
        What::Renewal { .. } => "renewal",
        What::Release { .. } => "release",
    }
}

fn address_of(server: &str) -> String {
    format!("10.0.0.{}:7609", &server[1..])
}

/// Returns whether the request has the parts that the pattern has.
fn matches(request: &str, pattern: &str) -> bool {
    let mut parts = request.split(':');
    pattern.trim_start_matches('?').split(':').all(|one| parts.next().is_some_and(|part| one == "_" || one == part))
}

fn number(keys: &Keys, key: &str, otherwise: i64) -> i64 {
    keys.get(key).map_or(otherwise, |text| text.parse().unwrap())
}

/// Returns what the failure of `next` contains, by the table's word.
fn reason(word: &str) -> Option<&'static str> {
    Some(match word {
        "none" => "no server has granted a lease since ",
        "ended" => " UTC, and no server has extended it",
        "revoked" => " was revoked at ",
        "closed" => "the generator was closed",
        "jumped" => " s, and no server has confirmed it",
        "nothing" => "",
        _ => return None,
    })
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the generator was closed")
}

pub(crate) struct Player {
    pub(crate) clock: FakeClock,
    pub(crate) ids: Arc<LeasedIds>,
    pub(crate) lessee: Lessee,
    /// The requests without an outcome; the first one is visible.
    pub(crate) waiting: Vec<(u64, LeaseRequest)>,
    pub(crate) losses: Arc<Mutex<Vec<LeaseLoss>>>,
    /// The messages of refusals, and those that every server has given.
    pub(crate) refusals: Arc<Mutex<Vec<String>>>,
    pub(crate) finals: Arc<Mutex<Vec<Error>>>,
    servers: Vec<String>,
    replies: HashMap<String, String>, // by kind
    visible: bool,
    seen: Vec<(String, i64)>, // since the last check, with their times in ms
    names: HashMap<char, Vec<String>>,
    machine: i32,
    held: String, // the lease that was granted last, and is usable
    leases: HashMap<String, LeaseTerms>,
    used: HashMap<String, i64>, // the last tick, by lease
    position: i64,
}

impl Player {
    pub(crate) fn new() -> Player {
        Player::with(2, 60_000)
    }

    pub(crate) fn with(servers: i64, ahead_ms: i64) -> Player {
        let clock = FakeClock::new();
        let ids = Arc::new(LeasedIds::new(clock.clone()));
        let servers: Vec<_> = (1..=servers).map(|i| address_of(&format!("s{i}"))).collect();
        let (losses, refusals, finals) = (Arc::<Mutex<Vec<_>>>::default(), Arc::default(), Arc::default());
        let (lost, refused, last, listed) = (
            Arc::clone(&losses),
            Arc::<Mutex<Vec<_>>>::clone(&refusals),
            Arc::<Mutex<Vec<_>>>::clone(&finals),
            servers.clone(),
        );
        let drawn = Mutex::new(0);
        let hooks = Hooks {
            // Does not panic: the generator catches a panic of the program's callback.
            on_lost: Box::new(move |loss| lost.lock().unwrap().push(loss)),
            knows: Box::new(move |address| listed.iter().any(|one| one == address)),
            on_refused: Box::new(move |message, error| {
                refused.lock().unwrap().push(message);
                last.lock().unwrap().extend(error);
            }),
            draw: Box::new(move || {
                let mut drawn = drawn.lock().unwrap();
                *drawn += 1;
                format!("{:032x}", *drawn)
            }),
            fraction: Box::new(|| 0.999),
        };
        let lessee = Lessee::new(Arc::clone(&ids), ahead_ms * 1000, hooks);
        Player {
            clock,
            ids,
            lessee,
            waiting: Vec::new(),
            losses,
            refusals,
            finals,
            servers,
            replies: HashMap::new(),
            visible: false,
            seen: Vec::new(),
            names: HashMap::new(),
            machine: 6,
            held: String::new(),
            leases: HashMap::new(),
            used: HashMap::new(),
            position: -1,
        }
    }

    pub(crate) fn play(&mut self, steps: &[&str]) {
        for step in steps {
            eprintln!("  {step}"); // shown after a failure
            let words: Vec<_> = step.split(' ').collect();
            self.step(words[0], &words[1..]);
        }
    }

    fn step(&mut self, verb: &str, words: &[&str]) {
        let ms = || words[0].parse::<i64>().unwrap();
        match verb {
            "lease" => {
                self.turn();
                self.answer(&format!("terms:{}", words.concat()));
                self.seen.clear();
            }
            "pass" => self.pass(ms()),
            "work" => {
                for _ in 0..ms() / 50 {
                    self.pass(50);
                    let id = self.ids.next().unwrap();
                    self.check(id, None, None);
                }
            }
            "sleep" => self.clock.advance(ms()),
            "step" => {
                self.clock.step(ms());
                self.clock.advance(1);
            }
            "next" => self.next(words[0], words.get(1).copied()),
            "look" => assert!(self.ids.held().is_some()),
            "sent" => self.compare(true, words),
            "saw" => self.compare(false, words),
            "answer" => self.answer(words[0]),
            "reply" => {
                self.replies.insert(words[0].to_owned(), words[1].to_owned());
                self.reveal();
            }
            "waits" => self.waits(words[0], words[1].parse().unwrap(), words[2].parse().unwrap()),
            "loss" => {
                let losses = std::mem::take(&mut *self.losses.lock().unwrap());
                let kinds: Vec<_> = losses
                    .iter()
                    .map(|one| if one.kind == LossKind::Revoked { "revoked" } else { "expired" })
                    .collect();
                assert_eq!(kinds, words);
            }
            "stop" => {
                self.lessee.stop(closed(), self.clock.now());
                self.turn();
            }
            "stopped" => assert_eq!(self.lessee.is_stopped(), words[0] == "yes"),
            _ => panic!("unknown step"),
        }
    }

    // --- time and requests --------------------------------------------------------------------------------------

    pub(crate) fn turn(&mut self) {
        self.collect();
        self.reveal();
    }

    fn collect(&mut self) {
        let requests = self.lessee.tick(self.clock.now());
        assert!(requests.iter().all(|(_, one)| one.clock_ms == self.clock.now().wall_us / 1000), "{requests:?}");
        self.waiting.extend(requests);
    }

    /// Shows the first request, and answers those that have a standing reply.
    fn reveal(&mut self) {
        while let Some((_, request)) = self.waiting.first().cloned() {
            let server = self.server_of(&request);
            if server.is_empty() {
                self.give("", Outcome::NoAnswer { sent: false }, "all were asked");
                continue;
            }
            if !std::mem::replace(&mut self.visible, true) {
                let text = self.text_of(&request);
                self.seen.push((text, self.clock.now().mono_us / 1000));
            }
            assert!(self.seen.len() < 100_000, "requests without end");
            let Some(reply) = self.replies.get(kind_of(&request)).cloned() else { return };
            let outcome = self.outcome(&reply, &request);
            self.give(&server, outcome, &reply);
        }
    }

    pub(crate) fn give(&mut self, server: &str, kind: Outcome, message: &str) {
        let (number, _) = self.waiting.remove(0);
        self.visible = false;
        let outcome = LeaseOutcome { server: server.to_owned(), kind, message: message.to_owned() };
        self.lessee.on_reply(number, outcome, self.clock.now());
        self.collect();
    }

    fn answer(&mut self, word: &str) {
        let request = self.waiting[0].1.clone();
        let outcome = self.outcome(word, &request);
        self.give(&self.server_of(&request), outcome, word);
        self.reveal();
    }

    /// Lets the time pass, as the task of a generator does.
    fn pass(&mut self, ms: i64) {
        let until = self.clock.now().mono_us + ms * 1000;
        self.turn();
        loop {
            let left = until - self.clock.now().mono_us;
            if left <= 0 {
                return;
            }
            let due = self.lessee.due_us() - self.clock.now().mono_us;
            self.clock.advance_us(due.max(1000).min(left));
            self.turn();
        }
    }

    /// A transport chooses the server of a grant that has none; empty: all were tried.
    fn server_of(&self, request: &LeaseRequest) -> String {
        match &request.what {
            What::Grant { avoid, .. } if request.server.is_empty() => {
                self.servers.iter().find(|one| !avoid.contains(one)).cloned().unwrap_or_default()
            }
            _ => request.server.clone(),
        }
    }

    // --- checks -------------------------------------------------------------------------------------------------

    /// Returns why there is no id.
    pub(crate) fn fault(&self) -> String {
        self.ids.next().unwrap_err().message().to_owned()
    }

    fn next(&mut self, expected: &str, more: Option<&str>) {
        let fault = reason(expected);
        if let Some(fault) = fault {
            assert!(self.fault().contains(fault), "{}", self.fault());
        } else {
            let id = self.ids.next().unwrap();
            let (machine, after_wall) = if expected == "id" { (None, Some("+0")) } else { (Some(expected), more) };
            self.check(id, machine, after_wall);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let woken = runtime.block_on(async {
            tokio::select! { biased; () = self.ids.jumps.notified() => true, () = std::future::ready(()) => false }
        });
        if fault.is_some() && more.is_some() {
            assert_eq!(more == Some("woken"), woken);
        }
        if woken {
            self.turn();
        }
    }

    fn check(&mut self, id: i64, machine: Option<&str>, after_wall: Option<&str>) {
        let (held, tick) = (&self.leases[&self.held], tick_of(id));
        assert_eq!(machine_of(id), i64::from(held.machine));
        assert!(machine.map_or(true, |machine| machine == held.machine.to_string()), "{}", held.machine);
        assert!((held.from_tick..held.until_tick).contains(&tick), "outside the interval");
        let position = id & !(1023 << 12);
        assert!(position > std::mem::replace(&mut self.position, position), "ids do not rise");
        self.used.insert(self.held.clone(), tick);
        if let Some(expected) = after_wall.map(|text| text.parse::<i64>().unwrap()) {
            let after = tick - self.clock.now().wall_us / 1000 + EPOCH_MS; // not exact at nine tenths of the pace
            assert!((after - expected).abs() <= if expected >= 1000 { 60 } else { 0 }, "{after} ms");
        }
    }

    fn compare(&mut self, in_order: bool, expected: &[&str]) {
        let sent: Vec<_> = std::mem::take(&mut self.seen).into_iter().map(|(text, _)| text).collect();
        let same = if in_order {
            sent.len() == expected.len() && sent.iter().zip(expected).all(|(one, pattern)| matches(one, pattern))
        } else {
            sent.iter().all(|one| expected.iter().any(|pattern| matches(one, pattern)))
                && expected
                    .iter()
                    .all(|pattern| pattern.starts_with('?') || sent.iter().any(|one| matches(one, pattern)))
        };
        assert!(same, "sent {sent:?}");
    }

    fn waits(&mut self, kind: &str, least: i64, most: i64) {
        let at: Vec<_> = std::mem::take(&mut self.seen)
            .into_iter()
            .filter(|(one, _)| matches(one, kind))
            .map(|(_, at)| at)
            .collect();
        let longest = at.windows(2).map(|two| two[1] - two[0]).max().unwrap();
        assert!((least..=most + 1).contains(&longest), "{longest} ms");
    }

    fn name(&mut self, kind: char, drawn: &str) -> String {
        if drawn.is_empty() {
            return "-".to_owned();
        }
        assert_eq!(drawn.len(), 32);
        let names = self.names.entry(kind).or_default();
        let at = names.iter().position(|one| one == drawn).unwrap_or_else(|| {
            names.push(drawn.to_owned());
            names.len() - 1
        });
        format!("{kind}{}", at + 1)
    }

    fn text_of(&mut self, request: &LeaseRequest) -> String {
        let server = self.server_of(request).as_bytes()[7] as char;
        match &request.what {
            What::Grant { token, .. } => format!("grant:{}:s{server}", self.name('t', token)),
            What::Renewal { lease, turn, acknowledged } => {
                assert_eq!(*lease, self.held);
                format!("renewal:{}:{}:s{server}", self.name('r', turn), self.name('r', acknowledged))
            }
            What::Release { lease, turn, used_tick } => {
                let (machine, first) = (self.leases[lease].machine, self.leases[lease].from_tick.max(0) - 1);
                let most = self.used.values().copied().max().unwrap_or(first).max(first);
                assert!((first..=most).contains(used_tick), "{used_tick}");
                assert_eq!(self.used.get(lease).unwrap_or(used_tick), used_tick);
                format!("release:{machine}:{}:s{server}", self.name('r', turn))
            }
        }
    }

    // --- answers ------------------------------------------------------------------------------------------------

    fn outcome(&mut self, text: &str, request: &LeaseRequest) -> Outcome {
        let (word, more) = text.split_once(':').unwrap_or((text, ""));
        match word {
            "terms" => {
                let keys = more.split(',').filter_map(|pair| pair.split_once('=')).collect();
                let given = if kind_of(request) == "grant" {
                    self.granted(&keys, self.server_of(request))
                } else {
                    self.renewed(&keys)
                };
                match Lease::read(&given, Some(&layout())) {
                    Ok(lease) => Outcome::Lease(Box::new(lease)),
                    Err(_) => {
                        let end_us = given.end_us();
                        let LeaseTerms { lease: id, server, from_tick, .. } = given;
                        Outcome::Unusable(Unusable { id, server, from_tick, end_us })
                    }
                }
            }
            "released" => Outcome::Released,
            "unknown" => Outcome::Unknown,
            "outdated" => Outcome::Outdated,
            "revoked" => Outcome::Revoked,
            "lost" | "unreachable" => Outcome::NoAnswer { sent: word == "lost" },
            "notready" | "claiming" => {
                let retry_after_us = more.parse().unwrap_or(0) * 1000;
                Outcome::NotReady { retry_after_us, claiming: word == "claiming" }
            }
            "refused" => {
                Outcome::RefusedForGood(Error::new(ErrorKind::Refused, "the clock is ahead of the server's"))
            }
            "none" | "other" | "old" => Outcome::Refused,
            "elsewhere" => Outcome::Elsewhere(address_of(more)),
            _ => panic!("unknown word"),
        }
    }

    fn now_tick(&self) -> i64 {
        self.clock.now().wall_us / 1000 - EPOCH_MS
    }

    /// Sets the end and what else an answer may change.
    fn change(&self, terms: &mut LeaseTerms, keys: &Keys) {
        let bound = number(keys, "bound", 0);
        terms.until_tick = self.now_tick() + number(keys, "for", 60_000);
        if bound > 0 {
            terms.until_tick = terms.until_tick.min(NOON_MS - EPOCH_MS + bound);
        }
        (terms.renew_in_ms, terms.ending) = (number(keys, "renew", 20_000) as i32, bound > 0);
        if let Some(server) = keys.get("server") {
            terms.server = address_of(server);
        }
        match keys.get("spoilt").copied().unwrap_or_default() {
            "" => {}
            "name" => terms.lease.clear(),
            "overlap" => terms.base_bits |= 1,
            "empty" => terms.until_tick = terms.from_tick,
            "begin" => terms.from_tick = -5,
            "layout" => terms.epoch_ms += 1,
            "lease" => terms.lease = "another".to_owned(),
            "machine" => (terms.machine, terms.base_bits) = (99, 99 << 12),
            "less" => terms.until_tick = self.leases[&self.held].until_tick - 1,
            _ => panic!("unknown fault"),
        }
    }

    fn granted(&mut self, keys: &Keys, server: String) -> LeaseTerms {
        self.machine += 1;
        let from_ms = self.clock.now().wall_us / 1000 + number(keys, "from", -3_600_000);
        let mut given = LeaseTerms { server, ..terms(self.machine, from_ms, from_ms) };
        self.change(&mut given, keys);
        if let Some(again) = keys.get("again") {
            let lease = given.lease;
            given = self.leases[&self.held].clone();
            if *again == "interval" {
                given.lease = lease;
            }
        }
        self.leases.insert(given.lease.clone(), given.clone());
        if !keys.contains_key("spoilt") && given.until_tick > self.now_tick() {
            self.held.clone_from(&given.lease);
        }
        given
    }

    fn renewed(&mut self, keys: &Keys) -> LeaseTerms {
        let mut given = self.leases[&self.held].clone();
        self.change(&mut given, keys);
        if !keys.contains_key("spoilt") {
            self.leases.insert(self.held.clone(), given.clone());
        }
        given
    }
}
