//! The id clock.

/// A reading of both clocks, in microseconds: the wall clock since 1970, and one that only advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    pub(crate) wall_us: i64,
    pub(crate) mono_us: i64,
}

const JUMP_MAX_US: i64 = 5_000_000;
const JUMP_HOLD_US: i64 = 30_000_000;

/// The id clock, as servers have it (common/id/id_pace.h): computes its time from readings of both clocks.
///
/// 1. It starts at the first wall time, and never goes back, except by `restart`.
/// 2. It advances with the monotonic clock. The result is the expected time.
/// 3. A wall clock that is ahead of it by at most 5 s is followed; one that is further ahead, after 30 s.
/// 4. While the wall clock is behind, the id clock continues: at nine tenths of its pace if the difference is at most
///    5 s, so that it vanishes.
#[derive(Debug)]
pub(crate) struct IdPace {
    time_us: i64,
    seen: Option<Now>,
    jump: Option<Jump>,
}

/// A jump that is not followed yet: since when it persists, and how far ahead the wall clock is.
#[derive(Debug)]
struct Jump {
    since_us: i64,
    ahead_us: i64,
}

impl IdPace {
    pub(crate) fn new() -> IdPace {
        IdPace { time_us: i64::MIN, seen: None, jump: None }
    }

    pub(crate) fn time_us(&self) -> i64 {
        self.time_us
    }

    /// Returns the time. Ignores a reading that is older than the last one.
    pub(crate) fn advance(&mut self, now: Now) -> i64 {
        let Some(seen) = self.seen else {
            self.seen = Some(now);
            self.time_us = self.time_us.max(now.wall_us);
            return self.time_us;
        };
        let passed = now.mono_us - seen.mono_us;
        if passed < 0 {
            return self.time_us;
        }
        self.seen = Some(now);
        let expected = self.time_us + passed;
        self.time_us =
            if now.wall_us >= expected { self.ahead(now, expected) } else { self.behind(now, expected, passed) };
        self.time_us
    }

    /// The time is at least this one from now on.
    pub(crate) fn raise_to(&mut self, time_us: i64) {
        self.time_us = self.time_us.max(time_us);
    }

    /// Sets the time, as if no clock had been read before.
    pub(crate) fn restart(&mut self, time_us: i64, now: Now) {
        *self = IdPace { time_us, seen: Some(now), jump: None };
    }

    fn ahead(&mut self, now: Now, expected: i64) -> i64 {
        let ahead = now.wall_us - expected;
        if ahead > JUMP_MAX_US && !self.persists(now, ahead) {
            return expected;
        }
        self.jump = None;
        now.wall_us
    }

    fn persists(&mut self, now: Now, ahead_us: i64) -> bool {
        let since = match &self.jump {
            Some(jump) if (ahead_us - jump.ahead_us).abs() <= JUMP_MAX_US => jump.since_us,
            _ => {
                self.jump = Some(Jump { since_us: now.mono_us, ahead_us });
                now.mono_us
            }
        };
        now.mono_us - since >= JUMP_HOLD_US
    }

    fn behind(&mut self, now: Now, expected: i64, passed: i64) -> i64 {
        self.jump = None;
        let held = self.time_us.max(now.wall_us);
        match expected - now.wall_us {
            ..=1000 => held, // the clocks are not read at the same moment
            1001..=JUMP_MAX_US => (self.time_us + passed - passed / 10).max(held),
            _ => expected,
        }
    }
}
