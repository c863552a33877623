"""The ids of one lease after another."""

from __future__ import annotations

import mmap
import operator
import os
import queue
import random
import sys
import threading
import time
from datetime import datetime, timezone
from typing import Iterator, Optional, Union

from . import lease_terms
from .errors import FirnError, NoLease
from .protocol import LeaseTerms

_MS = 1_000_000  # in ns
_JUMP_MAX_NS = 5_000 * _MS
_WAIT_MAX_S = 0.05  # then next() finds out whether the ids were closed
_MADV_WIPEONFORK = 18  # of Linux; the module mmap does not name it


class SystemClock:
    """The clocks of the system, in nanoseconds."""

    wall_ns = staticmethod(time.time_ns)
    steady_ns = staticmethod(time.monotonic_ns)

    @staticmethod
    def boot_ns() -> int:
        """Also advances while the machine is suspended, where the system has such a clock."""
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return time.monotonic_ns()


class Pace:
    """The id clock. It starts at the wall clock and never goes back, except by `restart`. While the wall clock is behind
    it, the id clock follows the boot clock: at nine tenths of its pace while the difference is at most 5 s. It does so,
    too, while the wall clock is more than 5 s ahead: then that has jumped, and a server must confirm it. Used by one
    thread at a time."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self.restart()

    def restart(self) -> None:
        """Sets the id clock to the wall clock."""
        self._seen_ns, self.jump_ns = self._clock.boot_ns(), 0  # how far the wall clock has jumped
        self.now_ns = self._clock.wall_ns()

    def advance(self) -> int:
        """Returns the id clock's time."""
        boot_ns, wall_ns = self._clock.boot_ns(), self._clock.wall_ns()
        passed_ns, self._seen_ns = max(0, boot_ns - self._seen_ns), boot_ns
        ahead_ns = wall_ns - self.now_ns - passed_ns
        self.jump_ns = ahead_ns if ahead_ns > _JUMP_MAX_NS else 0
        if 0 <= ahead_ns <= _JUMP_MAX_NS:
            self.now_ns = wall_ns
        else:
            self.now_ns += passed_ns * 9 // 10 if -_JUMP_MAX_NS <= ahead_ns < 0 else passed_ns
        return self.now_ns

    def confirm(self, wall_at_zero_ns: int) -> None:
        """Moves the id clock forward to the wall clock of a request that a server has accepted, plus the time since."""
        self.now_ns = max(self.advance(), wall_at_zero_ns + self._seen_ns)


