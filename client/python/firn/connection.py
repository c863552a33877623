"""One connection to one server: frames, sequence ids, time limits, TLS."""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import struct
import threading
import time
from typing import Any, Optional

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from .errors import AttemptFailed, End, Reason
from .layout import IdCheck
from .options import Tls
from .wire import IdService, ttypes

_FRAME_MAX = 16 << 20
_READ_AT_ONCE = 4096
_IDS_HEAD = struct.Struct(">bhbi")  # of a field: type and number; of a list: type and count
_OWN_FAULTS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_TLS_ALERT = b"\x15\x03"
_ZERO: dict[int, Any] = {TType.BOOL: False, TType.BYTE: 0, TType.I16: 0, TType.I32: 0, TType.I64: 0,
                         TType.DOUBLE: 0.0, TType.STRING: ""}


class TlsContexts:
    """The TLS context for new connections, re-created when a file has changed. While the files are
    unusable, such as half written, the last usable ones stay in force. Thread-safe."""

    def __init__(self, tls: Tls) -> None:
        self._tls, self._lock = tls, threading.Lock()
        self._stamp: Any = None
        self._context: Optional[ssl.SSLContext] = None

    def wrap(self, plain: socket.socket, host: str) -> ssl.SSLSocket:
        return self._current().wrap_socket(plain, server_hostname=self._tls.name or host)

    def _current(self) -> ssl.SSLContext:
        files = [file for file in (self._tls.ca, self._tls.cert, self._tls.key) if file]
        with self._lock:
            try:
                stamp = [(found.st_mtime_ns, found.st_ino, found.st_size)
                         for found in map(os.stat, files)]
                if self._context is None or stamp != self._stamp:
                    self._context, self._stamp = self._read(), stamp
            except (OSError, ValueError):
                if self._context is None:
                    raise  # otherwise the next connection tries again
            return self._context

    def _read(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._tls.ca)
        if self._tls.cert:
            context.load_cert_chain(self._tls.cert, self._tls.key)
        return context


class Connection:
    """Used by one thread at a time. The owner closes it after any AttemptFailed that is not a refusal,
    so a late answer cannot be taken for the answer to another call."""

    def __init__(self, addresses: list[str], host: str, port: int, tls: Optional[TlsContexts],
                 until: float) -> None:
        self.used = False  # an earlier call used it: if it is closed, the call may try again
        self.idle_since = 0.0
        self.check = IdCheck("", frozenset(), 0)
        self._sequence = 0
        self._socket: socket.socket = self._connect(addresses, port, until)
        if tls:
            try:
                self._socket.settimeout(max(0.001, until - time.monotonic()))
                self._socket = tls.wrap(self._socket, host)
            except BaseException as fault:
                self.close()
                if not isinstance(fault, OSError):
                    raise
                raise _tls_failure(fault) from fault

    @staticmethod
    def _connect(addresses: list[str], port: int, until: float) -> socket.socket:
        """Tries each address in turn, with its share of the time; the reachable one is first next time."""
        fault: OSError = OSError("it has no address")
        for tried, address in enumerate(list(addresses)):
            left = (until - time.monotonic()) / (len(addresses) - tried)
            try:
                made = socket.create_connection((address, port), max(0.001, left))
            except OSError as failure:
                fault = failure
                continue
            if tried:
                addresses.remove(address)
                addresses.insert(0, address)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made
        if fault.errno in _OWN_FAULTS:
            raise AttemptFailed(End.NO_ROOM, "this process has no file descriptor or memory left"
                                ) from fault
        late = isinstance(fault, (socket.timeout, TimeoutError))
        raise AttemptFailed(End.CONNECT_TIMEOUT if late else End.UNREACHABLE,
                            "" if late else str(fault)) from fault

    def idle_and_open(self) -> bool:
        """Whether an idle connection was closed, or received bytes without a request."""
        if not hasattr(select, "poll"):  # eventlet removes it
            return not select.select([self._socket], [], [], 0)[0]
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Closes without waiting and without a TLS close_notify, so a forked child may close its copy."""
        self._socket.close()

    def abort(self) -> None:
        """Wakes up a thread that waits on the connection. Called from another thread."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is already closed

    # --- calls ------------------------------------------------------------------------------------

    def call(self, method: str, until: float, *arguments: Any) -> Any:
        """Returns the server's answer, or raises AttemptFailed."""
        self._sequence += 1
        request = TMemoryBuffer()
        protocol = TBinaryProtocol(request)
        protocol.writeMessageBegin(method, TMessageType.CALL, self._sequence)
        getattr(IdService, method + "_args")(*arguments).write(protocol)
        frame = request.getvalue()
        answer = self._exchange(struct.pack(">i", len(frame)) + frame, until)
        self.used = True
        try:
            return self._read(answer, method)
        except AttemptFailed:
            raise
        except Exception as fault:  # Thrift may raise any exception for invalid bytes
            raise AttemptFailed(End.BROKEN, f"its answer cannot be read: {fault}") from fault

    def _exchange(self, frame: bytes, until: float) -> bytes:
        got = b""
        try:
            self._socket.settimeout(max(0.001, until - time.monotonic()))
            self._socket.sendall(frame)
            got = self._receive(4, got, until)
            size, = struct.unpack_from(">i", got)
            if not 0 < size <= _FRAME_MAX:
                speaks = "it speaks TLS" if got[:2] == _TLS_ALERT else "it does not speak Thrift"
                raise AttemptFailed(End.BROKEN, speaks)
            return self._receive(4 + size, got, until)[4:]
        except (socket.timeout, TimeoutError) as fault:
            raise AttemptFailed(End.TIMEOUT, "") from fault
        except OSError as fault:
            if isinstance(fault, ssl.SSLError):
                raise _tls_failure(fault) from fault
            raise AttemptFailed(End.CLOSED, str(fault), stale=self.used and not got) from fault

    def _receive(self, size: int, data: bytes, until: float) -> bytes:
        """Returns `data` and the bytes after it, at least `size` bytes."""
        while len(data) < size:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            more = self._socket.recv(max(size - len(data), _READ_AT_ONCE))
            if not more:
                if data:
                    raise AttemptFailed(End.CLOSED, "in the middle of an answer")
                raise ConnectionError("before an answer")
            data += more
        return data

    def _read(self, frame: bytes, method: str) -> Any:
        # Not Thrift's accelerated protocol, which crashes on deeply nested input.
        protocol = TBinaryProtocol(TMemoryBuffer(frame), string_length_limit=len(frame),
                                   container_length_limit=len(frame))
        name, kind, sequence = protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            fault = TApplicationException()
            fault.read(protocol)
            lacking = fault.type == TApplicationException.UNKNOWN_METHOD
            raise AttemptFailed(End.WRONG_SERVICE if lacking else End.BROKEN,
                                f"it does not know the method: {fault.message or ''}",
                                lacks_method=lacking)
        if (name, kind, sequence) != (method, TMessageType.REPLY, self._sequence):
            raise AttemptFailed(End.BROKEN, "it answers something that was not asked")
        if method == "getIds":
            ids = _ids_at_once(frame, protocol.trans._buffer.tell())
            if ids is not None:
                return ids
        result = getattr(IdService, method + "_result")()
        result.read(protocol)
        if result.refusal is not None:
            raise _refusal(result.refusal)
        if result.success is None:
            raise AttemptFailed(End.BROKEN, "its answer holds neither ids nor a refusal")
        return _with_every_field(result.success)


