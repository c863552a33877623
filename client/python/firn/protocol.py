"""The calls of firn.thrift in Thrift's framed binary protocol.

Every length in an answer is compared with the bytes that have arrived before memory is allocated for it.
"""

from __future__ import annotations

import functools
import struct
from typing import Any, Callable, Iterator, NamedTuple, Sequence, Union

from .errors import AttemptFailed, End, LeaseFault, LeaseRefused, Reason

FRAME_MAX = 16 << 20
_DEPTH_MAX = 32
_VERSION = 0x80010000
_CALL, _REPLY, _EXCEPTION = 1, 2, 3
_UNKNOWN_METHOD = 1  # of a TApplicationException
_TLS_ALERT = b"\x15\x03"

_STOP, _BOOL, _BYTE, _DOUBLE, _I16, _I32, _I64 = 0, 2, 3, 4, 6, 8, 10
_STRING, _STRUCT, _MAP, _SET, _LIST = 11, 12, 13, 14, 15
# The least number of bytes of a value, by its type; 0: not a type.
_LEAST = [0] * 256
for _kind, _size in {_BOOL: 1, _BYTE: 1, _DOUBLE: 8, _I16: 2, _I32: 4, _I64: 8, _STRING: 4, _STRUCT: 1,
                     _MAP: 6, _SET: 5, _LIST: 5}.items():
    _LEAST[_kind] = _size

# By method: the types of the fields of its argument.
_LEASE_REQUESTS = {"lease": (_STRING, _STRING, _I64, _I32, _I32),
                   "renewLease": (_STRING, _STRING, _STRING, _I64, _I32),
                   "releaseLease": (_STRING, _STRING, _I64)}

_FIELD = struct.Struct(">bh")
_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_TAG = struct.Struct(">bhi")       # a field with a text: its type, its number and the text's length
_ONE_ID = struct.Struct(">Ii5sibhqb")  # the whole answer to getId


class Run(NamedTuple):
    """Ids in compact form: first, first + stride, ..."""

    first: int = 0
    count: int = 0  # type: ignore[assignment]
    stride: int = 0


class State:
    """The states of a server; 0 is an absent state."""

    NOT_READY, READY, OFFLINE, DRAINING = 1, 2, 3, 4


class TagStatus(NamedTuple):
    tag: str = ""
    strategy: str = ""
    as_issued: bool = False


class Status(NamedTuple):
    """The part of a server's status that a client needs."""

    cluster_uuid: str = ""
    layout: str = ""
    state: int = 0
    wall_ms: int = 0
    tags: tuple[TagStatus, ...] = ()


class Entry(NamedTuple):
    """One server of a list."""

    address: str = ""
    rack: int = 0
    weight: int = 0
    online: bool = False
    state: int = 0
    tls: bool = False


class ServerList(NamedTuple):
    cluster_uuid: str = ""
    version: int = 0
    servers: tuple[Entry, ...] = ()
    ask_again_ms: int = 0


class LeaseTerms(NamedTuple):
    """A lease, as the server sent it. The program may issue the ids
    base_bits | tick << tick_shift | sequence << sequence_shift
    for each tick in [from_tick, until_tick) and each sequence in [sequence_from, sequence_from + sequence_count)."""

    lease: str = ""  # secret
    number: int = 0
    machine: int = 0
    worker: int = 0
    rack: int = 0
    base_bits: int = 0
    tick_shift: int = 0
    sequence_shift: int = 0
    sequence_bits: int = 0
    sequence_from: int = 0
    sequence_count: int = 0
    tick_ms: int = 0
    epoch_ms: int = 0
    from_tick: int = 0
    until_tick: int = 0
    renew_in_ms: int = 0
    ending: bool = False  # it is extended no further
    server: str = ""      # address of the server that has the lease


class Malformed(Exception):
    """A frame that violates the protocol."""


# --- requests -------------------------------------------------------------------------------------


def request(method: str, sequence: int, tag: str = "", count: int = 0) -> bytes:
    """Returns the frame of a request. For `servers`, `count` is the version of the known list."""
    before, after = _around_sequence(method, tag, count)
    return before + _INT32.pack(sequence) + after


