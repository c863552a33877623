"""The failures of a call."""

from __future__ import annotations

import enum
import unicodedata
from dataclasses import dataclass
from typing import Any, Optional, Sequence


class Reason(enum.IntEnum):
    """The reason of a refusal; the numbers are those of firn.thrift."""

    BAD_REQUEST = 1
    UNKNOWN_TAG = 2
    NOT_READY = 3
    CLOCK = 4
    OVERLOADED = 5
    EXHAUSTED = 6
    DRAINING = 7
    REJECTED = 8
    STORE_DOWN = 9
    INTERNAL = 10

    def __str__(self) -> str:
        return self.name


# Whether a call that is refused fails over. IF_SAID: if the server reports that another one may help.
Retry = enum.Enum("Retry", "ELSEWHERE IF_SAID NEVER")

# What each reason means: whether to retry, and whether the time that the refusal took counts as the server's
# latency. "Refusals" in client/call/FAILOVER.md has the same columns.
REFUSAL_RULES = {
    Reason.BAD_REQUEST: (Retry.NEVER, True),
    Reason.UNKNOWN_TAG: (Retry.NEVER, True),
    Reason.NOT_READY: (Retry.ELSEWHERE, False),
    Reason.CLOCK: (Retry.ELSEWHERE, False),
    Reason.OVERLOADED: (Retry.ELSEWHERE, False),
    Reason.EXHAUSTED: (Retry.IF_SAID, True),
    Reason.DRAINING: (Retry.ELSEWHERE, False),
    Reason.REJECTED: (Retry.NEVER, True),
    Reason.STORE_DOWN: (Retry.ELSEWHERE, False),
    Reason.INTERNAL: (Retry.IF_SAID, False),
}


class LeaseFault(enum.IntEnum):
    """Internal: why a server does not grant, extend or end a lease; the numbers are those of firn.thrift."""

    OTHER = 0            # absent, or of a later version
    UNKNOWN_LEASE = 1    # the server has no such lease
    OUTDATED = 2         # a repetition that came after a later request
    REVOKED = 3          # stop issuing at once
    ANOTHER_SERVERS = 4  # it belongs to another server
    NO_LEASES = 5        # the server grants none


class End(enum.Enum):
    """The outcome of one attempt at a server."""

    UNREACHABLE = "unreachable"          # refused, no route, reset while connecting
    CONNECT_TIMEOUT = "connect timeout"  # the connection was not accepted in time
    CLOSED = "closed"                    # the connection ended before the complete answer
    TIMEOUT = "timeout"                  # no complete answer in time
    BROKEN = "broken"                    # the received bytes are not an answer to the request
    WRONG_SERVICE = "wrong service"      # the server is not an IdService of this cluster
    REFUSED = "refused"                  # the server refused with a reason
    NO_ROOM = "no room"                  # all connections were in use, or no descriptor was left


@dataclass(frozen=True)
class Attempt:
    """One attempt of a call, at one server."""

    server: str
    end: End
    reason: Optional[Reason]
    took_ms: float
    detail: str

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.server} {self.end.value}{why} after {self.took_ms:.1f} ms{detail}"


def printable(text: str) -> str:
    """The text with each control character replaced."""
    return "".join("?" if unicodedata.category(one) == "Cc" else one for one in text)


class FirnError(Exception):
    """A call that failed. `attempts` lists every attempt (of many, the last 32): the server, what
    happened, and after how long. `reason` is that of the last refusal, if there was one, and
    `retry_after_ms` its advice when to retry (0: none)."""

    def __init__(self, sentence: str, attempts: Sequence[Attempt] = (),
                 reason: Optional[Reason] = None, retry_after_ms: int = 0) -> None:
        super().__init__("; ".join([sentence, *map(str, attempts)]))
        self.attempts = tuple(attempts)
        self.reason = reason
        self.retry_after_ms = retry_after_ms


class Refused(FirnError):
    """A server refused for a `reason` that other servers would repeat."""


class Unavailable(FirnError):
    """No server could answer now."""


class Closed(FirnError):
    """The client, or the generator, was closed."""


class NoLease(Unavailable):
    """No lease of a machine id is in force. `since_ms` is the time from which on there is none, in milliseconds
    since 1970."""

    def __init__(self, sentence: str, since_ms: int) -> None:
        super().__init__(sentence)
        self.since_ms = since_ms


class AttemptFailed(Exception):
    """Internal: an attempt failed. Replaces control characters in a server's text."""

    def __init__(self, end: End, detail: str, reason: Optional[Reason] = None,
                 retry_after_ms: int = 0, another_may_help: bool = False, stale: bool = False,
                 paused: bool = False, lacks_method: bool = False, counted: bool = False) -> None:
        detail = printable(detail)
        super().__init__(detail)
        self.end, self.detail, self.reason = end, detail, reason
        self.retry_after_ms, self.another_may_help = retry_after_ms, another_may_help
        self.paused = paused  # nothing was tried, because a connection has just failed
        self.lacks_method = lacks_method  # an older server, healthy for the methods that it has
        self.stale = stale  # an idle connection ended before the first byte of the answer
        self.counted = counted  # against the server already, or it says nothing about the server
        self.late: Any = None  # the answer may still arrive on the connection, which stays open

    def again(self) -> AttemptFailed:
        """Returns the same failure for another call that waited for the same connection."""
        return AttemptFailed(self.end, self.detail, self.reason, self.retry_after_ms, self.another_may_help,
                             paused=self.paused, lacks_method=self.lacks_method, counted=True)

    @property
    def spoke(self) -> bool:
        """Whether the server sent a valid answer, so that the connection can be used again."""
        return self.end is End.REFUSED or self.lacks_method

    @property
    def unsent(self) -> bool:
        return self.end in (End.UNREACHABLE, End.CONNECT_TIMEOUT, End.NO_ROOM)

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.end.value}{why}" + (f": {self.detail}" if self.detail else "")


class LeaseRefused(AttemptFailed):
    """Internal: a server refused a request for a lease. `server` is of ANOTHER_SERVERS."""

    def __init__(self, fault: LeaseFault, detail: str, server: str) -> None:
        super().__init__(End.REFUSED, detail)
        self.fault, self.server = fault, printable(server)