class LeasedIds:
    """The ids of one lease after another. Thread-safe.

    1. An id has a tick in [from_tick, until_tick) of its lease.
    2. Positions (tick and sequence) never fall: the next lease begins in a later tick.
    3. The id clock (Pace) decides which tick is used. A wrong clock wastes the interval and repeats no id.
    4. After the wall clock has jumped forward, there are no ids until a server confirms it.
    5. After close(), and in a forked child, there are no ids.
    6. A signal handler, or a finalizer, may interrupt `next` and call it, or `refuse`. It takes an id of the current tick,
       whose numbers come from an iterator: none is taken twice, wherever the outer call was interrupted."""

    def __init__(self, clock: Optional[SystemClock] = None) -> None:
        self._clock = clock or SystemClock()
        self._steady_ns = self._clock.steady_ns
        self._pace = Pace(self._clock)
        self._lock = threading.RLock()  # its owner may be interrupted, and must not wait for itself
        self._process, self._mark = os.getpid(), fork_mark()
        self._random = random.Random(os.urandom(16))
        self._terms: Optional[LeaseTerms] = None
        self._first_terms: Optional[LeaseTerms] = None  # all leases have their layout
        self._failure: tuple[type[FirnError], str, int] = NoLease, "no server has granted one yet", self._wall_ms()
        self.trouble = ""  # the last failure of a request; replaced by the thread that renews
        self._first_tick = 0
        self._tick = -1  # the last one of which an id was issued
        self._used_before = -1  # under the lease that was ended
        self._tick_ends_ns = 0  # steady clock: the tick is not checked before
        self._took_one = False  # an id was issued under this lease
        # Of the tick: the bits of its ids, and the sequences that are left, in place. Replaced together.
        self._left: tuple[int, Iterator[int]] = 0, iter(())
        self._refused: Optional[tuple[type[FirnError], str]] = None  # by `refuse`
        self._jump_told = False  # to `wakes`
        # Wakes the thread that renews. A signal handler may put into it at any moment.
        self.wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def next(self) -> int:
        """Returns the next id. If the sequence of the tick is used up, waits for the next tick. Raises NoLease, or
        the failure with which the ids were closed."""
        while True:
            if not self._mark[0]:  # before the lock, which another thread may have held at the fork
                self.forked()
            if self._refused:
                raise self._refused[0](self._refused[1])
            if self._lock._is_owned():  # type: ignore[attr-defined]
                return self._next_of_handler()
            with self._lock:
                if self._steady_ns() < self._tick_ends_ns:
                    bits, left = self._left
                    for sequence in left:
                        return bits | sequence
                wait_s = self._begin_tick()
                if not wait_s:
                    bits, left = self._left
                    for sequence in left:
                        return bits | sequence
            if wait_s:
                time.sleep(min(wait_s, _WAIT_MAX_S))

    def _next_of_handler(self) -> int:
        """Returns an id of the current tick: the call that was interrupted may be about to begin another one."""
        bits, left = self._left
        for sequence in left:
            return bits | sequence
        raise NoLease("a signal handler or a finalizer has interrupted next(), and this tick has no ids left", self._wall_ms())

    def refuse(self, kind: type[FirnError], why: str) -> None:
        """Lets later calls of `next` fail. Waits for nothing, so a signal handler may call it; `close` must follow, on
        another thread."""
        self._refused = self._refused or (kind, why)

    def adopt(self, terms: LeaseTerms) -> int:
        """Issues ids of this lease from now on, and ends the lease before, whose highest used tick it returns. Raises
        ValueError for terms under which no id may be issued."""
        fault = lease_terms.fault_of(terms)
        with self._lock:
            if not fault and self._first_terms and not lease_terms.same_layout(self._first_terms, terms):
                fault = "its layout is not that of the first lease, so its ids could equal earlier ones"
            if self._failure[0] is not NoLease:
                fault = self._failure[1]
            if fault:
                raise ValueError(fault)
            if self._first_terms is None:
                self._pace.restart()
            # A late answer must not replace a lease in use.
            if min(self._pace.advance(), self._clock.wall_ns()) // _MS >= start_ms(terms, terms.until_tick):
                raise ValueError("its interval has ended")
            used = self._used_tick()
            self._terms, self._first_tick = terms, max(terms.from_tick, self._tick + 1)
            self._first_terms = self._first_terms or terms
            self._left, self._tick_ends_ns, self._took_one = (0, iter(())), 0, False
            self._set_pace(terms)
            return used

    def extend(self, until_tick: int) -> None:
        """Moves the end of the current lease; ignores an earlier one. An id clock beyond the interval returns, but not
        below the last tick used."""
        with self._lock:
            if self._terms is None:
                return
            self._terms = terms = self._terms._replace(until_tick=max(until_tick, self._terms.until_tick))
            self._first_tick = max(self._first_tick, self._tick)
            self._set_pace(terms)
            self._tick_ends_ns = 0

    def wall_clock(self) -> tuple[int, int]:
        """Returns the wall clock for a request, in milliseconds, and what `confirm` needs after its answer."""
        wall_ns = self._clock.wall_ns()  # before the boot clock: a pause between must not prolong the time since
        return wall_ns // _MS, wall_ns - self._clock.boot_ns()

    def confirm(self, wall_at_zero_ns: int) -> None:
        """Moves the id clock forward to a wall clock that a server has accepted. On some systems no other clock advances
        while the machine is suspended."""
        with self._lock:
            self._pace.confirm(wall_at_zero_ns)
            self._tick_ends_ns = 0

    def close(self, kind: type[FirnError], why: str) -> int:
        """Ends the current lease: no id is issued after this has returned. `kind` and `why` are the failure of later
        calls; only after NoLease can another lease follow. Returns the highest tick used."""
        if not self._mark[0]:
            self.forked()
        with self._lock:
            used = self._used_tick()
            self._end(kind, why)
            return used

    def forked(self) -> None:
        """Runs in a forked child, where a thread that does not exist may hold the lock."""
        self._lock, self._process, self._mark = threading.RLock(), os.getpid(), b"\1"
        self._end(NoLease, "this process was forked; create a generator of its own")

    def now_ms(self) -> int:
        """Returns the id clock's time."""
        with self._lock:
            if self._first_terms is None:
                self._pace.restart()  # before, the wall clock cannot have jumped
            now_ms = self._pace.advance() // _MS
            self._jump_told &= self.jumped()
            return now_ms

    def jumped(self) -> bool:
        """Returns whether the wall clock had jumped when it was read last."""
        return self._pace.jump_ns > 0

    def terms(self) -> Optional[LeaseTerms]:
        """Returns the terms of the current lease."""
        return None if self._refused else self._terms

    # --- under the lock -------------------------------------------------------------------------

    def _begin_tick(self) -> float:
        """Moves to the tick of the id clock, unless the current one has ids left and the clock has not passed it. Returns
        the time to wait, or 0 if the sequence has ids."""
        terms = self._terms
        if os.getpid() != self._process:
            self.forked()
        if self._terms is None or terms is None:
            raise self._no_lease()
        steady_ns = self._steady_ns()  # before the other clocks: a pause between must not prolong the tick
        now_ns, told = self._pace.advance(), self._jump_told
        self._jump_told = self.jumped()
        if self._jump_told:
            if not told:
                self.wakes.put(None)
            raise NoLease(f"the wall clock has jumped forward by {self._pace.jump_ns // 10**9} s, and no server has "
                          "confirmed it" + self._last_failure(), now_ns // _MS)
        tick = max((now_ns // _MS - terms.epoch_ms) // terms.tick_ms, self._first_tick)
        wait_ns = 0
        if tick <= self._tick:
            tick = self._tick
            if not self._has_left():
                tick += 1
                wait_ns = max(1, start_ms(terms, tick) * _MS - now_ns)
        if tick >= terms.until_tick:
            raise NoLease(self._sentence(f"that of machine id {terms.machine} ended, and no server extended it",
                                         start_ms(terms, terms.until_tick)), start_ms(terms, terms.until_tick))
        if wait_ns:
            return wait_ns / 1e9
        if tick > self._tick:
            self._begin_sequence(terms, tick)
        self._tick_ends_ns = steady_ns + start_ms(terms, tick + 1) * _MS - now_ns
        return 0.0

    def _begin_sequence(self, terms: LeaseTerms, tick: int) -> None:
        """Starts in the lower half, so that ids of rare calls do not all end with the same bits; at 0 after a tick
        whose sequence was used up."""
        full = self._tick == tick - 1 and self._took_one and not self._has_left()
        start = 0 if full else self._random.randrange(max(1, terms.sequence_count // 2))
        self._tick, self._took_one = tick, True
        first, end = terms.sequence_from + start, terms.sequence_from + terms.sequence_count
        step = 1 << terms.sequence_shift
        self._left = (terms.base_bits | tick << terms.tick_shift,
                      iter(range(first * step, end * step, step)))

    def _has_left(self) -> bool:
        return operator.length_hint(self._left[1]) > 0

    def _set_pace(self, terms: LeaseTerms) -> None:
        """The id clock is not below the lease. If it has followed a wrong wall clock beyond the interval, it returns
        to the corrected one."""
        first_ns, until_ns = start_ms(terms, self._first_tick) * _MS, start_ms(terms, terms.until_tick) * _MS
        now_ns = self._pace.advance()
        if now_ns >= until_ns > self._clock.wall_ns():
            self._pace.restart()
        self._pace.now_ns = max(self._pace.now_ns, first_ns)

    def _used_tick(self) -> int:
        if self._terms is None:
            return self._used_before
        return self._tick if self._took_one else self._terms.from_tick - 1

    def _end(self, kind: type[FirnError], why: str) -> None:
        self._used_before, self._terms = self._used_tick(), None
        self._left, self._tick_ends_ns, self._took_one = (0, iter(())), 0, False
        if self._failure[0] is NoLease:  # the end of the generator is final
            self._failure = kind, why, self._wall_ms()

    def _wall_ms(self) -> int:
        return self._clock.wall_ns() // _MS

    def _no_lease(self) -> FirnError:
        kind, why, since_ms = self._failure
        return NoLease(self._sentence(why, since_ms), since_ms) if kind is NoLease else kind(why)

    def _sentence(self, why: str, since_ms: int) -> str:
        return f"no lease of a machine id since {utc(since_ms):%Y-%m-%d %H:%M:%S} UTC: {why}{self._last_failure()}"

    def _last_failure(self) -> str:
        return f"; last failure: {self.trouble}" if self.trouble else ""


def fork_mark() -> Union[mmap.mmap, bytes]:
    """Returns bytes of which the first is 1. On Linux, it is 0 in a forked child, also when the fork ran no hook of Python.
    Reading it takes a tenth of the time of os.getpid()."""
    if sys.platform == "linux":
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page[0] = 1
        try:
            page.madvise(_MADV_WIPEONFORK)
            return page
        except OSError:  # a kernel before 4.14
            page.close()
    return b"\1"


def start_ms(terms: LeaseTerms, tick: int) -> int:
    """Returns when a tick begins, in milliseconds since 1970."""
    return terms.epoch_ms + tick * terms.tick_ms


def utc(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, timezone.utc)
