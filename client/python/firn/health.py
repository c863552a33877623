"""The health of a server, backoff, the retry budget, and the pace of requests for the list."""

from __future__ import annotations

import math
import random
import time

IN_A_ROW = 3
_WINDOW = 20
_FIRST_EJECTION_S = 1.0
_LONGEST_EJECTION_S = 30.0
_HURRY_S = 1.0


class Backoff:
    """A backoff that doubles up to a longest, drawn from the upper half, so that clients do not return
    together. After a time without failures of the longest backoff, it starts again from the first. The
    owner guards it."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._length_s, self._until = 0.0, 0.0

    def next(self, now: float) -> float:
        """Begins a backoff, and returns its length in seconds."""
        if now > self._until + self._longest_s:
            self._length_s = 0.0
        self._length_s = min(max(self._first_s, 2 * self._length_s), self._longest_s)
        spread = self._length_s * random.uniform(0.5, 1.0)
        self._until = now + spread
        return spread


class Health:
    """Recent failures of a server. After 3 failures in a row, or when half of its last 20
    calls failed, the server is out: it is ejected, or, if half of the servers already are, it is failing
    and called after the healthy ones. It is probed after 1 s, doubling to 30 s. An answer to a call ends
    this and clears all failures. A good status does, too, but keeps the doubled time. The owner guards
    it."""

    def __init__(self) -> None:
        self._times = Backoff(_FIRST_EJECTION_S, _LONGEST_EJECTION_S)
        self.seen()

    def seen(self) -> None:
        """Records a good status."""
        self.too_many_failures = self.out = self.ejected = False
        self._in_a_row = 0
        self._window = 0  # the last calls, newest in bit 0; 1: failed

    def answered(self) -> None:
        """Records a successful call to a server that is in use."""
        if self._window == 0:
            return  # nor were there failures in a row
        self._in_a_row = 0
        self._window = self._window << 1 & ((1 << _WINDOW) - 1)
        self._judge()

    def failed(self, times: int) -> None:
        for _ in range(times):
            self._in_a_row += 1
            self._window = (self._window << 1 | 1) & ((1 << _WINDOW) - 1)
        self._judge()

    def _judge(self) -> None:
        self.too_many_failures = self._in_a_row >= IN_A_ROW or bin(self._window).count("1") * 2 >= _WINDOW

    def take_out(self, eject: bool, now: float) -> float:
        """Ejects the server, or calls it last, and returns for how many seconds."""
        self.out, self.ejected = True, eject
        return self._times.next(now)


class ListPace:
    """When to ask for the list of servers."""

    def __init__(self, changes: bool) -> None:
        self.due, self.asked = time.monotonic() if changes else math.inf, 0.0

    def hurry(self) -> None:
        """Asks within a random time of at most 1 s, because other clients see the same failure."""
        self.due = min(self.due, max(time.monotonic(), self.asked + _HURRY_S) + random.uniform(0, _HURRY_S))


class RetryBudget:
    """Limits how many requests all calls together add as retries, so that clients do not multiply the
    load on servers that are already slow. Each call earns a fifth of a retry and each second earns ten;
    at most 200 are stored. The owner guards it."""

    _PER_CALL, _PER_S, _MOST = 0.2, 10.0, 200.0

    def __init__(self, now: float) -> None:
        self._left, self._last = self._MOST, now

    def call_begins(self) -> None:
        self._left = min(self._MOST, self._left + self._PER_CALL)

    def take(self, now: float) -> bool:
        """Pays for one retry; False when the budget is exhausted."""
        self._left = min(self._MOST, self._left + self._PER_S * (now - self._last))
        self._last = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
