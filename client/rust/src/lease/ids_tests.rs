use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ids::LeasedIds;
use super::player::*;
use super::terms::{utc, Lease};
use super::wire::LeaseTerms;
use crate::error::{Error, ErrorKind};

fn holding(lease: &Lease) -> (FakeClock, LeasedIds) {
    let clock = FakeClock::new();
    let ids = LeasedIds::new(clock.clone());
    ids.adopt(lease).unwrap();
    (clock, ids)
}

#[test]
fn says_since_when_there_is_no_lease() {
    assert_eq!(Player::new().fault(), "no server has granted a lease since 2026-11-26 12:00:00 UTC");
}

#[test]
fn times_are_those_of_the_calendar() {
    assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
    assert_eq!(utc(1_709_251_199_999_999), "2024-02-29 23:59:59 UTC");
    assert_eq!(utc(-1), "1969-12-31 23:59:59 UTC");
}

#[test]
fn waits_for_the_next_tick_when_the_sequence_is_used_up() {
    let (clock, ids) = holding(&lease(7, NOON_MS, NOON_MS + 60 * SECOND));
    let take = || -> Vec<i64> { (0..4096).map(|_| ids.next().unwrap()).collect() };
    take();
    assert_eq!(clock.slept(), Duration::ZERO);
    let next = take();
    assert_eq!(clock.slept(), Duration::from_millis(1));
    assert_eq!(tick_of(next[0]), tick_of(next[4095]));
    assert_eq!(next[0] & 4095, 0); // after a tick that is used up, the sequence begins at 0
}

fn long_ticks(tick_ms: i32) -> (FakeClock, LeasedIds) {
    let first = (NOON_MS - EPOCH_MS) / i64::from(tick_ms);
    let terms = LeaseTerms {
        tick_ms,
        sequence_bits: 1,
        sequence_count: 2,
        from_tick: first,
        until_tick: first + 2,
        ..terms(7, NOON_MS, NOON_MS)
    };
    holding(&Lease::read(&terms, None).unwrap())
}

#[test]
fn waits_for_a_tick_of_a_second_unless_the_lease_ends() {
    let (clock, ids) = long_ticks(1_000);
    for _ in 0..4 {
        ids.next().unwrap();
    }
    assert_eq!(clock.slept(), Duration::from_secs(1));
    assert!(ids.next().unwrap_err().message().contains("ended at"));
    assert_eq!(clock.slept(), Duration::from_secs(1));
}

#[test]
fn says_when_to_retry_if_the_next_tick_is_far_away() {
    let (clock, ids) = long_ticks(10_000);
    ids.next().unwrap();
    ids.next().unwrap();
    let error = ids.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(
        (error.message(), error.retry_after()),
        ("the sequence of this tick is used up", Some(Duration::from_secs(10)))
    );
    assert_eq!(clock.slept(), Duration::ZERO);
}

#[test]
fn the_sequence_of_a_tick_begins_at_random_in_its_lower_half() {
    let (clock, ids) = holding(&lease(7, NOON_MS, NOON_MS + 60 * SECOND));
    clock.draw(&[0.0, 0.5, 0.999]);
    clock.advance(1);
    ids.next().unwrap();
    let begins: Vec<i64> = (0..2)
        .map(|_| {
            clock.advance(1);
            ids.next().unwrap() & 4095
        })
        .collect();
    assert_eq!(begins, [1024, 2045]);
}

#[test]
fn a_pause_after_the_clock_was_read_gives_no_tick_outside_the_lease() {
    let held = lease(7, NOON_MS, NOON_MS + 10 * SECOND);
    let (clock, ids) = holding(&held);
    clock.advance(5 * SECOND);
    let paused = clock.clone();
    clock.after_read(move || paused.advance(60 * SECOND)); // beyond the end, in the middle of a call
    assert_eq!(tick_of(ids.next().unwrap()), held.from_tick + 5 * SECOND);
    assert!(ids.next().unwrap_err().message().contains("ended at"));
}

#[test]
fn a_call_that_waits_when_the_generator_ends_returns_no_id() {
    let (clock, ids) = holding(&lease(7, NOON_MS, NOON_MS + 60 * SECOND));
    for _ in 0..4096 {
        ids.next().unwrap();
    }
    let ids = Arc::new(ids);
    let ended = Arc::clone(&ids);
    let ender = Mutex::new(None);
    // The thread gets the lock when the call sleeps.
    clock.after_read(move || {
        let ended = Arc::clone(&ended);
        *ender.lock().unwrap() = Some(std::thread::spawn(move || {
            ended.end(crate::error::Error::new(ErrorKind::Closed, "the generator was closed"))
        }));
    });
    // It ends before, during or after the 1 ms in which the next call waits, and no id follows the end.
    let _ = ids.next();
    loop {
        if let Err(error) = ids.next() {
            assert_eq!(error.kind(), ErrorKind::Closed);
            break;
        }
    }
    assert!(ids.next().is_err());
}

