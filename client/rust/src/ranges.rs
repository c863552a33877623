//! Prefetched ids.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout_at;

use crate::counters::add;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Reason};
use crate::meter;
use crate::options::LocalTag;
use crate::server::Mode;
use crate::wire::{Answer, Ask, Run};

const FIRST_FETCH: u32 = 128;
const TOO_MANY_FOR: Duration = Duration::from_secs(60);
const LANES: usize = 64;
const PIECE_MOST: u32 = 1024;

/// The prefetched ids of one tag.
///
/// ```text
///     fetch -> next buffer -> buffer in use -> a lane for each thread -> id
///              '-------- under one mutex -------'   under its own mutex
/// ```
///
/// The next buffer is fetched when half of the current one is used, or at once if the other half would not last
/// until the answer. If a fetch is used up too soon, the next one is larger; if it lasts too long, smaller. After a
/// failure the next fetch waits 10 ms to 1 s, or 1 s to 30 s if the server's reason shows that a retry will not help.
pub(crate) struct Supply {
    options: LocalTag,
    /// How often a server reported that the tag is deleted: ids that were fetched before are dropped.
    deletions: AtomicU64,
    lanes: Vec<Lane>,
    fetching: AtomicBool,
    fetched: Notify,
    shared: Mutex<Shared>,
}

/// The piece from which a thread takes its ids, on cache lines of its own. More threads than lanes share them.
#[repr(align(128))]
#[derive(Default)]
struct Lane(Mutex<Piece>);

#[derive(Default)]
struct Piece {
    run: Run,
    deletions: u64,
    ends_at: Option<Instant>, // when its ids are too old
}

#[derive(Default)]
struct Buffer {
    runs: VecDeque<Run>,
    size: u32,
    left: u32,
    asked_at: Option<Instant>,
}

struct Shared {
    in_use: Buffer,
    next: Buffer,
    used_since: Option<Instant>,
    last_use: Duration,
    last_fetch: Duration,
    size: u32,
    most: Option<(u32, Instant)>, // the most to fetch until that time
    starved: bool,
    not_before: Option<Instant>,
    soon: Duration,
    late: Duration,
}

thread_local! {
    static LANE: Cell<usize> = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % LANES)
    };
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Supply {
    pub(crate) fn new(options: &LocalTag) -> Supply {
        let mut options = options.clone();
        options.fetch_max = options.fetch_max.clamp(1, 10_000_000);
        Supply {
            options,
            deletions: AtomicU64::new(0),
            lanes: (0..LANES).map(|_| Lane::default()).collect(),
            fetching: AtomicBool::new(false),
            fetched: Notify::new(),
            shared: Mutex::new(Shared {
                in_use: Buffer::default(),
                next: Buffer::default(),
                used_since: None,
                last_use: Duration::from_secs(3600),
                last_fetch: Duration::ZERO,
                size: FIRST_FETCH,
                most: None,
                starved: false,
                not_before: None,
                soon: Duration::ZERO,
                late: Duration::ZERO,
            }),
        }
    }

    pub(crate) fn tag(&self) -> &str {
        &self.options.tag
    }

    /// Returns an id from memory, if there is one, and begins a fetch if few are left.
    pub(crate) fn try_take(self: &Arc<Supply>, engine: &Arc<Engine>) -> Option<i64> {
        let mut piece = locked(&self.lanes[LANE.with(Cell::get)].0);
        let usable = piece.run.count > 0
            && piece.deletions == self.deletions.load(Ordering::Acquire)
            && piece.ends_at.map_or(true, |end| Instant::now() < end);
        if !usable && !self.fill(&mut piece, engine) {
            return None;
        }
        let id = piece.run.first;
        piece.run.first = id.wrapping_add(piece.run.stride); // beyond the last id it may not exist
        piece.run.count -= 1;
        Some(id)
    }

    /// Returns an id from memory after waiting for a fetch in progress, at most for that time.
    pub(crate) async fn take(self: &Arc<Supply>, engine: &Arc<Engine>, patience: Duration) -> Option<i64> {
        let until = Instant::now() + patience;
        loop {
            let fetched = self.fetched.notified();
            let fetching = self.fetching.load(Ordering::Acquire); // the fetch may end during the attempt
            if let Some(id) = self.try_take(engine) {
                return Some(id);
            }
            let fetching = fetching || self.fetching.load(Ordering::Acquire);
            if !fetching || timeout_at(until.into(), fetched).await.is_err() {
                return None;
            }
        }
    }

    /// Cuts a piece from the buffer in use.
    fn fill(self: &Arc<Supply>, piece: &mut Piece, engine: &Arc<Engine>) -> bool {
        let now = Instant::now();
        let mut shared = locked(&self.shared);
        let filled = shared.prepare(&self.options, now);
        if filled {
            let size = (shared.in_use.size / 32).clamp(1, PIECE_MOST);
            *piece = Piece {
                run: shared.in_use.cut(size),
                deletions: self.deletions.load(Ordering::Acquire),
                ends_at: self.options.max_age.and_then(|age| shared.in_use.asked_at.map(|at| at + age)),
            };
            meter::prefetched(piece.run.count);
            add(&engine.fleet.counts.local_taken, u64::try_from(piece.run.count).unwrap_or(0));
        } else {
            add(&engine.fleet.counts.local_missed, 1);
            piece.run.count = 0;
        }
        if !self.fetching.load(Ordering::Acquire) {
            if let Some(count) = shared.to_fetch(now) {
                self.fetching.store(true, Ordering::Release);
                engine.spawn(Arc::clone(self).fetch(Arc::clone(engine), count, now));
            }
        }
        filled
    }

    async fn fetch(self: Arc<Supply>, engine: Arc<Engine>, count: u32, asked_at: Instant) {
        let ask = Ask::Runs { tag: &self.options.tag, count: i64::from(count) };
        let outcome = engine.call(ask, asked_at + engine.options.deadline, Mode::Async).await;
        let now = Instant::now();
        let mut shared = locked(&self.shared);
        match outcome {
            Ok(Answer::Runs(runs)) => {
                shared.last_fetch = now.duration_since(asked_at);
                shared.soon = Duration::ZERO;
                shared.late = Duration::ZERO;
                shared.next = Buffer { runs: runs.into(), size: count, left: count, asked_at: Some(asked_at) };
            }
            Ok(_) => {}
            Err(error) => {
                if shared.failed(&error, count, now) {
                    self.deletions.fetch_add(1, Ordering::Release);
                }
            }
        }
        self.fetching.store(false, Ordering::Release);
        drop(shared);
        self.fetched.notify_waiters();
    }
}

