"""What connections, and the machinery around them, have in common for threads and for asyncio.

The engine, the failover of a call and the prefetching of ids are coroutines, and written once. For threads,
the coroutines of an Io block instead of suspending, and `threads.run` runs such a coroutine to its end."""

from __future__ import annotations

import abc
import errno
import socket
import time
from typing import Any, Callable, Coroutine, Optional

from .ask import Ask
from .errors import AttemptFailed, End
from .layout import IdCheck
from .tls import TlsContexts

_OWN_FAULTS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Connection(abc.ABC):
    """A connection to one server. The owner closes it after any AttemptFailed that is not a refusal or `late`, so a late
    answer cannot be taken for the answer to another call."""

    busy = False  # calls share it, and some are under way

    def __init__(self) -> None:
        self.limit_s = 0.0  # maximum time of an attempt
        self.used = False  # an earlier call used it: if it is closed, the call may try again
        self.idle_since = 0.0
        self.check = IdCheck("", frozenset(), 0)
        self._sequence = 0

    async def call(self, ask: Ask, until: float) -> Any:
        """Returns the server's answer, or raises AttemptFailed."""
        self._sequence += 1
        sequence = self._sequence
        try:
            frame = await self._exchange(ask.request(sequence), until)
        except AttemptFailed as failure:
            if failure.late is not None:
                failure.late = LateAnswer(self, ask, sequence, failure.late)
            raise
        self.used = True
        return ask.answer(frame, sequence)

    def checked(self, ask: Ask, answer: Any) -> Any:
        """Returns the answer, or raises AttemptFailed if the server cannot have issued its ids."""
        fault = ask.fault_of(answer) or self.check.fault_of(ask.tag, ask.numbers(answer), time.monotonic() * 1000)
        if fault:
            raise AttemptFailed(End.BROKEN, fault)
        return answer

    async def late_frame(self, frame: Any, until: float) -> Optional[bytes]:
        """Waits until that time for the frame that an AttemptFailed had as `late`."""
        return None

    @abc.abstractmethod
    async def _exchange(self, request: bytes, until: float) -> bytes:
        """Sends a frame and returns the next one without its length, or raises AttemptFailed."""

    @abc.abstractmethod
    def idle_and_open(self) -> bool:
        """Returns False if an idle connection was closed, or received bytes without a request."""

    @abc.abstractmethod
    def close(self) -> None:
        """Closes without waiting and without a TLS close_notify, so a forked child may close its copy."""

    @abc.abstractmethod
    def abort(self) -> None:
        """Wakes up the call that waits on the connection."""


class LateAnswer:
    """An answer that may still arrive after its attempt, on a connection that stays open."""

    def __init__(self, connection: Connection, ask: Ask, sequence: int, frame: Any) -> None:
        self._connection, self._ask, self._sequence, self._frame = connection, ask, sequence, frame

    async def take(self, until: float) -> Any:
        """Waits for it until that time, at most. Returns None without a valid answer."""
        frame = await self._connection.late_frame(self._frame, until)
        try:
            return self._connection.checked(self._ask, self._ask.answer(frame, self._sequence)) if frame else None
        except AttemptFailed:
            return None


class Bell(abc.ABC):
    """Wakes up those that wait for a change. A waiter passes the number of `rings` that it has seen, so
    that it misses none."""

    rings = 0

    @abc.abstractmethod
    def ring(self) -> None: ...

    @abc.abstractmethod
    async def wait(self, seen: int, until: float) -> None:
        """Waits until the bell has rung more than `seen` times, or until that time."""


class Room(abc.ABC):
    """How many calls may use a server's connections at a time. Waiting calls proceed in the order in which
    they arrived."""

    @abc.abstractmethod
    def enter(self) -> bool:
        """Returns whether a place is free at once."""

    @abc.abstractmethod
    async def wait(self, until: float) -> bool:
        """Returns whether a place becomes free in time."""

    @abc.abstractmethod
    def leave(self) -> None: ...


class Io(abc.ABC):
    """Input, output and waiting: `threads.ThreadIo` or `loop.LoopIo`."""

    shares = False  # calls share one connection to a server; otherwise each has its own meanwhile
    lag = 0.0  # seconds for which the program kept the client from its work, by which the calls of that time are extended

    def call_begins(self) -> None: ...

    def call_ends(self) -> None: ...

    @abc.abstractmethod
    def bell(self) -> Bell: ...

    @abc.abstractmethod
    def room(self, size: int) -> Room: ...

    @abc.abstractmethod
    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Runs the coroutine in the background."""

    def call_hook(self, hook: Callable[[], None]) -> None:
        """Calls a function of the program."""
        hook()

    def retry_hooks(self) -> None:
        """Calls the functions that wait because no thread could be started."""

    @abc.abstractmethod
    async def resolve(self, host: str) -> list[str]:
        """Returns the addresses of a name, or raises OSError."""

    @abc.abstractmethod
    async def connect(self, address: str, host: str, port: int, tls: Optional[TlsContexts],
                      until: float) -> Connection:
        """Returns a connection to the address of the host, or raises OSError or AttemptFailed. With port 0, the
        address is the path of a Unix socket."""


def connect_failure(fault: OSError) -> AttemptFailed:
    """Returns the failure of an attempt for which no connection could be opened."""
    if fault.errno in _OWN_FAULTS:
        return AttemptFailed(End.NO_ROOM, "this process has no file descriptor or memory left")
    late = isinstance(fault, (socket.timeout, TimeoutError))
    return AttemptFailed(End.CONNECT_TIMEOUT if late else End.UNREACHABLE, "" if late else str(fault))