@functools.lru_cache(maxsize=256)
def _around_sequence(method: str, tag: str, count: int) -> tuple[bytes, bytes]:
    """Returns the bytes before and after the sequence id of a request."""
    head, body = _head(method), b""
    if method == "servers":
        body = _FIELD.pack(_I64, 1) + _INT64.pack(count)
    elif method != "status":
        text = tag.encode()
        body = _TAG.pack(_STRING, 1, len(text)) + text
        if method == "getIds":
            body += _FIELD.pack(_I32, 2) + _INT32.pack(count)
        elif method == "getRuns":
            body += _FIELD.pack(_I64, 2) + _INT64.pack(count)
    return _framed(head, body)


def _framed(head: bytes, body: bytes) -> tuple[bytes, bytes]:
    """Returns the bytes before and after the sequence id of a frame."""
    return _INT32.pack(len(head) + _INT32.size + len(body) + 1) + head, body + b"\0"


def lease_request(method: str, sequence: int, values: Sequence[Union[str, int, None]]) -> bytes:
    """Returns the frame of a request about a lease. `values` are the fields of its struct in order; None: absent."""
    body = _FIELD.pack(_STRUCT, 1)
    for number, (kind, value) in enumerate(zip(_LEASE_REQUESTS[method], values), 1):
        if isinstance(value, str):
            text = value.encode()
            body += _TAG.pack(kind, number, len(text)) + text
        elif value is not None:
            body += _FIELD.pack(kind, number) + (_INT64 if kind == _I64 else _INT32).pack(value)
    before, after = _framed(_head(method), body + b"\0")
    return before + _INT32.pack(sequence) + after


def _head(method: str) -> bytes:
    name = method.encode()
    return struct.pack(f">Ii{len(name)}s", _VERSION | _CALL, len(name), name)


# --- answers --------------------------------------------------------------------------------------


def frame_size(head: bytes) -> int:
    """Returns the size of the frame whose length is in the first 4 bytes, without the length itself."""
    size: int = _INT32.unpack_from(head)[0]
    if not 0 < size <= FRAME_MAX:
        speaks = "it speaks TLS" if head[:2] == _TLS_ALERT else "it does not speak Thrift"
        raise AttemptFailed(End.BROKEN, speaks)
    return size


def answer(frame: bytes, method: str, sequence: int) -> Any:
    """Returns the result of the method in a frame without its length, or raises AttemptFailed."""
    if len(frame) == _ONE_ID.size and method == "getId":
        *head, number, stop = _ONE_ID.unpack(frame)
        if head == [_VERSION | _REPLY, 5, b"getId", sequence, _I64, 0] and stop == _STOP:
            return number
    try:
        return _Reader(frame).answer(method, sequence)
    except Malformed as fault:
        raise AttemptFailed(End.BROKEN, f"its answer cannot be read: {fault}") from None


