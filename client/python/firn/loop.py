"""Input and output for asyncio."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
import time
from collections import deque
from typing import Any, Awaitable, Callable, Coroutine, Optional, cast

from . import protocol
from .connection import Bell, Connection, Io, Room
from .errors import AttemptFailed, End
from .tls import TlsContexts, tls_failure

_WRITE_AT_ONCE = 8192
_TICK_S = 0.02


class LoopIo(Io):
    """Belongs to the event loop in which it was created."""

    shares = True

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._calls = 0
        self._tick: Optional[asyncio.TimerHandle] = None
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself holds only weak references

    def call_begins(self) -> None:
        self._calls += 1
        if self._calls == 1:
            self._tick = self.loop.call_later(_TICK_S, self._measure)

    def call_ends(self) -> None:
        self._calls -= 1
        if self._calls == 0 and self._tick is not None:
            self._tick.cancel()

    def _measure(self) -> None:
        """Adds the time for which the program, such as by starting many calls, has blocked the event loop."""
        late = self.loop.time() - self._tick.when() if self._tick is not None else 0.0
        self.lag += late if late > _TICK_S else 0.0
        self._tick = self.loop.call_later(_TICK_S, self._measure)

    def bell(self) -> Bell:
        return LoopBell(self)

    def room(self, size: int) -> Room:
        return LoopRoom()

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
        connection = LoopConnection(self)
        try:
            made.setblocking(False)
            await self._in_time(self.loop.sock_connect(made, (address, port) if port else address), until)
            if tls:
                return await self._secured(connection, made, host, tls, until)
            if port:
                await self.loop.create_connection(lambda: connection, sock=made)
            else:
                await self.loop.create_unix_connection(lambda: connection, sock=made)
            return connection
        except BaseException:
            connection.close()
            made.close()
            raise

    async def _secured(self, connection: LoopConnection, made: socket.socket, host: str, tls: TlsContexts,
                       until: float) -> Connection:
        try:
            await self._in_time(self.loop.create_connection(
                lambda: connection, sock=made, ssl=tls.current(),
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


class _Timer:
    """Calls a function at that time, later by the time for which the program has blocked the event loop meanwhile, and
    in the turn after: answers that have arrived are read first."""

    def __init__(self, io: LoopIo, until: float, due: Callable[[], None]) -> None:
        self._io, self._until, self._due, self._lag = io, until, due, io.lag
        self._handle: asyncio.Handle = io.loop.call_later(max(0.0, until - time.monotonic()), self._fired)

    def cancel(self) -> None:
        self._handle.cancel()

    def _fired(self) -> None:
        left = self._until + self._io.lag - self._lag - time.monotonic()
        self._handle = (self._io.loop.call_later(left, self._fired) if left > 0
                        else self._io.loop.call_soon(self._due))


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class LoopBell(Bell):
    def __init__(self, io: LoopIo) -> None:
        self._io = io
        self._waiters: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        self.rings += 1
        for waiter in self._waiters:
            _wake(waiter)

    async def wait(self, seen: int, until: float) -> None:
        if self.rings == seen:
            waiter = self._io.loop.create_future()
            self._waiters.add(waiter)
            timer = _Timer(self._io, until, functools.partial(_wake, waiter))
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiters.discard(waiter)


class LoopRoom(Room):
    """Calls share a connection, and all requests are sent at once."""

    def enter(self) -> bool:
        return True

    async def wait(self, until: float) -> bool:
        return True

    def leave(self) -> None:
        pass


class _Pending:
    """A request without an answer."""

    __slots__ = ("frame", "sent", "stale", "late")

    def __init__(self, frame: asyncio.Future[bytes], sent: float, stale: bool) -> None:
        self.frame, self.sent, self.stale, self.late = frame, sent, stale, False


class LoopConnection(Connection, asyncio.Protocol):
    """A connection with many requests in flight, which the server answers in their order."""

    def __init__(self, io: LoopIo) -> None:
        super().__init__()
        self._io, self._loop = io, io.loop
        self._transport: Optional[asyncio.Transport] = None
        self._data = bytearray()  # of an incomplete answer
        self._queue: deque[_Pending] = deque()
        self._out: list[bytes] = []
        self._out_size = 0
        self._heard = 0.0  # when the last answer came
        self._over: Optional[AttemptFailed] = None

    @property
    def busy(self) -> bool:  # type: ignore[override]
        return bool(self._queue)

    def idle_and_open(self) -> bool:
        return self._over is None and self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        self._end(AttemptFailed(End.CLOSED, "the connection was closed", counted=True))

    def abort(self) -> None:
        self.close()

    async def _exchange(self, request: bytes, until: float) -> bytes:
        if self._over is not None:
            raise self._failure(self.used)
        now = time.monotonic()
        pending = _Pending(self._loop.create_future(), now, self.used)
        self._send(request)
        self._queue.append(pending)
        timer = _Timer(self._io, until, functools.partial(self._judge, pending))
        try:
            return await pending.frame
        finally:
            timer.cancel()

    # --- requests ---------------------------------------------------------------------------------

    def _send(self, request: bytes) -> None:
        """Writes the request, at once if no other is on its way, or together with those of other tasks."""
        self._out.append(request)
        self._out_size += len(request)
        if not self._queue or self._out_size >= _WRITE_AT_ONCE:
            self._flush()
        elif len(self._out) == 1:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._out and self._transport is not None and self._over is None:
            self._transport.write(b"".join(self._out))
        self._out.clear()
        self._out_size = 0

    def _judge(self, pending: _Pending) -> None:
        waiter, now = pending.frame, time.monotonic()
        if waiter.done():
            return
        hurried = now - pending.sent < self.limit_s  # it is the end of the call, which says nothing about the server
        if not hurried and self._heard <= pending.sent:
            return self._end(AttemptFailed(End.TIMEOUT, ""))
        failure = AttemptFailed(End.TIMEOUT, "", counted=hurried)
        pending.frame, pending.late = self._loop.create_future(), True
        failure.late = pending.frame
        waiter.set_exception(failure)

    async def late_frame(self, frame: Any, until: float) -> Optional[bytes]:
        await asyncio.wait([frame], timeout=max(0.0, until - time.monotonic()))
        return frame.result() if frame.done() else None

    # --- answers ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        at, size = 0, len(self._data)
        try:
            while size - at >= 4:
                end = at + 4 + protocol.frame_size(self._data[at:at + 4])
                if end > size:
                    break
                if not self._queue:
                    raise AttemptFailed(End.BROKEN, "an answer belongs to no call")
                self._heard = time.monotonic()
                waiter = self._queue.popleft().frame
                if not waiter.done():  # otherwise its call was cancelled
                    waiter.set_result(bytes(self._data[at + 4:end]))
                at = end
        except AttemptFailed as failure:
            return self._end(failure)
        del self._data[:at]

    def eof_received(self) -> bool:
        self._end(AttemptFailed(End.CLOSED, "before an answer"))
        return False

    def connection_lost(self, fault: Optional[Exception]) -> None:
        self._end(tls_failure(fault) if isinstance(fault, ssl.SSLError)
                  else AttemptFailed(End.CLOSED, str(fault or "before an answer")))

    def _end(self, failure: AttemptFailed) -> None:
        if self._over is not None:
            return
        if self._data and failure.end is End.CLOSED:
            failure.detail = "in the middle of an answer"
        self._over = failure
        if self._transport is not None:
            self._transport.abort()
        for pending in self._queue:
            if pending.late:
                pending.frame.set_result(b"")
            elif not pending.frame.done():
                pending.frame.set_exception(self._failure(pending.stale))
        self._queue.clear()

    def _failure(self, stale: bool) -> AttemptFailed:
        """Returns why the connection is over, for one of its calls."""
        over = self._over or AttemptFailed(End.CLOSED, "")
        stale = stale and over.end is End.CLOSED and not self._data and not over.counted
        return AttemptFailed(over.end, over.detail, counted=over.counted, stale=stale)
