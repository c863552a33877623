"""Input and output for threads: coroutines that block instead of suspending."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections import deque
from typing import Any, Callable, Coroutine, Optional, TypeVar

from . import protocol
from .connection import Bell, Connection, Io, Room
from .errors import AttemptFailed, End
from .tls import TlsContexts, tls_failure

_READ_AT_ONCE = 4096
_READ_MOST = 1 << 18
_HOOKS_MOST = 1000

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    work.close()
    raise RuntimeError("a coroutine suspended outside an event loop")


class Hooks:
    """Calls functions of the program one after another, on a thread of its own. A function that blocks delays only later
    ones. While _HOOKS_MOST wait, further ones are dropped."""

    def __init__(self) -> None:
        self._lock, self._running = threading.Lock(), False
        self._waiting: deque[Callable[[], None]] = deque()

    def call(self, hook: Callable[[], None]) -> None:
        with self._lock:
            if len(self._waiting) < _HOOKS_MOST:
                self._waiting.append(hook)
            self._start()

    def retry(self) -> None:
        """Calls the functions that wait because no thread could be started."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        if self._running or not self._waiting:
            return
        try:
            self._running = True
            threading.Thread(target=self._run, name="firn-hooks", daemon=True).start()
        except (RuntimeError, MemoryError):  # the process has no thread left
            self._running = False  # not after the exception of a signal handler: the thread may run

    def _run(self) -> None:
        while True:
            with self._lock:
                self._running = bool(self._waiting)
                if not self._running:
                    return
                hook = self._waiting.popleft()
            try:
                hook()
            except BaseException:  # pylint: disable=broad-except
                pass  # of the program; later hooks must be called


class ThreadIo(Io):
    def __init__(self) -> None:
        self._hooks = Hooks()

    def bell(self) -> Bell:
        return ThreadBell()

    def room(self, size: int) -> Room:
        return ThreadRoom(size)

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            threading.Thread(target=run, args=(work,), name=name, daemon=True).start()
        except BaseException:
            work.close()
            raise

    def call_hook(self, hook: Callable[[], None]) -> None:
        self._hooks.call(hook)

    def retry_hooks(self) -> None:
        self._hooks.retry()

    async def resolve(self, host: str) -> list[str]:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(one[4][0]) for one in found))

    async def connect(self, address: str, host: str, port: int, tls: Optional[TlsContexts],
                      until: float) -> Connection:
        limit_s = max(0.001, until - time.monotonic())
        if port == 0:
            return SocketConnection(_connect_unix(address, limit_s))
        made = socket.create_connection((address, port), limit_s)
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls:
                made.settimeout(max(0.001, until - time.monotonic()))
                made = tls.current().wrap_socket(made, server_hostname=tls.name_for(host))
            return SocketConnection(made)
        except BaseException as fault:
            made.close()
            if not tls or not isinstance(fault, (OSError, ValueError)):
                raise
            raise tls_failure(fault) from fault


def _connect_unix(path: str, limit_s: float) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(limit_s)
        made.connect(path)
        return made
    except BaseException:
        made.close()
        raise


class ThreadBell(Bell):
    def __init__(self) -> None:
        self._changed = threading.Condition()

    def ring(self) -> None:
        with self._changed:
            self.rings += 1
            self._changed.notify_all()

    async def wait(self, seen: int, until: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.rings != seen, max(0.0, until - time.monotonic()))


class ThreadRoom(Room):
    def __init__(self, size: int) -> None:
        self._lock, self._free = threading.Lock(), size
        self._waiting: deque[threading.Lock] = deque()

    def enter(self) -> bool:
        with self._lock:
            free = self._free > 0
            self._free -= free
            return free

    async def wait(self, until: float) -> bool:
        turn = threading.Lock()
        turn.acquire()  # until leave() gives it the place
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return True
            self._waiting.append(turn)
        try:
            entered = turn.acquire(timeout=max(0.0, until - time.monotonic()))
        except BaseException:  # of a signal's handler
            if not self._stop_waiting(turn):
                self.leave()
            raise
        return entered or not self._stop_waiting(turn)

    def _stop_waiting(self, turn: threading.Lock) -> bool:
        """Returns False if it got a place in the meantime."""
        with self._lock:
            waits = turn in self._waiting
            if waits:
                self._waiting.remove(turn)
            return waits

    def leave(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1


class SocketConnection(Connection):
    def __init__(self, made: socket.socket) -> None:
        super().__init__()
        self._socket = made
        self._surplus = False  # bytes came that no request asked for
        self._poll: Optional[select.poll] = None
        if hasattr(select, "poll"):  # eventlet removes it
            self._poll = select.poll()
            self._poll.register(made, select.POLLIN)
        # Sockets of TLS, gevent and eventlet keep time limits themselves. A socket of the system would set its time
        # limit, and poll before each of its calls.
        self._plain = self._poll is not None and type(made).__module__ == "socket"
        if self._plain:
            made.settimeout(None)

    def idle_and_open(self) -> bool:
        if self._surplus:
            return False
        if self._poll is None:
            return not select.select([self._socket], [], [], 0)[0]
        return not self._poll.poll(0)

    def close(self) -> None:
        self._socket.close()

    def abort(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is already closed

    async def _exchange(self, request: bytes, until: float) -> bytes:
        got = b""
        try:
            if self._plain:
                self._socket.sendall(request)  # never blocks: nothing else is in the socket's buffer
                self._wait(until)
            else:
                self._socket.settimeout(max(0.001, until - time.monotonic()))
                self._socket.sendall(request)
            got = self._received(_READ_AT_ONCE, got)  # by the same time limit: sending does not take long
            while len(got) < 4:
                got += self._receive(_READ_AT_ONCE, got, until)
            end = 4 + protocol.frame_size(got)
            if len(got) < end:
                got = self._receive_all(end, got, until)
            self._surplus = len(got) > end
            return got[4:end]
        except (socket.timeout, TimeoutError) as fault:
            raise AttemptFailed(End.TIMEOUT, "") from fault
        except OSError as fault:
            if isinstance(fault, ssl.SSLError):
                raise tls_failure(fault) from fault
            raise AttemptFailed(End.CLOSED, str(fault), stale=self.used and not got) from fault

    def _receive_all(self, end: int, got: bytes, until: float) -> bytes:
        """Returns `got` and the bytes after it, `end` bytes in all. Memory grows with what has arrived."""
        data = bytearray(got)
        while len(data) < end:
            data += self._receive(min(end - len(data), _READ_MOST), data, until)
        return bytes(data)

    def _wait(self, until: float) -> None:
        """Waits for bytes on a plain socket, or sets the time limit of another one."""
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if not self._plain:
            self._socket.settimeout(left)
        elif self._poll is not None and not self._poll.poll(left * 1000):
            raise TimeoutError

    def _receive(self, most: int, before: bytes | bytearray, until: float) -> bytes:
        self._wait(until)
        return self._received(most, before)

    def _received(self, most: int, before: bytes | bytearray) -> bytes:
        more = self._socket.recv(most)
        if not more:
            if before:
                raise AttemptFailed(End.CLOSED, "in the middle of an answer")
            raise ConnectionError("before an answer")
        return more
