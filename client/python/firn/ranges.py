"""Prefetched ids: runs are fetched in the background, so that an id costs a memory access."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Awaitable, Callable, Iterator, Optional

from .ask import Ask
from .errors import Reason, Refused
from .fleet import Fleet
from .options import LocalTag

_FIRST = 128
_PIECES = 32  # of a fetch, so that several threads get some of it
_PIECE_MOST = 1024
_SOON_S = (0.01, 1.0)
_LATE_S = (1.0, 30.0)
_REFUSED_FOR_S = 60.0


class Buffer:
    """The runs of one fetch; ids are taken from its front."""

    def __init__(self, runs: list[range], asked_at: float) -> None:
        self._runs, self.asked_at = deque(runs), asked_at
        self.size = self.left = sum(map(len, runs))

    def piece(self) -> range:
        """Takes the ids of one thread. The buffer must not be empty."""
        return self._cut(min(max(self.size // _PIECES, 1), _PIECE_MOST))

    def many(self, count: int) -> list[int]:
        """Takes exactly that many ids, which the buffer must contain, in ascending order."""
        ids: list[int] = []
        while len(ids) < count:
            ids.extend(self._cut(count - len(ids)))
        return ids

    def _cut(self, most: int) -> range:
        run = self._runs.popleft()
        cut = run[:most]
        if len(cut) < len(run):
            self._runs.appendleft(run[len(cut):])
        self.left -= len(cut)
        return cut


class Piece:
    """The ids of one thread, which takes them without a lock."""

    __slots__ = ("ids", "ends_at", "deletions")

    def __init__(self) -> None:
        self.ids: Iterator[int] = iter(())
        self.ends_at: Optional[float] = None  # its ids are too old from then on
        self.deletions = 0


class _Mine(threading.local):
    """The piece of each thread."""

    def __init__(self) -> None:
        self.piece = Piece()


class Supply:
    """One tag's ids in memory. Thread-safe.

        fetch -> next buffer -> buffer in use -> a piece for each thread -> id
                 '-------- under one lock -------'

    The next buffer is fetched when half of the one in use is gone, or at once where the other half would
    not last until the answer. A fetch that was used up too soon is followed by a larger one, one that
    lasted too long by a smaller one. After a failure the next one waits: 10 ms to 1 s, or 1 s to 30 s
    if the server's reason says that a retry will not help."""

    def __init__(self, tag: LocalTag, fleet: Fleet, call: Callable[[Ask, None], Awaitable[Any]]) -> None:
        self._tag, self._fleet, self._call = tag, fleet, call
        self._mine = _Mine()
        self._deletions = 0  # how often a server reported that the tag is deleted: earlier ids are dropped
        self._lock = threading.Lock()
        self.fetched = fleet.io.bell()
        self._in_use = self._next = Buffer([], 0)
        self._used_since: Optional[float] = None
        self._last_use_s, self._last_fetch_s = float("inf"), 0.0
        self._size, self._most, self._most_until = _FIRST, tag.fetch_max, 0.0
        self._starved = self._fetching = False
        self._not_before = self._soon_s = self._late_s = 0.0
        self.taken = self.missed = 0

    def take_now(self) -> Optional[int]:
        """Returns an id from memory, or None if there is none. Fetches the next ids in time."""
        piece = self._mine.piece
        if piece.deletions == self._deletions and (
                piece.ends_at is None or time.monotonic() < piece.ends_at):
            number = next(piece.ids, None)
            if number is not None:
                return number
        return self._refill(piece)

    async def take(self, until: float) -> Optional[int]:
        """Returns an id from memory, or None if there is none, after waiting for a fetch in progress."""
        while True:
            seen, fetching = self.fetched.rings, self._fetching  # the fetch may end during the attempt
            number = self.take_now()
            if number is not None or not (fetching or self._fetching) or time.monotonic() >= until:
                return number
            await self.fetched.wait(seen, until)

    def take_many(self, count: int) -> Optional[list[int]]:
        """Returns ids in ascending order, or None if there are not that many in memory."""
        with self._lock:
            now, ids = time.monotonic(), None
            self._prepare(now)
            first = min(count, self._in_use.left)
            if first + self._next.left >= count:
                ids = self._in_use.many(first)
                if first < count:  # of another fetch, and perhaps of another server
                    ids = sorted(ids + self._next.many(count - first))
                self.taken += count
            else:
                self.missed += 1
            self._fetch_if_low(now)
            return ids

    def _refill(self, piece: Piece) -> Optional[int]:
        """Cuts a piece from the buffer in use, and returns its first id."""
        age_ms = self._tag.max_age_ms
        with self._lock:
            now, number = time.monotonic(), None
            if self._prepare(now):
                ids = self._in_use.piece()
                number, piece.ids = ids[0], iter(ids[1:])
                piece.deletions = self._deletions
                piece.ends_at = None if age_ms is None else self._in_use.asked_at + age_ms / 1000
                self.taken += len(ids)
            else:
                piece.ids = iter(())
                self.missed += 1
            self._fetch_if_low(now)
            return number

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
        if self._fleet.stopped:
            return
        count = min(self._size, self._most if now < self._most_until else self._tag.fetch_max)
        try:
            self._fleet.io.start("firn-fetch", self._fetch(count, now))
            self._fetching = True
        except RuntimeError as failure:  # the process has no thread left, or ends
            self._failed(failure, count)

    async def _fetch(self, count: int, asked_at: float) -> None:
        buffer: Optional[Buffer] = None
        failure: Optional[Exception] = None
        try:
            runs = await self._call(Ask("getRuns", self._tag.tag, count), None)
            buffer = Buffer([range(one.first, one.first + one.count * one.stride, one.stride)
                             for one in runs], asked_at)
        except Exception as fault:  # of this library too: later ids must be fetched
            failure = fault
        finally:
            with self._lock:
                self._fetching = False
                if buffer:
                    self._next, self._soon_s, self._late_s = buffer, 0.0, 0.0
                    self._last_fetch_s = time.monotonic() - asked_at
                elif failure:
                    self._failed(failure, count)
            self.fetched.ring()

    def _failed(self, failure: Exception, count: int) -> None:
        now = time.monotonic()
        refused = failure.reason if isinstance(failure, Refused) else None
        if refused is Reason.UNKNOWN_TAG:  # it was deleted: no more ids of it
            self._in_use = self._next = Buffer([], 0)
            self._deletions += 1
        too_many = refused is Reason.BAD_REQUEST and count > 1
        if too_many:
            self._most, self._most_until = count // 2, now + _REFUSED_FOR_S
        if too_many or not isinstance(failure, Refused):
            self._soon_s = min(max(_SOON_S[0], 2 * self._soon_s), _SOON_S[1])
            self._not_before = now + self._soon_s
        else:
            self._late_s = min(max(_LATE_S[0], 2 * self._late_s), _LATE_S[1])
            self._not_before = now + self._late_s
