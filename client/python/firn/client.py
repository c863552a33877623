"""The client for threads."""

from __future__ import annotations

from typing import Optional

from .ask import Ask
from .base import BaseClient
from .connection import Io
from .fleet import Fleet
from .threads import ThreadIo, run


class Client(BaseClient):
    """A client of a cluster of Firn servers.

        client = firn.Client("firn://10.0.0.7:7609,10.0.0.8:7609")
        client.next_id("order")

    Thread-safe: use one client for all threads, as long as the program runs. After fork() the child
    may use it: it starts again, with its own connections and ids. Calls end within their deadline,
    with ids or with a FirnError that lists every attempt. The keyword
    arguments are the fields of Options. An empty tag is the servers' default tag."""

    def next_id(self, tag: str = "", deadline_ms: Optional[int] = None) -> int:
        """Returns one id; from memory, if `local_ranges` names the tag."""
        engine = self._engine or self._usable()
        supply = engine.supplies.get(tag)
        if supply is not None:
            number = supply.take_now()
            if number is not None:
                return number
        return run(self._next_id(engine, tag, deadline_ms))

    def next_ids(self, tag: str, count: int, deadline_ms: Optional[int] = None) -> list[int]:
        """Returns exactly `count` ids, 1 to 100000; in ascending order, unless the tag is obfuscated. They are from
        memory, if `local_ranges` names the tag and that many are there."""
        return run(self._next_ids(tag, count, deadline_ms))

    def next_text(self, tag: str = "", deadline_ms: Optional[int] = None) -> str:
        """Returns one id in the text form of its tag."""
        return str(run(self._call(self._usable(), Ask("getText", tag), deadline_ms)))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_io(self) -> Io:
        return ThreadIo()

    def _fleet_of_threads(self) -> Fleet:
        return self._usable().fleet