/// Clocks that agree, and advance with the monotonic one.
struct Steady(std::time::Instant);

impl super::ids::Clock for Steady {
    fn read(&self) -> super::pace::Now {
        let mono_us = self.0.elapsed().as_micros() as i64;
        super::pace::Now { wall_us: NOON_MS * 1000 + mono_us, mono_us }
    }
    fn wall_us(&self) -> i64 {
        self.read().wall_us
    }
    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
    fn process(&self) -> u32 {
        1
    }
    fn fraction(&self) -> f64 {
        0.5
    }
}

/// Has four threads take ids until there are none.
fn take_until_the_end(ids: &Arc<LeasedIds>) -> Vec<std::thread::JoinHandle<Vec<i64>>> {
    let take_all = |ids: Arc<LeasedIds>| {
        let mut taken = Vec::new();
        while let Ok(id) = ids.next() {
            assert!(taken.last().map_or(true, |last| id > *last));
            taken.push(id);
        }
        taken
    };
    (0..4).map(|_| Arc::clone(ids)).map(|ids| std::thread::spawn(move || take_all(ids))).collect()
}

#[test]
fn threads_get_different_ids_and_none_after_the_end() {
    let ids = Arc::new(LeasedIds::new(Steady(std::time::Instant::now())));
    ids.adopt(&lease(7, NOON_MS, NOON_MS + 3600 * SECOND)).unwrap();
    let threads = take_until_the_end(&ids);
    let mut own = Vec::new();
    while own.len() < 20_000 {
        own.push(ids.next().unwrap());
    }
    let used = ids.end(crate::error::Error::closed());
    assert!(ids.next().is_err());
    let all: Vec<i64> = threads.into_iter().flat_map(|one| one.join().unwrap()).chain(own).collect();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    assert_eq!(all.iter().map(|id| tick_of(*id)).max(), Some(used));
}

#[test]
fn threads_get_different_ids_while_one_lease_follows_another() {
    let ids = Arc::new(LeasedIds::new(Steady(std::time::Instant::now())));
    let held = lease(7, NOON_MS, NOON_MS + 3600 * SECOND);
    ids.adopt(&held).unwrap();
    let threads = take_until_the_end(&ids);
    for machine in (7..9).cycle().take(100) {
        std::thread::sleep(Duration::from_micros(500));
        ids.extend_to(held.until_tick);
        ids.adopt(&lease(machine, NOON_MS, NOON_MS + 3600 * SECOND)).unwrap();
    }
    ids.end(crate::error::Error::closed());
    let all: Vec<i64> = threads.into_iter().flat_map(|one| one.join().unwrap()).collect();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    let machines: HashSet<i64> = all.iter().map(|id| id >> 12 & 1023).collect();
    assert_eq!(machines, (7..9).collect());
}

/// A clock whose sleeper finds, when it wakes, that others have used up the tick for which it slept.
struct Crowded {
    clock: FakeClock,
    ids: Arc<std::sync::OnceLock<std::sync::Weak<LeasedIds>>>,
    ticks_of_others: std::sync::atomic::AtomicU32,
}

impl super::ids::Clock for Crowded {
    fn read(&self) -> super::pace::Now {
        self.clock.read()
    }
    fn wall_us(&self) -> i64 {
        self.clock.wall_us()
    }
    fn sleep(&self, time: Duration) {
        use std::sync::atomic::Ordering::Relaxed;
        self.clock.sleep(time);
        if self.ticks_of_others.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            let ids = self.ids.get().and_then(std::sync::Weak::upgrade).unwrap();
            for _ in 0..4096 {
                ids.next().unwrap();
            }
        }
    }
    fn process(&self) -> u32 {
        1
    }
    fn fraction(&self) -> f64 {
        0.0
    }
}

#[test]
fn a_thread_that_others_overtake_waits_on_while_ticks_pass() {
    let (clock, crowd) = (FakeClock::new(), Arc::new(std::sync::OnceLock::new()));
    let ids = Arc::new(LeasedIds::new(Crowded {
        clock: clock.clone(),
        ids: Arc::clone(&crowd),
        ticks_of_others: std::sync::atomic::AtomicU32::new(20),
    }));
    crowd.set(Arc::downgrade(&ids)).unwrap();
    let held = lease(7, NOON_MS, NOON_MS + SECOND);
    ids.adopt(&held).unwrap();
    for _ in 0..4096 {
        ids.next().unwrap();
    }
    assert_eq!(tick_of(ids.next().unwrap()), held.from_tick + 21);
}

