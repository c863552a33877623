"""The client for asyncio."""

from __future__ import annotations

import asyncio
from typing import Optional

from .ask import Ask
from .base import BaseClient
from .connection import Io
from .engine import Engine
from .loop import LoopIo


class Client(BaseClient):
    """A client of a cluster of Firn servers, for asyncio.

        async with firn.aio.Client("firn://10.0.0.7:7609,10.0.0.8:7609") as client:
            await client.next_id("order")

    It belongs to the event loop of its first call: use one client for all tasks of the loop. It has no
    thread. Calls end within their deadline, with ids or with a FirnError that lists every attempt. A
    cancelled call ends at once; its id is lost, and never issued again. The keyword arguments are the
    fields of Options. An empty tag is the servers' default tag."""

    _begins_at_once = False  # it may be created before the event loop

    async def next_id(self, tag: str = "", deadline_ms: Optional[int] = None) -> int:
        """Returns one id; from memory, if `local_ranges` names the tag."""
        engine = self._usable()
        supply = engine.supplies.get(tag)
        if supply is not None:
            number = supply.take_now()
            if number is not None:
                return number
        return await self._next_id(engine, tag, deadline_ms)

    async def next_ids(self, tag: str, count: int, deadline_ms: Optional[int] = None) -> list[int]:
        """Returns exactly `count` ids, 1 to 100000; in ascending order, unless the tag is obfuscated. They are from
        memory, if `local_ranges` names the tag and that many are there."""
        return await self._next_ids(tag, count, deadline_ms)

    async def next_text(self, tag: str = "", deadline_ms: Optional[int] = None) -> str:
        """Returns one id in the text form of its tag."""
        return str(await self._call(self._usable(), Ask("getText", tag), deadline_ms))

    async def __aenter__(self) -> Client:
        self._usable()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _make_io(self) -> Io:
        return LoopIo()

    def _usable(self) -> Engine:
        engine = super()._usable()
        if isinstance(engine.io, LoopIo) and engine.io.loop is not asyncio.get_running_loop():
            raise RuntimeError("this client belongs to another event loop; create one client for each loop")
        return engine

    def _leave_behind(self, parents: Engine) -> None:
        """Leaves the parent's event loop, whose selector the child shares, as it is."""
