//! The ids that are left of a tick.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// No id is left. `next` never has an id 0: `open` returns the first id of a tick, and the later ones are above 0.
const NONE: u64 = 0;

/// The ids that are left of a tick. Threads take them without a lock: under one, they would spend most of their time waking
/// each other. Only a thread that holds the lock of LeasedIds calls `close` and `open`.
///
/// `next` is always an id that was not issued yet. If ids of another tick replaced it since a thread read it, the thread's
/// exchange fails: `last` then belongs to the id that is exchanged.
pub(crate) struct TickIds {
    next: AtomicU64,
    last: AtomicU64,
    step: AtomicU64,
    /// The millisecond of the wall clock to which they belong.
    wall_ms: AtomicI64,
}

impl TickIds {
    pub(crate) fn new() -> TickIds {
        TickIds {
            next: AtomicU64::new(NONE),
            last: AtomicU64::new(NONE),
            step: AtomicU64::new(0),
            wall_ms: AtomicI64::new(i64::MIN),
        }
    }

    /// Returns the next id. None is left if the wall clock shows another millisecond: the clocks must be read.
    pub(crate) fn take(&self, wall_ms: i64) -> Option<u64> {
        if wall_ms != self.wall_ms.load(Ordering::Relaxed) {
            return None;
        }
        let mut next = self.next.load(Ordering::Acquire);
        while next != NONE {
            let is_last = next == self.last.load(Ordering::Acquire);
            let after = if is_last { NONE } else { next + self.step.load(Ordering::Relaxed) };
            match self.next.compare_exchange_weak(next, after, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(next),
                Err(other) => next = other,
            }
        }
        None
    }

    /// Stops issuing: no id is taken after this has returned. Returns the next id and the last one, if any is left.
    pub(crate) fn close(&self) -> Option<(u64, u64)> {
        let next = self.next.swap(NONE, Ordering::AcqRel);
        (next != NONE).then(|| (next, self.last.load(Ordering::Relaxed)))
    }

    /// Returns the first id of this range. `take` issues the others, in this millisecond of the wall clock.
    pub(crate) fn open(&self, (next, last): (u64, u64), step: u64, wall_ms: i64) -> u64 {
        self.step.store(step, Ordering::Relaxed); // that of all leases
        self.last.store(last, Ordering::Release);
        self.wall_ms.store(wall_ms, Ordering::Relaxed);
        self.next.store(if next == last { NONE } else { next + step }, Ordering::Release);
        next
    }

    /// Makes later calls of `take` return None, so that the clocks are read. A call that is under way may still take an id.
    pub(crate) fn expire(&self) {
        self.wall_ms.store(i64::MIN, Ordering::Relaxed);
    }
}
