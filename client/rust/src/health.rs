//! Whether a server answers, how long a failing one is left alone, and the retry budget.

use std::time::{Duration, Instant};

use crate::random;

pub(crate) const FAILURES_IN_A_ROW: u32 = 3;
const WINDOW: u32 = 20;
const FIRST_EJECTION: Duration = Duration::from_secs(1);
const LONGEST_EJECTION: Duration = Duration::from_secs(30);

const RETRIES_PER_CALL: f64 = 0.2;
const RETRIES_PER_SECOND: f64 = 10.0;
const RETRIES_MOST: f64 = 200.0;

/// Backoff: twice as long each time, up to a longest, drawn from the upper half. It starts from its first value
/// again after the server was healthy for as long as the longest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff {
    length: Duration,
    until: Option<Instant>,
}

impl Backoff {
    pub(crate) fn next(&mut self, now: Instant, first: Duration, longest: Duration) -> Duration {
        if self.until.is_some_and(|until| now > until + longest) {
            self.length = Duration::ZERO;
        }
        self.length = (2 * self.length).clamp(first, longest);
        let spread = self.length / 2 + random::up_to(self.length / 2);
        self.until = Some(now + spread);
        spread
    }
}

/// The health of one server. A server fails after 3 failures in a row, or when half of its last 20 calls failed.
/// It is then out: ejected, or, if too many servers are ejected, called after the healthy ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    pub(crate) out: bool,
    ejected: bool,
    outages: Backoff,
    in_a_row: u32,
    window: u32, // the last calls, newest in bit 0; 1: failed
}

impl Health {
    pub(crate) fn too_many_failures(&self) -> bool {
        self.in_a_row >= FAILURES_IN_A_ROW || self.window.count_ones() * 2 >= WINDOW
    }

    pub(crate) fn is_ejected(&self) -> bool {
        self.out && self.ejected
    }

    /// Records a good call of a server that neither fails nor is out.
    pub(crate) fn answered(&mut self) {
        self.in_a_row = 0;
        self.push(0);
    }

    /// Records a good status. The next outage is longer all the same.
    pub(crate) fn seen(&mut self) {
        *self = Health { outages: self.outages.clone(), ..Health::default() };
    }

    pub(crate) fn failed(&mut self, times: u32) {
        for _ in 0..times {
            self.in_a_row += 1;
            self.push(1);
        }
    }

    /// Begins an outage, and returns its length.
    pub(crate) fn take_out(&mut self, eject: bool, now: Instant) -> Duration {
        self.out = true;
        self.ejected = eject;
        self.outages.next(now, FIRST_EJECTION, LONGEST_EJECTION)
    }

    fn push(&mut self, bit: u32) {
        self.window = (self.window << 1 | bit) & ((1 << WINDOW) - 1);
    }
}

/// Limits the requests that all calls together add as retries.
#[derive(Debug, Default)]
pub(crate) struct RetryBudget {
    spent: f64,
    last: Option<Instant>,
    calls: u64,
}

impl RetryBudget {
    /// Pays for one retry of a client that has begun so many calls. Returns false if the budget is exhausted.
    pub(crate) fn take(&mut self, now: Instant, calls: u64) -> bool {
        self.earn(RETRIES_PER_CALL * calls.saturating_sub(self.calls) as f64);
        self.calls = self.calls.max(calls);
        if let Some(last) = self.last.replace(now) {
            self.earn(RETRIES_PER_SECOND * now.saturating_duration_since(last).as_secs_f64());
        }
        if self.spent > RETRIES_MOST - 1.0 {
            return false;
        }
        self.spent += 1.0;
        true
    }

    fn earn(&mut self, retries: f64) {
        self.spent = (self.spent - retries).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fails_after_three_failures_in_a_row() {
        let mut health = Health::default();
        health.failed(2);
        assert!(!health.too_many_failures());
        health.answered();
        health.failed(2);
        assert!(!health.too_many_failures());
        health.failed(1);
        assert!(health.too_many_failures());
    }

    #[test]
    fn fails_when_half_of_the_last_calls_failed() {
        let mut health = Health::default();
        for _ in 0..9 {
            health.failed(1);
            health.answered();
        }
        assert!(!health.too_many_failures());
        health.failed(1);
        assert!(health.too_many_failures());
    }

    #[test]
    fn backoff_doubles_within_its_upper_half_and_starts_over_after_a_healthy_time() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        for length in [1, 2, 4, 8, 8] {
            let drawn = backoff.next(now, Duration::from_secs(1), Duration::from_secs(8));
            let length = Duration::from_secs(length);
            assert!(drawn >= length / 2 && drawn <= length, "{drawn:?} of {length:?}");
        }
        let later = now + Duration::from_secs(17);
        assert!(backoff.next(later, Duration::from_secs(1), Duration::from_secs(8)) <= Duration::from_secs(1));
    }

    #[test]
    fn a_good_status_ends_the_outage_but_not_its_growth() {
        let (mut health, now) = (Health::default(), Instant::now());
        health.failed(3);
        health.take_out(true, now);
        assert!(health.is_ejected());
        health.seen();
        assert!(!health.out && !health.too_many_failures());
        assert!(health.take_out(true, now) >= Duration::from_secs(1));
    }

    #[test]
    fn the_budget_is_200_retries_ten_more_a_second_and_one_for_five_calls() {
        let (mut budget, now) = (RetryBudget::default(), Instant::now());
        assert_eq!((0..300).filter(|_| budget.take(now, 0)).count(), 200);
        let later = now + Duration::from_secs(1);
        assert_eq!((0..300).filter(|_| budget.take(later, 0)).count(), 10);
        assert_eq!((0..300).filter(|_| budget.take(later, 51)).count(), 10);
    }
}
