"""The failover of one call.

A call tries each server once, and sends at most `attempts_max` requests. A refusal that another server
would repeat ends the call. If all reachable servers are overloaded, the call waits for the shortest
advised time and starts again, if the deadline permits. If no server is left, or all are unreachable,
silent or draining, it waits for news of servers. No attempt starts at or after the
deadline."""

from __future__ import annotations

import random
import time
from collections import deque
from typing import Any, Awaitable, Callable, Optional

from .ask import Ask
from .connection import LateAnswer
from .errors import REFUSAL_RULES, Attempt, AttemptFailed, End, FirnError, Reason, Refused, Retry, Unavailable
from .fleet import Fleet
from .options import Options
from .server import NEVER, Server

_CONNECTS_MAX = 16
_ATTEMPTS_KEPT = 32
_ROUNDS_MAX = 100
_HOSTS_NAMED = 3
_OVERLOAD_PAUSE_S = 0.01
_COUNTED = {End.TIMEOUT: ("timeouts",), End.CONNECT_TIMEOUT: ("timeouts",), End.BROKEN: ("broken",),
            End.WRONG_SERVICE: ("broken",)}

Attempting = Callable[[Server, Ask, bool, float, "set[Server]"], Awaitable[Any]]


class Call:
    """Used once, by one thread or task."""

    def __init__(self, fleet: Fleet, options: Options, ask: Ask, deadline_ms: int) -> None:
        self._fleet, self._options, self._ask = fleet, options, ask
        self._deadline, self._lag = time.monotonic() + deadline_ms / 1000, fleet.io.lag
        self._attempts: deque[Attempt] = deque(maxlen=_ATTEMPTS_KEPT)
        self._attempts_made = 0
        self._last: Optional[AttemptFailed] = None
        self._sent, self._began = 0, 0.0
        self._no_server = False
        self._paid = False  # the next request uses the retry budget
        self._late: list[LateAnswer] = []
        self._rounds = 0    # rounds that ended because all servers were overloaded
        fleet.call_begins()
        self._begin_round()

    @property
    def _until(self) -> float:
        return self._deadline + self._fleet.io.lag - self._lag

    def _begin_round(self) -> None:
        self._tried: set[Server] = set()
        self._unreached = self._overloaded = self._lost = 0
        self._advice_s: Optional[float] = None

    async def run(self, attempt: Attempting) -> Any:
        """Returns the answer, or raises a FirnError that lists every attempt."""
        waited = False
        while True:
            seen = self._fleet.news.rings
            self._stop_if_over()
            server = None
            if self._sent < self._options.attempts_max:
                server = self._fleet.pick(self._ask.tag, self._tried)
                if server is None and waited:
                    self._begin_round()
                    server = self._fleet.pick(self._ask.tag, self._tried)
            try:
                if server is None:
                    waited = await self._wait(seen)
                    continue
                waited = False
                if self._paid and not self._fleet.take_retry():
                    self._fleet.give_back(server)
                    raise self._failure("the retry budget is exhausted")
            except Unavailable:
                if (answer := await self._late_answer()) is not None:
                    return answer
                raise
            try:
                return await self._ask_one(server, attempt)
            except AttemptFailed as failure:
                if not failure.paused:
                    self._heed(server, failure)

    async def _late_answer(self) -> Any:
        """Waits for a late answer until the deadline, or returns None if there is none."""
        for late in self._late:
            if (answer := await late.take(self._until)) is not None:
                return answer
        return None

    async def _ask_one(self, server: Server, attempt: Attempting) -> Any:
        """Asks the server; tries again on a new connection if an idle one turns out to be closed."""
        try:
            try:
                return await self._timed(server, attempt, False)
            except AttemptFailed as failure:
                if not failure.stale or time.monotonic() >= self._until:
                    raise
                return await self._timed(server, attempt, True)
        finally:
            self._fleet.give_back(server)

    async def _timed(self, server: Server, attempt: Attempting, fresh: bool) -> Any:
        began = self._began = time.monotonic()
        try:
            answer = await attempt(server, self._ask, fresh, self._until, self._tried)
            self._fleet.answered(server, self._ask.tag)
            return answer
        except AttemptFailed as failure:
            if failure.paused:
                raise
            now = time.monotonic()
            self._fleet.count("attempts", *_COUNTED.get(failure.end, ()))
            self._attempts_made += 1
            if failure.late is not None:
                self._late.append(failure.late)
            self._attempts.append(Attempt(server.address, failure.end, failure.reason,
                                          (now - began) * 1000, failure.detail))
            # A timeout after too little time says nothing about the server's health.
            hurried = (failure.end in (End.TIMEOUT, End.CONNECT_TIMEOUT)
                       and (now - began) * 2000 < self._options.attempt_limit_ms)
            if not hurried and not self._fleet.stopped:  # close() ends connections
                self._fleet.failed(server, self._ask.tag, failure)
            raise

    def _heed(self, server: Server, failure: AttemptFailed) -> None:
        self._last = failure
        retry = REFUSAL_RULES[failure.reason][0] if failure.reason else Retry.NEVER
        elsewhere = retry is Retry.ELSEWHERE or (retry is Retry.IF_SAID and failure.another_may_help)
        if failure.end is End.REFUSED and not elsewhere:
            raise Refused(failure.detail, tuple(self._attempts), failure.reason,
                          failure.retry_after_ms)
        if self._options.on_failure == "failfast":
            raise self._failure("the first server failed")
        self._tried.add(server)
        self._paid = not failure.unsent and not (
            failure.end is End.TIMEOUT and self._fleet.may_move(server, self._began))
        if failure.unsent:
            self._unreached += 1
        else:
            self._sent += 1
        silent = failure.end in (End.TIMEOUT, End.CLOSED)
        self._lost += silent or failure.unsent or failure.reason is Reason.DRAINING
        if failure.reason is Reason.OVERLOADED:
            self._overloaded += 1
            advice = max(failure.retry_after_ms / 1000, _OVERLOAD_PAUSE_S)
            self._advice_s = min(advice, self._advice_s or advice)

    async def _wait(self, seen: int) -> bool:
        """Waits for an event that may help, or fails. Returns whether it was news of servers, of which the
        call has `seen` so many."""
        now, tried = time.monotonic(), len(self._tried)
        paused_until = self._fleet.paused_until(self._tried)
        if paused_until < NEVER and self._sent < self._options.attempts_max:
            await self._fleet.news.wait(seen, min(paused_until, self._until))
            return False
        self._no_server = self._no_server or tried == 0
        if self._overloaded and self._overloaded + self._unreached == tried:
            advice = self._advice_s or 0
            room = self._until - now - advice
            self._rounds += 1
            if room <= 0 or self._rounds == _ROUNDS_MAX:
                raise self._failure("all servers are overloaded")
            # Adds up to half of the time at random, so that clients do not return together.
            await self._fleet.wait_for_stop(now + advice + random.uniform(0, min(advice, room) / 2))
            self._sent = 0
            self._begin_round()
            return False
        no_answer = tried == 0 or (self._lost == tried and self._options.lists_change)
        if not no_answer or self._sent >= self._options.attempts_max:
            raise self._failure("no other server is left to ask")
        await self._fleet.news.wait(seen, min(now + self._options.attempt_limit_ms / 1000, self._until))
        return True

    def _stop_if_over(self) -> None:
        if self._fleet.stopped:
            raise self._failure("the client was closed")
        if time.monotonic() >= self._until:
            raise self._failure("the deadline has passed")
        if self._unreached >= _CONNECTS_MAX:
            raise self._failure("too many servers are out of reach")

    def _failure(self, why: str) -> FirnError:
        last = self._last
        if self._no_server and not self._attempts:
            why = "no provider: no usable server is known"
            if hosts := self._fleet.unresolved():
                why += f"; no address is known for {', '.join(hosts[:_HOSTS_NAMED])}"
            self._fleet.tell("no server", "", why)
        if self._attempts_made > _ATTEMPTS_KEPT:
            why += f"; the last {_ATTEMPTS_KEPT} of {self._attempts_made} attempts:"
        return Unavailable(why, tuple(self._attempts), last.reason if last else None,
                           last.retry_after_ms if last else 0)
