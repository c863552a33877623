//! The ids of one lease after another.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::pace::{IdPace, Now};
use super::terms::{utc, Lease, Shape};
use super::tick_ids::TickIds;
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

/// If the next tick begins later than this, the caller decides whether to wait.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// After this, a thread that waits finds out whether the ids were closed.
const WAIT_STEP: Duration = Duration::from_millis(50);

/// The ids of one lease after another.
///
/// 1. Ids of a tick are computed together, after the tick is compared with the end of the lease.
/// 2. Ids rise, across threads, renewals and leases: the next lease begins above the last tick used.
/// 3. The id clock starts at the wall clock or at the lease's first tick, whichever is later. A wrong clock wastes the
///    interval and repeats no id.
/// 4. After the wall clock has jumped forward, no id is issued until a server confirms it.
/// 5. After `close` and `end`, and in a forked child, no id is issued.
pub(crate) struct LeasedIds {
    clock: Box<dyn Clock>,
    process: u32,
    tick_ids: TickIds,
    state: Mutex<State>,
    /// Told when `next` finds that the wall clock has jumped.
    pub(crate) jumps: Notify,
}

struct State {
    pace: IdPace,
    held: Option<Lease>,
    shape: Option<Shape>, // of all leases
    ended: bool,
    failure: Error,
    highest_tick: i64, // of all ids
    used_tick: i64,    // of the last lease; the one before its first if it has no id
    tick: i64,         // that of `tick_ids`; without any, the next one is above it
    jump_told: bool,   // to `jumps`
}

enum Step {
    Taken(i64),
    Wait(Duration),
}

impl LeasedIds {
    pub(crate) fn new(clock: impl Clock + 'static) -> LeasedIds {
        let now = clock.read();
        let failure = format!("no server has granted a lease since {}", utc(now.wall_us));
        LeasedIds {
            process: clock.process(),
            clock: Box::new(clock),
            tick_ids: TickIds::new(),
            state: Mutex::new(State {
                pace: IdPace::new(now),
                held: None,
                shape: None,
                ended: false,
                failure: Error::new(ErrorKind::NoLease, failure),
                highest_tick: -1,
                used_tick: -1,
                tick: -1,
                jump_told: false,
            }),
            jumps: Notify::new(),
        }
    }

    /// Returns the next id. If the sequence of this tick is used up, waits for the next tick, unless that begins in more
    /// than 5 s. Waits again if other threads have used up that one, too.
    pub(crate) fn next(&self) -> Result<i64, Error> {
        loop {
            // Before the lock, which another thread may have had at the fork.
            if self.is_forked() {
                let text = "this process is a forked child; create another generator";
                return Err(Error::new(ErrorKind::NoLease, text));
            }
            if let Some(id) = self.take() {
                return Ok(id);
            }
            let wait = match self.step()? {
                Step::Taken(id) => return Ok(id),
                Step::Wait(wait) => wait,
            };
            if wait > WAIT_MAX {
                let error = Error::new(ErrorKind::Unavailable, "the sequence of this tick is used up");
                return Err(error.with_refusal(None, Some(wait)));
            }
            self.clock.sleep(wait.min(WAIT_STEP));
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
            return Err("its layout is not that of the first lease, so its ids could equal earlier ones".to_owned());
        }
        let (used, now) = (state.used_tick, self.clock.read());
        state.follow_before_the_first_lease(now);
        if state.pace.advance(now).min(now.wall_us) >= lease.end_us() {
            return Err("its interval has ended".to_owned()); // a late answer must not replace a lease in use
        }
        self.tick_ids.close();
        state.begin(now, lease);
        state.shape = Some(lease.shape);
        state.used_tick = lease.from_tick - 1;
        state.held = Some(lease.clone());
        Ok(used)
    }

    /// Moves the end of the lease. Ignores an earlier end. An id clock beyond the interval returns, but not below the last
    /// tick used.
    pub(crate) fn extend_to(&self, until_tick: i64) {
        let mut state = self.lock();
        let Some(mut held) = state.held.clone() else { return };
        held.until_tick = held.until_tick.max(until_tick);
        let (now, end_us) = (self.clock.read(), held.end_us());
        if state.pace.advance(now) >= end_us {
            self.tick_ids.close();
            state.begin(now, &held);
        }
        state.held = Some(held);
    }

    /// Moves the id clock forward to the wall clock of a request that a server has accepted, plus the time since. The
    /// monotonic clock may not advance while the machine is suspended. `wall_at_zero_us`: that wall clock minus the
    /// monotonic clock.
    pub(crate) fn confirm(&self, wall_at_zero_us: i64) {
        let mut state = self.lock();
        let now = self.clock.read();
        state.pace.advance(now);
        state.pace.raise_to(wall_at_zero_us + now.mono_us);
        self.tick_ids.expire();
    }

    /// Issues no id until there is another lease. Calls fail with this error. Returns the last tick used.
    pub(crate) fn close(&self, failure: Error) -> i64 {
        let mut state = self.lock();
        self.tick_ids.close();
        state.close(failure)
    }