impl Buffer {
    /// Takes at most that many ids of the first run. The buffer must not be empty.
    fn cut(&mut self, most: u32) -> Run {
        let Some(run) = self.runs.front_mut() else { return Run::default() };
        let count = run.count.min(most as i32);
        let cut = Run { count, ..*run };
        self.left -= count as u32;
        if count == run.count {
            self.runs.pop_front();
        } else {
            run.first += i64::from(count) * run.stride;
            run.count -= count;
        }
        cut
    }

    fn drop_aged(&mut self, max_age: Option<Duration>, now: Instant) {
        let aged = max_age.zip(self.asked_at).is_some_and(|(age, at)| now.duration_since(at) > age);
        if aged {
            *self = Buffer::default();
        }
    }
}

impl Shared {
    /// Returns whether the buffer in use has ids that may be taken.
    fn prepare(&mut self, options: &LocalTag, now: Instant) -> bool {
        self.in_use.drop_aged(options.max_age, now);
        self.next.drop_aged(options.max_age, now);
        if self.in_use.left == 0 && self.next.left > 0 {
            if let Some(since) = self.used_since {
                self.last_use = now.duration_since(since);
                self.resize(options);
            }
            self.used_since = Some(now);
            self.starved = false;
            self.in_use = std::mem::take(&mut self.next);
        }
        self.starved |= self.in_use.left == 0;
        self.in_use.left > 0
    }

    fn resize(&mut self, options: &LocalTag) {
        let lasts = options.lasts;
        if self.last_use > 2 * lasts {
            self.size /= 2;
        } else if self.last_use < lasts / 16 {
            self.size = self.size.saturating_mul(8);
        } else if self.starved || self.last_use < lasts / 2 {
            self.size = self.size.saturating_mul(2);
        }
        self.size = self.size.clamp(1, options.fetch_max);
    }

    /// Returns the number of ids to fetch now, if any.
    fn to_fetch(&self, now: Instant) -> Option<u32> {
        let lasts = self.last_use / 2 >= self.last_fetch;
        let enough = if lasts { self.in_use.size / 2 } else { self.in_use.size };
        let early = self.not_before.is_some_and(|at| now < at);
        if self.next.left > 0 || self.in_use.left > enough || early {
            return None;
        }
        let most = self.most.filter(|(_, until)| now < *until).map_or(u32::MAX, |(most, _)| most);
        Some(self.size.min(most))
    }

    /// Records a failed fetch. Returns whether the tag was deleted: no more ids of it are issued.
    fn failed(&mut self, error: &Error, count: u32, now: Instant) -> bool {
        let refused = error.kind() == ErrorKind::Refused;
        let deleted = refused && error.reason() == Some(Reason::UnknownTag);
        if deleted {
            self.in_use = Buffer::default();
            self.next = Buffer::default();
        }
        let too_many = refused && error.reason() == Some(Reason::BadRequest) && count > 1;
        if too_many {
            self.most = Some((count / 2, now + TOO_MANY_FOR));
        }
        if too_many || !refused {
            self.soon = (2 * self.soon).clamp(Duration::from_millis(10), Duration::from_secs(1));
            self.not_before = Some(now + self.soon);
        } else {
            self.late = (2 * self.late).clamp(Duration::from_secs(1), Duration::from_secs(30));
            self.not_before = Some(now + self.late);
        }
        deleted
    }
}

#[cfg(test)]
#[path = "ranges_tests.rs"]
mod tests;
