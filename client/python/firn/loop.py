"""Input and output for asyncio."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import deque
from typing import Any, Awaitable, Coroutine, Optional, cast

from . import protocol
from .connection import Bell, Connection, Io, Room
from .errors import AttemptFailed, End
from .tls import TlsContexts, tls_failure


class LoopIo(Io):
    """Belongs to the event loop in which it was created."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself holds only weak references

    def bell(self) -> Bell:
        return LoopBell(self.loop)

    def room(self, size: int) -> Room:
        return LoopRoom(self.loop, size)

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def resolve(self, host: str) -> list[str]:
        found = await self.loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(one[4][0]) for one in found))

    async def connect(self, address: str, host: str, port: int, tls: Optional[TlsContexts],
                      until: float) -> Connection:
        family = socket.AF_UNIX if port == 0 else socket.AF_INET6 if ":" in address else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM)
        connection = LoopConnection(self.loop)
        try:
            made.setblocking(False)
            await self._in_time(self.loop.sock_connect(made, (address, port) if port else address), until)
            if tls:
                return await self._secured(connection, made, host, tls, until)
            if port:
                await self.loop.create_connection(lambda: connection.protocol, sock=made)
            else:
                await self.loop.create_unix_connection(lambda: connection.protocol, sock=made)
            return connection
        except BaseException:
            connection.close()
            made.close()
            raise

    async def _secured(self, connection: LoopConnection, made: socket.socket, host: str, tls: TlsContexts,
                       until: float) -> Connection:
        try:
            await self._in_time(self.loop.create_connection(
                lambda: connection.protocol, sock=made, ssl=tls.current(),
                server_hostname=tls.name_for(host)), until)
            return connection
        except (OSError, ValueError) as fault:
            raise tls_failure(fault) from fault

    @staticmethod
    async def _in_time(work: Awaitable[Any], until: float) -> None:
        try:
            await asyncio.wait_for(work, max(0.001, until - time.monotonic()))
        except asyncio.TimeoutError:
            raise TimeoutError from None  # the same class from Python 3.11 on


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class LoopBell(Bell):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiters: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        self.rings += 1
        for waiter in self._waiters:
            _wake(waiter)

    async def wait(self, seen: int, until: float) -> None:
        while self.rings == seen and (left := until - time.monotonic()) > 0:
            waiter = self._loop.create_future()
            self._waiters.add(waiter)
            timer = self._loop.call_later(left, _wake, waiter)
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiters.discard(waiter)


def _give_up(turn: asyncio.Future[bool]) -> None:
    if not turn.done():
        turn.set_result(False)


class LoopRoom(Room):
    def __init__(self, loop: asyncio.AbstractEventLoop, size: int) -> None:
        self._loop, self._free = loop, size
        self._waiting: deque[asyncio.Future[bool]] = deque()

    def enter(self) -> bool:
        free = self._free > 0
        self._free -= free
        return free

    async def wait(self, until: float) -> bool:
        turn: asyncio.Future[bool] = self._loop.create_future()
        timer = self._loop.call_later(max(0.0, until - time.monotonic()), _give_up, turn)
        self._waiting.append(turn)
        try:
            return await turn
        except BaseException:  # cancelled, perhaps after it got its place
            if turn.done() and not turn.cancelled() and turn.result():
                self.leave()
            raise
        finally:
            timer.cancel()
            if turn in self._waiting:
                self._waiting.remove(turn)

    def leave(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(True)
                return
        self._free += 1


class _Protocol(asyncio.Protocol):
    """Collects the bytes of one answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.transport: Optional[asyncio.Transport] = None
        self.data = bytearray()
        self.over = False
        self.fault: Optional[Exception] = None
        self._waiter: Optional[asyncio.Future[None]] = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter:
            self.data += data
            _wake(self._waiter)
        else:  # no request asked for it
            self.end()
            if self.transport:
                self.transport.abort()

    def eof_received(self) -> bool:
        self.end()
        return False

    def connection_lost(self, fault: Optional[Exception]) -> None:
        self.fault = fault
        self.end()

    def end(self) -> None:
        self.over = True
        if self._waiter:
            _wake(self._waiter)

    async def wait(self, until: float) -> None:
        """Waits until more bytes have come, or the connection is over. A timer that expires while the program
        blocks its event loop runs after the bytes that came meanwhile."""
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_later(max(0.0, until - time.monotonic()), _time_out, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None


def _time_out(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


class LoopConnection(Connection):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.protocol = _Protocol(loop)

    def idle_and_open(self) -> bool:
        transport = self.protocol.transport
        return not self.protocol.over and transport is not None and not transport.is_closing()

    def close(self) -> None:
        if self.protocol.transport:
            self.protocol.transport.abort()

    def abort(self) -> None:
        self.close()

    async def _exchange(self, request: bytes, until: float) -> bytes:
        stream, end = self.protocol, 4
        stream.data.clear()
        transport = stream.transport
        if transport is not None and not stream.over:
            transport.write(request)
        try:
            while len(stream.data) < end:
                if stream.over:
                    raise self._ended()
                await stream.wait(until)
                if end == 4 and len(stream.data) >= 4:
                    end += protocol.frame_size(bytes(stream.data[:4]))
        except TimeoutError as fault:
            raise AttemptFailed(End.TIMEOUT, "") from fault
        stream.over = stream.over or len(stream.data) > end
        frame = bytes(stream.data[4:end])
        stream.data.clear()
        return frame

    def _ended(self) -> AttemptFailed:
        fault = self.protocol.fault
        if isinstance(fault, ssl.SSLError):
            return tls_failure(fault)
        if self.protocol.data:
            return AttemptFailed(End.CLOSED, "in the middle of an answer")
        return AttemptFailed(End.CLOSED, str(fault or "before an answer"), stale=self.used)
