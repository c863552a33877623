//! The ids of one lease after another.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pace::{IdPace, Now};
use super::terms::{utc, Lease, Shape};
use crate::error::{Error, ErrorKind};

/// The clocks of a generator, and what else it needs of its process; a test has its own.
pub(crate) trait Clock: Send + Sync {
    fn read(&self) -> Now;
    fn wall_us(&self) -> i64;
    /// Blocks the thread.
    fn sleep(&self, time: Duration);
    /// Returns the number of the process: a child of `fork()` has another one.
    fn process(&self) -> u32;
    /// Returns a number from 0, inclusive, to 1, exclusive.
    fn fraction(&self) -> f64;
}

const WAIT_MAX: Duration = Duration::from_millis(5);

/// The ids of one lease after another.
///
/// 1. An id is computed, and its tick is then compared with the end of the lease.
/// 2. Ids rise, across threads, renewals and leases: the next lease begins above the last tick used.
/// 3. The id clock starts at the wall clock or at the lease's first tick, whichever is later. A wrong clock wastes the
///    interval and repeats no id.
/// 4. After `close` and `end`, and in a forked child, no id is issued.
pub(crate) struct LeasedIds {
    clock: Box<dyn Clock>,
    process: u32,
    state: Mutex<State>,
}

struct State {
    pace: IdPace,
    held: Option<Lease>,
    shape: Option<Shape>, // of all leases
    ended: bool,
    failure: Error,
    highest_tick: i64, // of all ids
    used_tick: i64,    // of the last lease; the one before its first if it has no id
    seen_wall_ms: i64,
    // The next id, and how many are left in its tick.
    tick: i64,
    sequence: u64,
    left: u64,
}

enum Step {
    Taken(i64),
    Wait(Duration),
}

impl LeasedIds {
    pub(crate) fn new(clock: impl Clock + 'static) -> LeasedIds {
        let failure = format!("no server has granted a lease since {}", utc(clock.wall_us()));
        LeasedIds {
            process: clock.process(),
            clock: Box::new(clock),
            state: Mutex::new(State {
                pace: IdPace::new(),
                held: None,
                shape: None,
                ended: false,
                failure: Error::new(ErrorKind::Unavailable, failure),
                highest_tick: -1,
                used_tick: -1,
                seen_wall_ms: i64::MIN,
                tick: -1,
                sequence: 0,
                left: 0,
            }),
        }
    }

    /// Returns the next id. Waits for the next tick, at most 5 ms, if the sequence of this one is used up.
    pub(crate) fn next(&self) -> Result<i64, Error> {
        let mut waited = Duration::ZERO;
        loop {
            // Before the lock, which another thread may have had at the fork.
            if self.is_forked() {
                let text = "this process is a forked child; create another generator";
                return Err(Error::new(ErrorKind::Unavailable, text));
            }
            let wait = match self.lock().step(&*self.clock)? {
                Step::Taken(id) => return Ok(id),
                Step::Wait(wait) => wait,
            };
            if waited + wait > WAIT_MAX {
                let error = Error::new(ErrorKind::Unavailable, "the sequence of this tick is used up");
                return Err(error.with_refusal(None, Some(wait)));
            }
            self.clock.sleep(wait);
            waited += wait;
        }
    }

    /// Issues ids of this lease from now on, and of no other. Fails with a sentence, and changes nothing, if it cannot.
    /// Returns the last tick of which an id was issued under the lease before.
    pub(crate) fn adopt(&self, lease: &Lease) -> Result<i64, String> {
        let mut state = self.lock();
        if state.ended {
            return Err("the generator has ended".to_owned());
        }
        if state.shape.is_some_and(|shape| shape != lease.shape) {
            return Err("its layout is not that of the last lease".to_owned());
        }
        let used = state.used_tick;
        let first = lease.from_tick.max(state.highest_tick + 1);
        state.move_clock(self.clock.read(), lease.shape.start_of(first), lease.end_us());
        state.shape = Some(lease.shape);
        state.used_tick = lease.from_tick - 1;
        state.tick = first - 1;
        state.left = 0;
        state.held = Some(lease.clone());
        Ok(used)
    }

