//! The id clock.

/// A reading of both clocks, in microseconds: the wall clock since 1970, and one that only advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    pub(crate) wall_us: i64,
    pub(crate) mono_us: i64,
}

const JUMP_MAX_US: i64 = 5_000_000;

/// The id clock: computes its time from readings of both clocks.
///
/// 1. It starts at the wall clock, and never goes back, except by `restart`.
/// 2. It advances with the monotonic clock. The result is the expected time.
/// 3. It follows a wall clock that is at most 5 s ahead of the expected time. A wall clock that is further ahead has
///    jumped, and a server must confirm it.
/// 4. While the wall clock is behind, the id clock continues: at nine tenths of its pace if the difference is at most
///    5 s, so that it vanishes.
#[derive(Debug)]
pub(crate) struct IdPace {
    time_us: i64,
    seen_us: i64, // by the monotonic clock
    jump_us: i64,
}

impl IdPace {
    pub(crate) fn new(now: Now) -> IdPace {
        IdPace { time_us: now.wall_us, seen_us: now.mono_us, jump_us: 0 }
    }

    pub(crate) fn time_us(&self) -> i64 {
        self.time_us
    }

    /// Returns how far the wall clock has jumped forward without confirmation; 0: it has not.
    pub(crate) fn jump_us(&self) -> i64 {
        self.jump_us
    }

    /// Returns the time. Ignores a reading that is older than the last one.
    pub(crate) fn advance(&mut self, now: Now) -> i64 {
        let passed = now.mono_us - self.seen_us;
        if passed < 0 {
            return self.time_us;
        }
        self.seen_us = now.mono_us;
        let expected = self.time_us + passed;
        let ahead = now.wall_us - expected;
        self.jump_us = if ahead > JUMP_MAX_US { ahead } else { 0 };
        self.time_us = match ahead {
            0..=JUMP_MAX_US => now.wall_us,
            -1000..=-1 => self.time_us.max(now.wall_us), // the clocks are not read at the same moment
            ..=-1 if ahead >= -JUMP_MAX_US => (expected - passed / 10).max(now.wall_us),
            _ => expected,
        };
        self.time_us
    }

    /// The time is at least this one from now on.
    pub(crate) fn raise_to(&mut self, time_us: i64) {
        self.time_us = self.time_us.max(time_us);
    }

    /// Sets the time, as if no clock had been read before.
    pub(crate) fn restart(&mut self, time_us: i64, now: Now) {
        *self = IdPace { time_us, ..IdPace::new(now) };
    }
}
