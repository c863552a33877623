"""Prefetched ids: runs are fetched in the background, so that an id costs a memory access."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Optional

from .ask import Ask
from .errors import Reason, Refused
from .options import LocalTag

if TYPE_CHECKING:
    from .engine import Engine

_FIRST = 128
_SOON_S = (0.01, 1.0)
_LATE_S = (1.0, 30.0)
_REFUSED_FOR_S = 60.0


class Buffer:
    """The runs of one fetch; ids are taken from its front."""

    def __init__(self, runs: list[range], asked_at: float) -> None:
        self._runs, self.asked_at = deque(runs), asked_at
        self.size = self.left = sum(map(len, runs))

    def take(self) -> int:
        run = self._runs[0]
        if len(run) > 1:
            self._runs[0] = run[1:]
        else:
            self._runs.popleft()
        self.left -= 1
        return run[0]


class Supply:
    """One tag's ids in memory. Thread-safe.

    Of two buffers one is used, and the next one is fetched when half of it is gone, or at once where
    the other half would not last until the answer. A fetch that was used up too soon is followed by a
    larger one, one that lasted too long by a smaller one. After a failure the next one waits: 10 ms
    to 1 s, or 1 s to 30 s when a server said that asking again will not help."""

    def __init__(self, tag: LocalTag, engine: Engine) -> None:
        self._tag, self._engine = tag, engine
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._in_use = self._next = Buffer([], 0)
        self._used_since: Optional[float] = None
        self._last_use_s, self._last_fetch_s = float("inf"), 0.0
        self._size, self._most, self._most_until = _FIRST, tag.fetch_max, 0.0
        self._starved = self._fetching = self._stopped = False
        self._worker: Optional[threading.Thread] = None
        self._not_before = self._soon_s = self._late_s = 0.0
        self.taken = self.dropped = 0

    def take(self, patience_s: float) -> Optional[int]:
        """Returns an id from memory, or None if there is none, after waiting for a fetch in progress."""
        until = None
        with self._lock:
            while True:
                now = time.monotonic()
                ready = self._prepare(now)
                number = self._in_use.take() if ready else None
                self._fetch_if_low(now)
                if number is not None:
                    self.taken += 1
                    return number
                until = until or now + patience_s
                if not self._fetching or now >= until:
                    return None
                self._changed.wait(until - now)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._changed.notify_all()

    def _prepare(self, now: float) -> bool:
        """Whether the current buffer has ids that may be taken. Under the lock, as all below."""
        self._in_use, self._next = self._fresh(self._in_use, now), self._fresh(self._next, now)
        if not self._in_use.left and self._next.left:
            if self._used_since is not None:
                self._last_use_s = now - self._used_since
                self._resize(self._last_use_s)
            self._used_since, self._starved = now, False
            self._in_use, self._next = self._next, Buffer([], 0)
        self._starved = self._starved or not self._in_use.left
        return self._in_use.left > 0

    def _fresh(self, buffer: Buffer, now: float) -> Buffer:
        age_ms = self._tag.max_age_ms
        if not buffer.left or age_ms is None or (now - buffer.asked_at) * 1000 <= age_ms:
            return buffer
        self.dropped += buffer.left
        return Buffer([], 0)

    def _resize(self, took_s: float) -> None:
        lasts_s = self._tag.lasts_ms / 1000
        if took_s > 2 * lasts_s:
            self._size = max(1, self._size // 2)
        elif took_s < lasts_s / 16:
            self._size = min(self._size * 8, self._tag.fetch_max)
        elif self._starved or took_s < lasts_s / 2:
            self._size = min(self._size * 2, self._tag.fetch_max)

    def _fetch_if_low(self, now: float) -> None:
        half_lasts = self._last_use_s / 2 >= self._last_fetch_s
        low = self._in_use.left <= (self._in_use.size // 2 if half_lasts else self._in_use.size)
        if self._next.left or not low or self._fetching or now < self._not_before:
            return
        self._fetching = True
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="firn-fetch", daemon=True)
            self._worker.start()
        self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._fetching and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                asked_at = time.monotonic()
                most = self._most if asked_at < self._most_until else self._tag.fetch_max
                count = min(self._size, most)
            buffer, failure = None, None
            try:
                runs = self._engine.call(Ask("getRuns", self._tag.tag, count), None)
                buffer = Buffer([range(one.first, one.first + one.count * one.stride, one.stride)
                                 for one in runs], asked_at)
            except Exception as fault:  # of this library too: the thread must fetch again
                failure = fault
            with self._lock:
                self._fetching = False
                if buffer:
                    self._next, self._soon_s, self._late_s = buffer, 0.0, 0.0
                    self._last_fetch_s = time.monotonic() - asked_at
                elif failure:
                    self._failed(failure, count)
                self._changed.notify_all()

    def _failed(self, failure: Exception, count: int) -> None:
        now = time.monotonic()
        if isinstance(failure, Refused) and failure.reason is Reason.UNKNOWN_TAG:
            self._in_use = self._next = Buffer([], 0)  # it was deleted: no more ids of it
        too_many = (isinstance(failure, Refused) and failure.reason is Reason.BAD_REQUEST
                    and count > 1)
        if too_many:
            self._most, self._most_until = count // 2, now + _REFUSED_FOR_S
        if too_many or not isinstance(failure, Refused):
            self._soon_s = min(max(_SOON_S[0], 2 * self._soon_s), _SOON_S[1])
            self._not_before = now + self._soon_s
        else:
            self._late_s = min(max(_LATE_S[0], 2 * self._late_s), _LATE_S[1])
            self._not_before = now + self._late_s