    /// Issues no id any more. A later call changes nothing.
    pub(crate) fn end(&self, failure: Error) -> i64 {
        let mut state = self.lock();
        self.tick_ids.close();
        let used_tick = state.close(failure);
        state.ended = true;
        used_tick
    }

    /// Reads the clocks.
    pub(crate) fn now(&self) -> Now {
        self.clock.read()
    }

    /// Reads the clocks. Returns the id clock, and whether the wall clock has jumped.
    pub(crate) fn read_clocks(&self) -> (i64, bool) {
        let now = self.clock.read();
        let mut state = self.lock();
        state.follow_before_the_first_lease(now);
        let (time_us, jumped) = (state.pace.advance(now), state.pace.jump_us() > 0);
        state.jump_told &= jumped;
        (time_us, jumped)
    }

    /// Reads the clocks, and returns the id clock.
    pub(crate) fn advance(&self) -> i64 {
        self.read_clocks().0
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

    /// Returns the next id of a tick that was entered before. The clocks are not read until the wall clock shows the next
    /// millisecond.
    fn take(&self) -> Option<i64> {
        self.tick_ids.take(self.clock.wall_us() / 1000).map(|id| id as i64)
    }

    /// Reads the clocks, and takes an id.
    fn step(&self) -> Result<Step, Error> {
        let mut state = self.lock();
        if let Some(id) = self.take() {
            return Ok(Step::Taken(id)); // another thread read the clocks meanwhile
        }
        let Some(held) = &state.held else { return Err(state.failure.clone()) };
        let (shape, step, until_tick) = (held.shape, 1 << held.shape.sequence_shift, held.until_tick);
        let now = self.clock.read();
        let time_us = state.pace.advance(now);
        let jumped = state.pace.jump_us() > 0;
        let told = std::mem::replace(&mut state.jump_told, jumped);
        if jumped {
            if !told {
                self.jumps.notify_one();
            }
            return Err(state.jumped());
        }
        let left = self.tick_ids.close();
        let tick = shape.tick_at(time_us);
        let ids = if tick > state.tick {
            state.enter(tick, left.is_none(), self.clock.fraction())?
        } else if let Some(left) = left {
            left
        } else if state.tick + 1 >= until_tick {
            return Err(state.expired());
        } else {
            let wait = shape.start_of(state.tick + 1) - time_us;
            return Ok(Step::Wait(Duration::from_micros(wait as u64)));
        };
        Ok(Step::Taken(self.tick_ids.open(ids, step, now.wall_us / 1000) as i64))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close(&mut self, failure: Error) -> i64 {
        self.held = None;
        if !self.ended {
            self.failure = failure;
        }
        self.used_tick
    }

    /// Begins a tick. Returns its first id and its last one. The sequence begins at random in its lower half, so that the
    /// ids of a quiet program do not all end with the same bits; after a tick that is used up, at its lowest number.
    fn enter(&mut self, tick: i64, none_left: bool, drawn: f64) -> Result<(u64, u64), Error> {
        let Some(held) = self.held.as_ref().filter(|held| tick < held.until_tick) else {
            return Err(self.expired());
        };
        let used_up = none_left && self.tick == self.highest_tick;
        let half = held.sequence_count.div_ceil(2);
        let skipped = if used_up { 0 } else { (drawn * half as f64) as u64 };
        let bits = held.base_bits | (tick as u64) << held.shape.tick_shift;
        let id = |sequence: u64| bits | (held.sequence_from + sequence) << held.shape.sequence_shift;
        let ids = (id(skipped), id(held.sequence_count - 1));
        (self.tick, self.used_tick, self.highest_tick) = (tick, tick, tick);
        Ok(ids)
    }

    /// Returns why there is no id of a later tick.
    fn expired(&self) -> Error {
        let Some(held) = &self.held else { return self.failure.clone() };
        let (machine, end) = (held.machine, utc(held.end_us()));
        let text = format!("the lease of machine id {machine} ended at {end}, and no server has extended it");
        Error::new(ErrorKind::NoLease, text)
    }

    fn jumped(&self) -> Error {
        let seconds = self.pace.jump_us() / 1_000_000;
        let text = format!("the wall clock has jumped forward by {seconds} s, and no server has confirmed it");
        Error::new(ErrorKind::NoLease, text)
    }

    /// Before the first lease, the wall clock cannot jump.
    fn follow_before_the_first_lease(&mut self, now: Now) {
        if self.shape.is_none() {
            self.pace.restart(now.wall_us, now);
        }
    }

    /// The next id has a tick of this lease, above the last one used. An id clock that followed a wrong wall clock beyond
    /// the interval returns to a corrected one.
    fn begin(&mut self, now: Now, lease: &Lease) {
        let first = lease.from_tick.max(self.highest_tick + 1);
        let (first_us, end_us) = (lease.shape.start_of(first), lease.end_us());
        let time_us = now.wall_us.max(first_us);
        if self.pace.time_us() >= end_us && time_us < end_us {
            self.pace.restart(time_us, now);
        }
        self.pace.advance(now);
        self.pace.raise_to(first_us);
        self.tick = first - 1;
    }
}
