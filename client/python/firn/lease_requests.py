"""What a lessee remembers of its requests and of its lease."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Optional, Union

from .ask import Ask
from .protocol import LeaseTerms

_RETRY_S = (0.2, 2.0)
_RETRY_PART = 12           # of the interval: the longest wait after a failure
_RETRY_MAX_LEAST_S = 0.1


class Backoff:
    """The wait after a failure: doubles with each one, and up to half of it is random."""

    def __init__(self) -> None:
        self._next_s = _RETRY_S[0]

    def next(self, interval_ms: int) -> float:
        """Returns the next wait, if the interval that a server gave last was so long."""
        wait_s = min(self._next_s, longest_wait_s(interval_ms))
        self._next_s = 2 * wait_s
        return wait_s * random.uniform(0.5, 1.0)


def longest_wait_s(interval_ms: int) -> float:
    """Returns a twelfth of the interval, but at least 100 ms, and at most 2 s."""
    return min(max(interval_ms / 1000 / _RETRY_PART, _RETRY_MAX_LEAST_S), _RETRY_S[1])


@dataclass
class Grant:
    """A request for a lease. It is repeated with its token at the server that may have granted it (`holder`). When
    another server is asked, the token is a fresh one: no id was issued under the first, which expires."""

    token: str
    send_at: float
    backoff: Backoff
    tried: list[str]  # servers that are asked again only after all others
    wall_at_zero_ns: Optional[int] = None
    sent_in_jump: bool = False  # of the wall clock, the last time
    holder: str = ""
    repeats: int = 0
    advice_s: float = 0.0


@dataclass
class Renewal:
    """A request for a later end. It is repeated with its turn until it is answered."""

    turn: str
    send_at: float
    backoff: Backoff
    wall_at_zero_ns: Optional[int] = None
    sent_in_jump: bool = False  # of the wall clock, the last time
    hops: int = 0


@dataclass
class Release:
    """The end of a lease whose ids are closed, or of which none was issued."""

    lease: str
    server: str
    granted_by: str
    turn: str
    used_tick: int
    useless_at_ms: int  # id clock: the lease has ended by itself
    send_at: float
    backoff: Backoff
    sent_in_jump: bool = False
    hops: int = 0


Request = Union[Grant, Renewal, Release]


@dataclass
class Held:
    """The lease in force."""

    terms: LeaseTerms
    server: str
    granted_by: str           # address of the server, as the grant named it
    acknowledged: str = ""    # turn of the last answer
    end_ms: int = 0           # id clock
    third_ms: int = 0         # of the interval
    replace_at_ms: int = 0    # id clock: another lease is requested
    renew_at: float = 0.0     # boot clock, as the next one
    answered_at: float = 0.0
    renewable: bool = True
    known: bool = True        # to its server
    expired: bool = False     # and reported


@dataclass(frozen=True)
class Order:
    """A request to send now, to the server at this address."""

    request: Request
    address: str
    ask: Ask
    limit_s: float  # one request is sent at a time, and a more urgent one must be sent before the lease ends