    /// Moves the end of the lease. Ignores an earlier end.
    pub(crate) fn extend_to(&self, until_tick: i64) {
        if let Some(held) = &mut self.lock().held {
            held.until_tick = held.until_tick.max(until_tick);
        }
    }

    /// Issues no id until there is another lease. Calls fail with this error. Returns the last tick used.
    pub(crate) fn close(&self, failure: Error) -> i64 {
        self.lock().close(failure)
    }

    /// Issues no id any more. A later call changes nothing.
    pub(crate) fn end(&self, failure: Error) -> i64 {
        let mut state = self.lock();
        let used_tick = state.close(failure);
        state.ended = true;
        used_tick
    }

    /// Reads the clocks.
    pub(crate) fn now(&self) -> Now {
        self.clock.read()
    }

    /// Reads the clocks, and returns the id clock.
    pub(crate) fn advance(&self) -> i64 {
        let now = self.clock.read();
        self.lock().pace.advance(now)
    }

    pub(crate) fn held(&self) -> Option<Lease> {
        if self.is_forked() {
            return None;
        }
        self.lock().held.clone()
    }

    pub(crate) fn is_forked(&self) -> bool {
        self.clock.process() != self.process
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close(&mut self, failure: Error) -> i64 {
        self.held = None;
        self.left = 0;
        if !self.ended {
            self.failure = failure;
        }
        self.used_tick
    }

    fn step(&mut self, clock: &dyn Clock) -> Result<Step, Error> {
        let Some(held) = &self.held else { return Err(self.failure.clone()) };
        let shape = held.shape;
        // Until the wall clock shows the next millisecond, the clocks are not read again.
        if self.left == 0 || clock.wall_us() / 1000 != self.seen_wall_ms {
            let now = clock.read();
            self.seen_wall_ms = now.wall_us / 1000;
            let time_us = self.pace.advance(now);
            let tick = shape.tick_at(time_us);
            if tick > self.tick {
                self.enter(tick, clock.fraction());
            } else if self.left == 0 {
                let wait = shape.start_of(self.tick + 1) - time_us;
                return Ok(Step::Wait(Duration::from_micros(wait as u64)));
            }
        }
        self.take().map(Step::Taken)
    }

    fn take(&mut self) -> Result<i64, Error> {
        let Some(held) = &self.held else { return Err(self.failure.clone()) };
        let ticks = (self.tick as u64).wrapping_shl(held.shape.tick_shift);
        let id = held.base_bits | ticks | self.sequence << held.shape.sequence_shift;
        if self.tick >= held.until_tick {
            let text = format!(
                "the lease of machine id {} ended at {}, and no server has extended it",
                held.machine,
                utc(held.end_us())
            );
            return Err(Error::new(ErrorKind::Unavailable, text));
        }
        self.sequence += 1;
        self.left -= 1;
        self.used_tick = self.tick;
        self.highest_tick = self.tick;
        Ok(id as i64)
    }

    /// The sequence of a tick begins at random in its lower half, so that the ids of a quiet program do not all end with
    /// the same bits; after a tick that is used up, at its lowest number.
    fn enter(&mut self, tick: i64, drawn: f64) {
        let Some(held) = &self.held else { return };
        let used_up = self.left == 0 && self.tick == self.highest_tick;
        let half = held.sequence_count.div_ceil(2);
        let skipped = if used_up { 0 } else { (drawn * half as f64) as u64 };
        self.tick = tick;
        self.sequence = held.sequence_from + skipped;
        self.left = held.sequence_count - skipped;
    }

    /// An id clock that followed a wrong wall clock beyond the interval returns to a corrected one.
    fn move_clock(&mut self, now: Now, first_us: i64, end_us: i64) {
        let time_us = now.wall_us.max(first_us);
        if self.pace.time_us() >= end_us && time_us < end_us {
            self.pace.restart(time_us, now);
        }
        self.pace.advance(now);
        self.pace.raise_to(first_us);
    }
}
