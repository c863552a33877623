"""What the client for threads and the client for asyncio have in common."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any, Callable, Literal, Optional, Sequence

from .ask import Ask
from .connection import Io
from .engine import Engine
from .errors import Closed, Reason, Refused
from .fleet import Fleet
from .options import Event, LocalTag, Options, Tls, described
from .server import SeenServer
from .view import Counters

_TAG_MAX = 128  # bytes
_COUNT_MAX = 100_000
_DEADLINE_MAX_MS = 3_600_000


class BaseClient:
    """Use `firn.Client` or `firn.aio.Client`."""

    _begins_at_once = True

    def __init__(self, servers: str, *, cluster_uuid: str = "", rack: Optional[int] = None,
                 on_failure: Literal["failover", "failfast"] = "failover", deadline_ms: int = 200,
                 attempt_limit_ms: int = 80, attempts_max: int = 3, connections_max: int = 64, servers_max: int = 16,
                 local_ranges: Sequence[LocalTag] = (), tls: Optional[Tls] = None,
                 on_event: Optional[Callable[[Event], None]] = None) -> None:
        self._options = Options(servers, cluster_uuid, rack, on_failure, deadline_ms, attempt_limit_ms,
                                attempts_max, connections_max, servers_max, local_ranges, tls, on_event)
        self._lock = threading.Lock()
        self._closed = False
        self._engine: Optional[Engine] = None  # also None after close() and in a forked child
        self._counted = Counters()  # until close()
        _clients.add(self)
        if self._begins_at_once:
            self._usable()

    def servers(self) -> list[SeenServer]:
        """Returns the servers as this client sees them, in the order of their addresses; none after close()."""
        engine = self._engine
        return engine.fleet.view() if engine else []

    def counters(self) -> Counters:
        """Returns what this client has done since it was created, or since fork(); also after close()."""
        engine = self._engine
        return self._counted if engine is None else self._counters_of(engine)

    @staticmethod
    def _counters_of(engine: Engine) -> Counters:
        supplies = engine.supplies.values()
        return engine.fleet.counted()._replace(local_ids=sum(one.taken for one in supplies),
                                               local_ids_missed=sum(one.missed for one in supplies))

    def close(self) -> None:
        """Does not wait: calls in progress end with Closed."""
        with self._lock:
            self._closed = True
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
            self._counted = self._counters_of(engine)

    def _make_io(self) -> Io:
        raise NotImplementedError

    def _fleet_of_threads(self) -> Optional[Fleet]:
        """Returns the client's fleet, if threads can share it."""
        return None

    def _usable(self) -> Engine:
        """Returns the engine; creates it for the first call, and for the first one after fork()."""
        engine = self._engine
        if engine is not None:
            return engine
        with self._lock:
            if self._closed:
                raise Closed("the client was closed")
            if self._engine is None:
                self._engine = engine = Engine(self._options, self._make_io())
                # It ends by itself after the last reference to the client is gone.
                self._when_forgotten = weakref.finalize(self, engine.forget)
                self._when_forgotten.atexit = False
            return self._engine

    async def _next_id(self, engine: Engine, tag: str, deadline_ms: Optional[int]) -> int:
        """Returns an id that is not in memory yet."""
        limit_ms = self._options.deadline_ms if deadline_ms is None else _checked(deadline_ms)
        supply = engine.supplies.get(tag)
        if supply is not None:
            began = time.monotonic()
            number = await supply.take(began + limit_ms / 4000)
            if number is not None:
                return number
            limit_ms = max(0, limit_ms - int((time.monotonic() - began) * 1000))
        return int(await self._call(engine, Ask("getId", tag), limit_ms))

    async def _next_ids(self, tag: str, count: int, deadline_ms: Optional[int]) -> list[int]:
        if not isinstance(count, int) or not 1 <= count <= _COUNT_MAX:
            raise Refused(f"count is {described(count)}; it must be 1 to {_COUNT_MAX}", (), Reason.BAD_REQUEST)
        engine = self._usable()
        supply = engine.supplies.get(tag)
        ids = supply.take_many(count) if supply else None
        return ids or list(await self._call(engine, Ask("getIds", tag, count), deadline_ms))

    @staticmethod
    async def _call(engine: Engine, ask: Ask, deadline_ms: Optional[int]) -> Any:
        if not isinstance(ask.tag, str):
            raise Refused(f"a tag is {described(ask.tag)}, not a str", (), Reason.BAD_REQUEST)
        if len(ask.tag.encode()) > _TAG_MAX:
            raise Refused(f"a tag has at most {_TAG_MAX} bytes", (), Reason.BAD_REQUEST)
        return await engine.call(ask, None if deadline_ms is None else _checked(deadline_ms))

    def _forked(self) -> None:
        """Runs in the child: does not use the parent's connections and ids."""
        parents, self._engine = self._engine, None
        self._lock = threading.Lock()
        if parents is not None:
            self._when_forgotten.detach()
            self._leave_behind(parents)
        self._options.tell("forked", "", "connections and ids were left behind")

    def _leave_behind(self, parents: Engine) -> None:
        parents.abandon()


def _checked(deadline_ms: int) -> int:
    if not isinstance(deadline_ms, (int, float)) or not 0 <= deadline_ms <= _DEADLINE_MAX_MS:
        raise Refused(f"deadline_ms is {described(deadline_ms)}; it must be 0 to {_DEADLINE_MAX_MS}", (),
                      Reason.BAD_REQUEST)
    return deadline_ms


_clients: weakref.WeakSet[BaseClient] = weakref.WeakSet()


def _after_fork() -> None:
    for client in list(_clients):
        client._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