def _ids_at_once(frame: bytes, begin: int) -> Optional[list[int]]:
    """The ids of an answer that consists of a list<i64>, as all answers except refusals do. Thrift's own
    parser is too slow for 100,000 ids. None: another answer."""
    if len(frame) < begin + _IDS_HEAD.size + 1 or frame[-1] != TType.STOP:
        return None
    kind, number, element, count = _IDS_HEAD.unpack_from(frame, begin)
    begin += _IDS_HEAD.size
    listed = (kind, number, element) == (TType.LIST, 0, TType.I64)
    if not listed or count < 0 or begin + 8 * count + 1 != len(frame):
        return None
    return list(struct.unpack_from(f">{count}q", frame, begin))


def _with_every_field(value: Any) -> Any:
    """Replaces None, Python's value of an absent field, by zero, as in other languages."""
    if isinstance(value, list):
        if value and hasattr(value[0], "thrift_spec"):
            for one in value:
                _with_every_field(one)
        return value
    for field in getattr(value, "thrift_spec", ()):
        if field is None:
            continue
        _, kind, name, _, _ = field
        if getattr(value, name) is None:
            setattr(value, name, _ZERO.get(kind))
        else:
            _with_every_field(getattr(value, name))
    return value


def _refusal(refusal: ttypes.Refusal) -> AttemptFailed:
    known = refusal.reason in list(Reason)
    return AttemptFailed(End.REFUSED, refusal.message or "",
                         Reason(refusal.reason) if known else Reason.INTERNAL,
                         max(0, refusal.retry_after_ms or 0),
                         bool(refusal.another_server_may_help))


def _tls_failure(fault: OSError) -> AttemptFailed:
    if isinstance(fault, ssl.SSLCertVerificationError):
        return AttemptFailed(End.WRONG_SERVICE, f"its certificate: {fault.verify_message}")
    ended = isinstance(fault, (ssl.SSLEOFError, ssl.SSLZeroReturnError))
    if isinstance(fault, ssl.SSLError) and not ended:
        plain = fault.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
        return AttemptFailed(End.WRONG_SERVICE,
                             "it does not speak TLS" if plain else f"TLS: {fault.reason}")
    if isinstance(fault, (socket.timeout, TimeoutError)):
        return AttemptFailed(End.CONNECT_TIMEOUT, "in the TLS handshake")
    return AttemptFailed(End.UNREACHABLE, f"in the TLS handshake: {fault}")
