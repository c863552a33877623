"""Ids from a cluster of Firn servers."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any, Optional

from .ask import Ask
from .engine import Engine
from .errors import Closed, Reason, Refused
from .options import Options
from .server import SeenServer

_TAG_MAX = 128  # bytes
_COUNT_MAX = 100_000


class Client:
    """A client of a cluster of Firn servers.

        client = firn.Client("firn://10.0.0.7:7609,10.0.0.8:7609")
        client.next_id("order")

    Thread-safe: use one client for all threads, as long as the program runs. After fork() the child
    may use it: it starts again, with its own connections and ids. Calls end within their deadline,
    with ids or with a FirnError that lists every attempt. The keyword
    arguments are the fields of Options. An empty tag is the servers' default tag."""

    def __init__(self, servers: str, **options: Any) -> None:
        self._options = Options(servers, **options)
        self._lock = threading.Lock()
        self._closed = False
        self._engine: Optional[Engine] = self._begin()
        _clients.add(self)

    def _begin(self) -> Engine:
        """Creates an engine that ends by itself after the last reference to the client is gone."""
        engine = Engine(self._options)
        self._when_forgotten = weakref.finalize(self, engine.forget)
        self._when_forgotten.atexit = False
        return engine

    def next_id(self, tag: str = "", deadline_ms: Optional[int] = None) -> int:
        """Returns one id; from memory, if `local_ranges` names the tag."""
        engine = self._of_this_process()
        supply = engine.supplies.get(tag)
        if supply is None:
            return int(self._call(engine, Ask("getId", tag), deadline_ms))
        limit_ms = self._options.deadline_ms if deadline_ms is None else deadline_ms
        began = time.monotonic()
        number = supply.take(limit_ms / 4000)
        if number is None:
            left_ms = limit_ms - int((time.monotonic() - began) * 1000)
            number = self._call(engine, Ask("getId", tag), left_ms)
        return int(number)

    def next_ids(self, tag: str, count: int, deadline_ms: Optional[int] = None) -> list[int]:
        """Returns exactly `count` ids, 1 to 100000; in ascending order, unless the tag is obfuscated."""
        if not 1 <= count <= _COUNT_MAX:
            raise Refused(f"count is {count}; it must be 1 to {_COUNT_MAX}", (), Reason.BAD_REQUEST)
        answer = self._call(self._of_this_process(), Ask("getIds", tag, count), deadline_ms)
        return list(answer)

    def next_text(self, tag: str = "", deadline_ms: Optional[int] = None) -> str:
        """Returns one id in the text form of its tag."""
        return str(self._call(self._of_this_process(), Ask("getText", tag), deadline_ms))

    def servers(self) -> list[SeenServer]:
        """Returns the servers as this client sees them, in the order of their addresses."""
        return self._of_this_process().fleet.view()

    def close(self) -> None:
        """Does not wait: calls in progress in other threads end with Closed."""
        with self._lock:
            self._closed = True
            engine = self._engine
        if engine is not None:
            engine.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def _call(engine: Engine, ask: Ask, deadline_ms: Optional[int]) -> Any:
        if len(ask.tag.encode()) > _TAG_MAX:
            raise Refused(f"a tag has at most {_TAG_MAX} bytes", (), Reason.BAD_REQUEST)
        return engine.call(ask, deadline_ms)

    def _of_this_process(self) -> Engine:
        engine = self._engine
        if engine is not None and not self._closed:
            return engine
        with self._lock:
            if self._closed:
                raise Closed("the client was closed")
            if self._engine is None:
                self._engine = self._begin()
            return self._engine

    def _forked(self) -> None:
        """Runs in the child: does not use the parent's connections and ids."""
        parents, self._engine = self._engine, None
        self._when_forgotten.detach()
        self._lock = threading.Lock()
        if parents is not None:
            parents.abandon()
        self._options.tell("forked", "", "connections and ids were left behind")


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork() -> None:
    for client in list(_clients):
        client._forked()


os.register_at_fork(after_in_child=_after_fork)
