"""The options of a client, which do not change."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Callable, Collection, Literal, Optional, Sequence

from .errors import printable

_UNIX = "unix:"
_UNIX_PATH_MAX = 107  # bytes, in Linux


@dataclass(frozen=True)
class Event:
    """An event about servers, for the program's log; the library itself logs nothing.

    `kind` is one of: list, unhealthy, healthy, quarantined, draining, no server, forked, defect (of
    this library: please report it). The thread that forked reports `forked`, in the child."""

    kind: str
    server: str
    detail: str

    def __str__(self) -> str:
        return self.kind + (f" {self.server}" if self.server else "") + (f": {self.detail}" if self.detail else "")


@dataclass(frozen=True)
class Tls:
    """TLS options. The files are read again when they change."""

    ca: Optional[str] = None    # certificates of trusted authorities; None: those of the system
    cert: Optional[str] = None  # the client's certificate, with its key
    key: Optional[str] = None
    name: Optional[str] = None  # name that servers' certificates must contain; None: the listed host

    def usable(self) -> bool:
        files = all(file is None or isinstance(file, (str, os.PathLike)) for file in (self.ca, self.cert, self.key))
        return files and (self.name is None or isinstance(self.name, str))


@dataclass(frozen=True)
class LocalTag:
    """A tag whose ids are prefetched, so that taking one costs no call."""

    tag: str
    max_age_ms: Optional[int] = None  # older ids are dropped; None: ids are kept
    lasts_ms: int = 1000              # time for which a fetch should last at the recent rate
    fetch_max: int = 10_000_000       # maximum ids of one fetch

    @classmethod
    def snowflake(cls, tag: str) -> LocalTag:
        """For snowflake tags: ids at most 1 s old. A fetch takes what a server issues in 25 ms."""
        return cls(tag, max_age_ms=1000, lasts_ms=250, fetch_max=100_000)

    @classmethod
    def segment(cls, tag: str) -> LocalTag:
        """For segment tags: ids in memory are kept until they are used."""
        return cls(tag)

    def usable(self) -> bool:
        numbers = (self.max_age_ms or 0, self.lasts_ms, self.fetch_max)
        return isinstance(self.tag, str) and all(isinstance(one, (int, float)) and one >= 0 for one in numbers)


@dataclass(frozen=True)
class Options:
    """The options of a Client. A value out of range is a ValueError that names every fault."""

    servers: str                          # firn://seed,seed or list://host:port,unix:/path
    cluster_uuid: str = ""                # empty: that of the first server that answers
    rack: Optional[int] = None            # use servers of this rack while one is healthy
    on_failure: Literal["failover", "failfast"] = "failover"  # failfast: return the first failure
    deadline_ms: int = 200                # maximum time of a call, unless the call sets it
    attempt_limit_ms: int = 80            # maximum time of an attempt, connecting included
    attempts_max: int = 3                 # maximum requests per call
    connections_max: int = 64             # per server; each serves one call at a time
    servers_max: int = 16                 # maximum servers used in a large cluster; 0: all
    local_ranges: Sequence[LocalTag] = ()
    tls: Optional[Tls] = None
    # Called on a thread of its own, one event at a time; by firn.aio.Client in its event loop, where it must return soon.
    # Exceptions that it raises are ignored.
    on_event: Optional[Callable[[Event], None]] = None

    def __post_init__(self) -> None:
        faults = [f"{name} is {described(value)}, not {low} to {high}" for name, value, low, high in (
            ("deadline_ms", self.deadline_ms, 1, 3_600_000),
            ("attempt_limit_ms", self.attempt_limit_ms, 1, 3_600_000),
            ("attempts_max", self.attempts_max, 1, 100),
            ("connections_max", self.connections_max, 1, 10_000),
            ("servers_max", self.servers_max, 0, 1_000),
            ("rack", 0 if self.rack is None else self.rack, 0, 2**31 - 1)) if not isinstance(value, int) or not low <= value <= high]
        tags: object = self.local_ranges
        if not isinstance(tags, Collection) or not all(isinstance(one, LocalTag) and one.usable() for one in tags):
            faults.append("local_ranges is not a list of LocalTag, such as [LocalTag.segment(\"order\")]")
        if self.tls is not None and not (isinstance(self.tls, Tls) and self.tls.usable()):
            faults.append("tls is not a Tls of file names, such as Tls(ca=\"ca.pem\")")
        if not isinstance(self.cluster_uuid, str):
            faults.append(f"cluster_uuid is {described(self.cluster_uuid)}, not a str")
        if self.on_event is not None and not callable(self.on_event):
            faults.append(f"on_event is {described(self.on_event)}, not a function")
        if self.on_failure not in ("failover", "failfast"):
            faults.append("on_failure is neither failover nor failfast")
        try:
            self.addresses()
        except ValueError as fault:
            faults.append(str(fault))
        if faults:
            raise ValueError("; ".join(faults))

    def tell(self, kind: str, server: str, detail: str) -> None:
        """Calls `on_event`. Its exceptions must not end a call or a background thread of the client."""
        if self.on_event:
            try:
                self.on_event(Event(kind, server, detail))
            except Exception:  # pylint: disable=broad-except
                pass

    @property
    def lists_change(self) -> bool:
        return self.servers.startswith("firn://")

    def addresses(self) -> list[str]:
        """The unique addresses in `servers`."""
        if not isinstance(self.servers, str):
            raise ValueError(f"servers is {described(self.servers)}, neither firn://... nor list://...")
        scheme, mark, rest = self.servers.partition("://")
        if not mark or scheme not in ("firn", "list"):
            raise ValueError(f"servers is '{self.servers}', neither firn://... nor list://...")
        names = list(dict.fromkeys(rest.split(",")))
        for name in names:
            split_seed(name)
        return names


def described(value: object) -> str:
    """A wrong argument in an error: its text, if the text cannot run the caller's code."""
    plain = value is None or type(value) in (bool, int, float, str, bytes)
    return printable(repr(value))[:100] if plain else f"of the type {type(value).__name__}"


def split_address(address: str) -> tuple[str, int]:
    """Host and port of host:port; an IPv6 host has brackets. No host is named unix."""
    host, mark, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or address.startswith(_UNIX):
        mark = ""
    if not mark or not host or not port.isdigit() or not 0 < int(port) < 65536 or printable(host) != host:
        raise ValueError(f"'{address}' is not host:port")
    return host, int(port)


def split_seed(address: str) -> tuple[str, int]:
    """Host and port of host:port, or the path of unix:/path and the port 0."""
    if not address.startswith(_UNIX):
        return split_address(address)
    path = address[len(_UNIX):]
    if not path.startswith("/"):
        raise ValueError(f"'{printable(address)}': unix: requires an absolute path")
    if len(os.fsencode(path)) > _UNIX_PATH_MAX or "\0" in path:
        raise ValueError(f"'{printable(address)}': the path of a Unix socket has at most {_UNIX_PATH_MAX} bytes "
                         "and no NUL")
    if not hasattr(socket, "AF_UNIX"):
        raise ValueError(f"'{printable(address)}': this Python has no Unix sockets; use the server's host and port")
    return path, 0