#[test]
fn a_forked_child_gets_no_id() {
    let (clock, ids) = holding(&lease(7, NOON_MS, NOON_MS + 60 * SECOND));
    ids.next().unwrap();
    clock.fork();
    let fault = ids.next().unwrap_err();
    assert_eq!(fault.message(), "this process is a forked child; create another generator");
    assert!(ids.held().is_none());
}

#[test]
fn ids_have_only_a_part_of_the_sequence_where_the_lease_does() {
    let part = LeaseTerms { sequence_from: 1024, sequence_count: 4, ..terms(7, NOON_MS, NOON_MS + SECOND) };
    let (_, ids) = holding(&lease_of(&part));
    let seen: HashSet<i64> = (0..200).map(|_| ids.next().unwrap() & 4095).collect();
    assert_eq!(seen, (1024..1028).collect());
}

#[test]
fn uses_no_lease_of_another_layout() {
    let (_, ids) = holding(&lease(7, NOON_MS, NOON_MS + 60 * SECOND));
    let other = LeaseTerms { tick_ms: 10, from_tick: 1, until_tick: 2, ..terms(8, NOON_MS, NOON_MS) };
    let fault = ids.adopt(&Lease::read(&other, None).unwrap()).unwrap_err();
    assert!(fault.starts_with("its layout is not that of the first lease"), "{fault}");
    ids.next().unwrap();
    ids.close(Error::new(ErrorKind::Unavailable, "revoked"));
    type Change = fn(&mut Lease);
    let changes: [Change; 5] = [
        |one| one.shape.tick_us *= 2,
        |one| one.shape.epoch_us = 0,
        |one| one.shape.tick_shift += 1,
        |one| one.shape.sequence_shift += 1,
        |one| one.shape.sequence_bits -= 1,
    ];
    for change in changes {
        let mut other = lease(9, NOON_MS, NOON_MS + 60 * SECOND);
        change(&mut other);
        assert!(ids.adopt(&other).unwrap_err().starts_with("its layout is not that of the first lease"));
    }
    ids.adopt(&lease(9, NOON_MS, NOON_MS + 60 * SECOND)).unwrap();
}

#[test]
fn terms_that_permit_no_id_are_refused() {
    let good = || terms(7, NOON_MS, NOON_MS + SECOND);
    let layout = layout();
    type Change = fn(&mut LeaseTerms);
    let bad: [(Change, &str); 19] = [
        (|one| one.lease.clear(), "no id"),
        (|one| one.server.clear(), "no server"),
        (|one| one.from_tick = one.until_tick, "from tick"),
        (|one| one.from_tick = -1, "from tick"),
        (|one| one.until_tick = i64::MAX, "impossible"),
        (|one| one.sequence_from = 1, "sequences"),
        (|one| one.sequence_count = 4097, "sequences"),
        (|one| one.sequence_count = i64::MAX, "sequences"),
        (|one| one.sequence_count = 0, "sequences"),
        (|one| one.sequence_from = -1, "sequences"),
        (|one| one.base_bits |= 1, "overlap"),
        (|one| one.base_bits |= 1 << 30, "overlap"),
        (|one| one.sequence_shift = 20, "overlap"),
        (|one| one.sequence_shift = 64, "64 bits"),
        (|one| one.tick_shift = -1, "64 bits"),
        (|one| one.sequence_bits = 64, "64 bits"),
        (|one| one.tick_ms = 0, "impossible"),
        (|one| one.epoch_ms = i64::MAX, "impossible"),
        (|one| one.machine = -1, "negative"),
    ];
    for (at, (change, message)) in bad.into_iter().enumerate() {
        for layout in [Some(&layout), None] {
            let mut terms = good();
            change(&mut terms);
            let fault = Lease::read(&terms, layout).unwrap_err();
            assert!(fault.contains(message), "{at}: {fault}");
        }
    }
    let of_layout: [(Change, &str); 5] = [
        (|one| one.until_tick = (1 << 41) + 1, "fit into the layout"),
        (|one| one.tick_shift = 23, "those of the layout"),
        (|one| one.tick_ms = 2, "those of the layout"),
        (|one| one.epoch_ms = 0, "those of the layout"),
        (|one| one.base_bits |= i64::MIN, "a fixed bit"),
    ];
    for (change, message) in of_layout {
        let mut terms = good();
        change(&mut terms);
        let fault = Lease::read(&terms, Some(&layout)).unwrap_err();
        assert!(fault.contains(message), "{fault}");
    }
    assert!(Lease::read(&good(), Some(&layout)).is_ok() && Lease::read(&good(), None).is_ok());
}
