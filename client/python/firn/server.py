"""The state of one server in the fleet."""

from __future__ import annotations

import ipaddress
import math
import random
from typing import NamedTuple, Optional

from .connection import Bell, Connection, Room
from .errors import AttemptFailed
from .health import Backoff, Health
from .options import split_seed
from .protocol import Entry, State

# In the order of use: servers of a later standing only if none of an earlier one is left.
HEALTHY, FAILING, EJECTED, DISABLED, DRAINING, LAST_RESORT, QUARANTINED = range(7)
NAMES = ("healthy", "failing", "ejected", "disabled", "draining", "last resort", "quarantined")

PROBE_AGAIN_S = 30.0
_PROBE_FIRST_S = 1.0
_LONGEST_QUARANTINE_S = 300.0
_FIRST_DIAL_PAUSE_S = 0.01
_LONGEST_DIAL_PAUSE_S = 0.1
NEVER = math.inf


class SeenServer(NamedTuple):
    """One server as the client sees it; `why` is a sentence, unless the server is healthy."""

    address: str
    rack: int
    weight: int
    health: str
    why: str
    in_flight: int


class Server:
    """One server; guarded by the fleet's lock."""

    def __init__(self, address: str, room: Room) -> None:
        self.address = address
        self.host, self.port = split_seed(address)  # of a Unix socket: its path, and 0
        self.addresses: list[str] = [] if self.has_name() else [self.host]
        self.rack, self.weight, self.online, self.tls = 0, 100, True, False
        self.state = State.READY
        self.last_resort = False
        self.in_flight = 0
        self.health = Health()
        self.why = ""
        self.not_ready_until = 0.0
        self.down_until: dict[str, float] = {}    # by tag: its store is down
        self.closed_until: dict[str, float] = {}  # by tag: refused with DRAINING
        self.draining = self.quarantined = False
        self.foreign = False  # in quarantine, as a server of another cluster or service
        self._quarantine = Backoff(PROBE_AGAIN_S, _LONGEST_QUARANTINE_S)  # between two probes
        self._probe_backoff = Backoff(_PROBE_FIRST_S, PROBE_AGAIN_S)  # of one that is not in quarantine
        self.spoke = False  # whether the last connection received its status
        self.connect_at = 0.0  # no call opens a connection before this time
        self.answered_at = self.lost_at = 0.0  # a call; a call, by a timeout
        self.moves_until = self.moves_again_at = 0.0  # of calls that fail over free of the retry budget
        self.dial_failed = False  # the last connection could not be opened
        self._dial_pause = Backoff(_FIRST_DIAL_PAUSE_S, _LONGEST_DIAL_PAUSE_S)
        self.probe_at = NEVER  # time of the next probe
        self.resolve_at = 0.0
        self.room = room
        self.idle: list[Connection] = []  # or the one that calls share
        self.dialling: Optional[Bell] = None  # rings when the connection is open that calls wait for
        self.dial_failure: Optional[AttemptFailed] = None  # of the last one

    def standing(self, tag: str, needs_machine: bool, now: float) -> int:
        leaves = self.state in (State.DRAINING, State.OFFLINE)
        not_ready = self.state == State.NOT_READY or now < self.not_ready_until
        if self.quarantined:
            return QUARANTINED
        if self.last_resort:
            return LAST_RESORT
        if self.draining or leaves or now < self.closed_until.get(tag, 0):
            return DRAINING
        if not self.online or self.weight <= 0:
            return DISABLED
        if (self.health.ejected or (not_ready and needs_machine)
                or now < self.down_until.get(tag, 0)):
            return EJECTED
        return FAILING if self.health.too_many_failures or self.health.out else HEALTHY

    def listed(self, entry: Entry) -> None:
        """Records its entry in a new list."""
        self.rack, self.weight, self.online, self.state = entry.rack, entry.weight, entry.online, entry.state
        self.last_resort = self.draining = self.quarantined = self.foreign = False
        self.closed_until.clear()

    def has_name(self) -> bool:
        """Whether the host is a name, which must be resolved."""
        return self.port != 0 and not is_number(self.host)

    def may_serve(self, now: float) -> bool:
        """Whether a call has, or may open, a connection to it."""
        return now >= self.connect_at or bool(self.idle)

    def connected(self) -> None:
        """Records that a connection for a lease was opened. It ends no ejection: probes and calls do."""
        if not self.health.out:
            self.health.answered()

    def revive(self) -> None:
        """Records that a call was answered."""
        self.health = Health()
        if not self.quarantined and not self.draining:
            self.probe_at = NEVER

    def take_out(self, eject: bool, now: float) -> float:
        """Ejects the server. Returns the number of seconds until its status is requested."""
        length = self.health.take_out(eject, now)
        if not self.quarantined and not self.draining:
            self.probe_at = now + length
        return length

    def quarantine(self, foreign: bool, why: str, now: float) -> None:
        self.quarantined, self.why = True, why
        self.foreign = self.foreign or foreign
        self.probe_later(now)

    def probe_later(self, now: float) -> None:
        strict = self.quarantined and not self.foreign
        self.probe_at = now + (self._quarantine if strict else self._probe_backoff).next(now)

    def dialled(self, reached: bool, now: float) -> bool:
        """After a connection that could not be opened, none is opened for a call for 10 ms, twice as long
        each time up to 100 ms. Whether that is over."""
        over = reached and self.dial_failed
        self.dial_failed = not reached
        self.spoke &= reached
        self.connect_at = 0.0 if reached else now + self._dial_pause.next(now)
        return over


def is_number(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def at_least(advice_s: float) -> float:
    """Adds up to half at random, so that not all clients return at the same moment."""
    return advice_s * random.uniform(1.0, 1.5)


def remember(times: dict[str, float], tag: str, until: float) -> None:
    if len(times) >= 1000:
        times.clear()
    times[tag] = until