class _Reader:
    """Reads values from the front of a frame."""

    __slots__ = ("_frame", "_at")

    def __init__(self, frame: bytes) -> None:
        self._frame, self._at = frame, 0

    def answer(self, method: str, sequence: int) -> Any:
        version = self.i32() & 0xFFFFFFFF
        if version & 0xFFFFFF00 != _VERSION:
            raise Malformed("its protocol version is unknown")
        kind, name, got = version & 0xFF, self.bytes(), self.i32()
        if kind not in (_REPLY, _EXCEPTION) or got != sequence or (
                kind == _REPLY and name != method.encode()):
            raise AttemptFailed(End.BROKEN, "its answer does not belong to the request")
        if kind == _EXCEPTION:
            raise self._exception()
        result = self.struct({0: ("success", *_RESULTS[method]), 1: ("refusal", _STRUCT, _Reader.refusal),
                              2: ("lease_refusal", _STRUCT, _Reader.lease_refusal)})
        if failure := result.get("refusal") or result.get("lease_refusal"):
            raise failure
        if method == "releaseLease":
            return None  # void
        if "success" not in result:
            raise AttemptFailed(End.BROKEN, "its answer holds neither ids nor a refusal")
        return result["success"]

    def _exception(self) -> AttemptFailed:
        told = self.struct({1: ("message", _STRING, _Reader.text), 2: ("type", _I32, _Reader.i32)})
        lacking = told.get("type") == _UNKNOWN_METHOD
        what = "it does not know the method" if lacking else "it failed"
        return AttemptFailed(End.WRONG_SERVICE if lacking else End.BROKEN,
                             f"{what}: {told.get('message', '')}", lacks_method=lacking)

    def refusal(self) -> AttemptFailed:
        told = self.struct({1: ("reason", _I32, _Reader.i32), 2: ("message", _STRING, _Reader.text),
                            3: ("retry_after_ms", _I32, _Reader.i32), 4: ("another", _BOOL, _Reader.bool)})
        reason = told.get("reason")
        return AttemptFailed(End.REFUSED, told.get("message", ""),
                             Reason(reason) if reason in _REASONS else Reason.INTERNAL,
                             max(0, told.get("retry_after_ms", 0)), told.get("another", False))

    def lease_refusal(self) -> LeaseRefused:
        told = self.struct({1: ("fault", _I32, _Reader.i32), 2: ("message", _STRING, _Reader.text),
                            3: ("server", _STRING, _Reader.text)})
        fault = told.get("fault", 0)
        return LeaseRefused(LeaseFault(fault) if fault in _LEASE_FAULTS else LeaseFault.OTHER,
                            told.get("message", ""), told.get("server", ""))

    # --- values ---------------------------------------------------------------------------------

    def _take(self, count: int) -> int:
        """Returns where the next `count` bytes begin, and moves behind them."""
        at = self._at
        if count < 0 or count > len(self._frame) - at:
            raise Malformed("a value is longer than its frame")
        self._at = at + count
        return at

    def byte(self) -> int:
        return self._frame[self._take(1)]

    def bool(self) -> bool:
        return self.byte() != 0

    def i32(self) -> int:
        value: int = _INT32.unpack_from(self._frame, self._take(4))[0]
        return value

    def i64(self) -> int:
        value: int = _INT64.unpack_from(self._frame, self._take(8))[0]
        return value

    def bytes(self) -> bytes:
        size = self.i32()
        at = self._take(size)
        return self._frame[at:at + size]

    def text(self) -> str:
        return self.bytes().decode(errors="replace")

    def ids(self) -> list[int]:
        count = self._count(_I64, 8)
        return list(struct.unpack_from(f">{count}q", self._frame, self._take(8 * count)))

    def _count(self, kind: int, least_bytes: int) -> int:
        """Reads the head of a list of this type. The frame must be able to hold its elements."""
        if self.byte() != kind:
            raise Malformed("a list has elements of another type")
        count = self.i32()
        if not 0 <= count <= (len(self._frame) - self._at) // least_bytes:
            raise Malformed("a list has more elements than its frame can hold")
        return count

    def struct(self, fields: _Fields) -> dict[str, Any]:
        """Returns the known fields that are present; skips all others."""
        values: dict[str, Any] = {}
        while True:
            kind = self.byte()
            if kind == _STOP:
                return values
            number, = _INT16.unpack_from(self._frame, self._take(2))
            known = fields.get(number)
            if known is None or known[1] != kind:
                self._skip(kind, 0)
            else:
                values[known[0]] = known[2](self)

    def structs(self, fields: _Fields, least_bytes: int) -> Iterator[dict[str, Any]]:
        """Yields the fields of each element of a list, which takes at least that many bytes."""
        for _ in range(self._count(_STRUCT, least_bytes)):
            yield self.struct(fields)

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _DEPTH_MAX:
            raise Malformed("its values are nested too deeply")
        if kind == _STRING:
            self.bytes()
        elif kind == _STRUCT:
            while (inner := self.byte()) != _STOP:
                self._take(2)
                self._skip(inner, depth + 1)
        elif kind in (_LIST, _SET):
            self._skip_all((self.byte(),), depth)
        elif kind == _MAP:
            self._skip_all((self.byte(), self.byte()), depth)
        elif _LEAST[kind]:
            self._take(_LEAST[kind])
        else:
            raise Malformed("it has a value of an unknown type")

    def _skip_all(self, kinds: tuple[int, ...], depth: int) -> None:
        count = self.i32()
        if count == 0:
            return  # the types of an empty map may be 0
        if not all(_LEAST[kind] for kind in kinds):
            raise Malformed("it has a value of an unknown type")
        if not 0 <= count <= (len(self._frame) - self._at) // sum(_LEAST[kind] for kind in kinds):
            raise Malformed("a container has more elements than its frame can hold")
        for _ in range(count):
            for kind in kinds:
                self._skip(kind, depth + 1)


# By number: the name of a field, its type, and how it is read.
_Fields = dict[int, tuple[str, int, Callable[[_Reader], Any]]]

_REASONS, _LEASE_FAULTS = frozenset(Reason), frozenset(LeaseFault)
_RUN: _Fields = {1: ("first", _I64, _Reader.i64), 2: ("count", _I32, _Reader.i32),
                 3: ("stride", _I64, _Reader.i64)}
_TAG_STATUS: _Fields = {1: ("tag", _STRING, _Reader.text), 2: ("strategy", _STRING, _Reader.text),
                        6: ("as_issued", _BOOL, _Reader.bool)}
_STATUS: _Fields = {
    1: ("cluster_uuid", _STRING, _Reader.text), 5: ("layout", _STRING, _Reader.text),
    7: ("state", _I32, _Reader.i32), 10: ("wall_ms", _I64, _Reader.i64),
    14: ("tags", _LIST, lambda reader: tuple(TagStatus(**one) for one in reader.structs(_TAG_STATUS, 8)))}
_ENTRY: _Fields = {
    1: ("address", _STRING, _Reader.text), 2: ("rack", _I32, _Reader.i32), 3: ("weight", _I32, _Reader.i32),
    4: ("online", _BOOL, _Reader.bool), 5: ("state", _I32, _Reader.i32), 6: ("tls", _BOOL, _Reader.bool)}
_SERVERS: _Fields = {
    1: ("cluster_uuid", _STRING, _Reader.text), 3: ("version", _I64, _Reader.i64),
    4: ("servers", _LIST, lambda reader: tuple(Entry(**one) for one in reader.structs(_ENTRY, 8))),
    6: ("ask_again_ms", _I32, _Reader.i32)}
_LEASE_TYPES = {"lease": _STRING, "server": _STRING, "ending": _BOOL} | dict.fromkeys(
    ("number", "base_bits", "sequence_from", "sequence_count", "epoch_ms", "from_tick", "until_tick"), _I64)
_READS = {_STRING: _Reader.text, _BOOL: _Reader.bool, _I32: _Reader.i32, _I64: _Reader.i64}
_LEASE: _Fields = {number: (name, kind, _READS[kind]) for number, name in enumerate(LeaseTerms._fields, 1)
                   for kind in [_LEASE_TYPES.get(name, _I32)]}
_LEASE_RESULT = _STRUCT, lambda reader: LeaseTerms(**reader.struct(_LEASE))
# By method: the type of its result, and how it is read.
_RESULTS: dict[str, tuple[int, Callable[[_Reader], Any]]] = {
    "getId": (_I64, _Reader.i64),
    "getIds": (_LIST, _Reader.ids),
    "getRuns": (_LIST, lambda reader: [Run(**one) for one in reader.structs(_RUN, 30)]),
    "getText": (_STRING, _Reader.text),
    "status": (_STRUCT, lambda reader: Status(**reader.struct(_STATUS))),
    "servers": (_STRUCT, lambda reader: ServerList(**reader.struct(_SERVERS))),
    "lease": _LEASE_RESULT,
    "renewLease": _LEASE_RESULT,
    "releaseLease": (_STRUCT, lambda reader: None),
}
